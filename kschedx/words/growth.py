"""Words about node groups of cluster-autoscaler and NodePools of Karpenter: each says the same facts in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from kschedx.wording import Fact

MOST_NAMES = 3

OUTCOMES: Mapping[str, tuple[str, str]] = {
    "not-marked-unschedulable": (
        "ignores the pod: kube-scheduler has not set the condition Unschedulable", "not yet marked unschedulable"
    ),
    "nominated": ("adds no node: preemption nominates a node for the pod", "nominated for a node"),
    "daemonset": ("adds no node: a DaemonSet pod is bound to its own node", "of DaemonSets, ignored"),
    "consumes-provisioning-request": (
        "ignores the pod: it consumes a ProvisioningRequest", "consuming a ProvisioningRequest"
    ),
    "static": ("adds no node: a static pod belongs to its kubelet", "static"),
    "deleting": ("adds no node: the pod is being deleted", "being deleted"),
    "expendable": ("", "ignored for low priority"),
    "too-young": ("waits: the pod is younger than the scale-up delay", "younger than the scale-up delay"),
    "all-new": ("waits: all pending pods are new, more may follow", "new, more may follow"),
    "not-looked-at": ("ignores all pods in this loop: one is nominated for a node that has not started", "ignored"),
    "avoids-karpenter": (
        "adds no node: it ignores pods that require or prefer nodes without karpenter.sh/nodepool",
        "excluding nodes of Karpenter",
    ),
    "refused": ("", "ignored for their spec"),
    "no-pools": ("has no usable NodePool", "without a usable NodePool"),
    "waiting-for-nodeclaim": ("", "waiting for a NodeClaim to launch"),
}  # fmt: skip
"""Outcome of a pod that an autoscaler does not consider: the sentence about the pod, and what follows the number of
such pods."""


class PlaceWords(Struct, frozen=True, kw_only=True):
    """Why a node group or NodePool does not help a pod."""

    name: str
    text: str
    order: tuple[float, ...]  # the nearest comes first
    facts: Callable[[], Iterable[Fact]] = tuple
    is_brief: bool = False  # whether the facts are shown only with everything


class DecisionWords(Struct, frozen=True, kw_only=True):
    """What an autoscaler does about a pod."""

    sentence: str
    places: Iterable[PlaceWords]
    noun: str
    first: str = ""  # what comes before the places
    event: str
    recorded: str  # the recorded event
    is_same: bool  # whether it is equal to `event`
    settings: str  # what may have been different when the event was recorded
    reports: tuple[str, ...] = ()
    basis: tuple[str, ...]


class GrowthWords(Struct, frozen=True, kw_only=True):
    added: Sequence[str]  # `2 nodes to workers (1 → 3, maximum 5)`
    how: str  # what follows `for 3 pods`
    no_help: str  # `no node group helps {}`, with a place for the pods that are left
    expected: Sequence[str] = ()
    failed: Sequence[str] = ()
    reasons: Mapping[str, Sequence[str]]
    """Why most pods are left, with the names of the node groups or NodePools; none if each has this reason."""
    refused: int  # the number of pods that are left for these reasons
