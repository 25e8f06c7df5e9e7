"""Causes outside the pod and its nodes, such as namespaces and controllers. Each is named, and the expert's fix comes
first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kschedx
from kschedx.controllers.states import headline
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.events import extender_failure
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.group_scaling import GroupScaling
from kschedx.kube.workloads import has_template
from kschedx.render.fixes import fix_views
from kschedx.render.outcome import causes, roots
from tests.builders import Manifest, at, autoscaler_status, node, pod
from tests.command import kschedx as run
from tests.device_builders import DRIVER, allocated, claim, claiming, device, device_class, request, resource_slice
from tests.storage_builders import DRIVER as DISK
from tests.storage_builders import claim as volume_claim
from tests.storage_builders import in_term, storage_class, volume

ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
SINCE = {"creationTimestamp": "2026-01-01T00:00:00Z"}
AZURE = "k8s.io_cluster-autoscaler_node-template"
TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def explained(*objects: Manifest, **options: Any) -> Explanation:
    return kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me", **options)


def titles(*objects: Manifest, **options: Any) -> list[str]:
    return [fix.title for fix in explained(*objects, **options).fixes]


def asking(name: str, on: str | None = None, **requests: str) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": requests}}])


def namespaced(name: str, **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(("labels", "is_named"), [({}, True), ({"team": "platform"}, False)])
def test_a_namespace_that_a_term_does_not_select(labels: dict[str, str], is_named: bool) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "redis"}}, "topologyKey": "kubernetes.io/hostname"}
    term |= {"namespaceSelector": {"matchLabels": {"team": "platform"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    redis = pod("redis", namespace="data", labels={"app": "redis"}, on="a")
    cluster = [node("a", labels={"kubernetes.io/hostname": "a"}), namespaced("data", **labels), namespaced("default")]
    result = explained(*cluster, redis, pod("me", affinity=affinity))
    if is_named:
        selects = "podAffinity term 1 selects pods only in namespaces with team=platform"
        run = "pods app=redis run in namespace data"
        assert roots(Diagnosis(result.cycle)) == (f"{selects}; {run}",)
        assert result.fixes[0].title == "add namespaces: [data] to podAffinity term 1 (app=redis)"
    else:
        assert result.outcome == "Scheduled"


def test_a_term_that_names_other_namespaces_than_that_of_its_pods() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "redis"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term | {"namespaces": ["caches"]}]}}
    redis = pod("redis", labels={"app": "redis"}, on="a")
    result = explained(node("a", labels={"kubernetes.io/hostname": "a"}), redis, pod("me", affinity=affinity))
    selects = "podAffinity term 1 selects pods only in namespace caches; pods app=redis run in namespace default"
    assert roots(Diagnosis(result.cycle)) == (selects,)
    assert result.fixes[0].title == "set namespaces: [default] in podAffinity term 1 (app=redis)"


@pytest.mark.parametrize("field", [{"namespaces": ["default"]}, {"namespaceSelector": {}}])
def test_an_anti_affinity_of_another_namespace_is_named(field: dict[str, Any]) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "api"}}, "topologyKey": "kubernetes.io/hostname", **field}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    theirs = pod("api", namespace="prod", labels={"app": "api"}, on="a", affinity=affinity)
    me = pod("me", labels={"app": "api"})
    spaces = [namespaced("prod"), namespaced("default")]
    result = explained(node("a", labels={"kubernetes.io/hostname": "a"}), *spaces, theirs, me)
    by = f"the anti-affinity of prod/api covers namespace default by its {next(iter(field))}"
    assert roots(Diagnosis(result.cycle)) == (by,)


@pytest.mark.parametrize(("owner", "is_named"), [("web", True), ("me", False)])
def test_pods_of_another_workload_that_a_spread_counts_are_named(owner: str, is_named: bool) -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}

    def of(name: str, workload: str, **more: Any) -> Manifest:
        controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-7f", "uid": "u"}
        labels = {"app": "web", "pod-template-hash": "7f"}
        return pod(name, labels=labels, metadata={"ownerReferences": [{**controller, "controller": True}]}, **more)

    cluster = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}, unschedulable=True)]
    me = of("me", "me", topologySpreadConstraints=[spread])
    result = explained(*cluster, of("other", owner, on="a"), me)
    counted = ("the spread constraint over zone also counts 1 pod of Deployment web",)
    assert roots(Diagnosis(result.cycle)) == (counted if is_named else ())


@pytest.mark.parametrize(
    ("modes", "node_affinity", "is_held"),
    [
        (["ReadWriteOnce"], {"node_affinity": in_term(ZONE, "a")}, True),
        (["ReadWriteMany"], {"node_affinity": in_term(ZONE, "a")}, False),
        (["ReadWriteOnce"], {}, False),  # a share of a file server is not attached
    ],
)
@pytest.mark.parametrize("room", ["full", "free"])
def test_a_volume_that_is_attached_for_another_pod(
    modes: list[str], node_affinity: dict[str, Any], is_held: bool, room: str
) -> None:
    """The pod fits another node than that of the volume, or only a new one has room: it starts on neither."""
    beside = node("b", labels={ZONE: "a"}, allocatable={"cpu": "4" if room == "free" else "100m", "pods": "9"})
    theirs = pod("other", volumes=DATA, on="a", metadata={"labels": {"app": "web"}}, status={"phase": "Running"})
    stored = [
        volume_claim("data", volume="v", modes=modes),
        volume("v", claim_ref="data", modes=modes, csi=True, **node_affinity),
        storage_class("waits", provisioner=DISK),
    ]
    cluster = [node("a", labels={ZONE: "a"}, allocatable={"cpu": "1", "pods": "9"}), beside, theirs, *stored]
    result = explained(*cluster, pod("me", volumes=DATA, containers=[{"name": "c", "resources": TWO_CPUS}]))
    used = "claim default/data (ReadWriteOnce) is in use by default/other on a, to which its volume is attached"
    if room == "full":
        assert (used in roots(Diagnosis(result.cycle))) == is_held
        assert any(fix.title.startswith("add a node") for fix in result.fixes) != is_held
    else:
        assert (result.state.name == "CannotStart") == is_held
        assert not is_held or (result.lifecycle is not None and used in headline(result.lifecycle))


TWO_CPUS = {"requests": {"cpu": "2"}}


def test_a_class_of_another_topology_has_an_alternative() -> None:
    classes = [storage_class("zonal", provisioner=DISK, zones=["d"]), storage_class("general", provisioner=DISK)]
    cluster = [node("a", labels={ZONE: "a"}), *classes, volume_claim("data", storage_class="zonal")]
    first, second, *_ = titles(*cluster, pod("me", volumes=DATA))
    assert first == "delete and recreate claim default/data with class general instead of zonal"
    assert second.startswith("add a node in zone d")


def test_a_class_without_an_alternative_allows_the_zone_of_the_nodes() -> None:
    cluster = [node("a", labels={ZONE: "a"}), storage_class("zonal", provisioner=DISK, zones=["d"])]
    fixes = explained(*cluster, volume_claim("data", storage_class="zonal"), pod("me", volumes=DATA)).fixes
    titles = [fix.title for fix in fixes]
    assert titles == [f"allow {ZONE}=a in allowedTopologies of class zonal", "add a node in zone d"]
    (operation,) = fixes[0].changes[0].patch
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in "da"]
    assert operation == {"op": "add", "path": "/allowedTopologies", "value": zones}


@pytest.mark.parametrize(
    ("labels", "meant"),
    [
        ({ZONE: "d"}, ZONE),
        ({"disk.example.com/zone": "d"}, "disk.example.com/zone"),
        ({ZONE: "a", "disk.example.com/zone": "d"}, "disk.example.com/zone"),
        ({ZONE: "a"}, ""),
    ],
)
def test_a_class_uses_a_label_that_nodes_have(labels: dict[str, str], meant: str) -> None:
    old = "failure-domain.beta.kubernetes.io/zone"
    zonal = storage_class("zonal", provisioner=DISK, zones=["d"])
    zonal["allowedTopologies"] = [{"matchLabelExpressions": [{"key": old, "values": ["d"]}]}]
    driver: Manifest = {"name": DISK, "nodeID": "a", "topologyKeys": ["disk.example.com/zone"]}
    places: Manifest = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"}}
    places["spec"] = {"drivers": [driver]}
    cluster = [node("a", labels=labels), places, zonal, volume_claim("data", storage_class="zonal")]
    expected = f"use label {meant} in allowedTopologies of class zonal: no node has {old}"
    assert (titles(*cluster, pod("me", volumes=DATA))[0] == expected) == bool(meant)


def test_a_claim_keeps_its_data_source() -> None:
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "nightly"}
    lacking = volume_claim("data", storage_class="fst")
    lacking = {**lacking, "spec": at(lacking, "spec") | {"dataSource": source}}
    fix = explained(node("a"), storage_class("fast", provisioner=DISK), lacking, pod("me", volumes=DATA)).fixes[0]
    [made] = [change.create for change in fix.changes if change.create]
    assert at(made, "spec.dataSource") == source


def test_the_rule_that_taints_devices_is_named_and_deleted() -> None:
    rule: Manifest = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "recall"},
        "spec": {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "recall", "effect": "NoSchedule"}},
    }
    devices = [resource_slice("a", device("gpu-0")), device_class(), claim("c", request())]
    gates = {"DRADeviceTaints": True, "DRADeviceTaintRules": True}
    result = explained(node("a"), *devices, rule, claiming("c"), feature_gates=gates)
    assert "DeviceTaintRule recall sets the taint recall:NoSchedule on devices" in roots(Diagnosis(result.cycle))
    first = result.fixes[0]
    assert (first.title, first.commands) == (
        "delete DeviceTaintRule recall, if the devices may be used again",
        ("kubectl delete devicetaintrule recall",),
    )
    assert first.certainty == "verified"
    ignored = explained(node("a"), *devices, rule, claiming("c"), kube_version="1.36")
    text = "DeviceTaintRule recall is ignored: feature gate DRADeviceTaintRules is off"
    assert text in [note.text for note in ignored.notes]


@pytest.mark.parametrize("is_ignored", [True, False])
def test_ignored_taints_of_devices_are_noted(*, is_ignored: bool) -> None:
    broken = device("gpu-0", Taints=[{"key": "broken", "effect": "NoSchedule"}])
    devices = [resource_slice("a", broken), device_class(), claim("c", request())]
    gates = {"DRADeviceTaints": not is_ignored}
    result = explained(node("a"), *devices, claiming("c"), kube_version="1.35", feature_gates=gates)
    text = "taints of devices are ignored: feature gate DRADeviceTaints is off"
    assert (text in [note.text for note in result.notes]) == is_ignored
    assert (result.outcome.value == "Scheduled") == is_ignored


def test_no_gate_for_extended_resources_is_named_in_a_version_without_it() -> None:
    amounts = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    me = pod("me", containers=[{"name": "main", "resources": amounts}])
    result = explained(node("a"), device_class(resource="example.com/gpu"), me, kube_version="1.33")
    assert not roots(Diagnosis(result.cycle))


@pytest.mark.parametrize(("version", "is_mapped"), [("1.35", False), ("1.36", True)])
def test_a_device_class_for_an_extended_resource_needs_its_gate(version: str, *, is_mapped: bool) -> None:
    mapped = device_class(resource="example.com/gpu")
    amounts = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    me = pod("me", containers=[{"name": "main", "resources": amounts}])
    result = explained(node("a"), mapped, resource_slice("a", device("gpu-0")), me, kube_version=version)
    text = "DeviceClass gpu maps example.com/gpu to devices only with feature gate DRAExtendedResource, which is off"
    assert (text in roots(Diagnosis(result.cycle))) != is_mapped
    assert is_mapped == (result.outcome == "Scheduled")
    assert is_mapped or result.fixes[0].title.endswith("or request the device with a ResourceClaim of class gpu")


@pytest.mark.parametrize(
    ("resource", "version", "title"),
    [
        (
            "example.com/gpu",
            "1.36",
            "set extendedResourceName: example.com/gpu in DeviceClass gpu, or request a device",
        ),
        ("example.com/gpu", "1.35", "request a device of class gpu with a ResourceClaim instead of example.com/gpu"),
        ("other.com/gpu", "1.36", "add a node with at least 1 other.com/gpu free"),
    ],
)
def test_a_resource_may_be_published_as_devices_only(resource: str, version: str, title: str) -> None:
    devices = [device_class("gpu", f'device.driver == "{DRIVER}"'), resource_slice("a", device("gpu-0"))]
    amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    me = pod("me", containers=[{"name": "main", "resources": amounts}])
    result = explained(node("a"), *devices, me, kube_version=version)
    text = f"driver {DRIVER} publishes its devices for DRA, not as {resource}"
    assert (text in roots(Diagnosis(result.cycle))) == (resource == "example.com/gpu")
    assert result.fixes[0].title.startswith(title)


def test_a_feature_that_no_node_declares() -> None:
    me = pod("me", spec={"containers": [{"name": "c"}], "hostUsers": False, "hostNetwork": True})
    assert titles(node("n"), me) == [
        "turn on feature gate UserNamespacesHostNetworkSupport in kubelets, or upgrade them",
        "add a node with declared feature UserNamespacesHostNetworkSupport and room for one pod",
    ]


def test_a_driver_may_crash_on_one_of_its_nodes() -> None:
    owner = {"ownerReferences": [{"kind": "DaemonSet", "name": "example-plugin", "controller": True}]}
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    plugin = pod("example-plugin", on="b", metadata=owner, status=unready)
    devices = [device_class("gpu", f'device.driver == "{DRIVER}"'), resource_slice("a", device("gpu-0"))]
    claims = [claim("c"), allocated("other", "a", "gpu-0"), claiming("other", name="somebody", nodeName="a")]
    first = titles(node("a"), node("b"), plugin, *devices, *claims, claiming("c"))[0]
    assert first == f"repair the DRA driver {DRIVER} on b (default/example-plugin), so that it publishes devices"


@pytest.mark.parametrize(("name", "is_shown"), [("generation", True), ("modle", False)])
def test_a_selector_may_read_what_no_device_publishes(name: str, *, is_shown: bool) -> None:
    published = {**device("gpu-0", model="a"), "capacity": {"memory": {"value": "1Gi"}}}
    devices = [resource_slice(at, published) for at in "ab"]
    wanted = request(select=[f'device.attributes["{DRIVER}"].{name} == "a"'])
    result = explained(node("a"), node("b"), *devices, device_class(), claim("c", wanted), claiming("c"))
    text = f"devices of {DRIVER} publish no {name}: they have model"
    assert (text in roots(Diagnosis(result.cycle))) == is_shown


def test_a_claim_with_admin_access_needs_a_label_of_the_namespace() -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]}}
    template: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "monitor", "namespace": "default"},
        "spec": {"spec": spec},
    }
    me = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "monitor"}])
    result = explained(node("a"), device_class(), template, namespaced("default"), me)
    label = "resource.kubernetes.io/admin-access=true"
    assert roots(Diagnosis(result.cycle)) == (
        f"template default/monitor requests admin access, for which namespace default lacks the label {label}",
    )
    assert [(fix.title, fix.seen) for fix in fix_views(result)] == [(f"label namespace default {label}", "not tried")]
    cluster = kschedx.Snapshot.from_objects([node("a"), device_class(), template, namespaced("default")])
    me["spec"] = {**at(me, "spec"), "containers": [{"name": "c", "image": "c"}]}
    assert kschedx.explain(cluster, me).fixes[0].title == f"label namespace default {label}"


@pytest.mark.parametrize(
    ("keeper", "first"),
    [
        ([], "check why the controller that removes gate quota.acme.io/ok has not: its logs, the pod's events"),
        (
            [pod("acme-controller-0", namespace="acme-system", on="a")],
            "check why acme-system/acme-controller-0, which likely removes gate quota.acme.io/ok, has not",
        ),
        (
            [pod("acme-controller-0", namespace="acme-system")],
            "repair acme-system/acme-controller-0, which is not ready and likely removes gate quota.acme.io/ok",
        ),
    ],
)
def test_an_unknown_gate_is_left_to_its_controller(keeper: list[Manifest], first: str) -> None:
    result = titles(node("a"), *keeper, pod("me", schedulingGates=[{"name": "quota.acme.io/ok"}]))
    assert result == [first, "remove scheduling gate quota.acme.io/ok"]


def test_a_gate_of_a_controller_without_pods() -> None:
    me = pod("me", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    runs = pod("kueue-controller-manager-0", namespace="kueue-system", on="a")
    proxy = pod("p", namespace="kube-system", on="a")
    expected = ["install Kueue, of which no pod runs, or recreate the pod without gate kueue.x-k8s.io/admission"]
    assert (titles(node("a"), me, proxy), titles(node("a"), me, proxy, runs)) == (expected, [])


def test_a_gate_beside_that_of_kueue_is_left_to_its_controller() -> None:
    gates = [{"name": "kueue.x-k8s.io/topology"}, {"name": "acme.io/hold"}]
    [title] = titles(node("a"), pod("me", schedulingGates=gates))
    assert title.startswith("check why the controller that removes gate acme.io/hold has not")


@pytest.mark.parametrize(
    ("message", "why", "advice"),
    [
        (
            'Post "http://hami.kube-system.svc:443/filter": dial tcp 10.0.0.7:443: connect: connection refused',
            "does not answer: connection refused",
            "repair Service kube-system/hami of the scheduler's extender",
        ),
        (
            "failed filter with extender at URL https://10.0.0.7/filter, code 500",
            "answers with HTTP status 500",
            "repair the scheduler's extender",
        ),
    ],
)
def test_an_extender_that_fails_is_named(message: str, why: str, advice: str) -> None:
    failed = extender_failure(message)
    assert failed is not None
    assert failed.why == why
    assert failed.advice == f"{advice}, or set ignorable: true for it in the scheduler's configuration"
    assert extender_failure("0/1 nodes are available: 1 Insufficient cpu.") is None


def test_an_extender_that_fails_keeps_the_pod_unscheduled(tmp_path: Path) -> None:
    message = 'Post "http://hami.kube-system.svc/filter": dial tcp 10.0.0.7:443: connect: connection refused'
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": message}
    waiting = pod("me", status={"phase": "Pending", "conditions": [condition]}, metadata=SINCE)
    stored = {**node("a"), "metadata": {"name": "a", **SINCE}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [stored, waiting]}))
    extenders: Any = [{"urlPrefix": "http://hami.kube-system.svc", "filterVerb": "filter"}]
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    for extended in (None, {**config, "extenders": extenders}):
        result = kschedx.explain(kschedx.load(str(tmp_path / "cluster.json")), "default/me", config=extended)
        assert (type(result.lifecycle).__name__, result.overall) == ("NotBound", "Unschedulable")
        assert result.fixes[0].title.startswith("repair Service kube-system/hami of the scheduler's extender")


@pytest.mark.parametrize(
    ("group", "requests", "fix"),
    [
        (
            {"target": 0, "maximum": 4},
            {"example.com/fpga": "1"},
            f"if nodes of new have example.com/fpga, tag its ASG with {TEMPLATE}/resources/example.com/fpga=1",
        ),
        ({"target": 3, "maximum": 3}, {"cpu": "9"}, "raise the maximum of node group new, which is reached"),
        (
            {"target": 3, "maximum": 4, "longUnregistered": 2},
            {"cpu": "9"},
            "repair how nodes of new join the cluster: 2 instances did not become nodes",
        ),
    ],
)
def test_a_node_group_whose_template_is_not_known(group: dict[str, int], requests: dict[str, str], fix: str) -> None:
    health = {"status": "Healthy", "cloudProviderTarget": group["target"], "maxSize": group["maximum"]}
    counts = {"longUnregistered": group.get("longUnregistered", 0)}
    groups = [{"name": "new", "health": {**health, "nodeCounts": counts}, "scaleUp": {"status": "NoActivity"}}]
    status = autoscaler_status(json.dumps({"autoscalerStatus": "Running", "nodeGroups": groups}))
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting = {**asking("me", **requests), "status": {"phase": "Pending", "conditions": [unschedulable]}}
    of_aws = node("a", allocatable={"cpu": "4", "pods": "9"}, providerID="aws:///eu-1a/i-0")
    assert titles(of_aws, status, waiting)[0] == fix


@pytest.mark.parametrize(
    ("label", "groups", "extra", "first"),
    [
        (
            "agentpool",
            ["aks-a100-7-vmss", "aks-gpu-7-vmss"],
            {},
            "add a node to node group aks-gpu-7-vmss: it is the required pool, and has no node",
        ),
        (
            "agentpool",
            ["aks-a100-7-vmss", "aks-gpu-7-vmss"],
            {"hw": "a100"},
            f"if nodes of aks-gpu-7-vmss have hw=a100, tag its scale set with {AZURE}_label_hw=a100",
        ),
        (
            "cloud.google.com/gke-nodepool",
            ["https://x/instanceGroups/gke-c1-gpu-1a2b-grp"],
            {},
            "add a node to node group gke-c1-gpu-1a2b-grp: it is the required pool, and has no node",
        ),
    ],
)
def test_the_required_pool_without_nodes_comes_first(
    label: str, groups: list[str], extra: dict[str, str], first: str
) -> None:
    health = {"status": "Healthy", "cloudProviderTarget": 0, "maxSize": 3}
    listed = [{"name": name, "health": health, "scaleUp": {"status": "NoActivity"}} for name in groups]
    own = {"status": "Healthy", "cloudProviderTarget": 1, "maxSize": 3}
    listed.append({"name": "system", "health": own, "scaleUp": {"status": "NoActivity"}})
    status = autoscaler_status(json.dumps({"autoscalerStatus": "Running", "nodeGroups": listed}))
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting = pod("me", nodeSelector={label: "gpu", **extra})
    waiting = {**waiting, "status": {"phase": "Pending", "conditions": [unschedulable]}}
    system = node("a", labels={label: "system"}, providerID="azure:///x/virtualMachineScaleSets/system/y/0")
    advice = titles(system, status, waiting)
    assert advice[0] == first
    assert not any(title.startswith("add a node group like") for title in advice)


def test_instances_that_do_not_join_come_before_a_larger_maximum() -> None:
    health = {"status": "Healthy", "cloudProviderTarget": 2, "maxSize": 2, "nodeCounts": {"longUnregistered": 1}}
    groups = [{"name": "new", "health": health, "scaleUp": {"status": "NoActivity"}}]
    status = autoscaler_status(json.dumps({"autoscalerStatus": "Running", "nodeGroups": groups}))
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting = {**asking("me", cpu="3"), "status": {"phase": "Pending", "conditions": [unschedulable]}}
    labels = {"eks.amazonaws.com/nodegroup": "new"}
    of_group = node("a", labels=labels, allocatable={"cpu": "4", "pods": "9"}, providerID="aws:///eu-1a/i-0")
    assert titles(of_group, status, asking("busy", "a", cpu="2"), waiting)[:2] == [
        "repair how nodes of new join the cluster: 1 instance did not become nodes",
        "raise the maximum of node group new from 2 to 3",
    ]


@pytest.mark.parametrize("allocated", ["3", "500m"])
def test_a_resize_that_is_not_complete_counts(allocated: str) -> None:
    given = {"name": "main", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": "3"}}}
    shrunk = asking("shrunk", "a", cpu="500m") | {"status": {"phase": "Running", "containerStatuses": [given]}}
    small = node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})
    assert roots(Diagnosis(explained(small, shrunk, asking("me", cpu="2")).cycle)) == (
        "default/shrunk on a still has 3000m CPU, which counts: its resize to 500m is not complete",
    )
    waits = "wait until the kubelet of a has resized default/shrunk"
    assert titles(small, shrunk, asking("me", cpu="2"))[0] == waits
    assert waits not in titles(small, shrunk, asking("me", cpu="3750m"))


def test_a_claim_of_another_namespace_does_not_count() -> None:
    other = volume_claim("data", storage_class="fast") | {"metadata": {"name": "data", "namespace": "other"}}
    more = other | {"metadata": {"name": "data", "namespace": "more"}}
    objects = [node("a"), storage_class("fast", provisioner=DISK), other, pod("me", volumes=DATA)]
    uses = "but a pod of namespace default uses only claims of that namespace"
    assert f"claim other/data exists, {uses}" in roots(Diagnosis(explained(*objects).cycle))
    assert f"claims more/data, other/data exist, {uses}" in roots(Diagnosis(explained(*objects, more).cycle))


def test_nodes_without_a_resource_are_named_before_nodes_that_are_full() -> None:
    """The nodes without the resource also lack CPU, which is the minor reason."""
    gpus = node("gpu", allocatable={"cpu": "9", "pods": "9", GPU: "1"})
    plain = [node(name, allocatable={"cpu": "1", "pods": "9"}) for name in "ab"]
    result = explained(gpus, *plain, asking("holder", "gpu", **{GPU: "1"}), asking("me", cpu="4", **{GPU: "1"}))
    assert causes(Diagnosis(result.cycle)) == (f"3 nodes lack 1 {GPU} each",)


def test_huge_pages_are_reserved_if_no_node_has_them() -> None:
    taints = ["dpdk=true:NoSchedule"]
    nodes = [
        node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}),
        node("b", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9", "hugepages-2Mi": "1Gi"}, taints=taints),
    ]
    me = asking("me", cpu="1", memory="1Gi", **{"hugepages-2Mi": "512Mi"})
    assert titles(*nodes, me)[0] == "tolerate dpdk=true:NoSchedule"


def test_a_larger_node_is_offered_if_only_daemon_sets_leave_too_little_of_a_new_one() -> None:
    agent: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"metadata": {"labels": {"app": "agent"}}}},
    }
    container = {"name": "main", "image": "agent", "resources": {"requests": {"cpu": "500m"}}}
    at(agent, "spec.template")["spec"] = {"containers": [container]}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    running = asking("agent-1", "a", cpu="500m")
    running = {
        **running,
        "metadata": at(running, "metadata") | {"ownerReferences": [owner], "labels": {"app": "agent"}},
    }
    small = node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})
    first, second = titles(small, agent, running, asking("me", cpu="3800m"))
    assert first.startswith("add a node with at least 3800m CPU")
    assert second == "lower requests.cpu of container main from 3800m to 3500m"
    other_pool = node("b", allocatable={"cpu": "8", "memory": "1Gi", "pods": "9"}, taints=["team=b:NoSchedule"])
    assert titles(small, other_pool, agent, running, asking("me", cpu="3800m"))[0].startswith(
        "add a node with at least"
    )


def test_an_init_container_is_named_so() -> None:
    init = [{"name": "migrate", "resources": {"requests": {"cpu": "6"}}}]
    small = node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})
    lowered = "lower requests.cpu of init container migrate from 6 to 4"
    assert lowered in titles(small, pod("me", initContainers=init, containers=[{"name": "main"}]))


@pytest.mark.parametrize(
    ("resource", "offered", "whole", "shown"),
    [
        ("cpu", "3920m", "4", "3920m allocatable (capacity 4000m, the rest is reserved) - 0 requested"),
        (GPU, "7", "8", "7 allocatable (capacity 8, the rest is not healthy) - 0 requested"),
    ],
)
def test_the_capacity_is_shown_if_it_would_be_enough(
    resource: str, offered: str, whole: str, shown: str, tmp_path: Path
) -> None:
    small = node("a", allocatable={"cpu": "4", "memory": "9Gi", "pods": "9", resource: offered})
    small["status"] = {**at(small, "status"), "capacity": {resource: whole}}
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"kind": "List", "items": [small, asking("me", **{resource: whole})]}))
    assert shown in run("why", "me", "-s", cluster).out


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({}, "LimitRange r sets requests.cpu of container main, not the pod template"),
        ({"limits": {"cpu": "9"}}, "requests.cpu of container main is its limit: the pod template sets no request"),
    ],
)
def test_the_origin_of_a_request_outside_the_template_is_named(tmp_path: Path, stated: Manifest, why: str) -> None:
    container = {"name": "main", "resources": stated}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    metadata = {"name": "web", "namespace": "default", "uid": "1"}
    web = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"template": template}}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": True}
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "9"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {**metadata, "name": "r"}, "spec": limits}
    me = asking("web-0", cpu="9")
    me["metadata"] = {**at(me, "metadata"), "ownerReferences": [owner]}
    items = [node("a", allocatable={"cpu": "4", "memory": "9Gi", "pods": "9"}), web, limit_range, me]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"kind": "List", "items": items}))
    assert why in run("why", "web-0", "-s", cluster).out


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({}, "LimitRange r sets requests.cpu of containers a and b, not the pod template"),
        ({"limits": {"cpu": "3"}}, "requests.cpu of containers a and b are their limits: the pod template sets no"),
    ],
)
def test_equal_requests_of_several_containers_have_one_origin(tmp_path: Path, stated: Manifest, why: str) -> None:
    of_template = [{"name": name, "resources": stated} for name in "ab"]
    metadata = {"name": "web", "namespace": "default", "uid": "1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": of_template}}
    web = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"template": template}}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": True}
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {**metadata, "name": "r"}, "spec": limits}
    me = pod(
        "web-0",
        metadata={"ownerReferences": [owner]},
        containers=[{"name": name, "resources": {"requests": {"cpu": "3"}}} for name in "ab"],
    )
    items = [node("n", allocatable={"cpu": "2", "memory": "9Gi", "pods": "9"}), web, limit_range, me]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"kind": "List", "items": items}))
    assert why in run("why", "web-0", "-s", cluster).out


def test_an_anti_affinity_over_zones_is_one_cause() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "zk"}}, "topologyKey": ZONE}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"labels": {"app": "zk"}}
    nodes = [node(name, labels={ZONE: f"eu-{name}"}) for name in "ab"]
    running = [pod(f"zk-{name}", on=name, metadata=labels) for name in "ab"]
    result = explained(*nodes, *running, pod("me", metadata=labels, affinity=affinity))
    assert causes(Diagnosis(result.cycle)) == (f"the pod's anti-affinity over {ZONE} excludes 2 nodes",)


def test_expressions_of_one_term_that_exclude_each_other() -> None:
    either = [{"key": "pool", "operator": "In", "values": [value]} for value in "ab"]
    required = {"nodeSelectorTerms": [{"matchExpressions": either}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    lost = node("lost", taints=["node.kubernetes.io/unreachable:NoSchedule"])
    result = explained(*(node(name, labels={"pool": name}) for name in "ab"), lost, pod("me", affinity=affinity))
    excluded = "nodeAffinity pool In [a] and nodeAffinity pool In [b] exclude each other: no node can match both"
    assert excluded in roots(Diagnosis(result.cycle))
    first = result.fixes[0]
    assert (first.title, first.feasible_nodes) == (
        "select pool in (a, b) in one expression: all expressions of a term must match",
        ("a", "b"),
    )
    assert [fix.title for fix in result.fixes[1:]] == ["stop requiring pool=b", "stop requiring pool=a"]


@pytest.mark.parametrize(
    ("pools", "fix"),
    [
        (("pool-2",), "select cloud.google.com/gke-nodepool=pool-2 instead of cloud.google.com/gke-nodepool=pool-1"),
        (("pool-2", "pool-3"), "stop requiring cloud.google.com/gke-nodepool=pool-1"),
    ],
)
def test_a_node_pool_that_was_replaced(pools: tuple[str, ...], fix: str) -> None:
    key = "cloud.google.com/gke-nodepool"
    nodes = [node(name, labels={key: name}) for name in pools]
    assert titles(*nodes, pod("me", nodeSelector={key: "pool-1"}))[0] == fix


def test_machine_autoscalers_without_a_cluster_autoscaler() -> None:
    of_machines: Manifest = {
        "apiVersion": "autoscaling.openshift.io/v1beta1",
        "kind": "MachineAutoscaler",
        "metadata": {"name": "a"},
    }
    serves: Manifest = {**of_machines, "apiVersion": "autoscaling.openshift.io/v1", "kind": "ClusterAutoscaler"}
    for objects, is_named in (([of_machines], True), ([of_machines, serves], False), ([], False)):
        result = explained(node("a"), asking("me", cpu="99"), *objects)
        texts = roots(Diagnosis(result.cycle))
        assert any("MachineAutoscaler scales nothing" in text for text in texts) is is_named


def test_a_change_of_a_pod_belongs_in_its_custom_resource() -> None:
    """A Spark driver belongs to the SparkApplication, and an executor to its driver."""

    def controlled(name: str, kind: str, by: str, **spec: Any) -> Manifest:
        owner = {"apiVersion": "x/v1", "kind": kind, "name": by, "uid": by, "controller": True}
        return pod(name, metadata={"name": name, "ownerReferences": [owner]}, **spec)

    driver = controlled("driver", "SparkApplication", "etl", on="a")
    for me in (controlled("me", "Pod", "driver"), controlled("me", "SparkApplication", "etl")):
        at(me, "spec")["nodeSelector"] = {"disk": "ssd"}
        fixes = explained(node("a"), driver, me).fixes
        assert "change it in SparkApplication etl, which creates the pod" in fixes[0].costs


@pytest.mark.parametrize(("value", "is_declared"), [("ml", True), ("other", False)])
def test_a_custom_resource_that_has_the_toleration_already(value: str, *, is_declared: bool) -> None:
    api = "sparkoperator.k8s.io/v1beta2"
    team = {"key": "team", "operator": "Equal", "value": value, "effect": "NoSchedule"}
    spark = {"apiVersion": api, "kind": "SparkApplication", "metadata": {"name": "etl", "namespace": "default"}}
    owner = {"apiVersion": api, "kind": "SparkApplication", "name": "etl", "uid": "s", "controller": True}
    me = pod("me", metadata={"labels": {"spark-role": "driver"}, "ownerReferences": [owner]})
    spec = {"driver": {"tolerations": [team]}, "executor": {}}
    fixes = explained({**spark, "spec": spec}, node("a", taints=["team=ml:NoSchedule"]), me).fixes
    (tolerating,) = [fix for fix in fixes if fix.title == "tolerate team=ml:NoSchedule"]
    cost = (
        "SparkApplication etl has it already"
        if is_declared
        else "change it in SparkApplication etl, which creates the pod"
    )
    assert tolerating.costs == (cost,)


def test_the_pod_of_a_challenge_is_described_by_its_issuer() -> None:
    api = "acme.cert-manager.io/v1"
    owner = {"apiVersion": api, "kind": "Challenge", "name": "tls", "uid": "c", "controller": True}
    me = pod("me", metadata={"name": "me", "ownerReferences": [owner]})
    fixes = explained(node("a", taints=["team=ml:NoSchedule"]), me).fixes
    place = "the podTemplate of the solver in the issuer of Challenge tls"
    assert f"change it in {place}, which creates the pod" in fixes[0].costs


@pytest.mark.parametrize(("values", "is_named"), [(["eu-b"], True), (["eu-a", "eu-b"], False)])
def test_a_selector_and_an_affinity_that_exclude_each_other(values: list[str], is_named: bool) -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    nodes = [node("b", labels={ZONE: "eu-b"}), node("c", labels={ZONE: "eu-c"})]
    result = explained(*nodes, pod("me", affinity=affinity, nodeSelector={ZONE: "eu-a"}))
    assert any("exclude each other" in root for root in roots(Diagnosis(result.cycle))) is is_named


def test_a_cordoned_node_that_is_being_removed_is_named_so() -> None:
    leaving = node("a", unschedulable=True, taints=["ToBeDeletedByClusterAutoscaler=1:NoSchedule"])
    result = explained(leaving, asking("me"))
    assert causes(Diagnosis(result.cycle)) == ("1 node is being removed by cluster-autoscaler",)


def test_beside_sidecars_an_init_container_or_the_largest_sidecar_is_lowered() -> None:
    small = node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})

    def asking_beside(proxy: str, migrate: str) -> list[str]:
        sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": proxy}}}
        init = {"name": "migrate", "resources": {"requests": {"cpu": migrate}}}
        main = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        return titles(small, pod("me", initContainers=[sidecar, init], containers=[main]))

    assert "lower requests.cpu of init container migrate from 3000m to 2500m" in asking_beside("1500m", "3")
    assert "lower requests.cpu of init container proxy from 3500m to 3000m" in asking_beside("3500m", "500m")


def test_a_claim_with_another_class_keeps_the_other_steps() -> None:
    template = volume_claim("data", storage_class="fst")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    template_spec = {"containers": [{"name": "main", "image": "db"}]}
    spec = {"replicas": 1, "podManagementPolicy": "OrderedReady", "template": {"spec": template_spec}}
    maker: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {**spec, "volumeClaimTemplates": [template]},
    }
    claimed = volume_claim("data-db-0", storage_class="fst")
    mine = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    waiting = pod("db-0", metadata={"ownerReferences": [owner]}, volumes=mine)
    objects = [
        node("a", taints=["pool=db:NoSchedule"]),
        storage_class("fast", provisioner=DISK),
        maker,
        claimed,
        waiting,
    ]
    first = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/db-0").fixes[0]
    assert "use class fast instead of fst in volumeClaimTemplate data of StatefulSet db" in first.title
    assert ", tolerate pool=db:NoSchedule, then delete pod db-0 (StatefulSet db is OrderedReady" in first.title
    sent = [(change.target.kind, change.delete) for change in first.apply]
    assert sent == [("StatefulSet", True), ("StatefulSet", False), ("PersistentVolumeClaim", True), ("Pod", True)]
    recreated = first.apply[1].create
    assert recreated is not None
    assert at(recreated, "spec.volumeClaimTemplates")[0]["spec"]["storageClassName"] == "fast"
    assert at(recreated, "spec.template.spec.tolerations")[0]["key"] == "pool"


def test_a_scheduler_without_a_node_comes_first() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "volcano-scheduler-1",
        "uid": "1",
        "controller": True,
    }
    down = pod("volcano-scheduler-1-x", namespace="system", metadata={"ownerReferences": [owner]})
    result = explained(node("a"), down, pod("me", schedulerName="volcano"))
    [fix] = result.fixes
    assert fix.title == "make room for system/volcano-scheduler-1-x first: volcano-scheduler has no node"
    assert fix.commands == ("kschedx why pod/volcano-scheduler-1-x -n system",)


@pytest.mark.parametrize(("dropped", "is_same"), [("", True), ("nodeAffinity", False), ("podAntiAffinity", False)])
def test_a_template_that_loses_a_part_of_its_affinity_is_new(dropped: str, is_same: bool) -> None:
    """A fix that drops a required term is tried with a rollout."""
    rules = {"nodeAffinity": {"required": 1}, "podAntiAffinity": {"required": 1}}
    left = {key: rule for key, rule in rules.items() if key != dropped}
    stored, changed = ({"spec": {"containers": [], "affinity": affinity}} for affinity in (rules, left))
    assert has_template(stored, changed) is is_same


def daemon_pod(**spec: Any) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod("me", metadata={"ownerReferences": [owner]}, affinity=affinity, **spec)


def test_a_virtual_node_is_not_freed_for_a_daemon_set() -> None:
    virtual = node("a", labels={"eks.amazonaws.com/compute-type": "fargate"}, allocatable={"cpu": "2", "pods": "1"})
    [title] = titles(virtual, asking("web", "a", cpu="1"), daemon_pod())
    assert title.startswith("keep DaemonSet agent off nodes of EKS Fargate")


def test_a_virtual_node_without_pods_of_a_daemon_set_needs_no_fix() -> None:
    fargate = "eks.amazonaws.com/compute-type"
    virtual = node("a", labels={fargate: "fargate"}, taints=[f"{fargate}=fargate:NoSchedule"])
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    agent = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    answer = kschedx.explain_daemon_set(kschedx.Snapshot.from_objects([virtual, node("b")]), agent)
    [left_out] = answer.left_out
    assert all(node != answer.names(left_out)[0] for _, node in answer.fixes_by_node)


def test_a_host_port_conflict_ignores_priority() -> None:
    port: Manifest = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}
    result = titles(node("a"), pod("debug", on="a", containers=[port]), daemon_pod(containers=[port]))
    assert result == ["use host port 81 instead of 80", "remove host port 80", "delete default/debug"]


def test_one_of_two_pods_with_mutual_affinity_drops_it() -> None:
    def follower(name: str, other: str) -> Manifest:
        term = {"labelSelector": {"matchLabels": {"app": other}}, "topologyKey": "kubernetes.io/hostname"}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return pod(name, labels={"app": name}, affinity=affinity)

    result = explained(node("n"), follower("me", "you"), follower("you", "me"))
    assert "default/you, which has no node itself, and requires this pod in turn" in " ".join(
        roots(Diagnosis(result.cycle))
    )
    assert result.fixes[0].title == "make podAffinity term 1 (app=you) preferred instead of required"


@pytest.mark.parametrize(
    ("enabled", "first"), [("true", "use instance types with branch"), ("false", "set ENABLE_POD_ENI=true")]
)
def test_an_instance_type_may_have_no_branch_interfaces(enabled: str, first: str) -> None:
    container = {"name": "aws-node", "env": [{"name": "ENABLE_POD_ENI", "value": enabled}]}
    daemon_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "aws-node", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "aws-node"}},
            "template": {"metadata": {"labels": {"k8s-app": "aws-node"}}, "spec": {"containers": [container]}},
        },
    }
    limits = {"limits": {"vpc.amazonaws.com/pod-eni": "1"}}
    result = explained(node("n"), daemon_set, pod("me", containers=[{"name": "main", "resources": limits}]))
    assert result.fixes[0].title.startswith(first)


def test_an_affinity_assistant_without_a_pod() -> None:
    labels = {
        "app.kubernetes.io/component": "affinity-assistant",
        "app.kubernetes.io/instance": "affinity-assistant-1",
    }
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    result = explained(node("n"), pod("me", labels={"tekton.dev/pipelineRun": "build"}, affinity=affinity))
    [text] = roots(Diagnosis(result.cycle))
    assert text == "Tekton's affinity assistant affinity-assistant-1, which the pods of build follow, has no pod"
    title = "cancel PipelineRun build, and start it again: Tekton creates an affinity assistant with it"
    assert [fix.title for fix in result.fixes] == [title]


@pytest.mark.parametrize(
    ("is_held", "first"), [(False, "let the rollout of Deployment web go on"), (True, "add a node")]
)
def test_a_rollout_deletes_a_pending_pod_of_an_earlier_template(is_held: bool, first: str) -> None:
    large = [{"name": "main", "resources": {"requests": {"cpu": "99"}}}]

    def owner(kind: str, name: str) -> Manifest:
        return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}

    def made(kind: str, name: str, revision: str, **metadata: Any) -> Manifest:
        annotations = {"deployment.kubernetes.io/revision": revision}
        named = {"name": name, "namespace": "default", "uid": name, "annotations": annotations, **metadata}
        spec = {"template": {"spec": {"containers": large}}}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": named, "spec": spec}

    of_web = [owner("Deployment", "web")]
    replica_sets = [made("ReplicaSet", name, name[-1], ownerReferences=of_web) for name in ("web-1", "web-2")]
    old = pod("me", metadata={"ownerReferences": [owner("ReplicaSet", "web-1")]}, containers=large)
    new = pod("new", metadata={"ownerReferences": [owner("ReplicaSet", "web-2")]}, containers=large)
    objects = [node("n"), made("Deployment", "web", "2"), *replica_sets, old, *([new] if is_held else [])]
    assert titles(*objects)[0].startswith(first)


def test_the_pod_that_owns_another_is_not_deleted_for_it() -> None:
    driver = pod("driver", on="n", containers=[{"name": "d", "resources": {"requests": {"cpu": "2"}}}])
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": "d", "controller": True}]}
    executor = pod("me", metadata=owned, containers=[{"name": "e", "resources": {"requests": {"cpu": "3"}}}])
    result = titles(node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}), driver, executor)
    assert [title for title in result if "driver" in title] == []


@pytest.mark.parametrize(
    ("key", "values", "provider", "first"),
    [
        (ZONE, ("eu-1", "eu-2"), "aws:///eu-1/i-0", f"label c with {ZONE}=eu-1, as its provider ID shows"),
        (ZONE, ("eu-1", "eu-2"), "gce://eu-2/eu-1/n", f"label c with {ZONE}=eu-1, as its provider ID shows"),
        (ZONE, ("eu-1", "eu-2"), "", f"label c with its {ZONE}"),
        (ZONE, ("0", "1"), "azure:///virtualMachineScaleSets/n/virtualMachines/0", f"label c with its {ZONE}"),
        ("rack", ("eu-1", "eu-2"), "aws:///eu-1/i-0", "label c with its rack"),
        ("{0}; x", ("1", "2"), "aws:///eu-1/i-0", "label c with its {0}; x"),
    ],
)
def test_a_node_that_only_lacks_the_topology_key(key: str, values: tuple[str, str], provider: str, first: str) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    full = [node(value, labels={key: value}, allocatable={"pods": "0"}) for value in values]
    me = pod("me", labels={"app": "web"}, topologySpreadConstraints=[spread])
    result = explained(*full, node("c", providerID=provider), me)
    assert f"c lacks label {key}, which other nodes have" in roots(Diagnosis(result.cycle))
    assert result.fixes[0].title == first
    tainted = node("c", taints=["team=a:NoSchedule"])
    assert not roots(Diagnosis(explained(*full, tainted, me).cycle))


def test_each_node_is_named_with_the_topology_key_that_it_lacks() -> None:
    spread = {
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    racks = [node("3", labels={ZONE: "eu-1", "rack": "r"}, allocatable={"pods": "0"}), node("c", labels={"rack": "r"})]
    both = pod(
        "me",
        labels={"app": "web"},
        topologySpreadConstraints=[{**spread, "topologyKey": key} for key in (ZONE, "rack")],
    )
    named = roots(Diagnosis(explained(*racks, node("d", labels={ZONE: "eu-1"}), both).cycle))
    assert {"d lacks label rack, which other nodes have", f"c lacks label {ZONE}, which other nodes have"} <= {*named}


@pytest.mark.parametrize("running", [0, 1])
def test_a_node_is_labeled_with_its_zone_if_the_pod_may_run_there(running: int) -> None:
    """With one pod in the zone of the node, another exceeds maxSkew."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    own = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    full = [
        node(zone, labels={ZONE: zone}, allocatable={"pods": str(pods)}) for zone, pods in (("1", running), ("2", 0))
    ]
    others = [pod("web", labels={"app": "web"}, on="1")] * running
    me = pod("me", labels={"app": "web"}, topologySpreadConstraints=[own])
    fixes = explained(*full, *others, node("c", providerID="aws:///1/i-0"), me).fixes
    assert any(fix.title.startswith("label c") for fix in fixes) is (not running)


