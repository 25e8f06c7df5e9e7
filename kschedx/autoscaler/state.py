"""The cluster as a loop of the cluster-autoscaler sees it, and what the loop comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.autoscaler.expanders import Option
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import AutoscalerGroup, GroupOfNode, NodeState, autoscaler_groups, node_states
from kschedx.autoscaler.pods import Arranged, PodEquivalence, PodOutcome, arrange, is_allowed, is_expendable
from kschedx.autoscaler.sandbox import TemplateVerdict
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.status import AutoscalerStatus
from kschedx.autoscaler.templates import CloudTemplate, Template, TemplateMaker, choose_templates, daemon_sets
from kschedx.framework.runtime import Framework, request_options
from kschedx.kube.types import Node, Pod
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import PodTable

# The cluster as the cluster-autoscaler sees it before it looks at any group.
#
# Upstream: RunOnce in core/static_autoscaler.go, clusterstate/.


class LoopSetup(Struct, frozen=True, kw_only=True):
    """What a loop goes by."""

    framework: Framework
    """The scheduler's one profile on the cluster's snapshot."""
    group_of: GroupOfNode
    status: AutoscalerStatus
    cloud: Mapping[str, CloudTemplate]
    flags: Flags
    behaviour: AutoscalerBehaviour
    now: int
    """Nanoseconds since 1970."""
    counts: bool = True
    """Estimates are made by counting, where that comes to the same."""


class LoopState:
    """Everything here is read from the cluster, and nothing changes."""

    def __init__(self, setup: LoopSetup) -> None:
        self.setup = setup
        self.flags = setup.flags
        self.behaviour = setup.behaviour
        self.snapshot = setup.framework.snapshot
        self.pods: PodTable = self.snapshot.pods
        self.nodes: Sequence[Node] = self.snapshot.cluster.nodes
        self.options = request_options(setup.framework.release)
        self.kinds = PodEquivalence(self.pods)

    @property
    def now(self) -> int:
        """Nanoseconds since 1970."""
        return self.setup.now

    @cached_property
    def states(self) -> tuple[NodeState, ...]:
        """Every node of the snapshot as the autoscaler sees it."""
        return node_states(self.nodes, self.setup.group_of, self.flags, self.behaviour, self.setup.now)

    @cached_property
    def arranged(self) -> Arranged:
        """The pods that wait, by what the autoscaler makes of them before it looks at any group."""
        return arrange(self.pods, self.snapshot.cluster.index.__contains__, self.flags, self.behaviour)

    @cached_property
    def expendable(self) -> list[int]:
        """Rows of pods on nodes that count as free room: those of low priority, and those of schedulers that are not
        among the allowed ones."""
        count = self.pods.priorities < self.flags.expendable_pods_priority_cutoff
        if self.flags.allowed_schedulers:
            count = np.ones(len(self.pods), dtype=np.bool_)
        rows = np.flatnonzero(count & (self.pods.node >= 0)).tolist()
        return [
            row
            for row in rows
            if not is_allowed(self.pods, row, self.flags) or is_expendable(self.pods, row, self.flags)
        ]

    @cached_property
    def nominations(self) -> dict[int, ClusterRow]:
        """Nominated pods to the nodes that they take room on."""
        index = self.snapshot.cluster.index
        return {
            row: index[self.pods.nominated_node_names[row]]
            for row in self.arranged.nominated
            if self.pods.nominated_node_names[row] in index and not is_expendable(self.pods, row, self.flags)
        }

    @cached_property
    def templates(self) -> dict[str, Template]:
        """Group to what a new node of it looks like, as far as that is known."""
        release = self.setup.framework.release
        maker = TemplateMaker(
            flags=self.flags,
            behaviour=self.behaviour,
            daemon_sets=daemon_sets(self.snapshot),
            options=self.options,
            compares_taints=release.enabled("TaintTolerationComparisonOperators"),
        )
        names = [status.name for status in self.setup.status.groups]
        wanted = set(names)
        examples = [(state, node) for state, node in zip(self.states, self.nodes, strict=True) if state.group in wanted]
        return choose_templates(maker, names, examples, self._pods_on, self.setup.cloud, self.setup.now)

    def rows_on(self, node: ClusterRow) -> list[int]:
        """Rows of the pods that count on a node of the snapshot."""
        gone = set(self.expendable)
        rows = [int(row) for row in self.pods.on_node(node) if int(row) not in gone]
        if self.behaviour.nominated_pods_are_placed:
            rows += [row for row, place in self.nominations.items() if place == node]
        return rows

    def _pods_on(self, node: ClusterRow) -> list[Pod]:
        return [self.pods[row] for row in self.rows_on(node)]

    @cached_property
    def groups(self) -> tuple[AutoscalerGroup, ...]:
        """In the order of the status."""
        return autoscaler_groups(self.setup.status.groups, self.states, self.behaviour)

    @cached_property
    def by_name(self) -> dict[str, AutoscalerGroup]:
        """The groups."""
        return {group.name: group for group in self.groups}


# What a loop of the cluster-autoscaler comes to.


class LoopOutcome(StrEnum):
    """How the loop ends."""

    SUCCESSFUL = "ScaleUpSuccessful"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    AT_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"
    IN_COOLDOWN = "ScaleUpInCooldown"
    ERROR = "ScaleUpError"
    NOT_TRIED = "ScaleUpNotTried"


class GroupResult(Struct, frozen=True, kw_only=True):
    """A group, the template of its nodes, and why it is left out, if it is."""

    group: AutoscalerGroup
    template: Template | None
    skipped: tuple[str, ...] = ()


class PodResult(Struct, frozen=True, kw_only=True):
    """What the loop makes of a pending pod."""

    row: int
    outcome: PodOutcome
    node: str = ""
    """Where a schedulable pod fits."""
    is_on_upcoming: bool = False
    verdicts: Mapping[str, TemplateVerdict] = {}
    """Of a considered pod, each group with a template to the check of the pod on it."""
    remains: bool = False
    """The autoscaler counts it among those that it cannot help."""
    parts: tuple[str, ...] = ()
    """What follows `pod didn't trigger scale-up: `."""
    is_told: bool = False
    """The event NotTriggerScaleUp is really sent."""


class GroupChoice(Struct, frozen=True, kw_only=True):
    """What follows when an option is taken."""

    option: Option
    result: LoopOutcome
    resizes: tuple[Resize, ...] = ()
    triggered: tuple[int, ...] = ()
    """Rows of the pods of the option, which get the event TriggeredScaleUp."""
    awaiting: tuple[int, ...] = ()
    """Pods that fit other groups only: the next loop is theirs."""
    event: str = ""
    error: str = ""


class LoopResult(Struct, frozen=True, kw_only=True):
    """The whole loop."""

    result: LoopOutcome
    groups: tuple[GroupResult, ...]
    pods: tuple[PodResult, ...]
    """Every pending pod in list order."""
    error: str = ""
    options: tuple[Option, ...] = ()
    choices: tuple[GroupChoice, ...] = ()
    """One for each option that is left after the expanders; of several one is taken at random."""
    events: tuple[str, ...] = ()
    """About the autoscaler itself."""
    unknown_expanders: tuple[str, ...] = ()
