"""How many nodes of a group the pods that fit there need: by counting, or on a copy of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.autoscaler.sandbox import OF_OTHERS, AddedNode, NewNodeResult, Sandbox, TemplateVerdict
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.names import HOSTNAME
from kschedx.kube.quantity import milli_value, value
from kschedx.kube.selectors import terms_of
from kschedx.kube.types import NEW, Node, Pod, PodSpec
from kschedx.plugins.inter_pod_affinity.plugin import (
    FILTER,
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
)
from kschedx.plugins.pod_topology_spread import HARD, NO_DOMAIN, REASON_LABEL, REASON_SKEW, Spread
from kschedx.releases.autoscaler import AutoscalerBehavior
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.snapshot.columns import ClusterRow, IntArray
from kschedx.snapshot.pods import host_ports

# An estimate by counting, for pods whose placement on new nodes depends only on free resources, spread, and affinity.
# All new nodes of a group are identical, so for a class of pods only counts differ between them: the used resources of
# the node, and the matching pods in its domains. `SandboxBins` are the general form; a test verifies that both agree.

_SPREAD, _AFFINITY = "PodTopologySpread", "InterPodAffinity"


def is_countable(pod: Pod, seen: NewNodeResult) -> bool:
    """Return whether the pod uses only what is counted here."""
    spec, filters = pod.spec, seen.filters
    if not spec.topology_spread_constraints and any(it.constraint.topology_key == HOSTNAME for it in _spreads(seen)):
        return False  # by the profile's defaults
    if spec.volumes or spec.resource_claims or spec.scheduling_group is not None or host_ports(spec):
        return False
    hard = any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spec.topology_spread_constraints)
    if hard and any(constraint.topology_key == HOSTNAME for constraint in spec.topology_spread_constraints):
        return False  # such a pod may go to existing nodes
    if HOSTNAME in spec.node_selector or _names_nodes(spec):
        return False
    return plugins_with(Trait.SAME_ON_NEW_NODES).issuperset(filters)


def _names_nodes(spec: PodSpec) -> bool:
    """Return whether a term distinguishes nodes by name."""
    return any(
        term.match_fields or any(match_expression.key == HOSTNAME for match_expression in term.match_expressions)
        for term in terms_of(spec.required_node_affinity)
    )


class _Sum(Struct, kw_only=True):
    """The weights of pods in the domain of a new node, for one topology key."""

    is_host: bool  # whether each new node is its own domain
    has_label: bool
    base: int  # the weight in the new nodes' domain without any new node
    per_new_node: int  # the weight that a new node adds
    weights: IntArray  # (class,) the weight of a pod

    def on_node(self, filled: IntArray | None) -> int:
        """Return the weight in a new node's domain. `filled` is (class,) the pods on it; None for an empty node."""
        if not self.has_label:
            return 0
        if self.is_host:
            return self.per_new_node + (0 if filled is None else int(filled @ self.weights))
        return self.base


class _SpreadCount(Struct, kw_only=True):
    """One constraint over domains other than hosts."""

    max_skew: int
    min_domains: int
    self_match: int
    is_counted: bool
    counts: dict[str | None, int]  # domain to matching pods without new nodes, for domains that count
    uncounted: int  # matching pods in the new nodes' domain if it does not count
    domain: str | None
    per_new_node: int
    weights: IntArray

    @property
    def is_skewed(self) -> bool:
        matching = self.counts.get(self.domain, self.uncounted)
        least = 0 if len(self.counts) < self.min_domains else min(self.counts.values(), default=NO_DOMAIN)
        return matching + self.self_match - least > self.max_skew


class _MissingLabel(Struct, frozen=True):
    """A constraint whose label the new nodes lack."""


