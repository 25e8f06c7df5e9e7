"""What follows the choice of a node: the steps that only say what they would do, and a cluster in which they are done.

Source of the rules: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from kschedx.framework.cycle import Cycle, Outcome, Stake, Unevaluated, open_stake, unasked_extenders, unknown_plugins
from kschedx.framework.interface import (
    BindingEffect,
    BindPlugin,
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, FilterOutcome, Status
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRow, ClusterRows, TableRow, cluster_rows, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable

if TYPE_CHECKING:
    from kschedx.extenders.run import Extended


def after_binding(framework: Framework, pod: Pod, node: ClusterRow) -> Iterator[BindingEffect]:
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


# One pod through the whole framework.
#
# Sources of the rules: pkg/scheduler/schedule_one.go, and for the event's text FitError in
# pkg/scheduler/framework/types.go.

NO_NODES = "no nodes available to schedule pods"


def schedule(framework: Framework, pod: Pod) -> Cycle:
    """Run a pod through every phase. Nothing is left to chance: where kube-scheduler draws lots, `best` has several."""
    cycle = Cycle(
        pod=pod,
        snapshot=framework.snapshot,
        profile=framework.profile,
        release=framework.release,
        all_nodes=framework.nodes,
        outcome=Outcome.UNSCHEDULABLE,
        pre_enqueue=framework.run_pre_enqueue(pod),
        unheard=tuple(_unheard(framework, pod)),
    )
    if not len(framework.nodes):
        return replace(cycle, message=NO_NODES)
    cycle = _schedule(framework, cycle)
    # kube-scheduler never looks at a gated pod; what would follow is told all the same, an internal error first of all
    gated = any(not status.is_success for status in cycle.pre_enqueue)
    if gated and cycle.outcome is not Outcome.ERROR:
        return replace(cycle, outcome=Outcome.GATED)
    if cycle.outcome is Outcome.SCHEDULED and open_stake(cycle.unheard) is Stake.FIT:
        return replace(cycle, outcome=Outcome.UNDECIDED)
    return cycle


def _unheard(framework: Framework, pod: Pod) -> Iterator[Unevaluated]:
    yield from unknown_plugins(framework.profile, framework.config)
    if framework.extenders is not None and not framework.extenders.are_asked:
        yield from unasked_extenders(framework.config, pod)


def _schedule(framework: Framework, cycle: Cycle) -> Cycle:
    state, pod = CycleState(), cycle.pod

    steps, status, names, naming = framework.run_pre_filter(state, pod)
    cycle = replace(cycle, pre_filter=steps, pre_filter_status=status, filter_skipped=tuple(sorted(state.skip_filter)))
    if not status.is_success:
        if not status.is_rejection:
            return replace(cycle, outcome=Outcome.ERROR, message=status.message)
        return _post_filter(framework, state, cycle, framework.nodes, status, f" {status.message}.")

    nodes = framework.nodes if names is None else framework.nodes.only(names)
    outcome = framework.passes_filters(state, pod, nodes)
    cycle = replace(cycle, nodes=nodes, filter=outcome)

    nominated = _nominated_node(framework, state, pod)
    extended = None
    if framework.extenders is not None:
        from kschedx.extenders.run import Extended  # most configurations have none

        extended = Extended(framework, framework.extenders, pod)
        if nominated is not None and not extended.pass_nominated(nominated):
            nominated = None
    if nominated is not None:
        cycle = replace(cycle, nominated=nominated)
        if nominated not in nodes.rows[outcome.passed]:
            nodes = framework.nodes.at(cluster_rows([nominated]))
            cycle = _score(framework, state, cycle, nodes)
        else:
            cycle = _score(framework, state, cycle, nodes.take(rows_where(outcome.passed)))
        return cycle if extended is None else extended.judged(cycle)

    broken = _broken_node_set(framework, names)
    if broken:
        return replace(cycle, outcome=Outcome.ERROR, message=broken)
    failed = next(each_row(rows_where(outcome.codes == Code.ERROR)), None)
    if failed is not None:
        first = outcome.status(failed)
        text = f'running "{first.plugin}" filter plugin: {first.message}'
        return replace(cycle, outcome=Outcome.ERROR, message=text)
    feasible = nodes.take(rows_where(outcome.passed))
    if extended is not None:
        extended.filter(feasible)
        if extended.error:
            return extended.judged(replace(cycle, outcome=Outcome.ERROR, message=extended.error))
        if extended.left is not None and extended.left:
            return extended.judged(extended.score(state, cycle))
    if len(feasible) and (extended is None or extended.left is None):
        cycle = _score(framework, state, cycle, feasible)
        return cycle if extended is None else extended.judged(cycle)

    return nothing_fits(framework, state, cycle, nodes, outcome, naming, extended)


def nothing_fits(
    framework: Framework,
    state: CycleState,
    cycle: Cycle,
    nodes: NodeTable,
    outcome: FilterOutcome,
    naming: tuple[str, ...],
    extended: Extended | None = None,
) -> Cycle:
    """The rest of a cycle in which no node is left: PostFilter and the event's text.

    `naming` are the plugins that named the nodes to look at, `extended` is the extenders' part so far.
    """
    nodes, outcome = _diagnosed(framework, state, cycle.pod, nodes, outcome)
    reasons = outcome.count_reasons()
    named = sorted({*naming, *_rejector_of_nominated(cycle.pod, nodes, outcome)})
    left_out = framework.release.messages.node_left_out.format(plugins=" ".join(named))
    explicit = len(nodes)
    if extended is not None:
        outcome, reasons, explicit = extended.diagnosed(nodes, outcome)
    absent = len(framework.nodes) - explicit
    if naming and absent > 0 and left_out:
        reasons[left_out] += absent
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    cycle = _post_filter(framework, state, cycle, nodes, outcome, f" {told}." if told else "")
    return cycle if extended is None else extended.judged(cycle)


def _broken_node_set(framework: Framework, names: frozenset[str] | None) -> str:
    """What releases make of names, given by PreFilter plugins, that no node has; empty where that does no harm."""
    unknown = sorted((names or frozenset()) - framework.snapshot.cluster.index.keys())
    if unknown and framework.release.behaviour.unknown_node_name_is_an_error:
        return f'nodeinfo not found for node name "{unknown[0]}"'
    if names is not None and len(unknown) == len(names) and framework.release.behaviour.panics_without_nodes_left:
        return "panic: runtime error: integer divide by zero"
    return ""


def _nominated_node(framework: Framework, state: CycleState, pod: Pod) -> ClusterRow | None:
    """The node that the pod is nominated for, if it fits there: then no other node is looked at."""
    row = framework.snapshot.cluster.index.get(pod.status.nominated_node_name)
    if row is None:
        return None
    nominated = framework.nodes.at(cluster_rows([row]))
    return row if bool(framework.passes_filters(state, pod, nominated).passed[0]) else None


def _diagnosed(
    framework: Framework, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome
) -> tuple[NodeTable, FilterOutcome]:
    """The nodes that have a status of their own, none of which fits: those that PreFilter left in, and the nominated
    one, which was tried first whatever PreFilter said."""
    row = framework.snapshot.cluster.index.get(pod.status.nominated_node_name)
    if row is None or row in nodes.rows or framework.release.behaviour.node_left_out_is_not_nominated:
        return nodes, outcome
    more = framework.nodes.at(ClusterRows(np.sort(np.append(nodes.rows, row))))
    diagnosed = framework.passes_filters(state, pod, more)
    # an error there is logged and leaves no status behind
    return (nodes, outcome) if (diagnosed.codes == Code.ERROR).any() else (more, diagnosed)


def _rejector_of_nominated(pod: Pod, nodes: NodeTable, outcome: FilterOutcome) -> tuple[str, ...]:
    """The plugin that rejects the nominated node: kube-scheduler counts it among those that named nodes."""
    row = nodes.cluster.index.get(pod.status.nominated_node_name)
    if row is None:
        return ()
    return tuple(outcome.status(here).plugin for here in each_row(rows_where(nodes.rows == row)))


def _score(framework: Framework, state: CycleState, cycle: Cycle, feasible: NodeTable) -> Cycle:
    scores = framework.run_scores(state, cycle.pod, feasible)
    if isinstance(scores, Status):
        # a nominated node that fits, or the only one that does, is never scored, so nothing can fail
        alone = feasible.cluster_row(TableRow(0)) if len(feasible) == 1 else cycle.nominated
        if alone is None:
            return replace(cycle, outcome=Outcome.ERROR, message=scores.message)
        return replace(cycle, outcome=Outcome.SCHEDULED, best=(alone,))
    best = tuple(map(feasible.cluster_row, each_row(rows_where(scores.totals == scores.totals.max()))))
    cycle = replace(cycle, outcome=Outcome.SCHEDULED, scores=scores, best=best)
    if len(cycle.choice) != 1:
        return cycle
    return replace(cycle, dry_steps=run_dry_steps(framework, state, cycle.pod, cycle.choice[0]))


def _post_filter(
    framework: Framework,
    state: CycleState,
    cycle: Cycle,
    nodes: NodeTable,
    outcome: FilterOutcome | Status,
    told: str,
) -> Cycle:
    """PostFilter, and the event's text: what rejected the nodes, then what PostFilter says."""
    result = framework.run_post_filter(state, cycle.pod, nodes, outcome)
    behaviour = framework.release.behaviour
    message = f"0/{len(framework.nodes)} nodes are available:{told}"
    if (
        result is not None
        and result.status.message
        and (result.status.is_rejection or behaviour.post_filter_error_is_told)
    ):
        message += f" {result.status.message}"
        if behaviour.post_filter_part_gets_full_stop:
            message += "."
    return replace(cycle, message=message, post_filter=result)
