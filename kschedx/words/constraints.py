"""Constraints in words: node selector terms against a node, taints and labels, topology spread, and pod affinity."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx import findings
from kschedx.explain.diagnosis import FaultyNodes
from kschedx.kube.names import HOSTNAME
from kschedx.kube.selectors import NODE_NAME_FIELD
from kschedx.kube.tolerations import TO_BE_DELETED
from kschedx.kube.types import Node, Taint
from kschedx.plugins.taint_toleration import untolerated_taint
from kschedx.wording import Brief, Fact, Words, count, in_words, list_names, register_templates

register_templates({findings.NodeNameMismatch: ("spec.nodeName is {f.wanted}",)})

SHOWN_TERMS = 3
_SHOWN_TERM_VALUES = 4


def term_facts(terms: tuple[findings.TermMatch, ...], label: str = "term") -> tuple[Fact, ...]:
    """Return a line for each term, nearest first; `selector` has no number."""
    return tuple(_facts(terms, label))


def _facts(terms: tuple[findings.TermMatch, ...], label: str) -> Iterator[Fact]:
    for term in sorted(terms, key=lambda term: term.missing)[:SHOWN_TERMS]:
        items = [expression_text(requirement) for requirement in term.requirements] or ["empty: matches no node"]
        if term.missing == 1 and len(term.requirements) > 1:
            items.append("only one expression fails")
        number = "" if label == "selector" or len(terms) == 1 else f" {term.index + 1}"
        yield Fact.of(label + number, *items)
    if len(terms) > SHOWN_TERMS:
        yield Fact.of("", count(len(terms) - SHOWN_TERMS, "more term"))


def term_brief(terms: tuple[findings.TermMatch, ...]) -> Brief | None:
    """Return the node's value of the first unmet requirement of the nearest term."""
    nearest = min(terms, key=lambda term: term.missing, default=None)
    failed = next((it for it in nearest.requirements if not it.matched), None) if nearest else None
    if failed is None or failed.key == NODE_NAME_FIELD:
        return None
    return Brief(detail=f'"{failed.actual}"' if failed.actual is not None else "without the label")


def expression_text(match: findings.RequirementMatch) -> str:
    """Return `disk In [nvme] ✗ the node has "ssd"`."""
    return f"{requirement_text(match)} {_verdict(match)}"


def requirement_text(match: findings.RequirementMatch) -> str:
    """Return `zone In [eu-1a, eu-1b]`, `gpu Exists`, or `zone=eu-1a` as a nodeSelector writes it."""
    match match.operator:
        case "Exists" | "exists":
            return f"{match.key} Exists"
        case "DoesNotExist" | "!":
            return f"{match.key} DoesNotExist"
        case "=" | "==":
            return f"{match.key}={', '.join(match.values)}"
        case _:
            return f"{match.key} {match.operator} [{list_names(match.values, _SHOWN_TERM_VALUES)}]"


def _verdict(match: findings.RequirementMatch) -> str:
    if match.matched:
        return f"✓ {match.actual}" if match.actual else "✓"
    if match.key == NODE_NAME_FIELD:
        return f"✗ the node is {match.actual}"
    if match.actual is None:
        return "✗ the node has no such label"
    is_number = match.operator not in ("Gt", "Lt") or match.actual.removeprefix("-").isdecimal()
    return f'✗ the node has "{match.actual}"{"" if is_number else ", not an integer"}'


@in_words.register
def _node_unschedulable(finding: findings.NodeUnschedulable) -> Words:
    return Words(headline=f"the node is cordoned (spec.unschedulable){maintenance_text(finding.maintenance)}")


def maintenance_text(maintenance: findings.Maintenance | None) -> str:
    """Return `: the driver upgrade of the NVIDIA GPU operator has failed`; empty if no component has cordoned the
    node."""
    if maintenance is None:
        return ""
    message = f": {maintenance.message}" if maintenance.message else ""
    return f": the {maintenance.title} {'has failed' if maintenance.is_failed else 'is in progress'}{message}"


_TROUBLE = {
    "node.kubernetes.io/not-ready": ("is", "not ready"),
    "node.kubernetes.io/unreachable": ("is", "unreachable"),
    "node.kubernetes.io/memory-pressure": ("is", "short of memory"),
    "node.kubernetes.io/disk-pressure": ("is", "short of disk"),
    "node.kubernetes.io/pid-pressure": ("is", "short of process IDs"),
    "node.kubernetes.io/network-unavailable": ("has", "no network"),
    "node.cloudprovider.kubernetes.io/uninitialized": ("is", "not initialized by the cloud-controller-manager yet"),
    "node.cloudprovider.kubernetes.io/shutdown": ("is", "shut down"),
    "node.cluster.x-k8s.io/uninitialized": ("is", "not initialized by Cluster API yet"),
    "karpenter.sh/unregistered": ("is", "not registered by Karpenter yet"),
    "karpenter.sh/disrupted": ("is", "being removed by Karpenter"),
    TO_BE_DELETED: ("is", "being removed by cluster-autoscaler"),
    "cloud.google.com/impending-node-termination": ("is", "about to be terminated by Google Cloud"),
    "aws-node-termination-handler/spot-itn": ("is", "about to be interrupted by AWS"),
    "node.kubernetes.io/out-of-service": ("is", "out of service"),
}
_PLURAL = {"is": "are", "has": "have"}


