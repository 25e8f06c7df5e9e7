"""Typed records of the objects of cluster-autoscaler, Cluster API, and Karpenter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from kschedx.kube import descheduling
from kschedx.kube.conditions import Condition, ObjectStatus, TimedCondition, condition_of
from kschedx.kube.decoding import list_at
from kschedx.kube.kueue import POD_ANNOTATIONS
from kschedx.kube.quantity import ResourceList
from kschedx.kube.scalars import Int32, Int64, parse_int64
from kschedx.kube.types import KubernetesObject, Labels, Taint
from kschedx.patterns import lazy_pattern

# The pod annotations that autoscalers and other schedulers read; a snapshot keeps no others.

MIRROR = "kubernetes.io/config.mirror"  # the annotation of a mirror pod, the API server's copy of a static pod
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""A ReplicaSet that scales down deletes the pods with the lowest cost first."""
_AUTOSCALER = "cluster-autoscaler.kubernetes.io/"
DAEMON_SET_POD = f"{_AUTOSCALER}daemonset-pod"  # `true`: cluster-autoscaler treats the pod as a DaemonSet's
SCALE_UP_DELAY = f"{_AUTOSCALER}pod-scale-up-delay"
"""How long cluster-autoscaler ignores a pending pod, as a Go duration."""
CONSUMED_REQUESTS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    f"{_AUTOSCALER}consume-provisioning-request",
)
"""The ProvisioningRequest whose nodes the pod uses, by precedence."""
SAFE_TO_EVICT = f"{_AUTOSCALER}safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES = f"{_AUTOSCALER}safe-to-evict-local-volumes"
"""Names of local volumes that may be lost, separated by commas."""
SCALE_DOWN_DISABLED = f"{_AUTOSCALER}scale-down-disabled"
"""On a node, `true` prevents cluster-autoscaler from removing it."""
NODE_POOL_ID = "oci.oraclecloud.com/node-pool-id"  # the node group of an OKE node
_KARPENTER = "karpenter.sh/"
DO_NOT_DISRUPT = f"{_KARPENTER}do-not-disrupt"

GANG_LEAST = "gang.scheduling.koordinator.sh/min-available"  # the minimum of a Koordinator gang without a PodGroup
GROUP_NAMES = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/group-name",
    "pod-group-name",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
    "gang.scheduling.koordinator.sh/name",
)
"""The annotations or labels in which Volcano, KAI, and Koordinator name a pod's group, by precedence."""

OF_OBJECTS = tuple(name for name in GROUP_NAMES if name != "gang.scheduling.koordinator.sh/name")
"""Those that name a PodGroup."""

YUNIKORN_QUEUE, YUNIKORN_APPLICATION = "yunikorn.apache.org/queue", "yunikorn.apache.org/app-id"
TASK_GROUP, TASK_GROUPS = "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"
"""The task group of a pod, and all task groups of its application as JSON."""
HAMI_SCHEDULER = "hami-scheduler"
HAMI_REGISTER = lazy_pattern(r"hami\.io/node-(?P<kind>[\w-]+)-register")
"""The annotation in which HAMi's device plugin registers the devices of a node."""
HAMI_PHASE = "hami.io/bind-phase"  # `allocating`, `success`, or `failed`
HAMI_DEVICES = "hami.io/vgpu-devices-allocated"
"""The device shares of each container: `GPU-1,NVIDIA,3000,30:;`, in MiB and percent of the cores."""
OTHER_SCHEDULERS = (
    *(*GROUP_NAMES, GANG_LEAST, YUNIKORN_QUEUE, YUNIKORN_APPLICATION, TASK_GROUP, TASK_GROUPS),
    *(HAMI_PHASE, HAMI_DEVICES),
    *POD_ANNOTATIONS,
)

GROUP_SIZE, GROUP_LABELS = (
    "leaderworkerset.sigs.k8s.io/size",
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
)
"""The annotation with the size of a LeaderWorkerSet's group, and the labels that its pods share."""

JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"  # the label with the JobSet of a Job's pods
EXCLUSIVE_TOPOLOGY = {
    "alpha.jobset.sigs.k8s.io/exclusive-topology": ("JobSet", JOB_SET_NAME, "Job"),
    "leaderworkerset.sigs.k8s.io/exclusive-topology": ("LeaderWorkerSet", GROUP_LABELS[0], "group"),
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": ("LeaderWorkerSet", GROUP_LABELS[0], "subgroup"),
}
"""The annotation whose value is a topology key, to the kind, the label with its name, and what has a domain for itself.
Upstream: pkg/webhooks of kubernetes-sigs/jobset and kubernetes-sigs/lws."""

