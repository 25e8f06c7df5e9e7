"""Flattens lists of objects: nested lists, typed lists, and those of old dumps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place, join_fields
from kschedx.kube.decoding import invalid_value, mismatch_text
from kschedx.kube.documents import Json
from kschedx.kube.kinds import KINDS
from kschedx.kube.snapshot_header import SnapshotHeader, parse_list_header
from kschedx.patterns import lazy_pattern

# Lists as `kubectl cluster-info dump` of 1.4 to 1.10 wrote them: in Kubernetes' internal types, not those of its API.
#
# Fields have their names in Go (`Spec`, `PodCIDR`, `DNSPolicy`), and those of metadata are next to `Spec`. A pod's
# `SecurityContext` has the host's namespaces. Neither the list nor its `Items` state their kind: `selfLink` does.
# Upstream: pkg/apis/core/types.go, and printers.JSONPrinter of these versions.


_LINK = lazy_pattern(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/[^/]+)?/(?P<plural>[^/]+)")
_KIND_OF = {
    ("", "events"): "Event",
    **{(group, kind.plural): kind.name for kind in KINDS.values() for group in (kind.group, *kind.former_groups)},
}
_TEXTS = frozenset(
    {"NodeSelector", "Limits", "Requests", "Capacity", "Allocatable", "Selector", "LabelSelector", "Options"}
)
"""Fields whose keys are chosen by users, or have the names of the API."""
_OF_THE_HOST = ("HostNetwork", "HostPID", "HostIPC")
_LEADING_CAPITALS = lazy_pattern(r"[A-Z]+")


def _as_api_list(document: bytes | memoryview) -> bytes | None:
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

_MAX_NESTING = 20  # real lists have at most two levels


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

    items: bytes | memoryview  # a JSON array
    indexes: tuple[int | None, ...]  # each object's position in the outermost list; None for a document that is no list
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
    return not peek.kind and not bytes(peek.items) and _as_api_list(text) is None


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
        if not peek.kind and bytes(peek.items) == b"" and (written := _as_api_list(document)) is not None:
            document, peek = written, _peek(written, index=None)
        if not peek.kind and bytes(peek.items).startswith(b"["):
            peek = replace(peek, kind="List")
        if not peek.is_list:
            if not peek.kind:
                raise _no_kind(None)
            return Flat(items=b"".join((b"[", document, b"]")), indexes=(None,))
        listed = memoryview(peek.listed)
    header = parse_list_header(peek.metadata)
    raws = _raws(listed)
    flat = list(_flat(raws, peek))
    if len(flat) == len(raws) and all(text is raw for (text, _), raw in zip(flat, raws, strict=True)):
        items = b"[]" if bytes(listed) == b"null" else listed
        return Flat(items=items, indexes=tuple(range(len(raws))), header=header)
    items = b"".join((b"[", b",".join(text for text, _ in flat), b"]"))
    return Flat(items=items, indexes=tuple(index for _, index in flat), header=header)


def _flat(raws: list[Raw], of: Peek, index: int | None = None, depth: int = 1) -> Iterator[tuple[Raw | bytes, int]]:
    if depth > _MAX_NESTING:
        raise InputError(f"lists nested more than {_MAX_NESTING} deep")
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


# Errors in a JSON text, in words that a reader of the file understands.

_BYTE = lazy_pattern(r" \(byte (\d+)\)$")
_PATH = lazy_pattern(r"^(?P<problem>.*) - at `\$(?:\[(?P<index>\d+)\])?\.?(?P<field>.*)`$")


def byte_of(error: Exception) -> int | None:
    """Return the offset that msgspec names in a syntax error."""
    match = _BYTE.search(str(error))
    return int(match.group(1)) if match else None


def trailing_at(error: Exception) -> int | None:
    """Return the offset of the text after the end of the value, if that is the error."""
    byte = byte_of(error)
    # msgspec reads this one byte before it raises the error
    return byte - 1 if byte is not None and "trailing characters" in str(error) else None


def what_is_wrong(error: Exception, text: bytes | memoryview) -> str:
    """Return the error in words; `text` is what was decoded."""
    byte = byte_of(error)
    if "truncated" in str(error) or (byte is not None and byte >= len(text)):
        return "it ends in the middle of a value"
    problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
    if byte is None:
        return problem
    excerpt = bytes(text[byte : byte + 20])
    if re.match(rb"-?(NaN|Infinity)", excerpt):
        return "JSON has no NaN and no Infinity"
    if excerpt[:1] == b"'":
        return "strings are written in double quotes"
    if excerpt[:1] < b" " and problem == "invalid character":
        return "a string holds a raw control character or line end"
    return f"{problem} {_shown(excerpt)}" if problem == "invalid character" else problem


def _shown(excerpt: bytes) -> str:
    return ascii(excerpt.decode(errors="replace")[:1])


def explain_malformed(error: Exception, items: bytes | memoryview, *, place: Place) -> InputError:
    """Return the error for a batch that no decoder can read; `place` is that of its first object."""
    text = bytes(items)
    if isinstance(error, UnicodeDecodeError):
        offset, problem = invalid_utf8_at(text) or 0, "not valid UTF-8"
    else:
        offset, problem = byte_of(error) or 0, f"not valid JSON: {what_is_wrong(error, text)}"
    if place.line is None:
        return InputError(problem, place=place)
    first = text.find(b"{")
    line = place.line + text.count(b"\n", max(first, 0), offset)
    return InputError(problem, place=Place(source=place.source, document=place.document, line=line))


def invalid_utf8_at(text: bytes | memoryview) -> int | None:
    """Return the offset of the first byte that is not UTF-8."""
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


class _NamedRecord(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _NamedObject(msgspec.Struct):
    kind: str = ""
    metadata: _NamedRecord = msgspec.field(default_factory=_NamedRecord)


def _explain_invalid(error: msgspec.ValidationError, items: list[msgspec.Raw]) -> tuple[int | None, InputError]:
    """Return the index of the invalid object, if known, and the error with the object's name and field."""
    match = _PATH.match(str(error))
    if match is None or match["index"] is None:
        return None, InputError(str(error))
    index = int(match["index"])
    problem = mismatch_text(match["problem"])
    is_unquoted = re.match("expected a string, found (?:a whole number|a number|true or false)", problem)
    hint = "quote the value to make it a string" if is_unquoted else ""
    field = match["field"]
    if "[...]" in field:  # msgspec does not name the keys of untyped values, in which only numbers can be wrong
        if endless := _endless_number(json.loads(bytes(items[index]), parse_int=float)):
            field = endless
        elif found := invalid_value(field, match["problem"], msgspec.json.decode(items[index])):
            field = found[0]
    place = Place(object=_name_of(items[index]), field=field)
    return index, InputError(problem, place=place, hint=hint)


