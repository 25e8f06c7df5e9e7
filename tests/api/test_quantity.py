"""Quantities: parsing, printing, and speed on hostile texts."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import InputError
from kschedx.kube.quantity import (
    QuantityFormat,
    Unit,
    Written,
    format_quantities,
    format_quantity,
    milli_value,
    parse_quantity,
    value,
)
from kschedx.kube.scalars import MAX_INT64, MIN_INT64, parse_int64, truncated_quotient, wrap_int32, wrap_int64

FACTORS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "e3": Fraction(1000), "E+2": Fraction(100), "e-2": Fraction(1, 100),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected_value", "expected_milli", "printed"),
    [
        # decimal SI
        ("0", 0, 0, "0"),
        ("250m", 1, 250, "250m"),
        ("2", 2, 2000, "2"),
        ("0.5", 1, 500, "500m"),
        (".5", 1, 500, "500m"),
        ("7.", 7, 7000, "7."),
        ("1.1", 2, 1100, "1100m"),
        ("2000m", 2, 2000, "2"),
        ("100n", 1, 1, "100n"),
        ("1500u", 1, 2, "1500u"),
        ("3k", 3000, 3_000_000, "3k"),
        ("12M", 12_000_000, 12_000_000_000, "12M"),
        ("9E", 9 * 10**18, 0, "9E"),
        ("-250m", -1, -250, "-250m"),
        ("-1.5", -2, -1500, "-1500m"),
        # binary SI
        ("1Ki", 1024, 1_024_000, "1Ki"),
        ("512Mi", 2**29, 2**29 * 1000, "512Mi"),
        ("1024Mi", 2**30, 2**30 * 1000, "1Gi"),
        ("1.5Gi", 1536 * 2**20, 1536 * 2**20 * 1000, "1536Mi"),
        ("0.5Ki", 512, 512_000, "512"),
        ("0.0001Ki", 1, 103, "102400u"),
        ("0.9765625Ki", 1000, 1_000_000, "1k"),
        ("+100000000001Ki", 100_000_000_001 * 1024, 100_000_000_001 * 1_024_000, "100000000001Ki"),
        ("1.1Ki", 1127, 1_126_400, "1126400m"),
        ("7Ei", 7 * 2**60, wrap_int64(7 * 2**60 * 1000), "7Ei"),
        # exponents
        ("12e6", 12_000_000, 12_000_000_000, "12e6"),
        ("1E3", 1000, 1_000_000, "1E3"),
        ("5e-1", 1, 500, "500e-3"),
        ("1e4", 10_000, 10_000_000, "10e3"),
        ("1e+2", 100, 100_000, "100"),
        # texts that upstream's scanner accepts although its expression does not
        (".", 0, 0, "0"),
        ("m", 0, 0, "0"),
        ("-", 0, 0, "0"),
        ("+5", 5, 5000, "+5"),
        ("1.500", 2, 1500, "1.500"),
        (" 1Gi\n", 2**30, 2**30 * 1000, "1Gi"),
    ],
)
def test_quantities_are_parsed_and_printed_as_in_kubernetes(
    text: str, expected_value: int, expected_milli: int, printed: str
) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli_value(), str(quantity)) == (expected_value, expected_milli, printed)


@pytest.mark.parametrize(
    ("text", "expected_value"),
    [
        ("1n", 1),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1e-999999999", 1),
        ("1.0000000001", 2),
        ("0.00000000000000000000", 0),
    ],
)
def test_below_nano_units_values_round_away_from_zero(text: str, expected_value: int) -> None:
    quantity = parse_quantity(text)
    assert quantity.value() == expected_value
    assert quantity.exponent >= -9


@pytest.mark.parametrize(
    ("text", "expected_value", "expected_milli"),
    [
        ("8Ei", MAX_INT64, -1000),
        ("999999Pi", MAX_INT64, -1000),
        ("9" * 1000 + "Gi", MAX_INT64, -1000),
        ("-8Ei", -MAX_INT64, 1000),
        ("9223372036854775807", MAX_INT64, -1000),
        ("9223372036854775808", MIN_INT64, 0),
        ("10000000000000000000", 10**19 - 2**64, wrap_int64(10**22)),
        ("10E", 0, 0),
        ("1e30", 0, 0),
        ("1e999999999", 0, 0),
        ("1234567890123456789012e999999999", 0, 0),
        ("1e4294967296", 1, 1000),
    ],
)
def test_values_beyond_int64_equal_kube_schedulers(text: str, expected_value: int, expected_milli: int) -> None:
    assert (value(text), milli_value(text)) == (expected_value, expected_milli)


FORMAT = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC = "unable to parse numeric part of quantity"
SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", FORMAT, "found ''"),
        ("one", FORMAT, "found 'one'"),
        ("1 Gi", FORMAT, "found '1 Gi', did you mean '1Gi'?"),
        ("4GB", FORMAT, "found '4GB', did you mean '4G'?"),
        ("1.2.3", FORMAT, "found '1.2.3'"),
        ("1_000", FORMAT, "found '1_000'"),
        ("1,5", FORMAT, "found '1,5'"),
        ("\u0663", FORMAT, "found '\u0663'"),
        ("1\x1b[31m", FORMAT, r"found '1\x1b[31m'"),
        ("5gi", FORMAT, "found '5gi', did you mean '5Gi'?"),
        ("5KI", FORMAT, "found '5KI', did you mean '5Ki'?"),
        ("5K", SUFFIX, "found '5K', did you mean '5k'?"),
        ("5mi", SUFFIX, "found '5mi', did you mean '5Mi'?"),
        ("5e", SUFFIX, "found '5e', did you mean '5E'?"),
        ("12+5", SUFFIX, "found '12+5'"),
        ("1e99999999999999999999", SUFFIX, "found '1e99999999999999999999'"),
        ("Ei", NUMERIC, "found 'Ei'"),
        ("1" * 1000 + "Q", FORMAT, f"found '{'1' * 40}...'"),
    ],
)
def test_errors_have_kubernetes_text_and_a_suggestion(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as error:
        parse_quantity(text)
    assert (error.value.message, error.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("number", "printed"), [(2, "2"), (0.5, "500m"), (1.0, "1"), (1e16, "10P"), (-3, "-3"), (1e-7, "100e-9")]
)
def test_numbers_are_quantities(number: Written, printed: str) -> None:
    assert str(parse_quantity(number)) == printed


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_and_infinity_are_errors(number: float) -> None:
    with pytest.raises(InputError, match="quantities must match"):
        parse_quantity(number)


@pytest.mark.parametrize(
    "text",
    [
        "9" * 4000,
        "0" * 4000,
        "0" * 3999 + "x",
        "9" * 2000 + "." + "9" * 1999,
        "9" * 3990 + "e99999999",
        "." + "9" * 3980 + "e-2000000000",
        "E" * 4000,
        "9" * 3998 + "Ei",
        "-" * 4000,
        "9" * 1_000_000,
        10**100_000,
    ],
    ids=lambda text: f"{str(text)[:4]}..." if isinstance(text, str) else "int",
)
def test_long_texts_are_fast(text: Written) -> None:
    start = time.process_time()
    try:
        quantity = parse_quantity(text)
        assert MIN_INT64 <= quantity.value() <= MAX_INT64
        assert MIN_INT64 <= quantity.milli_value() <= MAX_INT64
    except InputError:
        pass
    assert time.process_time() - start < 0.2


def test_an_error_for_too_long_texts() -> None:
    with pytest.raises(InputError, match="a quantity of more than 4000 characters is not supported"):
        parse_quantity("1" * 4001)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1Gi", QuantityFormat.BINARY_SI),
        ("0.5Ki", QuantityFormat.BINARY_SI),
        ("0.0001Ki", QuantityFormat.DECIMAL_SI),
        ("1G", QuantityFormat.DECIMAL_SI),
        ("1E", QuantityFormat.DECIMAL_SI),
        ("1e9", QuantityFormat.DECIMAL_EXPONENT),
        ("1E9", QuantityFormat.DECIMAL_EXPONENT),
    ],
)
def test_the_format_follows_the_suffix(text: str, form: QuantityFormat) -> None:
    assert parse_quantity(text).format is form


def ceiling(exact: Fraction) -> int:
    """Round away from zero."""
    rounded = -(-abs(exact.numerator) // exact.denominator)
    return rounded if exact > 0 else -rounded


numbers = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(min_value=-(10**9), max_value=10**9, places=6).map(lambda number: format(number, "f")),
)
texts = st.tuples(numbers, st.sampled_from(sorted(FACTORS)))


@given(texts)
def test_values_are_exact_to_a_nano_unit(text: tuple[str, str]) -> None:
    number, suffix = text
    quantity = parse_quantity(number + suffix)
    exact = Fraction(number) * FACTORS[suffix]
    if quantity.format is QuantityFormat.BINARY_SI:
        exact = max(min(exact, Fraction(MAX_INT64)), Fraction(-MAX_INT64))
    rounded = Fraction(ceiling(exact * 10**9), 10**9)
    assert quantity.mantissa * Fraction(10) ** quantity.exponent == rounded
    if abs(rounded) * 1000 <= MAX_INT64:
        assert quantity.value() == ceiling(rounded)
        assert quantity.milli_value() == ceiling(rounded * 1000)


@given(texts)
def test_printed_quantities_parse_to_themselves(text: tuple[str, str]) -> None:
    quantity = parse_quantity("".join(text))
    reparsed = parse_quantity(str(quantity))
    assert reparsed == quantity
    assert reparsed.value() == quantity.value()
    assert parse_quantity(str(reparsed)) == reparsed


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=12))
def test_any_text_of_the_alphabet_is_a_quantity_or_an_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except InputError:
        return
    assert parse_quantity(str(quantity)) == quantity
    assert MIN_INT64 <= quantity.value() <= MAX_INT64


@pytest.mark.parametrize(
    ("amount", "unit", "printed"),
    [
        (2500, Unit.MILLI, "2500m"),
        (2000, Unit.MILLI, "2"),
        (0, Unit.MILLI, "0"),
        (-350, Unit.MILLI, "-350m"),
        (2**29, Unit.BYTE, "512Mi"),
        (2**30, Unit.BYTE, "1Gi"),
        (16_393_244 * 1024, Unit.BYTE, "16393244Ki"),
        (2 * 10**9, Unit.BYTE, "2G"),
        (1023, Unit.BYTE, "1023"),
        (1000, Unit.COUNT, "1000"),
    ],
)
def test_format_quantity(amount: int, unit: Unit, printed: str) -> None:
    assert format_quantity(amount, unit) == printed


@pytest.mark.parametrize(
    ("amounts", "unit", "printed"),
    [
        ((2000, 350, 8000, 7650), Unit.MILLI, ("2000m", "350m", "8000m", "7650m")),
        ((2000, 8000, 0), Unit.MILLI, ("2", "8", "0")),
        ((2**30, 2**29), Unit.BYTE, ("1024Mi", "512Mi")),
        ((2**30, 10**9), Unit.BYTE, ("1073741824", "1000000000")),
        ((), Unit.BYTE, ()),
    ],
)
def test_format_quantities_with_one_unit(amounts: tuple[int, ...], unit: Unit, printed: tuple[str, ...]) -> None:
    assert format_quantities(amounts, unit) == printed


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), st.sampled_from([Unit.BYTE, Unit.COUNT]))
def test_formatted_amounts_are_exact(amounts: list[int], unit: Unit) -> None:
    assert [value(text) for text in format_quantities(amounts, unit)] == amounts


@given(st.lists(st.integers(-(2**50), 2**50), min_size=1))
def test_formatted_milli_amounts_are_exact(amounts: list[int]) -> None:
    assert [milli_value(text) for text in format_quantities(amounts, Unit.MILLI)] == amounts


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", Unit.MILLI),
        ("memory", Unit.BYTE),
        ("ephemeral-storage", Unit.BYTE),
        ("hugepages-2Mi", Unit.BYTE),
        ("pods", Unit.COUNT),
        ("nvidia.com/gpu", Unit.COUNT),
        ("example.com/cpu", Unit.COUNT),
    ],
)
def test_the_unit_of_a_resource(resource: str, unit: Unit) -> None:
    assert Unit.of(resource) is unit


# --- Go's integers


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("0" * 5000 + "1", 1),
        ("9223372036854775807", MAX_INT64),
        ("9223372036854775808", None),
        ("-9223372036854775808", MIN_INT64),
        ("-9223372036854775809", None),
        ("9" * 5000, None),
        ("", None),
        ("+", None),
        (" 7", None),
        ("7\n", None),
        ("1_000", None),
        ("0x7", None),
        ("7.0", None),
        ("\u0667", None),
    ],
)
def test_parse_int64(text: str, integer: int | None) -> None:
    assert parse_int64(text) == integer


@given(st.integers(MIN_INT64, MAX_INT64), st.integers(-(2**70), 2**70))
def test_overflow_keeps_the_low_bits(in_range: int, any_number: int) -> None:
    assert wrap_int64(in_range) == in_range
    assert (wrap_int64(any_number) - any_number) % 2**64 == 0
    assert (wrap_int32(any_number) - any_number) % 2**32 == 0
    assert -(2**31) <= wrap_int32(any_number) < 2**31


@given(st.integers(MIN_INT64, MAX_INT64), st.integers(MIN_INT64, MAX_INT64).filter(bool))
def test_division_truncates_towards_zero(dividend: int, divisor: int) -> None:
    quotient = truncated_quotient(dividend, divisor)
    remainder = dividend - quotient * divisor
    assert abs(remainder) < abs(divisor)
    assert remainder == 0 or (remainder < 0) == (dividend < 0)
