"""ResourceClaimTemplates: a new manifest gets its claims from them, a stored pod does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import kschedx
from kschedx.inquiry.explanation import Explanation
from tests.builders import Manifest, at, node, pod
from tests.device_builders import claim, device, device_class, request, resource_slice

USES = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
ME = pod("me", containers=[{"name": "main", "image": "app"}], resourceClaims=USES)
NEW = ME | {"metadata": {"name": "me", "namespace": "default"}}
TEMPLATE: Manifest = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [request()]}}},
}
CLUSTER = [node("a"), node("b"), device_class(), resource_slice("b", device("gpu-0"))]
NOT_CREATED = 'pod "default/me": ResourceClaim not created yet'


def explained(objects: list[Manifest], target: Manifest | str) -> Explanation:
    return kschedx.explain(kschedx.Snapshot.from_objects(objects), target)


def test_a_new_pod() -> None:
    result = explained([*CLUSTER, TEMPLATE], NEW)
    assert result.best_nodes == ("b",)
    (note,) = [note.document for note in result.notes if note.id == "claims-from-templates"]
    assert (note["claims"], note["templates"]) == (["default/me-gpu"], ["default/gpus"])


def test_a_new_pod_with_a_missing_template() -> None:
    assert NOT_CREATED in explained(CLUSTER, NEW).message


def test_a_stored_pod_needs_the_controller() -> None:
    assert NOT_CREATED in explained([*CLUSTER, TEMPLATE, ME], "default/me").message


@pytest.mark.parametrize(
    ("objects", "complete", "exists"),
    [([*CLUSTER, TEMPLATE, ME], False, True), ([*CLUSTER, ME], True, False), ([*CLUSTER, ME], False, None)],
)
def test_a_template_is_missing_only_if_all_are_known(
    objects: list[Manifest], complete: bool, exists: bool | None
) -> None:
    snapshot = kschedx.Snapshot.from_objects(objects)
    if complete:
        source = replace(snapshot.source, complete=frozenset({"ResourceClaimTemplate"}))
        snapshot = replace(snapshot, source=source)
    statuses = kschedx.explain(snapshot, "default/me").cycle.pre_enqueue
    (finding,) = (finding for status in statuses for finding in status.findings)
    assert finding.to_dict()["templateExists"] is exists


@pytest.mark.parametrize(("labels", "expected"), [({}, 1), ({"resource.kubernetes.io/admin-access": "true"}, 0)])
def test_admin_access_needs_a_namespace_label(labels: dict[str, str], expected: int) -> None:
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    result = request()
    at(result, "exactly")["adminAccess"] = True
    new: Manifest = {**claim("mine", result), "metadata": {"name": "mine", "namespace": "default"}}
    snapshot = kschedx.Snapshot.from_objects([*CLUSTER, namespace, new])
    uses = {**at(NEW, "spec"), "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
    notes = kschedx.explain(snapshot, NEW | {"spec": uses}, kube_version="1.36").notes
    assert sum("adminAccess: admin access to devices" in note.text for note in notes) == expected
