"""VolumeBinding: bound, static and dynamic volumes, node by node."""

from __future__ import annotations

import pytest

from kschedx.findings import (
    ClaimBeingDeleted,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    ClaimUnbound,
    InsufficientStorageCapacity,
    NoMatchingVolume,
    ProvisioningTopologyMismatch,
    SelectedNodeMismatch,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
)
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code, Status
from kschedx.snapshot.columns import TableRow
from tests.builders import Manifest, evaluate, node, only, pod
from tests.storage_builders import (
    DRIVER,
    HOSTNAME,
    ZONE,
    capacity,
    claim,
    csi_driver,
    csi_node,
    in_term,
    storage_class,
    using,
    volume,
)

NODE = "node(s) didn't match PersistentVolume's node affinity"
BIND = "node(s) didn't find available persistent volumes to bind"
SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED = "volume.kubernetes.io/selected-node"

NODES = [node(f"n-{zone}", labels={ZONE: zone, HOSTNAME: f"n-{zone}"}) for zone in "abc"]


def run(*objects: Manifest, gates: dict[str, bool] | None = None, args: Manifest | None = None) -> Cycle:
    return evaluate([*objects, *NODES], "default/new", only("VolumeBinding", args), gates)


def reasons(cycle: Cycle) -> list[tuple[str, ...]]:
    """The reasons of nodes a, b and c, none where the pod fits. A rejection has its account, a success has none."""
    assert cycle.filter is not None
    verdicts = cycle.filter.verdicts[0]
    for row in range(3):
        status = verdicts.status(TableRow(row))
        assert bool(status.findings) != status.is_success
        assert status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return [verdicts.status(TableRow(row)).reasons for row in range(3)]


def finding(cycle: Cycle, row: int, kind: type) -> object:
    assert cycle.filter is not None
    return next(item for item in cycle.filter.verdicts[0].status(TableRow(row)).findings if isinstance(item, kind))


# --- PreFilter

EPHEMERAL = pod("new", volumes=[{"name": "data", "ephemeral": {}}])
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "new", "uid": "default/new", "controller": True}]}


