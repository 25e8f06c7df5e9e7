"""The cluster's own event beside kschedx's message, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from kschedx.explain.notes.recorded import (
    Contrast,
    FitsHere,
    FoundHereOnly,
    NoPreemptionThere,
    NotFoundHere,
    OfUnknownPlugin,
    OtherCounts,
    OtherNodeCount,
    OtherPreemption,
    OtherRelease,
    OtherWords,
    RecordedEvent,
)
from kschedx.render.units import listed

_ELSEWHERE = "another moment"
"""The usual reason: the pod waits, and the cluster goes on."""
_MOST_TEXTS = 3
_MOST_LETTERS = 100
"""Of one text: other schedulers and extenders write what they like."""


def text(note: RecordedEvent) -> str:
    times = f", {note.count:,} times" if note.count > 1 else ""
    whole, _, fraction = note.last_seen.partition(".")
    seen = f" (last seen {whole}{'Z' if fraction else ''}{times})" if note.last_seen else ""
    differs = "; ".join(map(clause, note.contrasts))
    return f"the cluster's own event{seen} {f'differs: {differs}' if differs else 'says the same'}"


def facts(note: RecordedEvent) -> dict[str, object]:
    seen: dict[str, object] = {"count": note.count, "lastSeen": note.last_seen} if note.last_seen else {}
    return {"message": note.message, "differences": list(map(clause, note.contrasts))} | seen


def clause(contrast: Contrast) -> str:
    """What is different, and what that comes from."""
    match contrast:
        case FitsHere():
            return f"kschedx finds a node for it: {_ELSEWHERE}, or another configuration"
        case OtherNodeCount(there=there, here=here):
            return f"it counts {there:,} nodes, the snapshot has {here:,}: {_ELSEWHERE}, or an incomplete snapshot"
        case OtherCounts(moved=moved):
            told = (f"{one.there:,} × {_quoted(one.text)} there, {one.here:,} here" for one in moved)
            return f"{listed(told, _MOST_TEXTS)}: {_ELSEWHERE}"
        case OtherWords(texts=texts):
            return f"{_listed(texts)} is how another release says it"
        case OfUnknownPlugin(texts=texts):
            return f"{_listed(texts)} is of no plugin that kschedx knows: an extender's, or another scheduler's"
        case NotFoundHere(texts=texts):
            return f"{_listed(texts)} is not found here: {_ELSEWHERE}, or another configuration"
        case FoundHereOnly(texts=texts):
            return f"{_listed(texts)} is found here only"
        case NoPreemptionThere():
            return "it says nothing of preemption: another release, or no preemption there"
        case OtherPreemption():
            return f"preemption ended otherwise there: other pods on the nodes at {_ELSEWHERE}, or another release"
        case OtherRelease():
            return "the words are those of another release"
        case _:
            assert_never(contrast)


def _listed(texts: Iterable[str]) -> str:
    return listed(dict.fromkeys(map(_quoted, texts)), _MOST_TEXTS)


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"}"'
