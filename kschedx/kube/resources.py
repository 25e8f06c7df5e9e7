"""The requests of pods and the allocatable of nodes, as kube-scheduler counts them, the quotas of a namespace,
and objects of which few fields are read: webhooks, leases, and Services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum, unique
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct

from kschedx.errors import InputError, Place
from kschedx.kube.conditions import condition_of
from kschedx.kube.names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_pod_level_resource, is_scalar_resource
from kschedx.kube.quantity import Quantity, ResourceList, Written, milli_value, parse_quantity, resource_amount, value
from kschedx.kube.scalars import MAX_INT64, MIN_INT64, wrap_int64
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import (
    Container,
    ContainerStatus,
    KubernetesObject,
    Labels,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)

# The assumed requests of a pod on a node until 1.31 (calculateResource in pkg/scheduler/framework/types.go).


def _assumed_by_kind(
    containers: Iterable[Mapping[str, int]],
    init_containers: Iterable[tuple[bool, Mapping[str, int]]],
    resource: str,
    default: int,
) -> int:
    """Return the sum over the containers or the largest init container, whichever is larger, without overhead.

    `init_containers` are in order, each with whether it is restartable. A sidecar counts with the sidecars before it
    and with the init containers after it, but not in the sum of the containers. `default` replaces an absent request.
    """
    running = sum(requests.get(resource, default) for requests in containers)
    largest = 0
    beside: int | None = None
    for restartable, requests in init_containers:
        own = requests.get(resource)
        together = None if own is None and beside is None else (own or 0) + (beside or 0)
        if restartable:
            beside = together
        largest = max(largest, default if together is None else together)
    return max(running, largest)


# The requests of a pod and the allocatable of a node, as kube-scheduler counts them. Amounts are summed exactly and
# rounded up once at the end, like Go's quantities. Upstream: component-helpers/resource/helpers.go (PodRequests),
# pkg/scheduler/framework/types.go (CalculateResource, Resource.Add), pkg/scheduler/util/utils.go
# (IsScalarResourceName), pkg/scheduler/util/pod_resources.go.

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024  # what scores assume for a container that does not request the resource

Exact = dict[str, int]  # resource name to exact amount in nano-units, Kubernetes' finest unit

_NANO = 10**9
_NANO_OF_DEFAULTS: Exact = {CPU: DEFAULT_MILLI_CPU * 10**6, MEMORY: DEFAULT_MEMORY * _NANO}


class RequestOptions(Struct, frozen=True, kw_only=True):
    """Which parts of a pod count, and how. The first three are feature gates; the others depend on the version.

    Pods on nodes count with the version's gates. For the incoming pod, NodeResourcesFit filters without its status and
    (in 1.36) scores with none of the three; NodeResourcesBalancedAllocation scores with all of them.
    """

    use_status_resources: bool  # InPlacePodVerticalScaling
    pod_level_resources: bool
    pod_level_in_place: bool
    """InPlacePodLevelResourcesVerticalScaling; has an effect only together with `use_status_resources`."""
    sidecars: bool = True  # whether restartable init containers count as sidecars or as ordinary init containers
    rounded_by_container: bool = False  # whether requests are rounded up before they are summed
    assumed_by_kind: bool = False  # whether `_assumed_by_kind` computes `PodRequest.nonzero_*`
    node_allocatable_claims: bool = False
    """DRANodeAllocatableResources: whether resources that devices use, according to the pod's status, count too."""
    overhead_in_whole_cpus: bool = False  # whether the overhead's cpu counts as one milli-cpu per cpu, rounded up


class PodRequest(Struct, frozen=True, kw_only=True):
    """The requests of a pod: cpu in milli, everything else in units, all int64."""

    amounts: Mapping[str, int]
    """Only resources that the scheduler counts: cpu, memory, ephemeral-storage, and scalar resources."""
    nonzero_cpu: int
    nonzero_memory: int
    """For scores: a container without a request counts with the default. With pod-level requests, it does so only if
    neither the pod level nor any container requests the resource."""


