"""Findings in words: a headline that stands alone, the facts under it, and what differs from node to node.

A module per family; in it a reason's entry for `kschedx reason`, its headline and its lines stand side by side. Text is
data still: whatever prints it makes it harmless first (`safe.visible`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from kschedx.explain.diagnosis import NodeDetail
from kschedx.findings import (
    ClaimFinding,
    DeviceFinding,
    ExtenderFinding,
    Finding,
    NodeFinding,
    PluginFinding,
    PluginMessage,
    PodFinding,
    ResourceFinding,
    SchedulerPluginsFinding,
    TopologyFinding,
    VolumeFinding,
)
from kschedx.render.wording import Reason, Words
from kschedx.render.words import (
    claims,
    devices,
    extenders,
    node,
    pod,
    resources,
    scheduler_plugins,
    text,
    topology,
    volumes,
)

REASONS: Mapping[str, Reason] = (
    pod.REASONS
    | node.REASONS
    | resources.REASONS
    | topology.REASONS
    | claims.REASONS
    | volumes.REASONS
    | devices.REASONS
    | extenders.REASONS
    | scheduler_plugins.REASONS
    | text.REASONS
)
"""Id to what `kschedx reason` says of it, in the order in which it lists them."""

REASON_IDS: tuple[str, ...] = tuple(REASONS)


def headline(finding: Finding) -> str:
    """One line in lower case with the number in it and no advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """A finding in words; `detail` adds what surrounds it on its node: parts of the request, holders."""
    if isinstance(finding, PodFinding):
        return pod.describe(finding)
    if isinstance(finding, NodeFinding):
        return node.describe(finding)
    if isinstance(finding, ResourceFinding):
        return resources.describe(finding, detail)
    if isinstance(finding, TopologyFinding):
        return topology.describe(finding)
    if isinstance(finding, ClaimFinding):
        return claims.describe(finding)
    if isinstance(finding, VolumeFinding):
        return volumes.describe(finding)
    if isinstance(finding, DeviceFinding):
        return devices.describe(finding)
    if isinstance(finding, ExtenderFinding):
        return extenders.describe(finding)
    if isinstance(finding, SchedulerPluginsFinding):
        return scheduler_plugins.describe(finding)
    if isinstance(finding, PluginFinding | PluginMessage):
        return text.describe(finding)
    assert_never(finding)
