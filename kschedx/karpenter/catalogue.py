"""Instance types that somebody writes down, since no cluster holds them.

    apiVersion: kschedx/v1
    kind: InstanceTypes
    instanceTypes:
    - name: m6i.large
      labels: {kubernetes.io/arch: amd64, kubernetes.io/os: linux, karpenter.k8s.aws/instance-family: m6i}
      capacity: {cpu: "2", memory: 7577Mi, pods: "29", ephemeral-storage: 20Gi}
      overhead: {cpu: 70m, memory: 574Mi}
      offerings:
      - {zone: eu-west-1a, capacityType: on-demand, price: 0.107}
      - {zone: eu-west-1a, capacityType: spot, available: false}

A type without offerings is taken to be offered wherever its pool's node class has subnets. A label may have several
values. `kschedx instance-types` makes such a file of what the clouds publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from kschedx.api.karpenter import CAPACITY_TYPE
from kschedx.api.quantity import ResourceList
from kschedx.errors import InputError, Place, join_fields, nearest
from kschedx.karpenter.amounts import Amount, amounts_of
from kschedx.karpenter.instance_types import InstanceType, Offering
from kschedx.karpenter.labels import FLEX, INSTANCE_TYPE, ZONE
from kschedx.karpenter.requirements import Requirement, Requirements

API_VERSION = "kschedx/v1"
KIND = "InstanceTypes"


class _Written(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    pass


class WrittenOffering(_Written, frozen=True, kw_only=True):
    """Where a type can be had, and for how much an hour."""

    zone: str
    capacity_type: str = "on-demand"
    price: float | None = None
    available: bool = True


class WrittenType(_Written, frozen=True, kw_only=True):
    """An instance type: what a node of it has, of which `overhead` is not for pods."""

    name: str
    capacity: ResourceList
    labels: dict[str, str | tuple[str, ...]] = {}
    overhead: ResourceList = {}
    offerings: tuple[WrittenOffering, ...] = ()
    node_pools: tuple[str, ...] = ()
    """The only pools that can use it; none for all."""


class InstanceTypes(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All instance types that the cloud has, as far as its pools may use them."""

    api_version: str = API_VERSION
    kind: str = KIND
    instance_types: tuple[WrittenType, ...] = ()


def is_catalogue(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == KIND


def read_catalogue(document: object) -> InstanceTypes:
    """Raises `InputError` with the field of what is wrong."""
    try:
        made = msgspec.convert(document, InstanceTypes)
    except msgspec.ValidationError as error:
        raise _told(str(error)) from None
    if made.api_version != API_VERSION or made.kind != KIND:
        found = f"{made.api_version} {made.kind}"
        raise InputError(f"found {found}, expected {API_VERSION} {KIND}", place=Place(field="kind"))
    names: set[str] = set()
    for index, one in enumerate(made.instance_types):
        place = Place(field=f"instanceTypes[{index}]")
        if one.name in names:
            raise InputError(f'there are two instance types "{one.name}"', place=place)
        names.add(one.name)
        for field, resources in (("capacity", one.capacity), ("overhead", one.overhead)):
            _checked(resources, field, place)
        lacking = [name for name in ("cpu", "memory") if name not in one.capacity]
        if lacking:
            raise InputError(f"an instance type needs {' and '.join(lacking)}", place=_below(place, "capacity"))
    return made


def _checked(resources: ResourceList, field: str, place: Place) -> Mapping[str, Amount]:
    try:
        return amounts_of(resources)
    except InputError as error:
        raise InputError(error.message, place=_below(place, field + error.place.field), hint=error.hint) from None


def _below(place: Place, field: str) -> Place:
    return Place(field=join_fields(place.field, field))


_FIELDS: Mapping[str, type[Struct]] = {
    "": InstanceTypes,
    "instanceTypes[]": WrittenType,
    "instanceTypes[].offerings[]": WrittenOffering,
}
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`")


def _told(message: str) -> InputError:
    """msgspec's message with the place as a field path, and the nearest field."""
    text, _, where = message.partition(" - at `$")
    field = where.rstrip("`").lstrip(".")
    unknown = _UNKNOWN.fullmatch(text)
    if unknown is None:
        return InputError(text[:1].lower() + text[1:], place=Place(field=field))
    record = _FIELDS.get(re.sub(r"\[\d+\]", "[]", field), InstanceTypes)
    known = [one.encode_name for one in msgspec.structs.fields(record)]
    name = unknown["field"]
    hint = nearest(name, known) or f"known: {', '.join(known)}"
    return InputError(f'"{name}" is not a field', place=Place(field=join_fields(field, name)), hint=hint)


def instance_types(
    catalogue: InstanceTypes,
    pool: str,
    zones: Iterable[str],
    known_labels: frozenset[str],
    reserved: Mapping[str, tuple[Offering, ...]],
) -> tuple[InstanceType, ...]:
    """Those that a pool can use. A label of the cloud that a type does not have, its nodes will not have. `reserved`:
    type to where it is kept for the pool."""
    places = tuple(zones)
    made: list[InstanceType] = []
    for one in catalogue.instance_types:
        if not one.node_pools or pool in one.node_pools:
            bought = _offerings(one, places)
            made.append(instance_type(one, (*bought, *_kept(reserved.get(one.name, ()), bought)), known_labels))
    return tuple(made)


def _kept(reserved: Iterable[Offering], bought: Sequence[Offering]) -> Iterator[Offering]:
    """Reserved capacity where the type is. It is as good as free: of the price a ten millionth counts, so that types
    can be told apart."""
    zones = {one.zone for one in bought}
    price = next((one.price for one in bought if one.capacity_type == "on-demand" and one.price is not None), None)
    for one in reserved:
        if one.zone in zones:
            yield msgspec.structs.replace(one, price=None if price is None else price / _FREE)


_FREE = 10_000_000


def _offerings(one: WrittenType, zones: Iterable[str]) -> tuple[Offering, ...]:
    if not one.offerings:
        return everywhere(zones)
    return tuple(
        Offering(
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price=offering.price,
            is_available=offering.available,
        )
        for offering in one.offerings
    )


def everywhere(zones: Iterable[str]) -> tuple[Offering, ...]:
    return tuple(Offering(zone=zone, capacity_type=kind) for zone in zones for kind in ("on-demand", "spot"))


def instance_type(
    one: WrittenType, offerings: tuple[Offering, ...], known_labels: frozenset[str], seen_on: str = ""
) -> InstanceType:
    """`known_labels` are those that say something even where they are missing."""
    values = {key: (text,) if isinstance(text, str) else text for key, text in one.labels.items()}
    available = [offering for offering in offerings if offering.is_available]
    values[INSTANCE_TYPE] = (one.name,)
    values[ZONE] = tuple(offering.zone for offering in available)
    values[CAPACITY_TYPE] = tuple(offering.capacity_type for offering in available)
    for key in sorted({key for offering in available for key in offering.labels}):
        values[key] = tuple(offering.labels[key] for offering in available if key in offering.labels)
    if FLEX in known_labels:
        values.setdefault(FLEX, (str("-flex" in one.name.partition(".")[0]).lower(),))
    missing = (Requirement.of(key, "DoesNotExist") for key in known_labels if key not in values)
    return InstanceType(
        name=one.name,
        requirements=Requirements((*(Requirement.of(key, "In", some) for key, some in values.items()), *missing)),
        capacity=amounts_of(one.capacity),
        overhead=amounts_of(one.overhead),
        offerings=offerings,
        seen_on=seen_on,
    )
