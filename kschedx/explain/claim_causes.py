"""The cause behind a claim or a volume that keeps a pod pending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx import findings as f
from kschedx.errors import InputError
from kschedx.explain.admission import QuotaLedger
from kschedx.explain.advice import FixGroup, RootCause, root_cause
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.kubelet import attached_elsewhere
from kschedx.findings import ClaimUnbound
from kschedx.findings.volumes import VolumeCandidate
from kschedx.framework.cycle import Cycle
from kschedx.kube.names import HOSTNAME, ZONE
from kschedx.kube.quantity import Unit, format_quantities, format_quantity
from kschedx.kube.selectors import Operator, terms_of
from kschedx.kube.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttributesClass,
    check_quantities,
    claim_name,
    default_class,
    own_claims,
    with_default_class,
)
from kschedx.kube.types import ObjectMeta, OwnerReference, Pod
from kschedx.kube.typos import nearest_name
from kschedx.releases import Release
from kschedx.snapshot.events import FAILED_BINDING
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_ZONE_BEFORE_POD = "class {} binds claims before scheduling (Immediate): zones are chosen without regard to pods"


class SharedClaim(RootCause, frozen=True, kw_only=True):
    """Pods of one controller use a claim that only one pod, or the pods of one node, may use at a time."""

    claim: str
    is_of_node: bool = False  # whether the pods of one node may use it together


class _WrongAttributesClass(RootCause, frozen=True, kw_only=True):
    """A claim names a VolumeAttributesClass with which its driver provisions no volume."""

    name: str
    meant: str  # the class of the driver with a similar name; empty if there is none
    is_missing: bool


def _unusable_volumes(snapshot: Snapshot, finding: ClaimUnbound) -> Iterator[str]:
    """Yield the cause for a claim whose class does not provision volumes, so that an existing volume has to match."""
    claim = snapshot.storage.claims.get(finding.claim.claim)
    storage_class = None if claim is None else snapshot.storage.classes.get(claim.storage_class)
    is_provisioned = storage_class is not None and storage_class.can_provision
    if claim is None or finding.cause == "class-missing" or (is_provisioned and not claim.spec.volume_name):
        return
    from kschedx.plugins.volume_binding.matching import SearchError, VolumeSearch  # most pods have no such claim

    try:
        nearest = VolumeSearch(claim, snapshot.storage, attributes_classes=True).nearest(frozenset())
    except SearchError:
        return
    named = claim.spec.volume_name
    if named and named not in snapshot.storage.volumes and snapshot.storage.volumes:
        yield f"it names volume {named}, which does not exist"
    volume = next((candidate for candidate in nearest if not named or candidate.name == named), None)
    phase = "" if volume is None else snapshot.storage.volumes[volume.name].status.phase
    if volume is not None and (why := _why_lost(volume, claim.key, phase)):
        about = f"volume {volume.name}, which claim {claim.key} names," if named else f"volume {volume.name}"
        yield f"{about} {why}"


def _why_lost(volume: VolumeCandidate, claim: str, phase: str) -> str:
    """Return why the volume does not match, or an empty string for other reasons."""
    state = "Failed, because it could not be deleted" if phase == "Failed" else "Released"
    reserved = f"is {state}: it still has the claimRef of an earlier claim of that name"
    why = {
        "access-modes": f"has the access modes {volume.detail}",
        "bound-to-another-claim": reserved
        if volume.detail == claim
        else f"is {'reserved for' if phase == 'Available' else 'bound to'} claim {volume.detail}",
        "released": reserved if volume.detail == claim else f"is Released: its claim {volume.detail} is deleted",
        "selector": f"is not selected by the claim: its labels are {volume.detail or '<none>'}",
        "too-small": f"has only {format_quantities((volume.capacity,), Unit.BYTE)[0]}",
        "volume-mode": f"has volumeMode {volume.detail}",
        "not-available": f"is {volume.detail}",
    }
    return why.get(volume.lost, "")


def claim_causes(diagnosis: Diagnosis, finding: f.Finding) -> Iterator[RootCause]:
    """Yield why a claim or its volume keeps the pod pending."""
    cycle = diagnosis.cycle
    match finding:
        case f.ClaimUnbound():
            yield from (RootCause(text=text) for text in _unusable_volumes(cycle.snapshot, finding))
            yield from _nothing_provisions(cycle.snapshot, finding)
            claim = cycle.snapshot.storage.claims.get(finding.claim.claim)
            wrong_class = None if claim is None else wrong_attributes_class(cycle.snapshot, claim)
            yield from () if wrong_class is None else (wrong_class,)
            storage_class = None if claim is None else cycle.snapshot.storage.classes.get(claim.storage_class)
            if claim is not None and storage_class is not None and storage_class.refuses_modes(claim):
                yield RootCause(text=f"{storage_class.driver} provides no ReadWriteMany for file systems")
        case f.SelectedNodeMismatch(selected_node=node) if node not in cycle.snapshot.cluster.index:
            yield RootCause(text=f"node {node} does not exist, so that no volume is provisioned there")
        case f.VolumeNodeAffinityMismatch():
            yield from _unreachable(cycle.snapshot, finding)
            yield from _apart(cycle, finding)
            yield from _bound_in_one_place(diagnosis, finding)
            yield from _bound_before_the_pod(diagnosis, finding)
        case f.InsufficientStorageCapacity() if finding.largest and _is_of_several_nodes(diagnosis, finding):
            size = format_quantity(finding.largest, Unit.BYTE)
            yield RootCause(text=f"the largest volume that {finding.driver} can create for these nodes is {size}")
        case f.ClaimNotFound(ephemeral=True, claim=claim):
            refusal = ephemeral_claim_refusal(cycle.snapshot, cycle.pod, cycle.release, claim)
            if refusal := refusal or _reported_refusal(cycle.snapshot, cycle.pod, claim):
                yield RootCause(text=f"kube-controller-manager cannot create it: {refusal}")
        case f.ClaimNotFound(ephemeral=False, claim=claim):
            namespace, _, name = claim.partition("/")
            others = sorted(key for key in cycle.snapshot.storage.claims if key.partition("/")[2] == name)
            if others:
                uses = f"a pod of namespace {namespace} uses only claims of that namespace"
                exist = "claim {} exists" if len(others) == 1 else "claims {} exist"
                yield RootCause(text=f"{exist.format(list_names(others, 2))}, but {uses}")
        case f.NoMatchingVolume(volumes=0, claim=facts):
            storage_class = cycle.snapshot.storage.classes.get(facts.storage_class)
            if storage_class is not None and not storage_class.can_provision:
                yield RootCause(text=f"class {storage_class.name} has no provisioner, and no volume has this class")
        case f.ClaimInUse():
            own, row = cycle.pod.metadata.controller, cycle.snapshot.pods.rows.get(finding.holder)
            if own is not None and row is not None and own in cycle.snapshot.pods.owners[row]:
                yield SharedClaim(text=f"the pods of {own.kind} {own.name} share this claim", claim=finding.claim)
        case _:
            return


def _nothing_provisions(snapshot: Snapshot, finding: f.ClaimUnbound) -> Iterator[RootCause]:
    """Yield that a claim that names no class can only get a default class, and that no class provisions volumes."""
    claim, classes = snapshot.storage.claims.get(finding.claim.claim), snapshot.storage.classes.values()
    is_open = claim is not None and claim.spec.storage_class_name is None and not claim.storage_class
    if finding.cause == "no-class" and is_open and not any(item.can_provision for item in classes):
        why = "no StorageClass is the default, so that nothing provisions a volume for the claim"
        first = "make a StorageClass the default, or " if snapshot.source.may_lack("StorageClass") else ""
        install = f"{first}install a storage driver, with a default StorageClass that the claim then gets"
        yield root_cause(why, install, group=FixGroup.CLUSTER)


def wrong_attributes_class(snapshot: Snapshot, claim: PersistentVolumeClaim) -> _WrongAttributesClass | None:
    """Return the VolumeAttributesClass of a claim without a volume if it does not exist or is of another driver. None
    if a dump may lack it. Upstream: kubernetes-csi/external-provisioner, pkg/controller/controller.go."""
    name, storage_class = claim.spec.volume_attributes_class_name, snapshot.storage.classes.get(claim.storage_class)
    if not name or claim.spec.volume_name or storage_class is None or not storage_class.can_provision:
        return None
    source, kind = snapshot.source, VolumeAttributesClass.__name__
    drivers = {item.name: item.driver_name for item in snapshot.of(VolumeAttributesClass)}
    own, driver = drivers.get(name), storage_class.driver
    if own == driver or (own is None and (source.may_lack(kind) or kind in source.missing)):
        return None
    why = "does not exist" if own is None else f"is of driver {own}"
    return _WrongAttributesClass(
        text=f"VolumeAttributesClass {name} {why}, so that {driver} provisions no volume for claim {claim.key}",
        name=name,
        meant=nearest_name(name, sorted(other for other, of_driver in drivers.items() if of_driver == driver)),
        is_missing=own is None,
    )


def _is_of_several_nodes(diagnosis: Diagnosis, finding: f.Finding) -> bool:
    """Return whether nodes are rejected together with the one of this finding, so that their headline has no amount."""
    return any(finding in group.exemplar.findings and len(group.rows) > 1 for group in diagnosis.groups)


def shared_by_replicas(snapshot: Snapshot, pod: Pod) -> Iterator[RootCause]:
    """Yield the claims for one node at a time that a running pod on another node uses."""
    own = pod.metadata.controller
    for key, text in attached_elsewhere(snapshot, pod, ""):
        if "ReadWriteOncePod" in text:
            continue
        siblings = snapshot.pods.owners.where(lambda owners: own is not None and own in owners).nonzero()[0].tolist()
        if any(snapshot.pods.node_names[row] and key in own_claims(snapshot.pods[row]) for row in siblings):
            yield SharedClaim(text=text, claim=key, is_of_node=True)
        else:
            yield RootCause(text=text)


def _unreachable(snapshot: Snapshot, finding: f.VolumeNodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield that the node of a volume is gone or has another form of its name, or that its zone has no nodes."""
    cluster = snapshot.cluster
    for requirement in finding.terms[0].requirements if finding.terms else ():
        key, is_host = requirement.key, cluster.is_named_by(requirement.key)
        if requirement.operator != Operator.IN or not (is_host or key.endswith("/zone")):
            continue
        of_terms = (other for term in finding.terms for other in term.requirements if other.key == key)
        places = tuple(dict.fromkeys(value for other in of_terms for value in other.values if value))
        known = {*cluster.label(key).values, *(() if is_host else cluster.label(ZONE).values)}
        if not places or known & {*places}:
            continue
        by_host = places if key == HOSTNAME else ()
        hosts = {value.partition(".")[0] for value in by_host}
        meant = next((value for value in sorted(filter(None, known)) if value.partition(".")[0] in hosts), "")
        if named := next((value for value in by_host if value in cluster.index), ""):  # a name in place of the label
            meant = cluster.label(HOSTNAME)[cluster.index[named]] or ""
        if meant:
            its_node = f"node {named}" if named else "the node"
            text = f"label {HOSTNAME} of {its_node} is {meant}, not {list_names(places, 2)}"
            title = f"recreate volume {finding.persistent_volume} with {HOSTNAME} {meant} in its nodeAffinity"
            yield root_cause(text, title, by_default=FixGroup.CLUSTER, leaves_no_node=True)
        else:
            values = list_names(places, 2, conjunction="or")
            on_host = f"node {values} does not exist, and the volume is on its disks"
            in_zone = f"no node is in zone {values}" if any(known) else f"no node has label {key}"
            claim = snapshot.storage.claims.get(finding.claim)
            storage_class = None if claim is None else snapshot.storage.classes.get(claim.storage_class)
            is_by_hand = storage_class is None or not storage_class.can_provision
            title = f"recreate volume {finding.persistent_volume} with the {HOSTNAME} of an existing node"
            title = f"{title} in its nodeAffinity, if {values} never was a node" if is_host and is_by_hand else ""
            yield root_cause(on_host if is_host else in_zone, title, by_default=FixGroup.CLUSTER)
            if storage_class is not None and storage_class.provisions_first and any(known) and not is_host:
                yield RootCause(text=_ZONE_BEFORE_POD.format(storage_class.name))


