"""How a comprehension goes over its items, and where its variables are kept.

Upstream: cel-go's interpreter/interpretable.go (evalFold).
"""

from __future__ import annotations

from kschedx.cel import costs
from kschedx.cel.evaluation import CostExceededError, Evaluate, Evaluation
from kschedx.cel.printing import go_type
from kschedx.cel.values import Fault, Growing, MapValue, Value, is_list


def slot_reader(slot: int) -> Evaluate:
    def evaluate(run: Evaluation) -> Value:
        return run.slots[slot]

    return evaluate


def accumulated(slot: int, initial: Evaluate) -> Evaluate:
    """What is collected so far; its first value is not evaluated before it is read."""

    def evaluate(run: Evaluation) -> Value:
        value = run.slots[slot]
        if value is None:
            value = initial(run)
            if is_list(value) and not value:
                value = Growing()
            elif isinstance(value, MapValue) and not len(value):
                value = MapValue({})
            run.slots[slot] = value
        return value

    return evaluate


def fold(
    over: Evaluate,
    accumulator: int,
    variable: int,
    variable2: int | None,
    *,
    goes_on: Evaluate | None,
    step: Evaluate,
    result: Evaluate,
) -> Evaluate:
    """`variable2` is None for one variable, `goes_on` for what never stops early; numbers are places of variables."""
    limit = costs.LIMIT

    def evaluate(run: Evaluation) -> Value:
        items = over(run)
        slots = run.slots
        slots[accumulator] = None
        if isinstance(items, MapValue):
            keys: list[Value] = items.own_keys()
            values: list[Value] = [items.find(key) for key in keys] if variable2 is not None else keys
        elif is_list(items):
            keys = values = items if isinstance(items, list) else _copied(run, items)
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
        found = result(run)
        return list(found) if isinstance(found, Growing) else found

    return evaluate


def _copied(run: Evaluation, items: Value) -> list[Value]:
    assert is_list(items)
    run.budget.spend(len(items))
    return list(items)
