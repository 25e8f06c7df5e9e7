"""Every expected document, validated against its published schema."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kschedx import schemas
from kschedx.explain.difference import Story
from tests.builders import evaluate, node, pod
from tests.command import ROOT, check_document, kschedx

MARK = "kschedx/v1"


def documents() -> list[tuple[str, dict[str, Any]]]:
    """Yield golden documents, alone in a file or below their command."""
    items = []
    for path in sorted((ROOT / "tests").rglob("*")):
        document = _document(path) if path.suffix in (".json", ".txt") else None
        if document is not None:
            items.append((str(path.relative_to(ROOT / "tests")), document))
    return items


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
def test_a_golden_document_is_valid(document: dict[str, Any]) -> None:
    check_document(document)


def printed_kinds() -> set[str]:
    """Return the kinds of all documents that the package writes."""
    names = set()
    for path in (ROOT / "kschedx").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "document(" not in source and "apiVersion" not in source:
            continue
        for written in ast.walk(ast.parse(source)):
            if (
                isinstance(written, ast.Call)
                and written.args
                and "document" in (getattr(written.func, "id", ""), getattr(written.func, "attr", ""))
                and ast.unparse(written.func) in ("document", "documents.document")
            ):
                names.add(ast.unparse(written.args[0]).strip("'"))
            if isinstance(written, ast.Dict) and any(getattr(key, "value", "") == "kind" for key in written.keys):
                pairs = zip(written.keys, written.values, strict=True)
                values = {ast.unparse(key): ast.unparse(value).strip("'") for key, value in pairs if key is not None}
                if values.get("'apiVersion'") in (MARK, "API_VERSION") and "'kind'" in values:
                    names.add(values["'kind'"])
    return names


def test_every_document_that_is_printed_has_a_schema() -> None:
    kinds = printed_kinds()
    assert {"Explanation", "NodeReport", "FleetAnswer"} <= kinds
    unknown = {kind for kind in kinds if not kind.isupper()} - {"kind", *schemas.NAMES}
    assert not unknown, "a new kind belongs into schemas, where readers find what to rely on"
    assert Story.of(evaluate([node("a"), pod("web")], "default/web")).to_dict()["kind"] in schemas.NAMES


ZONES = ("-s", "fixtures/zone-full/cluster")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("why", "fixtures/zone-full/pod.yaml", *ZONES), "Explanation"),
        (("why", "--all-pending", "-s", "fixtures/web-rollout/cluster"), "ExplanationList"),
        (("why", "node/gke-prod-euw4-general-a6794389-2vkf", *ZONES), "NodeReport"),
        (("simulate", *ZONES), "Simulation"),
        (("drain", "gke-prod-euw4-general-a6794389-2vkf", *ZONES), "Simulation"),
        (("drain", "node-1", "-s", "fixtures/drain-budget/cluster.yaml"), "Simulation"),
        (("survive", "-s", "fixtures/survive-zone/cluster.yaml"), "Survival"),
        (("survive", "--drain", "-s", "fixtures/survive-zone/cluster.yaml"), "Survival"),
        (("fit", "fixtures/zone-full/pod.yaml", *ZONES), "Fit"),
        (("diff-profiles", "default", "binpack", "--all", *ZONES), "ProfileDifference"),
        (("doctor", *ZONES), "Diagnosis"),
        (("kueue", "-s", "fixtures/kueue-queues/cluster.yaml"), "Admissions"),
        (("plugins",), "PluginList"),
        (("profiles", "show", "binpack"), "Profile"),
        (("profiles", "show", "policy-1.13"), "Profile"),
        (("profiles", "check", "binpack"), "ProfileCheck"),
        (("fleet", "-s", "fixtures/tie/cluster.yaml", "why", "--all-pending"), "FleetAnswer"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value,
)
def test_the_output_of_a_command_is_valid(command: tuple[str, ...], kind: str) -> None:
    form = ("-o", "json")
    result = kschedx(command[0], *form, *command[1:]) if command[0] == "fleet" else kschedx(*command, *form)
    document = json.loads(result.out)
    assert document["kind"] == kind
    check_document(document)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_valid_and_the_command_prints_it(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.schema(name))
    result = kschedx("schema", name.lower())
    assert (result.code, json.loads(result.out)["title"]) == (0, name)


def test_schemas_are_listed_and_an_unknown_name_is_an_error() -> None:
    assert "Explanation                 kschedx why POD -o json" in kschedx("schema").out
    result = kschedx("schema", "Explenation")
    assert (result.code, result.err) == (
        2,
        'error: no document is called "Explenation" (did you mean "Explanation"?)\n',
    )


def test_an_invalid_document_is_found() -> None:
    document = dict(DOCUMENTS[0][1])
    del document["kind"]
    with pytest.raises(Exception, match="no document is called"):
        check_document(document)
