"""A cycle reduced to its outcome, so that two of them can be compared. A story comes from a cycle, or from a saved
document (`to_dict`, `from_dict`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.framework.cycle import Cycle, Outcome, Scores
from kschedx.grouping import group_pairs
from kschedx.kube.documents import API_VERSION, Document, document
from kschedx.snapshot.columns import BoolArray, IntArray

if TYPE_CHECKING:
    from kschedx.framework.moving.leave_one_out import Outlook
    from kschedx.framework.runtime import Framework
    from kschedx.framework.status import FirstRejection

_KIND = "Story"

_FITS = -1
_UNSEEN = -2  # Filter did not evaluate the node: PreFilter excluded it, or rejected the pod


class Rejection(Document, frozen=True):
    """The plugin at which kube-scheduler stops, with its message."""

    plugin: str
    code: str
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, rejected: FirstRejection) -> Rejection:
        return cls(plugin=rejected.plugin, code=rejected.code.text, reasons=rejected.reasons)


class Preemption(Document, frozen=True):
    """A best candidate of preemption."""

    node: str
    victims: tuple[str, ...]
    pdb_violations: int


class RejectedNodes(Rejection, frozen=True):
    nodes: tuple[str, ...]


class PreemptionSummary(Document, frozen=True):
    candidates: int
    best: tuple[Preemption, ...]


class StoryDocument(Document, frozen=True):
    version: str = field(name="kubernetesVersion")
    pod: str
    profile: str
    outcome: Outcome
    nodes: tuple[str, ...]
    message: str
    stops: tuple[Rejection, ...] = field(name="rejectedBefore")
    rejected: tuple[RejectedNodes, ...]
    not_evaluated: tuple[str, ...]
    fits: tuple[str, ...]
    weights: Mapping[str, int]
    scores: Mapping[str, Mapping[str, int]]
    preemption: PreemptionSummary


class Story(Struct, frozen=True, kw_only=True, dict=True):
    """The outcome of one pod. All arrays are (node,), in the order of `nodes`."""

    pod: str
    version: str
    profile: str  # the schedulerName
    outcome: Outcome
    message: str
    chosen: tuple[str, ...]  # the nodes among which kube-scheduler chooses
    stops: tuple[Rejection, ...]  # the rejections of the pod before Filter
    nodes: tuple[str, ...]
    verdicts: IntArray  # index into `rejections`, `_FITS`, or `_UNSEEN`
    rejections: tuple[Rejection, ...]
    weights: Mapping[str, int]  # the weight of each scoring plugin
    scores: Mapping[str, IntArray]  # plugin to its weighted scores; 0 without scores
    totals: IntArray  # -1 without scores
    preemptions: tuple[Preemption, ...] = ()  # the best candidates
    candidates: int = 0
    index: Mapping[str, int] | None = None  # rows by node name, if known

    @property
    def fits(self) -> BoolArray:
        fits: BoolArray = self.verdicts == _FITS
        return fits

    @property
    def feasible(self) -> int:
        return int(np.count_nonzero(self.fits))

    def nodes_of(self, verdict: int) -> tuple[str, ...]:
        return tuple(self.nodes[row] for row in np.flatnonzero(self.verdicts == verdict).tolist())

    def row(self, node: str) -> int:
        return self.nodes.index(node) if self.index is None else self.index[node]

    def rejection(self, row: int) -> Rejection | None:
        """Return why a node is rejected; if no plugin evaluated it, the rejection of the whole pod, if any."""
        verdict = int(self.verdicts[row])
        if verdict >= 0:
            return self.rejections[verdict]
        return self.stops[0] if verdict == _UNSEEN and self.stops else None

    @cached_property
    def total(self) -> int | None:
        highest = int(self.totals.max(initial=-1))
        return None if highest < 0 else highest

    @cached_property
    def runner_up(self) -> int | None:
        """The row of the best node below the highest total."""
        if self.total is None:
            return None
        behind = np.where(self.totals < self.total, self.totals, -1)
        row = int(behind.argmax())
        return row if behind[row] >= 0 else None

    @property
    def margin(self) -> int | None:
        """The highest total minus the runner-up's."""
        row = self.runner_up
        return None if row is None or self.total is None else self.total - int(self.totals[row])

    # --- from a cycle

    @classmethod
    def of(cls, cycle: Cycle) -> Story:
        names = cycle.all_nodes.cluster.names
        verdicts = np.full(len(names), _UNSEEN, dtype=np.int64)
        rejections: tuple[Rejection, ...] = ()
        if cycle.filter is not None and cycle.nodes is not None:
            verdicts[cycle.nodes.rows], rejected = cycle.filter.rejections
            rejections = tuple(map(Rejection.of, rejected))
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
        """Build the story of a schedulable pod. `rejections` belong to the outlook."""
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
        """Return plain values; nodes with the same verdict are listed together."""
        pairs = zip(self.nodes, self.verdicts.tolist(), strict=True)
        groups = group_pairs((self.rejections[verdict], name) for name, verdict in pairs if verdict >= 0)
        scored = {name: row for row, name in enumerate(self.nodes) if self.totals[row] >= 0}
        return document(
            _KIND,
            StoryDocument,
            self,
            nodes=self.chosen,
            rejected=tuple(
                RejectedNodes(rejection.plugin, rejection.code, rejection.reasons, tuple(names))
                for rejection, names in groups.items()
            ),
            not_evaluated=self.nodes_of(_UNSEEN),
            fits=self.nodes_of(_FITS),
            scores={
                name: {"total": int(self.totals[row])}
                | {plugin: int(numbers[row]) for plugin, numbers in self.scores.items()}
                for name, row in scored.items()
            },
            preemption=PreemptionSummary(self.candidates, self.preemptions),
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, object], source: str = "") -> Story:
        """Read a document of `to_dict`. Raises `InputError`."""
        if document.get("apiVersion") != API_VERSION or document.get("kind") != _KIND:
            type_text = f"{document.get('apiVersion')}, {document.get('kind')}"
            raise InputError(f"expected {API_VERSION}, {_KIND}, found {type_text}", source=source)
        try:
            return _story(msgspec.convert(document, StoryDocument))
        except (KeyError, msgspec.ValidationError) as error:
            raise InputError(f"not a {_KIND} that kschedx wrote: {error}", source=source) from None

    def for_nodes(self, nodes: tuple[str, ...]) -> Story:
        """Return the same story for other nodes; new ones were not evaluated."""
        if nodes == self.nodes:
            return self
        index = {name: row for row, name in enumerate(self.nodes)}
        source = np.array([index.get(name, -1) for name in nodes], dtype=np.int64)
        known = source >= 0

        def spread(numbers: IntArray, absent: int) -> IntArray:
            counts = np.full(len(nodes), absent, dtype=np.int64)
            counts[known] = numbers[source[known]]
            return counts

        return replace(
            self,
            nodes=nodes,
            index=None,
            verdicts=spread(self.verdicts, _UNSEEN),
            scores={plugin: spread(numbers, 0) for plugin, numbers in self.scores.items()},
            totals=spread(self.totals, -1),
        )


