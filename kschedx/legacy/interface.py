"""What the two schedulers before the framework share: predicates, priorities, and the providers that list them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np
from msgspec import Struct

from kschedx.findings import Finding
from kschedx.framework.interface import CycleState, FilterPlugin, Handle, PreFilterPlugin, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.types import Pod
from kschedx.legacy.api_schema import Schema
from kschedx.plugins.inter_pod_affinity.terms import ExistingTerms
from kschedx.snapshot.columns import Column, IntArray, TableRow, TableRows, each_row
from kschedx.snapshot.nodes import NodeTable, PodRows


class Texts(Struct, frozen=True, kw_only=True):
    """Reasons: sentences in 1.13, names in 1.5. The reason for an insufficient resource is the same in both."""

    host_name: str
    host_ports: str
    node_selector: str
    node_label: str
    taints: str
    disk_conflict: str
    volume_count: str
    volume_zone: str
    volume_binding: str = ""
    volume_node_affinity: str = ""
    service_affinity: str
    pod_affinity: str  # precedes the three that follow, if they are set
    own_affinity: str = ""
    own_anti_affinity: str = ""
    existing_anti_affinity: str = ""
    memory_pressure: str
    disk_pressure: str
    pid_pressure: str = ""
    unschedulable: str = ""
    not_ready: str = ""
    out_of_disk: str = ""
    network_unavailable: str = ""


class Provider(Struct, frozen=True, kw_only=True):
    """One of the two schedulers, with its feature gates resolved: what a Policy can choose from, the defaults without a
    Policy, and the differences that predicates and priorities read."""

    predicates: Mapping[str, type[Predicate]]
    priorities: Mapping[str, type[Priority]]
    default_predicates: tuple[str, ...]
    default_priorities: Mapping[str, int]  # priority to weight
    mandatory_predicates: tuple[str, ...]
    service_anti_affinity: type[Priority]  # the priority for a Policy's argument of that name
    order: tuple[str, ...] | None
    """The order of evaluation, without predicates that never run; None if all run in no particular order."""
    schema: Schema
    texts: Texts
    fills_in_lists: bool = False
    """Whether a Policy without a list gets that of the default provider; otherwise it has none."""
    reads_policy_settings: bool = False
    """Whether it reads hardPodAffinitySymmetricWeight and alwaysCheckAllPredicates of a Policy, and its extenders'
    managed resources."""
    has_ratio_argument: bool = False
    """Whether a Policy can give a priority a shape that scores the requested share of a node."""
    checks_claims_first: bool = False  # whether a missing or terminating claim is an error before any node is evaluated
    lists_usable_nodes: bool = False
    """Whether nodes that are cordoned, not ready, out of disk, or without network are excluded before any predicate."""
    preempts: bool = False
    percentage_of_nodes_to_score: int
    maximum_weight: int

    @property
    def unresolvable(self) -> Code:
        """The status of a rejection that no eviction can resolve. A scheduler without preemption does not distinguish
        it."""
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE if self.preempts else Code.UNSCHEDULABLE


class PredicateContext(Handle, Protocol):
    """What predicates and priorities read from the scheduler."""

    @property
    def era(self) -> Provider: ...

    @property
    def existing_terms(self) -> ExistingTerms:
        """The affinity terms of the snapshot's pods."""
        ...

    @property
    def hard_pod_affinity_weight(self) -> int:
        """The weight of a running pod's required affinity for a pod that it matches."""
        ...

    @property
    def ignored_resources(self) -> frozenset[str]:
        """Extended resources that an extender accounts for."""
        ...


class Predicate:
    """A rule about nodes. `argument` comes from a Policy that defines its own predicate; most predicates have none."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        self.context = context

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        """Prepare for a cycle with all nodes of the cluster, once per cycle (upstream's predicate metadata)."""

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """Update `state` after `change` is added to `nodes`; each pod counts only on its own node."""

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """Reverse `add_pods`."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """Return a status for each row of `nodes`."""
        raise NotImplementedError


class PluginPredicate(Predicate):
    """A predicate whose rule a Filter plugin still has, with the predicate's own reason."""

    plugin_class: ClassVar[type[FilterPlugin]]
    text: ClassVar[str]  # the field of `Texts` with the reason
    resolvable: ClassVar[bool] = False

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        self._plugin = self.plugin_class(None, context)
        self._state: StateKey[CycleState | None] = StateKey(type(self).__name__)
        """For this predicate alone; None if the plugin has nothing to check."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        own = CycleState()
        skipped = isinstance(self._plugin, PreFilterPlugin) and self._plugin.pre_filter(own, pod, nodes).status.is_skip
        state[self._state] = None if skipped else own

    def _copied_state(self, state: CycleState) -> CycleState | None:
        """Return the plugin's own state, copied so that it can change."""
        own = state[self._state]
        if own is not None:
            state[self._state] = own = own.clone()
        return own

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = self._copied_state(state)
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            self._plugin.add_pods(own, pod, nodes, change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = self._copied_state(state)
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            self._plugin.remove_pods(own, pod, nodes, change)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        own = state[self._state]
        if own is None:
            return Verdicts.success(len(nodes))
        verdicts = self._plugin.filter(own, pod, nodes)
        reason: str = getattr(self.context.era.texts, self.text)
        code = Code.UNSCHEDULABLE if self.resolvable else self.context.era.unresolvable
        return Verdicts.first_of((verdicts.rejected, code, reason), explain=verdicts.explain)


def join_verdicts(parts: Sequence[Verdicts]) -> Verdicts:
    """Return all reasons of several checks, in order. One unresolvable rejection makes the whole unresolvable, and the
    first error hides everything else."""
    codes = np.column_stack([part.codes for part in parts])
    failed = codes == Code.ERROR
    columns = np.column_stack([codes, *(part.reasons.codes for part in parts)])
    group = np.unique(columns, axis=0, return_inverse=True)[1]
    examples = np.unique(group.ravel(), return_index=True)[1]

    def reasons(row: TableRow) -> tuple[str, ...]:
        if failed[row].any():
            return parts[int(failed[row].argmax())].reasons[row]
        return tuple(reason for part in parts for reason in part.reasons[row])

    def explain(row: TableRow) -> tuple[Finding, ...]:
        if failed[row].any():
            return parts[int(failed[row].argmax())].explain(row)
        return tuple(finding for part in parts if part.codes[row] for finding in part.explain(row))

    return Verdicts(
        codes=np.where(failed.any(axis=1), Code.ERROR, codes.max(axis=1)).astype(np.int64),
        reasons=Column(group.ravel().astype(np.int64), [reasons(row) for row in each_row(TableRows(examples))]),
        explain=explain,
    )


MAX_PRIORITY = 10


class Priority:
    """A score for nodes. `argument` comes from a Policy that defines its own priority; most priorities have none."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        self.context = context

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        """Return (node,) int64 for the feasible nodes."""
        raise NotImplementedError

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """Return (node,) int64 from 0 to 10, after all nodes have a score."""
        return scores
