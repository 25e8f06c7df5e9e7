"""Laws of a run on random clusters in which pods and nodes are added, removed, and changed, and claims are bound."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from unittest import mock

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kschedx.controllers.workloads import copy_pod, evict
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.moving import Decision, Run
from kschedx.framework.victims import Rankings, budget_coverage, budget_selector, covers, order_victims
from kschedx.inquiry.what_if import simulate
from kschedx.kube.types import Node, Taint
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.simulate import queue
from kschedx.simulate.changes import set_cordon
from kschedx.snapshot.columns import ClusterRow, ClusterRows, IntArray, each_cluster_row
from kschedx.snapshot.edits import with_pods
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from tests import builders
from tests.laws.moving_clusters import DEVICES, Dealer, facts_of
from tests.storage_builders import HOSTNAME, ZONE

RELEASES = ("1.36", "1.36", "1.36", "1.29")
GANGS = {"GenericWorkload": True, "GangScheduling": True}
NAMES = [f"node-{number}" for number in range(16)]
"""More names than a cluster has nodes; a removed node's name can be used again."""


class World:
    """A run on a random cluster."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.dealer = Dealer(dice)
        snapshot = Snapshot.from_objects(self.dealer.deal())
        version = dice.choice(RELEASES)
        gangs = version == "1.36" and dice.random() < 0.3
        release = resolve(version, feature_gates=GANGS if gangs else None)
        self.run = Run(scheduler_of(None, release, snapshot))
        self.cluster = self.run.cluster
        self.profile = self.run.scheduler.config.profiles[0]

    @property
    def pending(self) -> list[int]:
        return [row for row in self.cluster.pods.pending if not self.cluster.pods.specs[row].scheduling_gates]

    # --- moves

    def place(self) -> None:
        """Bind a pending pod to one of the best nodes, if there are any."""
        if not self.pending:
            return
        row = self.dice.choice(self.pending)
        choice = self.run.decide(row).choice
        if len(choice):
            self.run.bind(row, self.dice.choice(list(each_cluster_row(choice))))

    def force(self) -> None:
        """Place a pending pod on any node, whether it fits or not."""
        if self.pending:
            self.cluster.place(self.dice.choice(self.pending), self._node())

    def evict(self) -> None:
        running = np.flatnonzero(self.cluster.pods.node >= 0).tolist()
        if running:
            evict(self.run, self.dice.choice(running), waits=self.dice.random() < 0.7)

    def nominate(self) -> None:
        if self.pending:
            node = None if self.dice.random() < 0.3 else self._node()
            self.cluster.nominate(self.dice.choice(self.pending), node)

    def change_node(self) -> None:
        row = self._node()
        node = self.run.snapshot.cluster.nodes[row]
        labels = {**node.metadata.labels, "topology.kubernetes.io/zone": self.dice.choice("abc")}
        taints = (*node.spec.taints, Taint(key="new", effect="NoSchedule"))
        variants = (
            set_cordon(node, unschedulable=self.dice.random() < 0.5),
            replace(node, metadata=replace(node.metadata, labels=labels)),
            replace(node, spec=replace(node.spec, taints=taints)),
            replace(node, status=replace(node.status, allocatable={**node.status.allocatable, "cpu": "1"})),
        )
        self.cluster.replace_node(row, self.dice.choice(variants))

    def add_node(self) -> None:
        template = self.run.snapshot.cluster.nodes[self._node()]
        name = self.dice.choice([name for name in NAMES if name not in self.cluster.node_names])
        labels = {**template.metadata.labels, "kubernetes.io/hostname": name}
        self.cluster.add_node(replace(template, metadata=replace(template.metadata, name=name, labels=labels)))

    def remove_node(self) -> None:
        """Evict the pods of a node and remove it."""
        if len(self.cluster.node_names) == 1:
            return
        row = self._node()
        for pod in self.cluster.pods.on_node(row).tolist():
            evict(self.run, pod, waits=self.dice.random() < 0.7)
        self.cluster.remove_node(row)

    def _node(self) -> ClusterRow:
        return ClusterRow(self.dice.randrange(len(self.cluster.node_names)))

    def move(self) -> None:
        frequent: list[Callable[[], None]] = [self.place] * 4 + [self.evict] * 2
        rare: list[Callable[[], None]] = [self.force, self.nominate, self.change_node, self.add_node, self.remove_node]
        self.dice.choice(frequent + rare)()

    # --- checks

    def fresh_cycles(self) -> Iterator[tuple[int, Cycle]]:
        """Yield the cycle of every pending pod by a scheduler built on the present cluster."""
        snapshot = self.run.cluster.frozen()
        scheduler = self.run.scheduler.on(snapshot)
        for row in self.pending:
            yield row, scheduler.schedule(snapshot.pods[row], self.profile)

    def check(self) -> None:
        static = self.run.scheduler.on(self.cluster.frozen()).nodes
        assert self.run.scheduler.nodes.numbers(_names).tolist() == static.numbers(_names).tolist()
        for row, fresh in self.fresh_cycles():
            pod = self.cluster.pods.key(row)
            assert facts_of(self.run.decide(row)) == facts_of(Decision.of(fresh)), pod
            assert columns(self.run.scored_cycle(row, self.profile)) == columns(fresh), pod


def _names(node: Node, pods: PodTable, rows: IntArray) -> int:
    """Return a number that depends on the node and its pods."""
    return hash((node.spec.unschedulable, *(pods.names[row] for row in rows.tolist())))


def columns(cycle: Cycle) -> dict[str, object]:
    """Return each plugin's verdicts and scores, and the outcome."""
    result: dict[str, object] = {"outcome": cycle.outcome, "best": sorted(cycle.best)}
    if cycle.filter is not None and cycle.nodes is not None:
        result["nodes"] = cycle.nodes.rows.tolist()
        for plugin, verdicts in zip(cycle.filter.plugins, cycle.filter.verdicts, strict=True):
            reasons = [verdicts.reasons[row] for row in range(len(verdicts))]
            result[plugin] = verdicts.codes.tolist(), reasons
    if cycle.scores is not None:
        scores = cycle.scores
        result["scores"] = {name: values.tolist() for name, values in scores.normalized.items()}, scores.totals.tolist()
    return result


