"""CapacityScheduling of scheduler-plugins (pkg/capacityscheduling), as of August 2026 with Kubernetes 1.35.4.

Its preemption, which takes back what other namespaces have borrowed, is not here: the table of plugins says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np
from msgspec import Struct

from kschedx.api.integers import MAX_INT64
from kschedx.api.resources import node_allocatable, pod_request
from kschedx.api.scheduler_plugins import ElasticQuota
from kschedx.api.types import Pod, ResourceList
from kschedx.findings import ElasticQuotaExceeded
from kschedx.framework.interface import Handle, PreFilterPlugin, PreFilterResult, ReservePlugin
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow

NATIVE = ("cpu", "memory", "ephemeral-storage")
PODS = "pods"

Amounts = Mapping[str, int]


class Quota(Struct, frozen=True, kw_only=True):
    """A namespace's ElasticQuota; a bound that is not set names only what nodes have of themselves."""

    minimum: Amounts
    maximum: Amounts
    used: Amounts


class CapacityScheduling(PreFilterPlugin, ReservePlugin):
    """Holds namespaces to their ElasticQuota: never above `max`, and all together never above the sum of all `min`."""

    name = "CapacityScheduling"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._quotas: dict[str, Quota] = {}
        for one in handle.snapshot.of(ElasticQuota):
            # a namespace has one: the first that was seen counts
            self._quotas.setdefault(
                one.metadata.namespace,
                Quota(
                    minimum=_bound(one.spec.min, 0),
                    maximum=_bound(one.spec.max, MAX_INT64),
                    used=self._used(one.metadata.namespace),
                ),
            )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        quota = self._quotas.get(pod.metadata.namespace)
        if quota is None:
            return PreFilterResult()
        own = all_together = self._request(pod)
        for rows in self.handle.nominated.values():
            for row in rows:
                other = self.handle.snapshot.pods[row]
                theirs = self._quotas.get(other.metadata.namespace)
                if theirs is None or (other.metadata.uid and other.metadata.uid == pod.metadata.uid):
                    continue
                if other.metadata.namespace == pod.metadata.namespace:
                    if other.priority >= pod.priority:
                        own, all_together = _sum(own, self._request(other)), _sum(all_together, self._request(other))
                elif _over(theirs.used, {}, theirs.minimum, 0) is None:
                    all_together = _sum(all_together, self._request(other))
        namespace = pod.metadata.namespace
        exceeded = _over(own, quota.used, quota.maximum, MAX_INT64)
        if exceeded is not None:
            text = f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {namespace} is more than Max"
            return _rejected(text, _finding(namespace, exceeded, own, quota.used, quota.maximum, of_all=False))
        used, minimum = _total(q.used for q in self._quotas.values()), _total(q.minimum for q in self._quotas.values())
        exceeded = _over(_sum(used, all_together), {}, minimum, 0)
        if exceeded is not None:
            text = f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min"
            return _rejected(text, _finding(namespace, exceeded, all_together, used, minimum, of_all=True))
        return PreFilterResult()

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        return SUCCESS

    def _request(self, pod: Pod) -> Amounts:
        return pod_request(pod.spec, pod.status, self.handle.nodes.options).amounts

    def _used(self, namespace: str) -> Amounts:
        """What the namespace's pods that have a node request, together."""
        pods, nodes = self.handle.snapshot.pods, self.handle.nodes
        placed = (pods.node >= 0) & pods.namespaces.where(lambda name: name == namespace)
        rows: IntArray = np.flatnonzero(placed)
        amounts = nodes.requests.matrix[rows].sum(axis=0)
        return {name: int(amount) for name, amount in zip(nodes.resources.names, amounts, strict=True) if amount}


def _bound(written: ResourceList | None, unset: int) -> Amounts:
    if written is None:
        return dict.fromkeys(NATIVE, unset)
    amounts, pods = node_allocatable(written)
    return {**dict.fromkeys(NATIVE, 0), PODS: pods, **amounts}


def _sum(first: Amounts, second: Amounts) -> Amounts:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _total(of: Iterable[Amounts]) -> Amounts:
    return reduce(_sum, of, {})


def _over(request: Amounts, used: Amounts, bound: Amounts, unset: int) -> str | None:
    """The first resource of which there is too much; a scalar one counts only where the request names it."""
    scalars = sorted(name for name in request if name not in NATIVE)
    for name in (*NATIVE, *scalars):
        limit = bound.get(name, 0 if name in NATIVE else unset)
        if request.get(name, 0) + used.get(name, 0) > limit:
            return name
    return None


def _finding(
    namespace: str, resource: str, request: Amounts, used: Amounts, bound: Amounts, *, of_all: bool
) -> ElasticQuotaExceeded:
    return ElasticQuotaExceeded(
        namespace=namespace,
        of_all=of_all,
        resource=resource,
        requested=request.get(resource, 0),
        used=used.get(resource, 0),
        limit=bound.get(resource, 0),
        unit="m" if resource == "cpu" else "",
    )


def _rejected(text: str, finding: ElasticQuotaExceeded) -> PreFilterResult:
    return PreFilterResult(status=Status(code=Code.UNSCHEDULABLE, reasons=(text,), findings=(finding,)))
