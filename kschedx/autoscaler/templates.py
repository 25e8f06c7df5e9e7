"""The template of a new node in each group: from its nodes, from a file, or from Cluster API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.placement_validation import EFFECTS
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.node_groups import TaintRules
from kschedx.errors import InputError, Place, nearest
from kschedx.kube import autoscalers as capi
from kschedx.kube.autoscalers import (
    DAEMON_SET_POD,
    MIRROR,
    MachineDeployment,
    MachinePool,
    MachineSet,
    OpenShiftMachineSet,
    Scalable,
)
from kschedx.kube.decoding import map_at
from kschedx.kube.devices import ResourceSlice
from kschedx.kube.documents import Json
from kschedx.kube.names import INSTANCE_TYPE_LABELS, REGION_LABELS, ZONE_LABELS
from kschedx.kube.resources import RequestOptions, pod_request
from kschedx.kube.types import Node, ObjectMeta, OwnerReference, Pod, controller_of
from kschedx.kube.workloads import pod_from_workload, runs_on
from kschedx.releases.autoscaler import AutoscalerBehavior
from kschedx.snapshot.snapshot import Snapshot

# A file about node groups: their nodes, templates, and the tags of their ASGs.
#
#     groups:
#       gpu-b:
#         nodes: [ip-10-0-3-7.ec2.internal]
#         template: {Node: {...}, Pods: [...]}          # as /snapshotz has it
#       spot-a:
#         capacity: {cpu: "8", memory: 32Gi, pods: "58"}
#         tags:
#           k8s.io/cluster-autoscaler/node-template/label/disk: nvme
#           k8s.io/cluster-autoscaler/node-template/taint/dedicated: gpu:NoSchedule
#           k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage: 100G
#
# The output of the autoscaler's /snapshotz is taken as it is.
# Upstream of the tags: cloudprovider/aws (buildNodeFromTemplate), of the annotations: cloudprovider/clusterapi.

_PREFIX = "k8s.io/cluster-autoscaler/node-template/"
_KEYS = ("nodes", "template", "capacity", "labels", "taints", "tags")
_RECORDS: dict[str, tuple[type[Scalable], ...]] = {
    "MachineDeployment": (MachineDeployment,),
    "MachineSet": (MachineSet, OpenShiftMachineSet),
    "MachinePool": (MachinePool,),
}
"""By kind, which is part of a group's name: `MachineSet/namespace/name`."""


class GroupsFile(Struct, frozen=True, kw_only=True):
    nodes: Mapping[str, str] = {}  # node to group
    templates: Mapping[str, object] = {}  # group to `{"Node": manifest, "Pods": [manifest]}`
    names: tuple[str, ...] = ()  # the groups that the user names

    def with_other(self, other: GroupsFile) -> GroupsFile:
        """Merge two files; the other one wins for groups and nodes in both."""
        nodes, templates = {**self.nodes, **other.nodes}, {**self.templates, **other.templates}
        return GroupsFile(nodes=nodes, templates=templates, names=(*self.names, *other.names))


def read_groups(document: object, source: str) -> GroupsFile:
    """Raises `InputError`."""
    place = Place(source=source)
    if isinstance(document, dict) and isinstance(document.get("TemplateNodes"), dict):
        return GroupsFile(templates=document["TemplateNodes"])
    groups = document.get("groups") if isinstance(document, dict) else None
    if isinstance(groups, list) and all(isinstance(group, dict) and group.get("name") for group in groups):
        groups = {group["name"]: {key: value for key, value in group.items() if key != "name"} for group in groups}
    if not isinstance(groups, dict):
        what = "`groups` is not a map of names to groups" if groups is not None else "neither a map with `groups` nor"
        text = what if groups is not None else f"{what} the output of /snapshotz"
        hint = "groups: {NAME: {nodes: [NODE], capacity: {cpu: 4, memory: 16Gi}, labels: {}, taints: []}}"
        raise InputError(text, place=place, hint=f"{hint}; all keys: kschedx schema NodeGroups")
    nodes: dict[str, str] = {}
    templates: dict[str, object] = {}
    for name, entry in groups.items():
        where = Place(source=source, field=f"groups.{name}")
        if not isinstance(entry, dict):
            raise InputError("a group is a map", place=where)
        for key in entry:
            if key not in _KEYS:
                raise InputError(f'"{key}" is not a key of a group', place=where, hint=nearest(str(key), _KEYS))
        if not isinstance(entry.get("nodes") or [], list):
            raise InputError("nodes is a list of node names", place=where)
        for node in entry.get("nodes") or ():
            nodes[str(node)] = str(name)
        if "template" in entry:
            templates[str(name)] = entry["template"]
        elif any(key in entry for key in ("capacity", "labels", "taints", "tags")):
            templates[str(name)] = {"Node": _described_node(str(name), entry, where), "Pods": []}
    return GroupsFile(nodes=nodes, templates=templates, names=tuple(map(str, groups)))


