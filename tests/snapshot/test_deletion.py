"""A cluster after the deletion of pods equals one that never had them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedx.explain.difference import Story
from kschedx.framework.config import load_profiles
from kschedx.framework.runtime import Framework, request_options
from kschedx.framework.schedule import schedule
from kschedx.releases import resolve
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

RELEASE = resolve()
SCHEDULER = load_profiles(None, RELEASE)
ZONES = ("a", "b")
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
        ]
    }
}
KINDS: tuple[dict[str, Any], ...] = (
    {"labels": {"app": "web"}, "spec": {"topologySpreadConstraints": [SPREAD]}},
    {"labels": {"app": "db"}, "spec": {"affinity": AWAY}},
    {
        "labels": {"app": "port"},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    },
    {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "30"}}}]}},
    {"status": {"nominatedNodeName": "n1"}, "spec": {"priority": 10}},
)

NODES = [node(f"n{row}", labels={"zone": ZONES[row % 2], "kubernetes.io/hostname": f"n{row}"}) for row in range(4)]


def _pods(places: list[tuple[int, int]]) -> list[Manifest]:
    """Draw (kind, node) of each pod; pods of the last kind are pending with a nominated node."""
    return [
        pod(f"p{number}", on=None if kind == len(KINDS) - 1 else f"n{place}", **KINDS[kind])
        for number, (kind, place) in enumerate(places)
    ]


def _stories(snapshot: Snapshot) -> list[dict[str, object]]:
    """Return the outcome of a new pod of each kind."""
    framework = Framework(SCHEDULER.profiles[0], SCHEDULER, snapshot, RELEASE)
    newcomers = Snapshot.from_objects([pod(f"new{kind}", **KINDS[kind]) for kind in range(len(KINDS))]).pods
    return [Story.of(schedule(framework, newcomers[row])).to_dict() for row in range(len(newcomers))]


@given(
    places=st.lists(st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, len(NODES) - 1)), min_size=1, max_size=10),
    gone=st.sets(st.integers(0, 9), min_size=1, max_size=4),
    is_warm=st.booleans(),
)
def test_deletion_equals_absence(places: list[tuple[int, int]], gone: set[int], is_warm: bool) -> None:
    """With and without values computed before the first and the second deletion."""
    gone = {number for number in gone if number < len(places)}
    pods = _pods(places)
    whole = Snapshot.from_objects([*NODES, *pods])
    if is_warm:
        _stories(whole)
    first, rest = sorted(gone)[:1], sorted(gone)[1:]
    after = whole.without_pods(first)
    if is_warm:
        _stories(after)
    after = after.without_pods(rest)
    never = Snapshot.from_objects([*NODES, *(item for number, item in enumerate(pods) if number not in gone)])
    assert _stories(after) == _stories(never)
    table, other = (snapshot.nodes(request_options(RELEASE)) for snapshot in (after, never))
    assert np.array_equal(table.requested, other.requested)
    assert np.array_equal(table.nonzero_requested, other.nonzero_requested)
    assert np.array_equal(table.pod_count, other.pod_count)
    for row in map(TableRow, range(len(NODES))):
        assert len(table.pods_on(row)) == len(other.pods_on(row))
    # the cluster that it was made from has lost nothing
    assert _stories(whole) == _stories(Snapshot.from_objects([*NODES, *pods]))


def test_a_deleted_pod_is_not_pending() -> None:
    snapshot = Snapshot.from_objects([node("a"), pod("x"), pod("y")])
    pods = snapshot.without_pods([snapshot.pods.rows["default/x"]]).pods
    assert [pods.key(row) for row in pods.pending] == ["default/y"]
    assert len(snapshot.pods.pending) == 2
