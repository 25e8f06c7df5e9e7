"""Rollouts of a changed template: controllers replace pods as far as new ones are scheduled."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping

import pytest

from kschedx.controllers.states import NotChanged
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import simulate
from kschedx.render.lifecycle import rollout_text
from kschedx.simulate.changes import parse_changes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import changed
from tests.simulate.clusters import deployment, nodes
from tests.storage_builders import claim, in_term, volume

CPU = "spec.template.spec.containers[main].resources.requests.cpu"


def simulated(objects: list[Manifest], *written: Mapping[str, object]) -> Simulation:
    snapshot = Snapshot.from_objects(objects)
    return simulate(snapshot, Setup.of_cluster(snapshot), parse_changes(written, lambda path: []), namespace="shop")


def asking(cpu: str) -> Manifest:
    return {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}


def web(count: int, strategy: Manifest, *, on: str = "node-1") -> list[Manifest]:
    made = deployment("web", "1", [on] * count)
    at(made[0], "spec").update(strategy)
    return made


def stateful(places: list[str | None], **spec: object) -> list[Manifest]:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}
    metadata = {"name": "db", "namespace": "shop", "uid": "db"}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [asking("1")]}}
    kept = {"replicas": len(places), "selector": {"matchLabels": {"app": "db"}}, "template": template, **spec}
    made: list[Manifest] = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": kept}]
    for number, place in enumerate(places):
        own = {"ownerReferences": [owner], "labels": {"app": "db"}, "namespace": "shop"}
        made.append(pod(f"db-{number}", on=place, metadata=own, containers=[asking("1")]))
    return made


def daemons(on: list[str], **strategy: object) -> list[Manifest]:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": True}
    metadata = {"name": "agent", "namespace": "shop", "uid": "agent"}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [asking("1")]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    rolling = {"updateStrategy": {"rollingUpdate": strategy}} if strategy else {}
    made: list[Manifest] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {**spec, **rolling}}
    ]
    for name in on:
        own = {"ownerReferences": [owner], "labels": {"app": "agent"}, "namespace": "shop"}
        made.append(pod(f"agent-{name}", on=name, metadata=own, containers=[asking("1")]))
    return made


def left(simulation: Simulation, prefix: str = "") -> dict[str, str]:
    """Return the pods in the end, with their nodes."""
    pods = simulation.after.pods
    result = {pods.names[row]: pods.node_names[row] for row in range(len(pods)) if pods.names[row].startswith(prefix)}
    return dict(sorted(result.items()))


def cpus(simulation: Simulation) -> dict[str, str]:
    pods = simulation.after.pods
    return {
        pods.names[row]: str(pods.specs[row].containers[0].resources.requests["cpu"])
        for row in range(len(pods))
        if pods.node[row] >= 0
    }


@pytest.mark.parametrize(
    ("strategy", "cpu", "replaced", "waiting", "running"),
    [
        ({}, "1500m", 4, 0, 4),
        ({"maxSurge": 1, "maxUnavailable": 0}, "5", 0, 1, 4),
        ({"maxSurge": 0, "maxUnavailable": 1}, "9", 1, 1, 3),
        ({"maxSurge": 0, "maxUnavailable": 2}, "4", 3, 2, 2),
        ({"maxSurge": 2, "maxUnavailable": 2}, "9", 2, 4, 2),
        (None, "9", 4, 4, 0),
    ],
    ids=["it goes through", "no room beside", "one is lost", "half of it", "both bounds", "Recreate"],
)
def test_a_deployment(strategy: Manifest | None, cpu: str, replaced: int, waiting: int, running: int) -> None:
    """Return a Deployment with four pods of 1 cpu on a node of 8 cpu."""
    written: Manifest = {"type": "Recreate"} if strategy is None else {"rollingUpdate": strategy}
    objects = [*nodes(("8",)), *web(4, {"strategy": written})]
    result = simulated(objects, {"set": f"deploy/web:{CPU}={cpu}"})
    [rolled] = result.rolled_out
    assert (rolled.old, rolled.replaced, rolled.waiting) == (4, replaced, waiting)
    assert rolled.is_done is (waiting == 0)
    assert sum(bool(node) for node in left(result).values()) == running
    assert len(result.pending) == waiting


def test_new_replicas_get_the_older_template_first() -> None:
    """The controller scales a Deployment before it rolls its template out, even if one change has both."""
    objects = [*nodes(("8",)), *web(1, {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}})]
    written = copy.deepcopy(objects[1])
    at(written, "spec")["replicas"] = 3
    at(written, "spec.template.spec")["containers"] = [asking("9")]
    result = simulated(objects, {"apply": [written]})
    assert [*cpus(result).values()] == ["1", "1", "1"]
    assert len(result.pending) == 1


@pytest.mark.parametrize(
    ("spec", "cpu", "expected"),
    [
        ({}, "3", {"db-0": "3", "db-1": "3", "db-2": "3"}),
        ({"updateStrategy": {"rollingUpdate": {"partition": 2}}}, "3", {"db-0": "1", "db-1": "1", "db-2": "3"}),
        ({"updateStrategy": {"type": "OnDelete"}}, "3", {"db-0": "1", "db-1": "1", "db-2": "1"}),
        ({}, "9", {"db-0": "1", "db-1": "1"}),
        ({"replicas": 2}, "3", {"db-0": "3", "db-1": "3"}),
        ({"replicas": 4}, "2", {"db-0": "2", "db-1": "2", "db-2": "2", "db-3": "2"}),
    ],
    ids=["down to the first", "partition", "OnDelete", "the last finds no node", "fewer", "more"],
)
def test_a_stateful_set(spec: Manifest, cpu: str, expected: dict[str, str]) -> None:
    """Return a StatefulSet with a pod on each of three nodes of 4 cpu."""
    before = stateful(["node-1", "node-2", "node-3"])
    [after, *_] = stateful(["node-1", "node-2", "node-3"], **spec)
    at(after, "spec.template.spec")["containers"] = [asking(cpu)]
    result = simulated([*nodes(("4", "4", "4")), *before], {"apply": [after]})
    assert dict(sorted(cpus(result).items())) == expected
    assert not [name for name in left(result) if "~" in name]


def test_pods_of_a_stateful_set_are_replaced_in_order() -> None:
    result = simulated([*nodes(("4", "4", "4")), *stateful(["node-1", "node-2", "node-3"])], {"set": f"sts/db:{CPU}=2"})
    assert [step.key for step in result.steps] == ["shop/db-2", "shop/db-1", "shop/db-0"]
    assert [*result.placed] == ["shop/db-2", "shop/db-1", "shop/db-0"]
    for number, step in enumerate(result.steps):
        assert step.decision is not None
        texts = result.explain(number)
        assert texts.cycle.pod.key == step.key
        assert texts.best_nodes == tuple(step.names(step.decision.best))


@pytest.mark.parametrize(("policy", "replaced"), [("OrderedReady", 0), ("Parallel", 2)])
def test_a_broken_pod_of_a_stateful_set_is_not_replaced_in_order(policy: str, replaced: int) -> None:
    """db-1 requests 9 cpu and is pending: Kubernetes' documentation describes this as a forced rollback."""
    made = stateful(["node-1", None], podManagementPolicy=policy)
    at(made[2], "spec")["containers"] = [asking("9")]
    at(made[0], "spec.template.spec")["containers"] = [asking("9")]
    result = simulated([*nodes(("4",)), *made], {"set": f"sts/db:{CPU}=2"})
    [rolled] = result.rolled_out
    assert (rolled.old, rolled.replaced) == (2, replaced)
    assert result.pending == (("shop/db-1",) if not replaced else ())
    if not replaced:
        assert "shop/db-1 is not ready; delete it first" in rollout_text(rolled)


