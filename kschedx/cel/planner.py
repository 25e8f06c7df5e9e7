"""From a checked syntax tree to functions that evaluate it, and count its cost as they go.

A part that names something or looks into it (`Attribute`) costs one for the name and one for each step; constants, and
lists and maps of them, are made once and cost nothing; a comprehension costs what its parts do, each time.

Upstream: cel-go's interpreter/planner.go and decorators.go, as apiserver sets them up.
"""

from __future__ import annotations

from typing import assert_never

from kschedx.cel import costs, regex
from kschedx.cel.attributes import (
    Attribute,
    ConditionalAttribute,
    Constant,
    Planned,
    presence_of,
    qualified,
    ready,
    step_to,
)
from kschedx.cel.calls import (
    called,
    equality,
    implementation,
    logical,
    membership_in_constants,
    not_strictly_false,
    optional_or,
)
from kschedx.cel.environment import Environment
from kschedx.cel.evaluation import MOST_WORK, CostExceededError, Evaluate, Evaluation
from kschedx.cel.folds import accumulated, fold, slot_reader
from kschedx.cel.printing import printed_key
from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.values import Budget, Fault, MapValue, Optional, UndecidedError, Value, is_list, map_key


class PlanError(Exception):
    """The expression is right by its types, and cannot be made ready; `str()` is what cel-go says."""


class Plan:
    """An expression that is ready: its function, and how many places for variables it needs."""

    def __init__(self, root: Expr, environment: Environment) -> None:
        """Raises `PlanError`."""
        planner = _Planner(environment)
        self._evaluate = ready(planner.plan(root))
        self._slots = planner.slots
        self.reads_device = planner.reads_device

    def evaluate(self, device: MapValue) -> Value:
        """Raises `CostExceededError`, and `UndecidedError`."""
        run = Evaluation(device, self._slots)
        value = self._evaluate(run)
        if run.cost > costs.LIMIT:
            raise CostExceededError
        return value


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))


