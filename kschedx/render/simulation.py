"""The screens of `simulate`, `drain`, and `fit`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from rich.text import Text

from kschedx.controllers.deployment import (
    DaemonSetUpdate,
    DeploymentStrategy,
    NoRollout,
    NoRolloutReason,
    StatefulSetUpdate,
    UpdateStrategy,
)
from kschedx.controllers.manager import Rollout
from kschedx.controllers.workloads import Workload
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.notes import AFTER_CHANGES
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.fit import Fit
from kschedx.inquiry.pending_pods import PendingStory, SharedFixes
from kschedx.inquiry.simulation import NodeUse, Simulation, WorkloadResult
from kschedx.inquiry.stalled_drain import DrainFix
from kschedx.inquiry.what_if import OtherOutcomes
from kschedx.kube.names import PODS
from kschedx.render.drain import (
    StrandedStory,
    drain_facts,
    drain_lines,
    each_lines,
    several_lines,
    stranded_stories,
    verdict,
)
from kschedx.render.fixes import command_lines, fix_lines, refusal_fixes, story_fix_lines, story_reason
from kschedx.render.layout import headline_lines, table_lines
from kschedx.render.lifecycle import causes, state_tone
from kschedx.render.outcome import outcome_sentence, outcome_tone
from kschedx.render.screen import explanation_view
from kschedx.render.states import (
    CannotStart,
    Contradicted,
    Lifecycle,
    NoScheduler,
    NotBound,
    NotChanged,
    Refused,
    headline,
)
from kschedx.render.terminal import (
    BAD,
    BLANK,
    BOLD,
    DIM,
    OPEN,
    SEPARATOR,
    Part,
    columns,
    fitting,
    labelled,
    labelled_all,
    line,
    more,
    paragraph,
    shortens,
    title_lines,
)
from kschedx.render.view import Fix as FixView
from kschedx.render.view import Tone, View, ViewItem
from kschedx.render.wording import Fact, count, listed
from kschedx.render.words.causes import because
from kschedx.render.words.pod import could_reject
from kschedx.simulate.changes import ChangeVerb
from kschedx.simulate.drain import DrainResult
from kschedx.simulate.queue import QueueStep
from kschedx.simulate.repack import GoalResult
from kschedx.simulate.simulator import KueueResult

_BY_NAME = frozenset({ChangeVerb.DELETE, ChangeVerb.SCALE})
"""Verbs of changes that themselves show which pods are deleted."""


def _change_lines(simulation: Simulation, width: int, most: int) -> list[Text]:
    """Return a line for each change that evicts or deletes pods or that is undone, and for each rollout."""
    lines: list[Text] = []
    phrases = [*_effects(simulation)]
    for text in phrases[:most]:
        lines += paragraph(text, width, first="  ", indent=4, style=DIM)
    for rollout in sorted(simulation.rolled_out, key=lambda rollout: rollout.is_done)[:most]:
        lines += paragraph(rollout_text(rollout), width, first="  ", indent=4, style=BAD if rollout.stalls else DIM)
    left = max(len(phrases) - most, 0) + max(len(simulation.rolled_out) - most, 0)
    return lines + (paragraph(f"{count(left, 'more effect')}: -o json has all", width, first="  ") if left else [])


def _effects(simulation: Simulation) -> Iterator[str]:
    for effect in simulation.effects:
        if effect.undone:
            yield effect.undone
        if effect.change.verb in _BY_NAME or not (effect.evicted or effect.gone):
            continue
        parts = []
        if effect.evicted:
            number = len(effect.evicted)
            back = sum(key in simulation.placed for key in effect.evicted)
            verb = "loses its node" if number == 1 else "lose their nodes"
            text = "is rescheduled" if number == 1 else f"{back:,} are rescheduled"
            none = "stays pending" if number == 1 else "all stay pending"
            parts.append(f"{count(number, 'pod')} {verb}, {text if back else none}")
        if effect.gone:
            parts.append(f"{listed(effect.gone, 2)} will not be recreated")
        which = f"{effect.change}: " if len(simulation.changes) > 1 else ""
        yield f"{which}{'; '.join(parts)}"


def rollout_text(rollout: Rollout) -> str:
    """Return the progress of the rollout, and its bounds."""
    name = rollout.workload.reference
    if isinstance(rollout.strategy, NoRollout):
        return f"{name}: {_kept(rollout.strategy)}"
    if rollout.is_done:
        return f"rollout of {name} completes: {count(rollout.old, 'pod')} replaced ({_strategy_text(rollout.strategy)})"
    waits = f"{count(rollout.waiting, 'new pod')} {'stays' if rollout.waiting == 1 else 'stay'} pending"
    if rollout.refusal:
        waits = f"the API server refuses the next pod: {rollout.refusal}"
    elif not rollout.waiting:
        waits = "a pod is not ready"
        if isinstance(rollout.strategy, StatefulSetUpdate):  # which replaces a pod only once it is ready
            waits = f"{waits}; delete it first"
    replaced = f"{rollout.replaced:,} of {count(rollout.old, 'pod')} replaced"
    return f"rollout of {name} stalls: {replaced}, {waits} ({_strategy_text(rollout.strategy)})"


def _strategy_text(strategy: UpdateStrategy) -> str:
    match strategy:
        case DeploymentStrategy(is_recreate=True):
            return "strategy Recreate"
        case DeploymentStrategy(surge=surge, unavailable=unavailable):
            return f"maxSurge {surge:,}, maxUnavailable {unavailable:,}"
        case StatefulSetUpdate(partition=partition, unavailable=unavailable):
            kept = f", partition {partition:,}" if partition else ""
            return f"from the highest ordinal, {unavailable:,} at a time{kept}"
        case DaemonSetUpdate(surge=surge, unavailable=unavailable):
            return f"maxSurge {surge:,}" if surge else f"maxUnavailable {unavailable:,}"
        case NoRollout():
            return _kept(strategy)
        case _:
            assert_never(strategy)


def _kept(strategy: NoRollout) -> str:
    match strategy.why:
        case NoRolloutReason.ON_DELETE:
            return "updateStrategy OnDelete: its pods keep the previous template until you delete them"
        case NoRolloutReason.PAUSED:
            return "its rollout is paused: its pods keep the previous template"
        case NoRolloutReason.NO_CONTROLLER:
            return "its pods keep the previous template until you delete them"
        case _:
            assert_never(strategy.why)


# The screen of a simulation: how many pods have each outcome, workload by workload, and the nodes' utilization.

MOST_LINES = 30
SHOWN_CHANGES = 4
SHOWN_PLACES = 3
BAR = 10
SHORT_BAR = 5


class ShownCounts(Struct, frozen=True):
    """How many entries are shown: workloads, the most and least used nodes, and causes."""

    workloads: int
    nodes: int
    causes: int


SHOWN_ROWS = (
    ShownCounts(8, 3, 3),
    ShownCounts(6, 3, 2),
    ShownCounts(5, 2, 1),
    ShownCounts(3, 2, 1),
    ShownCounts(2, 1, 1),
)
"""Sizes that are tried until the screen is short enough."""
ALL = ShownCounts(1_000_000, 1_000_000, 1_000_000)


def _nodes_before(simulation: Simulation) -> Sequence[str]:
    return simulation.before.cluster.names


@shortens(_nodes_before)
def drains_lines(
    simulation: Simulation,
    *,
    width: int,
    each: bool,
    lets_go: Sequence[DrainFix] = (),
    forced: Sequence[DrainResult] = (),
    wide: bool = False,
    story_of: StrandedStory | None = None,
) -> list[Text]:
    """Return what blocks a drain, and what unblocks it; with `each`, a line for each node by itself.

    `forced` are the drains that kubectl refuses, with the flags that it requires. At most 30 lines, unless `wide` or
    blocked drains need more. `story_of` are the stories that were computed before.
    """
    story_of = story_of or stranded_stories(simulation)
    with_flags = {drain_result.node: drain_result for drain_result in forced}
    drained = simulation.drained
    if each:
        return each_lines(drained, width, with_flags, wide=wide)
    mending = SharedFixes(simulation)

    def parts(shown: ShownCounts) -> list[Part]:
        number = 0 if wide else SHOWN_ROWS.index(shown)
        most = None if wide else max((20 - 4 * number) // max(len(drained), 1), 2)
        nodes = 2 * (len(SHOWN_ROWS) - number)
        lines = several_lines(simulation, lets_go, with_flags, width, most, nodes, story_of=story_of, wide=wide)
        evicted = list(simulation.evictions)
        if evicted:
            lines += [BLANK, *paragraph(f"preemption evicts {listed(evicted, 3)} for them", width)]
        pending = _pending(simulation, mending, width, shown.causes, named=2)
        return [Part.of(lines), *pending, Part.of(_nodes(simulation, width, shown.nodes))]

    return _shortened(parts, wide=wide)


@shortens(_nodes_before)
def simulation_lines(
    simulation: Simulation,
    *,
    width: int,
    steps: bool = False,
    wide: bool = False,
    ties: str | None = None,
    shared: SharedFixes | None = None,
) -> list[Text]:
    """Return at most 30 lines, unless `wide` or `steps`, or drains and changes need more. `shared` are the fixes that
    were tried before."""
    mending = shared or SharedFixes(simulation)
    first = title_lines(simulation_headline(simulation), simulation_tone(simulation), width)
    if simulation.changes:
        phrases = list(map(str, simulation.changes))
        if len(phrases) > SHOWN_CHANGES and not wide:
            phrases = [*phrases[:SHOWN_CHANGES], f"{len(phrases) - SHOWN_CHANGES:,} more"]
        first += paragraph("; ".join(phrases), width, first="  after ", style=DIM)
        first += _change_lines(simulation, width, 1_000 if wide else SHOWN_CHANGES)
    for move in _moves(simulation):
        first += paragraph(move, width, first="  ", indent=4)
    if ties is not None:
        first += paragraph(ties, width, first="  ", style=DIM)
    if simulation.kueue is not None:
        first += _kueue(simulation.kueue, width, most=10_000 if wide else 3)
    for drained in simulation.drained:
        first += [BLANK, *drain_lines(drained, width, most=None if wide else 6)]

    def parts(shown: ShownCounts) -> list[Part]:
        above = {
            key: workload.workload
            for workload in shown_workloads(simulation)[: shown.workloads]
            for key in workload.pending
        }
        return [
            Part.of(first + _states(simulation, width, shown.workloads)),
            *_workloads(simulation, mending, width, shown.workloads),
            *_pending(simulation, mending, width, shown.causes, named=10_000 if wide else 2, above=above),
            Part.of(_nodes(simulation, width, shown.nodes)),
        ]

    lines = _shortened(parts, wide=wide)
    return lines + _steps(simulation, width) if steps else lines


def _shortened(parts: Callable[[ShownCounts], list[Part]], *, wide: bool) -> list[Text]:
    """Return the screen with as many entries as fit. Fixes are tried only for entries that it may have room for: first
    for those that it shows in any case."""
    shortest = fitting(parts(ALL if wide else SHOWN_ROWS[-1])) or []
    larger = (fitting(parts(shown), MOST_LINES) for shown in (() if wide else SHOWN_ROWS[:-1]))
    return next((lines for lines in larger if lines is not None), shortest)


# --- outcomes with their counts


def _moves(simulation: Simulation) -> list[str]:
    moves = () if simulation.goal is None else simulation.goal.moves
    return [f"move {move.pod} from {move.source} to {move.to}" for move in moves]


def _goal_text(goal: GoalResult) -> str:
    if not goal.is_reached:
        verb = "stays" if len(goal.pending) == 1 else "stay"
        return f"goal {goal.text}: no moves make room, {listed(goal.pending, 2)} {verb} pending"
    if not goal.moves:
        return f"goal {goal.text}: reached without an eviction"
    return f"goal {goal.text}: reached with {count(len(goal.moves), 'eviction')}, every evicted pod finds a node"


def simulation_tone(simulation: Simulation) -> Tone:
    if simulation.overall is Outcome.UNDECIDED and simulation.pending:
        return Tone.OPEN if simulation.undecided.keys() >= {*simulation.pending} else Tone.BAD
    return outcome_tone(simulation.overall)


def _noun(lifecycle: Lifecycle) -> str:
    if isinstance(lifecycle, NotChanged):
        return "object"
    return "workload" if lifecycle.subject.count("/") > 1 else "pod"


def _is_short(lifecycle: Lifecycle) -> bool:
    """Return whether the API server refuses the pods of a workload, which itself exists."""
    return type(lifecycle) is Refused and lifecycle.is_workload


def simulation_headline(simulation: Simulation) -> str:
    """Return how many pods have each outcome."""
    placed, pending, undecided = len(simulation.placed), len(simulation.pending), len(simulation.undecided)
    disputed = {*simulation.disputed}
    placed -= len(disputed)
    is_open = not placed and 0 < pending == undecided
    goal = simulation.goal
    parts = [] if goal is None else [_goal_text(goal)]
    if goal is not None and not goal.is_reached and not placed and not pending:
        pass  # its pods never enter the queue
    elif (disputed or _tells_refusal(simulation)) and not placed and not pending:
        pass  # the states follow
    elif not placed and not pending:
        drained = simulation.drained
        if not all(drain_result.is_done for drain_result in drained):
            done = sum(drain_result.is_done for drain_result in drained)
            parts.append(f"{done:,} of {count(len(drained), 'node')} can be drained")
        waits = simulation.gated or simulation.of_others or (simulation.kueue is not None and simulation.kueue.pending)
        parts.append("no pod is scheduled" if waits else "no pod is pending")
    elif not pending:
        every = "both" if placed == 2 else f"all {placed:,}"
        parts.append("1 pod is scheduled" if placed == 1 else f"{every} pods are scheduled")
    elif is_open:
        those = "the pod is" if pending == 1 else f"{count(pending, 'pod')} are"
        parts.append(f"{those} undecided")
    elif not placed:
        parts.append(
            f"{'both' if pending == 2 else f'all {pending:,}'} pods stay pending"
            if pending > 1
            else "the pod stays pending"
        )
    else:
        stay = "stays" if pending == 1 else "stay"
        parts.append(f"{placed:,} of {placed + pending:,} pods are scheduled, {pending:,} {stay} pending")
    if undecided and not is_open:
        parts[-1] += f", {undecided:,} of them undecided"
    evicted = list(simulation.evictions)
    if evicted:
        back = sum(simulation.is_recreated(key) and key in simulation.placed for key in evicted)
        text = f"{count(len(evicted), 'pod')} evicted for them"
        parts.append(text + (f", {back:,} of them rescheduled" if back else ""))
    if simulation.gated:
        parts.append(f"{count(len(simulation.gated), 'pod')} gated")
    if simulation.kueue is not None and simulation.kueue.pending:
        parts.append(f"{count(len(simulation.kueue.pending), 'Workload')} pending in Kueue")
    if simulation.of_others:
        parts.append(f"{count(len(simulation.of_others), 'pod')} for another scheduler")
    states: Counter[tuple[str, str]] = Counter()
    for state in simulation.states:
        if (facts := state.lifecycle) is not None and not isinstance(facts, NoScheduler):
            counted = "with refused pods" if _is_short(facts) else state.state.counted
            unable = len(simulation.unable_to_start)
            pods = unable if isinstance(facts, CannotStart) else len(disputed) - unable
            states[_noun(facts), counted] += pods if facts.subject in disputed else 1
    parts += [f"{count(number, noun)} {counted}" for (noun, counted), number in states.items()]
    if refused := sum(replicas.number for replicas in simulation.refused.values()):
        parts.append(f"{count(refused, 'replica')} refused by the API server")
    return "; ".join(parts)


def _tells_refusal(simulation: Simulation) -> bool:
    """Return whether the headline goes on with pods that are not created."""
    return not simulation.drained and any(isinstance(state.lifecycle, Refused) for state in simulation.states)


def _kueue(kueue: KueueResult, width: int, most: int) -> list[Text]:
    return [
        row for fact in _kueue_facts(kueue, most) for row in labelled(fact.label, SEPARATOR.join(fact.items), width)
    ]


def _kueue_facts(kueue: KueueResult, most: int) -> Iterator[Fact]:
    """Yield which Workloads Kueue admits, evicts, and leaves pending."""
    outcomes = (("admits", kueue.admitted), ("evicts", kueue.evicted), ("does not admit", kueue.pending))
    parts = tuple(f"{verb} {listed(names, most, conjunction='and')}" for verb, names in outcomes if names)
    if parts:
        yield Fact(label="kueue", items=parts)
    for name, why in kueue.refused.items():
        yield Fact(label="refused", items=(f"the API server refuses the pods of {name}: {why}",))


def simulation_facts(simulation: Simulation) -> Iterator[Fact]:
    """Yield the effects of the changes on pods and nodes, before the workloads: those of the screen, with every
    entry."""
    for phrase in _effects(simulation):
        yield Fact(label="effect", items=(phrase,))
    for rollout in sorted(simulation.rolled_out, key=lambda rollout: rollout.is_done):
        yield Fact(label="rollout", items=(rollout_text(rollout),))
    if moves := _moves(simulation):
        yield Fact(label="moves", items=(*moves,))
    if simulation.kueue is not None:
        yield from _kueue_facts(simulation.kueue, 10_000)
    for drained in simulation.drained:
        yield Fact(label="drain", items=(f"{drained.node}: {verdict(drained)}",))
        yield from drain_facts(drained)


# --- a line for each workload


def shown_workloads(simulation: Simulation) -> list[WorkloadResult]:
    """Return the workloads with the most pending or refused pods first, then those that lose most."""

    def rank(result: WorkloadResult) -> tuple[int, int, int]:
        return -result.refused - len(result.pending), -len(result.evicted), -len(result.placed)

    return sorted(simulation.workloads, key=rank)


def _workloads(simulation: Simulation, mending: SharedFixes, width: int, most: int) -> list[Part]:
    results = shown_workloads(simulation)
    each = (_workload(simulation, result, mending, width) for result in results[:most])
    return [Part.of([BLANK] if results else []), *each, Part.of(more(len(results) - most, "workload"))]


def _states(simulation: Simulation, width: int, most: int) -> list[Text]:
    """Return the states that no decision of kube-scheduler explains, with the first cause and the first fix of each."""
    lines = [BLANK] if simulation.states else []
    for state in simulation.states[:most]:
        view = explanation_view(state)
        lines += paragraph(view.headline, width, first=view.tone.mark, indent=4)
        for root in view.roots[:1]:
            lines += paragraph(root, width, first="    ")
        for fix in view.fixes[:1]:
            lines += paragraph(fix.text, width, first="    fix  ")
    return lines + more(len(simulation.states) - most)


def workload_tone(result: WorkloadResult) -> Tone:
    if not (result.pending or result.refused):
        return Tone.OPEN if result.undecided else Tone.GOOD
    return Tone.OPEN if not result.refused and len(result.undecided) == len(result.pending) else Tone.BAD


def pending_reason(simulation: Simulation, result: WorkloadResult, story: PendingStory | None) -> str:
    """Return why pods of a workload stay pending, or what is unknown about them; empty if neither is known."""
    reason = "" if story is None else story_reason(story)
    return reason or next(filter(None, map(simulation.undecided.get, result.undecided)), "")


def _workload(simulation: Simulation, result: WorkloadResult, mending: SharedFixes, width: int) -> Part:
    mark = workload_tone(result).mark

    def lines() -> list[Text]:
        story = mending.story(result.pending) if result.pending else None
        text = _workload_text(result, pending_reason(simulation, result, story))
        rows = paragraph(text, width, first=mark, indent=4)
        for fix in refusal_fixes(mending, result):
            rows += paragraph(fix.title, width, first="    fix  ")
            rows += command_lines(fix.commands, width)
        return rows + story_fix_lines(story, width)

    if not (result.pending or result.refused) or (result.pending and mending.is_known(result.pending)):
        return Part.of(lines())
    return Part(len(paragraph(_workload_text(result), width, first=mark, indent=4)), lines, tries_fixes=True)


def _workload_text(result: WorkloadResult, why: str = "") -> str:
    """Return what becomes of a workload's pods; `why` is the reason of the pending ones."""
    tone, nodes = workload_tone(result), result.nodes
    parts = []
    wanted = result.pods + result.refused
    if wanted > 1:
        parts.append(f"{result.pods - len(result.pending):,} of {wanted:,} assigned")
        if nodes:
            parts.append(f"{len(result.placed):,} new {_spread(nodes)}")
    elif result.placed:
        parts.append(f"→ {next(iter(nodes))}")
    if result.evicted:
        parts.append(f"{len(result.evicted):,} evicted")
    if result.pending:
        text = "undecided" if tone is Tone.OPEN else "pending"
        number = text if wanted == 1 else f"{len(result.pending):,} {text}"
        parts.append(f"{number}: {why}" if why else number)
    if result.to_come:
        parts.append(f"{result.to_come:,} not created before the others are ready")
    if result.refused:
        parts.append(f"{result.refused:,} refused: {result.refusal}")
    return f"{result.workload.reference}  {' · '.join(parts)}"


