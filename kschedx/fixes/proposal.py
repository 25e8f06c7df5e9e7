"""A cluster and a pod that differ from what is, as an overlay of a snapshot and as changes to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from kschedx.api.storage import BIND_COMPLETED, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kschedx.api.types import Node, Pod
from kschedx.fixes.changes import Change, Json, Target
from kschedx.fixes.cost import Cost
from kschedx.fixes.manifests import add, manifest, node_patch, pod_patch, pointer
from kschedx.fixes.steps import (
    AwaitController,
    AwaitTermination,
    CreateVolume,
    DeletePods,
    RepairNode,
    ResourceAmount,
    Step,
    StopWorkload,
    TakeOldFirst,
)
from kschedx.snapshot.daemon_sets import less
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot

Object = PersistentVolumeClaim | PersistentVolume | StorageClass | CSINode | ResourceClaim | DeviceClass | ResourceSlice
Kind = TypeVar("Kind", bound=Struct)

API_VERSIONS: Mapping[type[Struct], str] = {
    PersistentVolumeClaim: "v1",
    PersistentVolume: "v1",
    StorageClass: "storage.k8s.io/v1",
    CSINode: "storage.k8s.io/v1",
    ResourceClaim: "resource.k8s.io/v1",
    DeviceClass: "resource.k8s.io/v1",
    ResourceSlice: "resource.k8s.io/v1",
}


ONE_OLD_FIRST = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""The strategy of a Deployment that never has more pods than it wants."""
RECREATE = {"type": "Recreate"}
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBELET = "kubelet"


def _kind(one: Object) -> type[Struct]:
    """Records that were read in bulk are of subclasses."""
    return next(kind for kind in API_VERSIONS if isinstance(one, kind))


