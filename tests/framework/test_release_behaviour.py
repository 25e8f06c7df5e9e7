"""Differences between Kubernetes versions, each on the smallest cluster that distinguishes two versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import kschedx
from kschedx.inquiry.explanation import Explanation
from tests.builders import Manifest, node, pod
from tests.cli.manifests import changed
from tests.device_builders import claim, claiming, device, device_class, request, resource_slice

SMALL = {"cpu": "2", "memory": "4Gi", "pods": "10"}


def explain(version: str, objects: Iterable[Manifest]) -> Explanation:
    """Explain the pod `default/new` for a version of Kubernetes."""
    snapshot = kschedx.Snapshot.from_objects(list(objects))
    return kschedx.explain(snapshot, "default/new", kube_version=version)


def document(version: str, objects: Iterable[Manifest]) -> dict[str, Any]:
    return explain(version, objects).to_dict()


def local_volume(host: str) -> list[Manifest]:
    """Return the claim `default/data` with its bound volume, which only this host can access."""
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    volume: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
        "status": {"phase": "Bound"},
    }
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "annotations": bound},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "disk",
        },
        "status": {"phase": "Bound"},
    }
    return [volume, claim]


DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def requesting(**requests: str) -> Mapping[str, object]:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def on_nodes(*names: str) -> Mapping[str, object]:
    """Return a node affinity that allows only the nodes of these names."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (
            "1.28",
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {team: blue}. "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.."
            ),
        ),
        (
            "1.29",
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {team: blue}. "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
        ),
        (
            "1.34",
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {team: blue}. no new claims to deallocate, "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
        ),
        (
            "1.35",
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
        ),
    ],
)
def test_the_message_of_an_untolerated_taint(version: str, message: str) -> None:
    tainted = node("a", taints=["team=blue:NoSchedule"])
    assert explain(version, [tainted, pod("new")]).message == message


@pytest.mark.parametrize(
    ("version", "outcome", "message"),
    [
        (
            "1.29",
            "Unschedulable",
            (
                "0/2 nodes are available: 1 Insufficient cpu. preemption: 0/2 nodes are available: "
                "2 No preemption victims found for incoming pod."
            ),
        ),
        (
            "1.30",
            "Unschedulable",
            (
                "0/2 nodes are available: 1 Insufficient cpu, 1 node is filtered out by the prefilter result. "
                "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
                "1 Preemption is not helpful for scheduling."
            ),
        ),
        (
            "1.31",
            "Unschedulable",
            (
                "0/2 nodes are available: 1 Insufficient cpu. preemption: 0/2 nodes are available: "
                "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
            ),
        ),
        (
            "1.33",
            "Unschedulable",
            (
                "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
                "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
                "1 Preemption is not helpful for scheduling."
            ),
        ),
    ],
)
def test_the_message_of_nodes_that_pre_filter_removes(version: str, outcome: str, message: str) -> None:
    nodes = [node("a", allocatable=SMALL), node("b", allocatable=SMALL)]
    explanation = explain(version, [*nodes, pod("new", spec={**requesting(cpu="3"), **on_nodes("a")})])
    assert (explanation.outcome, explanation.message) == (outcome, message)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.29", "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."),
        ("1.30", "1 Insufficient cpu, 1 node is filtered out by the prefilter result."),
        ("1.31", "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."),
    ],
)
def test_the_message_of_a_nominated_node_that_pre_filter_removes(version: str, expected: str) -> None:
    nodes = [node("a", allocatable=SMALL), node("b", allocatable=SMALL)]
    pending = pod("new", spec={**requesting(cpu="3"), **on_nodes("a")}, status={"nominatedNodeName": "b"})
    assert explain(version, [*nodes, pending]).message.startswith(f"0/2 nodes are available: {expected} ")


