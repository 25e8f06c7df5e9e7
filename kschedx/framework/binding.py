"""What follows the choice of a node: the steps that only say what they would do, and a cluster in which they are done.

Source of the rules: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.types import Pod
from kschedx.framework.interface import (
    BindPlugin,
    Bound,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.snapshot.rows import ClusterRow, cluster_rows


def after_binding(framework: Framework, pod: Pod, node: ClusterRow) -> Iterator[Bound]:
    """What is bound and allocated beside the pod when that is bound to a node that it fits on."""
    binding = [one for one in framework.plugins("reserve", ReservePlugin) if type(one).bound is not ReservePlugin.bound]
    if not binding:
        return
    state, chosen = CycleState(), framework.nodes.at(cluster_rows([node]))
    for plugin in binding:
        if isinstance(plugin, PreFilterPlugin):
            plugin.pre_filter(state, pod, framework.nodes)
        if isinstance(plugin, FilterPlugin):
            plugin.filter(state, pod, chosen)
        yield plugin.bound(state, pod, node)


def run_dry_steps(
    framework: Framework, state: CycleState, pod: Pod, node: ClusterRow
) -> tuple[tuple[str, Status], ...]:
    """Reserve, Permit, PreBind, Bind and PostBind on the chosen node: what each would do; nothing changes."""
    steps: list[tuple[str, Status]] = []
    reserved: list[ReservePlugin] = []

    def settle(point: str, plugin: Plugin, status: Status) -> bool:
        steps.append((point, status.by(plugin.name)))
        failed = not (status.is_success or status.is_skip or (point == "permit" and status.code is Code.WAIT))
        if failed:
            for done in reversed(reserved):
                done.unreserve(state, pod, node)
        return failed

    for reserve in framework.plugins("reserve", ReservePlugin):
        reserved.append(reserve)  # a plugin whose Reserve failed is unreserved too
        if settle("reserve", reserve, reserve.reserve(state, pod, node)):
            return tuple(steps)
    for permit in framework.plugins("permit", PermitPlugin):
        if settle("permit", permit, permit.permit(state, pod, node)):
            return tuple(steps)
    for pre_bind in framework.plugins("preBind", PreBindPlugin):
        if settle("preBind", pre_bind, pre_bind.pre_bind(state, pod, node)):
            return tuple(steps)
    for bind in framework.plugins("bind", BindPlugin):
        status = bind.bind(state, pod, node)
        if settle("bind", bind, status):
            return tuple(steps)
        if not status.is_skip:
            break
    for post_bind in framework.plugins("postBind", PostBindPlugin):
        post_bind.post_bind(state, pod, node)
        steps.append(("postBind", Status(plugin=post_bind.name)))
    return tuple(steps)