@unique
class _PartKind(StrEnum):
    CONTAINER = "container"
    SIDECAR = "sidecar"
    INIT = "init"
    DEVICES = "devices"
    POD_LEVEL = "pod level"
    OVERHEAD = "overhead"


class RequestPart(Struct, frozen=True, kw_only=True):
    """One part of a pod's request for a resource; `amount` in milli for cpu, otherwise in units."""

    kind: _PartKind
    container: str  # empty for devices, the pod level, and the overhead
    amount: int

    @property
    def label(self) -> str:
        """`web`, `init migrate`, `pod-level resources`, `overhead`."""
        if not self.container:
            return "pod-level resources" if self.kind is _PartKind.POD_LEVEL else str(self.kind)
        return f"init {self.container}" if self.kind is _PartKind.INIT else self.container


SPEC_ALONE = RequestOptions(use_status_resources=False, pod_level_resources=True, pod_level_in_place=False)
"""How the autoscalers, the descheduler, Kueue, and dynamic resources count a pod's requests."""


@lru_cache(maxsize=4096)
def _is_counted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def pod_request(spec: PodSpec, status: PodStatus, options: RequestOptions) -> PodRequest:
    """Return the request of a pod. Raises InputError with the field's path for an invalid quantity.

    For each resource, the larger one counts: all containers and sidecars together, or the start of an init container
    beside the sidecars before it. Pod-level requests replace that sum. Overhead is added.
    """
    claims = _claims(spec, status, options)
    requests = claims.total()
    nonzero = requests
    if options.assumed_by_kind:
        nonzero = claims.assumed_by_kind(_NANO_OF_DEFAULTS)
    elif claims.pod_level:
        nonzero = claims.total({name: amount for name, amount in _NANO_OF_DEFAULTS.items() if name not in requests})
    elif not claims.names_everywhere(_NANO_OF_DEFAULTS):
        nonzero = claims.total(_NANO_OF_DEFAULTS)
    return PodRequest(
        amounts={name: _amount(name, nano) for name, nano in requests.items() if _is_counted(name)},
        nonzero_cpu=_amount(CPU, nonzero.get(CPU, 0)),
        nonzero_memory=_amount(MEMORY, nonzero.get(MEMORY, 0)),
    )


def exact_request(spec: PodSpec) -> Exact:
    """What a pod without a status requests of every resource, in nano-units. Raises `InputError` as `pod_request`."""
    return _claims(spec, PodStatus(), SPEC_ALONE).total()


def request_parts(spec: PodSpec, status: PodStatus, options: RequestOptions, resource: str) -> tuple[RequestPart, ...]:
    """Return the parts of the pod's request for `resource`. Their sum is the request, and none is zero. If the start of
    an init container needs more than the running pod, the parts are this container and the sidecars before it."""
    parts = []
    exact = amount = 0
    for kind, container, nano in _claims(spec, status, options).summands(resource):
        # Rounding the running total instead of each part keeps the sum equal to the request.
        exact += nano
        before, amount = amount, _amount(resource, exact)
        if amount != before:
            parts.append(RequestPart(kind=kind, container=container, amount=amount - before))
    return tuple(parts)


def node_allocatable(resources: ResourceList) -> tuple[dict[str, int], int]:
    """Return the node's allocatable as the scheduler counts it, cpu in milli and the rest in units, and the maximum
    number of pods. Raises InputError with the place `[resource]`."""
    amounts = {}
    allowed_pods = 0
    for name, written in resources.items():
        try:
            if name == CPU:
                amounts[name] = milli_value(written)
            elif name == PODS:
                allowed_pods = value(written)
            elif _is_counted(name):
                amounts[name] = value(written)
        except InputError as error:
            raise error.at(Place(field=f"[{name}]")) from None
    return amounts, allowed_pods


