"""Replicas whose template names their node: kube-scheduler never sees them, and the kubelet takes what it has room for.

What it refuses stays as a Failed pod, and its controller makes another one in its place. Upstream: canAdmitPod in
pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.controllers.daemon_sets import home_node, pinned_for
from kschedx.controllers.replicas import AdmittedPods, admit_pods
from kschedx.controllers.update_strategy import NEXT, RollingUpdate, StatefulSetUpdate, strategy_of
from kschedx.controllers.workloads import Owners, Workload
from kschedx.errors import NotAdmittedError, Place
from kschedx.explain.admission import Ledger
from kschedx.explain.causes import Taken
from kschedx.explain.notes import ClaimNotMade, Note
from kschedx.explain.setup import Setup
from kschedx.explain.subject import Subject
from kschedx.fixes.pending_pods import SharedFix, SharedFixes
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.inquiry.daemon_set import DaemonSetAnswer, explain_daemon_set
from kschedx.inquiry.explanation import Covered, Explanation, Replicas
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.pod import explain
from kschedx.kube.types import Pod
from kschedx.kube.workloads import kind_and_group
from kschedx.simulate.changes import Manifest
from kschedx.simulate.rollout import roll, update_stateful_set
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.simulate.what_if import simulate
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import AutoscalerOptions as Autoscaling
    from kschedx.karpenter.cluster import KarpenterOptions as Provisioning

Explain = Callable[[Subject], Explanation]


class KubeletAdmission(Struct, frozen=True, kw_only=True):
    """What becomes of the replicas that a workload lacks."""

    explanation: Explanation
    """Of the first that the kubelet refuses, else of the last."""
    pods: tuple[Pod, ...]
    """Those that it takes."""


def admit_by_kubelet(subject: Subject, manifest: Manifest, explain: Explain) -> KubeletAdmission:
    """How many of the replicas the kubelet of their node takes, one after the other, as far as that is sure.

    What is there of the workload already, wherever it is, stays.
    """
    workload = workloads.workload_of(manifest)
    running = len(Owners(subject.snapshot).members(subject.snapshot.pods, workload))
    wanted = workloads.wanted_replicas(manifest, workloads.manifest_of(subject.snapshot, workload))
    node = subject.pod.spec.node_name
    snapshot, made = workloads.copy_pod(subject.snapshot, subject.pod, max(wanted - running, 1))
    made = [replace(pod, spec=replace(pod.spec, node_name=node)) for pod in made]

    def after(number: int) -> Explanation:
        there = with_pods(snapshot, made[:number])
        return explain(replace(subject, snapshot=there, pod=made[number], first=None))

    def is_refused(number: int) -> bool:
        return after(number).becomes is not Outcome.SCHEDULED

    if len(made) == 1 or node not in snapshot.cluster.index:
        alone = explain(subject)
        return KubeletAdmission(explanation=alone, pods=tuple(made) if alone.becomes is Outcome.SCHEDULED else ())
    number = bisect_left(range(len(made)), True, key=is_refused)  # each leaves less room than there was
    replicas = Replicas(
        workload=workload.reference,
        wanted=wanted,
        running=running,
        placed={pod.key: node for pod in made[:number]},
        pending=tuple(pod.key for pod in made[number:]),
        kubelet=node,
    )
    story = after(min(number, len(made) - 1))
    return KubeletAdmission(explanation=replace(story, replicas=replicas), pods=tuple(made[:number]))


# Pods that wait, each as it fares after those before it in the queue.


class QueueOutcome:
    """A queue that has run, to be asked about its pods by `namespace/name`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    @classmethod
    def of(cls, snapshot: Snapshot, setup: Setup) -> QueueOutcome:
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

    def mended(self, pods: Sequence[str]) -> SharedFix | None:
        """What would give pods a node that wait, tried for all of them; None where nothing is known that would."""
        return self._mending.mended(pods)

    def covered(self, explanation: Explanation, fix: Fix, pods: Sequence[str]) -> Covered | None:
        """For how many of these pods that wait a fix of the first one does."""
        found = self._mending.covered(explanation, fix, pods)
        return None if found is None else Covered(title=found.title, pods=found.pods, of=found.of)

    @cached_property
    def _mending(self) -> SharedFixes:
        return SharedFixes(self._simulation)

    @property
    def evicted(self) -> tuple[str, ...]:
        """The pods that preemption evicts for any of them."""
        return tuple(self._simulation.evictions)


