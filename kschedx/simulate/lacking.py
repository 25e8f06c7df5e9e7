"""The replicas that workloads lack, and pods of manifests, placed one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.explanation import Explanation
from kschedx.answer.replicas import Replicas
from kschedx.answer.run import explain
from kschedx.answer.subject import Subject
from kschedx.explain.many import Taken
from kschedx.explain.setup import Setup
from kschedx.simulate import workloads
from kschedx.simulate.changes import Manifest
from kschedx.simulate.in_turn import InTurn
from kschedx.simulate.mending import Mended
from kschedx.simulate.rollout import Rolling, roll
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import Options, Simulator
from kschedx.simulate.workloads import Owners, Workload
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot

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
    rolling: Rolling | None = None


class Gathering:
    """A cluster to which pods are added that are asked about together."""

    def __init__(self, before: Snapshot, snapshot: Snapshot, setup: Setup) -> None:
        """`before` is the cluster as it is, `snapshot` with manifests applied."""
        self._before = before
        self._setup = setup
        self.snapshot = snapshot
        """With the pods that were added so far."""
        self.groups: list[Group] = []
        self._new: list[str] = []

    def add(self, subject: Subject, manifest: Manifest | None, *, is_written: bool) -> Group:
        """Pods for one thing that is asked about: a pod, or a workload with a `manifest`. `is_written`: by somebody who
        has not applied it yet. The subject's cluster is `snapshot`, with what is made for it."""
        if manifest is not None and workloads.has_replicas(manifest):
            group = self._replicas(subject, manifest, is_written=is_written)
        else:
            group = self._alone(subject)
        self.groups.append(group)
        return group

    def _alone(self, subject: Subject) -> Group:
        key = subject.pod.key
        self.snapshot = subject.snapshot
        if subject.is_new:
            self._without([self.snapshot.pods.rows[key]] if key in self.snapshot.pods.rows else [])
            self.snapshot = with_pods(self.snapshot, [subject.pod])
            self._new.append(key)
        return Group(subject=subject, pods=(key,))

    def _replicas(self, subject: Subject, manifest: Manifest, *, is_written: bool) -> Group:
        self.snapshot = subject.snapshot
        workload = workloads.workload_of(manifest)
        known = workloads.manifest_of(self._before, workload)
        pods = self.snapshot.pods
        members = [] if workload.kind == "CronJob" else Owners(self.snapshot).members(pods, workload)
        is_new = is_written and workloads.has_new_template(self._before, manifest)
        wanted = workloads.wanted_replicas(manifest, known)
        if members and not (workloads.says_replicas(manifest) or (known and workloads.says_replicas(known))):
            wanted = len(members)
        running = [row for row in members if pods.node[row] >= 0]
        waiting = [pods.key(row) for row in members if pods.node[row] < 0]
        old: list[str] = []
        if is_new and workload.kind == "Deployment":
            old, running = [pods.key(row) for row in running], []
        if is_written:  # what it makes is asked about, in place of what waits
            gone = members if is_new and workload.kind == "StatefulSet" else [pods.rows[key] for key in waiting]
            running = [] if len(gone) == len(members) else running
            self._without(gone)
            waiting = []
        count = max(wanted - len(running) - len(waiting), 0)
        if not waiting:
            count = max(count, 1)
        names = [key.partition("/")[2] for key in waiting] + [pods.names[row] for row in running]
        if workload.kind == "StatefulSet":
            self.snapshot, made = workloads.new_pods(self.snapshot, self._setup, manifest, count, names)
        else:
            self.snapshot, made = workloads.like_pod(self.snapshot, subject.pod, count)
        self.snapshot = with_pods(self.snapshot, made)
        new = [pod.key for pod in made]
        self._new += new
        return Group(
            subject=subject,
            pods=(*waiting, *new),
            workload=workload,
            wanted=wanted,
            running=len(running),
            old=tuple(old),
            rolling=Rolling.of(manifest, wanted) if old else None,
        )

    def _without(self, rows: Sequence[int]) -> None:
        if rows:
            left = np.setdiff1d(np.arange(len(self.snapshot.pods)), rows)
            self.snapshot = with_only_pods(self.snapshot, left)

    def place(self) -> Together:
        """Let all of them be scheduled: in the order of the queue, and rollouts after that."""
        simulator = Simulator(self.snapshot, self._setup, Options(), self._new)
        rows = simulator.run.cluster.pods.rows
        simulator.place(key for group in self.groups if not group.old for key in group.pods)
        for group in self.groups:
            if group.rolling is not None and group.workload is not None:
                old = [rows[key] for key in group.old]
                roll(simulator, group.workload, group.rolling, old, [rows[key] for key in group.pods])
        return Together(Simulation(stages=(simulator,), setup=self._setup, before=self.snapshot), self._setup)


class Together:
    """Groups of pods after the queue."""

    def __init__(self, simulation: Simulation, setup: Setup) -> None:
        self._setup = setup
        self._simulation = simulation
        self._in_turn = InTurn(simulation)

    def is_queued(self, group: Group) -> bool:
        """kube-scheduler takes its pods; of others the story is that of one by itself."""
        return any(map(self._in_turn.is_queued, group.pods))

    def nodes(self, group: Group) -> Mapping[str, str]:
        """Each of its pods to its node; empty where it has none."""
        return {key: self._in_turn.node(key) for key in group.pods}

    def taken(self, pod: str) -> Taken | None:
        return self._in_turn.taken(pod)

    def mended(self, pods: Sequence[str]) -> Mended | None:
        return self._in_turn.mended(pods)

    @property
    def evicted(self) -> tuple[str, ...]:
        return self._in_turn.evicted

    def replicas(self, group: Group) -> Replicas | None:
        """None for a pod by itself."""
        if group.workload is None or len(group.pods) == 1:
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
        )

    def explain(
        self, group: Group, autoscaling: Autoscaling | None = None, provisioning: Provisioning | None = None
    ) -> Explanation:
        """The story of the pod that says most about its group, as of when it was decided about. Raises
        `UndecidableError`."""
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
            first = next(number for number, step in enumerate(self._simulation.steps) if step.key == group.pods[0])
            snapshot, key = self._simulation.cluster_before(first), group.pods[0]
        pod = snapshot.pods[snapshot.pods.rows[key]]
        subject = replace(group.subject, snapshot=snapshot, pod=pod, first=None)
        return replace(explain(subject, self._setup, autoscaling, provisioning), replicas=self.replicas(group))

    def _evicting(self, group: Group) -> list[int]:
        """Numbers of the group's decisions that evict somebody."""
        its = {*group.pods}
        steps = enumerate(self._simulation.steps)
        return [number for number, step in steps if step.victims and step.key in its]
