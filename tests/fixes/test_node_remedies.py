"""Remedies at a node: the named node is the one that was changed and tried."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from kschedx.fixes import FixCertainty
from kschedx.fixes.steps import LabelNode, RemoveTaints, Uncordon
from tests.builders import Manifest, node, pod

FULL = {"cpu": "1", "memory": "1Gi", "pods": "0"}
OTHERS = [node("a-full", allocatable=FULL), node("z-full", allocatable=FULL)]
"""Nodes that no change of their state helps, before and after the relevant node."""


@pytest.mark.parametrize(
    ("nodes", "wanted", "step", "title"),
    [
        ([node("m", unschedulable=True)], pod("me"), Uncordon, "uncordon m"),
        (
            [node("m", taints=["team=a:NoSchedule"])],
            pod("me"),
            RemoveTaints,
            "remove taint team=a:NoSchedule from m",
        ),
        ([node("m")], pod("me", nodeSelector={"team": "a"}), LabelNode, "label m team=a"),
    ],
    ids=["uncordon", "taint", "label"],
)
def test_a_remedy_names_the_node_that_it_was_tried_on(
    nodes: list[Manifest], wanted: Manifest, step: type[Uncordon | RemoveTaints | LabelNode], title: str
) -> None:
    snapshot = kschedx.Snapshot.from_objects([*OTHERS, *nodes, wanted])
    fixes = kschedx.explain(snapshot, "default/me").fixes
    first = next(fix for fix in fixes if isinstance(fix.steps[0], step))
    assert (first.title, first.certainty) == (title, FixCertainty.VERIFIED)
    assert [change.target.name for change in first.changes] == ["m"]
    assert first.feasible_nodes == ("m",)
    assert [snapshot.cluster.names[item.row] for item in first.steps if isinstance(item, step)] == ["m"]
    assert all("m" in command.split() or "node/m" in command.split() for command in first.commands)


@pytest.mark.parametrize(
    ("of_node", "step", "pool"),
    [
        ({}, LabelNode, "web"),
        ({}, LabelNode, ""),
        ({"taints": ["team=a:NoSchedule"]}, RemoveTaints, "web"),
        ({"unschedulable": True}, Uncordon, "web"),
    ],
)
def test_a_node_of_a_pool_keeps_a_label_until_it_is_replaced(
    of_node: dict[str, Any], step: type[Uncordon | RemoveTaints | LabelNode], pool: str
) -> None:
    labels = {"eks.amazonaws.com/nodegroup": pool} if pool else {}
    wanted: Manifest = {"nodeSelector": {"team": "a"}} if step is LabelNode else {}
    snapshot = kschedx.Snapshot.from_objects([node("m", labels=labels, **of_node), pod("me", spec=wanted)])
    first = next(fix for fix in kschedx.explain(snapshot, "default/me").fixes if isinstance(fix.steps[0], step))
    lasting = ("only until m is replaced: change the template of node pool web as well",)
    assert first.costs == (lasting if pool and step is not Uncordon else ())


def test_each_remedy_names_its_own_node() -> None:
    nodes = [node(name, unschedulable=True, labels={"zone": name}) for name in "abc"]
    snapshot = kschedx.Snapshot.from_objects([*nodes, pod("me", nodeSelector={"zone": "b"})])
    items = [
        fix for fix in kschedx.explain(snapshot, "default/me").fixes if any(isinstance(s, Uncordon) for s in fix.steps)
    ]
    for fix in items:
        [named] = {step.node for step in fix.steps if isinstance(step, Uncordon)}
        assert fix.feasible_nodes == (named,)
        assert named in {change.target.name for change in fix.changes}
    assert [fix.title for fix in items][:1] == ["uncordon b"]


@pytest.mark.parametrize(
    ("wanted", "known", "is_meant"),
    [
        ("sdd", ("ssd",), True),
        ("sdd", ("ssd", "hdd"), False),
        ("hdd", ("ssd",), False),
        ("gpu", ("cpu",), False),
        ("a10", ("a30",), False),
        ("us", ("ue",), False),
    ],
)
def test_the_only_value_of_a_label_is_proposed_if_one_letter_differs(
    wanted: str, known: tuple[str, ...], is_meant: bool
) -> None:
    nodes = [node(f"n-{value}", labels={"kind": value}) for value in known]
    fixes = kschedx.explain(
        kschedx.Snapshot.from_objects([*nodes, pod("me", nodeSelector={"kind": wanted})]), "default/me"
    ).fixes
    assert (fixes[0].title == f"select kind={known[0]} instead of kind={wanted}") is is_meant


def test_nodes_of_a_node_pool_are_not_labeled_by_hand() -> None:
    labels = {"karpenter.sh/nodepool": "general"}
    snapshot = kschedx.Snapshot.from_objects([node("n", labels=labels), pod("me", nodeSelector={"team": "a"})])
    fixes = kschedx.explain(snapshot, "default/me").fixes
    assert not any(isinstance(step, LabelNode) for fix in fixes for step in fix.steps)
