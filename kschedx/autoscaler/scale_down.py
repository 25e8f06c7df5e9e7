"""Why cluster-autoscaler does not remove a node: its utilization, its pods, their new nodes, and its group.

Upstream: core/scaledown/ and simulator/ of kubernetes/autoscaler, version 1.36.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.apiserver.defaulting import GRACE_PERIOD
from kschedx.autoscaler.cluster import Autoscaler, AutoscalerOptions
from kschedx.autoscaler.flags import ScaleDownFlags
from kschedx.autoscaler.node_groups import NodeState, cluster_is_healthy, gpu_label
from kschedx.autoscaler.sandbox import Evacuation, MovingSandbox, Sandbox
from kschedx.autoscaler.status import NodeGroupStatus
from kschedx.autoscaler.templates import is_of_daemon_set
from kschedx.errors import UndecidableError
from kschedx.framework.runtime import request_options
from kschedx.framework.scheduler import Scheduler
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import MIRROR, NODE_POOL, SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES, SCALE_DOWN_DISABLED
from kschedx.kube.devices import Device, DeviceRequestAllocationResult, ResourceSlice
from kschedx.kube.documents import Document, Json, document, part_of
from kschedx.kube.names import CPU, MEMORY
from kschedx.kube.quantity import milli_value, resource_amount
from kschedx.kube.resources import RequestOptions, pod_request
from kschedx.kube.scalars import Duration, parse_int64
from kschedx.kube.selectors import Selector
from kschedx.kube.tolerations import DELETION_CANDIDATE, TO_BE_DELETED
from kschedx.kube.types import (
    AUTOSCALER_STATUS,
    FINISHED,
    Node,
    OwnerReference,
    PodDisruptionBudget,
    PodSpec,
    Taint,
    compile_budgets,
    controller_of,
)
from kschedx.releases import Release
from kschedx.releases.autoscaler import AutoscalerBehavior, autoscaler_behavior
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.devices import Devices, newest_slices
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

# What a pod means for the removal of its node: it moves, is deleted with the node, or prevents the removal. Upstream:
# simulator/drainability/rules, utils/drain/drain.go, core/scaledown/pdb.

_SECOND = 1_000_000_000
_LONG_TERMINATING_AFTER = 30  # seconds for which a pod still counts after its deletion time and grace period
_KUBE_SYSTEM = "kube-system"
_MEMORY = "Memory"
_REPLICATED = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})
_LISTED = {"ReplicationController": None, "Job": None, "ReplicaSet": None, "StatefulSet": "apps", "DaemonSet": "apps"}
"""Controller kinds that the autoscaler looks up, with the group if only one counts."""
_WITH_REPLICAS = ("ReplicationController", "ReplicaSet")


class RemovalFate(StrEnum):
    MOVES = "moves"
    DAEMON_SET = "daemonset"  # it is deleted with the node
    SKIPPED = "skipped"  # a mirror pod, or one that should have terminated long ago
    COMPLETES = "completes"  # the node waits for its completion
    BLOCKS = "blocks"


class RemovalBlocker(StrEnum):
    """Why a pod prevents the removal of its node, with the autoscaler's names."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT_ANNOTATION = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"


_MENDED_BY_ANNOTATION = frozenset(RemovalBlocker) - {
    RemovalBlocker.CONTROLLER_NOT_FOUND,
    RemovalBlocker.MIN_REPLICAS_REACHED,
    RemovalBlocker.NOT_ENOUGH_PDB,  # the autoscaler would try, and the API server would refuse the eviction
}
"""The blockers that `safe-to-evict: true` on the pod overrides."""


class PodFateDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    pod: str  # `namespace/name`
    fate: RemovalFate
    blocker: RemovalBlocker | None = None
    controller: str = ""  # `Kind name`, or empty
    volumes: tuple[str, ...] = ()  # local volumes whose data would be lost
    budgets: tuple[str, ...] = ()  # PodDisruptionBudgets that allow no disruption
    replicas: int | None = None  # the controller's desired replicas, if they are too few


class PodFate(PodFateDocument, frozen=True, kw_only=True):
    row: int


