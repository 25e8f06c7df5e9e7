"""Loops that fail or have not run: kschedx reports what is known, and explains the pod as without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import kschedx
from kschedx.inquiry.explanation import Explanation
from tests.autoscaler.single_group import autoscale, group, node, pod, status
from tests.builders import at, reported

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


def test_the_backoff_of_a_group_without_a_template_is_its_reason() -> None:
    scaling = autoscale([status(group(), group("empty", target=0, scale_up="Backoff")), node(), pod("web", cpu="8")])
    assert list(scaling["groups"]["empty"]["skipped"]) == ["in backoff after failed scale-up"]


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


TEXT_STATUS = """\
Cluster-autoscaler status at 2026-06-01 12:00:00 +0000 UTC:
NodeGroups:
  Name:        workers
  Health:      Healthy (ready=1 registered=1 cloudProviderTarget=1 (minSize=1, maxSize=3))
  ScaleUp:     Backoff (ready=1 cloudProviderTarget=1)
"""


@pytest.mark.parametrize(
    ("reason", "message", "error", "fix"),
    [
        (
            "FailedToScaleUpGroup",
            'Scale-up failed for group workers: Code="SubnetIsFull" Message="no capacity for 31 IP addresses"',
            "SubnetIsFull",
            "give node group workers a larger IP range, or another subnet",
        ),
        (
            "FailedToScaleUpGroup",
            "Scale-up failed for group workers: VcpuLimitExceeded: You have requested more vCPU capacity",
            "VcpuLimitExceeded",
            "raise the quota of the cloud account",
        ),
        (
            "FailedToScaleUpGroup",
            "Scale-up failed for group workers: more vCPU capacity than your current vCPU limit of 16 allows",
            "vCPU limit of 16",
            "raise the quota of the cloud account",
        ),
        (
            "ScaleUpFailed",
            "Failed adding 1 nodes to group workers due to OutOfResource.QUOTA_EXCEEDED; source errors: quota of CPUS",
            "QUOTA_EXCEEDED",
            "raise the quota of the cloud account",
        ),
        (
            "ScaleUpTimedOut",
            "Nodes added to group workers failed to register within 15m4s",
            "failed to register within 15m4s",
            "find out why new machines of node group workers do not join the cluster",
        ),
        (
            "FailedToScaleUpGroup",
            "Scale-up failed for group others: OutOfCapacity",
            "",
            "look up in cluster-autoscaler's log why node group workers did not grow",
        ),
    ],
)
def test_an_event_about_a_group_says_why_it_is_in_backoff(reason: str, message: str, error: str, fix: str) -> None:
    """Versions before 1.30 do not write the error into the status."""
    about = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": "kube-system", "name": "cluster-autoscaler-status"}
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"namespace": "kube-system", "name": "cluster-autoscaler-status.1"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
    }
    worker = node()
    worker["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "workers"
    busy = pod("busy", cpu="2", nodeName="workers-0")
    answer = explain(status_of(TEXT_STATUS), worker, busy, pod("web", cpu="1"), event)
    [scaling] = answer.scalings
    assert error in str(scaling)
    assert any(item["title"].startswith(fix) for item in at(answer.to_dict(), "fixes"))


@pytest.mark.parametrize(("minute", "is_denied"), [("55", True), ("30", False)])
def test_what_the_autoscaler_itself_reports_now_is_not_contradicted(minute: str, is_denied: bool) -> None:
    message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    seen = f"2026-06-01T08:{minute}:00Z"
    event = reported("cluster-autoscaler", "NotTriggerScaleUp", message, pod="shop/web", lastTimestamp=seen)
    worker, target = node(), pod("web", cpu="1")
    worker["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "workers"
    target["metadata"]["creationTimestamp"] = "2026-06-01T09:00:00Z"
    answer = explain(status(group()), worker, pod("busy", cpu="2", nodeName="workers-0"), target, event)
    assert answer.is_scaled_up is not is_denied
    assert answer.fixes[0].title.startswith("let the node group use" if is_denied else "wait for cluster-autoscaler")


FAILED_GROUP = "Failed adding 1 nodes to group ng-a due to OutOfResource.InsufficientInstanceCapacity; source errors: "


@pytest.mark.parametrize(
    ("group", "failed", "is_scaled_up"), [("ng-a", "10:01", False), ("ng-a", "09:59", True), ("ng-b", "10:01", True)]
)
def test_a_scale_up_whose_group_failed_since_is_over(group: str, failed: str, is_scaled_up: bool) -> None:
    triggered = f"pod triggered scale-up: [{{{group} 1->2 (max: 5)}}]"
    seen = "2026-06-01T10:00:00Z"
    of_pod = reported("cluster-autoscaler", "TriggeredScaleUp", triggered, pod="shop/web", lastTimestamp=seen)
    about = {"kind": "ConfigMap", "namespace": "kube-system", "name": "cluster-autoscaler-status"}
    of_group = {**of_pod, "reason": "ScaleUpFailed", "message": FAILED_GROUP, "involvedObject": about}
    of_group |= {"metadata": {"name": "status.1"}, "lastTimestamp": f"2026-06-01T{failed}:00Z"}
    answer = explain(node(), pod("web", cpu="8"), of_pod, of_group)
    assert answer.is_scaled_up is is_scaled_up
    assert answer.fixes[0].title.startswith("wait for cluster-autoscaler" if is_scaled_up else "let the node group use")


def test_a_pod_that_selects_the_host_name_of_a_lost_node() -> None:
    worker, target = node(), pod("web", cpu="2")
    worker["metadata"]["labels"] |= {"eks.amazonaws.com/nodegroup": "workers", "kubernetes.io/hostname": "workers-0"}
    target["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "lost"}
    answer = explain(status(group()), worker, pod("busy", cpu="2", nodeName="workers-0"), target)
    expected = "stop requiring kubernetes.io/hostname=lost, then cluster-autoscaler adds a node to workers"
    assert answer.fixes[0].title == expected


BACKED_OFF = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
QUOTA = "Scale-up failed for group ng-a: VcpuLimitExceeded"
LOST = "Nodes added to group ng-a failed to register within 15m4s"
NO_ADDRESSES = "Node scale up in zones a associated with this pod failed: IP space exhausted."


@pytest.mark.parametrize(
    ("of_pod", "of_group", "expected"),
    [
        ({"NotTriggerScaleUp": BACKED_OFF}, QUOTA, "raise the quota"),
        ({"NotTriggerScaleUp": BACKED_OFF}, LOST, "find out why new machines"),
        ({"FailedScaleUp": NO_ADDRESSES, "NotTriggerScaleUp": BACKED_OFF}, QUOTA, "give the node group a larger IP"),
        ({"FailedScheduling": "0/1 nodes are available: 1 Insufficient cpu."}, QUOTA, "raise the quota"),
        ({"FailedScheduling": "0/1 nodes are available: 1 node(s) were unschedulable."}, QUOTA, "add a node"),
    ],
)
def test_a_failed_scale_up_is_known_from_events_alone(of_pod: Mapping[str, str], of_group: str, expected: str) -> None:
    """`kubectl get pods,nodes,events` lacks the status ConfigMap."""
    seen = {"lastTimestamp": "2026-06-01T10:00:00Z"}
    by = {"FailedScheduling": "default-scheduler"}
    events = [
        reported(by.get(reason, "cluster-autoscaler"), reason, message, pod="shop/web", **seen)
        for reason, message in of_pod.items()
    ]
    about = {"kind": "ConfigMap", "namespace": "kube-system", "name": "cluster-autoscaler-status"}
    failed = {**reported("", "FailedToScaleUpGroup", of_group, pod="x/y", **seen), "involvedObject": about}
    assert explain(node(), pod("web", cpu="8"), *events, failed).fixes[0].title.startswith(expected)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "pod didn't trigger scale-up: 2 node(s) didn't match node selector, 1 not ready for scale-up",
            "repair the nodes of the node group that do not join or are not ready",
        ),
        ("max total nodes in cluster reached", "raise --max-nodes-total of cluster-autoscaler"),
    ],
)
def test_what_keeps_a_group_from_growing_is_repaired(message: str, expected: str) -> None:
    event = reported("cluster-autoscaler", "NotTriggerScaleUp", message, pod="shop/web")
    first, *_ = explain(node(), pod("web", cpu="8"), event).fixes
    assert first.title.startswith(expected)
