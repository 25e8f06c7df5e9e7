"""What Kueue has left for a ClusterQueue in the tree of cohorts above it.

A cohort pools what its queues and the cohorts below it have, but for what each keeps to itself (`lendingLimit`), and
adds quota of its own; who is below takes from the pool up to its `borrowingLimit`, at each level.

Upstream: pkg/cache/scheduler/resource_node.go of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kschedx.api.kueue import ClusterQueue, Cohort, ResourceGroup, ResourceQuota
from kschedx.holding.amounts import amount
from kschedx.holding.model import Pool

Used = Mapping[tuple[str, str, str], int]
"""By ClusterQueue, flavor and resource."""


class _Node(Struct, frozen=True, kw_only=True):
    """A queue or a cohort, with one resource of one flavor."""

    subtree: int
    """All that is below it and comes up to it, and its own."""
    usage: int
    """What counts against that."""
    local: int
    """What of it never leaves upwards."""
    borrowing_limit: int | None

    @property
    def given_up(self) -> int:
        return self.subtree - self.local

    @property
    def taken_up(self) -> int:
        return max(self.usage - self.local, 0)

    @property
    def left_here(self) -> int:
        return max(self.local - self.usage, 0)


class Cohorts:
    """The tree, from the queues that name cohorts and the Cohort objects; a cohort needs no object."""

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> None:
        self._objects = {one.metadata.name: one for one in cohorts}
        self._queues: dict[str, list[ClusterQueue]] = {}
        for queue in queues:
            if queue.cohort:
                self._queues.setdefault(queue.cohort, []).append(queue)
        self._below: dict[str, list[str]] = {}
        for name, one in self._objects.items():
            if one.parent:
                self._below.setdefault(one.parent, []).append(name)

    def above(self, queue: ClusterQueue) -> tuple[str, ...]:
        """The cohorts over a queue, the nearest first; up to where a circle of them closes."""
        path: list[str] = []
        name = queue.cohort
        while name and name not in path:
            path.append(name)
            found = self._objects.get(name)
            name = found.parent if found is not None else ""
        return tuple(path)

    def circle(self, queue: ClusterQueue) -> tuple[str, ...]:
        """Those cohorts, where one is above itself: Kueue admits nothing there."""
        path = self.above(queue)
        last = self._objects.get(path[-1]) if path else None
        return path if last is not None and last.parent else ()

    def available(self, queue: ClusterQueue, flavor: str, resource: str, used: Used) -> tuple[int, tuple[Pool, ...]]:
        """What Kueue would give the queue now, and how the cohorts above it stand, the nearest first.

        Negative where more is used than there is.
        """
        own = _of_queue(queue, flavor, resource, used)
        path = self.above(queue)
        nodes = [self._of_cohort(name, flavor, resource, used, frozenset()) for name in path]
        left = own.subtree - own.usage
        if nodes:
            left = nodes[-1].subtree - nodes[-1].usage
            for node in (*reversed(nodes[:-1]), own):
                if node.borrowing_limit is not None:
                    left = min(left, node.given_up - node.taken_up + node.borrowing_limit)
                left += node.left_here
        pools = tuple(
            Pool(cohort=name, quota=node.subtree, used=node.usage) for name, node in zip(path, nodes, strict=True)
        )
        return left, pools

    def _of_cohort(self, name: str, flavor: str, resource: str, used: Used, over: frozenset[str]) -> _Node:
        found = self._objects.get(name)
        quota = quota_in(found.spec.resource_groups if found is not None else (), flavor, resource)
        over |= {name}
        below = [
            self._of_cohort(one, flavor, resource, used, over) for one in self._below.get(name, ()) if one not in over
        ]
        below += [_of_queue(one, flavor, resource, used) for one in self._queues.get(name, ())]
        subtree = _nominal(quota, resource) + sum(one.given_up for one in below)
        return _node(quota, resource, subtree, sum(one.taken_up for one in below))


def _of_queue(queue: ClusterQueue, flavor: str, resource: str, used: Used) -> _Node:
    quota = quota_in(queue.spec.resource_groups, flavor, resource)
    return _node(quota, resource, _nominal(quota, resource), used.get((queue.metadata.name, flavor, resource), 0))


def _node(quota: ResourceQuota | None, resource: str, subtree: int, usage: int) -> _Node:
    lending = None if quota is None or quota.lending_limit is None else amount(resource, quota.lending_limit)
    borrowing = None if quota is None or quota.borrowing_limit is None else amount(resource, quota.borrowing_limit)
    local = 0 if lending is None else max(subtree - lending, 0)
    return _Node(subtree=subtree, usage=usage, local=local, borrowing_limit=borrowing)


def _nominal(quota: ResourceQuota | None, resource: str) -> int:
    return 0 if quota is None else amount(resource, quota.nominal_quota)


def quota_in(groups: Sequence[ResourceGroup], flavor: str, resource: str) -> ResourceQuota | None:
    every = (one for group in groups for one in group.flavors if one.name == flavor)
    return next((quota for one in every for quota in one.resources if quota.name == resource), None)
