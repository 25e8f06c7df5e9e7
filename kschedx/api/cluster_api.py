"""Machines of Cluster API and OpenShift: what cluster-autoscaler reads of the objects that it resizes.

Upstream: cloudprovider/clusterapi of kubernetes/autoscaler.
"""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.types import Labels, ObjectMeta, Taint

GROUP = "cluster.x-k8s.io"
OPENSHIFT_GROUP = "machine.openshift.io"

_CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
CPU, MEMORY, DISK = f"{_CAPACITY}cpu", f"{_CAPACITY}memory", f"{_CAPACITY}ephemeral-disk"
GPU_TYPE, GPU_COUNT, MAX_PODS = f"{_CAPACITY}gpu-type", f"{_CAPACITY}gpu-count", f"{_CAPACITY}maxPods"
LABELS = f"{_CAPACITY}labels"
"""`key=value,key=value`."""
TAINTS = f"{_CAPACITY}taints"
"""`key=value:effect,key:effect`."""
ANNOTATIONS = (CPU, MEMORY, DISK, GPU_TYPE, GPU_COUNT, MAX_PODS, LABELS, TAINTS)


class MachineMeta(Struct, frozen=True, kw_only=True):
    labels: Labels = {}


class MachineSpec(Struct, frozen=True, kw_only=True):
    metadata: MachineMeta = MachineMeta()
    """What the machine's node gets, of OpenShift's; of Cluster API, the labels of some domains alone."""
    taints: tuple[Taint, ...] = ()


class MachineTemplate(Struct, frozen=True, kw_only=True):
    spec: MachineSpec = MachineSpec()


class ScalableSpec(Struct, frozen=True, kw_only=True):
    template: MachineTemplate = MachineTemplate()


class Scalable(Struct, frozen=True, kw_only=True):
    """Something that makes machines, and says what one of them has to offer."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScalableSpec = ScalableSpec()


class MachineDeployment(Scalable, frozen=True, kw_only=True):
    pass


class MachineSet(Scalable, frozen=True, kw_only=True):
    pass


class MachinePool(Scalable, frozen=True, kw_only=True):
    pass


class OpenShiftMachineSet(Scalable, frozen=True, kw_only=True):
    pass


RECORDS: dict[str, tuple[type[Scalable], ...]] = {
    "MachineDeployment": (MachineDeployment,),
    "MachineSet": (MachineSet, OpenShiftMachineSet),
    "MachinePool": (MachinePool,),
}
"""By the kind, which is a part of a group's name: `MachineSet/namespace/name`."""
