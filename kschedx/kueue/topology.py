"""Placement in a topology: the domains assigned to a pod set, or how many of its pods fit.

Upstream: pkg/cache/scheduler (tas_flavor_snapshot.go, tas_topology_tree.go, tas_nodes_cache.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec import Struct

from kschedx.kube.conditions import condition_of
from kschedx.kube.kueue import (
    PodSet,
    PodSetTopologyRequest,
    PodSetUpdate,
    ResourceFlavor,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
)
from kschedx.kube.kueue import Topology as TopologyObject
from kschedx.kube.names import HOSTNAME, PODS
from kschedx.kube.selectors import CompiledNodeSelector, compile_node_selector
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import Node, Taint, Toleration
from kschedx.kueue.quota import Requests, add_requests, amount_of, divide, exact, times
from kschedx.wording import list_names

Values = tuple[str, ...]


class DomainUsage(Struct, frozen=True, kw_only=True):
    values: Values
    single: Requests
    count: int

    @property
    def total(self) -> Requests:
        return add_requests(times(self.single, self.count), {PODS: self.count})


TopologyUsage = dict[str, list[DomainUsage]]  # flavor to the usage of its domains


class Request(Struct, frozen=True, kw_only=True):
    """A pod set to place with a flavor."""

    pod_set: PodSet
    single: Requests
    count: int
    is_implied: bool  # whether the pod set requests no topology, but all flavors of its queue have one
    updates: tuple[PodSetUpdate, ...] = ()

    @property
    def group(self) -> str | None:
        """Pod sets with the same name are placed together, one of them as the leader."""
        return None if self.pod_set.topology_request is None else self.pod_set.topology_request.pod_set_group_name


class TopologyPlacement(Struct, frozen=True, kw_only=True):
    flavor: str
    assignment: TopologyAssignment | None = None
    failure: str = ""


@dataclass(eq=False, slots=True)
class _Place:
    """A domain of some level, with the counts of one search."""

    values: Values
    children: list[_Place] = field(default_factory=list)
    free: Requests = field(default_factory=dict)
    used: Requests = field(default_factory=dict)
    node: Node | None = None  # the node of a host domain
    pods: int = 0
    slices: int = 0
    leaders: int = 0
    led_pods: int = 0  # the number of pods that fit beside a leader
    led_slices: int = 0

    def clear(self) -> None:
        self.pods = self.slices = self.leaders = self.led_pods = self.led_slices = 0
        for child in self.children:
            child.clear()

    def room(self, *, by_slices: bool, is_led: bool) -> int:
        if by_slices:
            return self.led_slices if is_led else self.slices
        return self.led_pods if is_led else self.pods


def _count_in(requests: Mapping[str, int], capacity: Mapping[str, int]) -> tuple[int, str]:
    """Return how many pods with these requests fit, and the resource that limits them."""
    most = 2**31 - 1
    counts = [
        (most if amount == 0 else max(0, min(divide(capacity.get(name, 0), amount), most)), name)
        for name, amount in requests.items()
    ]
    return min(counts, default=(0, ""))


class FlavorTopology:
    """The nodes of a flavor as a tree, with their usage."""

    def __init__(
        self,
        flavor: ResourceFlavor,
        topology: TopologyObject,
        nodes: Iterable[Node],
        other_pods: Mapping[str, Requests],
        *,
        uses_least_free: bool,
    ) -> None:
        """`other_pods`: node to the requests of pods that Kueue has not placed, counted as `pods`."""
        self.name = topology.metadata.name
        self.levels = tuple(level.node_label for level in topology.spec.levels)
        self.is_by_host = bool(self.levels) and self.levels[-1] == HOSTNAME
        self._tolerations = flavor.spec.tolerations
        self._uses_least_free = uses_least_free
        self._by_level: list[dict[Values, _Place]] = [{} for _ in self.levels]
        self._leaves: dict[Values, _Place] = {}
        self._flavor = flavor.metadata.name
        self._labels_of_usable: set[str] | None = None
        pairs = [f"{key}={value}" for key, value in sorted(flavor.spec.node_labels.items())]
        self._missing = list_names(pairs, 3, conjunction="and")  # the flavor's labels, if no node has them
        for node in nodes:
            labels = node.metadata.labels
            if any(labels.get(key, "") != value for key, value in flavor.spec.node_labels.items()):
                continue
            self._missing = ""
            if not _is_usable(node):
                continue
            self._labels_of_usable = {*(self._labels_of_usable or ()), *(key for key in self.levels if key in labels)}
            if all(key in labels for key in self.levels):
                self._add(node, other_pods.get(node.metadata.name, {}))

    @property
    def obstacle(self) -> tuple[str, str] | None:
        """Return why the topology has no domain, and what gives it one; None if it has one."""
        if self._leaves:
            return None
        nodes = f"of flavor {self._flavor}"
        if self._missing:
            repair = f"add nodes with {self._missing}, or correct nodeLabels of ResourceFlavor {self._flavor}"
            return f"no node has {self._missing} of flavor {self._flavor}", repair
        if self._labels_of_usable is None:
            return f"no node {nodes} is ready and schedulable", f"repair, uncordon, or add nodes {nodes}"
        keys = " and ".join([key for key in self.levels if key not in self._labels_of_usable] or self.levels)
        repair = f"label the nodes {nodes} with {keys}, or correct the levels of Topology {self.name}"
        return f"no node {nodes} is labeled {keys}, as Topology {self.name} requires", repair

    def _add(self, node: Node, taken: Requests) -> None:
        values = tuple(node.metadata.labels[key] for key in self.levels)
        leaf = self._leaves.get(self._key(values))
        if leaf is None:
            leaf = _Place(values, node=node if self.is_by_host else None)
            self._leaves[self._key(values)] = leaf
            below = leaf
            self._by_level[-1][values] = leaf
            for depth in range(len(values) - 1, 0, -1):
                above = self._by_level[depth - 1].get(values[:depth])
                is_known = above is not None
                above = above or _Place(values[:depth])
                self._by_level[depth - 1][above.values] = above
                above.children.append(below)
                if is_known:
                    break
                below = above
        allocatable = {name: amount_of(name, exact(item)) for name, item in node.status.allocatable.items()}
        leaf.free = add_requests(
            leaf.free, add_requests(allocatable, {name: -amount for name, amount in taken.items()})
        )

    @property
    def leaves(self) -> Iterable[_Place]:
        return self._leaves.values()

    def _key(self, values: Values) -> Values:
        return values[-1:] if self.is_by_host else values

    # --- usage

    def use(self, usage: DomainUsage, *, sign: int = 1) -> None:
        leaf = self._leaves.get(usage.values)
        if leaf is not None:
            leaf.used = add_requests(leaf.used, {name: sign * amount for name, amount in usage.total.items()})

    def holds(self, usages: Iterable[DomainUsage]) -> bool:
        for usage in usages:
            leaf = self._leaves.get(usage.values)
            if leaf is None or _count_in(usage.single, _minus(leaf.free, leaf.used))[0] < usage.count:
                return False
        return True

    def has_levels(self, request: PodSetTopologyRequest | None) -> bool:
        level = self._level_of(request)
        return (
            level in self.levels
            and request is not None
            and all(constraint.topology in self.levels for constraint in request.slices)
        )

    def _level_of(self, request: PodSetTopologyRequest | None) -> str | None:
        if request is None:
            return None
        if request.required is not None or request.preferred is not None:
            return request.required if request.required is not None else request.preferred
        if request.slices:
            return self.levels[0]
        return self.levels[-1] if request.unconstrained else None

    # --- placing

    def place(
        self, group: Sequence[Request], assumed: Mapping[Values, Requests], *, is_empty: bool
    ) -> dict[str, TopologyAssignment] | str:
        """Return the assignment of each pod set, or why there is none. `assumed`: usage of the Workload's other pod
        sets. Of two pod sets in a group, the smaller one is the leader, which shares a domain with some of the
        workers."""
        request, leader = group[0], group[1] if len(group) > 1 else None
        if leader is not None and leader.count > request.count:
            request, leader = leader, request
        wanted = request.pod_set.topology_request
        slices = wanted.slices if wanted is not None else ()
        size = slices[0].size if slices else 1
        if size <= 0:
            return "slice topology requested, but slice size not provided"
        level = self._level_of(wanted) or (self.levels[-1] if request.is_implied else None)
        if level is None:
            return "topology level not specified"
        if level not in self.levels:
            return f"no requested topology level: {level}"
        slice_level = slices[0].topology if slices else self.levels[-1]
        if slice_level not in self.levels:
            return f"no requested topology level for slices: {slice_level}"
        if self.levels.index(level) > self.levels.index(slice_level):
            return f"podset slice topology {slice_level} is above the podset topology {level}"
        inner = self._inner_sizes(slices)
        if isinstance(inner, str):
            return inner
        is_slices_only = bool(slices) and wanted is not None and wanted.required is None and wanted.preferred is None
        search = _Search(
            tree=self,
            count=request.count,
            size=size,
            slice_level=self.levels.index(slice_level),
            inner=inner,
            layers=slices if inner else (),
            is_required=wanted is not None and wanted.required is not None,
            is_unconstrained=request.is_implied or is_slices_only or bool(wanted and wanted.unconstrained),
            leaders=int(leader is not None),
        )
        search.count_pods(request, leader, assumed, is_empty=is_empty)
        places_or_reason = search.assign(self.levels.index(level))
        if isinstance(places_or_reason, str):
            return places_or_reason
        places = sorted(places_or_reason, key=lambda place: place.values)
        counts = {request.pod_set.name: [(place, place.pods) for place in places]}
        if leader is not None:
            counts[leader.pod_set.name] = [(place, place.leaders) for place in places]
        return {name: self._assignment(taken) for name, taken in counts.items()}

    def _assignment(self, taken: Iterable[tuple[_Place, int]]) -> TopologyAssignment:
        depth = len(self.levels) - 1 if self.is_by_host else 0
        domains = tuple(TopologyDomain(values=place.values[depth:], count=count) for place, count in taken if count)
        return TopologyAssignment(levels=self.levels[depth:], domains=domains)

    def _inner_sizes(self, slices: Sequence[SliceConstraint]) -> dict[int, int] | str:
        """Level to the size of its groups, for nested slices."""
        sizes: dict[int, int] = {}
        for outer, constraint in pairwise(slices):
            if constraint.topology not in self.levels:
                return f"no requested topology level for additional slice layer: {constraint.topology}"
            above, level = self.levels.index(outer.topology), self.levels.index(constraint.topology)
            if level <= above:
                named = f"additional slice layer topology {constraint.topology}"
                return f"{named} must be at a lower level than {outer.topology}"
            if outer.size % constraint.size:
                return (
                    f"additional slice layer size {constraint.size} must evenly divide parent layer size {outer.size}"
                )
            sizes.update(dict.fromkeys(range(above + 1, level + 1), constraint.size))
        return sizes


def _minus(left: Requests, right: Mapping[str, int]) -> Requests:
    return add_requests(left, {name: -amount for name, amount in right.items()})


def _is_usable(node: Node) -> bool:
    """Return whether the node is ready and not cordoned."""
    return condition_of(node.status.conditions, "Ready", "True") is not None and not node.spec.unschedulable


@dataclass(slots=True)
class _Search:
    """One placement: how many pods fit in each domain, then the chosen domains."""

    tree: FlavorTopology
    count: int
    size: int  # the number of pods that must share a domain of the slice level
    slice_level: int
    inner: dict[int, int]
    layers: Sequence[SliceConstraint]
    is_required: bool
    is_unconstrained: bool
    leaders: int
    nodes: int = 0
    excluded: Counter[str] = field(default_factory=Counter)

    @property
    def takes_least_free(self) -> bool:
        return self.is_unconstrained and self.tree._uses_least_free

    # --- counting

    def count_pods(
        self, request: Request, leader: Request | None, assumed: Mapping[Values, Requests], *, is_empty: bool
    ) -> None:
        tree = self.tree
        single = add_requests(request.single, {PODS: 1})
        lead = None if leader is None else add_requests(leader.single, {PODS: 1})
        for root in tree._by_level[0].values():
            root.clear()
        fits = _NodeFilter(request, tree._tolerations)
        for key, leaf in tree._leaves.items():
            self.nodes += 1
            if leaf.node is not None and (cause := fits.refuses(leaf.node)):
                self.excluded[cause] += 1
                continue
            free = leaf.free if is_empty else _minus(leaf.free, leaf.used)
            free = _minus(free, assumed.get(key, {}))
            leaf.pods, resource = _count_in(single, free)
            if leaf.pods == 0 and resource:
                self.excluded[f'resource "{resource}"'] += 1
            leaf.led_pods = leaf.pods
            if lead is not None and _count_in(lead, free)[0] > 0:
                leaf.leaders = 1
                leaf.led_pods = _count_in(single, _minus(free, lead))[0]
        for root in tree._by_level[0].values():
            self._sum(root, 0)

    def _sum(self, place: _Place, level: int) -> None:
        """Sum the capacity of a domain; beside a leader, subtract the leader's cost in its cheapest child."""
        for child in place.children:
            self._sum(child, level + 1)
        if place.children:
            group = self.inner.get(level + 1, 1)
            place.pods = sum(child.pods // group * group for child in place.children)
            place.slices = sum(child.slices for child in place.children)
            leading = [child for child in place.children if child.leaders or not self.leaders]
            place.leaders = max(child.leaders for child in place.children)
            if leading:
                place.led_pods = place.pods - min(
                    child.pods // group * group - child.led_pods // group * group for child in leading
                )
                place.led_slices = place.slices - min(child.slices - child.led_slices for child in leading)
        if level == self.slice_level:
            place.slices = place.pods // self.size
            place.led_slices = place.led_pods // self.size

    # --- choosing

    def _sort_places(self, places: Iterable[_Place], *, is_led: bool = False) -> list[_Place]:
        sign = 1 if self.takes_least_free else -1
        if is_led:
            return sorted(places, key=lambda it: (-it.leaders, sign * it.led_slices, it.led_pods, it.values))
        return sorted(places, key=lambda place: (sign * place.slices, place.pods, place.values))

    def _best(self, places: Sequence[_Place], needed: int, leaders: int, *, by_slices: bool = True) -> _Place:
        """Return the smallest domain that fits all pods; the first domain if none does."""
        fitting = [
            (number, index)
            for index, place in enumerate(places)
            if place.leaders >= leaders and (number := place.room(by_slices=by_slices, is_led=leaders > 0)) >= needed
        ]
        return places[min(fitting)[1]] if fitting else places[0]

    def _leader_first(self, places: list[_Place], count: int, leaders: int, *, by_slices: bool) -> list[_Place]:
        """Move the first domain to the front that fits the leader and leaves enough capacity for the workers."""
        if not leaders:
            return places
        room = sum(place.room(by_slices=by_slices, is_led=False) for place in places)
        for place in places:
            cost = place.room(by_slices=by_slices, is_led=False) - place.room(by_slices=by_slices, is_led=True)
            if place.leaders >= leaders and room - cost >= count:
                return [place, *(other for other in places if other is not place)]
        return places

    def assign(self, level: int) -> list[_Place] | str:
        fitting = self._fitting_domains(level)
        if isinstance(fitting, str):
            return fitting
        depth, places = fitting
        places = self._spread(places, self.count, self.leaders, self.size, by_slices=True)
        last = len(self.tree.levels) - 1
        while depth < min(last, self.slice_level):
            below = self._sort_places(child for place in places for child in place.children)
            places = self._spread(below, self.count, self.leaders, self.size, by_slices=True)
            depth += 1
        while depth < last:
            size = self.inner.get(depth + 1, 1) if depth >= self.slice_level else self.size
            lower = []
            for place in places:
                children = self._sort_places(place.children)
                if size > 1:
                    for child in children:
                        child.slices, child.led_slices = child.pods // size, child.led_pods // size
                lower += self._spread(children, place.pods, place.leaders, size, by_slices=size > 1)
            places = lower
            depth += 1
        return places

    def _fitting_domains(self, level: int) -> tuple[int, list[_Place]] | str:
        """Return the level at which pods are assigned, and the domains that fit them."""
        places = self._sort_places(self.tree._by_level[level].values(), is_led=True)
        if not places:
            return f"no topology domains at level: {self.tree.levels[level]}"
        needed = self.count // self.size
        fitting = [place for place in places if place.leaders >= self.leaders and place.led_slices >= needed]
        if fitting and self.takes_least_free:
            return level, fitting[:1]
        if fitting and fitting[0] is places[0]:
            return level, [self._best(places, needed, self.leaders)]
        if self.is_required:
            room = places[-1].pods if self.takes_least_free else places[0].slices
            return self._failure(level, room, needed)
        if level > 0 and not self.is_unconstrained:
            return self._fitting_domains(level - 1)
        places = self._leader_first(places, needed, self.leaders, by_slices=True)
        taken: list[_Place] = []
        left = needed
        if self.leaders:
            if not places[0].leaders:
                return self._failure(level, 0, needed)
            is_last = not self.takes_least_free and places[0].led_slices >= left
            taken.append(self._best(places, left, self.leaders) if is_last else places[0])
            left -= taken[0].led_slices
            places = self._sort_places(places[1:])
        for index, place in enumerate(places):
            if left <= 0:
                break
            is_last = not self.takes_least_free and place.slices >= left
            chosen = self._best(places[index:], left, 0) if is_last else place
            taken.append(chosen)
            left -= chosen.slices
        return self._failure(level, needed - left, needed) if left > 0 else (level, taken)

    def _spread(self, places: list[_Place], count: int, leaders: int, size: int, *, by_slices: bool) -> list[_Place]:
        """Use as few of the domains as possible, each with its pods and leader."""
        taken = []
        unit = size if by_slices else 1
        left = count // unit
        places = self._leader_first(places, left, leaders, by_slices=by_slices)
        for index, place in enumerate(places):
            chosen, is_led = place, leaders > 0
            if (
                not self.takes_least_free
                and chosen.leaders >= leaders
                and chosen.room(by_slices=by_slices, is_led=is_led) >= left
            ):
                chosen = self._best(places[index:], left, leaders, by_slices=by_slices)
            room = chosen.room(by_slices=by_slices, is_led=is_led)
            is_last = room >= left and chosen.leaders >= leaders
            share = min(room, left)
            chosen.pods, chosen.leaders = share * unit, min(chosen.leaders, leaders)
            if by_slices:
                chosen.slices = share
            taken.append(chosen)
            left -= share
            leaders -= chosen.leaders
            if is_last:
                return taken
        return []

    # --- messages

    def _failure(self, level: int, fitting: int, needed: int) -> str:
        if self.layers:
            return self._layers_failure(level) + self._exclusions()
        unit = "pod" if self.size == 1 else "slice"
        if fitting == 0:
            text = f'topology "{self.tree.name}" doesn\'t allow to fit any of {needed} {unit}(s)'
        else:
            text = f'topology "{self.tree.name}" allows to fit only {fitting} out of {needed} {unit}(s)'
        return text + self._exclusions()

    def _layers_failure(self, level: int) -> str:
        text = f'topology "{self.tree.name}" doesn\'t allow to fit'
        best = min(self.tree._by_level[level].values(), key=lambda place: (-place.slices, ",".join(place.values)))
        for layer in self.layers:
            target = self.tree.levels.index(layer.topology)
            fitting = _slices_below(best, target - level, layer.size)
            text += f"; {fitting}/{self.count // layer.size} slice(s) fit on level {layer.topology}"
        return text

    def _exclusions(self) -> str:
        if not self.excluded:
            return ""
        reasons = sorted(f"{cause}: {number}" for cause, number in self.excluded.items())
        return f". Total nodes: {self.nodes}; excluded: {', '.join(reasons)}"


def _slices_below(place: _Place, depth: int, size: int) -> int:
    if depth <= 0:
        return place.pods // size
    return sum(_slices_below(child, depth - 1, size) for child in place.children)


class _NodeFilter:
    """Taints, node selector, and required affinity, which count only for hosts."""

    def __init__(self, request: Request, tolerations: Sequence[Toleration]) -> None:
        spec = request.pod_set.template.spec
        self._selector = dict(spec.node_selector)
        self._tolerations = (
            *spec.tolerations,
            *(toleration for up in request.updates for toleration in up.tolerations),
            *tolerations,
        )
        for update in request.updates:
            self._selector.update(update.node_selector)
        required = spec.required_node_affinity
        self._affinity: CompiledNodeSelector | None = None if required is None else compile_node_selector(required)

    def refuses(self, node: Node) -> str:
        taint = find_untolerated(node.spec.taints, self._tolerations, effects=DO_NOT_SCHEDULE, comparison=True)
        if taint is not None:
            return f'taint "{taint_text(taint)}"'
        if any(node.metadata.labels.get(key) != value for key, value in self._selector.items()):
            return "nodeSelector"
        if self._affinity is not None and not self._affinity.matches(node.metadata.labels, node.metadata.name):
            return "affinity"
        return ""


def taint_text(taint: Taint) -> str:
    """Format like taint.ToString(), which leaves the colon out if there is neither a value nor an effect."""
    return str(taint) if taint.effect or taint.value else taint.key
