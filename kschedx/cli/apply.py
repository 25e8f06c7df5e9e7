"""The manifests that a fix changes, as far as they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from kschedx.api.types import Pod
from kschedx.fixes.manifests import manifest

if TYPE_CHECKING:
    from kschedx.cli.manifests import Written
    from kschedx.fixes import Change
    from kschedx.render.apply import Find
    from kschedx.snapshot.snapshot import Snapshot


def known_manifest(snapshot: Snapshot, found: Pod | Written) -> Find:
    """Looks in the file that was given, then among the cluster's workloads, then at what is known of pods and nodes."""

    def find(change: Change) -> Mapping[str, object] | None:
        target = change.target
        if not isinstance(found, Pod):
            for one in (found.document.value if found.document else None, found.workload, found.manifest):
                if one is not None and _is(one, target.kind, target.name):
                    return one
        raw = snapshot.workloads.get((target.kind, target.namespace, target.name))
        if raw is not None:
            return msgspec.json.decode(raw, type=dict[str, object])
        if target.kind == "Node" and target.name in snapshot.cluster.index:
            return manifest("v1", "Node", snapshot.cluster.nodes[snapshot.cluster.index[target.name]])
        if target.kind == "Pod" and isinstance(found, Pod):
            return manifest("v1", "Pod", found)
        if target.kind == "PersistentVolumeClaim":
            claim = snapshot.storage.claim(target.namespace, target.name)
            return None if claim is None else manifest("v1", target.kind, claim)
        return None

    return find


def _is(manifest: Mapping[str, object], kind: str, name: str) -> bool:
    metadata = manifest.get("metadata")
    return manifest.get("kind") == kind and isinstance(metadata, Mapping) and metadata.get("name") == name
