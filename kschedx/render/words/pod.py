"""The pod as a whole in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import NodesExcluded, PodFinding, PodGroupIncomplete, SchedulingGated
from kschedx.render.units import count, listed
from kschedx.render.wording import Reason, Words

SHOWN = 5


REASONS: dict[str, Reason] = {}


def describe(finding: PodFinding) -> Words:
    match finding:
        case SchedulingGated():
            return _scheduling_gated(finding)
        case NodesExcluded():
            return _nodes_excluded(finding)
        case PodGroupIncomplete():
            return _pod_group_incomplete(finding)
        case _:
            assert_never(finding)


REASONS[SchedulingGated.reason] = Reason(
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


REASONS[NodesExcluded.reason] = Reason(
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
        return Words(headline=f"only {listed(finding.names, SHOWN)} would do, and the cluster has no such node")
    return Words(headline=f"only {listed(finding.existing, SHOWN)} can be considered")


REASONS[PodGroupIncomplete.reason] = Reason(
    plugins=("GangScheduling",),
    means="The pod belongs to a group that is scheduled all at once, and the group is not complete.",
    arises="The PodGroup does not exist, or fewer pods than its minCount have been created.",
    fixes=("create the missing pods or the group", "lower minCount"),
)


def _pod_group_incomplete(finding: PodGroupIncomplete) -> Words:
    if not finding.exists:
        return Words(headline=f"pod group {finding.group} does not exist")
    return Words(headline=f"pod group {finding.group} has {finding.pods:,} of {count(finding.min_count, 'pod')}")
