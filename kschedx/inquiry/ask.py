"""From a question about one pod or workload to its answer: its state first, then kube-scheduler's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod
from kschedx.controllers import states
from kschedx.controllers.deployment import NoRollout, strategy_of
from kschedx.controllers.node_lifecycle import is_unreachable
from kschedx.controllers.workload_lifecycle import (
    all_replicas,
    deadline_exceeded,
    pods_of_previous_template,
    refusal_state,
    state_of,
    unready_count_text,
    waiting_member,
    workload_lifecycle,
)
from kschedx.controllers.workloads import SCALED, member_rows, wanted_replicas, workload_of
from kschedx.errors import InputError, NotAdmittedError, NotReadError
from kschedx.explain.kubelet import may_lack_node_support
from kschedx.explain.notes import TRIED, Note, note
from kschedx.explain.setup import Setup, Subject, stored_subject
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.bound_pods import running_workload
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.manifests import PodInQuestion, key_of, title
from kschedx.inquiry.pod import WithoutDecision, explain, objection
from kschedx.kube.decoding import decode, map_at
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import AutoscalingOptions
    from kschedx.inquiry.daemon_set import DaemonSetAnswer
    from kschedx.inquiry.manifest_edit import Edit
    from kschedx.inquiry.workload_pods import BoundPods, ManifestQuestions, ReplicaGroup


class Clusters(Struct, frozen=True, kw_only=True):
    """The clusters of a question; the subject is in the last one."""

    read: Snapshot  # the cluster as it was loaded
    before: Snapshot  # the cluster with the changes that come first
    applied: Snapshot  # the cluster with the manifests in question


class Inquiry(Struct, frozen=True, kw_only=True):
    """The clusters and settings that all questions share."""

    clusters: Clusters
    setup: Setup
    autoscaling: AutoscalingOptions | None = None
    is_alone: bool = False  # whether each pod is evaluated as if it were next in the queue, whatever other pods request
    is_written: bool = False  # whether the pod differs from the cluster's, wherever it comes from
    admission: Callable[[PodInQuestion, Snapshot], Subject] | None = None
    """Admits the pod in question in another way than `PodInQuestion.admit`: with changes, or by the API server."""

    def admit(self, target: PodInQuestion, snapshot: Snapshot) -> Subject:
        """Return the pod in question as the API server would store it. Raises `InputError`."""
        return target.admit(snapshot, self.setup) if self.admission is None else self.admission(target, snapshot)

    def answer(self, target: PodInQuestion, queue: Sequence[PodInQuestion]) -> Explanation:
        """Return the state of a pod or workload, or kube-scheduler's decision about it and its replicas.

        `queue` holds it and the other objects of the files, in their order. Raises `UndecidableError`, and
        `ConfigError` for a pod without a profile.
        """
        try:
            stopped = self._without_decision(target).stopped_answer(partial(self.admit, target))
            if stopped is not None:
                return self._with_cycle(stopped)
            explanation = self.explain(target, queue)
            if isinstance(explanation.lifecycle, states.NotRead):
                return self._with_running_pods(target, explanation)
            if target.stored is not None:
                return explanation
            return self._with_refusal_fixes(target, replace(explanation, before=self.clusters.before))
        except (NotAdmittedError, NotReadError) as error:
            if target.stored is not None:
                raise
            answer = self._answer_of_pending(target, error) or self._with_cycle(self.refused(target, error))
            return self._with_running_pods(target, answer)

    def _with_running_pods(self, target: PodInQuestion, answer: Explanation) -> Explanation:
        """Return an answer that something unread leaves open, with the state of its workload if all of its pods run."""
        member, workload = answer.lifecycle, target.workload
        if not isinstance(member, states.NotRead) or workload is None or target.document is not None:
            return answer
        whole = running_workload(self.clusters.before, workload, member)
        return answer if whole is None else replace(answer, lifecycle=whole)

    def _with_cycle(self, refused: Explanation) -> Explanation:
        """Add the scheduling cycle of a pod that the API server refuses, if it stays pending once it is admitted."""
        fixes = refused.fixes if type(refused.lifecycle) is states.Refused else ()
        admitted = next((fix.then for fix in fixes if fix.then is not None), None)
        if admitted is None:
            return refused
        subject = Subject(snapshot=admitted.scheduler.snapshot, pod=admitted.pod, is_new=True)
        then = explain(subject, self.setup, self.autoscaling)
        if then.outcome is not Outcome.UNSCHEDULABLE or then.lifecycle is not None or then.is_scaled_up:
            return refused
        notes = refused.first_notes
        return replace(then, lifecycle=refused.lifecycle, remedies=lambda: fixes, first_notes=notes)

    def _answer_of_pending(self, target: PodInQuestion, error: NotAdmittedError | NotReadError) -> Explanation | None:
        """The answer about a pending pod of a workload of which no other pod can be admitted; None without one."""
        if (pending := self._pending_member(target)) is None:
            return None
        try:
            answer = self.answer(pending, [pending])
        except NotReadError:
            return None
        if isinstance(error, NotReadError):
            return answer
        text = f"the API server would refuse another pod of {title(target.workload or {})}: {error.message}"
        return replace(answer, first_notes=(*answer.first_notes, note("next-refused", text)))

    def _pending_member(self, target: PodInQuestion) -> PodInQuestion | None:
        """Return a pending pod of a workload of the cluster that has all of its pods; None for any other."""
        snapshot, workload = self.clusters.before, target.workload
        if workload is None or target.document is not None or workload_of(workload).kind not in SCALED:
            return None
        rows = member_rows(snapshot, workload_of(workload))
        pending = next((row for row in rows if row in snapshot.pods.pending), None)
        if pending is None or len(rows) < wanted_replicas(workload):
            return None
        return PodInQuestion.of_cluster(snapshot.pods[pending])

    def _with_refusal_fixes(self, written_pod: PodInQuestion, explanation: Explanation) -> Explanation:
        """Add the fixes for replicas that the API server refuses after it admitted others."""
        replicas = explanation.replicas
        if replicas is None or not replicas.refused:
            return explanation
        lifecycle = refusal_state(replicas.workload, replicas.refusal, is_workload=True, has_pods=True)
        decision = self._without_decision(written_pod)
        # a quota counts the admitted replicas as well, which are not in the cluster yet
        new = {*replicas.placed, *replicas.pending} - {*decision.snapshot.pods.rows}
        return replace(explanation, remedies=decision.fixes(lifecycle, count=len(new) + len(replicas.refused)))

    def is_stopped(self, target: PodInQuestion) -> bool:
        """Return whether the workload creates no pods, for a reason of its own."""
        return target.workload is not None and workload_lifecycle(self.clusters.before, target.workload) is not None

    def is_held(self, target: PodInQuestion) -> bool:
        """Return whether the workload of the cluster creates no pods, or no more, for a reason of its own."""
        is_stored = target.document is None
        return bool(target.workload and state_of(self.clusters.before, target.workload, is_stored=is_stored))

    def is_disputed(self, target: PodInQuestion, node: str | None) -> bool:
        """Whether the cluster reports that a pod which fits the node has none, without changes that explain it."""
        read, pod = self.clusters.read, target.stored
        if pod is None or not node or read is not self.clusters.applied:
            return False
        return bool(objection(read, pod, self.setup, node))

    def refused(
        self, target: PodInQuestion, error: NotAdmittedError | NotReadError, count: int | None = None
    ) -> Explanation:
        """Return the answer of `WithoutDecision.refused`. `count` is the number of refused pods, by default all missing
        ones."""
        return self._without_decision(target).refused(error, count)

    def _without_decision(self, written_pod: PodInQuestion) -> WithoutDecision:
        clusters = self.clusters
        return WithoutDecision(
            written=written_pod,
            before=clusters.before,
            snapshot=clusters.applied,
            setup=self.setup,
            autoscaling=self.autoscaling,
            recorded=None if clusters.before is clusters.read else clusters.read,
        )

    def explain(self, target: PodInQuestion, queue: Sequence[PodInQuestion]) -> Explanation:
        """Return the story of a pod, or of the replicas that a workload lacks, placed together with the others in
        `queue`. Raises `NotAdmittedError`."""
        clusters, workload = self.clusters, target.workload
        setup = replace(self.setup, is_after_queue=not self.is_alone)
        is_alone = self.is_alone or len(queue) == 1
        if self.is_alone or (is_alone and workload is None):
            return explain(self.admit(target, clusters.applied), setup, self.autoscaling)
        from kschedx.controllers.workloads import has_replicas
        from kschedx.inquiry.workload_pods import BoundPods, ManifestQuestions  # a single pod needs no queue

        if is_alone and workload is not None and not has_replicas(workload) and target.count is None:
            return explain(self.admit(target, clusters.applied), setup, self.autoscaling)
        questions = ManifestQuestions(self._before(target), clusters.applied, setup)
        if not is_alone:
            own = self._gather_queue(questions, queue, target)
            return own.explanation if isinstance(own, BoundPods) else questions.place().explain(own, self.autoscaling)
        subject = self.admit(target, questions.snapshot)
        own = gather(questions, subject, target, is_tried=self.is_written)
        if isinstance(own, BoundPods):
            return own.explanation
        state = questions.state(own)
        if not state.is_only(own.pod.key) or own.undecided:
            return questions.place().explain(own, self.autoscaling)
        if state.pods and state.pods[0] in clusters.applied.pods.rows:
            explanation = explain(stored_subject(clusters.applied, state.pods[0]), setup, self.autoscaling)
            if own.workload is None or not 0 < state.running < state.wanted:
                return explanation
            has = "has" if state.running == 1 else "have"
            text = f"{state.running:,} of {state.wanted:,} pods of {own.workload.reference} {has} a node"
            names = clusters.applied.pods.node_names
            assigned = [row for row in member_rows(clusters.applied, own.workload) if names[row]]
            text += unready_count_text(clusters.applied, assigned)
            others = note("other-replicas", text, running=state.running, wanted=state.wanted)
            return replace(explanation, first_notes=(*explanation.first_notes, others))
        if workload is not None and not state.pods:
            subject = replace(subject, notes=(*all_replicas(clusters.applied, workload), *subject.notes))
        explanation = explain(subject, setup, self.autoscaling)
        if state.pods or explanation.becomes is Outcome.SCHEDULED or own.workload is None:
            return explanation
        return replace(explanation, replicas=state.replicas(own.workload))

    def _before(self, target: PodInQuestion) -> Snapshot:
        """The cluster before a rollout of the workload in question, which a change that comes first may begin."""
        from kschedx.controllers.workloads import has_new_spec

        stored = target.workload if target.document is None else None
        is_changed = stored is not None and has_new_spec(self.clusters.read, stored)
        return self.clusters.read if is_changed else self.clusters.before

    def explain_edited(
        self, target: PodInQuestion, queue: Sequence[PodInQuestion], edits: Sequence[Edit]
    ) -> Explanation:
        """Return the answer about the pod with changes of its manifest, and a note about its outcome without them."""
        try:
            before = self.explain(target, queue).overall
        except NotAdmittedError:
            before = Outcome.UNSCHEDULABLE
        manifest = dict(target.manifest)
        for edit in edits:
            manifest = edit.apply(manifest, source=f"--try {edit.text}")
        changes = tuple(edit.text for edit in edits)
        text = f"tried with {', '.join(changes)}; without it: {before.value}"
        tried = note(TRIED, text, changes=changes, before=before)

        def admit_edited(target: PodInQuestion, snapshot: Snapshot) -> Subject:
            subject = target.admit(snapshot, self.setup, manifest)
            return replace(subject, notes=(tried, *subject.notes))

        return replace(self, admission=admit_edited).explain(target, queue)

    def explain_daemon_set(self, target: PodInQuestion, queue: Sequence[PodInQuestion]) -> DaemonSetAnswer:
        """Return the answer about a DaemonSet's nodes, after the others of `queue` are assigned."""
        from kschedx.inquiry.daemon_set import explain_daemon_set
        from kschedx.inquiry.workload_pods import ManifestQuestions, ReplicaGroup

        clusters, setup = self.clusters, self.setup
        answer = explain_daemon_set(target.workload_name, self.admit(target, clusters.applied), setup)
        is_stored = target.workload is not None and key_of(target.workload) in clusters.before.workloads
        is_alone = len(queue) == 1 and not answer.awaits_own_pods
        if is_alone and not is_stored:
            return answer
        questions = ManifestQuestions(self._before(target), clusters.applied, setup)
        own = replace(self, admission=None, is_written=False)._gather_queue(questions, queue, target)
        if isinstance(own, ReplicaGroup):
            together = questions.place()
            placed = answer if is_alone else together.daemon_set(own)
            answer = replace(placed, reported=answer.reported, rollout=together.rollout(own))
        return answer

    def _gather_queue(
        self, questions: ManifestQuestions, queue: Sequence[PodInQuestion], target: PodInQuestion
    ) -> ReplicaGroup | BoundPods:
        """Add all objects of a queue and return the subject's group."""
        own: ReplicaGroup | BoundPods | None = None
        for pod in queue:
            if pod is target:
                own = gather(questions, self.admit(pod, questions.snapshot), pod, is_tried=self.is_written)
            else:
                gather_other(questions, self.setup, pod)
        assert own is not None, "the subject is in the queue"
        return own


