"""What kubernetes-sigs/scheduler-plugins keeps in a cluster: scheduling.x-k8s.io, topology.node.k8s.io."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.api.integers import Int32
from kschedx.api.quantity import ResourceList
from kschedx.api.types import ObjectMeta

GROUP = "scheduling.x-k8s.io"
TOPOLOGY_GROUP = "topology.node.k8s.io"
POD_GROUP_LABEL = f"{GROUP}/pod-group"

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
