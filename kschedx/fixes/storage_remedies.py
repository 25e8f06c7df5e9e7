"""Remedies for volumes: a smaller claim, a volume that would fit, or fewer volumes on the node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from kschedx import findings as f
from kschedx.errors import differs_by_one_letter
from kschedx.explain.claim_causes import ephemeral_claim, ephemeral_claim_refusal, wrong_attributes_class
from kschedx.explain.cycle_notes import released_volume
from kschedx.fixes import steps as s
from kschedx.fixes.changed_volumes import changed_volumes, fits_claim, is_on_any, stranded_volumes
from kschedx.fixes.eviction import can_evict, deletion, stay_deleted
from kschedx.fixes.phrases import join_phrases
from kschedx.fixes.proposal import CONTROLLER_MANAGER
from kschedx.fixes.provisioning import (
    OF_ACCESS_MODES,
    class_allowing,
    class_with_known_labels,
    is_in_trouble,
    provisioner_repair,
    usual_driver,
)
from kschedx.fixes.raised_quota import EXCEEDED, RaisedQuota, raised_quota
from kschedx.fixes.trial import RemedyCandidate
from kschedx.kube.documents import with_spec
from kschedx.kube.names import PRESENT_TOPOLOGY
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_selector,
    terms_of,
)
from kschedx.kube.storage import (
    BETA_STORAGE_CLASS,
    DEFAULT_CLASS,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
    bound_claim,
    claim_name,
    default_class,
    is_bound_to,
    is_csi_name,
    volume_for,
    with_default_class,
)
from kschedx.kube.types import FILESYSTEM, ObjectMeta, PersistentVolumeClaimSpec, VolumeResourceRequirements
from kschedx.kube.typos import nearest_name
from kschedx.plugins.volume_binding.matching import volume_to_bind
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import Storage

_LEAST_CLAIM_SHARE = 10  # the divisor of a claim's request below which no fix lowers it

_Unmade = f.NoMatchingVolume | f.InsufficientStorageCapacity | f.ProvisioningTopologyMismatch


def volume_remedies(
    finding: _Unmade | f.VolumeLimitExceeded | f.VolumeNodeAffinityMismatch, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    if isinstance(finding, f.VolumeNodeAffinityMismatch):
        yield from _renamed_topology(finding, place)
        return
    if isinstance(finding, f.VolumeLimitExceeded):
        pods = place.snapshot.pods
        alone = (holder.pods[0] for holder in finding.holders if len(holder.pods) == 1)
        rows = {row for key in alone if (row := pods.rows.get(key)) is not None}
        least = sorted((row for row in rows if can_evict(row, place.situation)), key=lambda row: pods.priorities[row])
        surplus = finding.attached + finding.wanted_count - finding.limit
        if len(least) >= surplus and stay_deleted(least[:surplus], place.situation):
            yield deletion(least[:surplus], place.snapshot, node=place.node.name)
        return
    claim = place.snapshot.storage.claims.get(finding.claim.claim)
    if claim is None:
        return
    if isinstance(finding, f.NoMatchingVolume):
        yield from _released_volumes(claim, place.snapshot)
        yield from stranded_volumes(claim, place)
        yield from _bound_claims(claim, place)
        yield from _match_volume(claim, place, at_once=False)
        yield from changed_volumes(claim, place.snapshot.storage, at_once=False)
    storage_class = place.snapshot.storage.classes.get(claim.storage_class)
    if isinstance(finding, f.ProvisioningTopologyMismatch):
        others = list(_with_other_classes(claim, place.snapshot.storage))
        yield from others
        if storage_class is None or others:
            return
        corrected = class_with_known_labels(storage_class, place.snapshot)
        if (other := corrected or class_allowing(storage_class, place.node)) is not None:
            cost = s.Cost.TYPO if corrected else s.Cost.CONSTRAINT
            yield s.ObjectStep(title=other[1], cost=cost, group=s.FixGroup.CLUSTER, objects=other[:1])
        return  # no volume is created by hand if a driver creates it
    smaller = list(_smaller_claim(finding, claim)) if isinstance(finding, f.InsufficientStorageCapacity) else []
    yield from smaller
    volume = volume_for(claim, f"{claim.metadata.namespace}-{claim.name}", storage_class, bound=False)
    made_by = storage_class.provisioner if storage_class and storage_class.can_provision else ""
    if isinstance(finding, f.InsufficientStorageCapacity) and finding.capacity_count and made_by:
        yield from _more_storage(finding, volume, made_by, place)
        return
    if smaller and made_by:
        return  # no volume is created by hand if a driver creates it
    is_on_node = any(other.spec.is_on_node for other in place.snapshot.storage.volumes_of(claim.storage_class))
    by = f" (by {made_by})" if made_by else ""
    title, cost = f"create {_of_claim(volume, claim)}{by}", s.Cost.STOPGAP if is_on_node or made_by else s.Cost.AROUND
    yield s.ObjectStep(title=title, cost=cost, group=s.FixGroup.CLUSTER, objects=(volume,))


def _of_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Return `a volume of 5Gi ReadWriteOnce of class fast for claim shop/data`, or `volume vol-1 of 5Gi …` if the claim
    names it."""
    which = f"volume {claim.spec.volume_name}" if claim.spec.volume_name else "a volume"
    return f"{which} of {_volume_text(volume)} for claim {claim.key}"


