"""A pod's topology spread constraints, and the nodes whose pods they count.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/common.go, and the system defaults in plugin.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.selectors import Selector, compile_selector, required_node_affinity, selector_from_set
from kschedx.api.tolerations import DO_NOT_SCHEDULE as NO_SCHEDULE_EFFECTS
from kschedx.api.tolerations import untolerated
from kschedx.api.types import Pod, TopologySpreadConstraint
from kschedx.framework.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.interface import Handle
from kschedx.plugins.pod_topology_spread.default_selector import default_selector
from kschedx.plugins.pod_topology_spread.matching import MatchingPods
from kschedx.releases import Release
from kschedx.snapshot.columns import BoolArray, Column
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.selection import where_required

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)
"""What a pod without constraints gets, unless the profile lists others."""


class Constraint(Struct, frozen=True, kw_only=True):
    """A constraint with its selector compiled and everything that it leaves out filled in."""

    index: int
    """Position in spec.topologySpreadConstraints, or among the default constraints."""
    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Only nodes that the pod's nodeSelector and required node affinity match are counted."""
    honors_taints: bool
    """Only nodes whose taints the pod tolerates are counted."""

    @classmethod
    def of(cls, index: int, written: TopologySpreadConstraint, pod: Pod, release: Release) -> Self:
        """As far as the release reads its fields. Raises `InputError` for a selector that cannot be parsed."""
        selector = compile_selector(written.label_selector)
        if release.enabled("MatchLabelKeysInPodTopologySpread") and selector.selectable:
            own = {key: pod.metadata.labels[key] for key in written.match_label_keys if key in pod.metadata.labels}
            selector = selector_from_set(own).add(selector.requirements)
        min_domains = 1 if written.min_domains is None else written.min_domains
        reads_policies = release.enabled("NodeInclusionPolicyInPodTopologySpread")
        return cls(
            index=index,
            max_skew=written.max_skew,
            topology_key=written.topology_key,
            selector=selector,
            min_domains=min_domains if release.enabled("MinDomainsInPodTopologySpread") else 0,
            honors_affinity=not reads_policies or (written.node_affinity_policy or HONOR) == HONOR,
            honors_taints=reads_policies and (written.node_taints_policy or IGNORE) == HONOR,
        )


class ConstraintRules:
    """Which constraints hold for a pod under a profile."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._handle = handle
        self._system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_DEFAULTS if self._system_defaulted else args.default_constraints

    def of(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """The pod's constraints with this whenUnsatisfiable, or the default ones where it has none of either kind.

        Default constraints select what `default_selector` deduces, and do not hold where that is nothing. Raises
        `InputError` for a selector that cannot be parsed.
        """
        written = pod.spec.topology_spread_constraints
        if written:
            return self._compiled(written, pod, action)
        constraints = self._compiled(self._defaults, pod, action)
        selector = default_selector(pod, self._handle.snapshot) if constraints else Selector()
        return () if selector.empty else tuple(replace(one, selector=selector) for one in constraints)

    def _compiled(self, written: Iterable[TopologySpreadConstraint], pod: Pod, action: str) -> tuple[Constraint, ...]:
        return tuple(
            Constraint.of(index, one, pod, self._handle.release)
            for index, one in enumerate(written)
            if one.when_unsatisfiable == action
        )

    def requires_all_topologies(self, pod: Pod) -> bool:
        """Whether a node must have the labels of all soft constraints to be scored.

        The system defaults do not ask for it, so that clusters without zones are still spread over hosts.
        """
        return bool(pod.spec.topology_spread_constraints) or not self._system_defaulted

    def matching_pods(self, pod: Pod, nodes: NodeTable) -> MatchingPods:
        """The pods that constraints of `pod` can count."""
        every = self._handle.release.behaviour.empty_selector_counts_every_pod
        return MatchingPods(nodes.pods, pod.metadata.namespace, empty_counts_all=every)

    def counted(self, constraint: Constraint, pod: Pod, nodes: NodeTable) -> BoolArray:
        """(node,) whether the constraint's inclusion policies let a node's pods, and its domain, count."""
        counted = np.ones(len(nodes), dtype=np.bool_)
        if constraint.honors_affinity:
            affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
            required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
            counted &= where_required(required_node_affinity(pod.spec.node_selector, required), nodes)
        if constraint.honors_taints:
            tolerations = pod.spec.tolerations
            comparison = self._handle.release.enabled("TaintTolerationComparisonOperators")
            counted &= nodes.taints.where(
                lambda taints: (
                    untolerated(taints, tolerations, effects=NO_SCHEDULE_EFFECTS, comparison=comparison) is None
                )
            )
        return counted


def where_labelled(constraints: Iterable[Constraint], nodes: NodeTable) -> BoolArray:
    """(node,) whether a node has the topology label of every constraint."""
    labelled = np.ones(len(nodes), dtype=np.bool_)
    for constraint in constraints:
        labelled &= where_present(nodes.label(constraint.topology_key))
    return labelled


def where_present(label: Column[str | None]) -> BoolArray:
    """(row,) whether there is a value. As `where`, but fast for a label that differs on every node."""
    absent = label.values.index(None) if None in label.values else -1
    present: BoolArray = label.codes != absent
    return present
