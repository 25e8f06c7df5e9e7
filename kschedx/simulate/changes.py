"""Changes to try, in their written form: a verb and its object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from kschedx.errors import InputError, Place, nearest

Manifest = Mapping[str, object]
Read = Callable[[str], list[tuple[dict[str, object], Place]]]
"""Returns the objects of a file or folder with their places."""


MOST_COUNT = 1_000_000
MOST_NODES = 10_000
"""The largest number of nodes or replicas in one change."""


class ChangeVerb(StrEnum):
    """The verb of a change; also the name of the option, and the key in a file of changes."""

    APPLY = "apply"
    SCALE = "scale"
    DRAIN = "drain"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DELETE = "delete"
    ADD_NODES = "add-nodes"
    REMOVE_NODE = "remove-node"
    TAINT = "taint"
    LABEL = "label"
    SET = "set"


class SimulatedChange(Struct, frozen=True, kw_only=True):
    verb: ChangeVerb
    text: str
    """The written text: `deploy/web=10`, `node-1`, a file's name."""
    objects: tuple[tuple[Manifest, Place], ...] = ()
    """The manifests of APPLY, and the node of ADD_NODES if it comes from a file."""

    def __str__(self) -> str:
        return f"{self.verb} {self.text}".rstrip()


def parse_change(verb: str, value: object, read: Read) -> SimulatedChange:
    """Return the change with a verb and its written value. Raises `InputError`."""
    if verb not in list(ChangeVerb):
        raise InputError(
            f'"{verb}" is not a change', hint=nearest(verb, list(ChangeVerb)) or f"allowed: {', '.join(ChangeVerb)}"
        )
    known = ChangeVerb(verb)
    if known is ChangeVerb.APPLY and not isinstance(value, str):
        objects = value if isinstance(value, Sequence) else [value]
        manifests = [item for item in objects if isinstance(item, Mapping)]
        if len(manifests) != len(objects):
            raise InputError(f"{verb}: expected manifests or the name of a file")
        return SimulatedChange(verb=known, text="", objects=tuple((manifest, Place()) for manifest in manifests))
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise InputError(f"{verb}: expected a text, found {type(value).__name__}")
    text = str(value)
    if known is ChangeVerb.APPLY:
        return SimulatedChange(verb=known, text=text, objects=tuple(read(text)))
    if known is ChangeVerb.ADD_NODES:
        model = text.partition("=")[2]
        from_file = model.endswith((".yaml", ".yml", ".json"))
        return SimulatedChange(verb=known, text=text, objects=tuple(read(model)) if from_file else ())
    return SimulatedChange(verb=known, text=text)


def parse_changes(written: Iterable[object], read: Read) -> tuple[SimulatedChange, ...]:
    """Return the changes in a list of maps with one key each: `- scale: deploy/web=10`. Raises `InputError`."""
    changes: list[SimulatedChange] = []
    for number, entry in enumerate(written):
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise InputError("expected a map with one key, such as `scale: deploy/web=10`", place=_entry(number))
        ((verb, value),) = entry.items()
        try:
            values = value if isinstance(value, list) and verb != ChangeVerb.APPLY else [value]
            changes += [parse_change(str(verb), item, read) for item in values]
        except InputError as error:
            raise error.at(_entry(number)) from None
    return tuple(changes)


def _entry(number: int) -> Place:
    return Place(object=f"change {number + 1}")


def divided(text: str, sign: str, allowed: str) -> tuple[str, str]:
    """Return the parts before and after the first `sign`. Raises `InputError` with what is allowed."""
    before, separator, after = text.partition(sign)
    if not separator or not before or not after:
        raise InputError(f'found "{text}", allowed is {allowed}')
    return before, after


def parse_count(text: str, most: int = MOST_COUNT) -> int:
    """Return a number of nodes or replicas. Raises `InputError` for more than `most`."""
    if not re.fullmatch(r"[0-9]+", text):
        raise InputError(f'found "{text}", expected a number')
    if len(text) > 9 or int(text) > most:
        raise InputError(f"found {int(text[:99]):,}, at most {most:,} are simulated")
    return int(text)


# Changes as a user writes them: options of a command line, and files with a list of them.

FROM_FILE = "changes"


def typed_changes(typed: Iterable[tuple[str, str]], read: Read) -> tuple[SimulatedChange, ...]:
    """Return the changes of command-line options, in their order; each pair is an option's name and value. `read` reads
    manifests. Raises `InputError`."""
    return tuple(change for name, value in typed for change in _typed(name.replace("_", "-"), value, read))


def _typed(verb: str, value: str, read: Read) -> Iterator[SimulatedChange]:
    if verb != FROM_FILE:
        yield parse_change(verb, value, read)
        return
    for entries in _lists(value):
        try:
            yield from parse_changes(entries, read)
        except InputError as error:
            raise error.at(Place(source=value)) from None


def _lists(path: str) -> Iterator[list[object]]:
    """Yield the lists in a YAML or JSON file; JSON text is valid YAML."""
    from kschedx.sources import yaml as yaml_text

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
