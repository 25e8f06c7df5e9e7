"""Rules for every command. Each command is listed here with its files; a new one must be added."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import typer

from kschedx.cli.app import program
from kschedx.kube.escaping import is_hidden
from tests.builders import Manifest, at, node
from tests.cli.manifests import NODE, POD, changed, configuration, small_pod, write
from tests.command import ROOT, CommandResult, kschedx
from tests.fork_server import fork_server

COMMAND = str(Path(sys.executable).parent / "kschedx")
LINES: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("--help",),
    ("why", "pod/web-0", "-n", "shop", "-s", "CLUSTER"),
    ("why", "pod/web-0", "-n", "shop", "-s", "CLUSTER", "-o", "json"),
    ("why", "pod/web-0", "-n", "shop", "-s", "CLUSTER", "-o", "html"),
    ("why", "pod/web-0", "-n", "shop", "-s", "CLUSTER", "--config", "CONFIG"),
    ("why", "pod/web-0", "-n", "shop", "-s", "CLUSTER", "--try", "CHANGE"),
    ("why", "NEW", "-s", "CLUSTER"),
    ("why", "node/node-01", "-s", "CLUSTER"),
    ("why", "--all-pending", "-s", "CLUSTER"),
    ("why", "--all-pending", "-s", "CLUSTER", "-o", "yaml"),
    ("drain", "node-01", "-s", "CLUSTER"),
    ("survive", "--each", "node", "-s", "CLUSTER"),
    ("fit", "NEW", "-s", "CLUSTER"),
    ("simulate", "-s", "CLUSTER"),
    ("simulate", "-s", "CLUSTER", "--changes", "CHANGES", "-o", "json"),
    ("scale-down", "-s", "GROWING"),
    ("deschedule", "--policy", "DESCHEDULER", "-s", "CLUSTER"),
    ("descheduler-policy", "advise", "-s", "CLUSTER"),
    ("profiles", "tune", "--candidates", "4", "-s", "CLUSTER"),
    ("nodes", "-s", "CLUSTER"),
    ("kueue", "-s", "CLUSTER"),
    ("kueue", "-s", "CLUSTER", "-o", "html"),
    ("diff-profiles", "default", "CONFIG", "-s", "CLUSTER"),
    ("snapshot", "-s", "CLUSTER", "-o", "-"),
    ("snapshot", "-s", "CLUSTER", "-o", "-", "--anonymize"),
    ("doctor", "-s", "CLUSTER"),
    ("doctor", "-s", "CLUSTER", "-o", "json"),
    ("reason",),
    ("reason", "untolerated-taint"),
    ("plugins",),
    ("fleet", "-s", "LIST", "why", "--all-pending"),
    ("instance-types", "TYPES"),
    ("merge", "PART"),
    ("mcp", "-s", "CLUSTER"),
    ("integrations",),
    ("schema",),
    ("man",),
    ("completion", "bash"),
    ("profiles", "list"),
    ("profiles", "show", "default"),
    ("profiles", "check", "CONFIG"),
)
"""In capitals: files."""


def named(line: tuple[str, ...]) -> str:
    return " ".join(line)


each = pytest.mark.parametrize("line", LINES, ids=named)
OF_FILES = [
    pytest.param(line, word, id=f"{named(line)}-{word}", marks=[pytest.mark.long] * (line[0] == "fleet"))
    for line in LINES
    for word in line
    if word.isupper()
]
"""The lines with each of their files. `fleet` starts a process for each cluster, and has tests of its own."""


def objects(name: str = "node-01") -> list[Manifest]:
    big = changed(small_pod("big", "99", namespace="shop"), "metadata.labels", {"a": name})
    return [changed(NODE, "metadata.name", name), node("other", labels={"a": name}), POD, big]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return written(tmp_path_factory.mktemp("files"), objects())


def written(folder: Path, cluster: list[Manifest]) -> dict[str, Path]:
    entries = {
        "CLUSTER": write(folder, *cluster),
        "CONFIG": write(folder, configuration({"schedulerName": "default-scheduler"}), name="config.yaml"),
        "NEW": write(folder, small_pod("new"), name="new.yaml"),
        "CHANGE": write(folder, {"spec": {"priority": 0}}, name="change.yaml"),
        "CHANGES": folder / "changes.yaml",
        "DESCHEDULER": ROOT / "fixtures" / "descheduler-fight" / "policy.yaml",
        "GROWING": ROOT / "fixtures" / "autoscaler-grows" / "cluster.yaml",
        "TYPES": folder / "types.json",
        "LIST": folder / "clusters.list",
        "PART": folder / "part.json",
    }
    entries["CHANGES"].write_text(json.dumps([{"drain": at(cluster[0], "metadata.name")}]))
    entry = {"name": "m6i.large", "capacity": {"cpu": "2", "memory": "7577Mi"}}
    entries["TYPES"].write_text(
        json.dumps({"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": [entry]})
    )
    entries["LIST"].write_text(f"{entries['CLUSTER']}\n")
    part = kschedx("why", "--all-pending", "-s", entries["CLUSTER"], "-o", "json", "--shard", "1/1")
    entries["PART"].write_text(part.out)
    return entries


def words(line: tuple[str, ...], files: dict[str, Path]) -> list[str]:
    return [str(files.get(word, word)) for word in line]


def run_command(line: tuple[str, ...], files: dict[str, Path]) -> CommandResult:
    return kschedx(*words(line, files))


def test_every_command_is_here() -> None:
    group = typer.main.get_command(program())
    names = set(getattr(group, "commands", {}))
    assert {line[0] for line in LINES} == names | {"--version", "--help"}


@each
def test_every_command_answers(line: tuple[str, ...], files: dict[str, Path]) -> None:
    result = run_command(line, files)
    assert result.code in (0, 1), result.err
    assert result.out or line[0] == "mcp"


# --- output


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with fork_server(tmp_path_factory.mktemp("bin")) as script:
        yield script


def process(
    command: str | Path, line: tuple[str, ...], files: dict[str, Path], stdout: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *words(line, files)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


LIKE_WHY = {"why", "drain", "survive", "fit", "simulate", "scale-down", "deschedule", "nodes", "diff-profiles"}
"""Commands whose screens are printed by the same function: one represents the others."""
PRINTING = {"screen" if line[0] in LIKE_WHY and "-o" not in line else named(line): line for line in LINES}
TELLING = [pytest.param(line, id=named(line)) for line in PRINTING.values() if line[0] != "mcp"]
"""The MCP server prints nothing without requests."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("line", TELLING)
def test_output_that_is_full_or_has_no_reader(line: tuple[str, ...], files: dict[str, Path], forked: Path) -> None:
    command = COMMAND if line == LINES[0] else forked
    with ExitStack() as stack:
        full = stack.enter_context(Path("/dev/full").open("wb"))
        result = process(command, line, files, full.fileno())
        last = result.stderr.splitlines()[-1]
        assert (result.returncode, last) == (2, "error: write: no space left on device")
        assert "Traceback" not in result.stderr
        read, write_to = os.pipe()
        os.close(read)
        result = process(command, line, files, write_to)
        os.close(write_to)
    whole = run_command(line, files)
    assert result.returncode == whole.code
    assert result.stderr == whole.err


