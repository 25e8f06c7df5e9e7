"""cluster-autoscaler's decision about a pod that fits no node, and what it adds for all pending pods, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.node_groups import group_title
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.run import AutoscalerGrowth
from kschedx.autoscaler.sizes import BACKED_OFF, NOT_READY, Resize, is_same_autoscaler_event, not_triggered_text
from kschedx.autoscaler.state import GroupChoice, LoopOutcome, LoopResult, PodResult
from kschedx.autoscaler.templates import Template
from kschedx.findings import InsufficientResource, NodeUnschedulable, TooManyPods
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.group_scaling import GroupScaling, undeclared_need
from kschedx.inquiry.node_scaling import NodeRemedy, StepKind
from kschedx.render.terminal import DIM, StyledLine, fact_lines, labelled_lines, paragraph, text
from kschedx.render.view import Decider, DeciderRow, FixView
from kschedx.snapshot.events import RecordedEvent
from kschedx.wording import Fact, amount, count, list_names
from kschedx.words import describe, headline
from kschedx.words.node_groups import (
    MOST_NAMES,
    SAME,
    group_by_headline,
    most_frequent_text,
    names_of,
    reasons_by_name,
)

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth, NodeScaling

_UNKNOWN_TEMPLATE = "its template is not in the cluster"


def _sentence(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    """Return the pod's outcome."""
    pod, flags = scaling.pod, autoscaler.flags
    match pod.outcome:
        case PodOutcome.CONSIDERED:
            return _summary(autoscaler, scaling)
        case PodOutcome.EXPENDABLE:
            row = autoscaler.snapshot.pods
            priority = int(row.priorities[pod.row]) if pod.row < len(row) else 0
            cutoff = flags.expendable_pods_priority_cutoff
            return f"ignores the pod: priority {priority} is below --expendable-pods-priority-cutoff={cutoff}"
        case PodOutcome.SCHEDULABLE:
            coming = ", a node that is starting" if pod.is_on_upcoming else ""
            return f"adds no node: by its own simulation the pod fits {pod.node}{coming}"
        case PodOutcome.DAEMON_SET:
            return "adds no node: a DaemonSet pod is bound to its own node"
        case PodOutcome.TOO_YOUNG:
            return "waits: the pod is younger than the scale-up delay"
        case PodOutcome.ALL_NEW:
            return "waits: all pending pods are new, more may follow"
        case PodOutcome.NOT_MARKED:
            return "ignores the pod: kube-scheduler has not set the condition Unschedulable"
        case PodOutcome.NOMINATED:
            return "adds no node: the pod has a nominated node"
        case PodOutcome.DELETING:
            return "adds no node: the pod is being deleted"
        case PodOutcome.NOT_LOOKED_AT if scaling.result is LoopOutcome.NOT_TRIED:
            return "adds no nodes: too many nodes are not ready"
        case PodOutcome.NOT_LOOKED_AT if flags.allowed_schedulers:
            allowed = list_names(flags.allowed_schedulers, MOST_NAMES)
            return f"ignores the pod: its scheduler is not in --allowed-scheduler-names={allowed}"
        case PodOutcome.NOT_LOOKED_AT:
            return "ignores all pods in this loop: one is nominated for a node that has not started"
        case _:
            assert_never(pod.outcome)


