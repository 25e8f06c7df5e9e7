"""Typed records of core/v1, policy/v1, and scheduling.k8s.io: the fields that scheduling reads."""

# Annotations are evaluated in all modules of decoded records: msgspec would compile each that is a string, which takes
# 15 ms of every command.

from collections.abc import Iterable
from contextlib import suppress

from msgspec import Struct, field

from kschedx.errors import InputError
from kschedx.kube.conditions import UNSCHEDULABLE, Condition, ResourceStatus, TimedCondition, condition_of
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32, Int64
from kschedx.kube.security_contexts import SecurityContext
from kschedx.kube.selectors import LabelSelector, NodeSelector, PreferredSchedulingTerm, Selector, compile_selector

# A pod's volumes and their sources. Persistent volumes, claims, and classes are in `kube/storage.py`.

FILESYSTEM = "Filesystem"


class PersistentVolumeClaimVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    claim_name: str = ""
    read_only: bool = False


class _GCEPersistentDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class _AWSElasticBlockStoreVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool | None = None


class _AzureFileVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    share_name: str = ""
    secret_name: str = ""
    secret_namespace: str | None = None


class _CinderVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class _VsphereVirtualDiskVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_path: str = ""


class _PortworxVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class _ISCSIVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class _RBDVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class _CSIVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    driver: str = ""
    read_only: bool | None = None


class VolumeResourceRequirements(Struct, frozen=True, kw_only=True):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None  # None means the default class, an empty name no class
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""
    data_source: dict[str, object] = {}
    data_source_ref: dict[str, object] = {}


