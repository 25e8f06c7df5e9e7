"""Changes of a NodePool or pod that let Karpenter add a node; every one of them was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

import kschedx
from kschedx.inquiry.pool_scaling import PoolScaling
from kschedx.kube.autoscalers import CAPACITY_TYPE, INITIALIZED
from tests.builders import autoscaler_status, reported
from tests.cli.manifests import changed, write
from tests.command import kschedx as command
from tests.karpenter.test_cluster import ZONE, Json, karpenter, node, node_class, overlay, pod, pool

TYPE = "node.kubernetes.io/instance-type"
ONE_ZONE = {"key": ZONE, "operator": "In", "values": ["eu-1a"]}


def steps(pool: Json, pod: Json, *zones: str) -> list[str]:
    provisioner = karpenter(pool, node(), node_class(*(zones or ("eu-1a",))), pod)
    target = provisioner.snapshot.pods[provisioner.snapshot.pods.rows["default/web"]]
    result = provisioner.explain(target)
    assert result is not None
    return [remedy.title for remedy in PoolScaling(autoscaler=provisioner, decision=result, pod=target).remedies]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("6", ["lower requests.cpu of container main from 6 to 4"]),
        ("8", ["lower requests.cpu of container main from 8 to 4"]),
        ("8010m", []),
    ],
)
def test_a_request_is_lowered_to_the_largest_type_but_not_below_half(cpu: str, expected: list[str]) -> None:
    assert steps(pool(), pod(cpu)) == expected


@pytest.mark.parametrize(
    ("limits", "after"),
    [({"cpu": "4"}, {"cpu": "8"}), ({"cpu": "4", "memory": "16Gi"}, {"cpu": "8", "memory": "32Gi"})],
)
def test_all_limits_are_raised_by_what_the_smallest_type_needs(limits: dict[str, str], after: dict[str, str]) -> None:
    [step] = steps(pool(limits=limits), pod())
    raised = " and ".join(f"from {limits[name]} to {after[name]} {name}" for name in limits)
    assert step == f"raise the {'limit' if len(limits) == 1 else 'limits'} of NodePool general {raised}"


def test_a_reached_limit_is_named_before_a_taint(tmp_path: Path) -> None:
    reserved = pool("batch")
    reserved["spec"]["template"]["spec"]["taints"] = [{"key": "batch", "effect": "NoSchedule"}]
    unknown = {"key": TYPE, "operator": "In", "values": ["c9.large"]}
    full = pool("general", unknown, limits={"cpu": "4"})
    cluster = write(tmp_path, reserved, full, node(), node_class("eu-1a"), pod())
    out = command("why", "web", "-s", cluster, columns=200).out
    assert "Karpenter adds no node: general: limit reached" in out


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
    assert remedy.title == "raise the limit of NodePool general from 16 to 20 cpu"


def test_a_pool_gets_the_label_or_value_of_the_node_selector() -> None:
    assert steps(pool(), pod(nodeSelector={"team": "a"})) == ["add the label team=a to NodePool general"]
    assert steps(pool(), pod(nodeSelector={"eks.amazonaws.com/nodegroup": "a"})) == []
    elsewhere = pod(nodeSelector={ZONE: "eu-1b"})
    assert steps(pool("general", ONE_ZONE), elsewhere, "eu-1a", "eu-1b") == [f"allow {ZONE} eu-1b in NodePool general"]
    assert steps(pool("general", ONE_ZONE), elsewhere) == []


def test_a_label_of_the_pool_itself_is_moved_to_its_template() -> None:
    labeled = pool()
    labeled["metadata"]["labels"] = {"team": "a"}
    expected = "NodePool general: move the label team=a from metadata.labels to spec.template.metadata.labels"
    assert steps(labeled, pod(nodeSelector={"team": "a"})) == [expected]


def test_a_node_selector_is_corrected() -> None:
    """It may use a label that Karpenter forbids, or a misspelled value; a zone is never taken for a misspelling."""
    assert steps(pool(), pod(nodeSelector={"karpenter.sh/registered": "true"})) == [
        "stop requiring karpenter.sh/registered=true"
    ]
    assert steps(pool(), pod(nodeSelector={"karpenter.sh/capacity_type": "on-demand"})) == [
        "select karpenter.sh/capacity-type=on-demand instead of karpenter.sh/capacity_type=on-demand",
        "stop requiring karpenter.sh/capacity_type=on-demand",
    ]
    for key, wrong, value in (("capacity-type", "ondemand", "on-demand"), ("nodepool", "genral", "general")):
        target = pod(nodeSelector={f"karpenter.sh/{key}": wrong})
        assert steps(pool(), target) == [f"select karpenter.sh/{key}={value} instead of karpenter.sh/{key}={wrong}"]


def test_a_pool_without_known_types_may_help() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    tainted = pool("gpu")
    tainted["spec"]["template"]["spec"]["taints"] = [taint]
    provisioner = karpenter(tainted, node_class("eu-1a"), pod("1"))
    target = provisioner.snapshot.pods[provisioner.snapshot.pods.rows["default/web"]]
    result = provisioner.explain(target)
    assert result is not None
    scaling = PoolScaling(autoscaler=provisioner, decision=result, pod=target)
    assert [(remedy.place, remedy.types) for remedy in scaling.remedies] == [("gpu", ())]


def test_a_pool_that_is_not_ready_is_repaired_first() -> None:
    fault = {"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "message": "none matches"}
    broken, broken_class = pool(), node_class("eu-1a")
    broken["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotReady"}]}
    broken_class["status"] = {**broken_class.get("status", {}), "conditions": [fault]}
    result = kschedx.explain(kschedx.Snapshot.from_objects([broken, broken_class, node(), pod()]), "default/web")
    assert result.fixes[0].title == (
        "repair EC2NodeClass default, so that NodePool general is ready: SubnetsReady=False (SubnetsNotFound): none "
        "matches"
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "NodeClassReady",
            "repair EC2NodeClass default, so that NodePool general is ready: NodeClassReady=False (Bad)",
        ),
        ("ValidationSucceeded", "correct NodePool general: the role may not join"),
    ],
)
def test_the_condition_behind_a_pool_that_is_not_ready(kind: str, expected: str) -> None:
    broken = pool()
    ready = {"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": f"{kind}=False"}
    cause = {"type": kind, "status": "False", "reason": "Bad", "message": "the role may not join"}
    broken["status"] = {"conditions": [ready, cause]}
    result = kschedx.explain(kschedx.Snapshot.from_objects([broken, node_class("eu-1a"), node(), pod()]), "default/web")
    assert result.fixes[0].title.startswith(expected)
    assert "UnhealthyDependents" not in str(result)


def test_a_pod_that_selects_the_host_name_of_a_lost_node() -> None:
    target = pod("2", nodeSelector={"kubernetes.io/hostname": "lost"})
    objects = [pool(), node_class("eu-1a"), node("1"), target]
    first, *_ = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes
    assert first.title == "stop requiring kubernetes.io/hostname=lost, then Karpenter adds a node of general"


def test_a_pool_that_is_being_deleted_is_replaced() -> None:
    leaving = pool()
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karpenter.sh/termination"]}
    objects = [leaving, node_class("eu-1a"), node("2"), pod("2")]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web")
    assert result.fixes[0].title == "create a NodePool to replace general, which is being deleted"
    assert not any("add a node" in fix.title for fix in result.fixes)


@pytest.mark.parametrize(
    ("cpu", "fix"),
    [("2", "raise replicas of NodePool general from 1 to 2"), ("64", "add a node")],
)
def test_a_static_pool_is_enlarged_if_its_nodes_fit_the_pod(cpu: str, fix: str) -> None:
    static = pool()
    static["spec"]["replicas"] = 1
    result = kschedx.explain(
        kschedx.Snapshot.from_objects([static, node_class("eu-1a"), node(), pod(cpu)]), "default/web"
    )
    assert result.fixes[0].title.startswith(fix)


AGENT = {"key": "efs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        (AGENT, "NodePool general: move efs.csi.aws.com/agent-not-ready:NoExecute from taints to startupTaints"),
        ({"key": "team", "value": "ml", "effect": "NoSchedule"}, "tolerate team=ml:NoSchedule"),
    ],
)
def test_a_taint_that_an_agent_removes_is_a_startup_taint(taint: Json, expected: str) -> None:
    tainted = pool()
    tainted["spec"]["template"]["spec"]["taints"] = [taint]
    assert steps(tainted, pod()) == [expected]


def test_the_patch_of_a_pool_moves_a_taint() -> None:
    tainted = pool()
    tainted["spec"]["template"]["spec"]["taints"] = [AGENT]
    snapshot = kschedx.Snapshot.from_objects([tainted, node_class("eu-1a"), node(), pod()])
    fix, *_ = kschedx.explain(snapshot, "default/web").fixes
    [change] = [change for change in fix.changes if change.target.kind == "NodePool"]
    assert {str(step["path"]).rpartition("/")[2]: step["value"] for step in change.patch} == {
        "taints": [],
        "startupTaints": [AGENT],
    }


@pytest.mark.parametrize("field", ["", "taints", "startupTaints"])
def test_a_taint_of_an_agent_on_a_node_is_to_be_declared(field: str) -> None:
    starting, declared = node(), pool()
    starting["spec"]["taints"] = [AGENT, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    if field:
        declared["spec"]["template"]["spec"][field] = [AGENT]
    snapshot = kschedx.Snapshot.from_objects([declared, node_class("eu-1a"), starting, pod()])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/web").fixes]
    advice = "add taint efs.csi.aws.com/agent-not-ready:NoExecute to startupTaints of NodePool general"
    assert any(title.startswith(advice) for title in titles) is (not field)


def test_a_pool_whose_nodes_do_not_register_is_repaired_first() -> None:
    unhealthy = pool()
    fault = {"type": "NodeRegistrationHealthy", "status": "False", "reason": "RegistrationFailed", "message": "no node"}
    unhealthy["status"]["conditions"] = [*unhealthy["status"]["conditions"], fault]
    snapshot = kschedx.Snapshot.from_objects([unhealthy, node_class("eu-1a"), node(), pod()])
    result = kschedx.explain(snapshot, "default/web")
    assert [fix.title for fix in result.fixes][:2] == [
        "repair how nodes of NodePool general join the cluster",
        "wait for Karpenter: it adds a node to NodePool general, if the cloud has capacity",
    ]


def test_a_volume_that_the_dump_lacks_may_decide_about_the_new_node(tmp_path: Path) -> None:
    pending = pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    stored = node()
    stored["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = kschedx.load(str(write(tmp_path, pool(), node_class("eu-1a"), stored, pending)))
    title = "wait for Karpenter: it adds a node to NodePool general, if the cloud has capacity"
    expected = f"{title} and if PersistentVolumeClaims allow it (not in the dump)"
    assert expected in [fix.title for fix in kschedx.explain(snapshot, "default/web").fixes]


@pytest.mark.parametrize(
    ("minute", "nominated", "is_denied"), [("55", "", True), ("55", "54", True), ("55", "56", False), ("30", "", False)]
)
def test_what_karpenter_itself_reports_now_is_not_contradicted(minute: str, nominated: str, is_denied: bool) -> None:
    """It repeats its event while the pod stays pending. The dump does not hold which types are available."""
    message = 'Failed to schedule pod, incompatible with nodepool "general", no instance type has enough room'
    seen = f"2026-01-01T08:{minute}:00Z"
    event = reported("karpenter", "FailedScheduling", message, pod="default/web", lastTimestamp=seen)
    later = {"reason": "Nominated", "message": "Pod should schedule on: nodeclaim/general-x"}
    nomination = {**event, **later, "lastTimestamp": f"2026-01-01T08:{nominated}:00Z"}
    target = pod()
    target["metadata"]["creationTimestamp"] = "2026-01-01T09:00:00Z"
    events = [event, *([nomination] if nominated else [])]
    snapshot = kschedx.Snapshot.from_objects([pool(), node_class("eu-1a"), node(), target, *events])
    result = kschedx.explain(snapshot, "default/web")
    wait = "wait for Karpenter: it adds a node to NodePool general, if the cloud has capacity"
    advice = "allow larger or other instance types in NodePool general: Karpenter reports that none fits"
    assert result.fixes[0].title == (advice if is_denied else wait)
    assert result.is_scaled_up is not is_denied


@pytest.mark.parametrize(("minute", "is_recent"), [("58", True), ("08", False)])
@pytest.mark.parametrize("has_pools", [True, False])
def test_a_nomination_by_karpenter_holds_while_it_is_recent(minute: str, *, is_recent: bool, has_pools: bool) -> None:
    message = "Pod should schedule on: nodeclaim/general-x, node/other"
    seen = f"2026-01-01T08:{minute}:00Z"
    event = reported("karpenter", "Nominated", message, pod="default/web", lastTimestamp=seen)
    target = pod("64")
    target["metadata"]["creationTimestamp"] = "2026-01-01T09:00:00Z"
    unknown = pool("general", {"key": CATEGORY, "operator": "In", "values": ["m"]})
    objects = [*([unknown, node_class("eu-1a")] if has_pools else []), node(), target, event]
    titles = [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes]
    wait = "wait for Karpenter: it reports that the pod should schedule on nodeclaim/general-x"
    assert (titles[0] == wait) is is_recent
    assert (wait in titles) is is_recent


@pytest.mark.parametrize("is_initialized", [True, False])
def test_a_nomination_does_not_hold_of_an_initialized_node_that_rejects_the_pod(*, is_initialized: bool) -> None:
    message, small, target = "Pod should schedule on: nodeclaim/general-x, node/one", node(), pod("64")
    small["metadata"]["labels"] |= {INITIALIZED: str(is_initialized).lower()}
    target["metadata"]["creationTimestamp"] = seen = "2026-01-01T09:00:00Z"
    event = reported("karpenter", "Nominated", message, pod="default/web", lastTimestamp=seen)
    titles = [
        fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects([small, target, event]), "default/web").fixes
    ]
    assert any(title.startswith("wait for Karpenter") for title in titles) is not is_initialized


@pytest.mark.parametrize("is_known", [True, False])
def test_a_reached_limit_that_karpenter_reports_as_well_is_one_fix(is_known: bool) -> None:
    message = 'Failed to schedule pod, all available instance types exceed limits for nodepool: "general"'
    event = reported("karpenter", "FailedScheduling", message, pod="default/web")
    limited = pool(limits={"cpu": "4"})
    limited["spec"]["template"]["spec"]["requirements"] = [
        {"key": TYPE, "operator": "In", "values": ["m6i.xlarge" if is_known else "m9.large"]}
    ]
    objects = [limited, node_class("eu-1a"), node(), pod(), event]
    titles = [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes]
    assert sum(title.startswith("raise the limit") for title in titles) == 1


def test_a_pool_that_lacks_values_of_a_label_has_its_fix() -> None:
    why = f"minValues requirement is not met for label(s) (label(s)=[{TYPE}])"
    message = f'Failed to schedule pod, incompatible with nodepool "general", {why}'
    event = reported("karpenter", "FailedScheduling", message, pod="default/web")
    unknown = pool("general", {"key": CATEGORY, "operator": "Exists", "minValues": 9})
    objects = [unknown, node_class("eu-1a"), node(), pod("64"), event]
    first = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes[0].title
    assert first == f"lower minValues of {TYPE} in NodePool general, or allow more values of it"


def test_the_operating_system_of_a_pool_is_that_of_its_image() -> None:
    linux = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    target = pod(nodeSelector={"kubernetes.io/os": "windows"})
    assert steps(pool("general", linux), target) == []
    objects = [pool("general", linux), node(), node_class("eu-1a"), target]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web")
    assert result.fixes[0].title == "create a NodePool for windows, with a node class whose image is for it"


@pytest.mark.parametrize(
    ("group", "label", "values", "lacks_gpus"),
    [
        ("karpenter.k8s.aws", "category", ["c", "m"], True),
        ("eks.amazonaws.com", "category", ["c", "m"], True),
        ("karpenter.k8s.aws", "family", ["m6i", "r6g"], True),
        ("karpenter.k8s.aws", "category", ["c", "g"], False),
        ("karpenter.k8s.aws", "family", ["m6i", "p4d"], False),
    ],
)
def test_instance_types_without_gpus_need_another_pool(
    group: str, label: str, values: list[str], lacks_gpus: bool
) -> None:
    general = pool("default", {"key": f"{group}/instance-{label}", "operator": "In", "values": values})
    reference = general["spec"]["template"]["spec"]["nodeClassRef"]
    general["spec"]["template"]["spec"]["nodeClassRef"] = {**reference, "group": group}
    train = pod(nodeSelector={f"{group}/instance-gpu-name": "l4"})
    train["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    result = kschedx.explain(kschedx.Snapshot.from_objects([general, node(), train]), "default/web")
    title = "create a NodePool whose instance types have nvidia.com/gpu (instance category g or p)"
    assert (result.fixes[0].title == title) is lacks_gpus


@pytest.mark.parametrize("group", ["karpenter.k8s.aws", "eks.amazonaws.com"])
def test_a_pool_for_add_ons_is_not_for_other_pods(group: str) -> None:
    reserved = pool()
    template = reserved["spec"]["template"]["spec"]
    template["taints"] = [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]
    template["nodeClassRef"] = {**template["nodeClassRef"], "group": group}
    assert steps(reserved, pod("2")) == []
    objects = [reserved, node("2"), node_class("eu-1a"), pod("2")]
    first = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes[0].title
    built_in = "; EKS Auto Mode has one: enable general-purpose" if group == "eks.amazonaws.com" else ""
    assert first == f"create a NodePool without taint CriticalAddonsOnly{built_in}"


CATEGORY = "karpenter.k8s.aws/instance-category"


@pytest.mark.parametrize(
    ("category", "of_node", "target", "fix"),
    [
        ("m", "m", pod("64"), "allow larger"),
        ("m", "", pod("64"), "add a node without taint"),  # the known type is of no known category
        ("", "", pod(nodeSelector={ZONE: "eu-1b"}), "add a subnet in eu-1b to EC2NodeClass default"),
        ("", "", pod("64"), "add a node with"),
    ],
)
def test_fixes_with_unknown_types_and_zones(category: str, of_node: str, target: Json, fix: str) -> None:
    requirements = [{"key": CATEGORY, "operator": "In", "values": [category]}] if category else []
    first = node()
    first["metadata"]["labels"] |= {CATEGORY: of_node} if of_node else {}
    objects = [pool("general", *requirements), first, node_class("eu-1a"), target]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web")
    assert result.fixes[0].title.startswith(fix)


GPUS = (
    'incompatible with nodepool "general", daemonset overhead={"pods":"5"}, no instance type satisfied resources '
    '{"cpu":"1","nvidia.com/gpu":"1","pods":"6"} and requirements karpenter.sh/nodepool In [general]'
)
UNLAUNCHED: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "general-x", "labels": {"karpenter.sh/nodepool": "general", ZONE: "eu-1a"}},
    "spec": {},
    "status": {"capacity": {"cpu": "4", "pods": "110"}, "allocatable": {"cpu": "4", "pods": "110"}},
}


def unlaunched(reason: str, message: str) -> Json:
    launched = {"type": "Launched", "status": "Unknown", "reason": reason, "message": message}
    return {**UNLAUNCHED, "status": {**UNLAUNCHED["status"], "providerID": "aws:///x", "conditions": [launched]}}


@pytest.mark.parametrize(
    ("objects", "first"),
    [
        ([reported("karpenter", "FailedScheduling", GPUS, pod="default/web")], "allow instance types with nvidia.com/"),
        ([node_class("eu-1a"), unlaunched("LaunchFailed", "denied")], "repair what keeps NodeClaim general-x from "),
        ([node_class("eu-1a"), unlaunched("AwaitingReconciliation", "waits")], "wait for the node of NodeClaim gene"),
    ],
)
def test_what_karpenter_reports_is_the_first_fix(objects: list[Json], first: str) -> None:
    asking = pod("64" if len(objects) == 1 else "3")
    made = kschedx.Snapshot.from_objects([pool(), node("2"), asking, *objects])
    assert kschedx.explain(made, "default/web").fixes[0].title.startswith(first)


def test_the_node_class_of_a_pool_is_missing() -> None:
    broken = changed(pool(), "spec.template.spec.nodeClassRef.name", "gone")
    broken["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotFound"}]}
    result = kschedx.explain(
        kschedx.Snapshot.from_objects([broken, node_class("eu-1a"), node("2"), pod()]), "default/web"
    )
    expected = "create EC2NodeClass gone, or name another one in spec.template.spec.nodeClassRef"
    assert result.fixes[0].title == expected


def test_a_type_is_offered_in_the_zones_that_its_pool_allows() -> None:
    both = pool("general", {**ONE_ZONE, "values": ["eu-1a", "eu-1b"]})
    provisioner = karpenter(both, node(), node_class(), pod(nodeSelector={ZONE: "eu-1b"}))
    result = provisioner.explain(provisioner.snapshot.pods[provisioner.snapshot.pods.rows["default/web"]])
    assert result is not None
    assert result.pool == "general"


@pytest.mark.parametrize(
    ("zones", "more"), [(("eu-1a",), ", and add a subnet there to EC2NodeClass default"), (("eu-1b",), "")]
)
def test_a_zone_that_the_pool_excludes_needs_a_subnet(zones: tuple[str, ...], more: str) -> None:
    own = pool("general", {"key": ZONE, "operator": "In", "values": ["eu-1a"]})
    objects = [own, node(), node_class("eu-1a", *zones), pod(nodeSelector={ZONE: "eu-1b"})]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes
    assert f"allow {ZONE} eu-1b in NodePool general{more}" in [fix.title for fix in fixes]


@pytest.mark.parametrize(("wanted", "first"), [("batch", "create NodePool batch"), ("genaral", "select ")])
def test_a_pool_that_does_not_exist_is_created_unless_another_is_meant(wanted: str, first: str) -> None:
    objects = [pool("general"), node(), node_class("eu-1a"), pod(nodeSelector={"karpenter.sh/nodepool": wanted})]
    assert kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes[0].title.startswith(first)


def test_reserved_capacity_that_the_pool_excludes_needs_reservations() -> None:
    own = pool("general", {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]})
    objects = [own, node(), node_class("eu-1a"), pod(nodeSelector={CAPACITY_TYPE: "reserved"})]
    first = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes[0].title
    allow = f"allow {CAPACITY_TYPE} reserved in NodePool general"
    assert first == f"{allow}, and select capacity reservations in EC2NodeClass default"


@pytest.mark.parametrize(("cpu", "limit"), [("3", "8"), ("64", "68")])
def test_a_limit_has_room_for_a_pod_larger_than_the_known_types(cpu: str, limit: str) -> None:
    assert steps(pool(limits={"cpu": "4"}), pod(cpu)) == [f"raise the limit of NodePool general from 4 to {limit} cpu"]


def test_a_memory_limit_is_raised_to_a_round_quantity() -> None:
    [step] = steps(pool(limits={"memory": "20000Mi"}), pod())
    assert step == "raise the limit of NodePool general from 20000Mi to 32Gi memory"


def test_a_limit_is_raised_for_every_identical_pod() -> None:
    older = [pod("3"), pod("3")]
    for number, other in enumerate(older):
        other["metadata"] = {**other["metadata"], "name": f"old-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    newest = pod("3")
    newest["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    provisioner = karpenter(pool(limits={"cpu": "4"}), node(), node_class("eu-1a"), *older, newest)
    target = provisioner.snapshot.pods[provisioner.snapshot.pods.rows["default/web"]]
    decision = provisioner.explain(target)
    assert decision is not None
    [remedy] = PoolScaling(autoscaler=provisioner, decision=decision, pod=target).remedies
    assert remedy.title == "raise the limit of NodePool general from 4 to 16 cpu"
    assert remedy.helps >= {"default/web", "default/old-0", "default/old-1"}


@pytest.mark.parametrize("limit", ["9", "99"])
def test_a_limit_that_keeps_the_pool_from_helping_all_pods_is_a_cost(limit: str) -> None:
    other = pod("3")
    other["metadata"]["name"] = "web-2"
    objects = [pool(limits={"cpu": limit}), node(), node_class("eu-1a"), pod("3"), other]
    (fix, *_) = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes
    expected = ("its limit allows no node for the others: cpu 9",) if limit == "9" else ()
    assert (fix.title.startswith("wait for Karpenter"), fix.costs) == (True, expected)


@pytest.mark.parametrize(
    ("ready", "resource", "is_named"),
    [("False", "example.com/fpga", True), ("True", "example.com/fpga", False), ("False", "example.com/other", False)],
)
def test_an_overlay_with_a_requested_resource_that_is_not_ready_is_repaired(
    ready: str, resource: str, is_named: bool
) -> None:
    target = pod()
    target["spec"]["containers"][0]["resources"]["requests"]["example.com/fpga"] = "2"
    adds = overlay("fpga", ready, capacity={resource: "2"})
    own = pool("general", {"key": TYPE, "operator": "In", "values": ["m6i.xlarge"]})
    answer = kschedx.explain(
        kschedx.Snapshot.from_objects([own, node(), node_class("eu-1a"), adds, target]), "default/web"
    )
    assert any(fix.title == "correct NodeOverlay fpga: Ready=False" for fix in answer.fixes) is is_named


def test_a_new_node_helps_pods_that_existing_nodes_take_after_it() -> None:
    """The spread lets one pod go to the full zone only; the next one may go to any node again."""
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**rule, "labelSelector": {"matchLabels": {"app": "web"}}}]
    open_, full = node(), node("100m")
    full["metadata"] |= {"name": "two", "labels": {**full["metadata"]["labels"], ZONE: "eu-1b"}}
    pods = [pod(topologySpreadConstraints=spread, **more) for more in ({}, {}, {"nodeName": "one"})]
    for number, (each, name) in enumerate(zip(pods, ("web", "next", "first"), strict=True)):
        each["metadata"] |= {"name": name, "labels": {"app": "web"}, "uid": str(number)}
    for each in (open_, full):
        each["spec"]["taints"] = []
    snapshot = kschedx.Snapshot.from_objects([pool(), node_class("eu-1a", "eu-1b"), open_, full, *pods])
    [wait, *_] = kschedx.explain(snapshot, "default/web").fixes
    assert (wait.title[:18], set(wait.helps or ())) == ("wait for Karpenter", {"default/web", "default/next"})


def test_the_autoscaler_that_adds_a_node_has_the_first_fix() -> None:
    groups = """{autoscalerStatus: Running, nodeGroups: [{name: workers, health: {status: Healthy,
        cloudProviderTarget: 1, minSize: 1, maxSize: 1}}]}"""
    worker = {**node(), "metadata": {"name": "w", "labels": {"eks.amazonaws.com/nodegroup": "workers"}}, "spec": {}}
    busy = [{**pod("3", nodeName=on), "metadata": {"name": on, "namespace": "default"}} for on in ("one", "w")]
    objects = [pool(), node_class("eu-1a"), node(), worker, *busy, autoscaler_status(groups), pod("3")]
    first, second, *_ = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/web").fixes
    assert first.title.startswith("wait for Karpenter")
    assert second.title == "raise the maximum of node group workers from 1 to 2"
