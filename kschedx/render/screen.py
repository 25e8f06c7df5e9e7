"""The screens of `kschedx why`: the first one in at most 30 lines, one node's story, a row per node, everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rich.text import Text

from kschedx.errors import InputError, nearest
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.notes import ROUTINE
from kschedx.explain.ranking import Ranking, ranking
from kschedx.framework.cycle import Outcome, UnevaluatedKind
from kschedx.inquiry.explanation import Explanation
from kschedx.render import terminal
from kschedx.render.blocks import Level, candidates_block, excluded_block, group_block, stop_block
from kschedx.render.fixes import fixes_block
from kschedx.render.holding import holding_block
from kschedx.render.outcome import because_block, headline_block, message_block, outcome_block, replicas_block
from kschedx.render.scores import SHOWN, matrices, node_rows, node_verdict_lines, ranking_block, tables
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    fact_lines,
    joined,
    names_note,
    paragraph,
    shortens,
    text,
)
from kschedx.render.wording import Fact, count, listed, short_names
from kschedx.render.words import describe
from kschedx.render.words.constraints import label_hint_text
from kschedx.render.words.resources import hardware_text

MOST_LINES = 30
MOST_GROUPS = 8
MOST_FIXES = 9
"""Lines."""
MOST_NOTES = 3
MOST_LABELS = 4
"""Lines."""

SAID = frozenset(
    {"bound-by-hand", "gated", "nominated-node-first", "runs-already", "single-feasible-node", "tie", ROUTINE}
)
"""Notes whose text the outcome's line holds already, or that tell nobody anything new."""

Block = Callable[[Level], list[Text]]


def print_why(
    explanation: Explanation, *, nodes: Sequence[str] = (), all_nodes: bool = False, wide: bool = False
) -> None:
    """`why` on standard output."""
    out = terminal.console()
    terminal.write(why_lines(explanation, width=out.width, nodes=nodes, all_nodes=all_nodes, wide=wide), out)


def _nodes_of(explanation: Explanation) -> Sequence[str]:
    return explanation.cycle.all_nodes.names


def why_lines(
    explanation: Explanation,
    *,
    width: int,
    nodes: Sequence[str] = (),
    all_nodes: bool = False,
    wide: bool = False,
) -> list[Text]:
    """The lines of a screen. Raises `InputError` for a node that the cluster does not have."""
    diagnosis = Diagnosis(explanation.cycle)
    if nodes:
        return _stories(diagnosis, nodes, width)
    if explanation.lifecycle is not None and not (explanation.is_run and (wide or all_nodes)):
        from kschedx.render.lifecycle import lifecycle_screen  # most pods have none

        return lifecycle_screen(explanation, width)
    return _screen(explanation, diagnosis, width, all_nodes=all_nodes, wide=wide)


@shortens(_nodes_of)
def _screen(explanation: Explanation, diagnosis: Diagnosis, width: int, *, all_nodes: bool, wide: bool) -> list[Text]:
    if wide:
        return _everything(explanation, diagnosis, width)
    if all_nodes:
        head = outcome_block(diagnosis, ranking(explanation.cycle, SHOWN), width, explanation.holding)
        head = _sections(_replicas(explanation, width), [*head, *_runs_already(explanation, width)])
        return [*head, BLANK, *node_rows(diagnosis, width)]
    return _first(explanation, diagnosis, width)


def _stories(diagnosis: Diagnosis, nodes: Sequence[str], width: int) -> list[Text]:
    index = diagnosis.cycle.all_nodes.cluster.index
    ranked = ranking(diagnosis.cycle)
    long_names = {short: name for name, short in short_names(diagnosis.cycle.all_nodes.names).items()}
    lines: list[Text] = []
    for name in nodes:
        name = name if name in index else long_names.get(name, name)
        if name not in index:
            raise InputError(f'no node "{name}" in the snapshot', hint=nearest(name, index))
        lines += [*([BLANK] if lines else []), *node_verdict_lines(diagnosis, ranked, name, width)]
    return lines


# --- the first screen


