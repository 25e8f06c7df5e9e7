"""A changed cluster and pod, as an overlay of a snapshot and as changes to make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import ClassVar, TypeVar, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.controllers.workloads import is_controlled, stays_terminating
from kschedx.explain.advice import FixGroup
from kschedx.fixes.changes import add_operation, map_patch
from kschedx.kube.decoding import list_at, manifest, map_at, to_plain
from kschedx.kube.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kschedx.kube.documents import Change, Json, Target, pointer, remove_field, set_field, with_spec
from kschedx.kube.kinds import api_version_of
from kschedx.kube.storage import BIND_COMPLETED, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kschedx.kube.types import Container, Node, Pod, PodSpec, Taint
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.daemon_sets import with_less_allocatable
from kschedx.snapshot.edits import with_pods
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

ClusterObject = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceClass
    | ResourceSlice
)
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBELET = "kubelet"
UID_TO_COME = "<uid>"  # a placeholder for the UID that an API server gives a pod of which there is only a manifest

_Record = TypeVar("_Record", bound=Struct)


class Cost(IntEnum):
    """The cost of a fix, in the order in which an expert tries fixes if no node suits the pod."""

    WAITING = 0  # the cluster does it by itself
    TYPO = 1  # the pod has almost the same value as a node
    REPAIR = 2  # something broken is repaired, or a node is put back into service
    ROLLOUT = 3  # the workload's update strategy changes, not its pods
    POD = 4  # a change of the pod that gives up nothing
    LABEL = 5  # a node gets a label that the pod selects and that no node has
    REQUEST = 6  # the pod requests less
    CONSTRAINT = 7  # the pod gives up a constraint
    AROUND = 8  # claims, volumes, and classes are created or recreated
    NODE = 9
    NEW_NODE = 10
    MOVE = 11  # running pods are evicted, and each of them fits another node
    STOPGAP = 12
    """A stopgap if no node can be added: far lower requests, no hardware that the pod selects, or a volume created by
    hand."""
    OTHER_PODS = 13  # running pods are deleted
    DATA = 14  # stored data is lost


class FixStep(Struct, frozen=True, kw_only=True):
    """One change. Subclasses define `_title` or `title`, `apply`, and `_cost` or `cost`."""

    _title: ClassVar[str] = ""  # a template over the step `s`
    _cost: ClassVar[Cost] = Cost.POD
    _group: ClassVar[FixGroup] = FixGroup.WORKLOAD

    @property
    def cost(self) -> Cost:
        return self._cost

    @property
    def group(self) -> FixGroup:
        return self._group

    @property
    def title(self) -> str:
        """The title, in the imperative: `uncordon node-4`."""
        return self._title.format(s=self)

    @property
    def costs(self) -> tuple[str, ...]:
        """Costs of the step for others, one phrase each, such as what happens to a pod that is deleted."""
        return ()

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes on which the pod has to fit afterwards: otherwise the step is not what helped."""
        return frozenset()

    @property
    def lifts_gates(self) -> bool:
        """Whether a controller removes the pod's scheduling gates: you do not change them."""
        return False

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        raise NotImplementedError

    def commands(self) -> tuple[str, ...]:
        """Return kubectl commands that do everything; empty if it needs a patch or a manifest."""
        return ()

    def changes(self, namespace: str) -> Iterator[Change]:
        """Yield changes of objects that a `Proposal` does not hold. `namespace` is the pod's."""
        yield from ()

    def deletions(self) -> Iterator[tuple[str, str]]:
        """Yield deleted pods, and the component that deletes each; an empty component means you."""
        yield from ()

    def created_objects(self) -> Iterator[tuple[ClusterObject, str]]:
        """Yield objects that a component then creates by itself, with the component."""
        yield from ()

    def repairs(self) -> Iterator[tuple[ClusterRow, Taint, str]]:
        """Yield taints that a component then removes by itself, as node row, taint, and component."""
        yield from ()


