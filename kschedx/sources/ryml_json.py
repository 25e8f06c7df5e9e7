"""rapidyaml, which has no type hints: YAML to JSON text, as that library reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import cast


def to_json(text: bytes) -> bytes:
    """One document's JSON. Raises ValueError for what rapidyaml cannot parse or not write as JSON.

    The JSON need not be valid, nor what kubectl reads: unquoted `+5` stays so, and an unquoted `0777` becomes a string.
    """
    import ryml

    with _silent_stderr():
        try:
            written = cast(str | None, ryml.emit_json(ryml.parse_in_arena(text)))
        except ryml.ExceptionBasic:
            raise ValueError("rapidyaml cannot read this") from None
        except UnicodeDecodeError:
            raise ValueError("not valid UTF-8") from None
    return (written or "null").encode()


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """rapidyaml writes its errors to the process's stderr, besides raising them."""
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
