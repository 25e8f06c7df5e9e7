"""Instance types: which of them meet requirements and requests, and Karpenter's message if none does.

Upstream: pkg/cloudprovider/types.go (Truncate, OrderByPrice), filterInstanceTypesByRequirements in
scheduling/nodeclaim.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from string import ascii_lowercase

from msgspec import Struct
from msgspec.structs import replace

from kschedx.karpenter.requirements import (
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    ZERO,
    Amount,
    Amounts,
    LabelRequirement,
    Requirements,
    amounts_of,
    merge_amounts,
    subtract,
)
from kschedx.kube.autoscalers import AWS, CAPACITY_TYPE, EKS_AUTO_MODE, NODE_POOL, NodeOverlay, NodePool
from kschedx.kube.devices import ResourceSlice
from kschedx.kube.names import NVIDIA_GPU, ZONE, is_hugepages
from kschedx.kube.types import Labels, Pod

_RESERVATION = (RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE)
_MILLION = 10**6 * 10**9


class Offering(Struct, frozen=True, kw_only=True):
    """A zone and capacity type in which a type is available."""

    zone: str
    capacity_type: str
    price: float | None = None
    is_available: bool = True
    labels: Labels = {}  # the labels of its capacity reservation

    @property
    def requirements(self) -> Requirements:
        labels = Requirements.of_labels({**self.labels, ZONE: self.zone, CAPACITY_TYPE: self.capacity_type})
        if self.capacity_type == RESERVED:
            return labels
        return labels.together(LabelRequirement.of(key, "DoesNotExist") for key in _RESERVATION)


def _allocatable(capacity: Amounts, overhead: Amounts) -> dict[str, Amount]:
    """Return what an instance type offers to pods: reserved huge pages are subtracted from memory."""
    usable = subtract(capacity, overhead)
    for name, amount in capacity.items():
        if is_hugepages(name):
            left = usable.get("memory", ZERO) - amount
            usable["memory"] = left if left.nano >= 0 else Amount(0, left.format)
    return usable


class InstanceType(Struct, frozen=True, kw_only=True, dict=True):
    name: str
    requirements: Requirements  # the possible values of every well-known label on its nodes
    capacity: Amounts
    overhead: Amounts = {}
    offerings: tuple[Offering, ...] = ()
    seen_on: str = ""  # the `node/NAME` or `nodeclaim/NAME` it was derived from; empty for a type from a catalogue
    resource_slices: tuple[ResourceSlice, ...] | None = None  # the devices of its nodes; None if unknown

    @cached_property
    def allocatable(self) -> Amounts:
        return _allocatable(self.capacity, self.overhead)

    @cached_property
    def available(self) -> tuple[Requirements, ...]:
        """The distinct available offerings."""
        return tuple(offering.requirements for offering in self.offerings if offering.is_available)

    def answers(self, requirements: Requirements, allowed: frozenset[str]) -> tuple[bool, bool]:
        """Return whether it meets the requirements, and whether a matching offering is available. Cached."""
        key = requirements.signature, allowed
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = (
                self.requirements.overlaps(requirements),
                self.is_offered(requirements, allowed),
            )
        return known

    @cached_property
    def _answers(self) -> dict[tuple[frozenset[LabelRequirement], frozenset[str]], tuple[bool, bool]]:
        return {}

    def is_offered(self, requirements: Requirements, allowed: frozenset[str]) -> bool:
        return any(requirements.is_compatible(offered, allowed) for offered in self.available)

    def reservations(self, requirements: Requirements, allowed: frozenset[str]) -> Iterator[str]:
        """Yield the ids of the reservations for a node with these requirements. Their remaining capacity is assumed to
        suffice."""
        for offering in self.offerings:
            is_kept = offering.is_available and offering.capacity_type == RESERVED and RESERVATION_ID in offering.labels
            if is_kept and requirements.is_compatible(offering.requirements, allowed):
                yield offering.labels[RESERVATION_ID]

    @cached_property
    def has_prices(self) -> bool:
        """Whether all available offerings have a price."""
        return all(offering.price is not None for offering in self.offerings if offering.is_available)

    @property
    def size(self) -> tuple[int, int]:
        """cpu and memory, for comparisons."""
        return self.capacity.get("cpu", ZERO).nano, self.capacity.get("memory", ZERO).nano

    def price(self, requirements: Requirements, allowed: frozenset[str]) -> float:
        """Return the lowest price of a matching offering; infinite if none is known."""
        offered = (offering for offering in self.offerings if offering.is_available and offering.price is not None)
        prices = (offering.price for offering in offered if requirements.is_compatible(offering.requirements, allowed))
        return min((price for price in prices if price is not None), default=inf)


_CATEGORIES = tuple(f"{domain}/instance-{part}" for domain in (AWS, EKS_AUTO_MODE) for part in ("category", "family"))
_OF_GPUS = frozenset({"g", "gr", "p"})  # the letters that instance families with GPUs of NVIDIA start with


def _letters(family: str) -> str:
    """Return the category of an EC2 instance family: `p` for `p4d`."""
    return family[: len(family) - len(family.lstrip(ascii_lowercase))]


class NoInstanceType(Struct, frozen=True, kw_only=True):
    """Which criteria some type meets, alone and in pairs; none meets all three."""

    meets_requirements: bool
    fits: bool
    is_offered: bool
    meets_and_fits: bool  # some type meets both but is not offered
    meets_and_is_offered: bool
    fits_and_is_offered: bool
    requirements: Requirements
    requests: Amounts  # the requests of the pod and of DaemonSets, the minimum over the types
    most_requests: Amounts = {}  # the maximum over the types
    pod_requests: Amounts = {}
    too_few: Mapping[str, int] = {}  # keys of `minValues` with the number of available values

    @property
    def text(self) -> str:
        least, most = _format_amounts(self.requests), _format_amounts(self.most_requests or self.requests)
        resources = least if least == most else f"min={least}, max={most}"
        phrase = f"requirements={self.requirements}, resources={resources}"
        if self.too_few:
            return f"{too_few_text(self.too_few)}, {phrase}"
        text = f"{self._lead}, {phrase}"
        cpu = self.pod_requests.get("cpu")
        if self._only("had enough resources") and cpu is not None and cpu.nano >= _MILLION:
            text += " (CPU request >= 1 Million, m vs M typo?)"
        return text

    @property
    def without_gpus(self) -> LabelRequirement | None:
        """The requirement that allows EC2 instances without GPUs only, if the pod requests a GPU of NVIDIA."""
        named = map(self.requirements.requirement, _CATEGORIES if NVIDIA_GPU in self.pod_requests else ())
        return next((it for it in named if it.operator == "In" and not _OF_GPUS & {*map(_letters, it.values)}), None)

    @property
    def _unmet(self) -> tuple[str, ...]:
        """The criteria that no type meets."""
        conditions = (
            ("met the scheduling requirements", self.meets_requirements),
            ("had enough resources", self.fits),
            ("had a required offering", self.is_offered),
        )
        return tuple(text for text, is_met in conditions if not is_met)

    def _only(self, criterion: str) -> bool:
        return self._unmet == (criterion,)

    @property
    def _lead(self) -> str:
        if len(self._unmet) > 1:
            return f"no instance type {' or '.join(self._unmet)}"
        if self._only("met the scheduling requirements"):
            return "no instance type met all requirements"
        if self._only("had enough resources"):
            return "no instance type has enough resources"
        if self._only("had a required offering"):
            return "no instance type has the required offering"
        if self.meets_and_fits:
            return (
                "no instance type which met the scheduling requirements and had enough resources, had a required "
                "offering"
            )
        if self.fits_and_is_offered:
            return (
                "no instance type which had enough resources and the required offering met the scheduling requirements"
            )
        if self.meets_and_is_offered:
            return (
                "no instance type which met the scheduling requirements and the required offering had the required "
                "resources"
            )
        return "no instance type met the requirements/resources/offering tuple"


def _format_amounts(amounts: Amounts) -> str:
    """QuantityFormat as JSON with sorted names."""
    return json.dumps({name: str(amounts[name]) for name in sorted(amounts)}, separators=(",", ":"))


def too_few_text(too_few: Mapping[str, int]) -> str:
    return f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(too_few))}])"


class DaemonOverhead(Struct, frozen=True, kw_only=True):
    """The pods of DaemonSets on new nodes of some instance types."""

    pods: tuple[Pod, ...] = ()
    requests: Amounts = {}
    types: frozenset[str] | None = None  # names of types; None for all types of the pool

    def is_for(self, name: str) -> bool:
        return self.types is None or name in self.types


def _fold(overheads: Sequence[DaemonOverhead], *, least: bool) -> dict[str, Amount]:
    """Return the minimum of each resource that all overheads have, or the maximum of each that any has. Empty overheads
    do not count."""
    each = [overhead.requests for overhead in overheads if overhead.requests]
    names = set[str]().union(*each)
    if least:
        names = {name for name in names if all(name in item for item in each)}
    pick = min if least else max
    return {name: pick((item[name] for item in each if name in item), key=lambda amount: amount.nano) for name in names}


class _FilteredTypes(Struct, frozen=True, kw_only=True):
    types: tuple[InstanceType, ...] = ()
    failure: NoInstanceType | None = None
    relaxed: Mapping[str, int] = {}  # keys with fewer remaining values than `minValues`, if that is tolerated


def filter_types(
    types: Sequence[InstanceType],
    requirements: Requirements,
    *,
    pod_requests: Amounts,
    overheads: Sequence[DaemonOverhead],
    total: Amounts,
    allowed: frozenset[str],
    relaxes_min_values: bool,
) -> _FilteredTypes:
    """`total` are the node's requests without the overhead of its type; a type without an overhead is left out. The
    pod's requests are for the message."""
    seen = [False] * 6
    left: list[InstanceType] = []
    holds_of = [(overhead, merge_amounts(overhead.requests, total)) for overhead in overheads]
    for instance_type in types:
        held = next((amounts for overhead, amounts in holds_of if overhead.is_for(instance_type.name)), None)
        if held is None:
            continue
        meets, is_offered = instance_type.answers(requirements, allowed)
        has_room = fits_within(held, instance_type.allocatable)
        if meets and has_room and is_offered:
            left.append(instance_type)
        for index, holds in enumerate(
            (
                meets,
                has_room,
                is_offered,
                meets and has_room and not is_offered,
                meets and is_offered and not has_room,
                has_room and is_offered and not meets,
            )
        ):
            seen[index] = seen[index] or holds
    too_few = min_values_unmet(left, requirements) if requirements.has_min_values else {}
    if left and (not too_few or relaxes_min_values):
        return _FilteredTypes(types=tuple(left), relaxed=too_few)
    return _FilteredTypes(
        failure=NoInstanceType(
            meets_requirements=seen[0],
            fits=seen[1],
            is_offered=seen[2],
            meets_and_fits=seen[3],
            meets_and_is_offered=seen[4],
            fits_and_is_offered=seen[5],
            requirements=requirements,
            requests=merge_amounts(_fold(overheads, least=True), pod_requests),
            most_requests=merge_amounts(_fold(overheads, least=False), pod_requests),
            pod_requests=pod_requests,
            too_few={} if relaxes_min_values else too_few,
        )
    )