# What is told of groups of pods that were placed one after the other.


class ReplicaGroup(Struct, frozen=True, kw_only=True):
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
    strategy: RollingUpdate | StatefulSetUpdate | None = None
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
        self._in_turn = QueueOutcome(simulation)

    def is_queued(self, group: ReplicaGroup) -> bool:
        """kube-scheduler takes its pods; of others the story is that of one by itself."""
        return any(map(self._in_turn.is_queued, group.pods))

    def nodes(self, group: ReplicaGroup) -> Mapping[str, str]:
        """Each of its pods that is there to its node; empty where it has none."""
        refused = self.refused(group)
        return {**group.kept, **{key: self._in_turn.node(key) for key in group.pods if key not in refused}}

    def daemon_set(self, group: ReplicaGroup) -> DaemonSetAnswer:
        """A DaemonSet's nodes, after the queue."""
        assert group.workload is not None, "a DaemonSet is one"
        subject = replace(group.subject, snapshot=self._simulation.run.cluster.frozen(), first=None)
        return explain_daemon_set(group.workload.key, subject, self._setup)

    def waiting(self, group: ReplicaGroup) -> Sequence[tuple[str, ...]]:
        """A DaemonSet's pods that found no room on their nodes, by what keeps them out."""
        pods = self._simulation.run.cluster.pods
        waits = {home_node(pods, pods.rows[key]): key for key, node in self.nodes(group).items() if not node}
        if not waits:
            return ()
        answer = self.daemon_set(group)
        alike = [tuple(waits.pop(node) for node in answer.names(one) if node in waits) for one in answer.waits]
        return (*filter(None, alike), *((key,) for key in waits.values()))

    def story(self, pod: str) -> Explanation:
        """Of one pod of the queue by itself. Raises `UndecidableError`."""
        return self._in_turn.explanation(pod)

    def refusal(self, group: ReplicaGroup) -> str:
        """Why the API server does not take all of its pods; empty where it does."""
        of_rollout = "" if group.workload is None else self._refusals.get(group.workload, "")
        return group.refusal or of_rollout

    def refused(self, group: ReplicaGroup) -> tuple[str, ...]:
        """The pods of which `refusal` is told."""
        if not self.refusal(group):
            return ()
        return group.refused or tuple(key for key in group.pods if not self._in_turn.is_queued(key))

    def taken(self, pod: str) -> Taken | None:
        return self._in_turn.taken(pod)

    def mended(self, pods: Sequence[str]) -> SharedFix | None:
        return self._in_turn.mended(pods)

    @property
    def evicted(self) -> tuple[str, ...]:
        return self._in_turn.evicted

    def replicas(self, group: ReplicaGroup) -> Replicas | None:
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
        self, group: ReplicaGroup, autoscaling: Autoscaling | None = None, provisioning: Provisioning | None = None
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

    def _evicting(self, group: ReplicaGroup) -> list[int]:
        """Numbers of the group's decisions that evict somebody."""
        its = {*group.pods}
        steps = enumerate(self._simulation.steps)
        return [number for number, step in steps if step.victims and step.key in its]


# The replicas that workloads lack, and pods of manifests, placed one after the other.


class BoundPods(Struct, frozen=True, kw_only=True):
    """Pods whose node their manifest names: no queue has them."""

    subject: Subject
    """One of them."""
    explanation: Explanation


