"""A fix as it is reported: with its title."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx import fixes
from kschedx.fixes import Change, FixCertainty
from kschedx.fixes.owners import Owner, delivery, owner_change
from kschedx.fixes.steps import Cost, Group, Step
from kschedx.inquiry.document import Covered, FixDocument
from kschedx.kube.documents import Json, part_of, to_json
from kschedx.kube.types import Pod
from kschedx.render.words.fixes import delivery_text, fix_commands, fix_costs, fix_title


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is listed."""

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
    """What a user would send: the same changes, those of the pod made to its owner's template where that is known."""

    of_group: Group | None = None
    """Of a fix without steps."""
    costs: tuple[str, ...] = ()
    """What it costs others: where the pods of a deleted pod's controller land, which budget is used."""

    @classmethod
    def of(cls, found: fixes.Fix, owner: Owner | None, pod: Pod, *, is_stored: bool = False) -> Fix:
        """`is_stored`: the cluster has the pod, so that a new template has to reach it."""
        sent = tuple(one for one in found.changes if not one.by)
        apply = sent if owner is None else tuple(owner_change(one, owner, pod) for one in sent)
        title = fix_title(found)
        reaches = found.trial.is_delivered or not is_stored or apply == sent
        if owner is not None and not reaches and (left := delivery(owner, pod)) is not None:
            title += f", then {delivery_text(left, owner, pod)}"
            apply = (*apply, *(one for one in left.changes if one not in apply))
        return cls(
            title=title,
            certainty=found.certainty,
            changes=found.changes,
            feasible_nodes=found.feasible_nodes,
            steps=found.steps,
            commands=fix_commands(found),
            apply=apply,
            costs=(*fix_costs(found), *(() if owner is None or apply == sent else _owners(owner))),
        )

    @classmethod
    def untried(
        cls,
        title: str,
        changes: tuple[Change, ...] = (),
        *,
        commands: tuple[str, ...] = (),
        of_group: Group | None = None,
    ) -> Fix:
        """What an operator would do that no trial can show."""
        return cls(
            title=title,
            certainty=FixCertainty.UNTRIED,
            changes=changes,
            feasible_nodes=(),
            steps=(),
            commands=commands,
            apply=changes,
            of_group=of_group,
        )

    @property
    def group(self) -> Group:
        """Whose business it is: that of its most expensive step."""
        if self.of_group is not None:
            return self.of_group
        return max(self.steps, key=lambda step: step.cost).group if self.steps else Group.WORKLOAD

    @property
    def adds_node(self) -> bool:
        return [step.cost for step in self.steps] == [Cost.NEW_NODE]

    def to_dict(self) -> Json:
        return to_json(self.document())

    def document(self, covered: Covered | None = None) -> FixDocument:
        sent = tuple(one for one in self.changes if not one.by)
        return part_of(
            FixDocument,
            self,
            certainty=self.certainty.value,
            group=self.group.value,
            changes=tuple(one.document for one in self.changes),
            apply=None if self.apply == sent else tuple(one.document for one in self.apply),
            replicas=covered,
        )


def _owners(owner: Owner) -> Iterator[str]:
    """That a controller of another's writes the template, and perhaps as it was."""
    if owner.above:
        yield f"change it in {owner.above}, which may revert {owner.kind} {owner.name}"
