"""Lines of a given width: labeled facts, hanging indents, and columns, measured in terminal cells.

All content of a line passes through `text`, which makes it harmless. Markup is never interpreted.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import IO, TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from msgspec import Struct
from rich.cells import cell_len

from kschedx.kube.names import common_affixes, families, short_names
from kschedx.patterns import lazy_pattern
from kschedx.render.view import Tone
from kschedx.wording import Fact, count, visible

if TYPE_CHECKING:
    from kschedx.snapshot.snapshot import Snapshot

INDENT = 2
LABEL = 10  # the width of a fact's label in columns, including the gap after it
SEPARATOR = " · "

BOLD, DIM, GOOD, BAD, OPEN = "bold", "dim", "green", "bold red", "yellow"
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
"""A style's words to the parameters of the terminal's control sequence (ECMA-48, SGR)."""
_MARKS = {"✓": GOOD, "✗": BAD}
_MARKED = lazy_pattern("([✓✗])")


_SHORT_NAMES: ContextVar[Mapping[str, str] | None] = ContextVar("short names", default=None)
_NAME = lazy_pattern(r"[A-Za-z0-9][-A-Za-z0-9.]*")


@contextmanager
def short_node_names(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Show these node names without their common prefix and domain on every line within the context. Yields the names
    by full name, to which others may be added."""
    names_by_full_name = {**short_names(names)}
    token = _SHORT_NAMES.set(names_by_full_name)
    try:
        yield names_by_full_name
    finally:
        _SHORT_NAMES.reset(token)


_Question = TypeVar("_Question")
_More = ParamSpec("_More")


def shortens(
    names_of: Callable[[_Question], Sequence[str]],
) -> Callable[
    [Callable[Concatenate[_Question, _More], list[StyledLine]]],
    Callable[Concatenate[_Question, _More], list[StyledLine]],
]:
    """Decorate a screen so that it shows short names of the nodes that `names_of` returns for its first argument."""

    def decorate(
        screen: Callable[Concatenate[_Question, _More], list[StyledLine]],
    ) -> Callable[Concatenate[_Question, _More], list[StyledLine]]:
        @wraps(screen)
        def shortened(question: _Question, /, *args: _More.args, **options: _More.kwargs) -> list[StyledLine]:
            names = names_of(question)
            is_part = _SHORT_NAMES.get() is not None
            with short_node_names(names):
                lines = screen(question, *args, **options)
            return lines if is_part else _with_note(lines, names)

        return shortened

    return decorate


class _HasSnapshot(Protocol):
    @property
    def snapshot(self) -> Snapshot: ...


_Answer = TypeVar("_Answer", bound=_HasSnapshot)


def snapshot_nodes(answer: _Answer) -> Sequence[str]:
    """Return the names of all nodes of an answer's snapshot, for `shortens`."""
    return answer.snapshot.cluster.names


def shown(content: str) -> str:
    """Return text as the screen shows it: harmless, with short names of nodes."""
    content = visible(content)
    short = _SHORT_NAMES.get()
    return _NAME.sub(lambda word: short.get(word[0], word[0]), content) if short else content


def names_note(names: Sequence[str]) -> str:
    """Return `names without gke-prod-euw4-`: what the short names of these nodes omit; empty if that is nothing."""
    omitted = " and ".join(affix for family in families(names) for affix in common_affixes(family) if affix)
    return f"names without {omitted}" if omitted else ""


def _with_note(lines: list[StyledLine], names: Sequence[str]) -> list[StyledLine]:
    """Add what the short names omit to a screen that has some and does not say it."""
    shown_text = " ".join(row.plain.strip() for row in lines)
    words = set(_NAME.findall(shown_text))
    shown = (family for family in families(names) if words.intersection(short_names(family).values()))
    note = names_note([name for family in shown for name in family])
    return lines if not note or note in shown_text else [*lines, text(note, DIM, exact=True)]


