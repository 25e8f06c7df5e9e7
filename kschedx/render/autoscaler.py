"""The block `autoscaler` of `kschedx why`: what cluster-autoscaler does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.text import Text

from kschedx.autoscaler.cluster import GroupVerdict
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.sizes import is_same_autoscaler_event, not_triggered
from kschedx.findings import InsufficientResource, TooManyPods
from kschedx.inquiry.explanation import Explanation
from kschedx.render.terminal import BLANK, DIM, SEPARATOR, fact_lines, labelled, paragraph, text
from kschedx.render.view import Decider, Fix, Row
from kschedx.render.wording import Fact, count, listed
from kschedx.render.words import describe
from kschedx.render.words.autoscaler import (
    MOST_NAMES,
    autoscaler_basis,
    autoscaler_sentence,
    group_headline,
    node_group_growth_text,
    on_a_new_node,
    remedy_text,
    template_label_text,
)
from kschedx.snapshot.events import ScaleUpEvent

if TYPE_CHECKING:
    from kschedx.autoscaler.growth import AutoscalerGrowth
    from kschedx.karpenter.growth import KarpenterGrowth as Provisioned


def autoscaler_decider(explanation: Explanation) -> Decider | None:
    """Return what cluster-autoscaler does; None if there is none, or if the pod fits a node."""
    autoscaler, scaling = explanation.autoscaler, explanation.scaling
    if autoscaler is None or scaling is None:
        return None
    considered = scaling.choice is None and scaling.pod.outcome is PodOutcome.CONSIDERED
    rows = _rows(scaling.groups) if considered else ()
    event = scaling.choice.event if scaling.choice else ""
    if not event and scaling.pod.remains and scaling.pod.is_told:
        event = not_triggered(scaling.pod.parts)
    said = explanation.cycle.snapshot.autoscaler_events.get(explanation.cycle.pod.key)
    return Decider(
        name="autoscaler",
        sentence=as_it_runs(explanation, autoscaler_sentence(autoscaler, scaling)),
        rows=(
            *(Row(text=one) for one in (template_label_text(autoscaler, scaling, explanation.cycle.pod),) if one),
            *(Row(text=_row_text(row), facts=tuple(_facts(row)), is_brief=n > 0) for n, row in enumerate(rows)),
        ),
        event=event,
        recorded=_recorded(said, event),
        fixes=tuple(_fixes(explanation)),
        basis=tuple(autoscaler_basis(autoscaler)),
    )


def as_it_runs(explanation: Explanation, sentence: str) -> str:
    """Return what an autoscaler does, and that it does not run if none of its pods runs."""
    if (down := explanation.autoscaler_down) is None:
        return sentence
    return f"does not run: {' '.join(filter(None, (down.pods[0], down.state or 'is not ready')))}; otherwise {sentence}"


def _recorded(said: ScaleUpEvent | None, event: str) -> str:
    if said is None:
        return ""
    if is_same_autoscaler_event(said.message, event):
        return "the recorded event is the same"
    return f"{said.message}  (recorded at another time, or with other flags)"


def _fixes(explanation: Explanation) -> Iterator[Fix]:
    told = tuple(fix.title for fix in explanation.fixes)
    for remedy in explanation.scaling_remedies:
        title, _, seen = remedy_text(remedy).partition(SEPARATOR)
        if not any(one.startswith(title) for one in told):
            yield Fix(title=title, seen=seen)


MOST_ROWS = 5
"""Rows of a decider on the first screen."""
_SAME = "the recorded event is the same"


def decider_lines(decider: Decider, width: int, limit: int | None = MOST_ROWS) -> list[Text]:
    """Return the sentence, why each node group or NodePool does not help, the event, and what makes it help."""
    lines = paragraph(decider.sentence, width, first=decider.name.ljust(12))
    for row in decider.rows[:limit]:
        lines += paragraph(row.text, width, first="  ", indent=6)
        for fact in () if row.is_brief and limit is not None else row.facts:
            lines += fact_lines(fact, width, 2)
    if limit is not None and len(decider.rows) > limit:
        lines.append(text(f"  {count(len(decider.rows) - limit, 'more reason')}: -o wide", DIM))
    if decider.event:
        lines += labelled("event", decider.event, width, exact=True)
    if decider.recorded:
        lines += labelled("" if decider.recorded == _SAME else "recorded", decider.recorded, width, exact=True)
    for number, fix in enumerate(decider.fixes):
        lines += labelled("" if number else "fix", fix.text, width, further=2)
    basis = decider.basis if limit is None else decider.basis[:1]
    return [*lines, *(line for phrase in basis for line in labelled("by", phrase, width))]


class _Row(Struct, frozen=True, kw_only=True):
    """Groups with the same text."""

    groups: tuple[GroupVerdict, ...]
    told: str
    nearness: tuple[float, ...]


def _rows(groups: Sequence[GroupVerdict]) -> list[_Row]:
    """Return the rows, nearest first: groups that the pod fits, then those with the fewest rejections."""
    together: dict[str, list[GroupVerdict]] = {}
    for group in groups:
        together.setdefault(group_headline(group), []).append(group)
    rows = [_Row(groups=tuple(some), told=phrase, nearness=_nearness(some[0])) for phrase, some in together.items()]
    return sorted(rows, key=lambda row: row.nearness)


def _nearness(group: GroupVerdict) -> tuple[float, ...]:
    away = sum(finding.distance for status in group.rejections for finding in status.findings)
    return (group.template is None, len(group.rejections), away, bool(group.skipped))


def _row_text(row: _Row) -> str:
    names = listed([group.name for group in row.groups], MOST_NAMES)
    many = f" ({count(len(row.groups), 'group')})" if len(row.groups) > 1 else ""
    return f"{names}{many} {row.told}"


def _facts(row: _Row) -> Iterator[Fact]:
    """Yield the numbers behind the first rejection, and what runs on a new node from the start."""
    group = row.groups[0]
    if not group.rejections or group.template is None:
        return
    findings = group.rejections[0].findings
    for finding in findings[:1]:
        yield from describe(finding).facts[:2]
    if any(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings):
        yield Fact(label="new node", items=tuple(on_a_new_node(group.template)))
    if group.rejections[0].plugin == "NodeUnschedulable" and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        text = f"{model} is cordoned, so cluster-autoscaler treats a new node as cordoned"
        yield Fact(label="model", items=(text,))


# What cluster-autoscaler and Karpenter add for all pending pods.


def growth_texts(growth: AutoscalerGrowth | None, provisioned: Provisioned | None) -> Iterator[str]:
    """Yield a sentence for each of the two that is present."""
    if growth is not None:
        yield node_group_growth_text(growth)
    if provisioned is not None:
        from kschedx.render.words.karpenter import node_claim_growth_text as provisioned_text

        yield provisioned_text(provisioned)


def growth_lines(growth: AutoscalerGrowth | None, provisioned: Provisioned | None, width: int) -> list[Text]:
    return [line for phrase in growth_texts(growth, provisioned) for line in (*paragraph(phrase, width), BLANK)]
