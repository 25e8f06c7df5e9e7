"""Nodes that are emptied together."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.explain.setup import Setup
from kschedx.simulate.repack import EmptiedNodes, empty_nodes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, pod
from tests.simulate.clusters import budget, deployment, nodes
from tests.simulate.test_survive import shops


def emptied(objects: list[Manifest], prices: dict[str, float] | None = None) -> EmptiedNodes:
    snapshot = Snapshot.from_objects(objects)
    price_of = (prices or {}).get
    return empty_nodes(snapshot, Setup.of_cluster(snapshot), snapshot.cluster.names, lambda name: price_of(name))


def test_nodes_are_emptied_while_their_pods_fit_elsewhere() -> None:
    objects = [*nodes(["4", "4", "4"]), *deployment("web", "2", ["node-1", "node-2", "node-3"])]
    result = emptied(objects, {"node-1": 0.5})
    assert (result.nodes, result.price) == (("node-1",), 0.5)
    assert [*result.moves] == ["shop/web-0"]
    assert {*result.blocked} == {"node-2", "node-3"}
    assert result.blocked["node-3"] == "shop/web-2 fits no other node"


def test_what_blocks_a_node() -> None:
    objects = [*nodes(["4", "4"]), *deployment("web", "1", ["node-1"]), budget("web", 0)]
    objects.append(pod("bare", namespace="shop", on="node-2"))
    assert emptied(objects).blocked == {
        "node-1": "PDB shop/web blocks the eviction of shop/web-0",
        "node-2": "no controller recreates shop/bare",
    }


@given(st.integers(0, 10**6))
def test_no_pod_is_lost_and_no_emptied_node_gets_one(seed: int) -> None:
    objects = shops(random.Random(seed), with_budgets=True)
    snapshot = Snapshot.from_objects(objects)
    result = emptied(objects)
    gone = {*result.nodes}
    on_gone = {key for key, row in snapshot.pods.rows.items() if snapshot.pods.node_names[row] in gone}
    assert on_gone <= {*result.moves}
    assert all(to and to not in gone for _, to in result.moves.values())
    assert not gone & {*result.blocked}
    for item in budgets_of(snapshot, snapshot):
        if item.current_status(snapshot, snapshot.pods, ()).allowed <= 0:
            assert not any(item.covers(snapshot.pods, snapshot.pods.rows[key]) for key in result.moves)
