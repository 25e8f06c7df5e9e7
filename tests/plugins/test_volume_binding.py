"""VolumeBinding: bound, static, and dynamic volumes on each node."""

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
from kschedx.kube.storage import PROVISIONED_BY
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


def evaluate_new(*objects: Manifest, gates: dict[str, bool] | None = None, args: Manifest | None = None) -> Cycle:
    return evaluate([*objects, *NODES], "default/new", only("VolumeBinding", args), gates)


def reasons(cycle: Cycle) -> list[tuple[str, ...]]:
    """Return the reasons of nodes a, b, and c; a node has findings exactly if it is rejected."""
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

POD_WITH_EPHEMERAL = pod("new", volumes=[{"name": "data", "ephemeral": {}}])
OWNED_BY_POD = {"ownerReferences": [{"kind": "Pod", "name": "new", "uid": "default/new", "controller": True}]}


@pytest.mark.parametrize(
    ("target", "claims", "reason", "kind"),
    [
        (using("new", "data"), [], 'persistentvolumeclaim "data" not found', ClaimNotFound),
        (
            POD_WITH_EPHEMERAL,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-data"',
            ClaimNotFound,
        ),
        (
            POD_WITH_EPHEMERAL,
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
def test_pre_filter_rejects_unusable_claims(target: Manifest, claims: list[Manifest], reason: str, kind: type) -> None:
    status = evaluate_new(target, *claims).pre_filter_status
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    assert [type(item) for item in status.findings] == [kind]


@pytest.mark.parametrize(
    ("unbound_claim", "objects", "cause"),
    [
        (claim("data", storage_class=None), [], "no-class"),
        (claim("data", storage_class=""), [storage_class(metadata={"annotations": {}})], "no-class"),
        (claim("data", storage_class="gone"), [], "class-missing"),
        (claim("data", storage_class="gone"), [volume("old", storage_class="gone", claim_ref="other")], "static"),
        (
            claim("data", storage_class="gone"),
            [
                volume(
                    "old", storage_class="gone", metadata={"annotations": {PROVISIONED_BY: "csi.example.com"}}, csi=True
                )
            ],
            "class-missing",
        ),
        (claim("data"), [storage_class(waits=False)], "immediate"),
        (claim("data", volumeName="pv"), [storage_class()], "prebound"),
    ],
)
def test_pre_filter_rejects_unbound_immediate_claims(
    unbound_claim: Manifest, objects: list[Manifest], cause: str
) -> None:
    status = evaluate_new(using("new", "data"), unbound_claim, *objects).pre_filter_status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("pod has unbound immediate PersistentVolumeClaims",)
    (item,) = status.findings
    assert isinstance(item, ClaimUnbound)
    assert item.cause == cause


def test_a_claim_without_a_class_has_the_default_class() -> None:
    default_class = storage_class(metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}})
    assert evaluate_new(
        using("new", "data"), claim("data", storage_class=None), default_class
    ).pre_filter_status.is_success


def test_a_pod_without_claims_is_skipped() -> None:
    assert evaluate_new(pod("new", volumes=[{"name": "v", "emptyDir": {}}])).filter_skipped == ("VolumeBinding",)


# --- bound claims


def test_a_bound_volume_limits_the_nodes() -> None:
    cycle = evaluate_new(
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", claim_ref="data", node_affinity=in_term(ZONE, "a", "b")),
    )
    assert reasons(cycle) == [(), (), (NODE,)]
    mismatch = finding(cycle, 2, VolumeNodeAffinityMismatch)
    assert isinstance(mismatch, VolumeNodeAffinityMismatch)
    assert (mismatch.claim, mismatch.persistent_volume) == ("default/data", "pv")
    assert mismatch.terms[0].requirements[0].actual == "c"


def test_a_missing_bound_volume_rejects_all_nodes() -> None:
    cycle = evaluate_new(using("new", "data"), claim("data", volume="gone"))
    assert reasons(cycle) == [(MISSING,)] * 3
    assert finding(cycle, 0, VolumeNotFound) == VolumeNotFound(claim="default/data", persistent_volume="gone")


def test_the_first_failing_bound_claim_is_the_reason() -> None:
    cycle = evaluate_new(
        using("new", "far", "gone"),
        claim("far", volume="pv"),
        claim("gone", volume="nothing"),
        volume("pv", claim_ref="far", node_affinity=in_term(ZONE, "a")),
    )
    assert reasons(cycle) == [(MISSING,), (NODE,), (NODE,)]


def test_a_migrated_volume_has_the_topology_of_its_driver() -> None:
    """The zone label of the driver counts on nodes with the migrated plugin, the label of the volume on others."""
    objects = [
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", claim_ref="data", node_affinity=in_term(ZONE, "a", "b"), gcePersistentDisk={"pdName": "disk"}),
        csi_node("n-a", migrated="kubernetes.io/gce-pd"),
    ]
    assert reasons(evaluate_new(*objects)) == [(NODE,), (), (NODE,)]
    cycle = evaluate_new(*objects)
    mismatch = finding(cycle, 0, VolumeNodeAffinityMismatch)
    assert isinstance(mismatch, VolumeNodeAffinityMismatch)
    assert mismatch.driver == "pd.csi.storage.gke.io"
    assert mismatch.terms[0].requirements[0].key == "topology.gke.io/zone"


def test_an_untranslatable_migrated_volume_is_an_error() -> None:
    cycle = evaluate_new(
        using("new", "data"),
        claim("data", volume="pv"),
        volume("pv", claim_ref="data", azureDisk={"diskName": "d", "diskURI": "u", "kind": "Dedicated"}),
        csi_node("n-b", migrated="kubernetes.io/azure-disk,other"),
    )
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(1))
    assert status.code is Code.ERROR
    assert status.reasons == ("could not translate pv: kind(Dedicated) is not supported in csi migration",)
    assert cycle.filter.status(TableRow(0)).is_success


