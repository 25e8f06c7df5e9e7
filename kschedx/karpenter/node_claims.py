"""A new node: what its pool defines, and whether a pod can be added.

Upstream: scheduling/nodeclaim.go, nodeclaimtemplate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kschedx.karpenter.devices import ClaimAllocation, NoDevices
from kschedx.karpenter.instance_types import DaemonOverhead, InstanceType, filter_types, min_values_unmet
from kschedx.karpenter.nodes import PortUsage, ports_of, untolerated_taints
from kschedx.karpenter.pods import PodData
from kschedx.karpenter.rejections import OF_VOLUMES, Incompatible, NotTolerated, PortTaken, Rejection
from kschedx.karpenter.requirements import (
    RESERVATION_ID,
    RESERVED,
    Amount,
    LabelRequirement,
    Requirements,
    amounts_of,
    class_label,
    merge_amounts,
)
from kschedx.karpenter.topology import Topologies, Unsatisfiable
from kschedx.kube.autoscalers import CAPACITY_TYPE, INITIALIZED, NODE_POOL, REGISTERED, NodePool
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.names import HOSTNAME
from kschedx.kube.types import Pod, Taint
from kschedx.releases.karpenter import KarpenterBehavior


class PoolTemplate(Struct, frozen=True, kw_only=True):
    """What all new nodes of a pool have in common."""

    pool: NodePool
    requirements: Requirements
    allowed: frozenset[str]  # labels that a pod may require although the pool does not define them
    types: tuple[InstanceType, ...]  # the types that meet the pool's own requirements
    types_are_known: bool  # whether all types are known, not only those of existing nodes
    overheads: tuple[DaemonOverhead, ...] = (DaemonOverhead(),)
    """The requests of DaemonSets on a new node; each type is in one of them."""
    behavior: KarpenterBehavior

    def overhead(self, name: str) -> DaemonOverhead:
        """Return the requests of DaemonSets for an instance type."""
        return next((overhead for overhead in self.overheads if overhead.is_for(name)), DaemonOverhead())

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.pool.spec.template.spec.taints

    @property
    def limits(self) -> dict[str, Amount]:
        return amounts_of(self.pool.spec.limits)


def pool_requirements(pool: NodePool, behavior: KarpenterBehavior | None = None) -> Requirements:
    """Return the requirements of a pool's template, with the labels of all its nodes; without `behavior`, only labels
    that every version supports."""
    template = pool.spec.template
    labels = template.metadata.labels | {
        NODE_POOL: pool.name,
        class_label(template.spec.node_class_ref): template.spec.node_class_ref.name,
    }
    if behavior is not None and behavior.new_nodes_are_initialized:
        labels |= {REGISTERED: "true", INITIALIZED: "true"}
    return written_requirements(pool).together(Requirements.of_labels(labels).values())


def written_requirements(pool: NodePool) -> Requirements:
    return Requirements(
        LabelRequirement.of(requirement.key, requirement.operator, requirement.values, requirement.min_values)
        for requirement in pool.spec.template.spec.requirements
    )


class AcceptedPod(Struct, frozen=True, kw_only=True):
    """A new node after it accepts a pod."""

    requirements: Requirements
    types: tuple[InstanceType, ...]


def _cheapest(
    types: Sequence[InstanceType], requirements: Requirements, allowed: frozenset[str], most: int
) -> tuple[InstanceType, ...]:
    """Keep the cheapest types, up to the maximum that is requested from the cloud. If a price is unknown, keep all."""
    if len(types) <= most or not all(instance_type.has_prices for instance_type in types):
        return tuple(types)
    priced = [(instance_type.price(requirements, allowed), instance_type) for instance_type in types]
    sort_slice(priced, lambda a, b: a[0] < b[0])
    return tuple(instance_type for _, instance_type in priced[:most])


_OF_DEVICES = "incompatible dynamic resource requirements, "


_NO_TYPE_WITH_DEVICES = "no instance type satisfies both scheduling and dynamic resource requirements"


class NewNodeClaim:
    """A new node of a pool, with its pods."""

    def __init__(self, template: PoolTemplate, types: Sequence[InstanceType], host_name: str) -> None:
        self.template = template
        self.types = tuple(types)
        self.pods: list[str] = []
        self.requests: dict[str, Amount] = {}
        self.requirements = template.requirements.together((LabelRequirement.of(HOSTNAME, "In", (host_name,)),))
        self._host_name = host_name
        self._ports = [PortUsage() for _ in template.overheads]
        for usage, overhead in zip(self._ports, template.overheads, strict=True):
            for pod in overhead.pods:
                usage.add(pod)

    @property
    def cheapest_first(self) -> tuple[InstanceType, ...]:
        """The possible types, cheapest first; if prices are unknown, smaller ones first (OrderByPrice)."""
        allowed = self.template.allowed
        offered = {it.name for it in self.types if it.is_offered(self.requirements, allowed)}
        return tuple(
            sorted(
                self.types,
                key=lambda instance_type: (
                    instance_type.name not in offered,
                    instance_type.price(self.requirements, allowed),
                    *instance_type.size,
                    instance_type.name,
                ),
            )
        )

    def accept(
        self, data: PodData, topologies: Topologies, *, relaxes_min_values: bool = False
    ) -> AcceptedPod | Rejection:
        pod, allowed = data.pod, self.template.allowed
        taints = untolerated_taints(pod.spec.tolerations, self.template.taints)
        if taints:
            return NotTolerated(taints=taints)
        if not self.template.behavior.daemons_depend_on_type and ports_of(pod):
            taken = self._ports[0].conflict(pod)
            if taken is not None:
                return PortTaken(port=taken[0], taken=taken[1], by=taken[2])
        conflicts = self.requirements.conflicts(data.requirements, allowed)
        if conflicts:
            return Incompatible(conflicts=conflicts)
        base = self.requirements.together(data.requirements.values())
        outcome: AcceptedPod | Rejection | None = None
        for volume in data.volumes:
            outcome = self._with_volume(data, topologies, base, volume, relaxes_min_values)
            if isinstance(outcome, AcceptedPod):
                break
        assert outcome is not None, "a pod without volumes has one alternative without requirements"
        return outcome

    def _with_volume(
        self,
        data: PodData,
        topologies: Topologies,
        base: Requirements,
        volume: Requirements | None,
        relaxes_min_values: bool,
    ) -> AcceptedPod | Rejection:
        allowed, own = self.template.allowed, base
        if volume is not None:
            conflicts = base.conflicts(volume, allowed)
            if conflicts:
                return Incompatible(conflicts=conflicts, prefix=OF_VOLUMES)
            own = base.together(volume.values())
        devices: ClaimAllocation | NoDevices | None = None
        if data.devices is not None:
            devices = data.devices.allocate_on_types(self._host_name, self.requirements, self.types)
            if isinstance(devices, NoDevices):
                return devices
            conflicts = own.conflicts(devices.requirements, allowed)
            if conflicts:
                return Incompatible(conflicts=conflicts, prefix=_OF_DEVICES)
            own = own.together(devices.requirements.values())
        narrowed = topologies.narrow(data.pod, data.key, self.template.taints, data.strict, own)
        if isinstance(narrowed, Unsatisfiable):
            return narrowed
        conflicts = own.conflicts(narrowed, allowed)
        if conflicts:
            return Incompatible(conflicts=conflicts, prefix="")
        own = own.together(narrowed.values())
        left = filter_types(
            self.types,
            own,
            pod_requests=data.requests,
            overheads=self._overheads_without_conflict(data.pod),
            total=merge_amounts(self.requests, data.requests),
            allowed=allowed,
            relaxes_min_values=relaxes_min_values,
        )
        if left.failure is not None:
            return left.failure
        types = left.types
        if isinstance(devices, ClaimAllocation):
            types = tuple(instance_type for instance_type in types if instance_type.name in devices.claims_by_type)
            if not types:
                return NoDevices(text=_NO_TYPE_WITH_DEVICES)
        return AcceptedPod(requirements=own.with_min_values(left.relaxed), types=types)

    def _overheads_without_conflict(self, pod: Pod) -> tuple[DaemonOverhead, ...]:
        """Return the overheads of the types on which the pod's host ports are free."""
        if not ports_of(pod):
            return self.template.overheads
        pairs = zip(self._ports, self.template.overheads, strict=True)
        return tuple(overhead for usage, overhead in pairs if usage.conflict(pod) is None)

    def add(self, data: PodData, accepted: AcceptedPod, topologies: Topologies) -> None:
        self.pods.append(data.key)
        self.types = accepted.types
        self.requests = merge_amounts(self.requests, data.requests)
        self.requirements = accepted.requirements
        topologies.register(HOSTNAME, self._host_name)
        topologies.record(data.pod, data.key, self.template.taints, accepted.requirements)
        for usage in self._ports:
            usage.add(data.pod)
        if data.devices is not None:
            data.devices.commit(accepted.types)

    def use_reservations(self) -> None:
        """Restrict a node that may use reserved capacity to it (FinalizeScheduling)."""
        allowed = self.template.allowed
        ids = {name for instance_type in self.types for name in instance_type.reservations(self.requirements, allowed)}
        if ids:
            kind = LabelRequirement.of(CAPACITY_TYPE, "In", (RESERVED,))
            self.requirements = self.requirements.replace_requirement(kind).together(
                (LabelRequirement.of(RESERVATION_ID, "In", ids),)
            )

    def keep_cheapest(self, most: int) -> Mapping[str, int]:
        """Keep only the types that are requested from the cloud. Return the keys of `minValues` with too few values,
        and their number."""
        before = len(self.types)
        self.types = _cheapest(self.types, self.requirements, self.template.allowed, most)
        is_cut = len(self.types) < before
        return min_values_unmet(self.types, self.requirements) if is_cut and self.requirements.has_min_values else {}
