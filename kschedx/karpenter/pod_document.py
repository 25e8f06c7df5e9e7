"""What Karpenter does about one pod, as the value of the key `autoscaler` of the Explanation document."""

from __future__ import annotations

from kschedx.karpenter.cluster import Karpenter, PodProvisioning, PoolVerdict
from kschedx.karpenter.growth import Growth

Json = dict[str, object]

KIND = "karpenter"
FOLLOWS = "1.13"
"""The release of Karpenter."""


def provisioning_document(karpenter: Karpenter, found: PodProvisioning) -> Json:
    """Keys are a contract: they are added, never changed."""
    made: Json = {
        "kind": KIND,
        "follows": FOLLOWS,
        "outcome": found.looked.outcome.value,
        "pools": {one.name: _pool(one) for one in found.pools},
        "skippedPools": {one.pool.name: one.why for one in karpenter.skipped},
        "event": found.event,
        "typesAreKnown": karpenter.types_are_known,
        "byChance": found.by_chance,
    }
    if found.pool:
        made["adds"] = {"pool": found.pool, "instanceTypes": [one.name for one in found.types]}
    if found.existing:
        made["expectedOn"] = found.existing
    if found.has_relaxed:
        made["gaveUpPreference"] = True
    return made


def growth_document(growth: Growth) -> Json:
    """What Karpenter adds, as the value of the key `autoscaler` of a Simulation document."""
    return {
        "kind": KIND,
        "follows": FOLLOWS,
        "nodes": [
            {"pool": one.pool, "instanceType": one.instance_type, "nodes": one.nodes, "choices": one.choices}
            for one in growth.grown
        ],
        "helped": growth.helped,
        "expected": growth.expected,
        "left": growth.left,
        "typesAreKnown": growth.types_are_known,
        "byChance": growth.by_chance,
    }


def _pool(one: PoolVerdict) -> Json:
    made: Json = {"certainty": one.certainty.value}
    if one.rejection is not None:
        made["reason"] = one.reason
        if one.text_is_known:
            made["text"] = one.rejection.text
    return made