# --- exact sums


@lru_cache(maxsize=16384)
def nano_units(written: Written) -> int:
    """Return the exact amount of a quantity in nano-units. Cached."""
    return parse_quantity(written).nano_value()


def parse_resources(resources: ResourceList) -> dict[str, Quantity]:
    """Raises `InputError` for an invalid quantity."""
    return {name: parse_quantity(written) for name, written in resources.items()}


def exact_amounts(resources: ResourceList) -> Exact:
    """Return the amounts of a resource list. Raises InputError with the place `[resource]`."""
    amounts = {}
    for name, written in resources.items():
        try:
            amounts[name] = nano_units(written)
        except InputError as error:
            raise error.at(Place(field=f"[{name}]")) from None
    return amounts


def container_requests(spec: PodSpec) -> dict[str, Quantity]:
    """Sum the requests of a spec's containers, without pod level and overhead (AggregateContainerRequests)."""
    return _aggregate(spec, [container.resources.requests for container in (*spec.containers, *spec.init_containers)])


def requested_amount(spec: PodSpec, resource: str) -> int:
    """Return one of `container_requests` in the integers of plugins."""
    return resource_amount(resource, container_requests(spec).get(resource))


def container_limits(spec: PodSpec) -> dict[str, Quantity]:
    """Sum the limits of a spec's containers by the same formula (AggregateContainerLimits)."""
    return _aggregate(spec, [container.resources.limits for container in (*spec.containers, *spec.init_containers)])


def _aggregate(spec: PodSpec, lists: list[ResourceList]) -> dict[str, Quantity]:
    """Apply the formula to one resource list per container and then per init container."""
    amounts = list(map(parse_resources, lists))
    starting = zip(spec.init_containers, amounts[len(spec.containers) :], strict=True)
    return _most_at_once(
        amounts[: len(spec.containers)], [(container.is_restartable_init, own) for container, own in starting]
    )


_Amount = TypeVar("_Amount", int, Quantity)


def _most_at_once(
    containers: Iterable[Mapping[str, _Amount]], init_containers: Iterable[tuple[bool, Mapping[str, _Amount]]]
) -> dict[str, _Amount]:
    """Return the sum over containers and sidecars, or what the start of an init container needs with the sidecars
    before it, whichever is larger. `init_containers` are in order, each with whether it is restartable."""
    total: dict[str, _Amount] = {}
    for requests in containers:
        _add(total, requests)
    peak: dict[str, _Amount] = {}
    sidecars: dict[str, _Amount] = {}
    for restartable, requests in init_containers:
        if restartable:
            _add(total, requests)
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            starting = dict(requests)
            _add(starting, sidecars)
            _raise_to(peak, starting)
    _raise_to(total, peak)
    return total


