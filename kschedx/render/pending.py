"""The screen of `kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, assert_never

from kschedx.controllers.states import decision_name, row_named
from kschedx.explain.causes import CauseGroup, NodeIfFirst, PodAnswer
from kschedx.framework.cycle import Outcome
from kschedx.grouping import group_pairs
from kschedx.inquiry.explanation_list import ExplanationList
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.pending_pods import SharedFix
from kschedx.kube.workloads import MAKING_PODS
from kschedx.render.fixes import continue_command, fix_lines, group_fix, shared_fix_view
from kschedx.render.growth import growth_text
from kschedx.render.layout import MOST_LINES, headline_lines, note_lines
from kschedx.render.outcome import roots as roots_of
from kschedx.render.terminal import (
    BAD,
    BLANK,
    DIM,
    GOOD,
    INDENT,
    LABEL,
    OPEN,
    StyledLine,
    fact_lines,
    labelled_lines,
    line,
    paragraph,
    shortens,
    snapshot_nodes,
    text,
)
from kschedx.render.view import FixView, ItemList, Tone, View, ViewItem
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth
from kschedx.wording import Fact, count, list_names

_LEAST_LINES = 3  # lines of the shortest block
_SHOWN = 3
_SHOWN_OTHERS = 2
_MOST_TRIED = 30
"""Causes for which fixes are tried where each cause has room. A cluster of thousands of nodes takes a third of a second
for each."""
_EACH_ALONE = "each pod is evaluated alone, as if the others were not pending"


@shortens(snapshot_nodes)
def pending_lines(answer: ExplanationList, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return at most 30 lines: blocks, then a line for each other cause. `wide` names every pod.

    Fixes are tried for the causes that may have a block, if a fix takes one line.
    """
    view = pending_view(answer, 0)
    head = headline_lines(view, width)
    most = MOST_LINES - len(head)
    untried = [_block(item, width) for item in view.items[: MOST_LINES // _LEAST_LINES]]
    untried = [block + [BLANK] * (item.tone is not Tone.GOOD) for block, item in zip(untried, view.items, strict=False)]
    view = pending_view(answer, None if wide else _number(untried, len(view.items), most))
    items = view.items
    if wide:
        blocks = [_block(item, width, wide=True) for item in items]
    else:
        blocks = [_block(item, width, has_message=False) for item in items[: _number(untried, len(items), most)]]
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
        row = paragraph(
            " · ".join((item.title, *(list_names(fact.items, 1) for fact in item.own))), width, first=item.tone.mark
        )
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


def _counts(answers: Iterable[PodAnswer]) -> Mapping[tuple[Outcome | None, str], int]:
    """Return the number of pods with each outcome and state."""
    return Counter((answer.outcome, answer.state) for answer in answers)


def pending_sentence(answers: Sequence[PodAnswer]) -> str:
    """Return `12 pods: 3 can be scheduled, 9 cannot`."""
    parts: Counter[str] = Counter()
    for (outcome, state), number in _counts(answers).items():
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
    they = "they are" if len(evicted) > 1 else "it is"
    return (f"preemption evicts {list_names(evicted, _SHOWN_OTHERS)}; kschedx simulate shows where {they} rescheduled",)


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


def _facts(group: CauseGroup, taken: NodeIfFirst | None, roots: Sequence[str]) -> Iterator[Fact]:
    """Yield the facts of a group besides its title, its event, and its fix. `taken` is the place that its first pod
    would have alone, `roots` are its root causes."""
    first = group.first
    if first.wants:
        yield Fact.of(_REQUIRES, first.wants)
    if others := tuple(root for root in roots if root not in first.headlines):
        yield Fact.of(_BECAUSE, *others)
    if first.message and first.headlines and not _is_event(first):
        yield Fact.of(_BECAUSE, first.message)
    if taken is not None:
        before = f"before {list_names(taken.by, _SHOWN_OTHERS)}" if taken.by else "first"
        yield Fact.of(_ALONE, f"would fit {taken.node} if scheduled {before}")
    if first.command and cause_tone(group) is not Tone.GOOD:
        yield Fact.of(_MORE, first.command, command=first.command)


def _is_event(answer: PodAnswer) -> bool:
    """Whether the message is kube-scheduler's event; otherwise, it is the cause of a state."""
    return answer.state in ("", "WaitingForGang")


def _places(group: CauseGroup) -> list[str]:
    """Return `shop/web (Deployment) × 5 → node-1 × 3, node-2 × 2`, and the node of each pod that is its owner's only
    one."""
    of_owner = group_pairs((_owner_text(answer), answer) for answer in group.answers)
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
    if number > 1:
        title = title.replace(" and waits ", " and wait ")
    verb, _, rest = title.partition(" ")
    if number > 1 and verb in _PLURALS:
        return f"{number:,} pods {_PLURALS[verb]} {rest}"
    return f"{count(number, 'pod')}: {title}" if number > 1 else title


_PLURALS = {"fits": "fit", "has": "have", "is": "are", "waits": "wait"}


_MOST_OTHERS = 2  # causes of other nodes that are named


def cause_text(answer: PodAnswer) -> str:
    """Return its outcome, or what rejects it, in one line."""
    match answer.outcome:
        case _ if answer.state and answer.headlines:
            return answer.headlines[0]
        case Outcome.SCHEDULED:
            return "can be scheduled"
        case Outcome.GATED | Outcome.UNSCHEDULABLE if answer.headlines:
            first, *others = answer.headlines  # of the nearest nodes
            if answer.preempts:
                return f"{first}; preemption makes room"
            if others and answer.outcome is Outcome.GATED:
                return f"{first}; without the gate: {others[0]}"
            if others and len(others) <= _MOST_OTHERS:
                return f"{first}; other nodes: {' · '.join(others)}"
            return f"{first}; other nodes fail for {count(len(others), 'other reason')}" if others else first
        case Outcome.GATED:
            return "gated"
        case Outcome.UNSCHEDULABLE | Outcome.ERROR | Outcome.UNDECIDED | None:
            return answer.message or "unschedulable"
        case _:
            assert_never(answer.outcome)


_KINDS = {Tone.GOOD: "schedulable", Tone.HELD: "held", Tone.OPEN: "undecided"}


def _growth_notes(growth: Growth, snapshot: Snapshot) -> Iterator[str]:
    """Yield what an autoscaler adds, and that it reports otherwise for more pods than those that it does not help."""
    from kschedx.inquiry.node_scaling import refusal_now  # few clusters have an autoscaler that grows

    is_karpenter = growth.autoscaler == "Karpenter"
    events = snapshot.karpenter_events if is_karpenter else snapshot.autoscaler_events
    refused = sum(bool(refusal_now(event, snapshot)) for event in events.values())
    if growth.helped and refused > growth.left + sum(growth.passed_over.values()):
        yield f"{growth.autoscaler} reports that it adds no node for {count(refused, 'pod')}"
        yield f"by the cluster's objects, {growth_text(growth)}"
    else:
        yield growth_text(growth)


def pending_view(answer: ExplanationList, tried: int | None = None) -> View:
    """Return a view with a row for each cause, largest group first. Fixes are tried for the first `tried`; None for as
    many as one waits for. Without them, rows for which a screen has no room lack the place that a pod would have
    alone."""
    growths = (text for growth in answer.growths for text in _growth_notes(growth, answer.snapshot))
    notes = (*_evicted_note(answer.evicted), *answer.notes, *growths)
    if not answer.answers:
        tone = Tone.OPEN if answer.snapshot.lacks_all_pods else Tone.GOOD
        return View(command="kschedx why", headline=answer.if_empty, tone=tone, notes=notes)
    groups = answer.groups
    number = min(len(groups), _MOST_TRIED) if tried is None else tried
    if tried is None and any(cause_tone(group) is not Tone.GOOD for group in groups[number:]):
        notes = (*notes, f"fixes were tried for the {number} largest groups; the command of a group tries them for it")
    answer.try_fixes(at for at, group in enumerate(groups[:number]) if cause_tone(group) is not Tone.GOOD)
    places = {at: answer.node_if_first(at) for at in range(min(max(number, MOST_LINES // _LEAST_LINES), len(groups)))}
    explanations = {at: answer.explanation_of(at) for at in answer.fixes if not groups[at].first.state}
    roots = {at: roots_of(explanation.diagnosis) for at, explanation in explanations.items() if explanation is not None}
    return View(
        command="kschedx why",
        headline=pending_sentence(answer.answers),
        tone=pending_tone(answer.answers),
        lists=(
            ItemList(
                title="Causes",
                noun="cause",
                columns=(("of", False), ("pods", True), ("namespaces", True), ("highest priority", True)),
                items=tuple(
                    _cause(group, places.get(at), answer.fixes.get(at), roots.get(at, ()))
                    for at, group in enumerate(groups)
                ),
            ),
        ),
        notes=(*notes, *(competing_note(answer.answers) if answer.is_competing else ())),
    )


def _fix_view(fix: Fix | SharedFix, group: CauseGroup) -> FixView:
    if isinstance(fix, SharedFix):
        return shared_fix_view(fix)
    if group.first.preempts and len(group.answers) > 1 and fix.awaits_preemption:
        return FixView(title=f"wait for preemption: it makes room for all {len(group.answers):,}")
    is_tried = not group.first.state and group.first.outcome is not Outcome.UNDECIDED
    return group_fix(fix, for_one=is_tried and len(group.answers) > 1)


def competing_note(answers: Sequence[PodAnswer]) -> tuple[str, ...]:
    """Return that new pods, which compete for the same resources, are evaluated alone; empty if only one fits."""
    fitting = sum(answer.outcome is Outcome.SCHEDULED for answer in answers)
    return (_EACH_ALONE,) if fitting > 1 else ()


def _cause(group: CauseGroup, taken: NodeIfFirst | None, fix: Fix | SharedFix | None, roots: Sequence[str]) -> ViewItem:
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
        facts=tuple(_facts(group, taken, roots)),
        own=(Fact.of("pods" if len(group.answers) > 1 else "pod", *names, rest=rest),),
        event=first.message if first.headlines and _is_event(first) else "",
        fixes=() if fix is None else (_fix_view(fix, group),),
        members=tuple(map(_pod_text, group.answers)),
    )
