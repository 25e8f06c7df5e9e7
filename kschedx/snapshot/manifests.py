"""Pods and nodes as they were read, for the few who need more of them than scheduling does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec import Raw, Struct

KINDS = frozenset({"Pod", "Node"})


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

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], Raw]:
        found: dict[tuple[str, str], Raw] = {}
        for text in self._texts:
            for head, raw in zip(_HEADS.decode(text), _RAWS.decode(text), strict=True):
                if head.kind in KINDS and head.api_version in ("v1", "", None) and head.metadata is not None:
                    name = head.metadata.name or ""
                    key = f"{head.metadata.namespace or 'default'}/{name}" if head.kind == "Pod" else name
                    found[head.kind, key] = raw  # a list that was read again has the last word
        return found
