"""The screens of `kschedx why ds/NAME`, which has its nodes by the outcome of a pod there, and `kschedx why
node/NAME`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from kschedx.controllers.kubelet_rejections import overuse_text
from kschedx.controllers.state_causes import causes
from kschedx.controllers.states import Lifecycle, ResizeHeld
from kschedx.controllers.states import headline as state_headline
from kschedx.explain.cycle_notes import untried_minutes, untried_text
from kschedx.explain.hardware import unhealthy_devices, unhealthy_text
from kschedx.explain.node_groups import NodeGroup
from kschedx.findings import Finding, NodeAffinityMismatch
from kschedx.framework.cycle import Outcome
from kschedx.inquiry.daemon_set import DaemonSetAnswer
from kschedx.inquiry.fix import Fix
from kschedx.inquiry.node import NodeAnswer, PendingPodVerdict, ResourceUse
from kschedx.kube.autoscalers import DO_NOT_DISRUPT
from kschedx.render.fixes import UNTRIED, fix_lines, group_fix
from kschedx.render.layout import column_lines, head_lines, headline_lines, note_lines
from kschedx.render.lifecycle import rollout_text, state_tone
from kschedx.render.page.explanation import explanation_sections
from kschedx.render.page.model import SCREEN_WIDTH, Page, page_of
from kschedx.render.screen import explanation_view, footer_lines, reason_command, why_lines
from kschedx.render.terminal import (
    BAD,
    BLANK,
    DIM,
    GOOD,
    SEPARATOR,
    StyledLine,
    fact_block,
    join_items,
    line,
    more,
    paragraph,
    shortens,
    snapshot_nodes,
)
from kschedx.render.view import FixView, ItemList, TableView, Tone, View, ViewItem
from kschedx.snapshot.maintenance import maintenance_of
from kschedx.wording import Fact, amounts, balance, count, list_names
from kschedx.words import describe, headline
from kschedx.words.causes import because, causes_of
from kschedx.words.constraints import fault_text, maintenance_text

_MOST_GROUPS = 6
_FIX_LINES = 9
_FACT_LINES = 2
_MORE = "more: --node NAME, -o wide"
_AS_IF_NEW = "each node is evaluated as if the DaemonSet had no pod there"


def _nodes_of(answer: DaemonSetAnswer) -> Sequence[str]:
    return answer.explanation.cycle.all_nodes.names


_PENDING, _UNABLE, _FITS, _NOT_ELIGIBLE = "pod pending", "pod cannot start", "pod fits", "not eligible"
_DELETED, _DISPUTED, _KEPT = "pod being deleted", "pod undecided", "pod keeps the previous template until it is deleted"
_CONTRARY = "the cluster's own event contradicts that it fits"
_TONES = {Outcome.SCHEDULED: Tone.GOOD, Outcome.UNDECIDED: Tone.OPEN}
_NO_NODES = {
    Outcome.GATED: "its pods are gated",
    Outcome.UNSCHEDULABLE: "its pods stay pending",
    Outcome.UNDECIDED: "kschedx cannot decide about its pods",
    Outcome.ERROR: "kube-scheduler fails with an internal error",
}
"""What happens to all pods, whatever their nodes."""


def daemon_set_view(answer: DaemonSetAnswer) -> View:
    """Return a view with a row for each group of nodes: those where pods stay pending, where they fit, and where the
    controller creates none; or a view of the pod on the answer's node."""
    if answer.node:
        return _node_of_daemon_set_view(answer, answer.node)
    view = explanation_view(answer.explanation)
    rollout = () if answer.rollout is None else (rollout_text(answer.rollout),)
    name, details = f"DaemonSet {answer.name}", (*rollout, *_untried(answer))
    if answer.is_one_answer:
        headline = f"{name}: {_NO_NODES[answer.outcome]}"
        return replace(view, headline=headline, details=(view.headline, *view.details, *details))
    eligible, first = answer.eligible, answer.first_pending
    disputed = None if first or not answer.disputed else explanation_view(answer.answer_on(answer.disputed[0]))
    return View(
        command=view.command,
        subject=f"ds/{answer.name}",
        headline=f"{name} {_nodes_text(answer)}",
        tone=_TONES.get(answer.outcome, Tone.BAD),
        details=details,
        because=causes_of(answer.waits) if eligible else because(answer.diagnosis),
        roots=disputed.roots if disputed else (),
        fixes=tuple(_fix_on(fix, node) for fix, node in answer.fixes_by_node) if eligible else view.fixes,
        no_fix=view.no_fix if not eligible else first.no_fix if first and not answer.fixes_by_node else "",
        event=first.message if first else disputed.event if disputed else "",
        lists=(ItemList(title="Nodes", noun="group", items=tuple(_daemon_set_items(answer))),),
        notes=(
            *(note.text for note in answer.explanation.notes if note.id in _ABOUT_MANIFEST),
            *((_misscheduled_text(answer.misscheduled),) if answer.misscheduled else ()),
            *((_AS_IF_NEW,) if answer.has_pod.difference(answer.kept) else ()),
            *(disputed.notes if disputed else ()),
        ),
    )


