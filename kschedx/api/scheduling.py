"""Typed slim records of scheduling.k8s.io: classes of priority, and pods that are placed as a group."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32
from kschedx.api.types import ObjectMeta, PodResourceClaimStatus


class PriorityClass(Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class GangSchedulingPolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True):
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Struct, frozen=True, kw_only=True):
    key: str = ""


class PodGroupSchedulingConstraints(Struct, frozen=True, kw_only=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    priority: Int32 | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()


class PodGroupStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(Struct, frozen=True, kw_only=True):
    """scheduling.k8s.io/v1alpha2, in 1.37 v1beta1 and v1alpha3, behind the gate GenericWorkload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
