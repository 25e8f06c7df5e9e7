"""The pods that run a scheduler other than kube-scheduler, and the schedulers that kschedx knows by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kschedx.controllers.pod_lifecycle import component_down, scheduler_down
from kschedx.controllers.states import ComponentDown
from kschedx.controllers.workloads import SCALED, owners_in
from kschedx.explain.setup import Setup
from kschedx.kube.names import DEFAULT_SCHEDULER
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot


def known_schedulers() -> Collection[str]:
    """Return the known values of spec.schedulerName. Their module is loaded only for a pod with such a name."""
    from kschedx.holding.schedulers import SCHEDULERS

    return SCHEDULERS


def component_of(scheduler: str) -> str:
    """Return the name of the workload that runs a scheduler, by convention, unless it has that of the scheduler."""
    return scheduler if "scheduler" in scheduler else f"{scheduler}-scheduler"


_SCHEDULER_ROWS = Memo[list[int]]()


def scheduler_rows(snapshot: Snapshot, scheduler: str) -> list[int]:
    """Return the pods of the workload that runs a scheduler. Its name may lack what a chart puts first, such as the
    release of `jhub-user-scheduler`. They are searched once for a snapshot."""

    def search() -> list[int]:
        pods, owners, component = snapshot.pods, owners_in(snapshot), component_of(scheduler)

        def named(*starts: str) -> Iterator[int]:
            return (row for row, name in enumerate(pods.names) if name.startswith(starts) and pods.owners[row])

        found = [
            row
            for row in named(f"{scheduler}-")
            if pods.names[row].startswith(f"{component}-") or owners.of(pods, row).name == scheduler
        ]
        short = {scheduler[at + 1 :] for at, letter in enumerate(scheduler) if letter == "-"}
        short = {name for name in short if name.endswith("-scheduler") and name != "kube-scheduler"}
        if found or not short:
            return found
        return [row for row in named(*(f"{its}-" for its in short)) if owners.of(pods, row).name in short]

    return _SCHEDULER_ROWS.of(snapshot.derived, search, scheduler)


def other_scheduler_down(snapshot: Snapshot, pod: Pod) -> ComponentDown | None:
    """Return the pod's scheduler if it is down and has reported nothing about the pod; None for kube-scheduler."""
    name = pod.spec.scheduler_name
    if pod.spec.node_name or pod.status.conditions or name == DEFAULT_SCHEDULER:
        return None
    rows = scheduler_rows(snapshot, name)
    is_of_its_name = any(kind in SCALED and workload == name for kind, _, workload in snapshot.workloads)
    return component_down(snapshot, pod.key, name if is_of_its_name else component_of(name), rows)


def down_scheduler(snapshot: Snapshot, pod: Pod, setup: Setup) -> ComponentDown | None:
    """Return the scheduler of a profile if it is down and has reported nothing about the pod."""
    return other_scheduler_down(snapshot, pod) if setup.is_found(pod) else scheduler_down(snapshot, pod)


def down_schedulers(snapshot: Snapshot, setup: Setup) -> Iterator[tuple[Pod, ComponentDown]]:
    """Yield the first pending pod of each scheduler of a profile that is down, with the scheduler."""
    seen: set[str] = set()
    for pod in (snapshot.pods[row] for row in snapshot.pods.pending):
        if pod.status.conditions or pod.spec.scheduler_name in seen:
            continue
        seen.add(pod.spec.scheduler_name)
        if (down := down_scheduler(snapshot, pod, setup)) is not None:
            yield pod, down
        if setup.found is None:
            return
