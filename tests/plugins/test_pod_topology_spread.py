"""PodTopologySpread: tables and scores, and both compared with a reference for one node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.findings import DomainCount, TopologyLabelMissing, TopologySpreadSkew
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, Status, Verdicts, error
from kschedx.kube.selectors import Selector, compile_selector, selector_from_set
from kschedx.kube.types import Pod, TopologySpreadConstraint
from kschedx.plugins.pod_topology_spread import PodTopologySpread, default_selector
from kschedx.snapshot.columns import ClusterRow, ClusterRows, TableRow, TableRows, cluster_rows
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, framework, node, only, pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}

Layout = Mapping[str, Mapping[str, int]]
"""Number of web pods by zone and node; zone "-" means no zone label."""


def hard(key: str = ZONE, /, **fields: object) -> Manifest:
    """Return a constraint on web pods that filters."""
    basic = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**basic, "labelSelector": {"matchLabels": WEB}, **fields}


def soft(key: str = ZONE, /, **fields: object) -> Manifest:
    """Return a constraint on web pods that scores."""
    return hard(key, whenUnsatisfiable="ScheduleAnyway", **fields)


def cluster(layout: Layout, *extra: Manifest) -> list[Manifest]:
    """Return the nodes with their pods; an `extra` object replaces the node or pod of its name."""
    objects = []
    for zone, nodes in layout.items():
        for name, count in nodes.items():
            objects.append(node(name, labels={HOST: name} | ({} if zone == "-" else {ZONE: zone})))
            objects += [pod(f"{name}-{i}", labels=WEB, on=name) for i in range(count)]
    extra_names = {(item["kind"], cast(Manifest, item["metadata"])["name"]) for item in extra}
    layout_objects = [
        item for item in objects if (item["kind"], cast(Manifest, item["metadata"])["name"]) not in extra_names
    ]
    return [*layout_objects, *extra]


def spread(
    objects: Sequence[Manifest],
    *constraints: Manifest,
    args: Manifest | None = None,
    gates: Mapping[str, bool] | None = None,
    labels: Mapping[str, str] = WEB,
    spec: Manifest | None = None,
) -> Cycle:
    """Return the cycle of a web pod with these constraints; PodTopologySpread is the only plugin."""
    new = pod("new", labels=labels, spec=spec, topologySpreadConstraints=list(constraints))
    return evaluate([*objects, new], "default/new", only("PodTopologySpread", args), gates)


VERDICTS = {
    Status(): "ok",
    Status(
        code=Code.UNSCHEDULABLE,
        reasons=("node(s) didn't match pod topology spread constraints",),
        plugin="PodTopologySpread",
    ): "skew",
    Status(
        code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        reasons=("node(s) didn't match pod topology spread constraints (missing required label)",),
        plugin="PodTopologySpread",
    ): "label",
}


def verdicts(cycle: Cycle) -> dict[str, str]:
    """Return `ok`, `skew`, or `label` for each node."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    entries = {}
    for row, name in enumerate(cycle.nodes.names):
        status = cycle.filter.status(TableRow(row))
        entries[name] = VERDICTS[Status(code=status.code, reasons=status.reasons, plugin=status.plugin)]
    return entries


def rejections(cycle: Cycle) -> dict[str, str]:
    return {name: verdict for name, verdict in verdicts(cycle).items() if verdict != "ok"}


# --- hard constraints

TWO_ZONES: Layout = {"1": {"a": 2, "b": 1}, "2": {"x": 1, "y": 0}}


