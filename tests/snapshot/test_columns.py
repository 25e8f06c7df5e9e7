"""Columns of equal values, in which pods are stored."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedx import Snapshot
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.columns import distinct
from tests.builders import Manifest


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_values_are_sorted_and_unique(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


STATUSES: tuple[Manifest, ...] = (
    {"phase": "Running"},
    {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"},
    {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"phase": "Running", "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    {
        "phase": "Running",
        "initContainerStatuses": [{"name": "one", "state": {"waiting": {"reason": "PodInitializing"}}}],
    },
    {"phase": "Running", "containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]},
    {"phase": "Running", "allocatedResources": {"cpu": "1"}},
    {"phase": "Running", "resources": {"requests": {"cpu": "1"}}},
    {"phase": "Running", "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "one"}]},
    {"phase": "Running", "startTime": "2026-11-10T00:00:00Z", "nominatedNodeName": "a"},
)
VOLUMES: tuple[list[Manifest], ...] = (
    [],
    [{"name": "token-1", "projected": {}}],
    [{"name": "token-2", "projected": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
)


@given(st.lists(st.tuples(st.sampled_from(STATUSES), st.sampled_from(VOLUMES), st.sampled_from("ab")), max_size=8))
def test_pods_read_together_equal_those_read_one_by_one(parts: list[tuple[Manifest, list[Manifest], str]]) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{row * 7 % 10}", "namespace": text, "labels": {"app": text}},
            "spec": {"nodeName": text, "volumes": volumes, "containers": [{"name": "app", "image": "app"}]},
            "status": status,
        }
        for row, (status, volumes, text) in enumerate(parts)
    ]
    alone = [Snapshot.from_objects([pod]).pods[0] for pod in pods]
    together, in_turn = SnapshotBuilder(), SnapshotBuilder()
    together.add_objects(pods)
    for pod in pods:
        in_turn.add_objects([pod])
    expected = sorted(alone, key=lambda item: (item.metadata.namespace, item.metadata.name))
    for table in (together.finish().pods, in_turn.finish().pods):
        assert [table[row] for row in range(len(table))] == expected
        assert [table.rows[f"{pod.metadata.namespace}/{pod.metadata.name}"] for pod in expected] == [*range(len(table))]
