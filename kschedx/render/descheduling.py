"""What the descheduler does: which pods it evicts and why, where they are rescheduled, and which pods are ignored; and
advice on a policy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from kschedx.descheduler.advice import PolicyAdvice, PolicyGoal, PolicyTrial
from kschedx.descheduler.descheduling import Descheduling
from kschedx.descheduler.evictor import EvictionOutcome, RequestedEviction
from kschedx.descheduler.rounds import Chance, Fate, Landing
from kschedx.descheduler.run import DescheduleLoop
from kschedx.descheduler.utilization import Category, Classification, Shares, round_percent
from kschedx.grouping import group_pairs
from kschedx.render.layout import MOST_LINES, column_lines, head_lines, note_lines, table_lines
from kschedx.render.page.model import SCREEN_WIDTH, Page, Usage, page_of
from kschedx.render.terminal import (
    BLANK,
    DIM,
    StyledLine,
    columns,
    labelled_lines,
    line,
    more,
    paragraph,
    shortens,
    snapshot_nodes,
)
from kschedx.render.view import FixView, ItemList, TableView, Tone, View, ViewItem
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import Fact, count, list_names, visible


class _Most(Struct, frozen=True, kw_only=True):
    """How many entries of each type the screen lists; the others are counted."""

    pods: int  # pods of one plugin
    nodes: int
    reasons: int
    plugins: int
    rows: int | None = None  # lines of a fact; None for all


_SIZES = (
    _Most(pods=4, nodes=6, reasons=5, plugins=5),
    _Most(pods=2, nodes=4, reasons=3, plugins=4),
    _Most(pods=1, nodes=3, reasons=2, plugins=3),
    _Most(pods=1, nodes=2, reasons=1, plugins=2),
    _Most(pods=1, nodes=1, reasons=0, plugins=1),
    _Most(pods=1, nodes=1, reasons=0, plugins=1, rows=2),
    _Most(pods=0, nodes=0, reasons=0, plugins=0),
    _Most(pods=0, nodes=0, reasons=0, plugins=0, rows=2),
    _Most(pods=0, nodes=0, reasons=0, plugins=0, rows=1),
)
"""Largest first; the first that fits the screen is used."""
_Reasons: TypeAlias = list[tuple[str, list[str]]]  # most common first, with their pods
_EVERYTHING = _Most(pods=10**9, nodes=10**9, reasons=10**9, plugins=10**9)


def descheduling_lines(descheduling: Descheduling, width: int, *, wide: bool = False) -> list[StyledLine]:
    """The headline and its causes, the classification of nodes, the evictions by plugin, and the ignored pods."""
    return _lines(descheduling, _descheduling_view(descheduling), width, wide=wide)


@shortens(snapshot_nodes)
def _lines(descheduling: Descheduling, view: View, width: int, *, wide: bool = False) -> list[StyledLine]:
    lines, alone = list[StyledLine](), _left_alone(descheduling.loop)
    passed = _passed_over(descheduling.loop, alone)
    kept = f"{count(sum(len(pods) for _, pods in alone), 'pod')} may not be evicted"
    over = f"plugins pass over {count(len({pod for _, pods in passed for pod in pods}), 'pod')}"
    for most in (_EVERYTHING,) if wide else _SIZES:
        lines = _lines_of(descheduling, view, width, most)
        left = sum(len(pods) for _, pods in alone[most.reasons :])
        lines += _reason_lines(kept, alone, left, "pod", width, most)
        lines += _reason_lines(over, passed, len(passed) - most.reasons, "reason", width, most)
        if len(lines) <= MOST_LINES:
            break
    return lines


def _lines_of(descheduling: Descheduling, view: View, width: int, most: _Most) -> list[StyledLine]:
    lines = [*head_lines(view, width, rows=most.rows), *note_lines(view, width)]
    for classification in descheduling.loop.classifications:
        if classification.nodes and most.nodes:
            lines += [BLANK, *_classification_lines(classification, descheduling, width, most)]
    lines += _eviction_lines(descheduling, width, most)
    return lines + _refusal_lines(descheduling.loop, width, most)


# --- the view


def _descheduling_view(descheduling: Descheduling) -> View:
    """Return a view with a row for each eviction that was carried out, in order."""
    loop = descheduling.loop
    fates = Counter(landing.fate for landing in (descheduling.landings[0] if descheduling.landings else ()))
    because = () if descheduling.error else _because(loop)
    if descheduling.error:
        headline, tone = f"the descheduler refuses the policy: {descheduling.error}", Tone.BAD
    elif not loop.evicted:
        headline, tone = "the descheduler evicts no pod", Tone.GOOD
    else:
        nodes = len({eviction.pod.node for eviction in loop.evicted})
        fate = ", ".join(count(fates[fate], *_FATES[fate][:2]) for fate in Fate if fates.get(fate))
        headline = f"the descheduler evicts {count(len(loop.evicted), 'pod')} from {count(nodes, 'node')}"
        headline += f": {fate}" if fate else ""
        is_bad = bool(fates[Fate.PENDING] or fates[Fate.UNDECIDED] or descheduling.repeats)
        tone = Tone.BAD if is_bad else Tone.OPEN if descheduling.is_undecided else Tone.GOOD
    return View(
        command="kschedx deschedule",
        headline=headline,
        tone=tone,
        because=because,
        facts=tuple(_facts(descheduling)),
        lists=(
            ItemList(
                title="Evictions",
                noun="pod",
                columns=(("round", True), ("profile", False), ("plugin", False), ("node", False), ("then", False)),
                items=tuple(_items(descheduling)),
            ),
        ),
        tables=tuple(_tables(descheduling)),
        notes=tuple(_notes(descheduling)),
    )


def _facts(descheduling: Descheduling) -> Iterator[Fact]:
    yield from _pending_facts(descheduling.landings[0] if descheduling.landings else ())
    yield from _repeat_facts(descheduling)
    for error in descheduling.loop.errors:
        yield Fact.of("error", f"{error.plugin}: {error.error}")


def _notes(descheduling: Descheduling) -> Iterator[str]:
    yield from _chance_notes(descheduling)
    if descheduling.newly_placed:
        number = len(descheduling.newly_placed)
        finds = count(number, "pending pod finds", "pending pods find")
        yield f"{finds} a node then: {list_names(descheduling.newly_placed, 3)}"
    if descheduling.preempted:
        text = f"kube-scheduler preempts {count(len(descheduling.preempted), 'pod')} for them"
        yield f"{text}: {list_names(descheduling.preempted, 3)}"


def _items(descheduling: Descheduling) -> Iterator[ViewItem]:
    for number, landed in enumerate(_rounds(descheduling), start=1):
        for eviction, landing in landed:
            fate, message = ("", "") if landing is None else (_fate_of(landing), landing.message)
            yield ViewItem(
                title=eviction.pod.key,
                tone=Tone.BAD if landing is not None and landing.is_pending else Tone.PLAIN,
                kind=eviction.plugin,
                values=(number, eviction.profile, eviction.plugin, eviction.pod.node, fate),
                facts=(Fact.of("because", eviction.because),),
                event=message,
            )


def _rounds(descheduling: Descheduling) -> list[list[tuple[RequestedEviction, Landing | None]]]:
    """Return the evictions of every loop that was carried out, with the pods' outcomes. If no pod was rescheduled,
    return the evictions of the only loop."""
    if not descheduling.landings:
        return [[(eviction, None) for eviction in descheduling.loop.evicted]]
    return [[(landing.eviction, landing) for landing in landed] for landed in descheduling.landings]


_FATES = {
    Fate.MOVED: ("finds another node", "find another node", ""),
    Fate.RETURNED: ("returns to the same node", "return to the same node", "the same node"),
    Fate.PENDING: ("stays pending", "stay pending", "✗ pending"),
    Fate.UNDECIDED: ("undecided", "undecided", "undecided"),
    Fate.GONE: ("is not recreated", "are not recreated", "not recreated"),
}
"""The fate of one pod, of several, and where a pod goes: to its new node, if that is empty."""


def _because(loop: DescheduleLoop) -> tuple[str, ...]:
    if loop.evicted:
        plugins = Counter(eviction.plugin for eviction in loop.evicted)
        return tuple(f"{plugin} {count(number, 'pod')}" for plugin, number in plugins.most_common())
    if loop.skipped:
        return (loop.skipped,)
    refused = Counter(map(_refuser, loop.refused))
    reasons = [f"{it.plugin}: {it.verdict}" for it in loop.classifications if it.verdict]
    reasons += [f"{count(number, 'eviction')} refused: {error}" for error, number in refused.items()]
    return tuple(reasons) or ("no plugin finds a pod that it may evict",)


def _pending_facts(landed: Sequence[Landing]) -> Iterator[Fact]:
    """Yield the pods that stay pending, with the most common of kube-scheduler's messages."""
    pending = group_pairs((landing.message, landing.eviction.pod.key) for landing in landed if landing.is_pending)
    if not pending:
        return
    message, pods = max(pending.items(), key=lambda item: len(item[1]))
    yield Fact.of("pending", f"{list_names(pods, 2)}: {message}")
    others = [pod for other, its in pending.items() if other != message for pod in its]
    if others:
        yield Fact.of("", f"{list_names(others, 2)}: for other reasons")