# --- what is in a file

HOSTILE: dict[str, bytes] = {
    "bytes": b"\xff\xfe\x00{",
    "deep": b"[" * 5000,
    "deep maps": b'{"a":' * 5000,
    "nothing": b"",
    "a text": b"hello",
    "a number": b"5",
    "half": b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"na',
    "wrong types": b'{"apiVersion": [], "kind": {}, "metadata": 5, "items": "x", "shard": []}',
    "a list": b"[1, null, {}]",
    "a date": b"a: 2026-99-99\n",
    "long": b'{"a": ' + b"9" * 6000 + b"}",
}
FEW = ("half", "wrong types")
"""Commands that read their file by the same function as an earlier one."""
FIRST = {word: line for line in reversed(LINES) for word in line if word.isupper()}
READS_BY_ITSELF = {"doctor", "fleet", "mcp", "merge", "snapshot"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(("line", "word"), OF_FILES)
def test_any_content_of_a_file_is_answered_or_refused(
    line: tuple[str, ...], word: str, files: dict[str, Path], tmp_path: Path
) -> None:
    for name in HOSTILE if FIRST[word] == line or line[0] in READS_BY_ITSELF else FEW:
        content = HOSTILE[name]
        path = tmp_path / f"hostile{files[word].suffix}"
        path.write_bytes(content)
        result = run_command(line, files | {word: path})
        assert_refused(result, name)


@pytest.mark.parametrize(("line", "word"), OF_FILES)
def test_a_path_that_does_not_exist(line: tuple[str, ...], word: str, files: dict[str, Path], tmp_path: Path) -> None:
    loop, empty = tmp_path / "loop.yaml", tmp_path / "empty.yaml"
    loop.symlink_to(loop)
    empty.mkdir()
    for path in (loop, empty, tmp_path / "nowhere.yaml", tmp_path / ("x" * 300), Path("\udcff")):
        assert_refused(run_command(line, files | {word: path}), str(path))


def assert_refused(value: CommandResult, expected: str) -> None:
    """Check that the command refuses its input in lines or answers in part, without an internal error."""
    assert value.code in (0, 1, 2, 3), (expected, value)
    assert "internal error" not in value.err, (expected, value.err)
    if value.code == 2:
        assert value.err, expected
        assert all(line.startswith(("error: ", "note: ", "warning: ", "See '")) for line in value.err.splitlines()), (
            expected,
            value.err,
        )


@pytest.mark.parametrize(("line", "word"), OF_FILES)
def test_a_variable_of_the_shell_that_is_not_set(line: tuple[str, ...], word: str, files: dict[str, Path]) -> None:
    result = kschedx(*("" if item == word else str(files.get(item, item)) for item in line))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: "), result.err


# --- names

HIDDEN = "a\u202eb\u200bc\u2066d\ufeffe\x7ff\x1b[31mg\U000e0001\u2028h"


def hidden(text: str) -> Iterator[str]:
    return (character for character in text if character != "\n" and is_hidden(character))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "line",
    [pytest.param(line, id=named(line)) for line in LINES if any(word.isupper() for word in line)],
)
def test_control_characters_in_names_are_escaped(line: tuple[str, ...], tmp_path: Path) -> None:
    files = written(tmp_path, objects(HIDDEN))
    result = kschedx(*(word.replace("node-01", HIDDEN) for word in words(line, files)))
    assert not list(hidden(result.out + result.err)), (result.out, result.err)


