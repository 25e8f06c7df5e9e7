"""Why the pods of a workload do not reach kube-scheduler: suspended, paused, scaled to zero, waiting for an earlier
ordinal, refused, or missing in the dump."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.container_states import failing_container, waiting_container
from kschedx.controllers.cron_job import cron_job_state, newest_job
from kschedx.controllers.kubelet_rejections import kubelet_rejection
from kschedx.controllers.pod_autoscaling import kept_by, not_scaled, scaled_to_zero, stopped_state
from kschedx.controllers.pod_lifecycle import (
    common_end,
    controller_manager_down,
    is_node_lost,
    is_ready,
    kept_pods,
    namespace_lifecycle,
    pod_lifecycle,
    quota_kinds,
    quota_names,
    refuser,
    successor,
)
from kschedx.controllers.state_facts import share_of
from kschedx.controllers.stateful_set import unsure_of_name
from kschedx.controllers.suspended_work import suspended_state
from kschedx.controllers.workloads import (
    JOB_ENDS,
    JOB_FAILURES,
    SCALED,
    Workload,
    controlling_custom_resource,
    current_replica_set_of,
    first_ordinal,
    is_controlled_by,
    member_rows,
    ordinal_of,
    parallel_replicas,
    replica_sets_of,
    stays_terminating,
    unfulfilled_seconds,
    waits_until_gone,
    wanted_replicas,
    workload_of,
)
from kschedx.explain.admission import service_accounts
from kschedx.explain.notes import Note, RunsAlready
from kschedx.explain.root_causes import newer_template
from kschedx.kube.conditions import Condition, ObjectStatus, condition_of
from kschedx.kube.controllers import Controller, convert, stored_controller
from kschedx.kube.custom_resources import custom_kind
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.resources import ResourceQuota
from kschedx.kube.types import ObjectMeta, Pod
from kschedx.kube.workloads import (
    GENERATION_OF_TEMPLATE,
    REVISION_HASH,
    TEMPLATE_GENERATION,
    contains,
    foreign_pods,
    is_foreign,
    kind_and_group,
    pinned_to,
    revision,
)
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot


def state_of(snapshot: Snapshot, manifest: Manifest, *, is_stored: bool) -> states.Lifecycle | None:
    """Why a workload creates no pods or, if all of its pods have nodes, no further pods; None if it creates pods."""
    return workload_lifecycle(snapshot, manifest) or (_held(snapshot, manifest) if is_stored else None)


def workload_lifecycle(snapshot: Snapshot, manifest: Manifest) -> states.Lifecycle | None:
    """Return why a workload creates no pods, or no more; None if its pods are created. `snapshot` is the cluster
    without the manifest, if that is not applied yet."""
    workload, metadata = workload_of(manifest), map_at(manifest, "metadata")
    subject = workload.reference
    if deleted := metadata.get("deletionTimestamp"):
        held = metadata.get("finalizers")
        finalizers = tuple(map(str, held)) if isinstance(held, Sequence) and not isinstance(held, str) else ()
        rows = member_rows(snapshot, workload)
        kept = kept_pods(snapshot, (row for row in rows if snapshot.pods.deletion_timestamps[row]))
        return states.BeingDeleted(
            subject=subject, since=str(deleted), finalizers=finalizers, is_workload=True, kept=kept
        )
    if (terminating := namespace_lifecycle(snapshot, workload.namespace, subject)) is not None:
        return terminating
    if workload.kind in SCALED and len(member_rows(snapshot, workload)) < parallel_replicas(manifest):
        down = controller_manager_down(snapshot, subject)
        if down is not None:
            return down
    if (left_out := _left_out(snapshot, workload, manifest)) is not None:
        return left_out
    if (unobserved := _unobserved_state(snapshot, workload, manifest)) is not None:
        return unobserved
    if is_foreign(manifest):
        return _custom_resource_state(snapshot, workload, manifest)
    match workload.kind:
        case "Deployment" | "ReplicaSet" | "ReplicationController":
            return _replicas_state(snapshot, workload, manifest)
        case "StatefulSet":
            return _stateful_set_state(snapshot, workload, manifest) or unsure_of_name(snapshot, workload)
        case "Job":
            return _job_state(snapshot, workload, manifest)
        case "CronJob":
            return cron_job_state(snapshot, workload, manifest) or _newest_job_state(snapshot, workload, manifest)
        case "DaemonSet":
            return kubelet_rejection(snapshot, workload)
        case _:
            return None


def _left_out(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.PodsLeftOut | None:
    """Return the state of a stored workload with pods, if the dump contains none of them and it is to keep some, or if
    it contains no pending one and fewer than are ready. Pods that failed are counted by its status for a moment, and
    show that its pods are in the dump."""
    status, spec = map_at(manifest, "status"), map_at(manifest, "spec")
    counts = [number for key in _COUNTS if isinstance(number := status.get(key), int)]
    keeps_pods = spec.get("managedBy") in (None, _JOB_CONTROLLER) and parallel_replicas(manifest) > 0
    if not (any(counts) and workload in snapshot.workloads and keeps_pods):
        return None
    rows, ready = member_rows(snapshot, workload), status.get("readyReplicas")
    are_fewer = isinstance(ready, int) and min(ready, wanted_replicas(manifest)) > len(rows)
    are_fewer &= all(snapshot.pods.node_names[row] for row in rows)
    has_failed = _failed_pods(snapshot, workload) or kubelet_rejection(snapshot, workload) is not None
    if has_failed or (rows and not are_fewer):
        return None
    source = snapshot.source
    is_open = "Pod" not in source.missing and not source.is_complete("Pod", workload.namespace)
    return states.PodsLeftOut(subject=workload.reference, pods=max(counts), held=len(rows)) if is_open else None


_COUNTS = ("replicas", "active", "currentNumberScheduled")  # fields of a status that count existing pods
_ROLLOUT = ("Rollout", "argoproj.io")  # whose controller writes a status at once


def _unobserved_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.NotObserved | None:
    """Return the state of a workload that an API server has stored and that lacks pods, if its controller has not yet
    written its status, or that of an earlier manifest alone."""
    metadata, status, spec = map_at(manifest, "metadata"), map_at(manifest, "status"), map_at(manifest, "spec")
    is_stored = bool(metadata.get("uid")) and "status" in manifest
    is_rollout, where = kind_and_group(manifest) == _ROLLOUT, (workload.namespace, workload.name)
    stored = snapshot.custom_resources if is_rollout else snapshot.workloads
    is_stored &= (".".join(_ROLLOUT) if is_rollout else workload.kind, *where) in stored  # not only in a file
    is_stored &= spec.get("managedBy") in (None, _JOB_CONTROLLER)
    is_stopped = True in (spec.get("suspend"), spec.get("paused"))
    if not is_stored or is_stopped or not (is_rollout or workload.kind in SCALED):
        return None
    rows = member_rows(snapshot, workload)
    if len(rows) >= wanted_replicas(manifest):
        return None
    state = states.NotObserved(subject=workload.reference, kind=workload.kind)
    newest, observed = metadata.get("generation"), status.get("observedGeneration")
    if isinstance(newest, int) and isinstance(observed, int) and observed < newest:
        return replace(state, generations=f"metadata.generation is {newest}, status.observedGeneration {observed}")
    is_reported = snapshot.failed_create(workload.kind, convert(metadata, ObjectMeta)) is not None
    has_status = any(status.values()) or bool(rows) or any(replica_sets_of(snapshot, workload))
    return None if has_status or is_reported else state


def creates_no_pods(snapshot: Snapshot, manifest: Manifest) -> bool:
    """Return whether the controller of a workload leaves its pods as they are, whatever its manifest specifies."""
    match workload_lifecycle(snapshot, manifest):
        case states.NamespaceTerminating() | states.BeingDeleted() | states.Finished():
            return True
        case states.Failed(is_retried=is_retried):
            return not is_retried and manifest.get("kind") != "CronJob"  # whose next Job may succeed
        case states.Suspended(kind=kind):
            return kind != "Job"  # its controller deletes the existing pods
        case _:
            return False


def _replicas_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    controller, subject = convert(manifest, Controller), workload.reference
    if controller.spec.replicas == 0:
        return scaled_to_zero(snapshot, workload, manifest)
    is_paused = controller.spec.paused and workload.kind == "Deployment"
    if is_paused and current_replica_set_of(snapshot, manifest) is None:
        has_pods = bool(member_rows(snapshot, workload))
        return states.Paused(subject=subject, kind=workload.kind, has_pods=has_pods)
    if kept := rows_kept_by_lost_nodes(snapshot, manifest):
        pods = snapshot.pods
        nodes = tuple(dict.fromkeys(pods.node_names[row] for row in kept))
        return states.WaitingForOldPods(subject=subject, pods=tuple(pods.names[row] for row in kept), nodes=nodes)
    return _replica_failure(snapshot, workload, controller) or kubelet_rejection(snapshot, workload)


def rows_kept_by_lost_nodes(snapshot: Snapshot, manifest: Manifest) -> list[int]:
    """Return the rows of the old pods for which a Deployment with strategy Recreate waits, because no kubelet confirms
    their deletion (oldPodsRunning in pkg/controller/deployment/recreate.go)."""
    is_recreate = map_at(manifest, "spec", "strategy").get("type") == "Recreate"
    if manifest.get("kind") != "Deployment" or not is_recreate:
        return []
    pods, workload = snapshot.pods, workload_of(manifest)
    kept = [row for row in member_rows(snapshot, workload) if stays_terminating(snapshot, pods, row)]
    if not kept:
        return []
    current = convert(current_replica_set_of(snapshot, manifest) or {}, Controller)
    if current.spec.replicas:  # its pods are created whatever else runs
        return []
    known = {metadata.name for metadata, _ in replica_sets_of(snapshot, workload)} - {current.metadata.name}
    return [row for row in kept if any(is_controlled_by(snapshot, row, name) for name in known)]


_REPLACED_AT_ONCE = ("Deployment", "ReplicaSet", "ReplicationController")
"""Kinds that replace a pod that is being deleted before it is gone (FilterActivePods in
pkg/controller/controller_utils.go)."""


def all_replicas(snapshot: Snapshot, manifest: Manifest) -> tuple[Note, ...]:
    """Return a note that a workload has all of its replicas, and that all of them have nodes. It is empty for workloads
    whose pods have names of their own."""
    workload, pods = workload_of(manifest), snapshot.pods
    rows = [row for row in member_rows(snapshot, workload) if not pods.deletion_timestamps[row]]
    is_short = len(rows) < wanted_replicas(manifest) or any(not pods.node_names[row] for row in rows)
    if is_short or not rows or workload.kind not in (*_REPLACED_AT_ONCE, "Job"):
        return ()
    what = "active pod" if workload.kind == "Job" else "replica"
    nodes, every = {pods.node_names[row] for row in rows}, "both" if len(rows) == 2 else f"all {len(rows):,}"
    phrase = f"{every} {what}s {'have nodes' if len(nodes) > 1 else f'are on {min(nodes)}'}"
    phrase = f"its only {what} has a node" if len(rows) == 1 else phrase
    assigned = [pods.start_times[row] or "" for row in rows]
    last = max(assigned) if all(assigned) else ""
    ended = common_end(_failed_pods(snapshot, workload)).text if workload.kind == "Job" else ""
    phrase += unready_count_text(snapshot, rows)
    phrase += "".join(f"; {it}" for it in (kept_by(snapshot, workload), ended) if it)
    return (RunsAlready(text=f"{phrase}; this shows where one more would go", assigned=last),)


def unready_count_text(snapshot: Snapshot, rows: Sequence[int]) -> str:
    """Return how many pods are not ready, and why: `, 2 of them not ready (REASON)`; empty if all are ready."""
    unready = [pod for row in rows if not is_ready(pod := snapshot.pods[row])]
    reasons = (failing_container(pod) or unready_reason(snapshot, pod) for pod in unready)
    reason = next((f" ({reason.rstrip('.')})" for reason in reasons if reason), "")
    number = "but is" if len(rows) == 1 else f"{len(unready):,} of them"
    return f", {number} not ready{reason}" if unready else ""


def _held(snapshot: Snapshot, manifest: Manifest) -> states.Lifecycle | None:
    """Return why a workload whose pods all have nodes gets no further pods."""
    workload = workload_of(manifest)
    rows, pods = member_rows(snapshot, workload), snapshot.pods
    if not rows or len(rows) < wanted_replicas(manifest) or any(not pods.node_names[row] for row in rows):
        return None
    return (
        _stalled_rollout(snapshot, manifest, rows)
        or _stalled_by_lost_node(snapshot, manifest, rows)
        or _update_held(snapshot, manifest, rows)
        or _not_available(snapshot, manifest, rows)
        or not_scaled(snapshot, workload, len(rows))
    )


def _update_held(snapshot: Snapshot, manifest: Manifest, rows: Sequence[int]) -> states.UpdateHeld | None:
    """Return the state of a StatefulSet or DaemonSet with a newer template that its update strategy does not roll out
    to its pods."""
    controller, pods = convert(manifest, Controller), snapshot.pods
    strategy, is_on_delete = controller.spec.update_strategy, controller.spec.update_strategy.type == "OnDelete"
    if manifest.get("kind") == "StatefulSet":
        key, newest = REVISION_HASH, controller.status.update_revision
    elif manifest.get("kind") == "DaemonSet" and is_on_delete:
        key, newest = TEMPLATE_GENERATION, controller.metadata.annotations.get(GENERATION_OF_TEMPLATE, "")
    else:
        return None
    revisions = {pods.names[row]: pods[row].metadata.labels.get(key, "") for row in rows}
    outdated = [name for name in revisions if newest and revisions[name] not in ("", newest)]
    outdated.sort(key=ordinal_of if key == REVISION_HASH else None)
    partition, start = strategy.rolling_update.partition, first_ordinal(manifest)
    if not outdated or (not is_on_delete and any(ordinal_of(name) - start >= partition for name in outdated)):
        return None
    from_start = f", counted from ordinal {start}" if start else ""
    why = "updateStrategy is OnDelete" if is_on_delete else f"partition is {partition}{from_start}"
    subject, names = workload_of(manifest).reference, tuple(outdated)
    return states.UpdateHeld(subject=subject, pods=names, why=why, is_on_delete=is_on_delete)


def _not_available(snapshot: Snapshot, manifest: Manifest, rows: Sequence[int]) -> states.NotAvailable | None:
    """Return the state of a Deployment whose status reports that it is not available, or of a StatefulSet or DaemonSet
    with too few available pods."""
    status = map_at(manifest, "status")
    rows = [row for row in rows if not snapshot.pods.deletion_timestamps[row]]
    match manifest.get("kind"):
        case "StatefulSet":
            number = status.get("availableReplicas", status.get("readyReplicas"))  # versions before 1.22 have one
            is_short = isinstance(number, int) and number < len(rows)
        case "ReplicaSet":
            is_short = not status.get("availableReplicas")
        case "DaemonSet":
            is_short = bool(status.get("numberUnavailable"))
        case _:
            said = condition_of(convert(manifest, Controller).status.conditions, "Available")
            none = bool(status.get("unavailableReplicas")) and not status.get("availableReplicas")
            is_short = none if said is None else said.status == "False"
    if not is_short:
        return None
    unready = [pod for row in rows if not is_ready(pod := snapshot.pods[row])]
    if not unready:
        return None
    nodes = dict.fromkeys(pod.spec.node_name for pod in unready)
    return states.NotAvailable(
        subject=workload_of(manifest).reference,
        wanted=len(rows),
        pods=tuple(_unready_text(snapshot, pod) for pod in unready),
        first=unready[0].metadata.name,
        nodes=tuple(nodes) if all(is_node_lost(snapshot, name) for name in nodes) else (),
        degree="fully " if manifest.get("kind") in ("StatefulSet", "DaemonSet") and len(unready) < len(rows) else "",
    )


def deadline_exceeded(manifest: Manifest) -> str:
    """Return the message of a Deployment's condition that its rollout makes no progress; empty if there is none."""
    if manifest.get("kind") != "Deployment":
        return ""
    conditions = convert(manifest, Controller).status.conditions
    failed = condition_of(conditions, "Progressing")
    if failed is None or failed.reason != "ProgressDeadlineExceeded":
        return ""
    return failed.message or failed.reason


