"""Rejected nodes in detail: labels that no node has, who uses what is missing, and what evictions would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import PREEMPT_NEVER
from kschedx.errors import closest
from kschedx.explain.hardware import HardwareHint, hardware_hint
from kschedx.explain.node_groups import NodeAccount, NodeGroup, account, node_groups
from kschedx.findings import Finding, InsufficientResource, NodeAffinityMismatch, NodeUnschedulable, UntoleratedTaint
from kschedx.findings.constraints import CONDITION_OF_TAINT
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Candidate, Code, Status
from kschedx.kube.documents import Document
from kschedx.kube.quantity import resource_amount
from kschedx.kube.resources import RequestPart, request_parts
from kschedx.kube.selectors import NODE_NAME_FIELD
from kschedx.kube.typos import LOOKED_AT
from kschedx.snapshot.columns import BoolArray, TableRow, clamp_int64
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.pods import PodTable

_MOST_NEAR = 100  # the maximum number of requirements for which a near name is searched
_FAULTS = frozenset(
    {
        *CONDITION_OF_TAINT,
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""Taints of nodes that are unhealthy or not initialized yet."""


class LabelHint(Struct, frozen=True, kw_only=True):
    """A requirement that no node of the cluster meets."""

    key: str
    values: tuple[str, ...]  # the required values; empty if no node has the key
    nearest: str  # the nearest label key or value in use; empty if none is near
    nearest_count: int  # the number of nodes with it
    in_use: tuple[tuple[str, int], ...]  # the values of the key with their number of nodes, most frequent first


def label_hints(
    requirements: Iterable[tuple[str, str, tuple[str, ...]]], cluster: ClusterNodes
) -> tuple[LabelHint, ...]:
    """Return the requirements (key, operator, values) that no node meets."""
    hints: list[LabelHint] = []
    for key, operator, wanted in requirements:
        hint = label_hint(key, operator, wanted, cluster, search=len(hints) < _MOST_NEAR)
        if hint is not None:
            hints.append(hint)
    return tuple(hints)


def label_hint(
    key: str, operator: str, wanted: tuple[str, ...], cluster: ClusterNodes, *, search: bool = True
) -> LabelHint | None:
    """Return None if some node meets it, or if the operator requires absence or compares numbers. `search`: search a
    near name."""
    if operator not in ("In", "=", "Exists") or key == NODE_NAME_FIELD:
        return None
    if key not in cluster.label_keys:
        return _unknown_key(key, cluster, search=search)
    column = cluster.label(key)
    counts = Counter(column.values[int(code)] for code in column.codes)
    in_use = tuple((value, count) for value, count in counts.most_common() if value is not None)
    if operator == "Exists" or any(value in counts for value in wanted):
        return None
    nearest = _nearest(wanted, [value for value, _ in in_use]) if search else ""
    return LabelHint(
        key=key, values=wanted, nearest=nearest, nearest_count=counts[nearest] if nearest else 0, in_use=in_use
    )


def _unknown_key(key: str, cluster: ClusterNodes, *, search: bool) -> LabelHint:
    counts = Counter(name for node in cluster.nodes for name in node.metadata.labels) if search else Counter()
    nearest = _nearest((key,), [name for name in counts if _has_similar_end(key, name)])
    return LabelHint(key=key, values=(), nearest=nearest, nearest_count=counts[nearest] if nearest else 0, in_use=())


def _has_similar_end(key: str, other: str) -> bool:
    """Whether the keys are similar without their prefixes: many labels have `kubernetes.io/` alone in common."""
    ends = key.rpartition("/")[2], other.rpartition("/")[2]
    return ends[0].startswith(ends[1]) or ends[1].startswith(ends[0]) or bool(_nearest(ends[:1], [ends[1]]))


def _nearest(wanted: tuple[str, ...], known: list[str]) -> str:
    """Return the known text nearest to one of the required values, or an empty string."""
    return next(filter(None, (closest(text, known[:LOOKED_AT]) for text in wanted[:LOOKED_AT])), "")


