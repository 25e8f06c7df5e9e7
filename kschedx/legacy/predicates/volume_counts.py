"""How many volumes a node can attach: MaxEBSVolumeCount and its like, and MaxCSIVolumeCountPred.

Upstream: pkg/scheduler/algorithm/predicates/predicates.go and csi_volume_predicate.go; plugin/pkg/scheduler/algorithm/
predicates/predicates.go of 1.5.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import ClassVar

from msgspec import Struct

from kschedx.api.attach_limits import csi_limit_key
from kschedx.api.pod_volumes import InTreeVolumeSources, Volume
from kschedx.api.types import Node, Pod
from kschedx.findings import AttachedVolume, Finding, PluginMessage, VolumeLimitExceeded
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, error
from kschedx.legacy.predicates.base import Context, Predicate
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow

INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
NITRO_LIMIT = 25


class Disk(Struct, frozen=True, kw_only=True):
    """A kind of cloud disk and how many of them a node can attach."""

    title: str
    """As a volume source is called."""
    limit: int
    limit_resource: str
    """What a node's allocatable says instead, where it says something."""
    name: Callable[[InTreeVolumeSources], str | None]
    """The disk of a volume; None for every other kind."""


EBS = Disk(
    title="awsElasticBlockStore",
    limit=39,
    limit_resource="attachable-volumes-aws-ebs",
    name=lambda one: one.aws_elastic_block_store.volume_id if one.aws_elastic_block_store else None,
)
GCE_PD = Disk(
    title="gcePersistentDisk",
    limit=16,
    limit_resource="attachable-volumes-gce-pd",
    name=lambda one: one.gce_persistent_disk.pd_name if one.gce_persistent_disk else None,
)
AZURE_DISK = Disk(
    title="azureDisk",
    limit=16,
    limit_resource="attachable-volumes-azure-disk",
    name=lambda one: one.azure_disk.disk_name if one.azure_disk else None,
)


class CountError(Exception):
    """Why volumes cannot be counted, in upstream's words."""


NO_CLAIM_NAME = "PersistentVolumeClaim had no name"

MISSING = "<missing>-"
"""Begins the name of a disk of which nobody knows which it is."""


class _VolumeCount(Predicate):
    """Counts volumes node by node, and only for pods that bring some."""

    only_counts_new: ClassVar[bool] = False
    """A node that has all of the pod's volumes already does, be it over its limit."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if not pod.spec.volumes:
            return Verdicts.success(len(nodes))
        try:
            new = dict(self.volumes(pod.spec.volumes, pod.metadata.namespace))
        except CountError as wrong:
            return Verdicts.of_rows([_failed(str(wrong))] * len(nodes))
        if not new:
            return Verdicts.success(len(nodes))
        holding = nodes.pods.specs.where(lambda spec: bool(spec.volumes))
        return Verdicts.of_rows([self._on_node(new, holding, nodes, row) for row in nodes.each()])

    def _on_node(self, new: dict[str, str], holding: BoolArray, nodes: NodeTable, row: TableRow) -> Status:
        """`new` are the pod's volumes with their groups, `holding` (pod,) the pods that have volumes at all."""
        pods = nodes.pods_on(row)
        held: dict[str, str] = {}
        holders: dict[str, list[str]] = {}
        try:
            for pod in pods[holding[pods]].tolist():
                for name, group in self.volumes(nodes.pods.specs[pod].volumes, nodes.pods.namespaces[pod]):
                    held[name] = group
                    holders.setdefault(name, []).append(nodes.pods.key(pod))
        except CountError as wrong:
            return _failed(str(wrong))
        added = [name for name in new if name not in held]
        for group in sorted({new[name] for name in (added if self.only_counts_new else new)}):
            attached = [name for name in held if held[name] == group]
            wanted = [name for name in added if new[name] == group]
            limit = self.limit(nodes.node(row), nodes, row, group)
            if limit is not None and len(attached) + len(wanted) > limit:
                return Status(
                    code=Code.UNSCHEDULABLE,
                    reasons=(self.context.era.texts.volume_count,),
                    findings=(_exceeded(group, limit, wanted, attached, holders),),
                )
        return SUCCESS

    @abstractmethod
    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        """The volumes that count with the group in which they do. Raises `CountError`."""

    @abstractmethod
    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int | None:
        """How many of a group the node can attach; None for any number."""


