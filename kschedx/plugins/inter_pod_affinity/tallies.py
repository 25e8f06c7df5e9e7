"""What pods weigh for the terms of an incoming pod, and by their own terms about it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from kschedx.plugins.inter_pod_affinity.terms import AffinityTerm, ExistingTerms
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.pods import PodTable, Tally


class SatisfiesAll(Struct, frozen=True):
    """`weight` for a pod that every one of some resolved terms matches."""

    terms: tuple[AffinityTerm, ...]
    weight: int

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        satisfying = np.ones(len(rows), dtype=np.bool_)
        for term in self.terms:
            satisfying &= term.matching(pods, rows)
        return satisfying * self.weight


class MatchesEach(Struct, frozen=True):
    """The weights of those of some resolved terms that match a pod, added up."""

    terms: tuple[tuple[AffinityTerm, int], ...]

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        total = np.zeros(len(rows), dtype=np.int64)
        for term, weight in self.terms:
            total += term.matching(pods, rows) * weight
        return total


class OfGroup(Struct, frozen=True):
    """A number for the groups of `ExistingTerms`; 0 for pods of all others."""

    numbers: tuple[tuple[int, int], ...]

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        existing = ExistingTerms.of(pods)
        return existing.per_group(dict(self.numbers))[existing.group[rows]]


def weighted_matches(terms: Iterable[tuple[AffinityTerm, int]]) -> dict[str, Tally]:
    """Topology key to the weights of the terms with that key that match a pod."""
    per_key: dict[str, list[tuple[AffinityTerm, int]]] = {}
    for term, weight in terms:
        per_key.setdefault(term.topology_key, []).append((term, weight))
    return {key: MatchesEach(tuple(its)) for key, its in per_key.items()}


def weighted_groups(stated: Iterable[tuple[str, int, int]]) -> dict[str, Tally]:
    """From topology key, group and weight to the weights of a pod's group by key."""
    per_key: dict[str, dict[int, int]] = {}
    for key, group, weight in stated:
        per_group = per_key.setdefault(key, {})
        per_group[group] = per_group.get(group, 0) + weight
    return {key: OfGroup(tuple(sorted(per_group.items()))) for key, per_group in per_key.items()}
