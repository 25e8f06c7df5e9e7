"""Lists as `kubectl cluster-info dump` of 1.4 to 1.10 wrote them: Kubernetes' types in memory, not those of its API.

Fields have their names in Go (`Spec`, `PodCIDR`, `DNSPolicy`), those of metadata are beside `Spec`, the host's
namespaces are in a pod's `SecurityContext`, and neither the list nor its `Items` say their kind: `selfLink` tells it.
Upstream: pkg/apis/core/types.go, and printers.JSONPrinter of these releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgspec

from kschedx.api.kinds import KINDS

Json = dict[str, object]

_LINK = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/[^/]+)?/(?P<plural>[^/]+)")
_KIND_OF = {"events": "Event", **{kind.plural: kind.name for kind in KINDS.values()}}
_TEXTS = frozenset(
    {"NodeSelector", "Limits", "Requests", "Capacity", "Allocatable", "Selector", "LabelSelector", "Options"}
)
"""Fields whose keys are somebody's own, or that have the names of the API."""
_OF_THE_HOST = ("HostNetwork", "HostPID", "HostIPC")
_LEADING_CAPITALS = re.compile(r"[A-Z]+")


def versioned(document: bytes | memoryview) -> bytes | None:
    """The list as an API server would write it; None for what is no such list."""
    try:
        found = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # told by who reads it as something else
    if not isinstance(found, dict) or "Items" not in found:
        return None
    items, link = found["Items"] or [], _LINK.fullmatch(str(found.get("selfLink") or ""))
    kind = _KIND_OF.get(link["plural"]) if link else None
    if link is None or kind is None or not isinstance(items, list):
        return None
    head = {"apiVersion": f"{link['group']}/{link['version']}" if link["group"] else link["version"], "kind": kind}
    objects = [{**head, **_object(item)} for item in items if isinstance(item, dict)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})


def _object(value: Mapping[str, object]) -> Json:
    """An object, or a template: what is not capitalized is metadata."""
    metadata = {key: item for key, item in value.items() if key[:1].islower() and key not in ("kind", "apiVersion")}
    rest = {key: item for key, item in value.items() if key[:1].isupper()}
    return {"metadata": metadata, **_fields(rest)}


def _fields(value: Mapping[str, object]) -> Json:
    found: Json = {}
    for key, item in value.items():
        if item is None:
            continue
        if key == "SecurityContext" and isinstance(item, dict):
            found |= {_name(flag): True for flag in _OF_THE_HOST if item.get(flag)}
        found[_name(key)] = item if key in _TEXTS else _value(item, is_template=key == "Template")
    return found


def _value(value: object, *, is_template: bool = False) -> object:
    if isinstance(value, dict):
        fields = cast("Json", value)
        return _object(fields) if is_template else _fields(fields)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def _name(key: str) -> str:
    """`podCIDR`, `dnsPolicy`, `nfs`."""
    match = _LEADING_CAPITALS.match(key)
    if match is None:
        return key
    end = match.end()
    size = end if end in (1, len(key)) else end - 1
    return key[:size].lower() + key[size:]
