"""The StatefulSet controller: which ordinals it creates and deletes next, and which ordinal blocks the others.

One call is one sync of the controller. Upstream: pkg/controller/statefulset/stateful_set_control.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct


class StatefulSetSpec(Struct, frozen=True, kw_only=True):
    """The fields of a StatefulSet that the controller reads."""

    replicas: int
    start: int = 0
    is_ordered: bool = True
    """podManagementPolicy OrderedReady."""
    is_on_delete: bool = False
    partition: int = 0
    """Replicas below it, counted from 0, keep their template."""
    max_unavailable: int | None = None
    """None without the feature gate MaxUnavailableStatefulSet, with which the update continues past pods that are not
    available."""

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)


class OrdinalPod(Struct, frozen=True, kw_only=True):
    """A pod of a StatefulSet, as its controller reads it."""

    is_available: bool
    """Whether the pod has been running and ready for minReadySeconds."""
    is_updated: bool = True
    """Whether the pod has the template of the update revision."""
    is_terminating: bool = False


class StatefulSetSync(Struct, frozen=True, kw_only=True):
    """The ordinals that one sync creates and deletes."""

    create: tuple[int, ...] = ()
    delete: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


def sync(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> StatefulSetSync:
    """Return what one sync changes; `pods` are the existing pods by ordinal."""
    missing = tuple(ordinal for ordinal in spec.ordinals if ordinal not in pods)
    condemned = sorted((ordinal for ordinal in pods if ordinal not in spec.ordinals), reverse=True)
    if not spec.is_ordered:
        delete = tuple(ordinal for ordinal in condemned if not pods[ordinal].is_terminating)
        return StatefulSetSync(create=missing, delete=delete) if missing or delete else _update(spec, pods)
    for ordinal in spec.ordinals:
        if ordinal not in pods:
            return StatefulSetSync(create=(ordinal,))
        if _blocks(pods[ordinal]):
            return StatefulSetSync()
    return _scale_down(pods, condemned) if condemned else _update(spec, pods)


def blocking_ordinal(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod], ordinal: int) -> int | None:
    """Return the lowest earlier ordinal that OrderedReady waits for; None if nothing prevents the pod's creation."""
    if not spec.is_ordered:
        return None
    before = (earlier for earlier in spec.ordinals if earlier < ordinal)
    return next((earlier for earlier in before if earlier not in pods or _blocks(pods[earlier])), None)


def _blocks(pod: OrdinalPod) -> bool:
    return pod.is_terminating or not pod.is_available


def _scale_down(pods: Mapping[int, OrdinalPod], condemned: list[int]) -> StatefulSetSync:
    """Delete one pod at a time from the highest; only the lowest pod that is not available may be deleted before it
    is."""
    highest = condemned[0]
    unavailable = min((number for number in condemned if not pods[number].is_available), default=None)
    if pods[highest].is_terminating or (not pods[highest].is_available and highest != unavailable):
        return StatefulSetSync()
    return StatefulSetSync(delete=(highest,))


def _update(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> StatefulSetSync:
    """Update from the highest ordinal down to the partition."""
    if spec.is_on_delete:
        return StatefulSetSync()
    return StatefulSetSync(delete=tuple(_outdated(spec, pods)))


def _outdated(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> Iterator[int]:
    """Yield the pods that one sync deletes because of their template."""
    descending = [ordinal for ordinal in reversed(spec.ordinals) if ordinal in pods]
    updated = [number for number in descending if number - spec.start >= spec.partition]
    if spec.max_unavailable is None:
        for number in updated:
            if not pods[number].is_updated and not pods[number].is_terminating:
                yield number
                return
            if not pods[number].is_available:
                return
        return
    left = spec.max_unavailable - sum(not pods[number].is_available for number in descending)
    for number in updated:
        if left > 0 and not pods[number].is_updated and not pods[number].is_terminating:
            yield number
            left -= 1
