"""Words of a comparison that its screen and its document share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from kschedx.explain.difference import (
    Difference,
    DifferenceGroup,
    Effect,
    Preemption,
    Repacking,
    Side,
    Summary,
)
from kschedx.explain.profile_changes import WEIGHED, ProfileChange
from kschedx.explain.setup import Setup
from kschedx.releases import POINTS
from kschedx.render.wording import count, listed

# Differences of configurations and of pods in words, for every output format.

ARROW = "→"
MOST_NAME = 24
"""Of a longer column name, the end is shown, because a file's name is at the end of its path."""

_POINTS = frozenset({*POINTS, "predicates", "predicatesNeverRun", "priorities"})

_EFFECTS: dict[Effect, tuple[str, str]] = {
    Effect.STOPS: ("stops being schedulable", "stop being schedulable"),
    Effect.STARTS: ("becomes schedulable", "become schedulable"),
    Effect.OUTCOME: ("has another outcome", "have another outcome"),
    Effect.MOVES: ("is assigned to another node", "are assigned to another node"),
    Effect.TIES: ("may be assigned to another node", "may be assigned to another node"),
    Effect.PREEMPTS: ("preempts other pods", "preempt other pods"),
    Effect.FITS: ("fits other nodes", "fit other nodes"),
    Effect.MESSAGE: ("has another event text", "have another event text"),
    Effect.SCORES: ("has other scores", "have other scores"),
}


def side_titles(before: Setup, after: Setup) -> tuple[str, str]:
    """Return the titles of the two sides: their names, and the version if only that differs."""
    if before.release.version == after.release.version:
        return before.name, after.name
    return f"{before.name} {before.release.version}", f"{after.name} {after.release.version}"


# --- configuration


def change_rows(changes: Iterable[ProfileChange], before: Setup, after: Setup) -> list[tuple[str, str, str]]:
    """Return (place, subject, what changes). Gates and single plugins with the same change share a row."""
    rows: list[tuple[str, str, str]] = []
    gates: list[str] = []
    has_many = max(len(setup.profiles) for setup in (before, after)) > 1
    for change in changes:
        place = "version" if change.place == "release" else change.place
        place = f"{change.profile} {place}" if has_many and change.profile else place
        if change.place == "gate":
            gates.append(f"{change.subject} {'on' if change.after == 'true' else 'off'}")
        else:
            rows.append((place, change.subject, _change(change)))
    if gates:
        first = next((number for number, row in enumerate(rows) if row[0] not in ("version", "gate")), len(rows))
        rows.insert(first, ("gates", f"{len(gates)} differ", ", ".join(gates)))
    return rows


def _change(change: ProfileChange) -> str:
    before, after = change.before, change.after
    if change.place == "behavior" and {before, after} == {"true", "false"}:
        return "new" if after == "true" else "removed"
    if change.setting:
        return f"{change.setting} {before or 'unset'} {ARROW} {after or 'unset'}"
    if not before or not after:
        if change.place not in _POINTS:
            return after or "removed"
        weight = f" ({after or before})" if change.place in WEIGHED else ""
        return f"{'enabled' if after else 'disabled'}{weight}"
    return f"{before} {ARROW} {after}"


# --- pods


def compared(summary: Summary) -> str:
    """Return `15,000 pods compared: 3 differ, 14,997 the same`."""
    text = f"{count(summary.compared, 'pod')} compared: "
    different = len(summary.differences)
    if not different:
        return text + ("no difference" if not summary.undecided else "no difference among the decided")
    return text + f"{different:,} {'differs' if different == 1 else 'differ'}, {summary.same:,} the same"


def effect_counts(summary: Summary) -> list[str]:
    """Return texts such as `3 stop being schedulable` for all effects. A pod counts for each of its effects."""
    return [f"{number:,} {effect_words(effect, number)}" for effect, number in summary.counts.items()]


def effect_words(effect: Effect, number: int) -> str:
    singular, many = _EFFECTS[effect]
    return singular if number == 1 else many


