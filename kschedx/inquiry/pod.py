"""From a snapshot and a pod to its Explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod
from kschedx.apiserver.pod_security import kubelet_spec
from kschedx.controllers import states
from kschedx.controllers.daemon_set import nodes_of_daemon_set
from kschedx.controllers.kubelet_rejections import failed_before, job_deadline, next_rejected, rejected_pods
from kschedx.controllers.pod_lifecycle import (
    cannot_start,
    controller_manager_down,
    pod_lifecycle,
    scheduler_down,
)
from kschedx.controllers.state_facts import share_of
from kschedx.controllers.stateful_set import over_quota
from kschedx.controllers.workload_lifecycle import (
    refusal_state,
    rows_kept_by_lost_nodes,
    rule_of,
    state_of,
    unready_reason,
)
from kschedx.controllers.workloads import (
    SCALED,
    Workload,
    confirms_deletions,
    member_rows,
    wanted_replicas,
    workload_of,
)
from kschedx.errors import (
    InputError,
    KschedxError,
    NotAdmittedError,
    NotChangedError,
    NotReadError,
    Place,
    UndecidableError,
    closest,
)
from kschedx.explain.admission import (
    admission_warning,
    has_created_since,
    has_siblings,
    security_warning,
    without_pods,
)
from kschedx.explain.cycle_notes import amount_notes, ignored_fields
from kschedx.explain.events import extender_failure, parse, recorded_event
from kschedx.explain.missing_kinds import cycle_of, require_nodes, unread_by
from kschedx.explain.notes import AFTER_CHANGES, CLAIMS_MADE, TRIED, Note, RunsAlready, drained_nodes, note
from kschedx.explain.ranking import namer_of, replicas_verdict, running_verdict
from kschedx.explain.root_causes import autoscaler_reports
from kschedx.explain.setup import Setup, Subject, stored_subject, unassign, with_reported_class
from kschedx.framework.cycle import Cycle, Outcome, Stake, Unevaluated, UnevaluatedKind
from kschedx.inquiry.autoscalers import AutoscalingOptions, autoscalers_of
from kschedx.inquiry.bound_pods import not_bound_state, running_pod
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.manifests import NOT_APPLIED, PodInQuestion, has_unknown_pods, pod_manifest, title, written_from
from kschedx.inquiry.scheduled_first import assigned_first
from kschedx.inquiry.scheduler_pods import known_schedulers, other_scheduler_down, scheduler_rows
from kschedx.kube.conditions import reports_ready
from kschedx.kube.controllers import Controller, convert, stored_controller, stored_metadata
from kschedx.kube.decoding import decode, encode, map_at
from kschedx.kube.documents import Json
from kschedx.kube.other_schedulers import OF_PROVIDERS, POD_GROUP_LABEL, Gang
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Pod
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import Memo, distinct
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import NodeAutoscaler
    from kschedx.inquiry.fix import Fix


def explain(
    subject: Subject, setup: Setup, autoscaling: AutoscalingOptions | tuple[NodeAutoscaler, ...] | None = None
) -> Explanation:
    """Return the scheduling cycle of one pod and its state. `autoscaling` has the user's options for the cluster's
    autoscalers, or the autoscalers themselves.

    Raises `ConfigError` if the pod has no profile, and `UndecidableError` if a kind that may not be listed could change
    the result.
    """
    subject = with_reported_class(subject)
    is_of_other = _is_of_another(subject, setup)
    unknown = None if is_of_other else no_scheduler(subject.snapshot, subject.pod, setup)
    lifecycle = None if subject.is_new else pod_lifecycle(subject.snapshot, subject.pod)
    if lifecycle is not None and (is_of_other or unknown is not None):
        return answer_with_fixes(subject, setup, lifecycle)
    is_second = is_of_other or unknown is not None or setup.is_found(subject.pod)
    if is_second and (down := other_scheduler_down(subject.snapshot, subject.pod)):
        return answer_with_fixes(subject, setup, down)
    if is_of_other:
        name = subject.pod.spec.scheduler_name
        decides = Unevaluated(kind=UnevaluatedKind.SCHEDULER, name=name, where=("spec.schedulerName",), stake=Stake.FIT)
        return _without_cycle(subject, setup, Outcome.UNDECIDED, decides)
    if unknown is not None:
        first = with_first_profile(subject, setup, unknown)
        # a pod that is schedulable with this profile may be rejected by the filters of the other one
        if first is not None and (answer := explain(*first, autoscaling)).alone is Outcome.UNSCHEDULABLE:
            return answer
        return answer_with_fixes(subject, setup, unknown)
    if lifecycle is not None and not subject.pod.spec.node_name:
        return answer_with_fixes(subject, setup, lifecycle)
    try:
        explanation = _explain(subject, setup, autoscaling)
    except UndecidableError as error:
        if lifecycle is not None:
            return answer_with_fixes(subject, setup, lifecycle)
        snapshot = subject.snapshot
        runs = None if subject.is_new else running_pod(snapshot, subject.pod, error)
        if runs is not None:
            return answer_without_cycle(subject, setup, runs)
        is_read = bool(snapshot.cluster.nodes) and not snapshot.source.namespaces
        is_read = is_read and not snapshot.has_only_event_of(subject.pod)
        if subject.is_new or is_read or not isinstance(error, NotReadError):
            raise
        event, key = recorded_event(subject.snapshot, subject.pod), subject.pod.key
        not_read = _not_read_state(key, error, event.message if event else "")
        if not (reports := tuple(autoscaler_reports(subject.snapshot, key))):
            return answer_without_cycle(subject, setup, not_read)
        from kschedx.inquiry.node_scaling import fixes_of_reports

        fixes = tuple(fixes_of_reports(subject.snapshot, key))
        return answer_without_cycle(subject, setup, replace(not_read, reports=reports), lambda: fixes)
    if lifecycle is None and explanation.alone in (Outcome.SCHEDULED, Outcome.UNDECIDED):
        # a gang without room explains the cluster's event
        state = contradiction(explanation.cycle, subject, setup)
        is_known = explanation.alone is Outcome.SCHEDULED or (isinstance(state, states.NotBound) and state.extender)
        lifecycle = state if is_known else None
    if lifecycle is None:
        return explanation
    return replace(explanation, lifecycle=lifecycle, remedies=remedies_of(subject, setup, lifecycle))


def _not_read_state(subject: str, error: NotReadError, message: str = "") -> states.NotRead:
    """`message` is that of the cluster's own kube-scheduler."""
    return states.NotRead(
        subject=subject, unknown=error.unknown, because=error.because, command=error.command, message=message
    )


