"""The NodeVolumeLimits plugin: a pod's volumes and the limit of each node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from msgspec import Struct

from kschedx.findings import AttachedVolume, DriverNotInstalled, Finding, PluginMessage, VolumeLimitExceeded
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Texts,
    Touch,
)
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, unschedulable, worded_error
from kschedx.kube.storage import PREFIX, CSINode, PersistentVolumeClaim, claim_name, csi_limit_key
from kschedx.kube.types import InTreeVolumeSources, Node, ObjectMeta, Pod, Volume
from kschedx.patterns import lazy_pattern
from kschedx.plugins.node_volume_limits.attachments import (
    UNBOUND,
    Attachable,
    AttachedVolumes,
    VolumeError,
    VolumesOnNodes,
    attachable_volumes,
    claim_of,
    is_counted,
)
from kschedx.plugins.volume_facts import migrated_on, migrated_plugins
from kschedx.snapshot.columns import BoolArray, Column, IntArray, TableRow, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable

_REASON = "node(s) exceed max volume count"
_NOT_INSTALLED = "{subject} CSI driver is not installed on the node"

_NO_LIMIT = -1


class _Count(Struct, frozen=True, kw_only=True):
    """One driver's volumes on the nodes of a table; arrays are (node,)."""

    driver: str
    attached: IntArray
    wanted: IntArray
    limit: IntArray

    @property
    def is_exceeded(self) -> BoolArray:
        is_limited: BoolArray = (self.limit != _NO_LIMIT) & (self.wanted > 0)
        return is_limited & (self.attached + self.wanted > self.limit)


def _allocatable_limit(nodes: NodeTable, key: str, absent: int) -> IntArray:
    """(node,) the allocatable amount for a key; `absent` if the node does not name it."""
    column = nodes.resources.index.get(key)
    if column is None:
        return np.full(len(nodes), absent, dtype=np.int64)
    return np.where(nodes.offers[:, column], nodes.allocatable[:, column], absent)


