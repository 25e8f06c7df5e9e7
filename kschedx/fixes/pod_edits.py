"""Small changes of a pod's spec, each a function from pod to pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.pod_security import ALL, PREFIX, PodSecurityLevel
from kschedx.kube.decoding import list_at, map_at
from kschedx.kube.documents import Change, Json, Target, pointer, set_field, with_spec
from kschedx.kube.names import is_extended_resource, is_hugepages
from kschedx.kube.quantity import ResourceList, Unit, format_quantity, resource_amount
from kschedx.kube.resources import RequestOptions, pod_request, requested_amount
from kschedx.kube.selectors import SelectorRequirement, terms_of
from kschedx.kube.types import (
    Container,
    Pod,
    PodAffinityTerm,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    ResourceRequirements,
    Volume,
)


def _with_lower_request(pod: Pod, resource: str, amount: int, options: RequestOptions) -> Pod | None:
    """Return the pod with a request of at most `amount` (milli-units of cpu, units of everything else). Of containers
    and sidecars, the one with the largest request is lowered, or, if that is not enough, all above a common level; init
    containers that request more than then is left beside the sidecars before them are lowered to it. None if that is
    not enough."""
    spec = pod.spec
    if spec.resources is not None:
        return _with_lower_pod_request(pod, spec.resources, resource, amount, options)
    left = amount - resource_amount(resource, spec.overhead.get(resource))
    running = [*spec.containers, *(container for container in spec.init_containers if container.is_restartable_init)]
    largest = max(running, key=lambda container: _request_amount(container, resource), default=None)
    surplus = sum(_request_amount(container, resource) for container in running) - left
    lowered: dict[str, int] = {}
    if surplus > 0 and largest is not None:
        lowered[largest.name] = _request_amount(largest, resource) - surplus
        if lowered[largest.name] <= 0:
            lowered = _leveled([(it.name, _request_amount(it, resource)) for it in running], resource, left)
    for container in spec.init_containers:
        request = lowered.get(container.name, _request_amount(container, resource))
        if container.is_restartable_init:
            left -= request
        elif request > left:
            lowered[container.name] = left
    if any(request <= 0 for request in lowered.values()):
        return None
    after = _with_containers(
        pod, lambda each: _with_request(each, resource, lowered[each.name]) if each.name in lowered else each
    )
    return after if pod_request(after.spec, after.status, options).amounts.get(resource, 0) <= amount else None


def _leveled(requests: Sequence[tuple[str, int]], resource: str, left: int) -> dict[str, int]:
    """Return the same lower request for each of the largest ones, so that all together request at most `left`."""
    ordered = sorted(requests, key=lambda request: request[1])
    for at, (_, amount) in enumerate(ordered):
        level = max(left, 0) // (len(ordered) - at)
        if amount > level:
            return dict.fromkeys((name for name, _ in ordered[at:]), rounded_down(resource, level))
        left -= amount
    return {}


def rounded_down(resource: str, amount: int) -> int:
    """Round down to an amount that people write: tens of millicores; gibibytes, hundreds of mebibytes, or mebibytes,
    whichever is the largest that loses at most 5 %."""
    steps = {Unit.MILLI: (10,), Unit.BYTE: (1 << 30, 100 << 20, 1 << 20), Unit.COUNT: (1,)}[Unit.of(resource)]
    step = next((step for step in steps if amount % step * 20 <= amount), steps[-1])
    return amount // step * step if amount >= step else amount


def _with_lower_pod_request(
    pod: Pod, resources: ResourceRequirements, resource: str, amount: int, options: RequestOptions
) -> Pod | None:
    """Return the pod with a lower request at pod level; None if its containers request more than that."""
    overhead = resource_amount(resource, pod.spec.overhead.get(resource))
    without = with_spec(pod, resources=None)
    least = pod_request(without.spec, without.status, options).amounts.get(resource, 0) - overhead
    if resource not in ("cpu", "memory") or resource not in resources.requests or not least <= amount - overhead > 0:
        return None
    return _with_pod_request(pod, resource, amount - overhead)


def _with_pod_request(pod: Pod, resource: str, amount: int) -> Pod:
    resources = pod.spec.resources or ResourceRequirements()
    requests = {**resources.requests, resource: format_quantity(amount, Unit.of(resource))}
    return with_spec(pod, resources=replace(resources, requests=requests))


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """The request of a container before and after a change; milli-units of cpu, units of everything else."""

    container: str  # empty for the request of the pod as a whole
    resource: str
    before: int
    after: int
    source: str = ""
    """`LimitRange defaults` or `VerticalPodAutoscaler web`, if the pod's template does not set the request."""
    is_init: bool = False  # whether it is an init container, sidecars included


