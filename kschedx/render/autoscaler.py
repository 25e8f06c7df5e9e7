"""cluster-autoscaler's decision about a pod that fits no node, and what it adds for all pending pods, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from kschedx.autoscaler.cluster import Autoscaler, AutoscalerGrowth, GroupVerdict, PodScaling
from kschedx.autoscaler.node_groups import group_title
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.sizes import NOT_READY, Resize
from kschedx.autoscaler.state import GroupChoice, LoopOutcome, LoopResult, PodResult
from kschedx.autoscaler.templates import Template
from kschedx.findings import InsufficientResource, NodeUnschedulable, TooManyPods
from kschedx.inquiry.group_scaling import GroupScaling, undeclared_need
from kschedx.inquiry.node_scaling import NodeRemedy, StepKind
from kschedx.snapshot.events import BACKED_OFF, RecordedEvent
from kschedx.wording import Fact, amount, count, list_names
from kschedx.words import describe, headline
from kschedx.words.growth import MOST_NAMES, OUTCOMES, DecisionWords, GrowthWords, PlaceWords

_UNKNOWN_TEMPLATE = "its template is not in the cluster"


def _sentence(of_groups: GroupScaling) -> str:
    """Return the pod's outcome."""
    autoscaler, scaling = of_groups.autoscaler, of_groups.decision
    pod, flags = scaling.pod, autoscaler.flags
    match pod.outcome:
        case PodOutcome.CONSIDERED:
            return _summary(autoscaler, scaling)
        case PodOutcome.EXPENDABLE:
            row = autoscaler.snapshot.pods
            priority = int(row.priorities[pod.row]) if pod.row < len(row) else 0
            cutoff = flags.expendable_pods_priority_cutoff
            return f"ignores the pod: priority {priority} is below --expendable-pods-priority-cutoff={cutoff}"
        case PodOutcome.CONSUMES_REQUEST:
            state = of_groups.request_state
            consumes = f"it consumes ProvisioningRequest {of_groups.consumed_request}"
            return f"ignores the pod: {consumes}{f', {state}' if state else ''}"
        case PodOutcome.SCHEDULABLE:
            coming = ", a node that is starting" if pod.is_on_upcoming else ""
            return f"adds no node: by its own simulation the pod fits {pod.node}{coming}"
        case PodOutcome.NOT_LOOKED_AT if scaling.result is LoopOutcome.NOT_TRIED:
            return "adds no nodes: too many nodes are not ready"
        case PodOutcome.NOT_LOOKED_AT if flags.allowed_schedulers:
            allowed = list_names(flags.allowed_schedulers, MOST_NAMES)
            return f"ignores the pod: its scheduler is not in --allowed-scheduler-names={allowed}"
        case outcome:
            return OUTCOMES[outcome][0]


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
        titles = list_names(map(group_title, open_groups), MOST_NAMES)
        groups = f"{'groups' if len(open_groups) > 1 else 'group'} {titles}"
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


def _clauses(group: GroupVerdict) -> Iterator[str]:
    """Yield why a group does not help, or that it would."""
    if group.skipped and not (group.is_unknown and group.skipped == (NOT_READY,)):
        sizes = f": {group.target} of {group.max_size} nodes" if group.target >= group.max_size else ""
        detail = f" ({group.detail})" if group.detail else ""
        yield f"✗ {', '.join(group.skipped)}{sizes}{detail}"
        if group.unregistered:
            yield f"{count(group.unregistered, 'instance')} did not become nodes"
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
    by = autoscaler.membership.sources
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