def _described_node(name: str, entry: Mapping[str, object], place: Place) -> Json:
    labels = _texts(entry.get("labels"), "labels", place)
    capacity: dict[str, str] = _texts(entry.get("capacity"), "capacity", place)
    written = entry.get("taints") or []
    if not isinstance(written, list):
        raise InputError("taints is a list", place=place)
    taints = [_taint(taint, place) for taint in written]
    for tag, value in _texts(entry.get("tags"), "tags", place).items():
        if not tag.startswith(_PREFIX):
            continue
        what, _, key = tag.removeprefix(_PREFIX).partition("/")
        if what == "label":
            labels[key] = value
        elif what == "taint":
            text, _, effect = value.partition(":")
            if effect in EFFECTS:  # the autoscaler ignores a tag without one
                taints.append({"key": key, "value": text, "effect": effect})
        elif what == "resources":
            capacity[key] = value
    if not {"cpu", "memory"} <= capacity.keys():
        raise InputError("a template needs capacity with cpu and memory", place=place)
    capacity.setdefault("pods", "110")
    return _ready_node(f"template-{name}", {"kubernetes.io/os": "linux", **labels}, taints, capacity)


def _ready_node(
    name: str, labels: Mapping[str, str], taints: Sequence[Mapping[str, object]], capacity: Mapping[str, str]
) -> Json:
    """Return the manifest of a node whose capacity is allocatable."""
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": list(taints)},
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _texts(value: object, key: str, place: Place) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{key} is a map", place=place)
    return {str(name): str(text) for name, text in value.items()}


def _taint(value: object, place: Place) -> dict[str, object]:
    """Parse `key=value:effect`, or a map."""
    key_value, _, effect = str(value).rpartition(":")
    key, _, text = key_value.partition("=")
    taint = value if isinstance(value, dict) else {"key": key, "value": text, "effect": effect}
    if not taint.get("key"):
        raise InputError(f"{json.dumps(value)} is not a taint: KEY=VALUE:EFFECT", place=place)
    if taint.get("effect") not in EFFECTS:
        hint = nearest(str(taint.get("effect")), EFFECTS) or f"one of {', '.join(EFFECTS)}"
        raise InputError(f"{json.dumps(taint.get('effect'))} is not a taint effect", place=place, hint=hint)
    return taint


# Templates of groups from Cluster API: annotations with a machine's capacity. Upstream: TemplateNodeInfo in
# cloudprovider/clusterapi/clusterapi_nodegroup.go, InstanceCapacity, Labels, and Taints in clusterapi_unstructured.go.
# The status of machine templates is not read.

_MOST_PODS = "110"


def machine_templates(snapshot: Snapshot) -> dict[str, Json]:
    """Group to `{"Node": manifest, "Pods": [manifest]}`, for groups with cpu and memory capacity."""
    templates: dict[str, Json] = {}
    for kind, records in _RECORDS.items():
        for record in records:
            for scalable in snapshot.of(record):
                capacity = _capacity(scalable.metadata.annotations)
                if {"cpu", "memory"} <= capacity.keys():
                    group = f"{kind}/{scalable.key}"
                    templates[group] = {
                        "Node": _node(scalable, capacity),
                        "Pods": [_kube_proxy(scalable.metadata.name)],
                    }
    return templates


def _capacity(written: Mapping[str, str]) -> dict[str, str]:
    named = {"cpu": capi.CPU, "memory": capi.MEMORY, "ephemeral-storage": capi.DISK}
    amounts = {resource: written[key] for resource, key in named.items() if written.get(key)}
    if written.get(capi.GPU_TYPE) and written.get(capi.GPU_COUNT, "0") != "0":
        amounts[written[capi.GPU_TYPE]] = written[capi.GPU_COUNT]
    most = written.get(capi.MAX_PODS, "")
    amounts["pods"] = _MOST_PODS if most in ("", "0") else most
    return amounts


