"""DynamicResources: the devices of claims on each node, and the messages of rejections."""

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


def message_on(cycle: Cycle, name: str = "a") -> str:
    """Return the message of DynamicResources on a node, empty if the node passes."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    row = cycle.nodes.cluster.index[name]
    verdicts = cycle.filter.verdicts[cycle.filter.plugins.index("DynamicResources")]
    return verdicts.status(TableRow(row)).message


def findings_of(cycle: Cycle) -> tuple[Finding, ...]:
    """Return the findings of DynamicResources on the first node."""
    assert cycle.filter is not None
    return cycle.filter.verdicts[cycle.filter.plugins.index("DynamicResources")].explain(TableRow(0))


def on_one_node(objects: list[Manifest], **gates: bool) -> str:
    """Return the message on node `a` for the pod `me`."""
    return message_on(evaluate([node("a"), *objects], "default/me", gates=gates))


def allocated_devices(cycle: Cycle) -> list[str]:
    """Return the devices that the pod would get on its node."""
    status = next(status for point, status in cycle.dry_steps if point == "reserve" and status.findings)
    plans = [finding for finding in status.findings if isinstance(finding, DevicesToAllocate)]
    return [text.rpartition("/")[2] for finding in plans for text in finding.devices]


# --- pods without devices


def test_a_pod_without_devices() -> None:
    cycle = evaluate([node("a"), node("b"), pod("me")], "default/me")
    assert "DynamicResources" in cycle.filter_skipped
    assert cycle.scores is not None
    assert cycle.scores.normalized["DynamicResources"].tolist() == [0, 0]


def test_the_message_of_a_pod_without_devices() -> None:
    cycle = evaluate([node("a", unschedulable=True), pod("me")], "default/me")
    assert " no new claims to deallocate, preemption: " in cycle.message


def test_the_state_is_missing_if_an_earlier_plugin_ends_pre_filter() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cycle = evaluate([node("a"), node("b"), pod("me", spec={"affinity": {"nodeAffinity": required}})], "default/me")
    assert [step.status.plugin for step in cycle.pre_filter][-1] == "NodeAffinity"
    assert cycle.message.endswith(". not found")


def test_score_fails_without_pre_filter() -> None:
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

POD_WITH_TEMPLATE = pod(
    "me",
    spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]},
    status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "me-gpu"}]},
)
OWNED_CLAIM = claim("me-gpu", ownerReferences=[{"kind": "Pod", "name": "me", "uid": "default/me", "controller": True}])


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
            [POD_WITH_TEMPLATE, claim("me-gpu")],
            "ResourceClaim default/me-gpu was not created for Pod default/me (Pod is not owner)",
        ),
    ],
)
def test_pre_enqueue_rejects_unusable_claims(objects: list[Manifest], text: str) -> None:
    cycle = evaluate([node("a"), *objects], "default/me")
    assert [status.reasons for status in cycle.pre_enqueue if status.reasons] == [(text,)]


def test_a_claim_of_a_template_is_allocated() -> None:
    assert on_one_node([POD_WITH_TEMPLATE, OWNED_CLAIM, device_class(), resource_slice("a", device("gpu-0"))]) == ""


def test_a_template_without_a_claim_is_skipped() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    target = pod("me", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}, status=status)
    assert "DynamicResources" in evaluate([node("a"), target], "default/me").filter_skipped


@pytest.mark.parametrize(
    ("device_request", "text"),
    [
        (request("r", device_class="ghost"), "request r: device class ghost does not exist"),
        (
            first_available("r", request("big", device_class="ghost")),
            "request r/big: device class ghost does not exist",
        ),
        ({"name": "r"}, "resource claim default/gpu, request r: unknown request type"),
    ],
)
def test_pre_filter_rejects_invalid_requests(device_request: Manifest, text: str) -> None:
    cycle = evaluate([node("a"), claiming("gpu"), claim("gpu", device_request), device_class()], "default/me")
    (status,) = [step.status for step in cycle.pre_filter if step.status.reasons]
    assert status.reasons == (text,)
    if "ghost" in text:
        assert isinstance(status.findings[0], DeviceClassNotFound)
        assert status.findings[0].classes == ("gpu",)


# --- devices

TWO_GPUS = resource_slice("a", device("gpu-0", model="a100", numa=0), device("gpu-1", model="h100", numa=1))


@pytest.mark.parametrize(
    ("device_request", "expected"),
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
def test_devices_of_a_request(device_request: Manifest, expected: list[str] | None) -> None:
    cycle = evaluate([node("a"), claiming("gpu"), claim("gpu", device_request), device_class(), TWO_GPUS], "default/me")
    if expected is None:
        assert message_on(cycle) == NO_ALLOCATION
    else:
        assert allocated_devices(cycle) == expected


def test_requests_and_claims_share_the_devices_of_a_node() -> None:
    objects = [node("a"), claiming("one", "two"), claim("one"), claim("two"), device_class(), TWO_GPUS]
    assert allocated_devices(evaluate(objects, "default/me")) == ["gpu-0", "gpu-1"]
    assert on_one_node([claiming("one", "two"), claim("one", request(count=2)), claim("two"), *objects[4:]])


def test_the_search_backtracks() -> None:
    filtered = request("picky", select=[f"{ATTRIBUTES}.model == 'a100'"])
    objects = [node("a"), claiming("gpu"), claim("gpu", request("any"), filtered), device_class(), TWO_GPUS]
    assert allocated_devices(evaluate(objects, "default/me")) == ["gpu-1", "gpu-0"]


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
def test_devices_meet_the_constraints_of_a_claim(constraint: Manifest, expected: list[str] | None) -> None:
    devices = resource_slice("a", device("gpu-0", numa=0), device("gpu-1", numa=1), device("gpu-2", numa=0))
    device_claim = claim("gpu", request("x"), request("y"), constraints=[constraint])
    cycle = evaluate([node("a"), claiming("gpu"), device_claim, device_class(), devices], "default/me")
    if expected is None:
        assert message_on(cycle) == NO_ALLOCATION
    else:
        assert allocated_devices(cycle) == expected


def test_a_request_for_all_devices_fails_on_a_violated_constraint() -> None:
    device_claim = claim("gpu", request(allocationMode="All"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    text = "cannot add device gpu.example.com/a/gpu-1 because a claim constraint would not be satisfied"
    assert (
        on_one_node([claiming("gpu"), device_claim, device_class(), TWO_GPUS])
        == f"claim default/gpu, request r: {text}"
    )


def test_a_claim_has_at_most_32_devices() -> None:
    text = "number of requested devices 33 exceeds the claim limit of 32"
    objects = [claiming("gpu"), claim("gpu", request(count=33)), device_class(), TWO_GPUS]
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
def test_slices_that_apply_to_a_node(slices: list[Manifest], passes: bool) -> None:
    assert (on_one_node([claiming("gpu"), claim("gpu"), device_class(), *slices]) == "") == passes


def test_a_slice_with_a_node_selector() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    fabric = resource_slice("fabric", device("net-0"), nodeName=None, nodeSelector={"nodeSelectorTerms": [term]})
    nodes = [node("a", labels={"zone": "z1"}), node("b", labels={"zone": "z2"})]
    cycle = evaluate([*nodes, claiming("net"), claim("net"), device_class(), fabric], "default/me")
    assert (message_on(cycle, "a"), message_on(cycle, "b")) == ("", NO_ALLOCATION)


def test_an_invalid_pool() -> None:
    duplicate = resource_slice("a", device("gpu-0"), device("gpu-0"))
    objects = [claiming("gpu"), claim("gpu"), device_class(), duplicate]
    assert on_one_node(objects) == "invalid resource pools were encountered"


# --- allocated devices


def test_an_allocated_device_is_not_free() -> None:
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO_GPUS]
    assert allocated_devices(evaluate([*objects, allocated("busy", "a", "gpu-0")], "default/me")) == ["gpu-1"]
    assert message_on(evaluate([*objects, allocated("busy", "a", "gpu-0", "gpu-1")], "default/me")) == NO_ALLOCATION


def test_admin_access_shares_allocated_devices() -> None:
    objects = [node("a"), claiming("gpu"), device_class(), resource_slice("a", device("gpu-0"))]
    claim_with_admin_access = claim("gpu", request(adminAccess=True))
    assert allocated_devices(
        evaluate([*objects, claim_with_admin_access, allocated("busy", "a", "gpu-0")], "default/me")
    ) == ["gpu-0"]
    admin_claim = allocated("watcher", "a", "gpu-0", adminAccess=True)
    assert allocated_devices(evaluate([*objects, claim("gpu"), admin_claim], "default/me")) == ["gpu-0"]


@pytest.mark.parametrize(
    ("tolerations", "passes"),
    [([], False), ([{"key": "hot", "operator": "Exists"}], True), ([{"key": "hot", "value": "no"}], False)],
)
def test_a_claim_tolerates_device_taints(tolerations: list[Manifest], passes: bool) -> None:
    tainted = device("gpu-0", Taints=[{"key": "hot", "value": "yes", "effect": "NoSchedule"}])
    objects = [claiming("gpu"), claim("gpu", request(tolerations=tolerations)), device_class()]
    assert (on_one_node([*objects, resource_slice("a", tainted)]) == "") == passes
    assert on_one_node([*objects, resource_slice("a", tainted)], DRADeviceTaints=False) == ""


def test_a_device_taint_rule_adds_a_taint() -> None:
    rule: Manifest = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "device": "gpu-0"},
            "taint": {"key": "broken", "effect": "NoExecute"},
        },
    }
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO_GPUS, rule]
    assert allocated_devices(evaluate(objects, "default/me", gates={"DRADeviceTaintRules": True})) == ["gpu-1"]
    assert allocated_devices(evaluate(objects, "default/me")) == ["gpu-0"]


# --- partitions and shares


def partitions(*sizes: str) -> list[Manifest]:
    """Return slices of hardware with 4 slots, and devices that use some of them."""
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
    allocated_claims = [allocated("busy", "a", *busy)] if busy else []
    objects = [node("a"), claiming("gpu"), claim("gpu", request(count=count)), device_class(), *allocated_claims]
    cycle = evaluate([*objects, *partitions("4", "2", "2")], "default/me")
    if expected is None:
        assert message_on(cycle) == NO_ALLOCATION
    else:
        assert allocated_devices(cycle) == expected


@pytest.mark.parametrize(
    ("requested", "policy", "busy", "passes"),
    [
        ("4Gi", None, "6Gi", True),
        ("5Gi", None, "6Gi", False),
        (None, None, None, True),  # the whole capacity
        (None, None, "1Gi", False),
        (None, {"default": "2Gi"}, "8Gi", True),
        ("1Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "8Gi", True),
        ("3Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "8Gi", False),
        ("5Gi", {"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, None, False),
        ("3Gi", {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}, "6Gi", True),
        ("9Gi", {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}, None, False),
    ],
)
def test_a_share_needs_free_capacity(
    requested: str | None, policy: Manifest | None, busy: str | None, passes: bool
) -> None:
    capacity: Manifest = {"memory": {"value": "10Gi"} | ({"requestPolicy": policy} if policy else {})}
    gpu = device("gpu-0", Capacity=capacity, AllowMultipleAllocations=True)
    memory_request = request(capacity={"requests": {"memory": requested}}) if requested else request()
    objects = [claiming("gpu"), claim("gpu", memory_request), device_class(), resource_slice("a", gpu)]
    if busy:
        objects.append(allocated("busy", "a", "gpu-0", shareID="1", consumedCapacity={"memory": busy}))
    assert (on_one_node(objects) == "") == passes


@pytest.mark.parametrize(
    ("selector", "gates", "passes"),
    [
        pytest.param("device.allowMultipleAllocations", {}, True, id="enabled"),
        pytest.param("device.allowMultipleAllocations", {"DRAConsumableCapacity": False}, True, id="still readable"),
        pytest.param(
            "device.allowMultipleAllocations",
            {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False},
            False,
            id="the oldest allocator passes no value",
        ),
        pytest.param(f"{ATTRIBUTES}.model.includes('a')", {"DRAListTypeAttributes": False}, True, id="includes"),
    ],
)
def test_stored_selectors_may_use_features_that_are_off(selector: str, gates: dict[str, bool], passes: bool) -> None:
    shared = {**device("d", model="a"), "allowMultipleAllocations": True}
    objects = [
        resource_slice("a", shared),
        device_class("gpu"),
        claim("c", request(select=[selector])),
        claiming("c"),
    ]
    assert on_one_node(objects, **gates) == ("" if passes else NO_ALLOCATION)


def test_shares_without_consumed_capacity_are_released() -> None:
    """Two requests share one device with a capacity of 0, and no device meets a third request."""
    gpu = device("gpu-0", Capacity={"memory": {"value": "0"}}, AllowMultipleAllocations=True)
    requests = [request("x"), request("y"), request("z", select=["false"])]
    assert on_one_node([claiming("gpu"), claim("gpu", *requests), device_class(), resource_slice("a", gpu)]) == (
        NO_ALLOCATION
    )


# --- differences between versions; those between 1.37 and 1.38 as published

_FIRST, _LAST = ("1.34", "1.35"), ("1.37", "1.38")
EVERY_DEVICE = request(allocationMode="All")
NONE_OR_ALL = first_available(
    "r", request("none", select=["false"], allocationMode="All"), request("all", allocationMode="All")
)
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
ELSEWHERE = resource_slice("b", device("gpu-1"), name="b", pool={"name": "a", "generation": 1, "resourceSliceCount": 2})
DUPLICATE = resource_slice("a", device("gpu-0"), device("gpu-0"))


@pytest.mark.parametrize(
    ("objects", "versions", "until", "since"),
    [
        ([claim("gpu"), HALF], _FIRST, "Scheduled", "Unschedulable"),
        ([claim("gpu", EVERY_DEVICE), HALF, ELSEWHERE], _FIRST, "Error", "Scheduled"),
        ([claim("gpu"), DUPLICATE], _FIRST, "Error", "Unschedulable"),
        ([claim("gpu", NONE_OR_ALL), TWO_GPUS], ("1.35", "1.36"), "Unschedulable", "Scheduled"),
        ([claim("gpu"), TWO_GPUS, RULE], _LAST, "Unschedulable", "Scheduled"),
        ([claim("gpu", EVERY_DEVICE), HALF], _LAST, "Error", "Unschedulable"),
        (
            [claim("gpu", QUALIFIED), resource_slice("a", device("gpu-0", Capacity=MEMORY))],
            _LAST,
            "Unschedulable",
            "Scheduled",
        ),
        ([claim("gpu"), resource_slice("a", device("gpu-0")), SHARE], _LAST, "Scheduled", "Unschedulable"),
    ],
    ids=[
        *("a device of half a pool", "all of a pool on two nodes", "invalid pool", "second alternative"),
        *("rule without a selector", "all of half a pool", "capacity by its full name", "allocated as a share"),
    ],
)
def test_differences_between_versions(
    objects: list[Manifest], versions: tuple[str, str], until: str, since: str
) -> None:
    snapshot = Snapshot.from_objects([node("a"), claiming("gpu"), device_class(), *objects])
    for version, outcome in zip(versions, (until, since), strict=True):
        assert kschedx.explain(snapshot, "default/me", kube_version=version).overall == outcome


def test_the_message_of_a_missing_attribute() -> None:
    claim_on_missing = claim("gpu", request(select=[f"{ATTRIBUTES}.missing == 1"]))
    snapshot = Snapshot.from_objects([node("a"), claiming("gpu"), device_class(), TWO_GPUS, claim_on_missing])
    texts = [kschedx.explain(snapshot, "default/me", kube_version=item).message for item in ("1.36", "1.37")]
    assert ["consider using CEL optional chaining" in text for text in texts] == [False, True]


# --- allocated claims


def test_an_allocated_claim_binds_the_pod_to_its_node() -> None:
    nodes = [node("a"), node("b", unschedulable=True)]
    cycle = evaluate([*nodes, claiming("gpu"), allocated("gpu", "b", "gpu-0")], "default/me")
    assert (message_on(cycle, "a"), message_on(cycle, "b")) == (UNAVAILABLE, "")
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
def test_a_claim_without_other_consumers_is_deallocated(reserved_for: list[str], text: str) -> None:
    objects = [node("a"), claiming("gpu"), allocated("gpu", "b", "gpu-0", reserved_for=reserved_for)]
    assert f". {text}, preemption: " in evaluate(objects, "default/me").message


def test_deallocation_needs_a_node_that_passes_earlier_plugins() -> None:
    objects = [node("a", unschedulable=True), claiming("gpu"), allocated("gpu", "b", "gpu-0", reserved_for=[])]
    assert ". still not schedulable, preemption: " in evaluate(objects, "default/me").message


@pytest.mark.parametrize(
    ("conditions", "bind_start", "passes"),
    [
        ([], None, True),
        ([], "2020-01-01T00:00:00Z", False),
        ([{"type": "ready", "status": "True"}], "2020-01-01T00:00:00Z", True),
        ([{"type": "broken", "status": "True"}], None, False),
    ],
)
def test_binding_conditions_of_devices(conditions: list[Manifest], bind_start: str | None, passes: bool) -> None:
    conditions_of_device = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    result = allocated("gpu", "a", "d", since=bind_start, conditions=conditions, **conditions_of_device)
    assert (on_one_node([claiming("gpu"), result]) == "") == passes


def test_what_happens_next_names_the_binding_conditions() -> None:
    attached = {**device("gpu-0"), "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
    objects = [node("a"), claiming("gpu"), claim("gpu", request("r")), device_class(), resource_slice("a", attached)]
    findings = (finding for _, status in evaluate(objects, "default/me").dry_steps for finding in status.findings)
    assert describe(next(findings)).headline.endswith("; the pod waits up to 600 s until its driver reports attached")


# --- scores


def test_an_earlier_alternative_has_a_higher_score() -> None:
    nodes = [node("a"), node("b")]
    slices = [resource_slice("a", device("gpu-0"), device("gpu-1")), resource_slice("b", device("gpu-0"))]
    device_claim = claim("gpu", first_available("r", request("two", count=2), request("one")))
    cycle = evaluate([*nodes, claiming("gpu"), device_claim, device_class(), *slices], "default/me")
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
def test_extended_resources_of_device_classes(
    resource: str, amount: str, classes: list[Manifest], message: str
) -> None:
    objects = [node("a"), requesting(resource, amount), *classes, resource_slice("a", device("gpu-0"))]
    cycle = evaluate(objects, "default/me")
    assert cycle.message.startswith(f"0/1 nodes are available: 1 {message}. " if message else "")


def test_allocatable_extended_resources_need_no_devices() -> None:
    node_with_resource = node("a", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9", "example.com/gpu": "1"})
    objects = [node_with_resource, node("b"), requesting("example.com/gpu"), device_class(resource="example.com/gpu")]
    cycle = evaluate(objects, "default/me")
    assert (message_on(cycle, "a"), message_on(cycle, "b")) == ("", NO_ALLOCATION)


def test_init_containers_reuse_devices() -> None:
    def container_with_gpus(name: str, amount: int) -> Manifest:
        return {"name": name, "resources": {"limits": {"example.com/gpu": str(amount)}}}

    spec = {
        "initContainers": [container_with_gpus("small", 1), container_with_gpus("large", 3)],
        "containers": [container_with_gpus("main", 2)],
    }
    gpus = resource_slice("a", *(device(f"gpu-{at}") for at in range(3)))
    objects = [node("a"), pod("me", spec=spec), device_class(resource="example.com/gpu"), gpus]
    assert allocated_devices(evaluate(objects, "default/me")) == ["gpu-0", "gpu-1", "gpu-2"]


def test_without_the_gate_extended_resources_are_allocatable() -> None:
    objects = [node("a"), requesting("example.com/gpu"), device_class(resource="example.com/gpu")]
    cycle = evaluate(objects, "default/me", gates={"DRAExtendedResource": False})
    assert "1 Insufficient example.com/gpu" in cycle.message


def test_the_newest_class_provides_the_resource() -> None:
    classes = [
        device_class("old", resource="example.com/gpu", created="2025-01-01T00:00:00Z"),
        device_class("z-new", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
        device_class("new", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
    ]
    class_by_resource = Snapshot.from_objects(classes).devices.class_of_resource
    # an older class before the newest one by name loses its implicit resource as well
    assert class_by_resource == {"example.com/gpu": "new", f"{PREFIX}new": "new"}


def test_an_older_class_keeps_its_implicit_resource() -> None:
    classes = [
        device_class("a", resource="example.com/gpu", created="2025-01-01T00:00:00Z"),
        device_class("b", resource="example.com/gpu", created="2026-01-01T00:00:00Z"),
    ]
    class_by_resource = Snapshot.from_objects(classes).devices.class_of_resource
    assert class_by_resource == {"example.com/gpu": "b", f"{PREFIX}a": "a", f"{PREFIX}b": "b"}


# --- older versions of the API


def test_v1beta1_objects() -> None:
    beta = {"apiVersion": "resource.k8s.io/v1beta1"}
    gpu: Manifest = {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "a100"}}}}
    select = [{"cel": {"expression": f"{ATTRIBUTES}.model == 'a100'"}}]
    device_claim = claim("gpu", {"name": "r", "deviceClassName": "gpu", "selectors": select}) | beta
    slice_v1beta1 = resource_slice("a", gpu) | beta
    assert allocated_devices(
        evaluate([node("a"), claiming("gpu"), device_claim, slice_v1beta1, device_class()], "default/me")
    ) == ["gpu-0"]


def test_an_error_names_the_field_of_an_invalid_quantity() -> None:
    with pytest.raises(InputError, match=r"spec\.devices\[0\]\.capacity\[memory\]\.value: .*'lots'"):
        Snapshot.from_objects([resource_slice("a", device("gpu-0", memory="lots"))])


# --- findings


def shortage(*objects: Manifest) -> InsufficientDevices:
    cycle = evaluate([node("a"), claiming("gpu"), *objects], "default/me")
    (finding,) = findings_of(cycle)
    assert isinstance(finding, InsufficientDevices)
    return finding


def test_a_shortage_lists_the_claims_with_the_devices() -> None:
    (shortage_of_request,) = shortage(
        claim("gpu", request(count=2)), device_class(), TWO_GPUS, allocated("busy", "a", "gpu-0")
    ).shortages
    assert (
        shortage_of_request.in_reach,
        shortage_of_request.of_class,
        shortage_of_request.matching,
        shortage_of_request.free,
        shortage_of_request.wanted,
    ) == (2, 2, 2, 1, 2)
    assert [(holder.device, holder.claim, holder.consumers) for holder in shortage_of_request.holders] == [
        ("a/gpu-0", "default/busy", ("pods/somebody",))
    ]


@pytest.mark.parametrize(
    ("device_request", "classes", "stage", "selectors"),
    [
        (request(), device_class("gpu", "device.driver == 'x'"), "other-class", ("device.driver == 'x'",)),
        (request(select=["false"]), device_class(), "no-match", ("false",)),
        (request(select=["true"], count=3), device_class(), "taken", ()),
    ],
)
def test_a_shortage_names_the_failing_selectors(
    device_request: Manifest, classes: Manifest, stage: str, selectors: tuple[str, ...]
) -> None:
    (shortage_of_request,) = shortage(claim("gpu", device_request), classes, TWO_GPUS).shortages
    assert (shortage_of_request.stage, shortage_of_request.selectors) == (stage, selectors)


def test_a_node_without_devices() -> None:
    (shortage_of_request,) = shortage(claim("gpu"), device_class()).shortages
    assert shortage_of_request.stage == "none"


def test_a_shortage_of_counters() -> None:
    (shortage_of_request,) = shortage(
        claim("gpu"), device_class(), *partitions("4", "2"), allocated("busy", "a", "p1")
    ).shortages
    assert [(counter.counter, counter.needed, counter.left) for counter in shortage_of_request.counters] == [
        ("slots/slots", "4", "2")
    ]


def test_a_constraint_that_no_combination_meets() -> None:
    device_claim = claim("gpu", request("x"), request("y"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    finding = shortage(device_claim, device_class(), TWO_GPUS)
    assert finding.shortages == ()
    rule = f"all devices must have the same {DRIVER}/numa"
    assert finding.constraints == (rule,)
    assert describe(finding).headline == f"no combination of its devices satisfies claim default/gpu: {rule}"


def test_a_constraint_without_effect_is_no_cause() -> None:
    device_claim = claim("gpu", request("x"), request("y"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    one_device = resource_slice("a", device("gpu-0", numa=0))
    assert shortage(device_claim, device_class(), one_device).constraints == ()


def test_a_constraint_is_no_cause_if_the_search_without_it_fails() -> None:
    failing = {"cel": {"expression": f'device.attributes["{DRIVER}"].nothing == 1'}}
    alternatives = first_available("y", request("two", count=2), request("none", selectors=[failing]))
    device_claim = claim("gpu", request("x"), alternatives, constraints=[{"matchAttribute": f"{DRIVER}/ghost"}])
    assert shortage(device_claim, device_class(), TWO_GPUS).constraints == ()


# --- undecided searches


def test_a_long_search_is_undecided() -> None:
    devices = resource_slice("a", *(device(f"gpu-{at:02}", odd=at % 2) for at in range(40)))
    impossible = claim("gpu", request(count=25), constraints=[{"matchAttribute": f"{DRIVER}/odd"}])
    with pytest.raises(UndecidableError, match="too many possible allocations on node a"):
        evaluate([node("a"), claiming("gpu"), impossible, device_class(), devices], "default/me")


def test_versions_with_another_allocator_are_undecided() -> None:
    objects = [node("a"), claiming("gpu"), claim("gpu"), device_class(), TWO_GPUS]
    pod = Snapshot.from_objects(objects)
    with pytest.raises(UndecidableError, match=r"requests devices \(gpu\): how kube-scheduler 1\.33 allocated them"):
        explain_pod(pod, "default/me", kube_version="1.33", feature_gates={"DynamicResourceAllocation": True})
    with pytest.raises(UndecidableError, match=r"--kube-version 1\.34"):  # the driver's ResourceSlices show the gate
        explain_pod(pod, "default/me", kube_version="1.33")
    off = explain_pod(pod, "default/me", kube_version="1.33", feature_gates={"DynamicResourceAllocation": False})
    without_slices = explain_pod(Snapshot.from_objects(objects[:-1]), "default/me", kube_version="1.33")
    assert off.cycle.outcome is without_slices.cycle.outcome is Outcome.SCHEDULED


def test_stored_fields_show_their_feature_gate() -> None:
    """An API server drops the fields of a gate that is off; kube-scheduler 1.34 reports an error about them."""
    wanted = claim("gpu", request(capacity={"requests": {"memory": "1Gi"}}))
    shared: Manifest = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
    snapshot = Snapshot.from_objects([node("a"), claiming("gpu"), device_class(), resource_slice("a", shared), wanted])
    result = explain_pod(snapshot, "default/me", kube_version="1.34")
    assert result.outcome is Outcome.SCHEDULED
    off = explain_pod(snapshot, "default/me", kube_version="1.34", feature_gates={"DRAConsumableCapacity": False})
    assert "the DRAConsumableCapacity feature is disabled" in off.message


def test_an_allocation_with_an_invalid_node_selector() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "Near", "values": ["a"]}]}
    allocation = {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    allocated_claim = claim("mine", status={"allocation": allocation})
    cycle = evaluate([node("a"), resource_slice("a", device("gpu-0")), allocated_claim, claiming("mine")], "default/me")
    expected = (
        'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Near": supported values: "In", "NotIn"'
    )
    assert expected in cycle.message
