"""Whether the result depends on how ties are broken: all other ways are tried if they are few, otherwise a random
sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.inquiry.simulation import Simulation
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.columns import ClusterRow, ClusterRows

MOST_WAYS = 64
"""If there are more, a random sample is tried."""
LOTS = 8


class OtherOutcomes(Struct, frozen=True, kw_only=True):
    """The results of the same queue with ties broken in other ways."""

    ties: int
    """Decisions in which several nodes are equally good, for the pod or for preemption."""
    outcomes: int
    """The number of different assignments of pods to nodes among the tried ways, including the one by name."""
    placed: Mapping[int, int]
    """Numbers of placed pods to how many of those outcomes have it."""
    tried: int
    is_all: bool
    """Whether there is no other way."""


class TieScript(Struct):
    """Breaks ties by given choices, and by the first node after them; records how many nodes each tie is among."""

    choices: tuple[int, ...] = ()
    sizes: list[int] = field(default_factory=list)

    def __call__(self, rows: ClusterRows) -> ClusterRow:
        at = len(self.sizes)
        self.sizes.append(len(rows))
        return ClusterRow(int(rows[self.choices[at] if at < len(self.choices) else 0]))

    def following(self) -> TieScript | None:
        """Return the next way, which changes the last choice that has an alternative; None if this was the last way."""
        chosen = [*self.choices, *[0] * (len(self.sizes) - len(self.choices))]
        while chosen:
            if chosen[-1] + 1 < self.sizes[len(chosen) - 1]:
                return TieScript((*chosen[:-1], chosen[-1] + 1))
            chosen.pop()
        return None


def other_outcomes(
    simulation: Simulation, options: SimulationOptions, run: Callable[[SimulationOptions], Simulation]
) -> OtherOutcomes:
    """Try all ways to break the ties, or some of them; the result has the number."""
    script: TieScript | None = TieScript()
    seen_outcomes, sizes = [_outcome(simulation)], list[int]()
    tried = 0
    while script is not None and tried < MOST_WAYS and prod(sizes) <= MOST_WAYS:
        seen_outcomes.append(_outcome(run(replace(options, pick=script))))
        sizes = sizes or script.sizes
        script, tried = script.following(), tried + 1
    is_all = script is None
    if not is_all:
        seen_outcomes[1:] = [_outcome(run(replace(options, seed=seed))) for seed in range(1, LOTS + 1)]
        tried = LOTS
    outcomes = set(seen_outcomes)
    return OtherOutcomes(
        ties=sum(size > 1 for size in sizes),
        outcomes=len(outcomes),
        placed=Counter(map(len, outcomes)),
        tried=tried,
        is_all=is_all,
    )


def _outcome(simulation: Simulation) -> frozenset[tuple[str, str]]:
    """Return the node of each placed pod."""
    return frozenset(simulation.placed.items())
