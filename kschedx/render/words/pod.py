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
    means="The pod has scheduling gates, so it does not enter the scheduling queue.",
    causes=(
        "a queue such as Kueue has not admitted the pod yet",
        "the controller that removes the gate is not running or fails",
        "the gate was set by hand or in a pod template, and no controller removes it",
    ),
    fixes=("find the controller that owns the gate, and what it waits for", "remove the gate"),
)


def _scheduling_gated(finding: SchedulingGated) -> Words:
    noun = "gate" if len(finding.gates) == 1 else "gates"
    return Words(headline=f"scheduling {noun} {', '.join(finding.gates)}")


POD_REASONS[NodesExcluded.reason] = Reason(
    plugins=("NodeAffinity",),
    means="PreFilter keeps only the nodes that the pod names. kube-scheduler evaluates no other node.",
    causes=(
        "the DaemonSet controller created the pod for one node, by metadata.name in matchFields",
        "the node that the pod names was deleted",
        "a person wrote the node names into the node affinity",
    ),
    fixes=("find out why the named nodes reject the pod", "correct the names if a person wrote them"),
)


def _nodes_excluded(finding: NodesExcluded) -> Words:
    if not finding.existing:
        return Words(
            headline=f"the pod names only {listed(finding.names, SHOWN_NODES)}, and the cluster has no such node"
        )
    return Words(headline=f"the pod names only {listed(finding.existing, SHOWN_NODES)}")


POD_REASONS[PodGroupIncomplete.reason] = Reason(
    plugins=("GangScheduling",),
    means="The pod belongs to a group that is scheduled all at once, and the group is incomplete.",
    causes=(
        "fewer pods than minCount exist: the job is still creating them, or a quota refuses some",
        "the PodGroup does not exist",
        "minCount is higher than the number of replicas",
    ),
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
    means="The pod's PodGroup schedules minMember pods together, and there are fewer.",
    causes=(
        "not all pods of the job have been created yet",
        "some pods of the group are gated",
        "minMember is higher than the number of pods",
    ),
    fixes=("find out why the other pods of the group are missing", "lower minMember of the PodGroup"),
)


def _gang_too_small(finding: GangTooSmall) -> Words:
    held = f", {finding.gated} of them gated" if finding.gated else ""
    return Words(headline=f"pod group {finding.group} has {finding.pods} of {finding.min_member} pods{held}")


SCHEDULER_PLUGINS_REASONS[GangResourcesShort.reason] = Reason(
    plugins=("Coscheduling",),
    means="All nodes together have less free than the PodGroup's minResources. The group's own pods do not count.",
    causes=(
        "the cluster is too full for the whole group",
        "minResources is higher than what the pods request",
    ),
    fixes=("wait until other pods end", "add nodes", "lower minResources of the PodGroup"),
)


def _gang_resources_short(finding: GangResourcesShort) -> Words:
    gaps = ", ".join(f"{amount(gap.resource, gap.short_by)} {gap.resource}" for gap in finding.gaps)
    return Words(headline=f"pod group {finding.group} is short by {gaps} in the whole cluster")


SCHEDULER_PLUGINS_REASONS[ElasticQuotaExceeded.reason] = Reason(
    plugins=("CapacityScheduling",),
    means=(
        "With this pod, its namespace exceeds the max of its ElasticQuota, or all namespaces exceed the sum of "
        "their min. A namespace borrows only what another leaves free."
    ),
    causes=(
        "the namespace is at the max of its quota",
        "other namespaces borrow the share of this one",
    ),
    fixes=("wait until other pods of the namespaces end", "raise the ElasticQuota"),
)


def _elastic_quota_exceeded(finding: ElasticQuotaExceeded) -> Words:
    asked, used, limit, total = amounts(
        finding.resource, (finding.requested, finding.used, finding.limit, finding.requested + finding.used)
    )
    whose = "the sum of all min" if finding.of_all else f"max of ElasticQuota {finding.namespace}"
    return Words(
        headline=f"{finding.resource} {total} > {limit}, {whose}",
        facts=(Fact(label="rule", items=(f"{asked} requested + {used} used = {total} > {limit}",), whole=True),),
    )


SCHEDULER_PLUGINS_REASONS[NumaMisfit.reason] = Reason(
    plugins=("NodeResourceTopologyMatch",),
    means=(
        "The kubelet's topology manager policy is single-numa-node, and no single NUMA node has all that the "
        "container or the pod requests."
    ),
    causes=(
        "free resources are spread over several NUMA nodes",
        "the pod requests more than a NUMA node has",
        "static CPU allocations occupy the NUMA node",
    ),
    fixes=("request less", "wait until other pods on the node end", "use another topology manager policy on the node"),
)


