"""What a plugin says in words of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.findings.facts import Facts

Value: TypeAlias = str | int | bool | tuple[str, ...]


class PluginMessage(Facts, frozen=True, kw_only=True):
    """A text and nothing else: an internal error, or what is known of a status that has no finding."""

    reason: ClassVar[str] = "plugin-message"
    text: str


class PluginFinding(Facts, frozen=True, kw_only=True):
    """A reason of a plugin from another package: facts of its choice, and the words for them."""

    reason: ClassVar[str] = "plugin-finding"
    id: str
    """What the document carries as the reason."""
    headline: str
    lines: tuple[tuple[str, str], ...] = ()
    """Label and text of what is shown below the headline."""
    facts: tuple[tuple[str, Value], ...] = ()
    """For the document: name, in camelCase, and value."""
    shortfall: float = 1.0
    """How far the node is from passing, compared with others that are rejected for this reason."""

    @property
    def same_as(self) -> Hashable:
        return self.id, self.headline

    @property
    def distance(self) -> float:
        return self.shortfall

    def to_dict(self) -> dict[str, object]:
        told: dict[str, object] = {"reason": self.id}
        told |= {name: list(value) if isinstance(value, tuple) else value for name, value in self.facts}
        return told


class Explained(Struct, frozen=True, kw_only=True):
    """What `kschedx reason ID` says of a plugin's own reason."""

    means: str
    arises: str
    fixes: tuple[str, ...] = ()
    """The usual ones, cheapest first."""
