"""The progress bar of long work, on standard error and only in a terminal: the phase, the completed amount, and the
time left."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kschedx.cli import streams
from kschedx.progress import UPDATE_INTERVAL, Phase, ProgressStep, listen_to_progress, report_progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_DELAY = 0.4
"""Seconds after which the bar appears: from the start of the process, whose imports take longer on a busy machine."""


@contextmanager
def shown(begun: float) -> Iterator[None]:
    """Show the progress of work that takes longer than `_DELAY` within this context, if standard error is a terminal.
    `begun` is when the process began, in seconds of `time.monotonic`; nothing large is imported before the bar."""
    errors = sys.stderr
    if errors is None or not errors.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    import rich.progress  # noqa: F401 - here: a thread that imports beside this one is slow, and may meet half a module

    import kschedx.kube.escaping  # noqa: F401 - as well

    bar = _Bar(errors.fileno(), begun + _DELAY)
    try:
        with listen_to_progress(bar.see), streams.unobstructed_by(bar.hidden_bar):
            report_progress(Phase.STARTING)
            yield
    finally:
        bar.end()


class _Bar:
    """A progress bar that is drawn in its own thread, so that work need not check the clock."""

    def __init__(self, descriptor: int, begins: float) -> None:
        self._begins = begins
        from rich.console import Console

        file = io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), encoding="utf-8", errors="replace")
        self._console = Console(file=file, force_terminal=True, markup=False, emoji=False, highlight=False)
        self._step = ProgressStep(Phase.NOTHING)
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn: tuple[Progress, TaskID] | None = None
        self._form = (Phase.NOTHING, False, False)
        self._pid = os.getpid()
        os.register_at_fork(before=self._lock.acquire, after_in_parent=self._lock.release)

    def see(self, step: ProgressStep) -> None:
        """Keep the step that is drawn next. A worker process that inherits the bar draws nothing."""
        self._step = step
        if os.getpid() != self._pid:
            return
        if not step.phase:
            with self._lock:
                self._clear()
        elif self._thread is None:
            if time.monotonic() >= self._begins:  # a busy machine, on which the thread would wait for the imports
                self._refresh(step)
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    @contextmanager
    def hidden_bar(self) -> Iterator[None]:
        """Remove the bar from the screen within this context, while something else is printed."""
        if os.getpid() != self._pid or self._ended.is_set():
            yield
            return
        with self._lock:
            self._clear()
            self._step = ProgressStep(Phase.NOTHING)  # after an answer, the bar would appear only to be removed
            yield

    def end(self) -> None:
        if os.getpid() == self._pid:
            self._ended.set()
            with self._lock:
                self._clear()

    def _clear(self) -> None:
        if self._drawn is not None:
            with suppress(OSError):  # the terminal may be gone
                self._drawn[0].stop()
            self._drawn = None

    def _run(self) -> None:
        try:
            self._draw()
        except OSError:
            streams.end_with_hangup()

    def _draw(self) -> None:
        wait = max(self._begins - time.monotonic(), 0)
        while not self._ended.wait(wait):
            wait = UPDATE_INTERVAL
            with self._lock:
                if self._step.phase and not self._ended.is_set():
                    self._refresh(self._step)

    def _refresh(self, step: ProgressStep) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        wanted = step.phase, bool(step.total), bool(step.noun)
        if self._drawn is None or wanted != self._form:
            self._clear()
            amount = (TextColumn("{task.fields[amount]}"),) if step.noun else ()
            columns = (TextColumn("{task.description}"), BarColumn(20), *amount)
            left = (TimeRemainingColumn(compact=True), TextColumn("left")) if step.total else ()
            progress = Progress(
                *columns,
                *left,
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,  # an answer would go to standard error
                redirect_stderr=False,
            )
            self._form = wanted
            self._drawn = (progress, progress.add_task("", total=1.0 if step.total else None, amount=""))
            progress.start()
        progress, task = self._drawn
        # a total that grows would reset the speed
        progress.update(task, completed=step.share, amount=step.amount, description=_shown(step), refresh=True)


def _shown(step: ProgressStep) -> str:
    from kschedx.kube.escaping import visible

    return visible(f"{step.phase} {step.of}".strip())
