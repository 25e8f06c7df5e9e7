"""Pods whose claims come to the same on every node, though they are other claims and volumes."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
from msgspec.structs import replace

from kschedx.api.csi_translation import plugin_of
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.plugins.volume_binding.claims import PodClaims
from kschedx.snapshot.storage import Storage


def alike(claims: PodClaims, storage: Storage) -> Hashable:
    """Equal for pods whose claims can be bound, or are, on the same nodes."""
    bound = tuple(_reach(claim, storage) for claim in claims.bound)
    names = [claim.key for claim in claims.delayed]
    delayed = tuple((names.index(claim.key), *_wanted(claim, storage)) for claim in claims.delayed)
    return bound, delayed


def _reach(claim: PersistentVolumeClaim, storage: Storage) -> Hashable:
    """Where a bound claim's volume can be reached."""
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        return None
    # how a volume of an in-tree plugin reads as its driver's is in more than its node affinity
    return volume.name if plugin_of(volume.spec) is not None else (volume.required_node_affinity,)


def _wanted(claim: PersistentVolumeClaim, storage: Storage) -> tuple[Hashable, ...]:
    """What a claim asks for, and which volumes it could get."""
    candidates = storage.candidates
    prebound = tuple(volume.name for volume in candidates.prebound(claim))
    spec = msgspec.json.encode(replace(claim.spec, volume_name=""))
    return spec, claim.storage_class, claim.selected_node, prebound, candidates.version(claim.storage_class)
