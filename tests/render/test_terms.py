"""A node selector term and a node in words: the requirement, and the value of the node."""

from __future__ import annotations

import pytest

from kschedx.findings import RequirementMatch, TermMatch
from kschedx.words.constraints import SHOWN_TERMS, expression_text, term_brief, term_facts


def requirement_match(
    key: str, operator: str, *values: str, actual: str | None = None, matched: bool = False
) -> RequirementMatch:
    return RequirementMatch(key=key, operator=operator, values=values, actual=actual, matched=matched)


ZONE = requirement_match("zone", "In", "a", "b", actual="a", matched=True)
DISK = requirement_match("disk", "In", "nvme", actual="ssd")
GPU = requirement_match("gpu", "Exists")


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        (ZONE, "zone In [a, b] ✓ a"),
        (DISK, 'disk In [nvme] ✗ the node has "ssd"'),
        (GPU, "gpu Exists ✗ the node has no such label"),
        (requirement_match("gpu", "DoesNotExist", actual="a100"), 'gpu DoesNotExist ✗ the node has "a100"'),
        (requirement_match("gpu", "DoesNotExist", matched=True), "gpu DoesNotExist ✓"),
        (requirement_match("disk", "=", "ssd", actual="hdd"), 'disk=ssd ✗ the node has "hdd"'),
        (requirement_match("cores", "Gt", "8", actual="4"), 'cores Gt [8] ✗ the node has "4"'),
        (requirement_match("memory", "Gt", "8", actual="16Gi"), 'memory Gt [8] ✗ the node has "16Gi", not an integer'),
        (requirement_match("metadata.name", "In", "n1", actual="n2"), "metadata.name In [n1] ✗ the node is n2"),
        (requirement_match("zone", "In", *"abcdef", actual="z"), 'zone In [a, b, c, d and 2 more] ✗ the node has "z"'),
        (requirement_match("disk", "=", "ssd", actual=""), 'disk=ssd ✗ the node has ""'),
    ],
)
def test_an_expression(requirement: RequirementMatch, words: str) -> None:
    assert expression_text(requirement) == words


def term(index: int, *requirements: RequirementMatch) -> TermMatch:
    return TermMatch(index=index, requirements=requirements)


def term_lines(*terms: TermMatch, label: str = "term") -> list[tuple[str, tuple[str, ...]]]:
    return [(fact.label, fact.items) for fact in term_facts(terms, label)]


def test_one_term_needs_no_number() -> None:
    assert term_lines(term(0, GPU)) == [("term", (expression_text(GPU),))]


def test_the_nearest_term_comes_first_under_its_own_number() -> None:
    texts = term_lines(term(0, DISK, GPU), term(1, ZONE, DISK))
    assert [label for label, _ in texts] == ["term 2", "term 1"]
    assert texts[0][1][-1] == "only one expression fails"
    assert "only one expression fails" not in texts[1][1]


def test_a_selector_is_one_term_without_a_number() -> None:
    assert term_lines(term(0, DISK), label="selector")[0][0] == "selector"


def test_an_empty_term_has_its_meaning() -> None:
    assert term_lines(term(0)) == [("term", ("empty: matches no node",))]


def test_terms_that_are_not_shown_are_counted() -> None:
    texts = term_lines(*(term(number, GPU) for number in range(SHOWN_TERMS + 2)))
    assert texts[-1] == ("", ("2 more terms",))
    assert len(texts) == SHOWN_TERMS + 1


@pytest.mark.parametrize(
    ("terms", "detail"),
    [
        ([term(0, ZONE, DISK)], '"ssd"'),
        ([term(0, GPU)], "without the label"),
        ([term(0, DISK, GPU), term(1, GPU)], "without the label"),
        ([term(0, requirement_match("metadata.name", "In", "n1", actual="n2"))], None),
        ([term(0, ZONE)], None),
        ([], None),
    ],
)
def test_the_values_of_the_node_in_brief(terms: list[TermMatch], detail: str | None) -> None:
    result = term_brief(tuple(terms))
    assert (None if result is None else result.detail) == detail
