"""What the autoscaler does about one pod, as the value of the key `autoscaler` of the Explanation document."""

from __future__ import annotations

from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.events import not_triggered
from kschedx.autoscaler.growth import Growth
from kschedx.autoscaler.pods import Outcome

Json = dict[str, object]


def scaling_document(autoscaler: Autoscaler, scaling: PodScaling) -> Json:
    """Keys are a contract: they are added, never changed."""
    pod, choice = scaling.pod, scaling.choice
    made: Json = {
        "kind": "cluster-autoscaler",
        "outcome": pod.outcome.value,
        "result": scaling.result.value,
        "groups": {group.name: _group(group) for group in scaling.groups},
        "scaleUps": [
            {"group": one.group, "from": one.before, "to": one.after, "max": one.maximum}
            for one in (choice.resizes if choice else ())
        ],
        "event": choice.event if choice else not_triggered(pod.parts) if pod.remains else "",
        "isTold": bool(choice) or pod.is_told,
        "groupsToldBy": list(autoscaler.membership.told_by),
        "flagsAreKnown": autoscaler.flags_are_known,
        "isMeasured": autoscaler.is_measured,
    }
    if pod.outcome is Outcome.SCHEDULABLE:
        made["node"] = pod.node
        made["isUpcoming"] = pod.is_on_upcoming
    if scaling.error:
        made["error"] = scaling.error
    if autoscaler.status.unknown:
        made["unknownStatus"] = list(autoscaler.status.unknown)
    if autoscaler.config_not_here:
        made["schedulerConfigFile"] = autoscaler.config_not_here
    if scaling.alternatives:
        made["alternatives"] = list(scaling.alternatives)
    if scaling.is_waiting:
        made["isWaiting"] = True
    return made


def growth_document(growth: Growth) -> Json:
    """What the autoscaler adds in the end, as the value of the key `autoscaler` of a Simulation document."""
    return {
        "kind": "cluster-autoscaler",
        "loops": growth.loops,
        "groups": {one.group: {"from": one.before, "to": one.after, "max": one.maximum} for one in growth.groups},
        "helped": growth.helped,
        "result": growth.last.result.value,
        "byChance": growth.by_chance,
    }


def _group(group: GroupVerdict) -> Json:
    made: Json = {"target": group.target, "minSize": group.min_size, "maxSize": group.max_size, "fits": group.fits}
    if group.skipped:
        made["skipped"] = list(group.skipped)
    if group.detail:
        made["detail"] = group.detail
    if group.template is None:
        made["template"] = None
    if group.rejections:
        made["rejectedBy"] = {
            status.plugin: {
                "code": status.code.text,
                "reasons": list(status.reasons),
                "findings": [finding.to_dict() for finding in status.findings],
            }
            for status in group.rejections
        }
    return made