VERTICAL = "VerticalPodAutoscaler"
INJECTED = "Injector"  # the prefix of the source if the container is in the pod but not in its template
OF_LIMIT = "limits."  # the prefix of the source if the container has a limit and no request


def lowered_requests(
    pod: Pod, resource: str, amount: int, options: RequestOptions
) -> tuple[ContainerRequest, ...] | None:
    """The container requests that change so that the pod requests at most `amount`; None if that is not enough."""
    lower = _with_lower_request(pod, resource, amount, options)
    if lower is None:
        return None
    before, after = (
        {
            container.name: _request_amount(container, resource)
            for container in (*spec.init_containers, *spec.containers, _pod_level_container(spec))
        }
        for spec in (pod.spec, lower.spec)
    )
    init = {container.name for container in pod.spec.init_containers}
    return tuple(
        ContainerRequest(container=name, resource=resource, before=amount, after=after[name], is_init=name in init)
        for name, amount in before.items()
        if after[name] != amount
    )


def _pod_level_container(spec: PodSpec) -> Container:
    """Return the request of the pod as a whole, as a container without a name."""
    return Container(resources=spec.resources or ResourceRequirements())


def with_requests(pod: Pod, requests: Iterable[ContainerRequest]) -> Pod:
    """Return the pod with each request set to its `after`."""
    wanted = {(request.container, request.resource): request.after for request in requests}

    def changed(container: Container) -> Container:
        for (name, resource), amount in wanted.items():
            if name == container.name and _request_amount(container, resource) != amount:
                container = _with_request(container, resource, amount)
        return container

    for (name, resource), amount in wanted.items():
        pod = pod if name else _with_pod_request(pod, resource, amount)
    return _with_containers(pod, changed)


def _request_amount(container: Container, resource: str) -> int:
    return requested_amount(PodSpec(containers=(container,)), resource)


def _with_request(container: Container, resource: str, amount: int) -> Container:
    text = format_quantity(amount, Unit.of(resource))
    requests = dict(container.resources.requests) | {resource: text}
    limits = dict(container.resources.limits)
    if resource in limits and (is_extended_resource(resource) or is_hugepages(resource)):
        limits[resource] = text  # these resources cannot be overcommitted
    return replace(container, resources=replace(container.resources, requests=requests, limits=limits))


# --- node selector and affinity


def expressions(pod: Pod, index: int) -> tuple[SelectorRequirement, ...]:
    """Return the expressions of a required node affinity term."""
    terms = terms_of(pod.spec.required_node_affinity)
    return terms[index].match_expressions if index < len(terms) else ()


# --- pod affinity


def required_term(pod: Pod, index: int, *, anti: bool) -> PodAffinityTerm | None:
    required = pod.spec.required_anti_affinity if anti else pod.spec.required_pod_affinity
    return required[index] if index < len(required) else None


# --- resources and claims


def with_amounts(pod: Pod, changed: Callable[[str, ResourceList], ResourceList]) -> Pod:
    """Return the pod with other requests and limits; `changed` gets a container's name and what it has."""

    def with_changed(container: Container) -> Container:
        resources, name = container.resources, container.name
        requests, limits = changed(name, resources.requests), changed(name, resources.limits)
        return replace(container, resources=replace(resources, requests=requests, limits=limits))

    return _with_containers(pod, with_changed)


def with_volumes(pod: Pod, changed: Callable[[Volume], Volume]) -> Pod:
    return with_spec(pod, volumes=tuple(map(changed, pod.spec.volumes)))


