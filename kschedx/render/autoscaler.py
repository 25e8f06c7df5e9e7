"""The block `autoscaler` of `kschedx why`: what cluster-autoscaler does about a pod that fits no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from rich.text import Text

from kschedx.answer.explanation import Explanation
from kschedx.autoscaler.answers import Choice, Result
from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.events import not_triggered
from kschedx.autoscaler.growth import Grown, Growth
from kschedx.autoscaler.pods import Outcome
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.templates import Template
from kschedx.findings import InsufficientResource, TooManyPods
from kschedx.render import terminal
from kschedx.render.layout import BLANK, DIM, fact_lines, labelled, paragraph, text
from kschedx.render.units import amount, count, listed
from kschedx.render.wording import Fact
from kschedx.render.words import describe, headline
from kschedx.render.words.autoscaler import remedy_text

MOST_GROUPS = 5
"""Lines of groups on the first screen."""
MOST_NAMES = 3


def autoscaler_block(explanation: Explanation, width: int, limit: int | None = MOST_GROUPS) -> list[Text]:
    """Nothing where there is no autoscaler, or the pod fits a node."""
    autoscaler, scaling = explanation.autoscaler, explanation.scaling
    if autoscaler is None or scaling is None:
        return []
    lines = paragraph(_sentence(autoscaler, scaling), width, first="autoscaler  ")
    if scaling.choice is None and scaling.pod.outcome is Outcome.CONSIDERED:
        rows = _rows(scaling.groups)
        for number, row in enumerate(rows[:limit]):
            lines += paragraph(_row_text(row), width, first="  ", indent=6)
            if number == 0 or limit is None:
                lines += _facts(row, width)
        if limit is not None and len(rows) > limit:
            lines.append(text(f"  {count(len(rows) - limit, 'more reason')}: -o wide", DIM))
    lines += _event(explanation, scaling, width)
    for number, remedy in enumerate(explanation.scaling_remedies):
        lines += labelled("" if number else "fix", remedy_text(remedy), width, further=2)
    lines += [line for told in _basis(autoscaler) for line in labelled("by", told, width)]
    return lines


def growth_text(growth: Growth) -> str:
    """What the autoscaler adds for all pods that wait, in a sentence."""
    left = Counter(one.outcome for one in growth.last.pods)
    remain = sum(one.remains for one in growth.last.pods)
    if growth.groups:
        sizes = ", ".join(map(_sizes, growth.groups))
        told = f"cluster-autoscaler adds {sizes} for {count(growth.helped, 'pod')}"
        if growth.loops > 1:
            told += f", in {count(growth.loops, 'loop')}"
        if growth.by_chance:
            told += "; other groups would be as good, and chance decides"
    else:
        told = "cluster-autoscaler adds no node"
    clauses = [f"no group helps {count(remain, 'pod')}"] if remain else []
    clauses += [
        f"{left[outcome]} {text}"
        for outcome, text in (
            (Outcome.EXPENDABLE, "of too low a priority for it"),
            (Outcome.DAEMON_SET, "of DaemonSets, which it leaves alone"),
            (Outcome.NOT_MARKED, "not yet called unschedulable"),
            (Outcome.NOT_LOOKED_AT, "not looked at"),
        )
        if left[outcome]
    ]
    if growth.last.error:
        clauses.append(f"then it fails: {growth.last.error}")
    return f"{told}; {', '.join(clauses)}" if clauses else told


def _sizes(one: Grown) -> str:
    more = count(one.after - one.before, "node")
    return f"{more} to {one.group} ({one.before} → {one.after} of at most {one.maximum})"


def print_growth(growth: Growth) -> None:
    out = terminal.console()
    terminal.write([*paragraph(growth_text(growth), out.width), BLANK], out)


def _sentence(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    pod, flags = scaling.pod, autoscaler.flags
    match pod.outcome:
        case Outcome.CONSIDERED:
            return _considered(autoscaler, scaling)
        case Outcome.EXPENDABLE:
            row = autoscaler.snapshot.pods
            priority = int(row.priorities[pod.row]) if pod.row < len(row) else 0
            cutoff = flags.expendable_pods_priority_cutoff
            return f"does not look at it: priority {priority} is below --expendable-pods-priority-cutoff={cutoff}"
        case Outcome.SCHEDULABLE:
            coming = ", a node that is about to come" if pod.is_on_upcoming else ""
            return f"does nothing: in its eyes the pod fits {pod.node}{coming}"
        case Outcome.DAEMON_SET:
            return "does nothing: a pod of a DaemonSet needs its own node, and a new one would be no help"
        case Outcome.TOO_YOUNG:
            return "waits: the pod is younger than its scale-up delay"
        case Outcome.ALL_NEW:
            return "waits: the pods are so new that others may follow"
        case Outcome.NOT_MARKED:
            return "does not see it: kube-scheduler has not called the pod unschedulable"
        case Outcome.NOMINATED:
            return "does nothing: the pod is nominated for a node, where others are about to go"
        case Outcome.DELETING:
            return "does nothing: the pod is being deleted"
        case Outcome.NOT_LOOKED_AT if scaling.result is not Result.NOT_TRIED:
            allowed = listed(flags.allowed_schedulers, MOST_NAMES)
            return f"does not look at it: --allowed-scheduler-names={allowed} leaves its scheduler out"
        case Outcome.NOT_LOOKED_AT:
            return "looks at no pod: too many nodes are not ready"
        case _:
            assert_never(pod.outcome)


def _considered(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    if scaling.choice is not None:
        return _adds(scaling.choice, scaling.alternatives)
    if scaling.result is Result.AT_MAX_NODES_TOTAL:
        return f"adds nothing: the cluster is at --max-nodes-total={autoscaler.flags.max_nodes_total}"
    if scaling.result is Result.ERROR:
        return f"fails: {scaling.error}"
    fitting = [group.name for group in scaling.groups if group.fits and not group.skipped]
    if fitting and scaling.is_waiting:
        return f"adds nodes for other pods first; this one fits {listed(fitting, MOST_NAMES)} and is next"
    if fitting:
        told = f"the pod fits {listed(fitting, MOST_NAMES)}, and the limits leave no room for a node"
        return f"adds nothing, and sends no event: {told}"
    if not scaling.groups:
        return "has no groups"
    one = len(scaling.groups) == 1
    return f"adds nothing: {'its only group does not help' if one else f'none of {len(scaling.groups)} groups helps'}"


def _adds(choice: Choice, alternatives: Sequence[str]) -> str:
    if choice.error:
        return f"fails: {choice.error}"
    if not choice.resizes:
        return f"takes {choice.option.group} and adds nothing: the limits leave no room"
    told = ", ".join(_resize(one) for one in choice.resizes)
    others = [name for name in alternatives if name != choice.option.group]
    chance = f"; or to {listed(others, MOST_NAMES, conjunction='or')}, which is as good" if others else ""
    return f"adds {told}{chance}"


def _resize(one: Resize) -> str:
    return (
        f"{count(one.after - one.before, 'node')} to {one.group}: {one.before} → {one.after} of at most {one.maximum}"
    )


class _Row(Struct, frozen=True, kw_only=True):
    """Groups of which the same is to be said."""

    groups: tuple[GroupVerdict, ...]
    told: str
    nearness: tuple[float, ...]


def _rows(groups: Sequence[GroupVerdict]) -> list[_Row]:
    """The nearest first: those that the pod fits, then those with the fewest reasons against it."""
    together: dict[str, list[GroupVerdict]] = {}
    for group in groups:
        together.setdefault(_told(group), []).append(group)
    rows = [_Row(groups=tuple(some), told=told, nearness=_nearness(some[0])) for told, some in together.items()]
    return sorted(rows, key=lambda row: row.nearness)


def _nearness(group: GroupVerdict) -> tuple[float, ...]:
    away = sum(finding.distance for status in group.rejections for finding in status.findings)
    return (group.template is None, len(group.rejections), away, bool(group.skipped))


def _told(group: GroupVerdict) -> str:
    return "; ".join(_clauses(group))


def _clauses(group: GroupVerdict) -> Iterator[str]:
    if group.skipped:
        sizes = f": {group.target} of at most {group.max_size}" if group.target >= group.max_size else ""
        detail = f" ({group.detail})" if group.detail else ""
        yield f"✗ {', '.join(group.skipped)}{sizes}{detail}"
        if group.fits:
            yield "the pod would fit"
    if group.template is None:
        yield "kschedx does not know what a node of this group looks like (--node-groups FILE tells it)"
    for status in group.rejections:
        told = [headline(finding) for finding in status.findings] or list(status.reasons) or ["leaves it out"]
        yield f"✗ {status.plugin} · {', '.join(told)}"


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
        lines += fact_lines(Fact(label="new node", items=tuple(_brought(group.template))), width, 2)
    if group.rejections[0].plugin == "NodeUnschedulable" and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        lines += fact_lines(
            Fact(label="model", items=(f"{model}, which is cordoned, so that a new node counts as cordoned too",)),
            width,
        )
    return lines


def _brought(template: Template) -> Iterator[str]:
    """The pods that a new node comes with, those of DaemonSets above all."""
    offered = ", ".join(
        f"{written} {name}" for name, written in template.node.status.allocatable.items() if name in ("cpu", "memory")
    )
    yield f"{offered} allocatable"
    if template.pods:
        asked = ", ".join((amount("cpu", template.milli_cpu) + " cpu", amount("memory", template.memory) + " memory"))
        names = [
            pod.metadata.controller.name if pod.metadata.controller else pod.metadata.name for pod in template.pods
        ]
        yield f"{asked} for its own pods: {listed(names, MOST_NAMES)}"


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
    if is_same_event(said.message, ours):
        return [*lines, *labelled("", "cluster-autoscaler said the same", width)]
    return [*lines, *labelled("said", f"{said.message}  (another moment, or other flags)", width)]


def is_same_event(theirs: str, ours: str) -> bool:
    """The parts of the text come in any order."""
    if theirs == ours:
        return True
    head, colon, rest = theirs.partition(": ")
    our_head, _, our_rest = ours.partition(": ")
    return bool(colon) and head == our_head and sorted(rest.split(", ")) == sorted(our_rest.split(", "))


def _basis(autoscaler: Autoscaler) -> Iterator[str]:
    """What the answer goes by, as far as it was guessed."""
    told: list[str] = []
    by = autoscaler.membership.told_by
    if by:
        told.append(f"groups by {listed(by, 2)}")
    elif any(node for node in autoscaler.snapshot.cluster.nodes):
        told.append("no node could be told to be of a group (--node-group-label KEY tells it)")
    if not autoscaler.flags_are_known:
        told.append("default flags (--autoscaler-flag)")
    if autoscaler.config_not_here:
        told.append(
            f"the default profile: its own, {autoscaler.config_not_here}, is not here "
            "(--autoscaler-flag scheduler-config-file=FILE)"
        )
    if autoscaler.membership.ambiguous:
        told.append(f"{count(len(autoscaler.membership.ambiguous), 'node')} may be of several groups")
    if not autoscaler.is_measured:
        told.append(f"rules of {autoscaler.release.version} from its code, not measured")
    if told:
        yield " · ".join(told)
