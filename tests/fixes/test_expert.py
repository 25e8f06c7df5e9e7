"""The order of fixes is that of an expert, and fixes that an expert avoids are not proposed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kschedx
from kschedx.explain.hardware import hosts_of_slice
from kschedx.explain.root_causes import root_causes
from kschedx.snapshot.snapshot import Snapshot
from kschedx.words.causes import because
from tests.builders import Manifest, at, autoscaler_status, disruption_budget, node, pod, reported
from tests.command import kschedx as command
from tests.storage_builders import DRIVER, claim, in_term, volume

SMALL = {"cpu": "2", "memory": "4Gi", "pods": "10"}
FULL = node("full", allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"})
GPU = "nvidia.com/gpu"
OF_REPLICA_SET = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}]
CONTROL_PLANE = "node-role.kubernetes.io/control-plane:NoSchedule"


def titles_of(*objects: Manifest) -> list[str]:
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    assert all(fix.certainty == "verified" for fix in fixes)
    return [fix.title for fix in fixes]


def asking_for(requests: dict[str, str]) -> list[Manifest]:
    return [{"name": "main", "resources": {"requests": requests}}]


def wanting(**requests: str) -> Manifest:
    return pod("me", containers=asking_for(requests))


def running(name: str, on: str, cpu: str, *, priority: int = 0) -> Manifest:
    return pod(name, on=on, priority=priority, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


@pytest.mark.parametrize(
    ("taint", "first"),
    [
        ("node.kubernetes.io/not-ready:NoSchedule", "repair n: it is NotReady"),
        ("node.kubernetes.io/unreachable:NoSchedule", "repair n: it is unreachable"),
        ("node.kubernetes.io/disk-pressure:NoSchedule", "free disk space on n"),
        (
            "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
            "repair cloud-controller-manager, so that it initializes n",
        ),
        ("karpenter.sh/unregistered:NoExecute", "repair Karpenter, so that it initializes n"),
        (
            "node.cilium.io/agent-not-ready:NoExecute",
            "repair the agent of node.cilium.io on n, which then removes its taint",
        ),
        (
            "readiness.k8s.io/network=pending:NoSchedule",
            "repair n, as its NodeReadinessRule requires: the Node Readiness Controller then removes its taint",
        ),
        ("dedicated=web:NoSchedule", "tolerate dedicated=web:NoSchedule"),
    ],
)
def test_a_taint_of_the_only_worker(taint: str, first: str) -> None:
    nodes = [node("cp", taints=[CONTROL_PLANE]), node("n", taints=[taint])]
    assert titles_of(*nodes, pod("me"))[0] == first


@pytest.mark.parametrize(
    ("toleration", "first"),
    [
        (
            {"key": "dedicated", "operator": "Equal", "value": "ML", "effect": "NoSchedule"},
            "tolerate dedicated=ml:NoSchedule instead of dedicated=ML:NoSchedule",
        ),
        (
            {"key": "dedicatd", "operator": "Exists"},
            "tolerate dedicated=ml:NoSchedule instead of dedicatd op=Exists",
        ),
        (
            {"key": "dedicated", "value": "ml", "effect": "NoExecute"},
            "tolerate dedicated=ml:NoSchedule instead of dedicated=ml:NoExecute",
        ),
        # another pool was meant, or there is a node for it
        ({"key": "dedicated", "value": "training"}, "tolerate dedicated=ml:NoSchedule"),
        ({"key": "dedicated", "value": "mls"}, "tolerate dedicated=ml:NoSchedule"),
    ],
)
def test_a_toleration_that_was_meant_for_the_taint(toleration: Manifest, first: str) -> None:
    full = node("full", taints=["dedicated=mls:NoSchedule"], allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"})
    nodes = [node("n", taints=["dedicated=ml:NoSchedule"]), full]
    assert titles_of(*nodes, pod("me", tolerations=[toleration]))[0] == first


def test_a_startup_taint_of_a_node_pool_is_for_its_agent_to_remove() -> None:
    warming = {"key": "example.com/warming", "effect": "NoSchedule"}
    template = {"spec": {"startupTaints": [warming], "nodeClassRef": {"name": "default"}}}
    pool: Manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}}
    labels = {"karpenter.sh/nodepool": "general"}
    started = node("n", taints=["example.com/warming:NoSchedule"], labels=labels)
    first = "repair the agent that removes example.com/warming from n: NodePool general sets it as a startup taint"
    assert titles_of({**pool, "spec": {"template": template}}, started, pod("me"))[0] == first


@pytest.mark.parametrize("key", ["example.com/warming", "node.cilium.io/agent-not-ready"])
def test_karpenter_gives_a_new_node_the_startup_taint_as_well(tmp_path: Path, key: str) -> None:
    warming = {"key": key, "effect": "NoSchedule"}
    labels = {
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "a",
    }
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    started = node("n", taints=[f"{key}:NoSchedule"], labels=labels, allocatable=size)
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"startupTaints": [warming], "requirements": [], "nodeClassRef": reference}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pool: Manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    me = pod("me", status={"phase": "Pending", "conditions": [waits]})
    started["status"] = {**at(started, "status"), "capacity": size}
    objects = [{**pool, "spec": {"template": template}, "status": ready}, started, me]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = command("why", "pod/me", "-s", "cluster.json", "-o", "json", cwd=tmp_path)
    titles = [fix["title"] for fix in json.loads(result.out)["fixes"]]
    assert [title.partition(" ")[0] for title in titles[:2]] == ["repair", "wait"]


@pytest.mark.parametrize(
    ("is_ready", "others", "text"),
    [
        (True, ["NodeClaim"], "Karpenter runs, and there is no NodePool: it adds no node until you create one"),
        (True, [], "Karpenter runs, and the dump holds no NodePool: whether it helps is not known"),
        (True, ["Provisioner"], "Karpenter runs, and the dump holds no NodePool: whether it helps is not known"),
        (False, ["NodeClaim"], None),
        (True, ["NodeClaim", "NodePool"], None),
    ],
)
def test_karpenter_without_a_node_pool(tmp_path: Path, *, is_ready: bool, others: list[str], text: str | None) -> None:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    labels = {"app.kubernetes.io/name": "karpenter"}
    karpenter = pod("k", on="full", labels=labels, status={"phase": "Running", "conditions": conditions})
    kinds = [{"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": {"name": "x"}} for kind in others]
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [FULL, karpenter, *kinds, pod("me", status={"phase": "Pending"})]})
    )
    result = command("why", "pod/me", "-s", "cluster.json", "-o", "json", cwd=tmp_path)
    notes = [note["text"] for note in json.loads(result.out)["notes"] if note["id"] == "no-node-pool"]
    assert notes == ([] if text is None else [text])


@pytest.mark.parametrize(
    "taint",
    [
        CONTROL_PLANE,
        "CriticalAddonsOnly=true:NoSchedule",
        "eks.amazonaws.com/compute-type=fargate:NoSchedule",
        "sandbox.gke.io/runtime=gvisor:NoSchedule",
        "ToBeDeletedByClusterAutoscaler=1:NoSchedule",
        "karpenter.sh/disrupted:NoSchedule",
        "node.kubernetes.io/out-of-service:NoExecute",
        "kubernetes.io/arch=arm64:NoSchedule",
        "example.com/gpu=present:NoSchedule",
    ],
)
def test_a_node_reserved_for_others(taint: str) -> None:
    nodes = [node("n", taints=[taint], allocatable={**SMALL, "example.com/gpu": "1"}), FULL]
    assert titles_of(*nodes, pod("me")) == ["add a node with room for one pod"]


def test_an_agent_may_belong_on_the_control_plane() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    result = titles_of(node("n", taints=[CONTROL_PLANE]), FULL, pod("me", metadata={"ownerReferences": [owner]}))
    assert f"tolerate {CONTROL_PLANE}" in result
    assert not any("remove taint" in each for each in result)


def test_a_node_after_maintenance() -> None:
    back = node("n", taints=["node.kubernetes.io/out-of-service:NoExecute"])
    at(back, "status")["conditions"] = [{"type": "Ready", "status": "True"}]
    first = titles_of(back, FULL, pod("me"))[0]
    assert first == "remove taint node.kubernetes.io/out-of-service:NoExecute from n, which is ready again"


@pytest.mark.parametrize(("created", "is_left_over"), [("2025-03-03T11:30:00Z", False), ("2025-03-03T12:30:00Z", True)])
def test_a_taint_of_a_scale_down_that_did_not_happen(created: str, is_left_over: bool) -> None:
    """cluster-autoscaler set it at 11:06:40; the newest pod shows what time it is."""
    closing = node("n", taints=["ToBeDeletedByClusterAutoscaler=1741000000:NoSchedule"])
    first = titles_of(closing, FULL, pod("me", metadata={"creationTimestamp": created}))[0]
    taint = (
        "taint ToBeDeletedByClusterAutoscaler=1741000000:NoSchedule from n, which cluster-autoscaler has not removed"
    )
    assert first == (f"remove {taint}" if is_left_over else "add a node like n")


@pytest.mark.parametrize(
    ("taint", "condition", "since", "first"),
    [
        ("not-ready", ("Ready", "True"), "", "remove taint {}, which is ready again"),
        ("not-ready", ("Ready", "False"), "", "repair n: it is NotReady"),
        ("not-ready", ("Ready", "True"), "2026-01-01T11:58:00Z", "remove taint {}, which is ready again"),
        ("not-ready", ("Ready", "True"), "2026-01-01T11:59:30Z", "repair n: it is NotReady"),
        ("disk-pressure", ("DiskPressure", "False"), "", "remove taint {}, which is no longer short of disk"),
        ("disk-pressure", ("DiskPressure", "True"), "", "free disk space on n"),
        ("unschedulable", ("Ready", "True"), "", "remove taint {}, which is not cordoned"),
    ],
)
def test_a_taint_that_its_node_refutes(taint: str, condition: tuple[str, str], since: str, first: str) -> None:
    key = f"node.kubernetes.io/{taint}:NoSchedule"
    tainted = node("n", taints=[key])
    at(tainted, "status")["conditions"] = [
        {"type": condition[0], "status": condition[1], **({"lastTransitionTime": since} if since else {})}
    ]
    target = pod("me", metadata={"creationTimestamp": "2026-01-01T12:00:00Z"})
    assert titles_of(tainted, FULL, target)[0] == first.format(f"{key} from n")


def test_a_node_that_shuts_down_is_started_again() -> None:
    leaving = node("n", taints=["node.kubernetes.io/not-ready:NoSchedule"])
    condition = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down"}
    at(leaving, "status")["conditions"] = [condition]
    assert titles_of(leaving, pod("me"))[0] == "start n again: it is shutting down"


@pytest.mark.parametrize(
    ("system", "wanted", "is_restored"), [("linux", "linux", True), ("", "linux", True), ("windows", "linux", False)]
)
def test_a_label_that_the_kubelet_sets(system: str, wanted: str, is_restored: bool) -> None:
    bare = node("n")
    at(bare, "status")["nodeInfo"] = {"operatingSystem": system}
    titles = titles_of(bare, FULL, pod("me", nodeSelector={"kubernetes.io/os": wanted}))
    restored = f"restart the kubelet of n, which sets label kubernetes.io/os={wanted} again"
    assert (titles[0] == restored) == is_restored


PRODUCT, NFD = "nvidia.com/gpu.product", "feature.node.kubernetes.io/cpu-model.family"


@pytest.mark.parametrize(
    ("key", "kind", "agents", "first"),
    [
        (PRODUCT, "g5", [], "run gpu-feature-discovery on b"),
        (PRODUCT, "g5", ["gpu-feature-discovery-1"], "restart default/gpu-feature-discovery-1 on b"),
        (PRODUCT, "g5", ["gpu-feature-discovery-1", "nfd-worker-1!"], "repair default/nfd-worker-1 on b"),
        (NFD, "g5", ["gpu-feature-discovery-1", "nfd-worker-1!"], "repair default/nfd-worker-1 on b"),
        (NFD, "g5", ["gpu-feature-discovery-1!"], "run node-feature-discovery on b"),
        (PRODUCT, "g6", [], None),
        ("nvidia.com/gpu.present", "g5", [], None),
        ("nvidia.com/gpu.workload.config", "g5", [], None),
        ("team", "g5", [], None),
    ],
)
def test_a_label_that_an_agent_sets(key: str, kind: str, agents: list[str], first: str | None) -> None:
    """The node `b` lacks a label that the node `a` of its instance type has; an agent with `!` is not ready."""
    of_type = "node.kubernetes.io/instance-type"
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "uid": "u", "controller": True}]
    objects = [
        node("a", labels={of_type: "g5", key: "x"}, allocatable={"pods": "0"}),
        node("b", labels={of_type: kind}),
        pod("me", nodeSelector={key: "x"}),
    ]
    for name in agents:
        ready = [{"type": "Ready", "status": str(not name.endswith("!"))}]
        status = {"phase": "Running", "conditions": ready}
        objects.append(pod(name.strip("!"), on="b", metadata={"ownerReferences": owner}, status=status))
    titles = titles_of(*objects)
    at(objects[1], "metadata.labels")[f"{key}-of-others"] = "y"  # from the agent, which runs
    assert not [title for title in titles_of(*objects) if "again" in title]
    expected = [] if first is None else [f"{first}, which sets label {key}=x again"]
    assert [title for title in titles if "again" in title] == expected
    assert titles[: len(expected)] == expected


@pytest.mark.parametrize(
    ("key", "only"),
    [
        ("kubevirt.io/schedulable", "run virt-handler on a, which sets label kubevirt.io/schedulable=true again"),
        (
            "cpumanager",
            (
                "set cpuManagerPolicy: static in the kubelet's configuration of a, so that virt-handler sets label "
                "cpumanager=true"
            ),
        ),
        ("cpu-feature.node.kubevirt.io/avx512f", "add a node with label cpu-feature.node.kubevirt.io/avx512f=true"),
    ],
)
def test_a_label_that_a_virtual_machine_selects_is_neither_set_by_hand_nor_dropped(key: str, only: str) -> None:
    machine = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "m", "uid": "u"}
    metadata = {"ownerReferences": [{**machine, "controller": True}]}
    titles = titles_of(node("a", labels={key: "false"}), pod("me", nodeSelector={key: "true"}, metadata=metadata))
    assert titles == [only]


@pytest.mark.parametrize(("hosts", "is_shared"), [(("ubuntu", "ubuntu"), True), (("a", "b"), False)])
@pytest.mark.parametrize("rule", ["podAntiAffinity", "topologySpreadConstraints"])
def test_a_host_name_that_two_nodes_share(hosts: tuple[str, str], rule: str, *, is_shared: bool) -> None:
    """Clones of a machine have one host name, and rules per host take them for one."""
    nodes = [node(name, labels={"kubernetes.io/hostname": host}) for name, host in zip("ab", hosts, strict=True)]
    nodes.append(node("full", labels={"kubernetes.io/hostname": "full"}, allocatable={"pods": "0"}))
    per_host = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **per_host}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [per_host]}
    fields: Manifest = {"affinity": {rule: required}} if rule == "podAntiAffinity" else {rule: [spread]}
    labels = {"app": "web"}
    titles = titles_of(*nodes, pod("web", on="a", labels=labels, spec=fields), pod("me", labels=labels, spec=fields))
    own = "give b a host name of its own: a has label kubernetes.io/hostname=ubuntu as well"
    assert (own in titles[:1]) == is_shared


@pytest.mark.parametrize("key", ["kubernetes.io/os", "node.kubernetes.io/windows-build"])
def test_a_pod_is_not_moved_to_nodes_for_which_its_image_was_not_built(key: str) -> None:
    titles = titles_of(node("n", labels={key: "a"}), pod("me", nodeSelector={key: "b"}))
    assert [title for title in titles if not title.startswith("add a node")] == []


def test_a_taint_named_after_the_requested_resource() -> None:
    gpu = node("n", taints=["example.com/gpu=present:NoSchedule"], allocatable={**SMALL, "example.com/gpu": "1"})
    limits = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    first, *_ = titles_of(gpu, pod("me", containers=[{"name": "main", "resources": limits}]))
    assert first == "tolerate example.com/gpu=present:NoSchedule"
    tolerations = [{"key": "example.com/gpu", "value": "true", "effect": "NoSchedule"}]
    for its, is_meant in ((tolerations, True), ([], False)):
        tolerated = "tolerate example.com/gpu=present:NoSchedule" in " ".join(
            titles_of(gpu, pod("me", tolerations=its))
        )
        assert tolerated is is_meant
    for key, value, taint in (
        ("kubernetes.io/arch", "arm64", "kubernetes.io/arch=arm64:NoSchedule"),
        ("kubernetes.io/os", "windows", "node.kubernetes.io/os=windows:NoSchedule"),
        ("type", "virtual-kubelet", "virtual-kubelet.io/provider=azure:NoSchedule"),
    ):
        selected = titles_of(node("n", taints=[taint], labels={key: value}), pod("me", nodeSelector={key: value}))
        assert selected[0] == f"tolerate {taint}"
        assert not any("remove taint" in each for each in selected), "its provider sets it again"


@pytest.mark.parametrize(
    ("key", "first"),
    [
        (GPU, f"tolerate {GPU}=present:NoSchedule, add a node like g"),
        ("team", "add a node without taint team with at least "),
    ],
)
def test_a_full_pool_of_the_requested_resource_is_entered_with_another_node(key: str, first: str) -> None:
    resources = {"cpu": "4", "pods": "9", GPU: "1"}
    full = node("g", taints=[f"{key}=present:NoSchedule"], allocatable=resources)
    taken = pod("taken", on="g", containers=asking_for({GPU: "1"}), tolerations=[{"operator": "Exists"}])
    titles = titles_of(node("plain", allocatable=SMALL), full, taken, wanting(cpu="1", **{GPU: "1"}))
    assert titles[0].startswith(first)


def test_a_cluster_with_only_control_plane_nodes() -> None:
    untainted, added = titles_of(node("cp", taints=[CONTROL_PLANE]), pod("me"))
    assert (untainted, added) == (f"remove taint {CONTROL_PLANE} from cp", "add a node with room for one pod")


@pytest.mark.parametrize("held", ["1", "1500m"], ids=["half-of-it", "a-third-of-it"])
def test_capacity_comes_before_lower_requests(held: str) -> None:
    objects = [node("n", allocatable=SMALL), running("other", "n", held), wanting(cpu="1500m")]
    first, second, *_ = titles_of(*objects)
    left = {"1": "1000m", "1500m": "500m"}[held]
    assert (first, second) == ("add a node like n", f"lower requests.cpu of container main from 1500m to {left}")


def test_eviction_of_another_pod_comes_last() -> None:
    objects = [node("n", allocatable=SMALL), running("other", "n", "1500m"), wanting(cpu="1500m")]
    assert [title.split()[0] for title in titles_of(*objects)] == ["add", "lower", "delete"]


def test_preemption_comes_first() -> None:
    nodes = [node(name, allocatable=SMALL) for name in "ab"]
    low = [running(f"low-{name}", name, "2", priority=-1) for name in "ab"]
    assert titles_of(*nodes, *low, wanting(cpu="1"))[:2] == [
        "wait for preemption to evict default/low-a (priority -1) from a, or pods on 1 other node",
        "add a node like a",
    ]


def test_preemption_against_a_budget_is_named() -> None:
    budget = disruption_budget("low", labels={"app": "low"}, status={"disruptionsAllowed": 0}, minAvailable=1)
    low = {**running("low", "n", "2", priority=-1)}
    low["metadata"] = {**at(low, "metadata"), "labels": {"app": "low"}}
    assert titles_of(node("n", allocatable=SMALL), budget, low, wanting(cpu="1"))[0] == (
        "wait for preemption to evict default/low (priority -1) from n despite its PodDisruptionBudget"
    )


def test_hardware_whose_driver_does_not_run() -> None:
    nodes = [node("cpu-1"), node("gpu-1", labels={"nvidia.com/gpu.present": "true"})]
    wanted = {"resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}}
    titles = titles_of(*nodes, pod("me", containers=[{"name": "main", **wanted}]))
    assert titles[0] == "run the device plugin for nvidia.com/gpu on gpu-1 (nvidia.com/gpu.present=true)"


def test_a_kubelet_that_reports_no_ephemeral_storage() -> None:
    asks = pod("me", containers=[{"name": "main", "resources": {"requests": {"ephemeral-storage": "12Mi"}}}])
    report = "let the kubelet of n report ephemeral-storage (localStorageCapacityIsolation)"
    assert titles_of(node("n"), asks)[0] == report
    assert report not in titles_of(node("n", allocatable={"ephemeral-storage": "4Mi", "pods": "9"}), asks)


def test_huge_pages_that_no_node_reserves() -> None:
    wanted = {"resources": {"requests": {"hugepages-2Mi": "1Gi"}, "limits": {"hugepages-2Mi": "1Gi"}}}
    titles = titles_of(node("n", allocatable=SMALL), pod("me", containers=[{"name": "main", **wanted}]))
    assert titles[0] == "reserve 1Gi of the memory of n as hugepages-2Mi, then restart its kubelet"


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("dedicated", "select pool=b2 instead of pool=b"),
        ("other", "stop requiring kind=x and pool=b"),
    ],
)
def test_a_pod_that_tolerates_a_pool_selects_it(key: str, first: str) -> None:
    reserved = node("b", labels={"pool": "b2", "kind": "x"}, taints=["dedicated=b:NoSchedule"])
    tolerations = [{"key": key, "operator": "Exists"}]
    me = pod("me", nodeSelector={"pool": "b", "kind": "x"}, tolerations=tolerations)
    assert titles_of(node("n"), reserved, me)[0] == first


def test_requests_are_lowered_no_further_than_any_node_needs() -> None:
    room = {"memory": "4Gi", "pods": "9"}
    machines = [node(name, allocatable={"cpu": "4", **room}) for name in ("a", "b")]
    machines.append(node("c", allocatable={"cpu": "3500m", **room}, taints=[CONTROL_PLANE]))
    container = {"name": "main", "resources": {"requests": {"cpu": "5"}}}
    assert titles_of(*machines, pod("me", containers=[container], nodeSelector={"t": "a"})) == [
        "lower requests.cpu of container main from 5 to 4, label a t=a",
        "lower requests.cpu of container main from 5 to 4, stop requiring t=a",
        "add a node with label t=a and at least 5 CPU free",
    ]


def test_a_label_that_no_node_has() -> None:
    assert titles_of(node("n"), pod("me", nodeSelector={"team": "a"})) == ["label n team=a", "stop requiring team=a"]
    pooled = node("n", labels={"cloud.google.com/gke-nodepool": "web"})
    titles = titles_of(pooled, pod("me", nodeSelector={"team": "a"}))
    assert titles == ["label n team=a", "stop requiring team=a", "add a node with label team=a"]
    others = node("o", labels={"team": "a"}, allocatable={"cpu": "1", "pods": "0"})
    assert titles_of(node("n"), others, pod("me", nodeSelector={"team": "a"}))[0] == "add a node with label team=a"


@pytest.mark.parametrize(
    ("size", "cpu", "costs"),
    [
        ("4", "2", ["for the whole group: 4 nodes, if its pods request as much"]),
        ("5", "1", ["for the whole group: 3 nodes, if its pods request as much"]),
        ("1", "2", []),
    ],
)
def test_a_node_for_the_leader_of_a_group_counts_the_whole_group(size: str, cpu: str, costs: list[str]) -> None:
    me = wanting(cpu=cpu)
    me = {**me, "metadata": {**at(me, "metadata"), "annotations": {"leaderworkerset.sigs.k8s.io/size": size}}}
    objects = [node("n", allocatable=SMALL), running("other", "n", "1500m"), me]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    (added,) = (fix for fix in fixes if fix.title.startswith("add a node"))
    assert [*added.costs] == costs


def test_the_stateful_set_of_workers_has_the_size_of_the_group() -> None:
    labels = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    me = {**wanting(cpu="2"), "metadata": {"name": "me", "namespace": "default", "labels": labels}}
    metadata = {"name": "llm-0", "namespace": "default"}
    workers: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 3}}
    objects: list[Manifest] = [node("n", allocatable=SMALL), running("other", "n", "1500m"), workers, me]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    (added,) = (fix for fix in fixes if fix.title.startswith("add a node"))
    assert added.costs == ("for the whole group: 4 nodes, if its pods request as much",)


@pytest.mark.parametrize(
    ("stated", "first"),
    [
        ({}, "set requests.cpu of container main to 2 (LimitRange defaults sets 4)"),
        ({"requests": {"cpu": "4"}}, "add a node with at least 4 CPU free"),
        ({"limits": {"cpu": "4"}}, "add a node with at least 4 CPU free"),
    ],
    ids=["defaulted", "requested", "limited"],
)
def test_a_default_that_no_node_has_is_replaced_before_a_node_is_added(stated: Manifest, first: str) -> None:
    item = {"type": "Container", "defaultRequest": {"cpu": "4"}}
    metadata = {"name": "defaults", "namespace": "default"}
    limits: Manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}}
    template = {"spec": {"containers": [{"name": "main", "image": "i", "resources": stated}]}}
    owned = {"name": "db", "uid": "1"}
    spec = {"selector": {"matchLabels": {"app": "db"}}, "template": template}
    database: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec}
    owners = [{"apiVersion": "apps/v1", "kind": "StatefulSet", **owned, "controller": True}]
    me = wanting(cpu="4")
    me = {**me, "metadata": {**at(me, "metadata"), "ownerReferences": owners}}
    stored = {**database, "metadata": {**owned, "namespace": "default"}}
    assert titles_of(node("n", allocatable=SMALL), limits, stored, me)[0].startswith(first)


@pytest.mark.parametrize(
    "key",
    [
        "disktype",
        "gpu",
        "example.com/instance-type",
        "topology.kubernetes.io/zone",
        "feature.node.kubernetes.io/cpu-avx",
        "eks.amazonaws.com/capacityType",
        "karpenter.sh/capacity-type",
        "topology.ebs.csi.aws.com/zone",
        "nvidia.com/gpu.present",
        "katacontainers.io/kata-runtime",
        "example.com/sandbox",
    ],
)
def test_a_label_of_a_property_is_not_set_by_hand(key: str) -> None:
    runtime: Manifest = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandboxed"},
        "handler": "x",
        "scheduling": {"nodeSelector": {"example.com/sandbox": "true"}},
    }
    titles = titles_of(node("n"), runtime, pod("me", nodeSelector={key: "x"}))
    by_hardware = key.startswith(("feature.node.kubernetes.io/", "nvidia.com/"))  # a pod needs what it selects so
    assert titles[by_hardware] == f"stop requiring {key}=x"
    assert titles[0].startswith("add a node" if by_hardware else "stop requiring")
    assert not [title for title in titles if title.startswith("label")]


@pytest.mark.parametrize(
    ("selector", "is_repeated"),
    [
        ({"nvidia.com/gpu": "true"}, True),
        ({"nvidia.com/gpu.present": "true"}, True),
        ({"nvidia.com/gpu": "a100"}, False),
        ({"nvidia.com/gpu": "true", "nvidia.com/gpu.product": "a100"}, False),
        ({"amd.com/gpu": "true"}, False),
    ],
)
def test_a_label_that_repeats_a_request_is_dropped_first(selector: Manifest, is_repeated: bool) -> None:
    wanted = {"resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}
    gpu_node = node("n", allocatable={**SMALL, "nvidia.com/gpu": "1"})
    titles = titles_of(gpu_node, pod("me", nodeSelector=selector, containers=[{"name": "main", **wanted}]))
    assert titles[0].startswith("stop requiring" if is_repeated else "add a node")


def test_a_requirement_that_admission_adds_again_is_not_dropped() -> None:
    runtime: Manifest = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandboxed"},
        "handler": "x",
        "scheduling": {"nodeSelector": {"example.com/sandbox": "true"}},
    }
    asking = pod("me", runtimeClassName="sandboxed", nodeSelector={"example.com/sandbox": "true"})
    assert titles_of(node("n"), runtime, asking) == ["add a node with label example.com/sandbox=true"]


def test_a_label_of_a_kueue_flavor() -> None:
    group = "kueue.x-k8s.io/v1beta1"
    flavor = {"apiVersion": group, "kind": "ResourceFlavor", "metadata": {"name": "gold"}}
    owners = {
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
    }
    workload: Manifest = {
        "apiVersion": group,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default", **owners},
    }
    asking = pod("me", nodeSelector={"pool": "gold"}, metadata=owners)
    result = titles_of(node("n"), {**flavor, "spec": {"nodeLabels": {"pool": "gold"}}}, workload, asking)
    assert result == ["add a node with label pool=gold"]


def test_requests_of_an_injected_container_are_set_in_its_injector() -> None:
    own = [{"name": "main", "image": "app:1"}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    proxy = {"name": "istio-proxy", "image": "proxy:1", "resources": {"requests": {"cpu": "3"}}}
    web: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": own}}},
    }
    asking = pod("me", labels={"app": "web"}, metadata={"ownerReferences": [owner]}, containers=[*own, proxy])
    titles = titles_of(node("n", allocatable=SMALL), web, asking)
    lowered = "set requests.cpu of injected container istio-proxy to 2"
    assert f"{lowered} by annotation sidecar.istio.io/proxyCPU of the pod template" in titles


def test_requests_at_pod_level_are_lowered_there() -> None:
    resources = {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}
    asking = pod("me", resources=resources, containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}])
    assert "lower requests.cpu of the pod as a whole from 3 to 2" in titles_of(node("n", allocatable=SMALL), asking)


def test_a_label_value_that_others_select_is_not_overwritten() -> None:
    web, asking = node("web", labels={"pool": "web"}), pod("me", nodeSelector={"pool": "db"})
    assert "label web pool=db" in titles_of(web, asking)
    other = pod("other", on="web", nodeSelector={"pool": "web"})
    assert "label web pool=db" not in titles_of(web, other, asking)


def test_a_full_pool_is_not_replaced_by_a_tainted_one() -> None:
    pool = [node("w", allocatable=SMALL), running("other", "w", "2")]
    database = node("db", taints=["role=database:NoSchedule"])
    titles = titles_of(*pool, database, wanting(cpu="1"))
    assert titles[0] == "add a node like w"
    assert not [title for title in titles if "role=database" in title]


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
            {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/instance-type": "m5"},
            {"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m5"},
            (
                "select node.kubernetes.io/instance-type=m5 and kubernetes.io/os=linux instead of "
                "beta.kubernetes.io/instance-type=m5 and beta.kubernetes.io/os=linux"
            ),
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
            {"kubernetes.io/arch": "x86_64"},
            {"kubernetes.io/arch": "amd64"},
            "select kubernetes.io/arch=amd64 instead of kubernetes.io/arch=x86_64",
        ),
        (
            {"kubernetes.io/role": "master"},
            {"node-role.kubernetes.io/master": ""},
            "select node-role.kubernetes.io/master= instead of kubernetes.io/role=master",
        ),
        (
            {"node-role.kubernetes.io/worker": "worker"},
            {"node-role.kubernetes.io/worker": ""},
            "select node-role.kubernetes.io/worker= instead of node-role.kubernetes.io/worker=worker",
        ),
        (
            {"kubernetes.io/hostname": "n"},
            {"kubernetes.io/hostname": "n.example.com"},
            "select kubernetes.io/hostname=n.example.com instead of kubernetes.io/hostname=n",
        ),
        (
            {"kubernetes.io/hostname": "n.example.com"},
            {"kubernetes.io/hostname": "n"},
            "select kubernetes.io/hostname=n instead of kubernetes.io/hostname=n.example.com",
        ),
        (
            {"kubernetes.io/hostname": "n"},
            {"kubernetes.io/hostname": "ip-10-0-0-1"},
            "select kubernetes.io/hostname=ip-10-0-0-1 instead of kubernetes.io/hostname=n",
        ),
        (
            {"topology.kubernetes.io/zone": "1a"},
            {"topology.kubernetes.io/zone": "eu-west-1a"},
            "select topology.kubernetes.io/zone=eu-west-1a instead of topology.kubernetes.io/zone=1a",
        ),
        (
            {"topology.kubernetes.io/zone": "eu-west-1"},
            {"topology.kubernetes.io/zone": "eu-west-1a", "topology.kubernetes.io/region": "eu-west-1"},
            "select topology.kubernetes.io/region=eu-west-1 instead of topology.kubernetes.io/zone=eu-west-1",
        ),
        (
            {"beta.kubernetes.io/arch": "arm64"},
            {"kubernetes.io/arch": "amd64"},
            "add a node with label beta.kubernetes.io/arch=arm64",
        ),
        (
            {"karpenter.k8s.aws/instance-family": "m5"},
            {"eks.amazonaws.com/instance-family": "m5"},
            "select eks.amazonaws.com/instance-family=m5 instead of karpenter.k8s.aws/instance-family=m5",
        ),
        (
            {"karpenter.k8s.aws/instance-family": "m7"},
            {"eks.amazonaws.com/instance-family": "m5"},
            "stop requiring karpenter.k8s.aws/instance-family=m7",
        ),
        (
            {"example.com/team": "a"},
            {"other.io/team": "a", "third.io/team": "b"},
            "label n example.com/team=a",
        ),
        (
            {"example.com/worker": "true"},
            {"other.io/worker": "true"},
            "label n example.com/worker=true",
        ),
    ],
)
def test_a_label_under_its_old_name(wanted: dict[str, str], there: dict[str, str], first: str) -> None:
    assert titles_of(node("n", labels=there), pod("me", nodeSelector=wanted))[0] == first


def test_several_values_in_one_string() -> None:
    zone = "topology.kubernetes.io/zone"
    wanted = {"matchExpressions": [{"key": zone, "operator": "In", "values": ["eu-1a,eu-1b"]}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}
    first, *_ = titles_of(node("n", labels={zone: "eu-1b"}), pod("me", affinity={"nodeAffinity": rules}))
    assert first == f"select {zone} in (eu-1a, eu-1b) instead of {zone}=eu-1a,eu-1b"


def test_a_wildcard_is_replaced_by_the_values_of_nodes() -> None:
    key = "node.kubernetes.io/instance-type"
    wanted = {"matchExpressions": [{"key": key, "operator": "In", "values": ["m6i.*"]}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}
    nodes = [
        node(name, labels={key: kind}) for name, kind in (("n", "m6i.large"), ("o", "m6i.xlarge"), ("p", "c5.large"))
    ]
    first, *_ = titles_of(*nodes, pod("me", affinity={"nodeAffinity": rules}))
    assert first == f"select {key} in (m6i.large, m6i.xlarge) instead of {key}=m6i.*"


def test_a_pod_of_a_queue_controller() -> None:
    gated = pod("me", nodeSelector={"pool": "generall"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    objects = [node("n", labels={"pool": "general"}), gated]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert [(fix.title, fix.certainty.value) for fix in explanation.fixes] == [
        ("select pool=general instead of pool=generall, then wait for Kueue to admit the pod", "partial")
    ]
    assert [each["path"] for change in explanation.fixes[0].changes for each in change.patch] == [
        "/spec/nodeSelector"
    ], "nobody jumps the queue"
    tied = pod("me", nodeSelector={"disk": "ssd"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    explanation = kschedx.explain(
        kschedx.Snapshot.from_objects([node("n", labels={"disk": "hdd"}), tied]), "default/me"
    )
    assert [fix.title for fix in explanation.fixes] == [
        "stop requiring disk=ssd, then wait for Kueue to admit the pod"
    ], "it may not admit the pod while the problem remains"


def test_a_named_node_with_too_little_room() -> None:
    named = {"kubernetes.io/hostname": "n", "kubernetes.io/arch": "arm64"}
    there = node("n", labels={"kubernetes.io/hostname": "n", "kubernetes.io/arch": "amd64"})
    assert titles_of(there, pod("me", nodeSelector=named)) == [
        "stop requiring kubernetes.io/hostname=n, add a node with label kubernetes.io/arch=arm64"
    ]


def test_a_label_that_is_misspelled() -> None:
    nodes = [node("n", labels={"pool": "general"}), node("o", labels={"pool": "gpu"}), FULL]
    assert titles_of(*nodes, pod("me", nodeSelector={"pool": "generall"})) == [
        "select pool=general instead of pool=generall",
        "stop requiring pool=generall",
    ], "the same is shown once, and no fix labels a node with a misspelling"
    zone = "topology.kubernetes.io/zone"
    there = node("n", labels={zone: "eu-1a"})
    wanted = titles_of(there, pod("me", nodeSelector={zone: "eu-1b"}))
    assert wanted == ["add a node in zone eu-1b", f"stop requiring {zone}=eu-1b"], "another zone is no typo"


def beside(app: str, *, key: str = "app") -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {key: app}}}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod("me", affinity=rules)


@pytest.mark.parametrize(
    ("namespace", "asking", "first"),
    [
        ("default", beside("rediss"), "select app=redis instead of app=rediss in podAffinity term 1"),
        ("default", beside("redis", key="App"), "select app=redis instead of App=redis in podAffinity term 1"),
        ("data", beside("redis"), "add namespaces: [data] to podAffinity term 1 (app=redis)"),
        ("default", beside("shop"), "select tier=shop instead of app=shop in podAffinity term 1"),
        ("default", beside("cache"), "make podAffinity term 1 (app=cache) preferred instead of required"),
    ],
)
def test_a_misspelled_pod_selector(namespace: str, asking: Manifest, first: str) -> None:
    there = node("n", labels={"kubernetes.io/hostname": "n"})
    labels = {"app": "redis", "tier": "shop"}
    assert titles_of(there, pod("redis", namespace=namespace, on="n", labels=labels), asking)[0] == first


@pytest.mark.parametrize(
    ("key", "app", "is_offered"),
    [
        ("kubevirt.io/created-by", "u", False),
        ("app.kubernetes.io/component", "affinity-assistant", False),
        ("app.kubernetes.io/component", "other", True),
    ],
)
def test_a_rule_that_a_controller_adds_is_not_changed(key: str, app: str, *, is_offered: bool) -> None:
    machines = [node(name, labels={"kubernetes.io/hostname": name}, unschedulable=name == "m") for name in ("m", "n")]
    titles = titles_of(*machines, pod("there", on="m", labels={key: app}), beside(app, key=key))
    assert any("preferred instead of required" in title for title in titles) is is_offered


@pytest.mark.parametrize(
    ("scope", "own", "is_limited"),
    [
        ({"namespaceSelector": {}}, [], True),
        ({"namespaces": ["data", "default"]}, [], True),
        ({"namespaceSelector": {}}, ["redis-1"], False),
        ({"namespaces": ["default"]}, ["redis-1"], False),
    ],
)
def test_a_rule_about_pods_of_other_namespaces(scope: Manifest, own: list[str], is_limited: bool) -> None:
    """An anti-affinity that applies to other namespaces may be limited, unless the pod's own namespace has a match."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "redis"}}, **scope}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"app": "redis"}
    there = [pod(name, on="n", labels=labels) for name in own]
    others = [pod("redis", namespace="data", on="n", labels=labels)] if "data" in str(scope) or not own else []
    me = pod("me", labels=labels, affinity=rules)
    titles = titles_of(node("n", labels={"kubernetes.io/hostname": "n"}), *there, *others, me)
    assert ("limit podAntiAffinity term 1 (app=redis) to pods of its own namespace" in titles) == is_limited


