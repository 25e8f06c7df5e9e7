"""The cluster with other objects than pods and what makes them, as `kubectl apply` leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kschedx.api.types import Node
from kschedx.snapshot.applied import with_applied
from kschedx.snapshot.edits import with_changed_nodes
from kschedx.snapshot.snapshot import Snapshot

Manifest = Mapping[str, object]


def merged(snapshot: Snapshot, manifests: Sequence[Manifest]) -> Snapshot:
    """Of one name the manifest counts, but what claims and volumes are bound to stays. Raises `InputError`."""
    nodes = [manifest for manifest in manifests if manifest.get("kind") == "Node"]
    others = [manifest for manifest in manifests if manifest.get("kind") != "Node"]
    if others:
        snapshot = _with_others(snapshot, others)
    if nodes:
        cluster = snapshot.cluster
        written = Snapshot.from_objects(nodes).cluster.nodes
        known = {node.name: cluster.nodes[cluster.index[node.name]] for node in written if node.name in cluster.index}
        snapshot = with_changed_nodes(snapshot, [_with_status_of(known.get(node.name), node) for node in written])
    return snapshot


def _with_others(snapshot: Snapshot, manifests: Sequence[Manifest]) -> Snapshot:
    """Claims, volumes and devices are taken from the snapshot, in which a run may have moved them."""
    applied, storage, devices = with_applied(snapshot, manifests), snapshot.storage, snapshot.devices
    added = {key: applied.storage.with_default(claim) for key, claim in applied.storage.claims.items()}
    return replace(
        applied,
        storage=replace(
            applied.storage,
            claims={**added, **storage.claims},
            volumes={**applied.storage.volumes, **storage.volumes},
        ),
        devices=replace(applied.devices, claims={**applied.devices.claims, **devices.claims}, derived_from_slices={}),
    )


def _with_status_of(known: Node | None, written: Node) -> Node:
    """What a node offers is its kubelet's to say; a manifest of a node that is there rarely has it."""
    if known is None or written.status.allocatable:
        return written
    return replace(written, status=known.status)
