"""The block `karpenter` of `kschedx why`: what Karpenter does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.node_scaling import NodeRemedy
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType
from kschedx.karpenter.cluster import LaunchCertainty
from kschedx.karpenter.instance_types import NoInstanceType
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import is_same_karpenter_event
from kschedx.karpenter.requirements import amounts_of, subtracted
from kschedx.releases.karpenter import karpenter_title
from kschedx.render.terminal import StyledLine, text
from kschedx.render.view import Decider, DeciderRow
from kschedx.render.wording import count, listed
from kschedx.render.words.autoscaler import alike, names_of
from kschedx.render.words.karpenter import (
    MOST_NAMES,
    karpenter_basis,
    karpenter_sentence,
    pool_facts,
    pool_headline,
    resources_text,
    skipped_pool_text,
)

if TYPE_CHECKING:
    from kschedx.inquiry.pool_scaling import PoolScaling


def pool_decider(of_pools: PoolScaling, explanation: Explanation) -> Decider:
    karpenter, provisioning = of_pools.autoscaler, of_pools.decision
    said = explanation.cycle.snapshot.karpenter_events.get(explanation.cycle.pod.key)
    return Decider(
        name="karpenter",
        sentence=karpenter_sentence(karpenter, provisioning),
        rows=tuple(_pools(of_pools)),
        event=provisioning.event,
        recorded="" if said is None else _recorded(said.message, provisioning.event),
        reports=tuple(of_pools.reports.values()),
        basis=(karpenter_basis(karpenter), f"rules of Karpenter {karpenter_title(karpenter.settings.followed)}"),
    )


def seen(remedy: NodeRemedy) -> str:
    """Return the result of trying a remedy."""
    return f"adds a node of {remedy.place}, {listed(remedy.types, MOST_NAMES) or 'if a type fits'}"


def _recorded(said: str, event: str) -> str:
    if event and is_same_karpenter_event(said, event):
        return "the recorded event is the same"
    return f"{said}  (recorded at another time, or with other types and settings)" if event else said


def _pools(of_pools: PoolScaling) -> Iterator[DeciderRow]:
    """Yield the rows: NodePools that a change makes help, then the nearest, otherwise in the order in which they are
    tried."""
    karpenter, provisioning = of_pools.autoscaler, of_pools.decision
    if (
        provisioning.looked.outcome not in (PodEligibility.CONSIDERED, PodEligibility.NO_POOLS)
        or provisioning.pool
        or provisioning.existing
    ):
        return
    helped = {remedy.place for remedy in of_pools.remedies}
    rows = alike(provisioning.pools, pool_headline)
    rows.sort(key=lambda row: (row[0].name not in helped, row[0].distance))
    for number, row in enumerate(rows):
        mark = "?" if row[0].certainty is LaunchCertainty.UNKNOWN else "✗"
        yield DeciderRow(
            text=f"{names_of(row, 'NodePool')} {mark} {pool_headline(row[0])}",
            facts=tuple(pool_facts(row[0])),
            is_brief=number > 0 or not isinstance(row[0].rejection, NoInstanceType),
        )
    for pool in karpenter.skipped:
        yield DeciderRow(text=f"{pool.pool.name} ✗ {skipped_pool_text(pool, karpenter)}")


# The screen of a catalog of instance types.

_HEAD = ("NAME", "CAPACITY", "ALLOCATABLE", "OFFERED IN")


def catalogue_lines(catalogue: InstanceTypes) -> list[StyledLine]:
    rows = [_HEAD, *map(_row, catalogue.instance_types)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    lines = [
        "   ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])) for row in rows
    ]
    return [text(line.rstrip()) for line in lines]


def _row(written_type: WrittenType) -> tuple[str, str, str, str]:
    capacity = amounts_of(written_type.capacity)
    left = subtracted(capacity, amounts_of(written_type.overhead))
    zones = sorted({offering.zone for offering in written_type.offerings if offering.available})
    where = count(len(zones), "zone") if written_type.offerings else "every zone of its NodePool"
    return written_type.name, resources_text(capacity), resources_text(left), where
