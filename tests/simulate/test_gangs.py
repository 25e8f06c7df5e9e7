"""Pod groups with a gang policy: as many as minCount get nodes, or nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

import kschedx
from kschedx.schemas import check_document
from kschedx.simulate.simulation import Simulation
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod
from tests.command import kschedx as command

GATES = {"GenericWorkload": True, "GangScheduling": True}
TOLD = {
    "1.35": "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling.",
    "1.36": "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod",
}
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def group(name: str, min_count: int, **spec: object) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec},
    }


def members(name: str, count: int, *, priority: int = 0, preempts: bool = True) -> list[Manifest]:
    named = {"podGroupName": name}
    return [
        pod(
            f"{name}-{number}",
            priority=priority,
            containers=[asking("1")],
            schedulingGroup=named,
            preemptionPolicy="PreemptLowerPriority" if preempts else "Never",
        )
        for number in range(count)
    ]


def asking(cpu: str) -> dict[str, object]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def simulated(
    *objects: Manifest, version: str = "1.36", gates: Mapping[str, bool] = GATES, cpu: str = "3"
) -> Simulation:
    machine = node("a", allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"})
    snapshot = Snapshot.from_objects([machine, *objects])
    return kschedx.simulate(snapshot, kube_version=version, feature_gates=dict(gates))


@pytest.mark.parametrize(("version", "told"), TOLD.items(), ids=list(TOLD))
def test_all_or_nobody(version: str, told: str) -> None:
    """The gang that needs four of three cpu comes first, and leaves the room to the one that needs two."""
    found = simulated(group("big", 4), group("ok", 2), *members("big", 4), *members("ok", 2), pod("z"), version=version)
    assert sorted(found.placed) == ["default/ok-0", "default/ok-1", "default/z"]
    assert sorted(found.pending) == [f"default/big-{number}" for number in range(4)]
    first = [step.message for step in found.steps if step.key.startswith("default/big")][:4]
    assert first[:3] == [told] * 3
    assert first[3].startswith(FULL)


@pytest.mark.parametrize(
    ("changed", "is_open"),
    [
        ({}, True),
        ({"priority": 0}, False),
        ({"priority": 50}, True),
        ({"schedulingConstraints": {"topology": [{"key": "zone"}]}}, False),
    ],
)
def test_whether_pods_go_for_a_group_as_a_whole_is_not_known(changed: Manifest, is_open: bool) -> None:
    gates = {**GATES, "WorkloadAwarePreemption": True}
    low = pod("low", on="a", containers=[asking("1")])
    found = simulated(low, group("big", 3, **changed), *members("big", 3, priority=9), gates=gates)
    assert not found.placed
    assert sorted(found.undecided) == ([f"default/big-{number}" for number in range(3)] if is_open else [])


def test_a_member_that_never_preempts_keeps_its_group_from_evicting() -> None:
    gates = {**GATES, "WorkloadAwarePreemption": True}
    mine = members("big", 3, priority=9)[:2] + members("big", 3, priority=9, preempts=False)[2:]
    low = pod("low", on="a", containers=[asking("1")])
    assert not simulated(low, group("big", 3), *mine, gates=gates).undecided


def test_who_is_too_many_waits_alone() -> None:
    found = simulated(group("gang", 2), *members("gang", 4))
    assert sorted(found.placed) == ["default/gang-0", "default/gang-1", "default/gang-2"]
    assert found.messages["default/gang-3"].startswith(FULL)


def test_members_that_run_count() -> None:
    running = pod("before", on="a", containers=[asking("2")], schedulingGroup={"podGroupName": "gang"})
    assert sorted(simulated(group("gang", 2), running, *members("gang", 2)).placed) == ["default/gang-0"]
    assert not simulated(group("gang", 3), running, *members("gang", 2)).placed


def test_without_the_gates_every_pod_stands_for_itself() -> None:
    assert len(simulated(group("big", 4), *members("big", 4), gates={}).placed) == 3


def test_victims_are_gone_where_the_gang_is_not_placed() -> None:
    """They find their old place again, and are not chased away once more."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "low", "uid": "1", "controller": True}
    low = pod("low", on="a", containers=[asking("3")], metadata={"ownerReferences": [owner]})
    found = simulated(group("gang", 4), low, *members("gang", 4, priority=9))
    assert dict(found.placed) == {"default/low": "a"}
    assert dict(found.evictions) == {"default/low": "default/gang-0"}
    assert len(found.pending) == 4
    number = next(number for number, step in enumerate(found.steps) if step.key == "default/low")
    then = found.cluster_before(number).pods
    assert {then.node_names[row] for row in range(len(then))} == {""}, "nobody has a node when it comes back"


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
    found = kschedx.simulate(Snapshot.from_objects([machine, of_label, *waiting]), config=COSCHEDULED)
    assert sorted(found.placed) == [f"default/{name}" for name in placed]
    if not placed:
        told = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
        assert [found.messages[f"default/gang-{number}"] for number in range(3)] == [told] * 3
        assert "PodGroup default/gang gets rejected due to Pod gang-3" in found.messages["default/gang-3"]


def test_many_are_told_with_their_group() -> None:
    """`why --all-pending`, one of them, and its document say the same."""
    story = ("-s", "fixtures/pod-group-no-room/cluster.yaml", *(f"--feature-gate={gate}=true" for gate in GATES))
    for alone in ((), ("--alone",)):
        ran = command("why", "--all-pending", "-A", *alone, *story)
        assert (ran.code, ran.out.splitlines()[0]) == (1, "4 pods are unschedulable")
        assert "it fits alone, but its group ml/train has room for 3 of 4 pods" in ran.out
    one = command("why", "pod/worker-0", "-n", "ml", *story, "-o", "json")
    told = json.loads(one.out)
    assert (one.code, told["outcome"], told["overall"]) == (1, "Scheduled", "Unschedulable")
    check_document(told)
