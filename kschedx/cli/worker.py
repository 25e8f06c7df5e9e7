"""A process that answers one question after the other, for assistants (`mcp`) and many clusters (`fleet`)."""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from kschedx.cli.connection import cached_files, noting_times
from kschedx.cli.output import Answer, ExitCode, outcome
from kschedx.progress import ProgressStep, listen_to_progress

if TYPE_CHECKING:
    from kschedx.snapshot.snapshot import Snapshot

_Q = TypeVar("_Q")

_INTERVAL = 1.0  # seconds between two reports of an answer's progress


class CapturedAnswer(Struct, frozen=True, kw_only=True):
    """The result of a question."""

    exit_code: int
    screen: str = ""  # the first screen, as in a pipe
    headline: str = ""  # the headline of the screen, in one line
    document: Mapping[str, object] | None = None  # None if the command has none, or failed
    errors: str = ""  # the other output: errors and notes
    taken: str = ""  # when the cluster was read; empty if that is not known


def capture(command: Callable[[], Answer | int]) -> CapturedAnswer:
    """Return the answer of a command and its other output; never raises."""
    from kschedx.render import terminal

    out, errors = io.StringIO(), io.StringIO()
    document: Mapping[str, object] | None = None
    headline = ""

    def answered() -> int:
        nonlocal document, headline
        answer = command()
        if isinstance(answer, int):
            return answer
        console = terminal.console(out)
        lines = answer.report.screen(console.width, False)
        headline = next((line.headline for line in lines if line.headline), "")
        terminal.write(lines, console)
        document = answer.report.document()
        return answer.exit_code

    with redirect_stdout(errors), redirect_stderr(errors), noting_times() as times:
        code = outcome(answered)
    taken = next(filter(None, times), "")
    return CapturedAnswer(
        exit_code=code,
        screen=out.getvalue(),
        headline=headline,
        document=document,
        errors=errors.getvalue(),
        taken=taken,
    )


class Worker(Generic[_Q]):
    """A process that answers questions, and keeps the snapshot that it read last while its files do not change."""

    def __init__(self, answer: Callable[[_Q], Answer | int], folder: str | None = None) -> None:
        """`answer` is a function of a module; `folder` is where the process works, by default the current one."""
        # a fork would share the locks and sockets of the server; a spawned process does not
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(answer, other, folder, os.getpid()), daemon=True)
        with _holding_interrupts():
            self._process.start()
        other.close()

    def ask(self, question: _Q, limit: float, see: Callable[[ProgressStep], None] = lambda _: None) -> CapturedAnswer:
        """Return the answer within `limit` seconds. After that, the process is ended, and the answer reports it. `see`
        is called with the progress about once a second."""
        ends = time.monotonic() + limit
        try:
            self._pipe.send(question)
            while self._pipe.poll(max(ends - time.monotonic(), 0)):
                answer: CapturedAnswer | ProgressStep = self._pipe.recv()
                if isinstance(answer, CapturedAnswer):
                    return answer
                see(answer)
            text = f"error: no answer within {limit:g} s (name fewer nodes or pods, or raise --limit)\n"
        except (EOFError, OSError):
            text = "error: the answer needs more memory than this machine has\n"
        self.end()
        return CapturedAnswer(exit_code=ExitCode.UNDECIDED, errors=text)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def stop(self) -> None:
        """End the process; a pending `ask` then returns an error."""
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back from this thread and from a process that it starts, which would print a traceback while it
    loads its modules."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its first start would end the hold
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(answer: Callable[[_Q], Answer | int], pipe: Pipe, folder: str | None, parent: int) -> None:
    """Answer questions in the worker process, until the parent ends it or Ctrl-C does."""
    from kschedx.parallel import end_with

    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        end_with(parent)
        _answer_questions(answer, pipe, folder)


def _answer_questions(answer: Callable[[_Q], Answer | int], pipe: Pipe, folder: str | None) -> None:
    """Answer until the pipe ends; raises `EOFError` then."""
    if folder is not None:
        files = os.environ.get("KUBECONFIG", "").split(os.pathsep)
        os.environ["KUBECONFIG"] = os.pathsep.join(str(Path(file).absolute()) for file in files if file)
        os.chdir(folder)

    last = time.monotonic()

    def see(step: ProgressStep) -> None:
        nonlocal last
        if step.phase and time.monotonic() - last >= _INTERVAL:
            last = time.monotonic()
            pipe.send(step)

    with cached_files(_CachedSnapshot().load), listen_to_progress(see):
        while True:
            pipe.send(capture(partial(answer, pipe.recv())))
            gc.collect()  # answers have cycles, and large ones would pile up


class _CachedSnapshot:
    """The snapshot that was read last, as long as its files do not change."""

    def __init__(self) -> None:
        self._key: object = None
        self._snapshot: Snapshot | None = None

    def load(self, paths: Sequence[str], check: bool, ignore_orphans: bool | None) -> Snapshot:
        from kschedx.loading import load

        key = (tuple(paths), check, ignore_orphans, tuple(map(_state, paths)))
        if self._snapshot is None or key != self._key or "-" in paths:
            self._snapshot, self._key = None, key  # the old one is freed before the new one is read
            self._snapshot = load(paths, check=check, ignore_orphans=ignore_orphans)
        return self._snapshot


def _state(path: str) -> tuple[tuple[str, int, int], ...]:
    """Return values that change when a file, or a file in a folder, changes."""
    root = Path(path)
    files = sorted(root.rglob("*")) if root.is_dir() else [root]
    stamps = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        stamps.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(stamps)
