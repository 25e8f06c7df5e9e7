"""The VolumeBinding plugin: nodes must reach bound volumes, and unbound claims must get a volume."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import IntFlag
from functools import cached_property, partial
from typing import ClassVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import (
    ClaimBeingDeleted,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    Finding,
    InsufficientStorageCapacity,
    NoMatchingVolume,
    PluginMessage,
    ProvisioningTopologyMismatch,
    SelectedNodeMismatch,
    StorageCapacity,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
)
from kschedx.framework.args import UtilizationShapePoint, VolumeBindingArgs
from kschedx.framework.interface import (
    NOTHING_BOUND,
    PRE_FILTER_SKIP,
    BindingEffect,
    CycleState,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import SKIP, SUCCESS, Code, Status, Verdicts, unresolvable
from kschedx.kube.names import HOSTNAME
from kschedx.kube.scalars import truncated_quotient
from kschedx.kube.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_node_selector,
    compile_selector,
    terms_of,
)
from kschedx.kube.storage import (
    STORAGE,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    InTreePlugin,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TranslationError,
    VolumeNodeAffinity,
    bound_claim,
    bound_volume,
    claim_name,
    not_found_text,
    ownership_error,
    plugin_of,
    translate,
)
from kschedx.kube.types import Node, ObjectMeta, Pod, Volume
from kschedx.plugins.node_affinity import term_matches
from kschedx.plugins.resource_allocation import shape_score
from kschedx.plugins.volume_binding.matching import NO_VOLUME, Matches, SearchError, VolumeSearch, find_matches
from kschedx.plugins.volume_facts import claim_facts, claim_unbound, migrated_plugins, selector_text
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import BoolArray, ClusterRow, Column, IntArray, each_cluster_row
from kschedx.snapshot.nodes import NodeLookup, NodeTable
from kschedx.snapshot.storage import Storage, StorageChange

# A pod's claims on every node: found, matched, provisioned, bound, and scored.

# PreFilter: a pod's claims, and why the pod cannot be scheduled anywhere (binder.go, GetPodVolumeClaims).

REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class PodClaims(Struct, frozen=True, kw_only=True):
    """A pod's claims in the order of its volumes. A claim of two volumes is listed twice."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()  # unbound claims with WaitForFirstConsumer


def _pod_claims(pod: Pod, storage: Storage) -> PodClaims | Status | None:
    """Return the claims to evaluate on nodes, the status that rejects the pod on all nodes, or None without claims."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod.metadata.name, volume)
        if name is None:
            continue
        claim = storage.claim(pod.metadata.namespace, name)
        wrong = _wrong(pod, volume, name, claim)
        if wrong is not None:
            return unresolvable(*wrong)
        assert claim is not None
        claims.append(claim)
    if not claims:
        return None
    unbound = [claim for claim in claims if not claim.is_fully_bound]
    immediate = [claim for claim in unbound if claim.spec.volume_name or not storage.waits(claim)]
    if immediate:
        return unresolvable(REASON_UNBOUND_IMMEDIATE, *(claim_unbound(claim, storage) for claim in immediate))
    return PodClaims(bound=tuple(claim for claim in claims if claim.is_fully_bound), delayed=tuple(unbound))


def _wrong(pod: Pod, volume: Volume, name: str, claim: PersistentVolumeClaim | None) -> tuple[str, Finding] | None:
    """Return the error of a claim, as upstream's message and as a finding."""
    ephemeral = volume.persistent_volume_claim is None
    if claim is None:
        finding = ClaimNotFound(claim=f"{pod.metadata.namespace}/{name}", volume=volume.name, ephemeral=ephemeral)
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"', finding
        return not_found_text("persistentvolumeclaim", name), finding
    if claim.status.phase == "Lost":
        gone = claim.spec.volume_name
        text = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
        return text, ClaimLost(claim=claim.key, persistent_volume=gone)
    if claim.metadata.deletion_timestamp is not None:
        since = claim.metadata.deletion_timestamp
        return f'persistentvolumeclaim "{name}" is being deleted', ClaimBeingDeleted(claim=claim.key, since=since)
    not_owned = ownership_error(claim, pod.metadata) if ephemeral else None
    if not_owned is not None:
        owner = claim.metadata.controller
        return not_owned, ClaimNotOwned(claim=claim.key, owner=f"{owner.kind}/{owner.name}" if owner else "")
    return None


