"""What dry runs of one kind of pod came to, node by node, kept while the nodes stay as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kschedx.framework.outcome import Candidate
from kschedx.framework.preemption.selection import RULES
from kschedx.framework.state import StateKey
from kschedx.framework.status import Code, Status, Verdicts
from kschedx.snapshot.columns import Column, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow, ClusterRows, TableRows, rows_where


class KeptDryRuns:
    """Arrays are (node,) over the whole cluster. Unlike other values of a CycleState it changes in place: whoever puts
    it there says with `forget` which nodes have changed."""

    def __init__(self, count: int) -> None:
        self._is_known = np.zeros(count, dtype=np.bool_)
        self._codes: IntArray = np.zeros(count, dtype=np.int64)
        self._reason: IntArray = np.zeros(count, dtype=np.int64)
        self._reasons: list[tuple[str, ...]] = []
        self._candidates = np.full(count, None, dtype=np.object_)
        """A `Candidate` where the code is Success."""
        self._ranks: IntArray = np.zeros((count, len(RULES)), dtype=np.int64)

    def forget(self, nodes: ClusterRows) -> None:
        self._is_known[nodes] = False

    def unknown(self, nodes: NodeTable) -> TableRows:
        """Rows of the table that have to be tried."""
        return rows_where(~self._is_known[nodes.rows])

    def put(
        self, candidates: Mapping[ClusterRow, Candidate], statuses: Mapping[ClusterRow, Status], pods: PodTable
    ) -> None:
        """What came of trying some nodes."""
        for row, status in statuses.items():
            self._is_known[row] = True
            self._codes[row] = status.code
            self._reason[row] = self._number(status.reasons)
            found = self._candidates[row] = candidates.get(row)
            if found is not None:
                self._ranks[row] = [rule(found, pods) for rule in RULES]

    def _number(self, reasons: tuple[str, ...]) -> int:
        if reasons not in self._reasons:
            self._reasons.append(reasons)
        return self._reasons.index(reasons)

    def on(self, nodes: NodeTable, untried: Status) -> tuple[tuple[Candidate, ...], IntArray, Verdicts]:
        """The candidates among nodes that are all known, in node order, (candidate, rule) what the rules of selection
        say of each, and the verdicts of the whole cluster, `untried` for all other nodes."""
        able = nodes.rows[self._codes[nodes.rows] == Code.SUCCESS]
        candidates: tuple[Candidate, ...] = tuple(self._candidates[able].tolist())
        codes = np.full(len(self._codes), untried.code, dtype=np.int64)
        reason = np.full(len(self._codes), len(self._reasons), dtype=np.int64)
        codes[nodes.rows], reason[nodes.rows] = self._codes[nodes.rows], self._reason[nodes.rows]
        verdicts = Verdicts(codes=codes, reasons=Column(reason, [*self._reasons, untried.reasons]))
        return candidates, self._ranks[able], verdicts


KEPT: StateKey[KeptDryRuns] = StateKey("KeptDryRuns")
