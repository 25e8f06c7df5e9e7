"""In plain words, why the plugin that decides between two feasible nodes gives one of them the higher score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from kschedx.explain.ranking import Ranking, compare_scores, scored_node
from kschedx.framework.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import CycleState, PreScorePlugin, ScorePlugin
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.names import CPU, HOSTNAME
from kschedx.kube.selectors import compile_preferred_terms
from kschedx.kube.tolerations import PREFER_NO_SCHEDULE, Tolerations
from kschedx.kube.types import Affinity, Node, NodeAffinity
from kschedx.plugins.image_locality import normalized_image_name
from kschedx.plugins.inter_pod_affinity import InterPodAffinity
from kschedx.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kschedx.plugins.node_resources_fit import NodeResourcesFit
from kschedx.plugins.pod_topology_spread import SOFT
from kschedx.plugins.resource_allocation import Allocation
from kschedx.snapshot.columns import ClusterRow, cluster_rows
from kschedx.snapshot.nodes import NodeTable
from kschedx.wording import count

_LEAST_ASSUMED = 20  # assumed requests matter from one such part of a node's CPU or memory on


class _Pair(Struct, frozen=True):
    """Two feasible nodes, the one with the higher score first, and the plugin that decides, after its PreScore."""

    cycle: Cycle
    plugin: ScorePlugin
    state: CycleState
    rows: tuple[ClusterRow, ClusterRow]

    @property
    def nodes(self) -> tuple[Node, Node]:
        first, second = (self.cycle.all_nodes.cluster.nodes[row] for row in self.rows)
        return first, second

    @property
    def table(self) -> NodeTable:
        return self.cycle.all_nodes.at(cluster_rows(self.rows))

    def places(self, key: str) -> tuple[str, str]:
        """Return the names of the nodes' domains, or of the nodes."""
        labels = {} if key == HOSTNAME else {node.name: node.metadata.labels.get(key) for node in self.nodes}
        first, second = (labels.get(node.name) or node.name for node in self.nodes)
        return first, second


def deciding_reason(cycle: Cycle, scheduler: Scheduler, ranking: Ranking | None, other: str = "") -> str:
    """Return why a best node scores higher than another, or else than the runner-up: why the plugin with the largest
    lead prefers it. Empty if no plain reason is known."""
    if ranking is None or cycle.scores is None or cycle.nominated is not None or not cycle.all_nodes.is_whole:
        return ""
    row, better, worse = cycle.scores.nodes.row_named(other), ranking.nodes[0], ranking.runner_up
    if row is not None:
        asked = scored_node(cycle.scores, row)
        better, worse = (asked, worse) if asked.total == better.total else (better, asked)
    if worse is None:
        return ""
    lead, framework = compare_scores(better, worse)[0], scheduler.framework(cycle.profile)
    if lead.plugin not in _REASONS or framework is None:
        return ""
    plugin = next(it for it in framework.plugins("score", ScorePlugin) if it.name == lead.plugin)
    state = CycleState()
    if isinstance(plugin, PreScorePlugin):
        plugin.pre_score(state, cycle.pod, cycle.scores.nodes)
    index = cycle.all_nodes.cluster.index
    pair = _Pair(cycle, plugin, state, (index[better.name], index[worse.name]))
    return next(_REASONS[plugin.name](pair), "")


def _emptier(pair: _Pair) -> Iterator[str]:
    args, table = pair.cycle.profile.args.get("NodeResourcesFit"), pair.table
    if not isinstance(pair.plugin, NodeResourcesFit) or not isinstance(args, NodeResourcesFitArgs):
        return
    strategy = args.scoring_strategy
    first, second = (node.name for node in pair.nodes)
    prefers = {LEAST_ALLOCATED: f"{first} is emptier", MOST_ALLOCATED: f"{first} is fuller"}
    allocation = pair.plugin.allocation(pair.state, pair.cycle.pod, table)
    names = [resource.name for resource in strategy.resources]
    shares = _shares(allocation, names, second)
    columns = [table.resources.index[name] for name in (CPU, "memory")]
    assumed = (table.nonzero_requested - table.requested[:, columns]) * _LEAST_ASSUMED > table.allocatable[:, columns]
    counts = "; containers without requests count as 100m CPU and 200Mi memory" if assumed.any() else ""
    yield f"{prefers.get(strategy.type, f'the configured shape prefers {first}')}: {shares}{counts}"


def _balanced(pair: _Pair) -> Iterator[str]:
    args = pair.cycle.profile.args.get("NodeResourcesBalancedAllocation")
    if isinstance(pair.plugin, NodeResourcesBalancedAllocation) and isinstance(
        args, NodeResourcesBalancedAllocationArgs
    ):
        allocation = pair.plugin.allocation(pair.state, pair.cycle.pod, pair.table)
        names = [resource.name for resource in args.resources]
        first, second = (node.name for node in pair.nodes)
        if pair.cycle.release.behavior.balance_is_compared_with_before:
            yield f"the pod makes the use of {' and '.join(names)} more balanced on {first} than on {second}"
        else:
            yield f"resources are requested more evenly on {first}: {_shares(allocation, names, second)}"


