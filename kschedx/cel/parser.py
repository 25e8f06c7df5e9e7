"""From text to a syntax tree, macros replaced by what they stand for.

Upstream: cel-go's parser. What is no expression at all is only found here, not explained: the words for it come from
the parser that the grammar generates (program.py).
"""

from __future__ import annotations

from kschedx.cel.lexer import NoExpressionError, Token, bytes_value, int_value, string_value, tokens, uint_value
from kschedx.cel.macros import MacroError, expanded
from kschedx.cel.syntax import Call, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.values import NULL

_DEEPEST = 250
"""Of expressions in one another (cel-go's maxRecursionDepth)."""

_RESERVED = frozenset(
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
    **{one: (_RELATION, f"_{one}_") for one in ("<", "<=", ">=", ">", "==", "!=")},
    **{one: (3, f"_{one}_") for one in ("+", "-")},
    **{one: (4, f"_{one}_") for one in ("*", "/", "%")},
}
"""How strongly each binds, and the function that it is."""


class TooDeepError(Exception):
    """The expression is nested deeper than cel-go parses."""


class ParseError(Exception):
    """It has the form of an expression but is none: positions and what cel-go says."""

    def __init__(self, issues: list[tuple[int, str]]) -> None:
        super().__init__(issues)
        self.issues = issues


def parse(text: str) -> Expr:
    """Raises `NoExpressionError`, `ParseError` or `TooDeepError`."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0
        self._issues: list[tuple[int, str]] = []

    def whole(self) -> Expr:
        found = self._expression()
        self._take("end")
        if self._issues:
            raise ParseError(self._issues)
        return found

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
        found = self._binary(0)
        if self._kind == "?":
            position = self._any().position
            then = self._binary(0)
            self._take(":")
            found = Call(position, "_?_:_", [found, then, self._expression()])
        self._depth -= 1
        return found

    def _binary(self, lowest: int) -> Expr:
        """Operators that bind at least as strongly as `lowest`; those of one strength from left to right."""
        found = self._unary()
        length = 0
        while True:
            operator = self._kind
            strength, function = _OPERATORS.get(operator, (-1, ""))
            if strength < lowest:
                return found
            if strength < _RELATION:
                found = self._chain(found, operator, strength, function)
                continue
            length += 1
            if self._depth + length > _DEEPEST:
                raise TooDeepError
            position = self._any().position
            found = Call(position, function, [found, self._binary(strength + 1)])

    def _chain(self, first: Expr, operator: str, strength: int, function: str) -> Expr:
        """`a || b || c` as a tree that is as deep on both sides."""
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
        found, name = self._primary()
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
                    found, name = self._call(field.text, found), None
                elif is_optional:
                    found, name = Call(position, "_?._", [found, Literal(field.position, field.text)]), None
                else:
                    found, name = Select(position, found, field.text), f"{name}.{field.text}" if name else None
            elif self._kind == "[":
                position = self._any().position
                function = "_[?_]" if self._skip("?") else "_[_]"
                found, name = Call(position, function, [found, self._expression()]), None
                self._take("]")
            elif self._kind == "{" and name:
                found, name = self._struct(name), None
            else:
                return found

    def _primary(self) -> tuple[Expr, str | None]:
        """Also the name that it is, where it is one."""
        token = self._any()
        if token.kind in ("ident", "."):
            name = token if token.kind == "ident" else self._take("ident")
            full = name.text if token.kind == "ident" else f".{name.text}"
            if name.text in _RESERVED and self._kind != "{":
                found = self._fault(token.position, f"reserved identifier: {name.text}")
                if self._skip("("):
                    self._listed(")")
                return found, None
            if self._kind == "(":
                return self._call(full, None), None
            return Ident(name.position, full), full
        if token.kind == "(":
            found = self._expression()
            self._take(")")
            return found, None
        if token.kind == "[":
            elements, optionals = self._listed("]", may_be_optional=True)
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
                return Literal(position, int_value(text))
            if token.kind == "uint":
                return Literal(position, uint_value(text))
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
                return Literal(position, bytes_value(text))
        except ValueError as error:
            return self._fault(position, str(error))
        raise NoExpressionError(f"{token.kind} where a value is expected")

    def _call(self, function: str, target: Expr | None) -> Expr:
        position = self._take("(").position
        arguments, _ = self._listed(")", may_end_with_comma=False)
        try:
            found = expanded(position, function, target, arguments)
        except MacroError as fault:
            return self._fault(fault.position, fault.message)
        return Call(position, function, arguments, target) if found is None else found

    def _listed(
        self, end: str, *, may_be_optional: bool = False, may_end_with_comma: bool = True
    ) -> tuple[list[Expr], frozenset[int]]:
        found: list[Expr] = []
        optionals = set()
        while self._kind != end:
            if may_be_optional and self._skip("?"):
                optionals.add(len(found))
            found.append(self._expression())
            if not self._skip(","):
                break
            if self._kind == end and not may_end_with_comma:
                raise NoExpressionError(f"{end} after a comma")
        self._lone_comma(found, end)
        self._take(end)
        return found, frozenset(optionals)

    def _lone_comma(self, found: list[Expr], end: str) -> None:
        """The grammar has a list of nothing but a comma."""
        if not found and end in "]}":
            self._skip(",")

    def _map(self, position: int) -> Expr:
        entries = []
        self._skip(",") if self._kind == "," else None
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
        fields = []
        while self._kind != "}":
            is_optional = self._skip("?")
            field = self._take("ident")
            colon = self._take(":").position
            fields.append((colon, field.text, self._expression(), is_optional))
            if not self._skip(","):
                break
        self._take("}")
        return StructNode(position, name, fields)
