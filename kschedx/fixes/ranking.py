"""Fixes: what to change, the outcome of the trial, and both in words; then which fixes are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.explain.volume_places import claims_in_one_of_several_places, open_places
from kschedx.fixes import steps as s
from kschedx.fixes.phrases import join_names, requirement_text
from kschedx.fixes.proposal import Proposal
from kschedx.fixes.trial import Situation
from kschedx.framework.cycle import Cycle, Stake, Unevaluated, UnevaluatedKind
from kschedx.kube.decoding import manifest
from kschedx.kube.documents import Change, Target
from kschedx.kube.kinds import KINDS
from kschedx.kube.names import ARCH_LABELS, is_extended_resource
from kschedx.kube.resources import container_requests
from kschedx.kube.types import Pod, PodSpec
from kschedx.plugins.node_volume_limits.attachments import where_unlimited
from kschedx.simulate.changes import another_like
from kschedx.wording import count

_SHOWN_LOST = 3


class FixCertainty(StrEnum):
    VERIFIED = "verified"  # the pod passes every filter on the named nodes, with all changes applied
    PARTIAL = "partial"  # the fix removes this cause; the title names those that remain
    UNTRIED = "untried"
    """Nothing in a snapshot shows whether it helps: a webhook's service, a registry, a finalizer's controller."""


class Shortfall(Struct, frozen=True, kw_only=True):
    """The unsolved part of a fix on the whole cluster, once every controller has reacted to it."""

    pending: int = 0  # pending pods of the pod's workload
    lost: tuple[str, ...] = ()  # other pods, `namespace/name`, that lose their node; not those that the fix names
    refusal: str = ""  # why the API server refuses pods of the changed template
    higher_priority: tuple[str, ...] = ()  # pods of a higher priority, `namespace/name`, that take the room first

    @property
    def text(self) -> str:
        if self.refusal:
            return f"the API server refuses its pods: {self.refusal}"
        if self.higher_priority:
            takes = "takes" if len(self.higher_priority) == 1 else "take"
            return f"{join_names([*self.higher_priority], _SHOWN_LOST)}, with a higher priority, {takes} the room"
        if self.lost:
            lose = "loses its node" if len(self.lost) == 1 else "lose their nodes"
            return f"{join_names([*self.lost], _SHOWN_LOST)} {lose}"
        return f"{count(self.pending, 'pod')} of the workload {'stays' if self.pending == 1 else 'stay'} pending"


class ReplacementNodes(Struct, frozen=True, kw_only=True):
    """The nodes of the pods that a controller creates in place of those that a fix deletes."""

    controller: str  # `ReplicaSet web-5d7b9`
    nodes: tuple[str, ...]
    pending: int
    is_assumed: bool = False  # whether the cluster lacks the controller, whose template may differ from its pods


class BudgetUse(Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget that covers pods that a fix deletes or moves."""

    budget: str  # `namespace/name`
    allowed: int  # disruptions that it allows now


class TrialOutcome(Struct, frozen=True, kw_only=True):
    """The effect of a fix on the whole cluster, once every controller has reacted to it."""

    is_tried: bool = False
    shortfall: Shortfall | None = None  # None if the fix achieves what it promises
    is_delivered: bool = False
    """Whether controllers replace the pod once its template has changed, so that you need not delete it."""
    replacements: tuple[ReplacementNodes, ...] = ()  # of the controllers that the cluster has
    budgets: tuple[BudgetUse, ...] = ()
    left: int = 0  # pods of the workload that stay pending
    competing: tuple[str, ...] = ()
    """Pods of the same priority, `namespace/name`, that are longer in the queue and may take the room first."""
    higher_priority: tuple[str, ...] = ()
    """Pods of a higher priority, `namespace/name`, for which the fix adds nodes as well."""
    deprived: tuple[str, ...] = ()
    """Pending pods, `namespace/name`, that come later in the queue and fit only without the fix."""
    preempted: int = 0  # pods that the workload's other pods evict because of its raised priority