class ManifestQuestions:
    """A cluster to which pods are added that are asked about together."""

    def __init__(self, before: Snapshot, snapshot: Snapshot, setup: Setup) -> None:
        """`before` is the cluster as it is, `snapshot` with manifests applied."""
        self._before = before
        self._setup = setup
        self._quotas = Ledger(snapshot, setup.release)
        self.snapshot = self._quotas.on(snapshot)
        """With the pods that were added so far, which its quotas count."""
        self.groups: list[ReplicaGroup] = []
        self._notes: dict[str, Note] = {}
        """About pods that wait for what nobody makes."""
        self._new: list[str] = []

    def take(self, subject: Subject, manifest: Manifest | None, *, is_written: bool) -> ReplicaGroup | BoundPods:
        """As `add`, for whatever may name its node: what the kubelet takes of it is there from then on."""
        if not subject.pod.spec.node_name:
            return self.add(subject, manifest, is_written=is_written)
        if manifest is not None and workloads.has_replicas(manifest):
            taken = admit_by_kubelet(subject, manifest, partial(explain, setup=self._setup))
            self.bind(taken.pods)
            return BoundPods(subject=subject, explanation=taken.explanation)
        explanation = explain(subject, self._setup)
        if explanation.becomes is Outcome.SCHEDULED:
            self.add(subject, None, is_written=is_written)
        return BoundPods(subject=subject, explanation=explanation)

    def add(self, subject: Subject, manifest: Manifest | None, *, is_written: bool) -> ReplicaGroup:
        """Pods for one thing that is asked about: a pod, or a workload with a `manifest`. `is_written`: by somebody who
        has not applied it yet. The subject's cluster is `snapshot`, with what is made for it."""
        if manifest is not None and workloads.has_replicas(manifest):
            group = self._replicas(subject, manifest, is_written=is_written)
        elif manifest is not None and kind_and_group(manifest) == ("DaemonSet", "apps"):
            group = self._daemons(subject, manifest, is_written=is_written)
        else:
            group = self._alone(subject)
        self.snapshot = self._quotas.on(self.snapshot)
        self.groups.append(group)
        return group

    def bind(self, pods: Sequence[Pod]) -> None:
        """Pods that are on their nodes without a scheduler."""
        for pod in pods:
            self._quotas.take(pod)
        self.snapshot = self._quotas.on(with_pods(self.snapshot, pods))

    def _alone(self, subject: Subject) -> ReplicaGroup:
        key = subject.pod.key
        self.snapshot = subject.snapshot
        if subject.is_new:
            self._without([self.snapshot.pods.rows[key]] if key in self.snapshot.pods.rows else [])
            self._quotas.take(subject.pod)  # what refuses it did so when it was admitted
            self.snapshot = with_pods(self.snapshot, [subject.pod])
            self._new.append(key)
        return ReplicaGroup(subject=subject, pods=(key,))

    def _replicas(self, subject: Subject, manifest: Manifest, *, is_written: bool) -> ReplicaGroup:
        claims = self.snapshot.storage.claims
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
        strategy = strategy_of(manifest, wanted, known) if is_new and running else None
        if isinstance(strategy, StatefulSetUpdate):
            return self._by_ordinal(subject, manifest, strategy, members, wanted)
        old: list[str] = []
        if is_new and workload.kind == "Deployment":
            old, running = [pods.key(row) for row in running], []
        if is_written:  # what it makes is asked about, in place of what waits
            gone = members if is_new and workload.kind == "StatefulSet" else [pods.rows[key] for key in waiting]
            running = [] if len(gone) == len(members) else running
            self._without(gone)
            waiting = []
        lacks = count = max(wanted - len(running) - len(waiting), 0)
        if not waiting:
            count = max(count, 1)
        names = [key.partition("/")[2] for key in waiting] + [pods.names[row] for row in running]
        if workload.kind == "StatefulSet":
            self.snapshot, made = workloads.new_pods(self.snapshot, self._setup, manifest, count, names)
        elif count == 1 and subject.pod.key not in self.snapshot.pods.rows:
            made = [subject.pod]
        else:
            self.snapshot, made = workloads.copy_pod(self.snapshot, subject.pod, count)
        found = AdmittedPods(snapshot=self.snapshot, made=tuple(made))
        if lacks and not old:  # one more than it lacks is no pod that anybody makes; a rollout makes them one by one
            found = admit_pods(self.snapshot, self._quotas, made, claims)
            for key, (claim, words) in found.claims.items():
                self._notes[key] = ClaimNotMade(claim=claim, refusal=words)
        self.snapshot = with_pods(found.snapshot, found.made)
        new = [pod.key for pod in found.made]
        self._new += new
        return ReplicaGroup(
            subject=subject,
            pods=(*waiting, *new),
            workload=workload,
            wanted=wanted,
            running=len(running),
            old=tuple(old),
            strategy=RollingUpdate.of(manifest, wanted) if old else None,
            refused=tuple(pod.key for pod in found.refused),
            refusal=found.refusal,
        )

    def _daemons(self, subject: Subject, manifest: Manifest, *, is_written: bool) -> ReplicaGroup:
        """Those of a new template take the place of the others at once: each has its node to itself among them."""
        claims = self.snapshot.storage.claims
        self.snapshot = subject.snapshot
        workload = workloads.workload_of(manifest)
        pods = self.snapshot.pods
        members = Owners(self.snapshot).members(pods, workload)
        is_new = is_written and workloads.has_new_template(self._before, manifest)
        kept = {} if is_new else {pods.key(row): pods.node_names[row] for row in members if pods.node[row] >= 0}
        self._without([row for row in members if pods.key(row) not in kept])
        self.snapshot, made = pinned_for(self.snapshot, self._setup, subject.pod, {*kept.values()})
        found = admit_pods(self.snapshot, self._quotas, made, claims)
        self.snapshot = with_pods(found.snapshot, found.made)
        new = tuple(pod.key for pod in found.made)
        self._new += new
        return ReplicaGroup(
            subject=subject,
            pods=new,
            workload=workload,
            wanted=len(kept) + len(made),
            running=len(kept),
            kept=kept,
            refused=tuple(pod.key for pod in found.refused),
            refusal=found.refusal,
        )

    def _by_ordinal(
        self, subject: Subject, manifest: Manifest, strategy: StatefulSetUpdate, members: Sequence[int], wanted: int
    ) -> ReplicaGroup:
        """A StatefulSet's pods, which give way to others of the same names; who waits has been deleted by hand."""
        pods = self.snapshot.pods
        workload = workloads.workload_of(manifest)
        last = workloads.first_ordinal(manifest) + wanted
        ordinals = {row: workloads.ordinal_of(pods.names[row]) for row in members}
        kept = [pods.names[row] for row in members if pods.node[row] >= 0 and ordinals[row] < strategy.partition]
        stays = [row for row in members if pods.node[row] >= 0 and ordinals[row] < last]
        old = tuple(pods.key(row) for row in stays if ordinals[row] >= strategy.partition)
        self._without([row for row in members if row not in stays])
        count = max(wanted - len(kept), 0)
        self.snapshot, made = workloads.new_pods(self.snapshot, self._setup, manifest, count, kept)
        new = [workloads.rename_pod(one, f"{one.metadata.name}{NEXT}") if one.key in old else one for one in made]
        self.snapshot = with_pods(self.snapshot, new)
        self._new += [one.key for one in new]
        return ReplicaGroup(
            subject=subject,
            pods=tuple(one.key for one in made),
            workload=workload,
            wanted=wanted,
            running=len(kept),
            old=old,
            strategy=strategy,
            new=tuple(one.key for one in new),
        )

    def _without(self, rows: Sequence[int]) -> None:
        if rows:
            for row in rows:
                self._quotas.give(self.snapshot.pods[row])
            left = np.setdiff1d(np.arange(len(self.snapshot.pods)), rows)
            self.snapshot = with_only_pods(self.snapshot, left)

    def place(self) -> Together:
        """Let all of them be scheduled: in the order of the queue, and rollouts after that."""
        unmade = [key for group in self.groups for key in group.new]
        simulator = Simulator(self.snapshot, self._setup, SimulationOptions(), self._new, unmade=unmade)
        rows = simulator.run.cluster.pods.rows
        simulator.place(key for group in self.groups if not group.old for key in group.pods)
        refusals: dict[Workload, str] = {}
        for group in self.groups:
            if group.strategy is None or group.workload is None:
                continue
            old, new = ([rows[key] for key in keys] for keys in (group.old, group.new or group.pods))
            if isinstance(group.strategy, RollingUpdate):
                refusal = roll(simulator, group.workload, group.strategy, old, new, self._quotas)
            else:
                refusal = update_stateful_set(simulator, group.strategy, old, new, self._quotas)
            refusals[group.workload] = refusal
        simulation = Simulation(stages=(simulator,), setup=self._setup, before=self.snapshot)
        return Together(simulation, self._setup, refusals, self._notes)
