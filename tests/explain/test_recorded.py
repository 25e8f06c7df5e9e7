"""The recorded event beside the message of kschedx: which one counts, and the cause of a difference."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import kschedx
from kschedx.explain.events import contrasts
from kschedx.explain.notes import Note
from kschedx.render.screen import why_lines
from kschedx.snapshot.events import CUT, NOTE_LENGTH, RecordedEvent
from tests.builders import Manifest, node, pod

NO_ROOM = (
    "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: "
    "2 Preemption is not helpful for scheduling."
)
FULL = [node("a", allocatable={"cpu": "1", "pods": "9"}), node("b", allocatable={"cpu": "1", "pods": "9"})]
OLDER = "0/9 nodes are available: 9 Insufficient cpu."


def pending(message: str | None = None, *, reason: str = "Unschedulable", on: str | None = None) -> Manifest:
    """Return a pod that requests more than `FULL` has; `message` is that of its condition."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    status = {"phase": "Pending", "conditions": [] if message is None else [condition]}
    container = {"name": "main", "resources": {"requests": {"cpu": "1500m"}}}
    return pod("new", on=on, status=status, metadata={"uid": "u-new"}, containers=[container])


NOON = "2026-01-31T12:00:00Z"


def event(message: str, seen: str = NOON, fields: Manifest | None = None, **more: object) -> Manifest:
    """Return an event of kube-scheduler in core/v1."""
    about = {"kind": "Pod", "namespace": "default", "name": "new"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "name": f"new.{abs(hash((message, seen)))}"},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": message,
        "eventTime": seen,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "reportingComponent": "default-scheduler",
        "source": {},
        "type": "Warning",
        **(fields or {}),
        **more,
    }


def note(*objects: Manifest) -> Note | None:
    result = kschedx.explain(kschedx.Snapshot.from_objects([*FULL, *objects]), "default/new", kube_version="1.36")
    assert result.message in ("", NO_ROOM)
    return next((item for item in result.notes if item.id == "recorded-event"), None)


@pytest.mark.parametrize(
    ("created", "seen", "is_later"),
    [
        ("2026-01-31T12:05:00Z", NOON, True),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.691198Z", False),
        ("2026-01-31T12:00:01Z", "2026-01-31T12:00:00.691198Z", True),
    ],
)
def test_nodes_that_joined_after_the_event_explain_it(created: str, seen: str, is_later: bool) -> None:
    joined = {**node("c"), "metadata": {"name": "c", "creationTimestamp": created}}
    result = note(pending(), event(NO_ROOM, seen), joined)
    assert result is not None
    assert result.text.endswith("differs: kschedx finds a node: c joined after the event") == is_later


def differences(theirs: str, ours: str, *, nominated: bool = False) -> list[str]:
    return list(contrasts(RecordedEvent(message=theirs), ours, nominated=nominated))


def message(*objects: Manifest) -> object:
    result = note(*objects)
    return None if result is None else result.facts["message"]


# --- which of them counts


@pytest.mark.parametrize("claims", ["no new claims to deallocate, ", ""])
def test_the_condition_is_the_event(claims: str) -> None:
    """Without DynamicResources, kube-scheduler says nothing about claims."""
    theirs = NO_ROOM.replace("no new claims to deallocate, ", claims)
    result = note(pending(theirs))
    assert result is not None
    assert result.text == "the recorded event is the same"
    assert result.facts == {"message": theirs, "differences": []}


@pytest.mark.parametrize(("reason", "counts"), [("SchedulingGated", False), ("SchedulerError", True)])
def test_a_condition_counts_if_kube_scheduler_failed(reason: str, counts: bool) -> None:
    assert (note(pending("something else", reason=reason)) is not None) is counts


def test_an_event_counts_without_a_condition() -> None:
    series = {"count": 12, "lastObservedTime": "2026-01-31T13:00:00.000000Z"}
    result = note(pending(), event(NO_ROOM, series=series))
    assert result is not None
    seen = "last seen 2026-01-31T13:00:00Z, 12 times"
    assert result.text == f"the recorded event ({seen}) is the same"
    assert (result.facts["count"], result.facts["lastSeen"]) == (12, "2026-01-31T13:00:00.000000Z")


