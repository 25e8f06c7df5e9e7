"""The loop as a document, the value of the key `autoscaler`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.autoscaler.answers import Answer, Choice, GroupAnswer, PodAnswer
from kschedx.autoscaler.kinds import PodKinds
from kschedx.autoscaler.pods import Outcome
from kschedx.autoscaler.templates import Template
from kschedx.autoscaler.world import Verdict
from kschedx.snapshot.pods import PodTable

Json = dict[str, object]


class Entry(Struct, frozen=True, kw_only=True):
    """Pending pods that nothing but their name tells apart; what the loop makes of which of them can be chance."""

    name: str
    """`namespace/name` of the first."""
    pods: tuple[PodAnswer, ...]


def entries_of(answer: Answer, pods: PodTable) -> tuple[Entry, ...]:
    kinds = PodKinds(pods)
    together: dict[Hashable, list[PodAnswer]] = {}
    for one in answer.pods:
        together.setdefault(_identity(pods, kinds, one.row), []).append(one)
    return tuple(Entry(name=pods.key(some[0].row), pods=tuple(some)) for some in together.values())


def _identity(pods: PodTable, kinds: PodKinds, row: int) -> Hashable:
    controller = kinds.controller(row)
    if controller is None:
        return row
    return (
        controller,
        kinds.template(row),
        int(pods.annotations.codes[row]),
        int(pods.namespaces.codes[row]),
        pods.creation_timestamps[row],
        pods.deletion_timestamps[row],
        pods.nominated_node_names[row],
        int(pods.statuses.codes[row]),
        int(pods.phases.codes[row]),
    )


def document(answer: Answer, pods: PodTable) -> Json:
    entries = entries_of(answer, pods)
    name_of = {one.row: entry.name for entry in entries for one in entry.pods}

    def counted(rows: Iterable[int]) -> dict[str, int]:
        return dict(Counter(name_of[row] for row in rows))

    made: Json = {
        "result": answer.result.value,
        "groups": {one.group.name: _group(one) for one in answer.groups},
        "pods": {entry.name: _entry(entry, pods) for entry in entries},
        "options": [
            {
                "group": option.group,
                "nodes": option.nodes,
                "pods": counted(option.pods),
                "similar": list(option.similar),
            }
            for option in answer.options
        ],
        "candidates": [choice.option.group for choice in answer.choices],
        "choices": {choice.option.group: _choice(choice, counted) for choice in answer.choices},
        "clusterEvents": list(answer.events),
    }
    if answer.error:
        made["error"] = answer.error
    if answer.unknown_expanders:
        made["unknownExpanders"] = list(answer.unknown_expanders)
    return made


def _group(one: GroupAnswer) -> Json:
    status = one.group.status
    made: Json = {
        "health": status.health.value,
        "target": status.target,
        "minSize": status.min_size,
        "maxSize": status.max_size,
        "upcoming": one.group.upcoming,
    }
    if one.skipped:
        made["skipped"] = list(one.skipped)
    if status.backoff_code or status.backoff_message:
        made["backoff"] = {"errorCode": status.backoff_code, "errorMessage": status.backoff_message}
    if one.template is not None:
        made["template"] = _template(one.template)
    return made


def _template(template: Template) -> Json:
    node = template.node
    return {
        "from": template.source,
        "labels": dict(node.metadata.labels),
        "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints],
        "unschedulable": node.spec.unschedulable,
        "allocatable": {name: str(text) for name, text in node.status.allocatable.items()},
        "capacity": {name: str(text) for name, text in node.status.capacity.items()},
        "pods": [_pod_name(pod) for pod in template.pods],
        "requested": {"cpu": f"{template.milli_cpu}m", "memory": str(template.memory)},
    }


def _pod_name(pod: Pod) -> str:
    controller = pod.metadata.controller
    if controller is not None and controller.kind == "DaemonSet":
        return f"DaemonSet {pod.metadata.namespace}/{controller.name}"
    return f"Pod {pod.key}"


def _entry(entry: Entry, pods: PodTable) -> Json:
    rows: list[Json] = []
    counts: list[int] = []
    for one in entry.pods:
        row = _outcome(one)
        if row in rows:
            counts[rows.index(row)] += 1
        else:
            rows.append(row)
            counts.append(1)
    return {
        "members": [pods.key(one.row) for one in entry.pods],
        "outcomes": [{"count": count, **row} for count, row in zip(counts, rows, strict=True)],
    }


def _outcome(one: PodAnswer) -> Json:
    made: Json = {"outcome": one.outcome.value}
    if one.outcome is Outcome.SCHEDULABLE:
        made["on"] = "upcoming" if one.is_on_upcoming else "existing"
    if one.verdicts:
        made["groups"] = {group: _verdict(verdict) for group, verdict in one.verdicts.items()}
    if one.remains:
        made |= {"remains": True, "parts": list(one.parts), "event": one.is_told}
    return made


def _verdict(verdict: Verdict) -> Json:
    if verdict.fits:
        return {"fits": True}
    made: Json = {"fits": False, "plugin": verdict.plugin, "reasons": list(verdict.reasons)}
    if verdict.error:
        made["error"] = verdict.error
    return made


def _choice(choice: Choice, count: Callable[[Iterable[int]], dict[str, int]]) -> Json:
    made: Json = {
        "result": choice.result.value,
        "scaleUps": [
            {"group": one.group, "from": one.before, "to": one.after, "max": one.maximum} for one in choice.resizes
        ],
        "triggered": count(choice.triggered),
        "awaiting": count(choice.awaiting),
        "event": choice.event,
    }
    if choice.error:
        made["error"] = choice.error
    return made
