"""The API server's validation of a new pod's fields that scheduling reads, with its field paths and messages.

For manifests after `apiserver/defaulting.py`. Objects from a cluster were accepted by another version, perhaps under
other rules, and are not validated. Each function yields errors in upstream's order; paths are upstream's even if they
are odd. Of what only the kubelet reads, volumes and their mounts are validated; --dry-run=server validates the rest.
Upstream: pkg/apis/core/validation/validation.go, apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set

import msgspec

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
from kschedx.apiserver.pod_security import KubeletContainer, KubeletSpec, VolumeSource
from kschedx.errors import InputError, Place
from kschedx.kube.field_errors import (
    DEFAULT_OPTIONS,
    Errors,
    ValidationOptions,
    as_json,
    duplicate,
    forbidden_error,
    invalid,
    not_found_error,
    not_supported_error,
    one_of,
    quote_go,
    required_error,
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
from kschedx.kube.resources import container_limits, container_requests, parse_resources
from kschedx.kube.types import (
    Container,
    ContainerClaim,
    ContainerPort,
    Node,
    ObjectMeta,
    PersistentVolumeClaimSpec,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
)
from kschedx.kube.typos import nearest_name

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_MAX_INT32 = 2**31 - 1


def validate_claim_spec(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    """Validate the spec of a PersistentVolumeClaim with its defaults."""
    modes = spec.access_modes
    if not modes:
        yield required_error(f"{field}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, f"{field}.selector")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported_error(f"{field}.accessModes", quote_go(mode), _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        yield forbidden_error(f"{field}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _storage(spec, f"{field}.resources[storage]")
    if spec.storage_class_name:
        yield from syntax(dns_subdomain_errors, spec.storage_class_name, f"{field}.storageClassName")
    if spec.volume_mode not in _VOLUME_MODES:
        yield not_supported_error(f"{field}.volumeMode", as_json(spec.volume_mode), _VOLUME_MODES)


def _storage(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    written = spec.resources.requests.get("storage")
    if written is None:
        yield required_error(field, "")
        return
    try:
        quantity = parse_quantity(written)
    except InputError as error:
        yield error.at(Place(field=field))
        return
    if quantity.mantissa <= 0:
        yield invalid(field, quote_go(str(quantity)), "must be greater than zero")


def _validate_resource_claims(claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{field}[{index}]"
        if not claim.name:
            yield required_error(f"{where}.name", "")
        elif claim.name in seen:
            yield duplicate(f"{where}.name", quote_go(claim.name))
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
    """Return the claim as JSON with the field names of the API server's internal type."""
    return msgspec.json.encode(
        {
            "Name": claim.name,
            "ResourceClaimName": claim.resource_claim_name,
            "ResourceClaimTemplateName": claim.resource_claim_template_name,
        }
    ).decode()


