"""Two scheduler configurations compared: screen and page of `kschedx diff-profiles`, and two accounts of one pod."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from kschedx.explain.difference import (
    Difference,
    DifferenceGroup,
    Effect,
    Preemption,
    Rejection,
    Repacking,
    Side,
    Story,
    Summary,
    rescored_nodes,
)
from kschedx.explain.profile_changes import WEIGHED, ProfileChange
from kschedx.explain.setup import Setup
from kschedx.grouping import group_pairs
from kschedx.inquiry.profile_difference import SetupComparison
from kschedx.kube.names import POOL_LABELS, ZONE_LABELS
from kschedx.releases import POINTS
from kschedx.render import terminal
from kschedx.render.layout import column_lines, head_lines
from kschedx.render.page.model import SCREEN_WIDTH, Flow, Page, page_of
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    SEPARATOR,
    StyledLine,
    fits,
    line,
    more,
    names_note,
    paragraph,
    short_node_names,
    shortens,
    shown,
    text,
    title_lines,
    wrap,
)
from kschedx.render.view import ItemList, TableView, Tone, View, ViewItem
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import Fact, count, list_names, visible

# Differences of configurations and of pods in words, for every output format.

_ARROW = "→"
_MOST_NAME = 24
"""The longest column name. Only the end of a longer one is shown: a file's name is at the end of its path."""

_POINTS = frozenset({*POINTS, "predicates", "predicatesNeverRun", "priorities"})

_EFFECTS: dict[Effect, tuple[str, str]] = {
    Effect.STOPS: ("stops being schedulable", "stop being schedulable"),
    Effect.STARTS: ("becomes schedulable", "become schedulable"),
    Effect.OUTCOME: ("has another outcome", "have another outcome"),
    Effect.MOVES: ("is assigned to another node", "are assigned to another node"),
    Effect.TIES: ("may be assigned to another node", "may be assigned to another node"),
    Effect.PREEMPTS: ("preempts other pods", "preempt other pods"),
    Effect.FITS: ("fits other nodes", "fit other nodes"),
    Effect.MESSAGE: ("has another event text", "have another event text"),
    Effect.SCORES: ("has other scores", "have other scores"),
}


def _side_titles(before: Setup, after: Setup) -> tuple[str, str]:
    """Return the titles of the two sides: their names, and the version if only that differs."""
    if before.release.version == after.release.version:
        return before.name, after.name
    return f"{before.name} {before.release.version}", f"{after.name} {after.release.version}"


# --- configuration


def changes_table(title: str, changes: Iterable[ProfileChange], before: Setup, after: Setup) -> TableView:
    """Return where, what, and how the configuration changes. Gates and plugins with the same change share a row."""
    rows: list[tuple[str, str, str]] = []
    gates: list[str] = []
    has_many = max(len(setup.profiles) for setup in (before, after)) > 1
    for change in changes:
        place = "version" if change.place == "release" else change.place
        place = f"{change.profile} {place}" if has_many and change.profile else place
        if change.place == "gate":
            gates.append(f"{change.subject} {'on' if change.after == 'true' else 'off'}")
        else:
            rows.append((place, change.subject, _change(change)))
    if gates:
        first = next((number for number, row in enumerate(rows) if row[0] not in ("version", "gate")), len(rows))
        rows.insert(first, ("gates", count(len(gates), "differs", "differ"), ", ".join(gates)))
    columns = tuple((label, False) for label in ("where", "what", "change"))
    return TableView(title=title, columns=columns, rows=tuple(rows))


def _change(change: ProfileChange) -> str:
    before, after = change.before, change.after
    if change.place == "behavior" and {before, after} == {"true", "false"}:
        return "new" if after == "true" else "removed"
    if change.setting:
        return f"{change.setting} {before or 'unset'} {_ARROW} {after or 'unset'}"
    if not before or not after:
        if change.place not in _POINTS:
            return after or "removed"
        weight = f" ({after or before})" if change.place in WEIGHED else ""
        return f"{'enabled' if after else 'disabled'}{weight}"
    return f"{before} {_ARROW} {after}"


