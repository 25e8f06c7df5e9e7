"""From a checked syntax tree to functions that evaluate it and count its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec import Struct

from kschedx.cel import costs, regex
from kschedx.cel.environment import Environment
from kschedx.cel.functions import Function, Run, dispatch, guard
from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.values import (
    NO_OVERLOAD,
    NONE,
    Budget,
    CelDuration,
    Fault,
    GrowingList,
    MapValue,
    Optional,
    Semver,
    Timestamp,
    Uint,
    UndecidedError,
    Value,
    equal,
    go_type,
    is_list,
    map_key,
    printed_key,
    type_value,
)
from kschedx.kube.devices import EvaluationError


class CostExceededError(Exception):
    """The evaluation exceeds Kubernetes' cost limit."""


_MOST_WORK = 5_000_000  # the maximum number of steps without a cost in one evaluation


class _Evaluation:
    """The state of an evaluation: the device, its variables by slot, and its cost so far."""

    __slots__ = ("budget", "cost", "device", "slots")

    def __init__(self, device: MapValue, slots: int) -> None:
        self.device = device
        self.slots: list[Value] = [None] * slots
        self.cost = 0
        self.budget = Budget(_MOST_WORK)


_Evaluate = Callable[[_Evaluation], Value]


# A name or value with the steps into it: fields, keys, and indexes, also of optional values. Upstream: cel-go's
# interpreter/attributes.go.

_Qualify = Callable[[_Evaluation, Value], Value]

_ABSENT = Optional()  # the result of an optional step without a value; used only within a chain of steps


class _Constant(Struct):
    """A value that is known without evaluation and has no cost."""

    value: Value


class _AttributePath(Struct):
    """A name or value with its steps, to which more may be added."""

    base: _Evaluate
    cost: int = 1
    steps: list[tuple[_Qualify, bool]] = []  # each with whether it is optional

    def add(self, step: _Qualify, *, is_optional: bool) -> None:
        self.steps.append((step, is_optional))

    def resolver(self) -> _Evaluate:
        """Return a function for its value without the cost of the name."""
        base, steps = self.base, tuple(self.steps)
        if not steps:
            return base

        def walk(run: _Evaluation, value: Value) -> Value:
            is_optional = isinstance(value, Optional)
            if isinstance(value, Optional):
                if value.value is None:
                    return value
                value = value.value
            for step, is_optional_step in steps:
                if isinstance(value, Fault):
                    return value
                is_optional = is_optional or is_optional_step
                value = _if_present(run, step, value) if is_optional else step(run, value)
                if value is _ABSENT:
                    return NONE
            return value if isinstance(value, Fault) or not is_optional else Optional(value)

        if any(is_optional for _, is_optional in steps):
            return lambda run: walk(run, base(run))
        plain = tuple(step for step, _ in steps)

        def resolve(run: _Evaluation) -> Value:
            value = base(run)
            if value.__class__ is Optional:
                return walk(run, value)
            for step in plain:
                if isinstance(value, Fault):
                    return value
                value = step(run, value)
            return value

        return resolve


def _if_present(run: _Evaluation, step: _Qualify, value: Value) -> Value:
    before = run.cost
    result = step(run, value)
    if isinstance(result, _NoSuchKey):
        run.cost = before
        return _ABSENT
    return result


class _NoSuchKey(Fault):
    """The key or item does not exist."""


_Planned = _Constant | _AttributePath | _Evaluate


class _ConditionalAttribute(_AttributePath, kw_only=True):
    """One of two attributes, each of which takes the steps. `base` is the condition."""

    then: _AttributePath
    otherwise: _AttributePath

    def add(self, step: _Qualify, *, is_optional: bool) -> None:
        self.then.add(step, is_optional=is_optional)
        self.otherwise.add(step, is_optional=is_optional)

    def resolver(self) -> _Evaluate:
        condition, then, otherwise = self.base, self.then.resolver(), self.otherwise.resolver()

        def resolve(run: _Evaluation) -> Value:
            value = condition(run)
            if value is True:
                return then(run)
            if value is False:
                return otherwise(run)
            return value if isinstance(value, Fault) else NO_OVERLOAD

        return resolve


def _ready(planned: _Planned) -> _Evaluate:
    """Return the function that evaluates a part, after all steps are added."""
    if isinstance(planned, _Constant):
        value = planned.value
        return lambda _: value
    if isinstance(planned, _AttributePath):
        resolve, cost = planned.resolver(), planned.cost
        if not cost:
            return resolve

        def evaluate(run: _Evaluation) -> Value:
            value = resolve(run)
            run.cost += cost
            return value

        return evaluate
    return planned


