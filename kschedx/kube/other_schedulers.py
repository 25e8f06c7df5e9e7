"""Typed records of the objects of other schedulers: pod groups, queues, quotas, and reservations."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.kube.conditions import Condition, TimedCondition
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import KubernetesObject

# Objects of kubernetes-sigs/scheduler-plugins: scheduling.x-k8s.io, topology.node.k8s.io.

SCHEDULING_GROUP = "scheduling.x-k8s.io"
TOPOLOGY_GROUP = "topology.node.k8s.io"
POD_GROUP_LABEL = f"{SCHEDULING_GROUP}/pod-group"

MINIMUM_PREEMPTABLE_PRIORITY = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
TOLERATION_SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"
"""Annotations of a PriorityClass."""


class GangSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 = 0
    min_resources: ResourceList | None = None


class Gang(KubernetesObject, frozen=True, kw_only=True):
    """PodGroup of scheduling.x-k8s.io/v1alpha1; Kubernetes has a kind with the same name."""

    spec: GangSpec = GangSpec()


class ElasticQuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuota(KubernetesObject, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1: the guaranteed (`min`) and maximum usage of a namespace."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()


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
NUMA_PREFIX = "node-"


class Attribute(Struct, frozen=True, kw_only=True):
    setting: str = field(default="", name="name")
    choice: str = field(default="", name="value")


class ZoneResource(Struct, frozen=True, kw_only=True):
    name: str = ""
    available: str | int | float = "0"


class ZoneCost(Struct, frozen=True, kw_only=True):
    numa: str = field(default="", name="name")
    distance: int = field(default=0, name="value")


class Zone(Struct, frozen=True, kw_only=True):
    numa: str = field(default="", name="name")
    zone_type: str = field(default="", name="type")
    resources: tuple[ZoneResource, ...] = ()
    costs: tuple[ZoneCost, ...] = ()


class NodeResourceTopology(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    """topology.node.k8s.io/v1alpha2, with the node's name: the available resources of each NUMA node."""

    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()


# The state of other schedulers' pods: pod groups, queues, quotas, and reservations. Volcano
# (scheduling.volcano.sh/v1beta1), KAI (scheduling.run.ai, groups v2alpha2 and queues v2), Koordinator (copies of
# scheduler-plugins' kinds in scheduling.sigs.k8s.io/v1alpha1, its own in scheduling.koordinator.sh/v1alpha1).

VOLCANO = "scheduling.volcano.sh"
KAI = "scheduling.run.ai"
KOORDINATOR = "scheduling.koordinator.sh"
OF_SIGS = "scheduling.sigs.k8s.io"
"""The group of Koordinator's PodGroups and ElasticQuotas, formerly of scheduler-plugins."""

QUOTA = "quota.scheduling.koordinator.sh"
QUOTA_NAME, QUOTA_PARENT = f"{QUOTA}/name", f"{QUOTA}/parent"
"""Labels of a pod and of an ElasticQuota."""
QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES = f"{QUOTA}/runtime", f"{QUOTA}/request", f"{QUOTA}/namespaces"
"""Annotations of an ElasticQuota, as JSON: the current quota, the requests of its pods, and its namespaces."""
KOORDINATOR_ANNOTATIONS = (QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES)
DEFAULT_QUOTA = "koordinator-default-quota"
QUEUES_OF_YUNIKORN, QUEUES_FILE = "yunikorn-configs", "queues.yaml"
"""The name of YuniKorn's ConfigMap, in any namespace, and the key of its queues."""


class GroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 | None = None
    queue: str = ""
    min_resources: ResourceList = {}


class GroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    running: Int32 = 0
    scheduled: Int32 = 0


class VolcanoPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class QueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent: str = ""
    weight: Int32 | None = None
    capability: ResourceList = {}
    deserved: ResourceList = {}


class VolcanoQueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    state: str = ""
    allocated: ResourceList = {}


class VolcanoQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: QueueSpec = QueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


# --- KAI


class PodExplanation(Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class SchedulingCondition(Condition, frozen=True, kw_only=True, rename="camel"):
    """Why a group is unschedulable on some nodes."""

    node_pool: str = ""
    reasons: tuple[PodExplanation, ...] = ()


class KaiGroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class KaiPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: GroupSpec = GroupSpec()
    status: KaiGroupStatus = KaiGroupStatus()


class KaiShare(Struct, frozen=True, kw_only=True):
    """Shares of a resource, -1 for unlimited: milli-cpu, megabytes of memory, or (fractional) GPUs."""

    quota: str | int | float = 0
    limit: str | int | float = -1


class KaiResources(Struct, frozen=True, kw_only=True):
    cpu: KaiShare | None = None
    memory: KaiShare | None = None
    gpu: KaiShare | None = None


class KaiQueueSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    parent_queue: str = ""
    resources: KaiResources = KaiResources()
    priority: Int32 | None = None


class KaiQueueStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[TimedCondition, ...] = ()
    allocated: ResourceList = {}
    requested: ResourceList = {}


class KaiQueue(KubernetesObject, frozen=True, kw_only=True):
    spec: KaiQueueSpec = KaiQueueSpec()
    status: KaiQueueStatus = KaiQueueStatus()


# --- Koordinator


class KoordinatorPodGroup(KubernetesObject, frozen=True, kw_only=True):
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class QuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList = {}
    max: ResourceList = {}


class QuotaStatus(Struct, frozen=True, kw_only=True):
    used: ResourceList = {}


class KoordinatorQuota(KubernetesObject, frozen=True, kw_only=True):
    """ElasticQuota; quotas form a tree through their label `parent`."""

    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


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


class ReservationSpec(Struct, frozen=True, kw_only=True):
    owners: tuple[ReservationOwner, ...] = ()


class ReservationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[TimedCondition, ...] = ()
    node_name: str = ""
    allocatable: ResourceList = {}
    allocated: ResourceList = {}


class Reservation(KubernetesObject, frozen=True, kw_only=True):
    """Resources of a node that are reserved for some pods."""

    spec: ReservationSpec = ReservationSpec()
    status: ReservationStatus = ReservationStatus()


class MigrationSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_ref: ReservingObject | None = None


class MigrationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    node_name: str = ""


class PodMigrationJob(KubernetesObject, frozen=True, kw_only=True):
    """The move of a pod: resources on another node are reserved, then the pod is evicted."""

    spec: MigrationSpec = MigrationSpec()
    status: MigrationStatus = MigrationStatus()


# --- YuniKorn


class TaskGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    min_member: int = 0


SchedulerGroup = VolcanoPodGroup | KaiPodGroup | KoordinatorPodGroup


# OpenShift's configuration of kube-scheduler. Its API server reads the default node selector from it.


class SchedulerConfigSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    default_node_selector: str = ""


class OpenShiftScheduler(KubernetesObject, frozen=True, kw_only=True):
    """config.openshift.io/v1 Scheduler: only the object `cluster` exists."""

    spec: SchedulerConfigSpec = SchedulerConfigSpec()
