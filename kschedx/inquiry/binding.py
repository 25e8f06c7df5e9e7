"""What keeps a pod with a chosen node from being bound: its claims, its devices, or what the event reports."""

from __future__ import annotations

from kschedx.controllers import states
from kschedx.errors import InputError
from kschedx.explain.claim_causes import wrong_attributes_class
from kschedx.explain.events import AFTER_THE_CHOICE
from kschedx.explain.root_causes import provisioning_reports
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Pod
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot


def not_bound_state(snapshot: Snapshot, pod: Pod, event: RecordedEvent | None) -> states.NotBound | None:
    """Return the state of a pod whose claim cannot be provisioned, whose devices are not ready, or, according to its
    event, that cannot be bound to the chosen node."""
    message = event.message if event is not None and AFTER_THE_CHOICE.match(event.message) else ""
    if pod.spec.resource_claims and (awaited := _awaited_condition(snapshot, pod)) is not None:
        driver, condition = awaited
        because = f"driver {driver} has not reported {condition} for its devices yet"
        return states.NotBound(subject=pod.key, message=message, provisioner=driver, because=because)
    for claim, report in provisioning_reports(snapshot, pod):
        storage_class = snapshot.storage.classes.get(claim.storage_class)
        provisioner = storage_class.provisioner if storage_class and storage_class.can_provision else ""
        wrong_class = wrong_attributes_class(snapshot, claim)
        if not message and not (report and provisioner) and wrong_class is None:
            continue
        return states.NotBound(
            subject=pod.key,
            message=message,
            claim=claim.key,
            provisioner=provisioner,
            report="" if report is None else report.message,
            because="" if wrong_class is None else wrong_class.text,
        )
    return states.NotBound(subject=pod.key, message=message) if message else None


_BINDING_TIMEOUT = 600 * 10**9  # nanoseconds, the default bindingTimeout of DynamicResources


def _awaited_condition(snapshot: Snapshot, pod: Pod) -> tuple[str, str] | None:
    """Return the first binding condition for which the pod waits, after its driver, unless kube-scheduler waits no
    longer and deallocates the claim."""
    from kschedx.plugins.dynamic_resources.claims import is_late  # most pods have no device claims

    for claim in snapshot.devices.claims_of(pod):
        if not any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
            continue
        awaited = next(claim.status.awaited_conditions, None)
        try:
            if awaited and not is_late(claim, _BINDING_TIMEOUT, nanoseconds(snapshot.taken.removesuffix(" or later"))):
                return awaited
        except InputError:  # the time of the cluster is not known
            return awaited
    return None
