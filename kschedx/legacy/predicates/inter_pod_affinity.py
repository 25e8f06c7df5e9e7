"""MatchInterPodAffinity in 1.13 (pkg/scheduler/algorithm/predicates/predicates.go and metadata.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.selectors import compile_selector
from kschedx.api.types import Pod, PodAffinityTerm, PodSpec
from kschedx.errors import InputError
from kschedx.findings import Finding, PluginMessage
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Predicate, joined
from kschedx.plugins.inter_pod_affinity.accounts import Accounts
from kschedx.plugins.inter_pod_affinity.domains import DomainSums, present
from kschedx.plugins.inter_pod_affinity.filtering import FilterState
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, ExistingTerms, PodTerms
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import Numbers, Tally
from kschedx.snapshot.rows import ClusterRows, TableRow


class Rules(Struct, frozen=True, kw_only=True):
    """The incoming pod's required terms, and what the pods that exist are to them."""

    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    accounts: FilterState
    """The same counted as the plugin of today does, to explain rejections."""

    @classmethod
    def of(cls, pod: Pod, existing: ExistingTerms, nodes: NodeTable) -> Rules:
        """Raises `InputError` for a selector that is wrong."""
        terms = PodTerms.of_incoming(pod, {})
        return cls(
            affinity=terms.required_affinity,
            anti_affinity=terms.required_anti_affinity,
            accounts=FilterState.of(pod, terms, existing, {}, nodes),
        )

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> Rules:
        return replace(self, accounts=self.accounts.after(nodes, change, sign))

    def explain(self, pod: Pod, nodes: NodeTable, reason: str) -> Callable[[TableRow], tuple[Finding, ...]]:
        """The account of a row; where it was another rule than today's that decided, the reason alone."""
        accounts = Accounts(self.accounts, pod, nodes)
        return lambda row: accounts(row) or (PluginMessage(text=reason),)


class _State(Struct, frozen=True, kw_only=True):
    rules: Rules
    affinity: DomainSums
    """Pods that satisfy all affinity terms of the incoming pod."""
    anti_affinity: DomainSums
    existing: DomainSums
    """Pods with an anti-affinity term that matches the incoming pod."""
    avoided: BoolArray
    """(pod,) pods that any anti-affinity term of the incoming pod matches."""
    returned: BoolArray
    """(pod,) pods that were put back on their node. They then count under every key that the anti-affinity terms have,
    not only under those of the terms that match them."""


class MatchInterPodAffinity(Predicate):
    """Required pod affinity and anti-affinity, in both directions: existing pods' rules first, then the pod's own.

    Every rejection has two reasons: that it is about other pods, and which rule it was.
    """

    _key: StateKey[_State | str] = StateKey("MatchInterPodAffinity")
    """The counts, or what is wrong with the pod's own terms."""

    @cached_property
    def _existing(self) -> ExistingTerms:
        return ExistingTerms(self.context.snapshot.pods)

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        try:
            rules = Rules.of(pod, self._existing, nodes)
            repelling = repelling_pods(pod, nodes, matching_keys, in_own_namespace=True)
        except InputError as wrong:
            state[self._key] = str(wrong)
            return
        pods = nodes.pods
        satisfying = np.full(len(pods), bool(rules.affinity), dtype=np.bool_)
        for term in rules.affinity:
            satisfying &= term.matching(pods)
        avoided = np.zeros(len(pods), dtype=np.bool_)
        per_key: dict[str, IntArray] = {}
        for term in rules.anti_affinity:
            matching = term.matching(pods)
            avoided |= matching
            known = per_key.get(term.topology_key, np.zeros(len(pods), dtype=np.int64))
            per_key[term.topology_key] = np.maximum(known, matching)
        state[self._key] = _State(
            rules=rules,
            affinity=DomainSums.of(nodes, _tallies({term.topology_key: satisfying for term in rules.affinity})),
            anti_affinity=DomainSums.of(nodes, _tallies(per_key)),
            existing=DomainSums.of(nodes, _tallies(repelling)),
            avoided=avoided,
            returned=np.zeros(len(pods), dtype=np.bool_),
        )

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        now = state[self._key]
        if isinstance(now, str):
            return
        # a nominated pod has no node yet, so the incoming pod's own rules do not see it
        running = nodes.pods.node[change.pods] >= 0
        own = PodRows(pods=change.pods[running], nodes=ClusterRows(change.nodes[running]))
        returned = now.returned.copy()
        returned[own.pods] = True
        now = replace(now, returned=returned)
        state[self._key] = _changed(now, nodes, own, change, +1)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        now = state[self._key]
        if not isinstance(now, str):
            state[self._key] = _changed(now, nodes, change, change, -1)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        now = state[self._key]
        era, texts = self.context.era, self.context.era.texts
        if isinstance(now, str):
            wrong = PluginMessage(text=now)
            everywhere = np.ones(len(nodes), dtype=np.bool_)
            return Verdicts.first_of((everywhere, Code.ERROR, now), explain=lambda row: (wrong,))
        rejected = Verdicts.first_of(
            (now.existing.any_positive(nodes.rows), Code.UNSCHEDULABLE, texts.existing_anti_affinity),
            (_lacks_affinity(now, pod, nodes), era.unresolvable, texts.own_affinity),
            (now.anti_affinity.any_positive(nodes.rows), Code.UNSCHEDULABLE, texts.own_anti_affinity),
            explain=now.rules.explain(pod, nodes, texts.pod_affinity),
        )
        about_pods = Verdicts.first_of((rejected.rejected, Code.UNSCHEDULABLE, texts.pod_affinity))
        return joined([about_pods, rejected])


