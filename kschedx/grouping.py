"""Values by their keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def group_pairs(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Return each key with its values; both are in the order of the pairs."""
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
