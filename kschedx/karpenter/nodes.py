"""Existing and launching nodes as Karpenter sees them: taints, host ports, and free resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from kschedx.karpenter.requirements import NODES, Amount, amounts_of
from kschedx.kube.autoscalers import DO_NOT_DISRUPT, INITIALIZED, NODE_POOL, REGISTERED, NodeClaim
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.names import HOSTNAME, INSTANCE_TYPE
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import nano_units
from kschedx.kube.tolerations import tolerates
from kschedx.kube.types import Labels, Node, OwnerReference, Pod, Taint, Toleration
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot

# The taints that a pod does not tolerate. Upstream: pkg/scheduling/taints.go: every taint counts, whatever its effect.

_EPHEMERAL = frozenset(
    {
        Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
        Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
        Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule"),
        Taint(key="karpenter.sh/unregistered", effect="NoExecute"),
    }
)
"""Taints of a node that is not ready yet, by key and effect; they are removed later."""
_EPHEMERAL_PREFIX = "readiness.k8s.io/"


def _is_same(taint: Taint, other: Taint) -> bool:
    """Compare key and effect; values do not count."""
    return (taint.key, taint.effect) == (other.key, other.effect)


def _is_ephemeral(taint: Taint) -> bool:
    return taint.key.startswith(_EPHEMERAL_PREFIX) or any(_is_same(taint, ephemeral) for ephemeral in _EPHEMERAL)


def untolerated_taints(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if not any(tolerates(each, taint, comparison=True) for each in tolerations))


def tolerates_all(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    return not untolerated_taints(tolerations, taints)


# Host ports in use on a node, and conflicts with a pod's. Upstream: pkg/scheduling/hostportusage.go.


class UsedPort(Struct, frozen=True):
    ip: str
    port: int
    protocol: str

    def facts(self, whose: str) -> Iterator[str]:
        """Yield them in the order of serrors."""
        address = _address(self.ip)
        yield f"{whose}-hostport-ip={'<nil>' if address is None else address}"
        yield f"{whose}-hostport-port={self.port}"
        yield f"{whose}-hostport-protocol={self.protocol}"

    def is_same(self, other: UsedPort) -> bool:
        """The unspecified address matches every address."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        mine, theirs = _address(self.ip), _address(other.ip)
        return mine == theirs or any(item is not None and item.is_unspecified for item in (mine, theirs))


