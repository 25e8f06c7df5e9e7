"""`kschedx why --watch`: the same question repeatedly, until the pod has a node or is gone.

The cluster is read with lists, as before: a watch is another verb, which users would need permission for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from datetime import datetime

import typer

from kschedx.cli.output import ExitCode
from kschedx.cli.streams import reader_left
from kschedx.errors import KschedxError
from kschedx.explain.difference import Effect, Story, compare
from kschedx.inquiry.explanation import Explanation
from kschedx.kube.types import FINISHED, Pod
from kschedx.progress import Phase, report_progress
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import visible

_SHARE = 4  # the least time between two reads, in durations of a read: a large cluster has other work to do

_QUIET = (Effect.SCORES,)  # effects that alone are not worth a line: scores change whenever any pod is added or removed


class Clock:
    """The time of day, and the passing of time."""

    def now(self) -> str:
        return datetime.now().astimezone().strftime("%H:%M:%S")

    def seconds(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Watch:
    """One pod of a cluster that is read again and again."""

    def __init__(
        self,
        pod: Pod,
        explain: Callable[[Snapshot, Pod], Explanation],
        read: Callable[[], Snapshot],
        *,
        interval: float,
        clock: Clock | None = None,
    ) -> None:
        self._pod = pod
        self._explain = explain
        self._read = read
        self._interval = interval
        self._clock = clock or Clock()
        self._failure = ""

    def run(self, first: Explanation) -> ExitCode:
        """Print what changes after `first`, until the pod has a node (0) or is gone (1)."""
        from kschedx.render.comparison import print_change, print_end

        gc.enable()  # this process keeps running
        before, seen = Story.of(first.cycle), self._clock.now()
        pod: Pod | None = self._pod
        took = 0.0
        while pod is not None and not pod.spec.node_name and not reader_left():
            report_progress(Phase.NOTHING)
            self._clock.sleep(max(self._interval, _SHARE * took))
            begun = self._clock.seconds()
            pod, after = self._read_pod(pod)
            took = self._clock.seconds() - begun
            difference = None if after is None else compare(before, after)
            if after is not None and difference is not None and difference.effects != _QUIET:
                now = self._clock.now()
                print_change(difference, before, after, (seen, now))
                before, seen = after, now
        print_end(self._clock.now(), self._pod.key, "" if pod is None else pod.spec.node_name)
        return ExitCode.SCHEDULABLE if pod is not None and pod.spec.node_name else ExitCode.UNSCHEDULABLE

    def _read_pod(self, pod: Pod) -> tuple[Pod | None, Story | None]:
        """Return the current pod and its explanation; the previous pod and None if they are unknown.

        A failed read is reported on standard error and repeated, because users watch when the cluster fails.
        """
        try:
            snapshot = self._read()
            current = _same(snapshot, pod)
            is_pending = current is not None and not current.spec.node_name
            story = Story.of(self._explain(snapshot, current).cycle) if current is not None and is_pending else None
        except KschedxError as error:
            self._warn(str(error))
            return pod, None
        self._failure = ""
        return current, story

    def _warn(self, text: str) -> None:
        """Print a warning, unless the last read had the same one."""
        if text != self._failure:
            typer.echo(f"warning: {visible(text)}; it is tried again", err=True)
        self._failure = text


def _same(snapshot: Snapshot, pod: Pod) -> Pod | None:
    """Return the current pod; None if it has finished, or if another pod has its name."""
    row = snapshot.pods.rows.get(pod.key)
    if row is None or snapshot.pods.uids[row] != pod.metadata.uid:
        return None
    return None if snapshot.pods.phases[row] in FINISHED else snapshot.pods[row]