@pytest.mark.parametrize(
    ("version", "outcome", "message"),
    [
        ("1.29", "Error", 'nodeinfo not found for node name "gone"'),
        ("1.30", "Error", "panic: runtime error: integer divide by zero"),
        (
            "1.31",
            "Unschedulable",
            "0/1 nodes are available: preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        ),
    ],
)
def test_node_affinity_to_a_missing_node(version: str, outcome: str, message: str) -> None:
    explanation = explain(version, [node("a"), pod("new", spec=on_nodes("gone"))])
    assert (explanation.outcome, explanation.message) == (outcome, message)


@pytest.mark.parametrize(("version", "code"), [("1.33", "Unschedulable"), ("1.34", "UnschedulableAndUnresolvable")])
def test_a_request_above_allocatable(version: str, code: str) -> None:
    result = document(version, [node("a", allocatable=SMALL), pod("new", spec=requesting(cpu="3"))])
    verdict = result["filter"]["nodes"]["a"]["verdict"]
    assert verdict["code"] == code


@pytest.mark.parametrize(("version", "outcome"), [("1.27", "Unschedulable"), ("1.28", "Scheduled")])
def test_a_pod_without_a_cpu_request_on_an_overcommitted_node(version: str, outcome: str) -> None:
    full = [pod(f"p{i}", on="a", spec=requesting(cpu="1500m")) for i in range(2)]
    objects = [node("a", allocatable=SMALL), *full, pod("new", spec=requesting(memory="1Gi"))]
    assert explain(version, objects).outcome == outcome


@pytest.mark.parametrize(
    ("version", "outcome", "point"),
    [("1.27", "Scheduled", None), ("1.28", "Unschedulable", "filter"), ("1.29", "Scheduled", None)],
)
def test_a_pod_with_a_sidecar(version: str, outcome: str, point: str | None) -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    explanation = explain(version, [node("a"), pod("new", initContainers=[sidecar])])
    assert explanation.outcome == outcome
    is_refused = "the SidecarContainers feature is disabled" in explanation.message
    assert is_refused is (point is not None)


@pytest.mark.parametrize(("version", "cpu"), [("1.27", 2000), ("1.29", 3000)])
def test_the_request_of_a_pod_with_a_sidecar(version: str, cpu: int) -> None:
    proxy = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    objects = [
        node("a", allocatable=SMALL),
        pod("new", spec={**requesting(cpu="2"), "initContainers": [proxy]}),
    ]
    result = document(version, objects)["filter"]["nodes"]["a"]["rejectedBy"]
    items = [finding["requested"] for status in result.values() for finding in status["findings"]]
    assert items == ([cpu] if cpu > 2000 else [])


@pytest.mark.parametrize(
    ("version", "raw"),
    [
        ("1.27", {"PodTopologySpread": 0, "NodeAffinity": 0, "InterPodAffinity": 0, "BalancedAllocation": 100}),
        ("1.28", {"NodeAffinity": 0, "BalancedAllocation": 100}),
        ("1.30", {"BalancedAllocation": 100}),
        ("1.33", {}),
    ],
)
def test_plugins_that_score_a_pod_without_constraints(version: str, raw: Mapping[str, int]) -> None:
    scores = document(version, [node("a"), node("b"), pod("new")])["score"]
    text = scores["nodes"]["a"]["raw"]
    plugins = ("PodTopologySpread", "NodeAffinity", "InterPodAffinity", "NodeResourcesBalancedAllocation")
    assert {name.removeprefix("NodeResources"): text[name] for name in plugins if name in text} == raw


@pytest.mark.parametrize(("version", "score"), [("1.35", 75), ("1.36", 62)])
def test_the_balanced_allocation_score(version: str, score: int) -> None:
    """A request of 1 of 2 CPU and no memory is 25 out of balance; since 1.36 the score compares with the empty node."""
    objects = [
        *(node(name, allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"}) for name in "ab"),
        pod("new", spec=requesting(cpu="1")),
    ]
    scores = document(version, objects)["score"]
    assert scores["nodes"]["a"]["raw"]["NodeResourcesBalancedAllocation"] == score


@pytest.mark.parametrize(("version", "victims"), [("1.31", ["covered", "free"]), ("1.32", ["free", "covered"])])
def test_the_order_of_victims(version: str, victims: list[str]) -> None:
    """The pod with the violated budget comes first, or the pod with the higher priority."""
    budget: Manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    objects = [
        node("a", allocatable=SMALL),
        pod("covered", on="a", labels={"app": "web"}, spec={**requesting(cpu="1"), "priority": 1}),
        pod("free", on="a", spec={**requesting(cpu="1"), "priority": 2}),
        budget,
        pod("new", spec={**requesting(cpu="2"), "priority": 10}),
    ]
    candidates = document(version, objects)["postFilter"]["candidates"]
    assert [key.removeprefix("default/") for key in candidates[0]["victims"]] == victims


@pytest.mark.parametrize(("version", "is_free"), [("1.33", True), ("1.34", False)])
def test_the_host_port_of_a_sidecar(version: str, is_free: bool) -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}
    container = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}
    objects = [node("a"), pod("old", on="a", initContainers=[sidecar]), pod("new", containers=[container])]
    assert (explain(version, objects).outcome == "Scheduled") is is_free


@pytest.mark.parametrize(("version", "nodes"), [("1.26", None), ("1.27", ["a"]), ("1.31", ["a"]), ("1.32", None)])
def test_a_local_volume_names_its_node(version: str, nodes: list[str] | None) -> None:
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    result = document(version, [*hosts, *local_volume("a"), pod("new", volumes=[DATA])])
    assert [step["nodes"] for step in result["preFilter"] if step["plugin"] == "VolumeBinding"] == [nodes]
    assert result["bestNodes"] == ["a"]


@pytest.mark.parametrize(
    ("version", "limit", "outcome"),
    [
        ("1.30", "0", "Unschedulable"),
        ("1.30", "1", "Scheduled"),
        ("1.31", "0", "Scheduled"),
    ],
)
def test_the_limit_of_in_tree_volumes(version: str, limit: str, outcome: str) -> None:
    disk = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1"}}
    small_node = node("a", allocatable={**SMALL, "attachable-volumes-aws-ebs": limit})
    assert explain(version, [small_node, pod("new", volumes=[disk])]).outcome == outcome


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("1.34", "Scheduled"),  # the statuses of devices, on by default, need the newest allocator
        ("1.35", "Error"),  # none of the default gates does
        ("1.36", "Scheduled"),  # consumable capacity, on by default, does
    ],
)
def test_the_allocator_that_keeps_devices_apart(version: str, outcome: str) -> None:
    apart = claim("gpu", request("x"), request("y"), constraints=[{"distinctAttribute": "gpu.example.com/numa"}])
    two = resource_slice("a", device("gpu-0", numa=0), device("gpu-1", numa=1))
    assert explain(version, [node("a"), claiming("gpu", name="new"), apart, device_class(), two]).outcome == outcome


