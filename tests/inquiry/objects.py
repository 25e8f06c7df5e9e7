"""Answers about objects that create no pods."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from msgspec import Struct

from kschedx.controllers import states
from kschedx.controllers.state_causes import causes
from kschedx.explain.setup import Setup
from kschedx.inquiry.objects import explain_object
from kschedx.simulate.object_changes import object_reference
from kschedx.snapshot.snapshot import Snapshot


class AnswerParts(Struct, frozen=True, kw_only=True):
    code: int
    headline: str
    causes: list[str]
    fixes: list[str]


def answer_of(target: str, *objects: dict[str, Any], namespace: str = "default") -> AnswerParts:
    snapshot = Snapshot.from_objects(deepcopy(objects))
    reference = object_reference(target, namespace, snapshot)
    assert reference is not None
    answer = explain_object(snapshot, Setup.of_cluster(snapshot), reference)
    assert answer is not None
    assert answer.lifecycle is not None
    return AnswerParts(
        code=int(answer.exit_code),
        headline=states.headline(answer.lifecycle),
        causes=[*causes(answer.lifecycle)],
        fixes=[fix.title for fix in answer.fixes],
    )
