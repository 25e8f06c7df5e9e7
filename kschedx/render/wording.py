"""What a finding becomes when it is put into words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A labelled line: `offers     350m = ...`."""

    label: str
    items: tuple[str, ...]
    """Set apart by ` · `."""
    rest: tuple[str, ...] = ()
    """`rest[n]` stands for all items after the first n, where there is no room for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A finding in words."""

    headline: str
    """Stands alone in a log: lower case, the number in it, no advice."""
    facts: tuple[Fact, ...] = ()
    brief: str = ""
    """What differs from node to node among nodes of one headline; empty where nothing does."""
