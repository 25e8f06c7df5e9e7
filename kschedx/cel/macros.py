"""Macros: calls that are written short for something longer.

Upstream: cel-go's parser/macro.go, ext/bindings.go, ext/comprehensions.go, ext/lists.go and cel/library.go.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select

ACCUMULATOR = "@result"
_RESERVED = (ACCUMULATOR, "__result__")


class MacroError(Exception):
    """A macro is used wrongly: where, and what cel-go says."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


def expanded(position: int, function: str, target: Expr | None, arguments: list[Expr]) -> Expr | None:
    """What a call stands for; None where it is no macro. Raises `MacroError`."""
    macro = _MACROS.get((function, len(arguments), target is not None))
    return None if macro is None else macro(position, target, arguments)


def _simple_name(one: Expr, message: str) -> str:
    if not isinstance(one, Ident):
        raise MacroError(one.position, message)
    return one.name


def _variables(arguments: list[Expr], count: int, message: str = "argument must be a simple name") -> list[str]:
    names = [_simple_name(one, message) for one in arguments[:count]]
    if count == 2 and names[0] == names[1]:
        raise MacroError(arguments[1].position, f"duplicate variable name: {names[0]}")
    for name, one in zip(names, arguments, strict=False):
        if name in _RESERVED:
            raise MacroError(one.position, "iteration variable overwrites accumulator variable")
    return [*names, ""][:2]


def _has(position: int, _target: Expr | None, arguments: list[Expr]) -> Expr:
    one = arguments[0]
    if isinstance(one, Select) and not one.is_test:
        return Select(position, one.operand, one.field, is_test=True)
    raise MacroError(one.position, "invalid argument to has() macro")


_Macro = Callable[[int, Expr | None, list[Expr]], Expr | None]


def _folded(
    position: int, target: Expr | None, names: list[str], initial: Expr, condition: Expr, step: Expr, result: Expr
) -> Expr:
    assert target is not None
    return Comprehension(
        position,
        over=target,
        variable=names[0],
        variable2=names[1],
        accumulator=ACCUMULATOR,
        initial=initial,
        condition=condition,
        step=step,
        result=result,
    )


def _quantifier(kind: str, count: int) -> _Macro:
    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        names = _variables(arguments, count)
        test = arguments[count]

        def accumulated() -> Expr:
            return Ident(position, ACCUMULATOR)

        def call(function: str, *own: Expr) -> Expr:
            return Call(position, function, list(own))

        if kind == "all":
            initial: Expr = Literal(position, True)
            condition = call("@not_strictly_false", accumulated())
            step = call("_&&_", accumulated(), test)
            result = accumulated()
        elif kind == "exists":
            initial = Literal(position, False)
            condition = call("@not_strictly_false", call("!_", accumulated()))
            step = call("_||_", accumulated(), test)
            result = accumulated()
        else:
            initial = Literal(position, 0)
            condition = Literal(position, True)
            one_more = call("_+_", accumulated(), Literal(position, 1))
            step = call("_?_:_", test, one_more, accumulated())
            result = call("_==_", accumulated(), Literal(position, 1))
        return _folded(position, target, names, initial, condition, step, result)

    return expand


def _collected(
    position: int, target: Expr | None, names: list[str], test: Expr | None, initial: Expr, step: Expr
) -> Expr:
    if test is not None:
        step = Call(position, "_?_:_", [test, step, Ident(position, ACCUMULATOR)])
    return _folded(position, target, names, initial, Literal(position, True), step, Ident(position, ACCUMULATOR))


def _listed(count: int) -> _Macro:
    """map() and transformList()."""

    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        message = "argument is not an identifier" if count == 1 else "argument must be a simple name"
        names = _variables(arguments, count, message)
        test = arguments[count] if len(arguments) == count + 2 else None
        step = Call(position, "_+_", [Ident(position, ACCUMULATOR), ListNode(position, [arguments[-1]])])
        return _collected(position, target, names, test, ListNode(position, []), step)

    return expand


def _filter(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
    names = _variables(arguments, 1, "argument is not an identifier")
    step = Call(position, "_+_", [Ident(position, ACCUMULATOR), ListNode(position, [arguments[0]])])
    return _collected(position, target, names, arguments[1], ListNode(position, []), step)


def _transform_map(*, by_entry: bool) -> _Macro:
    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        names = _variables(arguments, 2)
        test = arguments[2] if len(arguments) == 4 else None
        added: list[Expr] = [arguments[-1]] if by_entry else [Ident(position, names[0]), arguments[-1]]
        step = Call(position, "cel.@mapInsert", [Ident(position, ACCUMULATOR), *added])
        return _collected(position, target, names, test, MapNode(position, []), step)

    return expand


def bound(position: int, name: str, value: Expr, result: Expr) -> Expr:
    """`result`, in which `name` is `value`, that is evaluated when it is first read."""
    return Comprehension(
        position,
        over=ListNode(position, []),
        variable="#unused",
        accumulator=name,
        initial=value,
        condition=Literal(position, False),
        step=Ident(position, name),
        result=result,
    )


def _bind(position: int, target: Expr | None, arguments: list[Expr]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    name = _simple_name(arguments[0], "cel.bind() variable names must be simple identifiers")
    return bound(position, name, arguments[1], arguments[2])


def _optional_map(*, is_flat: bool) -> _Macro:
    function = "optFlatMap" if is_flat else "optMap"

    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        assert target is not None
        name = _simple_name(arguments[0], f"{function}() variable name must be a simple identifier")
        value = Call(position, "value", [], copy.deepcopy(target))
        mapped = bound(position, name, value, arguments[1])
        if not is_flat:
            mapped = Call(position, "of", [mapped], Ident(position, "optional"))
        none = Call(position, "none", [], Ident(position, "optional"))
        return Call(position, "_?_:_", [Call(position, "hasValue", [], target), mapped, none])

    return expand


_SORTED = "@__sortBy_input__"


def _sort_by(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
    assert target is not None
    if isinstance(target, Literal | MapNode):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.position, message)
    keys = _listed(1)(position, Ident(position, _SORTED), arguments)
    assert keys is not None
    return bound(position, _SORTED, target, Call(position, "@sortByAssociatedKeys", [keys], Ident(position, _SORTED)))


_MACROS: dict[tuple[str, int, bool], _Macro] = {
    ("has", 1, False): _has,
    ("filter", 2, True): _filter,
    ("map", 2, True): _listed(1),
    ("map", 3, True): _listed(1),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map(is_flat=False),
    ("optFlatMap", 2, True): _optional_map(is_flat=True),
    ("sortBy", 2, True): _sort_by,
    ("transformList", 3, True): _listed(2),
    ("transformList", 4, True): _listed(2),
    ("transformMap", 3, True): _transform_map(by_entry=False),
    ("transformMap", 4, True): _transform_map(by_entry=False),
    ("transformMapEntry", 3, True): _transform_map(by_entry=True),
    ("transformMapEntry", 4, True): _transform_map(by_entry=True),
} | {
    (name, count + 1, True): _quantifier(name, count)
    for name in ("all", "exists", "exists_one", "existsOne")
    for count in (1, 2)
}