class TriedFix(Struct, frozen=True, kw_only=True):
    """A change that would help. Only changes that were tried are listed."""

    steps: tuple[s.FixStep, ...]
    certainty: FixCertainty
    changes: tuple[Change, ...]  # in the order in which to make them
    feasible_nodes: tuple[str, ...]
    remaining: Mapping[str, int]
    """The number of nodes that each plugin still rejects after a partial fix, even if another rejects them first."""
    deciding: tuple[str, ...] = ()  # plugins that kschedx does not have and that could still reject the feasible nodes
    extender_decides: bool = False  # whether an extender could still reject the feasible nodes; no trial asks extenders
    old_first: bool = False
    """Whether old pods that keep new ones pending go first: all of a StatefulSet, or a running one of a Deployment."""
    architecture: str = ""  # the architecture of all feasible nodes, if most nodes of the cluster have another one
    trial: TrialOutcome = TrialOutcome()  # with a shortfall, the fix is partial

    @property
    def title(self) -> str:
        """Return `tolerate dedicated=gpu:NoSchedule, uncordon node-4`; for a partial fix, also what it leaves."""
        own = [step for step in self.steps if not isinstance(step, s.NextAttempt)]
        last = (s.RepairNode, (s.AwaitController, s.AwaitTermination))  # their titles end with a clause
        steps = sorted(own or self.steps, key=lambda step: [isinstance(step, kinds) for kinds in reversed(last)])
        if {s.RepairNode, s.Uncordon} == {type(step) for step in steps}:  # a broken node is repaired first
            steps.sort(key=lambda step: isinstance(step, s.Uncordon))
            return self.qualified(", then ".join(step.title for step in steps))
        return self.qualified(", ".join(step.title for step in steps))

    def qualified(self, text: str) -> str:
        """Return a title with what may still decide: objects that the dump lacks, other components, or plugins."""
        deciding = (*self.deciding, *(("the extender",) if self.extender_decides else ()))
        if kinds := [KINDS[name].several for name in deciding if name in KINDS]:
            condition = " and if" if ", if " in text else ", if"
            text = f"{text}{condition} {' and '.join(kinds)} allow it (not in the dump)"
            deciding = tuple(name for name in deciding if name not in KINDS)
        if deciding:
            return f"{text}, then {' and '.join(deciding)} {'decides' if len(deciding) == 1 else 'decide'}"
        if self.trial.shortfall is not None:
            return f"{text} (then {self.trial.shortfall.text})"
        if not self.remaining:
            return text
        left = ", ".join(f"{name} on {count(number, 'node')}" for name, number in self.remaining.items())
        return f"{text} (then still {left})"

    @property
    def costs(self) -> tuple[str, ...]:
        """Return the effects of a fix on other pods, one phrase each."""
        is_released = any(isinstance(step, s.ReleaseVolume) for step in self.steps)  # then no data is lost
        steps = (step for step in self.steps if not (is_released and isinstance(step, s.RecreateClaim)))
        costs = [cost for step in steps for cost in step.costs]
        if self.architecture:
            costs.append(f"check that its image runs on {self.architecture}: most nodes have another architecture")
        return tuple(dict.fromkeys((*costs, *self._costs_of_pods())))

    def _costs_of_pods(self) -> Iterator[str]:
        deleting = (step for step in self.steps if isinstance(step, s.DeletePods) and not step.by_preemption)
        replacements = {replacement.controller: replacement for replacement in self.trial.replacements}
        for controller in dict.fromkeys(
            victim.controller for step in deleting for victim in step.victims if victim.controller
        ):
            replacement = replacements.get(controller)
            if replacement is None:
                yield f"{controller} recreates its pod, which may stay pending"
                continue
            number = len(replacement.nodes) + replacement.pending
            what = "its pod" if number == 1 else f"{number} pods"
            where = f" on {join_names([*dict.fromkeys(replacement.nodes)], _SHOWN_LOST)}" if replacement.nodes else ""
            stays = "which stays pending" if number == 1 else f"{replacement.pending} of which stay pending"
            assumed = " (assumed: the dump lacks its template)" if replacement.is_assumed else ""
            yield f"{controller} recreates {what}{where}{f', {stays}' if replacement.pending else ''}{assumed}"
        for budget in self.trial.budgets:
            allows = count(budget.allowed, "disruption") if budget.allowed else "no disruption"
            yield f"PodDisruptionBudget {budget.budget.partition('/')[2]} allows {allows}"
        if first := self.trial.higher_priority:
            needs = "needs" if len(first) == 1 else "need"
            yield f"{join_names([*first], _SHOWN_LOST)}, with a higher priority, {needs} room too"
        if competing := self.trial.competing:
            takes = "takes" if len(competing) == 1 else "take"
            yield f"unless {join_names([*competing], _SHOWN_LOST)}, pending for longer, {takes} the room"
        if deprived := self.trial.deprived:
            fits, stays = ("fits", "stays") if len(deprived) == 1 else ("fit", "stay")
            yield f"{join_names([*deprived], _SHOWN_LOST)}, which {fits} now, {stays} pending then"
        if self.trial.preempted:
            yield f"its other pods evict {count(self.trial.preempted, 'pod')} on their nodes"
        if left := self.trial.left if self.trial.shortfall is None else 0:
            yield f"{count(left, 'pod')} of the workload {'stays' if left == 1 else 'stay'} pending"

    @property
    def commands(self) -> tuple[str, ...]:
        """Return kubectl commands that apply the whole fix; empty if a step needs a patch."""
        commands = [step.commands() for step in self.steps]
        return tuple(command for of_step in commands for command in of_step) if all(commands) else ()


