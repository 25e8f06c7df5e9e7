"""A question about several pods and workloads: an item for each, with the function that explains it, and the answers
by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.state_causes import causes, own_event, predicate
from kschedx.controllers.states import ExitCode, Lifecycle, NotRead, Refused, WaitingForKubelet, WaitingForOldPods
from kschedx.controllers.workloads import has_replicas, member_rows, wanted_replicas, workload_of
from kschedx.errors import ConfigError, InputError, NotAdmittedError, NotReadError, Place, UndecidableError
from kschedx.explain.causes import CauseGroup, NodeIfFirst, PodAnswer, answer_keys, cause_of, decisive, groups, owner_of
from kschedx.explain.cycle_notes import untried_minutes, untried_text
from kschedx.explain.kubelet import bound_by_hand
from kschedx.explain.missing_kinds import depends_on_unread
from kschedx.explain.setup import Subject, stored_subject
from kschedx.findings import Finding
from kschedx.findings.constraints import NodeAffinityMismatch
from kschedx.framework.cycle import Outcome
from kschedx.holding.headlines import gang_cause, kueue_state_text, scheduler_report
from kschedx.inquiry.ask import Inquiry, gather, gather_other
from kschedx.inquiry.autoscalers import autoscalers_of
from kschedx.inquiry.daemon_set import explain_daemon_set
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.held_workloads import idle_text
from kschedx.inquiry.manifests import PodInQuestion, title
from kschedx.inquiry.pod import explain, lacking_group, objection, workloads_without_pods
from kschedx.inquiry.scheduler_pods import down_scheduler
from kschedx.inquiry.target import held_custom_resources
from kschedx.inquiry.workload_pods import BoundPods, GroupOutcomes, ManifestQuestions, QueueOutcome, ReplicaGroup
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import API_VERSION, Json, to_json
from kschedx.kube.kueue import GROUP_LABEL
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.types import Pod
from kschedx.parallel import results
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count
from kschedx.words import describe
from kschedx.words.causes import shared_headlines
from kschedx.words.pod import could_reject

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth, NodeAutoscaler
    from kschedx.inquiry.fix import Fix
    from kschedx.inquiry.pending_pods import SharedFix


_OF_WORKLOAD = "gets no new pods"
_MOST_OF_SAMPLE = 20
"""Causes of a sample. A document of thousands of nodes that is cut to what an assistant reads has room for fewer."""


class _Replica(Struct, frozen=True, kw_only=True):
    """One of several identical pods."""

    pod: str  # `namespace/name`
    node: str = ""  # empty if it is unschedulable


class _Item(Struct, frozen=True, kw_only=True):
    """One of the pods or workloads in question."""

    pod: str  # `namespace/name`
    owner: str  # `Deployment web`
    priority: int
    command: str  # the command for the complete answer
    explain: Callable[[], Explanation]
    place: Place = Place()
    node: str = ""  # the pod's node, if it is known without a full explanation
    taken: Callable[[str], NodeIfFirst | None] | None = None
    """Returns the place that the pod, or a replica, would have alone."""
    waits: str = ""
    """kube-scheduler's message about a pod that is pending after the whole queue, though it may fit by itself then."""
    workload: str = ""  # `shop/deploy/web`, for a workload with replicas
    replicas: tuple[_Replica, ...] = ()  # each replica; `explain` explains the most informative one
    open_count: str = ""  # why there may be more such pods, or pods with larger requests
    group_key: Hashable = None
    """Equal for pods with the same explanation, apart from names and amounts; None for a pod without equals."""
    message: str = ""  # kube-scheduler's message, if that of an equal pod may have other numbers

    def answers(self) -> tuple[PodAnswer, ...]:
        is_placed = bool(self.replicas) and all(replica.node for replica in self.replicas)
        if is_placed and self.open_count:
            undecided = replace(self._undecided, message=self.open_count)
            return tuple(replace(undecided, pod=replica.pod) for replica in self.replicas)
        if self.node or is_placed:
            return self.for_each(replace(self._undecided, outcome=Outcome.SCHEDULED, nodes=(self.node,)))
        return self.for_each(self.answer()[0])

    def for_each(self, answer: PodAnswer) -> tuple[PodAnswer, ...]:
        """Return an answer for each replica; `answer` is that of every replica without a node."""
        if not self.replicas:
            return (answer,)
        placed = replace(self._undecided, outcome=Outcome.SCHEDULED)
        return tuple(
            replace(placed, pod=replica.pod, nodes=(replica.node,))
            if replica.node
            else replace(answer, pod=replica.pod)
            for replica in self.replicas
        )

    @property
    def _undecided(self) -> PodAnswer:
        return PodAnswer(pod=self.pod, owner=self.owner, priority=self.priority, outcome=None, command=self.command)

    def answer(self) -> tuple[PodAnswer, Explanation | None]:
        """Return the answer in short and its explanation; undecided and refused pods have answers too."""
        undecided = self._undecided
        try:
            explanation = self.explain()
        except UndecidableError as error:
            return replace(undecided, message=str(error)), None
        except ConfigError as error:
            # The scheduler's name is a separate key, so the text is equal for all of its pods.
            config_error = type(error)(error.message, place=Place(field=error.place.field), hint=error.hint)
            return replace(undecided, message=str(config_error)), None
        except NotAdmittedError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            return replace(undecided, outcome=Outcome.UNSCHEDULABLE, message=message, state="Refused"), None
        except InputError as error:
            if self.place.source:
                raise
            return replace(undecided, outcome=Outcome.UNSCHEDULABLE, message=str(error), state="Refused"), None
        return self._answer_of(explanation), explanation

    def _answer_of(self, explanation: Explanation) -> PodAnswer:
        undecided, state = self._undecided, explanation.state.name
        if explanation.lifecycle is not None:
            return _lifecycle_answer(undecided, explanation, explanation.lifecycle)
        if (bound := bound_by_hand(explanation.cycle)) is not None:
            nodes = (bound.node,) if bound.is_taken else ()
            return replace(undecided, outcome=explanation.becomes, nodes=nodes, message=bound.text)
        if self.open_count and explanation.overall is Outcome.UNDECIDED:
            return replace(undecided, message=self.open_count)
        if explanation.outcome is Outcome.SCHEDULED and (explanation.overall is not Outcome.SCHEDULED or self.waits):
            return self._gang_answer(explanation)
        held = explanation.holding
        message = "" if explanation.outcome is Outcome.GATED else explanation.message
        if explanation.outcome is Outcome.UNDECIDED:
            message = could_reject(explanation.cycle.unevaluated) + scheduler_report(held)
        answer = replace(undecided, outcome=explanation.outcome, nodes=explanation.chosen_nodes, message=message)
        if state == "Nominated":
            waits = explanation.nominated_text
            return replace(answer, state=state, cause=(state, waits), headlines=(waits,))
        if explanation.outcome is Outcome.GATED and held.kueue is not None and held.kueue.is_gated and not held.gates:
            reads = kueue_state_text(held.kueue).removeprefix("is ")
            labels = explanation.cycle.pod.metadata.labels
            is_shared = GROUP_LABEL in labels or len(self.replicas) > 1  # one Workload, so that one fix serves all
            return replace(answer, state=state if is_shared else "", cause=("kueue", reads), headlines=(reads,))
        if explanation.outcome in (Outcome.UNSCHEDULABLE, Outcome.GATED):
            diagnosis, preemption = explanation.diagnosis, explanation.cycle.post_filter
            reasons = decisive(diagnosis)
            return replace(
                answer,
                cause=cause_of(diagnosis),
                preempts=preemption is not None and bool(preemption.candidates),
                headlines=shared_headlines(diagnosis),
                reasons=tuple(dict.fromkeys(finding.reason for finding in reasons)),
                wants=_wanted_labels(reasons[:1]),
            )
        return answer

    def _gang_answer(self, explanation: Explanation) -> PodAnswer:
        """Return the answer about a pod that fits alone, but not with its group, or before others are ready."""
        group, unscheduled = explanation.holding.group, replace(self._undecided, outcome=Outcome.UNSCHEDULABLE)
        named = group.name if group is not None else explanation.cycle.pod.metadata.labels.get(POD_GROUP_LABEL, "")
        if not named and not self.waits:  # a StatefulSet creates its pods one after the other
            headline = "not created before the others are ready"
            return replace(unscheduled, cause=(headline,), headlines=(headline,))
        headline = f"fits alone, but not with its group {named}"
        if group is not None and group.lacks_room:
            headline = gang_cause(group)
        return replace(
            unscheduled,
            message=self.waits or (explanation.message if group is None else group.message),
            state="WaitingForGang",
            cause=("group", named),
            headlines=(headline,),
        )


