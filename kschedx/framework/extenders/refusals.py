"""What extenders refused, as the verdicts of one more plugin: so that whoever reads verdicts reads these too."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kschedx.findings import DroppedByExtender, Finding, RefusedByExtender
from kschedx.framework.extenders.calls import Trace
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.snapshot.nodes import NodeTable

EXTENDER = "Extender"
"""As kube-scheduler calls all of them together (framework.ExtenderName)."""


def with_refusals(outcome: FilterOutcome, nodes: NodeTable, trace: Trace) -> FilterOutcome:
    """`outcome` is the plugins' on `nodes`.

    A node that is in the running to the end has no verdict here, whatever an answer said of it.
    """
    left = frozenset(trace.left or ())
    statuses = [SUCCESS if name in left else _status(name, trace) for name in nodes.names]
    refused = np.array([not status.is_success for status in statuses], dtype=np.bool_)
    if not refused.any():
        return outcome
    verdicts = Verdicts.of_rows(statuses)
    codes, plugin = outcome.codes.copy(), outcome.plugin.copy()
    codes[refused], plugin[refused] = verdicts.codes[refused], len(outcome.plugins)
    told = {row: status for row, status in outcome.with_nominated.items() if not refused[row]}
    return replace(
        outcome,
        plugins=(*outcome.plugins, EXTENDER),
        verdicts=(*outcome.verdicts, verdicts),
        codes=codes,
        plugin=plugin,
        with_nominated=told,
    )


def _status(name: str, trace: Trace) -> Status:
    status = trace.statuses.get(name)
    if status is not None:
        return replace(status, plugin=EXTENDER, findings=(_refused(name, status, trace),))
    if name not in trace.silent:
        return SUCCESS
    by = next((call.extender for call in trace.filter if name in call.asked and name not in call.left), None)
    finding = DroppedByExtender(url="" if by is None else trace.urls[by])
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, plugin=EXTENDER, findings=(finding,))


def _refused(name: str, status: Status, trace: Trace) -> Finding:
    """The last extender that named the node has the last word."""
    named = [call.extender for call in trace.filter if name in call.failed or name in call.failed_and_unresolvable]
    return RefusedByExtender(
        url=trace.urls[named[-1]],
        message=", ".join(status.reasons),
        is_resolvable=status.code is Code.UNSCHEDULABLE,
    )