def _scores(scores: Scores | None, count: int) -> tuple[dict[str, IntArray], IntArray]:
    totals = np.full(count, -1, dtype=np.int64)
    if scores is None:
        return {}, totals
    rows = scores.nodes.home_rows
    totals[rows] = scores.totals
    spread: dict[str, IntArray] = {}
    for plugin in scores.weights:
        spread[plugin] = np.zeros(count, dtype=np.int64)
        spread[plugin][rows] = scores.weighted_scores(plugin)
    for extender, added in scores.added.items():
        spread[extender] = np.zeros(count, dtype=np.int64)
        spread[extender][rows] = added
    return spread, totals


def _stops(cycle: Cycle) -> Iterator[Rejection]:
    statuses = [*cycle.pre_enqueue, *(step.status for step in cycle.pre_filter)]
    if all(status.is_success or status.is_skip for status in statuses):
        statuses = [cycle.pre_filter_status]  # the plugins have no node in common
    for status in statuses:
        if not (status.is_success or status.is_skip):
            yield Rejection(plugin=status.plugin, code=status.code.text, reasons=status.reasons)


def _story(story: StoryDocument) -> Story:
    seen = [name for group in story.rejected for name in group.nodes]
    known = {*seen, *story.fits, *story.not_evaluated, *story.scores, *story.nodes}
    nodes = tuple(sorted(known))
    index = {name: row for row, name in enumerate(nodes)}
    verdicts = np.full(len(nodes), _UNSEEN, dtype=np.int64)
    verdicts[[index[name] for name in story.fits]] = _FITS
    for number, group in enumerate(story.rejected):
        verdicts[[index[name] for name in group.nodes]] = number
    scores = {plugin: np.zeros(len(nodes), dtype=np.int64) for plugin in story.weights}
    totals = np.full(len(nodes), -1, dtype=np.int64)
    for name, numbers in story.scores.items():
        totals[index[name]] = numbers["total"]
        for plugin in story.weights:
            scores[plugin][index[name]] = numbers[plugin]
    return Story(
        pod=story.pod,
        version=story.version,
        profile=story.profile,
        outcome=story.outcome,
        message=story.message,
        chosen=story.nodes,
        stops=story.stops,
        nodes=nodes,
        verdicts=verdicts,
        rejections=tuple(Rejection(nodes.plugin, nodes.code, nodes.reasons) for nodes in story.rejected),
        weights=story.weights,
        scores=scores,
        totals=totals,
        preemptions=story.preemption.best,
        candidates=story.preemption.candidates,
    )