def _qualify(value: Value, key: Value) -> Value:
    if isinstance(value, MapValue):
        item = value.find(key)
        return _NoSuchKey(f"no such key: {printed_key(key)}") if item is None else item
    if is_list(value):
        index = _index(key)
        if isinstance(index, Fault):
            return index
        if 0 <= index < len(value):
            return value[index]
        return _NoSuchKey(f"index out of bounds: {printed_key(key)}")
    return _NoSuchKey(f"no such key: {printed_key(key)}")


def _index(key: Value) -> int | Fault:
    if type(key) is int or isinstance(key, Uint):
        return int(key)
    if isinstance(key, float):
        return int(key) if key == int(key) else Fault(f"unsupported index value {printed_key(key)} in list")
    return Fault(f"unsupported index type '{type_value(key).name}' in list")


def _step_to(key: Value) -> _Qualify:
    """Return the step to a field, or to a constant key or index."""

    def step(run: _Evaluation, value: Value) -> Value:
        run.cost += 1
        if isinstance(value, MapValue):
            item = value.find(key)
            if item is not None:
                return item
        return _qualify(value, key)

    return step


def _presence_of(field: str) -> _Qualify:
    def step(run: _Evaluation, value: Value) -> Value:
        run.cost += 1
        item = _qualify(value, field)
        if isinstance(item, Fault) and not isinstance(item, _NoSuchKey):
            return item
        return not isinstance(item, Fault)

    return step


# Calls and their costs: operators, then all other functions. Upstream: cel-go's interpreter/interpretable.go and
# decorators.go.

_RECEIVERS = (str, Timestamp, CelDuration)  # types with their own functions and their own error for an unknown one


def _logical(terms: list[_Evaluate], *, stops_at: bool) -> _Evaluate:
    """Combine two terms; a fault counts only if the other term does not decide."""
    first, second = terms

    def evaluate(run: _Evaluation) -> Value:
        item = first(run)
        if item is stops_at:
            return item
        other = second(run)
        if other is stops_at:
            return other
        for value in (item, other):
            if not isinstance(value, bool):
                return value if isinstance(value, Fault) else NO_OVERLOAD
        return not stops_at

    return evaluate


def _plan_loop_condition(argument: _Evaluate) -> _Evaluate:
    def evaluate(run: _Evaluation) -> Value:
        value = argument(run)
        run.cost += 1
        return value is not False

    return evaluate


def _equality(first: _Evaluate, second: _Evaluate, *, is_equal: bool) -> _Evaluate:
    cost = costs.equality if is_equal else costs.shorter_traversal

    def evaluate(run: _Evaluation) -> Value:
        item = first(run)
        other = second(run)
        if isinstance(item, Fault):
            result: Value = item
        elif isinstance(other, Fault):
            result = other
        elif is_equal:
            result = equal(item, other, run.budget)
        else:
            result = equal(item, other, run.budget) is not True
        run.cost += cost((item, other), result)
        return result

    return evaluate


def _optional_or(first: _Evaluate, second: _Evaluate, *, unwraps: bool) -> _Evaluate:
    """`or()`, or `orValue()`, which unwraps; the second is evaluated only if the first is empty."""

    def evaluate(run: _Evaluation) -> Value:
        item = first(run)
        if not isinstance(item, Optional):
            return item
        if item.value is None:
            return second(run)
        return item.value if unwraps else item

    return evaluate


def _membership_in_constants(item: _Evaluate, items: list[Value]) -> _Evaluate | None:
    """Membership in a list of constants, which costs nothing. None if an item is not a plain value."""
    if not items:
        return lambda _: False
    if not all(map(_is_plain, items)):
        return None
    known = {map_key(item) for item in items}

    def evaluate(run: _Evaluation) -> Value:
        value = item(run)
        if isinstance(value, Fault):
            return value
        if isinstance(value, Semver | bytes):
            kind = "types.Bytes" if isinstance(value, bytes) else "cel.Semver"
            raise EvaluationError(f"internal error: runtime error: hash of unhashable type {kind}")
        return _is_plain(value) and map_key(value) in known

    return evaluate


def _is_plain(value: Value) -> bool:
    return isinstance(value, bool | int | float | str) and not isinstance(value, CelDuration | Timestamp)


