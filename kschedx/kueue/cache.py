"""The quota and topology usage of Workloads during a cycle, with trial changes.

Upstream: pkg/cache/scheduler (cache.go, snapshot.go, clusterqueue.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kschedx.kube.kueue import MULTIKUEUE, AdmissionCheck, ClusterQueue, ResourceFlavor
from kschedx.kueue.quota import QueueNode, QuotaTree, Requests, Usage, added
from kschedx.kueue.settings import KueueSettings
from kschedx.kueue.topology import DomainUsage, FlavorTopology, Request, TopologyPlacement, TopologyUsage, Values
from kschedx.kueue.workloads import Job, checks_of

PROVISIONING = "kueue.x-k8s.io/provisioning-request"

PlacementRequests = Mapping[str, Sequence[Request]]
"""Flavor to the pod sets to place with it."""


class Cache:
    def __init__(
        self,
        tree: QuotaTree,
        flavors: Mapping[str, ResourceFlavor],
        topologies: Mapping[str, FlavorTopology],
        checks: Mapping[str, AdmissionCheck],
        settings: KueueSettings,
    ) -> None:
        self.tree = tree
        self.flavors = flavors
        self.topologies = topologies
        """Flavor to its topology tree, for flavors whose Topology exists."""
        self.checks = checks
        self.settings = settings
        self.jobs: dict[str, dict[str, Job]] = {name: {} for name in tree.queues}
        """ClusterQueue to the Workloads with quota reserved in it, by key."""
        self.generations: dict[str, int] = dict.fromkeys(tree.queues, 1)
        """Per ClusterQueue, how often a Workload with quota in it was updated, including its admission."""
        self._marks: dict[str, int] = {}
        self.mark = 0
        """Equal if the same Workloads have the same quota, apart from changes within a cycle."""

    # --- usage

    def hold(self, job: Job) -> None:
        """Count the quota of a Workload."""
        name = job.admission.cluster_queue if job.admission is not None else ""
        node = self.tree.queues.get(name)
        if node is None:
            return
        self.jobs[name][job.key] = job
        self._marks[job.key] = job.mark
        self.mark ^= job.mark
        _add(node, job.usage)
        self._use(job.topology_usage, 1, overlapping=True)

    def release(self, job: Job, name: str) -> None:
        """Release the quota of a Workload, before its admission is cleared."""
        if self.jobs.get(name, {}).pop(job.key, None) is None:
            return
        self.mark ^= self._marks.pop(job.key)
        _remove(self.tree.queues[name], job.usage)
        self._use(job.topology_usage, -1, overlapping=True)

    def _use(self, usage: TopologyUsage, sign: int, *, overlapping: bool) -> None:
        """All flavors whose topology ends with hosts share them; a trial changes only its own flavor."""
        for flavor, domains in usage.items():
            own = self.topologies.get(flavor)
            if own is None:
                continue
            touched = [own]
            if overlapping and own.is_by_host and self.settings.enabled("TASHandleOverlappingFlavors"):
                touched = [topology for topology in self.topologies.values() if topology.is_by_host]
            for tree in touched:
                for domain in domains:
                    tree.use(domain, sign=sign)

    @contextmanager
    def cycle(self) -> Iterator[None]:
        """Undo all changes in the block at its end."""
        nodes = (*self.tree.queues.values(), *self.tree.cohorts.values())
        saved = [dict(node.usage) for node in nodes]
        places = [(leaf, leaf.used) for tree in self.topologies.values() for leaf in tree.leaves]
        try:
            yield
        finally:
            for node, usage in zip(nodes, saved, strict=True):
                node.usage = usage
            for leaf, used in places:
                leaf.used = used

    # --- trials

    def add_usage(self, node: QueueNode, usage: Usage, topology: TopologyUsage) -> None:
        _add(node, usage)
        self._use(topology, 1, overlapping=False)

    def remove_usage(self, node: QueueNode, usage: Usage, topology: TopologyUsage) -> None:
        _remove(node, usage)
        self._use(topology, -1, overlapping=False)

    def queue_of(self, job: Job) -> QueueNode:
        assert job.admission is not None
        return self.tree.queues[job.admission.cluster_queue]

    def remove(self, job: Job) -> None:
        node = self.queue_of(job)
        self.jobs[node.name].pop(job.key, None)
        self.remove_usage(node, job.usage, job.topology_usage)

    def restore(self, job: Job) -> None:
        node = self.queue_of(job)
        self.jobs[node.name][job.key] = job
        self.add_usage(node, job.usage, job.topology_usage)

    @contextmanager
    def without(self, jobs: Iterable[Job]) -> Iterator[None]:
        gone = list(jobs)
        for job in gone:
            self.remove(job)
        try:
            yield
        finally:
            for job in gone:
                self.restore(job)

    def fits(self, node: QueueNode, usage: Usage) -> bool:
        return all(node.available(fr) >= amount for fr, amount in usage.items())

    def fits_topology(self, topology: TopologyUsage) -> bool:
        return all(self.topologies[flavor].holds(domains) for flavor, domains in topology.items())

    # --- topology

    def topologies_of(self, queue: ClusterQueue) -> dict[str, FlavorTopology]:
        """Return the topologies of the queue's flavors."""
        names = [flavor.name for group in queue.spec.resource_groups for flavor in group.flavors]
        return {name: self.topologies[name] for name in names if name in self.topologies}

    def is_topology_only(self, queue: ClusterQueue) -> bool:
        """Return whether all its flavors have a topology; True without flavors."""
        names = [flavor.name for group in queue.spec.resource_groups for flavor in group.flavors]
        return all(name in self.flavors and self.flavors[name].spec.topology_name is not None for name in names)

    def is_placement_delayed(self, queue: ClusterQueue, flavor: str, job: Job) -> bool:
        """Return whether topology is assigned after an admission check or in another cluster."""
        for name, flavors in checks_of(queue).items():
            check = self.checks.get(name)
            if check is None:
                continue
            if check.spec.controller_name == MULTIKUEUE:
                return True
            if check.spec.controller_name == PROVISIONING and flavor in flavors and not job.has_quota:
                return True
        return False

    def place(self, requests: PlacementRequests, *, is_empty: bool = False) -> dict[str, TopologyPlacement]:
        """Return the placement of each pod set, or why it has none, which ends the search of its flavor."""
        placements: dict[str, TopologyPlacement] = {}
        shared: dict[Values, Requests] = {}
        is_shared = self.settings.enabled("TASHandleOverlappingFlavors")
        for flavor in sorted(requests):
            tree = self.topologies[flavor]
            assumed = shared if is_shared and tree.is_by_host else {}
            groups: dict[object, list[Request]] = {}
            for request in requests[flavor]:
                groups.setdefault(request.pod_set.name if request.group is None else (request.group,), []).append(
                    request
                )
            for group in groups.values():
                result = tree.place(group, assumed, is_empty=is_empty)
                if isinstance(result, str):
                    placements.update(
                        {request.pod_set.name: TopologyPlacement(flavor=flavor, failure=result) for request in group}
                    )
                    break
                for request in group:
                    assignment = result[request.pod_set.name]
                    placements[request.pod_set.name] = TopologyPlacement(flavor=flavor, assignment=assignment)
                    for domain in assignment.domains:
                        use = DomainUsage(values=domain.values, single=request.single, count=domain.count)
                        assumed[domain.values] = added(assumed.get(domain.values, {}), use.total)
        return placements


def failure(placements: Mapping[str, TopologyPlacement]) -> tuple[str, TopologyPlacement] | None:
    return next(((name, placement) for name, placement in placements.items() if placement.failure), None)


def _add(node: QueueNode, usage: Usage) -> None:
    for fr, amount in usage.items():
        node.add(fr, amount)


def _remove(node: QueueNode, usage: Usage) -> None:
    for fr, amount in usage.items():
        node.remove(fr, amount)