def _endless_number(whole: object) -> str:
    """Return the field of the first number that exceeds a float; empty if there is none."""
    left = [("", whole)]
    while left:
        field, value = left.pop()
        match value:
            case float() if math.isinf(value):
                return field
            case dict():
                left += [(join_fields(field, key), item) for key, item in reversed(value.items())]
            case list():
                left += [(f"{field}[{number}]", item) for number, item in reversed([*enumerate(value)])]
            case _:
                pass
    return ""


def _name_of(raw: msgspec.Raw) -> str:
    """Return `Kind namespace/name`, as far as the object has them."""
    try:
        named = msgspec.json.decode(raw, type=_NamedObject)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    name = f"{named.metadata.namespace}/{named.metadata.name}".lstrip("/")
    return f"{named.kind} {name}".strip()


# Lines of a JSON list's items, computed on request.

_NEAR = 16 << 20  # bytes; an item of a chunk is searched this far from the chunk's beginning
_BLOCK = 1 << 20
_BETWEEN_ITEMS = lazy_pattern(rb"[\s,]*")
RAW = msgspec.json.Decoder(msgspec.Raw)
RAWS = msgspec.json.Decoder(list[msgspec.Raw])


class LineCounter:
    """Counts the line ends of a file before an offset, from the last offset on if that is not later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = (0, 0)

    def before(self, end: int) -> int:
        offset, lines = self._known if self._known[0] <= end else (0, 0)
        with self.path.open("rb") as file:
            file.seek(offset)
            while offset < end and (block := file.read(min(end - offset, _BLOCK))):
                lines += block.count(b"\n")
                offset += len(block)
        self._known = (offset, lines)
        return lines

    def of_items(self, start: int, count: int) -> Iterator[int]:
        """Yield the lines of the first `count` items of those that begin at offset `start`, as far as each is found."""
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                text = memoryview(file.read(_NEAR))
            line, at = self.before(start) + 1, 0
            for number in range(count):
                match = _BETWEEN_ITEMS.match(text, at)
                here = match.end() if match else at
                line += bytes(text[at:here]).count(b"\n")
                yield line
                if number < count - 1:
                    at = here + length_of_first(text[here:])
                    line += bytes(text[here:at]).count(b"\n")
        except (OSError, ValueError):
            return


def length_of_first(text: memoryview) -> int:
    """Return the length of the JSON value at the beginning of `text`. Raises ValueError unless something follows it."""
    try:
        RAW.decode(text)
    except msgspec.DecodeError as error:
        trailing = trailing_at(error)
        if trailing is not None:
            return trailing
    raise ValueError("one value and something else are expected")


_T = TypeVar("_T")


# The output of every source: a JSON array of Kubernetes objects, and the place of each.


class Origin(Protocol):
    """The places of a batch's objects. It holds none of their bytes, so it may be kept."""

    @property
    def source(self) -> str:
        """The file or other source, which is the same for all objects."""

    def place(self, index: int) -> Place:
        """Return the place of the object with this index in the batch (from 0)."""


