"""Kueue's objects (apis/kueue/v1beta1 and v1beta2 of kubernetes-sigs/kueue)."""

from __future__ import annotations

from msgspec import Struct

from kschedx.kube.conditions import TimedCondition, condition_of
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import KubernetesObject, Labels, PodTemplateSpec, Taint, Toleration

KUEUE_GROUP = "kueue.x-k8s.io"
RESOURCE_FLAVOR = f"ResourceFlavor.{KUEUE_GROUP}"  # the key of the kind in `kschedx.kube.kinds`
KUEUE_API = f"{KUEUE_GROUP}/v1beta2"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The controller of AdmissionChecks, and of Jobs by spec.managedBy, that dispatches Jobs to worker clusters."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"  # the name of the Workload of a group of pods
PODSET_LABEL = "kueue.x-k8s.io/podset"
WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
PLACED_ANNOTATIONS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
)
"""Kueue's topology-aware scheduling places pods with one of these annotations."""
TOPOLOGY_REQUESTS = dict(zip(PLACED_ANNOTATIONS, ("required", "preferred", "unconstrained"), strict=False))
"""Annotations of a pod template to the field of its pod set's topology request."""
LEAST_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"  # the annotation of a Job that may be admitted in part
GROUP_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
POD_ANNOTATIONS = (WORKLOAD_ANNOTATION, GROUP_TOTAL, *PLACED_ANNOTATIONS)
ADMISSION_GATE = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
MANAGER_CONFIG = "kueue-system/kueue-manager-config"  # the ConfigMap with Kueue's Configuration


class SliceConstraint(Struct, frozen=True, kw_only=True):
    """`size` pods in one domain of the level `topology`."""

    topology: str = ""
    size: Int32 = 0


class PodSetTopologyRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Int32 | None = None
    podset_slice_required_topology_constraints: tuple[SliceConstraint, ...] = ()
    pod_set_group_name: str | None = None

    @property
    def is_explicit(self) -> bool:
        return (
            self.required is not None
            or self.preferred is not None
            or self.unconstrained is not None
            or self.pod_set_slice_required_topology is not None
            or self.pod_set_slice_size is not None
            or bool(self.podset_slice_required_topology_constraints)
        )

    @property
    def slices(self) -> tuple[SliceConstraint, ...]:
        if self.podset_slice_required_topology_constraints:
            return self.podset_slice_required_topology_constraints
        if self.pod_set_slice_required_topology is None:
            return ()
        return (SliceConstraint(topology=self.pod_set_slice_required_topology, size=self.pod_set_slice_size or 0),)


