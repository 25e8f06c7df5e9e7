"""Whom a pod may evict where quotas decide (SelectVictimsOnNode in capacity_scheduling.go)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from kschedx.api.timestamps import LATEST
from kschedx.api.types import Pod
from kschedx.framework.interface import Handle
from kschedx.framework.preemption import DryRun, dry_run, exceeding, in_turn
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.plugins.capacity_scheduling.quotas import Amounts, Quota, Quotas, exceeds_all, request_of
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow, TableRow, each_cluster_row

EXCEEDED = "global quota max exceeded"


class Asked(Struct, frozen=True, kw_only=True):
    """What PreFilter leaves for PostFilter."""

    request: Amounts
    """Of the pod alone."""
    with_nominated: Amounts
    """And of nominated pods of its namespace that are at least as important."""
    of_all: Amounts
    """And of those of namespaces that use no more than they are promised."""


def may_go(other: Pod, pod: Pod, quotas: Quotas, *, is_beyond: bool) -> bool:
    """Whether one pod may be evicted for another, as `quotas` stand.

    Without a quota of its own a pod evicts those without. Beyond what its namespace is promised (`is_beyond`) it evicts
    within the namespace; below that, those whose namespaces have borrowed.
    """
    theirs = quotas.get(other.metadata.namespace)
    if pod.metadata.namespace not in quotas:
        return theirs is None and other.priority < pod.priority
    if theirs is None:
        return False
    if other.metadata.namespace == pod.metadata.namespace:
        return is_beyond and other.priority < pod.priority
    return not is_beyond and theirs.is_over_minimum


def is_beyond(pod: Pod, quotas: Quotas, asked: Asked) -> bool:
    """Whether with the pod its namespace would use more than it is promised."""
    own = quotas.get(pod.metadata.namespace)
    return own is not None and own.exceeds_minimum(asked.with_nominated) is not None


class _Account:
    """The quotas as they stand on each node of its own, while pods leave it and come back."""

    def __init__(self, pods: PodTable, pod: Pod, names: Sequence[str], quotas: Quotas, asked: Asked) -> None:
        self._pods, self._pod, self._names, self._asked = pods, pod, names, asked
        self._whole = dict(quotas)
        self._on: dict[ClusterRow, dict[str, Quota]] = {}

    def on(self, node: ClusterRow) -> dict[str, Quota]:
        return self._on.setdefault(node, dict(self._whole))

    def move(self, node: ClusterRow, pod: Pod, sign: int) -> None:
        quotas = self.on(node)
        if pod.metadata.namespace in quotas:
            quotas[pod.metadata.namespace] = quotas[pod.metadata.namespace].plus(request_of(pod), sign)

    def exceeded(self, node: ClusterRow, own: Amounts, of_all: Amounts) -> bool:
        quotas = self.on(node)
        mine = quotas.get(self._pod.metadata.namespace)
        return mine is not None and (mine.exceeds_maximum(own) is not None or exceeds_all(quotas, of_all) is not None)

    def refusal(self, node: ClusterRow) -> Status | None:
        request = self._asked.request
        return Status(code=Code.UNSCHEDULABLE, reasons=(EXCEEDED,)) if self.exceeded(node, request, request) else None

    def stays(self, node: ClusterRow, pod: int, *, fits: bool) -> bool | Status:
        """Nominated pods count here, unlike in `refusal`: where the pod has left for Filter's sake and they are too
        many all the same, CapacityScheduling takes it away a second time, which fails."""
        back = self._pods[pod]
        if fits:
            self.move(node, back, 1)
        if not self.exceeded(node, self._asked.with_nominated, self._asked.of_all):
            return fits
        if not fits:
            text = f"no corresponding pod {back.metadata.name} in pods of node {self._names[node]}"
            return Status(code=Code.ERROR, reasons=(text,))
        self.move(node, back, -1)
        return False


def preempt(handle: Handle, state: CycleState, pod: Pod, nodes: NodeTable, quotas: Quotas, asked: Asked) -> DryRun:
    """The smallest sets of pods to evict from `nodes` by the rules of quotas."""
    account = _Account(nodes.pods, pod, nodes.cluster.names, quotas, asked)
    beyond = is_beyond(pod, quotas, asked)
    found: list[tuple[int, int]] = []
    for row, node in enumerate(each_cluster_row(nodes.rows)):
        for running in _least_important_first(nodes, TableRow(row)):
            other = nodes.pods[running]
            # those that have gone have given back what they borrowed, which spares the others
            if may_go(other, pod, account.on(node), is_beyond=beyond):
                account.move(node, other, -1)
                found.append((running, row))

    def nobody(node: str) -> Status:
        text = f"No victims found on node {node} for preemptor pod {pod.metadata.name}"
        return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(text,))

    rows, index = np.array(found, dtype=np.int64).reshape(-1, 2).T
    budgets = handle.snapshot.disruption_budgets
    potential = in_turn(nodes, rows, index, partial(exceeding, budgets))
    return dry_run(handle, state, pod, nodes, budgets, nobody=nobody, potential=potential, bounds=account)


def _least_important_first(nodes: NodeTable, row: TableRow) -> list[int]:
    """Of equals, the one that was loaded last is first; those that have not started stay as they were loaded, since for
    each of them kube-scheduler takes the moment at which it looks."""
    pods, running = nodes.pods, nodes.pods_on(row)
    started, turn = pods.started[running], np.arange(len(running))
    turn = np.where(started == LATEST, turn, -turn)
    order = np.lexsort((turn, -started, pods.priorities[running]))
    return [int(one) for one in running[order]]
