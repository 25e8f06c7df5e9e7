"""`kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kschedx.cli import connection
from kschedx.cli.options import namespace_of_many
from kschedx.cli.output import Answer, ExitCode, Format, Report
from kschedx.cli.question import Question, shard_of
from kschedx.cli.why_pod import Wanted, inquiry_of, place_of, subject_of, typed_change
from kschedx.controllers.pod_lifecycle import pod_lifecycle, scheduler_down
from kschedx.controllers.workloads import Owners, has_replicas, wanted_replicas, workload_of
from kschedx.errors import ConfigError, InputError, NotAdmittedError, NotReadError, Place, UndecidableError
from kschedx.explain.causes import (
    CauseGroup,
    PodAnswer,
    Taken,
    alike,
    cause_of,
    decisive,
    groups,
    owner_of,
    rows_in_queue_order,
)
from kschedx.explain.cycle_notes import bound_by_hand
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.missing_kinds import depends_on_unread
from kschedx.explain.setup import Setup
from kschedx.explain.subject import stored
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.ask import Clusters, Inquiry, gather, gather_beside
from kschedx.inquiry.explanation import Explanation, terminating_victims
from kschedx.inquiry.manifests import Written, title
from kschedx.inquiry.target import held_custom_resources
from kschedx.kube.documents import API_VERSION, to_json
from kschedx.kube.escaping import about_cluster, shell_command
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.selectors import parse_label_query
from kschedx.kube.types import Pod
from kschedx.kube.workloads import SHORT_NAMES
from kschedx.progress import Phase, counted
from kschedx.render.fixes import group_fix, mended_fix
from kschedx.render.holding import gang_cause, held_by_kueue, scheduler_report
from kschedx.render.lifecycle import causes, own_event
from kschedx.render.pending import PodAnswers, evicted_note, pending_lines, wanted_labels
from kschedx.render.states import BeingDeleted, Lifecycle, Refused, WaitingForKubelet
from kschedx.render.states import headline as headline_of_state
from kschedx.render.words.causes import shared_headlines
from kschedx.render.words.pod import could_reject
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.cli.connection import Reached
    from kschedx.explain.subject import Subject
    from kschedx.inquiry.autoscalers import NodeAutoscaler
    from kschedx.inquiry.pending_pods import SharedFix
    from kschedx.inquiry.workload_pods import BoundPods, ReplicaGroup, Together
    from kschedx.render.checks import Check
    from kschedx.render.page.model import Page
    from kschedx.render.view import Fix


class Replica(Struct, frozen=True, kw_only=True):
    """One of several identical pods."""

    pod: str
    """`namespace/name`."""
    node: str = ""
    """Empty if it is unschedulable."""
    taken: Taken | None = None
    """The place that it would have alone."""


class Item(Struct, frozen=True, kw_only=True):
    """One of the pods or workloads in question."""

    pod: str
    """`namespace/name`."""
    owner: str
    """`Deployment web`."""
    priority: int
    command: str
    """The command for the complete answer."""
    explain: Callable[[], Explanation]
    place: Place = Place()
    node: str = ""
    """The pod's node, if it is known without a full explanation."""
    taken: Taken | None = None
    """The place that it would have alone."""
    waits: str = ""
    """kube-scheduler's message about a pod that is pending after the whole queue, though it may fit by itself then."""
    workload: str = ""
    """`shop/deploy/web`, for a workload with replicas."""
    replicas: tuple[Replica, ...] = ()
    """Each replica; `explain` explains the most informative one."""
    open_count: str = ""
    """Why there may be more such pods, or pods with larger requests."""
    likeness: Hashable = None
    """Equal for pods with the same explanation, apart from names and amounts; None for a pod without equals."""
    message: str = ""
    """kube-scheduler's message, if that of an equal pod may have other numbers."""


def command_of(wanted: Wanted, namespace: str, owner: str, name: str) -> str:
    """Return the command that explains a pod or, if it has no name, its workload, with the same cluster and files."""
    kind, _, of = owner.partition(" ")
    short = next((short for short, known in SHORT_NAMES.items() if known == kind), kind.lower())
    target = f"{short}/{of}" if not name or (wanted.files and short) else f"pod/{name}"
    pattern = "kschedx why {} -n {}" + " -f {}" * len(wanted.files) + " -s {}" * len(wanted.snapshot)
    command = shell_command(pattern, target, namespace, *map(Path, (*wanted.files, *wanted.snapshot)))
    return command if wanted.snapshot else about_cluster(command)


