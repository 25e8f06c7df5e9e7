"""The kinds that kschedx reads, one row each: their API, the decoded record, and what needs them.

File readers, live lists, snapshots, the anonymizer, doctor, and the notes about missing kinds all use this table. A new
kind needs a row here and a record with the fields that are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from kschedx.errors import InputError, Place, closest, nearest
from kschedx.kube import (
    autoscalers,
    controllers,
    custom_resources,
    descheduling,
    devices,
    kueue,
    maintenance,
    other_schedulers,
    resources,
    storage,
    types,
)


class ResourceKind(Struct, frozen=True, kw_only=True):
    name: str
    plural: str = ""  # in lower case; derived from the name if it is regular
    group: str = ""
    former_groups: tuple[str, ...] = ()  # groups in which older API servers serve it
    versions: tuple[str, ...] = ("v1",)
    """In the order in which to request them; empty for any version that the server has."""
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()  # kubectl's short names, for kinds that a command accepts
    record: type[Struct] | None = None  # None if only the pod template is read
    template: tuple[str, ...] = ()  # the path of its pod template; empty if it creates no pods
    kept: type[Struct] | None = None  # other fields that its controller reads, besides record and template
    read_by: tuple[str, ...] = ()  # plugins whose verdict depends on it, the most affected first
    leaves: str = ""  # what is unknown without it; empty if no answer depends on it
    is_numerous: bool = False  # long lists are requested first, so that they do not finish last
    is_optional: bool = False
    """Whether an API server may lack it, because of its version or because it is not installed."""
    addon: str = ""
    """The project that installs it, if it is not Kubernetes. A missing kind is then reported only if a pod needs it."""
    only: tuple[str, ...] = ()  # `namespace/name` of the only objects to read, each with its own request
    selector: str = ""  # the field selector of its list
    also: tuple[str, ...] = ()  # names, in any namespace, that are also read from files but never requested
    mark: bytes = b""  # a text of objects of any name that are also read from files but never requested
    is_on_demand: bool = False  # whether only some commands list it, because scheduling does not need it
    is_subject: bool = False  # whether `kschedx why` explains such an object, although it creates no pods

    def __post_init__(self) -> None:
        if not self.plural:
            force_setattr(self, "plural", self.several.lower())

    @property
    def key(self) -> str:
        """The name in this table, in headers, and in documents: with the group if it is not a Kubernetes group."""
        return key_of(self.name, self.group)

    @property
    def several(self) -> str:
        """Several objects: `StorageClasses`."""
        regular = f"{self.name}es" if self.name.endswith(("s", "x", "z", "ch", "sh")) else f"{self.name}s"
        return re.sub("([^aeiou])ys$", r"\1ies", regular)

    @property
    def is_of_kubernetes(self) -> bool:
        """Whether every cluster may have it. Other kinds are reported only if something needs them."""
        return self.key == self.name and self.group not in _OF_OTHERS

    @property
    def resource(self) -> str:
        """The name in RBAC and `kubectl get`: `poddisruptionbudgets.policy`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The apiVersion for new manifests."""
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]

    def is_read(self, namespace: str, name: str, raw: Raw | None = None) -> bool:
        is_named = not self.only or f"{namespace}/{name}" in self.only or name in self.also
        return is_named or (raw is not None and bool(self.mark) and self.mark in bytes(raw))

    def read_values(self, namespace: str, name: str, values: Mapping[str, object]) -> dict[str, str]:
        """Return the values of a ConfigMap that are read: of one that is read for its mark, the marked ones."""
        texts = {key: text for key, text in values.items() if isinstance(text, str)}
        is_whole, mark = self.is_read(namespace, name), self.mark.decode()
        return {key: text for key, text in texts.items() if is_whole or mark in text}


_TOPOLOGY_GROUP = "topology.node.k8s.io"
_OF_OTHERS = frozenset({_TOPOLOGY_GROUP})
"""Groups with names like those of Kubernetes, which it does not serve."""
_SINCE_BETA = ("v1", "v1beta1")
_TEMPLATE = ("spec", "template")
_VOLUMES = ("VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions")
_SPREADING = ("PodTopologySpread",)

# What the kinds of one API group have in common.
_core = partial(ResourceKind, template=_TEMPLATE, kept=controllers.Controller)
_apps = partial(_core, group="apps")
_storage = partial(ResourceKind, group="storage.k8s.io", versions=_SINCE_BETA, is_namespaced=False)
_device = partial(
    ResourceKind, group="resource.k8s.io", versions=("v1", "v1beta2", "v1beta1"), is_optional=True,
    read_by=("DynamicResources",),
)  # fmt: skip
_plugin = partial(ResourceKind, group=other_schedulers.SCHEDULING_GROUP, versions=("v1alpha1",), is_optional=True)
_kueue = partial(
    ResourceKind, group=kueue.KUEUE_GROUP, versions=("v1beta2", "v1beta1", "v1"), is_optional=True, addon="Kueue"
)
_volcano = partial(
    ResourceKind, group="scheduling.volcano.sh", versions=("v1beta1",), is_optional=True, addon="Volcano"
)
_kai = partial(ResourceKind, group="scheduling.run.ai", is_optional=True, addon="KAI")
_koordinator = partial(ResourceKind, versions=("v1alpha1",), is_optional=True, addon="Koordinator")
_machines = partial(
    ResourceKind, group=autoscalers.CLUSTER_API_GROUP, versions=("v1beta2", "v1beta1"), is_optional=True,
    addon="Cluster API", leaves="the shape of a new node in a node group without nodes", is_subject=True,
)  # fmt: skip
_karpenter = partial(
    ResourceKind, group=autoscalers.KARPENTER_GROUP, versions=_SINCE_BETA, is_namespaced=False, is_optional=True,
    addon="Karpenter",
)  # fmt: skip
_metrics = partial(ResourceKind, group="metrics.k8s.io", versions=("v1beta1",), is_optional=True, is_on_demand=True)

_BUFFER_GROUP = "autoscaling.x-k8s.io"
_KOORDINATOR = "scheduling.koordinator.sh"
_OF_SIGS = "scheduling.sigs.k8s.io"
"""The group of Koordinator's PodGroups and ElasticQuotas, formerly of scheduler-plugins."""
_ROWS = (
    ResourceKind(
        name="Pod", short_names=("po",), is_numerous=True, record=types.Pod, kept=descheduling.PodDetails,
        leaves="what is free on the nodes",
    ),
    ResourceKind(
        name="Node", short_names=("no",), is_namespaced=False, is_numerous=True, record=types.Node,
        leaves="where a pod could go",
    ),
    ResourceKind(
        name="Namespace", short_names=("ns",), is_namespaced=False, record=types.Namespace,
        read_by=("InterPodAffinity",), leaves="which namespaces a namespaceSelector selects",
    ),
    ResourceKind(
        name="Scheduler", group="config.openshift.io", is_namespaced=False, is_optional=True,
        record=other_schedulers.OpenShiftScheduler, addon="OpenShift",
    ),
    ResourceKind(
        name="Service", short_names=("svc",), record=resources.Service, read_by=_SPREADING, is_subject=True,
        leaves="which pods default spreading counts",
    ),
    _core(
        name="ReplicationController", short_names=("rc",), record=types.ReplicationController, read_by=_SPREADING,
        leaves="which pods a ReplicationController spreads",
    ),
    _apps(
        name="ReplicaSet", former_groups=("extensions",), short_names=("rs",), is_numerous=True,
        record=types.ReplicaSet, read_by=_SPREADING, leaves="which pods a ReplicaSet spreads",
    ),
    _apps(
        name="StatefulSet", short_names=("sts",), record=types.StatefulSet, read_by=_SPREADING,
        leaves="which pods a StatefulSet spreads",
    ),
    _apps(name="Deployment", former_groups=("extensions",), short_names=("deploy",)),
    _apps(name="DaemonSet", former_groups=("extensions",), short_names=("ds",)),
    _core(name="Job", group="batch", is_numerous=True),
    ResourceKind(
        name="CronJob", group="batch", versions=_SINCE_BETA, short_names=("cj",),
        template=("spec", "jobTemplate", "spec", "template"), kept=controllers.CronJobController,
    ),
    ResourceKind(
        name="PersistentVolume", short_names=("pv",), is_namespaced=False, is_numerous=True,
        record=storage.PersistentVolume, read_by=_VOLUMES[:3], leaves="which volumes are available for claims",
        is_subject=True,
    ),
    ResourceKind(
        name="PersistentVolumeClaim", short_names=("pvc",), is_numerous=True, record=storage.PersistentVolumeClaim,
        read_by=_VOLUMES, leaves="what the pod's claims request", is_subject=True,
    ),
    _storage(
        name="StorageClass", short_names=("sc",), record=storage.StorageClass, read_by=("VolumeBinding",),
        leaves="how a claim is bound",
    ),
    _storage(
        name="VolumeAttributesClass", short_names=("vac",), is_optional=True, record=storage.VolumeAttributesClass,
    ),
    _storage(
        name="CSIDriver", record=storage.CSIDriver, read_by=("VolumeBinding", "NodeVolumeLimits"),
        leaves="what a volume's driver needs",
    ),
    _storage(
        name="CSIStorageCapacity", is_namespaced=True, record=storage.CSIStorageCapacity, read_by=("VolumeBinding",),
        leaves="the storage capacity for new volumes",
    ),
    _storage(
        name="CSINode", is_numerous=True, record=storage.CSINode, read_by=("NodeVolumeLimits",),
        leaves="the volume limit of a node",
    ),
    _storage(
        name="VolumeAttachment", is_numerous=True, record=storage.VolumeAttachment, read_by=("NodeVolumeLimits",),
        leaves="which volumes are attached",
    ),
    ResourceKind(
        name="HorizontalPodAutoscaler", short_names=("hpa",), group="autoscaling", versions=("v2", "v1"),
        record=autoscalers.HorizontalPodAutoscaler, is_subject=True,
    ),
    ResourceKind(
        name="VerticalPodAutoscaler", short_names=("vpa",), group="autoscaling.k8s.io", versions=("v1",),
        is_optional=True, record=autoscalers.VerticalPodAutoscaler, is_subject=True,
    ),
    ResourceKind(
        name="ScaledObject", short_names=("so",), group="keda.sh", versions=("v1alpha1",),
        is_optional=True, record=autoscalers.ScaledObject, addon="KEDA", is_subject=True,
    ),
    ResourceKind(
        name="PodDisruptionBudget", short_names=("pdb",), group="policy", versions=_SINCE_BETA,
        record=types.PodDisruptionBudget, read_by=("DefaultPreemption",),
        leaves="which pods PodDisruptionBudgets protect", is_subject=True,
    ),
    ResourceKind(
        name="PriorityClass", short_names=("pc",), group="scheduling.k8s.io", versions=_SINCE_BETA, is_namespaced=False,
        record=types.PriorityClass, read_by=("DefaultPreemption",),
        leaves="the priority of a manifest that names a class, or none",
    ),
    ResourceKind(
        name="LimitRange", short_names=("limits",), record=types.LimitRange,
        leaves="default requests of a manifest's containers",
    ),
    ResourceKind(
        name="Lease", group="coordination.k8s.io", record=resources.Lease,
        only=("kube-system/kube-controller-manager", "kube-system/kube-scheduler"),
    ),
    ResourceKind(
        name="ValidatingWebhookConfiguration", group="admissionregistration.k8s.io", is_namespaced=False,
        record=resources.ValidatingWebhookConfiguration,
    ),
    ResourceKind(name="ServiceAccount", short_names=("sa",), is_on_demand=True, record=types.ServiceAccount),
    ResourceKind(
        name="ResourceQuota", short_names=("quota",), record=resources.ResourceQuota,
        leaves="whether a ResourceQuota refuses a new pod", is_subject=True,
    ),
    ResourceKind(
        name="ClusterResourceQuota", group="quota.openshift.io", is_namespaced=False, is_optional=True,
        record=resources.ClusterResourceQuota, addon="OpenShift",
    ),
    ResourceKind(
        name="RuntimeClass", group="node.k8s.io", versions=_SINCE_BETA, is_namespaced=False, record=types.RuntimeClass,
        leaves="what a RuntimeClass adds to its pods",
    ),
    _device(
        name="ResourceSlice", is_namespaced=False, record=devices.ResourceSlice, leaves="which devices exist"
    ),
    _device(
        name="ResourceClaim", record=devices.ResourceClaim, leaves="which devices are allocated", is_subject=True
    ),
    _device(
        name="ResourceClaimTemplate", record=devices.ResourceClaimTemplate, leaves="what a new pod's claims request"
    ),
    _device(name="DeviceClass", is_namespaced=False, record=devices.DeviceClass, leaves="which devices a class has"),
    _device(
        name="DeviceTaintRule", versions=("v1beta2", "v1alpha3"), is_namespaced=False, record=devices.DeviceTaintRule,
        leaves="which devices are tainted",
    ),
    _device(
        name="ResourcePoolStatusRequest", versions=("v1alpha3",), is_namespaced=False, read_by=(),
        record=devices.ResourcePoolStatusRequest,
    ),
    ResourceKind(
        name="PodGroup", group="scheduling.k8s.io", versions=("v1", "v1beta1", "v1alpha3", "v1alpha2"),
        is_optional=True, record=types.PodGroup, read_by=("GangScheduling",), leaves="the pod's group",
    ),
    ResourceKind(
        name="Workload", group="scheduling.k8s.io", versions=("v1alpha1",), is_optional=True,
        record=types.GroupedWorkload, read_by=("GangScheduling",), leaves="the pod's group",
    ),
    ResourceKind(
        name="ConfigMap", short_names=("cm",), record=types.ConfigMap,
        only=(types.AUTOSCALER_STATUS, types.AUTOSCALER_PRIORITIES, kueue.MANAGER_CONFIG),
        also=(
            other_schedulers.QUEUES_OF_YUNIKORN,
            *(key.rpartition("/")[2] for key in (types.AUTOSCALER_STATUS, types.AUTOSCALER_PRIORITIES)),
            kueue.MANAGER_CONFIG.rpartition("/")[2],
        ),
        mark=types.SCHEDULER_CONFIGURATION.encode(),
    ),
    _plugin(name="PodGroup", record=other_schedulers.Gang, read_by=("Coscheduling",), leaves="the pod's group"),
    _plugin(
        name="ElasticQuota", record=other_schedulers.ElasticQuota, read_by=("CapacityScheduling",),
        leaves="which resources each namespace is guaranteed",
    ),
    _plugin(
        name="NodeResourceTopology", group=_TOPOLOGY_GROUP, versions=("v1alpha2",),
        is_namespaced=False, record=other_schedulers.NodeResourceTopology, read_by=("NodeResourceTopologyMatch",),
        leaves="what is free on each NUMA node",
    ),
    _kueue(name="Workload", record=kueue.Workload, leaves="the state of the pod's Workload in Kueue"),
    _kueue(name="LocalQueue", record=kueue.LocalQueue, leaves="the ClusterQueue of a LocalQueue"),
    _kueue(
        name="ClusterQueue", is_namespaced=False, record=kueue.ClusterQueue, leaves="the quota of Kueue's queues"
    ),
    _kueue(
        name="Cohort", versions=("v1beta2", "v1beta1", "v1", "v1alpha1"), is_namespaced=False, record=kueue.Cohort,
        leaves="how much Kueue's queues may borrow",
    ),
    _kueue(
        name="ResourceFlavor", is_namespaced=False, record=kueue.ResourceFlavor,
        leaves="which nodes Kueue's flavors select",
    ),
    _kueue(
        name="AdmissionCheck", is_namespaced=False, record=kueue.AdmissionCheck,
        leaves="which of Kueue's queues are active",
    ),
    _kueue(name="MultiKueueConfig", is_namespaced=False, record=kueue.MultiKueueConfig),
    _kueue(name="MultiKueueCluster", is_namespaced=False, record=kueue.MultiKueueCluster),
    _kueue(
        name="Topology", versions=("v1beta2", "v1beta1", "v1", "v1alpha1"), is_namespaced=False, record=kueue.Topology,
        leaves="how Kueue places pods in a topology",
    ),
    _volcano(
        name="PodGroup", record=other_schedulers.VolcanoPodGroup, leaves="the state of the pod's Volcano PodGroup"
    ),
    _volcano(
        name="Queue", is_namespaced=False, record=other_schedulers.VolcanoQueue,
        leaves="the state of the pod's Volcano queue",
    ),
    _kai(
        name="PodGroup", versions=("v2alpha2",), record=other_schedulers.KaiPodGroup,
        leaves="the state of the pod's KAI PodGroup",
    ),
    _kai(
        name="Queue", versions=("v2",), is_namespaced=False, record=other_schedulers.KaiQueue,
        leaves="the state of the pod's KAI queue",
    ),
    _koordinator(
        name="PodGroup", group=_OF_SIGS, record=other_schedulers.KoordinatorPodGroup,
        leaves="the state of the pod's Koordinator PodGroup",
    ),
    _koordinator(
        name="ElasticQuota", group=_OF_SIGS, record=other_schedulers.KoordinatorQuota,
        leaves="the state of the pod's Koordinator quota",
    ),
    _koordinator(
        name="Reservation", group=_KOORDINATOR, is_namespaced=False,
        record=other_schedulers.Reservation, leaves="what Koordinator reserves for a pod",
    ),
    _koordinator(
        name="PodMigrationJob", group=_KOORDINATOR, is_namespaced=False,
        record=other_schedulers.PodMigrationJob, leaves="whether Koordinator moves a pod",
    ),
    _machines(name="MachineDeployment", short_names=("md",), record=autoscalers.MachineDeployment),
    _machines(name="MachineSet", short_names=("ms",), record=autoscalers.MachineSet),
    _machines(name="MachinePool", short_names=("mp",), record=autoscalers.MachinePool),
    _machines(
        name="Machine", short_names=("ma",), record=autoscalers.Machine, leaves="why a machine has no node"
    ),
    _machines(
        name="MachineSet", group=autoscalers.OPENSHIFT_GROUP, versions=("v1beta1",),
        record=autoscalers.OpenShiftMachineSet,
    ),
    ResourceKind(
        name="Machine", group=autoscalers.OPENSHIFT_GROUP, versions=("v1beta1",), is_optional=True,
        record=autoscalers.OpenShiftMachine, addon="OpenShift", leaves="why a machine has no node", is_subject=True,
    ),
    ResourceKind(
        name="Plan", group=maintenance.UPGRADE_GROUP, is_optional=True, record=maintenance.UpgradePlan,
        addon="system-upgrade-controller", leaves="which nodes a Plan keeps cordoned",
    ),
    ResourceKind(
        name="NodeMaintenance", group=maintenance.MAINTENANCE_GROUP,
        former_groups=(maintenance.FORMER_MAINTENANCE_GROUP,), versions=("v1beta1",), is_namespaced=False,
        is_optional=True, record=maintenance.NodeMaintenance, addon="Node Maintenance Operator",
        leaves="which nodes are under maintenance",
    ),
    _karpenter(
        name="NodePool", record=autoscalers.NodePool, leaves="which nodes Karpenter may add", is_subject=True
    ),
    _karpenter(
        name="NodeClaim", is_numerous=True, record=autoscalers.NodeClaim, leaves="which nodes Karpenter is launching",
        is_subject=True,
    ),
    _karpenter(
        name="NodeOverlay", versions=("v1alpha1",), record=autoscalers.NodeOverlay,
        leaves="how NodeOverlays change instance types",
    ),
    _karpenter(
        name="CapacityBuffer", group=_BUFFER_GROUP, versions=("v1beta1", "v1alpha1"), is_namespaced=True,
        record=autoscalers.CapacityBuffer, leaves="which capacity Karpenter keeps free",
    ),
    ResourceKind(
        name="ProvisioningRequest", group=_BUFFER_GROUP, versions=_SINCE_BETA, is_optional=True,
        record=autoscalers.ProvisioningRequest, addon="cluster-autoscaler",
        leaves="whether ProvisioningRequests are provisioned",
    ),
    ResourceKind(
        name="ComputeClass", group="cloud.google.com", is_namespaced=False, is_optional=True,
        record=autoscalers.ComputeClass, addon="GKE", leaves="which classes of machines GKE creates",
    ),
    ResourceKind(name="PodTemplate", is_optional=True, record=types.PodTemplate, addon="Karpenter"),
    _karpenter(
        name="EC2NodeClass", group=autoscalers.AWS, record=autoscalers.EC2NodeClass,
        leaves="which zones its subnets are in",
    ),
    _karpenter(
        name="AKSNodeClass", group=autoscalers.AZURE, versions=("v1beta1", "v1alpha2"),
        record=autoscalers.AKSNodeClass, leaves="whether it can be used",
    ),
    _karpenter(
        name="GCENodeClass", group=autoscalers.GCP, versions=("v1alpha1",), record=autoscalers.GCENodeClass,
        leaves="whether it can be used",
    ),
    _metrics(name="NodeMetrics", plural="nodes", is_namespaced=False, record=descheduling.NodeMetrics),
    _metrics(name="PodMetrics", plural="pods", record=descheduling.PodMetrics),
)  # fmt: skip

