"""Recorded decisions of kube-scheduler, and the same facts of an Explanation document."""

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
"""A document of either side."""
Facts = dict[str, Any]
"""Sections of a decision, in a shape that both sides can be brought to."""


@dataclass(frozen=True)
class Case:
    """A small cluster with a pending pod, and what kube-scheduler decided. README.md describes the record."""

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
        """The manifest of the pending pod."""
        namespace, _, name = self.record["pod"].partition("/")
        return next(
            manifest
            for manifest in self.record["objects"]
            if (manifest["kind"], manifest["metadata"]["name"]) == ("Pod", name)
            and manifest["metadata"].get("namespace", "default") == namespace
        )


def cases() -> list[Case]:
    """Every recorded case, family by family."""
    files = sorted(FOLDER.glob("*.jsonl.gz"))
    return [Case(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


# --- the facts of both sides


def recorded(expect: Json) -> Facts:
    """What the record says. A phase that did not run, or that the record leaves out, has no section."""
    if expect.get("error") == NO_NODES:
        return {"outcome": "Unschedulable", "message": NO_NODES}
    facts: Facts = {
        "points": expect["points"],
        "preEnqueue": [_step(step) for step in expect.get("preEnqueue") or []],
        "preFilter": [_step(step) | {"nodes": step.get("nodes")} for step in expect["preFilter"]],
    }
    if expect.get("error"):  # an internal error ends the cycle; which node's comes first is a matter of chance
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
    if expect["totals"]:  # empty where nothing is feasible, or no plugin scores
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


def explained(document: Json) -> Facts:
    """What the Explanation document says, in the record's sections."""
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
    """kube-scheduler walks a map to collect the reasons, so their order is a matter of chance."""
    return {"code": status["code"], "reasons": sorted(status.get("reasons") or [])}


def _step(step: Json) -> Facts:
    return {"plugin": step["plugin"]} | _status(step)


def _candidates(preempted: Json) -> Facts:
    return {
        candidate["node"]: {"victims": sorted(candidate["victims"]), "pdbViolations": candidate["pdbViolations"]}
        for candidate in preempted.get("candidates") or []
    }


# --- what differs


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    recorded: object
    explained: object

    def __str__(self) -> str:
        return f"{self.path}\n    kube-scheduler: {self.recorded}\n    kschedx:        {self.explained}"


def differences(want: Facts, got: Facts) -> Iterator[Difference]:
    """The innermost facts that differ, in the sections that the record has."""
    for section, value in want.items():
        yield from _inner(section, value, got[section])


def _inner(path: str, want: object, got: object) -> Iterator[Difference]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            yield from _inner(f"{path}.{key}", want.get(key, "absent"), got.get(key, "absent"))
    elif want != got:
        yield Difference(path, want, got)
