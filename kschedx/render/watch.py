"""What `kschedx why --watch` prints below the first screen: a headline for every change, and what differs."""

from __future__ import annotations

from msgspec.structs import replace
from rich.text import Text

from kschedx.explain.difference import Difference
from kschedx.explain.story import Story
from kschedx.render import terminal
from kschedx.render.comparison_words import effect_words, pod_lines
from kschedx.render.layout import BLANK, BOLD, text
from kschedx.render.story_difference import stories


def print_change(difference: Difference, before: Story, after: Story, times: tuple[str, str]) -> None:
    """On standard output, which may be a pipe: nothing is kept back."""
    out = terminal.console()
    terminal.write([BLANK, *change(difference, before, after, times, width=out.width)], out)
    out.file.flush()


def change(difference: Difference, before: Story, after: Story, times: tuple[str, str], *, width: int) -> list[Text]:
    """`times` are those of the two looks."""
    told, _ = pod_lines(difference)
    title = f"{times[1]} {difference.pod} {effect_words(difference.effect, 1)}" + (f": {told}" if told else "")
    if before.total is None or after.total is None:
        before, after = _without_scores(before), _without_scores(after)  # there is nothing to hold them against
    beside = stories(before, after, times, width=width, only_differences=True)
    return [text(title, BOLD), *beside[1:]]  # without the title of its own


def _without_scores(story: Story) -> Story:
    return replace(story, weights={}, scores={}, totals=story.totals * 0 - 1)


def print_end(at: str, pod: str, node: str) -> None:
    """The pod has a node, or is gone where that is empty."""
    out = terminal.console()
    terminal.write([BLANK, text(f"{at} {pod} " + (f"is on node {node}" if node else "is gone"), BOLD)], out)
