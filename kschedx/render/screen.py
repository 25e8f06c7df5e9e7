"""The screens of `kschedx why`: the first one in at most 30 lines, one node in detail, a row for each node, and
everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

from msgspec.structs import replace

from kschedx.controllers.kubelet_rejections import REJECTED_THERE
from kschedx.controllers.states import Refused
from kschedx.controllers.workloads import is_of_daemon_set
from kschedx.explain.cycle_notes import LACKS_NODES, UNTRIED
from kschedx.explain.diagnosis import Diagnosis, LabelHint
from kschedx.explain.events import recorded_event
from kschedx.explain.notes import CLAIM_WITHOUT_POD, ROUTINE, RunsAlready
from kschedx.explain.ranking import Ranking, indecisive, rank_nodes
from kschedx.explain.score_reasons import deciding_reason
from kschedx.findings import Finding, NodeAffinityMismatch, TopologySpreadSkew, UntoleratedTaint
from kschedx.framework.cycle import Outcome, UnevaluatedKind
from kschedx.grouping import group_pairs
from kschedx.inquiry.explanation import Explanation, Replicas
from kschedx.kube.kubectl import delete_pod
from kschedx.kube.names import HOSTNAME, short_names
from kschedx.kube.tolerations import NO_SCHEDULE
from kschedx.kube.types import Pod
from kschedx.kube.workloads import TEMPLATE_HASH
from kschedx.render.blocks import Level, candidates_block, excluded_block, group_block, stop_block
from kschedx.render.fixes import fix_views
from kschedx.render.holding import holding_facts
from kschedx.render.layout import COMMAND, MOST_LINES, head_lines, note_lines
from kschedx.render.outcome import (
    MOST_ROOT_CAUSES,
    causes,
    event_text,
    lacking_notes,
    outcome_details,
    outcome_sentence,
    outcome_tone,
    replicas_sentence,
    roots,
    volume_facts,
)
from kschedx.render.scores import SHOWN, matrices, node_rows, node_verdict_lines, ranking_block, tables
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    SEPARATOR,
    StyledLine,
    fact_lines,
    fits,
    join_items,
    names_note,
    paragraph,
    shortens,
    text,
    title_lines,
)
from kschedx.render.view import Decider, Tone, View
from kschedx.wording import Fact, count, list_facts, list_names
from kschedx.words import describe
from kschedx.words.causes import main_findings
from kschedx.words.resources import hardware_text

_MOST_GROUPS = 8
_MOST_FIXES = 9  # lines of fixes
_MOST_NOTES = 3
_MOST_ROWS = 5  # rows of an autoscaler
_MOST_VICTIMS = 3
_MOST_LABELS = 4  # lines about labels that no node has

_MORE = "more: --node NAME, --nodes all, -o wide"
_BELOW_HEADLINE = frozenset(
    {"other-replicas", "progress-deadline-exceeded", "rollout-incomplete", "scheduled-first", "shared-claim"}
    | {"room-to-maximum", "template-kept", LACKS_NODES, REJECTED_THERE, UNTRIED}
)
"""Ids of notes that say what the headline is a part of."""
_SAID = _BELOW_HEADLINE | {
    "bound-by-hand", "gated", "nominated-node-first", "runs-already", "single-feasible-node", "tie", ROUTINE
}  # fmt: skip
"""Ids of notes whose text the outcome's line already has, or that add nothing."""

_Block = Callable[[Level], list[StyledLine]]


def _nodes_of(explanation: Explanation) -> Sequence[str]:
    """Return the nodes that are shown by their short names: none if the pod or its volume selects a value that equals a
    short name, or a node whose host name equals its short name, because the two would look the same."""
    spec, names, storage = (
        explanation.cycle.pod.spec,
        explanation.cycle.all_nodes.names,
        explanation.cycle.snapshot.storage,
    )
    volumes = (storage.volumes.get(claim.spec.volume_name) for claim in storage.claims_of(explanation.cycle.pod))
    affinities = (volume.spec.node_affinity for volume in volumes if volume is not None)
    of_volumes = (affinity.required for affinity in affinities if affinity is not None)
    selectors = (selector for selector in (spec.required_node_affinity, *of_volumes) if selector is not None)
    terms = (term for selector in selectors for term in selector.node_selector_terms)
    expressions = (expression for term in terms for expression in term.match_expressions)
    selected = {*spec.node_selector.values(), *(value for expression in expressions for value in expression.values)}
    short, cluster = {*short_names(names).values()}, explanation.cycle.snapshot.cluster
    hosts = (
        cluster.nodes[cluster.index[value]].metadata.labels.get(HOSTNAME) for value in selected & cluster.index.keys()
    )
    return () if short.intersection((*selected, *hosts)) else names


