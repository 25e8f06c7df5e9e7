"""What changes did beside what was asked: whom they drove away, how far rollouts came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from rich.text import Text

from kschedx.render.layout import BAD, DIM, paragraph
from kschedx.render.units import count, listed
from kschedx.simulate.changes import Verb
from kschedx.simulate.rollout import RolledOut
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.strategies import ByNode, ByOrdinal, Keeps, Rolling, Strategy, Why

_BY_NAME = frozenset({Verb.DELETE, Verb.SCALE})
"""Who goes is what the change says."""


def change_lines(simulation: Simulation, width: int, most: int) -> list[Text]:
    """A line for each change that drove pods off their nodes, and for each rollout."""
    lines: list[Text] = []
    told = [*_effects(simulation)]
    for text in told[:most]:
        lines += paragraph(text, width, first="  ", indent=4, style=DIM)
    for one in sorted(simulation.rolled_out, key=lambda one: one.is_done)[:most]:
        stops = not one.is_done and not isinstance(one.strategy, Keeps)
        lines += paragraph(rollout_text(one), width, first="  ", indent=4, style=BAD if stops else DIM)
    left = max(len(told) - most, 0) + max(len(simulation.rolled_out) - most, 0)
    return lines + (paragraph(f"{count(left, 'more effect')}: -o json has all", width, first="  ") if left else [])


def _effects(simulation: Simulation) -> Iterator[str]:
    for effect in simulation.effects:
        if effect.change.verb in _BY_NAME or not (effect.evicted or effect.gone):
            continue
        parts = []
        if effect.evicted:
            number = len(effect.evicted)
            back = sum(key in simulation.placed for key in effect.evicted)
            verb = "loses its node" if number == 1 else "lose their nodes"
            found = "finds another" if number == 1 else f"{back:,} find another"
            none = "and finds no other" if number == 1 else "none finds another"
            parts.append(f"{count(number, 'pod')} {verb}, {found if back else none}")
        if effect.gone:
            parts.append(f"{listed(effect.gone, 2)} {'is' if len(effect.gone) == 1 else 'are'} gone for good")
        which = f"{effect.change}: " if len(simulation.changes) > 1 else ""
        yield f"{which}{'; '.join(parts)}"


def rollout_text(found: RolledOut) -> str:
    """How far it came, and in what bounds."""
    name = found.workload.reference
    if isinstance(found.strategy, Keeps):
        return f"{name}: {_kept(found.strategy)}"
    if found.is_done:
        every = "its pod is" if found.old == 1 else f"all {found.old:,} pods are"
        return f"rollout of {name}: {every} replaced, {strategy_text(found.strategy)}"
    waits = f"{count(found.waiting, 'new pod')} {'finds' if found.waiting == 1 else 'find'} no node"
    if found.refusal:
        waits = f"the API server refuses the next: {found.refusal}"
    elif not found.waiting:
        waits = "a pod that has no node has to be deleted by hand first"
    replaced = f"{found.replaced:,} of {count(found.old, 'pod')} replaced"
    return f"rollout of {name} stops: {replaced}, {waits}; {strategy_text(found.strategy)}"


def strategy_text(strategy: Strategy) -> str:
    """What is assumed of how pods are replaced."""
    match strategy:
        case Rolling(surge=surge, unavailable=unavailable):
            return f"at most {surge:,} too many and {unavailable:,} too few at a time"
        case ByOrdinal(partition=partition, unavailable=unavailable):
            kept = f", those below {partition:,} keep their template" if partition else ""
            return f"{unavailable:,} at a time from the highest ordinal down{kept}"
        case ByNode(surge=surge, unavailable=unavailable):
            return f"with one pod more on {surge:,} nodes" if surge else f"on {count(unavailable, 'node')} at a time"
        case Keeps():
            return _kept(strategy)
        case _:
            assert_never(strategy)


def _kept(strategy: Keeps) -> str:
    match strategy.why:
        case Why.ON_DELETE:
            return "OnDelete: its pods keep the template before until somebody deletes them"
        case Why.PAUSED:
            return "its rollout is paused: its pods keep the template before"
        case Why.NO_CONTROLLER:
            return "its pods keep the template before: its controller replaces none"
        case _:
            assert_never(strategy.why)
