"""The input of a cluster-autoscaler loop, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import AutoscalerGroup, GroupOfNode, NodeState, autoscaler_groups, node_states
from kschedx.autoscaler.pods import PendingOrder, Placements, PodEquivalence, PodOutcome
from kschedx.autoscaler.sandbox import TemplateVerdict
from kschedx.autoscaler.sizes import Option, Resize
from kschedx.autoscaler.status import AutoscalerStatus
from kschedx.autoscaler.templates import CloudTemplate, Template, TemplateBuilder, daemon_sets
from kschedx.framework.runtime import Framework, request_options
from kschedx.kube.conditions import UNSCHEDULABLE, condition_of
from kschedx.kube.resources import RequestOptions
from kschedx.kube.scalars import Duration
from kschedx.kube.tolerations import TO_BE_DELETED
from kschedx.kube.types import Node, Pod
from kschedx.releases.autoscaler import AutoscalerBehavior
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot


class LoopMemory:
    """What loops share that differ only in statuses, flags, templates, and the specs of pending pods, so that a trial
    costs only its difference."""

    def __init__(self) -> None:
        self._placements: list[tuple[Snapshot, object, Placements]] = []

    def placements(self, snapshot: Snapshot, begin: object) -> tuple[Placements | None, Set[int]]:
        """Return the placements of a loop that began alike, and the pending pods that had other specs there. `begin` is
        equal if everything but the snapshot is."""
        for before, known, placements in self._placements:
            if known == begin and (changed := _changed_specs(before, snapshot)) is not None:
                return placements, changed
        return None, frozenset()

    def remember(self, snapshot: Snapshot, begin: object, placements: Placements) -> None:
        self._placements = [*self._placements, (snapshot, begin, placements)][-_MOST_REMEMBERED:]


_MOST_REMEMBERED = 2


def _changed_specs(before: Snapshot, now: Snapshot) -> frozenset[int] | None:
    """Return the pods with other specs; None if the clusters differ in more."""
    if not _is_same(before, now, apart={"pods", "_tables"}):
        return None
    if not _is_same(before.pods, now.pods, apart={"specs", "derived", "_requests"}):
        return None
    old, new = before.pods.specs, now.pods.specs
    if any(spec is not other for spec, other in zip(old.values, new.values, strict=False)):
        return None
    return frozenset(np.flatnonzero(old.codes != new.codes).tolist())


def _is_same(before: Struct, now: Struct, *, apart: Set[str]) -> bool:
    return all(getattr(before, name) is getattr(now, name) for name in before.__struct_fields__ if name not in apart)


# The cluster from cluster-autoscaler's view, before it evaluates any group. Upstream: RunOnce in
# core/static_autoscaler.go, clusterstate/.


def _is_allowed(pods: PodTable, row: int, flags: Flags) -> bool:
    """Return whether the pod's scheduler is allowed; other pods are ignored."""
    return not flags.allowed_schedulers or pods.specs[row].scheduler_name in flags.allowed_schedulers


def _is_expendable(pods: PodTable, row: int, flags: Flags) -> bool:
    """Return whether the priority is below the cutoff; a pod without a priority is not expendable."""
    code = int(pods.specs.codes[row])
    return code not in pods.without_priority and int(pods.priorities[row]) < flags.expendable_pods_priority_cutoff


def _arrange(
    pods: PodTable, has_node: Callable[[str], bool], flags: Flags, behavior: AutoscalerBehavior
) -> PendingOrder:
    """`has_node`: whether a node with this name is listed."""
    passed_over: dict[int, PodOutcome] = {}
    nominated: list[int] = []
    unschedulable: list[int] = []
    for row in pods.pending:
        if not _is_allowed(pods, row, flags):
            passed_over[row] = PodOutcome.NOT_LOOKED_AT
        elif pods.deletion_timestamps[row]:
            passed_over[row] = PodOutcome.DELETING
        elif behavior.nominated_pods_are_placed and pods.nominated_node_names[row]:
            passed_over[row] = PodOutcome.NOMINATED
            nominated.append(row)
        elif not (_is_marked(pods, row) or _is_bypassed(pods, row, flags)):
            passed_over[row] = PodOutcome.NOT_MARKED
        elif _is_expendable(pods, row, flags):
            passed_over[row] = PodOutcome.EXPENDABLE
        elif not behavior.nominated_pods_are_placed and has_node(pods.nominated_node_names[row]):
            passed_over[row] = PodOutcome.NOMINATED
            nominated.append(row)
        else:
            unschedulable.append(row)
    return PendingOrder(passed_over=passed_over, nominated=tuple(nominated), unschedulable=tuple(unschedulable))


