"""What the API server refuses in what a manifest says to the kubelet; as `validation` for what scheduling reads.

Upstream: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import msgspec

from kschedx.api.claim_validation import validate_claim_spec
from kschedx.api.decode import decode
from kschedx.api.field_errors import as_json, duplicate, forbidden, invalid, not_found, not_supported, quoted, required
from kschedx.api.kubelet_fields import EnvVar, KubeletContainer, VolumeDevice, VolumeMount, VolumeSource
from kschedx.api.names import dns_label_errors, dns_subdomain_errors
from kschedx.api.pod_volumes import EphemeralVolumeSource
from kschedx.api.validation_parts import Errors, syntax
from kschedx.errors import InputError, Place

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
OPERATING_SYSTEMS = ("linux", "windows")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")

_SOURCES: Mapping[str, tuple[str, ...]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": (),
    "downwardAPI": (),
    "fc": (),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": (),
    "projected": (),
    "scaleIO": (),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "image": (),
}
"""Each source of a volume with what it cannot do without, in the order in which they are looked at."""
_MADE_FOR_POD = ("persistentVolumeClaim", "ephemeral")
_LONGEST_DRIVER = 63


def check_volumes(
    volumes: tuple[VolumeSource, ...], pod_name: str, field: str
) -> tuple[list[InputError], Mapping[str, VolumeSource]]:
    """What is wrong with spec.volumes of a new pod, and name to volume of those that are right, which alone can be
    mounted; `pod_name` may be empty."""
    made = {f"{pod_name}-{volume.get('name')}" for volume in volumes if pod_name and "ephemeral" in volume}
    errors: list[InputError] = []
    right: dict[str, VolumeSource] = {}
    for index, volume in enumerate(volumes):
        where, name = f"{field}[{index}]", _text(volume.get("name"))
        faults = list(_source(volume, pod_name, where))
        faults += syntax(dns_label_errors, name, f"{where}.name") if name else [required(f"{where}.name", "")]
        if name in right:
            faults.append(duplicate(f"{where}.name", quoted(name)))
        errors += faults
        if not faults:
            right[name] = volume
        claim = _text(_map(volume.get("persistentVolumeClaim")).get("claimName"))
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", quoted(claim), detail))
    return errors, right


def _source(volume: VolumeSource, pod_name: str, field: str) -> Errors:
    given = [source for source in _SOURCES if volume.get(source) is not None]
    if not given:
        return  # SetDefaults_Volume makes it an emptyDir
    first, *others = given
    where = f"{field}.{'persistentDisk' if first == 'gcePersistentDisk' else first}"
    source = _map(volume[first])
    for key in _SOURCES[first]:
        if not source.get(key):
            yield required(f"{where}.{key}", "")
    match first:
        case "hostPath":
            yield from _no_backsteps(_text(source.get("path")), f"{where}.path")
        case "nfs" if not _text(source.get("path")).startswith("/"):
            yield invalid(f"{where}.path", quoted(_text(source.get("path"))), "must be an absolute path")
        case "csi" if driver := _text(source.get("driver")):
            if len(driver.encode(errors="surrogatepass")) > _LONGEST_DRIVER:
                detail = f"Too long: may not be more than {_LONGEST_DRIVER} bytes"
                yield InputError(detail, place=Place(field=f"{where}.driver"))
            yield from (
                invalid(f"{where}.driver", quoted(driver), message) for message in dns_subdomain_errors(driver.lower())
            )
        case "ephemeral":
            yield from _ephemeral(source, where)
            yield from _made_claim(pod_name, _text(volume.get("name")), f"{field}.name")
    yield from (forbidden(f"{field}.{other}", "may not specify more than 1 volume type") for other in others)


def _ephemeral(source: Mapping[str, object], field: str) -> Errors:
    if source.get("volumeClaimTemplate") is None:
        return
    template = decode(msgspec.json.encode(source), EphemeralVolumeSource).volume_claim_template
    if template is not None:
        yield from validate_claim_spec(template.spec, f"{field}.volumeClaimTemplate.spec")


def _made_claim(pod_name: str, volume: str, field: str) -> Errors:
    if pod_name and volume:
        claim = f"{pod_name}-{volume}"
        for message in dns_subdomain_errors(claim):
            yield invalid(field, quoted(volume), f"PVC name {quoted(claim)}: {message}")


def validate_container_fields(container: KubeletContainer, volumes: Mapping[str, VolumeSource], field: str) -> Errors:
    """What comes before a container's resources: variables, mounts, devices and the pull policy."""
    yield from _env(container.env, f"{field}.env")
    yield from _mounts(container.volume_mounts, container.volume_devices, volumes, f"{field}.volumeMounts")
    yield from _devices(container.volume_devices, container.volume_mounts, volumes, f"{field}.volumeDevices")
    if container.image_pull_policy and container.image_pull_policy not in PULL_POLICIES:
        yield not_supported(f"{field}.imagePullPolicy", as_json(container.image_pull_policy), PULL_POLICIES)


