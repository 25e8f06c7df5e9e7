"""The content of a page as plain data.

The browser renders each section with a function of the same name in `page.js`. All texts are data: the page sets them
as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.names import common_affixes
from kschedx.render.manifests import to_yaml
from kschedx.render.terminal import StyledLine
from kschedx.render.view import (
    Decider,
    FixView,
    ItemList,
    TableView,
    Timeline,
    Tone,
    View,
    ViewItem,
    identical,
    shared_value,
)
from kschedx.snapshot.snapshot import Snapshot
from kschedx.version import __version__
from kschedx.wording import Fact, visible

_MOST_MEMBERS = 12_000  # members of all rows together. If there are more, all rows have the same limit
_MOST_CHARACTERS = 1_200_000  # characters of one table's rows. Later rows are counted, so that a page stays below 3 MB
_MOST_OF_PAGE = 2_700_000
"""Characters of all tables and of the rows that open, with their details: the rows have what the tables leave."""
_OF_A_DETAIL = 30  # characters of a row's details besides their texts
SCREEN_WIDTH = 100  # columns of the screen that a page holds as text


class Line(Struct, frozen=True, kw_only=True, array_like=True):
    """One rejection in a node's account: the plugin, its verdict, the headline, and the labeled facts below it."""

    plugin: str
    code: str
    headline: str
    facts: tuple[tuple[str, str], ...] = ()


class VerdictSection(Struct, frozen=True, kw_only=True, tag="verdicts", tag_field="kind"):
    """Nodes by plugins. What many nodes share is stored once: cells in `patterns`, accounts in `stories`."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    codes: tuple[str, ...]  # the possible texts of a cell; a cell is an index into them
    patterns: tuple[tuple[int, ...], ...]  # (pattern, plugin) cells
    pattern_of: tuple[int, ...]  # (node,) an index into `patterns`
    verdict_of: tuple[int, ...]  # (node,) the plugin at which kube-scheduler stops, -1 if the node passes
    stories: tuple[tuple[Line, ...], ...]
    story_of: tuple[int, ...]  # (node,) an index into `stories`
    facets: tuple[Facet, ...]
    groups: tuple[tuple[int, ...], ...]  # the nodes of each row, nearest first; each node is in one row


class ScoreSection(Struct, frozen=True, kw_only=True, tag="scores", tag_field="kind"):
    """The feasible nodes, best first, with what each plugin contributes."""

    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    nodes: tuple[str, ...]
    best: int  # the number of nodes with the highest total, which come first
    raw: tuple[tuple[int, ...], ...]  # (node, plugin)
    normalized: tuple[tuple[int, ...], ...]
    totals: tuple[int, ...]


class CandidateRow(Struct, frozen=True, kw_only=True):
    node: str
    best: bool
    violations: int  # the number of PodDisruptionBudgets that the evictions would violate
    victims: tuple[str, ...]


class Candidates(Struct, frozen=True, kw_only=True, tag="candidates", tag_field="kind"):
    """Nodes on which preemption makes room, side by side."""

    candidates: tuple[CandidateRow, ...]


class _TableColumn(Struct, frozen=True, kw_only=True):
    label: str
    is_number: bool = False


class Table(Struct, frozen=True, kw_only=True, tag="table", tag_field="kind"):
    """Rows of short texts, which can be sorted and filtered."""

    title: str
    columns: tuple[_TableColumn, ...]
    rows: tuple[tuple[str | int, ...], ...]
    left_out: int = 0


class Usage(Struct, frozen=True, kw_only=True, tag="usage", tag_field="kind"):
    """The utilization of nodes before and after, in percent of allocatable."""

    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    before: tuple[tuple[int | None, ...], ...]
    """(node, resource); None if the node does not exist or has none of the resource."""
    after: tuple[tuple[int | None, ...], ...]
    told: tuple[tuple[str, ...], ...]  # (node, resource) the amounts in words


class HeatMap(Struct, frozen=True, kw_only=True, tag="heatmap", tag_field="kind"):
    """Workloads by failure: what each loses, and whether it survives."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    replicas: tuple[int, ...]  # (row,)
    states: tuple[str, ...]  # the possible texts of a cell, worst first; the first one means that nothing is lost
    state: tuple[tuple[int, ...], ...]  # (row, column) an index into `states`
    lost: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]  # (row, column) the number of replicas in the end


class Plot(Struct, frozen=True, kw_only=True):
    label: str
    buckets: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]  # (series, bucket)


class Histogram(Struct, frozen=True, kw_only=True, tag="histogram", tag_field="kind"):
    """The number of nodes in each bucket of a resource, for each series."""

    title: str
    series: tuple[str, ...]
    plots: tuple[Plot, ...]


class Flow(Struct, frozen=True, kw_only=True, tag="flow", tag_field="kind"):
    """Pods by the node pools to which two profiles assign them."""

    title: str
    sides: tuple[str, str]
    pools: tuple[str, ...]
    in_use: tuple[tuple[str, str], ...]  # (pool,) the nodes in use with either profile; empty if that is not known
    moves: tuple[tuple[int, int, int], ...]  # pool before, pool after, and number of pods; most pods first


