"""The interface of expressions that select devices. The language itself is in the satellite `cel`."""

from __future__ import annotations

from typing import Protocol, cast

from msgspec import Struct

from kschedx import satellites
from kschedx.kube.devices import Device


class Features(Struct, frozen=True, kw_only=True):
    """The feature gates that affect expressions."""

    consumable_capacity: bool
    list_attributes: bool


class CompileError(Exception):
    """The expression is invalid; `str()` is kube-scheduler's message."""


class EvaluationError(Exception):
    """The expression cannot be evaluated on a device; `str()` is kube-scheduler's message."""


class DeviceExpression(Protocol):
    def matches(self, device: Device, driver: str) -> bool:
        """Raises `EvaluationError`."""
        ...


class ExpressionLanguage(Protocol):
    def compiled(self, expression: str, features: Features) -> DeviceExpression:
        """Raises `CompileError`."""
        ...

    def names_in(self, expression: str) -> frozenset[str]:
        """Return the attributes and capacities, without domains, that an expression refers to."""
        ...

    def refusal(self, expression: str, features: Features) -> str | None:
        """Return the API server's error for an expression in a new object, or None. Raises `UndecidableError`."""
        ...


def language() -> ExpressionLanguage:
    return cast(ExpressionLanguage, satellites.provided(satellites.DEVICE_EXPRESSIONS))
