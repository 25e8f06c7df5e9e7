"""Compilation and evaluation of expressions, as in Kubernetes. Upstream: dynamic-resource-allocation/cel/compile.go."""

from __future__ import annotations

from functools import lru_cache
from json import dumps
from typing import assert_never

from msgspec import Struct

from kschedx.cel import regex
from kschedx.cel.environment import TYPES, Environment, environment
from kschedx.cel.functions import Function
from kschedx.cel.library.standard import STANDARD_FUNCTIONS as STANDARD
from kschedx.cel.library.texts import format_error
from kschedx.cel.parser import WRONG_HAS, NoExpressionError, ParseError, TooDeepError, parse
from kschedx.cel.planner import CostExceededError, PlanError, PlannedExpression
from kschedx.cel.syntax import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    StructNode,
    descendants,
)
from kschedx.cel.types import (
    ANY,
    BOOL,
    DYN,
    ERROR,
    INT,
    Mapping,
    Type,
    TypeKind,
    assignable,
    equivalent,
    is_dyn,
    list_of,
    map_of,
    most_general,
    optional_of,
    parameter,
    shown,
    substitute,
    type_of,
)
from kschedx.cel.values import Budget, Fault, MapValue, UndecidedError, Value, type_value
from kschedx.errors import UndecidableError
from kschedx.kube.devices import CompileError, EvaluationError, Features
from kschedx.patterns import lazy_pattern

# The type checker: the type of each expression, the possible overloads of its calls, and its errors.
# Upstream: cel-go's checker/checker.go, and the validators that Kubernetes adds (cel/validator.go).

_Issue = tuple[int, str]
_DEVICE = Type(TypeKind.STRUCT, "kubernetes.DRADevice")
_VARIABLES: dict[str, Type] = {"device": _DEVICE}


def _check(root: Expr, environment: Environment) -> list[_Issue]:
    """Set types and overloads. Return the errors with positions; none for a valid expression."""
    checker = _Checker(environment)
    checker.check(root)
    for descendant in descendants(root):
        descendant.type = substitute(checker.mapping, descendant.type, to_dyn=True)
    return checker.issues or list(_invalid_literals(root))


def _unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """Return the value type of an optional type, and whether it is one."""
    if type_.kind is TypeKind.OPAQUE and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