class StyledLine(Struct, frozen=True):
    parts: tuple[tuple[str, str], ...] = ()  # text and its style: words of `_CODES`, of which the last color counts
    headline: str = ""  # the whole headline that begins with this line

    @property
    def plain(self) -> str:
        return "".join(content for content, _ in self.parts)

    @property
    def cell_len(self) -> int:
        return cell_len(self.plain)

    def add_style(self, style: str) -> StyledLine:
        """Return the line with a further style on all of it."""
        return StyledLine(tuple((content, f"{own} {style}") for content, own in self.parts))


def text(content: str, style: str = "", *, exact: bool = False) -> StyledLine:
    """Return a part of a line. Control characters in `content` are shown, and ✓ and ✗ are colored. `exact` text keeps
    full node names."""
    content = visible(content) if exact else shown(content)
    parts = _MARKED.split(content) if "✓" in content or "✗" in content else (content,)
    return StyledLine(tuple((part, f"{style} {_MARKS[part]}" if part in _MARKS else style) for part in parts if part))


def line(*parts: str | tuple[str, str] | StyledLine) -> StyledLine:
    """Return a line of plain and `(content, style)` parts."""
    lines = (it if isinstance(it, StyledLine) else text(it) if isinstance(it, str) else text(*it) for it in parts)
    return StyledLine(tuple(part for content_line in lines for part in content_line.parts))


BLANK = StyledLine()


_LONGEST_ITEM = 3  # lines of a fact with a single item, which is not cut where it has no more


def fact_lines(fact: Fact, width: int, limit: int | None = None) -> list[StyledLine]:
    """Return `  label     item · item`, wrapped to at most `limit` lines; the other items are counted."""
    room = max(width - INDENT - LABEL, 20)
    if limit is None or fact.whole:
        rows = join_items(map(shown, fact.items), room)
    else:
        # no line has more items than cells
        items = [shown(item) for item in fact.items[: limit * room + 1]]
        rows = join_items(items, room)
        most = limit if len(fact.items) > 1 else max(limit, _LONGEST_ITEM)
        if len(rows) > most or len(items) < len(fact.items):
            rows = _shorten(fact, items, room, most)
    label = visible(fact.label)
    head = " " * INDENT + (label + " " * max(LABEL - cell_len(label), 1))
    return [
        line((head if number == 0 else " " * (INDENT + LABEL), DIM), row) for number, row in enumerate(rows or [""])
    ]


def fact_block(facts: Iterable[Fact], width: int, limit: int | None = None) -> list[StyledLine]:
    """Return the lines of several facts, of at most `limit` lines each."""
    return [row for fact in facts for row in fact_lines(fact, width, limit)]


def join_items(items: Iterable[str], room: int) -> list[str]:
    """Return lines of items joined by the separator, broken between items if possible and between words otherwise."""
    return _fold(items, SEPARATOR, room, wrap)


def _shorten(fact: Fact, items: Sequence[str], room: int, limit: int) -> list[str]:
    """Return as many of the first items as leave room for the number of the others. A single long item is cut."""
    number = len(fact.items)
    most = bisect_right(
        range(min(len(items), number - 1) + 1), limit, key=lambda shown: len(join_items(items[:shown], room))
    )
    for shown in range(most - 1, 0, -1):
        rest = fact.rest[shown] if shown < len(fact.rest) else f"{number - shown:,} more"
        rows = join_items([*items[:shown], rest], room)
        if len(rows) <= limit:
            return rows
    rows = join_items(items, room)[:limit]
    left = f" +{number - 1:,}" if number > 1 else "…"
    last = cut_end(rows[-1], room - cell_len(left))
    return [*rows[:-1], (last if number > 1 else last.removesuffix("…")) + left]


def wrap(content: str, room: int) -> list[str]:
    """Return the text in lines of at most `room` cells, broken at spaces. A longer word is broken, after punctuation if
    it has some near the end of the line."""
    return _fold(content.split(" "), " ", room, _parts) or [""]


_AFTER = "/.,:=@|;"


def _parts(word: str, room: int) -> Iterator[str]:
    while cell_len(word) > room:
        piece = next(_pieces(word, room))
        at = max(map(piece.rfind, _AFTER)) + 1
        piece = piece[:at] if 2 * at > len(piece) else piece
        yield piece
        word = word[len(piece) :]
    yield word


