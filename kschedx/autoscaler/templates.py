"""What a new node of each group would look like, and which pods would be on it from the start.

Upstream: processors/nodeinfosprovider/mixed_nodeinfos_processor.go, simulator/node_info_utils.go,
utils/daemonset/daemonset.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.annotations import DAEMON_SET_POD, MIRROR
from kschedx.api.daemon_set_pods import runs_on
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.types import Node, ObjectMeta, Pod
from kschedx.api.workloads import pod_from_workload
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.groups import NodeState
from kschedx.autoscaler.taints import TO_BE_DELETED, TaintRules
from kschedx.errors import InputError, Place
from kschedx.framework.duration import Duration
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot

TEMPLATE_LABEL = "cluster-autoscaler.kubernetes.io/template-node"
CRITICAL = "system-node-critical"

_SETTLED = Duration.seconds(60)
"""How long a node has to be ready before it is an example."""
_BETA_LABELS: Mapping[str, str] = {
    "node.kubernetes.io/instance-type": "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
}


class CloudTemplate(Struct, frozen=True, kw_only=True):
    """What the cloud says a node of a group looks like."""

    node: Node
    pods: tuple[Pod, ...] = ()


class DaemonSet(Struct, frozen=True, kw_only=True):
    """A DaemonSet with the pod that it makes."""

    name: str
    """`namespace/name`."""
    uid: str
    pod: Pod
    is_critical: bool
    """Its pods are system-node-critical and may preempt."""


class Template(Struct, frozen=True, kw_only=True):
    """A sanitized node of a group with the pods on it."""

    group: str
    source: str
    """`node/NAME` for an example, `template` for the cloud's."""
    node: Node
    pods: tuple[Pod, ...]
    milli_cpu: int
    """Requested by the pods."""
    memory: int


def cloud_templates(written: Mapping[str, object] | None) -> dict[str, CloudTemplate]:
    """`{group: {"Node": manifest, "Pods": [manifest]}}`, as `/snapshotz` has its TemplateNodes. Raises `InputError`."""
    found = {}
    for group, entry in (written or {}).items():
        place = Place(object=f"template of {group}")
        if not isinstance(entry, dict) or not isinstance(entry.get("Node"), dict):
            raise InputError("a template is a map with Node and Pods", place=place)
        pods = entry.get("Pods") or ()
        try:
            objects = [{"apiVersion": "v1", "kind": "Node", **entry["Node"]}]
            objects += [_without_priority_class({"apiVersion": "v1", "kind": "Pod", **pod}) for pod in pods]
            snapshot = Snapshot.from_objects(objects)
        except InputError as error:
            raise error.at(place) from None
        on_it = tuple(snapshot.pods[row] for row in range(len(snapshot.pods)))
        found[group] = CloudTemplate(node=snapshot.cluster.nodes[0], pods=on_it)
    return found