def test_another_replica_comes_before_a_rule_to_run_beside_it() -> None:
    def owned(kind: str, name: str) -> Manifest:
        return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]}

    def workload(kind: str, name: str, **metadata: object) -> Manifest:
        template = {"metadata": {"labels": {"app": "cache"}}, "spec": at(cache, "spec")}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "cache"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}

    def cluster(kind: str) -> list[Manifest]:
        above = [workload("Deployment", "cache")] if kind == "ReplicaSet" else []
        its = workload(kind, "cache-1", namespace="default", **(owned("Deployment", "cache") if above else {}))
        there = pod("cache-1-a", on="full", labels={"app": "cache"}, metadata=owned(kind, "cache-1"))
        return [*nodes, *above, its, there, beside("cache")]

    cache = pod("cache")
    nodes = [
        node(name, labels={"kubernetes.io/hostname": name}, allocatable={"cpu": "4", "memory": "4Gi", "pods": pods})
        for name, pods in (("full", "1"), ("free", "9"))
    ]
    scaled = "scale Deployment default/cache to 2 replicas, so that one runs beside the pod"
    assert scaled in titles_of(*cluster("ReplicaSet"))
    assert not any(title.startswith("scale ") for title in titles_of(*cluster("StatefulSet"))), "it has state"


def test_only_the_requirement_that_no_node_meets_is_dropped() -> None:
    tpu = node(
        "tpu", labels={"accelerator": "v5", "chips": "2x2"}, allocatable={"cpu": "9", "pods": "9", "x.com/t": "4"}
    )
    small = node("small", allocatable={"cpu": "1", "pods": "9"})
    containers = [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]
    asking = pod("me", containers=containers, nodeSelector={"accelerator": "v5", "chips": "1x1"})
    dropped = [title for title in titles_of(tpu, small, asking) if title.startswith("stop requiring")]
    assert dropped == ["stop requiring chips=1x1"]


