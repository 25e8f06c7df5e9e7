"""Node selector terms against a node, expression by expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kschedx.explain.diagnosis import LabelHint, UnwellNodes
from kschedx.findings import (
    ExistingAntiAffinityConflict,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeFinding,
    NodeNameMismatch,
    NodeUnschedulable,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    RequirementMatch,
    TermMatch,
    TopologyFinding,
    TopologyLabelMissing,
    TopologySpreadSkew,
    UntoleratedTaint,
)
from kschedx.findings.topology import HOSTNAME
from kschedx.render.wording import Brief, Fact, Reason, Words, count, listed

NODE_NAME_FIELD = "metadata.name"
SHOWN_TERMS = 3
SHOWN_TERM_VALUES = 4


def term_facts(terms: tuple[TermMatch, ...], label: str = "term") -> tuple[Fact, ...]:
    """A line for each term, those that come nearest first; `selector` stands without a number."""
    return tuple(_facts(terms, label))


def _facts(terms: tuple[TermMatch, ...], label: str) -> Iterator[Fact]:
    for term in sorted(terms, key=lambda term: term.missing)[:SHOWN_TERMS]:
        items = [expression_text(one) for one in term.requirements] or ["empty: matches no node"]
        if term.missing == 1 and len(term.requirements) > 1:
            items.append("only one expression fails")
        number = "" if label == "selector" or len(terms) == 1 else f" {term.index + 1}"
        yield Fact(label=label + number, items=tuple(items))
    if len(terms) > SHOWN_TERMS:
        yield Fact(label="", items=(f"{len(terms) - SHOWN_TERMS} more terms",))


def term_brief(terms: tuple[TermMatch, ...]) -> Brief | None:
    """What the node has where the nearest term fails first."""
    nearest = min(terms, key=lambda term: term.missing, default=None)
    failed = next((one for one in nearest.requirements if not one.matched), None) if nearest else None
    if failed is None or failed.key == NODE_NAME_FIELD:
        return None
    return Brief(detail=f'"{failed.actual}"' if failed.actual is not None else "without the label")


def expression_text(one: RequirementMatch) -> str:
    """`disk In [nvme] ✗ the node has "ssd"`."""
    return f"{requirement_text(one)} {_verdict(one)}"


def requirement_text(one: RequirementMatch) -> str:
    """`zone In [eu-1a, eu-1b]`, `gpu Exists`, `zone=eu-1a` as a nodeSelector writes it."""
    match one.operator:
        case "Exists" | "exists":
            return f"{one.key} Exists"
        case "DoesNotExist" | "!":
            return f"{one.key} DoesNotExist"
        case "=" | "==":
            return f"{one.key}={', '.join(one.values)}"
        case _:
            return f"{one.key} {one.operator} [{listed(one.values, SHOWN_TERM_VALUES)}]"


def _verdict(one: RequirementMatch) -> str:
    if one.matched:
        return f"✓ {one.actual}" if one.actual else "✓"
    if one.key == NODE_NAME_FIELD:
        return f"✗ the node is {one.actual}"
    return "✗ the node has no such label" if one.actual is None else f'✗ the node has "{one.actual}"'


# A node's own properties in words.

SHOWN_LABEL_VALUES = 3

NODE_REASONS: dict[str, Reason] = {}


def describe_node(finding: NodeFinding) -> Words:
    match finding:
        case NodeUnschedulable():
            return _node_unschedulable()
        case NodeNameMismatch():
            return _node_name_mismatch(finding)
        case UntoleratedTaint():
            return _untolerated_taint(finding)
        case NodeAffinityMismatch():
            return _node_affinity_mismatch(finding)
        case MissingNodeFeatures():
            return _missing_node_features(finding)
        case _:
            assert_never(finding)


NODE_REASONS[NodeUnschedulable.reason] = Reason(
    plugins=("NodeUnschedulable",),
    means=(
        "The node is cordoned: spec.unschedulable is true, and the pod does not tolerate "
        "node.kubernetes.io/unschedulable:NoSchedule."
    ),
    causes=(
        "kubectl cordon or kubectl drain",
        "an autoscaler that removes the node",
        "a maintenance or upgrade controller",
    ),
    fixes=("wait until the maintenance is over", "kubectl uncordon NODE"),
)


def _node_unschedulable() -> Words:
    return Words(headline="the node is cordoned (spec.unschedulable)")


NODE_REASONS[NodeNameMismatch.reason] = Reason(
    plugins=("NodeName",),
    means="spec.nodeName names another node.",
    causes=(
        "the pod was bound by hand",
        "a pod template sets spec.nodeName",
    ),
    fixes=("remove spec.nodeName and use a node selector", "correct the name"),
)


def _node_name_mismatch(finding: NodeNameMismatch) -> Words:
    return Words(headline=f"spec.nodeName is {finding.wanted}")


NODE_REASONS[UntoleratedTaint.reason] = Reason(
    plugins=("TaintToleration",),
    means=(
        "The node has a taint with effect NoSchedule or NoExecute that no toleration of the pod matches. Key "
        "and effect must be equal, and the value too unless the operator is Exists."
    ),
    causes=(
        "the node is reserved for a team or for special hardware",
        "the node is a control plane",
        "the node has a problem, such as not-ready, unreachable, or disk-pressure (a taint since Kubernetes 1.12)",
        "a toleration with a wrong value, operator, or effect",
    ),
    fixes=(
        "add a toleration, or correct the nearest one",
        "if the taint is a condition such as not-ready, repair the node",
        "remove the taint: kubectl taint nodes NODE KEY-",
    ),
)


_TROUBLE = {
    "node.kubernetes.io/not-ready": ("is", "not ready"),
    "node.kubernetes.io/unreachable": ("is", "unreachable"),
    "node.kubernetes.io/memory-pressure": ("is", "short of memory"),
    "node.kubernetes.io/disk-pressure": ("is", "short of disk"),
    "node.kubernetes.io/pid-pressure": ("is", "short of process ids"),
    "node.kubernetes.io/network-unavailable": ("has", "no network"),
    "node.cloudprovider.kubernetes.io/uninitialized": ("is", "not initialized by the cloud-controller-manager yet"),
    "node.cloudprovider.kubernetes.io/shutdown": ("is", "shut down"),
}
_PLURAL = {"is": "are", "has": "have"}


def node_condition(finding: UntoleratedTaint, nodes: int, name: str = "") -> str:
    """`3 nodes are not ready`, `node-4 is not ready`; empty for a taint that is no condition of the node."""
    if finding.key not in _TROUBLE:
        return ""
    verb, trouble = _TROUBLE[finding.key]
    who = f"{name or count(1, 'node')} {verb}" if nodes == 1 else f"{count(nodes, 'node')} {_PLURAL[verb]}"
    return f"{who} {trouble}"


def unwell_nodes_text(found: UnwellNodes) -> str:
    """`node-4 is not ready: cni plugin not initialized`, `3 nodes are unreachable: Kubelet stopped posting`."""
    condition = found.fault.condition.splitlines()[:1]
    told = node_condition(found.fault, found.nodes, found.first)
    return f"{told}{f': {last_cause(condition[0])}' if condition else ''}"


def last_cause(condition: str) -> str:
    """Of what a runtime quotes of a plugin that quotes another, the last."""
    return condition.rpartition("message:")[2].strip().rstrip(".") or condition


def _untolerated_taint(finding: UntoleratedTaint) -> Words:
    taint = f"{finding.key}={finding.value}" if finding.value else finding.key
    if finding.nearest_toleration is None:
        nearest = f"no toleration has the key {finding.key}"
    else:
        needed = {"value": f'"{finding.value}"', "effect": finding.effect}
        differences = [
            f"its {one} is not {needed[one]}" if one in needed else f"its {one} differs"
            for one in finding.nearest_differs
        ]
        text = f"toleration {finding.nearest_toleration + 1} is for {finding.nearest_text}"
        nearest = ": ".join((text, " and ".join(differences))) if differences else text
    headline = f"untolerated taint {taint}:{finding.effect}"
    trouble = _TROUBLE.get(finding.key)
    if trouble is not None:
        said = f": {finding.condition.splitlines()[0]}" if finding.condition else ""
        return Words(headline=f"the node {' '.join(trouble)}{said}", facts=(Fact(label="taint", items=(headline,)),))
    return Words(headline=headline, facts=(Fact(label="nearest", items=(nearest,)),))


NODE_REASONS[NodeAffinityMismatch.reason] = Reason(
    plugins=("NodeAffinity",),
    means=(
        "The node's labels do not satisfy spec.nodeSelector, or none of the required node affinity terms. The "
        "expressions of one term must all hold; the terms are alternatives."
    ),
    causes=(
        "a typo in a key or value",
        "the pod requires a zone or node pool whose nodes are full, so only other nodes are left",
        "new nodes lack the label",
        "the scheduler profile adds an affinity to every pod (addedAffinity)",
    ),
    fixes=(
        "correct or remove the expression that fails",
        "label the nodes",
        "make it preferred instead of required",
    ),
)


def _node_affinity_mismatch(finding: NodeAffinityMismatch) -> Words:
    number = len(finding.terms)
    match finding.source:
        case "nodeSelector":
            text, label = "nodeSelector does not match", "selector"
        case "addedAffinity":
            text, label = f"{_none_of(number)} of the profile's addedAffinity {_matches(number)}", "term"
        case _:
            text, label = f"{_none_of(number)} {_matches(number)}", "term"
    return Words(headline=text, facts=term_facts(finding.terms, label), brief=term_brief(finding.terms))


def _none_of(terms_count: int) -> str:
    return "the required term" if terms_count == 1 else f"none of {terms_count} required terms"


def _matches(terms_count: int) -> str:
    return "does not match" if terms_count == 1 else "matches"


NODE_REASONS[MissingNodeFeatures.reason] = Reason(
    plugins=("NodeDeclaredFeatures",),
    means="The pod needs a feature that the node's kubelet does not declare in status.declaredFeatures.",
    causes=(
        "kubelets of several versions run in the cluster, as during an upgrade",
        "kubelets have different feature gates",
    ),
    fixes=("upgrade the node or enable its feature gate", "remove the feature from the pod"),
)


def _missing_node_features(finding: MissingNodeFeatures) -> Words:
    noun = "feature" if len(finding.missing) == 1 else "features"
    return Words(
        headline=f"the node does not declare {noun} {', '.join(finding.missing)}",
        facts=(Fact(label="requires", items=(", ".join(finding.required),)),),
    )


def label_hint_text(hint: LabelHint) -> str:
    """What a node selector asks for and no node has, and what comes close."""
    if not hint.values:
        close = f"; {hint.nearest} is on {count(hint.nearest_count, 'node')}" if hint.nearest else ""
        return f"no node has a label {hint.key}{close}"
    asked = f"={hint.values[0]}" if len(hint.values) == 1 else f" in [{', '.join(hint.values)}]"
    if hint.nearest:
        return f"no node has {hint.key}{asked}; {hint.nearest} is on {count(hint.nearest_count, 'node')}"
    in_use = listed([f"{value} ({number:,})" for value, number in hint.in_use], SHOWN_LABEL_VALUES)
    return f"no node has {hint.key}{asked}; in use: {in_use}"


# Spread constraints and rules between pods in words.

SHOWN = 5


TOPOLOGY_REASONS: dict[str, Reason] = {}


def describe_topology(finding: TopologyFinding) -> Words:
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


TOPOLOGY_REASONS[TopologySpreadSkew.reason] = Reason(
    plugins=("PodTopologySpread",),
    means=(
        "With this pod, its domain has more than maxSkew matching pods above the domain with the "
        "fewest: matching + this pod - minimum > maxSkew."
    ),
    causes=(
        "the domain with the fewest pods is full",
        "the nodes of that domain are tainted or cordoned",
        "the pod's node affinity excludes that domain, and nodeAffinityPolicy: Ignore still counts it",
        "fewer domains than minDomains exist",
    ),
    fixes=(
        "free room in the domain with the fewest pods",
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


TOPOLOGY_REASONS[TopologyLabelMissing.reason] = Reason(
    plugins=("PodTopologySpread",),
    means="The node lacks the label that a hard spread constraint names as its topologyKey.",
    causes=(
        "a typo in the topologyKey",
        "nodes without zone labels, as on bare metal",
        "new nodes that the cloud-controller-manager has not labeled yet",
    ),
    fixes=("label the node", "correct the topologyKey"),
)


def _topology_label_missing(finding: TopologyLabelMissing) -> Words:
    return Words(headline=f"no label {finding.topology_key}, required by spread constraint {finding.constraint + 1}")


TOPOLOGY_REASONS[PodAffinityUnsatisfied.reason] = Reason(
    plugins=("InterPodAffinity",),
    means=(
        "A required podAffinity term needs a matching pod in the node's domain, and there is none. The first "
        "pod of a group may run anywhere if it matches its own terms and no other pod does."
    ),
    causes=(
        "the other pod is not running yet",
        "the other pod has other labels",
        "the other pod runs in another namespace",
        "the nodes of the other pod's domain are full",
    ),
    fixes=("start the other pod", "correct selector, namespaces or topologyKey", "make it preferred"),
)


def _pod_affinity_unsatisfied(finding: PodAffinityUnsatisfied) -> Words:
    if finding.domain is None:
        text = shared = f"no label {finding.topology_key}, required by podAffinity term {finding.term + 1}"
    else:
        text = f"no pod {_selector(finding.selector)} in {finding.topology_key}={finding.domain}"
        shared = f"no pod {_selector(finding.selector)}" if finding.topology_key == HOSTNAME else text
    namespaces = "all namespaces" if finding.every_namespace else listed(finding.namespaces, SHOWN)
    rule = f"podAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}, in {namespaces}"
    if not finding.matching_pods:
        found = "no pod in the cluster matches every term"
    else:
        domains = listed(finding.matching_domains, SHOWN)
        found = f"{count(finding.matching_pods, 'pod')}, such as {listed(finding.pods, 2)}, in {domains}"
        if not finding.matching_domains:
            found = f"{count(finding.matching_pods, 'pod')} on nodes without the label"
    return Words(
        headline=text,
        shared=shared,
        facts=(Fact(label="rule", items=(rule,)), Fact(label="nearest", items=(found,))),
        brief=None if finding.domain is None else Brief(lead="in ", detail=finding.domain),
    )


def _selector(text: str) -> str:
    """A label selector that stands in a sentence."""
    return {"": "any pod", "<none>": "no pod"}.get(text, text)


TOPOLOGY_REASONS[PodAntiAffinityConflict.reason] = Reason(
    plugins=("InterPodAffinity",),
    means="This pod's required podAntiAffinity matches a pod that runs in the node's domain.",
    causes=(
        "more replicas than nodes or zones",
        "a rolling update with maxSurge: the new pod meets the old ones",
        "nodes were removed",
    ),
    fixes=("run one replica fewer, or set maxSurge: 0", "a smaller domain, such as the hostname", "make it preferred"),
)


def _pod_anti_affinity_conflict(finding: PodAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    rule = (
        f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, "
        f"per {finding.topology_key}={finding.domain}"
    )
    return Words(
        headline=f"this pod's anti-affinity matches {_and_others(first, finding.pod_count)}",
        shared="this pod's anti-affinity matches a pod there",
        facts=(Fact(label="rule", items=(rule,)), *_others(finding.pods, finding.pod_count)),
        brief=Brief(detail=first),
    )


def _and_others(first: str, number: int) -> str:
    return first if number <= 1 else f"{first} and {count(number - 1, 'other')}"


def _others(pods: tuple[str, ...], number: int) -> tuple[Fact, ...]:
    return (Fact(label="pods", items=(listed(pods, SHOWN, number),)),) if number > 1 else ()


TOPOLOGY_REASONS[ExistingAntiAffinityConflict.reason] = Reason(
    plugins=("InterPodAffinity",),
    means=(
        "A running pod's required podAntiAffinity matches this pod. The rule belongs to the other pod; this pod may "
        "have none."
    ),
    causes=(
        "labels copied from another application",
        "the other pod's selector is wider than meant",
        "the other pod requires a node or zone of its own",
    ),
    fixes=("change this pod's labels", "narrow the other pod's selector", "use another node or domain"),
)


def _existing_anti_affinity_conflict(finding: ExistingAntiAffinityConflict) -> Words:
    first = finding.pods[0] if finding.pods else count(finding.pod_count, "pod")
    labels = ", ".join(finding.matched_labels)
    read = f"matches this pod's {'label' if len(finding.matched_labels) == 1 else 'labels'} {labels}"
    rule = f"podAntiAffinity {finding.term + 1}, {_selector(finding.selector)}, per {finding.topology_key}"
    return Words(
        headline=f"the anti-affinity of {_and_others(first, finding.pod_count)} matches this pod",
        shared="the anti-affinity of a pod there matches this pod",
        facts=(
            Fact(label="rule", items=(f"{rule}; {read}" if labels else rule,)),
            *_others(finding.pods, finding.pod_count),
        ),
        brief=Brief(lead="by ", detail=first),
    )
