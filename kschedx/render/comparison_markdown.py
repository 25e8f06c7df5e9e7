"""A profile difference as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kschedx.explain.difference import Group, Summary
from kschedx.explain.profile_changes import Change
from kschedx.explain.setup import Setup
from kschedx.render.comparison_words import (
    change_rows,
    compared,
    effect_counts,
    group_title,
    headline,
    left_out,
    pod_lines,
)
from kschedx.render.safe import visible
from kschedx.render.units import count

SHOWN = 20
"""Pods of a group; a comment has to be read."""

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None) -> str:
    """The same as the screen, as one document."""
    return "\n".join(_lines(before, after, changes, summary)) + "\n"


def _lines(before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None) -> Iterator[str]:
    yield f"## {_plain(headline(before, after))}"
    yield ""
    if changes:
        yield "| where | what | change |"
        yield "| --- | --- | --- |"
        for row in change_rows(changes, before, after):
            yield f"| {' | '.join(map(_plain, row))} |"
    else:
        yield "The configurations are the same."
    if summary is None:
        return
    yield ""
    yield f"**{compared(summary)}**"
    told = [*effect_counts(summary), *left_out(summary)]
    if told:
        yield ""
        yield from (f"- {_plain(one)}" for one in told)
    for group in summary.groups:
        yield from _group(group)


def _group(group: Group) -> Iterator[str]:
    yield ""
    yield f"### {_plain(group_title(group))}"
    yield ""
    yield "| pod | | |"
    yield "| --- | --- | --- |"
    for difference in group.differences[:SHOWN]:
        told, facts = pod_lines(difference)
        yield f"| {_plain(difference.pod)} | {_plain(told)} | {_plain('; '.join(facts))} |"
    if len(group.differences) > SHOWN:
        yield ""
        yield f"{count(len(group.differences) - SHOWN, 'more pod')}."


def _plain(words: str) -> str:
    """Text without meaning to Markdown or HTML, on one line."""
    return _MARKUP.sub(r"\\\1", visible(words))