# --- pods


def _effect_words(effect: Effect, number: int) -> str:
    singular, many = _EFFECTS[effect]
    return singular if number == 1 else many


def _kind(group: DifferenceGroup) -> str:
    """Return `are assigned to another node: NodeResourcesFit decides`."""
    text = _effect_words(group.effect, len(group.differences))
    if not group.causes:
        return text
    first, plugins = group.differences[0], list_names(group.causes, 3)
    match group.effect:
        case Effect.STOPS:
            return f"{text}: {plugins} {_verb(group, 'rejects', 'reject')} nodes that fit before"
        case Effect.STARTS:
            return f"{text}: {plugins} no longer {_verb(group, 'rejects', 'reject')}"
        case Effect.MOVES | Effect.TIES:
            return (
                f"{text}: {plugins} {_verb(group, 'decides', 'decide')}{' by filtering' if first.filtered_by else ''}"
            )
        case _:
            return f"{text}: {plugins}"


def _verb(group: DifferenceGroup, text: str, many: str) -> str:
    return text if len(group.causes) == 1 else many


def pod_texts(difference: Difference) -> tuple[str, str, tuple[str, ...]]:
    """Return the outcome for one pod on either side, empty if only their messages differ, and lines with the causes."""
    before, after = difference.before, difference.after
    match difference.effect:
        case Effect.STOPS | Effect.STARTS | Effect.FITS:
            message = after.message if difference.effect is Effect.STOPS else ""
            facts = (*_shifts(difference), *((f"event: {message}",) if message else ()))
            return _feasible(before), _feasible(after), facts
        case Effect.OUTCOME | Effect.MESSAGE:
            facts = (f"before: {before.message or before.outcome}", f"after: {after.message or after.outcome}")
            is_only = difference.effect is Effect.MESSAGE
            return ("", "", facts) if is_only else (before.outcome, after.outcome, facts)
        case Effect.MOVES | Effect.TIES:
            return _place(before, difference.old_node), _place(after, difference.new_node), _turns(difference)
        case Effect.PREEMPTS:
            return _evictions(before.preemptions), _evictions(after.preemptions), ()
        case Effect.SCORES:
            changes = (
                f"{plugin} by {change.largest:+,} at most, on {count(change.nodes, 'node')}"
                for plugin, change in difference.rescored.items()
            )
            return _place(before, None), _place(after, None), (list_names(changes, 3),)
        case _:
            assert_never(difference.effect)


def change_text(before: str, after: str) -> str:
    """Return `node-1 → node-2`; `still node-1` for equal sides."""
    if before == after:
        return f"still {after}" if after else ""
    return f"{before} {_ARROW} {after}"


def _feasible(side: Side) -> str:
    nodes = _node_texts(side)
    return f"{count(side.feasible, 'node fits', 'nodes fit')}{f', best {nodes}' if nodes else ''}"


def _place(side: Side, node: str | None) -> str:
    """Return `node-04, 12 ahead`, `node-04, one of 3`."""
    name = node or _node_texts(side)
    if side.node_count > 1:
        return f"{name}, one of {side.node_count:,}" if node else name
    return name if side.margin is None else f"{name}, by {count(side.margin, 'point')}"


def _node_texts(side: Side) -> str:
    return list_names(side.nodes, 2, side.node_count)


def _turns(difference: Difference) -> tuple[str, ...]:
    if difference.filtered_by:
        old_gone = difference.filtered_by in difference.lost
        kept = f"{difference.filtered_by} no longer allows {difference.old_node}"
        came = f"{difference.filtered_by} now allows {difference.new_node}"
        return (kept if old_gone else came,)
    swings = [f"{turn.plugin} {turn.before:+,} {_ARROW} {turn.after:+,}" for turn in difference.turned]
    return (f"new node's score minus old node's: {list_names(swings, 4)}",) if swings else ()


def _shifts(difference: Difference) -> tuple[str, ...]:
    lost = [f"{plugin} rejects {nodes:,} more" for plugin, nodes in difference.lost.items()]
    gained = [f"{plugin} allows {nodes:,} more" for plugin, nodes in difference.gained.items()]
    return (", ".join((*lost, *gained)),) if lost or gained else ()


