"""The cluster after all scale-ups: loops run until none adds a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.autoscaler.cluster import Autoscaler
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.state import GroupChoice, LoopOutcome, LoopResult
from kschedx.autoscaler.status import NodeGroupStatus, ScaleUp
from kschedx.autoscaler.templates import Template
from kschedx.kube.documents import Document, part_of
from kschedx.kube.types import Node, NodeCondition, Pod, PodStatus
from kschedx.snapshot.snapshot import Snapshot

MOST_LOOPS = 50


class AutoscalerGrowth(Struct, frozen=True, kw_only=True):
    """All nodes that the autoscaler adds."""

    snapshot: Snapshot
    """The cluster with the new nodes and the pods on them."""
    groups: tuple[Resize, ...]
    loops: int
    """The number of loops that added nodes."""
    helped: int
    """The number of pods for which nodes were added."""
    last: LoopResult
    """The loop that added no node."""
    by_chance: bool
    """Whether several options were equally good somewhere; the first was chosen."""

    @property
    def document(self) -> AutoscalerGrowthDocument:
        groups = {step.group: step for step in self.groups}
        return part_of(AutoscalerGrowthDocument, self, groups=groups, result=self.last.result)


def grow_by_autoscaler(autoscaler: Autoscaler) -> AutoscalerGrowth:
    """Run loops; new nodes are ready at the next loop. Of equally good options, the first is chosen."""
    snapshot, status = autoscaler.snapshot, autoscaler.status
    first = {group.name: group for group in status.groups}
    new: dict[str, str] = {}
    loops = helped = 0
    by_chance = False
    while True:
        answer = autoscaler.loop(snapshot, status=status, more=new).run()
        choice = answer.choices[0] if answer.choices else None
        if choice is None or not choice.resizes or loops == MOST_LOOPS:
            break
        loops += 1
        helped += len(choice.triggered)
        by_chance = by_chance or len(answer.choices) > 1
        templates = {group.group.name: group.template for group in answer.groups if group.template is not None}
        nodes = _new_nodes(choice, templates)
        new |= {node.name: group for group, node, _ in nodes}
        snapshot = with_new_nodes(snapshot, [(node, pods) for _, node, pods in nodes])
        sizes = {resize.group: resize.after for resize in choice.resizes}
        status = replace(status, groups=tuple(_resized(group, sizes) for group in status.groups))
    grown = (
        Resize(group=group.name, before=first[group.name].target, after=group.target, maximum=group.max_size)
        for group in status.groups
        if group.target != first[group.name].target
    )
    return AutoscalerGrowth(
        snapshot=snapshot, groups=tuple(grown), loops=loops, helped=helped, last=answer, by_chance=by_chance
    )


def _resized(status: NodeGroupStatus, sizes: Mapping[str, int]) -> NodeGroupStatus:
    size = sizes.get(status.name)
    return status if size is None else replace(status, target=size, scale_up=ScaleUp.NO_ACTIVITY)


def _new_nodes(choice: GroupChoice, templates: Mapping[str, Template]) -> list[tuple[str, Node, Sequence[Pod]]]:
    ready = (NodeCondition(type="Ready", status="True"),)
    new_nodes: list[tuple[str, Node, Sequence[Pod]]] = []
    for resize in choice.resizes:
        template = templates[resize.group]
        for number in range(resize.before + 1, resize.after + 1):
            name = f"{resize.group}-new-{number}"
            labels = {**template.node.metadata.labels, "kubernetes.io/hostname": name}
            node = replace(
                template.node,
                metadata=replace(template.node.metadata, name=name, labels=labels),
                status=replace(template.node.status, conditions=ready),
            )
            new_nodes.append((resize.group, node, template.pods))
    return new_nodes


def with_new_nodes(snapshot: Snapshot, nodes: Sequence[tuple[Node, Sequence[Pod]]]) -> Snapshot:
    """Append nodes, with copies of pods that run on them."""
    cluster = snapshot.cluster
    new_pods: list[Pod] = []
    places: list[int] = []
    for node, pods in nodes:
        row = len(cluster.nodes)
        cluster = cluster.with_added(node)
        new_pods += [_on(pod, node) for pod in pods]
        places += [row] * len(pods)
    table = snapshot.pods.with_pods(new_pods)
    where = np.concatenate([snapshot.pods.node, np.array(places, dtype=np.int64)])
    return replace(snapshot, cluster=cluster, pods=table.moved(where, len(cluster.nodes)), _tables={})


def _on(pod: Pod, node: Node) -> Pod:
    return replace(
        pod,
        metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{node.name}", uid=""),
        spec=replace(pod.spec, node_name=node.name),
        status=PodStatus(),
    )


class SizeDocument(Document, frozen=True):
    before: int = field(name="from")
    after: int = field(name="to")
    maximum: int = field(name="max")


class AutoscalerGrowthDocument(Document, frozen=True, tag_field="kind", tag="cluster-autoscaler"):
    """What the autoscaler adds in the end, as the value of the key `autoscaler` of a Simulation document."""

    loops: int
    groups: Mapping[str, SizeDocument]
    helped: int
    result: LoopOutcome
    by_chance: bool