def test_a_label_that_only_repeats_the_vendor_of_a_requested_device_is_dropped() -> None:
    gpu = node("gpu", allocatable={"cpu": "9", "pods": "9", "nvidia.com/gpu": "1"})
    containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    first = titles_of(gpu, pod("me", containers=containers, nodeSelector={"accelerator": "nvidia"}))[0]
    assert first == "stop requiring accelerator=nvidia"


def test_taints_of_spot_nodes_in_aks_stay() -> None:
    spot = node("spot", taints=["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"])
    assert titles_of(spot, pod("me")) == [
        "tolerate kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
        "add a node without taint kubernetes.azure.com/scalesetpriority with room for one pod",
    ]


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        ({"memory": "512Gi"}, "set memory of container main to 512Mi, not 512Gi"),
        ({"memory": "1Ti"}, "set memory of container main to 1Gi, not 1Ti"),
        ({"memory": "500Ti"}, "set memory of container main to 500Mi, not 500Ti"),
        ({"cpu": "500"}, "set cpu of container main to 500m, not 500"),
        ({"memory": "32Gi"}, "add a node with at least 32Gi memory free"),
        ({"cpu": "64"}, "add a node with at least 64 CPU free"),
    ],
)
def test_a_request_far_above_every_node(requests: dict[str, str], first: str) -> None:
    assert (
        titles_of(node("n", allocatable={"cpu": "4", "memory": "4Gi", "pods": "10"}), wanting(**requests))[0] == first
    )


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
        f"set priorityClassName: {chosen}, wait for preemption to evict default/one (priority 0) from n"
    )
    assert [change.by for change in fixes[0].changes] == ["", "kube-scheduler"]


