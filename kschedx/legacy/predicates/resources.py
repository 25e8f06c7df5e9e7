"""PodFitsResources (pkg/scheduler/algorithm/predicates/predicates.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from kschedx.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from kschedx.api.types import Pod
from kschedx.findings import Finding, InsufficientResource, TooManyPods
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Predicate, joined
from kschedx.legacy.requests import incoming_request
from kschedx.plugins.resource_allocation import amounts
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow

REASON_PODS = "Insufficient pods"
NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)


class _Shortage(Struct, frozen=True, kw_only=True):
    """One resource on all nodes; arrays are (node,)."""

    resource: str
    request: int
    used: IntArray
    allocatable: IntArray

    @property
    def where(self) -> BoolArray:
        short: BoolArray = self.allocatable < self.request + self.used
        return short

    def finding(self, row: TableRow) -> InsufficientResource:
        return InsufficientResource(
            resource=self.resource,
            requested=self.request,
            used=int(self.used[row]),
            allocatable=int(self.allocatable[row]),
            unit="m" if self.resource == CPU else "",
        )


class PodFitsResources(Predicate):
    """What the pod asks for against what is left.

    A pod that asks for anything is held against cpu, memory and ephemeral storage even where it asks for none of that:
    a node that is overcommitted already rejects it.
    """

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        crowded = nodes.pod_count + 1 > nodes.allowed_pods

        def too_many(row: TableRow) -> tuple[Finding, ...]:
            return (TooManyPods(pods=int(nodes.pod_count[row]), allowed=int(nodes.allowed_pods[row])),)

        parts = [Verdicts.first_of((crowded, Code.UNSCHEDULABLE, REASON_PODS), explain=too_many)]
        for resource, request in self._checked(incoming_request(pod.spec)):
            shortage = _Shortage(
                resource=resource,
                request=request,
                used=amounts(nodes, nodes.requested, resource),
                allocatable=amounts(nodes, nodes.allocatable, resource),
            )
            parts.append(_verdicts(shortage))
        return joined(parts)

    def _checked(self, request: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        scalars = request.keys() - set(NATIVE)
        if not scalars and not any(request.values()):
            return
        for resource in NATIVE:
            yield resource, request.get(resource, 0)
        for resource in sorted(scalars):
            if not (is_extended_resource(resource) and resource in self.context.ignored_resources):
                yield resource, request[resource]


def _verdicts(shortage: _Shortage) -> Verdicts:
    return Verdicts.first_of(
        (np.asarray(shortage.where), Code.UNSCHEDULABLE, f"Insufficient {shortage.resource}"),
        explain=lambda row: (shortage.finding(row),),
    )
