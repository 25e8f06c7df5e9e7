"""What became of the calls to HTTP extenders, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.notes.extenders import (
    Consequence,
    ExtenderFailed,
    ExtenderNote,
    ExtendersNotAsked,
    NodesDroppedSilently,
    WholeNodesAnswered,
)


def text(note: ExtenderNote) -> str:
    match note:
        case ExtendersNotAsked(extenders=extenders):
            names = ", ".join(extenders)
            if not note.stands:
                return (
                    f"--extenders call asks the extender at {names} from this machine; --extenders FILE reads its "
                    "answers"
                )
            told = f"the extender at {names} was not asked: the answer stands whatever it would say"
            choosing = ", ".join(note.choosing_victims)
            return f"{told}; {choosing} may choose other pods to evict" if choosing else told
        case ExtenderFailed():
            return f"the extender at {note.url} failed, {_consequence(note.consequence)}: {note.error}"
        case NodesDroppedSilently(nodes=nodes):
            were = "node was" if len(nodes) == 1 else "nodes were"
            return (
                f"{len(nodes):,} {were} left out by extenders without a word: kube-scheduler counts such nodes nowhere"
            )
        case WholeNodesAnswered(extender=extender):
            return (
                f"{extender} answers with whole nodes: score plugins see them without pods and images from there on "
                "(kubernetes/kubernetes issue 141781)"
            )
        case _:
            assert_never(note)


def _consequence(found: Consequence) -> str:
    match found:
        case Consequence.AS_IF_ABSENT:
            return "it may fail (ignorable), so it is as if it were not there"
        case Consequence.ENDS_FILTER:
            return "that ends it"
        case Consequence.NO_SCORES:
            return "it gives no scores"
        case Consequence.CANDIDATES_STAY:
            return "it may fail (ignorable), so the candidates stay"
        case Consequence.NO_EVICTION:
            return "nobody is evicted"
        case _:
            assert_never(found)
