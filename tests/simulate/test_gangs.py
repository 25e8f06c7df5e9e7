"""Pod groups with a gang policy: at least minCount pods are placed, or none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import kschedx
from kschedx.inquiry.simulation import Simulation
from kschedx.render.simulation import decision_text
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod
from tests.command import check_document
from tests.command import kschedx as command
from tests.storage_builders import claim, volume

GATES = {"GenericWorkload": True, "GangScheduling": True}
MESSAGES = {
    "1.35": "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling.",
    "1.36": "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod",
}
HOST = "kubernetes.io/hostname"
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def group(name: str, min_count: int, **spec: object) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec},
    }


def members(
    name: str, count: int, *, priority: int = 0, preempts: bool = True, version: str = "1.36"
) -> list[Manifest]:
    named: dict[str, Any] = {"schedulingGroup": {"podGroupName": name}}
    if version == "1.35":
        named = {"workloadRef": {"name": "train", "podGroup": name}}
    return [
        pod(
            f"{name}-{number}",
            priority=priority,
            containers=[asking("1")],
            preemptionPolicy="PreemptLowerPriority" if preempts else "Never",
            **named,
        )
        for number in range(count)
    ]


def workload(groups: Mapping[str, int]) -> Manifest:
    """The pod groups of 1.35."""
    entries = [{"name": name, "policy": {"gang": {"minCount": least}}} for name, least in groups.items()]
    metadata = {"name": "train", "namespace": "default"}
    spec = {"podGroups": entries}
    return {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": metadata, "spec": spec}


def asking(cpu: str) -> dict[str, object]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def simulated(
    *objects: Manifest, version: str = "1.36", gates: Mapping[str, bool] = GATES, cpu: str = "3"
) -> Simulation:
    machine = node("a", labels={HOST: "a"}, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"})
    snapshot = Snapshot.from_objects([machine, *objects])
    return kschedx.simulate(snapshot, kube_version=version, feature_gates=dict(gates))


@pytest.mark.parametrize(("version", "expected"), MESSAGES.items(), ids=list(MESSAGES))
def test_all_members_or_none(version: str, expected: str) -> None:
    """The first gang needs four of three cpu and leaves the room to the second one, which needs two."""
    waiting = [*members("big", 4, version=version), *members("ok", 2, version=version)]
    groups = [workload({"big": 4, "ok": 2})] if version == "1.35" else [group("big", 4), group("ok", 2)]
    simulation = simulated(*groups, *waiting, pod("z"), version=version)
    assert sorted(simulation.placed) == ["default/ok-0", "default/ok-1", "default/z"]
    assert sorted(simulation.pending) == [f"default/big-{number}" for number in range(4)]
    first = [step.message for step in simulation.steps if step.key.startswith("default/big")][:4]
    assert first[:3] == [expected] * 3
    assert first[3].startswith(FULL)


WHOLE = {**GATES, "WorkloadAwarePreemption": True}
PLACED = {**GATES, "TopologyAwareWorkloadScheduling": True}
ZONES = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}


@pytest.mark.parametrize(
    ("changed", "preempts", "victims"),
    [
        ({"priority": 9}, True, {"default/low-1": "default/big-0"}),
        ({"priority": 0}, True, {}),
        ({"priority": 5, "disruption": "PodGroup"}, True, {}),
        ({"priority": 9, **ZONES}, True, {}),
        ({"priority": 9}, False, {}),
    ],
    ids=["higher", "not higher", "victims of a higher group", "constrained", "never preempts"],
)
def test_pods_are_preempted_for_a_group_as_a_whole(
    changed: Manifest, preempts: bool, victims: Mapping[str, str]
) -> None:
    """Three pods of 1 cpu need a node of 4 cpu, on which two pods run: the younger one is preempted."""
    mode = changed.get("disruption")
    named: dict[str, Any] = {} if mode is None else {"schedulingGroup": {"podGroupName": "old"}}
    low = [
        pod(
            f"low-{hour}", on="a", containers=[asking("1")], status={"startTime": f"2026-01-01T0{hour}:00:00Z"}, **named
        )
        for hour in range(2)
    ]
    old = group("old", 2, priority=6, disruptionMode=mode or "Pod")
    spec = {key: value for key, value in changed.items() if key != "disruption"}
    mine = members("big", 3, priority=9, preempts=preempts)
    gates = {**WHOLE, "TopologyAwareWorkloadScheduling": "schedulingConstraints" in changed}
    simulation = simulated(*low, old, group("big", 3, **spec), *mine, gates=gates, cpu="4")
    assert dict(simulation.evictions) == victims
    assert len(simulation.placed) == (3 if victims else 0)


@pytest.mark.parametrize(
    ("is_placed", "message"),
    [
        (False, "pod group is unschedulable"),
        (True, "0/1 placements are available, first placement status: pod group is unschedulable"),
    ],
)
def test_the_message_of_a_member_during_preemption(is_placed: bool, message: str) -> None:
    """The first member fits and the second does not. With topology awareness, all nodes are one placement."""
    gang = [group("big", 2, priority=9), *members("big", 2, priority=9)]
    gates = {**WHOLE, "TopologyAwareWorkloadScheduling": is_placed}
    simulation = simulated(pod("low", on="a", containers=[asking("1")]), *gang, gates=gates, cpu="2")
    assert simulation.steps[0].message == message
    assert simulation.steps[1].message.startswith(FULL)


def test_victims_are_named_if_no_member_fits() -> None:
    gang = [group("big", 1, priority=9), *members("big", 1, priority=9)]
    simulation = simulated(pod("low", on="a", containers=[asking("1")]), *gang, gates=WHOLE, cpu="1")
    assert simulation.steps[0].document.victims == ("default/low",)
    assert decision_text(simulation.steps[0]) == "✗ default/big-0 preempts default/low for its pod group"


@pytest.mark.parametrize("preempts", [False, True])
def test_a_group_without_a_domain(preempts: bool) -> None:
    """The node has no zone."""
    gates = {**PLACED, "WorkloadAwarePreemption": preempts}
    simulation = simulated(group("gang", 1, **ZONES), *members("gang", 1), gates=gates)
    added = ", workload aware preemption is not supported for pod groups with scheduling constraints"
    assert simulation.messages["default/gang-0"] == "no feasible placements found" + (added if preempts else "")


def test_a_group_is_preempted_as_a_whole() -> None:
    """One cpu is lacking, and both pods of the group are preempted."""
    named = {"podGroupName": "old"}
    low = [pod(f"low-{number}", on="a", containers=[asking("1")], schedulingGroup=named) for number in range(2)]
    old = group("old", 2, priority=0, disruptionMode="PodGroup")
    simulation = simulated(*low, old, group("big", 3, priority=9), *members("big", 3, priority=9), gates=WHOLE, cpu="4")
    assert sorted(simulation.evictions) == ["default/low-0", "default/low-1"]
    assert len(simulation.placed) == 3


@pytest.mark.parametrize(("version", "first"), [("1.36", "late"), ("1.37", "early")])
def test_from_1_37_on_a_group_is_queued_by_its_own_priority(version: str, first: str) -> None:
    """There is room for one of two pods, whose priorities are the reverse of those of their groups."""
    gates = {"GenericWorkload": True} | ({"GangScheduling": True} if version == "1.36" else {})
    groups = [group("early", 1, priority=9), group("late", 1, priority=1)]
    waiting = [*members("early", 1, priority=1, preempts=False), *members("late", 1, priority=9, preempts=False)]
    simulation = simulated(*groups, *waiting, version=version, gates=gates, cpu="1")
    assert list(simulation.placed) == [f"default/{first}-0"]


@pytest.mark.parametrize(("version", "gone"), [("1.36", ["old-0"]), ("1.37", ["old-0", "old-1"])])
def test_from_1_37_on_a_single_pod_preempts_a_whole_group(version: str, gone: list[str]) -> None:
    mode: dict[str, Any] = {"disruptionMode": {"all": {}} if version == "1.37" else "PodGroup"}
    gates = {"GenericWorkload": True} | ({"GangScheduling": True} if version == "1.36" else {})
    named = {"podGroupName": "old"}
    old = [pod(f"old-{number}", on="a", containers=[asking("1")], schedulingGroup=named) for number in range(2)]
    me = pod("me", priority=9, containers=[asking("1")])
    simulation = simulated(*old, group("old", 2, priority=0, **mode), me, version=version, gates=gates, cpu="2")
    assert sorted(simulation.evictions) == [f"default/{name}" for name in gone]


@pytest.mark.parametrize(("version", "text"), [
    ("1.36", "waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait"),
    ("1.37", "pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
])  # fmt: skip
def test_the_message_of_a_member_without_room_for_its_group(version: str, text: str) -> None:
    gates = {"GenericWorkload": True} | ({"GangScheduling": True} if version == "1.36" else {})
    simulation = simulated(group("gang", 3), *members("gang", 3), version=version, gates=gates, cpu="2")
    assert simulation.messages["default/gang-0"].startswith(f"pod group is unschedulable, {text}")


def test_from_1_37_on_a_group_preempts_for_all_its_members() -> None:
    """Two members suffice; the third one fits only if both pods of a lower priority are preempted."""
    low = [pod(f"low-{number}", on="a", priority=1, containers=[asking("1")]) for number in range(2)]
    gang = [group("gang", 2, priority=9), *members("gang", 3, priority=9)]
    simulation = simulated(*low, *gang, version="1.37", gates={"GenericWorkload": True}, cpu="3")
    assert sorted(simulation.evictions) == ["default/low-0", "default/low-1"]


def zoned(name: str, zone: str, cpu: str) -> Manifest:
    return node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}, labels={"zone": zone})


@pytest.mark.parametrize(
    ("sizes", "min_count", "placed"),
    [
        ({"x": "2", "y": "3"}, 2, {"y"}),
        ({"x": "2", "y": "2"}, 3, set()),
        ({"x": "4", "y": "1"}, 0, {"x"}),
        ({"x": "6", "y": "4"}, 3, {"y"}),
    ],
    ids=["where most fit", "nowhere", "need not start together", "the fuller of two"],
)
def test_all_pods_of_a_group_are_placed_in_one_domain(
    sizes: Mapping[str, str], min_count: int, placed: set[str]
) -> None:
    machines = [zoned(zone, zone, cpu) for zone, cpu in sizes.items()]
    basic: dict[str, Any] = {} if min_count else {"schedulingPolicy": {"basic": {}}}
    gang = group("gang", min_count, **ZONES, **basic)
    snapshot = Snapshot.from_objects([*machines, gang, *members("gang", 3)])
    simulation = kschedx.simulate(snapshot, feature_gates=PLACED)
    assert set(simulation.placed.values()) == placed
    assert len(simulation.placed) == (3 if placed else 0)


def test_a_surplus_member_is_pending_alone() -> None:
    simulation = simulated(group("gang", 2), *members("gang", 4))
    assert sorted(simulation.placed) == ["default/gang-0", "default/gang-1", "default/gang-2"]
    assert simulation.messages["default/gang-3"].startswith(FULL)


def test_running_members_count() -> None:
    running = pod("before", on="a", containers=[asking("2")], schedulingGroup={"podGroupName": "gang"})
    assert sorted(simulated(group("gang", 2), running, *members("gang", 2)).placed) == ["default/gang-0"]
    assert not simulated(group("gang", 3), running, *members("gang", 2)).placed


def test_without_the_gates_pods_are_independent() -> None:
    assert len(simulated(group("big", 4), *members("big", 4), gates={}).placed) == 3


def test_victims_are_evicted_even_if_the_gang_is_not_placed() -> None:
    """The victims return to their node and are not preempted again."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "low", "uid": "1", "controller": True}
    low = pod("low", on="a", containers=[asking("3")], metadata={"ownerReferences": [owner]})
    simulation = simulated(group("gang", 4), low, *members("gang", 4, priority=9))
    assert dict(simulation.placed) == {"default/low": "a"}
    assert dict(simulation.evictions) == {"default/low": "default/gang-2"}, "three members preempt it, and it goes once"
    assert len(simulation.pending) == 4
    number = next(number for number, step in enumerate(simulation.steps) if step.key == "default/low")
    then = simulation.cluster_before(number).pods
    assert {then.node_names[row] for row in range(len(then))} == {""}, "nobody has a node when it comes back"


