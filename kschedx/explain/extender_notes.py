"""What a reader has to know of the HTTP extenders of a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.extenders.calls import Trace
from kschedx.framework.unheard import Kind, Stake

NOT_ASKED = "extender-not-asked"
FAILED = "extender-failed"
SILENT = "extender-silent"
WHOLE_NODES = "extender-whole-nodes"

Text = tuple[str, str, dict[str, object]]
"""A note's id, text and facts."""


def extender_notes(cycle: Cycle) -> Iterator[Text]:
    yield from _not_asked(cycle)
    trace = cycle.extenders
    if trace is not None and trace.called:
        yield from _failures(trace)
        yield from _silent(trace)
        yield from _whole(trace)


def _not_asked(cycle: Cycle) -> Iterator[Text]:
    """Who would have had a say; the sentence on the screen says it where that leaves the answer open."""
    unasked = [one for one in cycle.unheard if one.kind is Kind.EXTENDER]
    if not unasked:
        return
    names = ", ".join(one.name for one in unasked)
    if cycle.outcome is Outcome.UNSCHEDULABLE:
        text = f"the extender at {names} was not asked: the answer stands whatever it would say"
        if cycle.post_filter is not None and cycle.post_filter.candidates:
            preempting = [one.name for one in unasked if "preemptVerb" in one.where]
            if preempting:
                text += f"; {', '.join(preempting)} may choose other pods to evict"
    elif cycle.outcome is not Outcome.ERROR and any(one.stake is not Stake.NOTHING for one in unasked):
        text = f"--extenders call asks the extender at {names} from this machine; --extenders FILE reads its answers"
    else:
        return
    yield NOT_ASKED, text, {"extenders": [one.name for one in unasked]}


def _failures(trace: Trace) -> Iterator[Text]:
    for filtered in trace.filter:
        if filtered.error:
            then = "it may fail (ignorable), so it is as if it were not there" if filtered.ignored else "that ends it"
            yield _failed(trace, filtered.extender, filtered.error, then)
    for scored in trace.scores:
        if scored.error:
            yield _failed(trace, scored.extender, scored.error, "it gives no scores")
    for preempted in trace.preempt:
        if preempted.error:
            then = "it may fail (ignorable), so the candidates stay" if preempted.ignored else "nobody is evicted"
            yield _failed(trace, preempted.extender, preempted.error, then)


def _failed(trace: Trace, extender: int, error: str, then: str) -> Text:
    text = f"the extender at {trace.urls[extender]} failed, {then}: {error}"
    return FAILED, text, {"extender": extender, "error": error}


def _silent(trace: Trace) -> Iterator[Text]:
    if trace.silent:
        number = len(trace.silent)
        noun = "node was" if number == 1 else "nodes were"
        text = f"{number:,} {noun} left out by extenders without a word: kube-scheduler counts such nodes nowhere"
        yield SILENT, text, {"nodes": list(trace.silent)}


def _whole(trace: Trace) -> Iterator[Text]:
    by = [trace.urls[call.extender] for call in trace.filter if call.whole]
    if by and trace.left is not None and len(trace.left) > 1:
        text = (
            f"{by[-1]} answers with whole nodes: score plugins see them without pods and images from there on "
            "(kubernetes/kubernetes issue 141781)"
        )
        yield WHOLE_NODES, text, {"extender": by[-1]}
