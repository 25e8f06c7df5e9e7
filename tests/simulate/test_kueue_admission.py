"""Kueue and kube-scheduler together: created pods, their order, and their nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import kschedx
from kschedx.inquiry.simulation import Simulation
from kschedx.simulate.simulator import KueueResult
from tests.builders import node, pod
from tests.kueue.objects import flavor, local, queue, quota, snapshot, workload

Json = dict[str, Any]
GATED: Json = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def owned(item: Json, name: str, kind: str = "Job") -> Json:
    api = "v1" if kind == "Pod" else "batch/v1"
    owner = {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}


def requests(cpu: str) -> list[Json]:
    return [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]


def job(name: str, *, suspend: bool = True) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"suspend": suspend, "template": template},
    }


def nodes(*cpus: str, **labels: str) -> list[Json]:
    prefix = "-".join(labels.values()) or "n"
    items = []
    for number, cpu in enumerate(cpus):
        name = f"{prefix}{number}"
        allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
        item: Json = node(name, labels={"kubernetes.io/hostname": name, **labels}, allocatable=allocatable)
        items.append(item | {"status": item["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}})
    return items


def run(*objects: Json, changes: tuple[Json, ...] = ()) -> Simulation:
    return kschedx.simulate(snapshot(*objects), changes=changes, namespace="ml")


def decided(simulation: Simulation) -> KueueResult:
    assert simulation.kueue is not None
    return simulation.kueue


def by_job(simulation: Simulation) -> Counter[tuple[str, str]]:
    """Return the number of pods by Job and node."""
    result: Counter[tuple[str, str]] = Counter()
    for item in simulation.workloads:
        for name, number in item.nodes.items():
            result[item.workload.name, name] += number
    return result


def test_pods_of_an_admitted_job_run_on_nodes_of_its_flavor() -> None:
    result = run(
        flavor("spot", nodeLabels={"pool": "spot"}, tolerations=[{"key": "spot", "operator": "Exists"}]),
        queue("q", quota("spot", "4")),
        local("q"),
        *nodes("8", pool="spot"),
        *nodes("8", pool="other"),
        job("train"),
        owned(workload("w", cpu="1", count=3), "train"),
    )
    assert by_job(result) == {("train", "spot0"): 3}
    assert decided(result) == KueueResult(admitted=("ml/w",), evicted={}, pending={}, refused={})
    assert result.is_done


def test_the_workload_that_kueue_admits_first_gets_the_room() -> None:
    """The younger Job has the higher priority in Kueue; for kube-scheduler, both have priority 0."""
    result = run(
        queue("q", quota("f", "8")),
        local("q"),
        *nodes("2"),
        owned(workload("old", cpu="2", minute=1), "old"),
        owned(workload("urgent", cpu="2", minute=2, priority=9), "urgent"),
    )
    assert decided(result).admitted == ("ml/urgent", "ml/old")
    assert by_job(result) == {("urgent", "n0"): 1}
    assert len(result.pending) == 1
    assert not result.is_done


def test_the_workload_of_a_deleted_job_frees_its_quota() -> None:
    first, later = owned(workload("w", cpu="2", reserved_flavor="f"), "train"), owned(workload("v", cpu="2"), "next")
    objects = (queue("q", quota("f", "2")), local("q"), *nodes("8"), job("train", suspend=False), job("next"))
    assert decided(run(*objects, first, later)).admitted == ()
    deleted = run(*objects, first, later, changes=({"delete": "job/train"},))
    assert decided(deleted).admitted == ("ml/v",)


@pytest.mark.parametrize(
    ("change", "pods", "pending"),
    [
        ({"scale": "job/train=3"}, 3, []),
        ({"set": "job/train:spec.parallelism=4"}, 4, []),
        ({"scale": "job/train=5"}, 0, ["ml/job-train"]),
        ({"scale": "job/train=2"}, 0, None),
        ({"set": "job/train:spec.backoffLimit=9"}, 0, None),
    ],
)
def test_an_admitted_job_of_another_size_is_admitted_again(change: Json, pods: int, pending: list[str] | None) -> None:
    """Its pods are deleted and their quota is free before that. `pending` is None if Kueue has nothing to do."""
    train = job("train", suspend=False)
    train["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    train["spec"] |= {"parallelism": 2, "completions": 9}
    train["spec"]["template"]["spec"]["containers"] = requests("1")
    running = [owned(pod(f"train-{n}", namespace="ml", on="n0", containers=requests("1")), "train") for n in range(2)]
    own = owned(workload("w", cpu="1", count=2, reserved_flavor="f"), "train")
    result = run(queue("q", quota("f", "4")), local("q"), *nodes("8"), train, *running, own, changes=(change,))
    assert by_job(result) == ({("train", "n0"): pods} if pods else {})
    assert [*decided(result).pending] == (pending or [])
    assert (result.after.pods.node >= 0).sum() == (2 if pending is None else pods)
    assert any(effect.undone for effect in result.effects) == (pending is not None)


def test_kueue_removes_only_the_gate_of_admitted_pods() -> None:
    result = run(
        queue("q", quota("f", "2")),
        local("q"),
        *nodes("8"),
        pod("a", namespace="ml", containers=requests("2"), **GATED),
        pod("b", namespace="ml", containers=requests("2"), **GATED),
        owned(workload("wa", cpu="2", minute=1), "a", "Pod"),
        owned(workload("wb", cpu="2", minute=2), "b", "Pod"),
    )
    assert result.placed == {"ml/a": "n0"}
    assert result.gated == ("ml/b",)
    assert [*decided(result).pending] == ["ml/wb"]


def test_pods_of_a_preempted_workload_are_deleted_before_its_preemptor_starts() -> None:
    running = owned(pod("low-x", namespace="ml", on="n0", containers=requests("4")), "low")
    result = run(
        queue("q", quota("f", "4"), preemption={"withinClusterQueue": "LowerPriority"}),
        local("q"),
        *nodes("4"),
        running,
        job("low", suspend=False),
        owned(workload("wl", cpu="4", reserved_flavor="f"), "low"),
        owned(workload("wh", cpu="4", priority=5, minute=1), "high"),
    )
    assert by_job(result) == {("high", "n0"): 1}
    assert [*decided(result).evicted] == [*decided(result).pending] == ["ml/wl"]
    assert "ml/low-x" not in result.after.pods.rows


def test_a_job_that_its_user_resumes_is_suspended_again() -> None:
    objects = (queue("q", quota("f", "1")), local("q"), *nodes("4"), job("a"), owned(workload("w", cpu="2"), "a"))
    result = run(*objects, changes=({"set": "job/a:spec.suspend=false"},))
    assert not result.placed
    assert not result.after.pods.names
    assert [*decided(result).pending] == ["ml/w"]


def test_partial_admission_creates_as_many_pods_as_kueue_admits() -> None:
    result = run(
        queue("q", quota("f", "3")), local("q"), *nodes("8"), owned(workload("w", count=5, minimum=2), "train")
    )
    assert by_job(result) == {("train", "n0"): 3}


def test_pods_go_to_the_topology_domains_of_their_workload() -> None:
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    wanted = owned(workload("w", cpu="1", count=4), "train")
    wanted["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    result = run(
        flavor("f", nodeLabels={"pool": "p"}, topologyName="t"),
        topology,
        queue("q", quota("f", "8")),
        local("q"),
        *[item for rack in ("r1", "r2") for item in nodes("2", "2", pool="p", rack=rack)],
        wanted,
    )
    assert len(result.placed) == 4
    racks = {name[:4] for name in result.placed.values()}
    assert len(racks) == 1


def test_the_final_cluster_has_the_decisions_of_kueue() -> None:
    objects = (queue("q", quota("f", "2")), local("q"), *nodes("8"), job("a"), owned(workload("w", cpu="2"), "a"))
    first = run(*objects)
    again = kschedx.simulate(first.after, namespace="ml")
    assert decided(again) == KueueResult(admitted=(), evicted={}, pending={}, refused={})
    assert not again.placed


def test_changes_count_for_admission() -> None:
    objects = (queue("q", quota("f", "2")), local("q"), *nodes("8"), owned(workload("w", cpu="4"), "a"))
    assert not run(*objects).placed
    more = {"set": "clusterqueue/q:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=4"}
    assert len(run(*objects, changes=(more,)).placed) == 1
