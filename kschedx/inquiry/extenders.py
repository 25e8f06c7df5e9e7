"""The `extenders` of an Explanation document: who was asked what, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.framework.extenders import FilterCall, PreemptCall, ScoreCall, Trace, Victims
from kschedx.framework.status import Code, Status

Json = dict[str, object]


def extenders_document(trace: Trace) -> Json:
    """Extenders are identified by their index in the configuration. What did not happen is left out."""
    made: Json = {
        "order": list(trace.order),
        "interested": list(trace.interested),
        "called": trace.called,
        "passedPlugins": list(trace.passed_plugins),
        "filter": [_filter(call) for call in trace.filter],
        "statuses": {name: _status(status) for name, status in trace.statuses.items()},
        "silent": list(trace.silent),
        "scores": [_scores(call) for call in trace.scores],
        "preempt": [_preempt(call) for call in trace.preempt],
        "candidates": [
            {"node": node, "victims": list(victims.pods), "pdbViolations": victims.pdb_violations}
            for node, victims in trace.candidates.items()
        ],
    }
    if trace.candidates_error:
        made["candidatesStatus"] = _status(Status(code=Code.ERROR, reasons=(trace.candidates_error,)))
    return {key: value for key, value in made.items() if value or key in ("interested", "called")}


def _status(status: Status) -> Json:
    return {"code": status.code.text, "reasons": list(status.reasons)}


def _failed(error: str, *, ignored: bool = False) -> Json:
    return {**({"error": error} if error else {}), **({"ignored": True} if ignored else {})}


def _filter(call: FilterCall) -> Json:
    return {
        "extender": call.extender,
        "in": list(call.asked),
        "out": list(call.left),
        "failed": dict(call.failed),
        "failedAndUnresolvable": dict(call.failed_and_unresolvable),
        **_failed(call.error, ignored=call.ignored),
    }


def _scores(call: ScoreCall) -> Json:
    return {
        "extender": call.extender,
        "raw": [{"host": host, "score": score} for host, score in call.raw],
        "weight": call.weight,
        "added": dict(call.added),
        **_failed(call.error),
    }


def _preempt(call: PreemptCall) -> Json:
    return {
        "extender": call.extender,
        "in": _victims(call.asked),
        "out": None if call.left is None else _victims(call.left),
        **_failed(call.error, ignored=call.ignored),
    }


def _victims(candidates: Mapping[str, Victims]) -> Json:
    return {
        node: {"pods": list(victims.pods), "numPDBViolations": victims.pdb_violations}
        for node, victims in candidates.items()
    }
