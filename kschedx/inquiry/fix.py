"""A fix as it is told: with its title."""

from __future__ import annotations

from msgspec import Struct

from kschedx import fixes
from kschedx.fixes import Change, FixCertainty
from kschedx.fixes.owners import Owner, owner_change
from kschedx.fixes.steps import Step
from kschedx.kube.types import Pod
from kschedx.render.words.fixes import fix_commands, fix_title


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is told."""

    title: str
    certainty: FixCertainty
    changes: tuple[Change, ...]
    """In the order in which they are to be made."""
    feasible_nodes: tuple[str, ...]
    """The nodes on which the pod then passes every filter."""
    steps: tuple[Step, ...]
    commands: tuple[str, ...] = ()
    """kubectl's commands that do it; none where it takes a patch."""

    apply: tuple[Change, ...] = ()
    """What somebody would send: the same changes, those of the pod made to its owner's template where that is known."""

    @classmethod
    def of(cls, found: fixes.Fix, owner: Owner | None, pod: Pod) -> Fix:
        sent = tuple(one for one in found.changes if not one.by)
        apply = sent if owner is None else tuple(owner_change(one, owner, pod) for one in sent)
        return cls(
            title=fix_title(found),
            certainty=found.certainty,
            changes=found.changes,
            feasible_nodes=found.feasible_nodes,
            steps=found.steps,
            commands=fix_commands(found),
            apply=apply,
        )

    def to_dict(self) -> dict[str, object]:
        told: dict[str, object] = {
            "title": self.title,
            "certainty": self.certainty.value,
            "changes": [change.to_dict() for change in self.changes],
            "feasibleNodes": list(self.feasible_nodes),
        }
        if self.apply != tuple(one for one in self.changes if not one.by):
            told["apply"] = [change.to_dict() for change in self.apply]
        return told