def difference_title(group: DifferenceGroup) -> str:
    """Return `3 pods go to another node: NodeResourcesFit decides`."""
    number = len(group.differences)
    text = f"{count(number, 'pod')} {effect_words(group.effect, number)}"
    if not group.causes:
        return text
    first, plugins = group.differences[0], listed(group.causes, 3)
    match group.effect:
        case Effect.STOPS:
            return f"{text}: {plugins} {_verb(group, 'rejects', 'reject')} nodes that fit before"
        case Effect.STARTS:
            return f"{text}: {plugins} no longer {_verb(group, 'rejects', 'reject')}"
        case Effect.MOVES | Effect.TIES:
            return (
                f"{text}: {plugins} {_verb(group, 'decides', 'decide')}{' by filtering' if first.filtered_by else ''}"
            )
        case _:
            return f"{text}: {plugins}"


def _verb(group: DifferenceGroup, text: str, many: str) -> str:
    return text if len(group.causes) == 1 else many


def pod_lines(difference: Difference) -> tuple[str, tuple[str, ...]]:
    """Return what changes for one pod: one line, and further lines with the causes."""
    before, after = difference.before, difference.after
    match difference.effect:
        case Effect.STOPS | Effect.STARTS | Effect.FITS:
            text = f"{before.feasible:,} {ARROW} {after.feasible:,} nodes fit"
            nodes = _nodes(after if difference.effect is Effect.STARTS else before)
            goes = f", {'now' if difference.effect is Effect.STARTS else 'before'} on {nodes}" if nodes else ""
            goes = f", still on {_nodes(after)}" if difference.effect is Effect.FITS else goes
            message = (f"event: {after.message}",) if difference.effect is Effect.STOPS and after.message else ()
            return text + goes, (*_shifts(difference), *message)
        case Effect.OUTCOME:
            return f"{before.outcome} {ARROW} {after.outcome}", _messages(difference)
        case Effect.MOVES | Effect.TIES:
            return f"{_place(before, difference.old_node)} {ARROW} {_place(after, difference.new_node)}", _turns(
                difference
            )
        case Effect.PREEMPTS:
            return f"{_evictions(before.preemptions)} {ARROW} {_evictions(after.preemptions)}", ()
        case Effect.MESSAGE:
            return "", _messages(difference)
        case Effect.SCORES:
            same = f"still {_place(after, None)}" if after.nodes else "for the feasible nodes"
            return same, tuple(_scores(difference))
        case _:
            assert_never(difference.effect)


def with_the_same_change(group: DifferenceGroup) -> list[tuple[Difference, list[str]]]:
    """Return the first of the pods with the same change, and the names of all of them; most pods first."""
    alike: dict[tuple[object, ...], tuple[Difference, list[str]]] = {}
    for difference in group.differences:
        key = side_texts(difference), *pod_lines(difference)
        alike.setdefault(key, (difference, []))[1].append(difference.pod)
    return sorted(alike.values(), key=lambda entry: -len(entry[1]))


def side_texts(difference: Difference) -> tuple[str, str]:
    """Return the outcome for one pod on either side; empty if only their messages differ."""
    before, after = difference.before, difference.after
    match difference.effect:
        case Effect.OUTCOME:
            return before.outcome, after.outcome
        case Effect.PREEMPTS:
            return _evictions(before.preemptions), _evictions(after.preemptions)
        case Effect.STOPS | Effect.STARTS | Effect.FITS:
            return _feasible(before), _feasible(after)
        case Effect.MOVES | Effect.TIES:
            return _place(before, difference.old_node), _place(after, difference.new_node)
        case Effect.MESSAGE:
            return "", ""
        case Effect.SCORES:
            return _place(before, None), _place(after, None)
        case _:
            assert_never(difference.effect)


def _feasible(side: Side) -> str:
    nodes = _nodes(side)
    return f"{count(side.feasible, 'node fits', 'nodes fit')}{f': {nodes}' if nodes else ''}"


def _place(side: Side, node: str | None) -> str:
    """Return `node-04, 12 ahead`, `node-04, one of 3`."""
    name = node or _nodes(side)
    if side.node_count > 1:
        return f"{name}, one of {side.node_count:,}" if node else name
    return name if side.margin is None else f"{name}, by {count(side.margin, 'point')}"


def _nodes(side: Side) -> str:
    return listed(side.nodes, 2, side.node_count)


