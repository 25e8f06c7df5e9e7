"""Output that is full, closed, or without a reader; signals; and unset variables of a shell."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kschedx.render.manifests import to_json
from kschedx.sources import compression as output
from tests.cli.manifests import NODE, POD, changed, write
from tests.command import ROOT, kschedx

COMMAND = str(Path(sys.executable).parent / "kschedx")
FULL = "error: write: no space left on device\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write(tmp_path, NODE, POD)


def start(
    *arguments: str | Path, stdout: int | None = subprocess.PIPE, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, *map(str, arguments)]
    environment = os.environ | dict(env or {})
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def commands(cluster: Path) -> dict[str, list[str | Path]]:
    return {
        "version": ["--version"],
        "help": ["why", "--help"],
        "screen": ["why", "pod/web-0", "-n", "shop", "-s", cluster],
        "json": ["why", "pod/web-0", "-n", "shop", "-s", cluster, "-o", "json"],
        "snapshot": ["snapshot", "-s", cluster, "-o", "-"],
        "doctor": ["doctor", "-s", cluster],
        "reason": ["reason"],
        "profiles": ["profiles", "list"],
        "completion": ["completion", "bash"],
    }


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name", ["version", "help", "screen", "json", "snapshot", "doctor", "reason", "profiles", "completion"]
)
def test_a_full_disk_is_a_one_line_error(name: str, cluster: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = start(*commands(cluster)[name], stdout=full.fileno())
    assert (result.returncode, result.stderr) == (2, FULL)


@pytest.mark.parametrize("name", ["version", "screen"])
def test_a_closed_output_is_a_one_line_error(name: str, cluster: Path) -> None:
    words = " ".join(f"'{word}'" for word in (COMMAND, *commands(cluster)[name]))
    result = subprocess.run(["sh", "-c", f"{words} >&-"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "error: write: bad file descriptor\n")


@pytest.mark.sample(3)
@pytest.mark.parametrize(("target", "code"), [("pod/web-0", 0), ("pod/huge", 1)])
@pytest.mark.parametrize("form", ["wide", "json"])
def test_a_closed_pipe_does_not_change_the_exit_code(target: str, code: int, form: str, tmp_path: Path) -> None:
    huge = changed(POD, "metadata.name", "huge")
    huge = changed(huge, "spec.containers", [{"name": "c", "resources": {"requests": {"cpu": "4000"}}}])
    cluster = write(tmp_path, NODE, POD, huge)
    read, written = os.pipe()
    os.close(read)
    result = start("why", target, "-n", "shop", "-s", cluster, "-o", form, stdout=written)
    os.close(written)
    assert (result.returncode, result.stderr) == (code, "")


def test_errors_without_a_reader_keep_their_exit_code(cluster: Path) -> None:
    for to in ("2>/dev/full", "2>&-"):
        words = f"'{COMMAND}' why nope -s '{cluster}' {to}"
        assert subprocess.run(["sh", "-c", words], capture_output=True, check=False).returncode == 2


# --- signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_quietly(number: signal.Signals, tmp_path: Path) -> None:
    pipe = tmp_path / "cluster.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [COMMAND, "snapshot", "-s", pipe, "-o", tmp_path / "to.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )
    with pipe.open("wb") as writer:  # it has begun to read
        writer.write(b'{"items":[')
        writer.flush()
        time.sleep(0.2)
        process.send_signal(number)
        assert process.communicate(timeout=20) == (b"", b"")
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


LOSING = """
import os, signal, sys, time, weakref
from kschedx.cli import streams

def lose(_):
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(0)

try:
    with streams.ending_in_order():
        thing = set()
        watched = weakref.ref(thing, lose)
        del thing
        time.sleep(20)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_python_loses_is_sent_again(number: signal.Signals) -> None:
    """Python ignores exceptions in the callback of a weak reference."""
    done = subprocess.run(
        [sys.executable, "-c", LOSING, str(int(number))],
        cwd=ROOT,
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )
    assert (done.returncode, done.stderr) == (128 + number, b"")


@pytest.mark.parametrize("after", [0.03, 0.06, 0.1, 0.2])
def test_an_early_interrupt_is_quiet(after: float, cluster: Path) -> None:
    """Except while Python itself starts, before kschedx runs."""
    begin = "import kschedx.cli as c; print('begun', flush=True); c.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.argv[0] = 'kschedx'; {begin}", "why", "--all-pending", "-s", cluster],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == b""


