"""From a snapshot to what becomes of its pending pods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kschedx.explain.missing import require_nodes_and_pods
from kschedx.explain.which_release import release_to_emulate
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.simulate.queue import Queue, Step
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, object]


class Simulation(Struct, frozen=True, kw_only=True):
    """A queue that has ended."""

    run: Run
    before: Snapshot
    steps: tuple[Step, ...]
    queue: tuple[int, ...]
    """Rows of the pods that waited in the beginning, in the order of the queue."""
    evicted: frozenset[int]

    @property
    def placed(self) -> Mapping[str, str]:
        """Pods of the queue that have a node in the end, to its name."""
        pods, names = self.run.cluster.pods, self.run.cluster.node_names
        return {pods.key(row): names[node] for row in self.queue if (node := int(pods.node[row])) >= 0}

    @property
    def pending(self) -> tuple[str, ...]:
        """Pods of the queue that have none and were not evicted, in the order of the queue."""
        pods = self.run.cluster.pods
        return tuple(pods.key(row) for row in self.queue if pods.node[row] < 0 and row not in self.evicted)

    def to_dict(self) -> Json:
        return {
            "apiVersion": "kschedx/v1",
            "kind": "Simulation",
            "kubernetesVersion": self.run.scheduler.release.version,
            "steps": [self._step(step) for step in self.steps],
            "placed": dict(self.placed),
            "pending": list(self.pending),
        }

    def _step(self, step: Step) -> Json:
        names, pods = self.run.cluster.node_names, self.run.cluster.pods
        decision = step.decision
        told: Json = {"pod": pods.key(step.pod), "outcome": decision.outcome.value}
        if decision.outcome is Outcome.SCHEDULED:
            assert step.node is not None
            return told | {"bestNodes": sorted(names[row] for row in decision.best), "node": names[step.node]}
        told |= {"message": decision.message}
        if step.nominated is None:
            return told
        return told | {
            "nominatedNode": names[step.nominated],
            "tiedCandidates": sorted(names[row] for row in step.tied),
            "victims": sorted(pods.key(row) for row in step.victims),
        }


def simulate_queue(
    snapshot: Snapshot,
    *,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Simulation:
    """Let the pods that wait be scheduled one after the other."""
    require_nodes_and_pods(snapshot)
    release = resolve(release_to_emulate(snapshot, kube_version), feature_gates)
    run = Run(scheduler_of(config, release, snapshot))
    rank = np.argsort(np.argsort(np.array(run.cluster.node_names, dtype=np.str_)))

    def first_by_name(rows: IntArray) -> int:
        return int(rows[rank[rows].argmin()])

    queue = Queue(run, first_by_name)
    pods = run.cluster.pods
    waiting = queue.order(row for row in pods.pending if not pods.specs[row].scheduling_gates)
    queue.run(waiting)
    return Simulation(
        run=run, before=snapshot, steps=tuple(queue.steps), queue=tuple(waiting), evicted=frozenset(queue.evicted)
    )