def _fold(parts: Iterable[str], between: str, room: int, broken: Callable[[str, int], Iterable[str]]) -> list[str]:
    """Return parts in lines of at most `room` cells. A part that is longer than a line is `broken`, and the next part
    continues its last line."""
    rows: list[str] = []
    current = ""
    for part in parts:
        longer = f"{current}{between}{part}" if current else part
        if cell_len(longer) <= room:
            current = longer
            continue
        if current:
            rows.append(current)
        *full, current = broken(part, room)
        rows.extend(full)
    return [*rows, current] if current else rows


def _pieces(word: str, room: int) -> Iterator[str]:
    piece, size = "", 0
    for character in word:
        cells = cell_len(character)
        if size + cells > room and piece:
            yield piece
            piece, size = "", 0
        piece, size = piece + character, size + cells
    yield piece


def cut_end(content: str, room: int) -> str:
    """Return the text in at most `room` cells, with an ellipsis at the end if it is cut."""
    content = shown(content)
    return content if cell_len(content) <= room else next(_pieces(content, max(room - 1, 1))).rstrip() + "…"


def paragraph(
    content: str, width: int, *, first: str = "", indent: int = 0, style: str = "", exact: bool = False
) -> list[StyledLine]:
    """Return a wrapped paragraph. `first` starts the first line; the others are indented by `indent`."""
    lead = cell_len(visible(first))
    indent = max(indent, lead)
    rows = wrap(visible(content) if exact else shown(content), max(width - indent, 20))
    return [
        line((first if number == 0 else " " * indent, DIM), text(row, style, exact=exact))
        for number, row in enumerate(rows)
    ]


def title_lines(content: str, tone: Tone, width: int) -> list[StyledLine]:
    """Return the first line of a screen: bold, marked, and in the color of its tone."""
    color = {Tone.GOOD: GOOD, Tone.BAD: BAD, Tone.HELD: OPEN, Tone.OPEN: OPEN, Tone.PLAIN: ""}[tone]
    style = f"{BOLD} {color.split()[-1]}" if color else BOLD
    first, *further = paragraph(content, width, first=tone.mark, style=style)
    return [StyledLine(first.parts, headline=visible(content)), *further]


def labelled_lines(
    label: str, content: str, width: int, *, further: int = 0, style: str = "", exact: bool = False
) -> list[StyledLine]:
    """A paragraph behind a label, as in the facts of a block. Its other lines are indented by `further` more cells."""
    first, indent = " " * INDENT + label.ljust(LABEL), INDENT + LABEL + further
    return paragraph(content, width, first=first, indent=indent, style=style, exact=exact)


def because_lines(causes: Sequence[str], width: int) -> list[StyledLine]:
    """Return the causes in one paragraph; empty if there are none."""
    return labelled_lines("because", SEPARATOR.join(causes), width) if causes else []


def columns(
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    indent: int = 0,
    header: bool = False,
    width: int | None = None,
    name: int = 0,
    below: Sequence[Sequence[str]] = (),
) -> list[StyledLine]:
    """Return rows as aligned columns, two spaces apart. `right` are the right-aligned columns, `below` has the items
    below each row, of which none is broken if it fits in a line.

    If the columns are wider than `width`, a long cell of the column `name` is not cut: it has its own line above its
    row.
    """
    cells = [[shown(cell) for cell in row] for row in rows]
    sizes = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        others = indent + sum(size + 2 for size in sizes) - sizes[name] - 2
        sizes[name] = min(sizes[name], max(width - others, cell_len(cells[0][name])))
    lines = []
    for number, row in enumerate(cells):
        style = DIM if header and number == 0 else ""
        if cell_len(row[name]) > sizes[name]:
            lead = " " * indent + "".join(f"{cell}  " for cell in _pad_row(row[:name], sizes, right))
            lines += paragraph(row[name], width or len(row[name]), first=lead, style=style)
            row = [*[""] * (name + 1), *row[name + 1 :]]
        lines.append(text((" " * indent + "  ".join(_pad_row(row, sizes, right))).rstrip(), style))
        if below and below[number]:
            items = join_items(below[number], (width or _DEFAULT_WIDTH) - indent - INDENT)
            lines += [text(" " * (indent + INDENT) + item, DIM) for item in items]
    return lines


