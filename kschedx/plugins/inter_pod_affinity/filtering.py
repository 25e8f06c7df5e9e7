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
from kschedx.plugins.inter_pod_affinity.tallies import SatisfiesAll, weighted_groups, weighted_matches
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, ExistingTerms, PodTerms
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import Tally


class FilterState(Struct, frozen=True, kw_only=True):
    """The counts behind the three rules."""

    affinity_terms: tuple[AffinityTerm, ...]
    """The incoming pod's required terms."""
    anti_affinity_terms: tuple[AffinityTerm, ...]
    matches_itself: bool
    """The incoming pod satisfies all of its own affinity terms."""
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
        namespace_labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
        repelling = {
            group: its.required_anti_affinity
            for group, its in existing.about_pod(pod, namespace_labels)
            if its.required_anti_affinity
        }
        return cls(
            affinity_terms=affinity,
            anti_affinity_terms=anti_affinity,
            matches_itself=bool(affinity) and all(term.matches(pod, NO_LABELS) for term in affinity),
            repelling=repelling,
            existing=existing,
            affinity=DomainSums.of(nodes, _satisfying(affinity)),
            anti_affinity=DomainSums.of(nodes, weighted_matches((term, 1) for term in anti_affinity)),
            existing_anti_affinity=DomainSums.of(nodes, _repelling_weights(repelling)),
        )

    @property
    def decides_nothing(self) -> bool:
        """The incoming pod requires nothing, and no pod that runs keeps it away from any domain."""
        return not (self.affinity_terms or self.anti_affinity_terms or self.existing_anti_affinity.everywhere.any())

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> FilterState:
        """The counts after pods were added (sign +1) or removed (-1), each seen by its own node alone."""
        return replace(
            self,
            affinity=self.affinity.after(nodes, change, sign),
            anti_affinity=self.anti_affinity.after(nodes, change, sign),
            existing_anti_affinity=self.existing_anti_affinity.after(nodes, change, sign),
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


def _satisfying(terms: tuple[AffinityTerm, ...]) -> dict[str, Tally]:
    """Topology key to the number of terms with that key, for pods that satisfy all terms."""
    keys = [term.topology_key for term in terms]
    return {key: SatisfiesAll(terms, keys.count(key)) for key in keys}


def _repelling_weights(repelling: Mapping[int, tuple[AffinityTerm, ...]]) -> dict[str, Tally]:
    """Topology key to the number of the pod's own terms with that key that match the incoming pod."""
    return weighted_groups((term.topology_key, group, 1) for group, terms in repelling.items() for term in terms)
