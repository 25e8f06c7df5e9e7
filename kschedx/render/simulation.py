"""The views and screens of `simulate` and `drain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.states import BeingDeleted, Lifecycle, NoScheduler, NotChanged, Refused, Suspended, row_named
from kschedx.controllers.workloads import is_controlled, loss_reason
from kschedx.explain.missing_kinds import UNKNOWN_PODS
from kschedx.framework.cycle import Outcome
from kschedx.grouping import group_pairs
from kschedx.inquiry.explanation import Explanation
from kschedx.inquiry.pending_pods import PendingStory, SharedFixes
from kschedx.inquiry.simulation import Simulation, WorkloadResult
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.inquiry.stalled_drain import DrainPreview, DrainRemedies
from kschedx.kube.names import PODS
from kschedx.kube.workloads import RETENTION_POLICY
from kschedx.progress import Phase, count_items
from kschedx.render.drain import (
    drain_lines,
    drain_list,
    drain_tone,
    drained_fixes,
    drains_headline,
    each_lines,
    result_lines,
    with_flags,
)
from kschedx.render.fixes import fix_lines, story_fixes, story_reason
from kschedx.render.growth import growth_text
from kschedx.render.layout import MOST_LINES, head_lines
from kschedx.render.lifecycle import rollout_text
from kschedx.render.outcome import outcome_tone, roots
from kschedx.render.screen import explanation_view
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    SEPARATOR,
    StyledLine,
    columns,
    fact_block,
    line,
    more,
    paragraph,
    shortens,
    title_lines,
)
from kschedx.render.view import FixView, ItemList, Timeline, Tone, UsageRow, UsageView, View, ViewItem
from kschedx.simulate.changes import ChangeVerb
from kschedx.simulate.moves import GoalResult
from kschedx.simulate.queue import QueueStep
from kschedx.simulate.simulator import KueueResult
from kschedx.wording import Fact, count, list_names

_BY_NAME = frozenset({ChangeVerb.DELETE, ChangeVerb.SCALE})
"""Verbs of changes that themselves show which pods are deleted."""


def _effects(simulation: Simulation) -> Iterator[str]:
    for effect in simulation.effects:
        if effect.undone:
            yield effect.undone
        if effect.deleted_claims:
            deleted = "claim {} is deleted" if len(effect.deleted_claims) == 1 else "claims {} are deleted"
            named = deleted.format(list_names(effect.deleted_claims, 3, conjunction="and"))
            yield f"{named} ({RETENTION_POLICY}): the data is lost unless the volume is retained"
        if effect.terminating:
            number = len(effect.terminating)
            stays, whose = ("stays", "its controller waits") if number == 1 else ("stay", "their controllers wait")
            why = f"no kubelet confirms the deletion, for which {whose}"
            yield f"{list_names(effect.terminating, 2)} {stays} Terminating: {why}"
        parts = []
        if effect.evicted and effect.change.verb not in _BY_NAME:
            number = len(effect.evicted)
            back = sum(key in simulation.placed for key in effect.evicted)
            verb = "loses its node" if number == 1 else "lose their nodes"
            text = "is rescheduled" if number == 1 else f"{back:,} {'is' if back == 1 else 'are'} rescheduled"
            none = "stays pending" if number == 1 else "all stay pending"
            parts.append(f"{count(number, 'pod')} {verb}, {text if back else none}")
        pods = simulation.before.pods
        rows = {key: row for key in effect.gone if (row := pods.rows.get(key)) is not None}
        controlled = {key: row for key, row in rows.items() if is_controlled(pods.owners[row])}
        reasons = {key: loss_reason(simulation.before, pods, row) for key, row in controlled.items()}
        for why, names in group_pairs((reasons.get(key, ""), key) for key in effect.gone).items():
            parts.append(f"{list_names(names, 2)} will not be recreated{why and f': {why}'}")
        which = f"{effect.change}: " if len(simulation.changes) > 1 else ""
        yield from (f"{which}{'; '.join(parts)}",) if parts else ()


# The screen of a simulation: how many pods have each outcome, workload by workload, and the nodes' utilization.

_SHOWN_CHANGES = 4
_SHOWN_PLACES = 3
_SHOWN_GATED = 3
_DELETED = row_named("BeingDeleted")
_BAR = 10
_SHORT_BAR = 5


class _ShownCounts(Struct, frozen=True):
    """How many entries are shown: workloads, the most and least used nodes, and causes."""

    workloads: int
    nodes: int
    causes: int


_SHOWN_ROWS = (
    _ShownCounts(8, 3, 3),
    _ShownCounts(6, 3, 2),
    _ShownCounts(5, 2, 1),
    _ShownCounts(3, 2, 1),
    _ShownCounts(2, 1, 1),
)
"""Sizes that are tried until the screen is short enough."""
_ALL = _ShownCounts(1_000_000, 1_000_000, 1_000_000)
_ON_PAGE = _ShownCounts(20, 0, 3)
"""Rows for which fixes are tried on a page, largest first. In a cluster of 5,000 nodes, each takes half a second."""


def drains_view(preview: DrainPreview, tried: _ShownCounts = _ON_PAGE) -> View:
    """Return a view with a row for each node, and for each cause of pending pods."""
    simulation, each = preview.simulation, preview.each
    drained = simulation.drained
    nodes = drain_list(simulation, preview.remedies, 0 if each else tried.workloads, each=each)
    return View(
        command="kschedx drain",
        headline=drains_headline(drained),
        tone=drain_tone(drained),
        details=tuple(with_flags(drained, preview.remedies.forced)) if each else (),
        facts=tuple(_eviction_facts(simulation)),
        fixes=_drain_fixes(preview.remedies),
        lists=(
            nodes,
            *(() if each else (_other_causes(simulation, tried.causes, nodes),)),
        ),
        usage=None if each else _usage(simulation),
        timeline=None if each else _timeline(simulation),
    )


def _drain_fixes(remedies: DrainRemedies) -> tuple[FixView, ...]:
    return tuple(FixView(title=fix.title, seen=fix.seen, commands=fix.commands) for fix in remedies.fixes)


def _other_causes(simulation: Simulation, most: int, nodes: ItemList) -> ItemList:
    """Return a row for each cause of pending pods, without fixes that the row of a drained node has."""
    causes = _causes(simulation, SharedFixes(simulation), most, are_alone=True)
    known = {fix.title for item in nodes.items for fix in item.fixes}
    rows = [replace(item, fixes=tuple(fix for fix in item.fixes if fix.title not in known)) for item in causes.items]
    return replace(causes, items=tuple(rows))


_Answer = TypeVar("_Answer", DrainPreview, SimulationAnswer)


def _nodes_of(answer: _Answer) -> Sequence[str]:
    return answer.simulation.before.cluster.names


@shortens(_nodes_of)
def drains_lines(
    preview: DrainPreview, *, width: int, wide: bool = False, view: View | None = None
) -> list[StyledLine]:
    """Return what blocks a drain, and what unblocks it; for drains of each node by itself, a line for each.

    At most 30 lines, unless `wide` or blocked drains need more. `view` may have been computed before.
    """
    view = view or drains_view(preview, _ALL if wide else _SHOWN_ROWS[0])
    if preview.each:
        return [*head_lines(view, width), *each_lines(view.lists[0], width, wide=wide)]
    nodes, causes = view.lists
    lines: list[StyledLine] = []
    for number, shown in enumerate((_ALL,) if wide else _SHOWN_ROWS):
        most = None if wide else max((20 - 4 * number) // max(len(nodes.items), 1), 2)
        if len(nodes.items) == 1:
            lines = head_lines(replace(view, fixes=()), width)
            lines += drain_lines(nodes.items[0], width, most=most, lets_go=view.fixes, wide=wide)
        else:
            lines = head_lines(view, width)
            lines += _drain_blocks(nodes, width, 2 * (len(_SHOWN_ROWS) - number), most, wide=wide)
        lines += _cause_lines(causes, width, shown.causes, named=2)
        lines += _usage_lines(view.usage, width, shown.nodes)
        if len(lines) <= MOST_LINES:
            break
    return lines


def _drain_blocks(nodes: ItemList, width: int, shown: int, most: int | None, *, wide: bool) -> list[StyledLine]:
    """Return a block for each node that cannot be drained, then a line for each of the others. At most `shown` of each
    are shown, unless `wide`."""
    bad = [item for item in nodes.items if wide or item.tone is not Tone.GOOD]
    good = [item for item in nodes.items if item not in bad]
    lines: list[StyledLine] = []
    for item in bad if wide else bad[:shown]:
        lines += [BLANK, *result_lines(item, width), *drain_lines(item, width, most=most, wide=wide)]
    lines += [] if wide else more(len(bad) - shown, "node", " that cannot")
    lines += [BLANK] if good else []
    for item in good[:shown]:
        lines += paragraph(f"{item.title}: {item.values[-1]}", width, first=item.tone.mark)
    return lines + more(len(good) - shown, "node", " that can")


def simulation_view(
    answer: SimulationAnswer, tried: _ShownCounts = _ON_PAGE, *, shared: SharedFixes | None = None
) -> View:
    """Return a view with a row for each drained node, for each workload, of which those with most pending pods come
    first, and for each cause. Fixes are tried for the first of them, unless `shared` has them."""
    simulation = answer.simulation
    shared = shared or SharedFixes(simulation)
    is_part = any(result.pending or result.refusal for result in _shown_workloads(simulation)[tried.workloads :])
    return View(
        command="kschedx simulate",
        headline=_simulation_headline(simulation),
        tone=_simulation_tone(simulation),
        details=(*map(growth_text, answer.growths), *filter(None, (answer.ties, simulation.idle_text))),
        facts=tuple(_facts(simulation)),
        fixes=_drain_fixes(answer.remedies),
        lists=_simulation_lists(answer, shared, tried),
        usage=_usage(simulation),
        timeline=_timeline(simulation),
        notes=(f"fixes were tried for {tried.workloads} workloads; for others: kschedx why WORKLOAD",)
        if is_part
        else (),
    )


def _simulation_lists(answer: SimulationAnswer, shared: SharedFixes, tried: _ShownCounts) -> tuple[ItemList, ...]:
    simulation = answer.simulation
    deleted = _deleted_pods(simulation.states)
    others = [state for state in simulation.states if not isinstance(state.lifecycle, BeingDeleted)]
    items = [_state_item(state, is_tried=n < tried.workloads) for n, state in enumerate(others)]
    items += (
        replace(_state_item(answer, is_tried=bool(tried.workloads)), title=f"{name} selects no node")
        for name, answer in simulation.idle_daemon_sets.items()
    )
    items += _workloads(simulation, shared, _shown_workloads(simulation), tried.workloads)
    items += (_state_item(answer, is_tried=bool(tried.workloads)) for answer in simulation.gated_answers)
    if deleted:  # after what is pending
        items += (_deleted_item(pods, is_tried=n < tried.workloads) for n, pods in enumerate(deleted))
        items.sort(key=lambda item: item.tone is Tone.GOOD)
    return (
        *([drain_list(simulation, answer.remedies)] if simulation.drained else ()),
        ItemList(
            title="Workloads",
            noun="workload",
            columns=(("scheduled", True), ("pending", True), ("evicted", True), ("result", False)),
            items=tuple(items),
        ),
        _causes(simulation, shared, tried.causes),
    )


def _deleted_pods(states: Iterable[Explanation]) -> list[list[Explanation]]:
    """Return the pods that are being deleted; those that are held alike are together."""
    deleted = ((facts, state) for state in states if isinstance(facts := state.lifecycle, BeingDeleted))
    alike = group_pairs((replace(facts, subject="", since="", until=""), state) for facts, state in deleted)
    return sorted(alike.values(), key=lambda pods: -len(pods))


def _deleted_item(pods: Sequence[Explanation], *, is_tried: bool) -> ViewItem:
    """Return the row of pods that are being deleted and held alike."""
    item = _state_item(pods[0], is_tried=is_tried)
    names = tuple(pod.cycle.pod.key for pod in pods)
    title = f"{count(len(pods), 'pod')} are being deleted, such as {names[0]}" if len(pods) > 1 else item.title
    return replace(item, title=title, members=names)


@shortens(_nodes_of)
def simulation_lines(
    answer: SimulationAnswer, *, width: int, wide: bool = False, view: View | None = None
) -> list[StyledLine]:
    """Return at most 30 lines, unless `wide` or with every step, or drains and changes need more. `view` may have been
    computed before."""
    shared = SharedFixes(answer.simulation)
    whole = view or simulation_view(answer, _ALL if wide else _ShownCounts(0, 0, 0), shared=shared)
    every = _steps(whole.timeline, width) if answer.has_steps else []
    if view is None and not wide:
        if (short := _shortened_lines(answer, shared, whole, width)) is not None:
            return short + every
        whole = replace(whole, lists=_simulation_lists(answer, shared, _SHOWN_ROWS[0]))
    is_single = sum(bool(item.fixes) for item in whole.items) == 1
    lines: list[StyledLine] = []
    for shown in (_ALL,) if wide else _SHOWN_ROWS:
        lines = _sized_lines(whole, width, shown, is_single=is_single, wide=wide)
        if len(lines) <= MOST_LINES:
            break
    return lines + every


def _sized_lines(
    view: View, width: int, shown: _ShownCounts, *, is_single: bool = False, wide: bool = False
) -> list[StyledLine]:
    """Return the screen with this many entries. If `is_single`, the only fix has its commands."""
    *drained, workloads, causes = view.lists
    nodes = [item for items in drained for item in items.items]
    lets_go = view.fixes if len(nodes) == 1 else ()
    lines = head_lines(replace(view, fixes=()) if lets_go else view, width, rows=None if wide else _SHOWN_CHANGES)
    for item in nodes:
        lines += [BLANK, *result_lines(item, width)]
        lines += drain_lines(item, width, most=None if wide else 6, lets_go=lets_go, wide=wide)
    lines += [BLANK] if workloads.items else []
    for item in workloads.items[: shown.workloads]:
        lines += _row_lines(item, f"{item.title}  {item.values[-1]}".rstrip(), width, whole=wide or is_single)
    left = workloads.items[shown.workloads :]
    deleted = [item for item in left if item.kind == _DELETED.counted]
    lines += more(len(left) - len(deleted), workloads.noun)
    lines += more(sum(len(item.members) for item in deleted), "pod", f" {_DELETED.counted}")
    lines += _cause_lines(causes, width, shown.causes, named=10_000 if wide else 2)
    return lines + _usage_lines(view.usage, width, shown.nodes)


def _shortened_lines(answer: SimulationAnswer, shared: SharedFixes, whole: View, width: int) -> list[StyledLine] | None:
    """Return the first size that is short enough; None if at most one row has a fix, which is then shown with its
    commands.

    Fixes are tried for one row after the other, since a row without its fix is shorter: a size that is too long without
    some of them needs no others.
    """
    fewest = _SHOWN_ROWS[-1]
    too_long: _ShownCounts | None = None
    sizes = [
        (fewest, fewest),
        *((shown, counts) for shown in _SHOWN_ROWS[:-1] for counts in _growing_counts(shown)),
    ]
    shortest: list[StyledLine] = []
    for shown, counts in count_items(sizes, Phase.TRYING_FIXES, len(sizes), "sizes of the screen"):
        if shown == too_long:
            continue
        part = replace(whole, lists=_simulation_lists(answer, shared, counts))
        lines = _sized_lines(part, width, shown)
        if shown == fewest:
            if sum(bool(item.fixes) for item in part.items) <= 1:
                return None
            shortest = lines
        elif len(lines) > MOST_LINES:
            too_long = shown
        elif counts == shown:
            return lines
    return shortest


def _growing_counts(shown: _ShownCounts) -> Iterator[_ShownCounts]:
    """Yield the counts from the shortest screen's to these, with one more at a time."""
    fewest = _SHOWN_ROWS[-1]
    for workloads in range(fewest.workloads, shown.workloads + 1):
        yield replace(shown, workloads=workloads, causes=fewest.causes)
    for causes in range(fewest.causes + 1, shown.causes + 1):
        yield replace(shown, causes=causes)