# The utilization of nodes, before and after pods are rescheduled, computed elsewhere.


class Filling(Document, frozen=True):
    """The nodes of a cluster at one moment. A node is in use if it runs pods other than those of DaemonSets and static
    pods."""

    nodes: int
    in_use: int
    unused: tuple[str, ...]
    requested: Mapping[str, int]  # the requests of all pods on the nodes in use: resource to amount, cpu in milli-units
    allocatable: Mapping[str, int]
    fullest: Mapping[str, int] = field(name="fullestPercent")  # resource to the highest percentage of any node
    pending: tuple[str, ...]  # `namespace/name`

    def percent(self, resource: str) -> int:
        """Return the requested percentage of the nodes in use."""
        offered = self.allocatable[resource]
        return 100 * self.requested[resource] // offered if offered else 0


class Repacking(Struct, frozen=True, kw_only=True):
    """All running pods removed and rescheduled one after the other, in queue order, by two profiles."""

    pods: int
    now: Filling
    before: Filling  # the placement by the first profile
    after: Filling  # the placement by the second profile
    moves: Mapping[tuple[str, str], int] = {}
    """The number of pods by the nodes that the first and the second profile choose; empty for none."""

    @property
    def emptied_nodes(self) -> tuple[str, ...]:
        """Nodes that only the second profile leaves unused."""
        kept = set(self.before.unused)
        return tuple(name for name in self.after.unused if name not in kept)

    @property
    def filled_nodes(self) -> tuple[str, ...]:
        """Nodes that only the first profile leaves unused."""
        kept = set(self.after.unused)
        return tuple(name for name in self.before.unused if name not in kept)


# The difference of two stories of one pod, and its sum over many pods.

_ZERO: IntArray = np.zeros(1, dtype=np.int64)  # the scores of a plugin that did not score

_SHOWN_NODES = 4  # the maximum number of names for a tie


class Effect(StrEnum):
    """The effects of a difference on a pod, largest first."""

    STOPS = "stops-being-schedulable"
    STARTS = "becomes-schedulable"
    OUTCOME = "other-outcome"
    MOVES = "other-node"
    TIES = "other-tie"  # the set of nodes with the highest total changes partly: the pod may go elsewhere
    PREEMPTS = "other-preemption"
    FITS = "other-feasible-nodes"
    MESSAGE = "other-message"
    SCORES = "other-scores"


