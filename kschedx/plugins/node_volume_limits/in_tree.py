"""EBSLimits, GCEPDLimits, AzureDiskLimits, and CinderLimits: limits of volumes without a CSI driver.

They are in the default profile until 1.30; a configuration may name them until then. Upstream:
pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np

from kschedx.findings import AttachedVolume, Finding, PluginMessage, VolumeLimitExceeded
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Touch,
)
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.storage import PersistentVolumeClaim, claim_name, not_found, not_owned_by
from kschedx.kube.types import InTreeVolumeSources, Node, ObjectMeta, Pod, Volume
from kschedx.plugins.node_volume_limits.attached import VolumeError, allocatable_limit
from kschedx.plugins.volume_facts import migrated_plugins
from kschedx.snapshot.columns import BoolArray, IntArray, TableRow, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable

REASON = "node(s) exceed max volume count"

_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_UNBOUND = "<unbound>"
"""Replaces the random prefix that upstream adds to the volumes of unbound claims."""

_NO_LIMIT = -1

Disks = Mapping[str, str]
"""Identifiers of volumes to their names on screens."""


class InTreeLimits(PreFilterPlugin, FilterPlugin):
    """Limits the volumes of one in-tree plugin on nodes whose CSINode does not migrate it."""

    plugin: ClassVar[str]
    """As in storage classes."""
    limit_key: ClassVar[str]
    """The allocatable resource that may set a node's limit."""
    limit: ClassVar[int]
    """The limit of a node whose allocatable has none."""

    @abstractmethod
    def disk(self, source: InTreeVolumeSources) -> str | None:
        """Return the volume's identifier, or None for another plugin's volume."""

    def default_limit(self, node: Node) -> int:
        return self.limit

    def reads(self, pod: Pod) -> Hashable:
        return None

    def touches(self, pod: Pod) -> Touch:
        return Touch.NODE if pod.spec.mounts_storage else Touch.NOTHING

    def tells_apart(self, pod: Pod) -> Hashable:
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
        limits = allocatable_limit(nodes, self.limit_key, _NO_LIMIT)
        exceeded = np.zeros(len(nodes), dtype=np.bool_)
        failed: dict[TableRow, str] = {}
        for row in each_row(rows_where(attaching)):
            if limits[row] == _NO_LIMIT:
                limits[row] = self.default_limit(nodes.node(row))
            try:
                exceeded[row] = len(self._attached(nodes, row).keys() | wanted.keys()) > limits[row]
            except VolumeError as wrong:
                failed[row] = str(wrong)

        def explain(row: TableRow) -> tuple[Finding, ...]:
            if row in failed:
                return (PluginMessage(text=failed[row]),)
            return (self._finding(nodes, row, wanted, int(limits[row])),)

        cases = [(np.arange(len(nodes)) == row, Code.ERROR, text) for row, text in failed.items()]
        return Verdicts.first_of(*cases, (exceeded, Code.UNSCHEDULABLE, REASON), explain=explain)

    def _may_count(self, volume: Volume) -> bool:
        has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
        return has_claim or self.disk(volume) is not None

    # --- a pod's volumes

    def _disks(self, pod: ObjectMeta, volumes: Iterable[Volume], *, is_new: bool) -> Disks:
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
            claim = self._claim(pod, volume, name, is_new)
            disk = self._of_claim(claim) if claim is not None else None
            if claim is not None and disk is not None:
                disks[disk] = claim.key
        return disks

    def _claim(self, pod: ObjectMeta, volume: Volume, name: str, is_new: bool) -> PersistentVolumeClaim | None:
        """Find the claim; None for a missing claim of a running pod."""
        if not name:
            raise VolumeError("PersistentVolumeClaim had no name")
        key, ephemeral = f"{pod.namespace}/{name}", volume.persistent_volume_claim is None
        claim = self.handle.snapshot.storage.claim(pod.namespace, name)
        if claim is None and is_new:
            text = f"looking up PVC {key}: {not_found('persistentvolumeclaim', name)}"
            raise VolumeError(text, key, volume.name, ephemeral)
        wrong = not_owned_by(claim, pod) if claim is not None and ephemeral else None
        if wrong:
            raise VolumeError(wrong)
        return claim

    def _of_claim(self, claim: PersistentVolumeClaim) -> str | None:
        """Return the claim's volume. A volume that does not exist counts if its class would provision it with the
        plugin."""
        storage = self.handle.snapshot.storage
        volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.disk(volume.spec)
        storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
        made_by_plugin = storage_class is not None and storage_class.provisioner == self.plugin
        return f"{_UNBOUND}-{claim.key}" if made_by_plugin else None

    # --- the nodes

    @cached_property
    def _is_migrated(self) -> BoolArray:
        """(node of the cluster,) whether NodeVolumeLimits counts the plugin's volumes."""
        csi_nodes = (self.handle.snapshot.storage.csi_nodes.get(name) for name in self.handle.nodes.cluster.names)
        ever = self.plugin in migrated_plugins(self.handle.release)
        migrated = [
            ever and csi_node is not None and self.plugin in csi_node.migrated_plugins for csi_node in csi_nodes
        ]
        return np.array(migrated, dtype=np.bool_)

    @cached_property
    def _concerned(self) -> BoolArray:
        """(pod,) whether the pod may have a volume that counts."""
        return self.handle.snapshot.pods.specs.where(lambda spec: any(map(self._may_count, spec.volumes)))

    def _attached(self, nodes: NodeTable, row: TableRow) -> Disks:
        """Return the volumes of the pods on a node. Raises `VolumeError`."""
        return {disk: title for pod in self._pods(nodes, row) for disk, title in self._of_pod(pod).items()}

    def _pods(self, nodes: NodeTable, row: TableRow) -> IntArray:
        pods = nodes.pods_on(row)
        return pods[self._concerned[pods]]

    def _of_pod(self, row: int) -> Disks:
        pods = self.handle.snapshot.pods
        metadata = ObjectMeta(name=pods.names[row], namespace=pods.namespaces[row], uid=pods.uids[row])
        return self._disks(metadata, pods.specs[row].volumes, is_new=False)

    def _finding(self, nodes: NodeTable, row: TableRow, wanted: Disks, limit: int) -> VolumeLimitExceeded:
        attached = self._attached(nodes, row)
        holders: dict[str, list[str]] = {disk: [] for disk in attached}
        for pod in self._pods(nodes, row):
            for disk in self._of_pod(int(pod)):
                holders[disk].append(nodes.pods.key(int(pod)))
        return VolumeLimitExceeded(
            driver=self.plugin,
            attached=len(attached),
            limit=limit,
            volumes=tuple(title for disk, title in wanted.items() if disk not in attached),
            holders=tuple(AttachedVolume(volume=attached[disk], pods=tuple(pods)) for disk, pods in holders.items()),
        )


