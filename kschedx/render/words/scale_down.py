"""Why cluster-autoscaler keeps a node, or how it lets it go."""

from __future__ import annotations

from typing import assert_never

from kschedx.api.annotations import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from kschedx.autoscaler.scale_down.decision import Removal, Unremovable
from kschedx.autoscaler.scale_down.pods import Blocker, Fate, PodFate
from kschedx.autoscaler.scale_down.utilization import Utilization
from kschedx.render.units import amount, count, listed

NAMES = 3
"""Names that are told of many."""


def going(found: Removal) -> str:
    """Of a node that can be removed."""
    moving = len(found.places)
    pods = f", {count(moving, 'pod')} {'finds' if moving == 1 else 'find'} another node" if moving else ", it is empty"
    if found.unneeded_for is None and found.needed > 0:
        return f"cluster-autoscaler removes it once it has not been needed for {found.needed}{pods}"
    return f"cluster-autoscaler removes it{pods}"


def sentence(found: Removal, reason: Unremovable) -> str:
    """Goes on from `cluster-autoscaler keeps it,`."""
    group = found.group
    match reason:
        case Unremovable.SCALE_DOWN_DISABLED:
            return "it removes no nodes (--scale-down-enabled=false)"
        case Unremovable.CLUSTER_UNHEALTHY:
            return "so many nodes are not ready that it does nothing (--max-total-unready-percentage)"
        case Unremovable.NOT_AUTOSCALED:
            return "the node is in none of its groups"
        case Unremovable.NODE_GROUP_MIN_SIZE_REACHED:
            assert group is not None
            return f"its group {group.name} is at its minimum: {group.target} of at least {group.min_size}"
        case Unremovable.STARTING:
            return "it is starting, and counts as a node that is about to come"
        case Unremovable.CURRENTLY_BEING_DELETED:
            return "it is being deleted already"
        case Unremovable.SCALE_DOWN_DISABLED_ANNOTATION:
            return f"the node is annotated {SCALE_DOWN_DISABLED}=true"
        case Unremovable.SCALE_DOWN_UNREADY_DISABLED:
            return "the node is not ready, and such nodes stay (--scale-down-unready-enabled=false)"
        case Unremovable.UNEXPECTED_ERROR:
            return "its use cannot be counted: it offers no cpu or no memory, or a pool of its devices is not whole"
        case Unremovable.NOT_UNDERUTILIZED:
            assert found.utilization is not None
            flag = "gpu-utilization" if found.utilization.is_gpu else "utilization"
            most = round(100 * found.utilization.threshold)
            return f"{share(found.utilization)} is requested, above {most}% (--scale-down-{flag}-threshold)"
        case Unremovable.BLOCKED_BY_POD:
            blocking = found.of(Fate.BLOCKS)
            if len(blocking) > 1:
                return f"{count(len(blocking), 'pod')} cannot go"
            return f"{blocking[0].pod} cannot go: {blocker(blocking[0])}"
        case Unremovable.NO_PLACE_TO_MOVE_PODS:
            assert found.stranded is not None
            told = ", ".join(f"{number} {why}" for why, number in sorted(found.stranded.refusals.items()))
            return f"{found.stranded.pod} finds no other node: {told or 'there is none'}"
        case Unremovable.NOT_UNNEEDED_LONG_ENOUGH | Unremovable.NOT_UNREADY_LONG_ENOUGH:
            state = "not needed" if reason is Unremovable.NOT_UNNEEDED_LONG_ENOUGH else "not ready"
            return f"it has been {state} for {found.unneeded_for} of {found.needed}"
        case Unremovable.MINIMAL_RESOURCE_LIMIT_EXCEEDED:
            assert found.minimum is not None
            resource, left, least = found.minimum
            return f"the cluster would have {left:,} {resource} left, less than its minimum of {least:,}"
        case Unremovable.BLOCKED_BY_ON_COMPLETION_POD:
            return f"it waits for {listed([one.pod for one in found.of(Fate.COMPLETES)], NAMES)} to complete"
        case _:
            assert_never(reason)


def short(found: Removal) -> str:
    """What fits in a row of a table."""
    if found.is_removable:
        moving = len(found.places)
        return f"goes, {count(moving, 'pod')} {'finds' if moving == 1 else 'find'} another node" if moving else "goes"
    match found.reasons[0]:
        case Unremovable.NOT_UNDERUTILIZED:
            assert found.utilization is not None
            return f"above {round(100 * found.utilization.threshold)}%"
        case Unremovable.NODE_GROUP_MIN_SIZE_REACHED:
            assert found.group is not None
            return f"minimum of {found.group.min_size} in {found.group.name}"
        case Unremovable.BLOCKED_BY_POD:
            blocking = found.of(Fate.BLOCKS)
            more = f" and {len(blocking) - 1:,} more" if len(blocking) > 1 else ""
            return f"kept by {blocking[0].pod}{more}: {blocking[0].blocker}"
        case reason:
            return sentence(found, reason)


def blocker(one: PodFate) -> str:
    """Why a pod cannot go; empty of one that can."""
    match one.blocker:
        case Blocker.CONTROLLER_NOT_FOUND:
            return f"its controller, {one.controller}, is gone"
        case Blocker.MIN_REPLICAS_REACHED:
            return f"{one.controller} keeps {count(one.replicas or 0, 'replica')}, fewer than --min-replica-count"
        case Blocker.NOT_REPLICATED:
            made = f"{one.controller} is no kind that it knows" if one.controller else "nobody makes it anew"
            return f"not replicated, {made}"
        case Blocker.LOCAL_STORAGE_REQUESTED:
            return f"local storage in {listed(one.volumes, NAMES)}"
        case Blocker.NOT_SAFE_TO_EVICT_ANNOTATION:
            return f"annotated {SAFE_TO_EVICT}=false"
        case Blocker.UNMOVABLE_KUBE_SYSTEM_POD:
            return "a pod of kube-system without a PodDisruptionBudget"
        case Blocker.NOT_ENOUGH_PDB:
            return f"the PodDisruptionBudget {listed(one.budgets, NAMES)} allows no disruption"
        case None:
            return ""
        case _:
            assert_never(one.blocker)


def share(used: Utilization) -> str:
    """How much of the node is asked for."""
    asked, offered = amount(used.resource, used.requested), amount(used.resource, used.offered)
    return f"{round(100 * used.share)}% of its {used.resource} ({asked} of {offered})"