def _spread(nodes: Mapping[str, int]) -> str:
    """Return `on node-1 ×3, node-2`; if there are many nodes, their number."""
    if len(nodes) > SHOWN_PLACES:
        return f"on {len(nodes):,} nodes"
    if len(nodes) == 1:
        return f"on {next(iter(nodes))}"
    ordered = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    phrases = [name if number == 1 else f"{name} ×{number:,}" for name, number in ordered]
    return f"on {', '.join(phrases)}"


# --- nodes before and after


def _nodes(simulation: Simulation, width: int, most: int) -> list[Text]:
    before, after = simulation.usage_before, simulation.usage_after
    changed = [name for name in after.names if name not in before or before[name].requested != after[name].requested]
    gone = [name for name in before.names if name not in after]
    if not changed and not gone:
        return []
    resources = shown_resources(simulation)
    ordered = sorted(changed, key=lambda name: (-after[name].percent(resources[0]), name))
    picked = [*ordered[:most], *ordered[-most:]] if len(ordered) > 2 * most else ordered
    bar = BAR if width >= (BAR + 10) * len(resources) + 12 else SHORT_BAR
    rows = [["node", *resources]]
    for name in picked:
        use = after[name]
        bars = (_bar(before.get(name), use, resource, bar) for resource in resources)
        rows.append([name, *bars])
    rows.append(["all nodes", *(_bar(before.total(), after.total(), resource, bar) for resource in resources)])
    lines = [BLANK, *columns(rows, header=True, width=width)]
    left = len(ordered) - len(picked)
    if left:
        lines.append(line((f"  {count(left, 'node')} between the fullest and the emptiest: -o wide shows all", DIM)))
    emptied = sorted(after.empty() - before.empty())
    if emptied:
        lines += paragraph(f"empty after: {listed((name for name in emptied), 6)}", width)
    if gone:
        lines += paragraph(f"removed: {listed(gone, 6)}", width)
    return lines


