"""The kinds that kschedx reads, one row each: their API, the decoded record, and what needs them.

File readers, live lists, snapshots, the anonymizer, doctor, and the notes about missing kinds all use this table. A new
kind needs a new row, an entry in README.md's ClusterRole, and the wording for `leaves`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from kschedx.errors import InputError, Place, nearest
from kschedx.kube import (
    autoscalers,
    controllers,
    custom_resources,
    descheduling,
    devices,
    kueue,
    other_schedulers,
    resources,
    storage,
    types,
)


class ResourceKind(Struct, frozen=True, kw_only=True):
    name: str
    plural: str = ""
    """In lower case; derived from the name if it is regular."""
    group: str = ""
    former_groups: tuple[str, ...] = ()
    """Groups in which older API servers serve it."""
    versions: tuple[str, ...] = ("v1",)
    """In the order in which to request them; empty for any version that the server has."""
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    """kubectl's short names, for kinds that a command accepts."""
    record: type[Struct] | None = None
    """None if only the pod template is read."""
    template: tuple[str, ...] = ()
    """The path of its pod template; empty if it creates no pods."""
    kept: type[Struct] | None = None
    """Other fields that its controller reads, besides record and template."""
    read_by: tuple[str, ...] = ()
    """Plugins whose verdict depends on it, the most affected first."""
    leaves: str = ""
    """What is unknown without it; empty if no answer depends on it."""
    is_numerous: bool = False
    """Long lists are requested first, so that they do not finish last."""
    is_optional: bool = False
    """Whether an API server may lack it, because of its version or because it is not installed."""
    addon: str = ""
    """The project that installs it, if it is not Kubernetes. A missing kind is then reported only if a pod needs it."""
    only: tuple[str, ...] = ()
    """`namespace/name` of the only objects to read, each with its own request."""
    selector: str = ""
    """The field selector of its list."""
    also: tuple[str, ...] = ()
    """Names, in any namespace, that are also read from files but never requested."""
    is_on_demand: bool = False
    """Whether only some commands list it, because scheduling does not need it."""

    def __post_init__(self) -> None:
        if not self.plural:
            name = self.name.lower()
            regular = f"{name}es" if name.endswith("s") else f"{name}s"
            force_setattr(self, "plural", re.sub("([^aeiou])ys$", r"\1ies", regular))

    @property
    def key(self) -> str:
        """The name in this table, in headers, and in documents: with the group if it is not a Kubernetes group."""
        return key_of(self.name, self.group)

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

    def is_read(self, namespace: str, name: str) -> bool:
        return not self.only or f"{namespace}/{name}" in self.only or name in self.also


_OF_OTHERS = frozenset({other_schedulers.TOPOLOGY_GROUP})
"""Groups with names like those of Kubernetes, which it does not serve."""
_STORAGE = "storage.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_DEVICES = "resource.k8s.io"
_OF_DEVICES = ("v1", "v1beta2", "v1beta1")
_SINCE_BETA = ("v1", "v1beta1")
_TEMPLATE = ("spec", "template")
_FORMER = ("extensions",)
_VOLUMES = ("VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions")
_SPREADING = ("PodTopologySpread",)
_CLAIMED = ("DynamicResources",)

_OF_KUEUE = ("v1beta2", "v1beta1", "v1")


def _scalable(name: str, group: str, versions: tuple[str, ...], record: type[Struct]) -> ResourceKind:
    """A kind whose machines cluster-autoscaler adds and removes."""
    return ResourceKind(
        name=name, group=group, versions=versions, is_optional=True, record=record,
        addon="Cluster API", leaves="the shape of a new node in a node group without nodes",
    )  # fmt: skip


