"""The free resources of existing nodes, and the first node that accepts a pod.

Upstream: scheduling/existingnode.go, calculateExistingNodeClaims and addToExistingNode in scheduler.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np

from kschedx.karpenter.devices import NoDevices
from kschedx.karpenter.instance_types import InstanceType
from kschedx.karpenter.nodes import PortUsage, StateNode, is_of_daemon_set, ports_of, tolerates_all
from kschedx.karpenter.pods import DaemonSets, PodData, mounted_claims
from kschedx.karpenter.requirements import PODS, Amount, Amounts, LabelRequirement, Requirements, pod_requests
from kschedx.karpenter.topology import Topologies, Unsatisfiable
from kschedx.kube.names import HOSTNAME, INSTANCE_TYPE
from kschedx.kube.quantity import ResourceList, resource_amount
from kschedx.kube.resources import SPEC_ALONE
from kschedx.kube.types import Pod, PodSpec
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.snapshot import Snapshot

_ENCODE = msgspec.json.Encoder().encode


class _ExistingNode:
    """An existing node, and the pods that a round adds to it."""

    def __init__(self, state: StateNode, snapshot: Snapshot, instance_type: InstanceType | None = None) -> None:
        self.state = state
        self.instance_type = instance_type
        self.taints = state.taints
        self.labels = {**state.labels, HOSTNAME: state.host_name}
        self.pods: list[str] = []
        self._snapshot = snapshot
        self._more: list[Pod] = []
        self._narrowed: Requirements | None = None

    @property
    def requirements(self) -> Requirements:
        if self._narrowed is None:
            self._narrowed = Requirements.of_labels(self.state.labels).together(
                (LabelRequirement.of(HOSTNAME, "In", (self.state.host_name,)),)
            )
        return self._narrowed

    @cached_property
    def _ports(self) -> PortUsage:
        usage = PortUsage()
        pods = self._snapshot.pods
        for row in pods.on_node(self.state.row).tolist() if self.state.row >= 0 else ():
            if any(port.host_port for container in pods.specs[row].containers for port in container.ports):
                usage.add(pods[row])
        return usage

    def has_volumes_for(self, pod: Pod) -> bool:
        """Return whether every driver stays within its volume limit."""
        wanted = mounted_claims(pod, self._snapshot.storage)
        csi = self._snapshot.storage.csi_nodes.get(self.state.node.name if self.state.node else "")
        if not wanted or csi is None or self.state.row < 0:
            return True
        pods = self._snapshot.pods
        running = [pods[row] for row in pods.on_node(self.state.row).tolist()]
        used: dict[str, set[str]] = {driver: set(keys) for driver, keys in wanted.items()}
        for other in (*running, *self._more):
            for driver, keys in mounted_claims(other, self._snapshot.storage).items():
                used.setdefault(driver, set()).update(keys)
        return all(len(keys) <= csi.limits[driver] for driver, keys in used.items() if driver in csi.limits)

    def may_accept(self, data: PodData) -> bool:
        """Return whether the pod tolerates the taints, and its requirements match the labels."""
        return tolerates_all(data.pod.spec.tolerations, self.taints) and self.requirements.is_compatible(
            data.requirements
        )

    def accept(self, data: PodData, topologies: Topologies) -> Requirements | None:
        """Return the node's requirements with the pod, or None if it is incompatible. Free resources and `may_accept`
        are checked before."""
        pod = data.pod
        if not self.has_volumes_for(pod) or (ports_of(pod) and self._ports.conflict(pod) is not None):
            return None
        base = self.requirements.together(data.requirements.values())
        for volume in data.volumes:
            own = base
            if volume is not None:
                if not base.is_compatible(volume):
                    continue
                own = base.together(volume.values())
            narrowed = topologies.narrow(pod, data.key, self.taints, data.strict, own)
            if isinstance(narrowed, Unsatisfiable) or not own.is_compatible(narrowed):
                continue
            if data.devices is not None:
                devices = data.devices.allocate_on_node(self.state, self.requirements, self.instance_type)
                if isinstance(devices, NoDevices):
                    continue
            return own.together(narrowed.values())
        return None

    def add(self, data: PodData, requirements: Requirements, topologies: Topologies) -> None:
        self.pods.append(data.key)
        self._more.append(data.pod)
        self._narrowed = requirements
        topologies.record(data.pod, data.key, self.taints, requirements)
        self._ports.add(data.pod)
        if data.devices is not None:
            data.devices.commit((self.instance_type,) if self.instance_type is not None else ())


class ExistingNodes:
    """Existing nodes in the order in which they are tried: initialized ones first, then by name."""

    def __init__(
        self,
        states: Sequence[StateNode],
        snapshot: Snapshot,
        daemons: DaemonSets,
        types: Mapping[tuple[str, str], InstanceType] = {},
    ) -> None:
        """`types`: by pool and name, for the devices of nodes that are not initialized."""
        ordered = sorted(states, key=lambda state: (not state.is_initialized, state.name))
        self.nodes = [
            _ExistingNode(state, snapshot, types.get((state.pool, state.labels.get(INSTANCE_TYPE, ""))))
            for state in ordered
        ]
        table = snapshot.nodes(SPEC_ALONE)
        names = {*table.resources.names, *(name for state in ordered for name in state.allocatable), PODS}
        self._columns = {name: column for column, name in enumerate(sorted(names))}
        self._left = np.zeros((len(ordered), len(names)), dtype=np.int64)
        rows = np.array([state.row for state in ordered], dtype=np.int64)
        offers = np.zeros((len(ordered), len(names)), dtype=np.bool_)
        for index, node in enumerate(ordered):
            self._left[index] = self._resource_row(node.allocatable)
            offers[index, [self._columns[name] for name in node.allocatable]] = True
        known = np.flatnonzero(rows >= 0)
        for column, name in enumerate(table.resources.names):
            self._left[known, self._columns[name]] -= table.requested[rows[known], column]
        self._left[known, self._columns[PODS]] -= table.pod_count[rows[known]]
        of_daemons = self._daemon_requests(snapshot)
        for index, node in enumerate(ordered):
            coming = self._row(pod_requests(daemons.pods_of_node(node.taints, self.nodes[index].labels)))
            if node.row >= 0:
                coming = np.maximum(coming - of_daemons[node.row], 0)
            self._left[index] -= np.minimum(coming, np.iinfo(np.int64).max // 2)
        self._left[~offers] = 0  # what runs on a node does not count against resources that it does not offer
        self._rejects: dict[bytes, BoolArray] = {}
        """What `may_accept` reads of a pod, to the nodes that reject it since a pod was last added to them."""

    def _daemon_requests(self, snapshot: Snapshot) -> IntArray:
        """(node, resource) the requests of the DaemonSets' pods on each node."""
        table, pods = snapshot.nodes(SPEC_ALONE), snapshot.pods
        rows = np.flatnonzero(pods.owners.where(is_of_daemon_set) & (pods.node >= 0))
        requested = np.zeros((len(snapshot.cluster.nodes), len(self._columns)), dtype=np.int64)
        for column, name in enumerate(table.resources.names):
            np.add.at(requested[:, self._columns[name]], pods.node[rows], table.requests.matrix[rows, column])
        np.add.at(requested[:, self._columns[PODS]], pods.node[rows], 1)
        return requested

    def _resource_row(self, resources: ResourceList) -> IntArray:
        row = np.zeros(len(self._columns), dtype=np.int64)
        for name, written in resources.items():
            row[self._columns[name]] = resource_amount(name, written)
        return row

    def _row(self, amounts: Amounts) -> IntArray:
        row = np.zeros(len(self._columns), dtype=np.int64)
        for name, amount in amounts.items():
            if name in self._columns:
                row[self._columns[name]] = _units(name, amount)
        return row

    def take(self, data: PodData, topologies: Topologies) -> bool:
        """Add the pod to the first node that accepts it. Return whether one does."""
        if any(amount.nano > 0 for name, amount in data.requests.items() if name not in self._columns):
            return False
        requested = self._row(data.requests)
        has_room = (self._left >= requested).all(axis=1) & (self._left >= 0).all(axis=1)
        rejects = self._rejects.setdefault(_read_by_nodes(data.pod.spec), np.zeros(len(self.nodes), dtype=np.bool_))
        for index in np.flatnonzero(has_room & ~rejects).tolist():
            node = self.nodes[index]
            rejects[index] = not node.may_accept(data)
            requirements = None if rejects[index] else node.accept(data, topologies)
            if requirements is not None:
                node.add(data, requirements, topologies)
                self._left[index] -= requested
                for others in self._rejects.values():
                    others[index] = False
                return True
        return False

    @property
    def pods_by_node(self) -> Mapping[str, tuple[str, ...]]:
        """Node or claim to the pods that were added."""
        return {node.state.name: tuple(node.pods) for node in self.nodes if node.pods}


def _read_by_nodes(spec: PodSpec) -> bytes:
    """Return what `_ExistingNode.may_accept` reads of a pod."""
    return _ENCODE(
        (spec.tolerations, spec.node_selector, None if spec.affinity is None else spec.affinity.node_affinity)
    )


def _units(name: str, amount: Amount) -> int:
    """Return milli-units of cpu, and whole units of other resources, rounded up."""
    unit = 10**6 if name == "cpu" else 10**9
    return -(-amount.nano // unit)
