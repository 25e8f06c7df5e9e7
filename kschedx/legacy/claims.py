"""What is wrong with a pod's claims before any node is looked at (podPassesBasicChecks in generic_scheduler.go)."""

from __future__ import annotations

from kschedx.api.storage import not_found
from kschedx.api.types import Pod
from kschedx.findings import ClaimBeingDeleted, ClaimNotFound, Finding
from kschedx.framework.status import Code, Status
from kschedx.snapshot.snapshot import Snapshot


def wrong_claim(pod: Pod, snapshot: Snapshot) -> Status | None:
    """The error of the first claim that is missing or being deleted."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = snapshot.storage.claim(pod.metadata.namespace, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            missing = ClaimNotFound(claim=key, volume=volume.name, ephemeral=False)
            return _error(not_found("persistentvolumeclaim", name), missing)
        since = claim.metadata.deletion_timestamp
        if since is not None:
            text = f'persistentvolumeclaim "{name}" is being deleted'
            return _error(text, ClaimBeingDeleted(claim=claim.key, since=since))
    return None


def _error(text: str, finding: Finding) -> Status:
    return Status(code=Code.ERROR, reasons=(text,), findings=(finding,))
