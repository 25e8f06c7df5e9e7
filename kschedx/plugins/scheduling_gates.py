"""SchedulingGates (pkg/scheduler/framework/plugins/schedulinggates)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from kschedx.findings import SchedulingGated
from kschedx.framework.interface import PreEnqueuePlugin, Texts, Touch
from kschedx.framework.status import SUCCESS, Status, unresolvable
from kschedx.kube.types import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Keeps a pod out of the queue until its spec.schedulingGates are empty."""

    name = "SchedulingGates"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"scheduling-gated": ("waiting for scheduling gates: [{subject}]",)}

    def reads(self, pod: Pod) -> Hashable:
        return pod.spec.scheduling_gates

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
        if not gates or not self.handle.release.enabled("PodSchedulingReadiness"):
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]", SchedulingGated(gates=gates))
