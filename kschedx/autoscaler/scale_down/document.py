"""The ScaleDown document. A contract: keys are added, never changed."""

from __future__ import annotations

from collections.abc import Sequence

from kschedx.autoscaler.cluster import Autoscaler
from kschedx.autoscaler.scale_down.decision import Removal
from kschedx.autoscaler.scale_down.pods import Blocker, PodFate
from kschedx.releases import Release

Json = dict[str, object]


def scale_down_document(autoscaler: Autoscaler | None, removals: Sequence[Removal], release: Release) -> Json:
    """Without an autoscaler, that of a cluster which has none of its nodes."""
    told = () if autoscaler is None else autoscaler.membership.told_by
    return {
        "apiVersion": "kschedx/v1",
        "kind": "ScaleDown",
        "autoscaler": "cluster-autoscaler" if autoscaler is not None else "karpenter",
        "kubernetesVersion": release.version,
        "flagsAreKnown": autoscaler is not None and autoscaler.flags_are_known,
        "groupsToldBy": list(told),
        "nodes": {one.node: _node(one) for one in removals},
    }


def _node(found: Removal) -> Json:
    made: Json = {
        "removable": found.is_removable,
        "reasons": [one.value for one in found.reasons],
        "group": None
        if found.group is None
        else {
            "name": found.group.name,
            "target": found.group.target,
            "minSize": found.group.min_size,
            "maxSize": found.group.max_size,
        },
        "utilization": None,
        "pods": [_pod(one) for one in found.pods],
        "places": dict(found.places),
        "stranded": None
        if found.stranded is None
        else {"pod": found.stranded.pod, "refusals": dict(found.stranded.refusals)},
        "unneededSeconds": None if found.unneeded_for is None else found.unneeded_for // 10**9,
        "neededSeconds": found.needed // 10**9,
    }
    if found.utilization is not None:
        used = found.utilization
        made["utilization"] = {
            "resource": used.resource,
            "requested": used.requested,
            "offered": used.offered,
            "percent": round(100 * used.share),
            "thresholdPercent": round(100 * used.threshold),
        }
    if found.minimum is not None:
        resource, left, least = found.minimum
        made["minimum"] = {"resource": resource, "left": left, "least": least}
    return made


def _pod(one: PodFate) -> Json:
    made: Json = {"pod": one.pod, "fate": one.fate.value}
    if isinstance(one.blocker, Blocker):
        made["blocker"] = one.blocker.value
    if one.controller:
        made["controller"] = one.controller
    if one.volumes:
        made["volumes"] = list(one.volumes)
    if one.budgets:
        made["budgets"] = list(one.budgets)
    if one.replicas is not None:
        made["replicas"] = one.replicas
    return made
