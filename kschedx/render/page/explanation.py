"""The answer of `kschedx why` as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.ranking import rank_nodes
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.names import INSTANCE_TYPE_LABELS, POOL_LABELS, ZONE_LABELS
from kschedx.render.blocks import eviction_facts, shown_findings
from kschedx.render.outcome import outcome_tone, replicas_sentence
from kschedx.render.page.model import (
    SCREEN_WIDTH,
    CandidateRow,
    Candidates,
    Facet,
    Line,
    Page,
    ScoreSection,
    Section,
    VerdictSection,
    page_of,
)
from kschedx.render.scores import node_headline
from kschedx.render.screen import explanation_view, why_lines
from kschedx.render.terminal import SEPARATOR
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.nodes import NodeTable
from kschedx.wording import Fact, visible
from kschedx.words import describe

_MOST_CANDIDATES = 200
_MANY_NODES = 1_000
"""The number of nodes from which on a node's facts have only their first entries, so that the page stays below 3 MB."""
_MOST_ENTRIES = 3
MOST_OF_STORIES = 2_000_000  # characters of all nodes' accounts together
LEFT_OUT = (("more", "kschedx why with --node NAME"),)
"""The facts of a node whose own ones would make the page too large."""
_NOT_EVALUATED = "not evaluated"  # the cell of a node that PreFilter excludes, or of a plugin that skips this pod


def explanation_page(explanation: Explanation, *, nodes: Sequence[str] = (), every_node: bool = False) -> Page:
    """Return the answer about one pod, or about the pod on `nodes`. Without `every_node`, only a group's first node has
    details, which is all that can be read in a format where nothing opens."""
    cycle = explanation.cycle
    view = explanation_view(explanation)
    replicas = explanation.replicas
    if replicas is not None:
        headline, tone = replicas_sentence(replicas, explanation.overall), outcome_tone(explanation.overall)
        view = replace(view, headline=headline, tone=tone, details=(view.headline, *view.details))
    if nodes:
        ranking = rank_nodes(cycle)
        verdicts = [
            node_headline(explanation.diagnosis, ranking, name)
            for name in map(cycle.all_nodes.cluster.known_name, nodes)
        ]
        details = (*(headline for headline, _ in verdicts[1:]), view.headline, *view.details)
        view = replace(view, headline=verdicts[0][0], tone=verdicts[0][1], details=details)
    lines = why_lines(explanation, width=SCREEN_WIDTH, nodes=nodes)
    cited = (("kube-scheduler", f"{cycle.release.version}, profile {cycle.profile.scheduler_name}"),)
    return page_of(view, lines, explanation_sections(explanation, every_node=every_node), cycle.snapshot, cited)


def explanation_sections(explanation: Explanation, *, every_node: bool) -> Iterator[Section]:
    diagnosis = explanation.diagnosis
    verdicts = _verdicts(diagnosis, every_node=every_node)
    if verdicts is not None:
        yield verdicts
    scores = _scores(explanation.cycle)
    if scores is not None:
        yield scores
    candidates = tuple(_candidates(explanation.cycle))
    if candidates:
        yield Candidates(candidates=candidates)


_FACETS = (("zone", ZONE_LABELS), ("pool", POOL_LABELS), ("type", INSTANCE_TYPE_LABELS))
"""Facets, each with the node labels that may have its values. The first label that distinguishes nodes is used."""


def _facets(nodes: NodeTable) -> Iterator[Facet]:
    for label, keys in _FACETS:
        for key in keys:
            column = nodes.label(key)
            codes = column.codes.tolist()
            places = {code: at for at, code in enumerate(dict.fromkeys(codes))}
            values = [column.values[code] or "none" for code in places]
            if len(set(values)) > 1:
                yield Facet(label=label, values=tuple(map(visible, values)), of=tuple(map(places.__getitem__, codes)))
                break


