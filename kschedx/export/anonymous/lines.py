"""Objects as lines of JSON. A hundred thousand of them may be pods, which have most of their parts in common."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from kschedx.export.anonymous.changes import Change, Json, Names
from kschedx.export.anonymous.fields import POD, change_object

Parts = dict[str, Raw]


class _Pod(Struct, tag_field="kind", tag="Pod", rename="camel"):
    api_version: str = ""
    metadata: Parts | UnsetType = UNSET
    spec: Parts | UnsetType = UNSET
    status: Parts | UnsetType = UNSET


class Lines:
    """Changes lines, and keeps what it has made of lists and maps."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[Change, bytes], Raw] = {}

    def changed(self, line: bytes) -> bytes | None:
        """An object with its names replaced; None for one that scheduling does not read."""
        try:
            pod = _PODS.decode(line)
        except msgspec.ValidationError:
            pod = None
        if pod is None or pod.api_version != "v1":
            found = change_object(msgspec.json.decode(line), self._names)
            return None if found is None else _ENCODER.encode(found)
        parts = {"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}
        changed = {name: self._parts(POD[name].fields, part) for name, part in parts.items() if part is not UNSET}
        return _ENCODER.encode({"apiVersion": "v1", "kind": "Pod", **changed})

    def _parts(self, changes: Mapping[str, Change], parts: Parts) -> Json:
        found: Json = {}
        for name, raw in parts.items():
            change = changes.get(name)
            if change is None:
                continue
            key = change, bytes(raw)
            value: object = self._known.get(key)
            if value is None:
                value = change(msgspec.json.decode(key[1]), self._names)
                if isinstance(value, dict | list):
                    value = self._known[key] = Raw(_ENCODER.encode(value))
            if value is not None:
                found[name] = value
        return found


_ENCODER = msgspec.json.Encoder()
_PODS = msgspec.json.Decoder(_Pod)
