"""Remedies for a resource that a node has and does not offer: its driver does not run, no huge pages are set aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kschedx.explain.hardware_hints import hardware_hint
from kschedx.findings import Finding, InsufficientResource
from kschedx.fixes import steps as s
from kschedx.fixes.situation import Place, Situation
from kschedx.snapshot.rows import ClusterRow

HUGE_PAGES = "hugepages-"
MEMORY = "memory"
MOST_NODES = 4
"""Nodes with the hardware that are looked at."""


def rows_with_hardware(situation: Situation) -> Iterator[ClusterRow]:
    """Nodes whose labels tell of hardware that no node offers, and that the pod asks for."""
    cluster = situation.snapshot.cluster
    findings: Iterable[Finding] = (one for group in situation.groups for one in group.exemplar.findings)
    hints = [hint for one in findings if (hint := hardware_hint(one, cluster)) is not None]
    names = dict.fromkeys(name for hint in hints for name, _ in hint.nodes)
    yield from [cluster.index[name] for name in names][:MOST_NODES]


def offering(short: Sequence[InsufficientResource], place: Place) -> Iterator[s.OfferResource]:
    """Where that is all that the node lacks."""
    if len(short) != 1:
        return
    [one] = short
    more = s.NodeAmount(resource=one.resource, before=one.allocatable, after=one.allocatable + one.short_by)
    if one.resource.startswith(HUGE_PAGES):
        yield from _set_aside(more, place)
        return
    hint = hardware_hint(one, place.nodes.cluster)
    label = "" if hint is None else dict(hint.nodes).get(place.node.name, "")
    if label:
        row, node = place.node_row, place.node.name
        yield s.OfferResource(row=row, node=node, resource=one.resource, amounts=(more,), label=label)


def _set_aside(more: s.NodeAmount, place: Place) -> Iterator[s.OfferResource]:
    """Huge pages are taken from the node's memory."""
    index = place.nodes.resources.index.get(MEMORY)
    if index is None:
        return
    memory = int(place.nodes.allocatable[place.row, index])
    left = memory - (more.after - more.before)
    if left > 0:
        amounts = (more, s.NodeAmount(resource=MEMORY, before=memory, after=left))
        row, node = place.node_row, place.node.name
        yield s.OfferResource(row=row, node=node, resource=more.resource, amounts=amounts)
