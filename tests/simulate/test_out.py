"""The cluster after a simulation as a file, from which another simulation continues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kschedx
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as command
from tests.simulate.clusters import shop

STORAGE: list[Manifest] = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "capacity": {"storage": "1Gi"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
                            ]
                        }
                    ]
                }
            },
        },
        "status": {"phase": "Available"},
    },
    pod(
        "ledger",
        namespace="shop",
        containers=[{"name": "main", "image": "ledger:1"}],
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "emptyDir": {}}],
        tolerations=[{"key": "spot", "operator": "Exists"}],
    ),
]


def places(snapshot: Snapshot) -> dict[str, str]:
    pods = snapshot.pods
    return {pods.key(row): pods.node_names[row] for row in range(len(pods))}


@pytest.mark.parametrize("name", ["after.json", "after.yaml.gz"])
def test_it_is_the_cluster_of_the_simulation(name: str, tmp_path: Path) -> None:
    objects = [*shop(), *STORAGE]
    at(objects[0], "status")["images"] = [{"names": ["web:1"], "sizeBytes": 300_000_000}]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    changes = ("--scale", "deploy/web=9", "--drain", "node-1", "-n", "shop")
    assert command("simulate", "-s", cluster, *changes, "--out", tmp_path / name).code == 0
    written = kschedx.load(str(tmp_path / name))
    changed = [{"scale": "deploy/web=9"}, {"drain": "node-1"}]
    after = kschedx.simulate(kschedx.load(str(cluster)), changes=changed, namespace="shop").after
    assert places(written) == places(after)
    assert written.storage.claims["shop/data"].spec.volume_name == "pv"
    for row in range(len(after.pods)):
        there, here = after.pods[row], written.pods[written.pods.rows[after.pods.key(row)]]
        assert (here.spec, here.metadata.labels) == (there.spec, there.metadata.labels)
    assert {node.name: node for node in written.cluster.nodes} == {node.name: node for node in after.cluster.nodes}
    more = [kschedx.simulate(item, changes=[{"scale": "deploy/web=12"}], namespace="shop") for item in (after, written)]
    texts = [[step.get("bestNodes") for step in at(item.to_dict(), "steps")] for item in more]
    assert texts[0] == texts[1]


BETA = "resource.k8s.io/v1beta1"


def beta(kind: str, name: str, spec: Mapping[str, object]) -> Manifest:
    return {"apiVersion": BETA, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_the_same_decision_follows_from_what_is_written(tmp_path: Path) -> None:
    """Devices of another API version are converted, and a terminating pod keeps its finalizers and its grace period."""
    deleted = {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 60}
    four = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}]
    held = pod("held", on="n", metadata={**deleted, "finalizers": ["example.com/hold"]}, containers=four)
    of_x = [{"cel": {"expression": "device.attributes['example.com'].model == 'x'"}}]
    devices = [{"name": "a", "basic": {"attributes": {"model": {"string": "x"}}}}]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    claim = {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu", "selectors": of_x}]}}
    objects = [
        node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}),
        held,
        beta("DeviceClass", "gpu", {}),
        beta("ResourceSlice", "s", {"driver": "example.com", "nodeName": "n", "pool": pool, "devices": devices}),
        beta("ResourceClaim", "c", claim),
        pod("me", resourceClaims=[{"name": "d", "resourceClaimName": "c"}]),
        pod("big", containers=four),
    ]
    cluster, after = tmp_path / "cluster.json", tmp_path / "after.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    simulated = command("simulate", "-s", cluster, "--cordon", "n", "--uncordon", "n", "--no-recreate", "--out", after)
    assert simulated.code == 1, simulated.err
    assert "finalizer example.com/hold" in command("why", "pod/big", "-s", after).out
    assert kschedx.load(str(after)).pods.grace_periods == {"default/held": 60}
    (claimed,) = kschedx.load(str(after)).devices.claims.values()
    assert claimed.status.allocation is not None


def test_unchanged_objects_are_written_unchanged(tmp_path: Path) -> None:
    for story in sorted((Path(__file__).parents[2] / "fixtures").glob("*/cluster.yaml"))[::4]:
        file = tmp_path / f"{story.parent.name}.json"
        node = kschedx.load(str(story)).cluster.names[0]
        result = command("simulate", "-s", story, "--cordon", node, "--uncordon", node, "--out", file)
        assert result.code in (0, 1, 3), story
        again = tmp_path / f"{story.parent.name}-again.json"
        assert command("snapshot", "-s", file, "-o", again).code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("simulate", "--out", "after.txt"), '--out: found "after.txt", allowed are names in .json or .yaml'),
        (("drain", "--each", "--out", "after.json"), "--out writes the cluster after the drains"),
        (("fit", "deploy/web", "--out", "no/where.json"), "no/where.json"),
    ],
)
def test_a_bad_name_is_a_one_line_error(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": shop()}))
    result = command(*arguments, "-n", "shop", "-s", cluster)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert expected in result.err


def test_the_pods_of_fit_are_in_the_cluster(tmp_path: Path) -> None:
    cluster, out = tmp_path / "cluster.json", tmp_path / "after.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": shop()}))
    assert command("fit", "deploy/web", "-n", "shop", "-s", cluster, "--out", out).code == 0
    assert command("fit", "deploy/web", "-n", "shop", "-s", out).out.startswith("✗ deploy/web: no more fit")


def with_secrets(manifest: Manifest) -> Manifest:
    """Return objects with a secret in every field that users put secrets in."""
    changed: Any = json.loads(json.dumps(manifest))
    if changed["kind"] == "StorageClass":
        changed["parameters"] = {"secret": "sesame"}
    for holder in (changed, changed.get("spec", {}).get("template", {})):
        holder.setdefault("metadata", {})["annotations"] = {"note": "sesame", "last-applied": "sesame"}
        for container in holder.get("spec", {}).get("containers", []):
            container.update(env=[{"name": "TOKEN", "value": "sesame"}], args=["sesame"], command=["sesame"])
    return dict(changed)


def test_fields_without_effect_are_not_written(tmp_path: Path) -> None:
    """Values of variables, arguments, and annotations of cluster and manifests are not written."""
    cluster, manifest, after = (tmp_path / name for name in ("cluster.json", "web.json", "after.json"))
    objects = [with_secrets(item) for item in (*shop(), *STORAGE)]
    template = next(at(item, "spec.template") for item in objects if item["kind"] == "Deployment")
    another = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "another", "namespace": "shop"}}
    labels = at(template, "metadata.labels")
    manifest.write_text(json.dumps({**another, "spec": {"selector": {"matchLabels": labels}, "template": template}}))
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = command("simulate", "-s", cluster, "-f", manifest, "-n", "shop", "--scale", "deploy/web=9", "--out", after)
    assert result.code in (0, 1)
    assert "sesame" in manifest.read_text()
    assert "another" in after.read_text()
    assert "sesame" not in after.read_text()
