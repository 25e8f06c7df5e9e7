"""`kschedx plugins`: the plugins of kschedx, their packages, and their extension points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from kschedx.cli.options import Part
from kschedx.cli.output import Answer, ExitCode, Format, Report, option
from kschedx.cli.question import Question

if TYPE_CHECKING:
    from rich.text import Text

HELP = """List the plugins that a configuration may name: of Kubernetes, of other projects, and of installed packages.

\b
Examples:
  kschedx plugins                      # in the newest version
  kschedx plugins --kube-version 1.28  # in another version
  kschedx plugins -o json              # for a script
"""
SUMMARY = "List plugins and their extension points"
PARTS = (Part.RELEASE, Part.GATES)


def plugins(
    output: Annotated[
        Format | None,
        option(Format.JSON, Format.YAML, Format.NAME, text="json and yaml with everything; name is the names alone."),
    ] = None,
    *,
    question: Question,
) -> Answer:
    """The command; its help is HELP."""
    from kschedx.framework.registry import known_plugins
    from kschedx.releases import resolve

    release = resolve(question.kube_version, question.gates)
    found = tuple(known_plugins(release))

    def screen(width: int, wide: bool) -> Sequence[Text]:
        from kschedx.render.catalogue import plugins_lines

        return plugins_lines(found, width)

    def document() -> dict[str, object]:
        from kschedx.kube import documents
        from kschedx.schemas.listings import PluginListDocument

        return documents.document("PluginList", PluginListDocument, kubernetes_version=release.version, items=found)

    report = Report(screen=screen, document=document, names=lambda: [one.name for one in found])
    return Answer(report, ExitCode.SCHEDULABLE)
