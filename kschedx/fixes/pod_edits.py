"""Small changes of a pod's spec, each a function from pod to pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.pod_security import ALL, PREFIX, PodSecurityLevel
from kschedx.kube.decoding import list_at, map_at
from kschedx.kube.documents import Change, Json, Target, pointer, set_field
from kschedx.kube.names import is_extended_resource, is_hugepages
from kschedx.kube.quantity import (
    ResourceList,
    Unit,
    format_quantity,
    resource_amount,
)
from kschedx.kube.resources import RequestOptions, pod_request, requested_amount
from kschedx.kube.selectors import NodeSelectorRequirement, NodeSelectorTerm
from kschedx.kube.types import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from kschedx.kube.typos import UnlikelyQuantity
from kschedx.kube.workloads import with_required_terms


def with_spec(pod: Pod, spec: PodSpec) -> Pod:
    return replace(pod, spec=spec)


def with_tolerations(pod: Pod, taints: Iterable[Taint]) -> Pod:
    """Return the pod with a toleration of exactly each taint."""
    new = tuple(
        Toleration(key=t.key, operator="Equal" if t.value else "Exists", value=t.value, effect=t.effect) for t in taints
    )
    known = pod.spec.tolerations
    return with_spec(pod, replace(pod.spec, tolerations=known + tuple(t for t in new if t not in known)))


def _with_lower_request(pod: Pod, resource: str, amount: int, options: RequestOptions) -> Pod | None:
    """Return the pod with a request of at most `amount` (milli-units of cpu, units of everything else). Of containers
    and sidecars, the one with the largest request is lowered; init containers that request more than then is left
    beside the sidecars before them are lowered to it. None if that is not enough."""
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
    for container in spec.init_containers:
        asked = lowered.get(container.name, _request_amount(container, resource))
        if container.is_restartable_init:
            left -= asked
        elif asked > left:
            lowered[container.name] = left
    if any(asked <= 0 for asked in lowered.values()):
        return None
    after = _with_containers(
        pod, lambda each: _with_request(each, resource, lowered[each.name]) if each.name in lowered else each
    )
    return after if pod_request(after.spec, after.status, options).amounts.get(resource, 0) <= amount else None


def _with_lower_pod_request(
    pod: Pod, resources: ResourceRequirements, resource: str, amount: int, options: RequestOptions
) -> Pod | None:
    """Return the pod with a lower request at pod level; None if its containers request more than that."""
    overhead = resource_amount(resource, pod.spec.overhead.get(resource))
    without = with_spec(pod, replace(pod.spec, resources=None))
    least = pod_request(without.spec, without.status, options).amounts.get(resource, 0) - overhead
    if resource not in ("cpu", "memory") or resource not in resources.requests or not least <= amount - overhead > 0:
        return None
    return _with_pod_request(pod, resource, amount - overhead)


def _with_pod_request(pod: Pod, resource: str, amount: int) -> Pod:
    resources = pod.spec.resources or ResourceRequirements()
    requests = {**resources.requests, resource: format_quantity(amount, Unit.of(resource))}
    return with_spec(pod, replace(pod.spec, resources=replace(resources, requests=requests)))


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """The request of a container before and after a change; milli-units of cpu, units of everything else."""

    container: str
    """Empty for the request of the pod as a whole."""
    resource: str
    before: int
    after: int
    source: str = ""
    """`LimitRange defaults` or `VerticalPodAutoscaler web`, if the pod's template does not set the request."""
    is_init: bool = False
    """Whether it is an init container, sidecars included."""


VERTICAL = "VerticalPodAutoscaler"
INJECTED = "Injector"
"""The prefix of the source if the container is in the pod but not in its template."""
OF_LIMIT = "limits."
"""The prefix of the source if the container has a limit and no request."""
INJECTED_BY = {
    "istio-proxy": {"cpu": "sidecar.istio.io/proxyCPU", "memory": "sidecar.istio.io/proxyMemory"},
    "linkerd-proxy": {"cpu": "config.linkerd.io/proxy-cpu-request", "memory": "config.linkerd.io/proxy-memory-request"},
    "daprd": {"cpu": "dapr.io/sidecar-cpu-request", "memory": "dapr.io/sidecar-memory-request"},
    "vault-agent": {
        "cpu": "vault.hashicorp.com/agent-requests-cpu",
        "memory": "vault.hashicorp.com/agent-requests-mem",
    },
}
"""Container to resource to the annotation of the pod template that sets the injected request."""


