"""A node's own properties against what the pod asks of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts

CONDITION_OF_TAINT = {
    "node.kubernetes.io/not-ready": "Ready",
    "node.kubernetes.io/unreachable": "Ready",
    "node.kubernetes.io/memory-pressure": "MemoryPressure",
    "node.kubernetes.io/disk-pressure": "DiskPressure",
    "node.kubernetes.io/pid-pressure": "PIDPressure",
    "node.kubernetes.io/network-unavailable": "NetworkUnavailable",
}
"""Taints that the node lifecycle controller sets for a condition of the node."""
FAULTS = frozenset(
    {
        *CONDITION_OF_TAINT,
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""Taints that say that a node is unwell, or not set up yet."""
CONTROL_PLANE = "node-role.kubernetes.io/"
"""How taints of nodes begin that are kept for the control plane: no other pod is meant to come near."""
CORDON_TAINT = "node.kubernetes.io/unschedulable"


class NodeUnschedulable(Facts, frozen=True, kw_only=True):
    """The node is cordoned, and the pod does not tolerate node.kubernetes.io/unschedulable:NoSchedule."""

    reason: ClassVar[str] = "node-unschedulable"

    @property
    def distance(self) -> float:
        return 0.5


class NodeNameMismatch(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "node-name-mismatch"
    wanted: str


class UntoleratedTaint(Facts, frozen=True, kw_only=True):
    """The first taint that no toleration matches, and the toleration that comes closest, if any shares its key."""

    reason: ClassVar[str] = "untolerated-taint"
    key: str
    value: str
    effect: str
    nearest_toleration: int | None = None
    """Index into spec.tolerations."""
    nearest_text: str = ""
    """That toleration as kubectl would write it: `dedicated=cpu:NoSchedule`, `dedicated op=Exists`."""
    nearest_differs: tuple[str, ...] = ()
    """What is different about it: `key`, `value`, `effect` or `operator`."""
    condition: str = ""
    """What the node says of itself, where the taint stands for a condition: its message, or its reason."""

    @property
    def comes_with_cordon(self) -> bool:
        """It is the taint of a cordon, of which `NodeUnschedulable` tells already."""
        return self.key == CORDON_TAINT

    @property
    def distance(self) -> float:
        if self.comes_with_cordon:
            return 0.0
        if self.key.startswith(CONTROL_PLANE):
            return 2.0
        return 1.0 if self.nearest_toleration is None else 0.5

    def to_dict(self) -> dict[str, object]:
        told = super().to_dict() | {"nearestDiffers": " and ".join(self.nearest_differs)}
        return told if self.condition else {key: value for key, value in told.items() if key != "condition"}


class RequirementMatch(Struct, frozen=True, kw_only=True):
    """One requirement of a node selector term against a node."""

    key: str
    operator: str
    values: tuple[str, ...]
    actual: str | None
    """The node's value; None where it has no such label."""
    matched: bool


class TermMatch(Struct, frozen=True, kw_only=True):
    index: int
    requirements: tuple[RequirementMatch, ...]

    @property
    def missing(self) -> int:
        """How many requirements keep the term from matching."""
        return sum(not requirement.matched for requirement in self.requirements)


class NodeAffinityMismatch(Facts, frozen=True, kw_only=True):
    """`source` is `nodeSelector`, `nodeAffinity` or `addedAffinity`; none of the terms matches (nodeSelector is one
    term)."""

    reason: ClassVar[str] = "node-affinity-mismatch"
    source: str
    terms: tuple[TermMatch, ...]

    @property
    def same_as(self) -> Hashable:
        # which expressions fail tells more than which values the nodes have instead
        return self.source, tuple(tuple(one.matched for one in term.requirements) for term in self.terms)

    @property
    def distance(self) -> float:
        return float(min((term.missing for term in self.terms), default=1))


class MissingNodeFeatures(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "missing-node-features"
    required: tuple[str, ...]
    missing: tuple[str, ...]


NodeFinding = NodeUnschedulable | NodeNameMismatch | UntoleratedTaint | NodeAffinityMismatch | MissingNodeFeatures