def _failed(text: str) -> Status:
    status = error(text)
    return Status(code=status.code, reasons=status.reasons, findings=(PluginMessage(text=text),))


def _exceeded(
    group: str, limit: int, wanted: Sequence[str], attached: Sequence[str], holders: dict[str, list[str]]
) -> Finding:
    return VolumeLimitExceeded(
        driver=group,
        attached=len(attached),
        limit=limit,
        volumes=tuple(wanted),
        holders=tuple(AttachedVolume(volume=name, pods=tuple(holders[name])) for name in sorted(attached)),
    )


def _allocatable(nodes: NodeTable, row: TableRow, resource: str) -> int | None:
    column = nodes.resources.index.get(resource)
    return int(nodes.allocatable[row, column]) if column is not None and nodes.offers[row, column] else None


class _DiskCount(_VolumeCount):
    """Disks of one kind, by claim or named by the pod itself. A claim with nobody knows what behind it counts too."""

    disk: ClassVar[Disk]

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        for volume in volumes:
            disk = self.disk.name(volume)
            if disk is not None:
                yield disk, self.disk.title
            elif volume.persistent_volume_claim is not None:
                name = self.claimed(namespace, volume.persistent_volume_claim.claim_name)
                if name is not None:
                    yield name, self.disk.title

    def claimed(self, namespace: str, claim_name: str) -> str | None:
        if not claim_name:
            raise CountError(NO_CLAIM_NAME)
        storage = self.context.snapshot.storage
        claim = storage.claim(namespace, claim_name)
        volume = storage.volumes.get(claim.spec.volume_name) if claim is not None and claim.spec.volume_name else None
        return f"{namespace}/{claim_name}" if volume is None else self.disk.name(volume.spec)

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int:
        said = _allocatable(nodes, row, self.disk.limit_resource)
        return self.default_limit(node) if said is None else said

    def default_limit(self, node: Node) -> int:
        return self.disk.limit


class MaxEBSVolumeCount(_DiskCount):
    disk = EBS

    def default_limit(self, node: Node) -> int:
        is_nitro = NITRO.search(node.metadata.labels.get(INSTANCE_TYPE, ""))
        return NITRO_LIMIT if is_nitro else self.disk.limit


class MaxGCEPDVolumeCount(_DiskCount):
    disk = GCE_PD


class MaxAzureDiskVolumeCount(_DiskCount):
    disk = AZURE_DISK


class _StrictDiskCount(_DiskCount):
    """As 1.5 counts: an unbound claim is an error, and a pod's volumes after one that is missing do not count."""

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        self._unknown = count()

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        for volume in volumes:
            for name, group in super().volumes((volume,), namespace):
                yield name, group
                if name.startswith(MISSING):
                    return

    def claimed(self, namespace: str, claim_name: str) -> str | None:
        if not claim_name:
            raise CountError(NO_CLAIM_NAME)
        storage = self.context.snapshot.storage
        claim = storage.claim(namespace, claim_name)
        if claim is None:
            return self._unknown_disk()
        if not claim.spec.volume_name:
            raise CountError(f'PersistentVolumeClaim is not bound: "{claim_name}"')
        volume = storage.volumes.get(claim.spec.volume_name)
        return self._unknown_disk() if volume is None else self.disk.name(volume.spec)

    def _unknown_disk(self) -> str:
        """Upstream draws a random name each time it looks, so that no two are the same."""
        return f"{MISSING}{next(self._unknown)}"

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int:
        return self.disk.limit


class StrictMaxEBSVolumeCount(_StrictDiskCount):
    disk = EBS


class StrictMaxGCEPDVolumeCount(_StrictDiskCount):
    disk = GCE_PD


class MaxCSIVolumeCount(_VolumeCount):
    """Volumes of CSI drivers, where the node's allocatable limits them. Only bound claims are known to be one."""

    only_counts_new = True

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        storage = self.context.snapshot.storage
        for volume in volumes:
            if volume.persistent_volume_claim is None:
                continue
            if not volume.persistent_volume_claim.claim_name:
                raise CountError(NO_CLAIM_NAME)
            claim = storage.claim(namespace, volume.persistent_volume_claim.claim_name)
            bound = storage.volumes.get(claim.spec.volume_name) if claim is not None else None
            if bound is not None and bound.spec.csi is not None:
                yield bound.spec.csi.volume_handle, bound.spec.csi.driver

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int | None:
        return _allocatable(nodes, row, csi_limit_key(group)) if group else None
