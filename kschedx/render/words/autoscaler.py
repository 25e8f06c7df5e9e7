"""What cluster-autoscaler does about a pod, and what makes it help, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.growth import AutoscalerGrowth, AutoscalerGrowthStep
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.remedies import (
    AddGroup,
    AutoscalerRemedy,
    RaiseMaximum,
    RaisePriority,
    RemedyStep,
    RequestAtMost,
    SetFlag,
    TolerateTaints,
    UncordonNode,
)
from kschedx.autoscaler.sizes import Resize
from kschedx.autoscaler.state import GroupChoice, LoopOutcome, LoopResult, PodResult
from kschedx.autoscaler.templates import Template
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.render.wording import amount, count, listed
from kschedx.render.words import headline

MOST_NAMES = 3


def autoscaler_sentence(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    """What becomes of the pod."""
    pod, flags = scaling.pod, autoscaler.flags
    match pod.outcome:
        case PodOutcome.CONSIDERED:
            return _considered(autoscaler, scaling)
        case PodOutcome.EXPENDABLE:
            row = autoscaler.snapshot.pods
            priority = int(row.priorities[pod.row]) if pod.row < len(row) else 0
            cutoff = flags.expendable_pods_priority_cutoff
            return f"does not look at it: priority {priority} is below --expendable-pods-priority-cutoff={cutoff}"
        case PodOutcome.SCHEDULABLE:
            coming = ", a node that is about to come" if pod.is_on_upcoming else ""
            return f"does nothing: in its eyes the pod fits {pod.node}{coming}"
        case PodOutcome.DAEMON_SET:
            return "does nothing: a pod of a DaemonSet needs its own node, and a new one would be no help"
        case PodOutcome.TOO_YOUNG:
            return "waits: the pod is younger than its scale-up delay"
        case PodOutcome.ALL_NEW:
            return "waits: the pods are so new that others may follow"
        case PodOutcome.NOT_MARKED:
            return "does not see it: kube-scheduler has not called the pod unschedulable"
        case PodOutcome.NOMINATED:
            return "does nothing: the pod is nominated for a node, where others are about to go"
        case PodOutcome.DELETING:
            return "does nothing: the pod is being deleted"
        case PodOutcome.NOT_LOOKED_AT if scaling.result is LoopOutcome.NOT_TRIED:
            return "looks at no pod: too many nodes are not ready"
        case PodOutcome.NOT_LOOKED_AT if flags.allowed_schedulers:
            allowed = listed(flags.allowed_schedulers, MOST_NAMES)
            return f"does not look at it: --allowed-scheduler-names={allowed} leaves its scheduler out"
        case PodOutcome.NOT_LOOKED_AT:
            return "looks at no pod: one is nominated for a node that has not started, which ends its loop"
        case _:
            assert_never(pod.outcome)


def _considered(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    if scaling.choice is not None:
        return _adds(scaling.choice, scaling.alternatives)
    if scaling.result is LoopOutcome.AT_MAX_NODES_TOTAL:
        return f"adds nothing: the cluster is at --max-nodes-total={autoscaler.flags.max_nodes_total}"
    if scaling.result is LoopOutcome.ERROR:
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


def _adds(choice: GroupChoice, alternatives: Sequence[str]) -> str:
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


def group_headline(group: GroupVerdict) -> str:
    """Why a group does not help, or that it would."""
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


def on_a_new_node(template: Template) -> Iterator[str]:
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


def autoscaler_basis(autoscaler: Autoscaler) -> Iterator[str]:
    """What the answer goes by, as far as it was guessed."""
    told: list[str] = []
    by = autoscaler.membership.told_by
    if by:
        told.append(f"groups by {listed(by, 2)}")
    elif any(node for node in autoscaler.snapshot.cluster.nodes):
        told.append("no node could be told to be of a group (--node-group-label KEY tells it)")
    if not autoscaler.flags_are_known:
        told.append("default flags (--autoscaler-flag)")
    if autoscaler.status.unknown:
        told.append(f"its status says {listed(autoscaler.status.unknown, 3)}, which is not known here")
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


def node_group_growth_text(growth: AutoscalerGrowth) -> str:
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
            (PodOutcome.EXPENDABLE, "of too low a priority for it"),
            (PodOutcome.DAEMON_SET, "of DaemonSets, which it leaves alone"),
            (PodOutcome.NOT_MARKED, "not yet called unschedulable"),
            (PodOutcome.NOT_LOOKED_AT, "not looked at"),
        )
        if left[outcome]
    ]
    if growth.last.error:
        clauses.append(f"then it fails: {growth.last.error}")
    return f"{told}; {', '.join(clauses)}{_refusals(growth.last)}" if clauses else told


def _refusals(answer: LoopResult) -> str:
    """What the groups say to most of the pods that none helps: `. spot: in backoff after failed scale-up`."""
    refused = Counter(_refusal(answer, one) for one in answer.pods if one.remains)
    if not refused:
        return ""
    told, number = refused.most_common(1)[0]
    return most_said(told, None if len(refused) == 1 else number)


def most_said(told: str, pods: int | None) -> str:
    """What comes after the sentence about all that wait; `pods`: how many it is said of, where not of all."""
    most = "" if pods is None else f"Most often ({count(pods, 'pod')}): "
    return f". {most}{told}" if told else ""


def _refusal(answer: LoopResult, pod: PodResult) -> str:
    said: dict[str, list[str]] = {}
    for one in answer.groups:
        verdict = pod.verdicts.get(one.group.name)
        for reason in one.skipped or (verdict.reasons if verdict is not None else ()):
            said.setdefault(reason, []).append(one.group.name)
    if not said:
        return ", ".join(part.partition(" ")[2] if part[:1].isdigit() else part for part in pod.parts)
    return by_name((groups, reason) for reason, groups in said.items())


def by_name(said: Iterable[tuple[Sequence[str], str]]) -> str:
    """Who says what, as `spot: in backoff; a and b: Insufficient cpu`."""
    told = [f"{listed(names, MOST_NAMES)}: {text}" for names, text in said]
    more = [f"{count(len(told) - MOST_NAMES, 'more reason')}"] if len(told) > MOST_NAMES else []
    return "; ".join([*told[:MOST_NAMES], *more])


def _sizes(one: AutoscalerGrowthStep) -> str:
    more = count(one.after - one.before, "node")
    return f"{more} to {one.group} ({one.before} → {one.after} of at most {one.maximum})"


def group_remedy_title(step: RemedyStep) -> str:
    """`raise the maximum of workers from 3 to 4`."""
    match step:
        case RaisePriority(at_least=priority):
            return f"give it a priority of at least {priority}"
        case TolerateTaints() | RequestAtMost():
            return change_of_pod(step)
        case UncordonNode(node=node):
            return f"uncordon {node}, so that new nodes do not count as cordoned"
        case RaiseMaximum(group=group, before=before, after=after):
            return f"raise the maximum of {group} from {before} to {after}"
        case SetFlag(name=name):
            return f"give cluster-autoscaler --{name}"
        case AddGroup(like=like):
            return f"add a group like {like} {_but_for(step)}"
        case _:
            assert_never(step)


def change_of_pod(step: TolerateTaints | RequestAtMost) -> str:
    """`request at most 1650m cpu`; Karpenter's remedies have the same steps."""
    match step:
        case TolerateTaints(taints=taints):
            return f"tolerate {' and '.join(map(str, taints))}"
        case RequestAtMost(amounts=amounts):
            told = (f"{format_quantity(one.amount, Unit.of(one.resource))} {one.resource}" for one in amounts)
            return f"request at most {' and '.join(told)}"
        case _:
            assert_never(step)


def _but_for(step: AddGroup) -> str:
    """`with label disktype=ssd and without taint dedicated=gpu:NoSchedule`."""
    differences = (
        ("with label", [f"{key}={value}" for key, value in step.labels]),
        ("without label", step.without_labels),
        ("without taint", list(map(str, step.without_taints))),
    )
    return " and ".join(f"{what} {', '.join(names)}" for what, names in differences if names)


def remedy_text(remedy: AutoscalerRemedy) -> str:
    """The title, and what was found when it was tried."""
    where = "it" if isinstance(remedy.step, AddGroup) else remedy.group
    then = f"adds {count(remedy.nodes, 'node')} to {where}" if remedy.nodes else f"it fits {where} then, and is next"
    return f"{group_remedy_title(remedy.step)} (verified: {then})"
