"""The Explanation document, validated against its schema."""

from __future__ import annotations

import pytest
from jsonschema import ValidationError

import kschedx
from tests.builders import node, pod
from tests.command import check_document


def explained(*objects: dict[str, object], key: str = "default/web") -> dict[str, object]:
    return kschedx.explain(kschedx.Snapshot.from_objects(objects), key).to_dict()


@pytest.mark.parametrize(
    "requests",
    [pytest.param({"cpu": "1"}, id="fits"), pytest.param({"cpu": "100"}, id="does not fit")],
)
def test_explanations_are_valid(requests: dict[str, str]) -> None:
    containers = [{"name": "main", "resources": {"requests": requests}}]
    check_document(explained(node("n1"), node("n2"), pod("web", containers=containers)))


def test_invalid_explanations_are_found() -> None:
    document = explained(node("n1"), pod("web"))
    document["outcome"] = "Perhaps"
    with pytest.raises(ValidationError, match=r"'Perhaps' is not one of"):
        check_document(document)