class Side(Document, frozen=True):
    """A summary of one of the two stories."""

    outcome: Outcome
    nodes: tuple[str, ...]  # the first of the nodes among which kube-scheduler chooses
    node_count: int
    total: int | None
    margin: int | None  # the best total minus the runner-up's
    runner_up: str | None
    feasible: int
    message: str
    preemptions: tuple[Preemption, ...]

    @classmethod
    def of(cls, story: Story) -> Side:
        behind = story.runner_up
        return cls(
            outcome=story.outcome,
            nodes=story.chosen[:_SHOWN_NODES],
            node_count=len(story.chosen),
            total=story.total,
            margin=story.margin,
            runner_up=None if behind is None else story.nodes[behind],
            feasible=story.feasible,
            message=story.message,
            preemptions=story.preemptions[:_SHOWN_NODES],
        )


class Turn(Document, frozen=True):
    """One plugin's preference for the new node over the old one, on both sides."""

    plugin: str
    before: int
    after: int
    swing: int


class ScoreChange(Document, frozen=True):
    """How a plugin's weighted scores change on nodes that are feasible on both sides."""

    nodes: int
    largest: int  # the change with the largest magnitude


class Difference(Document, frozen=True):
    """The different outcomes of one pod."""

    pod: str
    effects: tuple[Effect, ...]  # largest first; never empty
    before: Side
    after: Side
    old_node: str | None
    new_node: str | None  # the nodes that `turned` compares: the pod moves from one to the other
    turned: tuple[Turn, ...] = field(name="turnedBy")
    """The plugins whose scores for the two nodes differ between the sides, largest difference first."""
    filtered_by: str | None  # the Filter plugin that allows one of the two nodes on only one side
    lost: Mapping[str, int]
    """Nodes that are feasible only on the first side, by the plugin that rejects them on the second."""
    gained: Mapping[str, int]
    """Nodes that are feasible only on the second side, by the plugin that rejects them on the first."""
    reworded: tuple[str, ...]  # plugins that reject the same nodes with another message
    rescored: Mapping[str, ScoreChange] = field(name="scores")

    @property
    def effect(self) -> Effect:
        return self.effects[0]

    @property
    def causes(self) -> tuple[str, ...]:
        """The plugins that cause the difference; empty if none does."""
        match self.effect:
            case Effect.STOPS:
                return tuple(self.lost)
            case Effect.STARTS:
                return tuple(self.gained)
            case Effect.MOVES | Effect.TIES:
                turned = tuple(turn.plugin for turn in self.turned[:1] if turn.swing > 0)
                return (self.filtered_by,) if self.filtered_by else turned
            case Effect.SCORES:
                return tuple(sorted(self.rescored))
            case _:
                return tuple(sorted({*self.lost, *self.gained, *self.reworded}))

    @property
    def size(self) -> int:
        """The size of the difference among those with the same effect."""
        match self.effect:
            case Effect.STOPS:
                return self.before.feasible
            case Effect.STARTS:
                return self.after.feasible
            case Effect.MOVES | Effect.TIES:
                return sum(turn.swing for turn in self.turned)
            case Effect.SCORES:
                return max(abs(change.largest) for change in self.rescored.values())
            case _:
                return sum(self.lost.values()) + sum(self.gained.values())


