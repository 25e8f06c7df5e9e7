"""Preemption where volumes are what is in the way."""

from __future__ import annotations

from kschedx.framework.cycle import Cycle
from tests.builders import Manifest, evaluate, node
from tests.storage_builders import claim, csi_node, using, volume

NODES = [node("n"), node("m"), csi_node("n", limit=2), csi_node("m", limit=2)]


def candidates(cycle: Cycle) -> dict[str, list[str]]:
    """Node to the victims there."""
    assert cycle.post_filter is not None
    names, pods = cycle.all_nodes.cluster.names, cycle.snapshot.pods
    return {
        names[candidate.node]: [pods.names[row] for row in candidate.victims]
        for candidate in cycle.post_filter.candidates
    }


def held(*names: str, mode: str = "ReadWriteOnce") -> list[Manifest]:
    return [
        item
        for name in names
        for item in (claim(name, volume=f"pv-{name}", modes=[mode]), volume(f"pv-{name}", holder=name, csi=True))
    ]


def test_the_holder_of_a_claim_for_one_pod_is_the_victim() -> None:
    """Only on its own node does the claim become free, and no bystander has to go."""
    cycle = evaluate(
        [
            using("new", "data", priority=100),
            using("holder", "data", on="n", priority=0),
            using("bystander", on="n", priority=0),
            using("other", on="m", priority=0),
            *held("data", mode="ReadWriteOncePod"),
            *NODES,
        ],
        "default/new",
    )
    assert candidates(cycle) == {"n": ["holder"]}


def test_a_holder_of_higher_priority_stays() -> None:
    cycle = evaluate(
        [
            using("new", "data", priority=100),
            using("holder", "data", on="n", priority=200),
            *held("data", mode="ReadWriteOncePod"),
            *NODES,
        ],
        "default/new",
    )
    assert candidates(cycle) == {}


def test_the_attach_limit_frees_no_more_than_it_needs() -> None:
    """On n one of two low pods is enough, the more important one stays; on m the volumes are of pods that stay."""
    cycle = evaluate(
        [
            using("new", "x", priority=100),
            using("low", "a", on="n", priority=0),
            using("middle", "b", on="n", priority=50),
            using("high", "c", "d", on="m", priority=200),
            *held("x", "a", "b", "c", "d"),
            *NODES,
        ],
        "default/new",
    )
    assert candidates(cycle) == {"n": ["low"]}


def test_a_volume_that_two_pods_share_is_free_when_both_are_gone() -> None:
    cycle = evaluate(
        [
            using("new", "x", "y", priority=100),
            using("one", "a", on="n", priority=0),
            using("two", "a", on="n", priority=0),
            using("keeps", "c", "d", on="m", priority=200),
            *held("x", "y", "a", "c", "d"),
            *NODES,
        ],
        "default/new",
    )
    assert {node: sorted(victims) for node, victims in candidates(cycle).items()} == {"n": ["one", "two"]}


def test_volumes_out_of_reach_are_no_matter_of_preemption() -> None:
    cycle = evaluate(
        [using("new", "data", priority=100), using("low", on="n", priority=0), claim("data", volume="gone"), *NODES],
        "default/new",
    )
    assert candidates(cycle) == {}
