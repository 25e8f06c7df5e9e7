"""The view model: what an answer says, in its order, as plain data. Terminal, HTML, Markdown, SVG, notebook, and MCP
render it, so what one of them shows all can show.

Text is not escaped here; whatever prints it makes it harmless first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from kschedx.render.wording import Fact


class Tone(StrEnum):
    """How a headline is marked, beside its words."""

    GOOD = "good"
    BAD = "bad"
    HELD = "held"
    OPEN = "open"
    PLAIN = "plain"

    @property
    def mark(self) -> str:
        """Before the headline, with a space."""
        match self:
            case Tone.GOOD:
                return "✓ "
            case Tone.BAD:
                return "✗ "
            case Tone.HELD:
                return "‖ "
            case Tone.OPEN:
                return "? "
            case Tone.PLAIN:
                return ""
            case _:
                assert_never(self)


class Fix(Struct, frozen=True, kw_only=True):
    """A change that was tried."""

    title: str
    seen: str = ""
    """What was seen when it was tried: `fits node-1 and 2 more`, `adds 1 node to workers`."""
    nodes: tuple[str, ...] = ()
    """The nodes that the pod then fits."""
    commands: tuple[str, ...] = ()
    """kubectl's, which do all of it."""
    changes: str = ""
    """To be copied where there are no commands: patches and manifests."""
    group: str = ""
    """Whose business it is; empty where that is the same for all fixes."""

    @property
    def text(self) -> str:
        return " · ".join(filter(None, (self.title, self.seen)))


class Row(Struct, frozen=True, kw_only=True):
    """Node groups or NodePools that one reason excludes."""

    text: str
    facts: tuple[Fact, ...] = ()
    is_brief: bool = True
    """Shown in detail only where everything is shown, unless it comes first."""


class Decider(Struct, frozen=True, kw_only=True):
    """What cluster-autoscaler or Karpenter does about the pod."""

    name: str
    sentence: str
    rows: tuple[Row, ...] = ()
    event: str = ""
    recorded: str = ""
    """What it wrote into the cluster, or that it is the same."""
    fixes: tuple[Fix, ...] = ()
    basis: tuple[str, ...] = ()
    """What the answer goes by."""


class Item(Struct, frozen=True, kw_only=True):
    """One row of an answer about several things: a cause, a workload, a node, a gap of a dump."""

    title: str
    tone: Tone = Tone.PLAIN
    kind: str = ""
    """Rows of one kind are counted and shown together: `pending`, `blocked`."""
    values: tuple[str | int, ...] = ()
    """Cells of the columns that the list names."""
    facts: tuple[Fact, ...] = ()
    event: str = ""
    fixes: tuple[Fix, ...] = ()
    no_fix: str = ""
    members: tuple[str, ...] = ()
    """Identical pods or nodes that this row stands for."""


class View(Struct, frozen=True, kw_only=True):
    """An answer: headline, causes, fixes, event; then who else decides, and the rows that it is about."""

    command: str
    """`kschedx why`."""
    subject: str = ""
    headline: str
    tone: Tone
    details: tuple[str, ...] = ()
    """Sentences below the headline."""
    because: tuple[str, ...] = ()
    """Causes, the commonest first."""
    roots: tuple[str, ...] = ()
    """What lies behind the causes, a sentence each."""
    facts: tuple[Fact, ...] = ()
    fixes: tuple[Fix, ...] = ()
    no_fix: str = ""
    event: str = ""
    """kube-scheduler's own text, exact."""
    deciders: tuple[Decider, ...] = ()
    items: tuple[Item, ...] = ()
    list_title: str = ""
    list_noun: str = "row"
    list_columns: tuple[tuple[str, bool], ...] = ()
    """Label of each of an item's values, and whether it is a number."""
    notes: tuple[str, ...] = ()
