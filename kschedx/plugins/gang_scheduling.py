"""GangScheduling (pkg/scheduler/framework/plugins/gangscheduling), behind the gate of the same name."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from kschedx.findings import PodGroupIncomplete
from kschedx.framework.interface import WHOLE, CycleState, PermitPlugin, PreEnqueuePlugin, Texts, Touch
from kschedx.framework.status import SUCCESS, Code, Status, error, unresolvable
from kschedx.kube.other_schedulers import POD_GROUP_LABEL
from kschedx.kube.types import GroupedWorkload, Pod, PodGroup
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import find_group, group_name, members_of

_NOT_ENOUGH = "waiting for minCount pods from a gang to appear in scheduling queue"
_TIMED_OUT = "rejected due to timeout after waiting {time} at plugin GangScheduling"
_NO_GROUP = 'waiting for pods\'s pod group "{group}" to appear in scheduling queue'
_NO_WORKLOAD = 'waiting for pods\'s workload "{workload}" to appear in scheduling queue'
_NOT_OF_WORKLOAD = 'pod group "{group}" doesn\'t exist for a workload "{workload}"'


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    """Schedules all pods of a gang or none. Pods wait until enough of them exist, and again until enough of them have a
    node."""

    name = "GangScheduling"
    texts: ClassVar[Texts] = {
        "pod-group-incomplete": (
            _NOT_ENOUGH,
            _TIMED_OUT,
            _NO_GROUP,
            _NO_WORKLOAD,
            _NOT_OF_WORKLOAD,
            *texts_of_all_releases("gang_waits_on_permit"),
            *texts_of_all_releases("gang_lacks_members"),
        ),
        "plugin-message": (
            'failed to get podGroup {group}: podgroup.scheduling.k8s.io "{subject}" not found',
            'failed to get workload {group}: workload.scheduling.k8s.io "{subject}" not found',
        ),
    }

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if self.touches(pod) is Touch.CLUSTER or POD_GROUP_LABEL in pod.metadata.labels else None

    def touches(self, pod: Pod) -> Touch:
        return Touch.CLUSTER if pod.spec.scheduling_group or pod.spec.workload_ref else Touch.NOTHING

    def pre_enqueue(self, pod: Pod) -> Status:
        name = self._group_name(pod)
        if name is None:
            return SUCCESS
        group = self._group(pod, name)
        if group is None:
            incomplete = PodGroupIncomplete(group=name, exists=False, pods=0, min_count=0)
            return unresolvable(self._missing_group(pod, name), incomplete)
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        pods = self._members(pod, name, scheduled=False)
        if pods < gang.min_count:
            incomplete = PodGroupIncomplete(group=name, exists=True, pods=pods, min_count=gang.min_count)
            return unresolvable(_NOT_ENOUGH, incomplete)
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        name = self._group_name(pod)
        if name is None:
            return SUCCESS
        group = self._group(pod, name)
        if group is None:
            return error(self._missing_group(pod, name, at_permit=True))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        pods = self._members(pod, name, scheduled=True) + 1  # this pod is already assumed on its node
        if pods < gang.min_count:
            finding = PodGroupIncomplete(group=name, exists=True, pods=pods, min_count=gang.min_count)
            reasons = (self.handle.release.messages.gang_waits_on_permit,)
            return Status(code=Code.WAIT, reasons=reasons, findings=(finding,))
        return SUCCESS

    def _group_name(self, pod: Pod) -> str | None:
        return group_name(pod.spec, of_workloads=self.handle.release.behavior.gangs_are_of_workloads)

    def _group(self, pod: Pod, name: str) -> PodGroup | None:
        return find_group(self.handle.snapshot.pod_groups, pod.metadata.namespace, name)

    def _has_workload(self, pod: Pod, name: str) -> bool:
        key = pod.metadata.namespace, name
        return any(key == (it.metadata.namespace, it.metadata.name) for it in self.handle.snapshot.of(GroupedWorkload))

    def _missing_group(self, pod: Pod, name: str, *, at_permit: bool = False) -> str:
        """Return the message for a pod whose group does not exist."""
        namespace, reference = pod.metadata.namespace, pod.spec.workload_ref
        if "/" not in name or reference is None:
            lost = f'failed to get podGroup {namespace}/{name}: podgroup.scheduling.k8s.io "{name}" not found'
            return lost if at_permit else _NO_GROUP.format(group=name)
        workload = reference.name
        if self._has_workload(pod, workload):
            return _NOT_OF_WORKLOAD.format(group=reference.pod_group, workload=workload)
        lost = f'failed to get workload {namespace}/{workload}: workload.scheduling.k8s.io "{workload}" not found'
        return lost if at_permit else _NO_WORKLOAD.format(workload=workload)

    def _members(self, pod: Pod, name: str, *, scheduled: bool) -> int:
        """Count the pods of the group, or those with a node if `scheduled`."""
        pods = self.handle.snapshot.pods
        members = members_of(pods, pod.metadata.namespace, name)
        if scheduled:
            members &= pods.node >= 0
        count = int(np.count_nonzero(members))
        known = pod.key in pods.rows
        return count if known or scheduled else count + 1
