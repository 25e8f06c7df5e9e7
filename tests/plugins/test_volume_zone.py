"""VolumeZone: zone and region labels of bound volumes and nodes."""

from __future__ import annotations

import pytest

from kschedx.findings import ClaimNotFound, ClaimUnbound, VolumeNotFound, VolumeZoneMismatch
from kschedx.framework.status import Code
from kschedx.snapshot.columns import TableRow
from tests.builders import Manifest, evaluate, node, only
from tests.storage_builders import ZONE, claim, storage_class, using, volume

REASON = "node(s) had no available volume zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "fits"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "a__ b "}, {ZONE: "b"}, True),
        ({ZONE: "a__"}, {ZONE: "b"}, True),  # a label with an empty zone is ignored
        ({ZONE: "a"}, {}, True),  # a node without such labels passes
        ({ZONE: "a"}, {REGION: "r"}, False),  # a node with only a region label is rejected
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),  # the old label of a volume matches the new label of a node
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),  # but not the reverse
    ],
)
def test_zones_of_volumes_and_nodes(volume_labels: dict[str, str], node_labels: dict[str, str], fits: bool) -> None:
    objects = [
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", claim_ref="data", labels=volume_labels),
        node("n", labels=node_labels),
    ]
    cycle = evaluate(objects, "default/new", only("VolumeZone"))
    if cycle.filter is None or "VolumeZone" in cycle.filter_skipped:
        assert fits
        return
    status = cycle.filter.status(TableRow(0))
    assert status.is_success == fits
    if not fits:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON,))
        finding = status.findings[0]
        assert isinstance(finding, VolumeZoneMismatch)
        assert (finding.claim, finding.persistent_volume) == ("default/data", "pv")
        assert finding.actual == node_labels.get(finding.node_key)
        assert finding.actual not in finding.zones


@pytest.mark.parametrize(
    ("objects", "reason", "finding"),
    [
        ([], 'persistentvolumeclaim "data" not found', ClaimNotFound),
        ([claim("data", volume="gone")], 'persistentvolume "gone" not found', VolumeNotFound),
        ([claim("data")], 'storageclass.storage.k8s.io "waits" not found', ClaimUnbound),
        (
            [claim("data", storage_class=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
            ClaimUnbound,
        ),
        ([claim("data"), storage_class(waits=False)], "PersistentVolume had no name", ClaimUnbound),
    ],
)
def test_pre_filter_rejects_unusable_claims(objects: list[Manifest], reason: str, finding: type) -> None:
    cycle = evaluate([using("new", "data"), node("n"), *objects], "default/new", only("VolumeZone"))
    status = cycle.pre_filter_status
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    assert [type(item) for item in status.findings] == [finding]


def test_a_claim_with_late_binding_is_skipped() -> None:
    cycle = evaluate(
        [using("new", "data"), claim("data"), storage_class(), node("n")], "default/new", only("VolumeZone")
    )
    assert cycle.filter_skipped == ("VolumeZone",)