def fits_within(requests: Amounts, offered: Amounts) -> bool:
    """Return whether the request fits. Nothing fits if an offered amount is negative."""
    if any(amount.nano < 0 for amount in offered.values()):
        return False
    return all(amount.nano <= offered.get(name, ZERO).nano for name, amount in requests.items())


def min_values_unmet(types: Sequence[InstanceType], requirements: Requirements) -> dict[str, int]:
    """Return the keys with `minValues` for which the types have too few values; empty without types."""
    minimums = {
        key: requirement.min_values for key, requirement in requirements.items() if requirement.min_values is not None
    }
    values: dict[str, set[str]] = {key: set() for key in minimums}
    unmet: dict[str, int] = {}
    for instance_type in types:
        for key, known in values.items():
            known.update(instance_type.requirements.requirement(key).values)
        unmet = {key: len(known) for key, known in values.items() if len(known) < minimums[key]}
        if not unmet:
            return {}
    return unmet


# NodeOverlays: the cluster owner's corrections of capacity and prices. Upstream: pkg/controllers/nodeoverlay,
# AdjustedPrice in pkg/cloudprovider/types.go.


def effective_overlays(overlays: Iterable[NodeOverlay]) -> tuple[NodeOverlay, ...]:
    """Return the valid overlays, highest precedence first. Without its feature gate NodeOverlay, Karpenter sets no
    conditions on them."""
    ready = sorted((it for it in overlays if it.is_ready), key=lambda overlay: overlay.name, reverse=True)
    return tuple(sorted(ready, key=lambda overlay: -(overlay.spec.weight or 0)))


