"""The screens of `kschedx diff-profiles` and `kschedx profiles tune`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from kschedx.explain.difference import Difference, DifferenceGroup, Rejection, Repacking, Story, rescored_nodes
from kschedx.explain.profile_changes import changes
from kschedx.inquiry.profile_difference import SetupComparison
from kschedx.render import terminal
from kschedx.render.layout import head_lines, table_lines
from kschedx.render.manifests import to_yaml
from kschedx.render.page.model import SCREEN_WIDTH, Column, Page, Table, page_of
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    StyledLine,
    columns,
    fits,
    joined,
    line,
    more,
    paragraph,
    shortens,
    shown,
    text,
    title_lines,
    wrapped,
)
from kschedx.render.view import Fix, ItemList, Tone, View, ViewItem
from kschedx.render.wording import Fact, count, listed, visible
from kschedx.render.words.comparison import (
    ARROW,
    change_rows,
    compared,
    difference_title,
    effect_counts,
    effect_words,
    left_out,
    node_notes,
    node_rows,
    not_repacked,
    pod_lines,
    repacking_title,
    side_titles,
    with_the_same_change,
)
from kschedx.simulate.tuning import ProfileTrial, Tuning, TuningGoal

MOST_CHANGES = 14
MOST_CHANGE_LINES = 21
MOST_SCREEN_LINES = 40
SHOWN = 3
"""Changes of a group, each with all pods that have it."""
MOST_LINES = 2
"""Lines about one pod, below its first."""


LEAST_ROOM = 28
"""The minimum number of columns for what a change does, next to its place."""


def _node_names(comparison: SetupComparison) -> Sequence[str]:
    return () if comparison.snapshot is None else comparison.snapshot.cluster.names


@shortens(_node_names)
def comparison_lines(comparison: SetupComparison, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the differences between the configurations, then their effects on pods, largest first."""
    before, after, summary = comparison.before, comparison.after, comparison.summary
    lines = [
        *title_lines(comparison_headline(comparison), comparison_tone(comparison), width),
        BLANK,
        *_changes(change_rows(comparison.changes, before, after), width, wide),
    ]
    if summary is None:
        return lines
    lines += [BLANK, text(compared(summary), BOLD)]
    lines += [text(f"  {effect_text}") for effect_text in joined(effect_counts(summary), width - 2)]
    for phrase in left_out(summary):
        lines += paragraph(phrase, width, first="  ", style=DIM)
    if summary.not_repacked:
        lines += paragraph(not_repacked(summary), width, first="  ", style=DIM)
    if summary.repacking is not None:
        lines += _nodes(summary.repacking, side_titles(before, after), width)
    groups = summary.groups
    left = len(groups)
    for group in groups:
        block = [BLANK, *_group(group, width, wide)]
        if not wide and len(lines) + len(block) > MOST_SCREEN_LINES - 4 and left < len(groups):
            break
        lines += block
        left -= 1
    if left:
        lines += [BLANK, text(f"{count(left, 'more group')} of pods: -o wide shows all", DIM)]
    if summary.differences:
        lines += [BLANK, text("more: --pod NAMESPACE/NAME compares one pod in detail, -o wide, -o json", DIM)]
    return lines


def comparison_headline(comparison: SetupComparison) -> str:
    """Return `5 of 9 pods differ: default → binpack · Kubernetes 1.36`."""
    before, after, summary = comparison.before, comparison.after, comparison.summary
    first, second = side_titles(before, after)
    same = before.release.version == after.release.version
    sides = f"{first} {ARROW} {second}" + (f" · Kubernetes {after.release.version}" if same else "")
    if summary is None:
        changes = len(comparison.changes)
        return f"{count(changes, 'change')} of the configuration: {sides}" if changes else f"the same: {sides}"
    different, total = len(summary.differences), summary.compared
    if different:
        return f"{different:,} of {count(total, 'pod')} {'differs' if different == 1 else 'differ'}: {sides}"
    return (
        f"{count(len(summary.undecided), 'pod')} undecided: {sides}"
        if summary.undecided
        else f"no pod differs: {sides}"
    )


