"""PreFilter and Filter of one kind of pod: verdicts that are kept, and which nodes are left.

All arrays are (node,) over the whole cluster unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy

import numpy as np

from kschedx.api.types import Pod
from kschedx.framework.interface import FilterPlugin, PreFilterPlugin, PreFilterResult, Touch
from kschedx.framework.moving.columns import FilterColumn
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.runtime import Framework, verdicts_of
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.snapshot.columns import BoolArray, distinct
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import ClusterRow, ClusterRows, TableRow, cluster_rows


class Filtering:
    """Which nodes one kind of pod fits on."""

    def __init__(self, framework: Framework, pod: Pod) -> None:
        self._framework = framework
        self._pre_filters = [(p, p.touches(pod)) for p in framework.plugins("preFilter", PreFilterPlugin)]
        self._columns = [FilterColumn(p, p.touches(pod)) for p in framework.plugins("filter", FilterPlugin)]
        self._results: dict[str, PreFilterResult] = {}
        self._left: BoolArray | None = None
        """The nodes that PreFilter plugins name; None for all."""
        self._rejections = np.zeros(0, dtype=np.int16)
        """How many plugins reject a node."""
        self._outcome: FilterOutcome | None = None
        self._refused: dict[ClusterRow, Status] = {}
        """The nodes that would do but for pods that are nominated for them, with why."""
        self.is_rare = False
        """Only `schedule` tells right what becomes of the pod."""
        self.feasible = cluster_rows([])
        """(feasible node,)"""

    def copy(self) -> Filtering:
        """The same, to be changed by itself."""
        other = copy(self)
        other._columns = [one.copy() for one in self._columns]
        other._results, other._refused = dict(self._results), dict(self._refused)
        other._rejections = self._rejections.copy()
        return other

    @property
    def reads_only_own_pods(self) -> bool:
        """What Filter says of a node has to do with no other node's pods."""
        return all(one.touch is not Touch.CLUSTER for one in self._columns)

    @property
    def naming(self) -> tuple[str, ...]:
        """The plugins that named the nodes to look at."""
        return tuple(name for name, result in self._results.items() if result.nodes is not None)

    @property
    def nodes(self) -> NodeTable:
        """Those that PreFilter leaves in."""
        nodes = self._framework.nodes
        return nodes if self._left is None else nodes.at(ClusterRows(np.flatnonzero(self._left)))

    def is_left(self, node: ClusterRow) -> bool:
        return self._left is None or bool(self._left[node])

    def passes(self, node: ClusterRow) -> bool:
        """Every Filter plugin lets the pod in, PreFilter's nodes aside."""
        return not self._rejections[node] and node not in self._refused

    def outcome(self) -> FilterOutcome:
        """On the nodes that are left in; the same object as long as no verdict changes."""
        rows = self.nodes.rows
        if self._outcome is None:
            verdicts = {one.plugin.name: one.verdicts(rows) for one in self._columns if one.runs}
            self._outcome = FilterOutcome.of(verdicts, len(rows))
        if not self._refused:
            return self._outcome
        refused = {node: status for node, status in self._refused.items() if self.is_left(node)}
        places = map(TableRow, np.searchsorted(rows, list(refused)).tolist())
        return self._outcome.overruled(dict(zip(places, refused.values(), strict=True)))

    # --- what has moved

    def evaluate(self, state: CycleState, pod: Pod) -> None:
        """Everything, for the first time."""
        nodes = self._framework.nodes
        self.is_rare = False
        self._pre_filter(state, pod, [plugin for plugin, _ in self._pre_filters])
        self._rejections = np.zeros(len(nodes), dtype=np.int16)
        if self.is_rare:
            return
        for one in self._columns:
            one.codes = np.zeros(0, dtype=np.int8)
            self._filter(one, state, pod)
        self._find_feasible()

    def evaluate_plugins(self, state: CycleState, pod: Pod, plugins: Collection[str]) -> None:
        """What these plugins say of a pod of another kind."""
        self._pre_filter(state, pod, [plugin for plugin, _ in self._pre_filters if plugin.name in plugins])
        for one in self._columns:
            if one.plugin.name in plugins:
                one.touch = one.plugin.touches(pod)
                self._filter(one, state, pod)
        self._pre_filters = [
            (plugin, plugin.touches(pod) if plugin.name in plugins else touch) for plugin, touch in self._pre_filters
        ]
        self._find_feasible()

    def evaluate_touched(self, state: CycleState, pod: Pod, part: NodeTable, *, nodes_too: bool) -> None:
        """What pods that came to the nodes of `part` or left them can have changed.

        `nodes_too`: the nodes themselves may have changed, which every plugin may read, each node's row its own node.
        """
        self._pre_filter(state, pod, [plugin for plugin, touch in self._pre_filters if touch is Touch.CLUSTER])
        if self.is_rare:
            return
        rows = part.rows
        passed_before = self._rejections[rows] == 0
        anew = False
        for one in self._columns:
            if one.touch is Touch.CLUSTER:
                self._filter(one, state, pod)
                anew = True
            elif (one.touch is Touch.NODE or nodes_too) and one.runs:
                verdicts = verdicts_of(one.plugin, state, pod, part)
                self._rejections[rows] -= one.codes[rows] != 0
                if one.put_rows(rows, verdicts):
                    self._outcome = None
                self._rejections[rows] += verdicts.rejected
                self.is_rare |= bool((verdicts.codes == Code.ERROR).any())
        if anew or not np.array_equal(passed_before, self._rejections[rows] == 0):
            self._find_feasible()

    def _pre_filter(self, state: CycleState, pod: Pod, asked: Collection[PreFilterPlugin]) -> None:
        framework = self._framework
        self._results |= {plugin.name: plugin.pre_filter(state, pod, framework.nodes) for plugin in asked}
        if not asked:
            return
        skipped: set[str] = set()
        left: frozenset[str] | None = None
        for name, result in self._results.items():
            if result.status.is_skip and name not in framework.release.never_skips_filter:
                skipped.add(name)
            elif not (result.status.is_success or result.status.is_skip):
                self.is_rare = True
            elif result.nodes is not None:
                left = result.nodes if left is None else left & result.nodes
        state.skip_filter = frozenset(skipped)
        before, self._left = self._left, None
        if left is not None:
            index = framework.snapshot.cluster.index
            self.is_rare |= not left or any(name not in index for name in left)
            self._left = np.zeros(len(framework.nodes), dtype=np.bool_)
            self._left[[index[name] for name in left if name in index]] = True
        if before is not None or left is not None:
            self._outcome = None

    def _filter(self, one: FilterColumn, state: CycleState, pod: Pod) -> None:
        """All nodes anew."""
        self._outcome = None
        if one.codes.size:
            self._rejections -= one.codes != 0
        one.runs = one.plugin.name not in state.skip_filter
        if not one.runs:
            one.put_success(len(self._framework.nodes))
            return
        verdicts = verdicts_of(one.plugin, state, pod, self._framework.nodes)
        self.is_rare |= bool((verdicts.codes == Code.ERROR).any())
        one.put(verdicts)
        self._rejections += one.codes != 0

    def _find_feasible(self) -> None:
        passed = self._rejections == 0
        if self._left is not None:
            passed &= self._left
        passed[list(self._refused)] = False
        self.feasible = ClusterRows(np.flatnonzero(passed))

    # --- nominated pods

    def count_nominated(self, state: CycleState, pod: Pod, counted: PodRows) -> bool:
        """A node that pods are nominated for, which count against this one, has to do with them and without. False
        where that is an error."""
        refused: Mapping[ClusterRow, Status] = {}
        if len(counted):
            part = self._framework.nodes.at(ClusterRows(distinct(counted.nodes)))
            found = self._framework.refused_beside(counted, state, pod, part)
            refused = {part.cluster_row(row): status for row, status in found.items()}
        if refused.keys() != self._refused.keys():
            self._refused = dict(refused)
            self._find_feasible()
        self._refused = dict(refused)
        return all(status.code is not Code.ERROR for status in refused.values())