def _implementation(function: Function, overload: str) -> Run:
    """Return the implementation of a function; `overload` is empty if several fit the types."""
    if function.run is not None:
        return _with_first_argument(function, function.run)
    if overload:
        implemented = next(candidate for candidate in function.overloads if candidate.id == overload)
        own = guard(function, implemented)
        if own is not None:
            return own
    runnable = [overload for overload in function.overloads if overload.run is not None]
    if len(runnable) == 1:
        only = guard(function, runnable[0])
        assert only is not None
        return only
    return dispatch(function)


def _with_first_argument(function: Function, own: Run) -> Run:
    """Apply the common implementation to values of the accepted types."""
    takes, name = function.takes, function.name
    if not takes:
        return own

    def run(budget: Budget, *arguments: Value) -> Value:
        if type(arguments[0]) in takes:
            return own(budget, *arguments)
        return NO_OVERLOAD if isinstance(arguments[0], _RECEIVERS) else Fault(f"no such overload: {name}")

    return run


def _of_text(own: Run) -> Run:
    """Apply a function whose pattern is known before, and which has its own error for a value that is no text."""
    return lambda budget, text, pattern: own(budget, text, pattern) if isinstance(text, str) else NO_OVERLOAD


_LIMIT = 1_000_000  # Kubernetes stops a selector that exceeds it (CELSelectorExpressionMaxCost)


def _plan_call(own: Run, arguments: list[_Evaluate], cost: costs.CallCost | None) -> _Evaluate:
    """Return a call; its cost is 1 if `cost` is None."""
    limit = _LIMIT
    if len(arguments) == 2:
        first, second = arguments

        def evaluate_two(run: _Evaluation) -> Value:
            item = first(run)
            other = second(run)
            if isinstance(item, Fault):
                result: Value = item
            elif isinstance(other, Fault):
                result = other
            else:
                result = own(run.budget, item, other)
            if cost is None:
                run.cost += 1
            else:
                run.cost += cost((item, other), result)
                if run.cost > limit:
                    raise CostExceededError
            return result

        return evaluate_two

    def evaluate(run: _Evaluation) -> Value:
        values = []
        for argument in arguments:
            value = argument(run)
            values.append(value)
            if isinstance(value, Fault):
                break
        whole = len(values) == len(arguments)
        failed = values[-1] if values and isinstance(values[-1], Fault) else None
        result = own(run.budget, *values) if failed is None else failed
        if whole:
            run.cost += 1 if cost is None else cost(values, result)
            if run.cost > limit:
                raise CostExceededError
        return result

    return evaluate


# The iteration of a comprehension, and the slots of its variables. Upstream: cel-go's interpreter/interpretable.go
# (evalFold).


def _slot_reader(slot: int) -> _Evaluate:
    def evaluate(run: _Evaluation) -> Value:
        return run.slots[slot]

    return evaluate


def _plan_accumulator(slot: int, initial: _Evaluate) -> _Evaluate:
    """The accumulator; its initial value is evaluated on first use."""

    def evaluate(run: _Evaluation) -> Value:
        value = run.slots[slot]
        if value is None:
            value = initial(run)
            if is_list(value) and not value:
                value = GrowingList()
            elif isinstance(value, MapValue) and not len(value):
                value = MapValue({})
            run.slots[slot] = value
        return value

    return evaluate


def _fold(
    over: _Evaluate,
    accumulator: int,
    variable: int,
    variable2: int | None,
    *,
    goes_on: _Evaluate | None,
    step: _Evaluate,
    result: _Evaluate,
) -> _Evaluate:
    """`variable2` is None for one variable, `goes_on` if the iteration never stops early; numbers are slots of
    variables."""
    limit = _LIMIT

    def evaluate(run: _Evaluation) -> Value:
        items = over(run)
        slots = run.slots
        slots[accumulator] = None
        if isinstance(items, MapValue):
            keys: list[Value] = items.own_keys()
            values: list[Value] = [items.find(key) for key in keys] if variable2 is not None else keys
        elif is_list(items):
            keys = values = items if isinstance(items, list) else _copy_list(run, items)
        elif isinstance(items, Fault):
            return items
        elif variable2 is not None:
            return Fault(f"unsupported comprehension range type: {go_type(items)}")
        else:
            return Fault(f"got '{go_type(items)}', expected iterable type")
        is_map = isinstance(items, MapValue)
        for index, value in enumerate(values):
            if variable2 is None:
                slots[variable] = value
            else:
                slots[variable] = keys[index] if is_map else index
                slots[variable2] = value
            if goes_on is not None and goes_on(run) is False:
                break
            slots[accumulator] = step(run)
            if run.cost > limit:
                raise CostExceededError
        folded = result(run)
        return list(folded) if isinstance(folded, GrowingList) else folded

    return evaluate


