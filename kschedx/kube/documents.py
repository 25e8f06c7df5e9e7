"""The records of `-o json` documents, from which the JSON Schemas are generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Protocol, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

Json = dict[str, object]
API_VERSION = "kschedx/v1"


class Document(Struct, frozen=True, rename="camel"):
    """A document or a part of one. It is a contract: fields are added and never changed. Fields are named after
    attributes of the object that it describes. With `omit_defaults`, default values are left out."""


Part = TypeVar("Part", bound=Struct)


def part_of(record: type[Part], value: object, /, **more: object) -> Part:
    """Build a record from a value: each field is in `more` or an attribute of the value."""
    if more:
        fields = {name: getattr(value, name, UNSET) for name in record.__struct_fields__ if name not in more}
        value = SimpleNamespace(**{name: own for name, own in fields.items() if own is not UNSET}, **more)
    return msgspec.convert(value, record, from_attributes=True)


def document(kind: str, record: type[Struct], value: object = None, /, **more: object) -> Json:
    """Build a whole document as JSON types; record and fields as in `part_of`."""
    return {"apiVersion": API_VERSION, "kind": kind, **to_json(part_of(record, value, **more))}


def to_json(record: Struct) -> Json:
    """Convert a record to JSON types."""
    plain_document: Json = msgspec.json.decode(msgspec.json.encode(record))
    return plain_document


SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""Fields of an object's metadata that only a server sets."""


class Target(Document, frozen=True, omit_defaults=True):
    """The object that a change applies to."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def pod(cls, key: str) -> Target:
        """Return the target for `namespace/name`."""
        namespace, _, name = key.partition("/")
        return cls("v1", "Pod", name, namespace)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def deletion(self) -> Change:
        return Change(target=self, delete=True)

    def patched(self, *operations: Json, by: str = "") -> Change:
        return Change(target=self, patch=operations, by=by)


class Change(Document, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON patch (RFC 6902) of an object, its deletion, or a new object."""

    target: Target
    delete: bool = False
    orphan: bool = False  # whether the deletion of a workload keeps its pods (`kubectl delete --cascade=orphan`)
    force: bool = False
    """Whether the deletion of a pod waits for no kubelet (`kubectl delete --force --grace-period=0`)."""
    create: Json | None = None
    patch: tuple[Json, ...] = ()
    subresource: str = ""  # `resize`, which changes the requests of a running pod; empty for the object itself
    by: str = ""  # the controller that makes this change after the others; empty if you make it


# The operations of a JSON patch (RFC 6902).


def pointer(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def set_field(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}


def remove_field(path: str) -> Json:
    return {"op": "remove", "path": path}


def merged_fields(path: str, merge: Mapping[str, object]) -> Iterator[Json]:
    """Yield the operations of a JSON merge patch (RFC 7386), whose values are scalars; None removes a field."""
    for key, value in merge.items():
        at = f"{path}/{pointer(key)}"
        if isinstance(value, Mapping):
            yield from merged_fields(at, value)
        else:
            yield remove_field(at) if value is None else set_field(at, value)


def camel(name: str) -> str:
    """Return a field's key in a document: `min_count` becomes `minCount`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class _HasSpec(Protocol):
    @property
    def spec(self) -> Struct: ...


_WithSpec = TypeVar("_WithSpec", bound=Struct)


def with_spec(record: _WithSpec, **fields: object) -> _WithSpec:
    """Return an object with other values of these fields of its spec."""
    spec = cast("_HasSpec", record).spec
    return replace(record, spec=replace(spec, **fields))