def _bound_before_the_pod(diagnosis: Diagnosis, finding: f.VolumeNodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield that a class chose the zone of a volume before its pod, if no node of that zone can ever run the pod, and a
    node of another zone could."""
    storage = diagnosis.cycle.snapshot.storage
    claim = storage.claims.get(finding.claim)
    storage_class = None if claim is None else storage.classes.get(claim.storage_class)
    on_nodes = [group.exemplar.findings for group in diagnosis.groups]
    in_reach = [found for found in on_nodes if not any(isinstance(x, f.VolumeNodeAffinityMismatch) for x in found)]

    def is_lasting(other: f.Finding) -> bool:
        return isinstance(other, f.NodeAffinityMismatch) or (
            isinstance(other, f.InsufficientResource) and other.never_fits
        )

    is_zonal = any(requirement.key.endswith("/zone") for term in finding.terms for requirement in term.requirements)
    if storage_class is None or not storage_class.provisions_first or not is_zonal or not in_reach:
        return
    if any(tuple(found) == (finding,) for found in on_nodes) and all(any(map(is_lasting, found)) for found in in_reach):
        yield RootCause(text=_ZONE_BEFORE_POD.format(storage_class.name))


def _bound_in_one_place(diagnosis: Diagnosis, finding: f.VolumeNodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield that the volumes of pods that avoid each other are in one place because their class does not wait for the
    pods."""
    snapshot, pod = diagnosis.cycle.snapshot, diagnosis.cycle.pod
    storage = snapshot.storage
    claim, volume = storage.claims.get(finding.claim), storage.volumes.get(finding.persistent_volume)
    storage_class = None if claim is None else storage.classes.get(claim.storage_class)
    rules = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    if volume is None or storage_class is None or not rules:
        return
    of_others = [
        storage.volumes.get(its.spec.volume_name)
        for row in snapshot.pods.owners.where(lambda owners: pod.metadata.controller in owners).nonzero()[0].tolist()
        if snapshot.pods.key(row) != pod.key
        for its in storage.claims_of(snapshot.pods[row])
        if its.storage_class == storage_class.name
    ]
    together = [it is not None and it.required_node_affinity == volume.required_node_affinity for it in of_others]
    are_all = any(together) and all(together)
    is_in_the_way = any(together) and any(isinstance(it, f.PodAntiAffinityConflict) for it in diagnosis.findings)
    is_required = rules.required_during_scheduling_ignored_during_execution
    if (are_all or is_in_the_way) and storage_class.provisions_first and is_required:
        why = f"class {storage_class.name} binds claims before scheduling (Immediate)"
        yield RootCause(text=f"{why}: the volumes of {'all' if are_all else 'several'} replicas are in one place")


def _apart(cycle: Cycle, finding: f.VolumeNodeAffinityMismatch) -> Iterator[RootCause]:
    """Yield that two volumes of the pod are in different places, so that no node, not even a new one, reaches both."""
    storage = cycle.snapshot.storage
    volume = storage.volumes.get(finding.persistent_volume)
    names = sorted(claim.spec.volume_name for claim in storage.claims_of(cycle.pod))
    places = {} if volume is None else _places(volume)
    for name in names:
        other = storage.volumes.get(name)
        if other is None or volume is None or name == volume.name:
            continue
        others = _places(other)
        for key in sorted(places.keys() & others.keys()):
            if not places[key] & others[key]:
                both = sorted([(volume.name, places[key]), (name, others[key])])
                phrases = (f"volume {its} in {list_names(sorted(values), 2)}" for its, values in both)
                yield RootCause(text=f"no node can access both {' and '.join(phrases)}")
                if (early := storage.classes.get(volume.spec.storage_class_name)) and early.provisions_first:
                    why = f"class {early.name} binds claims before scheduling (Immediate)"
                    yield RootCause(text=f"{why}: the volumes of the pod are in several places")
                return


def _places(volume: PersistentVolume) -> Mapping[str, frozenset[str]]:
    """Return label keys to the values with which a node reaches the volume, if it has only one term."""
    terms = terms_of(volume.required_node_affinity)
    if len(terms) != 1:
        return {}
    return {it.key: frozenset(it.values) for it in terms[0].match_expressions if it.operator == Operator.IN}


def _reported_refusal(snapshot: Snapshot, pod: Pod, key: str) -> str:
    """Return why the claim of a generic ephemeral volume is not created, as an event of the pod says; else empty."""
    event = snapshot.failed_create("Pod", pod.metadata)
    about = f"create PVC {key.partition('/')[2]}: "
    return "" if event is None or event.reason != FAILED_BINDING else event.message.partition(about)[2]


def ephemeral_claim_refusal(snapshot: Snapshot, pod: Pod, release: Release, key: str) -> str | None:
    """Return why a quota or LimitRange refuses the claim of a generic ephemeral volume; None if none does. Upstream:
    pkg/controller/volume/ephemeral/controller.go."""
    claim = ephemeral_claim(pod, key)
    if claim is None:
        return None
    claim = with_default_class(claim, default_class(snapshot.storage.classes.values()))
    return QuotaLedger(snapshot, release).take(claim)


def ephemeral_claim(pod: Pod, key: str, owners: tuple[OwnerReference, ...] = ()) -> PersistentVolumeClaim | None:
    """Return the claim as its generic ephemeral volume specifies it; None if that is invalid."""
    namespace, _, name = key.partition("/")
    for volume in pod.spec.volumes:
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        if template is None or claim_name(pod.metadata.name, volume) != name:
            continue
        metadata = ObjectMeta(name=name, namespace=namespace, owner_references=owners)
        claim = PersistentVolumeClaim(metadata=metadata, spec=template.spec)
        try:
            check_quantities(claim)
        except InputError:
            return None
        return claim
    return None
