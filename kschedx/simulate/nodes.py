"""Nodes as they are after something was done to them."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.types import Node, Taint


def cordoned(node: Node, *, unschedulable: bool) -> Node:
    """With spec.unschedulable, and the taint that the node controller sets with it."""
    key = "node.kubernetes.io/unschedulable"
    taints = tuple(taint for taint in node.spec.taints if taint.key != key)
    if unschedulable:
        taints += (Taint(key=key, effect="NoSchedule"),)
    return replace(node, spec=replace(node.spec, unschedulable=unschedulable, taints=taints))


def another_like(template: Node, name: str) -> Node:
    """A fresh node of the same kind: another name and hostname, and none of what only happens to a node that runs."""
    labels = {key: name if value == template.name else value for key, value in template.metadata.labels.items()}
    taints = tuple(taint for taint in template.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
    return replace(
        template,
        metadata=replace(template.metadata, name=name, labels=labels, uid=f"new/{name}"),
        spec=replace(template.spec, taints=taints, unschedulable=False),
    )
