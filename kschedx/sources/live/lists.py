"""One kind's list, page by page, as an API server returns it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.kinds import ResourceKind
from kschedx.patterns import lazy_pattern
from kschedx.sources.lists import RAW, RAWS, Batch, explain_malformed, flatten, invalid_utf8_at
from kschedx.sources.live.client import ApiServer, RefusedError, TooLargeError

_T = TypeVar("_T")

LIMIT = 500  # objects per page, as in kubectl
_SMALL_LIMIT = 25  # objects per page if a page of LIMIT is too large
_PIECE = 400 << 10  # bytes: a hundred pods
_MAX_RESTARTS = 5  # how often a list is read again if it expires midway
_MAX_PAGES = 10_000  # pages of one list: a server that returns more may never end
_MAX_SHORT = 100
"""Consecutive pages that are nearly empty but not the last: a server fills a page before it begins another."""
_SHORT = 2500  # a page with fewer bytes is nearly empty: _SMALL_LIMIT objects need more
_MAX_SECONDS = 900.0  # the maximum time for one list, or ten times that of a request if that is longer

_HEAD = lazy_pattern(rb'[^\[\]]{0,4096}?"items"\s*:\s*(\[)')
_BEGINNING = lazy_pattern(rb'\[(\{"[A-Za-z]+":.)', re.DOTALL)  # the beginning of the first item: `{"metadata":{`
_TAIL = lazy_pattern(rb"\]\s*\}\s*\Z")


class _ListMeta(Struct, rename={"next": "continue", "remaining": "remainingItemCount"}):
    next: str | None = ""
    remaining: int | None = None


class _Body(Struct, rename="camel"):
    kind: str | None = ""
    api_version: str | None = ""
    metadata: _ListMeta | None = None
    items: Raw = field(default_factory=lambda: Raw(b"null"))


class _PageOrigin(Struct, frozen=True, kw_only=True):
    server: str
    path: str
    number: int  # from 1
    first: int = 0  # the position of the first object in the page

    @property
    def source(self) -> str:
        return self.server + self.path

    def place(self, index: int) -> Place:
        item = f"items[{self.first + index}]"
        return Place(source=f"{self.server}{self.path}", document=self.number, object=item)


@dataclass(slots=True, kw_only=True)
class ListPage:
    """Some objects of one kind, which do not state their kind."""

    resource: ResourceKind
    api_version: str
    batch: Batch
    remaining: int | None  # the number of objects after this page, if the server states it
    count: int = 0  # the number of these objects, once they are decoded

    @property
    def kind(self) -> str:
        return self.resource.key

    @property
    def origin(self) -> _PageOrigin:
        origin = self.batch.origin
        assert isinstance(origin, _PageOrigin)
        return origin

    def pieces(self) -> Iterator[ListPage]:
        """Yield the objects in pieces; each piece must be decoded before the next one is requested.

        Decoded objects then stay in the processor's cache until they are in the snapshot, which saves a sixth of the
        time. A page is cut before text that equals the beginning of its first object. If that is inside an object, the
        piece is no JSON array, and its decoder receives all remaining objects.
        """
        items, start, done, is_whole = self.batch.items, 1, 0, True
        beginning = _BEGINNING.match(items)
        between = re.compile(re.escape(b"}," + beginning[1])) if beginning else None

        def settle(batch: Batch) -> None:
            nonlocal is_whole
            is_whole = True
            batch.items = b"[" + b",".join(self.batch.decode(RAWS)[done:]) + b"]"

        while between is not None and (cut := between.search(items, start + _PIECE)):
            is_whole, end = False, cut.start() + 1
            piece = self._piece(items[start:end], done, settle)
            yield piece
            if is_whole:
                return
            start, done = end + 1, done + piece.count
        yield self if is_whole else self._piece(items[start:-1], done, settle)

    def _piece(self, items: bytes | memoryview, first: int, settle: Callable[[Batch], None]) -> ListPage:
        batch = Batch(items=b"".join((b"[", items, b"]")), origin=replace(self.origin, first=first), settle=settle)
        return ListPage(resource=self.resource, api_version=self.api_version, batch=batch, remaining=self.remaining)

    def decode(self, decoder: msgspec.json.Decoder[_T]) -> _T:
        """Decode the items as `Batch.decode` does."""
        page = self.batch.decode(decoder)
        if isinstance(page, list):
            self.count = len(page)
        return page

    def with_kinds(self) -> Batch:
        """Return the same objects, each with its kind."""
        head = msgspec.json.encode({"kind": f"{self.resource.name}List", "apiVersion": self.api_version})
        items = self.batch.decode(RAW)
        text = b"".join((head[:-1], b',"items":', items, b"}"))
        with Place(source=self.origin.server + self.origin.path):
            flat = flatten(text)
        self.count = len(flat.indexes)
        return Batch(items=flat.items, origin=self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRestarted:
    """The list expired midway: the objects of its pages are dropped, and it is read again."""

    kind: str


_PAGE = msgspec.json.Decoder(_Body)


def pages(server: ApiServer, resource: ResourceKind, namespace: str = "") -> Iterator[ListPage | ListRestarted]:
    """Yield the list of a kind, in the whole cluster or in a namespace.

    Raises `RefusedError` if the server refuses (404: for every version of the kind), and `InputError` for an invalid
    list, and for one that does not end or expires repeatedly.
    """
    for restarts in range(_MAX_RESTARTS + 1):
        try:
            for only in resource.only or ("",):
                yield from _list_pages(server, resource, namespace, only)
            return
        except RefusedError as refused:
            if refused.status != 410:
                raise
            if restarts == _MAX_RESTARTS:
                place = Place(source=server.url, object=resource.resource)
                hint = "the server's versions expire before it answers"
                message = f"the list expired {_MAX_RESTARTS + 1} times before it was read"
                raise InputError(message, place=place, hint=hint) from None
        yield ListRestarted(kind=resource.key)


def path_of(kind: ResourceKind, version: str, namespace: str = "", only: str = "") -> str:
    """Return the path of a list in the whole cluster, or in a namespace for a namespaced kind. `only` is an entry of
    the kind's `only`: `namespace/name`."""
    api = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    inside = only.partition("/")[0] or (namespace if kind.is_namespaced else "")
    return f"{api}/namespaces/{inside}/{kind.plural}" if inside else f"{api}/{kind.plural}"


