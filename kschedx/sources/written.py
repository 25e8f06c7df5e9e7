"""Manifests as people write them: files, folders and standard input, as plain dicts that know their lines."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.sources import files
from kschedx.sources.dumps import Dump, LeftOut, See
from kschedx.sources.field_lines import with_line

_DECODER = msgspec.json.Decoder(list[dict[str, object]])
_GENERATED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("kustomization.yaml", "kustomization.yml", "Kustomization"),
        "a kustomization, whose manifests are made of several files",
        "kubectl kustomize {path} | kschedx why -",
    ),
    (("Chart.yaml",), "a Helm chart, whose manifests are made of templates", "helm template {path} | kschedx why -"),
)
"""Files by which a folder is recognized that holds no manifests yet; what it is, and what makes them."""


class Document(Struct, frozen=True, kw_only=True):
    """One object, as it is written."""

    value: dict[str, object]
    place: Place
    text: bytes | None = None
    """All of standard input, which cannot be read again for the line of a field."""

    def fault(self, error: InputError, *, below: str = "") -> InputError:
        """The error with the line of its field; `below` is where its field paths begin in the object."""
        return with_line(error, self.place, self.text, below=below)


def read_written(paths: Sequence[str]) -> tuple[list[Document], list[LeftOut]]:
    """The objects in files, folders and standard input ("-"), in their order, and the files of folders that hold none,
    such as a chart's values. Raises `InputError`."""
    left_out: list[LeftOut] = []

    def see(found: Dump | LeftOut) -> None:
        if isinstance(found, LeftOut):
            left_out.append(found)

    return [document for path in paths for document in _documents(path, see)], left_out


def _documents(path: str, see: See) -> list[Document]:
    for names, what, command in _GENERATED:
        if any((Path(path) / name).is_file() for name in names):
            raise InputError(f"is {what}", place=Place(source=path), hint=command.format(path=path))
    text = None
    if path == files.STDIN:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed", place=Place(source=path))
        text = sys.stdin.buffer.read()
    found = []
    for batch in files.read(path, see) if text is None else files.read_stream(io.BytesIO(text), path):
        try:
            objects = batch.decode(_DECODER)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        found += [
            Document(value=value, place=batch.origin.place(index), text=text) for index, value in enumerate(objects)
        ]
    return found
