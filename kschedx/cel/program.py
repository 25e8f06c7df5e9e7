"""Compilation and evaluation of expressions, as in Kubernetes. Upstream: dynamic-resource-allocation/cel/compile.go."""

from __future__ import annotations

import re
from functools import lru_cache
from json import dumps

from kschedx.cel.checker import check
from kschedx.cel.environment import environment
from kschedx.cel.parser import NoExpressionError, ParseError, TooDeepError, parse
from kschedx.cel.planner import CostExceededError, PlanError, PlannedExpression
from kschedx.cel.syntax import Expr, printed
from kschedx.cel.types import ANY, BOOL, DYN
from kschedx.cel.values import Fault, MapValue, UndecidedError, Value, type_value
from kschedx.errors import UndecidableError
from kschedx.kube.devices import CompileError, EvaluationError, Features

LONGEST = 10 * 1024
"""In bytes (CELSelectorExpressionMaxLength)."""
COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


_NO_CONDITION = {
    "int": "unsupported type conversion from 'int' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}
"""Go's error for a result that is not a boolean, by the name of its type."""


class Program:
    """A compiled expression."""

    def __init__(self, expression: str, root: Expr, plan: PlannedExpression) -> None:
        self._text = expression
        self.root = root
        self._plan = plan

    @property
    def reads_device(self) -> bool:
        return self._plan.reads_device

    def evaluate(self, device: MapValue) -> bool:
        """Raises `EvaluationError` with kube-scheduler's message, and `UndecidableError` if the message is
        uncertain."""
        try:
            value = self._plan.evaluate(device)
        except CostExceededError:
            raise EvaluationError(COST_EXCEEDED) from None
        except UndecidedError as error:
            raise undecidable(self._text, str(error)) from None
        except RecursionError:
            raise undecidable(self._text, "it is nested too deeply") from None
        return self._condition(value)

    def _condition(self, value: Value) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, Fault):
            raise EvaluationError(value.message)
        kind = type_value(value).name
        type_name = _NO_CONDITION.get(kind)
        if type_name is None:
            raise undecidable(self._text, f"it returns a {kind} instead of a bool")
        raise EvaluationError(f"CEL result of type {kind} could not be converted to bool: {type_name}")


def refusal(expression: str, features: Features) -> str | None:
    """Return the API server's error for a new expression, after the field; None if it compiles. Only the API server
    estimates its maximum cost. Raises `UndecidableError` if the message is uncertain. Upstream: validateCELSelector in
    pkg/apis/resource."""
    if len(expression.encode(errors="replace")) > LONGEST:
        return f"Too long: may not be more than {LONGEST} bytes"
    try:
        compiled(expression, features)
    except CompileError as error:
        return f"Invalid value: {dumps(expression, ensure_ascii=False)}: {error}"
    return None


def undecidable(expression: str, because: str) -> UndecidableError:
    shown = expression if len(expression) <= 200 else f"{expression[:200]}..."
    return UndecidableError(f"kschedx cannot evaluate {shown!r} as kube-scheduler does: {because}")


@lru_cache(maxsize=1024)
def compiled(expression: str, features: Features) -> Program:
    """Raises `CompileError` with kube-scheduler's message, and `UndecidableError` if the message is uncertain."""
    if len(expression.encode(errors="replace")) > LONGEST:
        raise undecidable(f"{expression[:40]}...", "the API server refuses selectors of more than 10 KiB")
    try:
        expression.encode()
        return _compiled(expression, features)
    except UnicodeEncodeError:
        raise undecidable(expression.encode(errors="replace").decode(), "it is not valid Unicode") from None
    except UndecidedError as error:
        raise undecidable(expression, str(error)) from None
    except (TooDeepError, RecursionError):
        raise undecidable(expression, "it is nested too deeply") from None


def _compiled(expression: str, features: Features) -> Program:
    try:
        root = parse(expression)
    except NoExpressionError:
        raise _syntax_error(expression) from None
    except ParseError as fault:
        raise CompileError(f"compilation failed: {printed(expression, fault.issues)}") from None
    known = environment(features)
    issues = check(root, known)
    if issues:
        raise CompileError(f"compilation failed: {printed(expression, issues)}")
    if root.type not in (BOOL, ANY) and not (features.list_attributes and root.type == DYN):
        raise CompileError(f"must evaluate to bool or the unknown type, not {root.type}")
    try:
        return Program(expression, root, PlannedExpression(root, known))
    except PlanError as fault:
        raise CompileError(f"program instantiation failed: {fault}") from None


def _syntax_error(expression: str) -> Exception:
    """Return the message of the generated parser, which cel-cpp shares with cel-go."""
    try:
        from cel_expr_python import cel
    except ImportError as error:
        return UndecidableError(f"device selectors need the package cel-expr-python: {error}")
    try:
        cel.NewEnv(extensions=_extensions()).compile(expression)
    except (RuntimeError, TypeError, ValueError) as error:
        phrase = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        if "Syntax error: " in phrase and "<input>:-1" not in phrase:
            return CompileError(f"compilation failed: {_in_words_of_go(phrase, expression)}")
    return undecidable(expression, "it is not an expression")


_AT_START_OF_LINE = re.compile(r"ERROR: <input>:\d+:1: [^\n]*(?=\n?(?:ERROR: |$))")


def _in_words_of_go(text: str, expression: str) -> str:
    """Convert cel-cpp's message to Go's: cel-cpp escapes the question mark and omits empty lines."""
    text = text.replace(r"\u003F", "?")
    if not expression:
        return text.replace("<input>:1:1:", "<input>:1:0:")
    return _AT_START_OF_LINE.sub(lambda match: f"{match.group()}\n | \n | ^", text)


def _extensions() -> list[object]:
    from cel_expr_python.ext import ext_optional

    return [ext_optional.ExtOptional()]
