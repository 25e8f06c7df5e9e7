"""The devices that a search finds for claims on a node, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kschedx.api.devices import (
    ResourceClaim,
)
from kschedx.findings import Finding, PluginMessage
from kschedx.plugins.dynamic_resources.pools import PooledDevice


class FailureError(Exception):
    """Something is wrong with a claim or a class; `str()` is what kube-scheduler says."""

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.finding = finding or PluginMessage(text=text)


class UnavailableError(Exception):
    """Nothing can be allocated on this node, for a reason that kube-scheduler tells."""


class Pick(Struct, frozen=True, kw_only=True):
    """A device for a request."""

    request: str
    """`request`, or `request/alternative`."""
    device: PooledDevice
    admin_access: bool = False
    share: Mapping[str, int] | None = None
    """What is taken of a device that claims share."""


Result = tuple[tuple[Pick, ...], ...]
"""Picks by claim."""


def check_node_selector(claim: ResourceClaim, picks: Sequence[Pick]) -> None:
    """The allocation says on which nodes its devices can be used; only one term of each slice can go into that."""
    for pick in picks:
        spec = pick.device.slice.spec
        source = pick.device.device if spec.per_device_node_selection else spec
        if source.node_name is not None or pick.device.device.binds_to_node:
            return
        terms = len(source.node_selector.node_selector_terms) if source.node_selector is not None else 0
        if terms > 1:
            wrong = f"unsupported ResourceSlice.NodeSelector with {terms} terms"
            raise FailureError(f"create NodeSelector for claim {claim.metadata.name}: {wrong}")
