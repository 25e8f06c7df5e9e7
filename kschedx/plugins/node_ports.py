"""NodePorts (pkg/scheduler/framework/plugins/nodeports)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.findings import HostPortConflict
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    WHOLE,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.types import ContainerPort, Pod, PodSpec
from kschedx.snapshot.columns import BoolArray, ClusterRow, TableRow, all_false
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import host_ports

_REASON = "node(s) didn't have free ports for the requested pod ports"
_ANY_IP = "0.0.0.0"


class HostPort(Struct, frozen=True):
    """A host port with its defaults set."""

    ip: str
    protocol: str
    port: int

    @classmethod
    def of(cls, port: ContainerPort) -> HostPort:
        return cls(port.host_ip or _ANY_IP, port.protocol or "TCP", port.host_port)

    def conflicts(self, other: HostPort) -> bool:
        """Return whether both have the same port and protocol, and the same address or one of them all addresses."""
        same_ip = self.ip == other.ip or _ANY_IP in (self.ip, other.ip)
        return same_ip and (self.protocol, self.port) == (other.protocol, other.port)


class _WantedPorts(Struct, frozen=True, kw_only=True):
    """The pod's host ports, and how the version counts those of other pods."""

    ports: tuple[HostPort, ...]
    sidecars: bool  # whether ports of sidecar containers count

    def occupied_ports(self, spec: PodSpec) -> tuple[HostPort, ...]:
        return tuple(map(HostPort.of, host_ports(spec, sidecars=self.sidecars)))

    def contested_ports(self, spec: PodSpec) -> frozenset[HostPort]:
        """Return the host ports of a running pod that conflict with the pod's."""
        ports = self.occupied_ports(spec)
        if not ports:  # the most common case
            return frozenset()
        same: dict[int, list[HostPort]] = {}
        for wanted in self.ports:
            same.setdefault(wanted.port, []).append(wanted)
        return frozenset(port for port in ports if any(port.conflicts(other) for other in same.get(port.port, ())))


class _State(Struct, frozen=True, kw_only=True):
    wanted: _WantedPorts
    contested: BoolArray  # (pod,) whether the pod uses a port that conflicts with a requested one, on any node
    taken: BoolArray  # (node,) whether a pod on the node uses a conflicting port
    changed: Mapping[ClusterRow, frozenset[HostPort]]
    """Conflicting ports in use on nodes where such pods were added or removed; `taken` is out of date there. As in
    kube-scheduler it is a set: if two pods share a port, removing the first one frees it."""


_STATE: StateKey[_State] = StateKey("PreFilterNodePorts")


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where another pod uses a host port of the pod."""

    name = "NodePorts"
    texts: ClassVar[Texts] = {"host-port-conflict": (_REASON,)}

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if host_ports(pod.spec) else None

    def touches(self, pod: Pod) -> Touch:
        return Touch.CLUSTER if host_ports(pod.spec) else Touch.NOTHING

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        sidecars = self.handle.release.behavior.sidecar_ports_are_occupied
        ports = tuple(map(HostPort.of, host_ports(pod.spec, sidecars=sidecars)))
        wanted = _WantedPorts(ports=ports, sidecars=sidecars)
        contested = all_false(len(nodes.pods))
        taken = np.zeros(len(nodes.cluster.nodes), dtype=np.bool_)
        if ports:
            contested = nodes.pods.specs.where(lambda spec: bool(wanted.contested_ports(spec)))
            taken[nodes.pods.node[contested & (nodes.pods.node >= 0)]] = True
        state[_STATE] = _State(wanted=wanted, contested=contested, taken=taken, changed={})
        return PreFilterResult() if ports else PRE_FILTER_SKIP

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        self._change(state, nodes, change, add=True)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        self._change(state, nodes, change, add=False)

    def _change(self, state: CycleState, nodes: NodeTable, change: PodRows, *, add: bool) -> None:
        if _STATE not in state:
            return  # upstream has no such extension: ports belong to a node, and Filter reports the conflict
        now = state[_STATE]
        changed = dict(now.changed)
        for i in np.flatnonzero(now.contested[change.pods]):
            node, spec = ClusterRow(int(change.nodes[i])), nodes.pods.specs[int(change.pods[i])]
            before = changed[node] if node in changed else _used_ports(nodes, node, now)
            ports = now.wanted.contested_ports(spec)
            changed[node] = before | ports if add else before - ports
        state[_STATE] = replace(now, changed=changed)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        now = state[_STATE]
        taken = now.taken.copy()
        for node, ports in now.changed.items():
            taken[node] = bool(ports)
        return Verdicts.first_of(
            (taken[nodes.rows], Code.UNSCHEDULABLE, _REASON), explain=lambda row: _conflicts(nodes, row, now.wanted)
        )


def _used_ports(nodes: NodeTable, node: ClusterRow, state: _State) -> frozenset[HostPort]:
    """Return the conflicting ports that pods on a node use, before any change."""
    pods = nodes.pods.on_node(node)
    specs = (nodes.pods.specs[int(pod)] for pod in pods[state.contested[pods]])
    return frozenset().union(*(state.wanted.contested_ports(spec) for spec in specs))


def _conflicts(nodes: NodeTable, row: TableRow, wanted: _WantedPorts) -> tuple[HostPortConflict, ...]:
    """Return every pair of a requested port and a pod on the node that uses it."""
    holders: dict[int, list[tuple[str, HostPort]]] = {}
    for pod in nodes.pods_on(row):
        for port in wanted.occupied_ports(nodes.pods.specs[int(pod)]):
            holders.setdefault(port.port, []).append((nodes.pods.key(int(pod)), port))
    return tuple(
        HostPortConflict(
            port=mine.port, protocol=mine.protocol, host_ip=mine.ip, holder=holder, holder_host_ip=theirs.ip
        )
        for mine in wanted.ports
        for holder, theirs in holders.get(mine.port, ())
        if mine.conflicts(theirs)
    )
