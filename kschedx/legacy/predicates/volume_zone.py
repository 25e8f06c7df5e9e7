"""NoVolumeZoneConflict (pkg/scheduler/algorithm/predicates/predicates.go, and that of 1.5)."""

from __future__ import annotations

from functools import partial

import numpy as np

from kschedx.api.storage import (
    BETA_REGION,
    BETA_ZONE,
    ZONE_DELIMITER,
    PersistentVolume,
    PersistentVolumeClaim,
    not_found,
)
from kschedx.api.types import Pod
from kschedx.findings import Finding, PluginMessage, VolumeZoneMismatch
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Predicate, joined
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow

LABELS = (BETA_ZONE, BETA_REGION)


class NoVolumeZoneConflict(Predicate):
    """Bound volumes with a zone or region go to nodes of the same one. Nodes without these labels take everything, be a
    claim in whatever state; on all others one that cannot be read is an error."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        undecided = np.zeros(len(nodes), dtype=np.bool_)
        for key in LABELS:
            undecided |= nodes.label(key).where(lambda value: value is not None)
        parts = [Verdicts.success(len(nodes))]
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None or not undecided.any():
                continue
            found = self._volume(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
            if isinstance(found, str):
                parts.append(_failed(undecided, found))
                break
            if found is not None:
                outside = undecided & self._outside(*found, nodes)
                parts.append(self._rejected(outside, *found, nodes))
                undecided = undecided & ~outside
        return joined(parts)

    def _volume(self, namespace: str, name: str) -> tuple[PersistentVolumeClaim, PersistentVolume] | str | None:
        """The claim and its volume; what is wrong with it; None for one that waits for its first consumer."""
        if not name:
            return "PersistentVolumeClaim had no name"
        storage = self.context.snapshot.storage
        claim = storage.claim(namespace, name)
        if claim is None:
            return not_found("persistentvolumeclaim", name)
        if not claim.spec.volume_name:
            return None if self.may_wait(claim) else f'PersistentVolumeClaim is not bound: "{name}"'
        volume = storage.volumes.get(claim.spec.volume_name)
        return not_found("persistentvolume", claim.spec.volume_name) if volume is None else (claim, volume)

    def may_wait(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self.context.snapshot.storage.classes.get(claim.storage_class)
        return storage_class is not None and storage_class.waits_for_first_consumer

    def zones(self, label: str) -> frozenset[str]:
        """The zones that a label of a volume names; none where it cannot be read, and then it does not count."""
        zones = frozenset(zone.strip() for zone in label.split(ZONE_DELIMITER))
        return frozenset() if "" in zones else zones

    def _constraints(self, volume: PersistentVolume) -> dict[str, frozenset[str]]:
        labels = volume.metadata.labels
        named = {key: self.zones(labels[key]) for key in LABELS if key in labels}
        return {key: zones for key, zones in named.items() if zones}

    def _outside(self, claim: PersistentVolumeClaim, volume: PersistentVolume, nodes: NodeTable) -> BoolArray:
        outside = np.zeros(len(nodes), dtype=np.bool_)
        for key, zones in self._constraints(volume).items():
            outside |= nodes.label(key).where(partial(_is_outside, zones))
        return outside

    def _rejected(
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
    """As 1.5 reads it: a label is one zone, and no claim waits."""

    def may_wait(self, claim: PersistentVolumeClaim) -> bool:
        return False

    def zones(self, label: str) -> frozenset[str]:
        return frozenset({label})


def _is_outside(zones: frozenset[str], label: str | None) -> bool:
    return (label or "") not in zones


def _failed(mask: BoolArray, text: str) -> Verdicts:
    return Verdicts.first_of((mask, Code.ERROR, text), explain=lambda row: (PluginMessage(text=text),))
