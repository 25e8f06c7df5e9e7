"""Typed slim records of what other schedulers keep in a cluster: pod groups, queues, quotas, reservations."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.kube.kueue import Condition
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.types import ObjectMeta

# What kubernetes-sigs/scheduler-plugins keeps in a cluster: scheduling.x-k8s.io, topology.node.k8s.io.

SCHEDULING_GROUP = "scheduling.x-k8s.io"
TOPOLOGY_GROUP = "topology.node.k8s.io"
POD_GROUP_LABEL = f"{SCHEDULING_GROUP}/pod-group"

MINIMUM_PREEMPTABLE_PRIORITY = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
TOLERATION_SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"
"""Annotations of a PriorityClass."""


class GangSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 = 0
    min_resources: ResourceList | None = None


class Gang(Struct, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1, PodGroup: Kubernetes has a kind of the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GangSpec = GangSpec()


class ElasticQuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuota(Struct, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1: what a namespace is promised, and what it may use at most."""

    metadata: ObjectMeta = ObjectMeta()
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
"""The deprecated topologyPolicies to policy and scope; other values mean nothing."""
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


class NodeResourceTopology(Struct, frozen=True, kw_only=True, rename="camel"):
    """topology.node.k8s.io/v1alpha2, under the node's name: what each of its NUMA nodes has left."""

    metadata: ObjectMeta = ObjectMeta()
    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()


# What other schedulers keep of the pods that are theirs: pod groups, queues, quotas and reservations, as far as they
# say how it stands.
#
# Volcano (scheduling.volcano.sh/v1beta1), KAI (scheduling.run.ai, groups v2alpha2 and queues v2), Koordinator (its
# copies of scheduler-plugins' kinds in scheduling.sigs.k8s.io/v1alpha1, its own in scheduling.koordinator.sh/v1alpha1).

VOLCANO = "scheduling.volcano.sh"
KAI = "scheduling.run.ai"
KOORDINATOR = "scheduling.koordinator.sh"
OF_SIGS = "scheduling.sigs.k8s.io"
"""Koordinator keeps its PodGroups and ElasticQuotas here, as scheduler-plugins once did."""

QUOTA = "quota.scheduling.koordinator.sh"
QUOTA_NAME, QUOTA_PARENT = f"{QUOTA}/name", f"{QUOTA}/parent"
"""Labels: of a pod, and of an ElasticQuota."""
QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES = f"{QUOTA}/runtime", f"{QUOTA}/request", f"{QUOTA}/namespaces"
"""Annotations of an ElasticQuota, in JSON: what it has now, what its pods ask for, the namespaces that are its own."""
KOORDINATOR_ANNOTATIONS = (QUOTA_RUNTIME, QUOTA_REQUEST, QUOTA_NAMESPACES)
DEFAULT_QUOTA = "koordinator-default-quota"
QUEUES_OF_YUNIKORN, QUEUES_FILE = "yunikorn-configs", "queues.yaml"
"""The name of YuniKorn's ConfigMap, in whichever namespace it is installed, and the key of its queues."""


class GroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    min_member: Int32 | None = None
    queue: str = ""
    min_resources: ResourceList = {}


class GroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    running: Int32 = 0
    scheduled: Int32 = 0


class VolcanoPodGroup(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
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


class VolcanoQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


# --- KAI


class Explanation(Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class SchedulingCondition(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a group has no place among some nodes."""

    type: str = ""
    node_pool: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    reasons: tuple[Explanation, ...] = ()


class KaiGroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class KaiPodGroup(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: GroupSpec = GroupSpec()
    status: KaiGroupStatus = KaiGroupStatus()


class KaiShare(Struct, frozen=True, kw_only=True):
    """Of a resource, -1 for as much as there is: thousandths of cpu, megabytes of memory, GPUs and parts of them."""

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
    conditions: tuple[Condition, ...] = ()
    allocated: ResourceList = {}
    requested: ResourceList = {}


class KaiQueue(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: KaiQueueSpec = KaiQueueSpec()
    status: KaiQueueStatus = KaiQueueStatus()


# --- Koordinator


class KoordinatorPodGroup(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class QuotaSpec(Struct, frozen=True, kw_only=True):
    min: ResourceList = {}
    max: ResourceList = {}


class QuotaStatus(Struct, frozen=True, kw_only=True):
    used: ResourceList = {}


class KoordinatorQuota(Struct, frozen=True, kw_only=True):
    """ElasticQuota; quotas form a tree by their label `parent`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class ObjectReference(Struct, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ReservationOwner(Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods that may use a reservation: all that is said has to hold."""

    object: ObjectReference | None = None
    controller: ObjectReference | None = None
    label_selector: LabelSelector | None = None


class ReservationSpec(Struct, frozen=True, kw_only=True):
    owners: tuple[ReservationOwner, ...] = ()


class ReservationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    node_name: str = ""
    allocatable: ResourceList = {}
    allocated: ResourceList = {}


class Reservation(Struct, frozen=True, kw_only=True):
    """Room on a node that is kept for some pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReservationSpec = ReservationSpec()
    status: ReservationStatus = ReservationStatus()


class MigrationSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_ref: ObjectReference | None = None


class MigrationStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    node_name: str = ""


class PodMigrationJob(Struct, frozen=True, kw_only=True):
    """A pod that is moved: its room elsewhere is reserved, then it is evicted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MigrationSpec = MigrationSpec()
    status: MigrationStatus = MigrationStatus()


# --- YuniKorn


class TaskGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    min_member: int = 0


SchedulerGroup = VolcanoPodGroup | KaiPodGroup | KoordinatorPodGroup


# OpenShift's configuration of kube-scheduler, of which its API server reads the node selector.


class SchedulerConfigSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    default_node_selector: str = ""


class SchedulerConfig(Struct, frozen=True, kw_only=True):
    """config.openshift.io/v1 Scheduler: `cluster` is the only one."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SchedulerConfigSpec = SchedulerConfigSpec()
