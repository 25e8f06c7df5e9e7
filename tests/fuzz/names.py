"""Hostile names of a cluster in everything that is printed: commands, pages, reports, and answers of tools."""

from __future__ import annotations

import contextlib
import copy
import html
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import anyio
import mcp.types
import pydantic
from markdown_it import MarkdownIt

from kschedx.cli.mcp.server import BOUNDS, Answers, Context, KnownClusters
from kschedx.cli.mcp.tools import TOOLS, Detail, ToolCall, answer
from kschedx.cli.worker import CapturedAnswer, capture
from kschedx.kube.escaping import is_hidden
from kschedx.progress import ProgressStep
from tests.command import CommandResult
from tests.command import kschedx as command
from tests.fuzz import hostile
from tests.fuzz.network import SEPARATOR

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: RemoveDuplicates}, {name: RemovePodsViolatingNodeTaints}]
  plugins: {balance: {enabled: [RemoveDuplicates]}, deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""

# --- a cluster with renamed objects

HOSTILE = (
    "apps;touch${IFS}x;/v1", "$(touch x)", "`touch x`", "a'; touch x; '", 'a"; touch x; "', "a\ntouch x\n",
    "a && touch x", "a > x", "--all", "-f", "*", "~", "a\\",
    "EOF\ntouch x\nEOF", "MANIFEST\ntouch x", "\x1b[2Ja", "a\u202eb", "{}",
    "{0}", "",
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "]]>&lt;", "&#35;", '" onload="alert(1)',
    "[x](javascript:alert(1))", "![x](http://a/b)", "```\n<img>\n```", "````", "| a | b |", "</details><b>", "http://a.b/c",
    "@team", "#12", "::error::x", "a ::add-mask::x", "::set-env name=PATH::/x", "##vso[task.setvariable variable=a]b",
    "##[command]x", "##teamcity[buildStop]", ":error::x", "#", "%0A::error::x", "<!--", "-->", "*a*", "__a__", "~~a~~",
    "- a",
    "a\" " + "; touch x " * 12,
    "# a", "> a", "1. a", "a  \nb", "&copy;", "x" * 300, "é名", "\0", "{{ a }}", "${{ a }}", "[link=http://a]x[/link]",
)  # fmt: skip


def rename_words(data: bytes) -> list[Any]:
    """Return the objects of a fixture with some words replaced everywhere.

    The first byte selects the fixture; pairs of a word's number and its new spelling follow.
    """
    objects = _small_stories()[data[0] % len(_small_stories())] if data else _small_stories()[0]
    known_words = _words_of(json.dumps(objects))
    new_names: dict[str, str] = {}
    for piece in data[1:].split(SEPARATOR):
        if len(piece) > 1:
            number = int.from_bytes(piece[:2], "big")
            new_names[known_words[number % len(known_words)]] = piece[2:].decode(errors="replace")
    return [_replace_words(item, new_names, is_top=True) for item in objects]


_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "allocatable", "requests")


@cache
def _small_stories() -> tuple[list[Any], ...]:
    return tuple(story for story in hostile.stories() if len(json.dumps(story)) < 40_000)


@cache
def _words_of(text: str) -> list[str]:
    """Return the names and values of objects, and the keys of their maps of names."""
    names: set[str] = set()
    for holder, key in hostile.places(json.loads(text)):
        value = holder[key]
        if isinstance(value, str) and key not in ("kind", "apiVersion"):
            names.add(value)
        if isinstance(value, dict) and key in _MAPS:
            names.update(value)
        if key == "ownerReferences":
            names.update(word for owner in value for word in (owner["kind"], owner["apiVersion"]))
    return sorted(names)


def _replace_words(value: Any, new_names: dict[str, str], *, is_top: bool = False) -> Any:
    match value:
        case dict():
            return {
                new_names.get(key, key): inner
                if is_top and key in ("kind", "apiVersion")
                else _replace_words(inner, new_names)
                for key, inner in value.items()
            }
        case list():
            return [_replace_words(inner, new_names) for inner in value]
        case str():
            return new_names.get(value, value)
        case _:
            return copy.copy(value)


