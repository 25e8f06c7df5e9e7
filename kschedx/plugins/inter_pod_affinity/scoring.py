"""What PreScore adds up for Score. Upstream: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kschedx.api.types import Labels, Pod
from kschedx.framework.outcome import MAX_NODE_SCORE
from kschedx.framework.state import StateKey
from kschedx.plugins.inter_pod_affinity.domains import DomainSums
from kschedx.plugins.inter_pod_affinity.tallies import weighted_groups, weighted_matches
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
    namespace_labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
    own = tuple(_signed(terms))
    stated: list[tuple[str, int, int]] = []
    for group, its in existing.about_pod(pod, namespace_labels):
        required = its.required_affinity if hard_pod_affinity_weight > 0 else ()
        for term, weight in (*((one, hard_pod_affinity_weight) for one in required), *_signed(its)):
            stated.append((term.topology_key, group, weight))

    scores = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
    for weights in (weighted_matches(own), weighted_groups(stated)):
        for sums in DomainSums.of(nodes, weights).sums.values():
            scores += sums
    if scores.any():
        return scores
    met = weighted_matches((term, 1) for term, _ in own), weighted_groups((key, group, 1) for key, group, _ in stated)
    return scores if any(DomainSums.of(nodes, meetings).everywhere.any() for meetings in met) else None


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
