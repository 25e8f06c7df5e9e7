"""Everybody who holds a pod, asked in turn."""

from __future__ import annotations

import numpy as np

from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.holding.gates import gates_of_others
from kschedx.holding.groups import group_of
from kschedx.holding.kueue import held_by_kueue
from kschedx.holding.model import Holding
from kschedx.holding.schedulers import other_scheduler


def find_holding(scheduler: Scheduler, cycle: Cycle) -> Holding:
    """Whoever holds the pod of a finished cycle. Nothing is asked of extenders."""

    def attempt(pod: Pod, names: frozenset[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            filtered = scheduler.filter(pod, cycle.profile)
        except UndecidableError as unknown:
            return (), (str(unknown),)
        nodes, outcome = filtered.nodes, filtered.outcome
        if not filtered.status.is_success:
            return (), filtered.status.reasons
        among = np.array([names is None or name in names for name in nodes.names], dtype=np.bool_)
        feasible = nodes.names_where(outcome.passed & among)
        reasons = outcome.count_reasons(among)
        return feasible, () if feasible else tuple(sorted(f"{count} {reason}" for reason, count in reasons.items()))

    pod, snapshot = cycle.pod, cycle.snapshot
    names = {profile.scheduler_name for profile in scheduler.config.profiles}
    return Holding(
        kueue=held_by_kueue(snapshot, pod, cycle.all_nodes.options, attempt),
        gates=tuple(gates_of_others(pod)),
        scheduler=None if pod.spec.scheduler_name in names else other_scheduler(snapshot, pod),
        group=group_of(scheduler, cycle, attempt),
    )
