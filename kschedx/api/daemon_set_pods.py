"""A DaemonSet's pods and their nodes, as its controller sees them: pkg/controller/daemon/daemon_controller.go and
util/daemonset_util.go."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, required_node_affinity
from kschedx.api.tolerations import DO_NOT_SCHEDULE, NO_EXECUTE, untolerated
from kschedx.api.types import Affinity, Node, NodeAffinity, Pod, PodSpec

NAME = "metadata.name"


def runs_on(spec: PodSpec, node: Node, *, comparison: bool) -> bool:
    """Whether a pod is made for the node (NodeShouldRunDaemonPod): by its name, affinity and taints, not by room.

    `comparison`: taints and tolerations know the operators of the gate TaintTolerationComparisonOperators.
    """
    return _selects(spec, node) and not _is_kept_out(spec, node, DO_NOT_SCHEDULE, comparison=comparison)


def goes_on(spec: PodSpec, node: Node, *, comparison: bool) -> bool:
    """Whether a pod that is there stays, though none might be made any more."""
    return _selects(spec, node) and not _is_kept_out(spec, node, (NO_EXECUTE,), comparison=comparison)


def _selects(spec: PodSpec, node: Node) -> bool:
    if spec.node_name not in ("", node.name):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required_node_affinity(spec.node_selector, required).matches(node.metadata.labels, node.name)


def _is_kept_out(spec: PodSpec, node: Node, effects: tuple[str, ...], *, comparison: bool) -> bool:
    return untolerated(node.spec.taints, spec.tolerations, effects=effects, comparison=comparison) is not None


def pinned(pod: Pod, node: str) -> Pod:
    """ReplaceDaemonSetPodNodeNameNodeAffinity: every required term gives way to the node's name."""
    term = NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key=NAME, operator="In", values=(node,)),))
    affinity = pod.spec.affinity or Affinity()
    own = affinity.node_affinity or NodeAffinity()
    required = NodeSelector(node_selector_terms=(term,))
    rules = replace(own, required_during_scheduling_ignored_during_execution=required)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=rules)))


def pinned_to(spec: PodSpec) -> str:
    """The node that `pinned` names (GetTargetNodeName); empty where it names none."""
    rules = spec.affinity.node_affinity if spec.affinity is not None else None
    required = rules.required_during_scheduling_ignored_during_execution if rules is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for one in term.match_fields:
            if one.key == NAME and one.operator == "In" and len(one.values) == 1:
                return one.values[0]
    return ""


def without_node_names(pod: Pod) -> Pod:
    """With required node affinity terms that name no node; terms that then are empty go."""
    affinity = pod.spec.affinity or Affinity()
    rules = affinity.node_affinity
    required = rules.required_during_scheduling_ignored_during_execution if rules else None
    if rules is None or required is None:
        return pod
    terms = tuple(replace(term, match_fields=()) for term in required.node_selector_terms)
    kept = tuple(term for term in terms if not term.is_empty)
    after = replace(required, node_selector_terms=kept) if len(kept) == len(terms) else None
    rules = replace(rules, required_during_scheduling_ignored_during_execution=after)
    is_empty = after is None and not rules.preferred_during_scheduling_ignored_during_execution
    affinity = replace(affinity, node_affinity=None if is_empty else rules)
    return replace(pod, spec=replace(pod.spec, affinity=None if affinity == Affinity() else affinity))
