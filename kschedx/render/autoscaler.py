"""The block `autoscaler` of `kschedx why`: what cluster-autoscaler does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.text import Text

from kschedx.autoscaler.cluster import GroupVerdict, PodScaling
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.sizes import is_same_autoscaler_event, not_triggered
from kschedx.findings import InsufficientResource, TooManyPods
from kschedx.inquiry.explanation import Explanation
from kschedx.render import terminal
from kschedx.render.terminal import BLANK, DIM, fact_lines, labelled, paragraph, text
from kschedx.render.wording import Fact, count, listed
from kschedx.render.words import describe
from kschedx.render.words.autoscaler import (
    MOST_NAMES,
    autoscaler_basis,
    autoscaler_sentence,
    group_headline,
    on_a_new_node,
    remedy_text,
    template_label_text,
)

if TYPE_CHECKING:
    from kschedx.autoscaler.growth import AutoscalerGrowth
    from kschedx.karpenter.growth import KarpenterGrowth as Provisioned

MOST_GROUPS = 5
"""Lines of groups on the first screen."""


def autoscaler_block(explanation: Explanation, width: int, limit: int | None = MOST_GROUPS) -> list[Text]:
    """Nothing where there is no autoscaler, or the pod fits a node."""
    autoscaler, scaling = explanation.autoscaler, explanation.scaling
    if autoscaler is None or scaling is None:
        return []
    lines = paragraph(autoscaler_sentence(autoscaler, scaling), width, first="autoscaler  ")
    if scaling.choice is None and scaling.pod.outcome is PodOutcome.CONSIDERED:
        rows = _rows(scaling.groups)
        for number, row in enumerate(rows[:limit]):
            lines += paragraph(_row_text(row), width, first="  ", indent=6)
            if number == 0 or limit is None:
                lines += _facts(row, width)
        if limit is not None and len(rows) > limit:
            lines.append(text(f"  {count(len(rows) - limit, 'more reason')}: -o wide", DIM))
        if missing := template_label_text(autoscaler, scaling, explanation.cycle.pod):
            lines += labelled("labels", missing, width)
    lines += _event(explanation, scaling, width)
    for number, remedy in enumerate(explanation.scaling_remedies):
        lines += labelled("" if number else "fix", remedy_text(remedy), width, further=2)
    lines += [line for told in autoscaler_basis(autoscaler) for line in labelled("by", told, width)]
    return lines


class _Row(Struct, frozen=True, kw_only=True):
    """Groups of which the same is to be said."""

    groups: tuple[GroupVerdict, ...]
    told: str
    nearness: tuple[float, ...]


def _rows(groups: Sequence[GroupVerdict]) -> list[_Row]:
    """The nearest first: those that the pod fits, then those with the fewest reasons against it."""
    together: dict[str, list[GroupVerdict]] = {}
    for group in groups:
        together.setdefault(group_headline(group), []).append(group)
    rows = [_Row(groups=tuple(some), told=told, nearness=_nearness(some[0])) for told, some in together.items()]
    return sorted(rows, key=lambda row: row.nearness)


def _nearness(group: GroupVerdict) -> tuple[float, ...]:
    away = sum(finding.distance for status in group.rejections for finding in status.findings)
    return (group.template is None, len(group.rejections), away, bool(group.skipped))


def _row_text(row: _Row) -> str:
    names = listed([group.name for group in row.groups], MOST_NAMES)
    many = f" ({count(len(row.groups), 'group')})" if len(row.groups) > 1 else ""
    return f"{names}{many} {row.told}"


def _facts(row: _Row, width: int) -> list[Text]:
    """The numbers behind the first rejection, and what is on a new node from the start."""
    group = row.groups[0]
    if not group.rejections or group.template is None:
        return []
    lines: list[Text] = []
    findings = group.rejections[0].findings
    for finding in findings[:1]:
        for fact in describe(finding).facts[:2]:
            lines += fact_lines(fact, width, 2)
    if any(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings):
        lines += fact_lines(Fact(label="new node", items=tuple(on_a_new_node(group.template))), width, 2)
    if group.rejections[0].plugin == "NodeUnschedulable" and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        lines += fact_lines(
            Fact(label="model", items=(f"{model} is cordoned, so cluster-autoscaler treats a new node as cordoned",)),
            width,
        )
    return lines


def _event(explanation: Explanation, scaling: PodScaling, width: int) -> list[Text]:
    """The event's text, and what the cluster's autoscaler said last."""
    ours = scaling.choice.event if scaling.choice else ""
    if not ours and scaling.pod.remains and scaling.pod.is_told:
        ours = not_triggered(scaling.pod.parts)
    lines = labelled("event", ours, width) if ours else []
    key = explanation.cycle.pod.key
    said = explanation.cycle.snapshot.autoscaler_events.get(key)
    if said is None:
        return lines
    if is_same_autoscaler_event(said.message, ours):
        return [*lines, *labelled("", "the recorded event is the same", width)]
    return [*lines, *labelled("recorded", f"{said.message}  (recorded at another time, or with other flags)", width)]


# What cluster-autoscaler and Karpenter add for all pods that wait.


def growth_texts(growth: AutoscalerGrowth | None, provisioned: Provisioned | None) -> Iterator[str]:
    """A sentence for each that is there."""
    if growth is not None:
        from kschedx.render.words.autoscaler import node_group_growth_text

        yield node_group_growth_text(growth)
    if provisioned is not None:
        from kschedx.render.words.karpenter import node_claim_growth_text as provisioned_text

        yield provisioned_text(provisioned)


def print_growth(growth: AutoscalerGrowth | None, provisioned: Provisioned | None) -> None:
    out = terminal.console()
    for told in growth_texts(growth, provisioned):
        terminal.write([*paragraph(told, out.width), BLANK], out)
