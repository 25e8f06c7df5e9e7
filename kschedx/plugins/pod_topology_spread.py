"""PodTopologySpread (pkg/scheduler/framework/plugins/podtopologyspread)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, reduce
from typing import ClassVar, Self, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.findings import DomainCount, Finding, TopologyLabelMissing, TopologySpreadSkew
from kschedx.framework.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    WHOLE,
    CycleState,
    FilterPlugin,
    Following,
    Handle,
    NotPreparedError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import MAX_NODE_SCORE, SKIP, SUCCESS, Code, Status, Verdicts, error
from kschedx.kube.names import HOSTNAME, ZONE
from kschedx.kube.selectors import LabelSelector, Selector, compile_selector, required_node_affinity, selector_from_set
from kschedx.kube.tolerations import DO_NOT_SCHEDULE as NO_SCHEDULE_EFFECTS
from kschedx.kube.tolerations import find_untolerated
from kschedx.kube.types import Pod, ReplicaSet, ReplicationController, StatefulSet, TopologySpreadConstraint
from kschedx.releases import Release
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    ClusterRows,
    Column,
    FloatArray,
    IntArray,
    TableRow,
    all_false,
    pair_codes,
)
from kschedx.snapshot.nodes import NodeTable, PodRows, where_required
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

_Controller = TypeVar("_Controller", ReplicationController, ReplicaSet, StatefulSet)


def default_selector(pod: Pod, snapshot: Snapshot) -> Selector:
    """Combine the selectors of all Services that select the pod and of its ReplicationController, ReplicaSet, or
    StatefulSet. The result is empty if there are none (pkg/scheduler/framework/plugins/helper/spread.go)."""
    labels: dict[str, str] = {}
    for service in snapshot.services_of(pod):
        labels |= service.spec.selector or {}
    owner = pod.metadata.controller
    match (owner.api_version, owner.kind) if owner else None:
        case ("v1", "ReplicationController"):
            controller = _owner(pod, snapshot.replication_controllers)
            return selector_from_set(labels | (controller.spec.selector or {} if controller else {}))
        case ("apps/v1", "ReplicaSet"):
            replica_set = _owner(pod, snapshot.replica_sets)
            return _narrow(selector_from_set(labels), replica_set.spec.selector if replica_set else None)
        case ("apps/v1", "StatefulSet"):
            stateful_set = _owner(pod, snapshot.stateful_sets)
            return _narrow(selector_from_set(labels), stateful_set.spec.selector if stateful_set else None)
        case _:
            return selector_from_set(labels)


def _owner(pod: Pod, candidates: Iterable[_Controller]) -> _Controller | None:
    """Find the object with the name of the pod's controller, in the pod's namespace."""
    name = pod.metadata.controller.name if pod.metadata.controller else ""
    return next(
        (
            candidate
            for candidate in candidates
            if (candidate.metadata.namespace, candidate.metadata.name) == (pod.metadata.namespace, name)
        ),
        None,
    )


def _narrow(selector: Selector, other: LabelSelector | None) -> Selector:
    """Combine two selectors. An absent or invalid one adds nothing."""
    try:
        return selector.add(compile_selector(other).requirements)
    except InputError:
        return selector


class _SelectedPods(Struct, frozen=True):
    """The pods of one namespace that a selector matches; a constraint counts only the pod's own namespace. A tally
    leaves out terminating pods."""

    namespace: str
    selector: Selector

    def candidates(self, pods: PodTable) -> IntArray:
        return pods.rows_in_namespaces(lambda name: name == self.namespace)

    def where(self, pods: PodTable, rows: IntArray) -> BoolArray:
        """(row,) whether these rows of the pod table are in the namespace and match, running or not."""
        matches = pods.namespaces.take(rows).where(lambda name: name == self.namespace)
        inside = np.flatnonzero(matches)
        if len(inside):
            matches[inside] = pods.labels.take(rows[inside]).where(self.selector.matches)
        return matches

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        counted = self.where(pods, rows) & ~pods.terminating[rows]
        return counted.astype(np.int64)


# The pod's topology spread constraints, and the nodes whose pods they count. Upstream:
# pkg/scheduler/framework/plugins/podtopologyspread/common.go, and the system defaults in plugin.go.


_DO_NOT_SCHEDULE = "DoNotSchedule"
_SCHEDULE_ANYWAY = "ScheduleAnyway"
_HONOR = "Honor"
_IGNORE = "Ignore"

_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=_SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=_SCHEDULE_ANYWAY, max_skew=5),
)
"""The constraints of a pod without its own, unless the profile lists others."""


class _Constraint(Struct, frozen=True, kw_only=True):
    """A constraint with its selector compiled and its defaults set."""

    index: int  # position in spec.topologySpreadConstraints, or among the default constraints
    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool  # whether only nodes that match the pod's nodeSelector and required node affinity are counted
    honors_taints: bool  # whether only nodes whose taints the pod tolerates are counted

    @classmethod
    def of(cls, index: int, written: TopologySpreadConstraint, pod: Pod, release: Release) -> Self:
        """Compile a constraint with the fields that this version reads. Raises `InputError` for an invalid selector."""
        selector = compile_selector(written.label_selector)
        if release.enabled("MatchLabelKeysInPodTopologySpread") and selector.selectable:
            own = {key: pod.metadata.labels[key] for key in written.match_label_keys if key in pod.metadata.labels}
            selector = selector_from_set(own).add(selector.requirements)
        min_domains = 1 if written.min_domains is None else written.min_domains
        reads_policies = release.enabled("NodeInclusionPolicyInPodTopologySpread")
        return cls(
            index=index,
            max_skew=written.max_skew,
            topology_key=written.topology_key,
            selector=selector,
            min_domains=min_domains if release.enabled("MinDomainsInPodTopologySpread") else 0,
            honors_affinity=not reads_policies or (written.node_affinity_policy or _HONOR) == _HONOR,
            honors_taints=reads_policies and (written.node_taints_policy or _IGNORE) == _HONOR,
        )


class _ConstraintRules:
    """The constraints that apply to a pod under a profile."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._handle = handle
        self._system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = _SYSTEM_DEFAULTS if self._system_defaulted else args.default_constraints

    def of(self, pod: Pod, action: str) -> tuple[_Constraint, ...]:
        """Return the pod's constraints with this whenUnsatisfiable, or the default constraints if the pod has none at
        all. Default constraints use `default_selector` and do not apply if it is empty. Raises `InputError` for an
        invalid selector."""
        written = pod.spec.topology_spread_constraints
        if written:
            return self._compile(written, pod, action)
        constraints = self._compile(self._defaults, pod, action)
        selector = default_selector(pod, self._handle.snapshot) if constraints else Selector()
        return () if selector.empty else tuple(replace(constraint, selector=selector) for constraint in constraints)

    def _compile(self, written: Iterable[TopologySpreadConstraint], pod: Pod, action: str) -> tuple[_Constraint, ...]:
        return tuple(
            _Constraint.of(index, constraint, pod, self._handle.release)
            for index, constraint in enumerate(written)
            if constraint.when_unsatisfiable == action
        )

    def requires_all_topologies(self, pod: Pod) -> bool:
        """Return whether a node needs the labels of all soft constraints to be scored. The system defaults do not
        require it, so that clusters without zones still spread over hosts."""
        return bool(pod.spec.topology_spread_constraints) or not self._system_defaulted

    def _counts_none(self, selector: Selector) -> bool:
        return selector.empty and not self._handle.release.behavior.empty_selector_counts_every_pod

    def pods_per_node(self, selector: Selector, pod: Pod, pods: PodTable) -> IntArray:
        """(node,) of the whole cluster: the number of pods that a constraint of `pod` counts. Terminating pods do not
        count."""
        if self._counts_none(selector):
            return np.zeros(pods.node_count, dtype=np.int64)
        return pods.tally(_SelectedPods(pod.metadata.namespace, selector))

    def counts(self, selector: Selector, pod: Pod, row: int) -> bool:
        """Return whether a constraint of `pod` counts a pod of the handle's cluster."""
        selected, rows = _SelectedPods(pod.metadata.namespace, selector), np.array([row], dtype=np.int64)
        return not self._counts_none(selector) and bool(selected.weights(self._handle.nodes.pods, rows)[0])

    def counted_nodes(self, constraint: _Constraint, pod: Pod, nodes: NodeTable) -> BoolArray:
        """(node,) whether the constraint's inclusion policies count the node's pods and its domain."""
        counted = np.ones(len(nodes), dtype=np.bool_)
        if constraint.honors_affinity:
            required = pod.spec.required_node_affinity
            counted &= where_required(required_node_affinity(pod.spec.node_selector, required), nodes)
        if constraint.honors_taints:
            tolerations = pod.spec.tolerations
            comparison = self._handle.release.compares_taints
            counted &= nodes.taints.where(
                lambda taints: (
                    find_untolerated(taints, tolerations, effects=NO_SCHEDULE_EFFECTS, comparison=comparison) is None
                )
            )
        return counted


