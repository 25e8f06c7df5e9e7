"""The NodeVolumeLimits plugin: a pod's volumes and the limit of each node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from msgspec import Struct

from kschedx.findings import (
    AttachedVolume,
    DriverNotInstalled,
    Finding,
    VolumeLimitExceeded,
)
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Texts,
    Touch,
)
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, worded_error
from kschedx.kube.storage import CSINode, csi_limit_key
from kschedx.kube.types import Pod
from kschedx.plugins.node_volume_limits.attached import (
    Attachable,
    Attached,
    AttachedVolumes,
    VolumeError,
    allocatable_limit,
    attachable_volumes,
    is_counted,
    limits_any_volume,
)
from kschedx.plugins.volume_facts import migrated_plugins
from kschedx.snapshot.columns import BoolArray, Column, IntArray, TableRow, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable

REASON = "node(s) exceed max volume count"
NOT_INSTALLED = "{subject} CSI driver is not installed on the node"

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


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Limits the volumes of a CSI driver to the limit in the node's CSINode. A volume counts once per node."""

    name = "NodeVolumeLimits"
    texts: ClassVar[Texts] = {
        "volume-limit-exceeded": (REASON,),
        "driver-not-installed": (NOT_INSTALLED,),
    }

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        return Touch.NODE if pod.spec.mounts_storage else Touch.NOTHING

    def tells_apart(self, pod: Pod) -> Hashable:
        wanted = tuple(self._wanted(pod, migrated) for migrated in self._migrated.values)
        if any(isinstance(volumes, Status) for volumes in wanted):
            return pod.key
        attached, pods = self._attached, self.handle.snapshot.pods
        nominated = {
            attachable.name
            for row in pods.nominated
            if pods.specs[row].mounts_storage
            for migrated in self._migrated.values
            for attachable in self._attachable(pods[row], migrated)
        }

        def name(attachable: Attachable) -> str:
            """Return an empty name for a volume that no node has or will have: it is equivalent to any other of its
            driver."""
            is_held = attachable.name in nominated or attached.is_held(attachable, pods)
            return attachable.name if is_held or attached.number(attachable) in self._of_attachments else ""

        return tuple(
            tuple((volume.driver, volume.plugin, name(volume)) for volume in volumes)
            for volumes in wanted
            if not isinstance(volumes, Status)
        )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult() if any(map(is_counted, pod.spec.volumes)) else PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        answers = _Answers(len(nodes))
        for code, migrated in enumerate(self._migrated.values):
            mask = self._migrated.codes[nodes.rows] == code
            if not mask.any():
                continue
            volumes = self._wanted(pod, migrated)
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
    def _lacking(self) -> dict[str, BoolArray]:
        """Driver to (node of the cluster,) whether it is missing; filled on first use of a driver."""
        return {}

    def _where(self, rule: Callable[[CSINode | None], bool]) -> BoolArray:
        """(node of the cluster,) whether the rule holds for the node's CSINode."""
        return np.array([rule(csi_node) for csi_node in self._csi_nodes], dtype=np.bool_)

    @cached_property
    def _ever_migrated(self) -> frozenset[str]:
        return migrated_plugins(self.handle.release)

    @cached_property
    def _migrated(self) -> Column[frozenset[str]]:
        """(node of the cluster,) the in-tree plugins whose volumes count as their CSI drivers'."""
        listed = self.handle.release.behaviour.csi_nodes_name_migrated_plugins

        def on(csi_node: CSINode | None) -> frozenset[str]:
            if csi_node is None:
                return frozenset()
            return self._ever_migrated & csi_node.migrated_plugins if listed else self._ever_migrated

        return Column.of(map(on, self._csi_nodes))

    def _where_migrated(self, plugin: str) -> BoolArray:
        """(node of the cluster,) whether an in-tree plugin's volumes count."""
        return self._migrated.where(lambda migrated: plugin in migrated)

    @cached_property
    def _has_limits(self) -> BoolArray:
        limited = self._where(lambda csi_node: bool(csi_node and csi_node.limits))
        if self.handle.release.behaviour.allocatable_limits_volumes:
            limited |= limits_any_volume(self.handle.nodes)
        return limited

    @cached_property
    def _limits(self) -> dict[str, IntArray]:
        """Driver to (node of the cluster,) its limit; filled on first use of a driver."""
        return {}

    def _limit(self, driver: str) -> IntArray:
        if driver not in self._limits:
            limits = [csi_node.limits.get(driver, _NO_LIMIT) if csi_node else _NO_LIMIT for csi_node in self._csi_nodes]
            self._limits[driver] = np.array(limits, dtype=np.int64)
            if self.handle.release.behaviour.allocatable_limits_volumes:
                limit_of_csi_node = self._limits[driver]
                of_node = allocatable_limit(self.handle.nodes, csi_limit_key(driver), _NO_LIMIT)
                self._limits[driver] = np.where(limit_of_csi_node == _NO_LIMIT, of_node, limit_of_csi_node)
        return self._limits[driver]

    @property
    def _attached(self) -> AttachedVolumes:
        return AttachedVolumes.of(self.handle.snapshot.storage, self.handle.snapshot.pods, self._ever_migrated)

    @cached_property
    def _by_attachment(self) -> Attached:
        counted = self.handle.release.behaviour.attachments_count
        return self._attached.by_attachment(self.handle.snapshot.cluster.index if counted else {})

    @cached_property
    def _of_attachments(self) -> frozenset[int]:
        """Numbers of the attached volumes."""
        return frozenset(self._by_attachment.volumes.tolist())

    # --- the pod against the nodes

    def _wanted(self, pod: Pod, migrated: frozenset[str]) -> tuple[Attachable, ...] | Status:
        """Return the pod's distinct volumes, or the status that rejects all nodes with this migration."""
        storage = self.handle.snapshot.storage
        try:
            mounted = list(attachable_volumes(pod.metadata, pod.spec.volumes, storage, migrated=migrated, is_new=True))
        except VolumeError as wrong:
            return wrong.status(self.handle.release)
        return tuple({volume.name: volume for volume in mounted}.values())

    def _attachable(self, pod: Pod, migrated: frozenset[str]) -> tuple[Attachable, ...]:
        """Return the pod's volumes, or none if they cannot be counted."""
        attachable = self._wanted(pod, migrated)
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
            if self.handle.release.behaviour.drivers_ask_to_be_installed and not asks:
                continue
            self._reject_without(driver, answers, mask, nodes)

    def _reject_without(self, driver: str, answers: _Answers, mask: BoolArray, nodes: NodeTable) -> None:
        lacking = self._lacking.get(driver)
        if lacking is None:
            lacking = self._lacking[driver] = self._where(lambda csi_node: driver not in _drivers(csi_node))
        reason = NOT_INSTALLED.format(subject=driver)

        def explain(row: TableRow) -> tuple[Finding, ...]:
            return (DriverNotInstalled(driver=driver, installed=_drivers(self._csi_nodes[nodes.cluster_row(row)])),)

        answers.reject(mask & lacking[nodes.rows], Status(code=Code.UNSCHEDULABLE, reasons=(reason,)), explain)

    def _reject_broken_pods(self, answers: _Answers, limited: BoolArray, nodes: NodeTable) -> None:
        """Fail nodes with a limit and a running pod whose volumes cannot be counted."""
        for plugin in dict.fromkeys(error.plugin for error in self._attached.errors.values()):
            errors = {pod: error for pod, error in self._attached.errors.items() if error.plugin == plugin}
            broken = np.zeros(len(nodes.pods), dtype=np.bool_)
            broken[list(errors)] = True
            counts = self._where_migrated(plugin)[nodes.rows] if plugin else np.ones(len(nodes), dtype=np.bool_)
            for row in each_row(rows_where((nodes.count_where(broken) > 0) & limited & counts)):
                pod = next(int(pod) for pod in nodes.pods_on(row) if broken[pod])
                answers.reject(np.arange(len(nodes)) == row, worded_error(str(errors[pod])))

    def _reject_excess(
        self, answers: _Answers, limited: BoolArray, volumes: Sequence[Attachable], nodes: NodeTable
    ) -> None:
        attached = self._attached
        by_pods = attached.by_pods(nodes, self._where_migrated)
        node_count = len(nodes.cluster.nodes)
        missing = {volume: np.ones(node_count, dtype=np.bool_) for volume in volumes}
        for volume, mask in missing.items():
            mask[by_pods.nodes_with(attached.number(volume))] = False
        counts = tuple(
            _Count(
                driver=driver,
                attached=attached.count(driver, (by_pods, self._by_attachment), node_count)[nodes.rows],
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
                            count.driver, nodes.pods_on(row), self._by_attachment.volumes_on(place)
                        )
                    ),
                )
                for count in counts
                if count.is_exceeded[row]
            )

        exceeded = np.logical_or.reduce([count.is_exceeded for count in counts])
        answers.reject(limited & exceeded, Status(code=Code.UNSCHEDULABLE, reasons=(REASON,)), explain)


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
