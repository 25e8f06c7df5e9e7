"""What becomes of a workload's replicas, above the story of one of them."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from kschedx.answer.replicas import Replicas
from kschedx.render.layout import BAD, BOLD, GOOD, fact_lines, paragraph
from kschedx.render.units import count, listed, short_names
from kschedx.render.wording import Fact

SHOWN = 6


def replicas_block(replicas: Replicas, width: int) -> list[Text]:
    """How many of them can be placed, and where."""
    mark, style = ("✓ ", GOOD) if replicas.fits else ("✗ ", BAD)
    lines = paragraph(replicas_sentence(replicas), width, first=mark, style=f"{BOLD} {style.split()[-1]}")
    nodes = Counter(replicas.placed.values()).most_common()
    short = short_names([name for name, _ in nodes])
    if len(nodes) > 2:
        nodes = [(short.get(name, name), number) for name, number in nodes]
    told = [name if number == 1 else f"{name} ×{number:,}" for name, number in nodes]
    if replicas.refusal:
        lines += fact_lines(Fact(label="refused", items=(replicas.refusal,)), width)
    if told:
        more = (f"{count(len(told) - SHOWN, 'more node')}",) if len(told) > SHOWN else ()
        lines += fact_lines(Fact(label="nodes", items=(*told[:SHOWN], *more)), width)
    if replicas.kubelet and replicas.pending:
        lines += fact_lines(Fact(label="then", items=(_again(replicas),)), width)
    if replicas.evicted:
        lines += fact_lines(Fact(label="evicts", items=(listed(replicas.evicted, 4),)), width)
    return lines


def replicas_sentence(replicas: Replicas) -> str:
    """`shop/deploy/web: 6 of 20 replicas can be placed, 14 cannot`; those that the API server refuses are apart."""
    if replicas.kubelet:
        return f"{replicas.workload}: {_of_kubelet(replicas)}"
    asked, placed = replicas.asked, len(replicas.placed)
    which = f"the {asked:,} replicas that it lacks" if replicas.running else f"{asked:,} replicas"
    if replicas.fits:
        told = f"{'both' if asked == 2 else f'all {asked:,}'} {which.partition(f'{asked:,} ')[2]} can be placed"
    elif not placed:
        told = f"none of {which} can be placed"
    elif replicas.pending:
        told = f"{placed:,} of {which} can be placed, {len(replicas.pending):,} cannot"
    else:
        told = f"{placed:,} of {which} can be placed"
    if replicas.refused:
        told += f", {len(replicas.refused):,} are refused by the API server"
    if replicas.replaced:
        before = f"{count(replicas.replaced, 'pod')} of the template before"
        told += f", in place of {before}" if replicas.fits else f", and the rollout stops: it replaces {before}"
    return f"{replicas.workload}: {told}"


def _of_kubelet(replicas: Replicas) -> str:
    """`the kubelet of n1 takes 3 of 5 replicas, and refuses 2`, as far as that is sure."""
    taken, asked = len(replicas.placed), replicas.asked
    kubelet = f"the kubelet of {replicas.kubelet}"
    if replicas.fits:
        return f"nothing that is sure makes {kubelet} refuse any of {asked:,} replicas"
    if not taken:
        return f"{kubelet} refuses all {asked:,} replicas"
    return f"{kubelet} takes {taken:,} of {asked:,} replicas, and refuses {len(replicas.pending):,}"


def _again(replicas: Replicas) -> str:
    is_job = replicas.workload.split("/")[1] in ("job", "cj", "cronjob")
    long = "until the Job's backoffLimit" if is_job else "again and again"
    return f"what the kubelet refuses stays as a Failed pod, and another is made in its place, {long}"