# The subject and the other manifests of its files, in one queue.


def gather(
    questions: ManifestQuestions, subject: Subject, target: PodInQuestion, *, is_tried: bool = False
) -> ReplicaGroup | BoundPods:
    """Add an object to the queue. With `is_tried`, pods identical to the subject replace the workload's pending
    pods."""
    return questions.take(subject, target.workload, count=target.count, path=target.template, is_tried=is_tried)


def gather_other(questions: ManifestQuestions, setup: Setup, target: PodInQuestion) -> None:
    """Add another manifest, which counts as applied unless the API server refuses it."""
    if target.stored is not None:
        return
    try:
        gather(questions, target.admit(questions.snapshot, setup), target)
    except (NotAdmittedError, NotReadError):
        return


def state_of_more(
    before: Snapshot, subject: Subject, setup: Setup, workload: Mapping[str, object] | None
) -> states.Lifecycle | Explanation | None:
    """Return the state of more pods identical to this one: that of their workload, or the one that the pod shares with
    them. For a member of a gang with too few pods, return its whole answer. Raises `InputError` for a DaemonSet without
    such a state, which has no more pods."""
    if workload is not None:
        own = state_of(before, workload, is_stored=key_of(workload) in before.workloads)
        own = own or _state_of_next(before, setup, workload)
        if own is None and workload.get("kind") == "DaemonSet":
            hint = "`kschedx why` shows those nodes"
            raise InputError("a DaemonSet has one pod on each eligible node, and no more", hint=hint)
        if own is not None or not may_lack_node_support(subject.pod.spec):
            return own
    explanation = explain(subject, setup)
    if workload is not None:
        return explanation.lifecycle if isinstance(explanation.lifecycle, states.CannotStart) else None
    if explanation.gang is not None and explanation.gang.is_short:
        return explanation
    return None if isinstance(explanation.lifecycle, _OF_ONE_POD) else explanation.lifecycle


