"""Identical pods with and without a nominated node: each is decided correctly."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.explain.setup import Setup
from kschedx.framework.moving import Decision, Run
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import node, pod

REQUEST = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}], "priority": 10}


def world() -> Run:
    """Return two nodes, each full with a pod of low priority, and three pending pods."""
    objects = [node(f"node-{number}", allocatable={"cpu": "1", "pods": "9"}) for number in range(2)]
    low = {**REQUEST, "priority": 0}
    objects += [pod(f"low-{number}", on=f"node-{number}", spec=low) for number in range(2)]
    objects += [pod(f"wants-{number}", spec=REQUEST) for number in range(3)]
    return Run(scheduler_of(None, resolve(), Snapshot.from_objects(objects)))


def could_preempt(run: Run, row: int) -> list[int]:
    decision = run.decide(row)
    built = run.cluster.frozen()
    anew = Decision.of(run.scheduler.on(built).schedule(built.pods[row]))
    assert decision.message == anew.message
    result = (
        [] if decision.post_filter is None else [int(candidate.node) for candidate in decision.post_filter.candidates]
    )
    assert result == (
        [] if anew.post_filter is None else [int(candidate.node) for candidate in anew.post_filter.candidates]
    )
    return result


def test_a_nomination_counts_for_others_and_not_for_the_pod_itself() -> None:
    run = world()
    first, second, third = (run.cluster.pods.rows[f"default/wants-{number}"] for number in range(3))
    assert could_preempt(run, first) == could_preempt(run, second) == [0, 1]
    run.cluster.nominate(first, ClusterRow(0))
    assert could_preempt(run, first) == [0, 1]
    assert could_preempt(run, second) == could_preempt(run, third) == [1]
    run.cluster.nominate(second, ClusterRow(1))
    assert could_preempt(run, first) == [0]
    assert could_preempt(run, third) == []
    run.cluster.nominate(first, None)
    assert could_preempt(run, third) == [0]


def test_a_nomination_that_ends_makes_room_at_once() -> None:
    run = world()
    first, second = (run.cluster.pods.rows[f"default/wants-{number}"] for number in range(2))
    run.cluster.remove(run.cluster.pods.rows["default/low-0"])
    run.cluster.nominate(first, ClusterRow(0))
    assert run.decide(second).best.tolist() == []
    assert run.decide(first).nominated == 0
    run.cluster.nominate(first, None)
    assert run.decide(second).best.tolist() == [0]


@pytest.mark.parametrize(("priority", "keeps"), [(9, False), (10, True)], ids=["lower", "equal"])
def test_preemption_ends_the_nominations_of_lower_priority_alone(priority: int, keeps: bool) -> None:
    low = {**REQUEST, "priority": 0}
    objects = [
        node("only", allocatable={"cpu": "2", "pods": "9"}),
        *(pod(f"low-{number}", on="only", spec=low) for number in range(2)),
        pod("first", spec={**REQUEST, "priority": priority}, status={"nominatedNodeName": "only"}),
        pod("second", spec=REQUEST),
    ]
    snapshot = Snapshot.from_objects(objects)
    simulator = Simulator(snapshot, Setup.of_cluster(snapshot), SimulationOptions(recreate=False))
    cluster = simulator.run.cluster
    first, second = (cluster.pods.rows[f"default/{name}"] for name in ("first", "second"))
    simulator.queue.run([second])
    assert simulator.queue.steps[0].nominated == 0
    assert (first in cluster.pods.nominations) is keeps


def test_terminating_victims_are_not_preempted_again() -> None:
    going = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
    large = [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]
    small = node("n", allocatable={"cpu": "2", "pods": "9"})
    objects = [small, pod("low", on="n", metadata=going, containers=large), pod("new", priority=10, containers=large)]
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/new")
    assert [fix.title for fix in explanation.fixes][:1] == ["wait until default/low on n has terminated"]
    assert not any("wait for preemption" in fix.title for fix in explanation.fixes)


@pytest.mark.parametrize(("kind", "pending"), [("ReplicaSet", []), ("StatefulSet", ["default/low"])])
def test_a_terminating_victim_is_recreated_only_under_its_own_name(kind: str, pending: list[str]) -> None:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "low", "uid": "low", "controller": True}
    going = {"deletionTimestamp": "2026-01-02T00:00:00Z", "ownerReferences": [owner]}
    objects = [node("n", allocatable={"cpu": "1", "pods": "9"}), pod("low", on="n", metadata=going, spec=REQUEST)]
    high = pod("high", spec={**REQUEST, "priority": 20})
    done = kschedx.simulate(kschedx.Snapshot.from_objects([*objects, high]))
    assert list(done.pending) == pending


@pytest.mark.parametrize(("finalizer", "is_kept"), [("example.com/hold", True), ("orphan", False)])
def test_a_nominated_pod_waits_for_a_victim_that_a_finalizer_keeps(finalizer: str, *, is_kept: bool) -> None:
    going = {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": [finalizer]}
    large = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    objects = [
        node("n", allocatable={"cpu": "2", "pods": "9"}),
        pod("low-0", on="n", metadata=going, spec={**REQUEST, "priority": 0}),
        pod("low-1", on="n", spec={**REQUEST, "priority": 0}),
        pod("high", priority=20, containers=large, status={"nominatedNodeName": "n"}),
    ]
    done = kschedx.simulate(kschedx.Snapshot.from_objects(objects))
    assert [*done.pending] == (["default/high"] if is_kept else [])
    assert ("default/low-0" in done.evictions) is not is_kept
