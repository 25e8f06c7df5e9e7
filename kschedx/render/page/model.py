"""What a page can hold, as plain data. The browser's side of each section is a function of the same name in `page.js`.

Every text is data: the page sets it as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from itertools import accumulate

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from kschedx.render.view import Decider, Fix, Tone, View
from kschedx.render.wording import Fact, visible
from kschedx.snapshot.snapshot import Snapshot

MOST_NODES = 20
"""Of a fix."""
MOST_MEMBERS = 12_000
"""Of all rows of an answer: a row has all of its own, or as many as any other."""
MOST_CHARACTERS = 1_200_000
"""Of the rows of one table. Later rows are counted, so that a page stays below 3 MB."""
SCREEN_WIDTH = 100
"""Columns of the screen that a page holds as text."""


class Line(Struct, frozen=True, kw_only=True, array_like=True):
    """One rejection in a node's story: the plugin, its verdict, the headline, and the labelled facts below it."""

    plugin: str
    code: str
    headline: str
    facts: tuple[tuple[str, str], ...] = ()


class Verdicts(Struct, frozen=True, kw_only=True, tag="verdicts", tag_field="kind"):
    """Nodes by plugins. What many nodes share is held once: cells in `patterns`, stories in `stories`."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    codes: tuple[str, ...]
    """What a cell can say; a cell is an index into it."""
    patterns: tuple[tuple[int, ...], ...]
    """(pattern, plugin) cells."""
    pattern_of: tuple[int, ...]
    """(node,) an index into `patterns`."""
    verdict_of: tuple[int, ...]
    """(node,) the plugin that kube-scheduler stops at, -1 where the node passes."""
    stories: tuple[tuple[Line, ...], ...]
    story_of: tuple[int, ...]
    """(node,) an index into `stories`."""
    facets: tuple[Facet, ...]
    groups: tuple[tuple[int, ...], ...]
    """Nodes that one row stands for, nearest first; each node is in one of them."""


class Scores(Struct, frozen=True, kw_only=True, tag="scores", tag_field="kind"):
    """The feasible nodes, best first, with what each plugin contributes."""

    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    nodes: tuple[str, ...]
    best: int
    """How many nodes share the highest total; they come first."""
    raw: tuple[tuple[int, ...], ...]
    """(node, plugin)."""
    normalized: tuple[tuple[int, ...], ...]
    totals: tuple[int, ...]


class Candidate(Struct, frozen=True, kw_only=True):
    node: str
    best: bool
    violations: int
    """PodDisruptionBudgets that the evictions would violate."""
    victims: tuple[str, ...]


class Candidates(Struct, frozen=True, kw_only=True, tag="candidates", tag_field="kind"):
    """Nodes on which preemption makes room, side by side."""

    candidates: tuple[Candidate, ...]


class Column(Struct, frozen=True, kw_only=True):
    label: str
    is_number: bool = False


class Timeline(Struct, frozen=True, kw_only=True, tag="timeline", tag_field="kind"):
    """The queue, decision by decision."""

    pending: tuple[int, ...]
    """(decision,) pods that are still pending after it."""
    placed: tuple[int, ...]
    evicted: tuple[int, ...]
    texts: tuple[str, ...]


class Table(Struct, frozen=True, kw_only=True, tag="table", tag_field="kind"):
    """Anything that is rows of short texts; can be sorted and filtered."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | int, ...], ...]
    left_out: int = 0
    """Rows that are too many for a page."""


class Usage(Struct, frozen=True, kw_only=True, tag="usage", tag_field="kind"):
    """How full nodes are before and after, in percent of what they offer."""

    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    before: tuple[tuple[int | None, ...], ...]
    """(node, resource); None where the node is not there or offers none of it."""
    after: tuple[tuple[int | None, ...], ...]
    told: tuple[tuple[str, ...], ...]
    """(node, resource) the amounts in words."""


