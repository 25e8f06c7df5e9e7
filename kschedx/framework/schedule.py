"""The scheduling of a pod, or of an equivalence class of pods, through the whole framework.

An equivalence class has the pods that are equal in everything that scheduling reads, except name and uid. A class of
one pod, on a cluster that does not change, runs every phase and keeps all results: that is `schedule`. On a moving
cluster, a class keeps the results of each plugin, and after a move evaluates again only what the move affects
(`Plugin.touches`). In a few cases, the pods of a class do not share the result: an internal error, a PreFilter that
rejects, a gate. Then each pod is decided by a class of its own.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go, and for the event's text FitError
in pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Protocol, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx import satellites
from kschedx.errors import UndecidableError
from kschedx.framework.columns import Filtering, ScoreFailedError, Scoring
from kschedx.framework.config import SchedulerConfig
from kschedx.framework.cycle import (
    Cycle,
    Outcome,
    Scores,
    Stake,
    Unevaluated,
    UnevaluatedKind,
    open_stake,
    unknown_plugins,
)
from kschedx.framework.extenders import call_order
from kschedx.framework.interface import (
    BindingEffect,
    BindPlugin,
    CycleState,
    FilterPlugin,
    NotPreparedError,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    Touch,
)
from kschedx.framework.preemption import KEPT, KeptDryRuns
from kschedx.framework.replicas import NotFollowedError, SharedResults
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code, FilterOutcome, Status, error
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import (
    ClusterRow,
    ClusterRows,
    cluster_rows,
    distinct,
    each_cluster_row,
    each_row,
    rows_where,
)
from kschedx.snapshot.moving_cluster import Steps
from kschedx.snapshot.nodes import NodeTable, PodRows

NO_NODES = "no nodes available to schedule pods"

_Counted = tuple[tuple[int, ...], tuple[int, ...]]  # the nominated pods that count, and their nodes

READING_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """The outcome of one pod: a Cycle without its trace."""

    outcome: Outcome
    message: str = ""
    best: ClusterRows = field(default_factory=lambda: cluster_rows([]))  # (tie,) the nodes that share the highest total
    nominated: ClusterRow | None = None
    """The pod's nominated node, if the pod fits it: kube-scheduler then evaluates no other."""
    post_filter: PostFilterResult | None = None

    @classmethod
    def of(cls, cycle: Cycle) -> Decision:
        return cls(
            outcome=cycle.outcome,
            message=cycle.message,
            best=cluster_rows(cycle.best),
            nominated=cycle.nominated,
            post_filter=cycle.post_filter,
        )

    @property
    def choice(self) -> ClusterRows:
        """The nodes among which kube-scheduler picks."""
        return self.best if self.nominated is None else cluster_rows([self.nominated])


class _ExtendedCycle(Protocol):
    """The extenders' part of one cycle, filled step by step during the cycle."""

    error: str

    @property
    def left(self) -> Sequence[object] | None:
        """The nodes that passed the plugins and the extenders; None if no extender was called."""
        ...

    def pass_nominated(self, node: ClusterRow) -> bool:
        """Return whether the extenders pass the nominated node, which is tried alone, before all others."""
        ...

    def filter(self, feasible: NodeTable) -> None:
        """Call the extenders about the nodes that passed the plugins."""
        ...

    def score(self, state: CycleState) -> tuple[Decision, Scores | None]:
        """Return the end of the cycle if nodes are left: plugins score the nodes that the extenders returned, and the
        extenders' scores are added."""
        ...

    def diagnosed(self, nodes: NodeTable, outcome: FilterOutcome) -> tuple[FilterOutcome, Counter[str], int]:
        """Return the outcome as PostFilter sees it, the number of nodes for each reason, and the number of node names
        that have a status at all. `outcome` is the plugins' on `nodes`."""
        ...

    def judged(self, cycle: Cycle) -> Cycle:
        """Return the finished cycle with the extenders' part."""
        ...


class _NotSharedError(Exception):
    """The pods of a class do not share the next result."""