def _volume_text(volume: PersistentVolume) -> str:
    spec = volume.spec
    of_class = f" of class {spec.storage_class_name}" if spec.storage_class_name else ""
    mode = " volumeMode Block" if spec.volume_mode == "Block" else ""
    return f"{spec.capacity['storage']} {'+'.join(spec.access_modes)}{mode}{of_class}"


def _smaller_claim(finding: f.InsufficientStorageCapacity, claim: PersistentVolumeClaim) -> Iterator[s.FixStep]:
    """Yield the claim with a request as large as the largest volume in reach."""
    largest = finding.largest
    if largest * _LEAST_CLAIM_SHARE < finding.claim.requested or largest >= finding.claim.requested:
        return
    size = format_quantity(largest, Unit.BYTE)
    requests = {**claim.spec.resources.requests, "storage": size}
    smaller = with_spec(claim, resources=replace(claim.spec.resources, requests=requests))
    title = f"delete and recreate claim {claim.key} with {size}"
    yield s.ObjectStep(title=title, cost=s.Cost.CONSTRAINT, objects=(smaller,))


def _more_storage(
    finding: f.InsufficientStorageCapacity, volume: PersistentVolume, driver: str, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    """Yield the storage with the most capacity of the class, grown until the claim's volume can be created there."""
    here = next((capacity for capacity in finding.capacities if capacity.reachable), None)
    if here is None or (here.limit or 0) < max(capacity.limit or 0 for capacity in finding.capacities):
        return
    capacity = next(it for it in place.snapshot.storage.capacities if it.key == here.name)
    topology = capacity.node_topology or LabelSelector()
    labels = (
        SelectorRequirement(key=at, operator="In", values=(value,)) for at, value in topology.match_labels.items()
    )
    if expressions := (*labels, *topology.match_expressions):
        terms = (NodeSelectorTerm(match_expressions=expressions),)
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
        volume = with_spec(volume, node_affinity=affinity)
    size, of_class = volume.spec.capacity["storage"], volume.spec.storage_class_name
    where = f" in {here.topology}" if here.topology else ""
    title = f"free or add storage of class {of_class}{where}, until {size} are free"
    if capacity.maximum_volume_size is not None and capacity.free > (here.limit or 0):
        room = f"make room for one volume of {size} in class {of_class}{where}"
        title = f"{room}: its maximumVolumeSize is {format_quantity(here.limit or 0, Unit.BYTE)}"
    made, cost = ((volume, driver),), s.Cost.REPAIR
    yield s.ObjectStep(title=title, cost=cost, group=s.FixGroup.CAPACITY, objects=(volume,), made=made)


# --- volumes that would fit


def _released_volumes(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Iterator[s.ReleaseVolume]:
    """Yield volumes of deleted claims that fit this one, or that another namespace's claim of its name reserves."""
    storage, named = snapshot.storage, claim.spec.volume_name
    for volume in storage.volumes_of(claim.storage_class):
        holder = volume.spec.claim_ref
        if holder is None or named not in ("", volume.name):
            continue
        key = holder.key
        there = storage.claims.get(key)
        if there is not None and (not holder.uid or there.metadata.uid == holder.uid):
            continue
        policy = "Delete" if there is None else volume.spec.persistent_volume_reclaim_policy
        if volume.status.phase == "Bound" and policy == "Delete":
            continue  # the dump lacks its claim, or that is being deleted, and the volume with it
        free, is_reserved = _unbound_volume(volume), not holder.uid and volume.status.phase == "Available"
        if is_reserved and holder.name != claim.name:
            continue  # for a claim to come
        if fits_claim(claim, free) and is_reserved:
            reference = replace(holder, namespace=claim.metadata.namespace)
            yield s.ReleaseVolume(
                volume=with_spec(volume, claim_ref=reference),
                holder=key,
                reserved_for=claim.key,
                is_awaited=holder.namespace in snapshot.known_namespaces,
            )
        elif fits_claim(claim, free):
            is_failed, is_same = volume.status.phase == "Failed", key == claim.key
            yield s.ReleaseVolume(volume=free, holder=key, has_same_name=is_same, is_failed=is_failed)


def _unbound_volume(volume: PersistentVolume) -> PersistentVolume:
    spec = replace(volume.spec, claim_ref=None)
    return replace(volume, spec=spec, status=replace(volume.status, phase="Available"))


def volume_of_other_class(snapshot: Snapshot, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    """Return the free volume that the claim would be bound to but for its class, if its driver refuses its access
    modes, there is only one, a node reaches it, and no class provisions such volumes."""
    storage, report = snapshot.storage, snapshot.failed_create("PersistentVolumeClaim", claim.metadata)
    if report is None or not re.search(OF_ACCESS_MODES, report.message, re.IGNORECASE):
        return None
    static = (volume for volume in storage.volumes.values() if volume.spec.storage_class_name not in storage.classes)
    fitting = [
        volume
        for volume in static
        if volume.spec.claim_ref is None
        and fits_claim(with_spec(claim, storage_class_name=volume.spec.storage_class_name), volume)
        and is_on_any(volume, snapshot.cluster.nodes)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _match_volume(claim: PersistentVolumeClaim, place: RemedyCandidate, *, at_once: bool) -> Iterator[s.RecreateClaim]:
    """Yield the claim as the free volume needs it that differs least: with its access modes, its size, or, if no driver
    provisions volumes of the claim's class, its class. It is bound `at_once`, or with the pod, to the smallest volume
    that fits (pkg/controller/volume/persistentvolume/index.go)."""
    storage, storage_class = place.snapshot.storage, place.snapshot.storage.classes.get(claim.storage_class)
    is_static = storage_class is None or not storage_class.can_provision
    is_static |= volume_of_other_class(place.snapshot, claim) is not None
    # if the class is missing, a class that provisions is better than another with volumes of its own
    others = storage.classes if storage_class is None and any(c.can_provision for c in storage.classes.values()) else ()
    recreations: list[tuple[tuple[int, bool, int], s.RecreateClaim]] = []
    for volume in storage.volumes.values() if is_static else storage.volumes_of(claim.storage_class):
        if volume.spec.storage_class_name in others or claim.spec.volume_name not in ("", volume.name):
            continue
        modes, spec, differs = volume.spec.access_modes, claim.spec, list[str]()
        if not {*spec.access_modes} <= {*modes}:
            if not modes:
                continue  # an invalid volume, which the API server would refuse
            spec = replace(spec, access_modes=tuple(mode for mode in spec.access_modes if mode in modes) or modes[:1])
            differs.append(join_phrases(spec.access_modes))
        if volume.size_in_bytes < claim.size_in_bytes <= volume.size_in_bytes * _LEAST_CLAIM_SHARE:
            size = format_quantity(volume.size_in_bytes, Unit.BYTE)
            requests = {**spec.resources.requests, "storage": size}
            spec = replace(spec, resources=replace(spec.resources, requests=requests))
            differs.append(size)
        if spec.volume_mode != volume.spec.volume_mode == FILESYSTEM and not (volume.spec.csi or volume.spec.local):
            spec = replace(spec, volume_mode=FILESYSTEM)
            differs.append(f"volumeMode {FILESYSTEM}")
        if (selector := _meant_selector(spec.selector, volume)) is not None:
            spec = replace(spec, selector=selector)
            differs.append(f"selector {compile_selector(selector)}")
        name, is_renamed = volume.spec.storage_class_name, volume.spec.storage_class_name != claim.storage_class
        if is_renamed:
            spec = replace(spec, storage_class_name=name)
        new_claim = replace(_as_new_claim(claim, place), spec=replace(spec, volume_name=""))
        if (differs or is_renamed) and fits_claim(new_claim, volume):
            named = [f"class {name}" if name else 'storageClassName ""'] if is_renamed else []
            these = join_phrases((*differs, *named))
            recreated = s.RecreateClaim(
                claim=new_claim,
                title=f"delete and recreate claim {claim.key} with {these}, as volume {volume.name} has it",
                cost=s.Cost.CONSTRAINT if differs else s.Cost.POD,
                bound_to=volume.name if at_once else "",
            )
            recreations.append(((len(differs), is_renamed, volume.size_in_bytes), recreated))
    yield from (step for _, step in sorted(recreations, key=lambda recreation: recreation[0])[:1])


def _meant_selector(selector: LabelSelector | None, volume: PersistentVolume) -> LabelSelector | None:
    """Return the selector that was probably meant for the volume: with values of its labels that are similar. None if
    the selector matches the volume, or another one."""
    labels = volume.metadata.labels
    if selector is None or compile_selector(selector).matches(labels):
        return None
    meant = {
        key: nearest_name(value, [labels[key]]) or value
        for key, value in selector.match_labels.items()
        if key in labels
    }
    after = replace(selector, match_labels={**selector.match_labels, **meant})
    return after if compile_selector(after).matches(labels) else None


def _bound_claims(claim: PersistentVolumeClaim, place: RemedyCandidate) -> Iterator[s.UseClaim]:
    """Yield claims of the namespace that no pod uses and that are bound to a volume that fits this claim."""
    storage, named = (
        place.snapshot.storage,
        [claim_name(place.pod.metadata.name, volume) for volume in place.pod.spec.volumes],
    )
    if claim.name not in named or any(volume.ephemeral is not None for volume in place.pod.spec.volumes):
        return
    for volume in storage.volumes_of(claim.storage_class):
        holder = volume.spec.claim_ref
        if holder is None or holder.namespace != claim.metadata.namespace or holder.name in named:
            continue
        other = storage.claims.get(holder.key)
        if (
            other is None
            or not is_bound_to(volume, other)
            or other.metadata.deletion_timestamp
            or other.metadata.controller
        ):
            continue
        is_used = any(True for _ in _users(other, place.snapshot, and_pending=True))
        if not is_used and fits_claim(claim, _unbound_volume(volume)):
            yield s.UseClaim(claim=claim.name, meant=other.name, volume=volume.name)


# Remedies for the claims of a pod: create or recreate the claim, or bind it to a volume.

_PROVISIONER = "<provisioner>"  # a placeholder to fill in: no API server accepts it
_DEFAULT_CLAIM_SIZE = "1Gi"  # the size of a claim of which only the name is known


def claim_remedies(finding: f.ClaimFinding | f.SelectedNodeMismatch, place: RemedyCandidate) -> Iterator[s.FixStep]:
    snapshot = place.snapshot
    match finding:
        case f.ClaimNotFound():
            if meant := _nearly_called(finding, place):
                yield s.UseClaim(claim=finding.claim.partition("/")[2], meant=meant)
            new_claim = _within_quota(_new_claim(finding, place), finding, place)
            yield from _with_its_data(finding.claim, new_claim, snapshot)
            yield new_claim
            return
        case f.ClaimUnbound():
            claim = snapshot.storage.claims.get(finding.claim.claim)
        case _:
            claim = snapshot.storage.claims.get(finding.claim)
    if claim is None:
        return
    match finding:
        case f.ClaimUnbound():
            yield from _bind(finding, claim, place)
        case f.VolumeNotFound() | f.ClaimLost():
            storage_class = snapshot.storage.classes.get(claim.storage_class)
            volume = volume_for(claim, claim.spec.volume_name, storage_class, bound=True)
            restored = replace(bound_claim(claim, volume.name), status=replace(claim.status, phase="Bound"))
            title = f"restore volume {volume.name} with the handle of its disk, if the disk still exists"
            yield s.ObjectStep(title=title, group=s.FixGroup.CLUSTER, objects=(volume, restored))
            yield _without_data(claim, place)
        case f.SelectedNodeMismatch(selected_node=node):
            annotations = {key: text for key, text in claim.metadata.annotations.items() if key != SELECTED_NODE}
            freed = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
            title = f"remove annotation {SELECTED_NODE}: {node} from claim {claim.key}"
            yield s.ObjectStep(title=title, cost=s.Cost.REPAIR, objects=(freed,))
        case f.ClaimNotOwned():
            if not any(True for _ in _users(claim, snapshot)):
                owned = _as_new_claim(claim, place, owned=True)
                costs = tuple(filter(None, (fate_of_data(claim, snapshot),)))
                yield s.RecreateClaim(claim=owned, title=f"delete and recreate claim {claim.key}", costs=costs)
        case f.ClaimBeingDeleted():
            users = tuple(_users(claim, snapshot))
            if all(can_evict(row, place.situation) for row in users):
                keys, title = tuple(map(snapshot.pods.key, users)), f"delete and recreate claim {claim.key}"
                if keys:
                    which = f"which still {'uses' if len(keys) == 1 else 'use'} claim {claim.key}"
                    title = f"delete {join_phrases(keys)}, {which}, and recreate the claim"
                yield s.RecreateClaim(
                    claim=_as_new_claim(claim, place),
                    title=title,
                    cost=s.Cost.OTHER_PODS if keys else s.Cost.AROUND,
                    costs=tuple(filter(None, (fate_of_data(claim, snapshot),))),
                    users=keys,
                )
        case _:
            assert_never(finding)


def fate_of_data(claim: PersistentVolumeClaim, snapshot: Snapshot) -> str:
    """Return what becomes of the data on a claim's volume when the claim is deleted; empty if it has no volume. The
    data on the disk of a node that is gone is lost."""
    name, volume = claim.spec.volume_name, snapshot.storage.volumes.get(claim.spec.volume_name)
    lost = f"the data on volume {name} is lost"
    if volume is None:
        return lost if name else ""
    match volume.spec.persistent_volume_reclaim_policy:
        case "Delete" if volume.spec.csi is not None and _is_zonal(volume):
            return f"{lost} unless it is restored from a snapshot"
        case "Delete":
            return lost
        case "Retain" if volume.spec.is_on_node and not is_on_any(volume, snapshot.cluster.nodes):
            return lost
        case "Retain":
            where = " on the disk of its node" if volume.spec.is_on_node else ""
            return f"volume {name} keeps its data{where}; the new volume is empty"
        case _:
            return f"{lost} unless the reclaim policy is Retain"


def _as_new_claim(
    claim: PersistentVolumeClaim, place: RemedyCandidate, *, owned: bool = False
) -> PersistentVolumeClaim:
    """Return the claim as a new one: bound to no volume."""
    metadata = claim.metadata
    annotations = {key: text for key, text in metadata.annotations.items() if key == BETA_STORAGE_CLASS}
    owners = (place.owner_reference,) if owned else metadata.owner_references
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            labels=metadata.labels,
            annotations=annotations,
            owner_references=owners,
        ),
        spec=replace(claim.spec, volume_name=""),
    )


def give_up_volume(
    finding: f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    """Yield a claim without its old volume, if no other pod uses it. If its class binds it before the pod is scheduled,
    it gets the class of the same provisioner that waits; without one, the driver may choose a wrong place again."""
    claim, classes = place.snapshot.storage.claims.get(finding.claim), place.snapshot.storage.classes
    if claim is None or any(True for _ in _users(claim, place.snapshot)):
        return
    own = classes.get(claim.storage_class)
    is_early = own is not None and own.provisions_first
    waiting = (
        it.name for it in classes.values() if is_early and own and _waits(it) and it.provisioner == own.provisioner
    )
    other_class = next(waiting, "")
    yield _without_data(
        claim, place, other_class, by_chance=claim.storage_class if is_early and not other_class else ""
    )


def _renamed_topology(finding: f.VolumeNodeAffinityMismatch, place: RemedyCandidate) -> Iterator[s.ObjectStep]:
    """Yield the volume with the present names of zone labels in its node affinity, if the nodes have only those. The
    API server refuses other changes of it (ValidatePersistentVolumeUpdate)."""
    volume = place.snapshot.storage.volumes.get(finding.persistent_volume)
    if volume is None or volume.spec.node_affinity is None or volume.spec.node_affinity.required is None:
        return
    terms, old_keys = volume.spec.node_affinity.required.node_selector_terms, list[str]()

    def renamed(requirement: SelectorRequirement) -> SelectorRequirement:
        new_key = PRESENT_TOPOLOGY.get(requirement.key, "")
        if not new_key or place.snapshot.cluster.label_values(requirement.key):
            return requirement
        old_keys.append(requirement.key)
        return replace(requirement, key=new_key)

    new_terms = tuple(replace(term, match_expressions=tuple(map(renamed, term.match_expressions))) for term in terms)
    if old_keys:
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=new_terms))
        names = join_phrases(tuple(dict.fromkeys(PRESENT_TOPOLOGY[key] for key in old_keys)))
        instead = join_phrases(tuple(dict.fromkeys(old_keys)))
        title = f"use label {names} in nodeAffinity of volume {volume.name}: no node has {instead}"
        changed = with_spec(volume, node_affinity=affinity)
        yield s.ObjectStep(title=title, cost=s.Cost.REPAIR, group=s.FixGroup.CLUSTER, objects=(changed,))


def _without_data(
    claim: PersistentVolumeClaim, place: RemedyCandidate, other_class: str = "", *, by_chance: str = ""
) -> s.FixStep:
    """Return the step with a new volume; `by_chance` is a class whose driver chooses the place without the pod."""
    new_claim, named = _as_new_claim(claim, place), ""
    if other_class:
        new_claim = with_spec(new_claim, storage_class_name=other_class)
        named = f" with class {other_class}, which waits for the pod"
    data = fate_of_data(claim, place.snapshot)
    chance = f"; class {by_chance} may choose another place again (Immediate)" if by_chance else ""
    title = f"delete and recreate claim {claim.key}{named}; {data}{chance}"
    return s.ObjectStep(title=title, cost=s.Cost.DATA, objects=(new_claim,))


def _is_zonal(volume: PersistentVolume) -> bool:
    """Return whether the volume is reached from its whole zone, so that it is no disk of one node."""
    terms = terms_of(volume.required_node_affinity)
    keys = {requirement.key.rpartition("/")[2] for term in terms for requirement in term.match_expressions}
    return "zone" in keys


def _users(claim: PersistentVolumeClaim, snapshot: Snapshot, *, and_pending: bool = False) -> Iterator[int]:
    """Yield the rows of assigned pods that use the claim, and of pending ones with `and_pending`."""
    pods = snapshot.pods
    return (row for row in pods.rows_with_claim(claim.key) if and_pending or pods.node_names[row])


# --- claims that do not exist


def _nearly_called(finding: f.ClaimNotFound, place: RemedyCandidate) -> str:
    """Return a claim of the namespace with a similar name, or the only one whose name ends with this one, as those of a
    Helm release or a workflow do; empty if there is none, or if the name is generated."""
    namespace, _, name = finding.claim.partition("/")
    if finding.ephemeral or name.endswith(f"-{place.pod.metadata.name}"):
        return ""
    keys = (key.partition("/") for key in place.snapshot.storage.claims)
    known = sorted(other for its, _, other in keys if its == namespace)
    longer = [other for other in known if other.endswith(f"-{name}")]
    return nearest_name(name, known) or (longer[0] if len(longer) == 1 else "")


def _with_its_data(key: str, step: s.ObjectStep, snapshot: Snapshot) -> Iterator[s.ObjectStep]:
    """Yield the creation of a claim together with the volume that it was bound to before it was deleted."""
    volume = released_volume(key, snapshot)
    [claim] = step.objects
    if volume is None or volume.spec.claim_ref is None or not isinstance(claim, PersistentVolumeClaim):
        return
    claim = with_spec(claim, storage_class_name=volume.spec.storage_class_name)
    if not snapshot.storage.waits(claim):
        return  # the volume controller binds them before the pod is scheduled
    spec = replace(volume.spec, claim_ref=replace(volume.spec.claim_ref, uid=""))
    freed = replace(volume, spec=spec, status=replace(volume.status, phase="Available"))
    title = f"remove the uid from claimRef of volume {volume.name}, which has the data, and create claim {key} again"
    yield s.ObjectStep(title=title, cost=s.Cost.REPAIR, objects=(freed, claim))


def _new_claim(finding: f.ClaimNotFound, place: RemedyCandidate) -> s.ObjectStep:
    """Return the step that creates the claim from the template of the StatefulSet or the volume; of other claims, only
    the name is known."""
    snapshot = place.snapshot
    namespace, _, name = finding.claim.partition("/")
    classes = snapshot.storage.classes.values()
    default = default_class(classes)
    stateful_set = None if finding.ephemeral else snapshot.controller_of(place.pod, "StatefulSet")
    if stateful_set is not None:
        for template in stateful_set.spec.volume_claim_templates:
            if f"{template.metadata.name}-{place.pod.metadata.name}" == name:
                annotations = {
                    key: text for key, text in template.metadata.annotations.items() if key == BETA_STORAGE_CLASS
                }
                metadata = replace(template.metadata, name=name, namespace=namespace, annotations=annotations)
                claim = with_default_class(replace(template, metadata=metadata), default)
                title = f"create claim {claim.key} from the template of StatefulSet {stateful_set.metadata.name}"
                return s.ObjectStep(title=title, objects=(claim,))
    owners = (place.owner_reference,) if finding.ephemeral else ()
    of_volume = ephemeral_claim(place.pod, finding.claim, owners) if finding.ephemeral else None
    if of_volume is not None:
        return _create_claim(with_default_class(of_volume, default), is_ephemeral=True)
    chosen = default or _usual_class(filter(_waits, classes), snapshot.storage)
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=namespace, owner_references=owners),
        spec=PersistentVolumeClaimSpec(
            access_modes=("ReadWriteOnce",),
            resources=VolumeResourceRequirements(requests={"storage": _DEFAULT_CLAIM_SIZE}),
            storage_class_name=chosen.name if chosen else "",
        ),
    )
    return _create_claim(claim, is_ephemeral=finding.ephemeral)