def _first(explanation: Explanation, diagnosis: Diagnosis, width: int) -> list[Text]:
    ranked = ranking(explanation.cycle, SHOWN + 1)
    replicas = _replicas(explanation, width)
    head = _sections(replicas, headline_block(diagnosis, ranked, width, explanation.holding))
    head += _runs_already(explanation, width)
    head += holding_block(explanation.holding, explanation.cycle, width)
    head += because_block(diagnosis, width)
    head += fixes_block(explanation, width, MOST_FIXES)
    head += message_block(diagnosis, width, explanation.holding)
    tail = _sections(
        _steps(explanation, width),
        _labels(diagnosis, width),
        candidates_block(explanation.cycle, width),
        _autoscaler(explanation, width),
        _notes(explanation, width, MOST_NOTES),
    )
    scores = ranking_block(ranked, width) if ranked and ranked.count > 1 else []
    hint = [text(row, DIM) for row in joined(_hint(explanation, diagnosis), width)]
    room = MOST_LINES - len(_sections(head, scores, [BLANK], tail, hint)) + 1
    blockers = _fitted(_blocks(diagnosis, width), room, diagnosis, most=_most_level(diagnosis))
    return _sections(head, scores, blockers, tail, hint)[:MOST_LINES]


def _replicas(explanation: Explanation, width: int) -> list[Text]:
    return [] if explanation.replicas is None else replicas_block(explanation.replicas, width)


def _runs_already(explanation: Explanation, width: int) -> list[Text]:
    """Below the headline, which tells of a pod without a node."""
    told = [note.text for note in explanation.notes if note.id == "runs-already"]
    return [row for one in told for row in paragraph(one, width, first="  ")]


def _autoscaler(explanation: Explanation, width: int, *, everything: bool = False) -> list[Text]:
    """Of both where a cluster has both."""
    lines: list[Text] = []
    if explanation.autoscaler is not None:
        from kschedx.render.autoscaler import MOST_GROUPS, autoscaler_block  # most clusters have none

        lines += autoscaler_block(explanation, width, None if everything else MOST_GROUPS)
    if explanation.karpenter is not None:
        from kschedx.render.karpenter import MOST_POOLS, karpenter_block

        lines += karpenter_block(explanation, width, None if everything else MOST_POOLS)
    return lines


def _most_level(diagnosis: Diagnosis) -> Level:
    """Where the pod has a node, what rejects the others is an aside."""
    return Level.LINE if diagnosis.feasible else Level.FULL


def _sections(*blocks: list[Text]) -> list[Text]:
    """Blocks that are not empty, a blank line between them."""
    lines: list[Text] = []
    for block in blocks:
        if block:
            lines += [*([BLANK] if lines else []), *block]
    return lines


def _blocks(diagnosis: Diagnosis, width: int) -> list[Block]:
    """What rejects the pod, the nearest nodes first."""
    key = diagnosis.cycle.pod.key
    evicts = not diagnosis.feasible and diagnosis.cycle.outcome is not Outcome.SCHEDULED
    blocks: list[Block] = [
        partial(stop_block, stop, key, width)
        for stop in diagnosis.stops
        if not (stop.point == "PreEnqueue" and diagnosis.cycle.pod.spec.scheduling_gates)
    ]
    blocks += [partial(group_block, diagnosis, group, width, eviction=evicts) for group in diagnosis.groups]
    excluded = diagnosis.excluded
    if excluded is not None:
        blocks.append(lambda _: excluded_block(excluded, width))
    return blocks


def _fitted(blocks: list[Block], room: int, diagnosis: Diagnosis, *, most: Level) -> list[Text]:
    """As many blocks as fit, each with as much as fits: the nearest in brief, all headlines, then facts, in order."""
    for shown in range(min(len(blocks), MOST_GROUPS), 0, -1):
        rest = _rest(diagnosis, len(blocks) - shown)
        levels = [min(most, Level.BRIEF), *[Level.LINE] * (shown - 1)]
        made = [block(level) for block, level in zip(blocks, levels, strict=False)]
        if len(_stacked(made, levels)) + len(rest) <= room:
            break
    else:
        return blocks[0](Level.LINE) + _rest(diagnosis, len(blocks) - 1) if blocks else []
    for level in (Level.BRIEF, Level.FACTS, Level.FULL):
        for number in range(shown):
            if level > most or levels[number] >= level or levels[number] < level - 1:
                continue
            richer = [*made[:number], blocks[number](level), *made[number + 1 :]]
            raised = [*levels[:number], level, *levels[number + 1 :]]
            if len(_stacked(richer, raised)) + len(rest) <= room:
                made, levels = richer, raised
    return _stacked(made, levels) + rest


