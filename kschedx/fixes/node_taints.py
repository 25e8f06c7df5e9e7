"""Taints that say something of a node that nobody should tolerate: what is wrong with it, who takes the taint away, and
for whom the node is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.api.types import Node, Pod, Taint
from kschedx.findings.node import CONDITION_OF_TAINT, CORDON_TAINT
from kschedx.fixes.required_labels import NEW_NAMES, own_terms

LIFECYCLE = "kube-controller-manager"
CLOUD = "cloud-controller-manager"

AGENT_NOT_READY = "/agent-not-ready"
"""How the taints end with which new nodes begin until an agent of their network or storage runs and takes them away."""

TAKEN_AWAY_BY: Mapping[str, str] = {
    **dict.fromkeys(CONDITION_OF_TAINT, LIFECYCLE),
    "node.cloudprovider.kubernetes.io/uninitialized": CLOUD,
    "node.cloudprovider.kubernetes.io/shutdown": CLOUD,
    "karpenter.sh/unregistered": "Karpenter",
}
"""Taints of nodes that are unwell or not set up yet, to who takes them away once they are."""

KEPT = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/",
    "karpenter.sh/",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    "ToBeDeletedByClusterAutoscaler",
    "CriticalAddonsOnly",
    "components.gke.io/",
    "eks.amazonaws.com/compute-type",
    "virtual-kubelet.io/",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
"""Taints of nodes that are unwell, about to go, or kept for the control plane, the provider's own pods or a single pod:
neither to tolerate nor to remove them is a fix."""

ABOUT_TO_GO = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    "node.kubernetes.io/out-of-service",
)

OF_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Taints, and labels, of the nodes that the cluster itself runs on."""


def taken_away_by(taint: Taint) -> str:
    """Who takes it away once the node is well; empty for a taint that somebody has put there on purpose."""
    if taint.key.endswith(AGENT_NOT_READY):
        return taint.key.removesuffix(AGENT_NOT_READY)
    return TAKEN_AWAY_BY.get(taint.key, "")


def is_of_the_kind(taint: Taint) -> bool:
    """Whether a new node of the same kind has it too: it says nothing of how this one is just now."""
    return not taken_away_by(taint) and taint.key != CORDON_TAINT and not taint.key.startswith(ABOUT_TO_GO)


def is_kept(taint: Taint, node: Node, pod: Pod, requested: Mapping[str, int]) -> bool:
    """Whether the node is for others than a pod that asks for `requested`: a taint with the name of a resource that the
    node offers keeps it for those who ask for that, and one with the name of a label for those who select it."""
    if taint.key in selected_keys(pod):
        return False
    if taint.key.endswith(AGENT_NOT_READY) or taint.key.startswith(KEPT):
        return True
    offered = node.status.allocatable.get(taint.key, "0") != "0"
    return offered and not requested.get(taint.key)


def selected_keys(pod: Pod) -> frozenset[str]:
    """Labels that the pod asks nodes for, under the names that they have now."""
    terms = (one for term in own_terms(pod) if term is not None for one in term.match_expressions)
    keys = {*pod.spec.node_selector, *(one.key for one in terms)}
    return frozenset({*keys, *(NEW_NAMES[key] for key in keys if key in NEW_NAMES)})


def are_all_of_control_plane(nodes: Iterator[Node]) -> bool:
    """Nobody has set up a node for other pods."""
    return all(any(taint.key in OF_CONTROL_PLANE for taint in node.spec.taints) for node in nodes)
