"""The nodes that there are and those under way, as Karpenter sees them.

Upstream: controllers/state (StateNode, Cluster), utils/pod.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kschedx.api.karpenter import INITIALIZED, NODE_POOL, REGISTERED, NodeClaim, condition
from kschedx.api.quantity import ResourceList
from kschedx.api.resources import RequestOptions, nano_units
from kschedx.api.types import Labels, Node, OwnerReference, Taint
from kschedx.karpenter.amounts import NODES, Amount, amounts_of
from kschedx.karpenter.labels import HOSTNAME, INSTANCE_TYPE
from kschedx.karpenter.tolerations import is_ephemeral, is_same
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot

OPTIONS = RequestOptions(use_status_resources=False, pod_level_resources=True, pod_level_in_place=False)
"""How Karpenter counts what pods request."""


class StateNode(Struct, frozen=True, kw_only=True):
    """A node, the claim that it was made for, or both."""

    node: Node | None = None
    row: ClusterRow = ClusterRow(-1)
    """Of the node in the snapshot."""
    claim: NodeClaim | None = None

    @property
    def is_registered(self) -> bool:
        return self.claim is None or self._says(REGISTERED)

    @property
    def is_initialized(self) -> bool:
        return self.claim is None or self._says(INITIALIZED)

    def _says(self, label: str) -> bool:
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
        """Of a node that is not yet initialized those that stay."""
        claim = self.claim
        if self.node is not None and self.is_registered:
            taints = self.node.spec.taints
        else:
            taints = claim.spec.taints if claim is not None else ()
        if claim is None or self.is_initialized:
            return taints
        starting = claim.spec.startup_taints
        return tuple(
            taint for taint in taints if not is_ephemeral(taint) and not any(is_same(one, taint) for one in starting)
        )

    @property
    def is_leaving(self) -> bool:
        """Nothing new goes there, and what it has goes elsewhere."""
        if self.claim is None:
            return self.node is not None and bool(self.node.metadata.deletion_timestamp)
        terminating = condition(self.claim.status.conditions, "InstanceTerminating")
        is_terminating = terminating is not None and terminating.status == "True"
        return bool(self.claim.metadata.deletion_timestamp) or is_terminating

    @property
    def capacity(self) -> dict[str, Amount]:
        claimed = self.claim.status.capacity if self.claim is not None else {}
        return amounts_of(self._filled(self.node.status.capacity if self.node else {}, claimed)) | {
            NODES: Amount(10**9)
        }

    @property
    def allocatable(self) -> ResourceList:
        claimed = self.claim.status.allocatable if self.claim is not None else {}
        return self._filled(self.node.status.allocatable if self.node else {}, claimed)

    def _filled(self, told: ResourceList, claimed: ResourceList) -> ResourceList:
        """Until the node is initialized the claim says what it does not."""
        if self.is_initialized:
            return told
        return told | {name: amount for name, amount in claimed.items() if not nano_units(told.get(name, 0))}


class Cluster(Struct, frozen=True, kw_only=True):
    """All nodes, by whether they stay."""

    staying: tuple[StateNode, ...]
    leaving: tuple[StateNode, ...]
    not_launched: tuple[str, ...]
    """Claims that the cloud has not answered yet: nothing is decided before it does."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Cluster:
        claims = snapshot.of(NodeClaim)
        by_id = {claim.status.provider_id: claim for claim in claims if claim.status.provider_id}
        found: list[StateNode] = []
        for row, node in enumerate(snapshot.cluster.nodes):
            if _is_known(node):
                found.append(StateNode(node=node, row=ClusterRow(row), claim=by_id.pop(node.spec.provider_id, None)))
        found += [StateNode(claim=claim) for claim in by_id.values()]
        return cls(
            staying=tuple(one for one in found if not one.is_leaving),
            leaving=tuple(one for one in found if one.is_leaving),
            not_launched=tuple(claim.name for claim in claims if not claim.status.provider_id),
        )


def _is_known(node: Node) -> bool:
    """A node of a pool counts when it has an id and says what it is."""
    labels = node.metadata.labels
    if not labels.get(NODE_POOL):
        return True
    return bool(node.spec.provider_id) and bool(labels.get(INSTANCE_TYPE) or labels.get(INITIALIZED))


def is_of_daemon_set(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind == "DaemonSet" and owner.api_version == "apps/v1" for owner in owners)


def is_static(owners: Sequence[OwnerReference]) -> bool:
    """The kubelet's own."""
    return any(owner.kind == "Node" and owner.api_version == "v1" for owner in owners)


def is_of_stateful_set(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind == "StatefulSet" and owner.api_version == "apps/v1" for owner in owners)
