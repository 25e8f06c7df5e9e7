"""The quota that a Workload asks for, flavor by flavor, and who holds it.

Amounts are those of `api.resources`: thousandths of cpu, whole units of everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kschedx.api.defaulting import default_pod_spec
from kschedx.api.kueue import ClusterQueue, FlavorQuotas, PodSetAssignment, ResourceQuota, Workload
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.types import PodSpec, PodStatus
from kschedx.holding.amounts import amount
from kschedx.holding.cohorts import Cohorts
from kschedx.holding.model import Quota, User

PODS = "pods"


def asked(workload: Workload, options: RequestOptions) -> Mapping[str, int]:
    """What all pods of a Workload ask for, as Kueue counted it where it says so."""
    total: Counter[str] = Counter()
    if workload.status.resource_requests:
        for request in workload.status.resource_requests:
            for resource, written in request.resources.items():
                total[resource] += amount(resource, written)
        return total
    for pod_set in workload.spec.pod_sets:
        total[PODS] += pod_set.count
        for resource, each in _requests(pod_set.template.spec, options).items():
            total[resource] += each * pod_set.count
    return total


def _requests(spec: PodSpec, options: RequestOptions) -> Mapping[str, int]:
    amounts = pod_request(default_pod_spec(spec), PodStatus(), options).amounts
    return {name: number for name, number in amounts.items() if number}


def quotas(
    workload: Workload, queue: ClusterQueue, cohorts: Cohorts, workloads: Iterable[Workload], options: RequestOptions
) -> Iterator[Quota]:
    """For each resource of the Workload and each flavor that has it."""
    wanted = asked(workload, options)
    holding = [one for one in workloads if one.reserves and one.key != workload.key]
    used: Counter[tuple[str, str, str]] = Counter()
    users: dict[tuple[str, str, str], list[User]] = {}
    for one in holding:
        assert one.status.admission is not None
        at = one.status.admission.cluster_queue
        for (flavor, resource), number in _usage(one.status.admission.pod_set_assignments).items():
            used[at, flavor, resource] += number
            user = User(workload=one.key, priority=one.priority, amount=number)
            users.setdefault((at, flavor, resource), []).append(user)
    name = queue.metadata.name
    for flavor, quota in _flavors(queue):
        number = wanted.get(quota.name, 0)
        if not number:
            continue
        key = (name, flavor, quota.name)
        available, pools = cohorts.available(queue, flavor, quota.name, used)
        yield Quota(
            resource=quota.name,
            flavor=flavor,
            asked=number,
            nominal=amount(quota.name, quota.nominal_quota),
            used=used[key],
            borrowing_limit=_limit(quota.name, quota.borrowing_limit),
            lending_limit=_limit(quota.name, quota.lending_limit),
            cohort_nominal=pools[0].quota if pools else None,
            cohort_used=pools[0].used if pools else None,
            available=available,
            pools=pools,
            users=tuple(sorted(users.get(key, ()), key=lambda user: (-user.amount, user.workload))),
        )


def _usage(assignments: Iterable[PodSetAssignment]) -> Mapping[tuple[str, str], int]:
    """What a Workload holds, by flavor and resource."""
    found: Counter[tuple[str, str]] = Counter()
    for assignment in assignments:
        for resource, flavor in assignment.flavors.items():
            written = assignment.resource_usage.get(resource, assignment.count or 0 if resource == PODS else 0)
            found[flavor, resource] += amount(resource, written)
    return found


def _flavors(queue: ClusterQueue) -> Iterator[tuple[str, ResourceQuota]]:
    for flavor in flavors_of(queue):
        for quota in flavor.resources:
            yield flavor.name, quota


def flavors_of(queue: ClusterQueue) -> Iterator[FlavorQuotas]:
    """In the order in which Kueue tries them."""
    for group in queue.spec.resource_groups:
        yield from group.flavors


def _limit(resource: str, written: str | int | float | None) -> int | None:
    return None if written is None else amount(resource, written)
