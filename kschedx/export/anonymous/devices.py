"""Attributes of devices.

They are replaced as names are, but for those that a selector looks into, where it is kept as it is (`selectors`).
"""

from __future__ import annotations

from kschedx.export.anonymous.changes import (
    ANY_LENGTH,
    Change,
    Json,
    Names,
    as_written,
    is_map,
    label_key,
    list_of,
    name,
    number,
    text,
)

_VALUES: dict[str, Change] = {
    "int": number,
    "bool": number,
    "string": name(ANY_LENGTH),
    "version": text(as_written),
    "ints": list_of(number),
    "bools": list_of(number),
    "strings": list_of(name(ANY_LENGTH)),
    "versions": list_of(text(as_written)),
}
_KEPT: dict[str, Change] = _VALUES | {"string": text(as_written), "strings": list_of(text(as_written))}


def attributes(value: object, names: Names) -> object:
    """By qualified name."""
    if not is_map(value):
        return None
    found: Json = {}
    for key, item in value.items():
        changes = _KEPT if names.is_kept(key.rpartition("/")[2]) else _VALUES
        if is_map(item):
            changed = {kind: changes[kind](one, names) for kind, one in item.items() if kind in changes}
            found[label_key(key, names)] = {kind: one for kind, one in changed.items() if one is not None}
    return found
