"""ResourceClaims that quotas refuse, in the words of kube-apiserver 1.36.

`device_quotas.jsonl.gz`: claims given to it as server-side dry runs; a JSON object per line with `claim`, the `quota`
of its namespace and `refusal`, null where it was taken.
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

with gzip.open(Path(__file__).parent / "device_quotas.jsonl.gz") as file:
    CASES: list[dict[str, Any]] = [json.loads(line) for line in file]


def test_claims_are_refused_as_they_were() -> None:
    assert {bool(case["refusal"]) for case in CASES} == {True, False}
    for case in CASES:
        claim = defaulted_claim(decode(json.dumps(case["claim"]).encode(), ResourceClaim))
        quota = decode(json.dumps(case["quota"]).encode(), ResourceQuota)
        assert quota_refusal(claim, [quota], pod_level_resources=True) == case["refusal"], case


def test_a_claim_of_a_template_that_nobody_makes(tmp_path: Path) -> None:
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
    wants = changed(POD, "spec.resourceClaims", [{"name": "gpus", "resourceClaimTemplateName": "two"}])
    write(tmp_path, NODE, template, device_class, quota)
    write(tmp_path, wants, name="pod.yaml")
    ran = kschedx("why", "pod.yaml", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert ran.code == 1
    question = "requested: gpu.deviceclass.resource.k8s.io/devices=2, used: gpu.deviceclass.resource.k8s.io/devices=2"
    refusal = f'resourceclaims.resource.k8s.io "web-0-gpus" is forbidden: exceeded quota: few, {question}'
    assert f"claim shop/web-0-gpus is not created from its template: {refusal}" in ran.out