def _numa_misfit(finding: NumaMisfit) -> Words:
    who = f"container {finding.container}" if finding.container else "the pod"
    where = f"none of {count(finding.numa_nodes, 'NUMA node')}"
    return Words(headline=f"{where} has enough {finding.resource} for {who}")


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
        "All plugins accept the node, and an HTTP extender of the scheduler's configuration rejects it. "
        "kube-scheduler reports the extender's text as a reason without naming the extender."
    ),
    causes=(
        "an extender for GPUs, storage, or topology finds no capacity on the node",
        "the extender's own view of the cluster is out of date",
    ),
    fixes=("repair what the extender's logs and objects name", "free what it counts on that node"),
)


def _refused(finding: RefusedByExtender) -> Words:
    words = f'"{finding.message}"' if finding.message else "without a reason"
    says = (
        ()
        if finding.is_resolvable
        else (Fact(label="note", items=("the extender reports that eviction does not help",)),)
    )
    return Words(headline=f"refused by the extender {finding.url}: {words}", facts=says)


EXTENDER_REASONS[DroppedByExtender.reason] = Reason(
    plugins=("Extender",),
    means=(
        "All plugins accept the node, and an HTTP extender omits it from its answer without a reason. "
        "kube-scheduler counts such a node under no reason."
    ),
    causes=(
        "the extender reports no reasons: it returns only the nodes that it accepts",
        "it uses the wrong field: kube-scheduler reads NodeNames only with nodeCacheCapable, and Nodes without it",
    ),
    fixes=("repair what the extender's logs name", "set nodeCacheCapable to what it returns"),
)