class _Claims(Struct, frozen=True, kw_only=True):
    """All parts of a pod's request, with its status applied."""

    containers: tuple[tuple[str, Exact], ...]
    init_containers: tuple[tuple[str, bool, Exact], ...]  # name, whether it is restartable, and its requests
    devices: Exact = {}
    pod_level: Exact
    overhead: Exact

    def names_everywhere(self, resources: Iterable[str]) -> bool:
        """Return whether every container requests each of the resources."""
        lists = [*(c[1] for c in self.containers), *(c[2] for c in self.init_containers)]
        return all(name in requests for name in resources for requests in lists)

    def total(self, missing: Exact | None = None) -> Exact:
        """Return the whole request, with `missing` for requests that a container does not have."""
        missing = missing or {}
        total = _most_at_once(
            (missing | requests for _, requests in self.containers),
            ((restartable, missing | own) for _, restartable, own in self.init_containers),
        )
        _add(total, self.devices)
        total.update(self.pod_level)
        _add(total, self.overhead)
        return total

    def assumed_by_kind(self, missing: Exact) -> Exact:
        """Return the request for the resources of `missing` as versions until 1.31 assume it."""
        containers = [_round_amounts(requests) for _, requests in self.containers]
        init_containers = [(restartable, _round_amounts(requests)) for _, restartable, requests in self.init_containers]
        overhead = _round_amounts(self.overhead)
        return {
            name: _assumed_by_kind(containers, init_containers, name, default) + overhead.get(name, 0)
            for name, default in missing.items()
        }

    def summands(self, resource: str) -> Iterator[tuple[_PartKind, str, int]]:
        """Yield the parts of `total` for one resource, in nano-units."""
        if resource in self.pod_level:
            yield _PartKind.POD_LEVEL, "", self.pod_level[resource]
        else:
            yield from self._largest_moment(resource)
            yield _PartKind.DEVICES, "", self.devices.get(resource, 0)
        yield _PartKind.OVERHEAD, "", self.overhead.get(resource, 0)

    def _largest_moment(self, resource: str) -> list[tuple[_PartKind, str, int]]:
        """Return the parts of the running pod, or of the first init container whose start needs most, with the sidecars
        before it."""
        running = [(_PartKind.CONTAINER, name, requests.get(resource, 0)) for name, requests in self.containers]
        sidecars: list[tuple[_PartKind, str, int]] = []
        starts = []
        for name, restartable, requests in self.init_containers:
            amount = requests.get(resource, 0)
            if restartable:
                sidecars.append((_PartKind.SIDECAR, name, amount))
            else:
                starts.append([(_PartKind.INIT, name, amount), *sidecars])
        moments = [running + sidecars, *starts]
        return max(moments, key=lambda parts: sum(amount for *_, amount in parts))


