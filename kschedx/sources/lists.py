"""Flattens lists of objects: nested lists, typed lists, and those of old dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.kinds import KINDS
from kschedx.kube.snapshot_header import SnapshotHeader, of_list

# Lists as `kubectl cluster-info dump` of 1.4 to 1.10 wrote them: in Kubernetes' internal types, not those of its API.
#
# Fields have their names in Go (`Spec`, `PodCIDR`, `DNSPolicy`), and those of metadata are next to `Spec`. A pod's
# `SecurityContext` has the host's namespaces. Neither the list nor its `Items` state their kind: `selfLink` does.
# Upstream: pkg/apis/core/types.go, and printers.JSONPrinter of these versions.

Json = dict[str, object]

_LINK = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/[^/]+)?/(?P<plural>[^/]+)")
_KIND_OF = {
    ("", "events"): "Event",
    **{(group, kind.plural): kind.name for kind in KINDS.values() for group in (kind.group, *kind.former_groups)},
}
_TEXTS = frozenset(
    {"NodeSelector", "Limits", "Requests", "Capacity", "Allocatable", "Selector", "LabelSelector", "Options"}
)
"""Fields whose keys are chosen by users, or have the names of the API."""
_OF_THE_HOST = ("HostNetwork", "HostPID", "HostIPC")
_LEADING_CAPITALS = re.compile(r"[A-Z]+")


def versioned(document: bytes | memoryview) -> bytes | None:
    """Return the list in the form of the API; None for anything else."""
    try:
        manifest = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # reported by the reader of the actual format
    if not isinstance(manifest, dict) or "Items" not in manifest:
        return None
    items, link = manifest["Items"] or [], _LINK.fullmatch(str(manifest.get("selfLink") or ""))
    kind = _KIND_OF.get((link["group"] or "", link["plural"])) if link else None
    if link is None or kind is None or not isinstance(items, list):
        return None
    head = {"apiVersion": f"{link['group']}/{link['version']}" if link["group"] else link["version"], "kind": kind}
    objects = [{**head, **_object(item)} for item in items if isinstance(item, dict)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})


def _object(value: Mapping[str, object]) -> Json:
    """Convert an object or a template: fields in lower case are metadata."""
    metadata = {key: item for key, item in value.items() if key[:1].islower() and key not in ("kind", "apiVersion")}
    rest = {key: item for key, item in value.items() if key[:1].isupper()}
    return {"metadata": metadata, **_fields(rest)}


def _fields(value: Mapping[str, object]) -> Json:
    document: Json = {}
    for key, item in value.items():
        if item is None:
            continue
        if key == "SecurityContext" and isinstance(item, dict):
            document |= {_name(flag): True for flag in _OF_THE_HOST if item.get(flag)}
        document[_name(key)] = item if key in _TEXTS else _value(item, is_template=key == "Template")
    return document


def _value(value: object, *, is_template: bool = False) -> object:
    if isinstance(value, dict):
        fields = cast("Json", value)
        return _object(fields) if is_template else _fields(fields)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def _name(key: str) -> str:
    """Return `podCIDR`, `dnsPolicy`, `nfs`, and the like for a name in Go."""
    match = _LEADING_CAPITALS.match(key)
    if match is None:
        return key
    end = match.end()
    size = end if end in (1, len(key)) else end - 1
    return key[:size].lower() + key[size:]


# Nested lists: `kind: List`, and typed ones (`PodList`), whose items do not repeat their kind.

MAX_NESTING = 20
"""Real lists have at most two levels."""


class Peek(Struct, rename="camel"):
    """The fields that distinguish an object from a list, and those that the items of a typed list do not repeat."""

    api_version: str | None = None
    kind: str | None = None
    metadata: Raw = Raw(b"null")
    items: Raw = Raw(b"")

    @property
    def is_list(self) -> bool:
        """Whether it is a list. Go writes null for the items of an empty list; another kind that ends in `List` has no
        such field."""
        return self.kind == "List" or ((self.kind or "").endswith("List") and bytes(self.items) != b"")

    @property
    def listed(self) -> Raw:
        return self.items if bytes(self.items) else Raw(b"null")


class ItemError(InputError):
    """An item of the list is no Kubernetes object; `index` is its position in the outermost list."""

    index: int | None = None


class Flat(Struct, frozen=True, kw_only=True):
    """The objects of a document."""

    items: bytes | memoryview
    """A JSON array."""
    indexes: tuple[int | None, ...]
    """Each object's position in the outermost list; None for a document that is no list."""
    header: SnapshotHeader | None = None


def is_plain_object(text: bytes | memoryview) -> bool:
    """Return whether the object states its kind and is no list."""
    peek = _peek(text, index=None)
    return peek.kind is not None and peek.kind != "" and not peek.kind.endswith("List")