def _evictions(preemptions: tuple[Preemption, ...]) -> str:
    if not preemptions:
        return "no preemption"
    first = preemptions[0]
    others = f" (or {count(len(preemptions) - 1, 'other node')})" if len(preemptions) > 1 else ""
    return f"evicts {list_names(first.victims, 2)} on {first.node}{others}"


def _repacking_table(repacking: Repacking, names: tuple[str, str]) -> TableView:
    """Return the utilization of nodes now and with each profile, a row for each number."""
    sides = (repacking.now, repacking.before, repacking.after)
    rows = [("nodes in use", *(f"{side.in_use:,} of {side.nodes:,}" for side in sides))]
    filled = ("cpu", "memory")
    rows += [(f"{name} requested on nodes in use", *(f"{side.percent(name)}%" for side in sides)) for name in filled]
    rows += [(f"{name} on the fullest", *(f"{side.fullest[name]}%" for side in sides)) for name in filled]
    if any(side.pending for side in sides):
        rows.append(("pods that stay pending", *(f"{len(side.pending):,}" for side in sides)))
    short = (name if len(name) <= _MOST_NAME else f"…{name[1 - _MOST_NAME :]}" for name in names)
    columns = tuple((label, False) for label in ("", "now", *short))
    return TableView(title=_repacking_title(repacking), columns=columns, rows=tuple(rows))


def _repacking_title(repacking: Repacking) -> str:
    if repacking.before == repacking.after:
        return "both fill the nodes equally if the running pods are rescheduled one by one"
    if repacking.pods == 1:
        return "nodes if the running pod is rescheduled"
    return f"nodes if the {repacking.pods:,} running pods are rescheduled one by one, in queue order"


# The view, the screen, and the page of `kschedx diff-profiles`.

_MOST_CHANGES = 14
_MOST_CHANGE_LINES = 21
_MOST_SCREEN_LINES = 40
_SHOWN = 3  # changes of a group, each with all pods that have it
_MOST_LINES = 2  # lines about one pod, below its first


_LEAST_ROOM = 28  # the minimum number of columns for what a change does, next to its place


def _node_names(comparison: SetupComparison) -> Sequence[str]:
    return () if comparison.snapshot is None else comparison.snapshot.cluster.names


