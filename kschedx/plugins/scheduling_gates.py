"""SchedulingGates (pkg/scheduler/framework/plugins/schedulinggates)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from kschedx.findings import SchedulingGated
from kschedx.framework.interface import PreEnqueuePlugin, Texts, Touch
from kschedx.framework.status import SUCCESS, Code, Status
from kschedx.kube.types import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Keeps a pod out of the queue until its spec.schedulingGates are empty."""

    name = "SchedulingGates"
    texts: ClassVar[Texts] = {
        "scheduling-gated": ("waiting for scheduling gates: [{subject}]",),
    }

    def reads(self, pod: Pod) -> Hashable:
        return pod.spec.scheduling_gates

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
        if not gates or not self.handle.release.enabled("PodSchedulingReadiness"):
            return SUCCESS
        return Status(
            code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            reasons=(f"waiting for scheduling gates: [{' '.join(gates)}]",),
            findings=(SchedulingGated(gates=gates),),
        )