def _shares(allocation: Allocation, names: list[str], other: str) -> str:
    """Return `CPU 5%, memory 1% requested with the pod (w1: 56%, 40%)`."""
    percent = allocation.requested * 100 // allocation.capacity
    own, others = [], []
    for index, name in enumerate(names):
        if allocation.counts[:, index].all():
            own.append(f"{'CPU' if name == CPU else name} {percent[0, index]}%")
            others.append(f"{percent[1, index]}%")
    return f"{', '.join(own)} requested with the pod ({other}: {', '.join(others)})"


def _less_matching(pair: _Pair) -> Iterator[str]:
    spreads, (better, worse) = pair.state[SOFT], pair.rows
    own = "" if pair.cycle.pod.spec.topology_spread_constraints else "default "
    if spreads.ignored[worse]:
        lacking = [it.constraint.topology_key for it in spreads.spreads if not it.labelled[worse]]
        yield f"{pair.nodes[1].name} lacks the label {lacking[0]} of a {own}spread constraint: it gets no points"
        return
    costs = [it.cost(cluster_rows(pair.rows)) for it in spreads.spreads]
    decisive = spreads.spreads[int(np.argmax([cost[1] - cost[0] for cost in costs]))]
    key = decisive.constraint.topology_key
    first, second = pair.places(key)
    fewer, more = int(decisive.matching[better]), int(decisive.matching[worse])
    if fewer < more and decisive.labelled[[better, worse]].all():
        yield f"{own}spread over {key}: {first} has {count(fewer, 'matching pod')}, {second} {more:,}"


def _preferred(pair: _Pair) -> Iterator[str]:
    affinity = (pair.cycle.pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()
    better, worse = pair.nodes
    terms = compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution).terms
    met = (
        it
        for it in sorted(terms, key=lambda it: -it.weight)
        if it.term.matches(better.metadata.labels, better.name)
        and not it.term.matches(worse.metadata.labels, worse.name)
    )
    for it in met:
        wanted = ", ".join(map(str, (*it.term.expressions, *it.term.fields)))
        yield f"{better.name} matches the preferred {wanted} (weight {it.weight}), {worse.name} does not"


def _intolerable(pair: _Pair) -> Iterator[str]:
    known = Tolerations(pair.cycle.pod.spec.tolerations, comparison=pair.cycle.release.compares_taints)
    better, worse = pair.nodes
    for taint in worse.spec.taints:
        if taint.effect == PREFER_NO_SCHEDULE and taint not in better.spec.taints and not known.cover(taint):
            yield f"{worse.name} has the taint {taint}, which the pod does not tolerate"


def _neighbors(pair: _Pair) -> Iterator[str]:
    plugin, cluster, pods = pair.plugin, pair.cycle.all_nodes.cluster, pair.cycle.snapshot.pods
    assert isinstance(plugin, InterPodAffinity)
    running = np.flatnonzero(pods.node >= 0)
    best: tuple[int, str] = (0, "")
    for key, selector, weight, tally in plugin.preferences(pair.cycle.pod):
        column = cluster.label(key)
        matching = running[tally.weights(pods, running) > 0]
        first, second = (
            matching[column.codes[pods.node[matching]] == column.codes[row]] if column.present[row] else matching[:0]
            for row in pair.rows
        )
        lead = weight * (len(first) - len(second))
        if lead <= best[0]:
            continue
        rule, other = ("affinity", first) if weight > 0 else ("anti-affinity", second)
        if not selector:
            named = f"{pods.key(int(other[0]))} on {cluster.names[pods.node[other[0]]]}"
            best = lead, f"this pod matches the pod {rule} of {named}"
            continue
        here, there = pair.places(key)
        numbers = f"{here} has {count(len(first), 'matching pod')}, {there} {len(second):,}"
        best = lead, f"preferred pod {rule} {selector} (weight {abs(weight)}): {numbers}"
    yield from filter(None, best[1:])


def _images(pair: _Pair) -> Iterator[str]:
    spec, images, (better, worse) = pair.cycle.pod.spec, pair.cycle.all_nodes.cluster.images, pair.rows
    for container in (*spec.containers, *spec.init_containers):
        image = images.state(normalized_image_name(container.image))
        if image is not None and better in image.nodes and worse not in image.nodes:
            yield f"{pair.nodes[0].name} has the image {container.image} already"


_REASONS: Mapping[str, Callable[[_Pair], Iterator[str]]] = {
    "NodeResourcesFit": _emptier,
    "NodeResourcesBalancedAllocation": _balanced,
    "PodTopologySpread": _less_matching,
    "NodeAffinity": _preferred,
    "TaintToleration": _intolerable,
    "InterPodAffinity": _neighbors,
    "ImageLocality": _images,
}