def growth_words(growth: AutoscalerGrowth) -> GrowthWords:
    last = growth.last
    loops = f", in {count(growth.loops, 'loop')}" if growth.loops > 1 else ""
    refused = Counter(_refusal(last, pod) for pod in last.pods if pod.remains).most_common(1)
    reasons: dict[str, list[str]] = {}
    for reason, group in refused[0][0] if refused else ():
        reasons.setdefault(reason, []).extend([group_title(group)] if group else [])
    known = " with a known template" if _UNKNOWN_TEMPLATE in reasons else ""
    return GrowthWords(
        added=tuple(map(_sizes, growth.groups)),
        how=f"{loops}; other node groups have the same score, the choice is random" if growth.by_chance else loops,
        no_help=f"no node group{known} helps {{}}" if last.groups else "it has no node groups for {}",
        failed=(f"then it fails: {last.error}",) if last.error else (),
        reasons=reasons,
        refused=refused[0][1] if refused else 0,
    )


def _refusal(answer: LoopResult, pod: PodResult) -> tuple[tuple[str, str], ...]:
    """Return the reasons of the groups for a pod that none helps, each with the group's name; or why none is tried."""
    refusals: list[tuple[str, str]] = []
    for group in answer.groups:
        verdict = pod.verdicts.get(group.group.name)
        skipped = (_UNKNOWN_TEMPLATE,) if group.is_unknown and group.skipped == (NOT_READY,) else group.skipped
        reasons = skipped or (verdict.reasons if verdict is not None else ())
        refusals += [(reason, group.group.name) for reason in reasons]
    return tuple(refusals) or ((", ".join(part.lstrip("0123456789 ") for part in pod.parts), ""),)


def _sizes(step: Resize) -> str:
    more = count(step.after - step.before, "node")
    return f"{more} to {group_title(step.group)} ({step.before} → {step.after}, maximum {step.maximum})"


def trial_result(remedy: NodeRemedy) -> str:
    where = "it" if remedy.kind is StepKind.NEW_GROUP else group_title(remedy.place)
    return f"adds {count(remedy.nodes, 'node')} to {where}" if remedy.nodes else f"the pod fits {where} and is next"


def _is_same_autoscaler_event(theirs: str, ours: str) -> bool:
    """Compare two messages; their parts may be in any order."""
    if theirs == ours:
        return True
    head, colon, rest = theirs.partition(": ")
    our_head, _, our_rest = ours.partition(": ")
    return bool(colon) and head == our_head and sorted(rest.split(", ")) == sorted(our_rest.split(", "))


def decision_words(of_groups: GroupScaling, recorded: RecordedEvent | None) -> DecisionWords:
    autoscaler, scaling = of_groups.autoscaler, of_groups.decision
    is_considered = scaling.choice is None and scaling.pod.outcome is PodOutcome.CONSIDERED
    event = of_groups.event if scaling.choice is not None or scaling.pod.is_event_sent else ""
    message = "" if recorded is None else recorded.message
    lacking = undeclared_need(autoscaler, scaling, of_groups.pod)
    sentence = _sentence(of_groups)
    denied = "reports that it adds no node; by the cluster's objects it " if of_groups.denial else ""
    return DecisionWords(
        sentence=f"{denied}{sentence}",
        places=(words for words in map(_words, scaling.groups if is_considered else ()) if words.text),
        noun="group",
        first="" if lacking is None else f"{lacking.group} has no node from which to read {lacking.need}",
        event=event,
        recorded=message,
        is_same=_is_same_autoscaler_event(message, event),
        settings="flags",
        reports=(message,) if message and (denied or sentence.startswith("is undecided")) else (),
        basis=tuple(_basis(autoscaler)),
    )


def _words(group: GroupVerdict) -> PlaceWords:
    return PlaceWords(
        name=group.title, text="; ".join(_clauses(group)), order=_nearness(group), facts=partial(_facts, group)
    )


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
        yield Fact.of("new node", *_new_node_facts(group.template))
    if any(isinstance(finding, NodeUnschedulable) for finding in findings) and group.template.source != "template":
        model = group.template.source.removeprefix("node/")
        text = f"{model} is cordoned, so cluster-autoscaler treats a new node as cordoned"
        yield Fact.of("model", text)