def _row_lines(item: ViewItem, title: str, width: int, *, whole: bool = False) -> list[StyledLine]:
    """Return a row, why it is so, and its fixes, with commands if `whole`."""
    lines = paragraph(title, width, first=item.tone.mark, indent=4)
    lines += fact_block(item.facts, width)
    fixes = tuple(replace(fix, changes=()) if whole else fix.brief for fix in item.fixes)
    return lines + fix_lines(fixes, item.no_fix, width)


def _cause_lines(causes: ItemList, width: int, most: int, *, named: int) -> list[StyledLine]:
    """Return the pending pods by cause, most common first."""
    lines = [BLANK] if causes.items else []
    for item in causes.items[:most]:
        pods = f"{count(len(item.members), 'pod')} {item.kind}: {list_names(item.members, named)}"
        lines += title_lines(pods, item.tone, width)
        lines += paragraph(item.event, width, first="  ")
        lines += _row_lines(item, "", width)[1:]
    left = sum(len(item.members) for item in causes.items[most:])
    return lines + more(len(causes.items) - most, causes.noun, f", of {count(left, 'pod')}")


# --- outcomes with their counts


def _goal_text(goal: GoalResult) -> str:
    if not goal.is_reached:
        verb = "stays" if len(goal.pending) == 1 else "stay"
        return f"goal {goal.text}: no moves make room, {list_names(goal.pending, 2)} {verb} pending"
    if not goal.moves:
        return f"goal {goal.text}: reached without an eviction"
    return f"goal {goal.text}: reached with {count(len(goal.moves), 'eviction')}, every evicted pod finds a node"


