"""The replicas that workloads lack, and pods of manifests, placed one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.daemon_set import DaemonSetAnswer, explain_daemon_set
from kschedx.answer.explanation import Explanation
from kschedx.answer.fix import Fix
from kschedx.answer.replicas import Covered, Replicas
from kschedx.answer.run import explain
from kschedx.answer.subject import Subject
from kschedx.api.foreign_workloads import kind_and_group
from kschedx.api.types import Pod
from kschedx.errors import NotAdmittedError, Place
from kschedx.explain.many import Taken
from kschedx.explain.notes import Note
from kschedx.explain.notes.claims import ClaimNotMade
from kschedx.explain.quotas import Ledger
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.simulate import workloads
from kschedx.simulate.allowed import Allowed, allowed
from kschedx.simulate.by_kubelet import taken_by_kubelet
from kschedx.simulate.changes import Manifest
from kschedx.simulate.daemon_sets import home, pinned_for
from kschedx.simulate.in_turn import InTurn
from kschedx.simulate.mending import Mended
from kschedx.simulate.rollout import by_ordinal, roll
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import Options, Simulator
from kschedx.simulate.strategies import NEXT, ByOrdinal, Rolling, strategy_of
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


class Bound(Struct, frozen=True, kw_only=True):
    """Pods whose node their manifest names: no queue has them."""

    subject: Subject
    """One of them."""
    explanation: Explanation


class Gathering:
    """A cluster to which pods are added that are asked about together."""

    def __init__(self, before: Snapshot, snapshot: Snapshot, setup: Setup) -> None:
        """`before` is the cluster as it is, `snapshot` with manifests applied."""
        self._before = before
        self._setup = setup
        self._quotas = Ledger(snapshot, setup.release)
        self.snapshot = self._quotas.on(snapshot)
        """With the pods that were added so far, which its quotas count."""
        self.groups: list[Group] = []
        self._notes: dict[str, Note] = {}
        """About pods that wait for what nobody makes."""
        self._new: list[str] = []

    def take(self, subject: Subject, manifest: Manifest | None, *, is_written: bool) -> Group | Bound:
        """As `add`, for whatever may name its node: what the kubelet takes of it is there from then on."""
        if not subject.pod.spec.node_name:
            return self.add(subject, manifest, is_written=is_written)
        if manifest is not None and workloads.has_replicas(manifest):
            taken = taken_by_kubelet(subject, manifest, partial(explain, setup=self._setup))
            self.bind(taken.pods)
            return Bound(subject=subject, explanation=taken.explanation)
        explanation = explain(subject, self._setup)
        if explanation.becomes is Outcome.SCHEDULED:
            self.add(subject, None, is_written=is_written)
        return Bound(subject=subject, explanation=explanation)

    def add(self, subject: Subject, manifest: Manifest | None, *, is_written: bool) -> Group:
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

    def _alone(self, subject: Subject) -> Group:
        key = subject.pod.key
        self.snapshot = subject.snapshot
        if subject.is_new:
            self._without([self.snapshot.pods.rows[key]] if key in self.snapshot.pods.rows else [])
            self._quotas.take(subject.pod)  # what refuses it did so when it was admitted
            self.snapshot = with_pods(self.snapshot, [subject.pod])
            self._new.append(key)
        return Group(subject=subject, pods=(key,))

    def _replicas(self, subject: Subject, manifest: Manifest, *, is_written: bool) -> Group:
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
        if isinstance(strategy, ByOrdinal):
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
            self.snapshot, made = workloads.like_pod(self.snapshot, subject.pod, count)
        found = Allowed(snapshot=self.snapshot, made=tuple(made))
        if lacks and not old:  # one more than it lacks is no pod that anybody makes; a rollout makes them one by one
            found = allowed(self.snapshot, self._quotas, made, claims)
            for key, (claim, words) in found.claims.items():
                self._notes[key] = ClaimNotMade(claim=claim, refusal=words)
        self.snapshot = with_pods(found.snapshot, found.made)
        new = [pod.key for pod in found.made]
        self._new += new
        return Group(
            subject=subject,
            pods=(*waiting, *new),
            workload=workload,
            wanted=wanted,
            running=len(running),
            old=tuple(old),
            strategy=Rolling.of(manifest, wanted) if old else None,
            refused=tuple(pod.key for pod in found.refused),
            refusal=found.refusal,
        )

    def _daemons(self, subject: Subject, manifest: Manifest, *, is_written: bool) -> Group:
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
        found = allowed(self.snapshot, self._quotas, made, claims)
        self.snapshot = with_pods(found.snapshot, found.made)
        new = tuple(pod.key for pod in found.made)
        self._new += new
        return Group(
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
        self, subject: Subject, manifest: Manifest, strategy: ByOrdinal, members: Sequence[int], wanted: int
    ) -> Group:
        """A StatefulSet's pods, which give way to others of the same names; who waits has been deleted by hand."""
        pods = self.snapshot.pods
        workload = workloads.workload_of(manifest)
        last = workloads.first_ordinal(manifest) + wanted
        ordinals = {row: workloads.ordinal(pods.names[row]) for row in members}
        kept = [pods.names[row] for row in members if pods.node[row] >= 0 and ordinals[row] < strategy.partition]
        stays = [row for row in members if pods.node[row] >= 0 and ordinals[row] < last]
        old = tuple(pods.key(row) for row in stays if ordinals[row] >= strategy.partition)
        self._without([row for row in members if row not in stays])
        count = max(wanted - len(kept), 0)
        self.snapshot, made = workloads.new_pods(self.snapshot, self._setup, manifest, count, kept)
        new = [workloads.renamed(one, f"{one.metadata.name}{NEXT}") if one.key in old else one for one in made]
        self.snapshot = with_pods(self.snapshot, new)
        self._new += [one.key for one in new]
        return Group(
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
        simulator = Simulator(self.snapshot, self._setup, Options(), self._new, unmade=unmade)
        rows = simulator.run.cluster.pods.rows
        simulator.place(key for group in self.groups if not group.old for key in group.pods)
        refusals: dict[Workload, str] = {}
        for group in self.groups:
            if group.strategy is None or group.workload is None:
                continue
            old, new = ([rows[key] for key in keys] for keys in (group.old, group.new or group.pods))
            if isinstance(group.strategy, Rolling):
                refusal = roll(simulator, group.workload, group.strategy, old, new, self._quotas)
            else:
                refusal = by_ordinal(simulator, group.strategy, old, new, self._quotas)
            refusals[group.workload] = refusal
        simulation = Simulation(stages=(simulator,), setup=self._setup, before=self.snapshot)
        return Together(simulation, self._setup, refusals, self._notes)


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
