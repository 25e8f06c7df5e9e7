"""What an API server refuses about a PodDisruptionBudget.

Upstream: ValidatePodDisruptionBudgetSpec in pkg/apis/policy/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kschedx.api.decode import decode, without_nulls
from kschedx.api.field_errors import as_json, invalid, not_supported, quoted
from kschedx.api.selectors import LabelSelector
from kschedx.apiserver.shares import at_most_all, validate_share
from kschedx.errors import InputError

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Of a PodDisruptionBudget; nothing for any other kind. Its selector is not looked at here."""
    spec = without_nulls(manifest.get("spec"))
    if manifest.get("kind") != "PodDisruptionBudget" or not isinstance(spec, Mapping):
        return
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        share = spec.get(field)
        yield from validate_share(share, f"spec.{field}")
        yield from at_most_all(share, f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if isinstance(policy, str) and policy not in _POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", quoted(policy), _POLICIES)


def _shown(spec: Mapping[str, object]) -> str:
    """As Go writes it, whose fields have no other names."""
    written = spec.get("selector")
    selector = None if written is None else decode(msgspec.json.encode(written), LabelSelector)
    fields = {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": msgspec.to_builtins(selector, order="deterministic"),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
    return as_json(fields)
