"""What a question starts from: the emulated version, and the pod as the API server would store it in the snapshot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError, Place, nearest
from kschedx.explain.admission import QuotaLedger, admission_notes, admitted_pod, require_quota, require_quota_of_claims
from kschedx.explain.cycle_notes import FIELDS_OF_GATES, device_claim_refusals
from kschedx.explain.events import recorded_event
from kschedx.explain.notes import CLAIMS_MADE, Note, note
from kschedx.explain.scheduler_profiles import FoundProfiles, found_profiles, unread_configuration
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Unevaluated, UnevaluatedDocument, unknown_plugins
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.decoding import decode, map_at, maps_at, value_at
from kschedx.kube.devices import Device, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from kschedx.kube.documents import with_spec
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    StorageClass,
    bound_claim,
    bound_volume,
    check_quantities,
    default_class,
    ephemeral_claim_name,
    new_claim,
    with_default_class,
)
from kschedx.kube.types import LOST_TAINTS, ObjectMeta, OwnerReference, Pod, PodResourceClaimStatus, PodSpec
from kschedx.plugins.volume_binding.matching import volume_to_bind
from kschedx.plugins.volume_binding.plugin import REASON_UNBOUND_IMMEDIATE
from kschedx.releases import EMULATED, VERSIONS, Release, resolve
from kschedx.releases.gates import DEPENDENCIES, specs
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.edits import with_applied
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Ask

_SERVER = "the API server is"


class _VersionSource(Struct, frozen=True, kw_only=True):
    teller: str  # the source: `most kubelets are`
    version: str

    @property
    def is_known(self) -> bool:
        try:
            resolve(self.version)
        except ConfigError:
            return False
        return True

    @property
    def emulated_version(self) -> str | None:
        """The version itself, else the nearest supported one; None if it is not a version."""
        if self.is_known:
            return self.version
        if minor_version(self.version) < minor_version(VERSIONS[-1]):
            return VERSIONS[-1]
        return EMULATED[0] if minor_version(self.version) > minor_version(EMULATED[0]) else None


def release_to_emulate(snapshot: Snapshot, requested: str | None) -> str | None:
    """Return the version of --kube-version, else the cluster's or the nearest supported one; None for the newest."""
    if requested is not None:
        return requested
    release = _version_source(snapshot)
    return release.emulated_version if release is not None else None


GROUP_CONDITIONS = ("PodGroupScheduled", "PodGroupInitiallyScheduled")
"""What kube-scheduler reports about a PodGroup if the gate GenericWorkload is on."""


_BY_FIELD: Mapping[str, Callable[[Device | ExactDeviceRequest | DeviceSubRequest], object]] = {
    "DRAConsumableCapacity": lambda it: it.allow_multiple_allocations if isinstance(it, Device) else it.capacity,
    "DRADeviceBindingConditions": lambda it: isinstance(it, Device) and it.binding_conditions,
    "DRADeviceTaints": lambda it: isinstance(it, Device) and it.taints,
    "DRAPartitionableDevices": lambda it: isinstance(it, Device) and it.consumes_counters,
    "DRAPrioritizedList": lambda it: isinstance(it, DeviceSubRequest),
}
"""Feature gates by fields of devices and requests, which an API server drops while the gate is off."""