class PodStep(FixStep, frozen=True, kw_only=True):
    """A step that changes only the pod, so that it can be repeated for each replica."""

    @property
    def editing_component(self) -> str:
        """The component that edits the pod, if you change something else; empty if you edit the pod."""
        return ""

    def edit(self, pod: Pod) -> Pod:
        raise NotImplementedError

    def apply(self, proposal: Proposal, snapshot: Snapshot) -> Proposal:
        return replace(proposal, pod=self.edit(proposal.pod))


class Proposal(Struct, frozen=True, kw_only=True):
    """Steps, and the cluster and pod after them. Rows are those of the whole cluster."""

    steps: tuple[FixStep, ...] = ()
    pod: Pod
    nodes: Mapping[ClusterRow, Node] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()  # `namespace/name`
    moved: Mapping[str, str] = {}  # evicted pods, to the nodes of their replacements
    resized: Mapping[str, Pod] = {}
    twins: Mapping[str, Pod] = {}  # pods of the same template, as they are after it has changed
    replicas: tuple[Pod, ...] = ()  # pods that other workloads create, on their nodes
    added: Node | None = None
    taken: Mapping[str, int] = {}  # requests of DaemonSets' pods on the new node
    objects: tuple[ClusterObject, ...] = ()  # other objects that are created or changed
    untainted: frozenset[str] = frozenset()  # DeviceTaintRules that are deleted
    deallocated_claims: Mapping[str, ResourceClaim | None] = {}
    """Device claims, by `namespace/name`, as kube-scheduler leaves them for its next attempt; None if it deletes the
    claim."""

    @property
    def cost(self) -> Cost:
        """The highest cost of its steps."""
        return max((step.cost for step in self.steps), default=Cost.TYPO)

    def with_objects(self, *objects: ClusterObject) -> Proposal:
        """Return the proposal with these objects, which replace those of the same kind and name."""
        keys = {_key(item) for item in objects}
        owners = (item.metadata.controller for item in objects)
        pod = self.pod
        if any(owner is not None and owner.uid == UID_TO_COME for owner in owners):
            pod = replace(pod, metadata=replace(pod.metadata, uid=UID_TO_COME))
        return replace(self, pod=pod, objects=(*(item for item in self.objects if _key(item) not in keys), *objects))

    def cluster(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with all changes applied."""
        if self.deallocated_claims:
            snapshot = snapshot.with_devices(snapshot.devices.with_claims(self.deallocated_claims))
        if edited := {**self.twins, **self.resized}:
            rows = map(snapshot.pods.rows.__getitem__, edited)
            snapshot = with_pods(snapshot.without_pods(rows, keep_devices=True), [*edited.values()])
        if gone := self.deleted | self.moved.keys():
            replacements = [_move_pod(snapshot.pods[snapshot.pods.rows[key]], node) for key, node in self.moved.items()]
            snapshot = snapshot.without_pods(snapshot.pods.rows[key] for key in gone)
            snapshot = snapshot.with_devices(snapshot.devices.without_deleted_pods(gone))
            if replacements:
                snapshot = with_pods(snapshot, replacements)
        if self.replicas:
            snapshot = with_pods(snapshot, self.replicas)
        if self.nodes:
            snapshot = snapshot.with_nodes(self.nodes)
        if self.added is not None:
            snapshot = snapshot.with_added_node(with_less_allocatable(self.added, self.taken))
        if self.untainted:
            rules = tuple(rule for rule in snapshot.devices.taint_rules if rule.metadata.name not in self.untainted)
            snapshot = snapshot.with_devices(replace(snapshot.devices, taint_rules=rules, derived_from_slices={}))
        if not self.objects:
            return snapshot
        storage, devices = snapshot.storage, snapshot.devices
        snapshot = snapshot.with_storage(
            replace(
                storage,
                claims={**storage.claims, **{claim.key: claim for claim in self._of(PersistentVolumeClaim)}},
                volumes={**storage.volumes, **{volume.name: volume for volume in self._of(PersistentVolume)}},
                classes={
                    **storage.classes,
                    **{storage_class.name: storage_class for storage_class in self._of(StorageClass)},
                },
                csi_nodes={**storage.csi_nodes, **{node.metadata.name: node for node in self._of(CSINode)}},
            )
        )
        slices = tuple(self._of(ResourceSlice))
        changed = replace(
            devices,
            claims={**devices.claims, **{claim.key: claim for claim in self._of(ResourceClaim)}},
            classes={**devices.classes, **{device_class.name: device_class for device_class in self._of(DeviceClass)}},
        )
        if slices:
            names = {resource_slice.name for resource_slice in slices}
            kept = (resource_slice for resource_slice in devices.slices if resource_slice.name not in names)
            changed = replace(changed, slices=(*kept, *slices), derived_from_slices={})
        return snapshot.with_devices(changed)

    def _of(self, kind: type[_Record]) -> Iterator[_Record]:
        return (item for item in self.objects if isinstance(item, kind))

    def _released_claims(self, snapshot: Snapshot) -> Iterator[Change]:
        """Yield the changes of claims that kube-scheduler deallocates, and of claims of deleted pods; not of claims
        that are recreated anyway."""
        replaced = {claim.key for claim in self._of(ResourceClaim)}
        before, after = snapshot.devices.claims, self.cluster(snapshot).devices.claims
        for key, claim in before.items():
            left = after.get(key)
            if key in replaced or left == claim:
                continue
            by = SCHEDULER if key in self.deallocated_claims else CONTROLLER_MANAGER
            metadata, version = claim.metadata, claim.api_version or api_version_of("ResourceClaim")
            target = Target(version, "ResourceClaim", metadata.name, metadata.namespace)
            yield (
                replace(target.deletion, by=by)
                if left is None
                else target.patched(*_release_operations(claim, left), by=by)
            )

    def changes(self, pod: Pod, snapshot: Snapshot) -> Iterator[Change]:
        """Yield differences from `pod` and `snapshot`. An object whose spec is immutable is deleted and recreated."""
        lifted = any(step.lifts_gates for step in self.steps)
        held = with_spec(pod, scheduling_gates=()) if lifted else pod
        target = Target("v1", "Pod", self.pod.metadata.name, self.pod.metadata.namespace)
        if patch := tuple(_pod_patch(held, self.pod)):
            by = next(
                (step.editing_component for step in self.steps if isinstance(step, PodStep) and step.editing_component),
                "",
            )
            yield target.patched(*patch, by=by)
        for step in self.steps:
            yield from step.changes(pod.metadata.namespace)
        deleters = dict(deletion for step in self.steps for deletion in step.deletions())
        for key in sorted(self.deleted, key=snapshot.pods.rows.__getitem__):
            by, row = deleters[key], snapshot.pods.rows[key]
            force = not by and stays_terminating(snapshot, snapshot.pods, row)
            yield replace(Target.pod(key).deletion, by=by, force=force)
        for key, resized in self.resized.items():
            operations = tuple(_pod_patch(snapshot.pods[snapshot.pods.rows[key]], resized))
            yield Change(target=Target.pod(key), patch=operations, subresource="resize")
        if self.deleted or self.deallocated_claims:
            yield from self._released_claims(snapshot)
        for row, node in self.nodes.items():
            before = snapshot.cluster.nodes[row]
            removers = {taint: by for step in self.steps for at, taint, by in step.repairs() if at == row}
            left = tuple(taint for taint in before.spec.taints if taint in node.spec.taints or taint in removers)
            changed = replace(node, status=before.status, spec=replace(node.spec, taints=left))
            node_target = Target("v1", "Node", node.name)
            if patch := tuple(_node_patch(before, changed)):
                yield node_target.patched(*patch)
            if more := tuple(_node_patch(changed, node)):
                yield node_target.patched(*more, by=next(iter(removers.values()), KUBELET))
        if self.added is not None:
            yield Change(target=Target("v1", "Node", self.added.name), create=manifest("v1", "Node", self.added))
        drivers = {_key(item): by for step in self.steps for item, by in step.created_objects()}
        is_recreated = self.pod.spec != pod.spec  # and its own claims with it
        for changed_object in self.objects:
            driver = drivers.get(_key(changed_object), "")
            for change in _changes(
                _existing_object(changed_object, snapshot),
                changed_object,
                is_prebound=self._names_claim(changed_object),
            ):
                owner = changed_object.metadata.controller
                its_pod = f"{change.target.namespace}/{owner.name}" if owner is not None and owner.kind == "Pod" else ""
                if driver and not is_recreated and is_replaced(snapshot.pods, its_pod):
                    # kube-controller-manager does not recreate a claim that it created within the last hour
                    if change.delete:
                        yield Target.pod(its_pod).deletion
                    continue
                goes = is_recreated and its_pod
                yield replace(change, by=driver) if driver and (goes or not change.delete) else change
        if status := tuple(_pod_status_patch(pod, self.pod)):
            yield Change(target=target, patch=status, by=CONTROLLER_MANAGER)

    def _names_claim(self, item: ClusterObject) -> bool:
        """Whether a new volume names this claim; the claim is then bound without you."""
        references = (volume.spec.claim_ref for volume in self._of(PersistentVolume))
        key = (item.metadata.namespace, item.metadata.name)
        return any(reference is not None and (reference.namespace, reference.name) == key for reference in references)


def is_replaced(pods: PodTable, key: str) -> bool:
    """Whether a controller creates another pod, with claims of its own, for a deleted one."""
    row = pods.rows.get(key)
    return row is not None and is_controlled(pods.owners[row])


def _pod_patch(before: Pod, after: Pod) -> Iterator[Json]:
    """Yield the operations that turn one pod into the other. Whole lists and maps are added, which replaces existing
    ones, so that the patch applies to a manifest with and without the API server's defaults."""
    for name, encoded in zip(PodSpec.__struct_fields__, PodSpec.__struct_encode_fields__, strict=True):
        old, new = getattr(before.spec, name), getattr(after.spec, name)
        if old == new:
            continue
        if name in ("containers", "init_containers"):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from _container_patch(was, now, f"/spec/{encoded}/{index}")
        elif name == "volumes":
            for index, (volume, other) in enumerate(zip(old, new, strict=True)):
                if volume != other:
                    # records hold only the fields of a volume that are read
                    source, path = other.persistent_volume_claim, f"/spec/volumes/{index}"
                    if source is not None:
                        yield add_operation(f"{path}/persistentVolumeClaim/claimName", source.claim_name)
                    else:
                        spec = other.ephemeral.volume_claim_template.spec
                        path = f"{path}/ephemeral/volumeClaimTemplate/spec/storageClassName"
                        yield add_operation(path, spec.storage_class_name)
        elif new in (None, "", (), {}):
            yield remove_field(f"/spec/{encoded}")
        elif name in ("affinity", "topology_spread_constraints"):
            yield add_operation(f"/spec/{encoded}", _remove_merged_keys(to_plain(new), before.metadata.labels))
        else:
            yield add_operation(f"/spec/{encoded}", new)


def _remove_merged_keys(value: object, labels: Mapping[str, str]) -> object:
    """Return rules without what the API server adds to their selectors for the label keys that they name. It adds that
    again to the recreated pod, and refuses a selector that has it twice."""
    if isinstance(value, list):
        return [_remove_merged_keys(item, labels) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: _remove_merged_keys(item, labels) for key, item in value.items()}
    selector = map_at(value, "labelSelector")
    written = selector.get("matchExpressions")
    if not isinstance(written, list):
        return value
    added = [
        {"key": key, "operator": operator, "values": [labels.get(key)]}
        for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in map(str, list_at(value, keys))
    ]
    left = [item for item in written if item not in added]
    rest = {key: item for key, item in selector.items() if key != "matchExpressions"}
    return {**value, "labelSelector": {**rest, "matchExpressions": left} if left else rest}


def _container_patch(before: Container, after: Container, path: str) -> Iterator[Json]:
    if before.resources != after.resources:
        yield add_operation(f"{path}/resources", after.resources)
    if before.ports != after.ports:
        yield add_operation(f"{path}/ports", after.ports)


def _node_patch(before: Node, after: Node) -> Iterator[Json]:
    """Yield the operations that turn one node into the other: cordon, taints, labels, and amounts."""
    if before.spec.unschedulable != after.spec.unschedulable:
        yield set_field("/spec/unschedulable", after.spec.unschedulable)
    if before.spec.taints != after.spec.taints:
        yield add_operation("/spec/taints", after.spec.taints)
    yield from map_patch(before.status.allocatable, after.status.allocatable, "/status/allocatable")
    yield from map_patch(before.metadata.labels, after.metadata.labels, "/metadata/labels")


def _pod_status_patch(before: Pod, after: Pod) -> Iterator[Json]:
    """Yield operations on the status, which you cannot patch with the rest of the pod."""
    statuses = after.status.resource_claim_statuses
    if statuses != before.status.resource_claim_statuses:
        if before.status == type(before.status)():
            yield add_operation("/status", {"resourceClaimStatuses": to_plain(statuses)})
        else:
            yield add_operation("/status/resourceClaimStatuses", statuses)


def apply_step(step: FixStep, proposal: Proposal, snapshot: Snapshot) -> Proposal:
    """Return the proposal with this step as well; a step that it already has is not applied again."""
    if step in proposal.steps:
        return proposal
    return replace(step.apply(proposal, snapshot), steps=(*proposal.steps, step))


def apply_steps(steps: Iterable[FixStep], proposal: Proposal, snapshot: Snapshot) -> Proposal:
    for step in steps:
        proposal = apply_step(step, proposal, snapshot)
    return proposal


def _move_pod(pod: Pod, node: str) -> Pod:
    """Return the pod that a controller creates on `node` in place of an evicted one. Its real name may be unknown, so
    the old one stands for it."""
    return replace(
        pod,
        metadata=replace(pod.metadata, deletion_timestamp=""),
        spec=replace(pod.spec, node_name=node),
        status=replace(pod.status, nominated_node_name=""),
    )


def _changes(before: ClusterObject | None, after: ClusterObject, *, is_prebound: bool) -> Iterator[Change]:
    kind, namespace, name = _key(after)
    target = Target(api_version_of(kind), kind, name, namespace)
    if isinstance(after, PersistentVolumeClaim) and BIND_COMPLETED in after.metadata.annotations:
        yield from _bound_claim(
            before if isinstance(before, PersistentVolumeClaim) else None, after, target, is_prebound=is_prebound
        )
        return
    if isinstance(before, PersistentVolume) and isinstance(after, PersistentVolume) and _is_released(before, after):
        yield target.patched(remove_field("/spec/claimRef"))
        yield target.patched(add_operation("/status/phase", after.status.phase), by=CONTROLLER_MANAGER)
        return
    if isinstance(before, PersistentVolumeClaim) and isinstance(after, PersistentVolumeClaim):
        named = after.spec.storage_class_name
        if before.spec.storage_class_name is None and replace(before.spec, storage_class_name=named) == after.spec:
            yield target.patched(_class_operation(after))
            return
        if (
            before.spec == after.spec
            and replace(before.metadata, annotations=after.metadata.annotations) == after.metadata
        ):
            yield target.patched(*_annotations_patch(before, after))
            return
    if isinstance(before, StorageClass) and isinstance(after, StorageClass):
        topologies = after.allowed_topologies if after.allowed_topologies != before.allowed_topologies else ()
        wider = (add_operation("/allowedTopologies", topologies),) if topologies else ()
        yield target.patched(*_annotations_patch(before, after), *wider)
        return
    if isinstance(before, DeviceClass) and isinstance(after, DeviceClass):
        selectors = after.spec.selectors
        yield target.patched(
            add_operation("/spec/selectors", selectors) if selectors else remove_field("/spec/selectors")
        )
        return
    written = replace(target, api_version=getattr(before, "api_version", "") or target.api_version)
    if isinstance(before, ResourceSlice) and isinstance(after, ResourceSlice):
        fields = (("pool", before.spec.pool, after.spec.pool), ("devices", before.spec.devices, after.spec.devices))
        yield written.patched(*(add_operation(f"/spec/{at}", new) for at, old, new in fields if new != old))
        return
    if before is not None:
        yield written.deletion
    yield Change(target=target, create=manifest(target.api_version, kind, after))


def _annotations_patch(
    before: PersistentVolumeClaim | StorageClass, after: PersistentVolumeClaim | StorageClass
) -> Iterator[Json]:
    return map_patch(before.metadata.annotations, after.metadata.annotations, "/metadata/annotations")


def _class_operation(claim: PersistentVolumeClaim) -> Json:
    return add_operation("/spec/storageClassName", claim.spec.storage_class_name)


def _is_released(before: PersistentVolume, after: PersistentVolume) -> bool:
    return before.spec.claim_ref is not None and replace(before.spec, claim_ref=None) == after.spec


def _release_operations(before: ResourceClaim, after: ResourceClaim) -> Iterator[Json]:
    if before.status.allocation is not None and after.status.allocation is None:
        yield remove_field("/status/allocation")
    if before.status.devices and not after.status.devices:
        yield remove_field("/status/devices")
    if after.status.reserved_for:
        yield add_operation("/status/reservedFor", after.status.reserved_for)
    elif before.status.reserved_for:
        yield remove_field("/status/reservedFor")


def _bound_claim(
    before: PersistentVolumeClaim | None, after: PersistentVolumeClaim, target: Target, *, is_prebound: bool
) -> Iterator[Change]:
    """Yield what you send for a claim that ends up bound, and what the volume controller then writes. A claim that is
    created with the annotation of a completed binding is Lost for good."""
    bound = add_operation(f"/metadata/annotations/{pointer(BIND_COMPLETED)}", "yes")
    if before is not None and before.spec.storage_class_name is None:
        classed = with_spec(before, storage_class_name=after.spec.storage_class_name)
        if classed.spec != before.spec:
            yield target.patched(_class_operation(classed))
            before = classed
    if before is not None and before.spec in (replace(after.spec, volume_name=""), after.spec):
        if before.spec != after.spec:
            has_spec = before.spec != type(before.spec)()
            name = after.spec.volume_name
            patch = (
                add_operation("/spec/volumeName", name) if has_spec else add_operation("/spec", {"volumeName": name})
            )
            yield target.patched(patch, by=CONTROLLER_MANAGER if is_prebound else "")
        if not before.metadata.annotations:
            bound = add_operation("/metadata/annotations", {BIND_COMPLETED: "yes"})
        yield target.patched(bound, by=CONTROLLER_MANAGER)
        return
    if before is not None:
        yield target.deletion
    annotations = {key: text for key, text in after.metadata.annotations.items() if key != BIND_COMPLETED}
    metadata = replace(after.metadata, annotations=annotations, uid="")
    sent = replace(after, metadata=metadata, spec=replace(after.spec, volume_name=""))
    yield Change(target=target, create=manifest("v1", target.kind, sent))
    if not annotations:
        bound = add_operation("/metadata/annotations", {BIND_COMPLETED: "yes"})
    binding = (add_operation("/spec/volumeName", after.spec.volume_name), bound)
    yield target.patched(*binding, by=CONTROLLER_MANAGER)


def _key(item: ClusterObject) -> tuple[str, str, str]:
    # records that were read in bulk are of subclasses
    kind = next(kind.__name__ for kind in get_args(ClusterObject) if isinstance(item, kind))
    return kind, item.metadata.namespace, item.metadata.name


def _existing_object(item: ClusterObject, snapshot: Snapshot) -> ClusterObject | None:
    storage, devices, name = snapshot.storage, snapshot.devices, item.metadata.name
    match item:
        case PersistentVolumeClaim():
            return storage.claims.get(item.key)
        case PersistentVolume():
            return storage.volumes.get(name)
        case StorageClass():
            return storage.classes.get(name)
        case CSINode():
            return storage.csi_nodes.get(name)
        case ResourceClaim():
            return devices.claims.get(item.key)
        case DeviceClass():
            return devices.classes.get(name)
        case ResourceClaimTemplate():
            spec = devices.templates.get(item.key)
            return None if spec is None else with_spec(item, spec=spec)
        case ResourceSlice():
            return next((known for known in devices.slices if known.name == name), None)