def _turns(difference: Difference) -> tuple[str, ...]:
    if difference.filtered_by:
        old_gone = difference.filtered_by in difference.lost
        kept = f"{difference.filtered_by} no longer allows {difference.old_node}"
        came = f"{difference.filtered_by} now allows {difference.new_node}"
        return (kept if old_gone else came,)
    swings = [f"{turn.plugin} {turn.before:+,} {ARROW} {turn.after:+,}" for turn in difference.turned]
    return (f"new node's score minus old node's: {listed(swings, 4)}",) if swings else ()


def _shifts(difference: Difference) -> tuple[str, ...]:
    lost = [f"{plugin} rejects {nodes:,} more" for plugin, nodes in difference.lost.items()]
    gained = [f"{plugin} allows {nodes:,} more" for plugin, nodes in difference.gained.items()]
    return (", ".join((*lost, *gained)),) if lost or gained else ()


def _scores(difference: Difference) -> Iterator[str]:
    texts = [
        f"{plugin} by {score_change.largest:+,} at most, on {count(score_change.nodes, 'node')}"
        for plugin, score_change in difference.rescored.items()
    ]
    yield listed(texts, 3)


def _evictions(preemptions: tuple[Preemption, ...]) -> str:
    if not preemptions:
        return "no preemption"
    first = preemptions[0]
    others = f" (or {count(len(preemptions) - 1, 'other node')})" if len(preemptions) > 1 else ""
    return f"evicts {listed(first.victims, 2)} on {first.node}{others}"


def _messages(difference: Difference) -> tuple[str, ...]:
    before, after = difference.before, difference.after
    return (f"before: {before.message or before.outcome}", f"after: {after.message or after.outcome}")


def node_rows(repacking: Repacking, names: tuple[str, str]) -> list[tuple[str, ...]]:
    """Return the utilization of nodes now and with each profile: a heading, then a row for each number."""
    sides = (repacking.now, repacking.before, repacking.after)
    rows: list[tuple[str, ...]] = [
        ("", "now", *(name if len(name) <= MOST_NAME else f"…{name[1 - MOST_NAME :]}" for name in names)),
        ("nodes in use", *(f"{side.in_use:,} of {side.nodes:,}" for side in sides)),
    ]
    filled = ("cpu", "memory")
    rows += [(f"{name} requested on nodes in use", *(f"{side.percent(name)}%" for side in sides)) for name in filled]
    rows += [(f"{name} on the fullest", *(f"{side.fullest[name]}%" for side in sides)) for name in filled]
    if any(side.pending for side in sides):
        rows.append(("pods that stay pending", *(f"{len(side.pending):,}" for side in sides)))
    return rows


def node_notes(repacking: Repacking, names: tuple[str, str]) -> list[str]:
    """Return the nodes that only one of the profiles leaves empty, and the pods that stay pending."""
    phrases = []
    for unused, name in ((repacking.emptied, names[1]), (repacking.filled, names[0])):
        if unused:
            phrases.append(f"empty only with {name}: {listed(unused, 6)}")
    for side, name in ((repacking.before, names[0]), (repacking.after, names[1])):
        if side.pending:
            phrases.append(f"pending with {name}: {listed(side.pending, 4)}")
    return phrases


def repacking_title(repacking: Repacking) -> str:
    """Return what is simulated."""
    if repacking.before == repacking.after:
        return "both fill the nodes equally if the running pods are rescheduled one by one"
    if repacking.pods == 1:
        return "nodes if the running pod is rescheduled"
    return f"nodes if the {repacking.pods:,} running pods are rescheduled one by one, in queue order"


def not_repacked(summary: Summary) -> str:
    """Return the note that node usage is not compared."""
    pods = count(summary.not_repacked, "running pod")
    return f"node usage is not compared; --nodes reschedules the {pods} one by one"


def left_out(summary: Summary) -> list[str]:
    """Return which requested comparisons were not possible."""
    texts = [f"not compared: {number:,} {why}" for why, number in summary.left_out.items()]
    if summary.undecided:
        pod, why = next(iter(summary.undecided.items()))
        texts.append(f"{count(len(summary.undecided), 'pod')} undecided, {pod} among them: {why}")
    return texts
