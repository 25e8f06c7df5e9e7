"""Spread constraints, and rules between pods."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts

HOSTNAME = "kubernetes.io/hostname"


def _domain(topology_key: str, domain: str | None) -> str | None:
    """The domain that nodes must share to share a headline; where each node is one, they share it all the same."""
    return "" if topology_key == HOSTNAME and domain is not None else domain


class DomainCount(Struct, frozen=True, kw_only=True):
    domain: str
    matching: int


class TopologySpreadSkew(Facts, frozen=True, kw_only=True):
    """`matching` + `itself` - `minimum` > `max_skew` in the node's domain."""

    reason: ClassVar[str] = "topology-spread-skew"
    constraint: int
    """Index into spec.topologySpreadConstraints, or among the default constraints."""
    topology_key: str
    domain: str
    matching: int
    itself: int
    minimum: int
    max_skew: int
    domains: tuple[DomainCount, ...]
    """Every domain with its count, largest first; at most ten."""
    domain_count: int
    min_domains: int | None = None
    """Set where fewer domains than this exist, which makes the minimum 0."""

    @property
    def skew(self) -> int:
        return self.matching + self.itself - self.minimum

    @property
    def same_as(self) -> Hashable:
        return self.constraint, _domain(self.topology_key, self.domain)

    @property
    def distance(self) -> float:
        return float(self.skew - self.max_skew)


class TopologyLabelMissing(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "topology-label-missing"
    constraint: int
    topology_key: str


class PodAffinityUnsatisfied(Facts, frozen=True, kw_only=True):
    """A required podAffinity term that no pod in the node's domain satisfies."""

    reason: ClassVar[str] = "pod-affinity-unsatisfied"
    term: int
    topology_key: str
    domain: str | None
    """The node's value of the topology key; None where it lacks the label."""
    selector: str
    """The label selector as kubectl writes it: `app=web,tier in (a,b)`; empty where it selects every pod, `<none>`
    where it selects none."""
    namespaces: tuple[str, ...]
    """Names of the namespaces in which it looks."""
    every_namespace: bool
    """It looks in all namespaces, whatever their names."""
    matches_itself: bool
    """This pod satisfies all of its own terms: it could be the first of its group if no such pod existed."""
    pods: tuple[str, ...]
    """Up to five of the pods anywhere in the cluster that satisfy all terms, `namespace/name`."""
    matching_pods: int
    """How many there are."""
    matching_domains: tuple[str, ...]
    """Up to five domains that do have such a pod."""

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class PodAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """This pod's required podAntiAffinity term meets a pod in the node's domain."""

    reason: ClassVar[str] = "pod-anti-affinity-conflict"
    term: int
    topology_key: str
    domain: str
    selector: str
    pods: tuple[str, ...]
    """Up to five of the pods, `namespace/name`."""
    pod_count: int

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class ExistingAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """A running pod's required podAntiAffinity term matches this pod."""

    reason: ClassVar[str] = "existing-anti-affinity-conflict"
    pods: tuple[str, ...]
    """Up to five of the pods whose rule it is, `namespace/name`."""
    pod_count: int
    term: int
    """Index of the term in the first pod's podAntiAffinity."""
    topology_key: str
    domain: str
    selector: str
    matched_labels: tuple[str, ...]
    """Labels of the incoming pod that the selector reads, `key=value`."""

    @property
    def same_as(self) -> Hashable:
        return self.topology_key, _domain(self.topology_key, self.domain), self.selector


TopologyFinding = (
    TopologySpreadSkew
    | TopologyLabelMissing
    | PodAffinityUnsatisfied
    | PodAntiAffinityConflict
    | ExistingAntiAffinityConflict
)
