"""The API server's validation of claims for volumes and devices."""

from __future__ import annotations

import msgspec
import pytest

from kschedx.apiserver.validation import validate_claim_spec, validate_pod
from kschedx.kube.types import PersistentVolumeClaimSpec, Pod

Json = dict[str, object]

CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def errors_of(spec: Json, container: Json | None = None) -> list[str]:
    web: Json = {"name": "web", "image": "web:1", "ports": []} | (container or {})
    manifest = {
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"restartPolicy": "Always", "containers": [web]} | spec,
    }
    return [str(error) for error in validate_pod(msgspec.convert(manifest, Pod))]


def test_errors_of_ephemeral_volume_claims() -> None:
    template = {"spec": CLAIM | {"accessModes": []}}
    errors = errors_of({"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]})
    path = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes"
    assert errors == [f"{path}: Required value: at least 1 access mode is required"]


CLAIMS_OF_CONTAINER = [
    ([{"name": "gpu"}], []),
    ([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}], []),
    ([{"name": "gpu"}, {"name": "gpu"}], ['[1]: Duplicate value: "gpu"']),
    ([{"name": "gpu", "request": "a"}, {"name": "gpu"}], ['[1]: Duplicate value: "gpu"']),
    ([{"name": "nic"}], ['[0]: Not found: "nic": must be one of the names in pod.spec.resourceClaims: gpu']),
]


@pytest.mark.parametrize(("claims_of_container", "errors"), CLAIMS_OF_CONTAINER)
def test_errors_of_claims_of_a_container(claims_of_container: list[Json], errors: list[str]) -> None:
    claims = [{"name": name, "resourceClaimName": "x"} for name in ("gpu", "")]
    first_error, *text = errors_of({"resourceClaims": claims}, {"resources": {"claims": claims_of_container}})

    assert first_error == "spec.resourceClaims[1].name: Required value"
    assert text == [f"spec.containers[0].resources.claims{error}" for error in errors]


CLAIMS = [
    ({}, []),
    ({"accessModes": []}, ["accessModes: Required value: at least 1 access mode is required"]),
    (
        {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
        ["accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    ),
    ({"resources": {}}, ["resources[storage]: Required value"]),
    (
        {"resources": {"requests": {"storage": "0"}}},
        ['resources[storage]: Invalid value: "0": must be greater than zero'],
    ),
    ({"volumeMode": "Raw"}, ['volumeMode: Unsupported value: "Raw": supported values: "Block", "Filesystem"']),
]


@pytest.mark.parametrize(("change", "errors"), CLAIMS)
def test_persistent_volume_claims(change: Json, errors: list[str]) -> None:
    spec = msgspec.convert(CLAIM | change, PersistentVolumeClaimSpec)

    assert [str(error) for error in validate_claim_spec(spec, "spec")] == [f"spec.{error}" for error in errors]
