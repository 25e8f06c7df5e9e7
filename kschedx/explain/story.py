"""A cycle reduced to what somebody would tell about it, so that two of them can be held against each other.

A story is read from a cycle, or from the document that was saved of one (`to_dict`, `from_dict`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.framework.cycle import Cycle, Outcome, Scores
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.status import Code
from kschedx.snapshot.columns import BoolArray, IntArray, distinct

if TYPE_CHECKING:
    from kschedx.framework.moving import Outlook, Rejected
    from kschedx.framework.runtime import Framework

API_VERSION = "kschedx/v1"
KIND = "Story"

FITS = -1
UNSEEN = -2
"""No Filter plugin saw the node: PreFilter left it out, or rejected the pod."""


class Rejection(Struct, frozen=True, kw_only=True):
    """The plugin at which kube-scheduler stops, in its own words."""

    plugin: str
    code: str
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, rejected: Rejected) -> Rejection:
        return cls(plugin=rejected.plugin, code=rejected.code.text, reasons=rejected.reasons)


class Preemption(Struct, frozen=True, kw_only=True):
    """A node that preemption would take, one of the best."""

    node: str
    victims: tuple[str, ...]
    pdb_violations: int


class Story(Struct, frozen=True, kw_only=True, dict=True):
    """What becomes of one pod. All arrays are (node,), in the order of `nodes`."""

    pod: str
    version: str
    profile: str
    """Its schedulerName."""
    outcome: Outcome
    message: str
    chosen: tuple[str, ...]
    """The nodes among which kube-scheduler picks."""
    stops: tuple[Rejection, ...]
    """What rejects the pod before any node is looked at."""
    nodes: tuple[str, ...]
    verdicts: IntArray
    """Index into `rejections`, `FITS` or `UNSEEN`."""
    rejections: tuple[Rejection, ...]
    weights: Mapping[str, int]
    """The plugins that scored, with their weights."""
    scores: Mapping[str, IntArray]
    """Plugin to what it adds to the totals, weight included; 0 where nothing was scored."""
    totals: IntArray
    """-1 where nothing was scored."""
    preemptions: tuple[Preemption, ...] = ()
    """On the best candidates."""
    candidates: int = 0
    """Nodes on which preemption would make room."""
    index: Mapping[str, int] | None = None
    """`nodes` to their rows, where somebody has that."""

    @property
    def fits(self) -> BoolArray:
        fits: BoolArray = self.verdicts == FITS
        return fits

    @property
    def feasible(self) -> int:
        """How many nodes fit."""
        return int(np.count_nonzero(self.fits))

    def nodes_of(self, rejection: int) -> tuple[str, ...]:
        """The nodes that are rejected so; an index into `rejections`."""
        return tuple(self.nodes[row] for row in np.flatnonzero(self.verdicts == rejection).tolist())

    def row(self, node: str) -> int:
        return self.nodes.index(node) if self.index is None else self.index[node]

    def rejection(self, row: int) -> Rejection | None:
        """Why a node is rejected; where no plugin saw it, what rejects the pod as a whole, if anything does."""
        verdict = int(self.verdicts[row])
        if verdict >= 0:
            return self.rejections[verdict]
        return self.stops[0] if verdict == UNSEEN and self.stops else None

    @cached_property
    def total(self) -> int | None:
        """The highest total."""
        highest = int(self.totals.max(initial=-1))
        return None if highest < 0 else highest

    @cached_property
    def runner_up(self) -> int | None:
        """The row of the best node behind the highest total."""
        if self.total is None:
            return None
        behind = np.where(self.totals < self.total, self.totals, -1)
        row = int(behind.argmax())
        return row if behind[row] >= 0 else None

    @property
    def margin(self) -> int | None:
        """The highest total less the runner-up's."""
        row = self.runner_up
        return None if row is None or self.total is None else self.total - int(self.totals[row])

    # --- from a cycle

    @classmethod
    def of(cls, cycle: Cycle) -> Story:
        names = cycle.all_nodes.cluster.names
        verdicts = np.full(len(names), UNSEEN, dtype=np.int64)
        rejections: tuple[Rejection, ...] = ()
        if cycle.filter is not None and cycle.nodes is not None:
            verdicts[cycle.nodes.rows], rejections = _known_verdicts(cycle.filter)
        scores, totals = _scores(cycle.scores, len(names))
        result = cycle.post_filter
        pods = cycle.snapshot.pods
        best = () if result is None else result.best
        return cls(
            pod=cycle.pod.key,
            version=cycle.release.version,
            profile=cycle.profile.scheduler_name,
            outcome=cycle.outcome,
            message=cycle.message,
            chosen=tuple(names[row] for row in cycle.choice),
            stops=tuple(_stops(cycle)),
            nodes=names,
            verdicts=verdicts,
            rejections=rejections,
            weights={} if cycle.scores is None else cycle.scores.weights,
            scores=scores,
            totals=totals,
            preemptions=tuple(
                Preemption(
                    node=names[candidate.node],
                    victims=tuple(map(pods.key, candidate.victims)),
                    pdb_violations=candidate.pdb_violations,
                )
                for candidate in (() if result is None else result.candidates)
                if candidate.node in best
            ),
            candidates=0 if result is None else len(result.candidates),
            index=cycle.all_nodes.cluster.index,
        )

    @classmethod
    def of_outlook(cls, pod: str, outlook: Outlook, framework: Framework, rejections: tuple[Rejection, ...]) -> Story:
        """Of a pod that fits. `rejections` are the outlook's."""
        cluster = framework.nodes.cluster
        totals = outlook.totals
        return cls(
            pod=pod,
            version=framework.release.version,
            profile=framework.profile.scheduler_name,
            outcome=Outcome.SCHEDULED,
            message="",
            chosen=tuple(cluster.names[row] for row in np.flatnonzero(totals == totals.max()).tolist()),
            stops=(),
            nodes=cluster.names,
            verdicts=outlook.verdicts,
            rejections=rejections,
            weights=outlook.weights,
            scores=outlook.scores,
            totals=totals,
            index=cluster.index,
        )

    # --- as a document

    def to_dict(self) -> dict[str, object]:
        """Plain values; nodes that share a verdict are listed together."""
        groups: dict[Rejection, list[str]] = {}
        for name, verdict in zip(self.nodes, self.verdicts.tolist(), strict=True):
            if verdict >= 0:
                groups.setdefault(self.rejections[verdict], []).append(name)
        unseen = [name for name, verdict in zip(self.nodes, self.verdicts.tolist(), strict=True) if verdict == UNSEEN]
        scored = {name: row for row, name in enumerate(self.nodes) if self.totals[row] >= 0}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "kubernetesVersion": self.version,
            "pod": self.pod,
            "profile": self.profile,
            "outcome": self.outcome.value,
            "nodes": list(self.chosen),
            "message": self.message,
            "rejectedBefore": [_plain(stop) for stop in self.stops],
            "rejected": [_plain(rejection) | {"nodes": names} for rejection, names in groups.items()],
            "notEvaluated": unseen,
            "fits": [name for name, verdict in zip(self.nodes, self.verdicts.tolist(), strict=True) if verdict == FITS],
            "weights": dict(self.weights),
            "scores": {
                name: {"total": int(self.totals[row])}
                | {plugin: int(numbers[row]) for plugin, numbers in self.scores.items()}
                for name, row in scored.items()
            },
            "preemption": {
                "candidates": self.candidates,
                "best": [
                    {"node": one.node, "victims": list(one.victims), "pdbViolations": one.pdb_violations}
                    for one in self.preemptions
                ],
            },
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "") -> Story:
        """The story of a document that `to_dict` made. Raises `InputError`."""
        if document.get("apiVersion") != API_VERSION or document.get("kind") != KIND:
            found = f"{document.get('apiVersion')}, {document.get('kind')}"
            raise InputError(f"expected {API_VERSION}, {KIND}, found {found}", place=Place(source=source))
        try:
            return _story(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"no {KIND} that kschedx wrote: {error!r}", place=Place(source=source)) from None

    def on(self, nodes: tuple[str, ...]) -> Story:
        """The same story with the rows of other nodes; one that is new was not seen."""
        if nodes == self.nodes:
            return self
        index = {name: row for row, name in enumerate(self.nodes)}
        source = np.array([index.get(name, -1) for name in nodes], dtype=np.int64)
        known = source >= 0

        def spread(numbers: IntArray, absent: int) -> IntArray:
            made = np.full(len(nodes), absent, dtype=np.int64)
            made[known] = numbers[source[known]]
            return made

        return replace(
            self,
            nodes=nodes,
            index=None,
            verdicts=spread(self.verdicts, UNSEEN),
            scores={plugin: spread(numbers, 0) for plugin, numbers in self.scores.items()},
            totals=spread(self.totals, -1),
        )


