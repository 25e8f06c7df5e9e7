"""A page as Markdown, for a ticket or a pull request. Every text of a page is harmless to terminals already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import assert_never

from kschedx.patterns import lazy_pattern
from kschedx.render.page import model
from kschedx.render.view import Timeline
from kschedx.wording import count, list_names

_MOST_ROWS = 20  # rows of a table, because a comment has to stay readable
_MOST_MEMBERS = 4  # pods of a row
_MOST_CHARACTERS = 60_000  # a GitHub comment holds 65,536

_MARKUP = lazy_pattern(r"([\\`*_{}\[\]<>#|~])")


def markdown(page: model.Page) -> str:
    """Return headline, causes, fixes, and event, then the tables. A pod's screen, which has more details, is folded at
    the end as text. Content beyond the size of a GitHub comment is omitted and counted."""
    lines = list(_lines(page))
    text: list[str] = []
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _MOST_CHARACTERS:
            return "\n".join([*text, "", f"{count(len(lines) - number, 'more line')} left out.", ""])
        text.append(line)
    return "\n".join(text).rstrip("\n") + "\n"


def _lines(page: model.Page) -> Iterator[str]:
    head = page.head
    yield f"## {head.tone.mark}{_plain(head.headline)}"
    yield ""
    yield from (f"- {_plain(detail)}" for detail in head.details)
    if head.because:
        yield f"- **because** {_plain(' · '.join(head.because))}"
    facts = [f"- **{_plain(label or 'and')}** {_plain(phrase)}" for label, phrase in head.facts]
    fixes = _fixes(head.fixes, head.no_fix)
    yield from (*fixes, *facts) if head.because else (*facts, *fixes)
    if head.event:
        yield f"- **event** {_plain(head.event)}"
    for decider in head.deciders:
        yield ""
        yield f"**{_plain(decider.name)}** {_plain(decider.sentence)}"
        yield ""
        yield from (f"- {_plain(text)}" for text, _ in decider.rows)
        yield from _fixes(decider.fixes, "")
        if decider.event:
            yield f"- **event** {_plain(decider.event)}"
    if head.notes:
        yield ""
        yield from (f"- **note** {_plain(note)}" for note in head.notes)
    for section in page.sections:
        yield ""
        yield from _section(section)
    if any(isinstance(section, model.VerdictSection) for section in page.sections):
        yield ""
        yield from _fold_details("as text", _fence(page.screen))
    if page.footer:
        yield ""
        yield " · ".join(f"{_plain(label)} {_plain(value)}" for label, value in page.footer)


def _fixes(fixes: Iterable[model.PageFix], no_fix: str) -> Iterator[str]:
    for number, fix in enumerate(fixes, start=1):
        seen = f" · {_plain(fix.seen)}" if fix.seen else ""
        yield f"- **fix {number}** {_plain(fix.title)}{seen}"
    if no_fix:
        yield f"- **no fix** {_plain(no_fix)}"


def _section(section: model.Section) -> Iterator[str]:
    match section:
        case model.Items():
            yield from _with_heading(section.title, _items(section))
        case model.VerdictSection():
            yield from _with_heading("Verdicts", _verdicts(section))
        case model.ScoreSection():
            yield from _with_heading("Scores", _scores(section))
        case model.Candidates():
            candidates = [
                (
                    f"**{_plain(candidate.node)}**" if candidate.best else _plain(candidate.node),
                    str(candidate.violations),
                    ", ".join(map(_plain, candidate.victims)),
                )
                for candidate in section.candidates
            ]
            yield from _with_heading("Preemption", _table(("node", "budget violations", "victims"), candidates))
        case model.Table():
            cells = [[_plain(str(cell)) for cell in row] for row in section.rows]
            labels = [_plain(column.label) for column in section.columns]
            yield from _with_heading(section.title, _table(labels, cells, section.left_out))
        case model.Usage():
            amounts = [
                [_plain(node), *map(_plain, amounts_of_node)]
                for node, amounts_of_node in zip(section.nodes, section.told, strict=True)
            ]
            yield from _with_heading(
                "Nodes before and after", _table(("node", *map(_plain, section.resources)), amounts)
            )
        case Timeline():
            decisions = len(section.text_of)
            shown = (f"- {_plain(decision)}" for decision in islice(section.decisions, _MOST_ROWS))
            yield from _fold_details(count(decisions, "decision"), shown)
        case model.HeatMap():
            columns = ("workload", "replicas", *map(_plain, section.columns))
            yield from _with_heading("Workloads by failure", _table(columns, list(_heat_rows(section))))
        case model.Histogram():
            rows = _table(("nodes with", *map(_plain, section.series)), list(_histogram_rows(section)))
            yield from _with_heading(section.title, rows)
        case model.Flow():
            yield from _with_heading(section.title, _flow(section))
        case _:
            assert_never(section)


def _with_heading(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"### {_plain(title)}"
    yield ""
    yield from lines


def _flow(section: model.Flow) -> Iterator[str]:
    pools = list(map(_plain, section.pools))
    moves = [(pools[old], pools[new], f"{pods:,}") for old, new, pods in section.moves]
    yield from _table((*map(_plain, section.sides), "pods"), moves)
    if section.in_use:
        yield ""
        used = [(pool, *map(_plain, sides)) for pool, sides in zip(pools, section.in_use, strict=True) if any(sides)]
        yield from _table(("pool", *map(_plain, section.sides)), used)


def _histogram_rows(section: model.Histogram) -> Iterator[list[str]]:
    for plot in section.plots:
        for at, bucket in enumerate(plot.buckets):
            numbers = [series[at] for series in plot.counts]
            if any(numbers):
                yield [_plain(f"{plot.label} {bucket}"), *(f"{number:,}" for number in numbers)]


def _heat_rows(section: model.HeatMap) -> Iterator[list[str]]:
    """Yield rows with `short: 6 → 4` in each cell."""
    for at, name in enumerate(section.rows):
        cells = zip(section.state[at], section.after[at], strict=True)
        texts = [
            f"{section.states[state]}: {section.replicas[at]:,} → {after:,}" if state else "" for state, after in cells
        ]
        yield [_plain(name), f"{section.replicas[at]:,}", *map(_plain, texts)]


def _items(section: model.Items) -> Iterator[str]:
    """Yield a row for each item, with its fixes in the last column."""
    rows = []
    for tone, title, values, detail in section.shown():
        phrases = (
            [_plain(list_names(detail.members[:_MOST_MEMBERS], _MOST_MEMBERS, len(detail.members) + detail.left_out))]
            if detail.members
            else []
        )
        phrases += [f"**{_plain(label)}** {_plain(text)}" if label else _plain(text) for label, text in detail.facts]
        phrases += [f"**fix** {_plain(' · '.join(filter(None, (fix.title, fix.seen))))}" for fix in detail.fixes]
        phrases += [f"**no fix** {_plain(detail.no_fix)}"] if detail.no_fix else []
        phrases += [f"**event** {_plain(detail.event)}"] if detail.event else []
        rows.append((f"{tone.mark}{_plain(title)}", *(_plain(str(cell)) for cell in values), "<br>".join(phrases)))
    yield from _table((section.noun, *(_plain(it.label) for it in section.columns), "details"), rows, section.left_out)


def _verdicts(section: model.VerdictSection) -> Iterator[str]:
    rows = []
    for members in section.groups:
        first = members[0]
        story = section.stories[section.story_of[first]]
        texts = [f"**{line.plugin}** {_plain(line.headline)}" for line in story if line.plugin]
        others = f" and {len(members) - 1:,} more" if len(members) > 1 else ""
        rows.append((_plain(section.nodes[first]) + others, str(len(members)), "<br>".join(texts) or "fits"))
    yield from _table(("nodes like", "count", "why"), rows)


def _scores(section: model.ScoreSection) -> Iterator[str]:
    heads = [f"{plugin} × {weight}" for plugin, weight in zip(section.plugins, section.weights, strict=True)]
    rows = []
    for number, (node, scores) in enumerate(zip(section.nodes, section.normalized, strict=True)):
        name = f"**{_plain(node)}**" if number < section.best else _plain(node)
        weighted = [f"{score * weight:,}" for score, weight in zip(scores, section.weights, strict=True)]
        rows.append((name, f"{section.totals[number]:,}", *weighted))
    yield from _table(("node", "total", *heads), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left_out: int = 0) -> Iterator[str]:
    """Yield a table of cells that are already Markdown. Rows beyond `_MOST_ROWS` and rows omitted before (`left_out`)
    are counted."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows[:_MOST_ROWS])
    left_out += max(len(rows) - _MOST_ROWS, 0)
    if left_out:
        yield ""
        yield f"{count(left_out, 'more row')}."


def _fold_details(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"


def _fence(content: str) -> Iterator[str]:
    """Yield a block of text unchanged; its fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield content
    yield fence


def _plain(words: str) -> str:
    """Return text without meaning to Markdown or HTML, and without mentions."""
    return _MARKUP.sub(r"\\\1", words).replace("@", "&#64;")
