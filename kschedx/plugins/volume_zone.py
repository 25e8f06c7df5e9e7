"""VolumeZone (pkg/scheduler/framework/plugins/volumezone)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kschedx.api.storage import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    ZONE_DELIMITER,
    PersistentVolume,
    PersistentVolumeClaim,
    not_found,
)
from kschedx.api.types import Pod
from kschedx.findings import ClaimNotFound, Finding, VolumeNotFound, VolumeZoneMismatch
from kschedx.framework.interface import PRE_FILTER_SKIP, FilterPlugin, PreFilterPlugin, PreFilterResult
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Status, Verdicts
from kschedx.plugins.claim_facts import claim_unbound
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable

REASON = "node(s) had no available volume zone"

_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class _Topology(Struct, frozen=True, kw_only=True):
    """A zone or region label of a bound volume."""

    claim: str
    volume: str
    key: str
    zones: frozenset[str]


TOPOLOGIES: StateKey[tuple[_Topology, ...]] = StateKey("PreFilterVolumeZone")


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Bound volumes with zone or region labels go to nodes whose labels agree, or that have none of these labels."""

    name = "VolumeZone"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        topologies: list[_Topology] = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            found = self._topologies(pod, volume.name, volume.persistent_volume_claim.claim_name)
            if isinstance(found, Status):
                return PreFilterResult(status=found)
            topologies += found
        if not topologies:
            return PRE_FILTER_SKIP
        state[TOPOLOGIES] = tuple(topologies)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        topologies = state[TOPOLOGIES]
        labelled = np.zeros(len(nodes), dtype=np.bool_)
        for key in _LABELS:
            labelled |= nodes.label(key).where(lambda value: value is not None)
        mismatches = [labelled & ~_where_in_zone(topology, nodes) for topology in topologies]

        def explain(row: int) -> tuple[Finding, ...]:
            labels = nodes.node(row).metadata.labels
            pairs = zip(topologies, mismatches, strict=True)
            return tuple(_mismatch(topology, labels) for topology, mask in pairs if mask[row])

        rejected = np.logical_or.reduce(mismatches)
        return Verdicts.first_of((rejected, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON), explain=explain)

    def _topologies(self, pod: Pod, volume_name: str, name: str) -> list[_Topology] | Status:
        """The labels of the volume behind a claim; none while it waits for its first consumer."""
        storage = self.handle.snapshot.storage
        claim = storage.claim(pod.metadata.namespace, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            reason = not_found("persistentvolumeclaim", name) if name else "PersistentVolumeClaim had no name"
            return _rejected(reason, ClaimNotFound(claim=key, volume=volume_name, ephemeral=False))
        if claim.spec.volume_name:
            volume = storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                return _rejected(
                    not_found("persistentvolume", claim.spec.volume_name),
                    VolumeNotFound(claim=claim.key, persistent_volume=claim.spec.volume_name),
                )
            return _labels(claim, volume)
        if not claim.storage_class:
            reason = "PersistentVolumeClaim had no pv name and storageClass name"
            return _rejected(reason, claim_unbound(claim, storage))
        storage_class = storage.classes.get(claim.storage_class)
        if storage_class is None:
            reason = not_found("storageclass.storage.k8s.io", claim.storage_class)
            return _rejected(reason, claim_unbound(claim, storage))
        if storage_class.waits_for_first_consumer:
            return []
        return _rejected("PersistentVolume had no name", claim_unbound(claim, storage))


def _rejected(reason: str, finding: Finding) -> Status:
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(reason,), findings=(finding,))


def _labels(claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[_Topology]:
    """A label that names no zone between two delimiters is not read at all."""
    found: list[_Topology] = []
    for key in _LABELS:
        if key in volume.metadata.labels:
            zones = frozenset(zone.strip() for zone in volume.metadata.labels[key].split(ZONE_DELIMITER))
            if "" not in zones:
                found.append(_Topology(claim=claim.key, volume=volume.name, key=key, zones=zones))
    return found


def _where_in_zone(topology: _Topology, nodes: NodeTable) -> BoolArray:
    """(node,) whether the label agrees; where a node lacks a label of the old generation, the newer one counts."""
    column = nodes.label(topology.key)
    inside = column.where(lambda value: value in topology.zones)
    newer = _NEWER.get(topology.key)
    if newer is not None:
        absent = column.where(lambda value: value is None)
        inside |= absent & nodes.label(newer).where(lambda value: value in topology.zones)
    return inside


def _mismatch(topology: _Topology, labels: dict[str, str]) -> VolumeZoneMismatch:
    node_key = topology.key if topology.key in labels else _NEWER.get(topology.key, topology.key)
    return VolumeZoneMismatch(
        claim=topology.claim,
        persistent_volume=topology.volume,
        key=topology.key,
        zones=tuple(sorted(topology.zones)),
        node_key=node_key,
        actual=labels.get(node_key),
    )