@pytest.mark.parametrize(
    ("layout", "constraints", "expected"),
    [
        pytest.param({"1": {"a": 0}, "2": {"x": 0}}, [hard()], {}, id="no pod runs"),
        pytest.param({"1": {"a": 1}, "2": {"x": 0}}, [hard()], {"a": "skew"}, id="the fuller zone"),
        pytest.param({"1": {"a": 1}, "2": {"x": 0}}, [hard(maxSkew=2)], {}, id="a larger skew passes"),
        pytest.param(TWO_ZONES, [hard()], {"a": "skew", "b": "skew"}, id="nodes share their zone's count"),
        pytest.param(TWO_ZONES, [hard(HOST)], {"a": "skew", "b": "skew", "x": "skew"}, id="each node is a domain"),
        pytest.param({"1": {"a": 3, "b": 0}}, [hard()], {}, id="a single domain has no skew"),
        pytest.param({"1": {"a": 1}, "-": {"n": 0}}, [hard()], {"n": "label"}, id="the label is missing"),
        pytest.param({"-": {"n": 5}}, [hard()], {"n": "label"}, id="no node has the label"),
        pytest.param({"1": {"a": 2}, "": {"e": 0}}, [hard()], {"a": "skew"}, id="an empty value is a domain"),
        pytest.param(
            {"1": {"a": 1}, "2": {"x": 1}, "-": {"n": 0}},
            [hard(HOST), hard()],
            {"n": "label"},
            id="a node without one of the labels counts for no constraint",
        ),
        pytest.param(
            {"1": {"a": 1, "b": 0}, "2": {"x": 0}},
            [hard(), hard(HOST)],
            {"a": "skew", "b": "skew"},
            id="all constraints must hold",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 0}},
            [hard(maxSkew=3), hard(maxSkew=2)],
            {"a": "skew"},
            id="two constraints may share a key",
        ),
        pytest.param(
            {"1": {"a": 1}, "2": {"x": 0}, "-": {"n": 3}},
            [hard(HOST), hard()],
            {"a": "skew", "n": "label"},
            id="pods on a node without label do not count",
        ),
        pytest.param({"1": {"a": 1}, "2": {"x": 1}}, [hard(minDomains=2)], {}, id="enough domains"),
        pytest.param(
            {"1": {"a": 1}, "2": {"x": 1}},
            [hard(minDomains=3)],
            {"a": "skew", "x": "skew"},
            id="too few domains: the minimum is 0",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 0}},
            [hard(labelSelector=None)],
            {},
            id="a missing selector selects no pod, not even the pod itself",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 0}},
            [hard(labelSelector={})],
            {},
            id="an empty selector counts no pod but the pod itself",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 0}},
            [hard(labelSelector={"matchLabels": {"app": "db"}})],
            {},
            id="pods that do not match do not count",
        ),
        pytest.param({"1": {"a": 5}, "2": {"x": 0}}, [soft()], {}, id="a soft constraint rejects nothing"),
    ],
)
def test_verdicts_of_hard_constraints(layout: Layout, constraints: list[Manifest], expected: dict[str, str]) -> None:
    assert rejections(spread(cluster(layout), *constraints)) == expected


def test_the_first_constraint_that_fails_decides() -> None:
    nodes = [node("a", labels={ZONE: "1", "rack": "r"}), node("n", labels={"rack": "r"})]
    objects = [*nodes, pod("p", labels=WEB, on="a")]
    rack, zone = hard("rack", minDomains=2), hard()
    assert rejections(spread(objects, rack, zone)) == {"a": "skew", "n": "skew"}
    assert rejections(spread(objects, zone, rack)) == {"a": "skew", "n": "label"}


def test_a_pod_that_its_constraint_does_not_select_adds_0() -> None:
    assert rejections(spread(cluster({"1": {"a": 1}, "2": {"x": 0}}), hard(), labels={"app": "db"})) == {}