def shown_resources(simulation: Simulation) -> tuple[str, ...]:
    """Return cpu, memory, pods, and one more resource that the pods of the queue request."""
    pods = simulation.run.cluster.pods
    nodes = simulation.run.scheduler.nodes
    column = pods.requests(nodes.options)
    codes = {*column.codes[simulation.queue.rows].tolist()}
    others = sorted({name for code in codes for name, number in column.values[code].amounts.items() if number})
    more = [name for name in others if name not in ("cpu", "memory") and name in nodes.resources.index]
    return ("cpu", "memory", PODS, *more[:1])


def _bar(before: NodeUse | None, after: NodeUse, resource: str, size: int) -> str:
    """Return `██████░░░░ 40→62%`."""
    if not after.allocatable.get(resource):
        return "-"
    now = after.percent(resource)
    filled = min(max(round(now * size / 100), 0), size)
    was = "new" if before is None else f"{before.percent(resource)}"
    text = f"{now}%" if was == f"{now}" else f"{was}→{now}%"
    return f"{'█' * filled}{'░' * (size - filled)} {text}"


def _pending(
    simulation: Simulation,
    mending: SharedFixes,
    width: int,
    most: int,
    *,
    named: int,
    above: Mapping[str, Workload] = {},
) -> list[Part]:
    """Return the pending pods by cause, most common first. Each cause has a fix for all its pods, unless all are of one
    workload, which has its fix `above`."""

    def part(pods: Sequence[str]) -> Part:
        is_open = pods[0] in simulation.undecided
        pending = f"{count(len(pods), 'pod')} {'undecided' if is_open else 'pending'}: {listed(pods, named)}"
        lines = paragraph(pending, width, first="? " if is_open else "✗ ", style=OPEN if is_open else BAD)
        lines += paragraph(simulation.messages[pods[0]] or "unschedulable", width, first="  ")
        workloads = {above.get(pod) for pod in pods}
        if len(workloads) == 1 and None not in workloads:
            return Part.of(lines)
        whole = Part(len(lines), lambda: lines + story_fix_lines(mending.story(tuple(pods)), width), tries_fixes=True)
        return Part.of(whole.lines()) if mending.is_known(pods) else whole

    causes: dict[str, list[str]] = {}
    for pod, message in simulation.messages.items():
        causes.setdefault(message.partition(" preemption: ")[0], []).append(pod)
    ordered = sorted(causes.values(), key=lambda pods: -len(pods))
    left = sum(map(len, ordered[most:]))
    rest = more(len(ordered) - most, "cause", f", of {count(left, 'pod')}")
    return [Part.of([BLANK] if ordered else []), *map(part, ordered[:most]), Part.of(rest)]