def inferred_gates(snapshot: Snapshot, version: str | None, given: Mapping[str, bool]) -> Mapping[str, bool]:
    """The given feature gates, and those that must be on, because kube-scheduler reports about PodGroups, drivers
    publish devices, DeviceTaintRules exist, or PodGroups, devices, claims, and, in the cluster's own version, pods
    have fields of the gates."""
    release = resolve(version)
    is_own_version = snapshot.source.is_stored and version == release_to_emulate(snapshot, None)
    conditions = (condition for group in snapshot.pod_groups.values() for condition in group.status.conditions)
    groups = [group.spec for group in snapshot.pod_groups.values() if group.metadata.creation_timestamp]
    names: tuple[str, ...] = ()
    if any(it.scheduling_constraints for it in groups):
        names += ("TopologyAwareWorkloadScheduling",)
    if any(it.disruption_mode or it.priority is not None for it in groups):
        names += ("WorkloadAwarePreemption",)
    is_of_groups = names or any(condition.type in GROUP_CONDITIONS for condition in conditions)
    if is_of_groups or (
        is_own_version and _is_in_stored_pod(snapshot.pods, lambda spec: spec.scheduling_group or spec.workload_ref)
    ):
        names += ("GenericWorkload", "GangScheduling")
    if snapshot.devices.slices and not release.enabled("DynamicResourceAllocation"):
        names += ("DynamicResourceAllocation",)
    if any(rule.metadata.creation_timestamp for rule in snapshot.devices.taint_rules):
        names += ("DRADeviceTaints", "DRADeviceTaintRules")
    known = specs(release.version)
    off = [gate for gate in _BY_FIELD if gate in known and not release.enabled(gate)]
    stored: list[Device | ExactDeviceRequest | DeviceSubRequest] = []
    if off:
        stored += (device for it in snapshot.devices.slices for device in it.spec.devices)
        for claim in snapshot.devices.claims.values():
            for request in claim.spec.devices.requests:
                stored += (*request.first_available, *(() if request.exactly is None else (request.exactly,)))
    names += tuple(gate for gate in off if any(map(_BY_FIELD[gate], stored)))
    if is_own_version:
        names += tuple(
            gate
            for _, gate, is_used in FIELDS_OF_GATES
            if not release.enabled(gate) and _is_in_stored_pod(snapshot.pods, is_used)
        )
    needed = {name: DEPENDENCIES.get(name, ()) for name in names if name in known}
    shown = {name: True for name, needs in needed.items() if all(given.get(it, True) for it in needs)}
    return {**shown, **given}


def _is_in_stored_pod(pods: PodTable, is_used: Callable[[PodSpec], object]) -> bool:
    """Return whether an API server has stored a pod with the field. It drops the field of a new pod while the gate is
    off."""
    rows = np.flatnonzero(pods.specs.where(lambda spec: bool(is_used(spec)))).tolist()
    return any(pods.uids[row] and pods.creation_timestamps[row] for row in rows)


def _release_note(snapshot: Snapshot, requested: str | None) -> Note | None:
    """Return a note about a version that kubelets suggest, or that is not supported; the footer has every version."""
    emulated = _version_source(snapshot) if requested is None else None
    if emulated is None:
        return None
    release = resolve(emulated.emulated_version)
    if emulated.is_known and (emulated.teller == _SERVER or release.version == VERSIONS[0]):
        return None
    text = f"{emulated.teller} {emulated.version}"
    text += "" if emulated.is_known else ", which kschedx does not support"
    text += f": kschedx emulates kube-scheduler {release.title}"
    text += "" if emulated.is_known else " (--kube-version selects another)"
    key = "server_version" if emulated.teller == _SERVER else "kubelet_version"
    return note("release", text, **{key: emulated.version})


def _version_source(snapshot: Snapshot) -> _VersionSource | None:
    server = snapshot.source.server_version
    if minor_version(server) != _NO_VERSION:
        return _VersionSource(teller=_SERVER, version=server)
    kubelets = Counter(node.status.node_info.kubelet_version for node in snapshot.cluster.nodes)
    releases: Counter[tuple[int, int]] = Counter()
    for version, count in kubelets.items():
        if minor_version(version) != _NO_VERSION:
            releases[minor_version(version)] += count
    if not releases:
        return None
    most = max(releases, key=lambda release: (releases[release], release))
    version = max(version for version in kubelets if minor_version(version) == most)
    return _VersionSource(teller="the kubelets are" if len(releases) == 1 else "most kubelets are", version=version)


_NO_VERSION = (0, 0)