class _Fates:
    """Decides about the pods of a snapshot."""

    def __init__(self, snapshot: Snapshot, flags: ScaleDownFlags, behavior: AutoscalerBehavior, now: int) -> None:
        self._snapshot = snapshot
        self._pods: PodTable = snapshot.pods
        self._flags = flags
        self._behavior = behavior
        self._now = now
        self._known_budgets: dict[tuple[int, int], list[PodDisruptionBudget]] = {}

    def of(self, row: int, *, is_safe: bool = False) -> PodFate:
        """Apply the autoscaler's rules in their order; the first that matches decides. `is_safe`: as if the pod had the
        annotation."""
        pods, spec = self._pods, self._pods.specs[row]
        written = pods.annotations[row]
        owner = controller_of(pods.owners[row])
        safe = "true" if is_safe else written.get(SAFE_TO_EVICT, "")
        if MIRROR in written or self.is_long_terminating(row):
            return self._fate(row, RemovalFate.SKIPPED)
        if self._flags.skips_custom_controllers and owner is not None:
            lost = self._lost_controller(row, owner)
            if lost is not None:
                return lost
        if self.is_of_daemon_set(row):
            return self._fate(row, RemovalFate.DAEMON_SET)
        if safe == "true" or _is_terminal(spec, pods.phases[row]):
            return self._fate(row, RemovalFate.MOVES)
        if safe == "on-completion" and self._behavior.pods_may_complete:
            return self._fate(row, RemovalFate.COMPLETES)
        return next(self._blockers(row, owner, safe), None) or self._fate(row, RemovalFate.MOVES)

    def _blockers(self, row: int, owner: OwnerReference | None, safe: str) -> Iterator[PodFate]:
        spec = self._pods.specs[row]
        is_known = owner is not None and (not self._flags.skips_custom_controllers or owner.kind in _REPLICATED)
        if not is_known:
            yield self._blocked(row, RemovalBlocker.NOT_REPLICATED)
        budgets = self._budgets_of(row)
        if self._flags.skips_system_pods and self._pods.namespaces[row] == _KUBE_SYSTEM and not budgets:
            if self._behavior.system_pods_block_for_a_time and self._is_past_timeout(row):
                yield self._fate(row, RemovalFate.MOVES)
            yield self._blocked(row, RemovalBlocker.UNMOVABLE_KUBE_SYSTEM_POD)
        if safe == "false":
            yield self._blocked(row, RemovalBlocker.NOT_SAFE_TO_EVICT_ANNOTATION)
        volumes = _local_volumes(spec, self._pods.annotations[row].get(SAFE_TO_EVICT_LOCAL_VOLUMES, ""))
        if volumes and self._flags.skips_local_storage:
            yield replace(self._blocked(row, RemovalBlocker.LOCAL_STORAGE_REQUESTED), volumes=volumes)
        spent = tuple(budget.key for budget in budgets if (budget.status.disruptions_allowed or 0) < 1)
        if spent:
            yield replace(self._blocked(row, RemovalBlocker.NOT_ENOUGH_PDB), budgets=spent)

    def _fate(self, row: int, fate: RemovalFate, blocker: RemovalBlocker | None = None) -> PodFate:
        owner = controller_of(self._pods.owners[row])
        controller = "" if owner is None else f"{owner.kind} {owner.name}"
        return PodFate(row=row, pod=self._pods.key(row), fate=fate, blocker=blocker, controller=controller)

    def _blocked(self, row: int, blocker: RemovalBlocker) -> PodFate:
        return self._fate(row, RemovalFate.BLOCKS, blocker)

    # --- conditions of the rules

    def is_of_daemon_set(self, row: int) -> bool:
        return is_of_daemon_set(self._pods.owners[row], self._pods.annotations[row])

    def is_long_terminating(self, row: int) -> bool:
        deleted = self._pods.deletion_time(row)
        if deleted is None:
            return False
        written = self._pods.specs[row].termination_grace_period_seconds
        grace_period = GRACE_PERIOD if written is None else written
        return deleted + (grace_period + _LONG_TERMINATING_AFTER) * _SECOND < self._now

    def _lost_controller(self, row: int, owner: OwnerReference) -> PodFate | None:
        """Return the result if its controller does not exist or has too few replicas. Kinds without any object in the
        snapshot are ignored."""
        kind, group = owner.kind, owner.api_version.rpartition("/")[0]
        is_other = kind not in ("ReplicationController", "DaemonSet") and self.is_of_daemon_set(row)
        if is_other or kind not in self._kinds or kind not in _LISTED or _LISTED[kind] not in (None, group):
            return None
        raw = self._snapshot.workloads.get((kind, self._pods.namespaces[row], owner.name))
        if raw is None:
            return self._blocked(row, RemovalBlocker.CONTROLLER_NOT_FOUND)
        if kind in _WITH_REPLICAS and self._flags.min_replica_count > 0:
            replicas = (json.loads(raw).get("spec") or {}).get("replicas")
            if isinstance(replicas, int) and replicas < self._flags.min_replica_count:
                return replace(self._blocked(row, RemovalBlocker.MIN_REPLICAS_REACHED), replicas=replicas)
        return None

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _, _ in self._snapshot.workloads)

    @cached_property
    def _budgets(self) -> Mapping[str, Sequence[tuple[PodDisruptionBudget, Selector]]]:
        """By namespace."""
        return compile_budgets(self._snapshot.disruption_budgets)

    def _budgets_of(self, row: int) -> list[PodDisruptionBudget]:
        """Return the budgets of a pod, computed once for all pods of a namespace with the same labels."""
        namespaces, labels = self._pods.namespaces, self._pods.labels
        key = int(namespaces.codes[row]), int(labels.codes[row])
        if key not in self._known_budgets:
            own = self._budgets.get(namespaces[row], ())
            self._known_budgets[key] = [budget for budget, selector in own if selector.matches(labels[row])]
        return self._known_budgets[key]

    def _is_past_timeout(self, row: int) -> bool:
        created = self._pods.creation_time(row)
        return created is not None and created + int(self._flags.system_pod_timeout) < self._now


