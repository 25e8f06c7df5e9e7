"""What would be done with a pod's claims on every node of the cluster (FindPodVolumes in binder.go).

None of it depends on the pods that run on a node, so it is settled once per cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag
from functools import cached_property, partial

import numpy as np
from msgspec import Struct

from kschedx.api.csi_translation import InTreePlugin, TranslationError, plugin_of, translated
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.findings import (
    Finding,
    NoMatchingVolume,
    PluginMessage,
    ProvisioningTopologyMismatch,
    SelectedNodeMismatch,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
)
from kschedx.plugins.claim_facts import claim_facts, term_matches
from kschedx.plugins.volume_binding.claims import PodClaims
from kschedx.plugins.volume_binding.matching import NO_VOLUME, Matches, Search, SearchError, find_matches
from kschedx.plugins.volume_binding.provisioning import Provision, allowed_topologies, provision
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.node_lookup import NodeLookup
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage


class Conflict(IntFlag):
    """Why a node does not do, several at once; the order is that of upstream's reasons."""

    NODE_AFFINITY = 1
    """A bound volume cannot be reached."""
    NO_VOLUME = 2
    """An unbound claim gets no volume."""
    NO_SPACE = 4
    """A volume cannot be made for lack of storage."""
    VOLUME_MISSING = 8
    """A claim is bound to a volume that does not exist."""


_Explain = Callable[[ClusterRow], tuple[Finding, ...]]


class _Bound(Struct, frozen=True, kw_only=True):
    """A bound claim's volume against all nodes; arrays are (node,)."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    reached: BoolArray
    migrated: BoolArray
    """Where the node reads an in-tree volume as its driver's."""
    as_csi: PersistentVolume | None = None
    error: str = ""
    """Why it cannot be read so."""

    def mismatch(self, node: ClusterRow, labels: dict[str, str]) -> Finding:
        if self.volume is None:
            return VolumeNotFound(claim=self.claim.key, persistent_volume=self.claim.spec.volume_name)
        volume = self.as_csi if self.as_csi is not None and self.migrated[node] else self.volume
        required = volume.required_node_affinity
        return VolumeNodeAffinityMismatch(
            claim=self.claim.key,
            persistent_volume=volume.name,
            terms=() if required is None else term_matches(required, labels),
            driver=volume.spec.csi.driver if volume is self.as_csi and volume.spec.csi else "",
        )


