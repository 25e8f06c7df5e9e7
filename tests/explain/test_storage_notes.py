"""Notes about inconsistent storage objects, on which kube-scheduler decides all the same."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kschedx.explain.cycle_notes import storage_notes
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.root_causes import root_causes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, node, pod
from tests.storage_builders import DRIVER, ZONE, capacity, claim, csi_driver, csi_node, storage_class, using, volume

HERE = [node("n", labels={ZONE: "a"}), csi_node("n", limit=5)]
BAD: Manifest = {"matchExpressions": [{"key": ZONE, "operator": "Near"}]}


def notes(*objects: Manifest) -> dict[str, str]:
    snapshot = Snapshot.from_objects(objects)
    result = storage_notes(snapshot, snapshot.pods[snapshot.pods.rows["default/new"]])
    return {note.id: note.text for note in result}


@pytest.mark.parametrize(
    ("objects", "expected", "words"),
    [
        ([claim("data", volume="gone")], "claim-volume-missing", 'volume "gone"'),
        (
            [claim("data", storage_class="fasst"), storage_class("fast")],
            "claim-class-missing",
            'did you mean "fast"?',
        ),
        (
            [claim("data", modes=("ReadWriteMany",)), storage_class(provisioner="ebs.csi.aws.com")],
            "access-mode-refused",
            "ebs.csi.aws.com does not provide",
        ),
        ([claim("data", volume="pv"), volume("pv", claim_ref="other")], "volume-bound-elsewhere", "default/other"),
        (
            [claim("data", volume="pv"), volume("pv", claim_ref="data", uid="old")],
            "volume-bound-elsewhere",
            "an earlier claim of that name",
        ),
        (
            [claim("data", volume="pv"), volume("pv", claim_ref="data"), csi_node("gone")],
            "csi-node-without-node",
            "(gone)",
        ),
        (
            [claim("data", volume="pv"), volume("pv", claim_ref="data"), node("bare")],
            "node-without-csi-node",
            "1 node without a CSINode (bare)",
        ),
        (
            [
                claim("data"),
                storage_class(provisioner=DRIVER),
                csi_driver(storageCapacity=True),
                capacity("bad", "1Ti", topology=BAD),
            ],
            "capacity-selector-invalid",
            "kube-system/bad",
        ),
        ([claim("data"), storage_class(), volume("one"), volume("two")], "equal-volumes", "(one, two)"),
        (
            [
                claim("data"),
                storage_class(provisioner=DRIVER),
                csi_driver(),
                volume("kept", claim_ref="data", uid="before", phase="Released"),
            ],
            "data-on-released-volume",
            "the data of an earlier claim of that name is on kept (Released)",
        ),
    ],
)
def test_inconsistencies(objects: list[Manifest], expected: str, words: str) -> None:
    target = using("new", "data")
    result = notes(target, *HERE, *objects)
    assert list(result) == [expected]
    assert words in result[expected]
    evaluate([target, *HERE, *objects], "default/new")  # decided, not refused


@pytest.mark.parametrize(
    ("provisioner", "mode", "expected"),
    [
        ("kubernetes.io/aws-ebs", "Filesystem", True),
        ("pd.csi.storage.gke.io", "Filesystem", True),
        ("ebs.csi.aws.com", "Block", False),
        ("efs.csi.aws.com", "Filesystem", False),
        ("cinder.csi.openstack.org", "Filesystem", False),
        ("rancher.io/local-path", "Filesystem", False),
    ],
)
def test_only_certain_refusals_are_noted(provisioner: str, mode: str, expected: bool) -> None:
    shared = claim("data", modes=("ReadWriteMany",), volumeMode=mode)
    snapshot = Snapshot.from_objects([using("new", "data"), node("n"), shared, storage_class(provisioner=provisioner)])
    assert (
        "access-mode-refused" in {storage_note.id for storage_note in storage_notes(snapshot, snapshot.pods[0])}
    ) == expected


def test_a_consistent_cluster_has_no_note() -> None:
    assert notes(using("new", "data"), *HERE, claim("data", volume="pv"), volume("pv", claim_ref="data")) == {}


def test_a_missing_kind() -> None:
    result = storage_notes(snapshot := Snapshot.from_objects([using("new", "data"), node("n")]), snapshot.pods[0])
    assert [note.id for note in result] == ["missing-kind", "missing-kind"]


def test_a_complete_cluster_without_objects_of_a_kind() -> None:
    dumped = Snapshot.from_objects([using("new", "data"), node("n")])
    whole = replace(dumped.source, complete=frozenset({"PersistentVolumeClaim", "CSINode"}))
    result = storage_notes(replace(dumped, source=whole), dumped.pods[0])
    assert [note.id for note in result] == ["empty-kind", "empty-kind"]
    assert all("dump" not in text and "is known" not in text for text in (note.text for note in result))


def test_a_pod_without_volumes_has_no_note() -> None:
    assert notes(pod("new"), node("bare"), csi_node("gone")) == {}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("Resizing", "claim default/data is being expanded to 20Gi, Resizing"),
        (
            "FileSystemResizePending",
            (
                "claim default/data is being expanded to 20Gi, FileSystemResizePending: its file system grows when a "
                "pod mounts it again"
            ),
        ),
    ],
)
def test_a_claim_that_is_being_expanded_has_a_note(condition: str, expected: str) -> None:
    bound = claim("data", size="20Gi", volume="disk")
    bound = {**bound, "status": {"phase": "Bound", "conditions": [{"type": condition, "status": "True"}]}}
    new = pod("new", spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})
    assert notes(*HERE, bound, volume("disk", claim_ref="data"), new)["claim-resizing"] == expected


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        (ZONE, "In", ["gone"], ["no node is in zone gone"]),
        (ZONE, "In", ["b"], []),
        ("topology.disk.example.com/zone", "In", ["gone"], ["no node is in zone gone"]),
        ("topology.disk.example.com/zone", "In", ["b"], []),
        ("topology.disk.example.com/zone", "In", [""], []),
        (ZONE, "NotIn", ["a"], []),
        (ZONE, "DoesNotExist", [], []),
        ("disk", "Exists", [], []),
        ("disk", "In", ["ssd"], []),
    ],
)
def test_a_volume_whose_zone_has_no_node(key: str, operator: str, values: list[str], expected: list[str]) -> None:
    expression = {"key": key, "operator": operator, "values": values}
    reach: Manifest = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    nodes = [node("n", labels={ZONE: "a"}), node("m", labels={ZONE: "b"}, unschedulable=True)]
    disk = [claim("data", volume="pv"), volume("pv", claim_ref="data", node_affinity=reach)]
    cycle = evaluate([*nodes, *disk, using("new", "data")], "default/new")
    assert [cause.text for cause in root_causes(Diagnosis(cycle))] == expected
