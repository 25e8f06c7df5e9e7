"""Bytes that are read once, from the first to the last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

_BLOCK = 1 << 20


class Readable(Protocol):
    """A binary file, or what stands for one."""

    def read(self, size: int = -1, /) -> bytes: ...


class Stream(ABC):
    """A Readable that is made of another one."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, and none only at the end; everything if it is negative."""
        return self._next(size) if size >= 0 else b"".join(iter(lambda: self._next(_BLOCK), b""))

    @abstractmethod
    def _next(self, size: int) -> bytes: ...


class Joined(Stream):
    """What was read of a file already, then the rest of it."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def _next(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size) or b""
