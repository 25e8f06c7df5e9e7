"""The tree of cohorts and ClusterQueues: lending, usage, borrowing, and dominant resource shares.

A node keeps `max(0, quota - lendingLimit)` and lends the rest to its parent; usage beyond its own part counts in its
parent. A borrowing limit caps, at each level, what is available from above. Upstream: pkg/cache/scheduler
(resource_node.go, clusterqueue_snapshot.go, cohort_snapshot.go, fair_sharing.go).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.kube.documents import Json, set_field, with_spec
from kschedx.kube.field_errors import aggregate, as_json, invalid
from kschedx.kube.kueue import ClusterQueue, Cohort, FairSharing, PodSet, ResourceGroup, Workload
from kschedx.kube.names import CPU
from kschedx.kube.quantity import QuantityFormat, ResourceList, Unit, Written, format_quantity, parse_quantity
from kschedx.kube.resources import exact_request, nano_units
from kschedx.kube.scalars import MAX_INT64, MIN_INT64
from kschedx.kube.types import Container, LimitRange, LimitRangeItem, PodSpec, ResourceRequirements, RuntimeClass

# Amounts as Kueue counts them: cpu in milli, everything else in units, all int64; `_UNLIMITED` stays unlimited.
# Upstream: pkg/resources (amount.go, requests.go, slice_requests.go, resource_formatter.go).

_UNLIMITED = MAX_INT64
_MOST_LEVELS = 200  # of cohorts, whose quota is computed level by level

Requests = dict[str, int]  # resource name to amount


class FlavorResource(NamedTuple):
    flavor: str
    resource: str


Usage = dict[FlavorResource, int]


def plus(left: int, right: int) -> int:
    return _UNLIMITED if _UNLIMITED in (left, right) else _saturate(left + right)


def minus(left: int, right: int) -> int:
    """Subtract; unlimited minus unlimited is 0."""
    if left == _UNLIMITED:
        return 0 if right == _UNLIMITED else _UNLIMITED
    return MIN_INT64 if right == _UNLIMITED else _saturate(left - right)


def _saturate(amount: int) -> int:
    return max(MIN_INT64, min(amount, MAX_INT64))


def divide(amount: int, by: int) -> int:
    """Divide as Go does; 0 divided by 0 is 0."""
    return 0 if by == 0 else math.trunc(Fraction(amount, by))


def times(requests: Mapping[str, int], factor: int) -> Requests:
    return {name: _saturate(amount * factor) for name, amount in requests.items()}


def add_requests(left: Mapping[str, int], right: Mapping[str, int]) -> Requests:
    total = dict(left)
    for name, amount in right.items():
        total[name] = _saturate(total.get(name, 0) + amount)
    return total


def amount_of(resource: str, exact: Fraction) -> int:
    """Return the int64 of an exact amount in units, rounded away from zero."""
    scaled = exact * 1000 if resource == CPU else exact
    return _saturate(math.ceil(scaled) if scaled >= 0 else math.floor(scaled))


def exact(written: Written) -> Fraction:
    return Fraction(nano_units(written), 10**9)


def quota_amount(resource: str, written: Written) -> int:
    """Return a quota; values beyond int64 are unlimited."""
    scaled = exact(written) * (1000 if resource == CPU else 1)
    return _UNLIMITED if scaled >= _UNLIMITED else amount_of(resource, exact(written))


def shown(resource: str, amount: int, *, is_quota: bool = True) -> str:
    """Format as Kueue does: `500m`, `5k`, `2Gi`, `1500M`, and a quota also `<unlimited>`."""
    if is_quota and amount == _UNLIMITED:
        return "<unlimited>"
    quantity = parse_quantity(f"{amount}m" if resource == CPU else str(amount))
    if Unit.of(resource) is Unit.BYTE and resource != "storage" and amount % 1024 == 0:
        quantity = replace(quantity, format=QuantityFormat.BINARY_SI, canonical="")
    return str(quantity)


def display_amount(resource: str, amount: int) -> str:
    """Format for screens, as kubectl prints it."""
    return "unlimited" if amount == _UNLIMITED else format_quantity(amount, Unit.of(resource))


class _Quota(Struct, frozen=True, kw_only=True):
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


_NO_QUOTA = _Quota()


def _quotas_of(groups: Iterable[ResourceGroup]) -> dict[FlavorResource, _Quota]:
    def limit(resource: str, written: str | int | float | None) -> int | None:
        return None if written is None else quota_amount(resource, written)

    return {
        FlavorResource(flavor.name, resource.name): _Quota(
            nominal=quota_amount(resource.name, resource.nominal_quota),
            borrowing_limit=limit(resource.name, resource.borrowing_limit),
            lending_limit=limit(resource.name, resource.lending_limit),
        )
        for group in groups
        for flavor in group.flavors
        for resource in flavor.resources
    }


@dataclass(eq=False, slots=True)
class QuotaNode:
    """A cohort or a ClusterQueue with its usage."""

    name: str
    quotas: Mapping[FlavorResource, _Quota]
    weight: float = 1.0
    parent: CohortNode | None = None
    subtree: Usage = field(default_factory=dict)  # its quota plus what its children lend
    usage: Usage = field(default_factory=dict)

    def quota(self, fr: FlavorResource) -> _Quota:
        return self.quotas.get(fr, _NO_QUOTA)

    def subtree_quota(self, fr: FlavorResource) -> int:
        return self.subtree.get(fr, 0)

    def used_amount(self, fr: FlavorResource) -> int:
        return self.usage.get(fr, 0)

    def kept(self, fr: FlavorResource) -> int:
        """Return what it never lends."""
        limit = self.quota(fr).lending_limit
        return 0 if limit is None else max(0, minus(self.subtree_quota(fr), limit))

    def kept_free(self, fr: FlavorResource) -> int:
        return max(0, minus(self.kept(fr), self.used_amount(fr)))

    def unbounded_available(self, fr: FlavorResource) -> int:
        """Return the remainder; negative if usage exceeds the quota."""
        if self.parent is None:
            return minus(self.subtree_quota(fr), self.used_amount(fr))
        above = self.parent.unbounded_available(fr)
        limit = self.quota(fr).borrowing_limit
        if limit is not None:
            kept = self.kept(fr)
            given = minus(self.subtree_quota(fr), kept)
            taken = max(0, minus(self.used_amount(fr), kept))
            above = min(plus(minus(given, taken), limit), above)
        return plus(self.kept_free(fr), above)

    def available(self, fr: FlavorResource) -> int:
        return max(0, self.unbounded_available(fr))

    def potential(self, fr: FlavorResource) -> int:
        """Return the maximum without any usage."""
        if self.parent is None:
            return self.subtree_quota(fr)
        most = plus(self.kept(fr), self.parent.potential(fr))
        limit = self.quota(fr).borrowing_limit
        return most if limit is None else min(plus(self.subtree_quota(fr), limit), most)

    def add(self, fr: FlavorResource, amount: int) -> None:
        free = self.kept_free(fr)
        self.usage[fr] = plus(self.used_amount(fr), amount)
        if self.parent is not None and amount > free:
            self.parent.add(fr, minus(amount, free))

    def remove(self, fr: FlavorResource, amount: int) -> None:
        above = minus(self.used_amount(fr), self.kept(fr))
        self.usage[fr] = minus(self.used_amount(fr), amount)
        if self.parent is not None and above > 0:
            self.parent.remove(fr, min(amount, above))

    def borrows_with(self, fr: FlavorResource, amount: int) -> bool:
        """Return whether additional usage of `amount` exceeds its quota."""
        return self.subtree_quota(fr) < plus(self.used_amount(fr), amount)

    def is_within_quota(self, frs: Iterable[FlavorResource]) -> bool:
        return not any(self.borrows_with(fr, 0) for fr in frs)

    def fits_in_quota(self, requests: Usage) -> tuple[bool, Usage]:
        """Return whether its quota covers the requests, and what remains for its parent."""
        fits = not any(self.borrows_with(fr, amount) for fr, amount in requests.items())
        return fits, {fr: max(0, minus(amount, self.kept_free(fr))) for fr, amount in requests.items()}

    def ancestors(self) -> Iterator[CohortNode]:
        """Yield the parent first, the root last."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def path(self) -> str:
        return "/" + "/".join([*(ancestor.name for ancestor in reversed(list(self.ancestors()))), self.name])

    def share(self) -> Share:
        """The dominant resource share (`dominantResourceShare`)."""
        if self.parent is None:
            return Share(weight=self.weight)
        borrowed: dict[str, int] = {}
        borrowed_frs = []
        for fr in self.subtree:
            above = minus(self.used_amount(fr), self.subtree_quota(fr))
            if above > 0:
                borrowed[fr.resource] = plus(borrowed.get(fr.resource, 0), above)
                borrowed_frs.append(fr)
        lendable = self.parent.lendable() if borrowed else {}
        ratio, resource = 0.0, ""
        for name in sorted(borrowed):
            if lendable.get(name, 0) > 0:
                weighted_share = float(borrowed[name]) * 1000.0 / float(lendable[name])
                if weighted_share > ratio:
                    ratio, resource = weighted_share, name
        return Share(weight=self.weight, ratio=ratio, resource=resource, borrowed=frozenset(borrowed_frs))


