"""What the descheduler does: who is evicted and why, where the pods land, and who is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import assert_never

from rich.text import Text

from kschedx.descheduler.descheduling import Descheduling
from kschedx.descheduler.evictor import Outcome
from kschedx.descheduler.rounds import Chance, Fate, Landing
from kschedx.descheduler.run import Loop
from kschedx.descheduler.utilization import Category, Classification, Shares, rounded
from kschedx.render import terminal
from kschedx.render.terminal import BAD, BLANK, DIM, GOOD, columns, labelled, line, paragraph
from kschedx.render.wording import count, listed, short_names

MOST_PODS = 4
"""Pods shown of one plugin on the first screen."""
MOST_NODES = 6
MOST_REASONS = 5


def print_descheduling(found: Descheduling, *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(descheduling_lines(found, out.width, wide=wide), out)


def descheduling_lines(found: Descheduling, width: int, *, wide: bool = False) -> list[Text]:
    """The headline and its causes, the classification of nodes, the evictions by plugin, and the pods left alone."""
    nodes = list(found.shares[0]) if found.shares is not None else []
    short = short_names(nodes)
    lines = _headline(found, width)
    for one in found.loop.classifications:
        if one.nodes:
            lines += [BLANK, *_classification_lines(one, found, width, short, wide=wide)]
    lines += _eviction_lines(found, width, short, wide=wide)
    lines += _refusal_lines(found.loop, width, wide=wide)
    lines += _left_alone_lines(found.loop, width, wide=wide)
    return lines


# --- the headline and its causes


def _headline(found: Descheduling, width: int) -> list[Text]:
    loop = found.loop
    landed = found.landings[0] if found.landings else ()
    fates = Counter(one.fate for one in landed)
    if not loop.evicted:
        lines = paragraph("the descheduler evicts no pod", width, first="✓ ", style=GOOD)
        lines += _because_nothing(loop, width)
    else:
        nodes = len({one.pod.node for one in loop.evicted})
        title = f"the descheduler evicts {count(len(loop.evicted), 'pod')} from {count(nodes, 'node')}"
        is_bad = bool(fates[Fate.PENDING] or fates[Fate.UNDECIDED] or found.repeats)
        told = f"{title}: {_fates_text(fates)}"
        lines = paragraph(told, width, first="✗ " if is_bad else "✓ ", style=BAD if is_bad else GOOD)
        lines += _because(loop, width)
    lines += _pending_lines(landed, width)
    lines += _repeat_lines(found, width)
    for error in loop.errors:
        lines += labelled("error", f"{error.plugin}: {error.error}", width)
    lines += _chance_lines(found, width)
    if found.newly_placed:
        told = f"{count(len(found.newly_placed), 'pending pod')} {_finds(len(found.newly_placed))} a node then"
        lines += labelled("note", f"{told}: {listed(found.newly_placed, 3)}", width)
    if found.preempted:
        told = f"kube-scheduler preempts {count(len(found.preempted), 'pod')} for them"
        lines += labelled("note", f"{told}: {listed(found.preempted, 3)}", width)
    return lines


def _finds(number: int) -> str:
    return "finds" if number == 1 else "find"


def _fates_text(fates: Mapping[Fate, int]) -> str:
    parts = [_fate_text(fate, fates[fate]) for fate in Fate if fates.get(fate)]
    return ", ".join(parts)


def _fate_text(fate: Fate, number: int) -> str:
    match fate:
        case Fate.MOVED:
            return f"{number:,} {_finds(number)} another node"
        case Fate.RETURNED:
            return f"{number:,} {'returns' if number == 1 else 'return'} to the same node"
        case Fate.PENDING:
            return f"{number:,} {'stays' if number == 1 else 'stay'} pending"
        case Fate.UNDECIDED:
            return f"{number:,} undecided"
        case Fate.GONE:
            return f"{number:,} {'is' if number == 1 else 'are'} not recreated"
        case _:
            assert_never(fate)


def _because(loop: Loop, width: int) -> list[Text]:
    plugins = Counter(one.plugin for one in loop.evicted)
    told = " · ".join(f"{plugin} {count(number, 'pod')}" for plugin, number in plugins.most_common())
    return labelled("because", told, width)


def _because_nothing(loop: Loop, width: int) -> list[Text]:
    if loop.skipped:
        return labelled("because", loop.skipped, width)
    refused = Counter(
        one.error if one.outcome is not Outcome.REFUSED else "the API server refuses" for one in loop.refused
    )
    reasons = [f"{one.plugin}: {one.verdict}" for one in loop.classifications if one.verdict]
    reasons += [f"{count(number, 'eviction')} refused: {error}" for error, number in refused.items()]
    return labelled("because", " · ".join(reasons) or "no plugin finds a pod that it may evict", width)


def _pending_lines(landed: Sequence[Landing], width: int) -> list[Text]:
    """The pods that stay pending, with the commonest of kube-scheduler's messages."""
    pending: dict[str, list[str]] = {}
    for one in landed:
        if one.is_pending:
            pending.setdefault(one.message, []).append(one.eviction.pod.key)
    if not pending:
        return []
    message, pods = max(pending.items(), key=lambda item: len(item[1]))
    lines = labelled("pending", f"{listed(pods, 2)}: {message}", width)
    others = [pod for other, its in pending.items() if other != message for pod in its]
    return lines + (labelled("", f"{listed(others, 2)}: for other reasons", width) if others else [])