_OTHERS: Mapping[str, frozenset[str]] = {
    "": frozenset({
        "Binding", "ComponentStatus", "Endpoints", "Event", "ResourceQuota", "Secret",
    }),
    "apps": frozenset({"ControllerRevision"}),
    "autoscaling": frozenset({"Scale"}),
    "batch": frozenset(),
    "policy": frozenset({"Eviction", "PodSecurityPolicy"}),
}  # fmt: skip
"""The other kinds of stable Kubernetes groups; scheduling reads none of them."""


def key_of(name: str, group: str) -> str:
    """Return `Node` or `NodePool.karpenter.sh` for any kind, read or not."""
    is_others = group.endswith((".x-k8s.io", ".sigs.k8s.io"))
    is_kubernetes = group in _OTHERS or (group.endswith(".k8s.io") and not is_others)
    return name if is_kubernetes else f"{name}.{group}"


KINDS: Mapping[str, ResourceKind] = {kind.key: kind for kind in _ROWS}  # the most important kinds first
_WITHOUT_NAMESPACE = frozenset({
    "APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
    "IngressClass", "MutatingWebhookConfiguration", "PodSecurityPolicy", "VolumeAttachment",
})  # fmt: skip
"""Kinds of Kubernetes that are not read and whose objects are in no namespace."""


