"""The state of workloads after failures: first a table, then each failure that some workload does not survive."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from kschedx.controllers.node_lifecycle import LARGE_ZONE, ZoneEvictions, ZoneState
from kschedx.errors import UndecidableError
from kschedx.grouping import group_pairs
from kschedx.inquiry.survive import (
    FailureResult,
    LostPod,
    OutageMode,
    OutageOutcome,
    Survival,
    WorkloadImpact,
    WorkloadLoss,
)
from kschedx.kube.scalars import Duration
from kschedx.render.fixes import fix_lines
from kschedx.render.layout import table_lines
from kschedx.render.page.model import SCREEN_WIDTH, HeatMap, Page, page_of
from kschedx.render.terminal import BLANK, DIM, StyledLine, fact_block, line, paragraph, shortens, title_lines
from kschedx.render.view import FixView, ItemList, TableView, Tone, View, ViewItem
from kschedx.wording import Fact, count, list_names, visible
from kschedx.words import headline
from kschedx.words.causes import because

_MOST_FAILURES = 12  # rows of the table on the first screen
_MOST_DETAILS = 1
_MOST_WORKLOADS = 3
_MOST_LISTED = 200  # the number of workloads of a failure that a page lists in each state
_GONE = ("unreachable", "cordoned", "unschedulable")  # endings of causes that only repeat the failure itself
_MOST_HEAT_COLUMNS = 60
_MOST_HEAT_ROWS = 2_000
_LABELS = {
    WorkloadImpact.DOWN: "down",
    WorkloadImpact.PENDING: "short",
    WorkloadImpact.BLOCKED: "blocked",
    WorkloadImpact.UNDECIDED: "undecided",
    WorkloadImpact.INTERRUPTED: "restarted",
    WorkloadImpact.RESCHEDULED: "moved",
}


def _node_names(survival: Survival) -> Sequence[str]:
    return survival.simulation.run.cluster.node_names


@shortens(_node_names)
def survival_lines(survival: Survival, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the headline, a row for each failure, and the details of the worst."""
    ordered = _worst_first(survival.results)
    bad = [result for result in ordered if wide or not result.survives or len(ordered) == 1]
    opened = bad if wide else bad[:_MOST_DETAILS]
    view = _survival_view(survival, opened, None if wide else _MOST_WORKLOADS)
    lines = title_lines(view.headline, view.tone, width)
    for phrase in view.details:
        lines += paragraph(phrase, width, first="  ", style=DIM)
    if len(ordered) > 1:
        lines += [BLANK, *table_lines(view.lists[0], width, None if wide else _MOST_FAILURES)]
    for item in view.items:
        if item.facts:
            lines += [BLANK, *_failure_lines(item, width, is_only=len(ordered) == 1)]
    if len(opened) < len(bad):
        lines += [BLANK, line((f"  details of {len(bad) - len(opened):,} more: -o wide", DIM))]
    return lines


def _worst_first(results: Sequence[FailureResult]) -> list[FailureResult]:
    return sorted(
        results,
        key=lambda result: (
            -len(result.of(WorkloadImpact.DOWN)),
            -len(result.of(WorkloadImpact.PENDING, WorkloadImpact.BLOCKED)),
            -len(result.of(WorkloadImpact.INTERRUPTED)),
        ),
    )


def _headline(survival: Survival) -> str:
    """Return how many of the failures workloads do not survive."""
    what = "outage" if survival.mode is OutageMode.OUTAGE else "drain"
    if len(survival.results) == 1:
        failure_result = survival.results[0]
        return f"{what} of {failure_result.name}: {_effect(failure_result)}"
    good = sum(result.survives for result in survival.results)
    if good == len(survival.results):
        return f"every workload survives each of {count(good, what)}"
    bad = len(survival.results) - good
    verb = "leaves" if bad == 1 else "leave"
    ends = "down or short of replicas"
    if any(result.of(WorkloadImpact.BLOCKED) for result in survival.results):
        ends = "down, short of replicas, or blocked by a PodDisruptionBudget"
    return f"{bad:,} of {count(len(survival.results), what)} {verb} workloads {ends}"


def _effect(result: FailureResult) -> str:
    """Return what a failure does to workloads, worst first."""
    parts: list[str] = []
    for state, phrase in (
        (WorkloadImpact.DOWN, "down"),
        (WorkloadImpact.PENDING, "short of replicas"),
        (WorkloadImpact.BLOCKED, "blocked by PodDisruptionBudgets"),
        (WorkloadImpact.UNDECIDED, "undecided"),
        (WorkloadImpact.INTERRUPTED, "restarted on other nodes"),
    ):
        number = len(result.of(state))
        if number:
            first = count(number, "workload is", "workloads are")
            parts.append(f"{number:,} {phrase}" if parts else f"{first} {phrase}")
    if parts:
        return ", ".join(parts)
    return "every pod is rescheduled" if result.lost else "no pod is lost"


