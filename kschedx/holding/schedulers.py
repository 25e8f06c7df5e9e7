"""Other schedulers: the queues and quotas that apply to a pod, and what their objects report about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.holding.model import OtherScheduler, QueueShare, ReservedRoom, SchedulerQueue, SharedDevices
from kschedx.kube import autoscalers, other_schedulers
from kschedx.kube.conditions import Condition, TimedCondition
from kschedx.kube.decoding import list_at, map_at
from kschedx.kube.escaping import shell_command
from kschedx.kube.names import NVIDIA_GPU
from kschedx.kube.other_schedulers import KaiPodGroup, KoordinatorPodGroup, VolcanoPodGroup
from kschedx.kube.quantity import ResourceList, milli_value, resource_amount
from kschedx.kube.resources import container_requests
from kschedx.kube.scalars import MAX_INT64, parse_int64
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import Pod
from kschedx.kueue.quota import quota_amount
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.events import FAILED_SCHEDULING
from kschedx.snapshot.snapshot import Snapshot

_QueueFacts = TypeVar("_QueueFacts")
_MOST_LEVELS = 10  # nested queues could form a cycle
_UNLIMITED = -1
_DEFAULT_QUOTA = "koordinator-default-quota"
_SchedulerGroup = VolcanoPodGroup | KaiPodGroup | KoordinatorPodGroup


def _conditions(reported: Iterable[TimedCondition]) -> tuple[Condition, ...]:
    return tuple(condition.brief for condition in reported)


def _queues_of(snapshot: Snapshot, scheduler: str, pod: Pod, queue: str) -> tuple[SchedulerQueue, ...]:
    """The queue that the pod or its group names and those above it, the nearest first; empty if none is known."""
    find = {"Volcano": _volcano, "KAI": _kai, "Run:ai": _kai, "Koordinator": _koordinator, "YuniKorn": _yunikorn}
    queues = find.get(scheduler)
    return () if queues is None else tuple(islice(queues(snapshot, pod, queue), _MOST_LEVELS))


def _volcano(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[SchedulerQueue]:
    known = {queue.metadata.name: queue for queue in snapshot.of(other_schedulers.VolcanoQueue)}
    while parent := known.get(queue):
        given, spec = parent.status.allocated, parent.spec
        shares = tuple(
            # a capability of 0 is no limit for CPU and memory (newQueueAttr in pkg/scheduler/plugins/capacity)
            replace(share, capability=share.capability or None) if name in ("cpu", "memory") else share
            for name, most in sorted(spec.capability.items())
            for share in [_share(name, given, most, spec.deserved)]
        )
        yield SchedulerQueue(name=queue, state=parent.status.state, shares=shares)
        queue = spec.parent


def _with_groups(snapshot: Snapshot, queue: SchedulerQueue) -> SchedulerQueue:
    """Add to a queue of Volcano what it counts for groups that are Inqueue."""
    holders, held = _held_by_groups(snapshot, queue.name)
    shares = tuple(replace(share, held=held.get(share.resource)) for share in queue.shares)
    return replace(queue, shares=shares, holders=holders)


_HELD = Memo[tuple[tuple[str, ...], Mapping[str, int]]]()


def _held_by_groups(snapshot: Snapshot, queue: str) -> tuple[tuple[str, ...], Mapping[str, int]]:
    """Return the groups of Volcano that are Inqueue, `namespace/name`, and the sum of their minResources, which the
    queue counts until they run (attr.inqueue in pkg/scheduler/plugins/capacity and proportion)."""

    def search() -> tuple[tuple[str, ...], Mapping[str, int]]:
        groups = [
            group
            for group in snapshot.of(VolcanoPodGroup)
            if group.spec.queue == queue and group.status.phase == "Inqueue"
        ]
        held = Counter[str]()
        for group in groups:
            held.update({name: quota_amount(name, amount) for name, amount in group.spec.min_resources.items()})
        return tuple(f"{group.metadata.namespace}/{group.metadata.name}" for group in groups), held

    return _HELD.of(snapshot.derived, search, queue)


def _share(
    resource: str,
    given: ResourceList,
    most: str | int | float,
    deserved: ResourceList,
    requested: ResourceList | None = None,
) -> QueueShare:
    return QueueShare(
        resource=resource,
        allocated=quota_amount(resource, given.get(resource, 0)),
        requested=quota_amount(resource, requested[resource]) if requested and resource in requested else None,
        capability=quota_amount(resource, most),
        deserved=quota_amount(resource, deserved[resource]) if resource in deserved else None,
    )


# --- KAI


def _kai(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[SchedulerQueue]:
    known = {queue.metadata.name: queue for queue in snapshot.of(other_schedulers.KaiQueue)}
    while parent := known.get(queue):
        yield SchedulerQueue(name=queue, shares=tuple(_kai_shares(parent)), said=_conditions(parent.status.conditions))
        queue = parent.spec.parent_queue


_MEGABYTE = 10**6


def _kai_shares(queue: other_schedulers.KaiQueue) -> Iterator[QueueShare]:
    """Yield the queue's shares; GPUs are in thousandths, since a pod can use a fraction of one."""
    resources, status = queue.spec.resources, queue.status
    for name, share, scale in (("cpu", resources.cpu, 1), ("memory", resources.memory, _MEGABYTE)):
        if share is not None:
            yield QueueShare(
                resource=name,
                allocated=quota_amount(name, status.allocated.get(name, 0)),
                requested=quota_amount(name, status.requested.get(name, 0)),
                capability=_kai_amount(share.limit, scale),
                deserved=_kai_amount(share.quota, scale),
            )
    if resources.gpu is not None:
        yield QueueShare(
            resource=NVIDIA_GPU,
            allocated=_gpus(status.allocated),
            requested=_gpus(status.requested),
            capability=_kai_amount(resources.gpu.limit, 1000),
            deserved=_kai_amount(resources.gpu.quota, 1000),
            is_in_thousandths=True,
        )