# --- every decision


def _steps(simulation: Simulation, width: int) -> list[Text]:
    lines = [BLANK, line(("every decision", BOLD))]
    size = len(str(len(simulation.steps)))
    for number, step in enumerate(simulation.steps, start=1):
        lines += paragraph(decision_text(step), width, first=f"{number:>{size}}  ")
    return lines


def decision_text(step: QueueStep) -> str:
    if step.node is not None:
        others = 0 if step.decision is None else len(step.decision.choice) - 1
        return f"✓ {step.key} → {step.names([step.node])[0]}" + (
            f", one of {others + 1:,} tied nodes" if others else ""
        )
    if step.preempts:
        victims = listed(step.victim_keys, 4) or "no pod"
        place = "for its pod group" if step.nominated is None else f"on {step.names([step.nominated])[0]}"
        return f"✗ {step.key} preempts {victims} {place}"
    return f"✗ {step.key} stays pending: {step.message}"


def ties_text(outcomes: OtherOutcomes, choices: Sequence[str] = ()) -> str:
    """Return whether random choices among tied nodes change the result, and which `choices` controllers make besides
    the scheduler."""
    phrase = _scheduler_ties(outcomes)
    return f"{phrase}; controllers choose {', '.join(choices)}" if choices else phrase


def _scheduler_ties(other_outcomes: OtherOutcomes) -> str:
    if not other_outcomes.ties:
        return "no decision is random"
    text = f"{count(other_outcomes.ties, 'decision')} {'is' if other_outcomes.ties == 1 else 'are'} random"
    if other_outcomes.is_all:
        text += f", {count(other_outcomes.outcomes - 1, 'other outcome')} possible"
    else:
        text += f"; of {other_outcomes.tried} random runs and the one by name {other_outcomes.outcomes:,} differ"
    if len(other_outcomes.placed) == 1:
        [number] = other_outcomes.placed
        return f"{text}: {count(number, 'pod')} {'is' if number == 1 else 'are'} scheduled in each"
    placed = ", ".join(f"{number:,} in {of:,}" for number, of in sorted(other_outcomes.placed.items(), reverse=True))
    return f"{text}: the number of scheduled pods differs, {placed} of them"


