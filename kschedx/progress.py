"""How far long work is. The work says it here; a bar, or a notification of the MCP server, listens.

Without a listener, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")


class Phase(StrEnum):
    """What goes on, in the words of the bar."""

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


class Step(Struct, frozen=True):
    """`deciding 1,200 of 3,001 pods`; without a total where that is not known."""

    phase: Phase
    done: int = 0
    total: int | None = None
    noun: str = ""
    of: str = ""
    """What is read, say."""
    begun: float = 0
    """How much of the next ones is done: 0.5 is the half of one."""

    @property
    def share(self) -> float:
        """Of the total; 0 where that is not known."""
        return min((self.done + self.begun) / self.total, 1) if self.total else 0

    @property
    def amount(self) -> str:
        if not self.noun:
            return ""
        return f"{self.done:,} of {self.total:,} {self.noun}" if self.total else f"{self.done:,} {self.noun}"


class _Meter:
    def __init__(self, listener: Callable[[Step], None]) -> None:
        self.tell = listener
        self.counting: Step | None = None
        """What is done of work that knows its total: its parts count as shares of the next."""


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Within it, `listener` is called with every step."""
    token = _METER.set(_Meter(listener))
    try:
        yield
    finally:
        _METER.reset(token)


def is_heard() -> bool:
    """Whether there is a listener."""
    return _METER.get() is not None


def listen(listener: Callable[[Step], None]) -> None:
    """From now on `listener` is called with every step: in a worker process."""
    _METER.set(_Meter(listener))


def silence() -> None:
    """Remove the listener: in a worker process, or where something else has the terminal."""
    say(Phase.NOTHING)
    _METER.set(None)


def say(phase: Phase, done: int = 0, total: int | None = None, noun: str = "", *, of: str = "") -> None:
    """What goes on now, inside nothing that counts."""
    meter = _METER.get()
    if meter is None:
        return
    if meter.counting is None:
        meter.tell(Step(phase, done, total, noun, of))
    elif total:
        begin(done / total)


def begin(share: float) -> None:
    """How much of the next things is done, inside what counts them."""
    meter = _METER.get()
    if meter is not None and (counting := meter.counting) is not None and share > counting.begun:
        meter.counting = replace(counting, begun=share)
        meter.tell(meter.counting)


def counted(
    items: Iterable[T], phase: Phase, total: int, noun: str, weight: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """The items, each counted when the next is wanted: as many things of the noun as `weight` says."""
    meter = _METER.get()
    if meter is None or meter.counting is not None:
        yield from items
        return
    step = meter.counting = Step(phase, 0, total, noun)
    try:
        meter.tell(step)
        for item in items:
            yield item
            step = meter.counting = replace(step, done=step.done + weight(item))
            meter.tell(step)
    finally:
        meter.counting = None