def _seeds() -> Iterator[bytes]:
    random = Random(28)
    for story in range(len(_small_stories())):
        yield bytes([story]) + _hostile_words(random)


def _hostile_words(random: Random) -> bytes:
    number = random.choice((2, 4, 8))
    return SEPARATOR.join(random.randbytes(2) + random.choice(HOSTILE).encode() for _ in range(number))


FILES = (
    "cluster.json", "--all", "a b.json", "$(touch x).json", "a;touch x;.json", "a\ntouch x.json", "-n", "'",
    '"', "*.json",
    "::error::x", "<img src=x>", "\x1b[2J.json", "https:", "--context=x.json",
)  # fmt: skip
"""File names of a dump."""
_WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob", "JobSet", "Workload")


def _answer_question(
    data: bytes, questions: tuple[tuple[str, ...], ...], columns: int = 100
) -> tuple[tuple[str, ...], CommandResult]:
    """Return a question about such a cluster and its answer.

    PODS is a file of its pending pods, NODE its first node. A question that begins with `tool` calls a tool of MCP.
    """
    question = questions[data[0] % len(questions)] if data else questions[0]
    objects = rename_words(data[1:])
    pods = [item for item in objects if item.get("kind") == "Pod"]
    pods = [item for item in pods if not (item.get("spec") or {}).get("nodeName")] or pods
    nodes = [str(item["metadata"].get("name")) for item in objects if item.get("kind") == "Node"] or ["n"]
    workloads = [item for item in objects if item.get("kind") in _WORKLOADS] or [{"kind": "Job", "metadata": {}}]
    workload = workloads[len(data) % len(workloads)]
    with _folder() as folder:
        cluster = folder / FILES[len(data) % len(FILES)]
        cluster.write_bytes(hostile.as_json(objects))
        (folder / "pods.json").write_bytes(hostile.as_json(pods[:3]))
        (folder / "policy.yaml").write_text(POLICY)
        words = {
            "CLUSTER": cluster.name,
            "PODS": "pods.json",
            "POLICY": "policy.yaml",
            "NODE": nodes[0],
            "WORKLOAD": f"{workload['kind'].lower()}/{workload['metadata'].get('name')}",
            "NAMESPACE": str(workload["metadata"].get("namespace")),
        }
        if question[0] == "tool":
            return question, _call_tool(
                question[1], cluster, {"NODE": nodes[0], "POD": json.dumps(pods[0]) if pods else "{}"}
            )
        return question, command(*(words.get(word, word) for word in question), cwd=folder, columns=columns)


_ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "pod_explain": {"manifest": "POD", "detail": "full"},
    "pending_explain": {"detail": "full"},
    "node_drain_preview": {"nodes": ["NODE"], "detail": "full"},
    "changes_simulate": {"cordon": ["NODE"], "detail": "full"},
    "scale_down_explain": {},
    "dump_check": {"detail": "full"},
    "nodes_list": {"detail": "full"},
    "failure_simulate": {"each": "node", "detail": "full"},
    "capacity_check": {"manifest": "POD"},
}


def _call_tool(name: str, cluster: Path, words: Mapping[str, str]) -> CommandResult:
    """Return the text of the answer of a tool."""
    arguments = {
        key: [words["NODE"]] if value == ["NODE"] else words.get(str(value), value)
        for key, value in _ARGUMENTS[name].items()
    }
    params = mcp.types.CallToolRequestParams(name=name, arguments=arguments)
    answers = _InThisProcess(KnownClusters(snapshots=(str(cluster),)), limit=60)
    try:
        result = _result_of(answers, params)
    finally:
        answers.end()
    (content,) = result.content
    assert isinstance(content, mcp.types.TextContent)
    return CommandResult(code=1, out=content.text, err="")


def _result_of(answers: Answers, params: mcp.types.CallToolRequestParams) -> mcp.types.CallToolResult:
    async def report(*_: object) -> None:
        """Report nothing."""

    context = cast("Context", SimpleNamespace(session=SimpleNamespace(report_progress=report)))
    return anyio.run(partial(answers.call_tool, context, params))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:  # noqa: PTH112 - only a check
        yield Path(name)


