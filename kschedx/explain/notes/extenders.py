"""What became of the calls to HTTP extenders."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, TypeAlias

from kschedx.explain.notes.facts import NoteFacts


class ExtendersNotAsked(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "extender-not-asked"
    extenders: tuple[str, ...]
    """By their URLs."""
    stands: bool
    """The answer is the same whatever they would say."""
    choosing_victims: tuple[str, ...] = ()
    """Those that could change whom preemption evicts."""

    @property
    def facts(self) -> dict[str, object]:
        return {"extenders": list(self.extenders)}


class Consequence(Enum):
    """What an extender's failure leads to."""

    AS_IF_ABSENT = auto()
    """It may fail (ignorable)."""
    ENDS_FILTER = auto()
    NO_SCORES = auto()
    CANDIDATES_STAY = auto()
    """It may fail (ignorable)."""
    NO_EVICTION = auto()


class ExtenderFailed(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "extender-failed"
    url: str
    extender: int
    """Its place in the configuration."""
    error: str
    consequence: Consequence

    @property
    def facts(self) -> dict[str, object]:
        return {"extender": self.extender, "error": self.error}


class NodesDroppedSilently(NoteFacts, frozen=True, kw_only=True):
    """Nodes that extenders leave out without a reason."""

    id: ClassVar[str] = "extender-silent"
    nodes: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"nodes": list(self.nodes)}


class WholeNodesAnswered(NoteFacts, frozen=True, kw_only=True):
    """An extender sends back nodes and not their names."""

    id: ClassVar[str] = "extender-whole-nodes"
    extender: str

    @property
    def facts(self) -> dict[str, object]:
        return {"extender": self.extender}


ExtenderNote: TypeAlias = ExtendersNotAsked | ExtenderFailed | NodesDroppedSilently | WholeNodesAnswered
