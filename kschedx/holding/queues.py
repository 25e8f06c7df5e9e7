"""The queues and quotas of other schedulers: what a pod's queue and those above it may use, and what they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TypeVar

import msgspec

from kschedx.api.kueue import Condition
from kschedx.api.other_schedulers import (
    DEFAULT_QUOTA,
    QUEUES_FILE,
    QUEUES_OF_YUNIKORN,
    QUOTA_NAMESPACES,
    QUOTA_PARENT,
    QUOTA_REQUEST,
    QUOTA_RUNTIME,
    KaiQueue,
    KoordinatorQuota,
    VolcanoQueue,
)
from kschedx.api.quantity import ResourceList, milli_value
from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.holding.amounts import amount
from kschedx.holding.model import Queue, QueueShare, Said
from kschedx.snapshot.snapshot import Snapshot

Found = TypeVar("Found")
MOST_LEVELS = 10
"""Of queues above each other; they could form a circle."""
GPU = "nvidia.com/gpu"
UNLIMITED = -1


def conditions(told: Iterable[Condition]) -> tuple[Said, ...]:
    return tuple(Said(type=one.type, status=one.status, reason=one.reason, message=one.message) for one in told)


def queues_of(snapshot: Snapshot, scheduler: str, pod: Pod, queue: str) -> tuple[Queue, ...]:
    """The queue that the pod or its group names, the nearest first, with those above it; empty where none is known."""
    find = {"Volcano": _volcano, "KAI": _kai, "Run:ai": _kai, "Koordinator": _koordinator, "YuniKorn": _yunikorn}
    found = find.get(scheduler)
    return () if found is None else tuple(islice(found(snapshot, pod, queue), MOST_LEVELS))


def _volcano(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[Queue]:
    known = {one.metadata.name: one for one in snapshot.of(VolcanoQueue)}
    while found := known.get(queue):
        given, spec = found.status.allocated, found.spec
        shares = tuple(_share(name, given, most, spec.deserved) for name, most in sorted(spec.capability.items()))
        yield Queue(name=queue, state=found.status.state, shares=shares)
        queue = spec.parent


def _share(resource: str, given: ResourceList, most: str | int | float, deserved: ResourceList) -> QueueShare:
    return QueueShare(
        resource=resource,
        allocated=amount(resource, given.get(resource, 0)),
        capability=amount(resource, most),
        deserved=amount(resource, deserved[resource]) if resource in deserved else None,
    )


# --- KAI


def _kai(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[Queue]:
    known = {one.metadata.name: one for one in snapshot.of(KaiQueue)}
    while found := known.get(queue):
        yield Queue(name=queue, shares=tuple(_kai_shares(found)), said=conditions(found.status.conditions))
        queue = found.spec.parent_queue


_MEGABYTE = 10**6


def _kai_shares(queue: KaiQueue) -> Iterator[QueueShare]:
    """GPUs in thousandths, since pods can have parts of one."""
    resources, status = queue.spec.resources, queue.status
    for name, share, scale in (("cpu", resources.cpu, 1), ("memory", resources.memory, _MEGABYTE)):
        if share is not None:
            yield QueueShare(
                resource=name,
                allocated=amount(name, status.allocated.get(name, 0)),
                requested=amount(name, status.requested.get(name, 0)),
                capability=_kai_amount(share.limit, scale),
                deserved=_kai_amount(share.quota, scale),
            )
    if resources.gpu is not None:
        yield QueueShare(
            resource=GPU,
            allocated=_gpus(status.allocated),
            requested=_gpus(status.requested),
            capability=_kai_amount(resources.gpu.limit, 1000),
            deserved=_kai_amount(resources.gpu.quota, 1000),
            is_in_thousandths=True,
        )


def _kai_amount(written: str | int | float, scale: int) -> int | None:
    """None for as much as there is."""
    try:
        number = Decimal(str(written))
    except InvalidOperation:
        return None
    return None if number == UNLIMITED else int(number * scale)


def _gpus(amounts: ResourceList) -> int:
    return sum(milli_value(written) for name, written in amounts.items() if name == "gpu" or name.endswith("/gpu"))


# --- Koordinator


def _koordinator(snapshot: Snapshot, pod: Pod, queue: str) -> Iterator[Queue]:
    known = {one.metadata.name: one for one in snapshot.of(KoordinatorQuota)}
    found = known.get(queue) or _quota_of_namespace(known.values(), pod) or known.get(DEFAULT_QUOTA)
    while found is not None:
        used, runtime = found.status.used, _amounts(found, QUOTA_RUNTIME)
        requested = _amounts(found, QUOTA_REQUEST)
        yield Queue(
            name=found.metadata.name,
            shares=tuple(
                QueueShare(
                    resource=name,
                    allocated=amount(name, used.get(name, 0)),
                    requested=amount(name, requested[name]) if name in requested else None,
                    capability=amount(name, most),
                    deserved=amount(name, runtime[name]) if name in runtime else None,
                )
                for name, most in sorted(found.spec.max.items())
            ),
        )
        found = known.get(found.metadata.labels.get(QUOTA_PARENT, ""))


def _quota_of_namespace(quotas: Iterable[KoordinatorQuota], pod: Pod) -> KoordinatorQuota | None:
    """Of a pod without the label: the quota in its namespace, else one that names the namespace."""
    namespace = pod.metadata.namespace
    by_name = sorted(quotas, key=lambda one: one.metadata.name)

    def names_it(quota: KoordinatorQuota) -> bool:
        return namespace in decoded(quota.metadata.annotations.get(QUOTA_NAMESPACES, ""), list[str])

    beside = next((one for one in by_name if one.metadata.namespace == namespace), None)
    return beside or next(filter(names_it, by_name), None)


def _amounts(quota: KoordinatorQuota, annotation: str) -> ResourceList:
    return decoded(quota.metadata.annotations.get(annotation, ""), dict[str, str | int | float])


def decoded(text: str, kind: type[Found]) -> Found:
    """An annotation in JSON; what is none of this kind says nothing."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return kind()


