"""kube-scheduler's decisions about a pod group as a whole, on a moving cluster.

It decides which sets of nodes to try, and which pods to preempt for the group. Every function leaves the cluster
unchanged.

Upstream: pkg/scheduler/schedule_one_podgroup.go, plugins/topologyaware, plugins/podgrouppodscount, and
framework/preemption/podgrouppreemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.framework.config import Profile
from kschedx.framework.cycle import Outcome
from kschedx.framework.interface import PlacementScorePlugin
from kschedx.framework.moving.run import EquivalenceKey, Run
from kschedx.framework.replicas import Pick
from kschedx.framework.schedule import Decision
from kschedx.framework.status import MAX_NODE_SCORE
from kschedx.framework.victims import budget_coverage
from kschedx.kube.types import PodGroup
from kschedx.snapshot.columns import ClusterRow, ClusterRows
from kschedx.snapshot.pods import group_priority, members_of, whole_group_of

_GENERATOR = "TopologyPlacementGenerator"
_POD_COUNT = "PodGroupPodsCount"
_NO_PLACEMENT = "no feasible placements found"

_MOST_DECISIONS = 100_000
"""The maximum number of members times victims, or times placements, to try for a group: kube-scheduler tries them one
by one, too."""


class _GroupPlacement(Struct, frozen=True, kw_only=True):
    """A set of nodes on which all pods of a group are tried."""

    domain: str = ""  # the value of the topology key that the nodes share; empty for all nodes
    nodes: ClusterRows | None = None  # ascending; None for all nodes


_EVERYWHERE = _GroupPlacement()


class _Placements(Struct, frozen=True, kw_only=True):
    key: str = ""  # the topology key; empty for a group that is tried on all nodes at once
    each: tuple[_GroupPlacement, ...] = (_EVERYWHERE,)
    """In order of their domains; kube-scheduler tries them in any order."""
    problem: Decision | None = None  # the outcome of every member if there are no placements


def _placements_of(run: Run, group: PodGroup, profile: Profile) -> _Placements:
    """Return a placement for each domain of the group's topology key. If pods of the group are assigned, only their
    domain has one."""
    constraints = group.spec.scheduling_constraints
    is_tried = run.scheduler.release.enabled("TopologyAwareWorkloadScheduling")
    if not is_tried or constraints is None or not constraints.topology or _GENERATOR not in profile.placement:
        return _Placements()
    key, pods = constraints.topology[0].key, run.cluster.pods
    label = run.snapshot.cluster.label(key)
    members = members_of(pods, group.metadata.namespace, group.metadata.name)
    taken: set[str] = set()
    for row in np.flatnonzero(members & (pods.node >= 0)).tolist():
        domain = label[int(pods.node[row])]
        if domain is None:
            return _undetermined_placements(key, f"no topology domain found for pod {pods.key(row)}")
        taken.add(domain)
    if len(taken) > 1:
        phrase = ", ".join(sorted(taken))
        return _undetermined_placements(key, f"more than 1 domain found for pod group: {phrase}")
    placements = {
        domain: ClusterRows(np.flatnonzero(label.codes == code))
        for code, domain in enumerate(label.values)
        if domain is not None and (not taken or domain in taken)
    }
    each = tuple(
        _GroupPlacement(
            domain=domain, nodes=None if len(placements[domain]) == len(run.cluster.node_names) else placements[domain]
        )
        for domain in sorted(placements)
        if len(placements[domain])
    )
    if not each:
        # pods are not preempted for such a group, and kube-scheduler adds that to its message
        reasons = [_NO_PLACEMENT]
        if run.scheduler.release.enabled("WorkloadAwarePreemption"):
            reasons.append(_refusal(group, profile))
        problem = Decision(outcome=Outcome.UNSCHEDULABLE, message=", ".join(reasons))
        return _Placements(key=key, each=(), problem=problem)
    return _Placements(key=key, each=each)


def _undetermined_placements(key: str, why: str) -> _Placements:
    phrase = f"cannot determine domain for already scheduled pods: {why}"
    return _Placements(key=key, each=(), problem=Decision(outcome=Outcome.ERROR, message=phrase))


class GroupTrial(Struct, frozen=True, kw_only=True):
    """The result of placing the members of a group one after the other, as far as they fit without preemption."""

    placement: _GroupPlacement
    nodes: dict[int, ClusterRow]  # the nodes of the members that fit
    is_feasible: bool  # whether at least minCount members then have a node


def _try_members(
    run: Run, members: Sequence[int], missing: int, placement: _GroupPlacement, pick: Pick, *, is_brief: bool = False
) -> GroupTrial:
    """Place the members one after the other. `missing` is the number of members that must fit. If `is_brief`, stop as
    soon as it is known whether they do. Raises `UndecidableError`."""
    mark = run.cluster.mark()
    nodes: dict[int, ClusterRow] = {}
    refused: set[EquivalenceKey] = set()
    try:
        for number, row in enumerate(members):
            if is_brief and (len(nodes) >= max(missing, 1) or len(nodes) + len(members) - number < missing):
                break
            class_key = run.equivalence_key(row)
            if class_key in refused:
                continue
            decision = run.decide(row, placement.nodes)
            if decision.outcome is Outcome.UNDECIDED:
                key = run.cluster.pods.key(row)
                raise UndecidableError(f"whether {key} fits is undecided, and so is its group")
            if decision.outcome is Outcome.SCHEDULED:
                nodes[row] = pick(decision.choice)
                run.bind(row, nodes[row])
                refused.clear()
            elif class_key is not None:
                refused.add(class_key)
    finally:
        run.cluster.revert(mark)
    return GroupTrial(placement=placement, nodes=nodes, is_feasible=bool(nodes) and len(nodes) >= missing)


class _PlacementChoice(Struct, frozen=True, kw_only=True):
    """The placement that kube-scheduler picks for a group."""

    placements: _Placements
    trials: tuple[GroupTrial, ...]
    best: tuple[GroupTrial, ...]
    """The feasible trials with the highest score, of which kube-scheduler picks any; empty if the group fits in no
    placement."""

    @property
    def shown(self) -> GroupTrial | None:
        """The trial to explain: the best one, or the one in which most members fit; None if there are no trials."""
        every = self.best or self.trials
        return max(every, key=lambda trial: len(trial.nodes), default=None)

    @property
    def message(self) -> str:
        """The message of the group's condition if the group fits in no placement."""
        if self.placements.problem is not None:
            return self.placements.problem.message
        return _no_placement_text(len(self.placements.each))