SEEDS = st.integers(0, 2**32)
UNSHRUNK = settings(max_examples=settings().max_examples * 3 // 5, phases=[Phase.generate])
"""No shrinking: a smaller seed gives no smaller cluster."""


@UNSHRUNK
@given(SEEDS)
def test_a_run_decides_as_a_fresh_scheduler(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(6):
        world.move()
        world.check()


def bind_replicas(run: Run, rows: list[int], dice: random.Random) -> None:
    """Bind identical replicas together, and check each one's best nodes on a cluster with those before it."""
    reference = MovingCluster(run.cluster.frozen())
    ties = list[ClusterRows]()
    ends = dice.random() < 0.5
    nodes = run.bind_identical(np.array(rows), lambda rows: dice.choice(list(each_cluster_row(rows))), ties, ends=ends)
    for row, best, node in zip(rows[: len(nodes)], ties, each_cluster_row(nodes), strict=True):
        frozen = reference.frozen()
        cycle = run.scheduler.on(frozen).schedule(frozen.pods[row])
        assert best.tolist() == Decision.of(cycle).best.tolist(), frozen.pods.key(row)
        reference.place(row, node)


@UNSHRUNK
@given(SEEDS)
def test_replicas_in_a_row_are_decided_as_each_alone(seed: int) -> None:
    world = World(random.Random(seed))
    dice, run, cluster = world.dice, world.run, world.cluster
    names = dice.choices(NAMES[len(cluster.node_names) :], k=dice.randrange(4))
    for name in dict.fromkeys(names):
        cluster.add_node(Snapshot.from_objects(list(world.dealer.node(name))).cluster.nodes[0])
    spec = world.dealer.spec()
    spec["containers"][0]["resources"]["requests"].pop(DEVICES, None)
    labels = {"app": dice.choice(["web", "db"])}
    created = Snapshot.from_objects([builders.pod(f"more-{number}", labels=labels, spec=spec) for number in range(12)])
    rows = cluster.add_pods([created.pods[row] for row in range(len(created.pods))])
    while pending_rows := [row for row in rows if row in cluster.pods.pending]:
        row, then, frozen = pending_rows[0], next(iter(pending_rows[1:]), None), cluster.frozen()
        decision, fresh = run.decide(row), run.scheduler.on(frozen).schedule(frozen.pods[row])
        assert facts_of(decision) == facts_of(Decision.of(fresh)), cluster.pods.key(row)
        if decision.outcome is not Outcome.SCHEDULED:
            break
        node = dice.choice(list(each_cluster_row(decision.choice)))
        run.bind(row, node, then)
        if dice.random() < 0.3:
            bind_replicas(run, pending_rows[1 : dice.randrange(2, 7)], dice)
        if dice.random() < 0.15:
            world.move()
    world.check()


@UNSHRUNK
@given(seed=st.integers(0, 2**32))
def test_identical_pods_in_one_step_get_the_nodes_of_single_steps(seed: int) -> None:
    dice = random.Random(seed)
    snapshot = Snapshot.from_objects(Dealer(dice).deal())
    pending_pods = [pod for row in snapshot.pods.pending if not (pod := snapshot.pods[row]).spec.scheduling_gates]
    for pod in dice.sample(pending_pods, min(2, len(pending_pods))):
        snapshot = with_pods(*copy_pod(snapshot, pod, dice.choice((5, 40))))
    setup = Setup.of_cluster(snapshot)

    def outcome(threshold: int) -> tuple[object, ...]:
        with mock.patch.object(queue, "MANY_IDENTICAL", threshold):
            result = simulate(snapshot, setup)
        nodes_before_last_step = result.cluster_before(len(result.steps) - 1).pods.node.tolist() if result.steps else []
        pods = result.run.cluster.pods.node.tolist()
        return (
            dict(result.placed),
            dict(result.messages),
            result.evictions,
            result.usage_after.total(),
            pods,
            len(nodes_before_last_step),
        )

    assert outcome(1) == outcome(10**9)


@UNSHRUNK
@given(SEEDS)
def test_preemptors_in_a_row_are_decided_as_each_alone(seed: int) -> None:
    world = World(random.Random(seed))
    dice, run, cluster = world.dice, world.run, world.cluster
    names = dice.choices(NAMES[len(cluster.node_names) :], k=dice.randrange(6))
    for name in dict.fromkeys(names):
        cluster.add_node(Snapshot.from_objects(list(world.dealer.node(name))).cluster.nodes[0])
    small, large = (
        {"requests": {"cpu": cpu}} for cpu in (dice.choice(["300m", "700m"]), dice.choice(["600m", "1500m"]))
    )
    rules, of_victims = _rules(dice), _rules(dice) if dice.random() < 0.2 else {}
    manifests = [
        *(
            builders.pod(
                f"small-{number}",
                labels={"app": dice.choice(["small", "other"])},
                spec=_spec(small, dice.choice([0, 0, 5])) | of_victims,
            )
            for number in range(20)
        ),
        *(
            builders.pod(f"large-{number}", labels={"app": "large"}, spec=_spec(large, 100) | rules)
            for number in range(12)
        ),
    ]
    created = Snapshot.from_objects(manifests)
    rows = cluster.add_pods([created.pods[row] for row in range(len(created.pods))])
    for row in rows[:20]:
        decision = run.decide(row)
        if decision.outcome is Outcome.SCHEDULED:
            run.bind(row, dice.choice(list(each_cluster_row(decision.choice))))
    for row in rows[20:]:
        while row in cluster.pods.pending:
            frozen = cluster.frozen()
            decision, fresh = run.decide(row), run.scheduler.on(frozen).schedule(frozen.pods[row])
            assert facts_of(decision) == facts_of(Decision.of(fresh)), cluster.pods.key(row)
            result = decision.post_filter
            if decision.outcome is Outcome.SCHEDULED:
                run.bind(row, dice.choice(list(each_cluster_row(decision.choice))))
            elif result is None or not result.best:
                break
            else:
                node = result.best[0] if dice.random() < 0.8 else dice.choice(result.best)
                for victim in next(candidate.victims for candidate in result.candidates if candidate.node == node):
                    evict(run, victim, waits=dice.random() < 0.5)
                run.nominate(row, node)
        if dice.random() < 0.15:
            world.move()
    world.check()


@UNSHRUNK
@given(SEEDS)
def test_rankings_follow_the_cluster(seed: int) -> None:
    world, rankings = World(random.Random(seed)), Rankings()
    for _ in range(8):
        world.move()
        nodes = world.run.scheduler.nodes
        pods, priority = nodes.pods, world.dice.choice([5, 10, 100])
        lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
        fresh = order_victims(nodes, lower, pods.node[lower], lambda rows, _: np.zeros(len(rows), dtype=np.bool_))
        ranked, on = rankings.below(nodes, priority)
        assert ranked.tolist() == fresh.pods.tolist()
        assert on.tolist() == fresh.index.tolist()


@UNSHRUNK
@given(SEEDS)
def test_budgets_are_counted_pod_by_pod(seed: int) -> None:
    dice = random.Random(seed)
    pods = [
        builders.pod(f"p{number}", namespace=dice.choice("ab"), labels=dice.choice([{}, {"app": "x"}, {"app": "y"}]))
        for number in range(dice.randint(0, 30))
    ]
    budgets: list[builders.Manifest] = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": dice.choice("abc")},
            "spec": dice.choice([{}, {"selector": {}}, {"selector": {"matchLabels": {"app": dice.choice("xy")}}}]),
            "status": {
                "disruptionsAllowed": dice.choice([-1, 0, 1, 2]),
                "disruptedPods": {f"p{dice.randint(0, 30)}": "2026-01-01T00:00:00Z"} if dice.random() < 0.4 else {},
            },
        }
        for number in range(dice.randint(0, 6))
    ]
    snapshot = Snapshot.from_objects([*pods, *budgets])
    rows = np.array(dice.sample(range(len(pods)), dice.randint(0, len(pods))), dtype=np.int64)
    nodes = np.sort(np.array([dice.randint(0, 3) for _ in rows], dtype=np.int64))
    for empty_counts in (False, True):
        exceeded = set[int]()
        for budget in snapshot.disruption_budgets:
            selector, counts = budget_selector(budget, empty_counts=empty_counts), Counter[int]()
            for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
                is_inside = snapshot.pods.namespaces[row] == budget.metadata.namespace
                is_counted = snapshot.pods.names[row] in budget.status.disrupted_pods
                if selector is None or not is_inside or is_counted or not covers(selector, snapshot.pods.labels[row]):
                    continue
                counts[node] += 1
                exceeded |= {row} if counts[node] > (budget.status.disruptions_allowed or 0) else set()
        violating = budget_coverage(snapshot, empty_counts=empty_counts).is_exceeded(rows, nodes)
        assert set(rows[violating].tolist()) == exceeded


