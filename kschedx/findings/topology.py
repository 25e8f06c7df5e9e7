"""Findings about topology spread constraints, and affinity between pods."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts
from kschedx.kube.names import HOSTNAME


def _domain(topology_key: str, domain: str | None) -> str | None:
    """Return the domain that nodes must share to share a headline; empty if each node is its own domain."""
    return "" if topology_key == HOSTNAME and domain is not None else domain


class DomainCount(Struct, frozen=True, kw_only=True):
    domain: str
    matching: int


class TopologySpreadSkew(Facts, frozen=True, kw_only=True):
    """`matching` + `itself` - `minimum` > `max_skew` in the node's domain."""

    reason: ClassVar[str] = "topology-spread-skew"
    constraint: int
    """The index in spec.topologySpreadConstraints, or in the default constraints."""
    topology_key: str
    domain: str
    matching: int
    itself: int
    minimum: int
    max_skew: int
    domains: tuple[DomainCount, ...]
    """Largest first; at most ten."""
    domain_count: int
    min_domains: int | None = None
    """Set if there are fewer domains than this, which makes the minimum 0."""

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
    """The node's value of the topology key; None if it lacks the label."""
    selector: str
    """The label selector as kubectl prints it: `app=web,tier in (a,b)`; empty if it selects every pod, `<none>` if it
    selects none."""
    namespaces: tuple[str, ...]
    every_namespace: bool
    matches_itself: bool
    """Whether the pod satisfies all of its own terms, so that it could be the first of its group if no other pod
    did."""
    pods: tuple[str, ...]
    """Up to five in the whole cluster that satisfy all terms, `namespace/name`."""
    matching_pods: int
    matching_domains: tuple[str, ...]
    """Up to five."""

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class PodAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """A required podAntiAffinity term of the pod matches a pod in the node's domain."""

    reason: ClassVar[str] = "pod-anti-affinity-conflict"
    term: int
    topology_key: str
    domain: str
    selector: str
    pods: tuple[str, ...]
    """Up to five, `namespace/name`."""
    pod_count: int

    @property
    def same_as(self) -> Hashable:
        return self.term, _domain(self.topology_key, self.domain)


class ExistingAntiAffinityConflict(Facts, frozen=True, kw_only=True):
    """A required podAntiAffinity term of a running pod matches the pod."""

    reason: ClassVar[str] = "existing-anti-affinity-conflict"
    pods: tuple[str, ...]
    """Up to five with the term, `namespace/name`."""
    pod_count: int
    term: int
    """The index of the term in the first pod's podAntiAffinity."""
    topology_key: str
    domain: str
    selector: str
    matched_labels: tuple[str, ...]
    """The labels of the incoming pod that the selector reads, `key=value`."""

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
