"""The runner: runs a profile's plugins on a pod in the order of the framework.

Upstream: pkg/scheduler/framework/runtime/framework.go and pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeVar, cast

import numpy as np
from msgspec.structs import replace

from kschedx import satellites
from kschedx.framework import status as statuses
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.cycle import PreFilterOutcome, PreFilterStep
from kschedx.framework.interface import (
    CycleState,
    FilterPlugin,
    NotPreparedError,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    Room,
    Touch,
)
from kschedx.framework.registry import plugin_class
from kschedx.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, Code, FilterOutcome, Status, Verdicts
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.resources import RequestOptions
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import ClusterRow, ClusterRows, IntArray, TableRow, cluster_rows, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Ask, Extenders

_P = TypeVar("_P", bound=Plugin)


def request_options(release: Release) -> RequestOptions:
    """Return how pods' requests are counted with a version's feature gates."""
    return RequestOptions(
        use_status_resources=release.enabled("InPlacePodVerticalScaling"),
        pod_level_resources=release.enabled("PodLevelResources"),
        pod_level_in_place=release.enabled("InPlacePodLevelResourcesVerticalScaling"),
        sidecars=release.behavior.sidecars_are_known,
        rounded_by_container=release.behavior.requests_are_rounded_by_container,
        node_allocatable_claims=release.enabled("DRANodeAllocatableResources"),
        assumed_by_kind=release.behavior.assumed_requests_are_counted_by_kind,
    )


class Framework:
    """One profile on one snapshot; the `Handle` of its plugins."""

    def __init__(
        self, profile: Profile, config: SchedulerConfig, snapshot: Snapshot, release: Release, ask: Ask | None = None
    ) -> None:
        """`ask` calls the configured extenders; without it, they are not called."""
        self.profile = profile
        self.config = config
        self.snapshot = snapshot.with_finished_pods if release.behavior.finished_pods_are_counted else snapshot
        self.release = release
        self.nodes: NodeTable = self.snapshot.nodes(request_options(release))
        self._plugins: dict[str, Plugin] = {}
        self._by_point: dict[tuple[str, type[Plugin]], tuple[Plugin, ...]] = {}
        self.extenders = _extenders(config, ask, self.snapshot)

    def on(self, snapshot: Snapshot) -> Self:
        """Return the same profile on another snapshot. It is only a trial, so extenders are not called there."""
        return type(self)(self.profile, self.config, snapshot, self.release)

    def plugins(self, point: str, kind: type[_P]) -> tuple[_P, ...]:
        """Return the plugins of an extension point in order."""
        known_plugins = self._by_point.get((point, kind))
        if known_plugins is None:
            every = tuple(self._plugin(name) for name in self.profile.points[point])
            known_plugins = self._by_point[point, kind] = tuple(plugin for plugin in every if isinstance(plugin, kind))
        return cast("tuple[_P, ...]", known_plugins)

    def _plugin(self, name: str) -> Plugin:
        if name not in self._plugins:
            self._plugins[name] = plugin_class(name)(self.profile.args.get(name), self)
        return self._plugins[name]

    @property
    def nominated(self) -> Mapping[ClusterRow, tuple[int, ...]]:
        """Node to rows of the pods nominated for it, in load order. Pods of other schedulers are left out."""
        pods = self.snapshot.pods
        if not pods.nominated:
            return {}
        mine = {profile.scheduler_name for profile in self.config.profiles}
        counts_gated = self.release.behavior.gated_nominations_count
        nominated_rows: dict[ClusterRow, list[int]] = {}
        for row in pods.nominated:
            node = self.snapshot.cluster.index.get(pods.nominated_node_names[row])
            spec = pods.specs[row]
            if node is not None and spec.scheduler_name in mine and (counts_gated or not spec.scheduling_gates):
                nominated_rows.setdefault(node, []).append(row)
        return {node: tuple(rows) for node, rows in nominated_rows.items()}

    def run_pre_enqueue(self, pod: Pod) -> tuple[Status, ...]:
        """Every plugin's status. kube-scheduler stops at the first that is not Success, but users want to see all."""
        return tuple(plugin.pre_enqueue(pod).by(plugin.name) for plugin in self.plugins("preEnqueue", PreEnqueuePlugin))

    def run_pre_filter(
        self, state: CycleState, pod: Pod, known: Mapping[str, PreFilterStep] = MappingProxyType({})
    ) -> PreFilterOutcome:
        """Run PreFilter plugins in order, until one ends the phase. `known` plugins have already run on `state`; their
        steps are used unchanged."""
        steps: list[PreFilterStep] = []
        naming: list[str] = []
        left: frozenset[str] | None = None
        rejection: Status | None = None
        try:
            for plugin in self.plugins("preFilter", PreFilterPlugin):
                step = known.get(plugin.name) or self.pre_filter(plugin, state, pod)
                steps.append(step)
                status = step.status
                if status.is_skip:
                    continue
                if status.code is Code.UNSCHEDULABLE and not self.release.behavior.pre_filter_stops_at_any_rejection:
                    rejection = status  # the other plugins still run: preemption needs their state
                elif status.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                    return PreFilterOutcome(steps=tuple(steps), status=status)
                elif not status.is_success:
                    text = f'running PreFilter plugin "{plugin.name}": {status.message}'
                    return PreFilterOutcome(steps=tuple(steps), status=statuses.error(text, plugin.name))
                elif step.nodes is not None:
                    naming.append(plugin.name)
                    left = step.nodes if left is None else left & step.nodes
                if left is not None and not left and status.is_success:
                    rejection = _nothing_left(naming, self.release)
                    break
        finally:
            state.skip_filter = frozenset(step.status.plugin for step in steps if step.status.is_skip)
        return PreFilterOutcome(
            steps=tuple(steps), status=rejection or statuses.SUCCESS, nodes=left, naming=tuple(naming)
        )

    def pre_filter(self, plugin: PreFilterPlugin, state: CycleState, pod: Pod) -> PreFilterStep:
        """Run one plugin's PreFilter. Skip becomes Success if the version does not let the plugin skip."""
        result = plugin.pre_filter(state, pod, self.nodes)
        status = result.status.by(plugin.name)
        if status.is_skip and plugin.name in self.release.never_skips_filter:
            status = Status(plugin=plugin.name)
        return PreFilterStep(status=status, nodes=result.nodes)

    def run_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """Run every Filter plugin on every node, without nominated pods. A node's verdict is that of the first plugin
        that rejects it."""
        return FilterOutcome.of(
            {
                plugin.name: verdicts_of(plugin, state, pod, nodes)
                for plugin in self.plugins("filter", FilterPlugin)
                if plugin.name not in state.skip_filter
            },
            len(nodes),
        )

    def far_filters(self, state: CycleState, pod: Pod) -> Sequence[FilterPlugin]:
        """Return the Filter plugins that run and whose verdict on a node may depend on the pods of other nodes."""
        plugins = (plugin for plugin in self.plugins("filter", FilterPlugin) if plugin.name not in state.skip_filter)
        return [plugin for plugin in plugins if plugin.touches(pod) is Touch.CLUSTER]

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows | None = None) -> Room | None:
        """Return, as bounds on sums, how the pods of a node determine whether `pod` passes there; None if it cannot be
        expressed so. With `change`, only these pods are removed and added; nodes that other plugins reject do not
        count."""
        rooms: list[Room] = []
        for plugin in self.plugins("filter", FilterPlugin):
            if plugin.name in state.skip_filter or plugin.touches(pod) is Touch.NOTHING:
                continue
            room = plugin.room(state, pod, nodes)
            if room is not None:
                rooms.append(room)
            elif change is None or plugin.reads_any(state, pod, nodes, change):
                return None
        return rooms[0] if len(rooms) == 1 and not self.nominated else None

    def passes_filters(self, state: CycleState, pod: Pod, nodes: NodeTable) -> FilterOutcome:
        """Run RunFilterPluginsWithNominatedPods: a node for which pods of equal or higher priority are nominated must
        pass both with and without them."""
        outcome = self.run_filters(state, pod, nodes)
        change = self.nominated_change(pod, nodes)
        if not len(change):
            return outcome
        rows = rows_where(np.isin(nodes.rows, change.nodes))
        refused = self.rejections_with_nominated(change, state, pod, nodes.take(rows))
        return outcome.overrule({TableRow(int(rows[index])): status for index, status in refused.items()})

    def rejections_with_nominated(
        self, change: PodRows, state: CycleState, pod: Pod, nodes: NodeTable
    ) -> dict[TableRow, Status]:
        """Return which of `nodes` do not pass with these nominated pods on them, and why."""
        clone = state.clone()
        first_pass = self.run_filters(clone, pod, self.add_pods(clone, pod, nodes, change))
        return {row: first_pass.status(row) for row in each_row(rows_where(~first_pass.passed))}

    def nominated_change(self, pod: Pod, nodes: NodeTable) -> PodRows:
        """Return the nominated pods that count against `pod`, on the nodes of this table. Members of its group do not
        count: they have left the queue with the pod, and kube-scheduler looks nominated pods up in the queue."""
        pods: list[int] = []
        places: list[ClusterRow] = []
        table, group = self.snapshot.pods, pod.spec.scheduling_group
        if not self.release.enabled("GenericWorkload"):
            group = None
        for node, rows in self.nominated.items():
            for row in rows:
                is_pod_itself = table.uids[row] == pod.metadata.uid and table.key(row) == pod.key
                is_member = group is not None and table.specs[row].scheduling_group == group
                if is_member and table.namespaces[row] == pod.metadata.namespace:
                    continue
                if not is_pod_itself and table.priorities[row] >= pod.priority:
                    pods.append(row)
                    places.append(node)
        count = PodRows(pods=np.array(pods, dtype=np.int64), nodes=cluster_rows(places))
        if not len(count):
            return count
        here = np.isin(count.nodes, nodes.rows)
        return PodRows(pods=count.pods[here], nodes=ClusterRows(count.nodes[here]))

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Add pods to their nodes and call every PreFilter plugin, which updates `state`."""
        self._update(state, "AddPod", lambda plugin: plugin.add_pods(state, pod, nodes, change))
        return nodes.add_pods(change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> NodeTable:
        """Remove pods from their nodes and call every PreFilter plugin, which updates `state`."""
        self._update(state, "RemovePod", lambda plugin: plugin.remove_pods(state, pod, nodes, change))
        return nodes.remove_pods(change)

    def _update(self, state: CycleState, step: str, run: Callable[[PreFilterPlugin], None]) -> None:
        for plugin in self.plugins("preFilter", PreFilterPlugin):
            if plugin.name not in state.skip_filter:
                try:
                    run(plugin)
                except NotPreparedError as missing:
                    raise NotPreparedError(f'running {step} on PreFilter plugin "{plugin.name}": {missing}') from None

    def run_post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult | None:
        """Run the plugins in order until one succeeds or ends the phase; otherwise return the reasons of all. None if
        there are no plugins."""
        plugins = self.plugins("postFilter", PostFilterPlugin)
        reasons: tuple[str, ...] = ()
        released: dict[str, ResourceClaim | None] = {}
        last: PostFilterResult | None = None
        rejector = ""
        for plugin in plugins:
            result = plugin.post_filter(state, pod, nodes, outcome)
            status = result.status.by(plugin.name)
            released |= result.released
            if status.is_success or not status.is_rejection or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return replace(result, status=status, released=released)
            reasons += status.reasons
            rejector = rejector or plugin.name
            if last is None or result.dry_run is not None:
                last = result
        if last is None:
            return None
        status = Status(code=Code.UNSCHEDULABLE, reasons=reasons, plugin=rejector)
        return replace(last, status=status, released=released)

    def pre_score(self, plugin: PreScorePlugin, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        """Run one plugin's PreScore on the feasible nodes. Return Success, Skip, or the error that ends the cycle."""
        try:
            status = plugin.pre_score(state, pod, nodes)
        except NotPreparedError as missing:
            status = statuses.error(str(missing))
        if status.is_success or (status.is_skip and plugin.name in self.release.never_skips_score):
            return statuses.SUCCESS
        if status.is_skip:
            return status
        return statuses.error(f'running PreScore plugin "{plugin.name}": {status.message}')