# Volumes to provision for claims, on all nodes at once (checkVolumeProvisions in binder.go).

_UNLIMITED = -1
_NO_CAPACITY = -2

_MOST_CAPACITIES = 10


class _Provision(Struct, frozen=True, kw_only=True, dict=True):
    """Provisioning of a volume for a claim. All arrays are (node,)."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    needed: BoolArray  # whether no existing volume is bound to the claim on the node
    in_topology: BoolArray  # whether allowedTopologies include the node's labels
    capacities: tuple[CSIStorageCapacity, ...]  # the capacities of the class, if the driver publishes capacity
    capacity: IntArray
    """Position in `capacities` of one with enough space; UNLIMITED if none is needed, NO_CAPACITY if none has
    enough."""
    lookup: NodeLookup

    @property
    def no_topology(self) -> BoolArray:
        """Nodes where the class cannot provision a volume."""
        outside: BoolArray = self.needed & ~(self.in_topology & self.storage_class.can_provision)
        return outside

    @property
    def no_space(self) -> BoolArray:
        """Nodes where only capacity is missing."""
        full: BoolArray = self.capacity == _NO_CAPACITY
        return self.needed & full

    @cached_property
    def _largest_first(self) -> tuple[int, ...]:
        """Positions in `capacities`, largest first."""
        capacities = self.capacities
        return tuple(
            sorted(
                range(len(capacities)),
                key=lambda position: (-(capacities[position].limit or 0), capacities[position].key),
            )
        )

    @cached_property
    def _capacities_by_node(self) -> dict[int, list[int]]:
        """Node to the positions in `capacities` that apply to it, largest first."""
        positions: dict[int, list[int]] = {}
        for position in self._largest_first:
            for row in _reachable(self.capacities[position], self.lookup).tolist():
                positions.setdefault(row, []).append(position)
        return positions

    def insufficient(self, node: ClusterRow) -> InsufficientStorageCapacity:
        """Explain why no capacity of a node has enough space."""
        near = self._capacities_by_node.get(node, [])[:_MOST_CAPACITIES]
        far = [capacity for capacity in self._largest_first[: _MOST_CAPACITIES + len(near)] if capacity not in near]
        return InsufficientStorageCapacity(
            claim=claim_facts(self.claim),
            driver=self.storage_class.provisioner,
            capacities=tuple(
                _facts(self.capacities[capacity], capacity in near) for capacity in (near + far)[:_MOST_CAPACITIES]
            ),
            capacity_count=len(self.capacities),
        )


def _allowed_topologies(storage_class: StorageClass) -> NodeSelector | None:
    """Return the class's allowedTopologies as a node selector; None allows every node."""
    if not storage_class.allowed_topologies:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    SelectorRequirement(key=expression.key, operator="In", values=expression.values)
                    for expression in term.match_label_expressions
                )
            )
            for term in storage_class.allowed_topologies
        )
    )


def _provision(claim: PersistentVolumeClaim, needed: BoolArray, storage: Storage, lookup: NodeLookup) -> _Provision:
    """The class that `claim` names has to exist."""
    storage_class = storage.classes[claim.storage_class]
    in_topology = np.zeros(len(needed), dtype=np.bool_)
    in_topology[lookup.selector(_allowed_topologies(storage_class))] = True
    capacities: tuple[CSIStorageCapacity, ...] = ()
    capacity = np.full(len(needed), _UNLIMITED, dtype=np.int64)
    driver = storage.csi_drivers.get(storage_class.provisioner)
    if STORAGE in claim.spec.resources.requests and driver is not None and driver.spec.storage_capacity:
        capacities = storage.capacities_of_class.get(storage_class.name, ())
        capacity[:] = _NO_CAPACITY
        for position, storage_capacity in enumerate(capacities):
            if storage_capacity.limit is not None and storage_capacity.limit >= claim.size_in_bytes:
                rows = _reachable(storage_capacity, lookup)
                capacity[rows[capacity[rows] == _NO_CAPACITY]] = position
    return _Provision(
        claim=claim,
        storage_class=storage_class,
        needed=needed,
        in_topology=in_topology,
        capacities=capacities,
        capacity=capacity,
        lookup=lookup,
    )


