"""All nodes in a table: requested, free, the largest pod that fits, and the columns that distinguish them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise
from typing import assert_never

from msgspec import Struct
from rich.cells import cell_len

from kschedx.grouping import group_pairs
from kschedx.inquiry.node import NodeRow, Use, total
from kschedx.kube.names import PODS
from kschedx.kube.quantity import Unit
from kschedx.render import terminal
from kschedx.render.layout import head_lines
from kschedx.render.page.model import SCREEN_WIDTH, Histogram, Page, Plot, page_of
from kschedx.render.terminal import BLANK, StyledLine, columns, more, shortens
from kschedx.render.view import ItemList, Tone, View, ViewItem
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import Fact, count, price_text

_MOST_NODES = 16  # rows of the first screen
_MOST_BROKEN = 10  # rows of the first screen if each has two lines
_ALWAYS = ("cpu", "memory", "largest pod")  # the columns that stay in the table
_FIRST_OUT, _LAST_OUT = ("taints", "type", "bought as", "pool", "zone"), ("pods",)
"""The columns that leave the table first and last if there is no room; extended resources leave between them."""
_GAP = 2
_CORE, _GIB, _MIB = 1000, 2**30, 2**20


class _Column(Struct, frozen=True, kw_only=True):
    label: str
    cell: Callable[[NodeRow], str]
    is_number: bool = False


def _columns(rows: Sequence[NodeRow]) -> list[_Column]:
    """Return the columns that distinguish nodes, or show what is free on them."""

    def use(name: str) -> Callable[[NodeRow], str]:
        return lambda row: _use(name, row.resources.get(name))

    names = dict.fromkeys(name for row in rows for name in row.resources if name not in ("cpu", "memory"))
    extended = [name for name in names if any(row.resources.get(name, Use()).requested for row in rows) or "/" in name]
    all_columns = [
        _Column(label="cpu", cell=use("cpu"), is_number=True),
        _Column(label="memory", cell=use("memory"), is_number=True),
        *(_Column(label=_label(name, extended), cell=use(name), is_number=True) for name in extended),
        _Column(label="pods", cell=lambda row: f"{row.pods.requested}/{row.pods.allocatable}", is_number=True),
        _Column(label="largest pod", cell=_largest_pod),
        _Column(label="zone", cell=lambda row: row.zone),
        _Column(label="pool", cell=lambda row: row.pool),
        _Column(label="type", cell=lambda row: row.type),
        _Column(label="bought as", cell=_bought),
        _Column(label="taints", cell=lambda row: ", ".join(row.taints)),
    ]
    return [column for column in all_columns if column.label in _ALWAYS or any(column.cell(row) for row in rows)]


def _label(resource: str, others: Sequence[str]) -> str:
    """Return `gpu` for `nvidia.com/gpu`, unless another resource has the same label."""
    last = resource.rpartition("/")[2]
    return last if sum(name.rpartition("/")[2] == last for name in others) == 1 else resource


def _largest_pod(row: NodeRow) -> str:
    """Return the most cpu and memory that one more pod can request; `none` if no pod fits."""
    if not row.is_open:
        return "none"
    parts = [f"{_amount(name, row.largest(name))} {name}" for name in ("cpu", "memory") if row.largest(name)]
    return ", ".join(part.removesuffix(" memory") for part in parts) or "no requests"


def _bought(row: NodeRow) -> str:
    price = "" if row.price is None else f"{price_text(row.price)}/h"
    return " ".join(filter(None, (row.capacity_type, price)))


def _amount(resource: str, number: int) -> str:
    """Return an amount of at most five digits, rounded down, because it may be typed as a request."""
    match Unit.of(resource):
        case Unit.MILLI:
            return f"{_round_down(number, _CORE, 100):g}"
        case Unit.BYTE:
            return (
                f"{_round_down(number, _GIB, 10):g}Gi"
                if abs(number) >= _GIB
                else f"{number // _MIB}Mi"
                if number
                else "0"
            )
        case Unit.COUNT:
            return f"{number:,}"
        case other:
            assert_never(other)


def _round_down(number: int, unit: int, parts: int) -> float:
    return (number * parts // unit) / parts


def _use(resource: str, use: Use | None) -> str:
    return "" if use is None else "/".join(_amount(resource, number) for number in (use.requested, use.allocatable))


def _node_names(rows: Sequence[NodeRow]) -> Sequence[str]:
    return [row.name for row in rows]


@shortens(_node_names)
def nodes_lines(rows: Sequence[NodeRow], width: int, *, wide: bool = False, sort: str = "") -> list[StyledLine]:
    """Return headline, totals, and a row for each node; `wide` shows every node and column. `sort` is the column by
    which they are sorted."""
    view = _nodes_view(rows)
    lines = head_lines(view, width)
    [nodes] = view.lists
    table, left = _table(nodes, None if wide else width, sort)
    lines += [BLANK, *table] if rows else []
    return lines + more(left, nodes.noun)


def _table(nodes: ItemList, width: int | None, sort: str) -> tuple[list[StyledLine], int]:
    """Return the table, and how many nodes it omits. If `width` is None, it has every node and column; else columns
    without room are a second line below each row, and nodes with the same cells share a row if there are too many."""
    labels = [label for label, _ in nodes.columns]
    rows = [(item.kind, *map(str, item.values)) for item in nodes.items]
    cells = {
        label: [terminal.shown(row[at]) for row in rows]
        for at, label in enumerate(("status", *labels))
        if at or any(status != "Ready" for status, *_ in rows)
    }
    stays = {"free": "largest pod", "price": "bought as"}.get(sort, sort)
    extended = (label for label in labels if label not in (*_ALWAYS, *_FIRST_OUT, *_LAST_OUT))
    leaving = [
        label
        for label in (*_FIRST_OUT, *extended, *_LAST_OUT)
        if label in cells and label not in (stays, stays.rpartition("/")[2])
    ]
    numbers = {label for label, is_number in nodes.columns if is_number}
    gone: set[str] = set()
    below: list[str] = []
    alike = group_pairs((at if width is None or len(rows) <= _MOST_NODES else row, at) for at, row in enumerate(rows))
    groups = list(alike.values())
    while True:
        if width is not None:
            groups = groups[: _MOST_BROKEN if below else _MOST_NODES]
        are_alike = any(len(group) > 1 for group in groups)
        shown = [
            ["node", *(terminal.shown(nodes.items[group[0]].title) for group in groups)],
            *([["nodes", *(f"{len(group):,}" for group in groups)]] if are_alike else []),
            *([label, *(texts[group[0]] for group in groups)] for label, texts in cells.items() if label not in gone),
        ]
        if width is None or not leaving or sum(max(map(cell_len, texts)) + _GAP for texts in shown) <= width:
            break
        gone.add(last := leaving.pop(0))
        below = [last, *below] if len({*cells[last]}) > 1 else below  # it distinguishes rows
    right = frozenset(at for at, (label, *_) in enumerate(shown) if label in ("nodes", *numbers))
    second = [(), *(_second([(label, cells[label][group[0]]) for label in below], numbers) for group in groups)]
    table = columns(
        zip(*shown, strict=True), right=right, indent=_GAP, header=True, width=width, below=second if below else ()
    )
    return table, len(rows) - sum(map(len, groups))


def _second(cells: Sequence[tuple[str, str]], numbers: Set[str]) -> tuple[str, ...]:
    """Return `gpu 0/4`, `eu-west-1a`, and `spot`."""
    return tuple(f"{label} {cell}" if label in numbers or label == "taints" else cell for label, cell in cells if cell)


def _nodes_view(rows: Sequence[NodeRow]) -> View:
    """Return a view with a row for each node, in the order of `rows`."""
    uses = total(rows)
    usable = sum(row.is_open for row in rows)
    kept = _columns(rows)
    return View(
        command="kschedx nodes",
        headline=f"{count(len(rows), 'node')}, {usable:,} can take a pod",
        tone=Tone.GOOD if usable else Tone.BAD,
        facts=tuple(_total_facts(rows, uses)),
        lists=(
            ItemList(
                title="Nodes",
                noun="node",
                columns=tuple((column.label, column.is_number) for column in kept),
                items=tuple(
                    ViewItem(
                        title=row.name,
                        tone=Tone.GOOD if row.is_open else Tone.BAD,
                        kind=row.status.replace("Ready,SchedulingDisabled", "Ready, cordoned").removeprefix("Ready, "),
                        values=tuple(column.cell(row) for column in kept),
                        facts=tuple(_row_facts(row)),
                    )
                    for row in rows
                ),
                identical_rows=True,
            ),
        ),
    )


def nodes_page(rows: Sequence[NodeRow], snapshot: Snapshot) -> Page:
    shown = _fragmentation(rows)
    sections = (shown,) if shown.plots and len(rows) > 1 else ()
    return page_of(_nodes_view(rows), nodes_lines(rows, SCREEN_WIDTH), sections, snapshot)


def _fragmentation(rows: Sequence[NodeRow]) -> Histogram:
    """Return how many nodes still fit a pod of each size. The total free amount shows less, because it is spread over
    nodes."""
    plots = []
    for resource in [name for name in total(rows) if name in ("cpu", "memory") or "/" in name]:
        sizes = [row.largest(resource) for row in rows if resource in row.resources]
        if not any(sizes):
            continue
        first = _CORE // 2 if Unit.of(resource) is Unit.MILLI else _GIB if Unit.of(resource) is Unit.BYTE else 1
        limits = [0, first]
        while limits[-1] < max(sizes):
            limits.append(2 * limits[-1])
        counts = [sum(low < size <= high for size in sizes) for low, high in pairwise(limits)]
        plots.append(
            Plot(
                label=_label(resource, list(total(rows))),
                buckets=("none", *(f"up to {_amount(resource, high)}" for high in limits[1:])),
                counts=((sum(size == 0 for size in sizes), *counts),),
            )
        )
    return Histogram(title="Fragmentation: the largest pod that fits", series=("nodes",), plots=tuple(plots))


def _total_facts(rows: Sequence[NodeRow], uses: Mapping[str, Use]) -> list[Fact]:
    """Return the total requests, and the largest pod that fits next to the total free amount: the difference is
    fragmentation."""
    named = [name for name in uses if name in ("cpu", "memory", PODS) or "/" in name]
    facts = [Fact.of("requested", *(f"{name} {uses[name].percent}%" for name in named))] if named else []
    for name in named:
        most = {row.name: row.largest(name) for row in rows}
        free, best = sum(most.values()), max(most, key=most.__getitem__, default="")
        if name == PODS or not free:
            continue
        text = f"{_amount(name, free)} {name} in total, at most {_amount(name, most[best])} on one node ({best})"
        facts.append(Fact.of("free" if len(facts) == 1 else "", text))
    prices = [row.price for row in rows if row.price is not None]
    if prices:
        of = "" if len(prices) == len(rows) else f" for {len(prices):,} of {count(len(rows), 'node')}"
        facts.append(Fact.of("price", f"{price_text(sum(prices))} an hour{of}"))
    return facts


def _row_facts(row: NodeRow) -> list[Fact]:
    facts = [
        Fact.of(name, f"{_use(name, use)} requested", f"{_amount(name, use.free)} free")
        for name, use in row.resources.items()
    ]
    return [*facts, *([Fact.of("taints", *row.taints)] if row.taints else [])]
