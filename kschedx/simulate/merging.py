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
        snapshot = with_applied(snapshot, others)
    if nodes:
        cluster = snapshot.cluster
        written = Snapshot.from_objects(nodes).cluster.nodes
        known = {node.name: cluster.nodes[cluster.index[node.name]] for node in written if node.name in cluster.index}
        snapshot = with_changed_nodes(snapshot, [_with_status_of(known.get(node.name), node) for node in written])
    return snapshot


def _with_status_of(known: Node | None, written: Node) -> Node:
    """What a node offers is its kubelet's to say; a manifest of a node that is there rarely has it."""
    if known is None or written.status.allocatable:
        return written
    return replace(written, status=known.status)
