"""What the API server refuses in the claims of a pod and in persistent volume claims; as `validation` for the pod."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from kschedx.apiserver.placement_validation import (
    EFFECTS,
    OPERATORS,
    validate_affinity,
    validate_affinity_selectors,
    validate_label_selector,
    validate_labels,
    validate_scheduling_gates,
    validate_spread_constraints,
    validate_tolerations,
)
from kschedx.apiserver.security_context import (
    APP_ARMOR_ANNOTATION,
    WINDOWS,
    EnvVar,
    KubeletContainer,
    KubeletSpec,
    PodSecurityContext,
    Profile,
    SecurityContext,
    VolumeDevice,
    VolumeMount,
    VolumeSource,
    WindowsOptions,
)
from kschedx.errors import InputError, Place
from kschedx.kube.decoding import decode
from kschedx.kube.field_errors import (
    DEFAULT_OPTIONS,
    Errors,
    ValidationOptions,
    as_json,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    quoted,
    required,
    syntax,
)
from kschedx.kube.names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    dns_label_errors,
    dns_subdomain_errors,
    is_extended_resource,
    is_hugepages,
    is_native_resource,
    is_overcommit_allowed,
    is_pod_level_resource,
    label_key_errors,
)
from kschedx.kube.quantity import Quantity, ResourceList, parse_quantity
from kschedx.kube.resources import container_limits, container_requests, exact_nano_units
from kschedx.kube.scalars import MAX_INT32
from kschedx.kube.types import (
    Container,
    ContainerClaim,
    ContainerPort,
    EphemeralVolumeSource,
    Labels,
    Node,
    ObjectMeta,
    PersistentVolumeClaimSpec,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
)

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def validate_claim_spec(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    """The spec of a PersistentVolumeClaim, defaulted."""
    modes = spec.access_modes
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, f"{field}.selector")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(f"{field}.accessModes", quoted(mode), ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        yield forbidden(f"{field}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _storage(spec, f"{field}.resources[storage]")
    if spec.storage_class_name:
        yield from syntax(dns_subdomain_errors, spec.storage_class_name, f"{field}.storageClassName")
    yield from one_of(spec.volume_mode, VOLUME_MODES, f"{field}.volumeMode")


def _storage(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    written = spec.resources.requests.get("storage")
    if written is None:
        yield required(field, "")
        return
    try:
        quantity = parse_quantity(written)
    except InputError as error:
        yield error.at(Place(field=field))
        return
    if quantity.mantissa <= 0:
        yield invalid(field, quoted(str(quantity)), "must be greater than zero")


def validate_resource_claims(claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    """spec.resourceClaims of a pod."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{field}[{index}]"
        if not claim.name:
            yield required(f"{where}.name", "")
        elif claim.name in seen:
            yield duplicate(f"{where}.name", quoted(claim.name))
        else:
            yield from syntax(dns_label_errors, claim.name, f"{where}.name")
            seen.add(claim.name)
        named, template = claim.resource_claim_name, claim.resource_claim_template_name
        if named is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(where, _internal(claim), detail)
        if named is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(where, _internal(claim), detail)
        if named is not None:
            yield from syntax(dns_subdomain_errors, named, f"{where}.resourceClaimName")
        if template is not None:
            yield from syntax(dns_subdomain_errors, template, f"{where}.resourceClaimTemplateName")


def _internal(claim: PodResourceClaim) -> str:
    """The claim as JSON under the names of the API server's own type."""
    return msgspec.json.encode(
        {
            "Name": claim.name,
            "ResourceClaimName": claim.resource_claim_name,
            "ResourceClaimTemplateName": claim.resource_claim_template_name,
        }
    ).decode()


