"""Names as a hostile cluster spells them, in everything that is printed: commands, pages, reports, tools' answers."""

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

from kschedx.cli.mcp.server import BOUNDS, Answers, Context, Detail, KnownClusters
from kschedx.cli.mcp.tools import TOOLS, ToolCall, answer
from kschedx.cli.worker import CapturedAnswer, capture
from kschedx.kube.escaping import is_hidden
from kschedx.progress import ProgressStep
from tests.command import Ran
from tests.command import kschedx as command
from tests.fuzz import hostile
from tests.fuzz.network import BETWEEN

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: RemoveDuplicates}, {name: RemovePodsViolatingNodeTaints}]
  plugins: {balance: {enabled: [RemoveDuplicates]}, deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""

# --- a cluster whose names are others

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


def renamed(data: bytes) -> list[Any]:
    """The objects of a story, some of whose words are others everywhere.

    A byte chooses the story; then come the number of a word and what it is now, again and again.
    """
    objects = _small_stories()[data[0] % len(_small_stories())] if data else _small_stories()[0]
    known = _words_of(json.dumps(objects))
    new: dict[str, str] = {}
    for piece in data[1:].split(BETWEEN):
        if len(piece) > 1:
            number = int.from_bytes(piece[:2], "big")
            new[known[number % len(known)]] = piece[2:].decode(errors="replace")
    return [_with(item, new, is_top=True) for item in objects]


_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "allocatable", "requests")


@cache
def _small_stories() -> tuple[list[Any], ...]:
    return tuple(story for story in hostile.stories() if len(json.dumps(story)) < 40_000)


@cache
def _words_of(text: str) -> list[str]:
    """What objects are called and what they say, and the keys of their maps of names."""
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


def _with(value: Any, new: dict[str, str], *, is_top: bool = False) -> Any:
    match value:
        case dict():
            return {
                new.get(key, key): inner if is_top and key in ("kind", "apiVersion") else _with(inner, new)
                for key, inner in value.items()
            }
        case list():
            return [_with(inner, new) for inner in value]
        case str():
            return new.get(value, value)
        case _:
            return copy.copy(value)


def _seeds() -> Iterator[bytes]:
    random = Random(28)
    for story in range(len(_small_stories())):
        yield bytes([story]) + _spelled(random)


def _spelled(random: Random) -> bytes:
    number = random.choice((2, 4, 8))
    return BETWEEN.join(random.randbytes(2) + random.choice(HOSTILE).encode() for _ in range(number))


FILES = (
    "cluster.json", "--all", "a b.json", "$(touch x).json", "a;touch x;.json", "a\ntouch x.json", "-n", "'",
    '"', "*.json",
    "::error::x", "<img src=x>", "\x1b[2J.json", "https:", "--context=x.json",
)  # fmt: skip
"""What a dump's file is called."""
_WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob", "JobSet", "Workload")


def _asked(data: bytes, questions: tuple[tuple[str, ...], ...], columns: int = 100) -> tuple[tuple[str, ...], Ran]:
    """A question about such a cluster, and its answer; PODS is a file of its pending pods, NODE its first node.

    A question that begins with `tool` is one of an assistant.
    """
    asked = questions[data[0] % len(questions)] if data else questions[0]
    objects = renamed(data[1:])
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
        if asked[0] == "tool":
            return asked, _called(asked[1], cluster, {"NODE": nodes[0], "POD": json.dumps(pods[0]) if pods else "{}"})
        return asked, command(*(words.get(word, word) for word in asked), cwd=folder, columns=columns)


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


def _called(name: str, cluster: Path, words: Mapping[str, str]) -> Ran:
    """What an assistant reads: the text, then the document."""
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
    return Ran(code=1, out=content.text, err="")