def test_the_control_plane_under_its_old_name() -> None:
    label = "node-role.kubernetes.io/control-plane"
    nodes = [node("cp", labels={label: ""}, taints=[CONTROL_PLANE]), node("n")]
    old = "node-role.kubernetes.io/master"
    tolerating = {"key": old, "operator": "Exists", "effect": "NoSchedule"}
    first, *others = titles_of(*nodes, pod("me", nodeSelector={old: ""}, tolerations=[tolerating]))
    assert first == f"tolerate {CONTROL_PLANE}, select {label}= instead of {old}="
    assert others[0] == f"stop requiring {old}="


def test_openshift_adds_the_taint_of_its_masters_again() -> None:
    masters = [node(name, labels={"node.openshift.io/os_id": "rhcos"}, taints=[CONTROL_PLANE]) for name in "ab"]
    first = f"set mastersSchedulable: true in Scheduler cluster, which removes taint {CONTROL_PLANE} from a"
    assert titles_of(*masters, wanting(cpu="1"))[0] == first


def test_no_fix_lowers_requests_below_usage() -> None:
    """A request that fits a node that rejects the pod for other reasons counts; the largest one is proposed."""
    worker = node("n", allocatable={"cpu": "2200m", "memory": "4Gi", "pods": "10"})
    control_plane = node("cp", taints=[CONTROL_PLANE], allocatable={"cpu": "1800m", "memory": "4Gi", "pods": "10"})
    amounts = [title for title in titles_of(worker, control_plane, wanting(cpu="4")) if title.startswith("lower")]
    assert amounts == ["lower requests.cpu of container main from 4000m to 2200m"]