def _stacked(blocks: list[list[Text]], levels: list[Level]) -> list[Text]:
    """Blocks below each other, those that are more than a headline set apart by blank lines."""
    lines: list[Text] = []
    for number, block in enumerate(blocks):
        if lines and max(levels[number - 1 : number + 1]) > Level.LINE:
            lines.append(BLANK)
        lines += block
    return lines


def _rest(diagnosis: Diagnosis, hidden: int) -> list[Text]:
    if not hidden:
        return []
    groups = diagnosis.groups[-hidden:]
    nodes = sum(group.count for group in groups)
    plugins = list(dict.fromkeys(group.exemplar.blockers[0].plugin for group in groups))
    told = f"{count(hidden, 'more group')} of {count(nodes, 'node')}: {listed(plugins, 4)}"
    return [text(told, DIM)]


def _steps(explanation: Explanation, width: int) -> list[Text]:
    """What would be done on the chosen node before the pod is bound, and what would fail there."""
    points: dict[str, list[str]] = {}
    """What is told, to the steps that it is told of: reserving and binding a volume are one thing for whoever reads."""
    for point, status in explanation.cycle.dry_steps:
        headlines = [describe(finding).headline for finding in status.findings]
        if not headlines and not (status.is_success or status.is_skip):
            headlines = [status.message or status.code.text]
        for headline in headlines:
            points.setdefault(f"{status.plugin} · {headline}", []).append(point)
    lines: list[Text] = []
    for told, at in points.items():
        first = "  " + ("then" if not lines else "").ljust(10)
        lines += paragraph(f"{' and '.join(at)} {told}", width, first=first, indent=14)
    return lines


def _labels(diagnosis: Diagnosis, width: int) -> list[Text]:
    """Labels that are asked for and that no node has."""
    items = tuple(map(label_hint_text, diagnosis.hints))
    lines = fact_lines(Fact(label="labels", items=items), width, MOST_LABELS) if items else []
    for hint in diagnosis.hardware:
        lines += fact_lines(Fact(label="hardware", items=(hardware_text(hint),)), width, MOST_LABELS)
    return lines


def _notes(explanation: Explanation, width: int, limit: int | None) -> list[Text]:
    notes = [note for note in explanation.notes if note.id not in SAID]
    lines: list[Text] = []
    for note in notes[:limit]:
        label = "note".ljust(10) if not lines else " " * 10
        lines += paragraph(note.text, width, first=f"  {label}", indent=12)
    return lines


def _hint(explanation: Explanation, diagnosis: Diagnosis) -> tuple[str, ...]:
    cycle = explanation.cycle
    if any(one.kind is UnevaluatedKind.SCHEDULER for one in cycle.unheard):
        return (count(diagnosis.total, "node"),)
    seen = f"kube-scheduler {cycle.release.version}, profile {cycle.profile.scheduler_name}"
    more = ("more: --node NAME, --nodes all, -o wide",) if diagnosis.total else ()
    taken = cycle.snapshot.source.taken
    when = (f"taken {taken.removesuffix('Z').replace('T', ' ')} UTC",) if taken.endswith("Z") else ()
    note = names_note(cycle.all_nodes.names)
    nodes = count(diagnosis.total, "node") + (f" ({note})" if note else "")
    return (f"{seen}, {nodes}", *when, *more)


# --- everything


def _everything(explanation: Explanation, diagnosis: Diagnosis, width: int) -> list[Text]:
    cycle = explanation.cycle
    ranked: Ranking | None = ranking(cycle)
    head = _sections(_replicas(explanation, width), headline_block(diagnosis, ranked, width, explanation.holding))
    head += _runs_already(explanation, width)
    head += holding_block(explanation.holding, explanation.cycle, width, wide=True)
    head += because_block(diagnosis, width)
    head += fixes_block(explanation, width)
    head += message_block(diagnosis, width, explanation.holding)
    blocks = [block(Level.ALL) for block in _blocks(diagnosis, width)]
    scores = [text("scores", BOLD), *matrices(ranked, width)] if ranked else []
    compared = ranking_block(ranked, width, SHOWN) if ranked and ranked.count > 1 else []
    return _sections(
        head,
        compared,
        _steps(explanation, width),
        *blocks,
        _labels(diagnosis, width),
        tables(diagnosis, width),
        scores,
        candidates_block(cycle, width, everything=True),
        _autoscaler(explanation, width, everything=True),
        _notes(explanation, width, None),
    )
