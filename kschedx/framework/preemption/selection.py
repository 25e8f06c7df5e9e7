"""The node on which preemption hurts least.

Upstream: pickOneNodeForPreemption in pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from kschedx.framework.outcome import Candidate
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.pods import PodTable

_NO_NEGATIVE = 2**31
"""Added to a priority, an int32, before it is summed: more victims never sum up to less."""


def _violations(candidate: Candidate, pods: PodTable) -> int:
    return candidate.pdb_violations


def _highest_priority(candidate: Candidate, pods: PodTable) -> int:
    return int(pods.priorities[candidate.victims[0]])


def _sum_of_priorities(candidate: Candidate, pods: PodTable) -> int:
    return sum(int(pods.priorities[victim]) + _NO_NEGATIVE for victim in candidate.victims)


def _number(candidate: Candidate, pods: PodTable) -> int:
    return len(candidate.victims)


def _latest_start(candidate: Candidate, pods: PodTable) -> int:
    """Negated: the earliest start among the victims of the highest priority should be as late as possible."""
    priorities = [int(pods.priorities[victim]) for victim in candidate.victims]
    highest = max(priorities)
    starts = zip(candidate.victims, priorities, strict=True)
    return -min(int(pods.started[victim]) for victim, priority in starts if priority == highest)


Rule: TypeAlias = Callable[[Candidate, PodTable], int]

RULES: tuple[Rule, ...] = (
    _violations,
    _highest_priority,
    _sum_of_priorities,
    _number,
    _latest_start,
)
"""The lowest number wins; a rule counts only among the candidates that all rules before it leave equal."""

RULES_WITHOUT_START = RULES[:-1]
"""Those of the scheduler before the framework, which has no use for start times."""


def best_candidates(
    candidates: Sequence[Candidate],
    pods: PodTable,
    rules: Sequence[Rule] = RULES,
    ranks: IntArray | None = None,
) -> tuple[Candidate, ...]:
    """The candidates that no rule tells apart; kube-scheduler takes any of them. `ranks` (candidate, rule) is what the
    rules say, where that is known."""
    if ranks is not None:
        rows = np.arange(len(candidates))
        for column in ranks.T:
            rows = rows[column[rows] == column[rows].min()]
        return tuple(candidates[row] for row in rows.tolist())
    left = tuple(candidates)
    for rule in rules:
        if len(left) < 2:
            break
        numbers = [rule(candidate, pods) for candidate in left]
        least = min(numbers)
        left = tuple(candidate for candidate, number in zip(left, numbers, strict=True) if number == least)
    return left
