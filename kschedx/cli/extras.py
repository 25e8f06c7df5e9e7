"""Packages that only some commands need: extras of the installation, with a clear line where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kschedx.errors import InputError


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the imports of an extra's packages. Raises `InputError` that says how to get them."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "kschedx":
            raise
        raise InputError(
            f"this needs the extra {extra} ({missing.name} is not installed)",
            hint=f"in a clone: pip install '.[{extra}]'",
        ) from None
