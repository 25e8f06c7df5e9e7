"""What uses a PersistentVolume, or keeps it from being used."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Manifest, node, pod
from tests.inquiry.objects import answer_of
from tests.storage_builders import DRIVER, claim, storage_class, volume

BOUND = claim("data", volume="v", uid="u")
USER = pod("db", on="n", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
ATTACHED: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "va"},
    "spec": {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": "v"}},
}
RELEASE = [
    "release it, so that another claim can use it; its data stays",
    "delete it, if its data is not needed; its disk stays",
]
LOOK = ["see in its events why it is not deleted"]


@pytest.mark.parametrize(
    ("fields", "objects", "does", "causes", "fixes"),
    [
        (
            {"claim_ref": "data", "uid": "u", "phase": "Bound"},
            [BOUND, USER, ATTACHED],
            "is bound to claim default/data",
            ["pod default/db on n uses it", f"{DRIVER} has it attached to node n"],
            [],
        ),
        (
            {"claim_ref": "data", "uid": "old", "phase": "Released", "persistentVolumeReclaimPolicy": "Retain"},
            [],
            "is Released: its claim default/data is deleted",
            ["reclaim policy Retain: no other claim is bound to it"],
            RELEASE,
        ),
        (
            {"claim_ref": "data", "uid": "old", "phase": "Released", "persistentVolumeReclaimPolicy": "Delete"},
            [],
            "is Released: its claim default/data is deleted",
            ["reclaim policy Delete: its driver has not deleted it yet"],
            LOOK,
        ),
        (
            {"claim_ref": "data", "uid": "old", "phase": "Failed"},
            [],
            "is Failed: its deletion after that of claim default/data has failed",
            [],
            LOOK,
        ),
        ({"phase": "Available"}, [], "is Available: no claim is bound to it", [], []),
        (
            {"phase": "Available", "storage_class": ""},
            [claim("data"), claim("large", size="20Gi"), claim("bound", volume="other")],
            "is Available: no claim is bound to it",
            ["volume v has class <none>, and claim default/data has waits"],
            [],
        ),
        ({"claim_ref": "data", "phase": "Available"}, [], "is Available, and reserved for claim default/data", [], []),
        ({"claim_ref": "data", "phase": "Pending"}, [], "is Pending, and reserved for claim default/data", [], []),
    ],
)
def test_a_volume_is_answered_by_its_phase(
    fields: dict[str, Any], objects: list[Manifest], does: str, causes: list[str], fixes: list[str]
) -> None:
    answer = answer_of("pv/v", node("n"), volume("v", **fields), *objects)
    assert (answer.code, answer.headline) == (0, f"pv/v {does}")
    assert (answer.causes, answer.fixes) == (causes, fixes)


def test_a_volume_stays_in_deletion_as_long_as_a_claim_is_bound_to_it() -> None:
    leaving = volume("v", claim_ref="data", uid="u", phase="Bound")
    leaving = {**leaving, "metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    answer = answer_of("pv/v", node("n"), leaving, BOUND, USER)
    assert (answer.code, answer.causes) == (1, ["claim default/data is bound to it", "pod default/db on n uses it"])


@pytest.mark.parametrize("own", ["", "waits"])
def test_a_claim_that_waits_for_a_pod_is_told_apart_from_a_volume_of_another_class(own: str) -> None:
    objects = [claim("data"), storage_class(provisioner=DRIVER), volume("v", storage_class=own, phase="Available")]
    answer = answer_of("pvc/data", node("n"), *objects)
    apart = "volume v has class <none>, and claim default/data has waits"
    waits = "class waits binds it where its pod is scheduled (WaitForFirstConsumer)"
    assert (answer.code, answer.causes) == (0, [waits, *([] if own else [apart])])


def test_a_lost_claim_has_the_fixes_of_a_pod_that_uses_it() -> None:
    lost = claim("data", volume="gone", phase="Lost")
    answer = answer_of("pvc/data", node("n"), lost, storage_class(provisioner=DRIVER))
    assert (answer.code, answer.causes) == (1, ["its volume gone no longer exists"])
    assert answer.fixes[0] == "restore volume gone with the handle of its disk, if the disk still exists"


def test_a_claim_in_use_is_bound_although_its_volume_was_not_read() -> None:
    status = {"phase": "Bound", "conditions": [{"type": "FileSystemResizePending", "status": "True"}]}
    running = {**USER, "status": {"phase": "Running"}}
    answer = answer_of("pvc/data", node("n"), {**BOUND, "status": status}, running)
    assert (answer.code, answer.headline) == (0, "default/pvc/data is bound to volume v")
    assert answer.causes[1:] == ["pod default/db on n uses it"]


@pytest.mark.parametrize(
    ("kind", "fixes"),
    [
        ("ControllerResizeError", ["request a smaller size that its storage can provide, above the present one"]),
        ("Resizing", []),
    ],
)
def test_a_claim_whose_expansion_fails_can_request_less(kind: str, fixes: list[str]) -> None:
    status = {"phase": "Bound", "conditions": [{"type": kind, "status": "True", "message": "too large"}]}
    answer = answer_of("pvc/data", node("n"), {**BOUND, "status": status}, {**USER, "status": {"phase": "Running"}})
    assert (answer.code, answer.fixes) == (0, fixes)
