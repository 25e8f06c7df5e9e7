"""With HTTP extenders, kschedx decides as kube-scheduler 1.36.2 did, and sends the same requests."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kschedx
from tests.builders import explain_pod
from tests.extenders.rules import Extenders

Json = dict[str, Any]
CASES = Path(__file__).parent / "cases.jsonl.gz"


def cases() -> Iterator[Any]:
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            yield pytest.param(case, id=case["name"])


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", list(cases()))
def test_a_decision_equals_the_recorded_one(case: Json) -> None:
    extenders, expect = Extenders(case), case["expect"]
    result = explain_pod(
        kschedx.Snapshot.from_objects(case["objects"]), case["pod"], config=case["config"], ask=extenders
    ).to_dict()
    assert sorted_requests(extenders.requests) == sorted_requests(expect["extenders"]["requests"])
    assert sections_of(result["extenders"]) == sections_of(expect["extenders"])
    assert decision_of(result) == expected_decision(expect)


def sorted_requests(requests: list[Json]) -> list[Json]:
    """Return the requests without URLs and binds; prioritize requests have no fixed order."""
    requests_without_url = [
        {name: value for name, value in request.items() if name != "url"}
        for request in requests
        if request["verb"] != "bind"
    ]
    for request in requests_without_url:
        for victims in ("victims", "metaVictims"):
            for node in request.get(victims) or {}:
                request[victims][node]["pods"] = sorted(request[victims][node]["pods"])
    return sorted(requests_without_url, key=lambda item: item["extender"] if item["verb"] == "prioritize" else -1)


SECTIONS = (
    "order",
    "interested",
    "filter",
    "statuses",
    "silent",
    "scores",
    "preempt",
    "candidates",
    "candidatesStatus",
)


def sections_of(extenders: Any) -> Json:
    """Return the non-empty sections of both sides, sorted where kube-scheduler's order is random."""
    sections = {part: _sorted(extenders.get(part)) for part in SECTIONS if extenders.get(part)}
    for call in sections.get("preempt", ()):
        call.setdefault("out", None)
    return sections


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        present = {name: item for name, item in value.items() if item not in (None, {}, [], False)}
        return {name: sorted(item) if name in RANDOM_ORDER else _sorted(item) for name, item in present.items()}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


RANDOM_ORDER = ("in", "out", "pods", "victims")


def decision_of(value: Any) -> Json:
    post_filter = value["postFilter"] or {}
    return {
        "best": set(value["bestNodes"]),
        "message": _sort_errors(value["message"]),
        "totals": {node: item["total"] for node, item in value["score"]["nodes"].items()} if value["score"] else {},
        "nominatedNode": post_filter.get("nominatedNode"),
        "bestCandidates": sorted(post_filter.get("bestCandidates") or ()),
    }


def expected_decision(expect: Json) -> Json:
    totals = expect["totals"] or {}
    return {
        "best": set(expect["best"] or ()),
        "message": expect.get("error") or expect.get("message") or "",
        "totals": totals,
        "nominatedNode": expect.get("nominatedNode"),
        "bestCandidates": sorted(expect.get("bestCandidates") or ()),
    }


def _sort_errors(message: str) -> str:
    """Return the message with sorted errors of nodes, whose order is random."""
    pattern = r'\[(?:expected at least one victim pod on node "[^"]*"(?:, )?)+\]'
    return re.sub(pattern, lambda value: f"[{', '.join(sorted(value[0][1:-1].split(', ')))}]", message)
