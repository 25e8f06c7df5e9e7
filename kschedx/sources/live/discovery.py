"""Which kinds an API server serves, and in which versions: one request, so that no list is asked for in vain.

Servers of 1.26 and later answer with every resource of every group (APIGroupDiscoveryList), older ones with the groups
and their versions (APIGroupList). Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from kschedx.api.kinds import Kind
from kschedx.errors import Place
from kschedx.sources.live.client import GRACE, ApiServer, RefusedError, within

PATH = "/apis"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_ACCEPT = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"))
_KEPT_TO_ITSELF = (403, 404, 406)


class _Named(Struct, frozen=True):
    name: str = ""


class _Resource(Struct, frozen=True):
    resource: str = ""


class _Version(Struct, frozen=True):
    version: str = ""
    resources: tuple[_Resource, ...] | None = None
    freshness: str = ""


class _Group(Struct, frozen=True):
    metadata: _Named = _Named()
    name: str = ""
    versions: tuple[_Version, ...] = ()


class _Groups(Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] = ()
    groups: tuple[_Group, ...] = ()


_DECODER = msgspec.json.Decoder(_Groups)


class Discovery(Struct, frozen=True, kw_only=True):
    """What a server says that it serves."""

    groups: Mapping[str, Mapping[str, frozenset[str] | None]] | None = None
    """Group, version and plurals; None for plurals that are not told, or for a server that tells nothing at all."""

    def versions(self, kind: Kind) -> tuple[str, ...]:
        """In which a kind may be asked for, the first at the front; empty where it is not served."""
        if self.groups is None or not kind.group:
            return kind.versions
        served = self.groups.get(kind.group, {})
        return tuple(
            version
            for version in kind.versions
            if version in served and ((plurals := served[version]) is None or kind.plural in plurals)
        )


def discover(server: ApiServer) -> Discovery:
    """Ask the server. Raises `InputError` where it does not answer."""
    place = Place(source=server.url, object=PATH)
    try:
        body = within(server.timeout + GRACE, lambda: server.get(PATH, accept=_ACCEPT), lambda: server.late(place))
    except RefusedError as refused:
        if refused.status not in _KEPT_TO_ITSELF:
            raise
        return Discovery()
    try:
        answer = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Discovery()
    if not answer.kind.endswith(("GroupDiscoveryList", "GroupList")):
        return Discovery()
    groups = {
        group.name or group.metadata.name: {one.version: _plurals(one) for one in group.versions}
        for group in (*answer.items, *answer.groups)
    }
    return Discovery(groups=groups)


def _plurals(version: _Version) -> frozenset[str] | None:
    """None where the server does not say, or where what it remembers of another server is old."""
    if version.resources is None or version.freshness == "Stale":
        return None
    return frozenset(one.resource for one in version.resources)