_OF_CLUSTER_API = ("v1beta2", "v1beta1")

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
        name="Service", short_names=("svc",), record=types.Service, read_by=_SPREADING,
        leaves="which pods default spreading counts",
    ),
    ResourceKind(
        name="ReplicationController", short_names=("rc",), record=types.ReplicationController, template=_TEMPLATE,
        kept=controllers.Controller, read_by=_SPREADING, leaves="which pods a ReplicationController spreads",
    ),
    ResourceKind(
        name="ReplicaSet", group="apps", former_groups=_FORMER, short_names=("rs",), is_numerous=True,
        record=types.ReplicaSet, template=_TEMPLATE, kept=controllers.Controller, read_by=_SPREADING,
        leaves="which pods a ReplicaSet spreads",
    ),
    ResourceKind(
        name="StatefulSet", group="apps", short_names=("sts",), record=types.StatefulSet, template=_TEMPLATE,
        kept=controllers.Controller, read_by=_SPREADING, leaves="which pods a StatefulSet spreads",
    ),
    ResourceKind(
        name="Deployment", group="apps", former_groups=_FORMER, short_names=("deploy",), template=_TEMPLATE,
        kept=controllers.Controller,
    ),
    ResourceKind(
        name="DaemonSet", group="apps", former_groups=_FORMER, short_names=("ds",), template=_TEMPLATE,
        kept=controllers.Controller,
    ),
    ResourceKind(name="Job", group="batch", template=_TEMPLATE, kept=controllers.Controller, is_numerous=True),
    ResourceKind(
        name="CronJob", group="batch", versions=_SINCE_BETA, short_names=("cj",),
        template=("spec", "jobTemplate", "spec", "template"), kept=controllers.CronJobController,
    ),
    ResourceKind(
        name="PersistentVolume", short_names=("pv",), is_namespaced=False, is_numerous=True,
        record=storage.PersistentVolume, read_by=_VOLUMES[:3], leaves="which volumes are available for claims",
    ),
    ResourceKind(
        name="PersistentVolumeClaim", short_names=("pvc",), is_numerous=True, record=storage.PersistentVolumeClaim,
        read_by=_VOLUMES, leaves="what the pod's claims request",
    ),
    ResourceKind(
        name="StorageClass", short_names=("sc",), group=_STORAGE, versions=_SINCE_BETA, is_namespaced=False,
        record=storage.StorageClass, read_by=("VolumeBinding",), leaves="how a claim is bound",
    ),
    ResourceKind(
        name="CSIDriver", group=_STORAGE, versions=_SINCE_BETA, is_namespaced=False, record=storage.CSIDriver,
        read_by=("VolumeBinding", "NodeVolumeLimits"), leaves="what a volume's driver needs",
    ),
    ResourceKind(
        name="CSIStorageCapacity", group=_STORAGE, versions=_SINCE_BETA, record=storage.CSIStorageCapacity,
        read_by=("VolumeBinding",), leaves="the storage capacity for new volumes",
    ),
    ResourceKind(
        name="CSINode", group=_STORAGE, versions=_SINCE_BETA, is_namespaced=False, is_numerous=True,
        record=storage.CSINode, read_by=("NodeVolumeLimits",), leaves="the volume limit of a node",
    ),
    ResourceKind(
        name="VolumeAttachment", group=_STORAGE, versions=_SINCE_BETA, is_namespaced=False, is_numerous=True,
        record=storage.VolumeAttachment, read_by=("NodeVolumeLimits",), leaves="which volumes are attached",
    ),
    ResourceKind(
        name="HorizontalPodAutoscaler", short_names=("hpa",), group="autoscaling", versions=("v2", "v1"),
        record=autoscalers.HorizontalPodAutoscaler,
    ),
    ResourceKind(
        name="ScaledObject", short_names=("so",), group=autoscalers.KEDA_GROUP, versions=("v1alpha1",),
        is_optional=True, record=autoscalers.ScaledObject, addon="KEDA",
    ),
    ResourceKind(
        name="PodDisruptionBudget", short_names=("pdb",), group="policy", versions=_SINCE_BETA,
        record=types.PodDisruptionBudget, read_by=("DefaultPreemption",),
        leaves="which pods PodDisruptionBudgets protect",
    ),
    ResourceKind(
        name="PriorityClass", short_names=("pc",), group=_SCHEDULING, versions=_SINCE_BETA, is_namespaced=False,
        record=types.PriorityClass, read_by=("DefaultPreemption",),
        leaves="the priority of a manifest that names a class, or none",
    ),
    ResourceKind(
        name="LimitRange", short_names=("limits",), record=types.LimitRange,
        leaves="default requests of a manifest's containers",
    ),
    ResourceKind(name="ServiceAccount", short_names=("sa",), is_on_demand=True, record=types.ServiceAccount),
    ResourceKind(
        name="ResourceQuota", short_names=("quota",), record=resources.ResourceQuota,
        leaves="whether a ResourceQuota refuses a new pod",
    ),
    ResourceKind(
        name="RuntimeClass", group="node.k8s.io", versions=_SINCE_BETA, is_namespaced=False, record=types.RuntimeClass,
        leaves="what a RuntimeClass adds to its pods",
    ),
    ResourceKind(
        name="ResourceSlice", group=_DEVICES, versions=_OF_DEVICES, is_namespaced=False, is_optional=True,
        record=devices.ResourceSlice, read_by=_CLAIMED, leaves="which devices exist",
    ),
    ResourceKind(
        name="ResourceClaim", group=_DEVICES, versions=_OF_DEVICES, is_optional=True, record=devices.ResourceClaim,
        read_by=_CLAIMED, leaves="which devices are allocated",
    ),
    ResourceKind(
        name="ResourceClaimTemplate", group=_DEVICES, versions=_OF_DEVICES, is_optional=True,
        record=devices.ResourceClaimTemplate, read_by=_CLAIMED, leaves="what a new pod's claims request",
    ),
    ResourceKind(
        name="DeviceClass", group=_DEVICES, versions=_OF_DEVICES, is_namespaced=False, is_optional=True,
        record=devices.DeviceClass, read_by=_CLAIMED, leaves="which devices a class has",
    ),
    ResourceKind(
        name="DeviceTaintRule", group=_DEVICES, versions=("v1beta2", "v1alpha3"), is_namespaced=False, is_optional=True,
        record=devices.DeviceTaintRule, read_by=_CLAIMED, leaves="which devices are tainted",
    ),
    ResourceKind(
        name="ResourcePoolStatusRequest", group=_DEVICES, versions=("v1alpha3",), is_namespaced=False, is_optional=True,
        record=devices.ResourcePoolStatusRequest,
    ),
    ResourceKind(
        name="PodGroup", group=_SCHEDULING, versions=("v1", "v1beta1", "v1alpha3", "v1alpha2"), is_optional=True,
        record=types.PodGroup, read_by=("GangScheduling",), leaves="the pod's group",
    ),
    ResourceKind(
        name="Workload", group=_SCHEDULING, versions=("v1alpha1",), is_optional=True, record=types.GroupedWorkload,
        read_by=("GangScheduling",), leaves="the pod's group",
    ),
    ResourceKind(
        name="ConfigMap", short_names=("cm",), record=types.ConfigMap,
        only=(types.AUTOSCALER_STATUS, types.AUTOSCALER_PRIORITIES, kueue.MANAGER_CONFIG),
        also=(
            other_schedulers.QUEUES_OF_YUNIKORN,
            *(key.rpartition("/")[2] for key in (types.AUTOSCALER_STATUS, types.AUTOSCALER_PRIORITIES)),
            kueue.MANAGER_CONFIG.rpartition("/")[2],
        ),
    ),
    ResourceKind(
        name="PodGroup", group=other_schedulers.SCHEDULING_GROUP, versions=("v1alpha1",), is_optional=True,
        record=other_schedulers.Gang, read_by=("Coscheduling",), leaves="the pod's group",
    ),
    ResourceKind(
        name="ElasticQuota", group=other_schedulers.SCHEDULING_GROUP, versions=("v1alpha1",), is_optional=True,
        record=other_schedulers.ElasticQuota, read_by=("CapacityScheduling",),
        leaves="which resources each namespace is guaranteed",
    ),
    ResourceKind(
        name="NodeResourceTopology", group=other_schedulers.TOPOLOGY_GROUP, versions=("v1alpha2",),
        is_namespaced=False, is_optional=True, record=other_schedulers.NodeResourceTopology,
        read_by=("NodeResourceTopologyMatch",), leaves="what is free on each NUMA node",
    ),
    ResourceKind(
        name="Workload", group=kueue.KUEUE_GROUP, versions=_OF_KUEUE, is_optional=True, record=kueue.Workload,
        addon="Kueue", leaves="the state of the pod's Workload in Kueue",
    ),
    ResourceKind(
        name="LocalQueue", group=kueue.KUEUE_GROUP, versions=_OF_KUEUE, is_optional=True, record=kueue.LocalQueue,
        addon="Kueue", leaves="the ClusterQueue of a LocalQueue",
    ),
    ResourceKind(
        name="ClusterQueue", group=kueue.KUEUE_GROUP, versions=_OF_KUEUE, is_namespaced=False, is_optional=True,
        record=kueue.ClusterQueue, addon="Kueue", leaves="the quota of Kueue's queues",
    ),
    ResourceKind(
        name="Cohort", group=kueue.KUEUE_GROUP, versions=(*_OF_KUEUE, "v1alpha1"), is_namespaced=False,
        is_optional=True, record=kueue.Cohort, addon="Kueue", leaves="how much Kueue's queues may borrow",
    ),
    ResourceKind(
        name="ResourceFlavor", group=kueue.KUEUE_GROUP, versions=_OF_KUEUE, is_namespaced=False, is_optional=True,
        record=kueue.ResourceFlavor, addon="Kueue", leaves="which nodes Kueue's flavors select",
    ),
    ResourceKind(
        name="AdmissionCheck", group=kueue.KUEUE_GROUP, versions=_OF_KUEUE, is_namespaced=False, is_optional=True,
        record=kueue.AdmissionCheck, addon="Kueue", leaves="which of Kueue's queues are active",
    ),
    ResourceKind(
        name="Topology", group=kueue.KUEUE_GROUP, versions=(*_OF_KUEUE, "v1alpha1"), is_namespaced=False,
        is_optional=True, record=kueue.Topology, addon="Kueue", leaves="how Kueue places pods in a topology",
    ),
    ResourceKind(
        name="PodGroup", group=other_schedulers.VOLCANO, versions=("v1beta1",), is_optional=True,
        record=other_schedulers.VolcanoPodGroup, addon="Volcano", leaves="the state of the pod's Volcano PodGroup",
    ),
    ResourceKind(
        name="Queue", group=other_schedulers.VOLCANO, versions=("v1beta1",), is_namespaced=False, is_optional=True,
        record=other_schedulers.VolcanoQueue, addon="Volcano", leaves="the state of the pod's Volcano queue",
    ),
    ResourceKind(
        name="PodGroup", group=other_schedulers.KAI, versions=("v2alpha2",), is_optional=True,
        record=other_schedulers.KaiPodGroup, addon="KAI", leaves="the state of the pod's KAI PodGroup",
    ),
    ResourceKind(
        name="Queue", group=other_schedulers.KAI, versions=("v2",), is_namespaced=False, is_optional=True,
        record=other_schedulers.KaiQueue, addon="KAI", leaves="the state of the pod's KAI queue",
    ),
    ResourceKind(
        name="PodGroup", group=other_schedulers.OF_SIGS, versions=("v1alpha1",), is_optional=True,
        record=other_schedulers.KoordinatorPodGroup, addon="Koordinator",
        leaves="the state of the pod's Koordinator PodGroup",
    ),
    ResourceKind(
        name="ElasticQuota", group=other_schedulers.OF_SIGS, versions=("v1alpha1",), is_optional=True,
        record=other_schedulers.KoordinatorQuota, addon="Koordinator",
        leaves="the state of the pod's Koordinator quota",
    ),
    ResourceKind(
        name="Reservation", group=other_schedulers.KOORDINATOR, versions=("v1alpha1",), is_namespaced=False,
        is_optional=True, record=other_schedulers.Reservation, addon="Koordinator",
        leaves="what Koordinator reserves for a pod",
    ),
    ResourceKind(
        name="PodMigrationJob", group=other_schedulers.KOORDINATOR, versions=("v1alpha1",), is_namespaced=False,
        is_optional=True, record=other_schedulers.PodMigrationJob, addon="Koordinator",
        leaves="whether Koordinator moves a pod",
    ),
    _scalable("MachineDeployment", autoscalers.CLUSTER_API_GROUP, _OF_CLUSTER_API, autoscalers.MachineDeployment),
    _scalable("MachineSet", autoscalers.CLUSTER_API_GROUP, _OF_CLUSTER_API, autoscalers.MachineSet),
    _scalable("MachinePool", autoscalers.CLUSTER_API_GROUP, _OF_CLUSTER_API, autoscalers.MachinePool),
    _scalable("MachineSet", autoscalers.OPENSHIFT_GROUP, ("v1beta1",), autoscalers.OpenShiftMachineSet),
    ResourceKind(
        name="Machine", group=autoscalers.OPENSHIFT_GROUP, versions=("v1beta1",), is_optional=True,
        record=autoscalers.OpenShiftMachine, addon="OpenShift", leaves="why a machine has no node",
    ),
    ResourceKind(
        name="NodePool", group=autoscalers.KARPENTER_GROUP, versions=_SINCE_BETA, is_namespaced=False, is_optional=True,
        record=autoscalers.NodePool, addon="Karpenter", leaves="which nodes Karpenter may add",
    ),
    ResourceKind(
        name="NodeClaim", group=autoscalers.KARPENTER_GROUP, versions=_SINCE_BETA, is_namespaced=False,
        is_optional=True, is_numerous=True, record=autoscalers.NodeClaim, addon="Karpenter",
        leaves="which nodes Karpenter is launching",
    ),
    ResourceKind(
        name="NodeOverlay", group=autoscalers.KARPENTER_GROUP, versions=("v1alpha1",), is_namespaced=False,
        is_optional=True, record=autoscalers.NodeOverlay, addon="Karpenter",
        leaves="how NodeOverlays change instance types",
    ),
    ResourceKind(
        name="CapacityBuffer", group=autoscalers.BUFFER_GROUP, versions=("v1beta1", "v1alpha1"), is_optional=True,
        record=autoscalers.CapacityBuffer, addon="Karpenter", leaves="which capacity Karpenter keeps free",
    ),
    ResourceKind(name="PodTemplate", is_optional=True, record=types.PodTemplate, addon="Karpenter"),
    ResourceKind(
        name="EC2NodeClass", group=autoscalers.AWS, versions=_SINCE_BETA, is_namespaced=False, is_optional=True,
        record=autoscalers.EC2NodeClass, addon="Karpenter", leaves="which zones its subnets are in",
    ),
    ResourceKind(
        name="AKSNodeClass", group=autoscalers.AZURE, versions=("v1beta1", "v1alpha2"), is_namespaced=False,
        is_optional=True, record=autoscalers.AKSNodeClass, addon="Karpenter", leaves="whether it can be used",
    ),
    ResourceKind(
        name="GCENodeClass", group=autoscalers.GCP, versions=("v1alpha1",), is_namespaced=False, is_optional=True,
        record=autoscalers.GCENodeClass, addon="Karpenter", leaves="whether it can be used",
    ),
    ResourceKind(
        name="NodeMetrics", plural="nodes", group=descheduling.METRICS_GROUP, versions=("v1beta1",),
        is_namespaced=False, is_optional=True, is_on_demand=True, record=descheduling.NodeMetrics,
    ),
    ResourceKind(
        name="PodMetrics", plural="pods", group=descheduling.METRICS_GROUP, versions=("v1beta1",), is_optional=True,
        is_on_demand=True, record=descheduling.PodMetrics,
    ),
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