class EBSLimits(InTreeLimits):
    name = "EBSLimits"
    plugin = "kubernetes.io/aws-ebs"
    limit_key = "attachable-volumes-aws-ebs"

    def disk(self, source: InTreeVolumeSources) -> str | None:
        ebs = source.aws_elastic_block_store
        return ebs.volume_id if ebs is not None else None

    def default_limit(self, node: Node) -> int:
        labels = node.metadata.labels
        kind = next((labels[key] for key in _INSTANCE_TYPES if key in labels), "")
        return 25 if _NITRO.search(kind) else 39


class GCEPDLimits(InTreeLimits):
    name = "GCEPDLimits"
    plugin = "kubernetes.io/gce-pd"
    limit_key = "attachable-volumes-gce-pd"
    limit = 16

    def disk(self, source: InTreeVolumeSources) -> str | None:
        disk = source.gce_persistent_disk
        return disk.pd_name if disk is not None else None


class AzureDiskLimits(InTreeLimits):
    name = "AzureDiskLimits"
    plugin = "kubernetes.io/azure-disk"
    limit_key = "attachable-volumes-azure-disk"
    limit = 16

    def disk(self, source: InTreeVolumeSources) -> str | None:
        disk = source.azure_disk
        return disk.disk_name if disk is not None else None


class CinderLimits(InTreeLimits):
    name = "CinderLimits"
    plugin = "kubernetes.io/cinder"
    limit_key = "attachable-volumes-cinder"
    limit = 256

    def disk(self, source: InTreeVolumeSources) -> str | None:
        disk = source.cinder
        return disk.volume_id if disk is not None else None