@dataclass(eq=False, slots=True)
class CohortNode(QuotaNode):
    cohorts: list[CohortNode] = field(default_factory=list)
    queues: list[QueueNode] = field(default_factory=list)

    @property
    def root(self) -> CohortNode:
        return self if self.parent is None else self.parent.root

    @property
    def height(self) -> int:
        """The distance to the furthest leaf."""
        own = min(len(self.cohorts) + len(self.queues), 1)
        return max([own, *(cohort.height + 1 for cohort in self.cohorts)])

    def all_queues(self) -> Iterator[QueueNode]:
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.all_queues()

    def lendable(self) -> dict[str, int]:
        """Resource to what this cohort could lend in all flavors."""
        amounts: dict[str, int] = {}
        for fr in self.root.subtree:
            amounts[fr.resource] = plus(amounts.get(fr.resource, 0), self.potential(fr))
        return amounts


@dataclass(eq=False, slots=True)
class QueueNode(QuotaNode):
    queue: ClusterQueue = field(default_factory=ClusterQueue)
    is_active: bool = True
    has_cycle: bool = False  # whether its cohorts form a cycle

    def lowest_fit(self, fr: FlavorResource, amount: int) -> tuple[int, bool]:
        """Return the height of the lowest subtree that fits `amount`, and whether that is below the root."""
        if self.parent is None or not self.borrows_with(fr, amount):
            return 0, self.parent is not None
        left = minus(amount, self.kept_free(fr))
        for node in self.ancestors():
            if not node.borrows_with(fr, left):
                return node.height, node.parent is not None
            left = minus(left, node.kept_free(fr))
        return self.parent.root.height, False