_MOST_FIGHTS = 3


def _repeat_facts(descheduling: Descheduling) -> Iterator[Fact]:
    """Yield the pods that are evicted again, the plugins that evict them, and the reasons of each plugin."""
    fights: dict[tuple[str, str, bool], dict[str, tuple[str, str, int]]] = {}
    for repeat in descheduling.repeats:
        is_returned = repeat.landing.fate is Fate.RETURNED
        pods = fights.setdefault((repeat.first.plugin, repeat.then.plugin, is_returned), {})
        pods.setdefault(repeat.first.pod.key, (repeat.first.because, repeat.then.because, repeat.then_round))
    for (first, then, is_returned), pods in list(fights.items())[:_MOST_FIGHTS]:
        them = "it" if len(pods) == 1 else "them"
        if first != then:
            why = f"{first} and {then} fight"
        elif is_returned:
            why = f"{first} evicts {them}, and kube-scheduler returns {them} to the same node"
        else:
            why = f"{first} evicts {them} from the next node as well"
        mine, its, number = next(iter(pods.values()))
        which = "the next round" if len(descheduling.landings) == 1 else f"round {number}"
        yield Fact.of("again", f"{why}: {which} evicts {list_names(pods, 2)} again")
        if first != then:
            yield Fact.of("", f"{first}: {mine}")
            yield Fact.of("", f"{then}: {its}")
    if len(fights) > _MOST_FIGHTS:
        yield Fact.of("", f"{len(fights) - _MOST_FIGHTS:,} more: -o json has all")
    rounds = len(descheduling.loops) - 1
    if rounds > 1 or (rounds == 1 and descheduling.landings and descheduling.loops[1].evicted and not fights):
        numbers = ", ".join(f"{len(loop.evicted):,}" for loop in descheduling.loops)
        end = "nothing is left to evict" if descheduling.is_settled else "the last round is not carried out"
        yield Fact.of("rounds", f"evict {numbers} pods: {end}")