def find_fixes(explanation: Explanation) -> Iterator[Fix]:
    """Yield the fixes of an answer. Their modules are loaded only for a pod that needs them."""
    from kschedx.inquiry.pod_fixes import PodFixes

    yield from PodFixes(explanation)


def answer_with_fixes(subject: Subject, setup: Setup, lifecycle: states.Lifecycle) -> Explanation:
    """Return the answer about a pod of the cluster that goes through no scheduling cycle, with fixes for its state."""
    return answer_without_cycle(subject, setup, lifecycle, remedies_of(subject, setup, lifecycle))


def remedies_of(subject: Subject, setup: Setup, lifecycle: states.Lifecycle) -> Callable[[], tuple[Fix, ...]]:
    """Return a function that tries the fixes for a pod of the cluster."""

    def fixes() -> tuple[Fix, ...]:
        from kschedx.inquiry.lifecycle_remedies import LifecycleRemedies

        pod = subject.pod
        stopped = LifecycleRemedies(
            snapshot=subject.snapshot, setup=setup, explain=explain, pod=pod, manifest=pod_manifest(pod)
        )
        return stopped.fixes(lifecycle)

    return fixes


def answer_without_cycle(
    subject: Subject, setup: Setup, lifecycle: states.Lifecycle, remedies: Callable[[], tuple[Fix, ...]] | None = None
) -> Explanation:
    """Return the answer about a pod that goes through no scheduling cycle."""
    is_open = states.row_of(lifecycle).exit_code is states.ExitCode.UNDECIDED
    explanation = _without_cycle(subject, setup, Outcome.UNDECIDED if is_open else Outcome.UNSCHEDULABLE)
    return replace(explanation, lifecycle=lifecycle, remedies=remedies)


def _without_cycle(subject: Subject, setup: Setup, outcome: Outcome, *unevaluated: Unevaluated) -> Explanation:
    """Return an answer in which nothing runs, with a profile of the pod's schedulerName."""
    scheduler, first = setup.scheduler_on(subject.snapshot), setup.profiles[0]
    name, points = subject.pod.spec.scheduler_name, dict.fromkeys(first.points, ())
    cycle = Cycle(
        pod=subject.pod,
        snapshot=scheduler.snapshot,
        profile=replace(first, scheduler_name=name, points=points, weights={}, args={}),
        release=setup.release,
        all_nodes=scheduler.nodes,
        outcome=outcome,
        unevaluated=unevaluated,
    )
    return Explanation(cycle, scheduler, (*setup.notes, *subject.notes), fix_search=find_fixes)


