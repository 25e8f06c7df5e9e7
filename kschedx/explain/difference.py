"""What differs between two stories of one pod, and what that adds up to over many pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, StrEnum, auto

import numpy as np
from msgspec import Struct, field

from kschedx.explain.placed_anew import PlacedAnew
from kschedx.explain.story import Preemption, Story
from kschedx.framework.cycle import Outcome
from kschedx.snapshot.columns import BoolArray, IntArray

_ZERO: IntArray = np.zeros(1, dtype=np.int64)
"""In place of a plugin that has not scored any node."""

SHOWN_NODES = 4
"""Names that a side keeps of a tie."""


class Effect(StrEnum):
    """What a difference does to a pod, the largest first."""

    STOPS = "stops-being-schedulable"
    STARTS = "becomes-schedulable"
    OUTCOME = "other-outcome"
    MOVES = "other-node"
    TIES = "other-tie"
    """Some of the nodes that share the highest total stay, some do not: the pod may go elsewhere."""
    PREEMPTS = "other-preemption"
    FITS = "other-feasible-nodes"
    MESSAGE = "other-message"
    SCORES = "other-scores"


class Side(Struct, frozen=True, kw_only=True):
    """One of the two stories in short."""

    outcome: Outcome
    nodes: tuple[str, ...]
    """The first of those among which kube-scheduler picks."""
    node_count: int
    total: int | None
    margin: int | None
    """The best total less the runner-up's."""
    runner_up: str
    feasible: int
    message: str
    preemptions: tuple[Preemption, ...]

    @classmethod
    def of(cls, story: Story) -> Side:
        behind = story.runner_up
        return cls(
            outcome=story.outcome,
            nodes=story.chosen[:SHOWN_NODES],
            node_count=len(story.chosen),
            total=story.total,
            margin=story.margin,
            runner_up="" if behind is None else story.nodes[behind],
            feasible=story.feasible,
            message=story.message,
            preemptions=story.preemptions[:SHOWN_NODES],
        )


class Turn(Struct, frozen=True, kw_only=True):
    """By how much one plugin puts the new node before the old one, on both sides."""

    plugin: str
    before: int
    after: int

    @property
    def swing(self) -> int:
        return self.after - self.before


class Shift(Struct, frozen=True, kw_only=True):
    """Nodes that only one side allows, and the plugin that rejects them on the other."""

    plugin: str
    nodes: int


class ScoreChange(Struct, frozen=True, kw_only=True):
    """How a plugin's weighted scores changed on the nodes that fit on both sides."""

    plugin: str
    nodes: int
    largest: int
    """The change of the largest magnitude."""


class Difference(Struct, frozen=True, kw_only=True):
    """What becomes of one pod on both sides, where that is not the same."""

    pod: str
    effects: tuple[Effect, ...]
    """All that apply, the largest first; never empty."""
    before: Side
    after: Side
    old_node: str = ""
    new_node: str = ""
    """The nodes that `turned` compares: the pod leaves one for the other."""
    turned: tuple[Turn, ...] = ()
    """The plugins that do not see the two nodes alike on both sides, largest swing first."""
    filtered_by: str = ""
    """The Filter plugin that allows one of the two nodes on one side alone."""
    lost: tuple[Shift, ...] = ()
    gained: tuple[Shift, ...] = ()
    reworded: tuple[str, ...] = ()
    """Plugins that reject the same nodes in other words."""
    rescored: tuple[ScoreChange, ...] = ()

    @property
    def effect(self) -> Effect:
        return self.effects[0]

    @property
    def causes(self) -> tuple[str, ...]:
        """The plugins that make the difference; empty where it is none of them."""
        match self.effect:
            case Effect.STOPS:
                return tuple(shift.plugin for shift in self.lost)
            case Effect.STARTS:
                return tuple(shift.plugin for shift in self.gained)
            case Effect.MOVES | Effect.TIES:
                turned = tuple(turn.plugin for turn in self.turned[:1] if turn.swing > 0)
                return (self.filtered_by,) if self.filtered_by else turned
            case Effect.SCORES:
                return tuple(sorted(change.plugin for change in self.rescored))
            case _:
                shifts = {shift.plugin for shift in (*self.lost, *self.gained)}
                return tuple(sorted({*shifts, *self.reworded}))

    @property
    def size(self) -> int:
        """How large the difference is among those of the same effect."""
        match self.effect:
            case Effect.STOPS:
                return self.before.feasible
            case Effect.STARTS:
                return self.after.feasible
            case Effect.MOVES | Effect.TIES:
                return sum(turn.swing for turn in self.turned)
            case Effect.SCORES:
                return max(abs(change.largest) for change in self.rescored)
            case _:
                return sum(shift.nodes for shift in (*self.lost, *self.gained))


