"""DefaultBinder (pkg/scheduler/framework/plugins/defaultbinder)."""

from __future__ import annotations

from kschedx.framework.interface import BindPlugin, CycleState
from kschedx.framework.status import SUCCESS, Status
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRow


class DefaultBinder(BindPlugin):
    """Creates the Binding in kube-scheduler; kschedx never writes."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        return SUCCESS