def _copy_list(run: _Evaluation, items: Value) -> list[Value]:
    assert is_list(items)
    run.budget.spend(len(items))
    return list(items)


# An `_AttributePath` costs one for the name and one for each step; constants, and lists and maps of them, are created
# once and cost nothing; a comprehension costs what its parts cost, each time. Upstream: cel-go's interpreter/planner.go
# and decorators.go, as apiserver sets them up.


class PlanError(Exception):
    """The types are valid, but the expression cannot be planned; `str()` is cel-go's message."""


class PlannedExpression:
    """A planned expression: its function, and the number of slots for variables."""

    def __init__(self, root: Expr, environment: Environment) -> None:
        """Raises `PlanError`."""
        planner = _Planner(environment)
        self._evaluate = _ready(planner.plan(root))
        self._slots = planner.slots
        self.reads_device = planner.reads_device

    def evaluate(self, device: MapValue) -> Value:
        """Raises `CostExceededError` and `UndecidedError`."""
        run = _Evaluation(device, self._slots)
        value = self._evaluate(run)
        if run.cost > _LIMIT:
            raise CostExceededError
        return value


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))


class _Planner:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, _Evaluate]] = []
        self.slots = 0
        self.reads_device = False

    def plan(self, expr: Expr) -> _Planned:
        match expr:
            case Literal():
                return _Constant(expr.value)
            case Ident():
                if expr.stands_for is not None:
                    return _Constant(expr.stands_for)
                return _AttributePath(self._variable(expr.name))
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListNode():
                return self._list(expr)
            case MapNode():
                return self._map(expr)
            case StructNode():
                raise UndecidedError(
                    f"kschedx does not know how kube-scheduler builds messages of type {expr.type_name}"
                )
            case Comprehension():
                return self._comprehension(expr)
        assert_never(expr)

    def _variable(self, name: str) -> _Evaluate:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        self.reads_device = True
        return lambda run: run.device

    # --- steps into a value

    def _select(self, select: Select) -> _Planned:
        if select.stands_for is not None:
            return _Constant(select.stands_for)
        attribute = self._plan_attribute(select.operand)
        field = select.field
        if select.is_test:
            attribute.add(_presence_of(field), is_optional=False)
            tested = _AttributePath(attribute.resolver(), 0)
            return _ready(tested)
        attribute.add(_step_to(field), is_optional=False)
        return attribute

    def _plan_attribute(self, expr: Expr) -> _AttributePath:
        planned = self.plan(expr)
        return planned if isinstance(planned, _AttributePath) else _AttributePath(_ready(planned))

    def _plan_index(self, call: Call, *, is_optional: bool) -> _Planned:
        attribute = self._plan_attribute(call.arguments[0])
        index = self.plan(call.arguments[1])
        if isinstance(index, _Constant):
            attribute.add(_step_to(index.value), is_optional=is_optional)
            return attribute
        by = index.resolver() if isinstance(index, _AttributePath) else _ready(index)

        def step(run: _Evaluation, value: Value) -> Value:
            key = by(run)
            run.cost += 1
            return key if isinstance(key, Fault) else _qualify(value, key)

        attribute.add(step, is_optional=is_optional)
        return attribute

    # --- calls

    def _call(self, call: Call) -> _Planned:
        match call.function:
            case "_&&_":
                return _logical(self._ready_arguments(call), stops_at=False)
            case "_||_":
                return _logical(self._ready_arguments(call), stops_at=True)
            case "_?_:_":
                condition = _ready(self.plan(call.arguments[0]))
                then, otherwise = map(self._plan_branch, call.arguments[1:])
                return _ConditionalAttribute(condition, 0, then=then, otherwise=otherwise)
            case "_==_" | "_!=_":
                return _equality(*self._ready_arguments(call), is_equal=call.function == "_==_")
            case "_[_]":
                return self._plan_index(call, is_optional=False)
            case "_[?_]" | "_?._":
                return self._plan_index(call, is_optional=True)
            case "or" if call.overloads == ("optional_or_optional",) or len(call.overloads) > 1:
                return _optional_or(*self._ready_arguments(call), unwraps=False)
            case "orValue" if call.overloads == ("optional_orValue_value",) or len(call.overloads) > 1:
                return _optional_or(*self._ready_arguments(call), unwraps=True)
            case "@not_strictly_false":
                return _plan_loop_condition(*self._ready_arguments(call))
        return self._function(call)

    def _ready_arguments(self, call: Call) -> list[_Evaluate]:
        return [_ready(self.plan(each)) for each in call.children()]

    def _plan_branch(self, expr: Expr) -> _AttributePath:
        """The name of a branch costs nothing, its steps do."""
        planned = self.plan(expr)
        return planned if isinstance(planned, _AttributePath) else _AttributePath(_ready(planned), 0)

    def _function(self, call: Call) -> _Planned:
        planned = [self.plan(each) for each in call.children()]
        function = self._environment.functions[call.function]
        overload = call.overloads[0] if len(call.overloads) == 1 else ""
        if overload == "in_list" and isinstance(planned[1], _Constant) and is_list(planned[1].value):
            membership = _membership_in_constants(_ready(planned[0]), list(planned[1].value))
            if membership is not None:
                return membership
        run = _implementation(function, overload)
        if function.name in _CONVERSIONS and len(planned) == 1 and isinstance(planned[0], _Constant):
            value = run(Budget(_MOST_WORK), planned[0].value)
            if isinstance(value, Fault):
                raise PlanError(value.message)
            return _Constant(value)
        if function.name in ("find", "findAll") and isinstance(planned[1], _Constant):
            compiled = regex.compile_pattern(str(planned[1].value))
            if isinstance(compiled, Fault):
                raise PlanError(compiled.message)
        if function.name == "matches" and isinstance(planned[1], _Constant):
            run = _of_text(run)
        return _plan_call(run, [_ready(each) for each in planned], costs.call_cost(function.name, overload))

    # --- lists and maps

    def _list(self, node: ListNode) -> _Planned:
        planned = [self.plan(each) for each in node.elements]
        if all(isinstance(each, _Constant) for each in planned) and not node.optionals:
            return _Constant([each.value for each in planned if isinstance(each, _Constant)])
        elements = [_ready(each) for each in planned]
        optionals = node.optionals

        def evaluate(run: _Evaluation) -> Value:
            values: list[Value] = []
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
                values.append(value)
            run.cost += costs.LIST
            return values

        return evaluate

    def _map(self, node: MapNode) -> _Planned:
        planned = [(self.plan(key), self.plan(value), is_optional) for key, value, is_optional in node.entries]
        if all(isinstance(key, _Constant) and isinstance(value, _Constant) for key, value, _ in planned):
            entries = {}
            for key, value, _ in planned:
                assert isinstance(key, _Constant)
                assert isinstance(value, _Constant)
                entries[_hashable_key(key.value)] = value.value
            return _Constant(MapValue(entries))
        parts = [(_ready(key), _ready(value), is_optional) for key, value, is_optional in planned]

        def evaluate(run: _Evaluation) -> Value:
            entries: dict[object, Value] = {}
            for key_of, value_of, is_optional in parts:
                key = key_of(run)
                value = key if isinstance(key, Fault) else value_of(run)
                if isinstance(value, Fault):
                    run.cost += costs.MAP
                    return value
                own = _hashable_key(key)
                if is_optional:
                    if not isinstance(value, Optional):
                        return Fault(
                            f"cannot initialize optional entry '{printed_key(key)}' from non-optional value "
                            f"{printed_key(value)}"
                        )
                    if value.value is None:
                        entries.pop(own, None)
                        continue
                    value = value.value
                entries[own] = value
            run.cost += costs.MAP
            return MapValue(entries)

        return evaluate

    # --- comprehensions

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _comprehension(self, comprehension: Comprehension) -> _Planned:
        initial = _ready(self.plan(comprehension.initial))
        over = _ready(self.plan(comprehension.over))
        accumulator, variable, variable2 = self._slot(), self._slot(), self._slot()
        self._scopes.append({comprehension.accumulator: _plan_accumulator(accumulator, initial)})
        names = {comprehension.variable: _slot_reader(variable)}
        if comprehension.variable2:
            names[comprehension.variable2] = _slot_reader(variable2)
        self._scopes.append(names)
        condition, step = self.plan(comprehension.condition), _ready(self.plan(comprehension.step))
        self._scopes.pop()
        result = _ready(self.plan(comprehension.result))
        self._scopes.pop()
        goes_on = None if isinstance(condition, _Constant) and condition.value is True else _ready(condition)
        return _fold(
            over,
            accumulator,
            variable,
            variable2 if comprehension.variable2 else None,
            goes_on=goes_on,
            step=step,
            result=result,
        )


def _hashable_key(key: Value) -> object:
    try:
        hash(key)
    except TypeError:
        raise UndecidedError("a map has a key that is neither a string nor a number") from None
    return map_key(key)
