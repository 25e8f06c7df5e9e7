"""How a function is declared: its overloads, and what they do.

Upstream: cel-go's common/decls.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kschedx.cel.types import Type, TypeKind, is_dyn
from kschedx.cel.values import Budget, Fault, MapValue, Value, is_list, type_value

Run = Callable[..., Value]
"""Takes the budget, then the arguments; a wrong argument or result is a `Fault`."""


class Overload(Struct, frozen=True, kw_only=True):
    """The arguments of a member begin with what it is called on."""

    id: str
    arguments: tuple[Type, ...]
    result: Type
    is_member: bool = False
    run: Run | None = None

    def fits(self, arguments: tuple[Value, ...]) -> bool:
        return len(arguments) == len(self.arguments) and all(map(holds, self.arguments, arguments))


class Function(Struct, frozen=True, kw_only=True):
    name: str
    overloads: tuple[Overload, ...]
    run: Run | None = None
    """What all overloads do."""
    takes: tuple[type, ...] = ()
    """The values that `run` may be given first; any where it is empty."""
    checks_its_arguments: bool = False
    """An overload is given whatever comes, and refuses it in its own words."""


def holds(declared: Type, value: Value) -> bool:
    """Whether a value may be an argument; of a list and a map, by its first item."""
    if is_dyn(declared) or declared.kind is TypeKind.TYPE_PARAM:
        return True
    if declared.name != type_value(value).name:
        return False
    if is_list(value):
        return not value or not declared.parameters or holds(declared.parameters[0], value[0])
    if isinstance(value, MapValue) and len(value) and declared.parameters:
        key = value.own_keys()[0]
        return holds(declared.parameters[0], key) and holds(declared.parameters[1], value.find(key))
    return True


def no_overload(name: str, arguments: tuple[Value, ...]) -> Fault:
    for one in arguments:
        if isinstance(one, Fault):
            return one
    return Fault(f"no such overload: {name}({', '.join(type_value(one).name for one in arguments)})")


def dispatched(function: Function) -> Run:
    """The first overload that fits what comes at run time, where the types are not known before."""
    overloads = [one for one in function.overloads if one.run is not None]

    def run(budget: Budget, *arguments: Value) -> Value:
        for one in overloads:
            has_count = len(one.arguments) == len(arguments)
            if one.run is not None and has_count and (function.checks_its_arguments or one.fits(arguments)):
                return one.run(budget, *arguments)
        return no_overload(function.name, arguments)

    return run


def guarded(function: Function, overload: Overload) -> Run | None:
    """One overload, that refuses what it is not for."""
    own = overload.run
    if own is None or function.checks_its_arguments:
        return own

    def run(budget: Budget, *arguments: Value) -> Value:
        return own(budget, *arguments) if overload.fits(arguments) else no_overload(function.name, arguments)

    return run


def several(name: str, *overloads: Overload) -> Function:
    """A function whose overloads each do their own."""
    return Function(name=name, overloads=overloads)


def single(
    name: str,
    identifier: str,
    arguments: tuple[Type, ...],
    result: Type,
    run: Run | None = None,
    *,
    is_member: bool = True,
) -> Function:
    """A function with one overload."""
    return several(name, overload(identifier, arguments, result, run, is_member=is_member))


def overload(
    identifier: str, arguments: tuple[Type, ...], result: Type, run: Run | None = None, *, is_member: bool = True
) -> Overload:
    return Overload(id=identifier, arguments=arguments, result=result, is_member=is_member, run=run)