def _tallies(per_pod: Mapping[str, IntArray | BoolArray]) -> dict[str, Tally]:
    return {key: Numbers(numbers.astype(np.int64)) for key, numbers in per_pod.items()}


def _changed(now: _State, nodes: NodeTable, own: PodRows, every: PodRows, sign: int) -> _State:
    """`own` are the pods that the incoming pod's own rules see."""
    fresh = ~now.returned[own.pods]
    first = PodRows(pods=own.pods[fresh], nodes=ClusterRows(own.nodes[fresh]))
    again = PodRows(pods=own.pods[~fresh], nodes=ClusterRows(own.nodes[~fresh]))
    under_all_keys = DomainSums(
        weights=_tallies(dict.fromkeys(now.anti_affinity.weights, now.avoided)),
        sums=now.anti_affinity.after(nodes, first, sign).sums,
        everywhere=now.anti_affinity.everywhere,
    )
    return replace(
        now,
        rules=now.rules.after(nodes, every, sign),
        affinity=now.affinity.after(nodes, own, sign),
        anti_affinity=replace(under_all_keys.after(nodes, again, sign), weights=now.anti_affinity.weights),
        existing=now.existing.after(nodes, every, sign),
    )


def _lacks_affinity(now: _State, pod: Pod, nodes: NodeTable) -> BoolArray:
    """A domain of every term must hold a pod that satisfies all of them; who could be the first such pod goes anywhere,
    even where a node lacks the labels."""
    terms = now.rules.affinity
    if not terms:
        return np.zeros(len(nodes), dtype=np.bool_)
    satisfied = np.ones(len(nodes), dtype=np.bool_)
    for key, sums in now.affinity.sums.items():
        satisfied &= present(nodes.label(key)) & (sums[nodes.rows] > 0)
    if all(term.matches(pod, NO_LABELS) for term in terms):
        satisfied |= now.affinity.everywhere[nodes.rows] == 0
    return ~satisfied


# --- the rules of pods that exist


KeysOf = Callable[[tuple[PodAffinityTerm, ...], Callable[[PodAffinityTerm], bool]], Iterable[str]]
"""The keys under which a pod keeps the incoming one away, from its anti-affinity terms and which of them match."""


def matching_keys(terms: tuple[PodAffinityTerm, ...], matches: Callable[[PodAffinityTerm], bool]) -> Iterable[str]:
    """Those of the terms that match."""
    return (term.topology_key for term in terms if matches(term))


def repelling_pods(pod: Pod, nodes: NodeTable, keys_of: KeysOf, *, in_own_namespace: bool) -> Mapping[str, IntArray]:
    """Topology key to (pod,) 1 for the pods that keep the incoming one away from their domain.

    A term that names no namespaces is about its own pod's; without `in_own_namespace` it is about all of them. Raises
    `InputError` for a selector that is wrong.
    """
    pods = nodes.pods
    keys = {term.topology_key for spec in pods.specs.values for term in anti_affinity_terms(spec)}
    here = pods.namespaces.where(lambda namespace: namespace == pod.metadata.namespace)

    def matches(term: PodAffinityTerm, own: bool) -> bool:
        named = pod.metadata.namespace in term.namespaces if term.namespaces else own
        return named and compile_selector(term.label_selector).matches(pod.metadata.labels)

    def states(spec: PodSpec, key: str, own: bool) -> bool:
        return key in keys_of(anti_affinity_terms(spec), lambda term: matches(term, own))

    weights: dict[str, IntArray] = {}
    for key in keys:
        anywhere = pods.specs.where(partial(states, key=key, own=not in_own_namespace))
        mask = anywhere | (here & pods.specs.where(partial(states, key=key, own=True)))
        weights[key] = mask.astype(np.int64)
    return weights


def anti_affinity_terms(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    rules = spec.affinity.pod_anti_affinity if spec.affinity else None
    return rules.required_during_scheduling_ignored_during_execution if rules else ()
