"""SeveralConfigError in kube-scheduler's words (`api/field_errors.py`), with the nearest valid name."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kschedx.api import field_errors
from kschedx.errors import ConfigError, InputError, Place, SeveralConfigError, nearest

_LONGEST = 80


class Faults:
    """What is found wrong with a configuration, in order.

    kube-scheduler gives up after each step of its reading; here the next one is taken all the same, and what it finds
    counts unless the field, or one beside it, was wrong before: then it may only follow from that.
    """

    def __init__(self) -> None:
        self._errors: list[ConfigError] = []
        self._wrong: frozenset[str] = frozenset()
        self._around: frozenset[str] = frozenset()

    def add(self, error: ConfigError) -> None:
        field = error.place.field
        is_beside = field.rpartition(".")[0] in self._around
        if not (is_beside or any(_is_within(field, other) for other in self._wrong)):
            self._errors.append(error)

    def extend(self, errors: Iterable[ConfigError]) -> None:
        for error in errors:
            self.add(error)

    def next_step(self) -> None:
        self._wrong = frozenset(error.place.field for error in self._errors)
        self._around = frozenset(field.rpartition(".")[0] for field in self._wrong)

    def settle(self) -> None:
        """Raises `ConfigError` where anything was found."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise SeveralConfigError(self._errors)


def _is_within(field: str, other: str) -> bool:
    return field == other or field.startswith((f"{other}.", f"{other}["))


def refuse(path: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError(message, place=Place(field=path), hint=hint)


def invalid(path: str, value: object, detail: str) -> ConfigError:
    return config_error(field_errors.invalid(path, shown(value), detail))


def not_supported(path: str, value: str, supported: Iterable[str]) -> ConfigError:
    values = sorted(supported)
    return config_error(field_errors.not_supported(path, shown(value), values), nearest(value, values))


def required(path: str, detail: str = "") -> ConfigError:
    return config_error(field_errors.required(path, detail))


def forbidden(path: str, detail: str) -> ConfigError:
    return config_error(field_errors.forbidden(path, detail))


def duplicate(path: str, value: object) -> ConfigError:
    return refuse(path, f"Duplicate value: {shown(value)}")


def config_error(error: InputError, hint: str = "") -> ConfigError:
    return ConfigError(error.message, place=error.place, hint=hint or error.hint)


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """The hint for an unknown name: the nearest known one, or where none is near, all of them."""
    names = sorted(known)
    return nearest(name, names) or f"known: {', '.join(names)}"


def shown(value: object) -> str:
    """A value on one line of printable characters, cut where it is long."""
    text = field_errors.quoted(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