def test_workers_end_quietly_with_their_parent() -> None:
    code = (
        "import time\n"
        "from kschedx import parallel\n"
        "from kschedx.cli import streams\n"
        "with streams.ending_in_order():\n"
        "  for result in parallel.results(lambda item: time.sleep(0.01) or item, range(2000), 2):\n"
        "      print(result, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.communicate(timeout=20)[1] == b""
    assert process.returncode == 128 + signal.SIGTERM


INTERRUPTED = """
import os, signal, sys, time
from kschedx.cli.worker import Worker
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
worker = Worker(len)
time.sleep(float(sys.argv[1]))
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.killpg(0, signal.SIGINT)
worker._process.join()
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("after", [0, 0.05, 0.1, 0.15, 0.2, 0.3, 1])
def test_a_worker_ends_quietly_with_an_early_interrupt(after: float) -> None:
    """Ctrl-C reaches every process of the terminal, also one that loads its modules."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(after)],
        cwd=ROOT,
        capture_output=True,
        timeout=30,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_incomplete_file_is_removed(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"x" * (2 << 20)
        raise SystemExit(143)

    with pytest.raises(SystemExit):
        output.write(str(tmp_path / "to.json"), parts())
    assert not list(tmp_path.iterdir())


# --- files


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_overwritten_file_keeps_its_mode(mode: int, cluster: Path, tmp_path: Path) -> None:
    to = tmp_path / "to.json"
    to.touch()
    to.chmod(mode)
    assert kschedx("snapshot", "-s", cluster, "-o", to).code == 0
    assert stat.S_IMODE(to.stat().st_mode) == mode
    assert to.stat().st_size


def test_circular_links_are_an_error(cluster: Path, tmp_path: Path) -> None:
    item, other = tmp_path / "one.json", tmp_path / "other.json"
    item.symlink_to(other)
    other.symlink_to(item)
    lines: list[list[str | Path]] = [
        ["snapshot", "-s", cluster, "-o", item],
        ["why", "pod/web-0", "-s", item],
        ["why", item, "-s", cluster],
        ["why", "pod/web-0", "-s", cluster, "--config", item],
        ["doctor", "-s", item],
    ]
    for arguments in lines:
        result = kschedx(*arguments)
        assert (result.code, result.out) == (2, ""), arguments
        (line,) = result.err.splitlines()
        assert line.startswith(f"error: {item}: cannot be ")
        assert "link" in line


# --- characters that a terminal or an editor hides

HIDDEN = "a\u202eb\u200bc\u2066d\ufeffe\x7ff\U000e0001"


def test_documents_and_snapshots_escape_invisible_characters(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(
        json.dumps(
            {"kind": "List", "apiVersion": "v1", "items": [NODE, changed(POD, "metadata.labels", {"k": HIDDEN})]}
        )
    )
    for name in ("to.json", "to.yaml"):
        to = tmp_path / name
        assert kschedx("snapshot", "-s", cluster, "-o", to).code == 0
        text = to.read_text()
        assert not set(text) & set(HIDDEN) - set("abcdef")
        again = tmp_path / f"again-{name.replace('yaml', 'json')}"
        assert kschedx("snapshot", "-s", to, "-o", again).code == 0
        assert HIDDEN in json.dumps(json.loads(again.read_text()), ensure_ascii=False)
    document = to_json({"name": HIDDEN, "plain": "é"})
    assert not set(document) & set(HIDDEN) - set("abcdef")
    assert "\\u202e" in document
    assert "\\udb40\\udc01" in document
    assert "é" in document
    assert json.loads(document)["name"] == HIDDEN


# --- what an unset variable of the shell leaves


@pytest.mark.parametrize(
    "arguments",
    [
        ("why", "pod/web-0", "-s", ""),
        ("why", "pod/web-0", "-s", "CLUSTER", "-s", ""),
        ("why", "pod/web-0", "-s", "CLUSTER", "--config", ""),
        ("why", "", "-s", "CLUSTER"),
        ("snapshot", "-s", "CLUSTER", "-o", ""),
        ("snapshot", "-s", "", "-o", "-"),
        ("doctor", "-s", ""),
        ("profiles", "check", ""),
    ],
)
def test_an_empty_path_is_an_error(arguments: tuple[str, ...], cluster: Path) -> None:
    result = kschedx(*(str(cluster) if argument == "CLUSTER" else argument for argument in arguments))
    assert (result.code, result.out) == (2, "")
    assert "it is empty; is a shell variable not set?" in result.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "x", ""])
def test_completion_without_words_prints_nothing(shell: str) -> None:
    result = kschedx("why", env={"_KSCHEDX_COMPLETE": f"complete_{shell}"})
    assert (result.code, result.out, result.err) == (0, "", "")
    words = {"_KSCHEDX_COMPLETE": "complete_bash", "COMP_WORDS": "kschedx w", "COMP_CWORD": "x"}
    assert kschedx(env=words).err == ""


@pytest.mark.parametrize("question", [("pod/web-0", "-n", "shop"), ("--all-pending",), ("-A", "-l", "app=web")])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("profiles: 7", "profiles: expected a list, found 7"),
        ("percentageOfNodesToScore: 500", "percentageOfNodesToScore: Invalid value: 500"),
        ("profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]", "does not extend ScorePlugin"),
        ("[", "config.yaml:"),
    ],
)
def test_a_bad_configuration_is_an_error_of_every_command(
    text: str, says: str, question: tuple[str, ...], cluster: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}\n")
    result = kschedx("why", *question, "-s", cluster, "--config", config)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {config}")
    assert says in result.err