SHOWN_FITS = 8


def _nodes_of(fit: Fit) -> Sequence[str]:
    return fit.snapshot.cluster.names


def fit_view(fit: Fit) -> View:
    """Return a view with a row for each node that fits more of the pods."""
    stopped = fit.stopped
    return View(
        command="kschedx fit",
        subject=fit.title,
        headline=fit_headline(fit),
        tone=fit_tone(fit),
        because=fit_causes(fit),
        details=tuple(fit_details(fit)),
        fixes=fit_fixes(fit),
        event=stopped.message if stopped is not None else fit.refusal,
        items=tuple(
            ViewItem(
                title=name,
                tone=Tone.GOOD,
                values=(
                    number,
                    *(
                        f"{fit.usage_before[name].percent(item)}→{fit.usage_after[name].percent(item)}%"
                        for item in ("cpu", "memory", "pods")
                    ),
                ),
            )
            for name, number in fit.nodes.items()
        ),
        list_title="Nodes",
        list_noun="node",
        list_columns=(("more", True), ("cpu", True), ("memory", True), ("pods", True)),
        identical_rows=True,
    )


@shortens(_nodes_of)
def fit_lines(fit: Fit, *, width: int, wide: bool = False) -> list[Text]:
    """Return the number, what would be enough, what rejects the next pod, and where the pods go."""
    view = fit_view(fit)
    lines = headline_lines(view, width)
    if fit.stopped is not None:
        if fit.count:
            next_one = "the next one is undecided" if fit.could_reject else "the next one does not fit"
            lines += [BLANK, *paragraph(next_one, width, style=BOLD)]
        lines += labelled_all("because", view.because, width)
        if not view.because:
            cycle = fit.stopped.cycle
            why = could_reject(fit.could_reject) or view.event or outcome_sentence(Diagnosis(cycle), None)
            lines += paragraph(why, width, first="  ")
        lines += fix_lines(view.fixes, "", width)
        if view.because:
            lines += labelled("event", view.event, width, style=DIM, exact=True)
    if fit.refusal:
        lines += [BLANK, *paragraph("the API server refuses more", width, style=BOLD)]
        lines += paragraph(fit.refusal, width, first="  ")
    return [*lines, BLANK, *table_lines(view, width, None if wide else SHOWN_FITS)] if view.items else lines


