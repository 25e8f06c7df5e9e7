"""ResourceQuotas' refusals of a new object, in the API server's words.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, pkg/quota/v1/evaluator/core/
(pods.go, persistent_volume_claims.go, resource_claims.go, registry.go) and, for objects that are only counted,
apiserver/pkg/quota/v1/generic/evaluator.go. Several refusing quotas are in the order of their names, which is random in
Go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.admission import is_best_effort
from kschedx.kube.devices import AllocationMode, ResourceClaim
from kschedx.kube.names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_extended_resource,
    is_hugepages,
    is_native_resource,
    is_pod_level_resource,
)
from kschedx.kube.quantity import Quantity, parse_quantity
from kschedx.kube.resources import (
    ResourceQuota,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
    container_limits,
    container_requests,
    parse_resources,
)
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import ObjectMeta, Pod, PodSpec

_COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_PODS = frozenset(
    ("pods", "count/pods", *_COMPUTE, *(f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE))
)
MUST_BE_SPECIFIED = frozenset(
    (CPU, MEMORY, *(f"{side}.{name}" for side in ("requests", "limits") for name in (CPU, MEMORY)))
)
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OF_DEVICES = "count/resourceclaims.resource.k8s.io"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32  # the number that a claim for all devices counts as
_ONE = parse_quantity("1")
_ZERO = parse_quantity("0")

_QuotaAmounts = Mapping[str, Quantity]


class ChargedObject(Struct, frozen=True, kw_only=True):
    """An object of which a quota counts only the number."""

    metadata: ObjectMeta
    resource: str  # `deployments.apps`, or `replicationcontrollers` in the core group


New = Pod | PersistentVolumeClaim | ResourceClaim | ChargedObject


def quota_refusal(new: New, quotas: Iterable[ResourceQuota], *, pod_level_resources: bool) -> str | None:
    """Return why a quota of its namespace refuses a new, otherwise admitted object, or None. A quota without a status
    is not synced yet and refuses nothing."""
    usage = _usage(new, pod_level_resources=pod_level_resources)
    concerned = [quota for quota in sorted(quotas, key=lambda quota: quota.metadata.name) if _matches(quota, new)]
    for quota in concerned:
        name = quota.metadata.name
        restricted = [resource for resource in sorted(quota.status.hard) if _is_restricted(resource, new)]
        missing = _missing_requests(new, restricted, pod_level_resources=pod_level_resources)
        if missing:
            return forbidden_text(new, f"failed quota: {name}: must specify {missing}")
        if any(resource not in quota.status.used for resource in restricted):
            return forbidden_text(new, f"status unknown for quota: {name}, resources: {','.join(restricted)}")
    for quota in concerned:
        hard, used = parse_resources(quota.status.hard), parse_resources(quota.status.used)
        requested_amounts = {
            resource: amount for resource, amount in usage.items() if amount.mantissa and resource in hard
        }
        exceeded = [
            resource
            for resource, amount in sorted(requested_amounts.items())
            if used.get(resource, _ZERO) + amount > hard[resource]
        ]
        if exceeded:
            formatted = (_format_amounts(amounts, exceeded) for amounts in (requested_amounts, used, hard))
            requested, already, limited = formatted
            text = f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {already}, limited: {limited}"
            return forbidden_text(new, text)
    return None


def with_status(quota: ResourceQuota, objects: Iterable[New], *, pod_level_resources: bool) -> ResourceQuota:
    """Return the quota with the status that its controller sets first: the usage of its namespace's `objects`."""
    hard = quota.spec.hard
    quota = replace(quota, status=ResourceQuotaStatus(hard=hard))
    used = dict.fromkeys(hard, _ZERO)
    for charged_object in objects:
        if not _matches(quota, charged_object):
            continue
        for resource, amount in _usage(charged_object, pod_level_resources=pod_level_resources).items():
            if resource in used:
                used[resource] += amount
    status = ResourceQuotaStatus(hard=hard, used={name: str(amount) for name, amount in used.items()})
    return replace(quota, status=status)


def charge(quota: ResourceQuota, new: New, *, pod_level_resources: bool) -> ResourceQuota:
    """Return the quota after the object is created."""
    return _add_usage(quota, _usage(new, pod_level_resources=pod_level_resources)) if _matches(quota, new) else quota