def compare(before: Story, after: Story) -> Difference | None:
    """Return the difference of two stories about one pod; None if they are equal."""
    if before.nodes is not after.nodes and before.nodes != after.nodes:
        nodes = tuple(sorted({*before.nodes, *after.nodes}))
        before, after = before.for_nodes(nodes), after.for_nodes(nodes)
    lost: Mapping[str, int] = {}
    gained: Mapping[str, int] = {}
    reworded: tuple[str, ...] = ()
    same_words = before.rejections == after.rejections and before.stops == after.stops
    if not (same_words and (before.verdicts is after.verdicts or np.array_equal(before.verdicts, after.verdicts))):
        lost, gained = _shifts(before, after), _shifts(after, before)
        reworded = tuple(_reworded_plugins(before, after))
    rescored = _score_changes(before, after)
    effects = tuple(_effects(before, after, is_shifted=bool(lost or gained), is_rescored=bool(rescored)))
    if not effects:
        return None
    old, new = _moved_nodes(before, after) if Effect.MOVES in effects or Effect.TIES in effects else ("", "")
    return Difference(
        pod=after.pod,
        effects=effects,
        before=Side.of(before),
        after=Side.of(after),
        old_node=old or None,
        new_node=new or None,
        turned=_turns(before, after, old, new) if old else (),
        filtered_by=_filtered_by(before, after, old, new) if old else None,
        lost=lost,
        gained=gained,
        reworded=reworded,
        rescored=rescored,
    )


def _effects(before: Story, after: Story, *, is_shifted: bool, is_rescored: bool) -> Iterator[Effect]:
    placed = (before.outcome is Outcome.SCHEDULED, after.outcome is Outcome.SCHEDULED)
    if placed == (True, False) and after.outcome is Outcome.UNSCHEDULABLE:
        yield Effect.STOPS
    elif placed == (False, True) and before.outcome is Outcome.UNSCHEDULABLE:
        yield Effect.STARTS
    elif before.outcome is not after.outcome:
        yield Effect.OUTCOME
    if before.chosen and after.chosen and set(before.chosen) != set(after.chosen):
        yield Effect.MOVES if set(before.chosen).isdisjoint(after.chosen) else Effect.TIES
    if set(before.preemptions) != set(after.preemptions):
        yield Effect.PREEMPTS
    if placed in ((True, True), (False, False)):  # otherwise it is obvious
        if is_shifted:
            yield Effect.FITS
        if before.message != after.message:
            yield Effect.MESSAGE
    if is_rescored:
        yield Effect.SCORES


