"""The newest FailedScheduling event of each pod, and events of controllers about pods that they could not create."""

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.scalars import nanoseconds, newest
from kschedx.kube.types import controller_of
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.pods import PodTable

KIND = "Event"
FAILED_SCHEDULING = "FailedScheduling"
_YUNIKORN, _INFORMATIONAL = "yunikorn", "Informational"
"""YuniKorn's name as the reporter of events, and their reason: why its core allocates nothing for a pending pod."""
_SCHEDULED = "Scheduled"  # from a scheduler: it has assigned the pod to a node
KARPENTER, NOMINATED = "karpenter", "Nominated"
"""Karpenter's name as the reporter of events, and their reason: it has a node, or adds one, for a pending pod."""
FAILED_SCALE_UP, TRIGGERED_SCALE_UP = "FailedScaleUp", "TriggeredScaleUp"
_OF_AUTOSCALER = frozenset({"NotTriggerScaleUp", TRIGGERED_SCALE_UP, FAILED_SCALE_UP})
OF_NODE_GROUPS = frozenset({"FailedToScaleUpGroup", "ScaleUpFailed", "ScaleUpTimedOut"})
"""From cluster-autoscaler, about its status ConfigMap: why a node group did not grow."""
_NODE_GROUP_FAILED = lazy_pattern(
    r"(?:Scale-up failed for|Failed adding \d+ nodes to|Nodes added to) group (?P<group>\S+?):? "
    r"(?:due to )?(?P<error>.+)",
    re.DOTALL,
)
_RESIZED_GROUP = lazy_pattern(r"\{(\S+) \d+->\d+\b")
BACKED_OFF = "in backoff after failed scale-up"
_SHORT_OF = "Insufficient "  # reasons of NotTriggerScaleUp, and of kube-scheduler
SYNC_ERROR = "SyncError"  # from vCluster's syncer: the host cluster refuses a pod of the virtual cluster
CLAIM_REFUSED = "FailedResourceClaimCreation"
"""From kube-controller-manager: the API server refuses a ResourceClaim that a pod's template describes."""
_FAILED_CREATE = "FailedCreate"  # from a ReplicaSet, StatefulSet, DaemonSet, or Job: its pods are refused
PROVISIONING_FAILED = "ProvisioningFailed"
"""From a driver that creates no volume for a claim; the message is the storage system's."""
FAILED_BINDING = "FailedBinding"
"""From kube-controller-manager: a claim is not bound, or the claim of a pod's ephemeral volume cannot be created."""
_UNKNOWN_SOURCE = "UnrecognizedDataSourceKind"
"""From volume-data-source-validator: no VolumePopulator fills claims from such objects."""
_OF_CLAIMS = frozenset({PROVISIONING_FAILED, FAILED_BINDING, _UNKNOWN_SOURCE})  # why a claim has no volume
EXTERNAL_PROVISIONING = "ExternalProvisioning"
"""From kube-controller-manager: a claim waits for the driver of its class."""
REPORTERS_OF_CLAIMS = {
    EXTERNAL_PROVISIONING: "kube-controller-manager",
    _UNKNOWN_SOURCE: "volume-data-source-validator",
}
"""Who sends these events about claims; the driver sends the others."""
_MOST_SYNCS = 5  # reports of `EXTERNAL_PROVISIONING` after which the driver counts as missing: one every 15 seconds
ALREADY_ACTIVE = "JobAlreadyActive"
OF_CRON_JOBS = frozenset(
    {
        *(ALREADY_ACTIVE, "InvalidSchedule", "MissSchedule", "TooManyMissedTimes"),
        *("UnknownTimeZone", "UnparseableSchedule", "FailedNeedsStart"),
    }
)
"""Why a CronJob does not start a Job (pkg/controller/cronjob/cronjob_controllerv2.go; the last one before 1.22)."""
OF_VOLUMES = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_NO_INTERFACE = "BranchAllocationFailed"  # from the VPC resource controller of EKS
OF_SANDBOX = frozenset({"FailedCreatePodSandBox", "NetworkNotReady", _NO_INTERFACE})
OF_DEVICES = frozenset({"FailedPrepareDynamicResources"})
NOT_STOPPED = "FailedKillPod"
_BY_KUBELET = frozenset(
    {*OF_VOLUMES, *OF_SANDBOX, *OF_DEVICES, NOT_STOPPED, "Failed", "Unhealthy", "FailedToRetrieveImagePullSecret"}
)
"""Warnings about pods that have a node and do not start or end."""
_AFTERMATH = lazy_pattern(
    r"unmounted volumes=.*(?:timed out|deadline exceeded)|[Tt]imeout expired waiting for volumes"
    r"|failed to sync \w+ cache|(?P<address>failed to assign an IP address)|is reserved for \""
)
"""Warnings that may only follow from another one about the same pod, or that pass soon."""
PULLING = "Pulling"  # from a kubelet, about an image
_BACK_OFF = "BackOff"  # from a kubelet, about a container that it restarts
_PREEMPTED = "Preempted"  # from kube-scheduler, about a victim; `related` is the preemptor
OF_EVICTION = frozenset({_PREEMPTED, "Evicted", "EvictedByVPA", "ScaleDown", "TaintManagerEviction"})
"""From what ends a pod that has a node: kube-scheduler, Karpenter, a kubelet, the VPA's updater, cluster-autoscaler, or
the taint manager."""
_REPEATS_STATUS = "Error: "  # the start of a kubelet event that only repeats the container's status
_NOT_ENQUEUED = "Unschedulable"  # from Volcano: why it does not enqueue a PodGroup, or schedule its pods
_NO_CAPACITY = "InsufficientCapacityError"
"""From Karpenter: the cloud launches no node for a NodeClaim, which Karpenter then deletes."""
SYNC_LOAD_BALANCER = "SyncLoadBalancerFailed"
"""From the service controller: why a Service has no load balancer."""
_UNMADE = {
    "Service": frozenset({SYNC_LOAD_BALANCER}),
    "PersistentVolumeClaim": _OF_CLAIMS,
    "CronJob": OF_CRON_JOBS,
    "Pod": frozenset({SYNC_ERROR, CLAIM_REFUSED, FAILED_BINDING}),
    "NodeClaim": frozenset({_NO_CAPACITY}),
    "PodGroup": frozenset({_NOT_ENQUEUED}),
}
"""Kind to the reasons why its dependents are not created."""
REASONS = frozenset(
    {
        *(FAILED_SCHEDULING, _INFORMATIONAL, NOMINATED, _SCHEDULED, _FAILED_CREATE, EXTERNAL_PROVISIONING),
        *(PULLING, _BACK_OFF),
        *(*_OF_AUTOSCALER, *OF_NODE_GROUPS, *_BY_KUBELET, *OF_EVICTION),
    }.union(*_UNMADE.values())
)
_OF_PENDING = ((_YUNIKORN, _INFORMATIONAL), (KARPENTER, NOMINATED), ("kai-scheduler", _NOT_ENQUEUED))
"""Reporters with the reasons of their events about pending pods, beside FailedScheduling."""
GROUPS = frozenset({"", "events.k8s.io"})  # every event is served in both groups, with different field names

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
    related: _About | None = None
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
    def text(self) -> str:
        return self.message or self.note or ""

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


