"""What the cluster's own kube-scheduler said of the pod, held against what kschedx says."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.types import Pod
from kschedx.explain.events import Event, parse


def recorded_message(pod: Pod) -> str:
    """The message of the pod's PodScheduled condition, which is the last FailedScheduling event's; empty without one."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            return condition.message
    return ""


def differences(theirs: str, ours: str) -> tuple[str, ...]:
    """What is different about the two messages, and what that comes from, each in a clause; nothing where they are equal."""
    if theirs == ours:
        return ()
    if not ours:
        return ("kschedx finds a node for it now: the event is of an older state",)
    return tuple(_differences(parse(theirs), parse(ours)))


def _differences(theirs: Event, ours: Event) -> Iterator[str]:
    if theirs.nodes is not None and theirs.nodes != ours.nodes:
        yield f"it counts {theirs.nodes:,} nodes, the snapshot has {ours.nodes or 0:,}: another state, or kinds are missing"
    mine = {(part.stage, part.text): part.count for part in ours.parts}
    seen = {(part.stage, part.text): part.count for part in theirs.parts}
    ids = {part.reason for part in ours.parts if part.reason}
    for part in theirs.parts:
        key = (part.stage, part.text)
        if key in mine:
            if part.count != mine[key]:
                yield f"{part.count or 0:,} × {part.text!r} there, {mine[key] or 0:,} here: an older state"
        elif part.reason and part.reason in ids:
            yield f"{part.text!r} is how another release, or another configuration, says it"
        elif not part.is_known:
            yield f"{part.text!r} is no text of a plugin that kschedx knows: an extender's, or another scheduler's"
        else:
            yield f"{part.text!r} holds no longer, or {part.plugin} runs in that profile only"
    for part in ours.parts:
        if (part.stage, part.text) not in seen and part.reason not in {p.reason for p in theirs.parts}:
            yield f"{part.text!r} is new"
