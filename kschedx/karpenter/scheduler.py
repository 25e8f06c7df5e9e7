"""A round of Karpenter: pending pods on existing nodes, on nodes of this round, and on new ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError, nearest
from kschedx.karpenter.devices import NoDevices, PodDevices, RoundDevices
from kschedx.karpenter.existing_nodes import ExistingNodes
from kschedx.karpenter.instance_types import DaemonOverhead, InstanceType, NoInstanceType, filter_types
from kschedx.karpenter.node_claims import (
    AcceptedPod,
    NewNodeClaim,
    PoolTemplate,
    pool_requirements,
    written_requirements,
)
from kschedx.karpenter.nodes import ClusterState, is_of_daemon_set, is_static
from kschedx.karpenter.pods import DaemonSets, PodData, karpenter_daemon_pods, relax, volume_alternatives
from kschedx.karpenter.rejections import CheapestAreTooFew, LimitReached, NodeLimitReached, Rejection
from kschedx.karpenter.requirements import NODES, ZERO, Amount, Amounts, Requirements, amounts_of, subtract, well_known
from kschedx.karpenter.topology import CountedCluster, Topologies, TopologyDomains
from kschedx.kube.autoscalers import BALANCED, DO_NOT_DISRUPT, NodePool
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.names import HOSTNAME
from kschedx.kube.types import OwnerReference, Pod, Taint
from kschedx.patterns import lazy_pattern
from kschedx.releases.dates import minor
from kschedx.releases.karpenter import MEASURED, KarpenterBehavior, karpenter_behavior
from kschedx.snapshot.snapshot import Snapshot

# Karpenter's settings that affect its decisions. Upstream: pkg/operator/options.


_VERSIONS = ("1.13", "1.14")
_FIRST_WITH_BALANCED = "1.14"


class KarpenterSettings(Struct, frozen=True, kw_only=True):
    prefers: bool = True  # --preference-policy=Respect: preferences count as requirements until they have to be relaxed
    relaxes_min_values: bool = False  # --min-values-policy=BestEffort
    ignores_devices: bool = True  # --ignore-dra-requests
    keeps_buffers: bool = False  # --feature-gates=CapacityBuffer=true, supported from 1.14 on
    replaces_spot_with_spot: bool = False  # --feature-gates=SpotToSpotConsolidation=true
    version: str = ""  # the version of Karpenter; empty for the cluster's own, or else the newest verified one

    @property
    def rules_version(self) -> str:
        return self.version or MEASURED[-1]

    @property
    def behavior(self) -> KarpenterBehavior:
        return karpenter_behavior(self.rules_version)

    @classmethod
    def read(cls, written: Sequence[str]) -> KarpenterSettings:
        """Parse `preference-policy=Ignore` and similar options, and `version=1.14`; names of environment variables are
        allowed. The last of several wins. Raises `InputError`, and `ConfigError` for a value."""
        read: dict[str, bool] = {}
        version = ""
        for option in written:
            name, equals, value = option.lstrip("-").partition("=")
            if not equals:
                raise InputError(f"--karpenter-flag: {json.dumps(option)} is not NAME=VALUE")
            name = name.lower().replace("_", "-")
            if name == "version":
                if value not in _VERSIONS:
                    known = " or ".join(_VERSIONS)
                    raise ConfigError(f"version of Karpenter cannot be {json.dumps(value)}, but {known}")
                version = value
                continue
            if name == "feature-gates":
                gates = value.split(",")
                read["keeps_buffers"] = "CapacityBuffer=true" in gates
                read["replaces_spot_with_spot"] = "SpotToSpotConsolidation=true" in gates
                continue
            if name not in _FLAGS:
                raise ConfigError(f"--{name} is not a flag of Karpenter that kschedx reads", hint=nearest(name, _FLAGS))
            field, values = _FLAGS[name]
            if value not in values:
                known = " or ".join(values)
                raise ConfigError(f"--{name} of Karpenter cannot be {json.dumps(value)}, but {known}")
            read[field] = values[value]
        return cls(version=version, **read)


_IMAGE = lazy_pattern(rb'karpenter/controller:v?(\d{1,3}\.\d{1,3})[."@-]')


def karpenter_version(snapshot: Snapshot) -> str:
    """Return the version in the image of the cluster's Deployment, or the nearest one in `VERSIONS`. If it is unknown,
    return the verified one, or the first version that supports the NodePools' fields."""
    for (kind, _, _), raw in snapshot.workloads.items():
        match = _IMAGE.search(raw) if kind == "Deployment" and b"karpenter/controller:" in raw else None
        if match is not None:
            written_minor = minor(match[1].decode())
            return next((version for version in reversed(_VERSIONS) if minor(version) <= written_minor), _VERSIONS[0])
    is_balanced = any(pool.spec.disruption.consolidation_policy == BALANCED for pool in snapshot.of(NodePool))
    return _FIRST_WITH_BALANCED if is_balanced else MEASURED[-1]


