"""Objects that only the descheduler reads: states and restarts of containers, pod conditions with their times,
annotations, and the usage in `metrics.k8s.io`."""

from __future__ import annotations

from msgspec import Struct, field

from kschedx.kube.conditions import Condition
from kschedx.kube.quantity import ResourceList
from kschedx.kube.types import ContainerState, KubernetesObject

EVICT = "descheduler.alpha.kubernetes.io/evict"
"""The annotation that makes a pod evictable regardless of all other rules."""
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
CONFIG_SOURCE = "kubernetes.io/config.source"  # the source of a pod for the kubelet; for a static pod it is not `api`
ANNOTATIONS = (EVICT, PREFER_NO_EVICTION, CONFIG_SOURCE)


class ContainerFacts(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class ConditionFacts(Condition, frozen=True, kw_only=True, gc=False, rename="camel"):
    last_transition_time: str = ""


class PodStatusFacts(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    reason: str = ""
    qos_class: str = ""
    conditions: tuple[ConditionFacts, ...] = ()
    container_statuses: tuple[ContainerFacts, ...] = ()
    init_container_statuses: tuple[ContainerFacts, ...] = ()
    ephemeral_container_statuses: tuple[ContainerFacts, ...] = ()


class PodDetails(Struct, frozen=True, kw_only=True):
    """The fields of a pod that `types.Pod` lacks."""

    status: PodStatusFacts = PodStatusFacts()


class _ContainerMetrics(Struct, frozen=True, kw_only=True):
    name: str = ""
    usage: ResourceList = {}


class PodMetrics(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    containers: tuple[_ContainerMetrics, ...] = ()


class NodeMetrics(KubernetesObject, frozen=True, kw_only=True, rename="camel"):
    usage: ResourceList = field(default_factory=dict)