class HeatMap(Struct, frozen=True, kw_only=True, tag="heatmap", tag_field="kind"):
    """Workloads by failure: what each loses, and whether it survives."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    replicas: tuple[int, ...]
    """(row,)"""
    states: tuple[str, ...]
    """What a cell can say, the worst first; the first is that nothing is lost."""
    state: tuple[tuple[int, ...], ...]
    """(row, column) an index into `states`."""
    lost: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    """(row, column) replicas in the end."""


class Plot(Struct, frozen=True, kw_only=True):
    label: str
    buckets: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """(series, bucket)."""


class Histogram(Struct, frozen=True, kw_only=True, tag="histogram", tag_field="kind"):
    """How many nodes have how much of a resource, once for each series."""

    title: str
    series: tuple[str, ...]
    plots: tuple[Plot, ...]


class Flow(Struct, frozen=True, kw_only=True, tag="flow", tag_field="kind"):
    """Pods by the node pools that two profiles place them in."""

    title: str
    sides: tuple[str, str]
    pools: tuple[str, ...]
    in_use: tuple[tuple[str, str], ...]
    """(pool,) the nodes in use with either profile; empty where that is not known."""
    moves: tuple[tuple[int, int, int], ...]
    """Pool before, pool after, pods; the most pods first."""


class Facet(Struct, frozen=True, kw_only=True):
    """A property of nodes to filter by: zone, pool, instance type."""

    label: str
    values: tuple[str, ...]
    of: tuple[int, ...]
    """(node,) an index into `values`."""


class Items(Struct, frozen=True, kw_only=True, tag="items", tag_field="kind"):
    """The rows of an answer; each opens on demand. Equal details stand once in `details`."""

    title: str
    noun: str
    columns: tuple[Column, ...]
    """After the first, which is the row's title."""
    kinds: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    """tone, an index into `kinds`, title, then the columns' values."""
    details: tuple[Detail, ...]
    detail_of: tuple[int, ...]
    left_out: int
    """Rows that are too many for a page."""


class Detail(Struct, frozen=True, kw_only=True):
    """What a row shows when it is opened."""

    facts: tuple[tuple[str, str], ...] = ()
    event: str = ""
    fixes: tuple[PageFix, ...] = ()
    no_fix: str = ""
    members: tuple[str, ...] = ()
    left_out: int = 0
    """Members that are too many for a page."""


class PageFix(Struct, frozen=True, kw_only=True):
    title: str
    seen: str
    copy: str
    """kubectl's commands, else the changes as patches and manifests."""
    nodes: tuple[str, ...] = ()


class PageDecider(Struct, frozen=True, kw_only=True):
    """cluster-autoscaler or Karpenter."""

    name: str
    sentence: str
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    event: str
    recorded: str
    fixes: tuple[PageFix, ...]
    basis: tuple[str, ...]


class Head(Struct, frozen=True, kw_only=True):
    """What stands above the tables, in the order of the terminal."""

    headline: str
    tone: Tone
    details: tuple[str, ...]
    because: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    fixes: tuple[PageFix, ...]
    no_fix: str
    event: str
    deciders: tuple[PageDecider, ...]
    notes: tuple[str, ...]


Section = Items | Verdicts | Scores | Candidates | Table | Usage | Timeline | HeatMap | Histogram | Flow


class Page(Struct, frozen=True, kw_only=True):
    """An answer to be shared: its view, then its tables."""

    title: str
    head: Head
    sections: tuple[Section, ...]
    screen: str
    """The first screen as text."""
    footer: tuple[tuple[str, str], ...] = ()
    """What a citation needs: command, cluster, time, versions, digest."""