def _lifecycle_answer(undecided: PodAnswer, explanation: Explanation, lifecycle: Lifecycle) -> PodAnswer:
    """Return the answer about a pod that kube-scheduler does not decide."""
    answer = replace(undecided, outcome=explanation.overall, state=explanation.state.name)
    if isinstance(lifecycle, Refused):
        message = f"{lifecycle.message} ({lifecycle.hint})" if lifecycle.hint else lifecycle.message
        return replace(answer, message=message)
    reads = predicate(lifecycle).removeprefix("is ")
    if reads.startswith(_OF_WORKLOAD):  # the answer is about its missing pods
        reads = f"not created{reads.removeprefix(_OF_WORKLOAD)}"
    if isinstance(lifecycle, NotRead):
        reads = reads.removeprefix(f"{lifecycle.does}: ")  # the node of a pod that runs
    why = next(causes(lifecycle), "")
    event = own_event(lifecycle) if explanation.overall is Outcome.UNDECIDED else ""
    return replace(
        answer,
        nodes=(lifecycle.node,) if isinstance(lifecycle, WaitingForKubelet) and lifecycle.node else (),
        message=f"{why}; the event: {event}" if why and event else event or why,
        cause=(explanation.state.name, reads),
        headlines=(reads,),
    )


def _wanted_labels(findings: Sequence[Finding]) -> str:
    """Return the requirements of findings about node labels, because their headlines name no labels."""
    of_labels = (describe(finding) for finding in findings if isinstance(finding, NodeAffinityMismatch))
    return "; ".join(" · ".join(fact.items) for words in of_labels for fact in words.facts)