def compare(before: Story, after: Story) -> Difference | None:
    """The difference of two stories about one pod; None where they tell the same."""
    if before.nodes is not after.nodes and before.nodes != after.nodes:
        nodes = tuple(sorted({*before.nodes, *after.nodes}))
        before, after = before.on(nodes), after.on(nodes)
    lost: tuple[Shift, ...] = ()
    gained: tuple[Shift, ...] = ()
    reworded: tuple[str, ...] = ()
    if not _rejects_alike(before, after):
        lost, gained = tuple(_shifts(before, after)), tuple(_shifts(after, before))
        reworded = tuple(_reworded(before, after))
    rescored = tuple(_rescored(before, after))
    effects = tuple(_effects(before, after, is_shifted=bool(lost or gained), is_rescored=bool(rescored)))
    if not effects:
        return None
    old, new = _moved(before, after) if Effect.MOVES in effects or Effect.TIES in effects else ("", "")
    return Difference(
        pod=after.pod,
        effects=effects,
        before=Side.of(before),
        after=Side.of(after),
        old_node=old,
        new_node=new,
        turned=_turned(before, after, old, new) if old else (),
        filtered_by=_filtered_by(before, after, old, new) if old else "",
        lost=lost,
        gained=gained,
        reworded=reworded,
        rescored=rescored,
    )


def _rejects_alike(before: Story, after: Story) -> bool:
    """Every node, and for the same reasons; in most pairs of profiles only scores differ."""
    same_words = before.rejections == after.rejections and before.stops == after.stops
    return same_words and (before.verdicts is after.verdicts or np.array_equal(before.verdicts, after.verdicts))


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
    if placed in ((True, True), (False, False)):  # otherwise that goes without saying
        if is_shifted:
            yield Effect.FITS
        if before.message != after.message:
            yield Effect.MESSAGE
    if is_rescored:
        yield Effect.SCORES


def _shifts(these: Story, others: Story) -> Iterator[Shift]:
    """The nodes that fit only in these, by the plugin that rejects them in the others; most nodes first."""
    rows = np.flatnonzero(these.fits & ~others.fits)
    counts: dict[str, int] = {}
    for row in rows.tolist():
        rejection = others.rejection(row)
        plugin = rejection.plugin if rejection else "PreFilter"
        counts[plugin] = counts.get(plugin, 0) + 1
    for plugin, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield Shift(plugin=plugin, nodes=count)


def _reworded(before: Story, after: Story) -> Iterator[str]:
    """Plugins that reject a node on both sides, but not for the same reasons."""
    both = (before.verdicts >= 0) & (after.verdicts >= 0)
    pairs = np.unique(np.stack([before.verdicts[both], after.verdicts[both]]), axis=1).T.tolist()
    found = [(before.rejections[first], after.rejections[second]) for first, second in pairs]
    found += zip(before.stops, after.stops, strict=False)
    yield from sorted({one.plugin for one, other in found if one.plugin == other.plugin and one != other})


def _rescored(before: Story, after: Story) -> Iterator[ScoreChange]:
    """Largest change first."""
    both: BoolArray = (before.totals >= 0) & (after.totals >= 0)
    changes = []
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
            changes.append(ScoreChange(plugin=plugin, nodes=int(np.count_nonzero(change)), largest=int(change[row])))
    yield from sorted(changes, key=lambda change: (-abs(change.largest), change.plugin))


