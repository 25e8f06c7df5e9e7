"""What rejects a node, and the rejected nodes in groups, the nearest first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import reduce

import numpy as np
from msgspec import Struct

from kschedx.findings import (
    Finding,
    InsufficientResource,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeNameMismatch,
    NodeUnschedulable,
    TooManyPods,
    UntoleratedTaint,
)
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code, FilterOutcome, Status, Verdicts
from kschedx.kube.selectors import NODE_NAME_FIELD
from kschedx.snapshot.columns import (
    FloatArray,
    IntArray,
    TableRow,
    TableRows,
    distinct,
    each_row,
    first_rows,
    pair_codes,
)
from kschedx.snapshot.nodes import NodeTable

# What rejects a node. The *verdict* is the first plugin that rejects it, which is all that kube-scheduler reports; the
# *blockers* are all plugins that reject it, which is what has to change.


class Blocker(Struct, frozen=True, kw_only=True):
    """One plugin that rejects a node."""

    plugin: str
    code: Code
    findings: tuple[Finding, ...]
    is_verdict: bool  # whether kube-scheduler stops here and does not run the plugins after it
    with_nominated: bool = False  # whether it rejects the node only because nominated pods count as if they ran there


class NodeAccount(Struct, frozen=True, kw_only=True):
    """Everything that rejects one node. `row` is the node's row in `cycle.nodes`."""

    row: TableRow
    name: str
    blockers: tuple[Blocker, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for blocker in self.blockers for finding in blocker.findings)

    @property
    def is_resolvable(self) -> bool:
        """Whether no blocker is unresolvable by evictions."""
        return all(blocker.code is Code.UNSCHEDULABLE for blocker in self.blockers)


def account(cycle: Cycle, row: TableRow) -> NodeAccount:
    """All blockers of a node in the order of the plugins; none if the pod fits. The cycle must have run Filter."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    return account_of(cycle.nodes, cycle.filter, row)


def account_of(nodes: NodeTable, outcome: FilterOutcome, row: TableRow) -> NodeAccount:
    """Return all blockers of Filter's outcome for a row of `nodes`."""
    nominated = outcome.with_nominated.get(row)
    blockers = [
        _blocker(verdicts.status(row, plugin), is_verdict=nominated is None and index == int(outcome.plugin[row]))
        for index, (plugin, verdicts) in enumerate(zip(outcome.plugins, outcome.verdicts, strict=True))
        if verdicts.codes[row] != Code.SUCCESS
    ]
    if nominated is not None:
        blockers = [blocker for blocker in blockers if blocker.plugin != nominated.plugin]
        blockers.insert(0, _blocker(nominated, is_verdict=True, with_nominated=True))
    return NodeAccount(row=row, name=nodes.name(row), blockers=tuple(blockers))


def _blocker(status: Status, *, is_verdict: bool, with_nominated: bool = False) -> Blocker:
    return Blocker(
        plugin=status.plugin,
        code=status.code,
        findings=status.findings,
        is_verdict=is_verdict,
        with_nominated=with_nominated,
    )


def only_repeats_cordon(finding: Finding) -> bool:
    """Return whether it is the taint of a cordoned node, which NodeUnschedulable reports too."""
    return isinstance(finding, UntoleratedTaint) and finding.comes_with_cordon


# The rejected nodes in groups, and their order: the only answer to "which nodes are nearest". The screen, the fixes,
# and the views of many pods read it. The findings decide what belongs together and what is nearer (`same_as`,
# `distance`).


class NodeGroup(Struct, frozen=True, kw_only=True):
    """Nodes with the same blockers, the nearest first."""

    rows: tuple[TableRow, ...]  # rows of `cycle.nodes`, nearest first
    exemplar: NodeAccount
    is_uniform: bool = False
    """Whether all of them are equally far from passing, so that the amounts of the first one are those of all."""

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def is_left_out(self) -> bool:
        """Whether the pod does not select these nodes."""
        return any(isinstance(finding, NodeAffinityMismatch) for finding in self.exemplar.findings)

    @property
    def is_of_role(self) -> bool:
        """Whether the taint of the control plane keeps the pod off."""
        return any(isinstance(finding, UntoleratedTaint) and finding.is_of_role for finding in self.exemplar.findings)


def selects_nodes(groups: Sequence[NodeGroup]) -> bool:
    """Return whether the pod selects rejected nodes that are not of the control plane: it is meant for them, not for
    those that it does not select."""
    return any(not (group.is_left_out or group.is_of_role) for group in groups)


def node_groups(cycle: Cycle) -> tuple[NodeGroup, ...]:
    """Return `groups_of` a cycle; empty if no node was evaluated."""
    return () if cycle.filter is None or cycle.nodes is None else groups_of(cycle.nodes, cycle.filter)


