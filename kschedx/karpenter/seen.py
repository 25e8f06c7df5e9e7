"""The instance types that a cluster shows: those of its nodes, and of the claims that are becoming nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kschedx.api.karpenter import NODE_CLASSES, NODE_POOL, NodeClaim, NodePool
from kschedx.api.quantity import ResourceList
from kschedx.api.types import Labels
from kschedx.karpenter.amounts import amounts_of, subtracted
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType, everywhere, instance_type, instance_types
from kschedx.karpenter.claims import pool_requirements
from kschedx.karpenter.instance_types import InstanceType
from kschedx.karpenter.labels import ARCH, AWS_LABELS, AZURE_LABELS, INSTANCE_TYPE, OS, REGION, ZONE, well_known
from kschedx.karpenter.provisioning import PoolTypes
from kschedx.karpenter.published import name_labels
from kschedx.snapshot.snapshot import Snapshot

_OF_THE_TYPE = AWS_LABELS | AZURE_LABELS | {ARCH, OS, REGION}
"""Labels that all nodes of a type have in common."""


class Known(Struct, frozen=True, kw_only=True):
    """Where a pool's nodes can be, and of which types."""

    zones: tuple[str, ...]
    zones_are_all: bool
    """The node class says so."""
    types: PoolTypes


def known_types(snapshot: Snapshot, pool: NodePool, catalogue: InstanceTypes | None) -> Known:
    """Of a catalogue, where there is one; otherwise those that were seen, which are all only where the pool names no
    other."""
    zones = _class_zones(snapshot, pool)
    places = zones or _seen_zones(snapshot)
    group = pool.spec.template.spec.node_class_ref.api_group
    labels = (well_known(group) & (AWS_LABELS | AZURE_LABELS)) - {"topology.k8s.aws/zone-id"}
    if catalogue is not None:
        types = instance_types(catalogue, pool.name, places, labels)
        return Known(zones=places, zones_are_all=bool(zones), types=PoolTypes(types=types, are_all=True))
    seen = tuple(_seen(snapshot, places, labels))
    asked = pool_requirements(pool).about(INSTANCE_TYPE)
    are_all = asked.operator == "In" and asked.values <= {one.name for one in seen} and bool(zones)
    return Known(zones=places, zones_are_all=bool(zones), types=PoolTypes(types=seen, are_all=are_all))


def _class_zones(snapshot: Snapshot, pool: NodePool) -> tuple[str, ...]:
    reference = pool.spec.template.spec.node_class_ref
    record = NODE_CLASSES.get((reference.api_group, reference.kind))
    if record is None:
        return ()
    return next((one.zones for one in snapshot.of(record) if one.metadata.name == reference.name), ())


def _seen_zones(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(sorted({zone for zone in snapshot.cluster.label(ZONE).values if zone}))


def _seen(snapshot: Snapshot, zones: Sequence[str], known_labels: frozenset[str]) -> Iterator[InstanceType]:
    """The first node or claim of each type; Karpenter's own say more of it, and come first."""
    done: set[str] = set()
    offerings = everywhere(zones)
    for where, labels, capacity, allocatable in _examples(snapshot):
        name = labels[INSTANCE_TYPE]
        if name in done:
            continue
        done.add(name)
        own = {key: value for key, value in labels.items() if key in _OF_THE_TYPE}
        is_karpenters = NODE_POOL in labels
        if not is_karpenters and AWS_LABELS & known_labels:
            own |= dict(name_labels(name))
        kept = subtracted(amounts_of(capacity), amounts_of(allocatable))
        yield instance_type(
            WrittenType(
                name=name,
                labels=dict(own),
                capacity=capacity,
                overhead={key: str(amount) for key, amount in kept.items()},
            ),
            offerings,
            known_labels if is_karpenters else frozenset(),
            where,
        )


def _examples(snapshot: Snapshot) -> Iterator[tuple[str, Labels, ResourceList, ResourceList]]:
    nodes = [node for node in snapshot.cluster.nodes if INSTANCE_TYPE in node.metadata.labels]
    for node in nodes:
        if NODE_POOL in node.metadata.labels:
            yield f"node/{node.name}", node.metadata.labels, node.status.capacity, node.status.allocatable
    for claim in snapshot.of(NodeClaim):
        if INSTANCE_TYPE in claim.metadata.labels and claim.status.capacity:
            labels = {NODE_POOL: "", **claim.metadata.labels}
            yield f"nodeclaim/{claim.name}", labels, claim.status.capacity, claim.status.allocatable
    for node in nodes:
        if NODE_POOL not in node.metadata.labels:
            yield f"node/{node.name}", node.metadata.labels, node.status.capacity, node.status.allocatable
