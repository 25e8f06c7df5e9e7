"""Whether a device is what a CEL expression asks for.

An expression is evaluated once for all devices that look alike to it: what it reads of a device is taken from its text,
so that a serial number that it does not name makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from kschedx.api.devices import Device, DeviceAttribute
from kschedx.api.quantity import parse_quantity
from kschedx.plugins.dynamic_resources.cel import (
    EvaluationError,
    Features,
    Program,
    Value,
    compiled,
    quantity_value,
    undecidable,
    version_value,
)

UNSUPPORTED = "unsupported attribute value"

_STRING = r"""(?:"[^"\\\n]*"|'[^'\\\n]*')"""
_ACCESS = re.compile(
    rf"device\s*\.\s*(?P<map>attributes|capacity)\s*\[\s*\??\s*(?P<domain>{_STRING}|device\s*\.\s*driver)\s*\]"
    rf"(?:\s*\.\s*\??\s*(?P<id>[A-Za-z_]\w*\b(?!\s*\())|\s*\[\s*\??\s*(?P<text>{_STRING})\s*\])?"
)
_OTHER_USE = re.compile(r"device\s*\.\s*(?:attributes|capacity)\b")
_EVERY_NAME = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transform\w+)\s*\(")
_VERSIONED = re.compile(r"\b(?:semver|major|minor|patch)\s*\(")


class Selector:
    """An expression, and its answer for each kind of device that it can tell apart."""

    def __init__(self, expression: str, features: Features) -> None:
        """Raises `CompileError` where the expression is wrong."""
        self._expression = expression
        self._features = features
        self._program: Program = compiled(expression, features)
        accesses = list(_ACCESS.finditer(expression))
        self._has_other_use = bool(_OTHER_USE.search(_ACCESS.sub("", expression)))
        self._domains = {(found["map"], _literal(found["domain"])) for found in accesses}
        """A domain that a device does not have reads as empty, where it is looked up by name."""
        members = [found["id"] or _literal(found["text"]) for found in accesses]
        reads_whole_maps = self._has_other_use or not all(members)
        self._reads = None if reads_whole_maps else frozenset(members)
        """The names without domain that it looks up; None where it may look at any."""
        self._answers: dict[object, bool | str] = {}

    def matches(self, device: Device, driver: str) -> bool:
        """Raises `EvaluationError` in kube-scheduler's words."""
        self._refuse_unsupported(device)
        attributes = [(name, value) for name, value in device.attributes.items() if self._is_read(name)]
        capacity = [(name, one.value) for name, one in device.capacity.items() if self._is_read(name)]
        key = (driver, device.allow_multiple_allocations, tuple(attributes), tuple(capacity))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._evaluate(
                driver,
                {name: self._value(name, value) for name, value in attributes},
                {name: quantity_value(parse_quantity(value)) for name, value in capacity},
                multiple=device.allow_multiple_allocations,
            )
        if isinstance(answer, str):
            raise EvaluationError(answer)
        return answer

    def _is_read(self, name: str) -> bool:
        return self._reads is None or name.rpartition("/")[2] in self._reads

    def _may_read(self, name: str) -> bool:
        """A name that is nowhere in the text is read only where all names are gone through."""
        own = re.escape(name.rpartition("/")[2])
        return bool(re.search(rf"\b{own}\b", self._expression) or _EVERY_NAME.search(self._expression))

    def _refuse_unsupported(self, device: Device) -> None:
        for name, value in device.attributes.items():
            if _supported(value, self._features.list_attributes) is None:
                raise EvaluationError(f"attribute {name}: {UNSUPPORTED}")

    def _value(self, name: str, attribute: DeviceAttribute) -> object:
        value = _supported(attribute, self._features.list_attributes)
        if attribute.version is None and attribute.versions is None:
            return value
        if self._may_read(name) and not _VERSIONED.search(self._expression):
            raise undecidable(self._expression, f"it may compare the version {name} with what is none")
        texts = value if isinstance(value, list) else [value]
        versions = [version_value(str(text)) for text in texts]
        if None in versions:
            raise undecidable(self._expression, f"the attribute {name} is no semantic version")
        return versions if isinstance(value, list) else versions[0]

    def _evaluate(
        self, driver: str, attributes: dict[str, object], capacity: dict[str, object], *, multiple: bool
    ) -> bool | str:
        maps = {"attributes": _by_domain(driver, attributes), "capacity": _by_domain(driver, capacity)}
        for name, domain in self._domains:
            if maps[name].setdefault(domain or driver, {}) == {} and self._has_other_use:
                raise undecidable(self._expression, f"it reads device.{name} as a whole, where {domain} is missing")
        variables = {
            "device.driver": driver,
            "device.attributes": maps["attributes"],
            "device.capacity": maps["capacity"],
            "device.allowMultipleAllocations": multiple,
        }
        if not self._features.consumable_capacity:
            del variables["device.allowMultipleAllocations"]
        try:
            return self._program.evaluate(variables)
        except EvaluationError as error:
            if self._has_other_use:
                raise undecidable(self._expression, str(error)) from None
            return str(error)


def names_in(expression: str) -> frozenset[str]:
    """The attributes and capacities, without their domains, that an expression looks up by name."""
    return frozenset(name for one in _ACCESS.finditer(expression) if (name := one["id"] or _literal(one["text"])))


def _literal(text: str | None) -> str:
    """What a string literal says; empty for anything else, which is the device's driver."""
    return text[1:-1] if text and text[0] in "\"'" else ""


def _by_domain(driver: str, values: dict[str, object]) -> dict[str, dict[str, object]]:
    """A name without domain is of the driver's."""
    domains: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        domain, slash, own = name.partition("/")
        domains.setdefault(domain if slash else driver, {})[own if slash else name] = value
    return domains


def _supported(attribute: DeviceAttribute, list_attributes: bool) -> Value | None:
    """The one value that is set, a list before a scalar; None where there is none that this release reads."""
    return next(_values(attribute, list_attributes), None)


def _values(attribute: DeviceAttribute, list_attributes: bool) -> Iterator[Value]:
    if list_attributes:
        for several in (attribute.ints, attribute.bools, attribute.strings, attribute.versions):
            if several is not None:
                yield list(several)  # type: ignore[misc]
    for one in (attribute.int_value, attribute.bool_value, attribute.string, attribute.version):
        if one is not None:
            yield one


@lru_cache(maxsize=1024)
def selector(expression: str, features: Features) -> Selector:
    """Raises `CompileError` where the expression is wrong."""
    return Selector(expression, features)