class Share(Struct, frozen=True, kw_only=True):
    weight: float = 1.0
    ratio: float = 0.0  # thousandths of what the parent could lend, before the weight
    resource: str = ""
    borrowed: frozenset[FlavorResource] = frozenset()

    @property
    def is_borrowing(self) -> bool:
        return bool(self.borrowed)

    @property
    def weighted(self) -> float:
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rounded(self) -> int:
        return 2**63 - 1 if math.isinf(self.weighted) else math.ceil(self.weighted)

    @property
    def order(self) -> tuple[bool, float]:
        """Borrowing with weight 0 exceeds every other share."""
        is_infinite = self.weight == 0 and self.ratio != 0
        return is_infinite, self.ratio if is_infinite else self.weighted

    def borrows_any(self, requested: Usage) -> bool:
        return any(requested.get(fr, 0) > 0 for fr in self.borrowed)


def weight_of(sharing: FairSharing | None) -> float:
    return 1.0 if sharing is None or sharing.weight is None else float(exact(sharing.weight))


class QuotaTree(Struct, frozen=True, kw_only=True):
    queues: Mapping[str, QueueNode]
    cohorts: Mapping[str, CohortNode]

    @classmethod
    def of(cls, queues: Sequence[ClusterQueue], cohorts: Sequence[Cohort], active: Iterable[str]) -> QuotaTree:
        """Build the tree without usage. A cohort may lack an object; cohorts whose parents form a cycle are left
        out. Raises `UndecidableError` for a tree of very many levels."""
        objects = {cohort.metadata.name: cohort for cohort in cohorts}
        parents = {name: cohort.parent for name, cohort in objects.items()}
        names = dict.fromkeys([*objects, *parents.values(), *(queue.cohort for queue in queues)])
        levels = {name: _level(name, parents) for name in names if name}
        if any(level is not None and level > _MOST_LEVELS for level in levels.values()):
            raise UndecidableError(f"kschedx evaluates at most {_MOST_LEVELS} levels of Kueue's cohorts")
        nodes = {
            name: CohortNode(
                name=name,
                quotas=_quotas_of(objects[name].spec.resource_groups) if name in objects else {},
                weight=weight_of(objects[name].spec.fair_sharing) if name in objects else 0.0,
            )
            for name, level in levels.items()
            if level is not None
        }
        for name, node in nodes.items():
            above = parents.get(name, "")
            if above:
                node.parent = nodes[above]
                nodes[above].cohorts.append(node)
        is_active = frozenset(active)
        leaves = {}
        for queue in sorted(queues, key=lambda cluster_queue: cluster_queue.metadata.name):
            leaf = QueueNode(
                name=queue.metadata.name,
                quotas=_quotas_of(queue.spec.resource_groups),
                weight=weight_of(queue.spec.fair_sharing),
                parent=nodes.get(queue.cohort),
                queue=queue,
                is_active=queue.metadata.name in is_active,
                has_cycle=bool(queue.cohort) and queue.cohort not in nodes,
            )
            leaves[leaf.name] = leaf
            leaf.subtree = {fr: quota.nominal for fr, quota in leaf.quotas.items()}
            if leaf.parent is not None and leaf.is_active:
                leaf.parent.queues.append(leaf)
        for leaf in leaves.values():
            _give(leaf)
        for node in nodes.values():
            node.subtree = {fr: plus(node.subtree_quota(fr), quota.nominal) for fr, quota in node.quotas.items()} | {
                fr: amount for fr, amount in node.subtree.items() if fr not in node.quotas
            }
        for node in sorted(nodes.values(), key=lambda node: -sum(1 for _ in node.ancestors())):
            _give(node)
        return cls(queues=leaves, cohorts=nodes)


