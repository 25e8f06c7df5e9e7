"""Whether a device matches a CEL expression.

An expression is evaluated once for all devices that it cannot distinguish: the fields that it reads are taken from its
syntax tree, so that, for example, a serial number that it does not name makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kschedx.cel import Call, Expr, Ident, Literal, MapValue, Select, Value, compile_program, descendants, refusal
from kschedx.cel.library.kubernetes import semver_from_text
from kschedx.cel.values import CelQuantity, Fault
from kschedx.errors import UndecidableError
from kschedx.kube.devices import (
    EVERY_FEATURE,
    CompileError,
    Device,
    DeviceAttribute,
    EvaluationError,
    ExpressionLanguage,
    Features,
)
from kschedx.kube.quantity import Written
from kschedx.kube.resources import nano_units

_UNSUPPORTED = "unsupported attribute value"


class DeviceProgram:
    """An expression, with its result for each class of devices that it can distinguish."""

    def __init__(self, expression: str, features: Features) -> None:
        """Raises `CompileError` for an invalid expression."""
        self._features = features
        self._program = compile_program(expression, features)
        names, reads_all = _reads(self._program.root)
        self._reads = None if reads_all else names  # without domains; None if it may read any
        self._reads_device = self._program.reads_device
        self._answers: dict[object, bool | str] = {}

    def matches(self, device: Device, driver: str) -> bool:
        """Raises `EvaluationError` with kube-scheduler's message."""
        attributes = {name: self._value(name, value) for name, value in device.attributes.items()}
        read = [(name, value) for name, value in device.attributes.items() if self._is_read(name)]
        capacity = [(name, capacity.value) for name, capacity in device.capacity.items() if self._is_read(name)]
        multiple = device.allow_multiple_allocations and self._features.reads_multiple_allocations
        key = (driver, multiple, tuple(read), tuple(capacity)) if self._reads_device else None
        answer = self._answers.get(key)
        if answer is None:
            amounts: dict[str, Value] = {name: _amount(item) for name, item in capacity}
            answer = self._answers[key] = self._evaluate(
                MapValue(
                    {
                        "driver": driver,
                        "allowMultipleAllocations": multiple,
                        "attributes": _group_by_domain(driver, {name: attributes[name] for name, _ in read}),
                        "capacity": _group_by_domain(driver, amounts),
                    }
                )
            )
        if isinstance(answer, str):
            raise EvaluationError(answer)
        return answer

    def _is_read(self, name: str) -> bool:
        return self._reads is None or name.rpartition("/")[2] in self._reads

    def _value(self, name: str, attribute: DeviceAttribute) -> Value:
        """Convert every attribute, because kube-scheduler reads all of them before it evaluates."""
        value = _attribute_value(attribute, self._features.list_attributes)
        if isinstance(value, Fault):
            raise EvaluationError(f"attribute {name}: {value.message}")
        return value

    def _evaluate(self, device: MapValue) -> bool | str:
        try:
            return self._program.evaluate(device)
        except EvaluationError as error:
            return str(error)


# --- the fields that an expression reads

_INDEXES = ("_[_]", "_[?_]", "_?._")
_OWN_FIELDS = ("driver", "allowMultipleAllocations")
_ATTRIBUTE = 3  # the steps from the device to an attribute: the map, the domain, the name
_NO_DOMAIN = MapValue({})


def _reads(root: Expr) -> tuple[frozenset[str], bool]:
    """Return the names that are read, and whether a part of the device is also read in another way."""
    names = set()
    reads_all = False
    explained: set[Expr] = set()  # operands of steps with a known name; they come after the step
    for descendant in descendants(root):
        depth = _depth(descendant)
        if depth is None:
            continue
        name = _accessed_key(descendant)
        if depth == _ATTRIBUTE and name is not None:
            names.add(name)
            explained |= set(_insides(descendant))
        elif depth == 1 and name in _OWN_FIELDS:
            explained |= set(_insides(descendant))
        elif descendant not in explained:
            reads_all = True
    return frozenset(names), reads_all


def _insides(expr: Expr) -> Iterator[Expr]:
    inner = _operand(expr)
    while inner is not None:
        yield inner
        inner = _operand(inner)


def _operand(expr: Expr) -> Expr | None:
    if isinstance(expr, Select):
        return expr.operand
    return expr.arguments[0] if isinstance(expr, Call) and expr.function in _INDEXES else None


def _accessed_key(expr: Expr) -> str | None:
    if isinstance(expr, Select):
        return expr.field
    key = expr.arguments[1] if isinstance(expr, Call) and expr.function in _INDEXES else None
    return key.value if isinstance(key, Literal) and isinstance(key.value, str) else None


def _depth(expr: Expr) -> int | None:
    """Return the number of steps into the device: 1 for its attributes, 3 for one of them; None outside of it."""
    steps = 0
    inner: Expr | None = expr
    while inner is not None and not isinstance(inner, Ident):
        inner = _operand(inner)
        steps += 1
        if steps > _ATTRIBUTE:
            return None
    return steps if isinstance(inner, Ident) and inner.name.removeprefix(".") == "device" else None


# --- values


def _group_by_domain(driver: str, values: dict[str, Value]) -> MapValue:
    """A name without a domain belongs to the driver; an unknown domain is an empty map."""
    domains: dict[str, dict[object, Value]] = {}
    for name, value in values.items():
        domain, slash, own = name.partition("/")
        domains.setdefault(domain if slash else driver, {})[own if slash else name] = value
    return MapValue({domain: MapValue(own) for domain, own in domains.items()}, default=_NO_DOMAIN)


def _attribute_value(attribute: DeviceAttribute, list_attributes: bool) -> Value:
    """Return the only value that is set, a list before a scalar."""
    if list_attributes:
        for several in (attribute.ints, attribute.bools, attribute.strings):
            if several is not None:
                return list(several)
        if attribute.versions is not None:
            versions = [_version(text) for text in attribute.versions]
            return next((version for version in versions if isinstance(version, Fault)), versions)
    for item in (attribute.int_value, attribute.bool_value, attribute.string):
        if item is not None:
            return item
    return Fault(_UNSUPPORTED) if attribute.version is None else _version(attribute.version)


def _amount(written: Written) -> Value:
    """The API server stores an amount in the largest unit in which it is an integer."""
    nano = nano_units(written)
    return CelQuantity(nano, is_whole=nano % 10**9 == 0)


def _version(text: str) -> Value:
    version = semver_from_text(text)
    return Fault(f"parse semantic version: {version.message}") if isinstance(version, Fault) else version


class _Language:
    """`kube.devices.ExpressionLanguage`."""

    compile = staticmethod(lru_cache(maxsize=1024)(DeviceProgram))
    refusal = staticmethod(refusal)

    def names_in(self, expression: str) -> frozenset[str]:
        try:
            return _reads(compile_program(expression, EVERY_FEATURE).root)[0]
        except (CompileError, UndecidableError):
            return frozenset()


LANGUAGE: ExpressionLanguage = _Language()
