"""The `holding` of an Explanation document: who holds the pod, or takes it in kube-scheduler's place."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec
from msgspec import Struct

from kschedx.framework.cycle import Cycle, Scores
from kschedx.framework.status import FilterOutcome, Status
from kschedx.holding import Holding
from kschedx.inquiry.explanation import Note
from kschedx.inquiry.extenders import extenders_document
from kschedx.inquiry.fix import Fix
from kschedx.kube.decoding import camel
from kschedx.snapshot.columns import each_row, rows_where
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Source

HoldingJson = dict[str, object]


def holding_document(holding: Holding) -> HoldingJson:
    """What is not there is left out; amounts are thousandths of cpu, and units of everything else."""
    made = _plain(holding)
    assert isinstance(made, dict)
    if holding.kueue is not None and holding.kueue.verdict is not None:
        made["kueue"]["verdict"] = msgspec.json.decode(msgspec.json.encode(holding.kueue.verdict))  # lists, no tuples
    return made


def _plain(value: object) -> object:
    match value:
        case Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            named = {name: _plain(field) for name, field in fields.items() if not callable(field)}
            return {camel(name): item for name, item in named.items() if item not in (None, "", [], {})}
        case tuple():
            return [_plain(item) for item in value]
        case Enum():
            return value.value
        case _:
            return value


# The Explanation document (`-o json`).

Json = dict[str, object]


def document(cycle: Cycle, fixes: Iterable[Fix], notes: Iterable[Note]) -> Json:
    """Keys are a contract: they are added, never changed. Numbers are integers."""
    pod, snapshot, names = cycle.pod, cycle.snapshot, cycle.all_nodes.cluster.names
    return {
        "apiVersion": "kschedx/v1",
        "kind": "Explanation",
        "kubernetesVersion": cycle.release.version,
        "source": source_document(snapshot.source),
        "pod": {
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "schedulerName": pod.spec.scheduler_name,
            "priority": pod.priority,
        },
        "profile": {
            "schedulerName": cycle.profile.scheduler_name,
            "extensionPoints": {
                point: [{"name": name, "weight": cycle.profile.weights[name]} for name in plugins]
                if point in ("score", "priorities")
                else list(plugins)
                for point, plugins in cycle.profile.points.items()
            },
        },
        "outcome": cycle.outcome.value,
        **({"unheard": [one.to_dict() for one in cycle.unheard]} if cycle.unheard else {}),
        "bestNodes": [names[row] for row in cycle.best],
        "message": cycle.message,
        "preEnqueue": [_step(status) for status in cycle.pre_enqueue],
        "preFilter": [
            _step(step.status) | {"nodes": None if step.nodes is None else sorted(step.nodes)}
            for step in cycle.pre_filter
        ],
        "filter": _filter(cycle),
        "score": _score(cycle.scores),
        "postFilter": _post_filter(cycle),
        "fixes": [fix.to_dict() for fix in fixes],
        "notes": [note.to_dict() for note in notes],
        **({} if cycle.extenders is None else {"extenders": extenders_document(cycle.extenders)}),
    }


def source_document(source: Source) -> Json:
    """Where a cluster came from. When it was read is left out, so that the same cluster gives the same document."""
    more: Json = {
        "serverVersion": source.server_version,
        "missing": {kind: cause.value for kind, cause in source.missing.items()},
        "namespaces": list(source.namespaces),
        "anonymized": source.anonymized,
    }
    known = {key: value for key, value in more.items() if value}
    return {"text": source.text, "kinds": dict(sorted(source.kinds.items())), **known}


def _step(status: Status) -> Json:
    return {"plugin": status.plugin} | _status(status)


def _status(status: Status) -> Json:
    return {
        "code": status.code.text,
        "reasons": list(status.reasons),
        "findings": [finding.to_dict() for finding in status.findings],
    }


def _filter(cycle: Cycle) -> Json | None:
    """The plugins' alone; what extenders made of it is in `extenders`."""
    outcome = cycle.filter_plugins or cycle.filter
    if outcome is None or cycle.nodes is None:
        return None
    return {"skipped": list(cycle.filter_skipped), "nodes": _verdicts(outcome, cycle.nodes)}


def _verdicts(outcome: FilterOutcome, nodes: NodeTable) -> Json:
    rejected_by: list[Json] = [{} for _ in range(len(nodes))]
    for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True):
        for rejected in each_row(rows_where(verdicts.rejected)):
            rejected_by[rejected][plugin] = _status(verdicts.status(rejected, plugin))
    found: Json = {}
    for row, name in zip(nodes.each(), nodes.names, strict=True):
        status = outcome.status(row)
        verdict = {"code": status.code.text, "plugin": status.plugin or None, "reasons": list(status.reasons)}
        found[name] = {"verdict": verdict, "rejectedBy": rejected_by[row]}
    return found


def _score(scores: Scores | None) -> Json | None:
    if scores is None:
        return None
    plugins = list(scores.weights)
    raw, normalized, weighted = (
        {plugin: of(plugin).tolist() for plugin in plugins}
        for of in (scores.raw.__getitem__, scores.normalized.__getitem__, scores.weighted)
    )
    totals = scores.totals.tolist()
    return {
        "skipped": list(scores.skipped),
        "weights": dict(scores.weights),
        "nodes": {
            name: {
                "raw": {plugin: raw[plugin][row] for plugin in plugins},
                "normalized": {plugin: normalized[plugin][row] for plugin in plugins},
                "weighted": {plugin: weighted[plugin][row] for plugin in plugins},
                "total": totals[row],
            }
            for row, name in enumerate(scores.nodes.names)
        },
    }


def _post_filter(cycle: Cycle) -> Json | None:
    result = cycle.post_filter
    if result is None:
        return None
    names, pods = cycle.all_nodes.cluster.names, cycle.snapshot.pods
    return {
        "code": result.status.code.text,
        "reasons": list(result.status.reasons),
        "nominatedNode": None if result.nominated_node is None else names[result.nominated_node],
        "bestCandidates": [names[row] for row in result.best],
        "candidates": [
            {
                "node": names[candidate.node],
                "victims": [pods.key(row) for row in candidate.victims],
                "pdbViolations": candidate.pdb_violations,
            }
            for candidate in result.candidates
        ],
    }
