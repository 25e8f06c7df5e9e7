"""Laws of the groups of rejected nodes on a screen."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given

import kschedx
from kschedx.explain.node_groups import NodeGroup, account, node_groups
from kschedx.findings import Finding
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.words import describe
from tests.builders import node, pod
from tests.laws.clusters import TARGET, Cluster, clusters


def groups_of(cluster: Cluster) -> tuple[Cycle, tuple[NodeGroup, ...]]:
    cycle = kschedx.explain(kschedx.Snapshot.from_objects(cluster.objects), TARGET).cycle
    return cycle, node_groups(cycle)


def shared_words(finding: Finding) -> str:
    words = describe(finding)
    return words.shared or words.headline


def heading(finding: Finding) -> str:
    """Return the shared words without the clause on the node's allocatable.

    A resource after the first may exceed the allocatable of one node alone; each node shows its shortage."""
    return shared_words(finding).removesuffix(", more than the node's allocatable")


@given(clusters())
def test_every_node_of_a_group_has_the_headline_that_the_group_shows(cluster: Cluster) -> None:
    cycle, groups = groups_of(cluster)
    for group in groups:
        shown = group.exemplar.findings
        for row in group.rows:
            result = account(cycle, row).findings
            assert [heading(item) for item in result] == [heading(item) for item in shown]
            firsts = (
                [shared_words(item.findings[0]) for item in each.blockers]
                for each in (group.exemplar, account(cycle, row))
            )
            assert len({tuple(each) for each in firsts}) == 1, "the heading holds for every node"
            for item, other in zip(result, shown, strict=True):
                if describe(item).headline != describe(other).headline:
                    assert describe(item).brief != describe(other).brief, "each node shows what differs"


def test_a_request_above_the_whole_node_is_a_group_of_its_own() -> None:
    """This holds even where another resource gives both nodes the same verdict."""
    large = node("large", allocatable={"cpu": "2", "memory": "1Gi", "pods": "9"})
    small = node("small", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"})
    holder = pod(
        "holder", on="large", containers=[{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]
    )
    resources = {"requests": {"cpu": "1500m", "memory": "2Gi"}}
    target = pod("target", containers=[{"name": "c", "image": "c", "resources": resources}])
    cycle = kschedx.explain(kschedx.Snapshot.from_objects([large, small, holder, target]), "default/target").cycle
    assert len(node_groups(cycle)) == 2


@given(clusters())
def test_shared_words_are_part_of_the_headline(cluster: Cluster) -> None:
    _, groups = groups_of(cluster)
    for finding in (item for group in groups for item in group.exemplar.findings):
        words = iter(describe(finding).headline.replace(",", "").split())
        text = shared_words(finding).replace(" a pod there", "")  # the headline names those pods
        assert all(word in words for word in text.replace(",", "").split())


@given(clusters())
def test_every_rejected_node_is_in_one_group(cluster: Cluster) -> None:
    cycle, groups = groups_of(cluster)
    rejected = [] if cycle.filter is None else np.flatnonzero(cycle.filter.codes != Code.SUCCESS).tolist()
    assert sorted(row for group in groups for row in group.rows) == rejected


@given(clusters())
def test_two_groups_differ_in_blockers(cluster: Cluster) -> None:
    _, groups = groups_of(cluster)
    keys = [
        tuple(
            (
                blocker.plugin,
                blocker.code,
                blocker.with_nominated,
                *((finding.reason, finding.same_as) for finding in blocker.findings),
            )
            for blocker in group.exemplar.blockers
        )
        for group in groups
    ]
    assert len(set(keys)) == len(keys)


@given(clusters())
def test_the_nearest_node_of_a_group_comes_first(cluster: Cluster) -> None:
    cycle, groups = groups_of(cluster)
    for group in groups:
        distances = [sum(finding.distance for finding in account(cycle, row).findings) for row in group.rows]
        assert all(first <= second + 1e-9 for first, second in pairwise(distances))
