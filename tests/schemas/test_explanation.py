"""The Explanation document against its schema."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.schemas import check_document
from tests.builders import node, pod


def explained(*objects: dict[str, object], key: str = "default/web") -> dict[str, object]:
    return kschedx.explain(kschedx.Snapshot.from_objects(objects), key).to_dict()


@pytest.mark.parametrize(
    "requests",
    [pytest.param({"cpu": "1"}, id="fits"), pytest.param({"cpu": "100"}, id="does not fit")],
)
def test_what_is_explained_is_an_explanation(requests: dict[str, str]) -> None:
    containers = [{"name": "main", "resources": {"requests": requests}}]
    check_document(explained(node("n1"), node("n2"), pod("web", containers=containers)))


def test_what_is_wrong_is_named_with_its_place() -> None:
    document = explained(node("n1"), pod("web"))
    document["outcome"] = "Perhaps"
    with pytest.raises(InputError, match=r"explained.json: outcome: 'Perhaps' is not one of"):
        check_document(document, source="explained.json")
