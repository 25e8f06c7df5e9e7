"""The screen of `kschedx why node/NAME`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kschedx.answer.node import NodeAnswer, Offer, Verdict
from kschedx.render import terminal
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, columns, line, paragraph
from kschedx.render.units import amount, amounts, count, listed
from kschedx.render.words import headline

SHOWN_HOLDERS = 4
SHOWN_PODS = 8


def print_node(answer: NodeAnswer, verdicts: Sequence[Verdict], *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(node(answer, verdicts, width=out.width, wide=wide), out)


def node(answer: NodeAnswer, verdicts: Sequence[Verdict], *, width: int, wide: bool = False) -> list[Text]:
    """What it offers, who holds it, and which of the pods that wait it would take."""
    fitting = [one for one in verdicts if one.fits]
    waiting = count(len(verdicts), "pod that waits", "pods that wait")
    would = f"would take {len(fitting):,} of {waiting}" if verdicts else "no pod waits for a node"
    lines = paragraph(f"node {answer.name}: {answer.pods:,} of {answer.most_pods:,} pods, {would}", width, style=BOLD)
    keeps = _keeps_out(answer)
    if keeps:
        lines += paragraph(" · ".join(keeps), width, first="  ")
    lines += [BLANK, *_offers(answer.offers)]
    shown = None if wide else SHOWN_HOLDERS
    for offer in answer.offers:
        if offer.holders:
            names = [_held(offer, index) for index in range(len(offer.holders))]
            text = listed(names, len(names) if shown is None else shown)
            lines += paragraph(text, width, first=f"  {offer.resource} held by  ", style=DIM)
    return [*lines, *_verdicts(verdicts, width, wide=wide)]


def _keeps_out(answer: NodeAnswer) -> list[str]:
    """What rejects pods whatever they ask for."""
    spec = answer.node.spec
    taints = [f"{one.key}{f'={one.value}' if one.value else ''}:{one.effect}" for one in spec.taints]
    return [*(["cordoned"] if spec.unschedulable else []), *([f"taints {', '.join(taints)}"] if taints else [])]


def _offers(offers: Sequence[Offer]) -> list[Text]:
    rows = [("resource", "allocatable", "requested", "free")]
    for offer in offers:
        shown = amounts(offer.resource, (offer.allocatable, offer.requested, abs(offer.free)))
        rows.append((offer.resource, shown[0], shown[1], ("-" if offer.free < 0 else "") + shown[2]))
    return columns(rows, right=frozenset({1, 2, 3}), indent=2, header=True)


def _held(offer: Offer, index: int) -> str:
    holder = offer.holders[index]
    priority = f" (priority {holder.priority:,})" if holder.priority else ""
    return f"{amount(offer.resource, holder.amount)} {holder.pod}{priority}"


def _verdicts(verdicts: Sequence[Verdict], width: int, *, wide: bool) -> list[Text]:
    if not verdicts:
        return []
    lines = [BLANK]
    shown = verdicts if wide else sorted(verdicts, key=lambda one: not one.fits)[:SHOWN_PODS]
    for one in shown:
        priority = f" (priority {one.priority:,})" if one.priority else ""
        told = (
            "fits" if one.fits else one.undecided or " · ".join(map(headline, one.findings)) or ", ".join(one.plugins)
        )
        mark, style = ("✓ ", GOOD) if one.fits else ("? ", "") if one.undecided else ("✗ ", BAD)
        lines += paragraph(f"{one.pod}{priority} {told}", width, first=mark, style=style)
    if len(verdicts) > len(shown):
        lines.append(line((f"  {len(verdicts) - len(shown):,} more pods that wait: -o wide shows all", DIM)))
    return [*lines, BLANK, *paragraph("each pod was looked at alone", width, style=DIM)]
