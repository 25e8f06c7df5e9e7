"""Laws of every Filter plugin, on clusters by chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, FilterOutcome, Verdicts
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRow, cluster_rows, each_cluster_row
from kschedx.snapshot.nodes import PodRows
from tests.builders import framework
from tests.laws.clusters import TARGET, Cluster, clusters, node_of, ports_of


def prepared(cluster: Cluster) -> tuple[Framework, Pod, CycleState, bool]:
    """A framework, the pod, the state after PreFilter, and whether Filter follows."""
    runner = framework(cluster.objects)
    pod = runner.snapshot.pods[runner.snapshot.pods.rows[TARGET]]
    state = CycleState()
    status = runner.run_pre_filter(state, pod).status
    return runner, pod, state, status.is_success


def told(verdicts: Verdicts) -> list[tuple[int, tuple[str, ...]]]:
    return [(int(code), verdicts.reasons[row]) for row, code in enumerate(verdicts.codes)]


def facts(outcome: FilterOutcome) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    return {plugin: told(verdicts) for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True)}


@given(clusters())
def test_a_finding_exists_exactly_where_a_node_is_rejected(cluster: Cluster) -> None:
    runner, pod, state, goes_on = prepared(cluster)
    outcome = (
        runner.run_filters(state, pod, runner.nodes)
        if goes_on
        else FilterOutcome(
            plugins=(), verdicts=(), codes=np.zeros(0, dtype=np.int64), plugin=np.zeros(0, dtype=np.int64)
        )
    )
    for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True):
        for row in runner.nodes.each():
            status = verdicts.status(row, plugin)
            rejects = status.code is not Code.SUCCESS
            assert (rejects, rejects) == (bool(status.reasons), bool(status.findings))


@given(clusters())
def test_the_verdict_is_the_first_rejection(cluster: Cluster) -> None:
    runner, pod, state, goes_on = prepared(cluster)
    if goes_on:
        outcome = runner.run_filters(state, pod, runner.nodes)
        for row in runner.nodes.each():
            rejecting = [index for index, verdicts in enumerate(outcome.verdicts) if verdicts.rejected[row]]
            assert int(outcome.plugin[row]) == (rejecting[0] if rejecting else -1)
            assert bool(outcome.passed[row]) == (not rejecting)


@given(clusters(), st.data())
def test_a_part_of_the_nodes_is_filtered_as_in_the_whole(cluster: Cluster, data: st.DataObject) -> None:
    runner, pod, state, goes_on = prepared(cluster)
    if goes_on:
        part = data.draw(st.lists(st.sampled_from(list(each_cluster_row(runner.nodes.rows))), unique=True))
        whole = facts(runner.run_filters(state, pod, runner.nodes))
        of_part = facts(runner.run_filters(state, pod, runner.nodes.at(cluster_rows(part))))
        assert of_part == {plugin: [rows[row] for row in part] for plugin, rows in whole.items()}


def could_join(cluster: Cluster, row: int, place: str) -> bool:
    """A pod is not on the node already, and no pod there has a host port of its.

    kube-scheduler keeps ports as a set, so that of two pods with the same port the first one to go frees it.
    """
    joining = cluster.pods[row]
    there = [pod for pod in cluster.pods if node_of(pod) == place]
    return joining not in there and not any(ports_of(pod) & ports_of(joining) for pod in there)


@given(clusters(), st.data())
@pytest.mark.parametrize("removed_first", [False, True], ids=["add, remove", "remove, add"])
def test_a_change_and_its_reverse_change_nothing(removed_first: bool, cluster: Cluster, data: st.DataObject) -> None:
    runner, pod, state, goes_on = prepared(cluster)
    if not goes_on or not cluster.pods:
        return
    pods = runner.snapshot.pods
    rows = data.draw(st.lists(st.sampled_from(range(len(cluster.pods))), unique=True))
    places = [ClusterRow(int(pods.node[row])) for row in rows]
    if not removed_first:
        chosen = [(row, data.draw(st.sampled_from(list(each_cluster_row(runner.nodes.rows))))) for row in rows]
        moved = [(row, place) for row, place in chosen if could_join(cluster, row, f"node-{place}")]
        rows, places = [row for row, _ in moved], [place for _, place in moved]
    change = PodRows(pods=np.array(rows, dtype=np.int64), nodes=cluster_rows(places))
    before = facts(runner.run_filters(state, pod, runner.nodes))
    clone = state.clone()
    steps = (runner.remove_pods, runner.add_pods) if removed_first else (runner.add_pods, runner.remove_pods)
    nodes = runner.nodes
    for step in steps:
        nodes = step(clone, pod, nodes, change)
    assert facts(runner.run_filters(clone, pod, nodes)) == before
    assert facts(runner.run_filters(state, pod, runner.nodes)) == before


@given(clusters())
def test_removing_a_pod_is_a_cluster_without_it(cluster: Cluster) -> None:
    """On its own node; what other nodes see of it is another matter, for each stands in a world of its own."""
    runner, pod, state, goes_on = prepared(cluster)
    if not goes_on or not cluster.pods:
        return
    row, node = 0, ClusterRow(int(runner.snapshot.pods.node[0]))
    change = PodRows(pods=np.array([row]), nodes=cluster_rows([node]))
    clone = state.clone()
    nodes = runner.remove_pods(clone, pod, runner.nodes, change)
    without, same, fresh, also = prepared(Cluster(cluster.nodes, cluster.pods[1:], cluster.target))
    if also:
        here = facts(runner.run_filters(clone, pod, nodes))
        there = facts(without.run_filters(fresh, same, without.nodes))
        for plugin in here.keys() & there.keys():
            assert here[plugin][node] == there[plugin][node], plugin
