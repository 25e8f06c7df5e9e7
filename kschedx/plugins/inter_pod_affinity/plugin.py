"""The InterPodAffinity plugin: its counts, filters, scores, and findings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import (
    ExistingAntiAffinityConflict,
    Finding,
    PluginMessage,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
)
from kschedx.framework.args import InterPodAffinityArgs
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    WHOLE,
    CycleState,
    FilterPlugin,
    Following,
    Handle,
    NotPreparedError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import MAX_NODE_SCORE, SKIP, SUCCESS, Code, Status, Verdicts, error, unresolvable
from kschedx.kube.names import HOSTNAME
from kschedx.kube.types import Labels, Pod
from kschedx.plugins.inter_pod_affinity.terms import NO_LABELS, AffinityTerm, DomainSums, ExistingTerms, PodTerms
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    FloatArray,
    IntArray,
    TableRow,
    TableRows,
    distinct,
    pair_codes,
    rows_by_group,
)
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable, Tally

# What PreFilter counts, and the rules that Filter applies. Upstream:
# pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.


class _MatchesEach(Struct, frozen=True):
    """The sum of the weights of the resolved terms that match a pod."""

    terms: tuple[tuple[AffinityTerm, int], ...]

    def candidates(self, pods: PodTable) -> IntArray:
        rows = [term.candidates(pods) for term, _ in self.terms]
        return rows[0] if len(rows) == 1 else distinct(np.concatenate(rows))

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        total = np.zeros(len(rows), dtype=np.int64)
        for term, weight in self.terms:
            total += term.matching_pods(pods, rows) * weight
        return total


def _weighted_matches(terms: Iterable[tuple[AffinityTerm, int]]) -> dict[str, Tally]:
    """Topology key to the tally of the weights of matching terms."""
    per_key: dict[str, list[tuple[AffinityTerm, int]]] = {}
    for term, weight in terms:
        per_key.setdefault(term.topology_key, []).append((term, weight))
    return {key: _MatchesEach(tuple(its)) for key, its in per_key.items()}


class FilterState(Struct, frozen=True, kw_only=True):
    """The counts for the three rules."""

    affinity_terms: tuple[AffinityTerm, ...]  # the incoming pod's required terms
    anti_affinity_terms: tuple[AffinityTerm, ...]
    matches_itself: bool  # whether the incoming pod satisfies all of its own affinity terms
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
        """Count over the whole cluster."""
        affinity, anti_affinity = terms.required_affinity, terms.required_anti_affinity
        namespace_labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
        repelling = {
            group: its.required_anti_affinity
            for group, its in existing.matching_groups(pod, namespace_labels)
            if its.required_anti_affinity
        }
        return cls(
            affinity_terms=affinity,
            anti_affinity_terms=anti_affinity,
            matches_itself=bool(affinity) and all(term.matches(pod, NO_LABELS) for term in affinity),
            repelling=repelling,
            existing=existing,
            affinity=DomainSums.of(nodes, _tallies(affinity)),
            anti_affinity=DomainSums.of(nodes, _weighted_matches((term, 1) for term in anti_affinity)),
            existing_anti_affinity=DomainSums.of(
                nodes, _repelling_weights(repelling), existing.listed_nodes(nodes.pods, is_repelling=True)
            ),
        )

    @property
    def decides_nothing(self) -> bool:
        """Whether no rule applies: the incoming pod has no required terms, and no running pod's anti-affinity matches
        it."""
        return not (self.affinity_terms or self.anti_affinity_terms or self.existing_anti_affinity.everywhere.any())

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> FilterState:
        """Return the counts with pods added (sign +1) or removed (-1), each change visible to its own node only."""
        return replace(
            self,
            affinity=self.affinity.after(nodes, change, sign),
            anti_affinity=self.anti_affinity.after(nodes, change, sign),
            existing_anti_affinity=self.existing_anti_affinity.after(nodes, change, sign),
        )

    def count_any(self, nodes: NodeTable, change: PodRows) -> bool:
        """Return whether any of these pods counts for a rule."""
        sums = (self.affinity, self.anti_affinity, self.existing_anti_affinity)
        tallies = [tally for each in sums for tally in each.weights.values()]
        return any(tally.weights(nodes.pods, change.pods).any() for tally in tallies)

    # --- the rules; (row,) for the nodes of a table, True if the node fails

    def lacks_affinity(self, nodes: NodeTable) -> BoolArray:
        """A node must have every topology label, and each of these domains needs a pod that satisfies all terms. The
        first pod of a group with affinity to itself has no other pod to match: if no pod satisfies the terms but the
        pod itself does, the labels suffice."""
        lacks_label = np.zeros(len(nodes), dtype=np.bool_)
        finds_nobody = np.zeros(len(nodes), dtype=np.bool_)
        for key, sums in self.affinity.sums.items():
            lacks_label |= ~nodes.label(key).present
            finds_nobody |= nodes.part(sums) <= 0
        if self.matches_itself:
            finds_nobody &= nodes.part(self.affinity.everywhere) != 0
        return lacks_label | finds_nobody

    def rejected_nodes(self, nodes: NodeTable) -> BoolArray:
        """(row,) whether any rule rejects the node."""
        existing = self.breaks_existing_anti_affinity(nodes)
        return self.lacks_affinity(nodes) | self.breaks_anti_affinity(nodes) | existing

    def breaks_anti_affinity(self, nodes: NodeTable) -> BoolArray:
        return self.anti_affinity.any_positive(nodes)

    def breaks_existing_anti_affinity(self, nodes: NodeTable) -> BoolArray:
        return self.existing_anti_affinity.any_positive(nodes)


FILTER: StateKey[FilterState] = StateKey("PreFilterInterPodAffinity", 'error reading "{}" from cycleState: not found')


class _SatisfiesAll(Struct, frozen=True):
    """`weight` for a pod that matches all of some resolved terms."""

    terms: tuple[AffinityTerm, ...]
    weight: int

    def candidates(self, pods: PodTable) -> IntArray:
        return self.terms[0].candidates(pods) if self.terms else np.arange(len(pods))

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        satisfying = np.ones(len(rows), dtype=np.bool_)
        for term in self.terms:
            satisfying &= term.matching_pods(pods, rows)
        return satisfying * self.weight


def _tallies(terms: tuple[AffinityTerm, ...]) -> dict[str, Tally]:
    """Topology key to the number of terms with that key, for pods that satisfy all terms."""
    keys = [term.topology_key for term in terms]
    return {key: _SatisfiesAll(terms, keys.count(key)) for key in keys}


class _OfGroup(Struct, frozen=True):
    """A number for each group of `ExistingTerms`; 0 for pods of other groups."""

    numbers: tuple[tuple[int, int], ...]

    def candidates(self, pods: PodTable) -> IntArray:
        order, start = ExistingTerms.of(pods).rows
        return np.concatenate([order[start[group] : start[group + 1]] for group, _ in self.numbers])

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        existing = ExistingTerms.of(pods)
        return existing.spread_numbers(dict(self.numbers))[existing.group[rows]]


def _weighted_groups(stated: Iterable[tuple[str, int, int]]) -> dict[str, Tally]:
    """Topology key to the tally of the weights of a pod's group."""
    per_key: dict[str, dict[int, int]] = {}
    for key, group, weight in stated:
        per_group = per_key.setdefault(key, {})
        per_group[group] = per_group.get(group, 0) + weight
    return {key: _OfGroup(tuple(sorted(per_group.items()))) for key, per_group in per_key.items()}