SPARK_APPLICATION, SPARK_ROLE = "spark-app-selector", "spark-role"
"""The labels with the application of a Spark pod, and with its role: `driver` or `executor`."""

RAY_CLUSTER, RAY_ROLE = "ray.io/cluster", "ray.io/node-type"
"""The labels with the cluster of a Ray pod, and with its role: `head` or `worker`."""
TRAINING_JOB = "training.kubeflow.org/job-name"
"""The label with the job of a pod of Kubeflow's training operator or MPI operator."""

LIMIT_RANGER = "kubernetes.io/limit-ranger"
"""Lists requests and limits that a LimitRange set: `LimitRanger plugin set: cpu, memory request for container app`."""
VERTICAL_UPDATES = "vpaUpdates"
"""Lists requests that a VerticalPodAutoscaler set: `Pod resources updated by web: container 0: cpu request`."""

COMPUTE_TYPE = "eks.amazonaws.com/compute-type"  # on a pod: `ec2` keeps it off Fargate. On a node: the label `fargate`
FARGATE_SCHEDULER = "fargate-scheduler"

ANNOTATION_MARKS = (
    *(LIMIT_RANGER.encode(), VERTICAL_UPDATES.encode(), COMPUTE_TYPE.encode()),
    *(
        _AUTOSCALER.encode(),
        CONSUMED_REQUESTS[0].encode(),
        MIRROR.encode(),
        DELETION_COST.encode(),
        _KARPENTER.encode(),
        GROUP_SIZE.encode(),
    ),
    b"exclusive-topology",
    *(name.encode() for name in (*OTHER_SCHEDULERS, *descheduling.ANNOTATIONS)),
)
"""Texts of which JSON with a relevant annotation contains at least one, if slashes are not escaped."""


def has_default(annotations: Mapping[str, str], container: str, resource: str, side: str = "request") -> bool:
    """Return whether a LimitRange set the container's request, or its limit."""
    phrases = annotations.get(LIMIT_RANGER, "").partition("set: ")[2].split("; ")
    mine = (phrase for phrase in phrases if phrase.endswith(f" {side} for container {container}"))
    return any(resource in re.split(r", | ", phrase) for phrase in mine)


def vertical_autoscaler(annotations: Mapping[str, str], container: int, resource: str) -> str:
    """Return the VerticalPodAutoscaler that set the request of a container, given by its index, or an empty string."""
    match = re.search(r"updated by (\S+): (.*)", annotations.get(VERTICAL_UPDATES, ""))
    is_set = match and re.search(rf"container {container}: [^;]*\b{re.escape(resource)} request", match[2])
    return match[1] if match and is_set else ""


def is_read(key: str) -> bool:
    return (
        key in (MIRROR, DELETION_COST, GROUP_SIZE, LIMIT_RANGER, VERTICAL_UPDATES, COMPUTE_TYPE)
        or key in descheduling.ANNOTATIONS
        or key in OTHER_SCHEDULERS
        or key in EXCLUSIVE_TOPOLOGY
        or key in CONSUMED_REQUESTS
        or key.startswith((_AUTOSCALER, _KARPENTER))
    )


# Machines of Cluster API and OpenShift: what cluster-autoscaler reads of the objects that it scales. Upstream:
# cloudprovider/clusterapi of kubernetes/autoscaler.

CLUSTER_API_GROUP = "cluster.x-k8s.io"
OPENSHIFT_GROUP = "machine.openshift.io"

_CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
CPU, MEMORY, DISK = f"{_CAPACITY}cpu", f"{_CAPACITY}memory", f"{_CAPACITY}ephemeral-disk"
GPU_TYPE, GPU_COUNT, MAX_PODS = f"{_CAPACITY}gpu-type", f"{_CAPACITY}gpu-count", f"{_CAPACITY}maxPods"
LABELS = f"{_CAPACITY}labels"  # `key=value,key=value`
TAINTS = f"{_CAPACITY}taints"  # `key=value:effect,key:effect`
OWNER_KIND, OWNER_NAME = "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name"
OWNER_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
MACHINE = "machine.openshift.io/machine"
"""On OpenShift: namespace and name of the node's Machine, whose name is that of its MachineSet and a suffix."""
_OF_MACHINES = (OWNER_KIND, OWNER_NAME, OWNER_NAMESPACE, MACHINE)  # annotations of nodes
MAX_SIZES = tuple(f"{it}/cluster-api-autoscaler-node-group-max-size" for it in (CLUSTER_API_GROUP, OPENSHIFT_GROUP))
"""Annotations of the objects that an autoscaler scales."""
PAUSED_MACHINES = f"{CLUSTER_API_GROUP}/paused"
ANNOTATIONS = (
    *(CPU, MEMORY, DISK, GPU_TYPE, GPU_COUNT, MAX_PODS, LABELS, TAINTS, *MAX_SIZES, *_OF_MACHINES, PAUSED_MACHINES),
)
_COPIED_DOMAINS = (".node-role.kubernetes.io", ".node-restriction.kubernetes.io", ".node.cluster.x-k8s.io")


def node_labels(labels: Labels) -> Labels:
    """Return the labels of a machine that Cluster API copies to its node: those of some domains and their subdomains
    (internal/controllers/machine/machine_controller_noderef.go)."""
    return {key: value for key, value in labels.items() if f".{key.partition('/')[0]}".endswith(_COPIED_DOMAINS)}


class _LabelsMeta(Struct, frozen=True, kw_only=True):
    labels: Labels = {}


class _MachineSpec(Struct, frozen=True, kw_only=True):
    metadata: _LabelsMeta = _LabelsMeta()
    """The metadata of the machine's node. OpenShift copies all of it, Cluster API only labels of some domains."""
    taints: tuple[Taint, ...] = ()


class _MachineTemplate(Struct, frozen=True, kw_only=True):
    metadata: _LabelsMeta = _LabelsMeta()
    """The metadata of the machine, of which Cluster API copies labels of some domains to its node."""
    spec: _MachineSpec = _MachineSpec()


class _ScalableSpec(Struct, frozen=True, kw_only=True):
    replicas: int | None = None
    paused: bool = False
    template: _MachineTemplate = _MachineTemplate()


class _ScalableStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: int | None = None
    ready_replicas: int | None = None
    """Machines whose nodes are ready; omitted if there is none, as all other numbers are before the first report."""
    conditions: tuple[Condition, ...] = ()


class Scalable(KubernetesObject, frozen=True, kw_only=True):
    """An object that creates machines and states the capacity of one."""

    spec: _ScalableSpec = _ScalableSpec()
    status: _ScalableStatus = _ScalableStatus()

    @property
    def limit(self) -> tuple[str, int] | None:
        """The annotation with the maximum up to which an autoscaler scales it, and that; None without a valid one."""
        values = ((key, parse_int64(self.metadata.annotations.get(key, ""))) for key in MAX_SIZES)
        return next(((key, most) for key, most in values if most is not None), None)

    @property
    def is_paused(self) -> bool:
        return self.spec.paused or PAUSED_MACHINES in self.metadata.annotations

    @property
    def faults(self) -> tuple[str, ...]:
        """What its controller reports as failing."""
        untrue = (condition_of(self.status.conditions, kind, "False") for kind in _STAGES_OF_SCALABLE)
        return tuple(it.message for it in untrue if it is not None and it.message)

    @property
    def missing_nodes(self) -> int:
        """The number of its machines that have no ready node."""
        ready, is_reported = self.status.ready_replicas, self.status.replicas is not None
        return max((self.spec.replicas or 0) - (ready or 0), 0) if is_reported or ready is not None else 0


class MachineDeployment(Scalable, frozen=True, kw_only=True):
    pass


class MachineSet(Scalable, frozen=True, kw_only=True):
    pass


class MachinePool(Scalable, frozen=True, kw_only=True):
    pass


class OpenShiftMachineSet(Scalable, frozen=True, kw_only=True):
    pass


class _MachineCondition(Condition, frozen=True, kw_only=True):
    severity: str = ""  # of v1beta1: Error, Warning, or Info while the machine is created or deleted

    @property
    def is_in_progress(self) -> bool:
        """Whether it only waits for what comes before. Conditions of v1beta2 have no severity."""
        if self.severity:
            return self.severity == "Info"
        lines = self.message.splitlines()
        is_of_stage = bool(lines) and all(map(_WAITS.search, lines))
        return self.reason.startswith("WaitingFor") or self.reason == "NotProvisioned" or is_of_stage


