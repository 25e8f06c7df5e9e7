"""Laws of the document of `why`, on random clusters."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import kschedx
from kschedx.fixes.ranking import CAPACITY_FIRST
from tests.builders import Manifest, pod
from tests.laws.clusters import TARGET, Cluster, clusters
from tests.laws.json_patch import apply_changes


def explain(objects: list[Manifest]) -> dict[str, Any]:
    document: dict[str, Any] = kschedx.explain(kschedx.Snapshot.from_objects(objects), TARGET).to_dict()
    return document


def feasible_nodes(document: dict[str, Any]) -> list[str]:
    """Return the names of the nodes on which every filter passes."""
    nodes = (document["filter"] or {"nodes": {}})["nodes"]
    return sorted(name for name, text in nodes.items() if text["verdict"]["code"] == "Success")


@given(clusters())
def test_the_document_is_plain_json(cluster: Cluster) -> None:
    document = explain(cluster.objects)
    assert json.loads(json.dumps(document)) == document


@given(clusters())
def test_totals_are_the_sums_of_weighted_normalized_scores(cluster: Cluster) -> None:
    document = explain(cluster.objects)
    score = document["score"]
    assert (score is None) == (not feasible_nodes(document) or document["outcome"] != "Scheduled")
    for node in (score or {"nodes": {}})["nodes"].values():
        for plugin, weight in score["weights"].items():
            assert 0 <= node["normalized"][plugin] <= 100
            assert node["weighted"][plugin] == node["normalized"][plugin] * weight
        assert node["total"] == sum(node["weighted"].values())
    if score is not None:
        totals = {name: node["total"] for name, node in score["nodes"].items()}
        assert document["bestNodes"] == [name for name, total in totals.items() if total == max(totals.values())]


@given(clusters())
def test_a_pod_has_a_message_or_a_node(cluster: Cluster) -> None:
    document = explain(cluster.objects)
    assert (document["outcome"] == "Scheduled") == (not document["message"]) == bool(document["bestNodes"])
    if document["message"]:
        assert document["message"].startswith(f"0/{len(cluster.nodes)} nodes are available:")


@given(clusters(), st.data())
def test_the_order_of_the_objects_does_not_matter(cluster: Cluster, data: st.DataObject) -> None:
    first = explain(cluster.objects)
    second = explain(data.draw(st.permutations(cluster.objects)))
    for key in ("outcome", "message"):
        assert second[key] == first[key]
    assert sorted(second["bestNodes"]) == sorted(first["bestNodes"])
    assert verdicts(second) == verdicts(first)
    assert (second["score"] or {}).get("nodes") == (first["score"] or {}).get("nodes")


def verdicts(document: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict of each node with the reasons of every plugin that rejects it."""
    nodes = (document["filter"] or {"nodes": {}})["nodes"]
    return {
        name: (text["verdict"], {plugin: status["reasons"] for plugin, status in text["rejectedBy"].items()})
        for name, text in nodes.items()
    }


@given(clusters())
def test_an_unrelated_pending_pod_changes_nothing(cluster: Cluster) -> None:
    first = explain(cluster.objects)
    second = explain([*cluster.objects, pod("waits", namespace="elsewhere", labels={"app": "other"})])
    for fix in second["fixes"]:
        if left := [cost for cost in fix.get("costs", ()) if "elsewhere/waits" not in cost]:
            fix["costs"] = left  # a fix may take the last room that the other pod fits
        else:
            fix.pop("costs", None)
    assert second | {"source": first["source"]} == first


@given(clusters())
def test_a_verified_fix_works_when_it_is_applied(cluster: Cluster) -> None:
    for fix in explain(cluster.objects)["fixes"]:
        after = explain(apply_changes(cluster.objects, fix["changes"]))
        if fix["certainty"] == "verified":
            assert feasible_nodes(after) == sorted(fix["feasibleNodes"]), fix["title"]
        else:
            assert fix["certainty"] == "partial"


@given(clusters())
def test_fixes_are_ordered_by_their_cost(cluster: Cluster) -> None:
    """Fixes that evict or delete other pods follow those that do not, except that capacity may come first."""
    explanation = kschedx.explain(kschedx.Snapshot.from_objects(cluster.objects), TARGET)
    verified = [fix for fix in explanation.fixes if fix.certainty == "verified"]
    costs = [max(step.cost for step in fix.steps) for fix in verified]
    orders = (sorted(costs), sorted(costs, key=CAPACITY_FIRST.index))
    assert costs in orders, [fix.title for fix in verified]


@given(clusters())
def test_a_fix_names_only_its_feasible_nodes(cluster: Cluster) -> None:
    for fix in explain(cluster.objects)["fixes"]:
        if fix["certainty"] == "verified":
            new = [f"{name}-new" for name in re.findall(r"a node like (node-\d+)", fix["title"])]
            old = re.findall(r"(?:on|from|label|uncordon) (node-\d+)", fix["title"])
            assert {*new, *old} <= set(fix["feasibleNodes"]), fix["title"]
            targets = {change["target"]["name"] for change in fix["changes"] if change["target"]["kind"] == "Node"}
            assert targets <= set(fix["feasibleNodes"]), fix["title"]


@given(clusters())
def test_a_partial_fix_removes_a_blocker(cluster: Cluster) -> None:
    before = explain(cluster.objects)
    for fix in before["fixes"]:
        if fix["certainty"] == "partial":
            assert blockers(explain(apply_changes(cluster.objects, fix["changes"]))) != blockers(before), fix["title"]


def blockers(document: dict[str, Any]) -> dict[str, Any]:
    nodes = (document["filter"] or {"nodes": {}})["nodes"]
    return {name: text["rejectedBy"] for name, text in nodes.items()}
