"""Pod groups in the answer about a pod."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kschedx
from tests.holding.objects import Json, holding_of, node, pod

CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GANGS = {"GenericWorkload": True, "GangScheduling": True}


def pod_group(min_count: int, **fields: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}, **fields}
    metadata = {"name": "g", "namespace": "ml"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, *, gates: tuple[str, ...] = (), **fields: Any) -> Json:
    return pod(name, gates=gates, schedulingGroup={"podGroupName": "g"}, **fields)


@pytest.mark.parametrize(
    ("objects", "placed_together", "reasons_by_pod"),
    [
        ((node("a"), node("b")), 3, {}),
        ((node("a"),), 2, {"ml/m-2": ["1 Insufficient cpu"]}),
        ((node("a", cpu="4"),), 1, {"ml/m-1": ["1 Insufficient cpu"], "ml/m-2": ["1 Insufficient cpu"]}),
    ],
    ids=["all fit", "two fit", "one fits"],
)
def test_a_group_is_scheduled_as_a_whole(objects: tuple[Json, ...], placed_together: int, reasons_by_pod: Json) -> None:
    target, *others = (member(f"m-{number}") for number in range(3))
    snapshot = kschedx.Snapshot.from_objects([*objects, *others, pod_group(3)])
    explanation = kschedx.explain(snapshot, target, feature_gates=GANGS)
    group = explanation.holding.group
    assert group is not None
    assert (group.pods, group.together, group.lacks_room) == (3, placed_together, bool(reasons_by_pod))
    assert {item.pod: list(item.reasons) for item in group.waiting if not item.node} == reasons_by_pod
    assert explanation.outcome == "Scheduled"
    assert explanation.overall == ("Unschedulable" if reasons_by_pod else "Scheduled")
    text = (
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked "
    )
    assert group.message == (f"{text}to wait and no plugin rejected pod" if reasons_by_pod else "")


@pytest.mark.parametrize(
    ("cpus", "pods", "fixes"),
    [("4", 3, ["add 2 nodes like a"]), ("2", 2, ["create 1 more pod of group g"])],
    ids=["one fits", "a member is missing"],
)
def test_fixes_for_a_group(cpus: str, pods: int, fixes: list[str]) -> None:
    target, *others = (member(f"m-{number}") for number in range(pods))
    snapshot = kschedx.Snapshot.from_objects([node("a", cpu=cpus), *others, pod_group(3)])
    assert [fix.title for fix in kschedx.explain(snapshot, target, feature_gates=GANGS).fixes] == fixes


GROUP_PREEMPTION = {**GANGS, "WorkloadAwarePreemption": True}
TOPOLOGY_PLACEMENT = {**GANGS, "TopologyAwareWorkloadScheduling": True}
ZONES = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}
NO_ZONE = "set label zone on the nodes for PodGroup ml/g: no node has it"


@pytest.mark.parametrize(
    ("priority", "preempted", "placed_together", "reason"),
    [
        (0, ("ml/other on a",), 2, ""),
        (100, (), 1, "No preemption victims found for incoming preemptor"),
    ],
)
def test_preemption_for_a_whole_group(
    priority: int, preempted: tuple[str, ...], placed_together: int, reason: str
) -> None:
    other = pod("other", cpu="4", gates=(), labels={}, nodeName="a", priority=priority)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), other, *members, pod_group(2, priority=100)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=GROUP_PREEMPTION).holding.group
    assert group is not None
    assert (group.preempted, group.together, group.preemption) == (preempted, placed_together, reason)
    assert group.lacks_room


@pytest.mark.parametrize(
    ("zones", "domain", "fitting_domains", "nodes"),
    [
        ({"a": "x", "b": "y", "c": "y"}, "y", 1, ["", "b", "c"]),
        ({"a": "x", "b": "y", "c": "z"}, "x", 0, ["", "", "a"]),
        ({"a": "x", "b": "x", "c": "x"}, "x", 1, ["a", "b", "c"]),
    ],
    ids=["one zone fits the group", "no zone fits", "one zone"],
)
def test_a_group_is_placed_in_one_domain(
    zones: dict[str, str], domain: str, fitting_domains: int, nodes: list[str]
) -> None:
    """Three pods with 3 CPU each, two of which have to start together, and nodes with 4 CPU."""
    hosts = [node(name, cpu="4", zone=zone) for name, zone in zones.items()]
    others = [member("m-1"), member("m-2")]
    snapshot = kschedx.Snapshot.from_objects([*hosts, *others, pod_group(2, **ZONES)])
    group = kschedx.explain(snapshot, member("m-0"), feature_gates=TOPOLOGY_PLACEMENT).holding.group
    assert group is not None
    assert (group.topology_key, group.domain, group.fitting_domains) == ("zone", domain, fitting_domains)
    assert sorted(item.node for item in group.waiting) == nodes
    assert group.lacks_room is not bool(fitting_domains)


@pytest.mark.parametrize(
    ("zones", "titles"),
    [
        ({"a": "x", "b": "y"}, ["add a node like a", "remove the topology constraint zone of PodGroup ml/g"]),
        ({"a": "x"}, ["add a node like a"]),
        ({"a": "", "b": ""}, [NO_ZONE, "remove the topology constraint zone of PodGroup ml/g"]),
        ({"a": ""}, [NO_ZONE]),
    ],
)
def test_a_group_that_fits_no_domain_needs_a_node_in_one_or_no_constraint(
    zones: dict[str, str], titles: list[str]
) -> None:
    hosts = [node(name, cpu="4", **({"zone": zone} if zone else {})) for name, zone in zones.items()]
    stored = [*hosts, member("m-0"), member("m-1"), pod_group(2, **ZONES)]
    answer = kschedx.explain(kschedx.Snapshot.from_objects(stored), "ml/m-0", feature_gates=TOPOLOGY_PLACEMENT)
    assert [fix.title for fix in answer.fixes] == titles


def test_a_group_without_domains() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), member("m-1"), pod_group(2, **ZONES)])
    group = kschedx.explain(snapshot, member("m-0"), feature_gates=TOPOLOGY_PLACEMENT).holding.group
    assert group is not None
    assert (group.domains, group.together, group.message) == (0, 0, "no feasible placements found")


def test_a_tie_decides_whether_a_group_fits() -> None:
    """The first pod fits both nodes; the second pod fits only one of them, and only without the first."""
    nodes = node("a", cpu="4", zone="z"), node("b", cpu="4", zone="y")
    target, other = member("m-0"), member("m-1", nodeSelector={"zone": "z"})
    snapshot = kschedx.Snapshot.from_objects([*nodes, other, pod_group(2)])
    explanation = kschedx.explain(snapshot, target, feature_gates=GANGS)
    group = explanation.holding.group
    assert group is not None
    assert (group.together, group.is_by_draw, group.lacks_room) == (2, True, False)
    assert explanation.overall == "Scheduled"


@pytest.mark.parametrize(("used", "evicts"), [("4", [0, 1]), ("6", [1, 0])])
def test_a_group_that_fits_by_preemption(used: str, evicts: list[int]) -> None:
    victim = pod("low", cpu=used, gates=(), labels={}, nodeName="a", priority=0)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), victim, *members, pod_group(2)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=GANGS).holding.group
    assert group is not None
    assert ([item.evicts for item in group.waiting], group.lacks_room) == (evicts, False)


def test_gated_and_missing_members_are_reported() -> None:
    others = [member("m-1"), member("m-2", gates=("example.com/quota",))]
    group = holding_of(node("a"), *others, pod_group(4), target=member("m-0"), feature_gates=GANGS)["group"]
    assert (group["pods"], group["minCount"], group["together"]) == (3, 4, 2)
    assert group["waiting"][2]["gates"] == ["example.com/quota"]


def test_without_gates_a_group_is_ignored() -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), member("m-1"), member("m-2"), pod_group(3)])
    explanation = kschedx.explain(snapshot, member("m-0"))
    group = explanation.holding.group
    assert group is not None
    assert (group.is_heeded, group.together) == (False, None)
    assert explanation.overall == "Scheduled"
    assert [item.feasible for item in group.waiting] == [1, 1, 1]


EXTENDER = {"urlPrefix": "http://gpu.example", "filterVerb": "filter", "nodeCacheCapable": True}


def answer_without_a(pod_name: str, *nodes: str) -> Json:
    remaining = [name for name in nodes if name != "a"]
    body = {"NodeNames": remaining, "FailedNodes": {"a": "reserved"}}
    answer = {"url": "http://gpu.example/filter", "verb": "filter", "pod": f"ml/{pod_name}", "about": list(nodes)}
    return {**answer, "status": 200, "body": json.dumps(body)}


def test_an_extender_is_called_for_each_member() -> None:
    """It allows only node b, which has capacity for two of three pods."""
    target, *others = (member(f"m-{number}") for number in range(3))
    answers = [answer_without_a(f"m-{number}", *nodes) for number in range(3) for nodes in (("a", "b"), ("a",))]
    recording = {"apiVersion": "kschedx/v1", "kind": "ExtenderAnswers", "answers": answers}
    snapshot = kschedx.Snapshot.from_objects([node("a"), node("b"), *others, pod_group(3)])
    config = {**CONFIGURATION, "extenders": [EXTENDER]}
    explanation = kschedx.explain(snapshot, target, config=config, feature_gates=GANGS, extenders=recording)
    group = explanation.holding.group
    assert group is not None
    assert (group.together, group.lacks_room, explanation.overall) == (2, True, "Unschedulable")


@pytest.mark.parametrize(
    ("point", "placed_together", "undecided"),
    [("score", 3, ""), ("filter", None, "whether ml/m-0 fits is undecided, and so is its group")],
)
def test_an_unknown_plugin_leaves_a_group_undecided(point: str, placed_together: int | None, undecided: str) -> None:
    """It leaves the group undecided only if it may reject a node."""
    target, *others = (member(f"m-{number}") for number in range(3))
    snapshot = kschedx.Snapshot.from_objects([node("a"), node("b"), *others, pod_group(3)])
    profile = {"schedulerName": "default-scheduler", "plugins": {point: {"enabled": [{"name": "Foreign"}]}}}
    config = {**CONFIGURATION, "profiles": [profile]}
    group = kschedx.explain(snapshot, target, config=config, feature_gates=GANGS).holding.group
    assert group is not None
    assert (group.together, group.undecided) == (placed_together, undecided)


def test_coscheduling_names_each_member_in_its_reason() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    target, other = (pod(f"m-{number}", gates=(), labels=labels) for number in range(2))
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
    }
    enabled = {"enabled": [{"name": "Coscheduling"}]}
    plugins = {"multiPoint": enabled, "queueSort": {**enabled, "disabled": [{"name": "*"}]}}
    snapshot = kschedx.Snapshot.from_objects([node("a"), other, group | {"spec": {"minMember": 3}}])
    explanation = kschedx.explain(
        snapshot, target, config={**CONFIGURATION, "profiles": [{"plugins": plugins}]}
    ).holding.group
    assert explanation is not None
    assert [item.reasons[0].split(" cannot")[0] for item in explanation.waiting] == [
        "pre-filter pod m-0",
        "pre-filter pod m-1",
    ]


def workload(min_count: int) -> Json:
    groups = [{"name": "workers", "policy": {"gang": {"minCount": min_count}}}]
    metadata = {"name": "train", "namespace": "ml"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"podGroups": groups},
    }


def test_a_gang_of_a_workload() -> None:
    """In 1.35, a pod references a pod group of a Workload; each replica of the group is its own gang."""
    first, second = (
        [
            pod(
                f"m-{key}-{number}",
                gates=(),
                workloadRef={"name": "train", "podGroup": "workers", "podGroupReplicaKey": key},
            )
            for number in range(2)
        ]
        for key in ("0", "1")
    )
    snapshot = kschedx.Snapshot.from_objects([node("a", cpu="4"), *first[1:], *second, workload(2)])
    explanation = kschedx.explain(snapshot, first[0], feature_gates=GANGS, kube_version="1.35")
    group = explanation.holding.group
    assert group is not None
    assert (group.name, group.pods, group.together, group.lacks_room) == ("ml/train/workers/0", 2, 1, True)
    assert explanation.overall == "Unschedulable"


@pytest.mark.parametrize(
    ("named", "workloads", "release", "fix"),
    [
        (
            {"schedulingGroup": {"podGroupName": "g"}},
            [],
            "1.36",
            "create PodGroup ml/g, or correct spec.schedulingGroup of the pod",
        ),
        (
            {"workloadRef": {"name": "w", "podGroup": "g"}},
            [],
            "1.35",
            "create Workload ml/w with pod group g, or correct spec.workloadRef of the pod",
        ),
        (
            {"workloadRef": {"name": "w", "podGroup": "g"}},
            ["other"],
            "1.35",
            "recreate Workload ml/w with pod group g, or correct spec.workloadRef of the pod",
        ),
    ],
    ids=["PodGroup", "Workload", "pod group of a Workload"],
)
def test_a_fix_for_a_group_that_does_not_exist(named: Json, workloads: list[str], release: str, fix: str) -> None:
    groups = [{"name": name, "policy": {"gang": {"minCount": 2}}} for name in workloads]
    workload = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "spec": {"podGroups": groups}}
    stored = [{**workload, "metadata": {"name": "w", "namespace": "ml"}}] if groups else []
    snapshot = kschedx.Snapshot.from_objects([node("a"), *stored])
    explanation = kschedx.explain(snapshot, pod("m-0", gates=(), **named), feature_gates=GANGS, kube_version=release)
    assert [item.title for item in explanation.fixes] == [fix]