def _kai_amount(written: str | int | float, scale: int) -> int | None:
    """Return an amount; None if it is unlimited, not a number, or larger than any cluster."""
    try:
        number = Decimal(str(written))
        is_limit = number != _UNLIMITED and abs(number) * scale <= MAX_INT64
    except ArithmeticError:
        return None
    return int(number * scale) if is_limit else None


def _gpus(amounts: ResourceList) -> int:
    return sum(milli_value(written) for name, written in amounts.items() if name == "gpu" or name.endswith("/gpu"))


# --- Koordinator


def _koordinator(snapshot: Snapshot, pod: Pod, queue: str) -> Iterator[SchedulerQueue]:
    known = {quota.metadata.name: quota for quota in snapshot.of(other_schedulers.KoordinatorQuota)}
    quota = known.get(queue) or _quota_of_namespace(known.values(), pod) or known.get(_DEFAULT_QUOTA)
    while quota is not None:
        used, runtime = quota.status.used, _amounts(quota, other_schedulers.QUOTA_RUNTIME)
        requested = _amounts(quota, other_schedulers.QUOTA_REQUEST)
        yield SchedulerQueue(
            name=quota.metadata.name,
            shares=tuple(_share(name, used, most, runtime, requested) for name, most in sorted(quota.spec.max.items())),
        )
        quota = known.get(quota.metadata.labels.get(other_schedulers.QUOTA_PARENT, ""))


def _quota_of_namespace(
    quotas: Iterable[other_schedulers.KoordinatorQuota], pod: Pod
) -> other_schedulers.KoordinatorQuota | None:
    """Return the quota for a pod without the label: the one in its namespace, else one that names the namespace."""
    namespace = pod.metadata.namespace
    by_name = sorted(quotas, key=lambda quota: quota.metadata.name)

    def names_it(quota: other_schedulers.KoordinatorQuota) -> bool:
        return namespace in _decode_annotation(
            quota.metadata.annotations.get(other_schedulers.QUOTA_NAMESPACES, ""), list[str]
        )

    beside = next((quota for quota in by_name if quota.metadata.namespace == namespace), None)
    return beside or next(filter(names_it, by_name), None)


def _amounts(quota: other_schedulers.KoordinatorQuota, annotation: str) -> ResourceList:
    return _decode_annotation(quota.metadata.annotations.get(annotation, ""), dict[str, str | int | float])