def _reachable(capacity: CSIStorageCapacity, lookup: NodeLookup) -> IntArray:
    """Rows of the nodes that a capacity applies to: none without a topology or with an invalid one."""
    if capacity.node_topology is None:
        return np.zeros(0, dtype=np.int64)
    try:
        return lookup.requirements(compile_selector(capacity.node_topology).requirements)
    except InputError:
        return np.zeros(0, dtype=np.int64)


def _facts(capacity: CSIStorageCapacity, is_reachable: bool) -> StorageCapacity:
    return StorageCapacity(
        name=capacity.key,
        limit=capacity.limit,
        reachable=is_reachable,
        topology="" if capacity.node_topology is None else selector_text(capacity.node_topology),
    )


# The result for a pod's claims on every node of the cluster (FindPodVolumes in binder.go). It does not depend on the
# pods of a node, so it is computed once per cycle.


class Conflict(IntFlag):
    """Why a node is rejected, in the order of upstream's reasons."""

    NODE_AFFINITY = 1  # the node cannot reach a bound volume
    NO_VOLUME = 2  # no volume matches an unbound claim
    NO_SPACE = 4  # the node has not enough storage capacity to provision a volume
    VOLUME_MISSING = 8  # a bound claim's volume does not exist


_Explain = Callable[[ClusterRow], tuple[Finding, ...]]


