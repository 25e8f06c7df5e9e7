"""Predicates about other pods: MatchInterPodAffinity of 1.13 and 1.5, and CheckServiceAffinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import Finding, PluginMessage
from kschedx.framework.interface import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts, worded_error
from kschedx.kube.selectors import compile_selector, selector_from_set
from kschedx.kube.types import Labels, Pod, PodAffinityTerm, PodSpec
from kschedx.legacy.interface import Predicate, PredicateContext, join_verdicts
from kschedx.plugins.inter_pod_affinity.plugin import Accounts, FilterState
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, DomainSums, ExistingTerms, PodTerms
from kschedx.snapshot.columns import BoolArray, ClusterRows, IntArray, TableRow
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable, Tally

# MatchInterPodAffinity in 1.13 (pkg/scheduler/algorithm/predicates/predicates.go and metadata.go).


class _Rules(Struct, frozen=True, kw_only=True):
    """The incoming pod's required terms, and how existing pods relate to them."""

    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    accounts: FilterState  # the same counts as in the current plugin, to explain rejections

    @classmethod
    def of(cls, pod: Pod, existing: ExistingTerms, nodes: NodeTable) -> _Rules:
        """Compute the rules. Raises `InputError` for an invalid selector."""
        terms = PodTerms.of_incoming(pod, {})
        return cls(
            affinity=terms.required_affinity,
            anti_affinity=terms.required_anti_affinity,
            accounts=FilterState.of(pod, terms, existing, {}, nodes),
        )

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> _Rules:
        return replace(self, accounts=self.accounts.after(nodes, change, sign))

    def explain(self, pod: Pod, nodes: NodeTable, reason: str) -> Callable[[TableRow], tuple[Finding, ...]]:
        """Return a function that explains a row: the current plugin's findings, or the reason alone if a different rule
        decides."""
        accounts = Accounts(self.accounts, pod, nodes)
        return lambda row: accounts(row) or (PluginMessage(text=reason),)


class _State(Struct, frozen=True, kw_only=True):
    rules: _Rules
    affinity: DomainSums  # pods that satisfy all affinity terms of the incoming pod
    anti_affinity: DomainSums
    existing: DomainSums  # pods with an anti-affinity term that matches the incoming pod
    avoided: BoolArray  # (pod,) pods that any anti-affinity term of the incoming pod matches
    returned: BoolArray
    """(pod,) pods that were added back to their node. They then count under every topology key of the anti-affinity
    terms, not only under the keys of the terms that match them."""


class MatchInterPodAffinity(Predicate):
    """Required pod affinity and anti-affinity, in both directions: existing pods' rules first, then the pod's own.

    Every rejection has two reasons: a general one for pod affinity, and one for the rule.
    """

    _key: StateKey[_State | str] = StateKey("MatchInterPodAffinity")
    """The counts, or the error about an invalid selector."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        try:
            rules = _Rules.of(pod, self.context.existing_terms, nodes)
            repelling = _repelling_pods(pod, nodes, _matching_keys, in_own_namespace=True)
        except InputError as wrong:
            state[self._key] = str(wrong)
            return
        pods = nodes.pods
        satisfying = np.full(len(pods), bool(rules.affinity), dtype=np.bool_)
        for term in rules.affinity:
            satisfying &= term.matching_pods(pods)
        avoided = np.zeros(len(pods), dtype=np.bool_)
        per_key: dict[str, IntArray] = {}
        for term in rules.anti_affinity:
            matching = term.matching_pods(pods)
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
        # a nominated pod has no node yet, so the incoming pod's own rules do not count it
        running = nodes.pods.node[change.pods] >= 0
        own = PodRows(pods=change.pods[running], nodes=ClusterRows(change.nodes[running]))
        returned = now.returned.copy()
        returned[own.pods] = True
        now = replace(now, returned=returned)
        state[self._key] = _state_after(now, nodes, own, change, +1)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        now = state[self._key]
        if not isinstance(now, str):
            state[self._key] = _state_after(now, nodes, change, change, -1)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        now = state[self._key]
        era, texts = self.context.era, self.context.era.texts
        if isinstance(now, str):
            return Verdicts.everywhere(len(nodes), worded_error(now))
        rejected = Verdicts.first_of(
            (now.existing.any_positive(nodes), Code.UNSCHEDULABLE, texts.existing_anti_affinity),
            (_lacks_affinity(now, pod, nodes), era.unresolvable, texts.own_affinity),
            (now.anti_affinity.any_positive(nodes), Code.UNSCHEDULABLE, texts.own_anti_affinity),
            explain=now.rules.explain(pod, nodes, texts.pod_affinity),
        )
        about_pods = Verdicts.first_of((rejected.rejected, Code.UNSCHEDULABLE, texts.pod_affinity))
        return join_verdicts([about_pods, rejected])


class _Numbers:
    """A tally that is computed for every pod of a table and equals only itself."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: IntArray) -> None:
        """`numbers` is (pod,)."""
        self._numbers = numbers

    def candidates(self, pods: PodTable) -> IntArray:
        return np.arange(len(pods))

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        return self._numbers[rows]


