"""What keeps the pod off each node, and nodes with the same blockers as one group.

Two truths are kept: the *verdict* is the first plugin that rejects a node, which is all that kube-scheduler says; the
*blockers* are all plugins that reject it, which is all that has to change.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce

import numpy as np
from msgspec import Struct

from kschedx.findings import (
    DeviceClaimOutOfReach,
    ExistingAntiAffinityConflict,
    Finding,
    HostPortConflict,
    InsufficientDevices,
    InsufficientResource,
    InsufficientStorageCapacity,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeNameMismatch,
    NodeUnschedulable,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TooManyPods,
    TopologyLabelMissing,
    TopologySpreadSkew,
    UntoleratedTaint,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
    VolumeZoneMismatch,
)
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import FilterOutcome
from kschedx.framework.status import Code, Status, Verdicts
from kschedx.snapshot.columns import FloatArray, IntArray, distinct
from kschedx.snapshot.nodes import NodeTable

HOSTNAME = "kubernetes.io/hostname"
NODE_NAME_FIELD = "metadata.name"
CORDON_TAINT = "node.kubernetes.io/unschedulable"


class Blocker(Struct, frozen=True, kw_only=True):
    """One plugin that rejects a node."""

    plugin: str
    code: Code
    findings: tuple[Finding, ...]
    is_verdict: bool
    """kube-scheduler stops here; it never comes to the plugins after it."""
    with_nominated: bool = False
    """Only because pods that are nominated for the node count as if they ran there."""


class NodeAccount(Struct, frozen=True, kw_only=True):
    """Everything that rejects one node. `row` is the node's in the nodes that PreFilter left in (`cycle.nodes`)."""

    row: int
    name: str
    blockers: tuple[Blocker, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for blocker in self.blockers for finding in blocker.findings)

    @property
    def is_resolvable(self) -> bool:
        """No verdict or further blocker says that evicting pods is of no use."""
        return all(blocker.code is Code.UNSCHEDULABLE for blocker in self.blockers)


class NodeGroup(Struct, frozen=True, kw_only=True):
    """Nodes with the same blockers, the nearest first."""

    rows: tuple[int, ...]
    """Of `cycle.nodes`, nearest first."""
    exemplar: NodeAccount
    """The first of them."""

    @property
    def count(self) -> int:
        return len(self.rows)


def account(cycle: Cycle, row: int) -> NodeAccount:
    """All blockers of a node in the order of the plugins; none where the pod fits. The cycle came to Filter."""
    assert cycle.filter is not None
    assert cycle.nodes is not None
    outcome = cycle.filter
    nominated = outcome.with_nominated.get(row)
    blockers = [
        _blocker(verdicts.status(row, plugin), is_verdict=nominated is None and index == int(outcome.plugin[row]))
        for index, (plugin, verdicts) in enumerate(zip(outcome.plugins, outcome.verdicts, strict=True))
        if verdicts.codes[row] != Code.SUCCESS
    ]
    if nominated is not None:
        blockers = [one for one in blockers if one.plugin != nominated.plugin]
        blockers.insert(0, _blocker(nominated, is_verdict=True, with_nominated=True))
    return NodeAccount(row=row, name=cycle.nodes.name(row), blockers=tuple(blockers))


def _blocker(status: Status, *, is_verdict: bool, with_nominated: bool = False) -> Blocker:
    return Blocker(
        plugin=status.plugin,
        code=status.code,
        findings=status.findings,
        is_verdict=is_verdict,
        with_nominated=with_nominated,
    )


def node_groups(cycle: Cycle) -> tuple[NodeGroup, ...]:
    """The rejected nodes by what rejects them: fewest blockers first, then those where eviction could help, then the
    smallest shortfall, then the larger group. Empty where no node was evaluated."""
    if cycle.filter is None or cycle.nodes is None:
        return ()
    outcome, nodes = cycle.filter, cycle.nodes
    rows = np.flatnonzero(outcome.codes != Code.SUCCESS)
    if not len(rows):
        return ()
    kinds, distances = [_nominated(outcome, rows)], np.zeros(len(rows), dtype=np.float64)
    for verdicts in outcome.verdicts:
        kind, distance = _kinds(verdicts, nodes, rows)
        kinds.append(kind)
        distances += distance
    group = reduce(_paired, kinds)
    found: list[tuple[tuple[float, ...], NodeGroup]] = []
    for code in distinct(group):
        members = np.flatnonzero(group == code)
        members = members[np.argsort(distances[members], kind="stable")]
        exemplar = account(cycle, int(rows[members[0]]))
        rank = (
            sum(not is_cordon_taint(finding) for finding in exemplar.findings),
            not exemplar.is_resolvable,
            round(float(distances[members[0]]), 6),
            -len(members),
            int(rows[members[0]]),
        )
        found.append((rank, NodeGroup(rows=tuple(rows[members].tolist()), exemplar=exemplar)))
    return tuple(group for _, group in sorted(found, key=lambda one: one[0]))


def is_cordon_taint(finding: Finding) -> bool:
    """The taint that comes with a cordon; NodeUnschedulable says the same."""
    return isinstance(finding, UntoleratedTaint) and finding.key == CORDON_TAINT


def _paired(first: IntArray, second: IntArray) -> IntArray:
    """Codes that are equal where both arrays are."""
    joined = first * (int(second.max(initial=0)) + 1) + second
    codes: IntArray = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return codes


def _nominated(outcome: FilterOutcome, rows: IntArray) -> IntArray:
    """(row,) the plugin that rejects only when nominated pods count, 0 for none."""
    return np.array(
        [int(outcome.plugin[row]) + 1 if int(row) in outcome.with_nominated else 0 for row in rows], dtype=np.int64
    )


