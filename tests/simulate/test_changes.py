"""Changes that are applied first: the effect of each, and the error if it is impossible."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.manifests import objects_of
from kschedx.inquiry.what_if import ChangedCluster, change_cluster
from kschedx.kube.decoding import map_at
from kschedx.simulate.changes import SimulatedChange, parse_changes
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as command
from tests.simulate.clusters import deployment, nodes, shop


def made(*written: dict[str, object]) -> tuple[SimulatedChange, ...]:
    return parse_changes(written, lambda path: [])


def after(*written: dict[str, object]) -> ChangedCluster:
    snapshot = Snapshot.from_objects(shop())
    return change_cluster(snapshot, Setup.of_cluster(snapshot), made(*written), SimulationOptions(), "shop")


def waiting(changed: ChangedCluster) -> list[str]:
    pods = changed.snapshot.pods
    return sorted(pods.names[row] for row in pods.pending)


def test_more_replicas_are_pending() -> None:
    changed = after({"scale": "deploy/web=9"})
    assert waiting(changed) == ["batch-7", "web-5", "web-7d4b9-new1", "web-7d4b9-new2", "web-7d4b9-new3"]
    assert changed.by_hand.effects[-1].made == ("shop/web-7d4b9-new1", "shop/web-7d4b9-new2", "shop/web-7d4b9-new3")


@pytest.mark.parametrize(("written", "created"), [("7.0", 2), ("7e0", 2), ("null", 0), ("", 0)])
def test_replicas_are_read_as_go_reads_them(tmp_path: Path, written: str, created: int) -> None:
    """Go writes 7.0 as 7; null removes the field, whose default is 1; without it, the replicas stay."""
    spec = at(deployment("web", "1", ["node-1"] * 5)[0], "spec")
    marked = {"replicas": -7} if written else {}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {**{name: value for name, value in spec.items() if name != "replicas"}, **marked},
    }
    (tmp_path / "web.json").write_text(json.dumps(manifest).replace("-7", written), encoding="utf-8")
    snapshot = Snapshot.from_objects([*nodes(), *deployment("web", "1", ["node-1"] * 5)])
    changes = parse_changes([{"apply": str(tmp_path / "web.json")}], objects_of)
    then = change_cluster(snapshot, Setup.of_cluster(snapshot), changes, SimulationOptions(), "shop")
    assert len(then.by_hand.effects[0].made) == created
    replicas = map_at(msgspec.json.decode(then.snapshot.workloads["Deployment", "shop", "web"]), "spec")["replicas"]
    assert replicas == (5 + created if written != "null" else 1)


def test_finished_pods_are_removed_with_their_node() -> None:
    snapshot = Snapshot.from_objects([node("a"), node("b"), pod("done", on="a", status={"phase": "Succeeded"})])
    simulation = kschedx.simulate(snapshot, changes=[{"remove-node": "a"}])
    assert not len(simulation.simulator.after.pods)


def test_a_pending_replica_is_removed_first() -> None:
    assert waiting(after({"scale": "deploy/web=5"})) == ["batch-7"]
    gone = after({"scale": "deploy/web=0"}).snapshot.pods
    assert not [name for name in gone.names if name.startswith("web")]


def test_a_workload_is_applied_with_all_its_replicas() -> None:
    container = {"name": "main", "image": "db:1", "resources": {"requests": {"cpu": "100m"}}}
    new = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}],
        },
    }
    changed = after({"apply": [new]})
    assert waiting(changed) == ["batch-7", "db-0", "web-5"], "db-1 is created when db-0 is ready"
    assert set(changed.snapshot.storage.claims) == {"shop/data-db-0"}


def test_a_deleted_pod_with_a_controller_is_recreated() -> None:
    assert waiting(after({"delete": "pod/web-0"})) == ["batch-7", "web-0", "web-5"]
    assert waiting(after({"delete": "deploy/web"})) == ["batch-7"]


def test_a_replica_set_that_a_deployment_controls_is_recreated_with_its_pods() -> None:
    assert len(waiting(after({"delete": "rs/web-7d4b9"}))) == len(["batch-7", "web-5"]) + 5


def test_a_deployment_does_not_count_terminating_pods() -> None:
    web = deployment("web", "1", ["node-1", "node-2"])
    at(web[-1], "metadata")["deletionTimestamp"] = "2026-11-20T09:00:00Z"
    at(web[0], "spec")["replicas"] = 1
    snapshot = Snapshot.from_objects([*nodes(), *web])
    (workload,) = kschedx.simulate(snapshot, changes=[{"scale": "shop/deploy/web=2"}]).workloads
    assert (workload.pods, len(workload.placed)) == (2, 1)
    image = {"set": "shop/deploy/web:spec.template.spec.containers[main].image=web:2"}
    (rollout,) = kschedx.simulate(snapshot, changes=[image]).simulator.manager.rollouts
    assert (rollout.old, rollout.replaced, rollout.stalls) == (1, 1, False)


def test_what_a_deleted_workload_owns_is_deleted_with_it() -> None:
    deleted = after({"delete": "deploy/web"}).snapshot
    assert not [key for key in deleted.workloads if key[2].startswith("web")]
    with pytest.raises(InputError, match='no Deployment "web" in namespace "shop"'):
        after({"delete": "deploy/web"}, {"scale": "deploy/web=3"})


def test_the_jobs_of_a_deleted_cron_job_are_deleted_with_their_pods() -> None:
    def owned(kind: str, name: str) -> dict[str, object]:
        owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": name, "controller": True}
        return {"namespace": "shop", "ownerReferences": [owner]}

    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "etl", "namespace": "shop"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "etl-1", **owned("CronJob", "etl")},
        "spec": {"template": template},
    }
    running = pod("etl-1-x", on="a", metadata=owned("Job", "etl-1"))
    snapshot = Snapshot.from_objects([node("a"), cron_job, job, running])
    simulation = kschedx.simulate(snapshot, changes=[{"delete": "shop/cj/etl"}])
    assert not len(simulation.simulator.after.pods)
    kept = kschedx.simulate(snapshot, changes=[{"delete": "shop/job/etl-1"}]).simulator
    assert not len(kept.after.pods)
    assert ("CronJob", "shop", "etl") in kept.snapshot.workloads


def test_workloads_that_own_each_other_are_deleted_once() -> None:
    def made(name: str, above: str) -> dict[str, object]:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": above, "uid": above}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
        metadata = {"name": name, "namespace": "shop", "ownerReferences": [owner]}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}

    snapshot = Snapshot.from_objects([node("a"), made("x", "y"), made("y", "x"), made("z", "z")])
    simulation = kschedx.simulate(snapshot, changes=[{"delete": "shop/rs/x"}, {"delete": "shop/rs/z"}])
    assert not simulation.simulator.snapshot.workloads


@pytest.mark.parametrize(("limit", "pods"), [(0, 0), (1, 1)])
def test_a_job_that_exceeds_its_backoff_limit_replaces_no_pod(limit: int, pods: int) -> None:
    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "etl", "namespace": "default"},
        "spec": {"template": template, "backoffLimit": limit},
    }
    metadata = {"ownerReferences": [{"kind": "Job", "name": "etl", "uid": "etl", "controller": True}]}
    running = pod("etl-x", on="a", metadata=metadata)
    snapshot = Snapshot.from_objects([node("a"), node("b"), job, running])
    for change in ({"remove-node": "a"}, {"taint": "a:x=1:NoExecute"}, {"delete": "default/pod/etl-x"}):
        assert len(kschedx.simulate(snapshot, changes=[change]).simulator.after.pods) == pods
    small = node("a", allocatable={"cpu": "1", "pods": "1"})
    preempted = kschedx.simulate(Snapshot.from_objects([small, job, running, pod("urgent", priority=9)]))
    assert len(preempted.simulator.after.pods) == 1 + pods


@pytest.mark.parametrize(
    ("policy", "free", "placed", "pending"),
    [
        ("OrderedReady", "2", ["db-0", "db-1"], []),
        ("OrderedReady", "1", ["db-0"], ["db-1"]),
        ("OrderedReady", "0", [], ["db-0"]),
        ("Parallel", "0", [], ["db-0", "db-1"]),
    ],
)
def test_preempted_pods_of_a_stateful_set_are_recreated_in_order(
    policy: str, free: str, placed: list[str], pending: list[str]
) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "db"},
        "spec": {"replicas": 2, "podManagementPolicy": policy, "template": template},
    }
    metadata = {"ownerReferences": [{"kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}]}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    running = [
        pod(f"db-{ordinal}", on="a", containers=[container], metadata=metadata, status=ready) for ordinal in range(2)
    ]
    two = {**container, "resources": {"requests": {"cpu": "2"}}}
    urgent = pod("urgent", priority=9, containers=[two], nodeSelector={"for": "urgent"})
    nodes = [
        node("a", labels={"for": "urgent"}, allocatable={"cpu": "2", "pods": "9"}),
        node("b", allocatable={"cpu": free, "pods": "9"}),
    ]
    simulation = kschedx.simulate(Snapshot.from_objects([*nodes, stateful_set, *running, urgent]))
    assert [key for key, name in simulation.placed.items() if name == "b"] == [f"default/{name}" for name in placed]
    assert sorted(simulation.pending) == [f"default/{name}" for name in pending]
    assert {*simulation.evictions} == {"default/db-0", "default/db-1"}
    [of_db] = [result for result in simulation.workloads if result.workload.kind == "StatefulSet"]
    assert of_db.to_come == 2 - len(placed) - len(pending)
    assert len(of_db.evicted) == 2
    for step in range(len(simulation.steps)):
        assert simulation.explain(step).outcome is simulation.steps[step].outcome


def test_the_first_toleration_of_a_taint_decides_whether_it_evicts_a_pod() -> None:
    limited = {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    for tolerations, left in (([{"operator": "Exists"}, limited], 1), ([limited, {"operator": "Exists"}], 0)):
        snapshot = Snapshot.from_objects([node("a"), pod("web", on="a", tolerations=tolerations)])
        simulation = kschedx.simulate(snapshot, changes=[{"taint": "a:x=1:NoExecute"}])
        assert len(simulation.simulator.after.pods) == left


def test_new_nodes_may_copy_a_removed_node() -> None:
    gone = {"remove-node": "node-4"}
    anew = {"apply": [node("node-4", allocatable={"cpu": "3", "memory": "8Gi", "pods": "110"})]}
    for made_before, cpu in (((gone,), {"4"}), ((gone, anew), {"3"})):
        cluster = after(*made_before, {"add-nodes": "1=node-4"}).snapshot.cluster
        assert {item.status.allocatable["cpu"] for item in cluster.nodes if item.name == "node-4-new1"} == cpu


def test_nodes_are_added_and_removed() -> None:
    changed = after({"add-nodes": "2=node-4"}, {"remove-node": "node-5"})
    names = changed.snapshot.cluster.names
    assert names == ("node-1", "node-2", "node-3", "node-4", "node-4-new1", "node-4-new2")
    new = changed.snapshot.cluster.nodes[4]
    assert new.metadata.labels["kubernetes.io/hostname"] == "node-4-new1"
    assert waiting(changed) == ["batch-6", "batch-7", "web-4", "web-5"]
    assert tuple(changed.by_hand.added_nodes) == ("node-4-new1", "node-4-new2")


def test_nodes_change() -> None:
    changed = after(
        {"cordon": "node-1"},
        {"taint": "node-2:dedicated=gpu:NoSchedule"},
        {"label": "node-3:disk=ssd"},
        {"set": "node/node-4:status.allocatable.cpu=64"},
    )
    item, two, three, *_ = changed.snapshot.cluster.nodes
    assert item.spec.unschedulable
    assert [str(taint) for taint in item.spec.taints] == ["node.kubernetes.io/unschedulable:NoSchedule"]
    assert [str(taint) for taint in two.spec.taints] == ["dedicated=gpu:NoSchedule"]
    assert three.metadata.labels["disk"] == "ssd"
    assert changed.snapshot.cluster.allocatable[3, 0] == 64_000
    undone = after(
        {"cordon": "node-1"}, {"uncordon": "node-1"}, {"label": "node-3:disk=ssd"}, {"label": "node-3:disk-"}
    )
    assert undone.snapshot.cluster.nodes == Snapshot.from_objects(nodes()).cluster.nodes


def test_changes_are_applied_in_their_order() -> None:
    assert waiting(after({"scale": "deploy/web=8"}, {"scale": "deploy/web=6"})) == ["batch-7", "web-5"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"scale": "deploy/weeb=3"}, 'deploy/weeb=3: no Deployment "weeb" in namespace "shop" (did you mean "web"?)'),
        ({"scale": "ds/web=3"}, 'scale ds/web=3: no DaemonSet "web" in namespace "shop"'),
        ({"scale": "deploy/web=-1"}, 'scale deploy/web=-1: found "-1", expected a number of at least 0'),
        ({"scale": "deploy/web=many"}, 'scale deploy/web=many: found "many", expected a number of at least 0'),
        ({"scale": "deploy/web"}, 'scale deploy/web: found "deploy/web", allowed is KIND/NAME=REPLICAS'),
        ({"scale": "web=3"}, 'scale web=3: "web" is not KIND/NAME (did you mean "shop/deploy/web"?)'),
        ({"restart": "pod/web-0"}, "restart pod/web-0: kubectl restarts no Pod (it restarts Deployments, StatefulSets"),
        ({"drain": "node-9"}, 'drain node-9: no node "node-9" in the snapshot (did you mean "node-5"?)'),
        ({"delete": "pod/web-77"}, 'delete pod/web-77: no pod "web-77" in namespace "shop" (did you mean "web-5"?)'),
        ({"taint": "node-1:a=b:NoShedule"}, '"NoShedule" is not a taint effect (did you mean "NoSchedule"?)'),
        ({"label": "node-1:nope-"}, '"nope" is not a label of node-1'),
        ({"add-nodes": "lots=node-1"}, 'found "lots", expected a number of at least 1'),
        ({"add-nodes": "10001=node-1"}, "found 10,001, at most 10,000 are simulated"),
        ({"scale": "deploy/web=1000001"}, "found 1,000,001, at most 1,000,000 are simulated"),
        ({"set": "deploy/web:spec.template.spec.containers[man].image=x"}, 'there is no "man" (did you mean "main"?)'),
        ({"set": "no/node-1:spec.unschedulabel=1"}, '(did you mean "unschedulable"?)'),
        ({"set": "deploy/web:spec.replicas=-3"}, "Invalid value: -3: must be greater than or equal to 0"),
        ({"set": "deploy/web:spec.replicas=few"}, 'spec.replicas: expected a whole number, found "few"'),
        ({"set": "deploy/web:spec.strategy=5"}, "spec.strategy: expected a mapping, found 5"),
        ({"set": "deploy/web:spec.tempalte.spec.x=y"}, 'spec.tempalte: unknown field (did you mean "template"?)'),
        ({"set": "deploy/web:metadata.name=other"}, "metadata.name cannot be changed"),
        ({"set": "deploy/web:kind=Job"}, "kind cannot be changed"),
        ({"set": "pod/web-0:spec.containers[0].resources.requests.cpu=two"}, "containers[0].resources.requests[cpu]"),
        ({"set": "node/node-1:spec.taints=x"}, 'spec.taints: expected a list, found a string'),
        ({"set": "node/node-1:metadata.name=other"}, "metadata.name cannot be changed"),
        ({"taint": "node-1:a b=c:NoSchedule"}, 'spec.taints[0]: Invalid value: "a b"'),
        ({"label": "node-1:a=b c"}, 'metadata.labels: Invalid value: "b c"'),
        ({"add-nodes": "0=node-1"}, 'found "0", expected a number of at least 1'),
        ({"skale": "deploy/web=3"}, '"skale" is not a change (did you mean "scale"?)'),
        ({"scale": "deploy/web=3", "drain": "node-1"}, "expected a map with one key"),
    ],
)  # fmt: skip
def test_an_impossible_change_is_an_error(change: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        after(change)
    assert expected in str(raised.value)


def test_the_library_accepts_changes() -> None:
    snapshot = Snapshot.from_objects(shop())
    simulation = kschedx.simulate(snapshot, changes=[{"scale": "deploy/web=20"}], namespace="shop")
    assert len(simulation.placed) == 15
    assert simulation.pending == ("shop/batch-7",)
    assert Snapshot.from_objects(shop()).pods.pending == snapshot.pods.pending


def test_a_drain_is_decided_before_the_next_change() -> None:
    snapshot = Snapshot.from_objects(shop())
    drained = [{"drain": "node-1"}, {"uncordon": "node-1"}, {"remove-node": "node-2"}]
    simulation = kschedx.simulate(snapshot, changes=drained, namespace="shop")
    item = simulation.after.cluster.nodes[0]
    assert (item.name, item.spec.unschedulable) == ("node-1", False)
    assert [drain.node for drain in simulation.drained] == ["node-1"]
    first = [step.key for step in simulation.steps[:3]]
    assert sorted(first) == ["shop/batch-0", "shop/batch-1", "shop/web-0"]
    assert {*simulation.placed} == {*first, "shop/batch-2", "shop/batch-3", "shop/batch-7", "shop/web-1", "shop/web-5"}
    assert "node-2" not in simulation.placed.values()
    for number in range(len(simulation.steps) - 4, len(simulation.steps)):
        step = simulation.steps[number]
        assert step.decision is not None
        assert list(simulation.explain(number).best_nodes) == step.names(step.decision.best.tolist())
    for number in (0, len(simulation.steps), -1):
        with pytest.raises(
            InputError, match=rf"step {number} cannot be explained \(the last queue has the steps \d+ to"
        ):
            simulation.explain(number)


def test_a_drained_node_can_be_removed() -> None:
    snapshot = Snapshot.from_objects(shop())
    simulation = kschedx.simulate(snapshot, changes=[{"drain": "node-1"}, {"remove-node": "node-1"}], namespace="shop")
    assert simulation.after.cluster.names == ("node-2", "node-3", "node-4", "node-5")
    assert len(simulation.after.pods) == len(snapshot.pods)


def test_fields_without_a_value_in_the_manifest_are_kept() -> None:
    """A stored object has defaults that no manifest contains, and a claim keeps its volume."""
    live, *others = deployment("web", "1", ["node-1", "node-2"])
    template = at(live, "spec.template")
    manifest = {**live, "spec": {"template": template}}
    stored = {**live, "spec": {"replicas": 2, "template": {**template, "spec": {**template["spec"], "dnsPolicy": "x"}}}}
    bound = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"volumeName": "pv-1", "storageClassName": "fast"},
    }
    written = {**bound, "spec": {"storageClassName": "fast"}}
    snapshot = Snapshot.from_objects([*nodes(), stored, *others, bound])
    wanted = made({"apply": [written, manifest]})
    changed = change_cluster(snapshot, Setup.of_cluster(snapshot), wanted, SimulationOptions(), "shop")
    assert waiting(changed) == []
    assert changed.snapshot.storage.claims["shop/data"].spec.volume_name == "pv-1"


@pytest.mark.parametrize("order", [1, -1])
def test_settings_of_one_object_are_one_update(order: int) -> None:
    path = "deploy/web:spec.template.spec.containers[main].resources"
    settings: list[dict[str, object]] = [{"set": f"{path}.limits.cpu=500m"}, {"set": f"{path}.requests.cpu=500m"}]
    first, second = settings[::order]
    changed = after(first, {"set": "node/node-1:metadata.labels.rack=seven"}, second)
    written = msgspec.json.decode(changed.snapshot.workloads["Deployment", "shop", "web"])
    [container] = written["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "500m"}}
    assert len(changed.by_hand.effects) == 3


@pytest.mark.parametrize(
    ("kind", "name", "owners", "created"),
    [
        ("ReplicaSet", "orphan", [], 2),
        ("ReplicaSet", "orphan", [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": True}], 3),
        ("StatefulSet", "web-1", [], 2),
        ("StatefulSet", "orphan", [], 3),
    ],
    ids=["an orphan", "a pod of another controller", "a pod of the name", "a pod of another name"],
)
def test_a_new_workload_adopts_pods_without_a_controller(
    kind: str, name: str, owners: list[Manifest], created: int, tmp_path: Path
) -> None:
    labels, containers = {"app": "web"}, [{"name": "c", "image": "web:1"}]
    metadata = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": owners}
    running = pod(name, on="a", metadata=metadata, containers=containers, status={"phase": "Running"})
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template, "podManagementPolicy": "Parallel"}
    made = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    if kind == "ReplicaSet":
        del spec["podManagementPolicy"]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("a"), running]}))
    (tmp_path / "web.json").write_text(json.dumps(made))
    result = command("simulate", "--apply", "web.json", "-s", "cluster.json", "-o", "json", cwd=tmp_path)
    [workload] = [item for item in json.loads(result.out)["workloads"] if item["name"] == "web"]
    assert (workload["pods"], len(workload["placed"])) == (3, created)
    asked = command("why", "web.json", "-s", "cluster.json", "-o", "json", cwd=tmp_path)
    assert len(json.loads(asked.out)["replicas"]["placed"]) == created