def test_victims_of_members_stay_until_the_whole_group_is_decided() -> None:
    low = [pod(name, on="a", priority=at, containers=[asking("1")]) for at, name in enumerate(("x", "y"))]
    first, second, *last = simulated(group("big", 2), *low, *members("big", 2, priority=9), cpu="2").steps
    assert (first.document.victims, second.document.victims) == (("default/x",), ("default/x", "default/y"))
    assert (first.message, second.message) == (FULL, FULL)
    assert [(step.key, step.node) for step in last] == [("default/big-0", 0), ("default/big-1", 0)]


def test_a_member_that_fits_waits_for_the_victims_of_another() -> None:
    low = pod("low", on="a", containers=[asking("1")])
    first, *_ = simulated(group("big", 1), low, *members("big", 2, priority=9), cpu="2").steps
    assert first.message == "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert (first.document.nominated_node, first.document.victims) == ("a", ())


def test_nominations_of_the_own_group_do_not_count() -> None:
    """With big-1 on node a, big-0 would exceed its maxSkew there."""
    labels = {"app": "big"}
    constraint = {"maxSkew": 1, "topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    rules = [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]
    spec: dict[str, Any] = {"priority": 9, "containers": [asking("1")], "schedulingGroup": {"podGroupName": "big"}}
    spread = pod("big-0", labels=labels, topologySpreadConstraints=rules, **spec)
    second = pod("big-1", labels=labels, **spec)
    small = node("b", labels={HOST: "b"}, allocatable={"cpu": "0", "memory": "8Gi", "pods": "110"})
    low = pod("low", on="a", containers=[asking("2")])
    placed = simulated(group("big", 2), small, low, spread, second, cpu="2").placed
    assert dict(placed) == {"default/big-0": "a", "default/big-1": "a"}


COSCHEDULED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]},
            }
        }
    ],
}