class Proposal(Struct, frozen=True, kw_only=True):
    """What is done, step by step, and what the cluster and the pod are then. Rows are those of the whole cluster."""

    steps: tuple[Step, ...] = ()
    pod: Pod
    nodes: Mapping[ClusterRow, Node] = field(default_factory=dict)
    """Node row to the node as it would be."""
    deleted: tuple[int, ...] = ()
    """Rows of pods that would go."""
    added: Node | None = None
    """A node that would come."""
    taken: tuple[ResourceAmount, ...] = ()
    """What DaemonSets take of it at once."""
    objects: tuple[Object, ...] = ()
    """Other objects that would come, or be as they are here."""
    taken_back: Mapping[str, ResourceClaim | None] = {}
    """Device claims, by `namespace/name`, as kube-scheduler leaves them for its next attempt; None where one goes."""

    @property
    def cost(self) -> Cost:
        """The dearest of its steps."""
        return max((step.cost for step in self.steps), default=Cost.TYPO)

    def having(self, *objects: Object) -> Proposal:
        """With objects that replace those of the same kind and name."""
        keys = {_key(one) for one in objects}
        return replace(self, objects=(*(one for one in self.objects if _key(one) not in keys), *objects))

    def cluster(self, snapshot: Snapshot) -> Snapshot:
        """The cluster as it would be."""
        if self.taken_back:
            snapshot = snapshot.with_devices(snapshot.devices.with_claims(self.taken_back))
        if self.deleted:
            gone = frozenset(snapshot.pods.key(row) for row in self.deleted)
            snapshot = snapshot.without_pods(self.deleted).with_devices(snapshot.devices.after_deletion(gone))
        if self.nodes:
            snapshot = snapshot.with_nodes(self.nodes)
        if self.added is not None:
            snapshot = snapshot.with_added_node(less(self.added, {one.resource: one.amount for one in self.taken}))
        if not self.objects:
            return snapshot
        storage, devices = snapshot.storage, snapshot.devices
        snapshot = snapshot.with_storage(
            replace(
                storage,
                claims={**storage.claims, **{one.key: one for one in self._of(PersistentVolumeClaim)}},
                volumes={**storage.volumes, **{one.name: one for one in self._of(PersistentVolume)}},
                classes={**storage.classes, **{one.name: one for one in self._of(StorageClass)}},
                csi_nodes={**storage.csi_nodes, **{one.metadata.name: one for one in self._of(CSINode)}},
            )
        )
        slices = tuple(self._of(ResourceSlice))
        changed = replace(
            devices,
            claims={**devices.claims, **{one.key: one for one in self._of(ResourceClaim)}},
            classes={**devices.classes, **{one.name: one for one in self._of(DeviceClass)}},
        )
        if slices:
            changed = replace(changed, slices=(*devices.slices, *slices), derived_from_slices={})
        return snapshot.with_devices(changed)

    def _of(self, kind: type[Kind]) -> Iterator[Kind]:
        return (one for one in self.objects if isinstance(one, kind))

    def _given_up(self, snapshot: Snapshot) -> Iterator[Change]:
        """What becomes of claims that kube-scheduler takes back, and of those of deleted pods; not of those that are
        made anew anyway."""
        made = {one.key for one in self._of(ResourceClaim)}
        before, after = snapshot.devices.claims, self.cluster(snapshot).devices.claims
        for key, claim in before.items():
            left = after.get(key)
            if key in made or left == claim:
                continue
            by = SCHEDULER if key in self.taken_back else CONTROLLER_MANAGER
            metadata = claim.metadata
            target = Target(
                api_version=claim.api_version or API_VERSIONS[ResourceClaim],
                kind="ResourceClaim",
                namespace=metadata.namespace,
                name=metadata.name,
            )
            if left is None:
                yield Change(target=target, delete=True, by=by)
            else:
                yield Change(target=target, patch=tuple(_released(claim, left)), by=by)

    def changes(self, pod: Pod, snapshot: Snapshot) -> Iterator[Change]:
        """What is different from `pod` and `snapshot`. An object whose spec may not change goes and comes again."""
        lifted = any(isinstance(step, AwaitController) for step in self.steps)
        held = replace(pod, spec=replace(pod.spec, scheduling_gates=())) if lifted else pod
        patch = tuple(pod_patch(held, self.pod))
        if patch:
            yield Change(target=_target("Pod", self.pod.metadata.namespace, self.pod.metadata.name), patch=patch)
        for step in self.steps:
            if isinstance(step, TakeOldFirst):
                yield _taking_old_first(step, pod.metadata.namespace)
            elif isinstance(step, StopWorkload):
                yield _stopped(step)
        by = dict(self._deleted_by())
        for row in self.deleted:
            pods = snapshot.pods
            target = _target("Pod", pods.namespaces[row], pods.names[row])
            yield Change(target=target, delete=True, by=by[row])
        if self.deleted or self.taken_back:
            yield from self._given_up(snapshot)
        for row, node in self.nodes.items():
            before = snapshot.cluster.nodes[row]
            faults = [
                one for step in self.steps if isinstance(step, RepairNode) and step.row == row for one in step.faults
            ]
            mended = {one.taint for one in faults}
            left = tuple(one for one in before.spec.taints if one in node.spec.taints or one in mended)
            asked = replace(node, status=before.status, spec=replace(node.spec, taints=left))
            target = _target("Node", "", node.name)
            if patch := tuple(node_patch(before, asked)):
                yield Change(target=target, patch=patch)
            if more := tuple(node_patch(asked, node)):
                yield Change(target=target, patch=more, by=faults[0].by if faults else KUBELET)
        if self.added is not None:
            yield Change(target=_target("Node", "", self.added.name), create=manifest("v1", "Node", self.added))
        drivers = self._drivers()
        for one in self.objects:
            driver = drivers.get(_key(one), "")
            for change in _changes(_existing(one, snapshot), one):
                yield replace(change, by=driver) if driver else change

    def _deleted_by(self) -> Iterator[tuple[int, str]]:
        """Pods that go, and who deletes them; nobody but whoever makes the change where that is empty."""
        for step in self.steps:
            match step:
                case TakeOldFirst(old=old):
                    yield old.row, CONTROLLER_MANAGER
                case StopWorkload(victims=victims):
                    yield from ((one.row, CONTROLLER_MANAGER) for one in victims)
                case AwaitTermination(victims=victims):
                    yield from ((one.row, KUBELET) for one in victims)
                case DeletePods(victims=victims):
                    yield from ((one.row, SCHEDULER if step.by_preemption else "") for one in victims)
                case _:
                    pass

    def _drivers(self) -> dict[tuple[str, str, str], str]:
        """What a storage class's driver makes and binds, where it comes to do so."""
        made = [step for step in self.steps if isinstance(step, CreateVolume) and step.provisioner]
        return {_key(one): step.provisioner for step in made if step.claim for one in (step.volume, step.claim)}


