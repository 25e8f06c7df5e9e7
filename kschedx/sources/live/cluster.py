"""All kinds of a live cluster that scheduling reads, as far as its API server serves them."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.kinds import READ_LIVE, ResourceKind
from kschedx.patterns import lazy_pattern
from kschedx.sources.live.client import ApiServer, RefusedError
from kschedx.sources.live.lists import ListPage, ListRestarted, pages

# The kinds and versions that an API server serves. One request finds them, so that no list is requested in vain.
# Servers of 1.26 and later respond with every resource of every group (APIGroupDiscoveryList), older ones with the
# groups and their versions (APIGroupList). Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated.

PATH = "/apis"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_ACCEPT = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"))
_KEPT_TO_ITSELF = (403, 404, 406)
_GRACE = 2.0  # seconds by which a request may be late before it is abandoned


class _NamedObject(Struct, frozen=True):
    name: str = ""


class _Resource(Struct, frozen=True):
    resource: str = ""


class _Version(Struct, frozen=True):
    version: str = ""
    resources: tuple[_Resource, ...] | None = None
    freshness: str = ""


class _Group(Struct, frozen=True):
    metadata: _NamedObject = _NamedObject()
    name: str = ""
    versions: tuple[_Version, ...] = ()


class _Groups(Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] = ()
    groups: tuple[_Group, ...] = ()


_DECODER = msgspec.json.Decoder(_Groups)


class _Discovery(Struct, frozen=True, kw_only=True):
    groups: Mapping[str, Mapping[str, frozenset[str] | None]] | None = None
    """Plurals by group and version; None for unknown plurals, or for a server without discovery."""

    def versions(self, kind: ResourceKind) -> tuple[str, ...]:
        """Return the versions in which a kind can be requested, the preferred one first; empty if it is not served."""
        if self.groups is None or not kind.group:
            return kind.versions
        served = self.groups.get(kind.group, {})
        return tuple(
            version
            for version in kind.versions or served
            if version in served and ((plurals := served[version]) is None or kind.plural in plurals)
        )


_T = TypeVar("_T")


def _run_within(seconds: float, work: Callable[[], _T], late: Callable[[], InputError]) -> _T:
    """Return the result of `work`, or raise the error `late` if it takes longer; its thread then keeps running."""
    outcome: list[_T | BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise late()
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result


def discover(server: ApiServer) -> _Discovery:
    """Request the discovery document. Raises `InputError` if the server does not respond."""
    place = Place(source=server.url, object=PATH)
    try:
        body = _run_within(
            server.timeout + _GRACE, lambda: server.get(PATH, accept=_ACCEPT), lambda: server.late(place)
        )
    except RefusedError as refused:
        if refused.status not in _KEPT_TO_ITSELF:
            raise
        return _Discovery()
    try:
        answer = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Discovery()
    if not answer.kind.endswith(("GroupDiscoveryList", "GroupList")):
        return _Discovery()
    groups = {
        group.name or group.metadata.name: {version.version: _plurals(version) for version in group.versions}
        for group in (*answer.items, *answer.groups)
    }
    return _Discovery(groups=groups)


def _plurals(version: _Version) -> frozenset[str] | None:
    """Return None if the server does not list resources, or if its list from an aggregated server is stale."""
    if version.resources is None or version.freshness == "Stale":
        return None
    return frozenset(resource.resource for resource in version.resources)


_THREADS = 4  # lists that are read at the same time
_WAITING = 4  # pages that are queued for decoding
_TICK = 0.2  # seconds between two checks of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A kind that cannot be read: it is forbidden (403), or not served (404)."""

    kind: str
    forbidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Nothing was received for a while."""


Event: TypeAlias = ListPage | ListRestarted | Unread | Tick


_ADDRESS = "the address of a cluster's API server is needed"
_VERSION = lazy_pattern(r"v?[0-9]+\.[0-9]+")
_IMPERSONATION = "cannot impersonate"
"""Part of a server's error if it refuses impersonation; it then refuses every request."""


class _ServerVersion(msgspec.Struct, rename="camel"):
    git_version: msgspec.Raw = msgspec.Raw(b'""')


