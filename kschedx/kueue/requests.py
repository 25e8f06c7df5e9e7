"""The requests of a Workload's pod sets: adjusted, validated, and transformed.

Upstream: pkg/workload/resources.go, pkg/workload/workload.go, pkg/util/limitrange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.field_errors import aggregate, as_json, invalid
from kschedx.kube.kueue import PodSet, Workload
from kschedx.kube.names import CPU
from kschedx.kube.quantity import ResourceList, Written, parse_quantity
from kschedx.kube.resources import SPEC_ALONE, exact_request
from kschedx.kube.types import (
    Container,
    LimitRange,
    LimitRangeItem,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    RuntimeClass,
)
from kschedx.kueue.quota import Requests, amount_of, exact, times
from kschedx.kueue.settings import KueueSettings, Transformation

# --- adjusting


def adjusted(
    workload: Workload, limit_ranges: Sequence[LimitRange], runtime_classes: Mapping[str, RuntimeClass]
) -> Workload:
    """Return the Workload with overhead, LimitRange defaults, and limits in place of missing requests."""
    pod_sets = tuple(
        replace(
            pod_set,
            template=replace(pod_set.template, spec=_adjusted(pod_set.template.spec, limit_ranges, runtime_classes)),
        )
        for pod_set in workload.spec.pod_sets
    )
    return replace(workload, spec=replace(workload.spec, pod_sets=pod_sets))


def _adjusted(
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
        return tuple(
            replace(container, resources=complete(container.resources, container_limits)) for container in containers
        )

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
            max=_merged(known.max, item.max, min),
            min=_merged(known.min, item.min, max),
            default={**item.default, **known.default},
            default_request={**item.default_request, **known.default_request},
        )
    return items


_Choice = Callable[[Fraction, Fraction], Fraction]


def _merged(left: ResourceList, right: ResourceList, choose: _Choice) -> ResourceList:
    merged: dict[str, Written] = dict(left)
    for name, written in right.items():
        known = merged.get(name)
        if known is None or choose(exact(known), exact(written)) != exact(known):
            merged[name] = written
    return merged


# --- validating

ABOVE_LIMITS = "requests must not exceed its limits"
ABOVE_MAXIMUM = "requests must not be above the limitRange max"
BELOW_MINIMUM = "requests must not be below the limitRange min"


def invalid_resources(workload: Workload) -> InputError | None:
    """Return the error of requests that exceed the limits of the same container or pod."""
    return aggregate(
        invalid(path, as_json(names), ABOVE_LIMITS)
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
            least = _amounts(_merged(resources.requests, resources.limits, min))
            most = _amounts(_merged(resources.requests, resources.limits, max))
            yield from _bounds(at, least, most, container_bounds)
    if "Pod" in summary:
        total = pod_requests(spec)
        yield from _bounds(path, total, total, summary["Pod"])


def _bounds(path: str, least: Requests, most: Requests, bounds: LimitRangeItem) -> Iterator[InputError]:
    if names := _greater(most, _amounts(bounds.max)):
        yield invalid(path, as_json(names), ABOVE_MAXIMUM)
    if names := _greater(_amounts(bounds.min), least):
        yield invalid(path, as_json(names), BELOW_MINIMUM)


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
    nano = exact_request(spec, PodStatus(), SPEC_ALONE)
    return {name: amount_of(name, Fraction(amount, 10**9)) for name, amount in nano.items()}


def quota_requests(spec: PodSpec, count: int, settings: KueueSettings) -> Requests:
    resources = settings.configuration.resources
    nano = exact_request(spec, PodStatus(), SPEC_ALONE)
    kept = {
        name: Fraction(amount, 10**9)
        for name, amount in nano.items()
        if not name.startswith(resources.exclude_resource_prefixes or ("\0",))
    }
    transformed = _transformed(kept, resources.transformations)
    return times({name: max(amount_of(name, amount), 0) for name, amount in transformed.items()}, count)


def _transformed(requests: Mapping[str, Fraction], transformations: Iterable[Transformation]) -> Mapping[str, Fraction]:
    by_input = {transformation.input: transformation for transformation in transformations}
    if not any(name in by_input for name in requests):
        return requests
    retained: dict[str, Fraction] = {}
    generated: dict[str, Fraction] = {}
    for name, amount in requests.items():
        mapping = by_input.get(name)
        if mapping is None or mapping.strategy == "Retain":
            retained[name] = amount
        if mapping is None:
            continue
        scaled = amount * requests.get(mapping.multiply_by, Fraction(1)) if mapping.multiply_by else amount
        for output, factor in mapping.factors.items():
            generated[output] = generated.get(output, Fraction(0)) + scaled * factor
    for name, amount in generated.items():
        retained[name] = retained.get(name, Fraction(0)) + max(amount, Fraction(0))
    return retained


def quota_unit(resource: str) -> Fraction:
    """Return the amount of one integer in the resource's unit."""
    return Fraction(1, 1000) if resource == CPU else Fraction(1)


# --- equivalence


def shape(priority: int, pod_sets: Sequence[PodSet], counted: Sequence[tuple[int, Requests]]) -> bytes:
    """Return the input of Kueue's equivalence hash: Workloads with the same shape are admissible or inadmissible
    together."""
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