class _Bound(Struct, frozen=True, kw_only=True):
    """A bound claim's volume on all nodes; arrays are (node,)."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    reached: BoolArray
    migrated: BoolArray  # nodes that treat an in-tree volume as its CSI driver's
    as_csi: PersistentVolume | None = None
    error: str = ""  # why the volume cannot be translated

    def mismatch(self, row: ClusterRow, node: Node) -> Finding:
        if self.volume is None:
            return VolumeNotFound(claim=self.claim.key, persistent_volume=self.claim.spec.volume_name)
        volume = self.as_csi if self.as_csi is not None and self.migrated[row] else self.volume
        required = volume.required_node_affinity
        return VolumeNodeAffinityMismatch(
            claim=self.claim.key,
            persistent_volume=volume.name,
            terms=() if required is None else term_matches(compile_node_selector(required), node),
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
        """`migrated`: in-tree plugins whose volumes count as CSI drivers' on nodes that migrate them."""
        self._migrated_plugins = migrated
        self._storage = storage
        self._nodes = nodes
        self._lookup = NodeLookup.of(nodes)
        self.claims = claims
        self.conflicts: IntArray = np.zeros(len(nodes), dtype=np.int64)  # sums of `Conflict`
        self.errors: list[str] = [""]
        self.error: IntArray = np.zeros(len(nodes), dtype=np.int64)  # position in `errors`; 0 means no error
        self._explain: list[tuple[BoolArray, _Explain]] = []
        self._matches = Matches(searches=(), choices=())
        self._provisions: list[_Provision] = []
        self._settle_bound()
        self._settle_unbound(attributes_classes)

    # --- evaluating the claims

    def _reject(self, mask: BoolArray, conflict: Conflict, explain: _Explain) -> None:
        self.conflicts[mask] |= conflict
        self._explain.append((mask, explain))

    def _fail(self, mask: BoolArray, text: str) -> None:
        self.error[mask & (self.error == 0)] = len(self.errors)
        self.errors.append(text)

    def _settle_bound(self) -> None:
        """The first bound claim that fails decides about a node."""
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
        migrated = self._migrated_nodes(plugin)
        try:
            as_csi = translate(volume)
        except TranslationError as wrong:
            error = f"could not translate pv: {wrong}"
            return _Bound(claim=claim, volume=volume, reached=reached, migrated=migrated, error=error)
        reached = np.where(migrated, self._mask(as_csi), reached)
        return _Bound(claim=claim, volume=volume, reached=reached, migrated=migrated, as_csi=as_csi)

    def _mask(self, volume: PersistentVolume) -> BoolArray:
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        mask[self._lookup.selector(volume.required_node_affinity)] = True
        return mask

    def _migrated_nodes(self, plugin: InTreePlugin) -> BoolArray:
        csi_nodes = (self._storage.csi_nodes.get(name) for name in self._nodes.names)
        return np.array([it is not None and plugin.name in it.migrated_plugins for it in csi_nodes], dtype=np.bool_)

    def _settle_unbound(self, attributes_classes: bool) -> None:
        selected = [claim for claim in self.claims.delayed if claim.selected_node is not None]
        others = [claim for claim in self.claims.delayed if claim.selected_node is None]
        chosen = {claim.selected_node for claim in selected}
        elsewhere = np.zeros(len(self._nodes), dtype=np.bool_)
        if chosen:
            elsewhere[:] = [bool(chosen - {name}) for name in self._nodes.names]
        self._reject(elsewhere, Conflict.NO_VOLUME, self._selection_mismatches)
        here = ~elsewhere & (self.error == 0)
        try:
            searches = [
                VolumeSearch(claim, self._storage, attributes_classes=attributes_classes)
                for claim in sorted(others, key=lambda claim: claim.size)
            ]
        except SearchError as wrong:
            self._fail(here, str(wrong))
            return
        self._matches = find_matches(searches, self._lookup, len(self._nodes))
        for claim in selected:
            self._settle_provision(_provision(claim, here, self._storage, self._lookup), None)
        for number, search in enumerate(self._matches.searches):
            needed = here & (self._matches.choices[number] == NO_VOLUME)
            self._settle_provision(_provision(search.claim, needed, self._storage, self._lookup), number)

    def _settle_provision(self, claim_provision: _Provision, search: int | None) -> None:
        """The first claim that cannot be provisioned decides about a node; later claims are not evaluated."""
        self._provisions.append(claim_provision)
        settled = self.conflicts & (Conflict.NO_VOLUME | Conflict.NO_SPACE) > 0
        no_topology, no_space = claim_provision.no_topology, claim_provision.no_space & ~claim_provision.no_topology

        def outside(node: ClusterRow) -> tuple[Finding, ...]:
            findings = self._explain_unmatched(claim_provision, search, node)
            if findings and not claim_provision.storage_class.can_provision:
                return findings
            topology = _allowed_topologies(claim_provision.storage_class)
            mismatch = ProvisioningTopologyMismatch(
                claim=claim_facts(claim_provision.claim),
                provisioner=claim_provision.storage_class.provisioner,
                terms=()
                if topology is None
                else term_matches(compile_node_selector(topology), self._nodes.cluster.nodes[node]),
            )
            return (*findings, mismatch)

        def full(node: ClusterRow) -> tuple[Finding, ...]:
            return (*self._explain_unmatched(claim_provision, search, node), claim_provision.insufficient(node))

        self._reject(no_topology & ~settled, Conflict.NO_VOLUME, outside)
        self._reject(no_space & ~settled, Conflict.NO_SPACE, full)

    # --- findings

    def explain(self, node: ClusterRow) -> tuple[Finding, ...]:
        if self.error[node]:
            return (PluginMessage(text=self.errors[int(self.error[node])]),)
        return tuple(finding for mask, findings in self._explain if mask[node] for finding in findings(node))

    def _mismatch(self, bound: _Bound, node: ClusterRow) -> tuple[Finding, ...]:
        return (bound.mismatch(node, self._nodes.cluster.nodes[node]),)

    def _selection_mismatches(self, node: ClusterRow) -> tuple[Finding, ...]:
        name = self._nodes.cluster.names[node]
        return tuple(
            SelectedNodeMismatch(claim=claim.key, selected_node=claim.selected_node)
            for claim in self.claims.delayed
            if claim.selected_node is not None and claim.selected_node != name
        )

    def _explain_unmatched(
        self, claim_provision: _Provision, search: int | None, node: ClusterRow
    ) -> tuple[Finding, ...]:
        """Explain why no existing volume matches; empty if there is none and one could be provisioned."""
        volume_search = None if search is None else self._matches.searches[search]
        if volume_search is None or search is None:
            return ()
        if not volume_search.volumes and claim_provision.storage_class.can_provision:
            return ()
        taken = self._matches.earlier_volumes(search, node)
        return (
            NoMatchingVolume(
                claim=claim_facts(claim_provision.claim),
                provisioner=claim_provision.storage_class.provisioner,
                volumes=len(volume_search.volumes),
                lost=volume_search.lost_counts(taken),
                nearest=volume_search.nearest(taken),
            ),
        )

    # --- a feasible node

    @cached_property
    def is_settled(self) -> bool:
        """Whether nothing has to be bound or provisioned."""
        return not self.claims.delayed

    def bindings(self, node: ClusterRow) -> tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]:
        """Return the claims with the existing volumes that they would be bound to."""
        chosen = (self._matches.chosen_volume(number, node) for number in range(len(self._matches.searches)))
        pairs = zip(self._matches.searches, chosen, strict=True)
        return tuple((search.claim, volume) for search, volume in pairs if volume is not None)

    def provisions(self, node: ClusterRow) -> tuple[_Provision, ...]:
        """Return the claims for which a volume would be provisioned."""
        return tuple(claim_provision for claim_provision in self._provisions if claim_provision.needed[node])

    def plan(self, node: ClusterRow) -> tuple[Finding, ...]:
        """Return what would be bound and provisioned."""
        bindings = (
            VolumeToBind(claim=claim_facts(claim), persistent_volume=volume.name, capacity=volume.size_in_bytes)
            for claim, volume in self.bindings(node)
        )
        provisions = (
            VolumeToProvision(
                claim=claim_facts(claim_provision.claim),
                provisioner=claim_provision.storage_class.provisioner,
                node=self._nodes.cluster.names[node],
            )
            for claim_provision in self.provisions(node)
        )
        return (*bindings, *provisions)


