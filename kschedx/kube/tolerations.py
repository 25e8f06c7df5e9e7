"""Whether a toleration tolerates a taint or covers another toleration.

Upstream: staging/src/k8s.io/api/core/v1/toleration.go, pkg/util/tolerations/tolerations.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kschedx.errors import InputError
from kschedx.kube.scalars import earlier, nanoseconds, parse_int64
from kschedx.kube.types import Taint, Toleration
from kschedx.patterns import lazy_pattern

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

DO_NOT_SCHEDULE = (NO_SCHEDULE, NO_EXECUTE)

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
_LONGEST_SCALE_DOWN = 3600
"""Seconds. By default, a drain may take 600 (--max-graceful-termination-sec), and the provider 900
(--max-node-provision-time)."""
_INTEGER = lazy_pattern(r"(0|-?[1-9][0-9]*)\Z")
_INT64 = range(-(2**63), 2**63)


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool) -> bool:
    """`comparison`: whether the operators Lt and Gt are supported (gate TaintTolerationComparisonOperators)."""
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


class Tolerations:
    """Many tolerations, indexed: the cost of a lookup does not depend on their number."""

    def __init__(self, tolerations: Iterable[Toleration], *, comparison: bool) -> None:
        self._comparison = comparison
        self._equal: set[tuple[str, str, str]] = set()
        """Key, effect, and value of those with `Equal`. An empty key or effect matches everything."""
        self._exist: set[tuple[str, str]] = set()
        self._others: dict[str, list[Toleration]] = {}  # those with a comparison operator, by key
        for toleration in tolerations:
            if toleration.operator in ("", "Equal"):
                self._equal.add((toleration.key, toleration.effect, toleration.value))
            elif toleration.operator == "Exists":
                self._exist.add((toleration.key, toleration.effect))
            else:
                self._others.setdefault(toleration.key, []).append(toleration)

    def cover(self, taint: Taint) -> bool:
        """Return whether one of them tolerates the taint (`tolerates`)."""
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._exist or (key, effect, taint.value) in self._equal:
                    return True
            if any(tolerates(it, taint, comparison=self._comparison) for it in self._others.get(key, ())):
                return True
        return False

    def uncovered_taint(self, taints: Iterable[Taint], effects: tuple[str, ...]) -> Taint | None:
        """Return the first taint with one of `effects` that none of them tolerates."""
        return next((taint for taint in taints if taint.effect in effects and not self.cover(taint)), None)


def _compare(taint: str, operator: str, toleration: str) -> bool:
    """Compare the taint's number with the toleration's. Anything but a canonical int64 does not match."""
    if not (_INTEGER.match(taint) and _INTEGER.match(toleration)) or max(len(taint), len(toleration)) > 20:
        return False
    left, right = int(taint), int(toleration)
    if left not in _INT64 or right not in _INT64:
        return False
    return left < right if operator == "Lt" else left > right


def left_over_since(taint: Taint, taken: str) -> str:
    """Return when cluster-autoscaler set a taint before a scale-down that did not happen; empty for one that may still
    be under way. The taint's value is the time in seconds (cluster-autoscaler/utils/taints/taints.go). `taken` is the
    time of the cluster, as `Snapshot.taken` has it."""
    since = parse_int64(taint.value) if taint.key in (TO_BE_DELETED, DELETION_CANDIDATE) else None
    if since is None or not taken:
        return ""
    try:
        age = nanoseconds(taken.removesuffix(" or later")) // 10**9 - since
        return earlier(taken.removesuffix(" or later"), age) if age > _LONGEST_SCALE_DOWN else ""
    except (InputError, OverflowError):
        return ""


def find_untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, effects: tuple[str, ...], comparison: bool
) -> Taint | None:
    """Return the first taint with one of `effects` that no toleration tolerates."""
    return Tolerations(tolerations, comparison=comparison).uncovered_taint(taints, effects)


def stay_seconds(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison: bool) -> int | None:
    """Return after how many seconds these NoExecute taints evict a pod: 0 if it does not tolerate one of them, None if
    they never do. Of several tolerations of a taint, the first counts.

    Upstream: processPodOnNode and getMinTolerationTime (pkg/controller/tainteviction/taint_eviction.go),
    GetMatchingTolerations (pkg/apis/core/v1/helper/helpers.go)."""
    limits: list[int] = []
    for taint in taints:
        if taint.effect == NO_EXECUTE:
            used = next((each for each in tolerations if tolerates(each, taint, comparison=comparison)), None)
            limits += [0] if used is None else [] if used.toleration_seconds is None else [used.toleration_seconds]
    return max(min(limits), 0) if limits else None


def merge_tolerations(first: Iterable[Toleration], second: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Merge both lists without tolerations that others cover; of equal ones the first stays (pkg/util/tolerations)."""
    every = (*first, *second)
    merged: list[Toleration] = []
    for index, toleration in enumerate(every):
        later = (other for other in every[index + 1 :] if other != toleration)
        if not any(covers(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return tuple(merged)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether `wide` tolerates everything that `narrow` does, by the API server's rules: an equal one always
    does; otherwise "Equal" covers only tolerations with an explicit operator."""
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
    """Format as `kubectl describe` does: `key=value:effect`, `key:effect op=Exists`, `op=Exists`."""
    text = toleration.key
    if toleration.value:
        text += f"={toleration.value}"
    if toleration.effect:
        text += f":{toleration.effect}"
    operator = toleration.operator
    if operator and operator != "Equal":
        text += f" op={operator}"
    return text.strip()
