"""The result of a simulation: pods, workloads, and the usage of nodes before and after."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec import Struct, field

from kschedx.controllers import stateful_set
from kschedx.controllers.pod_lifecycle import cannot_start
from kschedx.controllers.rollouts import Rollout, RolloutDocument
from kschedx.controllers.states import (
    BoundToMissingNode,
    CannotStart,
    Failed,
    Lifecycle,
    NotBound,
    RejectedByKubelet,
    RolloutStalled,
    ScaledToZero,
    Suspended,
    Waits,
)
from kschedx.controllers.workload_lifecycle import failing_rollout, workload_lifecycle
from kschedx.controllers.workloads import (
    OfWorkload,
    Workload,
    are_replaced,
    evict,
    is_of_daemon_set,
    owners_in,
    wanted_replicas,
)
from kschedx.errors import InputError, NotAdmittedError, NotChangedError
from kschedx.explain.kubelet import BoundByHand, bound_by_hand, may_lack_node_support
from kschedx.explain.missing_kinds import cycle_of
from kschedx.explain.notes import drained_nodes
from kschedx.explain.setup import Subject, stored_subject, unassign
from kschedx.framework.cycle import Outcome, UnevaluatedDocument
from kschedx.framework.moving import Run
from kschedx.framework.scheduler import Scheduler
from kschedx.grouping import group_pairs
from kschedx.inquiry.autoscalers import AutoscalingOptions
from kschedx.inquiry.bound_pods import not_bound_state
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.held_workloads import (
    being_deleted,
    held_by_gates,
    held_by_kueue,
    idle_text,
    selecting_no_node,
)
from kschedx.inquiry.manifests import PodInQuestion, unknown_pods, written_from
from kschedx.inquiry.node_usage import NodeChange, NodeUsage
from kschedx.inquiry.pod import (
    WithoutDecision,
    answer_with_fixes,
    contradicted,
    explain,
    find_fixes,
    left_without_pods,
)
from kschedx.inquiry.pod_keys import PodKeys, PodTexts
from kschedx.inquiry.scheduler_pods import down_schedulers
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import Manifest
from kschedx.kube.documents import Document, Json, document, part_of, with_spec
from kschedx.kube.types import PodSpec
from kschedx.kube.workloads import MAKING_PODS
from kschedx.results import Shown
from kschedx.simulate.apply import ChangeEffect, ChangeEffectDocument, DisplacedPods
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.drain import DrainDocument, DrainOutcome, DrainResult
from kschedx.simulate.moves import GoalResult
from kschedx.simulate.queue import QueueStep, StepDocument, replay
from kschedx.simulate.simulator import KueueResult, Simulator
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.snapshot import Snapshot, SourceDocument

_MOST_OF_OTHERS = 50  # the number of different pods of other schedulers that are explained
_MOST_BOUND = 100  # the number of different pods in a row of a node that are tried against its kubelet


class WorkloadResultDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one workload's pods."""

    kind: str
    namespace: str
    name: str
    pods: int  # all final pods of the workload, on any node or pending
    placed: tuple[str, ...]  # pods that the queue placed, and that have their node in the end
    nodes: Mapping[str, int]  # each node, with the number of these pods on it
    pending: tuple[str, ...]
    evicted: tuple[str, ...]
    to_come: int = 0  # pods that a StatefulSet's controller creates only once others are ready
    message: str  # why the first pending pod is pending
    refused: int = 0  # replicas, not included in `pods`, that the API server refuses
    refusal: str = ""  # why the first of them, or the next pod of a rollout, is refused, in their controller's message


class WorkloadResult(OfWorkload, Struct, frozen=True, kw_only=True):
    workload: Workload
    pods: int
    placed: PodKeys
    nodes: Mapping[str, int]
    pending: PodKeys
    evicted: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    """Pods that kschedx cannot decide about: pending ones, and those with a node about which the cluster reports
    otherwise."""
    to_come: int = 0
    message: str = ""
    refused: int = 0
    refusal: str = ""


class ClusterDocument(Document, frozen=True):
    """What the documents about a cluster that moves begin with."""

    kubernetes_version: str
    unknown_plugins: tuple[UnevaluatedDocument, ...]
    source: SourceDocument
    changes: tuple[str, ...]