def is_of_leaving_node(finding: findings.Finding | None) -> bool:
    """Return whether the node is about to be removed."""
    if not isinstance(finding, findings.UntoleratedTaint) or finding.is_left_over:
        return False
    return _TROUBLE.get(finding.key, ("", ""))[1].startswith(("being removed", "about to be"))


def node_condition(finding: findings.UntoleratedTaint, nodes: int, name: str = "") -> str:
    """Return `3 nodes are not ready`, `node-4 is not ready`; empty for a taint that is not a condition of the node."""
    if finding.is_left_over:
        since = f"set {finding.left_over_since}" if finding.left_over_since else finding.contradicted_by
        verb, trouble = "has", f"the leftover taint {finding.key}{f' ({since})' if nodes == 1 else ''}"
    elif finding.key in _TROUBLE:
        verb, trouble = _TROUBLE[finding.key]
    else:
        return ""
    who = f"{name or count(1, 'node')} {verb}" if nodes == 1 else f"{count(nodes, 'node')} {_PLURAL[verb]}"
    return f"{who} {trouble}"


def faulty_nodes_text(faulty: FaultyNodes) -> str:
    """Return `node-4 is not ready: cni plugin not initialized`, `3 nodes are unreachable: Kubelet stopped posting`."""
    return node_condition(faulty.fault, faulty.nodes, faulty.first) + _condition_text(faulty.fault)


def fault_text(node: Node, taken: str = "") -> str:
    """Return `not ready: cni plugin not initialized` for the first taint or condition that stands for trouble, or an
    empty string. `taken` is the time of the cluster."""
    status = next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "True")
    unready = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}.get(status, "")
    taints = [*node.spec.taints, *([Taint(key=unready)] if unready else [])]
    fault = next((untolerated_taint(taint, (), node, taken) for taint in taints if taint.key in _TROUBLE), None)
    if fault is None:
        return ""
    if fault.is_left_over:
        return node_condition(fault, 1).partition(" has ")[2]
    return _TROUBLE[fault.key][1] + _condition_text(fault)


def _condition_text(fault: findings.UntoleratedTaint) -> str:
    """Return `: cni plugin not initialized`, the last of nested messages, such as those of a runtime that quotes a
    plugin; empty without a message."""
    if not fault.condition:
        return ""
    message = fault.condition.splitlines()[0]
    return f": {message.rpartition('message:')[2].strip().rstrip('.') or message}"


@in_words.register
def _untolerated_taint(finding: findings.UntoleratedTaint) -> Words:
    taint = f"{finding.key}={finding.value}" if finding.value else finding.key
    if finding.nearest_toleration is None:
        nearest = f"no toleration has the key {finding.key}"
    else:
        needed = {"key": finding.key, "value": f'"{finding.value}"', "effect": finding.effect}
        differences = [
            f"its {differ} is not {needed[differ]}"
            if differ in needed
            else f'its operator does not match "{finding.value}"'
            for differ in finding.nearest_differs
        ]
        text = f"toleration {finding.nearest_toleration + 1} is for {finding.nearest_text}"
        nearest = ": ".join((text, " and ".join(differences))) if differences else text
    headline = f"untolerated taint {taint}:{finding.effect}"
    trouble = _TROUBLE.get(finding.key)
    if finding.is_left_over:
        left = f"its taint is left over: {finding.contradicted_by}, and kube-controller-manager has not removed it"
        if finding.left_over_since:
            left = f"cluster-autoscaler set its taint {finding.left_over_since}, and has not removed the node"
        return Words(headline=left, facts=(Fact.of("taint", headline),))
    if trouble is not None:
        why = f": {finding.condition.splitlines()[0]}" if finding.condition else ""
        return Words(headline=f"the node {' '.join(trouble)}{why}", facts=(Fact.of("taint", headline),))
    return Words(headline=headline, facts=(Fact.of("nearest", nearest),))


@in_words.register
def _node_affinity_mismatch(finding: findings.NodeAffinityMismatch) -> Words:
    number = len(finding.terms)
    match finding.source:
        case "nodeSelector":
            text, label = "nodeSelector does not match", "selector"
        case "addedAffinity":
            text, label = f"{_none_of(number)} of the profile's addedAffinity {_matches(number)}", "term"
        case _:
            text, label = f"{_none_of(number)} {_matches(number)}", "term"
    facts = (Fact.of("term", finding.error),) if finding.error else term_facts(finding.terms, label)
    unmet = [it for it in finding.terms[0].requirements if not it.matched] if number == 1 else []
    general = f"{text}: {requirement_text(unmet[0])}" if unmet else ""
    return Words(headline=text, facts=facts, brief=term_brief(finding.terms), general=general)