def _simulation_tone(simulation: Simulation) -> Tone:
    if simulation.overall is Outcome.UNDECIDED and simulation.pending:
        return Tone.OPEN if simulation.undecided.keys() >= {*simulation.pending} else Tone.BAD
    return outcome_tone(simulation.overall)


def _noun(lifecycle: Lifecycle) -> str:
    if isinstance(lifecycle, NotChanged) or (isinstance(lifecycle, Refused) and lifecycle.is_itself_refused):
        return "object"
    return "workload" if lifecycle.subject.count("/") > 1 else "pod"


def _simulation_headline(simulation: Simulation) -> str:
    """Return how many pods have each outcome."""
    parts = [] if simulation.goal is None else [_goal_text(simulation.goal)]
    if not all(drain_result.is_done for drain_result in simulation.drained):
        first, *others = simulation.drained
        number = sum(drain_result.is_done for drain_result in simulation.drained)
        of = f"{number:,} of {count(len(simulation.drained), 'node')} can be drained"
        parts.append(of if others else f"{first.node} cannot be drained")
    return "; ".join(filter(None, (*parts, _queue_text(simulation), *_other_parts(simulation))))


def _queue_text(simulation: Simulation) -> str:
    """Return how many pods of the queue are scheduled, undecided, and pending; empty if the headline goes on with what
    keeps pods from the queue."""
    placed, pending, undecided = len(simulation.placed), len(simulation.pending), len(simulation.undecided)
    placed -= len(simulation.disputed)
    stays = "stays" if pending == 1 else "stay"
    is_missed = simulation.goal is not None and not simulation.goal.is_reached
    if is_missed and not placed:
        return ""  # the goal's pods stay pending
    if not placed and not pending:
        if simulation.disputed or _names_refusal(simulation) or any(_stalled_rollouts(simulation)):
            return ""
        in_kueue = simulation.kueue is not None and simulation.kueue.pending
        waits = simulation.gated or simulation.of_other_schedulers or in_kueue
        if simulation.lacks_pods:
            return UNKNOWN_PODS
        return "no pod is scheduled" if waits else "no pod is pending"
    if not pending:
        return "1 pod is scheduled" if placed == 1 else f"{_every(placed)} pods are scheduled"
    if not placed and pending == undecided:
        return "the pod is undecided" if pending == 1 else f"{count(pending, 'pod')} are undecided"
    text = f"{placed:,} of {placed + pending:,} pods are scheduled, {pending:,} {stays} pending"
    if not placed:
        text = "the pod stays pending" if pending == 1 else f"{_every(pending)} pods stay pending"
    return f"{text}, {undecided:,} of them undecided" if undecided else text