def spread(key: str, **selector: str) -> Manifest:
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": selector}}]}


def apart(kind: str, key: str, **selector: str) -> Manifest:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": selector}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("spec", "fix"),
    [
        (spread("zone", app="me"), f"set topologyKey: {ZONE} instead of zone in spread constraint 1"),
        (spread("node", app="me"), f"set topologyKey: {HOST} instead of node in spread constraint 1"),
        (
            spread("failure-domain.beta.kubernetes.io/zone", app="me"),
            f"set topologyKey: {ZONE} instead of failure-domain.beta.kubernetes.io/zone in spread constraint 1",
        ),
        (
            apart("podAffinity", "hostname", app="me"),
            f"set topologyKey: {HOST} instead of hostname in podAffinity term 1",
        ),
        (apart("podAffinity", HOST, app="mee"), "select app=me instead of app=mee in podAffinity term 1"),
        (spread(ZONE, app="web"), "select app=me instead of app=web in spread constraint 1"),
        ({"nodeSelector": {ZONE: "europe-west4a"}}, f"select {ZONE}=europe-west4-a instead of {ZONE}=europe-west4a"),
        ({"nodeSelector": {"zone": "europe-west4-a"}}, f"select {ZONE}=europe-west4-a instead of zone=europe-west4-a"),
    ],
)
def test_a_wrong_rule_is_corrected_first(spec: Manifest, fix: str) -> None:
    labels = {"topology.ebs.csi.aws.com/zone": "a"}
    nodes = [
        node(name, labels={ZONE: f"europe-west4-{name}", HOST: name, **labels}, taints=taints)
        for name, taints in (("a", []), ("b", ["dedicated=db:NoSchedule"]))
    ]
    web = [pod(f"web-{number}", on="a", labels={"app": "web"}) for number in range(2)]
    me = pod("me", labels={"app": "me"}, spec=spec)
    assert titles_of(*nodes, *web, me)[0] == fix


def test_anti_affinity_may_exempt_the_pods_of_its_own_workload() -> None:
    nodes = [node(name, labels={HOST: name}) for name in "ab"]
    web = [pod(f"web-{name}", on=name, labels={"app": "web"}) for name in "ab"]
    rule = apart("podAntiAffinity", HOST, app="web")
    own = "select app=me instead of app=web in podAntiAffinity term 1"
    me = pod("me", labels={"app": "me"}, spec=rule)
    assert own not in titles_of(*nodes, *web, me)  # a single pod avoids others on purpose
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "me", "uid": "u", "controller": True}
    of_two = {**me, "metadata": {**at(me, "metadata"), "ownerReferences": [owner]}}
    template = {"metadata": {"labels": {"app": "me"}}, "spec": at(me, "spec")}
    replicas: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "me", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "me"}}, "template": template},
    }
    assert any(fix.startswith(own) for fix in titles_of(*nodes, *web, replicas, of_two))
    rules = at(rule, "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    rules.append({**rules[0], "labelSelector": {"matchLabels": {"app": "me"}}})
    assert not [
        each
        for each in titles_of(*nodes, *web, pod("me", labels={"app": "me"}, spec=rule))
        if each.startswith("select")
    ]


def test_a_claim_of_an_ephemeral_volume_is_tried_with_the_uid_that_the_pod_gets() -> None:
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}]
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    me = pod("me", volumes=volumes)
    at(me, "metadata").pop("uid", None)
    first, *_ = titles_of(node("a"), {**made, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}, me)
    assert first == "wait until kube-controller-manager creates claim default/me-data of class fast"


def test_a_spread_constraint_that_counts_an_older_revision() -> None:
    old, new = ({"app": "web", "pod-template-hash": revision} for revision in ("1", "2"))
    spread = {"topologyKey": "host", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    rule = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [node(name, labels={"host": name}) for name in ("a", "b")]
    full = {**FULL, "metadata": {"name": "full", "labels": {"host": "full"}}}
    pods = [pod(f"old-{name}", on=name, labels=old) for name in ("a", "b")]
    added = "add matchLabelKeys: [pod-template-hash] to the spread constraint over host"
    assert added in titles_of(*nodes, full, *pods, pod("me", labels=new, topologySpreadConstraints=[rule]))
    bare = pod("me", labels={"app": "web"}, topologySpreadConstraints=[rule])
    assert added not in titles_of(*nodes, full, *pods, bare)


@pytest.mark.parametrize("revision", [{}, {"pod-template-hash": "2"}], ids=["bare", "of a Deployment"])
def test_more_domains_than_exist_come_first(revision: dict[str, str]) -> None:
    spread = {"topologyKey": "zone", "maxSkew": 1, "minDomains": 3, "whenUnsatisfiable": "DoNotSchedule"}
    rule = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
    pods = [pod(f"on-{each}", on=each, labels={"app": "web"}) for each in ("a1", "a2", "b1")]
    labels = {"app": "web", **revision}
    titles = titles_of(*nodes, *pods, pod("me", labels=labels, topologySpreadConstraints=[rule]))
    assert titles[0] == "lower minDomains over zone from 3 to 2"
    assert titles[-1].startswith("add a node with a new value of label zone")


def test_missing_members_of_a_gang_are_tried() -> None:
    enabled = {"enabled": [{"name": "Coscheduling"}]}
    plugins = {"multiPoint": enabled, "queueSort": {**enabled, "disabled": [{"name": "*"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minMember": 4},
    }
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    gated = pod("b", labels=labels, spec={"schedulingGates": [{"name": "example.com/quota"}]})
    for members, title in (
        ([pod("a", labels=labels), pod("b", labels=labels)], "create 2 more pods of group train"),
        (
            [pod("a", labels=labels), gated],
            "create 2 more pods of group train, and remove the scheduling gates of default/b",
        ),
    ):
        snapshot = kschedx.Snapshot.from_objects([node("n"), group, *members])
        result = kschedx.explain(snapshot, "default/a", config=config)
        fix, *_ = result.fixes
        assert (fix.title, fix.certainty) == (title, "verified")
        assert sum(each.create is not None for each in fix.changes) == 2
        assert result.after_fix(fix).outcome == "Scheduled"


ZONE, TYPE = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
PRODUCT, TPUS = "nvidia.com/gpu.product", "cloud.google.com/gke-tpu-topology"


@pytest.mark.parametrize(
    ("labels", "selector", "first"),
    [
        ({ZONE: "eu-1a", "topology.kubernetes.io/region": "eu"}, {ZONE: "us-1a"}, f"stop requiring {ZONE}=us-1a"),
        ({TYPE: "m5.xlarge"}, {TYPE: "r5.2xlarge"}, f"add a node with label {TYPE}=r5.2xlarge"),
        ({TYPE: "m5.xlarge"}, {TYPE: "Standard_D4s_v3"}, f"stop requiring {TYPE}=Standard_D4s_v3"),
        ({PRODUCT: "Tesla-T4"}, {PRODUCT: "NVIDIA-H100"}, f"add a node with label {PRODUCT}=NVIDIA-H100"),
        ({TPUS: "2x4"}, {TPUS: "4x4"}, f"add a node with label {TPUS}=4x4"),
    ],
    ids=[
        "a zone of another region",
        "a type of the provider",
        "a type of another provider",
        "another GPU",
        "another topology of TPUs",
    ],
)
def test_a_new_node_with_the_property_comes_first(labels: dict[str, str], selector: dict[str, str], first: str) -> None:
    assert titles_of(node("n", labels=labels), pod("me", nodeSelector=selector))[0] == first


@pytest.mark.parametrize(("labels", "key"), [([{ZONE: "a"}, {ZONE: "b"}], ZONE), ([{HOST: "m"}, {HOST: "n"}], HOST)])
def test_a_missing_topology_key_is_replaced_by_an_existing_one(labels: list[dict[str, str]], key: str) -> None:
    nodes = [node(name, labels=own) for name, own in zip("mn", labels, strict=True)]
    constraint = {"maxSkew": 1, "topologyKey": "example.com/room", "whenUnsatisfiable": "DoNotSchedule"}
    first = f"set topologyKey: {key} instead of example.com/room in spread constraint 1"
    assert titles_of(*nodes, pod("me", topologySpreadConstraints=[constraint]))[0] == first


@pytest.mark.parametrize(
    ("topology", "title"),
    [
        ("2x4", "add another TPU node pool of topology 2x4, which is created whole: 2 nodes like n"),
        ("2x2", "add a node like n"),
        ("x", "add a node like n"),
    ],
)
def test_a_tpu_slice_of_several_hosts_is_created_whole(topology: str, title: str) -> None:
    labels = {"cloud.google.com/gke-tpu-topology": topology, "cloud.google.com/gke-tpu-accelerator": "tpu-v5e-slice"}
    full = node("n", labels=labels, allocatable={"cpu": "8", "memory": "32Gi", "pods": "10", "google.com/tpu": "4"})
    requests = {"limits": {"google.com/tpu": "4"}, "requests": {"google.com/tpu": "4"}}
    containers = [{"name": "main", "resources": requests}]
    titles = titles_of(full, pod("other", on="n", containers=containers), pod("me", containers=containers))
    assert title in titles


POOL = "cloud.google.com/gke-nodepool"


@pytest.mark.parametrize(
    ("selector", "title"),
    [
        ({}, "add another TPU node pool of topology 2x4, which is created whole: 2 nodes like n0"),
        ({POOL: "tpu-a"}, "create another TPU node pool, and select it instead of tpu-a, which cannot grow"),
    ],
)
def test_a_full_tpu_slice_names_its_user_and_cannot_grow(selector: dict[str, str], title: str) -> None:
    labels = {"cloud.google.com/gke-tpu-topology": "2x4", POOL: "tpu-a"}
    offered = {"cpu": "8", "memory": "32Gi", "pods": "10", "google.com/tpu": "4"}
    nodes = [node(f"n{number}", labels=labels, allocatable=offered) for number in range(2)]
    requests = {"limits": {"google.com/tpu": "4"}, "requests": {"google.com/tpu": "4"}}
    containers = [{"name": "main", "resources": requests}]
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "t", "controller": True}]
    users = [pod(f"t{number}", on=f"n{number}", containers=containers) for number in range(2)]
    users = [{**user, "metadata": {**at(user, "metadata"), "ownerReferences": owner}} for user in users]
    pending = pod("me", containers=containers, nodeSelector=selector)
    result = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, *users, pending]), "default/me")
    titles = [fix.title for fix in result.fixes]
    assert titles[0] == title
    assert not any(POOL in other for other in titles)
    causes = [cause.text for cause in root_causes(result.diagnosis)]
    assert "TPU slice tpu-a (2x4, 2 nodes) is used by Job default/train" in causes


