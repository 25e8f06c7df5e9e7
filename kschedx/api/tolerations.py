"""Whether a toleration tolerates a taint, or covers another toleration.

Upstream: staging/src/k8s.io/api/core/v1/toleration.go, pkg/util/tolerations/tolerations.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kschedx.api.types import Taint, Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

DO_NOT_SCHEDULE = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a pod off a node."""

_INTEGER = re.compile(r"(0|-?[1-9][0-9]*)\Z")
_INT64 = range(-(2**63), 2**63)


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool) -> bool:
    """`comparison`: whether the operators Lt and Gt count (gate TaintTolerationComparisonOperators)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison:
            return _compare(taint.value, toleration.operator, toleration.value)
        case _:
            return False


def _compare(taint: str, operator: str, toleration: str) -> bool:
    """The taint's number against the toleration's; whatever is no int64 in canonical form does not match."""
    if not (_INTEGER.match(taint) and _INTEGER.match(toleration)) or max(len(taint), len(toleration)) > 20:
        return False
    left, right = int(taint), int(toleration)
    if left not in _INT64 or right not in _INT64:
        return False
    return left < right if operator == "Lt" else left > right


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, effects: tuple[str, ...], comparison: bool
) -> Taint | None:
    """The first taint with one of `effects` that no toleration tolerates."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(tolerates(t, taint, comparison=comparison) for t in tolerations):
            return taint
    return None


def merge_tolerations(first: Iterable[Toleration], second: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Both, less those that another one covers; of equal ones the first stays (pkg/util/tolerations)."""
    every = (*first, *second)
    merged: list[Toleration] = []
    for index, one in enumerate(every):
        later = (other for other in every[index + 1 :] if other != one)
        if not any(covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return tuple(merged)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether `wide` tolerates everything that `narrow` does, as the API server sees it: an equal one always, otherwise
    "Equal" covers only what spells its operator out."""
    if wide == narrow:
        return True
    if wide.key != narrow.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect not in ("", narrow.effect):
        return False
    if wide.effect == NO_EXECUTE and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"


def toleration_text(toleration: Toleration) -> str:
    """As `kubectl describe` writes it: `key=value:effect`, `key:effect op=Exists`, `op=Exists`."""
    text = toleration.key
    if toleration.value:
        text += f"={toleration.value}"
    if toleration.effect:
        text += f":{toleration.effect}"
    operator = toleration.operator
    if operator and operator != "Equal":
        text += f" op={operator}"
    return text.strip()