class Spot(Struct, frozen=True, kw_only=True):
    """One object's place in a source."""

    document: int
    line: int | None = None
    index: int | None = None  # the position in the object's List, if it was in one


class ListedOrigin(Struct, frozen=True, kw_only=True):
    """Places that are known in advance: those of YAML and of small JSON."""

    source: str
    spots: tuple[Spot, ...]

    def place(self, index: int) -> Place:
        spot = self.spots[index]
        item = "" if spot.index is None or spot.line is not None else f"items[{spot.index}]"
        return Place(source=self.source, document=spot.document, line=spot.line, object=item)


class ChunkOrigin(Struct, frozen=True, kw_only=True):
    """Places in a chunk of a large JSON list. Lines are counted on request, by reading the file again."""

    source: str
    document: int
    start: int  # the offset of the first object's first byte
    lines: LineCounter | None = None  # reads the chunk again; None for input that can be read only once
    indexes: tuple[int | None, ...] = ()
    """The item of each object, counted from the chunk's first one; empty if items and objects are the same."""

    def place(self, index: int) -> Place:
        *_, place = self.places((index,))
        return place

    def places(self, objects: Sequence[int]) -> list[Place]:
        items = [(self.indexes[index] if self.indexes else index) or 0 for index in objects]
        lines = [] if self.lines is None else [*self.lines.of_items(self.start, max(items, default=-1) + 1)]
        return [
            Place(source=self.source, document=self.document, line=lines[item] if item < len(lines) else None)
            for item in items
        ]


class Batch(Struct, kw_only=True, eq=False):
    """Objects in JSON. Read them with `decode`, which also determines where a chunk of a large file ends.

    A large file is cut at an apparent end of an object. If that is inside an object or beyond the list's end, the piece
    is no JSON array. `decode` notices this and calls `settle`, which replaces `items`.
    """

    items: bytes | memoryview
    origin: Origin
    settle: Callable[[Batch], None] | None = None
    header: SnapshotHeader | None = None  # the header of a snapshot, in the batch with its first objects

    def decode(self, decoder: msgspec.json.Decoder[_T]) -> _T:
        """Decode `items` with a decoder of a list. Raises InputError for text that is not JSON.

        An invalid object raises msgspec.ValidationError, so that the caller can try another decoder, or raise
        `invalid(error)`.
        """
        try:
            return self._decode(decoder)
        except RecursionError:
            raise InputError("nested too deeply", place=self.origin.place(0)) from None

    def _decode(self, decoder: msgspec.json.Decoder[_T]) -> _T:
        try:
            decoded = decoder.decode(self.items)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if self.settle is None or isinstance(error, UnicodeDecodeError):
                raise explain_malformed(error, self.items, place=self.origin.place(0)) from None
            settle, self.settle = self.settle, None
            settle(self)
            return self._decode(decoder)
        self.settle = None
        return decoded

    def places(self, count: int) -> list[Place]:
        """Return the places of the first `count` objects. A file is read again once for all of them."""
        if isinstance(self.origin, ChunkOrigin):
            return self.origin.places(range(count))
        return [self.origin.place(index) for index in range(count)]

    def invalid(self, error: msgspec.ValidationError) -> InputError:
        """Return the error of an invalid object, with its place, its name, and the field's path."""
        index, problem = _explain_invalid(error, self.decode(RAWS))
        return problem if index is None else problem.at(self.origin.place(index))


def from_objects(objects: Sequence[Mapping[str, object]]) -> Batch:
    """Return a batch of manifests, given as Python dicts. Lists are not flattened here, but by `lists.flatten`."""
    spots = tuple(Spot(document=number) for number in range(1, len(objects) + 1))
    return Batch(items=msgspec.json.encode(objects), origin=ListedOrigin(source="", spots=spots))
