"""Go's sort.Slice, to the order of equal elements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedx.autoscaler.go_sort import sort_slice


@given(st.lists(st.integers(min_value=0, max_value=6), max_size=400))
def test_it_sorts(numbers: list[int]) -> None:
    items = list(enumerate(numbers))
    sort_slice(items, lambda a, b: a[1] < b[1])
    assert [number for _, number in items] == sorted(numbers)
    assert sorted(items) == list(enumerate(numbers))


@given(st.lists(st.integers(min_value=0, max_value=3), max_size=12))
def test_short_ones_stay_in_order(numbers: list[int]) -> None:
    items = list(enumerate(numbers))
    sort_slice(items, lambda a, b: a[1] < b[1])
    assert items == sorted(enumerate(numbers), key=lambda item: item[1])


def test_equal_ones_stay_where_they_are() -> None:
    items = list(range(100))
    sort_slice(items, lambda a, b: False)
    assert items == list(range(100))


def test_equal_ones_among_many_come_in_gos_order() -> None:
    """What Go 1.26 makes of them: where the parts are of too different a size it moves some."""
    items = list(range(43))
    sort_slice(items, lambda a, b: (a == 40) < (b == 40))
    moved = {place: item for place, item in enumerate(items) if place != item}
    assert moved == {0: 20, 1: 22, 17: 21, 20: 1, 21: 0, 22: 17, 40: 42, 42: 40}
