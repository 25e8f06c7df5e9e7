"""Objects as large as an API server stores them, full of one thing, are explained within seconds."""

from __future__ import annotations

import time

import pytest

from kschedx import explain
from kschedx.explain import events
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

MANY = 5000
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}


@pytest.mark.parametrize(
    ("place", "spec"),
    [
        (node("n", taints=[f"t{number}:NoSchedule" for number in range(MANY)]), {}),
        (node("n"), {"containers": [{"name": "c", "ports": [{"hostPort": number + 1} for number in range(MANY)]}]}),
        (node("n"), {"topologySpreadConstraints": [{**SPREAD, "topologyKey": f"z{n}"} for n in range(MANY)]}),
        (node("n"), {"schedulingGates": [{"name": f"g{number}"} for number in range(MANY)]}),
        (node("n"), {"nodeSelector": {f"k{number}": "v" for number in range(MANY)}}),
    ],
    ids=["taints", "ports", "constraints", "gates", "labels"],
)
def test_an_object_of_many_parts(place: Manifest, spec: Manifest) -> None:
    builder = SnapshotBuilder()
    builder.add_objects([place, pod("x", spec=spec), pod("y", on="n", spec=spec)])
    started = time.monotonic()
    assert explain(Snapshot.of_contents(builder.finish()), "default/x").to_dict()["outcome"]
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: " + ", ".join(f"{number} x" for number in range(200_000)),
        "failed to fit in any node fit failure summary on nodes : " + "a (" * 300_000,
        "failed to fit in any node fit failure summary on nodes : " + "a (1), " * 200_000,
        "9" * 1_000_000 + "/1 nodes are available: 1 a.",
        "0/1 nodes are available: " + "9" * 5000 + " Insufficient cpu.",
        "0/1 nodes are available: 1 node(s) had untolerated taint {" + "a: " * 300_000,
        'PersistentVolumeClaim is not bound: "' * 50_000,
        ". 1 " * 300_000,
    ],
)
def test_a_message_without_end(message: str) -> None:
    started = time.monotonic()
    events.parse(message)
    assert time.monotonic() - started < 5