def minor_version(version: str) -> tuple[int, int]:
    """Return (1, 36) for `v1.36.2-gke.100`, and `_NO_VERSION` if it is not a version, or that of a build without one
    (v0.0.0-master)."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-]|$)", version, re.ASCII)
    return (int(match[1]), int(match[2])) if match else _NO_VERSION


# A scheduler setup: its version and the profiles of its configuration, built once for a question.


class Setup(Struct, frozen=True, kw_only=True):
    """A scheduler, and how the API server admits a manifest."""

    name: str = ""  # the name of the setup in comparisons
    scheduler: Scheduler
    snapshot: Snapshot | None = None  # the cluster as it was loaded; None for an empty cluster
    forced_profile: str | None = None  # the profile for every pod, whatever its `spec.schedulerName`
    admission_plugins: tuple[str, ...] = ()  # the API server's enabled plugins besides the default ones
    notes: tuple[Note, ...] = ()  # how the version was determined
    found: FoundProfiles | None = None  # the profiles of other schedulers in the cluster's ConfigMaps
    is_after_queue: bool = False  # whether pods that come earlier in the queue have their nodes before the answer

    @classmethod
    def of(
        cls,
        name: str,
        config: Mapping[str, object] | None,
        release: Release,
        ask: Ask | None = None,
        *,
        without_unknown_plugins: bool = False,
    ) -> Setup:
        """Return a setup for comparisons on any cluster. Raises `ConfigError` for a configuration that kube-scheduler
        would refuse."""
        scheduler = scheduler_of(config, release, ask=ask)
        return cls(name=name, scheduler=scheduler.without_unknown_plugins() if without_unknown_plugins else scheduler)

    @classmethod
    def of_cluster(
        cls,
        snapshot: Snapshot,
        *,
        config: Mapping[str, object] | None = None,
        profile: str | None = None,
        kube_version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        admission_plugins: Sequence[str] = (),
        without_unknown_plugins: bool = False,
        ask: Ask | None = None,
    ) -> Setup:
        """Use the given version, else the cluster's. Raises `ConfigError`. `ask` calls the extenders."""
        version = release_to_emulate(snapshot, kube_version)
        release = resolve(version, inferred_gates(snapshot, version, feature_gates or {}))
        notes = (_release_note(snapshot, kube_version), unread_configuration(snapshot) if config is None else None)
        found = found_profiles(snapshot, release) if config is None else None
        scheduler = scheduler_of(config if found is None else found.config, release, snapshot, ask)
        return cls(
            scheduler=scheduler.without_unknown_plugins() if without_unknown_plugins else scheduler,
            snapshot=snapshot,
            forced_profile=profile,
            admission_plugins=tuple(admission_plugins),
            found=found,
            notes=tuple(it for it in notes if it is not None),
        )

    def with_config(self, config: Mapping[str, object], snapshot: Snapshot) -> Setup:
        """Replace the configuration, without its unknown plugins. Raises `ConfigError`."""
        scheduler = scheduler_of(config, self.release, snapshot).without_unknown_plugins()
        return replace(self, scheduler=scheduler, snapshot=snapshot)

    def scheduler_on(self, snapshot: Snapshot) -> Scheduler:
        """Return the scheduler on the loaded cluster, or on a changed one."""
        return self.scheduler if snapshot is self.snapshot else self.scheduler.on_cluster(snapshot)

    @property
    def release(self) -> Release:
        return self.scheduler.release

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return self.scheduler.config.profiles

    @property
    def unknown_plugins(self) -> tuple[Unevaluated, ...]:
        """The distinct plugins in all profiles that kschedx does not have."""
        config = self.scheduler.config
        unknown = (unknown_plugin for profile in config.profiles for unknown_plugin in unknown_plugins(profile, config))
        return tuple({unevaluated.name: unevaluated for unevaluated in unknown}.values())

    @property
    def unknown_plugin_documents(self) -> tuple[UnevaluatedDocument, ...]:
        return tuple(unknown_plugin.document for unknown_plugin in self.unknown_plugins)

    @property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(profile.scheduler_name for profile in self.profiles)

    def is_found(self, pod: Pod) -> bool:
        """Return whether the pod's profile is that of another scheduler, from a ConfigMap of the cluster."""
        name = pod.spec.scheduler_name
        is_own = self.found is not None and name in self.found.config_maps and name != DEFAULT_SCHEDULER
        return is_own and self.forced_profile is None

    def notes_about(self, pod: Pod) -> tuple[Note, ...]:
        """Return the notes, and where the pod's profile was found."""
        is_own = self.found is not None and self.forced_profile is None
        return (*self.notes, *(self.found.notes_about(pod.spec.scheduler_name) if self.found and is_own else ()))

    def profile_of(self, pod: Pod) -> Profile:
        """Return the profile that schedules a pod. Raises `ConfigError` if there is none."""
        if self.forced_profile is not None:
            return self.scheduler.config.profile_for(self.forced_profile)
        try:
            return self.scheduler.config.profile_for(pod.spec.scheduler_name)
        except ConfigError as error:
            raise error.at(Place(object=f"Pod {pod.key}", field="spec.schedulerName")) from None

    def profile_compared(self, scheduler_name: str) -> Profile | None:
        """Return the profile for a pod's `spec.schedulerName` in a comparison. A configuration with a single profile is
        used for any name, to show what the pods of the other side would do."""
        named = (profile for profile in self.profiles if profile.scheduler_name == scheduler_name)
        only = self.profiles[0] if len(self.profiles) == 1 else None
        return next(named, only)