def why_lines(
    explanation: Explanation,
    *,
    width: int,
    nodes: Sequence[str] = (),
    all_nodes: bool = False,
    wide: bool = False,
) -> list[StyledLine]:
    """Return the lines of a screen. Raises `InputError` for a node that the cluster does not have."""
    if nodes:
        ranked = rank_nodes(explanation.cycle)
        names = map(explanation.cycle.all_nodes.cluster.known_name, nodes)
        return _sections(*(_node_lines(explanation, ranked, name, width) for name in names))
    return _screen(explanation, width, all_nodes=all_nodes, wide=wide)


@shortens(_nodes_of)
def _screen(explanation: Explanation, width: int, *, all_nodes: bool, wide: bool) -> list[StyledLine]:
    if explanation.lifecycle is not None and not (explanation.is_run and (wide or all_nodes)):
        view = explanation_view(explanation)
        footer = footer_lines(explanation, width, more="more: -o wide") if explanation.is_run else []
        return _sections(_head(explanation, view, width, _MOST_FIXES), note_lines(view, width), footer)
    if wide:
        return _everything(explanation, width)
    if all_nodes:
        head = _head(explanation, explanation_view(explanation, with_fixes=False), width, None)
        return [*head, BLANK, *node_rows(explanation.diagnosis, width)]
    return _first(explanation, width)


def _node_lines(explanation: Explanation, ranked: Ranking | None, name: str, width: int) -> list[StyledLine]:
    cycle = explanation.cycle
    is_scored = cycle.scores is not None and cycle.scores.nodes.row_named(name) is not None
    reason = deciding_reason(cycle, explanation.scheduler, ranked, name) if is_scored else ""
    return node_verdict_lines(explanation.diagnosis, ranked, name, width, reason)


def _reasons(explanation: Explanation) -> Iterator[Fact]:
    """Return a line for what decides, and for each thing that a reader may expect to decide and that does not."""
    setup, ranked, node = explanation.setup, rank_nodes(explanation.cycle, 1), explanation.runs_on
    profiles = () if setup is None or setup.forced_profile is not None else setup.scheduler_names
    label = "" if causes(explanation.diagnosis) else "because"  # they follow the causes
    reason = deciding_reason(explanation.cycle, explanation.scheduler, ranked, node)
    others = islice(indecisive(explanation.cycle, sorted(profiles)), MOST_ROOT_CAUSES)
    return list_facts(label, chain(filter(None, (reason,)), others))


def explanation_view(explanation: Explanation, *, with_fixes: bool = True) -> View:
    """Return the answer about one pod, in reading order."""
    if explanation.lifecycle is not None:
        from kschedx.render.lifecycle import lifecycle_view  # most pods have none

        view = lifecycle_view(explanation, explanation.lifecycle, with_fixes=with_fixes)
        if isinstance(explanation.lifecycle, Refused) and explanation.is_run:
            then = explanation_view(replace(explanation, lifecycle=None, remedies=None, fix_search=None))
            view = replace(view, roots=(*view.roots, *then.because, *then.roots))
        return view
    cycle = explanation.cycle
    diagnosis = explanation.diagnosis
    ranked = rank_nodes(cycle, SHOWN + 1)
    headline, tone = _headline(explanation, ranked), outcome_tone(explanation.alone)
    running, now = next((note for note in explanation.first_notes if isinstance(note, RunsAlready)), None), ""
    is_open = explanation.runs_on and explanation.outcome is Outcome.UNDECIDED
    if running is not None and (running.is_static or running.not_ready or is_open):
        now = f"scheduled now, it {headline.removeprefix(f'{cycle.pod.key} ')}"
        headline = f"{cycle.pod.key}{running.text.removeprefix('it')}"
        if not running.is_static:
            state = f" and is not ready: {running.not_ready}" if running.not_ready else ""
            headline = f"{cycle.pod.key} runs on {running.node}{state}"
        tone = Tone.HELD if running.not_ready and tone is Tone.GOOD else tone
    deciders = tuple(_deciders(explanation)) if with_fixes else ()
    pods, phrases = explanation.cycle.snapshot.pods, []
    for key in explanation.victims:
        since = pods.deletion_timestamps[pods.rows[key]]
        held = pods.finalizers.get(key, ())
        phrases.append(
            f"{key} is being deleted (grace period until {since})"
            + (f", waiting for finalizer {list_names(held, 3)}" if held else "")
        )
    return View(
        command="kschedx why",
        subject=cycle.pod.key,
        headline=headline,
        tone=tone,
        details=(
            *filter(None, (now,)),
            *outcome_details(cycle, ranked, explanation.holding),
            *_running_facts(explanation),
            *(note.text for note in explanation.notes if note.id in _BELOW_HEADLINE),
        ),
        because=causes(diagnosis),
        roots=(
            *roots(diagnosis),
            *(_request_sources(explanation) if with_fixes else ()),
            *phrases[:_MOST_VICTIMS],
            *(_refusals(explanation, deciders) if with_fixes else ()),
        ),
        facts=(*holding_facts(explanation.holding, cycle), *volume_facts(diagnosis), *_reasons(explanation)),
        fixes=fix_views(explanation) if with_fixes else (),
        no_fix=explanation.no_fix if with_fixes else "",
        event=_own_event(explanation) or event_text(cycle, explanation.holding),
        deciders=tuple(_with_causes(explanation, deciders)),
        notes=(*lacking_notes(cycle), *(note.text for note in explanation.notes if note.id not in _SAID)),
    )


