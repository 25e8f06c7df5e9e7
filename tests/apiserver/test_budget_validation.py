"""What an API server refuses about a PodDisruptionBudget."""

from __future__ import annotations

import pytest

from kschedx.apiserver.workload_validation import validate_budget


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"minAvailable": 1}, ""),
        ({"maxUnavailable": "0%"}, ""),
        ({"minAvailable": "100%", "unhealthyPodEvictionPolicy": "AlwaysAllow"}, ""),
        ({"minAvailable": 1, "maxUnavailable": None}, ""),
        (
            {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"b": "1", "a": "2"}}},
            'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"2","b":"1"}},"MaxUnavailable":1,',
        ),
        ({"maxUnavailable": -1}, "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        ({"minAvailable": "101%"}, 'spec.minAvailable: Invalid value: "101%": must not be greater than 100%'),
        (
            {"minAvailable": "1"},
            'spec.minAvailable: Invalid value: "1": a valid percent string must be a numeric string',
        ),
        (
            {"unhealthyPodEvictionPolicy": "Always"},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "Always": supported values: "AlwaysAllow", "IfHealthy',
        ),
    ],
)
def test_a_budget(spec: dict[str, object], told: str) -> None:
    found = [str(error) for error in validate_budget({"kind": "PodDisruptionBudget", "spec": spec})]
    assert [text[: len(told)] for text in found] == ([told] if told else [])