def is_nameless(text: bytes) -> bool:
    """Return whether an object does not state its kind, and is no list in any form."""
    try:
        peek = _peek(text, index=None)
    except (msgspec.DecodeError, UnicodeDecodeError, InputError, RecursionError):
        return False
    return not peek.kind and not bytes(peek.items) and versioned(text) is None


def peek_of_list(prefix: bytes) -> Peek | None:
    """Return the fields of a list before its items, if `prefix` ends with their `[`; None if it is no list. An array of
    objects counts as a list."""
    if prefix == b"[":
        return Peek(kind="List")
    try:
        # a nested `items` would leave more brackets open
        if list(msgspec.json.decode(prefix + b"]}", type=dict[str, Raw]))[-1] != "items":
            return None
        peek = _peek(prefix + b"]}", index=None)
    except (msgspec.DecodeError, UnicodeDecodeError, InputError, RecursionError):
        return None
    return peek if peek.kind is None or peek.kind.endswith("List") else None


def flatten(document: bytes | memoryview, of: Peek | None = None) -> Flat:
    """Return the objects of a JSON document: itself, or its items if it is a list or an array.

    `of` are the fields of the list that contained the array. Raises ItemError for an item that is no object or does not
    state its kind.
    """
    if bytes(document[:1]) == b"[":
        listed: bytes | memoryview = document
        peek = of or Peek(kind="List")
    else:
        peek = _peek(document, index=None)
        if not peek.kind and bytes(peek.items) == b"" and (written := versioned(document)) is not None:
            document, peek = written, _peek(written, index=None)
        if not peek.kind and bytes(peek.items).startswith(b"["):
            peek = replace(peek, kind="List")
        if not peek.is_list:
            if not peek.kind:
                raise _no_kind(None)
            return Flat(items=b"".join((b"[", document, b"]")), indexes=(None,))
        listed = memoryview(peek.listed)
    header = of_list(peek.metadata)
    raws = _raws(listed)
    flat = list(_flat(raws, peek))
    if len(flat) == len(raws) and all(text is raw for (text, _), raw in zip(flat, raws, strict=True)):
        items = b"[]" if bytes(listed) == b"null" else listed
        return Flat(items=items, indexes=tuple(range(len(raws))), header=header)
    items = b"".join((b"[", b",".join(text for text, _ in flat), b"]"))
    return Flat(items=items, indexes=tuple(index for _, index in flat), header=header)


def _flat(raws: list[Raw], of: Peek, index: int | None = None, depth: int = 1) -> Iterator[tuple[Raw | bytes, int]]:
    if depth > MAX_NESTING:
        raise InputError(f"lists nested more than {MAX_NESTING} deep")
    for number, raw in enumerate(raws):
        outermost = number if index is None else index
        item = _peek(raw, index=outermost)
        if item.is_list:
            yield from _flat(_raws(item.listed), item, outermost, depth + 1)
        elif item.kind:
            yield raw, outermost
        elif of.kind in (None, "", "List"):
            raise _no_kind(outermost, raw)
        else:
            yield _with_kind(raw, of, item), outermost


def _with_kind(raw: Raw, of: Peek, item: Peek) -> bytes:
    """Return the item of a `PodList` as a Pod, with its kind."""
    assert of.kind is not None
    fields = {"apiVersion": item.api_version or of.api_version or "", "kind": of.kind.removesuffix("List")}
    # if a field occurs twice, decoders take the later one, so the item's null must be removed
    try:
        written = msgspec.json.decode(raw, type=dict[str, Raw])
    except UnicodeDecodeError:  # in a key; the content of strings is checked later
        raise InputError("not valid UTF-8") from None
    return msgspec.json.encode({**fields, **{key: value for key, value in written.items() if key not in fields}})


def _raws(text: Raw | bytes | memoryview) -> list[Raw]:
    try:
        return msgspec.json.decode(text, type=list[Raw] | None) or []
    except msgspec.ValidationError:
        raise InputError("not an array", place=Place(field="items")) from None


def _peek(text: Raw | bytes | memoryview, *, index: int | None) -> Peek:
    try:
        return msgspec.json.decode(text, type=Peek)
    except msgspec.ValidationError as error:
        problem = str(error).partition(" - at ")
        what = "kind and apiVersion are strings" if problem[1] else "not an object"
        item_error = ItemError(f"{what}, so this is not a Kubernetes object")
        item_error.index = index
        raise item_error from None


class _JsonPatch(Struct):
    op: str
    path: str


def _no_kind(index: int | None, raw: Raw | bytes = b"") -> ItemError:
    try:
        msgspec.json.decode(raw, type=_JsonPatch)
    except (msgspec.DecodeError, UnicodeDecodeError):
        error = ItemError('no "kind", so this is not a Kubernetes object')
    else:
        error = ItemError("a JSON patch of a kustomization, not a Kubernetes object")
        error.hint = "kubectl kustomize FOLDER | kschedx why -"
    error.index = index
    return error
