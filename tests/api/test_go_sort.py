"""Go's sort.Slice, down to the order of equal elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.go_sort import sort_slice


@given(st.lists(st.integers(min_value=0, max_value=6), max_size=400))
def test_sort_slice_sorts(numbers: list[int]) -> None:
    items = list(enumerate(numbers))
    sort_slice(items, lambda a, b: a[1] < b[1])
    assert [number for _, number in items] == sorted(numbers)
    assert sorted(items) == list(enumerate(numbers))


@given(st.lists(st.integers(min_value=0, max_value=3), max_size=12))
def test_short_slices_are_sorted_stably(numbers: list[int]) -> None:
    items = list(enumerate(numbers))
    sort_slice(items, lambda a, b: a[1] < b[1])
    assert items == sorted(enumerate(numbers), key=lambda item: item[1])


def test_equal_elements_keep_their_order() -> None:
    items = list(range(100))
    sort_slice(items, lambda a, b: False)
    assert items == list(range(100))


@pytest.mark.parametrize(
    ("numbers", "order"),
    [
        ((0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0), (9, 1, 2, 3, 4, 13, 8, 0, 12, 6, 10, 11, 7, 5)),
        (
            tuple(number * 7 % 3 for number in range(60)),
            (
                *(21, 57, 54, 3, 51, 48, 6, 45, 42, 9, 39, 36, 12, 33, 0, 15, 30, 27, 18, 24),
                *(31, 10, 22, 58, 19, 25, 1, 55, 28, 52, 16, 4, 49, 13, 34, 46, 7, 37, 43, 40),
                *(50, 41, 8, 38, 44, 11, 35, 47, 32, 5, 29, 14, 20, 53, 2, 17, 56, 26, 23, 59),
            ),
        ),
    ],
)
def test_equal_elements_have_gos_order(numbers: tuple[int, ...], order: tuple[int, ...]) -> None:
    """The orders are those of Go 1.26; the first slice makes an unbalanced partition."""
    items = list(range(len(numbers)))
    sort_slice(items, lambda a, b: numbers[a] < numbers[b])
    assert tuple(items) == order


def test_a_comparison_that_is_always_true() -> None:
    items = list(range(30))
    sort_slice(items, lambda a, b: True)
    assert items == [
        *(13, 12, 3, 16, 26, 8, 20, 4, 11, 5, 29, 17, 7, 10, 28),
        *(0, 9, 27, 1, 25, 24, 2, 6, 21, 15, 23, 22, 18, 19, 14),
    ]


def test_unbalanced_partitions_have_gos_order() -> None:
    """The order is that of Go 1.26, which moves some elements if partitions have very different sizes."""
    items = list(range(43))
    sort_slice(items, lambda a, b: (a == 40) < (b == 40))
    moved_items = {place: item for place, item in enumerate(items) if place != item}
    assert moved_items == {0: 20, 1: 22, 17: 21, 20: 1, 21: 0, 22: 17, 40: 42, 42: 40}