# --- static volumes


@pytest.mark.parametrize(
    ("candidate", "cause"),
    [
        (volume("pv"), None),
        (volume("pv", size="9Gi"), "too-small"),
        (volume("pv", size="10737418240"), None),
        (volume("pv", claim_ref="other"), "bound-to-another-claim"),
        (volume("pv", claim_ref="data", uid="old"), "bound-to-another-claim"),
        (volume("pv", claim_ref="other", phase="Released"), "released"),
        (volume("pv", claim_ref="data", uid="old", phase="Released"), "released"),
        (volume("pv", claim_ref="data", uid="", phase="Available"), None),
        (volume("pv", claim_ref="data", phase="Released"), None),  # the phase of a prebound volume does not matter
        (volume("pv", phase="Released"), "not-available"),
        (volume("pv", volumeMode="Block"), "volume-mode"),
        (volume("pv", modes=["ReadOnlyMany"]), "access-modes"),
        (volume("pv", modes=["ReadWriteOnce", "ReadOnlyMany"]), None),
        (volume("pv", volumeAttributesClassName="fast"), "volume-attributes-class"),
        (volume("pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "being-deleted"),
        (volume("pv", node_affinity=in_term(ZONE, "z")), "wrong-node"),
    ],
)
def test_causes_that_exclude_a_volume(candidate: Manifest, cause: str | None) -> None:
    cycle = evaluate_new(using("new", "data"), claim("data"), storage_class(), candidate)
    assert reasons(cycle) == [() if cause is None else (BIND,)] * 3
    if cause is not None:
        match = finding(cycle, 0, NoMatchingVolume)
        assert isinstance(match, NoMatchingVolume)
        assert [(item.lost, item.volumes) for item in match.lost] == [(cause, 1)]
        assert [(item.name, item.lost) for item in match.nearest] == [("pv", cause)]


def test_a_volume_of_another_class_is_not_considered() -> None:
    cycle = evaluate_new(using("new", "data"), claim("data"), storage_class(), volume("pv", storage_class="other"))
    match = finding(cycle, 0, NoMatchingVolume)
    assert isinstance(match, NoMatchingVolume)
    assert match.volumes == 0


def test_the_beta_annotation_names_the_class() -> None:
    volume_with_annotation = volume(
        "pv", storage_class="other", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "waits"}}
    )
    assert (
        reasons(evaluate_new(using("new", "data"), claim("data"), storage_class(), volume_with_annotation)) == [()] * 3
    )