def _give(node: QuotaNode) -> None:
    """Add what the node lends to the parent's quota."""
    if node.parent is None:
        return
    for fr, amount in node.subtree.items():
        node.parent.subtree[fr] = plus(node.parent.subtree_quota(fr), minus(amount, node.kept(fr)))


def _level(name: str, parents: Mapping[str, str]) -> int | None:
    """Return the level of a cohort, 1 for a root; None if its parents form a cycle."""
    seen = set()
    while name:
        if name in seen:
            return None
        seen.add(name)
        name = parents.get(name, "")
    return len(seen)


# The requests of a Workload's pod sets: adjusted, validated, and transformed.
# Upstream: pkg/workload/resources.go, pkg/workload/workload.go, pkg/util/limitrange.

# --- adjusting


def adjust_workload(
    workload: Workload, limit_ranges: Sequence[LimitRange], runtime_classes: Mapping[str, RuntimeClass]
) -> Workload:
    """Return the Workload with overhead, LimitRange defaults, and limits in place of missing requests."""
    pod_sets = tuple(
        replace(
            pod_set,
            template=replace(pod_set.template, spec=_adjust_spec(pod_set.template.spec, limit_ranges, runtime_classes)),
        )
        for pod_set in workload.spec.pod_sets
    )
    return with_spec(workload, pod_sets=pod_sets)


