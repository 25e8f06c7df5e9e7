"""What follows from one decision to the next, beyond what is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.types import Pod
from kschedx.simulate import queue, unknown_facts
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, pod
from tests.simulate.clusters import deployment, nodes, shop

FULL = ["node-1"] * 4


def full_cluster() -> Snapshot:
    """One node full of batch, another that is half empty, and a pod of high priority that needs half of the first."""
    urgent = pod("urgent", namespace="shop", priority=9, containers=[asking("4")], nodeSelector={"zone": "a"})
    item, two = nodes(("8", "6"))
    at(item, "metadata.labels")["zone"] = "a"
    return Snapshot.from_objects([item, two, *deployment("batch", "2", FULL), urgent])


def asking(cpu: str) -> dict[str, object]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def test_victims_come_back_and_find_another_node() -> None:
    simulation = kschedx.simulate(full_cluster())
    assert dict(simulation.evictions) == {"shop/batch-2": "shop/urgent", "shop/batch-3": "shop/urgent"}
    assert simulation.placed == {"shop/urgent": "node-1", "shop/batch-2": "node-2", "shop/batch-3": "node-2"}
    assert not simulation.pending


def test_nobody_makes_them_anew_without_recreate() -> None:
    simulation = kschedx.simulate(full_cluster(), recreate=False)
    assert simulation.placed == {"shop/urgent": "node-1"}
    assert not simulation.pending


def test_every_steps_explanation_is_that_of_why() -> None:
    simulation = kschedx.simulate(full_cluster())
    result = simulation.to_dict()["steps"]
    assert isinstance(result, list)
    for number, step in enumerate(result):
        explanation = simulation.explain(number)
        assert (explanation.outcome.value, explanation.message) == (step["outcome"], step.get("message", ""))
        assert sorted(at(explanation.to_dict(), "bestNodes")) == step.get("bestNodes", [])


def test_one_by_one_is_as_rebuilding_the_snapshot_each_time() -> None:
    snapshot = Snapshot.from_objects(shop())
    simulation = kschedx.simulate(snapshot, changes=[{"scale": "deploy/web=14"}], namespace="shop")
    for number, step in enumerate(simulation.steps):
        assert step.decision is not None
        names = simulation.run.cluster.node_names
        assert simulation.explain(number).best_nodes == tuple(names[row] for row in step.decision.best)


def test_ties_by_lot_are_the_same_every_time() -> None:
    def placed(seed: int) -> dict[str, str]:
        return dict(kschedx.simulate(Snapshot.from_objects(shop()), seed=seed).placed)

    assert placed(3) == placed(3)
    assert len({tuple(sorted(placed(seed).items())) for seed in range(12)}) > 1


@pytest.mark.parametrize("gone", ["schedulingGates", "schedulerName"])
def test_pods_that_no_scheduler_takes_are_told_apart(gone: str) -> None:
    more = {"schedulingGates": [{"name": "wait"}]} if gone == "schedulingGates" else {"schedulerName": "mine"}
    simulation = kschedx.simulate(Snapshot.from_objects([*nodes(), pod("held", **more)]))
    assert (simulation.gated, simulation.of_other_schedulers) == (
        (("default/held",), ()) if gone == "schedulingGates" else ((), ("default/held",))
    )
    assert not simulation.placed
    assert not simulation.pending


def test_the_cluster_afterwards_is_where_everything_went() -> None:
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
    """Within a single round, web finds no db yet; the second would place it."""
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
def test_the_library_refuses_what_it_cannot_use(options: dict[str, Any], expected: str) -> None:
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
def test_fit_refuses_numbers_that_are_none(replicas: Any, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        kschedx.fit(full_cluster(), "shop/urgent", replicas=replicas)
    assert expected in str(raised.value)


def test_a_pod_may_depend_on_what_a_dump_lacks_beside_others_that_plugins_read_alike(
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
