"""The diagnosis of a cycle: node groups, blockers, holders, evictions, and margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.explain.diagnosis import Diagnosis, EvictionVerdict, eviction, holders, label_hint
from kschedx.explain.node_groups import account, node_groups
from kschedx.explain.ranking import deciding_rule, rank_nodes
from kschedx.framework.cycle import Cycle
from kschedx.snapshot.columns import TableRow
from kschedx.words.causes import because
from tests.builders import Manifest, evaluate, node, pod

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def asking(cpu: str = "0", **spec: object) -> Manifest:
    result = pod("new")
    result["spec"] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return result


def running(name: str, on: str, cpu: str, priority: int = 0) -> Manifest:
    return pod(name, on=on, priority=priority, containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}])


def cycle_of(*objects: Manifest) -> Cycle:
    return evaluate(objects, "default/new")


def group_rejections(cycle: Cycle) -> list[tuple[list[str], list[str]]]:
    """Return the nodes and the rejecting plugins of each group."""
    assert cycle.nodes is not None
    return [
        ([cycle.nodes.name(row) for row in group.rows], [blocker.plugin for blocker in group.exemplar.blockers])
        for group in node_groups(cycle)
    ]


def test_an_overcommitted_node_does_not_reduce_free_resources() -> None:
    cycle = cycle_of(
        node("over", allocatable={**SMALL, "cpu": "2"}),
        node("free", allocatable={**SMALL, "cpu": "3"}),
        running("squeezed", "over", "4"),
        running("small", "free", "1"),
        asking("4"),
    )
    assert Diagnosis(cycle).free(range(2), "cpu") == 2000


# --- groups


def test_nodes_with_the_same_blockers_are_one_group_and_the_nearest_comes_first() -> None:
    cycle = cycle_of(
        node("far", allocatable={**SMALL, "cpu": "1"}),
        node("near", allocatable={**SMALL, "cpu": "3"}),
        node("tainted", taints=["team=a:NoSchedule"], allocatable=SMALL),
        node("both", taints=["team=a:NoSchedule"], allocatable={**SMALL, "cpu": "1"}),
        asking("4"),
    )
    assert group_rejections(cycle) == [
        (["near", "far"], ["NodeResourcesFit"]),
        (["tainted"], ["TaintToleration"]),
        (["both"], ["TaintToleration", "NodeResourcesFit"]),
    ]


def test_the_verdict_is_the_first_plugin_and_all_others_are_kept() -> None:
    cycle = cycle_of(node("n", taints=["a=b:NoSchedule"], allocatable={"cpu": "1", "pods": "9"}), asking("4"))
    blockers = account(cycle, TableRow(0)).blockers
    assert [(blocker.plugin, blocker.is_verdict) for blocker in blockers] == [
        ("TaintToleration", True),
        ("NodeResourcesFit", False),
    ]


def test_taints_of_different_keys_are_different_groups() -> None:
    cycle = cycle_of(
        node("a", taints=["x:NoSchedule"]),
        node("b", taints=["y:NoSchedule"]),
        node("c", taints=["x:NoSchedule"]),
        asking(),
    )
    assert [names for names, _ in group_rejections(cycle)] == [["a", "c"], ["b"]]


def test_affinity_groups_by_the_expressions_that_fail() -> None:
    nodes = [node("none"), node("half", labels={"a": "1"}), node("other", labels={"a": "1", "b": "2"})]
    wanted = [{"key": key, "operator": "In", "values": ["1"]} for key in "ab"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    cycle = cycle_of(*nodes, asking(affinity={"nodeAffinity": required}))
    assert [names for names, _ in group_rejections(cycle)] == [["half", "other"], ["none"]]


@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "8"]), st.sampled_from(["", "a", "b"]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_every_rejected_node_is_in_one_group(kinds: list[tuple[str, str, bool]]) -> None:
    cycle = cycle_of(
        *(
            node(
                f"n{i}",
                allocatable={**SMALL, "cpu": cpu},
                taints=[f"{key}:NoSchedule"] if key else [],
                unschedulable=off,
            )
            for i, (cpu, key, off) in enumerate(kinds)
        ),
        asking("4"),
    )
    assert cycle.filter is not None
    grouped = [row for group in node_groups(cycle) for row in group.rows]
    assert sorted(grouped) == np.flatnonzero(~cycle.filter.passed).tolist()
    for group in node_groups(cycle):
        plugins = {tuple(blocker.plugin for blocker in account(cycle, row).blockers) for row in group.rows}
        assert len(plugins) == 1


# --- holders and eviction


def test_holders_are_the_largest_first() -> None:
    cycle = cycle_of(
        node("n", allocatable=SMALL),
        running("a", "n", "1"),
        running("b", "n", "2", priority=7),
        pod("c", on="n"),
        asking("4"),
    )
    held = holders(cycle, TableRow(0), "cpu")
    assert [(item.pod, item.amount, item.priority) for item in held] == [
        ("default/b", 2000, 7),
        ("default/a", 1000, 0),
    ]


@pytest.mark.parametrize(
    ("objects", "new", "answer"),
    [
        pytest.param(
            [running("a", "n", "3")], asking("2", priority=10), EvictionVerdict.HELPS, id="a lower priority gives way"
        ),
        pytest.param(
            [running("a", "n", "3")], asking("2"), EvictionVerdict.NO_LOWER_PRIORITY, id="equal priority stays"
        ),
        pytest.param(
            [running("a", "n", "3")], asking("9", priority=10), EvictionVerdict.UNRESOLVABLE, id="more than the node"
        ),
        pytest.param(
            [running("a", "n", "1"), running("b", "n", "3", priority=99)],
            asking("2", priority=10),
            EvictionVerdict.NOT_ENOUGH,
            id="too little is of lower priority",
        ),
        pytest.param(
            [running("a", "n", "3")],
            asking("2", priority=10, preemptionPolicy="Never"),
            EvictionVerdict.NOT_ALLOWED,
            id="it may not",
        ),
    ],
)
def test_eviction(objects: list[Manifest], new: Manifest, answer: EvictionVerdict) -> None:
    cycle = cycle_of(node("n", allocatable=SMALL), *objects, new)
    assert eviction(cycle, account(cycle, TableRow(0))).answer is answer


def test_pods_whose_deletion_makes_room() -> None:
    cycle = cycle_of(
        node("n", allocatable=SMALL),
        running("a", "n", "500m"),
        running("b", "n", "2"),
        running("c", "n", "1"),
        asking("1500m"),
    )
    enough = eviction(cycle, account(cycle, TableRow(0))).enough
    assert [item.pod for item in enough] == ["default/c", "default/b"]


# --- the rest of the diagnosis


def test_free_resources_of_all_nodes() -> None:
    cycle = cycle_of(node("a", allocatable=SMALL), node("b", allocatable=SMALL), running("x", "a", "1"), asking("5"))
    assert Diagnosis(cycle).free([0, 1], "cpu") == 7000


def test_nodes_that_pre_filter_excludes() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a", "gone"]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    excluded = Diagnosis(cycle_of(node("a"), node("b"), asking(affinity={"nodeAffinity": required}))).excluded
    assert excluded is not None
    assert (excluded.count, excluded.names, excluded.plugins) == (1, ("a", "gone"), ("NodeAffinity",))


@pytest.mark.parametrize(
    ("key", "values", "nearest", "value"),
    [
        ("disk", ("nmve",), "nvme", True),
        ("disk", ("ssd", "nvme"), "", False),
        ("dsk", ("nvme",), "disk", True),
        ("disk", ("zzzzzz",), "", True),
    ],
)
def test_labels_that_no_node_has(key: str, values: tuple[str, ...], nearest: str, *, value: bool) -> None:
    cluster = cycle_of(
        node("a", labels={"disk": "nvme"}), node("b", labels={"disk": "hdd"}), asking()
    ).all_nodes.cluster
    hint = label_hint(key, "In", values, cluster)
    assert (hint is not None) is value
    assert (hint.nearest if hint else "") == nearest


# --- scores


def test_the_margin_is_the_sum_of_the_leads() -> None:
    cycle = cycle_of(node("a"), node("b"), running("x", "b", "32"), asking("1"))
    ranked = rank_nodes(cycle)
    assert ranked is not None
    assert ranked.runner_up is not None
    assert (ranked.nodes[0].name, ranked.runner_up.name, ranked.winners) == ("a", "b", 1)
    assert ranked.margin == sum(lead.difference for lead in ranked.leads) > 0
    assert ranked.leads[0].difference == max(lead.difference for lead in ranked.leads)


def test_a_tie_has_several_winners_and_no_margin() -> None:
    ranked = rank_nodes(cycle_of(node("a"), node("b"), asking("1")))
    assert ranked is not None
    assert (ranked.winners, ranked.margin) == (2, None)


def test_the_rule_that_decides_between_candidates() -> None:
    cycle = cycle_of(
        node("a", allocatable=SMALL),
        node("b", allocatable=SMALL),
        running("x", "a", "4", priority=5),
        running("y", "b", "4", priority=1),
        asking("2", priority=10),
    )
    result = cycle.post_filter
    assert result is not None
    rule = deciding_rule(result.candidates, result.best, cycle.snapshot.pods)
    assert rule == "lowest priority of the most important victim"


def test_no_rule_decides_where_there_is_a_single_candidate() -> None:
    there = running("x", "a", "4", priority=5)
    cycle = cycle_of(node("a", allocatable=SMALL), there, asking("2", priority=10))
    result = cycle.post_filter
    assert result is not None
    assert len(result.candidates) == 1
    assert deciding_rule(result.candidates, result.best, cycle.snapshot.pods) == ""


@pytest.mark.parametrize(
    ("taints", "first"),
    [
        ([], "1 node lacks 1 CPU"),
        (["node-role.kubernetes.io/control-plane:NoSchedule"], "2 nodes do not match pool=db"),
    ],
)
def test_the_nodes_that_a_pod_selects_are_a_cause_before_those_that_it_does_not(taints: list[str], first: str) -> None:
    others = [node(name, labels={"pool": "web"}) for name in "ab"]
    selected = node("c", labels={"pool": "db"}, taints=taints, allocatable={"cpu": "1", "pods": "9"})
    cycle = cycle_of(*others, selected, asking("2", nodeSelector={"pool": "db"}))
    assert because(Diagnosis(cycle))[0] == first


def test_a_cordoned_node_that_the_pod_selects_is_a_cause_before_the_nodes_that_it_does_not() -> None:
    others = [node(name, labels={"pool": "web"}) for name in "ab"]
    selected = node("c", labels={"pool": "db"}, unschedulable=True)
    cycle = cycle_of(*others, selected, asking("2", nodeSelector={"pool": "db"}))
    assert because(Diagnosis(cycle)) == ("1 node is cordoned", "2 nodes do not match pool=db")


CACHE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "cache"}}}
RACK = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize(
    ("new", "cause"),
    [
        (asking("1"), "1 node lacks 1 CPU"),
        (asking("8"), "2 nodes lack 4 CPU or more"),
        (asking("1", nodeSelector={"disk": "ssd"}), "2 nodes do not match disk=ssd"),
        (asking("1", topologySpreadConstraints=[RACK]), "2 nodes have no label rack"),
        (
            asking("1", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [CACHE]}}),
            "no pod app=cache runs on 2 nodes (podAffinity)",
        ),
    ],
)
def test_a_cause_that_no_eviction_resolves_on_any_node_comes_first(new: Manifest, cause: str) -> None:
    full, tainted = (
        node(name, taints=taints, labels={"kubernetes.io/hostname": name}, allocatable=SMALL)
        for name, taints in (("full", []), ("tainted", ["team=a:NoSchedule"]))
    )
    cycle = cycle_of(full, running("x", "full", "4"), tainted, new)
    assert because(Diagnosis(cycle)) == (cause, "1 node has the taint team=a:NoSchedule")


def test_room_is_not_the_cause_on_a_node_that_another_cause_excludes() -> None:
    nodes = (node(name, labels={"rack": "r"} if name == "a" else {}, allocatable=SMALL) for name in "ab")
    running_pods = (running(f"on-{name}", name, "4") for name in "ab")
    cycle = cycle_of(*nodes, *running_pods, asking("1", topologySpreadConstraints=[RACK]))
    assert because(Diagnosis(cycle)) == ("1 node lacks 1 CPU", "1 node has no label rack")


def test_a_tainted_and_full_node_has_both_reasons() -> None:
    tainted = node("tainted", taints=["team=a:NoSchedule"], allocatable=SMALL)
    cycle = cycle_of(
        node("full", allocatable={**SMALL, "cpu": "1"}), tainted, running("x", "tainted", "4"), asking("2")
    )
    assert because(Diagnosis(cycle)) == ("1 node lacks 1 CPU", "1 node has the taint team=a:NoSchedule and lacks 2 CPU")
