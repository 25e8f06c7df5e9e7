"""The status ConfigMap: structured since 1.30, a text before, and invalid ones."""

from __future__ import annotations

import pytest

from kschedx.autoscaler.status import Health, NodeGroupStatus, ScaleUp, read_status
from kschedx.errors import InputError

STRUCTURED = """
autoscalerStatus: Running
time: 2026-07-01 03:41:12 +0000 UTC
clusterWide:
  health: {status: Healthy}
nodeGroups:
- name: gpu-b
  health:
    status: Healthy
    cloudProviderTarget: 3
    minSize: 1
    maxSize: 8
    nodeCounts:
      registered: {total: 3, ready: 2, notStarted: 1, unready: {total: 0}}
      longUnregistered: 1
      unregistered: 0
  scaleUp:
    status: Backoff
    backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no more GPUs}
- name: empty
  health: {status: Healthy, cloudProviderTarget: 0, minSize: 0, maxSize: 5}
  scaleUp: {status: NoActivity}
"""

TEXT = """Cluster-autoscaler status at 2023-05-11 10:02:03.123 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=4 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=4 longUnregistered=0)
               LastProbeTime:      2023-05-11 10:02:03 +0000 UTC
  ScaleUp:     NoActivity (ready=4 registered=4)

NodeGroups:
  Name:        eks-web-4cc1
  Health:      Healthy (ready=3 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=3 longUnregistered=0 cloudProviderTarget=3 (minSize=1, maxSize=4))
               LastProbeTime:      2023-05-11 10:02:03 +0000 UTC
  ScaleUp:     InProgress (ready=3 cloudProviderTarget=3)
  ScaleDown:   CandidatesPresent (candidates=2)

  Name:        eks-gpu-77aa
  Health:      Unhealthy (ready=1 unready=4 notStarted=0 registered=5 longUnregistered=2 cloudProviderTarget=7 (minSize=0, maxSize=9))
  ScaleUp:     Backoff (ready=1 cloudProviderTarget=7)
  ScaleDown:   NoCandidates (candidates=0)
"""  # noqa: E501 - as the autoscaler writes it


def test_a_structured_status() -> None:
    status = read_status(STRUCTURED)
    assert (status.state, status.health) == ("Running", Health.HEALTHY)
    assert status.groups == (
        NodeGroupStatus(
            name="gpu-b", target=3, min_size=1, max_size=8, health=Health.HEALTHY, scale_up=ScaleUp.BACKOFF,
            backoff_code="QUOTA_EXCEEDED", backoff_message="no more GPUs",
            long_unregistered=1,
        ),
        NodeGroupStatus(name="empty", target=0, max_size=5, health=Health.HEALTHY, scale_up=ScaleUp.NO_ACTIVITY),
    )  # fmt: skip


def test_a_text_status() -> None:
    web, gpu = read_status(TEXT).groups
    assert web == NodeGroupStatus(
        name="eks-web-4cc1", target=3, min_size=1, max_size=4, health=Health.HEALTHY, scale_up=ScaleUp.IN_PROGRESS,
    )  # fmt: skip
    assert (gpu.health, gpu.scale_up, gpu.long_unregistered, gpu.target, gpu.max_size) == (
        Health.UNHEALTHY, ScaleUp.BACKOFF, 2, 7, 9,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not a cluster-autoscaler status"),
        ("hello", "not a cluster-autoscaler status"),
        ("{", "not valid YAML"),
        pytest.param("[" * 200_000, "nested more than 200 deep", id="deep"),
        ("nodeGroups: []\n---\nnodeGroups: []", "one YAML document is expected, not 2"),
        ("nodeGroups: 3", "nodeGroups is not a list"),
        ("nodeGroups: [{health: {}}]", r"nodeGroups\[0\] has no name"),
        ("nodeGroups: [{name: a, health: {maxSize: many}}]", "maxSize is not a number"),
        (
            "nodeGroups: [{name: a, health: {cloudProviderTarget: 100001}}]",
            "node group a has a target of 100,001 nodes",
        ),
        ("Cluster-autoscaler status at 2023:\nNodeGroups:\n  Name: a\n", "a has no Health line"),
    ],
)
def test_an_invalid_status_is_reported_with_its_object(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as error:
        read_status(text)
    assert "cluster-autoscaler-status" in str(error.value.place)
