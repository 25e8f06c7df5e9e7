"""What does not fit together about the storage that a pod uses, and what kube-scheduler makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kschedx.api.selectors import compile_selector
from kschedx.api.storage import PersistentVolumeClaim, claim_name, is_bound_to
from kschedx.api.types import Pod
from kschedx.errors import InputError, nearest
from kschedx.plugins.node_volume_limits.attached import is_counted
from kschedx.plugins.volume_binding.matching import Search, SearchError
from kschedx.snapshot.snapshot import Snapshot

_SHOWN = 3

Notes = Iterator[tuple[str, str]]
"""Stable id and text."""


def storage_notes(snapshot: Snapshot, pod: Pod) -> tuple[tuple[str, str], ...]:
    """(id, text) in the order of the pod's volumes, then what concerns the cluster; none for a pod without volumes."""
    if not any(map(is_counted, pod.spec.volumes)):
        return ()
    names = [claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes]
    found = [snapshot.storage.claim(pod.metadata.namespace, name) for name in dict.fromkeys(names) if name]
    claims = [claim for claim in found if claim is not None]
    return (
        *_missing_kinds(snapshot, pod, any(names)),
        *(note for claim in claims for note in _claim(snapshot, claim)),
        *_csi_nodes(snapshot),
        *_capacities(snapshot, claims),
    )


def _missing_kinds(snapshot: Snapshot, pod: Pod, has_claims: bool) -> Notes:
    """A dump without a kind looks like a cluster that has none of it, unless it says that it is complete."""
    source = snapshot.source
    if has_claims and not source.kinds.get("PersistentVolumeClaim"):
        if source.is_complete("PersistentVolumeClaim", pod.metadata.namespace):
            yield "empty-kind", "the cluster has no PersistentVolumeClaim: those of the pod do not exist"
        else:
            yield _note(
                "missing-kind", "the snapshot holds no PersistentVolumeClaim at all: was the kind left out of the dump?"
            )
    if not source.kinds.get("CSINode"):
        if source.is_complete("CSINode"):
            yield "empty-kind", "the cluster has no CSINode: kube-scheduler applies no limit on attached volumes"
        else:
            yield _note(
                "missing-kind",
                "the snapshot holds no CSINode: no limit on attached volumes is known, so none was applied",
            )


def _claim(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Notes:
    storage = snapshot.storage
    bound = claim.spec.volume_name
    if bound:
        volume = storage.volumes.get(bound)
        if volume is None:
            yield _note(
                "claim-volume-missing",
                f'claim {claim.key} names volume "{bound}", which does not exist: kube-scheduler schedules no pod '
                "that uses it",
            )
        elif volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
            other = f"claim {volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"
            if other == f"claim {claim.key}":
                other = "an earlier claim of that name (with another uid)"
            yield _note(
                "volume-bound-elsewhere",
                f"claim {claim.key} names volume {bound}, but the volume names {other}: kube-scheduler takes the "
                "claim's word; the volume controller will call the claim lost",
            )
    elif claim.storage_class and claim.storage_class not in storage.classes:
        yield _note(
            "claim-class-missing",
            f'claim {claim.key} names storage class "{claim.storage_class}", which does not exist'
            f"{_hint(claim.storage_class, storage.classes)}: kube-scheduler waits until the claim is bound",
        )
    selected = claim.selected_node
    if not bound and selected is not None and selected not in snapshot.cluster.index:
        yield _note(
            "selected-node-missing",
            f'the volume of claim {claim.key} is to be made for node "{selected}", which does not exist: '
            "kube-scheduler takes no other node until the provisioner gives up",
        )
    yield from _equal_volumes(snapshot, claim)


def _equal_volumes(snapshot: Snapshot, claim: PersistentVolumeClaim) -> Notes:
    """kube-scheduler lists volumes in no order, so equal ones are a matter of chance."""
    storage_class = snapshot.storage.classes.get(claim.storage_class)
    if claim.spec.volume_name or storage_class is None or not storage_class.waits_for_first_consumer:
        return
    volumes = snapshot.storage.volumes_of_class.get(claim.storage_class, ())
    try:
        search = Search(claim, volumes, attributes_classes=True)
    except SearchError:
        return
    for ranks in search.by_reach.values():
        fitting = [search.fitting[rank] for rank in ranks]
        equal = [volume.name for volume in fitting if volume.size == fitting[0].size]
        if len(equal) > 1 and not search.prebound:
            yield _note(
                "equal-volumes",
                f"{len(equal):,} volumes of equal size fit claim {claim.key} ({_listed(equal)}): "
                "kube-scheduler takes any of them",
            )
            return


def _csi_nodes(snapshot: Snapshot) -> Notes:
    index, csi_nodes = snapshot.cluster.index, snapshot.storage.csi_nodes
    gone = [name for name in csi_nodes if name not in index]
    if gone:
        yield _note(
            "csi-node-without-node",
            f"{_count(gone, 'CSINode')} without a node ({_listed(gone)}): kube-scheduler does not look at "
            f"{'it' if len(gone) == 1 else 'them'}",
        )
    bare = [name for name in index if name not in csi_nodes]
    if bare and csi_nodes:
        yield _note(
            "node-without-csi-node",
            f"{_count(bare, 'node')} without a CSINode ({_listed(bare)}): kube-scheduler applies no limit on attached "
            "volumes there",
        )


def _capacities(snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim]) -> Notes:
    for name in dict.fromkeys(claim.storage_class for claim in claims if not claim.spec.volume_name):
        for capacity in snapshot.storage.capacities_of_class.get(name, ()):
            if capacity.node_topology is None:
                continue
            try:
                compile_selector(capacity.node_topology)
            except InputError as error:
                yield _note(
                    "capacity-selector-invalid",
                    f"CSIStorageCapacity {capacity.key} has a nodeTopology that cannot be read ({error}): "
                    "kube-scheduler takes it to be out of every node's reach",
                )


def _note(identifier: str, text: str) -> tuple[str, str]:
    return identifier, text


def _hint(name: str, known: Iterable[str]) -> str:
    hint = nearest(name, known)
    return f" ({hint})" if hint else ""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _count(things: Sequence[str], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"