# --- YuniKorn


def _yunikorn(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[Queue]:
    """From its ConfigMap, which only files have: what the queues may use at most. What they do is in no object."""
    if not queue:
        return
    path = queue.split(".") if queue.startswith("root.") or queue == "root" else ["root", *queue.split(".")]
    known = {name: _limits(limits) for name, limits in _configured(snapshot)}
    for size in range(len(path), 0, -1):
        name = ".".join(path[:size])
        if name in known:
            yield Queue(name=name, shares=known[name])


def _configured(snapshot: Snapshot) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The full name and the limits of each queue of the first partition."""
    import yaml

    for config in snapshot.config_maps.values():
        if config.metadata.name != QUEUES_OF_YUNIKORN:
            continue
        try:
            document = yaml.safe_load(config.data.get(QUEUES_FILE, ""))
        except (yaml.YAMLError, RecursionError):
            continue
        partitions = _items(_map(document).get("partitions"))
        for partition in partitions[:1]:
            yield from _below("", _items(_map(partition).get("queues")))


def _below(parent: str, queues: list[object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for queue in map(_map, queues):
        name = f"{parent}.{queue.get('name')}" if parent else str(queue.get("name"))
        yield name, _map(_map(queue.get("resources")).get("max"))
        if name.count(".") < MOST_LEVELS:
            yield from _below(name, _items(queue.get("queues")))


def _limits(most: Mapping[str, object]) -> tuple[QueueShare, ...]:
    found = []
    for written, value in sorted(most.items()):
        name = "cpu" if written == "vcore" else written
        try:
            found.append(QueueShare(resource=name, allocated=None, capability=amount(name, str(value))))
        except InputError:
            continue
    return tuple(found)


def _map(value: object) -> Mapping[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
