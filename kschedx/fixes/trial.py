"""Trials of proposals: the same scheduler on the changed cluster, with the changed pod."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.explain.node_groups import NodeGroup, groups_of
from kschedx.findings import Finding
from kschedx.fixes import steps as s
from kschedx.fixes.proposal import UID_TO_COME, Proposal, apply_step
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.status import Code, FilterOutcome, Status
from kschedx.kube.resources import pod_request
from kschedx.kube.types import Node, OwnerReference, Pod
from kschedx.kube.workloads import runs_on
from kschedx.plugins.node_ports import HostPort
from kschedx.snapshot.columns import ClusterRow, TableRow
from kschedx.snapshot.daemon_sets import DaemonPod, overhead
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import host_ports
from kschedx.snapshot.snapshot import Snapshot


class Situation(Struct, frozen=True, kw_only=True, dict=True):
    """A proposal, and the result of filtering its pod in its cluster."""

    scheduler: Scheduler  # the scheduler on the proposal's cluster
    profile: Profile
    proposal: Proposal
    status: Status  # the status of PreFilter
    nodes: NodeTable  # the nodes that PreFilter left
    outcome: FilterOutcome
    refused: frozenset[str] = frozenset()  # nodes that extenders rejected when they were asked
    daemons: tuple[DaemonPod, ...] = ()  # DaemonSets' pods that run on a new node before the pod

    @property
    def snapshot(self) -> Snapshot:
        return self.scheduler.snapshot

    @property
    def pod(self) -> Pod:
        return self.proposal.pod

    @property
    def requested(self) -> Mapping[str, int]:
        return pod_request(self.pod.spec, self.pod.status, self.scheduler.nodes.options).amounts

    def decide(self) -> Cycle | None:
        """Decide about the pod as a whole, with preemption. None if kschedx cannot, or if extenders take part: they are
        asked only about the pod itself, never about a trial."""
        if self.scheduler.config.extenders:
            return None
        try:
            return self.scheduler.schedule(self.pod, self.profile)
        except UndecidableError:
            return None

    def is_admitted_to_queue(self) -> bool:
        """Whether every PreEnqueue plugin lets the pod into the queue."""
        framework = self.scheduler.framework(self.profile)
        return framework is None or all(status.is_success for status in framework.run_pre_enqueue(self.pod))

    def daemon_requests(self, node: Node) -> dict[str, int]:
        """Return what DaemonSets' pods request on a new node, before any other pod is there."""
        amounts = overhead(self.daemons, node, comparison=self.scheduler.release.compares_taints)
        return {name: amount for name, amount in sorted(amounts.items()) if amount}

    def leaves_ports(self, node: Node) -> bool:
        """Whether no DaemonSet's pod on a new node uses one of the pod's host ports."""
        wanted = [*map(HostPort.of, host_ports(self.pod.spec))]
        return not any(
            any(HostPort.of(port).conflicts(used_port) for port in host_ports(daemon.spec) for used_port in wanted)
            for daemon in (self.daemons if wanted else ())
            if runs_on(daemon.spec, node, comparison=self.scheduler.release.compares_taints)
        )

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The nodes on which the pod passes every filter; only the nominated node if it is among them, as
        kube-scheduler checks no other then. No trial asks extenders: what one rejected stays rejected."""
        names = tuple(name for name in self._passing_nodes if name not in self.refused)
        nominated = self.pod.status.nominated_node_name
        return (nominated,) if nominated in names else names

    @cached_property
    def _passing_nodes(self) -> tuple[str, ...]:
        names = self.nodes.names_where(self.outcome.passed)
        if not (self.outcome.codes == Code.ERROR).any():
            return names
        # an error ends kube-scheduler's whole attempt, except for the nominated node, which it tries first
        return tuple(name for name in names if name == self.pod.status.nominated_node_name)

    @cached_property
    def rejections_by_plugin(self) -> Mapping[str, int]:
        """Plugin to the number of nodes that it rejects, whether or not it is the first to do so."""
        if not self.status.is_success:
            return {self.status.plugin or "PreFilter": len(self.scheduler.nodes)}
        refused = len(self._passing_nodes) - len(self.feasible)
        counts: dict[str, int] = {"Extender": refused} if refused else {}
        for index, (name, verdicts) in enumerate(zip(self.outcome.plugins, self.outcome.verdicts, strict=True)):
            if count := int(np.count_nonzero(verdicts.rejected | (self.outcome.plugin == index))):
                counts[name] = count
        return counts

    @cached_property
    def groups(self) -> tuple[NodeGroup, ...]:
        """The rejected nodes, nearest group first."""
        return groups_of(self.nodes, self.outcome)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings on a node of each group."""
        return tuple(finding for group in self.groups for finding in group.exemplar.findings)


class RemedyCandidate(Struct, frozen=True, kw_only=True):
    """A node of a situation for which remedies are collected."""

    situation: Situation
    nodes: NodeTable
    row: TableRow

    @property
    def node(self) -> Node:
        return self.nodes.node(self.row)

    @property
    def node_row(self) -> ClusterRow:
        """The row in the whole cluster's nodes."""
        return self.nodes.cluster_row(self.row)

    @property
    def pod(self) -> Pod:
        return self.situation.pod

    @property
    def snapshot(self) -> Snapshot:
        return self.situation.snapshot

    @property
    def owner_reference(self) -> OwnerReference:
        """The pod as the owner of a claim that is created for it."""
        metadata = self.pod.metadata
        return OwnerReference(
            api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid or UID_TO_COME, controller=True
        )


def try_proposal(
    scheduler: Scheduler,
    profile: Profile,
    proposal: Proposal,
    refused: frozenset[str] = frozenset(),
    daemons: tuple[DaemonPod, ...] = (),
) -> Situation:
    """Return the situation after filtering the proposal's pod in its cluster. Raises `UndecidableError`."""
    snapshot = proposal.cluster(scheduler.snapshot)
    if snapshot is not scheduler.snapshot:
        scheduler = scheduler.on(snapshot)
    filtered = scheduler.filter(proposal.pod, profile)
    return Situation(
        scheduler=scheduler,
        profile=profile,
        proposal=proposal,
        status=filtered.status,
        nodes=filtered.nodes,
        outcome=filtered.outcome,
        refused=refused,
        daemons=daemons,
    )


def state_after_attempt(cycle: Cycle) -> Proposal:
    """Return the pod, and the cluster as kube-scheduler leaves it before the next attempt."""
    base, filter_result = Proposal(pod=cycle.pod), cycle.post_filter
    if filter_result is None or not filter_result.released:
        return base
    step = s.NextAttempt(released=tuple(filter_result.released.items()))
    return apply_step(step, base, cycle.snapshot)
