"""Words for those who take part in a decision and were not asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

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
        names = [one.name for one in deciding if one.kind is kind]
        match kind:
            case Kind.PLUGIN:
                noun = "the plugin" if len(names) == 1 else "the plugins"
                told.append(f"{noun} {listed(names, SHOWN)}, which kschedx does not have, {does}")
            case Kind.EXTENDER:
                noun = "the extender" if len(names) == 1 else "the extenders"
                told.append(f"{noun} at {listed(names, SHOWN)}, which nobody asked, {does}")
            case _:
                assert_never(kind)
    return "; ".join(told)
