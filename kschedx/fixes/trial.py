"""Trying a proposal: the same scheduler, on the cluster and with the pod as they would be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.fixes.model import Proposal
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler


class Result(Struct, frozen=True, kw_only=True):
    """What a trial showed."""

    feasible: tuple[str, ...]
    """Nodes on which the pod then passes every filter."""
    remaining: Mapping[str, int]
    """Plugin to the number of nodes that it rejects, the first to do so or not."""


def attempt(scheduler: Scheduler, cycle: Cycle, proposal: Proposal) -> Result:
    """Filter the pod of the proposal in its cluster."""
    changed = proposal.nodes or proposal.deleted or proposal.added is not None or proposal.claims
    if changed:
        snapshot = scheduler.snapshot
        if proposal.deleted:
            gone = frozenset(snapshot.pods.key(row) for row in proposal.deleted)
            snapshot = snapshot.without_pods(proposal.deleted).with_devices(snapshot.devices.after_deletion(gone))
        if proposal.nodes:
            snapshot = snapshot.with_nodes(proposal.nodes)
        if proposal.added is not None:
            snapshot = snapshot.with_added_node(proposal.added)
        if proposal.claims:
            snapshot = snapshot.with_claims(proposal.claims)
        scheduler = scheduler.on(snapshot)
    try:
        filtered = scheduler.filter(proposal.pod, cycle.profile)
    except UndecidableError:
        return Result(feasible=(), remaining={})
    if not filtered.status.is_success:
        return Result(feasible=(), remaining={filtered.status.plugin or "PreFilter": len(scheduler.nodes)})
    nodes, outcome = filtered.nodes, filtered.outcome
    passed = [nodes.name(int(row)) for row in np.flatnonzero(outcome.passed)]
    # no trial asks an extender, so what it refused stays refused
    refused = cycle.refused
    feasible = tuple(name for name in passed if name not in refused)
    remaining: dict[str, int] = {"Extender": len(passed) - len(feasible)} if len(feasible) < len(passed) else {}
    for index, (name, verdicts) in enumerate(zip(outcome.plugins, outcome.verdicts, strict=True)):
        if count := int(np.count_nonzero(verdicts.rejected | (outcome.plugin == index))):
            remaining[name] = count
    return Result(feasible=feasible, remaining=remaining)