def _where_labelled(constraints: Iterable[_Constraint], nodes: NodeTable) -> BoolArray:
    """(node,) whether a node has the topology label of every constraint."""
    labelled = np.ones(len(nodes), dtype=np.bool_)
    for constraint in constraints:
        labelled &= nodes.label(constraint.topology_key).present
    return labelled


# Hard constraints: how matching pods are spread, and on which nodes the pod would exceed the maximum skew. Upstream:
# pkg/scheduler/framework/plugins/podtopologyspread/filtering.go. Upstream's two "critical paths" are the minimum over
# the other domains here. Both give the same result, because a change on a node affects only that node's domain.

REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = f"{REASON_SKEW} (missing required label)"

NO_DOMAIN = 2**31 - 1  # the minimum if there is no domain, upstream's math.MaxInt32
_SHOWN_DOMAINS = 10


class Spread(Struct, frozen=True, kw_only=True, dict=True):
    """The pods that match one constraint, by domain, with the changes that a what-if makes on single nodes. A domain is
    a value of the topology key; its number is the value's code in `domains`. (node,) arrays cover the whole cluster."""

    constraint: _Constraint
    domains: Column[str | None]  # (node,) the node's domain, or None without the label
    counted: BoolArray
    """(node,) whether the node's pods count: it has the labels of all constraints, and the policies include it."""
    exists: BoolArray  # (domain,) whether a counted node is in it. Other domains do not count for the minimum
    matching: IntArray  # (domain,) matching pods on counted nodes
    pods: PodTable
    selected: _SelectedPods
    """The pods that change the count when they are added or removed. Unlike the count, this includes terminating pods,
    and all pods under an empty selector."""
    change: IntArray  # (node,) matching pods added to the node minus those removed, each node separately
    self_match: int  # 1 if the constraint selects the incoming pod, else 0

    @classmethod
    def of(cls, constraint: _Constraint, pod: Pod, per_node: IntArray, counted: BoolArray, nodes: NodeTable) -> Self:
        """`nodes` are all nodes of the cluster; `per_node` is (node,) the matching pods."""
        domains = nodes.label(constraint.topology_key)
        per_node = per_node * counted
        size = len(domains.values)
        return cls(
            constraint=constraint,
            domains=domains,
            counted=counted,
            exists=np.bincount(domains.codes[counted], minlength=size) > 0,
            matching=np.bincount(domains.codes, weights=per_node, minlength=size).astype(np.int64),
            pods=nodes.pods,
            selected=_SelectedPods(pod.metadata.namespace, constraint.selector),
            change=np.zeros(len(nodes), dtype=np.int64),
            self_match=int(constraint.selector.matches(pod.metadata.labels)),
        )

    def change_pods(self, change: PodRows, sign: int) -> Self:
        """Return a copy with pods added (+1) or removed (-1)."""
        effective = self.selected.where(self.pods, change.pods) & self.counted[change.nodes]
        total = self.change.copy()
        np.add.at(total, change.nodes[effective], sign)
        return replace(self, change=total)

    @property
    def domain_count(self) -> int:
        return int(np.count_nonzero(self.exists))

    @property
    def too_few_domains(self) -> bool:
        """Whether there are fewer domains than minDomains, so that the minimum counts as 0."""
        return self.domain_count < self.constraint.min_domains

    @cached_property
    def least_of_others(self) -> IntArray:
        """(domain,) the smallest count of the other existing domains."""
        counts = np.where(self.exists, self.matching, NO_DOMAIN)
        least = np.full(len(counts), counts.min(initial=NO_DOMAIN), dtype=np.int64)
        if len(counts):
            smallest = int(counts.argmin())
            least[smallest] = np.delete(counts, smallest).min(initial=NO_DOMAIN)
        return least

    @property
    def rejected(self) -> BoolArray:
        """(node,) whether each node of the whole cluster lacks the label or exceeds the skew, without changes on single
        nodes."""
        counts = np.where(self.exists, self.matching, NO_DOMAIN)
        minimum = 0 if self.too_few_domains else int(counts.min(initial=NO_DOMAIN))
        skewed = self.matching + self.self_match - minimum > self.constraint.max_skew
        return ~self.domains.present | skewed[self.domains.codes]

    def on(self, rows: IntArray) -> _SpreadOnNodes:
        """The constraint's inequality on these nodes (rows of the whole cluster)."""
        domain = self.domains.codes[rows]
        matching = self.matching[domain] + self.change[rows]
        least = self.least_of_others[domain]
        minimum = np.where(self.exists[domain], np.minimum(matching, least), least)
        if self.too_few_domains:
            minimum = np.zeros_like(minimum)
        return _SpreadOnNodes(
            spread=self,
            missing=~self.domains.take(rows).present,
            matching=matching,
            minimum=minimum,
            change=self.change[rows],
            domain=domain,
        )


