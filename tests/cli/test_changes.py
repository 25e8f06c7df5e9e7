"""The options that change a cluster first: equal on every command, and applied in their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import NODE, small_pod, write
from tests.command import CommandResult, kschedx
from tests.simulate.clusters import budget, deployment, nodes, shop
from tests.simulate.test_rollouts import half_rolled_out


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return written(tmp_path, shop())


def written(folder: Path, objects: list[Manifest]) -> Path:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def run_why(cluster: Path, *arguments: str) -> CommandResult:
    return kschedx(*arguments, "-n", "shop", "-s", cluster)


EVERY = {
    "why": ("why", "deploy/web"),
    "fit": ("fit", "deploy/web"),
    "simulate": ("simulate",),
    "drain": ("drain", "node-2"),
    "diff-profiles": ("diff-profiles", "default", "binpack", "--all-pending"),
}


@pytest.mark.parametrize("command", EVERY.values(), ids=EVERY)
def test_every_command_has_them_and_names_an_invalid_one(command: tuple[str, ...], cluster: Path) -> None:
    fine = run_why(cluster, *command, "--cordon", "node-1", "--add-nodes", "1=node-2", "--scale", "deploy/batch=9")
    assert (fine.code in (0, 1), fine.err) == (True, "")
    wrong = run_why(cluster, *command, "--cordon", "node-1", "--drain", "node-9")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == 'error: drain node-9: no node "node-9" in the snapshot (did you mean "node-5"?)\n'


def test_changes_are_applied_in_their_order(cluster: Path) -> None:
    cordoned = run_why(cluster, "simulate", "--uncordon", "node-1", "--cordon", "node-1", "-o", "json")
    open_again = run_why(cluster, "simulate", "--cordon", "node-1", "--uncordon", "node-1", "-o", "json")
    assert json.loads(cordoned.out)["changes"] == ["uncordon node-1", "cordon node-1"]
    places = [set(json.loads(result.out)["placed"].values()) for result in (cordoned, open_again)]
    assert "node-1" not in places[0]
    mixed = run_why(cluster, "simulate", "--scale", "deploy/web=8", "--drain", "node-1", "--scale", "deploy/web=9")
    assert "after     scale deploy/web=8 · drain node-1 · scale deploy/web=9" in mixed.out


def test_a_drained_pod_may_fit_after_a_later_change(tmp_path: Path) -> None:
    path = written(tmp_path, [*nodes(("4", "4")), *deployment("web", "3", ["node-1", "node-2"])])
    drained = ("simulate", "--drain", "node-1")
    waiting, added, uncordoned = (
        run_why(path, *drained, *later) for later in ((), ("--add-nodes", "1=node-2"), ("--uncordon", "node-1"))
    )
    assert (waiting.code, added.code, uncordoned.code) == (1, 0, 1)
    assert "1 evicted pod fits on other nodes, 1 of them not at once\n  shop/web-0 → node-2-new1" in added.out
    assert "node-1: 1 pod fits no other node" in uncordoned.out


def test_changes_are_read_from_standard_input(cluster: Path) -> None:
    result = kschedx("simulate", "--changes", "-", "-n", "shop", "-s", cluster, stdin="- cordon: node-1\n")
    assert "after     cordon node-1" in result.out


TEMPLATE = "deploy/web:spec.template"


@pytest.mark.parametrize(
    ("change", "is_replaced"),
    [
        (f"{TEMPLATE}.spec.nodeSelector.kubernetes.io/hostname=node-1", True),
        (f"{TEMPLATE}.spec.tolerations[0].key=spot", True),
        (f"{TEMPLATE}.metadata.annotations.example.com/revision=b", True),
        (f'{TEMPLATE}.spec.containers[0].env=[{{"name": "A", "value": "b"}}]', True),
        (f"{TEMPLATE}.spec.containers[0].resources.requests.cpu=1000m", False),
        ("deploy/web:metadata.labels.example.com/team=a", False),
    ],
)
def test_a_change_of_any_field_of_a_template_replaces_its_pods(
    change: str, tmp_path: Path, *, is_replaced: bool
) -> None:
    path = written(tmp_path, [*nodes(("8",)), *deployment("web", "1", ["node-1", "node-1"])])
    result = run_why(path, "simulate", "--set", change)
    assert (result.code, "2 pods replaced" in result.out) == (0, is_replaced)


def test_pods_without_a_name_of_their_own_are_applied(cluster: Path, tmp_path: Path) -> None:
    items = [{**small_pod("", cpu), "metadata": {"generateName": "task-"}} for cpu in ("1", "99")]
    (tmp_path / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = run_why(cluster, "simulate", "--apply", str(tmp_path / "new.json"), "-o", "json")
    document = json.loads(result.out)
    assert ("shop/task-new" in document["placed"], "shop/task-new1" in document["pending"]) == (True, True)


def test_why_explains_replicas_that_a_change_creates(cluster: Path) -> None:
    result = run_why(cluster, "why", "deploy/batch", "--scale", "deploy/batch=30")
    assert (
        result.out.splitlines()[0] == "✗ shop/deploy/batch: 6 of 23 missing replicas can be scheduled, 17 stay pending"
    )
    assert "note      after scale deploy/batch=30" in result.out


def test_evicted_pods_are_placed_before_the_question(tmp_path: Path) -> None:
    """The evicted pods of node-1 fill node-2, on which the explained pod would fit otherwise."""
    objects = [*nodes(("4", "4")), *deployment("batch", "2", ["node-1", "node-1"]), *deployment("web", "3", [None])]
    path = written(tmp_path, objects)
    assert run_why(path, "why", "pod/web-0").code == 0
    result = run_why(path, "why", "pod/web-0", "--remove-node", "node-1")
    assert result.code == 1
    assert "shop/batch-0" in result.out
    assert run_why(path, "fit", "pod/web-0", "--drain", "node-1").code == 1


def test_a_pending_pod_is_placed_before_evicted_pods(tmp_path: Path) -> None:
    objects = [*nodes(("4", "4")), *deployment("batch", "2", ["node-1", "node-1"]), *deployment("web", "3", [None])]
    at(objects[1], "spec")["unschedulable"] = True
    result = run_why(written(tmp_path, objects), "why", "pod/web-0", "--uncordon", "node-2", "--drain", "node-1")
    assert (result.code, result.out.splitlines()[0]) == (
        0,
        "✓ shop/web-0 would be assigned to node-2, the only node that fits",
    )
    result = run_why(written(tmp_path, objects), "why", "--all-pending", "--uncordon", "node-2", "--drain", "node-1")
    assert "✓ can be scheduled\n  pod       shop/web-0 → node-2" in result.out


def test_why_continues_the_rollout_of_a_changed_strategy(tmp_path: Path) -> None:
    path = written(tmp_path, half_rolled_out())
    assert run_why(path, "why", "deploy/web").code == 1
    recreate = ("--set", "deploy/web:spec.strategy.type=Recreate")
    assert run_why(path, "why", "deploy/web", *recreate).code == run_why(path, "simulate", *recreate).code == 0


def test_nodes_can_be_replaced_by_copies(cluster: Path) -> None:
    result = run_why(cluster, "simulate", "--remove-node", "node-1", "--add-nodes", "2=node-1", "-o", "json")
    nodes = json.loads(result.out)["nodes"]
    assert nodes["node-1"]["after"] is None
    assert nodes["node-1-new1"]["after"]["allocatable"] == nodes["node-1"]["before"]["allocatable"]


def test_copies_of_a_node_are_in_its_topology_domain(tmp_path: Path) -> None:
    path = written(tmp_path, [node("node-1.x.io"), node("node-2.x.io")])
    result = run_why(path, "simulate", "--add-nodes", "1=node-1.x.io", "-o", "json")
    assert "node-1-new1.x.io" in json.loads(result.out)["nodes"]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("8", "after remove-node node-1: 2 pods move"),
        ("6", "after remove-node node-1: 1 pod moves, shop/batch-1 loses its node and stays pending"),
    ],
)
def test_pods_that_lose_their_nodes_are_named(cpu: str, expected: str, tmp_path: Path) -> None:
    """batch has two pods of 2 cpu on node-1, and node-2 runs 3 cpu of web."""
    objects = [*nodes(("4", cpu)), *deployment("batch", "2", ["node-1", "node-1"])]
    path = written(tmp_path, [*objects, *deployment("web", "3", ["node-2"])])
    for command in ("why", "fit"):
        assert expected in run_why(path, command, "deploy/web", "--remove-node", "node-1").out
    document = json.loads(run_why(path, "why", "deploy/web", "--remove-node", "node-1", "-o", "json").out)
    note = next(note for note in document["notes"] if note["id"] == "after-changes")
    assert [*note.get("moved", ()), *note.get("waiting", ())] == ["shop/batch-0", "shop/batch-1"]


def test_pods_alone_show_their_workload(tmp_path: Path) -> None:
    """A dump of nodes and pods, as `kubectl get nodes,pods -A -o json` prints it."""
    objects = [*nodes(("4",)), *deployment("web", "1", ["node-1", "node-1"])]
    path = written(tmp_path, [item for item in objects if item["kind"] in ("Node", "Pod")])
    for target in ("deploy/web", "shop/deploy/web", "shop/deployment.apps/web"):
        result = run_why(path, "fit", target)
        assert (result.code, result.out.splitlines()[0]) == (0, f"✓ {target}: 2 more fit")
    runs = run_why(path, "why", "shop/deploy/web", "-n", "other").out
    assert "it runs on node-1; this shows what scheduling it now would give" in runs
    nowhere = run_why(path, "fit", "shop/deploy/api")
    assert nowhere.code == 2
    assert nowhere.err.startswith('error: no Deployment "api" in namespace "shop" (the dump holds none: kubectl get')


def test_an_incomplete_drain_is_reported(tmp_path: Path) -> None:
    objects = [*nodes(("4", "4")), *deployment("web", "1", ["node-1", "node-1"]), budget("web", 0)]
    result = run_why(written(tmp_path, objects), "why", "deploy/web", "--drain", "node-1")
    assert result.code == 0
    assert result.err == "note: drain node-1: PodDisruptionBudgets block the eviction of 2 pods\n"
    objects = [*nodes(("4", "4")), *deployment("web", "1", ["node-1"]), pod("alone", namespace="shop", on="node-1")]
    result = run_why(written(tmp_path, objects), "why", "deploy/web", "--drain", "node-1")
    assert result.err == "note: drain node-1: kubectl drain refuses and evicts nothing without --force: shop/alone\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("why", "pod/web-5", "--watch", "--cordon", "node-1"), "--watch follows the cluster as it is"),
        (("diff-profiles", "default", "binpack", "--cordon", "node-1"), "--cordon applies to pods in a cluster"),
        (("simulate", "--apply", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("simulate", "--changes", "nowhere.yaml"), "nowhere.yaml"),
        (("simulate", "--scale", "job/web=1"), 'no Job "web" in namespace "shop"'),
        (("simulate", "--scale", "deploy/web=1000000"), "nodes allow "),
        (("simulate", "--scale", "pod/web-0=1"), '"Pod" does not scale'),
        (("simulate", "--scale", "web=1"), '"web" is not KIND/NAME (did you mean "shop/deploy/web"?)'),
        (("simulate", "--set", "pod/web-0:spec.nodeName=node-2"), "spec.nodeName cannot be changed"),
        (("simulate", "--delete", "dep/web"), '"dep/web" is not KIND/NAME (did you mean "deploy/web"?)'),
        (("simulate", "--delete", "x/y"), '"x/y" is not KIND/NAME'),
        (("simulate", "--remove-node", "node-1", "--cordon", "node-1"), 'node "node-1" is gone (an earlier change'),
        (("simulate", "--remove-node", "node-1", "--drain", "node-1"), 'node "node-1" is gone (an earlier change'),
        (("drain", "--each", "--together"), "--each drains every node alone"),
        (("simulate", "--set", "deploy/web:spec.template.spec.contaners[0].image=x"), 'did you mean "containers"?'),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], expected: str, cluster: Path) -> None:
    result = run_why(cluster, *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert expected in result.err


@pytest.mark.parametrize(("field", "is_recreated"), [("spec.priority=5", True), ("metadata.labels.a=b", False)])
def test_a_changed_spec_of_a_pod_makes_another_pod(field: str, cluster: Path, *, is_recreated: bool) -> None:
    out = run_why(cluster, "simulate", "--set", f"pod/web-0:{field}").out
    assert ("shop/web-0 is deleted and created again" in out) == is_recreated


def test_the_explained_pod_is_not_reported_as_evicted(cluster: Path) -> None:
    assert "nodes that are not there" not in run_why(cluster, "why", "pod/web-0").out


CPU = "spec.template.spec.containers[main].resources.requests.cpu"


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("1500m", "✓ shop/deploy/web: both replicas can be scheduled, replacing 2 pods of the previous template"),
        ("3", "✗ shop/deploy/web: none of 2 replicas can be scheduled; the rollout stalls with 2 pods"),
    ],
)
def test_why_continues_the_rollout_of_its_target(cpu: str, expected: str, tmp_path: Path) -> None:
    """The third pod must fit beside two pods of 1 cpu on a node with 4 cpu."""
    path = written(tmp_path, [*nodes(("4",)), *deployment("web", "1", ["node-1", "node-1"])])
    result = run_why(path, "why", "deploy/web", "--set", f"deploy/web:{CPU}={cpu}")
    assert (result.out.splitlines()[0].startswith(expected), result.err) == (True, "")


def test_a_stalled_rollout_of_another_workload_is_reported(tmp_path: Path) -> None:
    web, more = deployment("web", "1", ["node-1", "node-1"]), deployment("more", "1", [None])
    path = written(tmp_path, [*nodes(("4",)), *web, *more])
    result = run_why(path, "why", "deploy/more", "--set", f"deploy/web:{CPU}=3")
    assert result.code == 0
    assert result.err.startswith(
        "note: rollout of shop/deploy/web stalls: 0 of 2 pods replaced, 1 new pod stays pending"
    )


def test_a_rollout_that_waits_for_the_pod_in_question_is_not_reported(tmp_path: Path) -> None:
    path = written(tmp_path, half_rolled_out())
    result = run_why(path, "why", "web-2", "-n", "shop", "--set", "deploy/web:spec.strategy.type=Recreate")
    assert (result.code, result.err) == (0, "")


def test_added_and_removed_nodes_can_be_drained(cluster: Path) -> None:
    each = run_why(cluster, "drain", "--each", "--remove-node", "node-2", "--add-nodes", "1=node-1", "-o", "name")
    nodes = {line.removeprefix("node/") for line in each.out.split()}
    assert "node-1-new1" in nodes
    assert "node-2" not in nodes
    gone = run_why(cluster, "drain", "node-2", "--remove-node", "node-2")
    assert (gone.code, gone.err) == (2, 'error: no node "node-2" after the changes (a change removes it)\n')
    wrong = run_why(cluster, "drain", "node-22", "--remove-node", "node-2")
    assert 'no node "node-22" in the snapshot (did you mean' in wrong.err
    assert run_why(cluster, "drain", "node-1-new1", "--add-nodes", "1=node-1").code == 0


def test_pods_of_applied_custom_resources_count(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": at(small_pod("a", "1"), "spec")}
    rollout: Manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    result = kschedx("simulate", "-f", write(tmp_path, rollout, name="web.yaml"), "-s", write(tmp_path, NODE))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("✓ all 3 pods are scheduled\n")