@shortens(_node_names)
def comparison_lines(comparison: SetupComparison, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the headline with the number of pods by effect, the differences between the configurations, nodes in use,
    and the effects on pods, largest first."""
    view = _comparison_view(comparison)
    (configuration, *repacked), (pods,) = view.tables, view.lists
    lines = [*head_lines(view, width), BLANK, *_changes(configuration, width, wide)]
    for table in repacked:
        lines += [BLANK, *paragraph(table.title, width, indent=2, style=BOLD)]
        lines += column_lines(table.columns, table.rows, width)
    kinds = group_pairs((item.kind, item) for item in pods.items)
    left = len(kinds)
    for kind, items in kinds.items():
        block = [BLANK, *_group(kind, items, width, wide)]
        if not wide and len(lines) + len(block) > _MOST_SCREEN_LINES - 4 and left < len(kinds):
            break
        lines += block
        left -= 1
    if left:
        lines += [BLANK, text(f"{count(left, 'more group')} of pods: -o wide shows all", DIM)]
    if kinds:
        lines += [BLANK, text("more: --pod NAMESPACE/NAME compares one pod in detail, -o wide, -o json", DIM)]
    return lines


def _comparison_headline(comparison: SetupComparison) -> str:
    """Return `5 of 9 pods differ: default → binpack · Kubernetes 1.36`."""
    before, after, summary = comparison.before, comparison.after, comparison.summary
    first, second = _side_titles(before, after)
    same = before.release.version == after.release.version
    sides = f"{first} {_ARROW} {second}" + (f" · Kubernetes {after.release.version}" if same else "")
    if summary is None:
        changes = len(comparison.changes)
        return f"{count(changes, 'change')} of the configuration: {sides}" if changes else f"the same: {sides}"
    different, total = len(summary.differences), summary.compared
    if different:
        return f"{different:,} of {count(total, 'pod')} {'differs' if different == 1 else 'differ'}: {sides}"
    if summary.undecided:
        return f"{count(len(summary.undecided), 'pod')} undecided: {sides}"
    return f"no pod differs: {sides}"


def _comparison_tone(comparison: SetupComparison) -> Tone:
    summary = comparison.summary
    if comparison.changes if summary is None else summary.differences:
        return Tone.BAD
    return Tone.OPEN if summary is not None and summary.undecided else Tone.GOOD


def _changes(configuration: TableView, width: int, everything: bool) -> list[StyledLine]:
    rows = [tuple(map(str, row)) for row in configuration.rows]
    if not rows:
        return [text("the configurations are the same")]
    shown = rows if everything or len(rows) <= _MOST_CHANGES + 1 else rows[:_MOST_CHANGES]
    size = [max(len(row[column]) for row in shown) for column in (0, 1)]
    lines, left = [text(configuration.title, BOLD)], len(rows)
    for place, subject, phrase in shown:
        lead = f"  {place.ljust(size[0])}  {subject.ljust(size[1])}"
        is_long = width - len(lead) < _LEAST_ROOM
        block = [text(lead)] if is_long else []
        first = "    " if is_long else f"{lead}  "
        block += paragraph(phrase if everything else _fit_two_lines(phrase, width - len(first)), width, first=first)
        if not everything and len(lines) + len(block) > _MOST_CHANGE_LINES:
            break
        lines += block
        left -= 1
    return lines + more(left, "change")


def _fit_two_lines(phrase: str, room: int) -> str:
    """Return as many items of a list as fit in two lines, and the number of the others. Any other text is unchanged."""
    items = phrase.split(", ")
    shorter = (list_names(items, most) for most in range(len(items), 0, -1))
    return next((phrase for phrase in shorter if len(wrap(phrase, room)) <= _MOST_LINES), phrase)


def _group(kind: str, items: Sequence[ViewItem], width: int, everything: bool) -> list[StyledLine]:
    """Return the pods with one effect of one cause: a row for each change, with all pods that have it."""
    number = sum(int(item.values[0]) for item in items)
    lines = paragraph(f"{count(number, 'pod')} {kind}", width, indent=2, style=BOLD)
    shown = items if everything else items[:_SHOWN]
    for item in shown:
        pods = list_names(item.members, len(item.members)) if everything and item.members else item.title
        _, before, after = map(str, item.values)
        phrase = change_text(before, after)
        whole = f"{pods}  {phrase}".rstrip()
        if fits(whole, width - 2):
            lines.append(text(f"  {whole}"))
        else:
            lines += [*paragraph(pods, width, first="  "), *paragraph(phrase, width, first="    ", indent=6)]
        for fact in item.facts if everything else item.facts[:_MOST_LINES]:
            lines += paragraph(SEPARATOR.join(fact.items), width, first="    ", indent=6, style=DIM)
    left = number - sum(int(item.values[0]) for item in shown)
    return lines + more(left, "pod")


_MOST_POOLS = 24
"""The maximum number of nodes that are bands of their own in a flow, if they have neither pools nor zones."""


def comparison_page(comparison: SetupComparison) -> Page:
    """Return a page with the differences between the configurations, then their effects on pods."""
    lines, summary, snapshot = comparison_lines(comparison, width=SCREEN_WIDTH), comparison.summary, comparison.snapshot
    sides = _side_titles(comparison.before, comparison.after)
    flow = None if summary is None or snapshot is None else _flow(summary, snapshot, sides)
    return page_of(_comparison_view(comparison), lines, () if flow is None else (flow,), snapshot)


def _comparison_view(comparison: SetupComparison) -> View:
    """Return a view with a row for each change; identical pods with the same change share a row. Its columns have
    short node names."""
    before, after, summary = comparison.before, comparison.after, comparison.summary
    names = _node_names(comparison)
    sides = _side_titles(before, after)
    details: list[str] = []
    facts: list[str] = []
    tables = [changes_table("configuration", comparison.changes, before, after)]
    with short_node_names(names):
        items = () if summary is None else tuple(item for group in summary.groups for item in _changed_items(group))
    if summary is not None:
        effects = [count(number, *_EFFECTS[effect]) for effect, number in summary.counts.items()]
        effects = effects or [f"{count(summary.compared, 'pod')} compared"]
        texts = [f"not compared: {number:,} {why}" for why, number in summary.left_out.items()]
        if summary.undecided:
            pod, why = next(iter(summary.undecided.items()))
            texts.append(f"{count(len(summary.undecided), 'pod')} undecided, {pod} among them: {why}")
        details = [SEPARATOR.join(effects), *texts]
        pods = count(summary.not_repacked, "running pod")
        note = f"node usage is not compared; --nodes reschedules the {pods} one by one"
        details += [note] if summary.not_repacked else []
        repacking = summary.repacking
        if repacking is not None and repacking.before == repacking.after:
            details.append(_repacking_title(repacking))
        elif repacking is not None:
            tables.append(_repacking_table(repacking, sides))
            for unused, name in ((repacking.emptied_nodes, sides[1]), (repacking.filled_nodes, sides[0])):
                if unused:
                    facts.append(f"empty only with {name}: {list_names(unused, 6)}")
            for side, name in ((repacking.before, sides[0]), (repacking.after, sides[1])):
                if side.pending:
                    facts.append(f"pending with {name}: {list_names(side.pending, 4)}")
    note = names_note(names)
    return View(
        command="kschedx diff-profiles",
        headline=_comparison_headline(comparison),
        tone=_comparison_tone(comparison),
        details=tuple(details),
        facts=(Fact.of("nodes", *facts),) if facts else (),
        lists=(
            ItemList(
                title="Changes",
                noun="change",
                columns=(("pods", True), ("before", False), ("after", False)),
                items=items,
            ),
        ),
        tables=tuple(tables),
        notes=(note,) if items and note else (),
    )


def _changed_items(group: DifferenceGroup) -> Iterator[ViewItem]:
    """Yield a row for the pods with the same change, most pods first."""
    pods = group_pairs((pod_texts(difference), difference.pod) for difference in group.differences)
    for (before, after, facts), names in sorted(pods.items(), key=lambda entry: -len(entry[1])):
        yield ViewItem(
            title=list_names(names, 1),
            kind=_kind(group),
            values=(len(names), shown(before), shown(after)),
            facts=tuple(Fact.of("because", fact) for fact in facts),
            members=tuple(names) if len(names) > 1 else (),
        )


def _flow(summary: Summary, snapshot: Snapshot, sides: tuple[str, str]) -> Flow | None:
    """The flow between node pools, or between zones or nodes if there are no pools. None if no pod has a node."""
    repacking = summary.repacking
    if repacking is not None:
        title = f"Where {count(repacking.pods, 'pod goes', 'pods go')} if rescheduled one by one"
        moves = repacking.moves
    else:
        moves = Counter((it.old_node, it.new_node) for it in summary.differences if it.old_node and it.new_node)
        title = f"Where {count(sum(moves.values()), 'pod goes', 'pods go')} instead, each decided alone"
    labels = {node.name: node.metadata.labels for node in snapshot.cluster.nodes}
    keys = (*POOL_LABELS, *ZONE_LABELS)
    label = next((key for key in keys if any(key in its for its in labels.values())), "")
    pool_of = {name: its.get(label, "no pool") if label else "nodes" for name, its in labels.items()}
    are_nodes = not label and len(pool_of) <= _MOST_POOLS
    if are_nodes:
        pool_of = {name: name for name in pool_of}
    pool_of[""] = "pending"
    bands: Counter[tuple[str, str]] = Counter()
    for (old, new), pods in moves.items():
        bands[pool_of[old], pool_of[new]] += pods
    if not bands:
        return None
    pools = sorted({pool for pair in bands for pool in pair}, key=lambda pool: (pool == "pending", _natural(pool)))
    index = {pool: at for at, pool in enumerate(pools)}
    return Flow(
        title=title,
        sides=(visible(sides[0]), visible(sides[1])),
        pools=tuple(map(visible, pools)),
        in_use=()
        if repacking is None or are_nodes
        else tuple(_nodes_in_use(repacking, pool_of, pool) for pool in pools),
        moves=tuple((index[old], index[new], pods) for (old, new), pods in bands.most_common()),
    )


def _natural(name: str) -> list[str | int]:
    """Return a key that sorts pool-9 before pool-10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name))]