@pytest.mark.parametrize(
    ("target", "claims", "reason", "kind"),
    [
        (using("new", "data"), [], 'persistentvolumeclaim "data" not found', ClaimNotFound),
        (
            EPHEMERAL,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-data"',
            ClaimNotFound,
        ),
        (
            EPHEMERAL,
            [claim("new-data", volume="pv")],
            "PVC default/new-data was not created for pod default/new (pod is not owner)",
            ClaimNotOwned,
        ),
        (
            using("new", "data"),
            [claim("data", volume="pv", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            ClaimLost,
        ),
        (
            using("new", "data"),
            [claim("data", volume="pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
            ClaimBeingDeleted,
        ),
    ],
)
def test_a_claim_that_cannot_be_used(target: Manifest, claims: list[Manifest], reason: str, kind: type) -> None:
    status = run(target, *claims).pre_filter_status
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    assert [type(item) for item in status.findings] == [kind]


@pytest.mark.parametrize(
    ("unbound", "classes", "cause"),
    [
        (claim("data", storage_class=None), [], "no-class"),
        (claim("data", storage_class=""), [storage_class(metadata={"annotations": {}})], "no-class"),
        (claim("data", storage_class="gone"), [], "class-missing"),
        (claim("data"), [storage_class(waits=False)], "immediate"),
        (claim("data", volumeName="pv"), [storage_class()], "prebound"),
    ],
)
def test_an_unbound_claim_that_does_not_wait(unbound: Manifest, classes: list[Manifest], cause: str) -> None:
    status = run(using("new", "data"), unbound, *classes).pre_filter_status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("pod has unbound immediate PersistentVolumeClaims",)
    (item,) = status.findings
    assert isinstance(item, ClaimUnbound)
    assert item.cause == cause


def test_the_default_class_is_that_of_a_claim_that_names_none() -> None:
    default = storage_class(metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}})
    assert run(using("new", "data"), claim("data", storage_class=None), default).pre_filter_status.is_success


def test_a_pod_without_claims_is_skipped() -> None:
    assert run(pod("new", volumes=[{"name": "v", "emptyDir": {}}])).filter_skipped == ("VolumeBinding",)


# --- bound claims


def test_a_bound_volume_must_be_in_reach() -> None:
    cycle = run(
        using("new", "data"), claim("data", volume="pv"), volume("pv", holder="data", reach=in_term(ZONE, "a", "b"))
    )
    assert reasons(cycle) == [(), (), (NODE,)]
    mismatch = finding(cycle, 2, VolumeNodeAffinityMismatch)
    assert isinstance(mismatch, VolumeNodeAffinityMismatch)
    assert (mismatch.claim, mismatch.persistent_volume) == ("default/data", "pv")
    assert mismatch.terms[0].requirements[0].actual == "c"


def test_a_bound_volume_that_is_gone() -> None:
    cycle = run(using("new", "data"), claim("data", volume="gone"))
    assert reasons(cycle) == [(MISSING,)] * 3
    assert finding(cycle, 0, VolumeNotFound) == VolumeNotFound(claim="default/data", persistent_volume="gone")


def test_the_first_bound_claim_that_does_not_do_settles_it() -> None:
    cycle = run(
        using("new", "far", "gone"),
        claim("far", volume="pv"),
        claim("gone", volume="nothing"),
        volume("pv", holder="far", reach=in_term(ZONE, "a")),
    )
    assert reasons(cycle) == [(MISSING,), (NODE,), (NODE,)]


def test_a_migrated_volume_is_read_under_its_drivers_topology() -> None:
    """Where the kubelet has migrated the plugin the driver's zone label counts, elsewhere the volume's own."""
    objects = [
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", holder="data", reach=in_term(ZONE, "a", "b"), gcePersistentDisk={"pdName": "disk"}),
        csi_node("n-a", migrated="kubernetes.io/gce-pd"),
    ]
    assert reasons(run(*objects)) == [(NODE,), (), (NODE,)]
    cycle = run(*objects)
    mismatch = finding(cycle, 0, VolumeNodeAffinityMismatch)
    assert isinstance(mismatch, VolumeNodeAffinityMismatch)
    assert mismatch.driver == "pd.csi.storage.gke.io"
    assert mismatch.terms[0].requirements[0].key == "topology.gke.io/zone"


def test_a_migrated_volume_that_cannot_be_translated_is_an_error() -> None:
    cycle = run(
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", holder="data", azureDisk={"diskName": "d", "diskURI": "u", "kind": "Dedicated"}),
        csi_node("n-b", migrated="kubernetes.io/azure-disk,other"),
    )
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(1))
    assert status.code is Code.ERROR
    assert status.reasons == ("could not translate pv: kind(Dedicated) is not supported in csi migration",)
    assert cycle.filter.status(TableRow(0)).is_success


# --- static volumes


@pytest.mark.parametrize(
    ("candidate", "lost"),
    [
        (volume("pv"), None),
        (volume("pv", size="9Gi"), "too-small"),
        (volume("pv", size="10737418240"), None),
        (volume("pv", holder="other"), "bound-to-another-claim"),
        (volume("pv", holder="data", uid="old"), "bound-to-another-claim"),
        (volume("pv", holder="data", uid="", phase="Available"), None),
        (volume("pv", holder="data", phase="Released"), None),  # a volume that names the claim may be in any phase
        (volume("pv", phase="Released"), "not-available"),
        (volume("pv", volumeMode="Block"), "volume-mode"),
        (volume("pv", modes=["ReadOnlyMany"]), "access-modes"),
        (volume("pv", modes=["ReadWriteOnce", "ReadOnlyMany"]), None),
        (volume("pv", volumeAttributesClassName="fast"), "volume-attributes-class"),
        (volume("pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "being-deleted"),
        (volume("pv", reach=in_term(ZONE, "z")), "wrong-node"),
    ],
)
def test_why_a_volume_is_lost(candidate: Manifest, lost: str | None) -> None:
    cycle = run(using("new", "data"), claim("data"), storage_class(), candidate)
    assert reasons(cycle) == [() if lost is None else (BIND,)] * 3
    if lost is not None:
        account = finding(cycle, 0, NoMatchingVolume)
        assert isinstance(account, NoMatchingVolume)
        assert [(item.lost, item.volumes) for item in account.lost] == [(lost, 1)]
        assert [(item.name, item.lost) for item in account.nearest] == [("pv", lost)]


def test_a_volume_of_another_class_is_not_considered() -> None:
    cycle = run(using("new", "data"), claim("data"), storage_class(), volume("pv", storage_class="other"))
    account = finding(cycle, 0, NoMatchingVolume)
    assert isinstance(account, NoMatchingVolume)
    assert account.volumes == 0


def test_the_beta_annotation_names_the_class() -> None:
    old = volume(
        "pv", storage_class="other", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "waits"}}
    )
    assert reasons(run(using("new", "data"), claim("data"), storage_class(), old)) == [()] * 3


def test_a_claims_selector() -> None:
    wanted = claim("data", selector={"matchLabels": {"tier": "hot"}})
    objects = [using("new", "data"), wanted, storage_class()]
    assert reasons(run(*objects, volume("pv", labels={"tier": "hot"}))) == [()] * 3
    assert reasons(run(*objects, volume("pv", labels={"tier": "cold"}))) == [(BIND,)] * 3


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    wrong = claim("data", selector={"matchExpressions": [{"key": "tier", "operator": "Near"}]})
    cycle = run(using("new", "data"), wrong, storage_class(), volume("pv"))
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(0))
    assert status.code is Code.ERROR
    assert status.reasons == (
        'error creating internal label selector for claim: default/data: "Near" is not a valid label selector operator',
    )