ClusterTest = Callable[[TriedFix], TrialOutcome]


def adding_nodes(fix: TriedFix, number: int) -> TriedFix:
    """Return a fix whose only step adds a node, with `number` identical nodes in its place."""
    [step] = fix.steps
    assert isinstance(step, s.AddNode), "the fix adds a node"
    changes = list(fix.changes)
    for name in (f"{step.node.name}-{copy}" for copy in range(2, number + 1)):
        node = another_like(step.node, name)
        node = replace(node, metadata=replace(node.metadata, uid=""))
        changes.append(Change(target=Target("v1", "Node", name), create=manifest("v1", "Node", node)))
    return replace(fix, steps=(replace(step, number=number),), changes=tuple(changes))


# The selection and order of the fixes that are shown.

_MOST_FIXES = 6
_MOST_OF_A_COST = 2  # the fixes shown are alternatives, not variations
_MOST_PARTIAL = 2
_MOST_NODES_AHEAD = 3  # new nodes for other pods; each is tried in the whole cluster
CAPACITY_FIRST = (
    s.Cost.WAITING,
    s.Cost.TYPO,
    s.Cost.REPAIR,
    s.Cost.ROLLOUT,
    s.Cost.AROUND,
    s.Cost.NEW_NODE,
    s.Cost.MOVE,
    s.Cost.REQUEST,
    s.Cost.POD,
    s.Cost.LABEL,
    s.Cost.CONSTRAINT,
    s.Cost.NODE,
    s.Cost.STOPGAP,
    s.Cost.OTHER_PODS,
    s.Cost.DATA,
)
"""The order if a node meets every constraint of the pod and is only full: making room comes before dropping
constraints."""


def _frees_devices(situation: Situation, cycle: Cycle) -> bool:
    """Whether pods without devices are moved from a node to make room for a pod that requests some."""
    pods, moved = cycle.snapshot.pods, situation.proposal.moved

    def has_devices(spec: PodSpec) -> bool:
        return any(map(is_extended_resource, container_requests(spec)))

    is_move = bool(moved) and situation.proposal.cost is s.Cost.MOVE and has_devices(situation.pod.spec)
    return is_move and not any(has_devices(pods.specs[pods.rows[key]]) for key in moved)


