"""What Filter, extenders and preemption arrive at, node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.framework.status import SUCCESS, Status, Verdicts
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.rows import ClusterRow, TableRow

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0


class ByExtenders(Struct, frozen=True, kw_only=True):
    """What extenders left of the plugins' verdicts."""

    statuses: Mapping[ClusterRow, Status]
    silent: tuple[ClusterRow, ...]
    """Nodes that passed the plugins, are not left, and have no status."""


class FilterOutcome(Struct, frozen=True, kw_only=True, dict=True):
    """What kube-scheduler itself arrives at on each node: the first plugin that rejects it, in order.

    All arrays are (node,). `plugin` is an index into `plugins`, -1 where the node passes.
    """

    plugins: tuple[str, ...]
    verdicts: tuple[Verdicts, ...]
    """One per entry of `plugins`, evaluated on every node, without nominated pods."""
    codes: IntArray
    plugin: IntArray
    with_nominated: Mapping[TableRow, Status] = field(default_factory=dict)
    """Rows whose verdict comes from the first pass, in which nominated pods count, with that status."""
    by_extenders: ByExtenders | None = None
    """PostFilter is told of this too."""

    @classmethod
    def of(cls, verdicts: Mapping[str, Verdicts], count: int) -> Self:
        """From each plugin's verdicts on `count` nodes, in order."""
        codes = np.zeros(count, dtype=np.int64)
        first = np.full(count, -1, dtype=np.int64)
        for number, answer in enumerate(verdicts.values()):
            rejected = answer.rejected
            if not rejected.any():
                continue
            news = (codes == 0) & rejected
            codes[news] = answer.codes[news]
            first[news] = number
        return cls(plugins=tuple(verdicts), verdicts=tuple(verdicts.values()), codes=codes, plugin=first)

    def overruled(self, with_nominated: Mapping[TableRow, Status]) -> Self:
        """With the verdicts of the first pass in some rows."""
        codes, plugin = self.codes.copy(), self.plugin.copy()
        for row, status in with_nominated.items():
            codes[row] = status.code
            plugin[row] = self.plugins.index(status.plugin)
        return replace(self, codes=codes, plugin=plugin, with_nominated=with_nominated)

    @property
    def passed(self) -> BoolArray:
        passed: BoolArray = self.codes == 0
        return passed

    def status(self, row: TableRow) -> Status:
        """The verdict on a node."""
        nominated = self.with_nominated.get(row)
        if nominated is not None:
            return nominated
        index = int(self.plugin[row])
        return SUCCESS if index < 0 else self.verdicts[index].status(row, self.plugins[index])

    @cached_property
    def derived(self) -> dict[object, object]:
        """What others worked out from this outcome and want to keep as long as it lasts."""
        return {}

    def count_reasons(self, among: BoolArray | None = None) -> Counter[str]:
        """How many nodes each reason was given for, verdicts only; `among` (node,) leaves the other nodes out."""
        told = np.ones(len(self.codes), dtype=np.bool_) if among is None else among.copy()
        reasons: Counter[str] = Counter()
        for row, status in self.with_nominated.items():
            if told[row]:
                reasons.update(status.reasons)
        told[list(self.with_nominated)] = False
        occurring = np.bincount(self.plugin + 1, minlength=len(self.verdicts) + 1)[1:]
        for index in np.flatnonzero(occurring).tolist():
            reasons += self.verdicts[index].count_reasons(told & (self.plugin == index))
        return reasons


class Candidate(Struct, frozen=True, kw_only=True):
    """A node on which preemption would make room."""

    node: ClusterRow
    victims: tuple[int, ...]
    """Rows of the PodTable, most important first."""
    pdb_violations: int