def _stalled_rollout(
    snapshot: Snapshot, manifest: Manifest, rows: Sequence[int]
) -> states.RolloutStalled | states.Paused | None:
    """Return the state of a Deployment whose rollout exceeded its progress deadline, is paused, or waits for new pods
    while old ones run; and of a StatefulSet that waits for its new pods."""
    if manifest.get("kind") not in ("Deployment", "StatefulSet"):
        return None
    message, workload, pods = deadline_exceeded(manifest), workload_of(manifest), snapshot.pods
    state = states.RolloutStalled(subject=workload.reference, message=message)
    spec = map_at(manifest, "spec")
    is_paused = spec.get("paused") is True
    if workload.kind == "StatefulSet":
        newest = convert(manifest, Controller).status.update_revision
        new = [row for row in rows if newest and pods.labels[row].get(REVISION_HASH) == newest]
        if not new or _update_held(snapshot, manifest, rows) is not None or len(new) == len(rows):
            return None
        rows = new
    elif is_paused or not message:
        new = _rows_of_new_template(snapshot, manifest, rows)
        if not new or len(new) == len(rows):
            return None
        if is_paused:
            return states.Paused(
                subject=state.subject, kind=workload.kind, has_pods=True, updated=len(new), wanted=len(rows)
            )
        rows = new
    unready = [pods[row] for row in rows if not is_ready(pods[row])]
    seconds = spec.get("minReadySeconds")
    if not (message or unready):
        return replace(state, seconds=seconds) if isinstance(seconds, int) and seconds else None
    return replace(state, pods=tuple(_unready_text(snapshot, pod) for pod in unready))