class EquivalenceClass:
    """An equivalence class of pods under one profile."""

    def __init__(
        self,
        framework: Framework,
        pod: Pod,
        steps: Steps | None = None,
        placement: ClusterRows | None = None,
        *,
        preempts: bool = True,
    ) -> None:
        """`steps` are the moves of a moving cluster. Without them, the class has only this pod, and its verdicts have
        explanations. `placement` are the only nodes on which a pod group is tried, ascending; None for all. Without
        `preempts`, no PostFilter plugin runs."""
        self._framework = framework
        self._steps = steps
        self._placement = placement
        self._preempts = preempts
        self._seen = -1
        self.is_shared = False  # whether others of the class get the last pod's decision, as long as nothing moves
        self._gates = framework.plugins("preEnqueue", PreEnqueuePlugin)
        """The PreEnqueue plugins that run for every pod, after all of them have run for one."""
        self._entered: tuple[Status, ...] = ()
        self._state = CycleState()
        touch = self._touch(pod)
        self._filtering = Filtering(framework, touch, explains=steps is None, placement=placement)
        self._scoring = Scoring(framework, touch)
        self._counted: _Counted = ((), ())
        self._decision: Decision | None = None
        self._decided_for = ""  # the nominated node of the pod of `_decision`
        self._scored: ClusterRows | Scores | None = None
        """The nodes whose scores led to `_decision`, or the scores with extenders; None if nothing was scored."""
        self._extended: _ExtendedCycle | None = None
        self._beyond: tuple[NodeTable, FilterOutcome] | None = None
        """The nodes that PreFilter returns and the nominated one, if that is not among them."""

    def _touch(self, pod: Pod) -> Callable[[Plugin], Touch]:
        """Return how far moves affect each plugin. The class of a single pod evaluates everything, as kube-scheduler
        does, and nothing twice."""
        if self._steps is None:
            return lambda plugin: Touch.CLUSTER
        known: dict[str, Touch] = {}

        def touch(plugin: Plugin) -> Touch:
            if plugin.name not in known:
                known[plugin.name] = plugin.touches(pod)
            return known[plugin.name]

        return touch

    def copy_without(self, pod: Pod, plugins: Collection[str]) -> EquivalenceClass | None:
        """Return a class that differs from this one only in the results of these plugins; None if it must be evaluated
        from the start."""
        if self._seen < 0 or not self._filtering.is_plain:
            return None
        other = copy(self)
        other._filtering, other._scoring = self._filtering.copy(), self._scoring.copy()
        other._state = self._state.clone()
        other._decision = None
        other._counted = ((), ())
        touch = self._touch(pod)
        other._state.discard(KEPT)
        if self._keeps_dry_runs_without(plugins, touch):
            other._state[KEPT] = self._state[KEPT].copy()
            other._state[KEPT].forget(ClusterRows(np.array(self._counted[1], dtype=np.int64)))
        if not other._filtering.evaluate_plugins(other._state, pod, plugins, touch):
            return None
        try:
            other._scoring.evaluate_plugins(other._state, pod, other._filtering.nodes, plugins, touch)
        except ScoreFailedError:
            return None
        return other

    def _keeps_dry_runs_without(self, plugins: Collection[str], touch: Callable[[Plugin], Touch]) -> bool:
        """Return whether there are kept dry runs in which none of these plugins has a part."""
        if KEPT not in self._state or not self._state[KEPT].holds:
            return False
        return all(touch(plugin) is Touch.CLUSTER for plugin in self._plugins() if plugin.name in plugins)

    # --- the outcome of a pod

    def decide(self, pod: Pod) -> Decision:
        """Return the current outcome of a pod of this class."""
        self.is_shared = False
        try:
            decision = self._shared_decision(pod)
            self.is_shared = not self._gates
            return decision
        except _NotSharedError:
            return self._alone(pod).decide(pod)

    def _alone(self, pod: Pod) -> EquivalenceClass:
        return EquivalenceClass(self._framework, pod, placement=self._placement, preempts=self._preempts)

    @property
    def keeps_dry_runs(self) -> bool:
        """Whether dry runs of preemption are kept for the pod of the last `decide`: each depends only on its own node's
        pods."""
        return self.is_shared and KEPT in self._state and self._state[KEPT].holds

    def shared_results(self, row: int) -> SharedResults | None:
        """Return the results that this class shares with others, right after `decide` for a pod that fits and is not on
        its node yet. `row` is its row in the PodTable. None if each pod must be decided by itself."""
        decision = self._decision
        if self._steps is None or self._seen != len(self._steps) or not self.is_shared or decision is None:
            return None
        if self._framework.nominated or decision.nominated is not None or self._placement is not None:
            return None
        if self._extended is not None or self._scored is None:
            return None
        framework = self._framework
        try:
            pod = framework.snapshot.pods[row]
            return SharedResults(framework, pod, row, self._state, self._filtering, self._scoring, self._seen)
        except NotFollowedError:
            return None

    def cycle(self, pod: Pod) -> Cycle:
        """Return the decision about a pod of this class with verdicts and scores. Only the class of a single pod has
        findings and the steps after the choice."""
        try:
            decision = self._shared_decision(pod)
        except _NotSharedError:
            return self._alone(pod).cycle(pod)
        framework, outcome = self._framework, self._filtering.pre_filter
        cycle = Cycle(
            pod=pod,
            snapshot=framework.snapshot,
            profile=framework.profile,
            release=framework.release,
            all_nodes=framework.nodes,
            outcome=decision.outcome,
            message=decision.message,
            pre_enqueue=self._entered,
            best=tuple(each_cluster_row(decision.best)),
            nominated=decision.nominated,
            post_filter=decision.post_filter,
            unevaluated=_unevaluated_plugins(framework, pod),
        )
        if not len(framework.nodes):
            return cycle
        cycle = replace(
            cycle,
            pre_filter=outcome.steps,
            pre_filter_status=outcome.status,
            filter_skipped=tuple(sorted(self._state.skip_filter)),
        )
        if not outcome.status.is_success:
            return cycle
        cycle = replace(cycle, nodes=self._filtering.nodes, filter=self._filtering.outcome())
        if self._scored is not None:
            scored = self._scored
            scores = scored if isinstance(scored, Scores) else self._scoring.scores(partial(self._table, scored))
            cycle = replace(cycle, scores=scores)
            if self._steps is None and len(cycle.choice) == 1:
                cycle = replace(cycle, dry_steps=_run_dry_steps(framework, self._state, pod, cycle.choice[0]))
        return cycle if self._extended is None else self._extended.judged(cycle)

    def _shared_decision(self, pod: Pod) -> Decision:
        try:
            return self._decision_now(pod)
        except UndecidableError:
            self._seen = -1
            self._require_own()  # the error names the pod that was evaluated first
            raise

    def _decision_now(self, pod: Pod) -> Decision:
        self._enter(pod)
        if not len(self._framework.nodes):
            self._require_own()
            return Decision(outcome=Outcome.UNSCHEDULABLE, message=NO_NODES)
        self._catch_up(pod)
        self._count_nominated(pod)
        if self._decision is None or self._decided_for != pod.status.nominated_node_name:
            try:
                self._decision = self._decide(pod)
            except ScoreFailedError:
                self._seen = -1
                raise _NotSharedError from None
            self._decided_for = pod.status.nominated_node_name
        return self._decision

    def _require_own(self) -> None:
        if self._steps is not None:
            raise _NotSharedError

    def _enter(self, pod: Pod) -> None:
        if self._steps is None:
            self._entered = self._framework.run_pre_enqueue(pod)
        elif not self._entered:
            self._entered = self._framework.run_pre_enqueue(pod)
            if not all(status.is_success for status in self._entered):
                raise _NotSharedError
            self._gates = tuple(plugin for plugin in self._gates if plugin.touches(pod) is Touch.CLUSTER)
        elif not all(plugin.pre_enqueue(pod).is_success for plugin in self._gates):
            raise _NotSharedError

    def _decide(self, pod: Pod) -> Decision:
        """Return the outcome, with what would follow for a gated pod, which kube-scheduler never evaluates. An internal
        error takes precedence over the gate."""
        decision = self._conclude(pod)
        if self._steps is not None:
            return decision
        gated = not all(status.is_success for status in self._entered)
        if gated and decision.outcome is not Outcome.ERROR:
            return replace(decision, outcome=Outcome.GATED)
        if (
            decision.outcome is Outcome.SCHEDULED
            and open_stake(_unevaluated_plugins(self._framework, pod)) is Stake.FIT
        ):
            return replace(decision, outcome=Outcome.UNDECIDED)
        return decision

    def _conclude(self, pod: Pod) -> Decision:
        framework, filtering, outcome = self._framework, self._filtering, self._filtering.pre_filter
        self._scored = self._extended = self._beyond = None
        if not filtering.is_plain:
            self._require_own()
        if not outcome.status.is_success:
            if not outcome.status.is_rejection:
                return Decision(outcome=Outcome.ERROR, message=outcome.status.message)
            return self._post_filter(pod, framework.nodes, outcome.status, f" {outcome.status.message}.")
        if framework.extenders is not None:
            begin = cast("Callable[..., _ExtendedCycle]", satellites.provider(satellites.EXTENDED_CYCLE))
            self._extended = begin(framework, framework.extenders, pod)
        feasible = filtering.feasible
        nominated = self._nominated_node(pod)
        if nominated is not None and self._extended is not None and not self._extended.pass_nominated(nominated):
            nominated = None
        if nominated is not None:
            return self._best(pod, feasible if nominated in feasible else cluster_rows([nominated]), nominated)
        error = "" if filtering.is_plain else self._broken_node_set() or filtering.error()
        if error:
            self._extended = None
            return Decision(outcome=Outcome.ERROR, message=error)
        if self._extended is not None:
            self._extended.filter(framework.nodes.at(feasible))
            if self._extended.error:
                return Decision(outcome=Outcome.ERROR, message=self._extended.error)
            if self._extended.left:
                decision, self._scored = self._extended.score(self._state)
                return decision
            if self._extended.left is not None:
                return self._nothing_fits(pod)
        return self._best(pod, feasible, None) if len(feasible) else self._nothing_fits(pod)

    def _nominated_node(self, pod: Pod) -> ClusterRow | None:
        """Return the node for which the pod is nominated, if it fits there: then no other node is evaluated."""
        row = self._framework.snapshot.cluster.index.get(pod.status.nominated_node_name)
        if row is None:
            return None
        if self._filtering.is_left(row):
            return row if self._filtering.passes(row) else None
        if self._placement is not None and row not in self._placement:
            return None
        self._require_own()
        left = self._filtering.nodes
        more = self._framework.nodes.at(ClusterRows(np.sort(np.append(left.rows, row))))
        outcome = self._framework.passes_filters(self._state, pod, more)
        self._beyond = more, outcome
        return row if outcome.passed[more.rows == row].all() else None

    def _broken_node_set(self) -> str:
        """Return the version's error about names from PreFilter plugins that no node has; empty if they cause none."""
        names, behavior = self._filtering.pre_filter.nodes, self._framework.release.behavior
        unknown = sorted((names or frozenset()) - self._framework.snapshot.cluster.index.keys())
        if unknown and behavior.unknown_node_name_is_an_error:
            return f'nodeinfo not found for node name "{unknown[0]}"'
        if names is not None and len(unknown) == len(names) and behavior.panics_without_nodes_left:
            return "panic: runtime error: integer divide by zero"
        return ""

    def _best(self, pod: Pod, feasible: ClusterRows, nominated: ClusterRow | None) -> Decision:
        places, _ = self._filtering.positions(feasible)
        try:
            totals = self._scoring.totals(self._state, pod, partial(self._table, feasible), places)
        except ScoreFailedError as failed:
            self._require_own()
            # a nominated node that fits, or the only feasible one, is never scored, so no score can fail
            alone = ClusterRow(int(feasible[0])) if len(feasible) == 1 else nominated
            if alone is None:
                return Decision(outcome=Outcome.ERROR, message=failed.status.message)
            return Decision(outcome=Outcome.SCHEDULED, best=cluster_rows([alone]), nominated=nominated)
        self._scored = feasible
        best = ClusterRows(feasible[np.flatnonzero(totals == totals.max())])
        return Decision(outcome=Outcome.SCHEDULED, best=best, nominated=nominated)

    @property
    def _node_count(self) -> int:
        """The number of nodes to evaluate."""
        return len(self._framework.nodes) if self._placement is None else len(self._placement)

    def _table(self, rows: ClusterRows) -> NodeTable:
        nodes = self._framework.nodes
        return nodes if len(rows) == len(nodes) else nodes.at(rows)

    # --- no feasible node

    def _nothing_fits(self, pod: Pod) -> Decision:
        framework, filtering, extended = self._framework, self._filtering, self._extended
        if self._steps is not None and KEPT not in self._state:  # most classes never need dry runs
            names = (plugin.name for plugin in framework.plugins("filter", FilterPlugin))
            self._state[KEPT] = KeptDryRuns(len(framework.nodes), names)
        nodes, outcome = filtering.nodes, filtering.outcome()
        if self._beyond is not None and not framework.release.behavior.node_left_out_is_not_nominated:
            # the nominated node was tried first, whatever PreFilter returns; an error there is logged and leaves no
            # status
            more, diagnosed = self._beyond
            nodes, outcome = (nodes, outcome) if (diagnosed.codes == Code.ERROR).any() else (more, diagnosed)
        reasons, explicit = outcome.count_reasons(), len(nodes)
        named = sorted({*filtering.pre_filter.naming, *_rejector_of_nominated(pod, nodes, outcome)})
        left_out = framework.release.messages.node_left_out.format(plugins=" ".join(named))
        if extended is not None:
            outcome, reasons, explicit = extended.diagnosed(nodes, outcome)
        absent = self._node_count - explicit
        if filtering.pre_filter.naming and absent > 0 and left_out:
            reasons[left_out] += absent
        phrase = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return self._post_filter(pod, nodes, outcome, f" {phrase}." if phrase else "")

    def _post_filter(self, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status, phrase: str) -> Decision:
        """Run PostFilter, and build the event's text: what rejected the nodes, then PostFilter's message."""
        result = self._framework.run_post_filter(self._state, pod, nodes, outcome) if self._preempts else None
        behavior = self._framework.release.behavior
        message = f"0/{self._node_count} nodes are available:{phrase}"
        status = None if result is None else result.status
        if status is not None and status.message and (status.is_rejection or behavior.post_filter_error_is_reported):
            message += f" {status.message}"
            if behavior.post_filter_part_gets_full_stop:
                message += "."
        return Decision(outcome=Outcome.UNSCHEDULABLE, message=message, post_filter=result)

    # --- evaluation after moves

    def _catch_up(self, pod: Pod) -> None:
        """Bring the columns up to date."""
        steps = self._steps
        if steps is None:
            self._decision = None
            self._evaluate(pod)
            return
        if self._seen != len(steps):
            self._decision = None
            if self._seen < 0 or not self._filtering.is_plain:
                self._evaluate(pod)
            else:
                moved, touched, signs = steps.since(self._seen)
                # nodes that were added and deleted again have rows behind the others
                count = len(self._framework.nodes)
                rows = distinct(touched) if len(touched) < count else np.flatnonzero(np.bincount(touched))
                rows = rows[rows < count]
                nodes_too = not signs.all()
                self._evaluate_touched(pod, ClusterRows(rows), nodes_too=nodes_too)
                if KEPT in self._state:
                    kept = self._state[KEPT]
                    if nodes_too or len(rows) != 1 or (touched != rows).any():
                        kept.forget(ClusterRows(rows))
                    else:
                        kept.follow(self._framework.snapshot.pods, moved, ClusterRows(rows), signs)
            self._seen = len(steps)
        if not self._filtering.is_plain:
            raise _NotSharedError

    def _evaluate(self, pod: Pod) -> None:
        """Evaluate everything, for the first time."""
        self._state = CycleState()
        self._counted = ((), ())
        self._filtering.evaluate(self._state, pod)
        if self._steps is not None and self._filtering.is_plain:
            try:
                self._scoring.evaluate(self._state, pod, self._filtering.nodes)
            except ScoreFailedError:
                raise _NotSharedError from None

    def _evaluate_touched(self, pod: Pod, rows: ClusterRows, *, nodes_too: bool) -> None:
        """Evaluate again what may have changed because pods were added to these nodes or removed from them. If
        `nodes_too`, the nodes have changed as well."""
        # which nodes can reach volumes is computed ahead, for all nodes
        far = nodes_too and pod.spec.mounts_storage
        if far or not self._filtering.evaluate_touched(self._state, pod, rows, nodes_too=nodes_too):
            self._evaluate(pod)
            return
        self._scoring.touch(*self._filtering.positions(rows), nodes_too=nodes_too)

    def _count_nominated(self, pod: Pod) -> None:
        """Update the verdicts for the pods that are nominated now."""
        framework = self._framework
        if not self._filtering.pre_filter.status.is_success:
            return
        nobody = PodRows(pods=np.zeros(0, dtype=np.int64), nodes=cluster_rows([]))
        counted = framework.nominated_change(pod, framework.nodes) if framework.nominated else nobody
        if len(counted) and any(map(_may_read_nominations, self._plugins())):
            self._require_own()
        now = tuple(counted.pods.tolist()), tuple(counted.nodes.tolist())
        if now != self._counted:
            self._decision = None
            if KEPT in self._state:
                self._state[KEPT].forget(ClusterRows(np.array([*self._counted[1], *now[1]], dtype=np.int64)))
            self._counted = now
        if self._decision is None:
            self._filtering.count_nominated(self._state, pod, counted)

    def _plugins(self) -> Collection[Plugin]:
        framework = self._framework
        return {plugin for point in READING_POINTS for plugin in framework.plugins(point, Plugin)}