def _chance_notes(descheduling: Descheduling) -> Iterator[str]:
    likelihood = descheduling.likelihood
    if likelihood is None:
        return
    random = "the descheduler lists nodes and pods in random order, so it may evict"
    certain, total = len(likelihood.certain), descheduling.loop.total
    sure = f"{certain:,} of {count(total, 'eviction')} {'is' if certain == 1 else 'are'} certain"
    if not certain:
        sure = "no eviction is certain"
    match likelihood.chance:
        case Chance.NONE:
            return
        case Chance.WHICH:
            if certain < total:
                yield f"{random} other pods; {sure}"
        case Chance.COUNT:
            yield f"{random} more or fewer pods; {sure}" if total else f"{random} pods in another run"
        case Chance.UNKNOWN:
            yield "nodes and pods are listed in random order; other orders were not tried in so large a cluster"
        case _:
            assert_never(likelihood.chance)


# --- nodes


def _classification_lines(
    classification: Classification, descheduling: Descheduling, width: int, most: _Most
) -> list[StyledLine]:
    """Return the nodes by category, with the utilization of each compared resource before and after the evictions."""
    lines = paragraph(f"{classification.plugin} ({classification.profile}): {_sizes(classification)}", width)
    if classification.thresholds is not None:
        for category, thresholds in classification.thresholds.items():
            limits = ", ".join(f"{name} {round_percent(percent)}%" for name, percent in thresholds.items())
            lines += labelled_lines("below" if category is Category.UNDERUTILIZED else "above", limits, width)
    if classification.verdict:
        lines += labelled_lines("verdict", classification.verdict, width)
    rows = _classification_rows(classification, descheduling)
    heads = ["node", "category", *_resources(classification)]
    lines += columns([heads, *rows[: most.nodes]], indent=2, header=True)
    return lines + more(len(rows) - most.nodes, "node")