@pytest.mark.parametrize(
    ("other", "is_counted"),
    [
        pytest.param(pod("other", labels=WEB, on="a"), True, id="a running pod"),
        pytest.param(pod("other", labels=WEB, on="a", namespace="else"), False, id="another namespace"),
        pytest.param(pod("other", labels=WEB), False, id="not running"),
        pytest.param(pod("other", labels=WEB, on="a", status={"phase": "Succeeded"}), False, id="finished"),
        pytest.param(
            pod("other", labels=WEB, on="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            False,
            id="terminating",
        ),
    ],
)
def test_pods_that_count(other: Manifest, is_counted: bool) -> None:
    objects = cluster({"1": {"a": 0}, "2": {"x": 0}}, other)
    assert rejections(spread(objects, hard())) == ({"a": "skew"} if is_counted else {})


TAINTED = node("x", labels={HOST: "x", ZONE: "2"}, taints=["full=yes:NoSchedule"])
PREFER_NO_SCHEDULE = node("x", labels={HOST: "x", ZONE: "2"}, taints=["full=yes:PreferNoSchedule"])
ONLY_ZONE_1 = {"nodeSelector": {ZONE: "1"}}


@pytest.mark.parametrize(
    ("extra", "spec", "policies", "expected"),
    [
        pytest.param((), {}, {}, {"a": "skew"}, id="zone 2 is empty"),
        pytest.param((), ONLY_ZONE_1, {}, {}, id="by default nodes excluded by the node selector do not count"),
        pytest.param(
            (),
            ONLY_ZONE_1,
            {"nodeAffinityPolicy": "Ignore"},
            {"a": "skew"},
            id="excluded nodes count if the policy is Ignore",
        ),
        pytest.param((TAINTED,), {}, {}, {"a": "skew"}, id="by default taints are ignored"),
        pytest.param(
            (TAINTED,), {}, {"nodeTaintsPolicy": "Honor"}, {}, id="tainted nodes do not count if the policy is Honor"
        ),
        pytest.param(
            (PREFER_NO_SCHEDULE,),
            {},
            {"nodeTaintsPolicy": "Honor"},
            {"a": "skew"},
            id="PreferNoSchedule excludes no node",
        ),
        pytest.param(
            (TAINTED,),
            {"tolerations": [{"key": "full", "operator": "Exists"}]},
            {"nodeTaintsPolicy": "Honor"},
            {"a": "skew"},
            id="a tolerated taint excludes no node",
        ),
    ],
)
def test_inclusion_policies(
    extra: tuple[Manifest, ...], spec: Manifest, policies: Manifest, expected: dict[str, str]
) -> None:
    objects = cluster({"1": {"a": 1}, "2": {"x": 0}}, *extra)
    assert rejections(spread(objects, hard(**policies), spec=spec)) == expected


def test_an_excluded_node_has_the_verdict_of_its_domain() -> None:
    tainted = [node(name, labels={HOST: name, ZONE: "1"}, taints=["full:NoSchedule"]) for name in ("b", "c")]
    objects = cluster({"1": {"a": 1, "b": 7, "c": 0}, "2": {"x": 0}}, *tainted)
    honor = {"nodeTaintsPolicy": "Honor"}
    assert rejections(spread(objects, hard(**honor))) == dict.fromkeys("abc", "skew")
    assert rejections(spread(objects, hard(HOST, **honor))) == {"a": "skew"}


@pytest.mark.parametrize(("enabled", "expected"), [(True, {}), (False, {"a": "skew"})])
def test_match_label_keys_extend_the_selector(enabled: bool, expected: dict[str, str]) -> None:
    old, new = WEB | {"version": "1"}, WEB | {"version": "2"}
    objects = [*cluster({"1": {"a": 0}, "2": {"x": 0}}), pod("old", labels=old, on="a")]
    gates = dict.fromkeys(
        ("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"), enabled
    )
    cycle = spread(objects, hard(matchLabelKeys=["version", "absent"]), gates=gates, labels=new)
    assert rejections(cycle) == expected


def test_match_label_keys_need_a_selector() -> None:
    objects = cluster({"1": {"a": 2}, "2": {"x": 0}})
    assert rejections(spread(objects, hard(labelSelector=None, matchLabelKeys=["app"]))) == {}
    assert rejections(spread(objects, hard(labelSelector={}, matchLabelKeys=["app"]))) == {"a": "skew"}


@pytest.mark.parametrize(
    ("constraints", "skipped"),
    [
        ([], True),
        ([soft()], True),
        ([hard()], False),
        ([soft(), hard()], False),
    ],
)
def test_pre_filter_skips_pods_without_hard_constraints(constraints: list[Manifest], skipped: bool) -> None:
    cycle = spread(cluster({"1": {"a": 0, "b": 0}}), *constraints)
    assert ("PodTopologySpread" in cycle.filter_skipped) is skipped


# --- removed and added pods


def plugin_on(objects: list[Manifest]) -> tuple[Framework, PodTopologySpread, Pod]:
    """Return the plugin on a cluster, and the pod `new`."""
    work = framework(objects, only("PodTopologySpread"))
    (plugin,) = work.plugins("filter", PodTopologySpread)
    return work, plugin, work.snapshot.pods[work.snapshot.pods.rows["default/new"]]


CROWDED_CLUSTER = [
    *cluster({"1": {"a": 2, "b": 1}, "2": {"x": 0}}),
    node("c", labels={HOST: "c", ZONE: "1"}, taints=["full:NoSchedule"]),
    pod("c-0", labels=WEB, on="c"),
    pod("db", labels={"app": "db"}, on="a"),
    pod("other", labels=WEB, on="a", namespace="else"),
    pod("old", labels=WEB, on="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
]
"""Four pods count in zone 1, three of them on nodes without a taint."""


def verdicts_without(removed_keys: Sequence[str], manifest: Manifest) -> tuple[Sequence[str], Verdicts]:
    """Return node names and verdicts after the pods are removed from the crowded cluster."""
    work, plugin, new = plugin_on([*CROWDED_CLUSTER, pod("new", labels=WEB, topologySpreadConstraints=[manifest])])
    state = CycleState()
    assert plugin.pre_filter(state, new, work.nodes).status.is_success
    pods = np.array([work.snapshot.pods.rows[key] for key in removed_keys], dtype=np.int64)
    change = PodRows(pods=pods, nodes=ClusterRows(work.snapshot.pods.node[pods]))
    plugin.remove_pods(state, new, work.nodes, change)
    return work.nodes.names, plugin.filter(state, new, work.nodes.remove_pods(change))


AT_MOST_2, AT_MOST_3 = hard(maxSkew=3), hard(maxSkew=4)
AT_MOST_2_UNTAINTED = hard(maxSkew=3, nodeTaintsPolicy="Honor")


@pytest.mark.parametrize(
    ("manifest", "removed_keys", "expected"),
    [
        pytest.param(AT_MOST_2, [], "abc", id="no pod"),
        pytest.param(AT_MOST_2, ["default/a-0"], "abc", id="not enough"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/a-1"], "bc", id="only the pod's node changes"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/b-0"], "abc", id="each node changes alone"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/db"], "abc", id="a pod that does not match"),
        pytest.param(AT_MOST_2, ["default/a-0", "else/other"], "abc", id="another namespace"),
        pytest.param(
            AT_MOST_2, ["default/a-0", "default/old"], "bc", id="a terminating pod, which did not count before"
        ),
        pytest.param(AT_MOST_3, ["default/c-0"], "ab", id="on a tainted node"),
        pytest.param(AT_MOST_2_UNTAINTED, ["default/a-0"], "bc", id="on a node that is included"),
        pytest.param(AT_MOST_2_UNTAINTED, ["default/c-0"], "abc", id="on a node that is excluded"),
    ],
)
def test_removed_pods_change_only_their_node(manifest: Manifest, removed_keys: list[str], expected: str) -> None:
    names, verdicts = verdicts_without(removed_keys, manifest)
    assert {name for name, code in zip(names, verdicts.codes, strict=True) if code} == set(expected)


def test_a_finding_counts_removed_pods_of_its_node() -> None:
    names, verdicts = verdicts_without(["default/a-0"], AT_MOST_2)
    domain_counts = {}
    for name in "ab":
        (finding,) = verdicts.explain(TableRow(names.index(name)))
        assert isinstance(finding, TopologySpreadSkew)
        domain_counts[name] = [(domain.domain, domain.matching) for domain in finding.domains]
    assert domain_counts == {"a": [("1", 3), ("2", 0)], "b": [("1", 4), ("2", 0)]}


def test_nominated_pods_count_only_on_their_node() -> None:
    objects = cluster({"1": {"a": 0, "b": 0}, "2": {"x": 0}})
    nominated_pod = pod("sooner", labels=WEB, priority=10, status={"nominatedNodeName": "a"})
    assert rejections(spread([*objects, nominated_pod], hard())) == {"a": "skew"}


# --- findings


def findings(cycle: Cycle, name: str) -> tuple[object, ...]:
    assert cycle.filter is not None
    assert cycle.nodes is not None
    return cycle.filter.status(TableRow(cycle.nodes.names.index(name))).findings


def test_a_finding_has_all_counts() -> None:
    cycle = spread(cluster(TWO_ZONES), soft(), hard(HOST, maxSkew=9), hard())
    assert findings(cycle, "b") == (
        TopologySpreadSkew(
            constraint=2,
            topology_key=ZONE,
            domain="1",
            matching=3,
            itself=1,
            minimum=1,
            max_skew=1,
            domains=(DomainCount(domain="1", matching=3), DomainCount(domain="2", matching=1)),
            domain_count=2,
        ),
    )


def test_every_violated_constraint_has_a_finding() -> None:
    cycle = spread(cluster({"1": {"a": 2}, "2": {"x": 0}, "-": {"n": 0}}), hard(HOST), hard())
    assert [type(finding) for finding in findings(cycle, "a")] == [TopologySpreadSkew, TopologySpreadSkew]
    assert findings(cycle, "n") == (TopologyLabelMissing(constraint=1, topology_key=ZONE),)


def test_a_finding_has_min_domains_if_it_matters() -> None:
    def skew(min_domains: int) -> TopologySpreadSkew:
        objects = cluster({"1": {"a": 3}, "2": {"x": 1}})
        return cast(TopologySpreadSkew, findings(spread(objects, hard(minDomains=min_domains)), "a")[0])

    assert (skew(2).min_domains, skew(2).minimum) == (None, 1)
    assert (skew(3).min_domains, skew(3).minimum) == (3, 0)


def test_a_finding_lists_the_ten_largest_domains() -> None:
    objects = cluster({"z": {f"n{i:02}": i for i in range(12)}})
    skew = cast(TopologySpreadSkew, findings(spread(objects, hard(HOST)), "n01")[0])
    assert skew.domain_count == 12
    assert [(domain.domain, domain.matching) for domain in skew.domains] == [(f"n{i:02}", i) for i in range(11, 1, -1)]


# --- scores


def scores(cycle: Cycle) -> tuple[dict[str, int], dict[str, int]]:
    """Return the raw and the normalized score of each node."""
    assert cycle.scores is not None
    raw, normalized = (kind["PodTopologySpread"] for kind in (cycle.scores.raw, cycle.scores.normalized))
    names = cycle.scores.nodes.names
    return dict(zip(names, raw.tolist(), strict=True)), dict(zip(names, normalized.tolist(), strict=True))


@pytest.mark.parametrize(
    ("layout", "constraints", "raw", "normalized"),
    [
        pytest.param(  # ln(2 + 2) = 1.386
            {"1": {"a": 3, "b": 1}, "2": {"x": 1}},
            [soft()],
            {"a": 6, "b": 6, "x": 1},
            {"a": 16, "b": 16, "x": 100},
            id="pods in the zone",
        ),
        pytest.param(  # ln(3 + 2) = 1.609
            {"1": {"a": 3, "b": 1}, "2": {"x": 0}},
            [soft(HOST)],
            {"a": 5, "b": 2, "x": 0},
            {"a": 0, "b": 60, "x": 100},
            id="pods on the node",
        ),
        pytest.param(  # + (maxSkew - 1) for each
            {"1": {"a": 3, "b": 1}, "2": {"x": 0}},
            [soft(HOST, maxSkew=5)],
            {"a": 9, "b": 6, "x": 4},
            {"a": 44, "b": 77, "x": 100},
            id="a large maxSkew reduces differences",
        ),
        pytest.param(  # 3 * 1.386 + 3 * 1.609 = 8.99
            {"1": {"a": 3, "b": 0}, "2": {"x": 0}},
            [soft(), soft(HOST)],
            {"a": 9, "b": 4, "x": 0},
            {"a": 0, "b": 55, "x": 100},
            id="constraints add up",
        ),
        pytest.param(
            {"1": {"a": 0}, "2": {"x": 0}},
            [soft()],
            {"a": 0, "x": 0},
            {"a": 100, "x": 100},
            id="no pod runs",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 1}, "-": {"n": 0}},
            [soft()],
            {"a": 3, "x": 1, "n": 0},
            {"a": 33, "x": 100, "n": 0},
            id="a node without the label is not scored",
        ),
        pytest.param({"-": {"m": 0, "n": 1}}, [soft()], {"m": 0, "n": 0}, {"m": 0, "n": 0}, id="no node has the label"),
        pytest.param(
            {"1": {"a": 0}, "2": {"x": 0}},
            [soft(maxSkew=0)],
            {"a": -1, "x": -1},
            {"a": 0, "x": 0},
            id="maxSkew 0, and no pod runs",
        ),
    ],
)
def test_raw_and_normalized_scores(
    layout: Layout, constraints: list[Manifest], raw: dict[str, int], normalized: dict[str, int]
) -> None:
    assert scores(spread(cluster(layout), *constraints)) == (raw, normalized)


def test_weights_count_domains_of_feasible_nodes() -> None:
    # the hard constraint rejects zone 3, so two domains remain: 2 * ln(2 + 2) = 2.77
    full = hard(HOST, labelSelector={"matchLabels": {"app": "batch"}}, minDomains=9)
    objects = [*cluster({"1": {"a": 2}, "2": {"x": 0}, "3": {"y": 0}}), pod("b", labels={"app": "batch"}, on="y")]
    labels = WEB | {"app": "batch"}
    cycle = spread(objects, full, soft(), labels=labels)
    assert verdicts(cycle) == {"a": "ok", "x": "ok", "y": "skew"}
    assert scores(cycle)[0] == {"a": 3, "x": 0}


def test_policies_do_not_exclude_pods_of_the_node_itself() -> None:
    tainted = node("x", labels={HOST: "x", ZONE: "2"}, taints=["full:NoSchedule"])
    objects = cluster({"1": {"a": 0}, "2": {"x": 2}}, tainted)
    assert scores(spread(objects, soft(HOST, nodeTaintsPolicy="Honor")))[0] == {"a": 0, "x": 3}
    assert scores(spread(objects, soft(nodeTaintsPolicy="Honor")))[0] == {"a": 0, "x": 0}


# --- default constraints

SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": WEB},
}