def test_a_rollout_that_waits_for_a_pod_on_a_lost_node_says_what_to_do_with_the_node() -> None:
    made = stateful(["node-1", "node-2"])
    unready = {"conditions": [{"type": "Ready", "status": "False"}], "phase": "Running"}
    made[2]["status"] = unready
    ready, lost = nodes(("4", "4"))
    lost = changed(lost, "status.conditions", [{"type": "Ready", "status": "Unknown"}])
    [rolled] = simulated([ready, lost, *made], {"set": f"sts/db:{CPU}=2"}).rolled_out
    waits = "shop/db-1 is not ready; repair node-2, or delete the node if its machine is gone"
    assert waits in rollout_text(rolled)


@pytest.mark.parametrize(
    ("strategy", "cpu", "replaced", "waiting"),
    [
        ({}, "2", 3, 0),
        ({}, "5", 1, 1),
        ({"maxUnavailable": 2}, "5", 2, 2),
        ({"maxUnavailable": "100%"}, "5", 3, 3),
        ({"maxSurge": 1, "maxUnavailable": 0}, "2", 3, 0),
        ({"maxSurge": 1, "maxUnavailable": 0}, "4", 0, 1),
    ],
    ids=["one by one", "it stops", "two at a time", "all", "beside", "no room beside"],
)
def test_a_daemon_set(strategy: Manifest, cpu: str, replaced: int, waiting: int) -> None:
    """Return a DaemonSet with a pod of 1 cpu on each of three nodes of 4 cpu."""
    objects = [*nodes(("4", "4", "4")), *daemons(["node-1", "node-2", "node-3"], **strategy)]
    result = simulated(objects, {"set": f"ds/agent:{CPU}={cpu}"})
    [rolled] = result.rolled_out
    assert (rolled.old, rolled.replaced, rolled.waiting) == (3, replaced, waiting)
    running = sorted(filter(None, left(result, "agent").values()))
    assert len(running) == len({*running}) == 3 - (waiting if "maxSurge" not in strategy else 0)


