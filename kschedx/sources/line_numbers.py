"""Line numbers of an object's fields, determined when an error needs one."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import FIELD_PART, InputError, Place
from kschedx.kube.escaping import shell_command
from kschedx.kube.scalars import json_number, parse_int64
from kschedx.sources import files
from kschedx.sources.dumps import Dump, LeftOut, See
from kschedx.sources.yaml import split

if TYPE_CHECKING:
    from yaml import Node

_MAX_TEXT = 8 << 20  # bytes of a text that is read again for a line


def with_line(error: InputError, place: Place, text: bytes | None = None, *, below: str = "") -> InputError:
    """Return an error at an object's `place` with the line of its field, if that can be found.

    `text` is the input of the object; without it, the place's file is read. `below` is the path of a pod template in
    the object: errors about the pod are then reported with the object's field.
    """
    placed_error = error
    if error.place.field and error.place.line is None:
        line = line_of(error.place.field, place, text, below=below)
        if line is not None:
            placed_error = error.at(Place(line=line))
            placed_error.others = error.others
    if error.place.field.startswith("spec") and not error.place.source:
        placed_error = placed_error.at(Place(field=below))
    others = tuple(with_line(other, place, text, below=below) for other in error.others)
    parts = tuple(with_line(part, place, text, below=below) for part in error.parts)
    placed_error = placed_error.at(place)
    placed_error.others, placed_error.parts = others, parts
    return placed_error


def locate(error: InputError) -> InputError:
    """Return the error with the line of its field instead of that of its object, if a file has both."""
    place = error.place
    if not place.field or place.line is None:
        return error
    line = line_of(place.field, place, is_sure=True)
    placed_error = copy(error)
    placed_error.place = place if line is None else replace(place, line=line)
    return placed_error


def line_of(
    field: str, place: Place, text: bytes | None = None, *, below: str = "", is_sure: bool = False
) -> int | None:
    """Return the line of the deepest existing part of the field's path, which may lead into a block scalar in a
    ConfigMap.

    With `is_sure`, return None if no object begins on the place's line.
    """
    import yaml

    if place.document is None:
        return None
    try:
        whole = _text(place.source) if text is None else text
        document = next((line for line in split(whole, source=place.source) if line.number == place.document), None)
        if document is None:
            return None
        root = _compose(document.text.decode())
    except (OSError, UnicodeDecodeError, InputError, yaml.YAMLError, RecursionError):
        return None
    steps = [name or index for name, index in FIELD_PART.findall(f"{below}.{field}" if below else field)]
    field_node = _object(root, place, document.line, is_sure=is_sure)
    line, first = None, document.line
    for step in steps:
        if isinstance(field_node, yaml.ScalarNode) and field_node.style == "|":
            first += field_node.start_mark.line + 1
            try:
                field_node = _compose(field_node.value)
            except (yaml.YAMLError, RecursionError):
                break
        key, field_node = _below(field_node, step)
        if field_node is None:
            break
        line = first + key
    return line


def _compose(text: str) -> Node | None:
    import yaml

    root: Node | None = yaml.compose(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)
    return root


def _text(source: str) -> bytes:
    path = Path(source)
    return path.read_bytes() if path.is_file() and path.stat().st_size <= _MAX_TEXT else b""


def _object(root: Node | None, place: Place, first_line: int, *, is_sure: bool) -> Node | None:
    """Return the document, or the item of a list that begins on the place's line."""
    from yaml import MappingNode, SequenceNode

    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        if node is None or (isinstance(node, MappingNode) and node.start_mark.line + first_line == place.line):
            return node
        if isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            waiting += [value for key, value in node.value if key.value == "items"]
    return None if is_sure else root


def _below(node: Node | None, step: str) -> tuple[int, Node | None]:
    """Return the line and the node of the value at a key or index."""
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line, value
    elif isinstance(node, SequenceNode) and (index := parse_int64(step)) is not None and 0 <= index < len(node.value):
        value = node.value[index]
        return value.start_mark.line, value
    return 0, None


# Manifests of users: files, folders, and standard input, as plain dicts with their lines.

_DECODER = msgspec.json.Decoder(list[dict[str, object]], float_hook=lambda text: json_number(float(text)))
_MOST_MANIFESTS = 10_000
"""Objects of a file or folder, which are explained or applied one after the other; a dump of a cluster has more."""
_GENERATED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("kustomization.yaml", "kustomization.yml", "Kustomization"),
        "a kustomization, whose manifests are rendered from several files",
        "kubectl kustomize {} | kschedx why -",
    ),
    (
        ("Chart.yaml",),
        "a Helm chart, whose manifests are rendered from templates",
        "helm template {} | kschedx why -",
    ),
)
"""Files that mark a folder without rendered manifests; what the folder is, and the command that renders it."""


class ManifestDocument(Struct, frozen=True, kw_only=True):
    """An object in the form of its manifest."""

    value: dict[str, object]
    place: Place
    text: bytes | None = None  # the whole standard input, which cannot be read again to find a line

    def fault(self, error: InputError, *, below: str = "") -> InputError:
        """Return the error with the line of its field; `below` is the path in the object at which field paths begin."""
        return with_line(error, self.place, self.text, below=below)


def read_manifest_documents(paths: Sequence[str]) -> tuple[list[ManifestDocument], list[LeftOut]]:
    """Return the objects in files, folders, and standard input ("-"), in order, and files of folders without objects,
    such as a chart's values. Raises `InputError`."""
    left_out: list[LeftOut] = []

    def see(dump: Dump | LeftOut) -> None:
        if isinstance(dump, LeftOut):
            left_out.append(dump)

    return [document for path in paths for document in _documents(path, see)], left_out


def _documents(path: str, see: See) -> list[ManifestDocument]:
    entries = {entry.name for entry in Path(path).iterdir()} if Path(path).is_dir() else set()
    for names, what, command in _GENERATED:
        if not entries.isdisjoint(names):
            raise InputError(f"is {what}", source=path, hint=shell_command(command, Path(path)))
    text = files.standard_input().read() if path == files.STDIN else None
    documents = []
    for batch in files.read(path, see) if text is None else files.read_stream(io.BytesIO(text), path):
        try:
            objects = batch.decode(_DECODER)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        places = batch.places(len(objects))
        _require_unique_keys(batch.items, places)
        documents += [
            ManifestDocument(value=value, place=place, text=text) for value, place in zip(objects, places, strict=True)
        ]
        if len(documents) > _MOST_MANIFESTS:
            message = f"more than {_MOST_MANIFESTS:,} objects, too many for manifests"
            raise InputError(message, source=path, hint="pass a dump of a cluster with -s")
    return documents


def _require_unique_keys(items: bytes | memoryview, places: Sequence[Place]) -> None:
    """Raise `InputError` for an object of a JSON manifest with a key twice, as for YAML. msgspec takes the last one."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        read = dict(pairs)
        if len(read) < len(pairs):
            keys = [key for key, _ in pairs]
            raise InputError(f'key "{next(key for key in keys if keys.count(key) > 1)}" is written twice')
        return read

    for raw, place in zip(msgspec.json.decode(items, type=list[msgspec.Raw]), places, strict=True):
        try:
            json.loads(bytes(raw), object_pairs_hook=unique, parse_int=str, parse_float=str)
        except InputError as error:
            raise error.at(place) from None
        except RecursionError:
            raise InputError("nested too deeply", place=place) from None
