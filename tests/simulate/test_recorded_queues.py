"""Every decision of a recorded queue equals that of kube-scheduler 1.36."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kschedx

HERE = Path(__file__).parent
RECORDED = {
    "pod": "pod",
    "outcome": "outcome",
    "bestNodes": "best",
    "node": "node",
    "message": "message",
    "nominatedNode": "nominated",
    "tiedCandidates": "ties",
    "victims": "victims",
}


def cases() -> Iterator[Any]:
    for path in sorted(HERE.glob("*.jsonl.gz")):
        with gzip.open(path) as lines:
            for line in lines:
                case = json.loads(line)
                yield pytest.param(case, id=case["name"])


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", list(cases()))
def test_every_decision_equals_that_of_kube_scheduler(case: dict[str, Any]) -> None:
    snapshot = kschedx.Snapshot.from_objects(case["objects"])
    texts: Any = kschedx.simulate(snapshot, config=case.get("config")).to_dict()
    steps = [{RECORDED[key]: value for key, value in step.items() if key in RECORDED} for step in texts["steps"]]
    assert steps == case["expect"]["steps"]
    assert texts["placed"] == case["expect"]["placed"]
    assert texts["pending"] == case["expect"]["pending"]
