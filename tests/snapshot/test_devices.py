"""ResourceClaims after the deletion of their pods."""

from __future__ import annotations

import pytest

from kschedx.snapshot.devices import Devices
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest
from tests.device_builders import allocated


def devices(claim: Manifest) -> Devices:
    return Snapshot.from_objects([claim]).devices


def owned(claim: Manifest, annotation: str = "") -> Manifest:
    metadata = claim["metadata"]
    assert isinstance(metadata, dict)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "you", "uid": "default/you", "controller": True}
    notes = {annotation: "true"} if annotation else {}
    return claim | {"metadata": metadata | {"ownerReferences": [owner], "annotations": notes}}


SHARED = allocated("gpu", "a", "gpu-0", reserved_for=["you", "me"])
YOURS = allocated("gpu", "a", "gpu-0", reserved_for=["you"])
UNUSED = allocated("gpu", "a", "gpu-0", reserved_for=[])
SPECIAL = owned(YOURS, "resource.kubernetes.io/extended-resource-claim")


@pytest.mark.parametrize(
    ("claim", "kept", "is_allocated", "consumers"),
    [
        (SHARED, True, True, ["me"]),
        (YOURS, True, False, []),
        (UNUSED, True, True, []),
        (owned(YOURS), False, False, []),
    ],
)
def test_after_deletion(claim: Manifest, kept: bool, is_allocated: bool, consumers: list[str]) -> None:
    left = devices(claim).without_deleted_pods({"default/you"}).claims
    assert list(left) == (["default/gpu"] if kept else [])
    for item in left.values():
        assert (item.status.allocation is not None) == is_allocated
        assert [consumer.name for consumer in item.status.reserved_for] == consumers


@pytest.mark.parametrize(("claim", "kept"), [(owned(YOURS), True), (SPECIAL, False)])
def test_as_if_a_pod_were_new(claim: Manifest, kept: bool) -> None:
    left = devices(claim).without_consumers({"default/you"}).claims
    assert [item.status.allocation for item in left.values()] == ([None] if kept else [])