def test_system_defaults_score_pods_of_a_service() -> None:
    objects = [*cluster({"1": {"a": 1, "b": 0}, "2": {"x": 0}}), SERVICE]
    # host: pods * ln(3 + 2) + 2, zone: pods * ln(2 + 2) + 4
    assert scores(spread(objects))[0] == {"a": 9, "b": 7, "x": 6}


def test_system_defaults_score_nodes_without_a_zone_by_their_host() -> None:
    objects = [*cluster({"1": {"a": 0}, "-": {"m": 2, "n": 0}}), SERVICE]
    assert scores(spread(objects))[0] == {"a": 6, "m": 5, "n": 2}


@pytest.mark.parametrize(
    ("objects", "constraints"),
    [
        pytest.param([], (), id="no Service"),
        pytest.param([SERVICE], (hard(),), id="the pod has its own constraint"),
    ],
)
def test_pods_without_default_constraints(objects: list[Manifest], constraints: tuple[Manifest, ...]) -> None:
    cycle = spread([*cluster({"1": {"a": 0, "b": 0}}), *objects], *constraints)
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("PodTopologySpread",)


def test_list_defaults_replace_the_system_defaults() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args: Manifest = {"defaultingType": "List", "defaultConstraints": [constraint]}
    objects = cluster({"1": {"a": 1}, "2": {"x": 0, "y": 0}})
    cycle = spread([*objects, SERVICE], args=args)
    assert rejections(cycle) == {"a": "skew"}
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("PodTopologySpread",)
    assert rejections(spread(objects, args=args)) == {}


