"""Missing replicas of a workload: their number, their nodes, and the explained one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Manifest, at, node, pod
from tests.command import CommandResult, check_document, kschedx
from tests.simulate.clusters import HASH, HIGH, deployment, nodes
from tests.simulate.test_rollouts import asking, stateful


def run_why(folder: Path, cluster: list[Manifest], *arguments: str, manifest: object = None) -> CommandResult:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": cluster}))
    (folder / "app.json").write_text(json.dumps(manifest))
    typed = [str(folder / argument) if argument == "app.json" else argument for argument in arguments]
    return kschedx("why", *typed, "-n", "shop", "-s", folder / "cluster.json")


def document(outcome: CommandResult) -> Any:
    result = json.loads(outcome.out)
    check_document(result)
    return result


def headline(result: CommandResult) -> str:
    return result.out.splitlines()[0]


def web(replicas: int, cpu: str = "3", **strategy: object) -> Manifest:
    built, *_ = deployment("web", cpu, [None] * replicas)
    if strategy:
        at(built, "spec")["strategy"] = {"rollingUpdate": strategy}
    return built


SMALL = nodes(("4", "4", "4"))


@pytest.mark.parametrize(
    ("places", "replicas", "expected"),
    [
        ([], 2, "✓ shop/deploy/web: both replicas can be scheduled"),
        ([], 5, "✗ shop/deploy/web: 3 of 5 replicas can be scheduled, 2 stay pending"),
        (["node-1"], 3, "✓ shop/deploy/web: both missing replicas can be scheduled"),
        (["node-1", "node-2"], 5, "✗ shop/deploy/web: 1 of 3 missing replicas can be scheduled, 2 stay pending"),
        (["node-1", "node-2", "node-3"], 5, "✗ shop/deploy/web: none of 2 missing replicas can be scheduled"),
        (["node-1", "node-2"], 3, "✓ shop/web-7d4b9-new would be assigned to node-3, the only node that fits"),
        (["node-1", "node-2"], 2, "✓ shop/web-7d4b9-new would be assigned to node-3, the only node that fits"),
    ],
)  # fmt: skip
def test_a_manifest_is_explained_with_its_missing_replicas(
    places: list[str], replicas: int, expected: str, tmp_path: Path
) -> None:
    built, replica_set, *pods = deployment("web", "3", [*places, *[None] * (replicas - len(places))])
    running = [item for item in pods if at(item, "spec").get("nodeName")]
    cluster = [*SMALL, *([built, replica_set] if places else []), *running]
    result = run_why(tmp_path, cluster, "app.json", manifest=built)
    assert headline(result) == expected
    assert result.code == (1 if expected.startswith("✗") else 0)


def test_the_first_replica_without_a_node_is_explained(tmp_path: Path) -> None:
    outcome = run_why(tmp_path, SMALL, "app.json", "-o", "json", manifest=web(5))
    result = document(outcome)
    assert (result["pod"]["name"], result["outcome"]) == ("web-new4", "Unschedulable")
    assert result["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert result["replicas"] == {
        "workload": "shop/deploy/web",
        "wanted": 5,
        "running": 0,
        "placed": {"shop/web-new1": "node-1", "shop/web-new2": "node-3", "shop/web-new3": "node-2"},
        "pending": ["shop/web-new4", "shop/web-new5"],
        "evicted": [],
        "replaced": 0,
    }


def test_pending_pods_are_missing_replicas(tmp_path: Path) -> None:
    cluster = [*SMALL, *deployment("web", "3", ["node-1", "node-2", None, None])]
    outcome = run_why(tmp_path, cluster, "deploy/web", "-o", "json")
    result = document(outcome)
    assert (result["pod"]["name"], result["replicas"]["placed"]) == ("web-3", {"shop/web-2": "node-3"})
    item = run_why(tmp_path, [*SMALL, *deployment("web", "3", ["node-1", None])], "deploy/web", "-o", "json")
    assert document(item)["pod"]["name"] == "web-1"
    assert "replicas" not in document(item)


def test_replicas_name_their_victims(tmp_path: Path) -> None:
    full = [*SMALL, HIGH, *deployment("batch", "3", ["node-1", "node-2"])]
    built, *_ = deployment("web", "3", [None] * 3, priority_class="high")
    result = run_why(tmp_path, full, "app.json", manifest=built)
    assert result.out.splitlines()[:3] == [
        "✗ shop/deploy/web: all 3 replicas can be scheduled after preemption",
        "  nodes     node-3 · node-2 · node-1",
        "  evicts    shop/batch-1, shop/batch-0",
    ]
    assert "shop/web-new2 is unschedulable" in result.out
    assert result.code == 1


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            {"maxSurge": 1, "maxUnavailable": 0},
            "✗ shop/deploy/web: none of 3 replicas can be scheduled; the rollout stalls",
        ),
        ({"maxSurge": 0, "maxUnavailable": 1}, "✓ shop/deploy/web: all 3 replicas can be scheduled, replacing 3 pods"),
        ({}, "✗ shop/deploy/web: none of 3 replicas can be scheduled; the rollout stalls with 3 pods"),
    ],
)
def test_a_new_template_is_rolled_out(strategy: dict[str, object], expected: str, tmp_path: Path) -> None:
    cluster = [*SMALL, *deployment("web", "3", ["node-1", "node-2", "node-3"])]
    result = run_why(tmp_path, cluster, "app.json", manifest=web(3, "4", **strategy))
    assert headline(result).startswith(expected)


@pytest.mark.parametrize(
    ("cpu", "partition", "expected"),
    [
        ("3", 0, "✓ shop/sts/db: all 3 replicas can be scheduled, replacing 3 pods of the previous template"),
        ("3", 1, "✓ shop/sts/db: both missing replicas can be scheduled, replacing 2 pods of the previous template"),
        ("5", 0, "✗ shop/sts/db: none of 3 replicas can be scheduled; the rollout stalls with 2 pods"),
    ],
)
def test_a_stateful_set_is_rolled_out_from_its_last_pod(
    cpu: str, partition: int, expected: str, tmp_path: Path
) -> None:
    """db-1 and db-0 are not created until db-2 has a node."""
    before = stateful(["node-1", "node-2", "node-3"])
    [after, *_] = stateful(["node-1", "node-2", "node-3"], updateStrategy={"rollingUpdate": {"partition": partition}})
    at(after, "metadata").pop("uid")
    at(after, "spec.template.spec.containers")[0]["resources"] = {"requests": {"cpu": cpu}}
    outcome = run_why(tmp_path, [*SMALL, *before], "app.json", "-o", "json", manifest=after)
    result = document(outcome)["replicas"]
    assert [*result["placed"], *result["pending"]][0].startswith("shop/db-")
    assert not [name for name in (*result["placed"], *result["pending"]) if "~" in name]
    screen = run_why(tmp_path, [*SMALL, *before], "app.json", manifest=after).out
    assert " ".join(screen.split()).startswith(expected)


def test_each_replica_has_its_own_claims(tmp_path: Path) -> None:
    claim = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    result = web(3, "1")
    spec = at(result, "spec.template.spec")
    spec["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}]
    storage: list[Manifest] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for name in ("node-1", "node-2"):
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        storage.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"on-{name}"},
                "spec": {
                    **claim["spec"],
                    "capacity": {"storage": "1Gi"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
                },
                "status": {"phase": "Available"},
            }
        )
    outcome = run_why(tmp_path, [*SMALL, *storage], "app.json", manifest=result)
    assert headline(outcome) == "✗ shop/deploy/web: 2 of 3 replicas can be scheduled, 1 stays pending"
    assert "no volume matches claim shop/web-new3-scratch" in outcome.out


def test_several_workloads_take_turns(tmp_path: Path) -> None:
    """The pod fits alone, but other pods use the room first."""
    urgent, *_ = deployment("web", "3", [None] * 3, priority_class="high")
    late = pod(
        "late",
        namespace="shop",
        containers=[{"name": "main", "image": "late:1", "resources": {"requests": {"cpu": "2"}}}],
    )
    both = {"apiVersion": "v1", "kind": "List", "items": [late, urgent]}
    result = run_why(tmp_path, [*SMALL, HIGH], "app.json", manifest=both)
    assert headline(result) == "✗ 4 pods: 1 unschedulable, 3 can be scheduled"
    assert "alone     would fit node-1 if scheduled before shop/web-new1" in result.out
    assert "shop/web (Deployment) × 3 → node-1, node-3, node-2" in result.out
    alone = run_why(tmp_path, [*SMALL, HIGH], "app.json", "--alone", manifest=both)
    assert headline(alone) == "✓ 2 pods can be scheduled"
    listed = document(run_why(tmp_path, [*SMALL, HIGH], "app.json", "-o", "json", manifest=both))
    assert [len(item.get("replicas", {}).get("placed", ())) for item in listed["items"]] == [0, 3]


def test_an_ordinal_is_not_created_while_the_earlier_one_is_not_ready(tmp_path: Path) -> None:
    status = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": "Unknown"}]}
    lost = node("node-1") | {"status": status}
    [database] = stateful([], replicas=2)
    other = pod("other", namespace="shop", containers=[asking("1")])
    both = {"apiVersion": "v1", "kind": "List", "items": [database, other]}
    result = run_why(tmp_path, [lost], "app.json", manifest=both)
    assert "✗ not created before the others are ready\n  pod       shop/db (StatefulSet)" in result.out
    assert "group" not in result.out


def test_the_decided_pod_is_explained_if_another_is_on_a_missing_node(tmp_path: Path) -> None:
    stored = {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "db"}}
    orphans = [pod(name, on=on, namespace="shop", metadata=stored) for name, on in (("db-1", "gone"), ("db-2", None))]
    [database] = stateful([], replicas=1)
    result = run_why(tmp_path, [*SMALL, *orphans], "app.json", manifest=database)
    assert "shop/db-2 would be assigned to" in result.out


def test_replicas_that_exclude_each_other_are_not_tried_first(tmp_path: Path) -> None:
    """Each replica would fit if it were the first, but then another one would not."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    [web, *_] = deployment("web", "1", [None] * 3)
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    at(web, "spec.template.spec").update(affinity=affinity)
    both = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [web, pod("other", namespace="shop", containers=[asking("1")])],
    }
    result = run_why(tmp_path, nodes(("4", "4")), "app.json", manifest=both)
    assert headline(result) == "✗ 4 pods: 3 can be scheduled, 1 unschedulable"
    assert "alone" not in result.out