def _without_priority_class(pod: Mapping[str, object]) -> dict[str, object]:
    """The manifest without the name of a class that is not at hand; its pods' priority is not asked for."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return dict(pod)
    return {**pod, "spec": {key: value for key, value in spec.items() if key != "priorityClassName"}}


def daemon_sets(snapshot: Snapshot) -> tuple[DaemonSet, ...]:
    """Those of the snapshot in list order, with their pods."""
    found: list[DaemonSet] = []
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind != "DaemonSet":
            continue
        workload = json.loads(raw)
        manifest = pod_from_workload(workload)
        spec = cast("Mapping[str, object]", manifest["spec"])
        made = Snapshot.from_objects([_without_priority_class(manifest)])
        found.append(
            DaemonSet(
                name=f"{namespace}/{name}",
                uid=str(workload.get("metadata", {}).get("uid") or ""),
                pod=made.pods[0],
                is_critical=spec.get("priorityClassName") == CRITICAL
                and spec.get("preemptionPolicy") in (None, "PreemptLowerPriority"),
            )
        )
    return tuple(found)


class TemplateMaker(Struct, frozen=True, kw_only=True):
    """Makes templates of nodes."""

    flags: Flags
    behaviour: AutoscalerBehaviour
    daemon_sets: tuple[DaemonSet, ...]
    options: RequestOptions
    compares_taints: bool
    """The gate TaintTolerationComparisonOperators."""

    def of_node(self, group: str, node: Node, pods: Sequence[Pod], source: str, *, force: bool) -> Template:
        """`force`: DaemonSets without a pod among `pods` are added whatever their priority."""
        sanitized = self._sanitized(group, node)
        staying: list[Pod] = []
        running: set[str] = set()
        for pod in pods:
            if pod.metadata.deletion_timestamp:
                continue
            controller = pod.metadata.controller
            if is_mirror_pod(pod) or is_daemon_set_pod(pod):
                staying.append(pod)
            if controller is not None and controller.kind == "DaemonSet":
                running.add(controller.uid)
        for daemon_set in self.daemon_sets:
            if daemon_set.uid in running or not (force or self._is_always_added(daemon_set)):
                continue
            if runs_on(daemon_set.pod.spec, sanitized, comparison=self.compares_taints):
                staying.append(daemon_set.pod)
        if self.behaviour.templates_are_labelled:
            labels = {**sanitized.metadata.labels, TEMPLATE_LABEL: "true"}
            sanitized = replace(sanitized, metadata=replace(sanitized.metadata, labels=labels))
        requests = [pod_request(pod.spec, pod.status, self.options).amounts for pod in staying]
        return Template(
            group=group,
            source=source,
            node=sanitized,
            pods=tuple(staying),
            milli_cpu=sum(request.get("cpu", 0) for request in requests),
            memory=sum(request.get("memory", 0) for request in requests),
        )

    def of_cloud(self, group: str, template: CloudTemplate) -> Template:
        made = self.of_node(group, template.node, template.pods, "template", force=True)
        labels = dict(made.node.metadata.labels)
        for stable, beta in _BETA_LABELS.items():
            if stable in labels:
                labels[beta] = labels[stable]
        return replace(made, node=replace(made.node, metadata=replace(made.node.metadata, labels=labels)))

    def _is_always_added(self, daemon_set: DaemonSet) -> bool:
        return daemon_set.is_critical and self.behaviour.critical_daemon_sets_are_added

    def _sanitized(self, group: str, node: Node) -> Node:
        name = f"template-node-for-{group}"
        metadata = ObjectMeta(
            name=name,
            labels={**node.metadata.labels, "kubernetes.io/hostname": name},
            annotations=node.metadata.annotations,
            creation_timestamp=node.metadata.creation_timestamp,
        )
        spec = replace(
            node.spec,
            taints=TaintRules.of(self.flags, self.behaviour).lasting(node.spec.taints),
            unschedulable=node.spec.unschedulable and not self.flags.scale_from_unschedulable,
        )
        return replace(node, metadata=metadata, spec=spec)


def choose_templates(
    maker: TemplateMaker,
    groups: Iterable[str],
    nodes: Sequence[tuple[NodeState, Node]],
    pods_on: Callable[[ClusterRow], Sequence[Pod]],
    cloud: Mapping[str, CloudTemplate],
    now: int,
) -> dict[str, Template]:
    """For each group the first good node in list order, else the cloud's template, else the first other node.

    `pods_on` tells the pods on a node by its row. A group without any of these has no template.
    """
    good: dict[str, tuple[NodeState, Node]] = {}
    bad: dict[str, tuple[NodeState, Node]] = {}
    for state, node in nodes:
        if state.group is not None:
            (good if is_good_example(state, node, now) else bad).setdefault(state.group, (state, node))

    def of_example(group: str, state: NodeState, node: Node) -> Template:
        force = maker.flags.force_daemon_sets
        return maker.of_node(group, node, pods_on(state.row), f"node/{node.name}", force=force)

    made: dict[str, Template] = {}
    for group in groups:
        if group in good:
            made[group] = of_example(group, *good[group])
        elif group in cloud:
            made[group] = maker.of_cloud(group, cloud[group])
        elif group in bad:
            made[group] = of_example(group, *bad[group])
    return made


def is_good_example(state: NodeState, node: Node, now: int) -> bool:
    """Ready and unchanged for a minute, not cordoned, and nobody is about to delete it."""
    settled = state.stable_since + _SETTLED < now
    deleted = any(taint.key == TO_BE_DELETED for taint in node.spec.taints)
    return state.is_ready and settled and not state.is_cordoned and not deleted


def is_mirror_pod(pod: Pod) -> bool:
    return MIRROR in pod.metadata.annotations


def is_daemon_set_pod(pod: Pod) -> bool:
    controller = pod.metadata.controller
    if controller is not None and controller.kind == "DaemonSet":
        return True
    return has_daemon_set_annotation(pod.metadata.annotations)


def has_daemon_set_annotation(written: Mapping[str, str]) -> bool:
    return written.get(DAEMON_SET_POD) == "true"
