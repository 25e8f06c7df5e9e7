"""Views and pages of the answers about many pods, nodes, or objects: a list whose rows open on demand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kschedx.doctor.diagnosis import Diagnosis
from kschedx.explain.causes import CauseGroup, PodAnswer, groups
from kschedx.explain.difference import DifferenceGroup, Repacking, Summary
from kschedx.inquiry.fit import Fit
from kschedx.inquiry.profile_difference import SetupComparison
from kschedx.inquiry.simulation import NodeUse, Simulation
from kschedx.inquiry.stalled_drain import DrainFix
from kschedx.kube.names import POOL_LABELS, ZONE_LABELS
from kschedx.progress import Phase, counted
from kschedx.render.comparison import comparison_headline, comparison_lines, comparison_tone
from kschedx.render.doctor import diagnosis_lines, diagnosis_view
from kschedx.render.fit import fit_lines, fit_view
from kschedx.render.page.model import (
    SCREEN_WIDTH,
    Column,
    Flow,
    Histogram,
    Page,
    Plot,
    Section,
    Table,
    Timeline,
    Usage,
    page_of,
)
from kschedx.render.pending import (
    PodAnswers,
    cause_title,
    cause_tone,
    is_event,
    pending_lines,
    pending_sentence,
    pending_tone,
)
from kschedx.render.simulation import (
    decision_text,
    drains_lines,
    drains_view,
    shown_resources,
    simulation_lines,
    simulation_view,
)
from kschedx.render.terminal import names_note, short_node_names, shown
from kschedx.render.view import Fix, ItemList, Tone, View, ViewItem
from kschedx.render.wording import Fact, amount, count, listed, visible
from kschedx.render.words.comparison import (
    change_rows,
    compared,
    difference_title,
    effect_counts,
    effect_words,
    left_out,
    node_notes,
    node_rows,
    not_repacked,
    pod_lines,
    repacking_title,
    side_texts,
    side_titles,
    with_the_same_change,
)
from kschedx.simulate.drain import DrainResult
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth

TENTHS = (*(f"{low} to {low + 9}%" for low in range(0, 90, 10)), "90% and more")
MOST_POOLS = 24
"""The maximum number of nodes that are bands of their own in a flow, if they have neither pools nor zones."""


# --- pending pods


def _pending_view(pods: PodAnswers) -> View:
    """Return a view with a row for each cause, largest group first; identical pods share a row."""
    causes = groups(pods.answers)
    each = counted(causes, Phase.TRYING_FIXES, len(causes), "causes")
    return View(
        command="kschedx why",
        headline=pending_sentence(pods.answers) if pods.answers else pods.if_none.title,
        tone=pending_tone(pods.answers) if pods.answers else pods.if_none.tone,
        lists=(
            ItemList(
                title="Causes",
                noun="cause",
                columns=(("of", False), ("pods", True), ("namespaces", True), ("highest priority", True)),
                items=tuple(_cause(group, pods.facts_of(group), pods.fix_of(group)) for group in each),
            ),
        ),
        notes=pods.all_notes,
    )


_KINDS = {Tone.GOOD: "schedulable", Tone.HELD: "held", Tone.OPEN: "undecided"}


def _cause(group: CauseGroup, facts: Sequence[Fact], fix: Fix | None) -> ViewItem:
    first, tone = group.first, cause_tone(group)
    return ViewItem(
        title=cause_title(group),
        tone=tone,
        kind=_KINDS.get(tone, "pending"),
        values=(
            listed(dict.fromkeys(answer.owner or answer.pod for answer in group.answers), 1),
            len(group.answers),
            len(group.namespaces),
            max(answer.priority for answer in group.answers),
        ),
        facts=tuple(facts),
        event=first.message if is_event(first) else "",
        fixes=(fix,) if fix is not None and tone is not Tone.GOOD else (),
        members=tuple(_member(answer) for answer in group.answers),
    )


def _member(answer: PodAnswer) -> str:
    return f"{answer.pod} → {', '.join(answer.nodes[:4])}" if answer.nodes else answer.pod


def pending_page(pods: PodAnswers, snapshot: Snapshot | None) -> Page:
    return page_of(_pending_view(pods), pending_lines(pods, width=SCREEN_WIDTH), snapshot=snapshot)


# --- simulations


def simulation_page(simulation: Simulation, *, ties: str | None = None, growths: Sequence[Growth] = ()) -> Page:
    """Return a page with the number of pods by outcome, the nodes before and after, and every decision."""
    view = simulation_view(simulation, ties=ties, growths=growths)
    lines = simulation_lines(simulation, width=SCREEN_WIDTH, view=view)
    return page_of(view, lines, _simulation_sections(simulation), simulation.before)


def result_simulation_page(simulation: Simulation) -> Page:
    """Return the page of a run of changes or of drains."""
    if simulation.changes or not simulation.drained:
        return simulation_page(simulation)
    return drains_page(simulation, each=len(simulation.drained) == simulation.before.cluster.count > 1)


def drains_page(
    simulation: Simulation, *, each: bool, lets_go: Sequence[DrainFix] = (), forced: Sequence[DrainResult] = ()
) -> Page:
    view = drains_view(simulation, each=each, lets_go=lets_go, forced=forced)
    lines = drains_lines(simulation, width=SCREEN_WIDTH, each=each, view=view)
    sections = () if each else _simulation_sections(simulation)
    return page_of(view, lines, sections, simulation.before)


def _simulation_sections(simulation: Simulation) -> Iterator[Section]:
    usage = _usage(simulation)
    if len(usage.nodes) > 1:
        yield _utilization(usage)
    yield usage
    if simulation.steps:
        yield _timeline(simulation)


def _timeline(simulation: Simulation) -> Timeline:
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
        before, pod, after = map(visible, decision_text(step).partition(step.key))
        indices.append((pods.setdefault(pod, len(pods)), texts.setdefault((before, after), len(texts))))
    return Timeline(
        pending=tuple(counted[0] for counted in counts),
        placed=tuple(counted[1] for counted in counts),
        evicted=tuple(counted[2] for counted in counts),
        pods=tuple(pods),
        texts=tuple(texts),
        pod_of=tuple(pod for pod, _ in indices),
        text_of=tuple(text for _, text in indices),
    )


def _usage(simulation: Simulation) -> Usage:
    """Return the utilization of all nodes before and after; those that change most come first."""
    before, after = simulation.usage_before, simulation.usage_after
    resources = shown_resources(simulation)
    names = dict.fromkeys((*before.names, *after.names))
    sides = {name: (before.get(name), after.get(name)) for name in names}
    ordered = sorted(names, key=lambda name: -_change(*sides[name], resources))
    return Usage(
        resources=resources,
        nodes=tuple(map(visible, ordered)),
        before=tuple(_percents(sides[name][0], resources) for name in ordered),
        after=tuple(_percents(sides[name][1], resources) for name in ordered),
        told=tuple(tuple(_told(*sides[name], resource) for resource in resources) for name in ordered),
    )


def _utilization(usage: Usage) -> Histogram:
    """Return how many nodes have which utilization, before and after."""
    plots = []
    for at, resource in enumerate(usage.resources):
        counts = [[0] * len(TENTHS) for _ in (usage.before, usage.after)]
        for tally, rows in zip(counts, (usage.before, usage.after), strict=True):
            for percent in (row[at] for row in rows):
                if percent is not None:
                    tally[min(max(percent, 0) // 10, len(TENTHS) - 1)] += 1
        plots.append(Plot(label=visible(resource), buckets=TENTHS, counts=tuple(map(tuple, counts))))
    return Histogram(title="Utilization", series=("before", "after"), plots=tuple(plots))


def _change(before: NodeUse | None, after: NodeUse | None, resources: Sequence[str]) -> int:
    pairs = zip(_percents(before, resources), _percents(after, resources), strict=True)
    return sum(abs((new or 0) - (old or 0)) for old, new in pairs)


def _percents(use: NodeUse | None, resources: Sequence[str]) -> tuple[int | None, ...]:
    """Return percentages; None if the node does not exist or has none of the resource."""
    return tuple(
        use.percent(resource) if use is not None and use.allocatable.get(resource) else None for resource in resources
    )


def _told(before: NodeUse | None, after: NodeUse | None, resource: str) -> str:
    sides = []
    for use in (before, after):
        if use is None:
            sides.append("not there")
        else:
            requested = amount(resource, use.requested.get(resource, 0))
            sides.append(f"{requested} of {amount(resource, use.allocatable.get(resource, 0))}")
    return " → ".join(dict.fromkeys(sides))


# --- how many fit


def fit_page(fit: Fit) -> Page:
    return page_of(fit_view(fit), fit_lines(fit, width=SCREEN_WIDTH), snapshot=fit.snapshot)


# --- profiles


def comparison_page(comparison: SetupComparison) -> Page:
    """Return a page with the differences between the configurations, then their effects on pods."""
    lines = comparison_lines(comparison, width=SCREEN_WIDTH)
    return page_of(_comparison_view(comparison), lines, _comparison_sections(comparison), comparison.snapshot)


def _comparison_view(comparison: SetupComparison) -> View:
    """Return a view with a row for each change; identical pods with the same change share a row. Its columns have
    short node names."""
    summary, names = comparison.summary, () if comparison.snapshot is None else comparison.snapshot.cluster.names
    texts = () if summary is None else (compared(summary), *effect_counts(summary), *left_out(summary))
    if summary is not None and summary.not_repacked:
        texts = (*texts, not_repacked(summary))
    with short_node_names(names):
        items = () if summary is None else tuple(item for group in summary.groups for item in _changed(group))
    note = names_note(names)
    return View(
        command="kschedx diff-profiles",
        headline=comparison_headline(comparison),
        tone=comparison_tone(comparison),
        details=texts,
        lists=(
            ItemList(
                title="Changes",
                noun="change",
                columns=(("pods", True), ("before", False), ("after", False)),
                items=items,
            ),
        ),
        notes=(note,) if items and note else (),
    )


def _changed(group: DifferenceGroup) -> Iterator[ViewItem]:
    title = difference_title(group).partition(": ")
    kind = effect_words(group.effect, 2) + (f": {title[2]}" if title[2] else "")
    for difference, names in with_the_same_change(group):
        facts = pod_lines(difference)[1]
        yield ViewItem(
            title=listed(names, 1),
            kind=kind,
            values=(len(names), *map(shown, side_texts(difference))),
            facts=tuple(Fact(label="because", items=(fact,)) for fact in facts),
            members=tuple(names) if len(names) > 1 else (),
        )


def _comparison_sections(comparison: SetupComparison) -> Iterator[Section]:
    before, after, summary = comparison.before, comparison.after, comparison.summary
    names = side_titles(before, after)
    if summary is not None and comparison.snapshot is not None:
        flow = _flow(summary, comparison.snapshot, names)
        if flow is not None:
            yield flow
    rows = tuple(tuple(map(visible, row)) for row in change_rows(comparison.changes, before, after))
    columns = tuple(Column(label=label) for label in ("where", "what", "change"))
    yield Table(title="Configuration", columns=columns, rows=rows)
    if summary is not None and summary.repacking is not None:
        heading, *cells = node_rows(summary.repacking, names)
        title = repacking_title(summary.repacking)
        yield Table(
            title=visible(title[0].upper() + title[1:]),
            columns=tuple(Column(label=visible(label)) for label in heading),
            rows=(
                *(tuple(map(visible, row)) for row in cells),
                *((visible(note),) for note in node_notes(summary.repacking, names)),
            ),
        )


def _flow(summary: Summary, snapshot: Snapshot, sides: tuple[str, str]) -> Flow | None:
    """Return the flow between node pools, or between zones or nodes if there are no pools. None if no pod has a
    node."""
    repacking = summary.repacking
    if repacking is not None:
        moves, title = repacking.moves, f"Where {count(repacking.pods, 'pod')} go if they are rescheduled one by one"
    else:
        pairs = Counter(
            (difference.old_node, difference.new_node)
            for difference in summary.differences
            if difference.old_node and difference.new_node
        )
        moves, title = pairs, f"Where {count(pairs.total(), 'pod')} go instead, each decided alone"
    label = next((key for key in (*POOL_LABELS, *ZONE_LABELS) if _has_label(snapshot, key)), "")
    pool_of = {
        node.name: node.metadata.labels.get(label, "no pool") if label else "nodes" for node in snapshot.cluster.nodes
    }
    are_nodes = not label and len(pool_of) <= MOST_POOLS
    if are_nodes:
        pool_of = {name: name for name in pool_of}
    pool_of[""] = "pending"
    bands: Counter[tuple[str, str]] = Counter()
    for (old, new), pods in moves.items():
        bands[pool_of[old], pool_of[new]] += pods
    if not bands:
        return None
    pools = sorted({pool for pair in bands for pool in pair}, key=lambda pool: (pool == "pending", _natural(pool)))
    index = {pool: at for at, pool in enumerate(pools)}
    return Flow(
        title=title,
        sides=(visible(sides[0]), visible(sides[1])),
        pools=tuple(map(visible, pools)),
        in_use=() if repacking is None or are_nodes else tuple(_in_use(repacking, pool_of, pool) for pool in pools),
        moves=tuple((index[old], index[new], pods) for (old, new), pods in bands.most_common()),
    )


def _natural(name: str) -> list[str | int]:
    """Return a key that sorts pool-9 before pool-10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name))]


