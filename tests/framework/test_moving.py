"""Decisions on a changed cluster equal the decisions on a fresh cluster in the same state."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kschedx.explain.difference import compare
from kschedx.explain.profile_changes import Pair
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.framework.interface import CycleState, ScorePlugin
from kschedx.framework.moving import Decision, Run
from kschedx.framework.registry import plugin_class
from kschedx.framework.schedule import EquivalenceClass
from kschedx.framework.scheduler import FrameworkScheduler
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.simulate.changes import set_cordon
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from tests import builders
from tests.laws.moving_clusters import facts_of

RECORDED = Path(__file__).parent.parent / "conformance"
FAMILIES = (
    "resources",
    "nodeaffinity",
    "taints",
    "ports",
    "interpod",
    "spread",
    "images",
    "preemption",
    "config",
    "mixed",
)


PLUGINS_WITH_EXTREMES = [
    outcome
    for name, points in resolve().plugin_points.items()
    if "score" in points and issubclass(outcome := plugin_class(name), ScorePlugin) and outcome.normalizes_by_extremes
]


def recorded_cases(family: str, number: int) -> list[Any]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz") as lines:
        cases = [json.loads(line) for line in lines]
    return cases[:: max(len(cases) // number, 1)][:number]


def fresh_decision(run: Run, row: int) -> Decision:
    """Return the decision of a scheduler built on the present cluster."""
    snapshot = run.cluster.frozen()
    return Decision.of(run.scheduler.on(snapshot).schedule(snapshot.pods[row]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_moved_pod_leaves_the_decisions_of_a_fresh_cluster(family: str) -> None:
    for case in recorded_cases(family, 4):
        dice = random.Random(case["name"])
        snapshot = Snapshot.from_objects(case["objects"])
        release = resolve(feature_gates=case.get("featureGates"))
        run = Run(scheduler_of(case["config"], release, snapshot))
        pods, nodes = run.cluster.pods, len(snapshot.cluster.nodes)
        known = {profile.scheduler_name for profile in run.scheduler.config.profiles}
        schedulable_rows = [row for row in range(len(pods)) if pods.specs[row].scheduler_name in known]
        movable = [row for row in range(len(pods)) if pods.node[row] >= 0 or row in pods.pending]
        if not movable or not nodes:
            continue
        before = run.cluster.frozen().pods.node
        pending_rows = [row for row in schedulable_rows if pods.node[row] < 0][:3]
        for _ in range(6):
            row = dice.choice(movable)
            if pods.node[row] >= 0:
                run.cluster.remove(row, waits=True)
            else:
                run.cluster.place(row, ClusterRow(dice.randrange(nodes)))
            for other in pending_rows:
                if pods.node[other] < 0:
                    assert facts_of(run.decide(other)) == facts_of(fresh_decision(run, other)), (
                        case["name"],
                        pods.key(other),
                    )
        run.cluster.revert(0)
        np.testing.assert_array_equal(pods.node, before)
        for other in pending_rows:
            assert facts_of(run.decide(other)) == facts_of(fresh_decision(run, other)), case["name"]


def test_pods_share_a_decision_with_nominated_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a pod is decided alone")

    monkeypatch.setattr(EquivalenceClass, "_alone", fail)
    high = builders.pod("high", spec={"priority": 9}, status={"nominatedNodeName": "a"})
    snapshot = Snapshot.from_objects([builders.node("a"), builders.node("b"), high, *map(builders.pod, ("p", "q"))])
    run = Run(scheduler_of(None, resolve(), snapshot))
    assert [run.decide(run.cluster.pods.rows[f"default/{name}"]).outcome for name in "pq"] == [Outcome.SCHEDULED] * 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_added_node_is_reverted(family: str) -> None:
    for case in recorded_cases(family, 3):
        snapshot = Snapshot.from_objects(case["objects"])
        release = resolve(feature_gates=case.get("featureGates"))
        run = Run(scheduler_of(case["config"], release, snapshot))
        cluster = run.cluster
        row = cluster.pods.rows[case["pod"]]
        before = facts_of(run.decide(row))
        mark = cluster.mark()
        for template in snapshot.cluster.nodes[:2]:
            metadata = replace(template.metadata, name=f"more-{template.name}")
            added_row = cluster.add_node(replace(template, metadata=metadata))
            assert facts_of(run.decide(row)) == facts_of(fresh_decision(run, row)), case["name"]
            cycle = run.cycle(row)
            fits = cycle.nodes is not None and cycle.filter is not None and cycle.nodes.names_where(cycle.filter.passed)
            if fits and metadata.name in fits and cluster.pods.node[row] < 0:
                cluster.place(row, added_row)
        cluster.revert(mark)
        assert facts_of(run.decide(row)) == before == facts_of(fresh_decision(run, row)), case["name"]
        for template in snapshot.cluster.nodes[:1]:
            cluster.place(row, cluster.add_node(replace(template, metadata=replace(template.metadata, name="unseen"))))
        cluster.revert(mark)
        assert facts_of(run.decide(row)) == before, (case["name"], "no decision was made while the node existed")


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_changed_node_is_reverted(family: str) -> None:
    for case in recorded_cases(family, 4):
        snapshot = Snapshot.from_objects(case["objects"])
        release = resolve(feature_gates=case.get("featureGates"))
        run = Run(scheduler_of(case["config"], release, snapshot))
        cluster = run.cluster
        row = cluster.pods.rows[case["pod"]]
        before = facts_of(run.decide(row))
        for number, node in enumerate(snapshot.cluster.nodes[:3]):
            metadata = replace(node.metadata, labels={"kubernetes.io/hostname": "else", "disk": "tape"})
            for changed_node in (set_cordon(node, unschedulable=True), replace(node, metadata=metadata)):
                cluster.replace_node(ClusterRow(number), changed_node)
                assert facts_of(run.decide(row)) == facts_of(fresh_decision(run, row)), case["name"]
        cluster.revert(0)
        assert facts_of(run.decide(row)) == before == facts_of(fresh_decision(run, row)), case["name"]


def random_templates(dice: random.Random) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Return labels and specs of pods, some of which plugins read as equal."""

    def spread(app: str, key: str, action: str) -> dict[str, Any]:
        selector = {"matchLabels": {"app": app}}
        return {"topologyKey": key, "maxSkew": 2, "whenUnsatisfiable": action, "labelSelector": selector}

    def affinity_term(app: str, key: str) -> dict[str, Any]:
        return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}

    items = []
    for number in range(8):
        app = f"app-{number}"
        requests = {"cpu": dice.choice(("250m", "500m")), "memory": dice.choice(("1Gi", "2Gi"))}
        image = dice.choice(("held", "unknown"))
        spec: dict[str, Any] = {"containers": [{"name": app, "image": image, "resources": {"requests": requests}}]}
        rules: list[dict[str, Any]] = [
            {},
            {},
            {"topologySpreadConstraints": [spread(app, "zone", "DoNotSchedule")]},
            {"topologySpreadConstraints": [spread(app, "zone", "ScheduleAnyway")]},
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term(app, "host")]}
                }
            },
            {
                "affinity": {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 50, "podAffinityTerm": affinity_term("app-0", "zone")}
                        ]
                    }
                }
            },
        ]
        items.append(({"app": app}, spec | dice.choice(rules)))
    return items


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
def test_alternating_templates_are_decided_as_on_a_fresh_cluster(seed: int) -> None:
    dice = random.Random(seed)
    images = [{"names": ["held:latest"], "sizeBytes": 500_000_000}]
    objects: list[Any] = []
    for number in range(7):
        labels = {"host": f"node-{number}", "zone": "abc"[number % 3]}
        allocatable = {"cpu": dice.choice("24"), "memory": "12Gi", "pods": dice.choice(("4", "9"))}
        taints = ["spot:PreferNoSchedule"] if dice.randrange(3) == 0 else []
        item: Any = builders.node(f"node-{number}", labels=labels, taints=taints, allocatable=allocatable)
        item["status"]["images"] = images if dice.randrange(2) else []
        objects.append(item)
    templates = random_templates(dice)
    order = [template for template in dice.choices(templates, k=12) for _ in range(dice.choice((1, 3, 5)))]
    objects += [
        builders.pod(f"pod-{number:02}", labels=template[0], spec=template[1]) for number, template in enumerate(order)
    ]
    run = Run(scheduler_of(None, resolve(), Snapshot.from_objects(objects)))
    rows = list(range(len(order)))
    for number, row in enumerate(rows):
        decision = run.decide(row)
        assert facts_of(decision) == facts_of(fresh_decision(run, row)), run.cluster.pods.key(row)
        if decision.outcome is Outcome.SCHEDULED:
            run.bind(row, ClusterRow(int(dice.choice(decision.best))), next(iter(rows[number + 1 :]), None))
        if dice.randrange(6) == 0 and len(bound_rows := np.flatnonzero(run.cluster.pods.node >= 0)):
            run.cluster.remove(int(dice.choice(bound_rows)))
        if dice.randrange(12) == 0:
            node = ClusterRow(dice.randrange(7))
            changed_node = set_cordon(run.snapshot.cluster.nodes[node], unschedulable=dice.randrange(2) == 0)
            run.cluster.replace_node(node, changed_node)