def _every(number: int) -> str:
    return "both" if number == 2 else f"all {number:,}"


def _other_parts(simulation: Simulation) -> Iterator[str]:
    """Yield how many pods are evicted, gated, or in a state that no decision of kube-scheduler explains."""
    if evicted := list(simulation.evictions):
        back = sum(simulation.is_recreated(key) and key in simulation.placed for key in evicted)
        text = f"{count(len(evicted), 'pod')} evicted for them"
        yield text + (f", {back:,} rescheduled" if back else "")
    if simulation.gated:
        yield f"{count(len(simulation.gated), 'pod')} gated"
    if simulation.kueue is not None and simulation.kueue.pending:
        yield f"{count(len(simulation.kueue.pending), 'Workload')} pending in Kueue"
    if elsewhere := simulation.of_other_schedulers:
        table = simulation.run.cluster.pods
        names = sorted({table.specs[table.rows[key]].scheduler_name for key in elsewhere})
        yield f"{count(len(elsewhere), 'pod')} for scheduler {list_names(names, 3)}"
    states: Counter[tuple[str, str]] = Counter()
    disputed, unable = {*simulation.disputed}, simulation.unable_to_start
    stalled = [*_stalled_rollouts(simulation)]
    for state in simulation.states:
        facts = state.lifecycle
        is_of_kueue = isinstance(facts, Suspended) and bool(facts.queue or facts.waits)  # counted as its Workload
        is_counted = not (is_of_kueue or isinstance(facts, NoScheduler))
        if facts is not None and is_counted and facts.subject not in stalled:
            has_refused_pods = type(facts) is Refused and facts.is_workload and not facts.is_itself_refused
            counted = "with refused pods" if has_refused_pods else state.state.counted
            pods = len(unable) if facts.subject in unable else len(disputed) - len(unable)
            states[_noun(facts), counted] += pods if facts.subject in disputed else 1
    yield from (f"{count(number, noun)} {counted}" for (noun, counted), number in states.items())
    if refused := sum(replicas.number for replicas in simulation.refused.values()):
        yield f"{count(refused, 'replica')} refused by the API server"
    if idle := simulation.idle_daemon_sets:
        yield f"{count(len(idle), 'DaemonSet')} without an eligible node"
    if stalled:
        yield f"the rollout of {stalled[0]} stalls" if len(stalled) == 1 else f"{len(stalled):,} rollouts stall"