def test_a_prebound_volume_is_taken_or_none() -> None:
    """The claim of a volume that names it gets no other, also where that one is out of reach."""
    mine = volume("mine", size="20Gi", holder="data", reach=in_term(ZONE, "a"))
    cycle = run(using("new", "data"), claim("data"), storage_class(), mine, volume("other"))
    assert reasons(cycle) == [(), (BIND,), (BIND,)]
    account = finding(cycle, 1, NoMatchingVolume)
    assert isinstance(account, NoMatchingVolume)
    assert [(item.name, item.lost) for item in account.nearest] == [("mine", "wrong-node"), ("other", "not-prebound")]


def chosen(cycle: Cycle, point: str = "reserve") -> list[tuple[str, str]]:
    """Claim and volume of what would be bound."""
    (status,) = [status for at, status in cycle.dry_steps if at == point and status.plugin == "VolumeBinding"]
    return [(item.claim.claim, item.persistent_volume) for item in status.findings if isinstance(item, VolumeToBind)]


def on_one_node(*objects: Manifest) -> Cycle:
    return evaluate([*objects, NODES[0], storage_class()], "default/new", only("VolumeBinding"))


def test_the_smallest_volume_that_fits_is_taken() -> None:
    volumes = [volume("large", size="30Gi"), volume("fits", size="12Gi"), volume("small", size="5Gi")]
    assert chosen(on_one_node(using("new", "data"), claim("data"), *volumes)) == [("default/data", "fits")]


def test_small_claims_choose_first() -> None:
    volumes = [volume("v20", size="20Gi"), volume("v10", size="10Gi")]
    claims = [claim("big", size="10Gi"), claim("tiny", size="1Gi")]
    # the small claim takes the small volume, which the larger one would have fitted into
    cycle = on_one_node(using("new", "big", "tiny"), *claims, *volumes)
    assert chosen(cycle) == [("default/tiny", "v10"), ("default/big", "v20")]


def test_a_volume_goes_to_one_claim_of_the_pod() -> None:
    cycle = run(using("new", "one", "two"), claim("one"), claim("two"), storage_class(), volume("pv"))
    assert reasons(cycle) == [(BIND,)] * 3
    account = finding(cycle, 0, NoMatchingVolume)
    assert isinstance(account, NoMatchingVolume)
    assert account.claim.claim == "default/two"
    assert [(item.name, item.lost) for item in account.nearest] == [("pv", "taken")]


def test_bound_and_unbound_are_told_together() -> None:
    cycle = run(
        using("new", "here", "data"),
        claim("here", volume="far"),
        volume("far", holder="here", reach=in_term(ZONE, "a")),
        claim("data"),
        storage_class(),
        volume("pv", reach=in_term(ZONE, "b")),
    )
    assert reasons(cycle) == [(BIND,), (NODE,), (NODE, BIND)]


