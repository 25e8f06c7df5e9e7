"""A file that holds something else than objects."""

from __future__ import annotations

from pathlib import Path

from kschedx.errors import InputError, Place
from kschedx.sources import yaml_text


def one_document(path: str) -> object:
    """What a YAML or JSON file holds. Raises `InputError`."""
    place = Place(source=path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", place=place) from None
    found = [yaml_text.load(part, source=path) for part in yaml_text.split(text, source=path)]
    documents = [document.value for document in found if document is not None]
    if len(documents) != 1:
        raise InputError(f"one document is expected, not {len(documents)}", place=place)
    return documents[0]
