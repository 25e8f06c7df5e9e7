"""What is wrong with the cluster where a pod fits no node: nodes that are unwell, a resource that nobody offers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kschedx.explain.grouping import NodeGroup
from kschedx.explain.hardware_hints import HardwareHint
from kschedx.findings import InsufficientResource, UntoleratedTaint
from kschedx.findings.node import FAULTS


class UnwellNodes(Struct, frozen=True, kw_only=True):
    """Nodes on which the pod would fit if they were well; what is wrong with the first of them."""

    nodes: int
    first: str
    fault: UntoleratedTaint


class OfferedNowhere(Struct, frozen=True, kw_only=True):
    resource: str
    hardware: HardwareHint | None
    """The nodes whose labels tell of it."""


Cause = UnwellNodes | OfferedNowhere


def cause_of(groups: Sequence[NodeGroup], hardware: Iterable[HardwareHint]) -> Cause | None:
    """None where it is the pod that asks for what the cluster has otherwise."""
    for group in groups:
        for one in group.exemplar.findings:
            if isinstance(one, InsufficientResource) and one.offered_nowhere:
                hint = next((hint for hint in hardware if hint.resource == one.resource), None)
                return OfferedNowhere(resource=one.resource, hardware=hint)
    for group in groups:
        match group.exemplar.findings:
            case (UntoleratedTaint(key=key) as fault,) if key in FAULTS:
                return UnwellNodes(nodes=group.count, first=group.exemplar.name, fault=fault)
            case _:
                pass
    return None
