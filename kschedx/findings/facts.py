"""What all findings share."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import ClassVar

from msgspec import Struct

from kschedx.kube.decoding import camel


class Facts(Struct, frozen=True, kw_only=True):
    reason: ClassVar[str]

    @property
    def same_as(self) -> Hashable:
        """What findings of this reason must have in common so that one headline may stand for all of them, except for
        what its words state for each node (`Words.shared`, `Words.brief`). All facts, unless a finding says less."""
        return self

    @property
    def distance(self) -> float:
        """How far the node is from passing: for comparisons between nodes that are rejected alike."""
        return 1.0

    def to_dict(self) -> dict[str, object]:
        """`{"reason": ..., fact: value, ...}` with camelCase keys, for JSON."""
        return {"reason": self.reason} | _named(self)


def _named(facts: Struct) -> dict[str, object]:
    return {key: _plain(getattr(facts, name)) for name, key in _keys(type(facts))}


@cache
def _keys(facts: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Fields, and what they are called in a document."""
    return tuple((name, camel(name)) for name in facts.__struct_fields__)


_SCALARS = (str, int, bool, float, type(None))


def _plain(value: object) -> object:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _named(value) if isinstance(value, Struct) else value