@pytest.mark.parametrize(("min_member", "placed"), [(3, ["gang-0", "gang-1", "gang-2"]), (4, [])])
def test_coscheduling_places_its_groups_as_a_whole(min_member: int, placed: list[str]) -> None:
    """Four pods of 1 cpu on a node of 3."""
    label = "scheduling.x-k8s.io/pod-group"
    of_label: Manifest = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": min_member},
    }
    waiting = [pod(f"gang-{number}", containers=[asking("1")], labels={label: "gang"}) for number in range(4)]
    machine = node("a", allocatable={"cpu": "3", "memory": "8Gi", "pods": "110"})
    simulation = kschedx.simulate(Snapshot.from_objects([machine, of_label, *waiting]), config=COSCHEDULED)
    assert sorted(simulation.placed) == [f"default/{name}" for name in placed]
    if not placed:
        text = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
        assert [simulation.messages[f"default/gang-{number}"] for number in range(3)] == [text] * 3
        assert "PodGroup default/gang gets rejected due to Pod gang-3" in simulation.messages["default/gang-3"]


def test_a_list_shows_the_group_of_its_pods() -> None:
    """`why --all-pending`, `why` of a member, and its document agree."""
    story = ("-s", "fixtures/pod-group-no-room/cluster.yaml", *(f"--feature-gate={gate}=true" for gate in GATES))
    for alone in ((), ("--alone",)):
        outcome = command("why", "--all-pending", "-A", *alone, *story)
        assert (outcome.code, outcome.out.splitlines()[0]) == (1, "✗ 4 pods are unschedulable")
        assert "group ml/train has room for only 3 of 4 pods" in outcome.out
    result = command("why", "pod/worker-0", "-n", "ml", *story, "-o", "json")
    document = json.loads(result.out)
    assert (result.code, document["outcome"], document["overall"]) == (1, "Scheduled", "Unschedulable")
    check_document(document)


