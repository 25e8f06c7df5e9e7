"""Drains: the rules of kubectl, and PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from kschedx.explain.setup import Setup
from kschedx.inquiry.what_if import drain_nodes, simulate
from kschedx.render.drain import drain_facts, verdict
from kschedx.simulate.changes import parse_changes
from kschedx.simulate.drain import DrainOutcome, DrainResult, drain
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, pod, taint
from tests.simulate.clusters import budget, deployment, nodes, shop


def drained(objects: Sequence[Manifest], *names: str, uncordons: bool = True, **flags: Any) -> list[DrainResult]:
    snapshot = Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot)
    result = drain_nodes(snapshot, setup, names, options=SimulationOptions(**flags), uncordons=uncordons)
    return list(result.drained)


def fates(each: DrainResult) -> dict[str, DrainOutcome]:
    return {leaves.pod.partition("/")[2]: leaves.fate for leaves in each.pods}


def owned(kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "it", "uid": "it", "controller": True}]}


def test_evicted_pods_run_elsewhere_and_the_node_stays_empty() -> None:
    (each,) = drained(shop(), "node-1")
    assert each.is_done
    assert {leaves.pod: leaves.node for leaves in each.pods} == {
        "shop/web-0": "node-4",
        "shop/batch-0": "node-5",
        "shop/batch-1": "node-2",
    }


def test_pods_of_daemon_sets_and_static_pods_stay() -> None:
    agents = [
        pod("agent", on="node-1", metadata=owned("DaemonSet")),
        pod("static", on="node-1", metadata=owned("Node")),
    ]
    (each,) = drained([*nodes(), *agents], "node-1")
    assert fates(each) == {"agent": DrainOutcome.OF_DAEMON_SET, "static": DrainOutcome.OF_KUBELET}
    assert each.is_done


@pytest.mark.parametrize(
    ("what", "flag", "without", "with_it"),
    [
        ({}, "force", DrainOutcome.NEEDS_FORCE, DrainOutcome.DELETED),
        (
            {"metadata": owned("ReplicaSet"), "volumes": [{"name": "tmp", "emptyDir": {}}]},
            "delete_emptydir_data",
            DrainOutcome.NEEDS_EMPTYDIR_FLAG,
            DrainOutcome.EVICTED,
        ),
    ],
)
def test_kubectl_requires_a_flag(what: dict[str, Any], flag: str, without: DrainOutcome, with_it: DrainOutcome) -> None:
    objects = [*nodes(), *deployment("web", "1", ["node-1"]), pod("odd", on="node-1", **what)]
    (refused,) = drained(objects, "node-1")
    assert refused.is_refused
    assert not refused.is_done
    assert fates(refused)["odd"] is without
    (done,) = drained(objects, "node-1", **{flag: True})
    assert done.is_done
    assert fates(done) == {"web-0": DrainOutcome.EVICTED, "odd": with_it}


def test_a_budget_limits_the_evictions_of_a_wave() -> None:
    web = deployment("web", "1", ["node-1", "node-1", "node-1"])
    (each,) = drained([*nodes(), *web, budget("web", 1)], "node-1")
    assert each.is_done
    assert each.waves == 3


def test_a_budget_without_allowed_disruptions_stops_the_drain() -> None:
    web = deployment("web", "1", ["node-1", "node-2"])
    batch = deployment("batch", "1", ["node-1"])
    (each,) = drained([*nodes(), *web, *batch, budget("web", 0)], "node-1")
    assert fates(each) == {"web-0": DrainOutcome.BUDGET, "batch-0": DrainOutcome.EVICTED}
    assert [leaves.budget for leaves in each.of(DrainOutcome.BUDGET)] == ["shop/web"]
    assert not each.is_done


def test_a_pending_pod_uses_up_the_budget() -> None:
    web = deployment("web", "5", ["node-1", "node-1"], node_selector={"kubernetes.io/hostname": "node-1"})
    (each,) = drained([*nodes(("16", "2")), *web, budget("web", 1)], "node-1")
    assert [leaves.fate for leaves in each.pods] == [DrainOutcome.EVICTED, DrainOutcome.BUDGET]
    assert "node(s) were unschedulable" in each.pending[0].message


def test_nodes_drained_one_by_one_are_uncordoned_again() -> None:
    web = deployment("web", "6", ["node-1", "node-2"])
    objects = [*nodes(("8", "8", "8")), *web]
    assert [each.is_done for each in drained(objects, "node-1", "node-2", "node-3")] == [True, True, True]
    assert [each.is_done for each in drained(objects, "node-1", "node-2", uncordons=False)] == [True, False]


def test_a_pod_that_fits_no_other_node_returns_to_its_node_before_the_next_drain() -> None:
    objects = [*nodes(("8", "8")), *deployment("web", "5", ["node-1", "node-2"])]
    first, second = drained(objects, "node-1", "node-2")
    assert [len(each.pending) for each in (first, second)] == [1, 1]


def test_a_pod_that_tolerates_the_cordon_returns_to_its_node() -> None:
    objects = [*nodes(("8", "1")), *deployment("web", "5", ["node-1"])]
    at(objects[-1], "spec")["tolerations"] = [{"operator": "Exists"}]
    (each,) = drained(objects, "node-1")
    assert (each.is_done, [leaves.pod for leaves in each.returning]) == (False, ["shop/web-0"])
    assert verdict(each) == "1 evicted pod returns to it"
    assert [fact.label for fact in drain_facts(each)] == ["returns"]


def test_drains_of_each_node_are_independent() -> None:
    snapshot = Snapshot.from_objects(shop())
    setup = Setup.of_cluster(snapshot)
    every = drain_nodes(snapshot, setup, snapshot.cluster.names, options=SimulationOptions(), each=True)
    for each in every.drained:
        (alone,) = drained(shop(), each.node)
        assert each == alone


def test_an_undone_drain_restores_the_cluster() -> None:
    snapshot = Snapshot.from_objects(shop())
    simulator = Simulator(snapshot, Setup.of_cluster(snapshot), SimulationOptions())
    cluster = simulator.run.cluster
    before = cluster.frozen()
    drain(simulator, ["node-1", "node-2"], uncordons=False)
    cluster.revert(0)
    after = cluster.frozen()
    np.testing.assert_array_equal(after.pods.node, before.pods.node)
    assert after.cluster.nodes == before.cluster.nodes
    assert list(after.pods.start_times) == list(before.pods.start_times)
    assert [after.pods[row] for row in range(len(after.pods))] == [before.pods[row] for row in range(len(before.pods))]


def pdb(status: Mapping[str, object] | None = None, **spec: object) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": dict(status or {}),
    }


def ready(manifest: Manifest, is_ready: str = "True") -> Manifest:
    status = {**at(manifest, "status"), "conditions": [{"type": "Ready", "status": is_ready}]}
    return {**manifest, "status": status}


@pytest.mark.parametrize(
    ("spec", "waves", "stays"),
    [
        ({"maxUnavailable": 1}, 3, 0),
        ({"maxUnavailable": 2}, 2, 0),
        ({"maxUnavailable": "50%"}, 2, 0),
        ({"minAvailable": 1}, 2, 0),
        ({"minAvailable": "60%"}, 3, 0),
        ({"minAvailable": 3}, 0, 3),
        ({"maxUnavailable": 0}, 0, 3),
        ({"minAvailable": "100%"}, 0, 3),
    ],
)
def test_a_budget_without_a_status_is_computed(spec: dict[str, object], waves: int, stays: int) -> None:
    web = deployment("web", "1", ["node-1", "node-1", "node-1"])
    (each,) = drained([*nodes(), *web, pdb(None, **spec)], "node-1")
    assert (each.waves, len(each.of(DrainOutcome.BUDGET))) == (waves, stays)


@pytest.mark.parametrize(("replicas", "waves"), [(5, 3), (3, 0)])
def test_changed_replicas_change_the_allowed_disruptions(replicas: int, waves: int) -> None:
    """The status counts five pods, two of which may be evicted; with three pods, none may."""
    web = deployment("web", "1", ["node-1", "node-1", "node-1", "node-2", "node-2"])
    status: dict[str, object] = {"disruptionsAllowed": 2, "currentHealthy": 5, "desiredHealthy": 3}
    snapshot = Snapshot.from_objects([*nodes(), *web, pdb(status, minAvailable=3)])
    wanted = parse_changes([{"scale": f"deploy/web={replicas}"}, {"drain": "node-1"}], lambda path: [])
    (each,) = simulate(snapshot, Setup.of_cluster(snapshot), wanted, namespace="shop").drained
    assert each.waves == (2 if waves else 0)
    assert bool(each.of(DrainOutcome.BUDGET)) is not bool(waves)


@pytest.mark.parametrize(
    ("policy", "allowed", "healthy", "needed", "fate"),
    [
        (None, 0, 1, 2, DrainOutcome.BUDGET),
        (None, 0, 2, 2, DrainOutcome.EVICTED),
        (None, 0, 0, 0, DrainOutcome.BUDGET),
        ("IfHealthyBudget", 0, 1, 2, DrainOutcome.BUDGET),
        ("AlwaysAllow", 0, 1, 2, DrainOutcome.EVICTED),
    ],
)
def test_a_pod_that_is_not_ready(
    policy: str | None, allowed: int, healthy: int, needed: int, fate: DrainOutcome
) -> None:
    made, replica_set, first, *others = deployment("web", "1", ["node-1", "node-2", "node-3"])
    pods = [ready(first, "False"), *map(ready, others)]
    status: dict[str, object] = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": needed}
    spec: dict[str, object] = {
        "minAvailable": needed,
        **({} if policy is None else {"unhealthyPodEvictionPolicy": policy}),
    }
    (each,) = drained([*nodes(), made, replica_set, *pods, pdb(status, **spec)], "node-1")
    assert fates(each) == {"web-0": fate}


def test_evictions_that_no_budget_limits() -> None:
    """A pod that has not started, and one that is being deleted."""
    made, replica_set, first, second = deployment("web", "1", ["node-1", "node-1"])
    first["status"] = {"phase": "Pending"}
    at(second, "metadata")["deletionTimestamp"] = "2026-11-20T09:00:00Z"
    (each,) = drained([*nodes(), made, replica_set, first, second, budget("web", 0)], "node-1")
    assert fates(each) == {"web-0": DrainOutcome.EVICTED, "web-1": DrainOutcome.TERMINATING}
    assert each.is_done


def test_a_pod_with_two_budgets_is_never_evicted() -> None:
    second = {**budget("web", 1), "metadata": {"name": "all", "namespace": "shop"}}
    (each,) = drained([*nodes(), *deployment("web", "1", ["node-1", "node-2"]), budget("web", 1), second], "node-1")
    assert fates(each) == {"web-0": DrainOutcome.BUDGETS}
    assert [leaves.budget for leaves in each.pods] == ["shop/web, shop/all"]


def test_an_empty_selector_covers_a_pod_without_labels() -> None:
    bare = pod("bare", namespace="shop", on="node-1", metadata=owned("ReplicaSet"))
    everything = pdb({"disruptionsAllowed": 0}, minAvailable=1, selector={})
    (each,) = drained([*nodes(), *deployment("web", "1", ["node-1"]), bare, everything], "node-1")
    assert fates(each) == {"web-0": DrainOutcome.BUDGET, "bare": DrainOutcome.BUDGET}


def test_the_replacement_of_a_pod_that_had_not_started_counts() -> None:
    made, replica_set, first = deployment("web", "1", ["node-1"])
    first["status"] = {"phase": "Pending"}
    held = pdb({"disruptionsAllowed": 0}, minAvailable=1)
    each, two = drained([*nodes(("8", "8")), made, replica_set, first, held], "node-1", "node-2")
    assert (fates(each), fates(two)) == ({"web-0": DrainOutcome.EVICTED}, {"web-0": DrainOutcome.BUDGET})


def test_the_needed_pods_of_a_budget_follow_the_replicas() -> None:
    """The status counts five pods."""
    web = deployment("web", "1", ["node-1"] * 5)
    status: dict[str, object] = {"disruptionsAllowed": 0, "currentHealthy": 5, "desiredHealthy": 5}
    snapshot = Snapshot.from_objects([*nodes(), *web, pdb(status, maxUnavailable=0)])
    wanted = parse_changes([{"scale": "deploy/web=3"}, {"drain": "node-1"}], lambda path: [])
    (each,) = simulate(snapshot, Setup.of_cluster(snapshot), wanted, namespace="shop").drained
    assert (each.held["shop/web"].needed, each.held["shop/web"].healthy) == (3, 3)


def owned_by(**fields: str) -> dict[str, Any]:
    """Return a pod of a DaemonSet that does not exist."""
    return {"ownerReferences": [{**owned("DaemonSet")["ownerReferences"][0], **fields}]}


@pytest.mark.parametrize(
    ("what", "force", "fate"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "1"}}, False, DrainOutcome.OF_KUBELET),
        (owned("DaemonSet"), False, DrainOutcome.OF_DAEMON_SET),
        (owned_by(name="gone"), False, DrainOutcome.NEEDS_FORCE),
        (owned_by(name="gone"), True, DrainOutcome.DELETED),
        (owned_by(apiVersion="apps.kruise.io/v1alpha1"), False, DrainOutcome.OF_DAEMON_SET),
        (owned_by(apiVersion="apps.kruise.io/v1alpha1", name="gone"), False, DrainOutcome.NEEDS_FORCE),
        (owned_by(apiVersion="apps.kruise.io/v1alpha1", name="gone"), True, DrainOutcome.EVICTED),
    ],
    ids=[
        "mirror",
        "DaemonSet",
        "DaemonSet that is gone",
        "with --force",
        "another API group, and a DaemonSet of that name",
        "another API group",
        "another API group, with --force",
    ],
)
def test_the_filters_of_kubectl_in_order(what: dict[str, Any], force: bool, fate: DrainOutcome) -> None:
    known: Manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "it", "namespace": "shop"}}
    each = pod("odd", namespace="shop", on="node-1", metadata=what)
    assert fates(drained([*nodes(), known, each], "node-1", force=force)[0]) == {"odd": fate}


def test_nodes_that_are_drained_together_are_cordoned_first() -> None:
    web = deployment("web", "1", ["node-1", "node-2"])
    first, second = drained([*nodes(("8", "8")), *web], "node-1", "node-2", uncordons=False)
    assert [each.is_done for each in (first, second)] == [False, False]


def test_pending_pods_are_scheduled_before_the_drain() -> None:
    objects: list[Manifest] = [*nodes(("4", "4")), *deployment("web", "4", ["node-2", None])]
    objects[0] = {**objects[0], "spec": {"unschedulable": True}}
    snapshot = Snapshot.from_objects(objects)
    wanted = parse_changes([{"uncordon": "node-1"}, {"drain": "node-2"}], lambda path: [])
    result = simulate(snapshot, Setup.of_cluster(snapshot), wanted, namespace="shop")
    assert result.placed == {"shop/web-1": "node-1"}
    assert [*result.messages] == ["shop/web-0"]


@pytest.mark.parametrize("policy", ["IfHealthyBudget", "AlwaysAllow"])
@pytest.mark.parametrize(
    ("phase", "reason", "fate"),
    [
        ("Running", "CrashLoopBackOff", DrainOutcome.BUDGET),
        ("Running", "", DrainOutcome.BUDGET),
        ("Pending", "ImagePullBackOff", DrainOutcome.BUDGET),
        ("Pending", "ContainerCreating", DrainOutcome.EVICTED),
        ("Pending", "", DrainOutcome.EVICTED),
    ],
)
def test_the_replacement_of_an_unready_pod_is_not_healthy(
    policy: str, phase: str, reason: str, fate: DrainOutcome
) -> None:
    made, replica_set, healthy, second = deployment("web", "1", ["node-1", "node-1"])
    unready = ready(second, "False")
    waiting = [{"name": "main", "state": {"waiting": {"reason": reason}}}] if reason else []
    unready["status"] = {**at(unready, "status"), "phase": phase, "containerStatuses": waiting}
    held = pdb(None, minAvailable=1, unhealthyPodEvictionPolicy=policy)
    (each,) = drained([*nodes(), made, replica_set, ready(healthy), unready, held], "node-1")
    assert fates(each) == {"web-0": fate, "web-1": DrainOutcome.EVICTED}


def test_a_refusal_has_the_message_of_kubectl() -> None:
    data = pod("data", on="node-1", metadata=owned("ReplicaSet"), spec={"volumes": [{"name": "x", "emptyDir": {}}]})
    (each,) = drained([*nodes(), pod("bare", on="node-1"), data], "node-1")
    assert {leaves.pod.partition("/")[2]: leaves.message for leaves in each.pods} == {
        "bare": "cannot delete Pods that declare no controller (use --force to override)",
        "data": "cannot delete Pods with local storage (use --delete-emptydir-data to override)",
    }


def test_a_drain_of_a_lost_node_does_not_end() -> None:
    """No kubelet confirms the deletion: a ReplicaSet replaces its pods before that, and a Job unless its pod
    replacement policy is Failed."""
    policy = {"spec": {"podReplacementPolicy": "Failed"}, "metadata": {"name": "it", "namespace": "default"}}
    job: Manifest = {"apiVersion": "batch/v1", "kind": "Job", **policy}
    own = [pod(name, on="node-1", metadata=owned(kind)) for name, kind in (("db-0", "StatefulSet"), ("etl", "Job"))]
    objects = [*nodes(), *deployment("web", "1", ["node-1"]), *own]
    at(objects[0], "status")["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    (each,) = drained([*objects, job], "node-1")
    assert (each.is_done, each.is_unconfirmed) == (False, True)
    held = {"web-0": DrainOutcome.EVICTED, "db-0": DrainOutcome.TERMINATING, "etl": DrainOutcome.TERMINATING}
    assert fates(each) == held
    assert fates(drained(objects, "node-1")[0]) == {**held, "etl": DrainOutcome.EVICTED}
    going = [
        {**each, "metadata": {**at(each, "metadata"), "deletionTimestamp": "2026-01-02T00:00:00Z"}} for each in own
    ]
    others = objects[: -len(own)]
    awaited = [drained([*others, *going, *more], "node-1")[0].awaited for more in ([], [job])]
    assert awaited == [("default/db-0",), ("default/db-0", "default/etl")]
    at(objects[0], "spec")["taints"] = [taint("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")]
    assert drained(objects, "node-1")[0].is_done


@pytest.mark.parametrize(
    ("finalizers", "done"), [([], True), (["batch.kubernetes.io/job-tracking"], True), (["example.com/hold"], False)]
)
def test_a_pod_with_a_finalizer_blocks_the_drain(finalizers: list[str], done: bool) -> None:
    metadata = {**owned("ReplicaSet"), "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": finalizers}
    (each,) = drained([*nodes(), pod("gone", on="node-1", metadata=metadata)], "node-1")
    assert (each.is_done, [kept.pod for kept in each.unconfirmed_pods]) == (done, [] if done else ["default/gone"])
    message = [item for fact in drain_facts(each) for item in fact.items]
    assert message == (
        [] if done else ["default/gone: it is being deleted, and its finalizer example.com/hold keeps it"]
    )


def test_pods_that_no_controller_recreates_are_named() -> None:
    (each,) = drained([*nodes(), pod("bare", on="node-1")], "node-1", force=True)
    assert [item for fact in drain_facts(each) for item in fact.items] == ["not recreated: default/bare"]
