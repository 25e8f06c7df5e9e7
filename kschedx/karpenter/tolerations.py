"""Which taints a pod does not tolerate. Upstream: pkg/scheduling/taints.go: every taint counts, whatever its effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kschedx.api.tolerations import tolerates
from kschedx.api.types import Taint, Toleration

EPHEMERAL = frozenset(
    {
        Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
        Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
        Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule"),
        Taint(key="karpenter.sh/unregistered", effect="NoExecute"),
    }
)
"""Of a node that is not yet there, by key and effect: they go when it is."""
_EPHEMERAL_PREFIX = "readiness.k8s.io/"


def is_same(taint: Taint, other: Taint) -> bool:
    """Values do not count."""
    return (taint.key, taint.effect) == (other.key, other.effect)


def is_ephemeral(taint: Taint) -> bool:
    return taint.key.startswith(_EPHEMERAL_PREFIX) or any(is_same(taint, one) for one in EPHEMERAL)


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> tuple[Taint, ...]:
    return tuple(
        taint
        for taint in taints
        if not any(tolerates(toleration, taint, comparison=True) for toleration in tolerations)
    )


def tolerates_all(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    return not untolerated(tolerations, taints)
