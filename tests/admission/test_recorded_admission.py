"""kschedx makes of a manifest what kube-apiserver 1.36 made of it, and refuses what that refused, with its words.

`cases.jsonl.gz`: pod manifests given to a kube-apiserver as server-side dry runs; a JSON object per line with `context`
(what admission looked at), `manifest`, and `code` 201 with `result`, or 422 with `error`, what kubectl printed.
`volumes.jsonl.gz`: the same of manifests with volumes, mounts, variables, claims, and amounts written freely.
`selectors.jsonl.gz`: the same of device classes, whose selectors may be wrong. What only the kubelet reads, and what a
selector may cost at most, is left to the API server: such cases are not among these.
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

SELECTOR_FEATURES = Features(consumable_capacity=True, list_attributes=False)


def admitted(case: Json) -> Pod:
    return admitted_pod(Snapshot.from_objects(case["context"]), case["manifest"], resolve()).pod


def read_by_scheduling(pod: Pod) -> Json:
    """Without what admission notes down for people, and what the API server says of a pod that does not run yet."""
    created: Json = msgspec.to_builtins(pod)
    del created["metadata"]["annotations"], created["status"]["phase"], created["status"]["conditions"]
    return created


def told(error: str) -> list[str]:
    """What kubectl printed, without its preamble and warnings: each refusal by itself."""
    text = "\n".join(line for line in error.splitlines() if not line.startswith("Warning: "))
    reason = re.split(r"is (?:forbidden|invalid): ", text, maxsplit=1)[1]
    return [part.strip() for part in reason.split("\n* ") if part.strip()]


@pytest.mark.parametrize("case", STORED, ids=lambda case: case["name"])
def test_what_is_stored(case: Json) -> None:
    stored = msgspec.convert(case["result"], Pod)
    assert read_by_scheduling(admitted(case)) == read_by_scheduling(stored)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_what_is_refused(case: Json) -> None:
    with pytest.raises(InputError) as caught:
        admitted(case)
    assert caught.value.place.field or "[" in str(caught.value)
    assert not [reason for reason in told(case["error"]) if reason not in str(caught.value)]


@pytest.mark.parametrize("case", SELECTORS, ids=lambda case: case["name"])
def test_selectors(case: Json) -> None:
    device_class = msgspec.convert(case["manifest"], DeviceClass)
    refused = [f"{field}: {text}" for field, text in class_refusals(device_class, SELECTOR_FEATURES)]
    assert refused == ([] if case["code"] == 201 else told(case["error"]))


def test_a_volume_without_a_source_is_an_empty_folder() -> None:
    volumes = [{"name": "bare"}, {"name": "said", "downwardAPI": {}}, {"name": "null", "emptyDir": None}]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c"}], "volumes": volumes},
    }
    stored = admitted({"context": [], "manifest": manifest}).spec.volumes
    assert {item.name: item.empty_dir is not None for item in stored} == {"bare": True, "said": False, "null": True}
