"""Existing volumes for unbound claims, on all nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import LostCount, VolumeCandidate
from kschedx.kube.selectors import NodeSelector, Selector, compile_selector, terms_of
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, is_bound_to
from kschedx.snapshot.columns import BoolArray, ClusterRow, IntArray, Memo, rows_by_group
from kschedx.snapshot.nodes import NodeLookup
from kschedx.snapshot.storage import Storage, VolumeCandidates

# The volumes without a claimRef, by size, and which of them each node gets. Binding or releasing one volume does not
# affect the others: a ranking stays valid until a new volume appears, and a mask over its ranks says which volumes are
# free.

_NONE = np.zeros(0, dtype=np.int64)


class _ReachableNodes(Struct, frozen=True):
    """The nodes that can reach volumes with the same node affinity: `rows[start[reach] : start[reach + 1]]`."""

    lookup: NodeLookup
    rows: IntArray
    start: IntArray


class _VolumeRanking:
    """Volumes that a claim of their class could be bound to while they have no claimRef, smallest first."""

    def __init__(self, volumes: Iterable[tuple[int, PersistentVolume]]) -> None:
        """Volumes with their places in `VolumeCandidates`, in load order: among equals the first one wins."""
        ordered = sorted(volumes, key=lambda item: item[1].size)
        self.volumes = tuple(volume for _, volume in ordered)
        self.places: IntArray = np.array([place for place, _ in ordered], dtype=np.int64)
        reaches: dict[NodeSelector | None, int] = {}
        self.reach: IntArray = np.array(
            [reaches.setdefault(volume.required_node_affinity, len(reaches)) for volume in self.volumes], dtype=np.int64
        )
        """(rank,) equal for volumes with the same node affinity."""
        self._reaches = tuple(reaches)
        self.by_reach, start = rows_by_group(self.reach, len(reaches))  # (rank,) ranks grouped by reach, ascending
        self.first: IntArray = start[self.reach[self.by_reach]]
        """(rank,) where in `by_reach` the group of the same reach starts."""
        self._reached: _ReachableNodes | None = None
        self._fitting: tuple[int, _FreeVolumes] | None = None

    @cached_property
    def volumes_by_place(self) -> Mapping[int, PersistentVolume]:
        return dict(zip(self.places.tolist(), self.volumes, strict=True))

    def free_volumes(self, candidates: VolumeCandidates, storage_class: str) -> _FreeVolumes:
        version = candidates.version(storage_class)
        if self._fitting is None or self._fitting[0] != version:
            self._fitting = version, _FreeVolumes(self, candidates.are_free(self.places))
        return self._fitting[1]

    def reachable_nodes(self, lookup: NodeLookup) -> _ReachableNodes:
        if self._reached is None or self._reached.lookup is not lookup:
            rows = [lookup.selector(reach) for reach in self._reaches]
            start = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            self._reached = _ReachableNodes(lookup, np.concatenate([_NONE, *rows]), start)
        return self._reached


class _FreeVolumes:
    def __init__(self, ranking: _VolumeRanking, is_free: BoolArray) -> None:
        """`is_free` is (rank,)."""
        self.ranking = ranking
        self._is_free = is_free
        self._best: tuple[NodeLookup, IntArray] | None = None

    @cached_property
    def volumes(self) -> Sequence[PersistentVolume]:
        """The free volumes, smallest first."""
        return tuple(self.ranking.volumes[rank] for rank in np.flatnonzero(self._is_free))

    def offered_volumes(self, lookup: NodeLookup, each: int) -> tuple[IntArray, IntArray]:
        """(pair,) nodes and ranks of volumes that they reach: for each node affinity, the first `each` free volumes."""
        ranking, reached = self.ranking, self.ranking.reachable_nodes(lookup)
        free = self._is_free[ranking.by_reach]
        free_before = np.concatenate([[0], np.cumsum(free)])
        turn = free_before[1:] - free_before[ranking.first]
        ranks = ranking.by_reach[free & (turn <= each)]
        first = reached.start[ranking.reach[ranks]]
        counts = reached.start[ranking.reach[ranks] + 1] - first
        before = np.cumsum(counts) - counts
        pairs = np.arange(counts.sum()) + np.repeat(first - before, counts)
        return reached.rows[pairs], np.repeat(ranks, counts)

    def best(self, lookup: NodeLookup, count: int) -> IntArray:
        """(node,) the rank of the volume that each of `count` nodes gets, or the number of all ranks."""
        if self._best is None or self._best[0] is not lookup:
            self._best = lookup, self.least(*self.offered_volumes(lookup, 1), count)
        return self._best[1]

    def least(self, rows: IntArray, ranks: IntArray, count: int) -> IntArray:
        """As `best`, for pairs from `offered_volumes`."""
        best = np.full(count, len(self.ranking.volumes), dtype=np.int64)
        np.minimum.at(best, rows, ranks)
        return best


# Existing volumes for unbound claims, on all nodes at once (FindMatchingVolume in component-helpers/storage/volume). On
# a node, claims are matched in ascending order of size. Each gets the volume that is prebound to it, or else the
# smallest matching volume that the node can reach. Volumes of earlier claims are not available to later ones.

NO_VOLUME = -1

_KEPT = 100  # the maximum number of kept rankings: each is as long as the list of volumes

_NEAREST = 10
_FURTHEST_FIRST = (
    "access-modes", "selector", "not-available", "being-deleted", "volume-attributes-class", "volume-mode", "too-small",
    "released", "bound-to-another-claim",
)  # fmt: skip
"""The checks without a node in reverse order: a volume that passes more of them is nearer."""


class SearchError(Exception):
    """The error of a claim that cannot be matched, as upstream's message: an error on every node."""