def _stalled_rollouts(simulation: Simulation) -> Iterator[str]:
    """Yield the workloads whose rollouts stall although no pod is pending or counted as refused."""
    for rollout in simulation.rolled_out:
        if rollout.stalls and not (rollout.waiting or rollout.workload in simulation.refused):
            yield rollout.reference


def _names_refusal(simulation: Simulation) -> bool:
    """Return whether the headline goes on with pods that are not created."""
    states = (state.lifecycle for state in simulation.states)
    return not simulation.drained and (bool(simulation.refused) or any(isinstance(facts, Refused) for facts in states))


def _kueue_facts(kueue: KueueResult) -> Iterator[Fact]:
    """Yield which Workloads Kueue admits, evicts, and leaves pending."""
    outcomes = (("admits", kueue.admitted), ("evicts", kueue.evicted), ("does not admit", kueue.pending))
    parts = tuple(f"{verb} {list_names(names, len(names), conjunction='and')}" for verb, names in outcomes if names)
    if parts:
        yield Fact.of("kueue", *parts)
    for name, why in kueue.refused.items():
        yield Fact.of("refused", f"the API server refuses the pods of {name}: {why}")


def _facts(simulation: Simulation) -> Iterator[Fact]:
    """Yield the changes, and their effects before the workloads."""
    rollouts = sorted(simulation.rolled_out, key=lambda rollout: rollout.is_done)
    moves = () if simulation.goal is None else simulation.goal.moves
    for label, items in (
        ("after", map(str, simulation.changes)),
        ("effect", (*_effects(simulation), *map(rollout_text, rollouts))),
        ("gated", [list_names(simulation.gated, _SHOWN_GATED)] if simulation.gated else []),
        ("moves", [f"{move.pod} from {move.source} to {move.to}" for move in moves]),
    ):
        if texts := tuple(items):
            yield Fact.of(label, *texts)
    if simulation.kueue is not None:
        yield from _kueue_facts(simulation.kueue)
    yield from _eviction_facts(simulation)