def _dropped(finding: DroppedByExtender) -> Words:
    return Words(headline=f"the extender {finding.url} omits the node without a reason")


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
        means="The plugin's own message: an internal error, or a plugin that kschedx has no details about.",
        causes=(
            "objects that contradict each other",
            "a device selector that fails",
            "a plugin from another package, with its own rules",
        ),
        fixes=("read the plugin's message",),
    ),
    "plugin-finding": Reason(
        plugins=(),
        means="A plugin from another package reports it, with its own facts and ID.",
        causes=("the scheduler's configuration enables such a plugin; `kschedx plugins` lists them",),
        fixes=("run kschedx reason with the plugin's name",),
    ),
    "preemption-not-helpful": Reason(
        plugins=("DefaultPreemption",),
        means="The pod does not fit these nodes even if other pods are evicted: the node itself does not match.",
        causes=(
            "taints, node affinity, or cordoned nodes",
            "a volume that is not accessible from the nodes",
            "a request larger than the whole node",
        ),
        fixes=("fix what the other reasons of the event name",),
    ),
    "no-preemption-victims": Reason(
        plugins=("DefaultPreemption",),
        means="Eviction could help on these nodes, but no pod there has a lower priority.",
        causes=(
            "all pods have the same priority, as they do without PriorityClasses",
            "the pods on the nodes are more important",
        ),
        fixes=("free room by hand", "give the pod a PriorityClass of higher value"),
    ),
    "preemption-not-eligible": Reason(
        plugins=("DefaultPreemption",),
        means="The pod may not preempt other pods, so kube-scheduler tried no node.",
        causes=(
            "preemptionPolicy: Never in the pod's PriorityClass",
            "victims of an earlier preemption are still terminating",
        ),
        fixes=("wait for the victims", "use a PriorityClass that may preempt"),
    ),
    "preemption-not-tried": Reason(
        plugins=("DynamicResources",),
        means=(
            "PreFilter rejected the pod before DynamicResources ran. Its PostFilter then finds no state "
            'and reports only "not found". Preemption is not tried.'
        ),
        causes=("since Kubernetes 1.34, any rejection in PreFilter, such as a missing claim",),
        fixes=("look at the reason before it",),
    ),
    "no-nodes": Reason(
        plugins=(),
        means="The cluster has no nodes.",
        causes=(
            "a new cluster without node pools",
            "nodes that fail to register",
            "a node group that was scaled to zero",
        ),
        fixes=("add nodes",),
    ),
    "binding-failed": Reason(
        plugins=(),
        means=(
            "kube-scheduler chose a node, and a step after that failed: a plugin's Reserve, Permit, PreBind, or Bind. "
            "The pod returns to the queue and is scheduled again."
        ),
        causes=(
            "volumes that were not provisioned or bound within bindTimeoutSeconds (10 minutes)",
            "a gang that was not complete in time",
            "a claim or pod that changed meanwhile",
        ),
        fixes=(
            "repair what the claim's events name (kubectl describe pvc)",
            "repair or restart the CSI driver's provisioner",
        ),
    ),
    "preempted": Reason(
        plugins=(),
        means="kube-scheduler deleted this pod to make room for a more important one. Its controller creates another.",
        causes=("a pod of higher priority found no node with enough free room",),
        fixes=(
            "give this pod a PriorityClass of the same or a higher value",
            "add capacity, so that both fit",
            "use preemptionPolicy: Never in the other pod's PriorityClass",
        ),
    ),
    "refused": Reason(
        plugins=(),
        means="The API server refuses to create the pod, so there is no pod that kube-scheduler could schedule.",
        causes=(
            "a ResourceQuota of the namespace is used up, or counts a resource that the pod does not set",
            "the namespace enforces a Pod Security Standard that the pod violates",
            "a LimitRange, a missing service account or PriorityClass, or a webhook",
        ),
        fixes=(
            "ask about the workload, which shows the fix: kschedx why deploy/NAME",
            "raise the quota, or change the pod template as the text says",
        ),
    ),
    "deleted-while-pending": Reason(
        plugins=(),
        means="The pod is being deleted, so kube-scheduler no longer schedules it.",
        causes=("a user or a controller deleted it", "a finalizer keeps it"),
        fixes=("remove the finalizer if its controller is gone", "create the pod again"),
    ),
    "scale-up": Reason(
        plugins=(),
        means="The autoscaler adds a node for the pod. The pod stays Pending until that node is Ready.",
        causes=("no existing node fits the pod",),
        fixes=("wait for the node", "if it does not come, read the autoscaler's status and the cloud provider's quota"),
    ),
    "no-scale-up": Reason(
        plugins=(),
        means=(
            "cluster-autoscaler adds no node for the pod. Each number counts node groups: those that may not grow, and "
            "those whose new node would not fit the pod."
        ),
        causes=(
            "max node group size reached: the node group has its maximum",
            "in backoff after failed scale-up: the cloud provider refused a node, often for quota or capacity",
            "the template of a node group lacks the label, taint, resource, or zone that the pod needs",
        ),
        fixes=(
            "raise the maximum of a node group whose nodes would fit",
            "add a node group that fits the pod",
            "change the pod as for the other reasons in the event",
        ),
    ),
    "no-node-pool": Reason(
        plugins=(),
        means=(
            "Karpenter adds no node for the pod. For each NodePool the event says why, and how much DaemonSets take "
            "of a new node."
        ),
        causes=(
            "no instance type of the NodePool is large enough or offered in the zone",
            "the pod does not tolerate the NodePool's taints",
            "the pod's node affinity does not match the NodePool's requirements",
            "the NodePool has reached its limits",
        ),
        fixes=(
            "allow larger instance types, more zones, or another architecture in the NodePool's requirements",
            "raise the NodePool's limits",
            "add a toleration, or a NodePool that fits the pod",
        ),
    ),
}


# Words for participants of a decision that did not run.

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
                told.append(f"{noun} {listed(names, SHOWN_PLUGINS)}, not available to kschedx, {does}")
            case UnevaluatedKind.EXTENDER:
                noun = "the extender" if len(names) == 1 else "the extenders"
                told.append(f"{noun} at {listed(names, SHOWN_PLUGINS)}, not called, {does}")
            case UnevaluatedKind.SCHEDULER:
                told.append(f"the scheduler {names[0]} decides, not kube-scheduler")
            case UnevaluatedKind.OBJECTS:
                told += map(not_in_the_dump, of_kind)
            case _:
                assert_never(kind)
    return "; ".join(told)


def not_in_the_dump(unheard: Unevaluated) -> str:
    """`PersistentVolumeClaim data-0 is not in this dump, which holds no persistentvolumeclaims`."""
    kind = KINDS[unheard.name]
    holds = f"it lacks {unheard.lacking}" if unheard.lacking else f"it has no {kind.plural}"
    if not unheard.objects:
        return f"{kind.leaves} is not in this dump: {holds}"
    verb = "is" if len(unheard.objects) == 1 else "are"
    return f"{kind.name} {listed(unheard.objects, SHOWN_PLUGINS)} {verb} not in this dump: {holds}"


def how_to_complete(unheard: Iterable[Unevaluated]) -> tuple[str, ...]:
    """The commands that complete a dump, a line each; none where nothing is lacking."""
    command = next((one.completed_by for one in unheard if one.completed_by), "")
    _, _, file = command.partition(" > ")
    return (command, f"kschedx why ... -s {file}   (with the other files)") if file else (command,) if command else ()