def test_a_claim_selects_volumes_by_label() -> None:
    claim_with_selector = claim("data", selector={"matchLabels": {"tier": "hot"}})
    objects = [using("new", "data"), claim_with_selector, storage_class()]
    assert reasons(evaluate_new(*objects, volume("pv", labels={"tier": "hot"}))) == [()] * 3
    assert reasons(evaluate_new(*objects, volume("pv", labels={"tier": "cold"}))) == [(BIND,)] * 3


def test_an_invalid_selector_is_an_error() -> None:
    invalid_claim = claim("data", selector={"matchExpressions": [{"key": "tier", "operator": "Near"}]})
    cycle = evaluate_new(using("new", "data"), invalid_claim, storage_class(), volume("pv"))
    assert cycle.filter is not None
    status = cycle.filter.status(TableRow(0))
    assert status.code is Code.ERROR
    assert status.reasons == (
        'error creating internal label selector for claim: default/data: "Near" is not a valid label selector operator',
    )


def test_a_prebound_volume_is_the_only_choice() -> None:
    """The claim of a prebound volume gets no other volume, even if the prebound one is unreachable."""
    own_volume = volume("mine", size="20Gi", claim_ref="data", node_affinity=in_term(ZONE, "a"))
    cycle = evaluate_new(using("new", "data"), claim("data"), storage_class(), own_volume, volume("other"))
    assert reasons(cycle) == [(), (BIND,), (BIND,)]
    match = finding(cycle, 1, NoMatchingVolume)
    assert isinstance(match, NoMatchingVolume)
    assert [(item.name, item.lost) for item in match.nearest] == [("mine", "wrong-node"), ("other", "not-prebound")]


def volumes_to_bind(cycle: Cycle, point: str = "reserve") -> list[tuple[str, str]]:
    """Return the claims and volumes to bind."""
    (status,) = [
        status for dry_point, status in cycle.dry_steps if dry_point == point and status.plugin == "VolumeBinding"
    ]
    return [(item.claim.claim, item.persistent_volume) for item in status.findings if isinstance(item, VolumeToBind)]


def on_one_node(*objects: Manifest) -> Cycle:
    return evaluate([*objects, NODES[0], storage_class()], "default/new", only("VolumeBinding"))


def test_a_claim_gets_the_smallest_volume_that_fits() -> None:
    volumes = [volume("large", size="30Gi"), volume("fits", size="12Gi"), volume("small", size="5Gi")]
    assert volumes_to_bind(on_one_node(using("new", "data"), claim("data"), *volumes)) == [("default/data", "fits")]


def test_small_claims_are_matched_first() -> None:
    volumes = [volume("v20", size="20Gi"), volume("v10", size="10Gi")]
    claims = [claim("big", size="10Gi"), claim("tiny", size="1Gi")]
    # the small claim gets the small volume, which would also fit the larger claim
    cycle = on_one_node(using("new", "big", "tiny"), *claims, *volumes)
    assert volumes_to_bind(cycle) == [("default/tiny", "v10"), ("default/big", "v20")]


def test_a_volume_is_bound_to_one_claim_of_the_pod() -> None:
    cycle = evaluate_new(using("new", "one", "two"), claim("one"), claim("two"), storage_class(), volume("pv"))
    assert reasons(cycle) == [(BIND,)] * 3
    match = finding(cycle, 0, NoMatchingVolume)
    assert isinstance(match, NoMatchingVolume)
    assert match.claim.claim == "default/two"
    assert [(item.name, item.lost) for item in match.nearest] == [("pv", "taken")]