_RANKINGS = Memo[dict[object, _VolumeRanking]]()


class VolumeSearch:
    """One claim and the volumes of its class: the part that does not depend on a node."""

    def __init__(self, claim: PersistentVolumeClaim, storage: Storage, *, attributes_classes: bool) -> None:
        """`attributes_classes` is the gate VolumeAttributesClass. Raises `SearchError`."""
        self.claim = claim
        self._storage = storage
        self._attributes_classes = attributes_classes
        if claim.spec.volume_attributes_class_name and not attributes_classes:
            raise SearchError(
                f"unsupported volumeAttributesClassName is set on claim {claim.key} when the feature-gate "
                "VolumeAttributesClass is disabled"
            )
        self._selector = _selector(claim)
        self._size = claim.size
        candidates = storage.candidates
        named = ((candidates.place(volume), volume) for volume in candidates.prebound(claim))
        self.prebound = {place: volume for place, volume in named if self._lost(volume) is None}
        """Volumes whose claimRef names the claim, by place: it gets the first of them or none."""
        self.free = self._ranking(candidates).free_volumes(candidates, claim.storage_class)

    def _ranking(self, candidates: VolumeCandidates) -> _VolumeRanking:
        """Return the ranking for claims with the same requirements."""
        known = _RANKINGS.of(candidates.derived, dict[object, _VolumeRanking])
        claim = self.claim
        likeness = (
            msgspec.json.encode(replace(claim.spec, volume_name="")), claim.storage_class, self._attributes_classes
        )  # fmt: skip
        ranking = known.get(likeness)
        if ranking is None:
            if len(known) == _KEPT:
                del known[next(iter(known))]
            unclaimed = candidates.unclaimed_volumes(claim.storage_class)
            ranking = known[likeness] = _VolumeRanking(item for item in unclaimed if self._lost(item[1]) is None)
        return ranking

    def _lost(self, volume: PersistentVolume) -> str | None:
        claim, spec = self.claim.spec, volume.spec
        is_prebound = spec.claim_ref is not None
        if is_prebound and not is_bound_to(volume, self.claim):
            return "released" if volume.status.phase == "Released" else "bound-to-another-claim"
        if volume.size < self._size:
            return "too-small"
        if claim.volume_mode != spec.volume_mode:
            return "volume-mode"
        wanted = claim.volume_attributes_class_name if self._attributes_classes else ""
        if spec.volume_attributes_class_name != wanted:
            return "volume-attributes-class"
        if volume.metadata.deletion_timestamp is not None:
            return "being-deleted"
        if is_prebound:
            return None
        if volume.status.phase != "Available":
            return "not-available"
        if self._selector is not None and not self._selector.matches(volume.metadata.labels):
            return "selector"
        if not {*claim.access_modes} <= {*spec.access_modes}:
            return "access-modes"
        return None

    @cached_property
    def volumes(self) -> Sequence[PersistentVolume]:
        """The volumes of the claim's class."""
        return self._storage.volumes_of(self.claim.storage_class)

    @cached_property
    def lost(self) -> Mapping[str, Sequence[PersistentVolume]]:
        """The volumes that no node can use, by reason."""
        lost: dict[str, list[PersistentVolume]] = {}
        for volume in self.volumes:
            if (why := self._lost(volume)) is not None:
                lost.setdefault(why, []).append(volume)
        return lost

    @property
    def fitting_volumes(self) -> Sequence[PersistentVolume]:
        """Volumes that any node in reach may get, smallest first."""
        return self.free.volumes

    def volume(self, place: int) -> PersistentVolume:
        """Return the volume with this place from `prebound` or `fitting`."""
        return self.prebound.get(place) or self.free.ranking.volumes_by_place[place]

    # --- findings

    def lost_counts(self, taken: frozenset[str]) -> tuple[LostCount, ...]:
        """Count why volumes do not match on a node where the pod's other claims use the volumes in `taken`."""
        counts = {why: len(volumes) for why, volumes in self.lost.items()}
        gone = sum(name in self._prebound_names or name in self._fitting_names for name in taken)
        counts["taken"] = gone
        if self._prebound_names <= taken:
            counts["wrong-node"] = len(self._prebound_names) + len(self._fitting_names) - gone
        else:
            counts["wrong-node"] = len(self._prebound_names - taken)
            counts["not-prebound"] = len(self._fitting_names - taken)
        ordered = sorted(counts.items(), key=lambda item: -item[1])
        return tuple(LostCount(lost=why, volumes=count) for why, count in ordered if count)

    @cached_property
    def _prebound_names(self) -> frozenset[str]:
        return frozenset(volume.name for volume in self.prebound.values())

    @cached_property
    def _fitting_names(self) -> frozenset[str]:
        return frozenset(volume.name for volume in self.fitting_volumes)

    def _lost_here(self, volume: PersistentVolume, taken: frozenset[str]) -> str:
        if volume.name in taken:
            return "taken"
        is_prebound = volume.name in self._prebound_names
        return "wrong-node" if is_prebound or self._prebound_names <= taken else "not-prebound"

    def nearest(self, taken: frozenset[str]) -> tuple[VolumeCandidate, ...]:
        """Return the volumes that pass the most checks."""
        findings = [
            self._candidate(volume, self._lost_here(volume, taken))
            for volume in (*self.prebound.values(), *self.fitting_volumes[:_NEAREST])[:_NEAREST]
        ]
        for why in _FURTHEST_FIRST:
            volumes = self.lost.get(why, ())
            if why == "too-small":
                volumes = sorted(volumes, key=lambda volume: -volume.size)
            findings += [self._candidate(volume, why) for volume in volumes[: _NEAREST - len(findings)]]
        return tuple(findings)

    @staticmethod
    def _candidate(volume: PersistentVolume, why: str) -> VolumeCandidate:
        return VolumeCandidate(name=volume.name, capacity=volume.size_in_bytes, lost=why, detail=_detail(volume, why))


