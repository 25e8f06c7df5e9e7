"""The cluster as it is when the autoscaler has done what it can: loop after loop, until none adds a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Node, NodeCondition, Pod, PodStatus
from kschedx.autoscaler.answers import Answer, Choice
from kschedx.autoscaler.cluster import Autoscaler
from kschedx.autoscaler.status import GroupStatus, ScaleUp
from kschedx.autoscaler.templates import Template
from kschedx.snapshot.snapshot import Snapshot

MOST_LOOPS = 50


class Grown(Struct, frozen=True, kw_only=True):
    """A group that gets nodes."""

    group: str
    before: int
    after: int
    maximum: int


class Growth(Struct, frozen=True, kw_only=True):
    """What the autoscaler adds in the end."""

    snapshot: Snapshot
    """With the new nodes, and the pods that they come with."""
    groups: tuple[Grown, ...]
    loops: int
    """Those that added nodes."""
    helped: int
    """Pods that got nodes added for them."""
    last: Answer
    """The loop that added nothing."""
    by_chance: bool
    """Somewhere several options were as good; the first was taken."""


def grow(autoscaler: Autoscaler) -> Growth:
    """New nodes are there and ready at the next loop. Of options that are as good the first is taken."""
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
        templates = {one.group.name: one.template for one in answer.groups if one.template is not None}
        nodes = _new_nodes(choice, templates)
        new |= {node.name: group for group, node, _ in nodes}
        snapshot = with_new_nodes(snapshot, [(node, pods) for _, node, pods in nodes])
        sizes = {one.group: one.after for one in choice.resizes}
        status = replace(status, groups=tuple(_resized(one, sizes) for one in status.groups))
    grown = (
        Grown(group=one.name, before=first[one.name].target, after=one.target, maximum=one.max_size)
        for one in status.groups
        if one.target != first[one.name].target
    )
    return Growth(snapshot=snapshot, groups=tuple(grown), loops=loops, helped=helped, last=answer, by_chance=by_chance)


def _resized(status: GroupStatus, sizes: Mapping[str, int]) -> GroupStatus:
    size = sizes.get(status.name)
    return status if size is None else replace(status, target=size, scale_up=ScaleUp.NO_ACTIVITY)


def _new_nodes(choice: Choice, templates: Mapping[str, Template]) -> list[tuple[str, Node, Sequence[Pod]]]:
    ready = (NodeCondition(type="Ready", status="True"),)
    made: list[tuple[str, Node, Sequence[Pod]]] = []
    for one in choice.resizes:
        template = templates[one.group]
        for number in range(one.before + 1, one.after + 1):
            name = f"{one.group}-new-{number}"
            labels = {**template.node.metadata.labels, "kubernetes.io/hostname": name}
            node = replace(
                template.node,
                metadata=replace(template.node.metadata, name=name, labels=labels),
                status=replace(template.node.status, conditions=ready),
            )
            made.append((one.group, node, template.pods))
    return made


def with_new_nodes(snapshot: Snapshot, nodes: Sequence[tuple[Node, Sequence[Pod]]]) -> Snapshot:
    """The snapshot with nodes at the end, and copies of pods that run on them."""
    cluster = snapshot.cluster
    made: list[Pod] = []
    places: list[int] = []
    for node, pods in nodes:
        row = len(cluster.nodes)
        cluster = cluster.with_added(node)
        made += [_on(pod, node) for pod in pods]
        places += [row] * len(pods)
    table = snapshot.pods.with_pods(made)
    where = np.concatenate([snapshot.pods.node, np.array(places, dtype=np.int64)])
    return replace(snapshot, cluster=cluster, pods=table.moved(where, len(cluster.nodes)), _tables={})


def _on(pod: Pod, node: Node) -> Pod:
    return replace(
        pod,
        metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{node.name}", uid=""),
        spec=replace(pod.spec, node_name=node.name),
        status=PodStatus(),
    )