class Facet(Struct, frozen=True, kw_only=True):
    """A property by which nodes can be filtered: zone, pool, instance type."""

    label: str
    values: tuple[str, ...]
    of: tuple[int, ...]  # (node,) an index into `values`


class Items(Struct, frozen=True, kw_only=True, tag="items", tag_field="kind"):
    """The rows of an answer, each of which opens on demand. Equal details are stored once in `details`."""

    title: str
    noun: str
    columns: tuple[_TableColumn, ...]  # the columns after the first, which is the row's title
    kinds: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]  # Tone, an index into `kinds`, title, then the columns' values
    details: tuple[_RowDetail, ...]
    detail_of: tuple[int, ...]
    left_out: int
    omitted: tuple[str, str]  # what the names of all nodes begin and end with, which the browser omits from the rows
    groups: tuple[_Group, ...] = ()  # the rows, as long as not every row is shown; empty if no rows are identical

    def shown(self) -> Iterator[tuple[Tone, str, tuple[str | int, ...], _RowDetail]]:
        """Yield tone, title, values, and details of each group, or of each row if there are no groups."""
        for group in self.groups or (
            _Group(rows=(at,), size=1, values=row[3:], detail=detail)
            for at, (row, detail) in enumerate(zip(self.rows, self.detail_of, strict=True))
        ):
            tone, _, title, *_ = self.rows[group.rows[0]]
            detail = self.details[group.detail]
            if group.size > 1:
                names = tuple(str(self.rows[row][2]) for row in group.rows)
                detail = replace(detail, members=names, left_out=group.size - len(names))
                title = f"{title} and {group.size - 1:,} more"
            yield Tone(str(tone)), str(title), group.values, detail


class _Group(Struct, frozen=True, kw_only=True, array_like=True):
    """Identical rows."""

    rows: tuple[int, ...]  # indices of the rows on the page
    size: int  # the number of identical rows, including those that the page has no room for
    values: tuple[str | int, ...]  # what all of them have: the same text, or a range of numbers
    detail: int  # the index of the details that all of them have. Their members are the titles of the rows


class _RowDetail(Struct, frozen=True, kw_only=True):
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()  # commands with which facts end
    event: str = ""
    fixes: tuple[PageFix, ...] = ()
    no_fix: str = ""
    members: tuple[str, ...] = ()
    left_out: int = 0  # members that do not fit on a page


class PageFix(Struct, frozen=True, kw_only=True):
    title: str
    seen: str
    copy: str  # kubectl commands, or, if there are none, the changes as patches and manifests


class _PageDecider(Struct, frozen=True, kw_only=True):
    """The decision of cluster-autoscaler or Karpenter."""

    name: str
    sentence: str
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    event: str
    recorded: str
    fixes: tuple[PageFix, ...]
    basis: tuple[str, ...]


class _PageHead(Struct, frozen=True, kw_only=True):
    """The part above the tables, in the order of the terminal."""

    headline: str
    tone: Tone
    details: tuple[str, ...]
    because: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    fixes: tuple[PageFix, ...]
    no_fix: str
    event: str
    deciders: tuple[_PageDecider, ...]
    notes: tuple[str, ...]


Section = Items | VerdictSection | ScoreSection | Candidates | Table | Usage | Timeline | HeatMap | Histogram | Flow


class Page(Struct, frozen=True, kw_only=True):
    """An answer to be shared: its view, then its tables."""

    title: str
    head: _PageHead
    sections: tuple[Section, ...]
    screen: str  # the first screen as text
    footer: tuple[tuple[str, str], ...] = ()  # what a citation needs: command, cluster, time, versions, and digest


def page_of(
    view: View,
    lines: Iterable[StyledLine],
    sections: Iterable[Section] = (),
    snapshot: Snapshot | None = None,
    cited: Iterable[tuple[str, str]] = (),
) -> Page:
    """Return a view with its screen of `SCREEN_WIDTH` columns and its plots; all its texts are harmless.

    The footer has what a citation needs: the `cited` entries, the snapshot's source, and the version. The command line
    adds the command.
    """
    read = () if snapshot is None else (("cluster", snapshot.source.text), ("taken", snapshot.taken or "unknown"))
    footer = (*cited, *read, ("kschedx", __version__))
    others = (*sections, *(_table(table) for table in view.tables if table.rows))
    room = _MOST_OF_PAGE - sum(len(msgspec.json.encode(section)) for section in others)
    itemses = []
    for rows in filter(lambda rows: rows.items, view.lists):
        itemses.append(_items(rows, room))
        room -= len(msgspec.json.encode(itemses[-1]))
    title = " · ".join(filter(None, (view.subject, view.command)))
    return Page(
        title=visible(title),
        head=_PageHead(
            headline=visible(view.headline),
            tone=view.tone,
            details=tuple(map(visible, view.details)),
            because=tuple(map(visible, (*view.because, *view.roots))),
            facts=_facts(view.facts),
            commands=_commands(view.facts),
            fixes=tuple(map(_fix, view.fixes)),
            no_fix=visible(view.no_fix),
            event=visible(view.event),
            deciders=tuple(map(_decider, view.deciders)),
            notes=tuple(map(visible, view.notes)),
        ),
        sections=(*itemses, *others),
        screen="\n".join(line.plain.rstrip() for line in lines),
        footer=tuple((label, visible(text)) for label, text in footer if text),
    )


