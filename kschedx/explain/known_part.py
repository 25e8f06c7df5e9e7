"""The part of a pod that a dump decides, and the objects behind the rest.

What a pod refers to and a dump lacks is left out of the pod. A cluster that runs a pod has its claims, so a dump
without any claims lacks them. What is left out can only reject nodes, so rejections are valid without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES
from kschedx.errors import InputError
from kschedx.explain.events import recorded_event, rejects_nodes, shows_state
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.documents import with_spec
from kschedx.kube.selectors import compile_selector
from kschedx.kube.storage import NO_PROVISIONER, PersistentVolumeClaim, claim_name, own_claims
from kschedx.kube.types import Container, Pod, PodAffinity, PodAffinityTerm, Volume
from kschedx.plugins.inter_pod_affinity.plugin import REASON_AFFINITY
from kschedx.plugins.inter_pod_affinity.terms import PodTerms
from kschedx.plugins.volume_binding.plugin import REASON_NO_VOLUME, REASON_UNBOUND_IMMEDIATE
from kschedx.snapshot.pods import find_group, group_name
from kschedx.snapshot.snapshot import Snapshot

OPTIMISTIC = ("CSINode", "CSIStorageCapacity", "DeviceTaintRule")
"""Kinds whose absence only hides rejections; pods do not refer to their objects."""


class _KnownPart(Struct, frozen=True, kw_only=True):
    """The part of a pod that can be decided, and the objects behind the rest: kind to names."""

    pod: Pod
    unread: Mapping[str, tuple[str, ...]] = {}
    unplaced: tuple[PersistentVolumeClaim, ...] = ()
    """New claims whose volumes are provisioned before the pod is scheduled, in a place that is not known yet."""


def is_unread(snapshot: Snapshot, kind: str, namespace: str = "") -> bool:
    """Return whether the cluster may have objects of the kind that are not in the dump. Kinds that pods do not refer to
    often have none."""
    source = snapshot.source
    is_telling = kind not in OPTIMISTIC or kind == "CSINode" or kind in source.lacks
    if is_telling and source.may_lack(kind, namespace):
        return True
    return not source.is_complete(kind, namespace) and is_left_out(snapshot, kind, namespace)


def is_cut_down(snapshot: Snapshot) -> bool:
    """Return whether the nodes lack what an API server writes: the dump was cut down by hand to what matters, and holds
    the objects that go with its others, if there are any."""
    nodes = snapshot.cluster.nodes
    return bool(nodes) and not any(node.metadata.creation_timestamp for node in nodes)


def is_left_out(snapshot: Snapshot, kind: str, namespace: str = "") -> bool:
    """Return whether a running pod uses an object of the kind, in the namespace if given, that the dump lacks: then the
    kind was left out. A claim in use cannot be removed, and a pod starts with its claims bound."""
    if kind not in _USED:
        return False
    left_out = _left_out.of(snapshot)
    if (kind, namespace) not in left_out:
        pods, used = snapshot.pods, _USED[kind]
        may_use = pods.specs.where(lambda spec: bool(spec.volumes or spec.resource_claims or spec.priority_class_name))
        runs = pods.phases.where(lambda phase: phase == "Running")
        rows = np.flatnonzero(may_use & pods.phases.where(lambda phase: phase in ("Running", "Pending")))
        left_out[kind, namespace] = any(
            namespace in ("", pods.namespaces[row])
            and used(snapshot, pods[row])
            and (runs[row] or _has_references(snapshot, pods[row], kind))
            for row in rows.tolist()
        )
    return left_out[kind, namespace]


class _LeftOut:
    """Results about the last dump: thousands of pods may lack their claims, and a moving cluster stays the same
    dump."""

    def __init__(self) -> None:
        self._about: tuple[object, ...] = ()
        self._found: dict[tuple[str, str], bool] = {}
        self._terms: tuple[PodAffinityTerm, ...] | None = None

    def of(self, snapshot: Snapshot) -> dict[tuple[str, str], bool]:
        about = (snapshot.pods.specs.values, snapshot.source, snapshot.priority_classes)
        if len(self._about) != len(about) or any(
            item is not other for item, other in zip(self._about, about, strict=True)
        ):
            self._about, self._found, self._terms = about, {}, None
        return self._found

    def terms_of(self, snapshot: Snapshot) -> tuple[PodAffinityTerm, ...]:
        """Return the required anti-affinity of its pods that selects namespaces by label."""
        self.of(snapshot)
        if self._terms is None:
            self._terms = tuple(
                term
                for spec in snapshot.pods.specs.values
                for term in spec.required_anti_affinity
                if selects_by_label(term)
            )
        return self._terms


_left_out = _LeftOut()


def _has_references(snapshot: Snapshot, pod: Pod, kind: str) -> bool:
    """Return whether kube-scheduler's own event shows that the objects of the kind exist which the pod names: it
    rejects nodes one by one, so that PreFilter found all of them, or says in which state one is."""
    event = recorded_event(snapshot, pod)
    return event is not None and (rejects_nodes(event.message) or shows_state(event.message, kind))


def _lacks_device_class(snapshot: Snapshot, pod: Pod) -> bool:
    classes = snapshot.devices.classes
    return any(
        name not in classes
        for claim in _allocated_claims(snapshot, pod)
        for request in claim.spec.devices.requests
        for name in ((request.exactly or request).device_class_name,)
        if name
    )


def _allocated_claims(snapshot: Snapshot, pod: Pod) -> Iterator[ResourceClaim]:
    return (claim for claim in snapshot.devices.claims_of(pod) if claim.status.allocation is not None)


def _bound_claims(snapshot: Snapshot, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    return (claim for claim in snapshot.storage.claims_of(pod) if claim.spec.volume_name)


def _lacks_priority_class(snapshot: Snapshot, pod: Pod) -> bool:
    name = pod.spec.priority_class_name
    return bool(name) and name not in BUILT_IN_CLASSES and name not in snapshot.priority_classes


_USED: Mapping[str, Callable[[Snapshot, Pod], bool]] = {
    "PersistentVolumeClaim": lambda snapshot, pod: any(key not in snapshot.storage.claims for key in own_claims(pod)),
    "PersistentVolume": lambda snapshot, pod: not snapshot.storage.volumes and any(_bound_claims(snapshot, pod)),
    "StorageClass": lambda snapshot, pod: (
        not snapshot.storage.classes and any(claim.storage_class for claim in _bound_claims(snapshot, pod))
    ),
    "DeviceClass": _lacks_device_class,
    "ResourceSlice": lambda snapshot, pod: not snapshot.devices.slices and any(_allocated_claims(snapshot, pod)),
    "ResourceClaim": lambda snapshot, pod: any(
        key not in snapshot.devices.claims for key in pod.device_claims.values()
    ),
    "PriorityClass": _lacks_priority_class,
}
"""Kind to whether a running pod uses an object that is not in the dump."""


def known_part(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    own = (pod.spec.priority_class_name,)
    unread: dict[str, tuple[str, ...]] = {"PriorityClass": own} if pod.spec.has_unknown_priority else {}
    unplaced: tuple[PersistentVolumeClaim, ...] = ()
    for take in (_without_claims, _without_devices, _without_group, _without_namespaces, _without_affinity):
        part = take(snapshot, pod)
        pod = part.pod
        unread.update(part.unread)
        unplaced += part.unplaced
    return _KnownPart(pod=pod, unread=unread, unplaced=unplaced)


def _unplaced_claims(snapshot: Snapshot, pod: Pod) -> tuple[PersistentVolumeClaim, ...]:
    """Return the pod's new claims whose class is Immediate and whose volumes get a place about which nothing is known.

    kube-scheduler rejects the pod until they are bound, which a driver does soon. So the pod is decided without them.
    """
    return tuple(claim for claim in snapshot.storage.claims_of(pod) if snapshot.provisions_first(claim))


def _without_claims(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    """Leave out the volumes whose claim, bound volume, or class is missing, and those that a driver provisions first,
    in a place that is not known."""
    unplaced = _unplaced_claims(snapshot, pod)
    names = {claim.name for claim in unplaced}
    lacking = [
        (volume, _unread_of_volume(snapshot, pod, volume))
        for volume in pod.spec.volumes
        if claim_name(pod.metadata.name, volume) not in names
    ]
    kept = tuple(volume for volume, unread in lacking if unread is None)
    if len(kept) == len(pod.spec.volumes):
        return _KnownPart(pod=pod)
    unread = unique_names(unread for _, unread in lacking if unread is not None)
    return _KnownPart(pod=with_spec(pod, volumes=kept), unread=unread, unplaced=unplaced)


def _unread_of_volume(snapshot: Snapshot, pod: Pod, volume: Volume) -> tuple[str, str] | None:
    name = claim_name(pod.metadata.name, volume)
    if not name:
        return None
    namespace, storage = pod.metadata.namespace, snapshot.storage
    claim = storage.claim(namespace, name)
    if claim is None:
        return ("PersistentVolumeClaim", name) if is_unread(snapshot, "PersistentVolumeClaim", namespace) else None
    if claim.metadata.deletion_timestamp or claim.status.phase == "Lost":
        return None  # VolumeBinding rejects it before it reads its volume or class
    bound, named = claim.spec.volume_name, claim.storage_class
    if bound:
        # an API server stored it, so the cluster has its volume: without it, the claim would be Lost
        is_stored = claim.metadata.is_stored and bool(claim.metadata.creation_timestamp or snapshot.source.is_dump)
        has_volume = is_stored and claim.status.phase == "Bound"
        is_left_out = has_volume and not (storage.volumes or snapshot.source.is_complete("PersistentVolume"))
        is_there = bound in storage.volumes or not is_unread(snapshot, "PersistentVolume")
        return None if is_there and not is_left_out else ("PersistentVolume", bound)
    if claim.spec.storage_class_name is None and not named and not claim.metadata.is_stored:
        # it does not exist yet and gets the default class, if there is one
        return ("StorageClass", "") if not storage.classes and is_unread(snapshot, "StorageClass") else None
    if named and named not in storage.classes:
        report = snapshot.failed_create("PersistentVolumeClaim", claim.metadata)
        if report is not None and all(part in report.message for part in (f'"{named}"', "found")):
            return None
        event = recorded_event(snapshot, pod) if storage.volumes_of(named) else None
        if event is not None and REASON_UNBOUND_IMMEDIATE in event.message:
            return None  # whether or not the class exists, a volume has to be bound first
        return ("StorageClass", named) if is_unread(snapshot, "StorageClass") else None
    if storage.volumes or is_cut_down(snapshot) or named not in storage.classes:
        return None  # if the dump lacks volumes, they do not match
    event = recorded_event(snapshot, pod)
    is_reported = event is not None and REASON_NO_VOLUME in event.message
    makes_none = storage.classes[named].provisioner == NO_PROVISIONER
    is_open = makes_none and not is_reported and is_unread(snapshot, "PersistentVolume")
    return ("PersistentVolume", "") if is_open else None


def _without_devices(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    """Leave out the device claims that refer to missing objects."""
    lacking = {claim.name: [*_unread_of_devices(snapshot, pod, claim.name)] for claim in pod.spec.resource_claims}
    gone = {name for name, unread in lacking.items() if unread}
    if not gone:
        return _KnownPart(pod=pod)
    spec = replace(
        pod.spec,
        resource_claims=tuple(claim for claim in pod.spec.resource_claims if claim.name not in gone),
        containers=_without_container_claims(pod.spec.containers, gone),
        init_containers=_without_container_claims(pod.spec.init_containers, gone),
    )
    return _KnownPart(pod=replace(pod, spec=spec), unread=unique_names(chain.from_iterable(lacking.values())))


def unique_names(unread: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return kinds to names without duplicates; an empty name means any object of the kind."""
    names: dict[str, dict[str, None]] = {}
    for kind, name in unread:
        names.setdefault(kind, {})[name] = None
    return {kind: tuple(filter(None, each)) for kind, each in names.items()}


