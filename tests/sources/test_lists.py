"""Lists are replaced by their items, at any depth and with any form of their kind."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kschedx.errors import InputError
from kschedx.sources.lists import _MAX_NESTING, flatten

POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("document", "objects", "indexes"),
    [
        (POD, [POD], (None,)),
        ({"kind": "List", "items": [POD, POD]}, [POD, POD], (0, 1)),
        ([POD, POD], [POD, POD], (0, 1)),
        ({"kind": "List", "items": []}, [], ()),
        ({"kind": "List", "items": None}, [], ()),
        ({"kind": "List"}, [], ()),
        ({"kind": "List", "items": [{"kind": "List", "items": [POD, POD]}, POD]}, [POD, POD, POD], (0, 0, 1)),
        (
            {"kind": "List", "items": [{"kind": "PodList", "apiVersion": "v1", "items": [{"x": 1}]}]},
            [{**POD, "x": 1}],
            (0,),
        ),
        ({"kind": "PodList", "apiVersion": "v1", "items": [{"x": 1}, {}]}, [{**POD, "x": 1}, POD], (0, 1)),
        ({"kind": "PodList", "apiVersion": "v1", "items": [{"kind": None, "x": 1}]}, [{**POD, "x": 1}], (0,)),
        ({"items": [{}], "apiVersion": "a/v1", "kind": "SetList"}, [{"apiVersion": "a/v1", "kind": "Set"}], (0,)),
        ({"kind": "PodList", "apiVersion": "v1", "items": None}, [], ()),
        ({"kind": "List", "items": [{"kind": "PodList", "items": None}, POD]}, [POD], (1,)),
        ({"kind": "ShoppingList"}, [{"kind": "ShoppingList"}], (None,)),
        ({"kind": "Pod", "items": [1]}, [{"kind": "Pod", "items": [1]}], (None,)),
    ],
)  # fmt: skip
def test_flatten(document: Any, objects: list[Any], indexes: tuple[int | None, ...]) -> None:
    flat = flatten(json.dumps(document).encode())
    assert (msgspec.json.decode(flat.items), flat.indexes) == (objects, indexes)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, 'no "kind", so this is not a Kubernetes object'),
        ({"kind": ""}, 'no "kind", so this is not a Kubernetes object'),
        ({"kind": "List", "items": [{}]}, 'no "kind", so this is not a Kubernetes object'),
        ({"kind": "List", "items": {}}, "items: not an array"),
        ({"kind": 1}, "kind and apiVersion are strings, so this is not a Kubernetes object"),
        ({"kind": "List", "items": [None]}, "not an object, so this is not a Kubernetes object"),
        ("text", "not an object, so this is not a Kubernetes object"),
    ],
)
def test_errors(document: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        flatten(json.dumps(document).encode())
    assert str(caught.value) == message


def test_depth_is_limited() -> None:
    document: dict[str, Any] = POD
    for _ in range(_MAX_NESTING + 1):
        document = {"kind": "List", "items": [document]}
    with pytest.raises(InputError, match=f"lists nested more than {_MAX_NESTING} deep"):
        flatten(json.dumps(document).encode())
    assert flatten(json.dumps(document["items"][0]).encode()).indexes == (0,)
