"""Whether it matters how ties fall: other lots, and what becomes of the pods with each."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import Options

LOTS = 8
"""How many other ways are tried; all of them would be more than anyone can wait for."""


class OtherOutcomes(Struct, frozen=True, kw_only=True):
    """The same queue with ties settled by other lots."""

    ties: int
    """Decisions in which several nodes were equally good."""
    placed: tuple[int, ...]
    """How many pods were placed with each lot, by name first."""
    tried: int
    """How many lots that were, by name not counted."""


def other_outcomes(simulation: Simulation, options: Options, run: Callable[[Options], Simulation]) -> OtherOutcomes:
    """Try some other lots, told as such."""
    ties = sum(len(step.decision.choice) > 1 for step in simulation.steps if step.decision is not None)
    lots = range(1, LOTS + 1) if ties else ()
    placed = [len(run(replace(options, seed=seed)).placed) for seed in lots]
    return OtherOutcomes(ties=ties, placed=(len(simulation.placed), *placed), tried=len(placed))