def test_a_daemon_set_that_selects_other_nodes() -> None:
    """Pods on nodes that no longer match are deleted at once, and pods on new nodes are created."""
    objects = [*nodes(("4", "4", "4")), *daemons(["node-1", "node-2"])]
    selector = '{"kubernetes.io/hostname":"node-3"}'
    result = simulated(objects, {"set": f"ds/agent:spec.template.spec.nodeSelector={selector}"})
    assert [*left(result, "agent").values()] == ["node-3"]
    assert [effect.gone for effect in result.effects] == [("shop/agent-node-1", "shop/agent-node-2")]


@pytest.mark.parametrize(
    ("objects", "target", "replaced", "waiting"),
    [
        (web(3, {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}), "deploy/web", 3, 0),
        (web(8, {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}), "deploy/web", 0, 1),
        (web(8, {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}), "deploy/web", 8, 0),
        (stateful(["node-1", "node-1"]), "sts/db", 2, 0),
        (daemons(["node-1"]), "ds/agent", 1, 0),
    ],
    ids=["room for the surge", "no room for it", "one fewer", "StatefulSet", "DaemonSet"],
)
def test_a_restart_replaces_every_pod(objects: list[Manifest], target: str, replaced: int, waiting: int) -> None:
    """As `kubectl rollout restart` does, on a node of 8 cpu; each pod has 1."""
    result = simulated([*nodes(("8",)), *objects], {"restart": target})
    [rolled] = result.rolled_out
    assert (rolled.replaced, rolled.waiting) == (replaced, waiting)


def test_a_paused_deployment_is_not_restarted() -> None:
    with pytest.raises(InputError, match="deploy/web is paused"):
        simulated([*nodes(("8",)), *web(2, {"paused": True})], {"restart": "deploy/web"})


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"paused": True}, "its rollout is paused: its pods keep the previous template"),
        ({}, ""),
    ],
)
def test_a_paused_deployment_keeps_its_pods(change: Manifest, kept: str) -> None:
    result = simulated([*nodes(("8",)), *web(2, change)], {"set": f"deploy/web:{CPU}=2"})
    assert [cpu for name, cpu in cpus(result).items() if name.startswith("web")] == (["1", "1"] if kept else ["2", "2"])
    assert kept in rollout_text(result.rolled_out[0])


def test_a_resumed_deployment_rolls_out_its_changed_template() -> None:
    first, *others = web(2, {"paused": True})
    first = changed(first, "spec.template.spec.containers", [asking("2")])
    result = simulated([*nodes(("8",)), first, *others], {"set": "deploy/web:spec.paused=false"})
    assert [rolled.replaced for rolled in result.rolled_out] == [2]
    assert [cpu for name, cpu in cpus(result).items() if name.startswith("web")] == ["2", "2"]