class _SpreadDomains(Struct, kw_only=True):
    """Spread and affinity from the view of new nodes, before any is added."""

    spreads: list[_SpreadCount | _MissingLabel]
    affinity: list[_Sum]
    anti_affinity: list[_Sum]
    existing: list[_Sum]
    matches_itself: bool
    everywhere: int
    everywhere_per_new_node: int

    def add(self) -> None:
        for spread in self.spreads:
            if isinstance(spread, _SpreadCount) and spread.is_counted:
                spread.counts[spread.domain] = spread.counts.get(spread.domain, 0) + spread.per_new_node
        for total in (*self.affinity, *self.anti_affinity, *self.existing):
            if not total.is_host and total.has_label:
                total.base += total.per_new_node
        self.everywhere += self.everywhere_per_new_node

    def place(self, pod_class: int) -> None:
        """Place a pod of this class on a new node."""
        for spread in self.spreads:
            if isinstance(spread, _SpreadCount) and spread.weights[pod_class] and spread.is_counted:
                spread.counts[spread.domain] += int(spread.weights[pod_class])
        for total in self.affinity:
            if total.has_label:
                self.everywhere += int(total.weights[pod_class])
        for total in (*self.affinity, *self.anti_affinity, *self.existing):
            if not total.is_host and total.has_label:
                total.base += int(total.weights[pod_class])

    def spread_reason(self) -> str:
        """Return the reason of the first constraint that a new node fails."""
        for spread in self.spreads:
            if isinstance(spread, _MissingLabel):
                return REASON_LABEL
            if spread.is_skewed:
                return REASON_SKEW
        return ""

    def affinity_reason(self, filled: IntArray | None) -> str:
        """`filled` is (class,) the pods on the node; None for an empty node."""
        if self.affinity:
            sums = [total.on_node(filled) for total in self.affinity]
            finds_nobody = any(total <= 0 for total in sums)
            lacks_label = any(not total.has_label for total in self.affinity)
            if lacks_label or (finds_nobody and not (self.matches_itself and self.everywhere == 0)):
                return REASON_AFFINITY
        if any(total.on_node(filled) > 0 for total in self.anti_affinity):
            return REASON_ANTI_AFFINITY
        return REASON_EXISTING_ANTI_AFFINITY if any(total.on_node(filled) > 0 for total in self.existing) else ""


class _ClassCounts(Struct, frozen=True, kw_only=True):
    limit: IntArray
    base: IntArray
    weights: IntArray  # (class, dimension) what a pod of each class uses, in this class's dimensions
    domains: _SpreadDomains


class CountingBins:
    """New nodes of a group as counts, for classes of pods that depend on nothing else."""

    def __init__(self, sandbox: Sandbox, classes: Sequence[int], seen: Sequence[NewNodeResult]) -> None:
        """`classes` has one pod of each class, and `seen` their results for the group's template."""
        rows = np.array(classes, dtype=np.int64)
        self._sandbox = sandbox
        self._tracked = [_class_counts(looked_up, rows) for looked_up in seen]
        self._filled = np.zeros((64, len(classes)), dtype=np.int64)
        self._count = 0

    def add(self) -> int:
        if self._count == len(self._filled):
            self._filled = np.concatenate([self._filled, np.zeros_like(self._filled)])
        for tracked in self._tracked:
            tracked.domains.add()
        self._count += 1
        return self._count - 1

    def place(self, pod_class: int, pod: int, node: int) -> None:
        self._filled[node, pod_class] += 1
        for tracked in self._tracked:
            tracked.domains.place(pod_class)

    def fits(self, pod_class: int, pod: int, node: int) -> bool:
        tracked = self._tracked[pod_class]
        used = tracked.base + self._filled[node] @ tracked.weights
        return bool((used <= tracked.limit).all()) and self._fits_others(pod_class, node)

    def _fits_others(self, pod_class: int, node: int) -> bool:
        domains = self._tracked[pod_class].domains
        return not domains.spread_reason() and not domains.affinity_reason(self._filled[node])

    def find(self, pod_class: int, pod: int) -> int | None:
        tracked = self._tracked[pod_class]
        used = tracked.base + self._filled[: self._count] @ tracked.weights
        roomy = np.flatnonzero((used <= tracked.limit).all(axis=1))
        first = self._sandbox.node_count
        start = int(np.searchsorted(roomy, self._sandbox.last - first, side="right"))
        for node in (*roomy[start:].tolist(), *roomy[:start].tolist()):
            if self._fits_others(pod_class, node):
                self._sandbox.last = ClusterRow(first + node)
                return int(node)
        return None

    def place_on_other_node(self, pod_class: int, pod: int, last: int) -> int | None:
        return None


