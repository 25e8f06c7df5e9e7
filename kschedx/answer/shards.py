"""One question over many pods in parts: which pods a part has, and the parts' documents as one again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kschedx.answer.difference_document import pods_document
from kschedx.errors import InputError, Place
from kschedx.explain.difference import Difference, Effect, ScoreChange, Shift, Side, Summary, Turn
from kschedx.explain.story import Preemption
from kschedx.framework.cycle import Outcome

T = TypeVar("T")
Json = Mapping[str, Any]

KEY = "shard"
"""Of a part's document; the whole has none."""


class Shard(Struct, frozen=True, kw_only=True):
    """Part `index` of `of`, counted from 1."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`3/8`. Raises `InputError`."""
        index, slash, of = text.partition("/")
        if slash and index.isascii() and of.isascii() and index.isdigit() and of.isdigit():
            found = cls(index=int(index), of=int(of))
            if 1 <= found.index <= found.of:
                return found
        raise InputError(f'--shard: found "{text}", allowed is I/N, with I from 1 to N')

    def part(self, rows: Sequence[T]) -> Sequence[T]:
        """Neighbours stay together, so that the parts in their order are the whole in its order."""
        return rows[len(rows) * (self.index - 1) // self.of : len(rows) * self.index // self.of]

    def mark(self, document: Json) -> dict[str, Any]:
        return {**document, KEY: {"index": self.index, "of": self.of}}


class Part(Struct, frozen=True, kw_only=True):
    """A part's document, and the file that it is from."""

    source: str
    document: Json

    @property
    def shard(self) -> Shard:
        """Raises `InputError` where the document is none of a part."""
        try:
            return msgspec.convert(self.document[KEY], Shard)
        except (KeyError, msgspec.ValidationError):
            place = Place(source=self.source)
            raise InputError("no part of an answer, as --shard makes it", place=place) from None


def merged(parts: Sequence[Part]) -> dict[str, Any]:
    """The document of the whole question, as if it had been asked in one piece. Raises `InputError`."""
    ordered = sorted(parts, key=lambda part: part.shard.index)
    _check(ordered)
    try:
        return _together(ordered)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("not the whole of what --shard makes", place=Place(source=ordered[0].source)) from None


def _together(ordered: Sequence[Part]) -> dict[str, Any]:
    first = {key: value for key, value in ordered[0].document.items() if key != KEY}
    documents = [part.document for part in ordered]
    match first.get("kind"):
        case "ExplanationList":
            lists = {key: [item for one in documents for item in one[key]] for key in ("items", "undecided")}
            return {**first, **lists}
        case "ProfileDifference":
            return {**first, "pods": _pods([one["pods"] for one in documents])}
        case kind:
            raise InputError(f"a {kind} has no parts", place=Place(source=ordered[0].source))


def _check(ordered: Sequence[Part]) -> None:
    """Every part once, of the same question."""
    first = ordered[0]
    of = first.shard.of
    for part in ordered:
        if part.shard.of != of or _question(part) != _question(first):
            raise InputError(f"is a part of another answer than {first.source}", place=Place(source=part.source))
    found = [part.shard.index for part in ordered]
    missing = sorted(set(range(1, of + 1)) - set(found))
    if missing:
        names = ", ".join(f"{index}/{of}" for index in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(f"parts are missing: {names}")
    for one, other in pairwise(ordered):
        if one.shard.index == other.shard.index:
            raise InputError(f"the same part as {one.source}: {one.shard.index}/{of}", place=Place(source=other.source))


def _question(part: Part) -> Json:
    """What the parts of one answer have in common."""
    return {key: part.document.get(key) for key in ("apiVersion", "kind", "before", "after", "configuration")}


def _pods(found: Sequence[Json]) -> dict[str, object]:
    made = pods_document(
        Summary(
            compared=sum(one["compared"] for one in found),
            differences=tuple(_difference(pod) for one in found for group in one["groups"] for pod in group["pods"]),
            undecided={pod: reason for one in found for pod, reason in one["undecided"].items()},
        )
    )
    # both are told of all pods: the one by every part, the other by the first, where all pods are decided
    nodes = None if made["undecided"] else found[0].get("nodes")
    return {**made, "leftOut": found[0]["leftOut"], "nodes": nodes}


def _difference(document: Json) -> Difference:
    """The reverse of the document's entry."""
    return Difference(
        pod=document["pod"],
        effects=tuple(map(Effect, document["effects"])),
        before=_side(document["before"]),
        after=_side(document["after"]),
        old_node=document["oldNode"] or "",
        new_node=document["newNode"] or "",
        turned=tuple(
            Turn(plugin=turn["plugin"], before=turn["before"], after=turn["after"]) for turn in document["turnedBy"]
        ),
        filtered_by=document["filteredBy"] or "",
        lost=tuple(Shift(plugin=plugin, nodes=nodes) for plugin, nodes in document["lost"].items()),
        gained=tuple(Shift(plugin=plugin, nodes=nodes) for plugin, nodes in document["gained"].items()),
        reworded=tuple(document["reworded"]),
        rescored=tuple(
            ScoreChange(plugin=plugin, nodes=change["nodes"], largest=change["largest"])
            for plugin, change in document["scores"].items()
        ),
    )


def _side(document: Json) -> Side:
    return Side(
        outcome=Outcome(document["outcome"]),
        nodes=tuple(document["nodes"]),
        node_count=document["nodeCount"],
        total=document["total"],
        margin=document["margin"],
        runner_up=document["runnerUp"] or "",
        feasible=document["feasible"],
        message=document["message"],
        preemptions=tuple(
            Preemption(node=one["node"], victims=tuple(one["victims"]), pdb_violations=one["pdbViolations"])
            for one in document["preemptions"]
        ),
    )
