"""Room that Koordinator keeps for a pod, and whether it moves the pod.

Upstream: MatchReservationOwners in pkg/util/reservation of koordinator-sh/koordinator.
"""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.other_schedulers import ObjectReference, PodMigrationJob, Reservation, ReservationOwner
from kschedx.api.selectors import compile_selector
from kschedx.api.types import Pod
from kschedx.holding.model import Room, Said
from kschedx.holding.queues import conditions
from kschedx.snapshot.snapshot import Snapshot


def rooms_for(snapshot: Snapshot, pod: Pod) -> Iterator[Room]:
    """Reservations of which the pod is an owner."""
    for one in sorted(snapshot.of(Reservation), key=lambda one: one.metadata.name):
        if any(_is_meant(owner, pod) for owner in one.spec.owners):
            status = one.status
            wrong = [said for said in conditions(status.conditions) if said.status == "False"]
            yield Room(name=one.metadata.name, phase=status.phase, node=status.node_name, said=tuple(wrong))


def _is_meant(owner: ReservationOwner, pod: Pod) -> bool:
    if owner.object is None and owner.controller is None and owner.label_selector is None:
        return False
    controller = pod.metadata.controller
    return (
        (owner.object is None or _names(owner.object, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
        and (
            owner.controller is None
            or (
                controller is not None
                and owner.controller.kind in ("", controller.kind)
                and _names(owner.controller, pod.metadata.namespace, controller.name, controller.uid)
            )
        )
        and (owner.label_selector is None or compile_selector(owner.label_selector).matches(pod.metadata.labels))
    )


def _names(reference: ObjectReference, namespace: str, name: str, uid: str) -> bool:
    is_named = reference.namespace in ("", namespace) and reference.name in ("", name)
    return is_named and (not uid or reference.uid in ("", uid))


def moves_of(snapshot: Snapshot, pod: Pod) -> Iterator[Said]:
    """The jobs that move the pod, in their words."""
    for job in sorted(snapshot.of(PodMigrationJob), key=lambda one: one.metadata.name):
        named = job.spec.pod_ref
        if named is not None and _names(named, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid):
            status = job.status
            yield Said(
                type=f"PodMigrationJob {job.metadata.name}",
                status=status.phase or "Pending",
                reason=status.reason,
                message=status.message,
            )