def has_namespace(kind: str) -> bool:
    """Whether objects of a kind of Kubernetes are in a namespace. Kinds of other projects count as if they were."""
    return KINDS[kind].is_namespaced if kind in KINDS else kind not in _WITHOUT_NAMESPACE


_ROUTINE = (
    "BackOff", "Completed", "Created", "Killing", "NodeHasSufficientMemory", "Pulled", "Pulling", "ScalingReplicaSet",
    "Scheduled", "Started", "SuccessfulAttachVolume", "SuccessfulCreate", "SuccessfulDelete", "SuccessfulRescale",
)  # fmt: skip
"""The most frequent reasons of events from which no answer quotes."""
EVENTS = ResourceKind(
    name="Event", is_numerous=True, selector=",".join(f"reason!={reason}" for reason in _ROUTINE),
    leaves="what controllers, autoscalers, and kubelets report",
)  # fmt: skip
_CUSTOM_KINDS = tuple(
    ResourceKind(
        name=name, group=group, versions=(), is_optional=True, leaves=f"the pods of a {name}",
    )
    for group, name in custom_resources.KINDS
)  # fmt: skip
"""Custom resources that create pods. A live cluster is asked for those that it serves."""
READ_LIVE: Mapping[str, ResourceKind] = {**KINDS, **{kind.key: kind for kind in (EVENTS, *_CUSTOM_KINDS)}}
"""What a live cluster is asked for. No verdict depends on the kinds that are not in `KINDS`."""
_BY_GROUP: Mapping[tuple[str, str], ResourceKind] = {
    (group, kind.name): kind for kind in _ROWS for group in (kind.group, *kind.former_groups)
}


