"""A page's picture: the score matrix where nodes were scored, the verdict map where none fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from kschedx.render.page.model import Page, Scores, Verdicts
from kschedx.render.wording import count

MOST_ROWS = 60
CELL, LINE, CHARACTER = 24, 22, 8
"""Sizes in pixels; CHARACTER is the width of one in the font below, at most."""
FONT = "13px ui-monospace, Menlo, Consolas, monospace"
MOST_NAME = 48
"""Characters of a name."""

LOOKS = {
    "Success": ("#e3f0ec", "#0b6b58", "·"),
    "Unschedulable": ("#f3b58b", "#3d1c00", "×"),
    "UnschedulableAndUnresolvable": ("#b3390f", "#ffffff", "■"),
    "Error": ("#5b2a86", "#ffffff", "!"),
}
"""A verdict's paper, ink and mark, as in the HTML file."""
OTHER = ("none", "#57606a", "")


def svg(page: Page) -> str:
    """One picture with its own white paper, so that it can be read on any page. Texts are text, never markup."""
    scores = next((section for section in page.sections if isinstance(section, Scores)), None)
    verdicts = next((section for section in page.sections if isinstance(section, Verdicts)), None)
    if scores is not None:
        return _picture(page.headline, *_score_matrix(scores))
    if verdicts is not None:
        return _picture(page.headline, *_verdict_map(verdicts))
    return _picture(page.headline, [], 0, 0)


def _picture(headline: str, body: list[str], width: float, height: float) -> str:
    width = max(width, len(headline) * CHARACTER + 24, 320)
    height += 56
    head = _text(12, 24, headline, weight="bold")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(headline)}" >'
        f'<style>text{{font:{FONT};fill:#1b1f24}}</style><rect width="100%" height="100%" fill="#ffffff"/>'
        f'{head}<g transform="translate(12 44)">{"".join(body)}</g></svg>\n'
    )


def _verdict_map(section: Verdicts) -> tuple[list[str], float, float]:
    names = [_group_name(section, members) for members in section.groups[:MOST_ROWS]]
    left = max(map(len, names), default=0) * CHARACTER + 12
    top = max(map(len, section.plugins), default=0) * CHARACTER + 8
    body = [
        f'<text transform="translate({left + at * CELL + 16:.0f} {top - 6:.0f}) rotate(-90)">{escape(plugin)}</text>'
        for at, plugin in enumerate(section.plugins)
    ]
    for row, members in enumerate(section.groups[:MOST_ROWS]):
        node, y = members[0], top + row * LINE
        body.append(_text(0, y + 15, names[row]))
        for at, cell in enumerate(section.patterns[section.pattern_of[node]]):
            paper, ink, mark = LOOKS.get(section.codes[cell], OTHER)
            frame = ' stroke="#1b1f24" stroke-width="2"' if section.verdict_of[node] == at else ""
            x = left + at * CELL
            body.append(
                f'<rect x="{x + 1:.0f}" y="{y + 1:.0f}" width="{CELL - 2}" height="{LINE - 2}" fill="{paper}"{frame}/>'
                f'<text x="{x + CELL / 2:.0f}" y="{y + 15:.0f}" text-anchor="middle" style="fill:{ink}">{mark}</text>'
            )
    height = top + len(names) * LINE
    if len(section.groups) > MOST_ROWS:
        height += LINE
        body.append(_text(0, height - 6, count(len(section.groups) - MOST_ROWS, "more row")))
    return body, left + len(section.plugins) * CELL + 24, height


def _group_name(section: Verdicts, members: tuple[int, ...]) -> str:
    others = f" +{len(members) - 1:,}" if len(members) > 1 else ""
    return _short(section.nodes[members[0]]) + others


def _score_matrix(section: Scores) -> tuple[list[str], float, float]:
    heads = [
        "total",
        *(f"{plugin} × {weight}" for plugin, weight in zip(section.plugins, section.weights, strict=True)),
    ]
    widths = [max(len(head), 8) * CHARACTER + 14 for head in heads]
    names = [_short(name) for name in section.nodes[:MOST_ROWS]]
    left = max(map(len, names)) * CHARACTER + 16
    highest = max(1, *section.totals)
    body = list(_cells(heads, widths, left, 15, weight="bold"))
    for row, name in enumerate(names):
        y = LINE * (row + 1)
        parts = [score * weight for score, weight in zip(section.normalized[row], section.weights, strict=True)]
        body.append(_text(0, y + 15, name, weight="bold" if row < section.best else "normal"))
        x = left
        for part, width in zip([section.totals[row], *parts], widths, strict=True):
            share = max(0.0, part / highest) * (width - 8)
            body.append(f'<rect x="{x:.0f}" y="{y + 3:.0f}" width="{share:.1f}" height="{LINE - 6}" fill="#bcd9ee"/>')
            x += width
        body += _cells([f"{value:,}" for value in (section.totals[row], *parts)], widths, left, y + 15)
    height = LINE * (len(names) + 1)
    if len(section.nodes) > MOST_ROWS:
        height += LINE
        body.append(_text(0, height - 6, count(len(section.nodes) - MOST_ROWS, "more node")))
    return body, left + sum(widths) + 12, height


def _cells(
    values: Sequence[str], widths: Sequence[float], left: float, y: float, *, weight: str = "normal"
) -> Iterator[str]:
    x = left
    for value, width in zip(values, widths, strict=True):
        yield _text(x + width - 10, y, value, weight=weight, anchor="end")
        x += width


def _text(x: float, y: float, content: str, *, weight: str = "normal", anchor: str = "start") -> str:
    bold = ' style="font-weight:bold"' if weight == "bold" else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{bold}>{escape(content)}</text>'


def _short(name: str) -> str:
    """Names differ at both ends."""
    if len(name) <= MOST_NAME:
        return name
    return f"{name[: MOST_NAME // 2]}…{name[-(MOST_NAME // 2 - 1) :]}"
