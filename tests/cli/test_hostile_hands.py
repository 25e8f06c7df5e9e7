"""Hostile circumstances: files named like objects, terminals that close, and parents that are killed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import signal
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent

from kschedx import parallel
from kschedx.cli.mcp.server import Answers, KnownClusters, server
from kschedx.cli.worker import Worker
from kschedx.inquiry.target import is_file
from kschedx.sources.live.credentials import _descendants as descendants
from tests.builders import node, pod
from tests.cli.manifests import write
from tests.command import ROOT, kschedx

ZONE_FULL = ROOT / "fixtures" / "zone-full"
MANIFEST = (ZONE_FULL / "pod.yaml").read_text()


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- the same word is a file or an object, never both


@pytest.mark.parametrize(
    ("target", "means_file"),
    [
        ("deploy/web", False),
        ("pod/web-0", False),
        ("shop/deploy/web", False),
        ("node/n1", False),
        ("./deploy/web", True),
        ("etc/passwd", True),
        ("deploy/web.yaml", True),
        ("-", True),
        ("web", True),
        ("other", False),
    ],
)
def test_a_target_is_an_object_not_a_file(
    target: str, means_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("deploy/web", "pod/web-0", "shop/deploy/web", "node/n1", "etc/passwd", "web"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.chdir(tmp_path)
    assert is_file(target) is means_file


def test_a_file_named_like_an_object_has_a_note(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "web").write_text(MANIFEST)
    result = kschedx("why", "deploy/web", "-s", ZONE_FULL / "cluster", cwd=tmp_path)
    assert result.err.startswith("note: deploy/web is also a file here: ./deploy/web means the file\nerror: ")
    assert kschedx("why", "./deploy/web", "-s", ZONE_FULL / "cluster", cwd=tmp_path).code == 1


def test_a_file_named_like_a_profile_has_a_note(tmp_path: Path) -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "sesame"}],
    }
    (tmp_path / "binpack").write_text(json.dumps(document))
    result = kschedx("profiles", "show", "binpack", cwd=tmp_path)
    assert (result.err, result.out) == (
        "note: binpack is also a file here: ./binpack means the file\n",
        kschedx("profiles", "show", "binpack").out,
    )
    assert "sesame" in kschedx("profiles", "show", "./binpack", cwd=tmp_path).out


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("deploy/web", 'error: no Deployment "web" in namespace "default"'),
        ("etc/passwd", 'error: no kind "etc", and no pod "passwd" in namespace "etc"'),
        ("pod/secret.yaml", "error: target: found 'pod/secret.yaml', "),
        ("secret", "error: target: found 'secret', "),
    ],
)
@pytest.mark.parametrize("tool", ["pod_explain", "capacity_check"])
def test_mcp_tools_open_no_file(
    tool: str, target: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("deploy/web", "etc/passwd", "pod/secret.yaml", "secret"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(MANIFEST.replace("name:", "name: sesame #", 1))
    monkeypatch.chdir(tmp_path)
    answers = Answers(KnownClusters(snapshots=(str(ZONE_FULL / "cluster"),)), limit=60)

    async def talk() -> None:
        async with Client(server(answers)) as client:
            result = await client.call_tool(tool, {"target": target})
            content = result.content[0]
            assert isinstance(content, TextContent)
            assert (result.is_error, content.text[: len(expected)]) == (True, expected)
            assert "sesame" not in content.text

    try:
        anyio.run(talk)
    finally:
        answers.end()


# --- nothing is left behind


def test_an_interactive_answer_ends_when_its_terminal_closes() -> None:
    leader, follower = pty.openpty()
    result = subprocess.Popen(
        [sys.executable, "-m", "kschedx", "why", str(ZONE_FULL / "pod.yaml"), "-s", str(ZONE_FULL / "cluster"), "-i"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(follower)
    seen = b""
    while b"\x1b[?1049h" not in seen:  # until the answer has the screen
        seen += os.read(leader, 1024)
    os.close(leader)
    assert result.wait(20) == 129


@pytest.mark.parametrize("is_own", [True, False], ids=["hangs up", "ends"])
def test_reading_ends_when_the_terminal_closes(is_own: bool, tmp_path: Path) -> None:
    """The system sends SIGHUP for the controlling terminal; another terminal fails on write."""
    pipe = tmp_path / "cluster.json"
    os.mkfifo(pipe)
    leader, follower = pty.openpty()

    def own() -> None:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if is_own:
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)

    command = [sys.executable, "-m", "kschedx", "snapshot", "-s", str(pipe), "-o", str(tmp_path / "to.json")]
    result = subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        preexec_fn=own,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(follower)
    with pipe.open("wb") as writer:
        writer.write(b'{"items":[')
        writer.flush()
        seen = b""
        while b"reading" not in seen:
            seen += os.read(leader, 1024)
        os.close(leader)
        assert result.wait(20) == 129
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize("arguments", [("profiles", "list"), ("why", "--help"), ("why", "fixtures/zone-full", "-i")])
def test_an_answer_to_a_closed_terminal(arguments: tuple[str, ...]) -> None:
    leader, follower = pty.openpty()
    os.close(leader)
    result = subprocess.run([sys.executable, "-m", "kschedx", *arguments], stdout=follower, cwd=ROOT, check=False)
    os.close(follower)
    assert result.returncode == 129


def test_a_worker_ends_with_its_parent() -> None:
    """While it works; an idle worker ends when its pipe closes."""
    code = """