def _cells(result: FailureResult, mode: OutageMode) -> tuple[int, ...]:
    pending = OutageOutcome.PENDING, OutageOutcome.NOT_CREATED, OutageOutcome.UNDECIDED
    return (
        len(result.nodes),
        result.lost,
        len(result.pods(OutageOutcome.RESCHEDULED)),
        len(result.pods(*pending)),
        len(result.of(WorkloadImpact.DOWN)),
        len(result.of(WorkloadImpact.PENDING)),
        len(result.of(WorkloadImpact.INTERRUPTED if mode is OutageMode.OUTAGE else WorkloadImpact.BLOCKED)),
    )


def _failure_lines(item: ViewItem, width: int, *, is_only: bool) -> list[StyledLine]:
    effect, *losses = item.facts
    lines = [] if is_only else title_lines(f"{item.title}: {effect.items[0]}", item.tone, width)
    lines += fact_block(losses, width)
    lines += fix_lines(item.fixes, item.no_fix, width)
    return lines + fact_block(item.own, width)


# --- facts


def _loss_facts(survival: Survival, result: FailureResult, most: int | None) -> Iterator[Fact]:
    """Yield the workloads by state, and the volumes that are lost."""
    shown = [state for state in WorkloadImpact if state is not WorkloadImpact.RESCHEDULED]
    for state in shown:
        its = result.of(state)
        for workload in its[:most]:
            yield Fact.of(_LABELS[state], _workload_text(survival, result, workload))
        if most is not None and len(its) > most:
            yield Fact.of("", f"{count(len(its) - most, 'more workload')}: -o wide")
    if result.volumes:
        what = "are" if len(result.volumes) > 1 else "is"
        yield Fact.of("volumes", f"{list_names(result.volumes, 3)} {what} reachable from the lost nodes only")


def _fixes(result: FailureResult) -> Iterator[FixView]:
    """Yield the fixes that were tried and give pods a node, in the order in which they are applied."""
    then = ""
    if result.freed_by_deletion:
        number, then = result.freed_by_deletion, "then "
        seen = f"{count(number, 'pod')} {'finds' if number == 1 else 'find'} a node, since topology spread ignores them"
        yield FixView(title="delete the Node objects of the lost nodes", seen=seen)
    if result.needed is not None and result.needed.nodes:
        added = [
            f"{count(its.count, 'node')} like {its.like}{f' in zone {its.zone}' if its.zone else ''}"
            for its in result.needed.nodes
        ]
        of = result.needed.pods + len(result.needed.not_helped)
        seen = f"{result.needed.pods:,} of {count(of, 'pod')} {'has' if result.needed.pods == 1 else 'have'} a node"
        yield FixView(title=f"{then}add {list_names(added, 4)}", seen=seen)


def _workload_text(survival: Survival, result: FailureResult, loss: WorkloadLoss) -> str:
    name, lost = loss.workload.reference, f"{loss.lost:,} of {count(loss.replicas, 'replica')}"
    if loss.state is WorkloadImpact.INTERRUPTED:
        every = "its only replica" if loss.replicas == 1 else f"all {loss.replicas:,} replicas"
        return f"{name} loses {every}, and runs again on {list_names([pod.to for pod in loss.pods if pod.to], 2)}"
    if loss.state is WorkloadImpact.BLOCKED:
        blocked = [pod for pod in loss.pods if pod.outcome is OutageOutcome.BLOCKED]
        return f"{name}: PDB {blocked[0].message} blocks the eviction of {count(len(blocked), 'pod')}"
    if loss.workload.kind == "Pod":
        return f"{name} is lost: {_reason(survival, result, loss)}"
    back = loss.number(OutageOutcome.RESCHEDULED)
    moved = f", {back:,} rescheduled" if back else ""
    blocked = [pod for pod in loss.pods if pod.outcome is OutageOutcome.BLOCKED]
    moved += f", {len(blocked):,} blocked by PDB {blocked[0].message}" if blocked else ""
    by_preemption = sum(pod.by_preemption for pod in loss.pods)
    preempted = f" ({by_preemption:,} preempted)" if by_preemption else ""
    return f"{name} loses {lost}{preempted}{moved}: {_reason(survival, result, loss)}"


