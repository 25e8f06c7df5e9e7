"""What the API server says of the selectors of a new DeviceClass or ResourceClaim.

Upstream: validateSelectorSlice in pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.api.devices import DeviceClass, DeviceRequest, DeviceSelector, ResourceClaim
from kschedx.cel import Features, refusal
from kschedx.errors import UndecidableError

Refusal = tuple[str, str]
"""A field, and what is said of it."""


def class_refusals(one: DeviceClass, features: Features) -> Iterator[Refusal]:
    yield from _selectors(one.spec.selectors, "spec.selectors", features)


def claim_refusals(one: ResourceClaim, features: Features) -> Iterator[Refusal]:
    for index, request in enumerate(one.spec.devices.requests):
        yield from _request(request, f"spec.devices.requests[{index}]", features)


def _request(request: DeviceRequest, field: str, features: Features) -> Iterator[Refusal]:
    if request.exactly is not None:
        yield from _selectors(request.exactly.selectors, f"{field}.exactly.selectors", features)
    for index, one in enumerate(request.first_available):
        yield from _selectors(one.selectors, f"{field}.firstAvailable[{index}].selectors", features)


def _selectors(selectors: Sequence[DeviceSelector], field: str, features: Features) -> Iterator[Refusal]:
    for index, one in enumerate(selectors):
        if one.cel is None:
            continue
        try:
            told = refusal(one.cel.expression, features)
        except UndecidableError:
            continue
        if told is not None:
            yield f"{field}[{index}].cel.expression", told
