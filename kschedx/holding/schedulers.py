"""Schedulers that are not kube-scheduler, and what their objects say of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.annotations import GROUP_NAMES
from kschedx.api.other_schedulers import Group, KaiPodGroup, VolcanoPodGroup, VolcanoQueue
from kschedx.api.types import Pod
from kschedx.holding.amounts import amount
from kschedx.holding.model import OtherScheduler, QueueShare, Said
from kschedx.snapshot.snapshot import Snapshot


class Known(Struct, frozen=True, kw_only=True):
    """A scheduler by the name that pods have in spec.schedulerName."""

    title: str
    look_at: str
    record: type[Group] | None = None
    queue_labels: tuple[str, ...] = ()
    """The labels by which a pod names its queue, or quota; the first that it has counts."""
    application_labels: tuple[str, ...] = ()


_VOLCANO = Known(
    title="Volcano",
    look_at="kubectl describe podgroups.scheduling.volcano.sh",
    record=VolcanoPodGroup,
)
_KAI = Known(
    title="KAI",
    look_at="kubectl describe podgroups.scheduling.run.ai",
    record=KaiPodGroup,
    queue_labels=("kai.scheduler/queue", "runai/queue"),
)

SCHEDULERS: Mapping[str, Known] = {
    "volcano": _VOLCANO,
    "kai-scheduler": _KAI,
    "runai-scheduler": Known(title="Run:ai", look_at=_KAI.look_at, record=KaiPodGroup, queue_labels=_KAI.queue_labels),
    "koord-scheduler": Known(
        title="Koordinator",
        look_at="the logs of koord-scheduler, and kubectl describe podgroups.scheduling.sigs.k8s.io",
        queue_labels=("quota.scheduling.koordinator.sh/name",),
    ),
    "yunikorn": Known(
        title="YuniKorn",
        look_at="the events of the pod, and YuniKorn's own web page of queues",
        queue_labels=("yunikorn.apache.org/queue", "queue"),
        application_labels=("yunikorn.apache.org/app-id", "applicationId"),
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
    found = OtherScheduler(
        name=pod.spec.scheduler_name,
        title=known.title,
        look_at=known.look_at,
        queue=_label(pod, known.queue_labels),
        application=_label(pod, known.application_labels),
    )
    group = _group(snapshot, pod, known)
    if group is None:
        return found
    running, members = _members(snapshot, pod, group.metadata.name)
    queue = next((one for one in snapshot.of(VolcanoQueue) if one.metadata.name == group.spec.queue), None)
    return replace(
        found,
        look_at=f"{known.look_at} {group.metadata.name} -n {group.metadata.namespace}",
        group=f"{group.metadata.namespace}/{group.metadata.name}",
        phase=group.status.phase,
        said=tuple(
            Said(type=one.type, status=one.status, reason=one.reason, message=one.message)
            for one in group.status.conditions
        ),
        queue=group.spec.queue or found.queue,
        queue_state=queue.status.state if queue is not None else "",
        queue_shares=tuple(_shares(queue)) if queue is not None else (),
        min_member=group.spec.min_member,
        members=members,
        running=running,
    )


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


def _label(pod: Pod, keys: Iterable[str]) -> str:
    return next((pod.metadata.labels[key] for key in keys if pod.metadata.labels.get(key)), "")


def _shares(queue: VolcanoQueue) -> Iterator[QueueShare]:
    """Of each resource that the queue may have so much of and no more."""
    for resource, most in sorted(queue.spec.capability.items()):
        given = amount(resource, queue.status.allocated.get(resource, 0))
        yield QueueShare(resource=resource, allocated=given, capability=amount(resource, most))


def _group_name(pod: Pod) -> str:
    both = {**pod.metadata.annotations, **pod.metadata.labels}
    return next((both[key] for key in GROUP_NAMES if both.get(key)), "")


def _members(snapshot: Snapshot, pod: Pod, group: str) -> tuple[int, int]:
    """How many pods of the group have a node, and how many there are."""
    pods = snapshot.pods
    rows = [
        row
        for row in range(len(pods))
        if pods.namespaces[row] == pod.metadata.namespace and _group_name(pods[row]) == group
    ]
    is_new = pod.key not in pods.rows
    return sum(bool(pods.node_names[row]) for row in rows), len(rows) + is_new
