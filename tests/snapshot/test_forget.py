"""A kind whose list is read again keeps nothing of the first list."""

from __future__ import annotations

import pytest

from kschedx.kube.kinds import KINDS
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod


def some(kind: str) -> list[Manifest]:
    """Return two objects of a kind."""
    if kind == "Node":
        return [node("a"), node("b")]
    if kind == "Pod":
        return [pod("a", on="a"), pod("b")]
    row = KINDS[kind]
    metadata = {"namespace": "default"} if row.is_namespaced else {}
    head = {"apiVersion": row.api_version, "kind": row.name}
    return [{**head, "metadata": {"name": name, **metadata}} for name in ("a", "b")]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_forgotten_objects_can_be_added_again(kind: str) -> None:
    builder = SnapshotBuilder()
    builder.add_objects([item for known in KINDS for item in some(known)])
    builder.forget(kind)
    assert kind not in builder.kinds
    builder.add_objects(some(kind)[:1])
    result = Snapshot.of_contents(builder.finish())
    assert result.source.kinds == {known: 1 if known == kind else 2 for known in KINDS}
    assert len(result.pods) == (1 if kind == "Pod" else 2)
    assert len(result.cluster.nodes) == (1 if kind == "Node" else 2)
    assert len(result.services) == (1 if kind == "Service" else 2)
    assert len(result.storage.volumes) == (1 if kind == "PersistentVolume" else 2)
    assert len([key for key in result.workloads if key[0] == "Deployment"]) == (1 if kind == "Deployment" else 2)
