"""DefaultPreemption, and the dry run that it shares with other preempting plugins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import PREEMPT_NEVER
from kschedx.framework.args import DefaultPreemptionArgs
from kschedx.framework.interface import (
    WHOLE,
    CycleState,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    Texts,
    Touch,
)
from kschedx.framework.preemption import NO_VICTIMS, NOT_HELPFUL, DryRun, best_candidates, dry_run, ranks
from kschedx.framework.status import SUCCESS, Code, FilterOutcome, Status, error, unresolvable, unschedulable
from kschedx.framework.victims import Rankings
from kschedx.kube.conditions import DISRUPTION_TARGET, condition_of
from kschedx.kube.field_errors import aggregate_texts
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import BoolArray, ClusterRow, IntArray, rows_where
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable, group_of_pod, group_priority, members_of, whole_group_of

# The part that all preempting plugins share (Evaluator in pkg/scheduler/framework/preemption).

NEVER = "not eligible due to preemptionPolicy=Never."
VICTIMS_TERMINATING = "not eligible due to a terminating pod on the nominated node."
_NO_CANDIDATE = "no candidate node for preemption"

_NO_STATUS = -1  # the code of a node that has no status in PostFilter


def no_victims_for(pod: Pod, node: str) -> Status:
    """Return `NO_VICTIMS` in the words of scheduler-plugins."""
    return unresolvable(f"No victims found on node {node} for preemptor pod {pod.metadata.name}")


class Preemptor(PostFilterPlugin):
    """Finds the node with the fewest and least important victims. A subclass decides which pods may be victims."""

    prefix: ClassVar[str] = ""

    @abstractmethod
    def _ineligible(self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        """Return why the pod may not preempt, or an empty string."""

    @abstractmethod
    def _dry_run(self, state: CycleState, pod: Pod, nodes: NodeTable) -> DryRun:
        """Find the victims on each of `nodes`."""

    @abstractmethod
    def _candidate_limit(self, nodes: int) -> int:
        """Return how many candidates are enough, for this number of potential nodes."""

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        ineligible = self._ineligible(state, pod, nodes, outcome)
        if ineligible:
            return PostFilterResult(status=self._unschedulable(ineligible))
        return self._preempt(state, pod, self._worth_trying(nodes, outcome))

    def _preempt(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PostFilterResult:
        run = self._dry_run(state, pod, nodes)
        if not run.candidates:
            return PostFilterResult(status=self._no_candidate(run), dry_run=run.verdicts)
        limit = self._candidate_limit(len(nodes))
        tried = PostFilterResult(status=SUCCESS, candidates=run.candidates, dry_run=run.verdicts, candidate_limit=limit)
        candidates, certain, ranked = run.candidates, len(run.candidates) <= limit, run.ranks
        extenders = self.handle.extenders
        if extenders is not None and extenders.are_asked:
            preempted = extenders.preempt(pod, candidates, self.handle.nodes)
            tried = replace(tried, preempted=preempted)
            if preempted.error:
                return replace(tried, status=error(f"{self.prefix}{preempted.error}"))
            candidates, ranked = preempted.candidates, None
        elif extenders is not None and extenders.take_part_in_preemption(pod):
            certain = False
        if not candidates:
            return replace(tried, status=self._unschedulable(_NO_CANDIDATE))
        ranked = ranks(candidates, nodes.pods) if ranked is None else ranked
        best = tuple(candidate.node for candidate in best_candidates(candidates, ranked))
        # beyond the limit, kube-scheduler's choice of candidates is random
        return replace(tried, best=best, nominated_node=best[0] if certain and len(best) == 1 else None)

    def _worth_trying(self, nodes: NodeTable, outcome: FilterOutcome | Status) -> NodeTable:
        """Return the nodes where removing pods might help."""
        codes = self._codes(nodes, outcome)
        worth = codes == Code.UNSCHEDULABLE
        if self.handle.release.behavior.preemption_tries_nodes_without_status:
            worth |= codes == _NO_STATUS
        return self.handle.nodes if worth.all() else self.handle.nodes.take(rows_where(worth))

    def _codes(self, nodes: NodeTable, outcome: FilterOutcome | Status) -> IntArray:
        """(node,) the status codes that PostFilter gets for all nodes of the cluster; `outcome` covers only `nodes`."""
        release, count = self.handle.release, len(self.handle.nodes)
        if isinstance(outcome, Status):
            is_each = release.behavior.pre_filter_rejection_is_each_nodes_status
            return np.full(count, outcome.code if is_each else _NO_STATUS, dtype=np.int64)
        left_out = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if release.messages.node_left_out else _NO_STATUS
        codes = np.full(count, left_out, dtype=np.int64)
        codes[nodes.rows] = outcome.codes
        if outcome.by_extenders is not None:
            codes[list(outcome.by_extenders.silent)] = left_out
            for row, status in outcome.by_extenders.statuses.items():
                codes[row] = status.code
        return codes

    def _nominated_node(self, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> ClusterRow | None:
        """Return the node of an earlier preemption, if it is known and can still help."""
        nominated = nodes.cluster.index.get(pod.status.nominated_node_name)
        if nominated is None or self._codes(nodes, outcome)[nominated] == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None
        return nominated

    def _unschedulable(self, text: str) -> Status:
        return unschedulable(f"{self.prefix}{text}")

    def _no_candidate(self, run: DryRun) -> Status:
        """Return the status if no node is a candidate: an error if a dry run failed, otherwise the reasons with their
        counts."""
        failed = np.flatnonzero(run.verdicts.codes == Code.ERROR)
        if len(failed):
            return error(self.prefix + aggregate_texts(run.verdicts.reasons[int(node)][0] for node in failed))
        counts = run.verdicts.count_reasons(run.verdicts.rejected)
        phrase = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return self._unschedulable(f"0/{len(run.verdicts)} nodes are available: {phrase}.")


# DefaultPreemption (pkg/scheduler/framework/plugins/defaultpreemption, pkg/scheduler/framework/preemption).

_NO_POD_GROUP = "pod group for pod not found"
_PLACED_POD_GROUP = "not eligible due to placement-based pod group scheduling limitation"
_WORKLOAD_AWARE = "not eligible due to workload aware preemption enabled"

_PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class DefaultPreemption(PreEnqueuePlugin, Preemptor):
    """If no node is feasible, finds the node with the fewest and least important victims."""

    name = "DefaultPreemption"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {
        "preemption-not-eligible": (
            NEVER,
            VICTIMS_TERMINATING,
            _NO_POD_GROUP,
            _PLACED_POD_GROUP,
            _WORKLOAD_AWARE,
            _NO_CANDIDATE,
        ),
        "preemption-not-helpful": NOT_HELPFUL.reasons,
        "no-preemption-victims": NO_VICTIMS.reasons,
    }
    prefix = "preemption: "

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs()
        self._rankings = Rankings()

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if pod.spec.scheduling_group is not None else (pod.priority, pod.spec.preemption_policy)

    def pre_enqueue(self, pod: Pod) -> Status:
        """kube-scheduler holds a pod back while it deletes the victims. A snapshot does not show that."""
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        result = super().post_filter(state, pod, nodes, outcome)
        group_limit = self._group_limit(pod)
        if group_limit:
            return replace(result, status=self._unschedulable(group_limit), nominated_node=None)
        return result

    def _dry_run(self, state: CycleState, pod: Pod, nodes: NodeTable) -> DryRun:
        snapshot, behavior = self.handle.snapshot, self.handle.release.behavior
        is_whole = any(pod_group.is_preempted_whole for pod_group in snapshot.pod_groups.values())
        if not is_whole or not behavior.group_members_are_preempted_together:
            return dry_run(self.handle, state, pod, nodes, rankings=self._rankings)

        def exempt(pods: PodTable, rows: IntArray) -> BoolArray:
            groups = [whole_group_of(snapshot.pod_groups, pods, int(row)) for row in rows]
            classes = snapshot.priority_classes
            priorities = [None if group is None else group_priority(group, classes) for group in groups]
            return np.array([own is not None and own >= pod.priority for own in priorities], dtype=np.bool_)

        run = dry_run(self.handle, state, pod, nodes, exempt=exempt)
        candidates = tuple(replace(it, victims=self._with_groups(it.victims)) for it in run.candidates)
        return replace(run, candidates=candidates, ranks=None)

    def _with_groups(self, victims: tuple[int, ...]) -> tuple[int, ...]:
        """Add all other pods of groups that are preempted as a whole."""
        snapshot, pods = self.handle.snapshot, self.handle.nodes.pods
        groups = dict.fromkeys(victims)
        for row in victims:
            group = whole_group_of(snapshot.pod_groups, pods, row)
            if group is not None:
                members = members_of(pods, group.metadata.namespace, group.metadata.name) & (pods.node >= 0)
                groups |= dict.fromkeys(np.flatnonzero(members).tolist())
        return tuple(groups)

    def _candidate_limit(self, nodes: int) -> int:
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def _ineligible(self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        if pod.spec.preemption_policy == PREEMPT_NEVER:
            return NEVER
        nominated = self._nominated_node(pod, nodes, outcome)
        if nominated is None:
            return ""
        pods = self.handle.nodes.pods
        for row in pods.on_node(nominated):
            if pods.priorities[row] < pod.priority and self._is_awaited(pods[row]):
                return VICTIMS_TERMINATING
        return ""

    def _is_awaited(self, pod: Pod) -> bool:
        """Return whether the pod is being deleted by what kube-scheduler considers an earlier preemption."""
        release = self.handle.release
        if not pod.metadata.deletion_timestamp:
            return False
        knows_reason = release.behavior.preemption_awaits_only_its_victims
        return _was_preempted(pod) if knows_reason and release.enabled("PodDisruptionConditions") else True

    def _group_limit(self, pod: Pod) -> str:
        """Return why the pod's group has to preempt instead, or an empty string."""
        if pod.spec.scheduling_group is None:
            return ""
        release = self.handle.release
        if release.enabled("TopologyAwareWorkloadScheduling"):
            group = group_of_pod(self.handle.snapshot.pod_groups, pod)
            if group is None:
                return _NO_POD_GROUP
            if group.spec.scheduling_constraints is not None:
                return _PLACED_POD_GROUP
        return _WORKLOAD_AWARE if release.enabled("WorkloadAwarePreemption") else ""


def _was_preempted(pod: Pod) -> bool:
    """Return whether the pod's first DisruptionTarget condition names a scheduler."""
    target = condition_of(pod.status.conditions, DISRUPTION_TARGET)
    return target is not None and target.status == "True" and target.reason == _PREEMPTION_BY_SCHEDULER
