"""A fix: what to change, and what was seen when it was tried. Facts; its title is made in `render/words/fixes.py`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from kschedx.fixes.changes import Change
from kschedx.fixes.steps import Step


class Certainty(StrEnum):
    VERIFIED = "verified"
    """With all changes applied the pod passes every filter on the nodes named."""
    PARTIAL = "partial"
    """This blocker goes; the title names those that remain."""


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is told."""

    steps: tuple[Step, ...]
    certainty: Certainty
    changes: tuple[Change, ...]
    """In the order in which they are to be made."""
    feasible_nodes: tuple[str, ...]
    """The nodes on which the pod then passes every filter."""
    remaining: Mapping[str, int]
    """Of a partial fix: plugin to the number of nodes that it still rejects, the first to do so or not."""
    deciding: tuple[str, ...] = ()
    """Who could still reject those nodes: plugins that kschedx does not have."""
    extender_decides: bool = False
    """An extender could too, which no trial asks."""