def _unasked_extenders(config: SchedulerConfig, pod: Pod) -> Iterator[Unevaluated]:
    """Yield the configured extenders that kube-scheduler would call for a pod. An extender that only binds decides
    nothing and is left out."""
    for index in call_order(config.extenders):
        extender = config.extenders[index]
        verbs = {
            "filterVerb": extender.filter_verb,
            "prioritizeVerb": extender.prioritize_verb,
            "preemptVerb": extender.preempt_verb,
        }
        where = tuple(field for field, verb in verbs.items() if verb)
        if where and extender.is_interested(pod):
            stake = Stake.FIT if extender.filter_verb else Stake.NODE if extender.prioritize_verb else Stake.NOTHING
            yield Unevaluated(kind=UnevaluatedKind.EXTENDER, name=str(extender.url), where=where, stake=stake)


def _unevaluated_plugins(framework: Framework, pod: Pod) -> tuple[Unevaluated, ...]:
    unasked = framework.extenders is not None and not framework.extenders.are_asked
    return (
        *unknown_plugins(framework.profile, framework.config),
        *(_unasked_extenders(framework.config, pod) if unasked else ()),
    )


def _rejector_of_nominated(pod: Pod, nodes: NodeTable, outcome: FilterOutcome) -> tuple[str, ...]:
    """Return the plugin that rejects the nominated node, if any: kube-scheduler counts it among those that returned
    node names."""
    row = nodes.cluster.index.get(pod.status.nominated_node_name)
    if row is None:
        return ()
    return tuple(outcome.status(here).plugin for here in each_row(rows_where(nodes.rows == row)))