def _eviction_facts(simulation: Simulation) -> Iterator[Fact]:
    if evicted := tuple(simulation.evictions):
        yield Fact.of("preempts", *evicted)


# --- a line for each workload


def _shown_workloads(simulation: Simulation) -> list[WorkloadResult]:
    """Return the workloads with the most pending or refused pods first, then those that lose most."""

    def rank(result: WorkloadResult) -> tuple[int, int, int]:
        return -result.refused - len(result.pending), -len(result.evicted), -len(result.placed)

    return sorted(simulation.workloads, key=rank)


def _workloads(
    simulation: Simulation, mending: SharedFixes, results: Sequence[WorkloadResult], most: int
) -> Iterator[ViewItem]:
    total = sum(bool(result.pending or result.refusal) for result in results[:most])
    each = count_items(results, Phase.TRYING_FIXES, total, "workloads", lambda it: bool(it.pending or it.refusal))
    for number, result in enumerate(each if total else results):
        is_tried = number < most
        story = mending.story_of(result) if result.pending and is_tried else None
        yield ViewItem(
            title=result.workload.reference,
            tone=_workload_tone(result),
            kind=_workload_kind(result),
            values=(len(result.placed), len(result.pending), len(result.evicted), _result(simulation, result, story)),
            facts=_story_roots(story),
            event=simulation.messages.get(result.pending[0], "") if result.pending else "",
            fixes=(
                *(_refusal_fixes(mending, result) if is_tried else ()),
                *drained_fixes(story, simulation.drained, result.pending),
            ),
            no_fix="" if simulation.drained else _story_no_fix(story),
            members=(*result.pending, *(f"{number} on {node}" for node, number in result.nodes.items())),
        )


def _refusal_fixes(mending: SharedFixes, result: WorkloadResult) -> tuple[FixView, ...]:
    """Return the fix after which the API server admits the refused replicas of a workload; empty if none is known."""
    fix = mending.admission_fix(result) if result.refusal else None
    return () if fix is None else (FixView(title=fix.title, commands=fix.commands),)


def _story_roots(story: PendingStory | None) -> tuple[Fact, ...]:
    """Return what lies behind the causes of the story's pods; empty if nothing is known."""
    known = () if story is None else roots(story.explanation.diagnosis)
    return (Fact.of("because", *known),) if known else ()


def _story_no_fix(story: PendingStory | None) -> str:
    """Return why the story's pods have no fix; empty if they have one."""
    return "" if story is None or story.shared_fix is not None else story.explanation.no_fix


def _workload_kind(result: WorkloadResult) -> str:
    match _workload_tone(result):
        case Tone.GOOD:
            return "scheduled"
        case Tone.OPEN:
            return "undecided"
        case _:
            return "pending" if result.pending else "refused"