# The subject of a question: a pod as kube-scheduler would see it, in its cluster.

# What kube-controller-manager creates for a new pod: claims for devices and volumes, from templates. A new manifest has
# none; kube-scheduler sees it after they are created. Upstream: pkg/controller/resourceclaim,
# pkg/controller/volume/ephemeral, pkg/controller/statefulset.

_NEW_UID = "new"  # the uid of a new pod, to which its own claims refer


def with_created_claims(snapshot: Snapshot, created: Mapping[str, PersistentVolumeClaim]) -> Snapshot:
    """Add new claims as the volume controller leaves them. Unless their class waits for a pod, they are bound to the
    smallest volume that fits, or else to one that a driver provisions (`Snapshot.with_new_claims`)."""
    left: dict[str, PersistentVolumeClaim] = {}
    for key, claim in created.items():
        storage = snapshot.storage
        new = new_claim(storage.with_default(claim))
        volume = None if claim.spec.volume_name or storage.waits(new) else volume_to_bind(new, storage)
        if volume is None:
            left[key] = claim
            continue
        claims = {**storage.claims, key: bound_claim(new, volume.name)}
        volumes = {**storage.volumes, volume.name: bound_volume(volume, new)}
        snapshot = snapshot.with_storage(replace(storage, claims=claims, volumes=volumes))
    return snapshot.with_new_claims(left) if left else snapshot


def _with_dependents(
    snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]
) -> tuple[Snapshot, tuple[Note, ...]]:
    """Add what a pod's controller creates before the pod, with a note about claims. For an existing StatefulSet, claims
    that were not listed are unknown."""
    claims = [manifest for manifest in manifests if manifest.get("kind") == "PersistentVolumeClaim"]
    others = [manifest for manifest in manifests if manifest.get("kind") != "PersistentVolumeClaim"]
    named = {f"{_of(claim, 'namespace')}/{_of(claim, 'name')}": claim for claim in claims}
    new = {key: item for key, item in named.items() if key not in snapshot.storage.claims}
    if others or new:
        snapshot = with_applied(snapshot, [*others, *new.values()])
    if not new:
        return snapshot, ()
    created = {key: snapshot.storage.claims[key] for key in new}
    snapshot = with_created_claims(
        snapshot, {key: claim for key, claim in created.items() if not claim.spec.volume_name}
    )
    return snapshot, (_claims_note(new, "its controller creates"),)