def _is_terminal(spec: PodSpec, phase: str) -> bool:
    """Return whether it has finished and is not restarted."""
    if spec.restart_policy == "Never" and phase in FINISHED:
        return True
    return phase == "Failed" or (spec.restart_policy == "OnFailure" and phase == "Succeeded")


def _local_volumes(spec: PodSpec, safe: str) -> tuple[str, ...]:
    """Return volumes on the node's disk that no annotation releases."""
    given_up = frozenset(safe.split(","))
    return tuple(
        volume.name
        for volume in spec.volumes
        if (volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != _MEMORY))
        and volume.name not in given_up
    )


# The allocated fraction of a node's own devices, as cluster-autoscaler counts it. Upstream:
# simulator/dynamicresources/utils/utilization.go.

_DevicePool = tuple[str, str]  # driver and name


class UtilizationResult(Struct, frozen=True, kw_only=True):
    """The utilization of the most used resource; of GPUs alone if the node has any, or of its own devices."""

    resource: str  # of devices, the pool as `driver/pool`
    requested: int  # cpu in milli, everything else in units, without pods that do not count
    offered: int  # allocatable minus the requests of pods that do not count
    threshold: float
    is_gpu: bool = False
    counted: float | None = None  # the fraction of devices, which may not be a quotient of numbers

    @property
    def percent(self) -> int:
        return round(100 * self.share)

    @property
    def threshold_percent(self) -> int:
        return round(100 * self.threshold)

    @property
    def is_above_threshold(self) -> bool:
        return self.share > self.threshold

    @property
    def share(self) -> float:
        if self.counted is not None:
            return self.counted
        return self.requested / self.offered if self.offered else 0.0


class _NodeDevices(Struct, frozen=True, kw_only=True):
    """The devices of a cluster that a single node reaches; others do not count."""

    slices: Mapping[str, Sequence[ResourceSlice]]  # by node
    allocations: Mapping[str, list[DeviceRequestAllocationResult]]
    """What is allocated to a pod (`namespace/name`), without admin access."""

    @classmethod
    def of(cls, devices: Devices) -> _NodeDevices:
        return cls(
            slices=devices.slices_by_node,
            allocations=group_pairs(
                (f"{claim.metadata.namespace}/{user.name}", result)
                for claim in devices.claims.values()
                if claim.status.allocation is not None
                for user in claim.status.reserved_for
                if user.resource == "pods"
                for result in claim.status.allocation.devices.results
                if not result.admin_access
            ),
        )


