"""Remedies for what is used up: ask for less, or make other pods go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx.api.integers import MAX_INT64, MIN_INT64
from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.types import Node, ObjectMeta, OwnerReference, Pod
from kschedx.findings import InsufficientResource, TooManyPods
from kschedx.fixes import pod_edits as edit
from kschedx.fixes.remedy import Cost, Place, Remedy, change_pod, delete_pods

LEAST_SHARE = 10
"""A pod that could have less than one in this many of what it asks for is not told to ask for that."""
MOST_VICTIMS = 5


def resource_remedies(findings: Sequence[InsufficientResource | TooManyPods], place: Place) -> Iterator[Remedy]:
    """All that is short on a node is mended in one step: a part of it helps nobody."""
    short = [finding for finding in findings if isinstance(finding, InsufficientResource)]
    crowded = len(short) < len(findings)
    if not crowded and all(f.free * LEAST_SHARE >= f.requested for f in short):
        options = place.nodes.options
        amounts = {f.resource: _round_down(f.resource, f.free) for f in short}

        def ask_less(pod: Pod) -> Pod:
            for resource, amount in amounts.items():
                pod = edit.requesting(pod, resource, amount, options) or pod
            return pod

        text = " and ".join(f"{format_quantity(n, Unit.of(resource))} {resource}" for resource, n in amounts.items())
        yield Remedy(title=f"request at most {text}", cost=Cost.LESS, step=change_pod(ask_less))
    victims = _victims(short, crowded, place)
    if victims:
        yield Remedy(title=f"delete {pod_list(victims, place)}", cost=Cost.OTHER_PODS, step=delete_pods(victims))
    if not any(finding.never_fits for finding in short):
        yield one_more_node(place)


def one_more_node(place: Place) -> Remedy:
    new = _like(place.node)
    return Remedy(
        title=f"add a node like {place.node.name}",
        cost=Cost.NEW_NODE,
        step=lambda proposal: replace(proposal, added=new),
    )


def _round_down(resource: str, amount: int) -> int:
    """To an amount that people write: tens of millicores, whole mebibytes."""
    step = {Unit.MILLI: 10, Unit.BYTE: 1 << 20, Unit.COUNT: 1}[Unit.of(resource)]
    return amount // step * step if amount >= step else amount


def _like(node: Node) -> Node:
    """An empty node of the same kind under a name of its own; annotations, instance and times are those of the old
    one."""
    name = f"{node.name}-new"
    labels = {**node.metadata.labels, "kubernetes.io/hostname": name}
    conditions = tuple(replace(one, last_transition_time=None) for one in node.status.conditions)
    return replace(
        node,
        metadata=ObjectMeta(name=name, labels=labels),
        spec=replace(node.spec, provider_id=""),
        status=replace(node.status, conditions=conditions),
    )


def _victims(short: Sequence[InsufficientResource], crowded: bool, place: Place) -> tuple[int, ...]:
    """Pods whose deletion makes room on the node: if possible one, of the lowest priority and the best fit; else the
    fewest, the largest first. Pods of DaemonSets come back at once, and nobody gives up a pod of higher priority:
    both are left alone."""
    pods, requests = place.cycle.snapshot.pods, place.nodes.requests
    here = [
        row
        for row in place.nodes.pods_on(place.row).tolist()
        if not _is_daemon(pods.owners[row]) and pods.priorities[row] <= place.pod.priority
    ]
    if not here:
        return ()
    columns = [place.nodes.resources.index[f.resource] for f in short if f.resource in place.nodes.resources.index]
    if len(columns) < len(short):
        return ()  # asked for by name, offered by no node
    missing = np.array([max(MIN_INT64, min(f.short_by, MAX_INT64)) for f in short], dtype=np.int64)
    freed = requests.matrix[np.array(here)][:, columns]
    enough = (freed >= missing).all(axis=1)
    if enough.any():
        best = min(np.flatnonzero(enough), key=lambda i: (pods.priorities[here[i]], int((freed[i] - missing).sum())))
        return (here[int(best)],)
    order = sorted(range(len(here)), key=lambda i: (int(pods.priorities[here[i]]), *(-freed[i]).tolist()))
    taken: list[int] = []
    left = missing.copy()
    for index in order:
        if (left <= 0).all() and (not crowded or taken):
            break
        if (freed[index][left > 0] > 0).any() or not len(columns):
            taken.append(here[index])
            left = left - freed[index]
    return tuple(taken) if (left <= 0).all() and len(taken) <= MOST_VICTIMS else ()


def _is_daemon(owners: Sequence[OwnerReference]) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") and owner.controller for owner in owners)


def pod_list(rows: Sequence[int], place: Place) -> str:
    """`ml/train-5d7b9 (priority 0)`, three at most by name."""
    pods = place.cycle.snapshot.pods
    named = [f"{pods.key(row)} (priority {pods.priorities[row]})" for row in rows[:3]]
    more = [f"{len(rows) - 3} more"] if len(rows) > 3 else []
    return (
        " and ".join([", ".join(named + more)] if len(named + more) != 2 else named + more) + f" on {place.node.name}"
    )
