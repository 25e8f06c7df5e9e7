"""What a plugin says in words of its own."""

from __future__ import annotations

from typing import ClassVar

from kschedx.findings.facts import Facts


class PluginMessage(Facts, frozen=True, kw_only=True):
    """What a plugin says in its own words: an internal error, or a plugin from another package."""

    reason: ClassVar[str] = "plugin-message"
    text: str
