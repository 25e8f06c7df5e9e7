"""What becomes of claims and volumes where a pod's claims are bound, or volumes made for them."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kschedx.api.storage import (
    BIND_COMPLETED,
    CSIPersistentVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from kschedx.api.types import ObjectMeta
from kschedx.plugins.volume_binding.binding import Binding
from kschedx.plugins.volume_binding.provisioning import Provision
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage, StorageChange


def settled(binding: Binding, node: ClusterRow, nodes: NodeTable, storage: Storage) -> StorageChange:
    """What changes when every claim of a pod on this node has got its volume."""
    claims: dict[str, PersistentVolumeClaim] = {}
    volumes: dict[str, PersistentVolume] = {}
    for claim, volume in binding.bindings(node):
        volumes[volume.name] = replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim)), status=_BOUND)
        claims[claim.key] = _bound(claim, volume.name)
    for one in binding.provisions(node):
        made = _made(one, node, nodes, storage)
        volumes[made.name] = made
        claims[one.claim.key] = _bound(one.claim, made.name)
    return StorageChange(claims=claims, volumes=volumes)


_BOUND = PersistentVolumeStatus(phase="Bound")


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    metadata = claim.metadata
    return ObjectReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def _bound(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=volume),
    )


def _made(one: Provision, node: ClusterRow, nodes: NodeTable, storage: Storage) -> PersistentVolume:
    """The volume that the driver makes: within reach of the node, by the topology keys that the driver has there."""
    claim, provisioner, name = one.claim, one.storage_class.provisioner, nodes.cluster.names[node]
    csi_node = storage.csi_nodes.get(name)
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    keys = next((driver.topology_keys for driver in drivers if driver.name == provisioner), ())
    labels = nodes.cluster.nodes[node].metadata.labels
    terms = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=(labels[key],)) for key in keys if key in labels
    )
    reach = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=terms),)))
    volume = f"pvc-{claim.metadata.namespace}-{claim.metadata.name}"
    return PersistentVolume(
        metadata=ObjectMeta(name=volume),
        spec=PersistentVolumeSpec(
            capacity=dict(claim.spec.resources.requests),
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            storage_class_name=claim.storage_class,
            claim_ref=_reference(claim),
            node_affinity=reach if terms else None,
            csi=CSIPersistentVolumeSource(driver=provisioner, volume_handle=volume),
        ),
        status=_BOUND,
    )