def _tallies(per_pod: Mapping[str, IntArray | BoolArray]) -> dict[str, Tally]:
    return {key: _Numbers(numbers.astype(np.int64)) for key, numbers in per_pod.items()}


def _state_after(now: _State, nodes: NodeTable, own: PodRows, every: PodRows, sign: int) -> _State:
    """Return the state after pods are added (`sign` 1) or removed (-1). `own` are the pods that the incoming pod's own
    rules count."""
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
    """Return (node,) whether the node fails the pod's required affinity.

    For every term, the node's domain must have a pod that satisfies all terms. A pod that could itself be the first
    such pod fits any node, even a node without the labels.
    """
    terms = now.rules.affinity
    if not terms:
        return np.zeros(len(nodes), dtype=np.bool_)
    satisfied = np.ones(len(nodes), dtype=np.bool_)
    for key, sums in now.affinity.sums.items():
        satisfied &= nodes.label(key).present & (sums[nodes.rows] > 0)
    if all(term.matches(pod, NO_LABELS) for term in terms):
        satisfied |= now.affinity.everywhere[nodes.rows] == 0
    return ~satisfied


# --- the rules of existing pods


_KeysOf = Callable[[tuple[PodAffinityTerm, ...], Callable[[PodAffinityTerm], bool]], Iterable[str]]
"""Returns the topology keys under which a pod rejects the incoming pod. Arguments: its anti-affinity terms, and whether
a term matches."""


def _matching_keys(terms: tuple[PodAffinityTerm, ...], matches: Callable[[PodAffinityTerm], bool]) -> Iterable[str]:
    return (term.topology_key for term in terms if matches(term))


def _repelling_pods(pod: Pod, nodes: NodeTable, keys_of: _KeysOf, *, in_own_namespace: bool) -> Mapping[str, IntArray]:
    """Return topology key to (pod,) 1 for the pods that keep the incoming pod out of their domain.

    A term without namespaces applies to its own pod's namespace, or to all namespaces without `in_own_namespace`.
    Raises `InputError` for an invalid selector.
    """
    pods = nodes.pods
    keys = {term.topology_key for spec in pods.specs.values for term in _anti_affinity_terms(spec)}
    here = pods.in_namespace(pod.metadata.namespace)

    def matches(term: PodAffinityTerm, own: bool) -> bool:
        named = pod.metadata.namespace in term.namespaces if term.namespaces else own
        return named and compile_selector(term.label_selector).matches(pod.metadata.labels)

    def states(spec: PodSpec, key: str, own: bool) -> bool:
        return key in keys_of(_anti_affinity_terms(spec), lambda term: matches(term, own))

    weights: dict[str, IntArray] = {}
    for key in keys:
        anywhere = pods.specs.where(partial(states, key=key, own=not in_own_namespace))
        mask = anywhere | (here & pods.specs.where(partial(states, key=key, own=True)))
        weights[key] = mask.astype(np.int64)
    return weights


