"""What other schedulers keep of the pods that are theirs: pod groups, queues, quotas and reservations, as far as they
say how it stands.

Volcano (scheduling.volcano.sh/v1beta1), KAI (scheduling.run.ai, groups v2alpha2 and queues v2), Koordinator (its copies
of scheduler-plugins' kinds in scheduling.sigs.k8s.io/v1alpha1, its own in scheduling.koordinator.sh/v1alpha1).
"""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32
from kschedx.api.kueue import Condition
from kschedx.api.quantity import ResourceList
from kschedx.api.selectors import LabelSelector
from kschedx.api.types import ObjectMeta

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


Group = VolcanoPodGroup | KaiPodGroup | KoordinatorPodGroup
