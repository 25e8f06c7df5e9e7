"""Timestamps of manifests in nanoseconds."""

from __future__ import annotations

import pytest

from kschedx.errors import InputError
from kschedx.kube.scalars import LATEST, nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-02T00:00:01Z", 86_401_000_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
        ("1970-01-01T00:00:00.1234567891Z", 123_456_789),
        ("1970-01-01T00:00:00,5Z", 500_000_000),
        ("9999-12-31T23:59:59Z", LATEST - 1),
        ("0001-01-01T00:00:00Z", -LATEST),
    ],
)
def test_nanoseconds(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", "2026-01-31 12:00:00Z"]
)
def test_other_texts_are_errors(text: str) -> None:
    with pytest.raises(InputError, match="is not a time"):
        nanoseconds(text)
