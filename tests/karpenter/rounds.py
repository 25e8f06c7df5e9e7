"""Rounds of Karpenter: kschedx's and recorded ones in one form."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kschedx.karpenter.catalogue import read_catalogue
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.scheduler import KarpenterSettings, RoundResult
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]
RECORDED = Path(__file__).parent / "rounds.jsonl.gz"


@cache
def recorded() -> tuple[Json, ...]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return tuple(map(json.loads, lines))


def karpenter_of(case: Json) -> Karpenter:
    options: Mapping[str, str] = case["options"]
    settings = KarpenterSettings(
        prefers=options.get("preference-policy") != "Ignore",
        relaxes_min_values=options.get("min-values-policy") == "BestEffort",
    )
    catalogue = read_catalogue(
        {"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": case["instanceTypes"]}
    )
    snapshot = Snapshot.from_objects(case["objects"])
    karpenter = Karpenter.of(snapshot, KarpenterOptions(catalogue=catalogue, settings=settings))
    assert karpenter is not None
    return karpenter


def decided(case: Json) -> Json:
    """What kschedx says of a round."""
    karpenter = karpenter_of(case)
    waiting = karpenter.pending_pods()
    refused = {
        key: f"Failed to schedule pod, {looked.reason}"
        for key, looked in waiting.items()
        if looked.outcome is PodEligibility.REFUSED
    }
    is_run = any(looked.outcome is PodEligibility.CONSIDERED for looked in waiting.values())
    result = karpenter.own if is_run else RoundResult()
    return {
        "new": sorted(
            [
                item.template.name,
                sorted(item.pods),
                sorted(kind.name for kind in item.types),
                plain(str(item.requirements)),
            ]
            for item in result.new
        ),
        "existing": {name: sorted(pods) for name, pods in result.existing.items()},
        "errors": {key: plain(failure.text) for key, failure in result.failures.items()},
        "refused": refused,
    }


def plain(text: str) -> str:
    """Without numbers of hosts that do not exist, and guesses at typing errors, of which upstream takes any."""
    return re.sub(r'typo of "[^"]*"', "typo", re.sub(r"hostname-placeholder-\d+", "host", text))


def in_any_order(built: Json) -> Json:
    """Upstream walks Go maps: parts of a text come in any order."""
    return {
        key: {pod: sorted(re.split(r"; |, ", text)) for pod, text in part.items()}
        if key in ("errors", "refused")
        else part
        for key, part in built.items()
    }
