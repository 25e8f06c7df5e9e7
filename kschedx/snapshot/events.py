"""The newest FailedScheduling event of each pod, and events of controllers about pods that they could not create."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.scalars import nanoseconds
from kschedx.snapshot.pods import PodTable

KIND = "Event"
FAILED_SCHEDULING = "FailedScheduling"
KARPENTER = "karpenter"
"""Karpenter's name as the reporter of events."""
FAILED_SCALE_UP = "FailedScaleUp"
OF_AUTOSCALER = frozenset({"NotTriggerScaleUp", "TriggeredScaleUp", FAILED_SCALE_UP})
SYNC_ERROR = "SyncError"
"""From vCluster's syncer: the host cluster refuses a pod of the virtual cluster."""
CLAIM_REFUSED = "FailedResourceClaimCreation"
"""From kube-controller-manager: the API server refuses a ResourceClaim that a pod's template describes."""
FAILED_CREATE = "FailedCreate"
"""From a ReplicaSet, StatefulSet, DaemonSet, or Job: its pods are refused."""
OF_CLAIMS = frozenset({"ProvisioningFailed", "FailedBinding"})
"""Why a claim has no volume; the message is the storage system's."""
ALREADY_ACTIVE = "JobAlreadyActive"
OF_CRON_JOBS = frozenset(
    {ALREADY_ACTIVE, "InvalidSchedule", "MissSchedule", "TooManyMissedTimes", "UnknownTimeZone", "UnparseableSchedule"}
)
"""Why a CronJob does not start a Job (pkg/controller/cronjob/cronjob_controllerv2.go)."""
OF_VOLUMES = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
OF_SANDBOX = frozenset({"FailedCreatePodSandBox", "NetworkNotReady"})
OF_DEVICES = frozenset({"FailedPrepareDynamicResources"})
BY_KUBELET = frozenset({*OF_VOLUMES, *OF_SANDBOX, *OF_DEVICES, "Failed", "Unhealthy"})
"""Warnings about pods that have a node and do not start."""
_REPEATS_STATUS = "Error: "
"""The start of a kubelet event that only repeats the container's status."""
_UNMADE = {"PersistentVolumeClaim": OF_CLAIMS, "CronJob": OF_CRON_JOBS, "Pod": frozenset({SYNC_ERROR, CLAIM_REFUSED})}
"""Kind to the reasons why its dependents are not created."""
REASONS = frozenset({FAILED_SCHEDULING, FAILED_CREATE, *OF_AUTOSCALER, *BY_KUBELET}.union(*_UNMADE.values()))
GROUPS = frozenset({"", "events.k8s.io"})
"""Every event is served in both groups, with different field names."""

NOTE_LENGTH = 1024
"""The bytes to which kube-scheduler truncates a message (truncateMessage in pkg/scheduler/schedule_one.go)."""
CUT = " ..."


class _About(Struct, rename="camel", gc=False):
    kind: str | None = ""
    namespace: str | None = ""
    name: str | None = ""
    uid: str | None = ""


class _Series(Struct, rename="camel", gc=False):
    count: int | None = 0
    last_observed_time: str | None = ""


class _Source(Struct, gc=False):
    component: str | None = ""