def _validate_used_claims(used: tuple[ContainerClaim, ...], claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    """Validate resources.claims of a container: each must be one of the pod's claims, without duplicates."""
    known = sorted({claim.name for claim in claims if claim.name})
    detail = "must be one of the names in pod.spec.resourceClaims"
    detail += f": {', '.join(known)}" if known else " which is empty"
    seen: set[str] = set()
    for index, claim in enumerate(used):
        where, name = f"{field}[{index}]", claim.name
        if not name:
            yield required_error(where, "")
            continue
        key = f"{name}/{claim.request}" if claim.request else name
        if name in seen:
            yield duplicate(where, quote_go(name))
        else:
            if claim.request:
                yield from syntax(dns_label_errors, claim.request, f"{where}.request")
            if key in seen:
                yield duplicate(where, quote_go(key))
            elif not claim.request:
                yield from (duplicate(where, quote_go(name)) for other in seen if other.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            yield not_found_error(where, quote_go(name), detail)


# The API server's validation of requests, limits, overhead, and a node's resources. Each function yields errors.
# Resources are in alphabetical order, which is random in Go. Upstream: pkg/apis/core/validation/validation.go.

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


def _validate_requirements(
    resources: ResourceRequirements, field: str, *, is_pod_level: bool = False
) -> Iterator[InputError]:
    """Validate the requests and limits of a container or a whole pod."""
    limits, limit_errors = _parse_with_errors(resources.limits, f"{field}.limits")
    requests, request_errors = _parse_with_errors(resources.requests, f"{field}.requests")
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
            yield required_error(f"{field}.limits", "Limit must be set for non overcommitable resources")
        yield from _hugepages(name, quantity, where)
    named = limits.keys() | requests.keys()
    if any(map(is_hugepages, named)) and not named & {CPU, MEMORY}:
        yield forbidden_error(field, "HugePages require cpu or memory")


def _validate_pod_level(spec: PodSpec, field: str) -> Iterator[InputError]:
    """Validate spec.resources, also against the containers' requests."""
    if spec.resources is None:
        return
    yield from _validate_requirements(spec.resources, field, is_pod_level=True)
    try:
        requests, limits = container_requests(spec), container_limits(spec)
        pod_limits = parse_resources(spec.resources.limits)
    except InputError:
        return  # reported elsewhere, at the invalid value
    for name, together in sorted(requests.items()):
        request = spec.resources.requests.get(name)
        if request is not None and together > parse_quantity(request):
            detail = f"must be greater than or equal to aggregate container requests of {together}"
            yield _invalid(f"{field}.requests[{name}]", parse_quantity(request), detail)
    for name, together in sorted(limits.items()):
        if is_hugepages(name) and name in pod_limits and together > pod_limits[name]:
            detail = f"must be greater than or equal to aggregate container limits of {together}"
            yield _invalid(f"{field}.limits[{name}]", pod_limits[name], detail)
    for index, container in enumerate(spec.containers):
        for name, limit in sorted(container.resources.limits.items()):
            if name in pod_limits and parse_quantity(limit) > pod_limits[name]:
                where = f"{field}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {pod_limits[name]}"
                yield _invalid(where, parse_quantity(limit), detail)


def _validate_amounts(resources: ResourceList, field: str) -> Iterator[InputError]:
    """Validate a node's capacity or allocatable: not negative, and whole for countable resources."""
    return _amounts((name, written, f"{field}.{name}") for name, written in sorted(resources.items()))


def _validate_requested(resources: ResourceList, field: str) -> Iterator[InputError]:
    """Validate only the amounts of requests or limits in the same way."""
    return _amounts((name, written, f"{field}[{name}]") for name, written in sorted(resources.items()))


def _amounts(named: Iterable[tuple[str, str | int | float, str]]) -> Iterator[InputError]:
    for name, written, where in named:
        try:
            yield from _quantity(name, parse_quantity(written), where)
        except InputError as error:
            yield error.at(Place(field=where))


def _parse_with_errors(resources: ResourceList, field: str) -> tuple[dict[str, Quantity], list[InputError]]:
    quantities, errors = {}, []
    for name, written in sorted(resources.items()):
        try:
            quantities[name] = parse_quantity(written)
        except InputError as error:
            errors.append(error.at(Place(field=f"{field}[{name}]")))
    return quantities, errors


def _name(name: str, field: str, *, is_pod_level: bool) -> Iterator[InputError]:
    errors = [invalid(field, as_json(name), message) for message in label_key_errors(name)]
    if not errors and "/" not in name and not (name in _STANDARD or is_hugepages(name.removeprefix("requests."))):
        errors.append(invalid(field, as_json(name), "must be a standard resource type or fully qualified"))
    yield from errors
    if is_pod_level:
        if not errors and not is_pod_level_resource(name):
            yield not_supported_error(field, as_json(name), (CPU, "hugepages-", MEMORY))
    elif "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages(name):
            yield invalid(field, as_json(name), "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        yield invalid(field, as_json(name), "doesn't follow extended resource name standard")


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
    elif request > limit:
        yield _invalid(field, request, f"must be less than or equal to {name} limit of {limit}")


def _invalid(field: str, quantity: Quantity, detail: str) -> InputError:
    return invalid(field, quote_go(str(quantity)), detail)


# The API server's validation of containers and their ports.

PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RESTART_RULES = 20


def _validate_containers(spec: PodSpec, field: str) -> Errors:
    if not spec.containers:
        yield required_error(field, "")
        return
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        where = f"{field}[{index}]"
        yield from _container(container, spec, where)
        if container.name in seen:
            yield duplicate(f"{where}.name", quote_go(container.name))
        seen.add(container.name)
        yield from _restart_policy(container, where)
    yield from _host_ports(spec.containers, field)


def _validate_init_containers(spec: PodSpec, field: str) -> Errors:
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{field}[{index}]"
        yield from _container(container, spec, where)
        # rules without a policy are one error of an init container, whatever the rules say
        yield from _restart_policy(container, where, checks_rules=container.restart_policy is not None)
        if container.name in seen:
            yield duplicate(f"{where}.name", quote_go(container.name))
        elif container.name:
            seen.add(container.name)
        # init containers run one after the other, so each may use the same ports
        yield from _host_ports((container,), field)


def _container(container: Container, spec: PodSpec, field: str) -> Errors:
    if container.name:
        yield from syntax(dns_label_errors, container.name, f"{field}.name")
    else:
        yield required_error(f"{field}.name", "")
    if not container.image:
        yield required_error(f"{field}.image", "")
    elif container.image != container.image.strip():
        yield invalid(f"{field}.image", quote_go(container.image), "must not have leading or trailing whitespace")
    yield from _ports(container.ports, f"{field}.ports")
    yield from _validate_used_claims(container.resources.claims, spec.resource_claims, f"{field}.resources.claims")
    yield from _validate_requirements(container.resources, f"{field}.resources")


def _restart_policy(container: Container, field: str, *, checks_rules: bool = True) -> Errors:
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None:
        if rules:
            yield required_error(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART_POLICIES:
        yield not_supported_error(f"{field}.restartPolicy", as_json(policy), _RESTART_POLICIES)
    if not checks_rules:
        return
    if len(rules) > _MOST_RESTART_RULES:
        detail = f"Too many: {len(rules)}: must have at most {_MOST_RESTART_RULES} items"
        yield InputError(detail, place=Place(field=f"{field}.restartPolicyRules"))
    for index, rule in enumerate(rules):
        if rule.action not in RESTART_ACTIONS:
            yield not_supported_error(
                f"{field}.restartPolicyRules[{index}].action", as_json(rule.action), RESTART_ACTIONS
            )


def _ports(ports: tuple[ContainerPort, ...], field: str) -> Errors:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{field}[{index}]"
        if port.name:
            messages = list(_port_name_errors(port.name))
            yield from (invalid(f"{where}.name", quote_go(port.name), message) for message in messages)
            if port.name in names:
                yield duplicate(f"{where}.name", quote_go(port.name))
            elif not messages:
                names.add(port.name)
        if port.container_port == 0:
            yield required_error(f"{where}.containerPort", "")
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
                yield duplicate(f"{field}[{index}].ports[{port_index}].hostPort", quote_go(key))
            taken.add(key)


def _validate_host_network_ports(containers: tuple[Container, ...], field: str) -> Errors:
    for index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            if port.host_port != port.container_port:
                where = f"{field}[{index}].ports[{port_index}].hostPort"
                yield invalid(where, str(port.host_port), "must match `containerPort` when `hostNetwork` is true")


# --- the pod

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LARGEST_ANNOTATIONS = 256 * 1024


def validate_pod(pod: Pod, options: ValidationOptions = DEFAULT_OPTIONS) -> Errors:
    """Validate a new pod with its defaults."""
    yield from _metadata(pod.metadata)
    yield from _spec(pod.spec, "spec", options)
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden_error("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _spec(spec: PodSpec, field: str, options: ValidationOptions) -> Errors:
    for index, volume in enumerate(spec.volumes):
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        if template is not None:
            where = f"{field}.volumes[{index}].ephemeral.volumeClaimTemplate.spec"
            yield from validate_claim_spec(template.spec, where)
    yield from _validate_resource_claims(spec.resource_claims, f"{field}.resourceClaims")
    yield from _validate_containers(spec, f"{field}.containers")
    yield from _validate_init_containers(spec, f"{field}.initContainers")
    if options.pod_level_resources:
        yield from _validate_pod_level(spec, f"{field}.resources")
    if spec.host_network:
        yield from _validate_host_network_ports(spec.containers, f"{field}.containers")
    yield from one_of(spec.restart_policy, RESTART_POLICIES, f"{field}.restartPolicy")
    yield from validate_labels(spec.node_selector, f"{field}.nodeSelector")
    if spec.affinity is not None:
        yield from validate_affinity(spec.affinity, f"{field}.affinity")
    yield from validate_scheduling_gates(spec.scheduling_gates, f"{field}.schedulingGates")
    yield from validate_spread_constraints(spec.topology_spread_constraints, f"{field}.topologySpreadConstraints")
    if spec.host_users is False and spec.host_network:
        yield forbidden_error(f"{field}.hostNetwork", "when `hostUsers` is false")
    if spec.node_name:
        yield from syntax(dns_subdomain_errors, spec.node_name, f"{field}.nodeName")
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        detail = f"must be between 1 and {_MAX_INT32}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", str(deadline), detail)
    yield from validate_tolerations(spec.tolerations, f"{field}.tolerations", options)
    if spec.priority_class_name:
        yield from syntax(dns_subdomain_errors, spec.priority_class_name, f"{field}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from syntax(dns_subdomain_errors, spec.runtime_class_name, f"{field}.runtimeClassName")
    if spec.preemption_policy is not None:
        yield from one_of(spec.preemption_policy, PREEMPTION_POLICIES, f"{field}.preemptionPolicy")
    yield from _validate_requirements(ResourceRequirements(limits=spec.overhead), f"{field}.overhead")


# --- volumes and their mounts

_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
"""The sources of a volume, in upstream's order."""
_REQUIRED_FIELDS = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
}
_ODD_PATHS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Fields that upstream's error about a second source spells differently."""


def validate_kubelet_fields(pod: Pod, kubelet: KubeletSpec) -> Errors:
    """Validate the volumes of a new pod, the mounts of its containers, and namespaces of the host."""
    valid_names: set[str] = set()
    for index, volume in enumerate(kubelet.volumes):
        errors = list(_volume(volume, f"spec.volumes[{index}]", valid_names))
        yield from errors
        if not errors:
            valid_names.add(str(volume["name"]))
    # a StatefulSet's controller adds the volumes of its claim templates
    known = valid_names | ({item.name for item in pod.spec.volumes} - {item.get("name") for item in kubelet.volumes})
    for name, containers in (("containers", kubelet.containers), ("initContainers", kubelet.init_containers)):
        for index, container in enumerate(containers):
            yield from _mounts(container, known, f"spec.{name}[{index}].volumeMounts")
    if pod.spec.host_users is False:
        for is_shared, name in ((kubelet.host_pid, "HostPID"), (kubelet.host_ipc, "HostIPC")):
            if is_shared:
                yield forbidden_error(f"spec.{name}", "when `hostUsers` is false")


def _volume(volume: VolumeSource, field: str, others: Set[str]) -> Errors:
    sources = [(name, volume[name]) for name in _SOURCES if volume.get(name) is not None]
    for index, (name, source) in enumerate(sources):
        if index:
            yield forbidden_error(f"{field}.{_ODD_PATHS.get(name, name)}", "may not specify more than 1 volume type")
            continue
        is_slim = name == "hostPath" and not source  # a snapshot of kschedx does not keep the path
        for required in () if is_slim else _REQUIRED_FIELDS.get(name, ()):
            if isinstance(source, Mapping) and source.get(required) in (None, ""):
                yield required_error(f"{field}.{name}.{required}", "")
    name = str(volume.get("name") or "")
    if not name:
        yield required_error(f"{field}.name", "")
    yield from syntax(dns_label_errors, name, f"{field}.name") if name else ()
    if name in others:
        yield duplicate(f"{field}.name", quote_go(name))


def _mounts(container: KubeletContainer, volumes: Set[str], field: str) -> Errors:
    paths: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        where = f"{field}[{index}]"
        if not mount.name:
            yield required_error(f"{where}.name", "")
        if mount.name not in volumes:
            near = nearest_name(mount.name, volumes)
            hint = f'did you mean "{near}"?' if near else ""
            yield InputError(f"Not found: {quote_go(mount.name)}", place=Place(field=f"{where}.name"), hint=hint)
        if not mount.mount_path:
            yield required_error(f"{where}.mountPath", "")
        if mount.mount_path in paths:
            yield invalid(f"{where}.mountPath", quote_go(mount.mount_path), "must be unique")
        paths.add(mount.mount_path)


# --- hand-written clusters: terse, but valid


def validate_written_pod_spec(spec: PodSpec) -> Errors:
    """Validate a pod of a hand-written cluster: amounts, selectors, and operators must be valid, because decisions
    depend on them. Fields for the kubelet may be absent, and names are free."""
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            where = f"spec.{name}[{index}].resources"
            yield from _validate_requested(container.resources.limits, f"{where}.limits")
            yield from _validate_requested(container.resources.requests, f"{where}.requests")
    yield from _validate_requested(spec.overhead, "spec.overhead")
    yield from validate_labels(spec.node_selector, "spec.nodeSelector")
    if spec.affinity is not None:
        yield from validate_affinity_selectors(spec.affinity, "spec.affinity")
    yield from validate_spread_constraints(spec.topology_spread_constraints, "spec.topologySpreadConstraints")
    for index, toleration in enumerate(spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if toleration.operator not in ("", *OPERATORS):
            yield not_supported_error(f"{where}.operator", as_json(toleration.operator), OPERATORS)
        if toleration.effect:
            yield from one_of(toleration.effect, EFFECTS, f"{where}.effect")


def validate_written_node(node: Node) -> Errors:
    """Validate a node of a hand-written cluster in the same way."""
    for index, taint in enumerate(node.spec.taints):
        yield from one_of(taint.effect, EFFECTS, f"spec.taints[{index}].effect")
    yield from _validate_amounts(node.status.allocatable, "status.allocatable")
    yield from _validate_amounts(node.status.capacity, "status.capacity")


# --- metadata


def _metadata(metadata: ObjectMeta) -> Errors:
    if metadata.generate_name:
        # a dash before the generated suffix is valid
        start = re.sub(".-$", "a", metadata.generate_name)
        for message in dns_subdomain_errors(start):
            yield invalid("metadata.generateName", quote_go(metadata.generate_name), message)
    if metadata.name:
        yield from syntax(dns_subdomain_errors, metadata.name, "metadata.name")
    elif not metadata.generate_name:
        yield required_error("metadata.name", "name or generateName is required")
    if metadata.namespace:
        yield from syntax(dns_label_errors, metadata.namespace, "metadata.namespace")
    else:
        yield required_error("metadata.namespace", "")
    yield from validate_labels(metadata.labels, "metadata.labels")
    for key in sorted(metadata.annotations):
        for message in label_key_errors(key.lower()):
            yield invalid("metadata.annotations", quote_go(key), message)
    size = sum(len(text.encode(errors="surrogatepass")) for pair in metadata.annotations.items() for text in pair)
    if size > _LARGEST_ANNOTATIONS:
        detail = f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"
        yield InputError(detail, place=Place(field="metadata.annotations"))
