"""Why cluster-autoscaler keeps a node: each rule, and the order of several reasons."""

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
from kschedx.autoscaler.sandbox import Evacuation, MovingSandbox
from kschedx.autoscaler.scale_down import Removal, RemovalBlocker, RemovalFate, ScaleDown, Unremovable
from kschedx.explain.setup import Setup
from kschedx.snapshot.columns import ClusterRow
from tests.builders import Manifest, node, pod
from tests.command import kschedx as command
from tests.device_builders import allocated, device, device_class, resource_slice

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
NOW = 1_781_956_800  # 2026-06-20T12:00:00Z


def pool_node(name: str, *, annotations: Mapping[str, str] | None = None, **fields: Any) -> Any:
    created: Any = node(name, labels={"group": "pool", "kubernetes.io/hostname": name}, allocatable=SMALL, **fields)
    created["metadata"] = {**created["metadata"], "annotations": dict(annotations or {}), "creationTimestamp": OLD}
    created["status"] = {**created["status"], **READY}
    return created


def running_pod(name: str, *, cpu: str = "1", on: str = "a", namespace: str = "shop", **fields: Any) -> Manifest:
    metadata = {"ownerReferences": REPLICA_SET, "creationTimestamp": OLD} | dict(fields.pop("metadata", {}) or {})
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return pod(name, namespace=namespace, on=on, metadata=metadata, containers=containers, **fields)


def status_config_map(target: int = 2) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": STATUS.replace("TARGET", str(target))},
    }


def cluster(*objects: Manifest, target: int = 2) -> kschedx.Snapshot:
    return kschedx.Snapshot.from_objects([status_config_map(target), *objects])


def removal_of(
    snapshot: kschedx.Snapshot, name: str = "a", flags: Mapping[str, Sequence[str]] | None = None, version: str = "1.36"
) -> Removal:
    options = AutoscalerOptions(group_label="group", flags=flags or {})
    setup = Setup.of_cluster(snapshot, kube_version=version)
    return ScaleDown.of(snapshot, options, setup.scheduler_on(snapshot)).evaluate(name)


def reasons(removal: Removal) -> list[str]:
    return [reason.value for reason in removal.reasons]


TWO_NODES = (pool_node("a"), pool_node("b"))


def test_a_node_is_removed_if_its_pods_fit_elsewhere() -> None:
    answer = removal_of(cluster(*TWO_NODES, running_pod("web")))
    assert answer.is_removable
    assert answer.places == {"shop/web": "b"}
    assert answer.utilization is not None
    assert (answer.utilization.resource, answer.utilization.share) == ("cpu", 0.25)