def _repeat_lines(found: Descheduling, width: int) -> list[Text]:
    fights: dict[tuple[str, str, bool], dict[str, None]] = {}
    for one in found.repeats:
        is_returned = one.landing.fate is Fate.RETURNED
        fights.setdefault((one.first.plugin, one.then.plugin, is_returned), {})[one.first.pod.key] = None
    lines: list[Text] = []
    for (first, then, is_returned), pods in fights.items():
        them = "it" if len(pods) == 1 else "them"
        if first != then:
            why = f"{first} and {then} work against each other"
        elif is_returned:
            why = f"{first} evicts {them}, and kube-scheduler returns {them} to the same node"
        else:
            why = f"{first} evicts {them} from the next node as well"
        lines += labelled("again", f"the next round evicts {listed(pods, 2)} again: {why}", width)
    rounds = len(found.loops) - 1
    if rounds > 1 or (rounds == 1 and found.landings and found.loops[1].evicted and not fights):
        numbers = ", ".join(f"{len(loop.evicted):,}" for loop in found.loops)
        end = "nothing is left to evict" if found.is_settled else "it continues"
        lines += labelled("rounds", f"{numbers} pods: {end}", width)
    return lines


def _chance_lines(found: Descheduling, width: int) -> list[Text]:
    likelihood = found.likelihood
    if likelihood is None:
        return []
    random = "chance, since the descheduler lists nodes and pods in random order"
    certain = len(likelihood.certain)
    match likelihood.chance:
        case Chance.NONE:
            return []
        case Chance.WHICH:
            told = f"which pods are evicted is {random}; {certain:,} of {found.loop.total:,} are certain"
        case Chance.COUNT:
            told = f"how many pods are evicted is {random}; {certain:,} of {found.loop.total:,} are certain"
        case Chance.UNKNOWN:
            told = "nodes and pods are listed in random order; other orders were not tried in so large a cluster"
        case _:
            assert_never(likelihood.chance)
    return labelled("note", told, width)


# --- nodes


def _classification_lines(
    one: Classification, found: Descheduling, width: int, short: Mapping[str, str], *, wide: bool
) -> list[Text]:
    """The nodes by category, with what they use of each compared resource, and after the evictions."""
    sizes = Counter(node.category for node in one.nodes)
    told = ", ".join(
        f"{sizes[category]:,} {_category(category, one.plugin)}" for category in Category if sizes[category]
    )
    lines = paragraph(f"{one.plugin} ({one.profile}): {told}", width)
    if one.thresholds is not None:
        for category, thresholds in one.thresholds.items():
            limits = ", ".join(f"{name} {rounded(percent)}%" for name, percent in thresholds.items())
            lines += labelled(category.value[:5], limits, width)
    if one.verdict:
        lines += labelled("verdict", one.verdict, width)
    order = [Category.OVERUTILIZED, Category.UNDERUTILIZED, Category.APPROPRIATE]
    nodes = sorted(one.nodes, key=lambda node: (order.index(node.category), -max(node.percent.values(), default=0.0)))
    shown = nodes if wide or len(nodes) <= MOST_NODES else nodes[:MOST_NODES]
    resources = list(dict.fromkeys(name for node in one.nodes for name in sorted(node.percent)))
    rows = [["node", "category", *resources]]
    for node in shown:
        name = node.node.name
        cells = [_percent(node.percent.get(key), name, key, found.shares) for key in resources]
        rows.append([short.get(name, name), _category(node.category, one.plugin), *cells])
    lines += columns(rows, indent=2, header=True)
    if len(nodes) > len(shown):
        lines.append(line((f"  {count(len(nodes) - len(shown), 'more node')}: -o wide shows all", DIM)))
    return lines


