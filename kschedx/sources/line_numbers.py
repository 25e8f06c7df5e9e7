"""The line on which a field of an object stands, looked up when an error needs it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.sources import files
from kschedx.sources.dumps import Dump, LeftOut, See
from kschedx.sources.yaml import split

if TYPE_CHECKING:
    from yaml import Node

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
MAX_TEXT = 8 << 20
"""Bytes of a text that is worth reading again for a line."""


def with_line(error: InputError, place: Place, text: bytes | None = None, *, below: str = "") -> InputError:
    """The error at `place`, which is an object's, with the line of its field where that can be found.

    `text` is what the object was read from; without it, the place's file is read. `below` is where in the object the
    template of a pod is, for errors about the pod: they are reported with the field of the object.
    """
    found = error
    if error.place.field and error.place.line is None:
        line = line_of(error.place.field, place, text, below=below)
        if line is not None:
            found = error.at(Place(line=line))
            found.others = error.others
    if error.place.field.startswith("spec") and not error.place.source:
        found = found.at(Place(field=below))
    others = tuple(with_line(other, place, text, below=below) for other in error.others)
    parts = tuple(with_line(part, place, text, below=below) for part in error.parts)
    found = found.at(place)
    found.others, found.parts = others, parts
    return found


def located(error: InputError) -> InputError:
    """The same error with the line of its field in place of its object's, where a file has both."""
    place = error.place
    if not place.field or place.line is None:
        return error
    line = line_of(place.field, place, is_sure=True)
    found = copy(error)
    found.place = place if line is None else replace(place, line=line)
    return found


def line_of(
    field: str, place: Place, text: bytes | None = None, *, below: str = "", is_sure: bool = False
) -> int | None:
    """The line of the deepest part of the field's path that is written, which may lead into the text of a ConfigMap's
    key, where that is written as a block.

    With `is_sure`, None where no object begins on the place's line.
    """
    import yaml

    if place.document is None:
        return None
    try:
        whole = _text(place.source) if text is None else text
        document = next((one for one in split(whole, source=place.source) if one.number == place.document), None)
        if document is None:
            return None
        root = _composed(document.text.decode())
    except (OSError, UnicodeDecodeError, InputError, yaml.YAMLError, RecursionError):
        return None
    steps = [name or index for name, index in _STEP.findall(f"{below}.{field}" if below else field)]
    found = _object(root, place, document.line, is_sure=is_sure)
    line, first = None, document.line
    for step in steps:
        if isinstance(found, yaml.ScalarNode) and found.style == "|":
            first += found.start_mark.line + 1
            try:
                found = _composed(found.value)
            except (yaml.YAMLError, RecursionError):
                break
        key, found = _below(found, step)
        if found is None:
            break
        line = first + key
    return line


def _composed(text: str) -> Node | None:
    import yaml

    root: Node | None = yaml.compose(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)
    return root


def _text(source: str) -> bytes:
    path = Path(source)
    return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_TEXT else b""


def _object(root: Node | None, place: Place, first_line: int, *, is_sure: bool) -> Node | None:
    """The document, or the item of a list that begins on the place's line."""
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
    """The line of what is under a key or index, and it."""
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line, value
    elif isinstance(node, SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        value = node.value[int(step)]
        return value.start_mark.line, value
    return 0, None


# Manifests as people write them: files, folders and standard input, as plain dicts that know their lines.

_DECODER = msgspec.json.Decoder(list[dict[str, object]])
_GENERATED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("kustomization.yaml", "kustomization.yml", "Kustomization"),
        "a kustomization, whose manifests are rendered from several files",
        "kubectl kustomize {path} | kschedx why -",
    ),
    (
        ("Chart.yaml",),
        "a Helm chart, whose manifests are rendered from templates",
        "helm template {path} | kschedx why -",
    ),
)
"""Files by which a folder is recognized that holds no manifests yet; what it is, and what makes them."""


class ManifestDocument(Struct, frozen=True, kw_only=True):
    """One object, as it is written."""

    value: dict[str, object]
    place: Place
    text: bytes | None = None
    """All of standard input, which cannot be read again for the line of a field."""

    def fault(self, error: InputError, *, below: str = "") -> InputError:
        """The error with the line of its field; `below` is where its field paths begin in the object."""
        return with_line(error, self.place, self.text, below=below)


def read_manifest_documents(paths: Sequence[str]) -> tuple[list[ManifestDocument], list[LeftOut]]:
    """The objects in files, folders and standard input ("-"), in their order, and the files of folders that hold none,
    such as a chart's values. Raises `InputError`."""
    left_out: list[LeftOut] = []

    def see(found: Dump | LeftOut) -> None:
        if isinstance(found, LeftOut):
            left_out.append(found)

    return [document for path in paths for document in _documents(path, see)], left_out


def _documents(path: str, see: See) -> list[ManifestDocument]:
    for names, what, command in _GENERATED:
        if any((Path(path) / name).is_file() for name in names):
            raise InputError(f"is {what}", place=Place(source=path), hint=command.format(path=path))
    text = files.standard_input().read() if path == files.STDIN else None
    found = []
    for batch in files.read(path, see) if text is None else files.read_stream(io.BytesIO(text), path):
        try:
            objects = batch.decode(_DECODER)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        found += [
            ManifestDocument(value=value, place=batch.origin.place(index), text=text)
            for index, value in enumerate(objects)
        ]
    return found