def _without_container_claims(containers: Sequence[Container], gone: Collection[str]) -> tuple[Container, ...]:
    def kept(container: Container) -> Container:
        claims = tuple(claim for claim in container.resources.claims if claim.name not in gone)
        return replace(container, resources=replace(container.resources, claims=claims))

    return tuple(map(kept, containers))


def _unread_of_devices(snapshot: Snapshot, pod: Pod, name: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of missing objects for the pod's claim with this name."""
    namespace, devices = pod.metadata.namespace, snapshot.devices
    reference = next(claim for claim in pod.spec.resource_claims if claim.name == name)
    key = pod.device_claims.get(name)
    if key is None:
        template = reference.resource_claim_template_name
        is_generated = any(status.name == name for status in pod.status.resource_claim_statuses)
        is_new = not is_generated and pod.key not in snapshot.pods.rows
        if template and is_new and is_unread(snapshot, "ResourceClaimTemplate", namespace):
            yield "ResourceClaimTemplate", template
        return
    claim = devices.claims.get(key)
    if claim is None:
        if is_unread(snapshot, "ResourceClaim", namespace):
            yield "ResourceClaim", key.partition("/")[2]
        return
    if claim.status.allocation is not None:
        return
    requests = claim.spec.devices.requests
    classes = (
        subrequest.device_class_name
        for request in requests
        for subrequest in (request.exactly, *request.first_available)
        if subrequest
    )
    absent = [device_class for device_class in dict.fromkeys(classes) if device_class not in devices.classes]
    if absent and not is_unread(snapshot, "DeviceClass"):
        return  # PreFilter rejects the pod before it reads slices
    yield from (("DeviceClass", device_class) for device_class in absent)
    is_open = bool(absent) or not is_cut_down(snapshot)
    if is_open and not devices.slices and is_unread(snapshot, "ResourceSlice"):
        yield "ResourceSlice", ""


def _without_group(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    namespace, spec = pod.metadata.namespace, pod.spec
    unread: dict[str, tuple[str, ...]] = {}
    for kind, name in (
        ("PodGroup", group_name(spec, of_workloads=False)),
        ("Workload", group_name(spec, of_workloads=True)),
    ):
        if name and find_group(snapshot.pod_groups, namespace, name) is None and is_unread(snapshot, kind, namespace):
            unread[kind] = (name,)
    if not unread:
        return _KnownPart(pod=pod)
    return _KnownPart(pod=replace(pod, spec=replace(spec, scheduling_group=None, workload_ref=None)), unread=unread)


def _without_namespaces(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    """Leave out required terms that select namespaces by label, if the labels are unknown."""
    # a namespace with pods exists
    is_left_out = len(snapshot.pods) and not (snapshot.namespaces or snapshot.source.is_complete("Namespace"))
    if not (is_left_out or is_unread(snapshot, "Namespace")):
        return _KnownPart(pod=pod)
    others = any(is_about(term, pod.metadata.labels) for term in _left_out.terms_of(snapshot))
    affinity = pod.spec.affinity
    known = affinity
    if affinity is not None:
        sides = _with_known_terms(affinity.pod_affinity), _with_known_terms(affinity.pod_anti_affinity)
        known = replace(affinity, pod_affinity=sides[0], pod_anti_affinity=sides[1])
    if known == affinity and not others:
        return _KnownPart(pod=pod)
    return _KnownPart(pod=with_spec(pod, affinity=known), unread={"Namespace": ()})


def _with_known_terms(side: PodAffinity | None) -> PodAffinity | None:
    if side is None:
        return None
    terms = side.required_during_scheduling_ignored_during_execution
    known = tuple(term for term in terms if not selects_by_label(term))
    return replace(side, required_during_scheduling_ignored_during_execution=known)


def selects_by_label(term: PodAffinityTerm) -> bool:
    """An empty selector selects all namespaces, whatever their labels."""
    selector = term.namespace_selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def is_about(term: PodAffinityTerm, labels: dict[str, str]) -> bool:
    """Return whether a term's labelSelector matches these labels."""
    try:
        return compile_selector(term.label_selector).matches(labels)
    except InputError:
        return False


def _without_affinity(snapshot: Snapshot, pod: Pod) -> _KnownPart:
    """Leave out required podAffinity that no known pod meets, if pods of other namespaces could, which are not read."""
    affinity, source = pod.spec.affinity, snapshot.source
    if affinity is None or affinity.pod_affinity is None:
        return _KnownPart(pod=pod)
    known = {*source.namespaces} or ({*snapshot.only_namespaces} if source.is_dump else set())
    if not known:
        return _KnownPart(pod=pod)
    labels = snapshot.namespaces
    terms = [
        term.resolve(labels, keeps_selectors=True)
        for term in PodTerms.of_existing(affinity, pod.metadata.namespace).required_affinity
    ]
    named = [term.namespaces for term in terms if not term.covers_every_namespace]
    unread = sorted(set.intersection(*map(set, named)) - known) if named else []
    if labels:
        unread = [namespace for namespace in unread if namespace in labels]
    event, pods = recorded_event(snapshot, pod), snapshot.pods
    is_met = reduce(lambda met, term: met & term.matching_pods(pods), terms, pods.node >= 0).any()
    if is_met or not terms or (named and not unread) or (event is not None and REASON_AFFINITY in event.message):
        return _KnownPart(pod=pod)
    rest = replace(affinity.pod_affinity, required_during_scheduling_ignored_during_execution=())
    return _KnownPart(pod=with_spec(pod, affinity=replace(affinity, pod_affinity=rest)), unread={"Pod": tuple(unread)})