def groups_of(nodes: NodeTable, outcome: FilterOutcome) -> tuple[NodeGroup, ...]:
    """Group the rejected nodes by their blockers: fewest blockers first, then those where evictions could help, then
    the smallest shortfall, then the larger group."""
    rows = np.flatnonzero(outcome.codes != Code.SUCCESS)
    if not len(rows):
        return ()
    # (node,) the plugin that rejects only if nominated pods count, 0 for none
    plugins, concerned = np.zeros(len(outcome.codes), dtype=np.int64), list(outcome.with_nominated)
    plugins[concerned] = outcome.plugin[concerned] + 1
    kinds, distances = [plugins[rows]], np.zeros(len(rows), dtype=np.float64)
    for verdicts in outcome.verdicts:
        if verdicts.rejected[rows].any():
            kind, distance = _kinds(verdicts, nodes, rows)
            kinds.append(kind)
            distances += distance
    group = reduce(pair_codes, kinds)
    groups: list[tuple[tuple[float, ...], NodeGroup]] = []
    for code in distinct(group):
        members = np.flatnonzero(group == code)
        members = members[np.argsort(distances[members], kind="stable")]
        exemplar = account_of(nodes, outcome, TableRow(int(rows[members[0]])))
        rank = (
            sum(not only_repeats_cordon(finding) for finding in exemplar.findings),
            not exemplar.is_resolvable,
            round(float(distances[members[0]]), 6),
            -len(members),
            int(rows[members[0]]),
        )
        rows_of_group = tuple(each_row(TableRows(rows[members])))
        is_uniform = bool(distances[members[0]] == distances[members[-1]])
        groups.append((rank, NodeGroup(rows=rows_of_group, exemplar=exemplar, is_uniform=is_uniform)))
    return tuple(group for _, group in sorted(groups, key=lambda item: item[0]))


def _kinds(verdicts: Verdicts, nodes: NodeTable, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """(row,) the kind of a plugin's rejection, 0 for none, and the distance from passing."""
    kinds, distances = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.float64)
    hit = np.flatnonzero(verdicts.rejected[rows])
    rejected = rows[hit]
    first, inverse = first_rows(_facets(verdicts, nodes, rejected))
    seen: dict[Hashable, int] = {}
    kind_of = np.zeros(len(first), dtype=np.int64)
    distance_of = np.zeros(len(first), dtype=np.float64)
    amounts: dict[str, int] = {}
    for facet, index in enumerate(first):
        row = TableRow(int(rejected[index]))
        findings = verdicts.explain(row)
        kind = (int(verdicts.codes[row]), *((finding.reason, finding.same_as) for finding in findings))
        kind_of[facet] = seen.setdefault(kind, len(seen) + 1)
        distance_of[facet] = sum(it.distance for it in findings if not isinstance(it, InsufficientResource))
        amounts |= {it.resource: it.requested for it in findings if isinstance(it, InsufficientResource)}
    kinds[hit], distances[hit] = kind_of[inverse], distance_of[inverse]
    for resource, requested in amounts.items():
        distances[hit] += _shortfall(nodes, resource, requested)[rejected]
    return kinds, distances


def _facets(verdicts: Verdicts, nodes: NodeTable, rows: IntArray) -> IntArray:
    """(row,) codes such that rows with the same code have the same kind of findings, so that each kind is explained
    once. The plugin knows what distinguishes rows; otherwise it is derived from the findings themselves, until they
    have no new traits."""
    facets = verdicts.reasons.codes[rows] * len(Code) + verdicts.codes[rows]
    if verdicts.finding_groups is not None:
        return pair_codes(facets, verdicts.finding_groups()[rows])
    known: set[str] = set()
    while True:
        traits = {
            trait for first in first_rows(facets)[0] for trait in _traits(verdicts.explain(TableRow(int(rows[first]))))
        }
        if _EACH_NODE in traits:
            return np.arange(len(rows), dtype=np.int64)
        if traits <= known:
            return facets
        for trait in sorted(traits - known):
            codes = _trait(nodes, trait)[rows]
            if (codes != codes[0]).any():
                facets = pair_codes(facets, codes)
        known |= traits


_TAINTS, _FEATURES, _EACH_NODE = "taints", "features", "each-node"
_LABEL, _ROOM = "label:", "room:"


def _traits(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the properties of a node that affect a plugin's findings. Amounts do not, except whether the request for
    the resource in the headline exceeds the whole node."""
    resources = [finding for finding in findings if isinstance(finding, InsufficientResource)]
    yield from (f"{_ROOM}{resource.requested}:{resource.resource}" for resource in resources[:1])
    for finding in findings:
        match finding:
            case InsufficientResource() | TooManyPods() | NodeUnschedulable() | NodeNameMismatch():
                pass
            case UntoleratedTaint():
                yield _EACH_NODE if finding.condition or finding.is_left_over else _TAINTS
            case MissingNodeFeatures():
                yield _FEATURES
            case NodeAffinityMismatch():
                for key in {requirement.key for term in finding.terms for requirement in term.requirements}:
                    yield _EACH_NODE if key == NODE_NAME_FIELD else _LABEL + key
            case _:
                yield _EACH_NODE


def _trait(nodes: NodeTable, trait: str) -> IntArray:
    """(node,) a code per value."""
    match trait:
        case "taints":
            return nodes.taints.codes
        case "features":
            return nodes.declared_features.codes
        case _ if trait.startswith(_ROOM):
            requested, _, resource = trait.removeprefix(_ROOM).partition(":")
            column = nodes.resources.index.get(resource)
            if column is None:
                return np.zeros(len(nodes), dtype=np.int64)
            is_above: IntArray = (nodes.allocatable[:, column] < int(requested)).astype(np.int64)
            return is_above
        case _:
            return nodes.label(trait.removeprefix(_LABEL)).codes


def _shortfall(nodes: NodeTable, resource: str, requested: int) -> FloatArray:
    """(node,) the missing fraction of the requested amount."""
    column = nodes.resources.index.get(resource)
    if column is None or requested <= 0:
        return np.ones(len(nodes), dtype=np.float64)
    free = nodes.allocatable[:, column] - nodes.requested[:, column]
    missing: FloatArray = np.maximum(requested - free, 0) / requested
    return missing