class _SpreadOnNodes(Struct, frozen=True, kw_only=True, dict=True):
    """One constraint on some nodes. All arrays are (node,) over these nodes, each with its own changes."""

    spread: Spread
    missing: BoolArray  # whether the node lacks the topology label
    matching: IntArray  # in the node's domain
    minimum: IntArray  # the smallest count of any domain, or 0 if there are too few domains
    change: IntArray
    domain: IntArray

    @cached_property
    def skewed(self) -> BoolArray:
        """matching + selfMatch - minimum > maxSkew."""
        return self.matching + self.spread.self_match - self.minimum > self.spread.constraint.max_skew

    @property
    def groups(self) -> IntArray:
        """(node,) equal only for nodes that all lack the label, or are in one domain and exceed maxSkew by as much; a
        host is no domain of its own."""
        constraint = self.spread.constraint
        domain = np.ones_like(self.domain) if constraint.topology_key == HOSTNAME else self.domain + 1
        excess = self.matching + self.spread.self_match - self.minimum - constraint.max_skew
        return pair_codes(np.where(self.missing, 0, domain), np.where(self.missing, 0, np.maximum(excess, 0)))

    def finding(self, row: TableRow) -> Finding | None:
        """Return why the constraint rejects a node, or None."""
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
            itself=self.spread.self_match,
            minimum=int(self.minimum[row]),
            max_skew=constraint.max_skew,
            domains=self._domains(row),
            domain_count=self.spread.domain_count,
            min_domains=constraint.min_domains if self.spread.too_few_domains else None,
        )

    def _domains(self, row: TableRow) -> tuple[DomainCount, ...]:
        """Return the largest domains with the node's changes."""
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
        return tuple(sorted(domains, key=lambda domain: (-domain.matching, domain.domain))[:_SHOWN_DOMAINS])


