"""Predicates about volumes: conflicts, binding, limits, and zones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.findings import AttachedVolume, Finding, PluginMessage, VolumeLimitExceeded, VolumeZoneMismatch
from kschedx.framework.interface import CycleState, StateKey
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, worded_error
from kschedx.kube.storage import (
    BETA_REGION,
    BETA_ZONE,
    ZONE_DELIMITER,
    PersistentVolume,
    PersistentVolumeClaim,
    csi_limit_key,
    not_found_text,
)
from kschedx.kube.types import InTreeVolumeSources, Node, Pod, Volume
from kschedx.legacy.interface import PluginPredicate, Predicate, PredicateContext, join_verdicts
from kschedx.plugins.node_volume_limits.plugin import NITRO
from kschedx.plugins.volume_binding.plugin import REASON_UNBOUND_IMMEDIATE, Binding, Conflict, PodClaims
from kschedx.plugins.volume_restrictions import VolumeRestrictions
from kschedx.plugins.volume_zone import NO_CLAIM_NAME
from kschedx.snapshot.columns import BoolArray, TableRow
from kschedx.snapshot.nodes import NodeTable

# NoDiskConflict (pkg/scheduler/algorithm/predicates/predicates.go).


class NoDiskConflict(PluginPredicate):
    """Disks that two pods on a node cannot share. Claims for a single pod came later."""

    plugin_class = VolumeRestrictions
    text = "disk_conflict"
    resolvable = True

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        own = tuple(volume for volume in pod.spec.volumes if volume.persistent_volume_claim is None)
        super().prepare(state, replace(pod, spec=replace(pod.spec, volumes=own)), nodes)


# CheckVolumeBinding (predicates.go, and FindPodVolumes in scheduler_binder.go of pkg/controller/volume).


class CheckVolumeBinding(Predicate):
    """Volumes of bound claims that the node must reach, and volumes for claims that wait for their first consumer.

    A claim that is missing, has lost its volume, or should already be bound is an error on every node.
    """

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        self._binding: StateKey[Binding | str | None] = StateKey(type(self).__name__)
        """The claims on all nodes, the error on all of them, or None for a pod without claims."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        claims = self._claims(pod)
        if isinstance(claims, PodClaims):
            storage = self.context.snapshot.storage
            state[self._binding] = Binding(
                claims, storage, self.context.nodes, attributes_classes=False, migrated=frozenset()
            )
        else:
            state[self._binding] = claims

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        binding = state[self._binding]
        if binding is None:
            return Verdicts.success(len(nodes))
        if isinstance(binding, str):
            return Verdicts.everywhere(len(nodes), worded_error(binding))
        conflicts, code = binding.conflicts[nodes.rows], self.context.era.unresolvable
        texts = self.context.era.texts

        def where(conflict: Conflict, reason: str) -> Verdicts:
            # all conflicts of a node are reported with the first one
            before = conflicts & (conflict - 1) > 0
            return Verdicts.first_of(
                ((conflicts & conflict) > 0, Code.ERROR if conflict is Conflict.VOLUME_MISSING else code, reason),
                explain=lambda row: () if before[row] else binding.explain(nodes.cluster_row(row)),
            )

        return join_verdicts(
            [
                where(Conflict.NODE_AFFINITY, texts.volume_node_affinity),
                where(Conflict.NO_VOLUME, texts.volume_binding),
                where(Conflict.VOLUME_MISSING, self._missing_volume(binding)),
            ]
        )

    def _claims(self, pod: Pod) -> PodClaims | str | None:
        storage = self.context.snapshot.storage
        claims: list[PersistentVolumeClaim] = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = storage.claim(pod.metadata.namespace, name)
            if claim is None:
                key = f"{pod.metadata.namespace}/{name}"
                return f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"'
            claims.append(claim)
        unbound = [claim for claim in claims if not claim.is_fully_bound]
        if not all(map(self._waits, unbound)):
            return REASON_UNBOUND_IMMEDIATE
        bound = tuple(claim for claim in claims if claim.is_fully_bound)
        return PodClaims(bound=bound, delayed=tuple(unbound)) if claims else None

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim is bound after a node is chosen. A claim with a volume's name or a selected node is not."""
        is_free = not claim.spec.volume_name and claim.selected_node is None
        return is_free and self.context.snapshot.storage.waits(claim)

    def _missing_volume(self, binding: Binding) -> str:
        volumes = self.context.snapshot.storage.volumes
        names = [claim.spec.volume_name for claim in binding.claims.bound if claim.spec.volume_name not in volumes]
        return f'could not find v1.PersistentVolume "{names[0]}"' if names else ""


