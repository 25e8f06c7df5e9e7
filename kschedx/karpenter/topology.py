"""Where spread constraints, affinities and anti-affinities let a pod go, as Karpenter counts.

Upstream: scheduling/topologygroup.go, topologydomaingroup.go, topologynodefilter.go. A domain is a value of a topology
key. Where upstream takes any domain of several, the first name is taken here and `Chance` is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.api.selectors import LabelSelector, Selector
from kschedx.api.types import Labels, Pod, Taint, Toleration
from kschedx.karpenter.labels import HOSTNAME
from kschedx.karpenter.requirements import Requirement, Requirements
from kschedx.karpenter.tolerations import tolerates_all

MAX_SKEW = 2**31 - 1
_MOST_COUNTS = 25
HONOR = "Honor"


class TopologyType(StrEnum):
    """In Karpenter's words."""

    SPREAD = "topology spread"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"


class Domains:
    """The values of a key that new nodes can have, with the taints of the pools that have them."""

    def __init__(self) -> None:
        self._taints: dict[str, list[tuple[Taint, ...]]] = {}

    def add(self, domain: str, taints: tuple[Taint, ...]) -> None:
        """A pool without taints stands for all."""
        known = self._taints.get(domain)
        if known is None or not taints:
            self._taints[domain] = [taints]
        elif known[0]:
            known.append(taints)

    def tolerated(self, tolerations: Sequence[Toleration], *, honors_taints: bool) -> Iterable[str]:
        for domain in sorted(self._taints):
            if not honors_taints or any(tolerates_all(tolerations, taints) for taints in self._taints[domain]):
                yield domain


class NodeFilter(Struct, frozen=True, kw_only=True):
    """The nodes that a spread constraint counts; the default counts all."""

    terms: tuple[Requirements, ...] = ()
    honors_taints: bool = False
    honors_affinity: bool = False
    tolerations: tuple[Toleration, ...] = ()

    def matches(self, taints: Sequence[Taint], requirements: Requirements) -> bool:
        if self.honors_affinity and self.terms and not any(map(requirements.is_compatible, self.terms)):
            return False
        return not self.honors_taints or tolerates_all(self.tolerations, taints)


class Chance:
    """Whether a domain was taken where another one would have done as well."""

    def __init__(self) -> None:
        self.is_taken = False