def _none_of(terms_count: int) -> str:
    return "the required term" if terms_count == 1 else f"none of {terms_count} required terms"


def _matches(terms_count: int) -> str:
    return "does not match" if terms_count == 1 else "matches"


@in_words.register
def _missing_node_features(finding: findings.MissingNodeFeatures) -> Words:
    noun = "feature" if len(finding.missing) == 1 else "features"
    return Words(
        headline=f"the node does not declare {noun} {', '.join(finding.missing)}",
        facts=(Fact.of("requires", ", ".join(finding.required)),),
    )


_SHOWN = 5


@in_words.register
def _topology_spread_skew(finding: findings.TopologySpreadSkew) -> Words:
    arithmetic = f"{finding.matching} matching + {finding.itself} this pod - {finding.minimum} minimum = {finding.skew}"
    domains = [f"{domain.domain} {domain.matching}" for domain in finding.domains]
    items = [arithmetic, list_names(domains, _SHOWN, finding.domain_count)]
    too_few = ""
    if finding.min_domains is not None:
        exist = "domain exists" if finding.domain_count == 1 else "domains exist"
        too_few = f"{finding.domain_count:,} {exist}, minDomains is {finding.min_domains}"
        items.append(f"minimum 0: {too_few}")
    items.append(f"constraint {finding.constraint + 1}, per {finding.topology_key}")
    excess, because = f"skew {finding.skew} > maxSkew {finding.max_skew}", f": {too_few}" if too_few else ""
    return Words(
        headline=f"{excess}{because}",
        shared=f"skew > maxSkew {finding.max_skew}",
        general=f"{excess} over {finding.topology_key}{because}",
        facts=(Fact.of("rule", *items, whole=True),),
        brief=Brief(detail=f"skew {finding.skew}"),
    )


@in_words.register
def _topology_label_missing(finding: findings.TopologyLabelMissing) -> Words:
    return Words(headline=f"no label {finding.topology_key}, required by spread constraint {finding.constraint + 1}")


@in_words.register
def _pod_affinity_unsatisfied(finding: findings.PodAffinityUnsatisfied) -> Words:
    if finding.domain is None:
        text = shared = f"no label {finding.topology_key}, required by podAffinity term {finding.term + 1}"
    else:
        text = f"no pod {_selector(finding.selector)} in {finding.topology_key}={finding.domain}"
        shared = f"no pod {_selector(finding.selector)}" if finding.topology_key == HOSTNAME else text
    namespaces = (
        "all namespaces" if finding.every_namespace else list_names(finding.namespaces, _SHOWN) or "no namespace"
    )
    rule = f"podAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}, in {namespaces}"
    if not finding.matching_pods:
        reason = "no pod in the cluster matches every term"
    else:
        domains = list_names(finding.matching_domains, _SHOWN)
        reason = f"{count(finding.matching_pods, 'pod')}, such as {list_names(finding.pods, 2)}, in {domains}"
        if not finding.matching_domains:
            reason = f"{count(finding.matching_pods, 'pod')} on nodes without the label"
    return Words(
        headline=text,
        shared=shared,
        facts=(Fact.of("rule", rule), Fact.of("nearest", reason)),
        brief=None if finding.domain is None else Brief(lead="in ", detail=finding.domain),
    )


def _selector(text: str) -> str:
    """Return a label selector as part of a sentence."""
    return {"": "any pod", "<none>": "no pod"}.get(text, text)


@in_words.register
def _pod_anti_affinity_conflict(finding: findings.PodAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    rule = (
        f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, "
        f"per {finding.topology_key}={finding.domain}"
    )
    if finding.every_namespace or len(finding.namespaces) > 1:
        rule += ", in all namespaces" if finding.every_namespace else f", in {list_names(finding.namespaces, _SHOWN)}"
    return Words(
        headline=f"this pod's anti-affinity matches {_others_text(first, finding.pod_count)}",
        shared="this pod's anti-affinity matches a pod there",
        facts=(Fact.of("rule", rule), *_others(finding.pods, finding.pod_count)),
        brief=Brief(detail=first),
    )


def _others_text(first: str, number: int) -> str:
    return first if number <= 1 else f"{first} and {count(number - 1, 'other')}"


def _others(pods: tuple[str, ...], number: int) -> tuple[Fact, ...]:
    return (Fact.of("pods", list_names(pods, _SHOWN, number)),) if number > 1 else ()


@in_words.register
def _existing_anti_affinity_conflict(finding: findings.ExistingAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    labels = ", ".join(finding.matched_labels)
    read = f"matches this pod's {'label' if len(finding.matched_labels) == 1 else 'labels'} {labels}"
    rule = f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}"
    return Words(
        headline=f"the anti-affinity of {_others_text(first, finding.pod_count)} matches this pod",
        shared="the anti-affinity of a pod there matches this pod",
        facts=(Fact.of("rule", f"{rule}; {read}" if labels else rule), *_others(finding.pods, finding.pod_count)),
        brief=Brief(lead="by ", detail=first),
    )
