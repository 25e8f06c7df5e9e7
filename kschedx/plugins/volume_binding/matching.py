"""Existing volumes for unbound claims, on all nodes at once (FindMatchingVolume in component-helpers/storage/volume).

On a node, the claims take turns in ascending order of size. Each takes a volume that is prebound to it, or else the
smallest that fits and that the node can reach; what one claim took is gone for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.selectors import NodeSelector, Selector, compile_selector
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim, is_bound_to
from kschedx.errors import InputError
from kschedx.findings import LostCount, VolumeCandidate
from kschedx.plugins.volume_binding.ranking import Ranking
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.node_lookup import NodeLookup
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage, VolumeCandidates

NO_VOLUME = -1

_KEPT = 100
"""So many rankings are remembered at a time: each is as long as there are volumes."""

_NEAREST = 10
_FURTHEST_FIRST = (
    "access-modes", "selector", "not-available", "being-deleted", "volume-attributes-class", "volume-mode", "too-small",
    "bound-to-another-claim",
)  # fmt: skip
"""The checks that need no node in reverse order, so that a volume that came further is nearer."""


class SearchError(Exception):
    """A claim that cannot be searched for, in upstream's words: an error on every node."""


class Search:
    """One claim against the volumes of its class: what can be said without a node."""

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
        """Volumes that name the claim, by place: the first of them is taken or none at all."""
        self.free = self._ranking(candidates).fitting(candidates, claim.storage_class)

    def _ranking(self, candidates: VolumeCandidates) -> Ranking:
        """That of claims that ask for the same."""
        known = candidates.derived.setdefault(Ranking, {})
        assert isinstance(known, dict), "nobody else keeps anything under this name"
        claim = self.claim
        likeness = (
            msgspec.json.encode(replace(claim.spec, volume_name="")), claim.storage_class, self._attributes_classes
        )  # fmt: skip
        found = known.get(likeness)
        if found is None:
            if len(known) == _KEPT:
                del known[next(iter(known))]
            unclaimed = candidates.unclaimed(claim.storage_class)
            found = known[likeness] = Ranking(one for one in unclaimed if self._lost(one[1]) is None)
        assert isinstance(found, Ranking), "nobody else keeps anything under this name"
        return found

    def _lost(self, volume: PersistentVolume) -> str | None:
        claim, spec = self.claim.spec, volume.spec
        is_prebound = spec.claim_ref is not None
        if is_prebound and not is_bound_to(volume, self.claim):
            return "bound-to-another-claim"
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
        """Those of the claim's class."""
        return self._storage.volumes_of_class.get(self.claim.storage_class, ())

    @cached_property
    def lost(self) -> Mapping[str, Sequence[PersistentVolume]]:
        """Why volumes lost on every node, with those that did."""
        lost: dict[str, list[PersistentVolume]] = {}
        for volume in self.volumes:
            if (why := self._lost(volume)) is not None:
                lost.setdefault(why, []).append(volume)
        return lost

    @property
    def fitting(self) -> Sequence[PersistentVolume]:
        """Volumes that any node may take that reaches them, smallest first."""
        return self.free.volumes

    def volume(self, place: int) -> PersistentVolume:
        """The one of `prebound` and `fitting` with a place."""
        return self.prebound.get(place) or self.free.ranking.of_place[place]

    # --- the account

    def lost_counts(self, taken: frozenset[str]) -> tuple[LostCount, ...]:
        """Why all volumes lost on a node where other claims of the pod took those of the names `taken`."""
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
        return frozenset(volume.name for volume in self.fitting)

    def _lost_here(self, volume: PersistentVolume, taken: frozenset[str]) -> str:
        if volume.name in taken:
            return "taken"
        is_prebound = volume.name in self._prebound_names
        return "wrong-node" if is_prebound or self._prebound_names <= taken else "not-prebound"

    def nearest(self, taken: frozenset[str]) -> tuple[VolumeCandidate, ...]:
        """The volumes that came furthest."""
        found = [
            self._candidate(volume, self._lost_here(volume, taken))
            for volume in (*self.prebound.values(), *self.fitting[:_NEAREST])[:_NEAREST]
        ]
        for why in _FURTHEST_FIRST:
            volumes = self.lost.get(why, ())
            if why == "too-small":
                volumes = sorted(volumes, key=lambda volume: -volume.size)
            found += [self._candidate(volume, why) for volume in volumes[: _NEAREST - len(found)]]
        return tuple(found)

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
        case "bound-to-another-claim":
            reference = volume.spec.claim_ref
            return f"{reference.namespace}/{reference.name}" if reference else ""
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
    """`zone In [a]`, terms joined by "or"."""
    terms = selector.node_selector_terms if selector else ()
    return " or ".join(
        " and ".join(f"{one.key} {one.operator} [{', '.join(one.values)}]" for one in term.match_expressions)
        for term in terms
    )


# --- the nodes


class Matches(Struct, frozen=True, kw_only=True):
    """What each claim takes on each node: `choices[i]` is (node,), the place of a volume or NO_VOLUME."""

    searches: tuple[Search, ...]
    """In the order in which the claims take turns."""
    choices: tuple[IntArray, ...]

    def taken_before(self, search: int, node: ClusterRow) -> frozenset[str]:
        """Names of the volumes that earlier claims took on a node."""
        earlier = (self.chosen(number, node) for number in range(search))
        return frozenset(volume.name for volume in earlier if volume is not None)

    def chosen(self, search: int, node: ClusterRow) -> PersistentVolume | None:
        place = int(self.choices[search][node])
        return None if place == NO_VOLUME else self.searches[search].volume(place)


def find_matches(searches: Iterable[Search], lookup: NodeLookup, count: int) -> Matches:
    """The volumes that the claims take on each of `count` nodes."""
    turns = tuple(sorted(searches, key=lambda search: search.claim.size))
    choices: list[IntArray] = []
    for search in turns:
        choices.append(_choose(search, choices, lookup, count))
    return Matches(searches=turns, choices=tuple(choices))


def _choose(search: Search, taken: Sequence[IntArray], lookup: NodeLookup, count: int) -> IntArray:
    choice = np.full(count, NO_VOLUME, dtype=np.int64)
    undecided = np.ones(count, dtype=np.bool_)
    for place, volume in search.prebound.items():
        here = np.flatnonzero(undecided)
        here = here[~_is_taken(place, taken, here)]
        reached = here[np.isin(here, lookup.selector(volume.required_node_affinity), assume_unique=True)]
        choice[reached] = place
        undecided[here] = False
    place_of_rank = np.append(search.free.ranking.places, NO_VOLUME)
    if taken:
        # a node looks at no more volumes of one reach than the earlier claims can have taken, and one
        rows, ranks = search.free.offered(lookup, len(taken) + 1)
        free = np.ones(len(rows), dtype=np.bool_)
        for earlier in taken:
            free &= earlier[rows] != place_of_rank[ranks]
        best = search.free.least(rows[free], ranks[free], count)
    else:
        best = search.free.best(lookup, count)
    return np.where(undecided, place_of_rank[best], choice)


def _is_taken(place: int, taken: Sequence[IntArray], rows: IntArray) -> BoolArray:
    """(row,) whether an earlier claim has the volume there."""
    mask = np.zeros(len(rows), dtype=np.bool_)
    for choice in taken:
        mask |= choice[rows] == place
    return mask
