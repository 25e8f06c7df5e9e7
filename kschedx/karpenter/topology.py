"""The domains that spread constraints, affinities, and anti-affinities allow a pod, as Karpenter counts them.

A domain is a value of a topology key. If upstream chooses any of several domains, the first name is chosen here and
`_DomainTie` is reported. Upstream: scheduling/topologygroup.go, topologydomaingroup.go, topologynodefilter.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import assert_never

import numpy as np
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.karpenter.nodes import tolerates_all
from kschedx.karpenter.requirements import LabelRequirement, Requirements
from kschedx.kube import types
from kschedx.kube.names import HOSTNAME
from kschedx.kube.selectors import EVERYTHING, LabelSelector, Selector, SelectorRequirement, compile_selector
from kschedx.kube.selectors import NOTHING as NO_SELECTOR
from kschedx.snapshot.snapshot import Snapshot

_MAX_SKEW = 2**31 - 1
_MOST_COUNTS = 25
_HONOR = "Honor"


class TopologyType(StrEnum):
    """The types of topology rules, in Karpenter's words."""

    SPREAD = "topology spread"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"


class TopologyDomains:
    """The values of a key on new nodes, with the taints of their pools."""

    def __init__(self) -> None:
        self._taints: dict[str, list[tuple[types.Taint, ...]]] = {}

    def add(self, domain: str, taints: tuple[types.Taint, ...]) -> None:
        """Add a domain. A pool without taints covers all others."""
        known = self._taints.get(domain)
        if known is None or not taints:
            self._taints[domain] = [taints]
        elif known[0]:
            known.append(taints)

    def tolerated_domains(self, tolerations: Sequence[types.Toleration], *, honors_taints: bool) -> Iterable[str]:
        for domain in sorted(self._taints):
            if not honors_taints or any(tolerates_all(tolerations, taints) for taints in self._taints[domain]):
                yield domain


class _NodeFilter(Struct, frozen=True, kw_only=True):
    """The nodes that a spread constraint counts; by default all."""

    terms: tuple[Requirements, ...] = ()
    honors_taints: bool = False
    honors_affinity: bool = False
    tolerations: tuple[types.Toleration, ...] = ()

    def matches(self, taints: Sequence[types.Taint], requirements: Requirements) -> bool:
        if self.honors_affinity and self.terms and not any(map(requirements.is_compatible, self.terms)):
            return False
        return not self.honors_taints or tolerates_all(self.tolerations, taints)


class _DomainTie:
    """Whether a domain was chosen while another one was equally good."""

    def __init__(self) -> None:
        self.is_taken = False


