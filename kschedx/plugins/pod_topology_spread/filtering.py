"""Hard constraints: how the matching pods are spread, and on which nodes this pod would make the skew too large.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go. What upstream keeps as two "critical paths" is
the minimum over the other domains here: only the node's own domain can change in its world, so both give the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.findings import DomainCount, Finding, TopologyLabelMissing, TopologySpreadSkew
from kschedx.framework.status import Code, Verdicts
from kschedx.plugins.pod_topology_spread.constraints import Constraint, ConstraintRules, where_labelled, where_present
from kschedx.plugins.pod_topology_spread.matching import MatchingPods, SelectedPods
from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import TableRow

REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = f"{REASON_SKEW} (missing required label)"

NO_DOMAIN = 2**31 - 1
"""The minimum over no domain at all, upstream's math.MaxInt32."""
SHOWN_DOMAINS = 10


class Spread(Struct, frozen=True, kw_only=True, dict=True):
    """The pods that match one constraint, by domain, and what a what-if has changed on single nodes.

    A domain is a value of the topology key, and its number the value's code in `domains`. (node,) arrays are over the
    whole cluster.
    """

    constraint: Constraint
    domains: Column[str | None]
    """(node,) the node's domain, None where it lacks the label."""
    counted: BoolArray
    """(node,) whether the node's pods count: it has the labels of all constraints, and the policies include it."""
    exists: BoolArray
    """(domain,) whether any counted node is in it; other domains do not take part in the minimum."""
    matching: IntArray
    """(domain,) matching pods on counted nodes."""
    pods: PodTable
    selected: SelectedPods
    """The pods whose adding or removing changes the count. Unlike the count itself this includes terminating pods, and
    all under an empty selector."""
    change: IntArray
    """(node,) matching pods added to the node minus those removed, in the node's own world."""
    itself: int
    """1 where the constraint selects the pod that is being scheduled, else 0."""

    @classmethod
    def of(cls, constraint: Constraint, pod: Pod, pods: MatchingPods, counted: BoolArray, nodes: NodeTable) -> Self:
        """`nodes` are all nodes of the cluster."""
        domains = nodes.label(constraint.topology_key)
        per_node = pods.per_node(constraint.selector) * counted
        size = len(domains.values)
        return cls(
            constraint=constraint,
            domains=domains,
            counted=counted,
            exists=np.bincount(domains.codes[counted], minlength=size) > 0,
            matching=np.bincount(domains.codes, weights=per_node, minlength=size).astype(np.int64),
            pods=nodes.pods,
            selected=pods.selected(constraint.selector),
            change=np.zeros(len(nodes), dtype=np.int64),
            itself=int(constraint.selector.matches(pod.metadata.labels)),
        )

    def changed(self, change: PodRows, sign: int) -> Self:
        """The same with pods added (+1) or removed (-1)."""
        effective = self.selected.where(self.pods, change.pods) & self.counted[change.nodes]
        total = self.change.copy()
        np.add.at(total, change.nodes[effective], sign)
        return replace(self, change=total)

    @property
    def domain_count(self) -> int:
        return int(np.count_nonzero(self.exists))

    @property
    def too_few_domains(self) -> bool:
        """Fewer than minDomains, so that the minimum counts as 0."""
        return self.domain_count < self.constraint.min_domains

    @cached_property
    def least_elsewhere(self) -> IntArray:
        """(domain,) the smallest count of any other domain that exists."""
        counts = np.where(self.exists, self.matching, NO_DOMAIN)
        least = np.full(len(counts), counts.min(initial=NO_DOMAIN), dtype=np.int64)
        if len(counts):
            smallest = int(counts.argmin())
            least[smallest] = np.delete(counts, smallest).min(initial=NO_DOMAIN)
        return least

    def on(self, rows: IntArray) -> SpreadOnNodes:
        """The constraint's inequality on these nodes (rows of the whole cluster)."""
        domain = self.domains.codes[rows]
        matching = self.matching[domain] + self.change[rows]
        least = self.least_elsewhere[domain]
        minimum = np.where(self.exists[domain], np.minimum(matching, least), least)
        if self.too_few_domains:
            minimum = np.zeros_like(minimum)
        return SpreadOnNodes(
            spread=self,
            missing=~where_present(self.domains.take(rows)),
            matching=matching,
            minimum=minimum,
            change=self.change[rows],
            domain=domain,
        )