def comparison_tone(comparison: SetupComparison) -> Tone:
    summary = comparison.summary
    if comparison.changes if summary is None else summary.differences:
        return Tone.BAD
    return Tone.OPEN if summary is not None and summary.undecided else Tone.GOOD


def _changes(rows: Sequence[tuple[str, str, str]], width: int, everything: bool) -> list[StyledLine]:
    if not rows:
        return [text("the configurations are the same")]
    shown = rows if everything or len(rows) <= MOST_CHANGES + 1 else rows[:MOST_CHANGES]
    size = [max(len(row[column]) for row in shown) for column in (0, 1)]
    lines, left = [text("configuration", BOLD)], len(rows)
    for place, subject, phrase in shown:
        lead = f"  {place.ljust(size[0])}  {subject.ljust(size[1])}"
        is_long = width - len(lead) < LEAST_ROOM
        block = [text(lead)] if is_long else []
        first = "    " if is_long else f"{lead}  "
        block += paragraph(phrase if everything else _in_two_lines(phrase, width - len(first)), width, first=first)
        if not everything and len(lines) + len(block) > MOST_CHANGE_LINES:
            break
        lines += block
        left -= 1
    return lines + more(left, "change")


def _in_two_lines(phrase: str, room: int) -> str:
    """Return as many items of a list as fit in two lines, and the number of the others. Any other text is unchanged."""
    items = phrase.split(", ")
    shorter = (listed(items, most) for most in range(len(items), 0, -1))
    return next((phrase for phrase in shorter if len(wrapped(phrase, room)) <= MOST_LINES), phrase)


def _nodes(repacking: Repacking, names: tuple[str, str], width: int) -> list[StyledLine]:
    if repacking.before == repacking.after:
        return paragraph(repacking_title(repacking), width, first="  ", style=DIM)
    lines = [BLANK, *paragraph(repacking_title(repacking), width, indent=2, style=BOLD)]
    lines += columns(node_rows(repacking, names), indent=2)
    for phrase in node_notes(repacking, names):
        lines += paragraph(phrase, width, first="  ", indent=4)
    return lines


def _group(group: DifferenceGroup, width: int, everything: bool) -> list[StyledLine]:
    changes = [(each, [each.pod]) for each in group.differences] if everything else with_the_same_change(group)
    lines = paragraph(difference_title(group), width, indent=2, style=BOLD)
    shown = changes if everything else changes[:SHOWN]
    for difference, names in shown:
        phrase, facts = pod_lines(difference)
        pods = listed(names, 1)
        whole = f"{pods}  {phrase}".rstrip()
        if fits(whole, width - 2):
            lines.append(text(f"  {whole}"))
        else:
            lines += [text(f"  {pods}"), *paragraph(phrase, width, first="    ", indent=6)]
        for fact in facts if everything else facts[:MOST_LINES]:
            lines += paragraph(fact, width, first="    ", indent=6, style=DIM)
    left = len(group.differences) - sum(len(names) for _, names in shown)
    if left:
        lines.append(text(f"  {count(left, 'more pod')}: -o wide shows all", DIM))
    return lines


# Two accounts of one pod side by side, with differences marked.

MOST_NODES = 4
"""Nodes whose scores are shown: both sides' winners and the nodes behind them."""
NOTHING = "–"
MARK = "≠ "
LONGEST_PLUGIN = len("NodeResourcesBalancedAllocation")


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One fact of both sides, or a section's title, which has no sides."""

    label: str
    before: str = ""
    after: str = ""
    is_title: bool = False

    @property
    def differs(self) -> bool:
        return self.before != self.after


def _nodes_of(before: Story) -> Sequence[str]:
    return before.nodes


