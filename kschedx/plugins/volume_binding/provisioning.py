"""Volumes that would be made for claims, on all nodes at once (checkVolumeProvisions in binder.go)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, compile_selector
from kschedx.api.storage import STORAGE, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kschedx.errors import InputError
from kschedx.findings import InsufficientStorageCapacity, StorageCapacity
from kschedx.plugins.claim_facts import claim_facts, selector_text
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.node_lookup import NodeLookup
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage

UNLIMITED = -1
NO_CAPACITY = -2

_MOST_CAPACITIES = 10


class Provision(Struct, frozen=True, kw_only=True, dict=True):
    """What making a volume for a claim takes. All arrays are (node,)."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    needed: BoolArray
    """No existing volume is bound to the claim there."""
    in_topology: BoolArray
    """The node's labels are among allowedTopologies."""
    capacities: tuple[CSIStorageCapacity, ...]
    """Those of the class, where the driver's capacity counts."""
    capacity: IntArray
    """Position in `capacities` of the one that has room; UNLIMITED where none is asked, NO_CAPACITY where none has."""
    lookup: NodeLookup

    @property
    def no_topology(self) -> BoolArray:
        """Nodes where the class cannot make a volume."""
        outside: BoolArray = self.needed & ~(self.in_topology & self.storage_class.can_provision)
        return outside

    @property
    def no_space(self) -> BoolArray:
        """Nodes where it could, were there room."""
        full: BoolArray = self.capacity == NO_CAPACITY
        return self.needed & full

    @cached_property
    def _largest_first(self) -> tuple[int, ...]:
        """Positions in `capacities`."""
        one = self.capacities
        return tuple(sorted(range(len(one)), key=lambda position: (-(one[position].limit or 0), one[position].key)))

    @cached_property
    def _by_node(self) -> dict[int, list[int]]:
        """Node to the positions in `capacities` of those that are for it, largest first."""
        positions: dict[int, list[int]] = {}
        for position in self._largest_first:
            for row in reachable(self.capacities[position], self.lookup).tolist():
                positions.setdefault(row, []).append(position)
        return positions

    def insufficient(self, node: ClusterRow) -> InsufficientStorageCapacity:
        """The account of a node for which no capacity has room."""
        near = self._by_node.get(node, [])[:_MOST_CAPACITIES]
        far = [one for one in self._largest_first[: _MOST_CAPACITIES + len(near)] if one not in near]
        return InsufficientStorageCapacity(
            claim=claim_facts(self.claim),
            driver=self.storage_class.provisioner,
            capacities=tuple(_facts(self.capacities[one], one in near) for one in (near + far)[:_MOST_CAPACITIES]),
            capacity_count=len(self.capacities),
        )


def allowed_topologies(storage_class: StorageClass) -> NodeSelector | None:
    """The class's topology as a node selector; None allows every node."""
    if not storage_class.allowed_topologies:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=one.key, operator="In", values=one.values)
                    for one in term.match_label_expressions
                )
            )
            for term in storage_class.allowed_topologies
        )
    )


def provision(claim: PersistentVolumeClaim, needed: BoolArray, storage: Storage, lookup: NodeLookup) -> Provision:
    """`claim` names a class that exists."""
    storage_class = storage.classes[claim.storage_class]
    in_topology = np.zeros(len(needed), dtype=np.bool_)
    in_topology[lookup.selector(allowed_topologies(storage_class))] = True
    capacities: tuple[CSIStorageCapacity, ...] = ()
    capacity = np.full(len(needed), UNLIMITED, dtype=np.int64)
    driver = storage.csi_drivers.get(storage_class.provisioner)
    if STORAGE in claim.spec.resources.requests and driver is not None and driver.spec.storage_capacity:
        capacities = storage.capacities_of_class.get(storage_class.name, ())
        capacity[:] = NO_CAPACITY
        for position, one in enumerate(capacities):
            if one.limit is not None and one.limit >= claim.size_in_bytes:
                rows = reachable(one, lookup)
                capacity[rows[capacity[rows] == NO_CAPACITY]] = position
    return Provision(
        claim=claim,
        storage_class=storage_class,
        needed=needed,
        in_topology=in_topology,
        capacities=capacities,
        capacity=capacity,
        lookup=lookup,
    )


def reachable(capacity: CSIStorageCapacity, lookup: NodeLookup) -> IntArray:
    """Rows of the nodes that a capacity is for: none without a topology, or with one that cannot be read."""
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
