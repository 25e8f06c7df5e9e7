"""Field errors with the API server's texts: `str()` is what kube-apiserver and kube-scheduler print.

Upstream: apimachinery/pkg/util/validation/field/errors.go and apimachinery/pkg/util/errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from kschedx.errors import InputError, Place

_GO_ESCAPES = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\"",
}  # fmt: skip
_HTML_ESCAPES = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"})


def invalid(field: str, shown: str, detail: str) -> InputError:
    """`field: Invalid value: shown: detail`; `shown` comes from `quoted` or `as_json`."""
    return _field_error(field, f"Invalid value: {shown}: {detail}")


def required_error(field: str, detail: str) -> InputError:
    return _field_error(field, f"Required value: {detail}" if detail else "Required value")


def forbidden_error(field: str, detail: str) -> InputError:
    return _field_error(field, f"Forbidden: {detail}")


def not_found_error(field: str, shown: str, detail: str = "") -> InputError:
    return _field_error(field, f"Not found: {shown}: {detail}" if detail else f"Not found: {shown}")


def duplicate(field: str, shown: str) -> InputError:
    return _field_error(field, f"Duplicate value: {shown}")


def not_supported_error(field: str, shown: str, supported: Iterable[str]) -> InputError:
    return _field_error(field, f"Unsupported value: {shown}: supported values: {', '.join(map(quote_go, supported))}")


def _field_error(field: str, message: str) -> InputError:
    return InputError(message, place=Place(field=field))


def aggregate(errors: Iterable[InputError]) -> InputError | None:
    """Aggregate as Go does: one error stays as it is, several distinct ones become `[first, second]`, none becomes
    None."""
    distinct = {str(error): error for error in errors}
    match list(distinct.values()):
        case []:
            return None
        case [error]:
            return error
        case _:
            several = InputError(aggregate_texts(distinct))
            several.parts = tuple(distinct.values())
            return several


def aggregate_texts(texts: Iterable[str]) -> str:
    """Format error texts as Go's NewAggregate does: a single one alone, several in brackets, equal ones once."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quote_go(text: str) -> str:
    """Format as Go's %q: in double quotes, with unprintable characters escaped."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_json(value: object) -> str:
    """Format as Go's encoding/json. An empty list is null, as the API server stores it."""
    if value == ():
        return "null"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML_ESCAPES)


# Building blocks of the rules in `validation`, `container_validation`, and `placement_validation`.

Errors = Iterator[InputError]


class ValidationOptions(Struct, frozen=True, kw_only=True):
    """Rules that depend on a feature gate of the API server; the defaults are those of 1.36."""

    pod_level_resources: bool = True
    toleration_comparison_operators: bool = False  # TaintTolerationComparisonOperators: Lt and Gt


DEFAULT_OPTIONS = ValidationOptions()


def syntax(errors: Callable[[str], Iterator[str]], value: str, field: str) -> Errors:
    return (invalid(field, quote_go(value), message) for message in errors(value))


def one_of(value: str, allowed: tuple[str, ...], field: str) -> Errors:
    if not value:
        yield required_error(field, "")
    elif value not in allowed:
        yield not_supported_error(field, as_json(value), allowed)