def test_reasons_of_bound_and_unbound_claims_are_joined() -> None:
    cycle = evaluate_new(
        using("new", "here", "data"),
        claim("here", volume="far"),
        volume("far", claim_ref="here", node_affinity=in_term(ZONE, "a")),
        claim("data"),
        storage_class(),
        volume("pv", node_affinity=in_term(ZONE, "b")),
    )
    assert reasons(cycle) == [(BIND,), (NODE,), (NODE, BIND)]


# --- dynamic volumes

PROVISIONING = storage_class(provisioner=DRIVER)


def test_provisioning_needs_the_topology_of_the_class() -> None:
    cycle = evaluate_new(using("new", "data"), claim("data"), storage_class(provisioner=DRIVER, zones=["a", "b"]))
    assert reasons(cycle) == [(), (), (BIND,)]
    mismatch = finding(cycle, 2, ProvisioningTopologyMismatch)
    assert isinstance(mismatch, ProvisioningTopologyMismatch)
    assert mismatch.terms[0].requirements[0].values == ("a", "b")
    assert mismatch.terms[0].requirements[0].actual == "c"


def test_an_existing_volume_is_preferred_to_a_new_one() -> None:
    cycle = evaluate_new(
        using("new", "data"), claim("data"), PROVISIONING, volume("pv", node_affinity=in_term(ZONE, "a"))
    )
    assert reasons(cycle) == [()] * 3


def test_a_selected_node_is_kept() -> None:
    cycle = evaluate_new(using("new", "data"), claim("data", annotations={SELECTED: "n-b"}), PROVISIONING, volume("pv"))
    assert reasons(cycle) == [(BIND,), (), (BIND,)]
    assert finding(cycle, 0, SelectedNodeMismatch) == SelectedNodeMismatch(claim="default/data", selected_node="n-b")


def test_a_selected_node_without_a_provisioner_is_rejected() -> None:
    cycle = evaluate_new(
        using("new", "data"), claim("data", annotations={SELECTED: "n-b"}), storage_class(), volume("pv")
    )
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
def test_provisioning_needs_storage_capacity(capacities: list[Manifest], expected: list[tuple[str, ...]]) -> None:
    cycle = evaluate_new(
        using("new", "data"), claim("data"), PROVISIONING, csi_driver(storageCapacity=True), *capacities
    )
    assert reasons(cycle) == expected


def test_capacity_counts_only_if_the_driver_reports_it() -> None:
    objects = [using("new", "data"), claim("data"), PROVISIONING]
    assert reasons(evaluate_new(*objects)) == [()] * 3
    assert reasons(evaluate_new(*objects, csi_driver())) == [()] * 3
    assert (
        reasons(evaluate_new(*objects[:1], claim("data", size=None), PROVISIONING, csi_driver(storageCapacity=True)))
        == [()] * 3
    )


def test_reachable_capacities_are_listed_first() -> None:
    capacities = [capacity("b", "9Gi", zone="b"), capacity("a", "2Gi", zone="a"), capacity("c", "7Gi", zone="c")]
    cycle = evaluate_new(
        using("new", "data"), claim("data"), PROVISIONING, csi_driver(storageCapacity=True), *capacities
    )
    shortage = finding(cycle, 0, InsufficientStorageCapacity)
    assert isinstance(shortage, InsufficientStorageCapacity)
    assert [(item.name, item.limit, item.reachable) for item in shortage.capacities] == [
        ("kube-system/a", 2 * 2**30, True),
        ("kube-system/b", 9 * 2**30, False),
        ("kube-system/c", 7 * 2**30, False),
    ]
    assert shortage.largest == 2 * 2**30
    assert shortage.claim.requested == 10 * 2**30


# --- scores