class WithoutDecision(Struct, frozen=True, kw_only=True):
    """A pod or workload for which kube-scheduler may make no decision, and why."""

    written: PodInQuestion
    before: Snapshot  # the cluster before the manifest is applied
    snapshot: Snapshot
    setup: Setup
    autoscaling: AutoscalingOptions | None = None
    recorded: Snapshot | None = None  # the cluster in which controllers recorded refusals, if changes followed

    def stopped_answer(self, admit: Callable[[Snapshot], Subject] | None = None) -> Explanation | None:
        """Return the answer about a workload that creates no pods; None if it creates pods. `admit` admits its pod, by
        default as the API server would."""
        if self.written.workload is None:
            return None
        lifecycle = state_of(self.before, self.written.workload, is_stored=self.written.document is None)
        if lifecycle is None:
            return None
        if isinstance(lifecycle, states.Refused):
            lifecycle = replace(lifecycle, past=self._past_rule(lifecycle.message))
        fixes = self.fixes(lifecycle)
        if not lifecycle.is_open or has_unknown_pods(self.written.workload):
            return answer_without_cycle(self._unadmitted_subject, self.setup, lifecycle, fixes)
        try:
            subject = self.written.admit(self.snapshot, self.setup) if admit is None else admit(self.snapshot)
            answer = explain(subject, self.setup, self.autoscaling)
        except (NotAdmittedError, UndecidableError) as error:
            is_unobserved = isinstance(lifecycle, states.NotObserved) and not lifecycle.message
            if isinstance(error, NotAdmittedError) and is_unobserved:
                return self.refused(error)  # its controller could create no pod
            return answer_without_cycle(self._unadmitted_subject, self.setup, lifecycle, fixes)
        of_scheduler = isinstance(lifecycle, states.NotObserved) and _OF_SCHEDULER in lifecycle.message
        if of_scheduler and answer.outcome is Outcome.UNSCHEDULABLE:
            return None  # its controller gave up: the pod that it would create next is the answer
        return replace(answer, lifecycle=lifecycle, remedies=fixes)

    def answer(self) -> Explanation | None:
        """Return the answer about a workload that creates no pods, or whose pods the API server refuses; None if its
        pods are created."""
        try:
            if (stopped := self.stopped_answer()) is None:
                self.written.admit(self.snapshot, self.setup)
            return stopped
        except (NotAdmittedError, NotReadError) as error:
            return self.refused(error)

    def _past_rule(self, refusal: str) -> str:
        """Return the rule of a recorded refusal if the cluster has it or deleted it, and would admit the pod now."""
        if self.written.document is not None:
            return ""
        rule = rule_of(self.before, self._unadmitted_subject.pod.metadata.namespace, refusal, self.recorded)
        try:
            return "" if not rule or self.over_quota(self.written.manifest) else rule
        except (InputError, UndecidableError):
            return ""

    def over_quota(self, manifest: Json | None = None) -> str:
        """Return why a ResourceQuota refuses the next pod, or `manifest` instead; empty if it is admitted."""
        subject = self.written.admit(self.snapshot, self.setup, manifest)
        return over_quota(self.before, subject.snapshot, subject.pod, self.setup.release)

    def refused(self, error: NotAdmittedError | NotReadError, count: int | None = None) -> Explanation:
        """Return the answer about a pod that the API server refuses, that its controller could not create, or whose
        admission depends on a kind that was not read."""
        subject, maker = self._unadmitted_subject, self.written.workload
        workload = None if maker is None else workload_of(maker)
        named = subject.pod.key if workload is None else workload.reference
        if isinstance(error, NotReadError):
            return answer_without_cycle(subject, self.setup, _not_read_state(named, error))
        lifecycle = refusal_state(
            named,
            error.message,
            recorded=self.before,
            source=str(error.place) if error.place.source or error.place.field or error.hint else "",
            hint=error.hint,
            is_workload=workload is not None,
            has_pods=has_siblings(self.snapshot, subject.pod.metadata),
            numbers=self._share() if count is None else "",
        )
        if maker is not None and (warning := self._warning(subject.pod, maker)) is not None:
            subject = replace(subject, notes=(*subject.notes, warning))
        if isinstance(error, NotChangedError) and isinstance(lifecycle, states.Refused):
            lifecycle = lifecycle.of_update
        elif isinstance(lifecycle, states.Refused):
            lifecycle = replace(lifecycle, past=self._past_rule(error.message))
        return answer_without_cycle(subject, self.setup, lifecycle, self.fixes(lifecycle, count=count))

    def _share(self) -> str:
        """Return how many of its replicas a stored workload has."""
        maker = self.written.workload
        if maker is None or self.written.document is not None or maker.get("kind") not in {*SCALED} - {"Job"}:
            return ""
        return share_of(len(member_rows(self.before, workload_of(maker))), wanted_replicas(maker))

    def _warning(self, pod: Pod, maker: Mapping[str, object]) -> Note | None:
        """Return kubectl's warning about a workload that is created although Pod Security refuses its pods."""
        kubelet = kubelet_spec(self.written.manifest)
        phrase = admission_warning(self.snapshot, pod, kubelet, self.setup.release, maker)
        kind, namespace = str(maker.get("kind")), pod.metadata.namespace
        return security_warning(namespace, phrase, kind) if phrase else None

    @property
    def _unadmitted_subject(self) -> Subject:
        """The pod in its manifest, before admission. Raises `InputError` with the place."""
        written = self.written
        try:
            pod = default_pod(decode(encode(written.manifest, "pod"), Pod))
        except InputError as error:
            error = error.at(Place(object=written.title or title(written.manifest)))
            raise (written.document.fault(error, below=written.template) if written.document else error) from None
        not_applied = tuple(each for each in written.notes if each.id == NOT_APPLIED)
        return Subject(snapshot=self.snapshot, pod=pod, is_new=True, notes=not_applied)

    def fixes(self, lifecycle: states.Lifecycle, *, count: int | None = None) -> Callable[[], tuple[Fix, ...]]:
        """Return a function that tries the fixes; `count` is the number of missing pods."""

        def fixes() -> tuple[Fix, ...]:
            from kschedx.inquiry.lifecycle_remedies import LifecycleRemedies

            stopped = LifecycleRemedies(
                snapshot=self.snapshot,
                setup=self.setup,
                explain=explain,
                pod=self._unadmitted_subject.pod,
                manifest=self.written.manifest,
                maker=self.written.workload,
                dependents=self.written.dependents,
                count=self._missing_count if count is None else count,
                file="" if self.written.document is None else self.written.document.place.source,
            )
            return stopped.fixes(lifecycle)

        return fixes

    @property
    def _missing_count(self) -> int:
        maker = self.written.workload
        if maker is None:
            return 1
        wanted = wanted_replicas(maker)
        if self.written.is_daemon:  # its controller may not have counted its nodes yet
            counted = convert(maker, Controller).status.desired_number_scheduled
            wanted = counted or len(nodes_of_daemon_set(self.snapshot, self.setup, maker)[0])
        return max(wanted - len(member_rows(self.before, workload_of(maker))), 1)