class RecordedEvent(Struct, frozen=True, kw_only=True):
    """The last event about an object; repetitions are counted, not kept."""

    reason: str = ""
    message: str  # it may be truncated to NOTE_LENGTH, with CUT at its end
    count: int = 1
    last_seen: str = ""  # as RFC 3339; empty if unknown
    uid: str = ""  # the object's uid, because a later object may have the same name; empty if unknown

    @property
    def is_cut(self) -> bool:
        return is_cut(self.message)


class RecordedPreemption(Struct, frozen=True, kw_only=True):
    """A pod that kube-scheduler preempted, and the pod for which it did."""

    namespace: str
    name: str
    uid: str
    last_seen: str
    by: str = ""  # `namespace/name` of the preemptor; empty if the event does not name it


_Key = TypeVar("_Key", bound=Hashable)
_Newest: TypeAlias = dict[_Key, tuple[_Age, RecordedEvent]]


class RecordedEvents:
    """Collects events and keeps only a fraction: dumps contain tens of thousands."""

    def __init__(self) -> None:
        self._scheduling: _Newest[tuple[str, str]] = {}  # by pod (`namespace/name`) and reporter
        self._assigned: _Newest[str] = {}  # a scheduler's events about a pod that it has assigned, by pod
        self._scaling: _Newest[str] = {}  # events of cluster-autoscaler by pod
        self._failed_scaling: _Newest[str] = {}  # failed scale-ups by pod
        self._node_groups: _Newest[str] = {}  # failed scale-ups by node group; the message is the error
        self._warnings: _Newest[str] = {}  # warnings of a kubelet by pod
        self._aftermath: _Newest[str] = {}  # warnings that follow from others, by pod
        self._progress: _Newest[str] = {}  # what a kubelet does by pod: it pulls an image, or restarts a container
        self._evictions: _Newest[str] = {}  # events of what ended a pod, by pod
        self._preemptions: dict[tuple[str, str, str], RecordedPreemption] = {}
        """By namespace, name, and uid of the victim."""
        self._unmade: _Newest[tuple[str, str, str]] = {}
        """Events of controllers about an object that they could not create: a pod, a claim's volume, a CronJob's Job,
        a PodGroup's pods, or a pod's copy in the host cluster. By kind, namespace, and name of the owner."""
        self._awaited: _Newest[tuple[str, str, str]] = {}
        """Events about claims for which no driver acts, by the same key."""

    def add(self, event: EventItem) -> None:
        """Add an event with any reason."""
        about = event.about
        if not event.is_known or not about.kind:
            return
        namespace = about.namespace or "default"
        pod = f"{namespace}/{about.name}" if about.kind == "Pod" else ""
        if event.reason == _SCHEDULED and pod:
            _keep(self._assigned, pod, event)
        if event.reason in _OF_AUTOSCALER and pod:
            _keep(self._scaling, pod, event)
        if event.reason == FAILED_SCALE_UP and pod:
            _keep(self._failed_scaling, pod, event)
        if event.reason in OF_NODE_GROUPS and (failed := _NODE_GROUP_FAILED.match(event.text)):
            _keep(self._node_groups, failed["group"], replace(event, message=failed["error"]))
        if event.reason in OF_EVICTION and pod:
            _keep(self._evictions, pod, event, prefix=event.reporter)
        if event.reason == _PREEMPTED and pod:
            preemption = _preemption(event, namespace)
            self._preemptions[namespace, preemption.name, preemption.uid] = preemption
        if event.reason in _BY_KUBELET and pod and not _repeats(event):
            is_aftermath = _AFTERMATH.search(event.text) is not None
            _keep(self._aftermath if is_aftermath else self._warnings, pod, event, prefix=event.reason or "")
        if event.reason in (PULLING, _BACK_OFF) and pod and "Back-off pulling" not in event.text:
            _keep(self._progress, pod, event, prefix=event.reason or "")
        if event.reason == _FAILED_CREATE or event.reason in _UNMADE.get(about.kind, ()):
            key = (about.kind, namespace, about.name or "")
            _keep(self._unmade, key, event, prefix="" if event.reason == _FAILED_CREATE else event.reason or "")
        if event.reason == EXTERNAL_PROVISIONING and event.times >= _MOST_SYNCS:
            _keep(self._awaited, (about.kind, namespace, about.name or ""), event, prefix=EXTERNAL_PROVISIONING)
        is_own = (event.reporter, event.reason) in _OF_PENDING
        if pod and (event.reason == FAILED_SCHEDULING or is_own):
            _keep(self._scheduling, (pod, event.reporter), event)

    def of_unread_pods(self) -> dict[str, tuple[str, RecordedEvent]]:
        """Return the reporter and its last event by pod, for the pods that schedulers report as pending."""
        return {
            pod: (reporter, event)
            for (pod, reporter), (_, event) in sorted(self._scheduling.items())
            if reporter != KARPENTER
        }

    def of_controllers(self) -> dict[tuple[str, str, str], RecordedEvent]:
        """Return the last event of a controller by kind, namespace, and name of the owner. A driver's own event about a
        claim goes first."""
        return {key: event for key, (_, event) in sorted({**self._awaited, **self._unmade}.items())}

    def of_kubelets(self, pods: PodTable) -> dict[str, RecordedEvent]:
        """Return the newest kubelet warning by pod, for pods with a node; without one, what the kubelet does."""
        kinds = (self._progress, self._aftermath, self._warnings)
        progress, aftermath, warnings = (_pod_events(each, pods, have_nodes=True) for each in kinds)
        found = dict(warnings)
        for pod, event in aftermath.items():
            cause = found.setdefault(pod, event)
            if not _follows(event, cause) and newest((cause.last_seen, event.last_seen)) == event.last_seen:
                found[pod] = event
        for pod, event in progress.items():
            warning = found.setdefault(pod, event)
            is_past = event.reason == PULLING and warning.reason in (*OF_VOLUMES, *OF_SANDBOX)
            if is_past and newest((warning.last_seen, event.last_seen)) != warning.last_seen:
                found[pod] = event  # a kubelet pulls images once it has the volumes and the network
        return found

    def of_evictions(self, pods: PodTable) -> dict[str, RecordedEvent]:
        """Return the newest event of what ended a pod by pod; the message starts with the reporter."""
        return _pod_events(self._evictions, pods, have_nodes=True)

    def of_preemptions(self) -> tuple[RecordedPreemption, ...]:
        """Return the preempted pods, the newest first."""
        preemptions = sorted(self._preemptions.values(), key=lambda each: (each.namespace, each.name, each.uid))
        return tuple(sorted(preemptions, key=lambda each: each.last_seen, reverse=True))

    def of_assigned(self, pods: PodTable) -> dict[str, RecordedEvent]:
        """Return the event of the assignment by pod, for pods that were read without a node. An event older than the
        pod is about an earlier pod with the same name."""
        return {
            pod: event
            for pod, event in _pod_events(self._assigned, pods, have_nodes=False).items()
            if newest((pods.creation_timestamps[pods.rows[pod]], event.last_seen)) == event.last_seen
        }

    def of_autoscaler(self, pods: PodTable, *, has_status: bool) -> dict[str, RecordedEvent]:
        """Return the last event of cluster-autoscaler by pod, for pods without a node: the failure of a node group that
        did not grow for the pod after all. If no status tells which groups are in backoff (`has_status`), the last
        failure also stands for a backoff, and for pods without an event for which the nodes are too full."""
        events = _pod_events(self._scaling, pods, have_nodes=False)
        found = _with_twins({pod: self._failed_since(pod, event) or event for pod, event in events.items()}, pods)
        if has_status:
            return found
        failures = sorted((age, _of_group(name, failure)) for name, (age, failure) in self._node_groups.items())
        last = failures[-1][1] if failures else None
        refused = _pod_events(self._failed_scaling, pods, have_nodes=False)
        backed_off = {pod: refused.get(pod) or last for pod, event in found.items() if BACKED_OFF in event.message}
        found |= {pod: failure for pod, failure in backed_off.items() if failure is not None}
        if last is None:
            return found
        for pod, event in self.of_pending(pods).items():
            is_later = newest((pods.creation_timestamps[pods.rows[pod]], last.last_seen)) == last.last_seen
            if pod not in found and _SHORT_OF in event.message and is_later:
                found[pod] = last
        return found

    def _failed_since(self, pod: str, event: RecordedEvent) -> RecordedEvent | None:
        """Return the failure if every node group that was to grow for the pod has failed since."""
        groups = _RESIZED_GROUP.findall(event.message) if event.reason == TRIGGERED_SCALE_UP else ()
        triggered, *_ = self._scaling[pod][0]
        failures = [(name, *self._node_groups[name]) for name in groups if name in self._node_groups]
        if not failures or len(failures) < len(groups) or any(failed < triggered for _, (failed, *_), _ in failures):
            return None
        name, _, failure = failures[0]
        return _of_group(name, failure)

    def of_node_groups(self) -> dict[str, str]:
        """Return the error of the last failed scale-up by node group."""
        return {group: event.message for group, (_, event) in sorted(self._node_groups.items())}

    def of_karpenter(self, pods: PodTable) -> dict[str, RecordedEvent]:
        """Return Karpenter's refusal, or nomination of a node, by pod, for pods without a node."""
        return {pod: event for pod, reporter, event in self._unassigned_events(pods) if reporter == KARPENTER}

    def of_pending(self, pods: PodTable) -> dict[str, RecordedEvent]:
        """Return the last event of the pod's own scheduler by pod, for pods without a node."""
        return {
            pod: event
            for pod, reporter, event in self._unassigned_events(pods)
            if reporter == pods.specs[pods.rows[pod]].scheduler_name
        }

    def _unassigned_events(self, pods: PodTable) -> Iterator[tuple[str, str, RecordedEvent]]:
        """Yield pods without a node, with reporter and event. Events of an earlier pod of that name are left out."""
        for (pod, reporter), (_, event) in sorted(self._scheduling.items()):
            row = pods.rows.get(pod)
            if row is None or pods.node_names[row]:
                continue
            if not event.uid or not pods.uids[row] or event.uid == pods.uids[row]:
                yield pod, reporter, event


