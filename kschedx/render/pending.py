"""The answer and the screen of `kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.states import (
    ExitCode,
    Lifecycle,
    Refused,
    WaitingForKubelet,
    decision_name,
    headline,
    row_named,
)
from kschedx.errors import ConfigError, NotAdmittedError, Place, UndecidableError
from kschedx.explain.causes import CauseGroup, NodeIfFirst, PodAnswer, cause_of, counts, decisive, groups
from kschedx.explain.cycle_notes import bound_by_hand
from kschedx.findings import Finding
from kschedx.findings.constraints import NodeAffinityMismatch
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.explanation_list import ExplanationList, Item
from kschedx.kube.documents import API_VERSION, to_json
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.workloads import MAKING_PODS
from kschedx.parallel import processors, results
from kschedx.progress import Phase, count_items
from kschedx.render.fixes import continue_command, fix_lines, group_fix, shared_fix_view
from kschedx.render.growth import growth_text
from kschedx.render.holding import gang_cause, held_by_kueue, scheduler_report
from kschedx.render.layout import MOST_LINES, headline_lines, note_lines
from kschedx.render.lifecycle import causes, own_event
from kschedx.render.outcome import nominated_text
from kschedx.render.page.model import (
    SCREEN_WIDTH,
    Page,
    page_of,
)
from kschedx.render.terminal import (
    BAD,
    BLANK,
    DIM,
    GOOD,
    INDENT,
    LABEL,
    OPEN,
    SEPARATOR,
    StyledLine,
    fact_lines,
    labelled_lines,
    line,
    paragraph,
    shortens,
    text,
)
from kschedx.render.view import FixView, ItemList, Tone, View, ViewItem
from kschedx.wording import Fact, count, list_names
from kschedx.words import describe
from kschedx.words.causes import shared_headlines
from kschedx.words.pod import could_reject

_LEAST_LINES = 3
"""Of a block."""
_SHOWN = 3
_SHOWN_OTHERS = 2
_EACH_ALONE = "each pod is evaluated alone, as if the others were not pending"


class IfNone(Struct, frozen=True):
    """The answer if there are no such pods."""

    title: str = "no pod is pending"
    is_known: bool = True
    """False for a dump without pods."""

    @property
    def tone(self) -> Tone:
        return Tone.GOOD if self.is_known else Tone.OPEN


def _node_names(answer: ListAnswer) -> Sequence[str]:
    return answer.of.snapshot.cluster.names


@shortens(_node_names)
def pending_lines(answer: ListAnswer, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return at most 30 lines: blocks, then a line for each other cause. `wide` names every pod.

    Fixes are tried for the causes that may have a block, if a fix takes one line.
    """
    view = answer.view(0)
    head = headline_lines(view, width)
    most = MOST_LINES - len(head)
    untried = [_block(item, width) for item in view.items[: MOST_LINES // _LEAST_LINES]]
    untried = [block + [BLANK] * (item.tone is not Tone.GOOD) for block, item in zip(untried, view.items, strict=False)]
    tried = len(view.items) if wide else _number(untried, len(view.items), most)
    items = answer.view(tried).items
    if wide:
        blocks = [_block(item, width, wide=True) for item in items]
    else:
        blocks = [_block(item, width, has_message=False) for item in items[:tried]]
        blocks = blocks[: _number(blocks, len(items), most)]
        for at, item in enumerate(items if len(blocks) == len(items) else ()):
            whole = _block(item, width)
            if sum(map(len, blocks)) - len(blocks[at]) + len(whole) > most:
                break
            blocks[at] = whole
    lines = [*head, *(row for block in blocks for row in block)]
    brief: list[StyledLine] = []
    left = items[len(blocks) :]
    for number, item in enumerate(left):
        row = paragraph(item.title, width, first=item.tone.mark)
        if len(lines) + 1 + len(brief) + len(row) >= MOST_LINES:
            brief.append(line((f"{count(len(left) - number, 'more group')} of pods: -o wide shows all", DIM)))
            break
        brief += row
    lines += [BLANK, *brief] if brief else []
    return [*lines, BLANK, *note_lines(view, width)] if view.notes else lines


def _number(blocks: Sequence[Sequence[StyledLine]], causes: int, most: int) -> int:
    """Return how many of the first blocks fit in `most` lines, with two for the other causes."""
    sizes = enumerate(accumulate(map(len, blocks)), start=1)
    return sum(size <= most - (2 if number < causes else 0) for number, size in sizes)


def pending_tone(answers: Sequence[PodAnswer]) -> Tone:
    outcomes = {answer.outcome for answer in answers}
    if outcomes <= {Outcome.SCHEDULED}:
        return Tone.HELD if any(answer.state for answer in answers) else Tone.GOOD
    return Tone.OPEN if outcomes <= {Outcome.SCHEDULED, Outcome.UNDECIDED, None} else Tone.BAD


def pending_sentence(answers: Sequence[PodAnswer]) -> str:
    """Return `12 pods: 3 can be scheduled, 9 cannot`."""
    parts: Counter[str] = Counter()
    for (outcome, state), number in counts(answers).items():
        parts[row_named(state or decision_name(outcome)).counted] += number
    pods = count(len(answers), "pod")
    if len(parts) == 1:
        [phrase] = parts
        verb = "" if phrase.startswith(("can", "fail")) else "is " if len(answers) == 1 else "are "
        return f"{pods} {verb}{phrase}"
    return f"{pods}: {', '.join(f'{number:,} {state}' for state, number in parts.items())}"


def _evicted_note(evicted: Sequence[str]) -> tuple[str, ...]:
    """Return a line about the pods that preemption evicts for the pending ones; empty if there are none."""
    if not evicted:
        return ()
    return (
        f"preemption evicts {list_names(evicted, _SHOWN_OTHERS)}; kschedx simulate shows where they are rescheduled",
    )


def _wanted_labels(findings: Sequence[Finding]) -> str:
    """Return the requirements of findings about node labels, because their headlines name no labels."""
    of_labels = (describe(finding) for finding in findings if isinstance(finding, NodeAffinityMismatch))
    return "; ".join(SEPARATOR.join(fact.items) for words in of_labels for fact in words.facts)


def _block(item: ViewItem, width: int, *, wide: bool = False, has_message: bool = True) -> list[StyledLine]:
    """Return the block of a cause, which begins with a blank line. Without `has_message`, it has neither
    kube-scheduler's event nor the message of a state."""
    lines = [BLANK, *paragraph(item.title, width, first=item.tone.mark, style=_STYLES.get(item.tone, BAD))]
    if wide:
        lines += [row for member in item.members for row in paragraph(member, width, first="  ")]
    for fact in (*(() if wide else item.own), *item.facts):
        if fact.label != _MORE and (has_message or fact.label != _BECAUSE):
            lines += fact_lines(fact, width, _SHOWN)
    lines += fix_lines(tuple(fix.brief for fix in item.fixes), item.no_fix, width)
    lines += labelled_lines("event", item.event, width, style=DIM, exact=True) if has_message and item.event else []
    for command in (fact.command for fact in item.facts if fact.label == _MORE):
        rows = continue_command(command, width - INDENT - LABEL)
        lines += [
            text(f"{'' if number else f'  {_MORE}':{INDENT + LABEL}}{row}", DIM) for number, row in enumerate(rows)
        ]
    return lines


_REQUIRES, _BECAUSE, _ALONE, _MORE = "requires", "because", "alone", "more"
_STYLES = {Tone.GOOD: GOOD, Tone.HELD: OPEN, Tone.OPEN: OPEN}


def cause_tone(group: CauseGroup) -> Tone:
    match group.first.outcome:
        case Outcome.SCHEDULED:
            return Tone.HELD if group.first.state else Tone.GOOD
        case None | Outcome.UNDECIDED:
            return Tone.OPEN
        case _:
            return Tone.BAD


def _facts(group: CauseGroup, taken: NodeIfFirst | None) -> Iterator[Fact]:
    """Yield the facts of a group besides its title, its event, and its fix. `taken` is the place that its first pod
    would have alone."""
    first = group.first
    if first.wants:
        yield Fact(label=_REQUIRES, items=(first.wants,))
    if first.message and first.headlines and not _is_event(first):
        yield Fact(label=_BECAUSE, items=(first.message,))
    if taken is not None:
        by = (
            f"; {list_names(taken.by, _SHOWN_OTHERS)} {'uses' if len(taken.by) == 1 else 'use'} the room"
            if taken.by
            else ""
        )
        yield Fact(label=_ALONE, items=(f"would fit {taken.node} if scheduled first{by}",))
    if first.command and cause_tone(group) is not Tone.GOOD:
        yield Fact(label=_MORE, items=(first.command,), command=first.command)


def _is_event(answer: PodAnswer) -> bool:
    """Whether the message is kube-scheduler's event; otherwise, it is the cause of a state."""
    return answer.state in ("", "WaitingForGang")


def _places(group: CauseGroup) -> list[str]:
    """Return `shop/web (Deployment) × 5 → node-1 × 3, node-2 × 2`, and the node of each pod that is its owner's only
    one."""
    of_owner: dict[str, list[PodAnswer]] = {}
    for answer in group.answers:
        of_owner.setdefault(_owner_text(answer), []).append(answer)
    names: list[str] = []
    for owner, answers in of_owner.items():
        if len(answers) == 1 or answers[0].owner.partition(" ")[0] not in MAKING_PODS:
            names += map(_pod_text, answers)
            continue
        nodes = Counter(name for answer in answers for name in answer.nodes[:1]).most_common()
        phrases = [f"{name} × {number:,}" if number > 1 else name for name, number in nodes]
        names.append(f"{owner} × {len(answers):,} → {list_names(phrases, 3)}")
    return names


def _owner_text(answer: PodAnswer) -> str:
    """Return `shop/web (Deployment)`, or the pod's own name."""
    kind, _, name = answer.owner.partition(" ")
    return f"{answer.pod.partition('/')[0]}/{name} ({kind})" if kind else _pod_text(answer)


def _pod_text(answer: PodAnswer) -> str:
    priority = f" (priority {answer.priority:,})" if answer.priority else ""
    nodes = f" → {list_names(answer.nodes, 2)}" if answer.nodes else ""
    return f"{answer.pod}{priority}{nodes}"


def cause_title(group: CauseGroup) -> str:
    """Return what all pods of a group have in common, with their number."""
    title, number = cause_text(group.first), len(group.answers)
    verb, _, rest = title.partition(" ")
    if number > 1 and verb in _PLURALS:
        return f"{number:,} pods {_PLURALS[verb]} {rest}"
    return f"{count(number, 'pod')}: {title}" if number > 1 else title


_PLURALS = {"has": "have", "is": "are"}


_MOST_OTHERS = 2
"""Causes of other nodes that are named."""


def cause_text(answer: PodAnswer) -> str:
    """Return its outcome, or what rejects it, in one line."""
    match answer.outcome:
        case _ if answer.state and answer.headlines:
            return answer.headlines[0]
        case Outcome.SCHEDULED:
            return "can be scheduled"
        case Outcome.GATED | Outcome.UNSCHEDULABLE if answer.headlines:
            first, *others = answer.headlines  # of the nearest nodes
            if others and len(others) <= _MOST_OTHERS:
                return f"{first}; other nodes: {' · '.join(others)}"
            return f"{first}; other nodes fail for {count(len(others), 'other reason')}" if others else first
        case Outcome.GATED:
            return "gated"
        case Outcome.UNSCHEDULABLE | Outcome.ERROR | Outcome.UNDECIDED | None:
            return answer.message or "unschedulable"
        case _:
            assert_never(answer.outcome)


# The answers about the pods of a list.

_MOST_OF_SAMPLE = 20
"""Causes of a sample. A document of thousands of nodes that is cut to what an assistant reads has room for fewer."""


def _read_iterators(entries: Iterator[tuple[str, object]]) -> dict[str, object]:
    return {key: [*value] if isinstance(value, Iterator) else value for key, value in entries}


class ListAnswer(Struct, dict=True):
    """The answer about several pods."""

    of: ExplanationList
    jobs: int | None = None
    """How many processes may share the work, by default one per processor."""
    if_none: IfNone = IfNone()

    def answer_about(self, index: int) -> tuple[PodAnswer, Explanation | None]:
        """Return the answer about one pod in short and its explanation; undecided and refused pods have answers too."""
        item = self.of.items[index]
        undecided = self._undecided_answer(item)
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
            return self._lifecycle_answer(undecided, explanation, explanation.lifecycle), explanation
        if (bound := bound_by_hand(explanation.cycle)) is not None:
            nodes = (bound.node,) if bound.is_taken else ()
            return replace(undecided, outcome=explanation.becomes, nodes=nodes, message=bound.text), explanation
        if item.open_count and explanation.overall is Outcome.UNDECIDED:
            return replace(undecided, message=item.open_count), explanation
        if explanation.outcome is Outcome.SCHEDULED and (explanation.overall is not Outcome.SCHEDULED or item.waits):
            return self._gang_answer(item, explanation), explanation
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
            diagnosis = explanation.diagnosis
            reasons = decisive(diagnosis)
            answer = replace(
                answer,
                cause=cause_of(diagnosis),
                headlines=shared_headlines(diagnosis),
                reasons=tuple(dict.fromkeys(finding.reason for finding in reasons)),
                wants=_wanted_labels(reasons[:1]),
            )
        return answer, explanation

    def _lifecycle_answer(self, undecided: PodAnswer, explanation: Explanation, lifecycle: Lifecycle) -> PodAnswer:
        """Return the answer about a pod that kube-scheduler does not decide."""
        if isinstance(lifecycle, Refused):
            said = f"{lifecycle.message} ({lifecycle.hint})" if lifecycle.hint else lifecycle.message
            return replace(undecided, outcome=explanation.overall, message=said, state=explanation.state.name)
        reads = headline(replace(lifecycle, subject="")).lstrip(": ").removeprefix("is ")
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

    def _gang_answer(self, item: Item, explanation: Explanation) -> PodAnswer:
        """Return the answer about a pod that fits alone, but not with its group."""
        group = explanation.holding.group
        named = group.name if group is not None else explanation.cycle.pod.metadata.labels.get(POD_GROUP_LABEL, "")
        headline = f"fits alone, but not with its group {named}"
        if group is not None and group.lacks_room:
            headline = gang_cause(group)
        message = item.waits or (explanation.message if group is None else group.message)
        undecided = replace(self._undecided_answer(item), outcome=Outcome.UNSCHEDULABLE, message=message)
        undecided = replace(undecided, state="WaitingForGang")
        return replace(undecided, cause=("group", named), headlines=(headline,))

    def answer(self, index: int) -> tuple[PodAnswer, ...]:
        """Return the answers about one item, one for each of its pods."""
        item = self.of.items[index]
        is_placed = bool(item.replicas) and all(replica.node for replica in item.replicas)
        if is_placed and item.open_count:
            story = replace(self._undecided_answer(item), message=item.open_count)
            return tuple(replace(story, pod=replica.pod) for replica in item.replicas)
        if item.node or is_placed:
            return self._each(
                item, replace(self._undecided_answer(item), outcome=Outcome.SCHEDULED, nodes=(item.node,))
            )
        return self._each(item, self.answer_about(index)[0])

    def _each(self, item: Item, story: PodAnswer) -> tuple[PodAnswer, ...]:
        """Return an answer for each replica; `story` is that of every replica without a node."""
        if not item.replicas:
            return (story,)
        placed = replace(self._undecided_answer(item), outcome=Outcome.SCHEDULED)
        return tuple(
            replace(placed, pod=replica.pod, nodes=(replica.node,)) if replica.node else replace(story, pod=replica.pod)
            for replica in item.replicas
        )

    def _undecided_answer(self, item: Item) -> PodAnswer:
        return PodAnswer(
            pod=item.pod,
            owner=item.owner,
            priority=item.priority,
            outcome=None,
            command=item.command,
        )

    @property
    def answers_by_item(self) -> Iterator[tuple[Item, tuple[PodAnswer, ...]]]:
        return zip(self.of.items, self._answers, strict=True)

    @property
    def answers(self) -> list[PodAnswer]:
        """The answers about every pod, in order."""
        return [answer for answers in self._answers for answer in answers]

    @cached_property
    def _answers(self) -> list[tuple[PodAnswer, ...]]:
        """The answers in the order of the items, computed in several processes if there are many."""
        if not self.of.items:
            return []
        likes = [index if item.likeness is None else (item.likeness,) for index, item in enumerate(self.of.items)]
        first = {likeness: index for index, likeness in reversed([*enumerate(likes)])}
        rows = sorted(first.values())
        answers_by_row = {0: self.answer(0)}  # what all pods share is computed once, before processes are forked
        pods = Counter(likes)
        answers = zip(rows[1:], results(self.answer, rows[1:], self.jobs or processors()), strict=True)
        total = len(self.of.items) - pods[likes[0]]
        answers_by_row |= dict(
            count_items(answers, Phase.DECIDING, total, "pods", weight=lambda item: pods[likes[item[0]]])
        )
        return [
            answers_by_row[index]
            if index in answers_by_row
            else (_copy_answer(item, answers_by_row[first[likeness]][0]),)
            for index, (item, likeness) in enumerate(zip(self.of.items, likes, strict=True))
        ]

    def explanation(self, pod: str) -> Explanation:
        """Return the explanation of one of the pods. Raises `KschedxError` if it cannot be explained."""
        index = next(
            index for index, answers in enumerate(self._answers) if any(answer.pod == pod for answer in answers)
        )
        return self.of.items[index].explain()

    def document(self) -> dict[str, object]:
        return _read_iterators(self.entries())

    def sample(self) -> tuple[dict[str, object], int]:
        """Return the document with the first pod of each of the largest causes, and the number of pods."""
        firsts = {group.first.pod for group in groups(self.answers)[:_MOST_OF_SAMPLE]}
        indexes = [index for index, own in enumerate(self._answers) if any(answer.pod in firsts for answer in own)]
        return _read_iterators(self.entries(indexes)), len(self.of.items)

    def entries(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[str, object]]:
        """Yield the keys and values of one document with every Explanation, and the undecided and refused pods; only of
        the items with `indexes` if those are given. Each entry is computed when it is requested."""
        undecided: list[object] = []
        refused: list[object] = []
        answers: list[tuple[PodAnswer, ...]] = []

        def items() -> Iterator[object]:
            for index in range(len(self.of.items)) if indexes is None else indexes:
                item = self.of.items[index]
                answer, explanation = self.answer_about(index)
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

    def _fix_of(self, group: CauseGroup) -> FixView | None:
        """Return a fix of the first pod of a group, with its certainty and the number of pods that it helps; None if
        none is known."""
        if group.first.outcome not in (Outcome.UNSCHEDULABLE, Outcome.GATED) and not group.first.state:
            return None
        if self.of.shared_fix is not None and len(group.answers) > 1 and group.first.outcome is Outcome.UNSCHEDULABLE:
            shared = self.of.shared_fix([answer.pod for answer in group.answers])
            if shared is not None:
                return shared_fix_view(shared)
        index = next(index for index, answers in enumerate(self._answers) if group.first in answers)
        _, explanation = self.answer_about(index)
        fix = next(explanation.each_fix(), None) if explanation is not None else None
        for_one = len(group.answers) > 1 and not group.first.state
        return None if fix is None else group_fix(fix, for_one=for_one)

    def _node_if_first(self, answer: PodAnswer) -> NodeIfFirst | None:
        """Return the place that a pod of `answers` would have alone; None if it would have none."""
        item = next(item for item, answers in self.answers_by_item if any(answer is other for other in answers))
        if item.taken is None or (answer.state == "WaitingForGang" and not item.replicas):
            return None
        return item.taken(answer.pod)

    @cached_property
    def _groups(self) -> tuple[CauseGroup, ...]:
        return groups(self.answers)

    @cached_property
    def _tried(self) -> dict[int, FixView | None]:
        """The fix of each group for which one was tried."""
        return {}

    @cached_property
    def _alone(self) -> dict[int, NodeIfFirst | None]:
        """The place that the first pod of each group would have alone, of those that a form has shown."""
        return {}

    def view(self, tried: int | None = None) -> View:
        """Return a view with a row for each cause, largest group first. Fixes are tried for the first `tried`; None for
        all of them. Without them, rows for which a screen has no room lack the place that a pod would have alone."""
        notes = (*_evicted_note(self.of.evicted), *self.of.notes, *map(growth_text, self.of.growths))
        if not self.answers:
            return View(command="kschedx why", headline=self.if_none.title, tone=self.if_none.tone, notes=notes)
        number = len(self._groups) if tried is None else tried
        new = [at for at, group in enumerate(self._groups[:number]) if at not in self._tried and _can_mend(group)]
        for at in count_items(new, Phase.TRYING_FIXES, len(new), "causes") if new else ():
            self._tried[at] = self._fix_of(self._groups[at])
        for at in range(min(max(number, MOST_LINES // _LEAST_LINES), len(self._groups))):
            if at not in self._alone:
                self._alone[at] = self._node_if_first(self._groups[at].first)
        return View(
            command="kschedx why",
            headline=pending_sentence(self.answers),
            tone=pending_tone(self.answers),
            lists=(
                ItemList(
                    title="Causes",
                    noun="cause",
                    columns=(("of", False), ("pods", True), ("namespaces", True), ("highest priority", True)),
                    items=tuple(
                        _cause(group, self._alone.get(at), self._tried.get(at)) for at, group in enumerate(self._groups)
                    ),
                ),
            ),
            notes=(*notes, *(competing_note(self.answers) if self.of.is_competing else ())),
        )

    @property
    def exit_code(self) -> ExitCode:
        """0 if every pod is schedulable, 3 if one cannot be decided, else 1."""
        open_counts = {item.open_count for item in self.of.items if item.open_count}
        undecided = [answer for answer in self.answers if answer.outcome in (None, Outcome.UNDECIDED)]
        if not self.answers and not self.if_none.is_known:
            return ExitCode.UNDECIDED
        is_sure = any(answer.outcome is Outcome.UNSCHEDULABLE for answer in self.answers)
        if undecided and not (is_sure and all(answer.message in open_counts for answer in undecided)):
            return ExitCode.UNDECIDED
        fits = all(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return ExitCode.SCHEDULABLE if fits else ExitCode.UNSCHEDULABLE


def _copy_answer(item: Item, story: PodAnswer) -> PodAnswer:
    """Return the answer about an identical pod as the answer about this one, on its own node."""
    own = {name: getattr(item, name) for name in ("pod", "owner", "priority", "command")}
    nodes, message = (item.node,) if item.node else story.nodes, item.message or story.message
    return replace(story, **own, nodes=nodes, message=message)


def competing_note(answers: Sequence[PodAnswer]) -> tuple[str, ...]:
    """Return that new pods, which compete for the same resources, are evaluated alone; empty if only one fits."""
    fitting = sum(answer.outcome is Outcome.SCHEDULED for answer in answers)
    return (_EACH_ALONE,) if fitting > 1 else ()


_KINDS = {Tone.GOOD: "schedulable", Tone.HELD: "held", Tone.OPEN: "undecided"}


def _can_mend(group: CauseGroup) -> bool:
    return cause_tone(group) is not Tone.GOOD


def _cause(group: CauseGroup, taken: NodeIfFirst | None, fix: FixView | None) -> ViewItem:
    first, tone = group.first, cause_tone(group)
    if group.first.outcome is Outcome.SCHEDULED and not group.first.state:
        names = _places(group)
    else:
        owners = Counter(map(_owner_text, group.answers)).most_common()
        names = [f"{name} × {number:,}" if number > 1 else name for name, number in owners]
    spaces = f" in {count(len(group.namespaces), 'namespace')}" if len(group.namespaces) > 1 else ""
    rest = tuple(f"{len(names) - number:,} more{spaces}" for number in range(len(names)))
    return ViewItem(
        title=cause_title(group),
        tone=tone,
        kind=_KINDS.get(tone, "pending"),
        values=(
            list_names(dict.fromkeys(answer.owner or answer.pod for answer in group.answers), 1),
            len(group.answers),
            len(group.namespaces),
            max(answer.priority for answer in group.answers),
        ),
        facts=tuple(_facts(group, taken)),
        own=(Fact(label="pods" if len(group.answers) > 1 else "pod", items=tuple(names), rest=rest),),
        event=first.message if first.headlines and _is_event(first) else "",
        fixes=(fix,) if fix is not None else (),
        members=tuple(map(_pod_text, group.answers)),
    )


def pending_page(answer: ListAnswer) -> Page:
    return page_of(answer.view(), pending_lines(answer, width=SCREEN_WIDTH), snapshot=answer.of.snapshot)
