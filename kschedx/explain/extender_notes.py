"""What a reader has to know of the HTTP extenders of a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.explain.notes.extenders import (
    Consequence,
    ExtenderFailed,
    ExtenderNote,
    ExtendersNotAsked,
    NodesDroppedSilently,
    WholeNodesAnswered,
)
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.extenders.calls import Trace
from kschedx.framework.unheard import Kind, Stake


def extender_notes(cycle: Cycle) -> Iterator[ExtenderNote]:
    yield from _not_asked(cycle)
    trace = cycle.extenders
    if trace is not None and trace.called:
        yield from _failures(trace)
        if trace.silent:
            yield NodesDroppedSilently(nodes=tuple(trace.silent))
        yield from _whole(trace)


def _not_asked(cycle: Cycle) -> Iterator[ExtendersNotAsked]:
    """Who would have had a say; the sentence on the screen says it where that leaves the answer open."""
    unasked = [one for one in cycle.unheard if one.kind is Kind.EXTENDER]
    names = tuple(one.name for one in unasked)
    if not unasked:
        return
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        preempts = cycle.post_filter is not None and bool(cycle.post_filter.candidates)
        choosing = tuple(one.name for one in unasked if preempts and "preemptVerb" in one.where)
        yield ExtendersNotAsked(extenders=names, stands=True, choosing_victims=choosing)
    elif cycle.outcome is not Outcome.ERROR and any(one.stake is not Stake.NOTHING for one in unasked):
        yield ExtendersNotAsked(extenders=names, stands=False)


def _failures(trace: Trace) -> Iterator[ExtenderFailed]:
    for filtered in trace.filter:
        if filtered.error:
            then = Consequence.AS_IF_ABSENT if filtered.ignored else Consequence.ENDS_FILTER
            yield _failed(trace, filtered.extender, filtered.error, then)
    for scored in trace.scores:
        if scored.error:
            yield _failed(trace, scored.extender, scored.error, Consequence.NO_SCORES)
    for preempted in trace.preempt:
        if preempted.error:
            then = Consequence.CANDIDATES_STAY if preempted.ignored else Consequence.NO_EVICTION
            yield _failed(trace, preempted.extender, preempted.error, then)


def _failed(trace: Trace, extender: int, error: str, then: Consequence) -> ExtenderFailed:
    return ExtenderFailed(url=trace.urls[extender], extender=extender, error=error, consequence=then)


def _whole(trace: Trace) -> Iterator[WholeNodesAnswered]:
    by = [trace.urls[call.extender] for call in trace.filter if call.whole]
    if by and trace.left is not None and len(trace.left) > 1:
        yield WholeNodesAnswered(extender=by[-1])
