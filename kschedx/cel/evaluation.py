"""One evaluation of an expression, and what the function that evaluates a part looks like."""

from __future__ import annotations

from collections.abc import Callable

from kschedx.cel.values import Budget, MapValue, Value


class CostExceededError(Exception):
    """The evaluation costs more than Kubernetes lets it."""


MOST_WORK = 5_000_000
"""Steps that no cost stands for, in one evaluation."""


class Evaluation:
    """What one evaluation has: the device, its variables by their places, and what it has cost so far."""

    __slots__ = ("budget", "cost", "device", "slots")

    def __init__(self, device: MapValue, slots: int) -> None:
        self.device = device
        self.slots: list[Value] = [None] * slots
        self.cost = 0
        self.budget = Budget(MOST_WORK)


Evaluate = Callable[[Evaluation], Value]