class _TopologyGroup(Struct, eq=False, kw_only=True):
    """The pods per domain that a rule counts, and the pods with the rule."""

    kind: TopologyType
    key: str
    namespaces: frozenset[str]
    selector: Selector
    raw: LabelSelector | None
    counts: dict[str, int]
    node_filter: _NodeFilter
    chance: _DomainTie
    max_skew: int
    min_domains: int | None
    empty: set[str]
    owners: set[str] = set()

    def register(self, domain: str) -> None:
        if domain not in self.counts:
            self.counts[domain] = 0
            self.empty.add(domain)

    def record(self, domains: Iterable[str]) -> None:
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + 1
            self.empty.discard(domain)

    def selects(self, namespace: str, labels: types.Labels) -> bool:
        return namespace in self.namespaces and self.selector.matches(labels)

    def counts_pod(self, pod: types.Pod, taints: Sequence[types.Taint], requirements: Requirements) -> bool:
        selects = self.selects(pod.metadata.namespace, pod.metadata.labels)
        return selects and self.node_filter.matches(taints, requirements)

    def next_domains(self, pod: types.Pod, of_pod: LabelRequirement, of_node: LabelRequirement) -> LabelRequirement:
        """Return the domains that the pod may use; `DoesNotExist` if there are none."""
        match self.kind:
            case TopologyType.SPREAD:
                domain = self._spread(pod, of_pod, of_node)
                return LabelRequirement.of(self.key, "In", () if domain is None else (domain,))
            case TopologyType.AFFINITY:
                return LabelRequirement.of(self.key, "In", self._affinity(pod, of_pod, of_node))
            case TopologyType.ANTI_AFFINITY:
                return LabelRequirement.of(self.key, "In", self._anti_affinity(of_pod, of_node))
            case _:
                assert_never(self.kind)

    def _only_host(self, of_node: LabelRequirement) -> str | None:
        """Return the node's only host name, which is not yet a domain for a new node."""
        return next(iter(of_node.values)) if self.key == HOSTNAME and len(of_node.values) == 1 else None

    def _spread(self, pod: types.Pod, of_pod: LabelRequirement, of_node: LabelRequirement) -> str | None:
        counts_itself = self.selects(pod.metadata.namespace, pod.metadata.labels)
        host = self._only_host(of_node)
        if host is not None:
            return host if self.counts.get(host, 0) + counts_itself <= self.max_skew else None
        floor = self._least(of_pod)
        domains = of_node.values if of_node.operator == "In" else self.counts
        ranked = sorted(
            (self.counts[domain] + counts_itself, domain)
            for domain in domains
            if domain in self.counts
            and of_node.has(domain)
            and self.counts[domain] + counts_itself - floor <= self.max_skew
        )
        if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
            self.chance.is_taken = True
        return ranked[0][1] if ranked else None

    def _least(self, of_pod: LabelRequirement) -> int:
        """Return the smallest number of pods in the domains that the pod may use; a new host is always possible."""
        if self.key == HOSTNAME:
            return 0
        counts = [count for domain, count in self.counts.items() if of_pod.has(domain)]
        if self.min_domains is not None and len(counts) < self.min_domains:
            return 0
        return min(counts, default=_MAX_SKEW)

    def _affinity(self, pod: types.Pod, of_pod: LabelRequirement, of_node: LabelRequirement) -> frozenset[str]:
        may_be_first = self.selects(pod.metadata.namespace, pod.metadata.labels) and (
            len(self.counts) == len(self.empty)
            or not any(count > 0 and of_pod.has(domain) for domain, count in self.counts.items())
        )
        host = self._only_host(of_node)
        if host is not None:
            fits = of_pod.has(host) and (self.counts.get(host, 0) > 0 or may_be_first)
            return frozenset({host} if fits else ())
        domains = {
            domain for domain, count in self.counts.items() if count > 0 and of_pod.has(domain) and of_node.has(domain)
        }
        if domains or not may_be_first:
            return frozenset(domains)
        both = of_pod.intersection(of_node)
        first = [domain for domain in sorted(self.counts) if both.has(domain)]
        anywhere = [domain for domain in sorted(self.counts) if of_pod.has(domain)]
        if len(anywhere) > 1:
            self.chance.is_taken = True
        return frozenset((*first[:1], *anywhere[:1]))

    def _anti_affinity(self, of_pod: LabelRequirement, of_node: LabelRequirement) -> frozenset[str]:
        host = self._only_host(of_node)
        if host is not None:
            return frozenset({host} if self.counts.get(host, 0) == 0 else ())
        return frozenset(domain for domain in self.empty if of_node.has(domain) and of_pod.has(domain))


class Unsatisfiable(Struct, frozen=True, kw_only=True):
    """A rule that leaves no domain."""

    kind: TopologyType
    key: str
    counts: Mapping[str, int]
    of_pod: LabelRequirement
    of_node: LabelRequirement

    @property
    def text(self) -> str:
        """Upstream's message, which does not close its parenthesis."""
        known = [f"{domain}: {self.counts[domain]}" for domain in sorted(self.counts)[:_MOST_COUNTS]]
        more = f" and {len(self.counts) - _MOST_COUNTS} other(s)" if len(self.counts) > _MOST_COUNTS else ""
        return (
            f"unsatisfiable topology constraint for {self.kind}, key={self.key} (counts = {', '.join(known)}{more}, "
            f"podDomains = {self.of_pod}, nodeDomains = {self.of_node}"
        )