# --- printed commands

PATCHES = tuple(("why", "-f", "PODS", "-s", "CLUSTER", "--fix", str(number), "-o", "patch") for number in (1, 2, 3))
SCREENS = (
    ("why", "--all-pending", "-s", "CLUSTER", "-o", "wide"),
    ("why", "-f", "PODS", "-s", "CLUSTER"),
    ("drain", "NODE", "-s", "CLUSTER"),
    ("doctor", "-s", "CLUSTER", "-o", "wide"),
    ("simulate", "-s", "CLUSTER"),
    ("nodes", "-s", "CLUSTER", "-o", "wide"),
    ("survive", "--each", "node", "-s", "CLUSTER", "-o", "wide"),
    ("deschedule", "--policy", "POLICY", "-s", "CLUSTER"),
    ("descheduler-policy", "advise", "-s", "CLUSTER"),
    ("kueue", "-s", "CLUSTER"),
    ("drain", "--each", "-s", "CLUSTER"),
    ("scale-down", "-s", "CLUSTER"),
    ("fit", "PODS", "-s", "CLUSTER"),
    ("why", "WORKLOAD", "-n", "NAMESPACE", "-s", "CLUSTER", "-o", "wide"),
    ("why", "node/NODE", "-s", "CLUSTER", "-o", "wide"),
    ("why", "--all-pending", "-s", "CLUSTER"),
    ("simulate", "--drain", "NODE", "-s", "CLUSTER", "-o", "wide"),
    ("doctor", "-s", "CLUSTER", "-s", "pods.json"),
    *(("why", "-f", "PODS", "-s", "CLUSTER", "-o", form) for form in ("html", "markdown")),
    *(("why", "--all-pending", "-s", "CLUSTER", "-o", form) for form in ("html", "markdown")),
    *(
        (*question, "-s", "CLUSTER", "-o", "html")
        for question in (("doctor",), ("drain", "NODE"), ("nodes",), ("scale-down",))
    ),
    *(("tool", name) for name in _ARGUMENTS),
)
RECORDER = """#!/bin/sh
for word in "${0##*/}" "$@"; do printf '%s\\0' "$word" >> "$RECORDED/$$"; done
cat > /dev/null
"""
_A_COMMAND = re.compile(r"^\s*(?:\$ )?((?:kubectl|kschedx) .*)$", re.MULTILINE)
_AFTER_PROMPT = re.compile(r"^ *\$ ((?:.*\\\n)*.*(?:\n {14,}.*)*)$", re.MULTILINE)
"""Commands after a prompt, with their continuation lines."""
_IS_SHELL = re.compile("#|kubectl |kschedx ")
_WIDTHS = (20_000, 60, 100)
"""Widths of the window, which break long commands."""
_SCREEN = re.compile("<pre[^>]*>(.*?)</pre>", re.DOTALL)
_DATA = re.compile(r'<script type="application/json" id="page">(.*?)</script>', re.DOTALL)
EXPECTED_FILE = re.compile(r"missing(-[a-z0-9.+]+)?\.yaml|cluster\.yaml")
_INVALID_IN_NAMES = re.compile(r"[^-A-Za-z0-9_.:/=,@+<>]")
"""Characters that no valid name has; a manifest or a patch is one argument with any characters."""
_NO_NAMES = {word.format(name) for name in ("--all", "*", "~", "- a") for word in ("{}", "pod/{}", "deployment/{}")}
"""Hostile names that kubectl would take for options or patterns."""


def printed_commands(data: bytes) -> None:
    """A shell runs only kubectl and kschedx, with arguments that are names or JSON."""
    columns = _WIDTHS[len(data) % len(_WIDTHS)]
    question, answer_of_command = _answer_question(data, (*PATCHES, *SCREENS), columns=columns)
    if question in PATCHES:
        if answer_of_command.code in (0, 1):
            _run(answer_of_command.out)
        return
    text, is_wide = answer_of_command.out, columns == max(_WIDTHS) and question[0] != "tool"
    if question[-1] == "html" and text:
        for script in _copied_texts(json.loads(_DATA.findall(text)[0])):
            if _IS_SHELL.match(script):  # other copied texts are manifests
                _run(f"{script}\n")
        text, is_wide = html.unescape(_SCREEN.findall(text)[0]), False
    for script in (_A_COMMAND if is_wide else _AFTER_PROMPT).findall(text):
        _run(f"{script}\n")