def rejections_by_others(seen: NewNodeResult) -> Iterator[TemplateVerdict]:
    """Yield the rejections of plugins that read other nodes, of which no other new node counts."""
    if OF_OTHERS & set(seen.filters):
        domains = _domains_of(seen, np.zeros(0, dtype=np.int64))
        domains.add()
        for plugin, reason in ((_SPREAD, domains.spread_reason()), (_AFFINITY, domains.affinity_reason(None))):
            if reason and plugin in seen.filters:
                yield TemplateVerdict(fits=False, plugin=plugin, reasons=(reason,))


def _spreads(seen: NewNodeResult) -> tuple[Spread, ...]:
    is_asked = seen.stopped is None and _SPREAD in seen.filters and _SPREAD not in seen.state.skip_filter
    return seen.state[HARD] if is_asked else ()


def _domains_of(seen: NewNodeResult, classes: IntArray) -> _SpreadDomains:
    """Return the counts without new nodes; `classes` are rows of a pod of each class."""
    state = seen.state
    spreads = _spreads(seen)
    domains = _SpreadDomains(
        spreads=[_spread(spread, seen, classes) for spread in spreads],
        affinity=[],
        anti_affinity=[],
        existing=[],
        matches_itself=False,
        everywhere=0,
        everywhere_per_new_node=0,
    )
    if _AFFINITY not in seen.filters or FILTER not in state:
        return domains
    counts = state[FILTER]
    domains.matches_itself = counts.matches_itself
    domains.everywhere = int(counts.affinity.everywhere[seen.node])
    for groups, sums in (
        (domains.affinity, counts.affinity),
        (domains.anti_affinity, counts.anti_affinity),
        (domains.existing, counts.existing_anti_affinity),
    ):
        for key, tally in sums.weights.items():
            column = tuple(seen.labels_of_new[index].get(key) for index in range(len(seen.new)))
            label = seen.labels.get(key)
            per_new_node = [
                int(tally.weights(seen.pods, brought.pods).sum()) if value is not None and len(brought.pods) else 0
                for brought, value in zip(seen.new, column, strict=True)
            ]
            mine = sum(amount for amount, value in zip(per_new_node, column, strict=True) if value == label)
            groups.append(
                _Sum(
                    is_host=key == HOSTNAME,
                    has_label=label is not None,
                    base=int(sums.sums[key][seen.node]) - mine,
                    per_new_node=per_new_node[seen.index],
                    weights=np.asarray(tally.weights(seen.pods, classes), dtype=np.int64),
                )
            )
            if groups is domains.affinity:
                domains.everywhere -= sum(per_new_node)
                domains.everywhere_per_new_node += per_new_node[seen.index]
    return domains


def _class_counts(seen: NewNodeResult, classes: IntArray) -> _ClassCounts:
    room = seen.room
    assert room is not None, "no requirement was counted"
    return _ClassCounts(
        limit=room.limit[seen.index],
        base=room.used[seen.index],
        weights=room.weights(classes),
        domains=_domains_of(seen, classes),
    )


