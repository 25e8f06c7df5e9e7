"""Pods that run, each as if it were new: what profiles make of it in the cluster without itself.

Pods of one kind share the columns of the cluster as it stands. To take one of them off its node changes one row for
most plugins, and these rows are worked out for all pods of the kind together (`one_less`). Plugins that two profiles
configure alike are asked once for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.framework.interface import FilterPlugin, Plugin, PreEnqueuePlugin, ScorePlugin, Touch
from kschedx.framework.moving.one_less import (
    FITS,
    Asked,
    FilterColumn,
    Filters,
    RareError,
    RawScores,
    Rejected,
    Rejections,
    ScoreColumn,
    Scored,
    Verdict,
)
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState, NotPreparedError
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.moving import MovingCluster
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import ClusterRows, TableRows

_POINTS = ("preFilter", "filter", "preScore", "score")


class Outlook(Struct, frozen=True, kw_only=True):
    """What one profile makes of a pod that fits somewhere. All arrays are (node,); several outlooks may share them."""

    verdicts: IntArray
    """Index into `rejections`, or `FITS`."""
    rejections: Sequence[Rejected]
    """All that is said about pods of this kind; it only grows."""
    scores: dict[str, IntArray]
    """Plugin to what it adds to the totals, weight included; 0 where the pod does not fit."""
    weights: dict[str, int]
    totals: IntArray
    """-1 where the pod does not fit."""


class Profiles:
    """Several profiles on one cluster that moves."""

    def __init__(self, cluster: MovingCluster, frameworks: Sequence[Framework]) -> None:
        """The frameworks are on the snapshot of `cluster`."""
        self.cluster = cluster
        self.frameworks = frameworks
        self._plugins = [(framework, _looking(framework)) for framework in frameworks]
        self._same_as: dict[Plugin, list[Plugin]] = {}
        """The plugins of other profiles that are the same but for their arguments."""
        every = [(framework, plugin) for framework, plugins in self._plugins for plugin in plugins]
        for number, (framework, plugin) in enumerate(every):
            others = (its for other, its in every[:number] if _is_same(other, its, framework, plugin))
            self._same_as[plugin] = list(others)

    def asked(self, pod: Pod) -> list[dict[str, Asked]]:
        """For each profile its plugins that look at nodes, by name; those that are configured alike are one."""
        known: dict[Plugin, Asked] = {}
        sides = []
        for framework, plugins in self._plugins:
            state = CycleState()
            for plugin in plugins:
                about = plugin.args_about(pod)
                alike = (other for other in self._same_as[plugin] if other.args_about(pod) == about)
                other = next(alike, None)
                known[plugin] = Asked(framework, plugin, pod, state) if other is None else known[other]
            sides.append({plugin.name: known[plugin] for plugin in plugins})
        return sides


class AsIfNew:
    """The pods of one kind under several profiles."""

    def __init__(self, profiles: Profiles, rows: Sequence[int]) -> None:
        """`rows` are pods of one kind that run, neither terminating nor nominated. The cluster of the profiles is moved
        and put back."""
        self._cluster = cluster = profiles.cluster
        self._rows = rows
        self._profiles = profiles
        at: dict[int, list[int]] = {}
        for row in rows:
            at.setdefault(int(cluster.pods.node[row]), []).append(row)
        self._at = list(at.items())

    def __iter__(self) -> Iterator[tuple[list[int], tuple[Outlook, ...] | None]]:
        """Pods of one node, and what becomes of each of them; None where only `schedule` tells that."""
        try:
            sides, pod = self._sides()
        except (RareError, NotPreparedError):
            yield list(self._rows), None
            return
        moves = any(side.moves for side in sides)
        for spot, (node, rows) in enumerate(self._at):
            mark = self._cluster.mark()
            if moves:
                self._cluster.remove(rows[0], waits=True)
                pod = self._cluster.pods[rows[0]]
            try:
                outlooks = _outlooks(sides, spot, node, pod)
            except (RareError, NotPreparedError):
                outlooks = None
            finally:
                self._cluster.revert(mark)
            yield rows, outlooks

    def _sides(self) -> tuple[list[_Side], Pod]:
        """What all pods of the kind share, and one of them as if it were new."""
        cluster = self._cluster
        mark = cluster.mark()
        cluster.remove(self._at[0][1][0], waits=True)
        pod = cluster.pods[self._at[0][1][0]]
        cluster.revert(mark)
        asked = self._profiles.asked(pod)
        verdicts: dict[Asked, FilterColumn] = {}
        raw: dict[Asked, RawScores] = {}
        rejections = Rejections()
        used: list[tuple[list[FilterColumn], list[RawScores]]] = []
        for framework, its in zip(self._profiles.frameworks, asked, strict=True):
            _check_enters(framework, pod)
            nodes = framework.nodes
            filtering = [its[plugin.name] for plugin in framework.plugins("filter", FilterPlugin)]
            scoring = [its[plugin.name] for plugin in framework.plugins("score", ScorePlugin)]
            for one in its.values():
                if one not in filtering:
                    _prepare_alone(one, pod, nodes, scores=one in scoring)
            for one in filtering:
                if one not in verdicts:
                    verdicts[one] = FilterColumn(one, rejections, pod, nodes)
            for one in scoring:
                if one not in raw:
                    raw[one] = RawScores(one, pod, nodes)
            used.append(([verdicts[one] for one in filtering], [raw[one] for one in scoring]))
        spots = np.array([node for node, _ in self._at], dtype=np.int64)
        away = PodRows(pods=np.array([rows[0] for _, rows in self._at], dtype=np.int64), nodes=ClusterRows(spots))
        parts = {one: one.nodes.take(TableRows(spots)).remove_pods(away) for one in self._profiles.frameworks}
        columns: list[FilterColumn | RawScores] = [*verdicts.values(), *raw.values()]
        for column in columns:
            column.evaluate_own(pod, parts[column.asked.framework])
        return [*self._put_together(used, rejections, pod)], pod

    def _put_together(
        self, used: list[tuple[list[FilterColumn], list[RawScores]]], rejections: Rejections, pod: Pod
    ) -> Iterator[_Side]:
        """Profiles whose Filter plugins say the same share what follows from that."""
        filters: list[Filters] = []
        scores: dict[tuple[RawScores, Filters], ScoreColumn] = {}
        for framework, (verdicts, raw) in zip(self._profiles.frameworks, used, strict=True):
            nodes = framework.nodes
            passed = next((known for known in filters if known.say(verdicts)), None)
            if passed is None:
                passed = Filters(verdicts, nodes, len(self._at))
                filters.append(passed)
            parts = []
            for one in raw:
                if (one, passed) not in scores:
                    scores[one, passed] = ScoreColumn(one, passed, pod, nodes)
                parts.append((scores[one, passed], framework.profile.weights[one.plugin.name]))
            yield _Side(passed, parts, rejections)


class _Side:
    """One profile."""

    def __init__(self, filters: Filters, parts: list[tuple[ScoreColumn, int]], rejections: Rejections) -> None:
        self.filters = filters
        self.parts = parts
        self.rejections = rejections
        self.moves = filters.moves or any(column.asked.moves for column, _ in parts)
        self._totals: IntArray = np.zeros_like(filters.base)
        for column, weight in parts:
            self._totals += column.weighted(weight)
        self._totals[filters.base != FITS] = -1

    def outlook(self, verdict: Verdict, scored: dict[ScoreColumn, Scored | None]) -> Outlook:
        """`scored` has what every column says."""
        node = verdict.node
        scores: dict[str, IntArray] = {}
        weights: dict[str, int] = {}
        is_whole = verdict.is_whole or self.moves
        total = 0
        for column, weight in self.parts:
            found = scored[column]
            if found is None:
                continue
            name = column.asked.plugin.name
            weights[name] = weight
            scores[name] = found.weighted(weight)
            if isinstance(found.found, int):
                total += found.found * weight
            else:
                is_whole = True
        if is_whole:
            totals = np.zeros_like(verdict.first)
            for numbers in scores.values():
                totals += numbers
            totals[verdict.first != FITS] = -1
        else:
            totals = self._totals.copy()
            totals[node] = total if verdict.fits else -1
        return Outlook(
            verdicts=verdict.first,
            rejections=self.rejections.found,
            scores=scores,
            weights=weights,
            totals=totals,
        )


def _outlooks(sides: list[_Side], spot: int, node: int, pod: Pod) -> tuple[Outlook, ...]:
    anew: dict[FilterColumn, IntArray] = {}
    verdicts: dict[Filters, Verdict] = {}
    scored: dict[ScoreColumn, Scored | None] = {}
    for side in sides:
        if side.filters not in verdicts:
            verdicts[side.filters] = side.filters.without(spot, node, pod, anew)
            if not (verdicts[side.filters].first == FITS).any():
                raise RareError
        verdict = verdicts[side.filters]
        for column, _ in side.parts:
            if column not in scored:
                scored[column] = column.without(verdict, pod)
    return tuple(side.outlook(verdicts[side.filters], scored) for side in sides)


def _check_enters(framework: Framework, pod: Pod) -> None:
    """Raises `RareError` where the pod would not enter the queue, or nominated pods count against it."""
    for plugin in framework.plugins("preEnqueue", PreEnqueuePlugin):
        if plugin.touches(pod) is Touch.CLUSTER or not plugin.pre_enqueue(pod).is_success:
            raise RareError
    if framework.nominated and len(framework.nominated_change(pod, framework.nodes)):
        raise RareError


def _prepare_alone(one: Asked, pod: Pod, nodes: NodeTable, *, scores: bool) -> None:
    """PreFilter of a plugin without Filter, and PreScore of one without Score: they can still have a say."""
    if one.moves and not scores:
        raise RareError
    one.prepare_filter(pod, nodes)
    if not scores:
        one.prepare_score(pod, nodes)


def _looking(framework: Framework) -> list[Plugin]:
    """The plugins that look at nodes."""
    return list(dict.fromkeys(plugin for point in _POINTS for plugin in framework.plugins(point, Plugin)))


def _is_same(one: Framework, plugin: Plugin, other: Framework, its: Plugin) -> bool:
    return (
        type(plugin) is type(its)
        and (one.release.version, one.release.gates) == (other.release.version, other.release.gates)
        and all((plugin.name in one.profile.points[at]) is (its.name in other.profile.points[at]) for at in _POINTS)
    )