class EventItem(Struct, kw_only=True, rename="camel", tag_field="kind", tag="Event", gc=False):
    """An event of either group, with the fields of both."""

    api_version: str = ""
    reason: str | None = ""
    involved_object: _About | None = None
    regarding: _About | None = None
    message: str | None = ""
    note: str | None = ""
    series: _Series | None = None
    event_time: str | None = ""
    count: int | None = 0
    last_timestamp: str | None = ""
    deprecated_count: int | None = 0
    deprecated_last_timestamp: str | None = ""
    reporting_component: str | None = ""
    reporting_controller: str | None = ""
    source: _Source | None = None
    deprecated_source: _Source | None = None

    @property
    def is_known(self) -> bool:
        return self.api_version.rpartition("/")[0] in GROUPS

    @property
    def about(self) -> _About:
        return self.involved_object or self.regarding or _About()

    @property
    def reporter(self) -> str:
        """kube-scheduler reports with the schedulerName of the pod's profile; autoscalers use the same reason."""
        source = self.source or _Source()
        named = self.reporting_component or self.reporting_controller or source.component
        return named or (self.deprecated_source or _Source()).component or ""

    @property
    def last_seen(self) -> str:
        """As RFC 3339; empty if unknown."""
        series = self.series.last_observed_time if self.series else ""
        return series or self.last_timestamp or self.deprecated_last_timestamp or self.event_time or ""

    @property
    def times(self) -> int:
        series = self.series.count if self.series else 0
        return max(series or 0, self.count or 0, self.deprecated_count or 0, 1)


_Age: TypeAlias = tuple[int, int, str, str, str]


def is_cut(message: str) -> bool:
    """Return whether the message may be truncated."""
    return len(message.encode()) >= NOTE_LENGTH and message.endswith(CUT)


class ScaleUpEvent(Struct, frozen=True, kw_only=True):
    """The last event of cluster-autoscaler about a pod."""

    reason: str
    message: str
    last_seen: str = ""


class FailedScheduling(Struct, frozen=True, kw_only=True):
    """An event about a pod; repetitions are counted, not kept."""

    message: str
    """It may be truncated to NOTE_LENGTH, with CUT at its end."""
    count: int = 1
    last_seen: str = ""
    """As RFC 3339; empty if unknown."""
    uid: str = ""
    """The pod's uid, because a later pod may have the same name; empty if unknown."""

    @property
    def is_cut(self) -> bool:
        return is_cut(self.message)


class FailedCreate(Struct, frozen=True, kw_only=True):
    """The last event about an object that a controller could not create: a pod, a claim's volume, a CronJob's Job, or a
    pod's copy in the host cluster."""

    message: str
    count: int = 1
    last_seen: str = ""
    """As RFC 3339; empty if unknown."""
    uid: str = ""
    """The uid of the owner; empty if unknown."""


