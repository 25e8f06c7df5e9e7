"""Unquoted YAML values have the meaning that they have in kubectl."""

from __future__ import annotations

import pytest

from kschedx.sources.yaml import Scalar, mapping_key, resolve

BIG = 1 << 63


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # booleans and null
        ("true", True), ("True", True), ("TRUE", True), ("tRUE", "tRUE"), ("yes", True), ("Yes", True), ("on", True),
        ("On", True), ("y", True), ("Y", True), ("no", False), ("NO", False), ("off", False), ("n", False),
        ("N", False),
        ("yES", "yES"), ("nope", "nope"), ("~", None), ("", None), ("null", None), ("NULL", None), ("nULL", "nULL"),
        # integers
        ("0", 0), ("-0", 0), ("8080", 8080), ("+5", 5), ("-5", -5), ("0777", 511), ("-0777", -511), ("0o777", 511),
        ("0O17", 15), ("0x1F", 31), ("-0x1f", -31), ("0b101", 5), ("1_000", 1000), ("0_7", 7), ("08", 8), ("00", 0),
        ("0o8", "0o8"), ("0x", "0x"), ("0b2", "0b2"), ("_1", "_1"), ("1_", 1), ("9223372036854775807", BIG - 1),
        ("18446744073709551615", 2 * BIG - 1), ("-9223372036854775808", -BIG), ("18446744073709551616", 2.0**64),
        ("+18446744073709551615", 2.0**64),
        ("0xffffffffffffffffff", "0xffffffffffffffffff"),
        # floats: those without a fraction are integers, as Go's JSON writes them
        ("0.1", 0.1), ("0.10", 0.1), (".5", 0.5), ("-.5", -0.5), ("5.", 5), ("1.0", 1), ("1e3", 1000), ("1E3", 1000),
        ("1e-3", 0.001), ("1.5e9", 1_500_000_000), ("1_0.5", 10.5), ("1e400", "1e400"), ("1e", "1e"), (".", "."),
        (".e5", ".e5"), ("._5", "._5"),
        # what only looks like a number
        ("12:30", "12:30"), ("1:2:3", "1:2:3"), ("2001-01-01", "2001-01-01"), ("2001-01-01T00:00:00Z",) * 2,
        ("1.2.3", "1.2.3"), ("100m", "100m"), ("1Gi", "1Gi"), ("-", "-"), ("+", "+"), ("inf", "inf"), ("NaN", "NaN"),
        ("٣", "٣"), ("1 000", "1 000"), ("<<", "<<"), ("=", "="),
    ],
)  # fmt: skip
def test_unquoted(text: str, value: Scalar) -> None:
    result = resolve(text)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "5", "5"), ("str", "yes", "yes"), ("int", "5", 5), ("float", "1", 1), ("bool", "on", True),
        ("null", "", None), ("binary", "aGVs\nbG8=", "hello"), ("timestamp", "2001-01-01", "2001-01-01"),
    ],
)  # fmt: skip
def test_tagged(tag: str, text: str, value: Scalar) -> None:
    result = resolve(text, f"tag:yaml.org,2002:{tag}")
    assert (result, type(result)) == (value, type(value))


def test_a_tag_of_another_application_makes_text() -> None:
    assert resolve("5", "!custom") == "5"


@pytest.mark.parametrize(
    ("tag", "text", "message"),
    [
        ("int", "x", '"x" is no !!int'), ("int", "yes", '"yes" is no !!int'), ("bool", "1", '"1" is no !!bool'),
        ("binary", "?", "!!binary is not valid base64"),
        ("float", ".inf", ".inf cannot be used: JSON has no such number"),
    ],
)  # fmt: skip
def test_wrong_tags(tag: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("?", r"\?").replace(".", r"\.") + "$"):
        resolve(text, f"tag:yaml.org,2002:{tag}")


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN"])
def test_values_without_a_form_in_json(text: str) -> None:
    with pytest.raises(ValueError, match="JSON has no such number"):
        resolve(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (True, "true"), (False, "false"), (8080, "8080"), (-1, "-1"), (1.5, "1.5"), (0.1, "0.1"),
     (1234567.5, "1.2345675e+06"), (0.00001, "1e-05"), (123.25, "123.25"), (1e-300, "0"), (1e300 + 0.5, ".inf")],
)  # fmt: skip
def test_keys(value: Scalar, text: str) -> None:
    assert mapping_key(value) == text


def test_null_is_no_key() -> None:
    with pytest.raises(ValueError, match="null cannot be a key"):
        mapping_key(None)