def _untried(answer: DaemonSetAnswer) -> Iterator[str]:
    """Yield that pods fit their nodes and bear no trace of kube-scheduler."""
    awaited = (answer.awaited[name] for name in answer.runs if name in answer.awaited)
    minutes = [each for subject in awaited if (each := untried_minutes(subject.snapshot, subject.pod))]
    if minutes:
        yield untried_text(count(len(minutes), "pod"), max(minutes))


_ABOUT_MANIFEST = frozenset({
    "applied-together", "claim-not-made", "foreign-workload", "missing-kind", "not-applied",
    "pod-security", "second-scheduler", "unlikely-amount",
})  # fmt: skip
"""Ids of notes about the manifest and the snapshot. Other notes are about the choice among nodes, which a DaemonSet's
pod does not have."""


def _misscheduled_text(nodes: Sequence[str]) -> str:
    is_one = len(nodes) == 1
    these = "1 node that is not eligible runs" if is_one else f"{len(nodes):,} nodes that are not eligible run"
    return f"{these} a pod ({list_names(nodes, 3)}): the controller deletes {'it' if is_one else 'them'}"


def _nodes_text(answer: DaemonSetAnswer) -> str:
    """Return `fits 2 of 3 eligible nodes; 1 pod stays pending`."""
    total, eligible = len(answer.explanation.cycle.all_nodes), answer.eligible
    if not eligible:
        return f"selects none of {total:,} nodes" if total > 1 else "does not select the only node"
    waiting, aside = sum(group.count for group in answer.waits), total - eligible
    share = "" if len(answer.runs) == eligible else f"{len(answer.runs):,} of "
    parts = [f"fits {share}{count(eligible, 'eligible node')}"] if answer.runs or not answer.kept else []
    parts += [f"keeps {count(len(answer.kept), 'pod')} of the previous template"] if answer.kept else []
    parts += [f"{count(waiting, 'pod')} {'stays' if waiting == 1 else 'stay'} pending"] if waiting else []
    parts += [f"{count(len(answer.disputed), 'pod')} undecided"] if answer.disputed else []
    unable = len(answer.cannot_start)
    parts += [f"{count(unable, 'pod')} cannot start"] if unable else []
    blocked = len(answer.blocked_deletions)
    parts += [f"{count(blocked, 'pod')} {'is' if blocked == 1 else 'are'} being deleted"] if blocked else []
    parts += [f"the API server refuses {count(answer.refused, 'pod')}"] if answer.refused else []
    parts += [f"{count(aside, 'node')} {'is' if aside == 1 else 'are'} not eligible"] if aside else []
    parts += ["its rollout stalls"] if answer.rollout is not None and answer.rollout.stalls else []
    return "; ".join(parts)


def _daemon_set_items(answer: DaemonSetAnswer) -> Iterator[ViewItem]:
    if answer.refused:
        title = f"{count(answer.refused, 'node')}: the API server refuses the pod, which node depends on the order"
        refusal = (Fact.of("refused", answer.refusal),)
        yield ViewItem(title=title, tone=Tone.BAD, kind="refused", own=refusal)
    for group in answer.waits:
        yield _group_item(answer, group, _PENDING, Tone.BAD)
    for why, nodes in answer.unable.items():
        title = f"{count(len(nodes), 'node')}: {_UNABLE}, {why}"
        yield ViewItem(title=title, tone=Tone.BAD, kind=_UNABLE, members=tuple(nodes))
    for why, nodes in answer.by_blocker.items():
        title = f"{count(len(nodes), 'node')}: {_DELETED}, {why}"
        yield ViewItem(title=title, tone=Tone.BAD, kind=_DELETED, members=tuple(nodes))
    if answer.disputed:
        title = f"{count(len(answer.disputed), 'node')}: {_DISPUTED}, {_CONTRARY}"
        yield ViewItem(title=title, tone=Tone.OPEN, kind=_DISPUTED, members=answer.disputed)
    if answer.runs:
        title = f"{count(len(answer.runs), 'node')}: {_FITS}"
        yield ViewItem(title=title, tone=Tone.GOOD, kind=_FITS, members=answer.runs)
    if answer.kept:
        title = f"{count(len(answer.kept), 'node')}: {_KEPT}"
        yield ViewItem(title=title, kind=_KEPT, members=answer.kept)
    for group in answer.left_out:
        yield _group_item(answer, group, _NOT_ELIGIBLE, Tone.PLAIN)


