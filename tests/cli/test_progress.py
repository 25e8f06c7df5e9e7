"""Progress of long work, and the bar that shows it in a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
import yaml

import kschedx
from kschedx.cli.app import run as command
from kschedx.cli.fleet import Work
from kschedx.cli.output import Answer, answer_to
from kschedx.parallel import FEW, results
from kschedx.progress import Phase, ProgressStep, count_items, listen_to_progress, report_progress, silence
from tests.command import ROOT

SLOW = """
import sys, time
from kschedx.cli import progress, streams
from kschedx.parallel import FEW, results
from kschedx.progress import Phase, report_progress
streams.guard()
progress.DELAY = progress.INTERVAL = 0.05
with progress.shown(time.monotonic()):
    for done in range(1, 5):
        report_progress(Phase.READING, done, 4, "pods", of="a file\\x1b[31m")
        time.sleep(0.6)
        print("note: a line", file=sys.stderr, flush=True)
print("done", file=sys.stderr, flush=True)
"""


def test_work_with_a_total_hides_its_parts() -> None:
    seen: list[ProgressStep] = []
    with listen_to_progress(seen.append):
        for _ in count_items(["a", "bc"], Phase.DECIDING, 3, "pods", weight=len):
            report_progress(Phase.TRYING_FIXES, 1)
            assert list(count_items([1, 2], Phase.DRAINING, 2, "nodes")) == [1, 2]
        report_progress(Phase.WRITING)
        silence()
        report_progress(Phase.READING)
    done = [ProgressStep(Phase.DECIDING, number, 3, "pods") for number in (0, 1, 3)]
    assert seen == [*done, ProgressStep(Phase.WRITING), ProgressStep(Phase.NOTHING)]


def test_parts_move_the_bar_of_their_phase() -> None:
    seen: list[ProgressStep] = []
    with listen_to_progress(seen.append):
        for _ in count_items("ab", Phase.TUNING, 2, "candidates"):
            report_progress(Phase.SCHEDULING, 30, 60, "pods")
            report_progress(Phase.SCHEDULING, 1, 10, "pods")  # another part of it: the bar never goes back
            report_progress(Phase.SCHEDULING, 45)
    assert [step.share for step in seen] == [0, 0.25, 0.5, 0.75, 1]


def parts_of_work(item: int) -> int:
    for done in range(1, 4):
        report_progress(Phase.SCHEDULING, done, 4)
        time.sleep(0.3)
    return item


def test_parts_of_other_processes_move_the_bar() -> None:
    seen: list[ProgressStep] = []
    with listen_to_progress(seen.append):
        made = results(parts_of_work, range(2), 2, weights=[FEW, FEW])
        assert [*count_items(made, Phase.TUNING, 2, "candidates")] == [0, 1]
    assert any(0 < step.share < 1 and not step.done for step in seen)
    assert seen[-1].share == 1


def test_an_interrupted_loop_stops_counting() -> None:
    seen: list[ProgressStep] = []
    with listen_to_progress(seen.append):
        loop = count_items([1, 2], Phase.DECIDING, 2, "pods")
        next(loop)
        loop.close()  # type: ignore[attr-defined] # a generator
        report_progress(Phase.WRITING)
    assert seen[-1] == ProgressStep(Phase.WRITING)


def test_phases_share_the_bar() -> None:
    work, shares = Work("a.json"), []
    for phase in (Phase.READING, Phase.DECIDING, Phase.WRITING):
        for done in range(5):
            work.see(ProgressStep(phase, done, 4))
            shares.append(work.share)
    assert shares == sorted(shares)
    assert shares[4] == 0.5
    assert shares[-1] < 1


def test_a_loop_of_the_descheduler_has_a_total() -> None:
    folder, seen = ROOT / "fixtures" / "descheduler-fight", list[ProgressStep]()
    policy = yaml.safe_load((folder / "policy.yaml").read_text())
    snapshot = kschedx.load(str(folder / "cluster.yaml"), whole=True)
    with listen_to_progress(seen.append):
        kschedx.deschedule(snapshot, policy)
    shares = [step.share for step in seen if step.phase is Phase.DESCHEDULING]
    assert len(set(shares)) > 3
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    "requested",
    [
        "why fixtures/zone-full/pod.yaml -s fixtures/zone-full/cluster",
        "simulate --apply fixtures/zone-full/pod.yaml -s fixtures/zone-full/cluster",
        "why --all-pending -s fixtures/autoscaler-grows/cluster.yaml",
    ],
)
def test_the_search_for_fixes_has_a_total(requested: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    seen: list[ProgressStep] = []
    with listen_to_progress(seen.append):
        answer = answer_to(command, requested.split())
        assert isinstance(answer, Answer)
        answer.report.screen(100, False)
    tried = [step for step in seen if step.phase is Phase.TRYING_FIXES]
    assert all(step.total for step in tried)
    shares = [step.share for step in tried if step.noun == tried[0].noun]
    assert len(set(shares)) > 2
    assert shares == sorted(shares)


def run(*, in_terminal: bool) -> str:
    """Run the command, and return its standard error."""
    command = [sys.executable, "-c", SLOW]
    if not in_terminal:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stderr
    return in_a_terminal(command)


def in_a_terminal(command: list[str], seen: Callable[[str], None] = lambda _: None, file: IO[str] | None = None) -> str:
    """All that a command writes, which `seen` gets as far as it is there; without its standard output if `file` gets
    it."""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=ROOT, stderr=its, stdout=file or its, env=environment) as process:
        os.close(its)
        text, ends = b"", time.monotonic() + 60
        while time.monotonic() < ends and select.select([ours], [], [], 30)[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:  # the terminal's other side is closed
                break
            seen(text.decode(errors="replace"))
        assert process.wait(30) in (0, 1)
    os.close(ours)
    return text.decode()


@pytest.mark.parametrize("in_terminal", [True, False])
def test_the_bar_is_shown_in_terminals_and_erased(in_terminal: bool) -> None:
    text = run(in_terminal=in_terminal)
    assert text.count("note: a line") == 4
    assert ("of 4 pods" in text) is in_terminal
    assert "\x1b[31m" not in text
    if in_terminal:
        assert text.rstrip().endswith("done")
        assert "\x1b[2K" in text.rpartition("of 4 pods")[2]  # the bar's line is cleared before what comes next
    else:
        assert text == "note: a line\n" * 4 + "done\n"


@pytest.mark.parametrize("name", ["nodes", "doctor"])
def test_the_bar_is_shown_before_the_input_is_read(name: str, tmp_path: Path) -> None:
    pipe, cluster = tmp_path / "cluster", (ROOT / "fixtures/tie/cluster.yaml").read_bytes()
    os.mkfifo(pipe)
    written: list[str] = []

    def write(text: str) -> None:
        if "reading" in text and not written:
            written.append(text)
            pipe.write_bytes(cluster)

    # nobody writes to the pipe before the bar shows what is read
    with (tmp_path / "answer").open("w+") as answer:
        text = in_a_terminal([sys.executable, "-m", "kschedx", name, "-s", str(pipe)], write, answer)
        answer.seek(0)
        lines = answer.read().splitlines()
    assert written
    assert lines[0][:2] in ("✓ ", "✗ ")
    assert lines[0] not in text
