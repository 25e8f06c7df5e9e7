"""The standard streams of the process, if one is full, closed, or its reader leaves; and signals.

Callers print as usual. If the reader has closed the pipe, output is discarded, and the exit code of the answer stays.
Any other failure to write standard output is an `OutputError`.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

    from _typeshed import ReadableBuffer


class OutputError(Exception):
    """Standard output cannot be written; `str()` is the system's reason."""


HUNG_UP = 128 + 1  # the exit code of a process whose terminal is gone: SIGHUP is signal 1

_AWAY: list[Callable[[], AbstractContextManager[None]]] = [contextlib.nullcontext]
"""Contexts that remove what is drawn on the terminal while something else is printed; the last one is used."""


@contextlib.contextmanager
def unobstructed_by(away: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Use `away` around everything that is printed to a terminal within this context."""
    _AWAY.append(away)
    try:
        yield
    finally:
        _AWAY.pop()


class _Stream(io.RawIOBase):
    """The file under a standard stream."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor


class _Output(_Stream):
    def __init__(self, descriptor: int, *, is_closed: bool) -> None:
        super().__init__(descriptor)
        self._goes_nowhere = False
        self._is_closed = is_closed
        self._may_be_seen = not is_closed and not stat.S_ISREG(os.fstat(descriptor).st_mode)
        """Whether the output may be visible: in this terminal, or by a pager at the end of a pipe."""
        self.reader_left = False

    def isatty(self) -> bool:
        """Ends the process if this is a terminal that is gone."""
        if self._is_closed:
            return False
        try:
            os.get_terminal_size(self._descriptor)
        except OSError as error:
            if error.errno == errno.EIO:
                sys.exit(HUNG_UP)
            return False
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        view = memoryview(data)
        if self._goes_nowhere:
            return view.nbytes
        if self._is_closed:
            self._goes_nowhere = True
            raise OutputError("bad file descriptor")
        try:
            with _AWAY[-1]() if self._may_be_seen else contextlib.nullcontext():
                return os.write(self._descriptor, view)
        except BrokenPipeError:
            self._goes_nowhere = self.reader_left = True
            return view.nbytes
        except OSError as error:
            self._goes_nowhere = True  # else Python would try again at exit, and print an error
            if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(self._descriptor).st_mode):
                sys.exit(HUNG_UP)  # `isatty` is False for a terminal that is gone
            from kschedx.errors import system_reason

            raise OutputError(system_reason(error)) from None


class _Errors(_Stream):
    """What cannot be written here cannot be reported anywhere."""

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer, /) -> int:
        view = memoryview(data)
        with contextlib.suppress(OSError), _AWAY[-1]():
            return os.write(self._descriptor, view)
        return view.nbytes


def guard() -> None:
    """Guard both streams, once, when the process begins."""
    closed = _open_the_closed()
    sys.stdout = _text(_Output(1, is_closed=1 in closed), sys.stdout, errors="strict")
    sys.stderr = _text(_Errors(2), sys.stderr, errors="backslashreplace")


def _open_the_closed() -> set[int]:
    """Open closed standard streams and return their numbers; else the next opened file would get such a number, and
    output would be printed into it."""
    closed = set()
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.add(os.open(os.devnull, os.O_RDWR))
    return closed


def _text(raw: io.RawIOBase, before: object, *, errors: str) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    errors = getattr(before, "errors", None) or errors
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=raw.isatty())


def reader_left() -> bool:
    """Return whether standard output has no reader any more, so that an endless loop may end."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Output) and raw.reader_left


_AGAIN = 3.0  # seconds after which a process that should have ended is ended again

_SOON = 0.05  # seconds after which a process is ended again if Python ignored the first time

_LAST = 10.0  # seconds after which the system ends a process that has cleaned up and still runs


def _end(number: int, _: FrameType | None) -> None:
    end = SystemExit(128 + number)
    _raise_again(end, _AGAIN)
    raise end  # unwinding the stack cleans up


def _raise_again(end: BaseException, after: float) -> None:
    """Raise `end` in the main thread after some seconds, and again and again while it has no effect."""

    def again(*_: object) -> None:
        raise end

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, after, _AGAIN)  # the first time has to be able to clean up


def _raise_ignored(lost: UnraisableHookArgs) -> None:
    """Raise the end of the process again, without a message, where Python had to ignore it: a callback of a weak
    reference cannot raise, and every import has one."""
    if isinstance(lost.exc_value, KeyboardInterrupt | SystemExit):
        _raise_again(lost.exc_value, _SOON)
    else:
        sys.__unraisablehook__(lost)


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process as Ctrl-C does, so that temporary files and workers are removed."""
    sys.unraisablehook = _raise_ignored
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        yield
    finally:
        if hasattr(signal, "setitimer") and signal.setitimer(signal.ITIMER_REAL, 0)[0]:
            # ended by a signal: the interpreter may still wait for a worker, with nothing left to interrupt it
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, _LAST)


def end_with_hangup() -> None:
    """End the process with SIGHUP, as the system does for a process of this terminal, if stdout is a terminal."""
    was_terminal = sys.stdout.line_buffering
    if was_terminal and hasattr(signal, "SIGHUP"):
        os.kill(os.getpid(), signal.SIGHUP)


def print_note(text: str) -> None:
    """Print a line beside the answer, on stderr. Hidden characters are escaped."""
    import typer

    from kschedx.wording import visible

    typer.echo(f"note: {visible(text)}", err=True)


def print_note_if_file(name: str) -> None:
    """Print a note if a file has the name of an object or profile, which the name means."""
    from pathlib import Path

    if Path(name).exists():
        print_note(f"{name} is also a file here: ./{name} means the file")
