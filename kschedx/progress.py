"""The progress of long work. The work reports it here; a progress bar, or a notification of the MCP server, listens.
Without a listener, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

_T = TypeVar("_T")
UPDATE_INTERVAL = 0.2  # seconds between two updates of what is shown


class Phase(StrEnum):
    """The current activity, in the words of the progress bar."""

    NOTHING = ""
    STARTING = "starting"
    READING = "reading"
    ANONYMIZING = "anonymizing"
    DECIDING = "deciding"
    SCHEDULING = "scheduling"
    COMPARING = "comparing"
    DRAINING = "draining"
    DESCHEDULING = "descheduling"
    ADMITTING = "admitting"
    ASKING = "asking"
    CHECKING = "checking"
    TRYING_FIXES = "trying fixes"
    TUNING = "trying"
    WRITING = "writing"


class ProgressStep(Struct, frozen=True):
    """One state of the work: `deciding 1,200 of 3,001 pods`; without a total if that is unknown."""

    phase: Phase
    done: int = 0
    total: int | None = None
    noun: str = ""
    of: str = ""  # the object of the phase, such as the file that is read
    begun: float = 0  # the completed share of the next items: 0.5 is half of one

    @property
    def share(self) -> float:
        """The completed share of the total; 0 if the total is unknown."""
        return min((self.done + self.begun) / self.total, 1) if self.total else 0

    @property
    def amount(self) -> str:
        if not self.noun:
            return ""
        return f"{self.done:,} of {self.total:,} {self.noun}" if self.total else f"{self.done:,} {self.noun}"


class _Meter:
    def __init__(self, listener: Callable[[ProgressStep], None]) -> None:
        self.tell = listener
        self.counting: ProgressStep | None = None
        """The progress of work that knows its total; its parts count as shares of the next item."""


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def listen_to_progress(listener: Callable[[ProgressStep], None]) -> Iterator[None]:
    """Call `listener` with every step within this context."""
    token = _METER.set(_Meter(listener))
    try:
        yield
    finally:
        _METER.reset(token)


def has_listener() -> bool:
    return _METER.get() is not None


def listen(listener: Callable[[ProgressStep], None]) -> None:
    """Call `listener` with every step from now on, in a worker process."""
    _METER.set(_Meter(listener))


def silence() -> None:
    """Remove the listener, in a worker process, or while something else uses the terminal."""
    report_progress(Phase.NOTHING)
    _METER.set(None)


def report_progress(phase: Phase, done: int = 0, total: int | None = None, noun: str = "", *, of: str = "") -> None:
    """Report the current activity. Inside counted work, report a known share of the next item instead."""
    meter = _METER.get()
    if meter is None:
        return
    if meter.counting is None:
        meter.tell(ProgressStep(phase, done, total, noun, of))
    elif total:
        begin(done / total)


def begin(share: float, of: str = "") -> None:
    """Report the completed share of the next items, and the current one, inside work that counts them."""
    meter = _METER.get()
    if meter is not None and (counting := meter.counting) is not None and (share > counting.begun or of != counting.of):
        meter.counting = replace(counting, begun=max(share, counting.begun), of=of)
        meter.tell(meter.counting)


def count_items(
    items: Iterable[_T], phase: Phase, total: int, noun: str, weight: Callable[[_T], int] = lambda _: 1
) -> Iterator[_T]:
    """Yield the items. When the next one is requested, the item before it is counted with its `weight`, in units of the
    noun."""
    meter = _METER.get()
    if meter is None or meter.counting is not None:
        yield from items
        return
    step = meter.counting = ProgressStep(phase, 0, total, noun)
    try:
        meter.tell(step)
        for item in items:
            yield item
            step = meter.counting = replace(step, done=step.done + weight(item))
            meter.tell(step)
    finally:
        meter.counting = None
