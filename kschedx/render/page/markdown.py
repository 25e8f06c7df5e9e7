"""A page as Markdown, for a ticket or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from kschedx.render.page.model import Candidates, Fixes, Notes, Page, Scores, Section, Table, Usage, Verdicts
from kschedx.render.wording import count, listed

MOST_ROWS = 20
"""Of a table; a comment has to be read."""
MOST_NODES = 4

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(page: Page) -> str:
    """Headline, facts, then the sections in order; a pod's story, which says more, is folded at the end as text."""
    return "\n".join(_lines(page)).rstrip("\n") + "\n"


def _lines(page: Page) -> Iterator[str]:
    yield f"## {plain(page.headline)}"
    yield ""
    for label, told in page.facts:
        yield f"- **{plain(label)}** {plain(told)}"
    for section in page.sections:
        yield ""
        yield from _section(section)
    if any(isinstance(section, Verdicts) for section in page.sections):
        yield ""
        yield from folded("as text", fenced(page.screen))


def _section(section: Section) -> Iterator[str]:
    match section:
        case Fixes():
            yield "### Fixes"
            yield ""
            for number, fix in enumerate(section.fixes, start=1):
                nodes = f": fits {plain(listed(fix.nodes, MOST_NODES))}" if fix.nodes else ""
                yield f"{number}. {plain(fix.title)} ({fix.certainty}{nodes})"
        case Notes():
            yield "### Notes"
            yield ""
            yield from (f"- {plain(note)}" for note in section.notes)
        case Verdicts():
            yield "### Verdicts"
            yield ""
            yield from _verdicts(section)
        case Scores():
            yield "### Scores"
            yield ""
            yield from _scores(section)
        case Candidates():
            yield "### Preemption"
            yield ""
            rows = [
                (
                    f"**{plain(one.node)}**" if one.best else plain(one.node),
                    str(one.violations),
                    ", ".join(map(plain, one.victims)),
                )
                for one in section.candidates
            ]
            yield from table(("node", "budget violations", "victims"), rows)
        case Table():
            yield f"### {plain(section.title)}"
            yield ""
            cells = [[plain(str(cell)) for cell in row] for row in section.rows]
            yield from table([plain(column.label) for column in section.columns], cells)
        case Usage():
            yield "### Nodes"
            yield ""
            amounts = [[plain(node), *map(plain, told)] for node, told in zip(section.nodes, section.told, strict=True)]
            yield from table(("node", *map(plain, section.resources)), amounts)
        case _:
            assert_never(section)


def _verdicts(section: Verdicts) -> Iterator[str]:
    rows = []
    for members in section.groups:
        first = members[0]
        story = section.stories[section.story_of[first]]
        told = [f"**{line.plugin}** {plain(line.headline)}" for line in story if line.plugin]
        others = f" and {len(members) - 1:,} more" if len(members) > 1 else ""
        rows.append((plain(section.nodes[first]) + others, str(len(members)), "<br>".join(told) or "fits"))
    yield from table(("nodes like", "count", "why"), rows)


def _scores(section: Scores) -> Iterator[str]:
    heads = [f"{plugin} × {weight}" for plugin, weight in zip(section.plugins, section.weights, strict=True)]
    rows = []
    for number, (node, scores) in enumerate(zip(section.nodes, section.normalized, strict=True)):
        name = f"**{plain(node)}**" if number < section.best else plain(node)
        weighted = [f"{score * weight:,}" for score, weight in zip(scores, section.weights, strict=True)]
        rows.append((name, f"{section.totals[number]:,}", *weighted))
    yield from table(("node", "total", *heads), rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells are Markdown already. Rows beyond `MOST_ROWS` are counted."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield ""
        yield f"{count(len(rows) - MOST_ROWS, 'more row')}."


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"


def fenced(content: str) -> Iterator[str]:
    """A block of text as it is; the fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield content
    yield fence


def plain(words: str) -> str:
    """Text without meaning to Markdown or HTML, which mentions nobody."""
    return _MARKUP.sub(r"\\\1", words).replace("@", "&#64;")
