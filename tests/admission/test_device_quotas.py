"""ResourceClaims that quotas refuse, with the messages of kube-apiserver 1.36.

`device_quotas.jsonl.gz`: claims as server-side dry runs; one JSON object per line with `claim`, the `quota` of its
namespace, and `refusal`, null if the claim was accepted.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from kschedx.apiserver.defaulting import defaulted_claim
from kschedx.apiserver.resource_quota import quota_refusal
from kschedx.kube.decoding import decode
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.resources import ResourceQuota
from tests.builders import Manifest
from tests.cli.manifests import NODE, POD, changed, write
from tests.command import kschedx


def test_quotas_refuse_claims_as_recorded() -> None:
    with gzip.open(Path(__file__).parent / "device_quotas.jsonl.gz") as file:
        cases: list[dict[str, Any]] = [json.loads(line) for line in file]
    assert {bool(case["refusal"]) for case in cases} == {True, False}
    for case in cases:
        claim = defaulted_claim(decode(json.dumps(case["claim"]).encode(), ResourceClaim))
        quota = decode(json.dumps(case["quota"]).encode(), ResourceQuota)
        assert quota_refusal(claim, [quota], pod_level_resources=True) == case["refusal"], case


def test_why_reports_the_quota_that_refuses_a_claim(tmp_path: Path) -> None:
    spec: Manifest = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu", "count": 2}}]}}
    template: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "two", "namespace": "shop"},
        "spec": {"spec": spec},
    }
    device_class: Manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    hard = {"gpu.deviceclass.resource.k8s.io/devices": "3"}
    used = {"gpu.deviceclass.resource.k8s.io/devices": "2"}
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "shop"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }
    target = changed(POD, "spec.resourceClaims", [{"name": "gpus", "resourceClaimTemplateName": "two"}])
    write(tmp_path, NODE, template, device_class, quota)
    write(tmp_path, target, name="pod.yaml")
    answer = kschedx("why", "pod.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert answer.code == 1
    amounts = "requested: gpu.deviceclass.resource.k8s.io/devices=2, used: gpu.deviceclass.resource.k8s.io/devices=2"
    refusal = f'resourceclaims.resource.k8s.io "web-0-gpus" is forbidden: exceeded quota: few, {amounts}'
    assert f"claim shop/web-0-gpus is not created from its template: {refusal}" in answer.out