# How many volumes a node can attach: MaxEBSVolumeCount and similar predicates, and MaxCSIVolumeCountPred. Upstream:
# pkg/scheduler/algorithm/predicates/predicates.go and csi_volume_predicate.go;
# plugin/pkg/scheduler/algorithm/predicates/predicates.go of 1.5.

_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
_NITRO_LIMIT = 25


class _Disk(Struct, frozen=True, kw_only=True):
    """A type of cloud disk, and how many of them a node can attach."""

    title: str  # the name of the volume source
    limit: int
    limit_resource: str  # the resource whose allocatable replaces the limit, if the node has it
    name: Callable[[InTreeVolumeSources], str | None]  # returns the disk of a volume; None for every other type


_EBS = _Disk(
    title="awsElasticBlockStore",
    limit=39,
    limit_resource="attachable-volumes-aws-ebs",
    name=lambda sources: sources.aws_elastic_block_store.volume_id if sources.aws_elastic_block_store else None,
)
_GCE_PD = _Disk(
    title="gcePersistentDisk",
    limit=16,
    limit_resource="attachable-volumes-gce-pd",
    name=lambda sources: sources.gce_persistent_disk.pd_name if sources.gce_persistent_disk else None,
)
_AZURE_DISK = _Disk(
    title="azureDisk",
    limit=16,
    limit_resource="attachable-volumes-azure-disk",
    name=lambda sources: sources.azure_disk.disk_name if sources.azure_disk else None,
)


class _CountError(Exception):
    """An error that prevents counting volumes, with upstream's message."""


_MISSING = "<missing>-"  # the prefix of the name of an unidentified disk


