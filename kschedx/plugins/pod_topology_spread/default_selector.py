"""Which pods belong together with a pod that does not say so: deduced from its Services and its controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kschedx.api.selectors import LabelSelector, Selector, compile_selector, selector_from_set
from kschedx.api.types import Pod, ReplicaSet, ReplicationController, StatefulSet
from kschedx.errors import InputError
from kschedx.snapshot.snapshot import Snapshot

Controller = TypeVar("Controller", ReplicationController, ReplicaSet, StatefulSet)


def default_selector(pod: Pod, snapshot: Snapshot) -> Selector:
    """What all Services that select the pod and its ReplicationController, ReplicaSet or StatefulSet select together.

    It is empty where there is none of them (pkg/scheduler/framework/plugins/helper/spread.go).
    """
    labels: dict[str, str] = {}
    for service in snapshot.services:
        selected = service.spec.selector
        if (
            selected is not None
            and service.metadata.namespace == pod.metadata.namespace
            and selector_from_set(selected).matches(pod.metadata.labels)
        ):
            labels |= selected
    owner = pod.metadata.controller
    match (owner.api_version, owner.kind) if owner else None:
        case ("v1", "ReplicationController"):
            controller = _owner(pod, snapshot.replication_controllers)
            return selector_from_set(labels | (controller.spec.selector or {} if controller else {}))
        case ("apps/v1", "ReplicaSet"):
            replica_set = _owner(pod, snapshot.replica_sets)
            return _narrowed(selector_from_set(labels), replica_set.spec.selector if replica_set else None)
        case ("apps/v1", "StatefulSet"):
            stateful_set = _owner(pod, snapshot.stateful_sets)
            return _narrowed(selector_from_set(labels), stateful_set.spec.selector if stateful_set else None)
        case _:
            return selector_from_set(labels)


def _owner(pod: Pod, candidates: Iterable[Controller]) -> Controller | None:
    """The object of the same name as the pod's controller, in its namespace."""
    name = pod.metadata.controller.name if pod.metadata.controller else ""
    return next(
        (one for one in candidates if (one.metadata.namespace, one.metadata.name) == (pod.metadata.namespace, name)),
        None,
    )


def _narrowed(selector: Selector, other: LabelSelector | None) -> Selector:
    """Both selectors at once; one that is absent or wrong adds nothing."""
    try:
        return selector.add(compile_selector(other).requirements)
    except InputError:
        return selector