def _adjust_spec(
    spec: PodSpec, limit_ranges: Sequence[LimitRange], runtime_classes: Mapping[str, RuntimeClass]
) -> PodSpec:
    if spec.runtime_class_name is not None and not spec.overhead:
        runtime_class = runtime_classes.get(spec.runtime_class_name)
        if runtime_class is not None and runtime_class.overhead is not None:
            spec = replace(spec, overhead=runtime_class.overhead.pod_fixed)
    summary = _summary(limit_ranges)
    container_limits = summary.get("Container", LimitRangeItem())
    pod_limits = summary.get("Pod", LimitRangeItem())

    def complete(resources: ResourceRequirements, defaults: LimitRangeItem) -> ResourceRequirements:
        limits = {**defaults.default, **resources.limits}
        requests = {**defaults.default_request, **resources.requests}
        return replace(resources, limits=limits, requests={**limits, **requests})

    def completed(containers: Iterable[Container]) -> tuple[Container, ...]:
        return tuple(replace(it, resources=complete(it.resources, container_limits)) for it in containers)

    return replace(
        spec,
        containers=completed(spec.containers),
        init_containers=completed(spec.init_containers),
        resources=spec.resources and complete(spec.resources, pod_limits),
    )


def _summary(limit_ranges: Iterable[LimitRange]) -> dict[str, LimitRangeItem]:
    """Return by type the narrowest bounds of all LimitRanges, and the first defaults."""
    items: dict[str, LimitRangeItem] = {}
    for item in (item for limit_range in limit_ranges for item in limit_range.spec.limits):
        known = items.get(item.type, LimitRangeItem(type=item.type))
        items[item.type] = replace(
            known,
            max=_merge(known.max, item.max, min),
            min=_merge(known.min, item.min, max),
            default={**item.default, **known.default},
            default_request={**item.default_request, **known.default_request},
        )
    return items


_Choice = Callable[[Fraction, Fraction], Fraction]


def _merge(left: ResourceList, right: ResourceList, choose: _Choice) -> ResourceList:
    merged: dict[str, Written] = dict(left)
    for name, written in right.items():
        known = merged.get(name)
        if known is None or choose(exact(known), exact(written)) != exact(known):
            merged[name] = written
    return merged


# --- validating

_ABOVE_LIMITS = "requests must not exceed its limits"
_ABOVE_MAXIMUM = "requests must not be above the limitRange max"
_BELOW_MINIMUM = "requests must not be below the limitRange min"


def invalid_resources(workload: Workload) -> InputError | None:
    """Return the error of requests that exceed the limits of the same container or pod."""
    return aggregate(
        invalid(path, as_json(names), _ABOVE_LIMITS)
        for index, pod_set in enumerate(workload.spec.pod_sets)
        for path, resources in _resources(pod_set.template.spec, _path(index))
        if (names := _greater(_amounts(resources.requests), _amounts(resources.limits)))
    )


def outside_limit_ranges(workload: Workload, limit_ranges: Sequence[LimitRange]) -> InputError | None:
    summary = _summary(limit_ranges)
    return aggregate(
        error
        for index, pod_set in enumerate(workload.spec.pod_sets)
        for error in _outside(pod_set.template.spec, _path(index), summary)
    )


def _outside(spec: PodSpec, path: str, summary: Mapping[str, LimitRangeItem]) -> Iterator[InputError]:
    container_bounds = summary.get("Container")
    if container_bounds is not None:
        for at, resources in _resources(replace(spec, resources=None), path):
            least = _amounts(_merge(resources.requests, resources.limits, min))
            most = _amounts(_merge(resources.requests, resources.limits, max))
            yield from _bounds(at, least, most, container_bounds)
    if "Pod" in summary:
        total = pod_requests(spec)
        yield from _bounds(path, total, total, summary["Pod"])