def _moved(before: Story, after: Story) -> tuple[str, str]:
    """A node that the pod leaves, and one that it goes to."""
    stays = set(before.chosen) & set(after.chosen)
    # where a tie only grows or shrinks, one of the two is a node that stays
    left = [name for name in before.chosen if name not in stays] or before.chosen
    come = [name for name in after.chosen if name not in stays] or after.chosen
    return left[0], come[0]


def _filtered_by(before: Story, after: Story, old: str, new: str) -> str:
    """The plugin that no longer allows the old node, else the one that did not allow the new one."""
    for story, name in ((after, old), (before, new)):
        row = story.row(name)
        if not story.fits[row]:
            rejection = story.rejection(row)
            return rejection.plugin if rejection else "PreFilter"
    return ""


def _turned(before: Story, after: Story, old: str, new: str) -> tuple[Turn, ...]:
    """Empty where one of the two nodes is not scored on both sides: then no score decides."""
    old_row, new_row = before.row(old), before.row(new)
    if any(story.totals[row] < 0 for story in (before, after) for row in (old_row, new_row)):
        return ()
    turns = []
    for plugin in dict.fromkeys((*before.scores, *after.scores)):
        first, second = (
            int(story.scores[plugin][new_row] - story.scores[plugin][old_row]) if plugin in story.scores else 0
            for story in (before, after)
        )
        turns.append(Turn(plugin=plugin, before=first, after=second))
    return tuple(sorted((turn for turn in turns if turn.swing), key=lambda turn: (-turn.swing, turn.plugin)))


def rescored_nodes(before: Story, after: Story) -> tuple[str, ...]:
    """Nodes whose scores are not the same; the stories have the same nodes."""
    zero = np.zeros(len(before.nodes), dtype=np.int64)
    changed = before.totals != after.totals
    for plugin in {*before.scores, *after.scores}:
        changed |= before.scores.get(plugin, zero) != after.scores.get(plugin, zero)
    return tuple(before.nodes[row] for row in np.flatnonzero(changed).tolist())


class Group(Struct, frozen=True, kw_only=True):
    """Pods to which the same happens for the same cause."""

    effect: Effect
    causes: tuple[str, ...]
    differences: tuple[Difference, ...]
    """Largest first."""


class LeftOut(Enum):
    """Why a pod that was asked for is not compared."""

    OF_KUBELET = auto()
    """A static pod."""
    OF_OTHERS = auto()
    """Another scheduler's."""


class Summary(Struct, frozen=True, kw_only=True):
    """The differences of many pods."""

    compared: int
    differences: tuple[Difference, ...]
    undecided: Mapping[str, str] = field(default_factory=dict)
    """Pods that kschedx cannot decide about, with what it would need."""
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    """Pods that were asked for and were not compared."""
    placed_anew: PlacedAnew | None = None
    """What the profiles make of the nodes; None where that was not asked for."""
    not_placed_anew: int = 0
    """Running pods that were too many for it."""

    @property
    def same(self) -> int:
        return self.compared - len(self.differences) - len(self.undecided)

    @property
    def counts(self) -> dict[Effect, int]:
        """How many pods each effect is found on; a pod counts for each of its effects."""
        counts = dict.fromkeys(Effect, 0)
        for difference in self.differences:
            for effect in difference.effects:
                counts[effect] += 1
        return {effect: count for effect, count in counts.items() if count}

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(grouped(self.differences))


def grouped(differences: Iterable[Difference]) -> Iterator[Group]:
    """By effect and cause: the largest effect first, then the largest group."""
    groups: dict[tuple[Effect, tuple[str, ...]], list[Difference]] = {}
    for difference in differences:
        groups.setdefault((difference.effect, difference.causes), []).append(difference)
    order = {effect: number for number, effect in enumerate(Effect)}
    for (effect, causes), found in sorted(
        groups.items(), key=lambda item: (order[item[0][0]], -len(item[1]), item[0][1])
    ):
        yield Group(
            effect=effect,
            causes=causes,
            differences=tuple(sorted(found, key=lambda one: (-one.size, one.pod))),
        )