def _known_verdicts(outcome: FilterOutcome) -> tuple[IntArray, tuple[Rejection, ...]]:
    """As `_verdicts`, once for an outcome: many pods of a kind share one."""
    known = cast("tuple[IntArray, tuple[Rejection, ...]] | None", outcome.derived.get(Rejection))
    if known is None:
        known = _verdicts(outcome)
        outcome.derived[Rejection] = known
    return known


def _verdicts(outcome: FilterOutcome) -> tuple[IntArray, tuple[Rejection, ...]]:
    """(node,) numbers of rejections, and those."""
    numbers = np.full(len(outcome.codes), FITS, dtype=np.int64)
    rejections: dict[Rejection, int] = {}

    def number(plugin: str, code: str, reasons: tuple[str, ...]) -> int:
        found = Rejection(plugin=plugin, code=code, reasons=reasons)
        return rejections.setdefault(found, len(rejections))

    told = np.ones(len(outcome.codes), dtype=np.bool_)
    told[list(outcome.with_nominated)] = False
    for index in distinct(outcome.plugin[(outcome.plugin >= 0) & told]).tolist():
        verdicts, plugin = outcome.verdicts[index], outcome.plugins[index]
        rows = np.flatnonzero(told & (outcome.plugin == index))
        _, first, which = np.unique(
            verdicts.reasons.codes[rows] << 8 | verdicts.codes[rows], return_index=True, return_inverse=True
        )
        texts = [
            number(plugin, Code(int(verdicts.codes[row])).text, verdicts.reasons[row]) for row in rows[first].tolist()
        ]
        numbers[rows] = np.array(texts, dtype=np.int64)[which]
    for row, status in outcome.with_nominated.items():
        numbers[row] = number(status.plugin, status.code.text, status.reasons)
    return numbers, tuple(rejections)


