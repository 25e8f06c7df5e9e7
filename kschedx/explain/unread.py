"""Objects that a pod needs and that a dump does not hold: they are left out, and what they could change is named.

A cluster that runs a pod has its claims, so a dump without any claims does not say that there are none: whoever saved
it did not ask for them. What is left out here can only keep the pod from a node, so rejections stand without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.kinds import KINDS
from kschedx.api.pod_claims import claim_name
from kschedx.api.pod_volumes import Volume
from kschedx.api.types import Container, Pod, PodAffinity
from kschedx.explain.missing import ADDED, MATTERS, get_command, is_about, selects
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.unheard import Kind, Stake, Unheard
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.source import Source

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_OPTIMISTIC = ("CSINode", "CSIStorageCapacity", "DeviceTaintRule")
"""Kinds without which nothing is rejected that they would reject; no pod points to their objects."""
_IN_EVERY_CLUSTER = ("CSINode",)


class _Part(Struct, frozen=True, kw_only=True):
    """The part of a pod that can be judged, and the objects behind the rest: kind to names."""

    pod: Pod
    unread: Mapping[str, tuple[str, ...]]


def decide(scheduler: Scheduler, pod: Pod, profile: Profile) -> Cycle:
    """The pod's cycle, undecided where it depends on what a dump lacks."""
    snapshot = scheduler.snapshot
    part = _known_part(snapshot, pod)
    cycle = scheduler.schedule(part.pod, profile)
    optimistic = {kind: () for kind in _OPTIMISTIC if _is_unread(snapshot, kind) and MATTERS[kind](cycle)}
    unread = {kind: names for kind, names in {**part.unread, **optimistic}.items() if _is_asked_for(kind, profile)}
    if not unread:
        return cycle
    command = completing(snapshot, tuple(unread))
    unheard = tuple(
        Unheard(
            kind=Kind.OBJECTS,
            name=kind,
            objects=names,
            where=KINDS[kind].read_by,
            stake=Stake.FIT,
            lacking=_lacking(snapshot.source, kind),
            completed_by=command,
        )
        for kind, names in unread.items()
    )
    outcome = Outcome.UNDECIDED if cycle.outcome is Outcome.SCHEDULED else cycle.outcome
    return replace(cycle, outcome=outcome, unheard=(*cycle.unheard, *unheard))


def completing(snapshot: Snapshot, kinds: Sequence[str]) -> str:
    """A command for a file that completes the dump; where the dump holds a part, for the whole cluster anew."""
    if any(_lacking(snapshot.source, kind) for kind in kinds):
        return "kschedx snapshot -o cluster.json"
    readers = {plugin for kind in kinds for plugin in KINDS[kind].read_by}
    absent = (key for key in KINDS if not snapshot.source.kinds.get(key) and _can_be_asked_for(key, kinds))
    more = (key for key in absent if readers & set(KINDS[key].read_by))
    return get_command(tuple(dict.fromkeys((*kinds, *more))), ADDED)


def _is_asked_for(kind: str, profile: Profile) -> bool:
    """A plugin of the profile reads the kind; those before the framework have other names."""
    names = {name for plugins in profile.points.values() for name in plugins}
    return "predicates" in profile.points or bool(names & set(KINDS[kind].read_by))


def _can_be_asked_for(key: str, kinds: Sequence[str]) -> bool:
    """`kubectl get` asks for nothing at all where the API server does not know one of the kinds."""
    return not KINDS[key].is_optional or any(KINDS[kind].group == KINDS[key].group for kind in kinds)


def _is_unread(snapshot: Snapshot, kind: str, namespace: str = "") -> bool:
    """What is not there may be in the cluster; of a kind to which no pod points, there are often none."""
    source = snapshot.source
    is_telling = kind not in _OPTIMISTIC or kind in _IN_EVERY_CLUSTER or kind in source.lacks
    return is_telling and source.may_lack(kind, namespace)


def _lacking(source: Source, kind: str) -> str:
    """What a dump that holds some objects of the kind lacks; empty where it holds none."""
    return source.lacks.get(kind, "") if source.kinds.get(kind) else ""


# --- the parts of a pod


def _known_part(snapshot: Snapshot, pod: Pod) -> _Part:
    unread: dict[str, tuple[str, ...]] = {}
    for take in (_without_claims, _without_devices, _without_group, _without_namespaces):
        part = take(snapshot, pod)
        pod = part.pod
        unread.update(part.unread)
    return _Part(pod=pod, unread=unread)


def _without_claims(snapshot: Snapshot, pod: Pod) -> _Part:
    """Without the volumes whose claim, bound volume or class is not there."""
    unread: dict[str, list[str]] = {}
    kept: list[Volume] = []
    for volume in pod.spec.volumes:
        found = _unread_of_volume(snapshot, pod, volume)
        if found is None:
            kept.append(volume)
        else:
            kind, name = found
            unread.setdefault(kind, []).append(name)
    if not unread:
        return _Part(pod=pod, unread={})
    spec = replace(pod.spec, volumes=tuple(kept))
    return _Part(pod=replace(pod, spec=spec), unread=_named(unread))


