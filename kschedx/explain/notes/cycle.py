"""How the cycle went: who was left out, what chance decides, what was not looked at."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kschedx.explain.notes.facts import NoteFacts
from kschedx.framework.unheard import Unheard


class UnknownPlugins(NoteFacts, frozen=True, kw_only=True):
    """The plugins that kschedx does not have."""

    id: ClassVar[str] = "unknown-plugin"
    left_out: tuple[Unheard, ...]
    stands: bool
    """The answer is the same whatever they would say."""

    @property
    def facts(self) -> dict[str, object]:
        return {"plugins": [one.name for one in self.left_out]}


class NotMeasured(NoteFacts, frozen=True, kw_only=True):
    """The release was never held against the real kube-scheduler."""

    id: ClassVar[str] = "not-measured"
    version: str


class Gated(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "gated"
    gates: tuple[str, ...]
    """Without gates of its own, the plugin that holds the pod."""


class BoundByHand(NoteFacts, frozen=True, kw_only=True):
    """spec.nodeName names the node."""

    id: ClassVar[str] = "bound-by-hand"
    node: str
    exists: bool
    refusals: tuple[str, ...] = ()
    """Reasons for which the node's kubelet would refuse the pod."""

    @property
    def is_taken(self) -> bool:
        """Nothing that is sure keeps the pod from the node."""
        return self.exists and not self.refusals


class NominatedNodeFirst(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "nominated-node-first"
    node: str


class Sampling(NoteFacts, frozen=True, kw_only=True):
    """kube-scheduler looks at a part of the cluster."""

    id: ClassVar[str] = "sampling"
    nodes_to_find: int
    feasible: int

    @property
    def facts(self) -> dict[str, object]:
        return {"nodesToFind": self.nodes_to_find, "feasible": self.feasible}


class SingleFeasibleNode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "single-feasible-node"


class Tie(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "tie"
    nodes: tuple[str, ...]
    takes_turns: bool
    """As releases before the framework do it; later ones draw lots."""

    @property
    def facts(self) -> dict[str, object]:
        return {"nodes": list(self.nodes)}


class NotReadyNodes(NoteFacts, frozen=True, kw_only=True):
    """Nodes that are chosen although they are not ready: kube-scheduler looks at taints, and they have none of that."""

    id: ClassVar[str] = "not-ready-node"
    nodes: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"nodes": list(self.nodes)}


class AutoscalerUnreadable(NoteFacts, frozen=True, kw_only=True):
    """What cluster-autoscaler says of itself is not understood."""

    id: ClassVar[str] = "autoscaler-unreadable"
    error: str


class KarpenterUnreadable(NoteFacts, frozen=True, kw_only=True):
    """A NodePool is not understood."""

    id: ClassVar[str] = "karpenter-unreadable"
    error: str


class KeepsAccount(NoteFacts, frozen=True, kw_only=True):
    """A plugin is set up to remember what it gave away, which no snapshot has."""

    id: ClassVar[str] = "plugin-keeps-account"
    plugin: str
    setting: str

    @property
    def facts(self) -> dict[str, object]:
        return {"plugin": self.plugin, "setting": self.setting}


CycleNote: TypeAlias = (
    UnknownPlugins
    | KeepsAccount
    | NotMeasured
    | Gated
    | BoundByHand
    | NominatedNodeFirst
    | Sampling
    | SingleFeasibleNode
    | Tie
    | NotReadyNodes
    | AutoscalerUnreadable
    | KarpenterUnreadable
)