def _state_of_next(before: Snapshot, setup: Setup, workload: Mapping[str, object]) -> states.Lifecycle | None:
    """Return the state of a workload's first pending pod if kubelets reject such pods, or if the cluster reports that
    it fits no node."""
    rows = member_rows(before, workload_of(workload))
    pending = next((before.pods[row] for row in rows if not before.pods.node_names[row]), None)
    state = None if pending is None else explain(stored_subject(before, pending), setup).lifecycle
    if isinstance(state, states.CannotStart | states.Contradicted | states.NotBound | states.RejectedByKubelet):
        return state
    return None


_OF_ONE_POD = (
    states.BeingDeleted,
    states.Finished,
    states.Failed,
    states.OfEndedJob,
    states.WaitingForKubelet,
    states.OnLostNode,
    states.ResizeHeld,
    states.KeptBySidecar,
)
"""States of a pod that other identical pods do not share."""
UNCOUNTED = (
    states.NamespaceTerminating,
    states.BeingDeleted,
    states.Finished,
    states.Failed,
    states.Refused,
    states.ManagedElsewhere,
    states.UnknownPods,
    states.PodsLeftOut,
)
"""States for which the number of further pods that fit is meaningless."""


def waiting_member_of(target: PodInQuestion, snapshot: Snapshot) -> PodInQuestion | None:
    """Return the existing pod that a question about a workload of the cluster or about the manifest of a stored pod
    refers to; None if it refers to the next pod."""
    if target.stored is not None or (target.document is not None and target.workload is not None):
        return None
    if target.workload is None:
        member = _stored_pod(snapshot, target.manifest)
    elif workload_lifecycle(snapshot, target.workload) is not None:
        return None
    else:
        member = waiting_member(snapshot, target.workload)
    return None if member is None else PodInQuestion.of_cluster(member)