def _facts(facts: Iterable[Fact]) -> tuple[tuple[str, str], ...]:
    return tuple((visible(fact.label), visible(" · ".join(fact.items))) for fact in facts)


def _commands(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(visible(fact.command) for fact in facts if fact.command)


def _fix(fix: FixView) -> PageFix:
    copy = "\n".join(fix.commands) or "---\n".join(map(to_yaml, fix.changes))
    seen = visible(" · ".join(filter(None, (fix.seen, fix.group))))
    return PageFix(title=visible(fix.title), seen=seen, copy=copy)


def _decider(decider: Decider) -> _PageDecider:
    return _PageDecider(
        name=decider.name,
        sentence=visible(decider.sentence),
        rows=tuple((visible(row.text), _facts(row.facts)) for row in decider.rows),
        event=visible(decider.event),
        recorded=visible(decider.recorded),
        fixes=tuple(map(_fix, decider.fixes)),
        basis=tuple(map(visible, decider.basis)),
    )


def _table(table: TableView) -> Table:
    """Return as many rows as a page has room for."""
    rows = [tuple(visible(cell) if isinstance(cell, str) else cell for cell in row) for row in table.rows]
    sizes = accumulate(len(msgspec.json.encode(row)) for row in rows)
    kept = sum(size <= _MOST_CHARACTERS for size in sizes)
    return Table(
        title=visible(table.title[:1].upper() + table.title[1:]),
        columns=_columns(table.columns),
        rows=tuple(rows[:kept]),
        left_out=len(rows) - kept,
    )


def _columns(columns: Iterable[tuple[str, bool]]) -> tuple[_TableColumn, ...]:
    return tuple(_TableColumn(label=visible(label), is_number=is_number) for label, is_number in columns)


def _items(item_list: ItemList, room: int) -> Items:
    """Return as many rows as fit into `room` characters, and at least one."""
    details: dict[_RowDetail, int] = {}
    detail_of: list[int] = []
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys(item.kind for item in item_list.items))}
    rows: list[tuple[str | int, ...]] = []
    share = _share([len(item.members) for item in item_list.items])
    size = 0
    known: set[tuple[str, str]] = set()
    for item in item_list.items:
        values = (visible(value) if isinstance(value, str) else value for value in item.values)
        row = (item.tone.value, kinds[item.kind], visible(item.title), *values)
        own = (fact for fact in item.own if fact.items != item.members)
        detail = _detail(item, (*item.facts, *own), item.members[:share])
        facts = [fact for fact in detail.facts if fact not in known]
        known.update(facts)
        without_members = () if detail in details else (facts, detail.event, detail.fixes, detail.no_fix)
        size += len(msgspec.json.encode((row, without_members))) + _OF_A_DETAIL
        if size > room and rows:
            break
        rows.append(row)
        detail_of.append(details.setdefault(detail, len(details)))
    groups: list[_Group] = []
    if item_list.identical_rows:
        place = {id(item): at for at, item in enumerate(item_list.items[: len(rows)])}
        for items in identical(item_list.items):
            shown = tuple(place[id(item)] for item in items if id(item) in place)
            if not shown:
                continue
            at = detail_of[shown[0]]
            if len(items) > 1:
                common = _detail(replace(items[0], members=()), items[0].facts, ())
                at = details.setdefault(common, len(details))
            columns = zip(*(rows[row][3:] for row in shown), strict=True)
            groups.append(_Group(rows=shown, size=len(items), values=tuple(map(shared_value, columns)), detail=at))
    return Items(
        title=item_list.title,
        noun=item_list.noun,
        columns=_columns(item_list.columns),
        kinds=tuple(map(visible, kinds)),
        rows=tuple(rows),
        details=tuple(details),
        detail_of=tuple(detail_of),
        left_out=len(item_list.items) - len(rows),
        omitted=common_affixes([item.title for item in item_list.items]) if item_list.noun == "node" else ("", ""),
        groups=tuple(groups) if any(group.size > 1 for group in groups) else (),
    )


def _detail(item: ViewItem, facts: Sequence[Fact], members: Sequence[str]) -> _RowDetail:
    return _RowDetail(
        facts=_facts(facts),
        commands=_commands(facts),
        event=visible(item.event),
        fixes=tuple(map(_fix, item.fixes)),
        no_fix=visible(item.no_fix),
        members=tuple(map(visible, members)),
        left_out=len(item.members) - len(members),
    )


def _share(sizes: list[int]) -> int:
    """Return how many members each row may keep, so that all keep at most `_MOST_MEMBERS`, and at least one each."""
    room = _MOST_MEMBERS
    for at, size in enumerate(sorted(sizes)):
        rows = len(sizes) - at
        if size * rows > room:
            return max(room // rows, 1)
        room -= size
    return _MOST_MEMBERS
