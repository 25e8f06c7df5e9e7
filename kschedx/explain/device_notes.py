"""Device selectors that the API server would not store, in objects that it has not stored yet."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.snapshot import Snapshot

_SHOWN = 3


def device_notes(snapshot: Snapshot, pod: Pod, release: Release) -> tuple[tuple[str, str], ...]:
    """(id, text); none for a pod without device claims."""
    if not pod.spec.resource_claims:
        return ()
    found = [f"{owner}: {field}: {told.splitlines()[0]}" for owner, field, told in _refused(snapshot, pod, release)]
    if not found:
        return ()
    others = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (("selector-refused", f"the API server refuses {'; '.join(found[:_SHOWN])}{others}"),)


def _refused(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[tuple[str, str, str]]:
    """What has a creation timestamp was admitted, by the API server that it comes from."""
    from kschedx.plugins.dynamic_resources.admission import claim_refusals, class_refusals  # most pods claim no device
    from kschedx.plugins.dynamic_resources.features import Features

    features = Features.of(release).cel
    for one in snapshot.devices.classes.values():
        if not one.metadata.creation_timestamp:
            for field, told in class_refusals(one, features):
                yield f"DeviceClass {one.name}", field, told
    for claim in snapshot.devices.claims.values():
        if not claim.metadata.creation_timestamp and claim.metadata.namespace == pod.metadata.namespace:
            for field, told in claim_refusals(claim, features):
                yield f"ResourceClaim {claim.key}", field, told
