"""The answer of `kschedx why` as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kschedx.explain.causes import CauseGroup, PodAnswer, groups
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.node_groups import NodeGroup
from kschedx.explain.notes import ROUTINE
from kschedx.explain.ranking import ranking
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.status import Code
from kschedx.inquiry.explanation import Explanation
from kschedx.render.blocks import eviction_facts, shown_findings
from kschedx.render.outcome import outcome_sentence, replicas_sentence
from kschedx.render.page.model import (
    SCREEN_WIDTH,
    Candidate,
    Candidates,
    Column,
    Fix,
    Fixes,
    Line,
    Notes,
    Page,
    Scores,
    Section,
    Table,
    Tone,
    Verdicts,
)
from kschedx.render.pending import cause_title, pending_lines, pending_sentence
from kschedx.render.screen import why_lines
from kschedx.render.terminal import SEPARATOR
from kschedx.render.wording import Fact, visible
from kschedx.render.words import describe
from kschedx.snapshot.columns import TableRow

MOST_CANDIDATES = 200
NOT_ASKED = "not asked"
"""A cell of a node that PreFilter left out, or of a plugin that skips this pod."""


def page_headline(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """What becomes of the replicas, where there are several; else of the pod."""
    if explanation.replicas is not None:
        return replicas_sentence(explanation.replicas)
    return outcome_sentence(diagnosis, ranking(explanation.cycle, 2), explanation.holding)


def explanation_page(explanation: Explanation, *, every_node: bool = True) -> Page:
    """Everything that the screens of `why` can show, in one place; without `every_node` only a group's first node has
    its story, which is all that can be read where nothing can be opened."""
    cycle = explanation.cycle
    diagnosis = Diagnosis(cycle)
    facts = [("kube-scheduler", cycle.message)] if cycle.message else []
    facts.append(("release", f"{cycle.release.version}, profile {cycle.profile.scheduler_name}"))
    return Page(
        title=f"{cycle.pod.key} · kschedx why",
        headline=visible(page_headline(explanation, diagnosis)),
        tone=_tone(explanation.overall),
        facts=tuple((label, visible(text)) for label, text in facts),
        screen="\n".join(line.plain.rstrip() for line in why_lines(explanation, width=SCREEN_WIDTH)),
        sections=tuple(_sections(explanation, diagnosis, every_node=every_node)),
    )


def _tone(outcome: Outcome) -> Tone:
    match outcome:
        case Outcome.SCHEDULED:
            return Tone.GOOD
        case Outcome.GATED:
            return Tone.HELD
        case _:
            return Tone.BAD


def _sections(explanation: Explanation, diagnosis: Diagnosis, *, every_node: bool) -> Iterator[Section]:
    fixes = tuple(_fixes(explanation))
    if fixes:
        yield Fixes(fixes=fixes)
    notes = tuple(visible(note.text) for note in explanation.notes if note.id != ROUTINE)
    if notes:
        yield Notes(notes=notes)
    verdicts = _verdicts(diagnosis, every_node=every_node)
    if verdicts is not None:
        yield verdicts
    scores = _scores(explanation.cycle)
    if scores is not None:
        yield scores
    candidates = tuple(_candidates(explanation.cycle))
    if candidates:
        yield Candidates(candidates=candidates)


def _fixes(explanation: Explanation) -> Iterator[Fix]:
    for fix in explanation.fixes:
        applied = [change.to_dict() for change in fix.apply]
        yield Fix(
            title=visible(fix.title),
            certainty=fix.certainty.value,
            nodes=tuple(map(visible, fix.feasible_nodes)),
            changes="\n".join(fix.commands) or msgspec.json.format(msgspec.json.encode(applied), indent=2).decode(),
        )


def _verdicts(diagnosis: Diagnosis, *, every_node: bool) -> Verdicts | None:
    """None where no node was evaluated."""
    cycle = diagnosis.cycle
    if cycle.nodes is None or cycle.filter is None:
        return None
    plugins = cycle.filter.plugins
    codes = (NOT_ASKED, *(code.text for code in Code))
    cell = {code.value: number for number, code in enumerate(Code, start=1)}
    patterns: dict[tuple[int, ...], int] = {}
    stories: dict[tuple[Line, ...], int] = {}
    pattern_of: list[int] = []
    verdict_of: list[int] = []
    story_of: list[int] = []
    columns = [verdicts.codes.tolist() for verdicts in cycle.filter.verdicts]
    told = None if every_node else {group.rows[0] for group in diagnosis.groups}
    for row in cycle.nodes.each():
        pattern = tuple(cell[column[row]] for column in columns)
        pattern_of.append(patterns.setdefault(pattern, len(patterns)))
        verdict_of.append(int(cycle.filter.plugin[row]))
        rejected = cycle.filter.codes[row] != Code.SUCCESS or any(column[row] for column in columns)
        story = tuple(_story(diagnosis, row)) if rejected and (told is None or row in told) else ()
        story_of.append(stories.setdefault(story, len(stories)))
    groups = [_members(group) for group in diagnosis.groups]
    grouped = {row for group in groups for row in group}
    passing = tuple(row for row in cycle.nodes.each() if row not in grouped)
    return Verdicts(
        plugins=plugins,
        nodes=tuple(map(visible, cycle.nodes.names)),
        codes=codes,
        patterns=tuple(patterns),
        pattern_of=tuple(pattern_of),
        verdict_of=tuple(verdict_of),
        stories=tuple(stories),
        story_of=tuple(story_of),
        groups=(*((passing,) if passing else ()), *groups),
    )


def _members(group: NodeGroup) -> tuple[int, ...]:
    return tuple(map(int, group.rows))


def _story(diagnosis: Diagnosis, row: TableRow) -> Iterator[Line]:
    detail = diagnosis.detail(row)
    for blocker in detail.account.blockers:
        for finding in shown_findings(blocker):
            words = describe(finding, detail)
            yield Line(
                plugin=blocker.plugin,
                code=blocker.code.text,
                headline=visible(words.headline),
                facts=tuple(map(_labelled, words.facts)),
            )
    facts = tuple(_labelled(fact) for fact in eviction_facts(detail))
    if facts:
        yield Line(plugin="", code="", headline="", facts=facts)


def _labelled(fact: Fact) -> tuple[str, str]:
    return visible(fact.label), visible(SEPARATOR.join(fact.items))


def _scores(cycle: Cycle) -> Scores | None:
    ranked = ranking(cycle)
    if ranked is None or not ranked.nodes:
        return None
    first = ranked.nodes[0].contributions
    return Scores(
        plugins=tuple(one.plugin for one in first),
        weights=tuple(one.weight for one in first),
        nodes=tuple(visible(node.name) for node in ranked.nodes),
        best=ranked.winners,
        raw=tuple(tuple(one.raw for one in node.contributions) for node in ranked.nodes),
        normalized=tuple(tuple(one.normalized for one in node.contributions) for node in ranked.nodes),
        totals=tuple(node.total for node in ranked.nodes),
    )


def _candidates(cycle: Cycle) -> Iterator[Candidate]:
    result = cycle.post_filter
    if result is None:
        return
    best = frozenset(result.best)
    pods = cycle.snapshot.pods
    ordered = sorted(result.candidates, key=lambda one: one.node not in best)
    for candidate in ordered[:MOST_CANDIDATES]:
        yield Candidate(
            node=visible(cycle.all_nodes.cluster.names[candidate.node]),
            best=candidate.node in best,
            violations=candidate.pdb_violations,
            victims=tuple(
                visible(f"{pods.key(row)} (priority {int(pods.priorities[row])})") for row in candidate.victims
            ),
        )


# The answers about many pods as a page: a table for each cause.


def pending_page(answers: Sequence[PodAnswer], fix_of: Callable[[CauseGroup], str], notes: Sequence[str]) -> Page:
    """As on the screen, the largest group first, with every pod."""
    lines = pending_lines(answers, fix_of, width=SCREEN_WIDTH, wide=True, notes=notes)
    fits = all(answer.outcome is Outcome.SCHEDULED for answer in answers)
    return Page(
        title="kschedx why",
        headline=visible(pending_sentence(answers)),
        tone=Tone.GOOD if fits else Tone.BAD,
        facts=(),
        screen="\n".join(line.plain.rstrip() for line in lines),
        sections=tuple(_cause_tables(answers, fix_of, notes)),
    )


def _cause_tables(
    answers: Sequence[PodAnswer], fix_of: Callable[[CauseGroup], str], notes: Sequence[str]
) -> Iterator[Section]:
    if notes:
        yield Notes(notes=tuple(map(visible, notes)))
    columns = (
        Column(label="pod"),
        Column(label="made by"),
        Column(label="priority", is_number=True),
        Column(label="node"),
        Column(label="all details"),
    )
    for group in groups(answers):
        fix = fix_of(group)
        rows = tuple(map(_row, group.answers))
        title = cause_title(group)
        yield Table(title=visible(f"{title}; fix: {fix}" if fix else title), columns=columns, rows=rows)


def _row(answer: PodAnswer) -> tuple[str, str, int, str, str]:
    nodes = ", ".join(answer.nodes[:4])
    return visible(answer.pod), visible(answer.owner), answer.priority, visible(nodes), visible(answer.command)
