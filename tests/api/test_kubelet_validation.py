"""What the API server refuses in volumes, mounts, variables and claims.

Many more, as a kube-apiserver answered them, are in tests/admission.
"""

from __future__ import annotations

import msgspec
import pytest

from kschedx.apiserver.security_context import KubeletFields
from kschedx.apiserver.validation import validate_claim_spec, validate_pod
from kschedx.kube.types import PersistentVolumeClaimSpec, Pod

Json = dict[str, object]

MADE = "must not reference a PVC that gets created for an ephemeral volume"
NO_BLOCK = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
POLICIES = '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"'
ONE_OF = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
UNNAMED = '{"Name":"gpu","ResourceClaimName":null,"ResourceClaimTemplateName":null}'
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def errors_of(spec: Json, container: Json | None = None) -> list[str]:
    web: Json = {"name": "web", "image": "web:1", "ports": []} | (container or {})
    manifest = {
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"restartPolicy": "Always", "containers": [web]} | spec,
    }
    pod, kubelet = msgspec.convert(manifest, Pod), msgspec.convert(manifest, KubeletFields)
    return [str(error) for error in validate_pod(pod, kubelet=kubelet.spec)]


def volume(name: str = "data", **source: object) -> Json:
    return {"name": name} | (source or {"emptyDir": {}})


VOLUMES = [
    ([volume(), volume("cache", configMap={"name": "x"})], []),
    ([{"name": "data"}], []),
    ([volume(), volume()], ['[1].name: Duplicate value: "data"']),
    ([volume(hostPath={"path": "/a/../b"})], ["[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
    (
        [volume(emptyDir={}, secret={"secretName": "s"})],
        ["[0].secret: Forbidden: may not specify more than 1 volume type"],
    ),
    ([volume(csi={"driver": "a" * 64})], ["[0].csi.driver: Too long: may not be more than 63 bytes"]),
    ([volume(gcePersistentDisk={})], ["[0].persistentDisk.pdName: Required value"]),
    (
        [volume(nfs={"server": "nas", "path": "exports"})],
        ['[0].nfs.path: Invalid value: "exports": must be an absolute path'],
    ),
    ([volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}})], []),
    ([volume(ephemeral={})], ["[0].ephemeral.volumeClaimTemplate: Required value"]),
    (
        [
            volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}),
            volume("other", persistentVolumeClaim={"claimName": "web-0-data"}),
        ],
        [f'[1].persistentVolumeClaim.claimName: Invalid value: "web-0-data": {MADE}'],
    ),
]


@pytest.mark.parametrize(("volumes", "errors"), VOLUMES)
def test_volumes(volumes: list[Json], errors: list[str]) -> None:
    assert errors_of({"volumes": volumes}) == [f"spec.volumes{error}" for error in errors]


MOUNT: Json = {"name": "data", "mountPath": "/data"}
MOUNTS = [
    ([MOUNT], []),
    ([MOUNT | {"name": "dta"}], ['volumeMounts[0].name: Not found: "dta"']),
    ([{"name": "data"}], ["volumeMounts[0].mountPath: Required value"]),
    ([MOUNT, MOUNT], ['volumeMounts[1].mountPath: Invalid value: "/data": must be unique']),
    ([MOUNT | {"subPath": "/a"}], ['volumeMounts.subPath: Invalid value: "/a": must be a relative path']),
    (
        [MOUNT | {"subPath": "a", "subPathExpr": "b"}],
        ['volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive'],
    ),
]


@pytest.mark.parametrize(("mounts", "errors"), MOUNTS)
def test_mounts(mounts: list[Json], errors: list[str]) -> None:
    told = errors_of({"volumes": [volume()]}, {"volumeMounts": mounts})

    assert told == [f"spec.containers[0].{error}" for error in errors]


def test_a_device_is_a_claim_and_no_mount_as_well() -> None:
    volumes = [volume(), volume("disk", persistentVolumeClaim={"claimName": "d"})]
    devices = [{"name": "data", "devicePath": "/dev/a"}, {"name": "disk", "devicePath": "/data"}]

    mounts = [MOUNT | {"name": "disk"}]

    told = errors_of({"volumes": volumes}, {"volumeDevices": devices, "volumeMounts": mounts})

    assert [error.removeprefix("spec.containers[0].volume") for error in told] == [
        'Mounts[0].name: Invalid value: "disk": must not already exist in volumeDevices',
        'Mounts[0].mountPath: Invalid value: "/data": must not already exist as a path in volumeDevices',
        f'Devices[0].name: Invalid value: "data": {NO_BLOCK}',
        'Devices[1].name: Invalid value: "disk": must not already exist in volumeMounts',
        'Devices[1].devicePath: Invalid value: "/data": must not already exist as a path in volumeMounts',
    ]


SPECS = [
    ({"dnsPolicy": "Host"}, [f'dnsPolicy: Unsupported value: "Host": supported values: {POLICIES}']),
    ({"os": {"name": "bsd"}}, ['os: Unsupported value: "bsd": supported values: "linux", "windows"']),
    (
        {"activeDeadlineSeconds": 0},
        ["activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}, []),
    (
        {"resourceClaims": [{"name": "gpu"}]},
        [f"resourceClaims[0]: Invalid value: {UNNAMED}: {ONE_OF}"],
    ),
]


@pytest.mark.parametrize(("spec", "errors"), SPECS)
def test_specs(spec: Json, errors: list[str]) -> None:
    assert errors_of(spec) == [f"spec.{error}" for error in errors]


USED = [
    ([{"name": "gpu"}], []),
    ([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}], []),
    ([{"name": "gpu"}, {"name": "gpu"}], ['[1]: Duplicate value: "gpu"']),
    ([{"name": "gpu", "request": "a"}, {"name": "gpu"}], ['[1]: Duplicate value: "gpu"']),
    ([{"name": "nic"}], ['[0]: Not found: "nic": must be one of the names in pod.spec.resourceClaims: gpu']),
]


@pytest.mark.parametrize(("used", "errors"), USED)
def test_claims_of_a_container(used: list[Json], errors: list[str]) -> None:
    told = errors_of({"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}, {"resources": {"claims": used}})

    assert told == [f"spec.containers[0].resources.claims{error}" for error in errors]


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
