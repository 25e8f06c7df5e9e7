"""Clusters in the forms of users: joined outputs, two formats, and lists without a kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedx.errors import InputError
from kschedx.sources.files import load_documents
from tests.builders import node, pod

OBJECTS = [node("a"), pod("p")]


def listed(*items: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def text(value: object, form: str) -> str:
    return json.dumps(value) + "\n" if form == "json" else yaml.safe_dump(value)


def joined(folder: Path, form: str) -> None:
    (folder / f"cluster.{form}").write_text("".join(text(listed(item), form) for item in OBJECTS))


def joined_in_another_order(folder: Path, form: str) -> None:
    texts = [
        text(listed(item), form) if form == "json" else yaml.safe_dump(listed(item), sort_keys=False)
        for item in OBJECTS
    ]
    (folder / f"cluster.{form}").write_text("".join(texts))


def joined_objects(folder: Path, form: str) -> None:
    (folder / f"cluster.{form}").write_text("".join(text(item, form) for item in OBJECTS))


def without_kind(folder: Path, form: str) -> None:
    (folder / f"cluster.{form}").write_text(text({"items": OBJECTS}, form))


def array(folder: Path, form: str) -> None:
    (folder / f"cluster.{form}").write_text(text(OBJECTS, form))


def twice(folder: Path, form: str) -> None:
    (folder / f"cluster.{form}").write_text(text(listed(*OBJECTS), form))
    (folder / "cluster.yml").write_text(text(listed(*OBJECTS[::-1]), "yaml"))


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("write", [joined, joined_in_another_order, joined_objects, without_kind, array, twice])
def test_forms(write: Callable[[Path, str], None], form: str, tmp_path: Path) -> None:
    if write is twice and form == "yaml":
        pytest.skip("two files of one format are two clusters")
    write(tmp_path, form)
    items = [(item["kind"], place.line) for item, place in load_documents(str(tmp_path))]
    assert {kind for kind, _ in items} == {"Node", "Pod"}
    assert len(items) == 2
    assert all(line for _, line in items)


def test_files_of_one_name_and_two_formats_are_both_read(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text(listed(node("a")), "json"))
    (tmp_path / "c.yaml").write_text(text(listed(node("b")), "yaml"))
    assert len(load_documents(str(tmp_path))) == 2


def test_a_json_patch_is_named_in_the_error(tmp_path: Path) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text(text([{"op": "replace", "path": "/spec/replicas", "value": 3}], "yaml"))
    with pytest.raises(InputError, match=r"a JSON patch .*kubectl kustomize FOLDER"):
        load_documents(str(file))
