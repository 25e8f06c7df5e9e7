"""The screen of `kschedx why` for many pods: a block for each cause, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from rich.text import Text

from kschedx.explain.causes import CauseGroup, PodAnswer, Taken, counts, groups
from kschedx.findings import Finding
from kschedx.findings.nodes import NodeAffinityMismatch
from kschedx.framework.cycle import Outcome
from kschedx.kube.workloads import MAKING_PODS
from kschedx.progress import Phase, counted
from kschedx.render.fixes import continued
from kschedx.render.states import decision_name, row_named
from kschedx.render.terminal import BAD, BLANK, DIM, GOOD, OPEN, SEPARATOR, line, paragraph, shortens, title_lines
from kschedx.render.view import Fix as FixView
from kschedx.render.view import Tone
from kschedx.render.wording import Fact, count, listed
from kschedx.render.words import describe

MOST_LINES = 30
MOST_BLOCKS = 4
"""Blocks for which a screen has room, about."""
SHOWN = 3
SHOWN_OTHERS = 2
EACH_ALONE = "each pod is evaluated alone, as if the others were not pending"


class PodAnswers(Struct, frozen=True, kw_only=True):
    """The answers about many pods."""

    answers: Sequence[PodAnswer]
    fix_of: Callable[[CauseGroup], FixView | None]
    notes: Sequence[str] = ()
    nothing: str = ""
    """The title if there are no pods."""
    competing: bool = False
    """Whether the pods are new, and compete for the same resources."""
    nodes: Sequence[str] = ()
    """The names of the cluster's nodes."""

    @property
    def all_notes(self) -> tuple[str, ...]:
        fitting = sum(answer.outcome is Outcome.SCHEDULED for answer in self.answers)
        return (*self.notes, *((EACH_ALONE,) if self.competing and fitting > 1 else ()))


def _node_names(pods: PodAnswers) -> Sequence[str]:
    return pods.nodes


@shortens(_node_names)
def pending_lines(pods: PodAnswers, *, width: int, wide: bool = False) -> list[Text]:
    """Return at most 30 lines: blocks, then a line for each other cause. `wide` names every pod."""
    if not pods.answers:
        return title_lines(pods.nothing, Tone.GOOD, width)
    causes = groups(pods.answers)
    lines = title_lines(pending_sentence(pods.answers), pending_tone(pods.answers), width)
    room = MOST_LINES - len(lines)
    blocks: list[list[Text]] = []
    for events in range(len(causes) if wide else min(len(causes), MOST_LINES), -1, -1):  # small groups omit the event
        blocks = list(_blocks(causes, pods.fix_of, width, wide=wide, events=events))
        if wide or (len(blocks) == len(causes) and sum(map(len, blocks)) <= room):
            break
    left = len(causes)
    for block in blocks:
        if not wide and len(lines) + len(block) > MOST_LINES - (2 if left > 1 else 0):
            break
        lines += block
        left -= 1
    brief = [BLANK] if left else []
    for group in causes[len(causes) - left :]:
        row = paragraph(cause_title(group), width, first=cause_tone(group).mark)
        if len(lines) + len(brief) + len(row) >= MOST_LINES:
            break
        brief += row
        left -= 1
    lines += brief
    if left:
        lines.append(line((f"{count(left, 'more group')} of pods: -o wide shows all", DIM)))
    for note in pods.all_notes:
        lines += [BLANK, *paragraph(note, width, style=DIM)]
    return lines


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


def evicted_note(evicted: Sequence[str]) -> tuple[str, ...]:
    """Return a line about the pods that preemption evicts for the pending ones; empty if there are none."""
    if not evicted:
        return ()
    return (f"preemption evicts {listed(evicted, SHOWN_OTHERS)}; kschedx simulate shows where they are rescheduled",)


def wanted_labels(findings: Sequence[Finding]) -> str:
    """Return the requirements of findings about node labels, because their headlines name no labels."""
    of_labels = (describe(finding) for finding in findings if isinstance(finding, NodeAffinityMismatch))
    return "; ".join(SEPARATOR.join(fact.items) for words in of_labels for fact in words.facts)


def _taken(taken: Taken) -> str:
    by = f"; {listed(taken.by, SHOWN_OTHERS)} {'takes' if len(taken.by) == 1 else 'take'} the place" if taken.by else ""
    return f"would fit {taken.node} if scheduled first{by}"


def _blocks(
    cause_groups: Sequence[CauseGroup],
    fix_of: Callable[[CauseGroup], FixView | None],
    width: int,
    *,
    wide: bool,
    events: int,
) -> Iterator[list[Text]]:
    """Yield the blocks for which the screen has room, and one more; all with `wide`. Each begins with a blank line. The
    first `events` of them have kube-scheduler's text."""
    lines = 0
    to_mend = [cause_tone(group) is not Tone.GOOD for group in cause_groups]
    expected = sum(to_mend) if wide else min(sum(to_mend), MOST_BLOCKS)
    each = counted(cause_groups, Phase.TRYING_FIXES, expected, "causes", lambda it: cause_tone(it) is not Tone.GOOD)
    for number, group in enumerate(each):
        block = [BLANK, *_block(group, fix_of, width, wide=wide, event=number < events)]
        yield block
        lines += len(block)
        if lines > MOST_LINES and not wide:
            return


