"""The syntax tree of an expression, and the format of its errors. Upstream: cel-go's common/ast and
common/errors.go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from kschedx.cel.types import DYN, Type


class _Part(Struct, eq=False):
    position: int  # code points before it, as in errors


class _Node(_Part, kw_only=True):
    type: Type = DYN  # set by the checker

    def children(self) -> Iterator[Expr]:
        return iter(())


class Literal(_Node):
    value: object


class Ident(_Node):
    name: str
    stands_for: Type | None = None


class Select(_Node):
    operand: Expr
    field: str
    is_test: bool = False
    stands_for: Type | None = None

    def children(self) -> Iterator[Expr]:
        yield self.operand


class Call(_Node):
    function: str
    arguments: list[Expr]
    target: Expr | None = None
    overloads: tuple[str, ...] = ()  # possible ones, set by the checker

    def children(self) -> Iterator[Expr]:
        if self.target is not None:
            yield self.target
        yield from self.arguments


class ListNode(_Node):
    elements: list[Expr]
    optionals: frozenset[int] = frozenset()

    def children(self) -> Iterator[Expr]:
        yield from self.elements


class MapNode(_Node):
    entries: list[tuple[Expr, Expr, bool]]  # key, value, and whether the value is optional

    def children(self) -> Iterator[Expr]:
        for key, value, _ in self.entries:
            yield key
            yield value


class StructNode(_Node):
    type_name: str
    values: list[Expr]  # of its fields

    def children(self) -> Iterator[Expr]:
        yield from self.values


class Comprehension(_Node, kw_only=True):
    over: Expr
    variable: str
    variable2: str = ""  # empty in a comprehension with one variable
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr

    def children(self) -> Iterator[Expr]:
        yield from (self.over, self.initial, self.condition, self.step, self.result)


Expr: TypeAlias = Literal | Ident | Select | Call | ListNode | MapNode | StructNode | Comprehension


def descendants(root: Expr) -> Iterator[Expr]:
    """Yield the expression and its parts, parents first."""
    waiting: list[Expr] = [root]
    while waiting:
        item = waiting.pop()
        yield item
        waiting.extend(reversed(list(item.children())))
