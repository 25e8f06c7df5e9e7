"""Rounds of Karpenter, recorded and computed, in one form."""

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
def recorded_rounds() -> tuple[Json, ...]:
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


def decide_round(case: Json) -> Json:
    """Return the new nodes, the pods of existing nodes, and the texts of a round."""
    karpenter = karpenter_of(case)
    pods = karpenter.pending_pods()
    refused = {
        key: f"Failed to schedule pod, {eligibility.reason}"
        for key, eligibility in pods.items()
        if eligibility.outcome is PodEligibility.REFUSED
    }
    is_run = any(eligibility.outcome is PodEligibility.CONSIDERED for eligibility in pods.values())
    result = karpenter.own if is_run else RoundResult()
    return {
        "new": sorted(
            [
                item.template.name,
                sorted(item.pods),
                sorted(kind.name for kind in item.types),
                without_placeholders(str(item.requirements)),
            ]
            for item in result.new
        ),
        "existing": {name: sorted(pods) for name, pods in result.existing.items()},
        "errors": {key: without_placeholders(failure.text) for key, failure in result.failures.items()},
        "refused": refused,
    }


def without_placeholders(text: str) -> str:
    """Return the text without numbers of placeholder hosts and suggested spellings, of which upstream picks any."""
    return re.sub(r'typo of "[^"]*"', "typo", re.sub(r"hostname-placeholder-\d+", "host", text))


def sort_texts(result: Json) -> Json:
    """Return the result with sorted parts of texts: upstream iterates over Go maps."""
    return {
        key: {pod: sorted(re.split(r"; |, ", text)) for pod, text in part.items()}
        if key in ("errors", "refused")
        else part
        for key, part in result.items()
    }
