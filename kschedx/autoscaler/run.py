"""From a snapshot to cluster-autoscaler's decision and the value of the key `autoscaler`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kschedx.autoscaler.cluster import Autoscaler, AutoscalerOptions
from kschedx.autoscaler.flags import Flags, FlagValue
from kschedx.autoscaler.pods import PodEquivalence, PodOutcome
from kschedx.autoscaler.sandbox import TemplateVerdict
from kschedx.autoscaler.state import GroupChoice, GroupResult, LoopResult, LoopState, PodResult
from kschedx.autoscaler.templates import GroupsFile, Template
from kschedx.errors import InputError
from kschedx.kube.documents import Json, to_json
from kschedx.kube.types import AUTOSCALER_STATUS, Pod
from kschedx.releases import resolve
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

# The loop as a document, the value of the key `autoscaler`.


def _entries_of(answer: LoopResult, pods: PodTable) -> dict[str, list[PodResult]]:
    """Return the pending pods that differ only in their names, by the first one. The loop may choose among them at
    random."""
    equivalence = PodEquivalence(pods)
    together: dict[Hashable, list[PodResult]] = {}
    for pod in answer.pods:
        together.setdefault(_identity(pods, equivalence, pod.row), []).append(pod)
    return {pods.key(some[0].row): some for some in together.values()}


def _identity(pods: PodTable, equivalence: PodEquivalence, row: int) -> Hashable:
    controller = equivalence.controller(row)
    if controller is None:
        return row
    return (
        controller,
        equivalence.template(row),
        int(pods.annotations.codes[row]),
        int(pods.namespaces.codes[row]),
        pods.creation_timestamps[row],
        pods.deletion_timestamps[row],
        pods.nominated_node_names[row],
        int(pods.statuses.codes[row]),
        int(pods.phases.codes[row]),
    )


def _group(group_result: GroupResult) -> Json:
    status = group_result.group.status
    document: Json = {
        "health": status.health.value,
        "target": status.target,
        "minSize": status.min_size,
        "maxSize": status.max_size,
        "upcoming": group_result.group.upcoming,
    }
    if group_result.skipped:
        document["skipped"] = list(group_result.skipped)
    if status.backoff_code or status.backoff_message:
        document["backoff"] = {"errorCode": status.backoff_code, "errorMessage": status.backoff_message}
    if group_result.template is not None:
        document["template"] = _template(group_result.template)
    return document


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


def _entry(members: Iterable[PodResult], pods: PodTable) -> Json:
    rows: list[Json] = []
    counts: list[int] = []
    for pod in members:
        row = _outcome(pod)
        if row in rows:
            counts[rows.index(row)] += 1
        else:
            rows.append(row)
            counts.append(1)
    return {
        "members": [pods.key(pod.row) for pod in members],
        "outcomes": [{"count": count, **row} for count, row in zip(counts, rows, strict=True)],
    }


def _outcome(pod_result: PodResult) -> Json:
    document: Json = {"outcome": pod_result.outcome.value}
    if pod_result.outcome is PodOutcome.SCHEDULABLE:
        document["on"] = "upcoming" if pod_result.is_on_upcoming else "existing"
    if pod_result.verdicts:
        document["groups"] = {group: _verdict(verdict) for group, verdict in pod_result.verdicts.items()}
    if pod_result.remains:
        document |= {"remains": True, "parts": list(pod_result.parts), "event": pod_result.is_event_sent}
    return document


def _verdict(verdict: TemplateVerdict) -> Json:
    if verdict.fits:
        return {"fits": True}
    document: Json = {"fits": False, "plugin": verdict.plugin, "reasons": list(verdict.reasons)}
    if verdict.error:
        document["error"] = verdict.error
    return document


def _choice(choice: GroupChoice, count: Callable[[Iterable[int]], dict[str, int]]) -> Json:
    document: Json = {
        "result": choice.result.value,
        "scaleUps": list(map(to_json, choice.resizes)),
        "triggered": count(choice.triggered),
        "awaiting": count(choice.awaiting),
        "event": choice.event,
    }
    if choice.error:
        document["error"] = choice.error
    return document


# From a snapshot to cluster-autoscaler's decision.


class Autoscaling(Struct, frozen=True, kw_only=True):
    """A loop's decision about the pending pods of a snapshot."""

    answer: LoopResult
    pods: PodTable

    def __repr__(self) -> str:
        return f"<Autoscaling of {len(self.pods.pending):,} pending pods>"

    def records(self) -> list[dict[str, object]]:
        """Return a row per pending pod and node group: flat, for `pandas.DataFrame` and `polars.DataFrame`."""
        untried: dict[str, TemplateVerdict | None] = {"": None}
        return [
            {
                "pod": self.pods.key(pod.row),
                "outcome": pod.outcome.value,
                "group": group,
                "verdict": "" if verdict is None else "fits" if verdict.fits else "does not fit",
                "plugin": "" if verdict is None else verdict.plugin,
                "reasons": "" if verdict is None else "; ".join(verdict.reasons),
            }
            for members in _entries_of(self.answer, self.pods).values()
            for pod in members
            for group, verdict in (pod.verdicts or untried).items()
        ]

    def to_dict(self) -> Json:
        answer, entries = self.answer, _entries_of(self.answer, self.pods)
        name_of = {pod.row: name for name, members in entries.items() for pod in members}

        def counted(rows: Iterable[int]) -> dict[str, int]:
            return dict(Counter(name_of[row] for row in rows))

        document: Json = {
            "result": answer.result.value,
            "groups": {group.group.name: _group(group) for group in answer.groups},
            "pods": {name: _entry(members, self.pods) for name, members in entries.items()},
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
            document["error"] = answer.error
        if answer.unknown_expanders:
            document["unknownExpanders"] = list(answer.unknown_expanders)
        return document


def setup_of(
    snapshot: Snapshot,
    *,
    group_label: str,
    templates: Mapping[str, object] | None = None,
    flags: Mapping[str, FlagValue] | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    now: str | None = None,
) -> LoopState:
    """Return the input of a loop. Raises `InputError` without a valid status of an autoscaler."""
    options = AutoscalerOptions(group_label=group_label, file=GroupsFile(templates=templates or {}), config=config)
    autoscaler = Autoscaler.of_status(snapshot, options, resolve(kube_version))
    if autoscaler is None:
        raise InputError(f"the snapshot has no ConfigMap {AUTOSCALER_STATUS}, which the cluster-autoscaler writes")
    read = Flags.read(flags or {}, autoscaler.behavior)
    return replace(replace(autoscaler, changed_flags=read).loop(now=now).state, cloud_is_known=True)
