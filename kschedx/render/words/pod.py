"""The pod as a whole in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.findings import (
    DroppedByExtender,
    ElasticQuotaExceeded,
    ExtenderFinding,
    GangResourcesShort,
    GangTooSmall,
    NodesExcluded,
    NumaMisfit,
    PluginFinding,
    PluginMessage,
    PodFinding,
    PodGroupIncomplete,
    RefusedByExtender,
    SchedulerPluginsFinding,
    SchedulingGated,
)
from kschedx.framework.cycle import Stake, Unevaluated, UnevaluatedKind
from kschedx.kube.kinds import KINDS
from kschedx.render.wording import Fact, Reason, Words, amount, amounts, count, listed

SHOWN_NODES = 5


POD_REASONS: dict[str, Reason] = {}


def describe_pod(finding: PodFinding) -> Words:
    match finding:
        case SchedulingGated():
            return _scheduling_gated(finding)
        case NodesExcluded():
            return _nodes_excluded(finding)
        case PodGroupIncomplete():
            return _pod_group_incomplete(finding)
        case _:
            assert_never(finding)


POD_REASONS[SchedulingGated.reason] = Reason(
    plugins=("SchedulingGates",),
    means="The pod has scheduling gates, so it does not enter the queue: kube-scheduler does not look at it.",
    arises=(
        "Somebody set spec.schedulingGates, usually a quota or admission controller such as Kueue. Gates can "
        "only be removed, by whoever set them."
    ),
    fixes=("find the controller that owns the gate and what it waits for", "remove the gate"),
)


def _scheduling_gated(finding: SchedulingGated) -> Words:
    noun = "gate" if len(finding.gates) == 1 else "gates"
    return Words(headline=f"scheduling {noun} {', '.join(finding.gates)}")


POD_REASONS[NodesExcluded.reason] = Reason(
    plugins=("NodeAffinity",),
    means="PreFilter left only the nodes in that the pod names; all others are not evaluated at all.",
    arises=(
        "Every required term of the node affinity names nodes by metadata.name in matchFields, as the "
        "DaemonSet controller does for its pods."
    ),
    fixes=("look at the nodes that are left", "correct the names, where a person wrote them"),
)


def _nodes_excluded(finding: NodesExcluded) -> Words:
    if not finding.existing:
        return Words(headline=f"only {listed(finding.names, SHOWN_NODES)} would do, and the cluster has no such node")
    return Words(headline=f"only {listed(finding.existing, SHOWN_NODES)} can be considered")


POD_REASONS[PodGroupIncomplete.reason] = Reason(
    plugins=("GangScheduling",),
    means="The pod belongs to a group that is scheduled all at once, and the group is not complete.",
    arises="The PodGroup does not exist, or fewer pods than its minCount have been created.",
    fixes=("create the missing pods or the group", "lower minCount"),
)


def _pod_group_incomplete(finding: PodGroupIncomplete) -> Words:
    if not finding.exists:
        return Words(headline=f"pod group {finding.group} does not exist")
    return Words(headline=f"pod group {finding.group} has {finding.pods:,} of {count(finding.min_count, 'pod')}")


# Pod groups and quotas of scheduler-plugins in words.

SCHEDULER_PLUGINS_REASONS: dict[str, Reason] = {}


def describe_scheduler_plugins(finding: SchedulerPluginsFinding) -> Words:
    match finding:
        case GangTooSmall():
            return _gang_too_small(finding)
        case GangResourcesShort():
            return _gang_resources_short(finding)
        case ElasticQuotaExceeded():
            return _elastic_quota_exceeded(finding)
        case NumaMisfit():
            return _numa_misfit(finding)
        case _:
            assert_never(finding)


SCHEDULER_PLUGINS_REASONS[GangTooSmall.reason] = Reason(
    plugins=("Coscheduling",),
    means="The pod belongs to a PodGroup of which minMember pods are scheduled together, and there are fewer yet.",
    arises="Not all pods of the job have been created, some are held by their gates, or wait for a node themselves.",
    fixes=("find out what keeps the other pods of the group", "lower minMember of the PodGroup"),
)


def _gang_too_small(finding: GangTooSmall) -> Words:
    held = f", {finding.gated} of them held by gates" if finding.gated else ""
    return Words(headline=f"pod group {finding.group} has {finding.pods} of {finding.min_member} pods{held}")


SCHEDULER_PLUGINS_REASONS[GangResourcesShort.reason] = Reason(
    plugins=("Coscheduling",),
    means="All nodes together have less left than the PodGroup's minResources; the pods of the group are not counted.",
    arises="A cluster that is too full for the whole group, or minResources that ask for more than the pods do.",
    fixes=("wait for other work to end", "add nodes", "lower minResources of the PodGroup"),
)


def _gang_resources_short(finding: GangResourcesShort) -> Words:
    gaps = ", ".join(f"{amount(gap.resource, gap.short_by)} {gap.resource}" for gap in finding.gaps)
    return Words(headline=f"pod group {finding.group} is short by {gaps} in the whole cluster")


SCHEDULER_PLUGINS_REASONS[ElasticQuotaExceeded.reason] = Reason(
    plugins=("CapacityScheduling",),
    means=(
        "With the pod its namespace would use more than the max of its ElasticQuota, or all namespaces with one more "
        "than all their min together: what one borrows another has to leave free."
    ),
    arises="A namespace at its limit, or others that have borrowed what this one is promised.",
    fixes=("wait for other pods of the namespaces to end", "raise the ElasticQuota"),
)


def _elastic_quota_exceeded(finding: ElasticQuotaExceeded) -> Words:
    asked, used, limit, total = amounts(
        finding.resource, (finding.requested, finding.used, finding.limit, finding.requested + finding.used)
    )
    whose = "all min together" if finding.of_all else f"max of ElasticQuota {finding.namespace}"
    return Words(
        headline=f"{finding.resource} {total} > {limit}, {whose}",
        facts=(Fact(label="rule", items=(f"{asked} asked + {used} used = {total} > {limit}",), whole=True),),
    )


SCHEDULER_PLUGINS_REASONS[NumaMisfit.reason] = Reason(
    plugins=("NodeResourceTopologyMatch",),
    means=(
        "The node's kubelet has the policy single-numa-node, and none of its NUMA nodes alone has all that the "
        "container, or the pod, asks for."
    ),
    arises="Pods that ask for more than a NUMA node has, or free resources that are spread over several of them.",
    fixes=("ask for less", "wait for other pods on the node to end", "another topology manager policy for the node"),
)


def _numa_misfit(finding: NumaMisfit) -> Words:
    who = f"container {finding.container}" if finding.container else "the pod"
    where = f"none of {count(finding.numa_nodes, 'NUMA node')}"
    return Words(headline=f"{where} alone has enough {finding.resource} for {who}")


# HTTP extenders in words.

EXTENDER_REASONS: dict[str, Reason] = {}


def describe_extender(finding: ExtenderFinding) -> Words:
    match finding:
        case RefusedByExtender():
            return _refused(finding)
        case DroppedByExtender():
            return _dropped(finding)
        case _:
            assert_never(finding)


EXTENDER_REASONS[RefusedByExtender.reason] = Reason(
    plugins=("Extender",),
    means=(
        "All plugins accept the pod there, and an HTTP extender of the scheduler's configuration does not. "
        "kube-scheduler tells its words as a reason of their own, without saying whose they are."
    ),
    arises=(
        "The extender answered with the node in FailedNodes, or in FailedAndUnresolvableNodes: a GPU, storage or "
        "topology extender that counts what kube-scheduler does not."
    ),
    fixes=("ask the extender's own logs and objects", "look at what it counts on that node"),
)


def _refused(finding: RefusedByExtender) -> Words:
    words = f'"{finding.message}"' if finding.message else "without a reason"
    says = () if finding.is_resolvable else (Fact(label="it says", items=("evicting pods would not help",)),)
    return Words(headline=f"refused by the extender {finding.url}: {words}", facts=says)


EXTENDER_REASONS[DroppedByExtender.reason] = Reason(
    plugins=("Extender",),
    means=(
        "All plugins accept the pod there, and an HTTP extender left the node out of its answer without a word. "
        "kube-scheduler counts such a node under no reason."
    ),
    arises=(
        "The extender answers with fewer nodes than it was asked about, or in the field that it is not configured for: "
        "NodeNames is read only from an extender with nodeCacheCapable, Nodes from the others."
    ),
    fixes=("ask the extender's own logs", "compare nodeCacheCapable with what it answers"),
)


def _dropped(finding: DroppedByExtender) -> Words:
    return Words(headline=f"left out by the extender {finding.url}, without a word")


# What is only said in words: by a plugin of its own, or by an event's text.


def describe_plugin_message(finding: PluginFinding | PluginMessage) -> Words:
    """The plugin's own words."""
    if isinstance(finding, PluginMessage):
        return Words(headline=finding.text)
    facts = tuple(Fact(label=label, items=(line,)) for label, line in finding.lines)
    return Words(headline=finding.headline, facts=facts)