def _with_containers(pod: Pod, changed: Callable[[Container], Container]) -> Pod:
    spec = pod.spec
    containers, inits = tuple(map(changed, spec.containers)), tuple(map(changed, spec.init_containers))
    return with_spec(pod, containers=containers, init_containers=inits)


def with_device_claim(pod: Pod, claim: str, name: str) -> Pod:
    """Return the pod with another ResourceClaim or ResourceClaimTemplate in place of the one with this name."""

    def changed(own: PodResourceClaim) -> PodResourceClaim:
        if own.resource_claim_name == claim:
            return replace(own, resource_claim_name=name)
        is_made = own.resource_claim_template_name == claim
        return replace(own, resource_claim_template_name=name) if is_made else own

    return with_spec(pod, resource_claims=tuple(map(changed, pod.spec.resource_claims)))


def with_claim_status(pod: Pod, status: PodResourceClaimStatus | None) -> Pod:
    """The pod with the status that kube-controller-manager writes after it creates a ResourceClaim from a template."""
    if status is None:
        return pod
    others = tuple(it for it in pod.status.resource_claim_statuses if it.name != status.name)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=(*others, status)))


# Changes that make a pod meet a Pod Security Standard and keep what its manifest sets explicitly.

ENFORCE = f"{PREFIX}enforce"
_OF_POD: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""Fields that are set once, at pod level, for all containers."""
_NOT_OF_WINDOWS = ("seccompProfile",)


class _SecuredFields(Struct, frozen=True, kw_only=True):
    fields: frozenset[str]
    change: Change


def secure_fields(pod: Mapping[str, object]) -> _SecuredFields | None:
    """Return the unset fields of a pod's manifest, set as `restricted` requires; None if all are set.

    Set fields stay as they are: hostNetwork, privileged, or a capability is set on purpose.
    """
    spec = map_at(pod, "spec")
    is_windows = map_at(spec, "os").get("name") == "windows"
    fields = set[str]()
    patch: list[Json] = []
    own = map_at(spec, "securityContext")
    containers = [*_containers(spec, "initContainers"), *_containers(spec, "containers")]
    contexts = [map_at(item, "securityContext") for _, item in containers]
    of_pod: Json = {
        field: value
        for field, value in _OF_POD.items()
        if own.get(field) is None
        and any(context.get(field) is None for context in contexts)
        and not (is_windows and field in _NOT_OF_WINDOWS)
    }
    if of_pod:
        fields |= of_pod.keys()
        patch.append(set_field("/spec/securityContext", _sort_fields({**own, **of_pod})))
    for path, container in () if is_windows else containers:
        context = map_at(container, "securityContext")
        settings = _container_settings(context)
        if settings:
            fields |= settings.keys()
            patch.append(set_field(f"{path}/securityContext", _sort_fields({**context, **settings})))
    if not patch:
        return None
    metadata = map_at(pod, "metadata")
    target = Target.pod(f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}")
    return _SecuredFields(fields=frozenset(fields), change=target.patched(*patch))


def _sort_fields(context: Json) -> Json:
    """Return the fields by name: their order in the file does not matter."""
    in_order: Json = msgspec.to_builtins(context, order="sorted")
    return in_order


def enforce_level(namespace: str, level: PodSecurityLevel) -> Change:
    """Return the change that makes a namespace enforce another level."""
    return Target("v1", "Namespace", namespace).patched(set_field(f"/metadata/labels/{pointer(ENFORCE)}", str(level)))


def _container_settings(context: Mapping[str, object]) -> Json:
    settings: Json = {}
    capabilities = map_at(context, "capabilities")
    dropped, added = list_at(capabilities, "drop"), list_at(capabilities, "add")
    # the API server refuses the field for containers that are privileged or have CAP_SYS_ADMIN: they could gain no more
    if context.get("allowPrivilegeEscalation") is None and not (context.get("privileged") or "CAP_SYS_ADMIN" in added):
        settings["allowPrivilegeEscalation"] = False
    if ALL not in dropped:
        settings["capabilities"] = {**capabilities, "drop": [ALL]}
    return settings


def _containers(spec: Mapping[str, object], kind: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    for index, item in enumerate(list_at(spec, kind)):
        yield f"/spec/{kind}/{index}", map_at(item)
