"""The ConfigMap of the priority expander: its effect, and the events of an invalid one."""

from __future__ import annotations

import pytest

from kschedx.autoscaler.sizes import Option, prioritize
from kschedx.kube.types import ConfigMap

GROUPS = ("spot-a", "spot-b", "demand-a")
INVALID = "Warning PriorityConfigMapInvalid: Wrong configuration for priority expander: "


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ("10: [demand]\n20: [spot]", ("spot-a", "spot-b")),
        ("10: ['.*']\n50: ['-a$']", ("spot-a", "demand-a")),
        ("10: [nothing]", GROUPS),
        ("-3: [spot]\n-1: [demand]", ("demand-a",)),
        ("10: ['(?P<kind>spot)']", ("spot-a", "spot-b")),
        ("0x10: [spot]\n15: [demand]", ("spot-a", "spot-b")),
        ("10: [spot]\n20:", ("spot-a", "spot-b")),
        ("10: [spot]\n20: [3]", ("spot-a", "spot-b")),
        ("10: [spot]\n20: [~]", GROUPS),
    ],
)
def test_the_highest_matching_priority_remains(priorities: str, expected: tuple[str, ...]) -> None:
    result, _ = prioritize(_options(), ConfigMap(data={"priorities": priorities}))
    assert tuple(item.group for item in result) == expected


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ("10: ['[']", "error parsing regexp: missing closing ]: `[`"),
        ("10: ['a(?=b)']", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("10: ['*']", "error parsing regexp: missing argument to repetition operator: `*`"),
    ],
)
def test_expressions_follow_gos_syntax(priorities: str, expected: str) -> None:
    result, events = prioritize(_options(), ConfigMap(data={"priorities": priorities}))
    assert tuple(item.group for item in result) == GROUPS
    rule = priorities[len("10: ['") : -len("']")]
    assert events == [
        f"{INVALID}Can't compile regexp rule for priority 10 and rule {rule}: {expected}. Ignoring update."
    ]


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        pytest.param("10: spot", "not a map of numbers to lists of texts", id="a text"),
        pytest.param("high: [spot]", "not a map of numbers to lists of texts", id="a word"),
        pytest.param("10: [[spot]]", "not a map of numbers to lists of texts", id="no text"),
        pytest.param(f"'{'9' * 40}': [spot]", "not a map of numbers to lists of texts", id="a long number"),
        pytest.param("10: [spot", "not valid YAML", id="cut"),
        pytest.param("[" * 200_000, "nested more than 200 deep", id="deep"),
    ],
)
def test_invalid_priorities_keep_all_options(priorities: str, expected: str) -> None:
    result, (event,) = prioritize(_options(), ConfigMap(data={"priorities": priorities}))
    assert tuple(item.group for item in result) == GROUPS
    assert event.startswith(f"{INVALID}Can't parse YAML with priorities in the configmap: ")
    assert expected in event


def test_an_unmatched_group_has_an_event() -> None:
    _, events = prioritize(_options(), ConfigMap(data={"priorities": "10: [spot]"}))
    assert [event.partition(":")[0] for event in events] == ["Warning PriorityConfigMapNotMatchedGroup"]


def _options() -> list[Option]:
    return [Option(group=name, nodes=1, pods=(0,)) for name in GROUPS]
