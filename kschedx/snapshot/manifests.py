"""Objects as they were read, for the few who need more of them than scheduling does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from kschedx.api.decode import decode

METRICS = frozenset({"NodeMetrics", "PodMetrics"})
"""Kinds of `metrics.k8s.io`, which scheduling does not read."""
KINDS = frozenset({"Pod", "Node"}) | METRICS

R = TypeVar("R", bound=Struct)


class _Metadata(Struct):
    name: str | None = ""
    namespace: str | None = ""


class _Head(Struct, rename="camel"):
    api_version: str | None = ""
    kind: str | None = ""
    metadata: _Metadata | None = None


_HEADS: msgspec.json.Decoder[list[_Head]] = msgspec.json.Decoder(list[_Head])
_RAWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])


class Manifests:
    """Keeps JSON arrays of objects, and looks into them when somebody asks."""

    def __init__(
        self, texts: Sequence[bytes], added: Mapping[tuple[str, str], Mapping[str, object]] | None = None
    ) -> None:
        """`texts` have been read as objects before; `added` is what takes the place of some, by kind and name."""
        self._texts = texts
        self._added = added or {}

    def get(self, kind: str, name: str) -> Mapping[str, object] | None:
        """An object's manifest; `name` is `namespace/name` of a pod."""
        if (kind, name) in self._added:
            return self._added[kind, name]
        raw = self._index.get((kind, name))
        found: dict[str, object] | None = None if raw is None else msgspec.json.decode(raw)
        return found

    def with_pod(self, key: str, manifest: Mapping[str, object]) -> Manifests:
        """The same manifests, and one of a pod that is new, or takes another's place."""
        return Manifests(self._texts, {**self._added, ("Pod", key): manifest})

    def records(self, kind: str, record: type[R]) -> Iterator[tuple[str, R]]:
        """The objects of a kind by `namespace/name`, or by name for nodes and their metrics. Raises `InputError`."""
        for (known, name), raw in self._index.items():
            if known == kind and (known, name) not in self._added:
                yield name, decode(raw, record)
        for (known, name), manifest in self._added.items():
            if known == kind:
                yield name, decode(msgspec.json.encode(manifest), record)

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], Raw]:
        found: dict[tuple[str, str], Raw] = {}
        for text in self._texts:
            for head, raw in zip(_HEADS.decode(text), _RAWS.decode(text), strict=True):
                if head.kind in KINDS and head.metadata is not None and _is_of(head.kind, head.api_version or ""):
                    name = head.metadata.name or ""
                    is_pods = head.kind in ("Pod", "PodMetrics")
                    key = f"{head.metadata.namespace or 'default'}/{name}" if is_pods else name
                    found[head.kind, key] = raw  # a list that was read again has the last word
        return found


def _is_of(kind: str, api_version: str) -> bool:
    return api_version.startswith("metrics.k8s.io/") if kind in METRICS else api_version in ("v1", "")