def _is_marked(pods: PodTable, row: int) -> bool:
    """Return whether kube-scheduler marked the pod as unschedulable."""
    said = condition_of(pods.statuses[row].conditions, "PodScheduled")
    return said is not None and said.status == "False" and said.reason == UNSCHEDULABLE


def _is_bypassed(pods: PodTable, row: int, flags: Flags) -> bool:
    """Return whether the pod has no scheduling result yet, and the autoscaler does not wait for its scheduler."""
    if pods.specs[row].scheduler_name not in flags.bypassed_schedulers:
        return False
    said = condition_of(pods.statuses[row].conditions, "PodScheduled")
    return said is None or (said.status == "False" and not said.reason)


_SETTLED = Duration.seconds(60)  # how long a node has to be ready before it serves as a template


def _choose_templates(
    maker: TemplateBuilder,
    groups: Iterable[str],
    nodes: Sequence[tuple[NodeState, Node]],
    pods_on: Callable[[ClusterRow], Sequence[Pod]],
    cloud: Mapping[str, CloudTemplate],
    now: int,
) -> dict[str, Template]:
    """Return for each group the first good node in list order, else the cloud's template, else the first other node.
    `pods_on` returns the pods on a node by its row. A group without any of these has no template."""
    good: dict[str, tuple[NodeState, Node]] = {}
    bad: dict[str, tuple[NodeState, Node]] = {}
    for state, node in nodes:
        if state.group is not None:
            (good if _is_good_example(state, node, now) else bad).setdefault(state.group, (state, node))

    def of_example(group: str, state: NodeState, node: Node) -> Template:
        force = maker.flags.force_daemon_sets
        return maker.make_from_node(group, node, pods_on(state.row), f"node/{node.name}", force=force)

    templates: dict[str, Template] = {}
    for group in groups:
        if group in good:
            templates[group] = of_example(group, *good[group])
        elif group in cloud:
            templates[group] = maker.make_from_cloud(group, cloud[group])
        elif group in bad:
            templates[group] = of_example(group, *bad[group])
    return templates


def _is_good_example(state: NodeState, node: Node, now: int) -> bool:
    """Return whether it has been ready and unchanged for a minute, is not cordoned, and is not marked for deletion."""
    settled = state.stable_since + _SETTLED < now
    deleted = any(taint.key == TO_BE_DELETED for taint in node.spec.taints)
    return state.is_ready and settled and not state.is_cordoned and not deleted