def _follows(event: RecordedEvent, cause: RecordedEvent) -> bool:
    """Return whether a warning of `_AFTERMATH` follows from another one about the pod."""
    match = _AFTERMATH.search(event.message)
    if match is not None and match["address"]:
        return cause.reason == _NO_INTERFACE
    return any({event.reason, cause.reason} <= reasons for reasons in (OF_VOLUMES, OF_SANDBOX))


def _of_group(name: str, failure: RecordedEvent) -> RecordedEvent:
    """Return a node group's failed scale-up as an event about a pod."""
    return replace(failure, reason=FAILED_SCALE_UP, message=f"node group {name} did not grow: {failure.message}")


def _keep(newest: _Newest[_Key], key: _Key, event: EventItem, *, prefix: str = "") -> None:
    """Keep the event unless a newer one is known. Its message starts with the prefix."""
    age = _age(event)
    if key not in newest or newest[key][0] <= age:
        message, uid = event.text, event.about.uid or ""
        message = f"{prefix}: {message}" if prefix else message
        newest[key] = (
            age,
            RecordedEvent(
                reason=event.reason or "", message=message, count=event.times, last_seen=event.last_seen, uid=uid
            ),
        )


def _pod_events(newest: _Newest[str], pods: PodTable, *, have_nodes: bool) -> dict[str, RecordedEvent]:
    """Return the events of pods with or without a node."""
    events: dict[str, RecordedEvent] = {}
    for pod, (_, event) in sorted(newest.items()):
        row = pods.rows.get(pod)
        if row is not None and bool(pods.node_names[row]) is have_nodes and event.uid in ("", pods.uids[row]):
            events[pod] = event
    return events