class ExplanationList(Shown, Struct, frozen=True, kw_only=True, dict=True):
    """The pods in question, explained with the same settings, and the answers about them by cause."""

    items: Sequence[_Item]
    snapshot: Snapshot
    is_competing: bool = False  # whether the pods are new, and compete for the same resources
    evicted: Sequence[str] = ()  # the pods that preemption evicts for these pods
    notes: Sequence[str] = ()
    growths: Sequence[Growth] = ()  # what each autoscaler adds for all pending pods
    shared_fix: Callable[[Sequence[str]], SharedFix | None] | None = None
    """Tries a fix for several pending pods, one after the other."""
    jobs: int = 1  # how many processes may share the work
    if_empty: str = "no pod is pending"  # the headline if there are no such pods
    fixes: dict[int, Fix | SharedFix | None] = {}
    """The number of each group for which fixes were tried, and the first one of its first pod, tried for all its pods
    if possible; None if none is known."""
    _explanations: dict[int, Explanation | None] = {}
    _nodes_if_first: dict[int, NodeIfFirst | None] = {}

    def answer(self, index: int) -> tuple[PodAnswer, ...]:
        """Return the answers about one item, one for each of its pods."""
        return self.items[index].answers()

    @property
    def answers(self) -> list[PodAnswer]:
        """The answers about every pod, in order."""
        return [answer for answers in self.answers_by_item for answer in answers]

    @cached_property
    def answers_by_item(self) -> list[tuple[PodAnswer, ...]]:
        """The answers in the order of the items, computed in several processes if there are many."""
        if not self.items:
            return []
        likes = [index if item.group_key is None else (item.group_key,) for index, item in enumerate(self.items)]
        first = {group_key: index for index, group_key in reversed([*enumerate(likes)])}
        rows = sorted(first.values())
        answers_by_row = {0: self.answer(0)}  # what all pods share is computed once, before processes are forked
        pods = Counter(likes)
        answers = zip(rows[1:], results(self.answer, rows[1:], self.jobs), strict=True)
        total = len(self.items) - pods[likes[0]]
        answers_by_row |= dict(
            count_items(answers, Phase.DECIDING, total, "pods", weight=lambda item: pods[likes[item[0]]])
        )
        return [
            answers_by_row[index]
            if index in answers_by_row
            else (_copy_answer(item, answers_by_row[first[group_key]][0]),)
            for index, (item, group_key) in enumerate(zip(self.items, likes, strict=True))
        ]

    def explanation(self, pod: str) -> Explanation:
        """Return the explanation of one of the pods. Raises `KschedxError` if it cannot be explained."""
        pairs = zip(self.items, self.answers_by_item, strict=True)
        return next(item for item, answers in pairs if any(answer.pod == pod for answer in answers)).explain()

    @cached_property
    def groups(self) -> tuple[CauseGroup, ...]:
        """The pods by cause, the largest group first."""
        return groups(self.answers)

    def to_dict(self) -> Json:
        return _read_iterators(self.entries())

    def sample(self) -> tuple[Json, int]:
        """Return the document with the first pod of each of the largest causes, and the number of pods."""
        firsts = {group.first.pod for group in self.groups[:_MOST_OF_SAMPLE]}
        indexes = [index for index, own in enumerate(self.answers_by_item) if any(it.pod in firsts for it in own)]
        return _read_iterators(self.entries(indexes)), len(self.items)

    def entries(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[str, object]]:
        """Yield the keys and values of one document with every Explanation, and the undecided and refused pods; only of
        the items with `indexes` if those are given. Each entry is computed when it is requested."""
        undecided: list[object] = []
        refused: list[object] = []
        answers: list[tuple[PodAnswer, ...]] = []

        def items() -> Iterator[object]:
            for index in range(len(self.items)) if indexes is None else indexes:
                answer, explanation = self.items[index].answer()
                answers.append(self.items[index].for_each(answer))
                if explanation is not None and not isinstance(explanation.lifecycle, Refused):
                    yield explanation.to_dict()
                else:
                    column = undecided if answer.outcome is None else refused
                    fixes = [to_json(fix.document()) for fix in explanation.fixes] if explanation is not None else []
                    column.append({"pod": answer.pod, "reason": answer.message, **({"fixes": fixes} if fixes else {})})

        yield "apiVersion", API_VERSION
        yield "kind", "ExplanationList"
        yield "items", items()
        if indexes is None:
            self.__dict__["answers_by_item"] = answers
        yield "undecided", undecided
        if refused:
            yield "refused", refused

    def explanation_of(self, number: int) -> Explanation | None:
        """Return the explanation of the first pod of a group; None if it is undecided or refused."""
        if number not in self._explanations:
            self._explanations[number] = self._item_of(self.groups[number].first).answer()[1]
        return self._explanations[number]

    def try_fixes(self, numbers: Iterable[int]) -> None:
        """Try fixes for the groups with these numbers, unless that was done before."""
        new = [number for number in numbers if number not in self.fixes]
        for number in count_items(new, Phase.TRYING_FIXES, len(new), "causes") if new else ():
            self.fixes[number] = self._find_fix(number)

    def _find_fix(self, number: int) -> Fix | SharedFix | None:
        group = self.groups[number]
        first = group.first
        if first.outcome not in (Outcome.UNSCHEDULABLE, Outcome.GATED, Outcome.UNDECIDED) and not first.state:
            return None
        is_open = first.outcome is Outcome.UNDECIDED and not first.state
        if is_open and ((answer := self.explanation_of(number)) is None or answer.holding.scheduler is None):
            return None  # only what another scheduler waits for is known
        if self.shared_fix is not None and len(group.answers) > 1 and first.outcome is Outcome.UNSCHEDULABLE:
            shared = self.shared_fix([answer.pod for answer in group.answers])
            if shared is not None:
                return shared
        explanation = self.explanation_of(number)
        return None if explanation is None else next(explanation.each_fix(), None)

    def _item_of(self, answer: PodAnswer) -> _Item:
        """Return the item to which one of `answers` belongs."""
        pairs = zip(self.items, self.answers_by_item, strict=True)
        return next(item for item, answers in pairs if any(answer is other for other in answers))

    def node_if_first(self, number: int) -> NodeIfFirst | None:
        """Return the place that the first pod of a group would have alone; None if it would have none."""
        if number not in self._nodes_if_first:
            answer = self.groups[number].first
            item = self._item_of(answer)
            is_alone = item.taken is not None and (answer.state != "WaitingForGang" or bool(item.replicas))
            self._nodes_if_first[number] = item.taken(answer.pod) if item.taken is not None and is_alone else None
        return self._nodes_if_first[number]

    @property
    def exit_code(self) -> ExitCode:
        """0 if every pod is schedulable, 3 if one cannot be decided, else 1."""
        open_counts = {item.open_count for item in self.items if item.open_count}
        undecided = [answer for answer in self.answers if answer.outcome in (None, Outcome.UNDECIDED)]
        if not self.answers and self.snapshot.lacks_all_pods:
            return ExitCode.UNDECIDED
        is_sure = any(answer.outcome is Outcome.UNSCHEDULABLE for answer in self.answers)
        if undecided and not (is_sure and all(answer.message in open_counts for answer in undecided)):
            return ExitCode.UNDECIDED
        fits = all(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE


def _copy_answer(item: _Item, answer: PodAnswer) -> PodAnswer:
    """Return the answer about an identical pod as the answer about this one, on its own node."""
    own = {name: getattr(item, name) for name in ("pod", "owner", "priority", "command")}
    nodes, message = (item.node,) if item.node else answer.nodes, item.message or answer.message
    return replace(answer, **own, nodes=nodes, message=message)


def _read_iterators(entries: Iterator[tuple[str, object]]) -> Json:
    return {key: [*value] if isinstance(value, Iterator) else value for key, value in entries}


class ListInquiry(Struct, frozen=True, kw_only=True):
    """Questions about several pods, with what depends on the caller."""

    inquiry: Inquiry
    command: Callable[[str, str, str], str]
    """Returns the command that explains a pod of a namespace by its owner and name, or, without a name, its owner."""
    jobs: int = 1  # how many processes may share the work

    def explain_manifests(self, targets: Sequence[PodInQuestion], queue: Sequence[PodInQuestion]) -> ExplanationList:
        """Explain the pods of manifests, with all replicas. `queue` are these pods and the others in the files, in
        order."""
        if self.inquiry.is_alone:
            return ExplanationList(
                items=[item for target in targets for item in self._alone(target)],
                is_competing=any(target.stored is None for target in targets),
                snapshot=self.inquiry.clusters.read,
                jobs=self.jobs,
            )
        return self._explain_queue(targets, queue)

    def explain_cluster(
        self, rows: Sequence[int], *, within: str | None, is_part: bool, has_workloads: bool
    ) -> ExplanationList:
        """Explain pods of the cluster. Nodes that autoscalers add, and, with `has_workloads`, the workloads of a
        namespace whose missing pods are not created, are in no part of the pods."""
        snapshot, setup = self.inquiry.clusters.read, self.inquiry.setup
        is_queue = not self.inquiry.is_alone and bool(snapshot.cluster.nodes)
        is_queue = is_queue and not {*snapshot.pods.pending}.isdisjoint(rows)
        autoscaling = self.inquiry.autoscaling
        autoscalers, unread = autoscalers_of(snapshot, autoscaling, setup.scheduler) if rows else ((), ())
        outcome = QueueOutcome.of(snapshot, setup, autoscalers) if is_queue else None
        kinds = {} if setup.scheduler.config.extenders else answer_keys(snapshot, rows)

        def item(row: int) -> _Item:
            pod, owner = snapshot.pods[row], owner_of(snapshot, snapshot.pods[row])
            alone = _Item(
                pod=pod.key,
                owner=owner,
                priority=int(snapshot.pods.priorities[row]),
                command=self.command(pod.metadata.namespace, owner, pod.metadata.name),
                explain=lambda: explain(stored_subject(snapshot, snapshot.pods[row]), setup, autoscalers),
                group_key=kinds.get(row),
            )
            state = pod_lifecycle(snapshot, pod) or down_scheduler(snapshot, pod, setup)
            if (
                state
                or lacking_group(snapshot, pod, setup)
                or snapshot.terminating_victims(pod)
                or depends_on_unread(snapshot, pod)
            ):
                return replace(alone, group_key=None)
            if outcome is None or not outcome.is_queued(pod.key):
                return alone
            preempts, place = outcome.preempts(pod.key), outcome.node(pod.key)
            if place and not preempts and (disputes := objection(snapshot, pod, setup, place)):
                return replace(alone, group_key=(kinds[row], disputes, "disputed") if row in kinds else None)
            return replace(
                alone,
                explain=lambda: replace(outcome.explanation(pod.key), autoscalers=autoscalers),
                node="" if preempts else place,
                taken=outcome.node_if_first,
                waits=outcome.message(pod.key),
                message=outcome.evicting_message(pod.key),
                group_key=(kinds[row], key)
                if row in kinds and (key := outcome.group_key(pod.key)) is not None
                else None,
            )

        items = [item(row) for row in rows]
        idle = idle_text(snapshot, within) if has_workloads and not rows else ""
        untried = [minutes for row in rows if (minutes := untried_minutes(snapshot, snapshot.pods[row]))]
        text = untried_text(f"{count(len(untried), 'pod')} of {len(rows):,}", max(untried)) if untried else ""
        return ExplanationList(
            items=[*items, *(self._without_created_pods(within) if has_workloads and not is_part else ())],
            snapshot=snapshot,
            evicted=() if outcome is None else outcome.evicted_pods,
            notes=(*filter(None, (text, idle)), *(note.text for note in unread)),
            growths=() if is_part else self._growths(autoscalers, outcome),
            shared_fix=None if outcome is None else outcome.shared_fix,
            jobs=self.jobs,
        )

    def _growths(self, autoscalers: tuple[NodeAutoscaler, ...], outcome: QueueOutcome | None) -> tuple[Growth, ...]:
        """Return what each autoscaler adds for all pending pods, of which those that preempt have nominated nodes."""
        snapshot, autoscaling = self.inquiry.clusters.read, self.inquiry.autoscaling
        if autoscalers and outcome is not None:
            preempting = (row for row in snapshot.pods.pending if outcome.preempts(snapshot.pods.key(row)))
            if nominated := {row: outcome.node(snapshot.pods.key(row)) for row in preempting}:
                snapshot = replace(snapshot, pods=snapshot.pods.with_nominations(nominated), _tables={})
                autoscalers, _ = autoscalers_of(snapshot, autoscaling, self.inquiry.setup.scheduler)
        return tuple(autoscaler.grow() for autoscaler in autoscalers)

    def _alone(self, target: PodInQuestion) -> tuple[_Item, ...]:
        """Return the items as if each came next, without the requests of the others; a DaemonSet's pods are each on
        their own node."""
        if (stopped := self._stopped_item(target)) is not None:
            return (stopped,)
        try:
            subject = self.inquiry.admit(target, self.inquiry.clusters.applied)
        except (NotAdmittedError, NotReadError) as error:
            return (self._refused_item(target, error),)
        if target.is_daemon:
            return tuple(self._daemon_set_items(subject, target))
        return (self._item(subject.snapshot, subject.pod, target, partial(explain, subject, self.inquiry.setup)),)

    def _daemon_set_items(self, subject: Subject, target: PodInQuestion) -> Iterator[_Item]:
        """Yield the DaemonSet's pods that fit, and those that do not for each reason; nodes without such a pod are left
        out."""
        answer = explain_daemon_set(target.workload_name, subject, self.inquiry.setup)
        whole = self._item(subject.snapshot, subject.pod, target, lambda: answer.explanation)
        if answer.refused:
            yield self._refused_replicas(target, whole, (whole.pod,) * answer.refused, answer.refusal)
        if runs := answer.runs[: max(len(answer.runs) - answer.refused, 0)]:  # any of them
            fit = tuple(_Replica(pod=whole.pod, node=node) for node in runs)
            yield replace(whole, replicas=fit, workload=answer.name)
        for group in answer.waits:
            nodes = answer.names(group)
            waiting = tuple(_Replica(pod=whole.pod) for _ in nodes)
            yield replace(whole, replicas=waiting, workload=answer.name, explain=partial(answer.answer_on, nodes[0]))
        for stuck in (*answer.unable.values(), *answer.by_blocker.values(), answer.disputed):
            if not stuck:
                continue
            waiting = tuple(_Replica(pod=whole.pod) for _ in stuck)
            yield replace(whole, replicas=waiting, workload=answer.name, explain=partial(answer.answer_on, stuck[0]))
        if not (answer.runs or answer.waits or answer.unable or answer.blocked_deletions or answer.disputed):
            yield whole

    def _explain_queue(self, targets: Sequence[PodInQuestion], queue: Sequence[PodInQuestion]) -> ExplanationList:
        """Schedule the pods one after the other, in the order of the queue; pods that belong to no queue are evaluated
        alone."""
        clusters, setup = self.inquiry.clusters, self.inquiry.setup
        questions = ManifestQuestions(clusters.before, clusters.applied, setup)
        replicas: dict[int, ReplicaGroup] = {}
        items: dict[int, tuple[_Item, ...]] = {}
        numbers = {id(target): number for number, target in enumerate(targets)}
        for target in queue:
            if (number := numbers.get(id(target))) is None:
                gather_other(questions, setup, target)
                continue
            if target.stored is not None and target.stored.spec.node_name:
                items[number] = self._alone(target)
                continue
            if (stopped := self._stopped_item(target)) is not None:
                items[number] = (stopped,)
                continue
            try:
                group = gather(questions, self.inquiry.admit(target, questions.snapshot), target)
            except (NotAdmittedError, NotReadError) as error:
                items[number] = (self._refused_item(target, error, questions.snapshot),)
                continue
            if isinstance(group, BoundPods):
                items[number] = (self._bound_item(group, target),)
            else:
                replicas[number] = group
        together = questions.place()
        for number, group in replicas.items():
            state = together.state(group)
            is_empty = not state.pods and not state.kept and not state.refused  # a DaemonSet without an eligible node
            key, target = group.pod.key, targets[number]
            if is_empty or (
                not together.preempts(key) and self.inquiry.is_disputed(target, together.nodes(group).get(key))
            ):
                items[number] = self._alone(target)
            else:
                items[number] = tuple(self._group_items(together, group, target))
        return ExplanationList(
            items=[item for number in range(len(targets)) for item in items[number]],
            evicted=together.evicted_pods,
            snapshot=clusters.read,
            shared_fix=together.shared_fix,
            jobs=self.jobs,
        )

    def _group_items(self, together: GroupOutcomes, group: ReplicaGroup, target: PodInQuestion) -> Iterator[_Item]:
        """Yield the group's pods, and the replicas that no controller can create."""
        item = self._item(self.inquiry.clusters.applied, group.pod, target, partial(together.explain, group))
        item = replace(item, open_count=group.undecided)
        disputed = together.disputed(group) if target.is_daemon else together.unstarted(group)
        nodes = {
            pod: "" if together.preempts(pod) or pod in disputed else node
            for pod, node in together.nodes(group).items()
        }
        replicas = tuple(_Replica(pod=pod, node=node) for pod, node in nodes.items())
        state = together.state(group)
        if target.is_daemon and group.workload is not None:
            name, answer = group.workload.key, together.blocked_deletions(group)
            blocked = {} if answer is None else answer.blocked_deletions
            if placed := tuple(replica for replica in replicas if replica.node and replica.node not in blocked):
                yield replace(item, replicas=placed, workload=name)
            if answer is not None:
                for stuck in answer.by_blocker.values():
                    deleted = tuple(replace(replica, node="") for replica in replicas if replica.node in stuck)
                    yield replace(item, replicas=deleted, workload=name, explain=partial(answer.answer_on, stuck[0]))
            if unstarted := tuple(replica for replica in replicas if replica.pod in disputed):
                story = partial(together.explain_disputed, group)
                yield replace(item, replicas=unstarted, workload=name, explain=story)
            for pods in together.pending_groups(group):
                waiting = tuple(replica for replica in replicas if replica.pod in pods)
                story = partial(together.explanation, pods[0])
                yield replace(item, replicas=waiting, workload=name, explain=story, taken=together.node_if_first)
        elif nodes:
            if together.decides(group) or len(nodes) > 1:
                is_workload = group.workload is not None and len(state.pods) > 1
                name = group.workload.reference if group.workload is not None and is_workload else ""
                item = replace(item, replicas=replicas, workload=name, taken=together.node_if_first)
            yield item
        if state.refused and target.stored is None:
            yield self._refused_replicas(target, item, state.refused, state.refusal, together.after)

    def _item(self, snapshot: Snapshot, pod: Pod, target: PodInQuestion, explain: Callable[[], Explanation]) -> _Item:
        workload = target.workload
        owner = owner_of(snapshot, pod) if workload is None else title(workload)
        if target.is_one_of_several:
            owner = ""
        explained = title(workload) if workload is not None and target.document is None else owner
        name = "" if explained and workload else pod.metadata.name
        return _Item(
            pod=pod.key,
            owner=owner,
            priority=pod.spec.priority or 0,
            command=self.command(pod.metadata.namespace, explained, name),
            explain=explain,
            place=target.place,
        )

    def _bound_item(self, bound: BoundPods, target: PodInQuestion) -> _Item:
        """Return pods whose manifest names their node, with each replica."""
        item = self._item(bound.subject.snapshot, bound.subject.pod, target, lambda: bound.explanation)
        if (own := bound.explanation.replicas) is None:
            return item
        nodes = {**own.placed, **dict.fromkeys(own.pending, "")}.items()
        return replace(item, replicas=tuple(_Replica(pod=pod, node=node) for pod, node in nodes), workload=own.workload)

    def _stopped_item(self, target: PodInQuestion) -> _Item | None:
        """Return a workload that creates no pods; None for any other."""
        if not self.inquiry.is_stopped(target):
            return None
        return self._without_pods(target, partial(self.inquiry.answer, target, [target]))

    def _refused_item(
        self, target: PodInQuestion, error: NotAdmittedError | NotReadError, before: Snapshot | None = None
    ) -> _Item:
        """`before` is the cluster with the pods that come first, which quotas count too."""
        if target.stored is not None:  # it is in the cluster, so it is not admitted again
            raise error
        inquiry = self.inquiry if before is None else self._inquiry_in(before)
        return self._without_pods(target, partial(inquiry.refused, target, error))

    def _inquiry_in(self, cluster: Snapshot) -> Inquiry:
        return replace(self.inquiry, clusters=replace(self.inquiry.clusters, before=cluster, applied=cluster))

    def _without_pods(
        self, target: PodInQuestion, explain: Callable[[], Explanation], snapshot: Snapshot | None = None
    ) -> _Item:
        """Return a workload whose pods the API server refuses: the desired pods that are not in the cluster."""
        named = map_at(target.manifest, "metadata")
        namespace = str(named.get("namespace") or "default")
        name = str(named.get("name") or named.get("generateName") or "")
        workload = target.workload
        owner = "" if workload is None else title(workload)
        count = 1
        if target.count is not None and not self.inquiry.is_alone:
            count = target.count.number or 1
        elif workload is not None and has_replicas(workload) and not self.inquiry.is_alone:
            there = [] if snapshot is None else member_rows(snapshot, workload_of(workload))
            count = max(wanted_replicas(workload) - len(there), 1)
        return _Item(
            pod=f"{namespace}/{name}",
            owner=owner,
            priority=0,
            command=self.command(namespace, owner, "" if owner else name),
            explain=explain,
            place=target.place,
            workload=workload_of(workload).reference if workload is not None and count > 1 else "",
            replicas=(_Replica(pod=f"{namespace}/{name}"),) * count if count > 1 else (),
        )

    def _refused_replicas(
        self, target: PodInQuestion, others: _Item, pods: Sequence[str], refusal: str, after: Snapshot | None = None
    ) -> _Item:
        """Return the replicas of a workload that no controller can create, whatever the answer about the others.
        `after` is the cluster with the others."""
        inquiry = self.inquiry if after is None else self._inquiry_in(after)
        explain = partial(inquiry.refused, target, NotAdmittedError(refusal), len(pods))
        replicas = tuple(_Replica(pod=pod) for pod in pods)
        return replace(others, pod=pods[0], explain=explain, replicas=replicas, taken=None)

    def _without_created_pods(self, within: str | None) -> Iterator[_Item]:
        """Yield workloads whose missing pods are not created: refused, or held in a queue."""
        inquiry, snapshot = self.inquiry, self.inquiry.clusters.read
        explanations = workloads_without_pods(
            snapshot, inquiry.setup, within, queued=True, autoscaling=inquiry.autoscaling
        )
        for target, explanation in explanations:
            is_whole = isinstance(explanation.lifecycle, WaitingForOldPods)  # all of its pods are old ones
            yield self._without_pods(target, partial(_same, explanation), None if is_whole else snapshot)
        for target, owner, number in held_custom_resources(snapshot, within):
            item = self._without_pods(target, partial(inquiry.answer, target, [target]))
            command = self.command(item.pod.partition("/")[0], owner, "")
            yield replace(item, owner=owner, command=command, replicas=(_Replica(pod=item.pod),) * number)


def _same(explanation: Explanation) -> Explanation:
    return explanation
