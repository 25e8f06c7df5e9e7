"""A cluster and a pod that differ from what is, as an overlay of a snapshot and as changes to make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import PREEMPT_LOWER_PRIORITY
from kschedx.findings import RequirementMatch
from kschedx.findings.nodes import CORDON_TAINT
from kschedx.fixes import pod_edits as edit
from kschedx.fixes import steps as s
from kschedx.fixes.changes import Change, Json, Target, add_operation, manifest, node_patch, pod_patch, pointer
from kschedx.fixes.steps import (
    AwaitController,
    AwaitTermination,
    Cost,
    CreateVolume,
    DeletePods,
    RepairNode,
    ResourceAmount,
    Step,
    StopWorkload,
    TakeOldFirst,
)
from kschedx.framework.cycle import Cycle
from kschedx.kube.devices import DeviceClass, ResourceClaim, ResourceSlice
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.resources import RequestOptions
from kschedx.kube.selectors import NodeSelectorRequirement
from kschedx.kube.storage import BIND_COMPLETED, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kschedx.kube.types import Node, ObjectMeta, Pod, Taint
from kschedx.kube.workloads import without_node_names
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.daemon_sets import less
from kschedx.snapshot.snapshot import Snapshot

ClusterObject = (
    PersistentVolumeClaim | PersistentVolume | StorageClass | CSINode | ResourceClaim | DeviceClass | ResourceSlice
)
Record = TypeVar("Record", bound=Struct)

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


def _kind(one: ClusterObject) -> type[Struct]:
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
    objects: tuple[ClusterObject, ...] = ()
    """Other objects that would come, or be as they are here."""
    taken_back: Mapping[str, ResourceClaim | None] = {}
    """Device claims, by `namespace/name`, as kube-scheduler leaves them for its next attempt; None where one goes."""

    @property
    def cost(self) -> Cost:
        """The dearest of its steps."""
        return max((step.cost for step in self.steps), default=Cost.TYPO)

    def having(self, *objects: ClusterObject) -> Proposal:
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

    def _of(self, kind: type[Record]) -> Iterator[Record]:
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
    return Change(
        target=target, patch=(add_operation("/spec/strategy", RECREATE if step.is_single else ONE_OLD_FIRST),)
    )


def _stopped(step: StopWorkload) -> Change:
    target = Target(api_version=step.api_version, kind=step.kind, namespace=step.namespace, name=step.name)
    return (
        Change(target=target, delete=True)
        if step.is_deleted
        else Change(target=target, patch=(add_operation("/spec/replicas", 0),))
    )


def _changes(before: ClusterObject | None, after: ClusterObject) -> Iterator[Change]:
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
        yield Change(target=target, patch=(add_operation("/status/phase", after.status.phase),), by=CONTROLLER_MANAGER)
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
        yield add_operation("/status/reservedFor", after.status.reserved_for)
    elif before.status.reserved_for:
        yield {"op": "remove", "path": "/status/reservedFor"}


def _binding(before: PersistentVolumeClaim, after: PersistentVolumeClaim) -> Iterator[Json]:
    """What the volume controller writes when it binds; a volume is the only thing of its spec that a claim may get."""
    if before.spec == type(before.spec)():
        yield add_operation("/spec", {"volumeName": after.spec.volume_name})
    else:
        yield add_operation("/spec/volumeName", after.spec.volume_name)
    if before.metadata.annotations:
        yield add_operation(f"/metadata/annotations/{pointer(BIND_COMPLETED)}", "yes")
    else:
        yield add_operation("/metadata/annotations", {BIND_COMPLETED: "yes"})


def _key(one: ClusterObject) -> tuple[str, str, str]:
    return _kind(one).__name__, one.metadata.namespace, one.metadata.name


def _existing(one: ClusterObject, snapshot: Snapshot) -> ClusterObject | None:
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


# A step done: from one proposal to the next.


class Ground:
    """What steps are done on: the cluster as it is, and how it counts requests."""

    def __init__(self, snapshot: Snapshot, options: RequestOptions) -> None:
        self.snapshot = snapshot
        self.options = options


def apply_step(step: s.Step, proposal: Proposal, ground: Ground) -> Proposal:
    """The proposal with this done as well; a step that is among its steps already is the same step."""
    if step in proposal.steps:
        return proposal
    return replace(_made(step, proposal, ground), steps=(*proposal.steps, step))


def after_attempt(cycle: Cycle) -> Proposal:
    """The pod, and the cluster as kube-scheduler leaves it before the next attempt."""
    base, found = Proposal(pod=cycle.pod), cycle.post_filter
    if found is None or not found.released:
        return base
    released = tuple(found.released.items())
    return apply_step(s.NextAttempt(released=released), base, Ground(cycle.snapshot, cycle.all_nodes.options))


def apply_steps(steps: Iterable[s.Step], proposal: Proposal, ground: Ground) -> Proposal:
    for step in steps:
        proposal = apply_step(step, proposal, ground)
    return proposal


def _made(step: s.Step, proposal: Proposal, ground: Ground) -> Proposal:
    match step:
        case s.CreateClaim() | s.ShrinkClaim() | s.RecreateClaim() | s.GiveUpVolume() | s.BindClaim():
            return proposal.having(step.claim)
        case s.CreateStorageClass(storage_class=storage_class):
            return proposal.having(storage_class)
        case s.ReleaseVolume(volume=volume):
            return proposal.having(volume)
        case s.CreateVolume(volume=volume, claim=claim):
            return proposal.having(volume) if claim is None else proposal.having(volume, claim)
        case s.CreateDeviceClaim(claim=device_claim, status=status):
            return replace(proposal.having(device_claim), pod=edit.with_claim_status(proposal.pod, status))
        case s.AskForFewerDevices() | s.WidenDeviceClaim() | s.RecreateDeviceClaim():
            return proposal.having(step.claim)
        case s.NextAttempt(released=released):
            return replace(proposal, taken_back=dict(released))
        case s.CreateDeviceClass(name=name):
            return proposal.having(DeviceClass(metadata=ObjectMeta(name=name)))
        case s.DeletePods(victims=victims) | s.AwaitTermination(victims=victims) | s.StopWorkload(victims=victims):
            return replace(proposal, deleted=tuple(sorted({*proposal.deleted, *(one.row for one in victims)})))
        case s.TakeOldFirst(old=old):
            return replace(proposal, deleted=tuple(sorted({*proposal.deleted, old.row})))
        case s.Uncordon(row=row):
            return _on_node(proposal, row, ground, _uncordoned)
        case s.RemoveTaints(row=row, taints=taints):
            return _on_node(proposal, row, ground, lambda node: _without_taints(node, taints))
        case s.LabelNode(row=row, labels=labels):
            return _on_node(proposal, row, ground, lambda node: _labelled(node, dict(labels)))
        case s.RepairNode(row=row, faults=faults):
            return _on_node(proposal, row, ground, lambda node: _without_taints(node, (one.taint for one in faults)))
        case s.EnlargeNode(row=row, amounts=amounts) | s.OfferResource(row=row, amounts=amounts):
            return _on_node(proposal, row, ground, lambda node: _enlarged(node, amounts))
        case s.AddNode(node=node, slices=slices, csi_node=csi_node, taken=taken):
            after = proposal.having(*slices)
            return replace(after if csi_node is None else after.having(csi_node), added=node, taken=taken)
        case _:
            return replace(proposal, pod=_pod(step, proposal.pod, ground))


PodStep = (
    s.RemoveGates
    | s.AwaitController
    | s.Tolerate
    | s.SelectInstead
    | s.DropRequirements
    | s.DropNodeNames
    | s.DropNodeName
    | s.UseHostPort
    | s.HonorInSpread
    | s.RaiseMaxSkew
    | s.SpreadAnyway
    | s.PreferTerm
    | s.SelectPodsInstead
    | s.UseClaim
    | s.RaisePriority
    | s.RequestAtMost
    | s.RequestAsMeant
    | s.RequestInstead
)


def _pod(step: PodStep, pod: Pod, ground: Ground) -> Pod:
    match step:
        case s.RemoveGates() | s.AwaitController():
            return edit.with_spec(pod, replace(pod.spec, scheduling_gates=()))
        case s.Tolerate(taints=taints):
            return edit.tolerating(pod, taints)
        case s.SelectInstead(source=source, term=term, wrong=wrong, meant=meant):
            return _selecting(pod, source, term, wrong, meant)
        case s.DropRequirements(source=source, term=term, requirements=requirements):
            return _without(pod, source, term, requirements)
        case s.DropNodeNames():
            return without_node_names(pod)
        case s.DropNodeName():
            return edit.with_spec(pod, replace(pod.spec, node_name=""))
        case s.UseHostPort(port=port, protocol=protocol, instead=instead):
            return edit.with_host_port(pod, edit.HostPort(port=port, protocol=protocol), instead)
        case s.HonorInSpread(constraint=index, taints=taints):
            policy = {"node_taints_policy" if taints else "node_affinity_policy": "Honor"}
            return edit.with_constraint(pod, index, lambda one: replace(one, **policy))
        case s.RaiseMaxSkew(constraint=index, after=skew):
            return edit.with_constraint(pod, index, lambda one: replace(one, max_skew=skew))
        case s.SpreadAnyway(constraint=index):
            return edit.with_constraint(
                pod, index, lambda one: replace(one, when_unsatisfiable="ScheduleAnyway", min_domains=None)
            )
        case s.PreferTerm(rule=rule, anti=anti):
            return edit.preferring(pod, rule, anti=anti)
        case s.SelectPodsInstead(rule=rule, meant=meant_rule):
            return edit.with_pod_affinity(pod, rule, meant_rule)
        case s.RaisePriority(name=name, value=value):
            chosen = replace(
                pod.spec, priority_class_name=name, priority=value, preemption_policy=PREEMPT_LOWER_PRIORITY
            )
            return edit.with_spec(pod, chosen)
        case s.UseClaim(claim=claim, meant=name):
            return edit.with_claim(pod, claim, name)
        case s.RequestAtMost(amounts=amounts):
            for one in amounts:
                pod = edit.requesting(pod, one.resource, one.amount, ground.options) or pod
            return pod
        case s.RequestAsMeant(amounts=unlikely):
            return edit.with_likely_amounts(pod, unlikely)
        case s.RequestInstead(resource=resource, meant=meant):
            return edit.renaming_resource(pod, resource, meant)
        case _:
            assert_never(step)


# --- node affinity


def _selecting(pod: Pod, source: str, term: int, wrong: RequirementMatch, meant: RequirementMatch) -> Pod:
    if source == "nodeSelector":
        selector = {key: value for key, value in pod.spec.node_selector.items() if key != wrong.key}
        return edit.selecting(pod, selector | {meant.key: meant.values[0]})
    return edit.with_term(
        pod,
        term,
        tuple(
            NodeSelectorRequirement(key=meant.key, operator=one.operator, values=meant.values)
            if _is_same(one, wrong)
            else one
            for one in edit.expressions(pod, term)
        ),
    )


def _without(pod: Pod, source: str, term: int, requirements: tuple[RequirementMatch, ...]) -> Pod:
    if source == "nodeSelector":
        gone = {one.key for one in requirements}
        return edit.selecting(pod, {key: value for key, value in pod.spec.node_selector.items() if key not in gone})
    kept = tuple(one for one in edit.expressions(pod, term) if not any(_is_same(one, old) for old in requirements))
    return edit.with_term(pod, term, kept)


def _is_same(requirement: NodeSelectorRequirement, match: RequirementMatch) -> bool:
    return (requirement.key, requirement.operator, requirement.values) == (match.key, match.operator, match.values)


# --- nodes


def _on_node(proposal: Proposal, row: ClusterRow, ground: Ground, change: Callable[[Node], Node]) -> Proposal:
    before = proposal.nodes.get(row, ground.snapshot.cluster.nodes[row])
    return replace(proposal, nodes={**proposal.nodes, row: change(before)})


def _uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def _without_taints(node: Node, taints: Iterable[Taint]) -> Node:
    gone = frozenset(taints)
    return replace(node, spec=replace(node.spec, taints=tuple(t for t in node.spec.taints if t not in gone)))


def _enlarged(node: Node, amounts: Iterable[s.NodeAmount]) -> Node:
    more = {one.resource: format_quantity(one.after, Unit.of(one.resource)) for one in amounts}
    return replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **more}))


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **labels}))
