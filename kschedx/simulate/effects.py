"""What changes made by hand do to pods, at once and through the controllers that see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kschedx.api.tolerations import NO_EXECUTE, tolerates, untolerated
from kschedx.api.types import Node
from kschedx.simulate.changes import Change
from kschedx.simulate.controllers import stays_with_node
from kschedx.simulate.strategies import Rollout
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot


class Effect(Struct, frozen=True, kw_only=True):
    """What one change did. Pods are told by `namespace/name`."""

    change: Change
    made: tuple[str, ...] = ()
    """Pods that it made, and that wait."""
    evicted: tuple[str, ...] = ()
    """Pods that lost their nodes, and come back under their names."""
    gone: tuple[str, ...] = ()
    """Pods that are gone for good."""
    rollouts: tuple[Rollout, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "change": str(self.change),
            "made": list(self.made),
            "evicted": list(self.evicted),
            "gone": list(self.gone),
        }


class Displaced(Struct, frozen=True, kw_only=True):
    """Pods that lost their nodes to changes: to the changes themselves, or to pods that came with them."""

    moved: tuple[str, ...] = ()
    """Those that find another, by `namespace/name`."""
    waiting: tuple[str, ...] = ()
    """Those that find none."""
    gone: tuple[str, ...] = ()
    """Those that nobody makes anew."""


def evicted_by_taints(snapshot: Snapshot, changed: Iterable[tuple[Node, Node]], *, comparison: bool) -> Iterator[int]:
    """Rows of the pods that taints drive off nodes, as these were and as they are now; those of DaemonSets and of the
    kubelet are not among them. Who tolerates a taint for some time goes once that is over.

    Source of the rule: processPodOnNode in pkg/controller/tainteviction/taint_eviction.go.
    """
    pods = snapshot.pods
    for before, now in changed:
        old = {taint for taint in before.spec.taints if taint.effect == NO_EXECUTE}
        taints = [taint for taint in now.spec.taints if taint.effect == NO_EXECUTE]
        if old.issuperset(taints):
            continue
        for row in pods.on_node(snapshot.cluster.index[now.name]).tolist():
            if not stays_with_node(pods.owners[row]) and _has_to_go(pods, row, now, comparison=comparison):
                yield row


def _has_to_go(pods: PodTable, row: int, node: Node, *, comparison: bool) -> bool:
    tolerations = pods.specs[row].tolerations
    taints = [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]
    if untolerated(taints, tolerations, effects=(NO_EXECUTE,), comparison=comparison) is not None:
        return True
    return any(
        one.toleration_seconds is not None and any(tolerates(one, taint, comparison=comparison) for taint in taints)
        for one in tolerations
    )
