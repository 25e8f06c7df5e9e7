"""What a cycle says about the nodes it rejected, ready to be told: groups, numbers, holders, eviction. No sentences.

Cheap until asked: groups are read from the verdict columns, and facts are built only for the nodes that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.resources import RequestPart, request_parts
from kschedx.explain.blockers import NodeAccount, account
from kschedx.explain.cause import Cause, cause_of
from kschedx.explain.grouping import NodeGroup, node_groups
from kschedx.explain.hardware_hints import HardwareHint, hardware_hint
from kschedx.explain.holders import Eviction, Holders, eviction, holders
from kschedx.explain.label_hints import LabelHint, label_hints
from kschedx.findings import InsufficientResource, NodeAffinityMismatch
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Status
from kschedx.snapshot.rows import TableRow


class NodeDetail(Struct, frozen=True, kw_only=True):
    """A node's account with what surrounds it."""

    account: NodeAccount
    pods: int
    """How many run there."""
    parts: Mapping[str, tuple[RequestPart, ...]]
    """What the pod's request is made of, for each resource that is short."""
    holders: Mapping[str, Holders]
    """Who holds each resource that is short."""
    eviction: Eviction


class Stop(Struct, frozen=True, kw_only=True):
    """A status about the pod as a whole that keeps it from its nodes."""

    point: str
    """`PreEnqueue` or `PreFilter`."""
    status: Status


class Excluded(Struct, frozen=True, kw_only=True):
    """Nodes that PreFilter left out, so that no Filter plugin saw them."""

    plugins: tuple[str, ...]
    """Those that named nodes."""
    names: tuple[str, ...]
    """The nodes that all of them name, in the cluster or not."""
    count: int
    """How many nodes are left out."""


@dataclass(frozen=True)
class Diagnosis:
    """One finished cycle, asked about its rejections."""

    cycle: Cycle
    _details: dict[TableRow, NodeDetail] = field(default_factory=dict, repr=False, compare=False)

    @property
    def total(self) -> int:
        """All nodes of the cluster."""
        return len(self.cycle.all_nodes)

    @property
    def feasible(self) -> int:
        """How many nodes the pod fits on."""
        rows = self.cycle.feasible
        return 0 if rows is None else len(rows)

    @cached_property
    def groups(self) -> tuple[NodeGroup, ...]:
        return node_groups(self.cycle)

    @cached_property
    def stops(self) -> tuple[Stop, ...]:
        return tuple(self._stops())

    def _stops(self) -> Iterator[Stop]:
        held = []
        for status in self.cycle.pre_enqueue:
            if not (status.is_success or status.is_skip):
                held.append(status.findings)  # PreFilter may say the same once more
                yield Stop(point="PreEnqueue", status=status)
        rejected = False
        for step in self.cycle.pre_filter:
            if not (step.status.is_success or step.status.is_skip):
                rejected = True
                if step.status.findings not in held or not step.status.findings:
                    yield Stop(point="PreFilter", status=step.status)
        whole = self.cycle.pre_filter_status
        if not rejected and not (whole.is_success or whole.is_skip):
            yield Stop(point="PreFilter", status=whole)  # what the plugins named has nothing in common

    @cached_property
    def excluded(self) -> Excluded | None:
        nodes = self.cycle.nodes
        if nodes is None or len(nodes) == self.total:
            return None
        named = [(step.status.plugin, step.nodes) for step in self.cycle.pre_filter if step.nodes is not None]
        return Excluded(
            plugins=tuple(plugin for plugin, _ in named),
            names=tuple(sorted(frozenset.intersection(*(names for _, names in named)))) if named else (),
            count=self.total - len(nodes),
        )

    def detail(self, row: TableRow) -> NodeDetail:
        """Everything about one node, a row of `cycle.nodes`."""
        if row not in self._details:
            self._details[row] = self._detail(account(self.cycle, row))
        return self._details[row]

    def _detail(self, found: NodeAccount) -> NodeDetail:
        nodes = self.cycle.nodes
        assert nodes is not None
        short = [finding for finding in found.findings if isinstance(finding, InsufficientResource)]
        return NodeDetail(
            account=found,
            pods=int(nodes.pod_count[found.row]),
            parts={finding.resource: self._parts(finding) for finding in short},
            holders={finding.resource: holders(self.cycle, found.row, finding.resource) for finding in short},
            eviction=eviction(self.cycle, found),
        )

    def free(self, rows: Iterable[int], resource: str) -> int:
        """What some nodes, rows of `cycle.nodes`, have left of a resource in sum."""
        nodes = self.cycle.nodes
        assert nodes is not None
        column = nodes.resources.index.get(resource)
        if column is None:
            return 0
        chosen = list(rows)
        left = nodes.allocatable[chosen, column] - nodes.requested[chosen, column]
        return int(left[left > 0].sum())

    def _parts(self, finding: InsufficientResource) -> tuple[RequestPart, ...]:
        # a pod that runs nowhere yet is not being resized
        options = replace(self.cycle.all_nodes.options, use_status_resources=False)
        pod = self.cycle.pod
        parts = request_parts(pod.spec, pod.status, options, finding.resource)
        return parts if sum(part.amount for part in parts) == finding.requested else ()

    @cached_property
    def hardware(self) -> tuple[HardwareHint, ...]:
        """Where no node offers what the pod asks for, and some have the hardware for it."""
        findings = (one for group in self.groups for one in group.exemplar.findings)
        found = (hardware_hint(finding, self.cycle.all_nodes.cluster) for finding in findings)
        return tuple({hint.resource: hint for hint in found if hint is not None}.values())

    @cached_property
    def cause(self) -> Cause | None:
        return cause_of(self.groups, self.hardware)

    @cached_property
    def hints(self) -> tuple[LabelHint, ...]:
        """Labels that the pod's node selectors ask for and no node has."""
        requirements = dict.fromkeys(
            (requirement.key, requirement.operator, requirement.values)
            for finding in (one for group in self.groups for one in group.exemplar.findings)
            if isinstance(finding, NodeAffinityMismatch)
            for term in finding.terms
            for requirement in term.requirements
        )
        return label_hints(requirements, self.cycle.all_nodes.cluster)