def _device_utilization(
    slices: Iterable[ResourceSlice], allocations: Iterable[DeviceRequestAllocationResult], threshold: float
) -> UtilizationResult | None:
    """The utilization of the most used pool of a node; None if a pool is incomplete, so that it cannot be counted."""
    taken: dict[_DevicePool, set[str]] = defaultdict(set)
    for allocation in allocations:
        taken[allocation.driver, allocation.pool].add(allocation.device)
    pools = group_pairs(((each.spec.driver, each.spec.pool.name), each) for each in slices)
    most: UtilizationResult | None = None
    for (driver, name), published in pools.items():
        current = newest_slices(published)
        if len(current) != current[0].spec.pool.resource_slice_count:
            return None
        use = _pool_utilization(f"{driver}/{name}", current, taken[driver, name], threshold)
        most = use if most is None or use.share >= most.share else most
    return most


def _pool_utilization(
    name: str, slices: Sequence[ResourceSlice], taken: Collection[str], threshold: float
) -> UtilizationResult:
    every = [device for resource_slice in slices for device in resource_slice.spec.devices]
    allocated = [device for device in every if device.name in taken]
    if any(resource_slice.spec.shared_counters for resource_slice in slices):
        share = _counter_utilization(slices, every, allocated)
    else:
        share = len(allocated) / len(every) if every else 0.0
    return UtilizationResult(
        resource=name, requested=len(allocated), offered=len(every), threshold=threshold, counted=share
    )


def _counter_utilization(
    slices: Sequence[ResourceSlice], every: Sequence[Device], allocated: Sequence[Device]
) -> float:
    """A counter set represents a partitioned device: its most used counter counts, and the mean over all sets."""
    machines = {consumed.counter_set for device in every for consumed in _parts(device).consumes_counters}
    used: Counter[tuple[str, str]] = Counter()
    for device in allocated:
        for consumed in _parts(device).consumes_counters:
            used.update(
                {(consumed.counter_set, key): milli_value(counter.value) for key, counter in consumed.counters.items()}
            )
    total = 0.0
    for resource_slice in slices:
        for counters in resource_slice.spec.shared_counters:
            offered = {key: milli_value(counter.value) for key, counter in counters.counters.items()}
            shares = [used[counters.name, key] / amount for key, amount in offered.items() if amount]
            total += max(shares, default=0.0) / len(machines) if machines else 0.0
    return total


def _parts(device: Device) -> Device:
    """Return the device's fields, which v1beta1 nests one level deeper."""
    if device.basic is None:
        return device
    return Device(name=device.name, consumes_counters=device.basic.consumes_counters)


# The requested fraction of a node, as cluster-autoscaler counts it. Upstream: simulator/utilization/info.go.


class _UtilizationRule(Struct, frozen=True, kw_only=True):
    """How utilization is counted in a cluster."""

    pods: PodTable
    fates: _Fates
    flags: ScaleDownFlags
    options: RequestOptions
    gpu_label: str | None  # the cloud's GPU label
    gpu_resources: tuple[str, ...]
    devices: _NodeDevices | None  # None if the autoscaler does not count them

    def of(self, node: Node, rows: Collection[int]) -> UtilizationResult | None:
        """`rows` are the pods on the node. None if the node has no allocatable cpu or memory, or an incomplete device
        pool: then the autoscaler keeps the node."""
        requests = tuple(self._requests(rows))
        gpu = next(
            (name for name in self.gpu_resources if resource_amount(name, node.status.allocatable.get(name))), None
        )
        if gpu is not None or self.gpu_label in node.metadata.labels:
            resource = gpu or self.gpu_resources[0]
            threshold = self.flags.gpu_threshold
            utilization = _resource_utilization(node, resource, requests, threshold, is_gpu=True)
            idle = UtilizationResult(resource=resource, requested=0, offered=0, threshold=threshold, is_gpu=True)
            return utilization or idle  # missing GPUs do not keep the node
        if self.devices is not None and (slices := self.devices.slices.get(node.name)):
            allocations = (self.devices.allocations.get(self.pods.key(row), ()) for row in rows)
            return _device_utilization(slices, chain.from_iterable(allocations), self.flags.threshold)
        cpu, memory = (
            _resource_utilization(node, resource, requests, self.flags.threshold) for resource in (CPU, MEMORY)
        )
        if cpu is None or memory is None:
            return None
        return cpu if cpu.share > memory.share else memory

    def _requests(self, rows: Iterable[int]) -> Iterator[tuple[Mapping[str, int], bool]]:
        """Yield a pod's requests, and whether they are subtracted from allocatable instead of counting as requested."""
        for row in rows:
            is_ignored = (self.flags.ignores_daemon_sets and self.fates.is_of_daemon_set(row)) or (
                self.flags.ignores_mirror_pods and MIRROR in self.pods.annotations[row]
            )
            if is_ignored or not self.fates.is_long_terminating(row):
                yield pod_request(self.pods.specs[row], self.pods.statuses[row], self.options).amounts, is_ignored