class _VolumeCount(Predicate):
    """A limit of volumes, counted node by node, and only for pods with volumes."""

    only_counts_new: ClassVar[bool] = False
    """Whether a node that already has all of the pod's volumes passes even above its limit."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if not pod.spec.volumes:
            return Verdicts.success(len(nodes))
        try:
            new = dict(self.volumes(pod.spec.volumes, pod.metadata.namespace))
        except _CountError as wrong:
            return Verdicts.everywhere(len(nodes), worded_error(str(wrong)))
        if not new:
            return Verdicts.success(len(nodes))
        holding = nodes.pods.specs.where(lambda spec: bool(spec.volumes))
        return Verdicts.of_rows([self._node_status(new, holding, nodes, row) for row in nodes.each()])

    def _node_status(self, new: dict[str, str], holding: BoolArray, nodes: NodeTable, row: TableRow) -> Status:
        """Return a node's status. `new` are the pod's volumes with their groups, `holding` (pod,) the pods that have
        any volumes."""
        pods = nodes.pods_on(row)
        held: dict[str, str] = {}
        holders: dict[str, list[str]] = {}
        try:
            for pod in pods[holding[pods]].tolist():
                for name, group in self.volumes(nodes.pods.specs[pod].volumes, nodes.pods.namespaces[pod]):
                    held[name] = group
                    holders.setdefault(name, []).append(nodes.pods.key(pod))
        except _CountError as wrong:
            return worded_error(str(wrong))
        added = [name for name in new if name not in held]
        for group in sorted({new[name] for name in (added if self.only_counts_new else new)}):
            attached = [name for name in held if held[name] == group]
            wanted = [name for name in added if new[name] == group]
            limit = self.limit(nodes.node(row), nodes, row, group)
            if limit is not None and len(attached) + len(wanted) > limit:
                return Status(
                    code=Code.UNSCHEDULABLE,
                    reasons=(self.context.era.texts.volume_count,),
                    findings=(_limit_finding(group, limit, wanted, attached, holders),),
                )
        return SUCCESS

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        """Yield the volumes that count, each with its group. Raises `_CountError`."""
        raise NotImplementedError

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int | None:
        """Return how many volumes of a group the node can attach; None for any number."""
        raise NotImplementedError


def _limit_finding(
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
    """Disks of one type, from a claim or the pod itself. A claim with an unknown volume counts too."""

    disk: ClassVar[_Disk]

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        for volume in volumes:
            disk = self.disk.name(volume)
            if disk is not None:
                yield disk, self.disk.title
            elif volume.persistent_volume_claim is not None:
                name = self.claimed_disk(namespace, volume.persistent_volume_claim.claim_name)
                if name is not None:
                    yield name, self.disk.title

    def claimed_disk(self, namespace: str, claim_name: str) -> str | None:
        if not claim_name:
            raise _CountError(NO_CLAIM_NAME)
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
    disk = _EBS

    def default_limit(self, node: Node) -> int:
        is_nitro = NITRO.search(node.metadata.labels.get(_INSTANCE_TYPE, ""))
        return _NITRO_LIMIT if is_nitro else self.disk.limit


class MaxGCEPDVolumeCount(_DiskCount):
    disk = _GCE_PD


class MaxAzureDiskVolumeCount(_DiskCount):
    disk = _AZURE_DISK


class _StrictDiskCount(_DiskCount):
    """Disks as 1.5 counts them: an unbound claim is an error, and a pod's volumes after a missing one do not count."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        self._unknown = count()

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        for volume in volumes:
            for name, group in super().volumes((volume,), namespace):
                yield name, group
                if name.startswith(_MISSING):
                    return

    def claimed_disk(self, namespace: str, claim_name: str) -> str | None:
        if not claim_name:
            raise _CountError(NO_CLAIM_NAME)
        storage = self.context.snapshot.storage
        claim = storage.claim(namespace, claim_name)
        if claim is None:
            return self._unknown_disk()
        if not claim.spec.volume_name:
            raise _CountError(f'PersistentVolumeClaim is not bound: "{claim_name}"')
        volume = storage.volumes.get(claim.spec.volume_name)
        return self._unknown_disk() if volume is None else self.disk.name(volume.spec)

    def _unknown_disk(self) -> str:
        """Return a unique name: upstream draws a random name each time, so no two are the same."""
        return f"{_MISSING}{next(self._unknown)}"

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int:
        return self.disk.limit


class StrictMaxEBSVolumeCount(_StrictDiskCount):
    disk = _EBS


class StrictMaxGCEPDVolumeCount(_StrictDiskCount):
    disk = _GCE_PD


class MaxCSIVolumeCount(_VolumeCount):
    """Volumes of CSI drivers, if the node's allocatable limits them. Only bound claims are known to have one."""

    only_counts_new = True

    def volumes(self, volumes: Sequence[Volume], namespace: str) -> Iterator[tuple[str, str]]:
        storage = self.context.snapshot.storage
        for volume in volumes:
            if volume.persistent_volume_claim is None:
                continue
            if not volume.persistent_volume_claim.claim_name:
                raise _CountError(NO_CLAIM_NAME)
            claim = storage.claim(namespace, volume.persistent_volume_claim.claim_name)
            bound = storage.volumes.get(claim.spec.volume_name) if claim is not None else None
            if bound is not None and bound.spec.csi is not None:
                yield bound.spec.csi.volume_handle, bound.spec.csi.driver

    def limit(self, node: Node, nodes: NodeTable, row: TableRow, group: str) -> int | None:
        return _allocatable(nodes, row, csi_limit_key(group)) if group else None


# NoVolumeZoneConflict (pkg/scheduler/algorithm/predicates/predicates.go, and that of 1.5).