def _selector(claim: PersistentVolumeClaim) -> Selector | None:
    if claim.spec.selector is None:
        return None
    try:
        return compile_selector(claim.spec.selector)
    except InputError as error:
        raise SearchError(f"error creating internal label selector for claim: {claim.key}: {error}") from None


def _detail(volume: PersistentVolume, why: str) -> str:
    match why:
        case "bound-to-another-claim" | "released":
            reference = volume.spec.claim_ref
            return reference.key if reference else ""
        case "volume-mode":
            return volume.spec.volume_mode
        case "volume-attributes-class":
            return volume.spec.volume_attributes_class_name
        case "being-deleted":
            return volume.metadata.deletion_timestamp or ""
        case "not-available":
            return volume.status.phase
        case "access-modes":
            return ", ".join(volume.spec.access_modes)
        case "selector":
            return ", ".join(f"{key}={value}" for key, value in sorted(volume.metadata.labels.items()))
        case "wrong-node":
            return _reach(volume.required_node_affinity)
        case _:
            return ""


def _reach(selector: NodeSelector | None) -> str:
    """Format as `zone In [a]`, terms joined by "or"."""
    terms = terms_of(selector)
    return " or ".join(
        " and ".join(
            f"{expression.key} {expression.operator} [{', '.join(expression.values)}]"
            for expression in term.match_expressions
        )
        for term in terms
    )


