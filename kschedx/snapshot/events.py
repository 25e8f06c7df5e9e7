"""What kube-scheduler said in its FailedScheduling events, for a snapshot that holds them: the newest of each pod."""

from __future__ import annotations

from msgspec import Raw, Struct

from kschedx.api.decode import decode
from kschedx.api.timestamps import nanoseconds
from kschedx.errors import InputError
from kschedx.snapshot.pods import PodTable

KIND = "Event"
GROUPS = frozenset({"", "events.k8s.io"})
"""Every event is served in both, with fields of other names."""

NOTE_LENGTH = 1024
"""Bytes to which kube-scheduler cuts an event's text (truncateMessage in pkg/scheduler/schedule_one.go)."""
CUT = " ..."


class _About(Struct, frozen=True, rename="camel"):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Series(Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: str = ""


class _Source(Struct, frozen=True):
    component: str = ""


class _Event(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of either group."""

    reason: str = ""
    involved_object: _About | None = None
    regarding: _About = _About()
    message: str = ""
    note: str = ""
    series: _Series = _Series()
    event_time: str = ""
    count: int = 0
    last_timestamp: str = ""
    deprecated_count: int = 0
    deprecated_last_timestamp: str = ""
    reporting_component: str = ""
    reporting_controller: str = ""
    source: _Source = _Source()
    deprecated_source: _Source = _Source()

    @property
    def about(self) -> _About:
        return self.involved_object or self.regarding

    @property
    def reporter(self) -> str:
        """kube-scheduler reports under the schedulerName of the pod's profile; autoscalers use the same reason."""
        named = self.reporting_component or self.reporting_controller
        return named or self.source.component or self.deprecated_source.component

    @property
    def last_seen(self) -> str:
        """RFC 3339; empty where the event does not say."""
        last = self.last_timestamp or self.deprecated_last_timestamp
        return self.series.last_observed_time or last or self.event_time


class FailedScheduling(Struct, frozen=True, kw_only=True):
    """One event about a pod; repetitions of it are counted, not kept."""

    message: str
    """May be cut to NOTE_LENGTH, with CUT at its end."""
    count: int = 1
    last_seen: str = ""
    """RFC 3339; empty where the event does not say."""
    uid: str = ""
    """The pod's; a pod of the same name may come and go. Empty where the event does not say."""

    @property
    def is_cut(self) -> bool:
        return len(self.message.encode()) >= NOTE_LENGTH and self.message.endswith(CUT)


class FailedSchedulingEvents:
    """Collects events, of which it keeps a fraction: dumps hold tens of thousands."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], tuple[int, FailedScheduling]] = {}
        """Pod (`namespace/name`) and reporter to the newest event and its time."""

    def add(self, raw: Raw) -> None:
        """Any event. Raises `InputError`."""
        event = decode(raw, _Event)
        about = event.about
        if event.reason != "FailedScheduling" or about.kind != "Pod":
            return
        key = f"{about.namespace or 'default'}/{about.name}", event.reporter
        time = _time(event.last_seen)
        if key in self._newest and self._newest[key][0] > time:
            return
        found = FailedScheduling(
            message=event.message or event.note,
            count=max(event.series.count, event.count, event.deprecated_count, 1),
            last_seen=event.last_seen,
            uid=about.uid,
        )
        self._newest[key] = time, found

    def of_pending(self, pods: PodTable) -> dict[str, FailedScheduling]:
        """Pod to what its own scheduler said of it last, for pods without a node."""
        found: dict[str, FailedScheduling] = {}
        for (pod, reporter), (_, event) in self._newest.items():
            row = pods.rows.get(pod)
            if row is None or pods.node_names[row] or reporter != pods.specs[row].scheduler_name:
                continue
            if not event.uid or not pods.uids[row] or event.uid == pods.uids[row]:
                found[pod] = event
        return found


def _time(text: str) -> int:
    """Nanoseconds; an event that tells no time is older than those that do."""
    try:
        return nanoseconds(text)
    except InputError:
        return -1