_LABELS = (BETA_ZONE, BETA_REGION)


class NoVolumeZoneConflict(Predicate):
    """The zone and region of bound volumes, which the node must share.

    Nodes without these labels accept every claim, whatever its state; on all other nodes, a claim that cannot be read
    is an error.
    """

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        undecided = np.zeros(len(nodes), dtype=np.bool_)
        for key in _LABELS:
            undecided |= nodes.label(key).present
        parts = [Verdicts.success(len(nodes))]
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None or not undecided.any():
                continue
            bound = self._volume(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
            if isinstance(bound, str):
                parts.append(_zone_failed(undecided, bound))
                break
            if bound is not None:
                outside = undecided & self._outside(*bound, nodes)
                parts.append(self._zone_rejections(outside, *bound, nodes))
                undecided = undecided & ~outside
        return join_verdicts(parts)

    def _volume(self, namespace: str, name: str) -> tuple[PersistentVolumeClaim, PersistentVolume] | str | None:
        """Return the claim and its volume, or the error; None for a claim that waits for its first consumer."""
        if not name:
            return "PersistentVolumeClaim had no name"
        storage = self.context.snapshot.storage
        claim = storage.claim(namespace, name)
        if claim is None:
            return not_found_text("persistentvolumeclaim", name)
        if not claim.spec.volume_name:
            return None if self.may_wait(claim) else f'PersistentVolumeClaim is not bound: "{name}"'
        volume = storage.volumes.get(claim.spec.volume_name)
        return not_found_text("persistentvolume", claim.spec.volume_name) if volume is None else (claim, volume)

    def may_wait(self, claim: PersistentVolumeClaim) -> bool:
        return self.context.snapshot.storage.waits(claim)

    def zones(self, label: str) -> frozenset[str]:
        """Return the zones in a volume's label; empty if it is invalid, and then it does not count."""
        zones = frozenset(zone.strip() for zone in label.split(ZONE_DELIMITER))
        return frozenset() if "" in zones else zones

    def _constraints(self, volume: PersistentVolume) -> dict[str, frozenset[str]]:
        labels = volume.metadata.labels
        named = {key: self.zones(labels[key]) for key in _LABELS if key in labels}
        return {key: zones for key, zones in named.items() if zones}

    def _outside(self, claim: PersistentVolumeClaim, volume: PersistentVolume, nodes: NodeTable) -> BoolArray:
        outside = np.zeros(len(nodes), dtype=np.bool_)
        for key, zones in self._constraints(volume).items():
            outside |= nodes.label(key).where(partial(_is_outside, zones))
        return outside

    def _zone_rejections(
        self, mask: BoolArray, claim: PersistentVolumeClaim, volume: PersistentVolume, nodes: NodeTable
    ) -> Verdicts:
        def explain(row: TableRow) -> tuple[Finding, ...]:
            labels = nodes.node(row).metadata.labels
            return tuple(
                VolumeZoneMismatch(
                    claim=claim.key,
                    persistent_volume=volume.name,
                    key=key,
                    zones=tuple(sorted(zones)),
                    node_key=key,
                    actual=labels.get(key),
                )
                for key, zones in self._constraints(volume).items()
                if labels.get(key, "") not in zones
            )

        return Verdicts.first_of(
            (mask, self.context.era.unresolvable, self.context.era.texts.volume_zone), explain=explain
        )


class StrictNoVolumeZoneConflict(NoVolumeZoneConflict):
    """NoVolumeZoneConflict of 1.5: a label is one zone, and no claim may wait for its first consumer."""

    def may_wait(self, claim: PersistentVolumeClaim) -> bool:
        return False

    def zones(self, label: str) -> frozenset[str]:
        return frozenset({label})


def _is_outside(zones: frozenset[str], label: str | None) -> bool:
    return (label or "") not in zones


def _zone_failed(mask: BoolArray, text: str) -> Verdicts:
    return Verdicts.first_of((mask, Code.ERROR, text), explain=lambda row: (PluginMessage(text=text),))
