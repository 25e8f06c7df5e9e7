"""CEL as device selectors have it: expressions compiled and evaluated by cel-cpp, Google's own implementation.

Kubernetes uses cel-go. The two agree on types and values, on errors not always by word; where kube-scheduler's words
are not certain, or the expression uses a library that is not here, that is an `UndecidableError`, never a guess.

Two environments are needed: one checks types as Kubernetes declares them, where an attribute is of an unknown type, and
one evaluates. cel-cpp's Python form has no types of our own, so quantities and versions are maps that nothing else is.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, apiserver/pkg/cel/library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from kschedx.api.integers import MAX_INT64, MIN_INT64
from kschedx.api.quantity import Quantity, parse_quantity
from kschedx.api.resources import exact_nano_units
from kschedx.errors import InputError, UndecidableError

if TYPE_CHECKING:
    from cel_expr_python import cel

Value = bool | int | str | list[bool] | list[int] | list[str] | Mapping[bool, str] | Mapping[int, str]
Variables = Mapping[str, object]

_QUANTITY, _VERSION = True, 0
"""The one key of the map that stands for a quantity, and for a semantic version."""

_CHECKED_QUANTITY, _CHECKED_VERSION = "map(bool, string)", "map(int, string)"
"""As a type error would name them, where Kubernetes has names of its own."""


class Features(Struct, frozen=True, kw_only=True):
    """The gates that change what an expression may say."""

    consumable_capacity: bool
    list_attributes: bool


class CompileError(Exception):
    """The expression is wrong; `str()` is what kube-scheduler says."""


class EvaluationError(Exception):
    """The expression cannot be evaluated on a device; `str()` is what kube-scheduler says."""


class Program:
    """A compiled expression."""

    def __init__(self, expression: str, evaluable: cel.Expression) -> None:
        self._text = expression
        self._evaluable = evaluable

    def evaluate(self, variables: Variables) -> bool:
        """Raises `EvaluationError` in kube-scheduler's words, `UndecidableError` where they are not certain."""
        try:
            value = self._evaluable.eval(data=variables).value()
        except _REFUSED as error:
            raise undecidable(self._text, str(error)) from None
        if isinstance(value, bool):
            return value
        raise self._failed(str(value))

    def _failed(self, told: str) -> Exception:
        missing = _NO_SUCH_KEY.fullmatch(told)
        if missing:
            return EvaluationError(f"no such key: {missing[1]}")
        if told in _SAME_ERROR:
            return EvaluationError(_SAME_ERROR[told])
        return undecidable(self._text, told)


_LONGEST = 10 * 1024
"""Bytes of an expression (CELSelectorExpressionMaxLength)."""
_REFUSED = (RuntimeError, TypeError, ValueError)
"""What the library raises, be it for text that is no Unicode."""

_NO_SUCH_KEY = re.compile(r'NOT_FOUND: Key not found in map : "([^"\\]*)"', re.DOTALL)
_SAME_ERROR = {
    "INVALID_ARGUMENT: divide by zero": "division by zero",
    "INVALID_ARGUMENT: modulus by zero": "modulus by zero",
    "OUT_OF_RANGE: integer overflow": "integer overflow",
}


def undecidable(expression: str, because: str) -> UndecidableError:
    return UndecidableError(f"kschedx cannot evaluate {expression!r} as kube-scheduler does: {because}")


@lru_cache(maxsize=1024)
def compiled(expression: str, features: Features) -> Program:
    """Raises `CompileError` in kube-scheduler's words, `UndecidableError` where they are not certain."""
    if len(expression.encode(errors="replace")) > _LONGEST:
        raise undecidable(f"{expression[:40]}...", "the API server refuses selectors of more than 10 KiB")
    checking, evaluating = _environments(features)
    try:
        checked = checking.compile(expression)
    except _REFUSED as error:
        raise _compile_error(expression, str(error)) from None
    kind = str(checked.return_type())
    if kind not in ("BOOL", "any", "ERROR") and not (features.list_attributes and kind == "DYN"):
        if kind in ("STRING", "INT", "UINT", "DOUBLE", "BYTES"):
            raise CompileError(f"must evaluate to bool or the unknown type, not {kind.lower()}")
        raise undecidable(expression, f"it is no condition, but {kind}")
    if _mixes_literals(expression):
        raise undecidable(expression, "it has a list of values of different types")
    try:
        return Program(expression, evaluating.compile(expression))
    except _REFUSED as error:
        raise undecidable(expression, str(error)) from None


_ISSUE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)' \(in container ''\)")
_OVERLOAD = re.compile(r"found no matching overload for '_\S+_' applied to '.*'")