KINDS: Mapping[str, ResourceKind] = {kind.key: kind for kind in _ROWS}
"""The most important kinds first."""
_ROUTINE = (
    "BackOff", "Completed", "Created", "Killing", "NodeHasSufficientMemory", "Pulled", "Pulling", "ScalingReplicaSet",
    "Scheduled", "Started", "SuccessfulAttachVolume", "SuccessfulCreate", "SuccessfulDelete", "SuccessfulRescale",
)  # fmt: skip
"""The most frequent reasons of events from which no answer quotes."""
EVENTS = ResourceKind(
    name="Event", is_numerous=True, selector=",".join(f"reason!={reason}" for reason in _ROUTINE),
    leaves="what controllers, autoscalers, and kubelets report",
)  # fmt: skip
CUSTOM_KINDS = tuple(
    ResourceKind(
        name=name, group=group, versions=(), is_optional=True, leaves=f"the pods of a {name}",
        plural="elasticsearches" if name == "Elasticsearch" else "",
    )
    for group, name in custom_resources.KINDS
)  # fmt: skip
"""Custom resources that create pods. A live cluster is asked for those that it serves."""
READ_LIVE: Mapping[str, ResourceKind] = {**KINDS, **{kind.key: kind for kind in (EVENTS, *CUSTOM_KINDS)}}
"""What a live cluster is asked for. No verdict depends on the kinds that are not in `KINDS`."""
_BY_GROUP: Mapping[tuple[str, str], ResourceKind] = {
    (group, kind.name): kind for kind in _ROWS for group in (kind.group, *kind.former_groups)
}


