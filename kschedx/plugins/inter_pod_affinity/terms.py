"""Affinity terms of the incoming pod and of existing pods, as kube-scheduler reads them.

Upstream: AffinityTerm in staging/src/k8s.io/kube-scheduler/framework/types.go and PodInfo in
pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from kschedx.errors import InputError
from kschedx.kube.field_errors import aggregate
from kschedx.kube.selectors import Operator, Requirement, Selector, compile_selector
from kschedx.kube.types import Affinity, Labels, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kschedx.snapshot.columns import BoolArray, ClusterRow, Column, IntArray, Memo, rows_by_group
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable, Tally

NO_LABELS: Mapping[str, str] = {}


class AffinityTerm(Struct, frozen=True, kw_only=True):
    """One term of podAffinity or podAntiAffinity, compiled."""

    index: int  # position in its list
    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    """The namespaces that the term names; the pod's own namespace if the term neither names nor selects any."""
    namespace_selector: Selector
    weight: int = 0

    def covers(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term applies to pods in this namespace."""
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        return self.covers(pod.metadata.namespace, namespace_labels) and self.selector.matches(pod.metadata.labels)

    @property
    def covers_every_namespace(self) -> bool:
        """Whether a term of the incoming pod covers all namespaces.

        Upstream finds the namespaces of the selector first, but since 1.34 later also matches the selector with the
        labels of every existing pod's namespace, which it does not look up and treats as empty. So a selector that
        matches an object without labels (an empty selector, NotIn, DoesNotExist) covers every namespace.
        """
        return self.namespace_selector.matches(NO_LABELS)

    def resolve(self, namespaces: Mapping[str, Labels], *, keeps_selectors: bool) -> AffinityTerm:
        """Return a term of the incoming pod with the namespaces that its selector matches."""
        if self.namespace_selector.empty or not self.namespace_selector.selectable:
            return self
        names = {name for name, labels in namespaces.items() if self.namespace_selector.matches(labels)}
        selector = self.namespace_selector if keeps_selectors else compile_selector(None)
        return replace(self, namespaces=self.namespaces | names, namespace_selector=selector)

    def matching_pods(self, pods: PodTable, rows: IntArray | None = None) -> BoolArray:
        """(row,) whether a resolved term of the incoming pod matches these pods, or all pods, on any node."""
        rows = np.arange(len(pods)) if rows is None else rows
        matching = pods.namespaces.take(rows).where(lambda namespace: self.covers(namespace, NO_LABELS))
        inside = np.flatnonzero(matching)
        if len(inside):
            matching[inside] = pods.labels.take(rows[inside]).where(self.selector.matches)
        return matching

    def candidates(self, pods: PodTable) -> IntArray:
        """Rows of the pods in the term's namespaces."""
        return pods.rows_in_namespaces(lambda namespace: self.covers(namespace, NO_LABELS))

    @property
    def selector_text(self) -> str:
        """The label selector as kubectl prints it; empty if it matches every pod, `<none>` if it matches none."""
        if not self.selector.selectable:
            return "<none>"
        return ",".join(_text(it) for it in sorted(self.selector.requirements, key=lambda requirement: requirement.key))


def _text(requirement: Requirement) -> str:
    match requirement.operator:
        case Operator.IN:
            return f"{requirement.key} in ({','.join(sorted(requirement.values))})"
        case Operator.NOT_IN:
            return f"{requirement.key} notin ({','.join(sorted(requirement.values))})"
        case Operator.EXISTS:
            return requirement.key
        case Operator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
        case _:
            return str(requirement)


class PodTerms(Struct, frozen=True, kw_only=True):
    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()

    @property
    def every(self) -> tuple[AffinityTerm, ...]:
        return tuple(term for terms in astuple(self) for term in terms)

    def matching_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> PodTerms:
        return self._map(lambda terms: (term for term in terms if term.matches(pod, namespace_labels)))

    def _map(self, change: Callable[[tuple[AffinityTerm, ...]], Iterable[AffinityTerm]]) -> PodTerms:
        return PodTerms(**{name: tuple(change(getattr(self, name))) for name in self.__struct_fields__})

    @classmethod
    def of_incoming(cls, pod: Pod, namespaces: Mapping[str, Labels], *, keeps_selectors: bool = True) -> PodTerms:
        """Compile the terms of the incoming pod. Raises `InputError` with upstream's text for an invalid selector."""
        if pod.spec.affinity is None:
            return cls()
        terms, errors = cls._read(pod.spec.affinity, pod.metadata.namespace)
        if wrong := aggregate(errors):
            raise wrong
        return terms._map(lambda some: (term.resolve(namespaces, keeps_selectors=keeps_selectors) for term in some))

    @classmethod
    def of_existing(cls, affinity: Affinity, namespace: str) -> PodTerms:
        """Compile the terms of an existing pod. A list with an invalid selector counts as empty."""
        return cls._read(affinity, namespace)[0]

    @classmethod
    def _read(cls, affinity: Affinity, namespace: str) -> tuple[PodTerms, list[InputError]]:
        errors: list[InputError] = []

        def read(kind: str, terms: Iterable[PodAffinityTerm | WeightedPodAffinityTerm]) -> tuple[AffinityTerm, ...]:
            try:
                return tuple(_compile(index, term, namespace) for index, term in enumerate(terms))
            except InputError as wrong:
                errors.append(InputError(f"{kind}: {wrong}"))
                return ()

        towards, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
        required, preferred = (
            f"{kind}_during_scheduling_ignored_during_execution" for kind in ("required", "preferred")
        )
        terms = cls(
            required_affinity=read("requiredAffinityTerms", getattr(towards, required)),
            required_anti_affinity=read("requiredAntiAffinityTerms", getattr(away, required)),
            preferred_affinity=read("preferredAffinityTerms", getattr(towards, preferred)),
            preferred_anti_affinity=read("preferredAntiAffinityTerms", getattr(away, preferred)),
        )
        return terms, errors


def _compile(index: int, written: PodAffinityTerm | WeightedPodAffinityTerm, namespace: str) -> AffinityTerm:
    weighted = (
        written if isinstance(written, WeightedPodAffinityTerm) else WeightedPodAffinityTerm(pod_affinity_term=written)
    )
    term = weighted.pod_affinity_term
    return AffinityTerm(
        index=index,
        topology_key=term.topology_key,
        selector=compile_selector(term.label_selector),
        namespaces=frozenset(_named_namespaces(term, namespace)),
        namespace_selector=compile_selector(term.namespace_selector),
        weight=weighted.weight,
    )


def _named_namespaces(term: PodAffinityTerm, namespace: str) -> tuple[str, ...]:
    """Return the namespaces that a term names, or the pod's own if the term neither names nor selects any."""
    return term.namespaces if term.namespaces or term.namespace_selector is not None else (namespace,)


class ExistingTerms:
    """The terms of all pods: one group for each distinct affinity and namespace, compiled on first use."""

    @classmethod
    def of(cls, pods: PodTable) -> ExistingTerms:
        """Compile once for all what-ifs that only assign, start, or end pods."""
        return _EXISTING.of(pods.derived, lambda: cls(pods))

    def __init__(self, pods: PodTable) -> None:
        affinities: Column[Affinity | None] = Column.of(
            (_inter_pod(spec.affinity) for spec in pods.specs.values),
            key=lambda affinity: None if affinity is None else msgspec.json.encode(affinity),
        )
        affinity = affinities.codes[pods.specs.codes]
        with_affinity = np.flatnonzero(affinities.where(lambda affinity: affinity is not None)[pods.specs.codes])
        width = max(len(pods.namespaces.values), 1)
        pairs, group = np.unique(
            affinity[with_affinity] * width + pods.namespaces.codes[with_affinity], return_inverse=True
        )
        self.group: IntArray = np.full(len(pods), -1, dtype=np.int64)
        """(pod,) -1 for a pod without pod affinity or anti-affinity."""
        self.group[with_affinity] = group
        self.rows = rows_by_group(self.group, len(pairs))
        self._sources = [
            (source, pods.namespaces.values[pair % width])
            for pair in pairs.tolist()
            if (source := affinities.values[pair // width]) is not None
        ]
        self._compiled: dict[int, PodTerms] = {}
        self._about: dict[Hashable, tuple[tuple[int, PodTerms], ...]] = {}
        """Results of `matching_groups`: each plugin asks about a pod, and many pods are identical."""
        self._labelled: dict[str, Mapping[tuple[str, str] | None, Sequence[int]]] = {}
        self._naming: dict[str, list[int]] = {}
        self._selecting: list[int] = []
        for number, (source, namespace) in enumerate(self._sources):
            terms = list(source.pod_terms)
            for name in {name for term in terms for name in _named_namespaces(term, namespace)}:
                self._naming.setdefault(name, []).append(number)
            if any(term.namespace_selector is not None for term in terms):
                self._selecting.append(number)

    def __getitem__(self, group: int) -> PodTerms:
        if group not in self._compiled:
            self._compiled[group] = PodTerms.of_existing(*self._sources[group])
        return self._compiled[group]

    def _groups_by_label(self, namespace: str) -> Mapping[tuple[str, str] | None, Sequence[int]]:
        """Return the groups with a term that may apply to pods of a namespace, because it names the namespace or
        selects namespaces, by a label that such a term requires; None for terms that require none of a few labels."""
        if namespace not in self._labelled:
            by_label: dict[tuple[str, str] | None, list[int]] = {}
            for group in (*self._naming.get(namespace, ()), *self._selecting):
                for term in self[group].every:
                    for label in term.selector.one_of_labels or (None,):
                        by_label.setdefault(label, []).append(group)
            self._labelled[namespace] = by_label
        return self._labelled[namespace]

    def matching_groups(self, pod: Pod, namespace_labels: Mapping[str, str]) -> tuple[tuple[int, PodTerms], ...]:
        """Return these groups with their terms that match a pod, without groups that have none."""
        key = (pod.metadata.namespace, *(frozenset(some.items()) for some in (pod.metadata.labels, namespace_labels)))
        if key not in self._about:
            by_label = self._groups_by_label(pod.metadata.namespace)
            groups = {group for label in (None, *pod.metadata.labels.items()) for group in by_label.get(label, ())}
            matching = ((group, self[group].matching_terms(pod, namespace_labels)) for group in sorted(groups))
            self._about[key] = tuple((group, its) for group, its in matching if its.every)
        return self._about[key]

    def listed_nodes(self, pods: PodTable, *, is_repelling: bool) -> BoolArray | None:
        """(node,) in a pod group's cycle, the nodes that had such pods at its start; only their pods' terms are read.
        None outside such a cycle. `is_repelling`: pods with required anti-affinity."""
        places = pods.listed
        if places is None:
            return None
        repels = [
            source.pod_anti_affinity is not None
            and bool(source.pod_anti_affinity.required_during_scheduling_ignored_during_execution)
            for source, _ in self._sources
        ]
        stating = np.array([not is_repelling or repel for repel in repels] + [False], dtype=np.bool_)[self.group]
        listed = np.zeros(pods.node_count, dtype=np.bool_)
        listed[places[stating & (places >= 0)]] = True
        return listed

    def spread_numbers(self, numbers: Mapping[int, int]) -> IntArray:
        """(group + 1,) the number of each group, else 0; the last entry is for pods without a group (-1)."""
        every = np.zeros(len(self._sources) + 1, dtype=np.int64)
        for group, number in numbers.items():
            every[group] = number
        return every


_EXISTING = Memo[ExistingTerms]()


def _inter_pod(affinity: Affinity | None) -> Affinity | None:
    """Return only podAffinity and podAntiAffinity."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    return Affinity(pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity)


class DomainSums(Struct, frozen=True, kw_only=True):
    """The weights of the pods in the domains of some topology keys. Sums are per node, not per domain: two nodes of one
    domain may differ in the pods that a what-if adds or removes on one of them."""

    weights: Mapping[str, Tally]  # topology key to what a pod adds to its domain
    sums: Mapping[str, IntArray]
    """Topology key to (node,) int64 of the whole cluster: the sum in the node's domain, 0 without one."""
    everywhere: IntArray  # (node,) the sum over all keys and domains

    @classmethod
    def of(cls, nodes: NodeTable, weights: Mapping[str, Tally], listed: BoolArray | None = None) -> DomainSums:
        """Sum over all running pods of the cluster, even if their nodes are not in this table. `listed`: (node,) the
        nodes whose pods count; None for all."""
        count = len(nodes.cluster.nodes)
        sums: dict[str, IntArray] = {}
        total = 0
        for key, weight in weights.items():
            column = nodes.cluster.label(key)
            here = nodes.pods.tally(weight) * column.present
            if listed is not None:
                here *= listed
            domains = _sum(column.codes, here, len(column.values))
            sums[key] = domains[column.codes]
            total += int(here.sum())
        return cls(weights=weights, sums=sums, everywhere=np.full(count, total, dtype=np.int64))

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> DomainSums:
        """Return the sums with pods added (sign +1) or removed (-1), each change visible to its own node only."""
        sums = dict(self.sums)
        everywhere = self.everywhere
        for key, weight in self.weights.items():
            moved = weight.weights(nodes.pods, change.pods)
            if moved.any():
                here = sign * _sum(change.nodes, moved, len(everywhere)) * nodes.cluster.label(key).present
                sums[key] = sums[key] + here
                everywhere = everywhere + here
        return DomainSums(weights=self.weights, sums=sums, everywhere=everywhere)

    def copy(self) -> DomainSums:
        """Copy, so that `place` can change it."""
        sums = {key: numbers.copy() for key, numbers in self.sums.items()}
        return DomainSums(weights=self.weights, sums=sums, everywhere=self.everywhere.copy())

    def place(self, nodes: NodeTable, added: Mapping[str, int], node: ClusterRow) -> bool:
        """Add a pod to a node, visible to every node. It adds a number to its domain of each key. Returns whether a sum
        changes."""
        changed = False
        for key, number in added.items():
            column = nodes.cluster.label(key)
            if number and column[node] is not None:
                self.sums[key][column.codes == column.codes[node]] += number
                self.everywhere[:] += number
                changed = True
        return changed

    def any_positive(self, nodes: NodeTable) -> BoolArray:
        """(row,) whether the node's domain has a positive sum for any key."""
        positive = np.zeros(len(nodes), dtype=np.bool_)
        for numbers in self.sums.values():
            positive |= nodes.part(numbers) > 0
        return positive


def _sum(group: IntArray, numbers: IntArray, count: int) -> IntArray:
    """(count,) int64 the sum of each group's numbers; exact below 2**53."""
    return np.bincount(group, weights=numbers, minlength=count).astype(np.int64)
