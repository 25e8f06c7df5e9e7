"""The pods that the autoscaler considers, by the flags that name schedulers."""

from __future__ import annotations

import pytest

from tests.autoscaler.single_group import autoscale, group, node, outcome, pod, status

SIMULATE_SKIPPED = {"scaleup-simulation-for-skipped-node-groups-enabled": "true"}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("", "considered"),
        ("Unschedulable", "considered"),
        ("SchedulingGated", "not-marked-unschedulable"),
        ("SchedulerError", "not-marked-unschedulable"),
    ],
)
def test_pods_of_a_bypassed_scheduler_need_no_condition(reason: str, expected: str) -> None:
    objects = [status(group()), node(), pod("web", cpu="2500m", reason=reason)]
    document = autoscale(objects, flags={"bypassed-scheduler-names": "default-scheduler"})
    assert outcome(document, "web") == expected


def test_pods_of_other_schedulers_are_ignored() -> None:
    running = pod("other", cpu="1500m", reason="", nodeName="workers-0", schedulerName="volcano")
    objects = [status(group()), node(), running, pod("web", cpu="1"), pod("batch", schedulerName="volcano")]
    assert outcome(autoscale(objects), "web") == "considered"
    document = autoscale(objects, flags={"allowed-scheduler-names": "default-scheduler"})
    assert outcome(document, "web") == "schedulable"
    assert outcome(document, "batch") == "not-looked-at"


@pytest.mark.parametrize("prefix", ["autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"])
@pytest.mark.parametrize(("flag", "expected"), [("true", "consumes-provisioning-request"), ("false", "considered")])
def test_a_pod_is_left_to_the_provisioning_request_that_it_consumes(prefix: str, flag: str, expected: str) -> None:
    train = pod("train", cpu="4")
    train["metadata"]["annotations"] = {f"{prefix}/consume-provisioning-request": "four-nodes"}
    objects = [status(group()), node(), train, pod("web", cpu="4")]
    document = autoscale(objects, flags={"enable-provisioning-requests": flag})
    assert (outcome(document, "train"), outcome(document, "web")) == (expected, "considered")


def test_a_pod_that_consumes_a_provisioning_request_may_fit_a_node() -> None:
    train = pod("train", cpu="1")
    train["metadata"]["annotations"] = {"autoscaling.x-k8s.io/consume-provisioning-request": "four-nodes"}
    document = autoscale([status(group()), node(), train], flags={"enable-provisioning-requests": "true"})
    assert outcome(document, "train") == "schedulable"


@pytest.mark.parametrize(("release", "expected"), [("1.36", "schedulable"), ("1.33", "not-looked-at")])
def test_a_nomination_for_a_starting_node_fails_in_old_versions(release: str, expected: str) -> None:
    """An upcoming node replaces the starting one, and old versions fail to place the pod on the missing node."""
    starting = node("workers-1")
    starting["metadata"]["creationTimestamp"] = "2026-06-01T11:59:00Z"
    starting["status"]["conditions"][0]["status"] = "False"
    nominated_pod = pod("first")
    nominated_pod["status"]["nominatedNodeName"] = "workers-1"
    workers = group(target=3, scale_up="InProgress")
    document = autoscale([status(workers), node(), starting, nominated_pod, pod("web", cpu="2")], release=release)
    assert (document["result"], outcome(document, "web")) == ("ScaleUpNotNeeded", expected)


@pytest.mark.parametrize(("flags", "awaiting"), [({}, []), (SIMULATE_SKIPPED, ["shop/large"])])
def test_a_skipped_group_is_simulated_if_the_flag_is_set(flags: dict[str, str], awaiting: list[str]) -> None:
    full = group("full", maximum=1)
    objects = [status(group(), full), node(cpu="4"), node("full-0", group="full", cpu="16")]
    running = [
        pod(f"busy-{name}", cpu="4" if name == "workers-0" else "14", nodeName=name) for name in ("workers-0", "full-0")
    ]
    document = autoscale([*objects, *running, pod("web", cpu="3"), pod("large", cpu="8")], flags=flags)
    assert list(document["choices"]["workers"]["awaiting"]) == awaiting