def _state_item(explanation: Explanation, *, is_tried: bool) -> ViewItem:
    """Return the row of a state that no decision of kube-scheduler explains, with its first fix if fixes are tried."""
    view = explanation_view(explanation, with_fixes=is_tried)
    because = (Fact.of("because", *view.roots[:1]),) if view.roots else ()
    event = (Fact.of("event", view.event),) if view.event and view.tone is Tone.OPEN else ()
    return ViewItem(
        title=view.headline,
        tone=view.tone,
        kind=explanation.state.counted,
        values=(0, 0, 0, ""),
        facts=(*because, *[fact for fact in view.facts if fact.label == "quota"][:1], *event),
        fixes=tuple(replace(fix, group="") for fix in view.fixes[:1]),
    )


def _workload_tone(result: WorkloadResult) -> Tone:
    if not (result.pending or result.refusal):
        return Tone.OPEN if result.undecided else Tone.GOOD
    return Tone.OPEN if not result.refusal and len(result.undecided) == len(result.pending) else Tone.BAD


def _result(simulation: Simulation, result: WorkloadResult, story: PendingStory | None) -> str:
    """Return `8 of 12 assigned · 5 new on node-1 ×5 · 4 pending: 3 nodes lack 500m CPU`."""
    reason = "" if story is None else story_reason(story)
    why = reason or next(filter(None, map(simulation.undecided.get, result.undecided)), "")
    nodes = result.nodes
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
        text = "undecided" if _workload_tone(result) is Tone.OPEN else "pending"
        number = text if wanted == 1 else f"{len(result.pending):,} {text}"
        parts.append(f"{number}: {why}" if why else number)
    if result.to_come:
        parts.append(f"{result.to_come:,} not created before the others are ready")
    if result.refused:
        parts.append(f"{result.refused:,} refused: {result.refusal}")
    elif result.refusal:
        parts.append("its rollout stalls")
    return SEPARATOR.join(parts)


def _spread(nodes: Mapping[str, int]) -> str:
    """Return `on node-1 ×3, node-2`; if there are many nodes, their number."""
    if len(nodes) > _SHOWN_PLACES:
        return f"on {len(nodes):,} nodes"
    if len(nodes) == 1:
        return f"on {next(iter(nodes))}"
    ordered = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    phrases = [name if number == 1 else f"{name} ×{number:,}" for name, number in ordered]
    return f"on {', '.join(phrases)}"


# --- nodes before and after


def _usage(simulation: Simulation) -> UsageView:
    before, after = simulation.usage_before, simulation.usage_after
    names = dict.fromkeys((*before.names, *after.names))
    return UsageView(
        resources=_shown_resources(simulation),
        nodes=tuple(UsageRow(name=name, before=before.get(name), after=after.get(name)) for name in names),
        total=UsageRow(name="all nodes", before=before.total(), after=after.total()),
    )


def _usage_lines(usage: UsageView | None, width: int, most: int) -> list[StyledLine]:
    changed = [row for row in usage.nodes if row.is_changed] if usage is not None else []
    if usage is None or not changed:
        return []
    resources = usage.resources
    left = {row.name: row.after for row in changed if row.after is not None}
    ordered = sorted(
        (row for row in changed if row.name in left),
        key=lambda row: (-left[row.name].percent(resources[0]), row.name),
    )
    picked = [*ordered[:most], *ordered[-most:]] if len(ordered) > 2 * most else ordered
    size = _BAR if width >= (_BAR + 10) * len(resources) + 12 else _SHORT_BAR
    rows = [[row.name, *(_bar(row, resource, size) for resource in resources)] for row in (*picked, usage.total)]
    lines = [BLANK, *columns([["node", *resources], *rows], header=True, width=width)]
    between = len(ordered) - len(picked)
    if between:
        lines.append(line((f"  {count(between, 'node')} between the fullest and the emptiest: -o wide shows all", DIM)))
    emptied = sorted(name for name, use in left.items() if not use.pods)
    gone = [row.name for row in changed if row.after is None]
    for phrase, names in (("empty after", emptied), ("removed", gone)):
        lines += paragraph(f"{phrase}: {list_names(names, 6)}", width) if names else []
    return lines


def _shown_resources(simulation: Simulation) -> tuple[str, ...]:
    """Return cpu, memory, pods, and one more resource that the pods of the queue request."""
    pods = simulation.run.cluster.pods
    nodes = simulation.run.scheduler.nodes
    column = pods.requests(nodes.options)
    codes = {*column.codes[simulation.queue.rows].tolist()}
    others = sorted({name for code in codes for name, number in column.values[code].amounts.items() if number})
    more = [name for name in others if name not in ("cpu", "memory") and name in nodes.resources.index]
    return ("cpu", "memory", PODS, *more[:1])


