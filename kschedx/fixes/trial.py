"""Trying a proposal: the same scheduler, on the cluster and with the pod as they would be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kschedx.errors import UndecidableError
from kschedx.fixes.model import Proposal
from kschedx.framework.cycle import Cycle
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState


class Result(Struct, frozen=True, kw_only=True):
    """What a trial showed."""

    feasible: tuple[str, ...]
    """Nodes on which the pod then passes every filter."""
    remaining: Mapping[str, int]
    """Plugin to the number of nodes that it rejects, the first to do so or not."""


def attempt(framework: Framework, cycle: Cycle, proposal: Proposal) -> Result:
    """Filter the pod of the proposal in its cluster."""
    changed = proposal.nodes or proposal.deleted or proposal.added is not None or proposal.claims
    if changed:
        snapshot = framework.snapshot
        if proposal.deleted:
            gone = frozenset(snapshot.pods.key(row) for row in proposal.deleted)
            snapshot = snapshot.without_pods(proposal.deleted).with_devices(snapshot.devices.after_deletion(gone))
        if proposal.nodes:
            snapshot = snapshot.with_nodes(proposal.nodes)
        if proposal.added is not None:
            snapshot = snapshot.with_added_node(proposal.added)
        if proposal.claims:
            snapshot = snapshot.with_claims(proposal.claims)
        framework = framework.on(snapshot)
    state = CycleState()
    try:
        _, status, names, _ = framework.run_pre_filter(state, proposal.pod)
        if not status.is_success:
            return Result(feasible=(), remaining={status.plugin or "PreFilter": len(framework.nodes)})
        nodes = framework.nodes
        if names is not None:
            rows = sorted(row for name in names if (row := nodes.cluster.index.get(name)) is not None)
            nodes = nodes.take(np.array(rows, dtype=np.int64))
        outcome = framework.passes_filters(state, proposal.pod, nodes)
    except UndecidableError:
        return Result(feasible=(), remaining={})
    feasible = tuple(nodes.name(int(row)) for row in np.flatnonzero(outcome.passed))
    remaining: dict[str, int] = {}
    for index, (name, verdicts) in enumerate(zip(outcome.plugins, outcome.verdicts, strict=True)):
        if count := int(np.count_nonzero(verdicts.rejected | (outcome.plugin == index))):
            remaining[name] = count
    return Result(feasible=feasible, remaining=remaining)