# All topology groups of a round: those of pending pods, and the anti-affinities of running pods. Upstream:
# scheduling/topology.go.

_Fork = tuple[object, ...]  # what two rules must have in common to be counted as one


class CountedCluster(Struct, frozen=True, kw_only=True):
    """The cluster without the pods of the round, in which pods are counted."""

    snapshot: Snapshot
    excluded: frozenset[int]  # rows of pods
    nodes: Sequence[tuple[types.Node, types.Labels]]  # the nodes that stay, with their relevant labels
    domains: Mapping[str, TopologyDomains]  # key to the values on new nodes


class Topologies:
    """The topology groups of a round. `prefers`: whether preferences count as requirements until they are relaxed."""

    def __init__(self, counted: CountedCluster, *, prefers: bool) -> None:
        self.chance = _DomainTie()
        self._counted = counted
        self._prefers = prefers
        self._groups: dict[_Fork, _TopologyGroup] = {}
        self._inverse: dict[_Fork, _TopologyGroup] = {}
        self._labels: dict[str, Requirements] = {}  # the labels of nodes, by name
        self._track_running()

    def _track_running(self) -> None:
        pods = self._counted.snapshot.pods
        has_term = pods.specs.where(lambda spec: bool(_required_terms(_anti_affinity(spec))))
        for row in np.flatnonzero(has_term & (pods.node >= 0)).tolist():
            if row not in self._counted.excluded:
                labels = self._counted.snapshot.cluster.nodes[int(pods.node[row])].metadata.labels
                self._track_inverse(pods[row], labels)

    def update(self, pod: types.Pod, owner: str) -> None:
        """Set the rules of a pod in its current form, and remove its earlier ones."""
        for group in self._groups.values():
            group.owners.discard(owner)
        anti = _anti_affinity(pod.spec)
        if anti and (
            _required_terms(anti) or (self._prefers and anti.preferred_during_scheduling_ignored_during_execution)
        ):
            self._track_inverse(pod, {}, owner)
        for fork, group in (*self._spreads(pod), *self._affinities(pod)):
            known = self._groups.get(fork)
            if known is None:
                self._count(group)
                self._groups[fork] = known = group
            known.owners.add(owner)

    def _track_inverse(self, pod: types.Pod, labels: types.Labels, owner: str = "") -> None:
        for term in _required_terms(_anti_affinity(pod.spec)):
            fork, topology_group = self._term_group(TopologyType.ANTI_AFFINITY, pod, term)
            group = self._inverse.setdefault(fork, topology_group)
            if group.key in labels:
                group.record((labels[group.key],))
            group.owners.add(owner or pod.key)

    def record(self, pod: types.Pod, owner: str, taints: Sequence[types.Taint], requirements: Requirements) -> None:
        """Count the pod on a node with these requirements."""
        for group in self._groups.values():
            if group.counts_pod(pod, taints, requirements):
                values = requirements.requirement(group.key).values
                is_sure = len(values) == 1 and not requirements.requirement(group.key).is_complement
                if is_sure or group.kind is TopologyType.ANTI_AFFINITY:
                    group.record(values)
        for group in self._inverse.values():
            if owner in group.owners:
                group.record(requirements.requirement(group.key).values)

    def register(self, key: str, domain: str) -> None:
        for group in (*self._groups.values(), *self._inverse.values()):
            if group.key == key:
                group.register(domain)

    def narrow(
        self, pod: types.Pod, owner: str, taints: Sequence[types.Taint], of_pod: Requirements, of_node: Requirements
    ) -> Requirements | Unsatisfiable:
        """Return the node's requirements with the domains that the rules allow."""
        requirements = of_node
        for group in self._matching_groups(pod, owner, taints, of_node):
            allowed = group.next_domains(pod, of_pod.requirement(group.key), of_node.requirement(group.key))
            if not allowed.values:
                return Unsatisfiable(
                    kind=group.kind,
                    key=group.key,
                    counts=dict(group.counts),
                    of_pod=of_pod.requirement(group.key),
                    of_node=of_node.requirement(group.key),
                )
            requirements = requirements.together((allowed,))
        return requirements

    def _matching_groups(
        self, pod: types.Pod, owner: str, taints: Sequence[types.Taint], of_node: Requirements
    ) -> Iterator[_TopologyGroup]:
        yield from (group for group in self._groups.values() if owner in group.owners)
        yield from (group for group in self._inverse.values() if group.counts_pod(pod, taints, of_node))

    # --- groups

    def _spreads(self, pod: types.Pod) -> Iterator[tuple[_Fork, _TopologyGroup]]:
        for constraint in pod.spec.topology_spread_constraints:
            if self._prefers or constraint.when_unsatisfiable == "DoNotSchedule":
                selector = _with_match_labels(constraint, pod.metadata.labels)
                node_filter = _filter_of(pod, constraint)
                yield self._group(
                    TopologyType.SPREAD, pod, constraint.topology_key, frozenset({pod.metadata.namespace}), selector,
                    node_filter=node_filter, max_skew=constraint.max_skew, min_domains=constraint.min_domains,
                )  # fmt: skip

    def _affinities(self, pod: types.Pod) -> Iterator[tuple[_Fork, _TopologyGroup]]:
        affinity = pod.spec.affinity
        if affinity is None:
            return
        both = (
            (TopologyType.AFFINITY, affinity.pod_affinity),
            (TopologyType.ANTI_AFFINITY, affinity.pod_anti_affinity),
        )
        for kind, rules in both:
            for term in _required_terms(rules):
                yield self._term_group(kind, pod, term)
            if self._prefers and rules is not None:
                for weighted in rules.preferred_during_scheduling_ignored_during_execution:
                    yield self._term_group(kind, pod, weighted.pod_affinity_term)

    def _term_group(
        self, kind: TopologyType, pod: types.Pod, term: types.PodAffinityTerm
    ) -> tuple[_Fork, _TopologyGroup]:
        namespaces = self._namespaces(pod.metadata.namespace, term)
        return self._group(kind, pod, term.topology_key, namespaces, term.label_selector)

    def _group(
        self,
        kind: TopologyType,
        pod: types.Pod,
        key: str,
        namespaces: frozenset[str],
        raw: LabelSelector | None,
        *,
        node_filter: _NodeFilter | None = None,
        max_skew: int = _MAX_SKEW,
        min_domains: int | None = None,
    ) -> tuple[_Fork, _TopologyGroup]:
        counted = node_filter or _NodeFilter()
        domains = (self._counted.domains.get(key) or TopologyDomains()).tolerated_domains(
            pod.spec.tolerations, honors_taints=node_filter is None or node_filter.honors_taints
        )
        counts = dict.fromkeys(domains, 0)
        topology_group = _TopologyGroup(
            kind=kind,
            key=key,
            namespaces=namespaces,
            selector=_compile_selector(raw),
            raw=raw,
            counts=counts,
            empty=set(counts),
            node_filter=counted,
            chance=self.chance,
            max_skew=max_skew,
            min_domains=min_domains,
        )
        return (kind, key, namespaces, max_skew, _filter_key(node_filter), _selector_key(raw)), topology_group

    def _namespaces(self, own: str, term: types.PodAffinityTerm) -> frozenset[str]:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (own,))
        selector = _compile_selector(term.namespace_selector)
        known = self._counted.snapshot.namespaces
        return frozenset((*term.namespaces, *(name for name, labels in known.items() if selector.matches(labels))))

    def _count(self, group: _TopologyGroup) -> None:
        """Count the domains of nodes and their pods; as upstream, a missing selector counts all pods."""
        counted, pods = self._counted, self._counted.snapshot.pods
        for node, labels in counted.nodes:
            if group.key in labels and self._is_counted(group, node):
                group.register(labels[group.key])
        selector = EVERYTHING if group.raw is None else _compile_selector(group.raw)
        selected = pods.labels.where(selector.matches) & pods.namespaces.where(group.namespaces.__contains__)
        rows = np.flatnonzero(selected & (pods.node >= 0))
        for row, count in self._pods_per_node(rows).items():
            counted_node = counted.snapshot.cluster.nodes[row]
            labels = counted_node.metadata.labels
            domain = labels.get(group.key, counted_node.name if group.key == HOSTNAME else "")
            named = group.key in labels or group.key == HOSTNAME
            if named and self._is_counted(group, counted_node):
                group.counts[domain] = group.counts.get(domain, 0) + count
                group.empty.discard(domain)

    def _is_counted(self, group: _TopologyGroup, node: types.Node) -> bool:
        requirements = self._labels.get(node.name)
        if requirements is None:
            requirements = self._labels[node.name] = Requirements.of_labels(node.metadata.labels)
        return group.node_filter.matches(node.spec.taints, requirements)

    def _pods_per_node(self, rows: Iterable[int]) -> Mapping[int, int]:
        pods = self._counted.snapshot.pods
        return Counter(
            int(pods.node[row])
            for row in rows
            if int(row) not in self._counted.excluded and not pods.deletion_timestamps[row]
        )


