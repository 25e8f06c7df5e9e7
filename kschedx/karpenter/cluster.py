"""Karpenter's view of a cluster, and its decision about one pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import count, takewhile
from math import inf
from typing import ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.growth import READY, NodeGrowth, with_new_nodes
from kschedx.karpenter.catalogue import InstanceTypes, known_types
from kschedx.karpenter.devices import NoDevices, published_by
from kschedx.karpenter.instance_types import InstanceType, NoInstanceType, effective_overlays, fits_within
from kschedx.karpenter.node_claims import NewNodeClaim, PoolTemplate
from kschedx.karpenter.nodes import ClusterState
from kschedx.karpenter.pods import EligibilityCheck, PodEligibility, eligibility, pod_requirements, template_of
from kschedx.karpenter.rejections import (
    CheapestAreTooFew,
    Incompatible,
    LimitReached,
    NodeLimitReached,
    NotTolerated,
    PortTaken,
    Rejection,
)
from kschedx.karpenter.requirements import (
    CAPACITY_TYPES,
    RESERVED,
    Amounts,
    Requirements,
    amounts_of,
    is_bound,
    pod_requests,
)
from kschedx.karpenter.scheduler import (
    KarpenterSettings,
    KnownTypes,
    Provisioner,
    RoundResult,
    SchedulingFailure,
    SkippedPool,
    karpenter_version,
)
from kschedx.karpenter.topology import Unsatisfiable
from kschedx.kube.autoscalers import (
    CAPACITY_TYPE,
    INITIALIZED,
    NODE_POOL,
    REGISTERED,
    CapacityBuffer,
    NodeOverlay,
    NodePool,
    NodeSelectorRequirementWithMinValues,
)
from kschedx.kube.conditions import condition_of
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import HOSTNAME, ZONE, added_node_name
from kschedx.kube.types import (
    UNSCHEDULABLE_STATUS,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodTemplate,
    PodTemplateSpec,
)
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot

# Errors in Karpenter's objects that an API server would refuse and that a file may contain.

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_PRICE = lazy_pattern(r"[0-9]+(\.[0-9]+)?")
_ADJUSTMENT = lazy_pattern(r"[+-][0-9]*\.?[0-9]+%?")
_REASONS: Mapping[type[Struct], tuple[str, int]] = {
    NotTolerated: ("untolerated-taint", 3),
    PortTaken: ("host-port-taken", 2),
    Incompatible: ("incompatible-requirements", 3),
    Unsatisfiable: ("unsatisfiable-topology", 2),
    NoInstanceType: ("no-instance-type", 1),
    LimitReached: ("limit-reached", 0),
    NodeLimitReached: ("node-limit-reached", 0),
    CheapestAreTooFew: ("cheapest-are-too-few", 1),
    NoDevices: ("no-devices", 1),
}
"""Ids for documents, and how far a pool is from accepting the pod: the earlier Karpenter gives up, the further."""


def _check_pool(pool: NodePool) -> None:
    """Raises `InputError` with the place of the error."""
    with Place(object=f"NodePool {pool.name}", field="spec"):
        with Place(field="limits"):
            amounts_of(pool.spec.limits)
        _check_requirements(pool.spec.template.spec.requirements, "template.spec.requirements")


def _check_overlay(overlay: NodeOverlay) -> None:
    """Raises `InputError` with the place of the error."""
    spec = overlay.spec
    with Place(object=f"NodeOverlay {overlay.name}", field="spec"):
        with Place(field="capacity"):
            amounts_of(spec.capacity)
        _check_requirements(spec.requirements, "requirements")
        for key, written, form, example in (
            ("price", spec.price, _PRICE, "0.12"),
            ("priceAdjustment", spec.price_adjustment, _ADJUSTMENT, "+10% or -0.5"),
        ):
            if written is not None and form.fullmatch(written) is None:
                raise InputError(f'"{written}" is not a price', place=Place(field=key), hint=f"such as {example}")


def _check_requirements(requirements: Iterable[NodeSelectorRequirementWithMinValues], field: str) -> None:
    for index, values in enumerate(requirements):
        fault = _fault(values)
        if fault is not None:
            raise InputError(fault[0], place=Place(field=f"{field}[{index}]"), hint=fault[1])


def _fault(values: NodeSelectorRequirementWithMinValues) -> tuple[str, str] | None:
    """Return the error of a requirement and the expected value."""
    if not values.key:
        return "a requirement has a key", ""
    if values.operator not in _OPERATORS:
        allowed = nearest(values.operator, _OPERATORS) or f"one of {', '.join(_OPERATORS)}"
        return f'"{values.operator}" is not an operator', allowed
    if values.operator == "In" and not values.values:
        return f"{values.key} In needs a value", ""
    if values.operator in ("Gt", "Lt", "Gte", "Lte") and not is_bound(values.values):
        return f"{values.key} {values.operator} needs one whole number, found [{', '.join(values.values)}]", ""
    return None


class KarpenterOptions(Struct, frozen=True, kw_only=True):
    """The user's options about Karpenter."""

    catalogue: InstanceTypes | None = None
    settings: KarpenterSettings = KarpenterSettings()


