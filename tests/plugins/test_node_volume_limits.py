"""NodeVolumeLimits: volumes of a driver, counted once per node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.findings import AttachedVolume, ClaimNotFound, DriverNotInstalled, VolumeLimitExceeded
from kschedx.framework.interface import CycleState
from kschedx.framework.status import Code, Status
from kschedx.plugins.node_volume_limits import NodeVolumeLimits
from kschedx.snapshot.columns import ClusterRow, TableRow, cluster_rows
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, explain_pod, framework, node, only, pod
from tests.storage_builders import DRIVER, attachment, claim, csi_driver, csi_node, storage_class, using, volume

REASON = "node(s) exceed max volume count"
EBS = "ebs.csi.aws.com"


def ebs(name: str) -> Manifest:
    return {"awsElasticBlockStore": {"volumeID": name}}


def bound_claims(*names: str) -> list[Manifest]:
    """Return bound claims with one CSI volume each."""
    return [
        item
        for name in names
        for item in (claim(name, volume=f"pv-{name}"), volume(f"pv-{name}", claim_ref=name, csi=True))
    ]


def on_node(*objects: Manifest, limit: int | None = 2, gates: dict[str, bool] | None = None) -> Status:
    """Return the status of `new` on a node `n` with a limit."""
    cluster = [*objects, node("n"), csi_node("n", limit=limit), *bound_claims("a", "b", "c", "d")]
    cycle = evaluate(cluster, "default/new", only("NodeVolumeLimits"), gates)
    assert cycle.filter is not None
    return cycle.filter.status(TableRow(0))


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        ([using("new", "a", "b")], True),
        ([using("new", "a", "b", "c")], False),
        ([using("new", "a"), using("old", "b", on="n")], True),
        ([using("new", "a"), using("old", "b", "c", on="n")], False),
        ([using("new", "b"), using("old", "b", "c", on="n")], True),  # already attached
        ([using("new", "a"), using("one", "b", on="n"), using("two", "b", on="n")], True),  # counted once
        ([using("new", "a", "a"), using("old", "b", on="n")], True),
        ([using("new", "a"), using("old", "b", "c", on="n", status={"phase": "Failed"})], True),
        ([using("new", "a"), attachment("x", "pv-b", "n"), attachment("y", "pv-c", "n")], False),
        ([using("new", "a"), attachment("x", "pv-b", "n"), using("old", "b", on="n")], True),
        ([using("new", "a"), attachment("x", "pv-b", "m"), attachment("y", "pv-c", "m")], True),
        ([using("new", "a"), attachment("x", "pv-b", "n", attacher=""), attachment("y", "pv-c", "n")], True),
        # an attachment without a pod counts in addition to the new pod's volume
        ([using("new", "a"), attachment("x", "pv-a", "n"), attachment("y", "pv-b", "n")], False),
        (
            [using("new", "a"), using("old", "gone", "b", on="n")],
            True,
        ),  # a missing claim of a running pod does not count
    ],
)
def test_volumes_count_once_per_node(objects: list[Manifest], fits: bool) -> None:
    status = on_node(*objects)
    assert status.is_success == fits
    if not fits:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON,))


def test_the_finding_lists_all_volumes_and_pods() -> None:
    status = on_node(using("new", "a", "b"), using("old", "c", on="n"), attachment("x", "pv-d", "n"))
    assert status.findings == (
        VolumeLimitExceeded(
            driver=DRIVER,
            attached=2,
            limit=2,
            volumes=("default/a", "default/b"),
            holders=(
                AttachedVolume(volume="default/c", pods=("default/old",)),
                AttachedVolume(volume="pv-d", pods=()),
            ),
        ),
    )


def test_a_node_without_a_limit_passes() -> None:
    assert on_node(using("new", "a", "b", "c"), limit=None).is_success


def test_a_node_without_a_csi_node_passes() -> None:
    cycle = evaluate([using("new", "a"), node("n"), *bound_claims("a")], "default/new", only("NodeVolumeLimits"))
    assert cycle.filter is not None
    assert cycle.filter.status(TableRow(0)).is_success


def test_unbound_claims_count_for_their_provisioner() -> None:
    unbound = [storage_class(provisioner=DRIVER), claim("x"), claim("y")]
    assert on_node(using("new", "x", "y"), *unbound).is_success
    assert not on_node(using("new", "x", "y"), using("old", "a", on="n"), *unbound).is_success
    # a pod on the node with the same claim shares it
    assert on_node(using("new", "x"), using("old", "x", "y", on="n"), *unbound).is_success


@pytest.mark.parametrize(("limit", "fits"), [(1, False), (2, True)])
def test_migrated_volumes_count_for_their_driver(limit: int, fits: bool) -> None:
    objects = [
        using("new", "data"),
        using("old", volumes=[ebs("aws://zone-a/vol-1")], on="n"),
        claim("data", volume="pv"),
        volume("pv", claim_ref="data", awsElasticBlockStore={"volumeID": "vol-2"}),
        node("n"),
        csi_node("n", limit=limit, driver=EBS),
    ]
    cycle = evaluate(objects, "default/new", only("NodeVolumeLimits"))
    assert cycle.filter is not None
    assert cycle.filter.status(TableRow(0)).is_success == fits


_INLINE: dict[str, tuple[str, Manifest]] = {
    "aws-ebs": (EBS, ebs("v")),
    "azure-disk": ("disk.csi.azure.com", {"azureDisk": {"diskName": "v", "diskURI": "u", "kind": "Managed"}}),
    "cinder": ("cinder.csi.openstack.org", {"cinder": {"volumeID": "v"}}),
    "gce-pd": ("pd.csi.storage.gke.io", {"gcePersistentDisk": {"pdName": "v"}}),
    "portworx-volume": ("pxd.portworx.com", {"portworxVolume": {"volumeID": "v"}}),
    "vsphere-volume": ("csi.vsphere.vmware.com", {"vsphereVolume": {"volumePath": "v"}}),
}


@pytest.mark.parametrize(
    ("version", "is_listed", "counted"),
    [
        # Cinder's gate was gone before 1.26, those of EBS and Azure in 1.27, of GCE in 1.28, of Portworx in 1.36
        ("1.26", False, {"cinder"}),
        ("1.26", True, {"aws-ebs", "azure-disk", "cinder", "gce-pd"}),
        ("1.27", False, {"aws-ebs", "azure-disk", "cinder"}),
        ("1.28", False, {"aws-ebs", "azure-disk", "cinder", "gce-pd"}),
        ("1.35", False, {"aws-ebs", "azure-disk", "cinder", "gce-pd"}),
        ("1.35", True, {"aws-ebs", "azure-disk", "cinder", "gce-pd", "portworx-volume"}),
        ("1.36", False, {"aws-ebs", "azure-disk", "cinder", "gce-pd", "portworx-volume"}),
    ],
)
def test_a_node_lists_plugins_that_a_gate_migrates(version: str, is_listed: bool, counted: set[str]) -> None:
    rejected = set()
    for plugin, (driver, source) in _INLINE.items():
        migrated = f"kubernetes.io/{plugin}" if is_listed else ""
        node_drivers = csi_node("n", limit=0, driver=driver, migrated=migrated)
        cluster = Snapshot.from_objects([using("new", volumes=[source]), node("n"), node_drivers])
        if not explain_pod(cluster, "default/new", config=only("NodeVolumeLimits"), kube_version=version).best_nodes:
            rejected.add(plugin)
    assert rejected == counted


def test_a_pod_without_limited_volumes_is_skipped() -> None:
    target = pod("new", volumes=[{"name": "v", "emptyDir": {}}, {"name": "c", "csi": {"driver": DRIVER}}])
    assert evaluate([target, node("n")], "default/new", only("NodeVolumeLimits")).filter_skipped


def test_a_missing_claim_rejects_the_pod() -> None:
    status = on_node(using("new", "gone"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)
    assert status.findings == (ClaimNotFound(claim="default/gone", volume="v0", ephemeral=False),)


@pytest.mark.parametrize("pod_name", ["new", "old"])
def test_an_ephemeral_claim_of_another_owner_is_an_error(pod_name: str) -> None:
    scratch: Manifest = {"volumes": [{"name": "scratch", "ephemeral": {}}]}
    pods = {"new": using("new", "a"), "old": using("old", "b", on="n")}
    spec = pods[pod_name]["spec"]
    assert isinstance(spec, dict)
    spec |= scratch
    status = on_node(*pods.values(), claim(f"{pod_name}-scratch", volume="pv-a"))
    assert status.code is Code.ERROR
    assert status.reasons == (
        f"PVC default/{pod_name}-scratch was not created for pod default/{pod_name} (pod is not owner)",
    )
    assert status.findings


def test_an_unmanaged_azure_disk_is_an_error() -> None:
    status = on_node(using("new", volumes=[{"azureDisk": {"diskName": "d", "diskURI": "u"}}]))
    assert status.code is Code.ERROR
    assert status.reasons == (
        "converting volume(i0) from inline to csi: kind(Shared) is not supported in csi migration",
    )


@pytest.mark.parametrize(
    ("prevents", "gate", "rejected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_driver_can_require_its_installation(prevents: bool, gate: bool, rejected: bool) -> None:
    objects = [
        using("new", "a"),
        node("n"),
        csi_node("n", driver="other"),
        csi_driver(preventPodSchedulingIfMissing=prevents),
        *bound_claims("a"),
    ]
    cycle = evaluate(objects, "default/new", only("NodeVolumeLimits"), {"VolumeLimitScaling": gate})
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(0))
    assert status.is_success != rejected
    if rejected:
        assert (status.code, status.reasons) == (
            Code.UNSCHEDULABLE,
            (f"{DRIVER} CSI driver is not installed on the node",),
        )
        assert status.findings == (DriverNotInstalled(driver=DRIVER, installed=("other",)),)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcdef"))), max_size=6),
    st.sets(st.sampled_from("abcdef"), min_size=1),
    st.integers(0, 4),
)
def test_removed_and_added_pods_change_the_count(
    pods_on_nodes: list[tuple[int, set[str]]], requested_claims: set[str], limit: int
) -> None:
    """Removed and added pods count exactly as absent and present pods."""
    names = [f"n{i}" for i in range(4)]
    other_objects = [
        *(node(name) for name in names),
        *(csi_node(name, limit=limit) for name in names),
        *bound_claims(*"abcdef"),
    ]
    new = using("new", *sorted(requested_claims))
    pods = [using(f"p{i}", *sorted(claims), on=names[place]) for i, (place, claims) in enumerate(pods_on_nodes)]
    work = framework([new, *pods, *other_objects], only("NodeVolumeLimits"))
    plugin = work.plugins("filter", NodeVolumeLimits)[0]
    rows = np.arange(1, len(pods) + 1)
    change = PodRows(pods=rows, nodes=cluster_rows([ClusterRow(place) for place, _ in pods_on_nodes]))
    pod_ = work.snapshot.pods[0]

    def verdicts(nodes: NodeTable) -> list[int]:
        return [int(code) for code in plugin.filter(CycleState(), pod_, nodes).codes]

    empty = framework([new, *other_objects], only("NodeVolumeLimits"))
    other = empty.plugins("filter", NodeVolumeLimits)[0]
    empty_codes = [int(code) for code in other.filter(CycleState(), pod_, empty.nodes).codes]
    assert verdicts(work.nodes.remove_pods(change)) == empty_codes
    assert verdicts(work.nodes.remove_pods(change).add_pods(change)) == verdicts(work.nodes)