def _rows_of_new_template(snapshot: Snapshot, manifest: Manifest, rows: Sequence[int]) -> list[int]:
    current = str(map_at(current_replica_set_of(snapshot, manifest) or {}, "metadata").get("name") or "")
    return [row for row in rows if is_controlled_by(snapshot, row, current)]


def pods_of_previous_template(snapshot: Snapshot, manifest: Manifest) -> int:
    """How many pods a Deployment's rollout still has to replace; 0 unless a pod of the new template is pending."""
    if manifest.get("kind") != "Deployment":
        return 0
    rows, names = member_rows(snapshot, workload_of(manifest)), snapshot.pods.node_names
    new = _rows_of_new_template(snapshot, manifest, rows)
    return 0 if all(names[row] for row in new) else len(rows) - len(new)


def failing_rollout(snapshot: Snapshot, workload: Workload) -> Manifest | None:
    """Return the manifest of a Deployment whose rollout does not end because a container of a pod fails."""
    raw = snapshot.workloads.get(workload)
    if raw is None or workload.kind != "Deployment":
        return None
    status = stored_controller(raw).status
    if status.updated_replicas >= status.replicas:
        return None
    waiting = (waiting_container(snapshot.pods[row]) for row in member_rows(snapshot, workload))
    failing = (states.Waits.CRASH, states.Waits.IMAGE, states.Waits.CONFIGURATION)
    if not any(waits is not None and waits[0] in failing for waits in waiting):
        return None
    return msgspec.json.decode(raw, type=dict[str, object])