# --- dynamic volumes

MAKES = storage_class(provisioner=DRIVER)


def test_a_volume_is_made_in_the_classs_topology() -> None:
    cycle = run(using("new", "data"), claim("data"), storage_class(provisioner=DRIVER, zones=["a", "b"]))
    assert reasons(cycle) == [(), (), (BIND,)]
    mismatch = finding(cycle, 2, ProvisioningTopologyMismatch)
    assert isinstance(mismatch, ProvisioningTopologyMismatch)
    assert mismatch.terms[0].requirements[0].values == ("a", "b")
    assert mismatch.terms[0].requirements[0].actual == "c"


def test_an_existing_volume_is_preferred_to_a_new_one() -> None:
    cycle = run(using("new", "data"), claim("data"), MAKES, volume("pv", reach=in_term(ZONE, "a")))
    assert reasons(cycle) == [()] * 3


def test_a_selected_node_is_kept() -> None:
    cycle = run(using("new", "data"), claim("data", annotations={SELECTED: "n-b"}), MAKES, volume("pv"))
    assert reasons(cycle) == [(BIND,), (), (BIND,)]
    assert finding(cycle, 0, SelectedNodeMismatch) == SelectedNodeMismatch(claim="default/data", selected_node="n-b")


def test_a_selected_node_without_a_provisioner_has_its_account() -> None:
    cycle = run(using("new", "data"), claim("data", annotations={SELECTED: "n-b"}), storage_class(), volume("pv"))
    assert reasons(cycle) == [(BIND,)] * 3


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ([], [(SPACE,)] * 3),
        ([capacity("a", "10Gi", zone="a")], [(), (SPACE,), (SPACE,)]),
        ([capacity("a", "9Gi", zone="a"), capacity("b", "10Gi", zone="b")], [(SPACE,), (), (SPACE,)]),
        ([capacity("all", "1Ti")], [()] * 3),
        ([capacity("all", "1Ti", maximumVolumeSize="5Gi")], [(SPACE,)] * 3),
        ([capacity("all", None)], [(SPACE,)] * 3),
        ([capacity("other", "1Ti", storage_class="other")], [(SPACE,)] * 3),
        ([{k: v for k, v in capacity("nowhere", "1Ti").items() if k != "nodeTopology"}], [(SPACE,)] * 3),
        (
            [capacity("bad", "1Ti", topology={"matchExpressions": [{"key": ZONE, "operator": "Near"}]})],
            [(SPACE,)] * 3,
        ),
    ],
)
def test_capacity(capacities: list[Manifest], expected: list[tuple[str, ...]]) -> None:
    cycle = run(using("new", "data"), claim("data"), MAKES, csi_driver(storageCapacity=True), *capacities)
    assert reasons(cycle) == expected


def test_capacity_counts_only_where_the_driver_says_so() -> None:
    objects = [using("new", "data"), claim("data"), MAKES]
    assert reasons(run(*objects)) == [()] * 3
    assert reasons(run(*objects, csi_driver())) == [()] * 3
    assert reasons(run(*objects[:1], claim("data", size=None), MAKES, csi_driver(storageCapacity=True))) == [()] * 3


def test_the_account_of_capacity_lists_what_is_in_reach_first() -> None:
    capacities = [capacity("b", "9Gi", zone="b"), capacity("a", "2Gi", zone="a"), capacity("c", "7Gi", zone="c")]
    cycle = run(using("new", "data"), claim("data"), MAKES, csi_driver(storageCapacity=True), *capacities)
    account = finding(cycle, 0, InsufficientStorageCapacity)
    assert isinstance(account, InsufficientStorageCapacity)
    assert [(item.name, item.limit, item.reachable) for item in account.capacities] == [
        ("kube-system/a", 2 * 2**30, True),
        ("kube-system/b", 9 * 2**30, False),
        ("kube-system/c", 7 * 2**30, False),
    ]
    assert account.largest == 2 * 2**30
    assert account.claim.requested == 10 * 2**30


# --- scores


