"""`kschedx why --watch`: the printed changes, the end, and failures between."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kschedx.cli import watch
from kschedx.loading import load
from tests.api_server import FakeApiServer, kubeconfig, served
from tests.builders import Manifest, explain_pod, node
from tests.cli.manifests import BIG_POD, NODE, POD, changed, small_pod, write
from tests.command import ROOT, CommandResult, kschedx

ROOMY = node("node-02", allocatable={"cpu": "16", "memory": "64Gi", "pods": "110"})
BOUND = changed(BIG_POD, "spec.nodeName", "node-02")

Watched = Callable[..., CommandResult]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Watch big-0 while the cluster goes through `states`; after the last one, the user presses Ctrl-C.

    A state is the objects of the cluster, or what is written in their place.
    """

    def run(*states: Sequence[Manifest] | str, arguments: Sequence[str] = ()) -> CommandResult:
        waiting = iter(states)

        class Scripted(watch.Clock):
            minute = 0
            has_waited = False

            def now(self) -> str:
                return f"12:{self.minute:02}"

            def sleep(self, seconds: float) -> None:
                assert seconds >= 10
                self.minute += 1
                type(self).has_waited = True
                step()

        def step() -> None:
            state = next(waiting, None)
            if state is None:
                raise KeyboardInterrupt
            if isinstance(state, str):
                (tmp_path / "cluster.yaml").write_text(state, encoding="utf-8")
            else:
                write(tmp_path, *state)

        monkeypatch.setattr(watch, "Clock", Scripted)
        step()
        file = str(tmp_path / "cluster.yaml")
        where = ("-n", "shop", "-s", file, "--kube-version", "1.36")
        result = kschedx("why", "pod/big-0", *where, "--watch", *arguments)
        note = f"note: every 10 s, --watch reads {file} again; Ctrl-C ends\n"
        assert (note in result.err) == Scripted.has_waited
        return replace(result, err=result.err.removeprefix(note))

    return run


def headlines(result: CommandResult) -> list[str]:
    """Return the headlines below the first screen."""
    return [line for line in result.out.splitlines() if line.startswith("12:")]


def test_changes_and_the_end_are_printed(watched: Watched) -> None:
    before, roomy = [NODE, BIG_POD], [NODE, ROOMY, BIG_POD]
    result = watched(before, before, roomy, roomy, [NODE, ROOMY, BOUND])
    assert (result.code, result.err) == (0, "")
    assert headlines(result) == [
        "12:02 shop/big-0 becomes schedulable: 0 nodes fit → 1 node fits, best node-02",
        "12:04 shop/big-0 is on node node-02",
    ]
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "12:00 (1.36) 12:02 (1.36)" in lines
    assert "≠ outcome Unschedulable Scheduled" in lines
    assert not [line for line in lines if line.startswith("scores of")]  # there were none to hold them against


def test_an_unchanged_answer_is_not_printed(watched: Watched) -> None:
    result = watched([NODE, BIG_POD], [NODE, BIG_POD], [NODE, BIG_POD])
    assert (result.code, result.err, headlines(result)) == (130, "", [])
    assert "Insufficient cpu" in result.out


def test_changed_scores_are_not_printed(watched: Watched) -> None:
    other = changed(changed(small_pod("other", "3"), "spec.nodeName", "node-02"), "metadata.uid", "other")
    assert headlines(watched([NODE, ROOMY, BIG_POD], [NODE, ROOMY, BIG_POD, other])) == []


def test_a_changed_message_is_printed(watched: Watched) -> None:
    tainted = node("node-01", taints=["gpu=true:NoSchedule"])
    (change,) = headlines(watched([NODE, BIG_POD], [tainted, BIG_POD]))
    assert change == "12:01 shop/big-0 has another event text"


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([NODE, POD], id="deleted"),
        pytest.param([NODE, changed(BIG_POD, "metadata.uid", "another")], id="replaced"),
        pytest.param([NODE, changed(BIG_POD, "status.phase", "Failed")], id="failed"),
    ],
)
def test_the_deletion_of_the_pod_ends_the_watch(after: list[Manifest], watched: Watched) -> None:
    result = watched([NODE, BIG_POD], after)
    assert (result.code, result.err, headlines(result)) == (1, "", ["12:01 shop/big-0 is gone"])


def test_a_pod_with_a_node_is_not_watched(watched: Watched) -> None:
    result = watched([NODE, ROOMY, BOUND])
    assert (result.code, headlines(result)) == (0, ["12:00 shop/big-0 is on node node-02"])


