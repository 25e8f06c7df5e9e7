"""Titles of fixes, joined from the titles of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from kschedx.fixes import TriedFix
from kschedx.fixes import steps as s
from kschedx.fixes.owners import Delivery, Owner, Undelivered
from kschedx.fixes.phrases import listed
from kschedx.fixes.ranking import Shortfall
from kschedx.kube.kinds import KINDS
from kschedx.render.wording import count

SHOWN_LOST = 3
SHOWN_DELETED = 2


def fix_title(fix: TriedFix) -> str:
    """Return `tolerate dedicated=gpu:NoSchedule, uncordon node-4`; for a partial fix, also what it leaves."""
    own = [step for step in fix.steps if not isinstance(step, s.NextAttempt)]
    steps = sorted(own or fix.steps, key=lambda step: isinstance(step, s.AwaitController))
    text = ", ".join(step.title for step in steps)
    deciding = (*fix.deciding, *(("the extender",) if fix.extender_decides else ()))
    if kinds := [f"{name}s" for name in deciding if name in KINDS]:
        text = f"{text}, if {' and '.join(kinds)} allow it (not in the dump)"
        deciding = tuple(name for name in deciding if name not in KINDS)
    if deciding:
        return f"{text}, then {' and '.join(deciding)} {'decides' if len(deciding) == 1 else 'decide'}"
    if fix.trial.shortfall is not None:
        return f"{text} (then {_shortfall_text(fix.trial.shortfall)})"
    if not fix.remaining:
        return text
    left = ", ".join(f"{name} on {count(number, 'node')}" for name, number in fix.remaining.items())
    return f"{text} (then still {left})"


def _shortfall_text(shortfall: Shortfall) -> str:
    if shortfall.refusal:
        return f"the API server refuses its pods: {shortfall.refusal}"
    if shortfall.first:
        takes = "takes" if len(shortfall.first) == 1 else "take"
        return f"{listed([*shortfall.first], SHOWN_LOST)}, with a higher priority, {takes} the room"
    if shortfall.lost:
        lose = "loses its node" if len(shortfall.lost) == 1 else "lose their nodes"
        return f"{listed([*shortfall.lost], SHOWN_LOST)} {lose}"
    return f"{count(shortfall.pending, 'pod')} of the workload {'stays' if shortfall.pending == 1 else 'stay'} pending"


def fix_costs(fix: TriedFix) -> tuple[str, ...]:
    """Return the effects of a fix on other pods, one phrase each."""
    costs = [cost for step in fix.steps for cost in step.costs]
    if fix.architecture:
        costs.append(f"check that its image runs on {fix.architecture}: most nodes have another architecture")
    return tuple(dict.fromkeys((*costs, *_costs_of_pods(fix))))


def _costs_of_pods(fix: TriedFix) -> Iterator[str]:
    deleting = (step for step in fix.steps if isinstance(step, s.DeletePods) and not step.by_preemption)
    landings = {landing.controller: landing for landing in fix.trial.landings}
    for controller in dict.fromkeys(
        victim.controller for step in deleting for victim in step.victims if victim.controller
    ):
        landing = landings.get(controller)
        if landing is None:
            yield f"{controller} recreates its pod, which may stay pending"
            continue
        number = len(landing.nodes) + landing.pending
        what = "its pod" if number == 1 else f"{number} pods"
        where = f" on {listed([*dict.fromkeys(landing.nodes)], SHOWN_LOST)}" if landing.nodes else ""
        stays = "which stays pending" if number == 1 else f"{landing.pending} of which stay pending"
        assumed = " (assumed: the dump lacks its template)" if landing.is_assumed else ""
        yield f"{controller} recreates {what}{where}{f', {stays}' if landing.pending else ''}{assumed}"
    for budget in fix.trial.budgets:
        allows = count(budget.allowed, "disruption") if budget.allowed else "no disruption"
        yield f"PodDisruptionBudget {budget.budget.partition('/')[2]} allows {allows}"
    if first := fix.trial.first:
        needs = "needs" if len(first) == 1 else "need"
        yield f"{listed([*first], SHOWN_LOST)}, with a higher priority, {needs} room too"
    if rivals := fix.trial.rivals:
        takes = "takes" if len(rivals) == 1 else "take"
        yield f"unless {listed([*rivals], SHOWN_LOST)}, pending for longer, {takes} the room"
    if fix.trial.preempted:
        yield f"its other pods evict {count(fix.trial.preempted, 'pod')} on their nodes"
    if left := fix.trial.left if fix.trial.shortfall is None else 0:
        yield f"{count(left, 'pod')} of the workload {'stays' if left == 1 else 'stay'} pending"


def delivery_text(delivery: Delivery, owner: Owner) -> str:
    """Return what you do after the template has changed, and why its controller does not do it."""
    workload, names = f"{owner.kind} {owner.name}", [it.target.name for it in delivery.changes if it.delete]
    named = f"pod{'' if len(names) == 1 else 's'} {' and '.join(names)}"
    pods = named if len(names) <= SHOWN_DELETED else f"its {len(names):,} pending pods"
    match delivery.why:
        case Undelivered.ORDERED_READY:
            return f"delete {pods} ({workload} is OrderedReady: it does not replace a pod that is not ready)"
        case Undelivered.PARTITION:
            return f"lower its partition and delete {pods} ({workload} updates from its partition on)"
        case Undelivered.ON_DELETE:
            return f"delete {pods} (the update strategy of {workload} is OnDelete)"
        case Undelivered.NO_ROLLOUT:
            return f"delete {pods} ({workload} uses its template for new pods only)"
        case Undelivered.PAUSED:
            return f"resume {workload}, which is paused"
        case _:
            assert_never(delivery.why)


def with_nodes(steps: Iterable[s.FixStep], number: int, zones: Sequence[str] = ()) -> str:
    """Return the title of a fix that adds `number` nodes, in these zones or all in one."""
    return ", ".join(step.title_of(number, zones) if isinstance(step, s.AddNode) else step.title for step in steps)


def fix_commands(fix: TriedFix) -> tuple[str, ...]:
    """Return kubectl commands that apply the whole fix; empty if a step needs a patch."""
    commands = [step.commands() for step in fix.steps]
    return tuple(command for of_step in commands for command in of_step) if all(commands) else ()
