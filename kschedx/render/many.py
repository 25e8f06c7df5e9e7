"""The screen of `kschedx why --all-pending`: a row for each group of pods with the same answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rich.text import Text

from kschedx.explain.many import Answer, Group, counts, groups
from kschedx.framework.cycle import Outcome
from kschedx.render import terminal
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, OPEN, line, paragraph
from kschedx.render.units import count, listed

MOST_LINES = 40
SHOWN = 3


def print_many(answers: Sequence[Answer], *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(many(answers, width=out.width, wide=wide), out)


def many(answers: Sequence[Answer], *, width: int, wide: bool = False) -> list[Text]:
    """At most 40 lines, unless `wide`, which names every pod."""
    if not answers:
        return [line(("no such pod", BOLD))]
    found = groups(answers)
    lines = paragraph(_sentence(answers), width, style=BOLD)
    left = len(found)
    for group in found:
        block = [BLANK, *_block(group, width, wide=wide)]
        if not wide and len(lines) + len(block) > MOST_LINES - 3:
            break
        lines += block
        left -= 1
    if left:
        lines += [BLANK, line((f"{count(left, 'more group')} of pods: -o wide shows all", DIM))]
    return [*lines, BLANK, line(("one pod's whole story: kschedx why pod/NAME -n NAMESPACE", DIM))]


def _sentence(answers: Sequence[Answer]) -> str:
    parts = []
    for outcome, number in counts(answers).items():
        match outcome:
            case Outcome.SCHEDULED:
                parts.append(f"{number:,} can be scheduled")
            case Outcome.UNSCHEDULABLE:
                parts.append(f"{number:,} cannot")
            case Outcome.GATED:
                parts.append(f"{number:,} held back by gates")
            case Outcome.ERROR:
                parts.append(f"{number:,} end in an internal error of kube-scheduler")
            case None | Outcome.UNDECIDED:
                parts.append(f"{number:,} cannot be decided")
            case _:
                assert_never(outcome)
    return f"{count(len(answers), 'pod')}: {', '.join(parts)}"


def _block(group: Group, width: int, *, wide: bool) -> list[Text]:
    first = group.first
    good = first.outcome is Outcome.SCHEDULED
    mark, style = ("✓ ", GOOD) if good else ("? ", OPEN) if first.outcome is Outcome.UNDECIDED else ("✗ ", BAD)
    names = [
        f"{answer.pod} (priority {answer.priority:,})" if answer.priority else answer.pod for answer in group.answers
    ]
    if good:
        names = [f"{name} → {listed(answer.nodes, 2)}" for name, answer in zip(names, group.answers, strict=True)]
    shown = len(names) if wide else SHOWN
    lines: list[Text] = []
    title = _title(first)
    if len(names) > 1 or good:
        colon = "" if first.outcome in (Outcome.SCHEDULED, Outcome.GATED) else ":"
        title = f"{count(len(names), 'pod')}{colon} {title}"
    lines += paragraph(title, width, first=mark, style=style)
    for name in names[:shown]:
        lines += paragraph(name, width, first="  ")
    if len(names) > shown:
        lines.append(line((f"  {len(names) - shown:,} more", DIM)))
    return lines


def _title(answer: Answer) -> str:
    match answer.outcome:
        case Outcome.SCHEDULED:
            return "can be scheduled"
        case Outcome.GATED:
            return "held back by scheduling gates"
        case Outcome.UNSCHEDULABLE | Outcome.ERROR | Outcome.UNDECIDED | None:
            return answer.message or "cannot be scheduled"
        case _:
            assert_never(answer.outcome)
