"""The block `autoscaler` of `kschedx why`: what cluster-autoscaler does about a pod that fits no node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.autoscaler.cluster import GroupVerdict
from kschedx.autoscaler.node_groups import group_title
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.run import AutoscalerGrowth
from kschedx.autoscaler.sizes import is_same_autoscaler_event, not_triggered
from kschedx.findings import InsufficientResource, NodeUnschedulable, TooManyPods
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.group_scaling import GroupScaling
from kschedx.inquiry.node_scaling import NodeRemedy, StepKind
from kschedx.render.terminal import DIM, StyledLine, fact_lines, labelled, paragraph, text
from kschedx.render.view import Decider, DeciderRow, Fix
from kschedx.render.wording import Fact, count
from kschedx.render.words import describe
from kschedx.render.words.autoscaler import (
    alike,
    autoscaler_basis,
    autoscaler_sentence,
    group_headline,
    names_of,
    node_group_growth_text,
    on_a_new_node,
    undeclared,
)
from kschedx.snapshot.events import RecordedEvent

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth, NodeScaling


def decider_of(scaling: NodeScaling, explanation: Explanation) -> Decider:
    """Return what an autoscaler does about the pod, and that it does not run if none of its pods runs."""
    if isinstance(scaling, GroupScaling):
        decider = _group_decider(scaling, explanation)
        seen = _seen
    else:
        from kschedx.render.karpenter import pool_decider, seen

        decider = pool_decider(scaling, explanation)
    titles = tuple(fix.title for fix in explanation.fixes)
    remedies = (
        remedy for remedy in scaling.remedies if not any(title.startswith(remedy.step.title) for title in titles)
    )
    sentence = decider.sentence
    if (down := explanation.autoscaler_down) is not None:
        sentence = f"does not run: {down.shown}; otherwise {sentence}"
    fixes = tuple(Fix(title=remedy.step.title, seen=seen(remedy)) for remedy in remedies)
    return replace(decider, sentence=sentence, fixes=fixes)


def _seen(remedy: NodeRemedy) -> str:
    """Return the result of trying it."""
    where = "it" if remedy.step.kind is StepKind.NEW_GROUP else group_title(remedy.place)
    return f"adds {count(remedy.nodes, 'node')} to {where}" if remedy.nodes else f"the pod fits {where} and is next"


def _group_decider(of_groups: GroupScaling, explanation: Explanation) -> Decider:
    autoscaler, scaling = of_groups.autoscaler, of_groups.decision
    considered = scaling.choice is None and scaling.pod.outcome is PodOutcome.CONSIDERED
    rows = sorted(alike(scaling.groups, group_headline), key=lambda row: _nearness(row[0])) if considered else ()
    event = scaling.choice.event if scaling.choice else ""
    if not event and scaling.pod.remains and scaling.pod.is_told and not autoscaler.open_groups(scaling):
        event = not_triggered(scaling.pod.parts)
    said = explanation.cycle.snapshot.autoscaler_events.get(explanation.cycle.pod.key)
    lacking = undeclared(autoscaler, scaling, explanation.cycle.pod)
    reads = "" if lacking is None else f"{lacking.group} has no node from which to read {lacking.need}"
    sentence = autoscaler_sentence(autoscaler, scaling)
    return Decider(
        name="autoscaler",
        sentence=sentence,
        rows=(
            *((DeciderRow(text=reads),) if reads else ()),
            *(_row(row, is_brief=number > 0) for number, row in enumerate(rows)),
        ),
        event=event,
        recorded=_recorded(said, event),
        reports=(said.message,) if said is not None and sentence.startswith("is undecided") else (),
        basis=tuple(autoscaler_basis(autoscaler)),
    )


def _row(groups: Sequence[GroupVerdict], *, is_brief: bool) -> DeciderRow:
    text = f"{names_of(groups, 'group')} {group_headline(groups[0])}"
    return DeciderRow(text=text, facts=tuple(_facts(groups[0])), is_brief=is_brief)


def _recorded(said: RecordedEvent | None, event: str) -> str:
    if said is None:
        return ""
    if is_same_autoscaler_event(said.message, event):
        return "the recorded event is the same"
    return f"{said.message}  (recorded at another time, or with other flags)"


MOST_ROWS = 5
"""Rows of a decider on the first screen."""
_SAME = "the recorded event is the same"


def decider_lines(decider: Decider, width: int, limit: int | None = MOST_ROWS) -> list[StyledLine]:
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


def _nearness(group: GroupVerdict) -> tuple[float, ...]:
    """Return the order of rows: groups that the pod fits, then those with the fewest rejections."""
    away = sum(finding.distance for status in group.rejections for finding in status.findings)
    return (group.template is None, len(group.rejections), away, bool(group.skipped))


def _facts(group: GroupVerdict) -> Iterator[Fact]:
    """Yield the numbers behind the first rejection, and what runs on a new node from the start."""
    if not group.rejections or group.template is None:
        return
    findings = group.rejections[0].findings
    for finding in findings[:1]:
        yield from describe(finding).facts[:2]
    if any(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings):
        yield Fact(label="new node", items=tuple(on_a_new_node(group.template)))
    if any(isinstance(finding, NodeUnschedulable) for finding in findings) and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        text = f"{model} is cordoned, so cluster-autoscaler treats a new node as cordoned"
        yield Fact(label="model", items=(text,))


# What cluster-autoscaler and Karpenter add for all pending pods.


def growth_text(growth: Growth) -> str:
    if isinstance(growth, AutoscalerGrowth):
        return node_group_growth_text(growth)
    from kschedx.render.words.karpenter import node_claim_growth_text

    return node_claim_growth_text(growth)
