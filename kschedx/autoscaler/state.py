"""The cluster as the cluster-autoscaler sees it before it looks at any group.

Upstream: RunOnce in core/static_autoscaler.go, clusterstate/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.types import Node, Pod
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.groups import Group, GroupOfNode, NodeState, groups_of, node_states
from kschedx.autoscaler.kinds import PodKinds
from kschedx.autoscaler.pods import Arranged, arrange, is_allowed, is_expendable
from kschedx.autoscaler.status import AutoscalerStatus
from kschedx.autoscaler.templates import CloudTemplate, Template, TemplateMaker, choose_templates, daemon_sets
from kschedx.framework.runtime import Framework, request_options
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow


class Setup(Struct, frozen=True, kw_only=True):
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


class State:
    """Everything here is read from the cluster, and nothing changes."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.flags = setup.flags
        self.behaviour = setup.behaviour
        self.snapshot = setup.framework.snapshot
        self.pods: PodTable = self.snapshot.pods
        self.nodes: Sequence[Node] = self.snapshot.cluster.nodes
        self.options = request_options(setup.framework.release)
        self.kinds = PodKinds(self.pods)

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
    def groups(self) -> tuple[Group, ...]:
        """In the order of the status."""
        return groups_of(self.setup.status.groups, self.states, self.behaviour)

    @cached_property
    def by_name(self) -> dict[str, Group]:
        """The groups."""
        return {group.name: group for group in self.groups}
