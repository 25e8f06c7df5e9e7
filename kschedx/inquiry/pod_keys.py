"""The keys of many pods, and texts about them, which are computed only when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

import numpy as np

from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.pods import PodTable


class PodKeys(Sequence[str]):
    """`namespace/name` of pods; each string is created only when it is read."""

    def __init__(self, pods: PodTable, rows: IntArray) -> None:
        self.rows, self.table = rows, pods

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> PodKeys: ...
    def __getitem__(self, at: int | slice) -> str | PodKeys:
        return PodKeys(self.table, self.rows[at]) if isinstance(at, slice) else self.table.key(int(self.rows[at]))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


class PodTexts(Mapping[str, str]):
    """Pods to strings, which are computed from the pods' rows."""

    def __init__(self, pods: PodTable, rows: IntArray, text: Callable[[int], str]) -> None:
        self.pods, self._text, self._rows = PodKeys(pods, rows), text, pods.rows
        self._has = np.zeros(len(pods), dtype=np.bool_)
        self._has[rows] = True

    def __repr__(self) -> str:
        return repr(dict(self))

    def __len__(self) -> int:
        return len(self.pods)

    def __iter__(self) -> Iterator[str]:
        return iter(self.pods)

    def __getitem__(self, key: str) -> str:
        row = self._rows[key]
        if not self._has[row]:
            raise KeyError(key)
        return self._text(row)
