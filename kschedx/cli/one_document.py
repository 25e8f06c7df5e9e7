"""A file that holds something else than objects."""

from __future__ import annotations

import re
from pathlib import Path

from kschedx.errors import InputError, Place
from kschedx.sources import yaml_text

_BEGINNING = 256
"""Bytes of a file that tell what it is."""


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


def begins_with(path: str, pattern: re.Pattern[bytes]) -> bool:
    """Whether a regular file begins so; nothing else is opened."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return pattern.match(file.read(_BEGINNING)) is not None
    except (OSError, ValueError):
        return False