def _resource_utilization(
    node: Node,
    resource: str,
    requests: Iterable[tuple[Mapping[str, int], bool]],
    threshold: float,
    *,
    is_gpu: bool = False,
) -> UtilizationResult | None:
    """Return None if the node has none of the resource."""
    allocatable = resource_amount(resource, node.status.allocatable.get(resource))
    if not allocatable:
        return None
    sums = {True: 0, False: 0}
    for amounts, is_ignored in requests:
        sums[is_ignored] += amounts.get(resource, 0)
    offered = allocatable - sums[True]
    return UtilizationResult(
        resource=resource, requested=sums[False], offered=offered, threshold=threshold, is_gpu=is_gpu
    )


# Whether cluster-autoscaler removes a node, and every reason that prevents it. The autoscaler stops at the first
# reason; all are reported here, in its order. Upstream: core/scaledown/planner, core/scaledown/eligibility,
# core/scaledown/unneeded, simulator/cluster.go, processors/nodes.

_DELETION_TAKES = 5 * 60 * _SECOND  # after this time, a node that is marked for deletion is evaluated again


class Unremovable(StrEnum):
    """Why a node stays, with the autoscaler's names, in its order."""

    SCALE_DOWN_DISABLED = "ScaleDownDisabled"  # the flag disables scale-down for all nodes
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"  # too many nodes are unready, so that it does nothing
    NOT_AUTOSCALED = "NotAutoscaled"
    NODE_GROUP_MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    STARTING = "Starting"  # it counts as an upcoming node and is not evaluated
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    UNEXPECTED_ERROR = "UnexpectedError"  # it has no allocatable cpu or memory, or its devices cannot be counted
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    BLOCKED_BY_POD = "BlockedByPod"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"


_ORDER = (*Unremovable,)
_BEFORE_PLACES = frozenset((item,) for item in _ORDER[: _ORDER.index(Unremovable.NO_PLACE_TO_MOVE_PODS)])


class StrandedPod(Document, frozen=True):
    """A pod that fits no other node after the pods before it have moved."""

    pod: str
    refusals: Mapping[str, int]  # the reasons of other nodes with their numbers


class Minimum(Document, frozen=True):
    """A resource below its minimum, with the remaining and the required amount."""

    resource: str
    left: int
    least: int


class Removal(Struct, frozen=True, kw_only=True):
    """The result of scale-down for one node."""

    node: str
    group: NodeGroupStatus | None
    reasons: tuple[Unremovable, ...]  # empty if the autoscaler removes the node; it reports the first reason
    utilization: UtilizationResult | None
    pods: tuple[PodFate, ...]
    places: Mapping[str, str]  # moving pods to their new nodes
    stranded: StrandedPod | None
    is_ready: bool
    unneeded_for: Duration | None  # how long it has had the autoscaler's taint; None without it
    needed: Duration  # how long it has to be unneeded or unready
    minimum: Minimum | None
    pending: tuple[str, ...]
    """The pending pods among `pods`: those that fit the node, where the autoscaler places them first."""
    leaving: int = 0  # other nodes of the group that are being deleted and that its target still counts

    @property
    def is_removable(self) -> bool:
        return not self.reasons

    def of(self, fate: RemovalFate) -> tuple[PodFate, ...]:
        return tuple(pod for pod in self.pods if pod.fate is fate)


def _is_disabled(node: Node) -> bool:
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"


