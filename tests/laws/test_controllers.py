"""Laws of controllers: `why FILE` agrees with `simulate --apply FILE`, and no change loses or invents a pod."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest

from kschedx.controllers.daemon_set import home_node
from kschedx.controllers.workloads import Owners, Workload
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import simulate
from kschedx.simulate.changes import parse_changes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at
from tests.command import kschedx
from tests.laws.rollouts import (
    KINDS,
    NAMESPACE,
    daemons_in_progress,
    deployment_in_progress,
    ordinals_in_progress,
    quota,
    random_nodes,
    workload,
)


def simulation_of(objects: list[Manifest], *options: dict[str, object]) -> Simulation:
    snapshot = Snapshot.from_objects(objects)
    changes = parse_changes(options, lambda path: [])
    return simulate(snapshot, Setup.of_cluster(snapshot), changes, namespace=NAMESPACE)


def running_cluster(objects: list[Manifest], manifest: Manifest) -> list[Manifest]:
    """Return the objects with the applied manifest and its pods, all of which run and are ready."""
    after = simulation_of(objects, {"apply": [manifest]}).after
    pods = [after.pods[row] for row in range(len(after.pods)) if after.pods.node[row] >= 0]
    stored: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod.metadata.name,
                "namespace": NAMESPACE,
                "labels": dict(pod.metadata.labels),
                "ownerReferences": [
                    {
                        "apiVersion": owner_reference.api_version,
                        "kind": owner_reference.kind,
                        "name": owner_reference.name,
                        "uid": "u",
                        "controller": True,
                    }
                    for owner_reference in pod.metadata.owner_references
                ],
            },
            "spec": {**json.loads(json.dumps(at(manifest, "spec.template.spec"))), "nodeName": pod.spec.node_name},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for pod in pods
    ]
    return [*objects, manifest, *stored]


SEEDS = [
    *range(12),
    *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, int(os.environ.get("SEEDS", "40")))),
]


@pytest.mark.parametrize("seed", [*SEEDS, 221])
def test_why_and_simulate_apply_have_the_same_exit_code(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    kind = dice.choice(KINDS)
    objects = [*random_nodes(dice), *quota(dice)]
    if dice.random() < 0.6:
        objects = running_cluster(objects, workload(dice, kind, "web"))
    changed = workload(dice, kind, "web")
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (tmp_path / "app.json").write_text(json.dumps(changed))
    where = ("-s", tmp_path / "cluster.json")
    answer = kschedx("why", tmp_path / "app.json", *where)
    applied = kschedx("simulate", "--apply", tmp_path / "app.json", *where)
    if at(changed, "spec").get("replicas") == 0:
        return  # `why` explains the pod that a replica would have
    assert answer.code == applied.code, f"{answer.out}{answer.err}\n---\n{applied.out}{applied.err}"


def members(snapshot: Snapshot, name: str, kind: str = "Deployment") -> set[str]:
    rows = Owners(snapshot).members(snapshot.pods, Workload(kind, NAMESPACE, name))
    return {snapshot.pods.key(row) for row in rows}


def is_waiting(snapshot: Snapshot, name: str, kind: str = "Deployment") -> bool:
    """Whether a pod of the workload is pending: it may take the room that pods of another workload leave, after which
    its own rollout continues."""
    pods = snapshot.pods
    return any(pods.node[pods.rows[key]] < 0 for key in members(snapshot, name, kind))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_change_of_a_rollout_in_progress_loses_or_invents_a_pod(seed: int) -> None:
    dice = Random(1000 + seed)
    hosts = random_nodes(dice)
    names = [str(at(host, "metadata.name")) for host in hosts]
    web = deployment_in_progress(dice, "web", names)
    objects = [*hosts, *web, *deployment_in_progress(dice, "api", names)]
    before = Snapshot.from_objects(objects)
    members_before = {name: members(before, name) for name in ("web", "api")}
    replicas = int(at(web[0], "spec.replicas"))

    unchanged = simulation_of(objects, {"scale": f"deploy/web={max(replicas, 0)}"})
    if len(members_before["web"]) >= replicas:
        assert members(unchanged.after, "web") == members_before["web"], (
            "scaling to the current replicas keeps the pods"
        )
    makes_room = is_waiting(before, "api") and not members(unchanged.after, "web") >= members_before["web"]
    assert makes_room or members(unchanged.after, "api") == members_before["api"], "no change names it"

    options: list[dict[str, object]] = [
        dice.choice(
            [
                {"scale": f"deploy/web={dice.randint(0, 5)}"},
                {"set": f"deploy/web:spec.paused={dice.choice(['true', 'false'])}"},
                {"set": f"deploy/web:spec.strategy.type={dice.choice(['Recreate', 'RollingUpdate'])}"},
                {"set": f"deploy/web:spec.template.spec.containers[main].image=web:{dice.randint(2, 3)}"},
                {"cordon": dice.choice(names)},
                {"drain": dice.choice(names)},
                {"taint": f"{dice.choice(names)}:a=b:NoExecute"},
            ]
        )
        for _ in range(dice.randint(1, 4))
    ]
    try:
        simulation = simulation_of(objects, *options)
    except InputError:
        return
    after = members(simulation.after, "web")
    stored = json.loads(simulation.after.workloads["Deployment", NAMESPACE, "web"])
    replicas_after = int(stored["spec"]["replicas"])
    rolling = stored["spec"].get("strategy", {}).get("rollingUpdate", {})
    upper_bound = max(replicas_after + _rounded_up(rolling.get("maxSurge"), replicas_after), len(members_before["web"]))
    is_changed = any("deploy/web" in str(value) for host in options for value in host.values())
    lower_bound = min(replicas_after, len(members_before["web"])) if is_changed else len(members_before["web"])
    is_recreate = stored["spec"].get("strategy", {}).get("type") == "Recreate"
    assert len(after) <= upper_bound, (options, sorted(after))
    assert is_recreate or len(after) >= lower_bound - _rounded_up(rolling.get("maxUnavailable"), replicas_after), (
        options,
        sorted(after),
    )
    assert is_waiting(before, "api") or members(simulation.after, "api") == members_before["api"], options


def _ordinals(pods: set[str]) -> set[int]:
    return {int(pod.rpartition("-")[2]) for pod in pods}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_change_of_a_stateful_set_in_progress_loses_or_invents_a_pod(seed: int) -> None:
    dice = Random(3000 + seed)
    hosts = random_nodes(dice)
    names = [str(at(host, "metadata.name")) for host in hosts]
    web = ordinals_in_progress(dice, "web", names)
    objects = [*hosts, *web, *ordinals_in_progress(dice, "api", names)]
    before = Snapshot.from_objects(objects)
    kind, replicas = "StatefulSet", int(at(web[0], "spec.replicas"))
    members_before = {name: members(before, name, kind) for name in ("web", "api")}

    unchanged = simulation_of(objects, {"apply": [json.loads(json.dumps(web[0]))]})
    if len(members_before["web"]) == replicas:
        assert members(unchanged.after, "web", kind) == members_before["web"], (
            "applying the stored manifest keeps the pods"
        )
    assert members(unchanged.after, "web", kind) >= members_before["web"]

    options: list[dict[str, object]] = [
        dice.choice(
            [
                {"scale": f"sts/web={dice.randint(0, 5)}"},
                {"set": f"sts/web:spec.template.spec.containers[main].image=web:{dice.randint(2, 3)}"},
                {"set": f"sts/web:spec.updateStrategy.type={dice.choice(['OnDelete', 'RollingUpdate'])}"},
                {"cordon": dice.choice(names)},
            ]
        )
        for _ in range(dice.randint(1, 4))
    ]
    simulation = simulation_of(objects, *options)
    after = members(simulation.after, "web", kind)
    replicas_after = int(json.loads(simulation.after.workloads[kind, NAMESPACE, "web"])["spec"]["replicas"])
    lowest = min(
        replicas_after, *(int(str(host["scale"]).rpartition("=")[2]) for host in options if "scale" in host), replicas
    )
    remaining_ordinals = {ordinal for ordinal in _ordinals(members_before["web"]) if ordinal < lowest}
    assert remaining_ordinals <= _ordinals(after), (options, sorted(after))
    upper_bound = max(replicas, *(int(str(host["scale"]).rpartition("=")[2]) for host in options if "scale" in host), 0)
    assert all(ordinal < upper_bound for ordinal in _ordinals(after)), (options, sorted(after))
    is_settled = not is_waiting(before, "api", kind)
    assert not is_settled or members(simulation.after, "api", kind) == members_before["api"], options


@pytest.mark.parametrize("seed", SEEDS)
def test_no_change_of_a_daemon_set_in_progress_loses_or_invents_a_pod(seed: int) -> None:
    dice = Random(4000 + seed)
    hosts = random_nodes(dice)
    names = [str(at(host, "metadata.name")) for host in hosts]
    web = daemons_in_progress(dice, "web", names)
    objects = [*hosts, *web, *daemons_in_progress(dice, "api", names)]
    before = Snapshot.from_objects(objects)
    kind = "DaemonSet"
    members_before = {name: members(before, name, kind) for name in ("web", "api")}
    unchanged = simulation_of(objects, {"apply": [json.loads(json.dumps(web[0]))]})
    if len(members_before["web"]) == len(names):
        assert members(unchanged.after, "web", kind) == members_before["web"], (
            "applying the stored manifest keeps the pods"
        )
    options: list[dict[str, object]] = [
        dice.choice(
            [
                {"set": f"ds/web:spec.template.spec.containers[main].image=web:{dice.randint(2, 3)}"},
                {"set": f"ds/web:spec.updateStrategy.type={dice.choice(['OnDelete', 'RollingUpdate'])}"},
                {"cordon": dice.choice(names)},
                {"drain": dice.choice(names)},
            ]
        )
        for _ in range(dice.randint(1, 4))
    ]
    simulation = simulation_of(objects, *options)
    pods = simulation.after.pods
    homes = [home_node(pods, pods.rows[key]) for key in members(simulation.after, "web", kind)]
    is_changed = any("ds/web" in str(value) for host in options for value in host.values())
    before_homes = {home_node(before.pods, before.pods.rows[key]) for key in members_before["web"]}
    assert before_homes <= {*homes}, options
    assert {*homes} <= ({*names} if is_changed else before_homes), options
    surge = int(at(web[0], "spec.updateStrategy.rollingUpdate.maxSurge"))
    unready = sum(
        "'status': 'False'" in str(host) for host in web[1:]
    )  # a pod that is not ready is replaced without counting against maxSurge
    assert len(homes) <= len({*homes}) + surge + unready, (options, homes)
    assert members(simulation.after, "api", kind) == members_before["api"], options


def _rounded_up(share: object, total: int) -> int:
    if share is None:
        share = "25%"
    return -(-total * int(share[:-1]) // 100) if isinstance(share, str) else int(str(share))