def test_a_failed_request_is_printed_once_and_retried(watched: Watched) -> None:
    result = watched([NODE, BIG_POD], "{", "{", [NODE, ROOMY, BOUND])
    assert (result.code, headlines(result)) == (0, ["12:03 shop/big-0 is on node node-02"])
    (warning,) = result.err.splitlines()
    assert warning.startswith("warning: ")
    assert warning.endswith("; it is tried again")


def test_a_live_cluster_is_listed_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApiServer([NODE, BIG_POD])
    states = iter([[NODE, ROOMY, BIG_POD], [NODE, ROOMY, BOUND]])
    monkeypatch.setattr(watch.Clock, "sleep", lambda clock, seconds: api.replace(next(states)))
    with served(api) as url:
        result = kschedx("why", "pod/big-0", "-n", "shop", "--kubeconfig", kubeconfig(tmp_path, url), "--watch")
    note = "note: every 10 s, --watch reads the cluster again; Ctrl-C ends\n"
    assert (result.code, result.err) == (0, note)
    changes = [line.partition(" shop/big-0 ")[2] for line in result.out.splitlines() if " shop/big-0 " in line]
    assert changes[1:] == ["becomes schedulable: 0 nodes fit → 1 node fits, best node-02", "is on node node-02"]
    assert {request.method for request in api.requests} == {"GET"}
    assert not [request for request in api.requests if "watch" in request.query]
    assert sum(request.path == "/api/v1/nodes" for request in api.requests) == 3


@pytest.mark.parametrize("question", [("why", "pod/big-0", "-n", "shop"), ("nodes",)])
def test_a_pipe_shows_the_first_answer_before_the_wait(question: tuple[str, ...], tmp_path: Path) -> None:
    with served(FakeApiServer([NODE, BIG_POD])) as url:
        connection = ("--kubeconfig", str(kubeconfig(tmp_path, url)))
        command = [sys.executable, "-m", "kschedx", *question, "--watch", "--interval", "600", *connection]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # it may be ignored
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().strip()
            process.send_signal(signal.SIGINT)
            assert "Traceback" not in process.communicate(timeout=30)[1]
            assert process.returncode == 130


def test_a_low_window_shows_the_time_below_a_shortened_table(tmp_path: Path) -> None:
    objects = [node(f"node-{number:02}", allocatable={"cpu": str(number + 1), "pods": "110"}) for number in range(15)]
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 80, 0, 0))
    with served(FakeApiServer(objects)) as url:
        connection = ("--kubeconfig", str(kubeconfig(tmp_path, url)))
        command = [sys.executable, "-m", "kschedx", "nodes", "--watch", *connection]
        environment = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
        with subprocess.Popen(
            command, cwd=ROOT, stdout=its, stderr=its, env=environment | {"TERM": "xterm", "NO_COLOR": "1"}
        ) as process:
            text, ends = "", time.monotonic() + 60
            while "Ctrl-C ends" not in text and time.monotonic() < ends:
                text += os.read(ours, 65536).decode()
            process.kill()
    os.close(ours)
    os.close(its)
    (left_out,) = re.findall(r"(\d+) more lines in a taller window", text)
    assert int(left_out) > 5
    assert "node-14  " not in text


def test_a_large_cluster_is_read_less_often(tmp_path: Path) -> None:
    waits: list[float] = []

    class Slow(watch.Clock):
        time = 0.0

        def seconds(self) -> float:
            self.time += 30.0
            return self.time

        def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) > 1:
                raise KeyboardInterrupt

    snapshot = load([str(write(tmp_path, NODE, BIG_POD))])
    pod = snapshot.pods[snapshot.pods.rows["shop/big-0"]]
    looking = watch.Watch(pod, explain_pod, lambda: snapshot, interval=10, clock=Slow())
    with pytest.raises(KeyboardInterrupt):
        looking.run(explain_pod(snapshot, pod))
    assert waits == [10, 120]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pod/big-0", "-n", "shop", "-o", "json"], "cannot be combined with -o json"),
        (["--all-pending"], "cannot be combined with many pods"),
        (["new.yaml"], '"new.yaml" is not a pod of the cluster'),
        (["pod/big-0", "-n", "shop", "--interval", "0"], "--interval"),
    ],
    ids=["document", "many", "manifest", "interval"],
)
def test_input_that_cannot_be_watched_is_refused(arguments: list[str], says: str, tmp_path: Path) -> None:
    write(tmp_path, NODE, BIG_POD)
    write(tmp_path, POD, name="new.yaml")
    result = kschedx("why", *arguments, "-s", "cluster.yaml", "--watch", cwd=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
