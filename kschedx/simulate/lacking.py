"""The replicas that workloads lack, and pods of manifests, placed one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from kschedx.answer.explanation import Explanation
from kschedx.answer.run import explain
from kschedx.answer.subject import Subject
from kschedx.api.foreign_workloads import kind_and_group
from kschedx.api.types import Pod
from kschedx.explain.notes import Note
from kschedx.explain.notes.claims import ClaimNotMade
from kschedx.explain.quotas import Ledger
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.simulate import workloads
from kschedx.simulate.allowed import Allowed, allowed
from kschedx.simulate.by_kubelet import taken_by_kubelet
from kschedx.simulate.changes import Manifest
from kschedx.simulate.daemon_sets import pinned_for
from kschedx.simulate.rollout import by_ordinal, roll
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import Options, Simulator
from kschedx.simulate.strategies import NEXT, ByOrdinal, Rolling, strategy_of
from kschedx.simulate.together import Group, Together
from kschedx.simulate.workloads import Owners, Workload
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.snapshot import Snapshot


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