def _decode_annotation(text: str, kind: type[_QueueFacts]) -> _QueueFacts:
    """Decode an annotation in JSON; the result is empty if it is not of this type."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return kind()


# --- YuniKorn


def _yunikorn(snapshot: Snapshot, _pod: Pod, queue: str) -> Iterator[SchedulerQueue]:
    """Yield the queues of its ConfigMap, which only files have, with their limits. The pods on nodes are their usage,
    unless placement rules rather than pods name queues."""
    if not queue:
        return
    path = queue.split(".") if queue.startswith("root.") or queue == "root" else ["root", *queue.split(".")]
    known = {name: _limits(limits) for name, limits in _configured_queues(snapshot)}
    for size in range(len(path), 0, -1):
        name = ".".join(path[:size])
        if name in known:
            used = _used_by_pods(snapshot, name)
            shares = known[name] if used is None else [replace(it, allocated=used[it.resource]) for it in known[name]]
            yield SchedulerQueue(name=name, shares=tuple(shares))


_USED = Memo[Counter[str] | None]()


def _used_by_pods(snapshot: Snapshot, queue: str) -> Counter[str] | None:
    """Return what the pods on nodes request in a queue of YuniKorn or below it; None if one of them names no queue."""

    def search() -> Counter[str] | None:
        pods, used = snapshot.pods, Counter[str]()
        placed = pods.specs.where(lambda spec: spec.scheduler_name == "yunikorn") & (pods.node >= 0)
        for pod in (pods[row] for row in np.flatnonzero(placed).tolist()):
            named = _mark(pod, SCHEDULERS["yunikorn"].queue_marks)
            if not named:
                return None
            if f"root.{named.removeprefix('root.')}.".startswith(f"{queue}."):
                requests = container_requests(pod.spec)
                used.update({name: resource_amount(name, amount) for name, amount in requests.items()})
        return used

    return _USED.of(snapshot.derived, search, queue)


def _configured_queues(snapshot: Snapshot) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the full name and the limits of each queue of the first partition."""
    from kschedx.sources import yaml

    for config in snapshot.config_maps.values():
        if config.metadata.name != other_schedulers.QUEUES_OF_YUNIKORN:
            continue
        try:
            document = yaml.value_in(config.data.get(other_schedulers.QUEUES_FILE, ""))
        except InputError:
            continue
        for partition in list_at(document, "partitions")[:1]:
            yield from _below("", list_at(partition, "queues"))


