"""Where a snapshot came from, and what may be missing in it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.snapshot_header import SnapshotHeader


class Missing(StrEnum):
    """Why a cluster's objects of a kind are not in a snapshot."""

    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    """The API server does not serve the kind, so there are none."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a snapshot came from."""

    text: str = ""
    """File names, or what else a person would recognize it by."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind to number of objects that were read."""
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """Kinds whose objects could not be read, though the cluster may have some."""
    formats: tuple[str, ...] = ()
    """The dumps of other tools that were recognized, by the names that people know them by."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Kinds of which those dumps do not hold all objects, with those that they lack."""
    server_version: str = ""
    """The API server's release (`v1.36.2`), where one was asked."""
    taken: str = ""
    """When the cluster was read, in RFC 3339, where that is known."""
    complete: frozenset[str] = frozenset()
    """Kinds of which every object is known to be here."""
    namespaces: tuple[str, ...] = ()
    """The only namespaces whose objects are here; empty for all."""
    anonymized: bool = False
    """Names stand for others."""
    left_out: tuple[str, ...] = ()
    """Files among others that hold no Kubernetes objects."""
    is_dump: bool = False
    """An API server has stored its nodes: a kind of which nothing is here may have been left out."""

    def is_complete(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here does not exist; of a kind that is in namespaces, in this one. A dump never tells."""
        if namespace and self.namespaces and namespace not in self.namespaces:
            return False
        return kind in self.complete or self.missing.get(kind) is Missing.ABSENT

    def may_lack(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here may be in the cluster all the same: a dump lacks it, or holds nothing of the kind.

        What may not be listed is told otherwise (`missing`).
        """
        if kind in self.missing or self.is_complete(kind, namespace):
            return False
        return kind in self.lacks or (self.is_dump and not self.kinds.get(kind))

    @property
    def header(self) -> SnapshotHeader:
        """What a file of this snapshot says of itself."""
        return SnapshotHeader(
            taken=self.taken,
            source=self.text,
            server_version=self.server_version,
            complete={kind: self.kinds.get(kind, 0) for kind in sorted(self.complete)},
            missing={kind: cause.value for kind, cause in self.missing.items()},
            namespaces=self.namespaces,
            formats=self.formats,
            lacks=self.lacks,
            anonymized=self.anonymized,
        )

    def with_header(self, header: SnapshotHeader) -> Source:
        """This source as the header of its files tells it; the text stays."""
        causes = {cause.value: cause for cause in Missing}
        return replace(
            self,
            taken=header.taken,
            server_version=header.server_version,
            complete=frozenset(header.complete),
            missing={kind: causes[cause] for kind, cause in header.missing.items() if cause in causes},
            namespaces=header.namespaces,
            formats=header.formats,
            lacks=header.lacks,
            anonymized=header.anonymized,
        )