@pytest.mark.parametrize(
    ("full", "requested", "free", "title"),
    [
        ("mig-1g.5gb", "2", "mig-3g.20gb", "request nvidia.com/mig-3g.20gb instead, which is larger and free on n"),
        ("mig-1g.5gb", "3", "mig-3g.20gb", ""),
        ("mig-3g.20gb", "1", "mig-1g.5gb", ""),
        ("mig-1g.20gb", "1", "mig-2g.10gb", ""),
        ("gpu", "1", "mig-1g.5gb", ""),
    ],
)
def test_a_used_up_mig_profile_names_free_devices_of_others(full: str, requested: str, free: str, title: str) -> None:
    profiles = {f"nvidia.com/{full}": requested, f"nvidia.com/{free}": "2"}
    partitioned = node("n", allocatable={"cpu": "8", "memory": "32Gi", "pods": "10", **profiles})
    devices = {f"nvidia.com/{full}": requested}
    containers = [{"name": "main", "resources": {"limits": devices, "requests": devices}}]
    objects = [partitioned, pod("other", on="n", containers=containers), pod("me", containers=containers)]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    texts = [cause.text for cause in root_causes(result.diagnosis)]
    assert (f"n has 2 nvidia.com/{free} free" in texts) is (full != "gpu")
    larger = [fix.title for fix in result.fixes if "which is larger" in fix.title]
    assert larger == ([title] if title else [])


@pytest.mark.parametrize(("topology", "hosts"), [("2x4", 2), ("16x20x28", 2240), ("256x256", 0), ("2xx4", 0), ("", 0)])
def test_a_topology_that_no_tpu_slice_has_counts_no_nodes(topology: str, hosts: int) -> None:
    labels = {"cloud.google.com/gke-tpu-topology": topology}
    [read] = Snapshot.from_objects([node("n", allocatable={"google.com/tpu": "4"}, labels=labels)]).cluster.nodes
    assert hosts_of_slice(read) == hosts


MAX_SIZE = "cluster-api-autoscaler-node-group-max-size"


def test_the_machine_set_of_a_full_node_is_scaled() -> None:
    annotations = {"machine.openshift.io/machine": "machines/pool-a-x2k4p"}
    full = node("n", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"})
    full = {**full, "metadata": {"name": "n", "annotations": annotations}}
    machine_set: Manifest = {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": (metadata := {"name": "pool-a", "namespace": "machines"}),
        "spec": {"replicas": 3},
    }
    fixes = titles_of(full, machine_set, running("other", "n", "1500m"), wanting(cpu="1"))
    assert fixes[0] == "add a node like n: scale MachineSet machines/pool-a from 3 to 4"
    for group, setting in (
        ("machine.openshift.io", "maxReplicas of the MachineAutoscaler"),
        ("cluster.x-k8s.io", f"annotation cluster.x-k8s.io/{MAX_SIZE}"),
    ):
        limited: Manifest = {**machine_set, "metadata": {**metadata, "annotations": {f"{group}/{MAX_SIZE}": "3"}}}
        fixes = titles_of(full, limited, running("other", "n", "1500m"), wanting(cpu="1"))
        raised = f"raise {setting} of MachineSet machines/pool-a from 3, which it has reached, to 4"
        assert fixes[0] == f"add a node like n: {raised}"
        message = "pod didn't trigger scale-up: 1 max node group size reached"
        refused = reported("cluster-autoscaler", "NotTriggerScaleUp", message, pod="default/me")
        assert titles_of(full, limited, refused, running("other", "n", "1500m"), wanting(cpu="1"))[0] == fixes[0]
        unserved: Manifest = {
            "apiVersion": "autoscaling.openshift.io/v1beta1",
            "kind": "MachineAutoscaler",
            "metadata": metadata,
        }
        fixes = titles_of(full, limited, unserved, running("other", "n", "1500m"), wanting(cpu="1"))
        assert fixes[0] == "add a node like n: scale MachineSet machines/pool-a from 3 to 4"
    lacking = {**machine_set, "status": {"replicas": 3, "readyReplicas": 2}}
    fixes = titles_of(full, lacking, running("other", "n", "1500m"), wanting(cpu="1"))
    assert fixes[0] == "repair or wait for the node that MachineSet machines/pool-a lacks: 2 of 3 machines ready"


BY_DEPLOYMENT = {"cluster.x-k8s.io/deployment-name": "pool"}
NO_QUOTA: Manifest = {"type": "InfrastructureReady", "status": "False", "message": "QuotaExceeded: cores"}


@pytest.mark.parametrize(
    ("group", "labels", "status", "is_named"),
    [
        ("machine.openshift.io", {}, {"errorMessage": "QuotaExceeded: cores"}, True),
        ("cluster.x-k8s.io", BY_DEPLOYMENT, {"failureMessage": "QuotaExceeded: cores"}, True),
        ("cluster.x-k8s.io", BY_DEPLOYMENT, {"conditions": [NO_QUOTA]}, True),
        ("cluster.x-k8s.io", BY_DEPLOYMENT, {"conditions": [NO_QUOTA], "nodeRef": {"name": "n"}}, False),
        ("cluster.x-k8s.io", BY_DEPLOYMENT, {"conditions": [{**NO_QUOTA, "severity": "Error"}]}, True),
        ("cluster.x-k8s.io", BY_DEPLOYMENT, {"conditions": [{**NO_QUOTA, "severity": "Info"}]}, False),
        ("cluster.x-k8s.io", {"cluster.x-k8s.io/deployment-name": "other"}, {"conditions": [NO_QUOTA]}, False),
    ],
)
def test_a_machine_that_has_no_node_is_repaired_before_another_is_added(
    group: str, labels: Manifest, status: Manifest, *, is_named: bool
) -> None:
    is_of_openshift = group.startswith("machine")
    owner = {"cluster.x-k8s.io/cluster-namespace": "m", "cluster.x-k8s.io/owner-name": "pool-x7k2p"}
    annotations = {"machine.openshift.io/machine": "m/pool-a"} if is_of_openshift else owner
    full = node("n", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"})
    full = {**full, "metadata": {"name": "n", "annotations": annotations}}
    kind = "MachineSet" if is_of_openshift else "MachineDeployment"
    named: Manifest = {"name": "pool", "namespace": "m"}
    spec, counts = {"replicas": 2}, {"readyReplicas": 1}
    api = f"{group}/v1beta1"
    made: Manifest = {"apiVersion": api, "kind": kind, "metadata": named, "spec": spec, "status": counts}
    broken = {**named, "name": "pool-b", "labels": labels}
    machine: Manifest = {"apiVersion": api, "kind": "Machine", "metadata": broken, "status": status}
    fixes = titles_of(full, made, machine, running("other", "n", "1500m"), wanting(cpu="1"))
    assert (fixes[0] == "repair machine pool-b: QuotaExceeded: cores") is is_named


@pytest.mark.parametrize(
    ("labels", "taints", "replicas", "annotation", "is_scaled"),
    [
        ({"role": "infra"}, [], 0, "owner", True),
        ({}, [], 0, "owner", False),
        ({"role": "infra"}, [{"key": "gpu", "effect": "NoSchedule"}], 0, "owner", False),
        ({"role": "infra"}, [], 1, "owner", False),
        ({"role": "infra"}, [], 0, "capacity.cluster-autoscaler.kubernetes.io/labels", True),
        ({"role": "infra"}, [], 0, "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size", False),
        ({"role": "infra"}, [], 0, "machine.openshift.io/cluster-api-autoscaler-node-group-max-size", False),
    ],
)
def test_the_first_machine_of_a_set_that_is_scaled_to_zero(
    labels: dict[str, str], taints: list[Manifest], replicas: int, annotation: str, is_scaled: bool
) -> None:
    machine_set: Manifest = {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": "infra", "namespace": "machines", "annotations": {annotation: "3"}},
        "spec": {"replicas": replicas, "template": {"spec": {"metadata": {"labels": labels}, "taints": taints}}},
    }
    first = titles_of(node("n"), machine_set, pod("me", nodeSelector={"role": "infra"}))[0]
    scaled = "scale MachineSet machines/infra from 0 to 1"
    assert first == (scaled if is_scaled else "label n role=infra")


@pytest.mark.parametrize(("ready", "is_repaired"), [({}, True), ({"readyReplicas": 1}, False)])
def test_the_machines_of_a_pool_without_any_node_are_repaired(ready: dict[str, int], *, is_repaired: bool) -> None:
    named: Manifest = {"name": "infra", "namespace": "machines"}
    api = "machine.openshift.io/v1beta1"
    labels: Manifest = {"role": "infra"}
    spec = {"replicas": 2, "template": {"spec": {"metadata": {"labels": labels}}}}
    machine_set: Manifest = {"apiVersion": api, "kind": "MachineSet", "metadata": named, "spec": spec}
    machine_set |= {"status": {"replicas": 2, **ready}}
    broken: Manifest = {"metadata": {**named, "name": "infra-b"}, "status": {"errorMessage": "no such image"}}
    master = node("n", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])
    machine: Manifest = {"apiVersion": api, "kind": "Machine", **broken}
    first = titles_of(master, machine_set, machine, pod("me", nodeSelector=labels))[0]
    assert (first == "repair machine infra-b: no such image") is is_repaired


@pytest.mark.parametrize(
    ("label", "is_copied"),
    [("node-role.kubernetes.io/infra", True), ("team.node-restriction.kubernetes.io/infra", True), ("infra", False)],
)
def test_cluster_api_copies_only_some_labels_of_a_machine_to_its_node(label: str, is_copied: bool) -> None:
    deployment: Manifest = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {"name": "infra", "namespace": "machines"},
        "spec": {"replicas": 0, "template": {"metadata": {"labels": {label: "yes"}}}},
    }
    titles = titles_of(node("n"), deployment, pod("me", nodeSelector={label: "yes"}))
    assert ("scale MachineDeployment machines/infra from 0 to 1" in titles) is is_copied