def _limits_any_volume(nodes: NodeTable) -> BoolArray:
    """(node,) whether the node's allocatable limits any volumes."""
    limited = np.zeros(len(nodes), dtype=np.bool_)
    for name, column in nodes.resources.index.items():
        if name.startswith(PREFIX):
            limited |= nodes.offers[:, column]
    return limited


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Limits the volumes of a CSI driver to the limit in the node's CSINode. A volume counts once per node."""

    name = "NodeVolumeLimits"
    texts: ClassVar[Texts] = {"volume-limit-exceeded": (_REASON,), "driver-not-installed": (_NOT_INSTALLED,)}

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        return Touch.NODE if pod.spec.mounts_storage else Touch.NOTHING

    def distinguishes_by(self, pod: Pod) -> Hashable:
        wanted = tuple(self._wanted_volumes(pod, migrated) for migrated in self._migrated_plugins.values)
        if any(isinstance(volumes, Status) for volumes in wanted):
            return pod.key
        attached, pods = self._attached_volumes, self.handle.snapshot.pods
        nominated = {
            attachable.name
            for row in pods.nominated
            if pods.specs[row].mounts_storage
            for migrated in self._migrated_plugins.values
            for attachable in self._attachable(pods[row], migrated)
        }

        def name(attachable: Attachable) -> str:
            """An empty name for a volume that no node has or will have: it is equivalent to any other of its driver."""
            is_held = attachable.name in nominated or attached.is_held(attachable, pods)
            return attachable.name if is_held or attached.number(attachable) in self._attachment_numbers else ""

        return tuple(
            tuple((volume.driver, volume.plugin, name(volume)) for volume in volumes)
            for volumes in wanted
            if not isinstance(volumes, Status)
        )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult() if any(map(is_counted, pod.spec.volumes)) else PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        answers = _Answers(len(nodes))
        for code, migrated in enumerate(self._migrated_plugins.values):
            mask = self._migrated_plugins.codes[nodes.rows] == code
            if not mask.any():
                continue
            volumes = self._wanted_volumes(pod, migrated)
            if isinstance(volumes, Status):
                answers.reject(mask, volumes)
                continue
            self._reject_without_driver(answers, mask, volumes, nodes)
            limited = mask & self._has_limits[nodes.rows]
            if volumes and limited.any():
                self._reject_broken_pods(answers, limited, nodes)
                self._reject_excess(answers, limited, volumes, nodes)
        return answers.verdicts()

    # --- the cluster's volumes and limits

    @cached_property
    def _csi_nodes(self) -> Sequence[CSINode | None]:
        """(node of the cluster,)"""
        csi_nodes = self.handle.snapshot.storage.csi_nodes
        return [csi_nodes.get(name) for name in self.handle.nodes.cluster.names]

    @cached_property
    def _drivers_on_nodes(self) -> Column[tuple[str, ...]]:
        """(node of the cluster,) the installed drivers."""
        return Column.of(map(_drivers, self._csi_nodes))

    @cached_property
    def _ever_migrated(self) -> frozenset[str]:
        return migrated_plugins(self.handle.release)

    @cached_property
    def _migrated_plugins(self) -> Column[frozenset[str]]:
        """(node of the cluster,) the in-tree plugins whose volumes count as their CSI drivers'."""
        return Column.of(migrated_on(self._csi_nodes, self.handle.release))

    def _where_migrated(self, plugin: str) -> BoolArray:
        """(node of the cluster,) whether an in-tree plugin's volumes count."""
        return self._migrated_plugins.where(lambda migrated: plugin in migrated)

    @cached_property
    def _has_limits(self) -> BoolArray:
        limited = np.array([bool(csi_node and csi_node.limits) for csi_node in self._csi_nodes], dtype=np.bool_)
        if self.handle.release.behavior.allocatable_limits_volumes:
            limited |= _limits_any_volume(self.handle.nodes)
        return limited

    @cached_property
    def _limits(self) -> dict[str, IntArray]:
        """Driver to (node of the cluster,) its limit; filled on first use of a driver."""
        return {}

    def _limit(self, driver: str) -> IntArray:
        if driver not in self._limits:
            limits = [csi_node.limits.get(driver, _NO_LIMIT) if csi_node else _NO_LIMIT for csi_node in self._csi_nodes]
            self._limits[driver] = np.array(limits, dtype=np.int64)
            if self.handle.release.behavior.allocatable_limits_volumes:
                limit_of_csi_node = self._limits[driver]
                of_node = _allocatable_limit(self.handle.nodes, csi_limit_key(driver), _NO_LIMIT)
                self._limits[driver] = np.where(limit_of_csi_node == _NO_LIMIT, of_node, limit_of_csi_node)
        return self._limits[driver]

    @property
    def _attached_volumes(self) -> AttachedVolumes:
        return AttachedVolumes.of(self.handle.snapshot.storage, self.handle.snapshot.pods, self._ever_migrated)

    @cached_property
    def _attachments(self) -> VolumesOnNodes:
        counted = self.handle.release.behavior.attachments_count
        return self._attached_volumes.attached_volumes(self.handle.snapshot.cluster.index if counted else {})

    @cached_property
    def _attachment_numbers(self) -> frozenset[int]:
        return frozenset(self._attachments.volumes.tolist())

    # --- the pod against the nodes

    def _wanted_volumes(self, pod: Pod, migrated: frozenset[str]) -> tuple[Attachable, ...] | Status:
        """Return the pod's distinct volumes, or the status that rejects all nodes with this migration."""
        storage = self.handle.snapshot.storage
        try:
            mounted = list(attachable_volumes(pod.metadata, pod.spec.volumes, storage, migrated=migrated, is_new=True))
        except VolumeError as wrong:
            return wrong.status(self.handle.release)
        return tuple({volume.name: volume for volume in mounted}.values())

    def _attachable(self, pod: Pod, migrated: frozenset[str]) -> tuple[Attachable, ...]:
        """Return the pod's volumes, or none if they cannot be counted."""
        attachable = self._wanted_volumes(pod, migrated)
        return () if isinstance(attachable, Status) else attachable

    def _reject_without_driver(
        self, answers: _Answers, mask: BoolArray, volumes: Sequence[Attachable], nodes: NodeTable
    ) -> None:
        """Reject nodes without a driver whose CSIDriver prevents scheduling there."""
        if not self.handle.release.enabled("VolumeLimitScaling"):
            return
        for driver in dict.fromkeys(volume.driver for volume in volumes):
            registered = self.handle.snapshot.storage.csi_drivers.get(driver)
            if registered is None:
                continue
            asks = registered.spec.prevent_pod_scheduling_if_missing
            if self.handle.release.behavior.drivers_ask_to_be_installed and not asks:
                continue
            self._reject_without(driver, answers, mask, nodes)

    def _reject_without(self, driver: str, answers: _Answers, mask: BoolArray, nodes: NodeTable) -> None:
        lacking = self._drivers_on_nodes.where(lambda drivers: driver not in drivers)

        def explain(row: TableRow) -> tuple[Finding, ...]:
            return (DriverNotInstalled(driver=driver, installed=self._drivers_on_nodes[nodes.cluster_row(row)]),)

        answers.reject(mask & lacking[nodes.rows], unschedulable(_NOT_INSTALLED.format(subject=driver)), explain)

    def _reject_broken_pods(self, answers: _Answers, limited: BoolArray, nodes: NodeTable) -> None:
        """Fail nodes with a limit and a running pod whose volumes cannot be counted."""
        for plugin in dict.fromkeys(error.plugin for error in self._attached_volumes.errors.values()):
            errors = {pod: error for pod, error in self._attached_volumes.errors.items() if error.plugin == plugin}
            broken = np.zeros(len(nodes.pods), dtype=np.bool_)
            broken[list(errors)] = True
            counts = self._where_migrated(plugin)[nodes.rows] if plugin else np.ones(len(nodes), dtype=np.bool_)
            for row in each_row(rows_where((nodes.count_where(broken) > 0) & limited & counts)):
                pod = next(int(pod) for pod in nodes.pods_on(row) if broken[pod])
                answers.reject(np.arange(len(nodes)) == row, worded_error(str(errors[pod])))

    def _reject_excess(
        self, answers: _Answers, limited: BoolArray, volumes: Sequence[Attachable], nodes: NodeTable
    ) -> None:
        attached = self._attached_volumes
        by_pods = attached.volumes_of_pods(nodes, self._where_migrated)
        node_count = len(nodes.cluster.nodes)
        missing = {volume: np.ones(node_count, dtype=np.bool_) for volume in volumes}
        for volume, mask in missing.items():
            mask[by_pods.nodes_with(attached.number(volume))] = False
        counts = tuple(
            _Count(
                driver=driver,
                attached=attached.count(driver, (by_pods, self._attachments), node_count)[nodes.rows],
                wanted=sum(
                    (mask[nodes.rows].astype(np.int64) for volume, mask in missing.items() if volume.driver == driver),
                    start=np.zeros(len(nodes), dtype=np.int64),
                ),
                limit=self._limit(driver)[nodes.rows],
            )
            for driver in dict.fromkeys(volume.driver for volume in volumes)
        )

        def explain(row: TableRow) -> tuple[Finding, ...]:
            place = nodes.cluster_row(row)
            return tuple(
                VolumeLimitExceeded(
                    driver=count.driver,
                    attached=int(count.attached[row]),
                    limit=int(count.limit[row]),
                    volumes=tuple(
                        volume.title
                        for volume, mask in missing.items()
                        if volume.driver == count.driver and mask[place]
                    ),
                    holders=tuple(
                        AttachedVolume(volume=volume.title, pods=pods)
                        for volume, pods in attached.on_node(
                            count.driver, nodes.pods_on(row), self._attachments.volumes_on(place)
                        )
                    ),
                )
                for count in counts
                if count.is_exceeded[row]
            )

        exceeded = np.logical_or.reduce([count.is_exceeded for count in counts])
        answers.reject(limited & exceeded, unschedulable(_REASON), explain)


