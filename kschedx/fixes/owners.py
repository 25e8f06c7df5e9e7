"""Fixes in the owner of the pod: a change belongs in its template, otherwise the pod is recreated without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.creators import configured_in
from kschedx.fixes.changes import PatchError, add_operation, apply_patch
from kschedx.kube.autoscalers import JOB_SET_NAME
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import list_at, map_at, maps_at, to_plain, value_at
from kschedx.kube.documents import Change, Json, Target, pointer, remove_field
from kschedx.kube.kinds import KINDS
from kschedx.kube.types import Container, OwnerReference, Pod, Volume
from kschedx.kube.workloads import RETENTION_POLICY, SYNC_MARKS
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot

_LABELS_OF_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels that the API server adds to the template of a stored Job, and refuses on a new one."""
_MAKE_REPLICA_SETS = frozenset({("argoproj.io", "Rollout")})
"""Groups and kinds of custom resources that work like a Deployment."""
_NAMED = lazy_pattern(r"/spec/(containers|initContainers|volumes)/(\d+)(/.*)")
"""Paths to entries of lists, which are matched by name."""
_OF_CLASS = ("/spec/priority", "/spec/preemptionPolicy")  # fields that admission sets from the priority class


class Owner(Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    manifest: dict[str, object]
    own_template: tuple[str | int, ...] = ()
    """The path of the pod template in the manifest, for a kind that is not in the table."""
    above: str = ""
    """The source that overwrites the manifest: `Prometheus k8s`, whose controller writes it, or `Git for Argo CD`."""
    job: Owner | None = None  # a CronJob's Job with the pod: a change of the CronJob reaches only its next Jobs

    @property
    def template(self) -> tuple[str | int, ...]:
        """The path of the pod template in the manifest."""
        return self.own_template or KINDS[self.kind].template

    def target(self, namespace: str) -> Target:
        return Target(str(self.manifest.get("apiVersion", "")), self.kind, self.name, namespace)

    @property
    def cost_of_scaling(self) -> tuple[str, ...]:
        """What fewer replicas cost: a StatefulSet may delete the claims of the pods that it deletes."""
        spec = map_at(self.manifest, "spec")
        when_scaled = value_at(spec, RETENTION_POLICY, "whenScaled")
        is_lost = self.kind == "StatefulSet" and when_scaled == "Delete" and bool(spec.get("volumeClaimTemplates"))
        return ("the claims of these pods and their data are deleted (whenScaled: Delete)",) if is_lost else ()

    def resources_of(self, container: str) -> Mapping[str, Mapping[str, object]] | None:
        """Return a container's requests and limits in the template; None if it has no such container."""
        spec = map_at(self.manifest, *self.template, "spec")
        for item in (*maps_at(spec, "containers"), *maps_at(spec, "initContainers")):
            if item.get("name") == container:
                resources = item.get("resources")
                return resources if isinstance(resources, dict) else {}
        return None


def template_owner(snapshot: Snapshot, pod: Pod) -> Owner | None:
    """Return the workload with the pod's template: the Deployment, not its ReplicaSet. None if the snapshot does not
    show it.

    A ReplicaSet has its Deployment's template, so the Deployment itself need not be in the snapshot.
    """
    controller = pod.metadata.controller
    owner: Owner | None = None
    while controller is not None and controller.kind in KINDS and KINDS[controller.kind].template:
        raw = snapshot.workloads.get((controller.kind, pod.metadata.namespace, controller.name))
        if raw is None and owner is None and (above_it := _deployment_of(controller, pod.metadata.labels)) is not None:
            controller = above_it
            continue
        if raw is None:
            if owner is not None and KINDS[controller.kind].template == owner.template:
                manifest = {**owner.manifest, "apiVersion": controller.api_version}
                owner = Owner(kind=controller.kind, name=controller.name, manifest=manifest)
            break
        manifest = msgspec.json.decode(raw, type=dict[str, object])
        job = owner if controller.kind == "CronJob" else None
        owner = Owner(kind=controller.kind, name=controller.name, manifest=manifest, job=job)
        controller = stored_metadata(raw).controller or _deployment_of(controller, pod.metadata.labels)
    group = "" if controller is None else controller.api_version.partition("/")[0]
    makes_replica_sets = controller is not None and (group, controller.kind) in _MAKE_REPLICA_SETS
    if (
        controller is not None
        and makes_replica_sets
        and (used := _template_workload(snapshot, controller, pod)) is not None
    ):
        return used
    if owner is not None and controller is not None and makes_replica_sets:
        # the ReplicaSet's template is a copy of the Rollout's, and a change of the copy does not reach other
        # ReplicaSets
        manifest = {**owner.manifest, "apiVersion": controller.api_version}
        return Owner(kind=controller.kind, name=controller.name, manifest=manifest, own_template=owner.template)
    if owner is not None and controller is not None and controller.kind not in KINDS:
        above = configured_in(snapshot, pod.metadata.namespace, controller, pod.metadata.labels)
        return replace(owner, above=above)
    if owner is not None and (tool := _synced_by(owner.manifest)):
        return replace(owner, above=f"Git for {tool}")
    return owner


def _synced_by(manifest: Mapping[str, object]) -> str:
    """Return the tool that syncs the object from Git; empty if there is none."""
    marks = {**map_at(manifest, "metadata", "labels"), **map_at(manifest, "metadata", "annotations")}
    return next((tool for mark, tool in SYNC_MARKS.items() if mark in marks), "")


def _template_workload(snapshot: Snapshot, controller: OwnerReference, pod: Pod) -> Owner | None:
    """Return the workload whose template a custom resource uses (spec.workloadRef)."""
    namespace, group = pod.metadata.namespace, controller.api_version.partition("/")[0]
    key = f"{controller.kind}.{group}", namespace, controller.name
    reference = map_at(msgspec.json.decode(snapshot.custom_resources.get(key, b"{}")), "spec", "workloadRef")
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    manifest = snapshot.manifest_of((kind, namespace, name))
    return None if manifest is None else Owner(kind=kind, name=name, manifest=manifest)


def workload_above(controller: OwnerReference | None, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind and name of the workload of a pod with these labels: the Deployment, not its ReplicaSet, and the
    JobSet, not its Job."""
    if controller is None:
        return None
    if controller.kind == "Job" and (job_set := labels.get(JOB_SET_NAME)):
        return "JobSet", job_set
    above = _deployment_of(controller, labels) or controller
    return above.kind, above.name


def _deployment_of(controller: OwnerReference, labels: Mapping[str, str]) -> OwnerReference | None:
    """The Deployment of a ReplicaSet that the snapshot lacks: the ReplicaSet's name without the pod's template hash."""
    template_hash = labels.get("pod-template-hash")
    if controller.kind != "ReplicaSet" or not template_hash or not controller.name.endswith(f"-{template_hash}"):
        return None
    name = controller.name.removesuffix(f"-{template_hash}")
    return OwnerReference(api_version="apps/v1", kind="Deployment", name=name, controller=True)


def owner_change(change: Change, owner: Owner, pod: Pod) -> Change:
    """Return the change of the pod as a change of its owner's template. The change stays the same if the template lacks
    its subject, such as a container that admission added."""
    if change.target.kind != "Pod" or change.target.name != pod.metadata.name or not change.patch:
        return change
    template = value_at(owner.manifest, *owner.template)
    if not isinstance(template, dict):
        return change
    lead = "".join(f"/{part}" for part in owner.template)
    try:
        operations = (*_operations(change.patch, pod, template, lead), *_reset_job_selector(owner, template, lead))
        apply_patch(owner.manifest, operations)
    except PatchError:
        return change
    return replace(change, target=owner.target(pod.metadata.namespace), patch=operations)


class ClaimTemplate(Struct, frozen=True, kw_only=True):
    """The volumeClaimTemplate of a StatefulSet from which a claim is created."""

    owner: Owner
    name: str
    index: int

    @classmethod
    def of(cls, claim: str, owner: Owner | None, pod: Pod) -> ClaimTemplate | None:
        """Return the template of a claim; None if no controller creates the claim for the pod."""
        if owner is None or owner.kind != "StatefulSet":
            return None
        for index, item in enumerate(list_at(owner.manifest, "spec", "volumeClaimTemplates")):
            name = str(map_at(item, "metadata").get("name"))
            if claim == f"{name}-{pod.metadata.name}":
                return cls(owner=owner, name=name, index=index)
        return None

    @property
    def title(self) -> str:
        return f"volumeClaimTemplate {self.name} of StatefulSet {self.owner.name}"

    def changes(self, spec: Mapping[str, object], namespace: str) -> tuple[Change, ...]:
        """Return the changes that set these fields in the claim template. It is immutable: the StatefulSet is deleted
        without its pods, and the recreated one adopts them."""
        path = f"/spec/volumeClaimTemplates/{self.index}/spec"
        patch = [add_operation(f"{path}/{key}", value) for key, value in spec.items() if key in _OF_TEMPLATE]
        target = self.owner.target(namespace)
        created = apply_patch(dict(self.owner.manifest), patch)
        return Change(target=target, delete=True, orphan=True), Change(target=target, create=created)


_OF_TEMPLATE = ("accessModes", "resources", "storageClassName")  # fields of a claim that fixes change


def _operations(patch: tuple[Json, ...], pod: Pod, template: dict[str, object], lead: str) -> Iterator[Json]:
    spec = map_at(template, "spec")
    for item in patch:
        path, value = str(item["path"]), item.get("value")
        if path in _OF_CLASS and path.rpartition("/")[2] not in spec:
            continue
        if match := _NAMED.fullmatch(path):
            kind, number, rest = match.groups()
            containers = pod.spec.containers if kind == "containers" else pod.spec.init_containers
            named: Sequence[Container | Volume] = pod.spec.volumes if kind == "volumes" else containers
            path = f"/spec/{kind}/{_index(spec.get(kind), named[int(number)].name)}{rest}"
        elif path == "/spec/tolerations" and isinstance(value, list):
            # admission adds tolerations to pods that the template does not have
            had = [msgspec.to_builtins(toleration) for toleration in pod.spec.tolerations]
            added = [toleration for toleration in value if toleration not in map(_without_empty_fields, had)]
            value = [*list_at(spec, "tolerations"), *added]
        elif path == "/spec/affinity" and isinstance(value, dict):
            value = _with_own_node_terms(value, pod, spec)
            if not value:
                yield remove_field(lead + path)
                continue
        yield {**item, "path": lead + path} | ({"value": value} if "value" in item else {})


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _with_own_node_terms(affinity: Json, pod: Pod, spec: Mapping[str, object]) -> Json:
    """Return the affinity with the required node affinity of the template, unless a fix changes that of the pod: the
    DaemonSet controller replaces it by the name of the pod's node."""
    of_node, own = dict(map_at(affinity, "nodeAffinity")), map_at(spec, "affinity", "nodeAffinity")
    if of_node.get(_REQUIRED) == to_plain(pod.spec.required_node_affinity):
        of_node.pop(_REQUIRED, None)
        of_node |= {_REQUIRED: own[_REQUIRED]} if _REQUIRED in own else {}
    others = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return {**({"nodeAffinity": of_node} if of_node else {}), **others}


def _reset_job_selector(owner: Owner, template: dict[str, object], lead: str) -> Iterator[Json]:
    """Yield the removal of a stored Job's selector and labels with its uid, so that it can be created again: its
    template cannot be changed."""
    spec = map_at(owner.manifest, "spec")
    if owner.kind != "Job" or spec.get("manualSelector"):
        return
    if "selector" in spec:
        yield remove_field("/spec/selector")
    for name in _LABELS_OF_JOB:
        if name in map_at(template, "metadata", "labels"):
            yield remove_field(f"{lead}/metadata/labels/{pointer(name)}")


def _without_empty_fields(toleration: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in toleration.items() if value not in ("", None)}


def _index(containers: object, name: str) -> int:
    """Return the index of the template's container or volume with that name."""
    for index, item in enumerate(containers if isinstance(containers, list) else ()):
        if isinstance(item, Mapping) and item.get("name") == name:
            return index
    raise PatchError(f"the template has no entry named {name}")