def _within_quota(step: s.ObjectStep, finding: f.ClaimNotFound, place: RemedyCandidate) -> s.ObjectStep:
    """Return the step that raises the quotas which refuse the claim of an ephemeral volume; else the step itself."""
    snapshot, release = place.snapshot, place.situation.scheduler.release
    raised: dict[str, RaisedQuota] = {}
    namespace = place.pod.metadata.namespace
    while refusal := ephemeral_claim_refusal(snapshot, place.pod, release, finding.claim):
        match = EXCEEDED.search(refusal)
        if match is None or match["quota"] in raised:
            return step
        raised[match["quota"]] = larger = raised_quota(snapshot, namespace, match, 1)
        snapshot = larger.snapshot
    if not raised or not finding.ephemeral:
        return step
    title = f"raise {' and '.join(larger.title for larger in raised.values())}, for claim {finding.claim}"
    return replace(
        step,
        title=title,
        cost=s.Cost.REPAIR,
        group=s.FixGroup.CLUSTER,
        others=tuple(change for larger in raised.values() for change in larger.changes),
        kubectl=tuple(filter(None, (larger.command for larger in raised.values()))),
    )


def _create_claim(claim: PersistentVolumeClaim, *, is_ephemeral: bool) -> s.ObjectStep:
    """Return the step that creates a claim; with `is_ephemeral`, kube-controller-manager creates it for the pod's
    ephemeral volume."""
    of_class = f" of class {claim.storage_class}" if claim.storage_class else " without a class"
    create = f"wait until {CONTROLLER_MANAGER} creates" if is_ephemeral else "create"
    made = ((claim, CONTROLLER_MANAGER),) if is_ephemeral else ()
    return s.ObjectStep(title=f"{create} claim {claim.key}{of_class}", objects=(claim,), made=made)


