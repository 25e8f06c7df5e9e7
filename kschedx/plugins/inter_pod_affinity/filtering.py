"""What PreFilter counts for Filter, and the rules that Filter applies to it.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Labels, Pod
from kschedx.framework.state import StateKey
from kschedx.plugins.inter_pod_affinity.domains import DomainSums, present
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, ExistingTerms, PodTerms
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows


class FilterState(Struct, frozen=True, kw_only=True):
    """The counts behind the three rules. Pods that wait are in the (pod,) arrays too: they may be added."""

    affinity_terms: tuple[AffinityTerm, ...]
    """The incoming pod's required terms."""
    anti_affinity_terms: tuple[AffinityTerm, ...]
    matches_itself: bool
    """The incoming pod satisfies all of its own affinity terms."""
    satisfying: BoolArray
    """(pod,) pods that satisfy all affinity terms of the incoming pod."""
    conflicting: tuple[BoolArray, ...]
    """For each anti-affinity term of the incoming pod, (pod,) the pods that it matches."""
    repelling: Mapping[int, tuple[AffinityTerm, ...]]
    """Groups of existing pods to their anti-affinity terms that match the incoming pod."""
    existing: ExistingTerms

    affinity: DomainSums
    anti_affinity: DomainSums
    existing_anti_affinity: DomainSums

    @classmethod
    def of(
        cls, pod: Pod, terms: PodTerms, existing: ExistingTerms, namespaces: Mapping[str, Labels], nodes: NodeTable
    ) -> FilterState:
        """The counts over the whole cluster."""
        affinity, anti_affinity = terms.required_affinity, terms.required_anti_affinity
        satisfying = np.full(len(nodes.pods), bool(affinity), dtype=np.bool_)
        for term in affinity:
            satisfying &= term.matching(nodes.pods)
        conflicting = tuple(term.matching(nodes.pods) for term in anti_affinity)
        namespace_labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
        repelling = {
            group: matching
            for group, its in existing.about(pod.metadata.namespace)
            if (matching := tuple(one for one in its.required_anti_affinity if one.matches(pod, namespace_labels)))
        }
        return cls(
            affinity_terms=affinity,
            anti_affinity_terms=anti_affinity,
            matches_itself=bool(affinity) and all(term.matches(pod, NO_LABELS) for term in affinity),
            satisfying=satisfying,
            conflicting=conflicting,
            repelling=repelling,
            existing=existing,
            affinity=DomainSums.of(nodes, _weights(affinity, [satisfying] * len(affinity))),
            anti_affinity=DomainSums.of(nodes, _weights(anti_affinity, conflicting)),
            existing_anti_affinity=DomainSums.of(nodes, _repelling_weights(repelling, existing)),
        )

    @property
    def decides_nothing(self) -> bool:
        """The incoming pod requires nothing, and no pod that runs keeps it away from any domain."""
        return not (self.affinity_terms or self.anti_affinity_terms or self.existing_anti_affinity.everywhere.any())

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> FilterState:
        """The counts after pods were added (sign +1) or removed (-1), each seen by its own node alone."""
        return replace(
            self,
            affinity=self.affinity.after(nodes.cluster, change, sign),
            anti_affinity=self.anti_affinity.after(nodes.cluster, change, sign),
            existing_anti_affinity=self.existing_anti_affinity.after(nodes.cluster, change, sign),
        )

    # --- the rules; (row,) for the nodes of a table, True where the node fails

    def lacks_affinity(self, nodes: NodeTable) -> BoolArray:
        """A node must have every topology label, and a pod that satisfies all terms in each of those domains.

        The first pod of a group that is to stay together finds nobody: where no pod anywhere satisfies the terms, and
        the pod itself does, the labels are enough.
        """
        lacks_label = np.zeros(len(nodes), dtype=np.bool_)
        finds_nobody = np.zeros(len(nodes), dtype=np.bool_)
        for key, sums in self.affinity.sums.items():
            lacks_label |= ~present(nodes.label(key))
            finds_nobody |= sums[nodes.rows] <= 0
        if self.matches_itself:
            finds_nobody &= self.affinity.everywhere[nodes.rows] != 0
        return lacks_label | finds_nobody

    def breaks_anti_affinity(self, nodes: NodeTable) -> BoolArray:
        return self.anti_affinity.any_positive(nodes.rows)

    def breaks_existing_anti_affinity(self, nodes: NodeTable) -> BoolArray:
        return self.existing_anti_affinity.any_positive(nodes.rows)


FILTER: StateKey[FilterState] = StateKey("PreFilterInterPodAffinity", 'error reading "{}" from cycleState: not found')


def _weights(terms: tuple[AffinityTerm, ...], matching: list[BoolArray] | tuple[BoolArray, ...]) -> dict[str, IntArray]:
    """Topology key to (pod,) the number of terms with that key that match the pod."""
    weights: dict[str, IntArray] = {}
    for term, mask in zip(terms, matching, strict=True):
        weights[term.topology_key] = weights.get(term.topology_key, 0) + mask.astype(np.int64)
    return weights


def _repelling_weights(
    repelling: Mapping[int, tuple[AffinityTerm, ...]], existing: ExistingTerms
) -> dict[str, IntArray]:
    """Topology key to (pod,) the number of the pod's own terms with that key that match the incoming pod."""
    per_key: dict[str, dict[int, int]] = {}
    for group, terms in repelling.items():
        for term in terms:
            per_group = per_key.setdefault(term.topology_key, {})
            per_group[group] = per_group.get(group, 0) + 1
    return {key: existing.per_pod(per_group) for key, per_group in per_key.items()}
