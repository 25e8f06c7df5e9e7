"""Fixes with the result of trying them, and the commands that apply them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

from rich.cells import cell_len

from kschedx.framework.cycle import Outcome
from kschedx.grouping import group_pairs
from kschedx.holding.headlines import gang_cause
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.documents import to_json
from kschedx.patterns import lazy_pattern
from kschedx.render.terminal import DIM, LABEL, SEPARATOR, StyledLine, labelled_lines, paragraph, text, wrap
from kschedx.render.view import FixView
from kschedx.wording import count, list_names, visible
from kschedx.words.causes import because

if TYPE_CHECKING:
    from kschedx.inquiry.document import FixCoverage
    from kschedx.inquiry.fix import Fix
    from kschedx.inquiry.pending_pods import PendingStory, SharedFix

_INDENT = LABEL + 2
_SHOWN_NODES = 2
_GROUPS = {"capacity": "capacity", "workload": "this workload", "cluster": "cluster configuration"}
_PARTIAL, UNTRIED = "partial", "untried"
"""Certainties, repeated here because `kschedx.fixes` is loaded only for a pod that needs it."""


def fix_views(explanation: Explanation) -> tuple[FixView, ...]:
    """Return the fixes of a pod's answer, with the result of trying each."""
    known = explanation.cycle.all_nodes.cluster.index
    are_several = len({fix.group for fix in explanation.fixes}) > 1
    replicas = explanation.replicas
    for_one = "for one of them" if replicas is not None and len(replicas.pending) > 1 else ""
    fixes = []
    for fix in explanation.fixes:
        covered = explanation.coverage(fix)
        title, for_whom = fix.title, for_one if fix.steps else ""
        if covered is not None:
            title, for_whom = covered.title, _coverage_text(covered)
        fixes.append(
            FixView(
                title=title,
                seen=_trial_result(fix, [name for name in fix.feasible_nodes if name in known], for_whom),
                commands=fix.commands if covered is None else covered.commands or fix.commands,
                group=_GROUPS[fix.group] if are_several else "",
                changes=_changes(fix) if title == fix.title else (),
            )
        )
    return tuple(fixes)


def _changes(fix: Fix) -> tuple[Mapping[str, object], ...]:
    """Return the changes of a fix without commands, to be copied."""
    changes = () if fix.commands else fix.apply
    return tuple(change.create or to_json(change) for change in changes)


def group_fix(fix: Fix, *, for_one: bool) -> FixView:
    """Return a fix of the first of several pods."""
    seen = "for one of them" if for_one else ""
    return FixView(title=fix.title, seen=seen, commands=fix.commands, changes=_changes(fix))


def shared_fix_view(shared: SharedFix) -> FixView:
    """Return a fix of several pods. One that adds several nodes has no changes to copy."""
    parts = ["not enough alone"] if _is_only_part(shared.fix) else []
    parts += [_coverage_text(shared)] if shared.pods and shared.of > 1 else []
    title, _, seen = SEPARATOR.join((shared.title, *parts)).partition(SEPARATOR)
    changes = _changes(shared.fix) if shared.nodes == 1 else ()
    return FixView(title=title, seen=seen, commands=shared.commands, changes=changes)


def fix_lines(
    fixes: Sequence[FixView], no_fix: str, width: int, limit: int | None = None, about: str = ""
) -> list[StyledLine]:
    """Return the fixes in at most `limit` lines, the first of them whole; the others are counted.

    One line lists the group of each fix. `about`, a command that explains the cause, is added if it fits.
    """
    lines: list[StyledLine] = []
    for number, fix in enumerate(fixes, start=1):
        label = (f"fix {number}" if len(fixes) > 1 else "fix") if number == 1 else f"    {number}"
        fix_text_lines = [*labelled_lines(label, fix.text, width, further=2), *_command_lines(fix.commands, width)]
        left = len(fixes) - number + 1
        if lines and limit is not None and len(lines) + len(fix_text_lines) + (left > 1) > limit:
            return [
                *lines,
                *_hints(fixes[: number - 1], fixes, f"{count(left, 'more fix', 'more fixes')}: -o wide", about, width),
            ]
        lines += fix_text_lines
    if no_fix:
        lines += labelled_lines("no fix", no_fix, width)
    how = f"to apply: --fix {'N' if len(fixes) > 1 else '1'} -o patch" if any(fix.changes for fix in fixes) else ""
    return [*lines, *_hints(fixes, fixes, how, about, width)]


