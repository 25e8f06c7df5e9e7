"""LimitRanges: the defaults that they set on the containers of a new pod, and their refusals.

Upstream: plugin/pkg/admission/limitranger/admission.go and, for a LimitRange's own defaults,
pkg/apis/core/v1/defaults.go. Resources are in alphabetical order, which is random in Go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import rounded_resources
from kschedx.errors import InputError, Place
from kschedx.kube.field_errors import aggregate
from kschedx.kube.names import CPU, MEMORY
from kschedx.kube.quantity import Quantity, ResourceList, parse_quantity
from kschedx.kube.resources import container_limits, container_requests
from kschedx.kube.scalars import MAX_INT64
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import Container, LimitRange, LimitRangeItem, PodSpec

_CONTAINER = "Container"
_POD = "Pod"
_CLAIM = "PersistentVolumeClaim"
_MAX_MILLI_VALUE = MAX_INT64 // 1000
_OF_POD_LEVEL = (CPU, MEMORY)
"""LimitRanger does not support pod-level hugepages."""

ResourceAmounts = Mapping[str, Quantity]


# --- defaults


def default_limit_range(limit_range: LimitRange) -> LimitRange:
    """Return a LimitRange as the API server stores it. Raises InputError with the field's path for an invalid
    quantity."""
    limits = tuple(_default_item(item, f"spec.limits[{i}]") for i, item in enumerate(limit_range.spec.limits))
    return replace(limit_range, spec=replace(limit_range.spec, limits=limits))


def _default_item(item: LimitRangeItem, field: str) -> LimitRangeItem:
    default, default_request = item.default, item.default_request
    if item.type == _CONTAINER:
        default = item.max | default
        default_request = item.min | default | default_request
    return LimitRangeItem(
        type=item.type,
        max=rounded_resources(item.max, f"{field}.max"),
        min=rounded_resources(item.min, f"{field}.min"),
        default=rounded_resources(default, f"{field}.default"),
        default_request=rounded_resources(default_request, f"{field}.defaultRequest"),
        max_limit_request_ratio=rounded_resources(item.max_limit_request_ratio, f"{field}.maxLimitRequestRatio"),
    )


def apply_limit_range(spec: PodSpec, limit_range: LimitRange) -> PodSpec:
    """Set the requests and limits that the containers lack. `limit_range` has its defaults. Of several items for
    containers, the last one counts for a resource."""
    limits: ResourceList = {}
    requests: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == _CONTAINER:
            limits |= item.default
            requests |= item.default_request
    if not limits and not requests:
        return spec

    def filled(container: Container) -> Container:
        own = container.resources
        resources = replace(own, requests=requests | own.requests, limits=limits | own.limits)
        return container if resources == own else replace(container, resources=resources)

    return replace(
        spec,
        containers=tuple(map(filled, spec.containers)),
        init_containers=tuple(map(filled, spec.init_containers)),
    )


# --- refusals


class _Violation(Struct, frozen=True, kw_only=True):
    field: str
    sentence: str


_Rule = Callable[[str, Quantity], _Violation | None]


def limit_range_refusal(spec: PodSpec, limit_range: LimitRange) -> InputError | None:
    """Return why the LimitRange refuses a pod, in the API server's words, or None. The hint names the LimitRange.
    `spec` and `limit_range` have their defaults. The place is the field, or the common part of several fields, which
    the hint then lists."""
    violations = list(_violations(spec, limit_range))
    refusal = aggregate(InputError(violation.sentence) for violation in violations)
    if refusal is None:
        return None
    fields = list(dict.fromkeys(violation.field for violation in violations))
    title = f"LimitRange {limit_range.metadata.namespace}/{limit_range.metadata.name}"
    hint = title if len(fields) == 1 else f"{title} refuses {', '.join(fields)}"
    return InputError(refusal.message, place=Place(field=fields[0] if len(fields) == 1 else "spec"), hint=hint)


def limit_range_refusal_of_claim(claim: PersistentVolumeClaim, limit_range: LimitRange) -> str | None:
    """Return why the LimitRange refuses a claim, in the API server's words, or None. `limit_range` has its defaults."""
    requests = _parsed(claim.spec.resources.requests)
    used = (
        _Usage(item=item, requests=requests, limits={}, field="")
        for item in limit_range.spec.limits
        if item.type == _CLAIM
    )
    refusal = aggregate(
        InputError(violation.sentence) for usage in used for violation in usage.violations_of_requests()
    )
    return None if refusal is None else refusal.message


def _violations(spec: PodSpec, limit_range: LimitRange) -> Iterator[_Violation]:
    for item in limit_range.spec.limits:
        if item.type == _CONTAINER:
            for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
                for index, container in enumerate(containers):
                    resources = container.resources
                    yield from _Usage(
                        item=item,
                        requests=_parsed(resources.requests),
                        limits=_parsed(resources.limits),
                        field=f"spec.{field}[{index}].resources",
                    ).violations()
        elif item.type == _POD:
            yield from _pod_usage(spec, item).violations()