_BY_NAME: Mapping[str, ResourceKind] = {kind.name: kind for kind in reversed(_ROWS)}


def api_version_of(name: str) -> str:
    """Return the API version of the most important kind of this name; empty if none is read."""
    return _BY_NAME[name].api_version if name in _BY_NAME else ""


def kind_of(name: str, group: str) -> ResourceKind | None:
    """Return the row of a kind. The same name in another group is a different kind. None if it is not read."""
    return _BY_GROUP.get((group, name))


def refuse_unknown(name: str, group: str, message: str = "") -> None:
    """Raise `InputError` for a kind that does not exist in a Kubernetes group. Other groups may have any kind.
    `message` is that of a `Status`, with which the API server answers a request that fails."""
    if group not in _OTHERS or kind_of(name, group) or name in _OTHERS[group]:
        return
    if (group, name) == ("", "Status"):
        report = f": {message}" if message else "; its message names the reason"
        raise InputError(f"this is an error of the API server{report}", place=Place(object="Status"))
    named = f"apiVersion {group}/v1" if group else "apiVersion v1"
    known = KINDS.get(name)
    if known is not None:
        hint = f"{name} is in {known.group}/{known.versions[0]}" if known.group else f"{name} is in v1"
    else:
        hint = nearest(name, [kind.name for kind in _ROWS if kind.group == group])
        if not hint and (near := closest(name, _BY_NAME)):
            hint = f'did you mean "{near}" of {api_version_of(near)}?'
    raise InputError(f'there is no "{name}" in {named}', place=Place(field="kind"), hint=hint)


# --- objects by the record of their kind

Objects = Mapping[type[Struct], Sequence[Struct]]
R = TypeVar("R", bound=Struct)


def objects_of(objects: Objects, record: type[R]) -> tuple[R, ...]:
    return cast("tuple[R, ...]", tuple(objects.get(record, ())))  # the key is the type of its objects


def metadata_of(struct: Struct) -> types.ObjectMeta:
    metadata = getattr(struct, "metadata", None)
    assert isinstance(metadata, types.ObjectMeta), "every object has metadata"
    return metadata


def name_of(struct: Struct) -> tuple[str, str]:
    """Return namespace and name; the namespace is empty for cluster-scoped kinds."""
    metadata = metadata_of(struct)
    return metadata.namespace, metadata.name