class Holder(Document, frozen=True, kw_only=True, omit_defaults=True):
    """A pod on a node."""

    pod: str  # `namespace/name`
    priority: int
    amount: int  # the amount in plugins' integers; 0 if the pod is in the way for another reason than a resource
    has_unknown_priority: bool = False

    @property
    def priority_text(self) -> str:
        return f"priority {'unknown' if self.has_unknown_priority else self.priority}"


class EvictionVerdict(StrEnum):
    """Whether evicting pods from a node helps."""

    HELPS = "helps"  # the node is a preemption candidate
    UNRESOLVABLE = "unresolvable"  # the node itself is unsuitable, whatever runs there
    NOT_ALLOWED = "not-allowed"  # the pod's preemptionPolicy is Never
    NO_LOWER_PRIORITY = "no-lower-priority"
    NOT_ENOUGH = "not-enough"  # the pod would not fit even without all pods of lower priority
    NOT_TRIED = "not-tried"  # no PostFilter plugin evaluated the node


class PreemptionOutcome(Struct, frozen=True, kw_only=True):
    answer: EvictionVerdict
    plugin: str = ""  # the plugin for which the node is unresolvable
    victims: tuple[Holder, ...] = ()  # the victims if eviction helps, most important first
    pdb_violations: int = 0
    lower: int = 0  # the number of pods on the node with a lower priority
    enough: tuple[Holder, ...] = ()
    """Pods of any priority, each of which alone frees enough; only if nothing but resources is missing."""


def holders(cycle: Cycle, row: TableRow, resource: str) -> tuple[Holder, ...]:
    """Return the pods on a node (a row of `cycle.nodes`) that request a resource, largest first."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    column = nodes.resources.index.get(resource)
    if column is None:
        return ()
    rows = nodes.pods_on(row)
    amounts = nodes.requests.matrix[rows, column]
    order = np.argsort(-amounts, kind="stable")
    return tuple(holder(cycle.snapshot.pods, int(rows[i]), int(amounts[i])) for i in order if amounts[i] > 0)


def holder(pods: PodTable, pod: int, amount: int) -> Holder:
    is_unknown = bool(pods.has_unknown_priority[pod])
    return Holder(pod=pods.key(pod), priority=int(pods.priorities[pod]), amount=amount, has_unknown_priority=is_unknown)


def victims(cycle: Cycle, candidate: Candidate) -> tuple[Holder, ...]:
    """Return the victims of a candidate, most important first."""
    return tuple(holder(cycle.snapshot.pods, row, 0) for row in candidate.victims)


def eviction(cycle: Cycle, account: NodeAccount) -> PreemptionOutcome:
    """Return whether evicting pods from a node would make it feasible, according to preemption's dry run."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    node, known = nodes.cluster_row(account.row), cycle.post_filter.candidates if cycle.post_filter else ()
    candidate = next((candidate for candidate in known if candidate.node == node), None)
    rows = nodes.pods_on(account.row)
    lower = int(np.count_nonzero(nodes.pods.priorities[rows] < cycle.pod.priority))
    if candidate is not None:
        return PreemptionOutcome(
            answer=EvictionVerdict.HELPS,
            victims=victims(cycle, candidate),
            pdb_violations=candidate.pdb_violations,
            lower=lower,
        )
    unresolvable = next((blocker.plugin for blocker in account.blockers if blocker.code is not Code.UNSCHEDULABLE), "")
    if unresolvable:
        return PreemptionOutcome(answer=EvictionVerdict.UNRESOLVABLE, plugin=unresolvable)
    enough = _enough(cycle, account)
    if cycle.pod.spec.preemption_policy == PREEMPT_NEVER:
        return PreemptionOutcome(answer=EvictionVerdict.NOT_ALLOWED, lower=lower, enough=enough)
    if not lower:
        return PreemptionOutcome(answer=EvictionVerdict.NO_LOWER_PRIORITY, enough=enough)
    if cycle.post_filter is None or cycle.post_filter.dry_run is None:
        return PreemptionOutcome(answer=EvictionVerdict.NOT_TRIED, lower=lower, enough=enough)
    return PreemptionOutcome(answer=EvictionVerdict.NOT_ENOUGH, lower=lower, enough=enough)