def release_usage(quota: ResourceQuota, gone: New, *, pod_level_resources: bool) -> ResourceQuota:
    """Return the quota after the object is deleted."""
    if not _matches(quota, gone):
        return quota
    usage = _usage(gone, pod_level_resources=pod_level_resources)
    return _add_usage(quota, {resource: _negative(amount) for resource, amount in usage.items()})


def _add_usage(quota: ResourceQuota, by: _QuotaAmounts) -> ResourceQuota:
    used = parse_resources(quota.status.used)
    for resource, amount in by.items():
        if resource in quota.status.hard:
            total = used.get(resource, _ZERO) + amount
            used[resource] = _ZERO if total.mantissa < 0 else total  # the status may be older than the object
    return replace(quota, status=replace(quota.status, used={name: str(amount) for name, amount in used.items()}))


def forbidden_text(new: New, text: str) -> str:
    """Return the API server's message for a refusal."""
    return f'{_resource(new)} "{new.metadata.name or new.metadata.generate_name}" is forbidden: {text}'


def _resource(new: New) -> str:
    match new:
        case Pod():
            return "pods"
        case PersistentVolumeClaim():
            return "persistentvolumeclaims"
        case ResourceClaim():
            return "resourceclaims.resource.k8s.io"
        case ChargedObject():
            return new.resource
        case _:
            assert_never(new)


def create_error_text(pod: Pod, refusal: str) -> str:
    """Return the message of the controller's FailedCreate event for a pod."""
    owner = pod.metadata.controller
    if owner is None:
        return refusal
    if owner.kind == "StatefulSet":
        return f"create Pod {pod.metadata.name} in StatefulSet {owner.name} failed error: {refusal}"
    return f"Error creating: {refusal}"


def owner_create_error_text(maker: ChargedObject, refusal: str) -> str:
    """Return the message for an object that would create the pod: a Deployment's ReplicaSet, or a CronJob's Job."""
    if maker.resource == "jobs.batch":
        return f"Error creating job: {refusal}"
    return f'Failed to create new replica set "{maker.metadata.name}": {refusal}'


def claim_not_created(claim: PersistentVolumeClaim, pod: Pod, refusal: str) -> str:
    """Return the message for a claim that a StatefulSet creates for its pod."""
    owner = pod.metadata.controller
    if owner is None:
        return refusal
    name = claim.metadata.name
    return f"create Claim {name} for Pod {pod.metadata.name} in StatefulSet {owner.name} failed error: {refusal}"


