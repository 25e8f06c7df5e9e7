"""Pods whose deletion makes room: whom an expert would give up, and whom not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kschedx.api.types import OwnerReference
from kschedx.errors import UndecidableError
from kschedx.fixes import steps as s
from kschedx.fixes.owners import workload_above
from kschedx.fixes.situation import Place, Situation
from kschedx.snapshot.snapshot import Snapshot

SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical, from which on the cluster itself depends on a pod."""
SYSTEM_NAMESPACE = "kube-system"
STOPPED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")
"""What makes no pod any more once it wants none; a Job, once it is gone."""


def may_go(row: int, situation: Situation) -> bool:
    """Nobody gives up a pod of higher priority or one that the cluster needs; a DaemonSet's, and a twin of the pod
    itself, comes back at once."""
    pods = situation.snapshot.pods
    priority = int(pods.priorities[row])
    if priority > situation.pod.priority or priority >= SYSTEM_CRITICAL or pods.namespaces[row] == SYSTEM_NAMESPACE:
        return False
    return not _is_daemon(pods.owners[row]) and not _is_twin(row, situation)


def _is_twin(row: int, situation: Situation) -> bool:
    """Whether the pod's own workload has made it."""
    pods, metadata = situation.snapshot.pods, situation.pod.metadata
    if pods.namespaces[row] != metadata.namespace:
        return False
    own = workload_above(metadata.controller, metadata.labels)
    return own is not None and own == workload_above(controller_of(row, situation.snapshot), pods.labels[row])


def is_going(row: int, situation: Situation) -> bool:
    """Whether it is being deleted already."""
    return bool(situation.snapshot.pods.deletion_timestamps[row])


def _is_daemon(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") and owner.controller for owner in owners)


def stay_gone(rows: Iterable[int], situation: Situation) -> bool:
    """No controller puts one of these pods back on its node at once: a replacement comes behind this pod in the queue,
    has room elsewhere, or is not made at all."""
    pods = situation.snapshot.pods
    for row in rows:
        owned = any(owner.controller and owner.kind != "Job" for owner in pods.owners[row])
        if not owned or int(pods.priorities[row]) < situation.pod.priority:
            continue
        twin = pods[row]
        here = pods.node_names[row]
        twin = replace(twin, spec=replace(twin.spec, node_name=""))
        try:
            filtered = situation.scheduler.on(situation.snapshot.without_pods([row])).filter(twin, situation.profile)
        except UndecidableError:
            return False
        fits = set(filtered.nodes.names_where(filtered.outcome.passed))
        if fits <= {here}:
            return False
    return True


def deletion(rows: Iterable[int], snapshot: Snapshot, *, node: str = "") -> s.DeletePods:
    return s.DeletePods(victims=victims_of(rows, snapshot), node=node)


def victims_of(rows: Iterable[int], snapshot: Snapshot) -> tuple[s.Victim, ...]:
    pods = snapshot.pods
    return tuple(s.Victim(row=row, pod=pods.key(row), priority=int(pods.priorities[row])) for row in rows)


def delete_named(key: str, place: Place) -> Iterator[s.Step]:
    """`key` is `namespace/name`."""
    yield from delete_all([key], 1, place)


def delete_all(names: Sequence[str], count: int, place: Place) -> Iterator[s.Step]:
    """Where all the pods in the way are known by name, few, and may go, or go already."""
    rows = tuple(row for name in names if (row := place.snapshot.pods.rows.get(name)) is not None)
    if not rows or len(rows) != count:
        return
    if all(is_going(row, place.situation) for row in rows):
        yield s.AwaitTermination(victims=victims_of(rows, place.snapshot))
        return
    if all(may_go(row, place.situation) for row in rows) and stay_gone(rows, place.situation):
        yield deletion(rows, place.snapshot)


def stop_holder(key: str, place: Place) -> tuple[s.Step, ...]:
    """Of what one pod at a time may have: where another would come and want the same, nothing makes it any more."""
    row = place.snapshot.pods.rows.get(key)
    if row is None:
        return ()
    if is_going(row, place.situation):
        return (s.AwaitTermination(victims=victims_of([row], place.snapshot)),)
    return _taken_from(row, place) if may_go(row, place.situation) else ()


def take_from_holder(key: str, place: Place) -> tuple[s.Step, ...]:
    """The same of a more important pod, where the cluster itself does not depend on it."""
    pods = place.snapshot.pods
    row = pods.rows.get(key)
    if row is None or int(pods.priorities[row]) >= SYSTEM_CRITICAL:
        return ()
    if _is_daemon(pods.owners[row]) or _is_twin(row, place.situation):
        return ()
    return _taken_from(row, place)


def _taken_from(row: int, place: Place) -> tuple[s.Step, ...]:
    return (_stopped(row, place.snapshot) or deletion([row], place.snapshot),)


def _stopped(row: int, snapshot: Snapshot) -> s.StopWorkload | None:
    """Where the snapshot has what makes the pod, and it makes no other."""
    pods = snapshot.pods
    controller = controller_of(row, snapshot)
    above = workload_above(controller, pods.labels[row])
    if controller is None or above is None or above[0] not in STOPPED:
        return None
    kind, name = above
    namespace = pods.namespaces[row]
    rows = [
        other
        for other in range(len(pods))
        if pods.node[other] >= 0
        and pods.namespaces[other] == namespace
        and above == workload_above(controller_of(other, snapshot), pods.labels[other])
    ]
    if rows != [row] or (kind, namespace, name) not in snapshot.workloads:
        return None
    victims = victims_of(rows, snapshot)
    return s.StopWorkload(
        api_version=controller.api_version, kind=kind, namespace=namespace, name=name, victims=victims
    )


def controller_of(row: int, snapshot: Snapshot) -> OwnerReference | None:
    return next((one for one in snapshot.pods.owners[row] if one.controller), None)
