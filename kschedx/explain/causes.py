"""Explains many pods of a snapshot, in queue order, and groups them by cause.

Each pod is explained against the same snapshot, as if it were next: what other pending pods would use is not
subtracted, because kube-scheduler may choose other nodes for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.node_groups import selects_nodes
from kschedx.explain.root_causes import root_causes
from kschedx.findings import Finding, InsufficientResource
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import shares_columns
from kschedx.framework.scheduler import Scheduler, queue_order
from kschedx.grouping import group_pairs
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.selectors import Selector
from kschedx.kube.types import Pod
from kschedx.kube.workloads import qualified_kind
from kschedx.snapshot.snapshot import Snapshot

_SHARED = frozenset({
    "cause", "device_class", "driver", "effect", "ephemeral", "gates", "group", "key", "max_skew", "missing",
    "operator", "port", "protocol", "provisioner", "requirements", "resource", "selector", "shortages", "source",
    "storage_class", "template", "terms", "text", "topology_key", "value", "values",
})  # fmt: skip
"""Facts of findings that pods may share: requirements, but neither owners nor amounts."""


class NodeIfFirst(Struct, frozen=True, kw_only=True):
    """The node that a pod would get if it were first."""

    node: str
    by: tuple[str, ...]  # the pods that are assigned to it before


class PodAnswer(Struct, frozen=True, kw_only=True):
    pod: str  # `namespace/name`
    owner: str = ""  # the controller of the pod: `Deployment web`; empty without one
    priority: int
    outcome: Outcome | None  # None if kschedx cannot decide
    nodes: tuple[str, ...] = ()  # the nodes among which kube-scheduler chooses
    message: str = ""  # kube-scheduler's message, or what kschedx needs to decide
    cause: Hashable = ()  # the key of the pod's group
    preempts: bool = False  # whether kube-scheduler evicts other pods for this one
    headlines: tuple[str, ...] = ()  # one headline for each kind of rejection, by number of nodes
    reasons: tuple[str, ...] = ()  # the ids of these rejections, without duplicates
    wants: str = ""  # labels that the pod requires and no node has, with the nearest ones
    command: str = ""  # the command for the complete answer
    state: str = ""  # the row in the table of states, if kube-scheduler does not decide about the pod


class CauseGroup(Struct, frozen=True, kw_only=True):
    """Pods with the same cause, in queue order."""

    answers: tuple[PodAnswer, ...]

    @property
    def first(self) -> PodAnswer:
        return self.answers[0]

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted({answer.pod.partition("/")[0] for answer in self.answers}))


def rows_in_queue_order(
    snapshot: Snapshot,
    scheduler: Scheduler,
    *,
    namespace: str | None = None,
    labels: Selector | None = None,
    pending: bool = True,
    also: Sequence[int] = (),
) -> list[int]:
    """Return rows of the pending pods and of `also`, or of all unfinished pods. The order is that of the QueueSort
    plugin, with a pod's creation as its time in the queue, then by name."""
    pods = snapshot.pods
    rows = [*pods.pending, *also] if pending else np.flatnonzero(~pods.finished).tolist()
    if namespace is not None:
        rows = [row for row in rows if pods.namespaces[row] == namespace]
    if labels is not None:
        rows = [row for row in rows if labels.matches(pods.labels[row])]
    sort_key = queue_order(scheduler) or (lambda pod, since: (-pod.priority, since))
    return sorted(rows, key=lambda row: (sort_key(pods[row], pods.creation_timestamps[row] or ""), pods.key(row)))


def answer_keys(snapshot: Snapshot, rows: Sequence[int]) -> Mapping[int, Hashable]:
    """Return a key for each row that is equal for pods with the same answer, apart from names; rows without a key are
    unique."""
    pods = snapshot.pods
    kinds = pods.class_numbers(np.array(rows, dtype=np.int64)).tolist()
    return {
        row: (kind, pods.nominated_node_names[row], pods.deletion_timestamps[row] is None)
        for row, kind in zip(rows, kinds, strict=True)
        if shares_columns(pods.specs[row])
    }


def groups(answers: Iterable[PodAnswer]) -> tuple[CauseGroup, ...]:
    """Group pods by cause, the largest group first. Schedulable pods are one group, at the end."""

    def key(answer: PodAnswer) -> Hashable:
        cause = () if _fits(answer) else (answer.cause, answer.preempts, answer.cause == () and answer.message)
        return answer.outcome, cause

    answers_by_cause = group_pairs((key(answer), answer) for answer in answers)
    cause_groups = [CauseGroup(answers=tuple(group)) for group in answers_by_cause.values()]
    return tuple(sorted(cause_groups, key=lambda group: (_fits(group.first), -len(group.answers))))


def _fits(answer: PodAnswer) -> bool:
    return answer.outcome is Outcome.SCHEDULED and not answer.state


def decisive(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Return a finding for each way in which the pod is rejected: before Filter, or by groups of nodes, the largest
    first, those that it does not select and those of the control plane last."""
    stops = tuple(finding for stop in diagnosis.stops for finding in stop.status.findings)
    selects = selects_nodes(diagnosis.groups)
    commonest = sorted(diagnosis.groups, key=lambda it: (it.is_of_role, selects and it.is_left_out, -it.count))
    return stops or tuple(finding for group in commonest for finding in group.exemplar.findings)


def cause_of(diagnosis: Diagnosis) -> Hashable:
    """Return the key of pods with the same cause: reasons with the facts that pods may share, or what lies behind a
    rejection without findings."""
    if not diagnosis.stops and not diagnosis.groups:
        return root_causes(diagnosis)
    stops = frozenset(_shared_facts(finding) for stop in diagnosis.stops for finding in stop.status.findings)
    if diagnosis.stops:
        return stops, frozenset(stop.status.plugin for stop in diagnosis.stops)
    return frozenset(frozenset(_shared_facts(finding) for finding in it.exemplar.findings) for it in diagnosis.groups)


def _shared_facts(finding: Finding) -> Hashable:
    never = (finding.requested > finding.allocatable,) if isinstance(finding, InsufficientResource) else ()
    return (finding.reason, *never, *_facts(finding))


def _facts(facts: Struct) -> Iterator[Hashable]:
    for name in facts.__struct_fields__:
        value = getattr(facts, name)
        if name in _SHARED or (name == "claim" and isinstance(value, Struct)):
            yield name, _plain(value)


def _plain(value: object) -> Hashable:
    if isinstance(value, Struct):
        return tuple(_facts(value))
    return tuple(map(_plain, value)) if isinstance(value, tuple) else str(value)


def owner_of(snapshot: Snapshot, pod: Pod) -> str:
    """Return the pod's owner as users name it: the Deployment instead of its ReplicaSet; empty without one."""
    owner = pod.metadata.controller
    if owner is None or owner.kind == "Node":
        return ""
    raw = snapshot.workloads.get((owner.kind, pod.metadata.namespace, owner.name))
    above = stored_metadata(raw).controller if raw is not None and owner.kind in ("ReplicaSet", "Job") else None
    if above is not None:
        return f"{above.kind} {above.name}"
    return f"{qualified_kind({'kind': owner.kind, 'apiVersion': owner.api_version})} {owner.name}"
