"""Words for those who take part in a decision and were not asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.api.kinds import KINDS
from kschedx.framework.unheard import Kind, Stake, Unheard
from kschedx.render.units import listed

SHOWN = 3


def could_reject(unheard: Iterable[Unheard]) -> str:
    """`the plugin Foo could reject it, and kschedx does not have that plugin`: why a pod that fits is undecided."""
    return _told(unheard, Stake.FIT, "could reject it")


def could_prefer(unheard: Iterable[Unheard]) -> str:
    """The same where the pod fits, and only its node is open."""
    return _told(unheard, Stake.NODE, "could prefer another of the nodes that fit")


def _told(unheard: Iterable[Unheard], stake: Stake, does: str) -> str:
    deciding = [one for one in unheard if one.stake is stake and not one.is_waived]
    told = []
    for kind in dict.fromkeys(one.kind for one in deciding):
        of_kind = [one for one in deciding if one.kind is kind]
        names = [one.name for one in of_kind]
        match kind:
            case Kind.PLUGIN:
                noun = "the plugin" if len(names) == 1 else "the plugins"
                told.append(f"{noun} {listed(names, SHOWN)}, which kschedx does not have, {does}")
            case Kind.EXTENDER:
                noun = "the extender" if len(names) == 1 else "the extenders"
                told.append(f"{noun} at {listed(names, SHOWN)}, which nobody asked, {does}")
            case Kind.SCHEDULER:
                told.append(f"the scheduler {names[0]} decides about it, and not kube-scheduler")
            case Kind.OBJECTS:
                told += map(not_in_the_dump, of_kind)
            case _:
                assert_never(kind)
    return "; ".join(told)


def not_in_the_dump(unheard: Unheard) -> str:
    """`PersistentVolumeClaim data-0 is not in this dump, which holds no persistentvolumeclaims`."""
    kind = KINDS[unheard.name]
    holds = f"it lacks {unheard.lacking}" if unheard.lacking else f"it holds no {kind.plural}"
    if not unheard.objects:
        return f"{kind.leaves} is not in this dump: {holds}"
    verb = "is" if len(unheard.objects) == 1 else "are"
    return f"{kind.name} {listed(unheard.objects, SHOWN)} {verb} not in this dump: {holds}"


def how_to_complete(unheard: Iterable[Unheard]) -> tuple[str, ...]:
    """The commands that complete a dump, a line each; none where nothing is lacking."""
    command = next((one.completed_by for one in unheard if one.completed_by), "")
    _, _, file = command.partition(" > ")
    return (command, f"kschedx why ... -s {file}   (beside the others)") if file else (command,) if command else ()
