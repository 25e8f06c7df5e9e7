"""The instance types that a cluster shows: those of its nodes and NodeClaims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.karpenter.amounts import amounts_of, subtracted
from kschedx.karpenter.catalogue import (
    InstanceTypes,
    WrittenType,
    everywhere,
    instance_type,
    name_labels,
    read_instance_types,
)
from kschedx.karpenter.instance_types import InstanceType, Offering, in_force, overlaid
from kschedx.karpenter.node_claims import pool_requirements
from kschedx.karpenter.provisioning import PoolTypes
from kschedx.karpenter.requirements import (
    ARCH,
    AWS_LABELS,
    AZURE_LABELS,
    OF_THE_NODE,
    OS,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    well_known,
)
from kschedx.kube.autoscalers import NODE_CLASSES, NODE_POOL, NodeClaim, NodeClass, NodeOverlay, NodePool
from kschedx.kube.conditions import TimedCondition
from kschedx.kube.names import INSTANCE_TYPE, REGION, ZONE
from kschedx.kube.quantity import ResourceList
from kschedx.kube.types import Labels
from kschedx.snapshot.snapshot import Snapshot

_OF_THE_TYPE = (AWS_LABELS | AZURE_LABELS | {ARCH, OS, REGION}) - OF_THE_NODE
_OF_RESERVATIONS = frozenset({RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE})
"""Labels that vary between nodes of a type because of reservations."""


class KnownTypes(Struct, frozen=True, kw_only=True):
    """The zones and types of a pool's nodes."""

    zones: tuple[str, ...]
    zones_are_all: bool
    """Whether the node class lists the zones."""
    types: PoolTypes
    has_no_reservations: bool = False
    """Whether the node class has no reservations: then no type is `reserved`."""


def known_types(snapshot: Snapshot, pool: NodePool, catalogue: InstanceTypes | None) -> KnownTypes:
    """Return the types of the catalogue, or the types of existing nodes. The latter are complete only if the pool
    requires no others."""
    node_class = _class_of(snapshot, pool)
    zones = node_class.zones if node_class is not None else ()
    places = zones or tuple(sorted({zone for zone in snapshot.cluster.label(ZONE).values if zone}))
    group = pool.spec.template.spec.node_class_ref.api_group
    labels = (well_known(group) & (AWS_LABELS | AZURE_LABELS)) - (OF_THE_NODE - _OF_RESERVATIONS)
    reserved = _reserved(node_class, places)
    if catalogue is not None:
        types, are_all = read_instance_types(catalogue, pool.name, places, labels, reserved), True
    else:
        types = tuple(_seen(snapshot, places, labels, reserved))
        requirement = pool_requirements(pool).about(INSTANCE_TYPE)
        are_all = (
            requirement.operator == "In"
            and requirement.values <= {known_type.name for known_type in types}
            and bool(zones)
        )
    types = overlaid(types, pool, in_force(snapshot.of(NodeOverlay)), well_known(group))
    return KnownTypes(
        zones=places,
        zones_are_all=bool(zones),
        types=PoolTypes(types=types, are_all=are_all),
        has_no_reservations=bool(zones) and not reserved,
    )


def _class_of(snapshot: Snapshot, pool: NodePool) -> NodeClass | None:
    reference = pool.spec.template.spec.node_class_ref
    record = NODE_CLASSES.get((reference.api_group, reference.kind))
    if record is None:
        return None
    return next((node_class for node_class in snapshot.of(record) if node_class.metadata.name == reference.name), None)


def class_faults(snapshot: Snapshot, pool: NodePool) -> tuple[TimedCondition, ...]:
    """Return the conditions of a pool's node class that are not true; `Ready` only if no other gives the reason."""
    node_class = _class_of(snapshot, pool)
    conditions = node_class.status.conditions if node_class is not None else ()
    faults = tuple(condition for condition in conditions if condition.status != "True")
    return tuple(fault for fault in faults if fault.type != "Ready") or faults


def _reserved(node_class: NodeClass | None, zones: Sequence[str]) -> dict[str, tuple[Offering, ...]]:
    """Type to its reservations for the class's nodes; their free capacity is unknown."""
    offerings: dict[str, tuple[Offering, ...]] = {}
    for capacity_reservation in node_class.status.capacity_reservations if node_class is not None else ():
        if capacity_reservation.availability_zone in zones and capacity_reservation.state != "expiring":
            offering = Offering(
                zone=capacity_reservation.availability_zone,
                capacity_type=RESERVED,
                labels={
                    RESERVATION_ID: capacity_reservation.id,
                    RESERVATION_TYPE: capacity_reservation.reservation_type,
                    RESERVATION_INTERRUPTIBLE: str(capacity_reservation.interruptible).lower(),
                },
            )
            offerings[capacity_reservation.instance_type] = (
                *offerings.get(capacity_reservation.instance_type, ()),
                offering,
            )
    return offerings


def _seen(
    snapshot: Snapshot,
    zones: Sequence[str],
    known_labels: frozenset[str],
    reserved: Mapping[str, tuple[Offering, ...]],
) -> Iterator[InstanceType]:
    """Yield the first node or claim of each type; Karpenter's own come first, because they have more labels."""
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
            (*offerings, *reserved.get(name, ())),
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