def server_version(server: ApiServer) -> str:
    """Return `v1.36.2`; empty if the server does not disclose its version, or returns an invalid one.

    This is the first request, since it shows whether the server is reachable and accepts the identity. Raises
    `InputError` if not.
    """
    place = Place(source=server.url, object="/version")
    try:
        body = _run_within(server.timeout + _GRACE, lambda: server.get("/version"), lambda: server.late(place))
        version = msgspec.json.decode(msgspec.json.decode(body, type=_ServerVersion).git_version)
        return version if isinstance(version, str) and _VERSION.match(version) else ""
    except RefusedError as refused:
        if (refused.status not in (403, 404) and refused.status < 500) or _IMPERSONATION in refused.message:
            raise
        return ""
    except msgspec.ValidationError:
        return ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("not an API server: its answer is not valid JSON", place=place, hint=_ADDRESS) from None


AT_ALL_TIMES = tuple(kind for kind in READ_LIVE.values() if not kind.is_on_demand)


def read(server: ApiServer, kinds: Sequence[ResourceKind] = AT_ALL_TIMES, *, namespace: str = "") -> Iterator[Event]:
    """Yield pages of all kinds as they arrive; pages of one list are in order. Raises `InputError`, and then sends no
    more requests.

    If `namespace` is given, only its objects of namespaced kinds are read. Kinds that the server does not serve are not
    requested.
    """
    discovery = discover(server)
    served = {kind.key: discovery.versions(kind) for kind in kinds}
    yield from (Unread(kind=kind.key, forbidden=False) for kind in kinds if not served[kind.key])
    there = [replace(kind, versions=served[kind.key]) for kind in kinds if served[kind.key]]
    reading = _ListReader(server, there, namespace)
    try:
        yield from reading.events()
    finally:
        server.stopped.set()


class _ListReader:
    """Threads that read lists, and a queue from them to the decoding thread."""

    def __init__(self, server: ApiServer, kinds: Sequence[ResourceKind], namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._waiting = deque(sorted(kinds, key=lambda kind: not kind.is_numerous))
        self._left = len(kinds)
        self._events: queue.Queue[Event | _End | Exception] = queue.Queue(_WAITING)
        self._asked: dict[int, tuple[ResourceKind, float]] = {}
        """The kind that a thread requests, and the start time, by thread."""

    def events(self) -> Iterator[Event]:
        for _ in range(min(_THREADS, self._left)):
            threading.Thread(target=self._work, daemon=True).start()
        while self._left:
            try:
                event = self._events.get(timeout=_TICK)
            except queue.Empty:
                self._check_clock()
                yield Tick()
                continue
            if isinstance(event, Exception):
                raise event
            if isinstance(event, _End):
                self._left -= 1
            else:
                yield event

    def _check_clock(self) -> None:
        """Check all requests for lateness: no timeout covers some steps, such as a DNS lookup."""
        now = time.monotonic()
        for kind, since in list(self._asked.values()):
            if now - since > self._server.timeout + _GRACE:
                raise self._server.late(Place(source=self._server.url, object=kind.resource))

    def _work(self) -> None:
        try:
            while self._waiting and not self._server.stopped.is_set():
                try:
                    kind = self._waiting.popleft()
                except IndexError:
                    return
                self._take(kind)
                self._put(_End())
        except Exception as error:  # noqa: BLE001 - raised again where the events are read
            self._put(error)

    def _take(self, kind: ResourceKind) -> None:
        me = threading.get_ident()
        self._asked[me] = (kind, time.monotonic())
        try:
            for event in pages(self._server, kind, self._namespace):
                del self._asked[me]
                self._put(event)
                self._asked[me] = (kind, time.monotonic())
        except RefusedError as refused:
            if refused.status not in (403, 404):
                raise
            if refused.status == 404 and not kind.group:
                place = Place(source=self._server.url)
                raise InputError(
                    f"not an API server: it knows no {kind.resource}", place=place, hint=_ADDRESS
                ) from None
            self._put(Unread(kind=kind.key, forbidden=refused.status == 403))
        finally:
            self._asked.pop(me, None)

    def _put(self, event: Event | _End | Exception) -> None:
        while not self._server.stopped.is_set():
            try:
                self._events.put(event, timeout=_TICK)
                return
            except queue.Full:
                continue


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A list was read to its end."""