class LaunchCertainty(StrEnum):
    """How certain a pool's verdict about a pod is."""

    REJECTS = "rejects"
    UNKNOWN = "unknown"  # no known type fits, and others may exist


class PoolVerdict(Struct, frozen=True, kw_only=True):
    pool: NodePool
    certainty: LaunchCertainty
    rejection: Rejection
    known: tuple[InstanceType, ...] = ()
    template: PoolTemplate | None = None
    zones: tuple[str, ...] = ()  # the zones of its nodes; empty if unknown
    types_are_known: bool = False
    lacks_a_reservation: bool = False  # whether reserved capacity is required and the node class has none
    requirements: Requirements = Requirements()  # the pod's requirements on its node

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def reason(self) -> str:
        """The id of the rejection."""
        return _REASONS[type(self.rejection)][0]

    @property
    def distance(self) -> int:
        return _REASONS[type(self.rejection)][1]

    @property
    def text_is_known(self) -> bool:
        """Whether the message is certain: messages about instance types depend on all of them."""
        match self.rejection:
            case NoDevices(is_known=is_known):
                return is_known
            case LimitReached(is_exhausted=True, of_others=""):
                return True
            case NoInstanceType() | CheapestAreTooFew() | LimitReached():
                return self.types_are_known
            case _:
                return True

    def minimum(self, key: str) -> int:
        """Return the pool's `minValues` for a key."""
        requirements = self.pool.spec.template.spec.requirements
        return max((requirement.min_values or 0 for requirement in requirements if requirement.key == key), default=0)


def matching_types(template: PoolTemplate, rejection: NoInstanceType) -> list[InstanceType]:
    """Return the types that meet all requirements but those on resources, largest first."""
    requirements = rejection.requirements
    matching = (
        known
        for known in template.types
        if known.requirements.overlaps(requirements) and known.is_offered(requirements, template.allowed)
    )
    return sorted(matching, key=lambda instance_type: instance_type.size, reverse=True)


class PodProvisioning(Struct, frozen=True, kw_only=True):
    looked: EligibilityCheck
    pool: str = ""
    types: tuple[InstanceType, ...] = ()  # possible types of the new node, cheapest or smallest first
    types_are_known: bool = False  # whether all types of the pool are known, not only those of existing nodes
    companions: int = 0  # the number of other pending pods on the same new node
    existing: str = ""  # the existing node or NodeClaim on which Karpenter expects the pod
    is_claim: bool = False
    pools: tuple[PoolVerdict, ...] = ()  # in the order in which they are tried
    untried: str = ""  # why no pool was tried for the pod
    event: str = ""  # Karpenter's message, if everything that it depends on is known
    by_chance: bool = False
    has_relaxed: bool = False

    @property
    def open_pools(self) -> tuple[str, ...]:
        """Pools that would accept the pod with an unknown instance type."""
        return tuple(pool.name for pool in self.pools if pool.certainty is LaunchCertainty.UNKNOWN)

    @property
    def unsure_before(self) -> tuple[str, ...]:
        """Pools that come before the chosen one and may be chosen instead."""
        before = [pool.name for pool in takewhile(lambda verdict: verdict.name != self.pool, self.pools)]
        return tuple(name for name in self.open_pools if name in before)


