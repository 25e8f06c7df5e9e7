"""Storage objects of a snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import kschedx
from kschedx.errors import InputError
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.storage_builders import attachment, capacity, claim, csi_driver, csi_node, storage_class, volume


def default(
    name: str, created: str | None = None, key: str = "storageclass.kubernetes.io/is-default-class"
) -> Manifest:
    stamp = {} if created is None else {"creationTimestamp": created}
    return storage_class(name, metadata={"name": name, "annotations": {key: "true"}, **stamp})


def test_every_kind_is_kept_by_name() -> None:
    storage = Snapshot.from_objects([
        volume("pv"), claim("data"), storage_class("fast"), csi_node("n"), csi_driver("d"), capacity("c", "1Gi"),
        attachment("a", "pv", "n"),
    ]).storage  # fmt: skip
    assert list(storage.volumes) == ["pv"]
    assert list(storage.claims) == ["default/data"]
    assert list(storage.classes) == ["fast"]
    assert list(storage.csi_nodes) == ["n"]
    assert list(storage.csi_drivers) == ["d"]
    assert [item.key for item in storage.capacities] == ["kube-system/c"]
    assert [item.spec.node_name for item in storage.attachments] == ["n"]


def test_a_claim_without_a_namespace_is_in_default() -> None:
    manifest = claim("data")
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    del metadata["namespace"]
    for objects in ([manifest], [manifest, storage_class()]):  # read in bulk, and one by one
        snapshot = Snapshot.from_objects(objects).storage.claims["default/data"]
        assert snapshot.key == "default/data"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], ""),
        ([storage_class("plain")], ""),
        ([default("one")], "one"),
        ([default("old", "2020-01-01T00:00:00Z"), default("new", "2026-01-01T00:00:00Z")], "new"),
        ([default("b", "2026-01-01T00:00:00Z"), default("a", "2026-01-01T00:00:00Z")], "a"),
        ([default("undated"), default("dated", "2020-01-01T00:00:00Z")], "dated"),
        ([default("beta", key="storageclass.beta.kubernetes.io/is-default-class")], "beta"),
    ],
)
def test_the_default_class(classes: list[Manifest], expected: str) -> None:
    claims = [claim("none", storage_class=None), claim("empty", storage_class=""), claim("named", storage_class="x")]
    snapshot = Snapshot.from_objects([*classes, *claims]).storage.claims
    assert snapshot["default/none"].storage_class == expected
    assert snapshot["default/empty"].storage_class == ""
    assert snapshot["default/named"].storage_class == "x"


def test_defaults_of_the_api_server() -> None:
    bare: list[Manifest] = [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": None, "status": None},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "x"}, "provisioner": "p"},
    ]
    storage = Snapshot.from_objects(bare).storage
    assert storage.volumes["pv"].status.phase == storage.claims["default/data"].status.phase == "Pending"
    assert storage.volumes["pv"].spec.volume_mode == storage.claims["default/data"].spec.volume_mode == "Filesystem"
    assert not storage.classes["x"].waits_for_first_consumer


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (volume("pv", size="10 GB"), "PersistentVolume pv: spec.capacity[storage]"),
        (claim("data", size="much"), "PersistentVolumeClaim default/data: spec.resources.requests[storage]"),
        (capacity("c", "1Zi"), "CSIStorageCapacity kube-system/c: capacity"),
        (capacity("c", "1Gi", maximumVolumeSize="x"), "CSIStorageCapacity kube-system/c: maximumVolumeSize"),
        (volume("pv", accessModes="ReadWriteOnce"), "PersistentVolume pv: spec.accessModes"),
    ],
)
def test_an_error_has_its_place(manifest: Manifest, place: str) -> None:
    with pytest.raises(InputError) as caught:
        Snapshot.from_objects([manifest])
    assert str(caught.value).startswith(f"document 1: {place}: ")


def test_equal_objects_count_once() -> None:
    quota: Manifest = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    objects: list[Manifest] = [volume("pv"), claim("data"), node("n"), pod("a"), pod("b", on="n"), quota]
    again = Snapshot.from_objects([*objects, *objects])
    assert again.source.kinds == Snapshot.from_objects(objects).source.kinds
    assert [again.pods[row] for row in (0, 1)] == [Snapshot.from_objects(objects).pods[row] for row in (0, 1)]


def test_objects_are_equal_whatever_their_indentation_and_order_of_keys(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
    main = [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    own = pod("b", on="node-1", labels={"b": "1", "a": "2"}, metadata={"ownerReferences": [owner]}, containers=main)
    labels = {"matchLabels": {"b": "1", "a": "2"}}
    deployment: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "uid": "d"}}
    deployment |= {"spec": {"selector": labels, "template": {"spec": {"containers": main}}}, "status": {"replicas": 1}}
    items: list[Manifest] = [node("node-1"), pod("a"), own, deployment, volume("pv"), claim("data")]
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": items}))
    assert kschedx.load(str(tmp_path)).source.kinds == Snapshot.from_objects(items).source.kinds
    other = json.dumps({**own, "spec": {**at(own, "spec"), "priority": 5}}, indent=1, sort_keys=True)
    (tmp_path / "c.json").write_text(other)
    with pytest.raises(
        InputError, match=r"Pod default/b: an object of this name already exists in .*with other content"
    ):
        kschedx.load(str(tmp_path))


def test_two_objects_of_a_name_are_an_error() -> None:
    with pytest.raises(InputError, match="an object of this name already exists"):
        Snapshot.from_objects([volume("pv"), {**volume("pv"), "spec": {"storageClassName": "other"}}])
