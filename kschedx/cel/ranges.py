"""Ranges (least, most) of sizes and costs: of uint64, that stop at the largest one.

Upstream: cel-go's checker/cost.go (SizeEstimate, CostEstimate).
"""

from __future__ import annotations

import math
from typing import NamedTuple

MOST = 2**64 - 1


def _factored(number: int, factor: float) -> int:
    product = float(number) * factor
    return MOST if product >= 2.0**64 else min(math.ceil(product), MOST)


class Range(NamedTuple):
    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Range:
        return Range(_factored(self.least, factor), _factored(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def exactly(number: int) -> Range:
    return Range(number, number)


UNKNOWN = Range(0, MOST)
ZERO, ONE = exactly(0), exactly(1)