_WAITS = lazy_pattern(r"status\.initialization\.|[Ww]aiting for ")
"""In lines of a condition of v1beta2 about a machine that is created (core/reconcilers/machine of Cluster API)."""
_STAGES_OF_SCALABLE = ("InfrastructureReady", "BootstrapConfigReady", "BootstrapReady", "MachinesCreated")
_STAGES_OF_MACHINE = (
    *("InfrastructureReady", "BootstrapReady", "BootstrapConfigReady", "InstanceExists"),
    *("HealthCheckSucceeded", "NodeHealthy", "Ready"),
)
_STAGES_OF_DELETION = (
    *("PreDrainDeleteHookSucceeded", "DrainingSucceeded", "VolumeDetachSucceeded", "PreTerminateDeleteHookSucceeded"),
    *("Drainable", "Drained", "Terminable"),
)
"""Conditions that are False while the deletion of a machine waits."""
_SCALABLE_LABELS = (f"{CLUSTER_API_GROUP}/deployment-name", f"{CLUSTER_API_GROUP}/set-name")


class _NodeReference(Struct, frozen=True, kw_only=True):
    name: str = ""


class _MachineStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    failure_message: str = ""
    error_message: str = ""  # on OpenShift
    node_ref: _NodeReference | None = None
    phase: str = ""
    conditions: tuple[_MachineCondition, ...] = ()

    @property
    def node(self) -> str:
        return self.node_ref.name if self.node_ref is not None else ""


class Machine(KubernetesObject, frozen=True, kw_only=True):
    """A machine of Cluster API, or of OpenShift."""

    status: _MachineStatus = _MachineStatus()

    @property
    def failure(self) -> str:
        """Why it has no node: what its infrastructure reports first; empty if that is not reported."""
        if self.status.node_ref or self.metadata.deletion_timestamp:
            return ""
        failed = (condition.message for condition in self._untrue if not condition.is_in_progress)
        return self.status.failure_message or self.status.error_message or next(filter(None, failed), "")

    @property
    def progress(self) -> str:
        """What it waits for while it is created; empty if that is not reported."""
        return next(filter(None, (it.message for it in self._untrue if it.is_in_progress)), "")

    @property
    def _untrue(self) -> Iterator[_MachineCondition]:
        untrue = (condition_of(self.status.conditions, kind, "False", "Unknown") for kind in _STAGES_OF_MACHINE)
        return (condition for condition in untrue if condition is not None)

    @property
    def deletion(self) -> tuple[str, ...]:
        """What its deletion waits for, as its conditions report it."""
        conditions = self.status.conditions
        untrue = (condition_of(conditions, kind, "False") for kind in _STAGES_OF_DELETION)
        each = (condition_of(conditions, "Deleting", "True"), *untrue)
        return tuple(line for it in each if it is not None for line in it.message.splitlines())

    @property
    def scalables(self) -> tuple[str, ...]:
        """The names of what created it."""
        return tuple(self.metadata.labels.get(key, "") for key in _SCALABLE_LABELS)


class OpenShiftMachine(Machine, frozen=True, kw_only=True):
    """A machine of a MachineSet, whose name begins with that of the set."""

    @property
    def scalables(self) -> tuple[str, ...]:
        return (self.metadata.name.rpartition("-")[0],)


# The command line of cluster-autoscaler in its Deployment. A snapshot keeps only the flags named here, because they
# affect decisions. Upstream: config/flags/flags.go.

Written = dict[str, list[str]]  # flag without dashes to its values

PROGRAM = "cluster-autoscaler"

SCHEDULER_CONFIG = "scheduler-config-file"
"""The file with the scheduler profile that the autoscaler uses for all pods, instead of the default one."""

SCALE_UP = frozenset({
    "cloud-provider", "expander", "balance-similar-node-groups", "balancing-label", "balancing-ignore-label",
    "memory-difference-ratio", "max-free-difference-ratio", "max-allocatable-difference-ratio", "max-nodes-total",
    "max-nodes-per-scaleup", "cores-total", "memory-total", "gpu-total", "ok-total-unready-count",
    "max-total-unready-percentage", "max-node-startup-time", "expendable-pods-priority-cutoff",
    "new-pod-scale-up-delay", "startup-taint", "ignore-taint", "startup-taint-prefix", "status-taint", "force-ds",
    "scale-from-unschedulable", "scale-up-from-zero", "fastpath-binpacking-enabled",
    "scaleup-simulation-for-skipped-node-groups-enabled", "bypassed-scheduler-names", "allowed-scheduler-names",
    "enable-provisioning-requests", SCHEDULER_CONFIG,
})  # fmt: skip