def _scores(scores: Scores | None, count: int) -> tuple[dict[str, IntArray], IntArray]:
    totals = np.full(count, -1, dtype=np.int64)
    if scores is None:
        return {}, totals
    rows = scores.nodes.home_rows
    totals[rows] = scores.totals
    spread: dict[str, IntArray] = {}
    for plugin in scores.weights:
        spread[plugin] = np.zeros(count, dtype=np.int64)
        spread[plugin][rows] = scores.weighted(plugin)
    for extender, added in scores.added.items():
        spread[extender] = np.zeros(count, dtype=np.int64)
        spread[extender][rows] = added
    return spread, totals


def _stops(cycle: Cycle) -> Iterator[Rejection]:
    statuses = [*cycle.pre_enqueue, *(step.status for step in cycle.pre_filter)]
    if all(status.is_success or status.is_skip for status in statuses):
        statuses = [cycle.pre_filter_status]  # what the plugins leave in has nothing in common
    for status in statuses:
        if not (status.is_success or status.is_skip):
            yield Rejection(plugin=status.plugin, code=status.code.text, reasons=status.reasons)


def _plain(rejection: Rejection) -> dict[str, object]:
    return {"plugin": rejection.plugin, "code": rejection.code, "reasons": list(rejection.reasons)}


def _rejection(document: Mapping[str, Any]) -> Rejection:
    return Rejection(plugin=document["plugin"], code=document["code"], reasons=tuple(document["reasons"]))


def _story(document: Mapping[str, Any]) -> Story:
    seen: Iterable[str] = [name for group in document["rejected"] for name in group["nodes"]]
    known = {*seen, *document["fits"], *document["notEvaluated"], *document["scores"], *document["nodes"]}
    nodes = tuple(sorted(known))
    index = {name: row for row, name in enumerate(nodes)}
    verdicts = np.full(len(nodes), UNSEEN, dtype=np.int64)
    verdicts[[index[name] for name in document["fits"]]] = FITS
    for number, group in enumerate(document["rejected"]):
        verdicts[[index[name] for name in group["nodes"]]] = number
    weights = {str(plugin): int(weight) for plugin, weight in document["weights"].items()}
    scores = {plugin: np.zeros(len(nodes), dtype=np.int64) for plugin in weights}
    totals = np.full(len(nodes), -1, dtype=np.int64)
    for name, numbers in document["scores"].items():
        totals[index[name]] = numbers["total"]
        for plugin in weights:
            scores[plugin][index[name]] = numbers[plugin]
    return Story(
        pod=document["pod"],
        version=document["kubernetesVersion"],
        profile=document["profile"],
        outcome=Outcome(document["outcome"]),
        message=document["message"],
        chosen=tuple(document["nodes"]),
        stops=tuple(map(_rejection, document["rejectedBefore"])),
        nodes=nodes,
        verdicts=verdicts,
        rejections=tuple(map(_rejection, document["rejected"])),
        weights=weights,
        scores=scores,
        totals=totals,
        preemptions=tuple(
            Preemption(node=one["node"], victims=tuple(one["victims"]), pdb_violations=one["pdbViolations"])
            for one in document["preemption"]["best"]
        ),
        candidates=document["preemption"]["candidates"],
    )