_FLAGS: Mapping[str, tuple[str, Mapping[str, bool]]] = {
    "preference-policy": ("prefers", {"Respect": True, "Ignore": False}),
    "min-values-policy": ("relaxes_min_values", {"Strict": False, "BestEffort": True}),
    "ignore-dra-requests": ("ignores_devices", {"true": True, "false": False}),
}
"""Flag to its field, and its values."""


# A round: the pending pods, one after the other, on existing nodes, on nodes of this round, and on new ones. Upstream:
# scheduling/scheduler.go, queue.go. The free capacity of reservations is not counted.

ONLY_DEVICES = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
_NO_TYPES = "nodepool requirements filtered out all available instance types"

MOST_TYPES = 600  # the maximum number of types requested for a new node (MaxInstanceTypes in nodeclaimtemplate.go)


class _PoolRejection(Struct, frozen=True, kw_only=True):
    """A pool's rejection of a pod that no node accepts."""

    pool: str
    rejection: Rejection
    limit: LimitReached | None = None  # the limits of the pool, if they exclude some types


class SchedulingFailure(Struct, frozen=True, kw_only=True):
    """Why no node accepts a pod, even after relaxing its preferences."""

    pools: tuple[_PoolRejection, ...] = ()  # in the order in which pools are tried
    reason: str = ""  # the reason if no pool was tried

    @property
    def text(self) -> str:
        return self.reason or "; ".join(pool.rejection.text for pool in self.pools)


class RoundResult(Struct, frozen=True, kw_only=True):
    new: tuple[NewNodeClaim, ...] = ()
    existing: Mapping[str, tuple[str, ...]] = {}  # existing node or claim to the pods that it would accept
    failures: Mapping[str, SchedulingFailure] = {}  # `namespace/name` to why the pod stays pending
    relaxed: frozenset[str] = frozenset()  # pods whose preferences were relaxed for their node
    by_chance: bool = False  # whether another domain was equally good somewhere

    def node_of(self, pod: str) -> NewNodeClaim | None:
        return next((claim for claim in self.new if pod in claim.pods), None)