def _has_label(snapshot: Snapshot, key: str) -> bool:
    return any(key in node.metadata.labels for node in snapshot.cluster.nodes)


def _in_use(repacking: Repacking, pool_of: Mapping[str, str], pool: str) -> tuple[str, str]:
    """Return `3 of 4 nodes in use` for either profile; empty for pods that stay pending."""
    if pool == pool_of[""]:
        return "", ""
    members = {name for name, own in pool_of.items() if own == pool}
    used = (len(members.difference(side.unused)) for side in (repacking.before, repacking.after))
    before, after = (f"{number:,} of {count(len(members), 'node')} in use" for number in used)
    return before, after


# --- dumps and fleets


def doctor_page(diagnosis: Diagnosis) -> Page:
    """Return a page with the inventory, what is missing, and how to complete the dump."""
    kinds = tuple((visible(kind), number) for kind, number in diagnosis.inventory.kinds.items())
    columns = (Column(label="kind"), Column(label="objects", is_number=True))
    lines = diagnosis_lines(diagnosis, width=SCREEN_WIDTH, wide=True)
    sections = (Table(title="Objects", columns=columns, rows=kinds),)
    cited = (("cluster", diagnosis.inventory.source), ("taken", diagnosis.inventory.time or "unknown"))
    return page_of(diagnosis_view(diagnosis), lines, sections, cited=cited)