def _stored_pod(snapshot: Snapshot, manifest: Mapping[str, object]) -> Pod | None:
    """Return the pod of the cluster from which the manifest was exported; None if its spec was edited since then."""
    if not map_at(manifest, "metadata").get("uid"):
        return None
    try:
        written = default_pod(decode(msgspec.json.encode(manifest), Pod))
    except InputError:
        return None  # admission reports it with its place
    row = snapshot.pods.rows.get(written.key)
    stored = None if row is None else snapshot.pods[row]
    is_same = stored is not None and stored.metadata.uid == written.metadata.uid and stored.spec == written.spec
    return stored if is_same else None


def notes_about(target: PodInQuestion, snapshot: Snapshot) -> tuple[Note, ...]:
    """Return the notes about the rollout of a workload of the cluster, or about a status that it alone lacks."""
    if target.document is not None or target.workload is None:
        return ()
    if _may_be_unobserved(target.workload, snapshot):
        text = f"the dump lacks the status of {title(target.workload)}: its controller counts as running"
        return (note("status-missing", text),)
    return (*_rollout_notes(target.workload, snapshot), *_lost_replicas(target.workload, snapshot))


def _lost_replicas(manifest: Mapping[str, object], snapshot: Snapshot) -> Iterator[Note]:
    """Yield how many pods of a workload run on unreachable nodes, if several do: its state is that of the first."""
    pods, workload = snapshot.pods, title(manifest)
    members = [row for row in member_rows(snapshot, workload_of(manifest)) if pods.node[row] >= 0]
    lost = [row for row in members if is_unreachable(snapshot.cluster.nodes[int(pods.node[row])])]
    if len(lost) > 1:
        nodes = list_names(sorted({pods.node_names[row] for row in lost}), 3)
        text = f"{len(lost):,} of {count(len(members), 'pod')} of {workload} are on unreachable nodes: {nodes}"
        yield note("replicas-lost", text, workload=workload, pods=[pods.key(row) for row in lost])


def _rollout_notes(manifest: Mapping[str, object], snapshot: Snapshot) -> Iterator[Note]:
    workload = title(manifest)
    if message := deadline_exceeded(manifest):
        text = f"{workload} exceeded its progress deadline: {message}"
        yield note("progress-deadline-exceeded", text, workload=workload, message=message)
    if previous := pods_of_previous_template(snapshot, manifest):
        strategy = strategy_of(manifest, wanted_replicas(manifest), None)
        how = strategy.value if isinstance(strategy, NoRollout) else strategy
        left = f"{count(previous, 'pod')} of the previous template {'is' if previous == 1 else 'are'} left"
        text = f"the rollout of {workload} is not complete: {left} ({how})"
        yield note("rollout-incomplete", text, workload=workload, previous=previous)


def _may_be_unobserved(workload: Mapping[str, object], snapshot: Snapshot) -> bool:
    """Whether a workload of the cluster has neither pods nor a status, although other workloads have one."""
    is_stored = bool(map_at(workload, "metadata").get("uid"))
    if not is_stored or "status" in workload or "replicas" not in map_at(workload, "spec"):
        return False
    members = member_rows(snapshot, workload_of(workload))
    return not members and any(b'"observedGeneration"' in raw for raw in snapshot.workloads.values())