# --- the nodes


class Matches(Struct, frozen=True, kw_only=True):
    """The volume of each claim on each node: `choices[i]` is (node,), the place of a volume or NO_VOLUME."""

    searches: tuple[VolumeSearch, ...]  # in the order in which claims are matched
    choices: tuple[IntArray, ...]

    def earlier_volumes(self, search: int, node: ClusterRow) -> frozenset[str]:
        """Return the names of the volumes that earlier claims get on a node."""
        earlier = (self.chosen_volume(number, node) for number in range(search))
        return frozenset(volume.name for volume in earlier if volume is not None)

    def chosen_volume(self, search: int, node: ClusterRow) -> PersistentVolume | None:
        place = int(self.choices[search][node])
        return None if place == NO_VOLUME else self.searches[search].volume(place)


def find_matches(searches: Iterable[VolumeSearch], lookup: NodeLookup, count: int) -> Matches:
    """Match the claims with volumes on each of `count` nodes."""
    turns = tuple(sorted(searches, key=lambda search: search.claim.size))
    choices: list[IntArray] = []
    for search in turns:
        choices.append(_choose(search, choices, lookup, count))
    return Matches(searches=turns, choices=tuple(choices))


def _choose(search: VolumeSearch, taken: Sequence[IntArray], lookup: NodeLookup, count: int) -> IntArray:
    choice = np.full(count, NO_VOLUME, dtype=np.int64)
    undecided = np.ones(count, dtype=np.bool_)
    for place, volume in search.prebound.items():
        here = np.flatnonzero(undecided)
        here = here[~_is_used(place, taken, here)]
        reached = here[np.isin(here, lookup.selector(volume.required_node_affinity), assume_unique=True)]
        choice[reached] = place
        undecided[here] = False
    place_of_rank = np.append(search.free.ranking.places, NO_VOLUME)
    if taken:
        # a node looks at no more volumes of one reach than the earlier claims can have taken, and one
        rows, ranks = search.free.offered_volumes(lookup, len(taken) + 1)
        free = np.ones(len(rows), dtype=np.bool_)
        for earlier in taken:
            free &= earlier[rows] != place_of_rank[ranks]
        best = search.free.least(rows[free], ranks[free], count)
    else:
        best = search.free.best(lookup, count)
    return np.where(undecided, place_of_rank[best], choice)


def _is_used(place: int, taken: Sequence[IntArray], rows: IntArray) -> BoolArray:
    """(row,) whether an earlier claim gets the volume there."""
    mask = np.zeros(len(rows), dtype=np.bool_)
    for choice in taken:
        mask |= choice[rows] == place
    return mask


def volume_to_bind(claim: PersistentVolumeClaim, storage: Storage) -> PersistentVolume | None:
    """Return the volume that the volume controller binds to a claim of a class that does not wait for a pod: one that
    names the claim, or the smallest that fits.

    Upstream: findBestMatchForClaim in pkg/controller/volume/persistentvolume/index.go.
    """
    try:
        search = VolumeSearch(claim, storage, attributes_classes=True)
    except SearchError:
        return None
    return next(iter((*search.prebound.values(), *search.fitting_volumes)), None)
