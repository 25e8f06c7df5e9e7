"""The screens of `kschedx why ds/NAME`, which has its nodes by the outcome of a pod there, and `kschedx why
node/NAME`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kschedx.explain.node_groups import NodeGroup
from kschedx.explain.notes import ROUTINE
from kschedx.findings import Maintenance, UntoleratedTaint
from kschedx.fixes.proposal import Group
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.daemon_set import DaemonSetAnswer
from kschedx.inquiry.node import NodeAnswer, ResourceUse, Verdict
from kschedx.render.fixes import fixes_block
from kschedx.render.lifecycle import causes, state_tone
from kschedx.render.screen import why_lines
from kschedx.render.simulation import rollout_text
from kschedx.render.states import headline as state_headline
from kschedx.render.terminal import (
    BAD,
    BLANK,
    DIM,
    GOOD,
    columns,
    fact_lines,
    labelled_all,
    line,
    more,
    paragraph,
    shortens,
    title_lines,
)
from kschedx.render.view import Tone
from kschedx.render.wording import amount, amounts, count, listed
from kschedx.render.words import describe, headline
from kschedx.render.words.causes import because
from kschedx.render.words.constraints import maintenance_text, unwell_node_text

SHOWN_NODES = 3
MOST_GROUPS = 6
_FIX_LINES = 6


def _nodes_of(answer: DaemonSetAnswer) -> Sequence[str]:
    return answer.explanation.cycle.all_nodes.names


@shortens(_nodes_of)
def daemon_set_lines(answer: DaemonSetAnswer, *, width: int, wide: bool = False) -> list[Text]:
    waiting = sum(group.count for group in answer.waits)
    aside = sum(group.count for group in answer.left_out)
    total = len(answer.explanation.cycle.all_nodes)
    aside += total - waiting - aside - len(answer.runs)
    good = answer.outcome is Outcome.SCHEDULED
    meant = total - aside
    share = "" if len(answer.runs) == meant else f"{len(answer.runs):,} of "
    if meant:
        parts = [f"fits {share}{count(meant, 'eligible node')}"]
        parts += [f"{count(waiting, 'pod')} {'stays' if waiting == 1 else 'stay'} pending"] if waiting else []
        parts += [f"the API server refuses {count(answer.refused, 'pod')}"] if answer.refused else []
        parts += [f"{count(aside, 'node')} {'is' if aside == 1 else 'are'} not eligible"] if aside else []
        parts += ["its rollout stalls"] if answer.rollout is not None and answer.rollout.stalls else []
    else:
        parts = [f"selects none of {total:,} nodes" if total > 1 else "does not select the only node"]
    lines = title_lines(f"DaemonSet {answer.name} {'; '.join(parts)}", Tone.GOOD if good else Tone.BAD, width)
    if answer.rollout is not None:
        lines += paragraph(rollout_text(answer.rollout), width, first="  ", indent=4)
    if answer.diagnosis.stops:
        return [*lines, *_stopped(answer, width)]
    if not meant:
        lines += labelled_all("because", because(answer.diagnosis), width)
        lines += fixes_block(answer.explanation, width, _FIX_LINES)
    if answer.refused:
        text = f"{count(answer.refused, 'node')}: the API server refuses the pod, which node depends on the order"
        lines += [BLANK, *paragraph(text, width, first="✗ ", style=BAD)]
        lines += paragraph(answer.refusal, width, first="  refused   ")
    for group in answer.waits if wide else answer.waits[:MOST_GROUPS]:
        lines += [BLANK, *_group(answer, group, "✗ ", BAD, width, wide=wide), *_group_fix(answer, group, width)]
    if answer.runs:
        shown = len(answer.runs) if wide else SHOWN_NODES
        lines += [BLANK, *paragraph(f"{count(len(answer.runs), 'node')}: pod fits", width, first="✓ ", style=GOOD)]
        lines += paragraph(listed(answer.runs, shown), width, first="  ", style=DIM)
    for group in answer.left_out if wide else answer.left_out[:MOST_GROUPS]:
        lines += [BLANK, *_group(answer, group, "· ", "", width, wide=wide)]
        if meant and any(isinstance(finding, UntoleratedTaint) for finding in group.exemplar.findings):
            lines += _group_fix(answer, group, width, is_left_out=True)
        if wide or not meant:
            facts = (fact for finding in group.exemplar.findings for fact in describe(finding).facts)
            lines += [fact_line for fact in facts for fact_line in fact_lines(fact, width)]
    hidden = max(len(answer.waits) - MOST_GROUPS, 0) + max(len(answer.left_out) - MOST_GROUPS, 0)
    if hidden and not wide:
        lines += [BLANK, line((f"{count(hidden, 'more group')} of nodes: -o wide shows all", DIM))]
    notes = [note.text for note in answer.explanation.notes if note.id != ROUTINE and note.id in _TOLD]
    for note in notes:
        lines += [BLANK, *paragraph(note, width, first="  note      ")]
    about = "pods that already run are not counted · one node: --node NAME"
    return [*lines, BLANK, *paragraph(about, width, style=DIM)]


def daemon_set_node_lines(answer: DaemonSetAnswer, node: str, *, width: int, wide: bool = False) -> list[Text]:
    """Return the result for the pod of a DaemonSet on one node: not created, pending, or assigned."""
    explanation = answer.on(node)
    group = next(
        (node_group for node_group in (*answer.left_out, *answer.waits) if node in answer.names(node_group)), None
    )
    text = " · ".join(dict.fromkeys(headline(finding) for finding in group.exemplar.findings)) if group else ""
    said = (
        f"its pod fits {node}"
        if explanation.outcome is Outcome.SCHEDULED
        else f"its pod stays pending on {node}: {text}"
    )
    if group in answer.left_out:
        said = f"its controller creates no pod for {node}: {text}"
    tone = Tone.GOOD if explanation.outcome is Outcome.SCHEDULED else Tone.BAD
    lines = title_lines(f"DaemonSet {answer.name}: {said}", tone, width)
    lines += fixes_block(explanation, width, _FIX_LINES)
    return [*lines, BLANK, *why_lines(answer.explanation, width=width, nodes=(node,), wide=wide)]


_TOLD = frozenset({
    "applied-together", "claim-not-made", "foreign-workload", "missing-kind", "not-applied", "old-api-version",
    "pod-security", "unlikely-amount",
})  # fmt: skip
"""Ids of notes about the manifest and the snapshot. Other notes are about the choice among nodes, which a DaemonSet's
pod does not have."""


def _group(answer: DaemonSetAnswer, group: NodeGroup, mark: str, style: str, width: int, *, wide: bool) -> list[Text]:
    text = " · ".join(dict.fromkeys(headline(finding) for finding in group.exemplar.findings))
    what = "not eligible" if mark == "· " else "pod pending"
    names = answer.names(group)
    lines = paragraph(f"{count(group.count, 'node')}: {what}, {text}", width, first=mark, style=style)
    return lines + paragraph(listed(names, len(names) if wide else SHOWN_NODES), width, first="  ", style=DIM)


def _group_fix(answer: DaemonSetAnswer, group: NodeGroup, width: int, *, is_left_out: bool = False) -> list[Text]:
    """Return the first fix that was tried for the pod of the nearest of these nodes. If the DaemonSet skips the node,
    fixes of the workload come first."""
    node = answer.names(group)[0]
    explanation = answer.on(node)
    fixes = (
        sorted(explanation.fixes, key=lambda fix: fix.group is not Group.WORKLOAD) if is_left_out else explanation.fixes
    )
    lines = []
    after = explanation.cycle.post_filter
    if after is not None and after.candidates:
        lines += paragraph(f"preemption makes room on {node}", width, first="  ", style=DIM)
    if fixes:
        text = f"{fixes[0].title} · on {node}"
        lines += paragraph(text, width, first="  fix       ")
    return lines


def _stopped(answer: DaemonSetAnswer, width: int) -> list[Text]:
    lines: list[Text] = []
    for stop in answer.diagnosis.stops:
        for finding in stop.status.findings:
            lines += [BLANK, *paragraph(headline(finding), width, first="✗ ", style=BAD)]
    return [*lines, BLANK, *paragraph(answer.explanation.message, width, style=DIM)]


SHOWN_HOLDERS = 4
SHOWN_PODS = 8


def node_lines(answer: NodeAnswer, verdicts: Sequence[Verdict], *, width: int, wide: bool = False) -> list[Text]:
    """Return the node's allocatable resources, the pods that use them, and which pending pods would fit."""
    fitting = [verdict for verdict in verdicts if verdict.fits]
    waiting = count(len(verdicts), "pending pod")
    would = f"fits {len(fitting):,} of {waiting}" if verdicts else "no pod is pending"
    unwell = unwell_node_text(answer.node)
    tone = Tone.GOOD if (fitting or not verdicts) and not unwell else Tone.BAD
    stuck = f"{len(answer.states):,} not running, " if answer.states else ""
    phrase = f"node {answer.name}: {unwell}{answer.pods:,} of {answer.most_pods:,} pods, {stuck}{would}"
    lines = title_lines(phrase, tone, width)
    keeps = _keeps_out(answer)
    if keeps:
        lines += paragraph(" · ".join(keeps), width, first="  ")
    lines += [BLANK, *_offers(answer.offers)]
    shown = None if wide else SHOWN_HOLDERS
    for offer in answer.offers:
        if offer.holders:
            names = [_held(offer, index) for index in range(len(offer.holders))]
            text = listed(names, len(names) if shown is None else shown)
            lines += paragraph(text, width, first=f"  {offer.resource} used by  ", style=DIM)
    return [*lines, *_states(answer, width, wide=wide), *_verdicts(verdicts, width, wide=wide)]