def _query_of(kind: ResourceKind, namespace: str, only: str = "") -> dict[str, str]:
    """Return the query of the list's request: a field selector if not all objects are meant."""
    name = only.partition("/")[2] or (namespace if kind.key == "Namespace" else "")
    selector = f"metadata.name={name}" if name else kind.selector
    return {"fieldSelector": selector} if selector else {}


def _list_pages(server: ApiServer, resource: ResourceKind, namespace: str, only: str) -> Iterator[ListPage]:
    """Yield the pages of a list from its beginning, at one resourceVersion."""
    deadline = time.monotonic() + max(_MAX_SECONDS, 10 * server.timeout)
    path, body = _first(server, resource, namespace, only)
    token, short = "", 0
    for number in range(1, _MAX_PAGES + 1):
        page, following = _page(body, resource, _PageOrigin(server=server.url, path=path, number=number))
        yield page
        if not following:
            return
        short = short + 1 if len(page.batch.items) < _SHORT else 0
        if following == token or short > _MAX_SHORT or time.monotonic() > deadline:
            break
        token = following
        body = _get_sized(server, path, {**_query_of(resource, namespace, only), "continue": token})
    raise InputError("a list that does not end", source=server.url + path)


def _first(server: ApiServer, resource: ResourceKind, namespace: str, only: str) -> tuple[str, bytes]:
    """Return the path under which the kind is served, and the first page."""
    for version in resource.versions:
        path = path_of(resource, version, namespace, only)
        try:
            return path, _get_sized(server, path, _query_of(resource, namespace, only))
        except RefusedError as refused:
            if refused.status != 404 or version == resource.versions[-1]:
                raise
    raise AssertionError("a resource has a version")


def _get_sized(server: ApiServer, path: str, query: dict[str, str]) -> bytes:
    try:
        return server.get(path, {"limit": str(LIMIT), **query})
    except TooLargeError:
        return server.get(path, {"limit": str(_SMALL_LIMIT), **query})


def _page(body: bytes, resource: ResourceKind, origin: _PageOrigin) -> tuple[ListPage, str]:
    """Return the page, and the token for the next one. Raises `InputError` for an invalid list of the kind."""
    if not body.isascii() and invalid_utf8_at(body) is not None:  # a decoder skips the keys that it does not know
        raise InputError("not valid UTF-8", source=origin.source)
    place = Place(source=origin.server + origin.path)
    quick = _cut(body)
    envelope, items = quick if quick is not None else _decode_page(body, place)
    if envelope.kind != f"{resource.name}List":
        text = f"found {envelope.kind}" if envelope.kind else "found something without a kind"
        raise InputError(f"expected a {resource.name}List, {text}", place=place)

    def settle(batch: Batch) -> None:
        batch.items = _decode_page(body, place)[1]

    metadata = envelope.metadata or _ListMeta()
    page = ListPage(
        resource=resource,
        api_version=envelope.api_version or "",
        batch=Batch(items=items, origin=origin, settle=None if quick is None else settle),
        remaining=metadata.remaining,
    )
    return page, metadata.next or ""


def _cut(body: bytes) -> tuple[_Body, memoryview] | None:
    """Return the envelope and the unparsed items; None if the envelope does not come first, as API servers write it.

    If something follows the items, they are no valid JSON, which their decoder notices.
    """
    head, tail = _HEAD.match(body), _TAIL.search(body, max(len(body) - 100, 0))
    if head is None or tail is None or tail.start() < head.start(1):
        return None
    try:
        envelope = _PAGE.decode(body[: head.end(1)] + b"]}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if envelope.metadata is None or bytes(envelope.items) != b"[]":
        return None
    return envelope, memoryview(body)[head.start(1) : tail.start() + 1]


def _decode_page(body: bytes, place: Place) -> tuple[_Body, memoryview]:
    try:
        envelope = _PAGE.decode(body)
        items = bytes(envelope.items)
    except RecursionError:
        raise InputError("not valid JSON: it is nested too deeply", place=place) from None
    except msgspec.ValidationError as error:
        raise InputError(f"not a list: {str(error).lower()}", place=place) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise explain_malformed(error, body, place=place) from None
    return envelope, memoryview(b"[]" if items == b"null" else items)
