"""What somebody who knows clusters would do first: what is told first, and what is never told."""

from __future__ import annotations

import pytest

import kschedx
from tests.builders import Manifest, at, node, pod

SMALL = {"cpu": "2", "memory": "4Gi", "pods": "10"}
FULL = node("full", allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"})
CONTROL_PLANE = "node-role.kubernetes.io/control-plane:NoSchedule"


def told(*objects: Manifest) -> list[str]:
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    assert all(fix.certainty == "verified" for fix in fixes)
    return [fix.title for fix in fixes]


def wanting(**requests: str) -> Manifest:
    return pod("me", containers=[{"name": "main", "resources": {"requests": requests}}])


def running(name: str, on: str, cpu: str, *, priority: int = 0) -> Manifest:
    return pod(name, on=on, priority=priority, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


@pytest.mark.parametrize(
    ("taint", "first"),
    [
        ("node.kubernetes.io/not-ready:NoSchedule", "get n ready"),
        ("node.kubernetes.io/unreachable:NoSchedule", "bring n back"),
        ("node.kubernetes.io/disk-pressure:NoSchedule", "free disk space on n"),
        (
            "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
            "get cloud-controller-manager to finish setting up n",
        ),
        ("karpenter.sh/unregistered:NoExecute", "get Karpenter to finish setting up n"),
        (
            "node.cilium.io/agent-not-ready:NoExecute",
            "get the agent of node.cilium.io ready on n: it takes its taint away then",
        ),
        ("dedicated=web:NoSchedule", "tolerate dedicated=web:NoSchedule"),
    ],
)
def test_a_taint_of_the_only_worker(taint: str, first: str) -> None:
    nodes = [node("cp", taints=[CONTROL_PLANE]), node("n", taints=[taint])]
    assert told(*nodes, pod("me"))[0] == first


@pytest.mark.parametrize(
    "taint",
    [
        CONTROL_PLANE,
        "CriticalAddonsOnly=true:NoSchedule",
        "eks.amazonaws.com/compute-type=fargate:NoSchedule",
        "ToBeDeletedByClusterAutoscaler=1:NoSchedule",
        "karpenter.sh/disrupted:NoSchedule",
        "node.kubernetes.io/out-of-service:NoExecute",
        "kubernetes.io/arch=arm64:NoSchedule",
        "example.com/gpu=present:NoSchedule",
    ],
)
def test_a_node_that_is_kept_for_others(taint: str) -> None:
    nodes = [node("n", taints=[taint], allocatable={**SMALL, "example.com/gpu": "1"}), FULL]
    assert told(*nodes, pod("me")) == ["add a node with room for a pod"]


def test_a_taint_with_the_name_of_what_the_pod_asks_for() -> None:
    gpu = node("n", taints=["example.com/gpu=present:NoSchedule"], allocatable={**SMALL, "example.com/gpu": "1"})
    limits = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    first, *_ = told(gpu, pod("me", containers=[{"name": "main", "resources": limits}]))
    assert first == "tolerate example.com/gpu=present:NoSchedule"
    arm = node("arm", taints=["kubernetes.io/arch=arm64:NoSchedule"], labels={"kubernetes.io/arch": "arm64"})
    first, *_ = told(arm, pod("me", nodeSelector={"kubernetes.io/arch": "arm64"}))
    assert first == "tolerate kubernetes.io/arch=arm64:NoSchedule"


def test_a_cluster_that_is_a_control_plane_alone() -> None:
    assert told(node("cp", taints=[CONTROL_PLANE]), pod("me")) == [f"remove taint {CONTROL_PLANE} from cp"]


@pytest.mark.parametrize(
    ("free", "first"),
    [("1", "lower the request to 1 cpu"), ("500m", "add a node like n")],
    ids=["half-of-it", "a-third-of-it"],
)
def test_less_is_asked_for_first_where_it_is_not_far_less(free: str, first: str) -> None:
    held = {"1": "1", "500m": "1500m"}[free]
    objects = [node("n", allocatable=SMALL), running("other", "n", held), wanting(cpu="1500m")]
    assert told(*objects)[0] == first


def test_another_pod_goes_last() -> None:
    objects = [node("n", allocatable=SMALL), running("other", "n", "1500m"), wanting(cpu="1500m")]
    assert [title.split()[0] for title in told(*objects)] == ["add", "request", "delete"]


def test_what_preemption_does_by_itself_comes_first() -> None:
    nodes = [node(name, allocatable=SMALL) for name in "ab"]
    low = [running(f"low-{name}", name, "2", priority=-1) for name in "ab"]
    assert told(*nodes, *low, wanting(cpu="1"))[:2] == [
        "wait for preemption, which evicts default/low-a (priority -1) on a, or what it takes on 1 other node",
        "add a node like a",
    ]


def test_preemption_against_a_budget_says_so() -> None:
    budget: Manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "low", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": 0},
    }
    low = {**running("low", "n", "2", priority=-1)}
    low["metadata"] = {**at(low, "metadata"), "labels": {"app": "low"}}
    assert told(node("n", allocatable=SMALL), budget, low, wanting(cpu="1"))[0] == (
        "wait for preemption, which evicts default/low (priority -1) on n although a PodDisruptionBudget protects it"
    )


def test_hardware_whose_driver_does_not_run() -> None:
    nodes = [node("cpu-1"), node("gpu-1", labels={"nvidia.com/gpu.present": "true"})]
    wanted = {"resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}}
    titles = told(*nodes, pod("me", containers=[{"name": "main", **wanted}]))
    assert (
        titles[0] == "get the device plugin for nvidia.com/gpu running on gpu-1, which has nvidia.com/gpu.present=true"
    )


def test_huge_pages_that_nobody_has_set_aside() -> None:
    wanted = {"resources": {"requests": {"hugepages-2Mi": "1Gi"}, "limits": {"hugepages-2Mi": "1Gi"}}}
    titles = told(node("n", allocatable=SMALL), pod("me", containers=[{"name": "main", **wanted}]))
    assert titles[0] == "set 1Gi of the memory of n aside as hugepages-2Mi"


def test_a_label_that_nobody_has_put_on_any_node() -> None:
    assert told(node("n"), pod("me", nodeSelector={"disk": "ssd"})) == ["label n disk=ssd", "stop requiring disk=ssd"]
    others = node("o", labels={"disk": "ssd"}, allocatable={"cpu": "1", "pods": "0"})
    assert told(node("n"), others, pod("me", nodeSelector={"disk": "ssd"}))[0] == "stop requiring disk=ssd"


@pytest.mark.parametrize(
    ("wanted", "there", "first"),
    [
        (
            {"beta.kubernetes.io/os": "linux"},
            {"kubernetes.io/os": "linux"},
            "select kubernetes.io/os=linux instead of beta.kubernetes.io/os=linux",
        ),
        (
            {"failure-domain.beta.kubernetes.io/zone": "eu-1a"},
            {"topology.kubernetes.io/zone": "eu-1a"},
            "select topology.kubernetes.io/zone=eu-1a instead of failure-domain.beta.kubernetes.io/zone=eu-1a",
        ),
        (
            {"node-role.kubernetes.io/worker": "true"},
            {"node-role.kubernetes.io/worker": ""},
            "select node-role.kubernetes.io/worker= instead of node-role.kubernetes.io/worker=true",
        ),
        (
            {"kubernetes.io/arch": "arm64"},
            {"kubernetes.io/arch": "amd64"},
            "add a node with label kubernetes.io/arch=arm64",
        ),
        (
            {"beta.kubernetes.io/arch": "arm64"},
            {"kubernetes.io/arch": "amd64"},
            "add a node with label beta.kubernetes.io/arch=arm64",
        ),
    ],
)
def test_a_label_under_its_old_name(wanted: dict[str, str], there: dict[str, str], first: str) -> None:
    assert told(node("n", labels=there), pod("me", nodeSelector=wanted))[0] == first


def test_a_pod_whose_turn_a_controller_decides() -> None:
    gated = {**wanting(cpu="3")}
    gated["spec"] = {**at(gated, "spec"), "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    objects = [node("n", allocatable=SMALL), gated]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert [(fix.title, fix.certainty.value) for fix in explanation.fixes] == [
        ("lower the request to 2 cpu, once Kueue lets the pod go on", "partial")
    ]
    assert [one["path"] for change in explanation.fixes[0].changes for one in change.patch] == [
        "/spec/containers/0/resources"
    ], "nobody jumps the queue"


def test_a_node_that_the_pod_names_and_that_is_not_enough() -> None:
    named = {"kubernetes.io/hostname": "n", "kubernetes.io/arch": "arm64"}
    there = node("n", labels={"kubernetes.io/hostname": "n", "kubernetes.io/arch": "amd64"})
    assert told(there, pod("me", nodeSelector=named)) == [
        "stop requiring kubernetes.io/hostname=n, add a node with label kubernetes.io/arch=arm64"
    ]


def test_a_label_that_is_misspelled() -> None:
    nodes = [node("n", labels={"pool": "general"}), node("o", labels={"pool": "gpu"}), FULL]
    assert told(*nodes, pod("me", nodeSelector={"pool": "generall"})) == [
        "select pool=general instead of pool=generall",
        "stop requiring pool=generall",
    ], "the same is told once, and nobody labels a node with a misspelling"
    zone = "topology.kubernetes.io/zone"
    there = node("n", labels={zone: "eu-1a"})
    assert told(there, pod("me", nodeSelector={zone: "eu-1b"}))[0] == f"stop requiring {zone}=eu-1b"


def beside(app: str, *, key: str = "app") -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {key: app}}}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod("me", affinity=rules)


