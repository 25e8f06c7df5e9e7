"""What the API server refuses in requests, limits, overhead and a node's resources, in its words.

Each function yields errors, none if all is well; names of resources are taken in order of the alphabet, which Go
leaves to chance. Upstream: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kschedx.api.field_errors import as_json, forbidden, invalid, not_supported, quoted, required
from kschedx.api.names import label_key_errors
from kschedx.api.quantity import Quantity, ResourceList, parse_quantity
from kschedx.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended_resource,
    is_hugepages,
    is_native_resource,
    is_overcommit_allowed,
    is_pod_level_resource,
)
from kschedx.api.resources import container_limits, container_requests, exact_nano_units
from kschedx.api.types import PodSpec, ResourceRequirements
from kschedx.errors import InputError, Place

_OF_CONTAINERS = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_OBJECT_COUNTS = frozenset(
    {"services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers", PODS}
)
_STANDARD = frozenset(
    {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _OF_CONTAINERS}
    | {"storage", "requests.storage"}
    | _OBJECT_COUNTS
)


def validate_requirements(
    resources: ResourceRequirements, field: str, *, is_pod_level: bool = False
) -> Iterator[InputError]:
    """Requests and limits of a container, or of a pod as a whole."""
    limits, limit_errors = _parsed(resources.limits, f"{field}.limits")
    requests, request_errors = _parsed(resources.requests, f"{field}.requests")
    yield from limit_errors
    for name, quantity in limits.items():
        where = f"{field}.limits[{name}]"
        yield from _name(name, where, is_pod_level=is_pod_level)
        yield from _quantity(name, quantity, where)
        yield from _hugepages(name, quantity, where)
    yield from request_errors
    for name, quantity in requests.items():
        where = f"{field}.requests[{name}]"
        yield from _name(name, where, is_pod_level=is_pod_level)
        yield from _quantity(name, quantity, where)
        if name in limits:
            yield from _request_against_limit(name, quantity, limits[name], f"{field}.requests")
        elif name not in resources.limits and not is_overcommit_allowed(name):
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        yield from _hugepages(name, quantity, where)
    named = limits.keys() | requests.keys()
    if any(map(is_hugepages, named)) and not named & {CPU, MEMORY}:
        yield forbidden(field, "HugePages require cpu or memory")


def validate_pod_level(spec: PodSpec, field: str) -> Iterator[InputError]:
    """spec.resources, by itself and against what the containers ask for."""
    if spec.resources is None:
        return
    yield from validate_requirements(spec.resources, field, is_pod_level=True)
    try:
        requests, limits = container_requests(spec), container_limits(spec)
        pod_limits = {name: parse_quantity(limit) for name, limit in spec.resources.limits.items()}
    except InputError:
        return  # reported where it stands
    for name, together in sorted(requests.items()):
        request = spec.resources.requests.get(name)
        if request is not None and _exceeds(together, parse_quantity(request)):
            detail = f"must be greater than or equal to aggregate container requests of {together}"
            yield _invalid(f"{field}.requests[{name}]", parse_quantity(request), detail)
    for name, together in sorted(limits.items()):
        if is_hugepages(name) and name in pod_limits and _exceeds(together, pod_limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {together}"
            yield _invalid(f"{field}.limits[{name}]", pod_limits[name], detail)
    for index, container in enumerate(spec.containers):
        for name, limit in sorted(container.resources.limits.items()):
            if name in pod_limits and _exceeds(parse_quantity(limit), pod_limits[name]):
                where = f"{field}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {pod_limits[name]}"
                yield _invalid(where, parse_quantity(limit), detail)


def validate_amounts(resources: ResourceList, field: str) -> Iterator[InputError]:
    """A node's capacity or allocatable: never negative, whole where the resource is counted."""
    return _amounts((name, written, f"{field}.{name}") for name, written in sorted(resources.items()))


def validate_requested(resources: ResourceList, field: str) -> Iterator[InputError]:
    """Only the amounts of a request or limit, in the same way."""
    return _amounts((name, written, f"{field}[{name}]") for name, written in sorted(resources.items()))


def _amounts(named: Iterable[tuple[str, str | int | float, str]]) -> Iterator[InputError]:
    for name, written, where in named:
        try:
            yield from _quantity(name, parse_quantity(written), where)
        except InputError as error:
            yield error.at(Place(field=where))


def _parsed(resources: ResourceList, field: str) -> tuple[dict[str, Quantity], list[InputError]]:
    quantities, errors = {}, []
    for name, written in sorted(resources.items()):
        try:
            quantities[name] = parse_quantity(written)
        except InputError as error:
            errors.append(error.at(Place(field=f"{field}[{name}]")))
    return quantities, errors


def _name(name: str, field: str, *, is_pod_level: bool) -> Iterator[InputError]:
    errors = [invalid(field, as_json(name), message) for message in label_key_errors(name)]
    if not errors and "/" not in name and not _is_standard(name):
        errors.append(invalid(field, as_json(name), "must be a standard resource type or fully qualified"))
    yield from errors
    if is_pod_level:
        if not errors and not is_pod_level_resource(name):
            yield not_supported(field, as_json(name), (CPU, "hugepages-", MEMORY))
    elif "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages(name):
            yield invalid(field, as_json(name), "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        yield invalid(field, as_json(name), "doesn't follow extended resource name standard")


def _is_standard(name: str) -> bool:
    return name in _STANDARD or is_hugepages(name.removeprefix("requests."))


def _quantity(name: str, quantity: Quantity, field: str) -> Iterator[InputError]:
    if quantity.mantissa < 0:
        yield _invalid(field, quantity, "must be greater than or equal to 0")
    if (name in _OBJECT_COUNTS or is_extended_resource(name)) and quantity.milli_value() % 1000 != 0:
        yield _invalid(field, quantity, "must be an integer")


def _hugepages(name: str, quantity: Quantity, field: str) -> Iterator[InputError]:
    if not is_hugepages(name):
        return
    try:
        page = parse_quantity(name.removeprefix("hugepages-"))
        is_whole = page.mantissa > 0 and page.milli_value() % 1000 == 0 and quantity.value() % page.value() == 0
    except (InputError, ZeroDivisionError):
        is_whole = False
    if not is_whole:
        yield _invalid(field, quantity, f"{quantity} is not positive integer multiple of {name}")


def _request_against_limit(name: str, request: Quantity, limit: Quantity, field: str) -> Iterator[InputError]:
    if request != limit and not is_overcommit_allowed(name):
        yield _invalid(field, request, f"must be equal to {name} limit of {limit}")
    elif _exceeds(request, limit):
        yield _invalid(field, request, f"must be less than or equal to {name} limit of {limit}")


def _exceeds(one: Quantity, other: Quantity) -> bool:
    return exact_nano_units(one) > exact_nano_units(other)


def _invalid(field: str, quantity: Quantity, detail: str) -> InputError:
    return invalid(field, quoted(str(quantity)), detail)
