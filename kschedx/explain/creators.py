"""What creates a pod, as far as it explains a rejection: a custom resource with more than its operator passes on to the
pod, a CronJob with many active Jobs, or a controller whose pods the API server refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from kschedx.explain.advice import Advice, FixGroup, RootCause, root_cause
from kschedx.explain.hardware import container_state
from kschedx.findings import UntoleratedTaint
from kschedx.kube.controllers import CronJobController, convert, stored_metadata
from kschedx.kube.custom_resources import KINDS, custom_kind
from kschedx.kube.decoding import maps_at
from kschedx.kube.kinds import key_of
from kschedx.kube.kubectl import merge_patch
from kschedx.kube.tolerations import Tolerations
from kschedx.kube.types import OwnerReference, Pod, Taint, Toleration, controller_of
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

_CONFIGURED_IN: Mapping[str, str] = {
    "acme.cert-manager.io/Challenge": "the podTemplate of the solver in the issuer of {}",
}
"""Custom resources that another controller creates for a time, to the place that decides about their pods."""

_MANY_JOBS = 3  # the number of active Jobs from which those of a CronJob pile up


class MembersNotCreated(RootCause, frozen=True, kw_only=True):
    """Why the controller of a gang's pods creates no more of them."""

    message: str  # what the API server refuses them with


def members_not_created(snapshot: Snapshot, pod: Pod) -> Iterator[MembersNotCreated]:
    owner = pod.metadata.controller
    event = None if owner is None else snapshot.failed_creates.get((owner.kind, pod.metadata.namespace, owner.name))
    if owner is not None and event is not None and event.uid in ("", owner.uid):
        why = event.message.removeprefix("Error creating: ")
        yield MembersNotCreated(text=f"{owner.kind} {owner.name} cannot create the others: {why}", message=why)


def configured_in(snapshot: Snapshot, namespace: str, owner: OwnerReference, labels: Mapping[str, str]) -> str:
    """Return the custom resource that tells the creator of a pod or workload with these labels about its pods: mostly
    the creator itself, or what controls it; if its own pods are not known, the resource that the labels name."""
    known = set[OwnerReference]()  # owners may refer to each other
    while owner not in known:
        known.add(owner)
        group = owner.api_version.rpartition("/")[0]
        raw = snapshot.custom_resources.get((key_of(owner.kind, group), namespace, owner.name))
        owner = owner if raw is None else stored_metadata(raw).controller or owner
    group = owner.api_version.rpartition("/")[0]
    own = f"{owner.kind} {owner.name}"
    if custom_kind(owner.kind, group) is None:
        marks = ((kind, labels.get(row.label, "")) for (_, kind), row in KINDS.items() if "/" in row.label)
        own = next((f"{kind} {name}" for kind, name in marks if name), own)
    return _CONFIGURED_IN.get(f"{group}/{owner.kind}", "{}").format(own)


def creator(snapshot: Snapshot, pod: Pod) -> OwnerReference | None:
    """Return the controller of a pod, or of the pod that controls it, such as the driver of a Spark executor."""
    controller = pod.metadata.controller
    if controller is not None and controller.kind == "Pod":
        row = snapshot.pods.rows.get(f"{pod.metadata.namespace}/{controller.name}")
        return controller if row is None else snapshot.pods[row].metadata.controller or controller
    return controller


def declared_tolerations(snapshot: Snapshot, pod: Pod) -> tuple[Toleration, ...]:
    """Return the tolerations that the custom resource of a pod declares for its part, such as `driver`, which is the
    value of one of the pod's labels. Empty without the custom resource, or if the part is not known."""
    owner = creator(snapshot, pod)
    if owner is None:
        return ()
    group = owner.api_version.rpartition("/")[0]
    raw = snapshot.custom_resources.get((key_of(owner.kind, group), pod.metadata.namespace, owner.name))
    kind = custom_kind(owner.kind, group)
    if raw is None or kind is None or kind.build is None:
        return ()
    built = list(kind.build(msgspec.json.decode(raw)))
    parts = [it for it in built if it.part in pod.metadata.labels.values()] or (built if len(built) == 1 else [])
    return tuple(map(_toleration, maps_at(parts[0].spec, "tolerations") if parts else ()))


def _toleration(entry: Mapping[str, object]) -> Toleration:
    """Read the fields that decide; values of another type never match."""
    fields = {
        name: value for name in ("key", "operator", "value", "effect") if isinstance(value := entry.get(name), str)
    }
    return msgspec.convert(fields, Toleration)


def not_passed_on(snapshot: Snapshot, pod: Pod, finding: UntoleratedTaint) -> Iterator[RootCause]:
    """Yield the custom resource that tolerates a taint which its pod does not tolerate."""
    owner, taint = creator(snapshot, pod), Taint(key=finding.key, value=finding.value, effect=finding.effect)
    if owner is not None and Tolerations(declared_tolerations(snapshot, pod), comparison=True).cover(taint):
        named = f"{owner.kind} {owner.name}"
        text = f"{named} tolerates taint {finding.key}, but its operator has not passed that on to the pod"
        title, namespace = "", pod.metadata.namespace
        if owner.kind == "SparkApplication":
            webhook = f"enable the webhook of the Spark operator for namespace {namespace}, which adds tolerations"
            title = f"{webhook}, and recreate {named}"
        yield root_cause(text, title, group=FixGroup.WORKLOAD)


def piled_up_jobs(snapshot: Snapshot, pod: Pod) -> Iterator[RootCause]:
    """Yield the CronJob of a pod that creates Jobs although many of its earlier ones are active."""
    job, owner, namespace = snapshot.controller_of(pod, "Job"), pod.metadata.controller, pod.metadata.namespace
    owner = owner if job is None else job.metadata.controller
    if owner is None or owner.kind != "CronJob":
        return
    cron_job = convert(snapshot.manifest_of(("CronJob", namespace, owner.name)) or {}, CronJobController)
    jobs, pods = {active.name for active in cron_job.status.active}, snapshot.pods
    if len(jobs) < _MANY_JOBS or cron_job.spec.concurrency_policy not in ("", "Allow"):
        return
    owners = {row: controller_of(pods.owners[row]) for row in np.flatnonzero(pods.in_namespace(namespace)).tolist()}
    rows = [row for row, it in owners.items() if it is not None and it.kind == "Job" and it.name in jobs]
    pending = sum(pods.node[row] < 0 for row in rows)
    text = f"CronJob {owner.name} has {len(jobs):,} active Jobs, with {count(pending, 'pending pod')}"
    reasons = {pods.key(row): container_state(pods[row]) for row in rows if pods.node[row] >= 0}
    key, why = next(((key, why) for key, why in reasons.items() if ":" in why), ("", ""))
    advice = Advice(
        title=f"set concurrencyPolicy Forbid in CronJob {owner.name}, and delete the Jobs that are not needed",
        commands=(merge_patch("cronjob", namespace, owner.name, {"spec": {"concurrencyPolicy": "Forbid"}}),),
        is_second_to_nodes=pending == len(rows),  # none of them uses room
    )
    if key:  # the first cause: its Job never ends
        state = why.partition(":")[0]
        yield root_cause(f"{key} does not start ({state}), so that its Job does not end", f"repair {key}: {state}")
    yield RootCause(text=f"{text}: it allows concurrent Jobs", advice=(advice,))
