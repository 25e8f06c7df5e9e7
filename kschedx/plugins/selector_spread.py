"""SelectorSpread (pkg/scheduler/framework/plugins/selectorspread): not a default plugin, removed in 1.29."""

from __future__ import annotations

import numpy as np

from kschedx.framework.interface import CycleState, PreScorePlugin, ScorePlugin, StateKey
from kschedx.framework.status import MAX_NODE_SCORE, SUCCESS, Status
from kschedx.kube.selectors import Selector
from kschedx.kube.types import Node, Pod
from kschedx.plugins.pod_topology_spread import default_selector
from kschedx.snapshot.columns import Column, FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable

ZONE_WEIGHTING = 2.0 / 3.0  # the weight of the zone's pods; the node's pods have the rest

_ZONE_LABELS = (
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
)

_SELECTOR: StateKey[Selector] = StateKey("PreScoreSelectorSpread")


class SelectorSpread(PreScorePlugin, ScorePlugin):
    """Spreads the pods of a service or controller over nodes and zones, unless the pod has its own constraints."""

    name = "SelectorSpread"

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        if not pod.spec.topology_spread_constraints:
            state[_SELECTOR] = default_selector(pod, self.handle.snapshot)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        """(node,) the number of pods on the node that the selector matches."""
        if pod.spec.topology_spread_constraints:
            return np.zeros(len(nodes), dtype=np.int64)
        selector = state[_SELECTOR]
        if selector.empty:
            return np.zeros(len(nodes), dtype=np.int64)
        pods = nodes.pods
        counted = pods.labels.where(selector.matches) & ~pods.terminating
        counted &= pods.in_namespace(pod.metadata.namespace)
        return nodes.count_where(counted)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) 100 without matching pods on the node and in its zone, less with more of them."""
        if pod.spec.topology_spread_constraints:
            return scores
        own = share_left(scores, int(scores.max(initial=0)), MAX_NODE_SCORE)
        zones = Column.of(_zone(nodes.node(row)) for row in nodes.each())
        per_zone = np.bincount(zones.codes, weights=scores, minlength=len(zones.values)).astype(np.int64)
        zoned = zones.where(bool)
        most = max((int(count) for zone, count in zip(zones.values, per_zone, strict=True) if zone), default=0)
        of_zone = share_left(per_zone[zones.codes], most, MAX_NODE_SCORE)
        both = (own * (1.0 - ZONE_WEIGHTING)) + (ZONE_WEIGHTING * of_zone)
        return np.where(zoned, both, own).astype(np.int64)


def share_left(counts: IntArray, most: int, highest: int) -> FloatArray:
    """Return the highest score for a count of 0, and 0 for the largest."""
    if most == 0:
        return np.full(len(counts), float(highest))
    share: FloatArray = float(highest) * ((most - counts).astype(np.float64) / float(most))
    return share


def _zone(node: Node) -> str:
    """Return region and zone as one name, or an empty string for a node without both."""
    labels = node.metadata.labels
    names = [next((labels[key] for key in keys if key in labels), "") for keys in _ZONE_LABELS]
    return "\0".join(names) if any(names) else ""
