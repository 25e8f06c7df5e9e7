"""Hints for a label that no node has."""

from __future__ import annotations

import pytest

from kschedx import Snapshot
from kschedx.explain.diagnosis import label_hint, label_hints
from tests.builders import node

CLUSTER = Snapshot.from_objects(
    [node(f"n{number}", labels={"disktype": "ssd" if number < 2 else "nvme", "zone": "eu-1a"}) for number in range(5)]
).cluster


@pytest.mark.parametrize(
    ("key", "operator", "values", "nearest"),
    [
        ("disktype", "In", ("sdd",), ("ssd", 2)),
        ("disktype", "=", ("tape",), ("", 0)),
        ("disk-type", "In", ("ssd",), ("disktype", 5)),
        ("rack", "Exists", (), ("", 0)),
        # what some node satisfies, and what asks for absence or compares numbers, needs no hint
        ("disktype", "In", ("sdd", "nvme"), None),
        ("zone", "Exists", (), None),
        ("disk-type", "DoesNotExist", (), None),
        ("disktype", "NotIn", ("ssd",), None),
        ("cores", "Gt", ("8",), None),
        ("metadata.name", "In", ("n9",), None),
    ],
)
def test_the_nearest_label_in_use(
    key: str, operator: str, values: tuple[str, ...], nearest: tuple[str, int] | None
) -> None:
    result = label_hint(key, operator, values, CLUSTER)
    assert (None if result is None else (result.nearest, result.nearest_count)) == nearest


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("failure-domain.beta.kubernetes.io/zone", ""),  # a prefix alone is no likeness
        ("kubernetes.io/arc", "beta.kubernetes.io/arch"),
        ("beta.kubernetes.io/arch-type", "beta.kubernetes.io/arch"),
    ],
)
def test_a_key_with_another_end_is_not_near(key: str, nearest: str) -> None:
    labels = {"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux"}
    result = label_hint(key, "Exists", (), Snapshot.from_objects([node("n", labels=labels)]).cluster)
    assert result is not None
    assert result.nearest == nearest


def test_a_used_key_has_its_values_by_frequency() -> None:
    result = label_hint("disktype", "In", ("tape",), CLUSTER)
    assert result is not None
    assert (result.values, result.in_use) == (("tape",), (("nvme", 3), ("ssd", 2)))


def test_only_requirements_without_nodes_have_a_hint() -> None:
    questions = [("zone", "In", ("eu-1a",)), ("zone", "In", ("eu-1b",))]
    assert [item.values for item in label_hints(questions, CLUSTER)] == [("eu-1b",)]
