"""`kschedx plugins`: the plugins of kschedx, their packages, and their extension points."""

from __future__ import annotations

from kschedx.cli.options import Command, OptionGroup
from kschedx.cli.output import Answer, ExitCode, Format, Report, option
from kschedx.cli.question import Question
from kschedx.kube.documents import document

COMMAND = Command(
    "List plugins and their extension points",
    (OptionGroup.RELEASE, OptionGroup.GATES),
    help="""List the plugins that a configuration may name: of Kubernetes, of other projects, and of installed packages.

\b
Examples:
  kschedx plugins                      # in the newest version
  kschedx plugins --kube-version 1.28  # in another version
  kschedx plugins -o json              # for a script
""",
)


def plugins(
    output: Format | None = option(
        Format.JSON, Format.YAML, Format.NAME, text="json and yaml with everything; name is the names alone."
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.framework.registry import known_plugins
    from kschedx.releases import resolve
    from kschedx.render.catalogue import plugins_lines
    from kschedx.schemas.commands import PluginListDocument

    release = resolve(question.kube_version, question.gates)
    items = tuple(known_plugins(release))
    report = Report(
        screen=lambda width, _: plugins_lines(items, width),
        document=lambda: document("PluginList", PluginListDocument, kubernetes_version=release.version, items=items),
        names=lambda: [plugin.name for plugin in items],
    )
    return Answer(report, ExitCode.SCHEDULABLE)