def _repelling_weights(repelling: Mapping[int, tuple[AffinityTerm, ...]]) -> dict[str, Tally]:
    """Topology key to the number of the pod's own terms with that key that match the incoming pod."""
    return _weighted_groups((term.topology_key, group, 1) for group, terms in repelling.items() for term in terms)


# What PreScore sums up for Score. Upstream: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.

_SCORES: StateKey[IntArray] = StateKey("PreScoreInterPodAffinity", 'failed to read "{}" from cycleState: not found')
"""(node,) raw scores of all nodes of the cluster."""


def _has_preferred_terms(pod: Pod) -> bool:
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
    """(node,) int64 for every node of the cluster: the sum of the weights in its domain, over the topology keys.

    Pods on infeasible nodes count as well, because they share domains with feasible ones. Returns None if no term
    matches a running pod in a domain; that differs from weights that cancel out.
    """
    weights = _Weights.of(pod, terms, existing, namespaces, hard_pod_affinity_weight)
    # a pod with preferred terms makes upstream read all nodes
    listed = None if _has_preferred_terms(pod) else existing.listed_nodes(nodes.pods, is_repelling=False)
    scores = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
    for tallies in weights.worth:
        for sums in DomainSums.of(nodes, tallies, listed).sums.values():
            scores += sums
    if scores.any():
        return scores
    return scores if any(DomainSums.of(nodes, item, listed).everywhere.any() for item in weights.met()) else None