def _explain(
    subject: Subject, setup: Setup, autoscaling: AutoscalingOptions | tuple[NodeAutoscaler, ...] | None
) -> Explanation:
    require_nodes(subject.snapshot, subject.pod)
    profile = setup.profile_of(subject.pod)
    notes: tuple[Note, ...] = (*subject.notes, *amount_notes(subject.pod), *ignored_fields(subject.pod, setup.release))
    if subject.first is not None:
        before = setup.scheduler_on(subject.first.snapshot).schedule(subject.first.pod, profile).message
        notes = tuple(
            replace(it, facts={**it.facts, "firstAttempt": before}) if it.id == CLAIMS_MADE else it for it in notes
        )
    scheduler = setup.scheduler_on(subject.snapshot)
    snapshot, pod = unassign(scheduler.snapshot, subject.pod)
    pods = scheduler.snapshot.pods
    node = pods.node_names[pods.rows[pod.key]] if snapshot is not scheduler.snapshot else ""
    scheduler = scheduler.on(snapshot) if node else scheduler
    if node and namer_of(snapshot, pod, node):  # its replacement is bound in the same way
        pod = replace(pod, spec=subject.pod.spec)
    cycle = cycle_of(scheduler, pod, profile)
    if setup.is_after_queue and cycle.outcome is Outcome.SCHEDULED and not node:
        first = assigned_first(snapshot, setup, pod, objection)
        then = cycle_of(scheduler.on(first.snapshot), pod, profile) if first.nodes else cycle
        if then.outcome is not cycle.outcome or [*then.choice] != [*cycle.choice]:
            notes = (*notes, first.note(first.nodes, leave_room=then.outcome is Outcome.SCHEDULED))
            scheduler, cycle = scheduler.on(first.snapshot), then
    if node:
        is_ready = reports_ready(subject.pod.status.conditions)
        why = "" if is_ready else unready_reason(subject.snapshot, subject.pod) or "Ready=False"
        row = pods.rows[pod.key]
        assigned = pods.start_times[row] or pods.creation_timestamps[row] or ""
        notes = (running_verdict(cycle, node, why, assigned), *notes)
    notes = tuple(replicas_verdict(cycle, it) if isinstance(it, RunsAlready) and not it.node else it for it in notes)
    chosen = [cycle.all_nodes.cluster.names[row] for row in cycle.choice]
    notes = (*notes, *failed_before(snapshot, pod, chosen), *(() if chosen else job_deadline(snapshot, pod)))
    autoscalers: tuple[NodeAutoscaler, ...] = ()
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        autoscalers, unread = autoscalers_of(subject.snapshot, autoscaling, scheduler)
        notes = (*notes, *unread)
    return Explanation(
        cycle,
        scheduler,
        (*setup.notes_about(pod), *notes),
        autoscalers=autoscalers,
        fix_search=None if any(isinstance(it, RunsAlready) and it.is_deleted for it in notes) else find_fixes,
        setup=setup,
        drained=drained_nodes(setup.notes),
    )