def displaced_text(moved: Sequence[str], waiting: Sequence[str], gone: Sequence[str]) -> str:
    """Return `: 3 pods move, shop/web-0 loses its node and stays pending`: the effect of changes on pods that have
    nodes. `gone` are pods that no controller recreates."""
    parts = [f"{count(len(moved), 'pod')} {'moves' if len(moved) == 1 else 'move'}"] if moved else []
    if waiting:
        lost = "loses its node and stays" if len(waiting) == 1 else "lose their nodes and stay"
        parts.append(f"{listed(waiting, 2)} {lost} pending")
    if gone:
        parts.append(f"{listed(gone, 2)} will not be recreated")
    return f": {', '.join(parts)}" if parts else ""


def fit_causes(fit: Fit) -> tuple[str, ...]:
    """Return why the next pod does not fit; empty if that is undecided or kube-scheduler has no message about it."""
    if fit.stopped is None or not fit.stopped.message or fit.could_reject:
        return ()
    return because(Diagnosis(fit.stopped.cycle))


def fit_fixes(fit: Fit) -> tuple[FixView, ...]:
    """Return the fixes that make room for the next pod."""
    stopped = fit.stopped
    for_whom = "for one more" if fit.wanted is None or fit.wanted - fit.count > 1 else ""
    return () if stopped is None else tuple(FixView(title=fix.title, seen=for_whom) for fix in stopped.fixes[:2])