@shortens(_nodes_of)
def story_lines(
    before: Story, after: Story, names: tuple[str, str], *, width: int, only_differences: bool = False
) -> list[StyledLine]:
    """Return both sides next to each other. `names` are the names of the sides."""
    if before.nodes != after.nodes:
        nodes = tuple(sorted({*before.nodes, *after.nodes}))
        before, after = before.on(nodes), after.on(nodes)
    story_rows = list(_rows(before, after))
    rows = list(
        _without_empty_sections(row for row in story_rows if row.is_title or row.differs or not only_differences)
    )
    size = max((cell_len(visible(row.label)) for row in rows if not row.is_title), default=8)
    size = min(size, max(width // 3, LONGEST_PLUGIN))
    room = max((width - size - 8) // 2, 16)
    head = ComparisonRow(label="", before=f"{names[0]} ({before.version})", after=f"{names[1]} ({after.version})")
    differs = any(row.differs for row in story_rows)
    sides = names if before.version == after.version else (head.before, head.after)
    title = f"{after.pod} {'differs' if differs else 'does not differ'}: {sides[0]} → {sides[1]}"
    lines = [*title_lines(title, Tone.BAD if differs else Tone.GOOD, width), BLANK, *_beside(head, size, room, DIM)]
    for row in rows:
        mark, style = (MARK, BOLD) if row.differs else ("  ", "")
        lines += [BLANK, text(f"  {row.label}", BOLD)] if row.is_title else _beside(row, size, room, style, mark)
    return lines


def _without_empty_sections(rows: Iterable[ComparisonRow]) -> Iterator[ComparisonRow]:
    title: ComparisonRow | None = None
    for row in rows:
        if row.is_title:
            title = row
            continue
        if title is not None:
            yield title
            title = None
        yield row


def _beside(row: ComparisonRow, size: int, room: int, style: str, mark: str = "  ") -> list[StyledLine]:
    sides = (wrapped(shown(side) or NOTHING, room) for side in (row.before, row.after))
    lines: list[StyledLine] = []
    for label, first, second in zip_longest(wrapped(shown(row.label), size), *sides, fillvalue=""):
        content = f"{_padded(label, size)}  {_padded(first, room)}  {second}".rstrip()
        lines.append(line(("  " if lines else mark, "yellow"), (content, style)))
    return lines


def _padded(content: str, size: int) -> str:
    return content + " " * (size - cell_len(visible(content)))


# --- rows


def _rows(before: Story, after: Story) -> Iterator[ComparisonRow]:
    sides = (before, after)
    yield _row("outcome", (story.outcome.value for story in sides))
    yield _row("assigned to", (listed(story.chosen, MOST_NODES) for story in sides))
    yield _row("leads by", ("" if story.margin is None else f"{story.margin:,}" for story in sides))
    yield _row("fits on", (_fits(story) for story in sides))
    yield _row("event", (story.message for story in sides))
    yield _row("preempts", (_preemption(story) for story in sides))
    yield from _rejections(before, after)
    yield from _scores(before, after)


def _row(label: str, sides: Iterable[str]) -> ComparisonRow:
    first, second = sides
    return ComparisonRow(label=label, before=first, after=second)


def _fits(story: Story) -> str:
    return f"{story.feasible:,} of {count(len(story.nodes), 'node')}"


def _preemption(story: Story) -> str:
    texts = [f"{', '.join(preemption.victims)} on {preemption.node}" for preemption in story.preemptions[:2]]
    rest = f"; {count(len(story.preemptions) - 2, 'more node')}" if len(story.preemptions) > 2 else ""
    return " or ".join(texts) + rest


def _rejections(before: Story, after: Story) -> Iterator[ComparisonRow]:
    """Yield the reasons with their nodes, in the order in which they occur."""
    first, second = _by_reason(before, after), _by_reason(after, before)
    if first or second:
        yield ComparisonRow(label="rejected", is_title=True)
    for rejection in dict.fromkeys((*first, *second)):
        label = f"{rejection.plugin}: {', '.join(rejection.reasons)}"
        yield _row(label, (marks.get(rejection, "") for marks in (first, second)))


def _by_reason(story: Story, other: Story) -> dict[Rejection, str]:
    """Return reasons to the nodes that have them. Nodes that the other side does not reject for that reason come
    first."""
    marks = dict.fromkeys(story.stops, "before any node")
    for number, rejection in enumerate(story.rejections):
        others = set(other.nodes_of(other.rejections.index(rejection))) if rejection in other.rejections else set()
        names = sorted(story.nodes_of(number), key=others.__contains__)
        if names:
            marks[rejection] = f"{count(len(names), 'node')}: {listed(names, 3)}"
    return marks


def _scores(before: Story, after: Story) -> Iterator[ComparisonRow]:
    sides = (before, after)
    for node in _interesting(before, after):
        row = before.row(node)
        if all(story.totals[row] < 0 for story in sides):
            continue
        yield ComparisonRow(label=f"scores of {node}", is_title=True)
        yield _row("total", (f"{int(story.totals[row]):,}" if story.totals[row] >= 0 else "" for story in sides))
        for plugin in dict.fromkeys((*before.scores, *after.scores)):
            yield _row(plugin, (_score(story, plugin, row) for story in sides))


def _interesting(before: Story, after: Story) -> list[str]:
    """Return the winners, then the nodes behind them, then others whose scores differ."""
    names = [name for story in (before, after) for name in story.chosen[:1]]
    names += [story.nodes[row] for story in (before, after) if (row := story.runner_up) is not None]
    return list(dict.fromkeys((*names, *rescored_nodes(before, after))))[:MOST_NODES]


def _score(story: Story, plugin: str, row: int) -> str:
    if plugin not in story.scores or story.totals[row] < 0:
        return ""
    weight = story.weights[plugin]
    number = int(story.scores[plugin][row])
    return f"{number // weight:,} × {weight} = {number:,}" if weight > 1 else f"{number:,}"


# What `kschedx why --watch` prints below the first screen: a headline and the differences for every change.


def print_change(difference: Difference, before: Story, after: Story, times: tuple[str, str]) -> None:
    """Print to standard output and flush it, because it may be a pipe."""
    out = terminal.console()
    terminal.write([BLANK, *_change_text_lines(difference, before, after, times, width=out.width)], out)
    out.file.flush()


def _change_text_lines(
    difference: Difference, before: Story, after: Story, times: tuple[str, str], *, width: int
) -> list[StyledLine]:
    """Return the headline and the differences. `times` are those of the two observations."""
    phrase, _ = pod_lines(difference)
    title = f"{times[1]} {difference.pod} {effect_words(difference.effect, 1)}" + (f": {phrase}" if phrase else "")
    if before.total is None or after.total is None:
        before, after = _without_scores(before), _without_scores(after)  # there are no scores to compare with
    beside = story_lines(before, after, times, width=width, only_differences=True)
    return [text(title, BOLD), *beside[1:]]  # without its own title


def _without_scores(story: Story) -> Story:
    return replace(story, weights={}, scores={}, totals=story.totals * 0 - 1)


def print_end(at: str, pod: str, node: str) -> None:
    """Print that the pod has a node, or, if `node` is empty, that it is gone."""
    out = terminal.console()
    terminal.write([BLANK, text(f"{at} {pod} " + (f"is on node {node}" if node else "is gone"), BOLD)], out)


# The screen of `kschedx profiles tune`: the profiles that were tried, the best one, and what it changes.

SHOWN_TRIALS = 8
"""Rows: the cluster now, today's profile, and the Pareto front."""
HEADS = ("nodes", "fragmented", "spread", "moves", "unplaced")


def tuning_lines(tuning: Tuning, width: int, *, wide: bool = False) -> list[StyledLine]:
    """Return the headline, the front, and the best configuration with its difference from today's."""
    view = _tuning_view(tuning)
    lines = [
        *head_lines(replace(view, fixes=()), width),
        BLANK,
        *table_lines(view.lists[0], width, None if wide else SHOWN_TRIALS),
    ]
    if not tuning.is_better:
        return lines
    lines += [BLANK, text("what the best changes", BOLD)]
    for place, subject, phrase in _changed_settings(tuning):
        lines += paragraph(f"{place}  {subject}  {phrase}", width, first="  ", indent=4)
    lines += [BLANK, text("its configuration (-o yaml prints it alone)", BOLD)]
    return lines + [text(f"  {splitline}") for splitline in to_yaml(tuning.configuration).splitlines()]


def _values(trial: ProfileTrial, tuning: Tuning) -> tuple[str, ...]:
    """Return the cells for `HEADS`, and the cost if that of today's profile is known."""
    cost = () if tuning.today.cost is None else ("" if trial.cost is None else f"{trial.cost:.2f}",)
    numbers = (f"{trial.fragmentation:.1f}%", f"{trial.spread:.1f}", f"{trial.moves:,}", f"{trial.unplaced:,}")
    return (f"{trial.nodes:,}", *numbers, *cost)


def _tuning_view(tuning: Tuning) -> View:
    """Return a view with the best profile as a fix, and a row for each profile of the front."""
    left_out = (f"{tuning.left_out:,} more had no time: --seconds",) if tuning.left_out else ()
    tried = f"{count(tuning.candidates, 'profile')} for {tuning.goal.value}, seed {tuning.seed}"
    fix = Fix(title=f"profile: {tuning.best.candidate.title}", changes=(tuning.configuration,))
    return View(
        command="kschedx profiles tune",
        subject=tuning.goal.value,
        headline=_headline(tuning),
        tone=Tone.GOOD if tuning.is_better else Tone.BAD,
        facts=(
            Fact(label="tried", items=(tried, *left_out)),
            Fact(label="assumes", items=tuning.assumptions),
        ),
        fixes=(fix,) if tuning.is_better else (),
        lists=(
            ItemList(
                title="Profiles of which no other is better in everything",
                noun="profile",
                columns=tuple((name, True) for name in (*HEADS, *(("cost",) if tuning.today.cost is not None else ()))),
                items=tuple(_items(tuning)),
            ),
        ),
    )


def _headline(tuning: Tuning) -> str:
    today, best = tuning.today, tuning.best
    if not tuning.is_better:
        return f"no profile that was tried is better than today's: {_measure(tuning.goal, today, tuning)}"
    unplaced = f", and {count(best.unplaced, 'pod')} without a node" if best.unplaced else ""
    title = best.candidate.title
    return (
        f"{title}: {_measure(tuning.goal, best, tuning)}, with today's profile {_short(tuning.goal, today)}{unplaced}"
    )


def _measure(goal: TuningGoal, trial: ProfileTrial, tuning: Tuning) -> str:
    if goal is TuningGoal.FEWEST_NODES:
        return f"{trial.nodes:,} of {count(tuning.all_nodes, 'node')} in use"
    if goal is TuningGoal.LEAST_FRAGMENTATION:
        return f"{trial.fragmentation:.1f}% of the free capacity is fragmented"
    if goal is TuningGoal.SPREAD:
        return f"nodes differ by {trial.spread:.1f} points"
    return f"the nodes in use cost {_short(goal, trial)} an hour"


def _short(goal: TuningGoal, trial: ProfileTrial) -> str:
    if goal is TuningGoal.FEWEST_NODES:
        return f"{trial.nodes:,}"
    if goal is TuningGoal.LEAST_FRAGMENTATION:
        return f"{trial.fragmentation:.1f}%"
    return f"{trial.spread:.1f}" if goal is TuningGoal.SPREAD else f"{trial.cost or 0.0:.2f}"


def _items(tuning: Tuning) -> Iterator[ViewItem]:
    yield ViewItem(title="now", tone=Tone.PLAIN, values=_values(tuning.now, tuning))
    for shown_trial in (tuning.today, *(trial for trial in tuning.front if trial is not tuning.today)):
        tone = Tone.GOOD if shown_trial is tuning.best and tuning.is_better else Tone.PLAIN
        title = "today's profile" if shown_trial is tuning.today else shown_trial.candidate.title
        yield ViewItem(title=title, tone=tone, values=_values(shown_trial, tuning))


def _changed_settings(tuning: Tuning) -> list[tuple[str, str, str]]:
    return change_rows(changes(tuning.before, tuning.after), tuning.before, tuning.after)


def tuning_page(tuning: Tuning) -> Page:
    """Return a page with the front, and what the best profile changes."""
    table = Table(
        title="What the best changes",
        columns=tuple(Column(label=label) for label in ("where", "subject", "change")),
        rows=tuple(_changed_settings(tuning)) if tuning.is_better else (),
    )
    return page_of(_tuning_view(tuning), tuning_lines(tuning, SCREEN_WIDTH), (table,), tuning.snapshot)