def _settle(binding: Binding, node: ClusterRow, nodes: NodeTable, storage: Storage) -> StorageChange:
    """Return the changes when every claim of a pod on this node has a volume."""
    claims: dict[str, PersistentVolumeClaim] = {}
    volumes: dict[str, PersistentVolume] = {}
    for claim, volume in binding.bindings(node):
        volumes[volume.name] = bound_volume(volume, claim)
        claims[claim.key] = bound_claim(claim, volume.name)
    for claim_provision in binding.provisions(node):
        made_volume = _provisioned_volume(claim_provision, node, nodes, storage)
        volumes[made_volume.name] = made_volume
        claims[claim_provision.claim.key] = bound_claim(claim_provision.claim, made_volume.name)
    return StorageChange(claims=claims, volumes=volumes)


def _provisioned_volume(
    claim_provision: _Provision, node: ClusterRow, nodes: NodeTable, storage: Storage
) -> PersistentVolume:
    """Return the volume that the driver provisions: accessible from the node, by the driver's topology keys there."""
    claim, provisioner, name = (
        claim_provision.claim,
        claim_provision.storage_class.provisioner,
        nodes.cluster.names[node],
    )
    csi_node = storage.csi_nodes.get(name)
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    keys = next((driver.topology_keys for driver in drivers if driver.name == provisioner), ())
    labels = nodes.cluster.nodes[node].metadata.labels
    terms = tuple(SelectorRequirement(key=key, operator="In", values=(labels[key],)) for key in keys if key in labels)
    reach = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=terms),)))
    volume = f"pvc-{claim.metadata.namespace}-{claim.metadata.name}"
    made_volume = PersistentVolume(
        metadata=ObjectMeta(name=volume),
        spec=PersistentVolumeSpec(
            capacity=dict(claim.spec.resources.requests),
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            storage_class_name=claim.storage_class,
            node_affinity=reach if terms else None,
            csi=CSIPersistentVolumeSource(driver=provisioner, volume_handle=volume),
        ),
    )
    return bound_volume(made_volume, claim)


# The score of a node by the storage that the pod's claims use (scorer.go).

_FULL = 100


