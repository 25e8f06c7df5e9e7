"""The ProfileDifference document (`diff-profiles -o json`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from kschedx.errors import InputError, Place
from kschedx.explain.difference import Difference, Effect, Filling, Summary
from kschedx.explain.profile_changes import EvaluatedRows as PairPart
from kschedx.explain.profile_changes import Pair, ProfileChange
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import UnevaluatedDocument
from kschedx.kube.documents import Document, Json, document, part_of, to_json
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.snapshot.snapshot import Snapshot


class SetupComparison(Shown, Struct, frozen=True, kw_only=True):
    """Two scheduler setups, and the effect of their difference on pods, if there is a cluster."""

    before: Setup
    after: Setup
    changes: tuple[ProfileChange, ...]
    summary: Summary | None = None
    snapshot: Snapshot | None = None

    def to_dict(self) -> Json:
        return document(
            "ProfileDifference",
            ProfileDifferenceDocument,
            before=_setup(self.before),
            after=_setup(self.after),
            configuration=tuple(
                part_of(SettingDocument, change, before=change.before or None, after=change.after or None)
                for change in self.changes
            ),
            pods=None if self.summary is None else _pods_document(self.summary),
        )


class Comparison(SetupComparison, frozen=True, kw_only=True):
    """Two scheduler setups, and the effect of their difference on the pods of a cluster."""

    summary: Summary
    snapshot: Snapshot

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.summary.differences):,} of {self.summary.compared:,} pods differ>"

    @property
    def differences(self) -> tuple[Difference, ...]:
        """A record for each pod with another outcome."""
        return self.summary.differences

    def records(self) -> list[dict[str, object]]:
        """Return a row for each pod with another outcome."""
        return [
            {
                "pod": difference.pod,
                "effect": difference.effect.value,
                "before": difference.before.outcome.value,
                "after": difference.after.outcome.value,
                "old_node": difference.old_node or "",
                "new_node": difference.new_node or "",
                "plugins": ", ".join(difference.causes),
            }
            for difference in self.differences
        ]


_Answers = list[tuple[int, Difference | str | None]]
_Share = Callable[[Callable[[int], _Answers], Sequence[PairPart]], Iterator[_Answers]]
"""Evaluates the parts of a comparison and yields their answers in order."""


def _map_in_sequence(work: Callable[[int], _Answers], parts: Sequence[PairPart]) -> Iterator[_Answers]:
    yield from map(work, range(len(parts)))


def compare_pods(
    pair: Pair, rows: Sequence[int], left_out: Mapping[str, int], share: _Share = _map_in_sequence
) -> Summary:
    """Compare the outcomes of the pods in these rows of the snapshot under both setups."""
    pods = pair.snapshot.pods
    pair.prepare()
    parts = pair.parts(rows)

    def compared(part: int) -> _Answers:
        return [
            (row, difference if isinstance(difference, Difference | None) else str(difference))
            for row, difference in pair.differences(parts[part])
        ]

    differences: dict[int, Difference] = {}
    undecided: dict[int, str] = {}
    for answers in count_items(share(compared, parts), Phase.COMPARING, len(rows), "pods", weight=len):
        for row, answer in answers:
            if isinstance(answer, str):
                undecided[row] = answer
            elif answer is not None:
                differences[row] = answer
    return Summary(
        compared=len(rows),
        differences=tuple(differences[row] for row in sorted(differences)),
        undecided={pods.key(row): undecided[row] for row in sorted(undecided)},
        left_out=left_out,
    )


class SetupDocument(Document, frozen=True):
    name: str
    kubernetes_version: str
    profiles: tuple[str, ...]
    unknown_plugins: tuple[UnevaluatedDocument, ...]


class SettingDocument(Document, frozen=True):
    profile: str
    place: str
    subject: str
    setting: str
    before: str | None
    after: str | None


class DifferenceGroupDocument(Document, frozen=True):
    effect: Effect
    causes: tuple[str, ...]
    count: int
    differences: tuple[Difference, ...] = field(name="pods")


class RepackingDocument(Document, frozen=True):
    pods: int = field(name="placedAnew")
    now: Filling
    before: Filling
    after: Filling


class PodsDocument(Document, frozen=True):
    compared: int
    same: int
    different: int
    counts: Mapping[Effect, int] = field(name="effects")
    undecided: Mapping[str, str]
    left_out: Mapping[str, int]
    groups: tuple[DifferenceGroupDocument, ...]
    repacking: RepackingDocument | None = field(name="nodes")


class ProfileDifferenceDocument(Document, frozen=True):
    before: SetupDocument
    after: SetupDocument
    configuration: tuple[SettingDocument, ...]
    pods: PodsDocument | None  # None if only the configurations were compared


def _setup(setup: Setup) -> SetupDocument:
    names = tuple(profile.scheduler_name for profile in setup.profiles)
    return SetupDocument(setup.name, setup.release.version, names, setup.unknown_plugin_documents)


def _pods_document(summary: Summary) -> PodsDocument:
    return part_of(
        PodsDocument,
        summary,
        different=len(summary.differences),
        left_out=summary.left_out,
        groups=tuple(
            DifferenceGroupDocument(group.effect, group.causes, len(group.differences), group.differences)
            for group in summary.groups
        ),
    )


# One question about many pods, answered in parts: the pods of each part, and the merged document.

_T = TypeVar("_T")
_PartDocument = Mapping[str, Any]

_KEY = "shard"  # the key in the document of a part; a complete document lacks it


class Shard(Struct, frozen=True, kw_only=True):
    """Part `index` of `of`, counted from 1."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `3/8`. Raises `InputError`."""
        index, slash, of = text.partition("/")
        if slash and index.isascii() and of.isascii() and index.isdigit() and of.isdigit():
            shard = cls(index=int(index), of=int(of))
            if 1 <= shard.index <= shard.of:
                return shard
        raise InputError(f'--shard: found "{text}", allowed is I/N, with I from 1 to N')

    def part(self, rows: Sequence[_T]) -> Sequence[_T]:
        """Return the rows of this part. Adjacent rows stay together, so the parts in order give the whole in order."""
        return rows[len(rows) * (self.index - 1) // self.of : len(rows) * self.index // self.of]

    def mark(self, document: _PartDocument) -> dict[str, Any]:
        return {**document, _KEY: {"index": self.index, "of": self.of}}


class DifferencePart(Struct, frozen=True, kw_only=True):
    """The document of a part, and its file."""

    source: str
    document: _PartDocument

    @property
    def shard(self) -> Shard:
        """The part's position. Raises `InputError` if the document is not a part."""
        try:
            return msgspec.convert(self.document[_KEY], Shard)
        except (KeyError, msgspec.ValidationError):
            place = Place(source=self.source)
            raise InputError("not a part of an answer as --shard writes it", place=place) from None


def merge_parts(parts: Sequence[DifferencePart]) -> dict[str, Any]:
    """Merge the documents of all parts into that of the whole question. Raises `InputError`."""
    ordered = sorted(parts, key=lambda part: part.shard.index)
    _check(ordered)
    try:
        return _together(ordered)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("not a complete part as --shard writes it", source=ordered[0].source) from None


def _together(ordered: Sequence[DifferencePart]) -> dict[str, Any]:
    first = {key: value for key, value in ordered[0].document.items() if key != _KEY}
    documents = [part.document for part in ordered]
    match first.get("kind"):
        case "ExplanationList":
            lists = {key: [item for part in documents for item in part[key]] for key in ("items", "undecided")}
            return {**first, **lists}
        case "ProfileDifference":
            return {**first, "pods": _pods([part["pods"] for part in documents])}
        case kind:
            raise InputError(f"a {kind} has no parts", source=ordered[0].source)


def _check(ordered: Sequence[DifferencePart]) -> None:
    """Raise `InputError` unless each part is there once and belongs to the same question."""
    first = ordered[0]
    of = first.shard.of
    for part in ordered:
        if part.shard.of != of or _question(part) != _question(first):
            raise InputError(f"is a part of another answer than {first.source}", source=part.source)
    indices = [part.shard.index for part in ordered]
    missing = sorted(set(range(1, of + 1)) - set(indices))
    if missing:
        names = ", ".join(f"{index}/{of}" for index in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(f"parts are missing: {names}")
    for shard, other in pairwise(ordered):
        if shard.shard.index == other.shard.index:
            raise InputError(f"the same part as {shard.source}: {shard.shard.index}/{of}", source=other.source)


def _question(part: DifferencePart) -> _PartDocument:
    """Return the fields that all parts of an answer share."""
    return {key: part.document.get(key) for key in ("apiVersion", "kind", "before", "after", "configuration")}


def _pods(documents: Sequence[_PartDocument]) -> Json:
    whole = Summary(
        compared=sum(item["compared"] for item in documents),
        differences=tuple(
            msgspec.convert(pod, Difference) for item in documents for group in item["groups"] for pod in group["pods"]
        ),
        undecided={pod: reason for item in documents for pod, reason in item["undecided"].items()},
    )
    # both values are about all pods: every part has leftOut, and the first has nodes if all pods are decided
    nodes = None if whole.undecided else documents[0].get("nodes")
    return {**to_json(_pods_document(whole)), "leftOut": documents[0]["leftOut"], "nodes": nodes}
