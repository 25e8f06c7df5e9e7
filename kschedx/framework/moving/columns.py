"""What is kept of a plugin's answers for all nodes."""

from __future__ import annotations

from copy import copy

import numpy as np

from kschedx.framework.interface import (
    FilterPlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.status import Code, Verdicts
from kschedx.snapshot.columns import Column, IntArray
from kschedx.snapshot.rows import ClusterRows


class FilterColumn:
    """A Filter plugin's verdicts, in a few bytes per node."""

    def __init__(self, plugin: FilterPlugin, touch: Touch) -> None:
        self.plugin = plugin
        self.touch = touch
        self.runs = True
        self.codes = np.zeros(0, dtype=np.int8)
        self.reason = np.zeros(0, dtype=np.int32)
        self.reasons: list[tuple[str, ...]] = []
        self._number: dict[tuple[str, ...], int] = {}
        self._told: tuple[ClusterRows, Verdicts] | None = None

    def copy(self) -> FilterColumn:
        """The same, to be changed by itself."""
        other = copy(self)
        other.codes, other.reason = self.codes.copy(), self.reason.copy()
        other.reasons, other._number = list(self.reasons), dict(self._number)
        return other

    def put(self, verdicts: Verdicts) -> None:
        """The verdicts of all nodes."""
        self._told = None
        self.codes = verdicts.codes.astype(np.int8)
        self.reasons = list(verdicts.reasons.values)
        self.reason = verdicts.reasons.codes.astype(np.int32)
        self._number = {}

    def put_success(self, count: int) -> None:
        """No node is rejected, since the plugin is not asked."""
        self._told = None
        self.codes = np.broadcast_to(np.int8(Code.SUCCESS), count)
        self.reason = np.broadcast_to(np.int32(0), count)
        self.reasons, self._number = [()], {}

    def put_rows(self, rows: ClusterRows, verdicts: Verdicts) -> bool:
        """The verdicts of some nodes. Whether any of them changes."""
        if not self._number:
            self._number = {reasons: number for number, reasons in enumerate(self.reasons)}
        reason = [self._code(reasons) for reasons in map(verdicts.reasons.__getitem__, range(len(rows)))]
        if np.array_equal(self.codes[rows], verdicts.codes) and np.array_equal(self.reason[rows], reason):
            return False
        self._told = None
        self.codes[rows] = verdicts.codes
        self.reason[rows] = reason
        return True

    def _code(self, reasons: tuple[str, ...]) -> int:
        number = self._number.setdefault(reasons, len(self.reasons))
        if number == len(self.reasons):
            self.reasons.append(reasons)
        return number

    def verdicts(self, rows: ClusterRows) -> Verdicts:
        """As the plugin gave them for these nodes, without its explanations; the same object while nothing changes."""
        if self._told is None or not np.array_equal(self._told[0], rows):
            codes, reason = self.codes[rows].astype(np.int64), self.reason[rows].astype(np.int64)
            self._told = rows, Verdicts(codes=codes, reasons=Column(reason, list(self.reasons)))
        return self._told[1]


class ScoreColumn:
    """A Score plugin's part of the totals."""

    def __init__(self, plugin: ScorePlugin, touch: Touch, weight: int) -> None:
        self.plugin = plugin
        self.touch = touch
        self.weight = weight
        self.skipped = False
        normalizes = type(plugin).normalize_score is not ScorePlugin.normalize_score
        self.is_sum = not normalizes and touch is not Touch.CLUSTER
        """A node's part is its raw score times the weight, whatever other nodes have."""
        self.raw: IntArray = np.zeros(0, dtype=np.int64)
        self.weighted: IntArray | None = None
        """(feasible node,); None where it has to be worked out."""

    def copy(self) -> ScoreColumn:
        """The same, to be changed by itself; `weighted` is never changed in place."""
        other = copy(self)
        other.raw = self.raw.copy()
        return other