@pytest.mark.parametrize(
    ("namespace", "asking", "first"),
    [
        ("default", beside("rediss"), "look for app=redis instead of app=rediss with podAffinity term 1"),
        ("default", beside("redis", key="App"), "look for app=redis instead of App=redis with podAffinity term 1"),
        ("data", beside("redis"), "look for app=redis in namespace data with podAffinity term 1"),
        ("default", beside("cache"), "prefer podAffinity term 1 (app=cache) instead of requiring it"),
    ],
)
def test_the_pods_that_were_probably_meant(namespace: str, asking: Manifest, first: str) -> None:
    there = node("n", labels={"kubernetes.io/hostname": "n"})
    assert told(there, pod("redis", namespace=namespace, on="n", labels={"app": "redis"}), asking)[0] == first


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        ({"memory": "512Gi"}, "request 512Mi memory instead of 512Gi"),
        ({"memory": "1Ti"}, "request 1Gi memory instead of 1Ti"),
        ({"cpu": "500"}, "request 500m cpu instead of 500"),
        ({"memory": "32Gi"}, "add a node with memory 32Gi"),
        ({"cpu": "64"}, "add a node with cpu 64"),
    ],
)
def test_an_amount_that_no_node_comes_near(requests: dict[str, str], first: str) -> None:
    assert told(node("n", allocatable={"cpu": "4", "memory": "4Gi", "pods": "10"}), wanting(**requests))[0] == first


