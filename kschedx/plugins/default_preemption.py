"""DefaultPreemption (pkg/scheduler/framework/plugins/defaultpreemption, pkg/scheduler/framework/preemption)."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.priority import PREEMPT_NEVER
from kschedx.api.types import Pod
from kschedx.framework.args import DefaultPreemptionArgs
from kschedx.framework.interface import Handle, PostFilterResult, PreEnqueuePlugin, Touch
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.preemption import DryRun, dry_run
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Status
from kschedx.plugins.preemptor import NEVER, VICTIMS_TERMINATING, Preemptor
from kschedx.snapshot.nodes import NodeTable

NO_POD_GROUP = "pod group for pod not found"
PLACED_POD_GROUP = "not eligible due to placement-based pod group scheduling limitation"
WORKLOAD_AWARE = "not eligible due to workload aware preemption enabled"

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class DefaultPreemption(PreEnqueuePlugin, Preemptor):
    """Where no node is feasible, finds the node on which the fewest and least important pods would have to go."""

    name = "DefaultPreemption"
    prefix = "preemption: "

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs()

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def pre_enqueue(self, pod: Pod) -> Status:
        """kube-scheduler holds a pod back while it evicts its victims; nothing of that is left in a snapshot."""
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
        return dry_run(self.handle, state, pod, nodes, self.handle.snapshot.disruption_budgets)

    def _candidate_limit(self, nodes: int) -> int:
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def _ineligible(self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        if pod.spec.preemption_policy == PREEMPT_NEVER:
            return NEVER
        nominated = self._nominated(pod, nodes, outcome)
        if nominated is None:
            return ""
        pods = self.handle.nodes.pods
        for row in pods.on_node(nominated):
            if pods.priorities[row] < pod.priority and self._is_awaited(pods[row]):
                return VICTIMS_TERMINATING
        return ""

    def _is_awaited(self, pod: Pod) -> bool:
        """It is being deleted, for what kube-scheduler takes to be an earlier preemption."""
        release = self.handle.release
        if not pod.metadata.deletion_timestamp:
            return False
        knows_reason = release.behaviour.preemption_awaits_only_its_victims
        return _was_preempted(pod) if knows_reason and release.enabled("PodDisruptionConditions") else True

    def _group_limit(self, pod: Pod) -> str:
        """Why preemption is left to the pod's group; empty where it is not."""
        if pod.spec.scheduling_group is None:
            return ""
        release = self.handle.release
        if release.enabled("TopologyAwareWorkloadScheduling"):
            key = f"{pod.metadata.namespace}/{pod.spec.scheduling_group.pod_group_name}"
            group = self.handle.snapshot.pod_groups.get(key)
            if group is None:
                return NO_POD_GROUP
            if group.spec.scheduling_constraints is not None:
                return PLACED_POD_GROUP
        return WORKLOAD_AWARE if release.enabled("WorkloadAwarePreemption") else ""


def _was_preempted(pod: Pod) -> bool:
    """Its first DisruptionTarget condition says that a scheduler did it."""
    target = next((condition for condition in pod.status.conditions if condition.type == DISRUPTION_TARGET), None)
    return target is not None and target.status == "True" and target.reason == PREEMPTION_BY_SCHEDULER
