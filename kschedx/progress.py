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

T = TypeVar("T")


class Phase(StrEnum):
    """What goes on, in the words of the bar."""

    NOTHING = ""
    STARTING = "starting"
    READING = "reading"
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

    @property
    def amount(self) -> str:
        if not self.noun:
            return ""
        return f"{self.done:,} of {self.total:,} {self.noun}" if self.total else f"{self.done:,} {self.noun}"


class _Meter:
    def __init__(self, listener: Callable[[Step], None]) -> None:
        self.tell = listener
        self.is_counting = False
        """Work that knows its total hides the parts that it is made of."""


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Within it, `listener` is called with every step."""
    token = _METER.set(_Meter(listener))
    try:
        yield
    finally:
        _METER.reset(token)


def silence() -> None:
    """Remove the listener: in a worker process, or where something else has the terminal."""
    say(Phase.NOTHING)
    _METER.set(None)


def say(phase: Phase, done: int = 0, total: int | None = None, noun: str = "", *, of: str = "") -> None:
    """What goes on now, inside nothing that counts."""
    meter = _METER.get()
    if meter is not None and not meter.is_counting:
        meter.tell(Step(phase, done, total, noun, of))


def counted(
    items: Iterable[T], phase: Phase, total: int, noun: str, weight: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """The items, each counted when the next is wanted: as many things of the noun as `weight` says."""
    meter = _METER.get()
    if meter is None or meter.is_counting:
        yield from items
        return
    meter.is_counting, done = True, 0
    try:
        meter.tell(Step(phase, done, total, noun))
        for item in items:
            yield item
            done += weight(item)
            meter.tell(Step(phase, done, total, noun))
    finally:
        meter.is_counting = False