def _bar(row: UsageRow, resource: str, size: int) -> str:
    """Return `██████░░░░ 40→62%`."""
    if row.after is None or not row.after.allocatable.get(resource):
        return "-"
    now = row.after.percent(resource)
    filled = min(max(round(now * size / 100), 0), size)
    was = "new" if row.before is None else f"{row.before.percent(resource)}"
    text = f"{now}%" if was == f"{now}" else f"{was}→{now}%"
    return f"{'█' * filled}{'░' * (size - filled)} {text}"


def _causes(simulation: Simulation, mending: SharedFixes, most: int, *, are_alone: bool = False) -> ItemList:
    """Return a row for each cause of pending pods, most common first. The first `most` have a fix for all their pods,
    unless all are of one workload, which has its own row; `are_alone` if workloads have no rows."""
    causes = group_pairs((message.partition(" preemption: ")[0], pod) for pod, message in simulation.messages.items())
    ordered = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    workloads = {} if are_alone else {pod: at for at, it in enumerate(simulation.workloads) for pod in it.pending}
    items = []
    each = count_items(ordered, Phase.TRYING_FIXES, min(most, len(ordered)), "causes")
    for number, (cause, pods) in enumerate(each if most and ordered else ordered):
        owners = {workloads.get(pod) for pod in pods}
        is_shared = number < most and (len(owners) > 1 or None in owners)
        story = mending.story(tuple(pods)) if is_shared else None
        is_open = pods[0] in simulation.undecided
        items.append(
            ViewItem(
                title=cause.removesuffix(" no new claims to deallocate,") or "unschedulable",
                tone=Tone.OPEN if is_open else Tone.BAD,
                kind="undecided" if is_open else "pending",
                values=(len(pods), list_names(pods, 1)),
                facts=_story_roots(story),
                event=simulation.messages[pods[0]] or "unschedulable",
                fixes=story_fixes(story),
                no_fix="" if simulation.drained else _story_no_fix(story),  # each drained node has its fixes
                members=tuple(pods),
            )
        )
    return ItemList(title="Causes", noun="cause", columns=(("pods", True), ("of", False)), items=tuple(items))


# --- every decision


def _timeline(simulation: Simulation) -> Timeline | None:
    if not simulation.steps:
        return None
    pending, placed, evicted = len(simulation.queue), 0, 0
    counts: list[tuple[int, int, int]] = []
    pods: dict[str, int] = {}
    texts: dict[tuple[str, str], int] = {}
    indices: list[tuple[int, int]] = []
    for step in simulation.steps:
        if step.node is not None:
            placed, pending = placed + 1, max(pending - 1, 0)
        else:
            evicted += len(step.victim_keys)
        counts.append((pending, placed, evicted))
        before, _, after = decision_text(step).partition(step.key)
        indices.append((pods.setdefault(step.key, len(pods)), texts.setdefault((before, after), len(texts))))
    pending_after, placed_after, evicted_after = zip(*counts, strict=True)
    pod_of, text_of = zip(*indices, strict=True)
    return Timeline(
        pending=pending_after,
        placed=placed_after,
        evicted=evicted_after,
        pods=tuple(pods),
        texts=tuple(texts),
        pod_of=pod_of,
        text_of=text_of,
    )


def _steps(timeline: Timeline | None, width: int) -> list[StyledLine]:
    decisions = () if timeline is None else tuple(timeline.decisions)
    size = len(str(len(decisions)))
    lines = [BLANK, line(("every decision", BOLD))]
    for number, decision in enumerate(decisions, start=1):
        lines += paragraph(decision, width, first=f"{number:>{size}}  ")
    return lines


def decision_text(step: QueueStep) -> str:
    if step.node is not None:
        others = 0 if step.decision is None else len(step.decision.choice) - 1
        return f"✓ {step.key} → {step.names([step.node])[0]}" + (
            f", one of {others + 1:,} tied nodes" if others else ""
        )
    if step.preempts:
        victims = list_names(step.victim_keys, 4) or "no pod"
        place = "for its pod group" if step.nominated is None else f"on {step.names([step.nominated])[0]}"
        return f"✗ {step.key} preempts {victims} {place}"
    return f"✗ {step.key} stays pending: {step.message}"


def displaced_text(moved: Sequence[str], waiting: Sequence[str], gone: Sequence[str]) -> str:
    """Return `: 3 pods move, shop/web-0 loses its node and stays pending`: the effect of changes on pods that have
    nodes. `gone` are pods that no controller recreates."""
    parts = [f"{count(len(moved), 'pod')} {'moves' if len(moved) == 1 else 'move'}"] if moved else []
    if waiting:
        lost = "loses its node and stays" if len(waiting) == 1 else "lose their nodes and stay"
        parts.append(f"{list_names(waiting, 2)} {lost} pending")
    if gone:
        parts.append(f"{list_names(gone, 2)} will not be recreated")
    return f": {', '.join(parts)}" if parts else ""