def _signature(arguments: tuple[Type, ...], *, is_member: bool) -> str:
    """Format the types of a call as in the checker's errors."""
    target = ""
    if is_member:
        target, arguments = f"{shown(arguments[0])}.", arguments[1:]
    return f"{target}({', '.join(map(shown, arguments))})"


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, Type]] = []
        self._variables = 0
        self.mapping: Mapping = {}
        self.issues: list[_Issue] = []

    def check(self, expr: Expr) -> None:
        expr.type = self._type_of(expr)

    def _type_of(self, expr: Expr) -> Type:
        match expr:
            case Literal():
                return type_value(expr.value)
            case Ident():
                return self._ident(expr)
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListNode():
                return self._list(expr)
            case MapNode():
                return self._map(expr)
            case StructNode():
                return self._struct(expr)
            case Comprehension():
                return self._comprehension(expr)
        assert_never(expr)

    def _fault(self, position: int, message: str) -> Type:
        self.issues.append((position, message))
        return ERROR

    def _may_be(self, types: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
        mapping = assignable(self.mapping, types, others)
        if mapping is not None:
            self.mapping = mapping
        return mapping is not None

    def _new_variable(self) -> Type:
        self._variables += 1
        return parameter(f"_var{self._variables - 1}")

    # --- names

    def _local(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _ident(self, ident: Ident) -> Type:
        local = self._local(ident.name)
        if local is not None:
            return local
        name = ident.name.removeprefix(".")
        if name in _VARIABLES:
            return _VARIABLES[name]
        if name in TYPES:
            ident.stands_for = TYPES[name]
            return type_of(TYPES[name])
        return self._fault(ident.position, f"undeclared reference to '{ident.name}' (in container '')")

    def _select(self, select: Select) -> Type:
        name = None if select.is_test else _qualified_name(select)
        if name is not None and self._local(name.partition(".")[0]) is None and name.removeprefix(".") in TYPES:
            select.stands_for = TYPES[name.removeprefix(".")]
            return type_of(select.stands_for)
        self.check(select.operand)
        field_type = self._field(select, select.operand.type, select.field, is_optional=False)
        return BOOL if select.is_test else field_type

    def _field(self, expr: Expr, operand: Type, field: str, *, is_optional: bool) -> Type:
        operand, was_optional = _unwrap_optional(substitute(self.mapping, operand))
        field_type = ERROR
        if operand.kind is TypeKind.MAP:
            field_type = operand.parameters[1]
        elif operand.kind is TypeKind.STRUCT:
            if operand != _DEVICE:
                self._fault(expr.position, f"unexpected failed resolution of '{operand.name}'")
            elif field in self._environment.device_fields:
                field_type = self._environment.device_fields[field]
            else:
                self._fault(expr.position, f"undefined field '{field}'")
        elif operand.kind is TypeKind.TYPE_PARAM:
            self._may_be((DYN,), (operand,))
            field_type = DYN
        else:
            if not is_dyn(operand) and operand.kind is not TypeKind.ERROR:
                self._fault(expr.position, f"type '{shown(operand)}' does not support field selection")
            field_type = DYN
        return substitute(self.mapping, optional_of(field_type) if was_optional or is_optional else field_type)

    # --- calls

    def _call(self, call: Call) -> Type:
        if call.function == "_?._":
            operand, field = call.arguments
            assert isinstance(field, Literal)
            self.check(operand)
            field.type = type_value(field.value)
            call.overloads = ("select_optional_field",)
            return self._field(call, operand.type, str(field.value), is_optional=True)
        for argument in call.arguments:
            self.check(argument)
        functions = self._environment.functions
        if call.target is not None:
            prefix = _qualified_name(call.target)
            qualified = functions.get(f"{prefix}.{call.function}".removeprefix(".")) if prefix else None
            if qualified is not None:
                call.function, call.target = qualified.name, None
                return self._resolve(call, qualified)
            self.check(call.target)
        function = functions.get(call.function.removeprefix("."))
        if function is None:
            return self._fault(call.position, f"undeclared reference to '{call.function}' (in container '')")
        call.function = function.name
        return self._resolve(call, function)

    def _resolve(self, call: Call, function: Function) -> Type:
        arguments = tuple(each.type for each in call.children())
        if function.name in ("_&&_", "_||_"):
            return self._logical(call, function)
        resolved: Type | None = None
        overloads = []
        for overload in function.overloads:
            if overload.is_member is not (call.target is not None):
                continue
            fresh: Mapping = {}
            for each in (*overload.arguments, overload.result):
                self._freshen(each, fresh)
            candidates = tuple(substitute(fresh, each) for each in overload.arguments)
            if not self._may_be(arguments, candidates):
                continue
            overloads.append(overload.id)
            result = substitute(self.mapping, substitute(fresh, overload.result))
            if resolved is None:
                resolved = result
            elif not is_dyn(resolved) and result != resolved:
                resolved = DYN
        if resolved is None:
            types = tuple(substitute(self.mapping, each, to_dyn=True) for each in arguments)
            applied = _signature(types, is_member=call.target is not None)
            return self._fault(
                call.position, f"found no matching overload for '{function.name}' applied to '{applied}'"
            )
        call.overloads = tuple(overloads)
        return resolved

    def _freshen(self, generic: Type, fresh: Mapping) -> None:
        if generic.kind is TypeKind.TYPE_PARAM and generic.name not in fresh:
            fresh[generic.name] = self._new_variable()
        for each in generic.parameters:
            self._freshen(each, fresh)

    def _logical(self, call: Call, function: Function) -> Type:
        is_right = True
        for argument in call.arguments:
            if not self._may_be((argument.type,), (BOOL,)):
                self._mismatch(argument.position, BOOL, argument.type)
                is_right = False
        call.overloads = (function.overloads[0].id,)
        return BOOL if is_right else ERROR

    def _mismatch(self, position: int, expected: Type, actual: Type) -> None:
        self._fault(position, f"expected type '{shown(expected)}' but found '{shown(actual)}'")

    # --- lists, maps, and comprehensions

    def _join_types(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self._may_be((previous,), (current,)):
            return most_general(previous, current)
        return DYN

    def _optional_element(self, expr: Expr) -> Type:
        held, is_optional = _unwrap_optional(expr.type)
        if not is_optional and not is_dyn(held):
            self._mismatch(expr.position, optional_of(held), held)
        return held

    def _list(self, node: ListNode) -> Type:
        element_type: Type | None = None
        for index, element in enumerate(node.elements):
            self.check(element)
            own = self._optional_element(element) if index in node.optionals else element.type
            element_type = self._join_types(element_type, own)
        return list_of(self._new_variable() if element_type is None else element_type)

    def _map(self, node: MapNode) -> Type:
        key_type: Type | None = None
        value_type: Type | None = None
        for key, value, is_optional in node.entries:
            self.check(key)
            key_type = self._join_types(key_type, key.type)
            self.check(value)
            own = self._optional_element(value) if is_optional else value.type
            value_type = self._join_types(value_type, own)
        if key_type is None or value_type is None:
            return map_of(self._new_variable(), self._new_variable())
        return map_of(key_type, value_type)

    def _struct(self, node: StructNode) -> Type:
        if node.type_name.removeprefix(".") in TYPES or node.type_name.startswith("google."):
            raise UndecidedError(f"kschedx does not know how kube-scheduler builds messages of type {node.type_name}")
        return self._fault(node.position, f"undeclared reference to '{node.type_name}' (in container '')")

    def _comprehension(self, comprehension: Comprehension) -> Type:
        self.check(comprehension.over)
        self.check(comprehension.initial)
        over = substitute(self.mapping, comprehension.over.type)
        accumulated = comprehension.initial.type
        self._scopes.append({comprehension.accumulator: accumulated})
        variables = self._iteration_types(comprehension, over)
        if comprehension.variable2:
            self._scopes.append({comprehension.variable: variables[0], comprehension.variable2: variables[1]})
        else:
            self._scopes.append({comprehension.variable: variables[0]})
        for part, expected in ((comprehension.condition, BOOL), (comprehension.step, accumulated)):
            self.check(part)
            if not self._may_be((expected,), (part.type,)):
                self._mismatch(part.position, expected, part.type)
        self._scopes.pop()
        self.check(comprehension.result)
        self._scopes.pop()
        return substitute(self.mapping, comprehension.result.type)

    def _iteration_types(self, comprehension: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind is TypeKind.LIST:
            return (INT, over.parameters[0]) if comprehension.variable2 else (over.parameters[0], DYN)
        if over.kind is TypeKind.MAP:
            return over.parameters[0], over.parameters[1]
        if over.kind in (TypeKind.DYN, TypeKind.ERROR, TypeKind.TYPE_PARAM):
            self._may_be((DYN,), (over,))
            return DYN, DYN
        self._fault(
            comprehension.over.position,
            f"expression of type '{shown(over)}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR


def _qualified_name(expr: Expr) -> str | None:
    """Return `a.b.c` as a name, or None."""
    parts: list[str] = []
    while isinstance(expr, Select) and not expr.is_test:
        parts.append(expr.field)
        expr = expr.operand
    return ".".join((expr.name, *reversed(parts))) if isinstance(expr, Ident) else None


# --- errors beyond types

_CONVERSIONS = {function.name: function for function in STANDARD if function.name in ("duration", "timestamp")}


def _invalid_literals(root: Expr) -> list[_Issue]:
    issues: list[_Issue] = []
    calls = [node for node in descendants(root) if isinstance(node, Call) and node.function == "format"]
    issues += [misuse for call in calls if call.target is not None and (misuse := format_error(call)) is not None]
    # arguments of format() may have any types
    mixed = {id(inner) for call in calls for inner in descendants(call)}
    for descendant in descendants(root):
        if isinstance(descendant, Call) and descendant.arguments and isinstance(descendant.arguments[0], Literal):
            literal = descendant.arguments[0]
            if descendant.function in _CONVERSIONS and _is_refused(descendant, literal):
                issues.append((literal.position, f"invalid {descendant.function} argument"))
            elif descendant.function == "matches" and isinstance(regex.compile_pattern(str(literal.value)), Fault):
                issues.append((literal.position, "invalid matches argument"))
        elif id(descendant) in mixed:
            continue
        elif isinstance(descendant, ListNode):
            _check_homogeneous(
                [(each, index in descendant.optionals) for index, each in enumerate(descendant.elements)], issues
            )
        elif isinstance(descendant, MapNode):
            first_key, first_value, is_first_optional = (
                descendant.entries[0] if descendant.entries else (descendant, descendant, False)
            )
            for key, value, is_optional in descendant.entries[1:]:
                of_values = _own_type(first_value, is_first_optional), _own_type(value, is_optional)
                for (first, other), position in (
                    ((first_key.type, key.type), key.position),
                    (of_values, value.position),
                ):
                    if not equivalent(first, other):
                        issues.append((position, _type_mismatch(first, other)))
    return issues


def _is_refused(call: Call, literal: Literal) -> bool:
    for overload in _CONVERSIONS[call.function].overloads:
        if overload.id in call.overloads and overload.run is not None:
            return isinstance(overload.run(Budget(1), literal.value), Fault)
    return False


def _check_homogeneous(elements: list[tuple[Expr, bool]], issues: list[_Issue]) -> None:
    first: Type | None = None
    for item, is_optional in elements:
        own = _own_type(item, is_optional)
        if first is None:
            first = own
        elif not equivalent(first, own):
            issues.append((item.position, _type_mismatch(first, own)))
            return


def _own_type(expr: Expr, is_optional: bool) -> Type:
    return expr.type.parameters[0] if is_optional and expr.type.parameters else expr.type


def _type_mismatch(expected: Type, actual: Type) -> str:
    return f"expected type '{shown(expected)}' but found '{shown(actual)}'"


_LONGEST = 10 * 1024  # in bytes (CELSelectorExpressionMaxLength)
COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


_NO_CONDITION = {
    "int": "unsupported type conversion from 'int' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}
"""Go's error for a result that is not a boolean, by the name of its type."""


class Program(Struct):
    """A compiled expression."""

    _text: str
    root: Expr
    _plan: PlannedExpression

    @property
    def reads_device(self) -> bool:
        return self._plan.reads_device

    def evaluate(self, device: MapValue) -> bool:
        """Raises `EvaluationError` with kube-scheduler's message, and `UndecidableError` if that is uncertain."""
        try:
            value = self._plan.evaluate(device)
        except CostExceededError:
            raise EvaluationError(COST_EXCEEDED) from None
        except UndecidedError as error:
            raise _undecidable(self._text, str(error)) from None
        except RecursionError:
            raise _undecidable(self._text, "it is nested too deeply") from None
        return self._condition(value)

    def _condition(self, value: Value) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, Fault):
            raise EvaluationError(value.message)
        kind = type_value(value).name
        type_name = _NO_CONDITION.get(kind)
        if type_name is None:
            raise _undecidable(self._text, f"it returns a {kind} instead of a bool")
        raise EvaluationError(f"CEL result of type {kind} could not be converted to bool: {type_name}")


def refusal(expression: str, features: Features) -> str | None:
    """Return the API server's error for a new expression, after the field; None if it compiles. Only the API server
    estimates its maximum cost. Raises `UndecidableError` if the message is uncertain. Upstream: validateCELSelector in
    pkg/apis/resource."""
    if len(expression.encode(errors="replace")) > _LONGEST:
        return f"Too long: may not be more than {_LONGEST} bytes"
    try:
        compile_program(expression, features)
    except CompileError as error:
        return f"Invalid value: {dumps(expression, ensure_ascii=False)}: {error}"
    return None


def _undecidable(expression: str, because: str) -> UndecidableError:
    shown = expression if len(expression) <= 200 else f"{expression[:200]}..."
    return UndecidableError(f"kschedx cannot evaluate {shown!r} as kube-scheduler does: {because}")


@lru_cache(maxsize=1024)
def compile_program(expression: str, features: Features) -> Program:
    """Raises `CompileError` with kube-scheduler's message, and `UndecidableError` if the message is uncertain."""
    if len(expression.encode(errors="replace")) > _LONGEST:
        raise _undecidable(f"{expression[:40]}...", "the API server refuses selectors of more than 10 KiB")
    try:
        expression.encode()
        return _compile(expression, features)
    except UnicodeEncodeError:
        raise _undecidable(expression.encode(errors="replace").decode(), "it is not valid Unicode") from None
    except UndecidedError as error:
        raise _undecidable(expression, str(error)) from None
    except (TooDeepError, RecursionError):
        raise _undecidable(expression, "it is nested too deeply") from None


_MOST_ERRORS = 100


def _format_issues(text: str, issues: list[tuple[int, str]]) -> str:
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


def _compile(expression: str, features: Features) -> Program:
    try:
        root = parse(expression)
    except NoExpressionError:
        raise _syntax_error(expression) from None
    except ParseError as fault:
        raise CompileError(f"compilation failed: {_format_issues(expression, fault.issues)}") from None
    known = environment(features)
    issues = _check(root, known)
    if issues:
        raise CompileError(f"compilation failed: {_format_issues(expression, issues)}")
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
            return CompileError(f"compilation failed: {_to_go_message(phrase, expression)}")
    return _undecidable(expression, "it is not an expression")


_AT_START_OF_LINE = lazy_pattern(r"ERROR: <input>:\d+:1: [^\n]*(?=\n?(?:ERROR: |$))")


def _to_go_message(text: str, expression: str) -> str:
    """Convert cel-cpp's message to Go's: cel-cpp escapes the question mark, omits empty lines, and has its own words
    for has()."""
    text = text.replace(r"\u003F", "?").replace("has() argument must be a field selection", WRONG_HAS)
    if not expression:
        return text.replace("<input>:1:1:", "<input>:1:0:")
    return _AT_START_OF_LINE.sub(lambda match: f"{match.group()}\n | \n | ^", text)


def _extensions() -> list[object]:
    from cel_expr_python.ext import ext_optional

    return [ext_optional.ExtOptional()]
