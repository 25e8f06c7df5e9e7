"""The block `karpenter` of `kschedx why`: what Karpenter does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec import Struct
from rich.text import Text

from kschedx.inquiry.explanation import Explanation
from kschedx.karpenter.amounts import amounts_of, subtracted
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType
from kschedx.karpenter.cluster import Karpenter, LaunchCertainty, PodProvisioning, PoolVerdict
from kschedx.karpenter.growth import FOLLOWS
from kschedx.karpenter.instance_types import NoInstanceType
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import is_same_karpenter_event
from kschedx.render import terminal
from kschedx.render.terminal import DIM, fact_lines, labelled, paragraph, text
from kschedx.render.wording import count, listed
from kschedx.render.words.karpenter import (
    MOST_NAMES,
    karpenter_basis,
    karpenter_sentence,
    pool_facts,
    pool_headline,
    pool_remedy_title,
    resources_text,
    skipped_pool_text,
)

MOST_POOLS = 5
"""Lines of pools on the first screen."""


def karpenter_block(explanation: Explanation, width: int, limit: int | None = MOST_POOLS) -> list[Text]:
    """Nothing where there is no Karpenter, or the pod fits a node."""
    karpenter, found = explanation.karpenter, explanation.provisioning
    if karpenter is None or found is None:
        return []
    lines = paragraph(karpenter_sentence(karpenter, found), width, first="karpenter   ")
    lines += _pools(explanation, karpenter, found, width, limit)
    lines += _event(explanation, found, width)
    for number, remedy in enumerate(explanation.provisioning_remedies):
        types = listed(remedy.types, MOST_NAMES)
        told = f"{pool_remedy_title(remedy.step)} · adds a node of {remedy.pool}, {types}"
        lines += labelled("" if number else "fix", told, width, further=2)
    rules = f"rules of Karpenter {FOLLOWS} · " if limit is None else ""
    return [*lines, *labelled("by", rules + karpenter_basis(karpenter), width)]


class _Row(Struct, frozen=True, kw_only=True):
    """Pools of which the same is to be said."""

    pools: tuple[PoolVerdict, ...]
    told: str


def _pools(
    explanation: Explanation, karpenter: Karpenter, found: PodProvisioning, width: int, limit: int | None
) -> list[Text]:
    if found.looked.outcome not in (PodEligibility.CONSIDERED, PodEligibility.NO_POOLS) or found.pool or found.existing:
        return []
    lines: list[Text] = []
    helped = {remedy.pool for remedy in explanation.provisioning_remedies}
    rows = _rows(found.pools, helped)
    for number, row in enumerate(rows[:limit]):
        names = listed([pool.name for pool in row.pools], MOST_NAMES)
        many = f" ({count(len(row.pools), 'NodePool')})" if len(row.pools) > 1 else ""
        mark = "?" if row.pools[0].certainty is LaunchCertainty.UNKNOWN else "✗"
        lines += paragraph(f"{names}{many} {mark} {row.told}", width, first="  ", indent=6)
        if limit is None or (number == 0 and isinstance(row.pools[0].rejection, NoInstanceType)):
            for fact in pool_facts(row.pools[0]):
                lines += fact_lines(fact, width)
    if limit is not None and len(rows) > limit:
        lines.append(text(f"  {count(len(rows) - limit, 'more reason')}: -o wide", DIM))
    for one in karpenter.skipped if limit is None or not rows else karpenter.skipped[:1]:
        lines += paragraph(f"{one.pool.name} ✗ {skipped_pool_text(one, karpenter)}", width, first="  ", indent=6)
    return lines


def _rows(pools: Sequence[PoolVerdict], helped: Container[str]) -> list[_Row]:
    """Those first that a change makes help, then the nearest; otherwise in the order in which they are tried."""
    together: dict[str, list[PoolVerdict]] = {}
    for pool in pools:
        together.setdefault(pool_headline(pool), []).append(pool)
    rows = [_Row(pools=tuple(some), told=told) for told, some in together.items()]
    return sorted(rows, key=lambda row: (row.pools[0].name not in helped, row.pools[0].distance))


def _event(explanation: Explanation, found: PodProvisioning, width: int) -> list[Text]:
    """Karpenter's text, where all is known that it depends on, and what it said last."""
    lines = labelled("event", found.event, width) if found.event else []
    said = explanation.cycle.snapshot.karpenter_events.get(explanation.cycle.pod.key)
    if said is None:
        return lines
    if found.event and is_same_karpenter_event(said.message, found.event):
        return [*lines, *labelled("", "the recorded event is the same", width)]
    another = "  (another moment, or other types and settings)" if found.event else ""
    return [*lines, *labelled("said", f"{said.message}{another}", width)]


# A catalogue of instance types on a screen.

_HEAD = ("NAME", "CAPACITY", "ALLOCATABLE", "OFFERED IN")


def print_catalogue(catalogue: InstanceTypes) -> None:
    out = terminal.console()
    rows = [_HEAD, *map(_row, catalogue.instance_types)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    lines = [
        "   ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])) for row in rows
    ]
    terminal.write([text(line.rstrip()) for line in lines], out)


def _row(one: WrittenType) -> tuple[str, str, str, str]:
    capacity = amounts_of(one.capacity)
    left = subtracted(capacity, amounts_of(one.overhead))
    zones = sorted({offering.zone for offering in one.offerings if offering.available})
    where = count(len(zones), "zone") if one.offerings else "every zone of its NodePool"
    return one.name, resources_text(capacity), resources_text(left), where