def _rules(dice: random.Random) -> builders.Manifest:
    """Return a rule that reads the pods of other nodes, sometimes the pods that preemption evicts."""
    selector = {"matchLabels": {"app": dice.choice(["large", "large", "small"])}}
    key = dice.choice([ZONE, HOSTNAME])
    spread = {"maxSkew": dice.choice([1, 2]), "topologyKey": key, "labelSelector": selector}
    term = {"topologyKey": key, "labelSelector": selector}
    return dice.choice([
        {},
        {"topologySpreadConstraints": [spread | {"whenUnsatisfiable": "DoNotSchedule"}]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
    ])  # fmt: skip


def _spec(resources: Mapping[str, object], priority: int) -> builders.Manifest:
    return {"containers": [{"name": "main", "image": "main", "resources": resources}], "priority": priority}


@UNSHRUNK
@given(SEEDS)
def test_a_reverted_cluster_equals_its_mark(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(world.dice.randrange(3)):
        world.move()
    cluster = world.cluster
    mark, before, verdicts_before = cluster.mark(), state(world), [columns(cycle) for _, cycle in world.fresh_cycles()]
    for _ in range(4):
        world.move()
        for row in world.pending[:2]:
            world.run.decide(row)
    cluster.revert(mark)
    assert state(world) == before
    assert [columns(world.run.scored_cycle(row, world.profile)) for row in world.pending] == verdicts_before
    world.check()


def state(world: World) -> dict[str, object]:
    """Return every column of the cluster, and the values derived from them."""
    snapshot, pods, nodes = world.run.snapshot, world.cluster.pods, world.run.scheduler.nodes
    storage = snapshot.storage
    claims = [storage.claims[key] for key in sorted(storage.claims)]
    return {
        "places": pods.node.tolist(),
        "names": [pods.node_names[row] for row in range(len(pods))],
        "nominated": list(pods.nominated_node_names),
        "started": [list(pods.start_times), pods.started.tolist()],
        "waiting": pods.pending,
        "on nodes": [pods.on_node(row).tolist() for row in each_cluster_row(nodes.rows)],
        "nodes": [*snapshot.cluster.nodes],
        "labels": [snapshot.cluster.label("disk")[row] for row in range(len(nodes))],
        "requested": nodes.requested.tolist(),
        "defaulted": nodes.nonzero_requested.tolist(),
        "counts": nodes.pod_count.tolist(),
        "claims": claims,
        "volumes": list(storage.volumes.items()),
        "candidates": [storage.candidates.of(claim) for claim in claims],
        "devices": snapshot.devices,
    }


@UNSHRUNK
@given(SEEDS)
def test_a_drained_node_with_its_pods_back_equals_the_original(seed: int) -> None:
    world = World(random.Random(seed))
    cluster, run = world.cluster, world.run
    for _ in range(world.dice.randrange(3)):
        world.move()
    row = ClusterRow(world.dice.randrange(len(cluster.node_names)))
    node, node_pods = run.snapshot.cluster.nodes[row], cluster.pods.on_node(row).tolist()
    before, verdicts_before = state(world), [columns(cycle) for _, cycle in world.fresh_cycles()]
    cluster.replace_node(row, set_cordon(node, unschedulable=True))
    for pod in node_pods:
        cluster.remove(pod, waits=True)
        world.check()
    cluster.replace_node(row, node)
    for pod in reversed(node_pods):
        cluster.place(pod, row)
    after = state(world)
    assert after | {"started": None} == before | {"started": None}, "placed pods have no start time"
    assert [columns(run.scored_cycle(pod, world.profile)) for pod in world.pending] == verdicts_before