def _anti_affinity(spec: types.PodSpec) -> types.PodAffinity | None:
    return spec.affinity.pod_anti_affinity if spec.affinity is not None else None


def _required_terms(rules: types.PodAffinity | None) -> tuple[types.PodAffinityTerm, ...]:
    return rules.required_during_scheduling_ignored_during_execution if rules is not None else ()


def _compile_selector(raw: LabelSelector | None) -> Selector:
    """Compile a selector; an invalid one selects nothing."""
    try:
        return compile_selector(raw)
    except InputError:
        return NO_SELECTOR


def _with_match_labels(constraint: types.TopologySpreadConstraint, labels: types.Labels) -> LabelSelector | None:
    more = tuple(
        SelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    raw = constraint.label_selector
    if not more:
        return raw
    known = raw or LabelSelector()
    return LabelSelector(match_labels=known.match_labels, match_expressions=(*known.match_expressions, *more))


def _filter_of(pod: types.Pod, constraint: types.TopologySpreadConstraint) -> _NodeFilter:
    selected = Requirements.of_labels(pod.spec.node_selector)
    required = pod.spec.required_node_affinity
    terms: tuple[Requirements, ...] = (selected,)
    if required is not None:
        terms = tuple(
            selected.together(Requirements.of_expressions(term.match_expressions).values())
            for term in required.node_selector_terms
        )
    return _NodeFilter(
        terms=terms,
        honors_taints=constraint.node_taints_policy == _HONOR,
        honors_affinity=constraint.node_affinity_policy in (None, _HONOR),
        tolerations=pod.spec.tolerations,
    )


def _filter_key(node_filter: _NodeFilter | None) -> _Fork:
    """Return what upstream's hash includes: only the keys of requirements, and nothing that occurs twice."""
    if node_filter is None:
        return ()
    terms = _odd(frozenset(term) for term in node_filter.terms)
    return terms, node_filter.honors_taints, node_filter.honors_affinity, _odd(node_filter.tolerations)


def _selector_key(raw: LabelSelector | None) -> _Fork:
    if raw is None:
        return ()
    expressions = frozenset((it.key, it.operator, _odd(it.values)) for it in raw.match_expressions)
    return expressions, frozenset(raw.match_labels.items())


def _odd(items: Iterable[object]) -> frozenset[object]:
    return frozenset(item for item, count in Counter(items).items() if count % 2)
