"""What the cluster's own kube-scheduler said of the pod, held against what kschedx says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.explain.events import Event, EventPart, Stage, parse
from kschedx.explain.notes.recorded import (
    Contrast,
    FitsHere,
    FoundHereOnly,
    Moved,
    NoPreemptionThere,
    NotFoundHere,
    OfUnknownPlugin,
    OtherCounts,
    OtherNodeCount,
    OtherPreemption,
    OtherRelease,
    OtherWords,
)
from kschedx.snapshot.events import CUT, FailedScheduling
from kschedx.snapshot.snapshot import Snapshot


def recorded(snapshot: Snapshot, pod: Pod) -> FailedScheduling | None:
    """The last refusal: the pod's PodScheduled condition, else its newest event.

    The condition was read together with the pod, is never cut, and is there where nobody thought of the events. When it
    was said, and how often, is known from the event.
    """
    event = snapshot.failed_scheduling.get(pod.key)
    if event is not None and event.uid and pod.metadata.uid and event.uid != pod.metadata.uid:
        event = None
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            if event is not None and _is_same(event, condition.message):
                return FailedScheduling(message=condition.message, count=event.count, last_seen=event.last_seen)
            return FailedScheduling(message=condition.message) if condition.message else event
    return event


def _is_same(theirs: FailedScheduling, message: str) -> bool:
    """The same text, as far as the event holds it."""
    if theirs.is_cut:
        return message.startswith(theirs.message.removesuffix(CUT))
    return theirs.message == message


def contrasts(theirs: FailedScheduling, ours: str, *, nominated: bool = False) -> tuple[Contrast, ...]:
    """What is different about the two messages; none where they are equal.

    A pod that is `nominated` to a node was told of before its victims were gone, and then nothing of preemption.
    """
    if _is_same(theirs, ours):
        return ()
    if not ours:
        return (FitsHere(),)
    told, found = parse(theirs.message.removesuffix(CUT)), parse(ours)
    parts = told.parts[:-1] if theirs.is_cut else told.parts  # the last one may be half a text
    says_nothing = nominated and not any(part.stage is Stage.PREEMPTION for part in told.parts)
    ours_told = [part for part in found.parts if not (says_nothing and part.stage is Stage.PREEMPTION)]
    different = [*_counted(told, found), *_unmatched(parts, ours_told, is_cut=theirs.is_cut, speaks=not says_nothing)]
    return tuple(different) or (() if says_nothing else (OtherRelease(),))


class _Pair(Struct, frozen=True, kw_only=True):
    """A reason of theirs that is one of ours too, whatever its words."""

    theirs: EventPart
    ours: EventPart


def _counted(told: Event, found: Event) -> Iterator[OtherNodeCount]:
    if told.nodes is not None and found.nodes is not None and told.nodes != found.nodes:
        yield OtherNodeCount(there=told.nodes, here=found.nodes)


def _unmatched(
    theirs: Sequence[EventPart], ours: Sequence[EventPart], *, is_cut: bool, speaks: bool
) -> Iterator[Contrast]:
    """The reasons that reject nodes, then preemption, which follows from them, where the event `speaks` of it."""
    pairs = [
        _Pair(theirs=part, ours=other)
        for part in theirs
        if (other := next((one for one in ours if _is_same_reason(part, one)), None)) is not None
    ]
    paired = [pair.theirs for pair in pairs]
    gone = [part for part in theirs if part not in paired]
    new = [part for part in ours if all(part != pair.ours for pair in pairs)] if not is_cut else []
    filters = list(_changes(Stage.FILTER, pairs, gone, new))
    yield from filters
    if not filters and speaks:
        yield from _preemption(theirs, pairs, gone, new, is_cut=is_cut)


def _changes(
    stage: Stage, pairs: Sequence[_Pair], gone: Sequence[EventPart], new: Sequence[EventPart]
) -> Iterator[Contrast]:
    moved: list[Moved] = []
    for ours in dict.fromkeys(pair.ours for pair in pairs if pair.ours.stage is stage):
        same = [pair.theirs for pair in pairs if pair.ours == ours]
        # one text of ours can be several of theirs: older releases name each taint
        if all(part.count is not None for part in same) and ours.count is not None:
            count = sum(part.count or 0 for part in same)
            if count != ours.count:
                moved.append(Moved(text=ours.text, there=count, here=ours.count))
    if moved:
        yield OtherCounts(moved=tuple(moved))
    other = [pair.theirs for pair in pairs if pair.theirs.stage is stage and pair.theirs.text != pair.ours.text]
    if other:
        yield OtherWords(texts=_texts(other))
    strange = [part for part in gone if part.stage is stage and not part.is_known]
    if strange:
        yield OfUnknownPlugin(texts=_texts(strange))
    held = [part for part in gone if part.stage is stage and part.is_known]
    if held:
        yield NotFoundHere(texts=_texts(held))
    found = [part for part in new if part.stage is stage]
    if found:
        yield FoundHereOnly(texts=_texts(found))


def _texts(parts: Sequence[EventPart]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.text for part in parts))


def _preemption(
    theirs: Sequence[EventPart],
    pairs: Sequence[_Pair],
    gone: Sequence[EventPart],
    new: Sequence[EventPart],
    *,
    is_cut: bool,
) -> Iterator[Contrast]:
    if not any(part.stage is Stage.PREEMPTION for part in theirs):
        if not is_cut:
            yield NoPreemptionThere()
        return
    if next(_changes(Stage.PREEMPTION, pairs, gone, new), None) is not None:
        yield OtherPreemption()


def _is_same_reason(theirs: EventPart, ours: EventPart) -> bool:
    """The same text, or the same reason in the words of another release, which may name its subject or not."""
    if theirs.stage is not ours.stage:
        return False
    if theirs.text == ours.text:
        return True
    is_one = bool(theirs.reason) and (theirs.plugin, theirs.reason) == (ours.plugin, ours.reason)
    return is_one and (not theirs.subject or not ours.subject or theirs.subject == ours.subject)
