"""The quota that a Workload asks for, flavor by flavor, and who holds it.

Amounts are those of `api.resources`: thousandths of cpu, whole units of everything else. Of a cohort all queues are
added up; limits on lending, and cohorts above cohorts, are Kueue's own to weigh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kschedx.api.defaulting import default_pod_spec
from kschedx.api.kueue import ClusterQueue, FlavorQuotas, PodSetAssignment, ResourceQuota, Workload
from kschedx.api.quantity import milli_value, value
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.types import PodSpec, PodStatus
from kschedx.holding.model import Quota, User

PODS = "pods"


def amount(resource: str, written: str | int | float) -> int:
    return milli_value(written) if resource == "cpu" else value(written)


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
    workload: Workload, queue: ClusterQueue, members: Sequence[ClusterQueue], workloads: Iterable[Workload],
    options: RequestOptions,
) -> Iterator[Quota]:  # fmt: skip
    """For each resource of the Workload and each flavor that has it; `members` are the queues of the cohort."""
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
        in_cohort = [(one, found) for one in members if (found := _quota(one, flavor, quota.name)) is not None]
        limit = quota.borrowing_limit
        yield Quota(
            resource=quota.name,
            flavor=flavor,
            asked=number,
            nominal=amount(quota.name, quota.nominal_quota),
            used=used[key],
            borrowing_limit=None if limit is None else amount(quota.name, limit),
            cohort_nominal=sum(amount(quota.name, found.nominal_quota) for _, found in in_cohort) if members else None,
            cohort_used=sum(used[one.metadata.name, flavor, quota.name] for one in members) if members else None,
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


def _quota(queue: ClusterQueue, flavor: str, resource: str) -> ResourceQuota | None:
    return next((quota for name, quota in _flavors(queue) if (name, quota.name) == (flavor, resource)), None)
