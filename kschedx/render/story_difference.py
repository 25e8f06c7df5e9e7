"""One pod's two stories side by side; what differs stands out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from kschedx.explain.difference import rescored_nodes
from kschedx.explain.story import Rejection, Story
from kschedx.render import terminal
from kschedx.render.layout import BLANK, BOLD, DIM, cut, line, text, wrapped
from kschedx.render.safe import visible
from kschedx.render.units import count, listed

MOST_NODES = 4
"""Nodes whose scores are told: the winners of both sides and those behind them."""
NOTHING = "–"
MARK = "≠ "


class Row(Struct, frozen=True, kw_only=True):
    """One thing that both stories tell; a section's title has no sides."""

    label: str
    before: str = ""
    after: str = ""
    is_title: bool = False

    @property
    def differs(self) -> bool:
        return self.before != self.after


def print_stories(before: Story, after: Story, names: tuple[str, str]) -> None:
    """On standard output."""
    out = terminal.console()
    terminal.write(stories(before, after, names, width=out.width), out)


def stories(
    before: Story, after: Story, names: tuple[str, str], *, width: int, only_differences: bool = False
) -> list[Text]:
    """`names` are those of the sides."""
    if before.nodes != after.nodes:
        nodes = tuple(sorted({*before.nodes, *after.nodes}))
        before, after = before.on(nodes), after.on(nodes)
    told = list(_rows(before, after))
    rows = list(_without_empty_sections(row for row in told if row.is_title or row.differs or not only_differences))
    size = max((cell_len(visible(row.label)) for row in rows if not row.is_title), default=8)
    size = min(size, width // 3)
    room = max((width - size - 8) // 2, 16)
    titles = [visible(name) for name in (_title(names[0], before), _title(names[1], after))]
    head = f"  {'':{size}}  {cut(titles[0], room):{room}}  {cut(titles[1], room)}"
    lines = [text(f"{after.pod}: two stories", BOLD), BLANK, text(head.rstrip(), DIM)]
    if not any(row.differs for row in told):
        lines.append(text("  nothing differs"))
    for row in rows:
        lines += [BLANK, text(f"  {row.label}", BOLD)] if row.is_title else _beside(row, size, room)
    return lines


def _title(name: str, story: Story) -> str:
    return f"{name} ({story.version})"


def _without_empty_sections(rows: Iterable[Row]) -> Iterator[Row]:
    title: Row | None = None
    for row in rows:
        if row.is_title:
            title = row
            continue
        if title is not None:
            yield title
            title = None
        yield row


def _beside(row: Row, size: int, room: int) -> list[Text]:
    left = wrapped(visible(row.before) or NOTHING, room)
    right = wrapped(visible(row.after) or NOTHING, room)
    made = []
    for number in range(max(len(left), len(right))):
        label = cut(row.label, size) if number == 0 else ""
        first = left[number] if number < len(left) else ""
        second = right[number] if number < len(right) else ""
        mark = MARK if row.differs and number == 0 else "  "
        content = f"{_padded(label, size)}  {_padded(first, room)}  {second}".rstrip()
        made.append(line((mark, "yellow"), (content, BOLD if row.differs else "")))
    return made


def _padded(content: str, size: int) -> str:
    return content + " " * (size - cell_len(visible(content)))


# --- what is told


def _rows(before: Story, after: Story) -> Iterator[Row]:
    sides = (before, after)
    yield _row("outcome", (story.outcome.value for story in sides))
    yield _row("goes to", (listed(story.chosen, MOST_NODES) for story in sides))
    yield _row("ahead by", ("" if story.margin is None else f"{story.margin:,}" for story in sides))
    yield _row("fits on", (_fits(story) for story in sides))
    yield _row("event", (story.message for story in sides))
    yield _row("preempts", (_preemption(story) for story in sides))
    yield from _rejections(before, after)
    yield from _scores(before, after)


def _row(label: str, sides: Iterable[str]) -> Row:
    first, second = sides
    return Row(label=label, before=first, after=second)


def _fits(story: Story) -> str:
    return f"{story.feasible:,} of {count(len(story.nodes), 'node')}"


def _preemption(story: Story) -> str:
    told = [f"{one.node} without {', '.join(one.victims)}" for one in story.preemptions[:2]]
    rest = f"; {count(len(story.preemptions) - 2, 'more node')}" if len(story.preemptions) > 2 else ""
    return " or ".join(told) + rest


def _rejections(before: Story, after: Story) -> Iterator[Row]:
    """The reasons with their nodes, in the order in which they were met."""
    first, second = _by_reason(before, after), _by_reason(after, before)
    if first or second:
        yield Row(label="rejected", is_title=True)
    for rejection in dict.fromkeys((*first, *second)):
        label = f"{rejection.plugin}: {', '.join(rejection.reasons)}"
        yield _row(label, (found.get(rejection, "") for found in (first, second)))


def _by_reason(story: Story, other: Story) -> dict[Rejection, str]:
    """Reasons to the nodes that have them, those first that the other story does not reject so."""
    found = dict.fromkeys(story.stops, "before any node")
    for number, rejection in enumerate(story.rejections):
        others = set(other.nodes_of(other.rejections.index(rejection))) if rejection in other.rejections else set()
        names = sorted(story.nodes_of(number), key=others.__contains__)
        if names:
            found[rejection] = f"{count(len(names), 'node')}: {listed(names, 3)}"
    return found


def _scores(before: Story, after: Story) -> Iterator[Row]:
    sides = (before, after)
    for node in _interesting(before, after):
        row = before.row(node)
        if all(story.totals[row] < 0 for story in sides):
            continue
        yield Row(label=f"scores of {node}", is_title=True)
        yield _row("total", (f"{int(story.totals[row]):,}" if story.totals[row] >= 0 else "" for story in sides))
        for plugin in dict.fromkeys((*before.scores, *after.scores)):
            yield _row(plugin, (_score(story, plugin, row) for story in sides))


def _interesting(before: Story, after: Story) -> list[str]:
    """The winners, then those behind them, then others whose scores differ."""
    found = [name for story in (before, after) for name in story.chosen[:1]]
    found += [story.nodes[row] for story in (before, after) if (row := story.runner_up) is not None]
    return list(dict.fromkeys((*found, *rescored_nodes(before, after))))[:MOST_NODES]


def _score(story: Story, plugin: str, row: int) -> str:
    if plugin not in story.scores or story.totals[row] < 0:
        return ""
    weight = story.weights[plugin]
    number = int(story.scores[plugin][row])
    return f"{number // weight:,} × {weight} = {number:,}" if weight > 1 else f"{number:,}"