def _unread_of_volume(snapshot: Snapshot, pod: Pod, volume: Volume) -> tuple[str, str] | None:
    name = claim_name(pod.metadata.name, volume)
    if not name:
        return None
    namespace, storage = pod.metadata.namespace, snapshot.storage
    claim = storage.claim(namespace, name)
    if claim is None:
        return ("PersistentVolumeClaim", name) if _is_unread(snapshot, "PersistentVolumeClaim", namespace) else None
    bound, named = claim.spec.volume_name, claim.storage_class
    if bound:
        is_there = bound in storage.volumes or not _is_unread(snapshot, "PersistentVolume")
        return None if is_there else ("PersistentVolume", bound)
    if claim.spec.storage_class_name is None and not named and not claim.metadata.creation_timestamp:
        # It is yet to be created, and gets the default class, if there is one.
        return ("StorageClass", "") if not storage.classes and _is_unread(snapshot, "StorageClass") else None
    if named and named not in storage.classes:
        return ("StorageClass", named) if _is_unread(snapshot, "StorageClass") else None
    makes_none = named and storage.classes[named].provisioner == _NO_PROVISIONER
    return ("PersistentVolume", "") if makes_none and _is_unread(snapshot, "PersistentVolume") else None


def _without_devices(snapshot: Snapshot, pod: Pod) -> _Part:
    """Without the claims on devices of which something is not there."""
    unread: dict[str, list[str]] = {}
    gone: set[str] = set()
    for reference in pod.spec.resource_claims:
        found = list(_unread_of_devices(snapshot, pod, reference.name))
        for kind, name in found:
            unread.setdefault(kind, []).append(name)
            gone.add(reference.name)
    if not gone:
        return _Part(pod=pod, unread={})
    spec = replace(
        pod.spec,
        resource_claims=tuple(one for one in pod.spec.resource_claims if one.name not in gone),
        containers=_without_container_claims(pod.spec.containers, gone),
        init_containers=_without_container_claims(pod.spec.init_containers, gone),
    )
    return _Part(pod=replace(pod, spec=spec), unread=_named(unread))


def _named(unread: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Each name once; an empty one is any object of the kind."""
    return {kind: tuple(filter(None, dict.fromkeys(names))) for kind, names in unread.items()}


def _without_container_claims(containers: Sequence[Container], gone: Collection[str]) -> tuple[Container, ...]:
    def kept(container: Container) -> Container:
        claims = tuple(one for one in container.resources.claims if one.name not in gone)
        return replace(container, resources=replace(container.resources, claims=claims))

    return tuple(map(kept, containers))


def _unread_of_devices(snapshot: Snapshot, pod: Pod, name: str) -> Iterator[tuple[str, str]]:
    """Kind and name of what is not there for the pod's claim of this name."""
    namespace, devices = pod.metadata.namespace, snapshot.devices
    reference = next(one for one in pod.spec.resource_claims if one.name == name)
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    claimed = reference.resource_claim_name or made.get(name)
    if not claimed:
        template = reference.resource_claim_template_name
        is_new = name not in made and pod.key not in snapshot.pods.rows
        if template and is_new and _is_unread(snapshot, "ResourceClaimTemplate", namespace):
            yield "ResourceClaimTemplate", template
        return
    claim = devices.claims.get(f"{namespace}/{claimed}")
    if claim is None:
        if _is_unread(snapshot, "ResourceClaim", namespace):
            yield "ResourceClaim", claimed
        return
    if claim.status.allocation is not None:
        return
    requests = claim.spec.devices.requests
    asked = (
        one.device_class_name for request in requests for one in (request.exactly, *request.first_available) if one
    )
    for device_class in dict.fromkeys(asked):
        if device_class not in devices.classes and _is_unread(snapshot, "DeviceClass"):
            yield "DeviceClass", device_class
    if not devices.slices and _is_unread(snapshot, "ResourceSlice"):
        yield "ResourceSlice", ""


def _without_group(snapshot: Snapshot, pod: Pod) -> _Part:
    group = pod.spec.scheduling_group
    name = group.pod_group_name if group else None
    namespace = pod.metadata.namespace
    if not name or f"{namespace}/{name}" in snapshot.pod_groups or not _is_unread(snapshot, "PodGroup", namespace):
        return _Part(pod=pod, unread={})
    return _Part(pod=replace(pod, spec=replace(pod.spec, scheduling_group=None)), unread={"PodGroup": (name,)})


def _without_namespaces(snapshot: Snapshot, pod: Pod) -> _Part:
    """Without the required terms that select namespaces by labels which nobody knows."""
    if not _is_unread(snapshot, "Namespace"):
        return _Part(pod=pod, unread={})
    others = any(
        selects(term) and is_about(term, pod.metadata.labels)
        for spec in snapshot.pods.specs.values
        if spec.affinity is not None and spec.affinity.pod_anti_affinity is not None
        for term in spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    )
    affinity = pod.spec.affinity
    known = affinity
    if affinity is not None:
        sides = _with_known_terms(affinity.pod_affinity), _with_known_terms(affinity.pod_anti_affinity)
        known = replace(affinity, pod_affinity=sides[0], pod_anti_affinity=sides[1])
    if known == affinity and not others:
        return _Part(pod=pod, unread={})
    return _Part(pod=replace(pod, spec=replace(pod.spec, affinity=known)), unread={"Namespace": ()})


def _with_known_terms(side: PodAffinity | None) -> PodAffinity | None:
    if side is None:
        return None
    terms = side.required_during_scheduling_ignored_during_execution
    known = tuple(term for term in terms if not selects(term))
    return replace(side, required_during_scheduling_ignored_during_execution=known)