def _enough(cycle: Cycle, account: NodeAccount) -> tuple[Holder, ...]:
    """Return pods each of which frees every missing resource, smallest first."""
    assert cycle.nodes is not None
    nodes = cycle.nodes
    short = [finding for finding in account.findings if isinstance(finding, InsufficientResource)]
    if not short or len(short) != len(account.findings):
        return ()
    if any(finding.resource not in nodes.resources.index for finding in short):
        return ()  # nothing in the cluster requests or offers it
    rows = nodes.pods_on(account.row)
    columns = [nodes.resources.index[finding.resource] for finding in short]
    held = nodes.requests.matrix[rows][:, columns]
    missing = clamp_int64(finding.short_by for finding in short)
    suffices: BoolArray = np.all(held >= missing, axis=1)
    order = np.argsort(held[:, 0], kind="stable")
    return tuple(holder(cycle.snapshot.pods, int(rows[i]), int(held[i, 0])) for i in order if suffices[i])


# Faults of the cluster if a pod fits no node: nodes that are not ready, or a resource that no node offers.


class FaultyNodes(Struct, frozen=True, kw_only=True):
    """Nodes on which the pod would fit if they were healthy, with the fault of the first one."""

    nodes: int
    first: str
    fault: UntoleratedTaint


class OfferedNowhere(Struct, frozen=True, kw_only=True):
    resource: str
    hardware: HardwareHint | None


_Cause = FaultyNodes | OfferedNowhere


# The rejected nodes of a cycle as facts: groups, numbers, the pods that use what is missing, evictions. They are
# computed on demand: groups from the verdict columns, and details only for the nodes shown.


class NodeDetail(Struct, frozen=True, kw_only=True):
    account: NodeAccount
    pods: int
    parts: Mapping[str, tuple[RequestPart, ...]]  # the parts of the request for each missing resource
    holders: Mapping[str, tuple[Holder, ...]]  # the pods that use each missing resource
    eviction: PreemptionOutcome
    capacity: Mapping[str, int]
    """The node's capacity of each missing resource, if only the reserved amounts make the request too large."""


class Stop(Struct, frozen=True, kw_only=True):
    """A status about the whole pod that rejects all nodes."""

    point: str  # `PreEnqueue` or `PreFilter`
    status: Status


class ExcludedNodes(Struct, frozen=True, kw_only=True):
    """Nodes that PreFilter excludes, so that Filter does not evaluate them."""

    plugins: tuple[str, ...]
    names: tuple[str, ...]  # the nodes that all of them allow, in the cluster or not
    count: int