@pytest.mark.parametrize("policy", ["PreemptLowerPriority", "Never"])
@pytest.mark.parametrize(("namespace", "chosen"), [("kube-system", "system-node-critical"), ("default", "agents")])
def test_a_pod_of_a_daemon_set_on_a_full_node(namespace: str, chosen: str, policy: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "a", "controller": True}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    on_its_node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    agent = pod(
        "me",
        namespace=namespace,
        metadata={"ownerReferences": [owner]},
        affinity={"nodeAffinity": on_its_node},
        priority=0,
        preemptionPolicy=policy,
        containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    )
    classes: list[Manifest] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("batch", -5), ("agents", 50), ("top", 1000))
    ]
    full = [node("n", allocatable=SMALL), running("one", "n", "2")]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*full, *classes, agent]), f"{namespace}/me").fixes
    assert fixes[0].title == (
        f"give it priority class {chosen}, wait for preemption, which evicts default/one (priority 0) on n"
    )
    assert [change.by for change in fixes[0].changes] == ["", "kube-scheduler"]


def test_the_control_plane_under_its_old_name() -> None:
    label = "node-role.kubernetes.io/control-plane"
    nodes = [node("cp", labels={label: ""}, taints=[CONTROL_PLANE]), node("n")]
    old = "node-role.kubernetes.io/master"
    tolerating = {"key": old, "operator": "Exists", "effect": "NoSchedule"}
    first, *others = told(*nodes, pod("me", nodeSelector={old: ""}, tolerations=[tolerating]))
    assert first == f"tolerate {CONTROL_PLANE}, select {label}= instead of {old}="
    assert others == [f"stop requiring {old}="]


def test_nobody_is_told_to_ask_for_less_than_is_needed() -> None:
    """What a node takes that other reasons keep the pod from helps, too, and no more than the most that does."""
    worker = node("n", allocatable={"cpu": "2200m", "memory": "4Gi", "pods": "10"})
    control_plane = node("cp", taints=[CONTROL_PLANE], allocatable={"cpu": "1800m", "memory": "4Gi", "pods": "10"})
    amounts = [title for title in told(worker, control_plane, wanting(cpu="4")) if title.startswith("request")]
    assert amounts == ["lower the request to 2200m cpu"]
