"""What a page can hold, as plain data. The browser's side of each section is a function of the same name in `page.js`.

Every text is data: the page sets it as text, never as markup.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

SCREEN_WIDTH = 100
"""Columns of the screen that a page holds as text."""


class Tone(StrEnum):
    """How the answer's headline is marked, beside its words."""

    GOOD = "good"
    BAD = "bad"
    HELD = "held"
    PLAIN = "plain"


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


class Fix(Struct, frozen=True, kw_only=True):
    title: str
    certainty: str
    nodes: tuple[str, ...]
    changes: str
    """To be copied: kubectl's commands, else the changes as patches and manifests."""


class Fixes(Struct, frozen=True, kw_only=True, tag="fixes", tag_field="kind"):
    fixes: tuple[Fix, ...]


class Column(Struct, frozen=True, kw_only=True):
    label: str
    is_number: bool = False


class Table(Struct, frozen=True, kw_only=True, tag="table", tag_field="kind"):
    """Anything that is rows of short texts; can be sorted and filtered."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | int, ...], ...]


class Usage(Struct, frozen=True, kw_only=True, tag="usage", tag_field="kind"):
    """How full nodes are before and after, in percent of what they offer."""

    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    before: tuple[tuple[int | None, ...], ...]
    """(node, resource); None where the node is not there or offers none of it."""
    after: tuple[tuple[int | None, ...], ...]
    told: tuple[tuple[str, ...], ...]
    """(node, resource) the amounts in words."""


class Notes(Struct, frozen=True, kw_only=True, tag="notes", tag_field="kind"):
    notes: tuple[str, ...]


Section = Verdicts | Scores | Candidates | Fixes | Table | Usage | Notes


class Page(Struct, frozen=True, kw_only=True):
    title: str
    headline: str
    tone: Tone
    facts: tuple[tuple[str, str], ...]
    """Labelled lines under the headline."""
    screen: str
    """The first screen as text."""
    sections: tuple[Section, ...]
