"""What keeps batch work suspended: its user, or Kueue until it admits the work."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.controllers.workloads import Workload
from kschedx.errors import nearest
from kschedx.kube import kueue
from kschedx.render.states import Suspended
from kschedx.snapshot.snapshot import Snapshot


def suspended(snapshot: Snapshot, workload: Workload, path: str = "spec.suspend") -> Suspended:
    """Return the state of suspended batch work without a queue. Kueue also suspends such work if it manages it: a
    Workload shows that, or manageJobsWithoutQueueName."""
    state = Suspended(subject=workload.reference, kind=workload.kind, field=path)
    queues = [queue.metadata for queue in snapshot.of(kueue.LocalQueue)]
    if not queues:
        return state
    own = [queue.name for queue in queues if queue.namespace == workload.namespace]
    meant, waits = own[0] if len(own) == 1 else "", "is without a LocalQueue, and Kueue manages it"
    is_managed: bool | None = True
    if not _kueue_workloads(snapshot, workload):
        from kschedx.kueue.settings import settings_of

        configuration = settings_of(snapshot).configuration
        is_managed = configuration.manage_jobs_without_queue_name if configuration.api_version else None
    if is_managed is False:
        return state
    return replace(state, meant=meant, waits=waits if is_managed else "", may_be_of_kueue=not is_managed)


def _kueue_workloads(snapshot: Snapshot, workload: Workload) -> list[kueue.Workload]:
    owner = (workload.kind, workload.name)
    return [
        kueue_workload
        for kueue_workload in snapshot.of(kueue.Workload)
        if kueue_workload.metadata.namespace == workload.namespace
        and any((each.kind, each.name) == owner for each in kueue_workload.metadata.owner_references)
    ]


def held_by_kueue(snapshot: Snapshot, subject: str, workload: Workload, queue: str) -> Suspended:
    """Return the state of a Job that Kueue keeps suspended, with the reason."""
    workloads = _kueue_workloads(snapshot, workload)
    state = Suspended(subject=subject, kind=workload.kind, queue=queue)
    queues = [local_queue.metadata for local_queue in snapshot.of(kueue.LocalQueue)]
    own = [queue.name for queue in queues if queue.namespace == workload.namespace]
    if queues and queue not in own:
        hint = nearest(queue, own) or (f'did you mean "{own[0]}"?' if len(own) == 1 else "")
        meant = next((name for name in own if f'"{name}"' in hint), "")
        return replace(state, waits="waits in Kueue because its LocalQueue does not exist", meant=meant)
    if not workloads:
        return state
    if workloads[0].spec.active is False:
        ended = workloads[0].condition("Evicted")
        message = "" if ended is None else ended.message
        return replace(state, waits="is deactivated in Kueue", inactive=workloads[0].metadata.name, message=message)
    from kschedx.kueue.verdict import decision_of

    verdict = decision_of(snapshot, workloads[0].key)
    condition = workloads[0].condition("QuotaReserved")
    message = condition.message if condition is not None and condition.status != "True" else ""
    if condition is not None and condition.status == "True":
        checks = [check for check in workloads[0].status.admission_checks if check.state != "Ready"]
        awaited = f"admission check {checks[0].name}" if checks else "admission"
        waits = f"has quota in Kueue and waits for {awaited}"
        return replace(state, message=checks[0].message if checks else "", waits=waits)
    return replace(state, message=message, waits="" if verdict is None else verdict.state_text)