class TopologyGroup:
    """Pods per domain that one rule counts, and the pods that have the rule."""

    def __init__(
        self,
        kind: TopologyType,
        key: str,
        *,
        namespaces: frozenset[str],
        selector: Selector,
        raw: LabelSelector | None,
        domains: Iterable[str],
        node_filter: NodeFilter,
        chance: Chance,
        max_skew: int = MAX_SKEW,
        min_domains: int | None = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.raw = raw
        self.node_filter = node_filter
        self.max_skew = max_skew
        self.counts = dict.fromkeys(domains, 0)
        self.empty = set(self.counts)
        self.owners: set[str] = set()
        self._selector = selector
        self._min_domains = min_domains
        self._chance = chance

    @property
    def counted_text(self) -> str:
        known = [f"{domain}: {self.counts[domain]}" for domain in sorted(self.counts)]
        more = f" and {len(known) - _MOST_COUNTS} other(s)" if len(known) > _MOST_COUNTS else ""
        return ", ".join(known[:_MOST_COUNTS]) + more

    def register(self, domain: str) -> None:
        if domain not in self.counts:
            self.counts[domain] = 0
            self.empty.add(domain)

    def record(self, domains: Iterable[str]) -> None:
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + 1
            self.empty.discard(domain)

    def selects(self, namespace: str, labels: Labels) -> bool:
        return namespace in self.namespaces and self._selector.matches(labels)

    def counts_pod(self, pod: Pod, taints: Sequence[Taint], requirements: Requirements) -> bool:
        selects = self.selects(pod.metadata.namespace, pod.metadata.labels)
        return selects and self.node_filter.matches(taints, requirements)

    def next_domains(self, pod: Pod, of_pod: Requirement, of_node: Requirement) -> Requirement:
        """The domains that the pod may go to; `DoesNotExist` where there is none."""
        match self.kind:
            case TopologyType.SPREAD:
                domain = self._spread(pod, of_pod, of_node)
                return Requirement.of(self.key, "In", () if domain is None else (domain,))
            case TopologyType.AFFINITY:
                return Requirement.of(self.key, "In", self._affinity(pod, of_pod, of_node))
            case TopologyType.ANTI_AFFINITY:
                return Requirement.of(self.key, "In", self._anti_affinity(of_pod, of_node))

    def _only_host(self, of_node: Requirement) -> str | None:
        """A node has one host name, which for a new one is no domain yet."""
        return next(iter(of_node.values)) if self.key == HOSTNAME and len(of_node.values) == 1 else None

    def _spread(self, pod: Pod, of_pod: Requirement, of_node: Requirement) -> str | None:
        counts_itself = self.selects(pod.metadata.namespace, pod.metadata.labels)
        host = self._only_host(of_node)
        if host is not None:
            return host if self.counts.get(host, 0) + counts_itself <= self.max_skew else None
        floor = self._least(of_pod)
        asked = of_node.values if of_node.operator == "In" else self.counts
        found = sorted(
            (self.counts[domain] + counts_itself, domain)
            for domain in asked
            if domain in self.counts
            and of_node.has(domain)
            and self.counts[domain] + counts_itself - floor <= self.max_skew
        )
        if len(found) > 1 and found[0][0] == found[1][0]:
            self._chance.is_taken = True
        return found[0][1] if found else None

    def _least(self, of_pod: Requirement) -> int:
        """The fewest pods of a domain that the pod may go to; a new host is always possible."""
        if self.key == HOSTNAME:
            return 0
        counts = [count for domain, count in self.counts.items() if of_pod.has(domain)]
        if self._min_domains is not None and len(counts) < self._min_domains:
            return 0
        return min(counts, default=MAX_SKEW)

    def _affinity(self, pod: Pod, of_pod: Requirement, of_node: Requirement) -> frozenset[str]:
        may_be_first = self.selects(pod.metadata.namespace, pod.metadata.labels) and (
            len(self.counts) == len(self.empty)
            or not any(count > 0 and of_pod.has(domain) for domain, count in self.counts.items())
        )
        host = self._only_host(of_node)
        if host is not None:
            fits = of_pod.has(host) and (self.counts.get(host, 0) > 0 or may_be_first)
            return frozenset({host} if fits else ())
        found = {
            domain for domain, count in self.counts.items() if count > 0 and of_pod.has(domain) and of_node.has(domain)
        }
        if found or not may_be_first:
            return frozenset(found)
        both = of_pod.intersection(of_node)
        first = [domain for domain in sorted(self.counts) if both.has(domain)]
        anywhere = [domain for domain in sorted(self.counts) if of_pod.has(domain)]
        if len(anywhere) > 1:
            self._chance.is_taken = True
        return frozenset((*first[:1], *anywhere[:1]))

    def _anti_affinity(self, of_pod: Requirement, of_node: Requirement) -> frozenset[str]:
        host = self._only_host(of_node)
        if host is not None:
            return frozenset({host} if self.counts.get(host, 0) == 0 else ())
        return frozenset(domain for domain in self.empty if of_node.has(domain) and of_pod.has(domain))


class Unsatisfiable(Struct, frozen=True, kw_only=True):
    """A rule that leaves no domain."""

    kind: TopologyType
    key: str
    counts: Mapping[str, int]
    counted_text: str
    of_pod: Requirement
    of_node: Requirement

    @property
    def text(self) -> str:
        """As upstream has it, which leaves its parenthesis open."""
        return (
            f"unsatisfiable topology constraint for {self.kind}, key={self.key} (counts = {self.counted_text}, "
            f"podDomains = {self.of_pod}, nodeDomains = {self.of_node}"
        )