class Karpenter:
    """Karpenter on a snapshot that has NodePools."""

    name: ClassVar[Literal["Karpenter"]] = "Karpenter"

    def __init__(self, snapshot: Snapshot, options: KarpenterOptions) -> None:
        self.snapshot = snapshot
        self.options = options

    @classmethod
    def of(cls, snapshot: Snapshot, options: KarpenterOptions) -> Karpenter | None:
        """Return None for a cluster without NodePools. Raises `InputError` for an invalid one."""
        pools = snapshot.of(NodePool)
        for pool in pools:
            _check_pool(pool)
        for overlay in effective_overlays(snapshot.of(NodeOverlay)):
            _check_overlay(overlay)
        return cls(snapshot, options) if pools else None

    @cached_property
    def pools(self) -> tuple[NodePool, ...]:
        return self.snapshot.of(NodePool)

    @cached_property
    def by_name(self) -> Mapping[str, NodePool]:
        return {pool.name: pool for pool in self.pools}

    @property
    def group(self) -> str:
        """The API group of the cloud's node classes."""
        return next((pool.spec.template.spec.node_class_ref.api_group for pool in self.pools), "")

    @cached_property
    def known(self) -> Mapping[str, KnownTypes]:
        """Pool to its known instance types."""
        return {pool.name: known_types(self.snapshot, pool, self.options.catalogue) for pool in self.pools}

    @property
    def types_are_known(self) -> bool:
        return all(self.known[pool.name].are_all for pool in self.pools)

    @cached_property
    def provisioner(self) -> Provisioner:
        return Provisioner.of(self.pools, self.known, self.settings)

    @cached_property
    def settings(self) -> KarpenterSettings:
        """Karpenter's settings; the default version is the cluster's."""
        given = self.options.settings
        return given if given.version else replace(given, version=karpenter_version(self.snapshot))

    @property
    def skipped(self) -> tuple[SkippedPool, ...]:
        return self.provisioner.skipped

    @cached_property
    def cluster(self) -> ClusterState:
        return ClusterState.of(self.snapshot)

    def with_pools(self, changed: Mapping[str, NodePool]) -> Karpenter:
        pools = tuple(changed.get(pool.name, pool) for pool in self.pools)
        objects: dict[type[Struct], tuple[Struct, ...]] = {**self.snapshot.objects, NodePool: pools}
        return Karpenter(replace(self.snapshot, objects=objects), self.options)

    def check_eligibility(self, pod: Pod) -> EligibilityCheck:
        looked = eligibility(pod, self.snapshot.storage, self.group)
        if looked.outcome is not PodEligibility.CONSIDERED:
            return looked
        if self.cluster.not_launched:
            return EligibilityCheck(outcome=PodEligibility.WAITING)
        return looked if self.provisioner.pools else EligibilityCheck(outcome=PodEligibility.NO_POOLS)

    def pending_pods(self) -> dict[str, EligibilityCheck]:
        """Return every pod without a node, with whether Karpenter provisions for it."""
        pods = self.snapshot.pods
        return {pods.key(row): self.check_eligibility(pods[row]) for row in pods.pending}

    @cached_property
    def considered(self) -> tuple[Pod, ...]:
        """The pending pods for which Karpenter provisions, and the virtual pods of buffers."""
        pods = self.snapshot.pods
        outcomes = ((key, looked.outcome) for key, looked in self.pending_pods().items())
        keys = (key for key, outcome in outcomes if outcome is PodEligibility.CONSIDERED)
        return (*(pods[pods.rows[key]] for key in keys), *self.buffers)

    @cached_property
    def own(self) -> RoundResult:
        """The round for the cluster's own pods."""
        return self.provisioner.run(self.snapshot, self.considered)

    @cached_property
    def buffers(self) -> tuple[Pod, ...]:
        """Virtual pods, which are part of every round."""
        settings = self.settings
        keeps = settings.keeps_buffers and settings.behavior.knows_buffers
        return tuple(virtual_pods(self.snapshot)) if keeps else ()

    def grow(self) -> KarpenterGrowth:
        """Add all new nodes as ready. Each has its cheapest possible type, or the smallest if no price is known."""
        waiting = Counter(looked.outcome for looked in self.pending_pods().values())
        considered = waiting.pop(PodEligibility.CONSIDERED, 0)
        result = self.own if considered else RoundResult()
        nodes = list(_nodes(result, self.snapshot.cluster.index))
        rows = self.snapshot.pods.rows  # without virtual pods
        grown = Counter((new.template.name, instance_type.name) for new, instance_type, _ in nodes)
        choices = {(new.template.name, instance_type.name): len(new.types) for new, instance_type, _ in reversed(nodes)}
        added = [(node, new.template.overhead(instance_type.name).pods) for new, instance_type, node in nodes]
        grown_snapshot = with_new_nodes(self.snapshot, added)
        slices = [
            each
            for _, instance_type, node in nodes
            for each in published_by(node.name, instance_type.resource_slices or ())
        ]
        if slices:
            devices = grown_snapshot.devices
            devices = replace(devices, slices=(*devices.slices, *slices), derived_from_slices={})
            grown_snapshot = replace(grown_snapshot, devices=devices)
        return KarpenterGrowth(
            snapshot=grown_snapshot,
            grown=tuple(
                KarpenterGrowthStep(pool=pool, instance_type=name, nodes=number, choices=choices[pool, name])
                for (pool, name), number in grown.items()
            ),
            helped=sum(key in rows for new in result.new for key in new.pods),
            expected=sum(key in rows for keys in result.existing.values() for key in keys),
            left=sum(key in rows for key in result.failures),
            rejected=self._most_rejected(result),
            passed_over=waiting,
            by_chance=result.by_chance,
            types_are_known=self.types_are_known,
            follows=self.settings.rules_version,
        )

    def _most_rejected(self, result: RoundResult) -> tuple[tuple[PoolVerdict, ...], int]:
        pods = self.snapshot.pods
        failures = [(key, failure) for key, failure in result.failures.items() if key in pods.rows]
        if not failures:
            return (), 0
        text, number = Counter(failure.text for _, failure in failures).most_common(1)[0]
        key, failure = next(pair for pair in failures if pair[1].text == text)
        return self.verdicts(pods[pods.rows[key]], failure), number

    def explain(self, pod: Pod) -> PodProvisioning | None:
        """Return the result for a pending pod among all pending ones; None for a pod with a node. A pod that is not in
        the cluster counts as just rejected by kube-scheduler; the given nominated node counts."""
        pods = self.snapshot.pods
        row = pods.rows.get(pod.key)
        if row is not None and pods.node_names[row]:
            return None
        stored = None if row is None or pods.specs[row] != replace(pod.spec, node_name="") else pods[row]
        mine, nominated = stored or replace(pod, status=UNSCHEDULABLE_STATUS), pod.status.nominated_node_name
        mine = replace(mine, status=replace(mine.status, nominated_node_name=nominated))
        looked = self.check_eligibility(mine)
        if looked.outcome is not PodEligibility.CONSIDERED:
            event = f"Failed to schedule pod, {looked.reason}" if looked.outcome is PodEligibility.REFUSED else ""
            return PodProvisioning(looked=looked, event=event)
        if stored is not None:
            return self._provisioning(mine, looked, self.own)
        count = len(self.considered) - len(self.buffers)
        others = [other for other in self.considered[:count] if other.key != pod.key]
        result = self.provisioner.run(self.snapshot, [*others, mine, *self.buffers])
        return self._provisioning(mine, looked, result)

    def _provisioning(self, pod: Pod, looked: EligibilityCheck, result: RoundResult) -> PodProvisioning:
        failure, node = result.failures.get(pod.key), result.node_of(pod.key)
        has_relaxed = pod.key in result.relaxed
        if failure is not None:
            pools = self.verdicts(pod, failure)
            is_sure = all(pool.certainty is LaunchCertainty.REJECTS for pool in pools)
            is_known = all(pool.text_is_known for pool in pools) and not self._has_skipped_unknown
            event = f"Failed to schedule pod, {failure.text}" if is_sure and is_known else ""
            return PodProvisioning(
                looked=looked, pools=pools, untried=failure.reason, event=event, by_chance=result.by_chance
            )
        if node is not None:
            return PodProvisioning(
                looked=looked,
                pool=node.template.name,
                types=node.cheapest_first,
                types_are_known=self.known[node.template.name].are_all,
                companions=len(node.pods) - 1,
                pools=self._unsure(pod, node.template.name),
                by_chance=result.by_chance,
                has_relaxed=has_relaxed,
            )
        existing = next((name for name, keys in result.existing.items() if pod.key in keys), "")
        return PodProvisioning(
            looked=looked,
            existing=existing,
            is_claim=existing not in self.snapshot.cluster.index,
            by_chance=result.by_chance,
            has_relaxed=has_relaxed,
        )

    @property
    def _has_skipped_unknown(self) -> bool:
        """Whether a pool is skipped only because none of its types is known."""
        return not self.types_are_known and any(pool.why == "no-types" for pool in self.skipped)

    @cached_property
    def templates(self) -> Mapping[str, PoolTemplate]:
        provisioner = self.provisioner
        return {template.name: template for template in provisioner.templates(provisioner.daemons(self.snapshot))}

    def node_of(self, pool: str, pod: Pod) -> Node | None:
        """What a pool gives a new node for the pod; its size is open."""
        template = self.templates.get(pool)
        if template is None:
            return None
        requirements = template.requirements.together(pod_requirements(pod, prefers=False).values())
        labels = {
            key: min(requirement.values) for key, requirement in requirements.items() if requirement.operator == "In"
        }
        metadata = ObjectMeta(name=pool, labels={**labels, NODE_POOL: pool})
        return Node(metadata=metadata, spec=NodeSpec(taints=template.taints))

    def verdicts(self, pod: Pod, failure: SchedulingFailure) -> tuple[PoolVerdict, ...]:
        return tuple(self._verdict(pod, pool.pool, pool.rejection, pool.limit) for pool in failure.pools)

    def _verdict(self, pod: Pod, name: str, rejection: Rejection, limit: LimitReached | None = None) -> PoolVerdict:
        known, template = self.known[name], self.templates.get(name)
        types = () if template is None else template.types
        if isinstance(rejection, NoInstanceType) and template is not None and limit is not None:
            matching = matching_types(template, rejection)
            larger = tuple(each for each in matching if fits_within(rejection.requests, each.allocatable))
            if larger:
                rejection, types = replace(limit, of_others=rejection.text), larger
        lacks_a_reservation = isinstance(rejection, NoInstanceType) and self._lacks_a_reservation(name, rejection)
        is_sure = known.are_all
        match rejection:
            case NoInstanceType():
                is_sure = is_sure or lacks_a_reservation or self._is_out_of_zone(name, rejection)
                is_sure = is_sure or rejection.without_gpus is not None
            case LimitReached():
                left, wanted = rejection.remaining, pod_requests((pod,))
                is_short = any(wanted[name].nano > left[name].nano for name in wanted.keys() & left.keys())
                is_sure = is_sure or rejection.is_exhausted or is_short  # each type that fits is at least as large
            case NoDevices():
                is_sure = rejection.is_known
            case CheapestAreTooFew():
                pass
            case _:
                is_sure = True
        return PoolVerdict(
            pool=self.by_name[name],
            certainty=LaunchCertainty.REJECTS if is_sure else LaunchCertainty.UNKNOWN,
            rejection=rejection,
            known=types,
            template=template,
            zones=known.zones if known.zones_are_all else (),
            types_are_known=known.are_all,
            lacks_a_reservation=lacks_a_reservation,
            requirements=pod_requirements(pod, prefers=False),
        )

    def _is_out_of_zone(self, name: str, rejection: NoInstanceType) -> bool:
        """Return whether no type of any size is in a zone of the pool's node class."""
        known, requirement = self.known[name], rejection.requirements.requirement(ZONE)
        return known.zones_are_all and not any(map(requirement.has, known.zones))

    def _lacks_a_reservation(self, name: str, rejection: NoInstanceType) -> bool:
        """Return whether only reserved capacity fits and the pool's node class has none."""
        requirement = rejection.requirements.requirement(CAPACITY_TYPE)
        allowed = [kind for kind in CAPACITY_TYPES if requirement.has(kind)]
        return self.known[name].has_no_reservations and allowed == [RESERVED]

    def _unsure(self, pod: Pod, taken: str) -> tuple[PoolVerdict, ...]:
        """The pools before the chosen one whose types are not all known, with their verdicts about the pod alone."""
        earlier = takewhile(lambda pool: pool.name != taken, self.provisioner.pools)
        before = tuple(pool for pool in earlier if not self.known[pool.name].are_all)
        if not before:
            return ()
        alone = replace(self.provisioner, pools=before)
        failure = alone.run(self.snapshot, [pod]).failures.get(pod.key)
        return self.verdicts(pod, failure) if failure is not None else ()


