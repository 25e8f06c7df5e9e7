"""NodePorts (pkg/scheduler/framework/plugins/nodeports)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import ContainerPort, Pod, PodSpec
from kschedx.findings import HostPortConflict
from kschedx.framework.interface import PRE_FILTER_SKIP, FilterPlugin, PreFilterPlugin, PreFilterResult
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.plugins.cycle_state import not_prepared
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import host_ports

REASON = "node(s) didn't have free ports for the requested pod ports"
READING = 'reading "PreFilterNodePorts"'
ANY_IP = "0.0.0.0"


class _HostPort(Struct, frozen=True):
    """A port of the host with the defaults filled in."""

    ip: str
    protocol: str
    port: int

    @classmethod
    def of(cls, port: ContainerPort) -> _HostPort:
        return cls(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)

    def conflicts(self, other: _HostPort) -> bool:
        """The same port of the same protocol, on the same address or where one of the two has all addresses."""
        same_ip = self.ip == other.ip or ANY_IP in (self.ip, other.ip)
        return same_ip and (self.protocol, self.port) == (other.protocol, other.port)


class _State(Struct, frozen=True, kw_only=True):
    wanted: tuple[_HostPort, ...]
    contested: BoolArray
    """(pod,) whether a pod has a port that conflicts with one that is wanted, wherever it runs."""
    taken: BoolArray
    """(node,) whether a pod that runs on the node has such a port."""
    changed: Mapping[int, frozenset[_HostPort]]
    """Nodes where pods with such ports were added or removed to those ports in use; `taken` is outdated there.

    It is a set, as kube-scheduler's is: of two pods that share a port, the first one that is removed frees it.
    """


STATE: StateKey[_State] = StateKey("PreFilterNodePorts")


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Host ports that the pod wants, against those that pods on the node occupy."""

    name = "NodePorts"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        wanted = tuple(map(_HostPort.of, host_ports(pod.spec)))
        if not wanted:
            return PRE_FILTER_SKIP
        contested = nodes.pods.specs.where(lambda spec: bool(_contested(spec, wanted)))
        taken = np.zeros(len(nodes.cluster.nodes), dtype=np.bool_)
        taken[nodes.pods.node[contested & (nodes.pods.node >= 0)]] = True
        state[STATE] = _State(wanted=wanted, contested=contested, taken=taken, changed={})
        return PreFilterResult()

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        self._change(state, nodes, change, add=True)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        self._change(state, nodes, change, add=False)

    def _change(self, state: CycleState, nodes: NodeTable, change: PodRows, *, add: bool) -> None:
        now = state[STATE]
        changed = dict(now.changed)
        for i in np.flatnonzero(now.contested[change.pods]):
            node, spec = int(change.nodes[i]), nodes.pods.specs[int(change.pods[i])]
            before = changed[node] if node in changed else _in_use(nodes, node, now)
            ports = _contested(spec, now.wanted)
            changed[node] = before | ports if add else before - ports
        state[STATE] = replace(now, changed=changed)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if STATE not in state:
            return not_prepared(len(nodes), READING)
        now = state[STATE]
        taken = now.taken.copy()
        for node, ports in now.changed.items():
            taken[node] = bool(ports)
        return Verdicts.first_of(
            (taken[nodes.rows], Code.UNSCHEDULABLE, REASON),
            explain=lambda row: _conflicts(nodes, row, now.wanted),
        )


def _contested(spec: PodSpec, wanted: tuple[_HostPort, ...]) -> frozenset[_HostPort]:
    """The ports of a pod that conflict with one that is wanted."""
    ports = host_ports(spec)
    if not ports:  # nearly always
        return frozenset()
    return frozenset(port for port in map(_HostPort.of, ports) if any(port.conflicts(other) for other in wanted))


def _in_use(nodes: NodeTable, node: int, state: _State) -> frozenset[_HostPort]:
    """The contested ports that pods on a node occupy, before any change."""
    pods = nodes.pods.on_node(node)
    specs = (nodes.pods.specs[int(pod)] for pod in pods[state.contested[pods]])
    return frozenset().union(*(_contested(spec, state.wanted) for spec in specs))


def _conflicts(nodes: NodeTable, row: int, wanted: tuple[_HostPort, ...]) -> tuple[HostPortConflict, ...]:
    """Every pair of a wanted port and a pod on the node that is in its way."""
    holders = [
        (nodes.pods.key(int(pod)), _HostPort.of(port))
        for pod in nodes.pods_on(row)
        for port in host_ports(nodes.pods.specs[int(pod)])
    ]
    return tuple(
        HostPortConflict(
            port=mine.port, protocol=mine.protocol, host_ip=mine.ip, holder=holder, holder_host_ip=theirs.ip
        )
        for mine in wanted
        for holder, theirs in holders
        if mine.conflicts(theirs)
    )
