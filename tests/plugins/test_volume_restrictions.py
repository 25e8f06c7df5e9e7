"""VolumeRestrictions: disks that pods cannot share, and claims for a single pod."""

from __future__ import annotations

import numpy as np
import pytest

from kschedx.findings import ClaimInUse, ClaimNotFound, DiskConflict
from kschedx.framework.interface import CycleState
from kschedx.framework.runtime import Framework
from kschedx.framework.status import Code
from kschedx.plugins.volume_restrictions import VolumeRestrictions
from kschedx.snapshot.columns import ClusterRow, TableRow, cluster_rows
from kschedx.snapshot.nodes import PodRows
from tests.builders import Manifest, evaluate, framework, node, only, pod
from tests.storage_builders import claim, using

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def gce(name: str, read_only: bool = False) -> Manifest:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> Manifest:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, read_only: bool = False, portal: str = "10.0.0.1") -> Manifest:
    return {"iscsi": {"iqn": iqn, "targetPortal": portal, "lun": 0, "readOnly": read_only}}


def rbd(image: str, *monitors: str, pool: str = "", read_only: bool = False) -> Manifest:
    return {
        "rbd": {"image": image, "monitors": list(monitors), "readOnly": read_only} | ({"pool": pool} if pool else {})
    }


@pytest.mark.parametrize(
    ("own_volume", "other_volume", "conflict"),
    [
        (gce("a"), gce("a"), True),
        (gce("a"), gce("b"), False),
        (gce("a", True), gce("a", True), False),
        (gce("a", True), gce("a"), True),
        (ebs("a", True), ebs("a", True), True),
        (ebs("a"), ebs("b"), False),
        (iscsi("q"), iscsi("q", portal="10.0.0.2"), True),
        (iscsi("q", True), iscsi("q", True), False),
        (iscsi("q"), iscsi("p"), False),
        (rbd("i", "m1", "m2"), rbd("i", "m2"), True),
        (rbd("i", "m1"), rbd("i", "m2"), False),
        (rbd("i", "m1", pool="p"), rbd("i", "m1"), False),
        (rbd("i", "m1", pool="rbd"), rbd("i", "m1"), True),
        (rbd("i", "m1", read_only=True), rbd("i", "m1", read_only=True), False),
        (gce("a"), ebs("a"), False),
    ],
)
def test_a_disk_in_use_rejects_its_node(own_volume: Manifest, other_volume: Manifest, conflict: bool) -> None:
    objects = [using("new", volumes=[own_volume]), using("old", volumes=[other_volume], on="n"), node("n"), node("m")]
    cycle = evaluate(objects, "default/new", only("VolumeRestrictions"))
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(0))
    assert cycle.filter.status(TableRow(1)).is_success
    assert status.is_success != conflict
    if conflict:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (DISK,))
        finding = status.findings[0]
        assert isinstance(finding, DiskConflict)
        assert finding.holder == "default/old"


def single_pod_claim(name: str) -> Manifest:
    return claim(name, modes=["ReadWriteOncePod"], volume=f"pv-{name}")


def test_a_claim_in_use_rejects_all_nodes() -> None:
    objects = [using("new", "data"), using("old", "data", on="n"), single_pod_claim("data"), node("n"), node("m")]
    cycle = evaluate(objects, "default/new", only("VolumeRestrictions"))
    assert cycle.filter is not None
    for row in range(2):
        status = cycle.filter.status(TableRow(row))
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (IN_USE,))
        assert status.findings == (ClaimInUse(claim="default/data", holder="default/old", holder_node="n"),)


@pytest.mark.parametrize(
    "other_pod",
    [
        using("old", "data"),  # pending
        using("old", "data", on="n", status={"phase": "Succeeded"}),
        using("old", "data", on="n", metadata={"namespace": "elsewhere"}),
        using("old", "other", on="n"),
    ],
)
def test_a_free_claim_is_skipped(other_pod: Manifest) -> None:
    objects = [using("new", "data"), other_pod, single_pod_claim("data"), single_pod_claim("other"), node("n")]
    assert evaluate(objects, "default/new", only("VolumeRestrictions")).filter_skipped == ("VolumeRestrictions",)


def test_a_missing_claim_rejects_the_pod() -> None:
    status = evaluate([using("new", "data"), node("n")], "default/new", only("VolumeRestrictions")).pre_filter_status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "data" not found',)
    assert status.findings == (ClaimNotFound(claim="default/data", volume="v0", ephemeral=False),)


def test_a_pod_without_such_volumes_is_skipped() -> None:
    assert evaluate([pod("new"), node("n")], "default/new", only("VolumeRestrictions")).filter_skipped


# --- removed and added pods


def pre_filter(objects: list[Manifest]) -> tuple[Framework, VolumeRestrictions, CycleState]:
    work = framework(objects, only("VolumeRestrictions"))
    plugin, state = work.plugins("filter", VolumeRestrictions)[0], CycleState()
    assert plugin.pre_filter(state, work.snapshot.pods[0], work.nodes).status.is_success
    return work, plugin, state


def codes(
    work: Framework, plugin: VolumeRestrictions, state: CycleState, change: PodRows, *steps: str
) -> list[list[int]]:
    """Return the codes of all nodes after each step: `-` removes the pods, `+` adds them again."""
    nodes, pod_, result = work.nodes, work.snapshot.pods[0], []
    for step in steps:
        (plugin.remove_pods if step == "-" else plugin.add_pods)(state, pod_, nodes, change)
        nodes = nodes.remove_pods(change) if step == "-" else nodes.add_pods(change)
        result.append([int(code) for code in plugin.filter(state, pod_, nodes).codes])
    return result


@pytest.mark.parametrize("volumes", [["claim"], ["disk"], ["claim", "disk"]])
def test_removing_the_holder_frees_only_its_node(volumes: list[str]) -> None:
    claims = ["data"] if "claim" in volumes else []
    disks = [gce("a")] if "disk" in volumes else []
    objects = [
        using("new", *claims, volumes=disks),
        using("old", *claims, volumes=disks, on="n"),
        single_pod_claim("data"),
        node("n"),
        node("m"),
    ]
    work, plugin, state = pre_filter(objects)
    change = PodRows(pods=np.array([1]), nodes=cluster_rows([ClusterRow(0)]))
    before = [int(code) for code in plugin.filter(state, work.snapshot.pods[0], work.nodes).codes]
    elsewhere = int(Code.UNSCHEDULABLE) if claims else 0
    assert before == [int(Code.UNSCHEDULABLE), elsewhere]
    assert codes(work, plugin, state, change, "-", "+") == [[0, elsewhere], before]
