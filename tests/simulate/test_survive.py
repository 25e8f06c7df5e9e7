"""Outages: rules of the node lifecycle controller, states of workloads, and laws."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import kschedx
from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.controllers.node_lifecycle import NodeZones, ZoneState, eviction_rate, zone_state
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.survive import (
    Failure,
    FailureResult,
    OutageMode,
    OutageOutcome,
    WorkloadImpact,
    each_failure,
    failure_of,
    survive,
)
from kschedx.inquiry.what_if import drain_nodes
from kschedx.kube.tolerations import stay_seconds
from kschedx.kube.types import Taint, Toleration
from kschedx.render.page.markdown import markdown
from kschedx.render.survival import survival_lines, survival_page
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.laws.moving_clusters import Dealer
from tests.simulate.clusters import budget, deployment, nodes

ZONE = "topology.kubernetes.io/zone"


def tried(objects: Sequence[Manifest], each: str, mode: OutageMode = OutageMode.OUTAGE) -> dict[str, FailureResult]:
    snapshot = Snapshot.from_objects(objects)
    survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, each), mode=mode)
    return {result.name: result for result in survival.results}


def states(failure_result: FailureResult) -> dict[str, WorkloadImpact]:
    return {loss.workload.name: loss.state for loss in failure_result.workloads}


# --- the node lifecycle controller


@pytest.mark.parametrize(
    ("ready", "unready", "state"),
    [
        (5, 0, ZoneState.NORMAL),
        (0, 1, ZoneState.FULL),
        (0, 0, ZoneState.NORMAL),
        (1, 2, ZoneState.NORMAL),  # 66 %, and no more than 2 nodes
        (2, 3, ZoneState.PARTIAL),  # 60 %
        (45, 55, ZoneState.PARTIAL),  # 55 %
        (46, 54, ZoneState.NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, unready: int, state: ZoneState) -> None:
    assert zone_state(ready, unready) is state


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        (ZoneState.NORMAL, 3, 0.1),
        (ZoneState.FULL, 500, 0.1),
        (ZoneState.PARTIAL, 50, 0.0),
        (ZoneState.PARTIAL, 51, 0.01),
    ],
)
def test_how_fast_nodes_are_tainted(state: ZoneState, size: int, rate: float) -> None:
    assert eviction_rate(state, size) == rate


def test_evictions_stop_if_all_zones_are_lost() -> None:
    cluster = Snapshot.from_objects(nodes()).cluster.nodes
    zones, lost = NodeZones(cluster), [item.name for item in cluster]
    assert {item.rate for item in zones.evictions(lost)} == {0.0}
    in_a, in_b = zones.evictions(lost[:3])
    assert (in_a.zone, in_a.state, in_a.tainted_after(0), in_a.tainted_after(1)) == ("a", ZoneState.FULL, 50, 60)
    assert (in_b.zone, in_b.state, in_b.lost) == ("b", ZoneState.NORMAL, ("node-3",))


@pytest.mark.parametrize(("version", "after"), [("1.31", 340), ("1.32", 350), (None, 350)])
def test_when_the_first_pod_is_deleted(version: str | None, after: int) -> None:
    web = deployment("web", "1", ["node-1", "node-3"])
    for item in web:
        if item["kind"] == "Pod":
            its = {"key": UNREACHABLE.key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            at(item, "spec")["tolerations"] = [its]
    snapshot = Snapshot.from_objects([*nodes(), *web])
    setup = Setup.of_cluster(snapshot, kube_version=version)
    (result,) = survive(snapshot, setup, [Failure(name="node-1", nodes=("node-1",))]).results
    assert [dict(item.pods) for item in result.evictions] == [{"shop/web-0": after}]


UNREACHABLE = Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute")


LOST = (Taint(key=UNREACHABLE.key, effect="NoExecute"),)


@pytest.mark.parametrize(
    ("seconds", "value"),
    [((), 0), ((300,), 300), ((None,), None), ((600, 300), 600), ((None, 60), None), ((60, None), 60), ((-5,), 0)],
)
def test_the_first_toleration_that_matches_decides_how_long_a_pod_stays(
    seconds: Sequence[int | None], value: int | None
) -> None:
    tolerations = [replace(UNREACHABLE, toleration_seconds=second) for second in seconds]
    other = Toleration(key="other", operator="Exists", toleration_seconds=1)
    assert stay_seconds(LOST, [other, *tolerations], comparison=True) == value
    assert stay_seconds([*LOST, Taint(key="x", effect="NoExecute")], tolerations, comparison=True) == 0
    assert stay_seconds([Taint(key="x", effect="NoSchedule")], tolerations, comparison=True) is None


def test_nodes_that_do_not_count_for_their_zone_are_tainted_at_its_rate() -> None:
    cluster = Snapshot.from_objects(
        [
            node("own", labels={ZONE: "a", "node.kubernetes.io/exclude-disruption": "true"}),
            *(node(name, labels={ZONE: "a"}) for name in ("a1", "a2")),
        ]
    ).cluster.nodes
    (zone,) = NodeZones(cluster).evictions(["own", "a1"])
    assert (zone.nodes, zone.lost, zone.state, zone.rate) == (3, ("a1", "own"), ZoneState.NORMAL, 0.1)
    (alone,) = NodeZones(cluster[:1]).evictions(["own"])
    assert (alone.state, alone.rate) == (ZoneState.NORMAL, 0.1)


def test_a_job_that_exceeds_its_backoff_limit_does_not_survive() -> None:
    job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "etl", "namespace": "shop"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [{"name": "main"}]}}},
    }
    metadata: Manifest = {"ownerReferences": [{"kind": "Job", "name": "etl", "uid": "etl", "controller": True}]}
    snapshot = Snapshot.from_objects([*nodes(), job, pod("etl-x", namespace="shop", on="node-1", metadata=metadata)])
    setup, lost = Setup.of_cluster(snapshot), [Failure(name="node-1", nodes=("node-1",))]
    for mode in OutageMode:
        (result,) = survive(snapshot, setup, lost, mode=mode).results
        (workload,) = result.workloads
        assert [(each.outcome, each.message) for each in workload.pods] == [
            (OutageOutcome.NOT_RECREATED, "its Job exceeds its backoffLimit, and fails")
        ]


def test_a_daemon_set_of_another_api_group_belongs_to_its_nodes() -> None:
    owner = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "DaemonSet",
        "name": "it",
        "uid": "it",
        "controller": True,
    }
    agent = pod("agent", namespace="shop", on="node-1", metadata={"ownerReferences": [owner]})
    snapshot = Snapshot.from_objects([*nodes(), agent])
    (result,) = survive(snapshot, Setup.of_cluster(snapshot), [Failure(name="node-1", nodes=("node-1",))]).results
    assert (result.survives, result.workloads) == (True, ())
    removed = kschedx.simulate(snapshot, changes=[{"remove-node": "node-1"}])
    assert (len(removed.pending), len(removed.simulator.after.pods)) == (0, 0)


# --- what fails


def test_failures_by_label_and_name() -> None:
    snapshot = Snapshot.from_objects(nodes())
    assert [item.name for item in each_failure(snapshot, "zone")] == ["zone a", "zone b", "zone c"]
    assert len(each_failure(snapshot, "node")) == 5
    with pytest.raises(InputError, match="no node has a label of a nodepool"):
        each_failure(snapshot, "nodepool")
    table = Setup.of_cluster(snapshot).scheduler_on(snapshot).nodes
    assert failure_of(table, ["zone=b", "node/node-1"]).nodes == ("node-3", "node-4", "node-1")
    with pytest.raises(InputError, match='no node "node-9"'):
        failure_of(table, ["node-9"])


def test_the_busiest_nodes_are_those_with_the_largest_share() -> None:
    snapshot = Snapshot.from_objects([*nodes(), *deployment("web", "3", ["node-3", "node-4", "node-3"])])
    table = Setup.of_cluster(snapshot).scheduler_on(snapshot).nodes
    assert failure_of(table, (), busiest=2).nodes == ("node-3", "node-4")  # 6 of 8 CPU and 3 of 4, then by name


# --- what becomes of workloads


def test_states_of_workloads() -> None:
    objects = [
        *nodes(),
        *deployment("web", "1", ["node-1", "node-3"]),
        *deployment("single", "1", ["node-1"]),
        *deployment("big", "3", ["node-2", "node-5"]),
        *deployment("pinned", "1", ["node-1"], node_selector={ZONE: "a"}),
        pod("bare", namespace="shop", on="node-1"),
    ]
    outcome = tried(objects, "zone")["zone a"]
    assert states(outcome) == {
        "pinned": WorkloadImpact.DOWN,
        "bare": WorkloadImpact.DOWN,
        "single": WorkloadImpact.INTERRUPTED,
        "web": WorkloadImpact.RESCHEDULED,
        "big": WorkloadImpact.RESCHEDULED,
    }
    assert not outcome.survives
    assert outcome.needed is not None
    assert outcome.needed.not_helped == ("shop/pinned-0",)
    web = next(workload for workload in outcome.workloads if workload.workload.name == "web")
    assert (web.replicas, web.lost, web.left, web.after) == (2, 1, 1, 2)


def test_workloads_that_lose_all_replicas_at_once_are_named() -> None:
    """A single replica is lost with any node, so it is not named."""
    apart = [*deployment("web", "1", ["node-1", "node-2"]), *deployment("one", "1", ["node-3"])]
    snapshot = Snapshot.from_objects([*nodes(), *apart])
    survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, "zone"))
    lines = [line.plain for line in survival_lines(survival, width=120)]
    assert lines[:2] == [
        "✓ every workload survives each of 3 outages",
        "  all replicas are lost at once, and run again on other nodes: shop/deploy/web (zone a)",
    ]


def test_nodes_to_add() -> None:
    objects = [*nodes(["8"] * 5), *deployment("big", "5", ["node-1", "node-2", "node-3", "node-4", "node-5"])]
    outcome = tried(objects, "zone")["zone a"]
    assert states(outcome) == {"big": WorkloadImpact.PENDING}
    assert outcome.needed is not None
    assert [(item.like, item.zone, item.count) for item in outcome.needed.nodes] == [("node-3", "b", 2)]
    assert (outcome.needed.pods, outcome.needed.not_helped) == (2, ())


@pytest.mark.parametrize(("each", "added"), [("node", [("node-5", "c", 1)]), ("zone", [])])
def test_only_the_failure_of_a_node_leaves_its_zone_for_another(each: str, added: list[tuple[str, str, int]]) -> None:
    """The pod needs the only zone of node-5, as the pod of a zonal volume does."""
    web = deployment("web", "1", ["node-5"])
    for item in web:
        if item["kind"] == "Pod":
            at(item, "spec")["nodeSelector"] = {ZONE: "c"}
    outcome = tried([*nodes(), *web], each)["node-5" if each == "node" else "zone c"]
    assert outcome.needed is not None
    assert [(item.like, item.zone, item.count) for item in outcome.needed.nodes] == added


def test_a_lost_node_reports_no_readiness() -> None:
    reporting = nodes(["8"] * 5)
    for item in reporting:
        at(item, "status")["conditions"] = [{"type": "Ready", "status": "True"}]
    full = deployment("big", "5", ["node-1", "node-2", "node-3", "node-4", "node-5"])
    snapshot = Snapshot.from_objects([*reporting, *full])
    survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, "zone"))
    assert "; node-5 is unreachable<br>" in markdown(survival_page(survival))


def test_a_hard_spread_counts_the_lost_zone_until_its_nodes_are_deleted() -> None:
    spread = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    web = deployment("web", "1", ["node-1", "node-3", "node-5"])
    for item in web:
        if item["kind"] == "Pod":
            at(item, "spec")["topologySpreadConstraints"] = [spread]
    outcome = tried([*nodes(), *web], "zone")["zone a"]
    assert states(outcome) == {"web": WorkloadImpact.PENDING}
    assert (outcome.freed_by_deletion, outcome.needed and outcome.needed.nodes) == (1, ())


def test_a_budget_blocks_a_drain_and_no_outage() -> None:
    objects = [*nodes(), *deployment("web", "1", ["node-1", "node-1"]), budget("web", 0)]
    assert states(tried(objects, "node", OutageMode.DRAIN)["node-1"]) == {"web": WorkloadImpact.BLOCKED}
    assert states(tried(objects, "node")["node-1"]) == {"web": WorkloadImpact.INTERRUPTED}


def test_pods_that_are_preempted_count_as_lost() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    important = deployment("important", "8", ["node-1"], priority_class="high")
    for item in important:
        if item["kind"] == "Pod":
            at(item, "spec")["priority"] = 9
    small = deployment("small", "8", ["node-2"])
    outcome = tried([*nodes(["8", "8"]), high, *important, *small], "node")["node-1"]
    assert states(outcome) == {"small": WorkloadImpact.DOWN, "important": WorkloadImpact.INTERRUPTED}
    (lost,) = outcome.pods(OutageOutcome.PENDING)
    assert (lost.pod, lost.node, lost.by_preemption) == ("shop/small-0", "node-2", True)


def test_a_page_has_the_heat_map() -> None:
    snapshot = Snapshot.from_objects([*nodes(), *deployment("web", "1", ["node-1", "node-3"])])
    survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, "zone"))
    text = markdown(survival_page(survival))
    assert "| shop/deploy/web | 2 | moved: 2 → 2 | moved: 2 → 2 |  |" in text


def test_pods_stay_if_evictions_stop() -> None:
    snapshot = Snapshot.from_objects([*nodes(), *deployment("web", "1", ["node-1", "node-2"])])
    lost = Failure(name="all nodes", nodes=tuple(item.name for item in snapshot.cluster.nodes))
    text = markdown(survival_page(survive(snapshot, Setup.of_cluster(snapshot), [lost])))
    assert "2 pods are recreated only once the Node objects are deleted" in text


# --- laws


def shops(dice: random.Random, *, with_budgets: bool) -> list[Manifest]:
    """Draw a few workloads on partly full nodes."""
    names = [f"node-{number}" for number in range(1, 6)]
    objects = nodes([dice.choice(["3", "4", "8"]) for _ in names])
    for number in range(dice.randint(1, 5)):
        places = [dice.choice(names) for _ in range(dice.randint(1, 4))]
        selector = {ZONE: dice.choice("abc")} if dice.random() < 0.2 else None
        objects += deployment(f"w{number}", dice.choice(["500m", "1", "2"]), places, node_selector=selector)
        if with_budgets and dice.random() < 0.6:
            objects.append(budget(f"w{number}", dice.randint(0, 2)))
    return objects


laws = settings(max_examples=settings().max_examples // 2, deadline=None)
seeds = given(st.integers(0, 10**6))


@laws
@seeds
def test_outages_agree_with_drains_without_budgets(seed: int) -> None:
    objects = shops(random.Random(seed), with_budgets=False)
    snapshot = Snapshot.from_objects(objects)
    options = SimulationOptions(force=True, delete_emptydir_data=True)
    drained = {
        item.node: item for item in drain_nodes(snapshot, Setup.of_cluster(snapshot), None, options=options).drained
    }
    for mode in OutageMode:
        for name, item in tried(objects, "node", mode).items():
            lost = [pod for loss in item.workloads for pod in loss.pods]
            assert {pod.pod: pod.to for pod in lost} == {pod.pod: pod.node for pod in drained[name].pods}
            assert item.survives == drained[name].is_done


@laws
@seeds
def test_no_pod_is_lost(seed: int) -> None:
    dice = random.Random(seed)
    snapshot = Snapshot.from_objects(Dealer(dice).deal())
    failures = [Failure(name=name, nodes=(name,)) for name in snapshot.cluster.names]
    failures.append(Failure(name="all", nodes=snapshot.cluster.names))
    before = {key: snapshot.pods.node_names[row] for key, row in snapshot.pods.rows.items()}
    survival = survive(snapshot, Setup.of_cluster(snapshot), failures)
    for result in survival.results:
        pods = [pod for loss in result.workloads for pod in loss.pods]
        assert len(pods) == len({pod.pod for pod in pods})
        running = {key for key, name in before.items() if name in result.nodes and _stays_up(snapshot, key)}
        assert running == {pod.pod for pod in pods if not pod.by_preemption}
        assert sum(len(result.pods(outcome)) for outcome in OutageOutcome) == len(pods)
        assert all(pod.to not in result.nodes for pod in pods)
    # everything is taken back
    after = survival.simulation.after
    assert {key: after.pods.node_names[row] for key, row in after.pods.rows.items()} == before


def _stays_up(snapshot: Snapshot, key: str) -> bool:
    pods = snapshot.pods
    row = pods.rows[key]
    finished = pods.phases[row] in ("Succeeded", "Failed")
    daemon = any(owner.kind in ("DaemonSet", "Node") for owner in pods.owners[row])
    return not finished and not daemon and not pods.deletion_timestamps[row]


@laws
@seeds
def test_a_drain_never_breaks_a_budget(seed: int) -> None:
    objects = shops(random.Random(seed), with_budgets=True)
    snapshot = Snapshot.from_objects(objects)
    waves = 0
    evict = Simulator.evict

    def watched(simulator: Simulator, rows: Iterable[int]) -> list[int]:
        nonlocal waves
        waves += 1
        evict_result = evict(simulator, rows)
        for item in budgets_of(simulator.run.snapshot, simulator.base):
            now = item.current_status(simulator.run.snapshot, simulator.run.cluster.pods, simulator.queue.created)
            assert now.allowed >= 0, item.name
        return evict_result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulator, "evict", watched)
        survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, "zone"), mode=OutageMode.DRAIN)
    assert waves or not any(result.lost for result in survival.results)


def test_nodes_without_the_label_do_not_fail() -> None:
    objects = [*nodes(), node("other"), *deployment("web", "1", ["node-1", "other"])]
    assert set(tried(objects, "zone")) == {"zone a", "zone b", "zone c"}


def test_what_keeps_an_added_node_from_helping() -> None:
    """The lost zone counts as a domain without pods, so a node elsewhere does not help either."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    rule = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}
    metadata = {"labels": {"app": "web"}, "ownerReferences": [owner]}
    full = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    objects = [
        it
        for zone in "abc"
        for it in (
            node(f"n{zone}", labels={ZONE: zone}, allocatable=full),
            pod(f"web-{zone}", metadata=metadata, on=f"n{zone}", topologySpreadConstraints=[rule]),
        )
    ]
    snapshot = kschedx.Snapshot.from_objects(objects)
    survival = survive(snapshot, Setup.of_cluster(snapshot), each_failure(snapshot, "zone"))
    text = markdown(survival_page(survival))
    assert r"; also skew 2 \> maxSkew 1" in text
    assert "no added node helps default/web-a" in text
