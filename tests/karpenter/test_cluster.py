"""Karpenter's decisions on the objects of a cluster: what is certain, and what remains unknown."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.karpenter.catalogue import InstanceTypes, WrittenOffering, WrittenType
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions, LaunchCertainty
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import is_same_karpenter_event
from kschedx.snapshot.snapshot import Snapshot

READY = [{"type": kind, "status": "True"} for kind in ("ValidationSucceeded", "NodeClassReady", "Ready")]
REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
ZONE = "topology.kubernetes.io/zone"
Json = dict[str, Any]


def pool(name: str = "general", *requirements: Json, **spec: Any) -> Json:
    template = {"spec": {"nodeClassRef": REFERENCE, "requirements": list(requirements)}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
        "status": {"conditions": READY},
    }


def pod(cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Pending", "conditions": [condition]},
    }


def node(cpu: str = "4") -> Json:
    labels = {
        "node.kubernetes.io/instance-type": "m6i.xlarge",
        ZONE: "eu-1a",
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
    }
    resources = {"cpu": cpu, "memory": "16Gi", "pods": "58"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "labels": labels},
        "spec": {
            "providerID": "aws:///one",
            "taints": [{"key": "full", "effect": "NoSchedule"}],
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def node_class(*zones: str) -> Json:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "status": {"subnets": [{"id": zone, "zone": zone} for zone in zones]},
    }


def karpenter(*objects: Json) -> Karpenter:
    provisioner = Karpenter.of(Snapshot.from_objects(deepcopy(objects)), KarpenterOptions())
    assert provisioner is not None
    return provisioner


def decision_of(*objects: Json) -> tuple[PodEligibility, str, tuple[LaunchCertainty, ...]]:
    provisioner = karpenter(*objects)
    answer = provisioner.explain(provisioner.snapshot.pods[provisioner.snapshot.pods.rows["default/web"]])
    assert answer is not None
    return answer.looked.outcome, answer.pool, tuple(item.certainty for item in answer.pools)


def test_karpenter_adds_an_instance_type_of_the_cluster() -> None:
    assert decision_of(pool(), node(), node_class("eu-1a"), pod()) == (PodEligibility.CONSIDERED, "general", ())


def test_a_request_above_all_known_types_is_undecided() -> None:
    assert decision_of(pool(), node(), node_class("eu-1a"), pod("8"))[2] == (LaunchCertainty.UNKNOWN,)
    assert decision_of(pool(), pod())[2] == (LaunchCertainty.UNKNOWN,)


def test_a_pool_limited_to_known_types_rejects_larger_requests() -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m6i.xlarge"]}
    assert decision_of(pool("general", requirement), node(), node_class("eu-1a"), pod("8"))[2] == (
        LaunchCertainty.REJECTS,
    )


def test_no_type_is_offered_in_a_zone_without_subnets() -> None:
    target = pod(nodeSelector={ZONE: "eu-1c"})
    assert decision_of(pool(), node(), node_class("eu-1a"), target)[2] == (LaunchCertainty.REJECTS,)
    assert decision_of(pool(), node(), target)[2] == (LaunchCertainty.UNKNOWN,)


CAPACITY_TYPE = "karpenter.sh/capacity-type"
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
TYPE = "node.kubernetes.io/instance-type"


def reservation(zone: str = "eu-1a", instance_type: str = "m6i.xlarge", **fields: str) -> Json:
    """Return a node class with subnets in eu-1a and one reservation."""
    manifest = {"id": "cr-1", "instanceType": instance_type, "availabilityZone": zone, "state": "active", **fields}
    base = node_class("eu-1a")
    return {**base, "status": {**base["status"], "capacityReservations": [manifest]}}


@pytest.mark.parametrize(
    ("selector", "of_class", "expected"),
    [
        ({CAPACITY_TYPE: "reserved"}, node_class("eu-1a"), (LaunchCertainty.REJECTS,)),
        ({CAPACITY_TYPE: "reserved"}, {}, (LaunchCertainty.UNKNOWN,)),
        ({CAPACITY_TYPE: "reserved"}, reservation(), ()),
        ({CAPACITY_TYPE: "reserved"}, reservation(zone="eu-1b"), (LaunchCertainty.REJECTS,)),
        ({CAPACITY_TYPE: "reserved"}, reservation(state="expiring"), (LaunchCertainty.REJECTS,)),
        ({CAPACITY_TYPE: "reserved"}, reservation(instance_type="p5.48xlarge"), (LaunchCertainty.UNKNOWN,)),
        ({RESERVATION: "cr-1"}, reservation(), ()),
        ({RESERVATION: "cr-2"}, reservation(), (LaunchCertainty.UNKNOWN,)),
        ({RESERVATION: "cr-1", CAPACITY_TYPE: "spot"}, reservation(), (LaunchCertainty.UNKNOWN,)),
        ({"karpenter.k8s.aws/capacity-reservation-interruptible": "false"}, reservation(), ()),
        ({"karpenter.k8s.aws/capacity-reservation-interruptible": "true"}, reservation(), (LaunchCertainty.UNKNOWN,)),
        ({"karpenter.k8s.aws/instance-tenancy": "dedicated"}, node_class("eu-1a"), ()),
    ],
)
def test_reserved_capacity_needs_a_reservation_of_the_node_class(
    selector: Json, of_class: Json, expected: tuple[LaunchCertainty, ...]
) -> None:
    objects = [item for item in (pool(), node(), of_class, pod(nodeSelector=selector)) if item]
    assert decision_of(*objects)[2] == expected


def overlay(name: str = "gpu", ready: str = "True", requirements: tuple[Json, ...] = (), **spec: Any) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": list(requirements), **spec},
        "status": {"conditions": [{"type": "Ready", "status": ready}] if ready else []},
    }


def needs(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


@pytest.mark.parametrize(
    ("overlays", "has"),
    [
        ((overlay(capacity={"example.com/fpga": "2"}),), True),
        ((overlay(capacity={"example.com/fpga": "2"}, ready="False"),), False),
        ((overlay(capacity={"example.com/fpga": "2"}, ready=""),), False),
        ((overlay(capacity={"example.com/fpga": "2"}, requirements=(needs(TYPE, "m6i.xlarge"),)),), True),
        ((overlay(capacity={"example.com/fpga": "2"}, requirements=(needs(TYPE, "c5.large"),)),), False),
        (
            (overlay(capacity={"example.com/fpga": "2"}, requirements=(needs("karpenter.sh/nodepool", "other"),)),),
            False,
        ),
        ((overlay(capacity={"example.com/fpga": "2"}, requirements=(needs("team", "a"),)),), False),
        ((overlay(capacity={"example.com/fpga": "2"}, requirements=(needs(CAPACITY_TYPE, "spot"),)),), True),
        ((overlay(capacity={"example.com/fpga": "2"}, requirements=(needs(CAPACITY_TYPE, "reserved"),)),), False),
        (
            (
                overlay("high", capacity={"example.com/fpga": "1"}, weight=10),
                overlay("low", capacity={"example.com/fpga": "2"}),
            ),
            False,
        ),
    ],
)
def test_a_valid_overlay_adds_capacity_to_its_types(overlays: tuple[Json, ...], has: bool) -> None:
    target = pod()
    target["spec"]["containers"][0]["resources"]["requests"]["example.com/fpga"] = "2"
    text = () if has else (LaunchCertainty.UNKNOWN,)
    assert decision_of(pool(), node(), node_class("eu-1a"), *overlays, target)[2] == text


@pytest.mark.parametrize(
    ("spec", "prices"),
    [
        ({"price": "0.25"}, {"on-demand": 0.25, "spot": 0.25}),
        ({"priceAdjustment": "-50%", "requirements": (needs(CAPACITY_TYPE, "spot"),)}, {"on-demand": 2.0, "spot": 0.5}),
        ({"priceAdjustment": "+0.5"}, {"on-demand": 2.5, "spot": 1.5}),
        ({"priceAdjustment": "-1.5"}, {"on-demand": 0.5, "spot": 0.0}),
    ],
)
def test_an_overlay_changes_prices(spec: Json, prices: Json) -> None:
    instance_type = WrittenType(
        name="m6i.xlarge",
        capacity={"cpu": "4", "memory": "16Gi"},
        offerings=(
            WrittenOffering(zone="eu-1a", capacity_type="on-demand", price=2.0),
            WrittenOffering(zone="eu-1a", capacity_type="spot", price=1.0),
        ),
    )
    options = KarpenterOptions(catalogue=InstanceTypes(instance_types=(instance_type,)))
    provisioner = Karpenter.of(Snapshot.from_objects([pool(), node_class("eu-1a"), overlay(**spec)]), options)
    assert provisioner is not None
    (result,) = provisioner.known["general"].types
    assert {offering.capacity_type: offering.price for offering in result.offerings} == prices


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"price": "cheap"}, "spec.price"),
        ({"priceAdjustment": "10"}, "spec.priceAdjustment"),
        ({"capacity": {"example.com/fpga": "x"}}, "spec.capacity[example.com/fpga]"),
        ({"requirements": ({"key": "a", "operator": "Is", "values": ["b"]},)}, "spec.requirements[0]"),
    ],
)
def test_an_error_names_the_invalid_overlay(spec: Json, field: str) -> None:
    with pytest.raises(InputError) as error:
        karpenter(pool(), overlay(**spec))
    assert (error.value.place.object, error.value.place.field) == ("NodeOverlay gpu", field)


def test_a_reached_limit_rejects_every_type() -> None:
    assert decision_of(pool(limits={"cpu": "4"}), node(), pod())[2] == (LaunchCertainty.REJECTS,)
    assert decision_of(pool(limits={"cpu": "6"}), node(), pod())[2] == (LaunchCertainty.UNKNOWN,)


@pytest.mark.parametrize(("used", "certainties"), [("6", (LaunchCertainty.REJECTS,)), ("1", ())])
def test_a_pool_whose_nodes_a_dump_lacks_counts_them(used: str, certainties: tuple[LaunchCertainty, ...]) -> None:
    limited = pool(limits={"cpu": "6"})
    full = {**limited, "status": {**limited["status"], "resources": {"cpu": used, "nodes": "1"}}}
    other = node()
    other["metadata"]["labels"]["karpenter.sh/nodepool"] = "other"
    assert decision_of(full, other, pod())[2] == certainties


def test_a_pool_counts_nodes_whose_capacity_a_dump_lacks() -> None:
    lean, full = node(), {"resources": {"cpu": "6", "nodes": "1"}}
    lean["status"].pop("capacity", None)
    limited = pool(limits={"cpu": "6"})
    certainties = decision_of({**limited, "status": {**limited["status"], **full}}, lean, pod())[2]
    assert certainties == (LaunchCertainty.REJECTS,)


def _with(manifest: Json, **status: Any) -> Json:
    return {**manifest, **status}


def _requiring(key: str, operator: str, *values: str) -> Json:
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("objects", "outcome"),
    [
        ((pool(), _with(pod(), status={"phase": "Pending"})), PodEligibility.NOT_MARKED),
        ((pool(replicas=3), pod()), PodEligibility.NO_POOLS),
        ((_with(pool(), status={}, metadata={"name": "general", "uid": "a"}), pod()), PodEligibility.NO_POOLS),
        ((_with(pool(), status={}), _with(pod(), status={})), PodEligibility.CONSIDERED),
        (
            (pool(), {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "new"}}, pod()),
            PodEligibility.WAITING,
        ),
        ((pool(), pod(nodeSelector={"karpenter.sh/other": "x"})), PodEligibility.REFUSED),
        ((pool(), pod(affinity=_requiring("size", "Gt", "large"))), PodEligibility.REFUSED),
        ((pool(), pod(affinity=_requiring("karpenter.sh/nodepool", "DoesNotExist"))), PodEligibility.AVOIDS_KARPENTER),
    ],
    ids=lambda value: value.value if isinstance(value, PodEligibility) else "",
)
def test_karpenter_skips_a_pod_that_is_not_eligible(objects: tuple[Json, ...], outcome: PodEligibility) -> None:
    assert decision_of(*objects)[0] is outcome


@pytest.mark.parametrize(
    ("invalid", "expected"),
    [
        (pool("x", limits={"cpu": "lots"}), "NodePool x: spec.limits[cpu]"),
        (pool("x", {"key": "a", "operator": "Is", "values": ["b"]}), 'requirements[0]: "Is" is not an operator'),
        (pool("x", {"key": "a", "operator": "In", "values": []}), "a In needs a value"),
        (pool("x", {"key": "a", "operator": "Gt", "values": ["many"]}), "a Gt needs one whole number, found [many]"),
        (pool("x", {"operator": "Exists"}), "a requirement has a key"),
    ],
)
def test_an_invalid_pool_is_noted_beside_the_answer(invalid: Json, expected: str) -> None:
    with pytest.raises(InputError) as error:
        karpenter(invalid)
    assert expected in str(error.value)
    answer = kschedx.explain(Snapshot.from_objects([invalid, node(), pod()]), "default/web")
    assert answer.autoscalers == ()
    assert "karpenter-unreadable" in {note.id for note in answer.notes}


def test_events_are_equal_in_any_order_of_their_parts() -> None:
    ours = 'Failed to schedule pod, a; label "zone" does not have known values (typo of "x/zone"?)'
    theirs = 'Failed to schedule pod, label "zone" does not have known values (typo of "y/zone"?); a'
    assert not is_same_karpenter_event(ours, "Failed to schedule pod, b")
    assert is_same_karpenter_event(ours, theirs)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            'incompatible with nodepool "gpu", daemonset overhead={"cpu":"1"}, did not tolerate a=b:NoSchedule',
            "did not tolerate taint (taint=a=b:NoSchedule)",
        ),
        (
            'incompatible with nodepool "gpu", daemonset overhead={"pods":"2"}, did not tolerate gpu=:NoExecute',
            "did not tolerate taint (taint=gpu:NoExecute)",
        ),
        (
            'all available instance types exceed limits for nodepool: "gpu"',
            "all available instance types exceed limits for nodepool (NodePool=gpu)",
        ),
        (
            (
                'no instance type satisfied resources {"cpu":"9"} and requirements a In [b], c Exists '
                "(no instance type has enough resources)"
            ),
            'no instance type has enough resources, requirements=a In [b], c Exists, resources={"cpu":"9"}',
        ),
    ],
)
def test_texts_of_older_versions_are_equal_events(old: str, new: str) -> None:
    assert is_same_karpenter_event(f"Failed to schedule pod, {old}", f"Failed to schedule pod, {new}")
    assert is_same_karpenter_event(f"Failed to schedule pod, {new}", f"Failed to schedule pod, {new}")


def test_a_partial_dump_is_decided_as_a_complete_one() -> None:
    """A pending pod without conditions gets its condition next; a node without capacity uses its allocatable."""
    bare_node = node()
    bare_node["status"] = {"allocatable": bare_node["status"]["allocatable"]}
    unmarked = _with(pod(cpu="3"), status={"phase": "Pending"})
    full = _with(pod(cpu="3"), metadata={"name": "full", "namespace": "default"}, status={"phase": "Running"})
    full["spec"]["nodeName"] = "one"
    explanation = kschedx.explain(Snapshot.from_objects([pool(), bare_node, full, unmarked]), "default/web")
    assert next(fix.title for fix in explanation.fixes).startswith("wait for Karpenter")