def overlaid(
    types: Sequence[InstanceType], pool: NodePool, overlays: Sequence[NodeOverlay], allowed: frozenset[str]
) -> tuple[InstanceType, ...]:
    """Apply the valid overlays to a pool's types."""
    if not overlays:
        return tuple(types)
    wanted = [
        (overlay, Requirements(LabelRequirement.of(it.key, it.operator, it.values) for it in overlay.spec.requirements))
        for overlay in overlays
    ]
    labels = pool.spec.template.metadata.labels | {NODE_POOL: pool.name}
    of_pool = Requirements.of_labels(labels)
    return tuple(_overlaid(instance_type, of_pool, wanted, allowed) for instance_type in types)


def _overlaid(
    instance_type: InstanceType,
    of_pool: Requirements,
    overlays: Sequence[tuple[NodeOverlay, Requirements]],
    allowed: frozenset[str],
) -> InstanceType:
    """The first overlay that names a resource or a price wins. Capacity applies if one offering matches."""
    own = of_pool.together(instance_type.requirements.values())
    added: dict[str, Amount] = {}
    priced: dict[int, str] = {}
    for overlay, requirements in overlays:
        if not own.is_compatible(requirements):
            continue
        where = [
            index
            for index, offering in enumerate(instance_type.offerings)
            if requirements.is_compatible(offering.requirements, allowed)
        ]
        if not where:
            continue
        added = amounts_of(overlay.spec.capacity) | added
        change = overlay.spec.price if overlay.spec.price is not None else overlay.spec.price_adjustment
        if change is not None:
            priced = dict.fromkeys(where, change) | priced
    offerings = tuple(
        _adjust_price(offering, priced[index]) if index in priced else offering
        for index, offering in enumerate(instance_type.offerings)
    )
    if added or priced:
        return replace(instance_type, capacity={**instance_type.capacity, **added}, offerings=offerings)
    return instance_type


def _adjust_price(offering: Offering, change: str) -> Offering:
    """`0.5` is the price itself; an adjustment of an unknown price leaves it unknown."""
    if not change.startswith(("+", "-")):
        return replace(offering, price=float(change))
    if offering.price is None:
        return offering
    by = float(change.removesuffix("%"))
    price = offering.price * (1 + by / 100) if change.endswith("%") else offering.price + by
    return replace(offering, price=max(price, 0.0))
