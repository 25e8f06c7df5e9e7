"""The screen of `kschedx fit`."""

from __future__ import annotations

from rich.text import Text

from kschedx.explain.notes.question import AfterChanges
from kschedx.render import terminal
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, OPEN, columns, cut, line, paragraph
from kschedx.render.unheard import could_reject
from kschedx.render.units import count, short_names
from kschedx.render.words.notes.question import text as note_text
from kschedx.simulate.fit import Fit

SHOWN = 8


def print_fit(found: Fit, *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(fit_lines(found, width=out.width, wide=wide), out)


def fit_lines(found: Fit, *, width: int, wide: bool = False) -> list[Text]:
    """The number, what would be enough, where they go, and what stops the next one."""
    mark, style = ("✓ ", GOOD) if found.is_enough else ("? ", OPEN) if found.could_reject else ("✗ ", BAD)
    lines = paragraph(_headline(found), width, first=mark, style=style)
    lines += _after_changes(found, width)
    if found.missing:
        lines += paragraph(f"it takes {_enough(found)}", width, first="  ")
    elif found.wanted is not None and not found.is_enough and not found.refusal and not found.could_reject:
        lines += paragraph("more nodes like those that are there would not do", width, first="  ")
    if found.nodes:
        lines += [BLANK, *_places(found, width, wide=wide)]
    if found.stopped is not None:
        stopped = found.stopped
        for_whom = " for one more" if found.wanted is None or found.wanted - found.count > 1 else ""
        next_one = "the next one is undecided" if found.could_reject else "the next one does not fit"
        lines += [BLANK, *paragraph(next_one if found.count else "why", width, style=BOLD)]
        why = could_reject(found.could_reject) or stopped.message or "it cannot be scheduled"
        lines += paragraph(why, width, first="  ")
        for fix in stopped.fixes[:2]:
            lines += paragraph(f"{fix.title} ({fix.certainty.value}{for_whom})", width, first="  fix       ")
    if found.refusal:
        lines += [BLANK, *paragraph("the API server refuses more", width, style=BOLD)]
        lines += paragraph(found.refusal, width, first="  ")
    return lines


def _after_changes(found: Fit, width: int) -> list[Text]:
    notes = (note for note in found.setup.notes if isinstance(note, AfterChanges))
    return [row for note in notes for row in paragraph(note_text(note), width, first="  ", style=DIM)]


def _enough(found: Fit) -> str:
    """`2 more nodes like node-3, or 4 like node-1`."""
    first, *others = found.missing
    every = [f"{count(first.nodes, 'more node')} like {first.like}"]
    every += [f"{one.nodes:,} like {one.like}" for one in others]
    return ", or ".join(every)


def _headline(found: Fit) -> str:
    name, number = found.title, found.count
    if found.could_reject and not found.is_enough:
        return f"{name}: undecided whether {'more fit' if number else 'any fits'}"
    if found.wanted is not None:
        if found.is_enough:
            return f"{name}: {number:,} more fit" if number > 1 else f"{name}: 1 more fits"
        return f"{name}: {found.wanted:,} more do not fit, {number:,} do" if number else f"{name}: none more fits"
    if not number:
        return f"{name}: none more fits"
    at_least = "at least " if found.is_bounded else ""
    return f"{name}: {at_least}{number:,} more {'fits' if number == 1 else 'fit'}"


def _places(found: Fit, width: int, *, wide: bool) -> list[Text]:
    shown = list(found.nodes.items()) if wide else list(found.nodes.items())[:SHOWN]
    short = short_names(found.snapshot.cluster.names)
    rows = [["node", "more", "cpu", "memory", "pods"]]
    for name, number in shown:
        before, after = found.usage_before[name], found.usage_after[name]
        shares = [f"{before.percent(one)}→{after.percent(one)}%" for one in ("cpu", "memory", "pods")]
        rows.append([cut(short.get(name, name), max(width - 45, 20)), f"{number:,}", *shares])
    lines = columns(rows, right=frozenset({1, 2, 3, 4}), indent=2, header=True)
    left = len(found.nodes) - len(shown)
    if left:
        lines.append(line((f"  {count(left, 'more node')}: -o wide shows all", DIM)))
    return lines
