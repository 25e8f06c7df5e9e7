"""Columns of equal values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedx.snapshot.columns import distinct


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_values_are_sorted_and_single(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
