"""Why a new node of a pool is nothing for a pod: facts, each with Karpenter's own text.

Upstream: scheduling/nodeclaim.go, scheduler.go, and operatorpkg/serrors for what stands in parentheses.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.types import Taint
from kschedx.karpenter.amounts import Amount
from kschedx.karpenter.instance_types import NoInstanceType, too_few_text
from kschedx.karpenter.ports import HostPort
from kschedx.karpenter.requirements import Conflict
from kschedx.karpenter.topology import Unsatisfiable


class NotTolerated(Struct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...]

    @property
    def text(self) -> str:
        return "; ".join(f"did not tolerate taint (taint={taint})" for taint in self.taints)


class PortTaken(Struct, frozen=True, kw_only=True):
    asked: HostPort
    taken: HostPort
    by: str
    """`namespace/name` of the pod that has it."""

    @property
    def text(self) -> str:
        told = ", ".join((*self.taken.facts("existing"), *self.asked.facts("pod")))
        return f"checking host port usage, pod hostport conflicts with existing hostport configuration ({told})"


class Incompatible(Struct, frozen=True, kw_only=True):
    """What the pod asks for, its volumes' place, or what a rule on other pods leaves."""

    conflicts: tuple[Conflict, ...]
    prefix: str = "incompatible requirements, "

    @property
    def text(self) -> str:
        return self.prefix + "; ".join(map(str, self.conflicts))

    @property
    def is_about_volumes(self) -> bool:
        return self.prefix == OF_VOLUMES


OF_VOLUMES = "incompatible volume requirements, "


class LimitReached(Struct, frozen=True, kw_only=True):
    """Every instance type would take more than the pool's limits leave."""

    pool: str
    remaining: dict[str, Amount]
    limits: dict[str, Amount]

    @property
    def text(self) -> str:
        return f"all available instance types exceed limits for nodepool (NodePool={self.pool})"


class NodeLimitReached(Struct, frozen=True, kw_only=True):
    pool: str
    limit: int

    @property
    def text(self) -> str:
        return f"node limits have been exhausted for nodepool (NodePool={self.pool})"


class CheapestAreTooFew(Struct, frozen=True, kw_only=True):
    """A node would do, but the cloud is asked for its cheapest types alone, and these do not meet `minValues`."""

    pool: str
    most: int
    too_few: Mapping[str, int]

    @property
    def text(self) -> str:
        return (
            "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
            f"{too_few_text(self.too_few)} (NodePool={self.pool})"
        )


REASONS: Mapping[type[Struct], str] = {
    NotTolerated: "untolerated-taint",
    PortTaken: "host-port-taken",
    Incompatible: "incompatible-requirements",
    Unsatisfiable: "unsatisfiable-topology",
    NoInstanceType: "no-instance-type",
    LimitReached: "limit-reached",
    NodeLimitReached: "node-limit-reached",
    CheapestAreTooFew: "cheapest-are-too-few",
}
"""Ids for documents."""

Rejection = (
    NotTolerated
    | PortTaken
    | Incompatible
    | Unsatisfiable
    | NoInstanceType
    | LimitReached
    | NodeLimitReached
    | CheapestAreTooFew
)


def volume_conflict(conflicts: tuple[Conflict, ...]) -> Incompatible:
    return Incompatible(conflicts=conflicts, prefix=OF_VOLUMES)


def topology_conflict(conflicts: tuple[Conflict, ...]) -> Incompatible:
    return Incompatible(conflicts=conflicts, prefix="")
