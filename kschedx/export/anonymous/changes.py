"""How a value is changed: what is a name in it, and what is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol, TypeGuard

import msgspec

from kschedx.api.pod_security.policy import PREFIX
from kschedx.api.selectors import Operator
from kschedx.api.timestamps import nanoseconds
from kschedx.errors import InputError

DNS_SUBDOMAIN = 253
DNS_LABEL = 63
LABEL_VALUE = 63
PORT_NAME = 15
"""Bytes that a name may have."""
ANY_LENGTH = 2**31


class Names(Protocol):
    """Collects names, or replaces them."""

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        """What is compared with other names, whole or as the part of one, and may be `limit` bytes long."""
        ...

    def value(self, key: str, text: str) -> str:
        """The value of a label or taint of this key."""
        ...

    def compared(self, key: str) -> None:
        """The values of labels or taints of this key are compared as numbers."""
        ...

    def ordinal(self, number: int) -> None:
        """A name with this number behind it will be made from another one."""
        ...

    def keep(self, text: str) -> None:
        """Every word of the text stays, wherever it is."""
        ...

    def is_kept(self, text: str) -> bool: ...

    def begin(self, owner: str) -> None:
        """What comes next is of this object."""
        ...

    def look_into(self, why: str) -> None:
        """The object looks into texts, so that none can stand for another there."""
        ...

    def uid(self, text: str) -> str: ...

    def ip(self, text: str) -> str: ...

    def message(self, text: str) -> str:
        """A text of kube-scheduler's, with names in it."""
        ...


Json = dict[str, object]
Change = Callable[[object, Names], object]
"""A field's value with its names replaced; None where there is nothing to keep."""


def is_map(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


# --- texts


def text(change: Callable[[str, Names], str | None]) -> Change:
    """For strings; what is of another type is left out. An empty one may say something: no storage class at all."""

    def changed(value: object, names: Names) -> object:
        if not isinstance(value, str):
            return None
        return change(value, names) if value else value

    return changed


def name(limit: int = DNS_SUBDOMAIN) -> Change:
    return text(lambda written, names: names.name(written, limit))


def as_written(written: str, _: Names) -> str:
    return written


def label_key(written: str, names: Names) -> str:
    """A label's or taint's key, or the name of a resource: `name` or `example.com/name`."""
    return names.name(written, DNS_LABEL)


_HUGEPAGES = re.compile(r"(?:requests\.)?hugepages-[0-9.]+[a-zA-Z]{0,2}")


def resource(written: str, names: Names) -> str:
    return written if _HUGEPAGES.fullmatch(written) else label_key(written, names)


def time(written: str, _: Names) -> str | None:
    """Times stay: which pod started first decides about victims, and which event came last about notes."""
    try:
        nanoseconds(written)
    except InputError:
        return None
    return written


_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+)?(?![0-9])", re.ASCII)


def version(written: str, _: Names) -> str | None:
    """`v1.36.2` of `v1.36.2-gke.1282001`: the release, without who built it."""
    found = _VERSION.match(written)
    return found[0] if found else None


def revision(written: str, _: Names) -> str | None:
    """A number in a string."""
    return written if written.isascii() and written.isdigit() and len(written) < 10 else None


def label_pairs(written: str, names: Names) -> str:
    """`key=value,other=value`"""
    pairs = [[part.strip() for part in pair.split("=")] for pair in written.split(",")]
    return ",".join(
        f"{label_key(pair[0], names)}={names.value(pair[0], pair[1])}" if len(pair) == 2 else names.name("=".join(pair))
        for pair in pairs
    )


def taint_list(written: str, names: Names) -> str:
    """`key=value:effect,key:effect`"""

    def one(text: str) -> str:
        named, colon, effect = text.partition(":")
        key, equals, value = named.partition("=")
        known = label_key(key, names)
        told = f"{known}={names.value(key, value)}" if equals else known
        return f"{told}:{effect}" if colon and effect in _EFFECTS else told

    return ",".join(map(one, written.split(",")))


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def encoded(change: Change) -> Change:
    """For JSON in a string; what is none is left out."""

    def changed(written: str, names: Names) -> str | None:
        try:
            value = change(msgspec.json.decode(written), names)
        except (msgspec.DecodeError, RecursionError):
            return None
        return None if value is None else msgspec.json.encode(value).decode()

    return text(changed)