class _ProvisioningRound(Struct, kw_only=True):
    """One run of the scheduler over pods."""

    templates: Sequence[PoolTemplate]
    existing: ExistingNodes
    topologies: Topologies
    left: dict[str, Amounts]  # what the pools' limits leave
    volumes: Mapping[str, tuple[Requirements | None, ...]]
    settings: KarpenterSettings
    devices: RoundDevices | None
    tolerates_preferred_taints: bool
    new: list[NewNodeClaim] = []
    host_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self, pods: Sequence[Pod]) -> RoundResult:
        """Schedule pods. Whenever one succeeds, the pods after it are tried again."""
        data = {pod.key: self._data(pod) for pod in pods}
        queue = [pod.key for pod in _sort_pods(pods, data)]
        last_length: dict[str, int] = {}
        failures: dict[str, SchedulingFailure] = {}
        gave_up: set[str] = set()
        while queue and last_length.get(queue[0]) != len(queue):
            key = queue.pop(0)
            failure, has_relaxed = self._try(data[key])
            if failure is None:
                failures.pop(key, None)
                if has_relaxed:
                    gave_up.add(key)
                continue
            failures[key] = failure
            self.topologies.update(data[key].pod, key)
            queue.append(key)
            last_length[key] = len(queue)
        new: list[NewNodeClaim] = []
        for node in self.new:
            node.use_reservations()
            too_few = node.keep_cheapest(MOST_TYPES)
            if too_few and not self.settings.relaxes_min_values:
                pool = node.template.name
                rejection = CheapestAreTooFew(pool=pool, most=MOST_TYPES, too_few=too_few)
                failures |= dict.fromkeys(
                    node.pods, SchedulingFailure(pools=(_PoolRejection(pool=pool, rejection=rejection),))
                )
            else:
                new.append(node)
        return RoundResult(
            new=tuple(new),
            existing=self.existing.pods_by_node,
            failures=failures,
            relaxed=frozenset(gave_up),
            by_chance=self.topologies.chance.is_taken,
        )

    def _data(self, pod: Pod) -> PodData:
        behavior = self.settings.behavior
        volumes = self.volumes.get(pod.key, (None,))
        return PodData.of(pod, volumes, prefers=self.settings.prefers, behavior=behavior)

    def _try(self, data: PodData) -> tuple[SchedulingFailure | None, bool]:
        """Return why the pod stays pending, and whether a preference was relaxed."""
        has_relaxed = False
        while True:
            failure = self._add(data)
            if failure is None or failure.reason == ONLY_DEVICES:
                return failure, has_relaxed
            less = relax(data.pod, tolerates_preferred_taints=self.tolerates_preferred_taints)
            if less is None:
                return failure, has_relaxed
            has_relaxed = True
            self.topologies.update(less, data.key)
            data = self._data(less)

    def _add(self, data: PodData) -> SchedulingFailure | None:
        if data.asks_for_devices and self.settings.ignores_devices:
            return SchedulingFailure(reason=ONLY_DEVICES)
        if data.asks_for_devices and self.devices is not None:
            claims = self.devices.claims_of(data.pod)
            if isinstance(claims, NoDevices):
                return SchedulingFailure(reason=claims.text)
            allowed = self.templates[0].allowed if self.templates else frozenset()
            data = replace(data, devices=PodDevices(self.devices, claims, allowed))
        if self.existing.take(data, self.topologies):
            return None
        sort_slice(self.new, lambda claim, other: len(claim.pods) < len(other.pods))
        for node in self.new:
            accepted = node.accept(data, self.topologies)
            if isinstance(accepted, AcceptedPod):
                node.add(data, accepted, self.topologies)
                return None
        return SchedulingFailure(reason=_NO_TYPES) if not self.templates else self._add_node(data)

    def _add_node(self, data: PodData) -> SchedulingFailure | None:
        """Try the pools by weight, and add a node of the first one that accepts the pod."""
        rejections: list[_PoolRejection] = []
        for template in self.templates:
            types, limit = self._types_within_limits(template), None
            if isinstance(types, tuple):
                node = NewNodeClaim(template, types, f"hostname-placeholder-{next(self.host_numbers):04d}")
                answer = node.accept(data, self.topologies, relaxes_min_values=self.settings.relaxes_min_values)
                if isinstance(answer, NoInstanceType) and len(types) < len(template.types):
                    limit = self._limit_of(template)
                    answer = answer if types else limit
                if isinstance(answer, AcceptedPod):
                    node.add(data, answer, self.topologies)
                    self.new.append(node)
                    self.left[template.name] = _less_the_largest(self.left[template.name], node.types)
                    return None
            else:
                answer = types
            rejections.append(_PoolRejection(pool=template.name, rejection=answer, limit=limit))
        return SchedulingFailure(pools=tuple(rejections))

    def _types_within_limits(
        self, template: PoolTemplate
    ) -> tuple[InstanceType, ...] | LimitReached | NodeLimitReached:
        """Return the types within the limits. If not all types are known, an unknown one may fit: then a limit decides
        first only if it leaves nothing at all."""
        left = self.left[template.name]
        if NODES in left and not left[NODES].nano:
            return NodeLimitReached(pool=template.name, limit=template.limits[NODES].nano // 10**9)
        types = tuple(
            instance_type
            for instance_type in template.types
            if all(instance_type.capacity.get(name, ZERO).nano <= left[name].nano for name in left)
        )
        limit = self._limit_of(template)
        return types if types or not (template.types_are_known or limit.is_exhausted) else limit

    def _limit_of(self, template: PoolTemplate) -> LimitReached:
        return LimitReached(pool=template.name, remaining=dict(self.left[template.name]), limits=template.limits)


def _sort_pods(pods: Sequence[Pod], data: Mapping[str, PodData]) -> list[Pod]:
    """Sort by cpu requests, largest first, then by memory, then oldest first."""

    def requested(pod: Pod, resource: str) -> int:
        return data[pod.key].requests.get(resource, ZERO).nano

    return sorted(
        pods,
        key=lambda pod: (
            -requested(pod, "cpu"),
            -requested(pod, "memory"),
            pod.metadata.creation_timestamp or "",
            pod.metadata.uid or pod.key,
        ),
    )


def _less_the_largest(left: Amounts, types: Sequence[InstanceType]) -> dict[str, Amount]:
    """Subtract the largest type, because any of the types may be launched."""
    largest: dict[str, Amount] = {}
    for instance_type in types:
        for name, amount in instance_type.capacity.items():
            if name not in largest or amount.nano > largest[name].nano:
                largest[name] = amount
    return subtract(left, largest)


# The input of Karpenter's decisions: pools by weight, instance types, nodes, and pending pods.
# Upstream: provisioner.go, NewScheduler in scheduling/scheduler.go, buildDomainGroups in topology.go.


class KnownTypes(Struct, frozen=True, kw_only=True):
    """The known instance types of a pool's cloud, and the zones of the pool's nodes."""

    types: tuple[InstanceType, ...]
    are_all: bool  # whether there are no other types
    zones: tuple[str, ...] = ()
    zones_are_all: bool = False  # whether the node class lists the zones
    has_no_reservations: bool = False  # whether the node class has no reservations: then no type is `reserved`


class SkippedPool(Struct, frozen=True, kw_only=True):
    """A pool that Karpenter does not use for any pod."""

    pool: NodePool
    why: str  # `static`, `not-ready`, `deleting`, or `no-types`


class Provisioner(Struct, frozen=True, kw_only=True):
    """Pools with their instance types; rounds may run on any cluster with these pools."""

    pools: tuple[NodePool, ...]  # the usable pools, in the order in which they are tried
    skipped: tuple[SkippedPool, ...]
    types: Mapping[str, KnownTypes]
    settings: KarpenterSettings

    @classmethod
    def of(cls, pools: Sequence[NodePool], types: Mapping[str, KnownTypes], settings: KarpenterSettings) -> Provisioner:
        skipped = [SkippedPool(pool=pool, why=why) for pool in pools if (why := _why_skipped(pool))]
        left_out = {pool.pool.name for pool in skipped}
        used = sorted((pool for pool in pools if pool.name not in left_out), key=lambda pool: pool.name, reverse=True)
        used.sort(key=lambda pool: -(pool.spec.weight or 0))
        types = {pool.name: types[pool.name] for pool in used}
        kept: list[NodePool] = []
        for pool in used:
            known = types[pool.name]
            if known.are_all and not _template_types(pool, known.types, settings):
                skipped.append(SkippedPool(pool=pool, why="no-types"))
            kept.append(pool)
        return cls(pools=tuple(kept), skipped=tuple(skipped), types=types, settings=settings)

    def run(self, snapshot: Snapshot, pods: Sequence[Pod], candidates: Collection[str] = ()) -> RoundResult:
        """Run a round for these pods, which were validated before, and for the pods of nodes that are being
        disrupted. `candidates` are the NodeClaims whose disruption is tried, so that all of their pods move."""
        cluster = ClusterState.of(snapshot)
        moving = tuple(self._moving_rows(snapshot, cluster, candidates))
        waiting = [*pods, *(snapshot.pods[row] for row in moving)]
        volumes = {pod.key: volume_alternatives(pod, snapshot.storage) for pod in waiting}
        topologies = Topologies(
            CountedCluster(
                snapshot=snapshot,
                excluded=frozenset(
                    (*moving, *(row for pod in pods if (row := snapshot.pods.rows.get(pod.key)) is not None))
                ),
                nodes=[(node.node, node.labels) for node in cluster.staying if node.node is not None],
                domains=self.domains,
            ),
            prefers=self.settings.prefers,
        )
        for pod in waiting:
            topologies.update(pod, pod.key)
        daemons = self.daemons(snapshot)
        templates = self.templates(daemons)
        devices = None
        types: dict[tuple[str, str], InstanceType] = {}
        if self.settings.behavior.allocates_devices and not self.settings.ignores_devices:
            leaving_uids = {snapshot.pods[row].metadata.uid for row in moving}
            devices = RoundDevices(snapshot, cluster.staying, leaving_uids)
            types = {
                (pool, instance_type.name): instance_type
                for pool, known in self.types.items()
                for instance_type in known.types
            }
        existing = ExistingNodes(cluster.staying, snapshot, daemons, types)
        for node in existing.nodes:
            topologies.register(HOSTNAME, node.state.host_name)
        return _ProvisioningRound(
            templates=templates,
            existing=existing,
            topologies=topologies,
            left=self.left(cluster),
            volumes=volumes,
            settings=self.settings,
            devices=devices,
            tolerates_preferred_taints=any(map(_has_preferred_taint, self.pools)),
        ).run(waiting)

    def daemons(self, snapshot: Snapshot) -> DaemonSets:
        settings = self.settings
        pods = tuple(karpenter_daemon_pods(snapshot))
        return DaemonSets(pods, settings.behavior, leaves_out_devices=settings.ignores_devices)

    def templates(self, daemons: DaemonSets) -> tuple[PoolTemplate, ...]:
        """Return templates for pools that have, or may have, an instance type."""
        pool_templates: list[PoolTemplate] = []
        for pool in self.pools:
            known = self.types[pool.name]
            types = _template_types(pool, known.types, self.settings)
            if not types and known.are_all:
                continue
            behavior = self.settings.behavior
            requirements = pool_requirements(pool, behavior)
            allowed = well_known(pool.spec.template.spec.node_class_ref.api_group)
            overheads = daemons.overhead_of_pool(pool.spec.template.spec.taints, requirements, allowed, types)
            pool_templates.append(
                PoolTemplate(
                    pool=pool,
                    requirements=requirements,
                    allowed=allowed,
                    types=types,
                    types_are_known=known.are_all,
                    overheads=overheads,
                    behavior=behavior,
                )
            )
        return tuple(pool_templates)

    def left(self, cluster: ClusterState) -> dict[str, Amounts]:
        """Return what the limits of each pool leave for new nodes."""
        left: dict[str, Amounts] = {pool.name: amounts_of(pool.spec.limits) for pool in self.pools}
        for pool in self.pools:
            nodes = [node for node in cluster.staying if node.pool == pool.name] if pool.spec.limits else []
            counted = amounts_of(pool.status.resources)
            # some dumps lack all nodes of a pool, or their capacity, which the pool's status counts
            is_unread = not any(node.pool == pool.name for node in (*cluster.staying, *cluster.leaving))
            is_counted = is_unread or (
                counted.get(NODES) == Amount(10**9 * len(nodes)) and all(node.lacks_capacity for node in nodes)
            )
            for amounts in [counted] if is_counted else [node.capacity for node in nodes]:
                left[pool.name] = subtract(left[pool.name], amounts)
        return left

    @property
    def domains(self) -> dict[str, TopologyDomains]:
        """The values of every key on new nodes, within their pools' own requirements."""
        domains_by_key: dict[str, TopologyDomains] = {}
        for pool in self.pools:
            template, types = pool.spec.template, self.types[pool.name].types
            if not types and self.types[pool.name].are_all:
                continue
            own = written_requirements(pool).together(Requirements.of_labels(template.metadata.labels).values())
            for instance_type in types:
                _add(
                    domains_by_key,
                    own.together(instance_type.requirements.values()),
                    template.spec.taints,
                    only_in=False,
                )
            _add(domains_by_key, own, template.spec.taints, only_in=True)
        return domains_by_key

    def _moving_rows(self, snapshot: Snapshot, cluster: ClusterState, candidates: Collection[str]) -> list[int]:
        """Rows of the pods on nodes that are being disrupted."""
        pods = snapshot.pods
        return [
            row
            for node in cluster.leaving
            if node.row >= 0
            for row in pods.on_node(node.row).tolist()
            if not (is_of_daemon_set(pods.owners[row]) or is_static(pods.owners[row]))
            and (not pods.deletion_timestamps[row] or _is_of_stateful_set(pods.owners[row]))
            and (
                pods.annotations[row].get(DO_NOT_DISRUPT) != "true"
                or (node.claim is not None and node.claim.name in candidates)
            )
        ]


def _is_of_stateful_set(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind == "StatefulSet" and owner.api_version == "apps/v1" for owner in owners)


def _template_types(
    pool: NodePool, types: Sequence[InstanceType], settings: KarpenterSettings
) -> tuple[InstanceType, ...]:
    """Return the types that meet the pool's own requirements."""
    left = filter_types(
        types,
        pool_requirements(pool, settings.behavior),
        pod_requests={},
        overheads=(DaemonOverhead(),),
        total={},
        allowed=well_known(pool.spec.template.spec.node_class_ref.api_group),
        relaxes_min_values=settings.relaxes_min_values,
    )
    return left.types


def _add(
    domains_by_key: dict[str, TopologyDomains], requirements: Requirements, taints: tuple[Taint, ...], *, only_in: bool
) -> None:
    for key, requirement in requirements.items():
        if not only_in or requirement.operator == "In":
            domains = domains_by_key.setdefault(key, TopologyDomains())
            for value in requirement.values:
                domains.add(value, taints)


def _why_skipped(pool: NodePool) -> str:
    if pool.spec.replicas is not None:
        return "static"
    if pool.unready_condition is not None:
        return "not-ready"
    return "deleting" if pool.metadata.deletion_timestamp else ""


def _has_preferred_taint(pool: NodePool) -> bool:
    return any(taint.effect == "PreferNoSchedule" for taint in pool.spec.template.spec.taints)
