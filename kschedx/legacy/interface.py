"""What the two schedulers before the framework share: predicates, priorities, and providers that name them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np
from msgspec import Struct

from kschedx.findings import Finding
from kschedx.framework.interface import CycleState, FilterPlugin, Handle, PreFilterPlugin, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.types import Pod
from kschedx.legacy.stored import Schema
from kschedx.snapshot.columns import Column, IntArray, TableRow, TableRows, each_row
from kschedx.snapshot.nodes import NodeTable, PodRows

# What one of the two schedulers knows and says, as a frozen value.


class Texts(Struct, frozen=True, kw_only=True):
    """Reasons: sentences in 1.13, names in 1.5. An insufficient resource is worded alike in both."""

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
    pod_affinity: str
    """Stands before the three that follow, where they are set."""
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


class Era(Struct, frozen=True, kw_only=True):
    """One of the two schedulers, with its feature gates resolved."""

    order: tuple[str, ...] | None
    """The order of evaluation, which leaves out what it does not name; None where all are run in no order."""
    schema: Schema
    """What its API kept of a manifest."""
    texts: Texts
    fills_in_lists: bool
    """A Policy without a list gets that of the default provider; otherwise it has none."""
    reads_policy_settings: bool
    """hardPodAffinitySymmetricWeight and alwaysCheckAllPredicates of a Policy, and its extenders' managed resources."""
    has_ratio_argument: bool
    """A priority can be given a shape to score the requested share of a node by."""
    checks_claims_first: bool
    """A claim that is missing or being deleted is an error before any node is evaluated."""
    lists_usable_nodes: bool
    """Nodes that are cordoned, not ready, out of disk or without a network are left out before any predicate."""
    preempts: bool
    percentage_of_nodes_to_score: int
    maximum_weight: int

    @property
    def unresolvable(self) -> Code:
        """The status of a rejection that no eviction can lift: who never evicts makes no difference."""
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE if self.preempts else Code.UNSCHEDULABLE


# What a predicate is, and how the answers of several are put together.


class Context(Handle, Protocol):
    """What predicates and priorities may ask of the scheduler."""

    @property
    def era(self) -> Era: ...

    @property
    def hard_pod_affinity_weight(self) -> int:
        """What a required affinity of a pod that runs is worth to a pod that it matches."""
        ...

    @property
    def ignored_resources(self) -> frozenset[str]:
        """Extended resources that an extender accounts for."""
        ...


class Told:
    """What a predicate gets before and between its checks; most need none of it."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        """Called once per cycle with all nodes of the cluster (upstream's predicate metadata)."""

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """`change` has been added to `nodes`, each pod seen by its own node alone: write to `state` what follows."""

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        """The reverse of `add_pods`."""


class Predicate(Told, ABC):
    """A rule about nodes. `argument` is what a Policy gives to a predicate of its own; most have none."""

    def __init__(self, context: Context, argument: object = None) -> None:
        self.context = context
        self.argument = argument

    @abstractmethod
    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """A status for each row of `nodes`."""


class PluginPredicate(Predicate):
    """A predicate whose rule a Filter plugin still has, with a reason of its own."""

    plugin_class: ClassVar[type[FilterPlugin]]
    text: ClassVar[str]
    """The field of `Texts` with the reason."""
    resolvable: ClassVar[bool] = False

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        self._plugin = self.plugin_class(None, context)
        self._state: StateKey[CycleState | None] = StateKey(type(self).__name__)
        """What the plugin remembers, for this predicate alone; None where it has nothing to check."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        own = CycleState()
        skipped = isinstance(self._plugin, PreFilterPlugin) and self._plugin.pre_filter(own, pod, nodes).status.is_skip
        state[self._state] = None if skipped else own

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = state[self._state]
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            state[self._state] = own = own.clone()
            self._plugin.add_pods(own, pod, nodes, change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        own = state[self._state]
        if own is not None and isinstance(self._plugin, PreFilterPlugin):
            state[self._state] = own = own.clone()
            self._plugin.remove_pods(own, pod, nodes, change)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        own = state[self._state]
        if own is None:
            return Verdicts.success(len(nodes))
        found = self._plugin.filter(own, pod, nodes)
        reason: str = getattr(self.context.era.texts, self.text)
        code = Code.UNSCHEDULABLE if self.resolvable else self.context.era.unresolvable
        return Verdicts.first_of((found.rejected, code, reason), explain=found.explain)


def joined(parts: Sequence[Verdicts]) -> Verdicts:
    """All reasons of several checks in their order. One that cannot be lifted makes the whole so, and the first error
    hides everything else."""
    codes = np.column_stack([part.codes for part in parts])
    failed = codes == Code.ERROR
    told = np.column_stack([codes, *(part.reasons.codes for part in parts)])
    group = np.unique(told, axis=0, return_inverse=True)[1]
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


# What a priority is.

MAX_PRIORITY = 10


class Priority(ABC):
    """A score for nodes. `argument` is what a Policy gives to a priority of its own; most have none."""

    def __init__(self, context: Context, argument: object = None) -> None:
        self.context = context
        self.argument = argument

    @abstractmethod
    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        """(node,) int64 for the feasible nodes."""

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) int64 from 0 to 10, once all nodes have a score."""
        return scores


def scaled(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """The highest score becomes 10; `reverse` makes it 0, and zero 10 (NormalizeReduce)."""
    highest = max(int(scores.max(initial=0)), 0)
    if highest == 0:
        return np.full_like(scores, MAX_PRIORITY) if reverse else scores
    shares = MAX_PRIORITY * scores // highest
    return MAX_PRIORITY - shares if reverse else shares


# An algorithm provider: the predicates and priorities of one of the two schedulers, by name.


class Provider(Era, frozen=True, kw_only=True):
    """What a Policy chooses from, and what there is without one."""

    predicates: Mapping[str, type[Predicate]]
    """What a Policy may name, to the class."""
    priorities: Mapping[str, type[Priority]]
    default_predicates: tuple[str, ...]
    default_priorities: Mapping[str, int]
    """Priority to weight."""
    mandatory_predicates: tuple[str, ...]
    """Added to every configuration."""
    service_anti_affinity: type[Priority]
    """What a Policy's argument of that name makes."""
