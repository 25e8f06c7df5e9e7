"""The groups of rejected nodes."""

from __future__ import annotations

import pytest

from kschedx.explain.node_groups import account, node_groups
from kschedx.findings import HostPortConflict, InsufficientResource
from kschedx.kube.names import HOSTNAME
from tests.builders import Manifest, at, evaluate, node, pod

ZONE = "topology.kubernetes.io/zone"


def groups(*objects: Manifest) -> list[list[str]]:
    """Return the nodes of each group, the nearest group first."""
    cycle = evaluate(objects, "default/me")
    assert cycle.nodes is not None
    return [[cycle.nodes.name(row) for row in group.rows] for group in node_groups(cycle)]


def near(key: str) -> Manifest:
    """Return a pod with affinity to app=db, which no pod has."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}}
    return pod("me", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def with_port(name: str, port: int, protocol: str, *, on: str | None = None) -> Manifest:
    ports = [{"containerPort": port, "hostPort": port, "protocol": protocol}]
    return pod(name, on=on, containers=[{"name": "main", "ports": ports}])


def test_a_zone_without_matching_pods_is_its_own_group() -> None:
    nodes = [node(f"{zone}{number}", labels={ZONE: zone}) for zone in "abc" for number in range(2)]
    assert groups(*nodes, near(ZONE)) == [["a0", "a1"], ["b0", "b1"], ["c0", "c1"]]


def test_nodes_that_are_domains_are_one_group() -> None:
    nodes = [node(name, labels={HOSTNAME: name}) for name in "abc"]
    assert groups(*nodes, near(HOSTNAME)) == [["a", "b", "c"]]


def test_a_port_of_two_protocols_is_two_groups() -> None:
    wanted = with_port("me", 80, "TCP")
    containers = at(wanted, "spec.containers")
    containers[0]["ports"].append({"containerPort": 80, "hostPort": 80, "protocol": "UDP"})
    taken = [
        with_port("tcp", 80, "TCP", on="a"),
        with_port("udp", 80, "UDP", on="b"),
        with_port("more", 80, "TCP", on="c"),
    ]
    assert groups(node("a"), node("b"), node("c"), *taken, wanted) == [["a", "c"], ["b"]]


def test_a_too_small_node_and_a_full_node_are_two_groups() -> None:
    asks = {"resources": {"requests": {"cpu": "2"}}}
    small, full = ({"cpu": cpu, "memory": "1Gi", "pods": "110"} for cpu in ("1", "2"))
    holder = pod("holder", on="full", containers=[{"name": "main", **asks}])
    me = pod("me", containers=[{"name": "main", **asks}])
    assert groups(node("small", allocatable=small), node("full", allocatable=full), holder, me) == [["full"], ["small"]]


@pytest.mark.parametrize(("used", "distance"), [(0, 0.0), (1500, 0.25), (2000, 0.5), (4000, 1.5)])
def test_the_distance_of_a_shortage_is_a_fraction_of_the_request(used: int, distance: float) -> None:
    short = InsufficientResource(resource="cpu", requested=2000, used=used, allocatable=3000, unit="m")
    assert short.distance == distance


def test_the_holder_of_a_port_does_not_matter() -> None:
    first, second = (
        HostPortConflict(port=80, protocol="TCP", host_ip="", holder=holder, holder_host_ip="")
        for holder in ("default/one", "default/two")
    )
    assert first != second
    assert first.same_as == second.same_as


def test_nodes_rejected_only_by_nominated_pods_are_one_group() -> None:
    asks = {"resources": {"requests": {"cpu": "2"}}}
    room = {"cpu": "2", "memory": "1Gi", "pods": "110"}
    running = pod("running", on="full", containers=[{"name": "main", **asks}])
    comes = pod("comes", status={"nominatedNodeName": "taken"}, priority=9, containers=[{"name": "main", **asks}])
    me = pod("me", containers=[{"name": "main", **asks}])
    objects = [node("full", allocatable=room), node("taken", allocatable=room), running, comes, me]
    cycle = evaluate(objects, "default/me")
    items = [account(cycle, group.rows[0]).blockers[0].with_nominated for group in node_groups(cycle)]
    assert groups(*objects) == [["taken"], ["full"]]
    assert items == [True, False]


def test_a_mismatched_selector_is_its_own_group() -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    me = pod("me", nodeSelector={ZONE: "a"}, affinity=affinity)
    assert groups(node("in", labels={ZONE: "a", "disk": "nvme"}), node("out", labels={"disk": "nvme"}), me) == [
        ["in"],
        ["out"],
    ]
