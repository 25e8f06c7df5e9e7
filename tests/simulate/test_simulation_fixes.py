"""Fixes of a simulation: tried for all pending pods of a workload, with the number that they help."""

from __future__ import annotations

import pytest

from kschedx.explain.setup import Setup
from kschedx.inquiry.pending_pods import SharedFixes
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.inquiry.stalled_drain import DrainPreview
from kschedx.inquiry.what_if import drain_nodes, simulate
from kschedx.render.layout import MOST_LINES
from kschedx.render.simulation import drains_lines, simulation_lines
from kschedx.simulate.changes import parse_changes
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node
from tests.simulate.clusters import budget, deployment, nodes


def simulated(objects: list[Manifest], *written: dict[str, object]) -> Simulation:
    snapshot = Snapshot.from_objects(objects)
    return simulate(snapshot, Setup.of_cluster(snapshot), parse_changes(written, lambda path: []), namespace="shop")


def shown_fixes(simulation: Simulation) -> list[dict[str, object]]:
    return [{key: item[key] for key in ("title", "pods", "of")} for item in SharedFixes(simulation).to_list(9)]


def tainted(name: str, cpu: str) -> Manifest:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "20"}
    labels = {"kubernetes.io/hostname": name}
    return node(name, labels=labels, allocatable=allocatable, taints=["dedicated=gpu:NoSchedule"])


@pytest.mark.parametrize(
    ("more", "waiting", "expected"),
    [
        ([], 1, {"title": "add a node like node-1", "pods": 1, "of": 1}),
        ([], 2, {"title": "add a node like node-1", "pods": 2, "of": 2}),
        ([], 5, {"title": "add 3 nodes like node-1", "pods": 5, "of": 5}),
        ([tainted("gpu", "12")], 3, {"title": "add 2 nodes like node-1", "pods": 3, "of": 3}),
        ([tainted("gpu", "8")], 3, {"title": "add 2 nodes like node-1", "pods": 3, "of": 3}),
    ],
    ids=["one", "on one node", "on three nodes", "beside another pool", "beside a smaller pool"],
)
def test_a_fix_is_tried_for_all_pending_pods(more: list[Manifest], waiting: int, expected: dict[str, object]) -> None:
    """Each node of 8 cpu has room for two pods of 4 cpu; on the full node, no smaller request fits."""
    objects = [*nodes(("8",)), *more, *deployment("web", "4", ["node-1", "node-1", *[None] * waiting])]
    assert shown_fixes(simulated(objects)) == [expected]


def test_as_many_nodes_are_uncordoned_as_the_pods_need() -> None:
    cordoned = [
        node(name, allocatable={"cpu": "8", "memory": "64Gi", "pods": "20"}, unschedulable=True) for name in "ab"
    ]
    objects = [*nodes(("8",)), *cordoned, *deployment("web", "4", ["node-1", "node-1", *[None] * 3])]
    assert shown_fixes(simulated(objects)) == [{"title": "uncordon a, uncordon b", "pods": 3, "of": 3}]


def test_the_fix_for_most_pods_is_shown_if_none_helps_all() -> None:
    pinned = deployment("web", "4", [None, None, None], node_selector={"team": "a"})
    assert shown_fixes(simulated([*nodes(("8",)), *pinned])) == [{"title": "label node-1 team=a", "pods": 2, "of": 3}]


@pytest.mark.parametrize(
    ("pools", "title", "helped"), [("ab", "tolerate nvidia.com/gpu:NoSchedule", 2), ("a", "add 3 nodes", 3)]
)
def test_nodes_that_have_room_for_half_of_the_pods_come_before_more_nodes(pools: str, title: str, helped: int) -> None:
    gpus = {"cpu": "8", "memory": "64Gi", "pods": "20", "nvidia.com/gpu": "1"}
    tainted_nodes = [node(name, allocatable=gpus, taints=["nvidia.com/gpu:NoSchedule"]) for name in pools]
    objects = [*nodes(("8",)), *tainted_nodes, *deployment("web", "4", [None] * 3, limits={"nvidia.com/gpu": "1"})]
    (fix,) = shown_fixes(simulated(objects))
    assert (str(fix["title"]).startswith(title), fix["pods"], fix["of"]) == (True, helped, 3), fix


def test_trying_fixes_does_not_change_the_simulation() -> None:
    simulation = simulated([*nodes(("8",)), *deployment("web", "4", ["node-1", "node-1", None, None])])
    before = simulation.to_dict()
    assert shown_fixes(simulation)
    assert simulation.to_dict() == before


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_screen_has_a_maximum_length(width: int) -> None:
    many = [item for number in range(20) for item in deployment(f"app-{number}", f"{1 + number}", [None] * 6)]
    simulation = simulated([*nodes(), *many], {"remove-node": "node-5"})
    lines = simulation_lines(SimulationAnswer(simulation=simulation), width=width)
    assert len(lines) <= MOST_LINES
    assert max(line.cell_len for line in lines) <= width
    assert "fix" in "".join(line.plain for line in lines)


