"""Pod Security: refusals and warnings by the labels of a namespace, as kube-apiserver 1.36, also emulating 1.33.

`pod_security.jsonl.gz`: pods and Deployments as server-side dry runs; one JSON object per line with `version`, the
namespace's `labels`, `manifest`, `code` 201, or 403 with `error`, and `warnings`, the output of kubectl.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.apiserver.pod_security import PREFIX, LevelVersion, PodSecurityLevel, policy_of
from kschedx.errors import NotAdmittedError
from kschedx.explain.admission import admission_notes, admitted_pod, standards_of
from kschedx.kube.types import Pod
from kschedx.kube.workloads import created_pod
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest

Json = dict[str, Any]

with gzip.open(Path(__file__).parent / "pod_security.jsonl.gz") as file:
    CASES: list[Json] = [json.loads(line) for line in file]


def answer(case: Json) -> tuple[int, str, list[str]]:
    """Return the code, the refusal, and the warnings."""
    manifest, release = case["manifest"], resolve(case["version"])
    name = manifest["metadata"]["namespace"]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": case["labels"]}}
    snapshot = Snapshot.from_objects([namespace])
    maker = None if manifest["kind"] == "Pod" else manifest
    pod = manifest if maker is None else created_pod(maker).pod
    try:
        admitted = admitted_pod(snapshot, pod, release, maker=maker)
    except NotAdmittedError as error:
        return (403, error.message, []) if maker is None else (201, "", [error.message])
    notes = admission_notes(snapshot, pod, admitted, release, (), maker)
    return 201, "", [str(note.facts["warning"]) for note in notes if note.id == "pod-security-warning"]


PODS = [case for case in CASES if case["manifest"]["kind"] == "Pod"]
WORKLOADS = [case for case in CASES if case["manifest"]["kind"] != "Pod"]


@pytest.mark.parametrize("part", range(4))
def test_pods_have_the_recorded_refusals_and_warnings(part: int) -> None:
    for case in PODS[part::4]:
        assert answer(case) == (case["code"], case.get("error", ""), case["warnings"]), case["manifest"]


def test_pods_of_workloads_are_refused_for_the_recorded_warnings() -> None:
    """Templates with AppArmor annotations differ: the annotations become fields only in the pod."""
    cases_without_apparmor = [workload for workload in WORKLOADS if "apparmor" not in json.dumps(workload["manifest"])]
    assert len(cases_without_apparmor) > 80
    for case in cases_without_apparmor:
        _, _, (*text,) = answer(case)
        warnings = case["warnings"]
        is_enforced = f"{PREFIX}enforce" in case["labels"] and f"{PREFIX}warn" not in json.dumps(case["labels"])
        if is_enforced:
            assert bool(text) == bool(warnings), case["manifest"]
            for message, warning in zip(text, warnings, strict=True):
                assert message.endswith(warning.replace("would violate", "violates"))
        elif not text or text[0].startswith("would"):
            assert text == warnings


@pytest.mark.parametrize(
    ("labels", "enforce", "warn"),
    [
        ({}, "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest", "baseline:latest"),
        ({"enforce": "restricted", "enforce-version": "v1.25"}, "restricted:v1.25", "restricted:v1.25"),
        ({"enforce": "restricted", "warn-version": "v1.25"}, "restricted:latest", "restricted:v1.25"),
        ({"enforce": "restricted", "warn": "baseline"}, "restricted:latest", "baseline:latest"),
        ({"enforce": "strict"}, "restricted:latest", "privileged:latest"),
        ({"enforce": "baseline", "enforce-version": "1.25"}, "baseline:latest", "baseline:latest"),
        ({"enforce": "baseline", "enforce-version": "v1.05"}, "baseline:latest", "baseline:latest"),
        ({"warn": "anything"}, "privileged:latest", "privileged:latest"),
    ],
)
def test_levels_and_versions_of_labels(labels: Json, enforce: str, warn: str) -> None:
    result = policy_of({f"{PREFIX}{key}": value for key, value in labels.items()})
    assert (str(result.enforce), str(result.warn)) == (enforce, warn)


def test_a_future_version_is_the_newest_known() -> None:
    standards = standards_of(resolve("1.30"))
    assert standards is not None
    assert standards.edition(LevelVersion(PodSecurityLevel.BASELINE, 99)).minor == 30
    assert standards.edition(LevelVersion(PodSecurityLevel.BASELINE, 8)).minor == 8
    assert standards_of(resolve("1.13")) is None


def restricted_namespace(**labels: str) -> Manifest:
    labels_of_namespace = {f"{PREFIX}enforce": "restricted", **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels_of_namespace}}


POD_AS_ROOT: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "shop"},
    "spec": {
        "hostUsers": False,
        "securityContext": {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "a",
                "image": "a",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("version", "gates", "is_refused"),
    [("1.36", {}, False), ("1.34", {}, True), ("1.34", {"UserNamespacesPodSecurityStandards": True}, False)],
)
def test_root_in_a_user_namespace(version: str, gates: dict[str, bool], is_refused: bool) -> None:
    snapshot, release = Snapshot.from_objects([restricted_namespace()]), resolve(version, gates)
    if is_refused:
        with pytest.raises(NotAdmittedError, match="runAsUser=0"):
            admitted_pod(snapshot, POD_AS_ROOT, release)
    else:
        assert isinstance(admitted_pod(snapshot, POD_AS_ROOT, release).pod, Pod)
