"""The order of equal elements after Go's sort.Slice: not stable, but deterministic.

Upstream: pattern-defeating quicksort as in Go 1.26's sort package (zsortfunc.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")

LONGEST_INSERTION = 12
_LONG = 50
_STEPS = 5


def sort_slice(items: list[_T], less: Callable[[_T, _T], bool]) -> None:
    """Sort in place, as sort.Slice does."""
    if len(items) <= LONGEST_INSERTION:
        _PatternDefeatingSort(items, less).insertion(0, len(items))
    else:
        _PatternDefeatingSort(items, less).quick(0, len(items), len(items).bit_length())


class _PatternDefeatingSort(Generic[_T]):
    def __init__(self, items: list[_T], less: Callable[[_T, _T], bool]) -> None:
        self._items = items
        self._less = less

    def less(self, i: int, j: int) -> bool:
        return self._less(self._items[i], self._items[j])

    def swap(self, i: int, j: int) -> None:
        items = self._items
        items[i], items[j] = items[j], items[i]

    def insertion(self, low: int, high: int) -> None:
        items, less = self._items, self._less
        for i in range(low + 1, high):
            j = i
            while j > low and less(items[j], items[j - 1]):
                items[j], items[j - 1] = items[j - 1], items[j]
                j -= 1

    def quick(self, low: int, high: int, limit: int) -> None:
        balanced = partitioned = True
        while True:
            length = high - low
            if length <= LONGEST_INSERTION:
                self.insertion(low, high)
                return
            if limit == 0:
                self.heap(low, high)
                return
            if not balanced:
                self.break_patterns(low, high)
                limit -= 1
            pivot, swaps = self.choose_pivot(low, high)
            increasing = swaps == 0
            if swaps == LONGEST_INSERTION:  # every comparison was in the wrong order
                self._items[low:high] = self._items[low:high][::-1]
                pivot = (high - 1) - (pivot - low)
                increasing = True
            if balanced and partitioned and increasing and self.nearly_sorted(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                low = self.part_equal(low, high, pivot)
                continue
            middle, partitioned = self.part(low, high, pivot)
            left, right = middle - low, high - middle
            if left < right:
                balanced = left >= length // 8
                self.quick(low, middle, limit)
                low = middle + 1
            else:
                balanced = right >= length // 8
                self.quick(middle + 1, high, limit)
                high = middle

    def part(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Move smaller elements before the pivot and others behind it. Return the pivot's position and whether nothing
        moved."""
        self.swap(low, pivot)
        i, j = low + 1, high - 1
        first = True
        while True:
            while i <= j and self.less(i, low):
                i += 1
            while i <= j and not self.less(j, low):
                j -= 1
            if i > j:
                break
            first = False
            self.swap(i, j)
            i, j = i + 1, j - 1
        self.swap(j, low)
        return j, first

    def part_equal(self, low: int, high: int, pivot: int) -> int:
        """Move elements equal to the pivot to the front."""
        self.swap(low, pivot)
        i, j = low + 1, high - 1
        while True:
            while i <= j and not self.less(low, i):
                i += 1
            while i <= j and self.less(low, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def nearly_sorted(self, low: int, high: int) -> bool:
        """Try to sort with a few moves, and return whether that succeeded."""
        i = low + 1
        for _ in range(_STEPS):
            while i < high and not self.less(i, i - 1):
                i += 1
            if i == high:
                return True
            if high - low < _LONG:
                return False
            self.swap(i, i - 1)
            if i - low >= 2:
                for j in range(i - 1, 0, -1):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
            if high - i >= 2:
                for j in range(i + 1, high):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
        return False

    def break_patterns(self, low: int, high: int) -> None:
        length = high - low
        if length < 8:
            return
        number = length
        modulus = 1 << length.bit_length()
        middle = low + (length // 4) * 2
        for moved in (middle - 1, middle, middle + 1):
            number ^= (number << 13) & (2**64 - 1)
            number ^= number >> 7
            number ^= (number << 17) & (2**64 - 1)
            other = number & (modulus - 1)
            if other >= length:
                other -= length
            self.swap(moved, low + other)

    def choose_pivot(self, low: int, high: int) -> tuple[int, int]:
        """Return the pivot and the number of comparisons in the wrong order."""
        length = high - low
        swaps = 0

        def ordered(a: int, b: int) -> tuple[int, int]:
            nonlocal swaps
            if self.less(b, a):
                swaps += 1
                return b, a
            return a, b

        def median(a: int, b: int, c: int) -> int:
            a, b = ordered(a, b)
            b, c = ordered(b, c)
            a, b = ordered(a, b)
            return b

        i, j, k = (low + length // 4 * part for part in (1, 2, 3))
        if length >= _LONG:
            i, j, k = (median(position - 1, position, position + 1) for position in (i, j, k))
        return median(i, j, k), swaps

    def heap(self, low: int, high: int) -> None:
        length = high - low
        for root in range((length - 1) // 2, -1, -1):
            self.sift(root, length, low)
        for last in range(length - 1, -1, -1):
            self.swap(low, low + last)
            self.sift(0, last, low)

    def sift(self, root: int, length: int, first: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child