def _result_of(answers: Answers, params: mcp.types.CallToolRequestParams) -> mcp.types.CallToolResult:
    async def report(*_: object) -> None:
        """Nobody waits."""

    context = cast("Context", SimpleNamespace(session=SimpleNamespace(report_progress=report)))
    return anyio.run(partial(answers.call_tool, context, params))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:  # noqa: PTH112 - a question, not a path to go on from
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
        (*asked, "-s", "CLUSTER", "-o", "html")
        for asked in (("doctor",), ("drain", "NODE"), ("nodes",), ("scale-down",))
    ),
    *(("tool", name) for name in _ARGUMENTS),
)
RECORDER = """#!/bin/sh
for word in "${0##*/}" "$@"; do printf '%s\\0' "$word" >> "$RECORDED/$$"; done
cat > /dev/null
"""
_A_COMMAND = re.compile(r"^\s*(?:\$ )?((?:kubectl|kschedx) .*)$", re.MULTILINE)
_MARKED = re.compile(r"^ *\$ ((?:.*\\\n)*.*(?:\n {14,}.*)*)$", re.MULTILINE)
"""After a prompt, with the lines in which it goes on."""
_IS_SHELL = re.compile("#|kubectl |kschedx ")
_WIDTHS = (20_000, 60, 100)
"""Of the window, in which long commands are broken."""
_SCREEN = re.compile("<pre[^>]*>(.*?)</pre>", re.DOTALL)
_DATA = re.compile(r'<script type="application/json" id="page">(.*?)</script>', re.DOTALL)
MEANT_FILES = ("missing.yaml", "cluster.yaml")
_REFUSED = re.compile(r"[^-A-Za-z0-9_.:/=,@+<>]")
"""What no name that Kubernetes accepts has; a manifest or a patch is one argument that may have anything."""
_NO_NAMES = {word.format(name) for name in ("--all", "*", "~", "- a") for word in ("{}", "pod/{}", "deployment/{}")}
"""Hostile names that kubectl would take for options or patterns."""


def printed_commands(data: bytes) -> None:
    """A shell runs what is meant: kubectl and kschedx with arguments that are names or JSON, and nothing else."""
    columns = _WIDTHS[len(data) % len(_WIDTHS)]
    asked, ran = _asked(data, (*PATCHES, *SCREENS), columns=columns)
    if asked in PATCHES:
        if ran.code in (0, 1):
            _run(ran.out)
        return
    text, is_wide = ran.out, columns == max(_WIDTHS) and asked[0] != "tool"
    if asked[-1] == "html" and text:
        for script in _to_copy(json.loads(_DATA.findall(text)[0])):
            if _IS_SHELL.match(script):  # what else is copied is a manifest
                _run(f"{script}\n")
        text, is_wide = html.unescape(_SCREEN.findall(text)[0]), False
    for script in (_A_COMMAND if is_wide else _MARKED).findall(text):
        _run(f"{script}\n")


def _to_copy(value: Any) -> Iterator[str]:
    """What the buttons of a page copy."""
    match value:
        case dict():
            for key, inner in value.items():
                if key == "copy":
                    yield inner
                elif key == "commands":
                    yield from inner
                else:
                    yield from _to_copy(inner)
        case list():
            for inner in value:
                yield from _to_copy(inner)
        case _:
            pass