def _verdicts(diagnosis: Diagnosis, *, every_node: bool) -> VerdictSection | None:
    """Return the verdicts; None if no node was evaluated."""
    cycle = diagnosis.cycle
    if cycle.nodes is None or cycle.filter is None:
        return None
    plugins = cycle.filter.plugins
    codes = (_NOT_EVALUATED, *(code.text for code in Code))
    cell = {code.value: number for number, code in enumerate(Code, start=1)}
    patterns: dict[tuple[int, ...], int] = {}
    stories: dict[tuple[Line, ...], int] = {}
    pattern_of: list[int] = []
    verdict_of: list[int] = []
    story_of: list[int] = []
    columns = [verdicts.codes.tolist() for verdicts in cycle.filter.verdicts]
    firsts = {group.rows[0] for group in diagnosis.groups}
    table_rows, room = None if every_node else firsts, MOST_OF_STORIES
    for row in cycle.nodes.each():
        pattern = tuple(cell[column[row]] for column in columns)
        pattern_of.append(patterns.setdefault(pattern, len(patterns)))
        verdict_of.append(int(cycle.filter.plugin[row]))
        rejected = cycle.filter.codes[row] != Code.SUCCESS or any(column[row] for column in columns)
        story: tuple[Line, ...] = ()
        if rejected and (table_rows is None or row in table_rows):
            story = tuple(_story(diagnosis, row))
            if row not in firsts and story not in stories:
                room -= len(msgspec.json.encode(story))
                story = story if room > 0 else tuple(replace(line, facts=LEFT_OUT) for line in story if line.plugin)
        story_of.append(stories.setdefault(story, len(stories)))
    groups = [tuple(map(int, group.rows)) for group in diagnosis.groups]
    grouped = {row for group in groups for row in group}
    passing = tuple(row for row in cycle.nodes.each() if row not in grouped)
    return VerdictSection(
        plugins=plugins,
        nodes=tuple(map(visible, cycle.nodes.names)),
        codes=codes,
        patterns=tuple(patterns),
        pattern_of=tuple(pattern_of),
        verdict_of=tuple(verdict_of),
        stories=tuple(stories),
        story_of=tuple(story_of),
        facets=tuple(_facets(cycle.nodes)),
        groups=(*((passing,) if passing else ()), *groups),
    )


def _story(diagnosis: Diagnosis, row: TableRow) -> Iterator[Line]:
    detail = diagnosis.detail(row)
    most = _MOST_ENTRIES if diagnosis.cycle.all_nodes.cluster.count > _MANY_NODES else None
    for blocker in detail.account.blockers:
        for finding in shown_findings(blocker):
            words = describe(finding, detail)
            yield Line(
                plugin=blocker.plugin,
                code=blocker.code.text,
                headline=visible(words.headline),
                facts=tuple(_labelled_text(fact, most) for fact in words.facts),
            )
    facts = tuple(_labelled_text(fact, most) for fact in eviction_facts(detail))
    if facts:
        yield Line(plugin="", code="", headline="", facts=facts)


def _labelled_text(fact: Fact, most: int | None) -> tuple[str, str]:
    items = fact.items
    if most is not None and len(items) > most + 1:
        items = (*items[:most], f"{len(items) - most:,} others")
    return visible(fact.label), visible(SEPARATOR.join(items))


def _scores(cycle: Cycle) -> ScoreSection | None:
    ranked = rank_nodes(cycle)
    if ranked is None or not ranked.nodes:
        return None
    first = ranked.nodes[0].contributions
    return ScoreSection(
        plugins=tuple(contribution.plugin for contribution in first),
        weights=tuple(contribution.weight for contribution in first),
        nodes=tuple(visible(node.name) for node in ranked.nodes),
        best=ranked.winners,
        raw=tuple(tuple(contribution.raw for contribution in node.contributions) for node in ranked.nodes),
        normalized=tuple(tuple(contribution.normalized for contribution in it.contributions) for it in ranked.nodes),
        totals=tuple(node.total for node in ranked.nodes),
    )


def _candidates(cycle: Cycle) -> Iterator[CandidateRow]:
    result = cycle.post_filter
    if result is None:
        return
    best = frozenset(result.best)
    pods = cycle.snapshot.pods
    ordered = sorted(result.candidates, key=lambda candidate: candidate.node not in best)
    for candidate in ordered[:_MOST_CANDIDATES]:
        yield CandidateRow(
            node=visible(cycle.all_nodes.cluster.names[candidate.node]),
            best=candidate.node in best,
            violations=candidate.pdb_violations,
            victims=tuple(
                visible(f"{pods.key(row)} (priority {int(pods.priorities[row])})") for row in candidate.victims
            ),
        )