def _compile_error(expression: str, told: str) -> Exception:
    """An error of names or operators reads the same in both implementations; any other may not."""
    text = told.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    lines = expression.split("\n")
    issues = _ISSUE.findall(text)
    if not issues:
        return undecidable(expression, text)
    for line, column, issue in issues:
        name = _UNDECLARED.fullmatch(issue)
        is_name = name is not None and name[1] != "device" and not _is_called(lines[int(line) - 1], name[1], column)
        has_stand_in = _CHECKED_QUANTITY in issue or _CHECKED_VERSION in issue
        if has_stand_in or not (is_name or _OVERLOAD.fullmatch(issue)):
            return undecidable(expression, issue)
    return CompileError(f"compilation failed: {text}")


def _is_called(line: str, name: str, column: str) -> bool:
    """A function that is not known here may be one of Kubernetes' own."""
    return bool(re.search(rf"\b{re.escape(name)}\s*\(", line)) or line[int(column) - 1 :].lstrip().startswith("(")


_STRING = r"""(?:"[^"\\\n]*"|'[^'\\\n]*')"""
_LITERAL_LIST = re.compile(r"\[\s*((?:[^\[\]\"'\n]|" + _STRING + r")+)\]")


def _mixes_literals(expression: str) -> bool:
    """cel-go refuses a list of literals of several types."""
    for items in _LITERAL_LIST.findall(expression):
        kinds = {_kind(item.strip()) for item in re.findall(rf"(?:{_STRING}|[^,])+", items)}
        if len(kinds - {""}) > 1:
            return True
    return False


def _kind(item: str) -> str:
    if item[:1] in ("'", '"'):
        return "string"
    if item in ("true", "false"):
        return "bool"
    return "number" if re.fullmatch(r"-?[0-9.]+u?", item) else ""


# --- values


def quantity_value(quantity: Quantity) -> Mapping[bool, str]:
    """Equal for equal amounts."""
    return {_QUANTITY: str(exact_nano_units(quantity))}


def version_value(text: str) -> Mapping[int, str] | None:
    """Equal for versions that differ in nothing but build metadata; None where it is none."""
    version = _parse_version(text)
    return None if version is None else {_VERSION: version}


_NUMBER = r"(0|[1-9][0-9]*)"
_PRE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"({_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?)(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def _parse_version(text: str) -> str | None:
    found = _SEMVER.fullmatch(text)
    return found[1] if found else None


def _order(version: str) -> tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]:
    """What versions are compared by: numbers, then a release after what precedes it."""
    core, _, pre = version.partition("-")
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre.split(".") if pre)
    return tuple(map(int, core.split("."))), not pre, parts


# --- the functions that Kubernetes adds


def _nano(value: Mapping[bool, str]) -> int:
    return int(value[_QUANTITY])


def _compare(first: Mapping[object, str], second: Mapping[object, str]) -> int:
    """Of two quantities, or of two versions."""
    if _QUANTITY in first and _QUANTITY in second:
        one, other = int(first[_QUANTITY]), int(second[_QUANTITY])
        return (one > other) - (one < other)
    earlier, later = _order(first[_VERSION]), _order(second[_VERSION])
    return (earlier > later) - (earlier < later)


def _quantity(text: str) -> Mapping[bool, str]:
    return quantity_value(parse_quantity(text))


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except InputError:
        return False
    return True


def _version(text: str) -> Mapping[int, str]:
    found = version_value(text)
    if found is None:
        raise ValueError(f"{text!r} is no semantic version")
    return found


def _as_integer(value: Mapping[bool, str]) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nano(value) // 10**9


def _is_integer(value: Mapping[bool, str]) -> bool:
    whole, rest = divmod(_nano(value), 10**9)
    return not rest and MIN_INT64 <= whole <= MAX_INT64


def _amount(value: Mapping[bool, str] | int) -> int:
    return value * 10**9 if isinstance(value, int) else _nano(value)


def _part(position: int) -> Callable[[Mapping[int, str]], int]:
    return lambda value: _order(value[_VERSION])[0][position]


class _Function(Struct, frozen=True, kw_only=True):
    """An overload for the checker, and what it does. Types are q(uantity), v(ersion), i(nt), s(tring), b(ool)."""

    name: str
    takes: str
    gives: str
    run: Callable[..., object]
    is_member: bool = True


