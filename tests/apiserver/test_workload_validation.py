"""The API server's validation of workloads and claims."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.apiserver.workload_validation import validate_claims, validate_workload
from kschedx.explain.admission import QuotaLedger, charged_object
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, Any]
LABELS = {"matchLabels": {"app": "web"}}
API = {"Job": "batch/v1", "PersistentVolumeClaim": "v1"}


def workload(kind: str, name: str = "web", labels: Json | None = None, policy: str | None = None, **spec: Any) -> Json:
    pod: Json = {"metadata": {"labels": {"app": "web"} if labels is None else labels}, "spec": {"containers": []}}
    if policy is not None:
        pod["spec"]["restartPolicy"] = policy
    template = {} if kind == "PersistentVolumeClaim" else {"template": pod}
    return {"apiVersion": API.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": name}, "spec": template | spec}


def rolling_workload(kind: str, strategy: str, surge: object, unavailable: object) -> Json:
    update_strategy: dict[str, Any] = {strategy: {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}
    return workload(kind, selector=LABELS, **update_strategy)


CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    ("manifest", "errors"),
    [
        # without parallelism, a Job has one completion by default
        (workload("Job", policy="Never", completionMode="Indexed"), []),
        (
            workload("Job", policy="Never", completionMode="Indexed", parallelism=2),
            ["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            workload("Job", policy="Always"),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        ),
        (
            workload("Job", policy="never"),
            [('spec.template.spec.restartPolicy: Unsupported value: "never": supported values: "OnFailure", "Never"')],
        ),
        (
            workload("Deployment", "", selector=LABELS),
            ["metadata.name: Required value: name or generateName is required"],
        ),
        (
            rolling_workload("Deployment", "strategy", 0, "0%"),
            [('spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0')],
        ),
        (
            rolling_workload("DaemonSet", "updateStrategy", "50%", 1),
            [
                (
                    'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "50%": '
                    "may not be set when maxUnavailable is non-zero"
                )
            ],
        ),
        # a DaemonSet without a selector selects nothing
        (
            workload("DaemonSet"),
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}: '
                    "`selector` does not match template `labels`"
                )
            ],
        ),
        (
            workload("Deployment", labels={}, selector=LABELS),
            ["spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"],
        ),
        (
            workload("PersistentVolumeClaim", **CLAIM, volumeMode=""),
            ['spec.volumeMode: Unsupported value: "": supported values: "Block", "Filesystem"'],
        ),
    ],
)
def test_validation_errors(manifest: Json, errors: list[str]) -> None:
    assert [str(error) for error in (*validate_workload(manifest), *validate_claims(manifest))] == errors


def test_a_terminating_namespace_rejects_workloads() -> None:
    terminating = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "old"},
        "status": {"phase": "Terminating"},
    }
    ledger = QuotaLedger(Snapshot.from_objects([terminating]), resolve())
    assert ledger.take(charged_object("Deployment", "old", "web")) == (
        'deployments.apps "web" is forbidden: unable to create new content in namespace old because it is being '
        "terminated"
    )
    assert ledger.take(charged_object("Deployment", "default", "web")) is None