def half_rolled_out() -> list[Manifest]:
    """Return a Deployment whose first new pod fits on no node, because two old pods fill them."""
    made = deployment("web", "3", ["node-1", "node-2", None])
    at(made[0], "spec").update({"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}})
    old = copy.deepcopy(made[1])
    at(old, "metadata").update({"name": "web-old", "uid": "web-old"})
    at(old, "spec.template.spec.containers")[0]["image"] = "web:0"
    for item in made[2:4]:
        at(item, "metadata.ownerReferences")[0].update({"name": "web-old", "uid": "web-old"})
    return [*nodes(["4", "4"]), old, *made]


def apart_from_each_other() -> list[Manifest]:
    """Return a rollout whose new pod may not share a node with an old one, which are on all nodes."""
    made = half_rolled_out()
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for manifest in made[2:]:
        path = "spec" if manifest["kind"] == "Pod" else "spec.template.spec"
        at(manifest, path)["affinity"] = affinity
    return made


def test_a_deleted_pod_makes_room_with_which_the_rollout_continues() -> None:
    """The new pod gets the node, so the replacement of the old one is deleted, and the next new one is created."""
    result = simulated(apart_from_each_other(), {"delete": "pod/web-0"})
    [rolled] = result.rolled_out
    assert (rolled.old, rolled.replaced, rolled.waiting) == (2, 1, 1)
    assert result.placed == {"shop/web-2": "node-1"}
    assert len(result.pending) == 1
    assert result.pending != ("shop/web-0",)


def waiting_in_order() -> list[Manifest]:
    """Return a StatefulSet without its second pod, because the first one fits on no node."""
    return [*nodes(["500m"]), *stateful([None, None])[:-1]]


@pytest.mark.parametrize(
    ("objects", "placed", "replaced"),
    [(half_rolled_out, ["web"] * 2, [2]), (waiting_in_order, ["db"] * 2, [])],
    ids=["a rollout", "OrderedReady"],
)
def test_controllers_continue_after_a_pod_is_scheduled(
    objects: Callable[[], list[Manifest]], placed: list[str], replaced: list[int]
) -> None:
    spare = node("node-9", allocatable={"cpu": "4", "memory": "16Gi", "pods": "20"}, unschedulable=True)
    assert len(simulated([*objects(), spare]).pending) == 1
    done = simulated([*objects(), spare], {"uncordon": "node-9"})
    assert [name.partition("/")[2].partition("-")[0] for name in done.placed] == placed
    assert (len(done.pending), [item.replaced for item in done.rolled_out]) == (0, replaced)


def test_a_rollout_ends_before_the_next_change() -> None:
    objects = [*nodes(("8", "8")), *web(2, {})]
    result = simulated(
        objects, {"set": f"deploy/web:{CPU}=2"}, {"set": f"deploy/web:{CPU}=3"}, {"scale": "deploy/web=3"}
    )
    assert [cpu for name, cpu in cpus(result).items() if name.startswith("web")] == ["3", "3", "3"]
    assert [item.replaced for item in result.rolled_out] == [2, 2]
    assert len(result.placed) == 3


def test_the_template_of_a_job_cannot_be_changed() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [asking("1")]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": "shop"}}
    result = simulated([*nodes(), {**job, "spec": {"template": template}}], {"set": f"job/once:{CPU}=2"})
    (state,) = (item.lifecycle for item in result.states)
    assert isinstance(state, NotChanged)
    assert (state.subject, "spec.template: Invalid value" in state.message) == ("shop/job/once", True)


@pytest.mark.parametrize("stamp", [None, "2026-06-01T08:00:00Z"], ids=["running", "terminating"])
@pytest.mark.parametrize(("taint", "is_kept"), [("unreachable:NoExecute", True), ("out-of-service:NoExecute", False)])
def test_recreate_waits_for_pods_of_a_lost_node(stamp: str | None, taint: str, *, is_kept: bool) -> None:
    lost = node("node-1", taints=["node.kubernetes.io/unreachable:NoSchedule", f"node.kubernetes.io/{taint}"])
    made = web(1, {"strategy": {"type": "Recreate"}})
    at(made[-1], "metadata").update({"deletionTimestamp": stamp} if stamp else {})
    simulation = simulated([lost, *nodes()[1:], *made], {"set": f"deploy/web:{CPU}=2"})
    assert [*simulation.placed.values()] == ([] if is_kept else ["node-2"])
    if is_kept:
        waits = "0 of 1 pod replaced, no kubelet confirms the deletion of shop/web-"
        assert waits in rollout_text(simulation.rolled_out[0])
    assert simulation.overall is (Outcome.UNSCHEDULABLE if is_kept else Outcome.SCHEDULED)
    assert str(simulation).startswith("✗ the rollout of shop/deploy/web stalls\n") is is_kept


def test_a_rollout_whose_first_pod_is_refused_is_the_headline() -> None:
    change = {"set": "deploy/web:spec.template.spec.priorityClassName=missing"}
    simulation = simulated([*nodes(), *web(2, {})], change)
    assert str(simulation).startswith("✗ the rollout of shop/deploy/web stalls\n")


def quota(cpu: str) -> Manifest:
    hard = {"requests.cpu": cpu}
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"hard": hard}, "status": {"hard": hard, "used": {"requests.cpu": "2"}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "changes"),
    [
        ({}, [{"restart": "deploy/web"}]),
        ({}, [{"restart": "deploy/web"}, {"scale": "deploy/web=3"}]),
        ({}, [{"set": f"deploy/web:{CPU}=2"}]),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, [{"set": f"deploy/web:{CPU}=2"}]),
    ],
)
def test_a_rollout_that_a_quota_refuses_has_the_fix_with_which_it_completes(
    strategy: Manifest, changes: list[Mapping[str, object]]
) -> None:
    objects = [*nodes(("16",)), *web(2, strategy)]
    refused = simulated([*objects, quota("2")], *changes)
    fix = re.search(r"fix +raise requests.cpu from 2 to (\d+) in ResourceQuota team", str(refused))
    assert fix is not None, str(refused)
    assert "undecided" not in str(refused)
    assert refused.overall is Outcome.UNSCHEDULABLE
    assert simulated([*objects, quota(fix[1])], *changes).overall is Outcome.SCHEDULED