def _with_twins(events: Mapping[str, RecordedEvent], pods: PodTable) -> dict[str, RecordedEvent]:
    """Return the events, with those about one pod also for pending pods of the same controller that have none, if they
    differ only in their names."""
    alike: dict[int, RecordedEvent] = {}
    for pod, event in events.items():
        controller = controller_of(pods.owners[row := pods.rows[pod]])
        if controller is not None and controller.kind in _ALIKE and event.reason != TRIGGERED_SCALE_UP:
            alike[int(pods.owners.codes[row])] = event
    codes = ((row, int(pods.owners.codes[row])) for row in pods.pending if alike)
    return {pods.key(row): alike[code] for row, code in codes if code in alike} | {**events}


_ALIKE = ("ReplicaSet", "ReplicationController", "Job")


def _preemption(event: EventItem, namespace: str) -> RecordedPreemption:
    """Return what a kube-scheduler event reports. Before Kubernetes 1.27, its message names the preemptor."""
    about, preemptor, words = event.about, event.related, event.text.split()
    by = f"{preemptor.namespace}/{preemptor.name}" if preemptor is not None and preemptor.name else ""
    by = by or next((word for word in words if "/" in word), "")
    return RecordedPreemption(
        namespace=namespace, name=about.name or "", uid=about.uid or "", last_seen=event.last_seen, by=by
    )


def _repeats(event: EventItem) -> bool:
    return event.reason == "Failed" and event.text.startswith(_REPEATS_STATUS)


def _age(event: EventItem) -> _Age:
    """Return nanoseconds and a tiebreaker. An event without a time is older than all others."""
    try:
        time = nanoseconds(event.last_seen)
    except InputError:
        time = -1
    return time, event.times, event.reason or "", event.text, event.about.uid or ""