# The virtual pods of CapacityBuffers: capacity that Karpenter keeps free, behind its feature gate CapacityBuffer.
# Upstream: pkg/state/virtualpods, pkg/utils/apps/resolve.go of Karpenter 1.14.


_SCALABLE = ("Deployment", "StatefulSet", "ReplicaSet")
_LOWEST_PRIORITY = -(2**31)


def virtual_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """Yield the virtual pods of ready buffers."""
    pod_templates = {(it.metadata.namespace, it.metadata.name): it.template for it in snapshot.of(PodTemplate)}
    for buffer in snapshot.of(CapacityBuffer):
        namespace = buffer.metadata.namespace
        if condition_of(buffer.status.conditions, "ReadyForProvisioning", "True") is None:
            continue
        named = buffer.spec.pod_template_ref
        if named is not None:
            template = pod_templates.get((namespace, named.name))
        else:
            template = _buffer_template(snapshot, buffer)
        if template is None:
            continue
        spec = _placeable(template.spec)
        for number in range(1, (buffer.status.replicas or 0) + 1):
            metadata = ObjectMeta(
                name=f"capacity-buffer-{buffer.metadata.name}-{number}",
                namespace=namespace,
                uid=f"{buffer.metadata.uid}-{number}",
                labels=template.metadata.labels,
                creation_timestamp="~",
            )
            yield Pod(metadata=metadata, spec=spec)


