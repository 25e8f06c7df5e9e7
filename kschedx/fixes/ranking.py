"""A fix: what to change, and what was seen when it was tried. Facts; its title is made in `render/words/fixes.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from kschedx.fixes.changes import Change
from kschedx.fixes.steps import AwaitController, Cost, LowerRequests, RemoveTaints, Step, TakeOldFirst, Tolerate
from kschedx.fixes.trial import Situation
from kschedx.framework.cycle import Cycle, Stake, Unevaluated, UnevaluatedKind
from kschedx.plugins.node_volume_limits.attached import within_every_limit


class FixCertainty(StrEnum):
    VERIFIED = "verified"
    """With all changes applied the pod passes every filter on the nodes named."""
    PARTIAL = "partial"
    """This blocker goes; the title names those that remain."""
    UNTRIED = "untried"
    """Nothing in a snapshot shows whether it helps: a webhook's service, a registry, a finalizer's controller."""


class Shortfall(Struct, frozen=True, kw_only=True):
    """What a fix leaves undone on the whole cluster, once every controller has reacted to it."""

    pending: int = 0
    """Pods of the pod's workload that have no node."""
    lost: tuple[str, ...] = ()
    """Other pods, `namespace/name`, that had a node and have none; not those that the fix names."""
    refusal: str = ""
    """Why the API server takes no pod of the changed template."""


class Landing(Struct, frozen=True, kw_only=True):
    """Where the pods go that a controller creates in place of those that a fix deletes."""

    controller: str
    """`ReplicaSet web-5d7b9`."""
    nodes: tuple[str, ...]
    pending: int


