"""Recorded loops of cluster-autoscaler, and the comparable facts of kschedx's document."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kschedx.autoscaler.run import setup_of
from kschedx.autoscaler.state import LoopState
from kschedx.kube.quantity import milli_value
from kschedx.snapshot.snapshot import Snapshot

Json = Mapping[str, Any]

_SETS = frozenset({
    "skipped", "members", "reasons", "parts", "similar", "candidates", "clusterEvents", "options", "scaleUps", "taints",
})  # fmt: skip
_AMOUNTS = frozenset({"allocatable", "capacity", "requested"})
_QUOTA = re.compile(r"(.*(?:resources: |max cluster ))(.+?)( limit reached)?")


@cache
def cases() -> list[Json]:
    text = gzip.decompress((Path(__file__).parent / "cases.jsonl.gz").read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def arguments(case: Json) -> dict[str, Any]:
    """Return what a recorded loop is decided with, besides the cluster."""
    return {
        "group_label": case["groups"]["label"],
        "templates": case.get("templates"),
        "flags": case["flags"],
        "config": case.get("config"),
        "kube_version": case["kubeVersion"],
        "now": case["now"],
    }


def state_of(case: Json) -> LoopState:
    return setup_of(Snapshot.from_objects(case["objects"]), **arguments(case))


def facts(value: object, key: str = "") -> object:
    """Return the value without empty parts, in a canonical order."""
    if key in _AMOUNTS and isinstance(value, dict):
        return {
            name: milli_value(amount) for name, amount in value.items() if key != "requested" or milli_value(amount)
        }
    if key == "outcomes" and isinstance(value, list):
        return _count_outcomes(value)
    if isinstance(value, dict):
        reduced = {name: facts(inner, name) for name, inner in value.items()}
        return {name: inner for name, inner in reduced.items() if inner or key == "labels"}
    if isinstance(value, list | tuple):
        items = [facts(item) for item in value]
        return sorted(items, key=_text) if key in _SETS or key == "pods" else items
    if isinstance(value, str) and key != "event":
        return _sort_resources(value)
    return value


def _count_outcomes(rows: list[Json]) -> object:
    counts: Counter[str] = Counter()
    for row in rows:
        reduced = facts({name: item for name, item in row.items() if name != "count"})
        counts[_text(reduced)] += row["count"]
    return sorted(counts.items())


def _sort_resources(text: str) -> str:
    """Return the text with the resources of a limit in order; upstream's order is random."""
    match = _QUOTA.fullmatch(text)
    return f"{match[1]}{', '.join(sorted(match[2].split(', ')))}{match[3] or ''}" if match else text


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def recorded_part(document: Json, recorded: Json) -> Json:
    """Return the recorded facts of a document."""
    parts = {name: document.get(name) for name in (
        "result", "error", "groups", "pods", "options", "candidates", "choices", "clusterEvents",
    )}  # fmt: skip
    is_random = any(
        row["outcome"] == "schedulable" and "on" not in row
        for entry in recorded["pods"].values()
        for row in entry["outcomes"]
    )
    groups = {
        name: {key: group.get(key) for key in ("skipped", "health", "upcoming", "template")}
        for name, group in (parts["groups"] or {}).items()
    }
    pods = {
        name: {
            "members": entry["members"],
            "outcomes": [
                {key: row.get(key) for key in ("count", "outcome", "groups", "remains", "parts", "event")}
                | ({} if is_random else {"on": row.get("on")})
                for row in entry["outcomes"]
            ],
        }
        for name, entry in (parts["pods"] or {}).items()
    }
    reduced = facts({**parts, "groups": groups, "pods": pods})
    assert isinstance(reduced, dict)
    return reduced


def differences(path: str, recorded: object, value: object) -> Iterator[str]:
    if recorded == value:
        return
    if isinstance(recorded, dict) and isinstance(value, dict):
        for key in sorted({*recorded, *value}):
            yield from differences(f"{path}.{key}", recorded.get(key), value.get(key))
    else:
        yield f"{path}\n  recorded {recorded}\n  kschedx  {value}"
