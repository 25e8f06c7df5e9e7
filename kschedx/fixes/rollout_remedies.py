"""Remedies for a pod of a rollout that waits for what the pods before it hold: their node's room, a port, a volume."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.fixes import steps as s
from kschedx.fixes.owners import Owner, owner_of_template
from kschedx.fixes.situation import Situation
from kschedx.snapshot.snapshot import Snapshot

MOST_OLD = 4
"""Old pods that are tried, each on a node of its own."""


def taking_old_first(situation: Situation) -> Iterator[s.TakeOldFirst]:
    """Where a Deployment makes a new pod before it takes an old one away."""
    snapshot, pod = situation.snapshot, situation.pod
    owner = owner_of_template(snapshot, pod)
    if owner is None or owner.kind != "Deployment" or not _surges(owner):
        return
    own = pod.metadata.controller
    seen: set[str] = set()
    for row in _old_pods(snapshot, owner, pod.metadata.namespace, own.name if own else ""):
        if snapshot.pods.node_names[row] not in seen and len(seen) < MOST_OLD:
            seen.add(snapshot.pods.node_names[row])
            victim = s.Victim(row=row, pod=snapshot.pods.key(row), priority=int(snapshot.pods.priorities[row]))
            yield s.TakeOldFirst(deployment=owner.name, old=victim, is_single=_is_single(owner))


def _surges(owner: Owner) -> bool:
    """The Deployment is in the snapshot and says nothing of an old pod that goes first."""
    spec = owner.manifest.get("spec")
    strategy = spec.get("strategy") if isinstance(spec, dict) else None
    if not isinstance(strategy, dict):
        return isinstance(spec, dict)
    rolling = strategy.get("rollingUpdate")
    surge = rolling.get("maxSurge") if isinstance(rolling, dict) else None
    return strategy.get("type") != "Recreate" and str(surge) not in ("0", "0%")


def _is_single(owner: Owner) -> bool:
    spec = owner.manifest.get("spec")
    return isinstance(spec, dict) and spec.get("replicas", 1) == 1


def _old_pods(snapshot: Snapshot, owner: Owner, namespace: str, own: str) -> Iterator[int]:
    """Those of the Deployment's other ReplicaSets that have a node."""
    pods = snapshot.pods
    for row in range(len(pods)):
        if pods.namespaces[row] != namespace or not pods.node_names[row]:
            continue
        of_set = next((one for one in pods.owners[row] if one.controller and one.kind == "ReplicaSet"), None)
        if of_set is None or of_set.name == own or not of_set.name.startswith(f"{owner.name}-"):
            continue
        above = owner_of_template(snapshot, pods[row])
        if above is not None and (above.kind, above.name) == (owner.kind, owner.name):
            yield row
