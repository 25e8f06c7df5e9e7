"""Kueue's objects, as far as they say who waits for what (apis/kueue/v1beta1 and v1beta2 of kubernetes-sigs/kueue)."""

from __future__ import annotations

from msgspec import Struct

from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32
from kschedx.kube.types import Labels, ObjectMeta, PodTemplateSpec, Taint, Toleration

KUEUE_GROUP = "kueue.x-k8s.io"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
"""The name of the Workload of several pods."""
PODSET_LABEL = "kueue.x-k8s.io/podset"
ADMISSION_GATE = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE = "kueue.x-k8s.io/topology"


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """metav1.Condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodSet(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    template: PodTemplateSpec = PodTemplateSpec()
    count: Int32 = 1


class WorkloadSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_name: str = ""
    priority: Int32 | None = None
    active: bool | None = None


class SharedValues(Struct, frozen=True, kw_only=True):
    """Values with a beginning and an end in common."""

    prefix: str | None = None
    suffix: str | None = None
    roots: tuple[str, ...] = ()


class LevelValues(Struct, frozen=True, kw_only=True):
    """The values of one level: the same for all domains of the slice, or one for each."""

    universal: str | None = None
    individual: SharedValues | None = None

    def of(self, domain: int) -> str:
        if self.individual is None:
            return self.universal or ""
        one = self.individual
        root = one.roots[domain] if domain < len(one.roots) else ""
        return f"{one.prefix or ''}{root}{one.suffix or ''}"


class TopologySlice(Struct, frozen=True, kw_only=True, rename="camel"):
    domain_count: Int32 = 0
    values_per_level: tuple[LevelValues, ...] = ()


class TopologyDomain(Struct, frozen=True, kw_only=True):
    values: tuple[str, ...] = ()


MOST_DOMAINS = 100_000


class TopologyAssignment(Struct, frozen=True, kw_only=True):
    """The parts of the cluster that a pod set was given."""

    levels: tuple[str, ...] = ()
    """Keys of node labels."""
    domains: tuple[TopologyDomain, ...] = ()
    """v1beta1's form."""
    slices: tuple[TopologySlice, ...] = ()

    def values(self) -> frozenset[tuple[str, ...]]:
        """The values of the levels, for each domain."""
        found = {one.values for one in self.domains}
        for one in self.slices:
            for domain in range(min(one.domain_count, MOST_DOMAINS)):
                found.add(tuple(level.of(domain) for level in one.values_per_level))
        return frozenset(found)


class PodSetAssignment(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    flavors: Labels = {}
    """Resource to the name of its flavor."""
    resource_usage: ResourceList = {}
    """Of all pods of the set."""
    count: Int32 | None = None
    topology_assignment: TopologyAssignment | None = None


class Admission(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class PodSetUpdate(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an admission check adds to the pods of a set."""

    name: str = "main"
    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class RequeueState(Struct, frozen=True, kw_only=True, rename="camel"):
    count: Int32 | None = None
    requeue_at: str | None = None


class PodSetRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    resources: ResourceList = {}
    """Of all pods of the set."""


class WorkloadStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    admission: Admission | None = None
    conditions: tuple[Condition, ...] = ()
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    resource_requests: tuple[PodSetRequest, ...] = ()
    cluster_name: str | None = None
    """The cluster that MultiKueue sent it to."""
    requeue_state: RequeueState | None = None


class Workload(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    def condition(self, kind: str) -> Condition | None:
        return next((one for one in self.status.conditions if one.type == kind), None)

    def has(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def queued_since(self) -> str:
        """Where it stands among those of its priority: since it was made, or since it was put back."""
        evicted = self.condition("Evicted")
        if evicted is not None and evicted.status == "True" and evicted.reason in _PUT_BACK:
            return evicted.last_transition_time or ""
        return self.metadata.creation_timestamp or ""

    @property
    def reserves(self) -> bool:
        """It holds quota."""
        return self.status.admission is not None and self.has("QuotaReserved") and not self.has("Finished")

    @property
    def waits(self) -> bool:
        """It is in its queue."""
        return self.spec.active is not False and not self.has("QuotaReserved") and not self.has("Finished")


_PUT_BACK = ("PodsReadyTimeout", "AdmissionCheck")


class LocalQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""
    stop_policy: str | None = None


class FairSharing(Struct, frozen=True, kw_only=True):
    weight: str | int | float | None = None


class FairSharingStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    weighted_share: int = 0


class QueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()
    pending_workloads: Int32 | None = None
    fair_sharing: FairSharingStatus | None = None


class LocalQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: QueueStatus = QueueStatus()


class QueueResourceQuota(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    nominal_quota: str | int | float = 0
    borrowing_limit: str | int | float | None = None
    lending_limit: str | int | float | None = None


class FlavorQuotas(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resources: tuple[QueueResourceQuota, ...] = ()


class ResourceGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class QueuePreemption(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whose quota a queue's Workloads may take."""

    within_cluster_queue: str = ""
    reclaim_within_cohort: str = ""


class AdmissionScope(Struct, frozen=True, kw_only=True, rename="camel"):
    admission_mode: str = ""


BY_USAGE = "UsageBasedAdmissionFairSharing"
"""The LocalQueue that used the least comes first, before priority and age."""


class ClusterQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort: str = ""
    """v1beta1's name of it."""
    cohort_name: str = ""
    queueing_strategy: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    preemption: QueuePreemption | None = None
    admission_scope: AdmissionScope | None = None


class ClusterQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def cohort(self) -> str:
        return self.spec.cohort_name or self.spec.cohort


class CohortSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent_name: str = ""
    parent: str = ""
    """v1alpha1's name of it."""
    resource_groups: tuple[ResourceGroup, ...] = ()


class Cohort(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CohortSpec = CohortSpec()

    @property
    def parent(self) -> str:
        return self.spec.parent_name or self.spec.parent


class ResourceFlavorSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    node_labels: Labels = {}
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None


class ResourceFlavor(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()
