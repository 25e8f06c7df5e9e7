"""Fields with a misspelled name, a wrong place, or a wrong type."""

from __future__ import annotations

import json

import pytest

from kschedx.apiserver import unknown_fields as strict
from tests.builders import Manifest
from tests.cli.manifests import POD, changed

DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}
ROLLING = "spec.strategy.rollingUpdate"
POD_SPEC = "spec.template.spec"
CONTAINER = f"{POD_SPEC}.containers[0]"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (f"{POD_SPEC}.nodeselector", {}, f'{POD_SPEC}.nodeselector: unknown field (did you mean "nodeSelector"?)'),
        ("spec.nodeSelector", {}, f"spec.nodeSelector: unknown field (nodeSelector belongs in {POD_SPEC})"),
        (
            f"{POD_SPEC}.containers.0.tolerations",
            [],
            f"{POD_SPEC}.containers[0].tolerations: unknown field (tolerations belongs in {POD_SPEC})",
        ),
        (
            f"{POD_SPEC}.containers.0.port",
            [],
            f'{POD_SPEC}.containers[0].port: unknown field (did you mean "ports"?)',
        ),
        (
            f"{POD_SPEC}.containers.0.requests",
            {},
            f"{CONTAINER}.requests: unknown field (requests belongs in {CONTAINER}.resources)",
        ),
        (
            f"{POD_SPEC}.containers.0.resources.cpu",
            "1",
            f"{POD_SPEC}.containers[0].resources.cpu: unknown field (allowed are claims, limits, requests)",
        ),
        ("metadata.labels", {"a": 1}, "metadata.labels.a: expected a string, found 1 (quote it to make it a string)"),
        ("spec.replicas", "3", 'spec.replicas: expected a whole number, found "3"'),
        (f"{POD_SPEC}.hostNetwork", "yes", f'{POD_SPEC}.hostNetwork: expected true or false, found "yes"'),
        (f"{POD_SPEC}.containers", {}, f"{POD_SPEC}.containers: expected a list, found {{}}"),
        (
            "spec.progressDeadlineSeconds",
            2**63,
            f"spec.progressDeadlineSeconds: expected a number between {-(2**63)} and {2**63 - 1}, found {2**63}",
        ),
        (
            f"{ROLLING}.maxSurge",
            2**31,
            f"{ROLLING}.maxSurge: expected a number between {-(2**31)} and {2**31 - 1}, found {2**31}",
        ),
        ("xyzzy", 1, "xyzzy: unknown field"),
    ],
)
def test_a_fault_has_its_path_and_a_suggestion(path: str, value: object, expected: str) -> None:
    (fault,) = strict.unknown_fields(changed(DEPLOYMENT, path, value))
    assert str(fault) == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{POD_SPEC}.containers.0.resources.requests.cpu", 1.5),
        (f"{POD_SPEC}.containers.0.ports", [{"containerPort": 80}]),
        (f"{POD_SPEC}.nodeSelector", None),
        ("metadata.creationTimestamp", None),
        ("status", {"anything": 1}),
        (f"{POD_SPEC}.containers.0.livenessProbe", {"httpGet": {"port": "http"}}),
    ],
)
def test_valid_fields_have_no_fault(path: str, value: object) -> None:
    assert strict.unknown_fields(changed(DEPLOYMENT, path, value)) == []


def test_stored_objects_and_custom_resources_are_not_checked() -> None:
    invalid = changed(DEPLOYMENT, "spec.later", 1)
    assert strict.unknown_fields(invalid)
    assert strict.unknown_fields(changed(invalid, "metadata.uid", "1")) == []
    assert strict.unknown_fields({**invalid, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}) == []


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"name": True, "labels": {"a": 1}}, ["metadata.labels.a", "metadata.name"]),
        ({"name": "w", "uid": "u"}, []),
        (None, []),
    ],
)
def test_an_unknown_kind_has_the_metadata_of_all_kinds(metadata: object, fields: list[str]) -> None:
    errors = strict.unknown_fields({"apiVersion": "acme.io/v1", "kind": "WebApp", "metadata": metadata, "x": 1})
    assert [error.place.field for error in errors] == fields


def test_every_referenced_type_exists() -> None:
    file = json.loads(strict.FIELDS.read_text(encoding="utf-8"))
    references = {word for word in json.dumps(file["types"]).split('"') if word.startswith("#")}
    assert {name[1:] for name in references} | set(file["kinds"].values()) == set(file["types"])
