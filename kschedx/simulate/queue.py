"""A queue of pods, one decision after the other, each on the cluster that the decisions before it left.

The order is PrioritySort's as a snapshot knows it: priority, then creation; a pod that no API server has stored comes
before those that one has. A pod that preempts others is decided again at once, and who stayed behind is tried again
as long as a round changed something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from kschedx.framework.cycle import Outcome
from kschedx.framework.interface import Candidate, PostFilterResult
from kschedx.framework.moving import Decision, Run
from kschedx.snapshot.columns import IntArray

MAX_ROUNDS = 1000
"""A round that changes nothing is the last. Since evictions only go down in priority, queues end long before this."""


class Step(Struct, frozen=True, kw_only=True):
    """One decision. Nodes and pods are rows."""

    pod: int
    decision: Decision
    node: int | None = None
    """Where the pod went."""
    nominated: int | None = None
    """The node on which preemption made room."""
    tied: tuple[int, ...] = ()
    """The nodes among which kube-scheduler would pick one to preempt on."""
    victims: tuple[int, ...] = ()


Pick = Callable[[IntArray], int]
"""Takes one of several nodes, given by their rows, that are equally good."""


class Queue:
    """Decides about pods until nothing changes any more."""

    def __init__(self, run: Run, pick: Pick) -> None:
        self._run = run
        self._pick = pick
        self._known = frozenset(profile.scheduler_name for profile in run.scheduler.config.profiles)
        self.steps: list[Step] = []
        self.evicted: set[int] = set()

    def order(self, rows: Iterable[int]) -> list[int]:
        """The pods that a scheduler of the configuration would take, in the order in which it does."""
        pods = self._run.cluster.pods
        taken = (
            row for row in rows if not pods.deletion_timestamps[row] and pods.specs[row].scheduler_name in self._known
        )
        return sorted(taken, key=lambda row: (-int(pods.priorities[row]), pods.creation_timestamps[row] or "", row))

    def run(self, rows: Sequence[int]) -> None:
        """Rows in queue order."""
        waiting = list(rows)
        for _ in range(MAX_ROUNDS):
            behind: list[int] = []
            moved = False
            for row in waiting:
                placed, made_room = self._decide(row)
                moved |= placed or made_room
                if not placed:
                    behind.append(row)
            if not moved:
                return
            waiting = behind

    def _decide(self, row: int) -> tuple[bool, bool]:
        """Whether the pod found its place, and whether others had to go for it."""
        made_room = False
        while True:
            decision = self._run.decide(row)
            if decision.outcome is Outcome.SCHEDULED:
                node = self._pick(decision.choice)
                self._run.cluster.place(row, node)
                self.steps.append(Step(pod=row, decision=decision, node=node))
                return True, made_room
            found = decision.post_filter
            if found is None or not found.status.is_success or not found.best:
                self._run.cluster.nominate(row, None)
                self.steps.append(Step(pod=row, decision=decision))
                return False, made_room
            self._preempt(row, decision, found)
            made_room = True

    def _preempt(self, row: int, decision: Decision, found: PostFilterResult) -> None:
        """The victims go at once, and pods of lower priority lose their nomination for the node."""
        node = self._pick(np.array(found.best, dtype=np.int64))
        victims = _candidate(found, node).victims
        cluster = self._run.cluster
        for victim in victims:
            cluster.remove(victim)
            self.evicted.add(victim)
        priorities = cluster.pods.priorities
        name = cluster.node_names[node]
        for other, nominated in list(cluster.pods.nominations.items()):
            if nominated == name and priorities[other] < priorities[row]:
                cluster.nominate(other, None)
        cluster.nominate(row, node)
        self.steps.append(Step(pod=row, decision=decision, nominated=node, tied=found.best, victims=victims))


def _candidate(found: PostFilterResult, node: int) -> Candidate:
    return next(candidate for candidate in found.candidates if candidate.node == node)