def validate_used_claims(used: tuple[ContainerClaim, ...], claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    """resources.claims of a container: of those that the pod has, none twice, and none beside one of its requests."""
    known = sorted({claim.name for claim in claims})
    detail = "must be one of the names in pod.spec.resourceClaims"
    detail += f": {', '.join(known)}" if known else " which is empty"
    seen: set[str] = set()
    for index, claim in enumerate(used):
        where, name = f"{field}[{index}]", claim.name
        if not name:
            yield required(where, "")
            continue
        key = f"{name}/{claim.request}" if claim.request else name
        if name in seen:
            yield duplicate(where, quoted(name))
        else:
            if claim.request:
                yield from syntax(dns_label_errors, claim.request, f"{where}.request")
            if key in seen:
                yield duplicate(where, quoted(key))
            elif not claim.request:
                yield from (duplicate(where, quoted(name)) for other in seen if other.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            yield not_found(where, quoted(name), detail)


# What the API server refuses in requests, limits, overhead and a node's resources, in its words.
#
# Each function yields errors, none if all is well; names of resources are taken in order of the alphabet, which Go
# leaves to chance. Upstream: pkg/apis/core/validation/validation.go.

_OF_CONTAINERS = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_OBJECT_COUNTS = frozenset(
    {"services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers", PODS}
)
_STANDARD = frozenset(
    {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _OF_CONTAINERS}
    | {"storage", "requests.storage"}
    | _OBJECT_COUNTS
)


def validate_requirements(
    resources: ResourceRequirements, field: str, *, is_pod_level: bool = False
) -> Iterator[InputError]:
    """Requests and limits of a container, or of a pod as a whole."""
    limits, limit_errors = _parsed(resources.limits, f"{field}.limits")
    requests, request_errors = _parsed(resources.requests, f"{field}.requests")
    yield from limit_errors
    for name, quantity in limits.items():
        where = f"{field}.limits[{name}]"
        yield from _name(name, where, is_pod_level=is_pod_level)
        yield from _quantity(name, quantity, where)
        yield from _hugepages(name, quantity, where)
    yield from request_errors
    for name, quantity in requests.items():
        where = f"{field}.requests[{name}]"
        yield from _name(name, where, is_pod_level=is_pod_level)
        yield from _quantity(name, quantity, where)
        if name in limits:
            yield from _request_against_limit(name, quantity, limits[name], f"{field}.requests")
        elif name not in resources.limits and not is_overcommit_allowed(name):
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        yield from _hugepages(name, quantity, where)
    named = limits.keys() | requests.keys()
    if any(map(is_hugepages, named)) and not named & {CPU, MEMORY}:
        yield forbidden(field, "HugePages require cpu or memory")


def validate_pod_level(spec: PodSpec, field: str) -> Iterator[InputError]:
    """spec.resources, by itself and against what the containers ask for."""
    if spec.resources is None:
        return
    yield from validate_requirements(spec.resources, field, is_pod_level=True)
    try:
        requests, limits = container_requests(spec), container_limits(spec)
        pod_limits = {name: parse_quantity(limit) for name, limit in spec.resources.limits.items()}
    except InputError:
        return  # reported where it stands
    for name, together in sorted(requests.items()):
        request = spec.resources.requests.get(name)
        if request is not None and _exceeds(together, parse_quantity(request)):
            detail = f"must be greater than or equal to aggregate container requests of {together}"
            yield _invalid(f"{field}.requests[{name}]", parse_quantity(request), detail)
    for name, together in sorted(limits.items()):
        if is_hugepages(name) and name in pod_limits and _exceeds(together, pod_limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {together}"
            yield _invalid(f"{field}.limits[{name}]", pod_limits[name], detail)
    for index, container in enumerate(spec.containers):
        for name, limit in sorted(container.resources.limits.items()):
            if name in pod_limits and _exceeds(parse_quantity(limit), pod_limits[name]):
                where = f"{field}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {pod_limits[name]}"
                yield _invalid(where, parse_quantity(limit), detail)


def validate_amounts(resources: ResourceList, field: str) -> Iterator[InputError]:
    """A node's capacity or allocatable: never negative, whole where the resource is counted."""
    return _amounts((name, written, f"{field}.{name}") for name, written in sorted(resources.items()))


def validate_requested(resources: ResourceList, field: str) -> Iterator[InputError]:
    """Only the amounts of a request or limit, in the same way."""
    return _amounts((name, written, f"{field}[{name}]") for name, written in sorted(resources.items()))


def _amounts(named: Iterable[tuple[str, str | int | float, str]]) -> Iterator[InputError]:
    for name, written, where in named:
        try:
            yield from _quantity(name, parse_quantity(written), where)
        except InputError as error:
            yield error.at(Place(field=where))


def _parsed(resources: ResourceList, field: str) -> tuple[dict[str, Quantity], list[InputError]]:
    quantities, errors = {}, []
    for name, written in sorted(resources.items()):
        try:
            quantities[name] = parse_quantity(written)
        except InputError as error:
            errors.append(error.at(Place(field=f"{field}[{name}]")))
    return quantities, errors


def _name(name: str, field: str, *, is_pod_level: bool) -> Iterator[InputError]:
    errors = [invalid(field, as_json(name), message) for message in label_key_errors(name)]
    if not errors and "/" not in name and not _is_standard(name):
        errors.append(invalid(field, as_json(name), "must be a standard resource type or fully qualified"))
    yield from errors
    if is_pod_level:
        if not errors and not is_pod_level_resource(name):
            yield not_supported(field, as_json(name), (CPU, "hugepages-", MEMORY))
    elif "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages(name):
            yield invalid(field, as_json(name), "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        yield invalid(field, as_json(name), "doesn't follow extended resource name standard")


def _is_standard(name: str) -> bool:
    return name in _STANDARD or is_hugepages(name.removeprefix("requests."))


def _quantity(name: str, quantity: Quantity, field: str) -> Iterator[InputError]:
    if quantity.mantissa < 0:
        yield _invalid(field, quantity, "must be greater than or equal to 0")
    if (name in _OBJECT_COUNTS or is_extended_resource(name)) and quantity.milli_value() % 1000 != 0:
        yield _invalid(field, quantity, "must be an integer")


def _hugepages(name: str, quantity: Quantity, field: str) -> Iterator[InputError]:
    if not is_hugepages(name):
        return
    try:
        page = parse_quantity(name.removeprefix("hugepages-"))
        is_whole = page.mantissa > 0 and page.milli_value() % 1000 == 0 and quantity.value() % page.value() == 0
    except (InputError, ZeroDivisionError):
        is_whole = False
    if not is_whole:
        yield _invalid(field, quantity, f"{quantity} is not positive integer multiple of {name}")


def _request_against_limit(name: str, request: Quantity, limit: Quantity, field: str) -> Iterator[InputError]:
    if request != limit and not is_overcommit_allowed(name):
        yield _invalid(field, request, f"must be equal to {name} limit of {limit}")
    elif _exceeds(request, limit):
        yield _invalid(field, request, f"must be less than or equal to {name} limit of {limit}")


def _exceeds(one: Quantity, other: Quantity) -> bool:
    return exact_nano_units(one) > exact_nano_units(other)


def _invalid(field: str, quantity: Quantity, detail: str) -> InputError:
    return invalid(field, quoted(str(quantity)), detail)


# What the API server refuses in what a manifest says to the kubelet; as `validation` for what scheduling reads.
#
# Upstream: pkg/apis/core/validation/validation.go.

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


# What the API server refuses in security contexts and in the old annotations for them; as `validation` for the rest.
#
# Upstream: pkg/apis/core/validation/validation.go.

_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED = "Localhost", "RuntimeDefault", "Unconfined"
_TYPES = (_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED)
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_LOCAL = "localhost/"
_ANNOTATED: dict[str, tuple[str, ...]] = {
    _RUNTIME_DEFAULT: ("runtime/default", "docker/default"),
    _UNCONFINED: ("unconfined",),
}
"""A profile's type to the annotations that mean it; of AppArmor only the first."""
_LONGEST_PATH = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_LONGEST_SYSCTL = 253
_OF_NETWORK = ("net.",)
_OF_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_IDS = f"must be between 0 and {MAX_INT32}, inclusive"
_NOT_FOR_WINDOWS = "cannot be set for a windows pod"
_GO_NAMES = {
    "seLinuxOptions": "SELinuxOptions",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "gmsaCredentialSpec": "GMSACredentialSpec",
}
_GO_ORDER = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip
"""Of the fields of a container's security context."""


def validate_container_context(context: SecurityContext | None, field: str, *, own_users: bool) -> Errors:
    """`own_users`: the pod is in a user namespace of its own."""
    if context is None:
        return
    for name, number in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        yield from _id(number, f"{field}.{name}")
    mount = context.proc_mount
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield not_supported(f"{field}.procMount", as_json(mount), ("Default", "Unmasked"))
    if mount == "Unmasked" and not own_users:
        yield invalid(f"{field}.procMount", quoted(mount), "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(context.seccomp_profile, f"{field}.seccompProfile")
    if context.allow_privilege_escalation is False:
        added = context.capabilities.add if context.capabilities is not None else None
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(field, _go_context(context), detail)
        for name in added or ():
            if name == "CAP_SYS_ADMIN":
                detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(field, _go_context(context), detail)
    yield from _windows_options(context.windows_options, f"{field}.windowsOptions")
    yield from _app_armor(context.app_armor_profile, f"{field}.appArmorProfile")


def validate_pod_context(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    context = kubelet.security_context or PodSecurityContext()
    numbers = (("fsGroup", context.fs_group), ("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group))
    for name, number in numbers:
        yield from _id(number, f"{field}.{name}")
    for index, group in enumerate(context.supplemental_groups or ()):
        yield from _id(group, f"{field}.supplementalGroups[{index}]")
    if kubelet.share_process_namespace and kubelet.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{field}.shareProcessNamespace", "true", detail)
    yield from _sysctls(context, spec, kubelet, f"{field}.sysctls")
    policies = ("Always", "OnRootMismatch")
    yield from _one_of(context.fs_group_change_policy, policies, f"{field}.fsGroupChangePolicy")
    yield from _seccomp(context.seccomp_profile, f"{field}.seccompProfile")
    yield from _windows_options(context.windows_options, f"{field}.windowsOptions")
    yield from _app_armor(context.app_armor_profile, f"{field}.appArmorProfile")
    yield from _one_of(context.supplemental_groups_policy, ("Merge", "Strict"), f"{field}.supplementalGroupsPolicy")
    yield from _one_of(context.se_linux_change_policy, ("Recursive",), f"{field}.seLinuxChangePolicy")


def validate_host_processes(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    """On Windows: all containers are processes of the node, or none is."""
    of_pod = _host_process(kubelet.security_context)
    count = total = 0
    for where, context in _contexts(kubelet, field):
        own = _host_process(context)
        total += 1
        count += bool(own if own is not None else of_pod)
        if of_pod is not None and own is not None and of_pod != own:
            shown = str(of_pod).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(f"{where}.windowsOptions.hostProcess", str(own).lower(), detail)
    if count and count != total:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(field, '""', detail)
    if count and not spec.host_network:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{field}.hostNetwork", "false", detail)


def validate_own_users(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    if spec.host_users is not False:
        return
    for name, is_shared in (("HostPID", kubelet.host_pid), ("HostIPC", kubelet.host_ipc)):
        if is_shared:
            yield forbidden(f"{field}.{name}", "when `hostUsers` is false")


def validate_system(spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    """What a pod of another operating system can say."""
    if kubelet.os is None or kubelet.os.name not in ("linux", WINDOWS):
        return
    places = [(f"{field}.securityContext", kubelet.security_context), *_contexts(kubelet, field)]
    if kubelet.os.name != WINDOWS:
        for where, context in places:
            if context is not None and context.windows_options is not None:
                yield forbidden(f"{where}.windowsOptions", "windows options cannot be set for a linux pod")
        return
    (where, of_pod), *of_containers = places
    for name, is_said in (
        ("hostUsers", spec.host_users is not None),
        ("hostPID", kubelet.host_pid),
        ("hostIPC", kubelet.host_ipc),
        ("shareProcessNamespace", kubelet.share_process_namespace is not None),
    ):
        if is_said:
            yield forbidden(f"{field}.{name}", _NOT_FOR_WINDOWS)
    if isinstance(of_pod, PodSecurityContext):
        yield from _not_for_windows(of_pod, where, _OF_LINUX_PODS)
    for where, context in of_containers:
        if context is not None:
            yield from _not_for_windows(context, where, _OF_LINUX_CONTAINERS)


def validate_security_annotations(annotations: Labels, kubelet: KubeletSpec, field: str) -> Errors:
    for key in sorted(annotations):
        value = annotations[key]
        if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP_OF_CONTAINER):
            known = ("runtime/default", "docker/default", "unconfined")
            if value not in known and not value.startswith(_LOCAL):
                yield invalid(f"{field}.{key}", quoted(value), "must be a valid seccomp profile")
            elif value.startswith(_LOCAL):
                yield from _descending(value.removeprefix(_LOCAL), f"{field}.{key}")
    names = {one.name for one in (*kubelet.containers, *kubelet.init_containers, *kubelet.ephemeral_containers)}
    for key in sorted(annotations):
        value, name = annotations[key], key.removeprefix(APP_ARMOR_ANNOTATION)
        if name == key:
            continue
        if name not in names:
            yield invalid(f"{field}[{key}]", quoted(name), "container not found")
        if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCAL):
            yield invalid(f"{field}[{key}]", quoted(value), f"invalid AppArmor profile name: {quoted(value)}")


def validate_annotated_profiles(annotations: Labels, kubelet: KubeletSpec, field: str) -> Errors:
    """Who says it in both ways says the same."""
    own = kubelet.security_context
    if own is not None and own.seccomp_profile is not None and _SECCOMP_OF_POD in annotations:
        where = f"{field}.securityContext.seccompProfile"
        yield from _matches("seccomp", own.seccomp_profile, annotations[_SECCOMP_OF_POD], where, 2)
    named = [*zip(_names(kubelet), _contexts(kubelet, field), strict=True)]
    for name, (where, context) in named:
        written = annotations.get(f"{_SECCOMP_OF_CONTAINER}{name}")
        if written is not None and context is not None and context.seccomp_profile is not None:
            yield from _matches("seccomp", context.seccomp_profile, written, f"{where}.seccompProfile", 2)
    if kubelet.os is not None and kubelet.os.name == WINDOWS:
        return
    of_pod = None if own is None else own.app_armor_profile
    for name, (where, context) in named:
        written = annotations.get(f"{APP_ARMOR_ANNOTATION}{name}")
        of_container = None if context is None else context.app_armor_profile
        profile = of_container or (None if written is None else _annotated_app_armor(written)) or of_pod
        if written is not None and profile is not None:
            yield from _matches("apparmor", profile, written, f"{where}.appArmorProfile", 1)


def _annotated_app_armor(written: str) -> Profile | None:
    """What becomes the container's own profile before it is looked at."""
    is_known = written in ("runtime/default", "unconfined") or (
        written.startswith(_LOCAL) and written.removeprefix(_LOCAL).strip() == written.removeprefix(_LOCAL) != ""
    )
    if not is_known:
        return None
    if written.startswith(_LOCAL):
        return Profile(type=_LOCALHOST, localhost_profile=written.removeprefix(_LOCAL))
    return Profile(type=_UNCONFINED if written == "unconfined" else _RUNTIME_DEFAULT)


# --- parts


_OF_LINUX_PODS = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "fs_group", "fs_group_change_policy", "sysctls",
    "run_as_user", "run_as_group", "supplemental_groups", "supplemental_groups_policy", "se_linux_change_policy",
)  # fmt: skip
_OF_LINUX_CONTAINERS = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "capabilities", "read_only_root_filesystem",
    "privileged", "allow_privilege_escalation", "proc_mount", "run_as_user", "run_as_group",
)  # fmt: skip


def _not_for_windows(context: Struct, field: str, names: tuple[str, ...]) -> Errors:
    encoded = {info.name: info.encode_name for info in msgspec.structs.fields(context)}
    for name in names:
        if getattr(context, name) not in (None, ()) or (name == "supplemental_groups" and getattr(context, name) == ()):
            yield forbidden(f"{field}.{encoded[name]}", _NOT_FOR_WINDOWS)


def _names(kubelet: KubeletSpec) -> Iterator[str]:
    yield from (one.name for one in (*kubelet.init_containers, *kubelet.containers))


def _contexts(kubelet: KubeletSpec, field: str) -> Iterator[tuple[str, SecurityContext | None]]:
    for kind, containers in (("initContainers", kubelet.init_containers), ("containers", kubelet.containers)):
        for index, one in enumerate(containers):
            yield f"{field}.{kind}[{index}].securityContext", one.security_context


def _host_process(context: PodSecurityContext | SecurityContext | None) -> bool | None:
    return None if context is None or context.windows_options is None else context.windows_options.host_process


def _id(number: int | None, field: str) -> Errors:
    if number is not None and not 0 <= number <= MAX_INT32:
        yield invalid(field, str(number), _IDS)


def _one_of(value: str | None, allowed: tuple[str, ...], field: str) -> Errors:
    if value is not None and value not in allowed:
        yield not_supported(field, as_json(value), allowed)


def _seccomp(profile: Profile | None, field: str) -> Errors:
    if profile is None:
        return
    if not profile.type:
        yield required(f"{field}.type", "type is required when seccompProfile is set")
    elif profile.type not in _TYPES:
        yield not_supported(f"{field}.type", as_json(profile.type), _TYPES)
    path = profile.localhost_profile
    if profile.type == _LOCALHOST and path is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    elif profile.type == _LOCALHOST and path is not None:
        yield from _descending(path, f"{field}.localhostProfile")
    elif path is not None:
        yield invalid(f"{field}.localhostProfile", _go(profile), "can only be set when seccomp type is Localhost")


def _app_armor(profile: Profile | None, field: str) -> Errors:
    if profile is None:
        return
    path, where = profile.localhost_profile, f"{field}.localhostProfile"
    if not profile.type:
        yield required(f"{field}.type", "type is required when appArmorProfile is set")
    elif profile.type not in _TYPES:
        yield not_supported(f"{field}.type", as_json(profile.type), _TYPES)
    elif profile.type != _LOCALHOST:
        if path is not None:
            yield invalid(where, quoted(path), "can only be set when AppArmor type is Localhost")
    elif path is None or (not path.strip() and path == path.strip()):
        yield required(where, "must be set when AppArmor type is Localhost")
    else:
        if path != path.strip():
            yield invalid(where, quoted(path), "must not be padded with whitespace")
        if len(path) > _LONGEST_PATH:
            yield InputError(f"Too long: may not be more than {_LONGEST_PATH} bytes", place=Place(field=where))


def _descending(path: str, field: str) -> Errors:
    if path.startswith("/"):
        yield invalid(field, quoted(path), "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(field, quoted(path), "must not contain '..'")


def _windows_options(options: WindowsOptions | None, field: str) -> Errors:
    if options is None:
        return
    if options.gmsa_credential_spec_name is not None:
        yield from syntax(dns_subdomain_errors, options.gmsa_credential_spec_name, f"{field}.gmsaCredentialSpecName")
    if options.gmsa_credential_spec == "":
        yield invalid(f"{field}.gmsaCredentialSpec", '""', "gmsaCredentialSpec cannot be an empty string")
    name, where = options.run_as_user_name, f"{field}.runAsUserName"
    if name is None:
        return
    user = name.rpartition("\\")[2]
    if not name:
        yield invalid(where, '""', "runAsUserName cannot be an empty string")
    elif name.count("\\") > 1:
        yield invalid(where, quoted(name), "runAsUserName cannot contain more than one backslash")
    elif not user:
        yield invalid(where, quoted(name), "runAsUserName's User cannot be empty")
    elif not user.strip(". "):
        yield invalid(where, quoted(name), "runAsUserName's User cannot contain only periods or spaces")
    elif re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        detail = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        yield invalid(where, quoted(name), detail)


def _sysctls(context: PodSecurityContext, spec: PodSpec, kubelet: KubeletSpec, field: str) -> Errors:
    seen: set[str] = set()
    for index, one in enumerate(context.sysctls):
        where, name = f"{field}[{index}].name", one.name
        if not name:
            yield required(where, "")
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            yield invalid(
                where, quoted(name), f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            )
        elif name in seen:
            yield duplicate(where, quoted(name))
        dotted = name.replace("/", ".")
        if spec.host_network and dotted.startswith(_OF_NETWORK):
            yield invalid(where, quoted(name), "may not be specified when 'hostNetwork' is true")
        elif kubelet.host_ipc and (dotted.startswith(_OF_IPC) or dotted == "kernel.sem"):
            yield invalid(where, quoted(name), "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _matches(what: str, profile: Profile, written: str, field: str, most: int) -> Errors:
    """`most` are how many spellings of a type count."""
    if profile.type == _LOCALHOST:
        if not written.startswith(_LOCAL):
            yield forbidden(f"{field}.type", f"{what} type in annotation and field must match")
        elif profile.localhost_profile != written.removeprefix(_LOCAL):
            yield forbidden(f"{field}.localhostProfile", f"{what} profile in annotation and field must match")
    elif profile.type in _ANNOTATED and written not in _ANNOTATED[profile.type][:most]:
        yield forbidden(f"{field}.type", f"{what} type in annotation and field must match")


def _go_context(context: SecurityContext) -> str:
    values = {info.encode_name: getattr(context, info.name) for info in msgspec.structs.fields(context)}
    return "{" + ",".join(f'"{_go_name(name)}":{_go(values[name])}' for name in _GO_ORDER) + "}"


def _go(value: object) -> str:
    """As Go's encoding/json writes a value of its internal types, whose fields have no other names."""
    if isinstance(value, Struct):
        fields = [(info.encode_name, getattr(value, info.name)) for info in msgspec.structs.fields(value)]
        return "{" + ",".join(f'"{_go_name(name)}":{_go(item)}' for name, item in fields) + "}"
    return msgspec.json.encode(value).decode()


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name, f"{name[:1].upper()}{name[1:]}")


# What the API server refuses in a pod's containers and their ports; as `validation` for the rest of a pod.

PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RESTART_RULES = 20


def validate_containers(spec: PodSpec, kubelet: KubeletSpec, volumes: Mapping[str, VolumeSource], field: str) -> Errors:
    """`volumes` are those that can be mounted."""
    if not spec.containers:
        yield required(field, "")
        return
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        where = f"{field}[{index}]"
        yield from _container(container, _beside(kubelet.containers, index), spec, volumes, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        seen.add(container.name)
        yield from _restart_policy(container, where)
    yield from _host_ports(spec.containers, field)


def validate_init_containers(
    spec: PodSpec, kubelet: KubeletSpec, volumes: Mapping[str, VolumeSource], field: str
) -> Errors:
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{field}[{index}]"
        yield from _container(container, _beside(kubelet.init_containers, index), spec, volumes, where)
        yield from _restart_policy(container, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quoted(container.name))
        elif container.name:
            seen.add(container.name)
        # They run one after the other, so each may use the same ports.
        yield from _host_ports((container,), field)


def _beside(containers: Sequence[KubeletContainer], index: int) -> KubeletContainer:
    return containers[index] if index < len(containers) else KubeletContainer()


def _container(
    container: Container,
    kubelet: KubeletContainer,
    spec: PodSpec,
    volumes: Mapping[str, VolumeSource],
    field: str,
) -> Errors:
    if container.name:
        yield from syntax(dns_label_errors, container.name, f"{field}.name")
    else:
        yield required(f"{field}.name", "")
    if not container.image:
        yield required(f"{field}.image", "")
    elif container.image != container.image.strip():
        yield invalid(f"{field}.image", quoted(container.image), "must not have leading or trailing whitespace")
    yield from _ports(container.ports, f"{field}.ports")
    yield from validate_container_fields(kubelet, volumes, field)
    yield from validate_used_claims(container.resources.claims, spec.resource_claims, f"{field}.resources.claims")
    yield from validate_requirements(container.resources, f"{field}.resources")
    own_users = spec.host_users is False
    yield from validate_container_context(kubelet.security_context, f"{field}.securityContext", own_users=own_users)


def _restart_policy(container: Container, field: str) -> Errors:
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None:
        if rules:
            yield required(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        yield not_supported(f"{field}.restartPolicy", as_json(policy), _RESTART_POLICIES)
    if len(rules) > _MOST_RESTART_RULES:
        detail = f"Too many: {len(rules)}: must have at most {_MOST_RESTART_RULES} items"
        yield InputError(detail, place=Place(field=f"{field}.restartPolicyRules"))
    for index, rule in enumerate(rules):
        if rule.action not in RESTART_ACTIONS:
            yield not_supported(f"{field}.restartPolicyRules[{index}].action", as_json(rule.action), RESTART_ACTIONS)


def _ports(ports: tuple[ContainerPort, ...], field: str) -> Errors:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{field}[{index}]"
        if port.name:
            messages = list(_port_name_errors(port.name))
            yield from (invalid(f"{where}.name", quoted(port.name), message) for message in messages)
            if port.name in names:
                yield duplicate(f"{where}.name", quoted(port.name))
            elif not messages:
                names.add(port.name)
        if port.container_port == 0:
            yield required(f"{where}.containerPort", "")
        else:
            yield from _port_number(port.container_port, f"{where}.containerPort")
        if port.host_port != 0:
            yield from _port_number(port.host_port, f"{where}.hostPort")
        yield from one_of(port.protocol, PROTOCOLS, f"{where}.protocol")


def _port_number(number: int, field: str) -> Errors:
    if not 1 <= number <= 65535:
        yield invalid(field, str(number), "must be between 1 and 65535, inclusive")


def _port_name_errors(name: str) -> Iterator[str]:
    if len(name.encode(errors="surrogatepass")) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def _host_ports(containers: Iterable[Container], field: str) -> Errors:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port == 0:
                continue
            key = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if key in taken:
                yield duplicate(f"{field}[{index}].ports[{port_index}].hostPort", quoted(key))
            taken.add(key)


def validate_host_network_ports(containers: tuple[Container, ...], field: str) -> Errors:
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port != port.container_port:
                where = f"{field}[{index}].ports[{port_index}].hostPort"
                yield invalid(where, str(port.host_port), "must match `containerPort` when `hostNetwork` is true")


# What the API server refuses in the fields that scheduling reads, with its field paths and words.
#
# For manifests that have been through `api/defaulting.py`. Objects from a cluster were accepted by another release at
# another time, perhaps under other rules, and are not checked. Each function yields errors in upstream's order, none
# if
# all is well; paths are upstream's also where they are odd.
# Upstream: pkg/apis/core/validation/validation.go, apimachinery/pkg/api/validation/objectmeta.go.

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LARGEST_ANNOTATIONS = 256 * 1024


def validate_pod(pod: Pod, options: ValidationOptions = DEFAULT_OPTIONS, kubelet: KubeletSpec | None = None) -> Errors:
    """A new pod, defaulted; `kubelet`, where it is known, is what else its spec says."""
    kubelet = kubelet or KubeletSpec()
    yield from _metadata(pod.metadata)
    yield from validate_security_annotations(pod.metadata.annotations, kubelet, "metadata.annotations")
    yield from _spec(pod.spec, kubelet, pod.metadata.name, "spec", options)
    if kubelet.ephemeral_containers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from validate_annotated_profiles(pod.metadata.annotations, kubelet, "spec")


def _spec(spec: PodSpec, kubelet: KubeletSpec, pod_name: str, field: str, options: ValidationOptions) -> Errors:
    faults, volumes = check_volumes(kubelet.volumes, pod_name, f"{field}.volumes")
    yield from faults
    yield from validate_resource_claims(spec.resource_claims, f"{field}.resourceClaims")
    yield from validate_containers(spec, kubelet, volumes, f"{field}.containers")
    yield from validate_init_containers(spec, kubelet, volumes, f"{field}.initContainers")
    if options.pod_level_resources:
        yield from validate_pod_level(spec, f"{field}.resources")
    if spec.host_network:
        yield from validate_host_network_ports(spec.containers, f"{field}.containers")
    yield from one_of(spec.restart_policy, RESTART_POLICIES, f"{field}.restartPolicy")
    if kubelet.dns_policy:
        yield from one_of(kubelet.dns_policy, DNS_POLICIES, f"{field}.dnsPolicy")
    yield from validate_labels(spec.node_selector, f"{field}.nodeSelector")
    yield from validate_pod_context(spec, kubelet, f"{field}.securityContext")
    if spec.affinity is not None:
        yield from validate_affinity(spec.affinity, f"{field}.affinity")
    yield from validate_scheduling_gates(spec.scheduling_gates, f"{field}.schedulingGates")
    yield from validate_spread_constraints(spec.topology_spread_constraints, f"{field}.topologySpreadConstraints")
    yield from validate_host_processes(spec, kubelet, field)
    if spec.host_users is False and spec.host_network:
        yield forbidden(f"{field}.hostNetwork", "when `hostUsers` is false")
    yield from validate_own_users(spec, kubelet, field)
    if spec.node_name:
        yield from syntax(dns_subdomain_errors, spec.node_name, f"{field}.nodeName")
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", str(deadline), detail)
    for name, value in (("hostname", kubelet.hostname), ("subdomain", kubelet.subdomain)):
        if value:
            yield from syntax(dns_label_errors, value, f"{field}.{name}")
    yield from validate_tolerations(spec.tolerations, f"{field}.tolerations", options)
    if spec.priority_class_name:
        yield from syntax(dns_subdomain_errors, spec.priority_class_name, f"{field}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from syntax(dns_subdomain_errors, spec.runtime_class_name, f"{field}.runtimeClassName")
    if spec.preemption_policy is not None:
        yield from one_of(spec.preemption_policy, PREEMPTION_POLICIES, f"{field}.preemptionPolicy")
    yield from validate_requirements(ResourceRequirements(limits=spec.overhead), f"{field}.overhead")
    if kubelet.os is not None and not kubelet.os.name:
        yield required(f"{field}.os.name", "")
    elif kubelet.os is not None and kubelet.os.name not in OPERATING_SYSTEMS:
        yield not_supported(f"{field}.os", as_json(kubelet.os.name), OPERATING_SYSTEMS)
    yield from validate_system(spec, kubelet, field)


# --- a cluster as people write it: terse, but not wrong


def validate_written_pod_spec(spec: PodSpec) -> Errors:
    """A pod of a hand-written cluster: amounts, selectors and operators must be right, since decisions rest on them.

    What only a kubelet needs may be missing, and names are free: a sketch of a cluster is none the worse for it.
    """
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            where = f"spec.{name}[{index}].resources"
            yield from validate_requested(container.resources.limits, f"{where}.limits")
            yield from validate_requested(container.resources.requests, f"{where}.requests")
    yield from validate_requested(spec.overhead, "spec.overhead")
    yield from validate_labels(spec.node_selector, "spec.nodeSelector")
    if spec.affinity is not None:
        yield from validate_affinity_selectors(spec.affinity, "spec.affinity")
    yield from validate_spread_constraints(spec.topology_spread_constraints, "spec.topologySpreadConstraints")
    for index, toleration in enumerate(spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if toleration.operator not in ("", *OPERATORS):
            yield not_supported(f"{where}.operator", as_json(toleration.operator), OPERATORS)
        if toleration.effect:
            yield from one_of(toleration.effect, EFFECTS, f"{where}.effect")


def validate_written_node(node: Node) -> Errors:
    """A node of a hand-written cluster, in the same way."""
    for index, taint in enumerate(node.spec.taints):
        yield from one_of(taint.effect, EFFECTS, f"spec.taints[{index}].effect")
    yield from validate_amounts(node.status.capacity, "status.capacity")
    yield from validate_amounts(node.status.allocatable, "status.allocatable")


# --- metadata


def _metadata(metadata: ObjectMeta) -> Errors:
    if metadata.generate_name:
        # A dash before the generated end is fine.
        start = re.sub(r"(?<=.).-$", "a", metadata.generate_name)
        for message in dns_subdomain_errors(start):
            yield invalid("metadata.generateName", quoted(metadata.generate_name), message)
    if metadata.name:
        yield from syntax(dns_subdomain_errors, metadata.name, "metadata.name")
    elif not metadata.generate_name:
        yield required("metadata.name", "name or generateName is required")
    if metadata.namespace:
        yield from syntax(dns_label_errors, metadata.namespace, "metadata.namespace")
    else:
        yield required("metadata.namespace", "")
    yield from validate_labels(metadata.labels, "metadata.labels")
    for key in sorted(metadata.annotations):
        for message in label_key_errors(key.lower()):
            yield invalid("metadata.annotations", quoted(key), message)
    size = sum(len(text.encode(errors="surrogatepass")) for pair in metadata.annotations.items() for text in pair)
    if size > _LARGEST_ANNOTATIONS:
        detail = f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"
        yield InputError(detail, place=Place(field="metadata.annotations"))
