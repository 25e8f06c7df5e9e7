"""With HTTP extenders kschedx decides what kube-scheduler 1.36.2 decided, and asks what it asked."""

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


@pytest.mark.parametrize("case", list(cases()))
def test_the_decision_is_kube_schedulers(case: Json) -> None:
    extenders, expect = Extenders(case), case["expect"]
    result = explain_pod(
        kschedx.Snapshot.from_objects(case["objects"]), case["pod"], config=case["config"], ask=extenders
    ).to_dict()
    assert asked(extenders.requests) == asked(expect["extenders"]["requests"])
    assert told(result["extenders"]) == told(expect["extenders"])
    assert decided(result) == expected(expect)


def asked(requests: list[Json]) -> list[Json]:
    """Prioritize requests are sent side by side; kschedx never binds."""
    kept = [
        {name: value for name, value in request.items() if name != "url"}
        for request in requests
        if request["verb"] != "bind"
    ]
    for request in kept:
        for victims in ("victims", "metaVictims"):
            for node in request.get(victims) or {}:
                request[victims][node]["pods"] = sorted(request[victims][node]["pods"])
    return sorted(kept, key=lambda item: item["extender"] if item["verb"] == "prioritize" else -1)


SAME = ("order", "interested", "filter", "statuses", "silent", "scores", "preempt", "candidates", "candidatesStatus")


def told(extenders: Any) -> Json:
    """What both sides tell, without what is empty, and sorted where kube-scheduler's order is random."""
    manifest = {part: _sorted(extenders.get(part)) for part in SAME if extenders.get(part)}
    for call in manifest.get("preempt", ()):
        call.setdefault("out", None)
    return manifest


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if item not in (None, {}, [], False)}
        return {name: sorted(item) if name in _RANDOM else _sorted(item) for name, item in kept.items()}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


_RANDOM = ("in", "out", "pods", "victims")


def decided(value: Any) -> Json:
    post_filter = value["postFilter"] or {}
    return {
        "best": set(value["bestNodes"]),
        "message": _texts_in_order(value["message"]),
        "totals": {node: item["total"] for node, item in value["score"]["nodes"].items()} if value["score"] else {},
        "nominatedNode": post_filter.get("nominatedNode"),
        "bestCandidates": sorted(post_filter.get("bestCandidates") or ()),
    }


def expected(expect: Json) -> Json:
    totals = expect["totals"] or {}
    return {
        "best": set(expect["best"] or ()),
        "message": expect.get("error") or expect.get("message") or "",
        "totals": totals,
        "nominatedNode": expect.get("nominatedNode"),
        "bestCandidates": sorted(expect.get("bestCandidates") or ()),
    }


def _texts_in_order(message: str) -> str:
    """The errors of several nodes come in any order."""
    several = r'\[(?:expected at least one victim pod on node "[^"]*"(?:, )?)+\]'
    return re.sub(several, lambda value: f"[{', '.join(sorted(value[0][1:-1].split(', ')))}]", message)