def page_of(
    view: View,
    lines: Iterable[Text],
    sections: Iterable[Section] = (),
    snapshot: Snapshot | None = None,
    cited: Iterable[tuple[str, str]] = (),
) -> Page:
    """A view with its screen of `SCREEN_WIDTH` columns and its tables; every text is harmless from here on. The footer
    is what a citation needs: what is `cited`, where the snapshot is from, and the version; the command line adds
    itself."""
    source = () if snapshot is None else (("cluster", snapshot.source.text), ("taken", snapshot.source.taken))
    footer = (*cited, *source, ("kschedx", version("kschedx")))
    made = [_items(view)] if view.items else []
    title = " · ".join(filter(None, (view.subject, view.command)))
    return Page(
        title=visible(title),
        head=Head(
            headline=visible(view.headline),
            tone=view.tone,
            details=tuple(map(visible, view.details)),
            because=tuple(map(visible, (*view.because, *view.roots))),
            facts=_facts(view.facts),
            fixes=tuple(map(_fix, view.fixes)),
            no_fix=visible(view.no_fix),
            event=visible(view.event),
            deciders=tuple(map(_decider, view.deciders)),
            notes=tuple(map(visible, view.notes)),
        ),
        sections=(*made, *map(_bounded, sections)),
        screen="\n".join(line.plain.rstrip() for line in lines),
        footer=tuple((label, visible(text)) for label, text in footer if text),
    )


def _facts(facts: Iterable[Fact]) -> tuple[tuple[str, str], ...]:
    return tuple((visible(fact.label), visible(" · ".join(fact.items))) for fact in facts)


def _fix(fix: Fix) -> PageFix:
    copy = "\n".join(fix.commands) or fix.changes
    seen = visible(" · ".join(filter(None, (fix.seen, fix.group))))
    return PageFix(title=visible(fix.title), seen=seen, copy=copy, nodes=tuple(map(visible, fix.nodes[:MOST_NODES])))


def _decider(decider: Decider) -> PageDecider:
    return PageDecider(
        name=decider.name,
        sentence=visible(decider.sentence),
        rows=tuple((visible(row.text), _facts(row.facts)) for row in decider.rows),
        event=visible(decider.event),
        recorded=visible(decider.recorded),
        fixes=tuple(map(_fix, decider.fixes)),
        basis=tuple(map(visible, decider.basis)),
    )


def _bounded(section: Section) -> Section:
    if not isinstance(section, Table):
        return section
    sizes = accumulate(len(msgspec.json.encode(row)) for row in section.rows)
    kept = sum(size <= MOST_CHARACTERS for size in sizes)
    return replace(section, rows=section.rows[:kept], left_out=len(section.rows) - kept)


def _items(view: View) -> Items:
    details: dict[Detail, int] = {}
    detail_of: list[int] = []
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys(item.kind for item in view.items))}
    rows: list[tuple[str | int, ...]] = []
    share = _share([len(item.members) for item in view.items])
    size = 0
    for item in view.items:
        values = (visible(value) if isinstance(value, str) else value for value in item.values)
        row = (item.tone.value, kinds[item.kind], visible(item.title), *values)
        detail = Detail(
            facts=_facts(item.facts),
            event=visible(item.event),
            fixes=tuple(map(_fix, item.fixes)),
            no_fix=visible(item.no_fix),
            members=tuple(map(visible, item.members[:share])),
            left_out=max(len(item.members) - share, 0),
        )
        without_members = () if detail in details else (detail.facts, detail.event, detail.fixes)
        size += len(msgspec.json.encode((row, without_members)))
        if size > MOST_CHARACTERS and rows:
            break
        rows.append(row)
        detail_of.append(details.setdefault(detail, len(details)))
    return Items(
        title=view.list_title,
        noun=view.list_noun,
        columns=tuple(Column(label=label, is_number=is_number) for label, is_number in view.list_columns),
        kinds=tuple(map(visible, kinds)),
        rows=tuple(rows),
        details=tuple(details),
        detail_of=tuple(detail_of),
        left_out=len(view.items) - len(rows),
    )


def _share(sizes: list[int]) -> int:
    """How many members each row may keep, so that all keep at most `MOST_MEMBERS`, and at least one each."""
    room = MOST_MEMBERS
    for at, size in enumerate(sorted(sizes)):
        rows = len(sizes) - at
        if size * rows > room:
            return max(room // rows, 1)
        room -= size
    return MOST_MEMBERS
