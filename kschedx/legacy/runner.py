"""The runner: a Policy's predicates and priorities on a snapshot.

Upstream: podFitsOnNode, addNominatedPods and PrioritizeNodes in pkg/scheduler/core/generic_scheduler.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from kschedx.api.storage import not_found
from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.findings import ClaimBeingDeleted, ClaimNotFound, Finding
from kschedx.framework.config import SchedulerConfig
from kschedx.framework.cycle import PreFilterStep, Scores
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, error
from kschedx.legacy.era import Era
from kschedx.legacy.policy import Policy
from kschedx.legacy.predicates.base import joined
from kschedx.legacy.predicates.nodes import unusable
from kschedx.releases import Release
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import ClusterRow, TableRow
from kschedx.snapshot.snapshot import Snapshot

LISTER = "NodeLister"
"""Who leaves out nodes before any predicate."""


class JoinedOutcome(FilterOutcome, frozen=True, kw_only=True):
    """Every predicate is run, and what all of them say is the verdict."""

    whole: Verdicts
    names_predicate: bool
    """A verdict has the name of the first predicate that failed; otherwise none."""

    def status(self, row: TableRow) -> Status:
        nominated = self.with_nominated.get(row)
        if nominated is not None:
            return nominated
        index = int(self.plugin[row])
        return self.whole.status(row, self.plugins[index] if self.names_predicate and index >= 0 else "")


class PredicateRunner(Framework):
    """What the framework is to its plugins, this is to predicates and priorities."""

    def __init__(self, policy: Policy, era: Era, config: SchedulerConfig, snapshot: Snapshot, release: Release) -> None:
        """The snapshot is as an API server of the time kept it; `config` has the one profile that the policy makes."""
        super().__init__(config.profiles[0], config, snapshot, release)
        self.policy = policy
        self.era = era
        self._predicates = {name: make(self, argument) for name, (make, argument) in policy.predicates.items()}
        self._priorities = {name: make(self, argument) for name, (make, argument) in policy.priorities.items()}

    # --- what predicates and priorities may ask

    @property
    def hard_pod_affinity_weight(self) -> int:
        return self.policy.hard_pod_affinity_weight

    @cached_property
    def ignored_resources(self) -> frozenset[str]:
        managed = (resource for extender in self.policy.extenders for resource in extender.managed_resources)
        return frozenset(one.name for one in managed if one.ignored_by_scheduler and self.era.reads_policy_settings)

    @cached_property
    def nominated(self) -> Mapping[ClusterRow, tuple[int, ...]]:
        return super().nominated if self.era.preempts else {}

    # --- predicates

    def run_pre_filter(
        self, state: CycleState, pod: Pod
    ) -> tuple[tuple[PreFilterStep, ...], Status, frozenset[str] | None, tuple[str, ...]]:
        """What comes before predicates: the pod's claims, the nodes that are looked at, and what predicates count."""
        wrong = _wrong_claim(pod, self.snapshot) if self.era.checks_claims_first else None
        if wrong is not None:
            return (), wrong, None, ()
        for predicate in self._predicates.values():
            predicate.prepare(state, pod, self.nodes)
        if not self.era.lists_usable_nodes:
            return (), SUCCESS, None, ()
        return (PreFilterStep(status=Status(plugin=LISTER), nodes=self._usable),), SUCCESS, self._usable, (LISTER,)

    @cached_property
    def _usable(self) -> frozenset[str]:
        nodes = self.nodes
        return frozenset(
            name
            for row, name in zip(nodes.each(), nodes.names, strict=True)
            if not nodes.unschedulable[row] and not any(unusable(nodes.node(row)))
        )

    def run_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """Every predicate on every node, for the reader; without nominated pods."""
        verdicts = {name: predicate.check(state, pod, nodes) for name, predicate in self._predicates.items()}
        outcome = FilterOutcome.of(verdicts, len(nodes))
        if self.policy.stops_at_first or not verdicts:
            return outcome
        whole = joined(list(verdicts.values()))
        return JoinedOutcome(
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
        """Map, reduce and weigh. Without any priority, and without an extender to take its place, all nodes get 1."""
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
    """The error of the first claim that is missing or being deleted (podPassesBasicChecks in generic_scheduler.go)."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = snapshot.storage.claim(pod.metadata.namespace, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            missing = ClaimNotFound(claim=key, volume=volume.name, ephemeral=False)
            return _error(not_found("persistentvolumeclaim", name), missing)
        since = claim.metadata.deletion_timestamp
        if since is not None:
            text = f'persistentvolumeclaim "{name}" is being deleted'
            return _error(text, ClaimBeingDeleted(claim=claim.key, since=since))
    return None


def _error(text: str, finding: Finding) -> Status:
    return Status(code=Code.ERROR, reasons=(text,), findings=(finding,))
