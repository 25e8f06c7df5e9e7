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
    fields: list[tuple[int, str, Expr, bool]]

    def children(self) -> Iterator[Expr]:
        for _, _, value, _ in self.fields:
            yield value


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


_MOST_ERRORS = 100


def format_issues(text: str, issues: list[tuple[int, str]]) -> str:
    """Format errors (position, message) as Go does: by position, each with its line."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    phrases = []
    places = sorted(((*_place(starts, position), message) for position, message in issues), key=lambda item: item[:2])
    for line_number, column, message in places[:_MOST_ERRORS]:
        line = lines[line_number].replace("\t", " ")
        indent = "".join("\uff0e" if ord(letter) > 0x7F else "." for letter in line[:column])
        mark = "\uff3e" if column < len(line) and ord(line[column]) > 0x7F else "^"
        phrases.append(f"ERROR: <input>:{line_number + 1}:{column + 1}: {message}\n | {line}\n | {indent}{mark}")
    if len(places) > _MOST_ERRORS:
        phrases.append(f"{len(places) - _MOST_ERRORS} more errors were truncated")
    return "\n".join(phrases)


def _place(starts: list[int], position: int) -> tuple[int, int]:
    line = max(number for number, start in enumerate(starts[:-1]) if start <= position)
    return line, position - starts[line]