def test_the_screen_has_max_surge_and_where_the_rollout_stalls() -> None:
    stuck = simulated(
        [*nodes(("8",)), *web(4, {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}})],
        {"set": f"deploy/web:{CPU}=5"},
    )
    assert rollout_text(stuck.rolled_out[0]) == (
        "rollout of shop/deploy/web stalls: 0 of 4 pods replaced,"
        " 1 new pod stays pending (maxSurge 1, maxUnavailable 0)"
    )
    done = simulated([*nodes(("4", "4")), *stateful(["node-1", "node-2"])], {"set": f"sts/db:{CPU}=2"})
    assert rollout_text(done.rolled_out[0]) == (
        "rollout of shop/sts/db completes: 2 pods replaced (from the highest ordinal, 1 at a time)"
    )


def test_a_template_without_defaults_shows_only_real_changes() -> None:
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    made = web(2, {}, on="node-1")
    template = at(made[0], "spec.template.spec")
    template["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}]
    changed = {"set": "deploy/web:spec.template.spec.topologySpreadConstraints[0].nodeTaintsPolicy=Honor"}
    [rolled] = simulated([*nodes(), *made], changed).rolled_out
    assert (rolled.old, rolled.replaced) == (2, 2)


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        (
            [{"set": "deploy/web:spec.strategy.rollingUpdate.maxUnavailable=1"}],
            "completes: 2 pods replaced (maxSurge 1, maxUnavailable 1)",
        ),
        ([{"cordon": "node-9"}, {"uncordon": "node-9"}], "completes: 2 pods replaced (maxSurge 1, maxUnavailable 0)"),
        (
            [{"set": "deploy/web:spec.minReadySeconds=5"}, {"uncordon": "node-9"}],
            "completes: 2 pods replaced (maxSurge 1, maxUnavailable 0)",
        ),
        (
            [{"set": f"deploy/web:{CPU}=9"}],
            "1 of 3 pods replaced, 1 new pod stays pending (maxSurge 1, maxUnavailable 0)",
        ),
    ],
    ids=["another strategy", "two changes", "a change that does not help first", "another template"],
)
def test_a_continuing_rollout_is_reported_once(changes: list[Manifest], texts: str) -> None:
    spare = node("node-9", allocatable={"cpu": "4", "memory": "16Gi", "pods": "20"}, unschedulable=True)
    [rolled] = simulated([*half_rolled_out(), spare], *changes).rolled_out
    assert texts in rollout_text(rolled)


@pytest.mark.parametrize(
    ("modes", "strategy", "ends"),
    [
        (["ReadWriteOnce"], {}, False),
        (["ReadWriteOnce"], {"type": "Recreate"}, True),
        (["ReadWriteMany"], {}, True),
    ],
)
def test_a_volume_for_one_node_keeps_a_new_pod_on_another_from_starting(
    modes: list[str], strategy: Manifest, *, ends: bool
) -> None:
    """The old pod fills its node, and uses the volume until it is gone."""
    pool = in_term("topology.kubernetes.io/zone", "a")
    own = claim("data", volume="disk", modes=modes)
    at(own, "metadata")["namespace"] = "shop"
    disk = volume("disk", modes=modes, claim_ref="data", node_affinity=pool, csi=True)
    at(disk, "spec")["claimRef"] = {"namespace": "shop", "name": "data", "uid": "uid-data"}
    made = web(1, {"strategy": strategy} if strategy else {})
    for item in (*(at(at(at(maker, "spec"), "template"), "spec") for maker in made[:2]), at(made[2], "spec")):
        item["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made[2]["status"] = {"phase": "Running"}
    simulation = simulated([*nodes(("1", "1")), own, disk, *made], {"restart": "deploy/web"})
    assert [rollout.is_done for rollout in simulation.rolled_out] == [ends]
    assert [*simulation.unable_to_start] == ([] if ends else ["shop/web-new1"])
