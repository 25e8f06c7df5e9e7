"""Many pods of a snapshot, one after the other as the queue would take them, and what their answers have in common.

Each is explained against the same snapshot, as if it came next: what a pod would take from those behind it is not
subtracted, since kube-scheduler may be told to leave it, or pick another node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import Selector
from kschedx.framework.cycle import Outcome
from kschedx.snapshot.snapshot import Snapshot


class Answer(Struct, frozen=True, kw_only=True):
    """What becomes of one pod, in short."""

    pod: str
    """`namespace/name`."""
    priority: int
    outcome: Outcome | None
    """None where kschedx cannot decide."""
    nodes: tuple[str, ...] = ()
    """Those among which kube-scheduler picks."""
    message: str = ""
    """kube-scheduler's text, or what kschedx would need to decide."""


class Group(Struct, frozen=True, kw_only=True):
    """Pods with the same answer, in the order of the queue."""

    answers: tuple[Answer, ...]

    @property
    def first(self) -> Answer:
        return self.answers[0]


def rows_in_queue_order(
    snapshot: Snapshot, *, namespace: str | None = None, labels: Selector | None = None, pending: bool = True
) -> list[int]:
    """Rows of the pods to look at: those that wait for a node, or all that have not finished.

    Higher priority first, then the older pod (PrioritySort; a snapshot knows creation, not queueing).
    """
    pods = snapshot.pods
    rows = (
        list(pods.pending)
        if pending
        else np.flatnonzero(~pods.phases.where(lambda phase: phase in ("Succeeded", "Failed"))).tolist()
    )
    if namespace is not None:
        rows = [row for row in rows if pods.namespaces[row] == namespace]
    if labels is not None:
        rows = [row for row in rows if labels.matches(pods.labels[row])]
    return sorted(rows, key=lambda row: (-pods.priorities[row], pods.creation_timestamps[row] or "", pods.key(row)))


def groups(answers: Iterable[Answer]) -> tuple[Group, ...]:
    """Equal reasons together, in the order of their first pods; pods that fit somewhere are one group."""
    found: dict[tuple[object, str], list[Answer]] = {}
    for answer in answers:
        found.setdefault((answer.outcome, answer.message), []).append(answer)
    return tuple(Group(answers=tuple(group)) for group in found.values())


def counts(answers: Iterable[Answer]) -> Mapping[Outcome | None, int]:
    """How many pods have each outcome."""
    found: dict[Outcome | None, int] = {}
    for answer in answers:
        found[answer.outcome] = found.get(answer.outcome, 0) + 1
    return found
