"""NodeDeclaredFeatures (pkg/scheduler/framework/plugins/nodedeclaredfeatures)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain
from typing import ClassVar

import numpy as np

from kschedx.findings import MissingNodeFeatures
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.types import Pod
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import Column
from kschedx.snapshot.nodes import NodeTable

_REQUIRED: StateKey[frozenset[str]] = StateKey(
    "PreFilterNodeDeclaredFeatures", 'error reading "{}" from cycle-state: not found'
)


def _restarts_all_containers(pod: Pod) -> bool:
    containers = chain(pod.spec.containers, pod.spec.init_containers)
    return any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules)


def _user_namespace_on_host_network(pod: Pod) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


_INFERENCES: Mapping[str, Callable[[Pod], bool]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _user_namespace_on_host_network,
}
"""Feature to the rule that decides whether a pod needs it (component-helpers/nodedeclaredfeatures). Features that
matter only for pod updates are not evaluated."""

KNOWN = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
"""Every feature that the scheduler of this version knows, sorted."""


def _read_features(declared: Iterable[str]) -> frozenset[str]:
    """Return the known features in a node's list. kube-scheduler expects a sorted list and misses a feature that is out
    of order."""
    features: set[str] = set()
    position = 0
    for feature in declared:
        while position < len(KNOWN) and KNOWN[position] < feature:
            position += 1
        if position < len(KNOWN) and KNOWN[position] == feature:
            features.add(feature)
            position += 1
    return frozenset(features)


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Rejects nodes whose kubelet does not declare the features that the pod's spec needs."""

    name = "NodeDeclaredFeatures"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"missing-node-features": texts_of_all_releases("unmatched_declared_features")}

    def reads(self, pod: Pod) -> Hashable:
        return tuple(needs(pod) for needs in _INFERENCES.values())

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if not self.handle.release.enabled("NodeDeclaredFeatures"):
            return PRE_FILTER_SKIP
        inferences = dict(_INFERENCES)
        if not self.handle.release.behavior.user_namespace_on_host_network_is_inferred:
            del inferences["UserNamespacesHostNetworkSupport"]
        required = frozenset(feature for feature, needs in inferences.items() if needs(pod))
        if not required:
            return PRE_FILTER_SKIP
        state[_REQUIRED] = required
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if not self.handle.release.enabled("NodeDeclaredFeatures"):
            return Verdicts.success(len(nodes))
        required = state[_REQUIRED]
        read = _read_features if self.handle.release.behavior.declared_features_are_read_in_order else frozenset
        missing = [tuple(sorted(required - read(declared))) for declared in nodes.declared_features.values]
        text = self.handle.release.messages.unmatched_declared_features
        codes = [Code.UNSCHEDULABLE_AND_UNRESOLVABLE if names else Code.SUCCESS for names in missing]
        reasons = [(text.format(missing=", ".join(names)),) if names else () for names in missing]
        of_node = nodes.declared_features.codes
        return Verdicts(
            codes=np.array(codes, dtype=np.int64)[of_node],
            reasons=Column(of_node, reasons),
            explain=lambda row: (
                MissingNodeFeatures(required=tuple(sorted(required)), missing=missing[int(of_node[row])]),
            ),
        )
