"""Why a node stays: each rule of cluster-autoscaler, and several together in its order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import kschedx
from kschedx.autoscaler.cluster import Autoscaler, AutoscalerOptions
from kschedx.autoscaler.sandbox import Evacuation, Sandbox
from kschedx.autoscaler.scale_down import Removal, RemovalBlocker, RemovalFate, ScaleDown, Unremovable
from kschedx.explain.setup import Setup
from kschedx.snapshot.columns import ClusterRow
from tests.builders import Manifest, node, pod
from tests.command import kschedx as command

STATUS = """
time: 2026-06-20 12:00:00 +0000 UTC
autoscalerStatus: Running
clusterWide: {health: {status: Healthy}, scaleUp: {status: NoActivity}}
nodeGroups:
- name: pool
  health: {status: Healthy, nodeCounts: {registered: {total: 2, ready: 2}}, cloudProviderTarget: TARGET, minSize: 1,
    maxSize: 5}
  scaleUp: {status: NoActivity}
"""
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
SMALL = {"cpu": "4", "memory": "8Gi", "pods": "20"}
REPLICA_SET = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}]
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
OLD = "2026-06-20T08:00:00Z"


def of_pool(name: str, *, annotations: Mapping[str, str] | None = None, **more: Any) -> Any:
    created: Any = node(name, labels={"group": "pool", "kubernetes.io/hostname": name}, allocatable=SMALL, **more)
    created["metadata"] = {**created["metadata"], "annotations": dict(annotations or {}), "creationTimestamp": OLD}
    created["status"] = {**created["status"], **READY}
    return created


def running(name: str, *, cpu: str = "1", on: str = "a", namespace: str = "shop", **more: Any) -> Manifest:
    metadata = {"ownerReferences": REPLICA_SET, "creationTimestamp": OLD} | dict(more.pop("metadata", {}) or {})
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return pod(name, namespace=namespace, on=on, metadata=metadata, containers=containers, **more)


def reported(target: int = 2) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": STATUS.replace("TARGET", str(target))},
    }


def cluster(*objects: Manifest, target: int = 2) -> kschedx.Snapshot:
    return kschedx.Snapshot.from_objects([reported(target), *objects])


def about(
    snapshot: kschedx.Snapshot, name: str = "a", flags: Mapping[str, Sequence[str]] | None = None, version: str = "1.36"
) -> Removal:
    options = AutoscalerOptions(group_label="group", flags=flags or {})
    setup = Setup.of_cluster(snapshot, kube_version=version)
    return ScaleDown.of(snapshot, options, setup.scheduler_on(snapshot)).evaluate(name)


def reasons(removal: Removal) -> list[str]:
    return [reason.value for reason in removal.reasons]


ROOMY = (of_pool("a"), of_pool("b"))


def test_a_node_whose_pods_find_another_goes() -> None:
    answer = about(cluster(*ROOMY, running("web")))
    assert answer.is_removable
    assert answer.places == {"shop/web": "b"}
    assert answer.utilization is not None
    assert (answer.utilization.resource, answer.utilization.share) == ("cpu", 0.25)


def test_pending_pods_that_fit_a_node_count_there() -> None:
    """The autoscaler places them before it looks for unneeded nodes."""
    needing = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    unschedulable = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    created = {"creationTimestamp": OLD}
    waiting = pod("waiting", namespace="shop", metadata=created, containers=[needing], status=unschedulable)
    full = running("full", cpu="2", on="b")
    answer = about(cluster(*ROOMY, full, waiting))
    assert answer.utilization is not None
    assert answer.utilization.share == 0.75
    assert reasons(answer) == ["NotUnderutilized", "BlockedByPod"]
    assert [fate.pod for fate in answer.of(RemovalFate.BLOCKS)] == ["shop/waiting"]
    assert answer.pending == ("shop/waiting",)


def test_default_spread_constraints_are_those_of_each_pods_owner() -> None:
    """Two pods differ in their owners alone: the ReplicaSet selects its pods, the Job does not exist."""
    constraint = {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultConstraints": [constraint], "defaultingType": "List"}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
    version = "kubescheduler.config.k8s.io/v1"
    config = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    labels = {"labels": {"app": "web"}}
    of_job = running("a-job", metadata={**labels, "ownerReferences": [{**REPLICA_SET[0], "kind": "Job"}]})
    set_spec = {"selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web", "namespace": "shop", "uid": "u"}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": set_spec}
    snapshot = cluster(*ROOMY, owner, of_job, running("web", metadata=labels))
    options = AutoscalerOptions(group_label="group", config=config)
    removal = ScaleDown.of(snapshot, options, Setup.of_cluster(snapshot).scheduler_on(snapshot)).evaluate("a")
    assert removal.places == {"shop/a-job": "b", "shop/web": "b"}


@pytest.mark.parametrize(
    ("more", "version", "expected"),
    [
        ({}, "1.36", []),
        ({"cpu": "3"}, "1.36", ["NotUnderutilized"]),
        ({"cpu": "2"}, "1.36", []),
        ({"cpu": "2"}, "1.34", ["NotUnderutilized"]),
    ],
    ids=["idle", "used", "just as much", "just as much before 1.35"],
)
def test_utilization(more: dict[str, Any], version: str, expected: list[str]) -> None:
    assert reasons(about(cluster(*ROOMY, running("web", **more)), version=version)) == expected


@pytest.mark.parametrize(
    ("flags", "share"),
    [({}, 0.75), ({"ignore-daemonsets-utilization": ["true"]}, 0.5)],
)
def test_pods_of_daemon_sets_count_unless_they_are_ignored(flags: Mapping[str, list[str]], share: float) -> None:
    owner = [{**REPLICA_SET[0], "kind": "DaemonSet", "name": "agent"}]
    agent = running("agent", cpu="2", metadata={"ownerReferences": owner})
    answer = about(cluster(*ROOMY, agent, running("web")), flags=flags)
    assert answer.utilization is not None
    assert answer.utilization.share == share
    assert [item.fate for item in answer.pods] == [RemovalFate.DAEMON_SET, RemovalFate.MOVES]


BUDGET: Manifest = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0},
}
LOCAL: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}]}


@pytest.mark.parametrize(
    ("manifest", "flags", "blocker"),
    [
        (running("web", metadata={"ownerReferences": []}), {}, RemovalBlocker.NOT_REPLICATED),
        (running("web", metadata={"ownerReferences": [], "annotations": {SAFE: "true"}}), {}, None),
        (
            running("web", metadata={"ownerReferences": [{**REPLICA_SET[0], "kind": "Foo"}]}),
            {},
            RemovalBlocker.NOT_REPLICATED,
        ),
        (
            running("web", metadata={"ownerReferences": [{**REPLICA_SET[0], "kind": "Foo"}]}),
            {"skip-nodes-with-custom-controller-pods": ["false"]},
            None,
        ),
        (running("web", metadata={"annotations": {SAFE: "false"}}), {}, RemovalBlocker.NOT_SAFE_TO_EVICT_ANNOTATION),
        (running("web", **LOCAL), {}, RemovalBlocker.LOCAL_STORAGE_REQUESTED),
        (
            running("web", volumes=[{"name": "cache", "hostPath": {"path": "/"}}]),
            {},
            RemovalBlocker.LOCAL_STORAGE_REQUESTED,
        ),
        (running("web", volumes=[{"name": "cache", "emptyDir": {"medium": "Memory"}}]), {}, None),
        (running("web", metadata={"annotations": {f"{SAFE}-local-volumes": "x,cache"}}, **LOCAL), {}, None),
        (running("web", **LOCAL), {"skip-nodes-with-local-storage": ["false"]}, None),
        (running("web", labels={"app": "web"}), {}, RemovalBlocker.NOT_ENOUGH_PDB),
        (running("web", namespace="kube-system"), {}, None),
        (
            running("web", namespace="kube-system", metadata={"creationTimestamp": "2999-01-01T00:00:00Z"}),
            {},
            RemovalBlocker.UNMOVABLE_KUBE_SYSTEM_POD,
        ),
        (running("web", status={"phase": "Running"}, metadata={"deletionTimestamp": OLD}, **LOCAL), {}, None),
    ],
    ids=[
        "nobody makes it anew", "nobody, but safe", "a custom controller", "a custom controller, allowed",
        "not safe", "emptyDir", "hostPath", "in memory", "volume given up", "local storage allowed", "budget",
        "system pod, old", "system pod, new", "should have ended",
    ],
)  # fmt: skip
def test_what_a_pod_means(manifest: Manifest, flags: Mapping[str, list[str]], blocker: RemovalBlocker | None) -> None:
    answer = about(cluster(*ROOMY, manifest, BUDGET), flags=flags)
    (fate,) = answer.pods
    assert fate.blocker is blocker
    assert (Unremovable.BLOCKED_BY_POD in answer.reasons) is (blocker is not None)


def test_a_drain_shows_how_a_budget_lets_the_node_go(tmp_path: Path) -> None:
    objects = [reported(), *ROOMY, running("web", labels={"app": "web"}), BUDGET]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    ran = command("scale-down", "a", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert "fix       let PDB shop/web allow a disruption: a drain shows how" in ran.out
    assert "$ kschedx drain a -s cluster.json" in ran.out


def test_a_controller_that_is_gone_is_told_where_its_kind_is_known() -> None:
    other: Manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "api", "namespace": "shop"}}
    web = {**other, "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 1}}
    assert about(cluster(*ROOMY, running("web"))).pods[0].blocker is None
    assert about(cluster(*ROOMY, running("web"), other)).pods[0].blocker is RemovalBlocker.CONTROLLER_NOT_FOUND
    assert about(cluster(*ROOMY, running("web"), web)).pods[0].blocker is None
    few = about(cluster(*ROOMY, running("web"), web), flags={"min-replica-count": ["2"]}).pods[0]
    assert (few.blocker, few.replicas) == (RemovalBlocker.MIN_REPLICAS_REACHED, 1)


@pytest.mark.parametrize(("kind", "is_looked_up"), [("ReplicationController", True), ("ReplicaSet", False)])
def test_a_controller_is_looked_up_although_its_pods_count_as_a_daemon_sets(kind: str, is_looked_up: bool) -> None:
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    other: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other", "namespace": "shop"}}
    owner = {**REPLICA_SET[0], "apiVersion": api_version, "kind": kind}
    annotations = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
    web = running("web", metadata={"ownerReferences": [owner], "annotations": annotations})
    (fate,) = about(cluster(*ROOMY, web, other)).pods
    assert (fate.blocker is RemovalBlocker.CONTROLLER_NOT_FOUND) == is_looked_up


def test_every_reason_is_told_in_the_autoscalers_order() -> None:
    marked = of_pool("a", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    full = running("other", on="b", cpu="3")
    answer = about(cluster(marked, of_pool("b"), running("web", cpu="3"), full, target=1))
    assert reasons(answer) == [
        "NodeGroupMinSizeReached",
        "ScaleDownDisabledAnnotation",
        "NotUnderutilized",
        "NoPlaceToMovePods",
    ]
    assert answer.stranded is not None
    assert dict(answer.stranded.refusals) == {"Insufficient cpu": 1}


def test_the_autoscalers_marks() -> None:
    since = "9999999999"
    going = of_pool("a", taints=[f"ToBeDeletedByClusterAutoscaler={since}:NoSchedule"])
    assert reasons(about(cluster(going, of_pool("b")))) == ["CurrentlyBeingDeleted"]
    candidate = of_pool("a", taints=[f"DeletionCandidateOfClusterAutoscaler={since}:PreferNoSchedule"])
    assert reasons(about(cluster(candidate, of_pool("b")))) == ["NotUnneededLongEnough"]
    flags = {"scale-down-unneeded-time": ["0s"]}
    assert about(cluster(candidate, of_pool("b")), flags=flags).is_removable


def test_nodes_of_nobody_and_flags_for_all() -> None:
    other = node("other", allocatable=SMALL)
    assert reasons(about(cluster(*ROOMY, other), "other"))[0] == "NotAutoscaled"
    assert reasons(about(cluster(*ROOMY), flags={"scale-down-enabled": ["false"]})) == ["ScaleDownDisabled"]
    assert reasons(about(cluster(*ROOMY), flags={"cores-total": ["8:100"]})) == ["MinimalResourceLimitExceeded"]


def test_the_node_stays_a_domain_while_places_are_looked_for() -> None:
    spread: dict[str, Any] = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
    pods = [running(f"web-{on}", on=on, labels={"app": "web"}, **spread) for on in ("a", "b")]
    assert reasons(about(cluster(*ROOMY, *pods))) == ["NoPlaceToMovePods"]
    assert about(cluster(*ROOMY, *pods), version="1.35").is_removable


@pytest.mark.parametrize(
    ("grace", "deleted", "fate"),
    [
        (None, "2026-06-20T11:58:30Z", RemovalFate.SKIPPED),
        (None, "2026-06-20T11:59:30Z", RemovalFate.MOVES),
        (600, "2026-06-20T11:58:30Z", RemovalFate.MOVES),
        (0, "2026-06-20T11:59:20Z", RemovalFate.SKIPPED),
    ],
)
def test_a_pod_that_goes_counts_until_its_grace_period_is_over_twice(
    grace: int | None, deleted: str, fate: RemovalFate
) -> None:
    more: dict[str, Any] = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    going = running("web", metadata={"deletionTimestamp": deleted}, **more)
    answer = about(replace_time(cluster(*ROOMY, going)))
    assert [item.fate for item in answer.pods] == [fate]
    assert answer.utilization is not None
    assert (answer.utilization.requested > 0) == (fate is RemovalFate.MOVES)


def test_a_node_that_counts_as_upcoming_is_not_asked_about() -> None:
    starting = of_pool("c")
    starting["metadata"]["creationTimestamp"] = "2026-06-20T11:58:00Z"
    starting["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    status = STATUS.replace("TARGET", "3").replace("scaleUp: {status: NoActivity}\n", "scaleUp: {status: InProgress}\n")
    config_map: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": status},
    }
    snapshot = kschedx.Snapshot.from_objects([config_map, *ROOMY, starting])
    assert reasons(about(replace_time(snapshot), "c"))[0] == "Starting"
    assert reasons(about(replace_time(cluster(*ROOMY, starting)), "c")) == []


def replace_time(snapshot: kschedx.Snapshot) -> kschedx.Snapshot:
    """Taken at noon."""
    return replace(snapshot, source=replace(snapshot.source, taken="2026-06-20T12:00:00Z"))


def slices(*devices: Manifest, count: int = 1, **spec: Any) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": count},
            "devices": list(devices),
            **spec,
        },
    }


def claim(*devices: str, user: str = "web") -> Manifest:
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "a", "device": name} for name in devices]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "shop", "name": "gpus"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": "u"}],
        },
    }


def part(name: str, machine: str, cores: int) -> Manifest:
    return {"name": name, "consumesCounters": [{"counterSet": machine, "counters": {"cores": {"value": str(cores)}}}]}


MACHINES = [{"name": name, "counters": {"cores": {"value": "8"}}} for name in ("m1", "m2")]


@pytest.mark.parametrize(
    ("published", "taken", "version", "share"),
    [
        (slices({"name": "g0"}, {"name": "g1"}, {"name": "g2"}, {"name": "g3"}), ("g0", "g1", "g2"), "1.36", 0.75),
        (slices({"name": "g0"}, {"name": "g1"}, {"name": "g2"}, {"name": "g3"}), (), "1.36", 0.0),
        (slices({"name": "g0"}, {"name": "g1"}), ("g0",), "1.34", 0.25),
        (slices({"name": "g0"}, count=2), ("g0",), "1.36", None),
        (slices(part("p", "m1", 6), part("q", "m2", 2), sharedCounters=MACHINES), ("p",), "1.36", 0.375),
    ],
    ids=["three of four", "none", "before 1.35", "half a pool", "parts of machines"],
)
def test_devices_of_its_own_say_how_much_a_node_is_used(
    published: Manifest, taken: tuple[str, ...], version: str, share: float | None
) -> None:
    answer = about(cluster(*ROOMY, running("web"), published, claim(*taken)), version=version)
    assert (answer.utilization and answer.utilization.share) == share
    assert ("UnexpectedError" in reasons(answer)) == (share is None)
    assert ("NotUnderutilized" in reasons(answer)) == (share == 0.75)


def test_a_cluster_of_which_half_is_not_ready_keeps_all_nodes() -> None:
    unready = [of_pool(f"u{number}") for number in range(4)]
    for item in unready:
        item["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    answer = about(replace_time(cluster(*ROOMY, *unready)))
    assert reasons(answer) == ["ClusterUnhealthy"]


KINDS: tuple[Manifest, ...] = (
    {},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "KEY"}]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "KEY"}]}}},
    {"topologySpreadConstraints": [{"topologyKey": "KEY", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
    {"nodeSelector": {"zone": "a"}},
    {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
)
"""What pods ask for of other nodes, and of their own."""


def some_cluster(chosen: Random) -> kschedx.Snapshot:
    names = [f"node-{number}" for number in range(chosen.randint(3, 6))]
    nodes = [of_pool(name, unschedulable=chosen.random() < 0.1) for name in names]
    for item in nodes:
        if chosen.random() < 0.7:
            item["metadata"]["labels"]["zone"] = chosen.choice("ab")
    pods = []
    for number in range(chosen.randint(4, 18)):
        kind = chosen.randrange(2 * len(KINDS))
        selector = json.dumps({"matchLabels": {"app": f"app-{chosen.randrange(6)}"}})
        written = json.dumps(KINDS[kind % len(KINDS)]).replace(
            '"topologyKey": "KEY"',
            f'"topologyKey": "{("zone", "kubernetes.io/hostname")[kind % 2]}", "labelSelector": {selector}',
        )
        spec, cpu = json.loads(written), ("500m", "1", "2")[kind % 3]
        pods.append(
            running(f"p{number}", cpu=cpu, on=chosen.choice(names), labels={"app": f"app-{kind % 6}"}, spec=spec)
        )
    return cluster(*nodes, *pods)


@pytest.mark.parametrize("seed", range(40))
def test_pods_go_where_every_node_is_searched_for_each_of_them(seed: int) -> None:
    """Most are put on nodes that were found for pods like them, without a search among pods that have moved."""
    snapshot = some_cluster(Random(seed))
    scheduler = Setup.of_cluster(snapshot, kube_version="1.36").scheduler_on(snapshot)
    autoscaler = Autoscaler.of(snapshot, AutoscalerOptions(group_label="group"), scheduler)
    assert autoscaler is not None
    world, rows = autoscaler.loop().place_on_free_nodes()

    def empty(world: Sandbox, here: ClusterRow) -> None:
        world.leave(world.snapshot.pods.on_node(here))
        world.replace_node(here, replace(world.node(here), metadata=replace(world.node(here).metadata, labels={})))

    evacuation = Evacuation(world, [*rows.values()], empty)
    for here in rows.values():
        pods = snapshot.pods.on_node(here).tolist()
        names, refusals = list[str](), None
        with world.fork():
            world.last = ClusterRow(0)
            empty(world, here)
            others = np.arange(len(rows)) != here
            for row in pods:
                place = world.find(row, others)
                if place is None:
                    refusals = world.refusals(row, others)
                    break
                world.place(row, place)
                names.append(world.node(place).name)
        assert evacuation.places(pods, here) == (names, refusals)


def test_an_anti_affinity_term_that_counts_nowhere_yet_counts_once_its_pod_has_moved() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [of_pool(name) for name in "abcd"]
    for item, zone in zip(nodes[1:], "xxy", strict=True):
        item["metadata"]["labels"]["zone"] = zone
    answer = about(cluster(*nodes, running("alone", affinity=rule), running("web", labels={"app": "web"}), target=4))
    assert dict(answer.places) == {"shop/alone": "b", "shop/web": "d"}
