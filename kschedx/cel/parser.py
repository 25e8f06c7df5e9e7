"""From the text of an expression to its syntax tree: tokens, grammar, and macros."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import NamedTuple

from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.values import NULL, Uint
from kschedx.patterns import lazy_pattern

# The tokens of an expression, by CEL.g4, the grammar of all implementations.


class NoExpressionError(Exception):
    """The text is not an expression. The generated parser of the grammar explains why."""


class Token(NamedTuple):
    kind: str  # `ident`, `int`, `uint`, `double`, `string`, `bytes`, `end`, or the operator or keyword itself
    text: str
    position: int


_ESCAPE = r"""\\(?:[abfnrtv"'`?\\]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING = "|".join(
    (
        r'[rR]""".*?"""',
        r"[rR]'''.*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKEN = lazy_pattern(
    rf"""(?P<blank>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_STRING}))
    |(?P<string>{_STRING})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-<>+*/%!?:.,()\[\]{{}}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KEYWORDS = ("in", "true", "false", "null")


def tokens(text: str) -> list[Token]:
    """Return the tokens; the last one is the end. Raises `NoExpressionError`."""
    located = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NoExpressionError(f"no token at {position}")
        kind, own = str(match.lastgroup), match.group()
        if kind != "blank":
            named_by_itself = kind == "op" or own in _KEYWORDS
            located.append(Token(own if named_by_itself else kind, own, position))
        position = match.end()
    located.append(Token("end", "", position))
    return located


_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_PART = lazy_pattern(_ESCAPE + r"|[^\\]+", re.DOTALL)


def string_value(text: str) -> str:
    """Return the value of a string literal. Raises ValueError with Go's message for an invalid one."""
    return "".join(it if isinstance(it, str) else _character(it[0]) for it in _parts(text.replace("\r\n", "\n")))


def _bytes_value(text: str) -> bytes:
    """Return the value of a bytes literal. Raises ValueError with Go's message for an invalid one."""
    data = b""
    for part in _parts(text[1:].replace("\r\n", "\n")):
        if isinstance(part, str):
            data += part.encode()
        elif part[1] in "uU":
            raise ValueError("unable to unescape string")
        else:
            data += bytes([part[0]])
    return data


def _parts(text: str) -> list[str | tuple[int, str]]:
    """Split into plain text, and escapes as number and letter."""
    text = text.replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    text = text[quotes:-quotes]
    if is_raw:
        return [text]
    parts: list[str | tuple[int, str]] = []
    for item in _PART.findall(text):
        if item[0] != "\\":
            parts.append(item)
        elif item[1] in _HEX_DIGITS:
            parts.append((int("0x" + item[2:], 0), item[1]))
        elif item[1].isdigit():
            parts.append((int(item[1:], 8), "0"))
        else:
            parts.append((_SIMPLE.get(item[1], ord(item[1])), "\\"))
    return parts


def _character(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _int_value(text: str) -> int:
    """Raises ValueError beyond int64."""
    digits = text.removeprefix("-")
    value = int(digits, 0) if digits.startswith("0x") else int(digits)
    value = -value if text.startswith("-") else value
    if not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def _uint_value(text: str) -> Uint:
    """Raises ValueError beyond uint64."""
    digits = text[:-1]
    value = int(digits, 0) if digits.startswith("0x") else int(digits)
    if value >= 2**64:
        raise ValueError(text)
    return Uint(value)


# Macros: calls that are expanded to longer expressions. Upstream: cel-go's parser/macro.go, ext/bindings.go,
# ext/comprehensions.go, ext/lists.go, and cel/library.go.

_ACCUMULATOR = "@result"
_RESERVED_VARIABLES = (_ACCUMULATOR, "__result__")


class _MacroError(Exception):
    """Invalid use of a macro: its position, and cel-go's message."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


def _expand_macro(position: int, function: str, target: Expr | None, arguments: list[Expr]) -> Expr | None:
    """Expand a call, or return None if it is not a macro. Raises `_MacroError`."""
    macro = _MACROS.get((function, len(arguments), target is not None))
    return None if macro is None else macro(position, target, arguments)


def _simple_name(expr: Expr, message: str) -> str:
    if not isinstance(expr, Ident):
        raise _MacroError(expr.position, message)
    return expr.name


def _variables(arguments: list[Expr], count: int, message: str = "argument must be a simple name") -> list[str]:
    names = [_simple_name(argument, message) for argument in arguments[:count]]
    if count == 2 and names[0] == names[1]:
        raise _MacroError(arguments[1].position, f"duplicate variable name: {names[0]}")
    for name, item in zip(names, arguments, strict=False):
        if name in _RESERVED_VARIABLES:
            raise _MacroError(item.position, "iteration variable overwrites accumulator variable")
    return [*names, ""][:2]


WRONG_HAS = "invalid argument to has() macro"


def _has(position: int, _target: Expr | None, arguments: list[Expr]) -> Expr:
    item = arguments[0]
    if isinstance(item, Select) and not item.is_test:
        return Select(position, item.operand, item.field, is_test=True)
    raise _MacroError(item.position, WRONG_HAS)


_Macro = Callable[[int, Expr | None, list[Expr]], Expr | None]


def _fold(
    position: int, target: Expr | None, names: list[str], initial: Expr, condition: Expr, step: Expr, result: Expr
) -> Expr:
    assert target is not None
    return Comprehension(
        position,
        over=target,
        variable=names[0],
        variable2=names[1],
        accumulator=_ACCUMULATOR,
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
            return Ident(position, _ACCUMULATOR)

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
        return _fold(position, target, names, initial, condition, step, result)

    return expand


def _collect(
    position: int, target: Expr | None, names: list[str], test: Expr | None, initial: Expr, step: Expr
) -> Expr:
    if test is not None:
        step = Call(position, "_?_:_", [test, step, Ident(position, _ACCUMULATOR)])
    return _fold(position, target, names, initial, Literal(position, True), step, Ident(position, _ACCUMULATOR))


def _list_macro(count: int) -> _Macro:
    """map() and transformList()."""

    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        message = "argument is not an identifier" if count == 1 else "argument must be a simple name"
        names = _variables(arguments, count, message)
        test = arguments[count] if len(arguments) == count + 2 else None
        step = Call(position, "_+_", [Ident(position, _ACCUMULATOR), ListNode(position, [arguments[-1]])])
        return _collect(position, target, names, test, ListNode(position, []), step)

    return expand


def _filter(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
    names = _variables(arguments, 1, "argument is not an identifier")
    step = Call(position, "_+_", [Ident(position, _ACCUMULATOR), ListNode(position, [arguments[0]])])
    return _collect(position, target, names, arguments[1], ListNode(position, []), step)


def _transform_map(*, by_entry: bool) -> _Macro:
    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        names = _variables(arguments, 2)
        test = arguments[2] if len(arguments) == 4 else None
        added: list[Expr] = [arguments[-1]] if by_entry else [Ident(position, names[0]), arguments[-1]]
        step = Call(position, "cel.@mapInsert", [Ident(position, _ACCUMULATOR), *added])
        return _collect(position, target, names, test, MapNode(position, []), step)

    return expand


def _bound(position: int, name: str, value: Expr, result: Expr) -> Expr:
    """Return `result` with `name` bound to `value`, which is evaluated on first use."""
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
    return _bound(position, name, arguments[1], arguments[2])


def _optional_map(*, is_flat: bool) -> _Macro:
    function = "optFlatMap" if is_flat else "optMap"

    def expand(position: int, target: Expr | None, arguments: list[Expr]) -> Expr:
        assert target is not None
        name = _simple_name(arguments[0], f"{function}() variable name must be a simple identifier")
        value = Call(position, "value", [], copy.deepcopy(target))
        mapped = _bound(position, name, value, arguments[1])
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
        raise _MacroError(target.position, message)
    keys = _list_macro(1)(position, Ident(position, _SORTED), arguments)
    assert keys is not None
    return _bound(position, _SORTED, target, Call(position, "@sortByAssociatedKeys", [keys], Ident(position, _SORTED)))


_MACROS: dict[tuple[str, int, bool], _Macro] = {
    ("has", 1, False): _has,
    ("filter", 2, True): _filter,
    ("map", 2, True): _list_macro(1),
    ("map", 3, True): _list_macro(1),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map(is_flat=False),
    ("optFlatMap", 2, True): _optional_map(is_flat=True),
    ("sortBy", 2, True): _sort_by,
    ("transformList", 3, True): _list_macro(2),
    ("transformList", 4, True): _list_macro(2),
    ("transformMap", 3, True): _transform_map(by_entry=False),
    ("transformMap", 4, True): _transform_map(by_entry=False),
    ("transformMapEntry", 3, True): _transform_map(by_entry=True),
    ("transformMapEntry", 4, True): _transform_map(by_entry=True),
} | {
    (name, count + 1, True): _quantifier(name, count)
    for name in ("all", "exists", "exists_one", "existsOne")
    for count in (1, 2)
}
MACROS = frozenset(name for name, _, _ in _MACROS)


# From text to a syntax tree with expanded macros. Upstream: cel-go's parser. Invalid syntax is only detected here; the
# error message comes from the generated parser of the grammar (program.py).

_DEEPEST = 250  # cel-go's maxRecursionDepth

_RESERVED_WORDS = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)
_RELATION = 2
_OPERATORS: dict[str, tuple[int, str]] = {
    "||": (0, "_||_"),
    "&&": (1, "_&&_"),
    "in": (_RELATION, "@in"),
    **{item: (_RELATION, f"_{item}_") for item in ("<", "<=", ">=", ">", "==", "!=")},
    **{item: (3, f"_{item}_") for item in ("+", "-")},
    **{item: (4, f"_{item}_") for item in ("*", "/", "%")},
}


class TooDeepError(Exception):
    """The expression is nested deeper than cel-go allows."""


class ParseError(Exception):
    """The syntax is valid, but the expression is not: positions and cel-go's messages."""

    def __init__(self, issues: list[tuple[int, str]]) -> None:
        super().__init__(issues)
        self.issues = issues


def parse(text: str) -> Expr:
    """Raises `NoExpressionError`, `ParseError`, or `TooDeepError`."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0
        self._issues: list[tuple[int, str]] = []

    def parse(self) -> Expr:
        expression = self._expression()
        self._take("end")
        if self._issues:
            raise ParseError(self._issues)
        return expression

    # --- tokens

    @property
    def _kind(self) -> str:
        return self._tokens[self._next].kind

    def _any(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _take(self, kind: str) -> Token:
        if self._kind != kind:
            raise NoExpressionError(f"{self._kind} where {kind} is expected")
        return self._any()

    def _skip(self, kind: str) -> bool:
        if self._kind == kind:
            self._next += 1
            return True
        return False

    def _fault(self, position: int, message: str) -> Expr:
        self._issues.append((position, message))
        return Literal(position, NULL)

    # --- expressions

    def _expression(self) -> Expr:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooDeepError
        expression = self._binary(0)
        if self._kind == "?":
            position = self._any().position
            then = self._binary(0)
            self._take(":")
            expression = Call(position, "_?_:_", [expression, then, self._expression()])
        self._depth -= 1
        return expression

    def _binary(self, lowest: int) -> Expr:
        """Parse operators with at least the precedence `lowest`; equal ones from left to right."""
        expression = self._unary()
        length = 0
        while True:
            operator = self._kind
            strength, function = _OPERATORS.get(operator, (-1, ""))
            if strength < lowest:
                return expression
            if strength < _RELATION:
                expression = self._chain(expression, operator, strength, function)
                continue
            length += 1
            if self._depth + length > _DEEPEST:
                raise TooDeepError
            position = self._any().position
            expression = Call(position, function, [expression, self._binary(strength + 1)])

    def _chain(self, first: Expr, operator: str, strength: int, function: str) -> Expr:
        """Parse `a || b || c` as a balanced tree."""
        terms, positions = [first], []
        while self._kind == operator:
            positions.append(self._any().position)
            terms.append(self._binary(strength + 1))

        def balanced(low: int, high: int) -> Expr:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else balanced(low, middle - 1)
            right = terms[middle + 1] if middle == high else balanced(middle + 1, high)
            return Call(positions[middle], function, [left, right])

        return balanced(0, len(positions) - 1)

    def _unary(self) -> Expr:
        if self._kind not in ("!", "-"):
            return self._member()
        operator, position = self._kind, self._tokens[self._next].position
        is_negative_number = self._tokens[self._next + 1].kind in ("int", "double")
        if operator == "-" and is_negative_number:
            return self._member()
        count = 0
        while self._skip(operator):
            count += 1
        operand = self._member()
        return Call(position, f"{operator}_", [operand]) if count % 2 else operand

    def _member(self) -> Expr:
        expression, name = self._primary()
        length = 0
        while True:
            length += 1
            if self._depth + length > _DEEPEST:
                raise TooDeepError
            if self._kind == ".":
                position = self._any().position
                is_optional = self._skip("?")
                field = self._take("ident")
                if self._kind == "(" and not is_optional:
                    expression, name = self._call(field.text, expression), None
                elif is_optional:
                    expression, name = Call(position, "_?._", [expression, Literal(field.position, field.text)]), None
                else:
                    expression, name = (
                        Select(position, expression, field.text),
                        f"{name}.{field.text}" if name else None,
                    )
            elif self._kind == "[":
                position = self._any().position
                function = "_[?_]" if self._skip("?") else "_[_]"
                expression, name = Call(position, function, [expression, self._expression()]), None
                self._take("]")
            elif self._kind == "{" and name:
                expression, name = self._struct(name), None
            else:
                return expression

    def _primary(self) -> tuple[Expr, str | None]:
        """Return the expression, and its name if it is one."""
        token = self._any()
        if token.kind in ("ident", "."):
            name = token if token.kind == "ident" else self._take("ident")
            full = name.text if token.kind == "ident" else f".{name.text}"
            if name.text in _RESERVED_WORDS and self._kind != "{":
                expression = self._fault(token.position, f"reserved identifier: {name.text}")
                if self._skip("("):
                    self._elements(")")
                return expression, None
            if self._kind == "(":
                return self._call(full, None), None
            return Ident(name.position, full), full
        if token.kind == "(":
            expression = self._expression()
            self._take(")")
            return expression, None
        if token.kind == "[":
            self._skip_lone_comma("]")
            elements, optionals = self._elements("]", may_be_optional=True)
            return ListNode(token.position, elements, optionals), None
        if token.kind == "{":
            return self._map(token.position), None
        return self._literal(token), None

    def _literal(self, token: Token) -> Expr:
        position, text = token.position, token.text
        if token.kind == "-" and self._kind in ("int", "double"):
            token = self._any()
            text = f"-{token.text}"
        if token.kind in ("true", "false"):
            return Literal(position, token.kind == "true")
        if token.kind == "null":
            return Literal(position, NULL)
        try:
            if token.kind == "int":
                return Literal(position, _int_value(text))
            if token.kind == "uint":
                return Literal(position, _uint_value(text))
            if token.kind == "double":
                value = float(text)
                if value in (float("inf"), float("-inf")):
                    raise ValueError(text)
                return Literal(position, value)
        except ValueError:
            return self._fault(position, f"invalid {token.kind} literal")
        try:
            if token.kind == "string":
                return Literal(position, string_value(text))
            if token.kind == "bytes":
                return Literal(position, _bytes_value(text))
        except ValueError as error:
            return self._fault(position, str(error))
        raise NoExpressionError(f"{token.kind} where a value is expected")

    def _call(self, function: str, target: Expr | None) -> Expr:
        position = self._take("(").position
        arguments, _ = self._elements(")", may_end_with_comma=False)
        try:
            expression = _expand_macro(position, function, target, arguments)
        except _MacroError as fault:
            return self._fault(fault.position, fault.message)
        return Call(position, function, arguments, target) if expression is None else expression

    def _elements(
        self, end: str, *, may_be_optional: bool = False, may_end_with_comma: bool = True
    ) -> tuple[list[Expr], frozenset[int]]:
        elements: list[Expr] = []
        optionals = set()
        while self._kind != end:
            if may_be_optional and self._skip("?"):
                optionals.add(len(elements))
            elements.append(self._expression())
            if not self._skip(","):
                break
            if self._kind == end and not may_end_with_comma:
                raise NoExpressionError(f"{end} after a comma")
        self._take(end)
        return elements, frozenset(optionals)

    def _skip_lone_comma(self, end: str) -> None:
        """The grammar allows a list, map, or message with only a comma."""
        if self._kind == "," and self._tokens[self._next + 1].kind == end:
            self._any()

    def _map(self, position: int) -> Expr:
        entries = []
        self._skip_lone_comma("}")
        while self._kind != "}":
            is_optional = self._skip("?")
            key = self._expression()
            self._take(":")
            entries.append((key, self._expression(), is_optional))
            if not self._skip(","):
                break
        self._take("}")
        return MapNode(position, entries)

    def _struct(self, name: str) -> Expr:
        position = self._take("{").position
        values = []
        self._skip_lone_comma("}")
        while self._kind != "}":
            self._skip("?")
            self._take("ident")
            self._take(":")
            values.append(self._expression())
            if not self._skip(","):
                break
        self._take("}")
        return StructNode(position, name, values)
