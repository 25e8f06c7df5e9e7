"""Devices: their attributes, and the CEL expressions that read these.

Both are replaced word by word, so that an expression that compares still holds for the same devices. One that looks
into a text, for its beginning or with a pattern, is kept as it is, with every word in it and the attributes that it
reads.
"""

from __future__ import annotations

import re

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

_PART = re.compile(
    r"""[rbRB]{0,2}(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|[A-Za-z_][A-Za-z0-9_]*|\s+|.""", re.DOTALL
)
_LITERAL = re.compile(r"""["'][^"'\\\n]*["']""")
_LOOKS_INTO_TEXT = re.compile(
    r"\b(?:startsWith|endsWith|contains|matches|find|findAll|substring|split|replace|indexOf|lastIndexOf|charAt|size|join"
    r"|lowerAscii|upperAscii|trim|reverse|format|quote|string|int|double|bytes)\s*\(|\\"
)
_OF_AMOUNTS = frozenset({"quantity", "isQuantity", "semver", "isSemver", "duration", "timestamp"})
"""Functions whose text is no name."""


def expression(written: str, names: Names) -> str:
    """A device selector."""
    if _LOOKS_INTO_TEXT.search(written):
        names.keep(written)
        return written
    parts: list[str] = []
    function = ""
    for part in _PART.findall(written):
        if _LITERAL.fullmatch(part):
            inside = part[1:-1]
            parts.append(part if function in _OF_AMOUNTS or not inside else part[0] + names.name(inside) + part[-1])
        elif part[0].isalpha() or part[0] == "_":
            parts.append(names.name(part))
        else:
            parts.append(part)
        if not part.isspace() and part != "(":
            function = part
    return "".join(parts)


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
