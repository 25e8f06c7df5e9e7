"""VolumeZone (pkg/scheduler/framework/plugins/volumezone)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar

import numpy as np
from msgspec import Struct

from kschedx.findings import ClaimNotFound, Finding, VolumeNotFound, VolumeZoneMismatch
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import Code, Status, Verdicts, unresolvable
from kschedx.kube.names import REGION, ZONE
from kschedx.kube.storage import (
    BETA_REGION,
    BETA_ZONE,
    ZONE_DELIMITER,
    PersistentVolume,
    PersistentVolumeClaim,
    not_found_text,
)
from kschedx.kube.types import Pod
from kschedx.plugins.volume_facts import claim_unbound
from kschedx.snapshot.columns import BoolArray, TableRow
from kschedx.snapshot.nodes import NodeTable

_REASON = "node(s) had no available volume zone"
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
_NO_VOLUME_NAME = "PersistentVolume had no name"
_NO_NAMES = "PersistentVolumeClaim had no pv name and storageClass name"

_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class _Topology(Struct, frozen=True, kw_only=True):
    """A zone or region label of a bound volume."""

    claim: str
    volume: str
    key: str
    zones: frozenset[str]


_TOPOLOGIES: StateKey[tuple[_Topology, ...]] = StateKey("PreFilterVolumeZone")


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Rejects nodes whose zone or region labels differ from those of the pod's bound volumes. A node without such
    labels passes."""

    name = "VolumeZone"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {
        "volume-zone-mismatch": (_REASON,),
        "volume-not-found": ('persistentvolume "{subject}" not found',),
        "plugin-message": (
            NO_CLAIM_NAME,
            _NO_VOLUME_NAME,
            _NO_NAMES,
            "VolumeBindingMode not set for StorageClass {subject}",
        ),
        "storage-class-not-found": ('storageclass.storage.k8s.io "{subject}" not found',),
    }

    def reads(self, pod: Pod) -> Hashable:
        return None

    def distinguishes_by(self, pod: Pod) -> Hashable:
        topologies = self._topologies(pod)
        if isinstance(topologies, Status):
            return pod.key
        return tuple((topology.key, topology.zones) for topology in topologies)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        topologies = self._topologies(pod)
        if isinstance(topologies, Status):
            return PreFilterResult(status=topologies)
        if not topologies:
            return PRE_FILTER_SKIP
        state[_TOPOLOGIES] = topologies
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        topologies = state[_TOPOLOGIES] if _TOPOLOGIES in state else self._topologies(pod)
        labelled = np.zeros(len(nodes), dtype=np.bool_)
        for key in _LABELS:
            labelled |= nodes.label(key).present
        if isinstance(topologies, Status):
            return self._claims_refused(topologies, labelled)
        newer = _NEWER if self.handle.release.behavior.zone_labels_of_both_generations_agree else {}
        mismatches = [labelled & ~_in_zone_mask(topology, nodes, newer) for topology in topologies]

        def explain(row: TableRow) -> tuple[Finding, ...]:
            labels = nodes.node(row).metadata.labels
            pairs = zip(topologies, mismatches, strict=True)
            return tuple(_mismatch(topology, labels) for topology, mask in pairs if mask[row])

        rejected = np.logical_or.reduce([np.zeros(len(nodes), dtype=np.bool_), *mismatches])
        return Verdicts.first_of((rejected, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, _REASON), explain=explain)

    def _claims_refused(self, status: Status, labelled: BoolArray) -> Verdicts:
        """Report the error of a claim if PreFilter did not run. `labelled`: nodes with zone labels."""
        is_first = self.handle.release.behavior.zone_labels_decide_before_claims
        mask = labelled if is_first else np.ones(len(labelled), dtype=np.bool_)
        return Verdicts.first_of((mask, status.code, status.message), explain=lambda _: status.findings)

    def _topologies(self, pod: Pod) -> tuple[_Topology, ...] | Status:
        """Return the labels of the pod's bound volumes, or the error of a claim."""
        topologies: list[_Topology] = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            claim_topologies = self._claim_topology(pod, volume.name, volume.persistent_volume_claim.claim_name)
            if isinstance(claim_topologies, Status):
                return claim_topologies
            topologies += claim_topologies
        return tuple(topologies)

    def _claim_topology(self, pod: Pod, volume_name: str, name: str) -> list[_Topology] | Status:
        """Return the labels of the claim's volume; none if the claim waits for its first consumer."""
        storage = self.handle.snapshot.storage
        claim = storage.claim(pod.metadata.namespace, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            reason = not_found_text("persistentvolumeclaim", name) if name else NO_CLAIM_NAME
            return unresolvable(reason, ClaimNotFound(claim=key, volume=volume_name, ephemeral=False))
        if claim.spec.volume_name:
            volume = storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                return unresolvable(
                    not_found_text("persistentvolume", claim.spec.volume_name),
                    VolumeNotFound(claim=claim.key, persistent_volume=claim.spec.volume_name),
                )
            return _labels(claim, volume)
        if not claim.storage_class:
            return unresolvable(_NO_NAMES, claim_unbound(claim, storage))
        storage_class = storage.classes.get(claim.storage_class)
        if storage_class is None:
            reason = not_found_text("storageclass.storage.k8s.io", claim.storage_class)
            return unresolvable(reason, claim_unbound(claim, storage))
        if storage_class.waits_for_first_consumer:
            return []
        return unresolvable(_NO_VOLUME_NAME, claim_unbound(claim, storage))


def _labels(claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[_Topology]:
    """A label with an empty zone between two delimiters is ignored."""
    topologies: list[_Topology] = []
    for key in _LABELS:
        if key in volume.metadata.labels:
            zones = frozenset(zone.strip() for zone in volume.metadata.labels[key].split(ZONE_DELIMITER))
            if "" not in zones:
                topologies.append(_Topology(claim=claim.key, volume=volume.name, key=key, zones=zones))
    return topologies


def _in_zone_mask(topology: _Topology, nodes: NodeTable, newer_label: Mapping[str, str]) -> BoolArray:
    """(node,) whether the label matches; if a node lacks the deprecated label, the newer one may count."""
    column = nodes.label(topology.key)
    inside = column.where(lambda value: value in topology.zones)
    newer = newer_label.get(topology.key)
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
