"""A label selector as kubectl's -l takes it: `app=web,tier in (front, back),!canary`.

Upstream: Parse in staging/src/k8s.io/apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kschedx.api.integers import parse_int64
from kschedx.api.names import label_key_errors
from kschedx.api.selectors import Operator, Requirement, Selector
from kschedx.errors import InputError

ALLOWED = "allowed: key, !key, key=value, key!=value, key in (a, b), key notin (a, b), key>1, key<1"

_KEY = r"\s*(?P<key>[^\s!=<>(),]+)\s*"
_FORMS: tuple[tuple[str, Operator], ...] = (
    (rf"{_KEY}", Operator.EXISTS),
    (rf"\s*!{_KEY}", Operator.DOES_NOT_EXIST),
    (rf"{_KEY}(?:==|=)\s*(?P<value>[^\s!=<>(),]*)\s*", Operator.EQUALS),
    (rf"{_KEY}!=\s*(?P<value>[^\s!=<>(),]*)\s*", Operator.NOT_IN),
    (rf"{_KEY}\s+in\s*\((?P<values>[^()]*)\)\s*", Operator.IN),
    (rf"{_KEY}\s+notin\s*\((?P<values>[^()]*)\)\s*", Operator.NOT_IN),
    (rf"{_KEY}>\s*(?P<value>[^\s!=<>(),]+)\s*", Operator.GT),
    (rf"{_KEY}<\s*(?P<value>[^\s!=<>(),]+)\s*", Operator.LT),
)


def parse_label_query(text: str) -> Selector:
    """All requirements must match. Raises `InputError`."""
    return Selector(requirements=tuple(map(_requirement, _parts(text))))


def _parts(text: str) -> Iterator[str]:
    """The requirements: split at commas that are not in parentheses."""
    if text.strip():
        yield from re.split(r",(?![^(]*\))", text)


def _requirement(part: str) -> Requirement:
    for form, operator in _FORMS:
        found = re.fullmatch(form, part)
        if found is None:
            continue
        named = found.groupdict()
        listed = named.get("values")
        values = (
            tuple(value.strip() for value in listed.split(","))
            if listed is not None
            else ((named["value"],) if "value" in named else ())
        )
        for error in label_key_errors(named["key"]):
            raise InputError(f'label selector: "{named["key"]}" is no label key: {error}')
        if operator in (Operator.GT, Operator.LT) and parse_int64(values[0]) is None:
            raise InputError(f'label selector: "{part.strip()}": expected a whole number, found "{values[0]}"')
        return Requirement(key=named["key"], operator=operator, values=values)
    raise InputError(f'label selector: found "{part.strip()}"', hint=ALLOWED)
