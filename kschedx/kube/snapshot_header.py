"""The header of a snapshot file: annotations on its List.

`kschedx snapshot` writes them; other Lists have none. The header is untrusted data: unknown parts are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from kschedx.errors import InputError, Place

_DOMAIN = "kschedx.dev/"
_FORMAT = "v1"

_SNAPSHOT = f"{_DOMAIN}snapshot"
_TAKEN = f"{_DOMAIN}taken"
_SOURCE = f"{_DOMAIN}source"
_SERVER_VERSION = f"{_DOMAIN}server-version"
_KINDS = f"{_DOMAIN}kinds"
_MISSING = f"{_DOMAIN}missing"
_NAMESPACES = f"{_DOMAIN}namespaces"
_FORMATS = f"{_DOMAIN}formats"
_LACKS = f"{_DOMAIN}lacks"
_SCHEDULER_CONFIG = f"{_DOMAIN}scheduler-config"
_ANONYMIZED = f"{_DOMAIN}anonymized"


class SnapshotHeader(Struct, frozen=True, kw_only=True):
    """The header. Unknown parts are empty."""

    taken: str = ""  # when the cluster was read, as RFC 3339
    source: str = ""
    server_version: str = ""  # `v1.36.2`
    complete: Mapping[str, int] = {}  # kinds of which all objects were read, with their number
    missing: Mapping[str, str] = {}  # kinds that could not be read, with the reason
    namespaces: tuple[str, ...] = ()  # empty for all
    formats: tuple[str, ...] = ()  # the formats of other tools' dumps that it was made from
    lacks: Mapping[str, str] = {}  # kinds of which such a dump lacks objects, with the missing ones
    scheduler_config: str = ""  # the file that the cluster's kube-scheduler gets with --config; empty if unknown
    anonymized: bool = False

    def annotations(self) -> dict[str, str]:
        """Return the annotations to write, without unknown parts."""
        texts = {
            _SNAPSHOT: _FORMAT,
            _TAKEN: self.taken,
            _SOURCE: self.source,
            _SERVER_VERSION: self.server_version,
            _KINDS: _pairs({kind: str(count) for kind, count in self.complete.items()}),
            _MISSING: _pairs(self.missing),
            _NAMESPACES: ",".join(self.namespaces),
            _FORMATS: ",".join(self.formats),
            _LACKS: msgspec.json.encode(self.lacks).decode() if self.lacks else "",
            _SCHEDULER_CONFIG: self.scheduler_config,
            _ANONYMIZED: "true" if self.anonymized else "",
        }
        return {key: text for key, text in texts.items() if text}


def parse_annotations(annotations: Mapping[str, str]) -> SnapshotHeader | None:
    """Parse annotations; None if they are not a header. Raises `InputError` for the header of a later format."""
    version = annotations.get(_SNAPSHOT)
    if version is None:
        return None
    if version != _FORMAT:
        raise InputError(
            f'a snapshot of the format "{version}", this kschedx reads "{_FORMAT}"',
            place=Place(field=f"metadata.annotations[{_SNAPSHOT}]"),
            hint="a newer kschedx wrote it",
        )
    counts = _parse_pairs(annotations.get(_KINDS, ""))
    return SnapshotHeader(
        taken=annotations.get(_TAKEN, ""),
        source=annotations.get(_SOURCE, ""),
        server_version=annotations.get(_SERVER_VERSION, ""),
        complete={kind: int(count) for kind, count in counts.items() if count.isascii() and count.isdecimal()},
        missing=_parse_pairs(annotations.get(_MISSING, "")),
        namespaces=_split_list(annotations.get(_NAMESPACES, "")),
        formats=_split_list(annotations.get(_FORMATS, "")),
        lacks=_texts(annotations.get(_LACKS, "")),
        scheduler_config=annotations.get(_SCHEDULER_CONFIG, ""),
        anonymized=annotations.get(_ANONYMIZED) == "true",
    )


class _Metadata(Struct):
    annotations: dict[str, str] | None = None


def parse_list_header(metadata: bytes | Raw) -> SnapshotHeader | None:
    """Parse the header in a List's metadata. Raises as `parse_annotations`."""
    if _DOMAIN.encode() not in bytes(metadata):
        return None
    try:
        return parse_annotations(msgspec.json.decode(metadata, type=_Metadata).annotations or {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def merge_headers(headers: Sequence[SnapshotHeader]) -> SnapshotHeader:
    """Merge the headers of several snapshots: the oldest time counts, and only kinds that all lack are missing."""
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
        scheduler_config=next((header.scheduler_config for header in headers if header.scheduler_config), ""),
        anonymized=any(header.anonymized for header in headers),
    )


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _texts(text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}


def _pairs(values: Mapping[str, str]) -> str:
    """Format as `Node=3,Pod=12`."""
    return ",".join(f"{key}={value}" for key, value in sorted(values.items()))


def _parse_pairs(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(","))
    return {key: value for key, equals, value in pairs if key and equals}