def _claims(spec: PodSpec, status: PodStatus, options: RequestOptions) -> _Claims:
    statuses: dict[str, ContainerStatus] = {}
    if options.use_status_resources and (status.container_statuses or status.init_container_statuses):
        statuses = {it.name: it for it in (*status.container_statuses, *status.init_container_statuses)}
    containers = []
    for index, container in enumerate(spec.containers):
        try:
            containers.append((container.name, _container_requests(container, statuses, status)))
        except InputError as error:
            raise error.at(Place(field=f"spec.containers[{index}].resources.requests")) from None
    init_containers = []
    for index, container in enumerate(spec.init_containers):
        restartable = container.is_restartable_init and options.sidecars
        try:
            requests = _container_requests(container, statuses if restartable else {}, status)
        except InputError as error:
            raise error.at(Place(field=f"spec.initContainers[{index}].resources.requests")) from None
        init_containers.append((container.name, restartable, requests))
    whole: Callable[[Exact], Exact] = _round_amounts if options.rounded_by_container else dict
    overhead = _amounts_in_field(spec.overhead, "spec.overhead") if spec.overhead else {}
    if options.overhead_in_whole_cpus and CPU in overhead:
        overhead[CPU] = -(-overhead[CPU] // _NANO) * 10**6
    return _Claims(
        containers=tuple((name, whole(requests)) for name, requests in containers),
        init_containers=tuple((name, restartable, whole(requests)) for name, restartable, requests in init_containers),
        devices=_device_requests(status) if options.node_allocatable_claims else {},
        pod_level=_pod_level_requests(spec.resources, status, options) if spec.resources is not None else {},
        overhead=whole(overhead),
    )


def _device_requests(status: PodStatus) -> Exact:
    total: Exact = {}
    for index, taken in enumerate(status.node_allocatable_resource_claim_statuses):
        _add(
            total, _amounts_in_field(taken.resources, f"status.nodeAllocatableResourceClaimStatuses[{index}].resources")
        )
    return total


def _container_requests(container: Container, statuses: Mapping[str, ContainerStatus], status: PodStatus) -> Exact:
    requests = exact_amounts(container.resources.requests)
    reported = statuses.get(container.name)
    if reported is None or reported.resources is None:
        return requests
    return _while_resizing(requests, reported.resources.requests, reported.allocated_resources, status)


def _pod_level_requests(resources: ResourceRequirements, status: PodStatus, options: RequestOptions) -> Exact:
    """Return the requests of spec.resources, or nothing if the version does not count them."""
    if not options.pod_level_resources or not any(map(is_pod_level_resource, resources.requests)):
        return {}
    requests = _amounts_in_field(resources.requests, "spec.resources.requests")
    effective = requests
    if options.use_status_resources and options.pod_level_in_place and status.resources is not None:
        effective = _while_resizing(requests, status.resources.requests, status.allocated_resources, status)
    return {name: effective.get(name, 0) for name in requests if is_pod_level_resource(name)}


def _while_resizing(wanted: Exact, actuated: ResourceList, allocated: ResourceList, status: PodStatus) -> Exact:
    """Return the maximum of the desired, actual, and allocated resources. An infeasible resize does not count."""
    effective: Exact = {} if _is_resize_infeasible(status) else dict(wanted)
    _raise_to(effective, exact_amounts(actuated))
    _raise_to(effective, exact_amounts(allocated))
    return effective


def _is_resize_infeasible(status: PodStatus) -> bool:
    pending = condition_of(status.conditions, "PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _amounts_in_field(resources: ResourceList, field: str) -> Exact:
    with Place(field=field):
        return exact_amounts(resources)


def _add(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, _Amount], floor: Mapping[str, _Amount]) -> None:
    """Raise each amount to at least the amount in `floor`."""
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _round_amounts(amounts: Exact) -> Exact:
    """Round each amount up to the scheduler's unit: milli-cpus, and units of everything else."""
    return {name: _amount(name, nano) * (10**6 if name == CPU else _NANO) for name, nano in amounts.items()}


def _amount(resource: str, nano: int) -> int:
    """Convert nano-units to the scheduler's int64, rounded away from zero."""
    unit = 10**6 if resource == CPU else _NANO
    amount = -(-nano // unit) if nano >= 0 else nano // unit
    return amount if MIN_INT64 <= amount <= MAX_INT64 else wrap_int64(amount)


# --- quotas of a namespace


class ScopedResourceSelectorRequirement(Struct, frozen=True, kw_only=True, rename="camel"):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _ScopeSelector(Struct, frozen=True, kw_only=True, rename="camel"):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class _ResourceQuotaSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: _ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, kw_only=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(KubernetesObject, frozen=True, kw_only=True):
    spec: _ResourceQuotaSpec = _ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def scopes(self) -> Iterator[ScopedResourceSelectorRequirement]:
        for name in self.spec.scopes:
            yield ScopedResourceSelectorRequirement(scope_name=name, operator="Exists")
        yield from self.spec.scope_selector.match_expressions if self.spec.scope_selector is not None else ()

    def covers(self, namespace: str) -> bool:
        return self.metadata.namespace == namespace


class SharedQuota(ResourceQuota, frozen=True, kw_only=True):
    """A ClusterResourceQuota as a quota of all namespaces that it selects."""

    namespaces: frozenset[str] = frozenset()
    basis: tuple[object, ...] = ()  # from what `namespaces` was derived
    uncounted: frozenset[str] = frozenset()  # those of which the status does not count the objects yet

    def covers(self, namespace: str) -> bool:
        return namespace in self.namespaces


class _ClusterQuotaSelector(Struct, frozen=True, kw_only=True):
    """Both parts have to match a namespace; an absent part matches all."""

    labels: LabelSelector | None = None
    annotations: Labels = {}


class _ClusterQuotaSpec(Struct, frozen=True, kw_only=True):
    selector: _ClusterQuotaSelector = _ClusterQuotaSelector()
    quota: _ResourceQuotaSpec = _ResourceQuotaSpec()


class _NamespaceUsage(Struct, frozen=True, kw_only=True):
    namespace: str = ""


class _ClusterQuotaStatus(Struct, frozen=True, kw_only=True):
    total: ResourceQuotaStatus = ResourceQuotaStatus()
    namespaces: tuple[_NamespaceUsage, ...] = ()


class ClusterResourceQuota(KubernetesObject, frozen=True, kw_only=True):
    """OpenShift's quota of several namespaces (quota/v1 of openshift/api)."""

    spec: _ClusterQuotaSpec = _ClusterQuotaSpec()
    status: _ClusterQuotaStatus = _ClusterQuotaStatus()


# Webhooks that decide about evictions.


class _WebhookRule(Struct, frozen=True, kw_only=True, rename="camel"):
    api_groups: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    @property
    def covers_evictions(self) -> bool:
        every = (self.api_groups, ("", "*")), (self.operations, ("CREATE", "*")), (self.resources, _OF_EVICTIONS)
        return all(not {*named}.isdisjoint(covering) for named, covering in every)


_OF_EVICTIONS = ("pods/eviction", "pods/*", "*/eviction", "*/*")


class _ValidatingWebhook(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    rules: tuple[_WebhookRule, ...] = ()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None

    def may_refuse_evictions(self, namespaces: Iterable[Labels | None]) -> bool:
        """Whether it is called about evictions in any of these namespaces; None for unknown labels."""
        selector = compile_selector(self.namespace_selector or LabelSelector())
        selects_eviction = compile_selector(self.object_selector or LabelSelector()).matches(
            {}
        )  # kubectl sets no label
        is_there = selects_eviction and any(labels is None or selector.matches(labels) for labels in namespaces)
        return is_there and any(rule.covers_evictions for rule in self.rules)


class ValidatingWebhookConfiguration(KubernetesObject, frozen=True, kw_only=True):
    webhooks: tuple[_ValidatingWebhook, ...] = ()


# The lease with which one instance of a component leads.


class _LeaseSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    renew_time: str | None = None


class Lease(KubernetesObject, frozen=True, kw_only=True):
    spec: _LeaseSpec = _LeaseSpec()


class _ServiceSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: Labels | None = None
    type: str = "ClusterIP"


class _Ingress(Struct, frozen=True, kw_only=True):
    ip: str = ""
    hostname: str = ""


class _LoadBalancer(Struct, frozen=True, kw_only=True):
    ingress: tuple[_Ingress, ...] = ()


class _ServiceStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    load_balancer: _LoadBalancer = _LoadBalancer()


class Service(KubernetesObject, frozen=True, kw_only=True):
    spec: _ServiceSpec = _ServiceSpec()
    status: _ServiceStatus = _ServiceStatus()

    @property
    def awaits_address(self) -> bool:
        """Whether no controller has given its load balancer an address."""
        return self.spec.type == "LoadBalancer" and not self.status.load_balancer.ingress


# The quality-of-service class of a pod (ComputePodQOS in pkg/apis/core/v1/helper/qos).


class QOS(IntEnum):
    """Quality-of-service classes, best first."""

    GUARANTEED = 0
    BURSTABLE = 1
    BEST_EFFORT = 2


def qos_of(resources: Iterable[ResourceRequirements]) -> QOS:
    """Return the class of a pod by the resources of its containers, or its pod-level ones."""
    totals: tuple[Exact, Exact] = {}, {}
    is_limited_everywhere = True
    for each in resources:
        own = [
            {name: nano for name in (CPU, MEMORY) if (nano := nano_units(amounts.get(name, 0))) > 0}
            for amounts in (each.requests, each.limits)
        ]
        for total, counted in zip(totals, own, strict=True):
            for name, nano in counted.items():
                total[name] = total.get(name, 0) + nano
        is_limited_everywhere &= len(own[1]) == 2
    if not any(totals):
        return QOS.BEST_EFFORT
    return QOS.GUARANTEED if is_limited_everywhere and totals[0] == totals[1] else QOS.BURSTABLE