SCALE_DOWN = frozenset({
    "scale-down-enabled", "scale-down-unneeded-time", "scale-down-unready-time", "scale-down-unready-enabled",
    "scale-down-utilization-threshold", "scale-down-gpu-utilization-threshold",
    "scale-down-delay-after-add", "scale-down-delay-after-delete", "scale-down-delay-after-failure",
    "scale-down-delay-type-local", "scale-down-non-empty-candidates-count", "scale-down-candidates-pool-ratio",
    "scale-down-candidates-pool-min-count", "ignore-daemonsets-utilization", "ignore-mirror-pods-utilization",
    "skip-nodes-with-local-storage", "skip-nodes-with-system-pods", "skip-nodes-with-custom-controller-pods",
    "cores-total", "memory-total", "gpu-total", "min-replica-count",
    "blocking-system-pod-distruption-timeout", "max-drain-parallelism", SCHEDULER_CONFIG,
    "enable-dynamic-resource-allocation",
})  # fmt: skip

FLAGS = SCALE_UP | SCALE_DOWN

_SWITCHES = frozenset({
    "balance-similar-node-groups", "force-ds", "scale-from-unschedulable", "scale-up-from-zero",
    "fastpath-binpacking-enabled", "scaleup-simulation-for-skipped-node-groups-enabled",
    "skip-nodes-with-local-storage", "skip-nodes-with-system-pods", "skip-nodes-with-custom-controller-pods",
    "scale-down-enabled", "scale-down-unready-enabled", "scale-down-delay-type-local",
    "ignore-daemonsets-utilization", "ignore-mirror-pods-utilization", "enable-dynamic-resource-allocation",
    "enable-provisioning-requests",
})  # fmt: skip
"""Boolean flags, which need no value."""


def parse_flags(arguments: Sequence[str]) -> Written:
    """Parse `--name=value`, `--name value`, `-name=value`, and boolean flags without a value."""
    values_by_flag: Written = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or len(word.lstrip("-")) == 0:
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            takes_next = name not in _SWITCHES and words and not words[0].startswith("-")
            value = words.pop(0) if takes_next else "true"
        values_by_flag.setdefault(name, []).append(value)
    return values_by_flag


def flags_of_containers(deployment: object) -> Iterator[tuple[int, Written]]:
    """Yield the index of each container in a Deployment's template that runs cluster-autoscaler, with its `FLAGS`."""
    for position, container in enumerate(list_at(deployment, "spec", "template", "spec", "containers")):
        if not isinstance(container, Mapping):
            continue
        words = [*_texts(container.get("command")), *_texts(container.get("args"))]
        program = words[0].rpartition("/")[2] if words else ""
        if program == PROGRAM or PROGRAM in str(container.get("image", "")):
            yield position, {name: values for name, values in parse_flags(words).items() if name in FLAGS}


