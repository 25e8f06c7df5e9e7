"""The priority expander: what its ConfigMap says, and which options that leaves."""

from __future__ import annotations

import pytest

from kschedx.api.types import ConfigMap
from kschedx.autoscaler.expanders import Option, by_priority

SPOT = Option(group="spot-a", nodes=1, pods=(0,))
LARGE = Option(group="large-a", nodes=1, pods=(0,))


def asked(priorities: str) -> tuple[list[str], list[str]]:
    """The groups that are left, and the events."""
    left, events = by_priority([SPOT, LARGE], ConfigMap(data={"priorities": priorities}))
    return [option.group for option in left], events


@pytest.mark.parametrize(
    ("priorities", "left"),
    [
        ("10: [spot.*]\n50: [large.*]", ["large-a"]),
        ("10: [spot.*, large.*]", ["spot-a", "large-a"]),
        ("10: ['.*']\n50: [a$]", ["spot-a", "large-a"]),
        ("0x10: [spot]\n15: [large]", ["spot-a"]),
    ],
)
def test_the_highest_number_wins(priorities: str, left: list[str]) -> None:
    assert asked(priorities) == (left, [])


def test_a_group_that_no_expression_names_is_left_out() -> None:
    left, events = asked("10: [spot]")
    assert left == ["spot-a"]
    assert [event.partition(":")[0] for event in events] == ["Warning PriorityConfigMapNotMatchedGroup"]


@pytest.mark.parametrize(
    ("priorities", "told"),
    [
        ("10: spot", "not a map of numbers to lists of texts"),
        ("high: [spot]", "not a map of numbers to lists of texts"),
        ("10: [3]", "not a map of numbers to lists of texts"),
        (f"'{'9' * 40}': [spot]", "not a map of numbers to lists of texts"),
        ("10: [spot", "Can't parse YAML with priorities in the configmap: not valid YAML"),
        ("[" * 200_000, "Can't parse YAML with priorities in the configmap: nested more than 200 deep"),
        ("10: ['a(?=b)']", "rule a(?=b): error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (f"10: ['{'(' * 5000}']", "error parsing regexp"),
    ],
    ids=["a text", "a word", "no text", "a long number", "cut", "deep", "Perl's", "deep brackets"],
)
def test_what_cannot_be_read_leaves_all(priorities: str, told: str) -> None:
    left, (event,) = asked(priorities)
    assert left == ["spot-a", "large-a"]
    assert told in event