class _Answers:
    """The first status that was set for each node."""

    def __init__(self, count: int) -> None:
        self._case = np.zeros(count, dtype=np.int64)
        self._statuses = [SUCCESS]
        self._explain: list[Callable[[TableRow], tuple[Finding, ...]]] = [lambda _: ()]

    def reject(
        self, mask: BoolArray, status: Status, explain: Callable[[TableRow], tuple[Finding, ...]] | None = None
    ) -> None:
        self._case[mask & (self._case == 0)] = len(self._statuses)
        self._statuses.append(status)
        self._explain.append(explain or (lambda _: status.findings))

    def verdicts(self) -> Verdicts:
        return Verdicts(
            codes=np.array([status.code for status in self._statuses], dtype=np.int64)[self._case],
            reasons=Column(self._case, [status.reasons for status in self._statuses]),
            explain=lambda row: self._explain[int(self._case[row])](row),
        )


def _drivers(csi_node: CSINode | None) -> tuple[str, ...]:
    return tuple(driver.name for driver in csi_node.spec.drivers) if csi_node else ()


# EBSLimits, GCEPDLimits, AzureDiskLimits, and CinderLimits: limits of volumes without a CSI driver.
# They are in the default profile until 1.30; a configuration may name them until then. Upstream:
# pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go.

