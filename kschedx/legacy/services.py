"""Services and controllers that a pod belongs to by its labels."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.selectors import LabelSelector, Selector, compile_selector, selector_from_set
from kschedx.api.types import Pod, Service
from kschedx.errors import InputError
from kschedx.snapshot.snapshot import Snapshot


def services_of(pod: Pod, snapshot: Snapshot) -> tuple[Service, ...]:
    """In load order; kube-scheduler's own is that of a map."""
    return tuple(
        service
        for service in snapshot.services
        if service.metadata.namespace == pod.metadata.namespace
        and service.spec.selector is not None
        and selector_from_set(service.spec.selector).matches(pod.metadata.labels)
    )


def service_selectors(pod: Pod, snapshot: Snapshot) -> Iterator[Selector]:
    for service in services_of(pod, snapshot):
        yield selector_from_set(service.spec.selector)


def controller_selectors(pod: Pod, snapshot: Snapshot, *, stateful_sets: bool) -> Iterator[Selector]:
    """Of the ReplicationControllers, ReplicaSets and, where they count, StatefulSets of the pod."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    if not labels:
        return
    for controller in snapshot.replication_controllers:
        if controller.metadata.namespace == namespace and controller.spec.selector:
            selector = selector_from_set(controller.spec.selector)
            if selector.matches(labels):
                yield selector
    workloads = [(one.metadata.namespace, one.spec.selector) for one in snapshot.replica_sets]
    if stateful_sets:
        workloads += [(one.metadata.namespace, one.spec.selector) for one in snapshot.stateful_sets]
    for its_namespace, written in workloads:
        found = _compiled(written)
        if its_namespace == namespace and found is not None and found.matches(labels):
            yield found


def _compiled(selector: LabelSelector | None) -> Selector | None:
    """None for a selector that picks nothing: absent, empty or wrong."""
    try:
        compiled = compile_selector(selector)
    except InputError:
        return None
    return compiled if compiled.requirements else None