def test_bytes_are_lowered_to_round_quantities() -> None:
    large = node("n", allocatable={"cpu": "4", "memory": "32396108Ki", "pods": "10"})
    assert "lower requests.memory of container main from 50Gi to 30Gi" in titles_of(large, wanting(memory="50Gi"))


def test_a_host_name_without_its_leading_zero() -> None:
    hosts = [node(name, labels={HOST: name}) for name in ("worker-1", "worker-2")]
    first = f"select {HOST}=worker-1 instead of {HOST}=worker-01"
    assert titles_of(*hosts, pod("me", nodeSelector={HOST: "worker-01"}))[0] == first


def test_a_misspelled_pool_that_is_full_gets_a_node() -> None:
    """No fix adds a toleration for another pool."""
    full = node("a", labels={"pool": "db"}, allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"})
    other = node("b", labels={"pool": "web"}, allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"})
    resources = {"requests": {"cpu": "600m"}}
    runs = pod("runs", on="a", containers=[{"name": "main", "image": "x", "resources": resources}])
    me = pod("me", nodeSelector={"pool": "dbb"}, containers=[{"name": "main", "image": "x", "resources": resources}])
    assert titles_of(full, other, runs, me)[0] == "select pool=db instead of pool=dbb, add a node like a"


def test_a_pod_for_the_former_control_plane_tolerates_the_present_one() -> None:
    former, key = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
    here = node("cp", labels={key: ""}, taints=[f"{key}:NoSchedule"])
    tolerations = [{"key": former, "operator": "Exists", "effect": "NoSchedule"}]
    first = titles_of(here, pod("me", nodeSelector={former: ""}, tolerations=tolerations))[0]
    assert first == f"tolerate {key}:NoSchedule, select {key}= instead of {former}="


def test_a_pod_for_the_control_plane_tolerates_the_value_of_its_taint() -> None:
    here, key = node("n", taints=["node-role.kubernetes.io/control-plane=true:NoSchedule"]), CONTROL_PLANE.split(":")[0]
    first = titles_of(here, pod("me", tolerations=[{"key": key, "effect": "NoSchedule"}]))[0]
    assert first == f"tolerate {key}=true:NoSchedule"


def test_a_node_that_is_repaired_comes_before_the_taint_of_another_pool() -> None:
    nodes = [node("own", unschedulable=True), node("spot", taints=["spot=true:NoSchedule"])]
    assert titles_of(*nodes, pod("me")) == ["uncordon own"]


def test_a_new_node_is_like_most_full_nodes() -> None:
    arch = "kubernetes.io/arch"
    nodes = [
        node(name, allocatable=SMALL, labels={arch: "arm64" if name == "arm" else "amd64"})
        for name in ("arm", "b", "c")
    ]
    held = [running("1", "arm", "1800m"), running("2", "b", "2"), running("3", "c", "2")]
    titles = titles_of(*nodes, *held, wanting(cpu="1500m"))
    assert titles[0] == "add a node like b"


@pytest.mark.parametrize(
    ("taken", "title"),
    [
        ("2026-01-02T10:05:00Z", "wait until default/ending on a has terminated"),
        (
            "2026-01-02T11:00:00Z",
            "find out why the kubelet has not ended default/ending on a, or force the deletion",
        ),
    ],
)
def test_terminating_pods_on_any_node_are_awaited(taken: str, title: str) -> None:
    """No kubelet takes that long: the grace period ended long before the cluster was read."""
    ending, me = running("ending", "a", "2"), wanting(cpu="1")
    at(ending, "metadata")["deletionTimestamp"] = "2026-01-02T10:00:00Z"
    at(me, "metadata")["creationTimestamp"] = taken
    held = [ending, running("other", "b", "1900m")]
    titles = titles_of(node("a", allocatable=SMALL), node("b", allocatable=SMALL), *held, me)
    assert titles[0] == title


def test_only_the_overdue_of_several_terminating_pods_are_not_awaited() -> None:
    me, late, ending = wanting(cpu="2"), running("late", "a", "1"), running("ending", "a", "1")
    at(me, "metadata")["creationTimestamp"] = "2026-01-02T11:00:00Z"
    at(late, "metadata")["deletionTimestamp"] = "2026-01-02T10:00:00Z"
    at(ending, "metadata")["deletionTimestamp"] = "2026-01-02T11:00:00Z"
    [first, *_] = titles_of(node("a", allocatable=SMALL), late, ending, me)
    assert first == "find out why the kubelet has not ended default/late on a, or force the deletion"


@pytest.mark.parametrize(("scheduler", "moves"), [("default-scheduler", True), ("volcano", False)])
def test_only_pods_of_the_same_scheduler_are_moved(scheduler: str, moves: bool) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
    moving = running("x-1", "a", "1")
    at(moving, "metadata")["ownerReferences"] = [owner]
    at(moving, "spec")["schedulerName"] = scheduler
    nodes = [node(name, allocatable=SMALL) for name in "ab"]
    titles = titles_of(*nodes, moving, running("other", "b", "1"), wanting(cpu="2"))
    assert ("move default/x-1 from a to b" in titles) is moves


@pytest.mark.parametrize(
    ("kinds", "moves"),
    [
        (["ReplicaSet"], ["move default/x-0 from a to b"]),
        (["ReplicaSet", "StatefulSet"], ["move default/x-0 from a to b and default/x-1 from a to b"]),
        (["DaemonSet"], []),
        (["ReplicaSet", "DaemonSet"], []),
    ],
)
def test_pods_that_use_the_host_ports_are_moved_together(kinds: list[str], moves: list[str]) -> None:
    ports = [{"containerPort": 80, "hostPort": 8080 + number} for number in range(len(kinds))]
    holders = []
    for number, kind in enumerate(kinds):
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": str(number), "controller": True}
        holder = pod(f"x-{number}", on="a", containers=[{"name": "main", "ports": [ports[number]]}])
        at(holder, "metadata")["ownerReferences"] = [owner]
        holders.append(holder)
    me = pod("me", containers=[{"name": "main", "ports": ports}], nodeSelector={"kubernetes.io/hostname": "a"})
    nodes = [node(name, labels={"kubernetes.io/hostname": name}, allocatable=SMALL) for name in "ab"]
    assert [title for title in titles_of(*nodes, *holders, me) if title.startswith("move")] == moves


def test_room_on_a_node_with_free_ports_comes_before_ports_that_are_in_use() -> None:
    port = {"containerPort": 80, "hostPort": 8080}
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
    holders = [pod(f"d-{on}", on=on, containers=[{"name": "main", "ports": [port]}]) for on in "abcd"]
    moving = running("x-1", "e", "2")
    for each, its_owner in [*((holder, daemon) for holder in holders), (moving, owner)]:
        at(each, "metadata")["ownerReferences"] = [its_owner]
    me = pod("me", containers=[{"name": "main", "ports": [port], "resources": {"requests": {"cpu": "2"}}}])
    titles = titles_of(*(node(name, allocatable=SMALL) for name in "abcde"), *holders, moving, me)
    assert [title for title in titles if title.startswith("move")] == ["move default/x-1 from e to a"]


@pytest.mark.parametrize("operator", ["In", "Exists", "NotIn"])
def test_a_taint_of_a_pool_that_the_affinity_chooses_is_tolerated_and_not_removed(operator: str) -> None:
    label = {"nvidia.com/gpu.present": "true"}
    gpus = node("n", labels=label, taints=["nvidia.com/gpu:NoSchedule"], allocatable={**SMALL, "nvidia.com/gpu": "4"})
    values = {"In": ["true"], "Exists": [], "NotIn": ["false"]}[operator]
    term = {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": operator, "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    titles = titles_of(gpus, FULL, pod("me", affinity=affinity))
    assert ("tolerate nvidia.com/gpu:NoSchedule" in titles) is (operator != "NotIn")
    assert not [title for title in titles if title.startswith("remove taint")]


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "topology.topolvm.io/node"])
def test_a_new_node_has_no_disks_of_another(key: str) -> None:
    nodes = [node(name, labels={key: name, "kubernetes.io/hostname": name}, allocatable=SMALL) for name in "ab"]
    local = [claim("data", volume="v"), volume("v", claim_ref="data", node_affinity=in_term(key, "a"))]
    wants = wanting(cpu="1")
    at(wants, "spec")["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, *local, running("x", "a", "2"), wants]), "me").fixes
    assert not [fix.title for fix in fixes if fix.title.startswith("add a node")]


def test_no_node_attaches_more_volumes_than_its_driver_can() -> None:
    names = [f"v{number}" for number in range(3)]
    volumes = [volume(name, claim_ref=name, csi=True) for name in names]
    claims = [claim(name, volume=name) for name in names]
    own = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    driver = {"name": DRIVER, "nodeID": "n", "allocatable": {"count": 2}}
    limit: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n"},
        "spec": {"drivers": [driver]},
    }
    own_pod = pod("me", volumes=own)
    assert not titles_of(node("n"), limit, *volumes, *claims, own_pod)
    without_limit = node("lost", taints=["node.kubernetes.io/unreachable:NoSchedule"])
    assert titles_of(node("n"), without_limit, limit, *volumes, *claims, own_pod) == ["repair lost: it is unreachable"]


def test_pods_that_move_are_not_deleted_as_another_fix() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
    moving = running("x-1", "a", "1")
    at(moving, "metadata")["ownerReferences"] = [owner]
    nodes = [node("a", allocatable=SMALL), node("b", allocatable=SMALL)]
    held = [moving, running("y", "b", "1"), wanting(cpu="1500m")]
    titles = titles_of(*nodes, *held)
    assert "move default/x-1 from a to b" in titles
    assert not [title for title in titles if title.startswith("delete default/x-1")]


def test_a_machine_of_another_architecture_is_named_as_a_cost() -> None:
    web, batch = ({"kubernetes.io/arch": arch, "pool": pool} for arch, pool in (("amd64", "web"), ("arm64", "batch")))
    nodes = [node("a", labels=web), node("b", labels=web), node("c", labels=batch)]
    full = [running("1", "a", "64"), running("2", "b", "64")]
    me = wanting(cpu="1")
    at(me, "spec")["nodeSelector"] = {"pool": "web"}
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, *full, me]), "default/me").fixes
    costs = {fix.title: fix.costs for fix in fixes}
    architecture = "check that its image runs on arm64: most nodes have another architecture"
    assert architecture in costs["stop requiring pool=web"]