_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
NITRO = lazy_pattern(r"^[cmr]5.*|t3|z1d")

_Disks = Mapping[str, str]  # identifiers of volumes to their names on screens


class _InTreeLimits(PreFilterPlugin, FilterPlugin):
    """Limits the volumes of one in-tree plugin on nodes whose CSINode does not migrate it."""

    plugin: ClassVar[str]  # as in storage classes
    identifier: ClassVar[tuple[str, str]]
    """The fields of `InTreeVolumeSources` and of the plugin's source that identify a volume."""
    limit_key: ClassVar[str]  # the allocatable resource that may set a node's limit
    limit: ClassVar[int]  # the limit of a node whose allocatable has none

    def disk(self, sources: InTreeVolumeSources) -> str | None:
        """Return the volume's identifier, or None for another plugin's volume."""
        name, identifier = self.identifier
        source = getattr(sources, name)
        return None if source is None else str(getattr(source, identifier))

    def default_limit(self, node: Node) -> int:
        return self.limit

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        return Touch.NODE if pod.spec.mounts_storage else Touch.NOTHING

    def distinguishes_by(self, pod: Pod) -> Hashable:
        try:
            return tuple(self._disks(pod.metadata, pod.spec.volumes, is_new=True))
        except VolumeError:
            return pod.key

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult() if any(map(self._may_count, pod.spec.volumes)) else PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        try:
            wanted = self._disks(pod.metadata, pod.spec.volumes, is_new=True)
        except VolumeError as wrong:
            return Verdicts.everywhere(len(nodes), wrong.status(self.handle.release))
        attaching = ~self._is_migrated[nodes.rows] if wanted else np.zeros(len(nodes), dtype=np.bool_)
        limits = _allocatable_limit(nodes, self.limit_key, _NO_LIMIT)
        exceeded = np.zeros(len(nodes), dtype=np.bool_)
        failed: dict[TableRow, str] = {}
        for row in each_row(rows_where(attaching)):
            if limits[row] == _NO_LIMIT:
                limits[row] = self.default_limit(nodes.node(row))
            try:
                exceeded[row] = len(self._attached_disks(nodes, row).keys() | wanted.keys()) > limits[row]
            except VolumeError as wrong:
                failed[row] = str(wrong)

        def explain(row: TableRow) -> tuple[Finding, ...]:
            if row in failed:
                return (PluginMessage(text=failed[row]),)
            return (self._limit_finding(nodes, row, wanted, int(limits[row])),)

        cases = [(np.arange(len(nodes)) == row, Code.ERROR, text) for row, text in failed.items()]
        return Verdicts.first_of(*cases, (exceeded, Code.UNSCHEDULABLE, _REASON), explain=explain)

    def _may_count(self, volume: Volume) -> bool:
        has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
        return has_claim or self.disk(volume) is not None

    # --- a pod's volumes

    def _disks(self, pod: ObjectMeta, volumes: Iterable[Volume], *, is_new: bool) -> _Disks:
        """Return the volumes of a pod that count. Raises `VolumeError`."""
        disks: dict[str, str] = {}
        for volume in volumes:
            inline = self.disk(volume)
            if inline is not None:
                disks[inline] = inline
                continue
            name = claim_name(pod.name, volume)
            if name is None:
                continue
            claim = claim_of(pod, volume, name, self.handle.snapshot.storage, is_new=is_new)
            disk = self._claim_volume(claim) if claim is not None else None
            if claim is not None and disk is not None:
                disks[disk] = claim.key
        return disks

    def _claim_volume(self, claim: PersistentVolumeClaim) -> str | None:
        """The claim's volume. A volume that does not exist counts if its class would provision it with the plugin."""
        storage = self.handle.snapshot.storage
        volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.disk(volume.spec)
        storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
        made_by_plugin = storage_class is not None and storage_class.provisioner == self.plugin
        return f"{UNBOUND}-{claim.key}" if made_by_plugin else None

    # --- the nodes

    @cached_property
    def _is_migrated(self) -> BoolArray:
        """(node of the cluster,) whether NodeVolumeLimits counts the plugin's volumes."""
        csi_nodes = (self.handle.snapshot.storage.csi_nodes.get(name) for name in self.handle.nodes.cluster.names)
        migrated = migrated_on(csi_nodes, self.handle.release)
        return np.fromiter((self.plugin in plugins for plugins in migrated), dtype=np.bool_)

    @cached_property
    def _concerned_pods(self) -> BoolArray:
        """(pod,) whether the pod may have a volume that counts."""
        return self.handle.snapshot.pods.specs.where(lambda spec: any(map(self._may_count, spec.volumes)))

    def _attached_disks(self, nodes: NodeTable, row: TableRow) -> _Disks:
        """Return the volumes of the pods on a node. Raises `VolumeError`."""
        return {disk: title for pod in self._pods(nodes, row) for disk, title in self._pod_disks(pod).items()}

    def _pods(self, nodes: NodeTable, row: TableRow) -> IntArray:
        pods = nodes.pods_on(row)
        return pods[self._concerned_pods[pods]]

    def _pod_disks(self, row: int) -> _Disks:
        pods = self.handle.snapshot.pods
        metadata = ObjectMeta(name=pods.names[row], namespace=pods.namespaces[row], uid=pods.uids[row])
        return self._disks(metadata, pods.specs[row].volumes, is_new=False)

    def _limit_finding(self, nodes: NodeTable, row: TableRow, wanted: _Disks, limit: int) -> VolumeLimitExceeded:
        attached = self._attached_disks(nodes, row)
        holders: dict[str, list[str]] = {disk: [] for disk in attached}
        for pod in self._pods(nodes, row):
            for disk in self._pod_disks(int(pod)):
                holders[disk].append(nodes.pods.key(int(pod)))
        return VolumeLimitExceeded(
            driver=self.plugin,
            attached=len(attached),
            limit=limit,
            volumes=tuple(title for disk, title in wanted.items() if disk not in attached),
            holders=tuple(AttachedVolume(volume=attached[disk], pods=tuple(pods)) for disk, pods in holders.items()),
        )


class EBSLimits(_InTreeLimits):
    name = "EBSLimits"
    plugin = "kubernetes.io/aws-ebs"
    identifier = ("aws_elastic_block_store", "volume_id")
    limit_key = "attachable-volumes-aws-ebs"

    def default_limit(self, node: Node) -> int:
        labels = node.metadata.labels
        kind = next((labels[key] for key in _INSTANCE_TYPES if key in labels), "")
        return 25 if NITRO.search(kind) else 39


class GCEPDLimits(_InTreeLimits):
    name = "GCEPDLimits"
    plugin = "kubernetes.io/gce-pd"
    identifier = ("gce_persistent_disk", "pd_name")
    limit_key = "attachable-volumes-gce-pd"
    limit = 16


class AzureDiskLimits(_InTreeLimits):
    name = "AzureDiskLimits"
    plugin = "kubernetes.io/azure-disk"
    identifier = ("azure_disk", "disk_name")
    limit_key = "attachable-volumes-azure-disk"
    limit = 16


class CinderLimits(_InTreeLimits):
    name = "CinderLimits"
    plugin = "kubernetes.io/cinder"
    identifier = ("cinder", "volume_id")
    limit_key = "attachable-volumes-cinder"
    limit = 256
