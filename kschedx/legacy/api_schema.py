"""A cluster as API servers of that time stored it, and its pods' requests as they were counted then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube import types
from kschedx.kube.names import CPU, MEMORY
from kschedx.kube.quantity import ResourceList, resource_amount
from kschedx.kube.resources import DEFAULT_MEMORY, DEFAULT_MILLI_CPU
from kschedx.kube.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    SelectorRequirement,
)
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.snapshot.columns import Column
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import Storage

# A pod's requests as they were counted then: with init containers for the incoming pod, without them for a running pod.


def _whole_units(resources: ResourceList) -> dict[str, int]:
    """Return each amount, rounded up separately: CPU in thousandths, everything else in units."""
    return {name: resource_amount(name, amount) for name, amount in resources.items()}


def incoming_request(spec: types.PodSpec) -> dict[str, int]:
    """Return for each resource the sum over the containers, or the request of an init container if that is larger."""
    return _peak(spec, lambda container: container.resources.requests)


def incoming_limits(spec: types.PodSpec) -> dict[str, int]:
    """Return the limits, computed like `incoming_request`."""
    return _peak(spec, lambda container: container.resources.limits)


def _peak(spec: types.PodSpec, written: Callable[[types.Container], ResourceList]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for container in spec.containers:
        total.update(_whole_units(written(container)))
    for container in spec.init_containers:
        for name, amount in _whole_units(written(container)).items():
            if amount > total[name]:
                total[name] = amount
    return dict(total)


def scored_request(spec: types.PodSpec) -> Mapping[str, int]:
    """Return the containers' CPU and memory requests for scores, with defaults for containers without requests."""
    return {
        CPU: sum(_scored_amount(container, CPU, DEFAULT_MILLI_CPU) for container in spec.containers),
        MEMORY: sum(_scored_amount(container, MEMORY, DEFAULT_MEMORY) for container in spec.containers),
    }


def _scored_amount(container: types.Container, resource: str, default: int) -> int:
    return _whole_units(container.resources.requests).get(resource, default)


# Without the fields of later versions, a current rule that is reused sees only fields that its predecessor could read.


class Schema(Struct, frozen=True, kw_only=True):
    """The differences between the APIs of the two versions, as far as scheduling reads them."""

    counts_every_resource: bool = False
    """Whether all resources count; otherwise only CPU, memory, `gpu`, and opaque integer resources."""
    reads_init_containers: bool = False  # whether init containers are a field; they were an annotation before
    reads_node_fields: bool = False  # whether node affinity has matchFields
    reads_port_details: bool = False
    """Whether a host port has an address and a protocol; otherwise only the number counts."""
    knows_shared_iscsi: bool = False  # whether it knows that two pods cannot share an iSCSI disk


_GPU = "alpha.kubernetes.io/nvidia-gpu"
_OPAQUE_INTEGER = "pod.alpha.kubernetes.io/opaque-int-resource-"


def stored_snapshot(snapshot: Snapshot, schema: Schema) -> Snapshot:
    """Return the whole cluster as it was stored. Running pods are counted without their init containers."""
    specs = snapshot.pods.specs
    stored = [replace(stored_spec(spec, schema), init_containers=()) for spec in specs.values]
    pods = replace(snapshot.pods, specs=Column(specs.codes, stored), derived={}, _requests={})
    return replace(snapshot, pods=pods, storage=_storage(snapshot.storage), _tables={})


def stored_spec(spec: types.PodSpec, schema: Schema) -> types.PodSpec:
    return types.PodSpec(
        node_name=spec.node_name,
        scheduler_name=spec.scheduler_name,
        priority=spec.priority,
        priority_class_name=spec.priority_class_name,
        restart_policy=spec.restart_policy,
        node_selector=spec.node_selector,
        affinity=None if spec.affinity is None else _affinity(spec.affinity, schema),
        tolerations=spec.tolerations,
        containers=tuple(_container(container, schema) for container in spec.containers),
        init_containers=tuple(_container(container, schema) for container in spec.init_containers)
        if schema.reads_init_containers
        else (),
        volumes=tuple(_volume(volume, schema) for volume in spec.volumes),
        host_network=spec.host_network,
    )


