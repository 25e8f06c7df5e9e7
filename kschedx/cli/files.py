"""Files with other content than objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kschedx.errors import InputError, Place
from kschedx.sources import yaml as yaml_text
from kschedx.sources.compression import STDOUT, compression_of, write

if TYPE_CHECKING:
    from kschedx.kube.snapshot_header import SnapshotHeader
    from kschedx.snapshot.snapshot import Snapshot

_BEGINNING = 256
"""The bytes of a file that show its format."""


def one_document(path: str) -> object:
    """Return the content of a YAML or JSON file. Raises `InputError`."""
    place = Place(source=path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", place=place) from None
    loaded = [yaml_text.load(part, source=path) for part in yaml_text.split(text, source=path)]
    documents = [document.value for document in loaded if document is not None]
    if len(documents) != 1:
        raise InputError(f"one document is expected, not {len(documents)}", place=place)
    return documents[0]


def begins_with(path: str, pattern: re.Pattern[bytes]) -> bool:
    """Return whether a regular file begins with the pattern; no other file is opened."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return pattern.match(file.read(_BEGINNING)) is not None
    except (OSError, ValueError):
        return False


# Files to which snapshots are written.

FORMATS = (".json", ".yaml", ".yml")


def check_name(option: str, path: str) -> None:
    """Raise `InputError` for a name without the suffix of a known format."""
    if path != STDOUT and not path.removesuffix(compression_of(path)).endswith(FORMATS):
        allowed = "allowed are names in .json or .yaml, with .gz or .zst after it, and -"
        raise InputError(f'{option}: found "{path}", {allowed}')


def write_snapshot(path: str, snapshot: Snapshot) -> None:
    """Write the current state of a cluster, to be loaded again. Raises `InputError`."""
    from msgspec.structs import replace

    from kschedx.export.slim import object_lines

    objects = list(object_lines(snapshot))
    counts = Counter(kind for kind, _ in objects)
    header = snapshot.source.header
    header = replace(header, complete={kind: counts[kind] for kind in header.complete})
    is_json = path == STDOUT or path.removesuffix(compression_of(path)).endswith(".json")
    lines = (line for _, line in objects)
    write(path, json_parts(header, lines) if is_json else yaml_parts(header, lines))


def json_parts(header: SnapshotHeader, objects: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a List with a line for each object, so that it can be read in parts, and compared line by line."""
    from kschedx.kube.escaping import json_escaped_bytes

    yield json_escaped_bytes(msgspec.json.encode(_head(header))[:-1]) + b',"items":[\n'
    for number, item in enumerate(objects):
        yield b",\n" + json_escaped_bytes(item) if number else json_escaped_bytes(item)
    yield b"\n]}\n"


def yaml_parts(header: SnapshotHeader, objects: Iterable[bytes]) -> Iterator[bytes]:
    from kschedx.render.manifests import commented_yaml

    yield commented_yaml(_head(header), {}).encode()
    yield b"items:\n"
    for item in objects:
        yield commented_yaml({"items": [msgspec.json.decode(item)]}, {}).encode().removeprefix(b"items:\n")


def _head(header: SnapshotHeader) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": header.annotations()}}
