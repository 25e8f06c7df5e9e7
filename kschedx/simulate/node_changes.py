"""Nodes after a change: cordoned, unreachable, tainted, labeled, and added nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from kschedx.apiserver.placement_validation import EFFECTS
from kschedx.apiserver.validation import validate_written_node
from kschedx.errors import InputError, Place, nearest
from kschedx.findings.nodes import CORDON_TAINT
from kschedx.kube.selectors import required_node_affinity
from kschedx.kube.types import LOST_TAINTS, Node, Pod, Taint
from kschedx.snapshot.snapshot import Snapshot


def cordoned(node: Node, *, unschedulable: bool) -> Node:
    """Return the node with spec.unschedulable, and the taint that the node controller sets with it."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
    if unschedulable:
        taints += (Taint(key=CORDON_TAINT, effect="NoSchedule"),)
    return replace(node, spec=replace(node.spec, unschedulable=unschedulable, taints=taints))


def unreachable(node: Node) -> Node:
    """Return the node with the taints that the node lifecycle controller sets once the node stops reporting."""
    key = "node.kubernetes.io/unreachable"
    taints = tuple(taint for taint in node.spec.taints if taint.key not in LOST_TAINTS)
    taints += tuple(Taint(key=key, effect=effect) for effect in ("NoSchedule", "NoExecute"))
    return replace(node, spec=replace(node.spec, taints=taints))


def another_like(template: Node, name: str) -> Node:
    """Return a new node with the shape of the template: with another name and hostname, and without the state of a
    running node."""
    labels = {key: name if value == template.name else value for key, value in template.metadata.labels.items()}
    taints = tuple(taint for taint in template.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
    return replace(
        template,
        metadata=replace(template.metadata, name=name, labels=labels, uid=f"new/{name}"),
        spec=replace(template.spec, taints=taints, unschedulable=False),
    )


# Changes of nodes in their written form: taints, labels, and more nodes like an existing one.


def node_of(snapshot: Snapshot, name: str) -> Node:
    """Return the node `node-1`, `node/node-1`, or `no/node-1`. Raises `InputError` with the nearest name."""
    name = snapshot.cluster.full_name(bare_name(name))
    row = snapshot.cluster.index.get(name)
    if row is None:
        raise InputError(f'no node "{name}" in the snapshot', hint=nearest(name, snapshot.cluster.index))
    return snapshot.cluster.nodes[row]


def bare_name(target: str) -> str:
    """Return `node-1` for `node/node-1`."""
    return target.rpartition("/")[2] if names_node(target) else target


def names_node(target: str) -> bool:
    """Whether KIND/NAME names a node."""
    return target.partition("/")[0].lower() in ("node", "nodes", "no") and "/" in target


def with_taint(node: Node, text: str) -> Node:
    """Return the node with the taint `KEY=VALUE:EFFECT`, or without the taints of `KEY-`. Raises `InputError`."""
    taints = node.spec.taints
    if text.endswith("-"):
        key, _, effect = text[:-1].partition(":")
        left = tuple(taint for taint in taints if taint.key != key or (effect and taint.effect != effect))
        if left == taints:
            raise InputError(
                f'"{key}" is not a taint of {node.name}', hint=nearest(key, (taint.key for taint in taints))
            )
    else:
        rest, colon, effect = text.rpartition(":")
        if not colon or effect not in EFFECTS:
            hint = nearest(effect, EFFECTS) or f"one of {', '.join(EFFECTS)}"
            raise InputError(f'"{effect}" is not a taint effect', hint=hint)
        key, _, value = rest.partition("=")
        effects = (effect, "NoSchedule") if key in LOST_TAINTS and effect == "NoExecute" else (effect,)
        others = tuple(taint for taint in taints if taint.key != key or taint.effect not in effects)
        left = (*others, *(Taint(key=key, value=value, effect=effect) for effect in effects))
    return replace(node, spec=replace(node.spec, taints=left))


def with_label(node: Node, text: str) -> Node:
    """Return the node with the label `KEY=VALUE`, or without the label of `KEY-`. Raises `InputError`."""
    labels = dict(node.metadata.labels)
    if text.endswith("-"):
        if labels.pop(text[:-1], None) is None:
            raise InputError(f'"{text[:-1]}" is not a label of {node.name}', hint=nearest(text[:-1], labels))
    else:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f'found "{text}", allowed is KEY=VALUE')
        labels[key] = value
    return replace(node, metadata=replace(node.metadata, labels=labels))


def nodes_like(snapshot: Snapshot, template: Node, number: int) -> Iterator[Node]:
    """Yield so many new nodes like the template, under unused names of the same domain."""
    host, dot, domain = template.name.partition(".")
    every = (f"{host}-new{number}{dot}{domain}" for number in count(1))
    names = (name for name in every if name not in snapshot.cluster.index)
    for _ in range(number):
        yield another_like(template, next(names))


def node_of_file(objects: Sequence[tuple[Mapping[str, object], Place]], path: str) -> Node:
    """Return the only node in a file. Raises `InputError`."""
    nodes = [(manifest, place) for manifest, place in objects if manifest.get("kind") == "Node"]
    if len(nodes) != 1:
        raise InputError(f"{path} holds {len(nodes)} nodes, one is needed")
    [(manifest, place)] = nodes
    node = Snapshot.from_objects([manifest]).cluster.nodes[0]
    for error in validate_written_node(node):
        raise error.at(Place(object=f"Node {node.name}")).at(place)
    return node


SHAPES = 8
"""Node shapes that are tried if nodes are missing."""


def shapes(nodes: Sequence[Node], pod: Pod) -> list[Node]:
    """Return a node of each shape: same size, same taints, and selected by the pod or not. Selected nodes come first,
    then the most common shape."""
    selected = required_node_affinity(pod.spec.node_selector, pod.spec.required_node_affinity)
    nodes_by_shape: dict[tuple[bool, object], list[Node]] = {}
    for node in nodes:
        size = tuple(sorted(node.status.allocatable.items()))
        taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
        is_selected = selected.matches(node.metadata.labels, node.name)
        nodes_by_shape.setdefault((is_selected, (size, taints)), []).append(node)
    ordered = sorted(nodes_by_shape.items(), key=lambda kind: (not kind[0][0], -len(kind[1])))
    return [alike[0] for _, alike in ordered]
