"""The ProfileDifference document (`diff-profiles -o json`)."""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.explain.difference import Difference, Group, Side, Summary
from kschedx.explain.placed_anew import Filling, PlacedAnew
from kschedx.explain.profile_changes import Change
from kschedx.explain.setup import Setup
from kschedx.render.words.comparison import left_out_text, setting_text

Json = dict[str, object]


def difference_document(before: Setup, after: Setup, changes: Iterable[Change], summary: Summary | None) -> Json:
    """Keys are added, never changed. `pods` is null where only the configurations were compared."""
    return {
        "apiVersion": "kschedx/v1",
        "kind": "ProfileDifference",
        "before": _setup(before),
        "after": _setup(after),
        "configuration": [_change(change) for change in changes],
        "pods": None if summary is None else pods_document(summary),
    }


def _setup(setup: Setup) -> Json:
    return {
        "name": setup.name,
        "kubernetesVersion": setup.release.version,
        "profiles": [profile.scheduler_name for profile in setup.profiles],
        "unknownPlugins": [one.to_dict() for one in setup.unknown_plugins],
    }


def _change(change: Change) -> Json:
    return {
        "profile": change.profile,
        "place": change.place,
        "subject": change.subject,
        "setting": change.setting,
        "before": setting_text(change.before) or None,
        "after": setting_text(change.after) or None,
    }


def pods_document(summary: Summary) -> Json:
    """`pods` of the document."""
    return {
        "compared": summary.compared,
        "same": summary.same,
        "different": len(summary.differences),
        "effects": {effect.value: count for effect, count in summary.counts.items()},
        "undecided": dict(summary.undecided),
        "leftOut": {left_out_text(why): number for why, number in summary.left_out.items()},
        "groups": [_group(group) for group in summary.groups],
        "nodes": None if summary.placed_anew is None else _placed_anew(summary.placed_anew),
    }


def _placed_anew(found: PlacedAnew) -> Json:
    return {
        "placedAnew": found.pods,
        "now": _filling(found.now),
        "before": _filling(found.before),
        "after": _filling(found.after),
    }


def _filling(found: Filling) -> Json:
    return {
        "nodes": found.nodes,
        "inUse": found.in_use,
        "unused": list(found.unused),
        "requested": dict(found.requested),
        "allocatable": dict(found.allocatable),
        "fullestPercent": dict(found.fullest),
        "pending": list(found.pending),
    }


def _group(group: Group) -> Json:
    return {
        "effect": group.effect.value,
        "causes": list(group.causes),
        "count": len(group.differences),
        "pods": [_difference(difference) for difference in group.differences],
    }


def _difference(difference: Difference) -> Json:
    return {
        "pod": difference.pod,
        "effects": [effect.value for effect in difference.effects],
        "before": _side(difference.before),
        "after": _side(difference.after),
        "oldNode": difference.old_node or None,
        "newNode": difference.new_node or None,
        "turnedBy": [
            {"plugin": turn.plugin, "before": turn.before, "after": turn.after, "swing": turn.swing}
            for turn in difference.turned
        ],
        "filteredBy": difference.filtered_by or None,
        "lost": {shift.plugin: shift.nodes for shift in difference.lost},
        "gained": {shift.plugin: shift.nodes for shift in difference.gained},
        "reworded": list(difference.reworded),
        "scores": {change.plugin: {"nodes": change.nodes, "largest": change.largest} for change in difference.rescored},
    }


def _side(side: Side) -> Json:
    return {
        "outcome": side.outcome.value,
        "nodes": list(side.nodes),
        "nodeCount": side.node_count,
        "total": side.total,
        "margin": side.margin,
        "runnerUp": side.runner_up or None,
        "feasible": side.feasible,
        "message": side.message,
        "preemptions": [
            {"node": one.node, "victims": list(one.victims), "pdbViolations": one.pdb_violations}
            for one in side.preemptions
        ],
    }
