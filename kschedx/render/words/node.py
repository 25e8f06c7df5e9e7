"""A node's own properties in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.cause import UnwellNodes
from kschedx.explain.label_hints import LabelHint
from kschedx.findings import (
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeFinding,
    NodeNameMismatch,
    NodeUnschedulable,
    UntoleratedTaint,
)
from kschedx.render import terms
from kschedx.render.units import count, listed
from kschedx.render.wording import Fact, Reason, Words

SHOWN_VALUES = 3

REASONS: dict[str, Reason] = {}


def describe(finding: NodeFinding) -> Words:
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


REASONS[NodeUnschedulable.reason] = Reason(
    plugins=("NodeUnschedulable",),
    means=(
        "The node is cordoned: spec.unschedulable is true, and the pod does not tolerate "
        "node.kubernetes.io/unschedulable:NoSchedule."
    ),
    arises="kubectl cordon or drain, an autoscaler that removes the node, a maintenance controller.",
    fixes=("wait until the maintenance is over", "kubectl uncordon NODE"),
)


def _node_unschedulable() -> Words:
    return Words(headline="the node is cordoned (spec.unschedulable)")


REASONS[NodeNameMismatch.reason] = Reason(
    plugins=("NodeName",),
    means="spec.nodeName names another node.",
    arises=("The pod was bound by hand, or a template has spec.nodeName set; then the scheduler has no choice left."),
    fixes=("remove spec.nodeName and use a node selector", "correct the name"),
)


def _node_name_mismatch(finding: NodeNameMismatch) -> Words:
    return Words(headline=f"spec.nodeName wants {finding.wanted}")


REASONS[UntoleratedTaint.reason] = Reason(
    plugins=("TaintToleration",),
    means=(
        "The node has a taint with effect NoSchedule or NoExecute that no toleration of the pod matches. Key "
        "and effect must be equal, and the value too unless the operator is Exists."
    ),
    arises=(
        "Nodes set apart for a team or a kind of hardware, control planes, and nodes with trouble: not-ready, "
        "unreachable, disk-pressure and the like are taints since 1.12."
    ),
    fixes=(
        "add a toleration, or correct the one that comes nearest",
        "for a condition such as not-ready: repair the node",
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
    "node.cloudprovider.kubernetes.io/uninitialized": ("is", "not set up by the cloud-controller-manager yet"),
    "node.cloudprovider.kubernetes.io/shutdown": ("is", "shut down"),
}
_PLURAL = {"is": "are", "has": "have"}


def unwell(found: UnwellNodes) -> str:
    """`node-4 is not ready: cni plugin not initialized`, `3 nodes are unreachable: Kubelet stopped posting`."""
    verb, trouble = _TROUBLE[found.fault.key]
    who = f"{found.first} {verb}" if found.nodes == 1 else f"{count(found.nodes, 'node')} {_PLURAL[verb]}"
    condition = found.fault.condition.splitlines()[:1]
    return f"{who} {trouble}{f': {last_cause(condition[0])}' if condition else ''}"


def last_cause(condition: str) -> str:
    """Of what a runtime quotes of a plugin that quotes another, the last."""
    return condition.rpartition("message:")[2].strip().rstrip(".") or condition


def _untolerated_taint(finding: UntoleratedTaint) -> Words:
    taint = f"{finding.key}={finding.value}" if finding.value else finding.key
    if finding.nearest_toleration is None:
        nearest = f"no toleration names the key {finding.key}"
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


REASONS[NodeAffinityMismatch.reason] = Reason(
    plugins=("NodeAffinity",),
    means=(
        "The node's labels do not satisfy spec.nodeSelector, or none of the required node affinity terms. The "
        "expressions of one term must all hold; the terms are alternatives."
    ),
    arises=(
        "A typo in a key or value, labels that new nodes lack, a pin to a zone that is full, or an affinity "
        "that the scheduler's profile adds to every pod (addedAffinity)."
    ),
    fixes=(
        "correct or drop the expression that fails",
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
            text, label = f"{_none_of(number)} that the profile adds {_matches(number)}", "term"
        case _:
            text, label = f"{_none_of(number)} {_matches(number)}", "term"
    return Words(headline=text, facts=terms.facts(finding.terms, label), brief=terms.brief(finding.terms))


def _none_of(terms_count: int) -> str:
    return "the required term" if terms_count == 1 else f"none of {terms_count} required terms"


def _matches(terms_count: int) -> str:
    return "does not match" if terms_count == 1 else "matches"


REASONS[MissingNodeFeatures.reason] = Reason(
    plugins=("NodeDeclaredFeatures",),
    means="The pod needs a feature that the node's kubelet does not declare in status.declaredFeatures.",
    arises="A cluster with kubelets of several versions, or with different feature gates.",
    fixes=("upgrade the node or enable the gate there", "do without the feature"),
)


def _missing_node_features(finding: MissingNodeFeatures) -> Words:
    noun = "feature" if len(finding.missing) == 1 else "features"
    return Words(
        headline=f"the node does not declare {noun} {', '.join(finding.missing)}",
        facts=(Fact(label="asks", items=(", ".join(finding.required),)),),
    )


def hint_text(hint: LabelHint) -> str:
    """What a node selector asks for and no node has, and what comes close."""
    if not hint.values:
        close = f"; {hint.nearest} is on {count(hint.nearest_count, 'node')}" if hint.nearest else ""
        return f"no node has a label {hint.key}{close}"
    asked = f"={hint.values[0]}" if len(hint.values) == 1 else f" in [{', '.join(hint.values)}]"
    if hint.nearest:
        return f"no node has {hint.key}{asked}; {hint.nearest} is on {count(hint.nearest_count, 'node')}"
    in_use = listed([f"{value} ({number:,})" for value, number in hint.in_use], SHOWN_VALUES)
    return f"no node has {hint.key}{asked}; in use: {in_use}"
