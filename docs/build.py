"""MkDocs hooks: screens come from running kschedx on the fixtures, reference pages from its code.

A fence `kschedx` in a page holds a command line without the program's name; the build replaces it with the command and
what it prints. The first word may be `exit=N` where the answer is expected to have another exit code than 0.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parent.parent
SCREEN = re.compile(r"^```kschedx\n(?:exit=(\d+) )?(.+?)\n```$", re.MULTILINE)
COLUMNS = 92


@functools.cache
def run(command: str, expected: int = 0, columns: int = COLUMNS) -> str:
    """What `kschedx COMMAND` prints in the repository, without colors. Raises `PluginError` for another exit code."""
    from kschedx.cli.app import run as run_command

    out = io.StringIO()
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "COLUMNS": str(columns), "NO_COLOR": "1"}
    words = shlex.split(command)
    with (
        contextlib.chdir(ROOT),
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["kschedx", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        code = run_command()
    if code != expected:
        from mkdocs.exceptions import PluginError

        raise PluginError(f"kschedx {command}: exit code {code} instead of {expected}\n{out.getvalue()}")
    return out.getvalue().rstrip()


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each `kschedx` fence with the command and its screen."""

    def screen(fence: re.Match[str]) -> str:
        command = fence[2]
        return f"```console\n$ kschedx {command}\n{run(command, int(fence[1] or 0))}\n```"

    return SCREEN.sub(screen, markdown)


HTML_PAGES = {
    "page-why": ("why fixtures/zone-full/pod.yaml -s fixtures/zone-full/cluster", 1),
    "page-flow": ("diff-profiles default binpack --all -s fixtures/web-rollout/cluster", 1),
    "page-nodes": ("nodes -s fixtures/gpu-pool-taints/cluster.yaml", 0),
}
"""Pages of `-o html` that the guides show in a frame, with the exit code of each command."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and the picture that are generated from the code."""
    from mkdocs.structure.files import File

    for path, text in generated():
        files.append(File.generated(config, f"reference/{path}", content=text))
    files.append(File.generated(config, ANNOTATED_PICTURE, content=annotated(run(PICTURED, 1))))
    for name, (command, code) in HTML_PAGES.items():
        files.append(File.generated(config, f"assets/{name}.html", content=run(f"{command} -o html", code)))
    return files


def generated() -> Iterator[tuple[str, str]]:
    """Paths below `reference/` with their Markdown."""
    yield "commands.md", commands()
    yield "plugins.md", plugins()
    yield "profiles.md", profiles()
    yield "documents.md", documents()
    yield "permissions.md", permissions()
    yield "states.md", states()
    yield "mcp-tools.md", mcp_tools()
    yield from reasons()


# Commands.