def _env(variables: tuple[EnvVar, ...], field: str) -> Errors:
    for index, variable in enumerate(variables):
        where = f"{field}[{index}]"
        if not variable.name:
            yield required(f"{where}.name", "")
        elif not variable.name.isascii() or not variable.name.isprintable() or "=" in variable.name:
            detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            yield invalid(f"{where}.name", quoted(variable.name), detail)
        if variable.value_from is None:
            continue
        sources = sum(variable.value_from.get(source) is not None for source in ENV_SOURCES)
        if sources and variable.value:
            yield invalid(f"{where}.valueFrom", quoted(""), "may not be specified when `value` is not empty")
        elif sources > 1:
            yield invalid(f"{where}.valueFrom", quoted(""), "may not have more than one field specified at a time")


def _mounts(
    mounts: tuple[VolumeMount, ...],
    devices: tuple[VolumeDevice, ...],
    volumes: Mapping[str, VolumeSource],
    field: str,
) -> Errors:
    paths: set[str] = set()
    device_names = {device.name for device in devices}
    device_paths = {device.device_path for device in devices}
    for index, mount in enumerate(mounts):
        where = f"{field}[{index}]"
        if not mount.name:
            yield required(f"{where}.name", "")
        if mount.name not in volumes:
            yield not_found(f"{where}.name", quoted(mount.name))
        if not mount.mount_path:
            yield required(f"{where}.mountPath", "")
        if mount.mount_path in paths:
            yield invalid(f"{where}.mountPath", quoted(mount.mount_path), "must be unique")
        paths.add(mount.mount_path)
        if mount.name in device_names:
            yield invalid(f"{where}.name", quoted(mount.name), "must not already exist in volumeDevices")
        if mount.mount_path in device_paths:
            detail = "must not already exist as a path in volumeDevices"
            yield invalid(f"{where}.mountPath", quoted(mount.mount_path), detail)
        if mount.sub_path:
            yield from _local_path(mount.sub_path, f"{field}.subPath")
        if mount.sub_path_expr:
            if mount.sub_path:
                detail = "subPathExpr and subPath are mutually exclusive"
                yield invalid(f"{where}.subPathExpr", quoted(mount.sub_path_expr), detail)
            yield from _local_path(mount.sub_path_expr, f"{field}.subPathExpr")


def _devices(
    devices: tuple[VolumeDevice, ...],
    mounts: tuple[VolumeMount, ...],
    volumes: Mapping[str, VolumeSource],
    field: str,
) -> Errors:
    names: set[str] = set()
    paths: set[str] = set()
    mount_names, mount_paths = {mount.name for mount in mounts}, {mount.mount_path for mount in mounts}
    for index, device in enumerate(devices):
        where, name, path = f"{field}[{index}]", device.name, device.device_path
        volume = volumes.get(name)
        if not name:
            yield required(f"{where}.name", "")
        if name in names:
            yield invalid(f"{where}.name", quoted(name), "must be unique")
        if volume is None:
            yield not_found(f"{where}.name", quoted(name))
        elif not any(volume.get(source) for source in _MADE_FOR_POD):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{where}.name", quoted(name), detail)
        if not path:
            yield required(f"{where}.devicePath", "")
        if path in paths:
            yield invalid(f"{where}.devicePath", quoted(path), "must be unique")
        if ".." in path.split("/"):
            yield invalid(f"{where}.devicePath", quoted(path), "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mount_names:
            yield invalid(f"{where}.name", quoted(name), "must not already exist in volumeMounts")
        if path in mount_paths:
            yield invalid(f"{where}.devicePath", quoted(path), "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _local_path(path: str, field: str) -> Errors:
    if posixpath.isabs(path):
        yield invalid(field, quoted(path), "must be a relative path")
    yield from _no_backsteps(path, field)


def _no_backsteps(path: str, field: str) -> Errors:
    if ".." in path.split("/"):
        yield invalid(field, quoted(path), "must not contain '..'")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
