"""The pods of workloads in a question: those that a kubelet admits, and those that are placed in a queue.

kube-scheduler never sees replicas whose template names their node: the kubelet admits those for which it has resources.
A rejected one stays as a Failed pod, and its controller creates another one instead. Upstream: canAdmitPod in
pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.controllers.daemon_set import home_node
from kschedx.controllers.deployment import NoRollout, StatefulSetUpdate
from kschedx.controllers.rollouts import Rollout
from kschedx.controllers.stateful_set import admit_pods, without_claims
from kschedx.controllers.workloads import Workload, member_rows
from kschedx.errors import NotAdmittedError, Place
from kschedx.explain.admission import QuotaLedger, quotas_of
from kschedx.explain.causes import NodeIfFirst
from kschedx.explain.notes import Note, note, recreated_pods
from kschedx.explain.setup import Setup, Subject, claim_refusal_note
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.grouping import group_pairs
from kschedx.inquiry.daemon_set import DaemonSetAnswer, explain_daemon_set
from kschedx.inquiry.document import FixCoverage
from kschedx.inquiry.explanation import Explanation, Replicas
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.pending_pods import SharedFix, SharedFixes
from kschedx.inquiry.pod import explain, objection
from kschedx.inquiry.scheduled_first import AssignedFirst, assigned_first
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import simulate
from kschedx.kube.custom_resources import TemplatePodCount
from kschedx.kube.decoding import Manifest
from kschedx.kube.documents import with_spec
from kschedx.kube.storage import own_claims
from kschedx.kube.types import OwnerReference, Pod, controller_of
from kschedx.kube.workloads import kind_and_group
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.edits import with_pods
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import AutoscalingOptions, NodeAutoscaler

_Explain = Callable[[Subject], Explanation]


class _KubeletAdmission(Struct, frozen=True, kw_only=True):
    """The outcome of the replicas that a workload lacks, on the node that their template names."""

    explanation: Explanation  # the answer about the first pod that the kubelet rejects, else about the last one
    pods: tuple[Pod, ...]


def _admit_by_kubelet(subject: Subject, manifest: Manifest, explain: _Explain) -> _KubeletAdmission:
    """Return how many of the replicas the kubelet of their node admits, one after the other, as far as that is certain.
    Existing pods of the workload stay, on whatever node they are."""
    workload = workloads.workload_of(manifest)
    running = len(member_rows(subject.snapshot, workload))
    wanted = workloads.wanted_replicas(manifest, workloads.stored_manifest(subject.snapshot, workload))
    node = subject.pod.spec.node_name
    snapshot, pods = workloads.copy_pod(subject.snapshot, subject.pod, max(wanted - running, 1))
    pods = [with_spec(pod, node_name=node) for pod in pods]

    def after(number: int) -> Explanation:
        there = with_pods(snapshot, pods[:number])
        return explain(replace(subject, snapshot=there, pod=pods[number], first=None))

    def is_refused(number: int) -> bool:
        return after(number).becomes is not Outcome.SCHEDULED

    if len(pods) == 1 or node not in snapshot.cluster.index:
        alone = explain(subject)
        return _KubeletAdmission(explanation=alone, pods=tuple(pods) if alone.becomes is Outcome.SCHEDULED else ())
    number = bisect_left(range(len(pods)), True, key=is_refused)  # each pod leaves less for the next
    replicas = Replicas(
        workload=workload.reference,
        wanted=wanted,
        running=running,
        placed={pod.key: node for pod in pods[:number]},
        pending=tuple(pod.key for pod in pods[number:]),
        kubelet=node,
    )
    story = after(min(number, len(pods) - 1))
    return _KubeletAdmission(explanation=replace(story, replicas=replicas), pods=tuple(pods[:number]))


class QueueOutcome:
    """The outcome of a queue, by pod (`namespace/name`)."""

    def __init__(self, simulation: Simulation, autoscalers: tuple[NodeAutoscaler, ...] = ()) -> None:
        self._simulation = simulation
        self._autoscalers = autoscalers

    @classmethod
    def of(cls, snapshot: Snapshot, setup: Setup, autoscalers: tuple[NodeAutoscaler, ...] = ()) -> QueueOutcome:
        return cls(simulate(snapshot, setup, recreated=recreated_pods(setup.notes)), autoscalers)

    @cached_property
    def after(self) -> Snapshot:
        """The cluster at the end."""
        return self._simulation.run.cluster.frozen()

    def is_queued(self, pod: str) -> bool:
        return pod in self._simulation.placed or pod in self._simulation.messages

    def node(self, pod: str) -> str:
        """Return the pod's node; empty if it is pending."""
        return self._simulation.placed.get(pod, "")

    def message(self, pod: str) -> str:
        """Return kube-scheduler's message about a pending pod; empty for other pods."""
        return self._simulation.messages.get(pod, "")

    def explanation(self, pod: str) -> Explanation:
        """Return the pod's explanation: at its decision if it found a node, otherwise in the cluster at the end."""
        simulation = self._simulation
        if pod in simulation.placed:
            return simulation.explain(self._preempting_decisions.get(pod, self._steps[pod]))
        return simulation.explain_then(pod)

    def preempts(self, pod: str) -> bool:
        """Return whether the pod got its node after preemption; until then, it is unschedulable."""
        return pod in self._preempting_decisions

    def evicting_message(self, pod: str) -> str:
        """Return kube-scheduler's message in the decision that evicts other pods for this one; empty if none does."""
        step = self._simulation.steps[self._preempting_decisions[pod]] if pod in self._preempting_decisions else None
        return step.message if step is not None and step.victims else ""

    def group_key(self, pod: str) -> Hashable:
        """Return a key that is equal for identical pods with the same explanation, apart from amounts; None if the pod
        has no equals. Identical pods that evict others differ in how many nodes reject them."""
        if not self.preempts(pod):
            return self.message(pod)
        phrases = self.evicting_message(pod).partition(": ")[2]
        return frozenset(phrase.partition(" ")[2] for phrase in phrases.split(", ")) if phrases else None

    @cached_property
    def _steps(self) -> Mapping[str, int]:
        """Each pod with the number of its last decision."""
        return {step.key: number for number, step in enumerate(self._simulation.steps)}

    @cached_property
    def _preempting_decisions(self) -> Mapping[str, int]:
        """Each preempting pod with the number of its decision that evicts pods."""
        return {step.key: number for number, step in enumerate(self._simulation.steps) if step.preempts}

    @cached_property
    def _alone(self) -> Run:
        simulation = self._simulation
        return Run(simulation.setup.scheduler_on(simulation.start), preempts=False)

    def node_if_first(self, pod: str) -> NodeIfFirst | None:
        """Return the pods that are on the node of a pod which would fit if its workload came first. None if it would
        not fit, or if it is only created after others, as the later ordinals of a StatefulSet are."""
        if pod not in self._simulation.messages or pod in self._simulation.undecided:
            return None
        run, cluster = self._alone, self._alone.cluster
        row = cluster.pods.rows.get(pod)
        if row is None:
            return None
        mark, owner = cluster.mark(), controller_of(cluster.pods.owners[row])
        try:
            for sibling, node in () if owner is None else self._placed_of.get((pod.partition("/")[0], owner), ()):
                cluster.place(sibling, node)
            decision = run.decide(row)
        finally:
            cluster.revert(mark)
        if decision.outcome is not Outcome.SCHEDULED:
            return None
        names = [run.cluster.node_names[row] for row in decision.choice.tolist()]
        first = min(names)
        return NodeIfFirst(node=first, by=tuple(self._pods_by_node.get(first, ())))

    @cached_property
    def _placed_of(self) -> Mapping[tuple[str, OwnerReference], Sequence[tuple[int, ClusterRow]]]:
        """By namespace and controller, the pods that are placed and exist from the start, with their nodes."""
        pods, index = self._alone.cluster.pods, self._alone.cluster.snapshot.cluster.index
        rows = ((pods.rows.get(key), index.get(name)) for key, name in self._simulation.placed.items())
        there = ((row, node) for row, node in rows if row is not None and node is not None)
        return group_pairs(
            ((pods.namespaces[row], owner), (row, node))
            for row, node in there
            if (owner := controller_of(pods.owners[row])) is not None
        )

    @cached_property
    def _pods_by_node(self) -> Mapping[str, Sequence[str]]:
        return group_pairs((node, pod) for pod, node in self._simulation.placed.items())

    def shared_fix(self, pods: Sequence[str]) -> SharedFix | None:
        """Return a fix for pending pods, tried for all of them; None if none is known."""
        return self._shared_fixes.shared_fix(pods)

    def coverage(self, pods: Sequence[str], explanation: Explanation, fix: Fix) -> FixCoverage | None:
        """Return how many of these pending pods a fix of the first one helps."""
        shared = self._shared_fixes.try_for_all(explanation, fix, pods)
        if shared is None:
            return None
        helped = shared.pods if fix.left is None else max(shared.of - fix.left, 1)
        commands = shared.commands if shared.nodes > 1 else ()
        return FixCoverage(title=shared.title, pods=helped, of=shared.of, commands=commands)

    @cached_property
    def _shared_fixes(self) -> SharedFixes:
        return SharedFixes(self._simulation, autoscalers=self._autoscalers)

    @property
    def evicted_pods(self) -> tuple[str, ...]:
        """The pods that preemption evicts for pods of the queue."""
        return tuple(self._simulation.evictions)


