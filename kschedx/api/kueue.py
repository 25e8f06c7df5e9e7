"""Kueue's objects, as far as they say who waits for what (apis/kueue/v1beta1 and v1beta2 of kubernetes-sigs/kueue)."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32
from kschedx.api.quantity import ResourceList
from kschedx.api.types import Labels, ObjectMeta, PodTemplateSpec, Taint, Toleration

GROUP = "kueue.x-k8s.io"
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


class PodSetAssignment(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    flavors: Labels = {}
    """Resource to the name of its flavor."""
    resource_usage: ResourceList = {}
    """Of all pods of the set."""
    count: Int32 | None = None


class Admission(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class AdmissionCheckState(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    state: str = ""
    message: str = ""


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
    def reserves(self) -> bool:
        """It holds quota."""
        return self.status.admission is not None and self.has("QuotaReserved") and not self.has("Finished")

    @property
    def waits(self) -> bool:
        """It is in its queue."""
        return self.spec.active is not False and not self.has("QuotaReserved") and not self.has("Finished")


class LocalQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""
    stop_policy: str | None = None


class QueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()
    pending_workloads: Int32 | None = None


class LocalQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: QueueStatus = QueueStatus()


class ResourceQuota(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    nominal_quota: str | int | float = 0
    borrowing_limit: str | int | float | None = None
    lending_limit: str | int | float | None = None


class FlavorQuotas(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class ClusterQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort: str = ""
    """v1beta1's name of it."""
    cohort_name: str = ""
    queueing_strategy: str = ""
    stop_policy: str | None = None


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