class ScaleDown:
    """Evaluates the nodes of one cluster."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        self.autoscaler = autoscaler
        self._snapshot = autoscaler.snapshot
        self._behavior = autoscaler_behavior(autoscaler.release.version)
        self._loop = autoscaler.loop()
        self.flags = ScaleDownFlags.read(autoscaler.scale_down_flags)
        self._now = self._loop.state.now
        self._fates = _Fates(self._snapshot, self.flags, self._behavior, self._now)
        self._counts_devices = self._behavior.devices_count or self.flags.counts_devices

    @classmethod
    def of(cls, snapshot: Snapshot, options: AutoscalerOptions, scheduler: Scheduler) -> ScaleDown:
        """Raises `UndecidableError` for a cluster without the status of an autoscaler."""
        autoscaler = Autoscaler.of(snapshot, options, scheduler)
        if autoscaler is None:
            nodes = snapshot.cluster.nodes
            if nodes and all(NODE_POOL in node.metadata.labels for node in nodes):
                what = "all nodes are Karpenter's, and the snapshot lacks their NodeClaims"
                raise UndecidableError(f"{what} (kubectl get nodeclaims -o yaml)")
            names = [node.name for node in snapshot.cluster.nodes if _is_disabled(node)]
            raise UndecidableError(
                f"the snapshot has no ConfigMap {AUTOSCALER_STATUS}: cluster-autoscaler does not run, or "
                "does not write it (kubectl get configmap -n kube-system shows it)"
                + (f"; annotation {SCALE_DOWN_DISABLED}=true keeps {', '.join(names[:3])} in any case" if names else "")
            )
        return cls(autoscaler)

    @cached_property
    def _utilization(self) -> _UtilizationRule:
        return _UtilizationRule(
            pods=self._snapshot.pods,
            fates=self._fates,
            flags=self.flags,
            options=request_options(self.autoscaler.release),
            gpu_label=gpu_label(self.autoscaler.flags.cloud_provider),
            gpu_resources=self._behavior.gpu_resources,
            devices=_NodeDevices.of(self._sandbox[0].snapshot.devices) if self._counts_devices else None,
        )

    @cached_property
    def _sandbox(self) -> tuple[Sandbox, Mapping[ClusterRow, ClusterRow]]:
        return self._loop.place_on_free_nodes()

    @cached_property
    def _evacuation(self) -> Evacuation:
        sandbox, rows = self._sandbox
        return Evacuation(sandbox, [*rows.values()], self._empty)

    def _placed_on(self, row: ClusterRow, own: Collection[int]) -> list[int]:
        """Return the pending pods that the autoscaler places on a node, beside its `own` pods."""
        sandbox, rows = self._sandbox
        placed = sandbox.snapshot.pods.on_node(rows[row]).tolist() if row in rows else []
        return [pod for pod in placed if pod not in own]

    @cached_property
    def _is_healthy(self) -> bool:
        return cluster_is_healthy(self._loop.state.states, self._loop.state.flags)

    def evaluate(self, name: str, *, safe: frozenset[int] = frozenset(), is_one_of_many: bool = False) -> Removal:
        """Evaluate a node; the pods in the rows `safe` count as annotated. With `is_one_of_many`, new nodes for its
        pods are searched only if nothing else keeps the node, as the autoscaler does."""
        row = self._snapshot.cluster.index[name]
        state = self._loop.state.states[row]
        node = self._snapshot.cluster.nodes[row]
        own = self._loop.state.rows_on(row)
        placed = self._placed_on(row, own)
        rows = [*own, *placed]
        pods = tuple(self._fates.of(pod, is_safe=pod in safe) for pod in rows)
        removal = Removal(
            node=name,
            group=None if state.group is None else self.autoscaler.status.group(state.group),
            reasons=(),
            utilization=self._utilization.of(node, rows),
            pods=pods,
            places={},
            stranded=None,
            is_ready=state.is_ready,
            unneeded_for=self._unneeded_for(node),
            needed=self.flags.unneeded_time if state.is_ready else self.flags.unready_time,
            minimum=self._minimum(node),
            pending=tuple(map(self._snapshot.pods.key, placed)),
            leaving=max(self._leaving.get(state.group or "", 0) - self._is_being_deleted(node), 0),
        )
        reasons = tuple(self._reasons(removal, node, state))
        if not is_one_of_many or reasons[:1] not in _BEFORE_PLACES:
            places, stranded = self._move_pods(row, removal.of(RemovalFate.MOVES))
            removal = replace(removal, places=places, stranded=stranded)
            reasons = tuple(self._reasons(removal, node, state))
        return replace(removal, reasons=reasons)

    def safe_to_evict(self, removal: Removal) -> Removal | None:
        """Evaluate the node with every pod annotated for which that helps; None if nothing changes."""
        rows = frozenset(fate.row for fate in removal.of(RemovalFate.BLOCKS) if fate.blocker in _MENDED_BY_ANNOTATION)
        return self.evaluate(removal.node, safe=rows) if rows else None

    def _reasons(self, removal: Removal, node: Node, state: NodeState) -> Iterator[Unremovable]:
        if not self.flags.is_enabled:
            yield Unremovable.SCALE_DOWN_DISABLED
        if not self._is_healthy:
            yield Unremovable.CLUSTER_UNHEALTHY
        if removal.group is None:
            yield Unremovable.NOT_AUTOSCALED
        elif removal.group.target - removal.leaving <= removal.group.min_size:
            yield Unremovable.NODE_GROUP_MIN_SIZE_REACHED
        if self._is_upcoming(state):
            yield Unremovable.STARTING
        if self._is_being_deleted(node):
            yield Unremovable.CURRENTLY_BEING_DELETED
        if _is_disabled(node):
            yield Unremovable.SCALE_DOWN_DISABLED_ANNOTATION
        if removal.utilization is None:
            yield Unremovable.UNEXPECTED_ERROR
        if not state.is_ready and not self.flags.unready_nodes_too:
            yield Unremovable.SCALE_DOWN_UNREADY_DISABLED
        if removal.utilization is not None and self._is_used(removal.utilization):
            yield Unremovable.NOT_UNDERUTILIZED
        if removal.of(RemovalFate.BLOCKS):
            yield Unremovable.BLOCKED_BY_POD
        if removal.stranded is not None:
            yield Unremovable.NO_PLACE_TO_MOVE_PODS
        if removal.unneeded_for is not None and removal.needed > 0 and removal.unneeded_for <= removal.needed:
            is_ready = removal.is_ready
            yield Unremovable.NOT_UNNEEDED_LONG_ENOUGH if is_ready else Unremovable.NOT_UNREADY_LONG_ENOUGH
        if removal.minimum is not None:
            yield Unremovable.MINIMAL_RESOURCE_LIMIT_EXCEEDED
        if removal.of(RemovalFate.COMPLETES):
            yield Unremovable.BLOCKED_BY_ON_COMPLETION_POD

    def _is_used(self, utilization: UtilizationResult) -> bool:
        is_at_threshold = utilization.share == utilization.threshold
        return utilization.is_above_threshold or (is_at_threshold and not self._behavior.nodes_at_threshold_go)

    def _is_upcoming(self, state: NodeState) -> bool:
        group = self._loop.state.groups_by_name.get(state.group or "")
        return group is not None and group.upcoming > 0 and not state.has_started

    @cached_property
    def _leaving(self) -> Mapping[str, int]:
        """Groups to their nodes that are being deleted and that the target still counts: it goes down with the call to
        the cloud, after the drain. Upstream: removableNodes in core/scaledown/unneeded/nodes.go."""
        nodes = [(state.group, self._snapshot.cluster.nodes[state.row]) for state in self._loop.state.states]
        there = Counter(group for group, _ in nodes if group is not None)
        deleted = Counter(group for group, node in nodes if group is not None and self._is_being_deleted(node))
        groups = (group for name in deleted if (group := self.autoscaler.status.group(name)) is not None)
        return {group.name: deleted[group.name] - max(there[group.name] - group.target, 0) for group in groups}

    def _is_being_deleted(self, node: Node) -> bool:
        since = _taint_time(node, TO_BE_DELETED)
        return since is not None and self._now - since < _DELETION_TAKES

    def _unneeded_for(self, node: Node) -> Duration | None:
        since = _taint_time(node, DELETION_CANDIDATE)
        return None if since is None else Duration(max(self._now - since, 0))

    def _minimum(self, node: Node) -> Minimum | None:
        """Return the first resource of the whole cluster that would fall below its minimum."""
        cluster = self._snapshot.cluster
        for resource, least in self.flags.minimums.items():
            if resource not in cluster.resources.names:
                continue
            column = cluster.resources.names.index(resource)
            scale = 1000 if resource == "cpu" else 1
            total = int(cluster.allocatable[: cluster.count, column].sum()) // scale
            left = total - int(cluster.allocatable[cluster.index[node.name], column]) // scale
            if left < least:
                return Minimum(resource, left, least)
        return None

    # --- new nodes of pods

    def _move_pods(self, row: ClusterRow, moving: Sequence[PodFate]) -> tuple[Mapping[str, str], StrandedPod | None]:
        """Move the pods, one after the other, to the first other node that fits. Return their nodes and the first pod
        that fits nowhere."""
        if not moving:
            return {}, None
        names, refusals = self._evacuation.places([fate.row for fate in moving], self._sandbox[1].get(row))
        stranded = None if refusals is None else StrandedPod(pod=moving[len(names)].pod, refusals=refusals)
        return {fate.pod: name for fate, name in zip(moving, names, strict=False)}, stranded

    def _empty(self, sandbox: MovingSandbox, row: ClusterRow) -> None:
        """Make the node as during its drain: without pods and cordoned; it counts as a domain only if the autoscaler
        counts it."""
        pods = sandbox.snapshot.pods.on_node(row)
        if self._counts_devices:
            sandbox.release(pods)
        sandbox.leave(pods)
        node = sandbox.node(row)
        closed = Taint(key=TO_BE_DELETED, value=str(self._now // _SECOND), effect="NoSchedule")
        labels = node.metadata.labels if self._behavior.removed_nodes_stay_domains else {}
        metadata = replace(node.metadata, labels=labels)
        spec = replace(node.spec, taints=(*node.spec.taints, closed))
        sandbox.replace_node(row, replace(node, metadata=metadata, spec=spec))


def _taint_time(node: Node, key: str) -> int | None:
    """Return when the node got the autoscaler's taint, in nanoseconds since 1970."""
    written = next((taint.value for taint in node.spec.taints if taint.key == key), "")
    seconds = parse_int64(written)
    return None if seconds is None else seconds * _SECOND