def _kinds(verdicts: Verdicts, nodes: NodeTable, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """(row,) what kind of rejection a plugin gives, 0 for none, and how far the node is from passing."""
    kinds, distances = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.float64)
    hit = np.flatnonzero(verdicts.rejected[rows])
    if not len(hit):
        return kinds, distances
    rejected = rows[hit]
    _, first, inverse = np.unique(_facets(verdicts, nodes, rejected), return_index=True, return_inverse=True)
    seen: dict[Hashable, int] = {}
    kind_of = np.zeros(len(first), dtype=np.int64)
    distance_of = np.zeros(len(first), dtype=np.float64)
    amounts: dict[str, int] = {}
    for facet, index in enumerate(first):
        row = int(rejected[index])
        findings = verdicts.explain(row)
        kind = (int(verdicts.codes[row]), *(_kind(finding) for finding in findings))
        kind_of[facet] = seen.setdefault(kind, len(seen) + 1)
        distance_of[facet] = sum(_distance(finding) for finding in findings)
        amounts |= {one.resource: one.requested for one in findings if isinstance(one, InsufficientResource)}
    kinds[hit], distances[hit] = kind_of[inverse], distance_of[inverse]
    for resource, requested in amounts.items():
        distances[hit] += _shortfall(nodes, resource, requested)[rejected]
    return kinds, distances


def _facets(verdicts: Verdicts, nodes: NodeTable, rows: IntArray) -> IntArray:
    """(row,) codes such that rows of one code get the same kind of findings: each kind is then explained once."""
    reasons = verdicts.reasons.codes[rows] * len(Code) + verdicts.codes[rows]
    facets = reasons
    for first in np.unique(reasons, return_index=True)[1]:
        for finding in verdicts.explain(int(rows[first])):
            match finding:
                case InsufficientResource() | TooManyPods() | NodeUnschedulable() | NodeNameMismatch():
                    pass
                case UntoleratedTaint():
                    facets = _paired(facets, nodes.taints.codes[rows])
                case MissingNodeFeatures():
                    facets = _paired(facets, nodes.declared_features.codes[rows])
                case NodeAffinityMismatch():
                    keys = {requirement.key for term in finding.terms for requirement in term.requirements}
                    if NODE_NAME_FIELD in keys:
                        return np.arange(len(rows), dtype=np.int64)
                    for key in sorted(keys):
                        facets = _paired(facets, nodes.label(key).codes[rows])
                case _:
                    return np.arange(len(rows), dtype=np.int64)
    return facets


def _kind(finding: Finding) -> Hashable:
    """Equal for findings that one headline, up to its numbers, can stand for."""
    detail: Hashable
    match finding:
        case InsufficientResource():
            detail = finding.resource
        case UntoleratedTaint():
            detail = (finding.key, finding.value, finding.effect)
        case NodeAffinityMismatch():
            # which expressions fail tells more than which values the nodes have instead
            detail = (
                finding.source,
                tuple(tuple(one.matched for one in term.requirements) for term in finding.terms),
            )
        case TopologySpreadSkew():
            detail = (finding.constraint, "" if finding.topology_key == HOSTNAME else finding.domain)
        case TopologyLabelMissing():
            detail = finding.constraint
        case PodAffinityUnsatisfied():
            detail = (finding.term, finding.domain is None)
        case PodAntiAffinityConflict():
            detail = finding.term
        case HostPortConflict():
            detail = (finding.port, finding.protocol)
        case ExistingAntiAffinityConflict():
            detail = finding.topology_key
        case VolumeNodeAffinityMismatch() | VolumeZoneMismatch():
            detail = finding.persistent_volume
        case VolumeLimitExceeded():
            detail = finding.driver
        case DeviceClaimOutOfReach():
            detail = (finding.claim, finding.cause)
        case InsufficientDevices():
            detail = tuple((one.claim, one.request, one.stage) for one in finding.shortages)
        case _:
            detail = None
    return finding.reason, detail


def _distance(finding: Finding) -> float:
    """How far a node is from passing, for comparisons within one kind; resources are added by `_shortfall`."""
    match finding:
        case NodeAffinityMismatch():
            return float(min((term.missing for term in finding.terms), default=1))
        case TopologySpreadSkew():
            return float(finding.skew - finding.max_skew)
        case UntoleratedTaint():
            return 0.0 if is_cordon_taint(finding) else 0.5 if finding.nearest_toleration is not None else 1.0
        case NodeUnschedulable():
            return 0.5
        case InsufficientStorageCapacity():
            return 1 - finding.largest / max(finding.claim.requested, 1)
        case VolumeLimitExceeded():
            return 0.5 if any(not holder.pods for holder in finding.holders) else 1.0
        case VolumeNodeAffinityMismatch() | VolumeZoneMismatch() | DeviceClaimOutOfReach():
            return 2.0  # a volume does not move, nor does a device
        case InsufficientDevices():
            return sum((one.missing for one in finding.shortages), 0.0) or 0.25
        case InsufficientResource():
            return 0.0
        case _:
            return 1.0


def _shortfall(nodes: NodeTable, resource: str, requested: int) -> FloatArray:
    """(node,) what is missing of a resource, as a share of what is asked."""
    column = nodes.resources.index.get(resource)
    if column is None or requested <= 0:
        return np.ones(len(nodes), dtype=np.float64)
    free = nodes.allocatable[:, column] - nodes.requested[:, column]
    missing: FloatArray = np.maximum(requested - free, 0) / requested
    return missing
