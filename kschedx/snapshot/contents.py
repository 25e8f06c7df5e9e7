"""What a cluster holds, as far as scheduling reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kschedx.api.defaulting import default_namespace, default_priority_class
from kschedx.api.kinds import KINDS
from kschedx.api.optional_admission import PLUGIN_OF_ANNOTATION
from kschedx.api.policy import PodDisruptionBudget
from kschedx.api.scheduling import PodGroup, PriorityClass
from kschedx.api.types import (
    Labels,
    LimitRange,
    Namespace,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)
from kschedx.snapshot.cluster_nodes import ClusterNodes
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.events import FailedCreate, FailedScheduling, ScaleUpEvent
from kschedx.snapshot.manifests import Manifests
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.source import Source
from kschedx.snapshot.storage import Storage


class Contents(Struct, frozen=True, kw_only=True):
    """Everything that scheduling reads of a cluster."""

    source: Source
    cluster: ClusterNodes
    pods: PodTable
    namespaces: Mapping[str, Labels]
    services: Sequence[Service] = ()
    replication_controllers: Sequence[ReplicationController] = ()
    replica_sets: Sequence[ReplicaSet] = ()
    stateful_sets: Sequence[StatefulSet] = ()
    disruption_budgets: Sequence[PodDisruptionBudget] = ()
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    pod_groups: Mapping[str, PodGroup] = field(default_factory=dict)
    """`namespace/name` to pod group."""
    workloads: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    """(kind, namespace, name) to the manifest of an object that makes pods from a template."""
    devices: Devices = field(default_factory=Devices)
    storage: Storage = field(default_factory=Storage)
    namespace_annotations: Mapping[str, Labels] = field(default_factory=dict)
    """Namespace to those of its annotations that admission reads."""
    limit_ranges: Mapping[str, Sequence[LimitRange]] = field(default_factory=dict)
    """Namespace to its LimitRanges, defaulted."""
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    failed_scheduling: Mapping[str, FailedScheduling] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what kube-scheduler's newest event says of it, where events were read."""
    failed_creates: Mapping[tuple[str, str, str], FailedCreate] = field(default_factory=dict)
    """(kind, namespace, name) of a pods' owner to what its controller's newest event says of a pod that it could not
    make."""
    objects: Mapping[type[Struct], tuple[Struct, ...]] = field(default_factory=dict)
    """Record of a kind to its objects, for kinds that no other field holds."""
    manifests: Manifests | None = None
    """Pods and nodes as they were read, where somebody asked for them to be kept."""
    autoscaler_events: Mapping[str, ScaleUpEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what cluster-autoscaler said of it last."""
    karpenter_events: Mapping[str, FailedScheduling] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what Karpenter said of it last."""


def of_objects(others: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The fields of a snapshot that are made of objects other than nodes and pods: those of each kind, by its key."""
    return {
        "namespaces": {n.metadata.name: default_namespace(n).metadata.labels for n in others["Namespace"]},
        "namespace_annotations": {n.metadata.name: _read_by_admission(n) for n in others["Namespace"]},
        "limit_ranges": _by_namespace(others["LimitRange"]),
        "runtime_classes": {c.metadata.name: c for c in others["RuntimeClass"]},
        "services": others["Service"],
        "replication_controllers": others["ReplicationController"],
        "replica_sets": others["ReplicaSet"],
        "stateful_sets": others["StatefulSet"],
        "disruption_budgets": others["PodDisruptionBudget"],
        "priority_classes": priority_classes(others),
        "pod_groups": {f"{g.metadata.namespace}/{g.metadata.name}": g for g in others["PodGroup"]},
        "devices": Devices.of(others),
        "storage": Storage.of(others),
        "objects": {kind.record: tuple(others[key]) for key, kind in KINDS.items() if kind.record is not None},
    }


def priority_classes(others: Mapping[str, Sequence[Any]]) -> dict[str, PriorityClass]:
    return {c.metadata.name: default_priority_class(c) for c in others["PriorityClass"]}


def _read_by_admission(namespace: Namespace) -> Labels:
    """Its annotations, without those that say nothing about pods."""
    return {key: text for key, text in namespace.metadata.annotations.items() if key in PLUGIN_OF_ANNOTATION}


def _by_namespace(limit_ranges: Sequence[LimitRange]) -> dict[str, list[LimitRange]]:
    """In order of their names; the API server takes them in any order."""
    found: dict[str, list[LimitRange]] = {}
    for one in sorted(limit_ranges, key=lambda one: one.metadata.name):
        found.setdefault(one.metadata.namespace, []).append(one)
    return found
