"""The runner of a Policy's predicates and priorities on a snapshot.

Upstream: podFitsOnNode, addNominatedPods, and PrioritizeNodes in pkg/scheduler/core/generic_scheduler.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Self, TypeVar

import numpy as np
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.findings import ClaimBeingDeleted, ClaimNotFound
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.cycle import Cycle, Outcome, PreFilterOutcome, PreFilterStep, Scores
from kschedx.framework.interface import CycleState, PostFilterResult
from kschedx.framework.preemption import NO_VICTIMS, NOT_HELPFUL, PreemptionTrial, best_candidates, ranks
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import NO_NODES
from kschedx.framework.scheduler import FilteredNodes, filter_nodes
from kschedx.framework.status import SUCCESS, Candidate, Code, FilterOutcome, Status, Verdicts, error
from kschedx.framework.victims import budget_selector, covers, potential_victims
from kschedx.kube import types
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.scalars import MAX_INT64
from kschedx.kube.storage import not_found_text
from kschedx.kube.types import Pod, PodDisruptionBudget
from kschedx.legacy import affinity_predicates as pods
from kschedx.legacy import node_predicates as nodes
from kschedx.legacy import priorities as p
from kschedx.legacy import volume_predicates as volumes
from kschedx.legacy.api_schema import Schema, stored_snapshot, stored_spec
from kschedx.legacy.interface import MAX_PRIORITY, Predicate, Priority, Provider, Texts, join_verdicts
from kschedx.legacy.node_predicates import unusable
from kschedx.legacy.policy import SchedulingPolicy, load_policy
from kschedx.plugins.inter_pod_affinity.terms import ExistingTerms
from kschedx.releases import Release
from kschedx.snapshot.columns import BoolArray, ClusterRow, IntArray, TableRow, each_cluster_row, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

# The default providers of kube-scheduler 1.13 and of 1.5, the original design.
# Upstream: pkg/scheduler/algorithmprovider/defaults/defaults.go and algorithm/predicates/error.go, in 1.5 below
# plugin/.

_T = TypeVar("_T")


def _classes_by_name(*classes: type[_T]) -> dict[str, type[_T]]:
    return {cls.__name__: cls for cls in classes}


# Common to both versions.

_NOT_BY_DEFAULT = frozenset({"HostName", "PodFitsHostPorts", "PodFitsPorts", "MatchNodeSelector", "PodFitsResources"})
_PREDICATES: Mapping[str, type[Predicate]] = {
    **_classes_by_name(nodes.HostName, nodes.PodFitsHostPorts, nodes.PodFitsResources, volumes.NoDiskConflict),
    "PodFitsPorts": nodes.PodFitsHostPorts,
}
_PRIORITIES: Mapping[str, type[Priority]] = _classes_by_name(
    p.EqualPriority, p.InterPodAffinityPriority, p.LeastRequestedPriority, p.MostRequestedPriority,
    p.NodePreferAvoidPodsPriority,
)  # fmt: skip
_WEIGHTS: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}

# 1.13

_ORDER = (
    "CheckNodeCondition", "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts",
    "MatchNodeSelector", "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints",
    "PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", "CheckServiceAffinity", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "CheckVolumeBinding",
    "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)  # fmt: skip
_BY_TAINTS = _classes_by_name(nodes.CheckNodeUnschedulable)  # with TaintNodesByCondition, taints replace conditions
_BY_CONDITIONS = _classes_by_name(
    nodes.CheckNodeCondition, nodes.CheckNodeMemoryPressure, nodes.CheckNodePIDPressure, nodes.CheckNodeDiskPressure
)
"""Conditions without TaintNodesByCondition."""


_SENTENCES = Texts(
    host_name="node(s) didn't match the requested hostname",
    host_ports="node(s) didn't have free ports for the requested pod ports",
    node_selector="node(s) didn't match node selector",
    node_label="node(s) didn't have the requested labels",
    taints="node(s) had taints that the pod didn't tolerate",
    disk_conflict="node(s) had no available disk",
    volume_count="node(s) exceed max volume count",
    volume_zone="node(s) had no available volume zone",
    volume_binding="node(s) didn't find available persistent volumes to bind",
    volume_node_affinity="node(s) had volume node affinity conflict",
    service_affinity="node(s) didn't match service affinity",
    pod_affinity="node(s) didn't match pod affinity/anti-affinity",
    own_affinity="node(s) didn't match pod affinity rules",
    own_anti_affinity="node(s) didn't match pod anti-affinity rules",
    existing_anti_affinity="node(s) didn't satisfy existing pods anti-affinity rules",
    memory_pressure="node(s) had memory pressure",
    disk_pressure="node(s) had disk pressure",
    pid_pressure="node(s) had pid pressure",
    unschedulable="node(s) were unschedulable",
    not_ready="node(s) were not ready",
    out_of_disk="node(s) were out of disk space",
    network_unavailable="node(s) had unavailable network",
)


def _v1_13(release: Release) -> Provider:
    """Return the scheduler of 1.13 with the gates of a release."""
    by_taints = release.enabled("TaintNodesByCondition")
    predicates: dict[str, type[Predicate]] = {
        **_PREDICATES,
        **_classes_by_name(
            nodes.GeneralPredicates, nodes.MatchNodeSelector, nodes.PodToleratesNodeTaints, volumes.MaxEBSVolumeCount,
            volumes.MaxGCEPDVolumeCount, volumes.MaxAzureDiskVolumeCount, volumes.CheckVolumeBinding,
            volumes.NoVolumeZoneConflict, pods.MatchInterPodAffinity,
        ),
        "MaxCSIVolumeCountPred": volumes.MaxCSIVolumeCount,
        **(_BY_TAINTS if by_taints else _BY_CONDITIONS),
    }  # fmt: skip
    limits = _classes_by_name(p.ResourceLimitsPriority) if release.enabled("ResourceLimitsPriorityFunction") else {}
    return Provider(
        predicates=predicates,
        priorities={
            **_PRIORITIES,
            **_classes_by_name(
                p.BalancedResourceAllocation, p.ImageLocalityPriority, p.NodeAffinityPriority, p.SelectorSpreadPriority,
                p.ServiceSpreadingPriority, p.TaintTolerationPriority,
            ),
            "RequestedToCapacityRatioPriority": p.RequestedToCapacityRatio,
            **limits,
        },
        default_predicates=tuple(name for name in _ORDER if name in predicates and name not in _NOT_BY_DEFAULT),
        default_priorities={**_WEIGHTS, "ImageLocalityPriority": 1, **dict.fromkeys(limits, 1)},
        mandatory_predicates=("CheckNodeUnschedulable", "PodToleratesNodeTaints")
        if by_taints
        else ("CheckNodeCondition",),
        order=_ORDER,
        schema=Schema(
            counts_every_resource=True,
            reads_init_containers=True,
            reads_node_fields=True,
            reads_port_details=True,
            knows_shared_iscsi=True,
        ),
        texts=_SENTENCES,
        fills_in_lists=True,
        reads_policy_settings=True,
        service_anti_affinity=p.ServiceAntiAffinity,
        has_ratio_argument=True,
        checks_claims_first=True,
        preempts=release.enabled("PodPriority"),
        percentage_of_nodes_to_score=50,
        maximum_weight=MAX_INT64 // MAX_PRIORITY,
    )  # fmt: skip


# 1.5


_NAMES = Texts(
    host_name="HostName",
    host_ports="PodFitsHostPorts",
    node_selector="MatchNodeSelector",
    node_label="CheckNodeLabelPresence",
    taints="PodToleratesNodeTaints",
    disk_conflict="NoDiskConflict",
    volume_count="MaxVolumeCount",
    volume_zone="NoVolumeZoneConflict",
    service_affinity="CheckServiceAffinity",
    pod_affinity="MatchInterPodAffinity",
    memory_pressure="NodeUnderMemoryPressure",
    disk_pressure="NodeUnderDiskPressure",
)


def _v1_5(release: Release) -> Provider:
    """Return the scheduler of 1.5, in which no gate affects decisions."""
    predicates: dict[str, type[Predicate]] = {
        **_PREDICATES,
        **_classes_by_name(nodes.CheckNodeDiskPressure, nodes.CheckNodeMemoryPressure),
        "GeneralPredicates": nodes.GeneralPredicatesUpToError,
        "MatchInterPodAffinity": pods.MatchInterPodAffinityByTerm,
        "MatchNodeSelector": nodes.MatchNodeSelectorUpToError,
        "MaxEBSVolumeCount": volumes.StrictMaxEBSVolumeCount,
        "MaxGCEPDVolumeCount": volumes.StrictMaxGCEPDVolumeCount,
        "NoVolumeZoneConflict": volumes.StrictNoVolumeZoneConflict,
        "PodToleratesNodeTaints": nodes.PodToleratesNodeTaintsByKey,
    }
    return Provider(
        predicates=predicates,
        priorities={
            **_PRIORITIES,
            "BalancedResourceAllocation": p.EarlyBalancedResourceAllocation,
            "ImageLocalityPriority": p.EarlyImageLocalityPriority,
            "NodeAffinityPriority": p.EarlyNodeAffinityPriority,
            "SelectorSpreadPriority": p.EarlySelectorSpreadPriority,
            "ServiceSpreadingPriority": p.EarlyServiceSpreadingPriority,
            "TaintTolerationPriority": p.EarlyTaintTolerationPriority,
        },
        default_predicates=tuple(sorted(predicates.keys() - _NOT_BY_DEFAULT)),
        default_priorities=_WEIGHTS,
        mandatory_predicates=(),
        order=None,
        schema=Schema(),
        texts=_NAMES,
        service_anti_affinity=p.EarlyServiceAntiAffinity,
        lists_usable_nodes=True,
        percentage_of_nodes_to_score=100,
        maximum_weight=MAX_INT64,
    )


PROVIDERS: Mapping[str, Callable[[Release], Provider]] = {"1.13": _v1_13, "1.5": _v1_5}
"""Providers by the version that each is modeled on."""


_LISTER = "NodeLister"  # the step that excludes nodes before any predicate


class _JoinedOutcome(FilterOutcome, frozen=True, kw_only=True):
    """The outcome if every predicate runs: the verdict has the reasons of all."""

    whole: Verdicts
    names_predicate: bool  # whether a verdict has the name of the first failed predicate; otherwise it has none

    def status(self, row: TableRow) -> Status:
        nominated = self.with_nominated.get(row)
        if nominated is not None:
            return nominated
        index = int(self.plugin[row])
        return self.whole.status(row, self.plugins[index] if self.names_predicate and index >= 0 else "")


class _PredicateRunner(Framework):
    """The counterpart of the framework for predicates and priorities."""

    def __init__(
        self, policy: SchedulingPolicy, era: Provider, config: SchedulerConfig, snapshot: Snapshot, release: Release
    ) -> None:
        """The snapshot is as an API server of that time stored it; `config` has the policy's only profile."""
        super().__init__(config.profiles[0], config, snapshot, release)
        self.policy = policy
        self.era = era
        self._predicates = {name: make(self, argument) for name, (make, argument) in policy.predicates.items()}
        self._priorities = {name: make(self, argument) for name, (make, argument) in policy.priorities.items()}

    # --- what predicates and priorities read

    @property
    def hard_pod_affinity_weight(self) -> int:
        return self.policy.hard_pod_affinity_weight

    @cached_property
    def existing_terms(self) -> ExistingTerms:
        return ExistingTerms(self.snapshot.pods)

    @cached_property
    def ignored_resources(self) -> frozenset[str]:
        managed = (resource for extender in self.policy.extenders for resource in extender.managed_resources)
        return frozenset(
            resource.name for resource in managed if resource.ignored_by_scheduler and self.era.reads_policy_settings
        )

    @cached_property
    def nominated(self) -> Mapping[ClusterRow, tuple[int, ...]]:
        return super().nominated if self.era.preempts else {}

    # --- predicates

    def run_pre_filter(
        self, state: CycleState, pod: Pod, known: Mapping[str, PreFilterStep] = MappingProxyType({})
    ) -> PreFilterOutcome:
        """Run the steps before predicates: check the pod's claims, select nodes to evaluate, prepare predicates."""
        wrong = _wrong_claim(pod, self.snapshot) if self.era.checks_claims_first else None
        if wrong is not None:
            return PreFilterOutcome(status=wrong)
        for predicate in self._predicates.values():
            predicate.prepare(state, pod, self.nodes)
        if not self.era.lists_usable_nodes:
            return PreFilterOutcome()
        step = PreFilterStep(status=Status(plugin=_LISTER), nodes=self._usable)
        return PreFilterOutcome(steps=(step,), nodes=self._usable, naming=(_LISTER,))

    @cached_property
    def _usable(self) -> frozenset[str]:
        nodes = self.nodes
        return frozenset(
            name
            for row, name in zip(nodes.each(), nodes.names, strict=True)
            if not nodes.unschedulable[row] and not any(unusable(nodes.node(row)))
        )

    def run_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """Run every predicate on every node, for reports, without nominated pods."""
        verdicts = {name: predicate.check(state, pod, nodes) for name, predicate in self._predicates.items()}
        outcome = FilterOutcome.of(verdicts, len(nodes))
        if self.policy.stops_at_first or not verdicts:
            return outcome
        whole = join_verdicts(list(verdicts.values()))
        return _JoinedOutcome(
            plugins=outcome.plugins,
            verdicts=outcome.verdicts,
            codes=whole.codes,
            plugin=outcome.plugin,
            whole=whole,
            names_predicate=self.era.order is not None,
        )

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        for predicate in self._predicates.values():
            predicate.add_pods(state, pod, nodes, change)
        return nodes.add_pods(change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        for predicate in self._predicates.values():
            predicate.remove_pods(state, pod, nodes, change)
        return nodes.remove_pods(change)

    # --- priorities

    def run_scores(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores | Status:
        """Map, reduce, and weigh. Without priorities and extenders, all nodes get 1."""
        raw: dict[str, IntArray] = {}
        normalized: dict[str, IntArray] = {}
        alone = not self._priorities and not self.policy.extenders
        totals = np.full(len(nodes), int(alone), dtype=np.int64)
        for name, priority in self._priorities.items():
            try:
                raw[name] = priority.map(pod, nodes)
            except InputError as wrong:
                return error(str(wrong))
            normalized[name] = priority.reduce(pod, nodes, raw[name])
            totals += normalized[name] * self.policy.weights[name]
        return Scores(
            nodes=nodes, skipped=(), weights=self.policy.weights, raw=raw, normalized=normalized, totals=totals
        )


def _wrong_claim(pod: Pod, snapshot: Snapshot) -> Status | None:
    """Return the error of the first missing or terminating claim (podPassesBasicChecks in generic_scheduler.go)."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = snapshot.storage.claim(pod.metadata.namespace, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            missing = ClaimNotFound(claim=key, volume=volume.name, ephemeral=False)
            return error(not_found_text("persistentvolumeclaim", name), "", missing)
        since = claim.metadata.deletion_timestamp
        if since is not None:
            text = f'persistentvolumeclaim "{name}" is being deleted'
            return error(text, "", ClaimBeingDeleted(claim=claim.key, since=since))
    return None


# Preemption in 1.13 (Preempt, selectVictimsOnNode, and pickOneNodeForPreemption in generic_scheduler.go). As in
# `framework.preemption`, a wave over all nodes costs a single run of the predicates: the first evicts every pod of
# lower priority, then the n-th checks on each node whether its n-th pod may stay.

_NOT_ELIGIBLE = Status(code=Code.UNSCHEDULABLE, reasons=("a pod on the nominated node is terminating",))
_UNSCHEDULABLE = Status(code=Code.UNSCHEDULABLE)


def _preempt(
    runner: _PredicateRunner, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome
) -> PostFilterResult:
    """Return the node on which preemption does the least harm. The event's message does not mention preemption."""
    if runner.snapshot.terminating_victims(pod):
        return PostFilterResult(status=_NOT_ELIGIBLE)
    able = nodes.take(rows_where(outcome.codes == Code.UNSCHEDULABLE))
    candidates, statuses = _dry_run(runner, state, pod, able)
    if candidates:
        _refuse_to_guess_victims(runner, pod)
    best = _best(candidates, nodes.pods)
    every = [statuses.get(node, NOT_HELPFUL) for node in each_cluster_row(runner.nodes.rows)]
    return PostFilterResult(
        status=SUCCESS if best else _UNSCHEDULABLE,
        candidates=tuple(candidates),
        best=tuple(candidate.node for candidate in best),
        nominated_node=best[0].node if len(best) == 1 else None,
        dry_run=Verdicts.of_rows(every),
    )


def _refuse_to_guess_victims(runner: _PredicateRunner, pod: Pod) -> None:
    for extender in runner.policy.extenders:
        if extender.preempt_verb and extender.is_interested(pod):
            raise UndecidableError(f"the extender at {extender.url} chooses victims too: kschedx cannot call it")


# --- victims


def _dry_run(
    runner: _PredicateRunner, state: CycleState, pod: Pod, nodes: NodeTable
) -> tuple[list[Candidate], dict[ClusterRow, Status]]:
    """Return the nodes of the table on which evicting pods makes room, and the status of each node of the table."""
    state = state.clone()
    protected = partial(_protected_victims, runner.snapshot.disruption_budgets, nodes.pods)
    potential = potential_victims(nodes, pod.priority, protected, ranked_by_start=False)
    trial = PreemptionTrial(handle=runner, state=state, pod=pod, nodes=nodes, potential=potential)
    emptied = trial.without_victims(nodes)
    outcome = runner.passes_filters(state, pod, emptied)
    statuses = {nodes.cluster_row(row): outcome.status(row) for row in each_row(rows_where(~outcome.passed))}
    alone = rows_where(~outcome.passed & (potential.count == 0))
    statuses |= {nodes.cluster_row(row): NO_VICTIMS for row in each_row(alone)}
    fits = rows_where(outcome.passed)
    evicted = trial.reprieve(emptied.take(fits), fits)
    candidates = [*trial.candidates(fits, evicted, by_rank=False)]
    return candidates, statuses | {candidate.node: SUCCESS for candidate in candidates}


def _protected_victims(
    budgets: Sequence[PodDisruptionBudget], pods: PodTable, rows: IntArray, index: IntArray
) -> BoolArray:
    """Return (victim,) whether a budget that allows no disruptions covers the pod (`Violating`)."""
    protected = np.zeros(len(rows), dtype=np.bool_)
    labels, namespaces = pods.labels.take(rows), pods.namespaces.take(rows)
    for budget in budgets:
        selector = budget_selector(budget)
        if selector is not None and (budget.status.disruptions_allowed or 0) <= 0:
            is_here = namespaces.where(budget.metadata.namespace.__eq__)
            protected |= is_here & labels.where(partial(covers, selector))
    return protected


def _best(candidates: Sequence[Candidate], pods: PodTable) -> Sequence[Candidate]:
    """The candidates of which kube-scheduler picks any: without victims, or with the least harm, rule by rule."""
    unharmed = [candidate for candidate in candidates if not candidate.victims]
    return unharmed or best_candidates(candidates, ranks(candidates, pods, by_start=False))


# One pod through predicates and priorities (pkg/scheduler/core/generic_scheduler.go).


def _stored_pod(pod: types.Pod, schema: Schema) -> types.Pod:
    status = types.PodStatus(phase=pod.status.phase, nominated_node_name=pod.status.nominated_node_name)
    return replace(pod, spec=stored_spec(pod.spec, schema), status=status)


def _schedule_with_predicates(runner: _PredicateRunner, pod: Pod) -> Cycle:
    """Run a pod through predicates, priorities, and preemption. kube-scheduler alternates between several best nodes,
    so none is chosen."""
    pod = _stored_pod(pod, runner.era.schema)
    cycle = Cycle(
        pod=pod,
        snapshot=runner.snapshot,
        profile=runner.profile,
        release=runner.release,
        all_nodes=runner.nodes,
        outcome=Outcome.UNSCHEDULABLE,
    )
    state = CycleState()
    pre_filter = runner.run_pre_filter(state, pod)
    if not pre_filter.status.is_success:
        return replace(
            cycle, outcome=Outcome.ERROR, message=pre_filter.status.message, pre_filter_status=pre_filter.status
        )
    nodes = runner.nodes if pre_filter.nodes is None else runner.nodes.only(pre_filter.nodes)
    if not len(nodes):
        return replace(cycle, message=NO_NODES)
    outcome = runner.passes_filters(state, pod, nodes)
    cycle = replace(cycle, pre_filter=pre_filter.steps, nodes=nodes, filter=outcome)
    if np.any(outcome.codes == Code.ERROR):
        return replace(cycle, outcome=Outcome.ERROR, message=_errors(runner, outcome))
    if outcome.passed.any():
        return _prioritize(runner, state, pod, cycle, nodes.take(rows_where(outcome.passed)))
    cycle = replace(cycle, message=_message(runner, pod, outcome))
    if not runner.era.preempts:
        return cycle
    return replace(cycle, post_filter=_preempt(runner, state, pod, nodes, outcome))


def _refuse_to_guess(runner: _PredicateRunner, pod: Pod, feasible: NodeTable) -> None:
    """Raise `UndecidableError` if an extender would filter the feasible nodes or score several of them."""
    scored = len(feasible) > 1 or runner.release.behavior.single_node_is_scored
    for extender in runner.policy.extenders:
        verbs = [extender.filter_verb, extender.prioritize_verb if scored else ""]
        text = " and ".join(verb for verb in verbs if verb)
        if text and (extender.is_interested(pod) or not runner.era.reads_policy_settings):
            raise UndecidableError(
                f"the extender at {extender.url} also decides about {pod.key} ({text}): kschedx cannot call it"
            )


# --- messages


def _errors(runner: _PredicateRunner, outcome: FilterOutcome) -> str:
    """Return the errors of predicates, node by node: each once with a count in 1.13, each time in 1.5."""
    texts = [outcome.status(row).message for row in each_row(rows_where(outcome.codes == Code.ERROR))]
    if runner.era.order is None:
        texts = [f"SchedulerPredicates failed due to {text}, which is unexpected." for text in texts]
    else:
        counts = Counter(texts)
        texts = [f"{text} (repeated {count} times)" if count > 1 else text for text, count in counts.items()]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _message(runner: _PredicateRunner, pod: Pod, outcome: FilterOutcome) -> str:
    counts = Counter(_reasons(outcome))
    if runner.era.order is None:
        text = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"pod ({pod.metadata.name}) failed to fit in any node\nfit failure summary on nodes : {text}"
    text = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(runner.nodes)} nodes are available: {text}."


def _reasons(outcome: FilterOutcome) -> Iterator[str]:
    """Yield every reason as often as it occurs; one node can have a reason several times."""
    for row in map(TableRow, range(len(outcome.codes))):
        yield from outcome.status(row).reasons


def _prioritize(runner: _PredicateRunner, state: CycleState, pod: Pod, cycle: Cycle, feasible: NodeTable) -> Cycle:
    _refuse_to_guess(runner, pod, feasible)
    scores = runner.run_scores(state, pod, feasible)
    if isinstance(scores, Status):
        if len(feasible) > 1 or runner.release.behavior.single_node_is_scored:
            return replace(cycle, outcome=Outcome.ERROR, message=scores.message)
        return replace(cycle, outcome=Outcome.SCHEDULED, best=(feasible.cluster_row(TableRow(0)),))
    best = tuple(map(feasible.cluster_row, each_row(rows_where(scores.totals == scores.totals.max()))))
    return replace(cycle, outcome=Outcome.SCHEDULED, scores=scores, best=best)


class PredicateScheduler:
    """Predicates and priorities on the cluster as an API server of that time stored it."""

    def __init__(self, policy: SchedulingPolicy, era: Provider, release: Release, snapshot: Snapshot) -> None:
        """The snapshot is the cluster as it was stored."""
        self.policy = policy
        self.era = era
        self.release = release
        self.config = SchedulerConfig(profiles=(_profile(policy, era),), extenders=())
        self._runner = _PredicateRunner(policy, era, self.config, snapshot, release)
        self.snapshot = self._runner.snapshot
        self.nodes: NodeTable = self._runner.nodes

    @classmethod
    def of(cls, config: Mapping[str, object] | None, release: Release, snapshot: Snapshot) -> Self:
        """A scheduler with a Policy as parsed from YAML or JSON; None is the default provider. Raises `ConfigError`."""
        provider = PROVIDERS[release.version](release)
        policy = load_policy(config, provider)
        return cls(policy, provider, release, stored_snapshot(snapshot, provider.schema))

    def on_cluster(self, snapshot: Snapshot) -> Self:
        return self.on(stored_snapshot(snapshot, self.era.schema))

    def on(self, snapshot: Snapshot) -> Self:
        return type(self)(self.policy, self.era, self.release, snapshot)

    def without_unknown_plugins(self) -> Self:
        """Return the scheduler itself: a Policy cannot name unknown plugins."""
        return self

    def framework(self, profile: Profile) -> None:
        return None

    def filter(self, pod: Pod, profile: Profile | None = None) -> FilteredNodes:
        self._check(pod, profile)
        return filter_nodes(self._runner, _stored_pod(pod, self.era.schema))

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        self._check(pod, profile)
        return _schedule_with_predicates(self._runner, pod)

    def _check(self, pod: Pod, profile: Profile | None) -> None:
        """Check that the pod names the only profile, unless `profile` is given."""
        if profile is None:
            self.config.profile_for(pod.spec.scheduler_name)


def _profile(policy: SchedulingPolicy, era: Provider) -> Profile:
    """Return the configuration as the document shows it."""
    points = {
        "predicates": tuple(policy.predicates),
        "predicatesNeverRun": policy.never_run,
        "priorities": tuple(policy.priorities),
    }
    return Profile(
        scheduler_name=DEFAULT_SCHEDULER,
        percentage_of_nodes_to_score=era.percentage_of_nodes_to_score,
        points=points,
        enabled=points,
        weights=policy.weights,
        args={},
    )