def _running_facts(explanation: Explanation) -> Iterator[str]:
    """Yield why a running pod is on its node, and the command that moves it, if it would now be assigned to another
    node."""
    pod = explanation.cycle.pod
    for note in explanation.first_notes:
        if not isinstance(note, RunsAlready):
            continue
        if not (note.not_ready or note.is_static or (note.node and explanation.outcome is Outcome.UNDECIDED)):
            yield note.text
        if note.restarts:
            yield note.restarts
        if phrase := _running_cause(note):
            yield phrase
        broken = note.rejected_by if note.uneven is None else (note.uneven,)
        if (
            not note.is_static
            and not note.eviction
            and (rule := next((it for each in broken if (it := _rule_of_running(each, pod))), ""))
        ):
            yield rule
        if note.eviction:
            yield note.eviction
        elif note.recreated_by:
            yield f"to move it, delete it; {note.recreated_by} creates it again:"
            yield COMMAND + delete_pod(pod.key)


def _rule_of_running(finding: Finding, pod: Pod) -> str:
    """Return why kube-scheduler's rule let a running pod be where it would reject it now; empty for other rules."""
    match finding:
        case UntoleratedTaint(effect=effect) if effect == NO_SCHEDULE:
            return "a NoSchedule taint evicts no running pods"
        case NodeAffinityMismatch() if is_of_daemon_set(pod.metadata.owner_references):
            return "its DaemonSet's controller deletes a pod on a node that the DaemonSet does not select"
        case NodeAffinityMismatch():
            return "a pod that runs stays when the labels of its node change"
        case TopologySpreadSkew(constraint=index) if TEMPLATE_HASH in pod.metadata.labels:
            constraints = pod.spec.topology_spread_constraints
            keys = constraints[index].match_label_keys if index < len(constraints) else (TEMPLATE_HASH,)
            counts = "a rollout counts the pods of the former template as well"
            return "" if TEMPLATE_HASH in keys else f"{counts}, without matchLabelKeys: [{TEMPLATE_HASH}]"
        case _:
            return ""


def _running_cause(note: RunsAlready) -> str:
    """Return why a pod is on a node that it would not be assigned to now; empty if it would. The kubelet asks no
    scheduler about its static pods."""
    if note.is_static:
        return ""
    if (skew := note.uneven) is not None:
        most = f"{skew.domains[0].domain} has {count(skew.domains[0].matching, 'matching pod')}"
        return f"{most}, another domain has {skew.minimum:,}: above maxSkew {skew.max_skew} already"
    if note.rejected_by:
        words = describe(note.rejected_by[0])
        phrase = f"{note.node} would reject it now: {words.general or words.headline}"
        return f"{phrase}; the cluster has changed since, or spec.nodeName was written by hand"
    whose = "its pods were" if note.assigned else "the pod was"
    if note.joined_later:
        cause = f"{list_names(note.joined_later, 3)} joined after {whose} assigned"
    elif note.ready_later:
        cause = f"{list_names(note.ready_later, 3)} became ready after {whose} assigned"
    elif note.behind is None:
        return ""
    else:
        cause = f"{note.node} is {count(note.behind, 'point')} behind"
    return f"{cause}; kube-scheduler does not move pods that have a node"