def _sizes(classification: Classification) -> str:
    sizes = Counter(node.category for node in classification.nodes)
    return ", ".join(f"{sizes[it]:,} {_category(it, classification.plugin)}" for it in Category if sizes[it])


def _resources(classification: Classification) -> list[str]:
    return list(dict.fromkeys(name for node in classification.nodes for name in sorted(node.percent)))


def _classification_rows(classification: Classification, descheduling: Descheduling) -> list[list[str]]:
    """Return node, category, and percentages before and after; overutilized nodes come first."""
    order = [Category.OVERUTILIZED, Category.UNDERUTILIZED, Category.APPROPRIATE]
    nodes = sorted(
        classification.nodes, key=lambda node: (order.index(node.category), -max(node.percent.values(), default=0.0))
    )
    resources = _resources(classification)
    return [
        [
            node.node.name,
            _category(node.category, classification.plugin),
            *(_percent(node.percent.get(key), node.node.name, key, descheduling.shares) for key in resources),
        ]
        for node in nodes
    ]


def _category(category: Category, plugin: str) -> str:
    return "can take pods" if plugin == "HighNodeUtilization" and category is Category.OVERUTILIZED else category.value


def _percent(percent: float | None, node: str, resource: str, shares: tuple[Shares, Shares] | None) -> str:
    """Return `92%`, or `92% → 61%` if the requests of the node's pods change."""
    if percent is None:
        return ""
    now = f"{round_percent(percent)}%"
    if shares is None or resource not in shares[0].get(node, {}):
        return now
    before, after = shares[0][node][resource], shares[1][node][resource]
    if before != after and round_percent(before) == round_percent(percent):
        return f"{now} → {round_percent(after)}%"
    return now


# --- pods


def _eviction_lines(descheduling: Descheduling, width: int, most: _Most) -> list[StyledLine]:
    """Return the evictions by round, profile, and plugin, in order."""
    groups: list[tuple[str, list[tuple[RequestedEviction, Landing | None]]]] = []
    for number, landed in enumerate(_rounds(descheduling), start=1):
        by_plugin = group_pairs(((pair[0].profile, pair[0].plugin), pair) for pair in landed)
        which = f"round {number}: " if len(descheduling.landings) > 1 else ""
        for (profile, plugin), its in by_plugin.items():
            groups.append((f"{which}{plugin} ({profile}) evicts {count(len(its), 'pod')}", its))
    lines: list[StyledLine] = []
    for title, its in groups[: most.plugins]:
        lines += [BLANK, *paragraph(title, width)]
        before = ""
        for eviction, landing in its[: most.pods]:
            if eviction.because != before:
                before = eviction.because
                lines += paragraph(before, width, first="  ", style=DIM)
            lines += paragraph(_landing_text(eviction, landing), width, first="  ", indent=4)
        lines += more(len(its) - most.pods, "pod")
    left = groups[most.plugins :]
    if left:
        pods = sum(len(its) for _, its in left)
        lines += [BLANK, *more(pods, "eviction")]
    return lines


def _landing_text(eviction: RequestedEviction, landing: Landing | None) -> str:
    start = f"{eviction.pod.key}  {eviction.pod.node}"
    if landing is None:
        return start
    return f"{start}, not recreated" if landing.fate is Fate.GONE else f"{start} → {_fate_of(landing)}"


def _fate_of(landing: Landing) -> str:
    return _FATES[landing.fate][2] or landing.node


def _refuser(eviction: RequestedEviction) -> str:
    """Return the limit that an eviction reaches, or who refuses it."""
    if eviction.outcome is not EvictionOutcome.REFUSED:
        return eviction.error
    is_of_budget = "disruption budget" in eviction.error or "PodDisruptionBudget" in eviction.error
    return f"the API server refuses{' because of PodDisruptionBudgets' if is_of_budget else ''}"