def _copied_texts(value: Any) -> Iterator[str]:
    """Yield the texts that the buttons of a page copy."""
    match value:
        case dict():
            for key, inner in value.items():
                if key == "copy":
                    yield inner
                elif key == "commands":
                    yield from inner
                else:
                    yield from _copied_texts(inner)
        case list():
            for inner in value:
                yield from _copied_texts(inner)
        case _:
            pass


def _run(script: str) -> None:
    programs = _programs()
    with _folder() as folder, _folder() as record:
        process = subprocess.run(
            ["/bin/sh", "-ec", script],
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": programs, "RECORDED": str(record)},
            capture_output=True,
            check=False,
        )
        assert (process.returncode, process.stderr) == (0, b""), (script, process)
        assert not [item.name for item in folder.iterdir() if not EXPECTED_FILE.fullmatch(item.name)], script
        calls = [item.read_bytes().decode().split("\0")[:-1] for item in record.iterdir()]
    for program, *words in calls:
        assert program in ("kubectl", "kschedx"), script
        for word in words:
            assert word not in _NO_NAMES, script
            _, _, value = word.partition("=") if word.startswith("--patch=") else ("", "", word)
            if _INVALID_IN_NAMES.search(value) and Path(value).name not in FILES:
                assert isinstance(json.loads(value), list | dict), (script, word)


@cache
def _programs() -> str:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-programs-"))
    for name in ("kubectl", "kschedx"):
        (folder / name).write_text(RECORDER)
        (folder / name).chmod(0o755)
    (folder / "cat").symlink_to("/bin/cat")
    return str(folder)


def printed_command_seeds() -> Iterator[bytes]:
    for number, seed in enumerate(_seeds()):
        yield bytes([number % len(PATCHES + SCREENS)]) + seed


# --- views

_PLACES: tuple[tuple[str, ...], ...] = (
    ("why", "--all-pending", "-s", "CLUSTER"),
    ("why", "-f", "PODS", "-s", "CLUSTER"),
    ("simulate", "-s", "CLUSTER"),
    ("drain", "NODE", "-s", "CLUSTER"),
    ("doctor", "-s", "CLUSTER"),
    ("diff-profiles", "default", "binpack", "--all-pending", "-s", "CLUSTER"),
    ("nodes", "-s", "CLUSTER"),
    ("survive", "--each", "node", "-s", "CLUSTER"),
    ("deschedule", "--policy", "POLICY", "-s", "CLUSTER"),
    ("kueue", "-s", "CLUSTER"),
    ("drain", "--each", "-s", "CLUSTER"),
    ("scale-down", "-s", "CLUSTER"),
    ("fit", "PODS", "-s", "CLUSTER"),
)
VIEWS = (
    *((*question, "-o", form) for question in _PLACES for form in ("html", "markdown")),
    *((*question, "-o", "svg") for question in (*_PLACES[1:2], *_PLACES[6:8])),
    *((*question, "-o", form) for question in (*_PLACES[:2], _PLACES[5]) for form in ("sarif", "junit")),
    *((*question, "-o", form) for question in _PLACES[:2] for form in ("json", "yaml")),
    *((*question, "-o", "name") for question in (*_PLACES[:3], _PLACES[6], _PLACES[8], *_PLACES[11:])),
    *((*question, "-o", "wide") for question in (*_PLACES, ("why", "WORKLOAD", "-n", "NAMESPACE", "-s", "CLUSTER"))),
    *(("tool", name, "assistant") for name in _ARGUMENTS),
)
FORMS = tuple(sorted({question[-1] for question in VIEWS}))
"""Each form is a fuzz target."""
_WORKFLOW_COMMANDS = re.compile(
    r"##(?:\[|vso\[|teamcity\[)"
    r"|^\s*::(?:set-|add-|save-|stop-|remove-|internal-|error|warning|notice|debug|group|endgroup|echo)",
    re.MULTILINE | re.IGNORECASE,
)
"""Workflow commands in a log of GitHub, Azure Pipelines, and TeamCity."""


