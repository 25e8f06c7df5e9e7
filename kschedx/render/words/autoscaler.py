"""cluster-autoscaler's decision about a pod, and the changes after which it helps, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, assert_never

from msgspec import Struct

from kschedx.autoscaler.cluster import Autoscaler, GroupVerdict, PodScaling
from kschedx.autoscaler.node_groups import group_title
from kschedx.autoscaler.pods import PodOutcome
from kschedx.autoscaler.run import AutoscalerGrowth
from kschedx.autoscaler.sizes import BACKED_OFF, NOT_READY, Resize
from kschedx.autoscaler.state import GroupChoice, LoopOutcome, LoopResult, PodResult
from kschedx.autoscaler.templates import Template
from kschedx.fixes.node_requirements import own_terms
from kschedx.framework.runtime import request_options
from kschedx.kube.names import is_extended_resource
from kschedx.kube.resources import pod_request
from kschedx.kube.types import Pod
from kschedx.render.wording import amount, count, listed
from kschedx.render.words import headline

if TYPE_CHECKING:
    from kschedx.karpenter.cluster import PoolVerdict

MOST_NAMES = 3
_UNKNOWN_TEMPLATE = "its template is not in the cluster"
Verdict = TypeVar("Verdict")


def autoscaler_sentence(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    """Return the pod's outcome."""
    pod, flags = scaling.pod, autoscaler.flags
    match pod.outcome:
        case PodOutcome.CONSIDERED:
            return _considered(autoscaler, scaling)
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
            allowed = listed(flags.allowed_schedulers, MOST_NAMES)
            return f"ignores the pod: its scheduler is not in --allowed-scheduler-names={allowed}"
        case PodOutcome.NOT_LOOKED_AT:
            return "ignores all pods in this loop: one is nominated for a node that has not started"
        case _:
            assert_never(pod.outcome)


def _considered(autoscaler: Autoscaler, scaling: PodScaling) -> str:
    if scaling.choice is not None:
        return _adds(scaling.choice, scaling.alternatives)
    if scaling.result is LoopOutcome.AT_MAX_NODES_TOTAL:
        return f"adds no node: the cluster is at --max-nodes-total={autoscaler.flags.max_nodes_total}"
    if scaling.result is LoopOutcome.ERROR:
        unknown = [group.name for group in scaling.groups if group.template is None and group.target]
        if unknown:
            return f"is undecided: the nodes of node group {listed(unknown, MOST_NAMES)} are not known"
        return f"fails: {scaling.error}"
    fitting = [group.name for group in scaling.groups if group.fits and not group.skipped]
    if fitting and scaling.is_waiting:
        return f"adds nodes for other pods first; this pod fits {listed(fitting, MOST_NAMES)} and is next"
    if fitting:
        text = f"the pod fits {listed(fitting, MOST_NAMES)}, but the cluster-wide limits permit no node"
        return f"adds no node and sends no event: {text}"
    if not scaling.groups:
        return "has no node groups"
    number = len(scaling.groups)
    if open_groups := autoscaler.open_groups(scaling):
        groups = f"{'groups' if len(open_groups) > 1 else 'group'} {listed(open_groups, MOST_NAMES)}"
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
    chance = f"; or to {listed(others, MOST_NAMES, conjunction='or')} with equal score" if others else ""
    return f"adds {text}{chance}"


def _resize(resize: Resize) -> str:
    sizes = f"{resize.before} → {resize.after}, maximum {resize.maximum}"
    return f"{count(resize.after - resize.before, 'node')} to {group_title(resize.group)}: {sizes}"


def group_headline(group: GroupVerdict) -> str:
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


_DECLARATIONS = {
    "aws": "tag its ASG with k8s.io/cluster-autoscaler/node-template/{kind}/{key}={value}",
    "azure": "tag its scale set with k8s.io_cluster-autoscaler_node-template_{kind}_{underscored}={value}",
    "clusterapi": "annotate it with capacity.cluster-autoscaler.kubernetes.io/{plural}: {key}={value}",
}
"""Cloud provider to how a group without nodes declares a label or a resource of its nodes."""


class Undeclared(Struct, frozen=True, kw_only=True):
    """A group without nodes, and what the pod needs and no node has: the cluster does not show whether the group's
    nodes would have it."""

    group: str
    need: str
    """`disk=nvme`, `hugepages-2Mi`."""
    how: str
    """How the group declares it."""


def undeclared(autoscaler: Autoscaler, scaling: PodScaling, pod: Pod) -> Undeclared | None:
    """Return None if that cannot be the cause, or if the cloud's groups declare nothing."""
    form = _DECLARATIONS.get(_cloud_provider(autoscaler), "")
    empty = [group.name for group in scaling.groups if group.target == 0 and group.is_unknown]
    needs = [*_missing_labels(autoscaler, pod), *_missing_resources(autoscaler, pod)]
    if not form or not empty or not needs:
        return None
    kind, key, value = needs[0]
    words = re.findall("[a-z0-9]+", f"{key.rpartition('/')[2]} {value}".lower())
    name = max(empty, key=lambda name: sum(word in name.lower() for word in words))
    plural = "capacity" if kind == "resources" else "labels"
    how = form.format(kind=kind, plural=plural, key=key, value=value, underscored=key.replace("/", "_"))
    return Undeclared(group=group_title(name), need=f"{key}={value}" if kind == "label" else key, how=how)


