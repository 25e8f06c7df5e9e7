"""Resource lists as rows of a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kschedx.snapshot.columns import IntArray

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Columns that every resource matrix begins with. cpu is in milli-units, everything else in units."""

NATIVE = ("cpu", "memory", "ephemeral-storage")


class ResourceNames:
    """The resources of a cluster in a fixed order: `cpu`, `memory`, `ephemeral-storage`, then scalars by name."""

    __slots__ = ("index", "names")

    def __init__(self, scalars: Iterable[str] = ()) -> None:
        self.names: tuple[str, ...] = NATIVE + tuple(sorted(set(scalars) - set(NATIVE)))
        self.index: Mapping[str, int] = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def row(self, amounts: Mapping[str, int]) -> IntArray:
        """(resource,) int64; resources that the cluster does not know are left out."""
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            column = self.index.get(name)
            if column is not None:
                row[column] = amount
        return row
