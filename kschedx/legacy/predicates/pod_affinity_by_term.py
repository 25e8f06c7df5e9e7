"""MatchInterPodAffinity in 1.5 (plugin/pkg/scheduler/algorithm/predicates/predicates.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.types import Pod, PodAffinityTerm
from kschedx.errors import InputError
from kschedx.findings import PluginMessage
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Predicate
from kschedx.legacy.predicates.inter_pod_affinity import Rules, repelling_pods
from kschedx.plugins.inter_pod_affinity.domains import DomainSums
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, ExistingTerms
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import Numbers


class _State(Struct, frozen=True, kw_only=True):
    rules: Rules
    existing: DomainSums


class MatchInterPodAffinityByTerm(Predicate):
    """Each affinity term looks for a pod of its own, and each may be the first of its kind.

    Of a running pod with several anti-affinity terms, one that matches has the topology key of the last one: upstream
    remembers the terms by the address of its loop variable. And one that names no namespaces is about all of them.
    """

    _key: StateKey[_State | str] = StateKey("MatchInterPodAffinityByTerm")

    @cached_property
    def _existing(self) -> ExistingTerms:
        return ExistingTerms(self.context.snapshot.pods)

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        try:
            per_pod = repelling_pods(pod, nodes, last_key_if_any_matches, in_own_namespace=False)
            repelling = {key: Numbers(numbers) for key, numbers in per_pod.items()}
            state[self._key] = _State(
                rules=Rules.of(pod, self._existing, nodes),
                existing=DomainSums.of(nodes, repelling),
            )
        except InputError as wrong:
            state[self._key] = str(wrong)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        now, reason = state[self._key], self.context.era.texts.pod_affinity
        if isinstance(now, str):
            wrong = PluginMessage(text=now)
            everywhere = np.ones(len(nodes), dtype=np.bool_)
            return Verdicts.first_of((everywhere, Code.ERROR, now), explain=lambda row: (wrong,))
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        for key, sums in now.existing.sums.items():
            rejected |= _labelled(key, nodes) & (sums[nodes.rows] > 0)
        for term in now.rules.affinity:
            near, anywhere = _neighbours(term, nodes)
            first_of_its_kind = not anywhere and term.matches(pod, NO_LABELS)
            rejected |= ~near & ~np.full(len(nodes), first_of_its_kind)
        for term in now.rules.anti_affinity:
            rejected |= _neighbours(term, nodes)[0]
        return Verdicts.first_of(
            (rejected, self.context.era.unresolvable, reason), explain=now.rules.explain(pod, nodes, reason)
        )


def last_key_if_any_matches(
    terms: tuple[PodAffinityTerm, ...], matches: Callable[[PodAffinityTerm], bool]
) -> Iterable[str]:
    return (terms[-1].topology_key,) if any(map(matches, terms)) else ()


def _neighbours(term: AffinityTerm, nodes: NodeTable) -> tuple[BoolArray, bool]:
    """(node,) whether a pod that the term matches is in the node's domain, and whether one is anywhere."""
    matching = term.matching(nodes.pods)
    sums = DomainSums.of(nodes, {term.topology_key: Numbers(matching.astype(np.int64))}).sums[term.topology_key]
    near: BoolArray = _labelled(term.topology_key, nodes) & (sums[nodes.rows] > 0)
    return near, bool((matching & (nodes.pods.node >= 0)).any())


def _labelled(key: str, nodes: NodeTable) -> BoolArray:
    """(node,) a label without a value is none."""
    return nodes.label(key).where(bool)