@pytest.mark.parametrize("count", [20, pytest.param(40, marks=pytest.mark.long)])
def test_a_group_of_many_pods_is_decided(count: int) -> None:
    """Preemption for the whole group: each of the possible victims is tried with up to all members."""
    nodes = [node(f"n{number}", allocatable={"cpu": "1", "memory": "8Gi", "pods": "10"}) for number in range(2 * count)]
    held = [pod(f"low-{number}", on=f"n{number}", containers=[asking("1")]) for number in range(2 * count)]
    objects = [*nodes, *held, group("train", count, priority=10), *members("train", count, priority=10)]
    gates = {**GATES, "WorkloadAwarePreemption": True}
    explanation = kschedx.explain(
        Snapshot.from_objects(objects), "default/train-0", kube_version="1.36", feature_gates=gates
    )
    gang = explanation.holding.group
    assert gang is not None
    assert (gang.undecided, gang.together, len(gang.preempted)) == ("", count, count)


@pytest.mark.parametrize(
    ("version", "holder", "placed"),
    [
        ("1.36", "", ["gang-0", "gang-1"]),
        ("1.36", "old", []),
        ("1.35", "", []),
    ],
    ids=["free when the cycle begins", "held when it begins", "before group cycles"],
)
def test_members_may_share_a_claim_of_a_single_pod(version: str, holder: str, placed: list[str]) -> None:
    """kube-scheduler 1.36 lists the claims of running pods once per cycle of a group."""
    bound = [
        claim("single", modes=["ReadWriteOncePod"], volume="v"),
        volume("v", modes=["ReadWriteOncePod"], claim_ref="single"),
    ]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "single"}}]
    waiting: list[dict[str, Any]] = members("gang", 2, version=version)
    for item in waiting:
        item["spec"]["volumes"] = volumes
    groups = [workload({"gang": 2})] if version == "1.35" else [group("gang", 2)]
    running = [pod(holder, on="a", volumes=volumes)] if holder else []
    machine = node("a", allocatable={"cpu": "3", "memory": "8Gi", "pods": "110"})
    snapshot = Snapshot.from_objects([machine, *bound, *groups, *waiting, *running])
    simulation = kschedx.simulate(snapshot, kube_version=version, feature_gates=GATES)
    assert sorted(simulation.placed) == [f"default/{name}" for name in placed]


