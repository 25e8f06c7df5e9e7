"""kschedx admits and refuses manifests as kube-apiserver 1.36 did, with its messages.

`cases.jsonl.gz`: pod manifests as server-side dry runs; one JSON object per line with `context` (the objects that
admission reads), `manifest`, and `code` 201 with `result`, or 422 with `error`, the output of kubectl.
`volumes.jsonl.gz`: the same for manifests with volumes, mounts, variables, claims, and quantities in free form.
`selectors.jsonl.gz`: the same for device classes with valid and invalid selectors. Cases about fields that only the
kubelet reads, and about the cost of selectors, are left out.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kschedx.errors import InputError
from kschedx.explain.admission import admitted_pod
from kschedx.kube.devices import DeviceClass, Features
from kschedx.kube.types import Pod
from kschedx.plugins.dynamic_resources.claims import class_refusals
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]

with gzip.open(Path(__file__).parent / "selectors.jsonl.gz") as file:
    SELECTORS: list[Json] = [json.loads(line) for line in file]

with gzip.open(Path(__file__).parent / "cases.jsonl.gz") as file:
    CASES: list[Json] = [json.loads(line) for line in file]

with gzip.open(Path(__file__).parent / "volumes.jsonl.gz") as file:
    VOLUMES: list[Json] = [json.loads(line) for line in file]
STORED = [case for case in (*CASES, *VOLUMES) if case["code"] == 201]
REFUSED = [case for case in (*CASES, *VOLUMES) if case["code"] != 201]

SELECTOR_FEATURES = Features(
    multiple_allocations=True, reads_multiple_allocations=True, includes=False, list_attributes=False
)


def admit(case: Json) -> Pod:
    return admitted_pod(Snapshot.from_objects(case["context"]), case["manifest"], resolve()).pod


def scheduling_fields(pod: Pod) -> Json:
    """Return the pod without audit annotations, and without the status that the API server sets."""
    fields: Json = msgspec.to_builtins(pod)
    del fields["metadata"]["annotations"], fields["status"]["phase"], fields["status"]["conditions"]
    return fields


def refusals_of(error: str) -> list[str]:
    """Return the refusals in kubectl's output, without preamble and warnings."""
    text = "\n".join(line for line in error.splitlines() if not line.startswith("Warning: "))
    reason = re.split(r"is (?:forbidden|invalid): ", text, maxsplit=1)[1]
    return [part.strip() for part in reason.split("\n* ") if part.strip()]


@pytest.mark.parametrize("case", STORED, ids=lambda case: case["name"])
def test_the_admitted_pod_equals_the_stored_one(case: Json) -> None:
    stored = msgspec.convert(case["result"], Pod)
    assert scheduling_fields(admit(case)) == scheduling_fields(stored)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_a_refused_pod_has_the_recorded_reasons(case: Json) -> None:
    with pytest.raises(InputError) as error:
        admit(case)
    assert error.value.place.field or "[" in str(error.value)
    assert not [reason for reason in refusals_of(case["error"]) if reason not in str(error.value)]


@pytest.mark.parametrize("case", SELECTORS, ids=lambda case: case["name"])
def test_refusals_of_device_classes(case: Json) -> None:
    device_class = msgspec.convert(case["manifest"], DeviceClass)
    refusals = [f"{field}: {text}" for field, text in class_refusals(device_class, SELECTOR_FEATURES)]
    assert refusals == ([] if case["code"] == 201 else refusals_of(case["error"]))


def test_a_volume_without_a_source_is_an_empty_dir() -> None:
    volumes = [{"name": "bare"}, {"name": "said", "downwardAPI": {}}, {"name": "null", "emptyDir": None}]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c"}], "volumes": volumes},
    }
    stored = admit({"context": [], "manifest": manifest}).spec.volumes
    assert {item.name: item.empty_dir is not None for item in stored} == {"bare": True, "said": False, "null": True}