class PodSet(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    template: PodTemplateSpec = PodTemplateSpec()
    count: Int32 = 1
    min_count: Int32 | None = None
    topology_request: PodSetTopologyRequest | None = None

    @property
    def requests_topology(self) -> bool:
        return self.topology_request is not None and self.topology_request.is_explicit


class _WorkloadSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_name: str = ""
    priority: Int32 | None = None
    active: bool | None = None


class _SharedValues(Struct, frozen=True, kw_only=True):
    """Values with a common prefix and suffix."""

    prefix: str | None = None
    suffix: str | None = None
    roots: tuple[str, ...] = ()


class _LevelValues(Struct, frozen=True, kw_only=True):
    """The values of one level: the same for all domains of the slice, or one for each."""

    universal: str | None = None
    individual: _SharedValues | None = None

    def of(self, domain: int) -> str:
        if self.individual is None:
            return self.universal or ""
        values = self.individual
        root = values.roots[domain] if domain < len(values.roots) else ""
        return f"{values.prefix or ''}{root}{values.suffix or ''}"


class _PodCounts(Struct, frozen=True, kw_only=True):
    """The pods of each domain of a slice: the same number in all of them, or one number each."""

    universal: Int32 | None = None
    individual: tuple[Int32, ...] = ()

    def of(self, domain: int) -> int:
        if self.universal is not None:
            return self.universal
        return self.individual[domain] if domain < len(self.individual) else 0


class _TopologySlice(Struct, frozen=True, kw_only=True, rename="camel"):
    domain_count: Int32 = 0
    pod_counts: _PodCounts = _PodCounts()
    values_per_level: tuple[_LevelValues, ...] = ()


class TopologyDomain(Struct, frozen=True, kw_only=True):
    values: tuple[str, ...] = ()
    count: Int32 = 0


_MOST_DOMAINS = 100_000


class TopologyAssignment(Struct, frozen=True, kw_only=True):
    """The domains that a pod set is assigned to."""

    levels: tuple[str, ...] = ()  # keys of node labels
    domains: tuple[TopologyDomain, ...] = ()  # v1beta1's form
    slices: tuple[_TopologySlice, ...] = ()

    def counted_domains(self) -> tuple[TopologyDomain, ...]:
        """Return the domains with their numbers of pods, from any API version."""
        from_slices = [
            TopologyDomain(
                values=tuple(level.of(domain) for level in topology_slice.values_per_level),
                count=topology_slice.pod_counts.of(domain),
            )
            for topology_slice in self.slices
            for domain in range(min(topology_slice.domain_count, _MOST_DOMAINS))
        ]
        return (*self.domains, *from_slices)

    def values(self) -> frozenset[tuple[str, ...]]:
        """Return the values of the levels for each domain."""
        return frozenset(domain.values for domain in self.counted_domains())


class PodSetAssignment(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = "main"
    flavors: Labels = {}  # resource to its flavor
    resource_usage: ResourceList = {}  # usage of all pods of the set
    count: Int32 | None = None
    topology_assignment: TopologyAssignment | None = None
    delayed_topology_request: str | None = None


class Admission(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class PodSetUpdate(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an admission check adds to a set's pods."""

    name: str = "main"
    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    state: str = ""
    message: str = ""
    last_transition_time: str | None = None
    requeue_after_seconds: Int32 | None = None
    retry_count: Int32 | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class _RequeueState(Struct, frozen=True, kw_only=True, rename="camel"):
    count: Int32 | None = None
    requeue_at: str | None = None


class _ReclaimablePod(Struct, frozen=True, kw_only=True):
    """Pods of a set that no longer need quota."""

    name: str = "main"
    count: Int32 = 0


class _WorkloadStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    admission: Admission | None = None
    conditions: tuple[TimedCondition, ...] = ()
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    cluster_name: str | None = None  # the cluster to which MultiKueue dispatched it
    requeue_state: _RequeueState | None = None
    reclaimable_pods: tuple[_ReclaimablePod, ...] = ()


class Workload(KubernetesObject, frozen=True, kw_only=True):
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    @property
    def owners(self) -> list[tuple[str, str, str]]:
        """Its owners by kind, namespace, and name; they hold its quota, and it is deleted with them."""
        return [(owner.kind, self.metadata.namespace, owner.name) for owner in self.metadata.owner_references]

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    def condition(self, kind: str) -> TimedCondition | None:
        return condition_of(self.status.conditions, kind)

    def has(self, kind: str) -> bool:
        condition = self.condition(kind)
        return condition is not None and condition.status == "True"


TIMED_EVICTIONS = ("PodsReadyTimeout", "AdmissionCheck")
"""Reasons of evictions after which a Workload may have a backoff."""


class FairSharing(Struct, frozen=True, kw_only=True):
    weight: str | int | float | None = None


class _QueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None

    @property
    def is_stopped(self) -> bool:
        return self.stop_policy not in (None, "", "None")


class _LocalQueueSpec(_QueueSpec, frozen=True, kw_only=True, rename="camel"):
    cluster_queue: str = ""


class _AdmissionFairSharingStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    consumed_resources: ResourceList = {}


class _FairSharingStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    weighted_share: int = 0
    admission_fair_sharing_status: _AdmissionFairSharingStatus | None = None


class _ReportedResource(Struct, frozen=True, kw_only=True):
    name: str = ""
    total: str | int | float = 0


class _ReportedFlavor(Struct, frozen=True, kw_only=True):
    """A flavor's reservation in the status of a queue."""

    name: str = ""
    resources: tuple[_ReportedResource, ...] = ()


class _QueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    flavors_reservation: tuple[_ReportedFlavor, ...] = ()
    conditions: tuple[TimedCondition, ...] = ()
    fair_sharing: _FairSharingStatus | None = None


class LocalQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: _LocalQueueSpec = _LocalQueueSpec()
    status: _QueueStatus = _QueueStatus()


class QueueResourceQuota(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    nominal_quota: str | int | float = 0
    borrowing_limit: str | int | float | None = None
    lending_limit: str | int | float | None = None


class _FlavorQuotas(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resources: tuple[QueueResourceQuota, ...] = ()


class ResourceGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[_FlavorQuotas, ...] = ()


_NEVER = ("", "Never")


class _BorrowWithinCohort(Struct, frozen=True, kw_only=True, rename="camel"):
    policy: str = ""
    max_priority_threshold: Int32 | None = None


class _QueuePreemption(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which Workloads those of a queue may preempt."""

    within_cluster_queue: str = ""
    reclaim_within_cohort: str = ""
    borrow_within_cohort: _BorrowWithinCohort | None = None

    @property
    def is_in_queue(self) -> bool:
        """Whether Workloads of the same queue are candidates."""
        return self.within_cluster_queue not in _NEVER

    @property
    def is_in_cohort(self) -> bool:
        """Whether Workloads of other queues are candidates."""
        return self.reclaim_within_cohort not in _NEVER

    @property
    def is_while_borrowing(self) -> bool:
        """Whether Workloads of other queues are candidates even if the preemptor borrows."""
        return self.borrow_within_cohort is not None and self.borrow_within_cohort.policy not in _NEVER


class FlavorFungibility(Struct, frozen=True, kw_only=True, rename="camel"):
    when_can_borrow: str = ""
    when_can_preempt: str = ""
    preference: str | None = None


class _AdmissionCheckRule(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    on_flavors: tuple[str, ...] = ()


class _AdmissionChecksStrategy(Struct, frozen=True, kw_only=True, rename="camel"):
    admission_checks: tuple[_AdmissionCheckRule, ...] = ()


class _AdmissionScope(Struct, frozen=True, kw_only=True, rename="camel"):
    admission_mode: str = ""


class _ClusterQueueSpec(_QueueSpec, frozen=True, kw_only=True, rename="camel"):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort: str = ""  # the name in v1beta1
    cohort_name: str = ""
    queueing_strategy: str = ""
    preemption: _QueuePreemption | None = None
    admission_scope: _AdmissionScope | None = None
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility | None = None
    admission_checks: tuple[str, ...] = ()  # the list in v1beta1
    admission_checks_strategy: _AdmissionChecksStrategy | None = None
    concurrent_admission_policy: Struct | None = None
    """Behind the feature gate ConcurrentAdmission; only its presence is read."""


class ClusterQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: _ClusterQueueSpec = _ClusterQueueSpec()
    status: _QueueStatus = _QueueStatus()

    @property
    def cohort(self) -> str:
        return self.spec.cohort_name or self.spec.cohort

    @property
    def flavors(self) -> list[str]:
        """The names of its flavors, in order."""
        return [flavor.name for group in self.spec.resource_groups for flavor in group.flavors]

    @property
    def preemption(self) -> _QueuePreemption:
        return self.spec.preemption or _QueuePreemption()

    @property
    def is_usage_based(self) -> bool:
        """Whether the LocalQueue with the lowest usage comes first, before priority and age."""
        scope = self.spec.admission_scope
        return scope is not None and scope.admission_mode == "UsageBasedAdmissionFairSharing"


class _CohortSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent_name: str = ""
    parent: str = ""  # the name in v1alpha1
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing | None = None


class Cohort(KubernetesObject, frozen=True, kw_only=True):
    spec: _CohortSpec = _CohortSpec()

    @property
    def parent(self) -> str:
        return self.spec.parent_name or self.spec.parent


class _ResourceFlavorSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    node_labels: Labels = {}
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None


class ResourceFlavor(KubernetesObject, frozen=True, kw_only=True):
    spec: _ResourceFlavorSpec = _ResourceFlavorSpec()


class _CheckParameters(Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str = ""
    name: str = ""


class _AdmissionCheckSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    controller_name: str = ""
    parameters: _CheckParameters | None = None


class _AdmissionCheckStatus(Struct, frozen=True, kw_only=True):
    conditions: tuple[TimedCondition, ...] = ()


class AdmissionCheck(KubernetesObject, frozen=True, kw_only=True):
    spec: _AdmissionCheckSpec = _AdmissionCheckSpec()
    status: _AdmissionCheckStatus = _AdmissionCheckStatus()

    @property
    def is_active(self) -> bool:
        return condition_of(self.status.conditions, "Active", "True") is not None


class _MultiKueueConfigSpec(Struct, frozen=True, kw_only=True):
    clusters: tuple[str, ...] = ()


class MultiKueueConfig(KubernetesObject, frozen=True, kw_only=True):
    """The worker clusters of an AdmissionCheck, in the order of preference."""

    spec: _MultiKueueConfigSpec = _MultiKueueConfigSpec()


class MultiKueueCluster(KubernetesObject, frozen=True, kw_only=True):
    """A worker cluster; its condition Active says whether Kueue is connected to it."""

    status: _AdmissionCheckStatus = _AdmissionCheckStatus()


class _TopologyLevel(Struct, frozen=True, kw_only=True, rename="camel"):
    node_label: str = ""


class TopologySpec(Struct, frozen=True, kw_only=True):
    levels: tuple[_TopologyLevel, ...] = ()


class Topology(KubernetesObject, frozen=True, kw_only=True):
    spec: TopologySpec = TopologySpec()
