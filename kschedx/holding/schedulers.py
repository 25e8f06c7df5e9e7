"""Schedulers that are not kube-scheduler, and what their objects say of a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.annotations import (
    GANG_LEAST,
    GROUP_NAMES,
    TASK_GROUP,
    TASK_GROUPS,
    YUNIKORN_APPLICATION,
    YUNIKORN_QUEUE,
)
from kschedx.api.other_schedulers import (
    QUOTA_NAME,
    Group,
    KaiPodGroup,
    KoordinatorPodGroup,
    TaskGroup,
    VolcanoPodGroup,
)
from kschedx.api.types import Pod
from kschedx.holding.model import OtherScheduler, Queue, Said
from kschedx.holding.queues import conditions, decoded, queues_of
from kschedx.holding.reservations import moves_of, rooms_for
from kschedx.snapshot.snapshot import Snapshot


class Known(Struct, frozen=True, kw_only=True):
    """A scheduler by the name that pods have in spec.schedulerName."""

    title: str
    look_at: str
    record: type[Group] | None = None
    queue_marks: tuple[str, ...] = ()
    """The labels and annotations by which a pod names its queue, or quota; the first that it has counts."""
    application_marks: tuple[str, ...] = ()


_VOLCANO = Known(
    title="Volcano",
    look_at="kubectl describe podgroups.scheduling.volcano.sh",
    record=VolcanoPodGroup,
    queue_marks=("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"),
)
_KAI = Known(
    title="KAI",
    look_at="kubectl describe podgroups.scheduling.run.ai",
    record=KaiPodGroup,
    queue_marks=("kai.scheduler/queue", "runai/queue"),
)

SCHEDULERS: Mapping[str, Known] = {
    "volcano": _VOLCANO,
    "kai-scheduler": _KAI,
    "runai-scheduler": Known(title="Run:ai", look_at=_KAI.look_at, record=KaiPodGroup, queue_marks=_KAI.queue_marks),
    "koord-scheduler": Known(
        title="Koordinator",
        look_at="kubectl describe podgroups.scheduling.sigs.k8s.io",
        record=KoordinatorPodGroup,
        queue_marks=(QUOTA_NAME,),
    ),
    "yunikorn": Known(
        title="YuniKorn",
        look_at="the events of the pod, and YuniKorn's own web page of queues",
        queue_marks=(YUNIKORN_QUEUE, "queue"),
        application_marks=(YUNIKORN_APPLICATION, "applicationId", "spark-app-selector"),
    ),
    "kube-batch": Known(title="kube-batch", look_at="kubectl describe podgroups"),
    "scheduler-plugins-scheduler": Known(
        title="scheduler-plugins", look_at="its KubeSchedulerConfiguration: with it, --config answers for this pod"
    ),
    "stork": Known(title="Stork", look_at="the logs of stork-scheduler"),
}
"""By spec.schedulerName, as their charts and manuals install them."""


def other_scheduler(snapshot: Snapshot, pod: Pod) -> OtherScheduler | None:
    """The scheduler of a pod, where it is a known one; None for any other name."""
    known = SCHEDULERS.get(pod.spec.scheduler_name)
    if known is None:
        return None
    group = _group(snapshot, pod, known)
    named = group.metadata.name if group is not None else _group_name(pod)
    running, members = _members(snapshot, pod, named) if named else (0, 0)
    in_group = group.spec.queue if group is not None else ""
    queues = queues_of(snapshot, known.title, pod, in_group or _mark(pod, known.queue_marks))
    nearest = queues[0] if queues else Queue(name=in_group or _mark(pod, known.queue_marks))
    found = OtherScheduler(
        name=pod.spec.scheduler_name,
        title=known.title,
        look_at=known.look_at,
        group=f"{pod.metadata.namespace}/{named}" if named else "",
        said=(*_said_of(pod), *moves_of(snapshot, pod), *_said_of_group(group), *nearest.said),
        queue=nearest.name,
        queue_state=nearest.state,
        queue_shares=nearest.shares,
        queues_above=queues[1:],
        rooms=tuple(rooms_for(snapshot, pod)) if known.title == "Koordinator" else (),
        application=_mark(pod, known.application_marks),
        min_member=_least(pod),
        members=members,
        running=running,
    )
    if group is not None:
        look_at = f"{known.look_at} {named} -n {group.metadata.namespace}"
        least = group.spec.min_member
        return replace(found, look_at=look_at, phase=group.status.phase, min_member=least)
    return _with_task_group(snapshot, pod, known, found) if found.application else found


def _said_of(pod: Pod) -> Iterator[Said]:
    """Why the pod has no node, as its scheduler wrote it into the pod."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and (one.message or one.reason):
            yield Said(type=one.type, status=one.status, reason=one.reason, message=one.message)