def _usual_class(classes: Iterable[StorageClass], storage: Storage) -> StorageClass | None:
    """Return the class of most claims among those that provision volumes; at a tie, one that waits for the pod."""
    usage = Counter(claim.storage_class for claim in storage.claims.values())
    usable = (storage_class for storage_class in classes if storage_class.can_provision)
    return max(usable, key=lambda usable: (usage[usable.name], usable.waits_for_first_consumer), default=None)


def _waits(storage_class: StorageClass) -> bool:
    return storage_class.waits_for_first_consumer and storage_class.can_provision


# --- claims that have to be bound first


def _bind(finding: f.ClaimUnbound, claim: PersistentVolumeClaim, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield steps that bind the claim: to an existing volume, with the intended class, or to a volume to be created."""
    snapshot = place.snapshot
    storage = snapshot.storage
    named = storage.volumes.get(claim.spec.volume_name)
    usable = (
        named is not None
        and (named.spec.claim_ref is None or is_bound_to(named, claim))
        and fits_claim(with_spec(claim, volume_name="", selector=None), _unbound_volume(named))
    )
    volume = named if usable else None if claim.spec.volume_name else volume_to_bind(claim, storage)
    if volume is not None:
        title = f"bind claim {claim.key} to volume {volume.name}"
        yield s.ObjectStep(title=title, group=s.FixGroup.CLUSTER, objects=(bound_claim(claim, volume.name),))
    is_unread = claim.storage_class not in storage.classes and snapshot.source.may_lack("StorageClass")
    if claim.spec.storage_class_name == "":  # an empty class name means that nothing is provisioned
        default = default_class(storage.classes.values())
        if volume is None and default is not None and default.can_provision:
            yield _with_class(claim, default)
    elif finding.cause in ("class-missing", "no-class", "static"):
        may_set = place.situation.scheduler.release.enabled("RetroactiveDefaultStorageClass")
        of_pod = (volume for volume in place.pod.spec.volumes if volume.ephemeral is not None)
        ephemeral = next((it for it in of_pod if claim_name(place.pod.metadata.name, it) == claim.name), None)
        for step in _with_classes(claim, storage, is_bindable=volume is not None, is_unread=is_unread):
            if ephemeral is not None and isinstance(step, s.RecreateClaim):
                metadata = replace(step.claim.metadata, owner_references=(place.owner_reference,))
                yield s.SetEphemeralClass(
                    name=ephemeral.name,
                    claim=replace(step.claim, metadata=metadata),
                    wrong_class=claim.storage_class,
                    is_typo=step.cost is s.Cost.TYPO,
                    volume=step.volume,
                    provisioner=step.provisioner,
                )
            elif may_set and claim.spec.storage_class_name is None and isinstance(step, s.RecreateClaim):
                yield _class_set(claim, step)
                if default_class(storage.classes.values()) is None:
                    yield _default_set(storage.classes[step.claim.storage_class], storage)
            else:
                yield step
    if volume is not None:
        return
    for release in _released_volumes(claim, snapshot):
        yield replace(release, claim=bound_claim(claim, release.volume.name))
    yield from _match_volume(claim, place, at_once=True)
    yield from changed_volumes(claim, storage, at_once=True)
    storage_class = storage.classes.get(claim.storage_class)
    if claim.spec.volume_name:
        yield from _unnamed(claim, storage_class, place)
    if storage_class is not None and storage_class.refuses_modes(claim):
        yield from _with_other_modes(claim, storage_class, storage)
    elif named is None and not (is_unread and claim.storage_class):
        yield _new_volume(claim, storage_class, place)  # a claim that names a volume is bound to no other


def _unnamed(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None, place: RemedyCandidate
) -> Iterator[s.FixStep]:
    """Yield the claim without its volumeName: bound to a free volume, to one that its class provisions, or, if the
    named volume exists, to a new one."""
    storage, named = place.snapshot.storage, claim.spec.volume_name
    title = f"delete and recreate claim {claim.key} without volumeName {named}"
    new_claim = with_spec(_as_new_claim(claim, place), volume_name="")
    if (free := volume_to_bind(new_claim, storage)) is not None:
        yield s.RecreateClaim(claim=new_claim, title=f"{title}; volume {free.name} is free", bound_to=free.name)
    elif storage_class is not None and storage_class.can_provision:
        yield replace(_with_class(claim, storage_class), title=title)
    elif named in storage.volumes:
        volume = volume_for(new_claim, f"{claim.metadata.namespace}-{claim.name}", storage_class, bound=True)
        title = f"{title}, and create a volume of {_volume_text(volume)}"
        yield s.ObjectStep(title=title, objects=(volume, bound_claim(new_claim, volume.name)))


def _new_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None, place: RemedyCandidate
) -> s.ObjectStep:
    """Return the step that creates the claim's volume, or lets its class provision it."""
    snapshot, name = place.snapshot, claim.spec.volume_name or f"{claim.metadata.namespace}-{claim.name}"
    can_provision = storage_class is not None and storage_class.can_provision
    driver = storage_class.provisioner if storage_class and can_provision and not claim.spec.volume_name else ""
    is_new = any(claim == item for item in place.situation.proposal.objects)
    is_new = is_new or claim.is_new or not (claim.metadata.uid or is_in_trouble(snapshot, claim, driver))
    is_new = is_new and wrong_attributes_class(snapshot, claim) is None
    volume = volume_for(claim, name, storage_class, bound=True)
    title, made = f"create {_of_claim(volume, claim)}", ((volume, driver),) if driver else ()
    if driver:
        provision = f"let {driver} provision the volume for claim {claim.key}"
        repair = provision if is_new else provisioner_repair(snapshot, claim, driver)
        is_other = any(change in repair for change in ("with an access mode that", "with at least"))
        title = repair if is_other else f"{repair}: {_volume_text(volume)}"
    return s.ObjectStep(title=title, group=s.FixGroup.CLUSTER, objects=(volume, bound_claim(claim, name)), made=made)


def _with_other_modes(
    claim: PersistentVolumeClaim, storage_class: StorageClass, storage: Storage
) -> Iterator[s.RecreateClaim]:
    """Yield the claim with a class that may provide its access modes, then with those that its own class provides."""
    others = [it for it in storage.classes.values() if not it.refuses_modes(claim)]
    if (other := _usual_class(others, storage)) is not None:
        yield _with_class(claim, other)
    once = _with_class(with_spec(claim, access_modes=("ReadWriteOnce",)), storage_class)
    title = f"delete and recreate claim {claim.key} with ReadWriteOnce, if one node is enough for its pods"
    yield replace(once, title=title, cost=s.Cost.CONSTRAINT if other is None else s.Cost.STOPGAP)


def _class_set(claim: PersistentVolumeClaim, step: s.RecreateClaim) -> s.SetClass:
    """Return the step that sets the class without deleting the claim: a claim that names no class may get one."""
    classed = with_spec(claim, storage_class_name=step.claim.storage_class)
    return s.SetClass(claim=classed, volume=step.volume, provisioner=step.provisioner)


def _default_set(storage_class: StorageClass, storage: Storage) -> s.SetDefaultClass:
    metadata = storage_class.metadata
    annotations = {**metadata.annotations, DEFAULT_CLASS[0]: "true"}
    return s.SetDefaultClass(
        storage_class=replace(storage_class, metadata=replace(metadata, annotations=annotations)),
        claims=tuple(
            _class_set(claim, _with_class(claim, storage_class))
            for claim in storage.claims.values()
            if not (claim.names_class or claim.spec.volume_name or claim.metadata.deletion_timestamp)
        ),
    )


def _with_classes(
    claim: PersistentVolumeClaim, storage: Storage, *, is_bindable: bool, is_unread: bool
) -> Iterator[s.FixStep]:
    """Yield the claim with the class of a similar name, or with the class that a new claim would get; then a new class
    of that name. The new class comes first if a driver is installed that usually has a class of that name. `is_unread`:
    the dump may lack its class."""
    classes = {
        name: storage_class for name, storage_class in storage.classes.items() if not storage_class.refuses_modes(claim)
    }
    close = nearest_name(claim.storage_class, sorted(classes))
    if not close:  # `gp33` for `gp3`: an extra digit is a typo if only one class is that similar
        near = [name for name in classes if differs_by_one_letter(claim.storage_class, name)]
        close = near[0] if len(near) == 1 else ""
    chosen = default_class(classes.values()) or _usual_class(classes.values(), storage)
    driver, attached = usual_driver(claim.storage_class), (node.spec.drivers for node in storage.csi_nodes.values())
    known = {*storage.csi_drivers, *(it.name for drivers in attached for it in drivers)}
    is_installed = bool(driver) and driver in {*known, *(it.driver for it in storage.classes.values())}
    if close:
        yield _with_class(claim, classes[close], is_typo=not is_installed)
    elif chosen is not None:
        yield _with_class(claim, chosen)
    if claim.storage_class and not is_bindable and not storage.is_static(claim.storage_class):
        title = f"create storage class {claim.storage_class}{f' of {driver}' if driver else ''}"
        if is_csi_name(driver) and known and not is_installed:
            title = f"install {driver}, and create its storage class {claim.storage_class}"
        title += ", if it does not exist" if is_unread else ""
        new = StorageClass(
            metadata=ObjectMeta(name=claim.storage_class),
            provisioner=driver or _PROVISIONER,
            volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
        )
        cost = s.Cost.REPAIR if is_installed else s.Cost.AROUND
        yield s.ObjectStep(title=title, cost=cost, group=s.FixGroup.CLUSTER, objects=(new,))


def _with_other_classes(claim: PersistentVolumeClaim, storage: Storage) -> Iterator[s.RecreateClaim]:
    """Yield the claim with each class of the same provisioner that waits for the pod, and is not restricted to the same
    topology; the default class first."""
    restricted, default = storage.classes.get(claim.storage_class), default_class(storage.classes.values())
    for storage_class in sorted(storage.classes.values(), key=lambda of_claim: of_claim is not default):
        if restricted is None:
            return
        is_same = storage_class.provisioner == restricted.provisioner and not storage_class.refuses_modes(claim)
        if not storage_class.waits_for_first_consumer:
            continue  # its volume may be created where the pod cannot run
        if is_same and storage_class.allowed_topologies != restricted.allowed_topologies:
            yield replace(_with_class(claim, storage_class), cost=s.Cost.CONSTRAINT)


def _with_class(claim: PersistentVolumeClaim, storage_class: StorageClass, *, is_typo: bool = False) -> s.RecreateClaim:
    """Return the claim with another class, and with its volume if the class provisions it at once."""
    spec = replace(claim.spec, storage_class_name=storage_class.name, volume_name="")
    metadata = ObjectMeta(name=claim.name, namespace=claim.metadata.namespace, labels=claim.metadata.labels)
    new_claim = PersistentVolumeClaim(metadata=metadata, spec=spec)
    at_once = storage_class.provisions_first
    name = f"{claim.metadata.namespace}-{claim.name}"
    wrong = '""' if claim.spec.storage_class_name == "" else claim.storage_class
    instead = f" instead of {wrong}" if wrong else ""
    return s.RecreateClaim(
        claim=new_claim,
        title=f"delete and recreate claim {claim.key} with class {storage_class.name}{instead}",
        cost=s.Cost.TYPO if is_typo else s.Cost.AROUND,
        volume=volume_for(new_claim, name, storage_class, bound=True) if at_once else None,
        provisioner=storage_class.provisioner if at_once else "",
    )