class ReplicaGroup(Struct, frozen=True, kw_only=True):
    """Identical pods in question, and their workload. It keeps no cluster: with one for each of many groups, memory
    would grow with the size of the cluster for each."""

    pod: Pod  # one of the pods
    notes: tuple[Note, ...] = ()  # about it
    is_new: bool = False  # whether it comes from a manifest
    workload: Workload | None = None
    manifest: Manifest | None = None  # the manifest of a workload with a number of replicas
    waited: frozenset[int] = frozenset()  # rows of its pods that were pending before
    own: tuple[int, ...] = ()
    """Rows of pods that no controller creates here: a single pod, or those of a custom resource that lack a node."""
    running: int = 0  # the other pods of a custom resource
    refused: tuple[str, ...] = ()  # pods of a custom resource that the API server refuses
    refusal: str = ""
    undecided: str = ""  # why the number of its pods, or some of their requests, are unknown


def _group_of(subject: Subject) -> ReplicaGroup:
    return ReplicaGroup(pod=subject.pod, notes=subject.notes, is_new=subject.is_new)


class _GroupState(Struct, frozen=True, kw_only=True):
    """The current state of a group. Pods are `namespace/name`."""

    pods: tuple[str, ...]
    """The pods that are or were pending, and those that their controller creates only once others are ready."""
    wanted: int = 1
    running: int = 0
    replaced: int = 0  # pods of older templates that a rollout replaces
    outdated: int = 0  # the number of replaced pods that still exist
    has_ordinals: bool = False
    rest: int = 0  # the number of `pods` that their controller has not created
    kept: Mapping[str, str] = {}  # a DaemonSet's pods that stay, with their nodes
    refused: tuple[str, ...] = ()
    refusal: str = ""

    def is_only(self, pod: str) -> bool:
        """Return whether the group is at most a single pod; for a StatefulSet, this pod."""
        is_alone = len(self.pods) <= 1 and not self.replaced and not self.refused
        return is_alone and (not self.has_ordinals or self.pods in ((), (pod,)))

    def replicas(self, workload: Workload) -> Replicas:
        """Return the outcome of a workload that needs no more pods."""
        return Replicas(workload=workload.reference, wanted=self.wanted, running=self.running, placed={}, pending=())


