"""Fixes for a drain that PodDisruptionBudgets block."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kschedx.explain.setup import Setup
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.stalled_drain import drain_fixes, preview_drain
from kschedx.inquiry.what_if import drain_nodes
from kschedx.simulate.changes import SimulatedChange
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx
from tests.simulate.clusters import deployment, nodes

HERE = ["node-1", "node-1", "node-2"]
CPUS = [{"name": "main", "resources": {"requests": {"cpu": "7"}}}]


def pdb(name: str = "web", app: str = "web", **spec: object) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def unready(manifest: Manifest) -> Manifest:
    status = {**at(manifest, "status"), "conditions": [{"type": "Ready", "status": "False"}]}
    return {**manifest, "status": status}


def fixes(objects: Sequence[Manifest], *names: str) -> list[str]:
    snapshot = Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot)

    def drained(more: Sequence[SimulatedChange] = ()) -> Simulation:
        return drain_nodes(snapshot, setup, names or ("node-1",), more, options=SimulationOptions())

    before = snapshot.pods.node.tolist()
    result = drain_fixes(drained(), drained)
    assert snapshot.pods.node.tolist() == before
    return [line for item in result for line in (f"{item.title} · {item.seen}", *item.commands)]


def test_evicted_pods_that_fit_no_other_node_need_a_node_first() -> None:
    full = [pod(f"full-{number}", on=f"node-{number}", containers=CPUS) for number in (2, 3, 5)]
    cluster = [*nodes(("8", "8", "8", "1", "8")), *full, *deployment("web", "2", ["node-1"] * 2)]
    first, *others = fixes([*cluster, pdb(maxUnavailable=0)])
    assert first == "add a node like node-1, raise maxUnavailable of PDB shop/web from 0 to 1 · the node can be drained"
    assert others == ["""kubectl patch pdb web -n shop --type merge -p '{"spec":{"maxUnavailable":1}}'"""]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"minAvailable": 3},
            [
                "scale shop/deploy/web to 4 · the node can be drained",
                "kubectl scale deploy/web -n shop --replicas=4",
                "lower minAvailable of PDB shop/web from 3 to 2 · the node can be drained",
                """kubectl patch pdb web -n shop --type merge -p '{"spec":{"minAvailable":2}}'""",
            ],
        ),
        (
            {"maxUnavailable": 0},
            [
                "raise maxUnavailable of PDB shop/web from 0 to 1 · the node can be drained",
                """kubectl patch pdb web -n shop --type merge -p '{"spec":{"maxUnavailable":1}}'""",
            ],
        ),
        (
            {"minAvailable": "100%"},
            [
                "replace minAvailable 100% of PDB shop/web with maxUnavailable 1 · the node can be drained",
                """kubectl patch pdb web -n shop --type merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}'""",
            ],
        ),
        ({"minAvailable": 1}, []),
    ],
)
def test_a_budget_that_allows_no_eviction(spec: dict[str, Any], expected: list[str]) -> None:
    assert fixes([*nodes(), *deployment("web", "1", HERE), pdb(**spec)]) == expected


@pytest.mark.parametrize(("most", "fields"), [(5, "minReplicas"), (3, "minReplicas and maxReplicas")])
def test_an_autoscaler_would_undo_more_replicas(most: int, fields: str) -> None:
    hpa: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": most},
    }
    first = fixes([*nodes(), *deployment("web", "1", HERE), pdb(minAvailable=3), hpa])[0]
    assert first == f"raise {fields} of HorizontalPodAutoscaler shop/web to 4 · the node can be drained"


def test_room_is_added_if_no_step_about_the_budget_suffices() -> None:
    """One of them allows the eviction, but the pod then has no other node."""
    cluster = [*nodes(("8", "1", "1", "1", "1")), *deployment("web", "5", ["node-1"]), pdb(minAvailable=1)]
    title = "add a node like node-1, lower minAvailable of PDB shop/web from 1 to 0 · the node can be drained"
    assert fixes(cluster)[0] == title


def test_a_pod_that_is_being_deleted_is_awaited() -> None:
    owned_by: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "web"}
    metadata: Manifest = {"namespace": "shop", "ownerReferences": [{**owned_by, "controller": True}]}
    stateful_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CPUS}},
        },
    }
    leaving = {**metadata, "deletionTimestamp": "2026-11-20T08:00:00Z"}
    pods = [
        pod(f"web-{number}", labels={"app": "web"}, on=f"node-{number + 1}", metadata=each, containers=CPUS)
        for number, each in enumerate((metadata, leaving))
    ]
    texts = fixes([*nodes(), stateful_set, *pods, pdb(maxUnavailable=1)])
    assert texts[0] == "wait until shop/web-1 has terminated · the node can be drained"