def _own_event(explanation: Explanation) -> str:
    """Return the message of the cluster's own kube-scheduler about a pod that kschedx cannot decide, or whose event
    counts nodes that a dump lacks."""
    lacks_nodes = any(note.id == LACKS_NODES for note in explanation.notes)
    is_open = explanation.outcome is Outcome.UNDECIDED and explanation.holding.scheduler is None
    event = recorded_event(explanation.cycle.snapshot, explanation.cycle.pod) if lacks_nodes or is_open else None
    return "" if event is None else event.message


def _headline(explanation: Explanation, ranked: Ranking | None) -> str:
    """Return kube-scheduler's decision, and what is in progress for the pod."""
    phrase = outcome_sentence(explanation.diagnosis, ranked, explanation.holding)
    if claim := next((it.facts["claim"] for it in explanation.first_notes if it.id == CLAIM_WITHOUT_POD), None):
        phrase = phrase.replace(explanation.cycle.pod.key, f"a pod that uses claim {claim}", 1)
    match explanation.state.name:
        case "Nominated":
            return f"{explanation.cycle.pod.key} {explanation.nominated_text}"
        case "ScaleUp":
            return f"{phrase}; {_scale_up(explanation)}"
        case "Unschedulable" if (down := explanation.autoscaler_down) is not None:
            return f"{phrase}; {down.component} does not run"
        case _:
            return phrase


def _scale_up(explanation: Explanation) -> str:
    """Return `cluster-autoscaler adds a node of group blue`."""
    progress = (scaling.progress for scaling in explanation.scalings)
    return next(filter(None, progress), "cluster-autoscaler reports that it adds a node")


def _request_sources(explanation: Explanation) -> Iterator[str]:
    """Yield where a request that a fix lowers comes from, if the pod template does not set it."""
    if not explanation.fixes:
        return
    from kschedx.fixes.pod_edits import INJECTED, OF_LIMIT
    from kschedx.fixes.steps import LowerRequests

    steps = (step for fix in explanation.fixes for step in fix.steps if isinstance(step, LowerRequests))
    requests = dict.fromkeys(request for step in steps for request in step.requests if request.source)
    alike = group_pairs((replace(it, container="", before=0, after=0), it.container) for it in requests)
    for request, names in ((request, [*dict.fromkeys(names)]) for request, names in alike.items()):
        containers = f"container{'' if len(names) == 1 else 's'} {list_names(names, 3, conjunction='and')}"
        of = f"requests.{request.resource} of {containers}"
        if request.source.startswith(INJECTED):
            yield f"{containers} is not in the pod template: admission injects it"
        elif request.source.startswith(OF_LIMIT) and len(names) > 1:
            yield f"{of} are their limits: the pod template sets no requests"
        elif request.source.startswith(OF_LIMIT):
            yield f"{of} is its limit: the pod template sets no request"
        else:
            yield f"{request.source} sets {of}, not the pod template"


def _refusals(explanation: Explanation, deciders: Iterable[Decider]) -> Iterator[str]:
    """Yield why no autoscaler adds a node for the pod: `Karpenter adds no node: general: limit reached: ...`."""
    if explanation.autoscaler_down is not None:
        return
    for scaling, decider in zip(explanation.scalings, deciders, strict=True):
        name = scaling.autoscaler.name
        yield from (f"{name} reports: {report}" for report in decider.reports)
        if explanation.state.name != "Unschedulable" or decider.reports:
            continue
        may_add, _, others = decider.sentence.partition("; no other group helps")
        if _is_first_row_cause(decider):
            why = decider.rows[0].text.replace(" ✗ ", ": ", 1).replace(" ? ", ": ", 1)
            first = f"{may_add}; " if may_add != decider.sentence else "adds no node: "
            yield f"{name} {first}{why.removesuffix('; the pod would fit')}{others}"
        else:
            yield f"{name} {decider.sentence}"


def _is_first_row_cause(decider: Decider) -> bool:
    """Return whether the causes of the answer have the first reason of a decision."""
    refuses = decider.sentence.startswith(("adds no node", "has no")) or "; no other group helps" in decider.sentence
    return bool(decider.rows) and refuses and not decider.reports


