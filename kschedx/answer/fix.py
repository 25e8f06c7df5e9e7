"""A fix as it is told: with its title."""

from __future__ import annotations

from msgspec import Struct

from kschedx import fixes
from kschedx.fixes import Certainty, Change
from kschedx.render.words.fixes import commands, title


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is told."""

    title: str
    certainty: Certainty
    changes: tuple[Change, ...]
    """In the order in which they are to be made."""
    feasible_nodes: tuple[str, ...]
    """The nodes on which the pod then passes every filter."""
    commands: tuple[str, ...] = ()
    """kubectl's commands that do it; none where it takes a patch."""

    @classmethod
    def of(cls, found: fixes.Fix) -> Fix:
        return cls(
            title=title(found),
            certainty=found.certainty,
            changes=found.changes,
            feasible_nodes=found.feasible_nodes,
            commands=commands(found),
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "title": self.title,
            "certainty": self.certainty.value,
            "changes": [change.to_dict() for change in self.changes],
            "feasibleNodes": list(self.feasible_nodes),
        }