def commands() -> str:
    import typer

    from kschedx.cli.app import program as application

    program: Any = typer.main.get_command(application())
    lines = ["# Commands", "", *_help(program.help), "`kschedx COMMAND --help` prints the same text.", ""]
    for path, command in _commands(program, "kschedx"):
        lines += [f"## {path}", "", *_help(command.help or "")]
        rows = [row for parameter in command.params if (row := _option(parameter))]
        if rows:
            lines += ["| option | meaning |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield f"{path} {name}", child
            yield from _commands(child, f"{path} {name}")


def _help(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        first, _, rest = paragraph.partition("\n")
        if first.strip() == "\b":
            title, _, block = rest.partition("\n")
            yield from (
                f"**{title.strip().rstrip(':')}**",
                "",
                "```sh",
                *(x.strip() for x in block.splitlines()),
                "```",
            )
        else:
            yield _escaped(" ".join(paragraph.split()))
        yield ""


def _option(parameter: Any) -> str:
    if parameter.param_type_name != "option" or parameter.hidden:
        return ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" `{parameter.metavar or 'VALUE'}`"
    return f"| {names}{value.replace('|', chr(92) + '|')} | {_escaped(parameter.help or '')} |"


def _escaped(text: str) -> str:
    return re.sub(r"([|<\[\]*_])", r"\\\1", text)


# Reasons: a page each, whose address screens and SARIF name.


def reasons() -> Iterator[tuple[str, str]]:
    from kschedx.words.reasons import KUBERNETES_DOCS
    from kschedx.words.reasons import reasons as explained

    index = ["# Reasons", "", "`kschedx reason ID` prints the same text.", "", "| reason | meaning |", "| --- | --- |"]
    for name, words in explained().items():
        index.append(f"| [{name}](reasons/{name}.md) | {_escaped(words.means.partition('. ')[0].rstrip('.'))} |")
        lines = [f"# {name}", "", _escaped(words.means), ""]
        if words.plugins:
            lines += [f"Reported by {', '.join(f'`{plugin}`' for plugin in words.plugins)}.", ""]
        if words.confirm:
            lines += ["## Confirm it", "", "```sh", *words.confirm, "```", ""]
        lines += ["## Usual causes", "", "The most frequent first:", ""]
        lines += [*(f"1. {_escaped(cause)}" for cause in words.causes), ""]
        if words.fixes:
            lines += ["## What fixes it", "", *(f"- {_escaped(fix)}" for fix in words.fixes), ""]
        if words.useless:
            lines += ["## What does not help", "", *(f"- {_escaped(item)}" for item in words.useless), ""]
        if words.links:
            lines += ["## Read more", "", *(f"- <{KUBERNETES_DOCS}{link}>" for link in words.links), ""]
        yield f"reasons/{name}.md", "\n".join(lines)
    yield "reasons.md", "\n".join([*index, ""])


# States, plugins, profiles, documents, permissions.


_EXAMPLES: dict[str, dict[str, Any]] = {
    "NamespaceTerminating": {"subject": "shop/deploy/web", "namespace": "shop"},
    "BeingDeleted": {"since": "2026-11-20T08:00:00Z"},
    "Finished": {"phase": "Succeeded"},
    "Failed": {"reason": "Evicted", "node": "node-7"},
    "RejectedByKubelet": {
        "subject": "shop/deploy/web",
        "reason": "UnexpectedAdmissionError",
        "message": "",
        "nodes": ("node-7",),
        "pods": 3,
    },
    "OfEndedJob": {"subject": "shop/report-x7k2p", "job": "report", "reason": "BackoffLimitExceeded"},
    "WaitingForKubelet": {"node": "node-7", "waits": 3, "container": "app", "reason": "ImagePullBackOff"},
    "BoundToMissingNode": {"node": "node-7", "waits": 0},
    "KeptBySidecar": {"subject": "shop/report-x7k2p", "node": "node-7", "running": "proxy", "ended": "report"},
    "ScaledToZero": {"subject": "shop/deploy/web", "field": "spec.replicas"},
    "Suspended": {"subject": "ml/job/train", "kind": "Job", "queue": "research"},
    "Paused": {"subject": "shop/deploy/web", "kind": "Deployment", "hasPods": True},
    "Refused": {"subject": "shop/deploy/web", "message": "", "by": "ResourceQuota", "isWorkload": True},
    "NotChanged": {"subject": "shop/sts/db", "message": "", "by": "the API server", "isWorkload": True},
    "NotSynced": {"subject": "shop/sts/db", "message": "", "by": "the API server", "isWorkload": True},
    "StillActive": {"subject": "shop/cronjob/backup", "job": "shop/backup-29403840"},
    "ManagedElsewhere": {"subject": "ml/job/train", "manager": "kueue.x-k8s.io/multikueue"},
    "ComponentDown": {"component": "kube-scheduler", "pods": (), "isPending": True},
    "WaitingForOrdinal": {
        "subject": "shop/sts/db",
        "pod": "db-2",
        "predecessor": "db-1",
        "because": "is not ready",
    },
    "WaitingForOldPods": {"subject": "shop/deploy/web", "pods": ("web-7d9f8-x7k2p",), "nodes": ("node-7",)},
    "RolloutStalled": {"subject": "shop/deploy/web", "message": "", "pods": ("shop/web-7d9f8-x7k2p",)},
    "NotAvailable": {
        "subject": "shop/deploy/web",
        "wanted": 4,
        "pods": ("web-7d9f8-x7k2p on node-3: Readiness probe failed",),
        "first": "web-7d9f8-x7k2p",
    },
    "UpdateHeld": {
        "subject": "shop/sts/db",
        "pods": ("shop/db-0",),
        "why": "updateStrategy is OnDelete",
        "isOnDelete": True,
    },
    "NotScaled": {
        "subject": "shop/deploy/web",
        "replicas": 4,
        "autoscaler": "HorizontalPodAutoscaler web",
        "why": "is at maxReplicas 4",
    },
    "OnLostNode": {"node": "node-7"},
    "ResizeHeld": {"node": "node-7", "reason": "Deferred"},
    "NoJobStarted": {"subject": "shop/cronjob/backup", "reason": "UnknownTimeZone", "message": ""},
    "UnknownPods": {"subject": "shop/backup/nightly", "kind": "Backup"},
    "PodsLeftOut": {"subject": "shop/deploy/web", "pods": 3},
    "NotObserved": {"subject": "shop/deploy/web", "kind": "Deployment"},
    "ObjectState": {"subject": "shop/pvc/data", "does": "is pending until a pod uses it"},
    "WithoutNode": {"subject": "nodepool/general", "does": "adds no node: it is not ready"},
    "Running": {"subject": "shop/sts/db", "does": "runs its only pod: db-0 on node-7", "because": ""},
    "NotRead": {"unknown": "the priority of high", "because": ""},
    "NoScheduler": {"scheduler": "batch-scheduler", "profiles": ()},
    "Contradicted": {"message": ""},
    "NotBound": {"message": "", "claim": "shop/data"},
    "CannotStart": {"nodes": ("node-7",), "why": "the node has MemoryPressure"},
}
"""Facts of states, by the names of the states and of their fields; `subject` is shop/web-0 if it is not here."""
_COMMANDS = {
    "OtherScheduler": "why fixtures/volcano-job/pod.yaml -s fixtures/volcano-job/cluster.yaml",
    "Gated": "why fixtures/gated/pod.yaml -s fixtures/gated/cluster.yaml",
    "WaitingForGang": (
        "why pod/worker-0 -n ml -s fixtures/pod-group-no-room/cluster.yaml "
        "--feature-gate GenericWorkload=true --feature-gate GangScheduling=true"
    ),
    "Undecided": (
        "why fixtures/unknown-plugin/pod.yaml -s fixtures/unknown-plugin/cluster.yaml "
        "--config fixtures/unknown-plugin/scheduler.yaml"
    ),
    "ScaleUp": "why fixtures/autoscaler-grows/pod.yaml -s fixtures/autoscaler-grows/cluster.yaml",
    "Unschedulable": "why fixtures/zone-full/pod.yaml -s fixtures/zone-full/cluster",
    "Schedulable": "why fixtures/tie/pod.yaml -s fixtures/tie/cluster.yaml",
}
"""Commands whose screens begin with the verdict of a scheduler."""
_VERDICTS = {
    "Nominated": "shop/web-0 waits for 2 victims to terminate on its nominated node node-7",
    "Error": "shop/web-0: kube-scheduler fails with an internal error and makes no decision",
}


def _example(state: str, exit_code: int) -> str:
    """The headline of an example."""
    from typing import get_args

    import msgspec

    from kschedx.controllers.states import Lifecycle, headline

    if (known := _EXAMPLES.get(state)) is not None:
        [facts] = (facts for facts in get_args(Lifecycle) if facts.__name__ == state)
        return headline(msgspec.convert({"subject": "shop/web-0", **known}, facts))
    return _VERDICTS.get(state) or run(_COMMANDS[state], exit_code, columns=400).partition("\n")[0][2:]


def states() -> str:
    from kschedx.controllers.states import STATES

    lines = [
        "# States and headlines",
        "",
        "Before it asks the scheduler, `kschedx why` determines the state of the pod or workload.",
        "The first state in this table that applies wins. It makes the headline and the exit code.",
        "",
        "| State | Example of its headline | Exit code |",
        "| --- | --- | --- |",
        *(
            f"| `{row.name}` | {_escaped(_example(row.name, row.exit_code))} | {row.exit_code.value} |"
            for row in STATES
        ),
        "",
    ]
    return "\n".join(lines)


def plugins() -> str:
    from kschedx.releases.plugins import PLUGINS

    lines = [
        "# Plugins",
        "",
        "In the order of the default profile, which decides which reason a node gets first. A plugin of another",
        "project takes part only where a configuration names it.",
        "",
        "| plugin | project | versions | extension points |",
        "| --- | --- | --- | --- |",
    ]
    for row in PLUGINS:
        points = re.sub(r" ([\d.]*\.\.[\d.]*)", lambda result: f" ({_versions(result[1])})", row.points)
        versions = _versions(row.releases) if row.releases else "all"
        lines.append(f"| `{row.name}` | {row.project} | {versions} | {_escaped(points)} |")
    return "\n".join([*lines, ""])


def _versions(text: str) -> str:
    """`since 1.27`, `up to 1.31`, `1.27 to 1.31`."""
    first, _, last = text.partition("..")
    return f"{first} to {last}" if first and last else f"since {first}" if first else f"up to {last}"


def profiles() -> str:
    text = ["# Profiles", "", "Named profiles come with kschedx. `kschedx profiles show NAME` prints one in full.", ""]
    text += ["```text", run("profiles"), "```", ""]
    for name in sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml")):
        if not name.startswith("default-"):
            source = (ROOT / "profiles" / f"{name}.yaml").read_text(encoding="utf-8").rstrip()
            text += [f"## {name}", "", "```yaml", source, "```", ""]
    return "\n".join(text)


def documents() -> str:
    import json

    from kschedx import schemas

    lines = [
        "# Documents",
        "",
        "`-o json` and `-o yaml` print a document. It is a contract: keys are added, never changed.",
        "`kschedx schema NAME` prints the JSON Schema of a document.",
        "",
    ]
    for name, command in schemas.NAMES.items():
        schema: Any = schemas.schema(name)
        lines += [f"## {name}", "", f"`{command}`", "", "| key | type | meaning |", "| --- | --- | --- |"]
        for key, value in schema.get("properties", {}).items():
            lines.append(
                f"| `{key}` | {_type(value, schema)} | {_escaped(' '.join(value.get('description', '').split()))} |"
            )
        text = json.dumps(schema, indent=2)
        lines += [
            "",
            f'??? note "JSON Schema of {name}"',
            "",
            *(f"    {line}" for line in ["```json", *text.splitlines(), "```"]),
            "",
        ]
    return "\n".join(lines)


def mcp_tools() -> str:
    from kschedx.cli.mcp.tools import TOOLS

    lines = ["# MCP tools", "", "`kschedx mcp` serves these tools. All are read-only.", ""]
    for tool in TOOLS:
        lines += [f"## {tool.name}", "", f"{tool.title}. {tool.description}", ""]
        rows = [
            f"| `{key}` | {_escaped(str(value.get('description') or ''))}{' (required)' * (key in tool.required)} |"
            for key, value in tool.properties.items()
        ]
        lines += ["| argument | meaning |", "| --- | --- |", *rows, ""] if rows else []
    return "\n".join(lines)


def _type(schema: dict[str, Any], whole: dict[str, Any]) -> str:
    """`string`, `object or null`, the value of a constant; `whole` has the definitions."""
    if "$ref" in schema:
        return _type(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "const" in schema:
        return f"`{schema['const']}`"
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        kinds = dict.fromkeys(_type(choice, whole) for choice in choices)
        return " or ".join(sorted(kinds, key=lambda kind: kind == "null"))
    kind = schema.get("type") or ("string" if "enum" in schema else "object")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def permissions() -> str:
    from kschedx.kube.kinds import READ_LIVE

    rules: dict[str, list[str]] = {}
    for kind in READ_LIVE.values():
        rules.setdefault(kind.group, []).append(kind.plural)
    lines = [
        "# Permissions",
        "",
        "kschedx sends GET requests only. `--dry-run=server` is the one exception: it asks the API server to admit a",
        "manifest without storing it, and needs `create` on pods.",
        "",
        "This ClusterRole allows everything that kschedx reads. Without a kind, kschedx names what it could not read;",
        "an answer that depends on it is undecided (exit code 3). If nodes or the pods of other namespaces may not be",
        "listed, `why` still shows the state of a pod and what kube-scheduler reports about it.",
        "",
        "```yaml",
        "apiVersion: rbac.authorization.k8s.io/v1",
        "kind: ClusterRole",
        "metadata:",
        "  name: kschedx",
        "rules:",
    ]
    for group, plurals in sorted(rules.items()):
        resources = sorted(set(plurals) - {"configmaps"})
        if resources:
            lines += [
                f'  - apiGroups: ["{group}"]',
                f"    resources: [{', '.join(resources)}]",
                "    verbs: [get, list]",
            ]
    lines += [
        '  - apiGroups: [""] # of ConfigMaps only those of cluster-autoscaler, the descheduler, and Kueue',
        "    resources: [configmaps]",
        "    resourceNames:",
        "      - cluster-autoscaler-status",
        "      - cluster-autoscaler-priority-expander",
        "      - descheduler",
        "      - descheduler-policy-configmap",
        "      - kueue-manager-config",
        "    verbs: [get, list]",
        "```",
        "",
    ]
    return "\n".join(lines)


# The picture of a screen in README.md. `python docs/build.py` writes it; a test compares.

PICTURED = "why fixtures/zone-full/pod.yaml --snapshot fixtures/zone-full/cluster"
SVG = """\
<svg class="screen" viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="{terminal_width}" height="{terminal_height}" rx="8" fill="{background}"/>
<g transform="translate(12, 10)" class="{unique_id}-matrix">{backgrounds}{matrix}</g>
</svg>
"""


def pictures() -> Iterator[tuple[Path, str]]:
    """The picture's files with their content, in light and dark colors."""
    from rich.console import Console
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
    from rich.text import Text

    out = subprocess.run(
        [sys.executable, "-m", "kschedx", *shlex.split(PICTURED)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.devnull, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    for name, theme in (("light", DEFAULT_TERMINAL_THEME), ("dark", MONOKAI)):
        console = Console(record=True, width=COLUMNS + 2, file=io.StringIO(), force_terminal=True)
        console.print(Text.from_ansi(f"$ kschedx {PICTURED}\n{out}"))
        red, green, blue = theme.background_color
        template = SVG.replace("{background}", f"rgb({red},{green},{blue})")
        svg = console.export_svg(title="", theme=theme, code_format=template, unique_id=f"k{name}")
        yield ROOT / f"docs/pages/assets/screen-{name}.svg", svg


# The annotated picture of "Read the screen": a number beside the first line of each part.

ANNOTATED_PICTURE = "assets/screen-annotated.svg"
PARTS = (r"✗ \S+ is ", r"  because ", r"  fix ", r"  event ", r"\S+ ✗ ", r"  requests ", r"  free ", r"  used by ")
LINE, CHARACTER, MARGIN = 18, 7.8, 44
ANNOTATED = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" \
aria-label="A screen of kschedx with numbered parts">
<style>text{{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1b1f24;white-space:pre}}\
.paper{{fill:#fff;stroke:#d0d7de}}.mark{{fill:#3949ab}}.number{{fill:#fff;font-weight:bold;text-anchor:middle}}</style>
<rect class="paper" x="0.5" y="0.5" width="{inner:.0f}" height="{below}" rx="8"/>
{body}
</svg>
"""


def annotated(screen: str) -> str:
    """The screen as SVG with a number before each of `PARTS`. Raises `PluginError` if a part is missing."""
    from html import escape

    from mkdocs.exceptions import PluginError

    lines = screen.splitlines()
    result = [next((at for at, line in enumerate(lines) if re.match(part, line)), None) for part in PARTS]
    if None in result:
        raise PluginError(f"the annotated screen lacks {PARTS[result.index(None)]!r}")
    body = []
    for at, line in enumerate(lines):
        y = 26 + at * LINE
        body.append(f'<text x="{MARGIN}" y="{y}">{escape(line)}</text>')
        if at in result:
            body.append(f'<circle class="mark" cx="22" cy="{y - 4}" r="10"/>')
            body.append(f'<text class="number" x="22" y="{y}">{result.index(at) + 1}</text>')
    width, height = MARGIN + 16 + max(map(len, lines)) * CHARACTER, 26 + len(lines) * LINE
    return ANNOTATED.format(width=width, height=height, inner=width - 1, below=height - 1, body="\n".join(body))


if __name__ == "__main__":
    for path, svg in pictures():
        path.write_text(svg, encoding="utf-8")
