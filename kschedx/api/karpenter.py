"""Karpenter's objects, as far as they say what it would do (apis/v1 of kubernetes-sigs/karpenter, and v1beta1).

Node classes belong to the clouds: of them the conditions count, and where their subnets are.
"""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.api.integers import Int32, Int64
from kschedx.api.quantity import ResourceList
from kschedx.api.types import Labels, NodeCondition, ObjectMeta, Taint

GROUP = "karpenter.sh"
AWS = "karpenter.k8s.aws"
AZURE = "karpenter.azure.com"
GCP = "karpenter.k8s.gcp"

NODE_POOL = f"{GROUP}/nodepool"
"""The label that names a node's pool."""
CAPACITY_TYPE = f"{GROUP}/capacity-type"
REGISTERED = f"{GROUP}/registered"
INITIALIZED = f"{GROUP}/initialized"


class NodeSelectorRequirementWithMinValues(Struct, frozen=True, kw_only=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: Int32 | None = None


class NodeClassReference(Struct, frozen=True, kw_only=True, rename="camel"):
    group: str = ""
    kind: str = ""
    name: str = ""
    api_version: str = ""
    """In v1beta1, which has no group."""

    @property
    def api_group(self) -> str:
        return self.group or self.api_version.rpartition("/")[0]


class NodeClaimTemplateSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[NodeSelectorRequirementWithMinValues, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()
    termination_grace_period: str | None = None
    expire_after: str | None = None


class TemplateMeta(Struct, frozen=True, kw_only=True):
    labels: Labels = {}


class NodeClaimTemplate(Struct, frozen=True, kw_only=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: NodeClaimTemplateSpec = NodeClaimTemplateSpec()


class Budget(Struct, frozen=True, kw_only=True):
    """How many nodes of a pool may go at once."""

    reasons: tuple[str, ...] | None = None
    """None for all."""
    nodes: str = "10%"
    schedule: str | None = None
    duration: str | None = None


class Disruption(Struct, frozen=True, kw_only=True, rename="camel"):
    consolidate_after: str | None = None
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    budgets: tuple[Budget, ...] = (Budget(),)


class NodePoolSpec(Struct, frozen=True, kw_only=True):
    template: NodeClaimTemplate = NodeClaimTemplate()
    disruption: Disruption = Disruption()
    limits: ResourceList = {}
    weight: Int32 | None = None
    replicas: Int64 | None = None
    """A pool of a fixed size, which no pod makes grow."""


class NodePoolStatus(Struct, frozen=True, kw_only=True):
    resources: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()


class NodePool(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def not_ready(self) -> NodeCondition | None:
        """The condition that keeps Karpenter from using it; None where it is ready. One that nobody has looked at yet
        is not, but a manifest that no API server has stored is taken to become so."""
        ready = condition(self.status.conditions, "Ready")
        is_stored = bool(self.metadata.uid or self.metadata.creation_timestamp or self.status.conditions)
        if (ready is not None and ready.status == "True") or not is_stored:
            return None
        return ready or NodeCondition(type="Ready")


class NodeClaimSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[NodeSelectorRequirementWithMinValues, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()
    termination_grace_period: str | None = None


class NodeClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    node_name: str = ""
    provider_id: str = field(default="", name="providerID")
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()


class NodeClaim(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()

    @property
    def name(self) -> str:
        return self.metadata.name


class NodeOverlaySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    requirements: tuple[NodeSelectorRequirementWithMinValues, ...] = ()
    """Without `minValues`."""
    price: str | None = None
    price_adjustment: str | None = None
    capacity: ResourceList = {}
    """Of extended resources."""
    weight: Int32 | None = None


class NodeOverlayStatus(Struct, frozen=True, kw_only=True):
    conditions: tuple[NodeCondition, ...] = ()


class NodeOverlay(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeOverlaySpec = NodeOverlaySpec()
    status: NodeOverlayStatus = NodeOverlayStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        ready = condition(self.status.conditions, "Ready")
        return ready is not None and ready.status == "True"


class Subnet(Struct, frozen=True, kw_only=True):
    zone: str = ""


class CapacityReservation(Struct, frozen=True, kw_only=True, rename="camel"):
    """Room that is paid for in a zone, for one instance type; how much of it is free the object does not say."""

    id: str = ""
    instance_type: str = ""
    availability_zone: str = ""
    reservation_type: str = "default"
    interruptible: bool = False
    state: str = "active"


class NodeClassStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[NodeCondition, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    capacity_reservations: tuple[CapacityReservation, ...] = ()


class NodeClass(Struct, frozen=True, kw_only=True):
    """What all clouds' node classes have."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeClassStatus = NodeClassStatus()

    @property
    def zones(self) -> tuple[str, ...]:
        """In which its nodes can be, in the order of their names; empty where the cloud does not say."""
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
"""Group and kind to the record."""


def condition(conditions: tuple[NodeCondition, ...], name: str) -> NodeCondition | None:
    return next((one for one in conditions if one.type == name), None)