def _cloud_provider(autoscaler: Autoscaler) -> str:
    """Return the flag, or the scheme of the nodes' providerID if the flags are not known."""
    ids = (node.spec.provider_id for node in autoscaler.snapshot.cluster.nodes)
    scheme, separator, _ = next(filter(None, ids), "").partition("://")
    return autoscaler.flags.cloud_provider if autoscaler.flags_are_known or not separator else scheme


def _missing_labels(autoscaler: Autoscaler, pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield labels that the pod selects and that no node has under any value."""
    known = autoscaler.snapshot.cluster.label_keys
    terms = (term for term in own_terms(pod) if term is not None)
    required = (
        (expression.key, expression.values[0])
        for term in terms
        for expression in term.match_expressions
        if expression.operator == "In"
    )
    for key, value in (*pod.spec.node_selector.items(), *required):
        if key not in known:
            yield "label", key, value


def _missing_resources(autoscaler: Autoscaler, pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield extended resources that the pod requests and no node has, with the amount."""
    offered = {
        name
        for node in autoscaler.snapshot.cluster.nodes
        for name, written in node.status.allocatable.items()
        if str(written) != "0"
    }
    requested = pod_request(pod.spec, pod.status, request_options(autoscaler.release)).amounts
    for name, number in requested.items():
        if number > 0 and is_extended_resource(name) and name not in offered:
            yield "resources", name, str(number)


def on_a_new_node(template: Template) -> Iterator[str]:
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
        yield f"{requested} requested by {listed(names, MOST_NAMES)}"


def autoscaler_basis(autoscaler: Autoscaler) -> Iterator[str]:
    """Yield what the answer is based on, as far as it was inferred."""
    phrases: list[str] = []
    by = autoscaler.membership.told_by
    if by:
        phrases.append(f"node groups by {listed(by, 2)}")
    elif any(node for node in autoscaler.snapshot.cluster.nodes):
        phrases.append("no node has a known node group (--node-group-label KEY)")
    if not autoscaler.flags_are_known:
        phrases.append("default flags (--autoscaler-flag)")
    if autoscaler.status.unknown:
        phrases.append(f"its status has unknown values {listed(autoscaler.status.unknown, 3)}")
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


def node_group_growth_text(growth: AutoscalerGrowth) -> str:
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
    return most_said(phrase, None if len(refused) == 1 else number)


def most_said(text: str, pods: int | None) -> str:
    """Return what follows the sentence about all pending pods. `pods` is the number of pods for which it is true, or
    None for all."""
    most = "" if pods is None else f"Most often ({count(pods, 'pod')}): "
    return f". {most}{text}" if text else ""


def _refusal(answer: LoopResult, pod: PodResult) -> str:
    said: dict[str, list[str]] = {}
    for group in answer.groups:
        verdict = pod.verdicts.get(group.group.name)
        skipped = (_UNKNOWN_TEMPLATE,) if group.is_unknown and group.skipped == (NOT_READY,) else group.skipped
        for reason in skipped or (verdict.reasons if verdict is not None else ()):
            said.setdefault(reason, []).append(group.group.name)
    if not said:
        return ", ".join(part.partition(" ")[2] if part[:1].isdigit() else part for part in pod.parts)
    return by_name((groups, reason) for reason, groups in said.items())


def alike(verdicts: Iterable[Verdict], headline: Callable[[Verdict], str]) -> list[list[Verdict]]:
    """Return the verdicts in rows of the same headline."""
    together: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        together.setdefault(headline(verdict), []).append(verdict)
    return list(together.values())


def names_of(row: Sequence[GroupVerdict | PoolVerdict], noun: str) -> str:
    many = f" ({count(len(row), noun)})" if len(row) > 1 else ""
    return f"{listed([group_title(verdict.name) for verdict in row], MOST_NAMES)}{many}"


def by_name(said: Iterable[tuple[Sequence[str], str]]) -> str:
    """Return reasons by group or pool: `spot: in backoff; a and b: Insufficient cpu`."""
    texts = [f"{listed(list(map(group_title, names)), MOST_NAMES)}: {text}" for names, text in said]
    more = [f"{count(len(texts) - MOST_NAMES, 'more reason')}"] if len(texts) > MOST_NAMES else []
    return "; ".join([*texts[:MOST_NAMES], *more])


def _sizes(step: Resize) -> str:
    more = count(step.after - step.before, "node")
    return f"{more} to {group_title(step.group)} ({step.before} → {step.after}, maximum {step.maximum})"