def test_an_ordinal_that_is_created_later_is_not_tried_first(tmp_path: Path) -> None:
    """db-1 is created only when db-0 is ready, and then the other pod uses the only node."""
    other = pod("other", namespace="shop", containers=[asking("3")])
    [database] = stateful([], replicas=2)
    both = {"apiVersion": "v1", "kind": "List", "items": [database, other]}
    result = run_why(tmp_path, nodes(("4",)), "app.json", manifest=both)
    assert headline(result) == "✗ 3 pods: 2 can be scheduled, 1 unschedulable"
    assert "shop/db (StatefulSet)" in result.out
    assert "alone" not in result.out


def test_the_hash_is_that_of_the_replica_set(tmp_path: Path) -> None:
    result = run_why(
        tmp_path, [*SMALL, *deployment("web", "1", ["node-1"])], "app.json", "-o", "name", manifest=web(3, "1")
    )
    assert [line.partition(" ")[0] for line in result.out.splitlines()] == [
        f"shop/web-{HASH}-new{number}" for number in (1, 2)
    ]


def test_a_snapshot_keeps_the_number_of_replicas(tmp_path: Path) -> None:
    """A slim snapshot answers the same, anonymized or not."""
    built, *others = deployment("web", "3", ["node-1"])
    built["spec"] = {**at(built, "spec"), "replicas": 5, "strategy": {"type": "Recreate"}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*SMALL, built, *others]}))
    for number, options in enumerate(((), ("--anonymize",))):
        file = tmp_path / f"slim-{number}.json"
        assert kschedx("snapshot", "-s", tmp_path / "cluster.json", "-o", file, *options).code == 0
        workload = next(item for item in json.loads(file.read_text())["items"] if item["kind"] == "Deployment")
        assert (workload["spec"]["replicas"], workload["spec"]["strategy"]) == (5, {"type": "Recreate"})
        name, namespace = workload["metadata"]["name"], workload["metadata"]["namespace"]
        result = headline(kschedx("why", f"deploy/{name}", "-n", namespace, "-s", file))
        assert result.endswith("2 of 4 missing replicas can be scheduled, 2 stay pending")
