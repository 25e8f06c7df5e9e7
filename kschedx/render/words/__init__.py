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
from kschedx.render.words import constraints as node
from kschedx.render.words import constraints as topology
from kschedx.render.words import devices, pod, resources, volumes
from kschedx.render.words import pod as extenders
from kschedx.render.words import pod as scheduler_plugins
from kschedx.render.words import pod as text
from kschedx.render.words import volumes as claims

REASONS: Mapping[str, Reason] = (
    pod.POD_REASONS
    | node.NODE_REASONS
    | resources.RESOURCE_REASONS
    | topology.TOPOLOGY_REASONS
    | claims.CLAIM_REASONS
    | volumes.VOLUME_REASONS
    | devices.DEVICE_REASONS
    | extenders.EXTENDER_REASONS
    | scheduler_plugins.SCHEDULER_PLUGINS_REASONS
    | text.PLUGIN_MESSAGE_REASONS
)
"""Id to what `kschedx reason` says of it, in the order in which it lists them."""

REASON_IDS: tuple[str, ...] = tuple(REASONS)


def headline(finding: Finding) -> str:
    """One line in lower case with the number in it and no advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """A finding in words; `detail` adds what surrounds it on its node: parts of the request, holders."""
    if isinstance(finding, PodFinding):
        return pod.describe_pod(finding)
    if isinstance(finding, NodeFinding):
        return node.describe_node(finding)
    if isinstance(finding, ResourceFinding):
        return resources.describe_resource(finding, detail)
    if isinstance(finding, TopologyFinding):
        return topology.describe_topology(finding)
    if isinstance(finding, ClaimFinding):
        return claims.describe_claim(finding)
    if isinstance(finding, VolumeFinding):
        return volumes.describe_volume(finding)
    if isinstance(finding, DeviceFinding):
        return devices.describe_device(finding)
    if isinstance(finding, ExtenderFinding):
        return extenders.describe_extender(finding)
    if isinstance(finding, SchedulerPluginsFinding):
        return scheduler_plugins.describe_scheduler_plugins(finding)
    if isinstance(finding, PluginFinding | PluginMessage):
        return text.describe_plugin_message(finding)
    assert_never(finding)