def _spreads_of(
    constraints: tuple[_Constraint, ...], rules: _ConstraintRules, pod: Pod, nodes: NodeTable
) -> tuple[Spread, ...]:
    """How the pods are spread for each constraint; `nodes` are all nodes of the cluster."""
    labelled = _where_labelled(constraints, nodes)
    return tuple(
        Spread.of(
            constraint,
            pod,
            rules.pods_per_node(constraint.selector, pod, nodes.pods),
            labelled & rules.counted_nodes(constraint, pod, nodes),
            nodes,
        )
        for constraint in constraints
    )


def _verdicts(spreads: tuple[Spread, ...], nodes: NodeTable) -> Verdicts:
    """The first constraint that a node fails decides. The findings name all of them."""
    judged = tuple(spread.on(nodes.rows) for spread in spreads)

    def explain(row: TableRow) -> tuple[Finding, ...]:
        findings = (nodes.finding(row) for nodes in judged)
        return tuple(finding for finding in findings if finding is not None)

    cases = (
        case
        for nodes in judged
        for case in (
            (nodes.missing, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_LABEL),
            (nodes.skewed, Code.UNSCHEDULABLE, REASON_SKEW),
        )
    )

    def finding_groups() -> IntArray:
        return reduce(pair_codes, (nodes.groups for nodes in judged), np.zeros(len(nodes), dtype=np.int64))

    return Verdicts.first_of(*cases, count=len(nodes), explain=explain, finding_groups=finding_groups)