def _pod_usage(spec: PodSpec, item: LimitRangeItem) -> _Usage:
    requests, limits = container_requests(spec), container_limits(spec)
    if spec.resources is not None:
        requests |= {name: q for name, q in _parsed(spec.resources.requests).items() if name in _OF_POD_LEVEL}
        limits |= {name: q for name, q in _parsed(spec.resources.limits).items() if name in _OF_POD_LEVEL}
    return _Usage(item=item, requests=requests, limits=limits, field="")


class _Usage(Struct, frozen=True, kw_only=True):
    """The requests and limits of a container or a whole pod, with one item of a LimitRange."""

    item: LimitRangeItem
    requests: ResourceAmounts
    limits: ResourceAmounts
    field: str
    """The path of requests and limits; empty for a pod, which is the sum of its containers."""

    def violations(self) -> Iterator[_Violation]:
        return self._violations(
            (self._minimum, self.item.min),
            (self._maximum, self.item.max),
            (self._ratio, self.item.max_limit_request_ratio),
        )

    def violations_of_requests(self) -> Iterator[_Violation]:
        """Yield violations for an object with requests only."""
        return self._violations((self._minimum, self.item.min), (self._most_requested, self.item.max))

    def _violations(self, *rules: tuple[_Rule, ResourceList]) -> Iterator[_Violation]:
        for rule, bounds in rules:
            for name, bound in sorted(_parsed(bounds).items()):
                violation = rule(name, bound)
                if violation is not None:
                    yield violation

    def _minimum(self, name: str, bound: Quantity) -> _Violation | None:
        request, limit = self.requests.get(name), self.limits.get(name)
        request_amount, allowed, least = _comparable(request, limit, bound)
        rule = f"minimum {name} usage per {self.item.type} is {bound}"
        if request is None:
            return self._at("requests", name, f"{rule}.  No request is specified")
        if request_amount < least:
            return self._at("requests", name, f"{rule}, but request is {request}")
        if limit is not None and allowed < least:
            return self._at("limits", name, f"{rule}, but limit is {limit}")
        return None

    def _maximum(self, name: str, bound: Quantity) -> _Violation | None:
        request, limit = self.requests.get(name), self.limits.get(name)
        request_amount, allowed, most = _comparable(request, limit, bound)
        rule = f"maximum {name} usage per {self.item.type} is {bound}"
        if limit is None:
            return self._at("limits", name, f"{rule}.  No limit is specified")
        if allowed > most:
            return self._at("limits", name, f"{rule}, but limit is {limit}")
        if request is not None and request_amount > most:
            return self._at("requests", name, f"{rule}, but request is {request}")
        return None

    def _most_requested(self, name: str, bound: Quantity) -> _Violation | None:
        request = self.requests.get(name)
        request_amount, _, most = _comparable(request, None, bound)
        rule = f"maximum {name} usage per {self.item.type} is {bound}"
        if request is None:
            return self._at("requests", name, f"{rule}.  No request is specified")
        return self._at("requests", name, f"{rule}, but request is {request}") if request_amount > most else None

    def _ratio(self, name: str, bound: Quantity) -> _Violation | None:
        request_amount, allowed, _ = _comparable(self.requests.get(name), self.limits.get(name), bound)
        rule = f"{name} max limit to request ratio per {self.item.type} is {bound}"
        if not request_amount:
            return self._at("requests", name, f"{rule}, but no request is specified or request is 0")
        if not allowed:
            return self._at("limits", name, f"{rule}, but no limit is specified or limit is 0")
        ratio = allowed / request_amount
        if bound.value() <= _MAX_MILLI_VALUE:
            exceeds = ratio * 1000 > float(bound.milli_value())
        else:
            exceeds = ratio > float(bound.value())
        return self._at("limits", name, f"{rule}, but provided ratio is {ratio:f}") if exceeds else None

    def _at(self, side: str, name: str, sentence: str) -> _Violation:
        return _Violation(field=f"{self.field}.{side}[{name}]" if self.field else "spec.containers", sentence=sentence)


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """Return the three in thousandths, or in whole units if one of them is too large; 0 for absent ones."""
    units = tuple(0 if quantity is None else quantity.value() for quantity in (request, limit, bound))
    if max(units) > _MAX_MILLI_VALUE:
        return units[0], units[1], units[2]
    milli = tuple(0 if quantity is None else quantity.milli_value() for quantity in (request, limit, bound))
    return milli[0], milli[1], milli[2]


def _parsed(resources: ResourceList) -> dict[str, Quantity]:
    return {name: parse_quantity(written) for name, written in resources.items()}