class _Weights(Struct, frozen=True, kw_only=True):
    """The weights of running pods for the incoming pod, by its own terms and by theirs."""

    own: tuple[tuple[AffinityTerm, int], ...]
    stated: tuple[tuple[str, int, int], ...]  # topology key, group, and weight

    @classmethod
    def of(
        cls,
        pod: Pod,
        terms: PodTerms,
        existing: ExistingTerms,
        namespaces: Mapping[str, Labels],
        hard_pod_affinity_weight: int,
    ) -> _Weights:
        stated: list[tuple[str, int, int]] = []
        for group, its in existing.matching_groups(pod, namespaces.get(pod.metadata.namespace, NO_LABELS)):
            required = its.required_affinity if hard_pod_affinity_weight > 0 else ()
            for term, weight in (*((term, hard_pod_affinity_weight) for term in required), *_signed_weights(its)):
                stated.append((term.topology_key, group, weight))
        return cls(own=tuple(_signed_weights(terms)), stated=tuple(stated))

    @property
    def worth(self) -> tuple[dict[str, Tally], dict[str, Tally]]:
        return _weighted_matches(self.own), _weighted_groups(self.stated)

    def met(self) -> tuple[dict[str, Tally], dict[str, Tally]]:
        """Return the same tallies with 1 for each matching term."""
        once = ((key, group, 1) for key, group, _ in self.stated)
        return _weighted_matches((term, 1) for term, _ in self.own), _weighted_groups(once)


def _signed_weights(terms: PodTerms) -> Iterator[tuple[AffinityTerm, int]]:
    """Yield preferred terms with the weight of a match."""
    for term in terms.preferred_affinity:
        yield term, term.weight
    for term in terms.preferred_anti_affinity:
        yield term, -term.weight


def _normalize(scores: IntArray) -> IntArray:
    """(node,) 0 for the lowest score to 100 for the highest; all 0 if they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if highest == lowest:
        return np.zeros(len(scores), dtype=np.int64)
    share: FloatArray = (scores - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * share).astype(np.int64)


class _FollowedAffinity(Following):
    """The counts and scores of a pod while identical pods are placed."""

    def __init__(
        self, counts: FilterState | None, scores: IntArray | None, weights: _Weights, row: int, nodes: NodeTable
    ) -> None:
        """`row` is the pod's row in the PodTable. No node is rejected without `counts`, or scored without `scores`."""
        self._nodes = nodes
        self._sums: list[tuple[DomainSums, dict[str, int]]] = []
        self._counts = counts
        if counts is not None:
            own = [sums.copy() for sums in (counts.affinity, counts.anti_affinity, counts.existing_anti_affinity)]
            self._sums = [(sums, _added_by(nodes.pods, row, sums.weights)) for sums in own]
            self._counts = replace(counts, affinity=own[0], anti_affinity=own[1], existing_anti_affinity=own[2])
            self.rejected = self._counts.rejected_nodes(nodes)
        self.raw = None if scores is None else scores.copy()
        self._worth = [_added_by(nodes.pods, row, tallies) for tallies in weights.worth]

    def place(self, node: ClusterRow) -> bool:
        if self.raw is not None:
            for key, number in (pair for added in self._worth for pair in added.items()):
                label = self._nodes.cluster.label(key)
                if number and label[node] is not None:
                    # three times faster than a mask
                    self.raw += (label.codes == label.codes[node]) * np.int64(number)
        moved = [sums.place(self._nodes, added, node) for sums, added in self._sums]
        if self._counts is None or not any(moved):
            return False
        self.rejected = self._counts.rejected_nodes(self._nodes)
        return True

    def normalized(self, scores: IntArray) -> IntArray:
        return _normalize(scores)


def _added_by(pods: PodTable, row: int, weights: Mapping[str, Tally]) -> dict[str, int]:
    """Topology key to what one pod adds to its domain."""
    rows = np.array([row], dtype=np.int64)
    return {key: int(tally.weights(pods, rows)[0]) for key, tally in weights.items()}


_SHOWN = 5  # the maximum number of pods or domains in a finding