def _buffer_template(snapshot: Snapshot, buffer: CapacityBuffer) -> PodTemplateSpec | None:
    named = buffer.spec.scalable_ref
    if named is None or named.kind not in _SCALABLE or named.api_group not in ("", "apps"):
        return None
    raw = snapshot.workloads.get((named.kind, buffer.metadata.namespace, named.name))
    return None if raw is None else template_of(raw)


def _placeable(spec: PodSpec) -> PodSpec:
    """Return the spec without a node and without volumes of claims."""
    volumes = tuple(it for it in spec.volumes if it.persistent_volume_claim is None and it.ephemeral is None)
    return replace(spec, node_name="", priority=_LOWEST_PRIORITY, volumes=volumes)


# The cluster after Karpenter has added all nodes that it can, with known types.


class KarpenterGrowthStep(Document, frozen=True):
    """New nodes of one type in a pool."""

    pool: str
    instance_type: str  # the cheapest or smallest possible type
    nodes: int
    choices: int  # the number of possible types of the first node


class KarpenterGrowthDocument(Document, frozen=True, kw_only=True, tag_field="kind", tag="karpenter"):
    """What Karpenter adds, as the value of the key `autoscaler` of a Simulation document."""

    follows: str
    grown: tuple[KarpenterGrowthStep, ...] = field(name="nodes")
    helped: int  # the number of pods that get a new node
    expected: int  # the number of pods that it expects on existing or launching nodes
    left: int  # the number of pods that no pool accepts, with the known types
    types_are_known: bool
    by_chance: bool