def _state_of(group: ReplicaGroup, simulator: Simulator) -> _GroupState:
    """Return the existing pods of a group, and those that are still to be created."""
    pods, manager, deleted = simulator.pods, simulator.manager, simulator.deleted
    workload, manifest = group.workload, group.manifest
    if workload is None or manifest is None:
        own = tuple(pods.key(row) for row in group.own if row not in deleted)
        count = len(own) + len(group.refused)
        return _GroupState(
            pods=own,
            wanted=group.running + count,
            running=group.running,
            refused=group.refused,
            refusal=group.refusal,
        )
    manifest = simulator.snapshot.manifest_of(workload) or manifest
    outdated = {*manager.outdated_rows(workload)}
    current = [row for row in manager.counted(workload) if row not in outdated]
    rows = [row for row in current if row in group.waited or row >= simulator.first_row]
    running = [row for row in current if row not in {*rows}]
    rollout = manager.rollout_of(workload)
    refused = manager.refused.get(workload)
    refusal = "" if rollout is None else rollout.refusal
    refusal = refusal if refused is None else refused.refusal
    missing: list[str] = []
    kept: dict[str, str] = {}
    if workload.kind == "DaemonSet":
        is_rolling = rollout is not None and not isinstance(rollout.strategy, NoRollout)
        missing = [pods.key(row) for row in outdated if is_rolling]
        kept = {pods.key(row): pods.node_names[row] for row in running}
        wanted = len(current) + len(missing)
    else:
        wanted = workloads.parallel_replicas(manifest)
        stays = outdated if rollout is None or isinstance(rollout.strategy, NoRollout) else set[int]()
        if workload.kind == "StatefulSet" and rollout is not None and isinstance(rollout.strategy, StatefulSetUpdate):
            first = workloads.first_ordinal(manifest) + rollout.strategy.partition
            stays = {row for row in outdated if workloads.ordinal_of(pods.names[row]) < first}
        lacks = max(wanted - len(current) - len(stays) - (0 if refused is None else refused.number), 0)
        missing = _future_names(workload, manifest, {pods.names[row] for row in current}, lacks)
        rows += sorted(stays & group.waited)
        running += stays - group.waited
    names = () if refused is None else refused.pods or (f"{workload.key}-new",) * refused.number
    if rollout is not None and rollout.refusal and refused is None:
        names, missing = tuple(missing), []
    return _GroupState(
        pods=(*(pods.key(row) for row in rows), *missing),
        wanted=wanted + (refused.number if refused is not None and workload.kind == "DaemonSet" else 0),
        running=len(running),
        replaced=0 if rollout is None else rollout.old,
        outdated=0 if rollout is None else rollout.old - rollout.replaced,
        has_ordinals=workload.kind == "StatefulSet",
        rest=0 if workload.kind == "DaemonSet" else len(missing),
        kept=kept,
        refused=names,
        refusal=refusal,
    )


