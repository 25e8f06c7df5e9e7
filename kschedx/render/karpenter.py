"""The block `karpenter` of `kschedx why`: what Karpenter does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct
from rich.text import Text

from kschedx.inquiry.explanation import Explanation
from kschedx.karpenter.amounts import amounts_of, subtracted
from kschedx.karpenter.catalogue import InstanceTypes, WrittenType
from kschedx.karpenter.cluster import Karpenter, LaunchCertainty, PodProvisioning, PoolVerdict
from kschedx.karpenter.instance_types import NoInstanceType
from kschedx.karpenter.pods import PodEligibility
from kschedx.karpenter.rejections import is_same_karpenter_event
from kschedx.releases.karpenter import karpenter_title
from kschedx.render.autoscaler import as_it_runs
from kschedx.render.terminal import text
from kschedx.render.view import Decider, Fix, Row
from kschedx.render.wording import count, listed
from kschedx.render.words.karpenter import (
    MOST_NAMES,
    karpenter_basis,
    karpenter_sentence,
    pool_facts,
    pool_headline,
    resources_text,
    skipped_pool_text,
)


def karpenter_decider(explanation: Explanation) -> Decider | None:
    """Return what Karpenter does; None if there is none, or if the pod fits a node."""
    karpenter, provisioning = explanation.karpenter, explanation.provisioning
    if karpenter is None or provisioning is None:
        return None
    said = explanation.cycle.snapshot.karpenter_events.get(explanation.cycle.pod.key)
    told = tuple(fix.title for fix in explanation.fixes)
    return Decider(
        name="karpenter",
        sentence=as_it_runs(explanation, karpenter_sentence(karpenter, provisioning)),
        rows=tuple(_pools(explanation, karpenter, provisioning)),
        event=provisioning.event,
        recorded="" if said is None else _recorded(said.message, provisioning.event),
        fixes=tuple(
            Fix(
                title=remedy.step.title,
                seen=f"adds a node of {remedy.pool}, {listed(remedy.types, MOST_NAMES) or 'if a type fits'}",
            )
            for remedy in explanation.provisioning_remedies
            if not any(one.startswith(remedy.step.title) for one in told)
        ),
        basis=(karpenter_basis(karpenter), f"rules of Karpenter {karpenter_title(karpenter.settings.followed)}"),
    )


def _recorded(said: str, event: str) -> str:
    if event and is_same_karpenter_event(said, event):
        return "the recorded event is the same"
    return f"{said}  (recorded at another time, or with other types and settings)" if event else said


class _Row(Struct, frozen=True, kw_only=True):
    """NodePools with the same text."""

    pools: tuple[PoolVerdict, ...]
    told: str


def _pools(explanation: Explanation, karpenter: Karpenter, provisioning: PodProvisioning) -> Iterator[Row]:
    if (
        provisioning.looked.outcome not in (PodEligibility.CONSIDERED, PodEligibility.NO_POOLS)
        or provisioning.pool
        or provisioning.existing
    ):
        return
    helped = {remedy.pool for remedy in explanation.provisioning_remedies}
    for number, row in enumerate(_rows(provisioning.pools, helped)):
        names = listed([pool.name for pool in row.pools], MOST_NAMES)
        many = f" ({count(len(row.pools), 'NodePool')})" if len(row.pools) > 1 else ""
        mark = "?" if row.pools[0].certainty is LaunchCertainty.UNKNOWN else "✗"
        yield Row(
            text=f"{names}{many} {mark} {row.told}",
            facts=tuple(pool_facts(row.pools[0])),
            is_brief=number > 0 or not isinstance(row.pools[0].rejection, NoInstanceType),
        )
    for one in karpenter.skipped:
        yield Row(text=f"{one.pool.name} ✗ {skipped_pool_text(one, karpenter)}")


def _rows(pools: Sequence[PoolVerdict], helped: Container[str]) -> list[_Row]:
    """Return the rows: NodePools that a change makes help, then the nearest, otherwise in the order in which they are
    tried."""
    together: dict[str, list[PoolVerdict]] = {}
    for pool in pools:
        together.setdefault(pool_headline(pool), []).append(pool)
    rows = [_Row(pools=tuple(some), told=phrase) for phrase, some in together.items()]
    return sorted(rows, key=lambda row: (row.pools[0].name not in helped, row.pools[0].distance))


# The screen of a catalog of instance types.

_HEAD = ("NAME", "CAPACITY", "ALLOCATABLE", "OFFERED IN")


def catalogue_lines(catalogue: InstanceTypes) -> list[Text]:
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