def _stalled_by_lost_node(snapshot: Snapshot, manifest: Manifest, rows: Sequence[int]) -> states.RolloutStalled | None:
    """Return the state of a DaemonSet whose rollout waits for a pod on a lost node, which counts as unavailable."""
    if manifest.get("kind") != "DaemonSet":
        return None
    status, pods = convert(manifest, Controller).status, snapshot.pods
    if status.updated_number_scheduled >= status.desired_number_scheduled:
        return None
    lost = [row for row in rows if is_node_lost(snapshot, pods.node_names[row])]
    if not lost:
        return None
    nodes = tuple(dict.fromkeys(pods.node_names[row] for row in lost))
    return states.RolloutStalled(
        subject=workload_of(manifest).reference,
        message="",
        pods=tuple(f"{pods.names[row]} on {pods.node_names[row]}, which is unreachable" for row in lost),
        nodes=nodes,
        updated=status.updated_number_scheduled,
        wanted=status.desired_number_scheduled,
    )


def unready_reason(snapshot: Snapshot, pod: Pod) -> str:
    """Return why a running pod is not ready; empty if it is ready, or if its status gives no reason."""
    ready = condition_of(pod.status.conditions, "Ready")
    if ready is None or ready.status == "True":
        return ""
    return snapshot.warning_about(pod.key) or ready.message or ready.reason


