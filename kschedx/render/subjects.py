"""The screens of `kschedx why ds/NAME`, which has its nodes by the outcome of a pod there, and `kschedx why
node/NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.text import Text

from kschedx.explain.node_groups import NodeGroup
from kschedx.explain.notes import ROUTINE
from kschedx.findings import Maintenance
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.daemon_set import DaemonSetAnswer
from kschedx.inquiry.node import NodeAnswer, ResourceUse, Verdict
from kschedx.render.fixes import fix_lines, fixes_block, node_fix
from kschedx.render.lifecycle import causes, state_tone
from kschedx.render.page.model import SCREEN_WIDTH, Column, Page, Table, page_of
from kschedx.render.screen import why_lines
from kschedx.render.simulation import rollout_text
from kschedx.render.states import Lifecycle
from kschedx.render.states import headline as state_headline
from kschedx.render.terminal import (
    BAD,
    BLANK,
    DIM,
    GOOD,
    SEPARATOR,
    columns,
    fact_lines,
    joined,
    labelled_all,
    line,
    more,
    paragraph,
    shortens,
    title_lines,
)
from kschedx.render.view import Item, Tone, View
from kschedx.render.wording import Fact, amount, amounts, count, listed, visible
from kschedx.render.words import describe, headline
from kschedx.render.words.causes import because
from kschedx.render.words.constraints import maintenance_text, unwell_node_text
from kschedx.snapshot.snapshot import Snapshot

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
        if meant:
            lines += _group_fix(answer, group, width)
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


def _group_fix(answer: DaemonSetAnswer, group: NodeGroup, width: int) -> list[Text]:
    node = answer.names(group)[0]
    lines = []
    if group not in answer.left_out:
        after = answer.on(node).cycle.post_filter
        if after is not None and after.candidates:
            lines += paragraph(f"preemption makes room on {node}", width, first="  ", style=DIM)
    if (fix := answer.fix_of(group)) is not None:
        lines += paragraph(f"{fix.title} · on {node}", width, first="  fix       ")
    return lines


def _stopped(answer: DaemonSetAnswer, width: int) -> list[Text]:
    lines: list[Text] = []
    for stop in answer.diagnosis.stops:
        for finding in stop.status.findings:
            lines += [BLANK, *paragraph(headline(finding), width, first="✗ ", style=BAD)]
    return [*lines, BLANK, *paragraph(answer.explanation.message, width, style=DIM)]


SHOWN_HOLDERS = 4
SHOWN_RESULTS = 6
SHOWN_MEMBERS = 2


def _node_names(answer: NodeAnswer) -> Sequence[str]:
    return answer.node_names


def node_view(answer: NodeAnswer, verdicts: Sequence[Verdict]) -> View:
    """Return a view of a node with a row for each result of pending pods; those that fit come first."""
    fitting = [verdict for verdict in verdicts if verdict.fits]
    waiting = count(len(verdicts), "pending pod")
    would = f"fits {len(fitting):,} of {waiting}" if verdicts else "no pod is pending"
    unwell = unwell_node_text(answer.node)
    stuck = f"{len(answer.states):,} not running, " if answer.states else ""
    results: dict[tuple[Tone, str], list[str]] = {}
    for verdict in verdicts:
        priority = f" (priority {verdict.priority:,})" if verdict.priority else ""
        results.setdefault(_result(verdict), []).append(f"{verdict.pod}{priority}")
    states = (Item(title=text, tone=tone, kind="not running", values=(1,)) for tone, text in map(_state, answer.states))
    largest_first = sorted(results.items(), key=lambda entry: (entry[0][0] is not Tone.GOOD, -len(entry[1])))
    return View(
        command="kschedx why",
        subject=f"node/{answer.name}",
        headline=f"node {answer.name}: {unwell}{answer.pods:,} of {answer.most_pods:,} pods, {stuck}{would}",
        tone=Tone.GOOD if (fitting or not verdicts) and not unwell else Tone.BAD,
        details=(SEPARATOR.join(keeps),) if (keeps := [*_keeps_out(answer)]) else (),
        facts=tuple(map(_holders, filter(_is_used, answer.offers))),
        fixes=tuple(map(node_fix, answer.fixes)),
        items=(*states, *(_result_item(tone, text, names) for (tone, text), names in largest_first)),
        list_title="Pods",
        list_noun="result",
        list_columns=(("pods", True),),
        notes=(EACH_ALONE,) if verdicts else (),
    )


EACH_ALONE = "each pod is evaluated alone"
_KINDS = {Tone.GOOD: "fit", Tone.BAD: "do not fit", Tone.OPEN: "undecided"}


def _result_item(tone: Tone, text: str, names: Sequence[str]) -> Item:
    kind = _KINDS[tone]
    if len(names) == 1:
        return Item(title=f"{names[0]} {text}", tone=tone, kind=kind, values=(1,))
    title = f"{len(names):,} pods " + ("fit" if tone is Tone.GOOD else f"{kind}: {text}")
    return Item(title=title, tone=tone, kind=kind, values=(len(names),), members=tuple(names))


def _result(verdict: Verdict) -> tuple[Tone, str]:
    if verdict.fits:
        return Tone.GOOD, "fits"
    if verdict.undecided:
        return Tone.OPEN, verdict.undecided
    return Tone.BAD, verdict.standing or " · ".join(map(headline, verdict.findings)) or ", ".join(verdict.plugins)


@shortens(_node_names)
def node_lines(answer: NodeAnswer, verdicts: Sequence[Verdict], *, width: int, wide: bool = False) -> list[Text]:
    """Return the node's allocatable resources, the pods that use them, and which pending pods would fit."""
    view = node_view(answer, verdicts)
    lines = title_lines(view.headline, view.tone, width)
    for phrase in view.details:
        lines += paragraph(phrase, width, first="  ")
    lines += fix_lines(view.fixes, "", width)
    lines += [BLANK, *columns(_offers(answer.offers), right=frozenset({1, 2, 3}), indent=2, header=True)]
    for fact in view.facts:
        label, most = f"  {fact.label}  ", len(fact.items) if wide else SHOWN_HOLDERS
        rest = (f"{len(fact.items) - most:,} more",) if len(fact.items) > most else ()
        rows = joined((*fact.items[:most], *rest), width - len(label))
        lines += [line((f"{'' if number else label:{len(label)}}{row}", DIM)) for number, row in enumerate(rows)]
    lines += [BLANK] if view.items else []
    shown = view.items if wide else view.items[:SHOWN_RESULTS]
    for item in shown:
        style = {Tone.GOOD: GOOD, Tone.BAD: BAD}.get(item.tone, "")
        lines += paragraph(item.title, width, first=item.tone.mark, style=style)
        if item.members:
            lines += paragraph(
                listed(item.members, len(item.members) if wide else SHOWN_MEMBERS), width, first="  ", style=DIM
            )
    lines += more(len(view.items) - len(shown), "result")
    for note in view.notes:
        lines += [BLANK, *paragraph(note, width, style=DIM)]
    return lines


