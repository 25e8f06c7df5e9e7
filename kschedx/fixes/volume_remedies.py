"""Remedies for volumes: a smaller claim, a volume that would do, fewer volumes on the node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.selectors import LabelSelector
from kschedx.api.storage import (
    CSIPersistentVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from kschedx.api.types import ObjectMeta
from kschedx.findings import (
    InsufficientStorageCapacity,
    NoMatchingVolume,
    ProvisioningTopologyMismatch,
    VolumeLimitExceeded,
)
from kschedx.fixes import steps as s
from kschedx.fixes.new_node import one_more_node
from kschedx.fixes.situation import Place
from kschedx.fixes.victims import deletion, may_go, stay_gone
from kschedx.plugins.volume_binding.matching import Search, SearchError
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import Storage

LEAST_SHARE = 10
"""A claim that could have less than one in this many of what it asks for is not told to ask for that."""
DEFAULT_SIZE = 1 << 30
IN_TREE = "kubernetes.io/"
"""The prefix of provisioners that are no CSI drivers."""

Unmade = NoMatchingVolume | InsufficientStorageCapacity | ProvisioningTopologyMismatch


def volume_remedies(finding: Unmade | VolumeLimitExceeded, place: Place) -> Iterator[s.Step]:
    if isinstance(finding, VolumeLimitExceeded):
        yield from _fewer_volumes(finding, place)
        return
    claim = place.snapshot.storage.claims.get(finding.claim.claim)
    if claim is None:
        return
    if isinstance(finding, NoMatchingVolume):
        yield from released_volumes(claim, place.snapshot)
    smaller = [] if isinstance(finding, ProvisioningTopologyMismatch) else list(_smaller_claim(finding, claim))
    yield from smaller
    storage_class = place.snapshot.storage.classes.get(claim.storage_class)
    if smaller and storage_class is not None and storage_class.can_provision:
        return  # nobody makes by hand what a driver makes
    volume = volume_for(claim, f"{claim.metadata.namespace}-{claim.name}", storage_class, bound=False)
    made_by = storage_class.provisioner if storage_class and storage_class.can_provision else ""
    yield s.CreateVolume(volume=volume, claim_key=claim.key, claim=None, provisioner=made_by)


def _smaller_claim(
    finding: NoMatchingVolume | InsufficientStorageCapacity, claim: PersistentVolumeClaim
) -> Iterator[s.Step]:
    """As much as the largest volume in reach has."""
    if isinstance(finding, InsufficientStorageCapacity):
        largest = finding.largest
    else:
        largest = max((one.capacity for one in finding.nearest if one.lost == "too-small"), default=0)
    if largest * LEAST_SHARE < finding.claim.requested or largest >= finding.claim.requested:
        return
    size = format_quantity(largest, Unit.BYTE)
    requests = {**claim.spec.resources.requests, "storage": size}
    smaller = replace(claim, spec=replace(claim.spec, resources=replace(claim.spec.resources, requests=requests)))
    yield s.ShrinkClaim(claim=smaller, size=size)


def _fewer_volumes(finding: VolumeLimitExceeded, place: Place) -> Iterator[s.Step]:
    """Delete pods that hold volumes alone, the least important first; or let a new node take them."""
    pods = place.snapshot.pods
    alone = (holder.pods[0] for holder in finding.holders if len(holder.pods) == 1)
    rows = {row for key in alone if (row := pods.rows.get(key)) is not None}
    least = sorted((row for row in rows if may_go(row, place.situation)), key=lambda row: pods.priorities[row])
    surplus = finding.attached + finding.wanted - finding.limit
    if len(least) >= surplus and stay_gone(least[:surplus], place.situation):
        yield deletion(least[:surplus], place.snapshot, node=place.node.name)
    yield one_more_node(place)


# --- the volume that would do


def free_volume(claim: PersistentVolumeClaim, snapshot: Snapshot) -> PersistentVolume | None:
    """The volume that the volume controller would bind to the claim: one that names it, or the smallest that fits."""
    try:
        search = Search(claim, snapshot.storage, attributes_classes=True)
    except SearchError:
        return None
    return next(iter((*search.prebound.values(), *search.fitting)), None)


def released_volumes(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Iterator[s.ReleaseVolume]:
    """Volumes that were bound to claims that are gone, and that the claim could have."""
    storage = snapshot.storage
    for volume in storage.volumes_of_class.get(claim.storage_class, ()):
        holder = volume.spec.claim_ref
        if holder is None:
            continue
        key = f"{holder.namespace}/{holder.name}"
        there = storage.claims.get(key)
        if there is not None and (not holder.uid or there.metadata.uid == holder.uid):
            continue
        spec = replace(volume.spec, claim_ref=None)
        free = replace(volume, spec=spec, status=replace(volume.status, phase="Available"))
        try:
            if Search(claim, Storage(volumes={free.name: free}), attributes_classes=True).fitting:
                yield s.ReleaseVolume(volume=free, holder=key, is_its_own=key == claim.key)
        except SearchError:
            return


def volume_for(
    claim: PersistentVolumeClaim, name: str, storage_class: StorageClass | None, *, bound: bool
) -> PersistentVolume:
    """A volume that has all that the claim asks for, within every node's reach. Which storage it stands for is for
    whoever makes it to say."""
    spec = claim.spec
    driver = storage_class.provisioner if storage_class and storage_class.can_provision else ""
    size = claim.size_in_bytes or DEFAULT_SIZE
    reference = ObjectReference(namespace=claim.metadata.namespace, name=claim.name, uid=claim.metadata.uid)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=_labels(spec.selector)),
        spec=PersistentVolumeSpec(
            capacity={"storage": format_quantity(size, Unit.BYTE)},
            access_modes=spec.access_modes or ("ReadWriteOnce",),
            volume_mode=spec.volume_mode,
            storage_class_name=claim.storage_class,
            volume_attributes_class_name=spec.volume_attributes_class_name,
            claim_ref=reference if bound else None,
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name)
            if driver and not driver.startswith(IN_TREE)
            else None,
        ),
        status=PersistentVolumeStatus(phase="Bound" if bound else "Available"),
    )


def _labels(selector: LabelSelector | None) -> dict[str, str]:
    """Labels that a selector picks; what it excludes is simply not there."""
    if selector is None:
        return {}
    wanted = {one.key: one.values[0] if one.values else "true" for one in selector.match_expressions
              if one.operator in ("In", "Exists")}  # fmt: skip
    return {**wanted, **(selector.match_labels or {})}