def test_the_condition_counts_with_the_time_of_the_event() -> None:
    assert message(pending(NO_ROOM), event(OLDER)) == NO_ROOM
    result = note(pending(NO_ROOM), event(NO_ROOM, count=3, lastTimestamp="2026-01-31T12:30:00Z"))
    assert result is not None
    assert "last seen 2026-01-31T12:30:00Z, 3 times" in result.text


def test_the_newest_event_counts() -> None:
    series = {"count": 2, "lastObservedTime": "2026-01-31T14:00:00Z"}
    newest = event(NO_ROOM, "2026-01-31T10:00:00Z", series=series)
    others = [event(OLDER, "2026-01-31T13:59:59.999Z"), event(OLDER, "")]
    for order in ([newest, *others], [*others, newest]):
        assert message(pending(), *order) == NO_ROOM


def test_events_of_the_new_group_are_read() -> None:
    built = event("") | {"apiVersion": "events.k8s.io/v1", "note": NO_ROOM, "reportingController": "default-scheduler"}
    built["regarding"] = built.pop("involvedObject")
    del built["reportingComponent"]
    assert message(pending(), built) == NO_ROOM


def test_an_old_event_names_its_source() -> None:
    result = event(NO_ROOM, source={"component": "default-scheduler"}, reportingComponent="")
    assert message(pending(), result) == NO_ROOM


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "Scheduled"},
        {"reportingComponent": "karpenter"},
        {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "other"}},
        {"involvedObject": {"kind": "Pod", "namespace": "shop", "name": "new"}},
        {"involvedObject": {"kind": "Job", "namespace": "default", "name": "new"}},
        {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "new", "uid": "of-a-pod-before"}},
        {"apiVersion": "example.com/v1"},
    ],
    ids=str,
)
def test_another_event_does_not_count(fields: Manifest) -> None:
    assert message(pending(), event(OLDER, fields=fields)) is None


def test_only_events_of_pending_pods_are_kept() -> None:
    assert not kschedx.Snapshot.from_objects([*FULL, pending(on="a"), event(OLDER)]).failed_scheduling
    assert not kschedx.Snapshot.from_objects([*FULL, event(OLDER)]).failed_scheduling


# --- what a difference comes from

HERE = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)"
AFTER = (
    "preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, "
    "3 Preemption is not helpful for scheduling."
)
ONE_TAINT, OTHER_TAINT = "1 node(s) had untolerated taint {gpu: a}", "node(s) had untolerated taint {gpu: b}"
OURS = f"{HERE}. no new claims to deallocate, {AFTER}"


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (OURS, []),
        (
            OURS.replace("0/5", "0/6").replace("3 node(s)", "4 node(s)"),
            [
                "it counts 6 nodes, the snapshot has 5: recorded at another time, or an incomplete snapshot",
                '4 × "node(s) had untolerated taint(s)" there, 3 here: recorded at another time',
            ],
        ),
        (
            f"0/5 nodes are available: {ONE_TAINT}, 2 Insufficient cpu, 2 {OTHER_TAINT}. {AFTER}",
            [f'"{ONE_TAINT[2:]}", "{OTHER_TAINT}" is the text of another Kubernetes version'],
        ),
        (
            f"0/5 nodes are available: 2 Insufficient memory, 3 node(s) had untolerated taint(s). {AFTER}",
            [
                '"Insufficient memory" does not apply now: recorded at another time, or with another configuration',
                '"Insufficient cpu" is new',
            ],
        ),
        (
            f"0/5 nodes are available: 2 Insufficient cpu, 3 licence server says no. {AFTER}",
            [
                '"licence server says no" is not of a known plugin: it comes from an extender or another scheduler',
                '"node(s) had untolerated taint(s)" is new',
            ],
        ),
        (
            'running PreBind plugin "VolumeBinding": timed out',
            ['kube-scheduler had selected a node and failed there: running PreBind plugin "VolumeBinding": timed out'],
        ),
        (f"{HERE}.", ["it has no preemption part: another Kubernetes version, or preemption is off"]),
        (
            f"{HERE}. {AFTER}".replace("2 No preemption victims found for incoming pod", "2 Insufficient cpu"),
            ["its preemption result differs: recorded at another time, or by another Kubernetes version"],
        ),
    ],
    ids=["same", "counts", "older words", "another resource", "unknown", "afterwards", "no preemption", "preemption"],
)
def test_a_difference_is_explained(theirs: str, expected: list[str]) -> None:
    assert differences(theirs, OURS) == expected


