"""The screen of `kschedx scale-down`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from kschedx.api.annotations import SAFE_TO_EVICT
from kschedx.autoscaler.scale_down.decision import Removal, ScaleDown, Unremovable
from kschedx.autoscaler.scale_down.pods import Fate
from kschedx.karpenter.disruption import NodeDisruption
from kschedx.render import terminal
from kschedx.render.layout import BAD, BLANK, DIM, GOOD, columns, cut, ended, fact_lines, paragraph, text
from kschedx.render.units import count, listed
from kschedx.render.wording import Fact
from kschedx.render.words import scale_down as words
from kschedx.render.words.scale_down import NAMES

MOST_BLOCKERS = 5
"""Pods that are told on the first screen."""
MOST_NODES = 20


def print_scale_down(
    asked: ScaleDown | None, removals: Sequence[Removal], kept: Sequence[NodeDisruption], *, wide: bool = False
) -> None:
    """`asked` is None where no node is cluster-autoscaler's; `kept` are Karpenter's."""
    out = terminal.console()
    lines: list[Text] = []
    if asked is not None:
        lines += scale_down_lines(asked, removals, width=out.width, wide=wide)
    for one in kept if wide else kept[:MOST_NODES]:
        lines += [*([BLANK] if lines else []), *_of_karpenter(one, out.width)]
    if kept:
        told = "Karpenter, as far as objects tell: prices and replacements are not known"
        left = len(kept) - MOST_NODES
        more = f" · {count(left, 'more node')}: -o wide" if left > 0 and not wide else ""
        lines += [BLANK, *paragraph(f"{told}{more}", out.width, style=DIM)]
    terminal.write(lines, out)


def scale_down_lines(asked: ScaleDown, removals: Sequence[Removal], *, width: int, wide: bool = False) -> list[Text]:
    """One node's story, or a line for each of several."""
    lines = _story(asked, removals[0], width, wide=wide) if len(removals) == 1 else _several(removals, width, wide=wide)
    return [*lines, BLANK, *paragraph(_basis(asked), width, style=DIM)]


def _of_karpenter(found: NodeDisruption, width: int) -> list[Text]:
    obstacles = [one.text for one in found.obstacles]
    if not obstacles and not found.may_go:
        obstacles.append("its NodeClaim is not consolidatable: something came or went there not long ago")
    if not obstacles:
        how = "removes it, it is empty" if found.is_empty else "may consolidate it, where its pods find a cheaper place"
        return paragraph(f"{found.node}: Karpenter {how}", width, first="✓ ", style=GOOD)
    lines = paragraph(f"{found.node}: Karpenter keeps it, {obstacles[0]}", width, first="✗ ", style=BAD)
    for number, told in enumerate(obstacles[1:]):
        lines += fact_lines(Fact(label="also" if number == 0 else "", items=(told,)), width)
    return lines


# --- one


def _story(asked: ScaleDown, found: Removal, width: int, *, wide: bool) -> list[Text]:
    if found.is_removable:
        lines = paragraph(f"{found.node}: {words.going(found)}", width, first="✓ ", style=GOOD)
    else:
        first = f"{found.node}: cluster-autoscaler keeps it, {words.sentence(found, found.reasons[0])}"
        lines = paragraph(first, width, first="✗ ", style=BAD)
    for fact in _facts(asked, found, wide=wide):
        lines += fact_lines(fact, width)
    return lines


def _facts(asked: ScaleDown, found: Removal, *, wide: bool) -> Iterator[Fact]:
    blocking = found.of(Fate.BLOCKS)
    yield from _remedies(asked, found)
    is_told = len(blocking) == 1 and found.reasons[0] is Unremovable.BLOCKED_BY_POD
    for number, one in enumerate(() if is_told else blocking if wide else blocking[:MOST_BLOCKERS]):
        yield Fact(label="kept by" if number == 0 else "", items=(f"{one.pod}: {words.blocker(one)}",))
    if not wide and len(blocking) > MOST_BLOCKERS:
        yield Fact(label="", items=(f"{count(len(blocking) - MOST_BLOCKERS, 'more pod')}: -o wide",))
    also = [words.sentence(found, one) for one in found.reasons[1:] if one is not Unremovable.BLOCKED_BY_POD]
    for number, told in enumerate(also):
        yield Fact(label="also" if number == 0 else "", items=(told,))
    if found.utilization is not None and Unremovable.NOT_UNDERUTILIZED not in found.reasons:
        yield Fact(label="requested", items=(words.share(found.utilization),))
    if found.group is not None:
        group = found.group
        yield Fact(
            label="group", items=(f"{group.name}: {count(group.target, 'node')}, {group.min_size} to {group.max_size}",)
        )
    places = [f"{pod} → {node}" for pod, node in found.places.items()]
    if places:
        yield Fact(label="moves", items=tuple(places) if wide else (listed(places, NAMES),))
    staying = found.of(Fate.DAEMON_SET)
    if staying:
        yield Fact(label="goes too", items=(f"{count(len(staying), 'pod')} of DaemonSets",))
    if found.reasons:
        yield Fact(label="its words", items=tuple(one.value for one in found.reasons))


def _remedies(asked: ScaleDown, found: Removal) -> Iterator[Fact]:
    """What would let it go, where that was tried."""
    after = asked.safe_to_evict(found)
    if after is None:
        return
    left = {one.pod for one in after.of(Fate.BLOCKS)}
    pods = [one.pod for one in found.of(Fate.BLOCKS) if one.pod not in left]
    does = "the node goes" if after.is_removable else f"then {words.sentence(after, after.reasons[0])}"
    yield Fact(label="fix", items=(f"annotate {listed(pods, NAMES)} with {SAFE_TO_EVICT}=true (verified: {does})",))


# --- several


def _several(removals: Sequence[Removal], width: int, *, wide: bool) -> list[Text]:
    going = [one for one in removals if one.is_removable]
    number = f"{len(going):,} of {count(len(removals), 'node')}"
    could = "could be removed" if going else "can be removed"
    mark, style = ("✓ ", GOOD) if going else ("✗ ", BAD)
    lines = paragraph(f"{number} {could}, each by itself", width, first=mark, style=style)
    ordered = sorted(removals, key=lambda one: (len(one.reasons), one.node))
    shown = ordered if wide else ordered[:MOST_NODES]
    name = max((len(one.node) for one in shown), default=0)
    name = min(name, width // 2)
    rows = [["node", "requested", "why"]]
    for one in shown:
        share = "" if one.utilization is None else f"{round(100 * one.utilization.share)}% {one.utilization.resource}"
        rows.append([cut(one.node, name), share, ended(words.short(one), max(width - name - 20, 24))])
    lines += [BLANK, *columns(rows, indent=2, header=True)]
    if len(ordered) > len(shown):
        lines.append(text(f"  {count(len(ordered) - len(shown), 'more node')}: -o wide", DIM))
    return lines


def _basis(asked: ScaleDown) -> str:
    autoscaler = asked.autoscaler
    told = [f"cluster-autoscaler {autoscaler.release.version}"]
    if not autoscaler.flags_are_known:
        told.append("default flags (--autoscaler-flag)")
    if autoscaler.membership.told_by:
        told.append(f"groups by {listed(autoscaler.membership.told_by, NAMES)}")
    return " · ".join(told)