def test_pods_that_are_not_ready_count() -> None:
    *rest, first, second, third = deployment("web", "1", HERE)
    texts = fixes([*nodes(), *rest, first, second, unready(third), pdb(minAvailable=3)])
    assert texts[::2] == [
        "scale shop/deploy/web to 5 · the node can be drained",
        "lower minAvailable of PDB shop/web from 3 to 1 · the node can be drained",
    ]


def test_more_replicas_of_pods_that_never_become_ready_are_no_fix() -> None:
    *rest, first, second, third = deployment("web", "1", HERE)
    texts = fixes([*nodes(), *rest, *map(unready, (first, second, third)), pdb(minAvailable=1)])
    assert texts[0] == "set unhealthyPodEvictionPolicy of PDB shop/web to AlwaysAllow · the node can be drained"
    assert not [line for line in texts if "scale" in line]


def test_a_budget_that_requires_more_pods_than_exist() -> None:
    behind = pdb(minAvailable=0) | {"status": {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3}}
    texts = fixes([*nodes(), *deployment("web", "1", HERE), behind])
    assert not [line for line in texts if "PDB" in line]


def test_more_replicas_without_a_node_are_no_fix() -> None:
    full = [*nodes(("2", "1")), *deployment("web", "1", HERE), pdb(minAvailable=3)]
    assert [line for line in fixes(full) if "scale" in line] == []


def test_every_budget_must_allow_the_eviction() -> None:
    both = [*deployment("web", "1", HERE), *deployment("api", "1", HERE)]
    texts = fixes([*nodes(), *both, pdb(minAvailable=3), pdb("api", "api", maxUnavailable=0)], "node-1", "node-2")
    seen = "raise maxUnavailable of PDB shop/api from 0 to 1 · both nodes can be drained"
    assert [line for line in texts if not line.startswith("kubectl")] == [
        f"scale shop/deploy/web to 4, {seen}",
        f"lower minAvailable of PDB shop/web from 3 to 2, {seen}",
    ]


def test_a_pod_with_two_budgets_is_never_evicted() -> None:
    two = [*deployment("web", "1", HERE), pdb(maxUnavailable=1), pdb("also", maxUnavailable=2)]
    assert fixes([*nodes(), *two])[:2] == [
        "delete PDB shop/web, since another PDB covers the same pod · the node can be drained",
        "kubectl delete pdb web -n shop",
    ]


def test_another_pod_that_is_not_ready_is_repaired_first() -> None:
    *rest, first, second, third = deployment("web", "1", HERE)
    texts = fixes([*nodes(), *rest, first, second, unready(third), pdb(maxUnavailable=1)])
    name = at(third, "metadata")["name"]
    assert texts[:2] == [
        f"first repair shop/{name}, which is not ready · the node can be drained",
        f"kschedx why pod/{name} -n shop",
    ]


def test_a_lost_node_with_a_pod_of_the_budget_is_repaired_first() -> None:
    *rest, first, second, third = deployment("web", "1", HERE)
    broken = unready({**third, "spec": {**at(third, "spec"), "nodeName": "lost"}})
    lost = node("lost", taints=["node.kubernetes.io/unreachable:NoSchedule"])
    texts = fixes([*nodes(), lost, *rest, first, second, broken, pdb(maxUnavailable=1)])
    name = at(third, "metadata")["name"]
    assert texts[:2] == [
        f"first repair lost, where shop/{name} is not ready · the node can be drained",
        "kschedx why node/lost",
    ]


def test_a_pending_pod_that_uses_up_a_budget_is_scheduled_first() -> None:
    *rest, first, second, third = deployment("web", "1", HERE)
    pending = unready({**third, "spec": {**at(third, "spec"), "nodeName": ""}})
    name = at(third, "metadata")["name"]
    texts = fixes([*nodes(), *rest, first, second, pending, pdb(maxUnavailable=1)])
    assert texts[0] == f"first find a node for shop/{name}, which is pending · the node can be drained"


def test_a_finalizer_that_keeps_a_pod_is_removed() -> None:
    *others, web = deployment("web", "1", ["node-1"])
    gone = {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["example.com/hold"]}
    web = {**web, "metadata": {**at(web, "metadata"), **gone}}
    title, command = fixes([*nodes(), *others, web])
    name = at(web, "metadata")["name"]
    repair = (
        f"repair the controller of finalizer example.com/hold of shop/{name}, or remove the finalizer if it is gone"
    )
    assert title == f"{repair} · the node can be drained"
    assert command.startswith(f"kubectl patch pod {name} -n shop --type merge")


