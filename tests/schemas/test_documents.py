"""Every document that the tests expect, held against the schema that is published for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kschedx import schemas
from tests.command import ROOT, kschedx

MARK = "kschedx/v1"


def documents() -> list[tuple[str, dict[str, Any]]]:
    """Golden documents, alone in a file or below the command that printed them."""
    found = []
    for folder in ("golden", "diff", "doctor"):
        for path in sorted((ROOT / "tests" / folder).rglob("*")):
            document = _document(path) if path.suffix in (".json", ".txt") else None
            if document is not None and document.get("kind") in schemas.NAMES:
                found.append((str(path.relative_to(ROOT / "tests")), document))
    return found


def _document(path: Path) -> dict[str, Any] | None:
    text = path.read_text(encoding="utf-8")
    if MARK not in text:
        return None
    below = text.partition("\n")[2] if text.startswith("$ ") else text
    below = below.partition("\n--- exit code")[0]
    document = json.loads(below) if below.startswith("{") else yaml.safe_load(below)
    return document if isinstance(document, dict) and document.get("apiVersion") == MARK else None


DOCUMENTS = documents()


def test_there_are_golden_documents_of_each_kind() -> None:
    kinds = {document["kind"] for _, document in DOCUMENTS}
    assert {"Explanation", "ProfileDifference", "Diagnosis"} <= kinds


@pytest.mark.parametrize("document", [pytest.param(document, id=name) for name, document in DOCUMENTS])
def test_it_is_what_its_schema_says(document: dict[str, Any]) -> None:
    schemas.check_document(document)


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_one_and_the_command_prints_it(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.schema(name))
    ran = kschedx("schema", name.lower())
    assert (ran.code, json.loads(ran.out)["title"]) == (0, name)


def test_the_list_and_a_wrong_name() -> None:
    assert "Explanation        kschedx why POD -o json" in kschedx("schema").out
    ran = kschedx("schema", "Explenation")
    assert (ran.code, ran.err) == (2, 'error: no document is called "Explenation" (did you mean "Explanation"?)\n')


def test_what_breaks_a_promise_is_found() -> None:
    document = dict(DOCUMENTS[0][1])
    del document["kind"]
    with pytest.raises(Exception, match="no document is called"):
        schemas.check_document(document)