def scores(*objects: Manifest, shape: list[tuple[int, int]] | None = None) -> dict[str, int]:
    args: Manifest | None = None
    if shape is not None:
        args = {"shape": [{"utilization": at, "score": score} for at, score in shape]}
    cycle = run(*objects, gates={"StorageCapacityScoring": True}, args=args)
    assert cycle.scores is not None
    return dict(zip(cycle.scores.nodes.names, map(int, cycle.scores.raw["VolumeBinding"]), strict=True))


def test_without_the_gate_nothing_is_scored() -> None:
    cycle = run(using("new", "data"), claim("data"), MAKES)
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("VolumeBinding",)


@pytest.mark.parametrize(
    ("gated", "message"),
    [(False, ""), (True, 'running PreScore plugin "VolumeBinding": not found')],
    ids=["nothing to score", "volumes to score"],
)
def test_a_profile_without_its_pre_filter(gated: bool, message: str) -> None:
    off = {"disabled": [{"name": "VolumeBinding"}]}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"preFilter": off, "filter": off, "reserve": off, "preBind": off}}],
    }
    objects = [using("new", "data"), claim("data"), MAKES, *NODES]
    assert evaluate(objects, "default/new", config, {"StorageCapacityScoring": gated}).message == message


def test_new_volumes_prefer_nodes_with_much_storage() -> None:
    capacities = [capacity("a", "20Gi", zone="a"), capacity("b", "40Gi", zone="b"), capacity("c", "100Gi", zone="c")]
    objects = [using("new", "data"), claim("data"), MAKES, csi_driver(storageCapacity=True), *capacities]
    assert scores(*objects) == {"n-a": 50, "n-b": 75, "n-c": 90}
    assert scores(*objects, shape=[(0, 0), (100, 10)]) == {"n-a": 50, "n-b": 25, "n-c": 10}
    # the claims of a class share the capacity
    twice = [using("new", "data", "more"), claim("more"), *objects[1:]]
    assert scores(*twice) == {"n-a": 0, "n-b": 50, "n-c": 80}


def test_existing_volumes_score_by_how_full_they_would_be() -> None:
    volumes = [
        volume(f"v-{zone}", size=size, reach=in_term(ZONE, zone)) for zone, size in (("a", "10Gi"), ("b", "40Gi"))
    ]
    assert scores(using("new", "data"), claim("data"), storage_class(), *volumes) == {"n-a": 0, "n-b": 75}


def test_classes_weigh_the_same_and_the_mean_is_rounded() -> None:
    objects = [
        using("new", "data", "logs"),
        claim("data"),
        claim("logs", storage_class="other"),
        storage_class(),
        storage_class("other"),
        volume("v", size="40Gi"),
        volume("w", size="100Gi", storage_class="other"),
    ]
    assert scores(*objects) == {"n-a": 83, "n-b": 83, "n-c": 83}  # 75 and 90 make 82.5


def test_a_pod_without_claims_scores_nothing() -> None:
    assert scores(pod("new")) == {"n-a": 0, "n-b": 0, "n-c": 0}


# --- dry steps


def steps(cycle: Cycle) -> dict[str, Status]:
    return {point: status for point, status in cycle.dry_steps if status.plugin == "VolumeBinding"}


def test_the_dry_steps_say_what_would_be_bound_and_made() -> None:
    cycle = on_one_node(
        using("new", "data", "made"),
        claim("data"),
        volume("pv", size="20Gi"),
        claim("made", storage_class="makes"),
        storage_class("makes", provisioner=DRIVER),
    )
    result = steps(cycle)
    assert result["reserve"].findings == result["preBind"].findings
    bind, make = result["reserve"].findings
    assert isinstance(bind, VolumeToBind)
    assert (bind.claim.claim, bind.persistent_volume, bind.capacity) == ("default/data", "pv", 20 * 2**30)
    assert isinstance(make, VolumeToProvision)
    assert (make.claim.claim, make.provisioner, make.node) == ("default/made", DRIVER, "n-a")


def test_with_everything_bound_nothing_is_left_to_do() -> None:
    result = steps(on_one_node(using("new", "data"), claim("data", volume="pv"), volume("pv", holder="data")))
    assert result["reserve"].findings == ()
    assert result["preBind"].code is Code.SKIP