def _reason(survival: Survival, result: FailureResult, loss: WorkloadLoss) -> str:
    """Return why the first of its pods has no node."""
    failed = [pod for pod in loss.pods if pod.outcome not in (OutageOutcome.RESCHEDULED, OutageOutcome.BLOCKED)]
    failed.sort(key=lambda pod: pod.outcome is OutageOutcome.NOT_CREATED)
    first = failed[0]
    return first.message if first.outcome is not OutageOutcome.PENDING else _cause(survival, result, first)


def _cause(survival: Survival, result: FailureResult, pod: LostPod) -> str:
    if result.scene is None:
        return pod.message.partition(". no new claims")[0].partition(". preemption:")[0]
    try:
        explanation = survival.simulation.explain_in(result.scene, pod.pod)
    except (UndecidableError, KeyError):
        return pod.message
    if explanation is None:
        return pod.message
    gone = count(len(result.nodes), "node")
    phrases = because(explanation.diagnosis, None)
    others = [phrase for phrase in phrases if not phrase.startswith(gone) or not phrase.endswith(_GONE)]
    told = (others or list(phrases))[:2]
    if result.needed is not None and pod.pod in result.needed.not_helped:  # more than the first cause is in the way
        blockers = (blocker for group in explanation.diagnosis.groups for blocker in group.exemplar.blockers)
        hidden = (finding for blocker in blockers if not blocker.is_verdict for finding in blocker.findings)
        told += [f"also {text}" for text in islice(dict.fromkeys(map(headline, hidden)), 1)]
    return "; ".join(told) or pod.message


def _eviction_facts(result: FailureResult) -> Iterator[Fact]:
    """Yield when the node lifecycle controller taints the nodes, and which pods it never evicts."""
    for zone in result.zones:
        yield Fact.of("evictions", _zone_text(zone))
    times = [time for eviction in result.evictions for time in eviction.pods.values() if time is not None]
    if times:
        yield Fact.of("", f"pods are deleted {_times(times)} after the outage")
    kept = sum(len(eviction.pods) for eviction in result.evictions if eviction.taint_after is None)
    if kept:
        text = f"{count(kept, 'pod is', 'pods are')} recreated only once the Node objects are deleted"
        yield Fact.of("", text)
    for_ever = [
        pod for eviction in result.evictions if eviction.taint_after is not None
        for pod, time in eviction.pods.items() if time is None
    ]  # fmt: skip
    if for_ever:
        text = f"{list_names(for_ever, 2)}: not evicted before the Node object is deleted, since tolerated for ever"
        yield Fact.of("", text)
    ordinals = [loss for loss in result.workloads if loss.workload.kind == "StatefulSet"]
    if ordinals and result.zones:
        text = "StatefulSets recreate pods once the Node object is deleted or tainted out-of-service"
        yield Fact.of("", text)


def _zone_text(zone: ZoneEvictions) -> str:
    """Return `zone eu-1a is in FullDisruption (6 of 6 nodes lost): one node is tainted every 10s, the last 1m0s after
    the outage`."""
    name = f"zone {zone.zone}" if zone.zone else "the cluster, without zones,"
    state = f"{name} is in {zone.state.value}" if zone.state is not ZoneState.NORMAL else f"{name} stays in Normal"
    text = f"{state} ({len(zone.lost):,} of {count(zone.nodes, 'node')} lost)"
    last = zone.tainted_after(len(zone.lost) - 1)
    if last is None:
        why = "all zones are" if zone.state is ZoneState.FULL else f"it has at most {LARGE_ZONE} nodes"
        return f"{text}: evictions stop, since {why}"
    each = f"one node is tainted every {_duration(round(1 / zone.rate))}"
    return f"{text}: {each}, the last {_duration(last)} after the outage"


def _duration(seconds: int) -> str:
    return str(Duration.seconds(seconds))


# --- the page


def _survival_view(survival: Survival, opened: Collection[FailureResult], most: int | None) -> View:
    """Return a view with a row for each failure, worst first. Those that are `opened` have their facts, with at most
    `most` workloads in each state."""
    named = {id(result) for result in opened}
    last = "restarted" if survival.mode is OutageMode.OUTAGE else "blocked"
    return View(
        command="kschedx survive",
        headline=_headline(survival),
        tone=Tone.OPEN if survival.is_undecided else Tone.GOOD if survival.survives else Tone.BAD,
        details=tuple(_details(survival)),
        lists=(
            ItemList(
                title="Failures",
                noun="failure",
                columns=tuple(
                    (label, True) for label in ("nodes", "lost", "rescheduled", "pending", "down", "short", last)
                ),
                items=tuple(
                    _item(survival, result, most, is_open=id(result) in named)
                    for result in _worst_first(survival.results)
                ),
            ),
        ),
        tables=(_evictions(survival),),
    )