class BudgetUse(Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget of pods that a fix deletes or moves."""

    budget: str
    """`namespace/name`."""
    pods: int
    allowed: int
    """Disruptions that it allows now."""


class TrialOutcome(Struct, frozen=True, kw_only=True):
    """What a fix does to the whole cluster, once every controller has reacted to it."""

    is_tried: bool = False
    shortfall: Shortfall | None = None
    """None where it does what it promises."""
    is_delivered: bool = False
    """Controllers replace the pod once its template has changed: you need not delete it."""
    landings: tuple[Landing, ...] = ()
    """Of the controllers that the cluster has."""
    budgets: tuple[BudgetUse, ...] = ()


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is listed."""

    steps: tuple[Step, ...]
    certainty: FixCertainty
    changes: tuple[Change, ...]
    """In the order in which they are to be made."""
    feasible_nodes: tuple[str, ...]
    """The nodes on which the pod then passes every filter."""
    remaining: Mapping[str, int]
    """Of a partial fix: plugin to the number of nodes that it still rejects, the first to do so or not."""
    deciding: tuple[str, ...] = ()
    """Who could still reject those nodes: plugins that kschedx does not have."""
    extender_decides: bool = False
    """An extender could too, which no trial asks."""
    trial: TrialOutcome = TrialOutcome()
    """On the whole cluster; with a shortfall the fix is partial."""


ClusterTest = Callable[[Fix], TrialOutcome]
"""Tries a fix on the whole cluster."""


# Which of the fixes that helped are shown, and in which order.

MOST_FIXES = 6
MOST_OF_A_COST = 2
"""Fixes of one cost that are shown: alternatives, not variations."""
MOST_PARTIAL = 2
CAPACITY_FIRST = (
    Cost.WAITING,
    Cost.TYPO,
    Cost.REPAIR,
    Cost.ROLLOUT,
    Cost.AROUND,
    Cost.NEW_NODE,
    Cost.MOVE,
    Cost.REQUEST,
    Cost.POD,
    Cost.LABEL,
    Cost.CONSTRAINT,
    Cost.NODE,
    Cost.STOPGAP,
    Cost.OTHER_PODS,
    Cost.DATA,
)
"""The order where a node meets every constraint of the pod and is only full: room before giving up constraints."""


def verified_fixes(found: Sequence[Situation], cycle: Cycle, test: ClusterTest, *, is_full: bool) -> Iterator[Fix]:
    """A few of each cost, those that open the most nodes first; those that fall short on the whole cluster only where
    none does not. `is_full`: a node meets every constraint of the pod and lacks room alone."""
    if is_full:
        found = [one for one in found if not _enters_another_pool(one)] or found
    order = CAPACITY_FIRST if is_full else tuple(Cost)
    ordered = sorted(found, key=lambda one: (order.index(one.proposal.cost), _lowered(one), -len(one.feasible)))
    if _awaits(ordered[0]):
        ordered = ordered[:1]  # the controller may not admit the pod while this is so
    shown: list[Cost] = []
    short: list[Fix] = []
    made: list[tuple[Change, ...]] = []
    for one in ordered:
        cost = one.proposal.cost
        if _is_needlessly_long(one, ordered) or any(_lowers_needlessly(one, other) for other in ordered):
            continue
        if cost is Cost.OTHER_PODS and Cost.WAITING in shown:
            continue  # preemption chooses its victims better
        if any(isinstance(step, TakeOldFirst) for step in one.proposal.steps) and Cost.ROLLOUT in shown:
            continue  # whichever old pod goes first
        if len(shown) < MOST_FIXES and shown.count(cost) < (1 if cost is Cost.NEW_NODE else MOST_OF_A_COST):
            fix = _fix(one, cycle)
            if any(fix.changes == other for other in made if other):
                continue  # two causes have the same remedy
            if fix.certainty is FixCertainty.VERIFIED:
                fix = replace(fix, trial=test(fix))
            if fix.trial.shortfall is None:
                shown.append(cost)
                made.append(fix.changes)
                yield fix
            else:
                short.append(replace(fix, certainty=FixCertainty.PARTIAL))
    if not shown:
        yield from short[:MOST_PARTIAL]


def _enters_another_pool(one: Situation) -> bool:
    """A pool's taint keeps pods out: it is not tolerated because the pod's own pool is full."""
    return any(
        isinstance(step, Tolerate) or (isinstance(step, RemoveTaints) and not step.is_left_over)
        for step in one.proposal.steps
    )


def _is_needlessly_long(one: Situation, all_of_them: Sequence[Situation]) -> bool:
    """Two steps where one is enough, unless the two give up nothing and the one does, or the one is a new node and
    costs more."""
    cost, steps = one.proposal.cost, len(one.proposal.steps)
    shorter = [
        other.proposal.cost
        for other in all_of_them
        if len(other.proposal.steps) < steps and (cost >= Cost.NEW_NODE or other.proposal.added is None)
    ]
    return any(other <= cost for other in shorter) if cost <= Cost.POD else bool(shorter)


def _lowered(one: Situation) -> float:
    """The largest share of a request that is given up."""
    lowered = (each for step in one.proposal.steps if isinstance(step, LowerRequests) for each in step.requests)
    return max((1 - each.after / each.before for each in lowered), default=0.0)


def _lowers_needlessly(one: Situation, other: Situation) -> bool:
    """Requests are lowered further than `other` lowers them, and no further node opens."""
    match one.proposal.steps, other.proposal.steps:
        case [LowerRequests() as less], [LowerRequests() as more] if less.amounts != more.amounts:
            return less.covers(more) and {*one.feasible} <= {*other.feasible}
    return False


def _awaits(situation: Situation) -> bool:
    return any(isinstance(step, AwaitController) for step in situation.proposal.steps)


def partial_fixes(situations: Sequence[Situation], start: Situation, cycle: Cycle) -> Iterator[Fix]:
    """Proposals after which a plugin that rejected nodes rejects none, or PreFilter lets the pod through; those that
    leave the fewest first."""
    found = [one for one in situations if one.remaining and _is_nearer(one, start)]
    for one in islice(sorted(found, key=lambda it: len(it.remaining)), MOST_PARTIAL):
        yield _fix(one, cycle)


def _is_nearer(one: Situation, start: Situation) -> bool:
    if not start.status.is_success:
        return one.status.is_success
    return bool(start.remaining.keys() - one.remaining.keys())


def _fix(situation: Situation, cycle: Cycle) -> Fix:
    open_ = _deciding(situation, cycle) if situation.feasible else ()
    deciding = tuple(dict.fromkeys(one.name for one in open_ if one.kind is not UnevaluatedKind.EXTENDER))
    extender_decides = bool(situation.feasible) and (
        cycle.is_extended or any(one.kind is UnevaluatedKind.EXTENDER for one in open_)
    )
    is_sure = situation.feasible and not deciding and not extender_decides and not _awaits(situation)
    return Fix(
        steps=situation.proposal.steps,
        certainty=FixCertainty.VERIFIED if is_sure else FixCertainty.PARTIAL,
        changes=tuple(situation.proposal.changes(cycle.pod, cycle.snapshot)),
        feasible_nodes=situation.feasible,
        remaining={} if situation.feasible else situation.remaining,
        deciding=deciding,
        extender_decides=extender_decides,
    )


def fix_by(autoscaler: str, situation: Situation, cycle: Cycle) -> Fix | None:
    """A fix whose node an autoscaler adds; None where something else leaves open whether the pod fits."""
    fix = _fix(situation, cycle)
    changes = (replace(one, by=autoscaler) if one.target.kind == "Node" else one for one in fix.changes)
    return replace(fix, changes=tuple(changes)) if fix.certainty is FixCertainty.VERIFIED else None


def _deciding(situation: Situation, cycle: Cycle) -> tuple[Unevaluated, ...]:
    """Who has a say about nodes that all others accept, and cannot be asked about what is only tried. Volume limits
    that a dump lacks have none where the pod would be the first with a volume."""
    within = situation.nodes.names_where(within_every_limit(situation.pod.spec, situation.nodes))
    is_within = not {*within}.isdisjoint(situation.feasible)
    return tuple(
        one
        for one in cycle.unheard
        if one.stake is Stake.FIT and not one.is_waived and not (is_within and one.name == "CSINode")
    )