class KarpenterGrowth(NodeGrowth, frozen=True, kw_only=True):
    autoscaler: ClassVar[Literal["Karpenter"]] = "Karpenter"

    passed_over: Mapping[PodEligibility, int]  # the outcomes of pods that are not considered, with their numbers
    follows: str
    grown: tuple[KarpenterGrowthStep, ...]
    expected: int
    types_are_known: bool
    rejected: tuple[tuple[PoolVerdict, ...], int]
    """The pools' verdicts about most of the pods that are left, and their number."""

    @property
    def document(self) -> KarpenterGrowthDocument:
        return part_of(KarpenterGrowthDocument, self)


def _nodes(result: RoundResult, taken: Collection[str]) -> Iterator[tuple[NewNodeClaim, InstanceType, Node]]:
    numbers = count(1)
    for new in result.new:
        name = next(it for number in numbers if (it := added_node_name(new.template.name, number)) not in taken)
        instance_type = new.cheapest_first[0]
        yield new, instance_type, _node(name, new, instance_type)


def _node(name: str, new: NewNodeClaim, instance_type: InstanceType) -> Node:
    """Build the node from its pool, pods, and type. If several zones are possible, take the one with the lowest known
    price, else the first."""
    labels = {
        key: min(requirement.values)
        for key, requirement in new.requirements.together(instance_type.requirements.values()).items()
        if requirement.operator == "In"
    }
    offerings = [
        offering
        for offering in instance_type.offerings
        if offering.is_available and new.requirements.is_compatible(offering.requirements, new.template.allowed)
    ]
    if offerings:
        offering = min(offerings, key=lambda it: (inf if it.price is None else it.price, it.zone))
        labels |= {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    labels |= {HOSTNAME: name, NODE_POOL: new.template.name, REGISTERED: "true", INITIALIZED: "true"}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=new.template.taints, provider_id=f"new:///{name}"),  # without one, Karpenter ignores it
        status=NodeStatus(
            capacity=_resources(instance_type.capacity),
            allocatable=_resources(instance_type.allocatable),
            conditions=READY,
        ),
    )


def _resources(amounts: Amounts) -> dict[str, str | int | float]:
    return {name: str(amount) for name, amount in amounts.items()}
