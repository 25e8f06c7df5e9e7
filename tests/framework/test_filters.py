"""Laws of all Filter plugins on random clusters."""

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


def pre_filter(cluster: Cluster) -> tuple[Framework, Pod, CycleState, bool]:
    """Return a framework, the pod, the state after PreFilter, and whether Filter runs."""
    runner = framework(cluster.objects)
    pod = runner.snapshot.pods[runner.snapshot.pods.rows[TARGET]]
    state = CycleState()
    status = runner.run_pre_filter(state, pod).status
    return runner, pod, state, status.is_success


def rows_of(verdicts: Verdicts) -> list[tuple[int, tuple[str, ...]]]:
    return [(int(code), verdicts.reasons[row]) for row, code in enumerate(verdicts.codes)]


def facts(outcome: FilterOutcome) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    return {plugin: rows_of(verdicts) for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True)}


@given(clusters())
def test_a_finding_exists_exactly_where_a_node_is_rejected(cluster: Cluster) -> None:
    runner, pod, state, is_filtered = pre_filter(cluster)
    outcome = (
        runner.run_filters(state, pod, runner.nodes)
        if is_filtered
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
    runner, pod, state, is_filtered = pre_filter(cluster)
    if is_filtered:
        outcome = runner.run_filters(state, pod, runner.nodes)
        for row in runner.nodes.each():
            rejections = [index for index, verdicts in enumerate(outcome.verdicts) if verdicts.rejected[row]]
            assert int(outcome.plugin[row]) == (rejections[0] if rejections else -1)
            assert bool(outcome.passed[row]) == (not rejections)


@given(clusters(), st.data())
def test_a_subset_of_nodes_has_the_verdicts_of_all_nodes(cluster: Cluster, data: st.DataObject) -> None:
    runner, pod, state, is_filtered = pre_filter(cluster)
    if is_filtered:
        part = data.draw(st.lists(st.sampled_from(list(each_cluster_row(runner.nodes.rows))), unique=True))
        all_facts = facts(runner.run_filters(state, pod, runner.nodes))
        part_facts = facts(runner.run_filters(state, pod, runner.nodes.at(cluster_rows(part))))
        assert part_facts == {plugin: [rows[row] for row in part] for plugin, rows in all_facts.items()}


def can_join(cluster: Cluster, row: int, node_name: str) -> bool:
    """Tell whether the pod can move to the node: it is elsewhere, and its host ports are unused there.

    kube-scheduler keeps ports as a set: of two pods with the same port, the first removed one frees it.
    """
    joining_pod = cluster.pods[row]
    present = [pod for pod in cluster.pods if node_of(pod) == node_name]
    return joining_pod not in present and not any(ports_of(pod) & ports_of(joining_pod) for pod in present)


@given(clusters(), st.data())
@pytest.mark.parametrize("removed_first", [False, True], ids=["add, remove", "remove, add"])
def test_a_reversed_change_restores_the_verdicts(removed_first: bool, cluster: Cluster, data: st.DataObject) -> None:
    runner, pod, state, is_filtered = pre_filter(cluster)
    if not is_filtered or not cluster.pods:
        return
    pods = runner.snapshot.pods
    rows = data.draw(st.lists(st.sampled_from(range(len(cluster.pods))), unique=True))
    places = [ClusterRow(int(pods.node[row])) for row in rows]
    if not removed_first:
        drawn = [(row, data.draw(st.sampled_from(list(each_cluster_row(runner.nodes.rows))))) for row in rows]
        allowed = [(row, node) for row, node in drawn if can_join(cluster, row, f"node-{node}")]
        rows, places = [row for row, _ in allowed], [node for _, node in allowed]
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
def test_removing_a_pod_equals_a_cluster_without_it(cluster: Cluster) -> None:
    """Only its own node is compared, because every node's verdict is computed as if it alone had changed."""
    runner, pod, state, is_filtered = pre_filter(cluster)
    if not is_filtered or not cluster.pods:
        return
    row, node = 0, ClusterRow(int(runner.snapshot.pods.node[0]))
    change = PodRows(pods=np.array([row]), nodes=cluster_rows([node]))
    clone = state.clone()
    nodes = runner.remove_pods(clone, pod, runner.nodes, change)
    fresh_runner, fresh_pod, fresh_state, is_fresh_filtered = pre_filter(
        Cluster(cluster.nodes, cluster.pods[1:], cluster.target)
    )
    if is_fresh_filtered:
        clone_facts = facts(runner.run_filters(clone, pod, nodes))
        fresh_facts = facts(fresh_runner.run_filters(fresh_state, fresh_pod, fresh_runner.nodes))
        for plugin in clone_facts.keys() & fresh_facts.keys():
            assert clone_facts[plugin][node] == fresh_facts[plugin][node], plugin
