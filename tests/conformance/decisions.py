"""Recorded decisions of kube-scheduler, and the same facts of an explanation's document."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NO_NODES = "no nodes available to schedule pods"
SUCCESS = {"code": "Success"}

Json = Mapping[str, Any]
"""A recorded decision, or a document."""
Facts = dict[str, Any]
"""Sections of a decision in a shape for both sides."""


@dataclass(frozen=True)
class Case:
    """A small cluster with a pending pod, and kube-scheduler's decision; README.md describes the format."""

    line: bytes

    @cached_property
    def record(self) -> Json:
        result: Json = json.loads(self.line)
        return result

    @property
    def name(self) -> str:
        start = self.line.index(b'"name":"') + len(b'"name":"')
        return self.line[start : self.line.index(b'"', start)].decode()

    @property
    def pod(self) -> Json:
        """Return the manifest of the pending pod."""
        namespace, _, name = self.record["pod"].partition("/")
        return next(
            manifest
            for manifest in self.record["objects"]
            if (manifest["kind"], manifest["metadata"]["name"]) == ("Pod", name)
            and manifest["metadata"].get("namespace", "default") == namespace
        )


def cases() -> list[Case]:
    """Return every recorded case, family by family."""
    files = sorted(FOLDER.glob("*.jsonl.gz"))
    return [Case(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


# --- the facts of both sides


def recorded_sections(expect: Json) -> Facts:
    """Return the sections of a record; a phase that did not run or was not recorded has no section."""
    if expect.get("error") == NO_NODES:
        return {"outcome": "Unschedulable", "message": NO_NODES}
    facts: Facts = {
        "points": expect["points"],
        "preEnqueue": [_step(step) for step in expect.get("preEnqueue") or []],
        "preFilter": [_step(step) | {"nodes": step.get("nodes")} for step in expect["preFilter"]],
    }
    if expect.get("error"):  # an internal error ends the cycle; which node fails first is random
        return facts | {"outcome": "Error"}
    if expect.get("preFilterStatus", SUCCESS)["code"] == "Success":
        facts["filter.skipped"] = sorted(expect["skippedFilter"])
        facts["filter.verdict"] = {
            node: _status(verdict) | {"plugin": verdict.get("plugin") or None}
            for node, verdict in expect["verdict"].items()
        }
        facts["filter.rejectedBy"] = {
            node: {plugin: _status(status) for plugin, status in (expect["filter"].get(node) or {}).items()}
            for node in expect["verdict"]
        }
    if expect["totals"]:  # empty if no node is feasible or no plugin scores
        facts["score.skipped"] = sorted(expect["skippedScore"])
        facts["score.plugins"] = expect["scores"]
        facts["score.totals"] = expect["totals"]
        facts["bestNodes"] = sorted(expect["best"])
    facts["message"] = expect.get("message") or ""
    if expect.get("postFilter"):
        facts["postFilter"] = _status(expect["postFilter"])
        facts["postFilter.candidates"] = _candidates(expect)
        facts["postFilter.bestCandidates"] = sorted(expect.get("bestCandidates") or [])
    return facts


def explained_sections(document: Json) -> Facts:
    """Return the document in the sections of a record."""
    filtered = document["filter"] or {"skipped": [], "nodes": {}}
    scored = document["score"] or {"skipped": [], "weights": {}, "nodes": {}}
    preempted = document["postFilter"] or SUCCESS
    return {
        "outcome": document["outcome"],
        "message": document["message"],
        "points": {
            point: [plugin["name"] if isinstance(plugin, dict) else plugin for plugin in plugins]
            for point, plugins in document["profile"]["extensionPoints"].items()
        },
        "preEnqueue": [_step(step) for step in document["preEnqueue"]],
        "preFilter": [_step(step) | {"nodes": step["nodes"]} for step in document["preFilter"]],
        "filter.skipped": sorted(filtered["skipped"]),
        "filter.verdict": {
            node: _status(text["verdict"]) | {"plugin": text["verdict"]["plugin"]}
            for node, text in filtered["nodes"].items()
        },
        "filter.rejectedBy": {
            node: {plugin: _status(status) for plugin, status in text["rejectedBy"].items()}
            for node, text in filtered["nodes"].items()
        },
        "score.skipped": sorted(scored["skipped"]),
        "score.plugins": {
            plugin: {"weight": weight}
            | {
                kind: {node: scores[kind][plugin] for node, scores in scored["nodes"].items()}
                for kind in ("raw", "normalized")
            }
            for plugin, weight in scored["weights"].items()
        },
        "score.totals": {node: scores["total"] for node, scores in scored["nodes"].items()},
        "bestNodes": sorted(document["bestNodes"]),
        "postFilter": _status(preempted),
        "postFilter.candidates": _candidates(preempted),
        "postFilter.bestCandidates": sorted(preempted.get("bestCandidates") or []),
    }


def _status(status: Json) -> Facts:
    """Return a status with sorted reasons: kube-scheduler collects them from a map in random order."""
    return {"code": status["code"], "reasons": sorted(status.get("reasons") or [])}


def _step(step: Json) -> Facts:
    return {"plugin": step["plugin"]} | _status(step)


def _candidates(preempted: Json) -> Facts:
    return {
        candidate["node"]: {"victims": sorted(candidate["victims"]), "pdbViolations": candidate["pdbViolations"]}
        for candidate in preempted.get("candidates") or []
    }


# --- differences


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    recorded: object
    explained: object

    def __str__(self) -> str:
        return f"{self.path}\n    kube-scheduler: {self.recorded}\n    kschedx:        {self.explained}"


def differences(expected: Facts, actual: Facts) -> Iterator[Difference]:
    """Yield the innermost facts that differ, in the sections of the record."""
    for section, value in expected.items():
        yield from _inner(section, value, actual[section])


def _inner(path: str, expected: object, actual: object) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            yield from _inner(f"{path}.{key}", expected.get(key, "absent"), actual.get(key, "absent"))
    elif expected != actual:
        yield Difference(path, expected, actual)
