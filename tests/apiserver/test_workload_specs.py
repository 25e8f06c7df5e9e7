"""What an API server refuses in workloads, budgets, claims and classes, as kube-apiserver 1.36 refused it.

`workloads.jsonl.gz`: manifests given to it as server-side dry runs; a JSON object per line with `manifest` and `code`
201, or 403 or 422 with `errors`, each as kubectl prints it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.apiserver.workload_validation import (
    priority_class,
    validate_budget,
    validate_claims,
    validate_workload,
    workload_spec,
)
from kschedx.errors import InputError
from kschedx.explain.admission import admitted_pod
from kschedx.kube.workloads import MAKING_PODS, made_of
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]
NOWHERE = Snapshot.from_objects([])
UNREAD = (
    'spec.schedule: Invalid value: "61 * * * *"',  # the numbers of a schedule
    "spec.volumeAttributesClassName",
    'spec.timeZone: Invalid value: "Bad/Zone"',  # whether there is such a zone
    "metadata.name: Required value",
)
"""What is left to the API server, or to others here."""

with gzip.open(Path(__file__).parent / "workloads.jsonl.gz") as file:
    CASES: list[Json] = [json.loads(line) for line in file]


def refused(manifest: Json) -> list[str]:
    found = [*validate_workload(manifest), *validate_claims(manifest), *validate_budget(manifest)]
    if not found and manifest["kind"] in MAKING_PODS:
        try:
            admitted_pod(NOWHERE, made_of(manifest).pod, resolve(), maker=manifest)
        except InputError as error:
            found = [error]
    return [str(error) for error in found]


@pytest.mark.parametrize("kind", sorted({case["manifest"]["kind"] for case in CASES}))
def test_what_is_refused_is_refused_here(kind: str) -> None:
    count = 0
    for case in CASES:
        manifest, errors = case["manifest"], case.get("errors", [])
        if manifest["kind"] != kind or (errors and all(any(word in one for word in UNREAD) for one in errors)):
            continue
        names = [one["metadata"]["name"] for one in manifest.get("spec", {}).get("volumeClaimTemplates", ())]
        if len(names) != len(set(names)):  # which an API server counts once
            continue
        assert bool(refused(manifest)) == bool(errors), (manifest, errors)
        count += 1
    assert count > 50


def test_each_fault_of_a_spec_has_its_words() -> None:
    told = 0
    for case in CASES:
        manifest, errors = case["manifest"], "\n".join(case.get("errors", ()))
        if "spec.selector" in errors:  # then nobody looks at the template
            continue
        found = [*workload_spec(manifest["kind"], manifest.get("spec", {}))]
        found += priority_class(manifest) if manifest["kind"] == "PriorityClass" else []
        found += validate_budget(manifest)
        for error in found:
            if "not auto-generated" not in str(error):  # it holds a uid
                assert str(error) in errors, (manifest, str(error))
                told += 1
    assert told > 400


@pytest.mark.parametrize(
    ("rolling", "told"),
    [
        ({"maxUnavailable": None, "maxSurge": None}, []),  # which is not to say anything
        ({"maxUnavailable": 0, "maxSurge": None}, []),
        ({"maxUnavailable": 0, "maxSurge": "00%"}, ["may not be 0 when `maxSurge` is 0"]),
        ({"maxUnavailable": 0, "maxSurge": "9" * 5000 + "%"}, []),
        ({"maxUnavailable": "0" * 5000 + "100%"}, []),
        ({"maxUnavailable": "0" * 5000 + "101%"}, ["must not be greater than 100%"]),
        ({"maxUnavailable": "9" * 5000 + "%"}, ["must not be greater than 100%"]),
    ],
)
def test_shares(rolling: Json, told: list[str]) -> None:
    found = workload_spec("Deployment", {"strategy": {"rollingUpdate": rolling}})
    assert [error.message.rpartition(": ")[2] for error in found] == told