# --- numbers


def number(value: object, _: Names) -> object:
    return value if isinstance(value, bool | int | float) else None


def ordinal(value: object, names: Names) -> object:
    if isinstance(value, int):
        names.ordinal(value)
    return number(value, names)


_QUANTITY = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+|[numkKMGTPE]?i?)")


def quantity(value: object, names: Names) -> object:
    if isinstance(value, str) and _QUANTITY.fullmatch(value) is None:
        return names.name(value)
    return value if isinstance(value, str | int | float) else None


# --- lists and maps


def list_of(change: Change) -> Change:
    def changed(value: object, names: Names) -> object:
        if not isinstance(value, list):
            return None
        return [new for item in value if (new := change(item, names)) is not None]

    return changed


def labels(value: object, names: Names) -> object:
    if not is_map(value):
        return None
    return {
        label_key(key, names): _label_value(key, item, names) for key, item in value.items() if isinstance(item, str)
    }


_STANDARD = re.compile(r"v1\.[0-9]{1,3}")


def _label_value(key: str, value: str, names: Names) -> str:
    """Of a Pod Security Standard the version stays."""
    return value if key.startswith(PREFIX) and _STANDARD.fullmatch(value) else names.value(key, value)


def texts(value: object, names: Names) -> object:
    """Keys, which are names too, to texts with names in them."""
    if not is_map(value):
        return None
    return {label_key(key, names): names.message(item) for key, item in value.items() if isinstance(item, str)}


def amounts(value: object, names: Names) -> object:
    """Resources to quantities."""
    if not is_map(value):
        return None
    return {resource(key, names): quantity(amount, names) for key, amount in value.items()}


def by_name(change: Change) -> Change:
    """Qualified names to records."""

    def changed(value: object, names: Names) -> object:
        if not is_map(value):
            return None
        found = {resource(key, names): change(item, names) for key, item in value.items()}
        return {key: item for key, item in found.items() if item is not None}

    return changed


def times(value: object, names: Names) -> object:
    """Names to times."""
    if not is_map(value):
        return None
    return {names.name(key): time(item, names) or "" for key, item in value.items() if isinstance(item, str)}


class Record:
    """A map with known fields."""

    def __init__(self, fields: Mapping[str, Change]) -> None:
        self.fields = dict(fields)

    def __call__(self, value: object, names: Names) -> Json | None:
        if not is_map(value):
            return None
        found: Json = {}
        for key, item in value.items():
            change = self.fields.get(key)
            if change is not None and (changed := change(item, names)) is not None:
                found[key] = changed
        return found

    def both(self, other: Mapping[str, Change]) -> Record:
        """With the fields of another one too."""
        fields = dict(self.fields)
        for key, change in other.items():
            own = fields.get(key)
            both = own.both(change.fields) if isinstance(own, Record) and isinstance(change, Record) else change
            fields[key] = both
        return Record(fields)


_BOUNDS = (Operator.GT, Operator.LT, "Gte", "Lte")
"""Operators for which a value is a number; the last two are Karpenter's."""


def requirement(fields: Mapping[str, Change]) -> Change:
    """A condition on a label, a taint or a toleration: what its value is like depends on its key."""
    record = Record({key: change for key, change in fields.items() if key not in ("value", "values")})

    def changed(value: object, names: Names) -> object:
        found = record(value, names)
        if found is None or not is_map(value):
            return None
        key = value.get("key")
        label = key if isinstance(key, str) else ""
        if value.get("operator") in _BOUNDS:
            names.compared(label)
        one, several = value.get("value"), value.get("values")
        if isinstance(one, str):
            found["value"] = names.value(label, one)
        if isinstance(several, list):
            found["values"] = [names.value(label, item) for item in several if isinstance(item, str)]
        return found

    return changed


def condition(fields: Mapping[str, Change]) -> Change:
    """A pod's condition. Only what kube-scheduler says of it is read; others' texts may hold anything."""
    record = Record(fields)
    silent = Record({key: change for key, change in fields.items() if key != "message"})

    def changed(value: object, names: Names) -> object:
        by_scheduler = is_map(value) and value.get("type") == "PodScheduled"
        return (record if by_scheduler else silent)(value, names)

    return changed