@pytest.mark.parametrize(
    ("is_listed", "version", "placed"),
    [
        (False, "1.36", ["gang-0", "gang-1"]),
        (True, "1.36", []),
        (False, "1.35", []),
    ],
    ids=["node without terms", "node with terms", "before group cycles"],
)
def test_terms_of_members_count_on_nodes_that_were_listed(is_listed: bool, version: str, placed: list[str]) -> None:
    """The first member has anti-affinity to the second one; after the cycle, its terms count on every node."""

    def term(app: str) -> Manifest:
        return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}

    def repelling(app: str) -> Manifest:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}}

    waiting: list[dict[str, Any]] = [*members("gang", 2, version=version)]
    waiting[0]["spec"]["affinity"] = repelling("gang")
    waiting[1]["metadata"]["labels"] = {"app": "gang"}
    listed = [pod("old", on="a", affinity=repelling("nobody"))] if is_listed else []
    groups = [workload({"gang": 2})] if version == "1.35" else [group("gang", 2)]
    last = pod("z", labels={"app": "gang"})
    machine = node("a", allocatable={"cpu": "3", "memory": "8Gi", "pods": "110"}, labels={"zone": "z"})
    snapshot = Snapshot.from_objects([machine, *groups, *waiting, *listed, last])
    simulation = kschedx.simulate(snapshot, kube_version=version, feature_gates=GATES)
    assert sorted(simulation.placed) == sorted(f"default/{name}" for name in placed or ["z"])


@pytest.mark.parametrize(("version", "pending"), [("1.35", 1), ("1.36", 4), ("1.37", 4)])
def test_a_condition_of_a_group_shows_that_the_gates_are_on(version: str, pending: int) -> None:
    """kube-scheduler writes conditions of PodGroups from 1.36 on."""
    texts: Manifest = {**group("g", 4), "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]}}
    cluster = Snapshot.from_objects([node("n", allocatable={"cpu": "3", "pods": "9"}), texts, *members("g", 4)])
    assert len(kschedx.simulate(cluster, kube_version=version).pending) == pending