def _unready_text(snapshot: Snapshot, pod: Pod) -> str:
    phrase = failing_container(pod) or unready_reason(snapshot, pod)
    where = f"{pod.metadata.name} on {pod.spec.node_name}"
    return f"{where}: {phrase}" if phrase else f"{where} is not ready"


def _replica_failure(snapshot: Snapshot, workload: Workload, controller: Controller) -> states.Lifecycle | None:
    """Return the state according to the ReplicaFailure condition of a workload that lacks pods. The condition outlives
    the events."""
    rows = member_rows(snapshot, workload)
    replicas = 1 if controller.spec.replicas is None else controller.spec.replicas
    own, source = _failure(controller.status.conditions), f"condition ReplicaFailure of {workload.title}"
    refused = partial(refusal_state, workload.reference, recorded=snapshot, is_workload=True)
    sets = [(metadata, stored_controller(raw)) for metadata, raw in replica_sets_of(snapshot, workload)]
    counts = {
        metadata.name: sum(is_controlled_by(snapshot, row, metadata.name) for row in rows) for metadata, _ in sets
    }
    newest = [item for item in sorted(sets, key=lambda it: -revision(it[0].annotations))[:1] if item[1].spec.replicas]
    for metadata, replica_set in newest:  # that no pod of an earlier template is created does not matter
        own = own if counts[metadata.name] < (replica_set.spec.replicas or 0) else None
    condition = own if len(rows) < replicas else None
    for metadata, replica_set in () if condition is not None else newest or sets:
        number = counts[metadata.name]
        if number < (replica_set.spec.replicas or 0):
            condition = _failure(replica_set.status.conditions) or own
            event = snapshot.failed_create("ReplicaSet", metadata)
            if condition is None and event is not None and rows and not number:  # a rollout without a new pod
                return refused(event.message, has_pods=True)
        if condition is not None:  # also for a pod that a rollout adds, although there are enough old pods
            if condition is not own:
                source = f"condition ReplicaFailure of ReplicaSet {workload.namespace}/{metadata.name}"
            break
    if condition is None:
        return None
    numbers = share_of(len(rows), replicas)
    return refused(condition.message, source=source, has_pods=bool(rows), numbers=numbers)


def _failure(conditions: Sequence[Condition]) -> Condition | None:
    return condition_of(conditions, "ReplicaFailure", "True")


def refusal_state(
    subject: str,
    message: str,
    *,
    recorded: Snapshot | None = None,
    source: str = "",
    hint: str = "",
    is_workload: bool,
    has_pods: bool = False,
    numbers: str = "",
) -> states.Refused | states.NamespaceTerminating:
    """Return the state of a refused object. `recorded` is the cluster that reports the refusal, if one does."""
    if (terminating := _IN_TERMINATING.search(message)) is not None:
        return states.NamespaceTerminating(subject=subject, namespace=terminating[1], is_pod=False)
    namespace = subject.partition("/")[0]
    return states.Refused(
        subject=subject,
        message=message,
        by=refuser(message) if recorded is None else refuser(message, quota_kinds(recorded, namespace, message)),
        source=source,
        hint=hint,
        is_workload=is_workload,
        has_pods=has_pods,
        numbers=numbers,
    )


_RULE = lazy_pattern(
    r"quota: (?P<ResourceQuota>[^\s,:]+)|PriorityClass with name (?P<PriorityClass>\S+) was found"
    r'|RuntimeClass\S* "(?P<RuntimeClass>[^"]+)" not found|serviceaccount "(?P<ServiceAccount>[^"]+)" not found'
)