def _is_of_another(subject: Subject, setup: Setup) -> bool:
    """Return whether the pod belongs to a known scheduler without a profile here. If a profile is named, the answer is
    False."""
    name = subject.pod.spec.scheduler_name
    if setup.forced_profile is not None or name in setup.scheduler_names:
        return False
    return name in known_schedulers()


def with_first_profile(subject: Subject, setup: Setup, unknown: states.NoScheduler) -> tuple[Subject, Setup] | None:
    """Return the question with the first profile, if a provider's kube-scheduler decides, or one that reports so."""
    if parse(unknown.message).nodes is None and not unknown.is_managed:
        return None
    profile, does = setup.profiles[0].scheduler_name, "is a" if unknown.is_managed else "reports like"
    text = f"scheduler {unknown.scheduler} {does} kube-scheduler: its filters are taken from profile {profile}"
    notes = (*subject.notes, note("second-scheduler", text, scheduler=unknown.scheduler, profile=profile))
    return replace(subject, notes=notes), replace(setup, forced_profile=profile)


# Signs that another component decides, or that the decision is not carried out.


def no_scheduler(snapshot: Snapshot, pod: Pod, setup: Setup) -> states.NoScheduler | None:
    """The state of a pod whose schedulerName is in no profile; None if it is in one, or if the user chose a profile."""
    name, known = pod.spec.scheduler_name, tuple(setup.scheduler_names)
    if setup.forced_profile is not None or name in known:
        return None
    pods = snapshot.pods
    with_name = pods.specs.where(lambda spec: spec.scheduler_name == name)
    others = int((with_name & pods.node_names.where(bool)).sum())
    event = recorded_event(snapshot, pod)
    message = "" if event is None else event.message
    in_use = {spec.scheduler_name for spec in pods.specs.values} - {name}
    running = "" if others or message else next((pods.key(row) for row in scheduler_rows(snapshot, name)), "")
    meant = ""
    if not (others or message or running):  # `volcano-scheduler` is the Deployment of volcano
        deployed, every = name.removesuffix("-scheduler"), (*known, *in_use, *known_schedulers())
        # others are similar by their ending alone, or have a word more
        own_names = (it for it in every if not it.endswith("-scheduler") and abs(len(it) - len(name)) < 3)
        meant = deployed if deployed in every else nearest_name(name, every) or closest(name, own_names)
    state = states.NoScheduler(
        subject=pod.key, scheduler=name, profiles=known, others=others, hint=meant, running=running
    )
    return replace(state, message=message, is_managed=name.startswith(OF_PROVIDERS))