def _details(survival: Survival) -> Iterator[str]:
    """Yield the changes before the failures, and, of several failures, which workloads with several replicas lose all
    of them at once, though they run again on other nodes."""
    if changes := survival.simulation.changes:
        yield f"after {'; '.join(map(str, changes))}"
    if len(survival.results) > 1:
        interrupted = group_pairs(
            (loss.workload.reference, result.name)
            for result in survival.results
            for loss in result.of(WorkloadImpact.INTERRUPTED)
            if loss.replicas > 1
        )
        texts = [f"{workload} ({list_names(failures, 2)})" for workload, failures in interrupted.items()]
        if texts:
            yield f"all replicas are lost at once, and run again on other nodes: {list_names(texts, 3)}"


def _item(survival: Survival, result: FailureResult, most: int | None, *, is_open: bool) -> ViewItem:
    short = "down" if result.of(WorkloadImpact.DOWN) else "short of replicas"
    item = ViewItem(
        title=result.name,
        tone=Tone.GOOD if result.survives else Tone.BAD,
        kind="survived" if result.survives else short,
        values=_cells(result, survival.mode),
    )
    if not is_open:
        return item
    left = () if result.needed is None else result.needed.not_helped
    return replace(
        item,
        facts=(Fact.of("effect", _effect(result)), *_loss_facts(survival, result, most)),
        own=tuple(_eviction_facts(result)),
        fixes=tuple(_fixes(result)),
        no_fix=(f"no added node helps {list_names(left, 3)}" if left else ""),
        members=tuple(
            f"{pod.pod} {pod.node} → {pod.to or pod.outcome.value}" for loss in result.workloads for pod in loss.pods
        ),
    )


def survival_page(survival: Survival) -> Page:
    """Return a page with the failures, a heat map of workloads, and when pods are evicted."""
    lines = survival_lines(survival, width=SCREEN_WIDTH)
    plots = (_heat_map(survival),) if len(survival.results) <= _MOST_HEAT_COLUMNS else ()
    view = _survival_view(survival, survival.results, _MOST_LISTED)
    return page_of(view, lines, plots, survival.simulation.before)


def _evictions(survival: Survival) -> TableView:
    heads = ("failure", "node", "tainted after", "pods", "deleted after")
    return TableView(
        title="Evictions by the node lifecycle controller",
        columns=tuple((head, head == "pods") for head in heads),
        rows=tuple(
            (
                result.name,
                eviction.node,
                "never" if eviction.taint_after is None else _duration(eviction.taint_after),
                len(eviction.pods),
                _times(tuple(eviction.pods.values())),
            )
            for result in survival.results
            for eviction in result.evictions
        ),
    )


def _times(times: Sequence[int | None]) -> str:
    known = [time for time in times if time is not None]
    if not known:
        return "never" if times else ""
    spans = dict.fromkeys((_duration(min(known)), _duration(max(known))))
    return " to ".join(spans) + (", some never" if len(known) < len(times) else "")


def _heat_map(survival: Survival) -> HeatMap:
    """Return the workloads that lose pods by failure, worst first."""
    at: dict[str, dict[int, WorkloadLoss]] = {}
    for place, failure_result in enumerate(survival.results):
        for loss in failure_result.workloads:
            at.setdefault(loss.workload.reference, {})[place] = loss
    states = list(WorkloadImpact)
    worst = {name: min(states.index(loss.state) for loss in its.values()) for name, its in at.items()}
    names = sorted(at, key=lambda name: (worst[name], -sum(loss.lost for loss in at[name].values()), name))
    shown = names[:_MOST_HEAT_ROWS]
    places = range(len(survival.results))
    return HeatMap(
        columns=tuple(visible(result.name) for result in survival.results),
        rows=tuple(map(visible, shown)),
        replicas=tuple(next(iter(at[name].values())).replicas for name in shown),
        states=("", *(_LABELS[state] for state in states)),
        state=tuple(
            tuple(states.index(at[name][place].state) + 1 if place in at[name] else 0 for place in places)
            for name in shown
        ),
        lost=tuple(tuple(at[name][place].lost if place in at[name] else 0 for place in places) for name in shown),
        after=tuple(tuple(at[name][place].after if place in at[name] else -1 for place in places) for name in shown),
    )