def _group_item(answer: DaemonSetAnswer, group: NodeGroup, kind: str, tone: Tone) -> ViewItem:
    node, findings = answer.names(group)[0], group.exemplar.findings
    detail = answer.diagnosis.detail(group.rows[0])
    facts = tuple(fact for finding in findings for fact in describe(finding, detail).facts)
    is_selector = kind == _NOT_ELIGIBLE and any(isinstance(finding, NodeAffinityMismatch) for finding in findings)
    own: tuple[Fact, ...] = facts if is_selector or not answer.eligible else ()
    if kind == _PENDING and (after := answer.answer_on(node).cycle.post_filter) is not None and after.candidates:
        own = (Fact.of("note", f"preemption makes room on {node}"),)
    return ViewItem(
        title=f"{count(group.count, 'node')}: {kind}, {_headlines(findings)}",
        tone=tone,
        kind=kind,
        facts=() if own == facts else facts,
        own=own,
        members=answer.names(group),
    )


def _fix_on(fix: Fix, node: str) -> FixView:
    tried = "not tried" if fix.certainty == UNTRIED else f"tried on {node}"
    seen = "" if node in fix.title and fix.certainty != UNTRIED else tried
    return replace(group_fix(fix, for_one=False), seen=seen, changes=())


def _headlines(findings: Iterable[Finding]) -> str:
    return SEPARATOR.join(dict.fromkeys(map(headline, findings)))


_SHOWN_MEMBERS = 2


_STYLES = {Tone.GOOD: GOOD, Tone.BAD: BAD}


def _item_lines(item: ViewItem, width: int, *, wide: bool = False) -> list[StyledLine]:
    """Return a row with its members and fixes; `wide` with its facts, and with the commands of its fixes."""
    lines = paragraph(item.title, width, first=item.tone.mark or "· ", style=_STYLES.get(item.tone, ""))
    if item.members:
        most = len(item.members) if wide or len(item.members) <= _SHOWN_MEMBERS + 1 else _SHOWN_MEMBERS
        lines += paragraph(list_names(item.members, most), width, first="  ", style=DIM)
    lines += fact_block((*(item.facts if wide else ()), *item.own), width)
    return [*lines, *fix_lines(item.fixes if wide else tuple(fix.brief for fix in item.fixes), item.no_fix, width)]


@shortens(_nodes_of)
def daemon_set_lines(answer: DaemonSetAnswer, *, width: int, wide: bool = False) -> list[StyledLine]:
    view, about = daemon_set_view(answer), _reason_command(answer)
    if answer.node:
        lines = head_lines(view, width, _FIX_LINES)
        return [*lines, BLANK, *why_lines(answer.explanation, width=width, nodes=(answer.node,), wide=wide)]
    lines = head_lines(view, width, None if wide else _FIX_LINES, about=about)
    is_said = not about or any(about in row.plain for row in lines)
    footer = footer_lines(answer.explanation, width, about="" if is_said else about, more=_MORE)
    shown = view.items if wide else _first_groups(view.items)
    for number, item in enumerate(shown):
        lines += [BLANK, *_item_lines(item, width, wide=wide)]
        if not number and not wide and item.kind == _PENDING:
            lines += fact_block(item.facts, width, _FACT_LINES)
    hidden = len(view.items) - len(shown)
    if hidden:
        lines += [BLANK, line((f"{count(hidden, 'more group')} of nodes: -o wide shows all", DIM))]
    notes = note_lines(view, width)
    return [*lines, *([BLANK, *notes] if notes else []), BLANK, *footer]


def _reason_command(answer: DaemonSetAnswer) -> str:
    """Return the command that explains the first cause of pods that stay pending."""
    first = answer.first_pending
    return "" if first is None else reason_command(first.diagnosis)


def _first_groups(items: Sequence[ViewItem]) -> list[ViewItem]:
    """Return the largest groups of each kind."""
    kinds = dict.fromkeys(item.kind for item in items)
    return [item for kind in kinds for item in [item for item in items if item.kind == kind][:_MOST_GROUPS]]


def daemon_set_page(answer: DaemonSetAnswer) -> Page:
    lines = daemon_set_lines(answer, width=SCREEN_WIDTH)
    sections = explanation_sections(answer.answer_on(answer.node), every_node=True) if answer.node else ()
    return page_of(daemon_set_view(answer), lines, sections, answer.explanation.cycle.snapshot)