import signal, time
from kschedx.cli.worker import Worker
worker = Worker(signal.sigwait)
worker._pipe.send((signal.SIGUSR1,))
print(worker._process.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert wait_until(lambda: is_alive(worker))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not is_alive(worker))


def test_a_pool_ends_with_its_parent() -> None:
    code = """
import multiprocessing, os, time
from kschedx import parallel
def work(item):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
list(parallel.results(work, range(128), 2))
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not any(map(is_alive, workers)))


def pool_in_a_worker(_: object) -> int:
    return sum(parallel.results(lambda item: item, range(200), 4))


def test_a_worker_starts_no_workers() -> None:
    worker = Worker(pool_in_a_worker)
    try:
        assert worker.ask((), 60).exit_code == sum(range(200))
    finally:
        worker.end()


def test_profiles_are_compared_in_a_worker(tmp_path: Path) -> None:
    """`fleet` and the MCP server compare more pods in a worker than a single process compares."""
    room = {"cpu": "99", "memory": "99Gi", "pods": "110"}
    nodes = [node(f"n{number}", allocatable=room) for number in range(2)]
    running = [pod(f"web-{number}", on=f"n{number % 2}") for number in range(2 * parallel.FEW + 2)]
    cluster = write(tmp_path, *nodes, *running)
    comparison = ("diff-profiles", "default", "binpack", "--all")
    alone = kschedx(*comparison, "-s", cluster, "-o", "json", "--jobs", "1")
    outcome = kschedx("fleet", "--snapshots", tmp_path, "-o", "json", *comparison, "--jobs", "2")
    [row] = json.loads(outcome.out)["clusters"]
    assert (row["exitCode"], row["document"]) == (alone.code, json.loads(alone.out))
    answers = Answers(KnownClusters(snapshots=(str(cluster),)), limit=60)

    async def talk() -> None:
        async with Client(server(answers)) as client:
            questions = {"before": "default", "after": "binpack", "pods": "running"}
            result = await client.call_tool("profiles_compare", questions)
            assert isinstance(result.structured_content, dict), result.content
            assert result.structured_content["exitCode"] == alone.code

    try:
        anyio.run(talk)
    finally:
        answers.end()


def test_children_of_a_program_are_found() -> None:
    shell = subprocess.Popen(["sh", "-c", "sh -c 'sleep 60; true' & sleep 60; true"])
    try:
        assert wait_until(lambda: len(descendants(shell.pid)) >= 3)
    finally:
        for process in (*descendants(shell.pid), shell.pid):
            os.kill(process, signal.SIGKILL)
        shell.wait()


PLUGIN = "#!/bin/sh\nsleep 60 &\nsh -c 'sleep 60; true'\nwait\n"
KUBECONFIG = """
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
POOL = """
import sys
from kschedx.cli import main, parallel
parallel.processors, parallel.FEW = lambda: 3, 1
main()
"""
CALL = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pending_explain", "arguments": {}}}\n'
HELLO = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
    '"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
    '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)