def verified_fixes(
    situations: Sequence[Situation], cycle: Cycle, test: ClusterTest, *, is_full: bool
) -> Iterator[TriedFix]:
    """Yield a few fixes of each cost, those with the most feasible nodes first. Fixes that fall short on the whole
    cluster are included only if there are no others. With `is_full`, a node meets every constraint of the pod and lacks
    only room."""
    if is_full:
        situations = [situation for situation in situations if not _enters_another_pool(situation)] or situations
    order = CAPACITY_FIRST if is_full else tuple(s.Cost)
    ordered = sorted(
        situations,
        key=lambda situation: (
            order.index(s.Cost.REPAIR if _frees_devices(situation, cycle) else situation.proposal.cost),
            s.awaits_preemption(situation.proposal.steps),  # pods that already terminate need no other evictions
            _lowered_share(situation),
            not any(isinstance(it, s.ChangeRule) and it.only_lowers_min_domains for it in situation.proposal.steps),
            bool(_rare_architecture(situation)),
            -len(situation.feasible),
        ),
    )
    if _awaits(ordered[0]):
        ordered = ordered[:1]  # the controller may not admit the pod while the problem remains
    shown: list[Situation] = []
    short: list[TriedFix] = []
    known_changes: list[tuple[Change, ...]] = []
    for situation in ordered:
        proposal = situation.proposal
        costs = [other.proposal.cost for other in shown]
        if _is_needlessly_long(situation, ordered) or any(_gives_up_needlessly(situation, other) for other in ordered):
            continue
        if proposal.cost is s.Cost.OTHER_PODS and s.Cost.WAITING in costs:
            continue  # preemption chooses its victims better
        if min(costs, default=s.Cost.NODE) <= s.Cost.REPAIR and _enters_another_pool(situation):
            continue  # the pod's own pool suffices once the mistake or the node is corrected
        if any(len(other.proposal.moved) > 0 and other.proposal.moved.keys() <= proposal.deleted for other in shown):
            continue  # the same pods are evicted, without a node for each
        if any(isinstance(step, s.TakeOldFirst) for step in proposal.steps) and s.Cost.ROLLOUT in costs:
            continue  # one such fix is enough, whichever old pod is deleted first
        most = 1 if proposal.cost is s.Cost.NEW_NODE else _MOST_OF_A_COST
        if len(shown) < _MOST_FIXES and costs.count(proposal.cost) < most:
            fix = _fix(situation, cycle)
            if any(fix.changes == other for other in known_changes if other):
                continue  # two causes have the same remedy
            if fix.certainty is FixCertainty.VERIFIED:
                fix = _with_old_first(_with_enough_nodes(replace(fix, trial=test(fix)), test), cycle.pod, test)
            if fix.trial.shortfall is None:
                shown.append(situation)
                known_changes.append(fix.changes)
                yield fix
            else:
                short.append(replace(fix, certainty=FixCertainty.PARTIAL))
    taken = [fix for fix in short if fix.trial.shortfall is not None and fix.trial.shortfall.higher_priority]
    yield from taken[:1] if shown else short[:_MOST_PARTIAL]


def _with_enough_nodes(fix: TriedFix, test: ClusterTest) -> TriedFix:
    """Return the fix with as many new nodes as pods of a higher priority leave one for the pod."""
    if fix.trial.shortfall is None or not (first := fix.trial.shortfall.higher_priority):
        return fix
    [step] = fix.steps if len(fix.steps) == 1 else [None]
    if not isinstance(step, s.AddNode) or step.slices:
        return fix
    for number in range(2, _MOST_NODES_AHEAD + 2):
        more = adding_nodes(fix, number)
        if (trial := test(more)).shortfall is None:
            return replace(more, trial=replace(trial, higher_priority=first))
        first = trial.shortfall.higher_priority
    return fix


