"""Findings in words: a headline that stands alone, the facts under it, and what differs from node to node.

A module per family: a reason's entry for `kschedx reason`, its headline, and its facts stand side by side. Text is
not escaped here; whatever prints it calls `wording.visible` first.
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
from kschedx.render.words.constraints import NODE_REASONS, TOPOLOGY_REASONS, describe_node, describe_topology
from kschedx.render.words.devices import DEVICE_REASONS, describe_device
from kschedx.render.words.pod import (
    EXTENDER_REASONS,
    PLUGIN_MESSAGE_REASONS,
    POD_REASONS,
    SCHEDULER_PLUGINS_REASONS,
    describe_extender,
    describe_plugin_message,
    describe_pod,
    describe_scheduler_plugins,
)
from kschedx.render.words.resources import RESOURCE_REASONS, describe_resource
from kschedx.render.words.volumes import CLAIM_REASONS, VOLUME_REASONS, describe_claim, describe_volume

REASONS: Mapping[str, Reason] = (
    POD_REASONS
    | NODE_REASONS
    | RESOURCE_REASONS
    | TOPOLOGY_REASONS
    | CLAIM_REASONS
    | VOLUME_REASONS
    | DEVICE_REASONS
    | EXTENDER_REASONS
    | SCHEDULER_PLUGINS_REASONS
    | PLUGIN_MESSAGE_REASONS
)
"""By id, in the order in which `kschedx reason` lists them."""

REASON_IDS: tuple[str, ...] = tuple(REASONS)


def headline(finding: Finding) -> str:
    """One line in lower case with the number in it and no advice."""
    return describe(finding).headline


def describe(finding: Finding, detail: NodeDetail | None = None) -> Words:
    """A finding in words; `detail` adds what surrounds it on its node: parts of the request, holders."""
    if isinstance(finding, PodFinding):
        return describe_pod(finding)
    if isinstance(finding, NodeFinding):
        return describe_node(finding)
    if isinstance(finding, ResourceFinding):
        return describe_resource(finding, detail)
    if isinstance(finding, TopologyFinding):
        return describe_topology(finding)
    if isinstance(finding, ClaimFinding):
        return describe_claim(finding)
    if isinstance(finding, VolumeFinding):
        return describe_volume(finding)
    if isinstance(finding, DeviceFinding):
        return describe_device(finding)
    if isinstance(finding, ExtenderFinding):
        return describe_extender(finding)
    if isinstance(finding, SchedulerPluginsFinding):
        return describe_scheduler_plugins(finding)
    if isinstance(finding, PluginFinding | PluginMessage):
        return describe_plugin_message(finding)
    assert_never(finding)
