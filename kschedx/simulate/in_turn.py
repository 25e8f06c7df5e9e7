"""Pods that wait, each as it fares after those before it in the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from kschedx.answer.explanation import Explanation
from kschedx.answer.fix import Fix
from kschedx.answer.replicas import Covered
from kschedx.explain.many import Taken
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.simulate.mending import Mended, Mending
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.what_if import simulate
from kschedx.snapshot.snapshot import Snapshot


class InTurn:
    """A queue that has run, to be asked about its pods by `namespace/name`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    @classmethod
    def of(cls, snapshot: Snapshot, setup: Setup) -> InTurn:
        return cls(simulate(snapshot, setup))

    def is_queued(self, pod: str) -> bool:
        return pod in self._simulation.placed or pod in self._simulation.messages

    def node(self, pod: str) -> str:
        """Where it went; empty where it waits."""
        return self._simulation.placed.get(pod, "")

    def message(self, pod: str) -> str:
        """kube-scheduler's text about a pod that waits; empty for one that does not."""
        return self._simulation.messages.get(pod, "")

    def explanation(self, pod: str) -> Explanation:
        """What `why` says of it: of one that found a node, when it did; of another, in the cluster as it is then."""
        simulation = self._simulation
        if pod in simulation.placed:
            return simulation.explain(self._steps[pod])
        return simulation.explain_then(pod)

    @cached_property
    def _steps(self) -> Mapping[str, int]:
        """Pods to the number of their last decision."""
        return {step.key: number for number, step in enumerate(self._simulation.steps)}

    @cached_property
    def _alone(self) -> Run:
        simulation = self._simulation
        return Run(simulation.setup.scheduler_on(simulation.start))

    def taken(self, pod: str) -> Taken | None:
        """Who took the place of a pod that would fit if it came first; None where it would not."""
        if pod not in self._simulation.messages or pod in self._simulation.undecided:
            return None
        run = self._alone
        decision = run.decide(run.cluster.pods.rows[pod])
        if decision.outcome is not Outcome.SCHEDULED:
            return None
        names = [run.cluster.node_names[row] for row in decision.choice.tolist()]
        node = min(names)
        before = tuple(other for other, place in self._simulation.placed.items() if place == node)
        return Taken(node=node, by=before)

    def mended(self, pods: Sequence[str]) -> Mended | None:
        """What would give pods a node that wait, tried for all of them; None where nothing is known that would."""
        return self._mending.mended(pods)

    def covered(self, explanation: Explanation, fix: Fix, pods: Sequence[str]) -> Covered | None:
        """For how many of these pods that wait a fix of the first one does."""
        found = self._mending.covered(explanation, fix, pods)
        return None if found is None else Covered(title=found.title, pods=found.pods, of=found.of)

    @cached_property
    def _mending(self) -> Mending:
        return Mending(self._simulation)

    @property
    def evicted(self) -> tuple[str, ...]:
        """The pods that preemption evicts for any of them."""
        return tuple(self._simulation.evictions)