def _states(answer: NodeAnswer, width: int, *, wide: bool) -> list[Text]:
    """Return the pods on the node that are not simply running, each with its first cause."""
    shown = answer.states if wide else answer.states[:SHOWN_PODS]
    lines = [BLANK] if shown else []
    for state in shown:
        because = next(causes(state), "")
        phrase = f"{state_headline(state)} · {because}" if because else state_headline(state)
        lines += paragraph(phrase, width, first=state_tone(state).mark)
    return lines + more(len(answer.states) - len(shown), "pod", " not running")


def _keeps_out(answer: NodeAnswer) -> list[str]:
    """Return what rejects pods regardless of their requests."""
    metadata, spec = answer.node.metadata, answer.node.spec
    taints = [f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in spec.taints]
    by = maintenance_text(Maintenance.of(metadata.labels, metadata.annotations))
    return [*([f"cordoned{by}"] if spec.unschedulable else []), *([f"taints {', '.join(taints)}"] if taints else [])]


def _offers(offers: Sequence[ResourceUse]) -> list[Text]:
    rows = [("resource", "allocatable", "requested", "free")]
    for offer in offers:
        shown = amounts(offer.resource, (offer.allocatable, offer.requested, abs(offer.free)))
        rows.append((offer.resource, shown[0], shown[1], ("-" if offer.free < 0 else "") + shown[2]))
    return columns(rows, right=frozenset({1, 2, 3}), indent=2, header=True)