def test_fixes_of_a_drain_count_the_drained_node_as_cordoned() -> None:
    """The node is uncordoned in the end, and a fix must not leave it undrained."""
    objects = [*nodes(("8", "2")), *deployment("web", "4", ["node-1"])]
    snapshot = Snapshot.from_objects(objects)
    simulation = drain_nodes(
        snapshot, Setup.of_cluster(snapshot), ["node-1"], options=SimulationOptions(), uncordons=True
    )
    lines = [line.plain.strip() for line in drains_lines(DrainPreview(simulation=simulation), width=100)]
    assert lines[:3] == [
        "✗ node-1: 1 pod fits no other node",
        "pending   shop/web-0: fits no other node, 1 node lacks 2 CPU; 1 node is cordoned",
        "fix       add a node like node-1",
    ]
    assert not [line for line in lines if "uncordon" in line]


def test_pods_of_drained_nodes_have_the_fixes_of_their_nodes_and_no_other_word() -> None:
    pinned = deployment("db", "2", ["node-1"], node_selector={"kubernetes.io/hostname": "node-1"})
    objects = [*nodes(["4", "4"]), *pinned, *deployment("web", "2", ["node-2"])]
    snapshot = Snapshot.from_objects(objects)
    names, setup = ("node-1", "node-2"), Setup.of_cluster(snapshot)
    simulation = drain_nodes(snapshot, setup, names, options=SimulationOptions(), uncordons=False)
    shown = [line.plain for line in drains_lines(DrainPreview(simulation=simulation), width=100)]
    assert sum(line.startswith("  fix ") for line in shown) == 2
    assert not any(line.startswith("  no fix") for line in shown)
    answer = SimulationAnswer(simulation=simulated(objects, {"drain": "node-1"}))
    texts = [line.plain.strip() for line in simulation_lines(answer, width=100)]
    assert "fix       uncordon node-1 after its maintenance: shop/db-0 fits no other node" in texts
    assert not any(line.startswith("no fix") for line in texts)


def test_no_fix_uncordons_a_node_that_the_question_cordons() -> None:
    objects = [*nodes(("8", "8")), *deployment("web", "4", ["node-1", "node-1", None])]
    [fix] = shown_fixes(simulated(objects, {"cordon": "node-2"}))
    assert fix == {"title": "add a node like node-1", "pods": 1, "of": 1}


def test_a_pod_of_a_removed_node_needs_another_one_with_its_labels() -> None:
    machines = nodes(("8", "8"))
    at(machines[0], "metadata.labels")["disk"] = "ssd"
    pinned = deployment("db", "4", ["node-1"], node_selector={"disk": "ssd"})
    waits = deployment("web", "4", [None], node_selector={"disk": "nvme"})
    simulation = simulated([*machines, *pinned, *waits], {"remove-node": "node-1"})
    titles = {str(fix["title"])[:31] for fix in SharedFixes(simulation).to_list(9)}
    assert titles == {"add a node with label disk=ssd ", "stop requiring disk=nvme"}


@pytest.mark.parametrize("count", [3, 40])
def test_nodes_that_cannot_be_drained_share_their_causes(count: int) -> None:
    machines = nodes(("8",)) * count
    named = [
        {**item, "metadata": {**at(item, "metadata"), "name": f"n-{number}"}} for number, item in enumerate(machines)
    ]
    pods = deployment("web", "1", [f"n-{number}" for number in range(count)])
    snapshot = Snapshot.from_objects([*named, *pods, budget("web", 0)])
    names = [f"n-{number}" for number in range(count)]
    simulation = drain_nodes(snapshot, Setup.of_cluster(snapshot), names, options=SimulationOptions(), each=True)
    lines = [line.plain for line in drains_lines(DrainPreview(simulation=simulation, each=True), width=80)]
    assert lines[0] == f"✗ 0 of {count} nodes can be drained"
    if count > 8:
        assert lines[1:] == [f"✗ {count} nodes: PDB shop/web: n-0, n-1, n-2 and {count - 3} more"]
    assert len(lines) <= MOST_LINES


def test_workloads_with_one_cause_share_fixes() -> None:
    """Each workload needs one node, and both need two."""
    apart = [deployment(name, "4", [None, None]) for name in ("one", "two")]
    full = deployment("old", "4", ["node-1", "node-1"])
    simulation = simulated([*nodes(("8",)), *full, *apart[0], *apart[1]])
    lines = [line.plain.strip() for line in simulation_lines(SimulationAnswer(simulation=simulation), width=100)]
    texts = [line for line in lines if line.startswith("fix")]
    each = "fix       add a node like node-1 · for all 2"
    assert texts == [each, each, "fix       add 2 nodes like node-1 · for all 4"]
