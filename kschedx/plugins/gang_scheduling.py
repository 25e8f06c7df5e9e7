"""GangScheduling (pkg/scheduler/framework/plugins/gangscheduling), behind the gate of the same name."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kschedx.errors import UndecidableError
from kschedx.findings import PodGroupIncomplete
from kschedx.framework.interface import CycleState, PermitPlugin, PreEnqueuePlugin, Texts, Touch
from kschedx.framework.status import SUCCESS, Code, Status, error
from kschedx.kube.types import Pod, PodGroup
from kschedx.releases.messages import in_every_release
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.pods import members_of

NOT_ENOUGH = "waiting for minCount pods from a gang to appear in scheduling queue"
TIMED_OUT = "rejected due to timeout after waiting {time} at plugin GangScheduling"
WAITING = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    """All pods of a gang or none: they wait until enough of them are there, and again until enough have a node."""

    name = "GangScheduling"
    texts: ClassVar[Texts] = {
        "pod-group-incomplete": (NOT_ENOUGH, WAITING, TIMED_OUT, *in_every_release("gang_lacks_members")),
        "plugin-message": ('failed to get podGroup {group}: podgroup.scheduling.k8s.io "{subject}" not found',),
    }

    def touches(self, pod: Pod) -> Touch:
        return Touch.CLUSTER if pod.spec.scheduling_group or pod.spec.workload_ref else Touch.NOTHING

    def pre_enqueue(self, pod: Pod) -> Status:
        """Raises `UndecidableError` for a pod that names a Workload, in a release that looks there."""
        reference = pod.spec.workload_ref
        if reference is not None and self.handle.release.behaviour.gangs_are_of_workloads:
            which = f'pod group "{reference.pod_group}" of Workload "{reference.name}"'
            raise UndecidableError(f"pod {pod.key} waits for the pods of {which}, which kschedx does not read")
        name = _group_name(pod)
        if name is None:
            return SUCCESS
        group = self._group(pod, name)
        if group is None:
            reason = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            return _waiting(reason, PodGroupIncomplete(group=name, exists=False, pods=0, min_count=0))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        pods = self._members(pod, name, scheduled=False)
        if pods < gang.min_count:
            reason = NOT_ENOUGH
            return _waiting(reason, PodGroupIncomplete(group=name, exists=True, pods=pods, min_count=gang.min_count))
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        name = _group_name(pod)
        if name is None:
            return SUCCESS
        group = self._group(pod, name)
        if group is None:
            group_key = f"{pod.metadata.namespace}/{name}"
            return error(f'failed to get podGroup {group_key}: podgroup.scheduling.k8s.io "{name}" not found')
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        pods = self._members(pod, name, scheduled=True) + 1  # this pod is assumed on its node by now
        if pods < gang.min_count:
            finding = PodGroupIncomplete(group=name, exists=True, pods=pods, min_count=gang.min_count)
            return Status(code=Code.WAIT, reasons=(WAITING,), findings=(finding,))
        return SUCCESS

    def _group(self, pod: Pod, name: str) -> PodGroup | None:
        return self.handle.snapshot.pod_groups.get(f"{pod.metadata.namespace}/{name}")

    def _members(self, pod: Pod, name: str, *, scheduled: bool) -> int:
        """The pods of the group, those with a node only where `scheduled`."""
        pods = self.handle.snapshot.pods
        members = members_of(pods, pod.metadata.namespace, name)
        if scheduled:
            members &= pods.node >= 0
        count = int(np.count_nonzero(members))
        known = pod.key in pods.rows
        return count if known or scheduled else count + 1


def _group_name(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None


def _waiting(reason: str, finding: PodGroupIncomplete) -> Status:
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(reason,), findings=(finding,))
