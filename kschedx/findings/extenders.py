"""What HTTP extenders said."""

from __future__ import annotations

from typing import ClassVar

from kschedx.findings.facts import Facts


class RefusedByExtender(Facts, frozen=True, kw_only=True):
    """An extender answered with the node among those that failed."""

    reason: ClassVar[str] = "extender-refused"
    url: str
    message: str
    """The extender's own words; they may be empty."""
    is_resolvable: bool
    """Evicting pods might help, as far as the extender says."""


class DroppedByExtender(Facts, frozen=True, kw_only=True):
    """An extender was asked about the node, left it out of its answer, and said nothing about it."""

    reason: ClassVar[str] = "extender-dropped"
    url: str


ExtenderFinding = RefusedByExtender | DroppedByExtender