class _PersistentVolumeClaimTemplate(Struct, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class _EphemeralVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    """A generic ephemeral volume; its claim is named after the pod and the volume."""

    volume_claim_template: _PersistentVolumeClaimTemplate | None = None


class _ImageVolumeSource(Struct, frozen=True, kw_only=True, rename="camel"):
    reference: str = ""


class EmptyDirVolumeSource(Struct, frozen=True, kw_only=True):
    medium: str = ""  # with `Memory`, it uses no disk of the node


class _HostPathVolumeSource(Struct, frozen=True, kw_only=True):
    """Only cluster-autoscaler reads it."""


class InTreeVolumeSources(Struct, frozen=True, kw_only=True, rename="camel"):
    """A source of a pod's volume or a persistent volume from an in-tree plugin that a CSI driver replaces."""

    gce_persistent_disk: _GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: _AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: _AzureFileVolumeSource | None = None
    cinder: _CinderVolumeSource | None = None
    vsphere_volume: _VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: _PortworxVolumeSource | None = None


class Volume(InTreeVolumeSources, frozen=True, kw_only=True, rename="camel"):
    """A pod's volume. Sources that kschedx does not read (configMap, secret, ...) leave every field unset."""

    name: str = ""
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: _HostPathVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: _EphemeralVolumeSource | None = None
    csi: _CSIVolumeSource | None = None
    image: _ImageVolumeSource | None = None
    iscsi: _ISCSIVolumeSource | None = None
    rbd: _RBDVolumeSource | None = None


# How a pod refers to its group.


class _PodSchedulingGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_group_name: str | None = None


class _WorkloadReference(Struct, frozen=True, kw_only=True, rename="camel"):
    """Only in 1.35, behind the gate GenericWorkload; `_PodSchedulingGroup` replaces it."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


# Typed records of core/v1 and small related groups. They have the fields that scheduling reads, with Kubernetes' names;
# other fields of a manifest are skipped. Optional scalars that are pointers in Go are `T | None`; lists and maps for
# which nil and empty mean the same are empty tuples and dicts. Resource lists keep the text of their quantities.
# `storage` and `devices` have the records of their groups.

Labels = dict[str, str]


class OwnerReference(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


NEW = "new/"  # begins the uid of an object that a simulation adds


class ObjectMeta(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Labels = {}
    annotations: Labels = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether a simulation adds the object, which then has no uid of an API server."""
        return self.uid.startswith(NEW)

    @property
    def is_stored(self) -> bool:
        """Whether an API server has stored the object: it gives each one both fields, of which a dump may lack one."""
        return bool(self.uid or self.creation_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        return controller_of(self.owner_references)


def controller_of(owners: Iterable[OwnerReference]) -> OwnerReference | None:
    """Return the owner that manages an object (metav1.GetControllerOf)."""
    return next((owner for owner in owners if owner.controller), None)


class KubernetesObject(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


# --- pods


class Toleration(Struct, frozen=True, kw_only=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ContainerPort(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ContainerClaim(Struct, frozen=True, kw_only=True):
    name: str = ""  # the name of one of the pod's resourceClaims
    request: str = ""  # a request of that claim; empty for all of them


class ResourceRequirements(Struct, frozen=True, kw_only=True, rename="camel"):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ContainerClaim, ...] = ()


class _ContainerRestartRule(Struct, frozen=True, kw_only=True, rename="camel"):
    action: str = ""


class Container(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[_ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None

    @property
    def is_restartable_init(self) -> bool:
        """Whether it is a sidecar, if it is an init container."""
        return self.restart_policy == "Always"


class NodeAffinity(Struct, frozen=True, kw_only=True, rename="camel"):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True, kw_only=True, rename="camel"):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True, rename="camel"):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True, kw_only=True, rename="camel"):
    """podAffinity or podAntiAffinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def terms(self) -> tuple[PodAffinityTerm, ...]:
        preferred = self.preferred_during_scheduling_ignored_during_execution
        return self.required_during_scheduling_ignored_during_execution + tuple(
            weighted.pod_affinity_term for weighted in preferred
        )


class Affinity(Struct, frozen=True, kw_only=True, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @property
    def pod_terms(self) -> tuple[PodAffinityTerm, ...]:
        """The terms of podAffinity, then those of podAntiAffinity."""
        sides = (self.pod_affinity, self.pod_anti_affinity)
        return tuple(term for side in sides if side is not None for term in side.terms)


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True, rename="camel"):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Struct, frozen=True, kw_only=True):
    name: str = ""


class PodResourceClaim(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(Struct, frozen=True, kw_only=True):
    name: str = ""


class PodSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a pod's spec that scheduling reads. In a `PodTable`, the pods of one template share a PodSpec with
    an empty `node_name`; the table holds it per pod."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None
    node_selector: Labels = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: _PodSchedulingGroup | None = None
    workload_ref: _WorkloadReference | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    os: PodOS | None = None  # the kubelet reads it, not kube-scheduler
    security_context: SecurityContext = SecurityContext()

    @property
    def has_unknown_priority(self) -> bool:
        """Whether its PriorityClass, which sets the priority, is not in the snapshot."""
        return self.priority is None and bool(self.priority_class_name)

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        rules = self.affinity.node_affinity if self.affinity is not None else None
        return rules.required_during_scheduling_ignored_during_execution if rules is not None else None

    @property
    def required_pod_affinity(self) -> tuple[PodAffinityTerm, ...]:
        if self.affinity is None or self.affinity.pod_affinity is None:
            return ()
        return self.affinity.pod_affinity.required_during_scheduling_ignored_during_execution

    @property
    def required_anti_affinity(self) -> tuple[PodAffinityTerm, ...]:
        if self.affinity is None or self.affinity.pod_anti_affinity is None:
            return ()
        return self.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution

    @property
    def mounts_storage(self) -> bool:
        """Whether a volume is more than a directory on the node."""
        return any(it != Volume(name=it.name, empty_dir=it.empty_dir, host_path=it.host_path) for it in self.volumes)


class PodCondition(Condition, frozen=True, kw_only=True):
    pass


class ContainerStateWaiting(Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Struct, frozen=True, kw_only=True, rename="camel"):
    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""


class ContainerState(Struct, frozen=True, kw_only=True):
    """Both fields are empty while the container runs."""

    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """The state is read only for pods with a waiting container, or one that restarted often."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    restart_count: int = 0  # only of a container that restarted often
    allocated_resources: ResourceList = {}
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None  # None if no claim is needed


class NodeAllocatableResourceClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """The node's allocatable resources that a claim's devices use."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: ResourceList = {}


FINISHED = ("Succeeded", "Failed")  # phases in which a pod holds nothing of its node


class PodStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    phase: str = ""
    reason: str = ""  # the reason of a failed pod: `Evicted`, `OutOfcpu`, `UnexpectedAdmissionError`
    message: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()

    @property
    def waiting_reasons(self) -> tuple[str, ...]:
        """Why containers wait."""
        states = (status.state for status in (*self.init_container_statuses, *self.container_statuses))
        return tuple(state.waiting.reason for state in states if state is not None and state.waiting is not None)


UNSCHEDULABLE_STATUS = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason=UNSCHEDULABLE),)
)
"""The status of a pod for which kube-scheduler has just found no node, so that autoscalers consider it."""


class Pod(KubernetesObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`, with `generateName` if the API server has not named the pod yet."""
        return f"{self.metadata.namespace}/{self.metadata.name or self.metadata.generate_name}"

    @property
    def priority(self) -> int:
        """corev1helpers.PodPriority: 0 by default."""
        return self.spec.priority or 0

    @property
    def device_claims(self) -> dict[str, str]:
        """The pod's names for its ResourceClaims to `namespace/name`, without those that are not created yet."""
        created = {status.name: status.resource_claim_name for status in self.status.resource_claim_statuses}
        named = ((it.name, it.resource_claim_name or created.get(it.name)) for it in self.spec.resource_claims)
        return {own: f"{self.metadata.namespace}/{name}" for own, name in named if name}


# --- nodes


AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""A node annotation about pods of some controllers, `AvoidPods`; schedulers before 1.22 read it."""


class _PodSignature(Struct, frozen=True, rename="camel"):
    pod_controller: OwnerReference = OwnerReference()


class _AvoidedPods(Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature = _PodSignature()


class AvoidPods(Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: tuple[_AvoidedPods, ...] = ()


class Taint(Struct, frozen=True, kw_only=True, rename="camel"):
    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        """Format as kubectl does: `key=value:effect`, `key:effect`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class ContainerImage(Struct, frozen=True, kw_only=True, rename="camel"):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = field(default="", name="providerID")


class NodeSystemInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeCondition(TimedCondition, frozen=True, kw_only=True, rename="camel"):
    last_heartbeat_time: str | None = None


class NodeStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    """Schedulers before 1.13 and cluster-autoscaler read them; later schedulers read the corresponding taints."""
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint that you set on a node that is down, and remove by hand."""
JOB_TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer of a Job's pods, which the Job controller removes once it has counted the pod."""
OWN_FINALIZERS = frozenset({JOB_TRACKING, "foregroundDeletion", "orphan"})
"""Finalizers that kube-controller-manager removes once a pod has terminated."""
LOST_TAINTS = frozenset({"node.kubernetes.io/not-ready", UNREACHABLE})
"""The taints that the node lifecycle controller adds to a node that is not ready or whose kubelet does not respond."""


class Node(KubernetesObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_lost(self) -> bool:
        """Whether the node is not ready, so that its pods are not ready and its kubelet may not respond."""
        is_tainted = any(taint.key in LOST_TAINTS for taint in self.spec.taints)
        return is_tainted or condition_of(self.status.conditions, "Ready", "False", "Unknown") is not None


# --- other kinds of core/v1, apps/v1, policy/v1, and scheduling.k8s.io


class NamespaceCondition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _NamespaceStatus(Struct, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(KubernetesObject, frozen=True, kw_only=True):
    status: _NamespaceStatus = _NamespaceStatus()


class _LabelsSelectorSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: Labels | None = None


class PodTemplateSpec(KubernetesObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class PodTemplate(KubernetesObject, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicationController(KubernetesObject, frozen=True, kw_only=True):
    spec: _LabelsSelectorSpec = _LabelsSelectorSpec()


class _SelectorSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: LabelSelector | None = None


class ReplicaSet(KubernetesObject, frozen=True, kw_only=True):
    spec: _SelectorSpec = _SelectorSpec()


class StatefulSet(KubernetesObject, frozen=True, kw_only=True):
    spec: _SelectorSpec = _SelectorSpec()


# --- objects of cluster-autoscaler

AUTOSCALER_STATUS = "kube-system/cluster-autoscaler-status"
AUTOSCALER_PRIORITIES = "kube-system/cluster-autoscaler-priority-expander"


SCHEDULER_CONFIGURATION = "KubeSchedulerConfiguration"


class ConfigMap(KubernetesObject, frozen=True, kw_only=True):
    data: dict[str, str] = {}


# --- objects for admission


class LimitRangeItem(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class _LimitRangeSpec(Struct, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class ServiceAccount(KubernetesObject, frozen=True, kw_only=True):
    pass


class LimitRange(KubernetesObject, frozen=True, kw_only=True):
    spec: _LimitRangeSpec = _LimitRangeSpec()


class _RuntimeClassOverhead(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_fixed: ResourceList = {}


class _RuntimeClassScheduling(Struct, frozen=True, kw_only=True, rename="camel"):
    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(KubernetesObject, frozen=True, kw_only=True):
    """node.k8s.io."""

    overhead: _RuntimeClassOverhead | None = None
    scheduling: _RuntimeClassScheduling | None = None


# Typed records of policy/v1.


class _BudgetMeta(ObjectMeta, frozen=True, kw_only=True, rename="camel"):
    generation: Int64 = 0


class _PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None  # a number of pods or a percentage
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    disruptions_allowed: Int32 | None = None  # None before a controller syncs it, which counts as 0
    current_healthy: Int32 | None = None
    desired_healthy: Int32 | None = None
    disrupted_pods: dict[str, str] = {}
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    metadata: _BudgetMeta = _BudgetMeta()
    spec: _PodDisruptionBudgetSpec = _PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


def compile_budgets(budgets: Iterable[PodDisruptionBudget]) -> dict[str, list[tuple[PodDisruptionBudget, Selector]]]:
    """Return budgets with their selectors, by namespace. Those whose selector is invalid cover no pods."""
    compiled: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
    for budget in budgets:
        with suppress(InputError):
            pair = budget, compile_selector(budget.spec.selector)
            compiled.setdefault(budget.metadata.namespace, []).append(pair)
    return compiled


# Typed records of scheduling.k8s.io: priority classes and pod groups.


class PriorityClass(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class _GangSchedulingPolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    min_count: Int32 = 0


class _PodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True):
    gang: _GangSchedulingPolicy | None = None


class _TopologyConstraint(Struct, frozen=True, kw_only=True):
    key: str = ""


class _PodGroupSchedulingConstraints(Struct, frozen=True, kw_only=True):
    topology: tuple[_TopologyConstraint, ...] = ()


class _DisruptionMode(Struct, frozen=True, kw_only=True):
    """How the pods of a group are preempted, in the form of 1.37."""

    all: dict[str, object] | None = None  # all pods of the group or none; otherwise each pod separately


class PodGroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scheduling_policy: _PodGroupSchedulingPolicy = _PodGroupSchedulingPolicy()
    scheduling_constraints: _PodGroupSchedulingConstraints | None = None
    disruption_mode: str | _DisruptionMode | None = None  # `Pod` or `PodGroup` in 1.36
    priority_class_name: str = ""
    priority: Int32 | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()


class _PodGroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class PodGroup(KubernetesObject, frozen=True, kw_only=True):
    """scheduling.k8s.io/v1alpha2, in 1.37 v1beta1 and v1alpha3, behind the gate GenericWorkload."""

    spec: PodGroupSpec = PodGroupSpec()
    status: _PodGroupStatus = _PodGroupStatus()

    @property
    def is_preempted_whole(self) -> bool:
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, _DisruptionMode) else mode == "PodGroup"


class _WorkloadPodGroup(Struct, frozen=True, kw_only=True):
    name: str = ""
    policy: _PodGroupSchedulingPolicy = _PodGroupSchedulingPolicy()


class _GroupedWorkloadSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_groups: tuple[_WorkloadPodGroup, ...] = ()


class GroupedWorkload(KubernetesObject, frozen=True, kw_only=True):
    """Workload of scheduling.k8s.io/v1alpha1, the API of 1.35; later kube-schedulers do not read it."""

    spec: _GroupedWorkloadSpec = _GroupedWorkloadSpec()
