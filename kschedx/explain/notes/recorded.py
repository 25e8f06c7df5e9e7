"""What the cluster's own kube-scheduler said of the pod, and how it differs."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.explain.notes.facts import NoteFacts


class FitsHere(Struct, frozen=True, kw_only=True):
    """kschedx finds a node for the pod."""


class OtherNodeCount(Struct, frozen=True, kw_only=True):
    there: int
    here: int


class Moved(Struct, frozen=True, kw_only=True):
    """A reason of both that rejects another number of nodes."""

    text: str
    there: int
    here: int


class OtherCounts(Struct, frozen=True, kw_only=True):
    moved: tuple[Moved, ...]


class OtherWords(Struct, frozen=True, kw_only=True):
    """Texts of theirs for a reason of both."""

    texts: tuple[str, ...]


class OfUnknownPlugin(Struct, frozen=True, kw_only=True):
    """Texts of theirs that no plugin has that kschedx knows."""

    texts: tuple[str, ...]


class NotFoundHere(Struct, frozen=True, kw_only=True):
    texts: tuple[str, ...]


class FoundHereOnly(Struct, frozen=True, kw_only=True):
    texts: tuple[str, ...]


class NoPreemptionThere(Struct, frozen=True, kw_only=True):
    """The event says nothing of preemption."""


class OtherPreemption(Struct, frozen=True, kw_only=True):
    """Preemption ended otherwise there."""


class OtherRelease(Struct, frozen=True, kw_only=True):
    """The same reasons with the same numbers, and other words."""


Contrast: TypeAlias = (
    FitsHere
    | OtherNodeCount
    | OtherCounts
    | OtherWords
    | OfUnknownPlugin
    | NotFoundHere
    | FoundHereOnly
    | NoPreemptionThere
    | OtherPreemption
    | OtherRelease
)


class RecordedEvent(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "recorded-event"
    message: str
    count: int
    last_seen: str
    """RFC 3339; empty where it is not known, and then neither is `count`."""
    contrasts: tuple[Contrast, ...]
    """None where kschedx says the same."""
