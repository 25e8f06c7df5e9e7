"""Typed records of the objects of other schedulers: pod groups, queues, quotas, and reservations."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.kube.conditions import Condition, TimedCondition
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import KubernetesObject

OF_PROVIDERS = ("gke.io/",)
"""How the schedulerNames of kube-schedulers begin that a provider runs beside the usual one, and sets in pods."""

# Objects of kubernetes-sigs/scheduler-plugins: scheduling.x-k8s.io, topology.node.k8s.io.

SCHEDULING_GROUP = "scheduling.x-k8s.io"
POD_GROUP_LABEL = f"{SCHEDULING_GROUP}/pod-group"

MINIMUM_PREEMPTABLE_PRIORITY = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
TOLERATION_SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"  # annotations of a PriorityClass


class _GangSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 = 0
    min_resources: ResourceList | None = None


class Gang(KubernetesObject, frozen=True, kw_only=True):
    """PodGroup of scheduling.x-k8s.io/v1alpha1; Kubernetes has a kind with the same name."""

    spec: _GangSpec = _GangSpec()


class _ElasticQuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuota(KubernetesObject, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1: the guaranteed (`min`) and maximum usage of a namespace."""

    spec: _ElasticQuotaSpec = _ElasticQuotaSpec()


SCOPE_ATTRIBUTE, POLICY_ATTRIBUTE = "topologyManagerScope", "topologyManagerPolicy"
MAX_NUMA_NODES_ATTRIBUTE = "topologyManagerMaxNUMANodes"
SCOPES = ("container", "pod")
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
TOPOLOGY_POLICIES = {
    f"{written}{scope.capitalize()}Level": (policy, scope)
    for written, policy in (
        ("SingleNUMANode", SINGLE_NUMA_NODE),
        ("BestEffort", "best-effort"),
        ("Restricted", "restricted"),
    )
    for scope in SCOPES
}
"""The deprecated topologyPolicies to policy and scope; other values have no effect."""
NUMA_ZONE = "Node"


class _Attribute(Struct, frozen=True, kw_only=True):
    setting: str = field(default="", name="name")
    choice: str = field(default="", name="value")


class _ZoneResource(Struct, frozen=True, kw_only=True):
    name: str = ""
    available: str | int | float = "0"


class _ZoneCost(Struct, frozen=True, kw_only=True):
    numa: str = field(default="", name="name")
    distance: int = field(default=0, name="value")


class _Zone(Struct, frozen=True, kw_only=True):
    numa: str = field(default="", name="name")
    zone_type: str = field(default="", name="type")
    resources: tuple[_ZoneResource, ...] = ()
    costs: tuple[_ZoneCost, ...] = ()