def _with_causes(explanation: Explanation, deciders: Iterable[Decider]) -> Iterator[Decider]:
    """Yield the decisions with the reasons marked that are causes of the answer."""
    are_causes = explanation.state.name == "Unschedulable" and explanation.autoscaler_down is None
    for decider in deciders:
        if are_causes and _is_first_row_cause(decider):
            decider = replace(decider, rows=(replace(decider.rows[0], is_cause=True), *decider.rows[1:]))
        yield decider


def _deciders(explanation: Explanation) -> Iterator[Decider]:
    """Yield what each autoscaler does. Most clusters have none, so the renderer is loaded only if needed."""
    for scaling in explanation.scalings:
        from kschedx.render.growth import decider_of

        yield decider_of(scaling, explanation)


_SHOWN_REASONS = 6


def _replicas_block(explanation: Explanation, width: int) -> list[StyledLine]:
    """Return how many of the replicas can be placed, and where; empty for a single pod."""
    replicas = explanation.replicas
    if replicas is None:
        return []
    lines = title_lines(replicas_sentence(replicas, explanation.overall), outcome_tone(explanation.overall), width)
    nodes = Counter(replicas.placed.values()).most_common()
    phrases = [name if number == 1 else f"{name} ×{number:,}" for name, number in nodes]
    if replicas.refusal:
        lines += fact_lines(Fact.of("refused", replicas.refusal), width)
    if phrases:
        more = (f"{count(len(phrases) - _SHOWN_REASONS, 'more node')}",) if len(phrases) > _SHOWN_REASONS else ()
        lines += fact_lines(Fact.of("nodes", *phrases[:_SHOWN_REASONS], *more), width)
    if replicas.kubelet and replicas.pending:
        lines += fact_lines(Fact.of("then", _retry_sentence(replicas)), width)
    if replicas.evicted:
        lines += fact_lines(Fact.of("evicts", list_names(replicas.evicted, 4)), width)
    return lines


def _retry_sentence(replicas: Replicas) -> str:
    is_job = replicas.workload.split("/")[1] in ("job", "cj", "cronjob")
    long = "until the Job's backoffLimit" if is_job else "repeatedly"
    return f"each rejected pod stays as Failed, and its controller creates another {long}"


def _head(
    explanation: Explanation, view: View, width: int, limit: int | None, *, wide: bool = False, about: str = ""
) -> list[StyledLine]:
    """Return headline, causes, fixes, and event."""
    facts: Iterable[Fact] = view.facts
    if wide:
        facts = holding_facts(explanation.holding, explanation.cycle, wide=True, known=view.roots)
        if explanation.lifecycle is None:
            facts = (*facts, *volume_facts(explanation.diagnosis), *_reasons(explanation))
    return _sections(
        _replicas_block(explanation, width), head_lines(replace(view, facts=tuple(facts)), width, limit, about=about)
    )


# --- the first screen


def _first(explanation: Explanation, width: int) -> list[StyledLine]:
    diagnosis = explanation.diagnosis
    ranked = rank_nodes(explanation.cycle, SHOWN + 1)
    view = explanation_view(explanation)
    about = reason_command(diagnosis)
    head = _head(explanation, view, width, _MOST_FIXES, about=about)
    is_said = not about or any(about in row.plain for row in head)
    footer = footer_lines(explanation, width, about="" if is_said else about)
    blocks = _blocks(diagnosis, width)
    are_ranked = ranked is not None and ranked.count > 1
    scores = ranking_block(ranked, width, by_plugin=False) if ranked and are_ranked else []
    least = _sections(head, scores, _fit_blocks(blocks, 1, diagnosis, width, most=Level.LINE), footer)
    tails = list(_tails(explanation, view, width))
    tail = next((lines for lines in tails if len(least) + 1 + len(lines) <= MOST_LINES), tails[-1])
    by_plugin = ranking_block(ranked, width) if ranked and are_ranked else []
    if len(_sections(head, by_plugin, tail, footer)) <= MOST_LINES:
        scores = by_plugin
    room = MOST_LINES - len(_sections(head, scores, [BLANK], tail, footer)) + 1
    most = Level.LINE if diagnosis.feasible else Level.FULL  # if the pod has a node, the others get one line each
    body = _sections(head, scores, _fit_blocks(blocks, room, diagnosis, width, most=most), tail)
    most_lines = max(MOST_LINES - len(footer) - 1, len(head))  # in a narrow window, the event is still whole
    return _sections(body[:most_lines], footer)