def _anti_affinity_terms(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    rules = spec.affinity.pod_anti_affinity if spec.affinity else None
    return rules.required_during_scheduling_ignored_during_execution if rules else ()


# MatchInterPodAffinity in 1.5 (plugin/pkg/scheduler/algorithm/predicates/predicates.go).


class _TermState(Struct, frozen=True, kw_only=True):
    rules: _Rules
    existing: DomainSums


class MatchInterPodAffinityByTerm(Predicate):
    """Required pod affinity and anti-affinity of 1.5, in which a different pod may satisfy each affinity term.

    A pod that itself matches a term satisfies it if no other pod does. If a running pod has several anti-affinity
    terms, a term that matches gets the topology key of the last one: upstream stores the terms by the address of its
    loop variable. A running pod's term without namespaces applies to all namespaces.
    """

    _key: StateKey[_TermState | str] = StateKey("MatchInterPodAffinityByTerm")

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        try:
            per_pod = _repelling_pods(pod, nodes, _last_key_if_any_matches, in_own_namespace=False)
            repelling = {key: _Numbers(numbers) for key, numbers in per_pod.items()}
            state[self._key] = _TermState(
                rules=_Rules.of(pod, self.context.existing_terms, nodes),
                existing=DomainSums.of(nodes, repelling),
            )
        except InputError as wrong:
            state[self._key] = str(wrong)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        now, reason = state[self._key], self.context.era.texts.pod_affinity
        if isinstance(now, str):
            return Verdicts.everywhere(len(nodes), worded_error(now))
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        for key, sums in now.existing.sums.items():
            rejected |= _where_label(key, nodes) & (sums[nodes.rows] > 0)
        for term in now.rules.affinity:
            near, anywhere = _neighbours(term, nodes)
            first_of_its_kind = not anywhere and term.matches(pod, NO_LABELS)
            rejected |= ~near & ~np.full(len(nodes), first_of_its_kind)
        for term in now.rules.anti_affinity:
            rejected |= _neighbours(term, nodes)[0]
        return Verdicts.first_of(
            (rejected, self.context.era.unresolvable, reason), explain=now.rules.explain(pod, nodes, reason)
        )


def _last_key_if_any_matches(
    terms: tuple[PodAffinityTerm, ...], matches: Callable[[PodAffinityTerm], bool]
) -> Iterable[str]:
    return (terms[-1].topology_key,) if any(map(matches, terms)) else ()


def _neighbours(term: AffinityTerm, nodes: NodeTable) -> tuple[BoolArray, bool]:
    """Return (node,) whether the node's domain has a pod that the term matches, and whether any node has one."""
    matching = term.matching_pods(nodes.pods)
    sums = DomainSums.of(nodes, {term.topology_key: _Numbers(matching.astype(np.int64))}).sums[term.topology_key]
    near: BoolArray = _where_label(term.topology_key, nodes) & (sums[nodes.rows] > 0)
    return near, bool((matching & (nodes.pods.node >= 0)).any())


def _where_label(key: str, nodes: NodeTable) -> BoolArray:
    """Return (node,) whether the node has the label; a label without a value does not count."""
    return nodes.label(key).where(bool)


# CheckServiceAffinity (pkg/scheduler/algorithm/predicates/predicates.go).


class ServiceAffinityArgument(Struct, frozen=True, kw_only=True):
    """Node labels whose values all pods of a service are to share."""

    labels: tuple[str, ...] = ()


class CheckServiceAffinity(Predicate):
    """The pods of a service share the values of some node labels; its argument is a `ServiceAffinityArgument`.

    The pod's own nodeSelector determines these labels first; the node of the first pod with all labels of this one
    determines the rest. Which pod is first is arbitrary in kube-scheduler; here it is the first in load order.
    """

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, ServiceAffinityArgument)
        self._labels = argument.labels
        self._peers: StateKey[IntArray | None] = StateKey(type(self).__name__)
        """Rows of the pods with all labels of this one; None if no service selects it."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        if not self.context.snapshot.services_of(pod):
            state[self._peers] = None
            return
        mine = selector_from_set(pod.metadata.labels)
        pods = nodes.pods
        peers: BoolArray = (pods.node >= 0) & pods.in_namespace(pod.metadata.namespace)
        peers &= pods.labels.where(mine.matches)
        state[self._peers] = np.flatnonzero(peers)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        given = {key: pod.spec.node_selector[key] for key in self._labels if key in pod.spec.node_selector}
        peers = state[self._peers]
        wanted = [given] * len(nodes)
        if peers is not None and len(given) < len(self._labels):
            is_removed = nodes.is_removed
            if is_removed is None or not is_removed[peers].any():
                wanted = [self._complete_labels(given, peers[:1], nodes)] * len(nodes)
            else:
                there = nodes.pods.node[peers]
                wanted = [
                    self._complete_labels(given, peers[~is_removed[peers] | (there != row)][:1], nodes)
                    for row in nodes.rows
                ]
        rejected = np.array(
            [
                not selector_from_set(want).matches(nodes.node(row).metadata.labels)
                for row, want in zip(nodes.each(), wanted, strict=True)
            ],
            dtype=np.bool_,
        )

        def explain(row: TableRow) -> tuple[PluginMessage, ...]:
            text = ", ".join(f"{key}={value}" for key, value in sorted(wanted[row].items()))
            return (PluginMessage(text=f"the service's pods are where {text}"),)

        return Verdicts.first_of(
            (rejected, Code.UNSCHEDULABLE, self.context.era.texts.service_affinity), explain=explain
        )

    def _complete_labels(self, given: Labels, first: IntArray, nodes: NodeTable) -> Labels:
        """Return `given` with the missing labels from the first peer's node."""
        if not len(first):
            return given
        labels = nodes.cluster.nodes[int(nodes.pods.node[int(first[0])])].metadata.labels
        return {key: labels[key] for key in self._labels if key in labels} | given