def _address(ip: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(ip)
    except ValueError:
        return None


def ports_of(pod: Pod) -> tuple[UsedPort, ...]:
    """Return the ports of a pod's containers; Karpenter ignores those of init containers."""
    return tuple(
        UsedPort(port.host_ip or "0.0.0.0", port.host_port, port.protocol or "TCP")
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    )


class PortUsage:
    """The ports in use on a node, by pod."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[UsedPort, ...]] = {}

    def add(self, pod: Pod) -> None:
        self._taken[pod.key] = ports_of(pod)

    def conflict(self, pod: Pod) -> tuple[UsedPort, UsedPort, str] | None:
        """Return a port of the pod, the conflicting port, and the pod that uses it."""
        for wanted_port in ports_of(pod):
            for key, ports in self._taken.items():
                for port in ports:
                    if key != pod.key and wanted_port.is_same(port):
                        return wanted_port, port, key
        return None


# Existing and launching nodes as Karpenter sees them. Upstream: controllers/state (StateNode, Cluster), utils/pod.


class StateNode(Struct, frozen=True, kw_only=True):
    """A node, its NodeClaim, or both."""

    node: Node | None = None
    row: ClusterRow = ClusterRow(-1)
    claim: NodeClaim | None = None

    @property
    def is_registered(self) -> bool:
        return self.claim is None or self._has_label(REGISTERED)

    @property
    def is_initialized(self) -> bool:
        return self.claim is None or self._has_label(INITIALIZED)

    def _has_label(self, label: str) -> bool:
        return self.node is not None and self.node.metadata.labels.get(label) == "true"

    @property
    def name(self) -> str:
        if self.node is not None and self.is_registered:
            return self.node.name
        return self.claim.name if self.claim is not None else ""

    @property
    def labels(self) -> Labels:
        if self.node is not None and self.is_registered:
            return self.node.metadata.labels
        return self.claim.metadata.labels if self.claim is not None else {}

    @property
    def host_name(self) -> str:
        return self.labels.get(HOSTNAME) or self.name

    @property
    def pool(self) -> str:
        return self.labels.get(NODE_POOL, "")

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints; before it is initialized, only the permanent ones."""
        claim = self.claim
        if self.node is not None and self.is_registered:
            taints = self.node.spec.taints
        else:
            taints = claim.spec.taints if claim is not None else ()
        if claim is None or self.is_initialized:
            return taints
        starting = claim.spec.startup_taints
        return tuple(
            taint
            for taint in taints
            if not _is_ephemeral(taint) and not any(_is_same(startup_taint, taint) for startup_taint in starting)
        )

    @property
    def is_leaving(self) -> bool:
        """Whether it is being disrupted: it gets no pods, and its pods move."""
        if self.claim is None:
            return self.node is not None and bool(self.node.metadata.deletion_timestamp)
        return bool(self.claim.metadata.deletion_timestamp) or self.is_terminated

    @property
    def is_guarded(self) -> bool:
        """Whether its annotation prevents disruption."""
        return self.node is not None and self.node.metadata.annotations.get(DO_NOT_DISRUPT) == "true"

    @property
    def is_terminated(self) -> bool:
        """Whether it is drained, and its instance is being deleted."""
        conditions = () if self.claim is None else self.claim.status.conditions
        return condition_of(conditions, "InstanceTerminating", "True") is not None

    @property
    def is_ready(self) -> bool:
        return self.node is not None and reports_ready(self.node.status.conditions)

    @property
    def capacity(self) -> dict[str, Amount]:
        claimed = self.claim.status.capacity if self.claim is not None else {}
        return amounts_of(self._complete_from_claim(self.node.status.capacity if self.node else {}, claimed)) | {
            NODES: Amount(10**9)
        }

    @property
    def lacks_capacity(self) -> bool:
        """Whether the capacity is unknown, so that the allocatable resources count."""
        node = self.node
        return node is not None and self.claim is None and node.status.capacity == node.status.allocatable

    @property
    def allocatable(self) -> ResourceList:
        claimed = self.claim.status.allocatable if self.claim is not None else {}
        return self._complete_from_claim(self.node.status.allocatable if self.node else {}, claimed)

    def _complete_from_claim(self, reported: ResourceList, claimed: ResourceList) -> ResourceList:
        """Return the node's values, completed from the claim until the node is initialized."""
        if self.is_initialized:
            return reported
        return reported | {name: amount for name, amount in claimed.items() if not nano_units(reported.get(name, 0))}


class ClusterState(Struct, frozen=True, kw_only=True):
    """All nodes, by whether they stay."""

    staying: tuple[StateNode, ...]
    leaving: tuple[StateNode, ...]
    not_launched: tuple[str, ...]  # claims that the cloud has not launched yet: nothing is decided before

    @classmethod
    def of(cls, snapshot: Snapshot) -> ClusterState:
        claims = snapshot.of(NodeClaim)
        by_id = {claim.status.provider_id: claim for claim in claims if claim.status.provider_id}
        nodes: list[StateNode] = []
        for row, node in enumerate(snapshot.cluster.nodes):
            if _is_known(node):
                nodes.append(StateNode(node=node, row=ClusterRow(row), claim=by_id.pop(node.spec.provider_id, None)))
        nodes += [StateNode(claim=claim) for claim in by_id.values()]
        return cls(
            staying=tuple(node for node in nodes if not node.is_leaving),
            leaving=tuple(node for node in nodes if node.is_leaving),
            not_launched=tuple(claim.name for claim in claims if not claim.status.provider_id),
        )


def _is_known(node: Node) -> bool:
    """Return whether the node counts: it has a provider id and the labels of its pool."""
    labels = node.metadata.labels
    if not labels.get(NODE_POOL):
        return True
    return bool(node.spec.provider_id) and bool(labels.get(INSTANCE_TYPE) or labels.get(INITIALIZED))


def is_of_daemon_set(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind == "DaemonSet" and owner.api_version == "apps/v1" for owner in owners)


def is_static(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind == "Node" and owner.api_version == "v1" for owner in owners)