def command(flags: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Return the fields of a container that runs cluster-autoscaler with these flags."""
    return {"command": [PROGRAM], "args": [f"--{name}={value}" for name in sorted(flags) for value in flags[name]]}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


# The fields of Karpenter's objects that decide what it does (apis/v1 of kubernetes-sigs/karpenter, and v1beta1). Node
# classes belong to the cloud providers; only their conditions and subnets are read.

KARPENTER_GROUP = "karpenter.sh"
AWS = "karpenter.k8s.aws"
AZURE = "karpenter.azure.com"
GCP = "karpenter.k8s.gcp"
EKS_AUTO_MODE = "eks.amazonaws.com"

NODE_POOL = f"{KARPENTER_GROUP}/nodepool"
CAPACITY_TYPE = f"{KARPENTER_GROUP}/capacity-type"
REGISTERED = f"{KARPENTER_GROUP}/registered"
INITIALIZED = f"{KARPENTER_GROUP}/initialized"


class NodeSelectorRequirementWithMinValues(Struct, frozen=True, kw_only=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: Int32 | None = None


class NodeClassReference(Struct, frozen=True, kw_only=True, rename="camel"):
    group: str = ""
    kind: str = ""
    name: str = ""
    api_version: str = ""  # used in v1beta1, which has no group

    @property
    def api_group(self) -> str:
        return self.group or self.api_version.rpartition("/")[0]


class _NodeClaimSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[NodeSelectorRequirementWithMinValues, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()
    termination_grace_period: str | None = None
    expire_after: str | None = None


class NodeClaimTemplate(Struct, frozen=True, kw_only=True):
    metadata: _LabelsMeta = _LabelsMeta()
    spec: _NodeClaimSpec = _NodeClaimSpec()


BALANCED = "Balanced"  # a consolidation policy of NodePools


class DisruptionBudget(Struct, frozen=True, kw_only=True):
    """How many nodes of a pool may be disrupted at once."""

    reasons: tuple[str, ...] | None = None  # None means all reasons
    nodes: str = "10%"
    schedule: str | None = None
    duration: str | None = None


class _Disruption(Struct, frozen=True, kw_only=True, rename="camel"):
    consolidate_after: str | None = None
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    budgets: tuple[DisruptionBudget, ...] = (DisruptionBudget(),)


class _NodePoolSpec(Struct, frozen=True, kw_only=True):
    template: NodeClaimTemplate = NodeClaimTemplate()
    disruption: _Disruption = _Disruption()
    limits: ResourceList = {}
    weight: Int32 | None = None
    replicas: Int64 | None = None  # the fixed size of a static pool, which pending pods do not change


class _NodePoolStatus(Struct, frozen=True, kw_only=True):
    resources: ResourceList = {}
    conditions: tuple[TimedCondition, ...] = ()


class NodePool(KubernetesObject, frozen=True, kw_only=True):
    spec: _NodePoolSpec = _NodePoolSpec()
    status: _NodePoolStatus = _NodePoolStatus()

    @property
    def unready_condition(self) -> TimedCondition | None:
        """The condition that prevents Karpenter from using the pool; None if it is ready. A pool without conditions is
        not ready, but a manifest that no API server has stored is assumed to become ready."""
        ready = condition_of(self.status.conditions, "Ready")
        is_stored = bool(self.metadata.uid or self.metadata.creation_timestamp or self.status.conditions)
        if (ready is not None and ready.status == "True") or not is_stored:
            return None
        return ready or TimedCondition(type="Ready")

    @property
    def unready_details(self) -> tuple[TimedCondition, ...]:
        """The conditions to which the message of a false condition `Ready` refers."""
        others = (it for it in self.status.conditions if it.type not in ("Ready", "NodeRegistrationHealthy"))
        return tuple(it for it in others if it.status != "True")


class _NodeClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    node_name: str = ""
    provider_id: str = field(default="", name="providerID")
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[TimedCondition, ...] = ()


class NodeClaim(KubernetesObject, frozen=True, kw_only=True):
    spec: _NodeClaimSpec = _NodeClaimSpec()
    status: _NodeClaimStatus = _NodeClaimStatus()


class NodeOverlaySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    requirements: tuple[NodeSelectorRequirementWithMinValues, ...] = ()  # requirements without `minValues`
    price: str | None = None
    price_adjustment: str | None = None
    capacity: ResourceList = {}  # capacity of extended resources
    weight: Int32 | None = None


class _NodeOverlayStatus(Struct, frozen=True, kw_only=True):
    conditions: tuple[TimedCondition, ...] = ()


class NodeOverlay(KubernetesObject, frozen=True, kw_only=True):
    spec: NodeOverlaySpec = NodeOverlaySpec()
    status: _NodeOverlayStatus = _NodeOverlayStatus()

    @property
    def is_ready(self) -> bool:
        return condition_of(self.status.conditions, "Ready", "True") is not None


class Subnet(Struct, frozen=True, kw_only=True):
    zone: str = ""


class CapacityReservation(Struct, frozen=True, kw_only=True, rename="camel"):
    """Reserved capacity of one instance type in a zone. The object does not state how much of it is free."""

    id: str = ""
    instance_type: str = ""
    availability_zone: str = ""
    reservation_type: str = "default"
    interruptible: bool = False
    state: str = "active"


class _NodeClassStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[TimedCondition, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    capacity_reservations: tuple[CapacityReservation, ...] = ()


class NodeClass(KubernetesObject, frozen=True, kw_only=True):
    """The fields that all node classes have in common."""

    status: _NodeClassStatus = _NodeClassStatus()

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones of its nodes, sorted; empty if the provider does not state them."""
        return tuple(sorted({subnet.zone for subnet in self.status.subnets if subnet.zone}))


class EC2NodeClass(NodeClass, frozen=True, kw_only=True):
    pass


class AKSNodeClass(NodeClass, frozen=True, kw_only=True):
    pass


class GCENodeClass(NodeClass, frozen=True, kw_only=True):
    pass


NODE_CLASSES: dict[tuple[str, str], type[NodeClass]] = {
    (AWS, "EC2NodeClass"): EC2NodeClass,
    (AZURE, "AKSNodeClass"): AKSNodeClass,
    (GCP, "GCENodeClass"): GCENodeClass,
}


# CapacityBuffers: capacity that an autoscaler keeps free for future pods.


class _ScalableRef(Struct, frozen=True, kw_only=True, rename="camel"):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class _BufferTemplateRef(Struct, frozen=True, kw_only=True):
    name: str = ""


class _CapacityBufferSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_template_ref: _BufferTemplateRef | None = None
    scalable_ref: _ScalableRef | None = None


class ProvisioningRequest(KubernetesObject, frozen=True, kw_only=True):
    status: ObjectStatus = ObjectStatus()


class ComputeClass(KubernetesObject, frozen=True, kw_only=True):
    """GKE's list of machines, by precedence, of which it creates nodes for pods that select the class."""

    status: ObjectStatus = ObjectStatus()


class _CapacityBufferStatus(Struct, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    conditions: tuple[TimedCondition, ...] = ()


class CapacityBuffer(KubernetesObject, frozen=True, kw_only=True):
    """autoscaling.x-k8s.io/v1beta1."""

    spec: _CapacityBufferSpec = _CapacityBufferSpec()
    status: _CapacityBufferStatus = _CapacityBufferStatus()


# Autoscalers of workloads: HorizontalPodAutoscaler, VerticalPodAutoscaler, and KEDA's ScaledObject.

PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
PAUSED = "autoscaling.keda.sh/paused"


class ScaleTarget(Struct, frozen=True, kw_only=True):
    kind: str = "Deployment"
    name: str = ""


class _PodAutoscalerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: Int32 | None = None
    max_replicas: Int32 | None = None


class HorizontalPodAutoscaler(KubernetesObject, frozen=True, kw_only=True):
    spec: _PodAutoscalerSpec = _PodAutoscalerSpec()
    status: ObjectStatus = ObjectStatus()

    def __post_init__(self) -> None:
        """Read the conditions from the annotation in which version v1 has them."""
        written = self.metadata.annotations.get("autoscaling.alpha.kubernetes.io/conditions")
        if written and not self.status.conditions:
            with suppress(msgspec.MsgspecError):
                conditions = msgspec.json.decode(written, type=tuple[Condition, ...])
                force_setattr(self, "status", ObjectStatus(conditions=conditions))


class _VerticalPodAutoscalerSpec(Struct, frozen=True, kw_only=True):
    scale_target_ref: ScaleTarget = field(default=ScaleTarget(), name="targetRef")


class VerticalPodAutoscaler(KubernetesObject, frozen=True, kw_only=True):
    spec: _VerticalPodAutoscalerSpec = _VerticalPodAutoscalerSpec()
    status: ObjectStatus = ObjectStatus()


class _ScaledObjectSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replica_count: Int32 | None = None
    idle_replica_count: Int32 | None = None


class ScaledObject(KubernetesObject, frozen=True, kw_only=True):
    spec: _ScaledObjectSpec = _ScaledObjectSpec()
    status: ObjectStatus = ObjectStatus()

    @property
    def pausing_annotation(self) -> str:
        """The annotation that keeps the workload at its replicas; empty if KEDA scales it."""
        annotations = self.metadata.annotations
        if PAUSED_REPLICAS in annotations:
            return PAUSED_REPLICAS
        return PAUSED if annotations.get(PAUSED, "false").lower() not in ("false", "f", "0") else ""


PodAutoscaler: TypeAlias = HorizontalPodAutoscaler | VerticalPodAutoscaler | ScaledObject
POD_AUTOSCALERS: Mapping[str, type[PodAutoscaler]] = {
    record.__name__: record for record in (HorizontalPodAutoscaler, VerticalPodAutoscaler, ScaledObject)
}
"""By kind."""
