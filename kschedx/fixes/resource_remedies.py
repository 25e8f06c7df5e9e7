"""Remedies for what is used up: ask for less, or make other pods go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kschedx.api.integers import MAX_INT64, MIN_INT64
from kschedx.api.quantity import Unit
from kschedx.api.spelling import meant_by
from kschedx.api.unlikely_amounts import UnlikelyQuantity, far_too_much, unlikely_quantities
from kschedx.findings import InsufficientResource, TooManyPods
from kschedx.fixes import steps as s
from kschedx.fixes.hardware_remedies import offering
from kschedx.fixes.new_node import one_more_node
from kschedx.fixes.situation import Place
from kschedx.fixes.victims import deletion, is_going, may_go, stay_gone, victims_of

LEAST_SHARE = 10
"""A pod that could have less than one in this many of what it asks for is not told to ask for that."""
MOST_VICTIMS = 5


def resource_remedies(findings: Sequence[InsufficientResource | TooManyPods], place: Place) -> Iterator[s.Step]:
    """All that is short on a node is mended in one step: a part of it helps nobody."""
    short = [finding for finding in findings if isinstance(finding, InsufficientResource)]
    crowded = len(short) < len(findings)
    unlikely = (*unlikely_quantities(place.pod.spec), *_far_too_much(short, place))
    if any(one.resource == finding.resource for one in unlikely for finding in short):
        yield s.RequestAsMeant(amounts=unlikely)
    yield from _misspelled(short, place)
    if not crowded:
        yield from offering(short, place)
    if not crowded and all(f.free * LEAST_SHARE >= f.requested for f in short):
        amounts = tuple(s.ResourceAmount(resource=f.resource, amount=_round_down(f.resource, f.free)) for f in short)
        yield s.RequestAtMost(amounts=amounts, is_most=all(f.free * 2 >= f.requested for f in short))
    going = [row for row in place.nodes.pods_on(place.row).tolist() if is_going(row, place.situation)]
    if going:
        yield s.AwaitTermination(victims=victims_of(going, place.snapshot), node=place.node.name)
    victims = _victims(short, crowded, place)
    if victims:
        yield deletion(victims, place.snapshot, node=place.node.name)
    if not any(finding.never_fits for finding in short):
        yield one_more_node(place)


def larger_node(findings: Sequence[InsufficientResource | TooManyPods], place: Place) -> s.EnlargeNode:
    """The node with as much more as the pod lacks there."""
    amounts = [
        s.NodeAmount(resource=one.resource, before=one.allocatable, after=one.allocatable + one.short_by)
        if isinstance(one, InsufficientResource)
        else s.NodeAmount(resource="pods", before=one.allowed, after=one.pods + 1)
        for one in findings
    ]
    return s.EnlargeNode(row=place.node_row, node=place.node.name, amounts=tuple(amounts))


def _far_too_much(short: Sequence[InsufficientResource], place: Place) -> Iterator[UnlikelyQuantity]:
    cluster = place.nodes.cluster
    for finding in short:
        column = place.nodes.resources.index.get(finding.resource)
        if column is not None and finding.never_fits:
            yield from far_too_much(place.pod.spec, finding.resource, int(cluster.allocatable[:, column].max()))


def _misspelled(short: Sequence[InsufficientResource], place: Place) -> Iterator[s.Step]:
    """A resource that no node offers, where one does that is nearly called the same."""
    if len(short) != 1 or "/" not in short[0].resource:
        return
    cluster, name = place.nodes.cluster, short[0].resource
    offered = [one for column, one in enumerate(cluster.resources.names) if cluster.offers[:, column].any()]
    if name not in offered and (meant := meant_by(name, offered)):
        yield s.RequestInstead(resource=name, meant=meant)


def _round_down(resource: str, amount: int) -> int:
    """To an amount that people write: tens of millicores, whole mebibytes."""
    step = {Unit.MILLI: 10, Unit.BYTE: 1 << 20, Unit.COUNT: 1}[Unit.of(resource)]
    return amount // step * step if amount >= step else amount


def _victims(short: Sequence[InsufficientResource], crowded: bool, place: Place) -> tuple[int, ...]:
    """Pods whose deletion makes room on the node: if possible one, of the lowest priority and the best fit; else the
    fewest, the largest first."""
    pods, requests = place.snapshot.pods, place.nodes.requests
    here = [row for row in place.nodes.pods_on(place.row).tolist() if may_go(row, place.situation)]
    if not here:
        return ()
    columns = [place.nodes.resources.index[f.resource] for f in short if f.resource in place.nodes.resources.index]
    if len(columns) < len(short):
        return ()  # asked for by name, offered by no node
    missing = np.array([max(MIN_INT64, min(f.short_by, MAX_INT64)) for f in short], dtype=np.int64)
    freed = requests.matrix[np.array(here)][:, columns]
    enough = (freed >= missing).all(axis=1)
    ordered = sorted(np.flatnonzero(enough), key=lambda i: (pods.priorities[here[i]], int((freed[i] - missing).sum())))
    for best in ordered[:MOST_VICTIMS]:
        if stay_gone([here[int(best)]], place.situation):
            return (here[int(best)],)
    if ordered:
        return ()
    order = sorted(range(len(here)), key=lambda i: (int(pods.priorities[here[i]]), *(-freed[i]).tolist()))
    taken: list[int] = []
    left = missing.copy()
    for index in order:
        if (left <= 0).all() and (not crowded or taken):
            break
        if (freed[index][left > 0] > 0).any() or not len(columns):
            taken.append(here[index])
            left = left - freed[index]
    if (left > 0).any() or len(taken) > MOST_VICTIMS or not stay_gone(taken, place.situation):
        return ()
    return tuple(taken)
