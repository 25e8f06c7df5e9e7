"""What the rules of `validation`, `container_validation` and `placement_validation` are put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from kschedx.api.field_errors import as_json, invalid, not_supported, quoted, required
from kschedx.errors import InputError

Errors = Iterator[InputError]


class ValidationOptions(Struct, frozen=True, kw_only=True):
    """Rules that depend on a feature gate of the API server; the defaults are those of 1.36."""

    pod_level_resources: bool = True
    """PodLevelResources."""
    toleration_comparison_operators: bool = False
    """TaintTolerationComparisonOperators: Lt and Gt."""


DEFAULT_OPTIONS = ValidationOptions()


def syntax(errors: Callable[[str], Iterator[str]], value: str, field: str) -> Errors:
    return (invalid(field, quoted(value), message) for message in errors(value))


def one_of(value: str, allowed: tuple[str, ...], field: str) -> Errors:
    """A value that must be there and be one of those allowed."""
    if not value:
        yield required(field, "")
    elif value not in allowed:
        yield not_supported(field, as_json(value), allowed)
