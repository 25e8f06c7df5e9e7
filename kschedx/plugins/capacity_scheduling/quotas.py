"""ElasticQuotas and what is used of them (elasticquota.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.integers import MAX_INT64
from kschedx.api.quantity import ResourceList
from kschedx.api.resources import RequestOptions, node_allocatable, pod_request
from kschedx.api.scheduler_plugins import ElasticQuota
from kschedx.api.types import Pod
from kschedx.snapshot.snapshot import Snapshot

NATIVE = ("cpu", "memory", "ephemeral-storage")
PODS = "pods"

OPTIONS = RequestOptions(
    use_status_resources=False,
    pod_level_resources=False,
    pod_level_in_place=False,
    sidecars=False,
    rounded_by_container=True,
)
"""Pod-level requests do not count, and sidecars as other init containers do."""

Amounts = Mapping[str, int]


class Quota(Struct, frozen=True, kw_only=True):
    """A namespace's ElasticQuota; a bound that is not set names only what nodes have of themselves."""

    minimum: Amounts
    maximum: Amounts
    used: Amounts

    @property
    def is_over_minimum(self) -> bool:
        return over(self.used, {}, self.minimum, 0) is not None

    def exceeds_minimum(self, request: Amounts) -> str | None:
        """The first resource of which the namespace uses more than it is promised, `request` included."""
        return over(request, self.used, self.minimum, 0)

    def exceeds_maximum(self, request: Amounts) -> str | None:
        return over(request, self.used, self.maximum, MAX_INT64)

    def plus(self, amounts: Amounts, sign: int = 1) -> Quota:
        return replace(self, used=total(self.used, {name: sign * amount for name, amount in amounts.items()}))


Quotas = Mapping[str, Quota]
"""By namespace."""


def quotas_of(snapshot: Snapshot) -> Quotas:
    """What all pods that have a node, known or not, use of their namespaces' quotas."""
    # a namespace has one: the first that was seen counts
    written = {one.metadata.namespace: one.spec for one in reversed(snapshot.of(ElasticQuota))}
    used: dict[str, Amounts] = {namespace: {} for namespace in written}
    pods = snapshot.pods
    for row in (pods.namespaces.where(written.__contains__) & pods.node_names.where(bool)).nonzero()[0].tolist():
        pod = pods[row]
        used[pod.metadata.namespace] = total(used[pod.metadata.namespace], request_of(pod))
    return {
        namespace: Quota(minimum=_bound(spec.min, 0), maximum=_bound(spec.max, MAX_INT64), used=used[namespace])
        for namespace, spec in written.items()
    }


def request_of(pod: Pod) -> Amounts:
    return pod_request(pod.spec, pod.status, OPTIONS).amounts


def exceeds_all(quotas: Quotas, request: Amounts) -> str | None:
    """The first resource of which all namespaces together use more than all are promised, `request` included."""
    used, minimum = used_of_all(quotas), minimum_of_all(quotas)
    return over(total(used, request), {}, minimum, 0)


def used_of_all(quotas: Quotas) -> Amounts:
    return _sum(quota.used for quota in quotas.values())


def minimum_of_all(quotas: Quotas) -> Amounts:
    return _sum(quota.minimum for quota in quotas.values())


def total(first: Amounts, second: Amounts) -> Amounts:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _sum(of: Iterable[Amounts]) -> Amounts:
    return reduce(total, of, {})


def over(request: Amounts, used: Amounts, bound: Amounts, unset: int) -> str | None:
    """The first resource of which there is too much; a scalar one counts only where the request names it."""
    scalars = sorted(name for name in request if name not in NATIVE)
    for name in (*NATIVE, *scalars):
        limit = bound.get(name, 0 if name in NATIVE else unset)
        if request.get(name, 0) + used.get(name, 0) > limit:
            return name
    return None


def _bound(written: ResourceList | None, unset: int) -> Amounts:
    if written is None:
        return dict.fromkeys(NATIVE, unset)
    amounts, pods = node_allocatable(written)
    return {**dict.fromkeys(NATIVE, 0), PODS: pods, **amounts}
