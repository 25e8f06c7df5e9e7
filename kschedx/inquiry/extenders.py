"""Who asks the extenders of a configuration: the only place that knows both the rules and the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kschedx.errors import InputError
from kschedx.extenders import Ask, ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply
from kschedx.extenders.replay import KIND, Replay, recording_of
from kschedx.framework.status import Code, Status
from kschedx.kube.duration import NANOSECONDS

if TYPE_CHECKING:
    from kschedx.extenders.calls import FilterCall, PreemptCall, ScoreCall, Trace, Victims
    from kschedx.extenders.client import Request, Response
    from kschedx.extenders.tls import Identity
    from kschedx.framework.config import Extender

CALL = "call"
DEFAULT_TIMEOUT = 5.0
"""Seconds, for an extender without an httpTimeout."""


def asking(extenders: str | Mapping[str, object]) -> Ask:
    """Who answers for the extenders: themselves, for "call", or a recording. Raises `InputError`."""
    if isinstance(extenders, Mapping):
        return Replay([recording_of(extenders)])
    if extenders == CALL:
        return call
    raise InputError(f'extenders: found {extenders!r}, allowed are "call" and a recording')


def replaying(path: str) -> Replay:
    """The recordings in a file, or in a snapshot. Raises `InputError`."""
    from kschedx.extenders.recordings import read

    return Replay([recording_of(manifest) for manifest in read(path, KIND)], path)


def call(questions: tuple[ExtenderRequest, ...]) -> tuple[Reply, ...]:
    """Over HTTP, all at the same time."""
    from kschedx.extenders.client import post

    return tuple(map(_reply, post([_request(question) for question in questions])))


def _request(question: ExtenderRequest) -> Request:
    from kschedx.extenders.client import Request

    seconds = question.extender.http_timeout / NANOSECONDS["s"]
    return Request(
        url=question.url,
        body=question.body(),
        seconds=seconds or DEFAULT_TIMEOUT,
        identity=_identity(question.extender, question.index),
    )


def _reply(response: Response) -> Reply:
    if response.error:
        return ExtenderFailure(text=response.error)
    return ExtenderAnswer(status=response.status, body=response.body, ended=response.ended)


def _identity(extender: Extender, index: int) -> Identity:
    """`enableHTTPS` without a CA trusts anybody."""
    from kschedx.extenders.tls import Identity

    place, tls = f"extenders[{index}]", extender.tls_config
    if tls is None:
        return Identity(insecure=extender.enable_https, place=place)
    has_ca = bool(tls.ca_file or tls.ca_data)
    return Identity(
        insecure=tls.insecure or (extender.enable_https and not has_ca),
        server_name=tls.server_name,
        ca_file=tls.ca_file,
        ca_data=tls.ca_data,
        cert_file=tls.cert_file,
        cert_data=tls.cert_data,
        key_file=tls.key_file,
        key_data=tls.key_data,
        place=place,
    )


# The `extenders` of an Explanation document: who was asked what, and what became of it.

Json = dict[str, object]


def extenders_document(trace: Trace) -> Json:
    """Extenders are told by their index in the configuration. What did not happen is left out."""
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
