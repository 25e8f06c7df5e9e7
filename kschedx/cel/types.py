"""Types of the Common Expression Language, and their assignability. Upstream: cel-go's common/types/types.go and
checker/types.go."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class TypeKind(Enum):
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

    kind: TypeKind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """Format as Go does."""
        if self.kind is TypeKind.TYPE_PARAM:
            return f"<{self.name}>"
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


ANY = Type(TypeKind.ANY, "google.protobuf.Any")
BOOL = Type(TypeKind.BOOL, "bool")
BYTES = Type(TypeKind.BYTES, "bytes")
DOUBLE = Type(TypeKind.DOUBLE, "double")
DURATION = Type(TypeKind.DURATION, "google.protobuf.Duration")
DYN = Type(TypeKind.DYN, "dyn")
ERROR = Type(TypeKind.ERROR, "error")
INT = Type(TypeKind.INT, "int")
NULL = Type(TypeKind.NULL, "null_type")
STRING = Type(TypeKind.STRING, "string")
TIMESTAMP = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(TypeKind.TYPE, "type")
UINT = Type(TypeKind.UINT, "uint")

DEVICE = Type(TypeKind.STRUCT, "kubernetes.DRADevice")
QUANTITY = Type(TypeKind.STRUCT, "kubernetes.Quantity")
SEMVER = Type(TypeKind.STRUCT, "kubernetes.Semver")
URL = Type(TypeKind.STRUCT, "kubernetes.URL")
FORMAT = Type(TypeKind.STRUCT, "kubernetes.NamedFormat")
IP = Type(TypeKind.OPAQUE, "net.IP")
CIDR = Type(TypeKind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(TypeKind.TYPE, "type", (value,))


def parameter(name: str) -> Type:
    return Type(TypeKind.TYPE_PARAM, name)


def is_dyn(one: Type) -> bool:
    return one.kind is TypeKind.DYN or one.kind is TypeKind.ANY


def unwrap_optional(one: Type) -> tuple[Type, bool]:
    """Return the value type of an optional type, and whether it is one."""
    if one.kind is TypeKind.OPAQUE and one.name == "optional_type":
        return one.parameters[0], True
    return one, False


_SHOWN = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}


def shown(one: Type) -> str:
    """Format as in the checker's errors (FormatCELType)."""
    if one.kind in _SHOWN:
        return _SHOWN[one.kind]
    if not one.parameters:
        return one.name
    return f"{one.name}({', '.join(map(shown, one.parameters))})"


def signature(arguments: tuple[Type, ...], *, is_member: bool) -> str:
    """Format the types of a call as in the checker's errors."""
    target = ""
    if is_member:
        target, arguments = f"{shown(arguments[0])}.", arguments[1:]
    return f"{target}({', '.join(map(shown, arguments))})"


Mapping = dict[str, Type]
"""Names of type parameters to their types."""

_NULLABLE = (TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP)


def _equal_or_less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind is TypeKind.TYPE_PARAM:
        return True
    if is_dyn(other) or other.kind is TypeKind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is TypeKind.OPAQUE and (one.name != other.name or len(one.parameters) != len(other.parameters)):
        return False
    if one.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP):
        return all(map(_equal_or_less_specific, one.parameters, other.parameters))
    return one.kind is TypeKind.TYPE or one == other


def most_general(one: Type, other: Type) -> Type:
    return one if _equal_or_less_specific(one, other) else other


def _assignable(mapping: Mapping, one: Type, other: Type) -> bool:
    if other.kind is TypeKind.TYPE_PARAM:
        valid, has_substitution = _substitutable(mapping, one, other)
        if valid or has_substitution:
            return valid
    if one.kind is TypeKind.TYPE_PARAM:
        return _substitutable(mapping, other, one)[0]
    if is_dyn(one) or is_dyn(other) or one.kind is TypeKind.ERROR or other.kind is TypeKind.ERROR:
        return True
    if one.kind is TypeKind.NULL or other.kind is TypeKind.NULL:
        than = other if one.kind is TypeKind.NULL else one
        return than.kind in _NULLABLE or than.kind is TypeKind.NULL
    if one.kind is TypeKind.TYPE:
        return other.kind is TypeKind.TYPE
    if one.kind is not other.kind or one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(_assignable(mapping, a, b) for a, b in zip(one.parameters, other.parameters, strict=True))


def _substitutable(mapping: Mapping, one: Type, variable: Type) -> tuple[bool, bool]:
    """Return whether `variable` may become `one`, and whether it already has a type."""
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
    if within.kind is TypeKind.TYPE_PARAM:
        known = mapping.get(within.name)
        return known is None or _not_referenced(mapping, variable, known)
    return all(_not_referenced(mapping, variable, each) for each in within.parameters)


def assignable(mapping: Mapping, ones: tuple[Type, ...], others: tuple[Type, ...]) -> Mapping | None:
    """Return the types of the type parameters that make `ones` assignable to `others`, or None."""
    if len(ones) != len(others):
        return None
    tried = dict(mapping)
    return tried if all(_assignable(tried, a, b) for a, b in zip(ones, others, strict=True)) else None


def substitute(mapping: Mapping, one: Type, *, to_dyn: bool = False) -> Type:
    """Replace type parameters with their types; with `to_dyn`, free ones with `dyn`."""
    if one.kind is TypeKind.TYPE_PARAM:
        known = mapping.get(one.name)
        if known is not None:
            return substitute(mapping, known, to_dyn=to_dyn)
        return DYN if to_dyn else one
    if not one.parameters:
        return one
    return Type(one.kind, one.name, tuple(substitute(mapping, each, to_dyn=to_dyn) for each in one.parameters))


def equivalent(one: Type, other: Type) -> bool:
    """Return whether both are equal up to the names of type parameters."""
    if one.kind is not other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind is not TypeKind.TYPE_PARAM and one.name != other.name:
        return False
    return all(map(equivalent, one.parameters, other.parameters))