def test_pods_with_the_same_finalizer_share_a_fix_that_a_lost_node_needs_as_well() -> None:
    gone = {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["example.com/hold"]}
    *others, first, second = deployment("web", "1", ["node-1", "node-1"])
    going = [{**each, "metadata": {**at(each, "metadata"), **gone}} for each in (first, second)]
    machines = nodes()
    names = [str(at(each, "metadata")["name"]) for each in going]
    repair = f"repair the controller of finalizer example.com/hold of shop/{names[0]} and shop/{names[1]}"
    title, *commands = fixes([*machines, *others, *going])
    assert title == f"{repair}, or remove the finalizer if it is gone · the node can be drained"
    assert [command.split()[3] for command in commands] == names
    at(machines[0], "status")["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    title, *commands = fixes([*machines, *others, *going])
    assert title.startswith(repair)
    taint = "taint node-1 out of service if it is shut down, else repair its kubelet · the node can be drained"
    assert title.endswith(f", {taint}")
    assert len(commands) == len(names) + 1


def test_a_repair_comes_before_a_larger_budget_though_the_pod_then_lacks_room() -> None:
    *others, last = deployment("web", "1", ["node-1", "node-2", None])
    texts = fixes([*nodes(["1"] * 3), *others, unready(last), pdb(maxUnavailable=1)])
    titles = [line.removesuffix(" · ") for line in texts if not line.startswith("k")]
    name = at(last, "metadata")["name"]
    assert titles == [
        f"first find a node for shop/{name}, which is pending",
        "raise maxUnavailable of PDB shop/web from 1 to 2 · the node can be drained",
    ]


@pytest.mark.parametrize(("instances", "says"), [(2, "wait until CloudNativePG has"), (1, "set enablePDB to false in")])
def test_cloud_native_pg_moves_its_primary(instances: int, says: str) -> None:
    owner = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "pg", "uid": "u", "controller": True}
    *_, primary, replica = deployment("pg", "1", ["node-1", "node-2"])
    for each in (primary, replica, budget := pdb("pg-primary", "pg", minAvailable=instances)):
        at(each, "metadata")["ownerReferences"] = [owner]
    at(primary, "metadata")["labels"]["cnpg.io/instanceRole"] = "primary"
    (text, *_) = fixes([*nodes(), budget, *(primary, replica)[:instances]])
    assert text.startswith(f"{says}"), text


def test_zalandos_operator_moves_its_primary() -> None:
    *_, primary = deployment("pg", "1", ["node-1"])
    at(primary, "metadata")["labels"]["spilo-role"] = "master"
    budget = pdb("pg", minAvailable=1)
    at(budget, "spec")["selector"] = {"matchLabels": {"spilo-role": "master"}}
    wait = "wait until Zalando's operator has moved the primary: the cordon starts that · the node can be drained"
    assert fixes([*nodes(), primary, budget]) == [wait]


@pytest.mark.parametrize(
    ("kind", "wait"),
    [
        ("VirtualMachineInstance", "KubeVirt has live-migrated shop/db: the eviction starts that"),
        ("InstanceManager", "Longhorn releases shop/db: its volumes are detached, with healthy replicas elsewhere"),
    ],
)
def test_a_budget_that_an_operator_removes_is_not_changed(kind: str, wait: str) -> None:
    *_, protected = deployment("db", "1", ["node-1"])
    owner = {"apiVersion": "x/v1", "kind": kind, "name": "db", "uid": "u", "controller": True}
    protected = {**protected, "metadata": {**at(protected, "metadata"), "name": "db", "ownerReferences": [owner]}}
    assert fixes([*nodes(), protected, pdb("db", "db", minAvailable=1)]) == [
        f"wait until {wait} · the node can be drained"
    ]