def rule_of(snapshot: Snapshot, namespace: str, message: str, recorded: Snapshot | None = None) -> str:
    """Return the object of the cluster that a refusal names, such as `ResourceQuota team`, or a quota of the cluster
    in which it was recorded; empty if it is not there, or if a quota still has the recorded amounts."""
    match = _RULE.search(message)
    kind, name = ("", "") if match is None else (str(match.lastgroup), match[match.lastgroup or 0])
    used, _, limited = message.partition("used: ")[2].partition("limited: ")
    changed = (
        quota.metadata.name
        for quota in snapshot.of(ResourceQuota)
        for resource, hard in quota.status.hard.items()
        if quota.metadata.namespace == namespace and f"{resource}=" in limited and resource in quota.status.used
        if f"{resource}={hard}" not in limited or f"{resource}={quota.status.used[resource]}" not in used
    )
    # whether values are still missing shows in the admission of the pod, not in the quota
    unchanged = frozenset[str]() if "must specify" in message else quota_names(snapshot, namespace)
    known = {
        "ResourceQuota": {*changed, *(quota_names(recorded or snapshot, namespace) - unchanged)},
        "PriorityClass": snapshot.priority_classes,
        "RuntimeClass": snapshot.runtime_classes,
        "ServiceAccount": service_accounts(snapshot, namespace),
    }
    return f"{kind} {name}" if name in known.get(kind, ()) else ""


_IN_TERMINATING = lazy_pattern(r"unable to create new content in namespace (\S+) because it is being terminated")


def _stateful_set_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    """Return the state of a StatefulSet. Its controller creates each pod once the pods before it are ready (monotonic
    mode of pkg/controller/statefulset/stateful_set_control.go)."""
    spec, subject = convert(manifest, Controller).spec, workload.reference
    if spec.replicas == 0:
        return scaled_to_zero(snapshot, workload, manifest)
    pods, start = snapshot.pods, first_ordinal(manifest)
    members = {ordinal_of(pods.names[row]): row for row in member_rows(snapshot, workload)}
    missing = next((n for n in range(start, start + wanted_replicas(manifest)) if n not in members), None)
    if (ended := pods.rows.get(f"{workload.namespace}/{workload.name}-{missing}")) is not None:
        return pod_lifecycle(snapshot, pods[ended])
    if missing is None or spec.pod_management_policy == "Parallel":
        return None
    earlier, seconds = sorted(n for n in members if start <= n < missing), unfulfilled_seconds(manifest)
    for number in earlier:
        pod, because = pods[members[number]], f"has been ready for less than {seconds} s"
        if not is_ready(pod):
            because = "is being deleted" if pod.metadata.deletion_timestamp else "is not ready"
        elif not seconds or number != max(members):
            continue
        if not pod.spec.node_name and not pod.metadata.deletion_timestamp:
            return None  # a question about the predecessor itself
        return states.WaitingForOrdinal(
            subject=subject,
            pod=f"{workload.name}-{missing}",
            predecessor=pod.metadata.name,
            because=because,
            seconds=seconds if is_ready(pod) else 0,
            node=pod.spec.node_name,
            is_node_lost=is_node_lost(snapshot, pod.spec.node_name),
            container=failing_container(pod) or snapshot.warning_about(pod.key),
        )
    return None


_JOB_CONTROLLER = "kubernetes.io/job-controller"
"""The value of spec.managedBy for Kubernetes' own controller (pkg/controller/job/job_controller.go)."""
_SUSPENDED = (("spec", "suspend"), ("spec", "runPolicy", "suspend"))
"""The fields with which custom resources of batch work create no pods: those of JobSet, RayJob, and Workflow, and that
of Kubeflow."""


def _custom_resource_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    for path in _SUSPENDED:
        if map_at(manifest, *path[:-1]).get(path[-1]) is True:
            return suspended_state(snapshot, manifest, ".".join(path))
    if kind_and_group(manifest) == _ROLLOUT:
        has_pods = bool(member_rows(snapshot, workload))
        paused = states.Paused(subject=workload.reference, kind="Rollout", has_pods=has_pods)
        if map_at(manifest, "spec").get("paused") is True:
            return paused
        if (stopped := _stopped_by_controller(paused, manifest)) is not None:
            return stopped
    if (ended := _end_state(manifest)) is not None:
        return replace(ended, subject=workload.reference)
    counts = [pod.count.number for pod in foreign_pods(manifest)]
    if counts and not any(count != 0 for count in counts):
        return stopped_state(workload, manifest)
    if not member_rows(snapshot, workload):
        event = snapshot.failed_creates.get(workload)
        phases, conditions = _phases(manifest), _conditions(manifest)
        texts = (*(it.message for it in conditions), *(text for _, text in phases))
        refused = [text for text in texts if _REFUSED in text]
        if (failed := event or _failure(conditions)) is not None or refused:
            message = failed.message if failed is not None else refused[0]
            return refusal_state(workload.reference, message, recorded=snapshot, is_workload=True)
        waits = [message for phase, message in phases if phase.lower() == "pending" and message]
        waits += [it.message for it in conditions if it.message and (it.status == "False" or it.type == "InvalidSpec")]
        if message := next(iter(waits), ""):
            return states.NotObserved(subject=workload.reference, kind=workload.kind, message=message)
    if custom_kind(*kind_and_group(manifest)) is not None and not counts:
        reference = map_at(manifest, "spec", "workloadRef")
        template = f"{reference['kind']} {reference.get('name')}" if "kind" in reference else ""
        return states.UnknownPods(subject=workload.reference, kind=workload.kind, template=template)
    return None