def _container(container: types.Container, schema: Schema) -> types.Container:
    return types.Container(
        name=container.name,
        image=container.image,
        resources=types.ResourceRequirements(
            requests=_resources(container.resources.requests, schema),
            limits=_resources(container.resources.limits, schema),
        ),
        ports=container.ports
        if schema.reads_port_details
        else tuple(replace(port, host_ip="", protocol="TCP") for port in container.ports),
    )


def _resources(resources: ResourceList, schema: Schema) -> ResourceList:
    """Return amounts in whole units: each was rounded up before they were summed."""
    return {
        name: f"{amount}m" if name == CPU else str(amount)
        for name, amount in _whole_units(resources).items()
        if schema.counts_every_resource or name in (CPU, "memory", _GPU) or name.startswith(_OPAQUE_INTEGER)
    }


def _volume(volume: types.Volume, schema: Schema) -> types.Volume:
    return replace(
        volume, ephemeral=None, csi=None, image=None, iscsi=volume.iscsi if schema.knows_shared_iscsi else None
    )


# --- affinity


def _affinity(affinity: types.Affinity, schema: Schema) -> types.Affinity:
    return types.Affinity(
        node_affinity=None if affinity.node_affinity is None else _node_affinity(affinity.node_affinity, schema),
        pod_affinity=None if affinity.pod_affinity is None else _pod_affinity(affinity.pod_affinity),
        pod_anti_affinity=None if affinity.pod_anti_affinity is None else _pod_affinity(affinity.pod_anti_affinity),
    )


def _node_affinity(affinity: types.NodeAffinity, schema: Schema) -> types.NodeAffinity:
    """Return the stored node affinity; preferred terms never used fields."""
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None and not schema.reads_node_fields:
        required = NodeSelector(node_selector_terms=tuple(map(_without_fields, required.node_selector_terms)))
    return types.NodeAffinity(
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=tuple(
            PreferredSchedulingTerm(weight=term.weight, preference=_without_fields(term.preference))
            for term in affinity.preferred_during_scheduling_ignored_during_execution
        ),
    )


def _without_fields(term: NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=term.match_expressions)


def _pod_affinity(affinity: types.PodAffinity) -> types.PodAffinity:
    return types.PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(
            map(_term, affinity.required_during_scheduling_ignored_during_execution)
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            types.WeightedPodAffinityTerm(weight=term.weight, pod_affinity_term=_term(term.pod_affinity_term))
            for term in affinity.preferred_during_scheduling_ignored_during_execution
        ),
    )


def _term(term: types.PodAffinityTerm) -> types.PodAffinityTerm:
    """Return the term without its namespaceSelector, and without the expressions that matchLabelKeys adds to the
    selector of pods."""
    selector = term.label_selector
    if selector is not None and (term.match_label_keys or term.mismatch_label_keys):
        kept = tuple(expression for expression in selector.match_expressions if not _is_merged(expression, term))
        selector = LabelSelector(match_labels=selector.match_labels, match_expressions=kept)
    return types.PodAffinityTerm(label_selector=selector, namespaces=term.namespaces, topology_key=term.topology_key)


def _is_merged(expression: SelectorRequirement, term: types.PodAffinityTerm) -> bool:
    keys = {"In": term.match_label_keys, "NotIn": term.mismatch_label_keys}.get(expression.operator, ())
    return expression.key in keys and len(expression.values) == 1


# --- storage


def _storage(storage: Storage) -> Storage:
    """Return the storage without what was unknown then: drivers' data about nodes, storage capacity, and attributes
    classes."""
    return Storage(
        volumes={name: _without_attributes_class(volume) for name, volume in storage.volumes.items()},
        claims={key: _without_attributes_class(claim) for key, claim in storage.claims.items()},
        classes=storage.classes,
    )


_Stored = TypeVar("_Stored", PersistentVolume, PersistentVolumeClaim)


def _without_attributes_class(stored: _Stored) -> _Stored:
    if not stored.spec.volume_attributes_class_name:
        return stored
    return replace(stored, spec=replace(stored.spec, volume_attributes_class_name=""))