class _Planner:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, Evaluate]] = []
        self.slots = 0
        self.reads_device = False

    def plan(self, one: Expr) -> Planned:
        match one:
            case Literal():
                return Constant(one.value)
            case Ident():
                return Constant(one.stands_for) if one.stands_for is not None else Attribute(self._variable(one.name))
            case Select():
                return self._select(one)
            case Call():
                return self._call(one)
            case ListNode():
                return self._list(one)
            case MapNode():
                return self._map(one)
            case StructNode():
                raise UndecidedError(f"what a message of the type {one.type_name} is, is not known")
            case Comprehension():
                return self._comprehension(one)
        assert_never(one)

    def _variable(self, name: str) -> Evaluate:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        self.reads_device = True
        return lambda run: run.device

    # --- steps into a value

    def _select(self, one: Select) -> Planned:
        if one.stands_for is not None:
            return Constant(one.stands_for)
        attribute = self._as_attribute(one.operand)
        field = one.field
        if one.is_test:
            attribute.add(presence_of(field), is_optional=False)
            tested = Attribute(attribute.resolver(), 0)
            return ready(tested)
        attribute.add(step_to(field), is_optional=False)
        return attribute

    def _as_attribute(self, one: Expr) -> Attribute:
        planned = self.plan(one)
        return planned if isinstance(planned, Attribute) else Attribute(ready(planned))

    def _indexed(self, one: Call, *, is_optional: bool) -> Planned:
        attribute = self._as_attribute(one.arguments[0])
        index = self.plan(one.arguments[1])
        if isinstance(index, Constant):
            attribute.add(step_to(index.value), is_optional=is_optional)
            return attribute
        by = index.resolver() if isinstance(index, Attribute) else ready(index)

        def step(run: Evaluation, value: Value) -> Value:
            key = by(run)
            run.cost += 1
            return key if isinstance(key, Fault) else qualified(value, key)

        attribute.add(step, is_optional=is_optional)
        return attribute

    # --- calls

    def _call(self, one: Call) -> Planned:
        match one.function:
            case "_&&_":
                return logical(self._ready_arguments(one), stops_at=False)
            case "_||_":
                return logical(self._ready_arguments(one), stops_at=True)
            case "_?_:_":
                condition = ready(self.plan(one.arguments[0]))
                return ConditionalAttribute(condition, *map(self._as_branch, one.arguments[1:]))
            case "_==_" | "_!=_":
                return equality(*self._ready_arguments(one), is_equal=one.function == "_==_")
            case "_[_]":
                return self._indexed(one, is_optional=False)
            case "_[?_]" | "_?._":
                return self._indexed(one, is_optional=True)
            case "or" if one.overloads == ("optional_or_optional",) or len(one.overloads) > 1:
                return optional_or(*self._ready_arguments(one), unwraps=False)
            case "orValue" if one.overloads == ("optional_orValue_value",) or len(one.overloads) > 1:
                return optional_or(*self._ready_arguments(one), unwraps=True)
            case "@not_strictly_false":
                return not_strictly_false(*self._ready_arguments(one))
        return self._function(one)

    def _ready_arguments(self, one: Call) -> list[Evaluate]:
        return [ready(self.plan(each)) for each in one.children()]

    def _as_branch(self, one: Expr) -> Attribute:
        """A branch's name costs nothing, its steps do."""
        planned = self.plan(one)
        return planned if isinstance(planned, Attribute) else Attribute(ready(planned), 0)

    def _function(self, one: Call) -> Planned:
        planned = [self.plan(each) for each in one.children()]
        function = self._environment.functions[one.function]
        overload = one.overloads[0] if len(one.overloads) == 1 else ""
        if overload == "in_list" and isinstance(planned[1], Constant) and is_list(planned[1].value):
            membership = membership_in_constants(ready(planned[0]), list(planned[1].value))
            if membership is not None:
                return membership
        run = implementation(function, overload)
        if function.name in _CONVERSIONS and len(planned) == 1 and isinstance(planned[0], Constant):
            value = run(Budget(MOST_WORK), planned[0].value)
            if isinstance(value, Fault):
                raise PlanError(value.message)
            return Constant(value)
        if function.name in ("find", "findAll") and isinstance(planned[1], Constant):
            compiled = regex.compiled(str(planned[1].value))
            if isinstance(compiled, Fault):
                raise PlanError(compiled.message)
        return called(run, [ready(each) for each in planned], costs.of_call(function.name, overload))

    # --- lists and maps

    def _list(self, one: ListNode) -> Planned:
        planned = [self.plan(each) for each in one.elements]
        if all(isinstance(each, Constant) for each in planned) and not one.optionals:
            return Constant([each.value for each in planned if isinstance(each, Constant)])
        elements = [ready(each) for each in planned]
        optionals = one.optionals

        def evaluate(run: Evaluation) -> Value:
            found: list[Value] = []
            for index, element in enumerate(elements):
                value = element(run)
                if value.__class__ is Fault or isinstance(value, Fault):
                    run.cost += costs.LIST
                    return value
                if index in optionals:
                    if not isinstance(value, Optional):
                        return Fault(
                            f"cannot initialize optional list element from non-optional value {printed_key(value)}"
                        )
                    if value.value is None:
                        continue
                    value = value.value
                found.append(value)
            run.cost += costs.LIST
            return found

        return evaluate

    def _map(self, one: MapNode) -> Planned:
        planned = [(self.plan(key), self.plan(value), is_optional) for key, value, is_optional in one.entries]
        if all(isinstance(key, Constant) and isinstance(value, Constant) for key, value, _ in planned):
            entries = {}
            for key, value, _ in planned:
                assert isinstance(key, Constant)
                assert isinstance(value, Constant)
                entries[_hashed(key.value)] = value.value
            return Constant(MapValue(entries))
        parts = [(ready(key), ready(value), is_optional) for key, value, is_optional in planned]

        def evaluate(run: Evaluation) -> Value:
            found: dict[object, Value] = {}
            for key_of, value_of, is_optional in parts:
                key = key_of(run)
                value = key if isinstance(key, Fault) else value_of(run)
                if isinstance(value, Fault):
                    run.cost += costs.MAP
                    return value
                own = _hashed(key)
                if is_optional:
                    if not isinstance(value, Optional):
                        return Fault(
                            f"cannot initialize optional entry '{printed_key(key)}' from non-optional value "
                            f"{printed_key(value)}"
                        )
                    if value.value is None:
                        found.pop(own, None)
                        continue
                    value = value.value
                found[own] = value
            run.cost += costs.MAP
            return MapValue(found)

        return evaluate

    # --- comprehensions

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _comprehension(self, one: Comprehension) -> Planned:
        initial = ready(self.plan(one.initial))
        over = ready(self.plan(one.over))
        accumulator, variable, variable2 = self._slot(), self._slot(), self._slot()
        self._scopes.append({one.accumulator: accumulated(accumulator, initial)})
        names = {one.variable: slot_reader(variable)}
        if one.variable2:
            names[one.variable2] = slot_reader(variable2)
        self._scopes.append(names)
        condition, step = self.plan(one.condition), ready(self.plan(one.step))
        self._scopes.pop()
        result = ready(self.plan(one.result))
        self._scopes.pop()
        goes_on = None if isinstance(condition, Constant) and condition.value is True else ready(condition)
        return fold(
            over, accumulator, variable, variable2 if one.variable2 else None, goes_on=goes_on, step=step, result=result
        )


def _hashed(key: Value) -> object:
    try:
        hash(key)
    except TypeError:
        raise UndecidedError("a map has a key that is no text and no number") from None
    return map_key(key)
