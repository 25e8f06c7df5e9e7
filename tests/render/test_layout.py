"""Lines keep to their width, and omitted parts are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kschedx.render.layout import table_lines
from kschedx.render.terminal import columns, cut_end, fact_lines, paragraph, text, wrap
from kschedx.render.view import ItemList, ViewItem
from kschedx.wording import Fact

WORDS = st.lists(st.text("abc名 -/", min_size=1, max_size=60), min_size=1, max_size=12)


@given(WORDS, st.integers(40, 120), st.sampled_from([None, 1, 2, 4]))
def test_facts_keep_to_the_width_and_the_limit(items: list[str], width: int, limit: int | None) -> None:
    lines = fact_lines(Fact.of("used by", *items), width, limit)
    assert all(line.cell_len <= width for line in lines)
    assert limit is None or len(lines) <= limit


@given(WORDS, st.integers(40, 120))
def test_without_a_limit_nothing_is_omitted(items: list[str], width: int) -> None:
    lines = fact_lines(Fact.of("x", *items), width)
    message = "".join(line.plain[12:] for line in lines)
    assert _letters(message) == _letters("".join(items))


def _letters(content: str) -> str:
    return "".join(character for character in content if character.isalnum())


@given(st.text("ab名 ", max_size=200), st.integers(5, 40))
def test_wrapping_and_cutting(content: str, room: int) -> None:
    assert all(cell_len(row) <= room for row in wrap(content, room))
    assert cell_len(cut_end(content, room)) <= room


@pytest.mark.parametrize(("width", "header"), [(32, "failure  lost  pending  down"), (22, "failure  lost  down")])
def test_a_table_leaves_out_columns_of_zeros_only_in_a_narrow_window(width: int, header: str) -> None:
    items = tuple(ViewItem(title=title, values=(lost, 0, 1)) for title, lost in (("node a", 2), ("node b", 0)))
    columns = tuple((label, True) for label in ("lost", "pending", "down"))
    lines = table_lines(ItemList(title="", noun="failure", columns=columns, items=items), width)
    assert lines[0].plain.strip() == header


def test_a_table_without_rows_keeps_its_labels_in_a_narrow_window() -> None:
    lines = table_lines(ItemList(title="", noun="failure", columns=(("pending", True),), items=()), 9)
    assert "failure" in lines[0].plain


def test_a_long_name_has_its_own_line_and_is_not_cut() -> None:
    name = "ip-10-0-0-1.eu-west-1.compute.internal"
    rows = [("node", "lost"), (name, "15"), ("n2", "7")]
    lines = [line.plain for line in columns(rows, right=frozenset({1}), indent=2, header=True, width=44)]
    assert lines == [f"  {'node':36}  lost", f"  {name}", f"  {'':36}    15", f"  {'n2':36}     7"]


def test_a_shortened_fact_counts_the_rest() -> None:
    pods = tuple(f"pod-{number} (priority 0)" for number in range(9))
    fact = Fact.of("used by", *pods, rest=tuple(f"in {9 - shown} others" for shown in range(9)))
    assert [line.plain for line in fact_lines(fact, 60, 1)] == ["  used by   pod-0 (priority 0) · in 8 others"]


def test_a_cut_fact_counts_the_others() -> None:
    fact = Fact.of("used by", "a-pod-whose-name-takes-more-than-a-line", "b", "c")
    assert [line.plain for line in fact_lines(fact, 32, 1)] == ["  used by   a-pod-whose-name… +2"]


def test_a_whole_fact_is_never_shortened() -> None:
    fact = Fact.of("offers", "350m = 8000m allocatable - 7650m requested by 23 pods", whole=True)
    assert len(fact_lines(fact, 40, 1)) == 2


def test_columns_align_by_cells() -> None:
    lines = columns([["名前", "1"], ["b", "22"]], right=frozenset({1}))
    assert [line.plain for line in lines] == ["名前   1", "b     22"]


def test_continuation_lines_are_indented() -> None:
    lines = paragraph("one two three", 22, first="  ", indent=4)
    assert [line.plain for line in lines] == ["  one two three"]
    assert [line.plain for line in paragraph("one two three four five", 24, first="  ", indent=4)] == [
        "  one two three four",
        "    five",
    ]


@pytest.mark.parametrize("markup", ["[bold]x[/]", "[link=http://x]y[/link]", ":smile:"])
def test_markup_is_text(markup: str) -> None:
    assert text(markup).plain == markup
    assert text(markup).parts == ((markup, ""),)


def test_a_long_word_breaks_after_punctuation() -> None:
    word = "deploy/checkout:spec.template.spec.containers[app].resources.requests.cpu=4"
    assert wrap(f"set {word}", 68) == [
        "set",
        "deploy/checkout:spec.template.spec.containers[app].resources.",
        "requests.cpu=4",
    ]
    assert wrap("x" * 70, 30) == ["x" * 30, "x" * 30, "x" * 10]