def _node(scalable: capi.Scalable, capacity: Mapping[str, str]) -> Json:
    name = f"{scalable.metadata.name}-asg"
    generic = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
    copied = capi.node_labels(scalable.spec.template.spec.metadata.labels)
    label_values = dict(_pairs(scalable.metadata.annotations.get(capi.LABELS, "")))
    return _ready_node(name, {**generic, **copied, **label_values}, _taints(scalable), capacity)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            yield key, value


def _taints(scalable: capi.Scalable) -> list[Json]:
    """Return the taints of the spec, overridden by those of the annotation with the same key and effect."""
    taints = {(taint.key, taint.effect): taint.value for taint in scalable.spec.template.spec.taints}
    for text in filter(None, scalable.metadata.annotations.get(capi.TAINTS, "").split(",")):
        named, _, effect = text.partition(":")
        key, _, value = named.partition("=")
        taints[key, effect] = value
    return [{"key": key, "value": value, "effect": effect} for (key, effect), value in taints.items()]


def _kube_proxy(group: str) -> Json:
    """The autoscaler assumes a kube-proxy pod on every new node; it requests nothing."""
    return {
        "metadata": {"name": f"kube-proxy-{group}", "namespace": "kube-system", "labels": {"component": "kube-proxy"}},
        "spec": {"containers": [{"name": "kube-proxy", "image": "kube-proxy"}]},
    }


# The template of a new node in each group, with the pods that run on it from the start. Upstream:
# processors/nodeinfosprovider/mixed_nodeinfos_processor.go, simulator/node_info_utils.go, utils/daemonset/daemonset.go.

_TEMPLATE_LABEL = "cluster-autoscaler.kubernetes.io/template-node"
_CRITICAL = "system-node-critical"

_BETA_LABELS: Mapping[str, str] = dict((INSTANCE_TYPE_LABELS, REGION_LABELS, ZONE_LABELS))


class CloudTemplate(Struct, frozen=True, kw_only=True):
    """The cloud's template of a node in a group."""

    node: Node
    pods: tuple[Pod, ...] = ()


class _DaemonSet(Struct, frozen=True, kw_only=True):
    name: str  # `namespace/name`
    uid: str
    pod: Pod
    is_critical: bool  # whether its pods are system-node-critical and may preempt


class Template(Struct, frozen=True, kw_only=True):
    """A sanitized node of a group with its pods."""

    group: str
    source: str  # `node/NAME` of a real node, or `template` for the cloud's
    node: Node
    pods: tuple[Pod, ...]
    milli_cpu: int  # requests of the pods
    memory: int
    slices: tuple[ResourceSlice, ...] = ()  # those of the real node


def cloud_templates(written: Mapping[str, object] | None) -> dict[str, CloudTemplate]:
    """Parse `{group: {"Node": manifest, "Pods": [manifest]}}`, the format of TemplateNodes in `/snapshotz`. Raises
    `InputError`."""
    templates = {}
    for group, entry in (written or {}).items():
        place = Place(object=f"template of {group}")
        if not isinstance(entry, dict) or not isinstance(entry.get("Node"), dict):
            raise InputError("a template is a map with Node and Pods", place=place)
        node, pods = entry["Node"], entry.get("Pods") or []
        if not isinstance(pods, list) or not all(isinstance(pod, dict) for pod in pods):
            raise InputError("Pods is a list of manifests", place=place)
        metadata = map_at(node, "metadata")
        with place:
            named = {**metadata, "name": metadata.get("name") or "template"}
            objects = [{**node, "apiVersion": "v1", "kind": "Node", "metadata": named}]
            objects += [_without_priority_class({**pod, "apiVersion": "v1", "kind": "Pod"}) for pod in pods]
            snapshot = Snapshot.from_objects(objects)
        on_it = tuple(snapshot.pods[row] for row in range(len(snapshot.pods)))
        templates[group] = CloudTemplate(node=snapshot.cluster.nodes[0], pods=on_it)
    return templates


