"""Pods whose deletion makes room: whom an expert would give up, and whom not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kschedx.api.types import OwnerReference
from kschedx.errors import UndecidableError
from kschedx.fixes import steps as s
from kschedx.fixes.situation import Place, Situation
from kschedx.snapshot.snapshot import Snapshot

SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical, from which on the cluster itself depends on a pod."""
SYSTEM_NAMESPACE = "kube-system"


def may_go(row: int, situation: Situation) -> bool:
    """Nobody gives up a pod of higher priority or one that the cluster needs; a DaemonSet's comes back at once."""
    pods = situation.snapshot.pods
    priority = int(pods.priorities[row])
    if priority > situation.pod.priority or priority >= SYSTEM_CRITICAL or pods.namespaces[row] == SYSTEM_NAMESPACE:
        return False
    return not _is_daemon(pods.owners[row])


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
    pods = snapshot.pods
    victims = tuple(s.Victim(row=row, pod=pods.key(row), priority=int(pods.priorities[row])) for row in rows)
    return s.DeletePods(victims=victims, node=node)


def delete_named(key: str, place: Place) -> Iterator[s.Step]:
    """`key` is `namespace/name`."""
    yield from delete_all([key], 1, place)


def delete_all(names: Sequence[str], count: int, place: Place) -> Iterator[s.Step]:
    """Where all the pods in the way are known by name, few, and may go."""
    rows = tuple(row for name in names if (row := place.snapshot.pods.rows.get(name)) is not None)
    they_may = len(rows) == count and all(may_go(row, place.situation) for row in rows)
    if rows and they_may and stay_gone(rows, place.situation):
        yield deletion(rows, place.snapshot)
