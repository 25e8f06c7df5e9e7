"""Changes as a person writes them: options of a command line, and files that keep a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kschedx.errors import InputError, Place
from kschedx.simulate.changes import Change, Read, change, changes

FROM_FILE = "changes"


def typed_changes(typed: Iterable[tuple[str, str]], read: Read) -> tuple[Change, ...]:
    """From options, by their names, in their order; `read` reads manifests. Raises `InputError`."""
    return tuple(one for name, value in typed for one in _typed(name.replace("_", "-"), value, read))


def _typed(verb: str, value: str, read: Read) -> Iterator[Change]:
    if verb != FROM_FILE:
        yield change(verb, value, read)
        return
    for entries in _lists(value):
        try:
            yield from changes(entries, read)
        except InputError as error:
            raise error.at(Place(source=value)) from None


def _lists(path: str) -> Iterator[list[object]]:
    """The lists in a YAML or JSON file; a JSON text is one of YAML too."""
    from kschedx.sources import yaml_text

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", place=Place(source=path)) from None
    for part in yaml_text.split(text, source=path):
        document = yaml_text.load(part, source=path)
        if document is None:
            continue
        if not isinstance(document.value, list):
            place = Place(source=path, line=document.line)
            raise InputError("expected a list of changes, such as `- scale: deploy/web=10`", place=place)
        yield list(document.value)