def _future_names(workload: Workload, manifest: Manifest, known: Collection[str], count: int) -> list[str]:
    """Return the names of pods that their controller has not created yet."""
    if not count:
        return []
    if workload.kind == "StatefulSet":
        every = (f"{workload.name}-{number}" for number in itertools.count(workloads.first_ordinal(manifest)))
    else:
        every = (f"{workload.name}-new{number}" for number in itertools.count(1))
    new = (name for name in every if name not in known)
    return [f"{workload.namespace}/{name}" for name in itertools.islice(new, count)]


class GroupOutcomes(QueueOutcome):
    """The outcome of groups of pods after the queue."""

    def __init__(self, simulation: Simulation, first: AssignedFirst) -> None:
        super().__init__(simulation)
        self._setup, self._first = simulation.setup, first
        self._states: dict[int, _GroupState] = {}
        self._disputed: dict[int, tuple[str, ...]] = {}

    def state(self, group: ReplicaGroup) -> _GroupState:
        if id(group) not in self._states:
            self._states[id(group)] = _state_of(group, self._simulation.simulator)
        return self._states[id(group)]

    def decides(self, group: ReplicaGroup) -> bool:
        """Return whether kube-scheduler decides about the group's pods. If not, the answer is that of a single pod."""
        return any(map(self.is_queued, self.state(group).pods))

    def nodes(self, group: ReplicaGroup) -> Mapping[str, str]:
        """Return each admitted pod of the group with its node; the node is empty if there is none."""
        state = self.state(group)
        return {**state.kept, **{key: self.node(key) for key in state.pods}}

    def disputed(self, group: ReplicaGroup) -> tuple[str, ...]:
        """Return the group's pods of the cluster that get a node here without preemption, and about which the cluster
        reports otherwise."""
        if id(group) not in self._disputed:
            start, nodes = self._simulation.start, self.nodes(group)
            keys = (self._simulation.simulator.pods.key(row) for row in group.waited)
            stored = ((key, start.pods.rows.get(key)) for key in keys if nodes.get(key) and not self.preempts(key))
            self._disputed[id(group)] = tuple(
                key
                for key, row in stored
                if row is not None and objection(start, start.pods[row], self._setup, nodes[key])
            )
        return self._disputed[id(group)]

    def unstarted(self, group: ReplicaGroup) -> tuple[str, ...]:
        """Return the group's pods with a node here on which they do not start: the disputed ones, or those that the
        node itself cannot run."""
        unable = self._simulation.unable_to_start
        return self.disputed(group) or tuple(key for key in self.nodes(group) if key in unable)

    def explain_disputed(self, group: ReplicaGroup) -> Explanation:
        """Return the explanation of the first pod about which the cluster reports otherwise."""
        start = self._simulation.start
        pod = start.pods[start.pods.rows[self.disputed(group)[0]]]
        return explain(replace(_subject(group, start, pod), is_new=False), self._setup)

    def blocked_deletions(self, group: ReplicaGroup) -> DaemonSetAnswer | None:
        """Return the answer about a DaemonSet with pods whose deletion is blocked; None if it has none."""
        pods = self._simulation.start.pods
        rows = (pods.rows[key] for key in self.state(group).kept if key in pods.rows)
        if not any(pods.terminating[row] for row in rows):
            return None
        answer = self.daemon_set(group)
        return answer if answer.blocked_deletions else None

    def daemon_set(self, group: ReplicaGroup) -> DaemonSetAnswer:
        """Return the answer about a DaemonSet's nodes, after the queue."""
        assert group.workload is not None, "a DaemonSet is one"
        subject = _subject(group, self._simulation.run.cluster.frozen(), group.pod)
        return explain_daemon_set(group.workload.name, subject, self._setup)

    def rollout(self, group: ReplicaGroup) -> Rollout | None:
        """Return the progress of replacing the pods of older templates; None if there are none."""
        if group.workload is None:
            return None
        return self._simulation.simulator.manager.rollout_of(group.workload)

    def pending_groups(self, group: ReplicaGroup) -> Sequence[tuple[str, ...]]:
        """Return a DaemonSet's pending pods, grouped by what rejects them on their nodes."""
        pods = self._simulation.run.cluster.pods
        waits = {home_node(pods, pods.rows[key]): key for key, node in self.nodes(group).items() if not node}
        if not waits:
            return ()
        answer = self.daemon_set(group)
        alike = [tuple(waits.pop(node) for node in answer.names(wait) if node in waits) for wait in answer.waits]
        return (*filter(None, alike), *((key,) for key in waits.values()))

    def replicas(self, group: ReplicaGroup) -> Replicas | None:
        """Return the outcome of the group's replicas; None for a single pod."""
        state = self.state(group)
        nodes = self.nodes(group)
        is_open = bool(group.undecided) and all(nodes.values())
        is_one = len({*state.pods, *state.refused}) == 1 and not is_open
        if group.workload is None or is_one:
            return None
        its = {*state.pods}
        return Replicas(
            workload=group.workload.reference,
            wanted=state.wanted,
            running=state.running,
            placed={key: node for key, node in nodes.items() if node},
            pending=tuple(key for key, node in nodes.items() if not node),
            evicted=tuple(victim for victim, pod in self._simulation.evictions.items() if pod in its),
            replaced=state.replaced,
            outdated=state.outdated,
            refused=state.refused,
            refusal=state.refusal,
            undecided=group.undecided,
            disputed=self.unstarted(group),
        )

    def explain(self, group: ReplicaGroup, autoscaling: AutoscalingOptions | None = None) -> Explanation:
        """Return the explanation of the pod that shows most about its group, at the time of its decision.

        Raises `UndecidableError`, and `NotAdmittedError` if the API server admits none of the pods.
        """
        state, nodes, workload = self.state(group), self.nodes(group), group.workload
        if workload is not None and not nodes and not state.refusal:
            explanation = explain(self._subject_before_queue(group), self._setup, autoscaling)
            return replace(explanation, replicas=state.replicas(workload))
        is_refused = not nodes or (bool(state.refusal) and not self.decides(group))
        if is_refused and workload is not None:
            hint = "the rollout stalls, and the pods of the previous template stay" if state.replaced else ""
            raise NotAdmittedError(state.refusal, place=Place(object=workload.title), hint=hint)
        if not self.decides(group):
            return explain(self._subject_before_queue(group), self._setup, autoscaling)
        pending = [key for key, node in nodes.items() if not node and self.is_queued(key)]
        evicting = self._evicting_decisions(group)
        if pending:
            snapshot, key = self._simulation.run.cluster.frozen(), pending[0]
        elif evicting:
            snapshot, key = self._simulation.cluster_before(evicting[0]), self._simulation.steps[evicting[0]].key
        elif disputed := self.disputed(group):  # by reports about the cluster as it is
            snapshot, key = self._simulation.start, disputed[0]
        else:
            decided = [key for key in nodes if key in self._steps]  # others may be assigned before the queue
            key = next((key for key in decided if key in self._simulation.unable_to_start), decided[0])
            snapshot = self._simulation.cluster_before(self._steps[key])
        pod = snapshot.pods[snapshot.pods.rows[key]]
        claims = self._simulation.simulator.manager.refused_claims
        own = (claim_refusal_note(*claims[key]),) if key in claims else ()
        if pending and (before := self.node_if_first(key)) is not None:
            earlier = {step.key for step in self._simulation.steps[: self._steps[key]]}
            first = [other for other in before.by if other in self._first.nodes and other in earlier]
            own = (*own, self._first.note(first)) if first else own
        rollout = self.rollout(group)
        if pending and group.is_new and rollout is not None and isinstance(rollout.strategy, NoRollout):
            old = len([*self._simulation.simulator.manager.outdated_rows(rollout.workload)])
            which = f"{count(old, 'pod')} of {rollout.reference} {'keeps' if old == 1 else 'keep'}"
            own = (*own, note("template-kept", f"{which} the previous template until deleted", previous=old))
        subject = _subject(group, snapshot, pod)
        subject = replace(
            subject, notes=(*subject.notes, *own), is_new=subject.is_new and key not in self.disputed(group)
        )
        explanation = explain(subject, self._setup, autoscaling)
        lacking = tuple(key for key, node in nodes.items() if not node)
        covering = partial(self.coverage, lacking) if len(lacking) > 1 else None
        return replace(explanation, replicas=self.replicas(group), covering=covering)

    def _subject_before_queue(self, group: ReplicaGroup) -> Subject:
        """Return a pod of the group in the cluster before the queue: one that was pending, or else its new pod without
        the group's others."""
        cluster, pods = self._simulation.start, self.state(group).pods
        waited = {self._simulation.simulator.pods.key(row) for row in group.waited}
        if pending := [key for key in pods if key in waited and key in cluster.pods.rows]:
            return replace(_subject(group, cluster, cluster.pods[cluster.pods.rows[pending[0]]]), is_new=False)
        keys = (key for key in pods if key in cluster.pods.rows) if group.is_new else ()
        return _subject(group, cluster.without_pods(cluster.pods.rows[key] for key in keys), group.pod)

    def _evicting_decisions(self, group: ReplicaGroup) -> list[int]:
        """Return the numbers of the group's decisions that evict pods."""
        its = {*self.state(group).pods}
        steps = enumerate(self._simulation.steps)
        return [number for number, step in steps if step.victims and step.key in its]