def _may_read_nominations(plugin: Plugin) -> bool:
    """Whether the plugin may read nominated pods: one that does not declare what it `touches` may read anything."""
    return type(plugin).touches is Plugin.touches and plugin.touch is Touch.CLUSTER


def schedule(framework: Framework, pod: Pod) -> Cycle:
    """Run a pod through every phase. Nothing is random: if kube-scheduler picks at random, `best` has several nodes."""
    return EquivalenceClass(framework, pod).cycle(pod)


# --- after the choice of a node


def binding_effects(framework: Framework, pod: Pod, node: ClusterRow) -> Iterator[BindingEffect]:
    """Yield what is bound and allocated besides the pod when the pod is bound to a node that it fits."""
    binding = [it for it in framework.plugins("reserve", ReservePlugin) if type(it).bound is not ReservePlugin.bound]
    if not binding:
        return
    state, chosen = CycleState(), framework.nodes.at(cluster_rows([node]))
    for plugin in binding:
        if isinstance(plugin, PreFilterPlugin):
            plugin.pre_filter(state, pod, framework.nodes)
        if isinstance(plugin, FilterPlugin):
            plugin.filter(state, pod, chosen)
        yield plugin.bound(state, pod, node)


def _run_dry_steps(
    framework: Framework, state: CycleState, pod: Pod, node: ClusterRow
) -> tuple[tuple[str, Status], ...]:
    """Return what Reserve, Permit, PreBind, Bind, and PostBind would do on the chosen node; nothing changes."""
    steps: list[tuple[str, Status]] = []
    reserved: list[ReservePlugin] = []

    def fails(point: str, plugin: Plugin, step: Callable[[CycleState, Pod, ClusterRow], Status]) -> bool:
        try:
            status = step(state, pod, node)
        except NotPreparedError as missing:
            status = error(str(missing))
        steps.append((point, status.by(plugin.name)))
        failed = not (status.is_success or status.is_skip or (point == "permit" and status.code is Code.WAIT))
        if failed:
            for done in reversed(reserved):
                done.unreserve(state, pod, node)
        return failed

    for reserve in framework.plugins("reserve", ReservePlugin):
        reserved.append(reserve)  # a plugin whose Reserve failed is unreserved too
        if fails("reserve", reserve, reserve.reserve):
            return tuple(steps)
    for permit in framework.plugins("permit", PermitPlugin):
        if fails("permit", permit, permit.permit):
            return tuple(steps)
    for pre_bind in framework.plugins("preBind", PreBindPlugin):
        if fails("preBind", pre_bind, pre_bind.pre_bind):
            return tuple(steps)
    for bind in framework.plugins("bind", BindPlugin):
        if fails("bind", bind, bind.bind):
            return tuple(steps)
        if not steps[-1][1].is_skip:
            break
    for post_bind in framework.plugins("postBind", PostBindPlugin):
        post_bind.post_bind(state, pod, node)
        steps.append(("postBind", Status(plugin=post_bind.name)))
    return tuple(steps)