def _refusals(loop: DescheduleLoop) -> dict[str, list[str]]:
    """Return errors to the pods and plugins that they refuse."""
    return group_pairs(
        (it.error.replace(f' "{it.pod.name}"', ""), f"{it.pod.key} ({it.plugin})") for it in loop.refused
    )


def _refusal_lines(loop: DescheduleLoop, width: int, most: _Most) -> list[StyledLine]:
    if not loop.refused:
        return []
    lines = [BLANK, *paragraph(f"{count(len(loop.refused), 'eviction')} refused", width)]
    for error, pods in _refusals(loop).items():
        lines += paragraph(f"{error}: {list_names(pods, min(most.pods, 3 * len(pods)))}", width, first="  ", indent=4)
    return lines


def _left_alone(loop: DescheduleLoop) -> _Reasons:
    """Return why pods may not be evicted, most common reason first, with the pods."""
    verdicts = ((pod, its.values()) for pod, its in loop.verdicts.items())
    own = ((dict.fromkeys(why for verdict in its for why in verdict.reasons), pod) for pod, its in verdicts)
    reasons = group_pairs(("; ".join(each), pod) for each, pod in own if each)
    return sorted(reasons.items(), key=lambda item: -len(item[1]))


def _passed_over(loop: DescheduleLoop, alone: _Reasons) -> _Reasons:
    """What the descheduler logs about pods while its plugins run, by plugin, most common first, with the pods."""
    blocked = {pod for _, pods in alone for pod in pods}
    reasons: dict[str, dict[str, None]] = {}
    for over in loop.said:
        if over.pod not in blocked:
            reasons.setdefault(f"{over.plugin}: {over.message}", {})[over.pod] = None
    return sorted(((why, list(pods)) for why, pods in reasons.items()), key=lambda item: -len(item[1]))


def _reason_lines(title: str, reasons: _Reasons, left: int, noun: str, width: int, most: _Most) -> list[StyledLine]:
    """Return the most common reasons with their pods, and how many pods or reasons are `left`."""
    if not reasons:
        return []
    if not most.reasons:
        return [BLANK, *paragraph(f"{title}: -o wide shows why", width)]
    lines = [BLANK, *paragraph(title, width)]
    for why, pods in reasons[: most.reasons]:
        text = f"{list_names(pods, len(pods) if most is _EVERYTHING else 2)}: {why}"
        lines += paragraph(text, width, first="  ", indent=4)
    return lines + more(left, noun)


# --- the page


def descheduling_page(descheduling: Descheduling) -> Page:
    """Return a page with the evictions, the utilization of the nodes before and after, and the ignored pods."""
    view = _descheduling_view(descheduling)
    plots = () if descheduling.shares is None else (_usage_section(*descheduling.shares),)
    return page_of(view, _lines(descheduling, view, SCREEN_WIDTH), plots, descheduling.snapshot)


def _tables(descheduling: Descheduling) -> Iterator[TableView]:
    for classification in descheduling.loop.classifications:
        if classification.nodes:
            heads = ("node", "category", *_resources(classification))
            yield TableView(
                title=f"{classification.plugin} ({classification.profile}): {_sizes(classification)}",
                columns=tuple((label, at > 1) for at, label in enumerate(heads)),
                rows=tuple(map(tuple, _classification_rows(classification, descheduling))),
            )
    alone = _left_alone(descheduling.loop)
    for title, reasons in (
        ("Refused evictions", list(_refusals(descheduling.loop).items())),
        ("Pods that may not be evicted", alone),
        ("Pods that plugins pass over", _passed_over(descheduling.loop, alone)),
    ):
        yield TableView(
            title=title,
            columns=(("reason", False), ("number", True), ("pods", False)),
            rows=tuple((why, len(pods), list_names(pods, 20)) for why, pods in reasons),
        )