def _claims_note(claims: Iterable[str], by: str) -> Note:
    names = tuple(claims)
    return note(CLAIMS_MADE, f"evaluated with the claims that {by}: {', '.join(names)}", claims=names)


def claim_refusal_note(claim: str, refusal: str) -> Note:
    """Note a refused claim of a generic ephemeral volume: the pod exists and stays pending. `refusal`: the API server's
    words."""
    text = f"claim {claim} is not created for the pod's ephemeral volume: {refusal}"
    return note("claim-not-made", text, claim=claim, refusal=refusal)


def _of(manifest: Mapping[str, object], field: str) -> str:
    return str(map_at(manifest, "metadata").get(field) or "")


def _with_ephemeral_claims(
    snapshot: Snapshot, pod: Pod, manifest: Mapping[str, object], release: Release, *, is_recreated: bool
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """Return the cluster with the claims of the pod's generic ephemeral volumes, the pod that owns them, and notes,
    also about refused claims."""
    claims: dict[str, PersistentVolumeClaim] = {}
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=_NEW_UID, controller=True)
    classes = default_class(snapshot.storage.classes.values())
    quotas = QuotaLedger(snapshot, release)
    refused: list[Note] = []
    for volume in maps_at(manifest, "spec", "volumes"):
        template = value_at(volume, "ephemeral", "volumeClaimTemplate")
        if not isinstance(template, dict):
            continue
        name = f"{pod.metadata.name}-{volume.get('name')}"
        claim = decode(msgspec.json.encode({"spec": template.get("spec") or {}}), PersistentVolumeClaim)
        metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,))
        claim = replace(claim, metadata=metadata)
        check_quantities(claim)
        if claim.key in snapshot.storage.claims and not is_recreated:
            continue  # the claim of a deleted pod is deleted with it
        claim = with_default_class(claim, classes)
        refusal = quotas.take(claim)
        if refusal is None:
            claims[claim.key] = claim
        else:
            refused.append(claim_refusal_note(claim.key, refusal))
    if not claims:
        return snapshot, pod, tuple(refused)
    owning = replace(pod, metadata=replace(pod.metadata, uid=_NEW_UID))
    by = "kube-controller-manager creates for its ephemeral volumes"
    return with_created_claims(snapshot, claims), owning, (_claims_note(claims, by), *refused)


def with_own_claims(snapshot: Snapshot, original: Pod, pod: Pod) -> tuple[Snapshot, Pod]:
    """Return the cluster with the claims of a new copy of `original`, and the new pod, whose status names them."""
    claims: dict[str, PersistentVolumeClaim] = {}
    for volume in pod.spec.volumes:
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        if template is not None:
            name = ephemeral_claim_name(pod.metadata.name, volume)
            claim = unbound_claim(PersistentVolumeClaim(spec=template.spec), pod, name)
            claims[claim.key] = claim
    if claims:
        snapshot = with_created_claims(snapshot, claims)
    if len(original.device_claims) == len(original.spec.resource_claims):  # otherwise, the API server refuses one
        snapshot, pod, _ = with_claims_of_templates(snapshot, pod)
    return snapshot, pod


def without_own_claims(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """The cluster before claims were created for a new pod."""
    claims, volumes = {**snapshot.storage.claims}, {**snapshot.storage.volumes}
    for name in (ephemeral_claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes if volume.ephemeral):
        claim = claims.pop(f"{pod.metadata.namespace}/{name}", None)
        used = None if claim is None else volumes.get(claim.spec.volume_name)
        if claim is None or used is None:
            continue
        if used.metadata.uid == claim.metadata.uid:  # it was provisioned for the claim
            del volumes[used.name]
        else:
            status = PersistentVolumeStatus(phase="Available")
            volumes[used.name] = replace(used, spec=replace(used.spec, claim_ref=None), status=status)
    left = replace(snapshot.storage, claims=claims, volumes=volumes)
    return snapshot.with_storage(left).with_devices(snapshot.devices.without_deleted_pods({pod.key}))


def unbound_claim(template: PersistentVolumeClaim, pod: Pod, name: str) -> PersistentVolumeClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,), uid=f"new/{name}")
    spec = replace(template.spec, volume_name="")
    return replace(template, metadata=metadata, spec=spec, status=PersistentVolumeClaimStatus())


