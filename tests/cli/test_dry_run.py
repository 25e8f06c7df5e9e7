"""`--dry-run=server`: the request, and the use of the response."""

from __future__ import annotations

from typing import Any

from kschedx.cli.dry_run import create_manifest, restore_identity

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-new", "uid": "", "controller": True}
MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-new",
        "namespace": "shop",
        "uid": "1",
        "resourceVersion": "7",
        "ownerReferences": [OWNER],
    },
    "spec": {"containers": []},
    "status": {"phase": "Pending"},
}


def test_owners_without_uid_and_fields_of_the_server_are_not_sent() -> None:
    sent = create_manifest(MANIFEST)
    assert sent["metadata"] == {"name": "web-new", "namespace": "shop"}
    assert "status" not in sent
    there = create_manifest({**MANIFEST, "metadata": {"name": "a", "ownerReferences": [{**OWNER, "uid": "2"}]}})
    assert there["metadata"] == {"name": "a", "ownerReferences": [{**OWNER, "uid": "2"}]}


def test_an_existing_name_is_replaced_by_a_generated_one() -> None:
    assert create_manifest(MANIFEST, renamed=True)["metadata"] == {"generateName": "web-new-", "namespace": "shop"}


def test_the_answer_keeps_the_name_and_the_owners() -> None:
    stored: dict[str, Any] = {"metadata": {"name": "web-new-x7k", "creationTimestamp": "2024-01-01T00:00:00Z"}}
    assert restore_identity(MANIFEST, stored)["metadata"] == {
        "name": "web-new",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "ownerReferences": [OWNER],
    }