def contradiction(
    cycle: Cycle, subject: Subject, setup: Setup
) -> (
    states.Contradicted | states.NotBound | states.CannotStart | states.ComponentDown | states.RejectedByKubelet | None
):
    """Return why a pod that fits here does not run: what its node lacks, or what the cluster's own components report
    about a pod of a dump. It is None if they agree, or if time, a chosen profile, or a change explains the
    difference."""
    pod, snapshot = cycle.pod, subject.snapshot
    nodes = tuple(cycle.all_nodes.cluster.names[row] for row in cycle.choice)
    if not subject.pod.spec.node_name and (unfit := cannot_start(snapshot, pod, nodes)) is not None:
        return unfit
    changes = (*setup.notes, *subject.notes)
    if not pod.spec.node_name and (group := lacking_group(snapshot, pod, setup)):
        return states.NotBound(subject=pod.key, message="", group=group)
    is_stored = subject.is_stored
    if subject.pod.spec.node_name:
        return None
    if (unbound := not_bound_state(snapshot, pod, recorded_event(snapshot, pod) if is_stored else None)) is not None:
        return unbound
    if not is_stored:
        return None
    if (down := scheduler_down(snapshot, subject.pod)) is not None:
        return down
    if any(change.id in (AFTER_CHANGES, TRIED) for change in changes):
        return None
    pods = snapshot.pods
    if (rejected := next_rejected(snapshot, pod, nodes)) is not None:
        return rejected
    feasible = 0 if cycle.feasible is None else len(cycle.feasible)
    if (event := _objection(snapshot, pod, setup, lambda: feasible)) is None:
        return None
    if (failed := extender_failure(event.message)) is not None:
        return states.NotBound(subject=pod.key, message=event.message, extender=f"{failed.url} {failed.why}")
    is_finished = pods.finished
    reported = parse(event.message)
    ended = np.flatnonzero(is_finished & pods.node_names.where(lambda name: name in nodes))
    return states.Contradicted(
        subject=pod.key,
        message=event.message,
        nodes=nodes,
        finished=tuple(pods.key(row) for row in ended.tolist()),
        kinds=unread_by({part.plugin for part in reported.parts}, cycle),
        namespaces=snapshot.only_namespaces,
        counted=reported.nodes or 0,
        known=len(snapshot.cluster.nodes),
        feasible=feasible,
    )


_REPEATED = 3600 * 10**9  # nanoseconds after which an event is repeated if it still applies


def _objection(snapshot: Snapshot, pod: Pod, setup: Setup, feasible: Callable[[], int]) -> RecordedEvent | None:
    """Return the FailedScheduling event about a pod of a dump that fits here, on a number of `feasible` nodes, unless
    time or a chosen profile explains it."""
    if setup.forced_profile is not None or pod.status.nominated_node_name:
        return None
    if snapshot.source.is_complete("Pod", pod.metadata.namespace) and snapshot.source.is_complete("Node"):
        return None  # the cluster's current state, later than the event
    if (event := recorded_event(snapshot, pod)) is None:
        return None
    since, there, times = event.last_seen, parse(event.message).nodes, _record_times(snapshot)
    if there is not None and there < times.open_nodes and not (since and times.is_timed):
        # nodes were added; cordoned ones, and nodes removed since then, would not let the pod fit
        return event if feasible() > len(snapshot.cluster.nodes) - there else None
    return None if since and _is_outdated(since, times) else event


class _RecordTimes(Struct, frozen=True, kw_only=True):
    """Times of a cluster with which those of events are compared."""

    open_nodes: int  # nodes that are not cordoned
    is_timed: bool  # whether each of these has a creation time
    last_change: str  # when one of these was added or recovered last
    last_seen: str  # the newest time of events, pods, and the source


_TIMES = Memo[_RecordTimes]()


def _record_times(snapshot: Snapshot) -> _RecordTimes:
    """Return the times, which are computed once for a snapshot."""
    return _TIMES.of(snapshot.derived, lambda: _read_times(snapshot))


def _read_times(snapshot: Snapshot) -> _RecordTimes:
    open_ = [node for node in snapshot.cluster.nodes if not node.spec.unschedulable]
    recovered = (
        condition.last_transition_time or ""
        for node in open_
        for condition in node.status.conditions
        if (condition.type == "Ready") == (condition.status == "True")
    )
    added = [node.metadata.creation_timestamp or "" for node in open_]
    reported = (scheduling.last_seen for scheduling in snapshot.failed_scheduling.values())
    created = (stamp or "" for stamp in snapshot.pods.creation_timestamps)
    return _RecordTimes(
        open_nodes=len(open_),
        is_timed=all(added),
        last_change=max((*added, *recovered), default=""),
        last_seen=max((snapshot.source.taken, *reported, *created)),
    )


def _is_outdated(since: str, times: _RecordTimes) -> bool:
    """Return whether a node was added or has recovered after an event, or kube-scheduler has not repeated it for a long
    time.

    kube-scheduler tries an unschedulable pod at least every 5 minutes, and the recorder writes a repetition every 30
    minutes (client-go tools/events/event_broadcaster.go).
    """
    try:
        last, seen = nanoseconds(since), times.last_seen
        return times.last_change > since or (bool(seen) and nanoseconds(seen) - last > _REPEATED)
    except InputError:  # a time in a format that no API server writes
        return False


def objection(snapshot: Snapshot, pod: Pod, setup: Setup, node: str) -> str:
    """Return the cluster's message that a pod which fits this node has no node, or that its kubelet rejects such pods;
    empty if there is none."""
    if why := start_failure(snapshot, pod, node):
        return why
    row, pods = snapshot.pods.rows[pod.key], snapshot.pods
    key = (setup.scheduler, *(int(column.codes[row]) for column in (pods.specs, pods.labels, pods.namespaces)))
    feasible = partial(_FEASIBLE.of, snapshot.derived, lambda: _feasible_count(snapshot, pod, setup), *key)
    event = _objection(snapshot, pod, setup, feasible)
    return "" if event is None else event.message


