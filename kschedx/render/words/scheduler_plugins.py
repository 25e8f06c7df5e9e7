"""Pod groups and quotas of scheduler-plugins in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import ElasticQuotaExceeded, GangResourcesShort, GangTooSmall, NumaMisfit, SchedulerPluginsFinding
from kschedx.render.units import amount, amounts, count
from kschedx.render.wording import Fact, Reason, Words

REASONS: dict[str, Reason] = {}


def describe(finding: SchedulerPluginsFinding) -> Words:
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


REASONS[GangTooSmall.reason] = Reason(
    plugins=("Coscheduling",),
    means="The pod belongs to a PodGroup of which minMember pods are scheduled together, and there are fewer yet.",
    arises="Not all pods of the job have been created, some are held by their gates, or wait for a node themselves.",
    fixes=("find out what keeps the other pods of the group", "lower minMember of the PodGroup"),
)


def _gang_too_small(finding: GangTooSmall) -> Words:
    held = f", {finding.gated} of them held by gates" if finding.gated else ""
    return Words(headline=f"pod group {finding.group} has {finding.pods} of {finding.min_member} pods{held}")


REASONS[GangResourcesShort.reason] = Reason(
    plugins=("Coscheduling",),
    means="All nodes together have less left than the PodGroup's minResources; the pods of the group are not counted.",
    arises="A cluster that is too full for the whole group, or minResources that ask for more than the pods do.",
    fixes=("wait for other work to end", "add nodes", "lower minResources of the PodGroup"),
)


def _gang_resources_short(finding: GangResourcesShort) -> Words:
    gaps = ", ".join(f"{amount(gap.resource, gap.short_by)} {gap.resource}" for gap in finding.gaps)
    return Words(headline=f"pod group {finding.group} is short by {gaps} in the whole cluster")


REASONS[ElasticQuotaExceeded.reason] = Reason(
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


REASONS[NumaMisfit.reason] = Reason(
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