def _usage_section(before: Shares, after: Shares) -> Usage:
    """Return the requested share of every node's resources; nodes that change most come first."""
    resources = tuple(dict.fromkeys(name for item in before.values() for name in item))
    ordered = sorted(before, key=lambda it: -sum(abs(after[it][name] - share) for name, share in before[it].items()))

    def side(shares: Shares) -> tuple[tuple[int | None, ...], ...]:
        return tuple(
            tuple(round_percent(shares[node][name]) if name in shares[node] else None for name in resources)
            for node in ordered
        )

    def shares_text(node: str, name: str) -> str:
        if name not in before[node]:
            return ""
        sides = (f"{round_percent(item[node][name])}%" for item in (before, after))
        return " → ".join(dict.fromkeys(sides))

    return Usage(
        resources=resources,
        nodes=tuple(map(visible, ordered)),
        before=side(before),
        after=side(after),
        told=tuple(tuple(shares_text(node, name) for name in resources) for node in ordered),
    )


# Advice about a DeschedulerPolicy: the effect of every plugin by itself, and the policy for the goal.

_MOST_TRIED = 5
_HEADS = ("evictions", "bounces", "returned", "pending")
"""Evicted pods, pods that a later round evicts again, pods that return to the same node, and pods that stay pending."""


def advice_lines(advice: PolicyAdvice, width: int, *, wide: bool = False) -> list[StyledLine]:
    """Return the headline, the plugins that would evict pods, and the policies that were tried for the goal."""
    view = _advice_view(advice)
    [plugins], [policies] = view.lists, view.tables
    lines = head_lines(replace(view, fixes=()), width) + note_lines(view, width)  # -o yaml prints the policy, not --fix
    lines += [BLANK, line("each plugin by itself")]
    shown = tuple(item for item in plugins.items if wide or item.tone is not Tone.PLAIN or item.kind)
    lines += table_lines(replace(plugins, items=shown), width) if shown else []
    idle = len(plugins.items) - len(shown)
    if idle:
        lines.append(line((f"  {count(idle, 'other')} evict no pod" if shown else "  none evicts a pod", DIM)))
    lines += [BLANK, line(policies.title)]
    rows = policies.rows if wide else policies.rows[:_MOST_TRIED]
    lines += column_lines(policies.columns, rows, width) if rows else []
    return lines + more(len(policies.rows) - len(rows))


_TRIED_HEADS = ("evictions", "bounces", "pending")


def _limit(trial: PolicyTrial) -> str:
    limit = trial.max_evictions
    return "" if limit is None else f"{limit:,}"


def _advice_view(advice: PolicyAdvice) -> View:
    """Return a view with the policy as a fix, and a row for each plugin."""
    chosen = advice.chosen
    heads = ("policy", "limit", *_TRIED_HEADS, "apart" if advice.goal is PolicyGoal.BALANCE else "empty")
    tried = sorted(advice.tried, key=lambda trial: (trial is not chosen, not trial.evictions, trial.measure))
    return View(
        command="kschedx descheduler-policy advise",
        subject=advice.goal.value,
        headline=_headline(advice),
        tone=Tone.GOOD if advice.is_reached and (chosen or advice.target is not None) else Tone.BAD,
        facts=tuple(_facts_of_plugin(advice)),
        fixes=() if chosen is None else (FixView(title=_title(chosen), changes=(chosen.policy,)),),
        lists=(
            ItemList(
                title="Each plugin by itself",
                noun="plugin",
                columns=tuple((name, True) for name in _HEADS),
                items=tuple(_item(plugin) for plugin in advice.plugins),
            ),
        ),
        tables=(
            TableView(
                title=f"policies tried for {advice.goal}",
                columns=tuple((label, at > 0) for at, label in enumerate(heads)),
                rows=tuple(
                    (_title(trial), _limit(trial), trial.evictions, trial.bounces, trial.pending, trial.measure)
                    for trial in tried
                ),
            ),
        ),
        notes=() if advice.first is None else tuple(_chance_notes(advice.first)),
    )


def _headline(advice: PolicyAdvice) -> str:
    chosen, goal = advice.chosen, advice.goal
    if chosen is None:
        if advice.is_reached:
            return f"the goal is reached without any eviction: {_state(goal, advice.before)}"
        return f"no policy that was tried improves {goal}: {_state(goal, advice.before)}"
    text = f"{chosen.plugin} reaches {goal} with {count(chosen.evictions, 'eviction')}"
    if not advice.is_reached:
        text = f"{chosen.plugin} comes closest to {goal} with {count(chosen.evictions, 'eviction')}"
    return f"{text}: {_change(goal, advice.before, chosen.measure)}"


