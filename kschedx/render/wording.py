"""What a finding becomes when it is put into words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True):
    """A labelled line: `offers     350m = ...`."""

    label: str
    items: tuple[str, ...]
    """Set apart by ` · `."""
    rest: tuple[str, ...] = ()
    """`rest[n]` stands for all items after the first n, where there is no room for all of them."""
    whole: bool = False
    """Never shortened: an inequality is of no use in part."""


class Brief(Struct, frozen=True, kw_only=True):
    """A few words; those with the same lead and tail are told together: `short by 1650m cpu, 2Gi memory`."""

    lead: str = ""
    detail: str
    tail: str = ""


def brief_text(briefs: Iterable[Brief]) -> str:
    together: dict[tuple[str, str], list[str]] = {}
    for brief in briefs:
        together.setdefault((brief.lead, brief.tail), []).append(brief.detail)
    return "; ".join(lead + ", ".join(details) + tail for (lead, tail), details in together.items())


class Words(Struct, frozen=True, kw_only=True):
    """A finding in words."""

    headline: str
    """Stands alone in a log: lower case, the number in it, no advice."""
    shared: str = ""
    """The part of the headline that is true of every finding that is the `same_as` this one; empty where all of it is.
    `brief` tells the rest."""
    facts: tuple[Fact, ...] = ()
    brief: Brief | None = None
    """What differs from node to node among nodes of one headline; None where nothing does."""


class Reason(Struct, frozen=True, kw_only=True):
    """A reason explained, for `kschedx reason ID`. Its id is that of the finding, or of something that only an event's
    text says."""

    plugins: tuple[str, ...]
    """Those that give it."""
    means: str
    arises: str
    fixes: tuple[str, ...]
    """The usual ones, cheapest first; none where there is nothing to fix."""
