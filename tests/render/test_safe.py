"""Texts of a cluster reach the terminal without control characters and invisible characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.wording import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web-0", "web-0"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\tand\rmore", "two\\nlines\\tand\\rmore"),
        ("\x9b2J", "\\x9b2J"),
        ("user\u202egnp", "user\\u202egnp"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("[bold]markup[/]", "[bold]markup[/]"),
        ("名前 ü", "名前 ü"),
    ],
)
def test_unsafe_characters_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_the_result_is_one_visible_line(text: str) -> None:
    assert not {unicodedata.category(character) for character in visible(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(visible(text)) == visible(text)