@pytest.mark.parametrize(
    ("ready", "first"), [("True", ""), ("False", "first repair shop/osd-1, which is not ready, then ")]
)
def test_rook_waits_for_the_storage_daemons_of_other_hosts(ready: str, first: str) -> None:
    *_, here, there = deployment("osd", "1", ["node-1", "node-2"])
    owner = {"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster", "name": "rook", "uid": "u", "controller": True}
    at(here, "metadata")["labels"]["host"] = "node-1"
    at(there, "metadata")["name"] = "osd-1"
    there["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    budget = pdb("osd-node-1", "osd", maxUnavailable=0)
    at(budget, "metadata")["ownerReferences"] = [owner]
    at(budget, "spec")["selector"] = {"matchLabels": {"host": "node-1"}}
    (text, *_) = fixes([*nodes(), here, there, budget])
    assert text.startswith(f"{first}wait until Rook releases shop/")


def test_a_vm_that_cannot_be_live_migrated_is_stopped() -> None:
    kind = "VirtualMachineInstance"
    *_, protected = deployment("db", "1", ["node-1"])
    owner = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "db", "uid": "u", "controller": True}
    at(protected, "metadata")["ownerReferences"] = [owner]
    condition = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}
    machine: Manifest = {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": "db", "namespace": "shop"}}
    machine |= {"spec": {"domain": {}}, "status": {"conditions": [condition]}}
    assert fixes([*nodes(), machine, protected, pdb("db", "db", minAvailable=1)]) == [
        "stop VM db: KubeVirt cannot live-migrate it (DisksNotLiveMigratable) · the node can be drained",
        "virtctl stop db -n shop",
    ]


@pytest.mark.parametrize(
    ("webhook", "first"),
    [
        ("strimzi-drain-cleaner.strimzi.io", "wait until Strimzi has moved shop/db: its Drain Cleaner starts that"),
        ("another.example.com", "raise maxUnavailable of PDB shop/db from 0 to 1, in Kafka my, which manages the PDB"),
    ],
)
def test_strimzi_moves_the_pods_that_its_drain_cleaner_keeps(webhook: str, first: str) -> None:
    *_, broker = deployment("db", "1", ["node-1"])
    owner = {"apiVersion": "core.strimzi.io/v1beta2", "kind": "StrimziPodSet", "name": "my", "controller": True}
    broker = {**broker, "metadata": {**at(broker, "metadata"), "name": "db", "ownerReferences": [owner]}}
    budget = pdb("db", "db", maxUnavailable=0)
    at(budget, "metadata")["ownerReferences"] = [{"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "name": "my"}]
    configuration: Manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [{"name": webhook}],
    }
    assert fixes([*nodes(), broker, budget, configuration])[0].startswith(first)


@pytest.mark.parametrize("controls", [True, False])
def test_a_budget_of_an_operator_is_changed_there(*, controls: bool) -> None:
    owned = pdb(maxUnavailable=0)
    at(owned, "metadata")["ownerReferences"] = [
        {"apiVersion": "x/v1", "kind": "Cluster", "name": "pg", "controller": controls}
    ]
    there = "in Cluster pg, which manages the PDB and undoes other changes of it"
    assert fixes([*nodes(), *deployment("web", "1", HERE), owned]) == [
        f"raise maxUnavailable of PDB shop/web from 0 to 1, {there} · the node can be drained"
    ]


@pytest.mark.parametrize(("version", "blocked"), [("policy/v1", True), ("policy/v1beta1", False)])
def test_an_empty_selector_selects_all_pods_only_since_v1(version: str, blocked: bool) -> None:
    everything = {**pdb(maxUnavailable=0), "apiVersion": version}
    at(everything, "spec")["selector"] = {}
    assert bool(fixes([*nodes(), *deployment("web", "1", HERE), everything])) == blocked


def test_pods_without_a_controller_keep_their_nodes_while_a_fix_is_tried() -> None:
    """kubectl refuses the drain without --force; the fixes are those of the drain with it."""
    members = [pod(f"guard-{at}", namespace="shop", labels={"app": "web"}, on=f"node-{at}") for at in (1, 2, 3)]
    members = [{**member, "status": {"phase": "Running"}} for member in members]
    broken = unready(members[1])
    snapshot = Snapshot.from_objects([*nodes(), members[0], broken, members[2], pdb(minAvailable=2)])
    preview = preview_drain(snapshot, Setup.of_cluster(snapshot), ["node-1"], options=SimulationOptions())
    assert [fix.title for fix in preview.remedies.fixes] == [
        "first repair shop/guard-2, which is not ready",
        "lower minAvailable of PDB shop/web from 2 to 1",
    ]
    assert {fix.seen for fix in preview.remedies.fixes} == {"with these flags the node can be drained"}


@pytest.mark.parametrize("bare", [(), ("node-1",)], ids=["", "that kubectl refuses"])
@pytest.mark.parametrize("later", [(), ("--delete", "shop/pdb/web")], ids=["", "before the budget is gone"])
@pytest.mark.parametrize("names", [("node-1",), ("node-1", "node-2")])
def test_a_simulated_drain_has_the_fixes_of_the_drain(
    tmp_path: Path, names: Sequence[str], later: Sequence[str], bare: Sequence[str]
) -> None:
    cluster = [*nodes(), *deployment("web", "1", HERE), pdb(minAvailable=3), *(pod("bare", on=name) for name in bare)]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": cluster}))
    drained = kschedx("drain", *names, "--together", "-s", path, "-o", "json")
    changes = (option for name in names for option in ("--drain", name))
    simulated = kschedx("simulate", *changes, *later, "-s", path, "-o", "json")
    assert json.loads(simulated.out)["budgetFixes"] == json.loads(drained.out)["budgetFixes"]
    screen = kschedx("simulate", "--drain", "node-1", "-s", path).out
    assert "scale shop/deploy/web to 4" in screen
    assert ("with --force" in screen) == bool(bare)
