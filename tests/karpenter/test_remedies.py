"""What would make Karpenter help a pod: every change that is told was tried."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.inquiry.pool_scaling import PoolScaling
from tests.karpenter.test_cluster import ZONE, Json, karpenter, node, node_class, pod, pool

TYPE = "node.kubernetes.io/instance-type"
ONE_ZONE = {"key": ZONE, "operator": "In", "values": ["eu-1a"]}


def steps(pool: Json, pod: Json, *zones: str) -> list[str]:
    made = karpenter(pool, node(), node_class(*(zones or ("eu-1a",))), pod)
    waiting = made.snapshot.pods[made.snapshot.pods.rows["default/web"]]
    result = made.explain(waiting)
    assert result is not None
    return [remedy.step.title for remedy in PoolScaling(autoscaler=made, decision=result, pod=waiting).remedies]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("6", ["lower requests.cpu of container main from 6 to 4"]),
        ("8", ["lower requests.cpu of container main from 8 to 4"]),
        ("8010m", []),
    ],
)
def test_a_request_is_cut_to_the_largest_type_and_not_below_half(asked: str, told: list[str]) -> None:
    assert steps(pool(), pod(asked)) == told


@pytest.mark.parametrize(
    ("limits", "after"),
    [({"cpu": "4"}, {"cpu": "8"}), ({"cpu": "4", "memory": "16Gi"}, {"cpu": "8", "memory": "32Gi"})],
)
def test_all_limits_are_raised_by_what_the_smallest_type_needs(limits: dict[str, str], after: dict[str, str]) -> None:
    [step] = steps(pool(limits=limits), pod())
    raised = " and ".join(f"from {limits[name]} to {after[name]} {name}" for name in limits)
    assert step == f"raise the {'limit' if len(limits) == 1 else 'limits'} of NodePool general {raised}"


def test_a_limit_may_exclude_only_the_types_that_fit() -> None:
    larger = node("8")
    larger["metadata"] |= {"name": "two", "labels": {**larger["metadata"]["labels"], TYPE: "m6i.2xlarge"}}
    larger["spec"] = {**larger["spec"], "providerID": "aws:///two"}
    made = karpenter(pool(limits={"cpu": "16"}), node(), larger, node_class("eu-1a"), pod("6"))
    waiting = made.snapshot.pods[made.snapshot.pods.rows["default/web"]]
    result = made.explain(waiting)
    assert result is not None
    assert result.pools[0].reason == "limit-reached"
    [remedy] = PoolScaling(autoscaler=made, decision=result, pod=waiting).remedies
    assert remedy.step.title == "raise the limit of NodePool general from 16 to 20 cpu"


def test_a_pool_gets_the_label_or_the_value_that_the_pod_asks_for() -> None:
    assert steps(pool(), pod(nodeSelector={"team": "a"})) == ["add the label team=a to NodePool general"]
    assert steps(pool(), pod(nodeSelector={"eks.amazonaws.com/nodegroup": "a"})) == []
    elsewhere = pod(nodeSelector={ZONE: "eu-1b"})
    assert steps(pool("general", ONE_ZONE), elsewhere, "eu-1a", "eu-1b") == [f"allow {ZONE} eu-1b in NodePool general"]
    assert steps(pool("general", ONE_ZONE), elsewhere) == []


def test_a_label_of_the_pool_itself_is_moved_to_its_template() -> None:
    labeled = pool()
    labeled["metadata"]["labels"] = {"team": "a"}
    moved = "NodePool general: move the label team=a from metadata.labels to spec.template.metadata.labels"
    assert steps(labeled, pod(nodeSelector={"team": "a"})) == [moved]


def test_a_pod_says_what_it_means() -> None:
    """A label that Karpenter lets no pod ask for, and near names; a zone is no slip of the finger."""
    assert steps(pool(), pod(nodeSelector={"karpenter.sh/registered": "true"})) == [
        "stop requiring karpenter.sh/registered=true"
    ]
    for key, wrong, meant in (("capacity-type", "ondemand", "on-demand"), ("nodepool", "genral", "general")):
        asked = pod(nodeSelector={f"karpenter.sh/{key}": wrong})
        assert steps(pool(), asked) == [f"select karpenter.sh/{key}={meant} instead of karpenter.sh/{key}={wrong}"]


def test_a_pool_whose_types_are_not_known_may_help_too() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    tainted = pool("gpu")
    tainted["spec"]["template"]["spec"]["taints"] = [taint]
    made = karpenter(tainted, node_class("eu-1a"), pod("1"))
    waiting = made.snapshot.pods[made.snapshot.pods.rows["default/web"]]
    result = made.explain(waiting)
    assert result is not None
    scaling = PoolScaling(autoscaler=made, decision=result, pod=waiting)
    assert [(remedy.place, remedy.types) for remedy in scaling.remedies] == [("gpu", ())]


def test_a_pool_that_is_not_ready_is_repaired_first() -> None:
    fault = {"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "message": "none matches"}
    broken, of_class = pool(), node_class("eu-1a")
    broken["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotReady"}]}
    of_class["status"] = {**of_class.get("status", {}), "conditions": [fault]}
    result = kschedx.explain(kschedx.Snapshot.from_objects([broken, of_class, node(), pod()]), "default/web")
    assert result.fixes[0].title == (
        "repair EC2NodeClass default, so that NodePool general is ready: SubnetsReady=False (SubnetsNotFound): none "
        "matches"
    )


@pytest.mark.parametrize(
    ("requirement", "asked", "fix"),
    [
        ({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["m"]}, pod("64"), "allow larger"),
        (None, pod(nodeSelector={ZONE: "eu-1b"}), "add a subnet in eu-1b to EC2NodeClass default"),
        (None, pod("64"), "add a node with"),
    ],
)
def test_types_and_zones_that_the_cluster_does_not_show(requirement: Json | None, asked: Json, fix: str) -> None:
    requirements = [] if requirement is None else [requirement]
    objects = [pool("general", *requirements), node(), node_class("eu-1a"), asked]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web")
    assert result.fixes[0].title.startswith(fix)


def test_a_memory_limit_is_raised_to_what_people_write() -> None:
    [step] = steps(pool(limits={"memory": "20000Mi"}), pod())
    assert step == "raise the limit of NodePool general from 20000Mi to 32Gi memory"


def test_a_limit_is_raised_for_every_identical_pod_whichever_comes_first() -> None:
    older = [pod("3"), pod("3")]
    for number, other in enumerate(older):
        other["metadata"] = {**other["metadata"], "name": f"old-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    asked = pod("3")
    asked["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    made = karpenter(pool(limits={"cpu": "4"}), node(), node_class("eu-1a"), *older, asked)
    waiting = made.snapshot.pods[made.snapshot.pods.rows["default/web"]]
    found = made.explain(waiting)
    assert found is not None
    [remedy] = PoolScaling(autoscaler=made, decision=found, pod=waiting).remedies
    assert remedy.step.title == "raise the limit of NodePool general from 4 to 16 cpu"
    assert remedy.helps >= {"default/web", "default/old-0", "default/old-1"}
