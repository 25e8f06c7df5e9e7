"""The plugin itself: what PodTopologySpread does at each extension point."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.framework.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import SKIP, SUCCESS, Status, Verdicts, error
from kschedx.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, ConstraintRules
from kschedx.plugins.pod_topology_spread.filtering import Spread, spreads_of, verdicts
from kschedx.plugins.pod_topology_spread.scoring import SoftSpreads
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows

HARD: StateKey[tuple[Spread, ...]] = StateKey("PreFilterPodTopologySpread")
SOFT: StateKey[SoftSpreads] = StateKey("PreScorePodTopologySpread", 'error reading "{}" from cycleState: not found')


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """spec.topologySpreadConstraints, or the profile's default constraints for pods without any.

    DoNotSchedule constraints filter, ScheduleAnyway constraints score.
    """

    name = "PodTopologySpread"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        if not isinstance(args, PodTopologySpreadArgs):
            args = PodTopologySpreadArgs(defaulting_type=SYSTEM_DEFAULTING)
        self._rules = ConstraintRules(args, handle)

    def args_about(self, pod: Pod) -> object:
        return None if pod.spec.topology_spread_constraints else self.args

    def touches(self, pod: Pod) -> Touch:
        try:
            spreads = self._rules.of(pod, DO_NOT_SCHEDULE) or self._rules.of(pod, SCHEDULE_ANYWAY)
        except InputError:
            return Touch.CLUSTER
        return Touch.CLUSTER if spreads else Touch.NOTHING

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        try:
            constraints = self._rules.of(pod, DO_NOT_SCHEDULE)
        except InputError as wrong:
            text = self.handle.release.messages.hard_constraints_unreadable
            return PreFilterResult(status=error(text.format(error=wrong)))
        state[HARD] = spreads_of(constraints, self._rules, pod, nodes) if constraints else ()
        return PreFilterResult() if constraints else PRE_FILTER_SKIP

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[HARD] = tuple(spread.changed(change, +1) for spread in state[HARD])

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        state[HARD] = tuple(spread.changed(change, -1) for spread in state[HARD])

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return verdicts(state[HARD], nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        try:
            constraints = self._rules.of(pod, SCHEDULE_ANYWAY)
        except InputError as wrong:
            text = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {wrong}"
            return error(text)
        if not constraints:
            state[SOFT] = SoftSpreads.none(self.handle.nodes)
            return SKIP
        state[SOFT] = SoftSpreads.of(constraints, self._rules, pod, nodes, self.handle.nodes)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return state[SOFT].score(nodes)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return state[SOFT].normalize(nodes, scores)
