"""What is told of groups of pods that were placed one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.daemon_set import DaemonSetAnswer, explain_daemon_set
from kschedx.answer.explanation import Explanation
from kschedx.answer.fix import Fix
from kschedx.answer.replicas import Covered, Replicas
from kschedx.answer.run import explain
from kschedx.answer.subject import Subject
from kschedx.errors import NotAdmittedError, Place
from kschedx.explain.many import Taken
from kschedx.explain.notes import Note
from kschedx.explain.setup import Setup
from kschedx.simulate.daemon_sets import home
from kschedx.simulate.in_turn import InTurn
from kschedx.simulate.mending import Mended
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.strategies import ByOrdinal, Rolling
from kschedx.simulate.workloads import Workload

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import Options as Autoscaling
    from kschedx.karpenter.cluster import Options as Provisioning


class Group(Struct, frozen=True, kw_only=True):
    """Pods that wait, alike, and whose they are."""

    subject: Subject
    """One of them, in the cluster without the others."""
    pods: tuple[str, ...]
    """`namespace/name`."""
    workload: Workload | None = None
    wanted: int = 1
    running: int = 0
    old: tuple[str, ...] = ()
    """Pods of the template before, which a rollout replaces."""
    strategy: Rolling | ByOrdinal | None = None
    """How it replaces them."""
    new: tuple[str, ...] = ()
    """The pods that take the place of a StatefulSet's, under the names that they have until then."""
    kept: Mapping[str, str] = {}
    """A DaemonSet's pods that stay on their nodes, and those."""
    refused: tuple[str, ...] = ()
    """Pods beside `pods` that the API server does not take."""
    refusal: str = ""
    """Its words about the first of them, or its controller's."""


class Together:
    """Groups of pods after the queue."""

    def __init__(
        self, simulation: Simulation, setup: Setup, refusals: Mapping[Workload, str], notes: Mapping[str, Note]
    ) -> None:
        """`refusals` are why a rollout stops that makes no more pods; empty for what goes on. `notes` are about pods by
        themselves."""
        self._setup = setup
        self._notes = notes
        self._refusals = refusals
        self._simulation = simulation
        self._in_turn = InTurn(simulation)

    def is_queued(self, group: Group) -> bool:
        """kube-scheduler takes its pods; of others the story is that of one by itself."""
        return any(map(self._in_turn.is_queued, group.pods))

    def nodes(self, group: Group) -> Mapping[str, str]:
        """Each of its pods that is there to its node; empty where it has none."""
        refused = self.refused(group)
        return {**group.kept, **{key: self._in_turn.node(key) for key in group.pods if key not in refused}}

    def daemon_set(self, group: Group) -> DaemonSetAnswer:
        """A DaemonSet's nodes, after the queue."""
        assert group.workload is not None, "a DaemonSet is one"
        subject = replace(group.subject, snapshot=self._simulation.run.cluster.frozen(), first=None)
        return explain_daemon_set(group.workload.key, subject, self._setup)

    def waiting(self, group: Group) -> Sequence[tuple[str, ...]]:
        """A DaemonSet's pods that found no room on their nodes, by what keeps them out."""
        pods = self._simulation.run.cluster.pods
        waits = {home(pods, pods.rows[key]): key for key, node in self.nodes(group).items() if not node}
        if not waits:
            return ()
        answer = self.daemon_set(group)
        alike = [tuple(waits.pop(node) for node in answer.names(one) if node in waits) for one in answer.waits]
        return (*filter(None, alike), *((key,) for key in waits.values()))

    def story(self, pod: str) -> Explanation:
        """Of one pod of the queue by itself. Raises `UndecidableError`."""
        return self._in_turn.explanation(pod)

    def refusal(self, group: Group) -> str:
        """Why the API server does not take all of its pods; empty where it does."""
        of_rollout = "" if group.workload is None else self._refusals.get(group.workload, "")
        return group.refusal or of_rollout

    def refused(self, group: Group) -> tuple[str, ...]:
        """The pods of which `refusal` is told."""
        if not self.refusal(group):
            return ()
        return group.refused or tuple(key for key in group.pods if not self._in_turn.is_queued(key))

    def taken(self, pod: str) -> Taken | None:
        return self._in_turn.taken(pod)

    def mended(self, pods: Sequence[str]) -> Mended | None:
        return self._in_turn.mended(pods)

    @property
    def evicted(self) -> tuple[str, ...]:
        return self._in_turn.evicted

    def replicas(self, group: Group) -> Replicas | None:
        """None for a pod by itself."""
        refused = self.refused(group)
        if group.workload is None or len({*group.pods, *refused}) == 1:
            return None
        nodes = self.nodes(group)
        its = {*group.pods}
        return Replicas(
            workload=group.workload.reference,
            wanted=group.wanted,
            running=group.running,
            placed={key: node for key, node in nodes.items() if node},
            pending=tuple(key for key, node in nodes.items() if not node),
            evicted=tuple(victim for victim, pod in self._simulation.evictions.items() if pod in its),
            replaced=len(group.old),
            refused=refused,
            refusal=self.refusal(group),
        )

    def explain(
        self, group: Group, autoscaling: Autoscaling | None = None, provisioning: Provisioning | None = None
    ) -> Explanation:
        """The story of the pod that says most about its group, as of when it was decided about. Raises
        `UndecidableError`, and `NotAdmittedError` where the API server takes none of its pods."""
        if not self.nodes(group) and group.workload is not None:
            hint = "the rollout stops, and the pods of the template before stay" if group.old else ""
            raise NotAdmittedError(self.refusal(group), place=Place(object=group.workload.title), hint=hint)
        if not self.is_queued(group):
            return explain(group.subject, self._setup, autoscaling, provisioning)
        nodes = self.nodes(group)
        pending = [key for key, node in nodes.items() if not node and self._in_turn.is_queued(key)]
        evicting = self._evicting(group)
        if pending:
            snapshot, key = self._simulation.run.cluster.frozen(), pending[0]
        elif evicting:
            snapshot, key = self._simulation.cluster_before(evicting[0]), self._simulation.steps[evicting[0]].key
        else:
            key = next(iter(nodes))
            last = max(number for number, step in enumerate(self._simulation.steps) if step.key == key)
            snapshot = self._simulation.cluster_before(last)
        pod = snapshot.pods[snapshot.pods.rows[key]]
        own = (self._notes[key],) if key in self._notes else ()
        notes = (*group.subject.notes, *own)
        subject = replace(group.subject, snapshot=snapshot, pod=pod, first=None, notes=notes)
        made = explain(subject, self._setup, autoscaling, provisioning)
        covering = partial(self._covered, tuple(pending)) if len(pending) > 1 else None
        return replace(made, replicas=self.replicas(group), covering=covering)

    def _covered(self, pods: tuple[str, ...], explanation: Explanation, fix: Fix) -> Covered | None:
        return self._in_turn.covered(explanation, fix, pods)

    def _evicting(self, group: Group) -> list[int]:
        """Numbers of the group's decisions that evict somebody."""
        its = {*group.pods}
        steps = enumerate(self._simulation.steps)
        return [number for number, step in steps if step.victims and step.key in its]
