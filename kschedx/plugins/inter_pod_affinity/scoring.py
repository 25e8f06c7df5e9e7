"""What PreScore adds up for Score. Upstream: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kschedx.api.types import Labels, Pod
from kschedx.framework.interface import MAX_NODE_SCORE
from kschedx.framework.state import StateKey
from kschedx.plugins.inter_pod_affinity.domains import DomainSums
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, ExistingTerms, PodTerms
from kschedx.snapshot.columns import FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable

SCORES: StateKey[IntArray] = StateKey("PreScoreInterPodAffinity", 'failed to read "{}" from cycleState: not found')
"""(node,) raw scores of the whole cluster's nodes."""


def has_preferred_terms(pod: Pod) -> bool:
    """Whether the pod itself prefers or avoids the neighbourhood of others."""
    affinity = pod.spec.affinity
    return affinity is not None and any(
        rules is not None and rules.preferred_during_scheduling_ignored_during_execution
        for rules in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )


def raw_scores(
    pod: Pod,
    terms: PodTerms,
    existing: ExistingTerms,
    namespaces: Mapping[str, Labels],
    nodes: NodeTable,
    hard_pod_affinity_weight: int,
) -> IntArray | None:
    """(node,) int64 for every node of the cluster: the weights of what its domain holds, for each topology key.

    Pods on nodes that were filtered out count too: they share domains with feasible ones. None where no term meets a
    pod that runs in a domain of its key, which is not the same as weights that cancel out.
    """
    weights: dict[str, IntArray] = {}
    meetings: dict[str, IntArray] = {}

    def add(key: str, weight: IntArray, meeting: IntArray) -> None:
        weights[key] = weights.get(key, 0) + weight
        meetings[key] = meetings.get(key, 0) + meeting

    for term, weight in _signed(terms):
        matching = term.matching(nodes.pods).astype(np.int64)
        add(term.topology_key, weight * matching, matching)

    namespace_labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
    per_key: dict[str, dict[int, int]] = {}
    for group, its in existing.about(pod.metadata.namespace):
        required = its.required_affinity if hard_pod_affinity_weight > 0 else ()
        for term, weight in (*((one, hard_pod_affinity_weight) for one in required), *_signed(its)):
            if term.matches(pod, namespace_labels):
                per_group = per_key.setdefault(term.topology_key, {})
                per_group[group] = per_group.get(group, 0) + weight
    for key, per_group in per_key.items():
        add(key, existing.per_pod(per_group), existing.per_pod(dict.fromkeys(per_group, 1)))

    if not DomainSums.of(nodes, meetings).everywhere.any():
        return None
    scores = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
    for sums in DomainSums.of(nodes, weights).sums.values():
        scores += sums
    return scores


def _signed(terms: PodTerms) -> Iterator[tuple[AffinityTerm, int]]:
    """Preferred terms with what a match is worth."""
    for term in terms.preferred_affinity:
        yield term, term.weight
    for term in terms.preferred_anti_affinity:
        yield term, -term.weight


def normalized(scores: IntArray) -> IntArray:
    """(node,) 0 for the lowest score to 100 for the highest; all 0 where they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if highest == lowest:
        return np.zeros(len(scores), dtype=np.int64)
    share: FloatArray = (scores - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * share).astype(np.int64)