class SpreadOnNodes(Struct, frozen=True, kw_only=True, dict=True):
    """One constraint on some nodes, each in its own world; all arrays are (node,) over those."""

    spread: Spread
    missing: BoolArray
    """The node lacks the topology label."""
    matching: IntArray
    """Matching pods in the node's domain."""
    minimum: IntArray
    """The smallest count of any domain, or 0 where there are too few of them."""
    change: IntArray
    domain: IntArray

    @cached_property
    def skewed(self) -> BoolArray:
        """matching + itself - minimum > maxSkew."""
        return self.matching + self.spread.itself - self.minimum > self.spread.constraint.max_skew

    def finding(self, row: TableRow) -> Finding | None:
        """Why the constraint rejects a node, or None where it does not."""
        constraint = self.spread.constraint
        if self.missing[row]:
            return TopologyLabelMissing(constraint=constraint.index, topology_key=constraint.topology_key)
        if not self.skewed[row]:
            return None
        return TopologySpreadSkew(
            constraint=constraint.index,
            topology_key=constraint.topology_key,
            domain=self.spread.domains.values[self.domain[row]] or "",
            matching=int(self.matching[row]),
            itself=self.spread.itself,
            minimum=int(self.minimum[row]),
            max_skew=constraint.max_skew,
            domains=self._domains(row),
            domain_count=self.spread.domain_count,
            min_domains=constraint.min_domains if self.spread.too_few_domains else None,
        )

    def _domains(self, row: TableRow) -> tuple[DomainCount, ...]:
        """The largest domains, as the node sees them."""
        if not self.change[row]:
            return self._unchanged_domains
        counts = self.spread.matching.copy()
        counts[self.domain[row]] = self.matching[row]
        return self._largest(counts)

    @cached_property
    def _unchanged_domains(self) -> tuple[DomainCount, ...]:
        return self._largest(self.spread.matching)

    def _largest(self, counts: IntArray) -> tuple[DomainCount, ...]:
        names = self.spread.domains.values
        domains = (
            DomainCount(domain=names[code] or "", matching=int(counts[code]))
            for code in np.flatnonzero(self.spread.exists).tolist()
        )
        return tuple(sorted(domains, key=lambda one: (-one.matching, one.domain))[:SHOWN_DOMAINS])


def spreads_of(
    constraints: tuple[Constraint, ...], rules: ConstraintRules, pod: Pod, nodes: NodeTable
) -> tuple[Spread, ...]:
    """How the pods are spread for each constraint; `nodes` are all nodes of the cluster."""
    pods = rules.matching_pods(pod, nodes)
    labelled = where_labelled(constraints, nodes)
    return tuple(Spread.of(one, pod, pods, labelled & rules.counted(one, pod, nodes), nodes) for one in constraints)


def verdicts(spreads: tuple[Spread, ...], nodes: NodeTable) -> Verdicts:
    """The first constraint that a node fails decides; the findings tell of all that it fails."""
    judged = tuple(spread.on(nodes.rows) for spread in spreads)

    def explain(row: TableRow) -> tuple[Finding, ...]:
        findings = (one.finding(row) for one in judged)
        return tuple(finding for finding in findings if finding is not None)

    cases = (
        case
        for one in judged
        for case in (
            (one.missing, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_LABEL),
            (one.skewed, Code.UNSCHEDULABLE, REASON_SKEW),
        )
    )
    return Verdicts.first_of(*cases, count=len(nodes), explain=explain)