STARTING_OTHERS: dict[str, tuple[str, ...]] = {
    "login": ("-m", "kschedx", "why", "pod/a", "--kubeconfig", "config"),
    "fleet of logins": ("-m", "kschedx", "fleet", "--all-contexts", "--kubeconfig", "config", "doctor"),
    "pool": ("-c", POOL, "why", "--all-pending", "-s", str(ROOT / "fixtures" / "fragmentation"), "-o", "json"),
    "shard": (
        *("-c", POOL, "diff-profiles", "default", "binpack", "--all", "--shard", "1/2", "-o", "json"),
        *("-s", str(ROOT / "fixtures" / "fragmentation")),
    ),
    "fleet": ("-m", "kschedx", "fleet", "--snapshots", str(ROOT / "fixtures"), "-j", "3", "doctor"),
    "mcp": ("-m", "kschedx", "mcp", "-s", str(ZONE_FULL / "cluster")),
    "mcp with a login": ("-m", "kschedx", "mcp", "--context", "x", "--kubeconfig", "config"),
}


def marked(mark: str) -> list[int]:
    """Return the processes with this variable in their environment."""
    items = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            process = int(environment.parent.name)
            if mark.encode() in environment.read_bytes() and is_alive(process):
                items.append(process)
    return items


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
KILLS = int(os.environ.get("KILLS", "0"))
"""Random kills per program, between the start of its interpreter and the end of its work."""


def kills(name: str) -> Iterator[Any]:
    """Yield signals and delays: soon after each phase begins (all with `KILLS`), and at random moments."""
    chance = random.Random(name)
    for number in SIGNALS if KILLS else (signal.SIGKILL, chance.choice(SIGNALS[1:])):
        yield pytest.param(name, number, None, id=f"{name}-{number.name}")
    for _ in range(KILLS):
        number, moment = chance.choice(SIGNALS), round(chance.uniform(0, 2), 2)
        yield pytest.param(name, number, moment, id=f"{name}-{number.name}-{moment} s")


@pytest.mark.sample(7)
@pytest.mark.parametrize(("name", "number", "moment"), [kill for name in STARTING_OTHERS for kill in kills(name)])
def test_no_process_remains_after_a_kill(
    name: str, number: signal.Signals, moment: float | None, tmp_path: Path
) -> None:
    (tmp_path / "login").write_text(PLUGIN)
    (tmp_path / "login").chmod(0o755)
    (tmp_path / "config").write_text(KUBECONFIG)
    mark = f"MARK={uuid.uuid4()}"
    result = subprocess.Popen(
        [sys.executable, *STARTING_OTHERS[name]],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": mark.removeprefix("MARK=")},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # which nohup ignores for its children
    )
    assert result.stdin is not None
    result.stdin.write((HELLO + CALL).encode())
    result.stdin.flush()
    if moment is None:  # a login has a shell that watches it, and children
        begun = 5 if "login" in name else 2
        wait_until(lambda: result.poll() is not None or len(marked(mark)) >= begun)
        moment = random.Random(f"{name}{number}").uniform(0, 0.5)
    time.sleep(moment)
    result.send_signal(number)
    try:
        result.wait(20)
    finally:
        result.kill()
        result.wait()
        result.stdin.close()
    assert wait_until(lambda: not marked(mark)), [
        Path(f"/proc/{item}/cmdline").read_bytes().split(b"\0") for item in marked(mark)
    ]


def test_a_login_plugin_at_a_terminal_ends_with_kschedx(tmp_path: Path) -> None:
    (tmp_path / "login").write_text(PLUGIN)
    (tmp_path / "login").chmod(0o755)
    (tmp_path / "config").write_text(KUBECONFIG.replace("Never", "Always"))
    mark = f"MARK={uuid.uuid4()}"
    leader, follower = pty.openpty()
    result = subprocess.Popen(
        [sys.executable, "-m", "kschedx", "why", "pod/a", "--kubeconfig", "config"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": mark.removeprefix("MARK=")},
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: len(marked(mark)) >= 4), "kschedx, its login, and the login's children"
    finally:
        result.kill()
        result.wait()
    assert wait_until(lambda: not marked(mark)), [
        Path(f"/proc/{item}/cmdline").read_bytes().split(b"\0") for item in marked(mark)
    ]
    os.close(leader)
    os.close(follower)