class FailedSchedulingEvents:
    """Collects events and keeps only a fraction: dumps contain tens of thousands."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], tuple[_Age, FailedScheduling]] = {}
        """Pod (`namespace/name`) and reporter to the newest event with its time."""
        self._scaling: dict[str, tuple[_Age, str, ScaleUpEvent]] = {}
        """Pod to the newest event of an autoscaler, its time, and the pod's uid."""
        self._warnings: dict[str, tuple[_Age, FailedScheduling]] = {}
        """Pod to the newest warning of its kubelet with its time."""
        self._unmade: dict[tuple[str, str, str], tuple[_Age, FailedCreate]] = {}
        """Kind, namespace, and name of an owner to the newest event of its controller with its time."""

    def add(self, event: EventItem) -> None:
        """Add an event with any reason."""
        about = event.about
        if event.reason in OF_AUTOSCALER and about.kind == "Pod" and event.is_known:
            self._add_scaling(event, f"{about.namespace or 'default'}/{about.name}")
        if event.reason in BY_KUBELET and about.kind == "Pod" and event.is_known and not _repeats(event):
            self._add_warning(event, f"{about.namespace or 'default'}/{about.name}")
        told = _UNMADE.get(about.kind or "", ())
        if (event.reason == FAILED_CREATE or event.reason in told) and about.kind and event.is_known:
            self._add_unmade(event, (about.kind, about.namespace or "default", about.name or ""))
        if event.reason != FAILED_SCHEDULING or about.kind != "Pod" or not event.is_known:
            return
        key = f"{about.namespace or 'default'}/{about.name}", event.reporter
        age = _age(event)
        if key not in self._newest or self._newest[key][0] <= age:
            message = event.message or event.note or ""
            scheduling = FailedScheduling(
                message=message, count=event.times, last_seen=event.last_seen, uid=about.uid or ""
            )
            self._newest[key] = age, scheduling

    def _add_scaling(self, event: EventItem, key: str) -> None:
        age = _age(event)
        if key not in self._scaling or self._scaling[key][0] <= age:
            found = ScaleUpEvent(
                reason=event.reason or "", message=event.message or event.note or "", last_seen=event.last_seen
            )
            self._scaling[key] = age, event.about.uid or "", found

    def _add_warning(self, event: EventItem, key: str) -> None:
        age = _age(event)
        if key not in self._warnings or self._warnings[key][0] <= age:
            message = f"{event.reason}: {event.message or event.note or ''}"
            uid = event.about.uid or ""
            scheduling = FailedScheduling(message=message, count=event.times, last_seen=event.last_seen, uid=uid)
            self._warnings[key] = age, scheduling

    def _add_unmade(self, event: EventItem, key: tuple[str, str, str]) -> None:
        age = _age(event)
        if key not in self._unmade or self._unmade[key][0] <= age:
            message = event.message or event.note or ""
            message = message if event.reason == FAILED_CREATE else f"{event.reason}: {message}"
            uid = event.about.uid or ""
            create = FailedCreate(message=message, count=event.times, last_seen=event.last_seen, uid=uid)
            self._unmade[key] = age, create

    def of_makers(self) -> dict[tuple[str, str, str], FailedCreate]:
        """Return the last FailedCreate by kind, namespace, and name of the owner."""
        return {key: event for key, (_, event) in sorted(self._unmade.items())}

    def of_kubelets(self, pods: PodTable) -> dict[str, FailedScheduling]:
        """Return the newest kubelet warning by pod, for pods with a node."""
        found: dict[str, FailedScheduling] = {}
        for pod, (_, event) in sorted(self._warnings.items()):
            row = pods.rows.get(pod)
            if row is not None and pods.node_names[row] and event.uid in ("", pods.uids[row]):
                found[pod] = event
        return found

    def of_autoscaler(self, pods: PodTable) -> dict[str, ScaleUpEvent]:
        """Return the last event of cluster-autoscaler by pod, for pods without a node."""
        found: dict[str, ScaleUpEvent] = {}
        for pod, (_, uid, event) in sorted(self._scaling.items()):
            row = pods.rows.get(pod)
            if row is not None and not pods.node_names[row] and uid in ("", pods.uids[row]):
                found[pod] = event
        return found

    def of_karpenter(self, pods: PodTable) -> dict[str, FailedScheduling]:
        """Return the last event of Karpenter by pod, for pods without a node."""
        return {pod: event for pod, reporter, event in self._of_waiting(pods) if reporter == KARPENTER}

    def of_pending(self, pods: PodTable) -> dict[str, FailedScheduling]:
        """Return the last event of the pod's own scheduler by pod, for pods without a node."""
        return {
            pod: event
            for pod, reporter, event in self._of_waiting(pods)
            if reporter == pods.specs[pods.rows[pod]].scheduler_name
        }

    def _of_waiting(self, pods: PodTable) -> Iterator[tuple[str, str, FailedScheduling]]:
        """Yield pods without a node, with reporter and event. Events of an earlier pod with the same name are left
        out."""
        for (pod, reporter), (_, event) in sorted(self._newest.items()):
            row = pods.rows.get(pod)
            if row is None or pods.node_names[row]:
                continue
            if not event.uid or not pods.uids[row] or event.uid == pods.uids[row]:
                yield pod, reporter, event


def _repeats(event: EventItem) -> bool:
    return event.reason == "Failed" and (event.message or event.note or "").startswith(_REPEATS_STATUS)


def _age(event: EventItem) -> _Age:
    """Return nanoseconds and a tiebreaker. An event without a time is older than all others."""
    try:
        time = nanoseconds(event.last_seen)
    except InputError:
        time = -1
    return time, event.times, event.reason or "", event.message or event.note or "", event.about.uid or ""