def is_out_of_bounds(lowest: int, highest: int) -> bool:
    """Return whether scores between these are an error."""
    return lowest < MIN_NODE_SCORE or highest > MAX_NODE_SCORE


def score_error(plugin: str, scores: IntArray) -> Status | None:
    """Return the error that ends the cycle if a normalized score is out of bounds."""
    if not len(scores) or not is_out_of_bounds(int(scores.min()), int(scores.max())):
        return None
    outside = next(score for score in scores.tolist() if is_out_of_bounds(score, score))
    return statuses.error(
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {outside}, it '
        f"should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )


def _extenders(config: SchedulerConfig, ask: Ask | None, snapshot: Snapshot) -> Extenders | None:
    if not config.extenders:
        return None
    make = cast("Callable[..., Extenders]", satellites.provider(satellites.EXTENDERS))
    return make(config.extenders, ask, snapshot.manifests)


def verdicts_of(plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
    """Return the plugin's verdicts; an internal error on every node if PreFilter has not prepared it."""
    try:
        return plugin.filter(state, pod, nodes)
    except NotPreparedError as missing:
        return Verdicts.everywhere(len(nodes), statuses.worded_error(str(missing)))


def _nothing_left(naming: list[str], release: Release) -> Status:
    """Return the status for node names from PreFilter plugins that have no node in common."""
    if len(naming) == 1:
        text = f"node(s) didn't satisfy plugin {naming[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(naming))}] simultaneously"
    unresolvable = release.behavior.empty_node_set_is_unresolvable
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Status(code=code, reasons=(text,))