@pytest.mark.parametrize(
    ("version", "team", "outcome"),
    [
        ("1.33", {}, "Unschedulable"),
        ("1.33", {"team": "a"}, "Scheduled"),
        ("1.34", {"team": "a"}, "Unschedulable"),  # the selector is matched with no labels, too
        ("1.36", {"team": "a"}, "Unschedulable"),
    ],
)
def test_namespaces_without_a_label(version: str, team: dict[str, str], outcome: str) -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    other: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": team}}
    own: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    running = pod("old", namespace="other", labels={"app": "web"}, on="a")
    home = node("a", labels={"kubernetes.io/hostname": "a"})
    objects = [home, own, other, running, pod("new", affinity=affinity)]
    assert explain(version, objects).outcome == outcome


NO_COMMON_NODE = "node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously"
PRE_FILTER_NOT_RUN = 'reading "PreFilterPodTopologySpread" from cycleState: not found'


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (
            "1.29",
            (
                f"0/2 nodes are available: {NO_COMMON_NODE}. "
                f'preemption: running RemovePod on PreFilter plugin "PodTopologySpread": {PRE_FILTER_NOT_RUN}'
            ),
        ),
        (
            "1.30",
            (
                f"0/2 nodes are available: {NO_COMMON_NODE}. "
                "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
            ),
        ),
    ],
)
def test_pre_filters_without_a_common_node(version: str, message: str) -> None:
    """Until 1.29, preemption runs anyway, with plugins whose PreFilter never ran."""
    objects = [
        *(node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"),
        pod("low", on="a", spec={"priority": -1}),
        *local_volume("b"),
        pod("new", spec=on_nodes("a"), volumes=[DATA]),
    ]
    explanation = explain(version, objects)
    assert (explanation.outcome, explanation.message) == ("Unschedulable", message)


@pytest.mark.parametrize(("version", "expected"), [("1.26", False), ("1.27", True)])
def test_the_message_contains_an_error_of_preemption(version: str, expected: bool) -> None:
    """Until 1.27, preemption ignores a rejection by PreFilter and lacks the state that PreFilter would have written."""
    missing = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
    objects = [node("a"), pod("low", on="a", spec={"priority": -1}), pod("new", volumes=[missing])]
    assert ("running RemovePod on PreFilter plugin" in explain(version, objects).message) is expected


@pytest.mark.parametrize(
    ("version", "outcome", "notes"), [("1.35", "Unschedulable", ["finished-pods"]), ("1.36", "Scheduled", [])]
)
def test_finished_pods(version: str, outcome: str, notes: list[str]) -> None:
    finished = pod("done", on="a", spec=requesting(cpu="2"), status={"phase": "Succeeded"})
    result = document(version, [node("a", allocatable=SMALL), finished, pod("new", spec=requesting(cpu="1"))])
    assert result["outcome"] == outcome
    assert [note["id"] for note in result["notes"] if note["id"] == "finished-pods"] == notes


def test_finished_pods_of_an_api_server_never_count() -> None:
    """They count in no version, because the scheduler's informer omits them."""
    finished = pod("done", on="a", spec=requesting(cpu="2"), status={"phase": "Succeeded"})
    finished = changed(finished, "metadata.creationTimestamp", "2026-01-01T00:00:00Z")
    cluster = [node("a", allocatable=SMALL), finished, pod("new", spec=requesting(cpu="1"))]
    assert [document(version, cluster)["outcome"] for version in ("1.30", "1.35", "1.36")] == ["Scheduled"] * 3