def _held(offer: ResourceUse, index: int) -> str:
    holder = offer.holders[index]
    priority = f" (priority {holder.priority:,})" if holder.priority else ""
    return f"{amount(offer.resource, holder.amount)} {holder.pod}{priority}"


def _verdicts(verdicts: Sequence[Verdict], width: int, *, wide: bool) -> list[Text]:
    if not verdicts:
        return []
    lines = [BLANK]
    shown = verdicts if wide else sorted(verdicts, key=lambda verdict: not verdict.fits)[:SHOWN_PODS]
    for own_verdict in shown:
        priority = f" (priority {own_verdict.priority:,})" if own_verdict.priority else ""
        phrase = (
            own_verdict.undecided
            or own_verdict.standing
            or " · ".join(map(headline, own_verdict.findings))
            or ", ".join(own_verdict.plugins)
        )
        phrase = "fits" if own_verdict.fits else phrase
        mark, style = ("✓ ", GOOD) if own_verdict.fits else ("? ", "") if own_verdict.undecided else ("✗ ", BAD)
        lines += paragraph(f"{own_verdict.pod}{priority} {phrase}", width, first=mark, style=style)
    lines += more(len(verdicts) - len(shown), "pending pod")
    return [*lines, BLANK, *paragraph("each pod is evaluated alone", width, style=DIM)]
