"""Laws of every tree of cohorts, whatever its limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.kube.kueue import ClusterQueue, Cohort
from kschedx.kueue.quota import FlavorResource, QuotaNode, QuotaTree
from tests.kueue.objects import Json, cohort, queue, quota, snapshot

CPU = FlavorResource("f", "cpu")
AMOUNTS = st.integers(0, 9)
LIMITS = st.none() | AMOUNTS


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    """Return a tree of up to three cohorts, below each other or side by side, and up to four ClusterQueues."""
    objects: list[Json] = [cohort("top"), cohort("mid", parentName="top"), cohort("low", parentName="mid")]
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from(["", "top", "mid", "low"]))
        limits = {"borrowingLimit": draw(LIMITS), "lendingLimit": draw(LIMITS)} if parent else {}
        texts = {name: str(limit) for name, limit in limits.items() if limit is not None}
        flavor_quota = quota("f", str(draw(AMOUNTS)), **texts)
        objects.append(queue(f"q{number}", flavor_quota, **({"cohortName": parent} if parent else {})))
    cluster = snapshot(*objects)
    queues = list(cluster.of(ClusterQueue))
    return QuotaTree.of(queues, list(cluster.of(Cohort)), [item.metadata.name for item in queues])


def usages(tree: QuotaTree) -> dict[str, int]:
    return {node.path: node.used_amount(CPU) for node in nodes(tree)}


def nodes(tree: QuotaTree) -> list[QuotaNode]:
    return [*tree.queues.values(), *tree.cohorts.values()]


USES = st.lists(st.tuples(st.integers(0, 3), AMOUNTS), max_size=6)


def use(tree: QuotaTree, uses: list[tuple[int, int]]) -> None:
    names = sorted(tree.queues)
    for number, amount in uses:
        tree.queues[names[number % len(names)]].add(CPU, amount)


@given(trees(), USES, AMOUNTS)
@settings(max_examples=settings().max_examples * 3)
def test_removing_usage_restores_the_tree(tree: QuotaTree, uses: list[tuple[int, int]], amount: int) -> None:
    use(tree, uses)
    before = usages(tree)
    for leaf in tree.queues.values():
        leaf.add(CPU, amount)
        leaf.remove(CPU, amount)
        assert usages(tree) == before


@given(trees(), USES)
@settings(max_examples=settings().max_examples * 3)
def test_available_quota_never_exceeds_potential_quota(tree: QuotaTree, uses: list[tuple[int, int]]) -> None:
    use(tree, uses)
    assert all(0 <= leaf.available(CPU) <= max(0, leaf.potential(CPU)) for leaf in tree.queues.values())


@given(trees(), USES)
@settings(max_examples=settings().max_examples * 3)
def test_using_the_available_quota_leaves_none(tree: QuotaTree, uses: list[tuple[int, int]]) -> None:
    use(tree, uses)
    for leaf in tree.queues.values():
        available = leaf.unbounded_available(CPU)
        if available < 0:
            continue
        leaf.add(CPU, available)
        assert leaf.unbounded_available(CPU) == 0
        leaf.remove(CPU, available)


@given(trees())
def test_roots_and_unlent_quota_sum_to_nominal_quota(tree: QuotaTree) -> None:
    roots = [node for node in nodes(tree) if node.parent is None]
    not_lent = sum(node.kept(CPU) for node in nodes(tree) if node.parent is not None)
    nominal = sum(node.quota(CPU).nominal for node in nodes(tree))
    assert sum(root.subtree_quota(CPU) for root in roots) + not_lent == nominal
