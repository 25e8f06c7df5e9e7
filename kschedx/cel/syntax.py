"""The syntax tree of an expression, and the format of its errors. Upstream: cel-go's common/ast and
common/errors.go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kschedx.cel.types import DYN, Type


class ExpressionNode:
    """A part of an expression. The checker sets `type`."""

    __slots__ = ("position", "type")

    def __init__(self, position: int) -> None:
        self.position = position
        """Code points before it, as in errors."""
        self.type: Type = DYN

    def children(self) -> Iterator[Expr]:
        return iter(())


class Literal(ExpressionNode):
    __slots__ = ("value",)

    def __init__(self, position: int, value: object) -> None:
        super().__init__(position)
        self.value = value


class Ident(ExpressionNode):
    __slots__ = ("name", "stands_for")

    def __init__(self, position: int, name: str) -> None:
        super().__init__(position)
        self.name = name
        self.stands_for: Type | None = None


class Select(ExpressionNode):
    __slots__ = ("field", "is_test", "operand", "stands_for")

    def __init__(self, position: int, operand: Expr, field: str, *, is_test: bool = False) -> None:
        super().__init__(position)
        self.operand = operand
        self.field = field
        self.is_test = is_test
        self.stands_for: Type | None = None

    def children(self) -> Iterator[Expr]:
        yield self.operand


class Call(ExpressionNode):
    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, position: int, function: str, arguments: list[Expr], target: Expr | None = None) -> None:
        super().__init__(position)
        self.function = function
        self.arguments = arguments
        self.target = target
        self.overloads: tuple[str, ...] = ()
        """Possible ones, set by the checker."""

    def children(self) -> Iterator[Expr]:
        if self.target is not None:
            yield self.target
        yield from self.arguments


class ListNode(ExpressionNode):
    __slots__ = ("elements", "optionals")

    def __init__(self, position: int, elements: list[Expr], optionals: frozenset[int] = frozenset()) -> None:
        super().__init__(position)
        self.elements = elements
        self.optionals = optionals

    def children(self) -> Iterator[Expr]:
        yield from self.elements


class MapNode(ExpressionNode):
    """`entries` are key, value, and whether the value is optional."""

    __slots__ = ("entries",)

    def __init__(self, position: int, entries: list[tuple[Expr, Expr, bool]]) -> None:
        super().__init__(position)
        self.entries = entries

    def children(self) -> Iterator[Expr]:
        for key, value, _ in self.entries:
            yield key
            yield value


class StructNode(ExpressionNode):
    __slots__ = ("fields", "type_name")

    def __init__(self, position: int, type_name: str, fields: list[tuple[int, str, Expr, bool]]) -> None:
        super().__init__(position)
        self.type_name = type_name
        self.fields = fields

    def children(self) -> Iterator[Expr]:
        for _, _, value, _ in self.fields:
            yield value


class Comprehension(ExpressionNode):
    """`variable2` is empty in a comprehension with one variable."""

    __slots__ = ("accumulator", "condition", "initial", "over", "result", "step", "variable", "variable2")

    def __init__(
        self,
        position: int,
        *,
        over: Expr,
        variable: str,
        variable2: str = "",
        accumulator: str,
        initial: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
    ) -> None:
        super().__init__(position)
        self.over = over
        self.variable = variable
        self.variable2 = variable2
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> Iterator[Expr]:
        yield self.over
        yield self.initial
        yield self.condition
        yield self.step
        yield self.result


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