def _no_placement_text(count: int) -> str:
    return f"0/{count} placements are available, first placement status: {_GROUP_UNSCHEDULABLE}"


def choose_placement(
    run: Run, group: PodGroup, members: Sequence[int], missing: int, profile: Profile, pick: Pick
) -> _PlacementChoice:
    """Try the group in every placement. Raises `UndecidableError`."""
    placements = _placements_of(run, group, profile)
    if len(placements.each) * len(members) > _MOST_DECISIONS:
        raise _too_many(group, f"{len(placements.each):,} domains of {placements.key}")
    with run.group_cycle():
        trials = tuple(_try_members(run, members, missing, each, pick) for each in placements.each)
    feasible = [trial for trial in trials if trial.is_feasible]
    if len(feasible) > 1:
        scores = _placement_scores(run, group, feasible, profile)
        feasible = [trial for trial, score in zip(feasible, scores, strict=True) if score == max(scores)]
    return _PlacementChoice(placements=placements, trials=trials, best=tuple(feasible))


def _placement_scores(run: Run, group: PodGroup, trials: Sequence[GroupTrial], profile: Profile) -> list[int]:
    """Return the total score of each trial, from the plugins that score placements."""
    pods, totals = run.cluster.pods, [0] * len(trials)
    if _POD_COUNT in profile.placement:
        mine = members_of(pods, group.metadata.namespace, group.metadata.name)
        running = int(np.count_nonzero(mine & (pods.node >= 0)))
        counts = [running + len(trial.nodes) for trial in trials]
        totals = [count * MAX_NODE_SCORE // max(counts) * profile.placement[_POD_COUNT] for count in counts]
    framework = run.scheduler.framework(profile)
    assert framework is not None, "pod groups came after the framework"
    for plugin in framework.plugins("filter", PlacementScorePlugin):
        weight = profile.placement.get(plugin.name, 0)
        for number, trial in enumerate(trials):
            nodes = trial.placement.nodes
            table = framework.nodes if nodes is None else framework.nodes.at(nodes)
            totals[number] += weight * plugin.score_placement([pods[row] for row in trial.nodes], table)
    return totals


def _too_many(group: PodGroup, what: str) -> UndecidableError:
    return UndecidableError(f"{what} are too many to try for pod group {group.key}")


# --- preemption for the group as a whole


class _Unit(Struct, frozen=True, kw_only=True):
    """Pods that are preempted together or not at all."""

    pods: tuple[int, ...]
    priority: int
    is_group: bool  # whether its pods belong to a pod group, even if it is a single pod
    started: int


class _GroupPreemption(Struct, frozen=True, kw_only=True):
    """The pods that kube-scheduler preempts for a group that does not fit."""

    victims: tuple[int, ...] = ()  # the most important first
    message: str = ""  # the message of a member that fits while the victims are preempted
    reason: str = ""  # kube-scheduler's reason why there are no victims; empty if it does not look for any


_NOT_TRIED = _GroupPreemption()


def shortfall(fits: Iterable[bool], minimum: int, running: int) -> tuple[int, int]:
    """Return the number of scheduled members, and of those that remain when too few are left for the minimum. `fits`:
    whether each pending member fits, in order; `running`: the number of members that have a node."""
    outcomes = list(fits)
    scheduled, remaining = running, len(outcomes)
    for outcome in outcomes:
        if scheduled + remaining < minimum:
            break
        remaining -= 1
        scheduled += outcome
    return scheduled, remaining


_CONSTRAINED = "workload aware preemption is not supported for pod groups with scheduling constraints"
_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_GROUP_UNSCHEDULABLE = "pod group is unschedulable"


def _refusal(group: PodGroup, profile: Profile) -> str:
    """Return why kube-scheduler never preempts pods for the group, whatever its members; empty if it may."""
    if "DefaultPreemption" not in profile.points["postFilter"]:
        return "default preemption plugin is not registered, workload aware preemption is disabled"
    constraints = group.spec.scheduling_constraints
    return _CONSTRAINED if constraints is not None and constraints.topology else ""


def preempt_for_group(
    run: Run, group: PodGroup, members: Sequence[int], missing: int, profile: Profile, pick: Pick
) -> _GroupPreemption:
    """Return the pods to preempt so that `missing` of the pending members fit. Raises `UndecidableError`."""
    if not run.scheduler.release.enabled("WorkloadAwarePreemption"):
        return _NOT_TRIED
    if reason := _refusal(group, profile):
        return _GroupPreemption(reason=reason)
    # with topology awareness, a group without constraints is tried in one placement, which has all nodes
    is_placed = run.scheduler.release.enabled("TopologyAwareWorkloadScheduling")
    message = _no_placement_text(1) if is_placed else _GROUP_UNSCHEDULABLE
    pods = run.cluster.pods
    if any(pods.specs[row].preemption_policy == "Never" for row in members):
        return _GroupPreemption(reason=_NEVER)
    units = _lower_units(run, group_priority(group, run.snapshot.priority_classes))
    if not units:
        return _GroupPreemption(reason=_NO_VICTIMS)
    if len(units) * len(members) > _MOST_DECISIONS:
        raise _too_many(group, f"{len(units):,} victims")
    at = {row: ClusterRow(int(pods.node[row])) for unit in units for row in unit.pods}
    counts_all = run.scheduler.release.behavior.groups_preempt_for_every_member
    gone: list[_Unit] = []
    mark = run.cluster.mark()
    with run.group_cycle():
        try:
            for row in at:
                run.cluster.remove(row)
            trial = _try_members(run, members, missing, _EVERYWHERE, pick, is_brief=not counts_all)
            if not trial.is_feasible:
                return _GroupPreemption(reason=message)
            most = len(trial.nodes)
            units.sort(key=_importance)
            for unit in _violating_first(units, run):
                for row in unit.pods:
                    run.cluster.place(row, at[row])
                trial = _try_members(run, members, missing, _EVERYWHERE, pick, is_brief=not counts_all)
                is_spared = trial.is_feasible and (not counts_all or len(trial.nodes) >= most)
                most = max(most, len(trial.nodes))
                if not is_spared:
                    for row in unit.pods:
                        run.cluster.remove(row)
                    gone.append(unit)
        finally:
            run.cluster.revert(mark)
    gone.sort(key=_importance)
    return _GroupPreemption(victims=tuple(row for unit in gone for row in unit.pods), message=message)


def _lower_units(run: Run, priority: int) -> list[_Unit]:
    """Return the units of assigned pods with a lower priority than the group, in load order."""
    pods, rows_by_unit = run.cluster.pods, dict[str, list[int]]()
    for row in np.flatnonzero(pods.node >= 0).tolist():
        group = whole_group_of(run.snapshot.pod_groups, pods, row)
        key = str(row) if group is None else group.key
        rows_by_unit.setdefault(key, []).append(row)
    units: list[_Unit] = []
    for rows in rows_by_unit.values():
        group = whole_group_of(run.snapshot.pod_groups, pods, rows[0])
        own = int(pods.priorities[rows[0]]) if group is None else group_priority(group, run.snapshot.priority_classes)
        if own < priority:
            is_group = pods.specs[rows[0]].scheduling_group is not None
            # kube-scheduler keeps the start of the first pod that it finds
            units.append(_Unit(pods=tuple(rows), priority=own, is_group=is_group, started=int(pods.started[rows[0]])))
    return units


def _importance(unit: _Unit) -> tuple[int, bool, int, int]:
    """Return a key by which the most important unit comes first: priority, groups before single pods, larger groups,
    earlier starts."""
    return -unit.priority, not unit.is_group, -len(unit.pods) if unit.is_group else 0, unit.started


def _violating_first(units: Iterable[_Unit], run: Run) -> Iterable[_Unit]:
    """Return first the units whose preemption, after everything more important, exceeds a disruption budget, then the
    others."""
    empty_counts = run.scheduler.release.behavior.empty_budget_selector_covers_every_pod
    coverage = budget_coverage(run.snapshot, empty_counts=empty_counts)
    left = coverage.allowed.tolist()

    def exceeds(row: int) -> bool:
        for budget in coverage.of(row):
            left[budget] -= 1
            if left[budget] < 0:
                return True
        return False

    others: list[_Unit] = []
    first: list[_Unit] = []
    for unit in units:
        (first if any(exceeds(row) for row in unit.pods) else others).append(unit)
    return [*first, *others]