# The ScaleDown document.


class GroupSize(Document, frozen=True):
    name: str
    target: int
    min_size: int
    max_size: int


class UtilizationDocument(Document, frozen=True):
    resource: str
    requested: int
    offered: int
    percent: int
    threshold_percent: int


class RemovalDocument(Document, frozen=True, omit_defaults=True):
    is_removable: bool = field(name="removable")
    reasons: tuple[Unremovable, ...]
    group: GroupSize | None
    utilization: UtilizationDocument | None
    pods: tuple[PodFateDocument, ...]
    places: Mapping[str, str]
    stranded: StrandedPod | None
    unneeded_seconds: int | None
    needed_seconds: int
    minimum: Minimum | None = None
    pending: tuple[str, ...] = ()


class ScaleDownDocument(Document, frozen=True):
    autoscaler: Literal["cluster-autoscaler", "karpenter"]
    kubernetes_version: str
    flags_are_known: bool
    groups_told_by: tuple[str, ...]
    nodes: Mapping[str, RemovalDocument]


def scale_down_document(autoscaler: Autoscaler | None, removals: Sequence[Removal], release: Release) -> Json:
    """Build the document; without an autoscaler, none of the nodes belongs to one."""
    return document(
        "ScaleDown",
        ScaleDownDocument,
        autoscaler="cluster-autoscaler" if autoscaler is not None else "karpenter",
        kubernetes_version=release.version,
        flags_are_known=autoscaler is not None and autoscaler.flags_are_known,
        groups_told_by=() if autoscaler is None else autoscaler.membership.sources,
        nodes={removal.node: _removal(removal) for removal in removals},
    )


def _removal(removal: Removal) -> RemovalDocument:
    return part_of(
        RemovalDocument,
        removal,
        unneeded_seconds=None if removal.unneeded_for is None else removal.unneeded_for // _SECOND,
        needed_seconds=removal.needed // _SECOND,
    )