def _tails(explanation: Explanation, view: View, width: int) -> Iterator[list[StyledLine]]:
    """Yield what follows the nodes, shorter each time: first with fewer rows of autoscalers, then with fewer notes."""
    first = (
        _steps(explanation, width),
        _labels(explanation.diagnosis, width),
        candidates_block(explanation.cycle, width),
    )
    notes = note_lines(view, width, _MOST_NOTES)
    yield _sections(*first, _deciders_in(view.deciders, width, _MOST_ROWS), notes)
    if view.deciders:
        for most in range(_MOST_ROWS, -1, -1):
            yield _sections(*first, _deciders_in(view.deciders, width, most, is_brief=True), notes)
    for most in range(_MOST_NOTES, -1, -1):
        yield _sections(*first, note_lines(view, width, most))


def _deciders_in(
    deciders: Iterable[Decider], width: int, limit: int | None = None, *, is_brief: bool = False
) -> list[StyledLine]:
    from kschedx.render.growth import decider_lines

    return [row for decider in deciders for row in decider_lines(decider, width, limit, is_brief=is_brief)]


def _sections(*blocks: list[StyledLine]) -> list[StyledLine]:
    """Return the blocks that are not empty, with blank lines between them."""
    lines: list[StyledLine] = []
    for block in blocks:
        if block:
            lines += [*([BLANK] if lines else []), *block]
    return lines


def _blocks(diagnosis: Diagnosis, width: int) -> list[_Block]:
    """Return the blocks of what rejects the pod, nearest nodes first."""
    key = diagnosis.cycle.pod.key
    evicts = not diagnosis.feasible and diagnosis.cycle.outcome is not Outcome.SCHEDULED
    blocks: list[_Block] = [
        partial(stop_block, stop, key, width)
        for stop in diagnosis.stops
        if not (stop.point == "PreEnqueue" and diagnosis.cycle.pod.spec.scheduling_gates)
    ]
    blocks += [partial(group_block, diagnosis, group, width, eviction=evicts) for group in diagnosis.groups]
    excluded = diagnosis.excluded
    if excluded is not None:
        blocks.append(lambda _: excluded_block(excluded, width))
    return blocks


def _fit_blocks(blocks: list[_Block], room: int, diagnosis: Diagnosis, width: int, *, most: Level) -> list[StyledLine]:
    """Return as many blocks as fit, each in as much detail as fits: first the nearest in brief and all headlines, then
    facts, in order."""
    for shown in range(min(len(blocks), _MOST_GROUPS), 0, -1):
        rest = _rest(diagnosis, len(blocks) - shown, width)
        levels = [min(most, Level.BRIEF), *[Level.LINE] * (shown - 1)]
        shown_blocks = [block(level) for block, level in zip(blocks, levels, strict=False)]
        if len(_stack_blocks(shown_blocks, levels)) + len(rest) <= room:
            break
    else:
        return blocks[0](Level.LINE) + _rest(diagnosis, len(blocks) - 1, width) if blocks else []
    for level in (Level.BRIEF, Level.FACTS, Level.FULL):
        for number in range(shown):
            if level > most or levels[number] >= level or levels[number] < level - 1:
                continue
            richer = [*shown_blocks[:number], blocks[number](level), *shown_blocks[number + 1 :]]
            raised = [*levels[:number], level, *levels[number + 1 :]]
            if len(_stack_blocks(richer, raised)) + len(rest) <= room:
                shown_blocks, levels = richer, raised
    return _stack_blocks(shown_blocks, levels) + rest


def _stack_blocks(blocks: list[list[StyledLine]], levels: list[Level]) -> list[StyledLine]:
    """Return the blocks below each other; blank lines separate those that are more than a headline."""
    lines: list[StyledLine] = []
    for number, block in enumerate(blocks):
        if lines and max(levels[number - 1 : number + 1]) > Level.LINE:
            lines.append(BLANK)
        lines += block
    return lines


def _rest(diagnosis: Diagnosis, hidden: int, width: int) -> list[StyledLine]:
    """Return a line about the last `hidden` blocks: the number of their nodes, and the plugins that reject these."""
    if not hidden:
        return []
    excluded = diagnosis.excluded  # the last block
    number = hidden - (excluded is not None)
    groups = diagnosis.groups[-number:] if number else ()
    nodes = sum(group.count for group in groups) + (0 if excluded is None else excluded.count)
    plugins = (*(group.exemplar.blockers[0].plugin for group in groups), *(excluded.plugins if excluded else ()))
    names = list_names(dict.fromkeys(plugins), 4)
    phrase = f"{count(hidden, 'more group')} of {count(nodes, 'node')}: {names}"
    return paragraph(phrase, width, indent=2, style=DIM)


