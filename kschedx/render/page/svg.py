"""A page as a picture card for a chat or a README: headline, causes, fixes, and the first rows."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kschedx.render.page.model import Items, Page, PageFix, ScoreSection, VerdictSection
from kschedx.render.terminal import wrap
from kschedx.wording import count

_MOST_ROWS = 12
MOST_FIXES = 3
_MOST_FACTS = 4
_COLUMNS = 92
_LINE, _CHARACTER, _MARGIN = 22, 8, 20
_FONT = "13px ui-monospace, Menlo, Consolas, monospace"

_STYLE = (
    f"text{{font:{_FONT};fill:#1b1f24;white-space:pre}}.paper{{fill:#ffffff;stroke:#d0d7de}}"
    ".head{font-weight:bold}.good{fill:#0b6b58}.bad{fill:#b3390f}.held,.open{fill:#7a5a00}.soft{fill:#57606a}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.paper{fill:#101418;stroke:#30363d}.good{fill:#5fd3b5}"
    ".bad{fill:#ff9f6e}.held,.open{fill:#e3c565}.soft{fill:#9aa6b2}}"
)


def svg(page: Page) -> str:
    """Return one picture that is readable on light and dark pages. Texts are text, never markup."""
    lines = list(_lines(page))
    width, height = _COLUMNS * _CHARACTER + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    body = "".join(
        f'<text x="{_MARGIN}" y="{_MARGIN + 14 + number * _LINE}" class="{style}">{escape(text)}</text>'
        for number, (style, text) in enumerate(lines)
        if text
    )
    label = escape(page.head.headline)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{label}"><title>{label}</title><style>{_STYLE}</style>'
        f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>{body}</svg>\n'
    )


def _lines(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the class and text of each line."""
    head = page.head
    for number, row in enumerate(wrap(head.tone.mark + head.headline, _COLUMNS)):
        yield f"head {head.tone.value}", row if number == 0 else f"  {row}"
    if head.because:
        yield from _labelled_rows("because", " · ".join(head.because))
    else:  # answers about many things have details and facts instead
        for phrase in head.details[:_MOST_FACTS]:
            yield from _labelled_rows("", phrase)
        for label, phrase in head.facts[:_MOST_FACTS]:
            yield from _labelled_rows(label, phrase)
    for decider in head.deciders:
        yield from _labelled_rows("also", f"{decider.name} {decider.sentence}")
    fixes = [*head.fixes, *(fix for decider in head.deciders for fix in decider.fixes)]
    fixes = fixes or list(dict.fromkeys(_fixes_of_rows(page)))
    for number, fix in enumerate(fixes[:MOST_FIXES], start=1):
        yield from _labelled_rows(f"fix {number}", " · ".join(filter(None, (fix.title, fix.seen))))
    if len(fixes) > MOST_FIXES:
        yield "soft", f"  {'':10}{count(len(fixes) - MOST_FIXES, 'more fix', 'more fixes')}"
    rows = list(_rows(page))
    if rows:
        yield "", ""
    for row in rows[:_MOST_ROWS]:
        for number, part in enumerate(wrap(row, _COLUMNS - 2)):
            yield "", part if number == 0 else f"  {part}"
    if len(rows) > _MOST_ROWS:
        yield "soft", count(len(rows) - _MOST_ROWS, "more row")


def _labelled_rows(label: str, text: str) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(wrap(text, _COLUMNS - 12)):
        yield "", f"  {label if number == 0 else '':10}{row}"


def _fixes_of_rows(page: Page) -> Iterator[PageFix]:
    """Yield the fixes of an answer's rows, in the order of the rows."""
    for section in page.sections:
        if isinstance(section, Items):
            yield from (fix for _, _, _, detail in section.shown() for fix in detail.fixes)


def _rows(page: Page) -> Iterator[str]:
    """Yield the rows of an answer about many things, or of the first table about one."""
    has_items = False
    for section in page.sections:
        match section:
            case Items():
                has_items = True
                for tone, title, values, _ in section.shown():
                    cells = zip(section.columns, values, strict=True)
                    texts = (
                        f"{column.label} {cell:,}" if isinstance(cell, int) else f"{column.label} {cell}"
                        for column, cell in cells
                        if cell
                    )
                    yield f"{tone.mark}{title}  {' · '.join(texts)}"
            case _ if has_items:
                return
            case VerdictSection():
                for members in section.groups:
                    story = section.stories[section.story_of[members[0]]]
                    why = next((f"✗ {line.plugin}: {line.headline}" for line in story if line.plugin), "✓ fits")
                    others = f" and {len(members) - 1:,} more" if len(members) > 1 else ""
                    yield f"{section.nodes[members[0]]}{others}  {why}"
                return
            case ScoreSection():
                yield from (f"{node}  {total:,}" for node, total in zip(section.nodes, section.totals, strict=True))
                return
            case _:
                continue