def kind_of(name: str, group: str) -> ResourceKind | None:
    """Return the row of a kind. The same name in another group is a different kind. None if it is not read."""
    return _BY_GROUP.get((group, name))


def refuse_unknown(name: str, group: str) -> None:
    """Raise `InputError` for a kind that does not exist in a Kubernetes group. Other groups may have any kind."""
    if group not in _OTHERS or kind_of(name, group) or name in _OTHERS[group]:
        return
    named = f"apiVersion {group}/v1" if group else "apiVersion v1"
    known = KINDS.get(name)
    if known is not None:
        hint = f"{name} is in {known.group}/{known.versions[0]}" if known.group else f"{name} is in v1"
    elif (group, name) == ("", "Status"):
        hint = "this is an error of the API server; its message names the reason"
    else:
        hint = nearest(name, [kind.name for kind in _ROWS if kind.group == group])
    raise InputError(f'there is no "{name}" in {named}', place=Place(field="kind"), hint=hint)


# --- objects by the record of their kind

Objects = Mapping[type[Struct], Sequence[Struct]]
R = TypeVar("R", bound=Struct)


def objects_of(objects: Objects, record: type[R]) -> tuple[R, ...]:
    return tuple(item for item in objects.get(record, ()) if isinstance(item, record))


def metadata_of(struct: Struct) -> types.ObjectMeta:
    metadata = getattr(struct, "metadata", None)
    assert isinstance(metadata, types.ObjectMeta), "every object has metadata"
    return metadata


def name_of(struct: Struct) -> tuple[str, str]:
    """Return namespace and name; the namespace is empty for cluster-scoped kinds."""
    metadata = metadata_of(struct)
    return metadata.namespace, metadata.name