def scores(*objects: Manifest, shape: list[tuple[int, int]] | None = None) -> dict[str, int]:
    args: Manifest | None = None
    if shape is not None:
        args = {"shape": [{"utilization": utilization, "score": score} for utilization, score in shape]}
    cycle = evaluate_new(*objects, gates={"StorageCapacityScoring": True}, args=args)
    assert cycle.scores is not None
    return dict(zip(cycle.scores.nodes.names, map(int, cycle.scores.raw["VolumeBinding"]), strict=True))


def test_without_the_gate_scoring_is_skipped() -> None:
    cycle = evaluate_new(using("new", "data"), claim("data"), PROVISIONING)
    assert cycle.scores is not None
    assert cycle.scores.skipped == ("VolumeBinding",)


@pytest.mark.parametrize(
    ("is_gated", "message"),
    [(False, ""), (True, 'running PreScore plugin "VolumeBinding": not found')],
    ids=["nothing to score", "volumes to score"],
)
def test_pre_score_without_pre_filter(is_gated: bool, message: str) -> None:
    disabled = {"disabled": [{"name": "VolumeBinding"}]}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"plugins": {"preFilter": disabled, "filter": disabled, "reserve": disabled, "preBind": disabled}}
        ],
    }
    objects = [using("new", "data"), claim("data"), PROVISIONING, *NODES]
    assert evaluate(objects, "default/new", config, {"StorageCapacityScoring": is_gated}).message == message


def test_new_volumes_prefer_nodes_with_more_capacity() -> None:
    capacities = [capacity("a", "20Gi", zone="a"), capacity("b", "40Gi", zone="b"), capacity("c", "100Gi", zone="c")]
    objects = [using("new", "data"), claim("data"), PROVISIONING, csi_driver(storageCapacity=True), *capacities]
    assert scores(*objects) == {"n-a": 50, "n-b": 75, "n-c": 90}
    assert scores(*objects, shape=[(0, 0), (100, 10)]) == {"n-a": 50, "n-b": 25, "n-c": 10}
    # claims of one class share the capacity
    two_claims = [using("new", "data", "more"), claim("more"), *objects[1:]]
    assert scores(*two_claims) == {"n-a": 0, "n-b": 50, "n-c": 80}


def test_existing_volumes_score_by_utilization() -> None:
    volumes = [
        volume(f"v-{zone}", size=size, node_affinity=in_term(ZONE, zone))
        for zone, size in (("a", "10Gi"), ("b", "40Gi"))
    ]
    assert scores(using("new", "data"), claim("data"), storage_class(), *volumes) == {"n-a": 0, "n-b": 75}


def test_the_score_is_the_rounded_mean_of_classes() -> None:
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


def test_a_pod_without_claims_scores_0() -> None:
    assert scores(pod("new")) == {"n-a": 0, "n-b": 0, "n-c": 0}


# --- dry steps


def steps(cycle: Cycle) -> dict[str, Status]:
    return {point: status for point, status in cycle.dry_steps if status.plugin == "VolumeBinding"}


def test_dry_steps_list_volumes_to_bind_and_provision() -> None:
    cycle = on_one_node(
        using("new", "data", "made"),
        claim("data"),
        volume("pv", size="20Gi"),
        claim("made", storage_class="makes"),
        storage_class("makes", provisioner=DRIVER),
    )
    result = steps(cycle)
    assert result["reserve"].findings == result["preBind"].findings
    bind, provision = result["reserve"].findings
    assert isinstance(bind, VolumeToBind)
    assert (bind.claim.claim, bind.persistent_volume, bind.capacity) == ("default/data", "pv", 20 * 2**30)
    assert isinstance(provision, VolumeToProvision)
    assert (provision.claim.claim, provision.provisioner, provision.node) == ("default/made", DRIVER, "n-a")


def test_bound_claims_skip_pre_bind() -> None:
    result = steps(on_one_node(using("new", "data"), claim("data", volume="pv"), volume("pv", claim_ref="data")))
    assert result["reserve"].findings == ()
    assert result["preBind"].code is Code.SKIP