def test_the_event_of_a_nominated_pod_is_older_than_the_eviction() -> None:
    assert differences(f"{HERE}.", OURS, nominated=True) == []
    (text,) = differences(f"{HERE}.".replace("0/5", "0/4"), OURS, nominated=True)
    assert text.startswith("it counts 4 nodes")


def test_a_pod_that_fits_now() -> None:
    (text,) = differences(OURS, "")
    assert text == "kschedx finds a node: recorded at another time, or with another configuration"


def test_a_truncated_event_is_compared_up_to_its_end() -> None:
    taints = ", ".join(f"1 node(s) had untolerated taint {{key-{number}: value}}" for number in range(40))
    ours = f"0/40 nodes are available: {taints}. no new claims to deallocate."
    cut = ours[: NOTE_LENGTH - len(CUT)] + CUT
    assert differences(cut, ours) == []
    (text,) = differences("1" + cut[1:], ours.replace("0/40", "0/41", 1))
    assert text.startswith("it counts 40 nodes, the snapshot has 41")


def test_a_long_event_has_a_short_note() -> None:
    taints = ", ".join(f"1 node(s) had untolerated taint {{key-{number}: value}}" for number in range(40))
    text = "; ".join(differences(f"0/5 nodes are available: {taints}, 1 {'x' * 9999}.", OURS))
    assert len(text) < 600
    assert '{key-2: value}" and 37 more is the text of another Kubernetes version' in text


def test_the_first_screen_shows_it() -> None:
    snapshot = kschedx.Snapshot.from_objects([*FULL, pending(), event(OLDER)])
    lines = [line.plain for line in why_lines(kschedx.explain(snapshot, "default/new"), width=100)]
    first = next(number for number, line in enumerate(lines) if line.startswith("  note"))
    assert lines[first : first + 4] == [
        "  note      the recorded event (last seen 2026-01-31T12:00:00Z) differs: it counts 9 nodes, the",
        '            snapshot has 2: recorded at another time, or an incomplete snapshot; 9 × "Insufficient',
        '            cpu" there, 2 here: recorded at another time',
        lines[first + 3],
    ]


# --- a dump with a part of the nodes


@pytest.mark.parametrize(
    ("counted", "on", "lacks"),
    [(2, "gone", False), (3, None, False), (3, "gone", True), (4, None, False), (5, None, True)],
)
def test_a_dump_lacks_nodes_that_the_event_counts(counted: int, on: str | None, lacks: bool) -> None:
    """Pods that run elsewhere show it, or a dump with less than half of them; a node may have been removed since."""
    theirs = f"0/{counted} nodes are available: {counted} Insufficient cpu."
    running = [pod("other", on=on, status={"phase": "Running"}, metadata={"creationTimestamp": NOON})] if on else []
    snapshot = kschedx.Snapshot.from_objects([*FULL, pending(theirs), *running])
    snapshot = replace(snapshot, source=replace(snapshot.source, is_dump=True))
    result = kschedx.explain(snapshot, "default/new", kube_version="1.36")
    shown = "\n".join(line.plain for line in why_lines(result, width=200))
    phrase = f"the dump has 2 of the {counted} nodes that kube-scheduler's event counts: kubectl get nodes -o yaml"
    assert (phrase in shown, f"event     {theirs}\n" in shown) == (lacks, lacks)