_FEASIBLE = Memo[int]()


def _feasible_count(snapshot: Snapshot, pod: Pod, setup: Setup) -> int:
    feasible = setup.scheduler_on(snapshot).schedule(pod, setup.profile_of(pod)).feasible
    return 0 if feasible is None else len(feasible)


def start_failure(snapshot: Snapshot, pod: Pod, node: str) -> str:
    """Return why a pod of the cluster that fits this node does not start there; empty if nothing is known."""
    if (unfit := cannot_start(snapshot, pod, (node,))) is not None:
        return unfit.why
    if (rejected := next_rejected(snapshot, pod, (node,))) is not None:
        return rejected.message or rejected.reason
    if (unbound := not_bound_state(snapshot, pod, recorded_event(snapshot, pod))) is not None:
        return ": ".join(filter(None, (unbound.why, unbound.message or unbound.report)))
    return ""


def contradicted(snapshot: Snapshot, placed: Mapping[str, str], setup: Setup, *, is_changed: bool) -> Iterator[str]:
    """Yield the pods, of those with a node in a simulation, about which the cluster reports otherwise. Changes explain
    that, unless the dump lacks pods and has shown room before them."""
    if is_changed and not snapshot.only_namespaces:
        return
    pods = snapshot.pods
    fits: dict[int, bool] = {}
    for key, node in placed.items():
        row = pods.rows.get(key)
        if row is None or node not in snapshot.cluster.index or not objection(snapshot, pods[row], setup, node):
            continue
        code = int(pods.specs.codes[row])
        if is_changed and code not in fits:
            state = explain(stored_subject(snapshot, pods[row]), setup).lifecycle
            fits[code] = isinstance(state, states.Contradicted)
        if not is_changed or fits[code]:
            yield key


def lacking_group(snapshot: Snapshot, pod: Pod, setup: Setup) -> str:
    """Return the PodGroup that a pod names and that does not exist, because Coscheduling permits no such pod;
    otherwise, an empty string."""
    name, namespace = pod.metadata.labels.get(POD_GROUP_LABEL, ""), pod.metadata.namespace
    if setup.forced_profile is None and pod.spec.scheduler_name not in setup.scheduler_names:
        return ""
    if not name or "Coscheduling" not in setup.profile_of(pod).points.get("permit", ()):
        return ""
    known = {(gang.metadata.namespace, gang.metadata.name) for gang in snapshot.of(Gang)}
    return "" if (namespace, name) in known else f"{namespace}/{name}"


# Workloads whose pods are not created.

_OF_SCHEDULER = "nodes are available: "  # in each of kube-scheduler's messages that no node fits

_WITHOUT_PODS = (
    states.Refused,
    states.RejectedByKubelet,
    states.NamespaceTerminating,
    states.NotObserved,
    states.WaitingForOrdinal,
    states.WaitingForOldPods,
    states.ComponentDown,
)
_STUCK = lazy_pattern(rb'"ReplicaFailure"|"status":\s*\{\}')
_STUCK_OR_QUEUED = lazy_pattern(rb'"ReplicaFailure"|"status":\s*\{\}|"suspend":\s*true')
_RECREATE = b'"Recreate"'