def lowered_requests(
    pod: Pod, resource: str, amount: int, options: RequestOptions
) -> tuple[ContainerRequest, ...] | None:
    """Return the container requests that change so that the pod requests at most `amount`; None if that is not
    enough."""
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


def with_selector(pod: Pod, selector: Mapping[str, str]) -> Pod:
    return with_spec(pod, replace(pod.spec, node_selector=dict(selector)))


def with_term(pod: Pod, index: int, requirements: tuple[NodeSelectorRequirement, ...]) -> Pod:
    """Return the pod with other expressions in a required node affinity term; without expressions, the whole
    requirement is removed."""
    required = pod.spec.required_node_affinity
    if required is None:
        return pod
    terms = list(required.node_selector_terms)
    terms[index] = NodeSelectorTerm(match_expressions=requirements, match_fields=terms[index].match_fields)
    return with_required_terms(pod, None if terms[index].is_empty else tuple(terms))


def expressions(pod: Pod, index: int) -> tuple[NodeSelectorRequirement, ...]:
    """Return the expressions of a required node affinity term."""
    required = pod.spec.required_node_affinity
    if required is None or index >= len(required.node_selector_terms):
        return ()
    return required.node_selector_terms[index].match_expressions


def names_nodes(pod: Pod) -> bool:
    """Whether a required node affinity term names nodes."""
    required = pod.spec.required_node_affinity
    return required is not None and any(term.match_fields for term in required.node_selector_terms)


# --- pod affinity


def _rules(pod: Pod, *, anti: bool) -> PodAffinity:
    affinity = pod.spec.affinity or Affinity()
    return (affinity.pod_anti_affinity if anti else affinity.pod_affinity) or PodAffinity()


def _with_rules(pod: Pod, rules: PodAffinity, *, anti: bool) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    changed = replace(affinity, pod_anti_affinity=rules) if anti else replace(affinity, pod_affinity=rules)
    return with_spec(pod, replace(pod.spec, affinity=changed))


def required_term(pod: Pod, index: int, *, anti: bool) -> PodAffinityTerm | None:
    """Return a required pod (anti-)affinity term."""
    required = _rules(pod, anti=anti).required_during_scheduling_ignored_during_execution
    return required[index] if index < len(required) else None


def with_preference(pod: Pod, term: PodAffinityTerm, *, anti: bool) -> Pod:
    """Return the pod with a required pod (anti-)affinity term as a preference of the highest weight."""
    rules = _rules(pod, anti=anti)
    required = list(rules.required_during_scheduling_ignored_during_execution)
    if term not in required:
        return pod
    required.remove(term)
    weighted = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    softer = PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(required),
        preferred_during_scheduling_ignored_during_execution=(
            *rules.preferred_during_scheduling_ignored_during_execution,
            weighted,
        ),
    )
    return _with_rules(pod, softer, anti=anti)


def with_affinity_term(pod: Pod, term: PodAffinityTerm, changed: Mapping[str, object], *, anti: bool) -> Pod:
    """Return the pod with other values of some fields of a required pod (anti-)affinity term."""
    rules = _rules(pod, anti=anti)
    required = rules.required_during_scheduling_ignored_during_execution
    terms = tuple(replace(own_term, **changed) if own_term == term else own_term for own_term in required)
    return _with_rules(pod, replace(rules, required_during_scheduling_ignored_during_execution=terms), anti=anti)


# --- topology spread


def with_constraint(
    pod: Pod, index: int, change: Callable[[TopologySpreadConstraint], TopologySpreadConstraint]
) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[index] = change(constraints[index])
    return with_spec(pod, replace(pod.spec, topology_spread_constraints=tuple(constraints)))


# --- ports


class RequestedPort(Struct, frozen=True, kw_only=True):
    """A host port that a pod requests."""

    port: int
    protocol: str


def with_host_port(pod: Pod, port: RequestedPort, number: int) -> Pod:
    """Return the pod with another host port; 0 removes it. Under hostNetwork, the container listens on the same
    number."""

    def changed(old: ContainerPort) -> ContainerPort:
        if (old.host_port, old.protocol or "TCP") != (port.port, port.protocol):
            return old
        if number == 0:
            return replace(old, host_port=0, host_ip="")
        return replace(old, host_port=number, container_port=number if pod.spec.host_network else old.container_port)

    containers = tuple(replace(c, ports=tuple(map(changed, c.ports))) for c in pod.spec.containers)
    return with_spec(pod, replace(pod.spec, containers=containers))


