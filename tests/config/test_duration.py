"""Durations are parsed and printed as in Go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.kube.scalars import Duration

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("10s", 10 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1h1s", 3601 * SECOND),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", SECOND),
        ("-2ms", -2_000_000),
        ("3us4ns", 3004),
        ("3µs", 3000),
        ("3μs", 3000),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_parsing_follows_go(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "-", "5", "s", ".s", "1 s", "1d", "5x", "1s ", "++1s", "1e3s", "\u0661s", "00"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        Duration.parse(text)


def test_a_duration_overflows_after_292_years() -> None:
    with pytest.raises(ValueError, match="less than 292 years"):
        Duration.parse("9223372036854775808ns")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (500_000_000, "500ms"),
        (-5 * SECOND, "-5s"),
        (90 * SECOND, "1m30s"),
        (3600 * SECOND, "1h0m0s"),
        (3661 * SECOND + 1, "1h1m1.000000001s"),
    ],
)
def test_printing_follows_go(nanoseconds: int, text: str) -> None:
    assert str(Duration(nanoseconds)) == text


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_a_printed_duration_parses_to_itself(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds
