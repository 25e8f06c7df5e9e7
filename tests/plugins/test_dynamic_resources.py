"""DynamicResources: what claims get on which node, and what is said where they get nothing."""

from __future__ import annotations

import pytest

import kschedx
from kschedx import explain as explain_pod
from kschedx.errors import InputError, UndecidableError
from kschedx.findings import (
    DeviceClaimOutOfReach,
    DeviceClassNotFound,
    DevicesToAllocate,
    Finding,
    InsufficientDevices,
)
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.words import describe
from tests.builders import Manifest, evaluate, node, pod
from tests.device_builders import (
    DRIVER,
    allocated,
    claim,
    claiming,
    device,
    device_class,
    first_available,
    request,
    resource_slice,
)

NO_ALLOCATION = "cannot allocate all claims"
UNAVAILABLE = "resourceclaim not available on the node"
ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def told(cycle: Cycle, name: str = "a") -> str:
    """What DynamicResources says of a node; empty where it passes."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    row = cycle.nodes.cluster.index[name]
    verdicts = cycle.filter.verdicts[cycle.filter.plugins.index("DynamicResources")]
    return verdicts.status(TableRow(row)).message


def findings_of(cycle: Cycle) -> tuple[Finding, ...]:
    """Why DynamicResources rejects the first node."""
    assert cycle.filter is not None
    return cycle.filter.verdicts[cycle.filter.plugins.index("DynamicResources")].explain(TableRow(0))


def on_one_node(objects: list[Manifest], **gates: bool) -> str:
    """What is said of node `a`; the pod is `me`."""
    return told(evaluate([node("a"), *objects], "default/me", gates=gates))


def picked(cycle: Cycle) -> list[str]:
    """The devices that the pod would get on its node."""
    status = next(status for point, status in cycle.dry_steps if point == "reserve" and status.findings)
    plans = [finding for finding in status.findings if isinstance(finding, DevicesToAllocate)]
    return [text.rpartition("/")[2] for finding in plans for text in finding.devices]


# --- pods without devices


def test_a_pod_without_devices() -> None:
    cycle = evaluate([node("a"), node("b"), pod("me")], "default/me")
    assert "DynamicResources" in cycle.filter_skipped
    assert cycle.scores is not None
    assert cycle.scores.normalized["DynamicResources"].tolist() == [0, 0]


def test_a_pod_without_devices_that_fits_nowhere() -> None:
    cycle = evaluate([node("a", unschedulable=True), pod("me")], "default/me")
    assert " no new claims to deallocate, preemption: " in cycle.message


def test_where_another_plugin_ended_pre_filter_the_state_is_missing() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cycle = evaluate([node("a"), node("b"), pod("me", spec={"affinity": {"nodeAffinity": required}})], "default/me")
    assert [step.status.plugin for step in cycle.pre_filter][-1] == "NodeAffinity"
    assert cycle.message.endswith(". not found")


def test_a_profile_with_its_score_alone_cannot_score() -> None:
    plugins = {
        "multiPoint": {"disabled": [{"name": "DynamicResources"}]},
        "score": {"enabled": [{"name": "DynamicResources"}]},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    cycle = evaluate([node("a"), node("b"), pod("me")], "default/me", config=config)
    assert cycle.message == 'running Score plugins: plugin "DynamicResources" failed with: not found'


# --- the claims of a pod

GENERATED = pod(
    "me",
    spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]},
    status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "me-gpu"}]},
)
OWNED = claim("me-gpu", ownerReferences=[{"kind": "Pod", "name": "me", "uid": "default/me", "controller": True}])


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([claiming("gpu")], 'could not find ResourceClaim "default/gpu"'),
        (
            [claiming("gpu"), claim("gpu", deletionTimestamp="2026-01-01T00:00:00Z")],
            'resourceclaim "gpu" is being deleted',
        ),
        (
            [pod("me", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})],
            'pod "default/me": ResourceClaim not created yet',
        ),
        (
            [pod("me", spec={"resourceClaims": [{"name": "gpu"}]})],
            'pod "default/me", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (
            [GENERATED, claim("me-gpu")],
            "ResourceClaim default/me-gpu was not created for Pod default/me (Pod is not owner)",
        ),
    ],
)
def test_claims_that_cannot_be_used(objects: list[Manifest], text: str) -> None:
    cycle = evaluate([node("a"), *objects], "default/me")
    assert [status.reasons for status in cycle.pre_enqueue if status.reasons] == [(text,)]


def test_a_claim_that_was_made_from_a_template() -> None:
    assert on_one_node([GENERATED, OWNED, device_class(), resource_slice("a", device("gpu-0"))]) == ""


def test_a_template_that_needs_no_claim() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    me = pod("me", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}, status=status)
    assert "DynamicResources" in evaluate([node("a"), me], "default/me").filter_skipped


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (request("r", device_class="ghost"), "request r: device class ghost does not exist"),
        (
            first_available("r", request("big", device_class="ghost")),
            "request r/big: device class ghost does not exist",
        ),
        ({"name": "r"}, "resource claim default/gpu, request r: unknown request type"),
    ],
)
def test_requests_that_no_node_can_meet(wanted: Manifest, text: str) -> None:
    cycle = evaluate([node("a"), claiming("gpu"), claim("gpu", wanted), device_class()], "default/me")
    (status,) = [step.status for step in cycle.pre_filter if step.status.reasons]
    assert status.reasons == (text,)
    if "ghost" in text:
        assert isinstance(status.findings[0], DeviceClassNotFound)
        assert status.findings[0].classes == ("gpu",)


# --- devices

TWO = resource_slice("a", device("gpu-0", model="a100", numa=0), device("gpu-1", model="h100", numa=1))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (request(), ["gpu-0"]),
        (request(count=2), ["gpu-0", "gpu-1"]),
        (request(count=3), None),
        (request(allocationMode="All"), ["gpu-0", "gpu-1"]),
        (request(select=[f"{ATTRIBUTES}.model == 'h100'"]), ["gpu-1"]),
        (request(select=[f"{ATTRIBUTES}.model == 'h100'"], allocationMode="All"), ["gpu-1"]),
        (request(select=[f"{ATTRIBUTES}.model == 'b200'"], allocationMode="All"), None),
        (request(select=["false"]), None),
        (first_available("r", request("big", count=3), request("small")), ["gpu-0"]),
        (first_available("r", request("big", count=3), request("bigger", count=4)), None),
    ],
)
def test_what_a_request_gets(wanted: Manifest, expected: list[str] | None) -> None:
    cycle = evaluate([node("a"), claiming("gpu"), claim("gpu", wanted), device_class(), TWO], "default/me")
    if expected is None:
        assert told(cycle) == NO_ALLOCATION
    else:
        assert picked(cycle) == expected


def test_requests_and_claims_share_the_devices_of_a_node() -> None:
    objects = [node("a"), claiming("one", "two"), claim("one"), claim("two"), device_class(), TWO]
    assert picked(evaluate(objects, "default/me")) == ["gpu-0", "gpu-1"]
    assert on_one_node([claiming("one", "two"), claim("one", request(count=2)), claim("two"), *objects[4:]])


def test_the_last_choice_is_taken_back_where_nothing_is_left() -> None:
    picky = request("picky", select=[f"{ATTRIBUTES}.model == 'a100'"])
    objects = [node("a"), claiming("gpu"), claim("gpu", request("any"), picky), device_class(), TWO]
    assert picked(evaluate(objects, "default/me")) == ["gpu-1", "gpu-0"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchAttribute": f"{DRIVER}/numa"}, ["gpu-0", "gpu-2"]),
        ({"matchAttribute": f"{DRIVER}/ghost"}, None),
        ({"matchAttribute": "other.com/numa"}, None),
        ({"distinctAttribute": f"{DRIVER}/numa"}, ["gpu-0", "gpu-1"]),
        ({"matchAttribute": f"{DRIVER}/numa", "requests": ["x"]}, ["gpu-0", "gpu-1"]),
    ],
)
def test_constraints(constraint: Manifest, expected: list[str] | None) -> None:
    three = resource_slice("a", device("gpu-0", numa=0), device("gpu-1", numa=1), device("gpu-2", numa=0))
    wanted = claim("gpu", request("x"), request("y"), constraints=[constraint])
    cycle = evaluate([node("a"), claiming("gpu"), wanted, device_class(), three], "default/me")
    if expected is None:
        assert told(cycle) == NO_ALLOCATION
    else:
        assert picked(cycle) == expected


def test_all_devices_that_a_constraint_keeps_apart_are_an_error() -> None:
    wanted = claim("gpu", request(allocationMode="All"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    text = "cannot add device gpu.example.com/a/gpu-1 because a claim constraint would not be satisfied"
    assert on_one_node([claiming("gpu"), wanted, device_class(), TWO]) == f"claim default/gpu, request r: {text}"


def test_a_claim_cannot_have_more_devices_than_fit_into_its_status() -> None:
    text = "number of requested devices 33 exceeds the claim limit of 32"
    objects = [claiming("gpu"), claim("gpu", request(count=33)), device_class(), TWO]
    assert on_one_node(objects) == f"claim default/gpu: {text}"


@pytest.mark.parametrize(
    ("slices", "passes"),
    [
        ([resource_slice("a", device("gpu-0"))], True),
        ([resource_slice("b", device("gpu-0"))], False),
        ([resource_slice("x", device("gpu-0"), nodeName=None, allNodes=True)], True),
        ([resource_slice("x", device("gpu-0"), nodeName=None)], False),
        (
            [resource_slice("x", device("d", NodeName="a"), nodeName=None, perDeviceNodeSelection=True)],
            True,
        ),
        (
            [resource_slice("x", device("d", NodeName="b"), nodeName=None, perDeviceNodeSelection=True)],
            False,
        ),
        # half of a pool
        ([resource_slice("a", device("d"), pool={"name": "a", "generation": 1, "resourceSliceCount": 2})], False),
        # an older generation does not count
        (
            [
                resource_slice("a", device("d"), pool={"name": "a", "generation": 1, "resourceSliceCount": 1}),
                resource_slice("a", name="new", pool={"name": "a", "generation": 2, "resourceSliceCount": 1}),
            ],
            False,
        ),
    ],
)
def test_slices_that_a_node_reaches(slices: list[Manifest], passes: bool) -> None:
    assert (on_one_node([claiming("gpu"), claim("gpu"), device_class(), *slices]) == "") == passes


def test_a_slice_for_nodes_with_a_label() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    fabric = resource_slice("fabric", device("net-0"), nodeName=None, nodeSelector={"nodeSelectorTerms": [term]})
    nodes = [node("a", labels={"zone": "z1"}), node("b", labels={"zone": "z2"})]
    cycle = evaluate([*nodes, claiming("net"), claim("net"), device_class(), fabric], "default/me")
    assert (told(cycle, "a"), told(cycle, "b")) == ("", NO_ALLOCATION)


def test_an_invalid_pool() -> None:
    twice = resource_slice("a", device("gpu-0"), device("gpu-0"))
    objects = [claiming("gpu"), claim("gpu"), device_class(), twice]
    assert on_one_node(objects) == "invalid resource pools were encountered"


# --- what is taken


def test_a_device_that_a_claim_has_is_taken() -> None:
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO]
    assert picked(evaluate([*objects, allocated("busy", "a", "gpu-0")], "default/me")) == ["gpu-1"]
    assert told(evaluate([*objects, allocated("busy", "a", "gpu-0", "gpu-1")], "default/me")) == NO_ALLOCATION


def test_admin_access_neither_takes_a_device_nor_minds_who_has_it() -> None:
    objects = [node("a"), claiming("gpu"), device_class(), resource_slice("a", device("gpu-0"))]
    admin = claim("gpu", request(adminAccess=True))
    assert picked(evaluate([*objects, admin, allocated("busy", "a", "gpu-0")], "default/me")) == ["gpu-0"]
    watched = allocated("watcher", "a", "gpu-0", adminAccess=True)
    assert picked(evaluate([*objects, claim("gpu"), watched], "default/me")) == ["gpu-0"]


@pytest.mark.parametrize(
    ("tolerations", "passes"),
    [([], False), ([{"key": "hot", "operator": "Exists"}], True), ([{"key": "hot", "value": "no"}], False)],
)
def test_device_taints(tolerations: list[Manifest], passes: bool) -> None:
    hot = device("gpu-0", Taints=[{"key": "hot", "value": "yes", "effect": "NoSchedule"}])
    objects = [claiming("gpu"), claim("gpu", request(tolerations=tolerations)), device_class()]
    assert (on_one_node([*objects, resource_slice("a", hot)]) == "") == passes
    assert on_one_node([*objects, resource_slice("a", hot)], DRADeviceTaints=False) == ""


def test_device_taint_rules() -> None:
    rule: Manifest = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "device": "gpu-0"},
            "taint": {"key": "broken", "effect": "NoExecute"},
        },
    }
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO, rule]
    assert picked(evaluate(objects, "default/me", gates={"DRADeviceTaintRules": True})) == ["gpu-1"]
    assert picked(evaluate(objects, "default/me")) == ["gpu-0"]


# --- partitions and shares


def partitions(*sizes: str) -> list[Manifest]:
    """A piece of hardware with 4 slots, and devices that take some of them."""
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "slots", "counters": {"slots": {"value": "4"}}}]
    devices = [
        device(f"p{at}", ConsumesCounters=[{"counterSet": "slots", "counters": {"slots": {"value": size}}}])
        for at, size in enumerate(sizes)
    ]
    return [
        resource_slice("a", name="counters", pool=pool, sharedCounters=counters, devices=None),
        resource_slice("a", *devices, name="devices", pool=pool),
    ]


@pytest.mark.parametrize(
    ("count", "busy", "expected"),
    [
        (1, [], ["p0"]),
        (2, [], ["p1", "p2"]),
        (3, [], None),
        (1, ["p1"], ["p2"]),
        (1, ["p0"], None),
    ],
)
def test_partitions_share_counters(count: int, busy: list[str], expected: list[str] | None) -> None:
    held = [allocated("busy", "a", *busy)] if busy else []
    objects = [node("a"), claiming("gpu"), claim("gpu", request(count=count)), device_class(), *held]
    cycle = evaluate([*objects, *partitions("4", "2", "2")], "default/me")
    if expected is None:
        assert told(cycle) == NO_ALLOCATION
    else:
        assert picked(cycle) == expected


@pytest.mark.parametrize(
    ("wanted", "policy", "busy", "passes"),
    [
        ("4Gi", None, "6Gi", True),
        ("5Gi", None, "6Gi", False),
        (None, None, None, True),  # all of it
        (None, None, "1Gi", False),
        (None, {"default": "2Gi"}, "8Gi", True),
        ("1Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "8Gi", True),
        ("3Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "8Gi", False),
        ("5Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, None, False),
        ("3Gi", {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}, "6Gi", True),
        ("9Gi", {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}, None, False),
    ],
)
def test_shares_of_a_device(wanted: str | None, policy: Manifest | None, busy: str | None, passes: bool) -> None:
    capacity: Manifest = {"memory": {"value": "10Gi"} | ({"requestPolicy": policy} if policy else {})}
    card = device("gpu-0", Capacity=capacity, AllowMultipleAllocations=True)
    question = request(capacity={"requests": {"memory": wanted}}) if wanted else request()
    objects = [claiming("gpu"), claim("gpu", question), device_class(), resource_slice("a", card)]
    if busy:
        objects.append(allocated("busy", "a", "gpu-0", shareID="1", consumedCapacity={"memory": busy}))
    assert (on_one_node(objects) == "") == passes


def test_picks_that_consume_nothing_are_taken_back() -> None:
    """Two picks of one device with a capacity of 0, and a third request that no device meets."""
    card = device("gpu-0", Capacity={"memory": {"value": "0"}}, AllowMultipleAllocations=True)
    requests = [request("x"), request("y"), request("z", select=["false"])]
    assert on_one_node([claiming("gpu"), claim("gpu", *requests), device_class(), resource_slice("a", card)]) == (
        NO_ALLOCATION
    )


# --- what 1.38 does in another way, as published

EVERY_DEVICE = request(allocationMode="All")
HALF = resource_slice("a", device("gpu-0"), pool={"name": "a", "generation": 1, "resourceSliceCount": 2})
RULE: Manifest = {
    "apiVersion": "resource.k8s.io/v1alpha3",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "broken"},
    "spec": {"taint": {"key": "broken", "effect": "NoSchedule"}},
}
MEMORY: Manifest = {"memory": {"value": "10Gi"}}
QUALIFIED = request(capacity={"requests": {f"{DRIVER}/memory": "1Gi"}})
SHARE = allocated("busy", "a", "gpu-0", shareID="1", consumedCapacity={"memory": "1Gi"})


@pytest.mark.parametrize(
    ("objects", "before", "later"),
    [
        ([claim("gpu"), TWO, RULE], "Unschedulable", "Scheduled"),
        ([claim("gpu", EVERY_DEVICE), HALF], "Error", "Unschedulable"),
        (
            [claim("gpu", QUALIFIED), resource_slice("a", device("gpu-0", Capacity=MEMORY))],
            "Unschedulable",
            "Scheduled",
        ),
        ([claim("gpu"), resource_slice("a", device("gpu-0")), SHARE], "Scheduled", "Unschedulable"),
    ],
    ids=["rule without a selector", "half a pool", "capacity by its full name", "shared before"],
)
def test_devices_of_1_38(objects: list[Manifest], before: str, later: str) -> None:
    snapshot = Snapshot.from_objects([node("a"), claiming("gpu"), device_class(), *objects])
    for version, outcome in (("1.37", before), ("1.38", later)):
        assert kschedx.explain(snapshot, "default/me", kube_version=version).overall == outcome


def test_an_attribute_that_a_device_lacks() -> None:
    lacking = claim("gpu", request(select=[f"{ATTRIBUTES}.missing == 1"]))
    snapshot = Snapshot.from_objects([node("a"), claiming("gpu"), device_class(), TWO, lacking])
    texts = [kschedx.explain(snapshot, "default/me", kube_version=item).message for item in ("1.36", "1.37")]
    assert ["consider using CEL optional chaining" in text for text in texts] == [False, True]


# --- claims that are allocated


def test_an_allocated_claim_ties_the_pod_to_its_node() -> None:
    nodes = [node("a"), node("b", unschedulable=True)]
    cycle = evaluate([*nodes, claiming("gpu"), allocated("gpu", "b", "gpu-0")], "default/me")
    assert (told(cycle, "a"), told(cycle, "b")) == (UNAVAILABLE, "")
    assert " still not schedulable, preemption: " in cycle.message
    (finding,) = findings_of(cycle)
    assert isinstance(finding, DeviceClaimOutOfReach)
    assert (finding.cause, finding.devices) == ("elsewhere", (f"{DRIVER}/b/gpu-0",))
    assert (finding.where, finding.consumers) == ("metadata.name In [b]", ("pods/somebody",))


@pytest.mark.parametrize(
    ("reserved_for", "text"),
    [
        ([], "deallocation of ResourceClaim completed"),
        (["me"], "deallocation of ResourceClaim completed"),
        (["me", "you"], "still not schedulable"),
        (["you"], "still not schedulable"),
    ],
)
def test_a_claim_that_nobody_else_uses_is_deallocated(reserved_for: list[str], text: str) -> None:
    objects = [node("a"), claiming("gpu"), allocated("gpu", "b", "gpu-0", reserved_for=reserved_for)]
    assert f". {text}, preemption: " in evaluate(objects, "default/me").message


def test_only_a_node_that_no_earlier_plugin_rejects_counts_for_deallocation() -> None:
    objects = [node("a", unschedulable=True), claiming("gpu"), allocated("gpu", "b", "gpu-0", reserved_for=[])]
    assert ". still not schedulable, preemption: " in evaluate(objects, "default/me").message


@pytest.mark.parametrize(
    ("conditions", "since", "passes"),
    [
        ([], None, True),
        ([], "2020-01-01T00:00:00Z", False),
        ([{"type": "ready", "status": "True"}], "2020-01-01T00:00:00Z", True),
        ([{"type": "broken", "status": "True"}], None, False),
    ],
)
def test_devices_that_must_be_made_ready(conditions: list[Manifest], since: str | None, passes: bool) -> None:
    awaited = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    result = allocated("gpu", "a", "d", since=since, conditions=conditions, **awaited)
    assert (on_one_node([claiming("gpu"), result]) == "") == passes


# --- scores


def test_an_alternative_further_in_front_scores_more() -> None:
    nodes = [node("a"), node("b")]
    slices = [resource_slice("a", device("gpu-0"), device("gpu-1")), resource_slice("b", device("gpu-0"))]
    wanted = claim("gpu", first_available("r", request("two", count=2), request("one")))
    cycle = evaluate([*nodes, claiming("gpu"), wanted, device_class(), *slices], "default/me")
    assert cycle.scores is not None
    assert cycle.scores.raw["DynamicResources"].tolist() == [8, 7]
    assert cycle.scores.normalized["DynamicResources"].tolist() == [100, 87]


# --- extended resources


def requesting(resource: str, amount: str = "1") -> Manifest:
    return pod("me", spec={"containers": [{"name": "main", "resources": {"limits": {resource: amount}}}]})


PREFIX = "deviceclass.resource.kubernetes.io/"
IMPLICIT = f"{PREFIX}gpu"


@pytest.mark.parametrize(
    ("resource", "amount", "classes", "message"),
    [
        ("example.com/gpu", "1", [device_class(resource="example.com/gpu")], ""),
        ("example.com/gpu", "2", [device_class(resource="example.com/gpu")], NO_ALLOCATION),
        (IMPLICIT, "1", [device_class()], ""),
        ("example.com/gpu", "0", [device_class(resource="example.com/gpu")], ""),
        ("example.com/gpu", "1", [device_class(resource="example.com/other")], "Insufficient example.com/gpu"),
        ("example.com/gpu", "1", [], "Insufficient example.com/gpu"),
    ],
)
def test_extended_resources(resource: str, amount: str, classes: list[Manifest], message: str) -> None:
    objects = [node("a"), requesting(resource, amount), *classes, resource_slice("a", device("gpu-0"))]
    cycle = evaluate(objects, "default/me")
    assert cycle.message.startswith(f"0/1 nodes are available: 1 {message}. " if message else "")


def test_a_node_that_offers_the_resource_itself_needs_no_devices() -> None:
    offering = node("a", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9", "example.com/gpu": "1"})
    objects = [offering, node("b"), requesting("example.com/gpu"), device_class(resource="example.com/gpu")]
    cycle = evaluate(objects, "default/me")
    assert (told(cycle, "a"), told(cycle, "b")) == ("", NO_ALLOCATION)


def test_init_containers_use_the_devices_of_the_containers_after_them() -> None:
    def asks(name: str, amount: int) -> Manifest:
        return {"name": name, "resources": {"limits": {"example.com/gpu": str(amount)}}}

    spec = {"initContainers": [asks("small", 1), asks("large", 3)], "containers": [asks("main", 2)]}
    gpus = resource_slice("a", *(device(f"gpu-{at}") for at in range(3)))
    objects = [node("a"), pod("me", spec=spec), device_class(resource="example.com/gpu"), gpus]
    assert picked(evaluate(objects, "default/me")) == ["gpu-0", "gpu-1", "gpu-2"]


def test_the_gate_leaves_extended_resources_to_the_nodes() -> None:
    objects = [node("a"), requesting("example.com/gpu"), device_class(resource="example.com/gpu")]
    cycle = evaluate(objects, "default/me", gates={"DRAExtendedResource": False})
    assert "1 Insufficient example.com/gpu" in cycle.message


def test_of_several_classes_the_newest_counts_then_the_first_by_name() -> None:
    classes = [
        device_class("old", resource="example.com/gpu", created="2025-01-01T00:00:00Z"),
        device_class("z-new", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
        device_class("new", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
    ]
    provided = Snapshot.from_objects(classes).devices.class_of_resource
    # a class that yields to a class before it by name loses its implicit resource too
    assert provided == {"example.com/gpu": "new", f"{PREFIX}new": "new"}


def test_a_class_keeps_its_implicit_resource_if_a_newer_class_comes_after_it() -> None:
    classes = [
        device_class("a", resource="example.com/gpu", created="2025-01-01T00:00:00Z"),
        device_class("b", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
    ]
    provided = Snapshot.from_objects(classes).devices.class_of_resource
    assert provided == {"example.com/gpu": "b", f"{PREFIX}a": "a", f"{PREFIX}b": "b"}


# --- older versions of the API


def test_v1beta1_has_shapes_of_its_own() -> None:
    beta = {"apiVersion": "resource.k8s.io/v1beta1"}
    gpu: Manifest = {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "a100"}}}}
    select = [{"cel": {"expression": f"{ATTRIBUTES}.model == 'a100'"}}]
    wanted = claim("gpu", {"name": "r", "deviceClassName": "gpu", "selectors": select}) | beta
    published = resource_slice("a", gpu) | beta
    assert picked(evaluate([node("a"), claiming("gpu"), wanted, published, device_class()], "default/me")) == ["gpu-0"]


def test_a_quantity_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"spec\.devices\[0\]\.capacity\[memory\]\.value: .*'lots'"):
        Snapshot.from_objects([resource_slice("a", device("gpu-0", memory="lots"))])


# --- why not


def shortage(*objects: Manifest) -> InsufficientDevices:
    cycle = evaluate([node("a"), claiming("gpu"), *objects], "default/me")
    (finding,) = findings_of(cycle)
    assert isinstance(finding, InsufficientDevices)
    return finding


def test_who_has_the_devices() -> None:
    (short,) = shortage(claim("gpu", request(count=2)), device_class(), TWO, allocated("busy", "a", "gpu-0")).shortages
    assert (short.in_reach, short.of_class, short.matching, short.free, short.wanted) == (2, 2, 2, 1, 2)
    assert [(holder.device, holder.claim, holder.consumers) for holder in short.holders] == [
        ("a/gpu-0", "default/busy", ("pods/somebody",))
    ]


@pytest.mark.parametrize(
    ("wanted", "classes", "stage", "selectors"),
    [
        (request(), device_class("gpu", "device.driver == 'x'"), "other-class", ("device.driver == 'x'",)),
        (request(select=["false"]), device_class(), "no-match", ("false",)),
        (request(select=["true"], count=3), device_class(), "taken", ()),
    ],
)
def test_what_devices_do_not_match(wanted: Manifest, classes: Manifest, stage: str, selectors: tuple[str, ...]) -> None:
    (short,) = shortage(claim("gpu", wanted), classes, TWO).shortages
    assert (short.stage, short.selectors) == (stage, selectors)


def test_a_node_without_devices() -> None:
    (short,) = shortage(claim("gpu"), device_class()).shortages
    assert short.stage == "none"


def test_counters_that_are_short() -> None:
    (short,) = shortage(claim("gpu"), device_class(), *partitions("4", "2"), allocated("busy", "a", "p1")).shortages
    assert [(counter.counter, counter.needed, counter.left) for counter in short.counters] == [
        ("slots/slots", "4", "2")
    ]


def test_what_only_all_together_prevents() -> None:
    wanted = claim("gpu", request("x"), request("y"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    finding = shortage(wanted, device_class(), TWO)
    assert finding.shortages == ()
    rule = f"all devices must have the same {DRIVER}/numa"
    assert finding.constraints == (rule,)
    assert describe(finding).headline == f"no combination of its devices satisfies claim default/gpu: {rule}"


def test_a_constraint_that_decides_nothing_is_no_cause() -> None:
    wanted = claim("gpu", request("x"), request("y"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    one = resource_slice("a", device("gpu-0", numa=0))
    assert shortage(wanted, device_class(), one).constraints == ()


def test_a_constraint_is_no_proven_cause_if_the_search_without_it_fails() -> None:
    broken = {"cel": {"expression": f'device.attributes["{DRIVER}"].nothing == 1'}}
    either = first_available("y", request("two", count=2), request("none", selectors=[broken]))
    wanted = claim("gpu", request("x"), either, constraints=[{"matchAttribute": f"{DRIVER}/ghost"}])
    assert shortage(wanted, device_class(), TWO).constraints == ()


# --- what cannot be decided


def test_a_search_that_takes_too_long_is_not_decided() -> None:
    many = resource_slice("a", *(device(f"gpu-{at:02}", odd=at % 2) for at in range(40)))
    impossible = claim("gpu", request(count=25), constraints=[{"matchAttribute": f"{DRIVER}/odd"}])
    with pytest.raises(UndecidableError, match="too many possible allocations on node a"):
        evaluate([node("a"), claiming("gpu"), impossible, device_class(), many], "default/me")


def test_releases_that_allocated_otherwise_are_not_decided() -> None:
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO]
    pod = Snapshot.from_objects(objects)
    with pytest.raises(UndecidableError, match=r"requests devices \(gpu\): how kube-scheduler 1\.33 allocated them"):
        explain_pod(pod, "default/me", kube_version="1.33", feature_gates={"DynamicResourceAllocation": True})
    assert explain_pod(pod, "default/me", kube_version="1.33").cycle.outcome is Outcome.SCHEDULED


def test_an_allocation_with_a_selector_that_cannot_be_read() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "Near", "values": ["a"]}]}
    allocation = {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    held = claim("mine", status={"allocation": allocation})
    cycle = evaluate([node("a"), resource_slice("a", device("gpu-0")), held, claiming("mine")], "default/me")
    words = 'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Near": supported values: "In", "NotIn"'
    assert words in cycle.message
