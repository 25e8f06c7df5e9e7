"""How many pods a Job should have at a time."""

from __future__ import annotations

import pytest

from kschedx.controllers.workloads import parallel_replicas
from tests.builders import Manifest


@pytest.mark.parametrize(
    ("spec", "status", "pods"),
    [
        ({}, {}, 1),
        ({"parallelism": 3}, {"active": 3}, 3),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 1}, 3),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4, "active": 1}, 1),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 5}, 0),
        # without completions, one success says that no work is left: the others may finish
        ({"parallelism": 3}, {"succeeded": 0, "active": 2}, 3),
        ({"parallelism": 3}, {"succeeded": 1, "active": 2}, 2),
        ({"parallelism": 3}, {"succeeded": 3}, 0),
        ({"parallelism": 3, "suspend": True}, {"active": 3}, 0),
        ({"completions": 5}, {}, 1),
        ({"completions": 0}, {}, 0),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, 0),
    ],
)
def test_pods_at_a_time(spec: Manifest, status: Manifest, pods: int) -> None:
    job: Manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "q"}, "spec": spec, "status": status}
    assert parallel_replicas(job) == pods
