"""Pod groups as a whole."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from tests.holding.objects import Json, node, pod, told

GANGS = {"GenericWorkload": True, "GangScheduling": True}


def pod_group(min_count: int, **fields: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}, **fields}
    metadata = {"name": "g", "namespace": "ml"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, *, gates: tuple[str, ...] = (), **fields: Any) -> Json:
    return pod(name, gates=gates, schedulingGroup={"podGroupName": "g"}, **fields)


@pytest.mark.parametrize(
    ("objects", "together", "lacking"),
    [
        ((node("a"), node("b")), 3, {}),
        ((node("a"),), 2, {"ml/m-2": ["1 Insufficient cpu"]}),
        ((node("a", cpu="4"),), 1, {"ml/m-1": ["1 Insufficient cpu"], "ml/m-2": ["1 Insufficient cpu"]}),
    ],
    ids=["room for all", "none for one", "room for one"],
)
def test_a_group_is_placed_as_a_whole(objects: tuple[Json, ...], together: int, lacking: Json) -> None:
    about, *others = (member(f"m-{number}") for number in range(3))
    snapshot = kschedx.Snapshot.from_objects([*objects, *others, pod_group(3)])
    found = kschedx.explain(snapshot, about, feature_gates=GANGS)
    group = found.holding.group
    assert group is not None
    assert (group.pods, group.together, group.lacks_room) == (3, together, bool(lacking))
    assert {one.pod: list(one.reasons) for one in group.waiting if not one.node} == lacking
    assert found.outcome == "Scheduled"
    assert found.overall == ("Unschedulable" if lacking else "Scheduled")
    words = (
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked "
    )
    assert group.message == (f"{words}to wait and no plugin rejected pod" if lacking else "")


@pytest.mark.parametrize(("priority", "is_open"), [(0, True), (100, False)])
def test_whether_pods_go_for_a_group_as_a_whole_is_not_known(priority: int, is_open: bool) -> None:
    gates = {**GANGS, "WorkloadAwarePreemption": True}
    other = pod("other", cpu="4", gates=(), labels={}, nodeName="a", priority=priority)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), other, *members, pod_group(2)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=gates).holding.group
    assert group is not None
    assert (group.may_evict_as_a_whole, group.together) == (is_open, None if is_open else 1)


def test_room_that_depends_on_the_draw_among_nodes_that_tie() -> None:
    """The first pod fits both nodes alike, the second, which can use the first node alone, not beside it."""
    nodes = node("a", cpu="4", zone="z"), node("b", cpu="4", zone="y")
    about, other = member("m-0"), member("m-1", nodeSelector={"zone": "z"})
    snapshot = kschedx.Snapshot.from_objects([*nodes, other, pod_group(2)])
    found = kschedx.explain(snapshot, about, feature_gates=GANGS)
    group = found.holding.group
    assert group is not None
    assert (group.together, group.is_by_draw, group.lacks_room) == (2, True, False)
    assert found.overall == "Scheduled"


@pytest.mark.parametrize(("taken", "evicts"), [("4", [0, 1]), ("6", [1, 0])])
def test_a_group_that_needs_preemption_has_room(taken: str, evicts: list[int]) -> None:
    victim = pod("low", cpu=taken, gates=(), labels={}, nodeName="a", priority=0)
    members = member("m-0", priority=100), member("m-1", priority=100)
    snapshot = kschedx.Snapshot.from_objects([node("a"), victim, *members, pod_group(2)])
    group = kschedx.explain(snapshot, "ml/m-0", feature_gates=GANGS).holding.group
    assert group is not None
    assert ([one.evicts for one in group.waiting], group.lacks_room) == (evicts, False)


def test_who_is_gated_or_missing_is_told_before_room() -> None:
    others = [member("m-1"), member("m-2", gates=("example.com/quota",))]
    group = told(node("a"), *others, pod_group(4), about=member("m-0"), feature_gates=GANGS)["group"]
    assert (group["pods"], group["minCount"], group["together"]) == (3, 4, 2)
    assert group["waiting"][2]["gates"] == ["example.com/quota"]


@pytest.mark.parametrize(
    "fields",
    [{"gates": None}, {"constraints": {"topology": [{"key": "zone"}]}}],
    ids=["gates off", "placements by topology"],
)
def test_a_group_that_is_not_known_as_a_whole(fields: Json) -> None:
    constraints = {"schedulingConstraints": fields["constraints"]} if "constraints" in fields else {}
    options: Json = {} if "gates" in fields else {"feature_gates": GANGS}
    snapshot = kschedx.Snapshot.from_objects([node("a"), member("m-1"), member("m-2"), pod_group(3, **constraints)])
    found = kschedx.explain(snapshot, member("m-0"), **options)
    group = found.holding.group
    assert group is not None
    assert (group.is_heeded, group.together) == ("gates" not in fields, None)
    assert found.overall == "Scheduled"
    assert [one.feasible for one in group.waiting] == [1, 1, 1]