def _node_of_daemon_set_view(answer: DaemonSetAnswer, node: str) -> View:
    """Return a view of the pod of a DaemonSet on one node: not created, pending, or assigned."""
    explanation = answer.answer_on(node)
    groups = (*answer.left_out, *answer.waits, *answer.diagnosis.groups)
    group = next((node_group for node_group in groups if node in answer.names(node_group)), None)
    text = _headlines(group.exemplar.findings) if group else ""
    outcome = f"its pod stays pending on {node}: {text}"
    if explanation.outcome is Outcome.SCHEDULED:
        why = answer.cannot_start.get(node, "")
        outcome = f"its pod fits {node}" + (f", but cannot start there: {why}" if why else "")
        outcome = f"its pod for {node} is undecided: {_CONTRARY}" if node in answer.disputed else outcome
    elif group in answer.left_out:
        outcome = f"its controller creates no pod for {node}: {text}"
    if node in answer.blocked_deletions:
        outcome = f"its pod on {node} is being deleted"
    then: tuple[str, ...] = ()
    if node in answer.kept:
        then, outcome = (f"once it is gone, {outcome}",), f"its pod on {node} keeps the previous template"
    view = explanation_view(explanation)
    return replace(
        view,
        subject=f"ds/{answer.name}",
        headline=f"DaemonSet {answer.name}: {outcome}",
        tone=_TONES.get(answer.outcome, Tone.BAD),
        details=then,
        event="" if group in answer.left_out else view.event,
    )


_SHOWN_HOLDERS = 4
_SHOWN_RESULTS = 6
_SHOWN_BUDGETS = 2


def node_view(answer: NodeAnswer) -> View:
    """Return a view of a node with a row for each result of pending pods; those that fit come first."""
    verdicts = answer.verdicts
    fitting = [verdict for verdict in verdicts if verdict.fits]
    waiting = count(len(verdicts), "pending pod")
    would = f"fits {len(fitting):,} of {waiting}" if verdicts else "no pod is pending"
    fault = fault_text(answer.node, answer.snapshot.taken)
    lead = f"{fault}; " if fault else ""
    still = [state for state in answer.states if not isinstance(state, ResizeHeld)]
    stuck = f"{len(still):,} not running, " if still else ""
    results: dict[tuple[Tone, str], list[str]] = {}
    for verdict in verdicts:
        priority = f" (priority {verdict.priority:,})" if verdict.priority else ""
        results.setdefault(_result(verdict), []).append(f"{verdict.pod}{priority}")
    states = (
        ViewItem(title=text, tone=tone, kind="not running", values=(1,)) for tone, text in map(_state, answer.states)
    )
    largest_first = sorted(results.items(), key=lambda entry: (entry[0][0] is not Tone.GOOD, -len(entry[1])))
    rows = [(offer.resource, *_sums(offer)) for offer in answer.offers]
    columns = (("resource", False), ("allocatable", True), ("requested", True), ("free", True))
    return View(
        command="kschedx why",
        subject=f"node/{answer.name}",
        headline=f"node {answer.name}: {lead}{answer.pods:,} of {answer.most_pods:,} pods, {stuck}{would}",
        tone=Tone.GOOD if (fitting or not verdicts) and not fault else Tone.BAD,
        details=(SEPARATOR.join(keeps),) if (keeps := [*_keeps_out(answer)]) else (),
        facts=tuple(_holders(offer) for offer in answer.offers if offer.holders),
        fixes=tuple(FixView(title=fix.title, commands=fix.commands) for fix in answer.fixes),
        lists=(
            ItemList(
                title="Pods",
                noun="result",
                columns=(("pods", True),),
                items=(*states, *(_result_item(tone, text, names) for (tone, text), names in largest_first)),
            ),
        ),
        tables=(TableView(title="Resources", columns=columns, rows=tuple(rows)),),
        notes=(_EACH_ALONE,) if verdicts else (),
    )


_EACH_ALONE = "each pod is evaluated alone"
_UNFIT = "does not fit: "
_KINDS = {Tone.GOOD: "fit", Tone.BAD: "do not fit", Tone.OPEN: "undecided"}


def _result_item(tone: Tone, text: str, names: Sequence[str]) -> ViewItem:
    kind = _KINDS[tone]
    if len(names) == 1:
        return ViewItem(title=f"{names[0]} {text}", tone=tone, kind=kind, values=(1,))
    title = f"{len(names):,} pods " + ("fit" if tone is Tone.GOOD else f"{kind}: {text.removeprefix(_UNFIT)}")
    return ViewItem(title=title, tone=tone, kind=kind, values=(len(names),), members=tuple(names))