_FUNCTIONS = (
    _Function(name="quantity", takes="s", gives="q", run=_quantity, is_member=False),
    _Function(name="isQuantity", takes="s", gives="b", run=_is_quantity, is_member=False),
    _Function(name="sign", takes="q", gives="i", run=lambda q: (_nano(q) > 0) - (_nano(q) < 0), is_member=False),
    _Function(name="isInteger", takes="q", gives="b", run=_is_integer),
    _Function(name="asInteger", takes="q", gives="i", run=_as_integer),
    _Function(name="isGreaterThan", takes="qq", gives="b", run=lambda a, b: _compare(a, b) > 0),
    _Function(name="isGreaterThan", takes="vv", gives="b", run=lambda a, b: _compare(a, b) > 0),
    _Function(name="isLessThan", takes="qq", gives="b", run=lambda a, b: _compare(a, b) < 0),
    _Function(name="isLessThan", takes="vv", gives="b", run=lambda a, b: _compare(a, b) < 0),
    _Function(name="compareTo", takes="qq", gives="i", run=_compare),
    _Function(name="compareTo", takes="vv", gives="i", run=_compare),
    _Function(name="add", takes="qq", gives="q", run=lambda a, b: {_QUANTITY: str(_amount(a) + _amount(b))}),
    _Function(name="add", takes="qi", gives="q", run=lambda a, b: {_QUANTITY: str(_amount(a) + _amount(b))}),
    _Function(name="sub", takes="qq", gives="q", run=lambda a, b: {_QUANTITY: str(_amount(a) - _amount(b))}),
    _Function(name="sub", takes="qi", gives="q", run=lambda a, b: {_QUANTITY: str(_amount(a) - _amount(b))}),
    _Function(name="semver", takes="s", gives="v", run=_version, is_member=False),
    _Function(
        name="isSemver", takes="s", gives="b", run=lambda text: _parse_version(text) is not None, is_member=False
    ),
    _Function(name="major", takes="v", gives="i", run=_part(0)),
    _Function(name="minor", takes="v", gives="i", run=_part(1)),
    _Function(name="patch", takes="v", gives="i", run=_part(2)),
)


@lru_cache(maxsize=8)
def _environments(features: Features) -> tuple[cel.Env, cel.Env]:
    """The one that checks, and the one that evaluates."""
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise UndecidableError(f"device selectors need the package cel-expr-python: {error}") from None

    kinds = cel.Type
    attribute = kinds.DYN if features.list_attributes else kinds("google.protobuf.Any")
    quantity, version = kinds.Map(kinds.BOOL, kinds.STRING), kinds.Map(kinds.INT, kinds.STRING)
    by_letter = {"q": quantity, "v": version, "i": kinds.INT, "s": kinds.STRING, "b": kinds.BOOL}

    declared: dict[str, list[cel.Overload]] = {}
    loose: dict[str, dict[str, cel.Overload]] = {}
    by_kind = by_letter | {"q": kinds.MAP, "v": kinds.MAP}
    for one in _FUNCTIONS:
        overload = cel.Overload(
            f"{one.name}_{one.takes}",
            return_type=by_letter[one.gives],
            parameters=[by_letter[letter] for letter in one.takes],
            is_member=one.is_member,
        )
        declared.setdefault(one.name, []).append(overload)
        takes = one.takes.replace("v", "q")
        loose.setdefault(one.name, {})[takes] = cel.Overload(
            f"{one.name}_{takes}",
            return_type=kinds.DYN,
            parameters=[by_kind[letter] for letter in takes],
            is_member=one.is_member,
            impl=one.run,
        )
    if features.list_attributes:
        declared["includes"] = [
            cel.Overload("includes", return_type=kinds.BOOL, parameters=[kinds.DYN, kinds.DYN], is_member=True)
        ]
        scalars = (kinds.BOOL, kinds.INT, kinds.STRING, kinds.MAP)
        loose["includes"] = {
            f"{target} {value}": cel.Overload(
                f"includes_{target}_{value}",
                return_type=kinds.BOOL,
                parameters=[target, value],
                is_member=True,
                impl=_includes,
            )
            for target in (*scalars, kinds.LIST)
            for value in scalars
        }

    def environment(attribute: cel.Type, quantity: cel.Type, functions: Mapping[str, list[cel.Overload]]) -> cel.Env:
        variables = {
            "device.driver": kinds.STRING,
            "device.attributes": kinds.Map(kinds.STRING, kinds.Map(kinds.STRING, attribute)),
            "device.capacity": kinds.Map(kinds.STRING, kinds.Map(kinds.STRING, quantity)),
        }
        if features.consumable_capacity:
            variables["device.allowMultipleAllocations"] = kinds.BOOL
        return cel.NewEnv(
            variables=variables,
            extensions=_extensions(),
            functions=[cel.FunctionDecl(name, overloads) for name, overloads in functions.items()],
        )

    return (
        environment(attribute, quantity, declared),
        environment(kinds.DYN, kinds.DYN, {name: list(overloads.values()) for name, overloads in loose.items()}),
    )


def _extensions() -> list[cel.CelExtensionBase]:
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    return [ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()]


def _includes(target: object, value: object) -> bool:
    """A list has the value, or a scalar is it."""
    items = list(target) if isinstance(target, list | tuple) else [target]
    return any(_same(item, value) for item in items)


def _same(one: object, other: object) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other
