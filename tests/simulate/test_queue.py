"""Sequences of decisions beyond the recorded ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kschedx
from kschedx.controllers.states import NoScheduler
from kschedx.errors import InputError
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.inquiry import simulation as simulations
from kschedx.kube.types import Pod
from kschedx.simulate import queue, unknown_facts
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, pod
from tests.simulate.clusters import deployment, nodes, shop

FULL = ["node-1"] * 4


def full_cluster() -> Snapshot:
    """Return a node full of batch pods, a half empty one, and a pod of high priority that needs half of the first."""
    urgent = pod("urgent", namespace="shop", priority=9, containers=[asking("4")], nodeSelector={"zone": "a"})
    item, two = nodes(("8", "6"))
    at(item, "metadata.labels")["zone"] = "a"
    return Snapshot.from_objects([item, two, *deployment("batch", "2", FULL), urgent])


def asking(cpu: str) -> dict[str, object]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def test_victims_are_recreated_on_another_node() -> None:
    simulation = kschedx.simulate(full_cluster())
    assert dict(simulation.evictions) == {"shop/batch-2": "shop/urgent", "shop/batch-3": "shop/urgent"}
    assert simulation.placed == {"shop/urgent": "node-1", "shop/batch-2": "node-2", "shop/batch-3": "node-2"}
    assert not simulation.pending


def test_victims_are_not_recreated_without_the_option() -> None:
    simulation = kschedx.simulate(full_cluster(), recreate=False)
    assert simulation.placed == {"shop/urgent": "node-1"}
    assert not simulation.pending


def test_every_step_has_the_explanation_of_why() -> None:
    simulation = kschedx.simulate(full_cluster())
    result = simulation.to_dict()["steps"]
    assert isinstance(result, list)
    for number, step in enumerate(result):
        explanation = simulation.explain(number)
        assert (explanation.outcome.value, explanation.message) == (step["outcome"], step.get("message", ""))
        assert sorted(at(explanation.to_dict(), "bestNodes")) == step.get("bestNodes", [])


def test_a_queue_equals_decisions_on_rebuilt_snapshots() -> None:
    snapshot = Snapshot.from_objects(shop())
    simulation = kschedx.simulate(snapshot, changes=[{"scale": "deploy/web=14"}], namespace="shop")
    for number, step in enumerate(simulation.steps):
        assert step.decision is not None
        names = simulation.run.cluster.node_names
        assert simulation.explain(number).best_nodes == tuple(names[row] for row in step.decision.best)


def test_random_ties_are_reproducible() -> None:
    def placed(seed: int) -> dict[str, str]:
        return dict(kschedx.simulate(Snapshot.from_objects(shop()), seed=seed).placed)

    assert placed(3) == placed(3)
    assert len({tuple(sorted(placed(seed).items())) for seed in range(12)}) > 1


@pytest.mark.parametrize("gone", ["schedulingGates", "schedulerName"])
def test_pods_without_a_scheduler_are_separate(gone: str) -> None:
    more = {"schedulingGates": [{"name": "wait"}]} if gone == "schedulingGates" else {"schedulerName": "mine"}
    simulation = kschedx.simulate(Snapshot.from_objects([*nodes(), pod("held", **more)]))
    assert (simulation.gated, simulation.of_other_schedulers) == (
        (("default/held",), ()) if gone == "schedulingGates" else ((), ("default/held",))
    )
    assert not simulation.placed
    assert not simulation.pending


@pytest.mark.parametrize("number", [1, 51])
def test_every_unknown_scheduler_has_a_report(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "_MOST_OF_OTHERS", 5)
    first = [pod(f"a{index}", schedulerName="first", nodeSelector={"x": str(index)}) for index in range(number)]
    result = kschedx.simulate(Snapshot.from_objects([*nodes(), *first, pod("z", schedulerName="second")]))
    assert {state.lifecycle.scheduler for state in result.states if isinstance(state.lifecycle, NoScheduler)} == {
        "first", "second"
    }  # fmt: skip


def test_the_final_cluster_has_every_placement() -> None:
    simulation = kschedx.simulate(Snapshot.from_objects(shop()))
    after = simulation.after
    for key, node in simulation.placed.items():
        row = after.pods.rows[key]
        assert after.cluster.names[int(after.pods.node[row])] == node == after.pods.node_names[row]
    assert not after.pods.pending
    used = simulation.usage_after.total().requested["cpu"] - simulation.usage_before.total().requested["cpu"]
    assert used == 3000
    assert int(np.count_nonzero(after.pods.node >= 0)) == 14


def sorted_by(plugin: str) -> Manifest:
    sort = {"disabled": [{"name": "*"}], "enabled": [{"name": plugin}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"queueSort": sort}}],
    }


GROUPED = {"scheduling.x-k8s.io/pod-group": "train"}
GROUP: Manifest = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "shop", "creationTimestamp": "2026-10-01T00:00:00Z"},
    "spec": {"minMember": 1},
}


def born(name: str, second: int, container: dict[str, object], **metadata: object) -> Manifest:
    stamp = f"2026-11-20T09:00:{second:02}Z"
    return pod(name, namespace="shop", metadata={"creationTimestamp": stamp, **metadata}, containers=[container])


@pytest.mark.parametrize(
    ("plugin", "order"),
    [
        ("PrioritySort", ["first", "guaranteed", "grouped"]),
        ("QOSSort", ["guaranteed", "first", "grouped"]),
        ("Coscheduling", ["grouped", "first", "guaranteed"]),
    ],
)
def test_the_queue_is_in_the_order_of_its_plugin(plugin: str, order: list[str]) -> None:
    resources = {"cpu": "1", "memory": "1Gi"}
    pods = [
        born("first", 1, asking("1")),
        born("guaranteed", 2, {"name": "main", "resources": {"requests": resources, "limits": resources}}),
        born("grouped", 3, asking("1"), labels=GROUPED),
    ]
    simulation = kschedx.simulate(Snapshot.from_objects([*nodes(("1",)), GROUP, *pods]), config=sorted_by(plugin))
    assert [step.key.removeprefix("shop/") for step in simulation.steps][:3] == order
    assert simulation.placed == {f"shop/{order[0]}": "node-1"}


def test_a_queue_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first round, web has no db pod beside it; the second round would place it."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    follows = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = pod("web", priority=9, containers=[asking("1")], affinity=follows)
    snapshot = Snapshot.from_objects([*nodes(), web, pod("db", labels={"app": "db"}, containers=[asking("1")])])
    assert not kschedx.simulate(snapshot).pending
    monkeypatch.setattr(queue, "MOST_ROUNDS", 1)
    with pytest.raises(InputError, match=r"pods are still created and deleted after 1 rounds \(waiting: default/web\)"):
        kschedx.simulate(snapshot)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"seed": "7"}, "seed: expected a whole number, found a str"),
        ({"seed": 1.5}, "seed: expected a whole number, found a float"),
        ({"seed": -1}, "seed: expected a number of at least 0"),
        ({"recreate": "no"}, "recreate: expected true or false, found a str"),
        ({"recreate": None}, "recreate: expected true or false, found None"),
        ({"changes": "scale"}, "changes: expected a list of mappings"),
        ({"namespace": 3}, "namespace: expected a string"),
    ],
)
def test_the_library_refuses_invalid_arguments(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        kschedx.simulate(full_cluster(), **options)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (1_000_001, "replicas: found 1,000,001, at most 1,000,000 are tried"),
        ("3", "replicas: expected a whole number, found a str"),
        (-1, "replicas: expected a number of at least 0"),
    ],
)
def test_fit_refuses_invalid_numbers(replicas: Any, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        kschedx.fit(full_cluster(), "shop/urgent", replicas=replicas)
    assert expected in str(raised.value)


def test_an_undecided_pod_beside_pods_that_plugins_read_equally(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions: list[str] = []

    def decided(scheduler: Scheduler, pod: Pod, profile: Profile) -> Cycle:
        questions.append(pod.metadata.name)
        return scheduler.schedule(pod, profile)

    monkeypatch.setattr(unknown_facts, "may_be_open", lambda snapshot, pod: "open" in pod.metadata.labels)
    monkeypatch.setattr(unknown_facts, "cycle_of", decided)
    waiting = [pod("a-0"), pod("a-1"), pod("a-2", labels={"open": "yes"}), pod("a-3")]
    kschedx.simulate(Snapshot.from_objects([*nodes(("8",)), *waiting]))
    assert questions == ["a-2"]
