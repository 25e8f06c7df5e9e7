"""Words of a comparison that stand on the screen and in its document."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.difference import LeftOut
from kschedx.explain.profile_changes import Unspelled


def left_out_text(why: LeftOut) -> str:
    match why:
        case LeftOut.OF_KUBELET:
            return "static pods, which a kubelet starts itself"
        case LeftOut.OF_OTHERS:
            return "pods of other schedulers"
        case _:
            assert_never(why)


def setting_text(value: str | Unspelled) -> str:
    match value:
        case Unspelled.PROFILE:
            return "a profile"
        case Unspelled.BY_CLUSTER_SIZE:
            return "by cluster size"
        case str():
            return value
        case _:
            assert_never(value)
