"""CapacityScheduling of scheduler-plugins (pkg/capacityscheduling), as of August 2026 with Kubernetes 1.35.4.

Namespaces may borrow unused quota from each other; its preemption takes borrowed quota back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import PREEMPT_NEVER
from kschedx.findings import ElasticQuotaExceeded
from kschedx.framework.interface import (
    CycleState,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    StateKey,
    Texts,
)
from kschedx.framework.preemption import DryRun, dry_run
from kschedx.framework.status import FilterOutcome, Status, error, unschedulable
from kschedx.framework.victims import budget_coverage, order_victims
from kschedx.kube.other_schedulers import ElasticQuota
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import RequestOptions, node_allocatable, pod_request
from kschedx.kube.scalars import LATEST, MAX_INT64
from kschedx.kube.types import Pod
from kschedx.plugins.default_preemption import NEVER, VICTIMS_TERMINATING, Preemptor, no_victims_for
from kschedx.snapshot.columns import ClusterRow, TableRow, each_cluster_row
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import NATIVE, PodTable
from kschedx.snapshot.snapshot import Snapshot

# ElasticQuotas and their usage (elasticquota.go).

_PODS = "pods"

_OPTIONS = RequestOptions(
    use_status_resources=False,
    pod_level_resources=False,
    pod_level_in_place=False,
    sidecars=False,
    rounded_by_container=True,
)
"""Pod-level requests do not count. Sidecars count as ordinary init containers."""

_Amounts = Mapping[str, int]


class _QuotaUsage(Struct, frozen=True, kw_only=True):
    """The ElasticQuota of a namespace and its usage. A bound that is not set covers cpu, memory, ephemeral-storage, and
    pods only."""

    minimum: _Amounts
    maximum: _Amounts
    used: _Amounts

    @property
    def is_over_minimum(self) -> bool:
        return _exceeded_resource(self.used, {}, self.minimum, 0) is not None

    def exceeds_maximum(self, request: _Amounts) -> str | None:
        return _exceeded_resource(request, self.used, self.maximum, MAX_INT64)

    def plus(self, amounts: _Amounts, sign: int = 1) -> _QuotaUsage:
        return replace(self, used=_total(self.used, {name: sign * amount for name, amount in amounts.items()}))


_Quotas = Mapping[str, _QuotaUsage]  # usage by namespace


def _quotas_of(snapshot: Snapshot) -> _Quotas:
    """Return the quotas with the requests of all pods assigned to a node, even to a node that the snapshot lacks."""
    # a namespace has one quota: the first one seen counts
    written = {quota.metadata.namespace: quota.spec for quota in reversed(snapshot.of(ElasticQuota))}
    used: dict[str, _Amounts] = {namespace: {} for namespace in written}
    pods = snapshot.pods
    for row in (pods.namespaces.where(written.__contains__) & pods.node_names.where(bool)).nonzero()[0].tolist():
        pod = pods[row]
        used[pod.metadata.namespace] = _total(used[pod.metadata.namespace], _request_of(pod))
    return {
        namespace: _QuotaUsage(minimum=_bound(spec.min, 0), maximum=_bound(spec.max, MAX_INT64), used=used[namespace])
        for namespace, spec in written.items()
    }


def _request_of(pod: Pod) -> _Amounts:
    return pod_request(pod.spec, pod.status, _OPTIONS).amounts


def _exceeds_all(quotas: _Quotas, request: _Amounts) -> str | None:
    """Return the first resource whose usage in all namespaces, `request` included, exceeds the sum of all `min`."""
    used, minimum = _sums(quotas)
    return _exceeded_resource(_total(used, request), {}, minimum, 0)


def _sums(quotas: _Quotas) -> tuple[_Amounts, _Amounts]:
    """Return the usage and the `min` of all namespaces together."""
    every = quotas.values()
    return reduce(_total, (quota.used for quota in every), {}), reduce(_total, (quota.minimum for quota in every), {})


def _total(first: _Amounts, second: _Amounts) -> _Amounts:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _exceeded_resource(request: _Amounts, used: _Amounts, bound: _Amounts, unset: int) -> str | None:
    """Return the first resource that exceeds the bound. A scalar resource counts only if the request names it."""
    scalars = sorted(name for name in request if name not in NATIVE)
    for name in (*NATIVE, *scalars):
        limit = bound.get(name, 0 if name in NATIVE else unset)
        if request.get(name, 0) + used.get(name, 0) > limit:
            return name
    return None


def _bound(written: ResourceList | None, unset: int) -> _Amounts:
    if written is None:
        return dict.fromkeys(NATIVE, unset)
    amounts, pods = node_allocatable(written)
    return {**dict.fromkeys(NATIVE, 0), _PODS: pods, **amounts}


# Which pods a pod may preempt under quotas (SelectVictimsOnNode in capacity_scheduling.go).

_EXCEEDED = "global quota max exceeded"


class _PreemptionRequest(Struct, frozen=True, kw_only=True):
    """The state that PreFilter writes for PostFilter."""

    request: _Amounts
    with_nominated: _Amounts  # `request` plus the nominated pods of its namespace with the same or a higher priority
    of_all: _Amounts  # `with_nominated` plus the nominated pods of namespaces within their `min`


def _may_go(other: Pod, pod: Pod, quotas: _Quotas, *, is_beyond: bool) -> bool:
    """Return whether `pod` may preempt `other` under these quotas.

    A pod without a quota preempts only pods without one. If its namespace exceeds `min` (`is_beyond`), it preempts
    pods of its own namespace; otherwise, pods of namespaces that borrowed.
    """
    theirs = quotas.get(other.metadata.namespace)
    if pod.metadata.namespace not in quotas:
        return theirs is None and other.priority < pod.priority
    if theirs is None:
        return False
    if other.metadata.namespace == pod.metadata.namespace:
        return is_beyond and other.priority < pod.priority
    return not is_beyond and theirs.is_over_minimum


def _is_beyond(pod: Pod, quotas: _Quotas, request: _PreemptionRequest) -> bool:
    """Return whether the namespace would exceed its `min` with the pod."""
    own = quotas.get(pod.metadata.namespace)
    return own is not None and _exceeded_resource(request.with_nominated, own.used, own.minimum, 0) is not None


class _Account:
    """The quotas during a dry run, separately for each node, while victims are removed and reprieved."""

    def __init__(
        self, pods: PodTable, pod: Pod, names: Sequence[str], quotas: _Quotas, request: _PreemptionRequest
    ) -> None:
        self._pods, self._pod, self._names, self._asked = pods, pod, names, request
        self._whole = dict(quotas)
        self._on: dict[ClusterRow, dict[str, _QuotaUsage]] = {}

    def on(self, node: ClusterRow) -> dict[str, _QuotaUsage]:
        return self._on.setdefault(node, dict(self._whole))

    def move(self, node: ClusterRow, pod: Pod, sign: int) -> None:
        quotas = self.on(node)
        if pod.metadata.namespace in quotas:
            quotas[pod.metadata.namespace] = quotas[pod.metadata.namespace].plus(_request_of(pod), sign)

    def exceeds(self, node: ClusterRow, own: _Amounts, of_all: _Amounts) -> bool:
        quotas = self.on(node)
        mine = quotas.get(self._pod.metadata.namespace)
        return mine is not None and (mine.exceeds_maximum(own) is not None or _exceeds_all(quotas, of_all) is not None)

    def refusal(self, node: ClusterRow) -> Status | None:
        request = self._asked.request
        return unschedulable(_EXCEEDED) if self.exceeds(node, request, request) else None

    def stays(self, node: ClusterRow, pod: int, *, fits: bool) -> bool | Status:
        """Nominated pods count here, unlike in `refusal`. If Filter already removed the pod and the quota is still
        exceeded, CapacityScheduling removes the pod a second time, which is an error."""
        back = self._pods[pod]
        if fits:
            self.move(node, back, 1)
        if not self.exceeds(node, self._asked.with_nominated, self._asked.of_all):
            return fits
        if not fits:
            text = f"no corresponding pod {back.metadata.name} in pods of node {self._names[node]}"
            return error(text)
        self.move(node, back, -1)
        return False


def _preempt(
    handle: Handle, state: CycleState, pod: Pod, nodes: NodeTable, quotas: _Quotas, request: _PreemptionRequest
) -> DryRun:
    """Find the smallest sets of victims on `nodes` that the quotas allow."""
    account = _Account(nodes.pods, pod, nodes.cluster.names, quotas, request)
    beyond = _is_beyond(pod, quotas, request)
    victims: list[tuple[int, int]] = []
    for row, node in enumerate(each_cluster_row(nodes.rows)):
        for running in _least_important_first(nodes, TableRow(row)):
            other = nodes.pods[running]
            # removed victims return what they borrowed, which reprieves others
            if _may_go(other, pod, account.on(node), is_beyond=beyond):
                account.move(node, other, -1)
                victims.append((running, row))

    rows, index = np.array(victims, dtype=np.int64).reshape(-1, 2).T
    potential = order_victims(nodes, rows, index, budget_coverage(handle.snapshot).is_exceeded)
    no_victims = partial(no_victims_for, pod)
    return dry_run(handle, state, pod, nodes, no_victims=no_victims, potential=potential, bounds=account)


def _least_important_first(nodes: NodeTable, row: TableRow) -> list[int]:
    """Rows of the node's pods, least important first. Among equals, the pod that was loaded last comes first. Pods that
    have not started keep their order, because kube-scheduler gives each of them the current time."""
    pods, running = nodes.pods, nodes.pods_on(row)
    started, turn = pods.started[running], np.arange(len(running))
    turn = np.where(started == LATEST, turn, -turn)
    order = np.lexsort((turn, -started, pods.priorities[running]))
    return [int(item) for item in running[order]]


# The plugin (capacity_scheduling.go).

_NOT_READ = "not eligible due to failed to read from cycleState"


class CapacityScheduling(PreFilterPlugin, Preemptor, ReservePlugin):
    """Limits each namespace to the `max` of its ElasticQuota, and all namespaces together to the sum of all `min`. A
    namespace within its own `min` may preempt pods of namespaces that borrowed."""

    name = "CapacityScheduling"
    texts: ClassVar[Texts] = {
        "elastic-quota-exceeded": (
            "Pod {subject} is rejected in PreFilter because ElasticQuota {quota} is more than Max",
            "Pod {subject} is rejected in PreFilter because total ElasticQuota used is more than min",
            _EXCEEDED,
        ),
        "preemption-not-eligible": (_NOT_READ,),
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._quotas = _quotas_of(handle.snapshot)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        request = state[_ASKED] = self._preemption_request(pod)
        quota = self._quotas.get(pod.metadata.namespace)
        if quota is None:
            return PreFilterResult()
        namespace = pod.metadata.namespace
        exceeded = quota.exceeds_maximum(request.with_nominated)
        if exceeded is not None:
            why = f"ElasticQuota {namespace} is more than Max"
            return _rejection(pod, why, exceeded, request.with_nominated, quota.used, quota.maximum)
        exceeded = _exceeds_all(self._quotas, request.of_all)
        if exceeded is not None:
            why = "total ElasticQuota used is more than min"
            return _rejection(pod, why, exceeded, request.of_all, *_sums(self._quotas), of_all=True)
        return PreFilterResult()

    def _preemption_request(self, pod: Pod) -> _PreemptionRequest:
        """Return the pod's request with and without the nominated pods that count before it."""
        request = own = of_all = _request_of(pod)
        if pod.metadata.namespace in self._quotas:
            for row in (row for rows in self.handle.nominated.values() for row in rows):
                other = self.handle.snapshot.pods[row]
                theirs = self._quotas.get(other.metadata.namespace)
                if theirs is None or (other.metadata.uid and other.metadata.uid == pod.metadata.uid):
                    continue
                if other.metadata.namespace == pod.metadata.namespace:
                    if other.priority >= pod.priority:
                        own, of_all = _total(own, _request_of(other)), _total(of_all, _request_of(other))
                elif not theirs.is_over_minimum:
                    of_all = _total(of_all, _request_of(other))
        return _PreemptionRequest(request=request, with_nominated=own, of_all=of_all)

    # --- preemption

    def _ineligible(self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        if pod.spec.preemption_policy == PREEMPT_NEVER:
            return NEVER
        if _ASKED not in state:
            return _NOT_READ
        nominated = self._nominated_node(pod, nodes, outcome)
        if nominated is None:
            return ""
        pods, beyond = self.handle.nodes.pods, _is_beyond(pod, self._quotas, state[_ASKED])
        for row in pods.on_node(nominated):
            leaving = pods[row]
            beside = leaving.metadata.namespace == pod.metadata.namespace
            # nominated pods on the node count as victims even if the namespace is within its `min`
            if leaving.metadata.deletion_timestamp and _may_go(leaving, pod, self._quotas, is_beyond=beside or beyond):
                return VICTIMS_TERMINATING
        return ""

    def _dry_run(self, state: CycleState, pod: Pod, nodes: NodeTable) -> DryRun:
        return _preempt(self.handle, state, pod, nodes, self._quotas, state[_ASKED])

    def _candidate_limit(self, nodes: int) -> int:
        return nodes


_ASKED: StateKey[_PreemptionRequest] = StateKey("PreFilterCapacityScheduling")


def _rejection(
    pod: Pod, why: str, resource: str, request: _Amounts, used: _Amounts, bound: _Amounts, *, of_all: bool = False
) -> PreFilterResult:
    finding = ElasticQuotaExceeded(
        namespace=pod.metadata.namespace,
        of_all=of_all,
        resource=resource,
        requested=request.get(resource, 0),
        used=used.get(resource, 0),
        limit=bound.get(resource, 0),
        unit="m" if resource == "cpu" else "",
    )
    text = f"Pod {pod.key} is rejected in PreFilter because {why}"
    return PreFilterResult(status=unschedulable(text, finding))