class Accounts:
    """The findings for a row of the filtered table: every rule that the node fails, not only the first one."""

    def __init__(self, counts: FilterState, pod: Pod, nodes: NodeTable) -> None:
        self._counts = counts
        self._pod = pod
        self._nodes = nodes

    def __call__(self, row: TableRow) -> tuple[Finding, ...]:
        node = self._nodes.cluster_row(row)
        lacks_affinity = self._counts.lacks_affinity(self._nodes.take(TableRows(np.array([row], dtype=np.int64))))
        return (
            *(self._affinity(node) if lacks_affinity[0] else ()),
            *self._anti_affinity(node),
            *self._existing_anti_affinity(node),
        )

    def groups(self) -> IntArray:
        """(node of the table,) equal only if the same rules fail in the same domains, apart from single hosts."""
        nodes = self._nodes
        if nodes.removed is not None or nodes.added is not None:
            return np.arange(len(nodes), dtype=np.int64)  # every row has its own changes
        lacks_affinity = self._counts.lacks_affinity(nodes).astype(np.int64)
        about = (*self._satisfying_pods, *self._conflicting_pods, *self._repelling_by_rule())
        return reduce(pair_codes, (neighbours.groups[nodes.rows] for neighbours in about), lacks_affinity)

    def _repelling_by_rule(self) -> Iterator[_Neighbours]:
        """Yield the pods that reject the incoming pod, separately for each rule."""
        group = self._counts.existing.group
        for key, repelling in self._repelling_pods.items():
            stating: dict[tuple[int, str], list[int]] = {}
            for number, terms in self._counts.repelling.items():
                for term in terms:
                    if term.topology_key == key:
                        stating.setdefault((term.index, term.selector_text), []).append(number)
            if len(stating) == 1:
                yield repelling
            else:
                yield from (repelling.of(np.isin(group, groups)) for groups in stating.values())

    # --- a finding for each failed rule

    def _affinity(self, node: ClusterRow) -> Iterator[PodAffinityUnsatisfied]:
        for term, satisfying in zip(self._counts.affinity_terms, self._satisfying_pods, strict=True):
            domain = satisfying.domain(node)
            if domain is not None and len(satisfying.around(node)):
                continue
            pods = satisfying.all_pods(node)
            yield PodAffinityUnsatisfied(
                term=term.index,
                topology_key=term.topology_key,
                domain=domain,
                selector=term.selector_text,
                namespaces=tuple(sorted(term.namespaces)),
                every_namespace=term.covers_every_namespace,
                matches_itself=self._counts.matches_itself,
                pods=self._keys(pods),
                matching_pods=len(pods),
                matching_domains=satisfying.domains,
            )

    def _anti_affinity(self, node: ClusterRow) -> Iterator[PodAntiAffinityConflict]:
        for term, conflicting in zip(self._counts.anti_affinity_terms, self._conflicting_pods, strict=True):
            domain = conflicting.domain(node)
            pods = conflicting.around(node)
            if domain is not None and len(pods):
                yield PodAntiAffinityConflict(
                    term=term.index,
                    topology_key=term.topology_key,
                    domain=domain,
                    selector=term.selector_text,
                    pods=self._keys(pods),
                    pod_count=len(pods),
                    namespaces=tuple(sorted(term.namespaces)),
                    every_namespace=term.covers_every_namespace,
                )

    def _existing_anti_affinity(self, node: ClusterRow) -> Iterator[ExistingAntiAffinityConflict]:
        for key, repelling in self._repelling_pods.items():
            domain = repelling.domain(node)
            if domain is None:
                continue
            for term, pods in self._rules(key, repelling.around(node)):
                yield ExistingAntiAffinityConflict(
                    pods=self._keys(pods),
                    pod_count=len(pods),
                    term=term.index,
                    topology_key=key,
                    domain=domain,
                    selector=term.selector_text,
                    matched_labels=self._labels_read_by(term),
                )

    def _rules(self, key: str, pods: IntArray) -> Iterator[tuple[AffinityTerm, IntArray]]:
        """Yield the terms with this key that reject the incoming pod, each with all pods that have it."""
        group = self._counts.existing.group[pods]
        stated: dict[tuple[int, str], tuple[AffinityTerm, list[int]]] = {}
        for number in distinct(group).tolist():
            for term in self._counts.repelling.get(number, ()):
                if term.topology_key == key:
                    stated.setdefault((term.index, term.selector_text), (term, []))[1].append(number)
        for term, groups in stated.values():
            yield term, pods[np.isin(group, groups)]

    def _labels_read_by(self, term: AffinityTerm) -> tuple[str, ...]:
        labels = self._pod.metadata.labels
        keys = sorted({requirement.key for requirement in term.selector.requirements} & labels.keys())
        return tuple(f"{key}={labels[key]}" for key in keys)

    def _keys(self, pods: IntArray) -> tuple[str, ...]:
        return tuple(self._nodes.pods.key(int(pod)) for pod in pods[:_SHOWN])

    # --- the pods behind the counts, sorted on first use

    @cached_property
    def _satisfying_pods(self) -> tuple[_Neighbours, ...]:
        pods = self._nodes.pods
        terms = self._counts.affinity_terms
        satisfying = _SatisfiesAll(terms, 1).weights(pods, np.arange(len(pods))) > 0
        return tuple(_Neighbours(self._nodes, term.topology_key, satisfying) for term in terms)

    @cached_property
    def _conflicting_pods(self) -> tuple[_Neighbours, ...]:
        pods = self._nodes.pods
        return tuple(
            _Neighbours(self._nodes, term.topology_key, term.matching_pods(pods))
            for term in self._counts.anti_affinity_terms
        )

    @cached_property
    def _repelling_pods(self) -> Mapping[str, _Neighbours]:
        weights = self._counts.existing_anti_affinity.weights
        pods = self._nodes.pods
        everyone = np.arange(len(pods))
        return {
            key: _Neighbours(self._nodes, key, weight.weights(pods, everyone) > 0) for key, weight in weights.items()
        }


