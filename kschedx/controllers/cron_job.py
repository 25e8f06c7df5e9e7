"""CronJobs: why they start no Job, and the newest Job that they started."""

from __future__ import annotations

from kschedx.controllers import states
from kschedx.controllers.pod_lifecycle import pod_lifecycle
from kschedx.controllers.state_causes import predicate
from kschedx.controllers.workloads import Workload, member_rows
from kschedx.kube.conditions import condition_of
from kschedx.kube.controllers import CronJobController, convert, stored_metadata
from kschedx.kube.decoding import Manifest
from kschedx.kube.schedules import is_never_due
from kschedx.snapshot.events import ALREADY_ACTIVE, OF_CRON_JOBS
from kschedx.snapshot.snapshot import Snapshot


def cron_job_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    """Return why a CronJob starts no Job; None if it starts its next one when that is due."""
    cron_job, subject = convert(manifest, CronJobController), workload.reference
    if cron_job.spec.suspend:
        return states.Suspended(subject=subject, kind="CronJob")
    if is_never_due(schedule := cron_job.spec.schedule):
        return states.NoJobStarted(subject=subject, reason=f"its schedule {schedule} is never due", message="")
    event = snapshot.failed_creates.get(("CronJob", workload.namespace, workload.name))
    reason = "" if event is None else event.message.partition(": ")[0]
    if event is not None and reason in OF_CRON_JOBS - {ALREADY_ACTIVE}:
        return states.NoJobStarted(subject=subject, reason=reason, message=event.message.removeprefix(f"{reason}: "))
    if cron_job.spec.concurrency_policy != "Forbid":
        return None
    for job in cron_job.status.active:
        refusal = snapshot.failed_creates.get(("Job", workload.namespace, job.name))
        rows = member_rows(snapshot, Workload("Job", workload.namespace, job.name))
        if refusal is not None and not rows:
            return states.StillActive(subject=subject, job=job.name, message=refusal.message)
        for row in rows:
            pod = snapshot.pods[row]
            if row in snapshot.pods.pending:
                scheduled = condition_of(pod.status.conditions, "PodScheduled")
                message = "" if scheduled is None else scheduled.message
                return states.StillActive(subject=subject, job=job.name, pod=pod.key, message=message)
            if (state := pod_lifecycle(snapshot, pod)) is not None and not isinstance(
                state, states.Finished | states.Failed
            ):
                return states.StillActive(subject=subject, job=job.name, pod=pod.key, state=predicate(state))
        if reason == ALREADY_ACTIVE:
            return states.StillActive(subject=subject, job=job.name)
    return None


def newest_job(snapshot: Snapshot, workload: Workload) -> Workload | None:
    """Return the newest stored Job that a CronJob started; None for other kinds."""
    started: list[tuple[str, Workload]] = []
    for (kind, namespace, name), raw in snapshot.workloads.items() if workload.kind == "CronJob" else ():
        if kind == "Job" and namespace == workload.namespace and name.startswith(f"{workload.name}-"):
            metadata = stored_metadata(raw)
            owner = metadata.controller
            if owner is not None and (owner.kind, owner.name) == ("CronJob", workload.name):
                started.append((metadata.creation_timestamp or "", Workload(kind, namespace, name)))
    return max(started, default=("", None), key=lambda item: item[0])[1]
