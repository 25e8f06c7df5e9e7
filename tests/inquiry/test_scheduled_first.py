"""Pending pods that come earlier in the queue are assigned before the pod in question, in `why` as in `simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kschedx
from kschedx.framework.cycle import Outcome
from tests.builders import Manifest, at, node, pod
from tests.command import CommandResult
from tests.command import kschedx as command

SAYS = "default/high, with a higher priority, takes the room first"
EQUAL = "default/high, earlier in the queue, takes the room first"


def asks(name: str, cpu: str, priority: int, **status: object) -> Manifest:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return pod(name, spec={"containers": [container], "priority": priority}, status={"phase": "Pending", **status})


def since(minute: int, pending: Manifest) -> Manifest:
    return {**pending, "metadata": {**at(pending, "metadata"), "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z"}}


def deployment(replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": asks("web", "500m", 0)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def answer(folder: Path, *arguments: str, objects: list[Manifest], new: Manifest | None = None) -> CommandResult:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (folder / "new.json").write_text(json.dumps(new))
    return command(*arguments, "-s", "cluster.json", cwd=folder, columns=400)


@pytest.mark.parametrize(
    ("of_high", "priority", "says"),
    [("1", 9, SAYS), ("500m", 9, ""), ("2", 9, ""), ("1", 0, EQUAL), ("1", -1, "")],
    ids=["no room is left", "room is left", "it does not fit", "the same priority", "a lower priority"],
)
def test_a_pod_is_pending_if_others_take_its_room(tmp_path: Path, of_high: str, priority: int, says: str) -> None:
    small = node("small", allocatable={"cpu": "1", "pods": "9"})
    low, high = asks("low", "500m", 0), asks("high", of_high, priority)
    objects, is_taken, own = [small, since(1, high)], bool(says), since(2, low)
    stored = answer(tmp_path, "why", "pod/low", objects=[*objects, own])
    assert stored.out.startswith("✗ default/low is unschedulable" if is_taken else "✓ default/low would be assigned")
    assert ("room first\n" in stored.out, says in stored.out, stored.code) == (is_taken, True, int(is_taken))
    assert answer(tmp_path, "why", "pod/low", "--alone", objects=[*objects, own]).code == 0
    next_cycle = kschedx.explain(kschedx.Snapshot.from_objects([*objects, own]), "default/low")
    assert (next_cycle.outcome, next_cycle.best_nodes) == (Outcome.SCHEDULED, ("small",))
    assert answer(tmp_path, "why", "new.json", objects=objects, new=low).code == int(is_taken)
    queue = json.loads(answer(tmp_path, "simulate", "-o", "json", objects=[*objects, own]).out)
    assert ("default/low" in queue["pending"]) is is_taken
    if not priority:  # it is in the queue for a shorter time, or for an unknown one
        for other in (since(3, high), since(2, high), high):
            assert answer(tmp_path, "why", "pod/low", objects=[small, own, other]).code == 0
    several = answer(tmp_path, "why", "new.json", objects=objects, new=deployment(2)).out
    assert not is_taken or says in several
    assert several.startswith("✗ default/deploy/web: none of 2 replicas can be scheduled") is is_taken


def test_a_pod_that_gets_another_node_is_answered_with_that_node(tmp_path: Path) -> None:
    best = node("a", allocatable={"cpu": "4", "pods": "9"})
    nodes = [best, node("b", allocatable={"cpu": "1", "pods": "9"})]
    out = answer(tmp_path, "why", "pod/low", objects=[*nodes, asks("high", "4", 9), asks("low", "500m", 0)]).out
    assert out.startswith("✓ default/low would be assigned to b")
    assert "default/high, with a higher priority, is assigned first" in out


def test_a_pod_about_which_the_cluster_reports_otherwise_takes_no_room(tmp_path: Path) -> None:
    message = "0/1 nodes are available: 1 node(s) had untolerated taint {x: y}."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    objects = [
        node("small", allocatable={"cpu": "1", "pods": "9"}),
        asks("high", "1", 9, conditions=[condition]),
        asks("low", "500m", 0),
    ]
    assert answer(tmp_path, "why", "pod/high", objects=objects).code == 3
    result = answer(tmp_path, "why", "pod/low", objects=objects)
    assert (result.out.startswith("✓ default/low would be assigned to small"), result.code) == (True, 0)
