"""A number of pods that may be written as a percentage of them."""

from __future__ import annotations


def scaled(value: int | str, whole: int, *, is_up: bool) -> int | None:
    """GetScaledValueFromIntOrPercent: rounded up or down; None for a text that is no percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    product = int(digits) * whole
    return -(-product // 100) if is_up else product // 100