def with_claims_of_templates(
    snapshot: Snapshot, pod: Pod, quotas: QuotaLedger | None = None
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """Return the cluster with the claims, the pod with their names in its status, and a note about them, without the
    claims that the API server refuses if there are `quotas`."""
    refused: list[Note] = []
    known = {status.name for status in pod.status.resource_claim_statuses}
    created: dict[str, ResourceClaim] = {}
    templates: list[str] = []
    statuses: list[PodResourceClaimStatus] = []
    for reference in pod.spec.resource_claims:
        template = f"{pod.metadata.namespace}/{reference.resource_claim_template_name}"
        spec = snapshot.devices.templates.get(template)
        if reference.resource_claim_name is not None or spec is None or reference.name in known:
            continue
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
        )
        name = f"{pod.metadata.name}-{reference.name}"
        metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,))
        claim = ResourceClaim(metadata=metadata, spec=spec)
        refusal = None
        if quotas is not None:
            refusal = next(device_claim_refusals(snapshot, claim, quotas.release), None) or quotas.take(claim)
        if refusal is not None:
            text = f"claim {claim.key} is not created from its template: {refusal}"
            refused.append(note("claim-not-made", text, claim=claim.key, refusal=refusal))
            continue
        created[claim.key] = claim
        templates.append(template)
        statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=name))
    if not created:
        return snapshot, pod, tuple(refused)
    devices = replace(snapshot.devices, claims={**snapshot.devices.claims, **created})
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    sources = ", ".join(templates)
    text = f"evaluated with the claims that kube-controller-manager creates: {', '.join(created)} from {sources}"
    claims_note = note(CLAIMS_MADE, text, claims=tuple(created), templates=tuple(templates))
    return snapshot.with_devices(devices), replace(pod, status=status), (claims_note, *refused)


class Subject(Struct, frozen=True, kw_only=True):
    """A pod of the cluster, or of a manifest that was admitted once for all questions."""

    snapshot: Snapshot  # the cluster with what controllers create for the pod
    pod: Pod
    notes: tuple[Note, ...] = ()  # what the API server and controllers do before kube-scheduler sees the pod
    is_new: bool = False  # whether it comes from a manifest
    first: Subject | None = None  # the pod before controllers create its claims, if they create any

    @property
    def is_stored(self) -> bool:
        """Whether the cluster has the pod, with the same spec and labels if it comes from a manifest: then events are
        about it as it is. A manifest with a UID that a dump of no pods lacks is the stored pod itself."""
        row = self.snapshot.pods.rows.get(self.pod.key)
        if row is None:
            return bool(self.pod.metadata.uid) and self.snapshot.source.may_lack("Pod", self.pod.metadata.namespace)
        if not self.is_new:
            return True
        stored = self.snapshot.pods[row]
        added = (toleration for toleration in self.pod.spec.tolerations if toleration not in stored.spec.tolerations)
        if any(toleration.key not in LOST_TAINTS for toleration in added):  # admission adds these
            return False
        spec = with_spec(self.pod, tolerations=stored.spec.tolerations).spec
        return (stored.spec, stored.metadata.labels) == (spec, self.pod.metadata.labels)


def stored_subject(snapshot: Snapshot, pod: str | Pod) -> Subject:
    """Return the subject for a pod in the cluster, given as an object or as `namespace/name`. Raises `InputError`."""
    if isinstance(pod, Pod):
        return Subject(snapshot=snapshot, pod=pod)
    key = pod if "/" in pod else f"default/{pod}"
    row = snapshot.pods.rows.get(key)
    if row is None:
        raise InputError(f'no pod "{key}" in the snapshot', hint=nearest(key, snapshot.pods.rows))
    return Subject(snapshot=snapshot, pod=snapshot.pods[row])