def _said_of_group(group: Group | None) -> Iterator[Said]:
    if group is None:
        return
    yield from conditions(group.status.conditions)
    if not isinstance(group, KaiPodGroup):
        return
    for one in group.status.scheduling_conditions:
        where = f"{one.type} {one.node_pool}".rstrip()
        for why in one.reasons:
            yield Said(type=where, status=one.status, reason=why.reason, message=why.message)
        if not one.reasons:
            yield Said(type=where, status=one.status, reason=one.reason, message=one.message)


def _least(pod: Pod) -> int | None:
    """How many pods a gang of Koordinator's annotations needs."""
    written = pod.metadata.annotations.get(GANG_LEAST, "")
    return int(written) if written.isascii() and written.isdigit() else None


def _group(snapshot: Snapshot, pod: Pod, known: Known) -> Group | None:
    """The pod's group: by the name that the pod has for it, else by an owner of both."""
    if known.record is None:
        return None
    groups = [one for one in snapshot.of(known.record) if one.metadata.namespace == pod.metadata.namespace]
    named = _group_name(pod)
    owners = {owner.uid for owner in pod.metadata.owner_references if owner.uid}
    return next((one for one in groups if one.metadata.name == named), None) or next(
        (one for one in groups if owners & {owner.uid for owner in one.metadata.owner_references}), None
    )


def _mark(pod: Pod, keys: Iterable[str]) -> str:
    """Of labels and annotations the first that the pod has."""
    both = {**pod.metadata.annotations, **pod.metadata.labels}
    return next((both[key] for key in keys if both.get(key)), "")


def _group_name(pod: Pod) -> str:
    return _mark(pod, GROUP_NAMES)


def _members(snapshot: Snapshot, pod: Pod, group: str) -> tuple[int, int]:
    """How many pods of the group have a node, and how many there are."""
    return _counted(snapshot, pod, lambda other: _group_name(other) == group)


def _counted(snapshot: Snapshot, pod: Pod, is_one: Callable[[Pod], bool]) -> tuple[int, int]:
    pods = snapshot.pods
    rows = [row for row in range(len(pods)) if pods.namespaces[row] == pod.metadata.namespace and is_one(pods[row])]
    is_new = pod.key not in pods.rows
    return sum(bool(pods.node_names[row]) for row in rows), len(rows) + is_new


def _with_task_group(snapshot: Snapshot, pod: Pod, known: Known, found: OtherScheduler) -> OtherScheduler:
    """YuniKorn's: all groups of an application are written down in one of its pods."""
    named = pod.metadata.annotations.get(TASK_GROUP, "")
    if not named:
        return found

    def is_of_application(other: Pod) -> bool:
        return _mark(other, known.application_marks) == found.application

    pods = snapshot.pods
    others = (pods[row] for row in range(len(pods)) if pods.namespaces[row] == pod.metadata.namespace)
    written = (
        group
        for one in (pod, *filter(is_of_application, others))
        for group in decoded(one.metadata.annotations.get(TASK_GROUPS, ""), list[TaskGroup])
    )
    group = next((one for one in written if one.name == named), None)
    running, members = _counted(
        snapshot,
        pod,
        lambda other: is_of_application(other) and other.metadata.annotations.get(TASK_GROUP, "") == named,
    )
    least = group.min_member if group is not None else None
    return replace(found, task_group=named, min_member=least, members=members, running=running)
