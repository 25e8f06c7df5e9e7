"""Types of the Common Expression Language, and which of them may stand for which.

Upstream: cel-go's common/types/types.go and checker/types.go.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Kind(Enum):
    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    TYPE_PARAM = "type_param"
    UINT = "uint"


class Type(Struct, frozen=True):
    """`name` is what `type(x)` prints."""

    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """As Go prints it."""
        if self.kind is Kind.TYPE_PARAM:
            return f"<{self.name}>"
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


ANY = Type(Kind.ANY, "google.protobuf.Any")
BOOL = Type(Kind.BOOL, "bool")
BYTES = Type(Kind.BYTES, "bytes")
DOUBLE = Type(Kind.DOUBLE, "double")
DURATION = Type(Kind.DURATION, "google.protobuf.Duration")
DYN = Type(Kind.DYN, "dyn")
ERROR = Type(Kind.ERROR, "error")
INT = Type(Kind.INT, "int")
NULL = Type(Kind.NULL, "null_type")
STRING = Type(Kind.STRING, "string")
TIMESTAMP = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(Kind.TYPE, "type")
UINT = Type(Kind.UINT, "uint")

DEVICE = Type(Kind.STRUCT, "kubernetes.DRADevice")
QUANTITY = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER = Type(Kind.STRUCT, "kubernetes.Semver")
URL = Type(Kind.STRUCT, "kubernetes.URL")
FORMAT = Type(Kind.STRUCT, "kubernetes.NamedFormat")
IP = Type(Kind.OPAQUE, "net.IP")
CIDR = Type(Kind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(Kind.TYPE, "type", (value,))


def parameter(name: str) -> Type:
    return Type(Kind.TYPE_PARAM, name)


def is_dyn(one: Type) -> bool:
    return one.kind is Kind.DYN or one.kind is Kind.ANY


def unwrap_optional(one: Type) -> tuple[Type, bool]:
    """What an optional type holds, and whether it is one."""
    if one.kind is Kind.OPAQUE and one.name == "optional_type":
        return one.parameters[0], True
    return one, False


_SHOWN = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


def shown(one: Type) -> str:
    """As an error of the checker names it (FormatCELType)."""
    if one.kind in _SHOWN:
        return _SHOWN[one.kind]
    if not one.parameters:
        return one.name
    return f"{one.name}({', '.join(map(shown, one.parameters))})"


def signature(arguments: tuple[Type, ...], *, is_member: bool) -> str:
    """Types of a call as an error of the checker names them."""
    target = ""
    if is_member:
        target, arguments = f"{shown(arguments[0])}.", arguments[1:]
    return f"{target}({', '.join(map(shown, arguments))})"


Mapping = dict[str, Type]
"""Names of type parameters to what they stand for."""

_NULLABLE = (Kind.OPAQUE, Kind.STRUCT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP)


def _equal_or_less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind is Kind.TYPE_PARAM:
        return True
    if is_dyn(other) or other.kind is Kind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is Kind.OPAQUE and (one.name != other.name or len(one.parameters) != len(other.parameters)):
        return False
    if one.kind in (Kind.OPAQUE, Kind.LIST, Kind.MAP):
        return all(map(_equal_or_less_specific, one.parameters, other.parameters))
    return one.kind is Kind.TYPE or one == other


def most_general(one: Type, other: Type) -> Type:
    return one if _equal_or_less_specific(one, other) else other


def _assignable(mapping: Mapping, one: Type, other: Type) -> bool:
    if other.kind is Kind.TYPE_PARAM:
        valid, has_substitution = _substitutable(mapping, one, other)
        if valid or has_substitution:
            return valid
    if one.kind is Kind.TYPE_PARAM:
        return _substitutable(mapping, other, one)[0]
    if is_dyn(one) or is_dyn(other) or one.kind is Kind.ERROR or other.kind is Kind.ERROR:
        return True
    if one.kind is Kind.NULL or other.kind is Kind.NULL:
        than = other if one.kind is Kind.NULL else one
        return than.kind in _NULLABLE or than.kind is Kind.NULL
    if one.kind is Kind.TYPE:
        return other.kind is Kind.TYPE
    if one.kind is not other.kind or one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(_assignable(mapping, a, b) for a, b in zip(one.parameters, other.parameters, strict=True))


def _substitutable(mapping: Mapping, one: Type, variable: Type) -> tuple[bool, bool]:
    """Whether `one` may be what `variable` stands for, and whether it stands for something already."""
    if one == variable:
        return True, True
    known = mapping.get(variable.name)
    if known is not None:
        if one == known:
            return True, True
        if _assignable(mapping, one, known):
            wider = most_general(one, known)
            if _not_referenced(mapping, variable, wider):
                mapping[variable.name] = wider
            return True, True
        return False, True
    if _not_referenced(mapping, variable, one):
        mapping[variable.name] = one
        return True, False
    return False, False


def _not_referenced(mapping: Mapping, variable: Type, within: Type) -> bool:
    if variable == within:
        return False
    if within.kind is Kind.TYPE_PARAM:
        known = mapping.get(within.name)
        return known is None or _not_referenced(mapping, variable, known)
    return all(_not_referenced(mapping, variable, each) for each in within.parameters)


def assignable(mapping: Mapping, ones: tuple[Type, ...], others: tuple[Type, ...]) -> Mapping | None:
    """What the type parameters stand for once `ones` may stand for `others`; None where they may not."""
    if len(ones) != len(others):
        return None
    tried = dict(mapping)
    return tried if all(_assignable(tried, a, b) for a, b in zip(ones, others, strict=True)) else None


def substitute(mapping: Mapping, one: Type, *, to_dyn: bool = False) -> Type:
    """Type parameters replaced by what they stand for; by `dyn` those that stand for nothing, with `to_dyn`."""
    if one.kind is Kind.TYPE_PARAM:
        known = mapping.get(one.name)
        if known is not None:
            return substitute(mapping, known, to_dyn=to_dyn)
        return DYN if to_dyn else one
    if not one.parameters:
        return one
    return Type(one.kind, one.name, tuple(substitute(mapping, each, to_dyn=to_dyn) for each in one.parameters))


def equivalent(one: Type, other: Type) -> bool:
    """Equal, whatever type parameters are called."""
    if one.kind is not other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind is not Kind.TYPE_PARAM and one.name != other.name:
        return False
    return all(map(equivalent, one.parameters, other.parameters))