def _bounds(path: str, least: Requests, most: Requests, bounds: LimitRangeItem) -> Iterator[InputError]:
    if names := _greater(most, _amounts(bounds.max)):
        yield invalid(path, as_json(names), _ABOVE_MAXIMUM)
    if names := _greater(_amounts(bounds.min), least):
        yield invalid(path, as_json(names), _BELOW_MINIMUM)


def _path(index: int) -> str:
    return f"spec.podSets[{index}].template.spec"


def _resources(spec: PodSpec, path: str) -> Iterator[tuple[str, ResourceRequirements]]:
    for index, container in enumerate(spec.init_containers):
        yield f"{path}.initContainers[{index}]", container.resources
    for index, container in enumerate(spec.containers):
        yield f"{path}.containers[{index}]", container.resources
    if spec.resources is not None:
        yield f"{path}.resources", spec.resources


def _amounts(resources: ResourceList) -> Requests:
    return {name: amount_of(name, exact(written)) for name, written in resources.items()}


def _greater(left: Requests, right: Requests) -> list[str]:
    return sorted(name for name, amount in left.items() if name in right and amount > right[name])


# --- counting


def pod_requests(spec: PodSpec) -> Requests:
    """Return the requests of one pod before exclusions and transformations, as topology placement counts them."""
    nano = exact_request(spec)
    return {name: amount_of(name, Fraction(amount, 10**9)) for name, amount in nano.items()}


# --- equivalence


def shape(priority: int, pod_sets: Sequence[PodSet], counted: Sequence[tuple[int, Requests]]) -> bytes:
    """The input of Kueue's equivalence hash: Workloads with the same shape are admissible or inadmissible together."""
    sets = [
        (
            pod_set.name,
            _spec_shape(pod_set.template.spec),
            count,
            sorted(requests.items()),
            pod_set.min_count,
            pod_set.topology_request,
        )
        for pod_set, (count, requests) in zip(pod_sets, counted, strict=True)
    ]
    return msgspec.json.encode((priority, sets))


def _spec_shape(spec: PodSpec) -> object:
    def containers(given: Iterable[Container]) -> list[object]:
        return [(_canonical(container.resources.requests), container.ports) for container in given]

    return (
        containers(spec.init_containers),
        containers(spec.containers),
        sorted(spec.node_selector.items()),
        spec.affinity,
        spec.tolerations,
        spec.runtime_class_name,
        spec.priority,
        spec.topology_spread_constraints,
        _canonical(spec.overhead),
        spec.resource_claims,
        None if spec.resources is None else _canonical(spec.resources.requests),
    )


def _canonical(resources: ResourceList) -> list[tuple[str, str]]:
    return sorted((name, str(parse_quantity(written))) for name, written in resources.items())


QUOTA_FIELDS = {
    "nominalQuota": ("nominal", "nominal_quota"),
    "borrowingLimit": ("borrowing_limit", "borrowing_limit"),
    "lendingLimit": ("lending_limit", "lending_limit"),
}
"""Field of a manifest to its names in the quota tree and in the object."""


def with_quota(
    queue: ClusterQueue, flavor: str, field: str, amounts: Mapping[str, str]
) -> tuple[ClusterQueue, list[Json]]:
    """Return the queue with a field of a flavor's quotas, such as `nominalQuota`, and the JSON patch."""
    patch: list[Json] = []
    groups = []
    for g, group in enumerate(queue.spec.resource_groups):
        flavors = []
        for f, quotas in enumerate(group.flavors):
            resources = list(quotas.resources)
            for r, quota in enumerate(resources if quotas.name == flavor else ()):
                if (amount := amounts.get(quota.name)) is None:
                    continue
                resources[r] = replace(quota, **{QUOTA_FIELDS[field][1]: amount})
                patch.append(set_field(f"/spec/resourceGroups/{g}/flavors/{f}/resources/{r}/{field}", amount))
            flavors.append(replace(quotas, resources=tuple(resources)))
        groups.append(replace(group, flavors=tuple(flavors)))
    return with_spec(queue, resource_groups=tuple(groups)), patch