def views(form: str) -> Callable[[bytes], None]:
    """Return a target: names are text and add no element, link, attribute, row, check, or workflow command."""
    questions = tuple(question for question in VIEWS if question[-1] == form)

    def run(data: bytes) -> None:
        question, answer_of_command = _answer_question(data, questions)
        details = (question, answer_of_command.code, answer_of_command.err)
        assert answer_of_command.code in (0, 1, 2, 3), details
        assert "Traceback" not in answer_of_command.err, details
        assert not any(map(is_hidden, (answer_of_command.out + answer_of_command.err).replace("\n", ""))), details
        assert not _WORKFLOW_COMMANDS.search(answer_of_command.err), details
        if not answer_of_command.out:
            return
        assert not _WORKFLOW_COMMANDS.search(answer_of_command.out), (
            details,
            _WORKFLOW_COMMANDS.findall(answer_of_command.out),
        )
        if form in _CHECKS:
            _CHECKS[form](answer_of_command.out)

    run.__name__ = f"views_{form}"
    return run


class _Elements(html.parser.HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(key, value or "") for key, value in attrs]


def _is_harmless(elements: _Elements) -> bool:
    return not any(
        key.startswith("on")
        or key in ("src", "srcdoc", "action", "formaction")
        or (key == "href" and not value.startswith(("#", "https://")))
        for key, value in elements.attributes
    )


def _check_html(text: str) -> None:
    elements = _Elements(text)
    assert elements.tags.count("script") <= 2, elements.tags
    unexpected = {"img", "iframe", "object", "embed", "form", "base", "link"} & set(elements.tags)
    assert not unexpected, unexpected
    assert _is_harmless(elements), elements.attributes


def _check_svg(text: str) -> None:
    root = ElementTree.fromstring(text)
    for element in root.iter():
        assert element.tag.rpartition("}")[2] in _SVG, element.tag
        assert not [key for key in element.attrib if key.startswith("on") or key.endswith("href")], element.attrib


_SVG = {"svg", "rect", "text", "tspan", "g", "title", "desc", "style", "path", "line", "circle", "defs", "clipPath"}
_MARKDOWN = {
    "h1", "h2", "h3", "h4", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "code", "pre", "strong",
    "em", "br", "hr", "details", "summary", "sub", "sup", "s", "blockquote",
}  # fmt: skip


def _check_markdown(text: str) -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text)
    elements = _Elements(rendered)
    unexpected = set(elements.tags) - _MARKDOWN
    links = {value for key, value in elements.attributes if key == "href"}
    if unexpected == {"a"}:
        assert all(link.startswith("https://") and "kschedx" in link for link in links), links
    else:
        assert not unexpected, unexpected
    assert elements.tags.count("details") == text.count("<details>"), elements.tags
    assert _is_harmless(elements), elements.attributes


def _check_sarif(text: str) -> None:
    document = json.loads(text)
    assert document["version"] == "2.1.0"
    for result in document["runs"][0]["results"]:
        assert set(result) <= {"ruleId", "level", "message", "locations", "partialFingerprints", "properties"}


def _check_junit(text: str) -> None:
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuite"
    assert {item.tag for item in root.iter()} <= {"testsuite", "testcase", "failure", "error"}
    assert int(root.attrib["tests"]) == len(root)


def _check_yaml(text: str) -> None:
    import yaml

    list(yaml.load_all(text, Loader=yaml.CSafeLoader))


_CHECKS: dict[str, Callable[[str], object]] = {
    "html": _check_html,
    "svg": _check_svg,
    "markdown": _check_markdown,
    "sarif": _check_sarif,
    "junit": _check_junit,
    "json": json.loads,
    "yaml": _check_yaml,
}


