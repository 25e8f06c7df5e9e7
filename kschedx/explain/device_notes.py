"""Device selectors that the API server would not store, in objects that it has not stored yet."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.types import Pod
from kschedx.explain.notes.storage import SelectorRefusal, SelectorsRefused
from kschedx.releases import Release
from kschedx.snapshot.snapshot import Snapshot


def device_notes(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[SelectorsRefused]:
    """None for a pod without device claims."""
    if not pod.spec.resource_claims:
        return
    refusals = tuple(_refusals(snapshot, pod, release))
    if refusals:
        yield SelectorsRefused(refusals=refusals)


def _refusals(snapshot: Snapshot, pod: Pod, release: Release) -> Iterator[SelectorRefusal]:
    """What has a creation timestamp was admitted, by the API server that it comes from."""
    from kschedx.plugins.dynamic_resources.admission import claim_refusals, class_refusals  # most pods claim no device
    from kschedx.plugins.dynamic_resources.features import Features

    features = Features.of(release).cel
    for one in snapshot.devices.classes.values():
        if not one.metadata.creation_timestamp:
            for field, told in class_refusals(one, features):
                yield SelectorRefusal(object=f"DeviceClass {one.name}", field=field, error=told)
    for claim in snapshot.devices.claims.values():
        if not claim.metadata.creation_timestamp and claim.metadata.namespace == pod.metadata.namespace:
            for field, told in claim_refusals(claim, features):
                yield SelectorRefusal(object=f"ResourceClaim {claim.key}", field=field, error=told)
