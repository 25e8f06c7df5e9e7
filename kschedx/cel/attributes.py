"""A name, or any value, with the steps that lead into it: fields, keys and indexes, also of optional values.

Upstream: cel-go's interpreter/attributes.go.
"""

from __future__ import annotations

from collections.abc import Callable

from kschedx.cel.evaluation import Evaluate, Evaluation
from kschedx.cel.printing import printed_key
from kschedx.cel.values import NO_OVERLOAD, NONE, Fault, MapValue, Optional, Uint, Value, is_list, type_value

_Qualify = Callable[[Evaluation, Value], Value]

_ABSENT = Optional()
"""What an optional step finds where there is nothing; never seen outside of a chain of steps."""


class Constant:
    """A value that is known without evaluating, and costs nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Attribute:
    """A name or a value, and the steps into it, to which more may be added."""

    __slots__ = ("base", "cost", "optional_steps", "steps")

    def __init__(self, base: Evaluate, cost: int = 1) -> None:
        self.base = base
        self.steps: list[_Qualify] = []
        self.optional_steps: list[bool] = []
        self.cost = cost

    def add(self, step: _Qualify, *, is_optional: bool) -> None:
        self.steps.append(step)
        self.optional_steps.append(is_optional)

    def resolver(self) -> Evaluate:
        """Its value, without the cost of the name."""
        base, steps = self.base, tuple(self.steps)
        if not steps:
            return base
        if any(self.optional_steps):
            return self._optional_resolver()
        if len(steps) == 1:
            only = steps[0]

            def resolve_one(run: Evaluation) -> Value:
                value = base(run)
                kind = value.__class__
                if kind is Fault:
                    return value
                return _into_optional(run, value, steps) if kind is Optional else only(run, value)

            return resolve_one

        def resolve(run: Evaluation) -> Value:
            value = base(run)
            if isinstance(value, Optional):
                return _into_optional(run, value, steps)
            for step in steps:
                if value.__class__ is Fault:
                    return value
                value = step(run, value)
            return value

        return resolve

    def _optional_resolver(self) -> Evaluate:
        base = self.base
        steps = tuple(zip(self.steps, self.optional_steps, strict=True))

        def resolve(run: Evaluation) -> Value:
            value = base(run)
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

        return resolve


def _into_optional(run: Evaluation, value: Value, steps: tuple[_Qualify, ...]) -> Value:
    assert isinstance(value, Optional)
    if value.value is None:
        return value
    inner = value.value
    for step in steps:
        if isinstance(inner, Fault):
            return inner
        inner = _if_present(run, step, inner)
        if inner is _ABSENT:
            return NONE
    return inner if isinstance(inner, Fault) else Optional(inner)


def _if_present(run: Evaluation, step: _Qualify, value: Value) -> Value:
    before = run.cost
    found = step(run, value)
    if isinstance(found, _Missing):
        run.cost = before
        return _ABSENT
    return found


class _Missing(Fault):
    """There is no such key or item."""

    __slots__ = ()


Planned = Constant | Attribute | Evaluate


class ConditionalAttribute(Attribute):
    """One of two, each of which takes the steps."""

    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, condition: Evaluate, then: Attribute, otherwise: Attribute) -> None:
        super().__init__(condition, 0)
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    def add(self, step: _Qualify, *, is_optional: bool) -> None:
        self.then.add(step, is_optional=is_optional)
        self.otherwise.add(step, is_optional=is_optional)

    def resolver(self) -> Evaluate:
        condition, then, otherwise = self.condition, self.then.resolver(), self.otherwise.resolver()

        def resolve(run: Evaluation) -> Value:
            value = condition(run)
            if value is True:
                return then(run)
            if value is False:
                return otherwise(run)
            return value if isinstance(value, Fault) else NO_OVERLOAD

        return resolve


def ready(planned: Planned) -> Evaluate:
    """The function that evaluates a part, once nothing more is added to it."""
    if isinstance(planned, Constant):
        value = planned.value
        return lambda _: value
    if isinstance(planned, Attribute):
        resolve, cost = planned.resolver(), planned.cost
        if not cost:
            return resolve

        def evaluate(run: Evaluation) -> Value:
            value = resolve(run)
            run.cost += cost
            return value

        return evaluate
    return planned


def qualified(value: Value, key: Value) -> Value:
    """What a value holds under a key or an index."""
    if isinstance(value, MapValue):
        found = value.find(key)
        return _Missing(f"no such key: {printed_key(key)}") if found is None else found
    if is_list(value):
        index = _index(key)
        if isinstance(index, Fault):
            return index
        if 0 <= index < len(value):
            return value[index]
        return _Missing(f"index out of bounds: {printed_key(key)}")
    return _Missing(f"no such key: {printed_key(key)}")


def _index(key: Value) -> int | Fault:
    if type(key) is int or isinstance(key, Uint):
        return int(key)
    if isinstance(key, float):
        return int(key) if key == int(key) else Fault(f"unsupported index value {printed_key(key)} in list")
    return Fault(f"unsupported index type '{type_value(key).name}' in list")


def step_to(key: Value) -> _Qualify:
    """A field, or a key or index that is known."""

    def step(run: Evaluation, value: Value) -> Value:
        run.cost += 1
        if isinstance(value, MapValue):
            found = value.find(key)
            if found is not None:
                return found
        return qualified(value, key)

    return step


def presence_of(field: str) -> _Qualify:
    """What has() asks."""

    def step(run: Evaluation, value: Value) -> Value:
        run.cost += 1
        found = qualified(value, field)
        if isinstance(found, Fault) and not isinstance(found, _Missing):
            return found
        return not isinstance(found, Fault)

    return step
