"""NodePorts: conflicts of host ports, also of added and removed pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.findings import HostPortConflict
from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, Status
from kschedx.plugins.node_ports import NodePorts
from kschedx.snapshot.columns import ClusterRows, TableRow
from kschedx.snapshot.nodes import NodeTable, PodRows
from tests.builders import Manifest, framework, node, only, pod

REASON = "node(s) didn't have free ports for the requested pod ports"


def port(text: str) -> Manifest:
    """Return a port written as `port` or `ip:port`, either with `/protocol`."""
    address, _, protocol = text.partition("/")
    ip, _, number = address.rpartition(":")
    result: Manifest = {"containerPort": 80, "hostPort": int(number)}
    return result | ({"hostIP": ip} if ip else {}) | ({"protocol": protocol} if protocol else {})


def using(name: str, ports: Iterable[str], *, on: str | None = None) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "ports": [port(text) for text in ports]}])


def start(objects: Sequence[Manifest]) -> tuple[Framework, NodePorts, CycleState]:
    """Return the state after PreFilter for the pod `new`, the first object."""
    work = framework(objects, only("NodePorts"))
    plugin, state = work.plugins("filter", NodePorts)[0], CycleState()
    assert plugin.pre_filter(state, work.snapshot.pods[0], work.nodes).status.is_success
    return work, plugin, state


def statuses(work: Framework, plugin: NodePorts, state: CycleState, nodes: NodeTable | None = None) -> list[Status]:
    verdicts = plugin.filter(state, work.snapshot.pods[0], work.nodes if nodes is None else nodes)
    return [verdicts.status(TableRow(row)) for row in range(len(verdicts))]


@pytest.mark.parametrize(
    ("requested_ports", "used_ports", "passes"),
    [
        (["80"], [], True),
        (["80"], ["81"], True),
        (["80"], ["80"], False),
        (["80"], ["80/UDP"], True),
        (["80/UDP"], ["80/UDP"], False),
        (["80"], ["80/TCP"], False),
        (["80"], ["10.0.0.1:80"], False),
        (["10.0.0.1:80"], ["80"], False),
        (["10.0.0.1:80"], ["0.0.0.0:80"], False),
        (["10.0.0.1:80"], ["10.0.0.2:80"], True),
        (["10.0.0.1:80"], ["10.0.0.1:80"], False),
        (["10.0.0.1:80"], ["10.0.0.1:80/SCTP"], True),
        (["70", "80"], ["80", "90"], False),
        # only 0.0.0.0 means every address
        (["[::]:80"], ["10.0.0.1:80"], True),
    ],
)
def test_conflicts_of_host_ports(requested_ports: list[str], used_ports: list[str], passes: bool) -> None:
    work, plugin, state = start([using("new", requested_ports), node("n"), using("old", used_ports, on="n")])
    [status] = statuses(work, plugin, state)
    assert (status.code, status.reasons) == ((Code.SUCCESS, ()) if passes else (Code.UNSCHEDULABLE, (REASON,)))
    assert bool(status.findings) is not passes


def test_findings_name_every_conflicting_pod() -> None:
    objects = [using("new", ["80", "53/UDP"]), node("n"), using("a", ["10.0.0.1:80"], on="n")]
    work, plugin, state = start([*objects, using("b", ["53/UDP", "99"], on="n")])
    [status] = statuses(work, plugin, state)
    assert status.findings == (
        HostPortConflict(port=80, protocol="TCP", host_ip="0.0.0.0", holder="default/a", holder_host_ip="10.0.0.1"),
        HostPortConflict(port=53, protocol="UDP", host_ip="0.0.0.0", holder="default/b", holder_host_ip="0.0.0.0"),
    )


def test_a_pod_without_host_ports_is_skipped() -> None:
    work = framework([pod("new", containers=[{"name": "main", "ports": [{"containerPort": 80}]}]), node("n")])
    plugin = work.plugins("filter", NodePorts)[0]
    assert plugin.pre_filter(CycleState(), work.snapshot.pods[0], work.nodes).status.is_skip


@pytest.mark.parametrize(("restart", "passes"), [("Always", False), (None, True)])
def test_sidecars_use_host_ports(restart: str | None, passes: bool) -> None:
    init = {"name": "init", "ports": [port("80")], "restartPolicy": restart}
    work, plugin, state = start([using("new", ["80"]), node("n"), pod("old", on="n", initContainers=[init])])
    assert statuses(work, plugin, state)[0].is_success is passes


def test_finished_pods_use_no_host_ports() -> None:
    finished_pod = using("done", ["80"], on="n") | {"status": {"phase": "Succeeded"}}
    work, plugin, state = start(
        [using("new", ["80"]), node("n"), node("m"), finished_pod, using("old", ["80"], on="m")]
    )
    assert [status.is_success for status in statuses(work, plugin, state)] == [True, False]


def change(*pairs: tuple[int, int]) -> PodRows:
    """Return the change of pods on nodes, both by row."""
    pods, nodes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return PodRows(pods=pods, nodes=ClusterRows(nodes))


def test_a_second_port_stays_in_use() -> None:
    objects = [using("new", ["80", "81"]), node("n"), using("a", ["80"], on="n"), using("b", ["81"], on="n")]
    work, plugin, state = start(objects)
    without_a = work.remove_pods(state, work.snapshot.pods[0], work.nodes, change((1, 0)))
    assert not statuses(work, plugin, state, without_a)[0].is_success


def test_removing_one_of_two_pods_frees_their_port() -> None:
    """kube-scheduler keeps the ports of a node as a set."""
    objects = [using("new", ["80"]), node("n"), using("a", ["80"], on="n"), using("b", ["80"], on="n")]
    work, plugin, state = start(objects)
    incoming = work.snapshot.pods[0]
    without_a = work.remove_pods(state, incoming, work.nodes, change((1, 0)))
    assert statuses(work, plugin, state, without_a)[0].is_success
    without_both = work.remove_pods(state, incoming, without_a, change((2, 0)))
    only_a = work.add_pods(state, incoming, without_both, change((1, 0)))
    assert not statuses(work, plugin, state, only_a)[0].is_success


PORT = st.sampled_from(["80", "81", "10.0.0.1:80", "10.0.0.2:80", "80/UDP"])
PODS_ON_NODES = st.tuples(st.lists(PORT, max_size=2, unique=True), st.integers(0, 1), st.booleans())


@given(
    requested_ports=st.lists(PORT, min_size=1, max_size=2, unique=True),
    used_ports=st.lists(PODS_ON_NODES, min_size=1, max_size=4),
)
def test_added_pods_count_as_running_pods(
    requested_ports: list[str], used_ports: list[tuple[list[str], int, bool]]
) -> None:
    """Each pod has ports and a node, and either runs there or is added by the dry run."""
    empty = [using("new", requested_ports), node("n0"), node("n1")]

    def passing_nodes(
        work: Framework, plugin: NodePorts, state: CycleState, nodes: NodeTable | None = None
    ) -> list[bool]:
        result = statuses(work, plugin, state, nodes)
        assert all(status.is_success is not bool(status.findings) for status in result)
        return [status.is_success for status in result]

    all_running = [using(f"p{i}", ports, on=f"n{place}") for i, (ports, place, _) in enumerate(used_ports)]
    expected = passing_nodes(*start([*empty, *all_running]))

    running = [
        using(f"p{i}", ports, on=None if is_added else f"n{place}")
        for i, (ports, place, is_added) in enumerate(used_ports)
    ]
    work, plugin, state = start([*empty, *running])
    incoming = work.snapshot.pods[0]
    changes = [(i, place) for i, (_, place, is_added) in enumerate(used_ports, start=1) if is_added]
    nodes = work.add_pods(state, incoming, work.nodes, change(*changes))
    assert passing_nodes(work, plugin, state, nodes) == expected
    if len(changes) == len(used_ports):
        nodes = work.remove_pods(state, incoming, nodes, change(*changes))
        assert passing_nodes(work, plugin, state, nodes) == [True, True]
