"""What is only said in words: by a plugin of its own, or by an event's text."""

from __future__ import annotations

from kschedx.findings import PluginFinding, PluginMessage
from kschedx.render.wording import Fact, Reason, Words


def describe(finding: PluginFinding | PluginMessage) -> Words:
    """The plugin's own words."""
    if isinstance(finding, PluginMessage):
        return Words(headline=finding.text)
    facts = tuple(Fact(label=label, items=(line,)) for label, line in finding.lines)
    return Words(headline=finding.headline, facts=facts)


REASONS: dict[str, Reason] = {
    "plugin-message": Reason(
        plugins=(),
        means="A plugin says it in its own words: an internal error, or a plugin that kschedx knows no more about.",
        arises="Objects that contradict each other, a device selector that fails, or a plugin from another package.",
        fixes=("read the plugin's text",),
    ),
    "plugin-finding": Reason(
        plugins=(),
        means="A plugin of another package says it, with facts and an id of its own.",
        arises="A configuration that enables such a plugin: `kschedx plugins` lists them.",
        fixes=("kschedx reason with the plugin's name, for what its package says",),
    ),
    "preemption-not-helpful": Reason(
        plugins=("DefaultPreemption",),
        means="Whoever is evicted, the pod would not fit on these nodes: the node itself does not suit.",
        arises="Taints, node affinity, cordons, volumes, or a request larger than the whole node.",
        fixes=("look at the other reasons: priority does not help here",),
    ),
    "no-preemption-victims": Reason(
        plugins=("DefaultPreemption",),
        means="Eviction could help on these nodes, but no pods there have a lower priority.",
        arises="All pods have the same priority, which is so unless PriorityClasses are used.",
        fixes=("make room by hand", "give the pod a PriorityClass of higher value"),
    ),
    "preemption-not-eligible": Reason(
        plugins=("DefaultPreemption",),
        means="The pod may not evict others, so no node was tried.",
        arises="preemptionPolicy: Never in its PriorityClass, or its victims are terminating already.",
        fixes=("wait for the victims", "use a PriorityClass that may preempt"),
    ),
    "preemption-not-tried": Reason(
        plugins=("DynamicResources",),
        means=(
            "PreFilter rejected the pod before DynamicResources was asked; its PostFilter then finds no state, "
            'and says only "not found". Preemption is not tried.'
        ),
        arises="Any rejection in PreFilter, such as a missing claim, since 1.34.",
        fixes=("look at the reason before it",),
    ),
    "no-nodes": Reason(
        plugins=(),
        means="The cluster has no nodes.",
        arises="A new cluster, or node registration that fails.",
        fixes=("add nodes",),
    ),
}