class NodeResourceTopology(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    """topology.node.k8s.io/v1alpha2, with the node's name: the available resources of each NUMA node."""

    topology_policies: tuple[str, ...] = ()
    attributes: tuple[_Attribute, ...] = ()
    zones: tuple[_Zone, ...] = ()


# The state of other schedulers' pods: pod groups, queues, quotas, and reservations. Volcano
# (scheduling.volcano.sh/v1beta1), KAI (scheduling.run.ai, groups v2alpha2 and queues v2), Koordinator (copies of
# scheduler-plugins' kinds in scheduling.sigs.k8s.io/v1alpha1, its own in scheduling.koordinator.sh/v1alpha1).


_QUOTA = "quota.scheduling.koordinator.sh"
QUOTA_NAME, QUOTA_PARENT = f"{_QUOTA}/name", f"{_QUOTA}/parent"  # labels of a pod and of an ElasticQuota
QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES = f"{_QUOTA}/runtime", f"{_QUOTA}/request", f"{_QUOTA}/namespaces"
"""Annotations of an ElasticQuota, as JSON: the current quota, the requests of its pods, and its namespaces."""
KOORDINATOR_ANNOTATIONS = (QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES)
QUEUES_OF_YUNIKORN, QUEUES_FILE = "yunikorn-configs", "queues.yaml"
"""The name of YuniKorn's ConfigMap, in any namespace, and the key of its queues."""


class _GroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 | None = None
    queue: str = ""
    min_resources: ResourceList = {}


class _GroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    running: Int32 = 0
    scheduled: Int32 = 0


class VolcanoPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: _GroupSpec = _GroupSpec()
    status: _GroupStatus = _GroupStatus()


class _QueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent: str = ""
    weight: Int32 | None = None
    capability: ResourceList = {}
    deserved: ResourceList = {}


class _VolcanoQueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    state: str = ""
    allocated: ResourceList = {}


class VolcanoQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: _QueueSpec = _QueueSpec()
    status: _VolcanoQueueStatus = _VolcanoQueueStatus()


# --- KAI


class PodExplanation(Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class SchedulingCondition(Condition, frozen=True, kw_only=True, rename="camel"):
    """Why a group is unschedulable on some nodes."""

    node_pool: str = ""
    reasons: tuple[PodExplanation, ...] = ()


class _KaiGroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class KaiPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: _GroupSpec = _GroupSpec()
    status: _KaiGroupStatus = _KaiGroupStatus()


class _KaiShare(Struct, frozen=True, kw_only=True):
    """Shares of a resource, -1 for unlimited: milli-cpu, megabytes of memory, or (fractional) GPUs."""

    quota: str | int | float = 0
    limit: str | int | float = -1


class _KaiResources(Struct, frozen=True, kw_only=True):
    cpu: _KaiShare | None = None
    memory: _KaiShare | None = None
    gpu: _KaiShare | None = None


class _KaiQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent_queue: str = ""
    resources: _KaiResources = _KaiResources()
    priority: Int32 | None = None


class _KaiQueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[TimedCondition, ...] = ()
    allocated: ResourceList = {}
    requested: ResourceList = {}


class KaiQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: _KaiQueueSpec = _KaiQueueSpec()
    status: _KaiQueueStatus = _KaiQueueStatus()


# --- Koordinator


class KoordinatorPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: _GroupSpec = _GroupSpec()
    status: _GroupStatus = _GroupStatus()


class _QuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList = {}
    max: ResourceList = {}


class _QuotaStatus(Struct, frozen=True, kw_only=True):
    used: ResourceList = {}


class KoordinatorQuota(KubernetesObject, frozen=True, kw_only=True):
    """ElasticQuota; quotas form a tree through their label `parent`."""

    spec: _QuotaSpec = _QuotaSpec()
    status: _QuotaStatus = _QuotaStatus()


class ReservingObject(Struct, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ReservationOwner(Struct, frozen=True, kw_only=True, rename="camel"):
    """Selects the pods that may use a reservation: all fields have to match."""

    object: ReservingObject | None = None
    controller: ReservingObject | None = None
    label_selector: LabelSelector | None = None


class _ReservationSpec(Struct, frozen=True, kw_only=True):
    owners: tuple[ReservationOwner, ...] = ()


class _ReservationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    node_name: str = ""
    allocatable: ResourceList = {}
    allocated: ResourceList = {}


class Reservation(KubernetesObject, frozen=True, kw_only=True):
    """Resources of a node that are reserved for some pods."""

    spec: _ReservationSpec = _ReservationSpec()
    status: _ReservationStatus = _ReservationStatus()


class _MigrationSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_ref: ReservingObject | None = None


class MigrationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    node_name: str = ""


class PodMigrationJob(KubernetesObject, frozen=True, kw_only=True):
    """The move of a pod: resources on another node are reserved, then the pod is evicted."""

    spec: _MigrationSpec = _MigrationSpec()
    status: MigrationStatus = MigrationStatus()


# --- YuniKorn


class TaskGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    min_member: int = 0


# OpenShift's configuration of kube-scheduler. Its API server reads the default node selector from it.


class SchedulerConfigSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    default_node_selector: str = ""


class OpenShiftScheduler(KubernetesObject, frozen=True, kw_only=True):
    """config.openshift.io/v1 Scheduler: only the object `cluster` exists."""

    spec: SchedulerConfigSpec = SchedulerConfigSpec()