class _Neighbours:
    """Pods of a mask by their domain of a topology key. Nodes are rows of the whole cluster."""

    def __init__(self, nodes: NodeTable, key: str, mask: BoolArray) -> None:
        """`mask` is (pod,)."""
        self._nodes = nodes
        self._key = key
        self._label = nodes.cluster.label(key)
        self._mask = mask
        self._running = np.flatnonzero(mask & (nodes.pods.node >= 0))
        domains = self._label.codes[nodes.pods.node[self._running]]
        order, self._start = rows_by_group(domains, len(self._label.values))
        self._by_domain = self._running[order]

    def of(self, mask: BoolArray) -> _Neighbours:
        """Return the pods that are also in another mask."""
        return _Neighbours(self._nodes, self._key, self._mask & mask)

    @property
    def groups(self) -> IntArray:
        """(node of the cluster,) its domain; for host names, only whether it has the label and such pods."""
        codes = self._label.codes
        if self._key != HOSTNAME:
            return codes
        held: IntArray = (np.diff(self._start) > 0).astype(np.int64)
        return held[codes] * 2 + self._label.present

    def domain(self, node: ClusterRow) -> str | None:
        return self._label[node]

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The first domains with such pods."""
        held = np.flatnonzero(np.diff(self._start))
        return tuple(
            sorted(value for code in held.tolist() if (value := self._label.values[code]) is not None)[:_SHOWN]
        )

    def around(self, node: ClusterRow) -> IntArray:
        """Rows of the pods in a node's domain, with the node's changes."""
        code = self._label.codes[node]
        return self._current_pods(self._by_domain[self._start[code] : self._start[code + 1]], node)

    def all_pods(self, node: ClusterRow) -> IntArray:
        """Rows of the pods in the cluster, with a node's changes."""
        return self._current_pods(self._running, node)

    def _current_pods(self, pods: IntArray, node: ClusterRow) -> IntArray:
        removed, added = self._here(self._nodes.removed, node), self._here(self._nodes.added, node)
        if len(removed):
            pods = pods[~np.isin(pods, removed)]
        return np.concatenate([pods, added]) if len(added) else pods

    def _here(self, change: PodRows | None, node: ClusterRow) -> IntArray:
        """Return the changed pods of the mask on a node."""
        if change is None:
            return np.empty(0, dtype=np.int64)
        pods: IntArray = change.pods[change.nodes == node]
        return pods[self._mask[pods]]


REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """spec.affinity.podAffinity and podAntiAffinity in both directions: the incoming pod's terms match running pods,
    and their terms match it (pkg/scheduler/framework/plugins/interpodaffinity)."""

    name = "InterPodAffinity"
    texts: ClassVar[Texts] = {
        "pod-affinity-unsatisfied": (REASON_AFFINITY,),
        "pod-anti-affinity-conflict": (REASON_ANTI_AFFINITY,),
        "existing-anti-affinity-conflict": (REASON_EXISTING_ANTI_AFFINITY,),
        "plugin-message": ("failed to parse pod: {error}",),
    }
    normalizes_by_extremes = True
    scores_preferences = True

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._read: tuple[tuple[object, ...], PodTerms] | None = None

    @cached_property
    def _existing_terms(self) -> ExistingTerms:
        return ExistingTerms.of(self.handle.snapshot.pods)

    def _terms_of(self, pod: Pod) -> PodTerms:
        """Compile the pod's own terms, once for identical pods. Raises `InputError`."""
        known = (pod.spec.affinity, pod.metadata.namespace, self.handle.snapshot.namespaces)
        if self._read is None or any(item is not other for item, other in zip(known, self._read[0], strict=True)):
            keeps = self.handle.release.behavior.namespace_selectors_match_twice
            self._read = (known, PodTerms.of_incoming(pod, known[2], keeps_selectors=keeps))
        return self._read[1]

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if self.touches(pod) is Touch.CLUSTER else None

    def touches(self, pod: Pod) -> Touch:
        namespaces = self.handle.snapshot.namespaces
        try:
            own = self._terms_of(pod)
        except InputError:
            return Touch.CLUSTER
        labels = namespaces.get(pod.metadata.namespace, NO_LABELS)
        concerned = bool(own.every) or bool(self._existing_terms.matching_groups(pod, labels))
        return Touch.CLUSTER if concerned else Touch.NOTHING

    def follow(self, state: CycleState, pod: Pod, row: int) -> Following | None:
        nodes, args = self.handle.nodes, self._args
        try:
            terms, scores = self._terms_of(pod), state[_SCORES]
            counts = None if self.name in state.skip_filter else state[FILTER]
        except (InputError, NotPreparedError):
            return None
        namespaces = self.handle.snapshot.namespaces
        weights = _Weights.of(pod, terms, self._existing_terms, namespaces, args.hard_pod_affinity_weight)
        if args.ignore_preferred_terms_of_existing_pods and not _has_preferred_terms(pod):
            return _FollowedAffinity(counts, None, weights, row, nodes)
        if not scores.any() and any(any(_added_by(nodes.pods, row, item).values()) for item in weights.met()):
            return None  # PreScore may have skipped the pod and would no longer do so
        return _FollowedAffinity(counts, scores, weights, row, nodes)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        namespaces = self.handle.snapshot.namespaces
        try:
            terms = self._terms_of(pod)
        except InputError as wrong:
            text = f"parsing pod: {wrong}"
            return PreFilterResult(status=unresolvable(text, PluginMessage(text=text)))
        counts = FilterState.of(pod, terms, self._existing_terms, namespaces, nodes)
        state[FILTER] = counts
        return PRE_FILTER_SKIP if counts.decides_nothing else PreFilterResult()

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[FILTER] = state[FILTER].after(nodes, change, +1)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[FILTER] = state[FILTER].after(nodes, change, -1)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        counts = state[FILTER]
        accounts = Accounts(counts, pod, nodes)
        return Verdicts.first_of(
            # if affinity has no matching pod, evictions cannot help
            (counts.lacks_affinity(nodes), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY),
            (counts.breaks_anti_affinity(nodes), Code.UNSCHEDULABLE, REASON_ANTI_AFFINITY),
            (counts.breaks_existing_anti_affinity(nodes), Code.UNSCHEDULABLE, REASON_EXISTING_ANTI_AFFINITY),
            explain=accounts,
            finding_groups=accounts.groups,
        )

    def reads_any(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> bool:
        return state[FILTER].count_any(nodes, change)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        state[_SCORES] = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        if self._args.ignore_preferred_terms_of_existing_pods and not _has_preferred_terms(pod):
            return SKIP
        namespaces = self.handle.snapshot.namespaces
        try:
            terms = self._terms_of(pod)
        except InputError as wrong:
            return error(f"failed to parse pod: {wrong}", self.name)
        scores = raw_scores(pod, terms, self._existing_terms, namespaces, nodes, self._args.hard_pod_affinity_weight)
        if scores is None:
            return SKIP
        state[_SCORES] = scores
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return state[_SCORES][nodes.rows]

    def preferences(self, pod: Pod) -> Iterator[tuple[str, str, int, Tally]]:
        """Yield the terms that score: topology key, selector (empty for the terms of other pods), weight, and the pods
        that count."""
        namespaces, least = self.handle.snapshot.namespaces, self._args.hard_pod_affinity_weight
        weights = _Weights.of(pod, self._terms_of(pod), self._existing_terms, namespaces, least)
        for term, weight in weights.own:
            yield term.topology_key, str(term.selector) or "any pod", weight, _MatchesEach(((term, 1),))
        for key, group, weight in weights.stated:
            yield key, "", weight, _OfGroup(((group, 1),))

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return _normalize(scores)