def _pad_row(row: Sequence[str], sizes: Sequence[int], right: frozenset[int]) -> list[str]:
    gaps = [" " * (size - cell_len(cell)) for cell, size in zip(row, sizes, strict=False)]
    return [gap + cell if at in right else cell + gap for at, (cell, gap) in enumerate(zip(row, gaps, strict=True))]


def more(left: int, noun: str = "", rest: str = "") -> list[StyledLine]:
    """Return `  3 more nodes: -o wide shows all`; empty if none are left."""
    phrase = count(left, f"more {noun}") if noun else f"{left:,} more"
    return [text(f"  {phrase}{rest}: -o wide shows all", DIM)] if left > 0 else []


def fits(content: str, width: int) -> bool:
    return cell_len(shown(content)) <= width


# Where the text goes: whether it has colors, as kubectl decides it, and its width.

_FORCED_BY = ("FORCE_COLOR", "CLICOLOR_FORCE")
_DEFAULT_WIDTH = 100  # the width if standard output is not a terminal and COLUMNS is not set


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Whether to use colors. NO_COLOR forbids them; FORCE_COLOR and CLICOLOR_FORCE force them. A dumb terminal and a
    pipe have none."""
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name) not in (None, "", "0") for name in _FORCED_BY):
        return True
    return is_terminal and environment.get("TERM", "") not in ("", "dumb")


def width_of(stream: IO[str], environment: Mapping[str, str]) -> int:
    """Return COLUMNS, else the width of the terminal, also behind a pager, else `_DEFAULT_WIDTH`; at least 60."""
    written = environment.get("COLUMNS", "")
    if written.isdecimal() and int(written):
        return max(int(written), 60)
    if stream.isatty():
        return max(shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns, 60)
    return max(_width_behind_pipe(stream) or _DEFAULT_WIDTH, 60)


def _width_behind_pipe(stream: IO[str]) -> int:
    """Return the width of the terminal of standard error if the text goes to a pipe, as `| less` shows it there; 0
    without such a terminal."""
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
        return os.get_terminal_size(sys.stderr.fileno()).columns if is_pipe else 0
    except (OSError, ValueError, AttributeError):
        return 0


class _Console(Struct, frozen=True, kw_only=True):
    file: IO[str]
    width: int
    has_color: bool


def console(stream: IO[str] | None = None, environment: Mapping[str, str] | None = None) -> _Console:
    stream = sys.stdout if stream is None else stream
    environment = os.environ if environment is None else environment
    return _Console(
        file=stream,
        width=width_of(stream, environment),
        has_color=wants_colour(stream.isatty(), environment),
    )


def write(lines: Iterable[StyledLine], out: _Console) -> None:
    """Print lines one below the other, without trailing blanks. A character that the stream's encoding lacks is shown
    as an escape."""
    encoding = getattr(out.file, "encoding", None) or "utf-8"
    for content_line in lines:
        plain = content_line.plain.rstrip()
        written = _encodable(plain, encoding)
        out.file.write((_color(content_line, len(plain)) if out.has_color and written is plain else written) + "\n")
    out.file.flush()


def _color(content_line: StyledLine, length: int) -> str:
    """Return the first characters of a line with the terminal's control sequences."""
    written = []
    for content, style in content_line.parts:
        content, length = content[:length], max(length - len(content), 0)
        codes = {code if len(code) == 1 else "color": code for code in map(_CODES.__getitem__, style.split())}
        sequence = ";".join(sorted(codes.values()))
        written.append(f"\x1b[{sequence}m{content}\x1b[0m" if sequence and content else content)
    return "".join(written)


_PLAIN = {"✓": "+", "✗": "x", "·": "-", "…": "~", "×": "x", "‖": "="}
"""Replacements of kschedx's own marks for terminals without these characters."""


def _encodable(content: str, encoding: str) -> str:
    try:
        content.encode(encoding)
    except UnicodeEncodeError:
        plain = "".join(_PLAIN.get(character, character) for character in content)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return content
