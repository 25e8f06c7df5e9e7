"""Spread constraints and rules between pods in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import (
    ExistingAntiAffinityConflict,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologyFinding,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.findings.topology import HOSTNAME
from kschedx.render.units import count, listed
from kschedx.render.wording import Brief, Fact, Reason, Words

SHOWN = 5


REASONS: dict[str, Reason] = {}


def describe(finding: TopologyFinding) -> Words:
    match finding:
        case TopologySpreadSkew():
            return _topology_spread_skew(finding)
        case TopologyLabelMissing():
            return _topology_label_missing(finding)
        case PodAffinityUnsatisfied():
            return _pod_affinity_unsatisfied(finding)
        case PodAntiAffinityConflict():
            return _pod_anti_affinity_conflict(finding)
        case ExistingAntiAffinityConflict():
            return _existing_anti_affinity_conflict(finding)
        case _:
            assert_never(finding)


REASONS[TopologySpreadSkew.reason] = Reason(
    plugins=("PodTopologySpread",),
    means=(
        "With this pod, its domain would have more than maxSkew matching pods above the domain with the "
        "fewest: matching + this pod - minimum > maxSkew."
    ),
    arises=(
        "whenUnsatisfiable: DoNotSchedule, and the emptiest domain cannot take pods: it is full or tainted, "
        "or the pod's node affinity forbids it while nodeAffinityPolicy: Ignore still counts it, or fewer "
        "domains than minDomains exist."
    ),
    fixes=(
        "make room in the domain with the fewest",
        "set nodeAffinityPolicy or nodeTaintsPolicy to Honor",
        "raise maxSkew, or whenUnsatisfiable: ScheduleAnyway",
    ),
)


def _topology_spread_skew(finding: TopologySpreadSkew) -> Words:
    arithmetic = f"{finding.matching} matching + {finding.itself} this pod - {finding.minimum} minimum = {finding.skew}"
    domains = [f"{one.domain} {one.matching}" for one in finding.domains]
    items = [arithmetic, listed(domains, SHOWN, finding.domain_count)]
    if finding.min_domains is not None:
        exist = "domain exists" if finding.domain_count == 1 else "domains exist"
        items.append(f"minimum 0: {finding.domain_count:,} {exist}, minDomains is {finding.min_domains}")
    items.append(f"constraint {finding.constraint + 1}, per {finding.topology_key}")
    return Words(
        headline=f"skew {finding.skew} > maxSkew {finding.max_skew}",
        shared=f"skew > maxSkew {finding.max_skew}",
        facts=(Fact(label="rule", items=tuple(items), whole=True),),
        brief=Brief(detail=f"skew {finding.skew}"),
    )


REASONS[TopologyLabelMissing.reason] = Reason(
    plugins=("PodTopologySpread",),
    means="The node lacks the label that a hard spread constraint names as its topologyKey.",
    arises="Nodes without zone labels, or a typo in the key.",
    fixes=("label the node", "correct the topologyKey"),
)


def _topology_label_missing(finding: TopologyLabelMissing) -> Words:
    return Words(headline=f"no label {finding.topology_key}, which spread constraint {finding.constraint + 1} needs")


REASONS[PodAffinityUnsatisfied.reason] = Reason(
    plugins=("InterPodAffinity",),
    means=(
        "A required podAffinity term wants a matching pod in the node's domain, and there is none. The first "
        "pod of a group may go anywhere, if it matches its own terms and no other pod does."
    ),
    arises=(
        "The pod to be near is not running yet, runs in another namespace or has other labels, or its nodes are full."
    ),
    fixes=("start the other pod", "correct selector, namespaces or topologyKey", "make it preferred"),
)


def _pod_affinity_unsatisfied(finding: PodAffinityUnsatisfied) -> Words:
    if finding.domain is None:
        text = shared = f"no label {finding.topology_key}, which podAffinity term {finding.term + 1} needs"
    else:
        text = f"no pod {_selector(finding.selector)} in {finding.topology_key}={finding.domain}"
        shared = f"no pod {_selector(finding.selector)}" if finding.topology_key == HOSTNAME else text
    namespaces = "all namespaces" if finding.every_namespace else listed(finding.namespaces, SHOWN)
    rule = f"podAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}, in {namespaces}"
    if not finding.matching_pods:
        found = "no pod in the cluster satisfies every term"
    else:
        domains = listed(finding.matching_domains, SHOWN)
        found = f"{count(finding.matching_pods, 'pod')}, such as {listed(finding.pods, 2)}, in {domains}"
        if not finding.matching_domains:
            found = f"{count(finding.matching_pods, 'pod')} on nodes without the label"
    return Words(
        headline=text,
        shared=shared,
        facts=(Fact(label="its rule", items=(rule,)), Fact(label="nearest", items=(found,))),
        brief=None if finding.domain is None else Brief(lead="in ", detail=finding.domain),
    )


def _selector(text: str) -> str:
    """A label selector that stands in a sentence."""
    return {"": "any pod", "<none>": "no pod"}.get(text, text)


REASONS[PodAntiAffinityConflict.reason] = Reason(
    plugins=("InterPodAffinity",),
    means="This pod's required podAntiAffinity matches a pod that runs in the node's domain.",
    arises="As many replicas as domains, and one more: a rolling update, or a node less than before.",
    fixes=("one replica less, or maxSurge: 0", "a smaller domain, such as the hostname", "make it preferred"),
)


def _pod_anti_affinity_conflict(finding: PodAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    rule = (
        f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, "
        f"per {finding.topology_key}={finding.domain}"
    )
    return Words(
        headline=f"this pod keeps away from {_and_others(first, finding.pod_count)}",
        shared="this pod keeps away from",
        facts=(Fact(label="its rule", items=(rule,)), *_others(finding.pods, finding.pod_count)),
        brief=Brief(detail=first),
    )


def _and_others(first: str, number: int) -> str:
    return first if number <= 1 else f"{first} and {count(number - 1, 'other')}"


def _others(pods: tuple[str, ...], number: int) -> tuple[Fact, ...]:
    return (Fact(label="pods", items=(listed(pods, SHOWN, number),)),) if number > 1 else ()


REASONS[ExistingAntiAffinityConflict.reason] = Reason(
    plugins=("InterPodAffinity",),
    means=(
        "A running pod's required podAntiAffinity matches this pod. The rule is the other pod's; this one may "
        "have none at all."
    ),
    arises="Labels copied from another application, or a selector that is wider than meant.",
    fixes=("change this pod's labels", "narrow the other pod's selector", "use another node or domain"),
)


def _existing_anti_affinity_conflict(finding: ExistingAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    verb = "keeps" if finding.pod_count == 1 else "keep"
    labels = ", ".join(finding.matched_labels)
    read = f"matches this pod's {'label' if len(finding.matched_labels) == 1 else 'labels'} {labels}"
    rule = f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}"
    return Words(
        headline=f"{_and_others(first, finding.pod_count)} {verb} this pod away",
        shared="this pod away",
        facts=(
            Fact(label="its rule", items=(f"{rule}; {read}" if labels else rule,)),
            *_others(finding.pods, finding.pod_count),
        ),
        brief=Brief(lead="by ", detail=first),
    )
