"""Schedules in cron's form."""

from __future__ import annotations

import pytest

from kschedx.kube.schedules import is_never_due


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 0 31 2 *", True),
        ("0 0 30 feb *", True),
        ("0 0 31 4,6,9,11 *", True),
        ("CRON_TZ=Europe/Berlin 0 0 31 4 *", True),
        ("0 0 29 2 *", False),
        ("0 0 31 2-3 *", False),
        ("0 0 31 2 mon", False),
        ("0 0 31 2 0-6", False),
        ("0 0 31 2 ?", True),
        ("@daily", False),
        ("@every 1h", False),
        ("0 0 32 2 *", False),
        ("", False),
    ],
)
def test_a_schedule_is_never_due(schedule: str, expected: bool) -> None:
    assert is_never_due(schedule) is expected
