"""Expressions that select devices, as the scheduler needs them: what a language has to offer, and how it fails.

The language itself is a satellite (`cel`).
"""

from __future__ import annotations

from typing import Protocol, cast

from msgspec import Struct

from kschedx import satellites
from kschedx.kube.devices import Device


class Features(Struct, frozen=True, kw_only=True):
    """The gates that change what an expression may say."""

    consumable_capacity: bool
    list_attributes: bool


class CompileError(Exception):
    """The expression is wrong; `str()` is what kube-scheduler says."""


class EvaluationError(Exception):
    """The expression cannot be evaluated on a device; `str()` is what kube-scheduler says."""


class DeviceExpression(Protocol):
    """A compiled expression."""

    def matches(self, device: Device, driver: str) -> bool:
        """Raises `EvaluationError`."""
        ...


class ExpressionLanguage(Protocol):
    def compiled(self, expression: str, features: Features) -> DeviceExpression:
        """Raises `CompileError`."""
        ...

    def names_in(self, expression: str) -> frozenset[str]:
        """The attributes and capacities, without their domains, that an expression looks up by name."""
        ...

    def refusal(self, expression: str, features: Features) -> str | None:
        """What the API server says of an expression in a new object; None where it admits it. Raises
        `UndecidableError`."""
        ...


def language() -> ExpressionLanguage:
    """The one that Kubernetes has."""
    return cast(ExpressionLanguage, satellites.provided(satellites.DEVICE_EXPRESSIONS))