def _state(goal: PolicyGoal, measure: int) -> str:
    if goal is PolicyGoal.BALANCE:
        return f"the fullest and the emptiest node differ by {count(measure, 'percentage point')}"
    return f"{count(measure, 'node')} {'runs' if measure == 1 else 'run'} nothing but DaemonSets"


def _change(goal: PolicyGoal, before: int, after: int) -> str:
    if goal is PolicyGoal.BALANCE:
        return f"the fullest and the emptiest node differ by {after} instead of {count(before, 'percentage point')}"
    return f"{after} instead of {count(before, 'node')} run nothing but DaemonSets"


def _facts_of_plugin(advice: PolicyAdvice) -> Iterator[Fact]:
    if advice.target is not None:
        yield Fact.of("target", _state(advice.goal, advice.target))
    if advice.chosen is not None:
        limit = advice.chosen.max_evictions
        limits = () if limit is None else (f"at most {count(limit, 'eviction')} a round",)
        yield Fact.of("policy", _title(advice.chosen), *limits, "-o yaml prints it")
        return
    harmful = [trial for trial in advice.tried if trial.evictions and not trial.is_harmless]
    if harmful:
        back = sum(bool(trial.bounces) for trial in harmful)
        stay = sum(bool(trial.pending) for trial in harmful)
        bounce = f"{count(back, 'policy bounces', 'policies bounce')} pods" if back else ""
        leave = f"{count(stay, 'policy leaves', 'policies leave')} pods pending" if stay else ""
        if bounce or leave:
            yield Fact.of("because", *filter(None, (bounce, leave)))
    if advice.goal is PolicyGoal.COMPACTION:
        text = "kube-scheduler's default scoring prefers empty nodes: try --config binpack (MostAllocated)"
        yield Fact.of("note", text)


def _title(trial: PolicyTrial) -> str:
    return " ".join(filter(None, (trial.plugin, _args_text(trial.args))))


def _args_text(args: Mapping[str, object]) -> str:
    """Return the args on one line, abbreviated."""
    low, high = args.get("thresholds"), args.get("targetThresholds")
    if isinstance(low, Mapping):
        spans: dict[str, list[str]] = {}
        for name, percent in low.items():
            span = f"{percent}-{high[name]}%" if isinstance(high, Mapping) else f"{percent}%"
            spans.setdefault(f"±{percent}" if args.get("useDeviationThresholds") else span, []).append(name)
        return " ".join(f"{', '.join(names)} {span}" for span, names in spans.items())
    kinds = args.get("nodeAffinityType")
    if isinstance(kinds, list):
        return "required" if str(kinds[0]).startswith("required") else "preferred"
    age = args.get("maxPodLifeTimeSeconds")
    if isinstance(age, int):
        return f"above {age // 86400} days"
    return " ".join(f"{name} {json.dumps(value)}" for name, value in args.items())


def _numbers(trial: PolicyTrial) -> tuple[int | str, ...]:
    """Return the cells for `_HEADS`."""
    if trial.placed:
        return (trial.evictions, trial.bounces, trial.returned, trial.pending)
    return (trial.evictions, "?", "?", "?")


def _item(trial: PolicyTrial) -> ViewItem:
    facts = [Fact.of("args", json.dumps(trial.args))] if trial.args else []
    facts += [Fact.of("limited", f"{count(trial.refused, 'eviction')} refused")] if trial.refused else []
    facts += [Fact.of("error", trial.error)] if trial.error else []
    tone = Tone.PLAIN if not trial.evictions else Tone.GOOD if trial.is_harmless else Tone.BAD
    kind = "error" if trial.error else ""
    return ViewItem(title=_title(trial), tone=tone, kind=kind, values=_numbers(trial), facts=tuple(facts))


def advice_page(advice: PolicyAdvice, snapshot: Snapshot) -> Page:
    """Return a page with the plugins, and the policies that were tried."""
    return page_of(_advice_view(advice), advice_lines(advice, SCREEN_WIDTH), snapshot=snapshot)