def _hints(shown: Sequence[FixView], fixes: Sequence[FixView], how: str, about: str, width: int) -> list[StyledLine]:
    """Return the groups of the shown fixes, how to apply fixes, and, if it fits, the command about the cause: on one
    line if they fit."""
    phrases = [phrase for phrase in (_group_text(shown, fixes), how) if phrase]
    rows = [SEPARATOR.join(phrases)] if cell_len(SEPARATOR.join(phrases)) <= width - _INDENT else phrases
    longer = f"{rows[-1]}{SEPARATOR}about the cause: {about}" if how and about else ""
    if longer and cell_len(longer) <= width - _INDENT:
        rows[-1] = longer
    return [line for row in rows if row for line in paragraph(row, width, first=" " * _INDENT, style=DIM)]


def _group_text(shown: Sequence[FixView], fixes: Sequence[FixView]) -> str:
    """Return `capacity: 1, 4 · this workload: 2, 3`; empty if all fixes are of one group."""
    numbers = group_pairs((fix.group, str(number)) for number, fix in enumerate(shown, start=1))
    if len({fix.group for fix in fixes}) < 2:
        return ""
    return SEPARATOR.join(f"{group}: {', '.join(its)}" for group, its in numbers.items())


def _coverage_text(covered: FixCoverage | SharedFix) -> str:
    return f"for all {covered.of:,}" if covered.pods == covered.of else f"for {covered.pods:,} of {covered.of:,}"


def _is_only_part(fix: Fix) -> bool:
    """Whether other changes are needed that the title does not name."""
    return fix.certainty == _PARTIAL and not fix.feasible_nodes and "; then " not in fix.title


def _trial_result(fix: Fix, known: list[str], for_whom: str) -> str:
    """Return `fits node-1 and 2 more`, without nodes that the title names or the fix adds."""
    nodes = [name for name in known if name not in fix.title]
    phrases = [f"fits {list_names(nodes, _SHOWN_NODES)}"] if nodes else []
    phrases += ["not enough alone"] if _is_only_part(fix) else []
    phrases += ["not tried"] if fix.certainty == UNTRIED and fix.of_group is None else []
    phrases += [for_whom] if for_whom else []
    return SEPARATOR.join(filter(None, (", ".join(phrases), *fix.costs)))


def story_reason(story: PendingStory) -> str:
    """Return why the pod stays pending: its most common causes."""
    group = story.explanation.holding.group
    if story.explanation.outcome is Outcome.SCHEDULED and group is not None:
        return gang_cause(group)
    return "; ".join(because(story.explanation.diagnosis, 2))


def story_fixes(story: PendingStory | None) -> tuple[FixView, ...]:
    """Return the first fix of the story's pods; empty if there is none."""
    return () if story is None or story.shared_fix is None else (shared_fix_view(story.shared_fix),)


def _command_lines(commands: Iterable[str], width: int) -> list[StyledLine]:
    """Return kubectl commands that can be copied; one that is longer than the window continues after a backslash.
    Commands with a longer word, or with characters that a terminal would interpret, are omitted: -o patch has them."""
    room = width - _INDENT - 2
    broken = [continue_command(command, room) for command in commands]
    if any(cell_len(row) > room or visible(row) != row for rows in broken for row in rows):
        return []
    marks = chain.from_iterable(zip(chain("$", repeat(" ")), rows, strict=False) for rows in broken)
    return [text(f"{' ' * _INDENT}{mark} {row}", DIM, exact=True) for mark, row in marks]


_SHELL_WORD = lazy_pattern(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def continue_command(command: str, room: int) -> list[str]:
    """Return the command in lines of at most `room` cells, as a shell reads them. A longer word has a longer line.
    Every line of a comment is one: a shell does not continue a comment after a backslash."""
    if command.startswith("#"):
        return [f"# {row}" for row in wrap(command.removeprefix("# "), room - 2)]
    rows: list[str] = []
    for word in _SHELL_WORD.findall(command):
        if rows and cell_len(f"{rows[-1]} {word} \\") <= room:
            rows[-1] += f" {word}"
        else:
            rows.append(f"  {word}" if rows else word)
    return [f"{row} \\" for row in rows[:-1]] + rows[-1:]


def shell_rows(command: str, width: int) -> list[str]:
    """Return a command that can be copied, in lines of at most `width` cells: it continues after a backslash. A list
    that is longer than a line continues in the first column, because a space would end the word."""
    if command.startswith("#"):
        return [f"  {row}" for row in continue_command(command, width - 2)]
    rows: list[str] = []
    row = " "
    for word in _SHELL_WORD.findall(command):
        is_list = cell_len(word) > width - _INDENT - 2 and not set(word) & set("'\"")
        for number, piece in enumerate(re.findall(r"[^,]+,?|,", word) if is_list else [word]):
            gap = "" if number else " "
            if row.strip() and cell_len(f"{row}{gap}{piece} \\") > width:
                rows.append(f"{row}{gap}\\")
                row = piece if number else f"    {piece}"
            else:
                row += gap + piece
    return [*rows, row]