def score(binding: Binding, node: ClusterRow, shape: Sequence[UtilizationShapePoint], *, with_provisions: bool) -> int:
    """Return 0 to 100, the mean over storage classes: for volumes to bind or, `with_provisions`, for volumes to
    provision if none are bound."""
    classes: dict[str, tuple[int, int]] = {}
    bindings = binding.bindings(node)
    for claim, volume in bindings:
        requested, capacity = classes.get(volume.spec.storage_class_name, (0, 0))
        total = requested + claim.size_in_bytes, capacity + volume.size_in_bytes
        classes[volume.spec.storage_class_name] = total
    for claim_provision in binding.provisions(node) if with_provisions and not bindings else ():
        position = int(claim_provision.capacity[node])
        if position < 0:
            continue
        name = claim_provision.claim.spec.storage_class_name or ""
        # all claims of a class have the same capacity, so it is not summed
        requested = classes.get(name, (0, 0))[0]
        classes[name] = requested + claim_provision.claim.size_in_bytes, claim_provision.capacities[position].free
    if not classes:
        return 0
    scores = [shape_score(shape, _utilization(*amounts)) for amounts in classes.values()]
    return math.floor(sum(scores) / len(scores) + 0.5)


def _utilization(requested: int, capacity: int) -> int:
    """Return percent; 100 without enough capacity."""
    if capacity == 0 or requested > capacity:
        return _FULL
    return truncated_quotient(requested * _FULL, capacity)


def _binding_key(claims: PodClaims, storage: Storage) -> Hashable:
    """Return a value that is equal for pods whose claims can be bound, or are bound, on the same nodes."""
    bound = tuple(_reach(claim, storage) for claim in claims.bound)
    names = [claim.key for claim in claims.delayed]
    delayed = tuple((names.index(claim.key), *_claim_key(claim, storage)) for claim in claims.delayed)
    return bound, delayed


def _reach(claim: PersistentVolumeClaim, storage: Storage) -> Hashable:
    """Return which nodes can reach a bound claim's volume."""
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        return None
    # the CSI translation of an in-tree volume depends on more than its node affinity
    return volume.name if plugin_of(volume.spec) is not None else (volume.required_node_affinity,)


def _claim_key(claim: PersistentVolumeClaim, storage: Storage) -> tuple[Hashable, ...]:
    """Return what a claim requests and which volumes it could get."""
    candidates = storage.candidates
    prebound = tuple(volume.name for volume in candidates.prebound(claim))
    spec = msgspec.json.encode(replace(claim.spec, volume_name=""))
    return spec, claim.storage_class, claim.selected_node, prebound, candidates.version(claim.storage_class)


REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_REASON_NO_SPACE = "node(s) did not have enough free storage"
_REASON_VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_BINDING: StateKey[Binding | None] = StateKey("VolumeBinding", "not found")  # None for a pod without claims

_EVERY_CONFLICT = sum(Conflict)


