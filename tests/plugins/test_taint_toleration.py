"""The toleration that is nearest to an untolerated taint."""

from __future__ import annotations

import pytest

from kschedx.kube.types import Node, NodeCondition, NodeStatus, Taint, Toleration
from kschedx.plugins.taint_toleration import untolerated_taint

TAINT = Taint(key="dedicated", value="gpu", effect="NoSchedule")
OTHER = Toleration(key="other", operator="Exists")
WRONG_VALUE = Toleration(key="dedicated", operator="Equal", value="cpu", effect="NoSchedule")
WRONG_EFFECT = Toleration(key="dedicated", operator="Equal", value="gpu", effect="NoExecute")
WRONG_BOTH = Toleration(key="dedicated", operator="Equal", value="cpu", effect="NoExecute")


@pytest.mark.parametrize(
    ("tolerations", "nearest", "differences"),
    [
        ((), None, ()),
        ((OTHER,), None, ()),
        ((OTHER, WRONG_VALUE), 1, ("value",)),
        ((WRONG_BOTH,), 0, ("value", "effect")),
        ((WRONG_BOTH, WRONG_EFFECT), 1, ("effect",)),
        # the first of equally near tolerations
        ((WRONG_VALUE, WRONG_EFFECT), 0, ("value",)),
        ((WRONG_EFFECT, WRONG_VALUE), 0, ("effect",)),
    ],
)
def test_the_nearest_toleration(
    tolerations: tuple[Toleration, ...], nearest: int | None, differences: tuple[str, ...]
) -> None:
    result = untolerated_taint(TAINT, tolerations)
    assert (result.nearest_toleration, result.nearest_differs) == (nearest, differences)


def test_the_document_joins_the_differences() -> None:
    result = untolerated_taint(TAINT, (WRONG_BOTH,)).to_dict()
    assert result["nearestDiffers"] == "value and effect"


def test_a_taint_has_the_message_of_its_node_condition() -> None:
    taint = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    ready = NodeCondition(type="Ready", status="False", reason="KubeletNotReady", message="cni config uninitialized")
    node = Node(status=NodeStatus(conditions=(NodeCondition(type="DiskPressure", message="other"), ready)))
    assert untolerated_taint(taint, (), node).condition == "cni config uninitialized"
    assert untolerated_taint(TAINT, (), node).condition == ""
    assert "condition" not in untolerated_taint(TAINT, (), node).to_dict()