class Diagnosis(Struct, frozen=True, dict=True, eq=False):
    """The rejections of one finished cycle."""

    cycle: Cycle
    _details: dict[TableRow, NodeDetail] = {}

    @property
    def total(self) -> int:
        """The number of nodes in the cluster."""
        return len(self.cycle.all_nodes)

    @property
    def feasible(self) -> int:
        rows = self.cycle.feasible
        return 0 if rows is None else len(rows)

    @cached_property
    def groups(self) -> tuple[NodeGroup, ...]:
        return node_groups(self.cycle)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings on a node of each group."""
        return tuple(finding for group in self.groups for finding in group.exemplar.findings)

    @cached_property
    def stops(self) -> tuple[Stop, ...]:
        return tuple(self._stops())

    def _stops(self) -> Iterator[Stop]:
        held = []
        for status in self.cycle.pre_enqueue:
            if not (status.is_success or status.is_skip):
                held.append(status.findings)  # PreFilter may repeat it
                yield Stop(point="PreEnqueue", status=status)
        rejected = False
        for step in self.cycle.pre_filter:
            if not (step.status.is_success or step.status.is_skip):
                rejected = True
                if step.status.findings not in held or not step.status.findings:
                    yield Stop(point="PreFilter", status=step.status)
        whole = self.cycle.pre_filter_status
        if not rejected and not (whole.is_success or whole.is_skip):
            yield Stop(point="PreFilter", status=whole)  # the plugins have no node in common

    @cached_property
    def excluded(self) -> ExcludedNodes | None:
        nodes = self.cycle.nodes
        if nodes is None or len(nodes) == self.total:
            return None
        named = [(step.status.plugin, step.nodes) for step in self.cycle.pre_filter if step.nodes is not None]
        return ExcludedNodes(
            plugins=tuple(plugin for plugin, _ in named),
            names=tuple(sorted(frozenset.intersection(*(names for _, names in named)))) if named else (),
            count=self.total - len(nodes),
        )

    def detail(self, row: TableRow) -> NodeDetail:
        """Return the details of one node, a row of `cycle.nodes`."""
        if row not in self._details:
            self._details[row] = self._detail(account(self.cycle, row))
        return self._details[row]

    def _detail(self, node_account: NodeAccount) -> NodeDetail:
        nodes = self.cycle.nodes
        assert nodes is not None
        short = [finding for finding in node_account.findings if isinstance(finding, InsufficientResource)]
        return NodeDetail(
            account=node_account,
            pods=int(nodes.pod_count[node_account.row]),
            parts={finding.resource: self._parts(finding) for finding in short},
            holders={finding.resource: holders(self.cycle, node_account.row, finding.resource) for finding in short},
            eviction=eviction(self.cycle, node_account),
            capacity={
                finding.resource: whole
                for finding in short
                if (whole := self._reserved_capacity(node_account, finding))
            },
        )

    def _reserved_capacity(self, node_account: NodeAccount, finding: InsufficientResource) -> int:
        """Return the node's capacity of a resource if the pod lacks only what is reserved of it; 0 otherwise."""
        nodes = self.cycle.nodes
        if nodes is None or not finding.never_fits:
            return 0
        node = nodes.cluster.nodes[nodes.cluster_row(node_account.row)]
        whole = resource_amount(finding.resource, node.status.capacity.get(finding.resource))
        return whole if whole >= finding.requested else 0

    def free(self, rows: Iterable[int], resource: str) -> int:
        """Sum the free amounts of a resource on some nodes, rows of `cycle.nodes`."""
        nodes = self.cycle.nodes
        assert nodes is not None
        column = nodes.resources.index.get(resource)
        if column is None:
            return 0
        chosen = list(rows)
        left = nodes.allocatable[chosen, column] - nodes.requested[chosen, column]
        return int(left[left > 0].sum())

    def _parts(self, finding: InsufficientResource) -> tuple[RequestPart, ...]:
        # a pod without a node is not being resized
        options = replace(self.cycle.all_nodes.options, use_status_resources=False)
        pod = self.cycle.pod
        parts = request_parts(pod.spec, pod.status, options, finding.resource)
        return parts if sum(part.amount for part in parts) == finding.requested else ()

    @cached_property
    def hardware(self) -> tuple[HardwareHint, ...]:
        """Hardware on some nodes for a requested resource that no node offers."""
        hints = (hardware_hint(finding, self.cycle.all_nodes.cluster) for finding in self.findings)
        return tuple({hint.resource: hint for hint in hints if hint is not None}.values())

    @cached_property
    def cause(self) -> _Cause | None:
        for finding in self.findings:
            if isinstance(finding, InsufficientResource) and finding.offered_nowhere:
                hint = next((hint for hint in self.hardware if hint.resource == finding.resource), None)
                return OfferedNowhere(resource=finding.resource, hardware=hint)
        for group in self.groups:
            match group.exemplar.findings:
                case (UntoleratedTaint(key=key) as fault,) | (
                    NodeUnschedulable(maintenance=None),
                    UntoleratedTaint(key=key) as fault,
                ) if key in _FAULTS:
                    return FaultyNodes(nodes=group.count, first=group.exemplar.name, fault=fault)
                case _:
                    pass
        return None

    @cached_property
    def hints(self) -> tuple[LabelHint, ...]:
        """Labels that the pod's node selectors require and no node has."""
        requirements = dict.fromkeys(
            (requirement.key, requirement.operator, requirement.values)
            for finding in self.findings
            if isinstance(finding, NodeAffinityMismatch)
            for term in finding.terms
            for requirement in term.requirements
        )
        return label_hints(requirements, self.cycle.all_nodes.cluster)
