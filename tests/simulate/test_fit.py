"""The number of pods that fit, and of missing nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.inquiry.fit import Fit, fit
from kschedx.simulate.drain import DrainOutcome, DrainResult
from kschedx.snapshot.snapshot import Snapshot
from tests.simulate.clusters import budget, deployment, nodes, shop


def fitted(name: str, wanted: int | None = None) -> Fit:
    snapshot = Snapshot.from_objects(shop())
    pod = snapshot.pods[snapshot.pods.rows[f"shop/{name}"]]
    return fit(snapshot, Setup.of_cluster(snapshot), pod, wanted=wanted)


def test_pods_are_added_while_they_fit() -> None:
    result = fitted("web-0")
    assert result.nodes == {"node-5": 5, "node-1": 3, "node-2": 3, "node-3": 3, "node-4": 3}
    assert result.stopped is not None
    assert result.stopped.message == "0/5 nodes are available: 5 Insufficient cpu."


@pytest.mark.parametrize(("wanted", "enough"), [(17, True), (18, False)])
def test_a_required_number(wanted: int, enough: bool) -> None:
    result = fitted("web-0", wanted)
    assert result.is_enough is enough
    assert bool(result.missing) is not enough


def test_the_number_of_missing_nodes() -> None:
    result = fitted("batch-0", 10)
    assert result.count == 6
    assert [(item.like, item.nodes) for item in result.missing] == [("node-1", 1), ("node-4", 2)]


def test_missing_nodes_match_the_pod() -> None:
    objects = [*nodes(("4",) * 5), *deployment("web", "3", [None], node_selector={"disk": "ssd"})]
    metadata: Any = objects[4]["metadata"]
    metadata["labels"]["disk"] = "ssd"
    snapshot = Snapshot.from_objects(objects)
    result = fit(snapshot, Setup.of_cluster(snapshot), snapshot.pods[0], wanted=3)
    assert (result.count, [(item.like, item.nodes) for item in result.missing]) == (1, [("node-5", 2)])


def test_more_nodes_do_not_help_a_pod_that_fits_on_none() -> None:
    objects = [*nodes(("2", "2")), *deployment("web", "4", [None])]
    snapshot = Snapshot.from_objects(objects)
    result = fit(snapshot, Setup.of_cluster(snapshot), snapshot.pods[0], wanted=2)
    assert (result.count, result.missing) == (0, ())


def test_the_library_counts_the_same() -> None:
    snapshot = Snapshot.from_objects(shop())
    assert kschedx.fit(snapshot, "shop/web-0", replicas=17).is_enough
    assert not kschedx.fit(snapshot, "shop/web-0", replicas=18).is_enough


def test_no_number_of_pods_of_a_daemon_set() -> None:
    container = {"name": "main", "image": "agent"}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
    }
    with pytest.raises(InputError, match="one pod on each eligible node"):
        kschedx.fit(Snapshot.from_objects(shop()), daemon_set)


def test_a_team_keeps_under_test_what_can_be_drained(drained: Callable[..., DrainResult]) -> None:
    snapshot = Snapshot.from_objects(shop())
    assert drained(snapshot, "node-1").is_done
    stuck = Snapshot.from_objects([*shop()[:-1], budget("web", 0)])
    assert [item.budget for item in drained(stuck, "node-1").of(DrainOutcome.BUDGET)] == ["shop/web"]


def test_no_fix_deletes_a_counted_pod() -> None:
    """Deleting any of the pods makes room; the pods that are counted do not exist yet."""
    objects = [*nodes(("4",)), *deployment("web", "3", ["node-1"]), *deployment("db", "1", [None])]
    snapshot = Snapshot.from_objects(objects)
    pod = next(pod for pod in map(snapshot.pods.__getitem__, range(len(snapshot.pods))) if pod.metadata.name == "db-0")
    deleted = [
        change.target.name
        for fix in fit(snapshot, Setup.of_cluster(snapshot), pod).fixes
        for change in fix.changes
        if change.delete
    ]
    assert {*deleted} <= {"web-0"}