def workloads_without_pods(
    snapshot: Snapshot,
    setup: Setup,
    within: str | None = None,
    *,
    queued: bool = False,
    autoscaling: AutoscalingOptions | None = None,
    recorded: Snapshot | None = None,
) -> Iterator[tuple[PodInQuestion, Explanation]]:
    """Yield the workloads of one namespace or all without new pods: the API server refuses the pods, an earlier ordinal
    delays them, no controller creates them or, with `queued`, a queue delays them. `recorded` is the cluster before
    changes."""
    seen: set[tuple[str, str, str]] = set()
    is_marked = (_STUCK_OR_QUEUED if queued else _STUCK).search
    events = set(without_pods(snapshot, within))
    events.update(short := {*_short_workloads(snapshot)})
    events.update(short_jobs := {*_short_jobs(snapshot)})
    events.update(rejected_pods(snapshot))
    events.update(_waiting_for_old_pods(snapshot))
    if controller_manager_down(snapshot, "") is not None:
        events.update(key for key, raw in snapshot.workloads.items() if key[0] in SCALED and _is_short(raw))
    for key, raw in snapshot.workloads.items():
        if within not in (None, key[1]) or not (key in events or is_marked(raw)):
            continue
        is_short, manifest = key in short, msgspec.json.decode(raw, type=dict[str, object])
        owner = stored_metadata(raw).controller
        above = key if owner is None or owner.kind == "CronJob" else (owner.kind, key[1], owner.name)
        if above in snapshot.workloads:
            key, manifest = above, msgspec.json.decode(snapshot.workloads[above])
        if key in seen or key[0] == "CronJob":
            continue
        seen.add(key)
        try:
            written_pod = written_from(snapshot, manifest)
            decision = WithoutDecision(
                written=written_pod,
                before=snapshot,
                snapshot=snapshot,
                setup=setup,
                autoscaling=autoscaling,
                recorded=recorded,
            )
            explanation = decision.answer()
            if explanation is None:
                failed = snapshot.failed_creates[key].message if key in short_jobs else ""
                refusal = failed or (decision.over_quota() if is_short else "")
                explanation = decision.refused(NotAdmittedError(refusal)) if refusal else None
        except KschedxError:
            continue
        state = None if explanation is None else explanation.lifecycle
        is_queued = queued and isinstance(state, states.Suspended) and bool(state.queue)
        is_pending = isinstance(state, states.RejectedByKubelet) and bool(state.owner)
        if explanation is not None and (is_queued or (isinstance(state, _WITHOUT_PODS) and not is_pending)):
            yield written_pod, explanation


def left_without_pods(before: Snapshot, after: Snapshot, setup: Setup) -> Iterator[tuple[PodInQuestion, Explanation]]:
    """Yield the workloads without new pods after changes, if any were without before."""
    if after is before or next(workloads_without_pods(before, setup), None) is not None:
        yield from workloads_without_pods(after, setup, recorded=None if after is before else before)


def _short_workloads(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield the workloads with fewer pods than requested, and the Deployments without a ReplicaSet or whose controller
    has not observed their newest change."""
    pods = snapshot.pods
    is_active = ~pods.finished
    is_active &= pods.owners.where(lambda owners: any(owner.controller for owner in owners))
    spaces = pods.namespaces.values
    pairs = (pods.owners.codes * len(spaces) + pods.namespaces.codes)[is_active]  # pods of one template share theirs
    counts = Counter[tuple[str, str, str]]()
    different = distinct(pairs)
    for pair, number in zip(different.tolist(), np.bincount(np.searchsorted(different, pairs)).tolist(), strict=True):
        owners, namespace = divmod(pair, len(spaces))
        for reference in pods.owners.values[owners]:
            if reference.controller:
                counts[reference.kind, spaces[namespace], reference.name] += number
    deployments = {key: raw for key, raw in snapshot.workloads.items() if key[0] == "Deployment"}
    without_replica_set = {*deployments}
    for key, raw in snapshot.workloads.items():
        if key[0] not in ("ReplicaSet", "StatefulSet", "ReplicationController"):
            continue
        sized = stored_controller(raw)
        if (owner := sized.metadata.controller) is not None:
            without_replica_set.discard((owner.kind, key[1], owner.name))
        if counts[key] < (1 if sized.spec.replicas is None else sized.spec.replicas):
            yield key
    for key, raw in deployments.items():
        if key in without_replica_set or stored_controller(raw).is_behind:
            yield key


def _waiting_for_old_pods(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield the Deployments with strategy Recreate that wait for old pods on lost nodes."""
    recreating = {key: raw for key, raw in snapshot.workloads.items() if key[0] == "Deployment" and _RECREATE in raw}
    if not recreating or all(map(confirms_deletions, snapshot.cluster.nodes)):
        return
    for key, raw in recreating.items():
        if rows_kept_by_lost_nodes(snapshot, msgspec.json.decode(raw, type=dict[str, object])):
            yield key


def _short_jobs(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield the Jobs with fewer pods than they run at a time whose controller could not create one since the last."""
    for key, event in snapshot.failed_creates.items():
        raw = snapshot.workloads.get(key) if key[0] == "Job" else None
        if raw is None:
            continue
        wanted = wanted_replicas(msgspec.json.decode(raw, type=dict[str, object]))
        if len(member_rows(snapshot, Workload(*key))) < wanted and not has_created_since(event, snapshot, *key):
            yield key


def _is_short(raw: bytes) -> bool:
    """Return whether the workload has too few replicas, according to its status."""
    manifest = msgspec.json.decode(raw, type=dict[str, object])
    counted = map_at(manifest, "status").get("replicas")
    return (counted if isinstance(counted, int) else 0) < wanted_replicas(manifest)