def _below(parent: str, queues: Sequence[object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for queue in map(map_at, queues):
        name = f"{parent}.{queue.get('name')}" if parent else str(queue.get("name"))
        yield name, {str(key): value for key, value in map_at(queue, "resources", "max").items()}
        if name.count(".") < _MOST_LEVELS:
            yield from _below(name, list_at(queue, "queues"))


def _limits(most: Mapping[str, object]) -> tuple[QueueShare, ...]:
    shares = []
    for written, value in sorted(most.items()):
        name = "cpu" if written == "vcore" else written
        try:
            shares.append(QueueShare(resource=name, allocated=None, capability=quota_amount(name, str(value))))
        except InputError:
            continue
    return tuple(shares)


# Reservations that Koordinator keeps for a pod, and its jobs that move the pod. Upstream: MatchReservationOwners in
# pkg/util/reservation of koordinator-sh/koordinator.


def _rooms_for(snapshot: Snapshot, pod: Pod) -> Iterator[ReservedRoom]:
    for reservation in sorted(snapshot.of(other_schedulers.Reservation), key=lambda item: item.metadata.name):
        if any(_is_owner(owner, pod) for owner in reservation.spec.owners):
            status = reservation.status
            wrong = [said for said in _conditions(status.conditions) if said.status == "False"]
            yield ReservedRoom(
                name=reservation.metadata.name, phase=status.phase, node=status.node_name, said=tuple(wrong)
            )


def _is_owner(owner: other_schedulers.ReservationOwner, pod: Pod) -> bool:
    if owner.object is None and owner.controller is None and owner.label_selector is None:
        return False
    controller = pod.metadata.controller
    return (
        (owner.object is None or _names(owner.object, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
        and (
            owner.controller is None
            or (
                controller is not None
                and owner.controller.kind in ("", controller.kind)
                and _names(owner.controller, pod.metadata.namespace, controller.name, controller.uid)
            )
        )
        and (owner.label_selector is None or _selects(owner.label_selector, pod))
    )


def _selects(selector: LabelSelector, pod: Pod) -> bool:
    try:
        return compile_selector(selector).matches(pod.metadata.labels)
    except InputError:  # an invalid selector of an object that others write
        return False


def _names(reference: other_schedulers.ReservingObject, namespace: str, name: str, uid: str) -> bool:
    is_named = reference.namespace in ("", namespace) and reference.name in ("", name)
    return is_named and (not uid or reference.uid in ("", uid))


def _moves_of(snapshot: Snapshot, pod: Pod) -> Iterator[Condition]:
    """Yield the jobs that move the pod, with their own messages."""
    for job in sorted(snapshot.of(other_schedulers.PodMigrationJob), key=lambda job: job.metadata.name):
        named = job.spec.pod_ref
        if named is not None and _names(named, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid):
            status = job.status
            yield Condition(
                type=f"PodMigrationJob {job.metadata.name}",
                status=status.phase or "Pending",
                reason=status.reason,
                message=status.message,
            )


# --- HAMi


class _Device(Struct, frozen=True):
    """A device that HAMi's device plugin registers in an annotation of its node; newer plugins write JSON."""

    id: str = ""
    devmem: int = 0
    health: bool = False


def _shared_devices(snapshot: Snapshot, pod: Pod) -> Iterator[SharedDevices]:
    """Yield the devices that nodes register, those with the most memory per device first."""
    limits = [{**container.resources.requests, **container.resources.limits} for container in pod.spec.containers]
    memories = [quota_amount(name, amount) for it in limits for name, amount in it.items() if name.endswith("/gpumem")]
    memory = max(memories, default=0)
    taken, shares = _memory_in_use(snapshot), []
    for node in snapshot.cluster.nodes:
        for key, written in node.metadata.annotations.items():
            match = autoscalers.HAMI_REGISTER.fullmatch(key)
            devices = [*_registered_devices(written)] if match is not None else []
            if match is not None and devices:
                shares.append(
                    SharedDevices(
                        node=node.name,
                        kind=match["kind"],
                        devices=len(devices),
                        healthy=sum(device.health for device in devices),
                        memory=max(device.devmem for device in devices),
                        requested=memory,
                        fitting=sum(
                            device.health and device.devmem - taken[device.id] >= (memory or device.devmem)
                            for device in devices
                        ),
                    )
                )
    yield from sorted(shares, key=lambda devices: (-devices.memory, devices.node, devices.kind))


def _memory_in_use(snapshot: Snapshot) -> Counter[str]:
    """Return device to the MiB that pods use on it."""
    taken, pods = Counter[str](), snapshot.pods
    is_over = pods.finished
    for row in np.flatnonzero((pods.node >= 0) & ~is_over).tolist():
        written = pods.annotations[row].get(autoscalers.HAMI_DEVICES, "")
        for part in filter(None, written.replace(";", ":").split(":")):
            parts = part.split(",")
            if len(parts) >= 3 and (memory := parse_int64(parts[2])) is not None:
                taken[parts[0]] += memory
    return taken


def _registered_devices(written: str) -> Iterator[_Device]:
    if written.startswith("["):
        yield from _decode_annotation(written, list[_Device])
        return
    for part in filter(None, written.split(":")):
        parts = part.split(",")
        if len(parts) >= 7 and (memory := parse_int64(parts[2])) is not None:
            yield _Device(id=parts[0], devmem=memory, health=parts[6] == "true")


class _KnownScheduler(Struct, frozen=True, kw_only=True):
    """A scheduler that pods select by name in spec.schedulerName."""

    title: str
    look_at: str
    record: type[_SchedulerGroup] | None = None
    queues: type[other_schedulers.VolcanoQueue] | type[other_schedulers.KaiQueue] | None = None
    queue_marks: tuple[str, ...] = ()
    """The labels and annotations by which a pod names its queue or quota; the first that the pod has counts."""
    application_marks: tuple[str, ...] = ()
    is_in_cluster: bool = True  # whether it runs as a pod of the cluster


_VOLCANO = _KnownScheduler(
    title="Volcano",
    look_at="kubectl describe podgroups.scheduling.volcano.sh",
    record=other_schedulers.VolcanoPodGroup,
    queues=other_schedulers.VolcanoQueue,
    queue_marks=("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"),
)
_KAI = _KnownScheduler(
    title="KAI",
    look_at="kubectl describe podgroups.scheduling.run.ai",
    record=other_schedulers.KaiPodGroup,
    queues=other_schedulers.KaiQueue,
    queue_marks=("kai.scheduler/queue", "runai/queue"),
)

SCHEDULERS: Mapping[str, _KnownScheduler] = {
    "volcano": _VOLCANO,
    "kai-scheduler": _KAI,
    "runai-scheduler": _KnownScheduler(
        title="Run:ai", look_at=_KAI.look_at, record=other_schedulers.KaiPodGroup, queue_marks=_KAI.queue_marks
    ),
    "koord-scheduler": _KnownScheduler(
        title="Koordinator",
        look_at="kubectl describe podgroups.scheduling.sigs.k8s.io",
        record=other_schedulers.KoordinatorPodGroup,
        queue_marks=(other_schedulers.QUOTA_NAME,),
    ),
    "yunikorn": _KnownScheduler(
        title="YuniKorn",
        look_at="the events of the pod, and YuniKorn's own web page of queues",
        queue_marks=(autoscalers.YUNIKORN_QUEUE, "queue"),
        application_marks=(autoscalers.YUNIKORN_APPLICATION, "applicationId", autoscalers.SPARK_APPLICATION),
    ),
    autoscalers.HAMI_SCHEDULER: _KnownScheduler(
        title="HAMi", look_at="the events of the pod, and the logs of hami-scheduler"
    ),
    "kube-batch": _KnownScheduler(title="kube-batch", look_at="kubectl describe podgroups"),
    "scheduler-plugins-scheduler": _KnownScheduler(
        title="scheduler-plugins", look_at="its KubeSchedulerConfiguration: with it, --config answers for this pod"
    ),
    autoscalers.FARGATE_SCHEDULER: _KnownScheduler(
        title="EKS Fargate",
        look_at="the Fargate profile that selects the pod, and the events of the pod",
        is_in_cluster=False,
    ),
    "stork": _KnownScheduler(title="Stork", look_at="the logs of stork-scheduler"),
}
"""Schedulers by spec.schedulerName, as their charts and manuals install them."""


def other_scheduler(snapshot: Snapshot, pod: Pod) -> OtherScheduler | None:
    """Return the scheduler of a pod if it is known; None for any other name."""
    known = SCHEDULERS.get(pod.spec.scheduler_name)
    if known is None:
        return None
    group = _group(snapshot, pod, known)
    named = group.metadata.name if group is not None else _group_name(pod)
    running, members = _count_members(snapshot, pod, lambda other: _group_name(other) == named) if named else (0, 0)
    in_group = group.spec.queue if group is not None else ""
    queue = in_group or _mark(pod, known.queue_marks)
    queues = _queues_of(snapshot, known.title, pod, queue)
    nearest = queues[0] if queues else SchedulerQueue(name=queue)
    if known is _VOLCANO and group is not None and group.status.phase == "Pending":
        nearest = _with_groups(snapshot, nearest)
    exist = () if queues or not queue or known.queues is None else snapshot.of(known.queues)
    scheduler = OtherScheduler(
        name=pod.spec.scheduler_name,
        title=known.title,
        look_at=known.look_at,
        group=f"{pod.metadata.namespace}/{named}" if named else "",
        said=(
            *_pod_conditions(snapshot, pod),
            *_moves_of(snapshot, pod),
            *_group_conditions(snapshot, group),
            *nearest.said,
        ),
        queue=nearest.name,
        queue_state=nearest.state,
        known_queues=tuple(sorted(each.metadata.name for each in exist)),
        queue_shares=nearest.shares,
        queue_holders=nearest.holders,
        queues_above=queues[1:],
        rooms=tuple(_rooms_for(snapshot, pod)) if known.title == "Koordinator" else (),
        shared=tuple(_shared_devices(snapshot, pod)) if known.title == "HAMi" else (),
        application=_mark(pod, known.application_marks),
        min_member=parse_int64(pod.metadata.annotations.get(autoscalers.GANG_LEAST, "")),
        members=members,
        running=running,
        is_absent=known.is_in_cluster
        and pod.key not in snapshot.failed_scheduling
        and _is_absent(snapshot, pod.spec.scheduler_name),
    )
    if group is not None:
        look_at = shell_command(f"{known.look_at} {{}} -n {{}}", named, group.metadata.namespace)
        least = group.spec.min_member
        return replace(scheduler, look_at=look_at, phase=group.status.phase, min_member=least)
    if named and known.record is not None:
        is_object = _mark(pod, autoscalers.OF_OBJECTS) == named
        look_at = shell_command(f"{known.look_at} {{}} -n {{}}", named, pod.metadata.namespace)
        return replace(scheduler, look_at=look_at if is_object else "the events of the pod")
    return _with_task_group(snapshot, pod, known, scheduler) if scheduler.application else scheduler


_ABSENT = Memo[bool]()


def _is_absent(snapshot: Snapshot, name: str) -> bool:
    """Return whether nothing is named after a scheduler, and no pod has its node from it, though all pods were read."""

    def search() -> bool:
        pods = snapshot.pods
        has_placed = pods.specs.where(lambda spec: spec.scheduler_name == name) & (pods.node >= 0)
        return not has_placed.any() and not snapshot.may_run(name.removesuffix("-scheduler"))

    return _ABSENT.of(snapshot.derived, search, name)


def _pod_conditions(snapshot: Snapshot, pod: Pod) -> Iterator[Condition]:
    """Yield why the pod has no node, from its scheduler's conditions, annotations, and events."""
    event = snapshot.failed_scheduling.get(pod.key)
    if event is not None and all(event.message != condition.message for condition in pod.status.conditions):
        yield Condition(type=event.reason or FAILED_SCHEDULING, status="", message=event.message)
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and (condition.message or condition.reason):
            yield condition.brief
    if phase := pod.metadata.annotations.get(autoscalers.HAMI_PHASE):
        yield Condition(type=autoscalers.HAMI_PHASE, status=phase)


def _group_conditions(snapshot: Snapshot, group: _SchedulerGroup | None) -> Iterator[Condition]:
    """Yield what the scheduler reports about a group: its conditions, and the event of one that waits for its queue."""
    if group is None:
        return
    yield from _conditions(group.status.conditions)
    event = snapshot.failed_creates.get(("PodGroup", group.metadata.namespace, group.metadata.name))
    is_over = group.status.phase in ("Running", "Completed")
    if event is not None and event.uid in ("", group.metadata.uid) and not is_over:
        message = event.message.removeprefix(f"{event.reason}: ")
        if all(message != condition.message for condition in group.status.conditions):
            yield Condition(type=event.reason, status="", message=message)
    if not isinstance(group, other_schedulers.KaiPodGroup):
        return
    for condition in group.status.scheduling_conditions:
        where = f"{condition.type} {condition.node_pool}".rstrip()
        for why in condition.reasons:
            yield Condition(type=where, status=condition.status, reason=why.reason, message=why.message)
        if not condition.reasons:
            yield Condition(type=where, status=condition.status, reason=condition.reason, message=condition.message)


def _group(snapshot: Snapshot, pod: Pod, known: _KnownScheduler) -> _SchedulerGroup | None:
    """Return the pod's group: by the name that the pod gives, else by a common owner."""
    if known.record is None:
        return None
    groups = [it for it in snapshot.of(known.record) if it.metadata.namespace == pod.metadata.namespace]
    named = _group_name(pod)
    owners = {owner.uid for owner in pod.metadata.owner_references if owner.uid}
    return next((group for group in groups if group.metadata.name == named), None) or next(
        (group for group in groups if owners & {owner.uid for owner in group.metadata.owner_references}), None
    )


def _mark(pod: Pod, keys: Iterable[str]) -> str:
    """Return the value of the first of these labels and annotations that the pod has, or an empty string."""
    both = {**pod.metadata.annotations, **pod.metadata.labels}
    return next((both[key] for key in keys if both.get(key)), "")


def _group_name(pod: Pod) -> str:
    return _mark(pod, autoscalers.GROUP_NAMES)


def _count_members(snapshot: Snapshot, pod: Pod, is_one: Callable[[Pod], bool]) -> tuple[int, int]:
    pods = snapshot.pods
    rows = [row for row in range(len(pods)) if pods.namespaces[row] == pod.metadata.namespace and is_one(pods[row])]
    is_new = pod.key not in pods.rows
    return sum(bool(pods.node_names[row]) for row in rows), len(rows) + is_new


def _with_task_group(snapshot: Snapshot, pod: Pod, known: _KnownScheduler, scheduler: OtherScheduler) -> OtherScheduler:
    """Add the pod's task group of YuniKorn. One pod of an application has all its task groups in an annotation."""
    named = pod.metadata.annotations.get(autoscalers.TASK_GROUP, "")
    if not named:
        return scheduler

    def is_of_application(other: Pod) -> bool:
        return _mark(other, known.application_marks) == scheduler.application

    pods = snapshot.pods
    others = (pods[row] for row in range(len(pods)) if pods.namespaces[row] == pod.metadata.namespace)
    written = (
        group
        for member in (pod, *filter(is_of_application, others))
        for group in _decode_annotation(
            member.metadata.annotations.get(autoscalers.TASK_GROUPS, ""), list[other_schedulers.TaskGroup]
        )
    )
    group = next((task_group for task_group in written if task_group.name == named), None)
    running, members = _count_members(
        snapshot,
        pod,
        lambda other: is_of_application(other) and other.metadata.annotations.get(autoscalers.TASK_GROUP, "") == named,
    )
    least = group.min_member if group is not None else None
    return replace(scheduler, task_group=named, min_member=least, members=members, running=running)
