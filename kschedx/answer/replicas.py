"""What becomes of the replicas that a workload lacks, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Covered(Struct, frozen=True, kw_only=True):
    """For how many of the replicas that wait a fix of one of them does."""

    title: str
    """The fix for all of them, where it takes more nodes than one."""
    pods: int
    """How many have a node then, one after the other."""
    of: int

    def to_dict(self) -> dict[str, object]:
        return {"title": self.title, "pods": self.pods, "of": self.of}


class Replicas(Struct, frozen=True, kw_only=True):
    """Beside the explanation of one of them: the first that stays without a node, else the first that evicts others,
    else the first."""

    workload: str
    """`shop/deploy/web`."""
    wanted: int
    """How many the workload asks for."""
    running: int
    """How many of its pods had a node before."""
    placed: Mapping[str, str]
    """Replicas, `namespace/name`, to the nodes that they get, in the order of the queue."""
    pending: tuple[str, ...]
    """Replicas that get none; in a rollout that stops, those that are not made either."""
    evicted: tuple[str, ...] = ()
    """Pods that preemption takes away for them."""
    refused: tuple[str, ...] = ()
    """Replicas that the API server does not take, so that nobody has to place them."""
    refusal: str = ""
    """Why, in the words of the event about the first of them."""
    kubelet: str = ""
    """The node that spec.nodeName names, whose kubelet takes or refuses them; empty where kube-scheduler decides."""
    replaced: int = 0
    """How many pods of the template before run until a rollout takes them away."""

    @property
    def asked(self) -> int:
        """How many the answer is about."""
        return len(self.placed) + len(self.pending) + len(self.refused)

    @property
    def fits(self) -> bool:
        return not self.pending and not self.refused

    def to_dict(self) -> dict[str, object]:
        return {
            "workload": self.workload,
            "wanted": self.wanted,
            "running": self.running,
            "placed": dict(self.placed),
            "pending": list(self.pending),
            "evicted": list(self.evicted),
            "replaced": self.replaced,
            **({"kubelet": self.kubelet} if self.kubelet else {}),
            **({"refused": list(self.refused), "refusal": self.refusal} if self.refused else {}),
        }
