"""What does not fit together about the storage that a pod uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.api.pod_claims import claim_name
from kschedx.api.selectors import NodeSelector, compile_selector
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim, is_bound_to
from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.explain.notes.storage import (
    CapacitySelectorInvalid,
    ClaimClassMissing,
    ClaimVolumeMissing,
    CSINodesWithoutNode,
    EmptyKind,
    EqualVolumes,
    MissingKind,
    NodesWithoutCSINode,
    SelectedNodeMissing,
    StorageNote,
    VolumeBoundElsewhere,
)
from kschedx.plugins.node_volume_limits.attached import is_counted
from kschedx.snapshot.snapshot import Snapshot


def storage_notes(snapshot: Snapshot, pod: Pod) -> tuple[StorageNote, ...]:
    """In the order of the pod's volumes, then what concerns the cluster; none for a pod without volumes."""
    if not any(map(is_counted, pod.spec.volumes)):
        return ()
    names = [claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes]
    found = [snapshot.storage.claim(pod.metadata.namespace, name) for name in dict.fromkeys(names) if name]
    claims = [claim for claim in found if claim is not None]
    return (
        *_missing_kinds(snapshot, pod, lacks_claims=None in found),
        *(note for claim in claims for note in _claim(snapshot, claim)),
        *_csi_nodes(snapshot),
        *_capacities(snapshot, claims),
    )


def _missing_kinds(snapshot: Snapshot, pod: Pod, *, lacks_claims: bool) -> Iterator[StorageNote]:
    """A dump without a kind looks like a cluster that has none of it, unless it says that it is complete."""
    source = snapshot.source
    if lacks_claims and not source.kinds.get("PersistentVolumeClaim"):
        is_known = source.is_complete("PersistentVolumeClaim", pod.metadata.namespace)
        yield (EmptyKind if is_known else MissingKind)(kind="PersistentVolumeClaim")
    if not source.kinds.get("CSINode"):
        yield (EmptyKind if source.is_complete("CSINode") else MissingKind)(kind="CSINode")


def _claim(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[StorageNote]:
    storage = snapshot.storage
    bound = claim.spec.volume_name
    if bound:
        volume = storage.volumes.get(bound)
        if volume is None:
            yield ClaimVolumeMissing(claim=claim.key, volume=bound)
        elif volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
            other = f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"
            yield VolumeBoundElsewhere(claim=claim.key, volume=bound, other=other)
    elif claim.storage_class and claim.storage_class not in storage.classes:
        yield ClaimClassMissing(claim=claim.key, storage_class=claim.storage_class, known=tuple(storage.classes))
    selected = claim.selected_node
    if not bound and selected is not None and selected not in snapshot.cluster.index:
        yield SelectedNodeMissing(claim=claim.key, node=selected)
    yield from _equal_volumes(snapshot, claim)


def _equal_volumes(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Iterator[StorageNote]:
    """kube-scheduler lists volumes in no order, so equal ones are a matter of chance."""
    storage_class = snapshot.storage.classes.get(claim.storage_class)
    if claim.spec.volume_name or storage_class is None or not storage_class.waits_for_first_consumer:
        return
    from kschedx.plugins.volume_binding.matching import Search, SearchError  # most pods have no such claim

    try:
        search = Search(claim, snapshot.storage, attributes_classes=True)
    except SearchError:
        return
    by_reach: dict[NodeSelector | None, list[PersistentVolume]] = {}
    for volume in search.fitting:
        by_reach.setdefault(volume.required_node_affinity, []).append(volume)
    for fitting in by_reach.values():
        equal = tuple(volume.name for volume in fitting if volume.size == fitting[0].size)
        if len(equal) > 1 and not search.prebound:
            yield EqualVolumes(claim=claim.key, volumes=equal)
            return


def _csi_nodes(snapshot: Snapshot) -> Iterator[StorageNote]:
    index, csi_nodes = snapshot.cluster.index, snapshot.storage.csi_nodes
    gone = tuple(name for name in csi_nodes if name not in index)
    if gone:
        yield CSINodesWithoutNode(csi_nodes=gone)
    bare = tuple(name for name in index if name not in csi_nodes)
    if bare and csi_nodes:
        yield NodesWithoutCSINode(nodes=bare)


def _capacities(snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim]) -> Iterator[StorageNote]:
    for name in dict.fromkeys(claim.storage_class for claim in claims if not claim.spec.volume_name):
        for capacity in snapshot.storage.capacities_of_class.get(name, ()):
            if capacity.node_topology is None:
                continue
            try:
                compile_selector(capacity.node_topology)
            except InputError as error:
                yield CapacitySelectorInvalid(capacity=capacity.key, error=str(error))