def node_page(answer: NodeAnswer, verdicts: Sequence[Verdict], snapshot: Snapshot) -> Page:
    heading, *rows = _offers(answer.offers)
    labels = tuple(Column(label=label, is_number=number > 0) for number, label in enumerate(heading))
    table = Table(title="Resources", columns=labels, rows=tuple(tuple(map(visible, row)) for row in rows))
    lines = node_lines(answer, verdicts, width=SCREEN_WIDTH)
    return page_of(node_view(answer, verdicts), lines, [table], snapshot)


def _state(state: Lifecycle) -> tuple[Tone, str]:
    """Return the state of a pod on the node that is not simply running, with its first cause."""
    return state_tone(state), SEPARATOR.join((state_headline(state), *islice(causes(state), 1)))


def _keeps_out(answer: NodeAnswer) -> Iterator[str]:
    """Yield what rejects pods regardless of their requests."""
    metadata, spec = answer.node.metadata, answer.node.spec
    if metadata.deletion_timestamp:
        yield f"being deleted since {metadata.deletion_timestamp}; what keeps it: kschedx drain {answer.name}"
    if spec.unschedulable:
        yield f"cordoned{maintenance_text(Maintenance.of(metadata.labels, metadata.annotations))}"
    if spec.taints:
        taints = (f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in spec.taints)
        yield f"taints {', '.join(taints)}"


def _offers(offers: Sequence[ResourceUse]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("resource", "allocatable", "requested", "free")]
    for offer in offers:
        shown = amounts(offer.resource, (offer.allocatable, offer.requested, abs(offer.free)))
        rows.append((offer.resource, shown[0], shown[1], ("-" if offer.free < 0 else "") + shown[2]))
    return rows


def _is_used(offer: ResourceUse) -> bool:
    return bool(offer.holders)


def _holders(offer: ResourceUse) -> Fact:
    """Return the pods that request most of a resource."""
    names = []
    for holder in offer.holders:
        priority = f" (priority {holder.priority:,})" if holder.priority else ""
        names.append(f"{amount(offer.resource, holder.amount)} {holder.pod}{priority}")
    return Fact(label=f"{offer.resource} used by", items=tuple(names))