def _with_old_first(fix: TriedFix, pod: Pod, test: ClusterTest) -> TriedFix:
    """Return the fix; if old pods of the workload keep those of the changed template pending, with the old ones deleted
    first. Pods of a StatefulSet do so if the fix lets go of their required anti-affinity."""
    owner, shortfall = pod.metadata.controller, fix.trial.shortfall
    if owner is None or shortfall is None or shortfall.refusal or shortfall.lost or shortfall.higher_priority:
        return fix
    is_apart = any(isinstance(step, s.PreferTerm) and step.anti for step in fix.steps)
    changes_pod = any(isinstance(step, s.PodStep) for step in fix.steps)
    if not (is_apart if owner.kind == "StatefulSet" else changes_pod and owner.kind == "ReplicaSet"):
        return fix
    whole = replace(fix, old_first=True)
    outcome = test(whole)
    return replace(whole, trial=outcome) if outcome.is_tried and outcome.shortfall is None else fix


def _enters_another_pool(situation: Situation) -> bool:
    """Whether the fix tolerates or removes a taint of another pool, which keeps pods out, or gives its node the label
    of the pod's own pool: that this is full is no reason to do so."""
    return any(
        isinstance(step, s.Tolerate)
        or (isinstance(step, s.RemoveTaints) and not step.is_left_over)
        or (isinstance(step, s.LabelNode) and step.cost is s.Cost.NODE)
        for step in situation.proposal.steps
    )


def _is_needlessly_long(situation: Situation, all_of_them: Sequence[Situation]) -> bool:
    """Whether the fix has several steps and fewer suffice. Fewer do not count if they give up something and these give
    up nothing, or if they add a node and cost more. The correction of a misspelling is no step of its own."""
    cost, steps = situation.proposal.cost, _changes_count(situation)
    if cost is s.Cost.CONSTRAINT and steps < len(situation.proposal.steps):
        return True
    shorter = [
        other.proposal.cost
        for other in all_of_them
        if (_changes_count(other) < steps or _is_part(other.proposal, situation.proposal))
        and (cost >= s.Cost.NEW_NODE or other.proposal.added is None)
    ]
    return any(other <= cost for other in shorter) if cost <= s.Cost.POD else bool(shorter)


def _changes_count(situation: Situation) -> int:
    """Return the number of changes; a toleration of the taint of an added node belongs to the node."""
    proposal = situation.proposal
    steps = (it for it in proposal.steps if proposal.added is None or not isinstance(it, s.Tolerate))
    return sum(step.cost is not s.Cost.TYPO for step in steps) or 1


def _is_part(part: Proposal, whole: Proposal) -> bool:
    return len(part.steps) < len(whole.steps) and all(step in whole.steps for step in part.steps)


def _lowered_share(situation: Situation) -> float:
    lowered = (each for step in situation.proposal.steps if isinstance(step, s.LowerRequests) for each in step.requests)
    return max((1 - each.after / each.before for each in lowered), default=0.0)


def _gives_up_needlessly(situation: Situation, other: Situation) -> bool:
    """Whether requests are lowered further than `other` lowers them, without any additional feasible node, or further
    requirements are dropped, or one that `other` changes, and all other steps are the same."""
    steps = [it for it in situation.proposal.steps if it not in other.proposal.steps]
    match steps, [it for it in other.proposal.steps if it not in situation.proposal.steps]:
        case [s.LowerRequests() as less], [s.LowerRequests() as more]:
            return less.covers(more) and {*situation.feasible} <= {*other.feasible}
        case [s.DropRequirements() as many], [s.DropRequirements() as few]:
            is_same_term = (many.source, many.term) == (few.source, few.term)
            return is_same_term and {*map(requirement_text, few.requirements)} < {
                *map(requirement_text, many.requirements)
            }
        case [s.DropRequirements() as many], [s.SelectInstead() as one] if one.cost is not s.Cost.TYPO:
            is_same_term = (many.source, many.term) == (one.source, one.term)
            return is_same_term and requirement_text(one.wrong) in map(requirement_text, many.requirements)
    return False


def _awaits(situation: Situation) -> bool:
    return any(isinstance(step, s.AwaitController) for step in situation.proposal.steps)


