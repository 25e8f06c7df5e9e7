"""Preemption of pods with volumes."""

from __future__ import annotations

from kschedx.framework.cycle import Cycle
from tests.builders import Manifest, evaluate, node
from tests.storage_builders import claim, csi_node, using, volume

NODES = [node("n"), node("m"), csi_node("n", limit=2), csi_node("m", limit=2)]


def candidates(cycle: Cycle) -> dict[str, list[str]]:
    """Return the victims of each candidate node."""
    assert cycle.post_filter is not None
    names, pods = cycle.all_nodes.cluster.names, cycle.snapshot.pods
    return {
        names[candidate.node]: [pods.names[row] for row in candidate.victims]
        for candidate in cycle.post_filter.candidates
    }


def bound_claims(*names: str, mode: str = "ReadWriteOnce") -> list[Manifest]:
    return [
        item
        for name in names
        for item in (claim(name, volume=f"pv-{name}", modes=[mode]), volume(f"pv-{name}", claim_ref=name, csi=True))
    ]


def test_the_holder_of_a_claim_for_one_pod_is_the_victim() -> None:
    """The claim becomes free only on its own node, and bystanders stay."""
    cycle = evaluate(
        [
            using("new", "data", priority=100),
            using("holder", "data", on="n", priority=0),
            using("bystander", on="n", priority=0),
            using("other", on="m", priority=0),
            *bound_claims("data", mode="ReadWriteOncePod"),
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
            *bound_claims("data", mode="ReadWriteOncePod"),
            *NODES,
        ],
        "default/new",
    )
    assert candidates(cycle) == {}


def test_the_attach_limit_evicts_no_more_pods_than_needed() -> None:
    """On n, the less important of two pods is enough; on m, the volumes belong to pods of higher priority."""
    cycle = evaluate(
        [
            using("new", "x", priority=100),
            using("low", "a", on="n", priority=0),
            using("middle", "b", on="n", priority=50),
            using("high", "c", "d", on="m", priority=200),
            *bound_claims("x", "a", "b", "c", "d"),
            *NODES,
        ],
        "default/new",
    )
    assert candidates(cycle) == {"n": ["low"]}


def test_a_shared_volume_is_free_after_both_pods_are_evicted() -> None:
    cycle = evaluate(
        [
            using("new", "x", "y", priority=100),
            using("one", "a", on="n", priority=0),
            using("two", "a", on="n", priority=0),
            using("keeps", "c", "d", on="m", priority=200),
            *bound_claims("x", "y", "a", "c", "d"),
            *NODES,
        ],
        "default/new",
    )
    assert {node: sorted(victims) for node, victims in candidates(cycle).items()} == {"n": ["one", "two"]}


def test_preemption_does_not_help_with_unreachable_volumes() -> None:
    cycle = evaluate(
        [using("new", "data", priority=100), using("low", on="n", priority=0), claim("data", volume="gone"), *NODES],
        "default/new",
    )
    assert candidates(cycle) == {}
