"""What a priority is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kschedx.api.types import Pod
from kschedx.legacy.predicates.base import Context
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

MAX_PRIORITY = 10


class Priority(ABC):
    """A score for nodes. `argument` is what a Policy gives to a priority of its own; most have none."""

    def __init__(self, context: Context, argument: object = None) -> None:
        self.context = context
        self.argument = argument

    @abstractmethod
    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        """(node,) int64 for the feasible nodes."""

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) int64 from 0 to 10, once all nodes have a score."""
        return scores


def scaled(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """The highest score becomes 10; `reverse` makes it 0, and zero 10 (NormalizeReduce)."""
    highest = max(int(scores.max(initial=0)), 0)
    if highest == 0:
        return np.full_like(scores, MAX_PRIORITY) if reverse else scores
    shares = MAX_PRIORITY * scores // highest
    return MAX_PRIORITY - shares if reverse else shares
