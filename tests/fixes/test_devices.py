"""Fixes for device claims; a deletion of pods is proposed only if it helps."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.fixes.ranking import FixCertainty
from tests.builders import Manifest, at, node, pod
from tests.device_builders import DRIVER, allocated, claim, claiming, device, device_class, request, resource_slice

GPUS = resource_slice("a", *(device(f"gpu-{at}", root=at // 2) for at in range(4)))
SAME_ROOT: list[Manifest] = [{"matchAttribute": f"{DRIVER}/root"}]


def held(name: str, *devices: str, priority: int = 0) -> list[Manifest]:
    """Return a pod and its claim with allocated devices."""
    uses = [{"name": "gpu", "resourceClaimName": name}]
    return [
        pod(name, on="a", resourceClaims=uses, priority=priority),
        allocated(name, "a", *devices, reserved_for=[name]),
    ]


def titles(*objects: Manifest, certainty: FixCertainty = FixCertainty.VERIFIED, of: str = "delete") -> list[str]:
    """Return the fixes that begin with a word."""
    snapshot = kschedx.Snapshot.from_objects([node("a"), device_class(), GPUS, claiming("mine"), *objects])
    fixes = kschedx.explain(snapshot, "default/me").fixes
    return [fix.title for fix in fixes if fix.certainty is certainty and fix.title.startswith(of)]


@pytest.mark.parametrize(
    ("wanted", "pods", "expected"),
    [
        (
            claim("mine", request(count=2)),
            held("one", "gpu-0", "gpu-1", "gpu-2"),
            ["delete default/one (priority 0) on a"],
        ),
        (claim("mine", request(count=4)), [*held("one", "gpu-0"), *held("two", "gpu-1")], None),
        # nobody gives up a pod of higher priority
        (claim("mine", request(count=4)), held("one", "gpu-0", priority=5), []),
        # more than there are
        (claim("mine", request(count=5)), held("one", "gpu-0"), []),
    ],
)
def test_pods_that_use_devices(wanted: Manifest, pods: list[Manifest], expected: list[str] | None) -> None:
    both = ["delete default/one (priority 0) and default/two (priority 0) on a"]
    assert titles(wanted, *pods) == (both if expected is None else expected)


def test_only_the_pod_whose_devices_match_the_free_ones() -> None:
    wanted = claim("mine", request(count=2), constraints=SAME_ROOT)
    busy = [*held("one", "gpu-0", "gpu-1"), *held("two", "gpu-2")]
    assert titles(wanted, *busy) == [f"delete default/{name} (priority 0) on a" for name in ("two", "one")]
    apart = [*held("one", "gpu-0"), *held("two", "gpu-2"), *held("other", "gpu-3", priority=9)]
    assert titles(wanted, *apart) == ["delete default/one (priority 0) on a"]


def test_fewer_devices_if_some_are_free() -> None:
    wanted = claim("mine", request(count=3))
    assert titles(wanted, *held("one", "gpu-0", "gpu-1", priority=5), of="request") == [
        "request 2 devices in request r of claim default/mine"
    ]


@pytest.mark.parametrize(("name", "version"), [("memory", "1.36"), (f"{DRIVER}/memory", "1.38")])
def test_less_of_a_capacity_that_other_claims_share(name: str, version: str) -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    capacity = {"memory": {"value": "40Gi", "requestPolicy": policy}}
    shared = resource_slice("a", device("gpu-0", Capacity=capacity, AllowMultipleAllocations=True))
    busy = allocated("busy", "a", "gpu-0", shareID="1", consumedCapacity={"memory": "30Gi"})
    wanted = claim("mine", request(capacity={"requests": {name: "20Gi"}}))
    snapshot = kschedx.Snapshot.from_objects([node("a"), device_class(), shared, busy, wanted, claiming("mine")])
    result = kschedx.explain(snapshot, "default/me", kube_version=version)
    title = "lower memory from 20Gi to 10Gi in request r of claim default/mine"
    assert [fix.title for fix in result.fixes if fix.certainty is FixCertainty.VERIFIED][1] == title
    assert "memory of a/gpu-0: needs 20Gi, 10Gi left" in str(result)


@pytest.mark.parametrize(("consumed", "left"), [("30Gi", "10Gi"), ("40Gi", "")])
def test_a_request_is_lowered_to_the_most_that_a_device_has_left(consumed: str, left: str) -> None:
    shared = [device(name, Capacity={"memory": {"value": "40Gi"}}, AllowMultipleAllocations=True) for name in "xy"]
    busy = [
        allocated(name, "a", name, shareID="1", consumedCapacity={"memory": amount})
        for name, amount in (("x", "40Gi"), ("y", consumed))
    ]
    wanted = claim("mine", request(capacity={"requests": {"memory": "20Gi"}}))
    objects = [node("a"), device_class(), resource_slice("a", *shared), *busy, wanted, claiming("mine")]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    titles = [f"lower memory from 20Gi to {left} in request r of claim default/mine"] if left else []
    assert [fix.title for fix in result.fixes if fix.title.startswith("lower")] == titles


def test_a_new_node_with_the_fewest_devices() -> None:
    wanted = claim("mine", request(count=3))
    busy = held("one", "gpu-0", "gpu-1", "gpu-2", "gpu-3", priority=5)
    (fix,) = kschedx.explain(
        kschedx.Snapshot.from_objects([node("a"), device_class(), GPUS, claiming("mine"), wanted, *busy]), "default/me"
    ).fixes
    created = [change.create for change in fix.changes if change.create and change.create["kind"] == "ResourceSlice"]
    assert [len(at(item, "spec.devices")) for item in created] == [3]


def test_devices_that_kube_scheduler_deallocates_need_no_other_fix() -> None:
    """The devices are on a node that the pod cannot use; the next attempt allocates others."""
    apart = kschedx.Snapshot.from_objects(
        [
            *(node("a"), node("b", labels={"team": "a"}), device_class()),
            *(GPUS, resource_slice("b", device("gpu-0"))),
            *(allocated("mine", "a", "gpu-0", reserved_for=["me"]), claiming("mine", nodeSelector={"team": "a"})),
        ]
    )
    (fix,) = kschedx.explain(apart, "default/me").fixes
    assert fix.certainty is FixCertainty.VERIFIED
    assert fix.feasible_nodes == ("b",)
    (change,) = fix.changes
    assert (change.by, change.target.name) == ("kube-scheduler", "mine")
    assert not fix.apply


def test_an_error_on_one_node_ends_the_attempt() -> None:
    """A device lacks an attribute that a selector reads without a check."""
    nodes = [node("a", labels={"team": "b"}), node("b", labels={"team": "b"})]
    slices = [resource_slice("a", device("gpu-0", root=1)), resource_slice("b", device("gpu-0"))]
    mine = claim("mine", request(select=[f'device.attributes["{DRIVER}"].root == 1']))
    wanting = claiming("mine", nodeSelector={"team": "a"})
    snapshot = kschedx.Snapshot.from_objects([*nodes, device_class(), *slices, mine, wanting])
    texts = {fix.title: fix.certainty for fix in kschedx.explain(snapshot, "default/me").fixes}
    assert texts["label a team=a"] is FixCertainty.VERIFIED
    assert texts.get("stop requiring team=a") is not FixCertainty.VERIFIED


def test_a_template_that_is_missing_is_created_and_not_its_claim() -> None:
    """The controller creates the claim and writes the status of the pod, which users cannot."""
    containers = [{"name": "m", "resources": {"claims": [{"name": "gpu"}]}}]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    me = pod("me", spec={"containers": containers, "resourceClaims": claims})
    (fix,) = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), device_class(), GPUS, me]), "default/me").fixes
    assert fix.title == "create ResourceClaimTemplate default/gpus"
    assert [change.target.kind for change in fix.apply] == ["ResourceClaimTemplate"]
    assert [(change.target.kind, change.by) for change in fix.changes if change.by] == [
        ("ResourceClaim", "kube-controller-manager"),
        ("Pod", "kube-controller-manager"),
    ]


DONE = [("ResourceClaimTemplate", "delete", ""), ("ResourceClaimTemplate", "create", "")]


@pytest.mark.parametrize(
    ("owners", "then", "did"),
    [
        ([], "", [("ResourceClaim", "delete", ""), ("ResourceClaim", "create", "kube-controller-manager")]),
        (
            [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}],
            ", then delete 1 pending pod",
            [("Pod", "delete", "")],
        ),
    ],
    ids=["a bare pod", "a pod of a controller"],
)
def test_the_template_changes_and_not_its_claim(owners: list[Manifest], then: str, did: list[tuple[str, ...]]) -> None:
    """The controller creates the claim of a new pod from the changed template, or recreates an old deleted claim."""
    wanted = request(select=[f'device.attributes["{DRIVER}"].root == 99'])
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [wanted]}}},
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "me", "uid": "default/me", "controller": True}
    uses = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    status = {"phase": "Pending", "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "me-gpu"}]}
    me = pod(
        "me", spec={"resourceClaims": uses}, status=status, metadata={"uid": "default/me", "ownerReferences": owners}
    )
    mine = claim("me-gpu", wanted, ownerReferences=[owner])
    snapshot = kschedx.Snapshot.from_objects([node("a"), device_class(), GPUS, template, mine, me])
    title = "remove the selectors of request r from ResourceClaimTemplate default/gpus" + then
    [fix] = [item for item in kschedx.explain(snapshot, "default/me").fixes if item.title == title]
    assert fix.certainty is FixCertainty.VERIFIED
    changes = [(item.target.kind, "delete" if item.delete else "create", item.by) for item in fix.changes]
    assert changes == [*DONE, *did]


def test_a_class_whose_selectors_match_no_device() -> None:
    large = device_class("gpu", f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].root == 99')
    snapshot = kschedx.Snapshot.from_objects([node("a"), large, GPUS, claiming("mine"), claim("mine", request())])
    fixes = kschedx.explain(snapshot, "default/me").fixes
    title = f"remove the selectors of device class gpu but driver {DRIVER}: no device matches them"
    [fix] = [item for item in fixes if item.title == title]
    [change] = fix.changes
    assert change.patch[0]["path"] == "/spec/selectors"


def test_a_remedy_of_two_causes_is_shown_once() -> None:
    """On the only node for the claim, the pod that uses it requests all CPU as well."""
    uses = [{"name": "gpu", "resourceClaimName": "mine"}]
    half = [{"name": "main", "resources": {"requests": {"cpu": "40"}}}]
    snapshot = kschedx.Snapshot.from_objects(
        [
            *(node("a"), node("b"), device_class(), GPUS),
            allocated("mine", "a", "gpu-0", reserved_for=["has"]),
            pod("has", on="a", resourceClaims=uses, containers=half),
            pod("me", resourceClaims=uses, containers=half),
        ]
    )
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert [title for title in titles if title.startswith("delete")] == ["delete default/has (priority 0) on a"]


def test_a_new_node_has_the_device_that_a_claim_selects() -> None:
    chosen = request(select=[f"device.attributes['{DRIVER}'].root == 'other'"])
    [text] = titles(claim("mine", chosen), of="add a node")
    assert text.endswith(f"1 device of {DRIVER} (root=other)")


@pytest.mark.parametrize(("least", "shown"), [("80Gi", " (memory=80Gi)"), ("40Gi", "")])
def test_a_new_node_has_devices_with_the_capacity_that_a_claim_compares(least: str, shown: str) -> None:
    """The only device has 40Gi and is in use."""
    chosen = request(select=[f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{least}')) >= 0"])
    small = resource_slice("a", device("gpu-0", memory="40Gi"))
    objects = [node("a"), device_class(), small, *held("used", "gpu-0"), claim("mine", chosen), claiming("mine")]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    [text] = [fix.title for fix in fixes if fix.title.startswith("add a node")]
    assert text.endswith(f"1 device of {DRIVER}{shown}")


def test_a_class_of_a_driver_without_devices_is_not_corrected() -> None:
    """Devices of another driver publish the attribute as well, which does not make the name of the driver wrong."""
    wanted = 'device.driver == "absent.com" && device.attributes["absent.com"].model == "x1"'
    cluster = [node("a"), device_class("gpu", wanted), resource_slice("a", device("d0", model="x2"))]
    snapshot = kschedx.Snapshot.from_objects([*cluster, claim("mine", request()), claiming("mine")])
    fixes = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert not any(title.startswith("read ") for title in fixes)


def test_a_missing_claim_has_a_similar_one() -> None:
    """A claim of a similar name or of another namespace is proposed; otherwise a new one of a class."""
    elsewhere = claim("mine", request(count=2))
    at(elsewhere, "metadata")["namespace"] = "ml"
    built = "create resource claim default/mine"
    assert titles(claim("mines", request()), of="use") == ["use resource claim mines instead of mine"]
    assert titles(elsewhere, of="create") == [f"{built}, like ml/mine"]
    assert titles(of="create") == [f"{built} with 1 device of class {at(device_class(), 'metadata')['name']}"]


def test_a_selector_that_is_no_expression_is_to_be_corrected() -> None:
    cluster = [node("a"), resource_slice("a", device("d0")), claiming("mine"), device_class("gpu", "device.drivr == 1")]
    snapshot = kschedx.Snapshot.from_objects([*cluster, claim("mine", request())])
    assert kschedx.explain(snapshot, "default/me").fixes[0].title == "correct the selector of class gpu"


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([claiming("old", name="somebody", nodeName="a")], ""),
        (
            [claiming("old", name="other")],
            "if somebody no longer exists, clear reservedFor of claim default/old",
        ),
        ([], "delete claim default/old if nothing uses it: it keeps its devices"),
    ],
    ids=["its pod", "another pod", "no pod"],
)
def test_a_claim_that_no_pod_uses_is_deleted(others: list[Manifest], expected: str) -> None:
    cluster = [node("a"), resource_slice("a", device("d0")), device_class(), claiming("mine"), claim("mine", request())]
    snapshot = kschedx.Snapshot.from_objects([*cluster, allocated("old", "a", "d0"), *others])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes if "claim default/old" in fix.title]
    assert titles == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("expression", "title"),
    [
        ('device.attributes["other.com"].model == "x1"', f"read model of domain {DRIVER} instead of other.com in "),
        (f'device.attributes["{DRIVER}"].modle == "x1"', "read model instead of modle in "),
        (f'device.capacity["{DRIVER}"].mem.isLessThan(quantity("99Gi"))', "read memory instead of mem in "),
        (f'device.attributes["{DRIVER}"].kind == "y"', "check that a device has kind before it is compared in "),
        (f'device.attributes["{DRIVER}"].memory.isLessThan(quantity("99Gi"))', "read memory from device.capacity in "),
        (f'device.attributes["{DRIVER}"].colour == "red"', ""),
        (f'device.attributes["{DRIVER}"].model == "x1" && device.attributes["a.b"].size == 1', ""),
    ],
    ids=[
        "another domain",
        "a misspelling",
        "a shorter name",
        "only some devices",
        "a capacity",
        "an unknown name",
        "unknown in any",
    ],
)
@pytest.mark.parametrize("owner", ["claim", "class"])
def test_a_failing_selector_reads_what_the_devices_publish(owner: str, expression: str, title: str) -> None:
    devices = resource_slice("a", device("d0", memory="9Gi", model="x1"), device("d1", memory="9Gi", kind="y"))
    cluster = [node("a"), devices, claiming("mine")]
    if owner == "claim":
        cluster += [device_class(), claim("mine", request(select=[expression]))]
    else:
        cluster += [device_class("gpu", expression), claim("mine", request())]
    result = kschedx.explain(kschedx.Snapshot.from_objects(cluster), "default/me")
    assert result.outcome == "Error"
    named = {"claim": "claim default/mine", "class": "device class gpu"}[owner]
    assert [fix.title for fix in result.fixes if fix.certainty == "verified"] == ([f"{title}{named}"] if title else [])


@pytest.mark.parametrize(
    ("expression", "title"),
    [
        (
            f'"modle" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].modle == "x1"',
            "read model instead of modle in ",
        ),
        (
            f"'modle' in device.attributes['{DRIVER}'] && device.attributes['{DRIVER}'].modle == 'x1'",
            "read model instead of modle in ",
        ),
        (
            f'has(device.attributes["{DRIVER}"].modle) && device.attributes["{DRIVER}"].modle == "x1"',
            "read model instead of modle in ",
        ),
        (
            '"model" in device.attributes["other.com"] && device.attributes["other.com"].model == "x1"',
            f"read model of domain {DRIVER} instead of other.com in ",
        ),
        (f'"colour" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].colour == "red"', ""),
        (f'"model" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].model == "x1"', None),
    ],
)
@pytest.mark.parametrize("owner", ["claim", "class"])
def test_a_selector_that_asks_for_an_unpublished_name_is_corrected(
    owner: str, expression: str, title: str | None
) -> None:
    cluster = [node("a"), resource_slice("a", device("d0", memory="9Gi", model="x1")), claiming("mine")]
    if owner == "claim":
        cluster += [device_class(), claim("mine", request(select=[expression]))]
    else:
        cluster += [device_class("gpu", expression), claim("mine", request())]
    result = kschedx.explain(kschedx.Snapshot.from_objects(cluster), "default/me")
    named = {"claim": "claim default/mine", "class": "device class gpu"}[owner]
    corrected = [fix.title for fix in result.fixes if fix.title.startswith("read")]
    assert corrected == ([f"{title}{named}"] if title else [])
    assert not title or result.fixes[0].title == f"{title}{named}"
    assert (result.outcome == "Scheduled") is (title is None)