def test_pending_pods_count_on_the_node_that_they_fit() -> None:
    """The autoscaler places them before it searches for unneeded nodes."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    unschedulable = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    created = {"creationTimestamp": OLD}
    pending = pod("waiting", namespace="shop", metadata=created, containers=[container], status=unschedulable)
    full = running_pod("full", cpu="2", on="b")
    answer = removal_of(cluster(*TWO_NODES, full, pending))
    assert answer.utilization is not None
    assert answer.utilization.share == 0.75
    assert reasons(answer) == ["NotUnderutilized", "BlockedByPod"]
    assert [fate.pod for fate in answer.of(RemovalFate.BLOCKS)] == ["shop/waiting"]
    assert answer.pending == ("shop/waiting",)


def test_default_spread_constraints_select_by_the_owner_of_each_pod() -> None:
    """Two pods differ only in their owners: the ReplicaSet selects its pods, the Job does not exist."""
    constraint = {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultConstraints": [constraint], "defaultingType": "List"}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
    version = "kubescheduler.config.k8s.io/v1"
    config = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    labels = {"labels": {"app": "web"}}
    job_pod = running_pod("a-job", metadata={**labels, "ownerReferences": [{**REPLICA_SET[0], "kind": "Job"}]})
    set_spec = {"selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web", "namespace": "shop", "uid": "u"}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": set_spec}
    snapshot = cluster(*TWO_NODES, owner, job_pod, running_pod("web", metadata=labels))
    options = AutoscalerOptions(group_label="group", config=config)
    removal = ScaleDown.of(snapshot, options, Setup.of_cluster(snapshot).scheduler_on(snapshot)).evaluate("a")
    assert removal.places == {"shop/a-job": "b", "shop/web": "b"}


@pytest.mark.parametrize(
    ("options", "version", "expected"),
    [
        ({}, "1.36", []),
        ({"cpu": "3"}, "1.36", ["NotUnderutilized"]),
        ({"cpu": "2"}, "1.36", []),
        ({"cpu": "2"}, "1.34", ["NotUnderutilized"]),
    ],
    ids=["idle", "used", "at the threshold", "at the threshold before 1.35"],
)
def test_utilization(options: dict[str, Any], version: str, expected: list[str]) -> None:
    assert reasons(removal_of(cluster(*TWO_NODES, running_pod("web", **options)), version=version)) == expected


@pytest.mark.parametrize(
    ("flags", "share"),
    [({}, 0.75), ({"ignore-daemonsets-utilization": ["true"]}, 0.5)],
)
def test_daemon_set_pods_count_unless_they_are_ignored(flags: Mapping[str, list[str]], share: float) -> None:
    owner = [{**REPLICA_SET[0], "kind": "DaemonSet", "name": "agent"}]
    agent = running_pod("agent", cpu="2", metadata={"ownerReferences": owner})
    answer = removal_of(cluster(*TWO_NODES, agent, running_pod("web")), flags=flags)
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
        (running_pod("web", metadata={"ownerReferences": []}), {}, RemovalBlocker.NOT_REPLICATED),
        (running_pod("web", metadata={"ownerReferences": [], "annotations": {SAFE: "true"}}), {}, None),
        (
            running_pod("web", metadata={"ownerReferences": [{**REPLICA_SET[0], "kind": "Foo"}]}),
            {},
            RemovalBlocker.NOT_REPLICATED,
        ),
        (
            running_pod("web", metadata={"ownerReferences": [{**REPLICA_SET[0], "kind": "Foo"}]}),
            {"skip-nodes-with-custom-controller-pods": ["false"]},
            None,
        ),
        (
            running_pod("web", metadata={"annotations": {SAFE: "false"}}),
            {},
            RemovalBlocker.NOT_SAFE_TO_EVICT_ANNOTATION,
        ),
        (running_pod("web", **LOCAL), {}, RemovalBlocker.LOCAL_STORAGE_REQUESTED),
        (
            running_pod("web", volumes=[{"name": "cache", "hostPath": {"path": "/"}}]),
            {},
            RemovalBlocker.LOCAL_STORAGE_REQUESTED,
        ),
        (running_pod("web", volumes=[{"name": "cache", "emptyDir": {"medium": "Memory"}}]), {}, None),
        (running_pod("web", metadata={"annotations": {f"{SAFE}-local-volumes": "x,cache"}}, **LOCAL), {}, None),
        (running_pod("web", **LOCAL), {"skip-nodes-with-local-storage": ["false"]}, None),
        (running_pod("web", labels={"app": "web"}), {}, RemovalBlocker.NOT_ENOUGH_PDB),
        (running_pod("web", namespace="kube-system"), {}, None),
        (
            running_pod("web", namespace="kube-system", metadata={"creationTimestamp": "2999-01-01T00:00:00Z"}),
            {},
            RemovalBlocker.UNMOVABLE_KUBE_SYSTEM_POD,
        ),
        (running_pod("web", status={"phase": "Running"}, metadata={"deletionTimestamp": OLD}, **LOCAL), {}, None),
    ],
    ids=[
        "not replicated", "not replicated, but safe", "custom controller", "custom controller, allowed",
        "not safe", "emptyDir", "hostPath", "in memory", "volume safe to evict", "local storage allowed", "budget",
        "system pod, old", "system pod, new", "deletion overdue",
    ],
)  # fmt: skip
def test_a_pod_that_blocks_removal(
    manifest: Manifest, flags: Mapping[str, list[str]], blocker: RemovalBlocker | None
) -> None:
    answer = removal_of(cluster(*TWO_NODES, manifest, BUDGET), flags=flags)
    (fate,) = answer.pods
    assert fate.blocker is blocker
    assert (Unremovable.BLOCKED_BY_POD in answer.reasons) is (blocker is not None)


def test_a_fix_for_a_budget_points_to_drain(tmp_path: Path) -> None:
    objects = [status_config_map(), *TWO_NODES, running_pod("web", labels={"app": "web"}), BUDGET]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    answer = command("scale-down", "a", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert "fix       let PDB shop/web allow a disruption: a drain shows how" in answer.out
    assert "$ kschedx drain a -s cluster.json" in answer.out


@pytest.mark.parametrize(
    ("manifest", "fixes"),
    [
        (
            running_pod("web", cpu="2500m"),
            ["fix       raise --scale-down-utilization-threshold from 0.5 to 0.63 · nothing else keeps the node"],
        ),
        (running_pod("web", cpu="2500m", labels={"app": "web"}), ["fix       let PDB shop/web allow a disruption"]),
        (
            running_pod("dns", namespace="kube-system", metadata={"creationTimestamp": "2999-01-01T00:00:00Z"}),
            [
                "fix 1     create a PodDisruptionBudget that allows a disruption for kube-system/dns",
                "2     annotate kube-system/dns with",
            ],
        ),
    ],
    ids=["utilization", "utilization and a budget", "system pod"],
)
def test_fixes_for_a_node_that_stays(manifest: Manifest, fixes: list[str], tmp_path: Path) -> None:
    objects = [status_config_map(), *TWO_NODES, manifest, BUDGET]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    answer = command("scale-down", "a", "-s", "cluster.json", "--node-group-label", "group", cwd=tmp_path, columns=200)
    lines = [line for line in answer.out.splitlines() if line.startswith(("  fix", "      2 "))]
    assert len(lines) == len(fixes)
    assert all(line.strip().startswith(fix.strip()) for line, fix in zip(lines, fixes, strict=True))


def test_a_flag_that_keeps_all_nodes_is_a_fix(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [status_config_map(), *TWO_NODES]}))
    options = ["--node-group-label", "group", "--autoscaler-flag", "scale-down-enabled=false"]
    answer = command("scale-down", "a", "-s", "cluster.json", *options, cwd=tmp_path, columns=200)
    assert "fix       set --scale-down-enabled=true of cluster-autoscaler · nothing else keeps the node" in answer.out


def test_a_missing_controller_blocks_where_its_kind_is_recorded() -> None:
    controller: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "api", "namespace": "shop"},
    }
    web = {**controller, "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 1}}
    assert removal_of(cluster(*TWO_NODES, running_pod("web"))).pods[0].blocker is None
    assert (
        removal_of(cluster(*TWO_NODES, running_pod("web"), controller)).pods[0].blocker
        is RemovalBlocker.CONTROLLER_NOT_FOUND
    )
    assert removal_of(cluster(*TWO_NODES, running_pod("web"), web)).pods[0].blocker is None
    fate = removal_of(cluster(*TWO_NODES, running_pod("web"), web), flags={"min-replica-count": ["2"]}).pods[0]
    assert (fate.blocker, fate.replicas) == (RemovalBlocker.MIN_REPLICAS_REACHED, 1)


@pytest.mark.parametrize(("kind", "is_checked"), [("ReplicationController", True), ("ReplicaSet", False)])
def test_only_a_replication_controller_is_checked_for_annotated_daemon_set_pods(kind: str, is_checked: bool) -> None:
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    other: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other", "namespace": "shop"}}
    owner = {**REPLICA_SET[0], "apiVersion": api_version, "kind": kind}
    annotations = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
    web = running_pod("web", metadata={"ownerReferences": [owner], "annotations": annotations})
    (fate,) = removal_of(cluster(*TWO_NODES, web, other)).pods
    assert (fate.blocker is RemovalBlocker.CONTROLLER_NOT_FOUND) == is_checked


def test_reasons_have_the_order_of_the_autoscaler() -> None:
    disabled_node = pool_node("a", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    full = running_pod("other", on="b", cpu="3")
    answer = removal_of(cluster(disabled_node, pool_node("b"), running_pod("web", cpu="3"), full, target=1))
    assert reasons(answer) == [
        "NodeGroupMinSizeReached",
        "ScaleDownDisabledAnnotation",
        "NotUnderutilized",
        "NoPlaceToMovePods",
    ]
    assert answer.stranded is not None
    assert dict(answer.stranded.refusals) == {"Insufficient cpu": 1}


def test_uncountable_utilization_precedes_unreadiness() -> None:
    broken = pool_node("a")
    broken["status"] = {"allocatable": {"pods": "20"}, "conditions": [{"type": "Ready", "status": "False"}]}
    answer = removal_of(cluster(broken, pool_node("b")), flags={"scale-down-unready-enabled": ["false"]})
    assert reasons(answer) == ["UnexpectedError", "ScaleDownUnreadyDisabled"]


def test_taints_of_the_autoscaler() -> None:
    since = "9999999999"
    deleted_node = pool_node("a", taints=[f"ToBeDeletedByClusterAutoscaler={since}:NoSchedule"])
    assert reasons(removal_of(cluster(deleted_node, pool_node("b")))) == ["CurrentlyBeingDeleted"]
    candidate = pool_node("a", taints=[f"DeletionCandidateOfClusterAutoscaler={since}:PreferNoSchedule"])
    assert reasons(removal_of(cluster(candidate, pool_node("b")))) == ["NotUnneededLongEnough"]
    flags = {"scale-down-unneeded-time": ["0s"]}
    assert removal_of(cluster(candidate, pool_node("b")), flags=flags).is_removable


@pytest.mark.parametrize(
    ("target", "minutes", "expected"),
    [
        (2, 1, (1, ["NodeGroupMinSizeReached"])),
        (3, 1, (1, [])),
        (1, 1, (0, ["NodeGroupMinSizeReached"])),
        (2, 5, (0, [])),
    ],
    ids=["no node is left to remove", "one is left", "the target does not count it", "its deletion has failed"],
)
def test_nodes_in_deletion_count_for_the_minimum(target: int, minutes: int, expected: tuple[int, list[str]]) -> None:
    taint = f"ToBeDeletedByClusterAutoscaler={NOW - 60 * minutes}:NoSchedule"
    snapshot = cluster(pool_node("a"), pool_node("b", taints=[taint]), target=target)
    snapshot = replace(snapshot, source=replace(snapshot.source, taken="2026-06-20T12:00:00Z"))
    answer = removal_of(snapshot)
    assert (answer.leaving, reasons(answer)) == expected


def test_a_node_without_a_group_and_flags_for_all_nodes() -> None:
    other = node("other", allocatable=SMALL)
    assert reasons(removal_of(cluster(*TWO_NODES, other), "other"))[0] == "NotAutoscaled"
    assert reasons(removal_of(cluster(*TWO_NODES), flags={"scale-down-enabled": ["false"]})) == ["ScaleDownDisabled"]
    assert reasons(removal_of(cluster(*TWO_NODES), flags={"cores-total": ["8:100"]})) == [
        "MinimalResourceLimitExceeded"
    ]


def test_the_node_remains_a_topology_domain_since_1_36() -> None:
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
    pods = [running_pod(f"web-{on}", on=on, labels={"app": "web"}, **spread) for on in ("a", "b")]
    assert reasons(removal_of(cluster(*TWO_NODES, *pods))) == ["NoPlaceToMovePods"]
    assert removal_of(cluster(*TWO_NODES, *pods), version="1.35").is_removable


@pytest.mark.parametrize(
    ("grace", "deleted", "fate"),
    [
        (None, "2026-06-20T11:58:30Z", RemovalFate.SKIPPED),
        (None, "2026-06-20T11:59:30Z", RemovalFate.MOVES),
        (600, "2026-06-20T11:58:30Z", RemovalFate.MOVES),
        (0, "2026-06-20T11:59:20Z", RemovalFate.SKIPPED),
    ],
)
def test_a_terminating_pod_counts_for_twice_its_grace_period(
    grace: int | None, deleted: str, fate: RemovalFate
) -> None:
    spec: dict[str, Any] = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    terminating = running_pod("web", metadata={"deletionTimestamp": deleted}, **spec)
    answer = removal_of(replace_time(cluster(*TWO_NODES, terminating)))
    assert [item.fate for item in answer.pods] == [fate]
    assert answer.utilization is not None
    assert (answer.utilization.requested > 0) == (fate is RemovalFate.MOVES)


def test_a_node_that_counts_as_upcoming_is_not_evaluated() -> None:
    starting = pool_node("c")
    starting["metadata"]["creationTimestamp"] = "2026-06-20T11:58:00Z"
    starting["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    status = STATUS.replace("TARGET", "3").replace("scaleUp: {status: NoActivity}\n", "scaleUp: {status: InProgress}\n")
    config_map: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": status},
    }
    snapshot = kschedx.Snapshot.from_objects([config_map, *TWO_NODES, starting])
    assert reasons(removal_of(replace_time(snapshot), "c"))[0] == "Starting"
    assert reasons(removal_of(replace_time(cluster(*TWO_NODES, starting)), "c")) == []


def replace_time(snapshot: kschedx.Snapshot) -> kschedx.Snapshot:
    """Return the snapshot as taken at noon."""
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


def partition(name: str, machine: str, cores: int) -> Manifest:
    return {"name": name, "consumesCounters": [{"counterSet": machine, "counters": {"cores": {"value": str(cores)}}}]}


MACHINES = [{"name": name, "counters": {"cores": {"value": "8"}}} for name in ("m1", "m2")]


@pytest.mark.parametrize(
    ("resource_slice", "allocated", "version", "share"),
    [
        (slices({"name": "g0"}, {"name": "g1"}, {"name": "g2"}, {"name": "g3"}), ("g0", "g1", "g2"), "1.36", 0.75),
        (slices({"name": "g0"}, {"name": "g1"}, {"name": "g2"}, {"name": "g3"}), (), "1.36", 0.0),
        (slices({"name": "g0"}, {"name": "g1"}), ("g0",), "1.34", 0.25),
        (slices({"name": "g0"}, count=2), ("g0",), "1.36", None),
        (slices(partition("p", "m1", 6), partition("q", "m2", 2), sharedCounters=MACHINES), ("p",), "1.36", 0.375),
    ],
    ids=["three of four", "none", "before 1.35", "half a pool", "partitions of machines"],
)
def test_allocated_devices_are_the_utilization_of_a_node(
    resource_slice: Manifest, allocated: tuple[str, ...], version: str, share: float | None
) -> None:
    answer = removal_of(cluster(*TWO_NODES, running_pod("web"), resource_slice, claim(*allocated)), version=version)
    assert (answer.utilization and answer.utilization.share) == share
    assert ("UnexpectedError" in reasons(answer)) == (share is None)
    assert ("NotUnderutilized" in reasons(answer)) == (share == 0.75)


@pytest.mark.parametrize(("version", "places"), [("1.36", {"default/web": "b"}), ("1.34", {})])
def test_a_pod_that_moves_gets_devices_of_its_new_node(version: str, places: Mapping[str, str]) -> None:
    web = running_pod("web", namespace="default", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    devices = (device_class(), resource_slice("a", device("g0")), resource_slice("b", device("g0")))
    used = allocated("gpu", "a", "g0", reserved_for=["web"])
    assert removal_of(cluster(*TWO_NODES, web, *devices, used), version=version).places == places


def test_an_unhealthy_cluster_keeps_all_nodes() -> None:
    not_ready = [pool_node(f"u{number}") for number in range(4)]
    for item in not_ready:
        item["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    answer = removal_of(replace_time(cluster(*TWO_NODES, *not_ready)))
    assert reasons(answer) == ["ClusterUnhealthy"]


SPECS: tuple[Manifest, ...] = (
    {},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "KEY"}]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "KEY"}]}}},
    {"topologySpreadConstraints": [{"topologyKey": "KEY", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
    {"nodeSelector": {"zone": "a"}},
    {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
)
"""Specs with constraints on the own node or on other nodes."""


def random_cluster(chance: Random) -> kschedx.Snapshot:
    names = [f"node-{number}" for number in range(chance.randint(3, 6))]
    nodes = [pool_node(name, unschedulable=chance.random() < 0.1) for name in names]
    for item in nodes:
        if chance.random() < 0.7:
            item["metadata"]["labels"]["zone"] = chance.choice("ab")
    pods = []
    for number in range(chance.randint(4, 18)):
        spec_index = chance.randrange(2 * len(SPECS))
        selector = json.dumps({"matchLabels": {"app": f"app-{chance.randrange(6)}"}})
        spec_text = json.dumps(SPECS[spec_index % len(SPECS)]).replace(
            '"topologyKey": "KEY"',
            f'"topologyKey": "{("zone", "kubernetes.io/hostname")[spec_index % 2]}", "labelSelector": {selector}',
        )
        spec, cpu = json.loads(spec_text), ("500m", "1", "2")[spec_index % 3]
        pods.append(
            running_pod(
                f"p{number}", cpu=cpu, on=chance.choice(names), labels={"app": f"app-{spec_index % 6}"}, spec=spec
            )
        )
    return cluster(*nodes, *pods)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_the_fast_search_finds_the_nodes_of_a_full_search(seed: int) -> None:
    """Most pods move to nodes of identical pods, without a search among the moved pods."""
    snapshot = random_cluster(Random(seed))
    scheduler = Setup.of_cluster(snapshot, kube_version="1.36").scheduler_on(snapshot)
    autoscaler = Autoscaler.of(snapshot, AutoscalerOptions(group_label="group"), scheduler)
    assert autoscaler is not None
    sandbox, rows = autoscaler.loop().place_on_free_nodes()

    def empty(sandbox: MovingSandbox, node_row: ClusterRow) -> None:
        sandbox.leave(sandbox.snapshot.pods.on_node(node_row))
        sandbox.replace_node(
            node_row, replace(sandbox.node(node_row), metadata=replace(sandbox.node(node_row).metadata, labels={}))
        )

    evacuation = Evacuation(sandbox, [*rows.values()], empty)
    searched = MovingSandbox(sandbox)
    for node_row in rows.values():
        pods = snapshot.pods.on_node(node_row).tolist()
        names, refusals = list[str](), None
        with searched.fork():
            searched.last = ClusterRow(0)
            empty(searched, node_row)
            others = np.arange(len(rows)) != node_row
            for row in pods:
                target = searched.find(row, others)
                if target is None:
                    refusals = searched.refusals(row, others)
                    break
                searched.place(row, target)
                names.append(searched.node(target).name)
        assert evacuation.places(pods, node_row) == (names, refusals)


def test_an_anti_affinity_term_counts_where_its_pod_moved() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [pool_node(name) for name in "abcd"]
    for item, zone in zip(nodes[1:], "xxy", strict=True):
        item["metadata"]["labels"]["zone"] = zone
    answer = removal_of(
        cluster(*nodes, running_pod("alone", affinity=rule), running_pod("web", labels={"app": "web"}), target=4)
    )
    assert dict(answer.places) == {"shop/alone": "b", "shop/web": "d"}
