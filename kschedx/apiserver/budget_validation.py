"""What an API server refuses about a PodDisruptionBudget.

Upstream: ValidatePodDisruptionBudgetSpec in pkg/apis/policy/validation, and ValidatePositiveIntOrPercent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kschedx.api.field_errors import invalid, not_supported, quoted
from kschedx.errors import InputError

_PERCENT = re.compile(r"[0-9]+%")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Of a PodDisruptionBudget; nothing for any other kind."""
    spec = manifest.get("spec")
    if manifest.get("kind") != "PodDisruptionBudget" or not isinstance(spec, Mapping):
        return
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield InputError("spec: minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from _amount(spec.get(field), f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if isinstance(policy, str) and policy not in _POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", quoted(policy), _POLICIES)


def _amount(value: object, field: str) -> Iterator[InputError]:
    """A number of pods, or a percentage."""
    if isinstance(value, int) and value < 0:
        yield invalid(field, str(value), "must be greater than or equal to 0")
    elif isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid(field, quoted(value), _NO_PERCENT)
    elif isinstance(value, str) and int(value[:-1]) > 100:
        yield invalid(field, quoted(value), "must not be greater than 100%")