def _run(script: str) -> None:
    programs = _programs()
    with _folder() as folder, _folder() as record:
        done = subprocess.run(
            ["/bin/sh", "-ec", script],
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": programs, "RECORDED": str(record)},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), (script, done)
        assert not [item.name for item in folder.iterdir() if item.name not in MEANT_FILES], script
        calls = [item.read_bytes().decode().split("\0")[:-1] for item in record.iterdir()]
    for program, *words in calls:
        assert program in ("kubectl", "kschedx"), script
        for word in words:
            assert word not in _NO_NAMES, script
            _, _, value = word.partition("=") if word.startswith("--patch=") else ("", "", word)
            if _REFUSED.search(value) and Path(value).name not in FILES:
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
    *((*asked, "-o", form) for asked in _PLACES for form in ("html", "markdown")),
    *((*asked, "-o", "svg") for asked in (*_PLACES[1:2], *_PLACES[6:8])),
    *((*asked, "-o", form) for asked in (*_PLACES[:2], _PLACES[5]) for form in ("sarif", "junit")),
    *((*asked, "-o", form) for asked in _PLACES[:2] for form in ("json", "yaml")),
    *((*asked, "-o", "name") for asked in (*_PLACES[:3], _PLACES[6], _PLACES[8], *_PLACES[11:])),
    *((*asked, "-o", "wide") for asked in (*_PLACES, ("why", "WORKLOAD", "-n", "NAMESPACE", "-s", "CLUSTER"))),
    *(("tool", name, "assistant") for name in _ARGUMENTS),
)
FORMS = tuple(sorted({asked[-1] for asked in VIEWS}))
"""Each is fuzzed as a target of its own."""
_OBEYED = re.compile(
    r"##(?:\[|vso\[|teamcity\[)"
    r"|^\s*::(?:set-|add-|save-|stop-|remove-|internal-|error|warning|notice|debug|group|endgroup|echo)",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines of a log that GitHub, Azure Pipelines and TeamCity obey."""


def views(form: str) -> Callable[[bytes], None]:
    """A target: names are text, and no element, link, attribute, row, check or command of a CI system comes of them."""
    questions = tuple(asked for asked in VIEWS if asked[-1] == form)

    def run(data: bytes) -> None:
        asked, ran = _asked(data, questions)
        told = (asked, ran.code, ran.err)
        assert ran.code in (0, 1, 2, 3), told
        assert "Traceback" not in ran.err, told
        assert not any(map(is_hidden, (ran.out + ran.err).replace("\n", ""))), told
        assert not _OBEYED.search(ran.err), told
        if not ran.out:
            return
        assert not _OBEYED.search(ran.out), (told, _OBEYED.findall(ran.out))
        if form in _CHECKS:
            _CHECKS[form](ran.out)

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
    strange = {"img", "iframe", "object", "embed", "form", "base", "link"} & set(elements.tags)
    assert not strange, strange
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
    strange = set(elements.tags) - _MARKDOWN
    links = {value for key, value in elements.attributes if key == "href"}
    if strange == {"a"}:
        assert all(link.startswith("https://") and "kschedx" in link for link in links), links
    else:
        assert not strange, strange
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
        for question in range(sum(asked[-1] == form for asked in VIEWS)):
            random = Random(f"{number} {form} {question}")
            yield bytes([question, random.randrange(256)]) + _spelled(random)


# --- requests of assistants

SECRET = "open sesame"
DECOYS = ("deploy/web", "etc/passwd", "pod/secret.yaml", "secret", "-", "n1")
_LARGEST = BOUNDS[Detail.FULL]


class _InThisProcess(Answers):
    """Answers without a process of its own."""

    def _ask(self, asked: ToolCall, see: Callable[[ProgressStep], None]) -> CapturedAnswer:
        with contextlib.chdir(self._folder.name):
            return capture(partial(answer, asked))


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
    """A call of a tool: an answer within its bounds or an error; no file of the server's is opened, nothing is run."""
    try:
        params = mcp.types.CallToolRequestParams.model_validate_json(data)
    except pydantic.ValidationError:
        return
    answers, folder = _answers(), str(_server_folder())

    _opened.clear()
    with contextlib.chdir(folder):
        result = _result_of(answers, params)
    strange = [path for path in _opened if path.startswith((f"{folder}/", "subprocess", "os.", "socket"))]
    assert not strange, (data, strange)
    written = result.model_dump_json()
    assert SECRET not in written or SECRET in data.decode(errors="replace"), data
    assert "Traceback" not in written, data
    (content,) = result.content
    assert isinstance(content, mcp.types.TextContent)
    assert len(content.text) <= _LARGEST.text + 200, len(content.text)
    assert not any(map(is_hidden, content.text.replace("\n", ""))), content.text
    assert len(written) <= 2 * _LARGEST.whole, len(written)


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