def fit_details(fit: Fit) -> Iterator[str]:
    """Yield the pods' own state or the room besides it, the changes that were applied, and how many nodes would be
    enough."""
    if fit.lifecycle is not None:
        yield _room(fit) if fit.is_held else headline(fit.lifecycle)
        yield from causes(fit.lifecycle)
    if isinstance(fit.lifecycle, Contradicted | NotBound) and fit.lifecycle.message:
        yield f"event: {fit.lifecycle.message}"
    yield from (note.text for note in fit.setup.notes if note.id == AFTER_CHANGES)
    if fit.missing:
        yield f"needs {_enough(fit)}"
    elif fit.wanted is not None and not fit.is_enough and not fit.refusal and not fit.could_reject:
        yield "more nodes like the existing ones do not help"


def _room(fit: Fit) -> str:
    """Return how many pods the nodes have room for, if the pods' own state holds them."""
    if not fit.count:
        return "no node has room for one more"
    number = f"{'at least ' if fit.is_bounded and fit.wanted is None else ''}{fit.count:,}"
    return f"the nodes have room for {number}{'' if fit.wanted is None else f' of {fit.wanted:,}'} more"


def _enough(fit: Fit) -> str:
    """Return `2 more nodes like node-3, or 4 like node-1`."""
    first, *others = fit.missing
    every = [f"{count(first.nodes, 'more node')} like {first.like}"]
    every += [f"{nodes.nodes:,} like {nodes.like}" for nodes in others]
    return ", or ".join(every)


def fit_tone(fit: Fit) -> Tone:
    if fit.lifecycle is not None and fit.is_held:
        return state_tone(fit.lifecycle)
    return Tone.GOOD if fit.is_enough else Tone.OPEN if fit.could_reject else Tone.BAD


def fit_headline(fit: Fit) -> str:
    return headline(fit.lifecycle) if fit.lifecycle is not None and fit.is_held else _counted(fit)


def _counted(fit: Fit) -> str:
    name, number = fit.title, fit.count
    if fit.could_reject and not fit.is_enough:
        return f"{name}: undecided whether {'more fit' if number else 'any fits'}"
    if fit.wanted is not None:
        if fit.is_enough:
            return f"{name}: {number:,} more fit" if number > 1 else f"{name}: 1 more fits"
        return f"{name}: {number:,} of {fit.wanted:,} more fit" if number else f"{name}: no more fit"
    if not number:
        return f"{name}: no more fit"
    at_least = "at least " if fit.is_bounded else ""
    return f"{name}: {at_least}{number:,} more {'fits' if number == 1 else 'fit'}"