def _result(verdict: PendingPodVerdict) -> tuple[Tone, str]:
    if verdict.fits:
        return Tone.GOOD, "fits"
    if verdict.undecided:
        return Tone.OPEN, verdict.undecided
    if verdict.standing:
        return Tone.BAD, verdict.standing
    why = SEPARATOR.join(map(headline, verdict.findings)) or ", ".join(verdict.plugins)
    return Tone.BAD, f"{_UNFIT}{'meant for other nodes' if verdict.is_excluded else why}"


@shortens(snapshot_nodes)
def node_lines(answer: NodeAnswer, *, width: int, wide: bool = False) -> list[StyledLine]:
    """Return the node's allocatable resources, the pods that use them, and which pending pods would fit."""
    view = node_view(answer)
    lines = [*headline_lines(view, width), *fix_lines(view.fixes, "", width)]
    [resources] = view.tables
    lines += [BLANK, *column_lines(resources.columns, resources.rows, width)]
    for fact in view.facts:
        label, most = f"  {fact.label}  ", len(fact.items) if wide else _SHOWN_HOLDERS
        rest = (f"{len(fact.items) - most:,} more",) if len(fact.items) > most else ()
        rows = join_items((*fact.items[:most], *rest), width - len(label))
        lines += [line((f"{'' if number else label:{len(label)}}{row}", DIM)) for number, row in enumerate(rows)]
    lines += [BLANK] if view.items else []
    shown = view.items if wide else view.items[:_SHOWN_RESULTS]
    for item in shown:
        lines += _item_lines(item, width, wide=wide)
    lines += more(len(view.items) - len(shown), "result")
    for note in view.notes:
        lines += [BLANK, *paragraph(note, width, style=DIM)]
    return lines


def _state(state: Lifecycle) -> tuple[Tone, str]:
    """Return the state of a pod on the node that is not simply running, with its first cause."""
    return state_tone(state), SEPARATOR.join((state_headline(state), *islice(causes(state), 1)))


def _keeps_out(answer: NodeAnswer) -> Iterator[str]:
    """Yield what rejects pods regardless of their requests."""
    spec = answer.node.spec
    if deleted := answer.node.metadata.deletion_timestamp:
        yield f"being deleted since {deleted}"
    if spec.unschedulable:
        yield f"cordoned{maintenance_text(maintenance_of(answer.snapshot, answer.node))}"
    for name, status in islice(answer.blocking_budgets.items(), _SHOWN_BUDGETS):
        yield f"PDB {name} allows no eviction: it {status.text}"
    if answer.guarded_pods:
        yield f"Karpenter does not evict {list_names(answer.guarded_pods, _SHOWN_BUDGETS)} ({DO_NOT_DISRUPT})"
    if answer.evicted_pods:
        last, *others = answer.evicted_pods
        why = overuse_text(last.status.message)
        earlier = f" and {count(len(others), 'earlier pod')}" if others else ""
        yield f"the kubelet evicted {last.key}{earlier}{why and f': {why}'}"
    for resource in answer.node.status.capacity:
        if (devices := unhealthy_devices(answer.node, resource)) is not None:
            yield unhealthy_text(resource, *devices)
    if spec.taints:
        yield f"taints {', '.join(map(str, spec.taints))}"
    if answer.is_unused and not answer.verdicts and not fault_text(answer.node, answer.snapshot.taken):
        yield "kube-scheduler moves no running pods here"


def _sums(offer: ResourceUse) -> tuple[str, str, str]:
    """Return what is allocatable, requested, and free, in one unit so that the difference is exact."""
    if offer.free < 0:
        allocatable, requested, lacking = amounts(offer.resource, (offer.allocatable, offer.requested, -offer.free))
        return allocatable, requested, f"-{lacking}"
    sums = balance(offer.resource, requested=0, allocatable=offer.allocatable, used=offer.requested)
    return sums.allocatable, sums.used, sums.free


def _holders(offer: ResourceUse) -> Fact:
    """Return the pods that request most of a resource."""
    names = []
    sums = balance(offer.resource, requested=0, allocatable=offer.allocatable, used=offer.requested)
    texts = sums.in_same_unit(offer.resource, tuple(holder.amount for holder in offer.holders))
    for holder, text in zip(offer.holders, texts, strict=True):
        priority = f" (priority {holder.priority:,})" if holder.priority else ""
        names.append(f"{text} {holder.pod}{priority}")
    return Fact.of(f"{offer.resource} used by", *names)