def _spread(spread: Spread, seen: NewNodeResult, classes: IntArray) -> _SpreadCount | _MissingLabel:
    codes, values = spread.domains.codes, spread.domains.values
    mine = int(codes[seen.node])
    if values[mine] is None:
        return _MissingLabel()
    counts_pods = seen.empty_selector_counts or not spread.constraint.selector.empty
    matching = spread.matching.copy()
    nodes = np.bincount(codes[spread.counted], minlength=len(values))
    per_new_node = 0
    for index, brought in enumerate(seen.new):
        if not spread.counted[brought.node]:
            continue
        amount = int(spread.selected.weights(seen.pods, brought.pods).sum()) if counts_pods and len(brought.pods) else 0
        matching[codes[brought.node]] -= amount
        nodes[codes[brought.node]] -= 1
        if index == seen.index:
            per_new_node = amount
    return _SpreadCount(
        max_skew=spread.constraint.max_skew,
        min_domains=spread.constraint.min_domains,
        self_match=spread.self_match,
        is_counted=bool(spread.counted[seen.node]),
        counts={values[code]: int(matching[code]) for code in np.flatnonzero(nodes).tolist()},
        uncounted=int(matching[mine]),
        domain=values[mine],
        per_new_node=per_new_node,
        weights=spread.selected.weights(seen.pods, classes) * int(counts_pods),
    )


# How many nodes of a group the pods that fit there need. Upstream: estimator/binpacking_estimator.go and its
# thresholds.


class Estimate(Struct, frozen=True, kw_only=True):
    """The result of packing."""

    nodes: int
    pods: tuple[int, ...]  # the placed pods, in the order of packing


class SandboxBins:
    """New nodes in a fork of the sandbox: the general form."""

    def __init__(self, sandbox: Sandbox, template: AddedNode, behavior: AutoscalerBehavior) -> None:
        self._sandbox = sandbox
        self._template = template
        self._behavior = behavior
        self._first = sandbox.node_count
        self._count = 0

    def add(self) -> int:
        self._sandbox.add(rename_template(self._template, f"{self._template.node.name}-e-{self._count}"))
        self._count += 1
        return self._count - 1

    def _row(self, node: int) -> ClusterRow:
        return ClusterRow(self._first + node)

    def fits(self, pod_class: int, pod: int, node: int) -> bool:
        return self._sandbox.check(pod, self._row(node)).fits

    def place(self, pod_class: int, pod: int, node: int) -> None:
        self._sandbox.place(pod, self._row(node))

    def find(self, pod_class: int, pod: int) -> int | None:
        """Return a new node that fits the pod."""
        if not self._count:
            return None
        mask = np.zeros(self._sandbox.node_count, dtype=np.bool_)
        mask[self._first :] = True
        node = self._sandbox.find(pod, mask)
        return None if node is None else node - self._first

    def place_on_other_node(self, pod_class: int, pod: int, last: int) -> int | None:
        """If the last new node violates a spread constraint over hosts, place the pod on any other node of the cluster.
        Existing nodes have negative numbers."""
        if not self._behavior.spread_pods_go_anywhere or not _spreads_over_hosts(self._sandbox.pod(pod)):
            return None
        if REASON_SKEW not in self._sandbox.check(pod, self._row(last)).reasons:
            return None
        mask = np.ones(self._sandbox.node_count, dtype=np.bool_)
        mask[self._first + last] = False
        node = self._sandbox.find(pod, mask)
        if node is not None:
            self._sandbox.place(pod, node)
        return None if node is None else node - self._first


_Bins = CountingBins | SandboxBins  # new nodes of a group, numbered from 0. A pod is given with the number of its class