def _stopped_by_controller(paused: states.Paused, manifest: Manifest) -> states.Paused | None:
    """Return the state of a Rollout that its controller aborted, or paused at a step with every pod available."""
    status = map_at(manifest, "status")
    causes, wanted, updated = (status.get(key) for key in ("pauseConditions", "replicas", "updatedReplicas"))
    reason = str(status.get("message") or "RolloutAborted") if status.get("abort") is True else ""
    if not reason and (not isinstance(causes, list) or not causes or status.get("availableReplicas") != wanted):
        return None
    cause = causes[0] if isinstance(causes, list) and causes else {}
    reason = reason or str(map_at(cause).get("reason") or "")
    return replace(paused, reason=reason, updated=updated or 0, wanted=wanted)


def _suspended_by_owner(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Suspended | None:
    """Return the state of a Job whose owner, such as a JobSet, is suspended and would suspend the Job again."""
    owner = controlling_custom_resource(snapshot, manifest)
    state = None if owner is None else workload_lifecycle(snapshot, owner)
    if owner is None or not isinstance(state, states.Suspended):
        return None
    return replace(state, subject=workload.reference, owner=f"{state.kind} {workload_of(owner).name}")


def _conditions(manifest: Manifest) -> Sequence[Condition]:
    return convert(map_at(manifest, "status"), ObjectStatus).conditions


_PHASES = (("phase",), ("state", "phase"), ("applicationState", "state"), ("jobStatus",))
"""The fields with the phase of batch work: of Workflow, Volcano's Job, SparkApplication, and RayJob."""
_SUCCEEDED = frozenset({"completed", "complete", "succeeded"})
_REFUSED = " is forbidden: "  # in a message of the API server
_FAILED = frozenset({"failed", "error", "aborted", "terminated", "submission_failed"})


def _phases(manifest: Manifest) -> list[tuple[str, str]]:
    """Return the phases of batch work, each with its message."""
    status = map_at(manifest, "status")
    parts = [(map_at(status, *path[:-1]), path[-1]) for path in _PHASES]
    return [
        (str(part.get(key) or ""), str(part.get("errorMessage") or part.get("message") or "")) for part, key in parts
    ]


def _end_state(manifest: Manifest) -> states.Finished | states.Failed | None:
    """Return how the work of a custom resource has ended, without its name; None if it has not, or keeps replicas: then
    a condition such as Argo's `Completed` is about its rollout."""
    if "replicas" in map_at(manifest, "spec") or kind_and_group(manifest) == _ROLLOUT:
        return None
    phases = _phases(manifest)
    phases += [(it.type, it.message or it.reason) for it in _conditions(manifest) if it.status == "True"]
    for phase, message in phases:
        if phase.lower() in _SUCCEEDED:
            return states.Finished(subject="", phase=phase, message=message)
        if phase.lower() in _FAILED and _REFUSED not in message:
            return states.Failed(subject="", reason=phase, message=message)
    return None


_LIMIT_OF_FAILURE = {"DeadlineExceeded": "activeDeadlineSeconds", "BackoffLimitExceeded": "backoffLimit"}


def _job_state(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    job, subject = convert(manifest, Controller), workload.reference
    conditions = sorted(job.status.conditions, key=lambda it: it.type in ("SuccessCriteriaMet", "FailureTarget"))
    ended = _failed_pods(snapshot, workload)
    for condition in conditions:
        if condition.type in JOB_ENDS and condition.status == "True":
            if condition.type in JOB_FAILURES:
                limit = _LIMIT_OF_FAILURE.get(condition.reason, "")
                value, indexes = map_at(manifest, "spec").get(limit), job.status.failed_indexes
                detail = f" ({limit} {value})" if value is not None else f": {indexes}" if indexes else ""
                return states.Failed(
                    subject=subject,
                    reason=condition.reason,
                    message=f"{condition.message}{detail}",
                    pods=tuple(pod.metadata.name for pod in ended),
                    ends=common_end(ended),
                )
            return states.Finished(subject=subject, phase=condition.type, message=condition.message)
    if job.spec.suspend:
        return _suspended_by_owner(snapshot, workload, manifest) or suspended_state(snapshot, manifest)
    if job.spec.parallelism == 0:
        return states.ScaledToZero(subject=subject, field="spec.parallelism")
    if job.spec.managed_by not in (None, _JOB_CONTROLLER) and not member_rows(snapshot, workload):
        return states.ManagedElsewhere(subject=subject, manager=job.spec.managed_by or "")
    return (
        kubelet_rejection(snapshot, workload)
        or _between_attempts(snapshot, workload, manifest, ended)
        or _awaited_end(snapshot, workload, manifest)
    )


def _awaited_end(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> states.Lifecycle | None:
    """Return the state of a terminating pod which a Job replaces only once it has ended, if it lacks no other pod."""
    rows, pods = member_rows(snapshot, workload), snapshot.pods
    ending = [row for row in rows if pods.deletion_timestamps[row]]
    if not ending or len(rows) < wanted_replicas(manifest) or any(not pods.node_names[row] for row in rows):
        return None
    owner = pods[ending[0]].metadata.controller
    waits = owner is not None and waits_until_gone(snapshot, workload.namespace, owner)
    return pod_lifecycle(snapshot, pods[ending[0]]) if waits else None


def _failed_pods(snapshot: Snapshot, workload: Workload) -> list[Pod]:
    pods = snapshot.pods
    failed = pods.phases.where(lambda phase: phase == "Failed").nonzero()[0].tolist()
    mine = (row for row in failed if pods.namespaces[row] == workload.namespace)
    return [pods[row] for row in mine if is_controlled_by(snapshot, row, workload.name)]


def _between_attempts(
    snapshot: Snapshot, workload: Workload, manifest: Manifest, ended: Sequence[Pod]
) -> states.Failed | None:
    """Return the state of a Job without an active pod, whose next pod its controller creates after a back-off."""
    rows = member_rows(snapshot, workload)
    limit = map_at(manifest, "spec").get("backoffLimit")
    if rows or not ended or map_at(manifest, "status").get("active"):
        return None
    return states.Failed(
        subject=workload.reference,
        message=f"the Job fails after {limit} retries (backoffLimit)" if isinstance(limit, int) else "",
        pods=tuple(pod.metadata.name for pod in ended),
        ends=common_end(ended),
        is_retried=True,
    )


def _newest_job_state(
    snapshot: Snapshot, workload: Workload, manifest: Manifest
) -> states.Failed | states.PodsLeftOut | None:
    """Return the state of the newest Job of a CronJob, if its pods fail and have the template of the CronJob, or if the
    dump lacks pods of it and the next Job waits for them."""
    job = newest_job(snapshot, workload)
    raw = None if job is None else snapshot.manifest_of(job)
    is_awaited = map_at(manifest, "spec").get("concurrencyPolicy") == "Forbid"
    left_out = None if job is None or raw is None or not is_awaited else _left_out(snapshot, job, raw)
    if left_out is not None:
        return left_out
    template = map_at(manifest, "spec", "jobTemplate", "spec", "template", "spec")
    if job is None or raw is None or not contains(map_at(raw, "spec", "template", "spec"), dict(template)):
        return None
    state = _job_state(snapshot, job, raw)
    return state if isinstance(state, states.Failed) else None


def waiting_member(snapshot: Snapshot, manifest: Manifest) -> Pod | None:
    """Return the pod that keeps a workload from being complete, although all of its pods have nodes: one that cannot
    start or terminate.

    For a DaemonSet or StatefulSet, it may be a pending pod that waits for the old pod on its node, or that is itself an
    old one; for a Deployment with strategy Recreate, an old pod that terminates. Return None if pods are missing or
    unscheduled, or if all of them run.
    """
    workload = workload_of(manifest)
    if workload.kind in ("CronJob", "Job"):
        workload, wanted = newest_job(snapshot, workload) or workload, 1
    elif workload.kind == "DaemonSet":
        wanted = 0
    else:
        wanted = wanted_replicas(manifest)
    rows, pods = member_rows(snapshot, workload), snapshot.pods
    if _stalled_by_lost_node(snapshot, manifest, rows) is not None:
        return None
    if workload.kind == "DaemonSet" and (row := _blocked_by_predecessor(pods, rows)) is not None:
        return pods[row]
    for row in rows if workload.kind == "Deployment" else ():
        if pods.deletion_timestamps[row] and successor(snapshot, pods[row]):
            return pods[row]
    for row in rows if workload.kind in ("DaemonSet", "StatefulSet") else ():
        if not pods.node_names[row] and newer_template(snapshot, pods[row]) is not None:
            return pods[row]
    pending = next((row for row in rows if not pods.node_names[row]), None)
    if pending is not None and not snapshot.cluster.nodes:
        return pods[pending]  # all that a dump without nodes shows is the pod's own event
    if len(rows) < wanted or pending is not None:
        return None
    if workload.kind in _REPLACED_AT_ONCE:
        rows = [row for row in rows if not pods.deletion_timestamps[row]]
        if len(rows) < wanted:
            return None
    new = {*_rows_of_new_template(snapshot, manifest, rows)}
    rows = sorted(rows, key=lambda row: row not in new)
    waiting = [(pod, state) for row in rows if (state := pod_lifecycle(snapshot, pod := pods[row])) is not None]
    stuck = [pod for pod, state in waiting if not isinstance(state, states.BeingDeleted) or state.is_node_lost]
    if not stuck and workload.kind == "StatefulSet":  # it creates another pod of the name once this one is gone
        stuck = [pod for pod, _ in waiting]
    return stuck[0] if stuck else None


def _blocked_by_predecessor(pods: PodTable, rows: Sequence[int]) -> int | None:
    """Return the row of a pending pod of a DaemonSet's rollout with maxSurge whose node still runs the old pod."""
    taken = {pods.node_names[row] for row in rows}
    return next((row for row in rows if not pods.node_names[row] and pinned_to(pods.specs[row]) in taken), None)