def _format_amounts(amounts: _QuotaAmounts, names: Sequence[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)


# --- matching quotas


def _matches(quota: ResourceQuota, new: New) -> bool:
    is_about = any(_is_restricted(resource, new) for resource in quota.status.hard)
    return is_about and all(_is_in_scope(scope, new) for scope in quota.scopes)


def _is_restricted(resource: str, new: New) -> bool:
    match new:
        case Pod():
            is_of_device = not is_native_resource(resource) and resource.startswith("requests.")
            return resource in _OF_PODS or is_hugepages(resource.removeprefix("requests.")) or is_of_device
        case PersistentVolumeClaim():
            counted = ("count/persistentvolumeclaims", *_OF_CLAIMS)
            return resource in counted or any(
                resource.endswith(f"{_OF_CLASS}{claim_suffix}") for claim_suffix in _OF_CLAIMS
            )
        case ResourceClaim():
            return resource == _OF_DEVICES or resource.endswith(_OF_DEVICE_CLASS)
        case ChargedObject():
            return resource in _counts(new)
        case _:
            assert_never(new)


def _is_in_scope(scope: ScopedResourceSelectorRequirement, new: New) -> bool:
    if isinstance(new, PersistentVolumeClaim) and scope.scope_name == "VolumeAttributesClass":
        return _has_class(scope, new.spec.volume_attributes_class_name)
    if not isinstance(new, Pod):
        return False
    spec = new.spec
    match scope.scope_name:
        case "Terminating" | "NotTerminating":
            ends = spec.active_deadline_seconds is not None and spec.active_deadline_seconds >= 0
            return ends is (scope.scope_name == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return is_best_effort(spec) is (scope.scope_name == "BestEffort")
        case "PriorityClass":
            return _has_class(scope, spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            terms = () if spec.affinity is None else spec.affinity.pod_terms
            return any(term.namespaces or term.namespace_selector is not None for term in terms)
        case _:
            return False


def _has_class(scope: ScopedResourceSelectorRequirement, name: str) -> bool:
    match scope.operator:
        case "In":
            return name in scope.values and bool(name)
        case "NotIn":
            return name not in scope.values or not name
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case _:
            return False


# --- usage


def _missing_requests(new: New, restricted: Iterable[str], *, pod_level_resources: bool) -> str:
    """Return `limits.cpu for: main,side; ...`: every container needs the cpu and memory values that a quota counts."""
    if not isinstance(new, Pod) or (pod_level_resources and _has_own_resources(new.spec)):
        return ""
    missing: list[str] = []
    for resource in restricted:
        if resource not in MUST_BE_SPECIFIED:
            continue
        names = {
            container.name
            for container in (*new.spec.containers, *new.spec.init_containers)
            if resource not in _compute_names(container.resources.requests, container.resources.limits)
        }
        if names:
            missing.append(f"{resource} for: {','.join(sorted(names))}")
    return "; ".join(missing)


def _has_own_resources(spec: PodSpec) -> bool:
    own = spec.resources
    return own is not None and any(is_pod_level_resource(name) for name in (*own.requests, *own.limits))


def _compute_names(requests: Mapping[str, object], limits: Mapping[str, object]) -> set[str]:
    """Return the names under which a quota counts them."""
    return {*requests, *(f"requests.{name}" for name in requests), *(f"limits.{name}" for name in limits)}


def _usage(new: New, *, pod_level_resources: bool) -> _QuotaAmounts:
    match new:
        case Pod():
            if new.status.phase in ("Failed", "Succeeded"):
                return {"count/pods": _ONE}
            return {"count/pods": _ONE, "pods": _ONE, **_compute(new.spec, pod_level_resources=pod_level_resources)}
        case PersistentVolumeClaim():
            return _claim_usage(new)
        case ResourceClaim():
            return _device_usage(new)
        case ChargedObject():
            return dict.fromkeys(_counts(new), _ONE)
        case _:
            assert_never(new)


def _compute(spec: PodSpec, *, pod_level_resources: bool) -> _QuotaAmounts:
    requests, limits = container_requests(spec), container_limits(spec)
    if pod_level_resources and spec.resources is not None:
        for amounts, of_pod in ((requests, spec.resources.requests), (limits, spec.resources.limits)):
            amounts |= {name: it for name, it in parse_resources(of_pod).items() if is_pod_level_resource(name)}
    for name, amount in parse_resources(spec.overhead).items():
        requests[name] = requests[name] + amount if name in requests else amount
        if name in limits:
            limits[name] += amount
    counted: dict[str, Quantity] = {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}
    for name, amount in requests.items():
        if name in _COMPUTE or is_hugepages(name):
            counted[name] = counted[f"requests.{name}"] = amount
        elif is_extended_resource(name):
            counted[f"requests.{name}"] = amount
    return counted


def _counts(new: ChargedObject) -> tuple[str, ...]:
    """Return the names under which a quota counts it; old controllers have an additional short name."""
    count = f"count/{new.resource}"
    return (count, new.resource) if new.resource == "replicationcontrollers" else (count,)


def _claim_usage(claim: PersistentVolumeClaim) -> _QuotaAmounts:
    used = dict.fromkeys(("persistentvolumeclaims", "count/persistentvolumeclaims"), _ONE)
    if claim.storage_class:
        used[f"{claim.storage_class}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    size = claim.spec.resources.requests.get("storage")
    if size is not None:
        used["requests.storage"] = parse_quantity(size)
        if claim.storage_class:
            used[f"{claim.storage_class}{_OF_CLASS}requests.storage"] = parse_quantity(size)
    return used


def _device_usage(claim: ResourceClaim) -> _QuotaAmounts:
    """Of alternatives, each class counts with the largest request."""
    counts: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        wanted: dict[str, int] = {}
        for subrequest in request.first_available or ((request.exactly,) if request.exactly is not None else ()):
            resource = f"{subrequest.device_class_name}{_OF_DEVICE_CLASS}"
            number = _MOST_DEVICES if subrequest.allocation_mode == AllocationMode.ALL else subrequest.count
            wanted[resource] = max(wanted.get(resource, 0), number)
        counts.update(wanted)
    return {_OF_DEVICES: _ONE, **{resource: parse_quantity(str(number)) for resource, number in counts.items()}}


# --- amounts


def _negative(amount: Quantity) -> Quantity:
    return replace(amount, mantissa=-amount.mantissa, canonical="")
