"""PodTopologySpread: tables, scores with figures, and both against a reference that looks at one node at a time."""

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
"""Zone to node to the number of web pods on it. Zone "-" is no zone label."""


def hard(key: str = ZONE, /, **fields: object) -> Manifest:
    """A constraint on web pods that filters."""
    basic = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**basic, "labelSelector": {"matchLabels": WEB}, **fields}


def soft(key: str = ZONE, /, **fields: object) -> Manifest:
    """A constraint on web pods that scores."""
    return hard(key, whenUnsatisfiable="ScheduleAnyway", **fields)


def cluster(layout: Layout, *extra: Manifest) -> list[Manifest]:
    """The nodes with their pods. `extra` with the name of a node or pod of the layout takes its place."""
    objects = []
    for zone, nodes in layout.items():
        for name, count in nodes.items():
            objects.append(node(name, labels={HOST: name} | ({} if zone == "-" else {ZONE: zone})))
            objects += [pod(f"{name}-{i}", labels=WEB, on=name) for i in range(count)]
    replaced = {(item["kind"], cast(Manifest, item["metadata"])["name"]) for item in extra}
    kept = [item for item in objects if (item["kind"], cast(Manifest, item["metadata"])["name"]) not in replaced]
    return [*kept, *extra]


def spread(
    objects: Sequence[Manifest],
    *constraints: Manifest,
    args: Manifest | None = None,
    gates: Mapping[str, bool] | None = None,
    labels: Mapping[str, str] = WEB,
    spec: Manifest | None = None,
) -> Cycle:
    """The cycle of a web pod with these constraints, in which PodTopologySpread decides alone."""
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
    """Node to `ok`, `skew` or `label`."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    entries = {}
    for row, name in enumerate(cycle.nodes.names):
        status = cycle.filter.status(TableRow(row))
        entries[name] = VERDICTS[Status(code=status.code, reasons=status.reasons, plugin=status.plugin)]
    return entries


def rejected(cycle: Cycle) -> dict[str, str]:
    return {name: verdict for name, verdict in verdicts(cycle).items() if verdict != "ok"}


# --- hard constraints

TWO_ZONES: Layout = {"1": {"a": 2, "b": 1}, "2": {"x": 1, "y": 0}}


@pytest.mark.parametrize(
    ("layout", "constraints", "expected"),
    [
        pytest.param({"1": {"a": 0}, "2": {"x": 0}}, [hard()], {}, id="nothing runs yet"),
        pytest.param({"1": {"a": 1}, "2": {"x": 0}}, [hard()], {"a": "skew"}, id="the fuller zone"),
        pytest.param({"1": {"a": 1}, "2": {"x": 0}}, [hard(maxSkew=2)], {}, id="a larger skew allows it"),
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
            id="a node without one label counts for no constraint",
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
            id="no selector selects nothing, not even the pod itself",
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
def test_filter(layout: Layout, constraints: list[Manifest], expected: dict[str, str]) -> None:
    assert rejected(spread(cluster(layout), *constraints)) == expected


def test_the_first_constraint_that_fails_decides() -> None:
    nodes = [node("a", labels={ZONE: "1", "rack": "r"}), node("n", labels={"rack": "r"})]
    objects = [*nodes, pod("p", labels=WEB, on="a")]
    rack, zone = hard("rack", minDomains=2), hard()
    assert rejected(spread(objects, rack, zone)) == {"a": "skew", "n": "skew"}
    assert rejected(spread(objects, zone, rack)) == {"a": "skew", "n": "label"}


def test_a_pod_that_its_own_constraint_does_not_select_adds_nothing() -> None:
    assert rejected(spread(cluster({"1": {"a": 1}, "2": {"x": 0}}), hard(), labels={"app": "db"})) == {}


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        pytest.param(pod("other", labels=WEB, on="a"), True, id="as it should be"),
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
def test_which_pods_count(other: Manifest, counts: bool) -> None:
    objects = cluster({"1": {"a": 0}, "2": {"x": 0}}, other)
    assert rejected(spread(objects, hard())) == ({"a": "skew"} if counts else {})


TAINTED = node("x", labels={HOST: "x", ZONE: "2"}, taints=["full=yes:NoSchedule"])
PREFER_NOT = node("x", labels={HOST: "x", ZONE: "2"}, taints=["full=yes:PreferNoSchedule"])
ONLY_ZONE_1 = {"nodeSelector": {ZONE: "1"}}


@pytest.mark.parametrize(
    ("extra", "spec", "policies", "expected"),
    [
        pytest.param((), {}, {}, {"a": "skew"}, id="zone 2 is empty"),
        pytest.param((), ONLY_ZONE_1, {}, {}, id="by default a node that the selector excludes is left out"),
        pytest.param((), ONLY_ZONE_1, {"nodeAffinityPolicy": "Ignore"}, {"a": "skew"}, id="unless it is ignored"),
        pytest.param((TAINTED,), {}, {}, {"a": "skew"}, id="by default taints are ignored"),
        pytest.param((TAINTED,), {}, {"nodeTaintsPolicy": "Honor"}, {}, id="unless they are honored"),
        pytest.param(
            (PREFER_NOT,), {}, {"nodeTaintsPolicy": "Honor"}, {"a": "skew"}, id="a preference excludes nothing"
        ),
        pytest.param(
            (TAINTED,),
            {"tolerations": [{"key": "full", "operator": "Exists"}]},
            {"nodeTaintsPolicy": "Honor"},
            {"a": "skew"},
            id="a tolerated taint excludes nothing",
        ),
    ],
)
def test_inclusion_policies(
    extra: tuple[Manifest, ...], spec: Manifest, policies: Manifest, expected: dict[str, str]
) -> None:
    objects = cluster({"1": {"a": 1}, "2": {"x": 0}}, *extra)
    assert rejected(spread(objects, hard(**policies), spec=spec)) == expected


def test_an_excluded_node_is_judged_by_its_domain() -> None:
    tainted = [node(name, labels={HOST: name, ZONE: "1"}, taints=["full:NoSchedule"]) for name in ("b", "c")]
    objects = cluster({"1": {"a": 1, "b": 7, "c": 0}, "2": {"x": 0}}, *tainted)
    honor = {"nodeTaintsPolicy": "Honor"}
    assert rejected(spread(objects, hard(**honor))) == dict.fromkeys("abc", "skew")
    assert rejected(spread(objects, hard(HOST, **honor))) == {"a": "skew"}


@pytest.mark.parametrize(("enabled", "expected"), [(True, {}), (False, {"a": "skew"})])
def test_match_label_keys(enabled: bool, expected: dict[str, str]) -> None:
    old, new = WEB | {"version": "1"}, WEB | {"version": "2"}
    objects = [*cluster({"1": {"a": 0}, "2": {"x": 0}}), pod("old", labels=old, on="a")]
    gates = dict.fromkeys(
        ("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"), enabled
    )
    cycle = spread(objects, hard(matchLabelKeys=["version", "absent"]), gates=gates, labels=new)
    assert rejected(cycle) == expected


def test_match_label_keys_do_not_make_a_selector() -> None:
    objects = cluster({"1": {"a": 2}, "2": {"x": 0}})
    assert rejected(spread(objects, hard(labelSelector=None, matchLabelKeys=["app"]))) == {}
    assert rejected(spread(objects, hard(labelSelector={}, matchLabelKeys=["app"]))) == {"a": "skew"}


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


# --- what if: pods removed and added


def prepared(objects: list[Manifest]) -> tuple[Framework, PodTopologySpread, Pod]:
    """The plugin on a cluster, and the pod `new` in it."""
    built = framework(objects, only("PodTopologySpread"))
    (plugin,) = built.plugins("filter", PodTopologySpread)
    return built, plugin, built.snapshot.pods[built.snapshot.pods.rows["default/new"]]


CROWDED = [
    *cluster({"1": {"a": 2, "b": 1}, "2": {"x": 0}}),
    node("c", labels={HOST: "c", ZONE: "1"}, taints=["full:NoSchedule"]),
    pod("c-0", labels=WEB, on="c"),
    pod("db", labels={"app": "db"}, on="a"),
    pod("other", labels=WEB, on="a", namespace="else"),
    pod("old", labels=WEB, on="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
]
"""Four pods count in zone 1, three of them on nodes without taint."""


def without(removed: Sequence[str], manifest: Manifest) -> tuple[Sequence[str], Verdicts]:
    """Node names and verdicts after the pods have been removed from the crowded cluster."""
    built, plugin, new = prepared([*CROWDED, pod("new", labels=WEB, topologySpreadConstraints=[manifest])])
    state = CycleState()
    assert plugin.pre_filter(state, new, built.nodes).status.is_success
    pods = np.array([built.snapshot.pods.rows[key] for key in removed], dtype=np.int64)
    change = PodRows(pods=pods, nodes=ClusterRows(built.snapshot.pods.node[pods]))
    plugin.remove_pods(state, new, built.nodes, change)
    return built.nodes.names, plugin.filter(state, new, built.nodes.remove_pods(change))


AT_MOST_2, AT_MOST_3 = hard(maxSkew=3), hard(maxSkew=4)
AT_MOST_2_UNTAINTED = hard(maxSkew=3, nodeTaintsPolicy="Honor")


@pytest.mark.parametrize(
    ("manifest", "removed", "expected"),
    [
        pytest.param(AT_MOST_2, [], "abc", id="nothing"),
        pytest.param(AT_MOST_2, ["default/a-0"], "abc", id="not enough"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/a-1"], "bc", id="only the node itself sees it"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/b-0"], "abc", id="each in its own world"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/db"], "abc", id="a pod that does not match"),
        pytest.param(AT_MOST_2, ["default/a-0", "else/other"], "abc", id="another namespace"),
        pytest.param(AT_MOST_2, ["default/a-0", "default/old"], "bc", id="a terminating pod, though it did not count"),
        pytest.param(AT_MOST_3, ["default/c-0"], "ab", id="on a tainted node"),
        pytest.param(AT_MOST_2_UNTAINTED, ["default/a-0"], "bc", id="on a node that is included"),
        pytest.param(AT_MOST_2_UNTAINTED, ["default/c-0"], "abc", id="on a node that is excluded"),
    ],
)
def test_removed_pods(manifest: Manifest, removed: list[str], expected: str) -> None:
    names, answer = without(removed, manifest)
    assert {name for name, code in zip(names, answer.codes, strict=True) if code} == set(expected)


def test_a_finding_tells_of_the_nodes_own_world() -> None:
    names, answer = without(["default/a-0"], AT_MOST_2)
    seen = {}
    for name in "ab":
        (finding,) = answer.explain(TableRow(names.index(name)))
        assert isinstance(finding, TopologySpreadSkew)
        seen[name] = [(domain.domain, domain.matching) for domain in finding.domains]
    assert seen == {"a": [("1", 3), ("2", 0)], "b": [("1", 4), ("2", 0)]}


def test_nominated_pods_count_on_their_node_alone() -> None:
    objects = cluster({"1": {"a": 0, "b": 0}, "2": {"x": 0}})
    nominated = pod("sooner", labels=WEB, priority=10, status={"nominatedNodeName": "a"})
    assert rejected(spread([*objects, nominated], hard())) == {"a": "skew"}


# --- findings


def findings(cycle: Cycle, name: str) -> tuple[object, ...]:
    assert cycle.filter is not None
    assert cycle.nodes is not None
    return cycle.filter.status(TableRow(cycle.nodes.names.index(name))).findings


def test_the_finding_closes_the_arithmetic() -> None:
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


def test_every_constraint_that_fails_has_a_finding() -> None:
    cycle = spread(cluster({"1": {"a": 2}, "2": {"x": 0}, "-": {"n": 0}}), hard(HOST), hard())
    assert [type(finding) for finding in findings(cycle, "a")] == [TopologySpreadSkew, TopologySpreadSkew]
    assert findings(cycle, "n") == (TopologyLabelMissing(constraint=1, topology_key=ZONE),)


def test_the_finding_names_min_domains_where_it_counts() -> None:
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
    """Node to raw and to normalized score."""
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
            id="a large maxSkew waters differences down",
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
            id="nothing runs yet",
        ),
        pytest.param(
            {"1": {"a": 2}, "2": {"x": 1}, "-": {"n": 0}},
            [soft()],
            {"a": 3, "x": 1, "n": 0},
            {"a": 33, "x": 100, "n": 0},
            id="a node without the label is not scored",
        ),
        pytest.param({"-": {"m": 0, "n": 1}}, [soft()], {"m": 0, "n": 0}, {"m": 0, "n": 0}, id="none is"),
        pytest.param(
            {"1": {"a": 0}, "2": {"x": 0}},
            [soft(maxSkew=0)],
            {"a": -1, "x": -1},
            {"a": 0, "x": 0},
            id="no maxSkew, and nothing runs yet",
        ),
    ],
)
def test_score(layout: Layout, constraints: list[Manifest], raw: dict[str, int], normalized: dict[str, int]) -> None:
    assert scores(spread(cluster(layout), *constraints)) == (raw, normalized)


def test_only_domains_of_feasible_nodes_weigh() -> None:
    # zone 3 is full by the hard constraint, so two domains are left: 2 * ln(2 + 2) = 2.77
    full = hard(HOST, labelSelector={"matchLabels": {"app": "batch"}}, minDomains=9)
    objects = [*cluster({"1": {"a": 2}, "2": {"x": 0}, "3": {"y": 0}}), pod("b", labels={"app": "batch"}, on="y")]
    labels = WEB | {"app": "batch"}
    cycle = spread(objects, full, soft(), labels=labels)
    assert verdicts(cycle) == {"a": "ok", "x": "ok", "y": "skew"}
    assert scores(cycle)[0] == {"a": 3, "x": 0}


def test_a_nodes_own_pods_count_for_its_host_whatever_the_policies() -> None:
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
        pytest.param([SERVICE], (hard(),), id="the pod has a constraint of its own, be it a hard one"),
    ],
)
def test_no_defaults(objects: list[Manifest], constraints: tuple[Manifest, ...]) -> None:
    cycle = spread([*cluster({"1": {"a": 0, "b": 0}}), *objects], *constraints)
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("PodTopologySpread",)


def test_list_defaults_take_the_place_of_the_system_defaults() -> None:
    listed = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args: Manifest = {"defaultingType": "List", "defaultConstraints": [listed]}
    objects = cluster({"1": {"a": 1}, "2": {"x": 0, "y": 0}})
    cycle = spread([*objects, SERVICE], args=args)
    assert rejected(cycle) == {"a": "skew"}
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("PodTopologySpread",)
    assert rejected(spread(objects, args=args)) == {}


def test_list_defaults_score_only_nodes_with_all_labels() -> None:
    listed = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    args: Manifest = {"defaultingType": "List", "defaultConstraints": [listed]}
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
        pytest.param([], None, "", id="nothing"),
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
        pytest.param([SERVICE], "ReplicaSet", "app=web", id="the ReplicaSet is not there"),
        pytest.param([owner("StatefulSet", "apps/v1", selector=TRACK)], "ReplicaSet", "", id="another kind"),
        pytest.param(
            [SERVICE, owner("ReplicationController", "v1", selector={"app": "own"})],
            "ReplicationController",
            "app=own",
            id="a ReplicationController overrides the Services",
        ),
        pytest.param([owner("DaemonSet", "apps/v1", selector=TRACK)], "DaemonSet", "", id="not a kind that counts"),
    ],
)
def test_default_selector(objects: list[Manifest], controller: str | None, expected: str) -> None:
    version = "v1" if controller == "ReplicationController" else "apps/v1"
    reference = {"apiVersion": version, "kind": controller, "name": "own", "uid": "u", "controller": True}
    metadata = {"ownerReferences": [reference]} if controller else {}
    snapshot = Snapshot.from_objects([*objects, pod("new", labels=WEB | {"tier": "front"}, metadata=metadata)])
    assert str(default_selector(snapshot.pods[0], snapshot)) == expected


# --- laws: the columns against a reference that looks at one node at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The rules in the words of the documentation, for one node in its own world."""

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

    def included(self, topology_spread_constraint: TopologySpreadConstraint, row: int, action: str) -> bool:
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
            not selector.empty and selector.matches(each.metadata.labels) and not each.metadata.deletion_timestamp
            for each in self.pods_on(row)
            if each.metadata.namespace == self.pod.metadata.namespace
        )

    def pods_on(self, row: int) -> Iterator[Pod]:
        return (self.snapshot.pods[int(each)] for each in self.snapshot.pods.on_node(ClusterRow(row)))

    def verdict(self, row: int, removed: Sequence[int]) -> Code:
        """On a node from which these pods have been removed."""
        for constraint in self.constraints("DoNotSchedule"):
            key, selector = constraint.topology_key, self.selector(constraint)
            if key not in self.labels(row):
                return Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            counts: dict[str, int] = {}
            for other in range(len(self.snapshot.cluster.nodes)):
                if self.included(constraint, other, "DoNotSchedule"):
                    value = self.labels(other)[key]
                    counts[value] = counts.get(value, 0) + self.count_on(constraint, other)
            if self.included(constraint, row, "DoNotSchedule"):
                gone = (self.snapshot.pods[each].metadata for each in removed)
                counts[self.labels(row)[key]] -= sum(
                    each.namespace == self.pod.metadata.namespace and selector.matches(each.labels) for each in gone
                )
            least = 0 if len(counts) < (constraint.min_domains or 1) else min(counts.values())
            itself = selector.matches(self.pod.metadata.labels)
            if counts.get(self.labels(row)[key], 0) + itself - least > constraint.max_skew:
                return Code.UNSCHEDULABLE
        return Code.SUCCESS

    def score(self, row: int, feasible: Sequence[int]) -> int | None:
        """None where the node is not scored."""
        constraints = self.constraints("ScheduleAnyway")
        scored = [
            other
            for other in feasible
            if all(constraint.topology_key in self.labels(other) for constraint in constraints)
        ]
        if row not in scored:
            return None
        total = 0.0
        for constraint in constraints:
            key = constraint.topology_key
            if key == HOST:
                size, count = len(scored), self.count_on(constraint, row)
            else:
                size = len({self.labels(other)[key] for other in scored})
                count = sum(
                    self.count_on(constraint, other)
                    for other in range(len(self.snapshot.cluster.nodes))
                    if self.included(constraint, other, "ScheduleAnyway")
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
def constraints_of_any_kind(draw: st.DrawFn, action: str | None = None) -> Manifest:
    key, policies = draw(st.sampled_from([HOST, ZONE])), draw(st.tuples(POLICIES, POLICIES))
    fields: Manifest = {"maxSkew": draw(st.integers(1, 3)), "labelSelector": draw(SELECTORS)}
    fields |= {"nodeAffinityPolicy": policies[0], "nodeTaintsPolicy": policies[1]}
    if (action or draw(ACTIONS)) == "ScheduleAnyway":
        return soft(key, **fields)
    return hard(key, minDomains=draw(st.sampled_from([None, None, 1, 2, 3])), **fields)


@st.composite
def situations(draw: st.DrawFn, action: str) -> list[Manifest]:
    """Nodes, some without labels or with taints, with pods on them, and a pod `new`.

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
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if draw(st.integers(0, 6)) == 0 else {}
        labels = draw(st.sampled_from([{}, WEB, WEB, {"app": "db"}]))
        namespace = draw(st.sampled_from(["default", "default", "default", "else"]))
        objects.append(pod(f"p{i}", labels=labels, namespace=namespace, on=draw(st.sampled_from(names)), metadata=gone))
    constraints = [*draw(st.lists(constraints_of_any_kind(), max_size=2)), draw(constraints_of_any_kind(action))]
    spec: Manifest = {"nodeSelector": draw(st.sampled_from([{}, {"disk": "ssd"}]))}
    labels = draw(st.sampled_from([WEB, {}]))
    return [*objects, pod("new", labels=labels, spec=spec, topologySpreadConstraints=constraints)]


def codes_and_check_findings(plugin: PodTopologySpread, state: CycleState, pod: Pod, nodes: NodeTable) -> list[int]:
    """The codes; every row that is rejected, and no other, has findings that bear it out."""
    answer = plugin.filter(state, pod, nodes)
    for row, code in enumerate(answer.codes):
        explanation = answer.explain(TableRow(row))
        assert bool(explanation) == (code != Code.SUCCESS)
        if code != Code.SUCCESS:
            assert isinstance(explanation[0], TopologySpreadSkew) == (code == Code.UNSCHEDULABLE)
        for each in explanation:
            if isinstance(each, TopologySpreadSkew):
                assert each.skew > each.max_skew
                assert DomainCount(domain=each.domain, matching=each.matching) in each.domains or not each.matching
    return [int(code) for code in answer.codes]


@given(situations("DoNotSchedule"), st.data())
def test_filter_is_the_reference_row_by_row(objects: list[Manifest], data: st.DataObject) -> None:
    built, plugin, new = prepared(objects)
    reference = Reference(snapshot=built.snapshot, pod=new)
    state = CycleState()
    assert plugin.pre_filter(state, new, built.nodes).status.is_success
    rows = range(len(built.nodes))
    before = codes_and_check_findings(plugin, state, new, built.nodes)
    assert before == [reference.verdict(row, ()) for row in rows]

    running = np.flatnonzero(built.snapshot.pods.node >= 0)
    chosen = data.draw(st.lists(st.sampled_from(running.tolist()), unique=True) if len(running) else st.just([]))
    pods = np.array(chosen, dtype=np.int64)
    change = PodRows(pods=pods, nodes=ClusterRows(built.snapshot.pods.node[pods]))
    clone = state.clone()
    plugin.remove_pods(clone, new, built.nodes, change)
    part = built.nodes.remove_pods(change).take(TableRows(np.array(data.draw(st.permutations(rows)), dtype=np.int64)))
    gone = {row: [each for each in chosen if built.snapshot.pods.node[each] == row] for row in rows}
    expected = [reference.verdict(int(row), gone[int(row)]) for row in part.rows]
    assert codes_and_check_findings(plugin, clone, new, part) == expected

    assert codes_and_check_findings(plugin, state, new, built.nodes) == before
    plugin.add_pods(clone, new, part, change)
    assert codes_and_check_findings(plugin, clone, new, built.nodes) == before


@given(situations("ScheduleAnyway"), st.data())
def test_score_is_the_reference_row_by_row(objects: list[Manifest], data: st.DataObject) -> None:
    built, plugin, new = prepared(objects)
    reference = Reference(snapshot=built.snapshot, pod=new)
    rows = data.draw(st.lists(st.integers(0, len(built.nodes) - 1), min_size=1, unique=True))
    feasible = built.nodes.at(cluster_rows([ClusterRow(row) for row in rows]))
    state = CycleState()
    assert plugin.pre_score(state, new, feasible).is_success
    raw = plugin.score(state, new, feasible)
    expected = [reference.score(row, rows) for row in rows]
    assert raw.tolist() == [item or 0 for item in expected]

    texts = [item for item in expected if item is not None]
    high, low = max(texts, default=0), min(texts, default=0)
    normalized = [0 if item is None else 100 * (high + low - item) // high if high else 100 for item in expected]
    assert plugin.normalize_score(state, new, feasible, raw).tolist() == normalized


# --- selectors that the API server would refuse

BROKEN = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}


@pytest.mark.parametrize("manifest", [hard(labelSelector=BROKEN), soft(labelSelector=BROKEN)], ids=["hard", "soft"])
def test_a_selector_that_cannot_be_parsed_is_an_internal_error(manifest: Manifest) -> None:
    built, plugin, new = prepared([node("a"), pod("new", topologySpreadConstraints=[manifest])])
    text = '"Like" is not a valid label selector operator'
    filtered = plugin.pre_filter(CycleState(), new, built.nodes).status
    scored = plugin.pre_score(CycleState(), new, built.nodes)
    if manifest["whenUnsatisfiable"] == "DoNotSchedule":
        assert scored.is_skip
        assert filtered == error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {text}")
    else:
        assert filtered.is_skip
        assert scored == error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {text}")