def partial_fixes(situations: Sequence[Situation], start: Situation, cycle: Cycle) -> Iterator[TriedFix]:
    """Yield proposals after which a plugin that rejected nodes rejects none, or PreFilter accepts the pod; those that
    leave the fewest plugins first."""
    nearer = [situation for situation in situations if situation.rejections_by_plugin and _is_nearer(situation, start)]
    for situation in islice(sorted(nearer, key=lambda it: len(it.rejections_by_plugin)), _MOST_PARTIAL):
        yield _fix(situation, cycle)


def _is_nearer(situation: Situation, start: Situation) -> bool:
    if not start.status.is_success:
        return situation.status.is_success
    return bool(start.rejections_by_plugin.keys() - situation.rejections_by_plugin.keys())


def _fix(situation: Situation, cycle: Cycle) -> TriedFix:
    open_ = _deciding_plugins(situation, cycle) if situation.feasible else ()
    deciding = tuple(
        dict.fromkeys(
            f"the place of the volume of {unevaluated.name}"
            if unevaluated.kind is UnevaluatedKind.VOLUME
            else unevaluated.name
            for unevaluated in open_
            if unevaluated.kind is not UnevaluatedKind.EXTENDER
        )
    )
    extender_decides = bool(situation.feasible) and (
        cycle.is_extended or any(unevaluated.kind is UnevaluatedKind.EXTENDER for unevaluated in open_)
    )
    is_sure = situation.feasible and not deciding and not extender_decides and not _awaits(situation)
    return TriedFix(
        steps=situation.proposal.steps,
        certainty=FixCertainty.VERIFIED if is_sure else FixCertainty.PARTIAL,
        changes=tuple(situation.proposal.changes(cycle.pod, cycle.snapshot)),
        feasible_nodes=situation.feasible,
        remaining={} if situation.feasible else situation.rejections_by_plugin,
        deciding=deciding,
        extender_decides=extender_decides,
        architecture=_rare_architecture(situation),
    )


def _rare_architecture(situation: Situation) -> str:
    """Return the architecture of all feasible nodes if most nodes have another one, for which the image may be built;
    empty if the pod names its architecture."""
    cluster, selector = situation.snapshot.cluster, situation.pod.spec.node_selector
    if not situation.feasible or any(key in selector for key in ARCH_LABELS):
        return ""
    column = cluster.label(ARCH_LABELS[0])
    usual = int(np.bincount(column.codes).argmax())
    codes = {int(column.codes[cluster.index[name]]) for name in situation.feasible}
    return column.values[codes.pop()] or "" if len(codes) == 1 and usual not in codes else ""


def fix_by(autoscaler: str, situation: Situation, cycle: Cycle) -> TriedFix:
    """Return a fix whose node an autoscaler adds; it is partial if it remains open whether the pod fits."""
    fix = _fix(situation, cycle)
    changes = (replace(change, by=autoscaler) if change.target.kind == "Node" else change for change in fix.changes)
    return replace(fix, changes=tuple(changes))


def _deciding_plugins(situation: Situation, cycle: Cycle) -> tuple[Unevaluated, ...]:
    """Return what may reject nodes that all others accept, and cannot be asked about a trial. Volume limits that a dump
    lacks do not count if the pod would be the first with a volume there."""
    within = situation.nodes.names_where(where_unlimited(situation.pod.spec, situation.nodes))
    is_within = not {*within}.isdisjoint(situation.feasible)
    return tuple(
        unevaluated
        for unevaluated in cycle.unevaluated
        if unevaluated.stake is Stake.FIT
        and not unevaluated.is_waived
        and not (is_within and unevaluated.name == "CSINode")
        and not (unevaluated.kind is UnevaluatedKind.VOLUME and _is_in_reach(situation, unevaluated.name))
    )


def _is_in_reach(situation: Situation, claim: str) -> bool:
    """Return whether the pod fits wherever a driver provisions the volume of a new claim."""
    claims = claims_in_one_of_several_places(situation.snapshot, situation.pod)
    decided = open_places(situation.snapshot, claims, situation.feasible)
    return any(volume.name == claim and volume.stake is Stake.NODE for volume in decided)