# --- resources and claims


def renaming_resource(pod: Pod, resource: str, meant: str) -> Pod:
    """Return the pod with every request and limit of one resource under the name of another."""

    def renamed(amounts: ResourceList) -> ResourceList:
        return {meant if name == resource else name: amount for name, amount in amounts.items()}

    def changed(container: Container) -> Container:
        old = container.resources
        return replace(container, resources=replace(old, requests=renamed(old.requests), limits=renamed(old.limits)))

    return _with_containers(pod, changed)


def with_likely_amounts(pod: Pod, unlikely: Iterable[UnlikelyQuantity]) -> Pod:
    """Return the pod with the probable quantities in place of unlikely ones."""
    meant = {(quantity.container, quantity.resource, quantity.written): quantity.meant for quantity in unlikely}

    def changed(container: Container) -> Container:
        def likely(amounts: ResourceList) -> ResourceList:
            return {name: meant.get((container.name, name, str(amount)), amount) for name, amount in amounts.items()}

        old = container.resources
        return replace(container, resources=replace(old, requests=likely(old.requests), limits=likely(old.limits)))

    return _with_containers(pod, changed)


def _with_containers(pod: Pod, changed: Callable[[Container], Container]) -> Pod:
    spec = pod.spec
    containers, inits = tuple(map(changed, spec.containers)), tuple(map(changed, spec.init_containers))
    return with_spec(pod, replace(spec, containers=containers, init_containers=inits))


def with_claim(pod: Pod, claim: str, name: str) -> Pod:
    """Return the pod with the volumes of one claim switched to another claim."""

    def changed(volume: Volume) -> Volume:
        source = volume.persistent_volume_claim
        if source is None or source.claim_name != claim:
            return volume
        return replace(volume, persistent_volume_claim=replace(source, claim_name=name))

    return with_spec(pod, replace(pod.spec, volumes=tuple(map(changed, pod.spec.volumes))))


def with_class(pod: Pod, name: str, storage_class: str) -> Pod:
    """Return the pod with another storage class in the template of one generic ephemeral volume."""

    def changed(volume: Volume) -> Volume:
        source = volume.ephemeral
        if volume.name != name or source is None or source.volume_claim_template is None:
            return volume
        spec = replace(source.volume_claim_template.spec, storage_class_name=storage_class)
        return replace(
            volume, ephemeral=replace(source, volume_claim_template=replace(source.volume_claim_template, spec=spec))
        )

    return with_spec(pod, replace(pod.spec, volumes=tuple(map(changed, pod.spec.volumes))))


def with_device_claim(pod: Pod, claim: str, name: str) -> Pod:
    """Return the pod with another ResourceClaim or ResourceClaimTemplate in place of the one with this name."""

    def changed(own: PodResourceClaim) -> PodResourceClaim:
        if own.resource_claim_name == claim:
            return replace(own, resource_claim_name=name)
        is_made = own.resource_claim_template_name == claim
        return replace(own, resource_claim_template_name=name) if is_made else own

    return with_spec(pod, replace(pod.spec, resource_claims=tuple(map(changed, pod.spec.resource_claims))))


def with_claim_status(pod: Pod, status: PodResourceClaimStatus | None) -> Pod:
    """Return the pod with the status that kube-controller-manager writes after it creates a ResourceClaim from a
    template."""
    if status is None:
        return pod
    others = tuple(
        resource_claim_status
        for resource_claim_status in pod.status.resource_claim_statuses
        if resource_claim_status.name != status.name
    )
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
        said = _container_settings(context)
        if said:
            fields |= said.keys()
            patch.append(set_field(f"{path}/securityContext", _sort_fields({**context, **said})))
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
    said: Json = {}
    capabilities = map_at(context, "capabilities")
    dropped, added = list_at(capabilities, "drop"), list_at(capabilities, "add")
    # the API server refuses the field for containers that are privileged or have CAP_SYS_ADMIN: they could gain no more
    if context.get("allowPrivilegeEscalation") is None and not (context.get("privileged") or "CAP_SYS_ADMIN" in added):
        said["allowPrivilegeEscalation"] = False
    if ALL not in dropped:
        said["capabilities"] = {**capabilities, "drop": [ALL]}
    return said


def _containers(spec: Mapping[str, object], kind: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    for index, item in enumerate(list_at(spec, kind)):
        yield f"/spec/{kind}/{index}", map_at(item)