def _summary(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    if scaling.choice is not None:
        return _adds(scaling.choice, scaling.alternatives)
    if scaling.result is LoopOutcome.AT_MAX_NODES_TOTAL:
        return f"adds no node: the cluster is at --max-nodes-total={autoscaler.flags.max_nodes_total}"
    if scaling.result is LoopOutcome.ERROR:
        unknown = [group.name for group in scaling.groups if group.template is None and group.target]
        if unknown:
            return f"is undecided: the nodes of node group {list_names(unknown, MOST_NAMES)} are not known"
        return f"fails: {scaling.error}"
    fitting = [group.name for group in scaling.groups if group.fits and not group.skipped]
    if fitting and scaling.is_waiting:
        return f"adds nodes for other pods first; this pod fits {list_names(fitting, MOST_NAMES)} and is next"
    if fitting:
        text = f"the pod fits {list_names(fitting, MOST_NAMES)}, but the cluster-wide limits permit no node"
        return f"adds no node and sends no event: {text}"
    if not scaling.groups:
        return "has no node groups"
    number = len(scaling.groups)
    if open_groups := autoscaler.open_groups(scaling):
        groups = f"{'groups' if len(open_groups) > 1 else 'group'} {list_names(open_groups, MOST_NAMES)}"
        others = "; no other group helps" if number > len(open_groups) else ""
        return f"may add a node of {groups}, whose template is not in the cluster{others}"
    helps = "its only node group does not help" if number == 1 else f"none of {number} node groups helps"
    return f"adds no node: {helps}"


def _adds(choice: GroupChoice, alternatives: Sequence[str]) -> str:
    if choice.error:
        return f"fails: {choice.error}"
    if not choice.resizes:
        return f"selects {group_title(choice.option.group)} but adds no node: the cluster-wide limits permit none"
    text = ", ".join(_resize(resize) for resize in choice.resizes)
    others = [name for name in alternatives if name != choice.option.group]
    chance = f"; or to {list_names(others, MOST_NAMES, conjunction='or')} with equal score" if others else ""
    return f"adds {text}{chance}"


def _resize(resize: Resize) -> str:
    sizes = f"{resize.before} → {resize.after}, maximum {resize.maximum}"
    return f"{count(resize.after - resize.before, 'node')} to {group_title(resize.group)}: {sizes}"


def _group_headline(group: GroupVerdict) -> str:
    """Return why a group does not help, or that it would."""
    return "; ".join(_clauses(group))


def _clauses(group: GroupVerdict) -> Iterator[str]:
    if group.skipped and not (group.is_unknown and group.skipped == (NOT_READY,)):
        sizes = f": {group.target} of {group.max_size} nodes" if group.target >= group.max_size else ""
        detail = f" ({group.detail})" if group.detail else ""
        yield f"✗ {', '.join(group.skipped)}{sizes}{detail}"
        if group.fits:
            yield "the pod would fit"
    elif group.detail:
        yield f"✗ {BACKED_OFF} ({group.detail})"
    if group.template is None:
        yield f"{_UNKNOWN_TEMPLATE} (give it with --node-groups FILE)"
    for status in group.rejections:
        phrases = [headline(finding) for finding in status.findings] or list(status.reasons) or ["rejects it"]
        yield f"✗ {status.plugin}: {', '.join(phrases)}"


def _new_node_facts(template: Template) -> Iterator[str]:
    """Yield the allocatable resources of a new node, and the requests of its first pods, mostly of DaemonSets."""
    offered = ", ".join(
        f"{written} {name}" for name, written in template.node.status.allocatable.items() if name in ("cpu", "memory")
    )
    yield f"{offered} allocatable"
    if template.pods:
        requested = ", ".join(
            (amount("cpu", template.milli_cpu) + " cpu", amount("memory", template.memory) + " memory")
        )
        names = [
            pod.metadata.controller.name if pod.metadata.controller else pod.metadata.name for pod in template.pods
        ]
        yield f"{requested} requested by {list_names(names, MOST_NAMES)}"


def _basis(autoscaler: Autoscaler) -> Iterator[str]:
    """Yield what the answer is based on, as far as it was inferred."""
    phrases: list[str] = []
    by = autoscaler.membership.told_by
    if by:
        phrases.append(f"node groups by {list_names(by, 2)}")
    elif any(node for node in autoscaler.snapshot.cluster.nodes):
        phrases.append("no node has a known node group (--node-group-label KEY)")
    if not autoscaler.flags_are_known:
        phrases.append("default flags (--autoscaler-flag)")
    if autoscaler.status.unknown:
        phrases.append(f"its status has unknown values {list_names(autoscaler.status.unknown, 3)}")
    if autoscaler.config_not_here:
        phrases.append(
            f"default scheduler profile: its own file {autoscaler.config_not_here} is missing "
            "(--autoscaler-flag scheduler-config-file=FILE)"
        )
    if autoscaler.membership.ambiguous:
        phrases.append(f"{count(len(autoscaler.membership.ambiguous), 'node')} may belong to several node groups")
    if not autoscaler.is_measured:
        phrases.append(f"rules of {autoscaler.release.version} are not tested")
    if phrases:
        yield " · ".join(phrases)


def _growth_text(growth: AutoscalerGrowth) -> str:
    """Return what the autoscaler adds for all pending pods, in a sentence."""
    left = Counter(pod.outcome for pod in growth.last.pods)
    remain = sum(pod.remains for pod in growth.last.pods)
    if growth.groups:
        sizes = ", ".join(map(_sizes, growth.groups))
        phrase = f"cluster-autoscaler adds {sizes} for {count(growth.helped, 'pod')}"
        if growth.loops > 1:
            phrase += f", in {count(growth.loops, 'loop')}"
        if growth.by_chance:
            phrase += "; other node groups have the same score, the choice is random"
    else:
        phrase = "cluster-autoscaler adds no node"
    clauses = [f"no node group helps {count(remain, 'pod')}"] if remain else []
    clauses += [
        f"{left[outcome]:,} {text}"
        for outcome, text in (
            (PodOutcome.EXPENDABLE, "ignored for low priority"),
            (PodOutcome.DAEMON_SET, "of DaemonSets, ignored"),
            (PodOutcome.NOT_MARKED, "not yet marked unschedulable"),
            (PodOutcome.NOT_LOOKED_AT, "ignored"),
        )
        if left[outcome]
    ]
    if growth.last.error:
        clauses.append(f"then it fails: {growth.last.error}")
    return f"{phrase}; {', '.join(clauses)}{_refusals(growth.last)}" if clauses else phrase


def _refusals(answer: LoopResult) -> str:
    """Return the most common reason of the groups for pods that none helps: `. spot: in backoff after failed
    scale-up`."""
    refused = Counter(_refusal(answer, pod) for pod in answer.pods if pod.remains)
    if not refused:
        return ""
    phrase, number = refused.most_common(1)[0]
    return most_frequent_text(phrase, None if len(refused) == 1 else number)


def _refusal(answer: LoopResult, pod: PodResult) -> str:
    said: dict[str, list[str]] = {}
    for group in answer.groups:
        verdict = pod.verdicts.get(group.group.name)
        skipped = (_UNKNOWN_TEMPLATE,) if group.is_unknown and group.skipped == (NOT_READY,) else group.skipped
        for reason in skipped or (verdict.reasons if verdict is not None else ()):
            said.setdefault(reason, []).append(group.group.name)
    if not said:
        return ", ".join(part.partition(" ")[2] if part[:1].isdigit() else part for part in pod.parts)
    return reasons_by_name((groups, reason) for reason, groups in said.items())


def _sizes(step: Resize) -> str:
    more = count(step.after - step.before, "node")
    return f"{more} to {group_title(step.group)} ({step.before} → {step.after}, maximum {step.maximum})"


def decider_of(scaling: NodeScaling, explanation: Explanation) -> Decider:
    """Return what an autoscaler does about the pod, and that it does not run if none of its pods runs."""
    if isinstance(scaling, GroupScaling):
        decider = _group_decider(scaling, explanation)
        seen = _trial_result
    else:
        from kschedx.render.karpenter import pool_decider, seen

        decider = pool_decider(scaling, explanation)
    titles = tuple(fix.title for fix in explanation.fixes)
    remedies = (
        remedy for remedy in scaling.remedies if not any(title.startswith(remedy.step.title) for title in titles)
    )
    sentence = decider.sentence
    if (down := explanation.add_on_down) is not None:
        sentence = f"does not run: {down.shown}; otherwise {sentence}"
    fixes = tuple(FixView(title=remedy.step.title, seen=seen(remedy)) for remedy in remedies)
    return replace(decider, sentence=sentence, fixes=fixes)


def _trial_result(remedy: NodeRemedy) -> str:
    where = "it" if remedy.step.kind is StepKind.NEW_GROUP else group_title(remedy.place)
    return f"adds {count(remedy.nodes, 'node')} to {where}" if remedy.nodes else f"the pod fits {where} and is next"


def _group_decider(of_groups: GroupScaling, explanation: Explanation) -> Decider:
    autoscaler, scaling = of_groups.autoscaler, of_groups.decision
    considered = scaling.choice is None and scaling.pod.outcome is PodOutcome.CONSIDERED
    rows = (
        sorted(
            group_by_headline(filter(_group_headline, scaling.groups), _group_headline),
            key=lambda row: _nearness(row[0]),
        )
        if considered
        else ()
    )
    event = scaling.choice.event if scaling.choice else ""
    if not event and scaling.pod.remains and scaling.pod.is_told and not autoscaler.open_groups(scaling):
        event = not_triggered_text(scaling.pod.parts)
    said = explanation.cycle.snapshot.autoscaler_events.get(explanation.cycle.pod.key)
    lacking = undeclared_need(autoscaler, scaling, explanation.cycle.pod)
    reads = "" if lacking is None else f"{lacking.group} has no node from which to read {lacking.need}"
    sentence = _sentence(autoscaler, scaling)
    return Decider(
        name="autoscaler",
        sentence=sentence,
        rows=(
            *((DeciderRow(text=reads),) if reads else ()),
            *(_row(row, is_brief=number > 0) for number, row in enumerate(rows)),
        ),
        event=event,
        recorded=_recorded_text(said, event),
        reports=(said.message,) if said is not None and sentence.startswith("is undecided") else (),
        basis=tuple(_basis(autoscaler)),
    )


def _row(groups: Sequence[GroupVerdict], *, is_brief: bool) -> DeciderRow:
    text = f"{names_of(groups, 'group')} {_group_headline(groups[0])}"
    return DeciderRow(text=text, facts=tuple(_facts(groups[0])), is_brief=is_brief)


def _recorded_text(said: RecordedEvent | None, event: str) -> str:
    if said is None:
        return ""
    is_same = is_same_autoscaler_event(said.message, event)
    return SAME if is_same else f"{said.message}  (recorded at another time, or with other flags)"


MOST_ROWS = 5
"""Rows of a decider on the first screen."""


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
        lines += labelled_lines("event", decider.event, width, exact=True)
    if decider.recorded:
        lines += labelled_lines("" if decider.recorded == SAME else "recorded", decider.recorded, width, exact=True)
    for number, fix in enumerate(decider.fixes):
        lines += labelled_lines("" if number else "fix", fix.text, width, further=2)
    basis = decider.basis if limit is None else decider.basis[:1]
    return [*lines, *(line for phrase in basis for line in labelled_lines("by", phrase, width))]


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
        yield Fact(label="new node", items=tuple(_new_node_facts(group.template)))
    if any(isinstance(finding, NodeUnschedulable) for finding in findings) and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        text = f"{model} is cordoned, so cluster-autoscaler treats a new node as cordoned"
        yield Fact(label="model", items=(text,))


# What cluster-autoscaler and Karpenter add for all pending pods.


def growth_text(growth: Growth) -> str:
    if isinstance(growth, AutoscalerGrowth):
        return _growth_text(growth)
    from kschedx.render.karpenter import node_claim_growth_text

    return node_claim_growth_text(growth)