# Soft constraints: nodes with fewer matching pods in their domains score higher. Upstream:
# pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.

_INVALID = -1
"""Upstream's mark for an ignored node's score. A constraint without maxSkew and without pods has the same value."""


class _SoftSpread(Struct, frozen=True, kw_only=True):
    """One constraint's part of the score; arrays are (node,) over the whole cluster."""

    constraint: _Constraint
    weight: float  # ln(domains + 2), so that a topology with few domains still counts beside one with many
    labelled: BoolArray
    domain: IntArray | None  # the number of the node's domain; None if each node is its own domain
    counted: BoolArray  # whether the node's pods count in its domain
    matching: IntArray  # matching pods in the node's domain; meaningful only for scored nodes

    def cost(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        """(node,) matching x weight + (maxSkew - 1) on nodes with the label, 0 elsewhere."""
        cost = self.matching[rows] * self.weight + float(self.constraint.max_skew - 1)
        return np.where(self.labelled[rows], cost, 0.0)


class _SoftSpreads(Struct, frozen=True, kw_only=True):
    spreads: tuple[_SoftSpread, ...]
    ignored: BoolArray  # (node,) over the whole cluster: feasible nodes that lack a required label

    @classmethod
    def none(cls, everything: NodeTable) -> Self:
        """The scores of a pod without soft constraints, if PreScore did not skip it."""
        return cls(spreads=(), ignored=np.zeros(len(everything), dtype=np.bool_))

    @classmethod
    def of(
        cls,
        constraints: tuple[_Constraint, ...],
        rules: _ConstraintRules,
        pod: Pod,
        feasible: NodeTable,
        everything: NodeTable,
    ) -> Self:
        """`feasible` are the nodes to score, `everything` all nodes of the cluster."""
        complete = np.ones(len(everything), dtype=np.bool_)
        if rules.requires_all_topologies(pod):
            complete = _where_labelled(constraints, everything)
        candidate = np.zeros(len(everything), dtype=np.bool_)
        candidate[feasible.rows] = True
        scored = candidate & complete

        def spread(constraint: _Constraint) -> _SoftSpread:
            matching = rules.pods_per_node(constraint.selector, pod, everything.pods)
            domain: IntArray | None = None
            if constraint.topology_key == HOSTNAME:
                # for the hostname key, a node's own pods count whatever the policies say, and every node is a domain
                counted = np.ones(len(everything), dtype=np.bool_)
                size = int(np.count_nonzero(scored[feasible.rows]))  # an extender may name a node twice
            else:
                counted = complete & rules.counted_nodes(constraint, pod, everything)
                domain = _domains(constraint.topology_key, everything)
                size = int(np.count_nonzero(np.bincount(domain[scored])))
                matching = np.bincount(domain, weights=matching * counted)[domain]
            return _SoftSpread(
                constraint=constraint,
                weight=_weight(size),
                domain=domain,
                counted=counted,
                labelled=everything.label(constraint.topology_key).present,
                matching=matching.astype(np.int64),
            )

        return cls(spreads=tuple(map(spread, constraints)), ignored=candidate & ~complete)

    def score(self, nodes: NodeTable) -> IntArray:
        """(node,) the rounded sum of the costs; 0 for ignored nodes."""
        costs = [spread.cost(nodes.rows) for spread in self.spreads]
        return np.where(self.ignored[nodes.rows], 0, _rounded_sum(costs, len(nodes)))

    def normalize(self, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) 100 for the smallest cost, less for larger ones, 0 for ignored nodes."""
        scored = ~self.ignored[nodes.rows]
        if not scored.any():
            return np.zeros(len(nodes), dtype=np.int64)
        return np.where(scored & (scores != _INVALID), _scale_scores(scores, scores[scored]), 0)


def _weight(domains: int) -> float:
    return math.log(float(domains + 2))


def _rounded_sum(costs: Sequence[FloatArray], count: int) -> IntArray:
    """(node,) the sum of the costs, added in their order."""
    total = sum(costs[1:], costs[0]) if costs else np.zeros(count, dtype=np.float64)
    whole = np.floor(total)
    return (whole + (total - whole >= 0.5)).astype(np.int64)


def _scale_scores(scores: IntArray, scored: IntArray) -> IntArray:
    """Scale so that the lowest scored cost becomes 100."""
    low, high = int(scored.min()), int(scored.max(initial=0))
    return np.full_like(scores, MAX_NODE_SCORE) if high == 0 else MAX_NODE_SCORE * (high + low - scores) // high


def _domains(key: str, nodes: NodeTable) -> IntArray:
    """(node,) the code of a label's value. As upstream, a missing label counts as an empty value."""
    column = nodes.label(key)
    first: dict[str, int] = {}
    numbers = [first.setdefault(value or "", code) for code, value in enumerate(column.values)]
    return np.array(numbers, dtype=np.int64)[column.codes]


class _FollowedSpreads(Following):
    """The constraints of a pod while identical pods are placed."""

    def __init__(
        self, hard: Iterable[tuple[Spread, bool]], soft: Iterable[tuple[_SoftSpread, bool]], *, all_topologies: bool
    ) -> None:
        """Each constraint comes with whether it counts the pods. `all_topologies`: nodes need the labels of all soft
        constraints."""
        self._hard = [(replace(spread, matching=spread.matching.copy()), counts) for spread, counts in hard]
        self._soft = [(replace(spread, matching=spread.matching.copy()), counts) for spread, counts in soft]
        self._all_topologies = all_topologies
        self._costs: list[FloatArray] = []
        if self._hard:
            self.rejected = self._rejected()

    def _rejected(self) -> BoolArray:
        rejected = all_false(len(self._hard[0][0].counted))
        for spread, _ in self._hard:
            rejected = rejected | spread.rejected
        return rejected

    def fit(self, feasible: ClusterRows) -> bool:
        spreads: list[tuple[_SoftSpread, bool]] = []
        for spread, counts in self._soft:
            if self._all_topologies and not spread.labelled[feasible].all():
                return False
            in_domains = None if spread.domain is None else np.bincount(spread.domain[feasible])
            size = len(feasible) if in_domains is None else int(np.count_nonzero(in_domains))
            spreads.append((replace(spread, weight=_weight(size)), counts))
        self._soft = spreads
        if spreads:
            self._costs = [spread.cost() for spread, _ in spreads]
            self.raw = _rounded_sum(self._costs, len(self._costs[0]))
        return self.raw is None or int(self.raw.min()) > _INVALID

    def place(self, node: ClusterRow) -> bool:
        moved = False
        for spread, counts in self._hard:
            if counts and spread.counted[node]:
                spread.matching[spread.domains.codes[node]] += 1
                moved = True
        for index, (soft, counts) in enumerate(self._soft):
            if counts and soft.counted[node]:
                if soft.domain is None:
                    soft.matching[node] += 1
                else:
                    np.add(soft.matching, soft.domain == soft.domain[node], out=soft.matching)
                self._costs[index] = soft.cost()
        if self._costs:
            self.raw = _rounded_sum(self._costs, len(self._costs[0]))
        if moved:
            self.rejected = self._rejected()
        return moved

    def normalized(self, scores: IntArray) -> IntArray:
        return _scale_scores(scores, scores)


HARD: StateKey[tuple[Spread, ...]] = StateKey("PreFilterPodTopologySpread")
SOFT: StateKey[_SoftSpreads] = StateKey("PreScorePodTopologySpread", 'error reading "{}" from cycleState: not found')


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """spec.topologySpreadConstraints, or the profile's default constraints for pods without any.

    DoNotSchedule constraints filter, ScheduleAnyway constraints score.
    """

    name = "PodTopologySpread"
    texts: ClassVar[Texts] = {
        "topology-label-missing": (REASON_LABEL,),
        "topology-spread-skew": (REASON_SKEW,),
        "plugin-message": texts_of_all_releases("hard_constraints_unreadable"),
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        if not isinstance(args, PodTopologySpreadArgs):
            args = PodTopologySpreadArgs(defaulting_type=SYSTEM_DEFAULTING)
        self._rules = _ConstraintRules(args, handle)

    def args_about(self, pod: Pod) -> object:
        return None if pod.spec.topology_spread_constraints else self.args

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if self.touches(pod) is Touch.CLUSTER else None

    def touches(self, pod: Pod) -> Touch:
        try:
            spreads = self._rules.of(pod, _DO_NOT_SCHEDULE) or self._rules.of(pod, _SCHEDULE_ANYWAY)
        except InputError:
            return Touch.CLUSTER
        return Touch.CLUSTER if spreads else Touch.NOTHING

    def follow(self, state: CycleState, pod: Pod, row: int) -> Following | None:
        try:
            hard, soft = state[HARD], state[SOFT].spreads
        except NotPreparedError:
            return None
        return _FollowedSpreads(
            [(spread, self._rules.counts(spread.constraint.selector, pod, row)) for spread in hard],
            [(spread, self._rules.counts(spread.constraint.selector, pod, row)) for spread in soft],
            all_topologies=self._rules.requires_all_topologies(pod),
        )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        try:
            constraints = self._rules.of(pod, _DO_NOT_SCHEDULE)
        except InputError as wrong:
            text = self.handle.release.messages.hard_constraints_unreadable
            return PreFilterResult(status=error(text.format(error=wrong)))
        state[HARD] = _spreads_of(constraints, self._rules, pod, nodes) if constraints else ()
        return PreFilterResult() if constraints else PRE_FILTER_SKIP

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[HARD] = tuple(spread.change_pods(change, +1) for spread in state[HARD])

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[HARD] = tuple(spread.change_pods(change, -1) for spread in state[HARD])

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return _verdicts(state[HARD], nodes)

    def reads_any(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> bool:
        return any(spread.selected.where(spread.pods, change.pods).any() for spread in state[HARD])

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        try:
            constraints = self._rules.of(pod, _SCHEDULE_ANYWAY)
        except InputError as wrong:
            text = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {wrong}"
            return error(text)
        if not constraints:
            state[SOFT] = _SoftSpreads.none(self.handle.nodes)
            return SKIP
        state[SOFT] = _SoftSpreads.of(constraints, self._rules, pod, nodes, self.handle.nodes)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return state[SOFT].score(nodes)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return state[SOFT].normalize(nodes, scores)
