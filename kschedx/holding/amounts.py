"""Amounts of quotas: thousandths of cpu, whole units of everything else."""

from __future__ import annotations

from kschedx.api.quantity import milli_value, value


def amount(resource: str, written: str | int | float) -> int:
    return milli_value(written) if resource == "cpu" else value(written)