def _taking_old_first(step: TakeOldFirst, namespace: str) -> Change:
    target = Target(api_version="apps/v1", kind="Deployment", namespace=namespace, name=step.deployment)
    return Change(target=target, patch=(add("/spec/strategy", RECREATE if step.is_single else ONE_OLD_FIRST),))


def _stopped(step: StopWorkload) -> Change:
    target = Target(api_version=step.api_version, kind=step.kind, namespace=step.namespace, name=step.name)
    return (
        Change(target=target, delete=True)
        if step.is_deleted
        else Change(target=target, patch=(add("/spec/replicas", 0),))
    )


def _changes(before: Object | None, after: Object) -> Iterator[Change]:
    kind, namespace, name = _key(after)
    api_version = API_VERSIONS[_kind(after)]
    target = Target(api_version=api_version, kind=kind, namespace=namespace, name=name)
    if isinstance(before, PersistentVolumeClaim) and isinstance(after, PersistentVolumeClaim):
        bound = replace(
            before,
            metadata=replace(before.metadata, annotations={**before.metadata.annotations, BIND_COMPLETED: "yes"}),
            spec=replace(before.spec, volume_name=after.spec.volume_name),
        )
        if after == bound:
            yield Change(target=target, patch=tuple(_binding(before, after)))
            return
    if isinstance(before, PersistentVolume) and isinstance(after, PersistentVolume) and _is_released(before, after):
        yield Change(target=target, patch=({"op": "remove", "path": "/spec/claimRef"},))
        yield Change(target=target, patch=(add("/status/phase", after.status.phase),), by=CONTROLLER_MANAGER)
        return
    if before is not None:
        written = getattr(before, "api_version", "") or api_version
        yield Change(target=replace(target, api_version=written), delete=True)
    yield Change(target=target, create=manifest(api_version, kind, after))


def _is_released(before: PersistentVolume, after: PersistentVolume) -> bool:
    return before.spec.claim_ref is not None and replace(before.spec, claim_ref=None) == after.spec


def _released(before: ResourceClaim, after: ResourceClaim) -> Iterator[Json]:
    if before.status.allocation is not None and after.status.allocation is None:
        yield {"op": "remove", "path": "/status/allocation"}
    if before.status.devices and not after.status.devices:
        yield {"op": "remove", "path": "/status/devices"}
    if after.status.reserved_for:
        yield add("/status/reservedFor", after.status.reserved_for)
    elif before.status.reserved_for:
        yield {"op": "remove", "path": "/status/reservedFor"}


def _binding(before: PersistentVolumeClaim, after: PersistentVolumeClaim) -> Iterator[Json]:
    """What the volume controller writes when it binds; a volume is the only thing of its spec that a claim may get."""
    if before.spec == type(before.spec)():
        yield add("/spec", {"volumeName": after.spec.volume_name})
    else:
        yield add("/spec/volumeName", after.spec.volume_name)
    if before.metadata.annotations:
        yield add(f"/metadata/annotations/{pointer(BIND_COMPLETED)}", "yes")
    else:
        yield add("/metadata/annotations", {BIND_COMPLETED: "yes"})


def _key(one: Object) -> tuple[str, str, str]:
    return _kind(one).__name__, one.metadata.namespace, one.metadata.name


def _existing(one: Object, snapshot: Snapshot) -> Object | None:
    storage, devices, name = snapshot.storage, snapshot.devices, one.metadata.name
    match one:
        case PersistentVolumeClaim():
            return storage.claims.get(one.key)
        case PersistentVolume():
            return storage.volumes.get(name)
        case StorageClass():
            return storage.classes.get(name)
        case CSINode():
            return storage.csi_nodes.get(name)
        case ResourceClaim():
            return devices.claims.get(one.key)
        case DeviceClass():
            return devices.classes.get(name)
        case ResourceSlice():
            return None


def _target(kind: str, namespace: str, name: str) -> Target:
    return Target(api_version="v1", kind=kind, namespace=namespace, name=name)
