"""Which pods the autoscaler sees at all, by the flags that name schedulers."""

from __future__ import annotations

import pytest

from tests.autoscaler.small import autoscale, group, node, outcome, pod, status

CHECKED = {"scaleup-simulation-for-skipped-node-groups-enabled": "true"}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("", "considered"),
        ("Unschedulable", "considered"),
        ("SchedulingGated", "not-marked-unschedulable"),
        ("SchedulerError", "not-marked-unschedulable"),
    ],
)
def test_a_bypassed_scheduler_is_not_waited_for_where_it_has_said_nothing(reason: str, expected: str) -> None:
    objects = [status(group()), node(), pod("web", cpu="2500m", reason=reason)]
    document = autoscale(objects, flags={"bypassed-scheduler-names": "default-scheduler"})
    assert outcome(document, "web") == expected


def test_pods_of_schedulers_that_are_not_allowed_are_not_there() -> None:
    running = pod("other", cpu="1500m", reason="", nodeName="workers-0", schedulerName="volcano")
    objects = [status(group()), node(), running, pod("web", cpu="1"), pod("batch", schedulerName="volcano")]
    assert outcome(autoscale(objects), "web") == "considered"
    document = autoscale(objects, flags={"allowed-scheduler-names": "default-scheduler"})
    assert outcome(document, "web") == "schedulable"
    assert outcome(document, "batch") == "not-looked-at"


@pytest.mark.parametrize(("release", "expected"), [("1.36", "schedulable"), ("1.33", "not-looked-at")])
def test_a_nomination_for_a_node_that_has_not_started_ends_the_loops_of_old_releases(
    release: str, expected: str
) -> None:
    """The upcoming node stands in for it, and to put a pod on a node that is not there is an error."""
    starting = node("workers-1")
    starting["metadata"]["creationTimestamp"] = "2026-06-01T11:59:00Z"
    starting["status"]["conditions"][0]["status"] = "False"
    nominated = pod("first")
    nominated["status"]["nominatedNodeName"] = "workers-1"
    workers = group(target=3, scale_up="InProgress")
    document = autoscale([status(workers), node(), starting, nominated, pod("web", cpu="2")], release=release)
    assert (document["result"], outcome(document, "web")) == ("ScaleUpNotNeeded", expected)


@pytest.mark.parametrize(("flags", "awaiting"), [({}, []), (CHECKED, ["shop/large"])])
def test_a_pod_that_fits_a_group_left_out_is_looked_at_again_where_such_groups_are_checked(
    flags: dict[str, str], awaiting: list[str]
) -> None:
    full = group("full", maximum=1)
    objects = [status(group(), full), node(cpu="4"), node("full-0", group="full", cpu="16")]
    busy = [
        pod(f"busy-{name}", cpu="4" if name == "workers-0" else "14", nodeName=name) for name in ("workers-0", "full-0")
    ]
    document = autoscale([*objects, *busy, pod("web", cpu="3"), pod("large", cpu="8")], flags=flags)
    assert list(document["choices"]["workers"]["awaiting"]) == awaiting