@pytest.mark.parametrize(
    ("name", "conditions", "state", "first"),
    [
        (
            "big",
            [("Accepted", "True", ""), ("Failed", "True", "no capacity")],
            "Failed=True: no capacity",
            "recreate ProvisioningRequest default/big, and the pod after it is provisioned",
        ),
        (
            "big",
            [("Accepted", "True", ""), ("Provisioned", "False", "not found")],
            "Provisioned=False: not found",
            "wait for ProvisioningRequest default/big, or request less capacity in it",
        ),
        (
            "big",
            [("Accepted", "True", ""), ("Provisioned", "True", "")],
            "",
            "check ProvisioningRequest default/big, which provisions the nodes for the pod",
        ),
        ("bigg", [], "", "create ProvisioningRequest default/big, which does not exist, or consume bigg"),
    ],
)
def test_a_provisioning_request_is_named_with_what_keeps_it(
    name: str, conditions: list[tuple[str, str, str]], state: str, first: str
) -> None:
    health = {"status": "Healthy", "cloudProviderTarget": 1, "maxSize": 3}
    groups = [{"name": "new", "health": health, "scaleUp": {"status": "NoActivity"}}]
    status = autoscaler_status(json.dumps({"autoscalerStatus": "Running", "nodeGroups": groups}))
    provisioning: Manifest = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "status": {"conditions": [dict(zip(("type", "status", "message"), it, strict=True)) for it in conditions]},
    }
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waiting = {**asking("me", cpu="9"), "status": {"phase": "Pending", "conditions": [unschedulable]}}
    at(waiting, "metadata")["annotations"] = {"autoscaling.x-k8s.io/consume-provisioning-request": "big"}
    answer = explained(node("a", allocatable={"cpu": "4", "pods": "9"}), status, provisioning, waiting)
    scaling = answer.scalings[0]
    assert isinstance(scaling, GroupScaling)
    assert (scaling.request_state, answer.fixes[0].title) == (state, first)