def _block(
    group: CauseGroup, fix_of: Callable[[CauseGroup], FixView | None], width: int, *, wide: bool, event: bool
) -> list[Text]:
    first, tone = group.first, cause_tone(group)
    lines = paragraph(cause_title(group), width, first=tone.mark, style=_STYLES.get(tone, BAD))
    facts = list(cause_facts(group))
    lines += [row for fact in facts if fact.label == REQUIRES for row in _labelled(fact.label, fact.items[0], width)]
    lines += _members(group, width, wide=wide)
    message = _labelled("event" if is_event(first) else BECAUSE, first.message, width, style=DIM)
    shown = message if event and first.headlines and first.message else []
    lines += [] if is_event(first) else shown
    lines += [row for fact in facts if fact.label == ALONE for row in _labelled(fact.label, fact.items[0], width)]
    fix = None if tone is Tone.GOOD else fix_of(group)
    if fix is not None:
        lines += _labelled("fix", fix.text, width)
    lines += shown if is_event(first) else []
    if first.command and tone is not Tone.GOOD:
        rows = continued(first.command, width - len(MORE))
        lines += [line((f"{'' if number else MORE:{len(MORE)}}{row}", DIM)) for number, row in enumerate(rows)]
    return lines


REQUIRES, BECAUSE, ALONE = "requires", "because", "alone"
MORE = "  more     "
_STYLES = {Tone.GOOD: GOOD, Tone.HELD: OPEN, Tone.OPEN: OPEN}


def _labelled(label: str, content: str, width: int, *, style: str = "") -> list[Text]:
    return paragraph(content, width, first=f"  {label:9}", style=style)


def cause_tone(group: CauseGroup) -> Tone:
    match group.first.outcome:
        case Outcome.SCHEDULED:
            return Tone.HELD if group.first.state else Tone.GOOD
        case None | Outcome.UNDECIDED:
            return Tone.OPEN
        case _:
            return Tone.BAD


def cause_facts(group: CauseGroup) -> Iterator[Fact]:
    """Yield the facts of a group besides its title, its event, and its fix."""
    first = group.first
    if first.wants:
        yield Fact(label=REQUIRES, items=(first.wants,))
    if first.message and not is_event(first):
        yield Fact(label=BECAUSE, items=(first.message,))
    if first.taken is not None:
        yield Fact(label=ALONE, items=(_taken(first.taken),))
    if first.command and cause_tone(group) is not Tone.GOOD:
        yield Fact(label="more", items=(first.command,), command=first.command)


def is_event(answer: PodAnswer) -> bool:
    """Whether the message is kube-scheduler's event; otherwise, it is the cause of a state."""
    return answer.state in ("", "WaitingForGang")


def _members(group: CauseGroup, width: int, *, wide: bool) -> list[Text]:
    """Return the owners of the pods, or, with `wide` or for pods with nodes, the pods by name and their nodes."""
    good = group.first.outcome is Outcome.SCHEDULED and not group.first.state
    owners = Counter(map(_owned, group.answers)).most_common()
    names = [f"{name} × {number:,}" if number > 1 else name for name, number in owners]
    if wide:
        names = [_named(answer) for answer in group.answers]
    elif good:
        names = _places(group)
    shown = len(names) if wide else SHOWN
    lines = [text for name in names[:shown] for text in paragraph(name, width, first="  ")]
    if len(names) > shown:
        spaces = f" in {count(len(group.namespaces), 'namespace')}" if len(group.namespaces) > 1 else ""
        lines.append(line((f"  {len(names) - shown:,} more{spaces}", DIM)))
    return lines


def _places(group: CauseGroup) -> list[str]:
    """Return `shop/web (Deployment) × 5 → node-1 × 3, node-2 × 2`, and the node of each pod that is its owner's only
    one."""
    of_owner: dict[str, list[PodAnswer]] = {}
    for answer in group.answers:
        of_owner.setdefault(_owned(answer), []).append(answer)
    names: list[str] = []
    for owner, answers in of_owner.items():
        if len(answers) == 1 or answers[0].owner.partition(" ")[0] not in MAKING_PODS:
            names += map(_named, answers)
            continue
        nodes = Counter(name for answer in answers for name in answer.nodes[:1]).most_common()
        phrases = [f"{name} × {number:,}" if number > 1 else name for name, number in nodes]
        names.append(f"{owner} × {len(answers):,} → {listed(phrases, 3)}")
    return names


def _owned(answer: PodAnswer) -> str:
    """Return `shop/web (Deployment)`, or the pod's own name."""
    kind, _, name = answer.owner.partition(" ")
    return f"{answer.pod.partition('/')[0]}/{name} ({kind})" if kind else _named(answer)


def _named(answer: PodAnswer) -> str:
    priority = f" (priority {answer.priority:,})" if answer.priority else ""
    nodes = f" → {listed(answer.nodes, 2)}" if answer.nodes else ""
    return f"{answer.pod}{priority}{nodes}"


def cause_title(group: CauseGroup) -> str:
    """Return what all pods of a group have in common, with their number."""
    title, number = cause_text(group.first), len(group.answers)
    return f"{count(number, 'pod')}: {title}" if number > 1 else title


def cause_text(answer: PodAnswer) -> str:
    """Return its outcome, or what rejects it, in one line."""
    match answer.outcome:
        case _ if answer.state and answer.headlines:
            return answer.headlines[0]
        case Outcome.SCHEDULED:
            return "can be scheduled"
        case Outcome.GATED | Outcome.UNSCHEDULABLE if answer.headlines:
            first, *others = answer.headlines  # of the nearest nodes
            return f"{first}; other nodes fail for {count(len(others), 'other reason')}" if others else first
        case Outcome.GATED:
            return "gated"
        case Outcome.UNSCHEDULABLE | Outcome.ERROR | Outcome.UNDECIDED | None:
            return answer.message or "unschedulable"
        case _:
            assert_never(answer.outcome)