def _without_priority_class(pod: Mapping[str, object]) -> dict[str, object]:
    """Remove what admission compares with the priority class, which may be unknown; the priority does not matter."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return dict(pod)
    of_class = ("priorityClassName", "preemptionPolicy")
    return {**pod, "spec": {key: value for key, value in spec.items() if key not in of_class}}


def daemon_sets(snapshot: Snapshot) -> tuple[_DaemonSet, ...]:
    """Return the DaemonSets of the snapshot in list order, with their pods."""
    parsed: list[_DaemonSet] = []
    for (kind, namespace, name), raw in snapshot.workloads.items():
        workload = json.loads(raw) if kind == "DaemonSet" else {}
        if not map_at(workload, "spec", "template"):  # an abridged dump may lack it
            continue
        manifest = pod_from_workload(workload)
        spec = cast("Mapping[str, object]", manifest["spec"])
        cluster = Snapshot.from_objects([_without_priority_class(manifest)])
        parsed.append(
            _DaemonSet(
                name=f"{namespace}/{name}",
                uid=str(workload.get("metadata", {}).get("uid") or ""),
                pod=cluster.pods[0],
                is_critical=spec.get("priorityClassName") == _CRITICAL
                and spec.get("preemptionPolicy") in (None, "PreemptLowerPriority"),
            )
        )
    return tuple(parsed)


class TemplateBuilder(Struct, frozen=True, kw_only=True):
    """Builds templates from nodes."""

    flags: Flags
    behavior: AutoscalerBehavior
    daemon_sets: tuple[_DaemonSet, ...]
    options: RequestOptions
    compares_taints: bool  # behind the gate TaintTolerationComparisonOperators
    slices: Mapping[str, Sequence[ResourceSlice]]  # those of each node, if the autoscaler reads them

    def make_from_node(self, group: str, node: Node, pods: Sequence[Pod], source: str, *, force: bool) -> Template:
        """`force`: DaemonSets without a pod among `pods` are added whatever their priority."""
        sanitized = self._sanitize(group, node)
        staying: list[Pod] = []
        running: set[str] = set()
        for pod in pods:
            if pod.metadata.deletion_timestamp:
                continue
            controller = pod.metadata.controller
            annotations = pod.metadata.annotations
            if MIRROR in annotations or is_of_daemon_set(pod.metadata.owner_references, annotations):
                staying.append(pod)
            if controller is not None and controller.kind == "DaemonSet":
                running.add(controller.uid)
        adds_critical = self.behavior.critical_daemon_sets_are_added
        for daemon_set in self.daemon_sets:
            if daemon_set.uid in running or not (force or (daemon_set.is_critical and adds_critical)):
                continue
            if runs_on(daemon_set.pod.spec, sanitized, comparison=self.compares_taints):
                staying.append(daemon_set.pod)
        if self.behavior.templates_are_labelled:
            labels = {**sanitized.metadata.labels, _TEMPLATE_LABEL: "true"}
            sanitized = replace(sanitized, metadata=replace(sanitized.metadata, labels=labels))
        requests = [pod_request(pod.spec, pod.status, self.options).amounts for pod in staying]
        return Template(
            group=group,
            source=source,
            node=sanitized,
            pods=tuple(staying),
            milli_cpu=sum(request.get("cpu", 0) for request in requests),
            memory=sum(request.get("memory", 0) for request in requests),
            slices=tuple(self.slices.get(node.name, ())),
        )

    def make_from_cloud(self, group: str, template: CloudTemplate) -> Template:
        sanitized = self.make_from_node(group, template.node, template.pods, "template", force=True)
        labels = dict(sanitized.node.metadata.labels)
        for stable, beta in _BETA_LABELS.items():
            if stable in labels:
                labels[beta] = labels[stable]
        return replace(
            sanitized,
            node=replace(sanitized.node, metadata=replace(sanitized.node.metadata, labels=labels)),
        )

    def _sanitize(self, group: str, node: Node) -> Node:
        name = f"template-node-for-{group}"
        metadata = ObjectMeta(
            name=name,
            labels={**node.metadata.labels, "kubernetes.io/hostname": name},
            annotations=node.metadata.annotations,
            creation_timestamp=node.metadata.creation_timestamp,
        )
        spec = replace(
            node.spec,
            taints=TaintRules.of(self.flags, self.behavior).lasting_taints(node.spec.taints),
            unschedulable=node.spec.unschedulable and not self.flags.scale_from_unschedulable,
        )
        return replace(node, metadata=metadata, spec=spec)


def is_of_daemon_set(owners: Iterable[OwnerReference], annotations: Mapping[str, str]) -> bool:
    owner = controller_of(owners)
    return (owner is not None and owner.kind == "DaemonSet") or annotations.get(DAEMON_SET_POD) == "true"