class Estimator(Struct):
    bins: _Bins
    limit: int  # as returned by `node_limit`
    added: int = 0
    last: int | None = None  # the newest node
    used: set[int] = set()  # the nodes that got a pod; existing nodes may be among them
    pods: list[int] = []

    def estimate(self, classes: Sequence[_PackingClass], fast: int = -1) -> Estimate:
        """Pack `classes` in this order. `fast` is the number of the class that is packed by arithmetic; it is the last
        one then."""
        computed = 0
        more = True
        for pod_class in classes:
            left = self._place_on_earlier_nodes(pod_class)
            if not more:
                continue
            if pod_class.number == fast:
                computed = self._fast(pod_class.number, left)
            else:
                more = self._place_on_new_nodes(pod_class.number, left)
        return Estimate(nodes=len(self.used) + computed, pods=tuple(self.pods))

    def _record_placement(self, pod: int, node: int) -> None:
        self.used.add(node)
        self.pods.append(pod)

    def _place_on_earlier_nodes(self, pod_class: _PackingClass) -> Sequence[int]:
        """Place pods on any node of this estimate until one does not fit. Return that pod and those after it."""
        for index, pod in enumerate(pod_class.pods):
            node = self.bins.find(pod_class.number, pod)
            if node is None:
                return pod_class.pods[index:]
            self.bins.place(pod_class.number, pod, node)
            self._record_placement(pod, node)
        return ()

    def _may_add(self) -> bool:
        if self.limit < 0 or (self.limit > 0 and self.added >= self.limit):
            return False
        self.added += 1
        return True

    def _place_on_new_nodes(self, pod_class: int, pods: Sequence[int]) -> bool:
        """Place pods on the last new node or further ones. Return False if no more may be added."""
        bins = self.bins
        for pod in pods:
            if self.last is not None:
                if bins.fits(pod_class, pod, self.last):
                    bins.place(pod_class, pod, self.last)
                    self._record_placement(pod, self.last)
                    continue
                node = bins.place_on_other_node(pod_class, pod, self.last)
                if node is not None:
                    self._record_placement(pod, node)
                    continue
                if self.last not in self.used:
                    return True  # if an empty node does not fit the pod, no other one does
            if not self._may_add():
                return False
            self.last = bins.add()
            if not bins.fits(pod_class, pod, self.last):
                return True
            bins.place(pod_class, pod, self.last)
            self._record_placement(pod, self.last)
        return True

    def _fast(self, pod_class: int, pods: Sequence[int]) -> int:
        """Pack one node, and compute the rest. Return the number of computed nodes."""
        if not pods or not self._may_add():
            return 0
        node = self.last = self.bins.add()
        count = 0
        for pod in pods:
            if not self.bins.fits(pod_class, pod, node):
                break
            self.bins.place(pod_class, pod, node)
            self._record_placement(pod, node)
            count += 1
        if count == 0:
            return 0
        needed = -(-len(pods) // count)
        placed = count
        computed = 0
        for _ in range(1, needed):
            if not self._may_add():
                break
            more = pods[placed : placed + count]
            self.pods.extend(more)
            placed += len(more)
            computed += bool(more)
        return computed


class _PackingClass(Struct, frozen=True, kw_only=True):
    """An equivalence class of pods, in the order of packing."""

    number: int
    pods: tuple[int, ...]


def rename_template(template: AddedNode, name: str) -> AddedNode:
    """Copy a template with another name."""
    return replace(template, node=renamed(template.node, name))


def renamed(node: Node, name: str) -> Node:
    labels = {**node.metadata.labels, HOSTNAME: name}
    return replace(node, metadata=replace(node.metadata, name=name, labels=labels, uid=f"{NEW}{name}"))


def sort_classes(
    classes: Sequence[tuple[int, ...]], requests: Mapping[int, tuple[int, int]], node: Node
) -> list[_PackingClass]:
    """Sort by the sum of the cpu and memory fractions that the first pod of each class requests, highest first;
    `requests` has its milli-cpu and memory. A class's number is its index in `classes`."""
    cpu = milli_value(node.status.allocatable.get("cpu", 0))
    memory = value(node.status.allocatable.get("memory", 0))

    def score(pod_class: tuple[int, ...]) -> float:
        asked_cpu, asked_memory = requests[pod_class[0]]
        total = 0.0
        if cpu > 0:
            total += float(asked_cpu) / float(cpu)
        if memory > 0:
            total += float(asked_memory) / float(memory)
        return total

    scored = [
        (score(pod_class), _PackingClass(number=number, pods=pod_class)) for number, pod_class in enumerate(classes)
    ]
    sort_slice(scored, lambda a, b: a[0] > b[0])
    return [pod_class for _, pod_class in scored]


def _spreads_over_hosts(pod: Pod) -> bool:
    """Return whether a spread constraint, hard or soft, uses hostnames."""
    return any(constraint.topology_key == HOSTNAME for constraint in pod.spec.topology_spread_constraints)
