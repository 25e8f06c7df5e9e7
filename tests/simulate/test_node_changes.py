"""A node that is added from a file is validated like a node of a cluster file."""

from __future__ import annotations

import pytest

from kschedx.errors import InputError, Place
from kschedx.simulate.changes import node_of_file
from tests.builders import node, pod

HERE = Place(source="new.yaml")


def test_a_file_must_have_one_node() -> None:
    result = node_of_file([(pod("beside"), HERE), (node("new", labels={"zone": "a"}), HERE)], "new.yaml")
    assert (result.name, result.metadata.labels["zone"]) == ("new", "a")


@pytest.mark.parametrize("count", [0, 2])
def test_none_or_several_are_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"new.yaml holds {count} nodes, one is needed"):
        node_of_file([(node(f"n{number}"), HERE) for number in range(count)], "new.yaml")


def test_an_invalid_node_is_an_error_with_its_place() -> None:
    wrong = node("new")
    wrong["spec"] = {"taints": [{"key": "team", "effect": "NoWay"}]}
    with pytest.raises(InputError) as refused:
        node_of_file([(wrong, HERE)], "new.yaml")
    assert str(refused.value) == (
        'new.yaml: Node new: spec.taints[0].effect: Unsupported value: "NoWay": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
    )