class SimulationDocument(ClusterDocument, frozen=True, kw_only=True, omit_defaults=True):
    effects: tuple[ChangeEffectDocument, ...]
    rolled_out: tuple[RolloutDocument, ...] = field(name="rollouts")
    steps: tuple[StepDocument, ...]
    placed: Mapping[str, str]
    pending: tuple[str, ...]
    gated: tuple[str, ...]
    of_other_schedulers: tuple[str, ...]
    states: tuple[Json, ...]
    evicted: Mapping[str, str]
    drained: tuple[DrainDocument, ...] = field(name="drains")
    kueue: KueueResult | None = None
    workloads: tuple[WorkloadResultDocument, ...]
    nodes: Mapping[str, NodeChange]
    goal: GoalResult | None = None


def _has_claims(spec: PodSpec) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes)


class _KubeletRejection(Struct, frozen=True, kw_only=True):
    """Pods of a workload that a kubelet rejects, and its reasons for the first one."""

    node: str
    workload: Workload
    rows: tuple[int, ...]
    subject: Subject
    bound: BoundByHand


class Simulation(Shown):
    """Queues that have ended, one after the other. Pods are named `namespace/name`."""

    steps: tuple[QueueStep, ...]
    autoscaling: AutoscalingOptions | None = None
    """The user's options about the cluster's autoscalers, whose decisions fixes take into account."""

    def __repr__(self) -> str:
        return f"<Simulation: {len(self.placed)} placed, {len(self.pending)} pending>"

    def __init__(
        self,
        simulator: Simulator,
        *,
        changes: Sequence[SimulatedChange] = (),
        effects: Sequence[ChangeEffect] = (),
        workloads: Mapping[Workload, Manifest | None] = {},
        refused_pods: Sequence[tuple[Manifest, NotAdmittedError]] = (),
        drained: Sequence[DrainResult] = (),
        goal: GoalResult | None = None,
        kueue: KueueResult | None = None,
    ) -> None:
        simulator.manager.measure()
        self.setup = simulator.setup
        self.before = simulator.base  # the cluster as it was loaded
        self.changes = tuple(changes)
        self._changed_workloads = dict(workloads)
        self._refused_pods = tuple(refused_pods)
        self.effects = tuple(effects)  # the effects of every change except drains
        self.goal = goal
        self.kueue = kueue  # None for a cluster without Kueue's Workloads
        self.rolled_out: tuple[Rollout, ...] = tuple(simulator.manager.rollouts)
        self.refused = dict(simulator.manager.refused)
        self.open_counts = dict(simulator.manager.open_counts)
        self.choices = tuple(simulator.manager.choices)
        """Random choices of controllers, of which no alternative was tried."""
        self.steps = tuple(simulator.queue.steps)
        self.drained: tuple[DrainResult, ...] = tuple(drained)
        self.scenes = simulator.scenes
        self.simulator = simulator
        self.run = simulator.run

    # --- pods

    @cached_property
    def _queued_rows(self) -> IntArray:
        """Rows of every pod that was ever in the queue and is still in the cluster, in queue order."""
        simulator, pods = self.simulator, self.run.cluster.pods
        queued = np.fromiter(simulator.queue.queued, dtype=np.int64)
        left = simulator.deleted - simulator.queue.evicted.keys()
        rows = queued[(queued < len(pods)) & ~np.isin(queued, np.fromiter(left, dtype=np.int64))]
        if len(pods.rows) == len(pods):
            return rows
        return np.fromiter(dict.fromkeys(pods.rows[pods.key(row)] for row in rows.tolist()), dtype=np.int64)

    @cached_property
    def queue(self) -> PodKeys:
        """Every pod that was ever in the queue and is still in the cluster, in queue order."""
        return PodKeys(self.run.cluster.pods, self._queued_rows)

    @cached_property
    def evicted(self) -> frozenset[str]:
        """Pods that were preempted and not recreated."""
        keys = map(self.run.cluster.pods.key, self.simulator.queue.evicted)
        return frozenset(key for key in keys if self.simulator.row(key) is None)

    @cached_property
    def placed(self) -> PodTexts:
        """Pods of the queue that have a node in the end, to its name."""
        pods, names = self.run.cluster.pods, self.run.cluster.node_names
        return PodTexts(pods, self._queued_rows[pods.node[self._queued_rows] >= 0], lambda row: names[pods.node[row]])

    @cached_property
    def pending(self) -> PodKeys:
        """Pods of the queue that have no node in the end and were not permanently evicted, in queue order."""
        pods, rows = self.run.cluster.pods, self._queued_rows
        evicted = np.array([pods.rows[key] for key in self.evicted], dtype=np.int64)
        return PodKeys(pods, rows[(pods.node[rows] < 0) & ~np.isin(rows, evicted)])

    @property
    def gated(self) -> tuple[str, ...]:
        """Pods with scheduling gates."""
        return self._without_deleted(self.simulator.queue.gated)

    @property
    def of_other_schedulers(self) -> tuple[str, ...]:
        """Pods that are pending for a scheduler which the configuration does not have."""
        return self._without_deleted(self.simulator.queue.of_others)

    def _without_deleted(self, rows: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.run.cluster.pods.key(row) for row in rows if row not in self.simulator.deleted)

    @cached_property
    def undecided(self) -> Mapping[str, str]:
        """Pods that kschedx cannot decide about, to what it would need."""
        if all(step.decision is not None for step in self.steps):
            return {}
        last = self._last_step
        rows = self.pending.rows.tolist()
        return {self.run.cluster.pods.key(row): last(row).undecided for row in rows if last(row).decision is None}

    @cached_property
    def states(self) -> tuple[Explanation, ...]:
        """The reports of `why` that are not based on a decision: about workloads that changes name or whose pods are
        not created, pods that the API server refuses, a pod of each unknown scheduler, a pod for
        which the cluster contradicts the simulation, and the Workloads that Kueue does not admit."""
        pending, known = () if self.kueue is None else self.kueue.pending, self._states_without_kueue
        named = {answer.lifecycle.subject for answer in known if answer.lifecycle is not None}
        held = held_by_kueue(self.after, pending, self.setup, self.autoscaling)
        return (*known, *(it for it in held if it.lifecycle is None or it.lifecycle.subject not in named))

    @cached_property
    def _states_without_kueue(self) -> tuple[Explanation, ...]:
        unschedulable = {id(it) for it in self._of_others[0].values() if it.overall is Outcome.UNSCHEDULABLE}
        return tuple(it for it in self._states() if it.lifecycle is not None or id(it) in unschedulable)

    @cached_property
    def _of_others(self) -> tuple[Mapping[str, Explanation], bool]:
        """The answer of `why` about a pod of each scheduler that the configuration does not have: the first pod that
        may have a node, if there is one. And whether a scheduler has more different pods than are explained, none of
        which fits."""
        pods, answers, explained = self.after.pods, dict[str, Explanation](), Counter[str]()
        different: dict[int, int] = {}
        for row in (pods.rows[key] for key in self.of_other_schedulers):
            different.setdefault(int(pods.specs.codes[row]), row)
        for row in different.values():
            name = pods.specs[row].scheduler_name
            known = answers.get(name)
            if known is None or known.overall is Outcome.UNSCHEDULABLE:
                explained[name] += 1
                if explained[name] <= _MOST_OF_OTHERS:
                    answer = explain(stored_subject(self.after, pods[row]), self.setup)
                    if known is None or answer.overall is not Outcome.UNSCHEDULABLE:
                        answers[name] = answer
        return answers, any(number > _MOST_OF_OTHERS for number in explained.values())

    def _states(self) -> Iterator[Explanation]:
        after, unread = self.after, self.simulator.manager.unread
        if not (self.changes and self.drained):  # a drain does not concern them, and names of changes follow
            named = {workload.reference for workload in (*self._changed_workloads, *self.refused)}
            lacking = left_without_pods(self.before, after if self.changes else self.before, self.setup)
            yield from (it for _, it in lacking if it.lifecycle is not None and it.lifecycle.subject not in named)
        for workload, written in self._changed_workloads.items():
            manifest = written or after.manifest_of(workload)
            if manifest is None or workload in self.refused or workload in self._refused_rollouts:
                continue
            state = workload_lifecycle(after, manifest)
            if workload not in unread and (state is None or self._is_stopped_by_changes(workload, state)):
                continue
            is_pod, own = workload.kind == "Pod", dict(manifest)
            decision = self._decision(PodInQuestion(manifest=own) if is_pod else written_from(after, own))
            if workload in unread:
                yield decision.refused(unread[workload])
            elif (stopped := decision.stopped_answer()) is not None:
                yield stopped
        for manifest, error in self._refused_pods:
            written_pod = PodInQuestion(manifest=dict(manifest))
            if manifest.get("kind") in MAKING_PODS:
                written_pod = written_from(after, dict(manifest))
            elif isinstance(error, NotChangedError) or manifest.get("kind") != "Pod":
                written_pod = unknown_pods(dict(manifest))
            yield self._decision(written_pod).refused(error)
        yield from self._of_others[0].values()
        if not self.changes:
            yield from being_deleted(after, self.setup)
        yield from self._failing_rollouts()
        yield from self._rejected_by_kubelets()
        yield from self._disputed_answers()

    def _decision(self, written: PodInQuestion) -> WithoutDecision:
        return WithoutDecision(written=written, before=self.after, snapshot=self.after, setup=self.setup)

    @cached_property
    def gated_answers(self) -> tuple[Explanation, ...]:
        """The answer about the first pod of each set of scheduling gates."""
        return tuple(held_by_gates(self.after, self.gated, self.setup))

    @cached_property
    def idle_daemon_sets(self) -> Mapping[str, Explanation]:
        """The DaemonSets that changes apply and that select no node, with the answers about their templates."""
        without = {**self.refused, **self.simulator.manager.unread}
        idle = (it for it in self._changed_workloads if it not in without and not self.simulator.manager.members(it))
        return dict(selecting_no_node(self.after, idle, self.setup))

    def _is_stopped_by_changes(self, workload: Workload, state: Lifecycle) -> bool:
        """Whether the changes have scaled a workload to zero or suspended it, which needs no remedy."""
        before = self.before.manifest_of(workload) if isinstance(state, ScaledToZero | Suspended) else None
        return before is not None and not isinstance(workload_lifecycle(self.before, before), type(state))

    def _rejected_by_kubelets(self) -> Iterator[Explanation]:
        """Yield the state of each workload, or else the first pod, that a kubelet rejects."""
        by_workload = group_pairs(((rejection.node, rejection.workload), rejection) for rejection in self._rejections)
        for (node, workload), rejections in by_workload.items():
            subject, bound = rejections[0].subject, rejections[0].bound
            reason, text = ", ".join(bound.refusals), bound.text
            about = subject.pod.key if workload.kind == "Pod" else workload.reference
            state: Failed | RejectedByKubelet | BoundToMissingNode
            if not bound.exists:
                state = BoundToMissingNode(subject=about, node=node, waits=Waits.KUBELET)
            elif workload.kind == "Pod":
                state = Failed(subject=about, reason=reason, message=text, node=node)
            else:
                number = sum(len(rejection.rows) for rejection in rejections)
                state = RejectedByKubelet(
                    subject=about, reason=reason, message=text, nodes=(node,), pods=number, is_bound_by_hand=True
                )
            yield answer_with_fixes(subject, self.setup, state)

    @cached_property
    def _rejections(self) -> tuple[_KubeletRejection, ...]:
        """The new pods that spec.nodeName binds to a node whose kubelet rejects them."""
        table, known = self.run.cluster.pods, len(self.before.pods)
        rows = known + np.flatnonzero(table.node_names.where(bool)[known:])
        rows = rows[~np.isin(rows, self._queued_rows)]
        by_node = group_pairs(
            (table.node_names[row], row)
            for row in rows.tolist()
            # the DaemonSet controller creates pods only for nodes that they fit
            if row not in self.simulator.deleted and not is_of_daemon_set(table.owners[row])
        )
        return tuple(rejection for node, bound in by_node.items() for rejection in self._rejections_on(node, bound))

    def _rejections_on(self, node: str, rows: Sequence[int]) -> Iterator[_KubeletRejection]:
        """Yield the rejections among these pods of a node, one for each row of identical pods. Those after the first
        rejected one are rejected as well."""
        table, rejected = self.run.cluster.pods, list[int]()

        def reject(at: int) -> tuple[Subject, BoundByHand] | None:
            return self._kubelet_rejection(node, [*rows[at:], *rejected])

        ends = [*(np.flatnonzero(np.diff(table.specs.codes[rows])) + 1).tolist(), len(rows)]
        for start, end in pairwise((0, *ends[:_MOST_BOUND])):
            if reject(end - 1) is None:
                continue
            first = start + bisect_left(range(start, end), True, key=lambda at: reject(at) is not None)
            if (rejection := reject(first)) is not None:
                subject, bound = rejection
                workload = self.simulator.manager.owners.of(table, rows[first])
                of_kind = tuple(rows[first:end])
                yield _KubeletRejection(node=node, workload=workload, rows=of_kind, subject=subject, bound=bound)
                rejected += of_kind

    def _kubelet_rejection(self, node: str, rows: Sequence[int]) -> tuple[Subject, BoundByHand] | None:
        """Return how the kubelet of a node rejects the first of these pods, without the others; None if it does not."""
        snapshot, pod = self.simulator.after_without(rows), self.run.cluster.pods[rows[0]]
        pod = with_spec(pod, node_name=node)
        profile = self.setup.profile_compared(pod.spec.scheduler_name) or self.setup.profiles[0]
        bound = bound_by_hand(cycle_of(self.setup.scheduler_on(snapshot), pod, profile))
        if bound is None or bound.is_taken:
            return None
        return Subject(snapshot=snapshot, pod=pod, is_new=True), bound

    def _failing_rollouts(self) -> Iterator[Explanation]:
        """Yield the state of each Deployment in question whose rollout, begun before, does not end."""
        after, rolled_out = self.after, {rollout.workload for rollout in self.rolled_out}
        stored = (Workload(*key) for key in after.workloads)
        for workload in (result.workload for result in self.workloads) if self.changes else stored:
            manifest = None if workload in rolled_out else failing_rollout(after, workload)
            if manifest is not None:
                stopped = self._decision(written_from(after, dict(manifest))).stopped_answer()
                if stopped is not None and isinstance(stopped.lifecycle, RolloutStalled):
                    yield stopped

    def _disputed_answers(self) -> Iterator[Explanation]:
        """Yield the report about the first pending pod if no kube-scheduler runs that could decide about it, and about
        the first pod for which the cluster contradicts the simulation: its events, or the kubelet that rejected its
        predecessors. Contradictions that changes explain are left out."""
        before = self.before
        for pod, down in down_schedulers(before, self.setup):
            yield answer_with_fixes(stored_subject(before, pod), self.setup, down)
        for key in [key for key in self.disputed if key not in self.unable_to_start][:1]:
            yield explain(stored_subject(before, before.pods[before.pods.rows[key]]), self.setup)
        for key, state in [*self.unable_to_start.items()][:1]:
            after = self._with_unbound_claims if isinstance(state, NotBound) else self.after
            snapshot, pod = unassign(after, self.after.pods[self.after.pods.rows[key]])
            subject = Subject(snapshot=snapshot, pod=pod, is_new=True)
            yield answer_with_fixes(subject, self.setup, state)

    @cached_property
    def disputed(self) -> tuple[str, ...]:
        """Pods with a node here on which they cannot start, or about which the cluster reports otherwise, without
        changes that explain it."""
        is_changed, keys = bool(self.changes), self.unable_to_start.keys()
        if self.evictions:
            return tuple(keys)
        return tuple(dict.fromkeys((*keys, *contradicted(self.before, self.placed, self.setup, is_changed=is_changed))))

    @cached_property
    def unable_to_start(self) -> Mapping[str, CannotStart | NotBound]:
        """Pods with a node here on which they cannot start, and new pods whose claims get no volume."""
        pods, snapshot = self.run.cluster.pods, self.after
        rows = self.placed.pods.rows
        rows = rows[pods.specs.where(may_lack_node_support)[rows]]
        states = (
            (key, cannot_start(snapshot, pods[pods.rows[key]], (self.placed[key],))) for key in map(pods.key, rows)
        )
        unable: dict[str, CannotStart | NotBound] = {key: state for key, state in states if state is not None}
        rows, known = self.placed.pods.rows, len(self.before.pods)
        rows = rows if self.changes else rows[rows >= known]
        for row in rows[pods.specs.where(_has_claims)[rows]].tolist():
            unbound = not_bound_state(self._with_unbound_claims, pods[row], None)
            if unbound is not None and (row >= known or unbound.because):  # changes explain what events report
                unable[pods.key(row)] = unbound
        return unable

    @cached_property
    def _with_unbound_claims(self) -> Snapshot:
        """The final cluster, in which no claim has a volume that would be provisioned for it."""
        after, known = self.after, self.before.storage.volumes
        claims = after.storage.claims.items()
        bound = {key: claim for key, claim in claims if claim.spec.volume_name and claim.spec.volume_name not in known}
        return after.with_claims({key: with_spec(claim, volume_name="") for key, claim in bound.items()})

    @property
    def idle_text(self) -> str:
        """Which paused and suspended workloads create no pods, if no pod is in the queue and nothing changes that."""
        return "" if self.changes or len(self.queue) else idle_text(self.after)

    @property
    def lacks_pods(self) -> bool:
        """Whether it is unknown which pods are pending: a dump holds none, no change creates any, and no workload shows
        why it has none."""
        return self.before.lacks_all_pods and not len(self.queue) and not self.refused and not self.states

    @property
    def overall(self) -> Outcome:
        """The outcome over all pods and `states`."""
        outcomes = {state.overall for state in (*self._states_without_kueue, *self._of_others[0].values())}
        is_open = bool(self.undecided) or self._of_others[1] or self.lacks_pods
        is_done = self.is_done and not self.gated and outcomes <= {Outcome.SCHEDULED}
        if is_open or (self.open_counts and is_done) or Outcome.UNDECIDED in outcomes:
            return Outcome.UNDECIDED
        return Outcome.SCHEDULED if is_done else Outcome.UNSCHEDULABLE

    @property
    def is_done(self) -> bool:
        """Whether every pod has a node, Kueue admits every Workload, no replica is refused, and every drain and rollout
        ends."""
        if self.kueue is not None and (self.kueue.pending or self.kueue.refused):
            return False
        is_reached = self.goal is None or self.goal.is_reached
        return (
            is_reached
            and not self.pending
            and not self.refused
            and not any(rollout.stalls for rollout in self.rolled_out)
            and not self.idle_daemon_sets
            and all(drain_result.is_done for drain_result in self.drained)
        )

    @cached_property
    def _last_steps(self) -> IntArray:
        """The number of the last step about each pod of the queue, `(pod,)`."""
        pods = self.run.cluster.pods
        last = np.full(len(pods), -1, dtype=np.int64)
        for number, step in enumerate(self.steps):
            row = pods.rows.get(step.key)
            if row is not None:
                last[row] = number
            if step.more is not None:
                last[step.more.pods] = number
        return last

    def _last_step(self, row: int) -> QueueStep:
        return self.steps[int(self._last_steps[row])]

    @cached_property
    def messages(self) -> Mapping[str, str]:
        """Pending pods to kube-scheduler's message about the last attempt."""
        return PodTexts(self.run.cluster.pods, self.pending.rows, lambda row: self._last_step(row).message)

    @cached_property
    def evictions(self) -> Mapping[str, str]:
        """Every pod that was preempted, to its last preemptor."""
        return {victim: step.key for step in self.steps for victim in step.victim_keys}

    def is_recreated(self, key: str) -> bool:
        """Whether an evicted pod was recreated under its old name."""
        return self.simulator.row(key) is not None

    @property
    def displaced(self) -> DisplacedPods:
        """The pods that lost their nodes to the changes."""
        drained = (pod.pod for drain in self.drained for pod in drain.of(DrainOutcome.EVICTED))
        lost = dict.fromkeys((*(key for effect in self.effects for key in effect.evicted), *self.evictions, *drained))
        gone = dict.fromkeys((*(key for effect in self.effects for key in effect.gone), *sorted(self.evicted)))
        return DisplacedPods(
            moved=tuple(key for key in lost if key in self.placed),
            waiting=tuple(key for key in lost if key in self.messages),
            gone=tuple(gone),
        )

    # --- workloads and nodes

    @cached_property
    def workloads(self) -> tuple[WorkloadResult, ...]:
        """Workloads with a pod in the queue, in order, then those that lost a pod, and those with refused replicas."""
        pods, owners = self.run.cluster.pods, owners_in(self.run.snapshot)
        evicted = np.array([pods.rows[key] for key in sorted(self.evicted)], dtype=np.int64)
        more = evicted[~np.isin(evicted, self._queued_rows)]
        rows = owners.rows_by_workload(pods, np.concatenate([self._queued_rows, more]))
        for workload in (*self.refused, *self._refused_rollouts):
            rows.setdefault(workload, more[:0])
        placed = owners.rows_by_workload(pods, np.flatnonzero((pods.node >= 0) & ~are_replaced(pods)))
        running = Counter[Workload]()
        for workload, its in placed.items():
            running[self._custom_owner(workload)] += len(its)
        joined = group_pairs((self._custom_owner(workload), its) for workload, its in rows.items())
        return tuple(
            self._result(workload, np.concatenate(parts), running[workload]) for workload, parts in joined.items()
        )

    def _custom_owner(self, workload: Workload) -> Workload:
        """The custom resource that created a workload, such as the Rollout of a ReplicaSet; otherwise the workload."""
        raw = self.run.snapshot.workloads.get(workload)
        owner = None if raw is None or workload in self.refused else stored_metadata(raw).controller
        if owner is None or owner.kind in MAKING_PODS:
            return workload
        return Workload(owner.kind, workload.namespace, owner.name)

    def _result(self, workload: Workload, rows: IntArray, running: int) -> WorkloadResult:
        pods, names = self.run.cluster.pods, self.run.cluster.node_names
        placed = rows[np.isin(rows, self._queued_rows) & (pods.node[rows] >= 0)]
        pending = PodKeys(pods, rows[np.isin(rows, self.pending.rows)])
        refused = self.refused.get(workload)
        counts = Counter(pods.node[placed].tolist())
        return WorkloadResult(
            workload=workload,
            pods=running + len(pending),
            placed=PodKeys(pods, placed),
            nodes={names[node]: number for node, number in counts.items()},
            pending=pending,
            evicted=tuple(key for key in PodKeys(pods, rows) if key in self.evictions) if self.evictions else (),
            undecided=(
                *(key for key in pending if key in self.undecided),
                *(key for key in PodKeys(pods, placed) if key in self.disputed),
            )
            if self.undecided or self.disputed
            else (),
            to_come=self._pods_to_create(workload, running + len(pending)),
            message=self.messages[pending[0]] if pending else "",
            refused=0 if refused is None else refused.number,
            refusal=self._refused_rollouts.get(workload, "") if refused is None else refused.refusal,
        )

    @cached_property
    def _refused_rollouts(self) -> Mapping[Workload, str]:
        """Why the API server refuses the next pod of a rollout, whose workload keeps its number of pods."""
        return {rollout.workload: rollout.refusal for rollout in self.rolled_out if rollout.refusal}

    def _pods_to_create(self, workload: Workload, pods: int) -> int:
        manifest = self.run.snapshot.manifest_of(workload) if workload.kind == "StatefulSet" else None
        if manifest is None or workload in self.refused or not stateful_set.spec_of(manifest, None).is_ordered:
            return 0
        return max(wanted_replicas(manifest) - pods, 0)

    @cached_property
    def usage_before(self) -> NodeUsage:
        return NodeUsage(self.setup.scheduler_on(self.before).nodes)

    @cached_property
    def usage_after(self) -> NodeUsage:
        if rejected := [row for rejection in self._rejections for row in rejection.rows]:
            return NodeUsage(self.setup.scheduler_on(self.simulator.after_without(rejected)).nodes)
        return NodeUsage(self.run.scheduler.nodes)

    @property
    def start(self) -> Snapshot:
        """The cluster before the last queue, with the changes."""
        return self.simulator.start

    @property
    def after(self) -> Snapshot:
        """The final cluster."""
        return self.simulator.after

    @cached_property
    def closed_nodes(self) -> frozenset[str]:
        """The nodes that the changes drain or cordon."""
        cordoned = (change.text for change in self.changes if change.verb is ChangeVerb.CORDON)
        return frozenset((*cordoned, *(drain_result.node for drain_result in self.drained)))

    # --- explanations of decisions

    def explain(self, step: int) -> Explanation:
        """Return the explanation of a step's pod in the cluster at that step. Steps are counted from 0.

        Only steps of the final queue are supported, not those of a drain. Raises `InputError` for others.
        """
        first, number = self.simulator.first_step, len(self.steps)
        if not first <= step < number:
            known = f"the last queue has the steps {first:,} to {number - 1:,}" if first < number else ""
            raise InputError(f"step {step:,} cannot be explained", hint=known)
        scheduler = self._start.on(self.cluster_before(step))
        pod = scheduler.snapshot.pods[self.steps[step].pod]
        cycle = scheduler.schedule(pod, self.setup.profile_of(pod))
        return Explanation(cycle, scheduler, self.setup.notes, fix_search=find_fixes)

    def cluster_before(self, step: int) -> Snapshot:
        """Return the cluster before a decision; the same steps are supported as in `explain`."""
        queue, first = self.simulator.queue, self.simulator.first_step
        assert step >= first, "a step before the last change"
        run, done, seen = self._replay
        if done > step:
            run, done, seen = self.simulator.begun(), first, 0
        for at in range(done, step + 1):
            while seen < len(queue.between) and queue.between[seen].steps <= at:
                replay(run, queue.between[seen])
                seen += 1
            if at < step:
                self._repeat(run, queue.steps[at])
        self._replay = run, step, seen
        return run.cluster.frozen()

    def _repeat(self, run: Run, step: QueueStep) -> None:
        for victim in step.victims:
            evict(run, victim, waits=victim in self.simulator.queue.recreated)
        run.release(step.released)
        if step.node is not None:
            run.bind(step.pod, step.node)
            if step.more is not None:
                run.cluster.place_many(step.more.pods, step.more.nodes.astype(np.int64))
        else:
            run.cluster.nominate(step.pod, step.nominated)

    def explain_now(self, pod: str) -> Explanation | None:
        """Return the explanation of a pending pod in the final cluster; None if it is not unschedulable there, and no
        plugin keeps it from the queue."""
        explanation = self.explain_then(pod)
        return explanation if explanation.overall in (Outcome.UNSCHEDULABLE, Outcome.GATED) else None

    def explain_then(self, pod: str) -> Explanation:
        """Return the explanation of a pending pod in the final cluster. Raises `UndecidableError`."""
        return self._explain(self._then, pod)

    def explain_in(self, scene: Snapshot, pod: str) -> Explanation | None:
        """Return the explanation of a pending pod in one of the scenes; None if it is not unschedulable there. Raises
        `UndecidableError`."""
        explanation = self._explain(self._start.on(scene), pod)
        return explanation if explanation.outcome is Outcome.UNSCHEDULABLE else None

    def _explain(self, scheduler: Scheduler, pod: str) -> Explanation:
        target = scheduler.snapshot.pods[scheduler.snapshot.pods.rows[pod]]
        cycle = cycle_of(scheduler, target, self.setup.profile_of(target))
        notes, drained = self.setup.notes, self.closed_nodes | drained_nodes(self.setup.notes)
        drained |= {
            effect.change.text
            for effect in self.effects
            if effect.change.verb is ChangeVerb.REMOVE_NODE and pod in effect.evicted
        }
        return Explanation(cycle, scheduler, notes, fix_search=find_fixes, setup=self.setup, drained=drained)

    @cached_property
    def _then(self) -> Scheduler:
        return self.run.scheduler.on(self.run.cluster.frozen())

    @cached_property
    def _start(self) -> Scheduler:
        return self.setup.scheduler_on(self.simulator.start)

    @cached_property
    def _replay(self) -> tuple[Run, int, int]:
        """A cluster that follows `cluster_before`, its step, and the number of events that it has seen."""
        return self.simulator.begun(), self.simulator.first_step, 0

    def records(self) -> list[dict[str, object]]:
        """Return a row per decision of the queue; for drains, a row per pod on the drained nodes."""
        if self.drained:
            return [
                {
                    "drained": drain_result.node,
                    "pod": pod.pod,
                    "fate": pod.fate.value,
                    "node": pod.node or "",
                    "message": pod.message,
                }
                for drain_result in self.drained
                for pod in drain_result.pods
            ]
        return [
            {
                "pod": step.key,
                "outcome": "Undecided" if step.decision is None else step.decision.outcome.value,
                "node": "" if step.node is None else step.names([step.node])[0],
                "nominated_node": "" if step.nominated is None else step.names([step.nominated])[0],
                "victims": len(step.victim_keys),
                "message": step.message,
                "more": 0 if step.more is None else len(step.more.pods),
            }
            for step in self.steps
        ]

    def to_dict(self) -> Json:
        before, after = self.usage_before, self.usage_after
        names = dict.fromkeys((*before.names, *after.names))
        return document(
            "Simulation",
            SimulationDocument,
            self,
            **self.cluster_fields,
            steps=tuple(step.document for step in self.steps),
            placed={key: self.placed[key] for key in self._single(self.placed.pods)},
            pending=self._single(self.pending),
            workloads=tuple(
                part_of(
                    WorkloadResultDocument,
                    workload,
                    placed=self._single(workload.placed),
                    pending=self._single(workload.pending),
                )
                for workload in self.workloads
            ),
            of_other_schedulers=self.of_other_schedulers,
            states=tuple(state.state_document for state in self.states),
            evicted=self.evictions,
            nodes={name: NodeChange(before.get(name), after.get(name)) for name in names},
        )

    def _single(self, pods: PodKeys) -> tuple[str, ...]:
        left = pods.rows[~np.isin(pods.rows, self._joined_rows)]
        return tuple(PodKeys(self.run.cluster.pods, left))

    @cached_property
    def _joined_rows(self) -> IntArray:
        """Rows of pods that share a step with others."""
        joined = [step.more.pods for step in self.steps if step.more is not None]
        return np.unique(np.concatenate(joined)) if joined else np.zeros(0, dtype=np.int64)

    @property
    def cluster_fields(self) -> Json:
        return {
            "kubernetes_version": self.setup.release.version,
            "unknown_plugins": self.setup.unknown_plugin_documents,
            "source": self.before.source.document,
            "changes": tuple(map(str, self.changes)),
        }
