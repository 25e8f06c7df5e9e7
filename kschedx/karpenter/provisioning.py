"""The input of Karpenter's decisions: pools by weight, instance types, nodes, and pending pods.

Upstream: provisioner.go, NewScheduler in scheduling/scheduler.go, buildDomainGroups in topology.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kschedx.karpenter.amounts import Amounts, amounts_of, subtracted
from kschedx.karpenter.devices import RoundDevices
from kschedx.karpenter.existing_nodes import ExistingNodes
from kschedx.karpenter.instance_types import InstanceType, filter_types
from kschedx.karpenter.node_claims import PoolTemplate, allowed_labels, pool_requirements, written_requirements
from kschedx.karpenter.nodes import ClusterState, is_of_daemon_set, is_of_stateful_set, is_static
from kschedx.karpenter.pods import DaemonOverhead, DaemonSets, karpenter_daemon_pods, volume_alternatives
from kschedx.karpenter.requirements import Requirements
from kschedx.karpenter.scheduler import KarpenterSettings, ProvisioningRound, RoundResult
from kschedx.karpenter.topology import Counted, Topologies, TopologyDomains
from kschedx.kube.autoscalers import DO_NOT_DISRUPT, NodePool
from kschedx.kube.names import HOSTNAME
from kschedx.kube.types import Pod, Taint
from kschedx.snapshot.snapshot import Snapshot


class PoolTypes(Struct, frozen=True, kw_only=True):
    """The known instance types of a pool's cloud."""

    types: tuple[InstanceType, ...]
    are_all: bool
    """Whether there are no other types."""


class SkippedPool(Struct, frozen=True, kw_only=True):
    """A pool that Karpenter does not use for any pod."""

    pool: NodePool
    why: str
    """`static`, `not-ready`, `deleting`, or `no-types`."""


class Provisioner(Struct, frozen=True, kw_only=True):
    """Pools with their instance types; rounds may run on any cluster with these pools."""

    pools: tuple[NodePool, ...]
    """The usable pools, in the order in which they are tried."""
    skipped: tuple[SkippedPool, ...]
    types: Mapping[str, PoolTypes]
    settings: KarpenterSettings

    @classmethod
    def of(
        cls, pools: Sequence[NodePool], types_of: Callable[[NodePool], PoolTypes], settings: KarpenterSettings
    ) -> Provisioner:
        skipped = [SkippedPool(pool=pool, why=why) for pool in pools if (why := _why_skipped(pool))]
        left_out = {pool.pool.name for pool in skipped}
        used = sorted((pool for pool in pools if pool.name not in left_out), key=lambda pool: pool.name, reverse=True)
        used.sort(key=lambda pool: -(pool.spec.weight or 0))
        types = {pool.name: types_of(pool) for pool in used}
        kept: list[NodePool] = []
        for pool in used:
            known = types[pool.name]
            if known.are_all and not _template_types(pool, known.types, settings):
                skipped.append(SkippedPool(pool=pool, why="no-types"))
            kept.append(pool)
        return cls(pools=tuple(kept), skipped=tuple(skipped), types=types, settings=settings)

    def run(self, snapshot: Snapshot, pods: Sequence[Pod]) -> RoundResult:
        """Run a round for these pods, which were validated before, and for the pods of nodes that are being
        disrupted."""
        cluster = ClusterState.of(snapshot)
        moving = tuple(self._moving(snapshot, cluster))
        waiting = [*pods, *(snapshot.pods[row] for row in moving)]
        volumes = {pod.key: volume_alternatives(pod, snapshot.storage) for pod in waiting}
        topologies = Topologies(
            Counted(
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
        if self.settings.behaviour.allocates_devices and not self.settings.ignores_devices:
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
        return ProvisioningRound(
            templates,
            existing,
            topologies,
            self.left(cluster),
            volumes,
            self.settings,
            devices=devices,
            tolerates_preferred_taints=any(map(_has_preferred_taint, self.pools)),
        ).run(waiting)

    def daemons(self, snapshot: Snapshot) -> DaemonSets:
        settings = self.settings
        pods = tuple(karpenter_daemon_pods(snapshot))
        return DaemonSets(pods, settings.behaviour, leaves_out_devices=settings.ignores_devices)

    def templates(self, daemons: DaemonSets) -> tuple[PoolTemplate, ...]:
        """Return templates for pools that have, or may have, an instance type."""
        pool_templates: list[PoolTemplate] = []
        for pool in self.pools:
            known = self.types[pool.name]
            types = _template_types(pool, known.types, self.settings)
            if not types and known.are_all:
                continue
            behaviour = self.settings.behaviour
            requirements, allowed = pool_requirements(pool, behaviour), allowed_labels(pool)
            overheads = daemons.for_pool(pool.spec.template.spec.taints, requirements, allowed, types)
            pool_templates.append(
                PoolTemplate(
                    pool=pool,
                    requirements=requirements,
                    allowed=allowed,
                    types=types,
                    types_are_known=known.are_all,
                    overheads=overheads,
                    behaviour=behaviour,
                )
            )
        return tuple(pool_templates)

    def left(self, cluster: ClusterState) -> dict[str, Amounts]:
        """Return what the limits of each pool leave for new nodes."""
        left: dict[str, Amounts] = {pool.name: amounts_of(pool.spec.limits) for pool in self.pools}
        for node in cluster.staying:
            if left.get(node.pool):
                left[node.pool] = subtracted(left[node.pool], node.capacity)
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

    def _moving(self, snapshot: Snapshot, cluster: ClusterState) -> list[int]:
        """Rows of the pods on nodes that are being disrupted."""
        pods = snapshot.pods
        return [
            row
            for node in cluster.leaving
            if node.row >= 0
            for row in pods.on_node(node.row).tolist()
            if not (is_of_daemon_set(pods.owners[row]) or is_static(pods.owners[row]))
            and (not pods.deletion_timestamps[row] or is_of_stateful_set(pods.owners[row]))
            and pods.annotations[row].get(DO_NOT_DISRUPT) != "true"
        ]


def _template_types(
    pool: NodePool, types: Sequence[InstanceType], settings: KarpenterSettings
) -> tuple[InstanceType, ...]:
    """Return the types that meet the pool's own requirements."""
    left = filter_types(
        types,
        pool_requirements(pool, settings.behaviour),
        pod_requests={},
        overheads=(DaemonOverhead(),),
        total={},
        allowed=allowed_labels(pool),
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
    if pool.not_ready is not None:
        return "not-ready"
    return "deleting" if pool.metadata.deletion_timestamp else ""


def _has_preferred_taint(pool: NodePool) -> bool:
    return any(taint.effect == "PreferNoSchedule" for taint in pool.spec.template.spec.taints)