class Binding:
    """A pod's claims on all nodes. Arrays are (node,) over the whole cluster."""

    def __init__(
        self,
        claims: PodClaims,
        storage: Storage,
        nodes: NodeTable,
        *,
        attributes_classes: bool,
        migrated: frozenset[str],
    ) -> None:
        """`migrated`: in-tree plugins whose volumes are the CSI drivers' on nodes that say so."""
        self._migrated_plugins = migrated
        self._storage = storage
        self._nodes = nodes
        self._lookup = NodeLookup.of(nodes)
        self.claims = claims
        self.conflicts: IntArray = np.zeros(len(nodes), dtype=np.int64)
        """Sums of `Conflict`."""
        self.errors: list[str] = [""]
        self.error: IntArray = np.zeros(len(nodes), dtype=np.int64)
        """Position in `errors`; 0 where there is none."""
        self._explain: list[tuple[BoolArray, _Explain]] = []
        self._matches = Matches(searches=(), choices=())
        self._provisions: list[Provision] = []
        self._settle_bound()
        self._settle_unbound(attributes_classes)

    # --- the settling

    def _reject(self, mask: BoolArray, conflict: Conflict, explain: _Explain) -> None:
        self.conflicts[mask] |= conflict
        self._explain.append((mask, explain))

    def _fail(self, mask: BoolArray, text: str) -> None:
        self.error[mask & (self.error == 0)] = len(self.errors)
        self.errors.append(text)

    def _settle_bound(self) -> None:
        """The first bound claim that does not do settles a node."""
        undecided = np.ones(len(self._nodes), dtype=np.bool_)
        for claim in self.claims.bound:
            bound = self._bound(claim)
            if bound.error:
                self._fail(undecided & bound.migrated, bound.error)
                undecided &= ~bound.migrated
            mask = undecided & ~bound.reached
            conflict = Conflict.VOLUME_MISSING if bound.volume is None else Conflict.NODE_AFFINITY
            self._reject(mask, conflict, partial(self._mismatch, bound))
            undecided &= ~mask

    def _bound(self, claim: PersistentVolumeClaim) -> _Bound:
        volume = self._storage.volumes.get(claim.spec.volume_name)
        migrated = np.zeros(len(self._nodes), dtype=np.bool_)
        if volume is None:
            return _Bound(claim=claim, volume=None, reached=migrated, migrated=migrated)
        reached = self._mask(volume)
        plugin = plugin_of(volume.spec)
        if plugin is None or plugin.name not in self._migrated_plugins:
            return _Bound(claim=claim, volume=volume, reached=reached, migrated=migrated)
        migrated = self._migrated(plugin)
        try:
            as_csi = translated(volume)
        except TranslationError as wrong:
            error = f"could not translate pv: {wrong}"
            return _Bound(claim=claim, volume=volume, reached=reached, migrated=migrated, error=error)
        reached = np.where(migrated, self._mask(as_csi), reached)
        return _Bound(claim=claim, volume=volume, reached=reached, migrated=migrated, as_csi=as_csi)

    def _mask(self, volume: PersistentVolume) -> BoolArray:
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        mask[self._lookup.selector(volume.required_node_affinity)] = True
        return mask

    def _migrated(self, plugin: InTreePlugin) -> BoolArray:
        found = (self._storage.csi_nodes.get(name) for name in self._nodes.names)
        return np.array(
            [csi_node is not None and plugin.name in csi_node.migrated_plugins for csi_node in found], dtype=np.bool_
        )

    def _settle_unbound(self, attributes_classes: bool) -> None:
        selected = [claim for claim in self.claims.delayed if claim.selected_node is not None]
        others = [claim for claim in self.claims.delayed if claim.selected_node is None]
        chosen = {claim.selected_node for claim in selected}
        elsewhere = np.zeros(len(self._nodes), dtype=np.bool_)
        if chosen:
            elsewhere[:] = [bool(chosen - {name}) for name in self._nodes.names]
        self._reject(elsewhere, Conflict.NO_VOLUME, self._selected_elsewhere)
        here = ~elsewhere & (self.error == 0)
        try:
            searches = [
                Search(claim, self._storage, attributes_classes=attributes_classes)
                for claim in sorted(others, key=lambda claim: claim.size)
            ]
        except SearchError as wrong:
            self._fail(here, str(wrong))
            return
        self._matches = find_matches(searches, self._lookup, len(self._nodes))
        for claim in selected:
            self._settle_provision(provision(claim, here, self._storage, self._lookup), None)
        for number, search in enumerate(self._matches.searches):
            needed = here & (self._matches.choices[number] == NO_VOLUME)
            self._settle_provision(provision(search.claim, needed, self._storage, self._lookup), number)

    def _settle_provision(self, one: Provision, search: int | None) -> None:
        """The first claim for which no volume can be made settles a node; those after it are not looked at."""
        self._provisions.append(one)
        settled = self.conflicts & (Conflict.NO_VOLUME | Conflict.NO_SPACE) > 0
        no_topology, no_space = one.no_topology, one.no_space & ~one.no_topology

        def outside(node: ClusterRow) -> tuple[Finding, ...]:
            found = self._unmatched(one, search, node)
            if found and not one.storage_class.can_provision:
                return found
            topology = allowed_topologies(one.storage_class)
            mismatch = ProvisioningTopologyMismatch(
                claim=claim_facts(one.claim),
                provisioner=one.storage_class.provisioner,
                terms=() if topology is None else term_matches(topology, self._labels(node)),
            )
            return (*found, mismatch)

        def full(node: ClusterRow) -> tuple[Finding, ...]:
            return (*self._unmatched(one, search, node), one.insufficient(node))

        self._reject(no_topology & ~settled, Conflict.NO_VOLUME, outside)
        self._reject(no_space & ~settled, Conflict.NO_SPACE, full)

    # --- the account

    def _labels(self, node: ClusterRow) -> dict[str, str]:
        return self._nodes.cluster.nodes[node].metadata.labels

    def explain(self, node: ClusterRow) -> tuple[Finding, ...]:
        if self.error[node]:
            return (PluginMessage(text=self.errors[int(self.error[node])]),)
        return tuple(finding for mask, findings in self._explain if mask[node] for finding in findings(node))

    def _mismatch(self, bound: _Bound, node: ClusterRow) -> tuple[Finding, ...]:
        return (bound.mismatch(node, self._labels(node)),)

    def _selected_elsewhere(self, node: ClusterRow) -> tuple[Finding, ...]:
        name = self._nodes.cluster.names[node]
        return tuple(
            SelectedNodeMismatch(claim=claim.key, selected_node=claim.selected_node)
            for claim in self.claims.delayed
            if claim.selected_node is not None and claim.selected_node != name
        )

    def _unmatched(self, one: Provision, search: int | None, node: ClusterRow) -> tuple[Finding, ...]:
        """Why no existing volume does; nothing where there is none and one could be made."""
        found = None if search is None else self._matches.searches[search]
        if found is None or search is None:
            return ()
        if not found.volumes and one.storage_class.can_provision:
            return ()
        taken = self._matches.taken_before(search, node)
        return (
            NoMatchingVolume(
                claim=claim_facts(one.claim),
                provisioner=one.storage_class.provisioner,
                volumes=len(found.volumes),
                lost=found.lost_counts(taken),
                nearest=found.nearest(taken),
            ),
        )

    # --- a node that does

    @cached_property
    def is_settled(self) -> bool:
        """Nothing is left to bind or to make."""
        return not self.claims.delayed

    def bindings(self, node: ClusterRow) -> tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]:
        """Claims with the existing volumes that they would get."""
        chosen = (self._matches.chosen(number, node) for number in range(len(self._matches.searches)))
        pairs = zip(self._matches.searches, chosen, strict=True)
        return tuple((search.claim, volume) for search, volume in pairs if volume is not None)

    def provisions(self, node: ClusterRow) -> tuple[Provision, ...]:
        """Claims for which a volume would be made."""
        return tuple(one for one in self._provisions if one.needed[node])

    def plan(self, node: ClusterRow) -> tuple[Finding, ...]:
        """What would be bound and made."""
        bindings = (
            VolumeToBind(claim=claim_facts(claim), persistent_volume=volume.name, capacity=volume.size_in_bytes)
            for claim, volume in self.bindings(node)
        )
        provisions = (
            VolumeToProvision(
                claim=claim_facts(one.claim),
                provisioner=one.storage_class.provisioner,
                node=self._nodes.cluster.names[node],
            )
            for one in self.provisions(node)
        )
        return (*bindings, *provisions)
