"""What keeps batch work suspended: its user, or Kueue until it admits the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kschedx.apiserver.pod_classes import stored_priority
from kschedx.controllers import states
from kschedx.controllers.pod_lifecycle import add_on_down
from kschedx.controllers.workloads import Workload, stored_manifest, wanted_replicas, workload_of
from kschedx.errors import closest
from kschedx.grouping import group_pairs
from kschedx.kube import kueue
from kschedx.kube.decoding import Manifest, decode, list_at, map_at
from kschedx.kube.types import PodSpec
from kschedx.kube.workloads import kind_and_group
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot

_KUEUE_WORKLOADS = Memo[Mapping[tuple[str, str, str], Sequence[kueue.Workload]]]()


def suspended_state(
    snapshot: Snapshot, manifest: Manifest, path: str = "spec.suspend"
) -> states.Suspended | states.ComponentDown:
    """Return the state of suspended batch work. Kueue also suspends work without a queue if it manages it: a Workload
    shows that, or manageJobsWithoutQueueName."""
    workload = workload_of(manifest)
    if queue := str(map_at(manifest, "metadata", "labels").get(kueue.QUEUE_LABEL) or ""):
        return _held_by_kueue(snapshot, workload, queue)
    state = states.Suspended(subject=workload.reference, kind=workload.kind, field=path)
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


def _kueue_workloads(snapshot: Snapshot, workload: Workload) -> Sequence[kueue.Workload]:
    by_owner = _KUEUE_WORKLOADS.of(
        snapshot.derived,
        lambda: group_pairs((owner, each) for each in snapshot.of(kueue.Workload) for owner in each.owners),
    )
    return by_owner.get(workload, ())


def _held_by_kueue(snapshot: Snapshot, workload: Workload, queue: str) -> states.Suspended | states.ComponentDown:
    """Return the state of a Job that Kueue keeps suspended, with the reason."""
    if (down := add_on_down(snapshot, workload.reference, "Kueue")) is not None:
        return replace(down, is_workload=True)
    workloads = _kueue_workloads(snapshot, workload)
    state = states.Suspended(subject=workload.reference, kind=workload.kind, queue=queue)
    queues = [local_queue.metadata for local_queue in snapshot.of(kueue.LocalQueue)]
    own = [queue.name for queue in queues if queue.namespace == workload.namespace]
    if queues and queue not in own:
        meant = closest(queue, own) or (own[0] if len(own) == 1 else "")
        return replace(state, waits="waits in Kueue because its LocalQueue does not exist", meant=meant)
    if not workloads:
        return replace(state, waits="waits for Kueue; its Workload is not in this snapshot")
    if workloads[0].spec.active is False:
        ended = workloads[0].condition("Evicted")
        message = "" if ended is None else _with_check(workloads[0], ended.message)
        return replace(state, waits="is deactivated in Kueue", inactive=workloads[0].metadata.name, message=message)
    from kschedx.kueue.multikueue import is_dispatched
    from kschedx.kueue.verdict import decision_of

    state = replace(state, is_dispatched=is_dispatched(snapshot, workloads[0]))
    verdict = decision_of(snapshot, workloads[0].key)
    condition = workloads[0].condition("QuotaReserved")
    message = condition.message if condition is not None and condition.status != "True" else ""
    if condition is not None and condition.status == "True":
        checks = [check for check in workloads[0].status.admission_checks if check.state != "Ready"]
        awaited = f"admission check {checks[0].name}" if checks else "admission"
        waits = f"has quota in Kueue and waits for {awaited}"
        if (admitted := workloads[0].condition("Admitted")) is not None and admitted.status == "True":
            cluster = workloads[0].status.cluster_name
            waits = "is admitted by Kueue, which has not resumed it"
            waits = f"runs in worker cluster {cluster}, to which MultiKueue dispatched it" if cluster else waits
        return replace(state, message=checks[0].message if checks else "", waits=waits)
    message = _with_check(workloads[0], message)
    return replace(state, message=message, waits="" if verdict is None else verdict.state_text)


def suspended_by_kueue(snapshot: Snapshot, manifest: Manifest) -> tuple[Manifest, Manifest] | None:
    """Return a Job that is new, or that has another number of pods than its Workload was made for, as Kueue suspends
    it, and the Workload that Kueue creates for it; None if the cluster has no queue of Kueue, or the manifest is no
    such Job of a queue.

    Upstream: pkg/controller/jobs/job and pkg/controller/jobframework of Kueue.
    """
    workload, spec = workload_of(manifest), map_at(manifest, "spec")
    queue = map_at(manifest, "metadata", "labels").get(kueue.QUEUE_LABEL)
    before, its = stored_manifest(snapshot, workload), _kueue_workloads(snapshot, workload)
    is_resized = before is not None and wanted_replicas(manifest, before) != wanted_replicas(before)
    is_job = kind_and_group(manifest) == ("Job", "batch") and (before is None or (is_resized and bool(its)))
    if not (is_job and isinstance(queue, str) and queue) or not any(snapshot.of(kueue.LocalQueue)):
        return None
    pod_spec = decode(msgspec.json.encode(map_at(spec, "template", "spec")), PodSpec)
    pod_set: dict[str, object] = {"count": wanted_replicas(manifest), "template": map_at(spec, "template")}
    least = map_at(manifest, "metadata", "annotations").get(kueue.LEAST_PARALLELISM)
    if isinstance(least, str) and least.isdecimal():
        pod_set["minCount"] = int(least)
    notes = map_at(spec, "template", "metadata", "annotations")
    request = {field: notes[name] for name, field in kueue.TOPOLOGY_REQUESTS.items() if name in notes}
    if request:
        pod_set["topologyRequest"] = request | ({"unconstrained": True} if "unconstrained" in request else {})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": workload.name, "uid": "new", "controller": True}
    created: Manifest = {
        "apiVersion": f"{kueue.KUEUE_GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"job-{workload.name}", "namespace": workload.namespace, "ownerReferences": [owner]},
        "spec": {
            "active": True,
            "queueName": queue,
            "priority": stored_priority(pod_spec, snapshot.priority_classes).priority or 0,
            "podSets": [{"name": "main", **pod_set}],
        },
    }
    return {**manifest, "spec": {**spec, "suspend": True}}, created


def without_workloads(snapshot: Snapshot, workload: Workload) -> Snapshot:
    """Return the cluster without Kueue's Workloads of a workload."""
    gone = _kueue_workloads(snapshot, workload)
    kept = [it for it in snapshot.of(kueue.Workload) if it not in gone]
    return snapshot.with_records(kueue.Workload, kept) if gone else snapshot


def resumed_by_kueue(manifest: Manifest, flavors: Iterable[kueue.ResourceFlavor]) -> Manifest:
    """Return the spec of a Job as Kueue resumes it: its template has the node labels and tolerations of its flavors."""
    spec, template = map_at(manifest, "spec"), map_at(manifest, "spec", "template")
    of_pod = map_at(template, "spec")
    selector, tolerations = {**map_at(of_pod, "nodeSelector")}, [*list_at(of_pod, "tolerations")]
    for flavor in flavors:
        selector |= flavor.spec.node_labels
        tolerations += msgspec.to_builtins(flavor.spec.tolerations)
    injected = {"nodeSelector": selector, "tolerations": tolerations}
    of_pod = {**of_pod, **{field: value for field, value in injected.items() if value}}
    return {**spec, "suspend": False, "template": {**template, "spec": of_pod}}


def _with_check(workload: kueue.Workload, message: str) -> str:
    """Return the message of a condition; with that of the admission check, if it only says that one failed."""
    failed = (check for check in workload.status.admission_checks if check.state != "Ready" and check.message)
    check = next(failed, None) if "admission check" in message.lower() else None
    return message if check is None else f"{message}: {check.name}: {check.message}"
