"""Color as in kubectl, and unchanged text."""

from __future__ import annotations

import io
import os
import sys
import termios

import pytest

from kschedx.render.terminal import console, text, wants_colour, width_of, write


@pytest.mark.parametrize(
    ("is_terminal", "environment", "expected"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (False, {"TERM": "xterm"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_color(is_terminal: bool, environment: dict[str, str], expected: bool) -> None:
    assert wants_colour(is_terminal, environment) is expected


@pytest.mark.parametrize(("columns", "expected"), [("80", 80), ("", 100), ("many", 100), ("10", 60)])
def test_width_of_a_pipe(columns: str, expected: int) -> None:
    assert width_of(io.StringIO(), {"COLUMNS": columns}) == expected


def test_a_pager_has_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = os.openpty()
    reading, writing = os.pipe()
    termios.tcsetwinsize(terminal, (24, 72))
    with os.fdopen(terminal, "w") as error, os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stderr", error)
        assert (width_of(pipe, {}), width_of(pipe, {"COLUMNS": "90"}), width_of(io.StringIO(), {})) == (72, 90, 100)
    os.close(controller)
    os.close(reading)


def test_long_lines_and_markup_pass_unchanged() -> None:
    stream = io.StringIO()
    content = "[red]" + "x" * 300 + "[/] :smile: http://example.com 12"
    write([text(content)], console(stream, {}))
    assert stream.getvalue() == content + "\n"


def test_color_only_adds_codes() -> None:
    plain, coloured = io.StringIO(), io.StringIO()
    write([text("✗ no", "bold red")], console(plain, {}))
    write([text("✗ no", "bold red")], console(coloured, {"FORCE_COLOR": "1"}))
    assert plain.getvalue() == "✗ no\n"
    assert "✗" in coloured.getvalue()
    assert "\x1b[" in coloured.getvalue()


def test_a_stream_that_lacks_characters() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    write([text("✗ Plugin: ü")], console(stream, {}))
    stream.flush()
    assert stream.buffer.getvalue() == b"x Plugin: \\xfc\n"
