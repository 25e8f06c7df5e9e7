"""kschedx decides every recorded case as kube-scheduler 1.13 and 1.5 did, in every part of the decision."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import kschedx
from tests.conformance.decisions import NO_NODES, Case, Json, differences, explained_sections

FOLDER = Path(__file__).parent
CASES = [
    (version, Case(line))
    for version in ("1.13", "1.5")
    for line in gzip.decompress((FOLDER / f"{version}.jsonl.gz").read_bytes()).splitlines()
]


def recorded_sections(expect: Json) -> dict[str, Any]:
    """Return the recorded decision in the sections of `explained`."""
    if expect.get("error") == NO_NODES:
        return {"outcome": "Unschedulable", "message": NO_NODES}
    facts: dict[str, Any] = {"points": {"predicatesNeverRun": [], **expect["points"]}}
    if expect.get("error"):
        return facts | {"outcome": "Error", "message": expect["error"]}
    facts["filter.verdict"] = {
        node: _status(verdict) | {"plugin": verdict.get("plugin") or None}
        for node, verdict in expect["verdict"].items()
    }
    facts["filter.rejectedBy"] = {
        node: {predicate: _status(status) for predicate, status in (expect["filter"].get(node) or {}).items()}
        for node in expect["verdict"]
    }
    if expect["totals"]:
        facts["score.plugins"] = expect["scores"]
        facts["score.totals"] = expect["totals"]
        facts["bestNodes"] = sorted(expect["best"])
    facts["message"] = expect.get("message") or ""
    return facts


def _status(status: Json) -> dict[str, Any]:
    return {"code": status["code"], "reasons": sorted(status.get("reasons") or [])}


def explain(version: str, case: Case) -> Json:
    snapshot = kschedx.Snapshot.from_objects(case.record["objects"])
    config = case.record["config"]
    return kschedx.explain(snapshot, case.record["pod"], config=config, kube_version=version).to_dict()


@pytest.mark.sample(6)
@pytest.mark.parametrize(("version", "case"), CASES, ids=[f"{version}-{case.name}" for version, case in CASES])
def test_a_decision_equals_the_recorded_one(version: str, case: Case) -> None:
    document = explain(version, case)
    items = list(differences(recorded_sections(case.record["expect"]), explained_sections(document)))
    if items:
        text = "\n".join(map(str, items))
        pytest.fail(f"{case.name}: {len(items)} differences from kube-scheduler's decision\n{text}", pytrace=False)


@pytest.mark.sample(9)
@pytest.mark.parametrize(("version", "case"), CASES, ids=[f"{version}-{case.name}" for version, case in CASES])
def test_every_rejection_has_findings(version: str, case: Case) -> None:
    filtered = explain(version, case)["filter"] or {"nodes": {}}
    unexplained = {
        (node, predicate)
        for node, text in filtered["nodes"].items()
        for predicate, status in text["rejectedBy"].items()
        if not status["findings"]
    }
    assert not unexplained


WITH_EXCLUDED_NODES = [case for version, case in CASES if version == "1.5" and not case.record["expect"].get("error")]


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", WITH_EXCLUDED_NODES, ids=lambda case: case.name)
def test_excluded_nodes_equal_the_recorded_ones(case: Case) -> None:
    names = {item["metadata"]["name"] for item in case.record["objects"] if item["kind"] == "Node"}
    filtered = explain("1.5", case)["filter"] or {"nodes": {}}
    assert sorted(names - filtered["nodes"].keys()) == sorted(case.record["expect"].get("excludedNodes") or [])


RESOLVABLE = [case for version, case in CASES if version == "1.13" and case.record["expect"].get("message")]


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", RESOLVABLE, ids=lambda case: case.name)
def test_nodes_tried_by_preemption_equal_the_recorded_ones(case: Case) -> None:
    nodes = explain("1.13", case)["filter"]["nodes"]
    tried_nodes = [node for node, text in nodes.items() if text["verdict"]["code"] == "Unschedulable"]
    assert sorted(tried_nodes) == sorted(case.record["expect"].get("preemptionNodes") or [])
