"""What a snapshot file says of itself: annotations on its List.

`kschedx snapshot` writes them; a List of anyone else has none. They are data as everything else in a file: what is not
understood is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from kschedx.errors import InputError, Place

DOMAIN = "kschedx.dev/"
FORMAT = "v1"

_SNAPSHOT = f"{DOMAIN}snapshot"
_TAKEN = f"{DOMAIN}taken"
_SOURCE = f"{DOMAIN}source"
_SERVER_VERSION = f"{DOMAIN}server-version"
_KINDS = f"{DOMAIN}kinds"
_MISSING = f"{DOMAIN}missing"
_NAMESPACES = f"{DOMAIN}namespaces"
_FORMATS = f"{DOMAIN}formats"
_LACKS = f"{DOMAIN}lacks"
_ANONYMIZED = f"{DOMAIN}anonymized"


class SnapshotHeader(Struct, frozen=True, kw_only=True):
    """Every part may be unknown, and is then empty."""

    taken: str = ""
    """When the cluster was read, in RFC 3339."""
    source: str = ""
    """Where from, as a person would call it."""
    server_version: str = ""
    """The API server's release (`v1.36.2`)."""
    complete: Mapping[str, int] = {}
    """Kinds of which every object was read, with their number."""
    missing: Mapping[str, str] = {}
    """Kinds that could not be read, with the cause."""
    namespaces: tuple[str, ...] = ()
    """The only namespaces whose objects are there; empty for all."""
    formats: tuple[str, ...] = ()
    """The dumps of other tools that it was made from."""
    lacks: Mapping[str, str] = {}
    """Kinds of which such a dump does not hold all objects, with those that it lacks."""
    anonymized: bool = False

    def annotations(self) -> dict[str, str]:
        """As they are written, without what is unknown."""
        texts = {
            _SNAPSHOT: FORMAT,
            _TAKEN: self.taken,
            _SOURCE: self.source,
            _SERVER_VERSION: self.server_version,
            _KINDS: _pairs({kind: str(count) for kind, count in self.complete.items()}),
            _MISSING: _pairs(self.missing),
            _NAMESPACES: ",".join(self.namespaces),
            _FORMATS: ",".join(self.formats),
            _LACKS: msgspec.json.encode(self.lacks).decode() if self.lacks else "",
            _ANONYMIZED: "true" if self.anonymized else "",
        }
        return {key: text for key, text in texts.items() if text}


def of_annotations(annotations: Mapping[str, str]) -> SnapshotHeader | None:
    """What annotations say; None where they are no header. Raises `InputError` for the header of a later format."""
    version = annotations.get(_SNAPSHOT)
    if version is None:
        return None
    if version != FORMAT:
        raise InputError(
            f'a snapshot of the format "{version}", this kschedx reads "{FORMAT}"',
            place=Place(field=f"metadata.annotations[{_SNAPSHOT}]"),
            hint="a newer kschedx wrote it",
        )
    counts = _from_pairs(annotations.get(_KINDS, ""))
    return SnapshotHeader(
        taken=annotations.get(_TAKEN, ""),
        source=annotations.get(_SOURCE, ""),
        server_version=annotations.get(_SERVER_VERSION, ""),
        complete={kind: int(count) for kind, count in counts.items() if count.isascii() and count.isdecimal()},
        missing=_from_pairs(annotations.get(_MISSING, "")),
        namespaces=_listed(annotations.get(_NAMESPACES, "")),
        formats=_listed(annotations.get(_FORMATS, "")),
        lacks=_texts(annotations.get(_LACKS, "")),
        anonymized=annotations.get(_ANONYMIZED) == "true",
    )


class _Metadata(Struct):
    annotations: dict[str, str] | None = None


def of_list(metadata: bytes | Raw) -> SnapshotHeader | None:
    """The header in the JSON of a List's metadata. Raises as `of_annotations` does."""
    if DOMAIN.encode() not in bytes(metadata):
        return None
    try:
        return of_annotations(msgspec.json.decode(metadata, type=_Metadata).annotations or {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def merged(headers: Sequence[SnapshotHeader]) -> SnapshotHeader:
    """What several snapshots say together: of the time the oldest; missing is only what none of them holds."""
    if not headers:
        return SnapshotHeader()
    complete = {kind: count for header in headers for kind, count in header.complete.items()}
    missing = {kind: cause for header in headers for kind, cause in header.missing.items() if kind not in complete}
    versions = {header.server_version for header in headers}
    partial = all(header.namespaces for header in headers)
    return SnapshotHeader(
        taken=min((header.taken for header in headers if header.taken), default=""),
        source=", ".join(dict.fromkeys(header.source for header in headers if header.source)),
        server_version=versions.pop() if len(versions) == 1 else "",
        complete=dict(sorted(complete.items())),
        missing=dict(sorted(missing.items())),
        namespaces=tuple(sorted({name for header in headers for name in header.namespaces})) if partial else (),
        formats=tuple(dict.fromkeys(name for header in headers for name in header.formats)),
        lacks={kind: what for header in headers for kind, what in header.lacks.items() if kind not in complete},
        anonymized=any(header.anonymized for header in headers),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _texts(text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}


def _pairs(values: Mapping[str, str]) -> str:
    """`Node=3,Pod=12`."""
    return ",".join(f"{key}={value}" for key, value in sorted(values.items()))


def _from_pairs(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(","))
    return {key: value for key, equals, value in pairs if key and equals}