class VolumeBinding(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """A node must reach the volumes of bound claims and provide one for each claim with WaitForFirstConsumer."""

    name = "VolumeBinding"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {
        "volume-node-affinity-mismatch": texts_of_all_releases("volume_node_affinity_conflict"),
        "no-matching-volume": (REASON_NO_VOLUME,),
        "insufficient-storage-capacity": (_REASON_NO_SPACE,),
        "volume-not-found": (_REASON_VOLUME_MISSING,),
        "claim-unbound": (REASON_UNBOUND_IMMEDIATE,),
        "claim-not-found": (
            'persistentvolumeclaim "{subject}" not found',
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "{subject}"',
        ),
        "claim-being-deleted": ('persistentvolumeclaim "{subject}" is being deleted',),
        "claim-lost": ('persistentvolumeclaim "{subject}" bound to non-existent persistentvolume "{volume}"',),
        "claim-not-owned": ("PVC {subject} was not created for pod {pod} (pod is not owner)",),
    }

    def reads(self, pod: Pod) -> Hashable:
        return None

    def distinguishes_by(self, pod: Pod) -> Hashable:
        claims = _pod_claims(pod, self.handle.snapshot.storage)
        return pod.key if isinstance(claims, Status) else claims and _binding_key(claims, self.handle.snapshot.storage)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        storage = self.handle.snapshot.storage
        claims = _pod_claims(pod, storage)
        if isinstance(claims, Status):
            return PreFilterResult(status=claims)
        if claims is None:
            state[_BINDING] = None
            return PRE_FILTER_SKIP
        release = self.handle.release
        state[_BINDING] = Binding(
            claims,
            storage,
            self.handle.nodes,
            attributes_classes=release.enabled("VolumeAttributesClass"),
            migrated=migrated_plugins(release),
        )
        named = release.behavior.local_volumes_name_their_nodes
        return PreFilterResult(nodes=_local_nodes(claims.bound, storage) if named else None)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        binding = state[_BINDING]
        if binding is None:
            return Verdicts.success(len(nodes))
        conflicts, errors = binding.conflicts[nodes.rows], binding.error[nodes.rows]
        codes = np.where(conflicts > 0, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.SUCCESS)
        reasons = [self._reasons(Conflict(sum_)) for sum_ in range(_EVERY_CONFLICT + 1)]
        reasons += [(text,) for text in binding.errors]
        return Verdicts(
            codes=np.where(errors > 0, Code.ERROR, codes).astype(np.int64),
            reasons=Column(np.where(errors > 0, _EVERY_CONFLICT + 1 + errors, conflicts), reasons),
            explain=lambda row: binding.explain(nodes.cluster_row(row)),
        )

    def _reasons(self, conflict: Conflict) -> tuple[str, ...]:
        texts = {
            Conflict.NODE_AFFINITY: self.handle.release.messages.volume_node_affinity_conflict,
            Conflict.NO_VOLUME: REASON_NO_VOLUME,
            Conflict.NO_SPACE: _REASON_NO_SPACE,
            Conflict.VOLUME_MISSING: _REASON_VOLUME_MISSING,
        }
        return tuple(text for named_conflict, text in texts.items() if named_conflict in conflict)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        if not self._scores:
            return SKIP
        binding = state[_BINDING]
        provisions_count = self.handle.release.behavior.provisioned_volumes_are_scored
        has_bindings = binding is not None and any(binding.bindings(row) for row in each_cluster_row(nodes.home_rows))
        return SUCCESS if provisions_count or has_bindings else SKIP

    @property
    def _scores(self) -> bool:
        return self.handle.release.enabled(self.handle.release.arguments.storage_scoring_gate)

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        if not self._scores:
            return np.zeros(len(nodes), dtype=np.int64)
        binding = state[_BINDING]
        shape = self.args.shape if isinstance(self.args, VolumeBindingArgs) else None
        if binding is None or not shape:
            return np.zeros(len(nodes), dtype=np.int64)
        with_provisions = self.handle.release.behavior.provisioned_volumes_are_scored
        rows = each_cluster_row(nodes.home_rows)
        scores = (score(binding, row, shape, with_provisions=with_provisions) for row in rows)
        return np.fromiter(scores, dtype=np.int64, count=len(nodes))

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Bind the claims to volumes in memory, or plan their provisioning."""
        binding = state[_BINDING]
        return SUCCESS if binding is None or binding.is_settled else Status(findings=binding.plan(node))

    def bound(self, state: CycleState, pod: Pod, node: ClusterRow) -> BindingEffect:
        if _BINDING not in state or (binding := state[_BINDING]) is None or binding.is_settled:
            return NOTHING_BOUND
        return BindingEffect(storage=_settle(binding, node, self.handle.nodes, self.handle.snapshot.storage))

    def pre_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Write the bindings to the cluster. kube-scheduler then waits for the volume controller."""
        binding = state[_BINDING]
        return SKIP if binding is None or binding.is_settled else Status(findings=binding.plan(node))


def _local_nodes(bound: Iterable[PersistentVolumeClaim], storage: Storage) -> frozenset[str] | None:
    """Return the node names that all local volumes with node names agree on; None if none has any, or if a volume is
    missing. From 1.27 to 1.31, PreFilter keeps only these nodes (GetEligibleNodes in volumebinding/binder.go,
    GetLocalPersistentVolumeNodeNames in pkg/volume/util/util.go)."""
    volumes = [storage.volumes.get(claim.spec.volume_name) for claim in bound]
    named = [names for volume in volumes if volume is not None and (names := _named_hosts(volume))]
    return None if not named or None in volumes else frozenset.intersection(*named)


def _named_hosts(volume: PersistentVolume) -> frozenset[str]:
    """Return the hostnames of all terms; those within one term must agree. They are treated as node names."""
    named: frozenset[str] = frozenset()
    for term in terms_of(volume.required_node_affinity):
        hosts = [frozenset(e.values) for e in term.match_expressions if e.key == HOSTNAME and e.operator == "In"]
        if hosts:
            named |= frozenset.intersection(*hosts)
    return named
