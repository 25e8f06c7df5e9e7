"""The first decision about each Workload of a cluster, from runs that the Workloads of related queues share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from kschedx.kueue.document import AdmissionCycle, QueueHead
from kschedx.kueue.queues import WorkloadQueue
from kschedx.kueue.run import AdmissionRun

_MOST_CYCLES = 2_000


class _FirstDecision(Struct, frozen=True, kw_only=True):
    head: QueueHead | None = None
    equal_to: str = ""  # the equal Workload that was decided in its place
    has_stopped: bool = False
    """Whether Kueue waits for the pods of admitted Workloads since then, and evaluates nothing else."""


class FirstDecisions:
    def __init__(self, begin: Callable[[], AdmissionRun]) -> None:
        """`begin` returns a run before its first cycle."""
        self._begin = begin
        self.begun = begin()  # the cluster before the first cycle; it is not moved
        self._orders: dict[str, Sequence[str]] = {}
        self._runs: dict[tuple[str, ...], _SharedRun] = {}

    def order(self, queue: WorkloadQueue) -> Sequence[str]:
        """Return the pending Workloads of a ClusterQueue before the first cycle, in its order."""
        name = queue.queue.metadata.name
        if name not in self._orders:
            self._orders[name] = [job.key for job in queue.everyone]
        return self._orders[name]

    def of(self, key: str) -> tuple[_FirstDecision, AdmissionRun]:
        """Return the first decision about a Workload, and a run that has made it."""
        watched = self.begun.related_queues(self.begun.jobs[key])
        names = tuple(watched)
        if names not in self._runs:
            run = self._begin()
            run.watched = watched
            self._runs[names] = _SharedRun(run)
        shared = self._runs[names]
        return shared.decision(key), shared.run


class _SharedRun:
    """A run that moves only as far as the questions about its Workloads require."""

    def __init__(self, run: AdmissionRun) -> None:
        self.run = run
        self._known: dict[str, _FirstDecision] = {}
        self._cycles = 0
        self._is_over = False

    def decision(self, key: str) -> _FirstDecision:
        while key not in self._known and not self._is_over:
            cycle = self.run.cycle() if self._cycles < _MOST_CYCLES else None
            self._cycles += 1
            if cycle is None:
                self._is_over = True
            else:
                self._record(cycle)
        return self._known.get(key) or _FirstDecision(has_stopped=self.run.has_stopped)

    def _record(self, cycle: AdmissionCycle) -> None:
        stopped, shapes = self.run.has_stopped, dict[bytes, str]()
        for key, head in cycle.heads.items():
            if head.outcome != "Skipped":
                self._known.setdefault(key, _FirstDecision(head=head, has_stopped=stopped))
            if (shape := self.run.jobs[key].shape) is not None:
                shapes.setdefault(shape, key)
        for queue in self._queues_with(shapes):
            for job in queue.parked.values():
                key = shapes.get(job.shape, "") if job.shape is not None and job.shape in queue.bypassed else ""
                if key and job.key not in self._known:
                    self._known[job.key] = _FirstDecision(head=cycle.heads[key], equal_to=key, has_stopped=stopped)

    def _queues_with(self, shapes: Collection[bytes]) -> list[WorkloadQueue]:
        """Return the queues that set Workloads of these shapes aside together."""
        queues = (self.run.queues[name] for name in self.run.watched)
        return [queue for queue in queues if not queue.bypassed.keys().isdisjoint(shapes)]
