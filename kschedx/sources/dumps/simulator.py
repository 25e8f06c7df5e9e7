"""Exports of kube-scheduler-simulator: one document with an array per kind, whose items do not state their kind.

Its API writes JSON, its web page YAML. Upstream: sigs.k8s.io/kube-scheduler-simulator, simulator/snapshot/snapshot.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from kschedx.errors import InputError, Place
from kschedx.sources.dumps import Dump, all_but, lack, listed_kind
from kschedx.sources.lists import Batch, flatten

_LISTS: Mapping[str, str] = {
    "pods": "v1 PodList",
    "nodes": "v1 NodeList",
    "pvs": "v1 PersistentVolumeList",
    "pvcs": "v1 PersistentVolumeClaimList",
    "storageClasses": "storage.k8s.io/v1 StorageClassList",
    "priorityClasses": "scheduling.k8s.io/v1 PriorityClassList",
    "namespaces": "v1 NamespaceList",
}
_CONFIG = "schedulerConfig"
_KEY = rb"(?:pods|nodes|pvs|pvcs|storageClasses|priorityClasses|schedulerConfig|namespaces)"
_HEAD = re.compile(rb'(?:\s*\{\s*"' + _KEY + rb'"\s*:|(?:---\s*\n)?' + _KEY + rb":(?:\s|$))")
_DOCUMENT = msgspec.json.Decoder(dict[str, Raw])


class _Origin(Struct, frozen=True, kw_only=True):
    """The places of the items of one array."""

    source: str
    key: str

    def place(self, index: int) -> Place:
        return Place(source=f"{self.source}: {self.key}[{index}]")


class Export(Struct, frozen=True, kw_only=True):
    """An export, with each of its arrays in JSON."""

    source: str
    arrays: Mapping[str, Raw]

    def batches(self) -> Iterator[Batch]:
        """Yield the objects of each array. Raises InputError for a value that is no array of objects."""
        for key, kind in _LISTS.items():
            listed = bytes(self.arrays.get(key, b"null"))
            if listed != b"null":
                try:
                    items = flatten(as_list(kind, listed)).items
                except InputError as error:
                    raise InputError(error.message, place=Place(source=f"{self.source}: {key}")) from None
                yield Batch(items=items, origin=_Origin(source=self.source, key=key))

    def dump(self) -> Dump:
        """Return the description of the export."""
        # the simulator omits system namespaces and classes
        lacks = (lack("Namespace", "the namespaces default and kube-*"), *all_but(map(listed_kind, _LISTS.values())))
        has_config = bytes(self.arrays.get(_CONFIG, b"null")) != b"null"
        holds = ("a KubeSchedulerConfiguration",) if has_config else ()
        return Dump(format="kube-scheduler-simulator export", place=self.source, lacks=lacks, holds=holds)


def may_be_export(head: bytes) -> bool:
    """Return whether the text begins with one of the arrays, as no Kubernetes object does."""
    return _HEAD.match(head) is not None


def export(text: bytes, source: str) -> Export | None:
    """Return the export in a text; None if it is something else."""
    try:
        document = _DOCUMENT.decode(text if text.lstrip()[:1] == b"{" else _from_yaml(text, source))
    except (InputError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # reported by the reader of the actual format
    is_one = {"pods", "nodes"} <= set(document) <= {*_LISTS, _CONFIG}
    return Export(source=source, arrays=document) if is_one else None


def as_list(kind: str, items: bytes) -> bytes:
    """Return a JSON array as a list object; `kind` is "apiVersion kind"."""
    version, _, name = kind.partition(" ")
    return b'{"apiVersion": "%s", "kind": "%s", "items": %s}' % (version.encode(), name.encode(), items)


def _from_yaml(text: bytes, source: str) -> bytes:
    from kschedx.sources.yaml import load, split

    documents = [value for part in split(text, source=source) if (value := load(part, source=source))]
    return msgspec.json.encode(documents[0].value if len(documents) == 1 else None)