def test_list_defaults_score_only_nodes_with_all_labels() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    args: Manifest = {"defaultingType": "List", "defaultConstraints": [constraint]}
    objects = [*cluster({"1": {"a": 2}, "2": {"x": 1}, "-": {"n": 0}}), SERVICE]
    assert scores(spread(objects, args=args)) == ({"a": 3, "x": 1, "n": 0}, {"a": 33, "x": 100, "n": 0})


def owner(kind: str, version: str, **spec: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "own", "namespace": "default"}, "spec": spec}


OTHER_SERVICES = [
    SERVICE | {"metadata": {"name": "elsewhere", "namespace": "else"}, "spec": {"selector": {"tier": "front"}}},
    SERVICE | {"metadata": {"name": "db", "namespace": "default"}, "spec": {"selector": {"app": "db"}}},
    SERVICE | {"metadata": {"name": "manual", "namespace": "default"}, "spec": {}},
]
TRACK = {"matchExpressions": [{"key": "track", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("objects", "controller", "expected"),
    [
        pytest.param([], None, "", id="no object"),
        pytest.param([SERVICE, *OTHER_SERVICES], None, "app=web", id="Services that select the pod"),
        pytest.param(
            [
                SERVICE,
                SERVICE
                | {"metadata": {"name": "front", "namespace": "default"}, "spec": {"selector": {"tier": "front"}}},
            ],
            None,
            "app=web, tier=front",
            id="two Services",
        ),
        pytest.param([owner("ReplicaSet", "apps/v1", selector=TRACK)], "ReplicaSet", "track Exists", id="ReplicaSet"),
        pytest.param(
            [owner("StatefulSet", "apps/v1", selector=TRACK)], "StatefulSet", "track Exists", id="StatefulSet"
        ),
        pytest.param(
            [SERVICE, owner("ReplicaSet", "apps/v1", selector=TRACK)], "ReplicaSet", "app=web, track Exists", id="both"
        ),
        pytest.param([SERVICE], "ReplicaSet", "app=web", id="the ReplicaSet is missing"),
        pytest.param([owner("StatefulSet", "apps/v1", selector=TRACK)], "ReplicaSet", "", id="another kind"),
        pytest.param(
            [SERVICE, owner("ReplicationController", "v1", selector={"app": "own"})],
            "ReplicationController",
            "app=own",
            id="a ReplicationController overrides the Services",
        ),
        pytest.param([owner("DaemonSet", "apps/v1", selector=TRACK)], "DaemonSet", "", id="a kind without defaults"),
    ],
)
def test_default_selector(objects: list[Manifest], controller: str | None, expected: str) -> None:
    version = "v1" if controller == "ReplicationController" else "apps/v1"
    reference = {"apiVersion": version, "kind": controller, "name": "own", "uid": "u", "controller": True}
    metadata = {"ownerReferences": [reference]} if controller else {}
    snapshot = Snapshot.from_objects([*objects, pod("new", labels=WEB | {"tier": "front"}, metadata=metadata)])
    assert str(default_selector(snapshot.pods[0], snapshot)) == expected


# --- laws: columns compared with a reference for one node


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The documented rules, for one node at a time."""

    snapshot: Snapshot
    pod: Pod

    def selector(self, topology_spread_constraint: TopologySpreadConstraint) -> Selector:
        return compile_selector(topology_spread_constraint.label_selector)

    def constraints(self, action: str) -> list[TopologySpreadConstraint]:
        return [
            topology_spread_constraint
            for topology_spread_constraint in self.pod.spec.topology_spread_constraints
            if topology_spread_constraint.when_unsatisfiable == action
        ]

    def labels(self, row: int) -> dict[str, str]:
        return self.snapshot.cluster.nodes[row].metadata.labels

    def is_included(self, topology_spread_constraint: TopologySpreadConstraint, row: int, action: str) -> bool:
        if any(other.topology_key not in self.labels(row) for other in self.constraints(action)):
            return False
        if topology_spread_constraint.node_affinity_policy != "Ignore" and not selector_from_set(
            self.pod.spec.node_selector
        ).matches(self.labels(row)):
            return False
        return (
            topology_spread_constraint.node_taints_policy != "Honor" or not self.snapshot.cluster.nodes[row].spec.taints
        )

    def count_on(self, topology_spread_constraint: TopologySpreadConstraint, row: int) -> int:
        selector = self.selector(topology_spread_constraint)
        return sum(
            not selector.empty and selector.matches(item.metadata.labels) and not item.metadata.deletion_timestamp
            for item in self.pods_on(row)
            if item.metadata.namespace == self.pod.metadata.namespace
        )

    def pods_on(self, row: int) -> Iterator[Pod]:
        return (self.snapshot.pods[int(item)] for item in self.snapshot.pods.on_node(ClusterRow(row)))

    def verdict(self, row: int, removed: Sequence[int]) -> Code:
        """Return the verdict of a node after these pods are removed."""
        for constraint in self.constraints("DoNotSchedule"):
            key, selector = constraint.topology_key, self.selector(constraint)
            if key not in self.labels(row):
                return Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            counts: dict[str, int] = {}
            for other in range(len(self.snapshot.cluster.nodes)):
                if self.is_included(constraint, other, "DoNotSchedule"):
                    value = self.labels(other)[key]
                    counts[value] = counts.get(value, 0) + self.count_on(constraint, other)
            if self.is_included(constraint, row, "DoNotSchedule"):
                removed_pods = (self.snapshot.pods[item].metadata for item in removed)
                counts[self.labels(row)[key]] -= sum(
                    item.namespace == self.pod.metadata.namespace and selector.matches(item.labels)
                    for item in removed_pods
                )
            minimum = 0 if len(counts) < (constraint.min_domains or 1) else min(counts.values())
            own = selector.matches(self.pod.metadata.labels)
            if counts.get(self.labels(row)[key], 0) + own - minimum > constraint.max_skew:
                return Code.UNSCHEDULABLE
        return Code.SUCCESS

    def score(self, row: int, feasible: Sequence[int]) -> int | None:
        """Return the score of a node, or None if it is not scored."""
        constraints = self.constraints("ScheduleAnyway")
        scored_rows = [
            other
            for other in feasible
            if all(constraint.topology_key in self.labels(other) for constraint in constraints)
        ]
        if row not in scored_rows:
            return None
        total = 0.0
        for constraint in constraints:
            key = constraint.topology_key
            if key == HOST:
                size, count = len(scored_rows), self.count_on(constraint, row)
            else:
                size = len({self.labels(other)[key] for other in scored_rows})
                count = sum(
                    self.count_on(constraint, other)
                    for other in range(len(self.snapshot.cluster.nodes))
                    if self.is_included(constraint, other, "ScheduleAnyway")
                    and self.labels(other)[key] == self.labels(row)[key]
                )
            total += count * math.log(size + 2) + (constraint.max_skew - 1)
        return math.floor(total + 0.5)


SELECTORS = st.sampled_from(
    [None, {}, {"matchLabels": WEB}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}]
)


ACTIONS = st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])
POLICIES = st.sampled_from([None, "Honor", "Ignore"])


@st.composite
def random_constraints(draw: st.DrawFn, action: str | None = None) -> Manifest:
    key, policies = draw(st.sampled_from([HOST, ZONE])), draw(st.tuples(POLICIES, POLICIES))
    fields: Manifest = {"maxSkew": draw(st.integers(1, 3)), "labelSelector": draw(SELECTORS)}
    fields |= {"nodeAffinityPolicy": policies[0], "nodeTaintsPolicy": policies[1]}
    if (action or draw(ACTIONS)) == "ScheduleAnyway":
        return soft(key, **fields)
    return hard(key, minDomains=draw(st.sampled_from([None, None, 1, 2, 3])), **fields)


@st.composite
def random_clusters(draw: st.DrawFn, action: str) -> list[Manifest]:
    """Return nodes, some without labels or with taints, with pods on them, and a pod `new`.

    It has a constraint with `action` as whenUnsatisfiable, and perhaps others.
    """
    names = [f"n{i}" for i in range(draw(st.integers(1, 6)))]
    objects = [
        node(
            name,
            labels=({HOST: name} if draw(st.integers(0, 5)) else {})
            | draw(st.sampled_from([{}, {ZONE: ""}, {ZONE: "1"}, {ZONE: "1"}, {ZONE: "2"}, {ZONE: "2"}]))
            | draw(st.sampled_from([{}, {"disk": "ssd"}])),
            taints=draw(st.sampled_from([(), (), ("full:NoSchedule",)])),
        )
        for name in names
    ]
    for i in range(draw(st.integers(0, 14))):
        metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if draw(st.integers(0, 6)) == 0 else {}
        labels = draw(st.sampled_from([{}, WEB, WEB, {"app": "db"}]))
        namespace = draw(st.sampled_from(["default", "default", "default", "else"]))
        objects.append(
            pod(f"p{i}", labels=labels, namespace=namespace, on=draw(st.sampled_from(names)), metadata=metadata)
        )
    constraints = [*draw(st.lists(random_constraints(), max_size=2)), draw(random_constraints(action))]
    spec: Manifest = {"nodeSelector": draw(st.sampled_from([{}, {"disk": "ssd"}]))}
    labels = draw(st.sampled_from([WEB, {}]))
    return [*objects, pod("new", labels=labels, spec=spec, topologySpreadConstraints=constraints)]


def codes_and_check_findings(plugin: PodTopologySpread, state: CycleState, pod: Pod, nodes: NodeTable) -> list[int]:
    """Return the codes; check that exactly the rejected nodes have findings, and that the findings are consistent."""
    verdicts = plugin.filter(state, pod, nodes)
    for row, code in enumerate(verdicts.codes):
        explanation = verdicts.explain(TableRow(row))
        assert bool(explanation) == (code != Code.SUCCESS)
        if code != Code.SUCCESS:
            assert isinstance(explanation[0], TopologySpreadSkew) == (code == Code.UNSCHEDULABLE)
        for item in explanation:
            if isinstance(item, TopologySpreadSkew):
                assert item.skew > item.max_skew
                assert DomainCount(domain=item.domain, matching=item.matching) in item.domains or not item.matching
    return [int(code) for code in verdicts.codes]


@given(random_clusters("DoNotSchedule"), st.data())
def test_verdicts_equal_the_reference(objects: list[Manifest], data: st.DataObject) -> None:
    work, plugin, new = plugin_on(objects)
    reference = Reference(snapshot=work.snapshot, pod=new)
    state = CycleState()
    assert plugin.pre_filter(state, new, work.nodes).status.is_success
    rows = range(len(work.nodes))
    before = codes_and_check_findings(plugin, state, new, work.nodes)
    assert before == [reference.verdict(row, ()) for row in rows]

    running = np.flatnonzero(work.snapshot.pods.node >= 0)
    removed_rows = data.draw(st.lists(st.sampled_from(running.tolist()), unique=True) if len(running) else st.just([]))
    pods = np.array(removed_rows, dtype=np.int64)
    change = PodRows(pods=pods, nodes=ClusterRows(work.snapshot.pods.node[pods]))
    clone = state.clone()
    plugin.remove_pods(clone, new, work.nodes, change)
    subset = work.nodes.remove_pods(change).take(TableRows(np.array(data.draw(st.permutations(rows)), dtype=np.int64)))
    removed_by_row = {row: [item for item in removed_rows if work.snapshot.pods.node[item] == row] for row in rows}
    expected = [reference.verdict(int(row), removed_by_row[int(row)]) for row in subset.rows]
    assert codes_and_check_findings(plugin, clone, new, subset) == expected

    assert codes_and_check_findings(plugin, state, new, work.nodes) == before
    plugin.add_pods(clone, new, subset, change)
    assert codes_and_check_findings(plugin, clone, new, work.nodes) == before


@given(random_clusters("ScheduleAnyway"), st.data())
def test_scores_equal_the_reference(objects: list[Manifest], data: st.DataObject) -> None:
    work, plugin, new = plugin_on(objects)
    reference = Reference(snapshot=work.snapshot, pod=new)
    rows = data.draw(st.lists(st.integers(0, len(work.nodes) - 1), min_size=1, unique=True))
    feasible = work.nodes.at(cluster_rows([ClusterRow(row) for row in rows]))
    state = CycleState()
    assert plugin.pre_score(state, new, feasible).is_success
    raw = plugin.score(state, new, feasible)
    expected = [reference.score(row, rows) for row in rows]
    assert raw.tolist() == [item or 0 for item in expected]

    scored_values = [item for item in expected if item is not None]
    high, low = max(scored_values, default=0), min(scored_values, default=0)
    normalized = [0 if item is None else 100 * (high + low - item) // high if high else 100 for item in expected]
    assert plugin.normalize_score(state, new, feasible, raw).tolist() == normalized


# --- selectors that the API server rejects

INVALID_SELECTOR = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}


@pytest.mark.parametrize(
    "manifest", [hard(labelSelector=INVALID_SELECTOR), soft(labelSelector=INVALID_SELECTOR)], ids=["hard", "soft"]
)
def test_an_invalid_selector_is_an_internal_error(manifest: Manifest) -> None:
    work, plugin, new = plugin_on([node("a"), pod("new", topologySpreadConstraints=[manifest])])
    text = '"Like" is not a valid label selector operator'
    filtered = plugin.pre_filter(CycleState(), new, work.nodes).status
    scored = plugin.pre_score(CycleState(), new, work.nodes)
    if manifest["whenUnsatisfiable"] == "DoNotSchedule":
        assert scored.is_skip
        assert filtered == error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {text}")
    else:
        assert filtered.is_skip
        assert scored == error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {text}")