def with_reported_class(subject: Subject) -> Subject:
    """Return the subject with the StorageClass that the dump may lack and the cluster itself shows: the pod's only
    unbound claim names the driver, and kube-scheduler's event shows that the class binds at once."""
    snapshot, pod = subject.snapshot, subject.pod
    unbound = [claim for claim in snapshot.storage.claims_of(pod) if not claim.spec.volume_name]
    if len(unbound) != 1 or unbound[0].storage_class in snapshot.storage.classes or not unbound[0].provisioner:
        return subject
    event, name = recorded_event(snapshot, pod), unbound[0].storage_class
    if event is None or REASON_UNBOUND_IMMEDIATE not in event.message or not snapshot.source.may_lack("StorageClass"):
        return subject
    shown = StorageClass(metadata=ObjectMeta(name=name), provisioner=unbound[0].provisioner)
    storage = replace(snapshot.storage, classes={**snapshot.storage.classes, name: shown})
    return replace(subject, snapshot=snapshot.with_storage(storage))


def admit(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    setup: Setup,
    *,
    title: str = "",
    dependents: Sequence[Mapping[str, object]] = (),
    maker: Mapping[str, object] | None = None,
    is_recreated: bool = False,
) -> Subject:
    """Admit a pod's manifest; `title` names it in errors.

    `dependents` is what the pod's controller creates before the pod, unless it exists; `maker` is the workload with its
    template; `is_recreated`: the pod of this name in the snapshot is deleted. Raises `InputError` if the API server
    would refuse it, and `UndecidableError` if that depends on what the snapshot lacks.
    """
    plugins = setup.admission_plugins
    with Place(object=title or _title(manifest)):
        admission = admitted_pod(snapshot, manifest, setup.release, plugins, maker)
    pod, notes = admission.pod, admission_notes(snapshot, manifest, admission, setup.release, plugins, maker)
    if snapshot.manifests is not None:
        snapshot = replace(snapshot, manifests=snapshot.manifests.with_pod(pod.key, manifest))
    if pod.key in snapshot.pods.rows and not is_recreated:
        return Subject(snapshot=snapshot, pod=pod, notes=notes, is_new=True)
    before = snapshot
    snapshot, of_controller = _with_dependents(snapshot, dependents)
    with Place(object=title or _title(manifest)):
        require_quota_of_claims(before, snapshot, pod, setup.release)
        require_quota(snapshot, pod, setup.release)
    sent = Subject(snapshot=snapshot, pod=pod)
    snapshot, pod, of_volumes = _with_ephemeral_claims(
        snapshot, pod, manifest, setup.release, is_recreated=is_recreated
    )
    snapshot, pod, of_devices = with_claims_of_templates(snapshot, pod, QuotaLedger(snapshot, setup.release))
    later = (*of_volumes, *of_devices)
    first: Subject | None = None
    if any(later_note.id == CLAIMS_MADE for later_note in later):
        first = sent
    elif of_controller:  # kube-scheduler may see the pod before its claims: it watches each kind separately
        first = Subject(snapshot=before, pod=pod)
    return Subject(snapshot=snapshot, pod=pod, notes=(*notes, *of_controller, *later), is_new=True, first=first)


def _title(manifest: Mapping[str, object]) -> str:
    named = map_at(manifest, "metadata")
    return f"Pod {named.get('namespace') or 'default'}/{named.get('name') or named.get('generateName') or ''}"


def unassign(snapshot: Snapshot, pod: Pod) -> tuple[Snapshot, Pod]:
    """Return a cluster without the running pod, and the pod without a node."""
    row = snapshot.pods.rows.get(pod.key)
    if row is None or snapshot.pods.node_names[row] not in snapshot.cluster.index:
        return snapshot, pod
    unbound = msgspec.structs.replace(pod.spec, node_name="")
    return snapshot.without_pods([row]), msgspec.structs.replace(pod, spec=unbound)