PACKED: dict[str, object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                {"name": "PodTopologySpread", "args": {"defaultingType": "List"}},
            ],
        }
    ],
}
NO_AFFINITY: dict[str, object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "NodeAffinity"}, {"name": "InterPodAffinity"}]}}}],
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", FAMILIES)
def test_pods_that_share_columns_differ_as_alone(family: str) -> None:
    for number, case in enumerate(recorded_cases(family, 3)):
        snapshot = Snapshot.from_objects(case["objects"])
        release = resolve(feature_gates=case.get("featureGates"))
        before = Setup.of("before", case["config"], release)
        config, other = ((PACKED, release), (NO_AFFINITY, release), (None, resolve("1.30")))[number]
        pair = Pair(snapshot, before, Setup.of("after", config, other))
        rows, _ = pair.choose(pending=True, running=True)
        entries = dict(difference for part in pair.parts(rows) for difference in pair.differences(part))
        assert sorted(entries) == sorted(rows)
        for row in rows:
            pod = snapshot.pods[row]
            assert entries[row] == pair.difference(pod) == compare(*pair.stories(pod)), (case["name"], pod.key)


@pytest.mark.parametrize("plugin", PLUGINS_WITH_EXTREMES)
def test_normalized_scores_depend_on_the_raw_score_and_the_extremes(plugin: type[ScorePlugin]) -> None:
    case = recorded_cases("mixed", 1)[0]
    snapshot = Snapshot.from_objects(case["objects"])
    scheduler = scheduler_of(None, resolve(), snapshot)
    assert isinstance(scheduler, FrameworkScheduler)
    plugin_result = plugin(None, scheduler.framework(scheduler.config.profiles[0]))
    pod, nodes = snapshot.pods[0], scheduler.nodes
    dice = random.Random(plugin.name)
    for _ in range(100):
        raw = np.array([dice.randrange(-50, 500) for _ in range(dice.randrange(1, 9))], dtype=np.int64)
        if plugin.name != "InterPodAffinity":
            raw = abs(raw)
        scores = plugin_result.normalize_score(CycleState(), pod, nodes, raw)
        for score, result in zip(raw.tolist(), scores.tolist(), strict=True):
            values = np.array([score, raw.min(), raw.max()], dtype=np.int64)
            assert plugin_result.normalize_score(CycleState(), pod, nodes, values)[0] == result


def test_the_scheduler_follows_its_cluster_after_a_new_pod_is_deleted() -> None:
    """A pod without a creationTimestamp that is deleted here is no finished pod of the input, which some versions count
    on its node."""
    cpu = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    items = [builders.pod(name, containers=cpu) for name in "abcd"]
    host = builders.node("n", allocatable={"cpu": "2", "pods": "9"})
    run = Run(scheduler_of(None, resolve("1.34"), Snapshot.from_objects([host, items[0]])))
    run.bind(0, run.decide(0).choice[0])
    run.delete(0)
    more = Snapshot.from_objects([host, *items[1:]]).pods
    outcomes = []
    for row in run.cluster.add_pods([more[row] for row in range(len(more))]):
        outcomes.append(run.decide(row).outcome)
        if outcomes[-1] is Outcome.SCHEDULED:
            run.bind(row, ClusterRow(0))
    assert outcomes == [Outcome.SCHEDULED, Outcome.SCHEDULED, Outcome.UNSCHEDULABLE]
    assert run.scheduler.snapshot is run.cluster.snapshot
