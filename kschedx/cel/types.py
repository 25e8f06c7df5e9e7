"""Types of the Common Expression Language, and their assignability. Upstream: cel-go's common/types/types.go and
checker/types.go."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache

from msgspec import Struct

from kschedx.patterns import lazy_pattern


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


_WRITTEN = lazy_pattern(r"(\w+)(?:\(((?:[^()]|\([^()]*\))*)\))?")
_GENERIC: dict[str, Callable[..., Type]] = {"list": list_of, "map": map_of, "optional": optional_of, "type": type_of}
_BY_NAME = {
    **{each.name.rpartition(".")[2].lower(): each for each in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING)},
    **{each.name.rpartition(".")[2].lower(): each for each in (TIMESTAMP, UINT, QUANTITY, SEMVER, URL, IP, CIDR)},
    "format": FORMAT,
    **{
        word: Type(TypeKind.STRUCT, f"kubernetes.authorization.{word}")
        for word in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    },
}


@cache
def read_types(text: str) -> tuple[Type, ...]:
    """Read types as declarations write them: `list(string), int, A`."""
    return tuple(
        _GENERIC[name](*read_types(inner)) if inner else parameter(name) if len(name) == 1 else _BY_NAME[name]
        for name, inner in _WRITTEN.findall(text)
    )


def is_dyn(type_: Type) -> bool:
    return type_.kind is TypeKind.DYN or type_.kind is TypeKind.ANY


_SHOWN = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}


def shown(type_: Type) -> str:
    """Format as in the checker's errors (FormatCELType)."""
    if type_.kind in _SHOWN:
        return _SHOWN[type_.kind]
    if not type_.parameters:
        return type_.name
    return f"{type_.name}({', '.join(map(shown, type_.parameters))})"


Mapping = dict[str, Type]  # names of type parameters to their types

_NULLABLE = (TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP)


def _equal_or_less_specific(type_: Type, other: Type) -> bool:
    if is_dyn(type_) or type_.kind is TypeKind.TYPE_PARAM:
        return True
    if is_dyn(other) or other.kind is TypeKind.TYPE_PARAM or type_.kind is not other.kind:
        return False
    if type_.kind is TypeKind.OPAQUE and (type_.name != other.name or len(type_.parameters) != len(other.parameters)):
        return False
    if type_.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP):
        return all(map(_equal_or_less_specific, type_.parameters, other.parameters))
    return type_.kind is TypeKind.TYPE or type_ == other


def most_general(type_: Type, other: Type) -> Type:
    return type_ if _equal_or_less_specific(type_, other) else other


def _assignable(mapping: Mapping, type_: Type, other: Type) -> bool:
    if other.kind is TypeKind.TYPE_PARAM:
        valid, has_substitution = _substitutable(mapping, type_, other)
        if valid or has_substitution:
            return valid
    if type_.kind is TypeKind.TYPE_PARAM:
        return _substitutable(mapping, other, type_)[0]
    if is_dyn(type_) or is_dyn(other) or type_.kind is TypeKind.ERROR or other.kind is TypeKind.ERROR:
        return True
    if type_.kind is TypeKind.NULL or other.kind is TypeKind.NULL:
        than = other if type_.kind is TypeKind.NULL else type_
        return than.kind in _NULLABLE or than.kind is TypeKind.NULL
    if type_.kind is TypeKind.TYPE:
        return other.kind is TypeKind.TYPE
    if type_.kind is not other.kind or type_.name != other.name or len(type_.parameters) != len(other.parameters):
        return False
    return all(_assignable(mapping, a, b) for a, b in zip(type_.parameters, other.parameters, strict=True))


def _substitutable(mapping: Mapping, type_: Type, variable: Type) -> tuple[bool, bool]:
    """Return whether `variable` may become `type_`, and whether it already has a type."""
    if type_ == variable:
        return True, True
    known = mapping.get(variable.name)
    if known is not None:
        if type_ == known:
            return True, True
        if _assignable(mapping, type_, known):
            wider = most_general(type_, known)
            if _is_unreferenced(mapping, variable, wider):
                mapping[variable.name] = wider
            return True, True
        return False, True
    if _is_unreferenced(mapping, variable, type_):
        mapping[variable.name] = type_
        return True, False
    return False, False


def _is_unreferenced(mapping: Mapping, variable: Type, within: Type) -> bool:
    if variable == within:
        return False
    if within.kind is TypeKind.TYPE_PARAM:
        known = mapping.get(within.name)
        return known is None or _is_unreferenced(mapping, variable, known)
    return all(_is_unreferenced(mapping, variable, each) for each in within.parameters)


def assignable(mapping: Mapping, types: tuple[Type, ...], others: tuple[Type, ...]) -> Mapping | None:
    """Return the types of the type parameters that make `types` assignable to `others`, or None."""
    if len(types) != len(others):
        return None
    tried = dict(mapping)
    return tried if all(_assignable(tried, a, b) for a, b in zip(types, others, strict=True)) else None


def substitute(mapping: Mapping, type_: Type, *, to_dyn: bool = False) -> Type:
    """Replace type parameters with their types; with `to_dyn`, free ones with `dyn`."""
    if type_.kind is TypeKind.TYPE_PARAM:
        known = mapping.get(type_.name)
        if known is not None:
            return substitute(mapping, known, to_dyn=to_dyn)
        return DYN if to_dyn else type_
    if not type_.parameters:
        return type_
    return Type(type_.kind, type_.name, tuple(substitute(mapping, each, to_dyn=to_dyn) for each in type_.parameters))


def equivalent(type_: Type, other: Type) -> bool:
    """Return whether both are equal up to the names of type parameters."""
    if type_.kind is not other.kind or len(type_.parameters) != len(other.parameters):
        return False
    if type_.kind is not TypeKind.TYPE_PARAM and type_.name != other.name:
        return False
    return all(map(equivalent, type_.parameters, other.parameters))