class LoopState(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a loop reads; nothing changes."""

    framework: Framework  # the scheduler's only profile on the cluster's snapshot
    group_of: GroupOfNode
    status: AutoscalerStatus
    cloud: Mapping[str, CloudTemplate]
    flags: Flags
    behavior: AutoscalerBehavior
    now: int  # nanoseconds since 1970
    memory: LoopMemory
    counts: bool = True  # whether estimates are made by counting if the result is the same
    cloud_is_known: bool = False
    """Whether the cloud has no other templates than `cloud`: a group without one then fails the autoscaler."""

    @property
    def snapshot(self) -> Snapshot:
        return self.framework.snapshot

    @property
    def pods(self) -> PodTable:
        return self.snapshot.pods

    @property
    def nodes(self) -> Sequence[Node]:
        return self.snapshot.cluster.nodes

    @cached_property
    def options(self) -> RequestOptions:
        return request_options(self.framework.release)

    @cached_property
    def equivalence(self) -> PodEquivalence:
        return PodEquivalence(self.pods)

    @cached_property
    def states(self) -> tuple[NodeState, ...]:
        """Every node of the snapshot from the autoscaler's view."""
        return node_states(self.nodes, self.group_of, self.flags, self.behavior, self.now)

    @cached_property
    def pending_order(self) -> PendingOrder:
        """The pending pods before the autoscaler evaluates any group."""
        return _arrange(self.pods, self.snapshot.cluster.index.__contains__, self.flags, self.behavior)

    @cached_property
    def expendable(self) -> frozenset[int]:
        """Rows of pods on nodes that do not count: with low priority, or of schedulers that are not allowed."""
        count = self.pods.priorities < self.flags.expendable_pods_priority_cutoff
        if self.flags.allowed_schedulers:
            count = np.ones(len(self.pods), dtype=np.bool_)
        rows = np.flatnonzero(count & (self.pods.node >= 0)).tolist()
        return frozenset(
            row
            for row in rows
            if not _is_allowed(self.pods, row, self.flags) or _is_expendable(self.pods, row, self.flags)
        )

    @cached_property
    def nominations(self) -> dict[int, ClusterRow]:
        """Nominated pods to the nodes where they count."""
        index = self.snapshot.cluster.index
        return {
            row: index[self.pods.nominated_node_names[row]]
            for row in self.pending_order.nominated
            if self.pods.nominated_node_names[row] in index and not _is_expendable(self.pods, row, self.flags)
        }

    @cached_property
    def templates(self) -> dict[str, Template]:
        """Group to the template of a new node, if known."""
        release = self.framework.release
        maker = TemplateBuilder(
            flags=self.flags,
            behavior=self.behavior,
            daemon_sets=daemon_sets(self.snapshot),
            options=self.options,
            compares_taints=release.compares_taints,
            slices=self.snapshot.devices.slices_by_node if self.behavior.devices_count else {},
        )
        names = [status.name for status in self.status.groups]
        wanted = set(names)
        examples = [(state, node) for state, node in zip(self.states, self.nodes, strict=True) if state.group in wanted]

        def pods_on(node: ClusterRow) -> list[Pod]:
            return [self.pods[row] for row in self.rows_on(node)]

        return _choose_templates(maker, names, examples, pods_on, self.cloud, self.now)

    def rows_on(self, node: ClusterRow) -> list[int]:
        """Return rows of the pods that count on a node of the snapshot."""
        rows = [row for row in self.pods.on_node(node).tolist() if row not in self.expendable]
        if self.behavior.nominated_pods_are_placed:
            rows += [row for row, place in self.nominations.items() if place == node]
        return rows

    @cached_property
    def groups(self) -> tuple[AutoscalerGroup, ...]:
        """In the order of the status."""
        return autoscaler_groups(self.status.groups, self.states, self.behavior)

    @cached_property
    def groups_by_name(self) -> dict[str, AutoscalerGroup]:
        return {group.name: group for group in self.groups}


# The result of a cluster-autoscaler loop.


class LoopOutcome(StrEnum):
    SUCCESSFUL = "ScaleUpSuccessful"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    AT_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"
    IN_COOLDOWN = "ScaleUpInCooldown"
    ERROR = "ScaleUpError"
    NOT_TRIED = "ScaleUpNotTried"


class GroupResult(Struct, frozen=True, kw_only=True):
    """A group with its template, and why it is skipped, if it is."""

    group: AutoscalerGroup
    template: Template | None
    skipped: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether only the missing template keeps pods from being evaluated: the autoscaler gets it from the cloud."""
        return self.template is None and self.group.is_healthy and not self.group.is_backed_off


class PodResult(Struct, frozen=True, kw_only=True):
    """The loop's result for a pending pod."""

    row: int
    outcome: PodOutcome
    node: str = ""  # the node that fits a schedulable pod
    is_on_upcoming: bool = False
    verdicts: Mapping[str, TemplateVerdict] = {}  # for a considered pod, the verdict of each group with a template
    remains: bool = False  # whether the autoscaler counts it as not helped
    parts: tuple[str, ...] = ()  # the parts after `pod didn't trigger scale-up: `
    is_event_sent: bool = False  # whether the event NotTriggerScaleUp is really sent


class GroupChoice(Struct, frozen=True, kw_only=True):
    """The result of choosing an option."""

    option: Option
    result: LoopOutcome
    resizes: tuple[Resize, ...] = ()
    triggered: tuple[int, ...] = ()  # rows of the option's pods, which get the event TriggeredScaleUp
    awaiting: tuple[int, ...] = ()  # pods that fit only other groups; the next loop evaluates them
    event: str = ""
    error: str = ""


class LoopResult(Struct, frozen=True, kw_only=True):
    result: LoopOutcome
    groups: tuple[GroupResult, ...]
    pods: tuple[PodResult, ...]  # all pending pods in list order
    error: str = ""
    options: tuple[Option, ...] = ()
    choices: tuple[GroupChoice, ...] = ()
    """One for each option that the expanders keep; of several, one is chosen at random."""
    events: tuple[str, ...] = ()  # events about the autoscaler itself
    unknown_expanders: tuple[str, ...] = ()
