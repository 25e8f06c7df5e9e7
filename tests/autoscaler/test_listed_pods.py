"""Which pods the autoscaler sees at all, by the flags that name schedulers."""

from __future__ import annotations

import pytest

from tests.autoscaler.small import autoscale, group, node, outcome, pod, status


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
