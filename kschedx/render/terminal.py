"""Where the text goes: colour as kubectl decides it, and a width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import IO

from rich.console import Console
from rich.text import Text

FORCED_BY = ("FORCE_COLOR", "CLICOLOR_FORCE")
DEFAULT_WIDTH = 100
"""Where standard output is no terminal and COLUMNS is not set."""


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """NO_COLOR forbids it, FORCE_COLOR and CLICOLOR_FORCE force it; a dumb terminal and a pipe go without."""
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name) not in (None, "", "0") for name in FORCED_BY):
        return True
    return is_terminal and environment.get("TERM", "") not in ("", "dumb")


def width_of(stream: IO[str], environment: Mapping[str, str]) -> int:
    """COLUMNS, else the terminal's width, else `DEFAULT_WIDTH`; never below 60."""
    written = environment.get("COLUMNS", "")
    if written.isdecimal() and int(written):
        return max(int(written), 60)
    if stream.isatty():
        return max(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, 60)
    return DEFAULT_WIDTH


def console(stream: IO[str] | None = None, environment: Mapping[str, str] | None = None) -> Console:
    """A console that writes text as it is: no markup, no emoji codes, no wrapping of its own."""
    stream = sys.stdout if stream is None else stream
    environment = os.environ if environment is None else environment
    colour = wants_colour(stream.isatty(), environment)
    return Console(
        file=stream,
        width=width_of(stream, environment),
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
        _environ={},
    )


def write(lines: Iterable[Text], out: Console) -> None:
    """Print lines one below the other, without blanks at their ends.

    A character that the stream's encoding lacks is shown as an escape.
    """
    encoding = getattr(out.file, "encoding", None) or "utf-8"
    for one in lines:
        shown = _encodable(one, encoding)
        shown.rstrip()
        out.print(shown, soft_wrap=True)


_PLAIN = {"✓": "+", "✗": "x", "·": "-", "…": "~", "×": "x", "‖": "="}
"""Our own marks where the terminal has no such characters."""


def _encodable(one: Text, encoding: str) -> Text:
    try:
        one.plain.encode(encoding)
    except UnicodeEncodeError:
        plain = "".join(_PLAIN.get(character, character) for character in one.plain)
        return Text(plain.encode(encoding, "backslashreplace").decode(encoding))
    return one.copy()