PLUGIN_MESSAGE_REASONS: dict[str, Reason] = {
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


# Words for those who take part in a decision and were not asked.

SHOWN_PLUGINS = 3


def could_reject(unheard: Iterable[Unevaluated]) -> str:
    """`the plugin Foo could reject it, and kschedx does not have that plugin`: why a pod that fits is undecided."""
    return _told(unheard, Stake.FIT, "could reject it")


def could_prefer(unheard: Iterable[Unevaluated]) -> str:
    """The same where the pod fits, and only its node is open."""
    return _told(unheard, Stake.NODE, "could prefer another of the nodes that fit")


def _told(unheard: Iterable[Unevaluated], stake: Stake, does: str) -> str:
    deciding = [one for one in unheard if one.stake is stake and not one.is_waived]
    told = []
    for kind in dict.fromkeys(one.kind for one in deciding):
        of_kind = [one for one in deciding if one.kind is kind]
        names = [one.name for one in of_kind]
        match kind:
            case UnevaluatedKind.PLUGIN:
                noun = "the plugin" if len(names) == 1 else "the plugins"
                told.append(f"{noun} {listed(names, SHOWN_PLUGINS)}, which kschedx does not have, {does}")
            case UnevaluatedKind.EXTENDER:
                noun = "the extender" if len(names) == 1 else "the extenders"
                told.append(f"{noun} at {listed(names, SHOWN_PLUGINS)}, which nobody asked, {does}")
            case UnevaluatedKind.SCHEDULER:
                told.append(f"the scheduler {names[0]} decides about it, and not kube-scheduler")
            case UnevaluatedKind.OBJECTS:
                told += map(not_in_the_dump, of_kind)
            case _:
                assert_never(kind)
    return "; ".join(told)


def not_in_the_dump(unheard: Unevaluated) -> str:
    """`PersistentVolumeClaim data-0 is not in this dump, which holds no persistentvolumeclaims`."""
    kind = KINDS[unheard.name]
    holds = f"it lacks {unheard.lacking}" if unheard.lacking else f"it holds no {kind.plural}"
    if not unheard.objects:
        return f"{kind.leaves} is not in this dump: {holds}"
    verb = "is" if len(unheard.objects) == 1 else "are"
    return f"{kind.name} {listed(unheard.objects, SHOWN_PLUGINS)} {verb} not in this dump: {holds}"


def how_to_complete(unheard: Iterable[Unevaluated]) -> tuple[str, ...]:
    """The commands that complete a dump, a line each; none where nothing is lacking."""
    command = next((one.completed_by for one in unheard if one.completed_by), "")
    _, _, file = command.partition(" > ")
    return (command, f"kschedx why ... -s {file}   (beside the others)") if file else (command,) if command else ()
