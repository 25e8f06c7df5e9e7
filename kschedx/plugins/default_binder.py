"""DefaultBinder (pkg/scheduler/framework/plugins/defaultbinder)."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.framework.interface import BindPlugin
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Status
from kschedx.snapshot.rows import ClusterRow


class DefaultBinder(BindPlugin):
    """Would create the Binding of the pod to the node; kschedx never does."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        return SUCCESS
