"""What kubernetes-sigs/scheduler-plugins keeps in a cluster: the group scheduling.x-k8s.io."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.integers import Int32
from kschedx.api.types import ObjectMeta, ResourceList

GROUP = "scheduling.x-k8s.io"
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