def _category(category: Category, plugin: str) -> str:
    return "can take pods" if plugin == "HighNodeUtilization" and category is Category.OVERUTILIZED else category.value


def _percent(percent: float | None, node: str, resource: str, shares: tuple[Shares, Shares] | None) -> str:
    """`92%`, and `92% → 61%` where the requests of the node's pods change."""
    if percent is None:
        return ""
    now = f"{rounded(percent)}%"
    if shares is None or resource not in shares[0].get(node, {}):
        return now
    before, after = shares[0][node][resource], shares[1][node][resource]
    return f"{now} → {rounded(after)}%" if before != after and rounded(before) == rounded(percent) else now


# --- pods


def _eviction_lines(found: Descheduling, width: int, short: Mapping[str, str], *, wide: bool) -> list[Text]:
    """The evictions of every loop that was carried out, by profile and plugin, in order."""
    lines: list[Text] = []
    for number, landed in enumerate(found.landings):
        by_plugin: dict[tuple[str, str], list[Landing]] = {}
        for one in landed:
            by_plugin.setdefault((one.eviction.profile, one.eviction.plugin), []).append(one)
        for (profile, plugin), its in by_plugin.items():
            which = f"round {number + 1}: " if len(found.landings) > 1 else ""
            lines += [BLANK, *paragraph(f"{which}{plugin} ({profile}) evicts {count(len(its), 'pod')}", width)]
            shown = its if wide or len(its) <= MOST_PODS + 1 else its[:MOST_PODS]
            before = ""
            for one in shown:
                if one.eviction.because != before:
                    before = one.eviction.because
                    lines += paragraph(before, width, first="  ", style=DIM)
                lines += paragraph(_landing_text(one, short), width, first="  ", indent=4)
            if len(its) > len(shown):
                lines.append(line((f"  {count(len(its) - len(shown), 'more pod')}: -o wide shows all", DIM)))
    return lines


def _landing_text(one: Landing, short: Mapping[str, str]) -> str:
    pod, node = one.eviction.pod.key, one.eviction.pod.node
    start = f"{pod}  {short.get(node, node)}"
    match one.fate:
        case Fate.MOVED:
            return f"{start} → {short.get(one.node, one.node)}"
        case Fate.RETURNED:
            return f"{start} → the same node"
        case Fate.PENDING:
            return f"{start} → ✗ pending"
        case Fate.UNDECIDED:
            return f"{start} → undecided"
        case Fate.GONE:
            return f"{start}, not recreated"
        case _:
            assert_never(one.fate)


def _refusal_lines(loop: Loop, width: int, *, wide: bool) -> list[Text]:
    if not loop.refused:
        return []
    lines = [BLANK, *paragraph(f"{count(len(loop.refused), 'eviction')} refused", width)]
    by_error: dict[str, list[str]] = {}
    for one in loop.refused:
        error = one.error.replace(f' "{one.pod.name}"', "")
        by_error.setdefault(error, []).append(f"{one.pod.key} ({one.plugin})")
    for error, pods in by_error.items():
        lines += paragraph(f"{error}: {listed(pods, len(pods) if wide else 3)}", width, first="  ", indent=4)
    return lines


def _left_alone_lines(loop: Loop, width: int, *, wide: bool) -> list[Text]:
    """The pods that may not be evicted, by reason, the commonest first."""
    reasons: dict[tuple[str, ...], list[str]] = {}
    for pod, verdicts in loop.verdicts.items():
        own = tuple(dict.fromkeys(reason for verdict in verdicts.values() for reason in verdict.reasons))
        if own:
            reasons.setdefault(own, []).append(pod)
    if not reasons:
        return []
    number = sum(map(len, reasons.values()))
    lines = [BLANK, *paragraph(f"{count(number, 'pod')} may not be evicted", width)]
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    for why, pods in ordered if wide else ordered[:MOST_REASONS]:
        told = f"{listed(pods, len(pods) if wide else 2)}: {'; '.join(why)}"
        lines += paragraph(told, width, first="  ", indent=4)
    if len(ordered) > MOST_REASONS and not wide:
        more = sum(len(pods) for _, pods in ordered[MOST_REASONS:])
        lines.append(line((f"  {count(more, 'more pod')}: -o wide shows all", DIM)))
    return lines