def _subject(group: ReplicaGroup, snapshot: Snapshot, pod: Pod) -> Subject:
    return Subject(snapshot=snapshot, pod=pod, notes=group.notes, is_new=group.is_new)


# Missing replicas of workloads, and pods of manifests, placed one after the other.


class BoundPods(Struct, frozen=True, kw_only=True):
    """Pods whose manifest names their node, so that they are in no queue."""

    subject: Subject  # one of the pods
    explanation: Explanation


class ManifestQuestions:
    """A cluster to which manifests are applied one after the other, and then the outcome of their pods."""

    def __init__(self, before: Snapshot, snapshot: Snapshot, setup: Setup) -> None:
        """`before` is the current cluster, `snapshot` the one with manifests applied."""
        self._setup, self._before = setup, before
        changed = (Workload(*key) for key, raw in snapshot.workloads.items() if before.workloads.get(key) != raw)
        stored = ((workload, workloads.stored_manifest(before, workload)) for workload in changed)
        known = {workload: manifest for workload, manifest in stored if manifest is not None}
        self._simulator = Simulator(snapshot, setup, SimulationOptions(needs_volumes=False), known=known)
        self._simulator.first_row = len(snapshot.pods)
        if quotas_of(snapshot):
            self._simulator.put(QuotaLedger(snapshot, setup.release).apply_to(snapshot))
        self.groups: list[ReplicaGroup] = []
        self._standing: dict[Workload, workloads.StandingPods] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The cluster with the pods that were added so far, which its quotas count."""
        return self._simulator.snapshot

    def state(self, group: ReplicaGroup) -> _GroupState:
        """Return the state of a group before anything is scheduled."""
        return _state_of(group, self._simulator)

    def take(
        self,
        subject: Subject,
        manifest: Manifest | None,
        *,
        count: TemplatePodCount | None = None,
        path: str = "",
        is_tried: bool = False,
    ) -> ReplicaGroup | BoundPods:
        """Add pods as `add` does, also if they name their node: the pods that the kubelet admits are in the cluster
        from then on."""
        if not subject.pod.spec.node_name:
            return self.add(subject, manifest, count=count, path=path, is_tried=is_tried)
        if manifest is not None and workloads.has_replicas(manifest):
            taken = _admit_by_kubelet(subject, manifest, partial(explain, setup=self._setup))
            self._create(self.snapshot, taken.pods)
            return BoundPods(subject=subject, explanation=taken.explanation)
        explanation = explain(subject, self._setup)
        if explanation.becomes is Outcome.SCHEDULED:
            self.add(subject, None)
        return BoundPods(subject=subject, explanation=explanation)

    def add(
        self,
        subject: Subject,
        manifest: Manifest | None,
        *,
        count: TemplatePodCount | None = None,
        path: str = "",
        is_tried: bool = False,
    ) -> ReplicaGroup:
        """Add the pods of one object in question: a pod, a workload with a `manifest`, or a custom resource with a
        `count` of pods of its template at `path`.

        The subject's cluster is `snapshot`, with the objects created for the subject. With `is_tried`, pods identical
        to the subject replace the workload's pending pods.
        """
        simulator = self._simulator
        if subject.is_new:
            simulator.edit(self._without_new_claims(subject, manifest))
        is_daemon_set = manifest is not None and kind_and_group(manifest) == ("DaemonSet", "apps")
        if manifest is not None and (workloads.has_replicas(manifest) or is_daemon_set):
            manager, pods = self._simulator.manager, self._simulator.pods
            workload = workloads.workload_of(manifest)
            waited = frozenset(row for row in manager.members(workload) if pods.node[row] < 0)
            for row in waited if is_tried else ():
                self._simulator.delete(row)
            manager.apply(manifest, template_pod=None if kind_and_group(manifest)[0] == "DaemonSet" else subject.pod)
            manager.sync(workload)
            group = replace(_group_of(subject), workload=workload, manifest=manifest, waited=waited)
        elif manifest is not None and count is not None:
            group = self._custom(subject, manifest, count, path)
        else:
            group = self._alone(subject)
        self.groups.append(group)
        return group

    def _without_new_claims(self, subject: Subject, manifest: Manifest | None) -> Snapshot:
        """Return the subject's cluster without a StatefulSet's new claims, which quotas count when its controller
        creates them."""
        if manifest is None or kind_and_group(manifest) != ("StatefulSet", "apps"):
            return subject.snapshot
        known = self.snapshot.storage.claims
        return without_claims(subject.snapshot, [key for key in own_claims(subject.pod) if key not in known])

    def _custom(self, subject: Subject, manifest: Manifest, count: TemplatePodCount, path: str) -> ReplicaGroup:
        """Create the pods that one template of a custom resource lacks."""
        wanted, workload = 1 if count.number is None else count.number, workloads.workload_of(manifest)
        if workload not in self._standing:
            self._standing[workload] = workloads.standing_pods(self.snapshot, self._simulator.pods, manifest)
            for row in self._standing[workload].surplus:
                self._simulator.manager.delete_pod(row)
        standing = self._standing[workload]
        stay = standing.stay.get(path, ())
        waiting = [row for row in stay if self._simulator.pods.node[row] < 0]
        snapshot = self.snapshot
        cluster, pods = workloads.one_or_copies(snapshot, subject.pod, wanted - len(stay))
        quotas = QuotaLedger(cluster, self._setup.release)
        admitted = admit_pods(cluster, quotas, pods, snapshot.storage.claims)
        rows = self._simulator.create(quotas.apply_to(admitted.snapshot), admitted.created)
        return replace(
            _group_of(subject),
            workload=workload,
            own=(*waiting, *rows),
            running=len(stay) - len(waiting),
            refused=tuple(pod.key for pod in admitted.refused),
            refusal=admitted.refusal,
            undecided=count.undecided or standing.undecided_reason,
        )

    def _alone(self, subject: Subject) -> ReplicaGroup:
        row = self._simulator.row(subject.pod.key)
        if subject.is_new:
            [row] = self._create(self._simulator.free_name(subject.pod), [subject.pod])
        return replace(_group_of(subject), own=() if row is None else (row,))

    def _create(self, cluster: Snapshot, pods: Sequence[Pod]) -> list[int]:
        """Create pods that are admitted now; quotas count them."""
        quotas = QuotaLedger(cluster, self._setup.release)
        for pod in pods:
            quotas.take(pod)
        return self._simulator.create(quotas.apply_to(cluster), pods)

    def place(self) -> GroupOutcomes:
        """Schedule all groups, in the order of the queue, with their controllers."""
        pods = self._simulator.pods
        rows = [row for group in self.groups for row in (*group.waited, *group.own)]
        first = AssignedFirst(snapshot=self._before)
        if self.groups:
            last = min(self.groups, key=lambda group: (group.pod.priority, not group.is_new))
            first = assigned_first(self._before, self._setup, last.pod, objection)
        self._simulator.settle({*first.nodes, *map(pods.key, rows)})
        for group in self.groups:
            rest = self.state(group).rest
            if rest and group.workload is not None:
                self._simulator.manager.create_rest(group.workload, rest)
        return GroupOutcomes(Simulation(self._simulator), first)