def test_a_pod_that_selects_a_pool_of_devices_tolerates_its_taint() -> None:
    gpu = node(
        "gpu",
        allocatable={**SMALL, "nvidia.com/gpu": "1"},
        labels={"pool": "gpu"},
        taints=["nvidia.com/gpu:NoSchedule"],
    )
    me = pod("me", spec={"nodeSelector": {"pool": "gpu"}})
    titles = titles_of(gpu, node("web", labels={"pool": "web"}), me)
    assert titles[0] == "tolerate nvidia.com/gpu:NoSchedule"
    assert not [title for title in titles if title.startswith("label ")], "the pool of the label exists"


def test_a_full_pool_is_not_extended_by_a_label() -> None:
    nodes = [node("db", allocatable=SMALL, labels={"role": "database"}), node("web", allocatable=SMALL)]
    me = wanting(cpu="1")
    at(me, "spec")["nodeSelector"] = {"role": "database"}
    titles = titles_of(*nodes, running("other", "db", "2"), me)
    assert titles[0] == "add a node like db"
    assert not [title for title in titles if title.startswith("label ")]


@pytest.mark.parametrize(
    ("group", "first"),
    [("gke-prod-hot-1a2b-grp", "add a node"), ("gke-prod-cold-1a2b-grp", "select cloud.google.com/gke-nodepool=cold")],
)
def test_an_empty_pool_that_the_autoscaler_lists_is_not_replaced_by_the_only_other(group: str, first: str) -> None:
    sizes = "{cloudProviderTarget: 0, minSize: 0, maxSize: 3}"
    status = autoscaler_status(f"autoscalerStatus: Running\nnodeGroups:\n- name: {group}\n  health: {sizes}\n")
    key = "cloud.google.com/gke-nodepool"
    cold = node("n", labels={key: "cold"}, providerID="gce://p/z/n")
    waiting = pod("me", nodeSelector={key: "hot"})
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([status, cold, waiting]), "default/me").fixes
    assert fixes[0].title.startswith(first)


def of_pool(name: str, pool: str, version: str, key: str = "pool", **spec: Any) -> Manifest:
    each = node(name, labels={key: pool}, allocatable=SMALL, **spec)
    return {**each, "status": {**at(each, "status"), "nodeInfo": {"kubeletVersion": version}}}


@pytest.mark.parametrize(
    ("key", "version", "is_cordoned", "first"),
    [
        ("pool", "v1.34.3", True, "select pool=new instead of pool=old, whose nodes are all cordoned and older"),
        ("eks.amazonaws.com/nodegroup", "v1.35.1", True, "select eks.amazonaws.com/nodegroup=new instead of"),
        ("pool", "v1.36.0", True, "uncordon o"),
        ("disk", "v1.34.3", True, "uncordon o"),
        ("pool", "v1.34.3", False, "add a node like o"),
    ],
    ids=["an upgrade", "a provider's pool", "the same version", "another property", "not cordoned"],
)
def test_a_pool_that_an_upgrade_replaces(key: str, version: str, is_cordoned: bool, first: str) -> None:
    cordon = {"unschedulable": True} if is_cordoned else {}
    old, new = of_pool("o", "old", version, key, **cordon), of_pool("n", "new", "v1.36.1", key)
    me = {**wanting(cpu="1"), "spec": {**at(wanting(cpu="1"), "spec"), "nodeSelector": {key: "old"}}}
    others = [] if is_cordoned else [running("x", "o", "1500m")]
    assert titles_of(old, new, *others, me)[0].startswith(first)


def test_requests_of_several_containers_are_lowered_to_one_level() -> None:
    sizes = {"a": "2", "b": "2", "c": "100m"}
    containers = [{"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in sizes.items()]
    title = "lower requests.cpu of containers a and b from 2000m to 950m"
    assert title in titles_of(node("n", allocatable=SMALL), pod("me", containers=containers))


def test_a_pod_that_outranks_others_preempts_them_after_the_change() -> None:
    high = {**wanting(cpu="1"), "spec": {**at(wanting(cpu="1"), "spec"), "nodeSelector": {"a": "b"}, "priority": 9}}
    nodes = [node("n", labels={"a": "c"}, allocatable=SMALL), running("low", "n", "1500m")]
    wait = "wait for preemption to evict default/low (priority 0) from n"
    assert f"stop requiring a=b, {wait}" in titles_of(*nodes, high)
    equal = {**high, "spec": {**at(high, "spec"), "priority": 0}}
    assert not any(wait in title for title in titles_of(*nodes, equal))


@pytest.mark.parametrize(("others", "first"), [("cpu", "move default/web from g to w"), (GPU, "add a node like g")])
def test_pods_without_devices_leave_a_node_for_those_that_request_some(others: str, first: str) -> None:
    room = {"memory": "8Gi", "pods": "10"}
    gpus = node("g", allocatable={"cpu": "4", GPU: "4", **room})
    plain = node("w", allocatable={"cpu": "4", **({GPU: "1"} if others == GPU else {}), **room})
    requests = {"cpu": "3500m", **({GPU: "1"} if others == GPU else {})}
    web = pod("web", on="g", metadata={"ownerReferences": OF_REPLICA_SET}, containers=asking_for(requests))
    assert titles_of(gpus, plain, web, wanting(**{"cpu": "2", GPU: "2"}))[0] == first


@pytest.mark.parametrize(
    ("key", "titles"),
    [
        ("unreachable", ["repair b: it is unreachable", "stop requiring zone=b", "add a node like b"]),
        ("not-ready", ["repair b: it is NotReady", "stop requiring zone=b"]),
    ],
)
def test_only_a_node_that_may_be_gone_is_replaced(key: str, titles: list[str]) -> None:
    nodes = [
        node("a", labels={"zone": "a"}),
        node("b", labels={"zone": "b"}, taints=[f"node.kubernetes.io/{key}:NoSchedule"]),
    ]
    assert titles_of(*nodes, pod("me", nodeSelector={"zone": "b"})) == titles


def test_a_broken_node_is_repaired_before_it_is_uncordoned() -> None:
    broken = node("n", unschedulable=True, taints=["node.kubernetes.io/not-ready:NoSchedule"])
    answer = kschedx.explain(kschedx.Snapshot.from_objects([broken, pod("me")]), "default/me")
    assert answer.fixes[0].title == "repair n: it is NotReady, then uncordon n"
    assert because(answer.diagnosis) == ("n is not ready",)


def test_the_repair_of_a_node_is_the_last_part_of_a_title() -> None:
    broken = node("n", labels={"disk": "hdd"}, taints=["node.kubernetes.io/unreachable:NoSchedule"])
    titles = titles_of(broken, pod("me", nodeSelector={"disk": "ssd"}))
    assert "stop requiring disk=ssd, repair n: it is unreachable" in titles


def test_an_add_on_that_adds_a_resource_is_set_up_first() -> None:
    wanted = wanting(**{"vpc.amazonaws.com/PrivateIPv4Address": "1"})
    first = kschedx.explain(kschedx.Snapshot.from_objects([node("n"), wanted]), "default/me").fixes[0]
    assert first.title == 'set enable-windows-ipam: "true" in ConfigMap kube-system/amazon-vpc-cni'


def test_a_repaired_node_confirms_deletions_by_itself() -> None:
    """A pod that runs on the unreachable node as well needs its predecessor's deletion to be forced."""
    lost = ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    old = running("old", "n", "2")
    old["metadata"] = {**at(old, "metadata"), "deletionTimestamp": "2026-01-01T00:00:00Z"}
    nodes = [node("n", allocatable=SMALL, taints=lost), old]
    me = wanting(cpu="2")
    assert titles_of(*nodes, me)[0] == "repair n: it is unreachable, wait until default/old on n has terminated"
    me["spec"] = {**at(me, "spec"), "tolerations": [{"operator": "Exists"}]}
    assert titles_of(*nodes, me)[0].startswith("force-delete default/old: the kubelet of n does not answer")


@pytest.mark.parametrize(("kubelet", "is_offered"), [("v1.24.3", False), ("v1.26.0", True), ("", True)])
def test_a_field_that_an_old_api_server_drops_is_not_set(kubelet: str, *, is_offered: bool) -> None:
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**rule, "labelSelector": {"matchLabels": {"app": "web"}}}]
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}, taints=["team=x:NoSchedule"])]
    for each in nodes:
        at(each, "status")["nodeInfo"] = {"kubeletVersion": kubelet}
    labels = {"app": "web"}
    runs = pod("web", on="a", labels=labels)
    titles = titles_of(*nodes, runs, pod("me", labels=labels, topologySpreadConstraints=spread))
    assert any("nodeTaintsPolicy" in title for title in titles) is is_offered


@pytest.mark.parametrize("above", ["", "Thing"])
def test_a_job_of_a_custom_resource_gets_a_toleration(above: str) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": above, "name": "train", "uid": "t", "controller": True}
    by = {"apiVersion": "batch/v1", "kind": "Job", "name": "train-1", "uid": "j", "controller": True}
    template = {"spec": {"containers": asking_for({"cpu": "1"}), "restartPolicy": "Never"}}
    metadata = {"name": "train-1", "namespace": "default", "uid": "j", "ownerReferences": [owner] if above else []}
    job: Manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    mine = wanting(cpu="1")
    at(mine, "metadata")["ownerReferences"] = [by]
    assert titles_of(node("n", taints=["team=x:NoSchedule"]), job, mine)[0] == "tolerate team=x:NoSchedule"


@pytest.mark.parametrize("maximum", ["", "3"])
def test_a_further_machine_of_a_pool_is_added_by_a_command(maximum: str) -> None:
    full = node("n", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"})
    owner = {"cluster.x-k8s.io/cluster-namespace": "m", "cluster.x-k8s.io/owner-name": "pool-x7k2p"}
    at(full, "metadata")["annotations"] = owner
    limit = {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": maximum} if maximum else {}
    pool: Manifest = {"name": "pool", "namespace": "m", "annotations": limit}
    machines: Manifest = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": pool}
    machines |= {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    objects = [full, machines, running("other", "n", "1500m"), wanting(cpu="1")]
    fix = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes[0]
    assert fix.title == "add a node like n: scale MachineDeployment m/pool from 1 to 2"
    scaled = ("kubectl scale machinedeployment pool -n m --replicas=2",)
    assert fix.commands == (() if maximum else scaled)  # its autoscaler would take the machine back
