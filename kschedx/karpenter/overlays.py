"""NodeOverlays: what a cluster's owner says that instance types have and cost, beyond what the cloud says.

Upstream: pkg/controllers/nodeoverlay, AdjustedPrice in pkg/cloudprovider/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kschedx.api.karpenter import NODE_POOL, NodeOverlay, NodePool
from kschedx.karpenter.amounts import Amount, amounts_of
from kschedx.karpenter.instance_types import InstanceType, Offering
from kschedx.karpenter.requirements import Requirement, Requirements


def in_force(overlays: Iterable[NodeOverlay]) -> tuple[NodeOverlay, ...]:
    """Those that Karpenter has found valid, the one first that wins. It looks at none without its feature gate
    NodeOverlay, and then says nothing of them."""
    found = sorted((one for one in overlays if one.is_ready), key=lambda one: one.name, reverse=True)
    return tuple(sorted(found, key=lambda one: -(one.spec.weight or 0)))


def overlaid(
    types: Sequence[InstanceType], pool: NodePool, overlays: Sequence[NodeOverlay], allowed: frozenset[str]
) -> tuple[InstanceType, ...]:
    """A pool's types with what the overlays in force give them."""
    if not overlays:
        return tuple(types)
    asked = [
        (one, Requirements(Requirement.of(need.key, need.operator, need.values) for need in one.spec.requirements))
        for one in overlays
    ]
    labels = pool.spec.template.metadata.labels | {NODE_POOL: pool.name}
    of_pool = Requirements.of_labels(labels)
    return tuple(_overlaid(one, of_pool, asked, allowed) for one in types)


def _overlaid(
    one: InstanceType,
    of_pool: Requirements,
    overlays: Sequence[tuple[NodeOverlay, Requirements]],
    allowed: frozenset[str],
) -> InstanceType:
    """A resource or a price is the first overlay's that names it; one offering is enough for all of the capacity."""
    own = of_pool.together(one.requirements.values())
    added: dict[str, Amount] = {}
    priced: dict[int, str] = {}
    for overlay, asked in overlays:
        if not own.is_compatible(asked):
            continue
        where = [
            index for index, offering in enumerate(one.offerings) if asked.is_compatible(offering.requirements, allowed)
        ]
        if not where:
            continue
        added = amounts_of(overlay.spec.capacity) | added
        change = overlay.spec.price if overlay.spec.price is not None else overlay.spec.price_adjustment
        if change is not None:
            priced = dict.fromkeys(where, change) | priced
    offerings = tuple(
        _priced(offering, priced[index]) if index in priced else offering
        for index, offering in enumerate(one.offerings)
    )
    return replace(one, capacity={**one.capacity, **added}, offerings=offerings) if added or priced else one


def _priced(offering: Offering, change: str) -> Offering:
    """`0.5` is the price itself; what is added to one that is not known leaves it unknown."""
    if not change.startswith(("+", "-")):
        return replace(offering, price=float(change))
    if offering.price is None:
        return offering
    by = float(change.removesuffix("%"))
    price = offering.price * (1 + by / 100) if change.endswith("%") else offering.price + by
    return replace(offering, price=max(price, 0.0))
