"""Whether it matters how ties fall: all other ways where they are few, and else some that are drawn by lot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.columns import ClusterRow, ClusterRows

MOST_WAYS = 64
"""Ways that are all tried; where there are more, lots are drawn."""
LOTS = 8


class OtherOutcomes(Struct, frozen=True, kw_only=True):
    """The same queue with ties settled in other ways."""

    ties: int
    """Decisions in which several nodes were equally good, for the pod or to preempt on."""
    outcomes: int
    """Of those that were tried, how many end with other pods on other nodes, the one by name among them."""
    placed: Mapping[int, int]
    """Numbers of placed pods to how many of those outcomes have it."""
    tried: int
    """How many ways that were."""
    is_all: bool
    """There is no other way."""


class TieScript(Struct):
    """Settles ties as written, and by the first node where nothing is; keeps how many nodes each was among."""

    choices: tuple[int, ...] = ()
    sizes: list[int] = field(default_factory=list)

    def __call__(self, rows: ClusterRows) -> ClusterRow:
        at = len(self.sizes)
        self.sizes.append(len(rows))
        return ClusterRow(int(rows[self.choices[at] if at < len(self.choices) else 0]))

    def following(self) -> TieScript | None:
        """The next way, in which the last choice that has another one is another; None where this was the last."""
        chosen = [*self.choices, *[0] * (len(self.sizes) - len(self.choices))]
        while chosen:
            if chosen[-1] + 1 < self.sizes[len(chosen) - 1]:
                return TieScript((*chosen[:-1], chosen[-1] + 1))
            chosen.pop()
        return None


def other_outcomes(
    simulation: Simulation, options: SimulationOptions, run: Callable[[SimulationOptions], Simulation]
) -> OtherOutcomes:
    """Try all ways to break the ties, or some of them, which the result says."""
    script: TieScript | None = TieScript()
    found, sizes = [_outcome(simulation)], list[int]()
    tried = 0
    while script is not None and tried < MOST_WAYS and prod(sizes) <= MOST_WAYS:
        found.append(_outcome(run(replace(options, pick=script))))
        sizes = sizes or script.sizes
        script, tried = script.following(), tried + 1
    is_all = script is None
    if not is_all:
        found[1:] = [_outcome(run(replace(options, seed=seed))) for seed in range(1, LOTS + 1)]
        tried = LOTS
    outcomes = set(found)
    return OtherOutcomes(
        ties=sum(size > 1 for size in sizes),
        outcomes=len(outcomes),
        placed=Counter(map(len, outcomes)),
        tried=tried,
        is_all=is_all,
    )


def _outcome(simulation: Simulation) -> frozenset[tuple[str, str]]:
    """Who is where."""
    return frozenset(simulation.placed.items())