def _shifts(these: Story, others: Story) -> dict[str, int]:
    """Count the nodes feasible only in `these`, by the plugin that rejects them in `others`, most nodes first."""
    rows = np.flatnonzero(these.fits & ~others.fits)
    counts: dict[str, int] = {}
    for row in rows.tolist():
        rejection = others.rejection(row)
        plugin = rejection.plugin if rejection else "PreFilter"
        counts[plugin] = counts.get(plugin, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _reworded_plugins(before: Story, after: Story) -> Iterator[str]:
    """Yield the plugins that reject a node on both sides for different reasons."""
    both = (before.verdicts >= 0) & (after.verdicts >= 0)
    pairs = np.unique(np.stack([before.verdicts[both], after.verdicts[both]]), axis=1).T.tolist()
    rejections = [(before.rejections[first], after.rejections[second]) for first, second in pairs]
    rejections += zip(before.stops, after.stops, strict=False)
    yield from sorted({item.plugin for item, other in rejections if item.plugin == other.plugin and item != other})


def _score_changes(before: Story, after: Story) -> dict[str, ScoreChange]:
    both: BoolArray = (before.totals >= 0) & (after.totals >= 0)
    changes: dict[str, ScoreChange] = {}
    for plugin in dict.fromkeys((*before.scores, *after.scores)):
        first, second = before.scores.get(plugin, _ZERO), after.scores.get(plugin, _ZERO)
        if first is second:
            continue
        change = (second - first) * both
        if not len(change):
            continue
        most, least = int(change.argmax()), int(change.argmin())
        up, down = int(change[most]), -int(change[least])
        row = most if up > down or (up == down and most < least) else least
        if change[row]:
            changes[plugin] = ScoreChange(nodes=int(np.count_nonzero(change)), largest=int(change[row]))
    return dict(sorted(changes.items(), key=lambda item: (-abs(item[1].largest), item[0])))


def _moved_nodes(before: Story, after: Story) -> tuple[str, str]:
    """Return a node that the pod leaves, and one that it moves to."""
    stays = set(before.chosen) & set(after.chosen)
    # if a tie only grows or shrinks, one of the two nodes stays
    left = [name for name in before.chosen if name not in stays] or before.chosen
    come = [name for name in after.chosen if name not in stays] or after.chosen
    return left[0], come[0]


def _filtered_by(before: Story, after: Story, old: str, new: str) -> str | None:
    """Return the plugin that no longer allows the old node, else the one that did not allow the new one."""
    for story, name in ((after, old), (before, new)):
        row = story.row(name)
        if not story.fits[row]:
            rejection = story.rejection(row)
            return rejection.plugin if rejection else "PreFilter"
    return None


def _turns(before: Story, after: Story, old: str, new: str) -> tuple[Turn, ...]:
    """Return nothing if one of the two nodes is not scored on both sides: then no score decides."""
    old_row, new_row = before.row(old), before.row(new)
    if any(story.totals[row] < 0 for story in (before, after) for row in (old_row, new_row)):
        return ()
    turns = []
    for plugin in dict.fromkeys((*before.scores, *after.scores)):
        first, second = (
            int(story.scores[plugin][new_row] - story.scores[plugin][old_row]) if plugin in story.scores else 0
            for story in (before, after)
        )
        turns.append(Turn(plugin=plugin, before=first, after=second, swing=second - first))
    return tuple(sorted((turn for turn in turns if turn.swing), key=lambda turn: (-turn.swing, turn.plugin)))


def rescored_nodes(before: Story, after: Story) -> tuple[str, ...]:
    """Return the nodes with different scores; both stories have the same nodes."""
    zero = np.zeros(len(before.nodes), dtype=np.int64)
    changed = before.totals != after.totals
    for plugin in {*before.scores, *after.scores}:
        changed |= before.scores.get(plugin, zero) != after.scores.get(plugin, zero)
    return tuple(before.nodes[row] for row in np.flatnonzero(changed).tolist())


class DifferenceGroup(Struct, frozen=True, kw_only=True):
    """Pods with the same effect and the same cause."""

    effect: Effect
    causes: tuple[str, ...]
    differences: tuple[Difference, ...]  # largest first


class Summary(Struct, frozen=True, kw_only=True):
    """The differences of many pods."""

    compared: int
    differences: tuple[Difference, ...]
    undecided: Mapping[str, str] = field(default_factory=dict)  # pods that kschedx cannot decide, with what it needs
    left_out: Mapping[str, int] = field(default_factory=dict)  # requested pods that were not compared
    repacking: Repacking | None = None  # None if it was not requested
    not_repacked: int = 0  # the number of running pods that exceed the limit for repacking

    @property
    def same(self) -> int:
        return self.compared - len(self.differences) - len(self.undecided)

    @property
    def counts(self) -> dict[Effect, int]:
        """The number of pods by effect; a pod counts for each of its effects."""
        counts = dict.fromkeys(Effect, 0)
        for difference in self.differences:
            for effect in difference.effects:
                counts[effect] += 1
        return {effect: count for effect, count in counts.items() if count}

    @property
    def groups(self) -> tuple[DifferenceGroup, ...]:
        return tuple(_group_differences(self.differences))


def _group_differences(differences: Iterable[Difference]) -> Iterator[DifferenceGroup]:
    """Group by effect and cause: the largest effect first, then the largest group."""
    groups = group_pairs(((difference.effect, difference.causes), difference) for difference in differences)
    order = {effect: number for number, effect in enumerate(Effect)}
    for (effect, causes), members in sorted(groups.items(), key=lambda it: (order[it[0][0]], -len(it[1]), it[0][1])):
        yield DifferenceGroup(
            effect=effect,
            causes=causes,
            differences=tuple(sorted(members, key=lambda difference: (-difference.size, difference.pod))),
        )