MOST_OF_SAMPLE = 20
"""Causes of a sample. A document of thousands of nodes that is cut to what an assistant reads has room for fewer."""


def _listed(entries: Iterator[tuple[str, object]]) -> dict[str, object]:
    return {key: [*value] if isinstance(value, Iterator) else value for key, value in entries}


class ManyPods(Struct, dict=True):
    """The pods in question, explained with the same settings."""

    items: Sequence[Item]
    jobs: int | None = None
    """How many processes may share the work, by default one per processor."""
    competing: bool = False
    """Whether the pods are new, and compete for the same resources."""
    notes: Sequence[str] = ()
    """About all pods."""
    nothing: str = ""
    """The text if there are no pods."""
    snapshot: Snapshot | None = None
    shared_fix: Callable[[Sequence[str]], SharedFix | None] | None = None
    """Tries a fix for several pending pods, one after the other."""

    def look(self, index: int) -> tuple[PodAnswer, Explanation | None]:
        """Return the answer about one pod in short and its explanation; undecided and refused pods have answers too."""
        from kschedx.render.screen import nominated_text

        item = self.items[index]
        undecided = self._undecided(item)
        try:
            explanation = item.explain()
        except UndecidableError as error:
            return replace(undecided, message=str(error)), None
        except ConfigError as error:
            # The scheduler's name is a separate key, so the text is equal for all of its pods.
            config_error = type(error)(error.message, place=Place(field=error.place.field), hint=error.hint)
            return replace(undecided, message=str(config_error)), None
        except NotAdmittedError as error:
            said = f"{error.message} ({error.hint})" if error.hint else error.message
            return replace(undecided, outcome=Outcome.UNSCHEDULABLE, message=said, state="Refused"), None
        if explanation.lifecycle is not None:
            return self._of_lifecycle(undecided, explanation, explanation.lifecycle), explanation
        if (bound := bound_by_hand(explanation.cycle)) is not None:
            nodes = (bound.node,) if bound.is_taken else ()
            return replace(undecided, outcome=explanation.becomes, nodes=nodes, message=bound.text), explanation
        if item.open_count and explanation.overall is Outcome.UNDECIDED:
            return replace(undecided, message=item.open_count), explanation
        if explanation.outcome is Outcome.SCHEDULED and (explanation.overall is not Outcome.SCHEDULED or item.waits):
            return self._of_gang(item, explanation), explanation
        message = "" if explanation.outcome is Outcome.GATED else explanation.message
        if explanation.outcome is Outcome.UNDECIDED:
            message = could_reject(explanation.cycle.unevaluated) + scheduler_report(explanation.holding)
        answer = replace(undecided, outcome=explanation.outcome, nodes=explanation.chosen_nodes, message=message)
        if explanation.state.name == "Nominated":
            waits = (nominated_text(explanation),)
            return replace(
                answer, state=explanation.state.name, cause=(explanation.state.name, *waits), headlines=waits
            ), explanation
        held = explanation.holding
        if explanation.outcome is Outcome.GATED and held.kueue is not None and held.kueue.is_gated and not held.gates:
            reads = held_by_kueue(held.kueue).removeprefix("is ")
            is_shared = bool(held.kueue.group) or len(item.replicas) > 1  # one Workload, so that one fix serves all
            state = explanation.state.name if is_shared else ""
            return replace(answer, state=state, cause=("kueue", reads), headlines=(reads,)), explanation
        if explanation.outcome in (Outcome.UNSCHEDULABLE, Outcome.GATED):
            diagnosis = Diagnosis(explanation.cycle)
            reasons = decisive(diagnosis)
            answer = replace(
                answer,
                cause=cause_of(diagnosis),
                headlines=shared_headlines(diagnosis),
                reasons=tuple(dict.fromkeys(finding.reason for finding in reasons)),
                wants=wanted_labels(reasons[:1]),
            )
        return answer, explanation

    def _of_lifecycle(self, undecided: PodAnswer, explanation: Explanation, lifecycle: Lifecycle) -> PodAnswer:
        """Return the answer about a pod that kube-scheduler does not decide."""
        if isinstance(lifecycle, Refused):
            said = f"{lifecycle.message} ({lifecycle.hint})" if lifecycle.hint else lifecycle.message
            return replace(undecided, outcome=explanation.overall, message=said, state=explanation.state.name)
        reads = headline_of_state(replace(lifecycle, subject="")).lstrip(": ").removeprefix("is ")
        why = next(causes(lifecycle), "")
        node = lifecycle.node if isinstance(lifecycle, WaitingForKubelet) else ""
        event = own_event(lifecycle) if explanation.overall is Outcome.UNDECIDED else ""
        return replace(
            undecided,
            outcome=explanation.overall,
            nodes=(node,) if node else (),
            message=f"{why}; the event: {event}" if why and event else event or why,
            cause=(explanation.state.name, reads),
            headlines=(reads,),
            state=explanation.state.name,
        )

    def _of_gang(self, item: Item, explanation: Explanation) -> PodAnswer:
        """Return the answer about a pod that fits alone, but not with its group."""
        group = explanation.holding.group
        named = group.name if group is not None else explanation.cycle.pod.metadata.labels.get(POD_GROUP_LABEL, "")
        headline = f"fits alone, but not with its group {named}"
        if group is not None and group.lacks_room:
            headline = gang_cause(group)
        message = item.waits or (explanation.message if group is None else group.message)
        undecided = replace(self._undecided(item), outcome=Outcome.UNSCHEDULABLE, taken=None, message=message)
        undecided = replace(undecided, state="WaitingForGang")
        return replace(undecided, cause=("group", named), headlines=(headline,))

    def answer(self, index: int) -> tuple[PodAnswer, ...]:
        """Return the answers about one item, one for each of its pods."""
        item = self.items[index]
        is_placed = bool(item.replicas) and all(replica.node for replica in item.replicas)
        if is_placed and item.open_count:
            story = replace(self._undecided(item), message=item.open_count)
            return tuple(replace(story, pod=replica.pod) for replica in item.replicas)
        if item.node or is_placed:
            return self._each(item, replace(self._undecided(item), outcome=Outcome.SCHEDULED, nodes=(item.node,)))
        return self._each(item, self.look(index)[0])

    def _each(self, item: Item, story: PodAnswer) -> tuple[PodAnswer, ...]:
        """Return an answer for each replica; `story` is that of every replica without a node."""
        if not item.replicas:
            return (story,)
        placed = replace(self._undecided(item), outcome=Outcome.SCHEDULED, taken=None)
        return tuple(
            replace(placed, pod=replica.pod, nodes=(replica.node,))
            if replica.node
            else replace(story, pod=replica.pod, taken=replica.taken)
            for replica in item.replicas
        )

    def _undecided(self, item: Item) -> PodAnswer:
        return PodAnswer(
            pod=item.pod,
            owner=item.owner,
            priority=item.priority,
            outcome=None,
            command=item.command,
            taken=item.taken,
        )

    @property
    def answers(self) -> list[PodAnswer]:
        """The answers about every pod, in order."""
        return [answer for answers in self._answers for answer in answers]

    @cached_property
    def _answers(self) -> list[tuple[PodAnswer, ...]]:
        """The answers in the order of the items, computed in several processes if there are many."""
        from kschedx.cli.parallel import processors, results

        if not self.items:
            return []
        likes = [index if item.likeness is None else (item.likeness,) for index, item in enumerate(self.items)]
        first = {likeness: index for index, likeness in reversed([*enumerate(likes)])}
        rows = sorted(first.values())
        answers_by_row = {0: self.answer(0)}  # what all pods share is computed once, before processes are forked
        pods = Counter(likes)
        answers = zip(rows[1:], results(self.answer, rows[1:], self.jobs or processors()), strict=True)
        total = len(self.items) - pods[likes[0]]
        answers_by_row |= dict(
            counted(answers, Phase.DECIDING, total, "pods", weight=lambda item: pods[likes[item[0]]])
        )
        return [
            answers_by_row[index] if index in answers_by_row else (_alike(item, answers_by_row[first[likeness]][0]),)
            for index, (item, likeness) in enumerate(zip(self.items, likes, strict=True))
        ]

    def explanation(self, pod: str) -> Explanation:
        """Return the explanation of one of the pods. Raises `KschedxError` if it cannot be explained."""
        index = next(
            index for index, answers in enumerate(self._answers) if any(answer.pod == pod for answer in answers)
        )
        return self.items[index].explain()

    def document(self) -> dict[str, object]:
        return _listed(self.entries())

    def sample(self) -> tuple[dict[str, object], int]:
        """Return the document with the first pod of each of the largest causes, and the number of pods."""
        firsts = {group.first.pod for group in groups(self.answers)[:MOST_OF_SAMPLE]}
        indexes = [index for index, own in enumerate(self._answers) if any(answer.pod in firsts for answer in own)]
        return _listed(self.entries(indexes)), len(self.items)

    def entries(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[str, object]]:
        """Yield the keys and values of one document with every Explanation, and the undecided and refused pods; only of
        the items with `indexes` if those are given. Each entry is computed when it is requested."""
        undecided: list[object] = []
        refused: list[object] = []
        answers: list[tuple[PodAnswer, ...]] = []

        def items() -> Iterator[object]:
            for index in range(len(self.items)) if indexes is None else indexes:
                item = self.items[index]
                answer, explanation = self.look(index)
                answers.append(self._each(item, answer))
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
            self._answers = answers
        yield "undecided", undecided
        if refused:
            yield "refused", refused

    def _fix_of(self, group: CauseGroup) -> Fix | None:
        """Return a fix of the first pod of a group, with its certainty and the number of pods that it helps; None if
        none is known."""
        if group.first.outcome not in (Outcome.UNSCHEDULABLE, Outcome.GATED) and not group.first.state:
            return None
        if self.shared_fix is not None and len(group.answers) > 1 and group.first.outcome is Outcome.UNSCHEDULABLE:
            shared = self.shared_fix([answer.pod for answer in group.answers])
            if shared is not None:
                return mended_fix(shared)
        index = next(index for index, answers in enumerate(self._answers) if group.first in answers)
        _, explanation = self.look(index)
        fix = next(explanation.each_fix(), None) if explanation is not None else None
        for_one = len(group.answers) > 1 and not group.first.state
        return None if fix is None else group_fix(fix, for_one=for_one)

    @cached_property
    def _shown(self) -> PodAnswers:
        fixes: dict[int, Fix | None] = {}

        def fix_of(group: CauseGroup) -> Fix | None:
            if id(group.first) not in fixes:
                fixes[id(group.first)] = self._fix_of(group)
            return fixes[id(group.first)]

        return PodAnswers(
            answers=self.answers,
            fix_of=fix_of,
            notes=self.notes,
            nothing=self.nothing,
            competing=self.competing,
            nodes=() if self.snapshot is None else self.snapshot.cluster.names,
        )

    def report(self) -> Report:
        def names() -> list[str]:
            return [
                f"{answer.pod} {' '.join(f'node/{name}' for name in answer.nodes)}".rstrip() for answer in self.answers
            ]

        def checks() -> list[Check]:
            from kschedx.cli.checks import of_answers

            pairs = zip(self._answers, self.items, strict=True)
            return [of_answers(answers, item.workload, item.place) for answers, item in pairs]

        def page(_: bool) -> Page:
            from kschedx.render.page.reports import pending_page

            return pending_page(self._shown, self.snapshot)

        return Report(
            screen=lambda width, wide: pending_lines(self._shown, width=width, wide=wide),
            document=self.document,
            entries=self.entries,
            sample=self.sample,
            names=names,
            checks=checks,
            page=page,
        )

    @property
    def exit_code(self) -> ExitCode:
        """0 if every pod is schedulable, 3 if one cannot be decided, else 1."""
        open_counts = {item.open_count for item in self.items if item.open_count}
        undecided = [answer for answer in self.answers if answer.outcome in (None, Outcome.UNDECIDED)]
        is_sure = any(answer.outcome is Outcome.UNSCHEDULABLE for answer in self.answers)
        if undecided and not (is_sure and all(answer.message in open_counts for answer in undecided)):
            return ExitCode.UNDECIDED
        fits = all(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE


def _alike(item: Item, story: PodAnswer) -> PodAnswer:
    """Return the answer about an identical pod as the answer about this one, on its own node."""
    own = {name: getattr(item, name) for name in ("pod", "owner", "priority", "command")}
    nodes, message = (item.node,) if item.node else story.nodes, item.message or story.message
    return replace(story, **own, nodes=nodes, message=message)


# `kschedx why` for several pods and workloads that are named or in files.


def why_several(
    question: Question,
    wanted: Wanted,
    clusters: Clusters,
    setup: Setup,
    pods_in_question: Sequence[Pod | Written],
    queue: Sequence[Pod | Written],
) -> Answer:
    """Explain every pod of some manifests, with all replicas, by cause. `queue` are these pods and the others in the
    files, in order."""
    for name, value in {"watch": wanted.watch, "fix": wanted.fix, "try": wanted.tries}.items():
        if value:
            raise InputError(f"--{name} needs one pod, and there are several")
    connection.tell_left_out(setup)
    inquiry = inquiry_of(question, wanted, clusters, setup)
    if wanted.alone:
        items = [item for pod in pods_in_question for item in _alone(question, wanted, inquiry, pod)]
        pods = ManyPods(
            items, competing=any(not isinstance(pod, Pod) for pod in pods_in_question), snapshot=clusters.read
        )
    else:
        pods = _together(question, wanted, inquiry, pods_in_question, queue)
    return Answer(pods.report(), pods.exit_code)


def _alone(question: Question, wanted: Wanted, inquiry: Inquiry, pod: Pod | Written) -> tuple[Item, ...]:
    """Return the items as if each came next, without the requests of the others; a DaemonSet's pods are each on their
    own node."""
    from kschedx.inquiry.pod import explain

    snapshot, setup = inquiry.clusters.applied, inquiry.setup
    if (stopped := _stopped(question, wanted, inquiry, pod)) is not None:
        return (stopped,)
    try:
        subject = subject_of(question, snapshot, setup, pod, wanted)
    except (NotAdmittedError, NotReadError) as error:
        return (_refused(wanted, inquiry, pod, error),)
    if isinstance(pod, Written) and pod.is_daemon:
        return tuple(_of_daemon_set(wanted, inquiry, subject, pod))
    return (_item(wanted, subject.snapshot, subject.pod, pod, partial(explain, subject, setup)),)


def _of_daemon_set(wanted: Wanted, inquiry: Inquiry, subject: Subject, written_pod: Written) -> Iterator[Item]:
    """Yield the DaemonSet's pods that fit, and those that do not for each reason; nodes without such a pod are left
    out."""
    from kschedx.inquiry.daemon_set import explain_daemon_set

    name = f"{subject.pod.metadata.namespace}/{title(written_pod.workload or {}).partition(' ')[2]}"
    answer = explain_daemon_set(name, subject, inquiry.setup)
    whole = _item(wanted, subject.snapshot, subject.pod, written_pod, lambda: answer.explanation)
    if answer.refused:
        yield _refused_replicas(inquiry, written_pod, whole, (whole.pod,) * answer.refused, answer.refusal)
    if runs := answer.runs[: max(len(answer.runs) - answer.refused, 0)]:  # any of them
        fit = tuple(Replica(pod=whole.pod, node=node) for node in runs)
        yield replace(whole, replicas=fit, workload=name)
    for group in answer.waits:
        nodes = answer.names(group)
        waiting = tuple(Replica(pod=whole.pod) for _ in nodes)
        yield replace(whole, replicas=waiting, workload=name, explain=partial(answer.on, nodes[0]))
    if not answer.runs and not answer.waits:
        yield whole


def _together(
    question: Question,
    wanted: Wanted,
    inquiry: Inquiry,
    pods: Sequence[Pod | Written],
    queue: Sequence[Pod | Written],
) -> ManyPods:
    """Schedule the pods one after the other, in the order of the queue; pods that belong to no queue are evaluated
    alone."""
    from kschedx.inquiry.workload_pods import BoundPods, ManifestQuestions

    clusters, setup = inquiry.clusters, inquiry.setup
    gathering = ManifestQuestions(clusters.before, clusters.applied, setup)
    replicas: dict[int, ReplicaGroup] = {}
    items: dict[int, tuple[Item, ...]] = {}
    numbers = {id(pod): number for number, pod in enumerate(pods)}
    for pod in queue:
        if (number := numbers.get(id(pod))) is None:
            gather_beside(gathering, setup, pod)
            continue
        if isinstance(pod, Pod) and pod.spec.node_name:
            items[number] = _alone(question, wanted, inquiry, pod)
            continue
        if (stopped := _stopped(question, wanted, inquiry, pod)) is not None:
            items[number] = (stopped,)
            continue
        try:
            taken = gather(gathering, subject_of(question, gathering.snapshot, setup, pod, wanted), pod)
        except (NotAdmittedError, NotReadError) as error:
            items[number] = (_refused(wanted, inquiry, pod, error),)
            continue
        if isinstance(taken, BoundPods):
            items[number] = (_of_bound(wanted, taken, pod),)
        else:
            replicas[number] = taken
    together = gathering.place()
    for number, group in replicas.items():
        state = together.state(group)
        is_empty = not state.pods and not state.kept and not state.refused  # a DaemonSet without an eligible node
        key = group.pod.key
        if is_empty or (
            not together.preempts(key) and inquiry.is_disputed(pods[number], together.nodes(group).get(key))
        ):
            items[number] = _alone(question, wanted, inquiry, pods[number])
        else:
            items[number] = tuple(_of_group(wanted, inquiry, together, group, pods[number]))
    return ManyPods(
        [item for number in range(len(pods)) for item in items[number]],
        notes=evicted_note(together.evicted),
        snapshot=clusters.read,
        shared_fix=together.mended,
    )


def _same(explanation: Explanation) -> Explanation:
    return explanation


def _of_group(
    wanted: Wanted, inquiry: Inquiry, together: Together, group: ReplicaGroup, target: Pod | Written
) -> Iterator[Item]:
    """Yield the group's pods, and the replicas that no controller can create."""
    item = _item(wanted, inquiry.clusters.applied, group.pod, target, partial(together.explain, group))
    item = replace(item, open_count=group.undecided)
    nodes = {pod: "" if together.preempts(pod) else node for pod, node in together.nodes(group).items()}
    replicas = tuple(
        Replica(pod=pod, node=node, taken=None if node else together.taken(pod)) for pod, node in nodes.items()
    )
    refused = together.refused(group)
    if isinstance(target, Written) and target.is_daemon and group.workload is not None:
        name = group.workload.key
        if placed := tuple(replica for replica in replicas if replica.node):
            yield replace(item, replicas=placed, workload=name)
        for pods in together.waiting(group):
            waiting = tuple(replica for replica in replicas if replica.pod in pods)
            yield replace(item, replicas=waiting, workload=name, explain=partial(together.story, pods[0]))
    elif nodes:
        if together.is_queued(group) or len(nodes) > 1:
            name = (
                group.workload.reference if group.workload is not None and len(together.state(group).pods) > 1 else ""
            )
            item = replace(item, replicas=replicas, workload=name)
        yield item
    if refused and isinstance(target, Written):
        yield _refused_replicas(inquiry, target, item, refused, together.refusal(group))


def _item(
    wanted: Wanted, snapshot: Snapshot, pod: Pod, subject_pod: Pod | Written, explain: Callable[[], Explanation]
) -> Item:
    workload = subject_pod.workload if isinstance(subject_pod, Written) else None
    owner = owner_of(snapshot, pod) if workload is None else title(workload)
    if isinstance(subject_pod, Written) and subject_pod.is_one_of_several:
        owner = ""
    is_stored = isinstance(subject_pod, Written) and subject_pod.document is None
    target = title(workload) if workload is not None and is_stored else owner
    return Item(
        pod=pod.key,
        owner=owner,
        priority=pod.spec.priority or 0,
        command=command_of(wanted, pod.metadata.namespace, target, "" if target and workload else pod.metadata.name),
        explain=explain,
        place=place_of(subject_pod),
    )


def _of_bound(wanted: Wanted, bound: BoundPods, target: Pod | Written) -> Item:
    """Return pods whose manifest names their node, with each replica."""
    item = _item(wanted, bound.subject.snapshot, bound.subject.pod, target, lambda: bound.explanation)
    if (own := bound.explanation.replicas) is None:
        return item
    nodes = {**own.placed, **dict.fromkeys(own.pending, "")}.items()
    return replace(item, replicas=tuple(Replica(pod=pod, node=node) for pod, node in nodes), workload=own.workload)


def _stopped(question: Question, wanted: Wanted, inquiry: Inquiry, pod: Pod | Written) -> Item | None:
    """Return a workload that creates no pods; None for any other."""
    if isinstance(pod, Pod) or not inquiry.is_stopped(pod):
        return None
    setup = inquiry.setup
    return _without_pods(
        wanted, pod, lambda: inquiry.answer(pod, lambda at: subject_of(question, at, setup, pod, wanted), [pod])
    )


def _refused(wanted: Wanted, inquiry: Inquiry, pod: Pod | Written, error: NotAdmittedError | NotReadError) -> Item:
    if isinstance(pod, Pod):  # it is in the cluster, so it is not admitted again
        raise error
    return _without_pods(wanted, pod, partial(inquiry.refused, pod, error))


def _without_pods(
    wanted: Wanted, written_pod: Written, explain: Callable[[], Explanation], snapshot: Snapshot | None = None
) -> Item:
    """Return a workload whose pods the API server refuses: the desired pods that are not in the cluster."""
    metadata = written_pod.manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    namespace = str(named.get("namespace") or "default")
    name = str(named.get("name") or named.get("generateName") or "")
    workload = written_pod.workload
    owner = "" if workload is None else title(workload)
    count = 1
    if workload is not None and has_replicas(workload) and not wanted.alone:
        there = [] if snapshot is None else Owners(snapshot).members(snapshot.pods, workload_of(workload))
        count = max(wanted_replicas(workload) - len(there), 1)
    return Item(
        pod=f"{namespace}/{name}",
        owner=owner,
        priority=0,
        command=command_of(wanted, namespace, owner, "" if owner else name),
        explain=explain,
        place=place_of(written_pod),
        workload=workload_of(workload).reference if workload is not None and count > 1 else "",
        replicas=(Replica(pod=f"{namespace}/{name}"),) * count if count > 1 else (),
    )


def _refused_replicas(inquiry: Inquiry, written_pod: Written, others: Item, pods: Sequence[str], refusal: str) -> Item:
    """Return the replicas of a workload that no controller can create, whatever the answer about the others."""
    explain = partial(inquiry.refused, written_pod, NotAdmittedError(refusal), len(pods))
    return replace(others, pod=pods[0], explain=explain, replicas=tuple(Replica(pod=pod) for pod in pods))


# `kschedx why` for many pods of the cluster: pending pods, and pods with certain labels.


def why_pods_of_cluster(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> Answer | int:
    """Explain the pods with a row for each cause, or with every document."""
    from kschedx.inquiry.autoscalers import autoscalers_of
    from kschedx.inquiry.pod import explain, lacking_group, objection
    from kschedx.inquiry.workload_pods import QueueOutcome

    snapshot = reached.snapshot
    rows = _rows(question, wanted, reached, setup)
    connection.tell(snapshot, setup)
    part = shard_of(wanted.shard, is_json=wanted.output is Format.JSON)
    rows = rows if part is None else list(part.part(rows))
    if wanted.interactive:
        from kschedx.cli.interactive import show_undecided

        show_undecided(snapshot, rows)
    waits = not wanted.alone and bool(snapshot.cluster.nodes) and not {*snapshot.pods.pending}.isdisjoint(rows)
    autoscalers, unread = autoscalers_of(snapshot, question.autoscaling, setup.scheduler) if rows else ((), ())
    in_turn = QueueOutcome.of(snapshot, setup, autoscalers) if waits else None
    kinds = {} if setup.scheduler.config.extenders else alike(snapshot, rows)

    def item(row: int) -> Item:
        pod, owner = snapshot.pods[row], owner_of(snapshot, snapshot.pods[row])
        alone = Item(
            pod=pod.key,
            owner=owner,
            priority=int(snapshot.pods.priorities[row]),
            command=command_of(wanted, pod.metadata.namespace, owner, pod.metadata.name),
            explain=lambda: explain(stored(snapshot, snapshot.pods[row]), setup, autoscalers),
            likeness=kinds.get(row),
        )
        state = pod_lifecycle(snapshot, pod) or scheduler_down(snapshot, pod) or lacking_group(snapshot, pod, setup)
        if state or terminating_victims(snapshot, pod) or depends_on_unread(snapshot, pod):
            return replace(alone, likeness=None)
        if in_turn is None or not in_turn.is_queued(pod.key):
            return alone
        preempts, place = in_turn.preempts(pod.key), in_turn.node(pod.key)
        if place and not preempts and (said := objection(snapshot, pod, setup, place)):
            return replace(alone, likeness=(kinds[row], said, "disputed") if row in kinds else None)
        return replace(
            alone,
            explain=lambda: replace(in_turn.explanation(pod.key), autoscalers=autoscalers),
            node="" if preempts else place,
            taken=in_turn.taken(pod.key),
            waits=in_turn.message(pod.key),
            message=in_turn.evicting(pod.key),
            likeness=None if row not in kinds or (own := in_turn.likeness(pod.key)) is None else (kinds[row], own),
        )

    notes = (*evicted_note(() if in_turn is None else in_turn.evicted), *(note.text for note in unread))
    items = [item(row) for row in rows]
    if part is None:  # added nodes, and workloads without pods, are in no part
        notes = (*notes, *_growth(autoscalers))
        items += _without_created_pods(question, wanted, reached, setup)
    pods = ManyPods(items, jobs=question.jobs(), notes=notes, nothing=_nothing(wanted), snapshot=snapshot)
    pods.shared_fix = None if in_turn is None else in_turn.mended
    if wanted.interactive and items:
        from kschedx.cli.interactive import show_answers

        show_answers(pods.answers, pods.explanation, typed_change(question, setup), snapshot.cluster.names)
        return pods.exit_code
    return Answer(pods.report() if part is None else pods.report().marked(part), pods.exit_code)


def _without_created_pods(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> Iterator[Item]:
    """Yield workloads whose missing pods are not created: refused, or held in a queue."""
    from kschedx.inquiry.pod import workloads_without_pods

    if wanted.selector or not wanted.all_pending:
        return
    snapshot, within = reached.snapshot, _namespace(question, wanted, reached)
    clusters = Clusters(read=snapshot, before=snapshot, applied=snapshot)
    inquiry = inquiry_of(question, wanted, clusters, setup)
    explanations = workloads_without_pods(snapshot, setup, within, queued=True, autoscaling=question.autoscaling)
    for written_pod, explanation in explanations:
        yield _without_pods(wanted, written_pod, partial(_same, explanation), snapshot)
    for written_pod, owner, number in held_custom_resources(snapshot, within):
        admit = partial(written_pod.admitted, setup=setup)
        item = _without_pods(wanted, written_pod, partial(inquiry.answer, written_pod, admit, [written_pod]))
        command = command_of(wanted, item.pod.partition("/")[0], owner, "")
        yield replace(item, owner=owner, command=command, replicas=(Replica(pod=item.pod),) * number)


def _rows(question: Question, wanted: Wanted, reached: Reached, setup: Setup) -> list[int]:
    """Return the rows of the pods in question, in the order of the queue."""
    return rows_in_queue_order(
        reached.snapshot,
        setup.scheduler,
        namespace=_namespace(question, wanted, reached),
        labels=None if wanted.selector is None else parse_label_query(wanted.selector),
        pending=wanted.all_pending,
        also=_not_started(reached.snapshot) if wanted.all_pending else (),
    )


def _not_started(snapshot: Snapshot) -> list[int]:
    """Return the rows of pods that are Pending, as `kubectl get pods` shows, though they have a node."""
    pods = snapshot.pods
    is_pending = pods.phases.where(lambda phase: phase == "Pending") & pods.node_names.where(bool)
    rows = is_pending.nonzero()[0].tolist()
    return [row for row in rows if isinstance(pod_lifecycle(snapshot, pods[row]), WaitingForKubelet | BeingDeleted)]


def _namespace(question: Question, wanted: Wanted, reached: Reached) -> str | None:
    return namespace_of_many(
        question.namespace, reached.namespace, everywhere=wanted.all_namespaces, by_labels=not wanted.all_pending
    )


def _growth(autoscalers: Sequence[NodeAutoscaler]) -> Iterator[str]:
    """Yield what each autoscaler adds for all pending pods."""
    for autoscaler in autoscalers:
        from kschedx.inquiry.autoscalers import growth_of
        from kschedx.render.autoscaler import growth_text

        yield growth_text(growth_of(autoscaler))


def _nothing(wanted: Wanted) -> str:
    """Return the text if there are no such pods."""
    if not wanted.selector:
        return "no pod is pending"
    return "no pod with these labels is pending" if wanted.all_pending else "no pod has these labels"