def view_seeds(form: str) -> Iterator[bytes]:
    for number in range(2):
        for question in range(sum(question[-1] == form for question in VIEWS)):
            random = Random(f"{number} {form} {question}")
            yield bytes([question, random.randrange(256)]) + _hostile_words(random)


# --- calls of tools

SECRET = "open sesame"
DECOYS = ("deploy/web", "etc/passwd", "pod/secret.yaml", "secret", "-", "n1")
_LARGEST = BOUNDS[Detail.FULL]


class _InThisProcess(Answers):
    """Answers in this process instead of a worker."""

    def _ask(self, question: ToolCall, see: Callable[[ProgressStep], None]) -> CapturedAnswer:
        with contextlib.chdir(self._folder.name):
            return capture(partial(answer, question))


@cache
def _server_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-server-"))
    for decoy in DECOYS:
        (folder / decoy).parent.mkdir(parents=True, exist_ok=True)
        (folder / decoy).write_text(f"kind: Pod\napiVersion: v1\nmetadata: {{name: {SECRET}}}\nspec: {{}}\n")
    return folder


@cache
def _answers() -> Answers:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-clusters-"))
    (folder / "one.json").write_bytes(hostile.as_json(_small_stories()[0]))
    (folder / "two.json").write_bytes(hostile.as_json(_small_stories()[5]))
    sys.addaudithook(_watch)
    return _InThisProcess(KnownClusters(snapshots=(str(folder / "one.json"), str(folder / "two.json"))), limit=60)


_opened: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | Path):
        _opened.append(str(arguments[0]))
    elif event in ("subprocess.Popen", "os.system", "os.exec", "socket.connect"):
        _opened.append(f"{event} {arguments[:2]}")


def requests(data: bytes) -> None:
    """A call of a tool has a bounded answer or an error, opens no file of the server, and runs no program."""
    try:
        params = mcp.types.CallToolRequestParams.model_validate_json(data)
    except pydantic.ValidationError:
        return
    answers, folder = _answers(), str(_server_folder())

    _opened.clear()
    with contextlib.chdir(folder):
        result = _result_of(answers, params)
    opened = [path for path in _opened if path.startswith((f"{folder}/", "subprocess", "os.", "socket"))]
    assert not opened, (data, opened)
    document = result.model_dump_json()
    assert SECRET not in document or SECRET in data.decode(errors="replace"), data
    assert "Traceback" not in document, data
    (content,) = result.content
    assert isinstance(content, mcp.types.TextContent)
    assert len(content.text) <= _LARGEST.text + 200, len(content.text)
    assert not any(map(is_hidden, content.text.replace("\n", ""))), content.text
    assert len(document) <= 2 * _LARGEST.whole, len(document)


def request_seeds() -> Iterator[bytes]:
    pod = json.dumps({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}})
    values: dict[str, tuple[Any, ...]] = {
        "target": ("pod/web", "deploy/web", "etc/passwd", "--snapshot=/etc/passwd"),
        "manifest": (pod, "!!python/object:os.system x", "a: &a [*a]"),
        "namespace": ("default", "-f/etc/passwd"),
        "nodes": (["n1"], ["--snapshot=x", "-"], []),
        "text": ("insufficient-resource", "0/4 nodes are available: 4 Insufficient cpu.", "--help", ""),
        "before": ("default", "/etc/passwd"),
        "after": ("binpack",),
        "replicas": (1, 1_000_000, -1),
        "scale": (["deploy/web=3"],),
        "add_nodes": (["3=n1", "99999=n1"],),
        "detail": ("full", "nodes"),
        "snapshot": ("two.json", "/etc/passwd", "../.."),
    }
    for tool in TOOLS:
        yield json.dumps({"name": tool.name, "arguments": dict.fromkeys(tool.required, "x")}).encode()
        for key, choices in values.items():
            if key in tool.properties or key in ("detail", "snapshot"):
                for choice in choices:
                    arguments = {**{item: values.get(item, ("x",))[0] for item in tool.required}, key: choice}
                    yield json.dumps({"name": tool.name, "arguments": arguments}).encode()
