"""Loops that fail or have not run: kschedx reports what is known, and explains the pod as without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import kschedx
from kschedx.inquiry.explanation import Explanation
from tests.autoscaler.single_group import autoscale, group, node, pod, status

Json = Mapping[str, Any]
UPCOMING = group("empty", target=2, scale_up="InProgress")
"""Two upcoming nodes of a group without a known template."""
FAILURE = "could not get upcoming nodes: failed to find template node for node group empty"


def status_of(text: str) -> Json:
    return {**status(), "data": {"status": text}}


def explain(*objects: Json) -> Explanation:
    return kschedx.explain(kschedx.Snapshot.from_objects([dict(item) for item in objects]), "shop/web")


def test_a_failed_loop_reports_its_error_and_the_pods() -> None:
    scaling = autoscale([status(group(), UPCOMING), node(), pod("web", cpu="8")])
    assert (scaling["result"], scaling["error"]) == ("ScaleUpError", FAILURE)
    assert scaling["pods"]["shop/web"]["outcomes"][0]["outcome"] == "considered"


@pytest.mark.parametrize("release", ["1.28", "1.34", "1.36"])
def test_an_empty_group_whose_template_only_the_cloud_knows_is_no_failure(release: str) -> None:
    """The autoscaler reads the template of such a group from the cloud, for its limits as well."""
    worker = node()
    worker["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "workers"
    objects = [
        status(group(), group("empty", target=0)),
        worker,
        pod("busy", nodeName="workers-0"),
        pod("web", cpu="2"),
    ]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "shop/web", kube_version=release)
    scaling: Any = result.to_dict()["autoscaler"]
    assert (scaling["result"], scaling.get("error", "")) == ("ScaleUpSuccessful", "")
    assert [resize["group"] for resize in scaling["scaleUps"]] == ["workers"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("autoscalerStatus: Initializing\n", "had just started and had not read its node groups yet"),
        ("Cluster-autoscaler status at 2026-06-01 12:00:00 +0000 UTC:\nInitializing", "had not read its node groups"),
        ("{{{ garbled", "not valid YAML"),
        ("greeting: hello\n", "this is not a cluster-autoscaler status"),
    ],
)
def test_an_unreadable_status_keeps_the_answer_of_the_pod(text: str, expected: str) -> None:
    result = explain(status_of(text), node(), pod("web", cpu="8"))
    (note,) = (item for item in result.notes if item.id == "autoscaler-unreadable")
    assert expected in note.text
    assert result.to_dict()["outcome"] == explain(node(), pod("web", cpu="8")).to_dict()["outcome"]
