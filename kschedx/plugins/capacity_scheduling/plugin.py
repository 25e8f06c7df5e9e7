"""CapacityScheduling itself (capacity_scheduling.go)."""

from __future__ import annotations

from kschedx.api.priority import PREEMPT_NEVER
from kschedx.api.types import Pod
from kschedx.findings import ElasticQuotaExceeded
from kschedx.framework.interface import Handle, PreFilterPlugin, PreFilterResult, ReservePlugin
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.preemption import DryRun
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import SUCCESS, Code, Status
from kschedx.plugins.capacity_scheduling.quotas import (
    Amounts,
    Quotas,
    exceeds_all,
    minimum_of_all,
    quotas_of,
    request_of,
    total,
    used_of_all,
)
from kschedx.plugins.capacity_scheduling.victims import Asked, is_beyond, may_go, preempt
from kschedx.plugins.preemptor import NEVER, VICTIMS_TERMINATING, Preemptor
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow

NOT_READ = "not eligible due to failed to read from cycleState"


class CapacityScheduling(PreFilterPlugin, Preemptor, ReservePlugin):
    """Holds namespaces to their ElasticQuota: never above `max`, and all together never above the sum of all `min`.
    Who has not used up its own `min` may evict pods of those who have borrowed it."""

    name = "CapacityScheduling"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._quotas = quotas_of(handle.snapshot)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        asked = state[ASKED] = self._asked(pod)
        quota = self._quotas.get(pod.metadata.namespace)
        if quota is None:
            return PreFilterResult()
        namespace = pod.metadata.namespace
        exceeded = quota.exceeds_maximum(asked.with_nominated)
        if exceeded is not None:
            text = f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {namespace} is more than Max"
            return _rejected(text, _finding(namespace, exceeded, asked.with_nominated, quota.used, quota.maximum))
        exceeded = exceeds_all(self._quotas, asked.of_all)
        if exceeded is not None:
            text = f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min"
            return _rejected(text, _of_all(namespace, exceeded, asked.of_all, self._quotas))
        return PreFilterResult()

    def _asked(self, pod: Pod) -> Asked:
        """The pod's request, and what others have been nominated for that counts before it."""
        request = own = of_all = request_of(pod)
        if pod.metadata.namespace in self._quotas:
            for row in (row for rows in self.handle.nominated.values() for row in rows):
                other = self.handle.snapshot.pods[row]
                theirs = self._quotas.get(other.metadata.namespace)
                if theirs is None or (other.metadata.uid and other.metadata.uid == pod.metadata.uid):
                    continue
                if other.metadata.namespace == pod.metadata.namespace:
                    if other.priority >= pod.priority:
                        own, of_all = total(own, request_of(other)), total(of_all, request_of(other))
                elif not theirs.is_over_minimum:
                    of_all = total(of_all, request_of(other))
        return Asked(request=request, with_nominated=own, of_all=of_all)

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        return SUCCESS

    # --- preemption

    def _ineligible(self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        if pod.spec.preemption_policy == PREEMPT_NEVER:
            return NEVER
        if ASKED not in state:
            return NOT_READ
        nominated = self._nominated(pod, nodes, outcome)
        if nominated is None:
            return ""
        pods, beyond = self.handle.nodes.pods, is_beyond(pod, self._quotas, state[ASKED])
        for row in pods.on_node(nominated):
            leaving = pods[row]
            beside = leaving.metadata.namespace == pod.metadata.namespace
            # those beside it count as victims even where the namespace has not used what it is promised
            if leaving.metadata.deletion_timestamp and may_go(leaving, pod, self._quotas, is_beyond=beside or beyond):
                return VICTIMS_TERMINATING
        return ""

    def _dry_run(self, state: CycleState, pod: Pod, nodes: NodeTable) -> DryRun:
        return preempt(self.handle, state, pod, nodes, self._quotas, state[ASKED])

    def _candidate_limit(self, nodes: int) -> int:
        return nodes


ASKED: StateKey[Asked] = StateKey("PreFilterCapacityScheduling")


def _finding(
    namespace: str, resource: str, request: Amounts, used: Amounts, bound: Amounts, *, of_all: bool = False
) -> ElasticQuotaExceeded:
    return ElasticQuotaExceeded(
        namespace=namespace,
        of_all=of_all,
        resource=resource,
        requested=request.get(resource, 0),
        used=used.get(resource, 0),
        limit=bound.get(resource, 0),
        unit="m" if resource == "cpu" else "",
    )


def _of_all(namespace: str, resource: str, request: Amounts, quotas: Quotas) -> ElasticQuotaExceeded:
    return _finding(namespace, resource, request, used_of_all(quotas), minimum_of_all(quotas), of_all=True)


def _rejected(text: str, finding: ElasticQuotaExceeded) -> PreFilterResult:
    return PreFilterResult(status=Status(code=Code.UNSCHEDULABLE, reasons=(text,), findings=(finding,)))