def _nodes_in_use(repacking: Repacking, pool_of: Mapping[str, str], pool: str) -> tuple[str, str]:
    """Return `3 of 4 nodes in use` for either profile; empty for pods that stay pending."""
    if pool == pool_of[""]:
        return "", ""
    members = {name for name, own in pool_of.items() if own == pool}
    used = (len(members.difference(side.unused)) for side in (repacking.before, repacking.after))
    before, after = (f"{number:,} of {count(len(members), 'node')} in use" for number in used)
    return before, after


# Two accounts of one pod side by side, with differences marked.

_MOST_NODES = 4  # nodes whose scores are shown: both sides' winners and the nodes behind them
_NOTHING = "–"
_MARK = "≠ "
_LONGEST_PLUGIN = len("NodeResourcesBalancedAllocation")


class _ComparisonRow(Struct, frozen=True, kw_only=True):
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
        before, after = before.for_nodes(nodes), after.for_nodes(nodes)
    story_rows = list(_rows(before, after))
    rows = list(
        _without_empty_sections(row for row in story_rows if row.is_title or row.differs or not only_differences)
    )
    size = max((cell_len(visible(row.label)) for row in rows if not row.is_title), default=8)
    size = min(size, max(width // 3, _LONGEST_PLUGIN))
    room = max((width - size - 8) // 2, 16)
    head = _ComparisonRow(label="", before=f"{names[0]} ({before.version})", after=f"{names[1]} ({after.version})")
    differs = any(row.differs for row in story_rows)
    sides = names if before.version == after.version else (head.before, head.after)
    title = f"{after.pod} {'differs' if differs else 'does not differ'}: {sides[0]} → {sides[1]}"
    lines = [
        *title_lines(title, Tone.BAD if differs else Tone.GOOD, width),
        BLANK,
        *_side_by_side(head, size, room, DIM),
    ]
    for row in rows:
        mark, style = (_MARK, BOLD) if row.differs else ("  ", "")
        lines += [BLANK, text(f"  {row.label}", BOLD)] if row.is_title else _side_by_side(row, size, room, style, mark)
    return lines


def _without_empty_sections(rows: Iterable[_ComparisonRow]) -> Iterator[_ComparisonRow]:
    title: _ComparisonRow | None = None
    for row in rows:
        if row.is_title:
            title = row
            continue
        if title is not None:
            yield title
            title = None
        yield row


def _side_by_side(row: _ComparisonRow, size: int, room: int, style: str, mark: str = "  ") -> list[StyledLine]:
    sides = (wrap(shown(side) or _NOTHING, room) for side in (row.before, row.after))
    lines: list[StyledLine] = []
    for label, first, second in zip_longest(wrap(shown(row.label), size), *sides, fillvalue=""):
        content = f"{_pad(label, size)}  {_pad(first, room)}  {second}".rstrip()
        lines.append(line(("  " if lines else mark, "yellow"), (content, style)))
    return lines


def _pad(content: str, size: int) -> str:
    return content + " " * (size - cell_len(visible(content)))


# --- rows


def _rows(before: Story, after: Story) -> Iterator[_ComparisonRow]:
    sides = (before, after)
    yield _row("outcome", (story.outcome.value for story in sides))
    yield _row("assigned to", (list_names(story.chosen, _MOST_NODES) for story in sides))
    yield _row("leads by", ("" if story.margin is None else f"{story.margin:,}" for story in sides))
    yield _row("fits on", (f"{story.feasible:,} of {count(len(story.nodes), 'node')}" for story in sides))
    yield _row("event", (story.message for story in sides))
    yield _row("preempts", (_preemption(story) for story in sides))
    first, second = _nodes_by_reason(before, after), _nodes_by_reason(after, before)
    if first or second:
        yield _ComparisonRow(label="rejected", is_title=True)
    for rejection in dict.fromkeys((*first, *second)):
        label = f"{rejection.plugin}: {', '.join(rejection.reasons)}"
        yield _row(label, (marks.get(rejection, "") for marks in (first, second)))
    yield from _scores(before, after)


def _row(label: str, sides: Iterable[str]) -> _ComparisonRow:
    first, second = sides
    return _ComparisonRow(label=label, before=first, after=second)


def _preemption(story: Story) -> str:
    texts = [f"{', '.join(preemption.victims)} on {preemption.node}" for preemption in story.preemptions[:2]]
    rest = f"; {count(len(story.preemptions) - 2, 'more node')}" if len(story.preemptions) > 2 else ""
    return " or ".join(texts) + rest


def _nodes_by_reason(story: Story, other: Story) -> dict[Rejection, str]:
    """Reasons to the nodes that have them. Nodes that the other side does not reject for that reason come first."""
    marks = dict.fromkeys(story.stops, "before any node")
    for number, rejection in enumerate(story.rejections):
        others = set(other.nodes_of(other.rejections.index(rejection))) if rejection in other.rejections else set()
        names = sorted(story.nodes_of(number), key=others.__contains__)
        if names:
            marks[rejection] = f"{count(len(names), 'node')}: {list_names(names, 3)}"
    return marks


def _scores(before: Story, after: Story) -> Iterator[_ComparisonRow]:
    sides = (before, after)
    for node in _interesting_nodes(before, after):
        row = before.row(node)
        if all(story.totals[row] < 0 for story in sides):
            continue
        yield _ComparisonRow(label=f"scores of {node}", is_title=True)
        yield _row("total", (f"{int(story.totals[row]):,}" if story.totals[row] >= 0 else "" for story in sides))
        for plugin in dict.fromkeys((*before.scores, *after.scores)):
            yield _row(plugin, (_score(story, plugin, row) for story in sides))


def _interesting_nodes(before: Story, after: Story) -> list[str]:
    """Return the winners, then the nodes behind them, then others whose scores differ."""
    names = [name for story in (before, after) for name in story.chosen[:1]]
    names += [story.nodes[row] for story in (before, after) if (row := story.runner_up) is not None]
    return list(dict.fromkeys((*names, *rescored_nodes(before, after))))[:_MOST_NODES]


def _score(story: Story, plugin: str, row: int) -> str:
    if plugin not in story.scores or story.totals[row] < 0:
        return ""
    weight = story.weights[plugin]
    number = int(story.scores[plugin][row])
    return f"{number // weight:,} × {weight} = {number:,}" if weight > 1 else f"{number:,}"


# What `kschedx why --watch` prints below the first screen: a headline and the differences for every change.


def print_change(difference: Difference, before: Story, after: Story, times: tuple[str, str]) -> None:
    """Print the headline and the differences. `times` are those of the two observations."""
    out = terminal.console()
    phrase = change_text(*pod_texts(difference)[:2])
    title = f"{times[1]} {difference.pod} {_effect_words(difference.effect, 1)}" + (f": {phrase}" if phrase else "")
    if before.total is None or after.total is None:
        before, after = _without_scores(before), _without_scores(after)  # there are no scores to compare with
    beside = story_lines(before, after, times, width=out.width, only_differences=True)
    terminal.write([BLANK, text(title, BOLD), *beside[1:]], out)  # without its own title


def _without_scores(story: Story) -> Story:
    return replace(story, weights={}, scores={}, totals=story.totals * 0 - 1)


def print_end(at: str, pod: str, node: str) -> None:
    """Print that the pod has a node, or, if `node` is empty, that it is gone."""
    phrase = f"is on node {node}" if node else "is gone"
    terminal.write([BLANK, text(f"{at} {pod} {phrase}", BOLD)], terminal.console())
