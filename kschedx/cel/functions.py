"""The declaration of a function: its overloads and their implementations. Upstream: cel-go's common/decls."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kschedx.cel.types import Type, TypeKind, is_dyn, read_types
from kschedx.cel.values import Budget, Fault, MapValue, Value, is_list, type_value

Run = Callable[..., Value]  # takes the budget, then the arguments; an invalid argument or result is a `Fault`


class _Overload(Struct, frozen=True, kw_only=True):
    """An overload; the arguments of a member start with its receiver."""

    id: str
    arguments: tuple[Type, ...]
    result: Type
    is_member: bool = False
    run: Run | None = None

    def fits(self, arguments: tuple[Value, ...]) -> bool:
        return len(arguments) == len(self.arguments) and all(map(_holds, self.arguments, arguments))


class Function(Struct, frozen=True, kw_only=True):
    name: str
    overloads: tuple[_Overload, ...]
    run: Run | None = None  # the implementation of all overloads
    takes: tuple[type, ...] = ()  # types of the first argument of `run`; any if empty
    checks_its_arguments: bool = False  # whether an overload gets any arguments and refuses them with its own message


def _holds(declared: Type, value: Value) -> bool:
    """Return whether a value is a valid argument; a list or map is judged by its first item."""
    if is_dyn(declared) or declared.kind is TypeKind.TYPE_PARAM:
        return True
    if declared.name != type_value(value).name:
        return False
    if is_list(value):
        return not value or not declared.parameters or _holds(declared.parameters[0], value[0])
    if isinstance(value, MapValue) and len(value) and declared.parameters:
        key = value.own_keys()[0]
        return _holds(declared.parameters[0], key) and _holds(declared.parameters[1], value.find(key))
    return True


def _no_overload(name: str, arguments: tuple[Value, ...]) -> Fault:
    for argument in arguments:
        if isinstance(argument, Fault):
            return argument
    return Fault(f"no such overload: {name}({', '.join(type_value(argument).name for argument in arguments)})")


def dispatch(function: Function) -> Run:
    """Call the first overload that fits the values at run time, if types are not known before."""
    overloads = [candidate for candidate in function.overloads if candidate.run is not None]

    def run(budget: Budget, *arguments: Value) -> Value:
        for candidate in overloads:
            has_count = len(candidate.arguments) == len(arguments)
            if candidate.run is not None and has_count and (function.checks_its_arguments or candidate.fits(arguments)):
                return candidate.run(budget, *arguments)
        return _no_overload(function.name, arguments)

    return run


def guard(function: Function, overload: _Overload) -> Run | None:
    """Call one overload, which refuses values of other types."""
    own = overload.run
    if own is None or function.checks_its_arguments:
        return own

    def run(budget: Budget, *arguments: Value) -> Value:
        return own(budget, *arguments) if overload.fits(arguments) else _no_overload(function.name, arguments)

    return run


def several(name: str, *overloads: _Overload) -> Function:
    """Declare a function whose overloads have their own implementations."""
    return Function(name=name, overloads=overloads)


def single(name: str, identifier: str, signature: str, run: Run | None = None) -> Function:
    """Declare a function with one overload."""
    return several(name, overload(identifier, signature, run))


def overload(identifier: str, signature: str, run: Run | None = None) -> _Overload:
    """Declare an overload by its types: `(string) -> int`, or `list(A).(int) -> A` for a member. A capital letter is a
    type parameter."""
    head, _, result = signature.rpartition(" -> ")
    target, _, arguments = head.partition(".(") if ".(" in head else ("", "", head[1:])
    return _Overload(
        id=identifier,
        arguments=read_types(target) + read_types(arguments),
        result=read_types(result)[0],
        is_member=bool(target),
        run=run,
    )