def _steps(explanation: Explanation, width: int) -> list[StyledLine]:
    """Return what kube-scheduler would do on the chosen node before it binds the pod, and what would fail there."""
    points: dict[str, list[str]] = {}
    """Lines to the steps that they cover: for a reader, reserving and binding a volume are one step."""
    for point, status in explanation.cycle.dry_steps:
        headlines = [describe(finding).headline for finding in status.findings]
        if not headlines and not (status.is_success or status.is_skip):
            headlines = [status.message or status.code.text]
        for headline in headlines:
            points.setdefault(f"{status.plugin} · {headline}", []).append(point)
    lines: list[StyledLine] = []
    for phrase, at in points.items():
        first = "  " + ("then" if not lines else "").ljust(10)
        lines += paragraph(f"{' and '.join(at)} {phrase}", width, first=first, indent=14)
    return lines


_SHOWN_LABEL_VALUES = 3


def _label_hint_text(hint: LabelHint) -> str:
    """Return the label that a node selector requires and no node has, and what comes close."""
    if not hint.values:
        close = f"; {hint.nearest} is on {count(hint.nearest_count, 'node')}" if hint.nearest else ""
        return f"no node has a label {hint.key}{close}"
    values = f"={hint.values[0]}" if len(hint.values) == 1 else f" in [{', '.join(hint.values)}]"
    if hint.nearest:
        return f"no node has {hint.key}{values}; {hint.nearest} is on {count(hint.nearest_count, 'node')}"
    values_in_use = ((value or '""', number) for value, number in hint.in_use)
    in_use = list_names([f"{value} ({number:,})" for value, number in values_in_use], _SHOWN_LABEL_VALUES)
    return f"no node has {hint.key}{values}; in use: {in_use}"


def _labels(diagnosis: Diagnosis, width: int) -> list[StyledLine]:
    """Return the labels that are required and that no node has."""
    items = tuple(map(_label_hint_text, diagnosis.hints))
    lines = fact_lines(Fact.of("labels", *items), width, _MOST_LABELS) if items else []
    for hint in diagnosis.hardware:
        lines += fact_lines(Fact.of("hardware", hardware_text(hint)), width, _MOST_LABELS)
    return lines


def footer_lines(explanation: Explanation, width: int, *, about: str = "", more: str = _MORE) -> list[StyledLine]:
    """Return the version, profile, and nodes that the answer is for, and the options and the command that show more."""
    return [text(row, DIM) for row in join_items(_footer(explanation, about, more, width), width)]


def _footer(explanation: Explanation, about: str, more: str, width: int) -> tuple[str, ...]:
    cycle, total = explanation.cycle, explanation.diagnosis.total
    if any(unevaluated.kind is UnevaluatedKind.SCHEDULER for unevaluated in cycle.unevaluated):
        return (count(total, "node"),)
    seen = f"kube-scheduler {cycle.release.version}, profile {cycle.profile.scheduler_name}"
    further = [*([more] if total else []), *([about] if about else [])]
    together = SEPARATOR.join(further)
    taken = cycle.snapshot.source.taken
    when = (f"taken {taken.removesuffix('Z').replace('T', ' ')} UTC",) if taken.endswith("Z") else ()
    note = names_note(_nodes_of(explanation))
    nodes = count(total, "node") + (f" ({note})" if note else "")
    return (f"{seen}, {nodes}", *when, *([together] if further and fits(together, width) else further))


def reason_command(diagnosis: Diagnosis) -> str:
    """Return the command that explains the first cause."""
    if diagnosis.feasible:
        return ""
    return next((f"kschedx reason {finding.reason}" for finding in main_findings(diagnosis)), "")


def _everything(explanation: Explanation, width: int) -> list[StyledLine]:
    cycle, diagnosis = explanation.cycle, explanation.diagnosis
    ranked = rank_nodes(cycle)
    view = explanation_view(explanation)
    head = _head(explanation, view, width, None, wide=True)
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
        _deciders_in(view.deciders, width),
        note_lines(view, width),
    )