# --- how much is answered about a large cluster

SCREEN, PAGE, COMMENT, DOCUMENT = 4_000, 75_000, 65_536, 1_000_000
"""Bytes, of 500 nodes: docs/pages/concepts/performance.md has 10 MB for the documents about 5,000. A comment is one of
GitHub's."""
BOUNDED: tuple[tuple[tuple[str, ...], int], ...] = (
    (("why", "NEW", "-s", "LARGE"), SCREEN),
    (("why", "NEW", "-s", "LARGE", "-o", "json"), DOCUMENT),
    (("why", "NEW", "-s", "LARGE", "-o", "html"), DOCUMENT),
    (("why", "NEW", "-s", "LARGE", "-o", "markdown"), SCREEN),
    (("why", "NEW", "-s", "LARGE", "-o", "sarif"), SCREEN),
    (("why", "--all-pending", "-s", "LARGE"), SCREEN),
    (("fit", "NEW", "--replicas", "1000000", "-s", "LARGE"), SCREEN),
    (("simulate", "--scale", "deploy/web=4000", "-s", "LARGE"), SCREEN),
    (("simulate", "-s", "LARGE", "-o", "json"), DOCUMENT),
    (("drain", "node-001", "-s", "LARGE"), SCREEN),
    (("drain", "node-001", "-s", "LARGE", "-o", "html"), DOCUMENT),
    (("survive", "node-001", "-s", "LARGE"), SCREEN),
    (("nodes", "-s", "LARGE"), SCREEN),
    (("doctor", "-s", "LARGE"), SCREEN),
    (("doctor", "-s", "LARGE", "-o", "html"), PAGE),
    *(
        ((*asked, "-s", "LARGE", "-o", "markdown"), COMMENT)
        for asked in (
            ("why", "--all-pending"),
            ("fit", "NEW", "--replicas", "1000000"),
            ("simulate",),
            ("drain", "node-001", "node-002"),
            ("survive", "node-001", "node-002"),
            ("deschedule", "--policy", "DESCHEDULER"),
            ("diff-profiles", "default", "binpack"),
            ("nodes",),
            ("doctor",),
        )
    ),
)
NODES = 500


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("large")
    nodes = [changed(NODE, "metadata.name", f"node-{number:03}") for number in range(NODES)]
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": at(small_pod("web", "1"), "spec")}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    running = [
        changed(small_pod(f"web-{number}", "100m"), "spec.nodeName", f"node-{number % NODES:03}")
        for number in range(4 * NODES)
    ]
    waits = small_pod("waits", "99")
    return {
        "LARGE": write(folder, {"apiVersion": "v1", "kind": "List", "items": [*nodes, *running, waits, web]}),
        "NEW": write(folder, small_pod("new", "99"), name="new.yaml"),
        "DESCHEDULER": ROOT / "fixtures" / "descheduler-fight" / "policy.yaml",
    }


@pytest.mark.sample(9)
@pytest.mark.parametrize(("line", "most"), BOUNDED, ids=lambda value: named(value) if isinstance(value, tuple) else "")
def test_answers_have_a_maximum_size(line: tuple[str, ...], most: int, large: dict[str, Path]) -> None:
    result = run_command(line, large)
    assert result.code in (0, 1), result.err
    assert 0 < len(result.out.encode()) <= most
