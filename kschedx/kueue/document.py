"""The decisions of a Kueue run, as facts: the document of `kschedx.kueue`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from kschedx.kube.documents import document
from kschedx.kube.kueue import TopologyDomain
from kschedx.kueue.flavors import Shortage
from kschedx.results import Shown


class Eviction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reason: str
    message: str
    preemption: str = ""


class Begin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes before the first cycle."""

    evicted: Mapping[str, Eviction] = field(default_factory=dict)


class PlacedTopology(Struct, frozen=True, kw_only=True):
    levels: tuple[str, ...]
    domains: tuple[TopologyDomain, ...]


class PodSetDocument(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    count: int
    flavors: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, str] = field(default_factory=dict)
    topology: PlacedTopology | None = None
    delayed_topology: str | None = None


class PreemptedWorkload(Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    cluster_queue: str
    reason: str


class QueueHead(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A Workload that a cycle considered, with its decision."""

    cluster_queue: str
    outcome: str
    mode: str = ""
    borrowing: int = 0
    pod_sets: tuple[PodSetDocument, ...] = ()
    targets: tuple[PreemptedWorkload, ...] = ()
    message: str = ""
    considered: str = ""
    more_flavors: bool = False
    shortages: tuple[Shortage, ...] = ()


class AdmissionCycle(Struct, frozen=True, kw_only=True, omit_defaults=True):
    heads: Mapping[str, QueueHead]
    evicted: Mapping[str, Eviction] = field(default_factory=dict)


class UsedAmount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    total: str
    borrowed: str = ""


class ClusterQueueDocument(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    active: bool = False
    reason: str = ""
    message: str = ""
    usage: Mapping[str, Mapping[str, UsedAmount]] = field(default_factory=dict)
    weighted_share: int | None = None
    queue: tuple[str, ...] = ()


class ConditionDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reason: str
    message: str
    status: str = ""


class WorkloadDocument(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    state: str
    active: bool = True
    place: str = ""
    quota_reserved: ConditionDocument | None = None
    requeued: ConditionDocument | None = None
    evicted: ConditionDocument | None = None
    cluster_queue: str = ""
    pod_sets: tuple[PodSetDocument, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)


class Admissions(Shown, Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A run of Kueue until nothing changes."""

    kueue_version: str
    now: str
    begin: Begin | None = None
    cycles: tuple[AdmissionCycle, ...] = ()
    cluster_queues: Mapping[str, ClusterQueueDocument] = field(default_factory=dict)
    workloads: Mapping[str, WorkloadDocument] = field(default_factory=dict)
    is_settled: bool = True  # False if the run was stopped before it settled

    def __repr__(self) -> str:
        return f"<Admissions: {len(self.cycles):,} cycles, {len(self.workloads):,} Workloads>"

    def records(self) -> list[dict[str, object]]:
        """Return a row per Workload."""
        return [
            {
                "workload": name,
                "state": workload_document.state,
                "cluster_queue": workload_document.cluster_queue,
                "reason": "" if workload_document.quota_reserved is None else workload_document.quota_reserved.reason,
                "message": "" if workload_document.quota_reserved is None else workload_document.quota_reserved.message,
                "evicted": "" if workload_document.evicted is None else workload_document.evicted.reason,
            }
            for name, workload_document in self.workloads.items()
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the document: Kueue's own messages, and quantities as Kubernetes prints them."""
        return document("Admissions", Admissions, self)
