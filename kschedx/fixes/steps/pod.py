"""Steps that change the pod."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.api.types import PodAffinityTerm, Taint
from kschedx.api.unlikely_amounts import UnlikelyQuantity
from kschedx.findings import RequirementMatch
from kschedx.fixes.cost import Cost


class RemoveGates(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    gates: tuple[str, ...]


class AwaitController(Struct, frozen=True, kw_only=True):
    """The pod's turn comes, and a controller lifts its gates: what is changed besides must be done before."""

    cost: ClassVar[Cost] = Cost.WAITING
    gates: tuple[str, ...]
    controller: str


class Tolerate(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    taints: tuple[Taint, ...]


class SelectInstead(Struct, frozen=True, kw_only=True):
    """Of a required term, one expression as it was probably meant."""

    cost: ClassVar[Cost] = Cost.TYPO
    source: str
    term: int
    wrong: RequirementMatch
    meant: RequirementMatch


class DropRequirements(Struct, frozen=True, kw_only=True):
    """Of a required term, the expressions that a node does not satisfy."""

    cost: ClassVar[Cost] = Cost.LESS
    source: str
    term: int
    requirements: tuple[RequirementMatch, ...]


class DropNodeNames(Struct, frozen=True, kw_only=True):
    """The required terms of the node affinity no longer name nodes."""

    cost: ClassVar[Cost] = Cost.LESS


class DropNodeName(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    wanted: str


class UseHostPort(Struct, frozen=True, kw_only=True):
    """Another host port; 0 gives it up."""

    cost: ClassVar[Cost] = Cost.LESS
    port: int
    protocol: str
    instead: int


class HonorInSpread(Struct, frozen=True, kw_only=True):
    """A spread constraint that no longer counts nodes that the pod cannot use."""

    cost: ClassVar[Cost] = Cost.POD
    constraint: int
    topology_key: str
    taints: bool
    """The nodes with taints that the pod does not tolerate; otherwise those that its node affinity excludes."""


class RaiseMaxSkew(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str
    before: int
    after: int


class SpreadAnyway(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str


class PreferTerm(Struct, frozen=True, kw_only=True):
    """A required pod (anti-)affinity term becomes a preference."""

    cost: ClassVar[Cost] = Cost.LESS
    number: int
    """Of the terms that the pod has now, from 1."""
    selector: str
    rule: PodAffinityTerm
    anti: bool


class RaisePriority(Struct, frozen=True, kw_only=True):
    """Another priority class, of those whose pods preempt others."""

    cost: ClassVar[Cost] = Cost.POD
    name: str
    value: int


class SelectPodsInstead(Struct, frozen=True, kw_only=True):
    """A required podAffinity term as it was probably meant: with the label that pods have, or where such pods are."""

    number: int
    """Of the terms that the pod has now, from 1."""
    selector: str
    rule: PodAffinityTerm
    meant: PodAffinityTerm
    label: str = ""
    """`key=value` that is selected now; empty where only the namespace is another."""

    @property
    def cost(self) -> Cost:
        return Cost.TYPO if self.label else Cost.POD


class UseClaim(Struct, frozen=True, kw_only=True):
    """A claim that is there in place of one that is not, and that is nearly called the same."""

    cost: ClassVar[Cost] = Cost.TYPO
    claim: str
    meant: str


class ResourceAmount(Struct, frozen=True, kw_only=True):
    resource: str
    amount: int
    """Milli-units of cpu, units of everything else."""


class RequestAtMost(Struct, frozen=True, kw_only=True):
    amounts: tuple[ResourceAmount, ...]
    is_most: bool = True
    """It is half of what the pod asks for, or more."""

    @property
    def cost(self) -> Cost:
        return Cost.LESS if self.is_most else Cost.STOPGAP


class RequestAsMeant(Struct, frozen=True, kw_only=True):
    """Amounts whose suffix is hardly meant, `500M` of cpu, as they were probably meant."""

    cost: ClassVar[Cost] = Cost.TYPO
    amounts: tuple[UnlikelyQuantity, ...]


class RequestInstead(Struct, frozen=True, kw_only=True):
    """A resource that no node offers, under the name of one that some node does."""

    cost: ClassVar[Cost] = Cost.TYPO
    resource: str
    meant: str
