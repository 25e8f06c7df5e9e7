"""What a call does with the values of its arguments, and what it costs: operators, then every other function.

Upstream: cel-go's interpreter/interpretable.go and decorators.go.
"""

from __future__ import annotations

from kschedx.cel import costs
from kschedx.cel.comparison import equal
from kschedx.cel.evaluation import CostExceededError, Evaluate, Evaluation
from kschedx.cel.functions import Function, Run, dispatched, guarded
from kschedx.cel.values import NO_OVERLOAD, Budget, Duration, Fault, Optional, Timestamp, Value, map_key

_RECEIVERS = (str, Timestamp, Duration)
"""Values that know functions by themselves, and say so of one that they do not."""


def logical(terms: list[Evaluate], *, stops_at: bool) -> Evaluate:
    """Of two terms; a fault counts only where the other one does not decide."""
    first, second = terms

    def evaluate(run: Evaluation) -> Value:
        one = first(run)
        if one is stops_at:
            return one
        other = second(run)
        if other is stops_at:
            return other
        for value in (one, other):
            if not isinstance(value, bool):
                return value if isinstance(value, Fault) else NO_OVERLOAD
        return not stops_at

    return evaluate


def not_strictly_false(argument: Evaluate) -> Evaluate:
    def evaluate(run: Evaluation) -> Value:
        value = argument(run)
        run.cost += 1
        return value is not False

    return evaluate


def equality(first: Evaluate, second: Evaluate, *, is_equal: bool) -> Evaluate:
    cost = costs.equality if is_equal else costs.inequality

    def evaluate(run: Evaluation) -> Value:
        one = first(run)
        other = second(run)
        if isinstance(one, Fault):
            found: Value = one
        elif isinstance(other, Fault):
            found = other
        elif is_equal:
            found = equal(one, other, run.budget)
        else:
            found = equal(one, other, run.budget) is not True
        run.cost += cost((one, other), found)
        return found

    return evaluate


def optional_or(first: Evaluate, second: Evaluate, *, unwraps: bool) -> Evaluate:
    """`or()`, or `orValue()`, which unwraps; the second is evaluated where the first holds nothing."""

    def evaluate(run: Evaluation) -> Value:
        one = first(run)
        if not isinstance(one, Optional):
            return one
        if one.value is None:
            return second(run)
        return one.value if unwraps else one

    return evaluate


def membership_in_constants(item: Evaluate, items: list[Value]) -> Evaluate | None:
    """Of a list of constants: it costs nothing. None where an item is no plain value."""
    if not items:
        return lambda _: False
    if not all(map(_is_plain, items)):
        return None
    known = {map_key(one) for one in items}

    def evaluate(run: Evaluation) -> Value:
        value = item(run)
        if isinstance(value, Fault):
            return value
        return _is_plain(value) and map_key(value) in known

    return evaluate


def _is_plain(value: Value) -> bool:
    return isinstance(value, bool | int | float | str) and not isinstance(value, Duration | Timestamp)


def implementation(function: Function, overload: str) -> Run:
    """What a function does; `overload` is empty where several fit by their types."""
    if function.run is not None:
        return _with_first_argument(function, function.run)
    if overload:
        found = next(one for one in function.overloads if one.id == overload)
        own = guarded(function, found)
        if own is not None:
            return own
    runnable = [one for one in function.overloads if one.run is not None]
    if len(runnable) == 1:
        only = guarded(function, runnable[0])
        assert only is not None
        return only
    return dispatched(function)


def _with_first_argument(function: Function, own: Run) -> Run:
    """What every overload does, of the values that it is for."""
    takes, name = function.takes, function.name
    if not takes:
        return own

    def run(budget: Budget, *arguments: Value) -> Value:
        if type(arguments[0]) in takes:
            return own(budget, *arguments)
        return NO_OVERLOAD if isinstance(arguments[0], _RECEIVERS) else Fault(f"no such overload: {name}")

    return run


def called(own: Run, arguments: list[Evaluate], cost: costs.CallCost | None) -> Evaluate:
    """A call that costs one where `cost` is None."""
    limit = costs.LIMIT
    if len(arguments) == 2:
        first, second = arguments

        def evaluate_two(run: Evaluation) -> Value:
            one = first(run)
            other = second(run)
            if isinstance(one, Fault):
                found: Value = one
            elif isinstance(other, Fault):
                found = other
            else:
                found = own(run.budget, one, other)
            if cost is None:
                run.cost += 1
            else:
                run.cost += cost((one, other), found)
                if run.cost > limit:
                    raise CostExceededError
            return found

        return evaluate_two

    def evaluate(run: Evaluation) -> Value:
        values = []
        for argument in arguments:
            value = argument(run)
            values.append(value)
            if isinstance(value, Fault):
                break
        whole = len(values) == len(arguments)
        failed = values[-1] if values and isinstance(values[-1], Fault) else None
        found = own(run.budget, *values) if failed is None else failed
        if whole:
            run.cost += 1 if cost is None else cost(values, found)
            if run.cost > limit:
                raise CostExceededError
        return found

    return evaluate
